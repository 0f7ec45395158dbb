// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of evidence about bytes that one cgroup dirtied and another one wrote, and about devices that are counted in part, computed
//! again from the samples alone.

use super::DIRTIED;
use super::raw::{Raw, is_layer};
use floodline_analysis::report::{Evidence, Finding};
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::sample::{CgroupIoRow, CgroupRow, HostRow, Sample};
use floodline_record::units::Pages;

/// Major number of loop devices.
const LOOP_MAJOR: u32 = 7;

impl Raw {
    /// Bytes that the processes of a cgroup and of cgroups below it dirtied.
    pub(crate) fn dirtied_below(&self, id: EntityId) -> f64 {
        let path = |id: EntityId| match self.entities.get(&id) {
            Some(Entity::Cgroup { path, .. }) => path.to_string(),
            _ => String::new(),
        };
        let (own, below) = (path(id), format!("{}/", path(id)));
        let is_in = |entity: &Entity| match entity {
            Entity::Process { cgroup: Some(of), .. } => path(*of) == own || path(*of).starts_with(&below),
            _ => false,
        };
        self.processes(is_in, DIRTIED)
    }

    /// Bytes written for the inodes of a cgroup, each once: on the devices that carry a filesystem.
    fn written_for(&self, wanted: EntityId) -> f64 {
        let mounts = || self.facts.iter().flat_map(|facts| &facts.mounts);
        let mut mounted: Vec<DevId> = mounts().map(|mount| mount.dev).collect();
        // btrfs has no number of a disk.
        if mounts().any(|mount| mount.dev.major == 0 && mount.fs_type == "btrfs") {
            mounted = self.disks().filter(|(_, name, _)| !is_layer(name)).map(|(.., dev)| dev).collect();
        }
        // What a loop device is given is written a second time, for its image.
        mounted.retain(|dev| dev.major != LOOP_MAJOR);
        let is_its = |entity: &Entity| matches!(entity, Entity::CgroupIo { cgroup, dev } if *cgroup == wanted && mounted.contains(dev));
        let written = |row: &CgroupIoRow| row.wbytes.unwrap_or_default().0;
        let of = |id: EntityId| {
            let rows = || self.samples.iter().filter_map(|sample| sample.cgroup_io.get(id));
            let was_there = self.first().cgroup_io.get(id).map_or(0, written);
            rows().next_back().map_or(0, written).saturating_sub(was_there) as f64
        };
        self.entities.iter().filter(|(_, entity)| is_its(entity)).map(|(id, _)| of(*id)).sum()
    }

    /// Whether a cgroup wrote to several disks.
    pub(crate) fn writes_to_several(&self, wanted: EntityId) -> bool {
        let disks: Vec<DevId> = self.disks().filter(|(_, name, _)| !is_layer(name)).map(|(.., dev)| dev).collect();
        let is_its = |entity: &Entity| matches!(entity, Entity::CgroupIo { cgroup, dev } if *cgroup == wanted && disks.contains(dev));
        let wrote = |id: &EntityId| {
            self.last().cgroup_io.get(*id).is_some_and(|row| row.wbytes.is_some_and(|bytes| bytes.0 > 0))
        };
        self.entities.iter().filter(|(id, entity)| is_its(entity) && wrote(id)).count() > 1
    }

    /// Growth of what is charged to a cgroup and unwritten.
    fn more_unwritten(&self, id: EntityId) -> f64 {
        let unwritten =
            |row: &CgroupRow| (row.file_dirty.unwrap_or_default().0 + row.file_writeback.unwrap_or_default().0) as f64;
        let at = |sample: &Sample| sample.cgroups.get(id).map_or(0.0, unwritten);
        (at(self.last()) - at(self.first())).max(0.0)
    }
}

/// A number of evidence, from the samples; `None` where it is not one of these.
pub(crate) fn again(raw: &Raw, _finding: &Finding, evidence: &Evidence) -> Option<f64> {
    let name = evidence.name.as_str();
    match name {
        // Up to 6.9 the device counts the root's part only.
        "Most dirty and under writeback of the device" => {
            let samples = 0..raw.samples.len();
            let is_counted = samples.clone().any(|at| raw.of_device(at) > 0.0);
            return (!is_counted).then(|| samples.map(|at| raw.unwritten(at)).fold(0.0, f64::max));
        }
        _ if name.starts_with("Bandwidth of ") && name.ends_with(", at least") => {
            // In an interval, or in the part of it in which the disk was busy.
            let fastest = |at: usize| {
                let (bytes, seconds) = (raw.written(at, at + 1), raw.length(at));
                let busy_s = raw.busy(at) * seconds;
                if busy_s >= 0.05 { bytes / busy_s.min(seconds) } else { bytes / seconds }
            };
            return Some(raw.intervals().map(fastest).fold(0.0, f64::max));
        }
        _ => {}
    }
    if name == "Dirty data that the machine removed" {
        let grown = |of: fn(&HostRow) -> Option<Pages>| {
            let read = |sample: &Sample| of(&sample.host).unwrap_or_default().0 as f64;
            read(raw.last()) - read(raw.first())
        };
        let removed = grown(|row| row.nr_dirtied) - grown(|row| row.nr_written);
        let unwritten = grown(|row| row.nr_dirty) + grown(|row| row.nr_writeback);
        return Some((removed - unwritten).max(0.0) * super::PAGE);
    }
    if let Some(path) = name.strip_prefix("Written for inodes of ") {
        return Some(raw.written_for(raw.cgroup_called(path)?));
    }
    let dirtied = name.strip_prefix("Dirtied in ")?;
    match dirtied.strip_suffix(", and written") {
        Some(path) => {
            let id = raw.cgroup_called(path)?;
            let cancelled = raw.processes(|_| true, |row| row.cancelled_write_bytes.unwrap_or_default().0);
            Some(raw.dirtied_below(id) - raw.more_unwritten(id) - cancelled)
        }
        None => Some(raw.dirtied_below(raw.cgroup_called(dirtied)?)),
    }
}
