// SPDX-License-Identifier: MIT OR Apache-2.0
//! A prediction as one screen: a sentence, the table of figures now and then, findings that appear and vanish, and how far
//! to trust it. Computes nothing.

use crate::layout::{Column, columns, hanging, row as table_row, shortened};
use floodline_analysis::prediction::{
    Doubt, Doubtful, Limit, LimitOf, Limits, MISS_MAX, Prediction, Row, Seen, Sure, shown_value,
};
use floodline_analysis::report::Severity;
use floodline_record::human;
use std::fmt::Write;

/// Rows of programs that the short screen shows.
const PROGRAMS_MAX: usize = 3;
/// Columns of a label.
const LABEL_MAX: usize = 30;

/// One screen, or with `details` all of it. `unknown` is what the twin cannot know.
pub fn text(prediction: &Prediction, unknown: &[String], width: usize, details: bool) -> String {
    let width = width.clamp(60, 120);
    let mut out = String::new();
    hanging(&mut out, "", &prediction.headline, width);
    let _ = writeln!(out);
    let tested = match prediction.runs {
        0 => "Back-test: none. The recording has no twin.".to_owned(),
        _ => back_test(prediction.back_test_error, prediction.missed.len()),
    };
    hanging(&mut out, "", &tested, width);
    let _ = writeln!(out);
    let (shown, unchanged) = rows(prediction, details);
    let label = |row: &Row| shortened(&row.label, LABEL_MAX);
    let label_width = shown.iter().map(|row| columns(&label(row))).max().unwrap_or(0).max(6);
    let is_any = !shown.is_empty();
    let set = [
        Column { width: label_width, right: false },
        Column { width: 11, right: true },
        Column { width: 11, right: true },
        Column { width: width.saturating_sub(label_width + 28).max(20), right: false },
    ];
    if is_any {
        table_row(&mut out, 0, &set, &["", "now", "then", "90 % interval"]);
    }
    for &row in &shown {
        // What was not measured is the twin's own.
        let about = if row.is_measured { "" } else { "~" };
        let now = format!("{about}{}", shown_value(row.unit, row.now));
        let (then, interval) = match row.doubt {
            Some(Doubt::BackTest) => {
                let off = row.off_share.map_or_else(String::new, off);
                // Both estimates of the twin change in the same direction.
                let roughly = match (row.worsens_roughly(), row.improves_roughly()) {
                    (true, _) => "; maybe worse",
                    (_, true) => "; maybe better",
                    _ => "",
                };
                ("?".to_owned(), format!("not predicted: twin off by {off}{roughly}"))
            }
            Some(Doubt::Horizon) => ("?".to_owned(), "not predicted: written after the end".to_owned()),
            Some(Doubt::Demand | Doubt::Unmeasured) => ("?".to_owned(), "unclear without --trace on".to_owned()),
            Some(Doubt::Unwritten) => ("?".to_owned(), "not predicted: twin misses data at risk".to_owned()),
            None => {
                let (low, high) = (shown_value(row.unit, row.low), shown_value(row.unit, row.high));
                let mark = match (row.improves(), row.worsens(), row.is_certain()) {
                    (true, _, true) => ", better",
                    (true, _, false) => ", maybe better",
                    (_, true, true) => ", WORSE",
                    (_, true, false) => ", maybe worse",
                    _ => "",
                };
                (shown_value(row.unit, row.then), format!("{low} to {high}{mark}"))
            }
        };
        table_row(&mut out, 0, &set, &[&label(row), &now, &then, &interval]);
    }
    if !unchanged.is_empty() {
        hanging(&mut out, "Unchanged: ", &format!("{}.", unchanged.join(", ")), width);
    }
    if shown.iter().any(|row| !row.is_measured) {
        let _ = writeln!(out, "~ from the twin: the recording does not have this figure.");
    }
    if let Some(limits) = &prediction.limits {
        hanging(&mut out, "Cgroups   ", &limits_of_cgroups(limits, details), width);
    }
    let _ = writeln!(out);
    let is_certain = |seen: &&Seen| prediction.sure(seen.rule) == Sure::Certain;
    let certain = |lists: &[&Vec<Seen>]| -> Vec<Seen> {
        lists.iter().flat_map(|list| list.iter()).filter(is_certain).cloned().collect()
    };
    let mut list = |lead, seen: &[Seen]| findings(&mut out, lead, seen, prediction, width);
    list("Vanish    ", &certain(&[&prediction.vanish]));
    list("Appear    ", &certain(&[&prediction.appear]));
    list("Stay      ", &certain(&[&prediction.stay, &prediction.lasting]));
    let open = prediction.doubtful.iter().filter(|one| !one.is_likely);
    let open = open.map(|one| Seen { rule: one.rule, severity: one.severity });
    let (had, new): (Vec<Seen>, Vec<Seen>) = open.partition(|seen| prediction.has_before(seen.rule));
    if let Some(likely) = likely(prediction) {
        hanging(&mut out, "Likely    ", &likely, width);
    }
    let mut list = |lead, seen: &[Seen]| findings(&mut out, lead, seen, prediction, width);
    list("May stay  ", &had);
    list("Maybe new ", &new);
    if prediction.no_other.is_some_and(|one| !one.is_likely) {
        hanging(&mut out, "Maybe new ", "other findings", width);
    }
    let change: Vec<String> =
        prediction.settings.iter().map(|setting| format!("{}={}", setting.key, setting.value)).collect();
    hanging(&mut out, "Change    ", &change.join(", "), width);
    let shown_notes = if details { prediction.notes.len() } else { 2 };
    for note in prediction.notes.iter().take(shown_notes) {
        hanging(&mut out, "Note      ", note, width);
    }
    for one in &prediction.simplified {
        hanging(&mut out, "Model     ", if details { one } else { first_sentence(one) }, width);
    }
    if details {
        for one in unknown {
            hanging(&mut out, "Unknown   ", one, width);
        }
        let _ = writeln!(out, "{} of the model.", human::plural(prediction.runs as u64, "run", "runs"));
    } else {
        let _ = writeln!(out, "For more figures and the limits of the twin, add --details.");
    }
    out
}

/// Deviation from which its number tells nothing more.
const OFF_MOST: f64 = 10.0;

/// By how much the twin misses a figure. A deviation that would be shown as the allowed one has a digit more.
fn off(share: f64) -> String {
    let shown = human::percent(share);
    match shown == human::percent(MISS_MAX) {
        _ if share > OFF_MOST => format!("more than {OFF_MOST} times"),
        true => format!("{:.1} %", 100.0 * share),
        false => shown,
    }
}

/// Cgroups that the short screen names.
const NAMED: usize = 3;
/// Part of its limit that a cgroup must use before the change to be named on the short screen.
const USED: f64 = 0.1;

/// The dirty limits of cgroups now and then: the median, and those of the cgroups that use most of theirs. The smallest one is a figure
/// of the table.
fn limits_of_cgroups(limits: &Limits, details: bool) -> String {
    let change = |limit: &Limit| {
        let shown = |bytes: f64| if bytes.is_finite() { human::bytes(bytes) } else { "none".to_owned() };
        let (now, then) = (shown(limit.now_bytes), shown(limit.then_bytes));
        if now == then { now } else { format!("{now} → {then}") }
    };
    let named = |one: &LimitOf| {
        let used = one.used_share.map(|share| format!(" ({} used)", human::percent(share)));
        format!("{} {}{}", one.cgroup, change(&one.limit), used.unwrap_or_default())
    };
    let count = human::plural(limits.cgroups as u64, "cgroup", "cgroups");
    let shown = if details { limits.starved.len() } else { NAMED };
    // A cgroup that is far from its limit has nothing to tell on the short screen.
    let is_told = |one: &&LimitOf| details || one.used_share.map_or(limits.compared().is_none(), |share| share >= USED);
    let fullest: Vec<String> = limits.starved.iter().filter(is_told).take(shown).map(named).collect();
    let which = if limits.compared().is_some() { "Fullest" } else { "Smallest" };
    let fullest = if fullest.is_empty() { String::new() } else { format!(". {which}: {}", fullest.join(", ")) };
    format!("limits of {count}: smallest {}, median {}{fullest}", change(&limits.smallest), change(&limits.median))
}

/// The severity of a finding after the change, after the present one where that is another.
fn severity(prediction: &Prediction, rule: &str, then: Severity) -> String {
    match prediction.severity_now(rule).filter(|now| *now != then) {
        Some(now) => format!("{} → {}", now.name(), then.name()),
        None => then.name().to_owned(),
    }
}

/// The first sentence of a text.
pub(crate) fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

/// Findings whose answer is likely, each with how many such predictions were right, and whether others appear. `None` where there is none.
fn likely(prediction: &Prediction) -> Option<String> {
    let said = |(at, one): (usize, &Doubtful)| {
        let what = match (prediction.has_before(one.rule), one.is_there) {
            (true, true) => "stays",
            (true, false) => "vanishes",
            (false, true) => "appears",
            (false, false) => "does not appear",
        };
        let told = if at == 0 { " such predictions were right" } else { "" };
        let severity = match one.is_there {
            true => severity(prediction, one.rule, one.severity),
            false => one.severity.name().to_owned(),
        };
        format!("{} ({severity}) {what} ({} of {}{told})", one.rule, one.right, one.answers)
    };
    let mut all: Vec<String> = prediction.doubtful.iter().filter(|one| one.is_likely).enumerate().map(said).collect();
    let told = if all.is_empty() { " such predictions were right" } else { "" };
    let no_other = prediction.no_other.filter(|one| one.is_likely);
    all.extend(no_other.map(|one| format!("no other finding appears ({} of {}{told})", one.right, one.answers)));
    (!all.is_empty()).then(|| all.join(", "))
}

/// How far the unchanged twin is off: by its median error, and the number of figures that it misses.
pub(crate) fn back_test(error: Option<f64>, missed: usize) -> String {
    let Some(error) = error else {
        return "Back-test: the recording has no figure to compare the twin with.".to_owned();
    };
    let off = format!("Back-test: the unchanged twin differs from the recording by {} (median)", human::percent(error));
    match missed {
        0 => format!("{off}."),
        missed => format!("{off}, and by more than 25 % in {}.", human::plural(missed as u64, "figure", "figures")),
    }
}

/// Figures of the screen and labels of those left out. Waits for fsync come first and always. Then what changes, then
/// what cannot be told. With `details` the unchanged ones follow; else they are only named.
fn rows(prediction: &Prediction, details: bool) -> (Vec<&Row>, Vec<String>) {
    let mut rows = chosen(prediction, details);
    let rank = |row: &Row| match () {
        () if row.figure.starts_with("durable.") => 0,
        () if row.improves() || row.worsens() => 1,
        () if row.doubt.is_some() => 2,
        () => 3,
    };
    rows.sort_by_key(|row| rank(row));
    let left_out = match details {
        true => rows.len(),
        false => rows.iter().position(|row| rank(row) == 3).unwrap_or(rows.len()),
    };
    let unchanged = rows.split_off(left_out).into_iter().map(|row| shortened(&row.label, LABEL_MAX)).collect();
    (rows, unchanged)
}

/// Figures of the machine, and the programs that change most.
fn chosen(prediction: &Prediction, details: bool) -> Vec<&Row> {
    let is_program = |row: &&Row| row.figure.starts_with("program ");
    let mut rows: Vec<&Row> = prediction.rows.iter().filter(|row| !is_program(row)).collect();
    let mut programs: Vec<&Row> = prediction.rows.iter().filter(is_program).collect();
    let change = |row: &Row| (row.then - row.now).abs();
    programs.sort_by(|a, b| change(b).total_cmp(&change(a)).then_with(|| b.now.total_cmp(&a.now)));
    programs.truncate(if details { usize::MAX } else { PROGRAMS_MAX });
    rows.extend(programs);
    rows
}

/// Lists findings with their severity. Those that hurt by one figure are grouped, followed by the figure before and after the change.
fn findings(out: &mut String, lead: &str, seen: &[Seen], prediction: &Prediction, width: usize) {
    if seen.is_empty() {
        return;
    }
    // A figure that moves against the finding does not explain it.
    let fits = |row: &&Row| match lead.trim_end() {
        "Vanish" => row.improves(),
        "Appear" | "Maybe new" => !row.improves(),
        _ => true,
    };
    let figure = |seen: &Seen| prediction.hurt_by(seen.rule).filter(|row| row.doubt.is_none()).filter(fits);
    let mut groups: Vec<(Option<&Row>, Vec<String>)> = Vec::new();
    for one in seen {
        let severity = match lead.trim_end() {
            "Vanish" => one.severity.name().to_owned(),
            _ => severity(prediction, one.rule, one.severity),
        };
        let (row, name) = (figure(one), format!("{} ({severity})", one.rule));
        match groups.iter_mut().find(|(of, _)| of.map(|of| &of.figure) == row.map(|row| &row.figure)) {
            Some((_, names)) => names.push(name),
            None => groups.push((row, vec![name])),
        }
    }
    let text = |(row, names): &(Option<&Row>, Vec<String>)| match row {
        Some(row) => format!("{}: {}", names.join(", "), row.sentence()),
        None => names.join(", "),
    };
    hanging(out, lead, &groups.iter().map(text).collect::<Vec<_>>().join("; "), width);
}

/// A prediction with what the text has besides it.
#[derive(serde::Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    prediction: &'a Prediction,
    /// What the change does, in a word.
    verdict: &'static str,
    /// Why there is no verdict; absent where there is one.
    no_verdict: Option<String>,
    /// What the twin cannot know.
    unknown: &'a [String],
}

/// One line of JSON, ended by a newline. `unknown` is what the twin cannot know.
pub fn json(prediction: &Prediction, unknown: &[String]) -> Result<String, serde_json::Error> {
    let (verdict, no_verdict) = (prediction.answer(), prediction.no_verdict(&prediction.found()));
    crate::json::line(&Told { prediction, verdict, no_verdict, unknown })
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::prediction::Setting;
    use floodline_record::version::KernelVersion;

    fn row(figure: &str, label: &str, unit: &'static str, now: f64, then: f64) -> Row {
        Row { least: 0.02, ..Row::new(figure, label, unit, now, then) }
    }

    fn prediction(error: Option<f64>, rows: Vec<Row>) -> Prediction {
        Prediction {
            headline: "It helps.".to_owned(),
            back_test_error: error,
            rows,
            runs: 4,
            ..Prediction::new(vec![Setting::new("vm.dirty_bytes", "64M")], KernelVersion::new(6, 12, 0))
        }
    }

    #[test]
    fn limits_of_cgroups_and_the_severity_that_a_finding_had_are_said() {
        let limit = |now_bytes, then_bytes| Limit { now_bytes, then_bytes };
        let of = |cgroup: &str, now, then| LimitOf {
            cgroup: cgroup.to_owned(),
            limit: limit(now, then),
            used_share: Some(if cgroup == "/b" { 0.02 } else { 0.9 }),
        };
        let limits = Limits {
            cgroups: 9,
            smallest: limit(4096.0, 8192.0),
            median: limit(16384.0, 16384.0),
            starved: vec![of("/a", 4096.0, 8192.0), of("/b", 8192.0, 16384.0)],
        };
        let seen = |rule, severity| Seen { rule, severity };
        let told = Prediction {
            limits: Some(limits),
            recorded: vec![seen("dirty-cliff", Severity::Critical), seen("foreign-inode", Severity::Warning)],
            stay: vec![seen("dirty-cliff", Severity::Warning), seen("foreign-inode", Severity::Warning)],
            ..prediction(Some(0.1), vec![row("stall_seconds", "waits of all tasks", "seconds", 3.0, 1.0)])
        };
        let text = text(&told, &[], 200, false);
        let of_cgroups = "Cgroups   limits of 9 cgroups: smallest 4.00 KiB → 8.00 KiB, median 16.0 KiB. Fullest:";
        assert!(text.contains(of_cgroups), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("/a 4.00 KiB → 8.00 KiB (90 % used)") && !words.contains("/b"), "{text}");
        assert!(
            text.contains("dirty-cliff (critical → warning)") && text.contains("foreign-inode (warning)"),
            "{text}"
        );
    }

    #[test]
    fn limits_that_a_change_brings_are_shown_with_the_smallest_ones() {
        use floodline_analysis::prediction::{Limit, LimitOf, Limits};
        let of = |cgroup: &str, then_bytes: f64| LimitOf {
            cgroup: cgroup.to_owned(),
            limit: Limit { now_bytes: f64::INFINITY, then_bytes },
            used_share: None,
        };
        let limits = Limits::of(vec![of("/b", 8192.0), of("/a", 4096.0)]);
        let told = text(&Prediction { limits, ..prediction(Some(0.1), Vec::new()) }, &[], 200, false);
        let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
        let all = "limits of 2 cgroups: smallest none → 4.00 KiB, median none → 4.00 KiB.";
        let first = "Smallest: /a none → 4.00 KiB, /b none → 8.00 KiB";
        assert!(words.contains(&format!("Cgroups {all} {first}")), "{told}");
    }

    #[test]
    fn a_likely_answer_is_said_with_its_odds_and_an_open_one_is_not() {
        use floodline_analysis::prediction::Reason;
        use floodline_analysis::report::Severity;
        let seen = |rule| Seen { rule, severity: Severity::Warning };
        let doubtful = |rule, is_there, odds| Doubtful::new(&seen(rule), is_there, Reason::Runs, odds);
        let prediction = Prediction {
            vanish: vec![seen("dirty-cliff")],
            doubtful: vec![
                doubtful("dirty-cliff", false, (9, 10)),
                doubtful("fsync-behind-writeback", false, (3, 4)),
                doubtful("dominant-writer", true, (2, 4)),
            ],
            ..prediction(Some(0.1), Vec::new())
        };
        let told = text(&prediction, &[], 120, false);
        let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains(
                "Likely dirty-cliff (warning) vanishes (9 of 10 such predictions were right), fsync-behind-writeback (warning) \
                 does not appear (3 of 4) Maybe new dominant-writer (warning)"
            ),
            "{told}"
        );
        assert!(!told.contains("Vanish") && !told.contains("May stay"), "{told}");
    }

    #[test]
    fn a_twin_that_misses_its_recording_leaves_findings_open_that_are_not_named() {
        use floodline_analysis::prediction::NoOther;
        let told = |no_other| text(&Prediction { no_other, ..prediction(Some(0.4), Vec::new()) }, &[], 80, false);
        let likely = told(Some(NoOther::new(9, 10)));
        assert!(
            likely.contains("Likely    no other finding appears (9 of 10 such predictions were right)\n"),
            "{likely}"
        );
        assert!(told(Some(NoOther::new(5, 10))).contains("Maybe new other findings\n"));
        assert!(!told(None).contains("other finding"));
    }

    #[test]
    fn what_the_model_leaves_out_is_named_and_its_effect_is_a_detail() {
        let simplified = vec!["Swap is not simulated. Budgets may be larger.".to_owned()];
        let told = |details| {
            text(&Prediction { simplified: simplified.clone(), ..prediction(Some(0.1), Vec::new()) }, &[], 80, details)
        };
        assert!(told(false).contains("Model     Swap is not simulated.\n"), "{}", told(false));
        assert!(told(true).contains("Model     Swap is not simulated. Budgets may be larger.\n"), "{}", told(true));
    }

    #[test]
    fn a_figure_that_moves_against_a_finding_is_not_its_reason() {
        use floodline_analysis::report::Severity;
        let told = |then| {
            let rows = vec![row("durable.longest_wait_seconds", "longest fsync", "seconds", 2.05, then)];
            let vanish = vec![Seen { rule: "dirty-cliff", severity: Severity::Critical }];
            text(&Prediction { vanish, ..prediction(Some(0.1), rows) }, &[], 80, false)
        };
        assert!(told(2.5).contains("Vanish    dirty-cliff (critical)\n"), "{}", told(2.5));
        assert!(told(0.5).contains("Vanish    dirty-cliff (critical): longest fsync 2.05 s"), "{}", told(0.5));
    }

    #[test]
    fn the_json_form_has_the_verdict_and_what_the_twin_cannot_know() {
        let rows = vec![row("durable.longest_wait_seconds", "longest fsync", "seconds", 2.0, 0.5)];
        let told = json(&prediction(Some(0.1), rows), &["Load peaks.".to_owned()]).unwrap();
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["verdict"], &told["no_verdict"]), (&"helps".into(), &serde_json::Value::Null));
        assert_eq!((&told["unknown"][0], &told["schema"]), (&"Load peaks.".into(), &"floodline.predict/2".into()));
    }

    #[test]
    fn fsync_leads_then_what_changes_and_the_rest_is_named() {
        let rows = vec![
            row("durable.longest_wait_seconds", "longest fsync", "seconds", 2.0, 2.0),
            row("host.dirtied_bytes", "dirtied", "bytes", 5e8, 5e8),
            Row { is_measured: false, ..row("devices.written_bytes", "written to disks", "bytes", 4e8, 8e8) },
        ];
        let prediction = prediction(Some(0.1), rows);
        let short = text(&prediction, &[], 80, false);
        let place = |text: &str, word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
        assert!(place(&short, "longest fsync") < place(&short, "written to disks"), "{short}");
        assert!(short.contains("Unchanged: dirtied.\n"), "{short}");
        assert!(short.contains("~ from the twin: the recording does not have this figure."), "{short}");
        let whole = text(&prediction, &[], 80, true);
        assert!(place(&whole, "written to disks") < place(&whole, "dirtied"), "{whole}");
        assert!(!whole.contains("Unchanged"), "{whole}");
    }

    #[test]
    fn a_deviation_is_told_as_far_as_it_tells_anything() {
        assert_eq!([off(0.4), off(118.99), off(0.251), off(10.0)], ["40 %", "more than 10 times", "25.1 %", "1000 %"]);
    }
}
