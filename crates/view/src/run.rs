// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of runs as text and as JSON: figures, findings, and what is not as expected. Several runs of the
//! same are repeats: their figures are shown with mean and spread.

use crate::figures;
use crate::layout::{hanging, wrap};
use floodline_analysis::compare::Spread;
use floodline_analysis::run::{RunReport, SCHEMA};
use floodline_analysis::told::told_findings;
use floodline_record::human;
use floodline_scenario::Figure;
use serde_json::json;
use std::collections::BTreeMap;

/// For people, in so many columns; empty without runs.
pub fn text(reports: &[RunReport], width: usize) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let mut text = format!("{} ({}) on {}: ", first.scenario, first.variant, first.kernel);
    match reports {
        [only] => {
            let samples = human::plural(only.samples, "sample", "samples");
            text.push_str(&format!("{samples}, {:.0} s\n{}\nFigures:\n", only.seconds, costs(reports)));
            text.push_str(&figures::render(&only.figures, width));
        }
        several => {
            let seconds: f64 = several.iter().map(|report| report.seconds).sum();
            text.push_str(&format!("{} runs, {seconds:.0} s\n{}\n", several.len(), costs(reports)));
            text.push_str(&spreads(several));
        }
    }
    text.push_str("\nFindings:\n");
    for finding in &first.findings {
        let said = format!("{} {}: {}", finding.severity.name(), finding.rule, finding.summary);
        for (number, line) in wrap(&said, width.saturating_sub(4)).into_iter().enumerate() {
            let indent = if number == 0 { 2 } else { 4 };
            text.push_str(&format!("{:indent$}{line}\n", ""));
        }
    }
    if first.findings.is_empty() {
        text.push_str("  none\n");
    }
    simplified(&mut text, &first.simplified, width);
    let mut all_well = true;
    for (number, report) in reports.iter().enumerate() {
        for miss in &report.not_as_expected {
            if all_well {
                text.push_str("\nNot as the scenario expects:\n");
            }
            all_well = false;
            let run = if reports.len() > 1 { format!("run {}: ", number + 1) } else { String::new() };
            text.push_str(&format!("  {run}{miss}\n"));
        }
    }
    if all_well && reports.iter().any(|report| report.has_expectations) {
        text.push_str("\nAs the scenario expects.\n");
    }
    text
}

/// Adds what the model leaves out of a scenario; nothing where it leaves out nothing.
pub(crate) fn simplified(text: &mut String, simplified: &[String], width: usize) {
    if !simplified.is_empty() {
        text.push_str("\nSimplified by the model:\n");
        simplified.iter().for_each(|said| hanging(text, "  ", said, width));
    }
}

/// Returns what the model leaves out of several scenarios, each text once.
pub fn simplified_of<'a>(reports: impl Iterator<Item = &'a RunReport>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for said in reports.flat_map(|report| &report.simplified) {
        if !all.contains(said) {
            all.push(said.clone());
        }
    }
    all
}

/// What runs cost besides their workload; empty where no machine was run.
fn costs(reports: &[RunReport]) -> String {
    let most = |of: fn(&RunReport) -> Option<f64>| reports.iter().filter_map(of).reduce(f64::max);
    let Some(first) = most(|run| run.first_sample_seconds) else { return String::new() };
    let beside = most(|run| run.beside_seconds).map(|beside| format!(", {beside:.1} s beside the workload"));
    let at_most = if reports.len() > 1 { ", at most" } else { "" };
    format!("first sample {first:.1} s after the machine's start{}{at_most}\n", beside.unwrap_or_default())
}

/// Mean, least and most of every figure.
fn spreads(reports: &[RunReport]) -> String {
    let all: Vec<&BTreeMap<String, Figure>> = reports.iter().map(|report| &report.figures).collect();
    let names = Spread::names(&all);
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = format!("  {:<widest$} {:>10} {:>10} {:>10}\n", "figure", "mean", "least", "most");
    for name in names {
        let Some(spread) = Spread::of(&all, name).filter(|spread| spread.max != 0.0) else { continue };
        let short = |value: f64| figures::short(Figure { value, unit: spread.unit });
        text.push_str(&format!(
            "  {name:<widest$} {:>10} {:>10} {:>10}\n",
            short(spread.mean),
            short(spread.min),
            short(spread.max)
        ));
    }
    text
}

/// For programs: one run is an object of its own, repeats are one with the mean figures and a list of runs.
pub fn json(reports: &[RunReport]) -> Result<String, serde_json::Error> {
    let (first, rest) = match reports {
        [only] => return crate::json::line(&told(only)),
        [first, rest @ ..] => (first, rest),
        [] => return Ok(String::new()),
    };
    let all: Vec<&BTreeMap<String, Figure>> =
        std::iter::once(first).chain(rest).map(|report| &report.figures).collect();
    let figures: BTreeMap<&str, Spread> =
        Spread::names(&all).into_iter().filter_map(|name| Some((name, Spread::of(&all, name)?))).collect();
    let value = json!({
        "schema": SCHEMA,
        "executor": first.executor,
        "scenario": first.scenario,
        "variant": first.variant,
        "kernel": first.kernel,
        "kernel_version": first.kernel_version,
        "figures": figures,
        "findings": told_findings(&first.findings, first.plan.as_ref()),
        "plan": first.plan,
        "runs": reports.iter().map(told).collect::<Vec<_>>(),
    });
    crate::json::line(&value)
}

/// The report of a run as `doctor` prints its findings: a finding has the steps that the merged plan has.
fn told(report: &RunReport) -> RunReport {
    RunReport { findings: told_findings(&report.findings, report.plan.as_ref()), ..report.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::version::KernelVersion;

    fn report(first_sample_seconds: Option<f64>, beside_seconds: Option<f64>) -> RunReport {
        RunReport {
            schema: SCHEMA,
            executor: "lab",
            scenario: "cliff".to_owned(),
            variant: "remedy".to_owned(),
            kernel: "6.12.1-test".to_owned(),
            kernel_version: KernelVersion::new(6, 12, 1),
            samples: 41,
            seconds: 27.6,
            first_sample_seconds,
            beside_seconds,
            figures: BTreeMap::new(),
            findings: Vec::new(),
            plan: None,
            simplified: Vec::new(),
            not_as_expected: Vec::new(),
            has_expectations: true,
            recording: None,
        }
    }

    fn check(reports: &[RunReport], head: &str) {
        let text = text(reports, 80);
        assert!(text.starts_with(head), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_scenario_that_expects_nothing_is_not_called_as_expected() {
        let simulated = report(None, None);
        assert!(text(std::slice::from_ref(&simulated), 80).contains("As the scenario expects"));
        assert!(!text(&[RunReport { has_expectations: false, ..simulated }], 80).contains("As the scenario expects"));
    }

    #[test]
    fn a_run_of_a_machine_says_what_it_cost_besides_its_workload() {
        let name = "cliff (remedy) on 6.12.1-test";
        let costs = "first sample 4.2 s after the machine's start, 7.6 s beside the workload";
        let (machine, simulated) = (report(Some(4.21), Some(7.6)), report(None, None));
        check(std::slice::from_ref(&machine), &format!("{name}: 41 samples, 28 s\n{costs}\n\nFigures:\n"));
        check(std::slice::from_ref(&simulated), &format!("{name}: 41 samples, 28 s\n\nFigures:\n"));
        let unknown = report(Some(4.21), None);
        let first = "first sample 4.2 s after the machine's start";
        check(&[unknown], &format!("{name}: 41 samples, 28 s\n{first}\n\nFigures:\n"));
        check(&[report(Some(3.0), Some(1.0)), machine], &format!("{name}: 2 runs, 55 s\n{costs}, at most\n\n"));
    }

    #[test]
    fn the_json_of_a_run_has_the_merged_plan_and_its_findings_no_other_command() {
        use floodline_analysis::diagnose::diagnose;
        use floodline_testkit::incidents::dirty_cliff;
        let found = diagnose(&dirty_cliff().window(), None);
        let mut findings = found.findings.clone();
        let mut other = findings[0].clone();
        (other.rule, other.plan[0].value) = ("other", "1".to_owned());
        findings.push(other);
        let run = RunReport { findings, plan: found.plan.clone(), ..report(None, None) };
        for reports in [vec![run.clone()], vec![run.clone(), run]] {
            let value: serde_json::Value = serde_json::from_str(&super::json(&reports).unwrap()).unwrap();
            assert_eq!(value["plan"]["now"], serde_json::json!(found.plan.as_ref().unwrap().now));
            let last = value["findings"].as_array().and_then(|all| all.last()).unwrap();
            assert_eq!(last["left_out"].as_array().map(Vec::len), Some(1), "{last}");
        }
        let calm: serde_json::Value = serde_json::from_str(&super::json(&[report(None, None)]).unwrap()).unwrap();
        assert_eq!(calm.get("plan"), Some(&serde_json::Value::Null));
    }
}
