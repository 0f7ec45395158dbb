// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated runs held against real ones: a page of documentation, and JSON.

use crate::agreement::{Case, Outcome, Row, SCHEMA, Summary, Verdict, summary};
use crate::artefact::{KINDS, kind};
use floodline_analysis::compare::Spread;
use floodline_scenario::Figure;
use floodline_view::figures::short;
use serde_json::json;

/// Most misses named at the top.
const WORST: usize = 10;

/// A page of documentation: the sum, by kind and by scenario, the worst misses, then every case.
pub(crate) fn markdown(cases: &[Case]) -> String {
    let sum = summary(cases);
    let mut text = format!(
        "{} of {} figures agree; the median is {} off. {} are off by no more than twice what the model's own \
         seeds differ by, {} miss. \
         {} more depend on an emulated CPU, and {} are next to nothing.\n\n",
        sum.agree,
        sum.figures,
        percent(sum.median_off_share),
        sum.chance,
        sum.misses,
        sum.cpu_bound,
        sum.negligible
    );
    text.push_str(&by_kind(cases));
    text.push_str(&by_scenario(cases));
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
        let slowdown = case.told.slowdown_percent as f64 / 100.0;
        let observer = case.told.observer_ns as f64 / 1e7;
        text.push_str(&format!("CPU {slowdown:.0} times slower, {observer:.0} % of it the recorder's."));
        if let Some(ran) = case.told.ran {
            let seconds = ran.as_secs_f64();
            text.push_str(&format!(" It ran for {seconds:.0} s; the scenario says another time by now."));
        }
        text.push_str("\n\n");
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

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

fn sum_line(name: &str, sum: &Summary) -> String {
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} |\n",
        sum.figures,
        sum.agree,
        sum.chance,
        sum.misses,
        percent(sum.median_off_share),
        sum.cpu_bound
    )
}

const SUM_HEADING: &str =
    " | figures | agree | chance | miss | median off | CPU |\n|---|---:|---:|---:|---:|---:|---:|\n";

fn by_kind(cases: &[Case]) -> String {
    let lines = KINDS.iter().map(|(name, _)| {
        let rows = cases.iter().flat_map(Case::rows).filter(|row| kind(&row.figure) == *name);
        sum_line(name, &Summary::of(rows))
    });
    format!("| kind{SUM_HEADING}{}\n", lines.collect::<String>())
}

fn by_scenario(cases: &[Case]) -> String {
    let mut text = format!("| scenario{SUM_HEADING}");
    for group in cases.chunk_by(|a, b| (&a.scenario, &a.variant) == (&b.scenario, &b.variant)) {
        let name = format!("{} {}", group[0].scenario, group[0].variant);
        text.push_str(&sum_line(&name, &summary(group)));
    }
    text + "\n"
}

const HEADING: &str = "| figure | runs | real | least to most | simulated | least to most | off | |\n|---|---:|---:|---:|---:|---:|---:|---|\n";

fn line(name: &str, row: &Row) -> String {
    let value = |value: f64| short(Figure { value, unit: row.real.unit });
    let range = |of: &Spread| match value(of.min) == value(of.max) {
        true => String::new(),
        false => format!("{} to {}", value(of.min), value(of.max)),
    };
    let verdict = match row.verdict {
        Verdict::Agrees => "",
        Verdict::Chance => "chance",
        Verdict::Misses => "misses",
        Verdict::CpuBound => "CPU",
        Verdict::Negligible => "small",
    };
    format!(
        "| {name} | {} | {} | {} | {} | {} | {:.0} % | {verdict} |\n",
        row.real.runs,
        value(row.real.mean),
        range(&row.real),
        value(row.simulated.mean),
        range(&row.simulated),
        row.off_share * 100.0
    )
}

/// JSON for programs.
pub(crate) fn json(cases: &[Case]) -> Result<String, serde_json::Error> {
    floodline_view::json::line(&json!({ "schema": SCHEMA, "summary": summary(cases), "cases": cases }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::{Told, rows};
    use floodline_record::units::Nanos;

    #[test]
    fn misses_come_first_and_every_figure_has_its_line() {
        let figure = |value| [("t.fsync.max_seconds".to_owned(), Figure { value, unit: "seconds" })].into();
        let case = |variant: &str, outcome| Case {
            scenario: "cliff".to_owned(),
            variant: variant.to_owned(),
            kernel: "6.12".to_owned(),
            version: "6.12.1".to_owned(),
            recordings: 2,
            told: Told { slowdown_percent: 12_000, observer_ns: 300_000_000, ran: Some(Nanos::SECOND) },
            outcome,
        };
        let cases = [
            case("incident", Outcome::Figures(rows(&[figure(2.0), figure(2.2)], &[figure(4.2)], None))),
            case("real", Outcome::NotSimulated("the simulator does not support a program".to_owned())),
        ];
        let text = markdown(&cases);
        assert!(text.starts_with("0 of 1 figures agree; the median is 100.0 % off."), "{text}");
        let line = "`t.fsync.max_seconds` | 2 | 2.10 s | 2.00 s to 2.20 s | 4.20 s |  | 100 % | misses |";
        assert_eq!(text.matches(line).count(), 2, "{text}");
        assert!(text.contains("| longest latencies of syncs and unmounts | 1 | 0 | 0 | 1 | 100.0 % | 0 |\n"), "{text}");
        assert!(text.contains("| cliff incident | 1 | 0 | 0 | 1 | 100.0 % | 0 |\n"), "{text}");
        assert!(text.contains("CPU 120 times slower, 30 % of it the recorder's. It ran for 1 s;"), "{text}");
        assert!(text.contains("Not simulated: the simulator does not support a program."), "{text}");
        assert!(json(&cases).expect("JSON").contains("\"not_simulated\""));
    }
}
