// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pre-flight of a change for a fleet: at most 25 lines for people, JSON, and a flat table of hosts for CSV and
//! Parquet. Computes no verdict.

use crate::export::{ExportError, FlatKind, FlatTable, FlatValue};
use crate::layout::{columns, hanging, shortened, wrap};
use floodline_fleet::{Confidence, Group, Row, Summary, Verdict, thousands};
use floodline_record::human;
use serde::Serialize;
use std::fmt::Write;

/// Groups that a screen shows in all; with more, [`GROUPS`] of each verdict.
const GROUPS_ALL: usize = 5;
/// Groups of sufferers that a screen shows at least, and of every other verdict.
const GROUPS: (usize, usize) = (2, 1);
/// Longest key that is shown in one line.
const KEY_MAX: usize = 44;
/// Lines that the findings of a screen share. A group has at least one, and sufferers two.
const FINDING_LINES: usize = 7;

/// How the text is shown.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Columns.
    pub width: usize,
    /// Whether every host is shown.
    pub details: bool,
    /// Arguments of the change, for commands to type.
    pub arguments: &'a str,
    /// Where the row of each host is, if `details` are not shown.
    pub each_host: &'a str,
}

/// For people.
pub fn text(summary: &Summary, rows: &[Row], options: Options<'_>) -> String {
    let width = options.width.clamp(60, 120);
    let mut out = String::new();
    hanging(&mut out, "", &summary.headline(), width);
    hanging(&mut out, "", &looked_at(summary), width);
    let _ = writeln!(out);
    let counts = summary.groups.iter().map(|group| columns(&thousands(group.hosts))).max().unwrap_or(1);
    for verdict in [Verdict::Suffers, Verdict::Tight, Verdict::NotKnown, Verdict::Fine] {
        groups(&mut out, summary, verdict, counts, width);
    }
    if options.details {
        details(&mut out, rows, width);
    }
    let _ = writeln!(out);
    if summary.simulated > 0 {
        hanging(&mut out, "", &simulated(summary), width);
    }
    next(&mut out, summary, rows, options, width);
    out
}

/// What became of the files, in parts that add up.
fn parts(summary: &Summary, judged: u64, unusable: u64) -> String {
    let was = |count: u64| if count == 1 { "was" } else { "were" };
    let judged = format!("{} {} judged", thousands(judged), was(judged));
    let unusable = (unusable > 0).then(|| format!("{} cannot be used", thousands(unusable)));
    let unread = (summary.unread > 0).then(|| format!("{} could not be read", thousands(summary.unread)));
    let others: Vec<String> = unusable.into_iter().chain(unread).collect();
    let of = format!("Of {} files, {judged}", thousands(summary.files));
    match others.as_slice() {
        [one] => format!("{of} and {one}."),
        _ => format!("{of}, {}.", others.join(" and ")),
    }
}

/// What was read, and what of it was not used or not whole.
fn looked_at(summary: &Summary) -> String {
    let mut text = format!("Change: {}. ", summary.change);
    let read = summary.files.saturating_sub(summary.unread);
    let is_unusable = |group: &&Group| group.cause.is_of_file() && !group.cause.is_unread();
    let unusable: u64 = summary.groups.iter().filter(is_unusable).map(|group| group.hosts).sum();
    text.push_str(&match (read, summary.unread) {
        (0, 1) => "The file could not be read.".to_owned(),
        (0, unread) if unread > 0 => format!("None of {} files could be read.", thousands(unread)),
        // A file alone that cannot be used is told by its group.
        (1, 0) => "1 file was read.".to_owned(),
        (files, 0) if unusable == 0 => format!("{} files were read.", thousands(files)),
        _ => parts(summary, read.saturating_sub(unusable), unusable),
    });
    let of_them = |count: u64| match read {
        1 => "It".to_owned(),
        _ => format!("{} of them", thousands(count)),
    };
    let mut tell = |count: u64, one: &str, more: &str| {
        if count > 0 {
            text.push_str(&format!(" {} {}", of_them(count), if count == 1 { one } else { more }));
        }
    };
    tell(
        summary.cut,
        "is cut: its end is missing, and the rest was judged.",
        "are cut: their ends are missing, and the rest was judged.",
    );
    tell(
        summary.damaged,
        "has damaged parts, and the rest was judged.",
        "have damaged parts, and the rest was judged.",
    );
    tell(summary.superseded, "is an older recording of the same host.", "are older recordings of the same hosts.");
    if summary.is_interrupted {
        text.push_str(" Interrupted: the other files were not read.");
    }
    text
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Suffers => "SUFFERS",
        Verdict::Tight => "TIGHT",
        Verdict::NotKnown => "UNKNOWN",
        Verdict::Fine => "FINE",
    }
}

fn groups(out: &mut String, summary: &Summary, verdict: Verdict, counts: usize, width: usize) {
    let of = |verdict| summary.groups.iter().filter(move |group| group.verdict == verdict).collect::<Vec<&Group>>();
    let most = |verdict| match verdict {
        _ if summary.groups.len() <= GROUPS_ALL => GROUPS_ALL,
        Verdict::Suffers => GROUPS.0,
        _ => GROUPS.1,
    };
    let least = if verdict == Verdict::Suffers { 2 } else { 1 };
    // Groups that are not shown need no lines.
    let told = [Verdict::Suffers, Verdict::Tight].map(|verdict| of(verdict).len().min(most(verdict)));
    let lines = (FINDING_LINES / told.iter().sum::<usize>().max(1)).max(least);
    let (of, most) = (of(verdict), most(verdict));
    for (at, group) in of.iter().take(most).enumerate() {
        let head = if at == 0 { word(verdict) } else { "" };
        let accepted = match group.accepted {
            0 => String::new(),
            all if all == group.hosts => " (accepted)".to_owned(),
            some => format!(" ({} accepted)", thousands(some)),
        };
        let first = format!("{head:<8} {:>counts$}  ", thousands(group.hosts));
        hanging(out, &first, &format!("{}{accepted}", group.title), width);
        let indent = " ".repeat(columns(&first));
        match verdict {
            Verdict::Fine => {}
            Verdict::NotKnown => {
                for line in wrap(&group.hint, width.saturating_sub(indent.len())) {
                    let _ = writeln!(out, "{indent}{line}");
                }
            }
            Verdict::Suffers | Verdict::Tight => {
                let host = shortened(group.examples.first().map_or("", String::as_str), width / 3);
                let mut shown = wrap(&format!("{host}: {}", group.finding), width.saturating_sub(indent.len() + 2));
                if shown.len() > lines {
                    shown.truncate(lines);
                    if let Some(last) = shown.last_mut() {
                        *last = format!("{} …", last.trim_end_matches(['.', ',']));
                    }
                }
                for line in shown {
                    let _ = writeln!(out, "{indent}{line}");
                }
            }
        }
    }
    if of.len() > most {
        let rest: u64 = of.iter().skip(most).map(|group| group.hosts).sum();
        let causes = human::plural((of.len() - most) as u64, "other cause", "other causes");
        let _ = writeln!(out, "{:<8} {:>counts$}  for {causes}: add --details", "", thousands(rest));
    }
}

fn simulated(summary: &Summary) -> String {
    let hosts = |count: u64| format!("{} {}", thousands(count), if count == 1 { "host" } else { "hosts" });
    match (summary.controls, summary.controls_suffer) {
        (0, _) => format!("Simulated: {}.", hosts(summary.simulated)),
        (controls, 0) => format!(
            "Simulated: {}, among them {} at random as a control, of which none suffers.",
            hosts(summary.simulated),
            thousands(controls)
        ),
        (controls, suffer) => format!(
            "Simulated: {}, among them {} at random as a control. {} of these suffer, which arithmetic did not see: \
             simulate more with --control 100%.",
            hosts(summary.simulated),
            thousands(controls),
            thousands(suffer)
        ),
    }
}

/// What to type next.
fn next(out: &mut String, summary: &Summary, rows: &[Row], options: Options<'_>, width: usize) {
    let mut rows = rows.iter().filter(|row| row.verdict == Verdict::Suffers && !row.accepted && !row.superseded);
    // A host that `predict` refuses is a poor example.
    let rank = |row: &Row| (row.confidence != Confidence::Low, row.severity);
    let worst = rows.next().map(|first| rows.fold(first, |most, row| if rank(row) > rank(most) { row } else { most }));
    if let Some(worst) = worst {
        let command = match worst.samples {
            0..=4 => format!("floodline budget {} --all", human::quoted(&worst.file)),
            _ => format!("floodline predict {} {}", human::quoted(&worst.file), options.arguments),
        };
        let _ = writeln!(out, "The worst host in detail:");
        crate::layout::command(out, 2, &command, width);
        let accept = match columns(&worst.key) <= KEY_MAX {
            true => format!("To accept this finding: --accept {}", human::quoted(&worst.key)),
            false => format!("To accept this cause on every host: --accept {}", human::quoted(worst.cause.name())),
        };
        hanging(out, "", &accept, width);
    }
    if !options.details && summary.hosts > 0 {
        hanging(out, "", &format!("Each host: {}", options.each_host), width);
    }
}

fn details(out: &mut String, rows: &[Row], width: usize) {
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by(|one, other| {
        let rank = |row: &Row| {
            [Verdict::Suffers, Verdict::Tight, Verdict::NotKnown, Verdict::Fine].iter().position(|v| *v == row.verdict)
        };
        rank(one)
            .cmp(&rank(other))
            .then(other.severity.total_cmp(&one.severity))
            .then_with(|| one.file.cmp(&other.file))
    });
    for row in sorted {
        let _ = writeln!(out);
        let mut facts = vec![word(row.verdict).to_owned()];
        facts.extend((row.severity > 0.0).then(|| format!("severity {:.1}", row.severity)));
        facts.extend(row.margin.map(|margin| format!("margin {}", human::number(margin))));
        facts.push(format!("confidence {}", row.confidence.name()));
        facts.extend((row.tier == 2).then(|| "simulated".to_owned()));
        facts.extend(row.accepted.then(|| "accepted".to_owned()));
        facts.extend(row.cut.then(|| "its end is missing".to_owned()));
        facts.extend(row.damaged.then(|| "parts are damaged".to_owned()));
        facts.extend(row.superseded.then(|| "replaced by a later recording".to_owned()));
        hanging(out, "", &format!("{}  {}", shortened(&row.host, width / 2), facts.join(", ")), width);
        hanging(out, "  ", &format!("{}  [{}]", row.finding, row.key), width);
        for (now, then, what) in [
            (row.stall_now_seconds, row.stall_then_seconds, "waits of all tasks"),
            (row.longest_wait_now_seconds, row.longest_wait_then_seconds, "longest write or sync"),
        ] {
            if let Some((now, then)) = now.zip(then) {
                let _ = writeln!(out, "  {what}: {} → about {}", human::seconds(now), human::seconds(then));
            }
        }
        for note in row.boot.iter().chain(&row.notes) {
            hanging(out, "  ", note, width);
        }
        if !row.hint.is_empty() {
            hanging(out, "  ", &format!("next: {}", row.hint), width);
        }
        // A path stays on one line, so that it can be copied.
        let _ = writeln!(out, "  {}", row.file);
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    headline: String,
    rows: &'a [Row],
}

/// One line of JSON: the summary, and `rows` with each host.
pub fn json(summary: &Summary, rows: &[Row]) -> Result<String, serde_json::Error> {
    crate::json::line(&Whole { summary, headline: summary.headline(), rows })
}

/// A row as a cell of each column.
type Column<T> = (&'static str, fn(&Row) -> T);

/// Columns with texts.
const TEXTS: &[Column<Option<String>>] = &[
    ("host", |row| Some(row.host.clone())),
    ("file", |row| Some(row.file.clone())),
    ("verdict", |row| Some(row.verdict.name().to_owned())),
    ("cause", |row| Some(row.cause.name().to_owned())),
    ("key", |row| Some(row.key.clone())),
    ("finding", |row| Some(row.finding.clone())),
    ("hint", |row| Some(row.hint.clone()).filter(|hint| !hint.is_empty())),
    ("confidence", |row| Some(row.confidence.name().to_owned())),
    ("worst_cgroup", |row| row.worst_cgroup.clone()),
    ("sick_already", |row| row.sick_already.clone()),
    ("kernel_now", |row| row.kernel_now.clone()),
    ("kernel_then", |row| row.kernel_then.clone()),
    ("cgroup_now", |row| row.cgroup_now.clone()),
    ("cgroup_then", |row| row.cgroup_then.clone()),
    ("boot", |row| row.boot.clone()),
    ("notes", |row| Some(row.notes.join(" ")).filter(|notes| !notes.is_empty())),
];

/// Columns with flags.
const FLAGS: &[Column<bool>] = &[
    ("accepted", |row| row.accepted),
    ("superseded", |row| row.superseded),
    ("cut", |row| row.cut),
    ("damaged", |row| row.damaged),
    ("control", |row| row.control),
];

/// Columns with counts, bytes and nanoseconds.
const COUNTS: &[Column<Option<u64>>] = &[
    ("tier", |row| Some(u64::from(row.tier))),
    ("demand_bytes", |row| row.demand_bytes),
    ("limit_now_bytes", |row| row.limit_now_bytes),
    ("limit_then_bytes", |row| row.limit_then_bytes),
    ("cgroups_over", |row| Some(row.cgroups_over)),
    ("cgroups", |row| Some(row.cgroups)),
    ("samples", |row| Some(row.samples)),
    ("recorded_wall_ns", |row| row.recorded_wall_ns),
];

/// Columns with other numbers.
const NUMBERS: &[Column<Option<f64>>] = &[
    ("severity", |row| Some(row.severity)),
    ("margin", |row| row.margin),
    ("stall_now_seconds", |row| row.stall_now_seconds),
    ("stall_then_seconds", |row| row.stall_then_seconds),
    ("stall_then_low_seconds", |row| row.stall_then_low_seconds),
    ("stall_then_high_seconds", |row| row.stall_then_high_seconds),
    ("longest_wait_now_seconds", |row| row.longest_wait_now_seconds),
    ("longest_wait_then_seconds", |row| row.longest_wait_then_seconds),
    ("written_now_bytes", |row| row.written_now_bytes),
    ("written_then_bytes", |row| row.written_then_bytes),
    ("back_test_error", |row| row.back_test_error),
    ("seconds", |row| Some(row.seconds)),
];

/// Names and kinds of all columns.
fn named_columns() -> impl Iterator<Item = (&'static str, FlatKind)> {
    let texts = TEXTS.iter().map(|(name, _)| (*name, FlatKind::Text));
    let flags = FLAGS.iter().map(|(name, _)| (*name, FlatKind::Flag));
    let counts = COUNTS.iter().map(|(name, _)| (*name, FlatKind::Whole));
    texts.chain(flags).chain(counts).chain(NUMBERS.iter().map(|(name, _)| (*name, FlatKind::Number)))
}

/// Hosts as a table: one row per file, texts first.
pub fn table(rows: &[Row]) -> Result<FlatTable, ExportError> {
    let whole = |number: u64| i64::try_from(number).map_or(FlatValue::Null, FlatValue::Whole);
    let cells = |row: &Row| {
        let texts = TEXTS.iter().map(|(_, read)| read(row).map_or(FlatValue::Null, FlatValue::Text));
        let flags = FLAGS.iter().map(|(_, read)| FlatValue::Flag(read(row)));
        let counts = COUNTS.iter().map(|(_, read)| read(row).map_or(FlatValue::Null, whole));
        let numbers = NUMBERS
            .iter()
            .map(|(_, read)| read(row).filter(|number| number.is_finite()).map_or(FlatValue::Null, FlatValue::Number));
        texts.chain(flags).chain(counts).chain(numbers).collect()
    };
    let (names, kinds) = named_columns().map(|(name, kind)| (name.to_owned(), kind)).unzip();
    FlatTable::of_kinds("preflight", names, kinds, rows.iter().map(cells).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_fleet::{Cause, Change};

    fn row(host: &str, verdict: Verdict, cause: Cause) -> Row {
        let change = Change::parse::<&str>(&[], None, Some("v2"), None).unwrap();
        let mut row =
            Row::not_known(&format!("{host}.flr"), &change, cause, "It held 4 MiB of unwritten data.".to_owned());
        (row.host, row.verdict, row.samples) = (host.to_owned(), verdict, 60);
        row
    }

    #[test]
    fn every_field_of_a_row_is_a_column() {
        let value = serde_json::to_value(Row::default()).unwrap();
        let fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let mut columns: Vec<&str> = named_columns().map(|(name, _)| name).collect();
        columns.sort_unstable();
        assert_eq!(columns, fields);
        let mut out = Vec::new();
        table(&[row("a", Verdict::Fine, Cause::WideMargin)]).unwrap().csv(&mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("a,a.flr,fine,wide-margin"));
    }

    #[test]
    fn one_group_is_explained_whole_and_what_an_accepted_cause_covers_is_said() {
        let shown = |name: &str| {
            let mut one = row(name, Verdict::Suffers, Cause::Simulated);
            one.finding = format!("{} The end.", "It held 4 MiB of unwritten data. ".repeat(6));
            one.key = format!("simulated-harm@{name}");
            let summary = Summary::of(std::slice::from_ref(&one), "cgroup v2".to_owned());
            text(
                &summary,
                &[one],
                Options { width: 80, details: false, arguments: "--set cgroup=v2", each_host: "-o hosts.parquet" },
            )
        };
        let short = shown("web1");
        assert!(short.contains("The end.") && !short.contains('…') && short.lines().count() <= 25, "{short}");
        assert!(short.contains("To accept this finding: --accept simulated-harm@web1"), "{short}");
        let long = shown(&"web".repeat(20));
        assert!(long.contains("To accept this cause on every host: --accept simulated-harm\n"), "{long}");
    }

    #[test]
    fn a_hint_is_not_cut() {
        for cause in Cause::ALL.iter().filter(|cause| !cause.hint().is_empty()) {
            let one = row("web1", Verdict::NotKnown, *cause);
            let summary = Summary::of(std::slice::from_ref(&one), "cgroup v2".to_owned());
            let shown = text(
                &summary,
                &[one],
                Options { width: 60, details: false, arguments: "--set cgroup=v2", each_host: "-o hosts.parquet" },
            );
            let words: Vec<&str> = shown.split_whitespace().collect();
            assert!(words.join(" ").contains(cause.hint()), "{shown}");
        }
    }

    #[test]
    fn files_that_are_not_read_not_usable_or_not_whole_are_counted() {
        let mut rows = [
            row("a", Verdict::Fine, Cause::WideMargin),
            row("b", Verdict::NotKnown, Cause::FileEmpty),
            row("c", Verdict::NotKnown, Cause::Damaged),
            row("d", Verdict::NotKnown, Cause::FileUnreadable),
            row("e", Verdict::NotKnown, Cause::NotAFile),
        ];
        let of = |rows: &[Row]| looked_at(&Summary::of(rows, "cgroup v2".to_owned()));
        assert_eq!(of(&rows), "Change: cgroup v2. Of 5 files, 1 was judged, 2 cannot be used and 2 could not be read.");
        assert_eq!(of(&rows[..3]), "Change: cgroup v2. Of 3 files, 1 was judged and 2 cannot be used.");
        assert_eq!(of(&rows[..1]), "Change: cgroup v2. 1 file was read.");
        assert_eq!(of(&rows[3..]), "Change: cgroup v2. None of 2 files could be read.");
        assert_eq!(of(&rows[4..]), "Change: cgroup v2. The file could not be read.");
        rows[0].cut = true;
        assert_eq!(
            of(&rows[..1]),
            "Change: cgroup v2. 1 file was read. It is cut: its end is missing, and the rest was judged."
        );
        let cut = "1 of them is cut: its end is missing, and the rest was judged.";
        assert!(of(&rows[..2]).contains(cut), "{}", of(&rows[..2]));
    }

    #[test]
    fn a_screen_has_at_most_25_lines_of_80_columns() {
        let verdicts = [Verdict::Suffers, Verdict::Tight, Verdict::NotKnown, Verdict::Fine];
        let rows: Vec<Row> = Cause::ALL
            .iter()
            .flat_map(|cause| verdicts.map(|verdict| row(&"host-with-a-long-name".repeat(4), verdict, *cause)))
            .collect();
        let summary = Summary::of(&rows, "kernel 6.12, cgroup v2, vm.dirty_ratio=10".to_owned());
        let options = Options {
            width: 80,
            details: false,
            arguments: "--kernel 6.12 --set cgroup=v2",
            each_host: "-o hosts.parquet",
        };
        let shown = text(&summary, &rows, options);
        assert!(shown.lines().count() <= 25, "{} lines:\n{shown}", shown.lines().count());
        // A path is not broken, so that it can be pasted.
        assert!(shown.lines().all(|line| columns(line) <= 80 || line.trim().starts_with("host-with")), "{shown}");
        assert!(
            shown.starts_with(&format!("{} of {} hosts suffer", Cause::ALL.len(), Cause::ALL.len() * 4)),
            "{shown}"
        );
        let whole = text(&summary, &rows, Options { details: true, ..options });
        assert!(whole.lines().count() > rows.len() * 3);
    }
}
