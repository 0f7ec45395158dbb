// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of a change as a file: `advise` writes it, `apply` reads it. It names the host it was made for, every knob
//! with its old and its new value, what is expected, and how the result is judged. It comes from a file and may have been
//! edited by hand: `apply` checks every field against the host before it writes. All text is unescaped and must be
//! escaped where it is shown.

use crate::report::Step;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema of this form.
pub const SCHEMA: &str = "floodline.plan/1";

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePlan {
    /// [`SCHEMA`].
    pub schema: String,
    /// The host that the plan was made for.
    pub fingerprint: Fingerprint,
    /// What is changed, in the order of the writes.
    pub changes: Vec<Change>,
    /// Rules whose findings the plan answers.
    pub rules: Vec<String>,
    /// What was measured, one sentence each.
    pub evidence: Vec<String>,
    /// What the twin expects. Empty if the plan is arithmetic only.
    pub expected: Vec<Expected>,
    /// Why the model does not support the plan, if it does not: a failed back-test, for example.
    pub arithmetic_only: Option<String>,
    /// Longest pause that the change itself may cause, in seconds.
    pub longest_pause_s: f64,
    /// Figure that decides if the change helped, such as `stall_seconds_per_hour`.
    pub endpoint: String,
    /// What sets each knob at boot now: file and line, or nothing.
    pub boot: Vec<Boot>,
}

/// What identifies a host and its state. Absent fields are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// Name of the host.
    pub hostname: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Option<String>,
    /// Memory, in bytes.
    pub mem_total_bytes: Option<u64>,
}

/// One knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Name of the knob: `vm.dirty_bytes`, `bdi/8:0/max_ratio`, `queue/sda/wbt_lat_usec`, `cgroup/PATH/memory.high`,
    /// `loop/loop0/direct_io` or `journald/Storage`.
    pub knob: String,
    /// Value that was in force, if it was read. For a member of a bytes/ratio pair, 0 means that the other member was.
    pub old: Option<String>,
    /// Value to set.
    pub new: String,
}

/// One predicted figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Name of the figure.
    pub figure: String,
    /// Its unit, such as `s` or `bytes`.
    pub unit: String,
    /// Value now.
    pub now: f64,
    /// Predicted value.
    pub then: f64,
    /// Lower end of the 90 % interval.
    pub low: f64,
    /// Upper end of the 90 % interval.
    pub high: f64,
}

/// What sets a knob at boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Name of the knob.
    pub knob: String,
    /// Value that boot sets.
    pub value: String,
    /// File and line that set it.
    pub by: String,
}

/// Name of the knob that sets where journald keeps its journal.
pub const JOURNALD_STORAGE: &str = "journald/Storage";

/// The knob that a step of a finding changes and the value it gets, as [`Change`] has them. `None` if `apply` cannot do what
/// the step does.
pub fn knob_of(step: &Step) -> Option<(String, String)> {
    let (path, value) = (step.write.as_str(), step.value.as_str());
    if path.starts_with("/etc/systemd/journald.conf.d/") {
        return Some((JOURNALD_STORAGE.to_owned(), value.rsplit_once("Storage=")?.1.to_owned()));
    }
    if let Some(device) = path.strip_prefix("/dev/loop") {
        return (value == "direct I/O on").then(|| (format!("loop/loop{device}/direct_io"), "1".to_owned()));
    }
    let is_value = value == "max" || value.parse::<u64>().is_ok();
    name_of_path(path).filter(|_| is_value).map(|name| (name, value.to_owned()))
}

fn name_of_path(path: &str) -> Option<String> {
    if let Some(name) = path.strip_prefix("/proc/sys/vm/") {
        return Some(format!("vm.{name}"));
    }
    if let Some(rest) = path.strip_prefix("/sys/class/bdi/") {
        return Some(format!("bdi/{rest}"));
    }
    if let Some((device, "wbt_lat_usec")) = path.strip_prefix("/sys/block/").and_then(|rest| rest.split_once("/queue/"))
    {
        return Some(format!("queue/{device}/wbt_lat_usec"));
    }
    let file = path.rsplit('/').next()?;
    let cgroup = path.strip_prefix("/sys/fs/cgroup/").filter(|_| ["memory.high", "memory.max"].contains(&file))?;
    Some(format!("cgroup/{cgroup}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::When;

    #[test]
    fn a_step_that_apply_can_make_has_a_knob() {
        let check = |write: &str, value: &str, expect: Option<&str>| {
            let (write, value) = (write.to_owned(), value.to_owned());
            let step = Step { when: When::Now, write, value, undo: String::new(), command: String::new() };
            let knob = knob_of(&step).map(|(name, value)| format!("{name}={value}"));
            assert_eq!(knob.as_deref(), expect, "{step:?}");
        };
        check("/proc/sys/vm/dirty_bytes", "8192", Some("vm.dirty_bytes=8192"));
        check("/sys/class/bdi/8:0/max_ratio", "10", Some("bdi/8:0/max_ratio=10"));
        check("/sys/block/sda/queue/wbt_lat_usec", "75000", Some("queue/sda/wbt_lat_usec=75000"));
        // The default of the kernel: its number is known only after the write.
        check("/sys/block/sda/queue/wbt_lat_usec", "-1", None);
        check("/sys/fs/cgroup/a/b/memory.high", "max", Some("cgroup/a/b/memory.high=max"));
        check("/sys/fs/cgroup/a/io.max", "8:0 wbps=1", None);
        check("/dev/loop3", "direct I/O on", Some("loop/loop3/direct_io=1"));
        check("mount -o remount", "volatile", None);
        check("systemd-journald", "restart", None);
        let step = crate::advise::step::journald_volatile();
        assert_eq!(knob_of(&step), Some((JOURNALD_STORAGE.to_owned(), "volatile".to_owned())));
    }
}
