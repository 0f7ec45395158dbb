// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets as a table, JSON or CSV. In the table every row has two lines, the name with what binds it
//! and then the numbers, so that a long path and exact amounts fit 80 columns. Computes nothing.

use crate::export::text_cell;
use crate::layout::{columns, hanging, shortened};
use anstyle::{AnsiColor, Style};
use floodline_analysis::budget::{BudgetReport, BudgetRow};
use floodline_record::human;
use std::fmt::Write;

/// How the table is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Columns; at least 60 are used.
    pub width: usize,
    /// Whether to colour rows that are over a limit.
    pub color: bool,
    /// Whole bytes instead of MiB.
    pub bytes: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { width: 80, color: false, bytes: false }
    }
}

const WIDTH_MIN: usize = 60;
const WIDTH_MAX: usize = 120;
const INDENT: &str = "  ";
const HEADINGS: [&str; 7] = ["dirty", "writeback", "backgr.", "freerun", "limit", "full", "share"];
/// What stands for a number that is not known.
const UNKNOWN: &str = "?";
/// Gaps that are listed.
const GAPS_MAX: usize = 5;
const OVER: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
const SLOWED: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));

/// The table with what has to be said beside it.
pub fn text(report: &BudgetReport, options: Options) -> String {
    let width = options.width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut out = String::new();
    let rows: Vec<BudgetRow> =
        report.rows.iter().map(|row| row.of_strict_limit().unwrap_or_else(|| row.clone())).collect();
    let cells: Vec<[String; 7]> = rows.iter().map(|row| numbers(row, options.bytes)).collect();
    let mut widths = HEADINGS.map(columns);
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    heading(&mut out, |_| "cgroup on device".to_owned(), "limit set by", width);
    line(&mut out, &HEADINGS.map(str::to_owned), &widths);
    for (row, cells) in rows.iter().zip(&cells) {
        let style = accent(row).filter(|_| options.color);
        if let Some(style) = style {
            let _ = write!(out, "{style}");
        }
        heading(&mut out, |room| name(row, room), &row.binding, width);
        line(&mut out, cells, &widths);
        if let Some(style) = style {
            // The reset belongs before the line's end, or a pager colours the next line.
            out.pop();
            let _ = writeln!(out, "{style:#}");
        }
    }
    beside(&mut out, report, width);
    out
}

fn accent(row: &BudgetRow) -> Option<Style> {
    let used = row.dirty_bytes?.saturating_add(row.writeback_bytes?);
    match (row.over_ratio, row.freerun_bytes_max) {
        (Some(ratio), _) if ratio >= 1.0 => Some(OVER),
        (_, Some(freerun)) if used > freerun => Some(SLOWED),
        _ => None,
    }
}

/// A name at the left and a word at the right of one line; the name gives way.
fn heading(out: &mut String, name: impl Fn(usize) -> String, word: &str, width: usize) {
    let name = name(width.saturating_sub(columns(word) + 2));
    let pad = width.saturating_sub(columns(&name) + columns(word));
    let _ = writeln!(out, "{}", format!("{name}{}{word}", " ".repeat(pad)).trim_end());
}

fn line(out: &mut String, cells: &[String; 7], widths: &[usize; 7]) {
    let mut text = INDENT.to_owned();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        text.push_str(&" ".repeat(width.saturating_sub(columns(cell)) + usize::from(at > 0)));
        text.push_str(cell);
    }
    let _ = writeln!(out, "{}", text.trim_end());
}

/// Minimum number of columns for a useful path.
const PATH_MIN: usize = 20;

/// Who and where in at most so many columns: the path gives way, then the rest.
fn name(row: &BudgetRow, room: usize) -> String {
    let on = row.device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
    let room = room.saturating_sub(columns(&on));
    let who = match (&row.container, &row.cgroup) {
        (Some(container), Some(cgroup)) => match room.saturating_sub(columns(container) + 3) {
            rest if rest >= PATH_MIN => format!("{container} ({})", shortened(cgroup, rest)),
            _ => shortened(container, room),
        },
        (_, Some(cgroup)) => shortened(cgroup, room),
        (_, None) => shortened("the whole machine", room),
    };
    format!("{who}{on}")
}

fn numbers(row: &BudgetRow, bytes: bool) -> [String; 7] {
    let amount = |value: u64| if bytes { value.to_string() } else { human::bytes(value as f64) };
    let known = |value: Option<u64>| value.map_or_else(|| UNKNOWN.to_owned(), amount);
    let bound = |exact: Option<u64>, most: Option<u64>| match (exact, most) {
        (Some(exact), _) => amount(exact),
        (None, Some(u64::MAX) | None) => UNKNOWN.to_owned(),
        (None, Some(most)) => format!("≤{}", amount(most)),
    };
    let at_least = if row.thresh_bytes.is_none() { "≥" } else { "" };
    let full = match row.over_ratio {
        Some(ratio) => format!("{at_least}{}", share(ratio)),
        // Something is dirty and nothing may be.
        None if row.thresh_bytes_max == Some(0) => "over".to_owned(),
        None => UNKNOWN.to_owned(),
    };
    let part = match (row.share, row.device.is_some()) {
        (Some(part), _) => share(part),
        (None, true) => UNKNOWN.to_owned(),
        (None, false) => String::new(),
    };
    [
        known(row.dirty_bytes),
        known(row.writeback_bytes),
        bound(row.bg_thresh_bytes, row.bg_thresh_bytes_max),
        bound(row.freerun_bytes, row.freerun_bytes_max),
        bound(row.thresh_bytes, row.thresh_bytes_max),
        full,
        part,
    ]
}

fn share(ratio: f64) -> String {
    if ratio >= 100.0 { format!("{ratio:.0}×") } else { human::percent(ratio) }
}

fn beside(out: &mut String, report: &BudgetReport, width: usize) {
    let mut first = true;
    let mut paragraph = |out: &mut String, lead: &str, text: &str| {
        if std::mem::take(&mut first) {
            out.push('\n');
        }
        hanging(out, lead, text, width);
    };
    if report.hidden > 0 {
        let rows = human::plural(report.hidden, "row is", "rows are");
        paragraph(out, "", &format!("{rows} not shown: add --all."));
    }
    for note in &report.notes {
        paragraph(out, "", note);
    }
    for evidence in &report.disagreements {
        let value = |value: &floodline_analysis::report::Value| match value {
            floodline_analysis::report::Value::Integer(value) => value.to_string(),
            floodline_analysis::report::Value::Decimal(value) => human::number(*value),
            floodline_analysis::report::Value::Text(value) => value.clone(),
        };
        let ours = evidence.threshold.as_ref().map_or_else(String::new, |ours| format!(", not {}", value(ours)));
        let text =
            format!("{}: {}{ours} {} ({})", evidence.name, value(&evidence.value), evidence.unit, evidence.source);
        paragraph(out, "not understood: ", &text);
    }
    for gap in report.gaps.iter().take(GAPS_MAX) {
        paragraph(out, "not read: ", &format!("{}: {}; lost: {}", gap.source, gap.cause, gap.lost));
    }
    if let Some(more) = report.gaps.len().checked_sub(GAPS_MAX).filter(|more| *more > 0) {
        paragraph(out, "not read: ", &format!("{more} more, listed by --format json"));
    }
}

/// One line of JSON, ended by a newline.
pub fn json(report: &BudgetReport) -> Result<String, serde_json::Error> {
    crate::json::line(report)
}

/// Columns of the CSV form: names of the JSON rows.
const CSV_COLUMNS: [&str; 21] = [
    "cgroup",
    "container",
    "device",
    "dirty_bytes",
    "writeback_bytes",
    "bg_thresh_bytes",
    "thresh_bytes",
    "freerun_bytes",
    "share",
    "over_ratio",
    "binding",
    "exact",
    "bg_thresh_bytes_max",
    "thresh_bytes_min",
    "thresh_bytes_max",
    "wb_dirty_bytes",
    "wb_thresh_bytes_max",
    "strictlimit",
    "wb_bg_thresh_bytes_max",
    "wb_freerun_bytes_max",
    "wb_over_ratio",
];

/// A header line and one line per row; a number that is not known is empty.
pub fn csv(report: &BudgetReport) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(CSV_COLUMNS)?;
    let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let text = |value: &Option<String>| value.as_deref().map(text_cell).unwrap_or_default();
    let decimal = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for row in &report.rows {
        writer.write_record([
            text(&row.cgroup),
            text(&row.container),
            text(&row.device),
            number(row.dirty_bytes),
            number(row.writeback_bytes),
            number(row.bg_thresh_bytes),
            number(row.thresh_bytes),
            number(row.freerun_bytes),
            decimal(row.share),
            decimal(row.over_ratio),
            row.binding.clone(),
            row.exact.to_string(),
            number(row.bg_thresh_bytes_max),
            number(row.thresh_bytes_min),
            number(row.thresh_bytes_max),
            number(row.wb_dirty_bytes),
            number(row.wb_thresh_bytes_max),
            row.is_strict.to_string(),
            number(row.wb_bg_thresh_bytes_max),
            number(row.wb_freerun_bytes_max),
            decimal(row.wb_over_ratio),
        ])?;
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    // All of it was text.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::budget::{Choice, Sort, budgets, rows};
    use floodline_record::facts::{CgroupMode, CgroupSetup};
    use floodline_record::sample::{CgroupLimitsRow, CgroupRow, WbRow};
    use floodline_record::units::{Bytes, Limit};
    use floodline_testkit::Fixture;

    const MIB: u64 = 1 << 20;

    fn report(fixture: Fixture, choice: Choice) -> BudgetReport {
        let window = fixture.window();
        rows(&window, &budgets(&window), choice)
    }

    fn app(row: &mut CgroupRow, file_mib: u64, dirty_kib: u64) {
        row.memory_current = Some(Bytes((file_mib + 60) * MIB));
        row.inactive_file = Some(Bytes(file_mib * MIB));
        row.active_file = Some(Bytes(0));
        row.file_dirty = Some(Bytes(dirty_kib << 10));
        row.file_writeback = Some(Bytes(0));
    }

    fn limited(row: &mut CgroupLimitsRow, mib: u64) {
        row.memory_max = Some(Limit(mib * MIB));
        row.memory_high = Some(Limit::MAX);
    }

    fn wb(row: &mut WbRow, thresh_kib: u64) {
        row.dirty_thresh = Some(Bytes(thresh_kib << 10));
        row.reclaimable = Some(Bytes(900 << 10));
        row.writeback = Some(Bytes(0));
    }

    /// Three containers of a host with 100 MiB of dirty pages allowed.
    fn containers() -> Fixture {
        const POD: &str = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5f8a0f5e_0c5b_4e35_a0a7_1f6c0f0f1a2b.slice/\
            cri-containerd-8d7c0123456789abcdef0123456789abcdef0123456789abcdef0123456789ab.scope";
        Fixture::healthy()
            .settings((0, 100 * MIB, 0, 50 * MIB))
            .cgroup("/system.slice/redis.service", |_, row| app(row, 192, 2804))
            .limits("/system.slice/redis.service", |_, row| limited(row, 768))
            .cgroup(POD, |_, row| app(row, 100, 20))
            .limits(POD, |_, row| limited(row, 256))
            .cgroup("/idle.slice", |_, row| app(row, 1, 0))
            .limits("/idle.slice", |_, row| limited(row, 64))
            .wb("8:0", 0, |_, row| wb(row, 1))
    }

    #[test]
    fn the_table_fits_80_columns() {
        for bytes in [false, true] {
            for sort in [Sort::Over, Sort::Name] {
                let text =
                    text(&report(containers(), Choice { all: true, sort }), Options { bytes, ..Options::default() });
                assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
            }
        }
    }

    #[test]
    fn the_fullest_budgets_come_first_and_the_rest_is_counted() {
        insta::assert_snapshot!(text(&report(containers(), Choice::default()), Options::default()));
    }

    #[test]
    fn exact_bytes_are_whole_numbers() {
        let text = text(&report(containers(), Choice::default()), Options { bytes: true, ..Options::default() });
        assert!(text.contains(" 5255168 "), "{text}");
    }

    #[test]
    fn version_1_says_plainly_that_no_limit_exists() {
        let v1 = Fixture::healthy()
            .facts(|facts| facts.cgroups = CgroupSetup { mode: CgroupMode::V1, ..CgroupSetup::default() });
        insta::assert_snapshot!(text(&report(v1, Choice::default()), Options::default()));
    }

    #[test]
    fn a_strict_limit_is_the_limit_that_is_shown() {
        let mut report = report(containers(), Choice { all: true, ..Choice::default() });
        let row = report.rows.iter_mut().find(|row| row.device.is_some()).unwrap();
        row.is_strict = true;
        (row.thresh_bytes_min, row.thresh_bytes_max) = (Some(800 * MIB), Some(800 * MIB));
        (row.bg_thresh_bytes_min, row.bg_thresh_bytes_max) = (Some(400 * MIB), Some(400 * MIB));
        (row.wb_thresh_bytes_min, row.wb_thresh_bytes_max) = (Some(4 * MIB), Some(4 * MIB));
        (row.wb_dirty_bytes, row.wb_writeback_bytes) = (Some(2 * MIB), Some(MIB));
        row.divide();
        let shown = numbers(&row.of_strict_limit().unwrap(), false);
        assert_eq!(&shown[..6], ["2.00 MiB", "1.00 MiB", "2.00 MiB", "3.00 MiB", "4.00 MiB", "75 %"]);
        row.is_strict = false;
        assert_eq!(row.of_strict_limit(), None);
        row.is_strict = true;
        // Programs get the same numbers, beside those of the domain.
        let json: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
        let row = json["rows"].as_array().unwrap().iter().find(|row| row["strictlimit"] == true).unwrap();
        let parts =
            ["wb_bg_thresh_bytes_max", "wb_freerun_bytes_max", "wb_thresh_bytes_max"].map(|name| row[name].as_u64());
        assert_eq!(parts, [Some(2 * MIB), Some(3 * MIB), Some(4 * MIB)]);
        assert_eq!((row["thresh_bytes_max"].as_u64(), row["wb_over_ratio"].as_f64()), (Some(800 * MIB), Some(0.75)));
        let csv = csv(&report).unwrap();
        assert!(csv.lines().any(|line| line.ends_with(",true,2097152,3145728,0.75")), "{csv}");
    }

    #[test]
    fn over_the_limit_is_red_and_only_where_colour_is_wanted() {
        let over = || containers().cgroup("/system.slice/redis.service", |_, row| app(row, 192, 9000));
        let colored = |color| text(&report(over(), Choice::default()), Options { color, ..Options::default() });
        assert!(!colored(false).contains('\u{1b}'));
        assert!(colored(true).contains("\u{1b}[1m\u{1b}[31m/system.slice/redis.service"), "{}", colored(true));
    }

    #[test]
    fn programs_get_the_published_fields() {
        let report = report(containers(), Choice::default());
        let json: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
        assert_eq!(json["schema"], "floodline.budget/1");
        let row = json["rows"][1].as_object().unwrap();
        let published = [
            "cgroup",
            "container",
            "device",
            "dirty_bytes",
            "writeback_bytes",
            "bg_thresh_bytes",
            "thresh_bytes",
            "freerun_bytes",
            "share",
            "over_ratio",
            "binding",
            "exact",
        ];
        assert!(published.iter().all(|field| row.contains_key(*field)), "{row:?}");
        let csv = csv(&report).unwrap();
        assert!(csv.starts_with("cgroup,container,device,dirty_bytes,"), "{csv}");
        assert_eq!(csv.lines().count(), 1 + report.rows.len());
        assert!(CSV_COLUMNS.iter().all(|column| row.contains_key(*column)));
    }

    #[test]
    fn long_names_lose_their_middle() {
        let check = |name: &str, width: usize, expect: &str| assert_eq!(shortened(name, width), expect);
        check("/system.slice/redis.service", 40, "/system.slice/redis.service");
        check("/a/very/long/way/down/to/redis.service", 24, "/a/very/l…/redis.service");
        check("/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.service", 16, "/aaaaa…a.service");
        check("abc", 1, "…");
        check("日本語日本語日本語", 8, "日…本語");
    }
}
