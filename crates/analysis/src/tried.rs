// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies the result of the host's twin to a report's plan: a plan that helps gets its figures, a plan that does not
//! help loses its commands, and a plan that the twin cannot judge becomes a candidate. Runs nothing.

use crate::advise::beside::without_cost_of_syncs;
use crate::judgement::{BEYOND_BUDGET, Harm, Verdict, unpredicted};
use crate::plan::set_aside;
use crate::prediction::{LEADS, LONGEST, PEAK, Prediction, Row, Seen, Sure};
use crate::report::{Plan, Report, Severity, TriedPlan, When};
use crate::rule_figures::are_exact;

mod weighed;
mod withheld;

use self::weighed::PREDICTED;
pub use self::weighed::{cost_of_trial, of_short_look, on_usual_disks, price};

/// Whether the change of a plan follows from the kernel's arithmetic alone.
fn is_exact(plan: &Plan) -> bool {
    are_exact(&plan.rules) && !plan.helps_in_part
}

/// Marks a plan that was not tried. Its change becomes a candidate, unless it follows from arithmetic alone.
pub fn arithmetic_only(plan: &mut Plan, why: impl Into<String>) {
    let why = why.into();
    plan.arithmetic_only = Some(why.clone());
    if !is_exact(plan) {
        set_aside(plan, why);
    }
}

/// Writes what the twin showed into a plan.
pub fn tried(plan: &mut Plan, prediction: &Prediction) {
    let rows = || LEADS.iter().filter_map(|name| prediction.rows.iter().find(|row| row.figure == *name));
    let better: Vec<&Row> = prediction.leads().filter(|row| row.improves()).collect();
    let losses = prediction.losses();
    let error = prediction.back_test_error;
    // All findings of the host count, as in `predict` and `advise`, not only those for which the plan has commands.
    let found = match prediction.found() {
        none if none.is_empty() => plan.rules.clone(),
        found => found,
    };
    let judged = prediction.verdict(&found);
    // A twin that lacks the findings of the plan does not clear the plan. A change that harms another finding still harms.
    let is_for_hidden = judged == Verdict::DoesNotHelp && !plan.rules.is_empty() && !prediction.shows(&plan.rules);
    let hidden = is_for_hidden.then(|| "the twin does not show the finding".to_owned());
    let mut longer_by_both = None;
    if let Some(why) = prediction.no_verdict(&found).or(hidden) {
        longer_by_both = prediction.only_longer().filter(|_| !is_exact(plan));
        if longer_by_both.is_none() {
            // It stands first: the first screen has room for one cost.
            let grows = prediction.roughly_longer().map(|row| format!("On the twin: maybe {}.", row.roughly_said()));
            plan.costs.splice(0..0, grows);
            // What the twin predicts to get worse is said although the verdict is open.
            let is_cost = |row: &&&Row| row.doubt.is_none() && (row.unit == "seconds" || row.figure == PEAK);
            let lost: Vec<String> = losses.iter().filter(is_cost).take(2).map(|row| row.reserved()).collect();
            let is_told = !lost.is_empty() && prediction.is_reliable() && !prediction.is_cut;
            plan.costs.splice(0..0, is_told.then(|| format!("{PREDICTED}{}.", lost.join("; "))));
            arithmetic_only(plan, why);
            // Nor does it show that a wait which may grow is worth it.
            if let Some(why) = prediction.open_harm() {
                set_aside(plan, why);
            }
            // Arithmetic does not show whether a wait gets shorter for what more is at risk.
            if let Some(why) = prediction.open_price().filter(|_| better.is_empty()) {
                set_aside(plan, why);
            }
            return;
        }
    }
    let waits = |row: &&&Row| row.unit == "seconds";
    let harms = judged == Verdict::Harms || longer_by_both.is_some();
    let verdict = if longer_by_both.is_some() { MAY_HARM } else { word(judged) };
    let mut withheld = Vec::new();
    if verdict == "helps" {
        plan.expect.insert(0, expectation(&better, prediction));
        if prediction.rows.iter().any(|row| row.figure == LONGEST && row.doubt.is_none()) {
            plan.costs.iter_mut().for_each(|cost| *cost = without_cost_of_syncs(cost));
            plan.costs.retain(|cost| !cost.is_empty());
        }
        // A wait that grows is the first cost: the first screen has room for few words. Data at risk that grow follow, and the
        // program that surely loses most.
        let is_slowed = |row: &&Row| row.figure.starts_with("program ");
        let others = losses.iter().copied().filter(|row| row.figure != PEAK && !is_slowed(row)).take(1);
        let risk = losses.iter().copied().filter(|row| row.figure == PEAK);
        let slowed = losses.iter().copied().filter(is_slowed).take(1);
        let mut grows: Vec<String> = others.chain(risk).chain(slowed).map(|row| row.reserved()).collect();
        grows.extend(prediction.roughly_longer().map(|row| format!("maybe {}", row.roughly_said())));
        // A finding that appears without harm is a cost too.
        let news = prediction.appear.iter().max_by_key(|seen| seen.severity);
        grows.extend(news.map(|seen| finding(seen, "appears", prediction)));
        if !grows.is_empty() {
            plan.costs.insert(0, format!("Predicted: {}.", grows.join("; ")));
        }
        // It helps some. Others may wait longer, or the price is for a person to weigh.
        let reserve = prediction.reserve().or_else(|| weighed::by_a_person(plan)).filter(|_| !is_exact(plan));
        let open = || prediction.open_price().filter(|_| !is_exact(plan) || better.is_empty());
        if let Some(why) = reserve.or_else(open) {
            plan.costs.splice(0..0, weighed::costs(plan, prediction));
            set_aside(plan, why);
        }
    } else {
        withheld = std::mem::take(&mut plan.now);
        plan.undo.clear();
        plan.keep.clear();
        plan.undo_keep.clear();
        plan.guarded.clear();
        plan.at_boot.clear();
        plan.steps.clear();
        let longer = losses.iter().find(|row| row.unit == "seconds").or(losses.first());
        let felt = rows().find(|row| row.doubt.is_none() && waits(&row));
        let why = match (longer_by_both, prediction.harm()) {
            (Some(row), _) => Harm::RoughWait(row).told(),
            (None, Some(harm)) => harm.told(),
            (None, None) => match (longer, felt) {
                (Some(longer), Some(row)) if longer.figure != row.figure && longer.unit == "seconds" => {
                    format!("{}; {}", row.sentence(), longer.reserved())
                }
                (_, Some(row)) => row.sentence(),
                _ => match rows().find(|row| row.improves() || row.worsens()) {
                    Some(row) => row.reserved(),
                    None => "no figure changes".to_owned(),
                },
            },
        };
        let what = match verdict {
            MAY_HARM => "may do harm",
            _ if harms => "does harm",
            _ => "does not help",
        };
        plan.conflicts
            .insert(0, format!("On a twin of this host, this change {what} ({why}): {}", withheld.join("; ")));
        plan.expect = withheld::expectation(plan, judged == Verdict::DoesNotHelp && longer_by_both.is_none());
        plan.costs.clear();
    }
    let costs = losses.iter().map(|row| row.reserved()).collect();
    let is_sure = |seen: &&Seen| prediction.sure(seen.rule) != Sure::Open;
    let ended = prediction.vanish.iter().filter(is_sure).map(|seen| seen.rule).collect();
    plan.tried =
        Some(TriedPlan { verdict, back_test_error: error, expected: prediction.expected(), withheld, costs, ended });
}

/// Takes the change of now out of a plan from a damaged recording: the waits of lost samples are missing in its trial. `lost` says what
/// is lost. A change that follows from arithmetic alone stays.
pub fn of_damaged(plan: &mut Plan, lost: String) {
    if !is_exact(plan) {
        set_aside(plan, lost);
    }
}

/// The word for a change of which the trial gives no verdict, and that makes a wait longer by both estimates of the twin.
pub const MAY_HARM: &str = "may_harm";

/// The verdict as a report has it.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Helps => "helps",
        Verdict::DoesNotHelp => "does_not_help",
        Verdict::Harms => "harms",
    }
}

/// Writes into a plan that waits for a reboot what the twin showed of it: another kernel, or cgroups of version 2.
/// Nothing is withheld, since a limit that holds at last makes tasks wait, as it should.
pub fn tried_later(plan: &mut Plan, prediction: &Prediction) {
    let is_felt = |row: &&Row| LEADS.contains(&row.figure.as_str()) || row.is_of_device();
    let rows = || prediction.rows.iter().filter(is_felt);
    let error = prediction.back_test_error;
    let is_any = rows().any(|row| row.doubt.is_none() && row.is_measured);
    if prediction.is_cut || !is_any || !prediction.is_reliable() {
        let why = match prediction.is_cut {
            true => BEYOND_BUDGET.to_owned(),
            false => unpredicted(error, &plan.rules),
        };
        return arithmetic_only(plan, why);
    }
    let sentences = |of: fn(&Row) -> bool| said(rows().filter(|row| of(row)).take(2).collect());
    let (mut better, mut worse) = (sentences(Row::improves), sentences(Row::worsens));
    // Harm that is no wait, such as CPU time, ends with its finding.
    let ends = prediction.vanish.iter().filter(|seen| plan.rules.contains(&seen.rule));
    better.extend(ends.map(|seen| finding(seen, "vanishes", prediction)));
    worse.extend(prediction.appear.first().map(|seen| finding(seen, "appears", prediction)));
    let verdict = match (worse.is_empty(), better.is_empty()) {
        (false, true) => "harms",
        (_, false) => "helps",
        (true, true) => "does_not_help",
    };
    if !better.is_empty() {
        plan.expect.push(format!("Predicted: {}.", better.join("; ")));
    }
    if !worse.is_empty() {
        plan.costs.insert(0, format!("Predicted: {}.", worse.join("; ")));
    }
    let expected = prediction.expected();
    plan.tried = Some(TriedPlan { verdict, back_test_error: error, expected, ..TriedPlan::default() });
}

/// Removes the steps of a withheld plan from the findings too, so that no screen and no detail lists them as a change.
/// A later change, such as of the kernel, was not tried and stays. A candidate without a verdict goes where no task is harmed: it
/// has nothing to gain, and may make tasks wait.
pub fn withhold(report: &mut Report) {
    if has_nothing_to_gain(report) {
        report.plan = None;
        return clear_steps(
            report,
            "No change is printed for this: no task is harmed, and no trial shows what a change would do.",
        );
    }
    let tried = report.plan.as_ref().and_then(|plan| plan.tried.as_ref());
    let why = match tried.filter(|tried| !tried.withheld.is_empty()) {
        Some(tried) if tried.verdict == "harms" => {
            "No change is printed for this: the change that was tried does harm on a twin of this host."
        }
        Some(tried) if tried.verdict == MAY_HARM => {
            "No change is printed for this: on a twin of this host, tasks may wait longer with the change that was tried."
        }
        Some(_) => "No change is printed for this: the change that was tried does not help on a twin of this host.",
        None => return,
    };
    clear_steps(report, why);
}

/// Removes the steps of now from all findings that have some, and says why.
fn clear_steps(report: &mut Report, why: &str) {
    for finding in report.findings.iter_mut().filter(|finding| finding.plan.iter().any(|step| step.when != When::Later))
    {
        finding.plan.retain(|step| step.when == When::Later);
        finding.trade_off = why.to_owned();
    }
}

/// Whether the trial of the plan gave no verdict, and all that it is for is worth a note only.
fn has_nothing_to_gain(report: &Report) -> bool {
    let Some(plan) = report.plan.as_ref().filter(|plan| plan.later.is_empty()) else { return false };
    let is_unchecked = match &plan.tried {
        None => plan.candidate.is_some(),
        Some(tried) => tried.verdict == MAY_HARM,
    };
    let of_plan = report.findings.iter().filter(|finding| plan.rules.contains(&finding.rule));
    is_unchecked && of_plan.map(|finding| finding.severity).max() == Some(Severity::Info)
}

/// What the change does here, in a sentence. An effect that may not come is said with "maybe", as `predict` says it.
fn expectation(better: &[&Row], prediction: &Prediction) -> String {
    let shown: Vec<&Row> = better.iter().copied().take(2).collect();
    let mut parts = said(shown.clone());
    if parts.is_empty() {
        parts.extend(prediction.vanish.first().map(|seen| finding(seen, "vanishes", prediction)));
    }
    let risk = prediction.rows.iter().find(|row| row.figure == PEAK && row.doubt.is_none());
    let is_new = |risk: &&Row| !shown.iter().any(|row| row.figure == risk.figure);
    parts.extend(risk.filter(is_new).filter(|risk| risk.improves()).map(Row::reserved));
    format!("Predicted: {}.", parts.join("; "))
}

/// Effects in words, certain ones first.
fn said(mut rows: Vec<&Row>) -> Vec<String> {
    rows.sort_by_key(|row| !row.is_certain());
    rows.into_iter().map(Row::reserved).collect()
}

/// A finding that comes or goes, after "likely" or "maybe" where that is not certain.
fn finding(seen: &Seen, what: &str, prediction: &Prediction) -> String {
    let before = match prediction.sure(seen.rule) {
        Sure::Certain => "",
        Sure::Likely => "likely ",
        Sure::Open => "maybe ",
    };
    format!("{before}{} {what}", seen.rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::{DIRTIED, Doubt, Doubtful, Reason};
    use floodline_record::version::KernelVersion;

    fn row(figure: &str, now: f64, then: f64, doubt: Option<Doubt>) -> Row {
        let unit = if figure.ends_with("seconds") { "seconds" } else { "bytes" };
        Row { off_share: Some(0.1), least: 0.02, doubt, ..Row::new(figure, "longest fsync", unit, now, then) }
    }

    fn seen(rule: &'static str) -> Seen {
        Seen { rule, severity: Severity::Critical }
    }

    fn check(rows: Vec<Row>, vanish: &[&'static str], stay: &[&'static str], appear: &[&'static str]) -> Plan {
        let mut plan = Plan {
            now: vec!["sudo sysctl -w vm.dirty_ratio=5".to_owned()],
            expect: vec!["The waits end.".to_owned()],
            rules: vec!["dirty-cliff"],
            ..Plan::default()
        };
        let all = |rules: &[&'static str]| rules.iter().map(|rule| seen(rule)).collect();
        let prediction = Prediction {
            back_test_error: Some(0.1),
            rows,
            vanish: all(vanish),
            appear: all(appear),
            stay: all(stay),
            runs: 4,
            ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0))
        };
        tried(&mut plan, &prediction);
        plan
    }

    #[test]
    fn a_candidate_of_open_harm_says_what_gets_worse() {
        use crate::prediction::{LONGEST_WRITE, WAITS};
        let longer = Row { low: 0.02, high: 90.0, ..row(LONGEST_WRITE, 0.264, 1.96, None) };
        let rows = vec![row(WAITS, 46.0, 8.0, Some(Doubt::BackTest)), longer, row(PEAK, 3.1e6, 28e6, None)];
        let plan = check(rows, &["dirty-cliff"], &[], &[]);
        assert!(plan.candidate.is_some() && plan.now.is_empty(), "{plan:?}");
        assert!(
            plan.costs[0].starts_with("Predicted: maybe longest fsync 264 ms → about 1.96 s; "),
            "{:?}",
            plan.costs
        );
        assert!(plan.costs[0].contains("2.96 MiB → about 26.7 MiB"), "{:?}", plan.costs);
    }

    #[test]
    fn a_change_without_a_verdict_is_not_printed_where_no_task_is_harmed() {
        use floodline_testkit::incidents;
        let report = |severity: Severity, why: Option<&str>| {
            let mut report = crate::diagnose::diagnose(&incidents::dirty_cliff().window(), None);
            report.findings.iter_mut().for_each(|finding| finding.severity = severity);
            if let (Some(plan), Some(why)) = (&mut report.plan, why) {
                arithmetic_only(plan, why);
            }
            withhold(&mut report);
            report
        };
        let why = Some("the twin does not show the finding");
        let noted = report(Severity::Info, why);
        assert!(noted.plan.is_none());
        assert!(noted.findings.iter().all(|finding| finding.plan.is_empty()));
        assert!(noted.findings.iter().any(|finding| finding.trade_off.starts_with("No change is printed")));
        assert!(report(Severity::Warning, why).plan.is_some());
        assert!(report(Severity::Info, None).plan.is_some());
        // The same if both estimates of a missed wait are longer.
        let withheld = |severity: Severity| {
            let mut report = report(severity, None);
            let plan = report.plan.as_mut().unwrap();
            let withheld = std::mem::take(&mut plan.now);
            plan.tried = Some(TriedPlan { verdict: MAY_HARM, withheld, ..TriedPlan::default() });
            withhold(&mut report);
            report.plan.is_some()
        };
        assert!(withheld(Severity::Warning) && !withheld(Severity::Info));
    }

    #[test]
    fn what_a_reboot_costs_is_said_and_nothing_is_withheld() {
        let later = |rows: Vec<Row>| {
            let mut plan =
                Plan { later: vec!["Reboot.".to_owned()], rules: vec!["cgroup-writeback-missing"], ..Plan::default() };
            let kernel = KernelVersion::new(5, 10, 0);
            tried_later(
                &mut plan,
                &Prediction { rows, back_test_error: Some(0.1), ..Prediction::new(Vec::new(), kernel) },
            );
            plan
        };
        let holds = later(vec![row(WAIT, 0.0, 21.0, None)]);
        assert_eq!(holds.costs, ["Predicted: longest fsync 0 s → about 21 s."]);
        assert_eq!(holds.tried.map(|tried| tried.verdict), Some("harms"));
        assert_eq!(holds.later, ["Reboot."]);
        let helps = later(vec![row(WAIT, 3.1, 0.3, None)]);
        assert_eq!(helps.expect, ["Predicted: longest fsync 3.10 s → about 300 ms."]);
        assert!(helps.costs.is_empty(), "{:?}", helps.costs);
        let mut storm = Plan { rules: vec!["inode-switch-storm"], ..Plan::default() };
        let (rows, vanish) = (vec![row(WAIT, 3.1, 3.1, None)], vec![seen("inode-switch-storm")]);
        tried_later(
            &mut storm,
            &Prediction {
                rows,
                vanish,
                back_test_error: Some(0.1),
                ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0))
            },
        );
        assert_eq!(storm.expect, ["Predicted: inode-switch-storm vanishes."]);
        let unknown = later(vec![row(WAIT, 3.1, 0.3, Some(Doubt::BackTest))]);
        assert!(unknown.arithmetic_only.is_some() && unknown.tried.is_none());
    }

    #[test]
    fn no_finding_lists_a_step_of_a_plan_that_was_withheld() {
        let mut report = crate::diagnose::diagnose(&floodline_testkit::incidents::dirty_cliff().window(), None);
        let steps = |report: &Report| report.findings.iter().map(|finding| finding.plan.len()).sum::<usize>();
        let before = report.clone();
        assert!(steps(&report) > 0);
        withhold(&mut report);
        assert_eq!(report, before, "a plan that was not tried keeps its steps");
        let withheld = report.plan.as_ref().map(|plan| plan.now.clone()).unwrap();
        let tried = TriedPlan { verdict: "does_not_help", withheld, ..TriedPlan::default() };
        report.plan.as_mut().unwrap().tried = Some(tried);
        withhold(&mut report);
        assert_eq!(steps(&report), 0);
        assert!(report.findings[0].trade_off.starts_with("No change is printed for this: the change"));
    }

    const WAIT: &str = "durable.longest_wait_seconds";

    #[test]
    fn a_plan_that_helps_gets_its_figures() {
        let plan = check(vec![row(WAIT, 3.1, 0.3, None)], &["dirty-cliff"], &[], &[]);
        assert_eq!(plan.expect, ["Predicted: longest fsync 3.10 s → about 300 ms.", "The waits end."]);
        assert_eq!(plan.tried.map(|tried| tried.verdict), Some("helps"));
        assert_eq!(plan.now.len(), 1);
    }

    #[test]
    fn an_effect_that_may_not_come_is_said_with_maybe_after_those_that_will() {
        let wide = |row: Row| Row { low: row.then / 9.0, high: row.then * 20.0, ..row };
        let waits = || row("stall_seconds", 60.0, 20.0, None);
        let plan = check(vec![wide(row(WAIT, 3.1, 0.3, None)), waits()], &["dirty-cliff"], &[], &[]);
        assert_eq!(
            plan.expect[0],
            "Predicted: longest fsync 60 s → about 20 s; maybe longest fsync 3.10 s → about 300 ms."
        );
        let plan = check(vec![wide(row(WAIT, 3.1, 0.3, None))], &["dirty-cliff"], &[], &[]);
        assert_eq!(plan.expect[0], "Predicted: maybe longest fsync 3.10 s → about 300 ms.");
        let mut prediction = Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0));
        assert_eq!(finding(&seen("dirty-cliff"), "vanishes", &prediction), "dirty-cliff vanishes");
        prediction.doubtful = vec![Doubtful::new(&seen("dirty-cliff"), false, Reason::Runs, (0, 0))];
        assert_eq!(finding(&seen("dirty-cliff"), "vanishes", &prediction), "maybe dirty-cliff vanishes");
    }

    #[test]
    fn a_finding_that_appears_while_waits_get_shorter_is_a_cost() {
        let plan = check(vec![row(WAIT, 3.1, 0.3, None)], &["dirty-cliff"], &[], &["dominant-writer"]);
        assert_eq!(plan.costs, ["Predicted: dominant-writer appears."]);
        assert_eq!(plan.tried.map(|tried| tried.verdict), Some("helps"));
    }

    #[test]
    fn a_plan_that_helps_some_is_a_candidate_where_others_may_wait_longer() {
        let missed = Row { roughly: Some((2.0, 6.6)), ..row("stall_seconds", 3.3, 2.0, Some(Doubt::BackTest)) };
        let plan = check(vec![row(WAIT, 3.1, 0.3, None), missed], &["dirty-cliff"], &[], &[]);
        assert_eq!(plan.tried.map(|tried| tried.verdict), Some("helps"));
        let candidate = plan.candidate.unwrap();
        assert!(plan.now.is_empty() && candidate.why.contains("does not show whether"), "{candidate:?}");
        assert_eq!(plan.expect[0], "Predicted: longest fsync 3.10 s → about 300 ms.");
    }

    #[test]
    fn a_change_that_follows_from_arithmetic_stays_where_the_twin_gives_no_verdict() {
        let mut plan = Plan { now: vec!["x".to_owned()], rules: vec!["starved-dirty-budget"], ..Plan::default() };
        arithmetic_only(&mut plan, "the twin misses this recording by 61 %");
        assert_eq!((plan.now.len(), plan.candidate.is_none()), (1, true));
        assert!(plan.arithmetic_only.is_some());
        plan.rules.push("dirty-cliff");
        arithmetic_only(&mut plan, "the twin misses this recording by 61 %");
        assert_eq!((plan.now.len(), plan.candidate.is_some()), (0, true));
        // A limit at which writers wait is raised: that helps as far as their bursts fit.
        let mut plan = Plan {
            now: vec!["sudo sysctl -w vm.dirty_ratio=4".to_owned()],
            rules: vec!["starved-dirty-budget"],
            helps_in_part: true,
            ..Plan::default()
        };
        arithmetic_only(&mut plan, "the twin misses this recording by 61 %");
        assert!(plan.now.is_empty() && plan.candidate.is_some());
    }

    #[test]
    fn a_plan_that_makes_a_missed_wait_longer_by_both_estimates_loses_its_commands() {
        let missed = |least, most| {
            let row = row(WAIT, 6.3, 12.0, Some(Doubt::BackTest));
            vec![Row { roughly: Some((least, most)), ..row }, row_of_risk()]
        };
        let plan = check(missed(8.8, 16.0), &[], &["dirty-cliff"], &[]);
        assert!(plan.candidate.is_none() && plan.now.is_empty(), "{plan:?}");
        assert!(
            plan.conflicts[0]
                .contains("this change may do harm (by both estimates longest fsync 6.30 s → 8.80 s to 16 s)"),
            "{plan:?}"
        );
        assert_eq!(plan.tried.map(|tried| (tried.verdict, tried.withheld.len())), Some((MAY_HARM, 1)));
        let plan = check(missed(5.0, 16.0), &[], &["dirty-cliff"], &[]);
        assert!(plan.candidate.is_some() && plan.tried.is_none(), "{plan:?}");
    }

    /// Data at risk, which are predicted and get less.
    fn row_of_risk() -> Row {
        Row { least: 1e6, ..row(PEAK, 8e7, 3e7, None) }
    }

    #[test]
    fn a_plan_whose_price_is_sure_and_whose_gain_is_not_is_a_candidate() {
        let after = |rule: &'static str, high: f64| {
            let now = vec!["sudo sysctl -w vm.dirty_ratio=5".to_owned()];
            let mut plan = Plan { now, rules: vec![rule], ..Plan::default() };
            let missed = Row { roughly: Some((2.0, 3.0)), high, ..row(WAIT, 6.3, 2.0, Some(Doubt::BackTest)) };
            let risk = Row { least: 1e6, ..row(PEAK, 8e6, 48e6, None) };
            let prediction = Prediction {
                back_test_error: Some(0.1),
                rows: vec![missed, risk],
                ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0))
            };
            tried(&mut plan, &prediction);
            plan
        };
        // This change follows from arithmetic alone, and the twin does not show the finding.
        assert!(
            after("starved-dirty-budget", 9.0).candidate.is_some_and(|one| one.why.contains("may not get shorter"))
        );
        assert_eq!(after("starved-dirty-budget", 4.0).now.len(), 1, "the wait surely gets shorter");
    }

    #[test]
    fn a_plan_that_does_not_help_loses_its_commands() {
        let plan = check(vec![row(WAIT, 3.1, 3.1, None)], &[], &["dirty-cliff"], &[]);
        assert!(plan.now.is_empty() && plan.conflicts[0].contains("this change does not help"), "{plan:?}");
        let tried = plan.tried.unwrap();
        assert_eq!((tried.verdict, tried.withheld.len()), ("does_not_help", 1));
    }

    #[test]
    fn a_plan_that_harms_or_makes_a_new_finding_loses_its_commands() {
        let plan = check(vec![row(WAIT, 0.3, 3.1, None)], &[], &["dirty-cliff"], &[]);
        assert!(
            plan.now.is_empty() && plan.conflicts[0].contains("this change does harm (longest fsync 300 ms"),
            "{plan:?}"
        );
        let plan = check(vec![row(WAIT, 3.1, 0.3, None)], &["dirty-cliff"], &[], &["starved-dirty-budget"]);
        assert!(plan.now.is_empty() && plan.conflicts[0].contains("starved-dirty-budget would appear"), "{plan:?}");
    }

    #[test]
    fn a_withheld_change_names_what_harms_and_no_figure_that_gets_better() {
        let dirtied = || Row { least: 1e6, ..row(DIRTIED, 15.3e9, 2.29e9, None) };
        let roughly = Row { roughly: Some((9.0, 12.0)), ..row("stall_seconds", 2.0, 9.0, Some(Doubt::BackTest)) };
        let plan = check(vec![dirtied(), row(WAIT, 1.0, 1.0, None), roughly], &["dirty-cliff"], &[], &[]);
        let said = plan.conflicts.join(" ");
        assert!(
            said.contains("this change does harm (by both estimates longest fsync, added up, 2.00 s → 9.00 s to 12 s)"),
            "{said}"
        );
    }

    #[test]
    fn a_wait_that_grows_more_than_another_shrinks_is_harm() {
        let named = |figure: &str, now, then| Row { figure: figure.to_owned(), ..row(figure, now, then, None) };
        let all = |total_then| {
            vec![row(WAIT, 1.6, 1.2, None), named("stall_seconds", 31.0, total_then), named(PEAK, 2e8, 5e7)]
        };
        let plan = check(all(61.0), &["dirty-cliff"], &[], &[]);
        assert!(plan.now.is_empty() && plan.conflicts[0].contains("this change does harm"), "{plan:?}");
        let plan = check(all(33.0), &["dirty-cliff"], &[], &[]);
        assert_eq!(plan.tried.map(|tried| tried.verdict), Some("helps"), "hardly longer");
        let much = vec![row(WAIT, 3.1, 0.3, None), named("stall_seconds", 6.0, 10.0)];
        let plan = check(much, &["dirty-cliff"], &[], &[]);
        assert_eq!(plan.expect[0], "Predicted: longest fsync 3.10 s → about 300 ms.");
        assert_eq!(plan.costs, ["Predicted: longest fsync 6.00 s → about 10 s."]);
    }

    #[test]
    fn a_twin_that_predict_calls_not_reliable_leaves_the_plan_as_arithmetic() {
        let told = |error| {
            let mut plan = Plan { now: vec!["x".to_owned()], rules: vec!["dirty-cliff"], ..Plan::default() };
            let prediction = Prediction {
                back_test_error: error,
                rows: vec![row(WAIT, 3.1, 0.3, None)],
                vanish: vec![seen("dirty-cliff")],
                ..Prediction::new(Vec::new(), KernelVersion::new(6, 12, 0))
            };
            tried(&mut plan, &prediction);
            (plan.arithmetic_only, plan.expect.len(), plan.now.len())
        };
        assert_eq!(told(Some(0.48)), (Some("the twin misses this recording by 48 %".to_owned()), 0, 0));
        assert_eq!(told(Some(0.25)), (None, 1, 1));
        assert!(told(None).0.is_some());
    }

    #[test]
    fn a_twin_that_does_not_show_the_finding_or_misses_leaves_the_plan_as_arithmetic() {
        let plan = check(vec![row(WAIT, 3.1, 3.1, None)], &[], &[], &[]);
        assert_eq!(plan.arithmetic_only.as_deref(), Some("the twin does not show the finding"));
        let plan = check(vec![row(WAIT, 3.1, 3.1, Some(Doubt::BackTest))], &[], &["dirty-cliff"], &[]);
        let why = "the twin predicts no wait and no amount of data that the recording has";
        assert_eq!(plan.arithmetic_only.as_deref(), Some(why), "an error of 10 % is no reason");
        assert_eq!((plan.now.len(), plan.tried), (0, None));
        let candidate = plan.candidate.unwrap();
        assert_eq!((candidate.commands.len(), candidate.why), (1, why.to_owned()));
    }
}
