// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with the shares of devices and cgroups in the pages that a machine wrote before its workload.

use super::Complaints;
use crate::machine::{CgroupMode, Machine};
use crate::quantity::Share;
use std::collections::BTreeSet;

/// Checks the shares of a machine. `members` are the devices that belong to other devices.
pub(super) fn check(machine: &Machine, members: &BTreeSet<&String>, complaints: &mut Complaints) {
    let is_member = |device: &String| members.contains(device);
    let mut all: Vec<(Share, u32)> = Vec::new();
    for (name, device) in &machine.devices {
        let Some(share) = device.share else { continue };
        if is_member(name) {
            let at = ["machine", "devices", name, "share"];
            complaints.hint(
                &at,
                "no pages of files are on a member of another device",
                "write it for the device on top",
            );
        }
        all.push((share, 1));
    }
    for (path, cgroup) in &machine.cgroups {
        for (name, share) in &cgroup.share {
            let at = ["machine", "cgroups", path, "share", name];
            if !machine.devices.contains_key(name) {
                complaints.unknown(&at, "device", name, machine.devices.keys());
            } else if is_member(name) {
                let hint = "write it for the device on top";
                complaints.hint(&at, "no pages of files are on a member of another device", hint);
            } else if path == "/" || machine.cgroup_mode == CgroupMode::V1 {
                let here = if path == "/" { "the root cgroup" } else { "cgroup v1" };
                let hint = format!("write machine.devices.{name}.share");
                complaints.hint(&at, format!("{here} has no shares of its own"), hint);
            }
            all.push((*share, machine.copies_of_cgroup(path)));
        }
    }
    let (pages, of) = Share::sum(all);
    if pages > of {
        let message = format!("the shares of devices and cgroups add up to {pages} of {of} pages");
        complaints.hint(&["machine", "devices"], message, "write shares that add up to 1 at most");
    }
}
