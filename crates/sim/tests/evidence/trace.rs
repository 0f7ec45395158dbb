// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of evidence that a trace has, computed again from its events alone.

use super::raw::{Raw, over};
use super::starved::Starved;
use floodline_analysis::report::{Evidence, Finding};
use floodline_record::record::What;
use floodline_record::traced::Who;
use floodline_record::traced::bytes::Dirtied;
use floodline_record::traced::switches::InodesSwitched;
use floodline_record::traced::throttle::{Domain, Throttled};
use floodline_record::traced::waits::{Operation, SlowSync, Synced};
use floodline_record::units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

const NANOS: f64 = 1e9;
const UPPER: &str = "Sync of the upper filesystem, ";
const OF_FILE: [Operation; 3] = [Operation::Fsync, Operation::Fdatasync, Operation::Range];

impl Raw {
    fn whats(&self) -> impl Iterator<Item = &What> {
        self.traced.iter().map(|(_, what)| what)
    }

    fn synced(&self) -> impl Iterator<Item = &Synced> {
        self.whats().filter_map(|what| match what {
            What::Synced(synced) => Some(synced),
            _ => None,
        })
    }

    fn throttled(&self) -> impl Iterator<Item = &Throttled> {
        self.whats().filter_map(|what| match what {
            What::Throttled(throttled) => Some(&**throttled),
            _ => None,
        })
    }

    fn moves(&self) -> impl Iterator<Item = &InodesSwitched> {
        self.whats().filter_map(|what| match what {
            What::InodesSwitched(moved) => Some(&**moved),
            _ => None,
        })
    }

    fn dirtied(&self) -> impl Iterator<Item = &Dirtied> {
        self.whats().filter_map(|what| match what {
            What::Dirtied(dirtied) => Some(dirtied),
            _ => None,
        })
    }

    /// Single waits, each with the time of its end.
    pub(crate) fn slow_syncs(&self) -> impl Iterator<Item = (Nanos, &SlowSync)> {
        self.traced.iter().filter_map(|(at, what)| match what {
            What::SlowSync(wait) => Some((*at, wait)),
            _ => None,
        })
    }

    fn slept(&self, wanted: impl Fn(&Throttled) -> bool) -> f64 {
        self.throttled().filter(|one| wanted(one)).map(|one| lasted(one) as f64).sum::<f64>() / NANOS
    }

    /// Inodes that went from one cgroup to another on a device, and the times of the first and of the last.
    fn moved(&self, is_it: impl Fn(&InodesSwitched) -> bool) -> Option<(u64, u64, u64)> {
        let its: Vec<&InodesSwitched> = self.moves().filter(|moved| is_it(moved)).collect();
        let first = its.iter().map(|moved| moved.first_at.0).min()?;
        let last = its.iter().map(|moved| moved.last_at.0).max()?;
        Some((its.iter().map(|moved| moved.switched).sum(), first, last))
    }
}

fn lasted(one: &Throttled) -> u64 {
    one.slept_ns.unwrap_or(one.pause_ns).0
}

/// Whether a process is called so, as `name[pid]`.
pub(crate) fn is_called(who: &Who, label: &str) -> bool {
    format!("{}[{}]", who.comm, who.pid) == label
}

/// Computes a number that comes from a trace; `None` if it does not, or if this code cannot compute it.
pub(crate) fn again(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    if !evidence.source.contains("trace of") && evidence.source != "wb_dirty, wb_setpoint of the longest pause" {
        return None;
    }
    let name = evidence.name.as_str();
    of_waits(raw, finding, name)
        .or_else(|| of_pauses(raw, finding, name))
        .or_else(|| of_moves(raw, finding, name))
        .or_else(|| of_starved(raw, finding, evidence))
}

fn of_waits(raw: &Raw, finding: &Finding, name: &str) -> Option<f64> {
    let sum = |wanted: &dyn Fn(&Synced) -> bool| -> f64 {
        raw.synced().filter(|one| wanted(one)).map(|one| one.total.0 as f64).sum::<f64>() / NANOS
    };
    if let Some(label) = name.strip_prefix("Waited, ") {
        let in_syncs = sum(&|one| is_called(&one.who, label) && OF_FILE.contains(&one.operation));
        return Some(in_syncs + raw.slept(|one| is_called(&one.who, label)));
    }
    if name == "Waited in fsync and its like, all tasks" {
        return Some(sum(&|one| one.operation != Operation::SyncFilesystem));
    }
    if let Some((label, operation)) = name.strip_prefix("Longest: ").and_then(|rest| rest.split_once(" in ")) {
        let its = raw.synced().filter(|one| is_called(&one.who, label) && one.operation.name() == operation);
        return its.map(|one| one.longest.0 as f64 / NANOS).reduce(f64::max);
    }
    // An unmount of an overlay has two waits: its own, and that of the filesystem below, in which the data are queued.
    let of_unmount = |name: &str| {
        let label = name.strip_prefix(UPPER)?;
        let waits = raw.slow_syncs().map(|(_, wait)| wait);
        let waits = waits.filter(|wait| wait.operation == Operation::SyncFilesystem && is_called(&wait.who, label));
        waits.max_by_key(|wait| (wait.queued, wait.lasted))
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

fn of_pauses(raw: &Raw, finding: &Finding, name: &str) -> Option<f64> {
    if let Some(called) = name.strip_prefix("Paused in dirty throttling, ") {
        return Some(raw.slept(|one| raw.is_cgroup(one.who.cgroup_ino, called)));
    }
    if name == "Paused in dirty throttling" {
        return Some(raw.slept(|_| true));
    }
    // A task at a strict limit: the one that was paused most by one device.
    let mut by_task: BTreeMap<_, u64> = BTreeMap::new();
    for one in raw.throttled().filter(|one| one.domain == Domain::Strictlimit && one.pauses > 0) {
        *by_task.entry((one.bdi.clone(), one.who.comm.clone(), one.tid, one.who.cgroup_ino)).or_default() +=
            lasted(one);
    }
    let ((bdi, comm, ..), most) = by_task.iter().max_by_key(|(_, slept)| **slept)?;
    let on_it = || raw.throttled().filter(|one| one.bdi == *bdi);
    if finding.rule != "strictlimit-throttling" {
        return None;
    }
    if name == format!("Paused, {comm}") {
        return Some(*most as f64 / NANOS);
    }
    match name {
        "Longest pause" => {
            on_it().map(|one| one.slept_ns_max.unwrap_or(one.pause_ns_max).0 as f64 / NANOS).reduce(f64::max)
        }
        _ if name.starts_with("Paused, all writers of ") => {
            Some(on_it().map(|one| lasted(one) as f64).sum::<f64>() / NANOS)
        }
        "Dirty of the device, against its setpoint" => {
            let strict = on_it().filter(|one| one.domain == Domain::Strictlimit && one.longest.is_some());
            let longest = strict.max_by_key(|one| one.slept_ns_max.unwrap_or(one.pause_ns_max))?;
            Some(longest.longest?.wb_dirty_pages.0 as f64 * raw.page())
        }
        _ => None,
    }
}

fn of_moves(raw: &Raw, finding: &Finding, name: &str) -> Option<f64> {
    // Two cgroups and a device, by the name of the row before.
    let between = |name: &str| -> Option<(String, String, Option<String>)> {
        let (from, to) = name.strip_prefix("Inodes moved from ")?.split_once(" to ")?;
        Some(match to.rsplit_once(" on ") {
            Some((to, bdi)) => (from.to_owned(), to.to_owned(), Some(bdi.to_owned())),
            None => (from.to_owned(), to.to_owned(), None),
        })
    };
    let its = |name: &str, is_back: bool| {
        let (from, to, bdi) = between(name)?;
        let (from, to) = if is_back { (to, from) } else { (from, to) };
        raw.moved(|moved| {
            raw.is_cgroup(moved.old_cgroup_ino, &from)
                && raw.is_cgroup(moved.new_cgroup_ino, &to)
                && bdi.as_ref().is_none_or(|bdi| moved.bdi.to_string() == *bdi)
        })
    };
    let at = finding.evidence.iter().position(|one| one.name == name)?;
    // Rows that follow a pair are about it.
    let pair =
        finding.evidence[..=at].iter().rev().find(|one| between(&one.name).is_some()).map(|one| one.name.as_str());
    match name {
        _ if between(name).is_some() => its(name, false).map(|(count, ..)| count as f64),
        "and back" => its(pair?, true).map(|(count, ..)| count as f64),
        "from the first to the last" => {
            its(pair?, false).map(|(_, first, last)| last.saturating_sub(first) as f64 / NANOS)
        }
        _ if name.starts_with("after the removal of ") => {
            let (_, first, _) = its(pair?, false)?;
            let mut removed = raw.traced.iter().filter_map(|(at, what)| match what {
                What::CgroupRemoved(removed) if at.0 <= first => Some((at.0, removed.path.to_string())),
                _ => None,
            });
            let (at, path) = removed.next_back()?;
            (name == format!("after the removal of {path}")).then(|| first.saturating_sub(at) as f64 / NANOS)
        }
        "Times others' flushers were asked to write for it" => {
            let paused =
                finding.evidence.iter().find_map(|one| one.name.strip_prefix("Paused in dirty throttling, "))?;
            let asked = raw.whats().filter_map(|what| match what {
                What::ForeignFlushed(one) if raw.is_cgroup(one.cgroup_ino, paused) => Some(one.flushes as f64),
                _ => None,
            });
            Some(asked.sum())
        }
        _ => {
            // The pair of cgroups is not in the name: the last inode is, and of two pairs with it the one with more folios.
            let (bdi, ino) =
                name.strip_prefix("Folios dirtied in others' inodes on ")?.split_once(", last in inode ")?;
            let mut by_pair: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
            for what in raw.whats() {
                let What::ForeignDirtied(one) = what else { continue };
                if one.bdi.to_string() == bdi {
                    let sum = by_pair.entry((one.wb_cgroup_ino, one.page_cgroup_ino)).or_default();
                    *sum = (sum.0 + one.folios, one.last_ino);
                }
            }
            by_pair
                .values()
                .filter(|(_, last)| last.to_string() == ino)
                .map(|(folios, _)| *folios as f64)
                .reduce(f64::max)
        }
    }
}

/// Numbers about cgroups with too small a budget. Where the finding counts fewer of them than are called alike, it does not say
/// which: the number is then at least that of the quietest, and at most that of the busiest.
fn of_starved(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    let name = evidence.name.as_str();
    let starved = Starved::of(raw, finding);
    let told = super::number(evidence)?;
    let inos = |of: &Starved| -> BTreeSet<u64> { of.boxes.iter().filter_map(|id| raw.ino(*id)).collect() };
    let of_each = |amount: &dyn Fn(u64) -> f64| starved.some_of(inos(&starved).into_iter().map(amount).collect(), told);
    let of_box = |ino: u64, part: fn(&Dirtied) -> u64| -> f64 {
        raw.dirtied().filter(|one| one.who.cgroup_ino == ino).map(|one| part(one) as f64).sum()
    };
    match name {
        "Became dirty, tasks of these cgroups" => Some(of_each(&|ino| of_box(ino, |one| one.bytes.0))),
        "of it had been dirty before" => {
            let parts: Vec<(f64, f64)> = inos(&starved)
                .into_iter()
                .map(|ino| (of_box(ino, |one| one.redirtied.0), of_box(ino, |one| one.bytes.0)))
                .collect();
            Some(starved.ratio_of(&parts, told))
        }
        "Rounds of the flusher for their background thresholds" => Some(of_each(&|ino| {
            let rounds = raw.whats().filter_map(|what| match what {
                What::Flushed(one) if one.wb_cgroup_ino == ino && *one.reason == *"background" => {
                    Some(one.rounds as f64)
                }
                _ => None,
            });
            rounds.sum()
        })),
        _ => {
            let rest = name.strip_prefix("Paused in dirty throttling for their data")?;
            let called = rest.strip_prefix(", ");
            let is_its = |one: &Throttled| called.is_none_or(|called| raw.is_cgroup(one.who.cgroup_ino, called));
            Some(of_each(&|ino| raw.slept(|one| one.wb_cgroup_ino == ino && is_its(one))))
        }
    }
}

/// The part of a set of numbers that a share of another is; kept beside the sums it comes from.
pub(crate) fn share(parts: &[(f64, f64)]) -> f64 {
    over(parts.iter().map(|(part, _)| part).sum(), parts.iter().map(|(_, all)| all).sum())
}
