// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advice as one screen: a sentence, the trade-off between data at risk and stalls as a plot, and the plan. Computes
//! nothing but where a point of the plot lies.

use crate::layout::{Column, columns, command, hanging, row as table_row};
use crate::predict::first_sentence;
use floodline_analysis::advice::{Advice, Tried};
use floodline_record::human;
use std::fmt::Write;

/// Rows of the plot.
const HEIGHT: usize = 7;
/// Columns of the plot.
const PLOT: usize = 56;
/// Rows of the short table.
const ROWS_MAX: usize = 4;

/// One screen, or with `details` every candidate.
pub fn text(advice: &Advice, width: usize, details: bool) -> String {
    let width = width.clamp(60, 120);
    let mut out = String::new();
    hanging(&mut out, "", &advice.headline, width);
    let _ = writeln!(out);
    // A twin that differs from the host does not show the host's trade-off.
    if advice.no_verdict.is_none() || details {
        plot(&mut out, advice);
        let _ = writeln!(out);
        table(&mut out, advice, width, details);
    }
    if let Some(plan) = &advice.plan {
        let _ = writeln!(out);
        for (lead, commands) in [("Do now", &advice.commands), ("Undo", &advice.undo_commands)] {
            if !commands.is_empty() {
                let _ = writeln!(out, "{lead}");
                commands.iter().for_each(|one| command(&mut out, 2, one, width));
            }
        }
        for boot in &plan.boot {
            let said = format!("{} sets {} = {}.", boot.by, boot.knob, boot.value);
            hanging(&mut out, "At boot ", &said, width);
        }
        if let Some(ramp) = &plan.ramp {
            crate::ramp::text(&mut out, ramp, width);
        }
        if !plan.evidence.is_empty() {
            let seen = |one: &String| one.trim_end_matches(" in the recording").replacen(": ", " ", 1);
            let seen: Vec<String> = plan.evidence.iter().map(seen).collect();
            let said = format!(
                "The figures above are those of the twin, scaled to the recording where it reproduces them. In the recording: {}.",
                seen.join("; ")
            );
            hanging(&mut out, "Note   ", &said, width);
        }
        if let Some(why) = &plan.arithmetic_only {
            hanging(&mut out, "Note   ", &format!("Take the figures as a direction only: {why}."), width);
        }
    }
    for note in &advice.notes {
        hanging(&mut out, "Note   ", note, width);
    }
    if let Some(prediction) = &advice.prediction {
        for note in prediction.notes.iter().take(if details { usize::MAX } else { 1 }) {
            hanging(&mut out, "Note   ", note, width);
        }
    }
    for one in &advice.simplified {
        hanging(&mut out, "Model  ", if details { one } else { first_sentence(one) }, width);
    }
    let more = if details { "" } else { " All of them: add --details." };
    let tried = match (&advice.no_verdict, advice.tried.len()) {
        (Some(_), 1) => "The search for other settings was left out.".to_owned(),
        (_, many) => format!("{} tried on the twin.{more}", human::plural(many as u64, "setting", "settings")),
    };
    let _ = writeln!(out, "{tried}");
    out
}

/// Data at risk to the right, stalled seconds upwards: `*` chosen, `@` as it is, `o` on the curve, `.` others.
fn plot(out: &mut String, advice: &Advice) {
    let log = |bytes: f64| bytes.max(4096.0).log2();
    let xs = || advice.tried.iter().map(|one| log(one.at_risk_bytes));
    let (left, right) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    let top = advice.tried.iter().map(|one| one.stall_seconds).fold(0.0, f64::max);
    if advice.tried.is_empty() || top <= 0.0 {
        hanging(out, "", "On the twin, no task waits with any of the settings. There is nothing to trade.", 80);
        return;
    }
    let mut grid = vec![vec![' '; PLOT]; HEIGHT];
    let place = |one: &Tried| {
        let across = if right > left { (log(one.at_risk_bytes) - left) / (right - left) } else { 0.0 };
        let down = 1.0 - one.stall_seconds / top;
        let at = |share: f64, cells: usize| ((share * (cells - 1) as f64).round() as usize).min(cells - 1);
        (at(down, HEIGHT), at(across, PLOT))
    };
    let mut draw = |mark: char, which: &dyn Fn(usize, &Tried) -> bool| {
        for (at, one) in advice.tried.iter().enumerate().filter(|(at, one)| which(*at, one)) {
            let _ = at;
            let (y, x) = place(one);
            if let Some(cell) = grid.get_mut(y).and_then(|row| row.get_mut(x)) {
                *cell = mark;
            }
        }
    };
    draw('.', &|_, _| true);
    draw('o', &|_, one| one.on_curve);
    draw('@', &|at, _| at == 0);
    draw('*', &|at, _| Some(at) == advice.chosen);
    for (at, row) in grid.iter().enumerate() {
        let label = match at {
            0 => human::seconds(top),
            _ if at == HEIGHT - 1 => "0 s".to_owned(),
            _ => String::new(),
        };
        let line: String = row.iter().collect();
        let _ = writeln!(out, "{}", format!("{label:>9} |{line}").trim_end());
    }
    let (least, most) = (human::bytes(2_f64.powf(left)), human::bytes(2_f64.powf(right)));
    let _ = writeln!(out, "{}+{}", " ".repeat(10), "-".repeat(PLOT));
    let gap = PLOT.saturating_sub(columns(&least) + columns(&most));
    let middle = "data at risk";
    let pad = gap.saturating_sub(middle.len());
    let _ =
        writeln!(out, "{}{least}{}{middle}{}{most}", " ".repeat(11), " ".repeat(pad / 2), " ".repeat(pad - pad / 2));
    let _ = writeln!(out, "  waits      @ as it is   * advised   o best trade-offs   . others");
}

fn table(out: &mut String, advice: &Advice, width: usize, details: bool) {
    let mut shown: Vec<usize> = vec![0];
    shown.extend(advice.chosen);
    let mut curve: Vec<usize> = (0..advice.tried.len()).filter(|at| advice.tried[*at].on_curve).collect();
    curve.sort_by(|a, b| advice.tried[*a].at_risk_bytes.total_cmp(&advice.tried[*b].at_risk_bytes));
    let rest = if details { (0..advice.tried.len()).collect() } else { curve };
    for at in rest {
        if !shown.contains(&at) && (details || shown.len() < ROWS_MAX) {
            shown.push(at);
        }
    }
    let set = [
        Column { width: 8, right: true },
        Column { width: 9, right: true },
        Column { width: 9, right: true },
        Column { width: width.saturating_sub(36), right: false },
    ];
    table_row(out, 0, &set, &["waits", "at risk", "written", "vm.dirty_…"]);
    for one in shown.iter().filter_map(|at| advice.tried.get(*at)) {
        let label = one.label.replace("vm.dirty_", "");
        let label = match one.breaks {
            Some(what) => format!("{label} (not allowed: {what})"),
            None => label,
        };
        let (stall, risk) = (human::seconds(one.stall_seconds), human::bytes(one.at_risk_bytes));
        table_row(out, 0, &set, &[&stall, &risk, &human::bytes(one.written_bytes), &label]);
    }
}

/// One line of JSON, ended by a newline.
pub fn json(advice: &Advice) -> Result<String, serde_json::Error> {
    crate::json::line(advice)
}
