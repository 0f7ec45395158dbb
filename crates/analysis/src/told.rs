// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report as it is printed: it has one change, that of its plan. A finding keeps the steps that the plan has too. The others lose
//! their commands, and each says why the plan leaves it out. Every form of a report is made of this one. Chooses no value.

use crate::plan::{SYSCTL_DROP_IN, is_one_setting};
use crate::report::{Finding, LeftOut, Plan, Report, Severity, Step, When};

/// Returns the report as it is printed.
pub fn told(report: &Report) -> Report {
    Report { findings: told_findings(&report.findings, report.plan.as_ref()), ..report.clone() }
}

/// Returns findings, worst first, as they are printed beside their plan.
pub fn told_findings(findings: &[Finding], plan: Option<&Plan>) -> Vec<Finding> {
    let told = |own: &Finding| {
        // The plan writes this file itself, once, for all its steps.
        let own_steps = own.plan.iter().filter(|step| step.write != SYSCTL_DROP_IN);
        let (kept, others): (Vec<&Step>, Vec<&Step>) = own_steps.partition(|step| has(plan, step));
        let left_out = |step: &Step| LeftOut { change: step.named(), why: why((findings, plan), own, step) };
        Finding {
            plan: kept.into_iter().cloned().collect(),
            left_out: others.into_iter().map(left_out).collect(),
            ..own.clone()
        }
    };
    findings.iter().map(told).collect()
}

/// Numbers of the steps of a finding, in order. The plan counts its steps from 1, without the later changes, which it has in words.
pub fn places(plan: &Plan, finding: &Finding) -> Vec<usize> {
    let is_its = |step: &Step| finding.plan.iter().any(|own| is_same(own, step));
    let numbered = (1..).zip(plan.steps.iter().filter(|step| step.when != When::Later));
    numbered.filter(|(_, step)| is_its(step)).map(|(place, _)| place).collect()
}

fn is_same(one: &Step, other: &Step) -> bool {
    (&one.write, &one.value) == (&other.write, &other.value)
}

/// Whether the plan has the step. A plan whose commands are withheld still has its later changes, as words.
fn has(plan: Option<&Plan>, step: &Step) -> bool {
    plan.is_some_and(|plan| {
        plan.steps.iter().any(|known| is_same(known, step))
            || (step.when == When::Later && plan.later.contains(&step.named()))
    })
}

/// Why the plan does not have a step of a finding: the conditions of [`crate::plan::merge`], in its order.
fn why((findings, plan): (&[Finding], Option<&Plan>), finding: &Finding, step: &Step) -> String {
    let worst = findings.first();
    if let Some(cause) = finding.explained_by {
        return format!("the plan is for {cause}, which causes this finding");
    }
    if let Some(worst) = worst.filter(|worst| worst.severity > Severity::Info && finding.severity == Severity::Info) {
        return format!("this finding does no harm, and {} does", worst.rule);
    }
    match plan.and_then(|plan| instead(findings, plan, step)) {
        Some((assignment, Some(rule))) => format!("the plan sets {assignment} for {rule}"),
        Some((assignment, None)) => format!("the plan sets {assignment}"),
        None => "it would undo a part of the plan".to_owned(),
    }
}

/// What the plan sets in place of a step, and the rule that asks for it: the same setting, or else its first threshold.
fn instead(findings: &[Finding], plan: &Plan, step: &Step) -> Option<(String, Option<&'static str>)> {
    let name = step.sysctl()?;
    let settings = || plan.steps.iter().filter(|known| known.sysctl().is_some());
    let same = settings().find(|known| known.sysctl().is_some_and(|other| is_one_setting(&other, &name)));
    let known = same.or_else(|| settings().next())?;
    let asks = |one: &&Finding| plan.rules.contains(&one.rule) && one.plan.iter().any(|own| is_same(own, known));
    Some((known.assignment()?, findings.iter().find(asks).map(|one| one.rule)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::step::{journald_volatile, sysctls};
    use crate::plan::merge;
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::INCIDENTS;

    fn finding(rule: &'static str, severity: Severity, changes: &[(&str, u64)]) -> Finding {
        let window = Fixture::healthy().settings((20, 0, 10, 0)).one_look().window();
        Finding { rule, severity, plan: sysctls(&window, changes), ..Finding::default() }
    }

    fn report(findings: Vec<Finding>) -> Report {
        let whole = crate::diagnose::diagnose(&Fixture::healthy().window(), None);
        Report { plan: merge(&findings), findings, ..whole }
    }

    fn left_out(report: &Report) -> Vec<String> {
        let told = told(report);
        let all = told.findings.iter().flat_map(|finding| &finding.left_out);
        all.map(|left| format!("{}: {}", left.change, left.why)).collect()
    }

    #[test]
    fn a_finding_keeps_only_the_steps_that_the_plan_has() {
        let one = finding("one", Severity::Critical, &[("vm.dirty_ratio", 10)]);
        let other =
            finding("other", Severity::Warning, &[("vm.dirty_bytes", 1 << 26), ("vm.dirty_expire_centisecs", 500)]);
        let report = report(vec![one, other]);
        let told = told(&report);
        let kept: Vec<Vec<String>> =
            told.findings.iter().map(|one| one.plan.iter().map(Step::named).collect()).collect();
        assert_eq!(kept, [["vm.dirty_ratio=10"], ["vm.dirty_expire_centisecs=500"]]);
        assert_eq!(left_out(&report), ["vm.dirty_bytes=67108864: the plan sets vm.dirty_ratio=10 for one"]);
        let places: Vec<Vec<usize>> =
            told.findings.iter().map(|one| places(told.plan.as_ref().unwrap(), one)).collect();
        assert_eq!(places, [[1], [2]]);
    }

    #[test]
    fn a_step_that_is_left_out_says_why() {
        let cause = finding("cause", Severity::Warning, &[("vm.dirty_ratio", 10)]);
        let mut effect = finding("effect", Severity::Warning, &[("vm.dirty_bytes", 1 << 26)]);
        effect.explained_by = Some("cause");
        let aside = finding("aside", Severity::Info, &[("vm.dirty_expire_centisecs", 500)]);
        let all = [
            "vm.dirty_bytes=67108864: the plan is for cause, which causes this finding",
            "vm.dirty_expire_centisecs=500: this finding does no harm, and cause does",
        ];
        assert_eq!(left_out(&report(vec![cause, effect, aside.clone()])), all);
        // Without a plan there is no change, and a finding has none of its own either.
        let bare = Finding { rule: "bare", severity: Severity::Warning, ..Finding::default() };
        let none = report(vec![bare, aside.clone()]);
        assert!(none.plan.is_none() && told(&none).findings[1].plan.is_empty());
        assert_eq!(left_out(&none), ["vm.dirty_expire_centisecs=500: this finding does no harm, and bare does"]);
        assert_eq!(left_out(&report(vec![aside])), [""; 0]);
        // A short age writes rewritten data as often as a small threshold does.
        let starved = finding("starved-dirty-budget", Severity::Critical, &[("vm.dirty_ratio", 30)]);
        let age = finding("other", Severity::Warning, &[("vm.dirty_expire_centisecs", 300)]);
        let why = "vm.dirty_expire_centisecs=300: the plan sets vm.dirty_ratio=30 for starved-dirty-budget";
        assert_eq!(left_out(&report(vec![starved, age])), [why]);
    }

    #[test]
    fn a_later_change_stays_with_its_finding_where_the_commands_are_withheld() {
        let later = Step {
            when: When::Later,
            write: "kernel".to_owned(),
            value: "6.12".to_owned(),
            command: "# Boot a kernel from 6.12 on.".to_owned(),
            undo: String::new(),
        };
        let both = vec![journald_volatile(), later.clone()];
        let mut report =
            report(vec![Finding { rule: "one", severity: Severity::Critical, plan: both, ..Finding::default() }]);
        let plan = report.plan.as_mut().unwrap();
        assert_eq!(plan.later, ["Boot a kernel from 6.12 on."]);
        plan.steps.clear();
        let told = told(&report);
        assert_eq!(told.findings[0].plan, [later]);
        assert!(places(told.plan.as_ref().unwrap(), &told.findings[0]).is_empty());
    }

    #[test]
    fn a_later_change_has_no_number_among_the_steps() {
        let mut one = finding("one", Severity::Critical, &[("vm.dirty_ratio", 10)]);
        let later = Step {
            when: When::Later,
            write: "the hook".to_owned(),
            value: "sync -f /data".to_owned(),
            command: "# Run sync -f /data.".to_owned(),
            undo: String::new(),
        };
        one.plan.insert(0, later);
        let told = told(&report(vec![one]));
        let plan = told.plan.as_ref().unwrap();
        assert!(plan.steps.iter().any(|step| step.when == When::Later), "{:?}", plan.steps);
        assert_eq!(places(plan, &told.findings[0]), [1]);
    }

    #[test]
    fn no_report_of_an_incident_has_a_command_that_its_plan_lacks() {
        for incident in INCIDENTS {
            let report = told(&crate::diagnose::diagnose(&(incident.make)().window(), None));
            let steps: Vec<&Step> = report.plan.iter().flat_map(|plan| &plan.steps).collect();
            for step in report.findings.iter().flat_map(|finding| &finding.plan) {
                assert!(steps.iter().any(|known| known.command == step.command), "{}: {step:?}", incident.name);
            }
        }
    }
}
