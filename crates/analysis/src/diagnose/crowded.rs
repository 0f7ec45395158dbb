// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cgroups at whose small dirty limit writers wait although the disk has room. The limit is small because the memory limit is, because
//! programs leave little of it, in the cgroup or beside it in a slice, or because a setting of the machine gives the cgroup a small part.
//! Known from a trace, or from what the cgroups held and who waited. Judges no finding.

use super::derived::Derived;
use super::device::Device;
use super::short_limit::{self, HAS_ROOM};
use super::waiting::{self, HARM_SHARE, Waiter};
use super::writer::Writer;
use super::{cgroup, dirty, limits, throttle};
use crate::budget::CgroupBudget;
use crate::observer;
use floodline_record::id::EntityId;
use floodline_record::name::Name;
use floodline_record::traced::throttle::Domain;
use floodline_record::units::{Limit, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// Part of the time with waiting tasks that the disk is busy, at least: a flusher that has nothing to write makes them wait for another
/// reason.
const WRITES: f64 = 0.5;
/// Part of the window that several tasks wait together from which it is felt: none of them waits for another's work. At least
/// this many seconds.
const FELT_TOGETHER: f64 = 0.05;
const FELT_TOGETHER_S: f64 = 2.0;
/// Flushes of a disk per second up to which hardly any program syncs: a journal commits each 5 s.
const SYNCS_RATE: f64 = 0.5;
/// Seconds of the disk's writing up to which a limit is small.
const SMALL_S: f64 = 1.0;
/// Part of a memory limit that heaps and the like take, from which page cache has little room.
const MOST: f64 = 0.5;
/// Part of a cgroup's dirtyable memory below which its dirty limit is small because of a setting. The kernel
/// rounds a ratio of 10 %, half of its default, down to less than that.
const LOW_FRACTION: f64 = 0.095;
/// Unwritten data of one of these cgroups, in multiples of its ceiling, from which it was passed, where no trace tells. The others need to
/// be near theirs.
const PASSED: f64 = 1.25;
const NEAR: f64 = 0.75;
/// The same where samples are this far apart, seconds: they miss the most of a burst.
const PASSED_BETWEEN: f64 = 1.0;
const FAR_APART_S: f64 = 1.5;

/// Why the dirty limit of a cgroup is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A setting of the machine gives it a small part of its memory.
    Setting,
    /// Programs take most of the memory limit.
    Programs,
    /// The memory limit itself is small.
    Limit,
}

/// A cgroup at whose small dirty limit tasks wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Crowded {
    /// The cgroup.
    pub cgroup: EntityId,
    /// Freerun ceiling, above which its writers are paused, bytes: the least that was seen.
    pub freerun: u64,
    /// Dirtyable memory that this ceiling is a part of, bytes.
    pub available: u64,
    /// Most dirty and under writeback of any sample, bytes.
    pub peak: u64,
    /// The cgroup whose memory limit leaves so little, that limit, and the most that it had in use, bytes.
    pub below: (EntityId, u64, u64),
    /// Why its dirty limit is small.
    pub reason: Reason,
    /// Name of the disk that it writes to, and how busy its busiest disk is over the window.
    pub disk: Name,
    /// See `disk`.
    pub utilisation: f64,
    /// Whether a trace tells of the pauses. Otherwise tasks waited for I/O while the limit was reached.
    pub is_traced: bool,
    /// Tasks that wait at the limit, the longest first. Each has its seconds.
    pub waiters: Vec<Waiter>,
}

/// All such cgroups, if together they make tasks wait for a time that is felt; the longest waits first.
pub fn crowded(derived: &Derived<'_>) -> Vec<Crowded> {
    if derived.seconds <= 0.0 || !derived.budgets().scope.is_per_cgroup() {
        return Vec::new();
    }
    let pauses = throttle::seconds_by(derived.window, Domain::Memcg);
    if pauses.is_none() && !may_be_felt(derived) {
        return Vec::new();
    }
    let Some(occupied) = short_limit::occupied(derived, derived.budgets(), &derived.writers().processes) else {
        return Vec::new();
    };
    let limited = limits::of_writes(derived);
    let limited: BTreeSet<&[u8]> =
        limited.iter().filter_map(|(id, ..)| Some(cgroup::path(derived.window, *id)?.as_bytes())).collect();
    let is_limited = |path: &Name| !limited.is_empty() && cgroup::and_above(path).any(|above| limited.contains(above));
    let (ceilings, limits) = (ceilings(derived), memory_limits(derived));
    let mut found: Vec<Crowded> = Vec::new();
    for budget in derived.budgets().cgroups.iter().filter(|budget| !is_limited(&budget.path)) {
        let Some(processes) = occupied.get(&budget.cgroup) else { continue };
        found.extend(of_cgroup(derived, budget, processes, (pauses.as_ref(), &ceilings), &limits));
    }
    let distance = observer::distance(derived.window).map_or(0.0, Nanos::as_secs_f64);
    let times = if distance > FAR_APART_S { PASSED_BETWEEN } else { PASSED };
    if !found.iter().any(|one| one.is_traced || one.peak as f64 >= times * one.freerun as f64) {
        return Vec::new();
    }
    found.sort_by(|one, other| waited_s(other).total_cmp(&waited_s(one)));
    if is_felt(derived, &found) { found } else { Vec::new() }
}

/// Seconds that all tasks of a cgroup waited.
fn waited_s(one: &Crowded) -> f64 {
    one.waiters.iter().filter_map(|waiter| waiter.seconds).sum()
}

/// Seconds that tasks waited at the limits of these cgroups, at most as long as any task of the machine did.
pub fn together_s(derived: &Derived<'_>, all: &[Crowded]) -> f64 {
    all.iter().map(waited_s).sum::<f64>().min(pressed_s(derived))
}

/// Most seconds in which any task of the machine waited for I/O.
fn pressed_s(derived: &Derived<'_>) -> f64 {
    derived.dirty.io_pressure_some.map_or(f64::INFINITY, |share| share * derived.seconds)
}

/// Shortest total wait of several tasks that is felt, seconds.
fn felt_together_s(derived: &Derived<'_>) -> f64 {
    FELT_TOGETHER_S.max(FELT_TOGETHER * derived.seconds)
}

/// Whether [`is_felt`] can be true. Without a trace of pauses, the waits at limits are a part of all waits.
fn may_be_felt(derived: &Derived<'_>) -> bool {
    let waits = || derived.waiters().unwrap_or_default().iter().filter_map(|waiter| waiter.seconds);
    let may_be_shared = waits().count() >= 2 && pressed_s(derived) >= felt_together_s(derived);
    may_be_shared || waits().any(|seconds| seconds >= HARM_SHARE * derived.seconds)
}

/// Whether several tasks wait together for a time that is felt, or one of them long.
fn is_felt(derived: &Derived<'_>, all: &[Crowded]) -> bool {
    let waits = || all.iter().flat_map(|one| &one.waiters).filter_map(|waiter| waiter.seconds);
    let is_shared = waits().count() >= 2 && together_s(derived, all) >= felt_together_s(derived);
    is_shared || waits().any(|seconds| seconds >= HARM_SHARE * derived.seconds)
}

/// Seconds that each process waited at such a limit with data for this device, where several did: no disk made them wait.
pub(super) fn shared_waits(derived: &Derived<'_>, device: &Device<'_>) -> BTreeMap<u32, f64> {
    let is_its =
        |one: &&Crowded| one.disk == *device.name || device.bottoms().iter().any(|disk| one.disk == *disk.name);
    let waits = derived.crowded().iter().filter(is_its).flat_map(|one| &one.waiters);
    let waits: BTreeMap<u32, f64> = waits.filter_map(|waiter| Some((waiter.pid, waiter.seconds?))).collect();
    if waits.len() >= 2 { waits } else { BTreeMap::new() }
}

/// The least freerun ceiling, bytes, that pauses of a process in a memory cgroup show.
fn ceilings(derived: &Derived<'_>) -> BTreeMap<u32, u64> {
    let mut least: BTreeMap<u32, u64> = BTreeMap::new();
    for event in throttle::events(derived.window).into_iter().flatten().filter(|event| event.domain == Domain::Memcg) {
        let Some(state) = event.longest.filter(|_| event.pauses > 0) else { continue };
        let ceiling = state.freerun_pages().bytes(derived.page_size).0;
        least.entry(event.who.pid).and_modify(|known| *known = ceiling.min(*known)).or_insert(ceiling);
    }
    least
}

fn of_cgroup(
    derived: &Derived<'_>,
    budget: &CgroupBudget,
    processes: &[&Writer<'_>],
    (pauses, ceilings): (Option<&BTreeMap<u32, f64>>, &BTreeMap<u32, u64>),
    limits: &BTreeMap<&[u8], Limited>,
) -> Option<Crowded> {
    let peak = derived.window.unwritten_max.get(&budget.cgroup).copied().unwrap_or(0);
    let is_idle = match pauses {
        Some(pauses) => !processes.iter().any(|process| pauses.contains_key(&process.pid)),
        None => peak == 0,
    };
    if is_idle {
        return None;
    }
    let domain = &budget.domain;
    let (thresh, ceiling, memory) = (domain.thresh?.high.0, domain.freerun?.high.0, domain.available?.high.0);
    // What limits a cgroup may be the machine's own, smaller limit.
    if memory == 0 || domain.binding.as_ref().is_some_and(|binding| binding.global_is_less) {
        return None;
    }
    let written = derived.devices_written().devices(budget.cgroup);
    let amount = |device: &&Device<'_>| device.span.growth.written.map_or(0, |bytes| bytes.0);
    let device = *written.iter().max_by_key(amount)?;
    let utilisation = derived.utilisation_of(&device)?;
    let pressure = derived.dirty.io_pressure_some.unwrap_or(0.0);
    if utilisation > HAS_ROOM || utilisation < WRITES * pressure {
        return None;
    }
    let part = ceiling as f64 / memory as f64;
    let (below, least) = least_available(derived, budget, limits)?;
    let reason = if (thresh as f64) < LOW_FRACTION * memory as f64 {
        Reason::Setting
    } else if is_full(derived, below) {
        Reason::Programs
    } else {
        Reason::Limit
    };
    let (freerun, waiters) = match pauses {
        Some(pauses) => {
            let waiters = throttle::paused(pauses, processes, waiting::felt_s(derived.seconds));
            let traced = waiters.iter().filter_map(|waiter| ceilings.get(&waiter.pid)).min().copied();
            (traced?, waiters)
        }
        None => {
            let freerun = (part * least as f64) as u64;
            let is_reached =
                peak as f64 >= NEAR * freerun as f64 && !is_near_the_machines(derived) && !may_sync(derived, &device);
            (freerun, if is_reached { waiting_writers(derived, processes) } else { Vec::new() })
        }
    };
    let is_small = freerun as f64 <= SMALL_S * derived.speed_of(&device)?.value;
    (is_small && !waiters.is_empty()).then(|| Crowded {
        cgroup: budget.cgroup,
        freerun,
        available: (freerun as f64 / part.max(f64::MIN_POSITIVE)) as u64,
        peak,
        below,
        reason,
        disk: device.name.clone(),
        utilisation,
        is_traced: pauses.is_some(),
        waiters,
    })
}

/// A memory limit: its cgroup, the limit in bytes, and the cgroup's highest memory use in bytes.
type Limited = (EntityId, u64, u64);

/// Memory limits by cgroup path. If several cgroups have the same path, keeps the limit with the least unused memory.
fn memory_limits<'a>(derived: &Derived<'a>) -> BTreeMap<&'a [u8], Limited> {
    let window = derived.window;
    let limited = window.cgroup_limits.iter().filter_map(|(id, span)| {
        let limit =
            [span.last.memory_max, span.last.memory_high].into_iter().flatten().filter_map(Limit::bytes).min()?;
        let used = window.cgroups.get(id)?.max.memory_current?;
        Some((cgroup::path(window, *id)?.as_bytes(), (*id, limit.0, used.0)))
    });
    let mut by_path: BTreeMap<&[u8], Limited> = BTreeMap::new();
    for (path, one) in limited {
        let least = by_path.entry(path).or_insert(one);
        if by_room(&one) < by_room(least) {
            *least = one;
        }
    }
    by_path
}

/// Order of limits by the room that they leave, bytes.
fn by_room(&(id, limit, used): &Limited) -> (u64, EntityId) {
    (limit.saturating_sub(used), id)
}

/// The memory limit with the least unused memory, of a cgroup and those above it, and the dirtyable bytes that it leaves the cgroup.
fn least_available(
    derived: &Derived<'_>,
    budget: &CgroupBudget,
    limits: &BTreeMap<&[u8], Limited>,
) -> Option<(Limited, u64)> {
    let files = derived.window.cgroups.get(&budget.cgroup)?.max.file?.0;
    let above = cgroup::and_above(&budget.path).filter_map(|path| limits.get(path).copied());
    let least = above.min_by_key(by_room)?;
    Some((least, files.saturating_add(by_room(&least).0)))
}

/// Whether memory that is no page cache takes most of a limit.
fn is_full(derived: &Derived<'_>, (id, limit, used): (EntityId, u64, u64)) -> bool {
    let files = derived.window.cgroups.get(&id).and_then(|span| span.max.file).map_or(0, |bytes| bytes.0);
    used.saturating_sub(files) as f64 >= MOST * limit as f64
}

/// Whether the machine itself had so much unwritten that it pauses writers.
fn is_near_the_machines(derived: &Derived<'_>) -> bool {
    let window = derived.window;
    let peak = window.host_series.iter().filter_map(|(_, row)| dirty::unwritten_of(window, row)).max();
    peak.zip(derived.dirty.freerun_ceiling).is_none_or(|(peak, ceiling)| peak >= ceiling)
}

/// Whether programs may sync what is on a disk: it flushes its cache more often than a journal commits, or a sync needs no flush that is
/// counted.
pub(super) fn may_sync(derived: &Derived<'_>, device: &Device<'_>) -> bool {
    let flushes = |disk: &Device<'_>| {
        let has_cache = disk.facts.and_then(|facts| facts.write_back_cache) == Some(true);
        disk.span.growth.flushes.filter(|_| has_cache).map(|count| count.0)
    };
    let flushes = device.bottoms().iter().map(flushes).try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)));
    flushes.is_none_or(|flushes| flushes as f64 > SYNCS_RATE * derived.seconds)
}

/// Processes that waited, and that dirtied more than they read: the kernel pauses each of them, however little it writes.
fn waiting_writers(derived: &Derived<'_>, processes: &[&Writer<'_>]) -> Vec<Waiter> {
    let writes = |writer: &&&Writer<'_>| writer.dirtied_bytes.unwrap_or(0) > writer.read_bytes.unwrap_or(0);
    let pids: BTreeSet<u32> = processes.iter().filter(writes).map(|writer| writer.pid).collect();
    let waiters = derived.waiters().unwrap_or_default().iter();
    waiters.filter(|waiter| pids.contains(&waiter.pid) && waiter.seconds.is_some()).cloned().collect()
}
