// SPDX-License-Identifier: MIT OR Apache-2.0
//! Circumstances of a real machine's run that a recording contains, besides the speed of its CPU: when its workload
//! and each program began, how fast its disks were, and how late its threads woke up. A simulated run that is compared
//! with the recording uses the same. None of them is a figure that is compared.

use crate::arena::BlockId;
use crate::block::Worker;
use crate::delay::Delay;
use crate::found_disk::{FoundDisk, Moment};
use crate::found_share::StartShares;
use crate::hypervisor::Joins;
use crate::steal::{Clock, Steal};
use crate::wake_ups::{Late, WakeUps, delays};
use crate::world::World;
use floodline_record::facts::BlockDevice;
use floodline_record::id::{Entity, is_of_btrfs};
use floodline_record::name::Name;
use floodline_record::record::{TaskName, What};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::{Random, Share};
use std::collections::BTreeMap;

/// Longest plausible delay of a program's start. A longer one has another reason.
const LATEST: u64 = 5 * Nanos::SECOND.0;

/// Circumstances of a run. The model chooses those that are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Time that the kernel ran before the first sample.
    pub uptime: Nanos,
    /// Time from the first sample, when the filesystems are mounted, to the workload's start.
    pub quiet: Option<Nanos>,
    /// Start of each program, from the workload's start.
    pub starts: BTreeMap<TaskName, Nanos>,
    /// Disks by name.
    pub disks: BTreeMap<String, FoundDisk>,
    /// Delays that device-mapper puts before disks, by their names.
    pub delays: BTreeMap<String, Nanos>,
    /// Whether its disks are those of a QEMU that makes one request of several that it finds together.
    pub joins: bool,
    /// Their speed from moment to moment, where it was measured, by time since the workload's start.
    pub moments: BTreeMap<String, Vec<Moment>>,
    /// Shares of the dirty threshold in the first sample, by disk. Disks that are missing had none.
    pub shares: BTreeMap<String, Share>,
    /// How late threads were that were woken.
    pub wake_ups: Vec<Late>,
    /// Steal time while threads ran. Only the recorder's CPU time from sample to sample shows it, which a window omits.
    pub steal: Option<Steal>,
    /// Least time between two samples that read `memory.stat` and `io.stat`, for which the kernel folds the counters that
    /// throttling reads. 0 for each sample.
    pub stat_every: Nanos,
}

impl World {
    /// Applies the known uptime of the kernel, the time its disks take to flush their caches, and how late its threads
    /// wake up.
    pub(crate) fn set_found(&mut self, found: &Found) {
        self.uptime = found.uptime.0;
        let disks: Vec<_> = self.blocks.iter().filter(|(_, block)| block.has_credit()).map(|(id, _)| id).collect();
        for id in disks {
            self.blocks[id].joins = found.joins.then(|| Joins::new(Random::new(self.placement.number())));
        }
        for (name, delay) in &found.delays {
            let id = self.blocks.iter().find(|(_, block)| block.name == *name).map(|(id, _)| id);
            let Some(id) = id else { continue };
            self.blocks[id].delay = Some(Delay::new(delay.0));
            self.new_workers.push(Worker::Delay(id));
        }
        let root = |block: BlockId| self.bdi_of_data(block).map(|bdi| self.bdis[bdi].root);
        let shares = self.blocks.iter().filter_map(|(id, block)| root(id).zip(found.shares.get(&block.name).copied()));
        let shares: Vec<_> = shares.collect();
        if !shares.is_empty() {
            self.set_shares(&shares);
        }
        self.wake_ups = WakeUps::new(found.wake_ups.clone());
        self.cpu.steal = found.steal.map(|steal| Clock::new(steal, Random::new(self.placement.number())));
        for (name, disk) in &found.disks {
            let Some(id) = self.blocks.iter().find(|(_, block)| block.name == *name).map(|(id, _)| id) else {
                continue;
            };
            let block = &mut self.blocks[id];
            block.read_latency = disk.read_latency.map(|latency| latency.0);
            block.flush_latency = disk.flush_latency.map(|latency| latency.0);
            block.flush_bandwidth = disk.flush_bandwidth.unwrap_or(0);
            block.moments.known = found.moments.get(name).cloned().unwrap_or_default();
        }
    }
}

/// The shares of disks with which a recording begins. A booted kernel has counted no page, which is the model's usual state.
fn shares(window: &Window) -> BTreeMap<String, Share> {
    let Some(start) = StartShares::of(window).filter(StartShares::is_any) else { return BTreeMap::new() };
    let facts = || window.facts.iter();
    let is_btrfs = |name: &Name| {
        let source = format!("/dev/{name}");
        let mut mounts = facts().flat_map(|facts| &facts.mounts);
        mounts.any(|mount| mount.fs_type == "btrfs" && mount.source.as_bytes() == source.as_bytes())
    };
    let names = window.entities.values().filter_map(|entity| match entity {
        Entity::Bdi { name } if is_of_btrfs(name) => Some(name),
        _ => None,
    });
    let of_btrfs: Vec<&Name> = names.collect();
    // Which device a btrfs lies on its bdi does not tell: it is known where there is one.
    let share = |device: &BlockDevice| match of_btrfs.as_slice() {
        [only] if is_btrfs(&device.name) => start.of_bdi(only),
        _ => start.of_bdi(&Name::new(device.dev.to_string())),
    };
    let devices = facts().flat_map(|facts| &facts.devices);
    devices.filter_map(|device| Some((device.name.to_string(), share(device)?))).collect()
}

impl Found {
    /// Reads the circumstances from a recording.
    pub fn of(window: &Window) -> Found {
        let began = window.events.iter().find(|event| matches!(event.what, What::WorkloadStarted { .. }));
        let Some(began) = began.map(|event| event.at.0) else { return Found::default() };
        let started = |event: &floodline_record::record::Event| match &event.what {
            What::TaskStarted { task, .. } => Some((task.clone(), Nanos(event.at.0.checked_sub(began)?))),
            _ => None,
        };
        let name = |id| match window.entities.get(id) {
            Some(Entity::Disk { name, .. }) => Some(name.to_string()),
            _ => None,
        };
        let disks = || window.disk_series.iter().filter_map(|(id, series)| Some((name(id)?, series)));
        Found {
            uptime: window.first_at.map_or(Nanos(0), |first| first.monotonic),
            quiet: window.first_at.and_then(|first| began.checked_sub(first.monotonic.0)).map(Nanos),
            starts: window.events.iter().filter_map(started).collect(),
            delays: BTreeMap::new(),
            joins: window.facts.as_ref().is_some_and(|facts| !facts.has_unjoined_disks()),
            disks: disks().map(|(name, series)| (name, FoundDisk::of(series))).collect(),
            moments: disks().map(|(name, series)| (name, Moment::of(series, began))).collect(),
            shares: shares(window),
            wake_ups: delays(&window.host_series, began),
            steal: None,
            stat_every: window.stat_reads.distance().unwrap_or_default(),
        }
    }

    /// Delay of the program that started last, of those given with their planned time after the workload's start;
    /// nothing if unknown. The order of their starts is random.
    pub(crate) fn late(&self, wanted: impl Iterator<Item = (TaskName, u64)>) -> Option<u64> {
        let late = wanted.filter_map(|(task, wanted)| Some(self.starts.get(&task)?.0.saturating_sub(wanted)));
        late.filter(|late| *late <= LATEST).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::record::Event;
    use floodline_record::sample::SampleTime;

    #[test]
    fn the_last_program_tells_how_late_they_may_begin() {
        let name = |task: &str| TaskName { task: task.into(), copy: 0 };
        let started = |task, millis| Event {
            at: Nanos::from_millis(millis),
            what: What::TaskStarted { task: name(task), pid: None },
        };
        let began = What::WorkloadStarted { scenario: "s".into(), variant: "v".into() };
        let window = Window {
            first_at: Some(SampleTime { monotonic: Nanos::from_millis(7_000), wall: Nanos(0) }),
            events: vec![
                Event { at: Nanos::from_millis(7_400), what: began },
                started("at once", 7_430),
                started("after a second", 8_450),
                started("after a minute", 67_500),
            ],
            ..Window::default()
        };
        let found = Found::of(&window);
        assert_eq!((found.uptime, found.quiet), (Nanos::from_millis(7_000), Some(Nanos::from_millis(400))));
        let wanted = [("at once", 0), ("after a second", 1_000_000_000), ("after a minute", 0), ("unknown", 0)];
        let wanted = || wanted.into_iter().map(|(task, at)| (name(task), at));
        assert_eq!(found.late(wanted()), Some(50_000_000), "a minute late was meant otherwise");
        assert_eq!(Found::of(&Window::default()), Found::default());
    }
}
