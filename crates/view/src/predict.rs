// SPDX-License-Identifier: MIT OR Apache-2.0
//! A prediction as one screen: a sentence, the table of figures now and then, findings that appear and vanish, and how far
//! to trust it. Computes nothing.

use crate::layout::{Column, columns, hanging, row as table_row, shortened};
use floodline_analysis::prediction::{Doubt, Prediction, Row, Seen, shown_value};
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
    hanging(&mut out, "", &back_test(prediction), width);
    let _ = writeln!(out);
    let shown = rows(prediction, details);
    let label = |row: &Row| shortened(&row.label, LABEL_MAX);
    let label_width = shown.iter().map(|row| columns(&label(row))).max().unwrap_or(0).max(6);
    let set = [
        Column { width: label_width, right: false },
        Column { width: 11, right: true },
        Column { width: 11, right: true },
        Column { width: width.saturating_sub(label_width + 28).max(20), right: false },
    ];
    table_row(&mut out, 0, &set, &["", "now", "then", "90 % interval"]);
    for row in shown {
        // What was not measured is the twin's own.
        let about = if row.is_measured { "" } else { "~" };
        let now = format!("{about}{}", shown_value(row.unit, row.now));
        let (then, interval) = match row.doubt {
            Some(Doubt::BackTest) => {
                let off = row.off_share.map_or_else(String::new, human::percent);
                ("?".to_owned(), format!("not predictable: off {off}"))
            }
            Some(Doubt::Demand) => ("?".to_owned(), "unclear without --trace on".to_owned()),
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
    let _ = writeln!(out);
    findings(&mut out, "Vanish    ", &prediction.vanish, width);
    findings(&mut out, "Appear    ", &prediction.appear, width);
    findings(&mut out, "Stay      ", &prediction.stay, width);
    let change: Vec<String> =
        prediction.settings.iter().map(|setting| format!("{}={}", setting.key, setting.value)).collect();
    hanging(&mut out, "Change    ", &change.join(", "), width);
    let shown_notes = if details { prediction.notes.len() } else { 2 };
    for note in prediction.notes.iter().take(shown_notes) {
        hanging(&mut out, "Note      ", note, width);
    }
    if details {
        for one in unknown {
            hanging(&mut out, "Unknown   ", one, width);
        }
        let _ = writeln!(out, "{} of the model.", human::plural(prediction.runs as u64, "run", "runs"));
    } else {
        let _ = writeln!(out, "More figures and what a twin cannot know: add --details");
    }
    out
}

fn back_test(prediction: &Prediction) -> String {
    let error = match prediction.back_test_error {
        Some(error) => {
            format!("Back-test: the unchanged twin misses the recording by {} (median)", human::percent(error))
        }
        None => "Back-test: the recording has no figure to hold the twin against".to_owned(),
    };
    match prediction.missed.len() {
        0 => format!("{error}."),
        missed => format!("{error}; {} by more than 25 %.", human::plural(missed as u64, "figure", "figures")),
    }
}

/// Figures of the short screen: those of the machine, and the programs that change most.
fn rows(prediction: &Prediction, details: bool) -> Vec<&Row> {
    let is_program = |row: &&Row| row.figure.starts_with("program ");
    let mut rows: Vec<&Row> = prediction.rows.iter().filter(|row| !is_program(row)).collect();
    let mut programs: Vec<&Row> = prediction.rows.iter().filter(is_program).collect();
    let change = |row: &Row| (row.then - row.now).abs();
    programs.sort_by(|a, b| change(b).total_cmp(&change(a)).then_with(|| b.now.total_cmp(&a.now)));
    programs.truncate(if details { usize::MAX } else { PROGRAMS_MAX });
    rows.extend(programs);
    rows
}

fn findings(out: &mut String, lead: &str, seen: &[Seen], width: usize) {
    if seen.is_empty() {
        return;
    }
    let names: Vec<String> = seen.iter().map(|seen| format!("{} ({})", seen.rule, seen.severity.name())).collect();
    hanging(out, lead, &names.join(", "), width);
}

/// One line of JSON, ended by a newline.
pub fn json(prediction: &Prediction) -> Result<String, serde_json::Error> {
    crate::json::line(prediction)
}
