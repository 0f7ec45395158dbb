// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which knob a step of a finding changes: from the file that the step writes to the name that a plan has for it.

use crate::change::JOURNALD_STORAGE;
use crate::report::Step;

/// The knob that a step of a finding changes and the value it gets, as [`Change`](crate::change::Change) has them. `None` if `apply` cannot do what
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
