// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps of a plan as settings of a twin, and the settings of an unconfigured kernel.

use floodline_analysis::prediction::Setting;
use floodline_analysis::report::{Step, When};
use floodline_record::version::KernelVersion;

/// The settings that the steps of a plan write now, and the steps that a twin cannot simulate.
pub fn of_steps(steps: &[Step]) -> (Vec<Setting>, Vec<String>) {
    let (mut settings, mut unknown) = (Vec::new(), Vec::new());
    for step in steps.iter().filter(|step| step.when != When::Keep) {
        match of_step(step) {
            Some(setting) => settings.push(setting),
            // A step without a command is a remark, as a shell has it.
            None => unknown.push(step.command.trim_start_matches("# ").to_owned()),
        }
    }
    (settings, unknown)
}

fn of_step(step: &Step) -> Option<Setting> {
    if let Some(name) = step.sysctl() {
        return Some(Setting::new(name, &step.value));
    }
    if let Some(rest) = step.write.strip_prefix("/sys/class/bdi/") {
        return Some(Setting::new(format!("bdi/{rest}"), &step.value));
    }
    if let Some(rest) = step.write.strip_prefix("/sys/block/") {
        let (name, knob) = rest.split_once("/queue/")?;
        return Some(Setting::new(format!("queue/{name}/{knob}"), &step.value));
    }
    if let Some(name) = step.write.strip_prefix("/dev/loop") {
        return step.value.starts_with("direct I/O on").then(|| Setting::new(format!("loop/loop{name}/direct_io"), 1));
    }
    if step.write.starts_with("/etc/systemd/journald.conf.d/") {
        return Some(Setting::new("journald/Storage", "volatile"));
    }
    match step.write.as_str() {
        "kernel command line" => Some(Setting::new("cgroup", "v2")),
        // The first release that has the fix is the first version in the text.
        "kernel" => {
            let version = step.value.split([' ', ',']).find_map(|word| word.parse::<KernelVersion>().ok())?;
            Some(Setting::new("kernel", version))
        }
        _ => None,
    }
}

/// The settings of an unconfigured kernel.
pub fn kernel_default() -> Vec<Setting> {
    vec![
        Setting::new("vm.dirty_ratio", 20),
        Setting::new("vm.dirty_background_ratio", 10),
        Setting::new("vm.dirty_expire_centisecs", 3000),
        Setting::new("vm.dirty_writeback_centisecs", 500),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_every_rule_are_settings_or_named_as_unknown() {
        for incident in floodline_testkit::incidents::INCIDENTS {
            let report = floodline_analysis::diagnose::diagnose(&(incident.make)().window(), None);
            for finding in &report.findings {
                let (settings, unknown) = of_steps(&finding.plan);
                let written = finding.plan.iter().filter(|step| step.when != When::Keep).count();
                assert_eq!(settings.len() + unknown.len(), written, "{}", finding.rule);
                assert!(unknown.iter().all(|step| !step.starts_with('#')), "{unknown:?}");
                for setting in &settings {
                    assert!(!setting.value.contains('\n') && !setting.key.is_empty(), "{setting:?}");
                }
            }
        }
    }
}
