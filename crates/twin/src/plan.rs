// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan file of a change that was tried on a twin: the host it was made for, each knob with its old and new value,
//! the evidence, and the expected effect.

use crate::changed::of_steps;
use crate::predict::Measured;
use floodline_analysis::advise::knob::knob;
use floodline_analysis::advise::step;
use floodline_analysis::at_boot::line_in_force;
use floodline_analysis::change::{Boot, Change, ChangePlan, Fingerprint, SCHEMA};
use floodline_analysis::knob_of::knob_of;
use floodline_analysis::plan::merge;
use floodline_analysis::prediction::{Prediction, Setting, shown_value};
use floodline_analysis::ramp::{Price, ramp};
use floodline_analysis::report::{Finding, Plan, Step, When};
use floodline_analysis::tried::{cost_of_trial, price};
use floodline_record::window::Window;

/// Figure that decides if a change helped.
const ENDPOINT: &str = "stall_seconds_per_hour";

/// The settings that differ from those of the host.
pub fn changed<'a>(window: &Window, settings: &'a [Setting]) -> Vec<&'a Setting> {
    let old = |key: &str| knob(key).and_then(|knob| knob.present(window)).map(|value| value.to_string());
    settings.iter().filter(|one| old(&one.key).is_none_or(|old| old != one.value)).collect()
}

/// Values that restore the sysctls of a plan, as `NAME=VALUE`: of a bytes/ratio pair the member that is in force. Empty
/// if one of them was not read.
pub fn undo(window: &Window, settings: &[Setting]) -> Vec<String> {
    let of_vm = changed(window, settings).into_iter().filter(|one| one.key.starts_with("vm."));
    of_vm.map(|one| restoring(window, &one.key)).collect::<Option<Vec<String>>>().unwrap_or_default()
}

/// The value of a knob in the recording.
fn old(window: &Window, key: &str) -> Option<String> {
    knob(key).and_then(|knob| knob.present(window)).map(|value| value.to_string())
}

/// What restores a knob, as `NAME=VALUE`; `None` if it was not read.
fn restoring(window: &Window, key: &str) -> Option<String> {
    in_force(window, key).or_else(|| Some(format!("{key}={}", old(window, key)?)))
}

/// The other member of the pair of a knob, as `NAME=VALUE`, if that one is in force.
fn in_force(window: &Window, key: &str) -> Option<String> {
    let other = knob(key)?.pair.filter(|_| old(window, key).as_deref() == Some("0"))?;
    Some(format!("{other}={}", old(window, other)?))
}

/// Commands that make a change and commands that undo it, as `doctor` prints them. `steps` are those of doctor's plans: they
/// know how to change what is no sysctl.
pub(crate) fn commands(window: &Window, settings: &[Setting], steps: &[Step]) -> (Vec<String>, Vec<String>) {
    let (sysctls, others): (Vec<&Setting>, Vec<&Setting>) =
        changed(window, settings).into_iter().partition(|one| one.key.starts_with("vm."));
    let sysctls: Vec<(&str, u64)> =
        sysctls.iter().filter_map(|one| Some((one.key.as_str(), one.value.parse().ok()?))).collect();
    let mut plan = step::sysctls(window, &sysctls);
    plan.retain(|step| step.when == When::Now);
    let is_of = |step: &&Step, one: &Setting| of_steps(std::slice::from_ref(*step)).0.contains(one);
    plan.extend(others.iter().filter_map(|one| steps.iter().find(|step| is_of(step, one)).cloned()));
    let merged = merge(&[Finding { plan, ..Finding::default() }]).unwrap_or_default();
    (merged.now, merged.undo)
}

/// The plan of settings. `longest_pause_s` is the longest pause that the change itself may cause.
pub fn plan(
    window: &Window,
    settings: &[Setting],
    prediction: Option<&Prediction>,
    measured: &Measured,
    longest_pause_s: f64,
) -> ChangePlan {
    let facts = window.facts.as_ref();
    let fingerprint = Fingerprint {
        hostname: facts.map(|facts| facts.hostname.to_string()).filter(|name| !name.is_empty()),
        kernel: facts.map(|facts| facts.kernel_release.to_string()).filter(|release| !release.is_empty()),
        boot_id: facts.and_then(|facts| facts.boot_id.as_ref()).map(|id| id.as_str().to_owned()),
        mem_total_bytes: facts.and_then(|facts| facts.mem_total).map(|bytes| bytes.0),
    };
    let changes = changes(window, settings);
    let undo = changes.iter().map(|change| restoring(window, &change.knob)).collect::<Option<Vec<String>>>();
    let rows = || prediction.iter().flat_map(|prediction| &prediction.rows);
    let expected = prediction.map(Prediction::expected).unwrap_or_default();
    let (cost, is_free) = prediction.map(price).unwrap_or_default();
    let ramp = ramp(window, &changes, &Price { expected: expected.clone(), cost, is_free });
    let evidence = rows()
        .filter(|row| row.is_measured && !row.figure.starts_with("program "))
        .map(|row| format!("{}: {} in the recording", row.label, shown_value(row.unit, row.now)))
        .collect();
    let boot = at_boot(window, &changes);
    let missed = prediction
        .is_none_or(|prediction| prediction.back_test_error.is_none_or(|error| error > crate::backtest::MISS_MAX));
    ChangePlan {
        schema: SCHEMA.to_owned(),
        fingerprint,
        changes,
        rules: measured.said.seen.iter().map(|seen| seen.rule.to_owned()).collect(),
        evidence,
        expected,
        arithmetic_only: missed
            .then(|| "the back-test of the twin misses the recording by more than 25 % (median)".to_owned()),
        longest_pause_s,
        endpoint: ENDPOINT.to_owned(),
        boot,
        undo: undo.unwrap_or_default(),
        ramp: Some(ramp),
    }
}

/// Returns what lines of files leave in force of the knobs of a change at boot: of a bytes/ratio pair one member, once.
fn at_boot(window: &Window, changes: &[Change]) -> Vec<Boot> {
    let lines = window.facts.as_ref().map_or(&[][..], |facts| &facts.sysctl_lines);
    let mut found: Vec<Boot> = Vec::new();
    for line in changes.iter().filter_map(|change| line_in_force(lines, &change.knob)) {
        let by = format!("{}:{}", line.file, line.line);
        let boot = Boot { knob: line.key.to_string(), value: line.value.to_string(), by };
        if !found.contains(&boot) {
            found.push(boot);
        }
    }
    found
}

/// The settings that differ from those of the host, with their old values.
fn changes(window: &Window, settings: &[Setting]) -> Vec<Change> {
    let change = |setting: &Setting| Change {
        knob: setting.key.clone(),
        old: old(window, &setting.key),
        new: setting.value.clone(),
        in_force: in_force(window, &setting.key),
    };
    changed(window, settings).into_iter().map(change).collect()
}

/// Adds the ramp to a plan of `doctor` whose change is to be made now, if `floodline apply` can make all of it.
pub(crate) fn add_ramp(plan: &mut Plan, window: &Window) {
    let steps = plan.steps.iter().filter(|step| step.when == When::Now);
    let settings: Option<Vec<Setting>> =
        steps.map(|step| knob_of(step).map(|(name, value)| Setting::new(name, value))).collect();
    let changes = changes(window, &settings.unwrap_or_default());
    if changes.is_empty() || (plan.now.is_empty() && plan.candidate.is_none()) {
        return;
    }
    let expected = plan.tried.as_ref().map(|tried| tried.expected.clone()).unwrap_or_default();
    let cost = cost_of_trial(plan);
    // A wait may get longer where its interval reaches above the value of now.
    let may_grow = expected.iter().any(|one| one.unit == "seconds" && one.high > one.now);
    let is_free = cost.is_none() && !may_grow && plan.candidate.is_none() && plan.is_tried_to_help();
    plan.ramp = Some(ramp(window, &changes, &Price { expected, cost, is_free }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::facts::SysctlLine;
    use floodline_testkit::Fixture;

    #[test]
    fn the_last_line_that_sets_a_knob_or_its_pair_at_boot_is_in_the_plan() {
        let mut window = Fixture::healthy().settings((20, 0, 10, 0)).window();
        let line = |file: &str, line, key: &str, value: &str| SysctlLine {
            file: file.into(),
            line,
            key: key.into(),
            value: value.into(),
        };
        window.facts.as_mut().unwrap().sysctl_lines = vec![
            line("/etc/sysctl.d/50-local.conf", 7, "vm.dirty_bytes", "33554432"),
            line("/etc/sysctl.d/99-sysctl.conf", 12, "vm.dirty_ratio", "20"),
            line("/etc/sysctl.d/99-sysctl.conf", 13, "vm.laptop_mode", "0"),
        ];
        let settings = [Setting::new("vm.dirty_bytes", "134217728"), Setting::new("vm.dirty_expire_centisecs", "1500")];
        let boot = plan(&window, &settings, None, &Measured::default(), 0.0).boot;
        let by = "/etc/sysctl.d/99-sysctl.conf:12".to_owned();
        let ratio = [Boot { knob: "vm.dirty_ratio".to_owned(), value: "20".to_owned(), by }];
        assert_eq!(boot, ratio);
        // Both members of the pair change: boot leaves one in force.
        let both = [Setting::new("vm.dirty_bytes", "134217728"), Setting::new("vm.dirty_ratio", "0")];
        assert_eq!(plan(&window, &both, None, &Measured::default(), 0.0).boot, ratio);
        // The kernel refuses bytes of zero, which leave the ratio in force.
        let refused = line("/etc/sysctl.d/99-sysctl.conf", 14, "vm.dirty_bytes", "0");
        window.facts.as_mut().unwrap().sysctl_lines.push(refused);
        assert_eq!(plan(&window, &both, None, &Measured::default(), 0.0).boot, ratio);
    }

    #[test]
    fn a_setting_that_the_host_has_is_neither_changed_nor_undone() {
        // Ratios of 20 and 10, as the kernel starts with.
        let window = Fixture::healthy().settings((20, 0, 10, 0)).window();
        let settings = [Setting::new("vm.dirty_ratio", "20"), Setting::new("vm.dirty_background_bytes", "33554432")];
        let keys: Vec<&str> = changed(&window, &settings).iter().map(|one| one.key.as_str()).collect();
        assert_eq!(keys, ["vm.dirty_background_bytes"]);
        assert_eq!(undo(&window, &settings), ["vm.dirty_background_ratio=10"]);
    }

    #[test]
    fn a_plan_names_the_pair_that_is_in_force_and_what_restores_it() {
        let window = Fixture::healthy().settings((20, 0, 10, 0)).window();
        let settings = [Setting::new("vm.dirty_background_bytes", "33554432"), Setting::new("vm.dirty_bytes", "1")];
        let plan = plan(&window, &settings, None, &Measured::default(), 0.2);
        assert_eq!(plan.undo, ["vm.dirty_background_ratio=10", "vm.dirty_ratio=20"]);
        let last = plan.ramp.as_ref().and_then(|ramp| ramp.steps.last()).expect("it has steps");
        assert_eq!(last.set, ["vm.dirty_background_bytes=33554432", "vm.dirty_bytes=1"]);
        let told = |change: &Change| (change.old.clone(), change.in_force.clone());
        assert_eq!(told(&plan.changes[0]), (Some("0".to_owned()), Some("vm.dirty_background_ratio=10".to_owned())));
        let age = [Setting::new("vm.dirty_expire_centisecs", "100")];
        let aged = super::plan(&window, &age, None, &Measured::default(), 0.2);
        assert_eq!((told(&aged.changes[0]).1, aged.undo.len()), (None, 1));
    }

    #[test]
    fn every_knob_has_the_commands_that_doctor_prints() {
        let window = Fixture::healthy().settings((20, 0, 10, 0)).window();
        let steps = [step::no_strict_limit("254:16").unwrap()];
        let settings =
            [Setting::new("vm.dirty_background_bytes", 33_554_432), Setting::new("bdi/254:16/strict_limit", 0)];
        let (now, undo) = commands(&window, &settings, &steps);
        assert_eq!(
            now,
            [
                "sudo sysctl -w vm.dirty_background_bytes=33554432",
                "echo 0 | sudo tee /sys/class/bdi/254:16/strict_limit"
            ]
        );
        assert_eq!(
            undo,
            ["echo 1 | sudo tee /sys/class/bdi/254:16/strict_limit", "sudo sysctl -w vm.dirty_background_ratio=10"]
        );
    }

    #[test]
    fn a_plan_of_doctor_has_a_ramp_if_apply_can_make_all_of_it() {
        let window = Fixture::healthy().settings((20, 0, 10, 0)).window();
        let step = |write: &str, value: &str| Step {
            write: write.to_owned(),
            value: value.to_owned(),
            when: When::Now,
            undo: String::new(),
            command: String::new(),
        };
        let of = |steps: Vec<Step>, now: &[&str]| {
            let now = now.iter().map(|one| (*one).to_owned()).collect();
            let mut plan = Plan { steps, now, ..Plan::default() };
            add_ramp(&mut plan, &window);
            plan.ramp.map(|ramp| ramp.steps.last().expect("a step").set.clone())
        };
        let background = step("/proc/sys/vm/dirty_background_bytes", "8388608");
        let set = Some(vec!["vm.dirty_background_bytes=8388608".to_owned()]);
        assert_eq!(of(vec![background.clone()], &["sysctl"]), set);
        assert_eq!(of(vec![background.clone()], &[]), None, "it is withheld");
        assert_eq!(of(vec![background, step("a hook", "sync")], &["sysctl"]), None);
    }

    #[test]
    fn a_plan_of_doctor_says_that_nothing_gets_worse_only_after_a_trial_without_a_reservation() {
        use floodline_analysis::change::Expected;
        use floodline_analysis::report::{Candidate, TriedPlan};
        let window = Fixture::healthy().settings((20, 0, 10, 0)).window();
        let step = Step {
            write: "/proc/sys/vm/dirty_ratio".to_owned(),
            value: "8".to_owned(),
            when: When::Now,
            undo: String::new(),
            command: String::new(),
        };
        let of = |tried: bool, candidate: Option<Candidate>, costs: &[&str], high: f64| {
            let (figure, unit) = ("stall_seconds".to_owned(), "seconds".to_owned());
            let expected = vec![Expected { figure, unit, now: 13.0, then: 11.0, low: 4.0, high }];
            let tried = tried.then(|| TriedPlan { verdict: "helps", expected, ..TriedPlan::default() });
            let costs = costs.iter().map(|one| (*one).to_owned()).collect();
            let now = vec!["sysctl".to_owned()];
            let mut plan = Plan { steps: vec![step.clone()], now, tried, candidate, costs, ..Plan::default() };
            add_ramp(&mut plan, &window);
            plan.ramp.map(|ramp| (ramp.why, ramp.steps.len())).expect("a ramp")
        };
        let (free, near) =
            (of(true, None, &["More data is lost."], 12.0), "One step: no value changes by more than a factor of 4.");
        assert!(free.0.ends_with("and no predicted figure gets worse."), "{free:?}");
        assert_eq!(of(false, None, &[], 12.0), (near.to_owned(), 1), "it was not tried");
        assert_eq!(of(true, Some(Candidate::default()), &[], 12.0), (near.to_owned(), 1), "with a reservation");
        assert_eq!(of(true, None, &[], 30.0), (near.to_owned(), 1), "the wait may get longer");
        for cost in ["Predicted: dirty-cliff appears.", "On a slow disk: a wait.", "A wait may get longer: x."] {
            let (why, steps) = of(true, None, &[cost], 12.0);
            assert!(steps == 2 && why.starts_with("Several steps, because the change has a cost: "), "{why}");
        }
    }

    #[test]
    fn a_plan_is_for_the_boot_that_was_recorded() {
        let boot = |id: Option<&str>| {
            let window = Fixture::healthy().facts(|facts| facts.boot_id = id.map(Into::into)).window();
            let settings = [Setting::new("vm.dirty_background_bytes", "33554432")];
            plan(&window, &settings, None, &Measured::default(), 0.2).fingerprint.boot_id
        };
        assert_eq!(
            boot(Some("3b1f0c52-9d0e-4a77-8a53-6a1d2f7c9e10")).as_deref(),
            Some("3b1f0c52-9d0e-4a77-8a53-6a1d2f7c9e10")
        );
        assert_eq!(boot(None), None);
    }
}
