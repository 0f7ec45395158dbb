// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists what a machine offers to a tracer. A file that may not be read is a reason like a missing one: each reason
//! names its remedy.

use super::tracefs::Tracefs;
use super::tracepoint::{TRACEPOINTS, Tracepoint};
use crate::parse::trace_format;
use crate::root::{HostRoot, SMALL};
use floodline_record::capability::{Capability, State};
use floodline_record::gap::Cause;

const MOUNT: &str = "mount -t tracefs tracefs /sys/kernel/tracing";
/// Bits of the capability masks, from `include/uapi/linux/capability.h`.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Lists what this machine offers to a tracer.
pub fn offer(root: &HostRoot) -> Vec<Capability> {
    let tracefs = Tracefs::open(root).map_err(|cause| vec![told(cause)]);
    let mut offers = vec![
        capability("CAP_BPF and CAP_PERFMON", "loading BPF programs and attaching them", permissions(root)),
        capability("/sys/kernel/security/lockdown", "reading kernel memory from BPF", lockdown(root)),
        capability("/sys/kernel/btf/vmlinux", "BPF programs that adapt to this kernel's types", btf(root)),
        capability("tracefs", "every tracepoint", tracefs.as_ref().map(|_| ()).map_err(Clone::clone)),
    ];
    for tracepoint in TRACEPOINTS {
        let state = match &tracefs {
            Ok(tracefs) => fields(tracefs, tracepoint),
            Err(_) => Err(vec!["needs tracefs".into()]),
        };
        offers.push(capability(tracepoint.names[0], tracepoint.lost_without, state));
    }
    offers
}

fn capability(name: &str, lost_without: &str, state: Result<(), Vec<String>>) -> Capability {
    let (state, reasons) = match state {
        Ok(()) => (State::Available, Vec::new()),
        Err(reasons) => (State::Missing, reasons),
    };
    Capability { name: name.into(), state, reasons, lost_without: lost_without.into() }
}

/// Checks that this process may load and attach programs, by its effective capabilities.
pub(super) fn permissions(root: &HostRoot) -> Result<(), Vec<String>> {
    let status = root.read("/proc/self/status", SMALL).map_err(|cause| vec![cause.to_string()])?;
    let mask = std::str::from_utf8(&status)
        .ok()
        .and_then(|status| status.lines().find_map(|line| line.strip_prefix("CapEff:")))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let Some(mask) = mask else { return Err(vec!["no mask of capabilities in /proc/self/status".into()]) };
    let has = |bit: u32| mask >> bit & 1 == 1;
    if has(CAP_SYS_ADMIN) {
        return Ok(());
    }
    let lacks: Vec<String> = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(bit, _)| !has(*bit))
        .map(|(_, name)| format!("this process has no {name}; run as root"))
        .collect();
    if lacks.is_empty() { Ok(()) } else { Err(lacks) }
}

/// Checks the kernel's lockdown mode: the one in brackets is in force. Without the file no lockdown is assumed.
fn lockdown(root: &HostRoot) -> Result<(), Vec<String>> {
    match root.read("/sys/kernel/security/lockdown", SMALL) {
        Ok(modes) if modes.windows(17).any(|word| word == b"[confidentiality]") => {
            Err(vec!["the kernel is locked down for confidentiality".into()])
        }
        Ok(_) | Err(Cause::NotFound) => Ok(()),
        Err(cause) => Err(vec![cause.to_string()]),
    }
}

fn btf(root: &HostRoot) -> Result<(), Vec<String>> {
    match root.exists("/sys/kernel/btf/vmlinux") {
        Ok(true) => Ok(()),
        Ok(false) => Err(vec!["this kernel was built without CONFIG_DEBUG_INFO_BTF".into()]),
        Err(cause) => Err(vec![cause.to_string()]),
    }
}

/// Describes a cause. If tracefs is missing, the remedy is a command.
fn told(cause: Cause) -> String {
    match cause {
        Cause::NotMounted { .. } => format!("{cause}: {MOUNT}"),
        cause => cause.to_string(),
    }
}

/// Checks that the tracepoint exists under one of its names, and that its record has the required fields.
fn fields(tracefs: &Tracefs<'_>, tracepoint: &Tracepoint) -> Result<(), Vec<String>> {
    for name in tracepoint.names {
        let text = match tracefs.format(name) {
            Ok(text) => text,
            Err(Cause::NotFound) => continue,
            Err(cause) => return Err(vec![cause.to_string()]),
        };
        let Some(fields) = trace_format::parse(&text) else {
            return Err(vec![format!("the format of {name} is not understood")]);
        };
        let lacks = tracepoint.lacks(&fields);
        return if lacks.is_empty() { Ok(()) } else { Err(lacks) };
    }
    let since = tracepoint.since.unwrap_or("or built without it");
    Err(vec![Cause::Unsupported { since: since.into() }.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SWITCH: &str = "\tfield:char name[32];\toffset:8;\tsize:32;\tsigned:0;\n\
        \tfield:ino_t ino;\toffset:40;\tsize:8;\tsigned:0;\n\
        \tfield:ino_t old_cgroup_ino;\toffset:48;\tsize:8;\tsigned:0;\n\
        \tfield:ino_t new_cgroup_ino;\toffset:56;\tsize:8;\tsigned:0;\n";

    /// What a made-up machine of these files answers for one name.
    fn check(files: &[(&str, &str)], name: &str, expect: &str) {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let offers = offer(&HostRoot::at(folder.path()).unwrap());
        let one = offers.iter().find(|offer| offer.name == name).unwrap();
        assert_eq!(one.state == State::Available, one.reasons.is_empty());
        assert_eq!(one.reasons.join("; "), expect);
    }

    #[test]
    fn permissions_are_told_by_the_mask() {
        let name = "CAP_BPF and CAP_PERFMON";
        let status = |mask: &str| format!("Name:\tx\nCapEff:\t{mask}\n");
        check(&[("proc/self/status", &status("000001ffffffffff"))], name, "");
        check(&[("proc/self/status", &status("000000c000000000"))], name, "");
        check(&[("proc/self/status", &status("0000004000000000"))], name, "this process has no CAP_BPF; run as root");
        let both = "this process has no CAP_BPF; run as root; this process has no CAP_PERFMON; run as root";
        check(&[("proc/self/status", &status("0000000000000000"))], name, both);
        check(&[("proc/self/status", "Name:\tx\n")], name, "no mask of capabilities in /proc/self/status");
        check(&[], name, "does not exist here");
    }

    #[test]
    fn only_a_confidential_lockdown_forbids_tracing() {
        let name = "/sys/kernel/security/lockdown";
        check(&[], name, "");
        check(&[("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")], name, "");
        let text = "none integrity [confidentiality]\n";
        check(&[("sys/kernel/security/lockdown", text)], name, "the kernel is locked down for confidentiality");
    }

    #[test]
    fn tracefs_is_found_in_both_places_and_asked_to_be_mounted() {
        let help = "tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing";
        check(&[], "tracefs", help);
        check(&[("sys/kernel/tracing/events/enable", "0\n")], "tracefs", "");
        check(&[("sys/kernel/debug/tracing/events/enable", "0\n")], "tracefs", "");
        check(&[], "writeback/flush_foreign", "needs tracefs");
    }

    #[test]
    fn a_tracepoint_is_judged_by_its_format() {
        let (name, path) =
            ("writeback/inode_switch_wbs", "sys/kernel/tracing/events/writeback/inode_switch_wbs/format");
        check(&[(path, SWITCH)], name, "");
        check(&[(path, &SWITCH.replace("old_cgroup_ino", "from"))], name, "no field old_cgroup_ino");
        check(&[(path, "nothing\n")], name, "the format of writeback/inode_switch_wbs is not understood");
        check(&[(path, SWITCH)], "writeback/inode_switch_wbs_queue", "not in this kernel (since 6.18)");
        check(&[(path, SWITCH)], "writeback/flush_foreign", "not in this kernel (or built without it)");
    }
}
