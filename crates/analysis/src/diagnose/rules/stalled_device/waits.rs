// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits while a disk stood still: of programs, by a trace or by their states in the samples; of any task, by the kernel's
//! pressure; and the CPU time that the host took meanwhile. Does not cover why the disk stood still.

use crate::diagnose::cgroup;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{self, Device, HARDLY, Standstill};
use crate::diagnose::loops;
use crate::diagnose::writer::{self, Period};
use crate::report::Evidence;
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::record::What;
use floodline_record::sample::HostRow;
use floodline_record::units::Nanos;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Smallest part of a wait in a standstill for which the standstill counts as its reason.
const MOST: f64 = 0.5;
/// Part of a standstill that delays of a program must last to cover it: the standstill may begin and end between its samples.
const COVERED: f64 = 0.9;
/// Number of programs that may be asleep in all samples of a standstill by chance, from which states tell nothing.
const BY_CHANCE: f64 = 0.1;

/// A program that waited.
pub(super) struct Waited {
    /// Its name with the process id, and its cgroup.
    pub(super) label: String,
    /// Its longest wait, seconds.
    pub(super) seconds: f64,
    source: &'static str,
}

impl Waited {
    pub(super) fn evidence(&self) -> Evidence {
        Evidence::seconds(format!("Longest wait in a standstill, {}", self.label), self.seconds, self.source)
    }
}

/// Waits while a disk stood still.
pub(super) struct Waits {
    /// Programs, the longest wait first.
    pub(super) programs: Vec<Waited>,
    /// Part of these times with a task waiting for I/O.
    pub(super) pressure: Option<f64>,
    /// Part of the time just before them or just after them with a task waiting for I/O, the larger of both.
    pub(super) pressure_beside: Option<f64>,
    /// Part of the CPU time in which the host ran other threads.
    pub(super) stolen: Option<f64>,
}

impl Waits {
    pub(super) fn of(derived: &Derived<'_>, disk: &Device<'_>, times: &[Standstill]) -> Waits {
        let programs = programs(derived, disk, times, |_| true);
        let seconds: f64 = times.iter().map(Standstill::seconds).sum();
        let of_all = |counter: fn(&HostRow) -> Option<u64>| -> Option<f64> {
            times.iter().map(|time| grown(derived, (time.from, time.to), counter)).sum()
        };
        let (pressed, stolen, all) = (of_all(pressed), of_all(|row| Some(row.cpu_steal?.0)), of_all(cpu));
        let beside = [0, 1].map(|side| pressure(derived, times.iter().map(move |time| time.beside[side])));
        Waits {
            programs,
            pressure: pressed.map(|pressed| (pressed / 1e9 / seconds).min(1.0)),
            pressure_beside: beside.into_iter().reduce(|one, other| Some(one?.max(other?))).flatten(),
            stolen: stolen.zip(all).filter(|(_, all)| *all > 0.0).map(|(stolen, all)| stolen / all),
        }
    }

    pub(super) fn longest(&self) -> Option<&Waited> {
        self.programs.first()
    }
}

/// The programs that waited in those of the standstills that are meant, the longest wait first.
pub(super) fn programs(
    derived: &Derived<'_>,
    disk: &Device<'_>,
    times: &[Standstill],
    is_meant: impl Fn(&Standstill) -> bool,
) -> Vec<Waited> {
    let mut longest = asleep(derived, disk, times, &is_meant);
    // A trace has the wait itself. The states have the part of it between samples, and one of them may have been traced
    // in a short wait only.
    let meant: Vec<Standstill> = times.iter().filter(|time| is_meant(time)).copied().collect();
    for (pid, wait) in traced(derived, disk, &meant) {
        keep_longest(&mut longest, pid, wait);
    }
    let mut programs: Vec<Waited> = longest.into_values().collect();
    programs.sort_by(|one, other| other.seconds.total_cmp(&one.seconds).then(one.label.cmp(&other.label)));
    programs
}

/// CPU time of all kinds in a row.
fn cpu(row: &HostRow) -> Option<u64> {
    let others = [row.cpu_system, row.cpu_idle, row.cpu_iowait, row.cpu_steal];
    Some(others.into_iter().flatten().fold(row.cpu_user?.0, |sum, time| sum.saturating_add(time.0)))
}

/// Time with a task waiting for I/O.
fn pressed(row: &HostRow) -> Option<u64> {
    Some(row.psi_io_some?.0)
}

/// Part of some times with a task waiting for I/O.
fn pressure(derived: &Derived<'_>, times: impl Iterator<Item = (Nanos, Nanos)>) -> Option<f64> {
    let (mut waited, mut seconds) = (0.0, 0.0);
    for (from, to) in times {
        waited += grown(derived, (from, to), pressed)? / 1e9;
        seconds += Nanos(to.0.saturating_sub(from.0)).as_secs_f64();
    }
    (seconds > 0.0).then(|| (waited / seconds).min(1.0))
}

/// Growth of a counter of the machine from one moment to another.
fn grown(derived: &Derived<'_>, (from, to): (Nanos, Nanos), counter: impl Fn(&HostRow) -> Option<u64>) -> Option<f64> {
    let series = &derived.window.host_series;
    let at = |moment: Nanos| {
        let place = series.partition_point(|(at, _)| at.monotonic <= moment);
        counter(&series.get(place.checked_sub(1)?)?.1)
    };
    Some(at(to)?.checked_sub(at(from)?)? as f64)
}

/// Keeps a wait of a process unless a longer one is known. A process id may have been used again.
fn keep_longest(longest: &mut BTreeMap<u32, Waited>, pid: u32, wait: Waited) {
    match longest.entry(pid) {
        Entry::Vacant(entry) => {
            entry.insert(wait);
        }
        Entry::Occupied(mut known) => {
            if wait.seconds > known.get().seconds {
                known.insert(wait);
            }
        }
    }
}

/// Whether a wait on a device may be one on a disk: the disk is in its stack, or below the image that it is. So it may also
/// where the stack is unknown.
fn is_on(derived: &Derived<'_>, dev: DevId, disk: &Device<'_>) -> bool {
    let Some(upper) = device::by_dev(derived.window, dev) else { return true };
    let Some(upper) = loops::holder(derived, &upper) else { return true };
    let bottoms = upper.bottoms();
    let is_unknown = bottoms.is_empty() || bottoms.iter().any(|bottom| !bottom.is_bottom());
    is_unknown || upper.stands_on(disk)
}

/// Longest wait of each program for data of a file to be stored, by a trace, most of which is in a standstill. By process id.
fn traced(derived: &Derived<'_>, disk: &Device<'_>, times: &[Standstill]) -> BTreeMap<u32, Waited> {
    let mut longest: BTreeMap<u32, Waited> = BTreeMap::new();
    for event in &derived.window.events {
        let What::SlowSync(wait) = &event.what else { continue };
        if !wait.operation.is_of_file() || !wait.device.is_none_or(|dev| is_on(derived, dev, disk)) {
            continue;
        }
        let (since, seconds) = (Nanos(event.at.0.saturating_sub(wait.lasted.0)), wait.lasted.as_secs_f64());
        let is_for = |time: &Standstill| time.common_s(since, event.at) >= MOST * seconds;
        if !times.iter().any(is_for) {
            continue;
        }
        let label = format!("{}[{}]", wait.who.comm, wait.who.pid);
        let source = "trace of fsync and its like";
        keep_longest(&mut longest, wait.who.pid, Waited { label, seconds, source });
    }
    longest
}

/// Programs that slept in an uninterruptible sleep in every sample of a standstill and not by chance, with the length of the longest of those
/// that are meant. By process id. Where the kernel counts delays, those of the program must cover that time. Elsewhere it must sleep rarely otherwise.
fn asleep(
    derived: &Derived<'_>,
    disk: &Device<'_>,
    times: &[Standstill],
    is_meant: impl Fn(&Standstill) -> bool,
) -> BTreeMap<u32, Waited> {
    let window = derived.window;
    let elsewhere = derived.not_for(disk);
    let is_program = |id: &EntityId| matches!(window.entities.get(id), Some(Entity::Process { kthread: false, .. }));
    let sleepers = window.asleep.keys().filter(|id| is_program(id)).count();
    let counts_delays = window.facts.as_ref().is_some_and(|facts| facts.task_delayacct == Some(true));
    let samples: Vec<Vec<Nanos>> = times.iter().map(|time| samples_in(derived, time)).collect();
    let inside: usize = samples.iter().map(Vec::len).sum();
    let mut longest = BTreeMap::new();
    for (id, slept) in &window.asleep {
        let Some(Entity::Process { pid, comm, cgroup, kthread: false, .. }) = window.entities.get(id) else { continue };
        let Some(span) = window.processes.get(id) else { continue };
        if elsewhere.is_some_and(|pids| pids.contains(pid)) {
            continue;
        }
        let delayed = writer::counted(window, Period::Window, *id, span).and_then(|row| row.blkio_delay);
        let delayed = delayed.filter(|_| counts_delays).map(Nanos::as_secs_f64);
        let is_asleep = |at: &&Nanos| slept.binary_search(at).is_ok();
        // Samples of standstills outside its life are few, and count against it.
        let slept_inside = samples.iter().flatten().filter(is_asleep).count();
        let others = (span.readings as usize).saturating_sub(inside).max(1);
        let usual = slept.len().saturating_sub(slept_inside) as f64 / others as f64;
        let is_chance = |seen: usize| usual > HARDLY || usual.powi(seen.min(64) as i32) * sleepers as f64 > BY_CHANCE;
        let through = |(time, seen): &(&Standstill, &Vec<Nanos>)| {
            // The delay of a wait is counted when the wait ends.
            let waited = match delayed.filter(|_| !time.is_open()) {
                Some(delayed) => delayed >= COVERED * time.seconds(),
                None => !is_chance(seen.len()),
            };
            is_meant(time) && waited && !seen.is_empty() && seen.iter().all(|at| is_asleep(&at))
        };
        let waits = times.iter().zip(&samples).filter(through).map(|(time, _)| time.seconds());
        let Some(seconds) = waits.reduce(f64::max) else { continue };
        let place = cgroup.filter(|id| cgroup::path(window, *id).is_some_and(|path| path.as_bytes().len() > 1));
        let place = place.map(|id| format!(" in {}", derived.label(id))).unwrap_or_default();
        let label = format!("{comm}[{pid}]{place}");
        keep_longest(&mut longest, *pid, Waited { label, seconds, source: "/proc/PID/stat state D" });
    }
    longest
}

/// Times of the samples in a standstill.
fn samples_in(derived: &Derived<'_>, time: &Standstill) -> Vec<Nanos> {
    let series = &derived.window.host_series;
    let first = series.partition_point(|(at, _)| at.monotonic < time.from);
    series[first..].iter().map(|(at, _)| at.monotonic).take_while(|at| *at <= time.to).collect()
}
