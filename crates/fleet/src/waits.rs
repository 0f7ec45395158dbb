// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long writers will wait, by arithmetic. What a writer dirties beyond its new limit leaves at the speed of the disk
//! instead of that of memory. The unit is that of the twin and of measurements: task-seconds of waiting per second.

use crate::backlog::{Arrival, Limit, fits};
use floodline_analysis::budget::AsIfRow;
use floodline_analysis::diagnose::derived::Derived;
use floodline_analysis::diagnose::device::{Basis, Device, Speed};
use floodline_record::id::Entity;
use std::collections::BTreeMap;

/// What every cgroup and the machine dirty, and how long the disks take to write it.
pub(crate) struct Dirtying {
    /// Bytes per second that the processes of each cgroup dirty, by path.
    of_cgroups: BTreeMap<String, f64>,
    /// Bytes per second that no process shows: those of processes between two samples.
    unattributed: f64,
    /// Bytes per second of the machine.
    machine: f64,
    /// Seconds that the disks take to write a byte, by what they wrote.
    pub(crate) seconds_per_byte: f64,
    seconds: f64,
}

impl Dirtying {
    /// Reads them; `None` for a single sample, and where no disk shows a speed.
    pub(crate) fn of(derived: &Derived<'_>) -> Option<Dirtying> {
        let seconds = derived.seconds;
        let machine = derived.dirty.dirtying_rate.filter(|_| derived.has_rates && seconds > 0.0)?;
        let mut of_cgroups: BTreeMap<String, f64> = BTreeMap::new();
        for writer in derived.writers().processes.iter().filter(|writer| !writer.kthread) {
            let Some(rate) = writer.dirtied_bytes.map(|bytes| bytes as f64 / seconds).filter(|rate| *rate > 0.0) else {
                continue;
            };
            if let Some(Entity::Cgroup { path, .. }) = writer.cgroup.and_then(|id| derived.window.entities.get(&id)) {
                *of_cgroups.entry(path.to_string()).or_default() += rate;
            }
        }
        let unattributed = (machine - of_cgroups.values().sum::<f64>()).max(0.0);
        let seconds_per_byte = seconds_per_byte(derived.drains())?;
        Some(Dirtying { of_cgroups, unattributed, machine, seconds_per_byte, seconds })
    }

    /// Task-seconds per second that writers wait for limits that do not hold what they have unwritten. `over` has each of these
    /// limits, with the part of the data that fits below it; `all` has every row.
    pub(crate) fn waits<'a>(&self, over: impl Iterator<Item = (&'a AsIfRow, f64)>, all: &[AsIfRow]) -> f64 {
        let peaks = peaks(all);
        let (mut machine, mut cgroups) = (0.0, 0.0);
        for (row, fits) in over {
            let beyond = (1.0 - fits).clamp(0.0, 1.0);
            match &row.cgroup {
                None => machine = self.machine * beyond,
                Some(path) => {
                    // What was unwritten was dirtied.
                    let least = peak(row) / self.seconds;
                    cgroups += self.rate(path, row, peaks).max(least) * beyond;
                }
            }
        }
        f64::max(machine, cgroups) * self.seconds_per_byte
    }

    /// Whether what arrives evenly between two samples fits below limits that do not hold the peaks of a recording.
    pub(crate) fn may_fit<'a>(
        &self,
        arrivals: &[Arrival],
        over: impl Iterator<Item = &'a AsIfRow>,
        all: &[AsIfRow],
    ) -> bool {
        let peaks = peaks(all);
        let limit = |row: &AsIfRow| {
            Some(Limit {
                share: self.share(row, peaks),
                background: row.then_bg_thresh_bytes? as f64,
                freerun: row.then_freerun_bytes? as f64,
            })
        };
        let limits: Option<Vec<Limit>> = over.map(limit).collect();
        let speed = 1.0 / self.seconds_per_byte;
        limits.is_some_and(|limits| !arrivals.is_empty() && fits(arrivals, &limits, speed))
    }

    /// Part of what the machine dirties that is dirtied below a limit. `peaks` are those of all cgroups.
    pub(crate) fn share(&self, row: &AsIfRow, peaks: f64) -> f64 {
        match &row.cgroup {
            None => 1.0,
            Some(path) if self.machine > 0.0 => (self.rate(path, row, peaks) / self.machine).min(1.0),
            Some(_) => 0.0,
        }
    }

    /// Bytes per second that a cgroup dirties: those of its processes, and its part of those that no process shows.
    fn rate(&self, path: &str, row: &AsIfRow, peaks: f64) -> f64 {
        let unseen = if peaks > 0.0 { self.unattributed * peak(row) / peaks } else { 0.0 };
        self.of_cgroups.get(path).copied().unwrap_or(0.0) + unseen
    }
}

fn peak(row: &AsIfRow) -> f64 {
    row.peak_bytes.unwrap_or(0) as f64
}

/// Peaks of all cgroups.
pub(crate) fn peaks(all: &[AsIfRow]) -> f64 {
    all.iter().filter(|row| row.cgroup.is_some()).map(peak).sum()
}

/// Seconds that the devices take to write a byte, each by its part of what was written.
fn seconds_per_byte(drains: &[Device<'_>]) -> Option<f64> {
    let parts: Vec<(f64, f64)> = drains
        .iter()
        .filter_map(|device| Some((device.span.growth.written?.0 as f64, speed(device)?)))
        .filter(|(written, speed)| *written > 0.0 && *speed > 0.0)
        .collect();
    let all: f64 = parts.iter().map(|(written, _)| written).sum();
    (all > 0.0).then(|| parts.iter().map(|(written, speed)| written / all / speed).sum())
}

/// Bytes per second that a device writes. Where the device was not saturated, the kernel's estimate is that of a burst, or
/// that of the rate that programs asked for: what the device wrote while it was busy is nearer.
pub(crate) fn speed(device: &Device<'_>) -> Option<f64> {
    match (device.write_bandwidth(), busy_speed(device)) {
        (Some(Speed { value, basis: Basis::Saturated }), _) | (Some(Speed { value, .. }), None) => Some(value),
        (_, busy) => busy,
    }
}

/// Bytes per second while it has a request in flight: a lower bound of its speed.
fn busy_speed(device: &Device<'_>) -> Option<f64> {
    let growth = &device.span.growth;
    let (written, busy) = (growth.written?.0 as f64, growth.io_time?.as_secs_f64());
    (written > 0.0 && busy > 0.0).then(|| written / busy)
}
