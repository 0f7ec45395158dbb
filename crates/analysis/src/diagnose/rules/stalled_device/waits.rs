// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits while a disk stood still: of programs, by a trace or by their states in the samples; of any task, by the kernel's
//! pressure; and the CPU time that the host took meanwhile. Does not cover why the disk stood still.

use crate::diagnose::cgroup;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Standstill};
use crate::report::Evidence;
use floodline_record::id::{DevId, Entity};
use floodline_record::record::What;
use floodline_record::sample::HostRow;
use floodline_record::units::Nanos;
use std::collections::BTreeMap;

/// Part of a wait that is in a standstill from which the task waited for that.
const MOST: f64 = 0.5;

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
        Evidence::seconds(format!("Longest wait in them, {}", self.label), self.seconds, self.source)
    }
}

/// Waits while a disk stood still.
pub(super) struct Waits {
    /// Programs, the longest wait first.
    pub(super) programs: Vec<Waited>,
    /// Part of these times with a task waiting for I/O.
    pub(super) pressure: Option<f64>,
    /// Part of the CPU time in which the host ran other threads.
    pub(super) stolen: Option<f64>,
}

impl Waits {
    pub(super) fn of(derived: &Derived<'_>, disk: &Device<'_>, times: &[Standstill]) -> Waits {
        let mut longest = asleep(derived, disk, times);
        // A trace has the wait itself. The states have the part of it between samples.
        for (pid, wait) in traced(derived, disk, times) {
            longest.insert(pid, wait);
        }
        let mut programs: Vec<Waited> = longest.into_values().collect();
        programs.sort_by(|one, other| other.seconds.total_cmp(&one.seconds).then(one.label.cmp(&other.label)));
        let seconds: f64 = times.iter().map(Standstill::seconds).sum();
        let pressed: Option<f64> = times.iter().map(|time| grown(derived, time, |row| Some(row.psi_io_some?.0))).sum();
        let stolen: Option<f64> = times.iter().map(|time| grown(derived, time, |row| Some(row.cpu_steal?.0))).sum();
        let all: Option<f64> = times.iter().map(|time| grown(derived, time, cpu)).sum();
        Waits {
            programs,
            pressure: pressed.map(|pressed| (pressed / 1e9 / seconds).min(1.0)),
            stolen: stolen.zip(all).filter(|(_, all)| *all > 0.0).map(|(stolen, all)| stolen / all),
        }
    }

    pub(super) fn longest(&self) -> Option<&Waited> {
        self.programs.first()
    }
}

/// CPU time of a row, whoever used it.
fn cpu(row: &HostRow) -> Option<u64> {
    let others = [row.cpu_system, row.cpu_idle, row.cpu_iowait, row.cpu_steal];
    Some(others.into_iter().flatten().fold(row.cpu_user?.0, |sum, time| sum.saturating_add(time.0)))
}

/// Growth of a counter of the machine in a standstill.
fn grown(derived: &Derived<'_>, time: &Standstill, counter: impl Fn(&HostRow) -> Option<u64>) -> Option<f64> {
    let series = &derived.window.host_series;
    let at = |moment: Nanos| {
        let place = series.partition_point(|(at, _)| at.monotonic <= moment);
        counter(&series.get(place.checked_sub(1)?)?.1)
    };
    Some(at(time.to)?.checked_sub(at(time.from)?)? as f64)
}

/// Longest wait of each program for data of a file to be stored, by a trace, most of which is in a standstill. By process id.
fn traced(derived: &Derived<'_>, disk: &Device<'_>, times: &[Standstill]) -> BTreeMap<u32, Waited> {
    let window = derived.window;
    let disks = derived.disks();
    // A wait on a device that is not a known disk, such as a stack of them, counts for each disk.
    let is_here = |dev: DevId| {
        let whole = window.lookup().whole(window, dev);
        whole == disk.dev || disks.iter().all(|other| other.dev != whole)
    };
    let mut longest: BTreeMap<u32, Waited> = BTreeMap::new();
    for event in &window.events {
        let What::SlowSync(wait) = &event.what else { continue };
        if !wait.operation.is_of_file() || !wait.device.is_none_or(is_here) {
            continue;
        }
        let (since, seconds) = (Nanos(event.at.0.saturating_sub(wait.lasted.0)), wait.lasted.as_secs_f64());
        let is_for = |time: &Standstill| time.common_s(since, event.at) >= MOST * seconds;
        if !times.iter().any(is_for) || longest.get(&wait.who.pid).is_some_and(|known| known.seconds >= seconds) {
            continue;
        }
        let label = format!("{}[{}]", wait.who.comm, wait.who.pid);
        let source = "trace of fsync and its like";
        longest.insert(wait.who.pid, Waited { label, seconds, source });
    }
    longest
}

/// Programs that slept in an uninterruptible sleep in every sample of a standstill, and not in all others, with the length of
/// the longest. By process id.
fn asleep(derived: &Derived<'_>, disk: &Device<'_>, times: &[Standstill]) -> BTreeMap<u32, Waited> {
    let window = derived.window;
    let elsewhere = derived.not_for(disk);
    let mut longest = BTreeMap::new();
    for (id, slept) in &window.asleep {
        let Some(Entity::Process { pid, comm, cgroup, kthread: false, .. }) = window.entities.get(id) else { continue };
        let readings = window.processes.get(id).map_or(0, |span| span.readings as usize);
        if slept.len() >= readings || elsewhere.is_some_and(|pids| pids.contains(pid)) {
            continue;
        }
        let through = |time: &&Standstill| {
            let all = window.host_series.iter().map(|(at, _)| at.monotonic);
            let mut samples = all.skip_while(|at| *at < time.from).take_while(|at| *at <= time.to).peekable();
            samples.peek().is_some() && samples.all(|at| slept.binary_search(&at).is_ok())
        };
        let Some(seconds) = times.iter().filter(through).map(Standstill::seconds).reduce(f64::max) else { continue };
        let place = cgroup.filter(|id| cgroup::path(window, *id).is_some_and(|path| path.as_bytes().len() > 1));
        let place = place.map(|id| format!(" in {}", derived.label(id))).unwrap_or_default();
        let label = format!("{comm}[{pid}]{place}");
        longest.insert(*pid, Waited { label, seconds, source: "/proc/PID/stat state D" });
    }
    longest
}
