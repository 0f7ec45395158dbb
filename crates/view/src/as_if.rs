// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets of now beside those under other conditions, one line per cgroup. Computes nothing.

use crate::layout::{columns, hanging, shortened};
use floodline_analysis::budget::{AsIfReport, AsIfRow};
use floodline_record::human;
use std::fmt::Write;

const HEADINGS: [&str; 5] = ["peak dirty", "limit now", "limit then", "slowed from", ""];

/// The table with a headline before it and notes behind it.
pub fn text(report: &AsIfReport, width: usize, bytes: bool) -> String {
    let width = width.clamp(60, 120);
    let mut out = String::new();
    hanging(&mut out, "", &format!("If {}:", report.as_if.replace('=', " = ")), width);
    hanging(&mut out, "", &report.headline, width);
    let _ = writeln!(out);
    let cells: Vec<[String; 5]> = report.rows.iter().map(|row| cells(row, bytes)).collect();
    let mut widths = HEADINGS.map(columns);
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    let gap = if width < 80 { " " } else { "  " };
    let taken: usize = widths.iter().map(|width| width + gap.len()).sum();
    let longest = report.rows.iter().map(|row| columns(&name(row, usize::MAX))).max().unwrap_or(0);
    let room = width.saturating_sub(taken).clamp(12, longest.max(12));
    let mut line = |name: &str, cells: &[String; 5]| {
        let mut text = format!("{name}{}", " ".repeat(room.saturating_sub(columns(name))));
        for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width.saturating_sub(columns(cell)));
            let _ = if at == 4 { write!(text, "{gap}{cell}{pad}") } else { write!(text, "{gap}{pad}{cell}") };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line("", &HEADINGS.map(str::to_owned));
    for (row, cells) in report.rows.iter().zip(&cells) {
        line(&name(row, room), cells);
    }
    let _ = writeln!(out);
    let mut key =
        "Peak dirty: the most unwritten data of any sample. Slowed from: above this, writers are paused.".to_owned();
    if report.rows.iter().any(|row| row.verdict == "over") {
        key.push_str(" STOPS: the peak is above the new limit, and writers stop until data is written.");
    }
    hanging(&mut out, "", &key, width);
    if report.hidden > 0 {
        let rows = human::plural(report.hidden, "cgroup is", "cgroups are");
        hanging(&mut out, "", &format!("{rows} not shown: add --all."), width);
    }
    for note in &report.notes {
        hanging(&mut out, "", note, width);
    }
    out
}

fn name(row: &AsIfRow, room: usize) -> String {
    match (&row.container, &row.cgroup) {
        (Some(name), _) | (None, Some(name)) => shortened(name, room),
        (None, None) => shortened("the whole machine", room),
    }
}

fn cells(row: &AsIfRow, bytes: bool) -> [String; 5] {
    let amount = |value: u64| if bytes { value.to_string() } else { human::bytes(value as f64) };
    let is_machine = row.cgroup.is_none();
    let known = |value: Option<u64>| value.map_or_else(|| if is_machine { "?" } else { "none" }.to_owned(), amount);
    let is_bound = row.then_thresh_bytes != row.then_thresh_bytes_min;
    let bound = |value: Option<u64>| match value {
        Some(value) if is_bound => format!("≤{}", amount(value)),
        value => known(value),
    };
    let verdict = match row.verdict {
        "over" => "STOPS",
        "slowed" => "slowed",
        "unknown" => "?",
        _ => "",
    };
    [
        row.peak_bytes.map_or_else(|| "?".to_owned(), amount),
        known(row.now_thresh_bytes),
        bound(row.then_thresh_bytes),
        bound(row.then_freerun_bytes),
        verdict.to_owned(),
    ]
}

/// One line of JSON, ended by a newline.
pub fn json(report: &AsIfReport) -> Result<String, serde_json::Error> {
    crate::json::line(report)
}
