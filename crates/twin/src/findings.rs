// SPDX-License-Identifier: MIT OR Apache-2.0
//! The change that `doctor` prints for a finding, as settings of a twin, and what to type where there is none.

use crate::Twin;
use crate::changed::{NotChanged, of_steps};
use floodline_analysis::prediction::Setting;
use floodline_analysis::report::{Finding, Report};
use floodline_scenario::Scenario;

/// Adds the changes that `doctor` prints for these rules, and returns their steps that a twin cannot make. `report` is
/// doctor's: its joined plan is the one that people see.
///
/// # Errors
///
/// A rule has no finding in the report, or its change has no step that a twin can make.
pub fn add_findings(
    twin: &Twin,
    report: &Report,
    rules: &[&'static str],
    settings: &mut Vec<Setting>,
) -> Result<Vec<String>, NotChanged> {
    let mut unknown = Vec::new();
    for rule in rules {
        let Some(finding) = report.findings.iter().find(|finding| finding.rule == *rule) else {
            return Err(not_found(report, rule));
        };
        let (own, own_rest) = of_steps(&finding.plan);
        let joined = report.plan.as_ref().filter(|plan| plan.rules.contains(rule));
        // A plan without commands that act at once waits for a reboot, as a finding does that asks for nothing else.
        let (known, rest) = match joined {
            Some(plan) if !own.iter().all(is_move) => {
                let (known, rest) = of_steps(&plan.steps);
                (known.into_iter().filter(|one| !is_move(one)).collect(), rest)
            }
            _ => (own, own_rest),
        };
        if known.is_empty() {
            return Err(no_change(report, finding, &twin.scenario));
        }
        for one in known {
            if !settings.contains(&one) {
                settings.push(one);
            }
        }
        for one in rest {
            if !unknown.contains(&one) {
                unknown.push(one);
            }
        }
    }
    Ok(unknown)
}

/// Rules that are found, each once: those whose plans have a step that a twin can make, and the others.
fn found(report: &Report) -> (Vec<&'static str>, Vec<&'static str>) {
    let has_change = |finding: &&Finding| !of_steps(&finding.plan).0.is_empty();
    let (with, without): (Vec<&Finding>, Vec<&Finding>) = report.findings.iter().partition(has_change);
    let names = |of: Vec<&Finding>| -> Vec<&'static str> {
        of.iter().fold(Vec::new(), |mut names, finding| {
            if !names.contains(&finding.rule) {
                names.push(finding.rule);
            }
            names
        })
    };
    let with = names(with);
    let without = names(without).into_iter().filter(|rule| !with.contains(rule)).collect();
    (with, without)
}

/// The refusal of a rule without a finding, with the findings that there are.
fn not_found(report: &Report, rule: &str) -> NotChanged {
    let is_unchecked = report.not_checked.iter().any(|one| one.rule == rule);
    let what = match is_unchecked {
        true => format!("{rule} could not be checked in this recording"),
        false => format!("{rule} is not found in this recording"),
    };
    let hint = match found(report) {
        (with, without) if with.is_empty() && without.is_empty() => {
            "the recording has no finding; use --set KEY=VALUE".to_owned()
        }
        (with, without) if without.is_empty() => format!("found here: {}", with.join(", ")),
        (with, without) if with.is_empty() => {
            format!("found here, without a change to predict: {}; use --set KEY=VALUE", without.join(", "))
        }
        (with, without) => {
            format!("found here: {}; without a change to predict: {}", with.join(", "), without.join(", "))
        }
    };
    NotChanged::new(what, hint)
}

/// The refusal of a finding whose plan has no step that a twin can make, with what `doctor` says to do instead.
fn no_change(report: &Report, finding: &Finding, scenario: &Scenario) -> NotChanged {
    let rule = finding.rule;
    let keys = keys_of(rule, scenario);
    let (with, _) = found(report);
    let others = match with.is_empty() {
        true => String::new(),
        false => format!("; found here with a change to predict: {}", with.join(", ")),
    };
    let commands: Vec<&str> = finding.plan.iter().map(|step| step.command.as_str()).collect();
    match commands.is_empty() {
        true if finding.brief.expect.is_empty() => {
            NotChanged::new(format!("{rule} is found, and doctor prints no change for it"), format!("{keys}{others}"))
        }
        true => NotChanged::new(
            format!(
                "{rule} is found, and doctor prints no change for it: {}",
                finding.brief.expect.trim_end_matches('.')
            ),
            format!("{keys}{others}"),
        ),
        false => NotChanged::new(
            format!("the plan of {rule} has no step that a twin can make: {}", commands.join("; ")),
            format!("{keys}{others}"),
        ),
    }
}

/// What to type for a finding that has no command: the keys of the twin that it is about, with their present values.
fn keys_of(rule: &str, scenario: &Scenario) -> String {
    let mut keys = Vec::new();
    for (path, cgroup) in scenario.machine.cgroups.iter().filter(|_| rule == "io-limit-throttling") {
        for (device, max) in &cgroup.io_max {
            let rates = [("read_bandwidth", max.read_bandwidth), ("write_bandwidth", max.write_bandwidth)];
            let rates = rates.into_iter().filter_map(|(name, rate)| Some((name, rate?.to_string())));
            let requests = [("read_iops", max.read_iops), ("write_iops", max.write_iops)];
            let requests = requests.into_iter().filter_map(|(name, rate)| Some((name, rate?.to_string())));
            // A path of several parts is quoted, as in the scenario.
            let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            let path = if is_plain { path.clone() } else { format!("{path:?}") };
            keys.extend(
                // A value has a unit after a space: a shell needs quotes.
                rates
                    .chain(requests)
                    .map(|(name, now)| format!("--set 'machine.cgroups.{path}.io_max.{device}.{name}={now}'")),
            );
        }
    }
    match keys.as_slice() {
        [] => "give the change with --set KEY=VALUE; floodline twin host.flr -o - prints every key".to_owned(),
        keys => format!("give the change with --set; now: {}", keys.join(" ")),
    }
}

/// Whether a setting takes a reboot.
pub(crate) fn is_move(setting: &Setting) -> bool {
    matches!(setting.key.as_str(), "kernel" | "cgroup")
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::report::{Brief, NotChecked, Step};
    use floodline_scenario::ScenarioFile;

    fn finding(rule: &'static str, writes: &[(&str, &str)]) -> Finding {
        let step = |(write, value): &(&str, &str)| Step {
            write: (*write).to_owned(),
            value: (*value).to_owned(),
            undo: String::new(),
            command: format!("set {write}"),
            when: floodline_analysis::report::When::Now,
        };
        let brief = Brief { expect: "Read the kernel log.".to_owned(), ..Brief::default() };
        Finding { rule, plan: writes.iter().map(step).collect(), brief, ..Finding::default() }
    }

    /// A scenario with limits of I/O.
    fn held() -> Scenario {
        let text = r#"
            name = "held"
            summary = "Cgroups with limits of their own"
            [machine]
            memory = "2 GiB"
            cpus = 1
            [machine.devices.vda]
            size = "2 GiB"
            write_bandwidth = "100 MB/s"
            read_bandwidth = "100 MB/s"
            [machine.mounts."/data"]
            type = "ext4"
            device = "vda"
            [machine.cgroups."a/b".io_max.vda]
            write_bandwidth = "2 MB/s"
            [machine.cgroups.a]
            [machine.cgroups.tenant.io_max.vda]
            write_iops = "50 IO/s"
            [workload]
            duration = "5 s"
            [workload.tasks.one]
            steps = [{ write = { file = "/data/x", total = "1 MiB" } }]
        "#;
        ScenarioFile::parse(text).unwrap().variants.remove("default").unwrap()
    }

    #[test]
    fn a_finding_without_a_command_names_the_keys_to_set_with_their_present_values() {
        let scenario = held();
        let hint = keys_of("io-limit-throttling", &scenario);
        assert!(hint.contains("machine.cgroups.tenant.io_max.vda.write_iops=50"), "{hint}");
        assert!(hint.contains(r#"machine.cgroups."a/b".io_max.vda.write_bandwidth=2 MB/s"#), "{hint}");
        // Each key of the hint is one that a change takes.
        assert!(scenario.changed("machine.cgroups.tenant.io_max.vda.write_iops", "90 IO/s").is_ok());
        assert!(scenario.changed(r#"machine.cgroups."a/b".io_max.vda.write_bandwidth"#, "8 MB/s").is_ok());
        assert!(!keys_of("dirty-cliff", &scenario).contains("io_max"), "it is another finding");
    }

    #[test]
    fn a_refusal_says_what_there_is_instead() {
        let check = |findings: &[Finding], rule: &str, what: &str, hint: &str| {
            let mut report =
                floodline_analysis::diagnose::diagnose(&floodline_testkit::Fixture::healthy().window(), None);
            report.not_checked = vec![NotChecked { rule: "dominant-writer", gaps: Vec::new() }];
            report.findings = findings.to_vec();
            let refused = match findings.iter().find(|finding| finding.rule == rule) {
                Some(found) => no_change(&report, found, &held()),
                None => not_found(&report, rule),
            };
            assert_eq!((refused.to_string().as_str(), refused.hint.as_str()), (what, hint));
        };
        let (stalled, cliff) =
            (finding("stalled-device", &[]), finding("dirty-cliff", &[("/proc/sys/vm/dirty_bytes", "1")]));
        let not_found = "dirty-cliff is not found in this recording";
        check(&[], "dirty-cliff", not_found, "the recording has no finding; use --set KEY=VALUE");
        let other = "found here, without a change to predict: stalled-device; use --set KEY=VALUE";
        check(&[stalled.clone(), stalled.clone()], "dirty-cliff", not_found, other);
        let both = [stalled.clone(), cliff.clone()];
        let here = "found here: dirty-cliff; without a change to predict: stalled-device";
        check(&both, "dominant-writer", "dominant-writer could not be checked in this recording", here);
        check(
            &[cliff],
            "saturated-device",
            "saturated-device is not found in this recording",
            "found here: dirty-cliff",
        );
        let none = "stalled-device is found, and doctor prints no change for it: Read the kernel log";
        let keys = "give the change with --set KEY=VALUE; floodline twin host.flr -o - prints every key";
        check(&[stalled], "stalled-device", none, keys);
        check(&both, "stalled-device", none, &format!("{keys}; found here with a change to predict: dirty-cliff"));
        let foreign = finding("saturated-device", &[("crontab", "later")]);
        check(
            &[foreign],
            "saturated-device",
            "the plan of saturated-device has no step that a twin can make: set crontab",
            keys,
        );
    }
}
