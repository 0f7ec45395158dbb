// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits of cgroups before and after a change, by arithmetic over all cgroups of the recording. A run of the
//! twin has only the cgroups in which something was written, and the smallest limit is often that of an idle one.

use floodline_analysis::budget::{AsIf, Budgets, CgroupBudget, assume, budgets};
use floodline_analysis::diagnose::cgroup::label;
use floodline_analysis::prediction::{Limit, LimitOf, Limits, Setting};
use floodline_record::id::EntityId;
use floodline_record::window::Window;
use floodline_scenario::ByteSize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The limits of cgroups now and after the change. `None` where the recording has none or a condition cannot be assumed.
pub(crate) fn limits(window: &Window, settings: &[Setting]) -> Option<Limits> {
    let now = budgets(window);
    let conditions: Vec<String> = settings.iter().filter_map(condition).collect();
    if conditions.is_empty() {
        return of(window, &now, &now);
    }
    let as_if: AsIf = conditions.join(",").parse().ok()?;
    let then = assume(window, Cow::Borrowed(&now), &as_if).ok()?.then;
    of(window, &now, &then)
}

fn of(window: &Window, now: &Budgets, then: &Budgets) -> Option<Limits> {
    // Without a cgroup that has a limit now, as on cgroup v1, each limit is new.
    if own(now).next().is_none() {
        let new = own(then).map(|(one, then_bytes)| {
            let limit = Limit { now_bytes: f64::INFINITY, then_bytes };
            LimitOf { cgroup: label(window, one.cgroup), limit, used_share: None }
        });
        return Limits::of(new.collect());
    }
    let then: BTreeMap<EntityId, f64> = own(then).map(|(one, bytes)| (one.cgroup, bytes)).collect();
    let all = own(now).filter_map(|(one, now_bytes)| {
        let limit = Limit { now_bytes, then_bytes: *then.get(&one.cgroup)? };
        Some(LimitOf { cgroup: label(window, one.cgroup), limit, used_share: one.domain.over_ratio() })
    });
    Limits::of(all.collect())
}

/// The cgroups that have a limit of their own, and no other one with a limit below them.
fn own(budgets: &Budgets) -> impl Iterator<Item = (&CgroupBudget, f64)> {
    let own = budgets.cgroups.iter().filter(|one| !one.is_inner && one.path.as_bytes() != b"/");
    own.filter_map(|one| Some((one, one.domain.thresh?.high.0 as f64)))
}

/// The smallest limit of a cgroup, bytes.
pub(crate) fn smallest(budgets: &Budgets) -> Option<f64> {
    own(budgets).map(|(_, bytes)| bytes).reduce(f64::min)
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
            let known = limits(&window, &[]);
            assert_eq!(known.map(|limits| limits.smallest.now_bytes), crate::shown::smallest_budget(&window));
            let Some(told) = limits(&window, &[Setting::new("vm.dirty_bytes", "65536")]) else { continue };
            for Limit { now_bytes, then_bytes } in [told.smallest, told.median] {
                assert!(then_bytes < now_bytes, "{told:?}");
            }
            assert!(!told.starved.is_empty() && told.starved.len() <= told.cgroups, "{told:?}");
            judged += 1;
        }
        assert!(judged > 0, "no incident has a cgroup with a limit");
    }

    #[test]
    fn limits_that_a_move_to_version_2_brings_are_compared_with_none() {
        use floodline_record::id::Hierarchy;
        use floodline_record::units::{Bytes, Limit as Value};
        let host = floodline_testkit::Fixture::healthy().hierarchy(Hierarchy::V1Memory);
        let of = |path: &'static str, max: u64| {
            move |fixture: floodline_testkit::Fixture| {
                fixture
                    .cgroup(path, move |_, row| {
                        row.memory_current = Some(Bytes(100 << 20));
                        row.anon = Some(Bytes(0));
                        row.file_dirty = Some(Bytes(0));
                        row.file_writeback = Some(Bytes(0));
                    })
                    .limits(path, move |_, row| row.memory_max = Some(Value(max)))
            }
        };
        let window = of("/b", 512 << 20)(of("/a", 256 << 20)(host)).window();
        assert_eq!(limits(&window, &[]), None, "version 1 has no dirty limit of a cgroup");
        let told = limits(&window, &[Setting::new("cgroup", "v2")]).expect("the move brings limits");
        assert!(told.cgroups >= 2 && told.smallest.now_bytes.is_infinite(), "{told:?}");
        assert!(told.smallest.then_bytes > 1e6 && told.compared().is_none(), "{told:?}");
        assert_eq!(told.starved[0].cgroup, "/a", "the smallest one is named first");
    }
}
