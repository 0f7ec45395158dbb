// SPDX-License-Identifier: MIT OR Apache-2.0
//! Activity of the processes in starved cgroups: whether they dirty the same folios repeatedly, and whether they sleep
//! while the disks are idle. Also whether a storm harms any task.

use super::starved::Starved;
use super::storm::newly_cached;
use super::written::Written;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Device;
use crate::diagnose::short_limit::Occupied;
use crate::diagnose::writer::{Period, Writer};
use crate::diagnose::{cgroup, waiting};
use floodline_record::name::Name;

/// Bytes dirtied per fault from which the unit is a folio and not a page: two pages.
pub(super) const FOLIO_PER_FAULT: f64 = 8_192.0;
/// Bytes dirtied per application byte from which dirtying is rewriting.
pub(super) const REWRITES: f64 = 4.0;
/// Rate of rewriting from which it hurts, bytes per second.
pub(super) const HURTS_RATE: f64 = 1e6;
/// Share of the window with a task waiting for I/O from which throttling hurts.
pub(super) const HURTS_PRESSURE: f64 = 0.1;
/// Utilisation of every disk up to which a storm is small against them.
const LITTLE_BUSY: f64 = 0.25;
/// Utilisation of a disk from which waiting may be for it.
pub(super) const SATURATED: f64 = 0.9;

/// What the processes in starved cgroups did.
#[derive(Default)]
pub(super) struct Activity<'w, 'a> {
    pub(super) writers: Vec<&'w Writer<'a>>,
    pub(super) dirtied: u64,
    /// Those of them that were written: folios may blow up the count of dirtied bytes.
    pub(super) written: u64,
    /// Bytes handed to write calls, or those that are new in the page cache where these are more.
    pub(super) application: u64,
    /// Bytes handed to write calls.
    pub(super) handed: u64,
    /// Bytes that are new in the page cache of each cgroup and were not read from a disk, at least.
    pub(super) new: u64,
    pub(super) faults: u64,
    pub(super) rate: Option<f64>,
    /// Page cache of all, at most, where write calls dirty the same pages many times.
    pub(super) called: Option<u64>,
}

impl Activity<'_, '_> {
    pub(super) fn per_fault(&self) -> f64 {
        self.dirtied as f64 / self.faults.max(1) as f64
    }

    /// Bytes per second that are written for what is dirtied.
    pub(super) fn written_rate(&self) -> Option<f64> {
        Some(self.rate? * self.written as f64 / self.dirtied.max(1) as f64)
    }

    pub(super) fn is_amplified(&self) -> bool {
        let written = self.written as f64;
        let by_stores = written >= REWRITES * self.application.max(1) as f64
            && written >= FOLIO_PER_FAULT * self.faults.max(1) as f64;
        self.written_rate().is_some_and(|rate| rate >= HURTS_RATE) && (by_stores || self.called.is_some())
    }
}

pub(super) fn activity<'w, 'a>(
    derived: &Derived<'_>,
    starved: &[Starved<'_>],
    occupied: Option<&Occupied<'w, 'a>>,
    period: Period,
) -> Activity<'w, 'a> {
    let written = Written::of(derived, derived.writers());
    let mut activity = Activity::default();
    for one in starved {
        let Some(processes) = occupied.and_then(|occupied| occupied.get(&one.budget.cgroup)) else { continue };
        let part = written.part_of(one.budget.cgroup, one.peak.unwrap_or(0), processes);
        let mut handed = 0u64;
        for process in processes {
            let dirtied = process.dirtied_bytes.unwrap_or(0);
            activity.dirtied = activity.dirtied.saturating_add(dirtied);
            activity.written = activity.written.saturating_add((part * dirtied as f64) as u64);
            handed = handed.saturating_add(process.application_bytes.unwrap_or(0));
            activity.faults = activity.faults.saturating_add(process.faults.unwrap_or(0));
            activity.writers.push(process);
        }
        // `splice` is no write call, but what it writes is new in the page cache.
        let span = derived.window.cgroups.get(&one.budget.cgroup);
        let new = span.map_or(0, |span| newly_cached(derived, Some(span), processes));
        activity.application = activity.application.saturating_add(handed.max(new));
        activity.handed = activity.handed.saturating_add(handed);
        activity.new = activity.new.saturating_add(new);
    }
    activity.writers.sort_by_key(|writer| (std::cmp::Reverse(writer.dirtied_bytes), writer.pid));
    let seconds = derived.seconds;
    activity.rate = (period == Period::Window && seconds > 0.0).then(|| activity.dirtied as f64 / seconds);
    activity
}

/// How tasks of starved cgroups fare, and whether a disk could be the reason.
pub(super) struct Waiting<'a> {
    /// Cgroups that were over their threshold.
    pub(super) over: u64,
    /// The largest share of the window in which a task of one of them waited for I/O.
    pub(super) pressure: Option<f64>,
    /// The busiest disk.
    pub(super) busiest: Option<(f64, &'a Name)>,
}

/// Part of the time that is shown as 0 %.
const NONE_SHOWN: f64 = 0.005;

impl Waiting<'_> {
    /// Whether a task of these cgroups waited, as far as is known.
    pub(super) fn may_wait(&self) -> bool {
        self.pressure.is_none_or(|share| share >= NONE_SHOWN)
    }

    /// Over the threshold and asleep, and no disk has enough to do for that.
    pub(super) fn is_throttling(&self) -> bool {
        let disks_idle = self.busiest.is_some_and(|(utilisation, _)| utilisation < SATURATED);
        self.over > 0 && disks_idle && self.pressure.is_some_and(|share| share >= HURTS_PRESSURE)
    }
}

pub(super) fn waiting<'a>(derived: &Derived<'a>, starved: &[Starved<'_>]) -> Waiting<'a> {
    let is_over = |starved: &&Starved<'_>| starved.peak.is_some_and(|peak| peak > starved.thresh);
    let pressure =
        |starved: &Starved<'_>| cgroup::io_pressure_some(derived.window.cgroups.get(&starved.budget.cgroup)?);
    let disks = derived.disks();
    let busy = disks.iter().filter_map(|disk| Some((disk.utilisation()?, disk.name)));
    Waiting {
        over: starved.iter().filter(is_over).count() as u64,
        pressure: starved.iter().filter_map(pressure).max_by(f64::total_cmp),
        busiest: busy.max_by(|one, other| one.0.total_cmp(&other.0)),
    }
}

/// Whether a storm is known to harm no task: those of its domain wait little, given their `pressure`, each disk is idle for most of the
/// time, and no other task waits long for one of them.
pub(super) fn is_harmless(derived: &Derived<'_>, pressure: Option<f64>) -> bool {
    let waits_little = |share: Option<f64>| share.is_some_and(|share| share < HURTS_PRESSURE);
    let is_little = |disk: &Device<'_>| disk.utilisation().is_some_and(|busy| busy < LITTLE_BUSY);
    // Where waits of tasks are not known, the pressure of the machine counts.
    let waits_none = |disk: &Device<'_>| match waiting::others_on(derived, disk, |_| false) {
        Some(waiters) => !waiting::is_harm(derived, &waiters),
        None => waits_little(derived.dirty.io_pressure_some),
    };
    waits_little(pressure) && derived.disks().iter().all(|disk| is_little(disk) && waits_none(disk))
}

/// Other processes in these cgroups: not those that dirty most of it.
pub(super) fn victims(activity: &Activity<'_, '_>) -> String {
    let is_victim = |writer: &&&Writer<'_>| {
        !writer.kthread
            && writer.dirtied_bytes.unwrap_or(0) < activity.dirtied / 100 / activity.writers.len().max(1) as u64
    };
    let mut names: Vec<String> =
        activity.writers.iter().filter(is_victim).map(|writer| writer.comm.to_string()).collect();
    names.sort();
    names.dedup();
    names.truncate(4);
    names.join(", ")
}
