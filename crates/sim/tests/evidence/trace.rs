// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of evidence that a trace has, computed again from its events alone.

use super::raw::Raw;
use floodline_analysis::report::{Evidence, Finding};
use floodline_record::id::Entity;
use floodline_record::record::What;
use floodline_record::traced::Who;
use floodline_record::traced::throttle::Throttled;
use floodline_record::traced::waits::{Operation, SlowSync, Synced};

const NANOS: f64 = 1e9;
const UPPER: &str = "Sync of the upper filesystem, ";

impl Raw {
    fn synced(&self) -> impl Iterator<Item = &Synced> {
        self.traced.iter().filter_map(|what| match what {
            What::Synced(synced) => Some(synced),
            _ => None,
        })
    }

    fn throttled(&self) -> impl Iterator<Item = &Throttled> {
        self.traced.iter().filter_map(|what| match what {
            What::Throttled(throttled) => Some(&**throttled),
            _ => None,
        })
    }

    fn slow_syncs(&self) -> impl Iterator<Item = &SlowSync> {
        self.traced.iter().filter_map(|what| match what {
            What::SlowSync(wait) => Some(wait),
            _ => None,
        })
    }

    fn is_cgroup(&self, inode: u64, called: &str) -> bool {
        let id = self.cgroup_called(called);
        let own = |entity: &Entity| matches!(entity, Entity::Cgroup { ino: Some(ino), .. } if *ino == inode);
        id.and_then(|id| self.entities.get(&id)).is_some_and(own)
    }

    fn slept(&self, wanted: impl Fn(&Throttled) -> bool) -> f64 {
        self.throttled().filter(|one| wanted(one)).map(|one| one.slept_ns.unwrap_or(one.pause_ns).0 as f64).sum::<f64>()
            / NANOS
    }
}

/// Whether a process is called so, as `name[pid]`.
fn is_called(who: &Who, label: &str) -> bool {
    format!("{}[{}]", who.comm, who.pid) == label
}

/// Computes a number that comes from a trace; `None` if it does not, or if this code cannot compute it.
pub(crate) fn again(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    if !evidence.source.contains("trace of") {
        return None;
    }
    let name = evidence.name.as_str();
    let sum = |wanted: &dyn Fn(&Synced) -> bool| -> f64 {
        raw.synced().filter(|one| wanted(one)).map(|one| one.total.0 as f64).sum::<f64>() / NANOS
    };
    if let Some(label) = name.strip_prefix("Waited, ") {
        let of_file = [Operation::Fsync, Operation::Fdatasync, Operation::Range];
        let in_syncs = sum(&|one| is_called(&one.who, label) && of_file.contains(&one.operation));
        return Some(in_syncs + raw.slept(|one| is_called(&one.who, label)));
    }
    if name == "Waited in fsync and its like, all tasks" {
        return Some(sum(&|one| one.operation != Operation::SyncFilesystem));
    }
    if let Some((label, operation)) = name.strip_prefix("Longest: ").and_then(|rest| rest.split_once(" in ")) {
        let its = raw.synced().filter(|one| is_called(&one.who, label) && one.operation.name() == operation);
        return its.map(|one| one.longest.0 as f64 / NANOS).reduce(f64::max);
    }
    if let Some(called) = name.strip_prefix("Paused in dirty throttling, ") {
        return Some(raw.slept(|one| raw.is_cgroup(one.who.cgroup_ino, called)));
    }
    if name == "Paused in dirty throttling" {
        return Some(raw.slept(|_| true));
    }
    // An unmount of an overlay has two waits: its own, and that of the filesystem below, in which the data are queued.
    let of_unmount = |name: &str| {
        let label = name.strip_prefix(UPPER)?;
        let waits = raw.slow_syncs().filter(|wait| wait.operation == Operation::SyncFilesystem);
        waits.filter(|wait| is_called(&wait.who, label)).max_by_key(|wait| (wait.queued, wait.lasted))
    };
    if name.starts_with(UPPER) {
        return of_unmount(name).map(|wait| wait.lasted.0 as f64 / NANOS);
    }
    if name == "Queued there meanwhile" {
        let wait = finding.evidence.iter().find_map(|one| of_unmount(&one.name))?;
        return wait.queued.map(|bytes| bytes.0 as f64);
    }
    None
}
