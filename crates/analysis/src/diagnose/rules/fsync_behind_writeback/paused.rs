// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writers that wait for a disk because of their own data: they are paused in dirty throttling, or they overwrite, extend or truncate
//! a file whose pages are being written. They are not callers of fsync behind the data of others.

use super::{Felt, MUCH, MUCH_SHARE, queue_rows};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Device;
use crate::diagnose::waiting::{self, Waiter};
use crate::diagnose::{cgroup, strict, throttle, writer};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::id::Entity;
use std::collections::{BTreeMap, BTreeSet};

/// Part of its waits that pauses must take for a task to be a paused writer.
const MOSTLY: f64 = 0.5;
/// Part of the mean writer's bytes from which a process is one of the writers of a disk.
const FAIR_PART: f64 = 0.5;

/// Shortest time between two samples in which every paused writer dirties something. A pause takes a fifth of a second at most
/// (`balance_dirty_pages`, `MAX_PAUSE`).
const LONGER_THAN_PAUSES_S: f64 = 0.4;
/// Longest mean time without dirtying of the other writers of a disk, as a part of the victim's own. Above the limit, all writers stop.
const FELLOWS_STAND: f64 = 0.5;

/// Part of the bytes that a process dirtied from which it reads much: it sleeps for its reads as well.
const READS: f64 = 0.25;

/// Whether a process dirtied nothing for longer than pauses for a reason of its own: its cgroup, or one above, held so much that its tasks
/// are paused, or it read. At a hard limit, a task loops in `balance_dirty_pages` until enough is written, however long that takes.
fn stands_for_its_own(derived: &Derived<'_>, one: &writer::Writer<'_>) -> bool {
    if one.read_bytes.unwrap_or(0) as f64 >= READS * one.dirtied_bytes.unwrap_or(0) as f64 {
        return true;
    }
    let Some(Entity::Cgroup { path, .. }) = one.cgroup.and_then(|id| derived.window.entities.get(&id)) else {
        return false;
    };
    derived.budgets().cgroups.iter().filter(|budget| cgroup::is_within(path, &budget.path)).any(|budget| {
        let most = derived.window.unwritten_max.get(&budget.cgroup).copied().unwrap_or(0);
        budget.domain.freerun.is_some_and(|freerun| most > 0 && most >= freerun.low.0)
    })
}

/// Returns the writers of a disk whose waits are more than pauses. They dirtied nothing for a good part of the time, while the other
/// writers went on and had most of the data. They wait behind the data of the others, in a sync or for pages under writeback.
fn standing(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let window = derived.window;
    let between = derived.seconds / window.samples.saturating_sub(1).max(1) as f64;
    // A strict limit stops writers for longer than pauses, too.
    if between < LONGER_THAN_PAUSES_S || strict::holds(derived, device) {
        return BTreeSet::new();
    }
    let on_disk = writer::on_disk(derived, device);
    let mut stood: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    let mut for_its_own: BTreeSet<u32> = BTreeSet::new();
    for one in on_disk.processes.iter().filter(|one| !one.kthread && one.dirtied_bytes >= Some(MUCH)) {
        let (seconds, bytes) = stood.entry(one.pid).or_default();
        *seconds += window.stood.get(&one.id).map_or(0.0, |stood| stood.as_secs_f64());
        *bytes += one.dirtied_bytes.unwrap_or(0) as f64;
        if stands_for_its_own(derived, one) {
            for_its_own.insert(one.pid);
        }
    }
    let (all_s, all_bytes) = stood.values().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let fellows = stood.len().saturating_sub(1).max(1) as f64;
    let is_victim = |(seconds, bytes): (f64, f64)| {
        seconds >= waiting::HARM_ONCE_S.max(waiting::HARM_SHARE * derived.seconds)
            && all_bytes - bytes > bytes
            && (all_s - seconds) / fellows <= FELLOWS_STAND * seconds
    };
    let victims = stood.into_iter().filter(|(pid, one)| is_victim(*one) && !for_its_own.contains(pid));
    victims.map(|(pid, _)| pid).collect()
}

/// Splits waiters into those that wait behind others and the writers that wait because of their own data.
pub(super) fn split(derived: &Derived<'_>, device: &Device<'_>, waiters: Vec<Waiter>) -> (Vec<Waiter>, Vec<Waiter>) {
    let may_be_paused =
        derived.dirty.can_have_throttled == Some(true) || derived.is_near_a_budget() || strict::holds(derived, device);
    let written = much_written(derived, device);
    let standing = standing(derived, device);
    let mut paused: BTreeMap<u32, f64> = BTreeMap::new();
    for event in throttle::events(derived.window).into_iter().flatten() {
        *paused.entry(event.who.pid).or_default() += event.lasted().as_secs_f64();
    }
    let is_own = |waiter: &Waiter| match (waiter.longest_s, waiter.seconds) {
        // A trace has both the syncs and the pauses of a task.
        (Some(_), Some(seconds)) => paused.get(&waiter.pid).is_some_and(|paused| *paused >= MOSTLY * seconds),
        _ if standing.contains(&waiter.pid) => false,
        // Slow syncs are rare, and so are the flushes of the disk: their number does not show that a writer never syncs.
        _ => match written.get(&waiter.pid) {
            // Paused writers write about as much as one another. One that syncs writes less.
            Some(Part::Fair) if may_be_paused => true,
            // The kernel counts pauses. It does not count waits for a journal commit or a log force.
            Some(_) if may_be_paused && waiter.seconds.is_some() && waiter.asleep_s.is_none() => true,
            // Few waits are of its own data as well.
            Some(_) => waiter.seconds.is_some() && !waiting::is_harm(derived, &[waiter.by_states()]),
            None => false,
        },
    };
    let (own, others) = waiters.into_iter().partition(is_own);
    (others, own)
}

/// How much of a device's data a process wrote.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A good part of what the mean writer wrote.
    Fair,
    /// Less, and still a good part of all data.
    Good,
}

/// Processes that handed a good part of a device's data to write calls.
fn much_written(derived: &Derived<'_>, device: &Device<'_>) -> BTreeMap<u32, Part> {
    let on_disk = writer::on_disk(derived, device);
    let bytes = |one: &writer::Writer<'_>| one.application_bytes.unwrap_or(0).min(one.dirtied_bytes.unwrap_or(0));
    let is_large = |one: &&writer::Writer<'_>| !one.kthread && bytes(one) >= MUCH;
    let large: Vec<&writer::Writer<'_>> = on_disk.processes.iter().filter(is_large).collect();
    let total = large.iter().map(|one| bytes(one)).fold(0, u64::saturating_add) as f64;
    let fair = FAIR_PART * total / large.len().max(1) as f64;
    let part = |one: &writer::Writer<'_>| match bytes(one) as f64 {
        bytes if bytes >= fair => Some(Part::Fair),
        bytes if bytes >= MUCH_SHARE * total => Some(Part::Good),
        _ => None,
    };
    large.iter().filter_map(|one| Some((one.pid, part(one)?))).collect()
}

/// A finding about writers that wait only because of their own data.
pub(super) fn finding(felt: &Felt<'_, '_>, most: Option<Evidence>, is_outrun: bool) -> Finding {
    let first = &felt.paused[0];
    let who = match felt.paused.len() - 1 {
        0 => first.label(),
        more => format!("{} and {more} more", first.label()),
    };
    let waited = first.waited().map(|waited| format!(" {waited}")).unwrap_or_default();
    let disk = &felt.name;
    let mut evidence = queue_rows(felt.queue);
    evidence.extend(felt.paused.iter().take(3).flat_map(Waiter::evidence));
    evidence.extend(most);
    let helps = match is_outrun {
        true => {
            "No setting helps: these programs write more than the disk takes. Let them write less, or use a faster disk."
        }
        false => "No other task was seen to wait behind these writes.",
    };
    let whose = if felt.paused.len() == 1 { "it writes" } else { "they write" };
    Finding {
        rule: super::RULE.name,
        severity: Severity::Info,
        summary: format!(
            "{who} waited{waited} for {disk}, which was full of what {whose}. No other task was seen to wait there."
        ),
        evidence,
        cause: "The kernel pauses writers while too much is unwritten, and a task that truncates or overwrites pages under \
                writeback waits for them. Such tasks wait for their own data."
            .to_owned(),
        brief: Brief {
            because: format!("{disk} writes what these tasks dirtied. They wait for their own data."),
            who,
            expect: helps.to_owned(),
            costs: String::new(),
        },
        devices: felt.disks.clone(),
        trade_off: helps.to_owned(),
        ..Finding::default()
    }
}
