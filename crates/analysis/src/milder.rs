// SPDX-License-Identifier: MIT OR Apache-2.0
//! Milder plans, for where the host's twin shows that the plan of a report harms: the disk begins to write early, and the
//! hard limit stays as it is, so that no writer is paused earlier than now. Runs nothing.

use crate::advise::step;
use crate::diagnose::dirty;
use crate::plan::{self, PAIRS, SYSCTL_DROP_IN};
use crate::report::{Finding, Report, Step, When};
use crate::tried::MAY_HARM;
use floodline_record::window::Window;

const BACKGROUND: &str = "vm.dirty_background_bytes";
const HARD: &str = "vm.dirty_bytes";
/// Parts of the background threshold of the plan that are tried.
const PARTS: [u64; 2] = [1, 4];
/// Smallest background threshold that is tried, bytes.
const LEAST: u64 = 4 << 20;

/// Reports with milder plans, where the plan of this one harms. Each names the plan that it replaces.
pub fn reports(report: &Report, window: &Window) -> Vec<Report> {
    let tried = report.plan.as_ref().and_then(|plan| plan.tried.as_ref());
    if tried.is_none_or(|tried| !["harms", MAY_HARM].contains(&tried.verdict)) {
        return Vec::new();
    }
    // The plan itself has lost its steps; its findings have not.
    let steps = plan::merge(&report.findings).map_or_else(Vec::new, |plan| plan.steps);
    let value = |name: &str| {
        let step = steps.iter().find(|step| step.sysctl().as_deref() == Some(name))?;
        step.value.parse::<u64>().ok()
    };
    let (Some(background), Some(_)) = (value(BACKGROUND), value(HARD)) else { return Vec::new() };
    // A background threshold above the one in force is not milder, and above the hard limit it has no effect.
    let in_force = dirty::background_threshold(window).map_or(u64::MAX, |bytes| bytes.0);
    let amounts = PARTS.map(|part| background / part).into_iter().filter(|bytes| *bytes >= LEAST && *bytes < in_force);
    amounts.filter_map(|bytes| with_background(report, window, bytes)).collect()
}

/// The report with a background threshold in place of all thresholds of its plan.
fn with_background(report: &Report, window: &Window, bytes: u64) -> Option<Report> {
    let mut milder = report.clone();
    for finding in &mut milder.findings {
        replace_thresholds(finding, window, bytes);
    }
    let mut plan = plan::merge(&milder.findings)?;
    if let Some(facts) = &window.facts {
        plan::name_files(&mut plan, &facts.sysctl_lines);
    }
    // What was withheld, and why.
    plan.conflicts.extend(report.plan.iter().flat_map(|plan| plan.conflicts.first().cloned()));
    milder.plan = Some(plan);
    Some(milder)
}

fn replace_thresholds(finding: &mut Finding, window: &Window, bytes: u64) {
    let is_threshold = |step: &Step| step.sysctl().is_some_and(|name| PAIRS.as_flattened().contains(&name.as_str()));
    if !finding.plan.iter().any(is_threshold) {
        return;
    }
    let is_setting = |step: &Step| step.sysctl().is_some() || step.write == SYSCTL_DROP_IN;
    let (settings, mut steps): (Vec<Step>, Vec<Step>) = finding.plan.drain(..).partition(is_setting);
    let others = settings.iter().filter(|step| step.when == When::Now && !is_threshold(step));
    let others: Vec<(String, u64)> =
        others.filter_map(|step| Some((step.sysctl()?, step.value.parse().ok()?))).collect();
    let mut changes: Vec<(&str, u64)> = others.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    changes.push((BACKGROUND, bytes));
    steps.extend(step::sysctls(window, &changes));
    finding.plan = steps;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::TriedPlan;
    use floodline_record::units::Pages;
    use floodline_testkit::incidents;

    fn judged(verdict: &'static str) -> (Report, Window) {
        let window = incidents::dirty_cliff().window();
        let mut report = crate::diagnose::diagnose(&window, None);
        let plan = report.plan.as_mut().unwrap();
        let withheld = std::mem::take(&mut plan.now);
        plan.steps.clear();
        plan.conflicts.insert(0, "it harms".to_owned());
        plan.tried = Some(TriedPlan { verdict, back_test_error: None, expected: Vec::new(), withheld });
        (report, window)
    }

    #[test]
    fn a_plan_that_harms_is_replaced_by_its_background_threshold_alone() {
        let (report, window) = judged("harms");
        let before = plan::merge(&report.findings).unwrap();
        let background = before.steps.iter().find(|step| step.sysctl().as_deref() == Some(BACKGROUND)).unwrap();
        let bytes: u64 = background.value.parse().unwrap();
        let milder = reports(&report, &window);
        let assignments = |report: &Report| {
            let steps = &report.plan.as_ref().unwrap().steps;
            steps.iter().filter_map(Step::assignment).collect::<Vec<_>>()
        };
        let all: Vec<_> = milder.iter().map(assignments).collect();
        assert_eq!(all, [[format!("{BACKGROUND}={bytes}")], [format!("{BACKGROUND}={}", bytes / 4)]]);
        let plan = milder[0].plan.as_ref().unwrap();
        assert_eq!(plan.conflicts, ["it harms"]);
        assert_eq!((plan.now.len(), plan.undo.len(), plan.keep.len()), (1, 1, 1), "{plan:?}");
        assert!(!format!("{plan:?}").contains(HARD), "{plan:?}");
    }

    #[test]
    fn a_plan_that_raises_the_thresholds_has_no_milder_one() {
        let (report, mut window) = judged("harms");
        for (_, row) in &mut window.host_series {
            row.nr_dirty_background_threshold = Some(Pages(16));
        }
        window.host.last.nr_dirty_background_threshold = Some(Pages(16));
        assert!(reports(&report, &window).is_empty());
    }

    #[test]
    fn a_plan_that_helps_or_does_nothing_stays() {
        for verdict in ["helps", "does_not_help"] {
            let (report, window) = judged(verdict);
            assert!(reports(&report, &window).is_empty(), "{verdict}");
        }
    }
}
