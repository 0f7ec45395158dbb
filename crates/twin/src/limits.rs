// SPDX-License-Identifier: MIT OR Apache-2.0
//! The smallest cgroup limit before and after a change, by arithmetic over all cgroups of the recording. A run of the
//! twin has only the cgroups in which something was written, and the smallest limit is often that of an idle one.

use crate::shown::smallest;
use floodline_analysis::budget::{AsIf, assume, budgets};
use floodline_analysis::prediction::Setting;
use floodline_record::window::Window;
use floodline_scenario::ByteSize;
use std::borrow::Cow;

/// The smallest limit now and after the change, in bytes. `None` where the recording has none or a condition cannot be
/// assumed.
pub(crate) fn smallest_budgets(window: &Window, settings: &[Setting]) -> Option<(f64, f64)> {
    let budgets = budgets(window);
    let now = smallest(&budgets)?;
    let conditions: Vec<String> = settings.iter().filter_map(condition).collect();
    if conditions.is_empty() {
        return Some((now, now));
    }
    let as_if: AsIf = conditions.join(",").parse().ok()?;
    let then = assume(window, Cow::Borrowed(&budgets), &as_if).ok()?.then;
    Some((now, smallest(&then)?))
}

/// A setting as a condition of budgets; `None` if no budget depends on it.
fn condition(setting: &Setting) -> Option<String> {
    const VM: [&str; 4] =
        ["vm.dirty_ratio", "vm.dirty_bytes", "vm.dirty_background_ratio", "vm.dirty_background_bytes"];
    let (key, value) = (setting.key.as_str(), setting.value.as_str());
    let key = key.strip_prefix("machine.sysctl.").unwrap_or(key);
    let size = || value.parse::<ByteSize>().map_or_else(|_| value.to_owned(), |size| size.bytes().to_string());
    match key {
        "cgroup" | "machine.cgroup_mode" | "kernel" => Some(format!("{key}={value}")),
        "memory" | "machine.memory" => Some(format!("memory={}", size())),
        _ if VM.contains(&key) => Some(format!("{key}={}", size())),
        _ => {
            if key.starts_with("cgroup/") && (key.ends_with("/memory.max") || key.ends_with("/memory.high")) {
                return Some(format!("{key}={}", size()));
            }
            let (path, knob) = key.strip_prefix("machine.cgroups.")?.rsplit_once('.')?;
            let file = match knob {
                "memory_max" => "memory.max",
                "memory_high" => "memory.high",
                _ => return None,
            };
            Some(format!("cgroup/{}/{file}={}", path.trim_matches('"'), size()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_budgets_depend_on_are_conditions() {
        let check = |key: &str, value: &str, expect: Option<&str>| {
            assert_eq!(condition(&Setting::new(key, value)).as_deref(), expect, "{key}={value}");
        };
        check("vm.dirty_bytes", "64 MiB", Some("vm.dirty_bytes=67108864"));
        check("vm.dirty_bytes", "64M", Some("vm.dirty_bytes=64M"));
        check("machine.sysctl.vm.dirty_bytes", "16777216", Some("vm.dirty_bytes=16777216"));
        check("machine.cgroups.\"a/b\".memory_max", "256 MiB", Some("cgroup/a/b/memory.max=268435456"));
        check("cgroup/a/memory.high", "max", Some("cgroup/a/memory.high=max"));
        check("machine.cgroups.a.io_weight", "50", None);
        check("queue/sda/wbt_lat_usec", "0", None);
        check("vm.dirty_expire_centisecs", "500", None);
    }

    #[test]
    fn a_smaller_threshold_makes_the_smallest_limit_smaller() {
        let mut judged = 0;
        for incident in floodline_testkit::incidents::INCIDENTS {
            let window = (incident.make)().window();
            let known = smallest_budgets(&window, &[]);
            assert_eq!(known.map(|(now, _)| now), crate::shown::smallest_budget(&window));
            let Some((now, then)) = smallest_budgets(&window, &[Setting::new("vm.dirty_bytes", "65536")]) else {
                continue;
            };
            assert!(then < now, "{now} {then}");
            judged += 1;
        }
        assert!(judged > 0, "no incident has a cgroup with a limit");
    }
}
