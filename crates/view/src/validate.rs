// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated runs held against real ones: a page of documentation, and JSON.

use crate::figures::short;
use floodline_core::scenario::Figure;
use floodline_core::validate::{Case, Outcome, Row, SCHEMA, Verdict, summary};
use serde_json::json;

/// So many misses are named at the top.
const WORST: usize = 10;

/// For a page of documentation: the sum, the worst misses, then every case.
pub fn markdown(cases: &[Case]) -> String {
    let sum = summary(cases);
    let median = sum.median_off_share.map_or("-".to_owned(), |off| format!("{:.1} %", off * 100.0));
    let mut text = format!(
        "{} of {} figures agree; the median is {median} off. {} more depend on an emulated CPU, and {} are next to nothing.\n\n",
        sum.agree, sum.figures, sum.cpu_bound, sum.negligible
    );
    let mut misses: Vec<(&Case, &Row)> = Vec::new();
    for case in cases {
        if let Outcome::Figures(rows) = &case.outcome {
            misses.extend(rows.iter().filter(|row| row.verdict == Verdict::Misses).map(|row| (case, row)));
        }
    }
    misses.sort_by(|a, b| b.1.off_share.total_cmp(&a.1.off_share));
    if !misses.is_empty() {
        text.push_str("The worst misses:\n\n");
        text.push_str(HEADING);
        for (case, row) in misses.iter().take(WORST) {
            let name = format!("{} {} {}: `{}`", case.scenario, case.variant, case.kernel, row.figure);
            text.push_str(&line(&name, row));
        }
        text.push('\n');
    }
    for case in cases {
        text.push_str(&format!("## {}, {}, {}\n\n", case.scenario, case.variant, case.kernel));
        match &case.outcome {
            Outcome::NotSimulated(why) => text.push_str(&format!("Not simulated: {why}.\n")),
            Outcome::Figures(rows) => {
                text.push_str(HEADING);
                rows.iter().for_each(|row| text.push_str(&line(&format!("`{}`", row.figure), row)));
            }
        }
        text.push('\n');
    }
    text
}

const HEADING: &str =
    "| figure | runs | real | least to most | simulated | off | |\n|---|---:|---:|---:|---:|---:|---|\n";

fn line(name: &str, row: &Row) -> String {
    let value = |value: f64| short(Figure { value, unit: row.real.unit });
    let range = match row.real.runs {
        1 => String::new(),
        _ => format!("{} to {}", value(row.real.min), value(row.real.max)),
    };
    let verdict = match row.verdict {
        Verdict::Agrees => "",
        Verdict::Misses => "misses",
        Verdict::CpuBound => "CPU",
        Verdict::Negligible => "small",
    };
    format!(
        "| {name} | {} | {} | {range} | {} | {:.0} % | {verdict} |\n",
        row.real.runs,
        value(row.real.mean),
        value(row.simulated),
        row.off_share * 100.0
    )
}

/// For programs.
pub fn json(cases: &[Case]) -> Result<String, serde_json::Error> {
    serde_json::to_string(&json!({ "schema": SCHEMA, "summary": summary(cases), "cases": cases }))
        .map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_core::validate::rows;

    #[test]
    fn misses_come_first_and_every_figure_has_its_line() {
        let figure = |value| [("t.fsync.max_seconds".to_owned(), Figure { value, unit: "seconds" })].into();
        let case = |variant: &str, outcome| Case {
            scenario: "cliff".to_owned(),
            variant: variant.to_owned(),
            kernel: "6.12".to_owned(),
            outcome,
        };
        let cases = [
            case("incident", Outcome::Figures(rows(&[figure(2.0), figure(2.2)], &figure(4.2)))),
            case("real", Outcome::NotSimulated("the simulator cannot honour a program".to_owned())),
        ];
        let text = markdown(&cases);
        assert!(text.starts_with("0 of 1 figures agree; the median is 100.0 % off."), "{text}");
        let line = "`t.fsync.max_seconds` | 2 | 2.10 s | 2.00 s to 2.20 s | 4.20 s | 100 % | misses |";
        assert_eq!(text.matches(line).count(), 2, "{text}");
        assert!(text.contains("Not simulated: the simulator cannot honour a program."), "{text}");
        assert!(json(&cases).unwrap().contains("\"not_simulated\""));
    }
}
