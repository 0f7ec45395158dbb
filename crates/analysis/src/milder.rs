// SPDX-License-Identifier: MIT OR Apache-2.0
//! Milder plans, for where the host's twin shows that the plan of a report harms, or where it joins changes of several kinds: the disk
//! begins to write early, and the hard limit stays as it is, so that no writer is paused earlier than now. Runs nothing.

use crate::advise::threshold::Pair;
use crate::advise::{beside, step, threshold};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Device;
use crate::diagnose::dirty;
use crate::plan::{self, PAIRS, SYSCTL_DROP_IN};
use crate::report::{Finding, Report, Step, When};
use crate::tried::MAY_HARM;
use floodline_record::window::Window;

const BACKGROUND: &str = "vm.dirty_background_bytes";
const HARD: &str = "vm.dirty_bytes";
const PERIOD: &str = "vm.dirty_writeback_centisecs";
/// Parts of the background threshold of the plan that are tried.
const PARTS: [u64; 3] = [1, 4, 16];
/// Smallest background threshold that is tried, bytes.
const LEAST: u64 = 4 << 20;
/// Smallest one where periodic writeback is off. All that waits for the threshold then begins to be written at once, as nothing was written
/// because of its age, so smaller pieces make the waits shorter.
const LEAST_IF_OFF: u64 = 1 << 20;

/// What an earlier start of the flusher is for.
const EARLIER_PIECES: &str =
    "The disk begins to write earlier, in smaller pieces. Writers are paused at the same limit as now.";

/// Reports with milder plans, where the plan of this one harms. Each names the plan that it replaces.
pub fn reports(report: &Report, window: &Window) -> Vec<Report> {
    let tried = report.plan.as_ref().and_then(|plan| plan.tried.as_ref());
    if tried.is_none_or(|tried| !["harms", MAY_HARM].contains(&tried.verdict)) {
        return Vec::new();
    }
    // The plan itself has lost its steps; its findings have not.
    let steps = plan::merge_for(window, &report.findings).map_or_else(Vec::new, |plan| plan.steps);
    let Some(background) = background(&steps) else { return Vec::new() };
    let is_off = window.host.last.dirty_writeback_centisecs.is_some_and(|period| period.0 == 0);
    let (parts, least) = match is_off && value(&steps, PERIOD).is_some() {
        true => (&PARTS[..], LEAST_IF_OFF),
        false => (&PARTS[..2], LEAST),
    };
    // A background threshold above the one in force is not milder, and above the hard limit it has no effect.
    let in_force = dirty::background_threshold(window).map_or(u64::MAX, |bytes| bytes.0);
    let amounts = parts.iter().map(|part| background / part).filter(|bytes| *bytes >= least && *bytes < in_force);
    amounts.filter_map(|bytes| with_background(report, window, bytes)).collect()
}

/// The report without the hard limit of its plan, where that plan joins thresholds with a change of another kind that another finding asks
/// for. Writers that such a change releases would be paused at the lower limit.
pub fn of_joined(report: &Report, window: &Window) -> Option<Report> {
    let plan = report.plan.as_ref().filter(|plan| !plan.steps.is_empty() && plan.rules.len() > 1)?;
    let is_of_another_kind = |step: &Step| step.when == When::Now && step.sysctl().is_none();
    let background = background(&plan.steps).filter(|_| plan.steps.iter().any(is_of_another_kind))?;
    let in_force = dirty::background_threshold(window).map_or(u64::MAX, |bytes| bytes.0);
    let mut part = with_background(report, window, background).filter(|_| background < in_force)?;
    if let (Some(limit), Some(plan)) = (value(&plan.steps, HARD), part.plan.as_mut()) {
        plan.conflicts.insert(0, format!("{HARD}={limit}: waits would be longer on the twin."));
    }
    Some(part)
}

/// The value of a setting among steps.
fn value(steps: &[Step], name: &str) -> Option<u64> {
    let step = steps.iter().find(|step| step.sysctl().as_deref() == Some(name))?;
    step.value.parse().ok()
}

/// The background threshold among steps that also set a hard limit.
fn background(steps: &[Step]) -> Option<u64> {
    value(steps, HARD).and_then(|_| value(steps, BACKGROUND))
}

/// The report with a background threshold in place of all thresholds of its plan.
fn with_background(report: &Report, window: &Window, bytes: u64) -> Option<Report> {
    let mut milder = report.clone();
    for finding in &mut milder.findings {
        if replace_thresholds(finding, window, bytes) {
            // What the finding says of its own thresholds does not hold for these.
            (finding.brief.expect, finding.brief.costs) = (EARLIER_PIECES.to_owned(), cost(finding, window, bytes));
        }
    }
    let mut plan = plan::merge_for(window, &milder.findings)?;
    if let Some(facts) = &window.facts {
        plan::name_files(&mut plan, &facts.sysctl_lines);
    }
    // What was withheld, and why.
    plan.conflicts.extend(report.plan.iter().flat_map(|plan| plan.conflicts.first().cloned()));
    milder.plan = Some(plan);
    Some(milder)
}

/// What an earlier start of the flusher costs while the hard limit stays in force.
fn cost(finding: &Finding, window: &Window, background: u64) -> String {
    let derived = Derived::of(window);
    let hard = derived.dirty.hard_threshold.map_or(0, |bytes| bytes.0);
    let pair = Pair::Bytes { hard, background };
    let drains = derived.drains();
    let is_its = |device: &&Device<'_>| finding.devices.iter().any(|name| device.name.to_string() == *name);
    let device = drains.iter().find(is_its).or(drains.first().filter(|_| drains.len() == 1)).filter(|_| hard > 0);
    let syncs = device.and_then(|device| beside::cost_of_syncs(&derived, device, device.write_bandwidth(), pair));
    let slowed = threshold::cost_of_pair(pair).filter(|_| syncs.is_some());
    let earlier = threshold::earlier(syncs.as_deref()).to_owned();
    slowed.into_iter().chain(syncs).chain([earlier]).collect::<Vec<_>>().join(" ")
}

/// Replaces the thresholds among the steps of a finding. Returns whether it has any.
fn replace_thresholds(finding: &mut Finding, window: &Window, bytes: u64) -> bool {
    let is_threshold = |step: &Step| step.sysctl().is_some_and(|name| PAIRS.as_flattened().contains(&name.as_str()));
    if !finding.plan.iter().any(is_threshold) {
        return false;
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
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::TriedPlan;
    use floodline_record::human;
    use floodline_record::units::Pages;
    use floodline_testkit::incidents;

    fn judged(verdict: &'static str) -> (Report, Window) {
        let window = incidents::dirty_cliff().window();
        let mut report = crate::diagnose::diagnose(&window, None);
        let plan = report.plan.as_mut().unwrap();
        let withheld = std::mem::take(&mut plan.now);
        plan.steps.clear();
        plan.conflicts.insert(0, "it harms".to_owned());
        plan.tried = Some(TriedPlan { verdict, withheld, ..TriedPlan::default() });
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
    fn a_milder_plan_has_the_costs_of_its_own_thresholds() {
        let (mut report, window) = judged("harms");
        let of_plan = "Above 80.0 MiB of unwritten data, writers are slowed to the disk's speed.";
        report.findings.iter_mut().for_each(|finding| finding.brief.costs = of_plan.to_owned());
        let plan = reports(&report, &window).swap_remove(0).plan.unwrap();
        assert!(!plan.costs.concat().contains("80.0 MiB"), "{:?}", plan.costs);
        assert!(plan.costs.concat().contains("written more often"), "{:?}", plan.costs);
        assert_eq!(plan.expect, [EARLIER_PIECES]);
        // Writers are slowed halfway between this background threshold and the limit in force.
        let fast = incidents::dirty_cliff().host(|t, row| row.nr_dirtied = Some(Pages((60_000.0 * t) as u64)));
        let told = cost(&report.findings[0], &fast.window(), 16 << 20);
        assert!(told.starts_with("Above ") && told.contains("each for about"), "{told}");
        let least = dirty::hard_threshold(&fast.window()).unwrap().0 / 2;
        let expect = human::bytes((least + (8 << 20)) as f64);
        assert!(told.starts_with(&format!("Above {expect} of")), "{told} {expect}");
    }

    #[test]
    fn smaller_pieces_are_tried_where_periodic_writeback_is_off() {
        use floodline_record::units::Centisecs;
        let (mut report, mut window) = judged("harms");
        let all = |report: &Report, window: &Window| reports(report, window).len();
        let before = all(&report, &window);
        window.host.last.dirty_writeback_centisecs = Some(Centisecs(0));
        assert_eq!(all(&report, &window), before, "the plan does not switch it on");
        let on = step::sysctls(&window, &[(PERIOD, 500)]);
        report.findings.iter_mut().for_each(|finding| finding.plan.extend(on.clone()));
        assert_eq!(all(&report, &window), before + 1);
    }

    #[test]
    fn a_plan_that_joins_changes_of_two_kinds_has_a_part_without_its_hard_limit() {
        let window = incidents::dirty_cliff().window();
        let mut report = crate::diagnose::diagnose(&window, None);
        assert!(of_joined(&report, &window).is_none(), "thresholds alone");
        let mut strict = report.findings[0].clone();
        (strict.rule, strict.plan) = ("strictlimit-throttling", vec![step::no_strict_limit("254:16").unwrap()]);
        report.findings.push(strict);
        report.plan = plan::merge(&report.findings);
        let part = of_joined(&report, &window).and_then(|part| part.plan).unwrap();
        let settings: Vec<String> = part.steps.iter().filter_map(Step::sysctl).collect();
        assert!(settings.iter().any(|name| name == BACKGROUND) && !settings.iter().any(|name| name == HARD));
        assert!(part.now.iter().any(|command| command.contains("strict_limit")), "{part:?}");
        assert!(part.conflicts[0].contains(HARD), "{part:?}");
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
