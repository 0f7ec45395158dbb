// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's counters of a real program and all its descendants. A parent that reaps a child takes over its
//! counters, so those of an exited process are in a process that still runs. If this process is a subreaper, it
//! inherits the program's orphans. The bytes of a child whose parent ignores `SIGCHLD` are lost: the kernel adds them
//! nowhere.

use super::process::{self, of_ended};
use floodline_record::record::TaskIo;
use std::collections::{BTreeMap, BTreeSet};

/// Most attempts to get two equal process lists in a row.
const ROUNDS_MAX: usize = 10;

/// One process of `/proc`.
struct Process {
    parent: u32,
    is_zombie: bool,
}

/// Returns the kernel's counters of a program and all its descendants.
pub(super) fn counters(root: u32) -> TaskIo {
    let mut before = members(root);
    let mut sum = nothing();
    for _ in 0..ROUNDS_MAX {
        sum = before.keys().map(|pid| process::counters(*pid)).fold(nothing(), |sum, one| added(&sum, &one));
        for pid in before.keys() {
            let (minflt, majflt) = of_ended(*pid);
            sum.minflt = plus(sum.minflt, minflt);
            sum.majflt = plus(sum.majflt, majflt);
        }
        let after = members(root);
        // If a process exits between the two lists, it is counted twice or not at all.
        if before.keys().eq(after.keys()) {
            break;
        }
        before = after;
    }
    sum
}

/// Makes this process the subreaper of orphans, so that they are counted and ended with their program.
pub fn inherit_orphans() {
    // If this fails, orphans are not counted.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Counters of a process that has done nothing.
pub(super) fn nothing() -> TaskIo {
    TaskIo {
        rchar: Some(0),
        wchar: Some(0),
        syscr: Some(0),
        syscw: Some(0),
        read_bytes: Some(0),
        write_bytes: Some(0),
        cancelled_write_bytes: Some(0),
        minflt: Some(0),
        majflt: Some(0),
    }
}

/// Returns a program's descendants that have not exited.
pub(super) fn running(root: u32) -> BTreeSet<u32> {
    let members = members(root).into_iter();
    members.filter(|(pid, process)| *pid != root && !process.is_zombie).map(|(pid, _)| pid).collect()
}

/// Returns the program, its descendants, and its orphans that this process inherited.
fn members(root: u32) -> BTreeMap<u32, Process> {
    let mut all = processes();
    let heir = rustix::process::child_subreaper().ok().flatten().map(|_| std::process::id());
    let mut next: Vec<u32> = vec![root];
    next.extend(all.iter().filter(|(_, process)| Some(process.parent) == heir).map(|(pid, _)| *pid));
    let mut found = BTreeMap::new();
    while let Some(pid) = next.pop() {
        let Some(process) = all.remove(&pid) else { continue };
        next.extend(all.iter().filter(|(_, child)| child.parent == pid).map(|(pid, _)| *pid));
        found.insert(pid, process);
    }
    found
}

fn processes() -> BTreeMap<u32, Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

fn parse(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    Some(Process { is_zombie, parent: fields.next()?.parse().ok()? })
}

fn plus(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}

fn added(one: &TaskIo, other: &TaskIo) -> TaskIo {
    TaskIo {
        rchar: plus(one.rchar, other.rchar),
        wchar: plus(one.wchar, other.wchar),
        syscr: plus(one.syscr, other.syscr),
        syscw: plus(one.syscw, other.syscw),
        read_bytes: plus(one.read_bytes, other.read_bytes),
        write_bytes: plus(one.write_bytes, other.write_bytes),
        cancelled_write_bytes: plus(one.cancelled_write_bytes, other.cancelled_write_bytes),
        minflt: plus(one.minflt, other.minflt),
        majflt: plus(one.majflt, other.majflt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_and_state_are_read_whatever_the_name() {
        let process = parse("41 (a) b (c) Z 7 41 41 0").unwrap();
        assert_eq!((process.parent, process.is_zombie), (7, true));
        assert!(parse("41 (a) S 7 1").is_some_and(|process| !process.is_zombie));
        assert!(parse("").is_none() && parse("41 (a) S many").is_none());
    }

    #[test]
    fn what_is_not_known_of_one_is_not_known_of_all() {
        let one = TaskIo { write_bytes: Some(3), ..TaskIo::default() };
        let sum = added(&nothing(), &one);
        assert_eq!((sum.write_bytes, sum.read_bytes), (Some(3), None));
    }
}
