// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advice as one screen: a sentence, the trade-off between data at risk and stalls as a plot, and the plan. Computes
//! nothing but where a point of the plot lies.

use crate::layout::{Column, columns, command, hanging, row as table_row};
use crate::predict::{back_test, first_sentence};
use floodline_analysis::advice::{Advice, Tried};
use floodline_analysis::prediction::{PEAK, WAITS, WRITTEN};
use floodline_record::human;
use std::fmt::Write;

/// Rows of the plot.
const HEIGHT: usize = 7;
/// Columns of the plot.
const PLOT: usize = 56;
/// Rows of the short table.
const ROWS_MAX: usize = 4;
/// Difference below which two trade-offs are one, as a share.
const NEAR: f64 = 0.03;

/// One screen, or with `details` every candidate.
pub fn text(advice: &Advice, width: usize, details: bool) -> String {
    let width = width.clamp(60, 120);
    let mut out = String::new();
    hanging(&mut out, "", &advice.headline, width);
    let _ = writeln!(out);
    hanging(&mut out, "", &back_test(advice.back_test_error, advice.missed.len()), width);
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
                "The figures above are simulated, and scaled to the recording where the twin reproduces it. In the recording: {}.",
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
    let rest: Vec<usize> = match details {
        true => (0..advice.tried.len()).filter(|at| !shown.contains(at)).collect(),
        false => trade_offs(&advice.tried, &shown, ROWS_MAX.saturating_sub(shown.len())),
    };
    shown.extend(rest);
    let set = [
        Column { width: 9, right: true },
        Column { width: 10, right: true },
        Column { width: 10, right: true },
        Column { width: width.saturating_sub(39), right: false },
    ];
    let is_missed = |name: &str| advice.missed.iter().any(|missed| missed == name);
    let doubt = |name: &str| if is_missed(name) { "?" } else { "" };
    table_row(out, 0, &set, &["waits", "at risk", "written", "vm.dirty_…"]);
    for one in shown.iter().filter_map(|at| advice.tried.get(*at)) {
        let label = one.label.replace("vm.dirty_", "");
        let label = match one.breaks {
            Some(what) => format!("{label} (not allowed: {what})"),
            None => label,
        };
        let about = if one.is_extrapolated { "~" } else { "" };
        let stall = format!("{about}{}{}", human::seconds(one.stall_seconds), doubt(WAITS));
        let risk = format!("{}{}", human::bytes(one.at_risk_bytes), doubt(PEAK));
        let written = format!("{}{}", human::bytes(one.written_bytes), doubt(WRITTEN));
        table_row(out, 0, &set, &[&stall, &risk, &written, &label]);
    }
    if shown.iter().filter_map(|at| advice.tried.get(*at)).any(|one| one.is_extrapolated) {
        let _ = writeln!(
            out,
            "~ estimated from the first quarter of the run: tasks already wait longer than with the best setting."
        );
    }
    if [WAITS, PEAK, WRITTEN].into_iter().any(is_missed) {
        let _ = writeln!(out, "? the twin misses this figure of the recording by more than 25 %.");
    }
}

/// The best trade-offs beside some candidates: at most `most`, from all parts of the curve, each different from all others
/// in what people read.
fn trade_offs(tried: &[Tried], shown: &[usize], most: usize) -> Vec<usize> {
    let mut curve: Vec<usize> = (0..tried.len()).filter(|at| tried[*at].on_curve).collect();
    curve.sort_by(|a, b| tried[*a].at_risk_bytes.total_cmp(&tried[*b].at_risk_bytes));
    let is_near = |a: f64, b: f64| (a - b).abs() <= NEAR * a.max(b);
    let is_like = |a: usize, b: usize| {
        let (a, b) = (&tried[a], &tried[b]);
        is_near(a.at_risk_bytes, b.at_risk_bytes) && is_near(a.stall_seconds, b.stall_seconds)
    };
    let mut distinct: Vec<usize> = Vec::new();
    for at in curve {
        if !shown.iter().chain(&distinct).any(|known| is_like(*known, at)) {
            distinct.push(at);
        }
    }
    let many = distinct.len();
    if many <= most {
        return distinct;
    }
    // The middle of each of `most` equal parts.
    (0..most).filter_map(|part| distinct.get((2 * part + 1) * many / (2 * most)).copied()).collect()
}

/// One line of JSON, ended by a newline.
pub fn json(advice: &Advice) -> Result<String, serde_json::Error> {
    crate::json::line(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::advice::{Constraints, Goal, SCHEMA};

    fn tried(label: &str, stall_seconds: f64, at_risk_bytes: f64) -> Tried {
        Tried {
            settings: Vec::new(),
            label: label.to_owned(),
            at_risk_bytes,
            stall_seconds,
            longest_wait_seconds: None,
            pause_seconds: 0.0,
            written_bytes: 1e9,
            throughput: 0.0,
            smallest_budget_bytes: None,
            regret_seconds: 0.0,
            breaks: None,
            on_curve: true,
            is_extrapolated: false,
        }
    }

    #[test]
    fn the_best_trade_offs_differ_and_are_from_all_parts_of_the_curve() {
        let mut all = vec![tried("as it is", 50.0, 99e6)];
        all.extend((0..3).map(|_| tried("one", 5.0, 5e6)));
        all.extend((1..=9).map(|at| tried("other", 5.0 - f64::from(at) * 0.5, 5e6 + f64::from(at) * 1e6)));
        assert_eq!(trade_offs(&all, &[0, 1], 2), [6, 10]);
        assert_eq!(trade_offs(&all[..4], &[0, 1], 2), [0; 0], "all are equal to the advised one");
        assert_eq!(trade_offs(&all[..4], &[0], 2), [1]);
    }

    #[test]
    fn an_advice_begins_with_its_back_test_and_marks_what_the_twin_misses() {
        let mut advice = Advice {
            schema: SCHEMA,
            goal: Goal::Latency,
            headline: "Keep the present settings.".to_owned(),
            constraints: Constraints { at_risk_bytes: 0.0, smallest_budget_bytes: None, pause_seconds: 0.2 },
            tried: vec![tried("as it is", 50.0, 99e6)],
            chosen: None,
            gain_share: None,
            error_share: 0.05,
            back_test_error: Some(0.05),
            missed: vec![WAITS.to_owned()],
            no_verdict: None,
            prediction: None,
            plan: None,
            undo: Vec::new(),
            commands: Vec::new(),
            undo_commands: Vec::new(),
            notes: Vec::new(),
            simplified: Vec::new(),
        };
        let page = text(&advice, 80, false);
        let told = "Keep the present settings.\n\nBack-test: the unchanged twin differs from the recording by 5.0 % (median), and\n\
                    by more than 25 % in 1 figure.\n";
        assert!(page.starts_with(told), "{page}");
        assert!(page.contains("\n    50 s?    94.4 MiB     954 MiB  as it is\n? the twin misses"), "{page}");
        advice.missed.clear();
        assert!(!text(&advice, 80, false).contains('?'));
    }
}
