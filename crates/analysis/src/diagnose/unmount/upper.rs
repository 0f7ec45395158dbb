// SPDX-License-Identifier: MIT OR Apache-2.0
//! A filesystem that carries the upper directories of overlays: its dirty data, their owner, and the speed of its
//! device.

use super::wait;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{self, Device, Speed};
use crate::diagnose::{cgroup, dirty};
use crate::report::Evidence;
use floodline_record::facts::Mount;
use floodline_record::gap::{Gap, Source};
use floodline_record::id::DevId;
use floodline_record::sample::{BdiRow, HostRow};
use floodline_record::units::Bytes;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A filesystem that carries the upper directories of overlays.
#[derive(Clone, Copy)]
pub struct Upper<'a> {
    /// Where it is mounted.
    pub mount: &'a Mount,
    /// The device that it is on.
    pub device: Device<'a>,
    /// How many of them are mounted that are synced at their unmount. 0 where an overlay came and went between two looks at the
    /// mounts.
    pub overlays: u64,
    /// Whether dirty pages leave memory at its device alone.
    pub is_one_drain: bool,
    /// Dirty and under writeback, at least and at most, bytes.
    pub dirty: (u64, u64),
    /// How fast that device writes, where it is known.
    pub speed: Option<Speed>,
}

impl Upper<'_> {
    /// Seconds that unmounting takes at most.
    pub fn at_most_s(&self) -> Option<f64> {
        match (self.dirty.1, self.speed) {
            (0, _) => Some(0.0),
            (most, speed) => speed.map(|speed| most as f64 / speed.value),
        }
    }
}

/// Most filesystems that are looked at; of more, those with the most dirty data.
const UPPERS_MAX: usize = 64;

/// The filesystems on block devices that carry overlays which sync them.
pub fn uppers<'a>(derived: &Derived<'a>) -> Vec<Upper<'a>> {
    let behaviour = derived.behaviour;
    if behaviour.is_some_and(|kernel| !kernel.stack.overlay_syncs_upper) {
        return Vec::new();
    }
    let mut by_upper: BTreeMap<DevId, u64> = BTreeMap::new();
    let overlays =
        derived.window.facts.iter().flat_map(|facts| &facts.mounts).filter_map(|mount| mount.overlay.as_ref());
    for overlay in overlays.filter(|overlay| !overlay.volatile && overlay.upperdir.is_some()) {
        if let Some(dev) = overlay.upper_dev {
            *by_upper.entry(dev).or_default() += 1;
        }
    }
    let is_one_drain = derived.drains().len() == 1;
    let upper = |(dev, overlays): (&DevId, &u64)| upper(derived, *dev, *overlays, is_one_drain);
    let mut uppers: Vec<Upper<'_>> = by_upper.iter().filter_map(upper).collect();
    if uppers.len() > UPPERS_MAX {
        uppers.sort_by_key(|upper| Reverse(upper.dirty.1));
        uppers.truncate(UPPERS_MAX);
    }
    uppers
}

/// The filesystems on block devices that carry no overlay, as far as the mounts tell: the overlay of a container that fails at once
/// is mounted for milliseconds. Only those alone on their device, and none where nothing was seen to wait in an unmount.
pub fn without_overlay<'a>(derived: &Derived<'a>) -> impl Iterator<Item = Upper<'a>> {
    let syncs = derived.behaviour.is_none_or(|kernel| kernel.stack.overlay_syncs_upper);
    let drains = derived.drains();
    let is_one_drain = drains.len() == 1;
    let seen = syncs && wait::is_seen(derived);
    drains.iter().filter(move |_| seen).filter_map(move |device| {
        let mut mounts = device.mounts().into_iter().filter(|mount| mount.overlay.is_none() && !mount.has_option("ro"));
        let mount = mounts.next()?;
        if mounts.any(|other| other.dev != mount.dev) {
            return None;
        }
        let (dirty, _) = dirty_of(derived, device, Level::Now, is_one_drain)?;
        Some(Upper { mount, device: *device, overlays: 0, is_one_drain, dirty, speed: device.write_bandwidth() })
    })
}

/// What the answer would take: the speed where only a bound is known, else the dirty bytes per device.
pub fn gap(derived: &Derived<'_>, upper: &Upper<'_>) -> Gap {
    match upper.speed.is_some_and(|speed| speed.basis.is_known()) {
        true => derived.gap(Source::DebugWbStats, "dirty bytes per device"),
        false => derived.gap(Source::DebugBdiStats, "BdiWriteBandwidth"),
    }
}

fn upper<'a>(derived: &Derived<'a>, dev: DevId, overlays: u64, is_one_drain: bool) -> Option<Upper<'a>> {
    let mut mounts = derived.window.lookup().mounts_of_number(derived.window.facts.as_ref()?, dev);
    let mount = mounts.find(|mount| mount.overlay.is_none())?;
    let device = device::of_mount(derived.window, mount)?;
    let (dirty, _) = dirty_of(derived, &device, Level::Now, is_one_drain)?;
    Some(Upper { mount, device, overlays, is_one_drain, dirty, speed: device.write_bandwidth() })
}

/// Which reading of a window is meant.
#[derive(Clone, Copy)]
pub enum Level {
    /// The last.
    Now,
    /// The largest.
    Most,
}

/// Dirty bytes of a device, at least and at most, and where the number is from. `is_one_drain`: there is no other
/// device at which dirty pages leave memory.
pub fn dirty_of(
    derived: &Derived<'_>,
    device: &Device<'_>,
    level: Level,
    is_one_drain: bool,
) -> Option<((u64, u64), &'static str)> {
    let bdi = device.bdi_name();
    let sum = |dirty: Option<Bytes>, writeback: Option<Bytes>| Some(dirty?.0.saturating_add(writeback?.0));
    // A wb that the last sample did not have is gone, and with it what it held.
    let (latest, ids) = bdi.as_ref().map(|bdi| derived.window.lookup().wbs(bdi)).unwrap_or_default();
    let wbs: Vec<u64> = ids
        .iter()
        .filter_map(|id| derived.window.wbs.get(id))
        .filter(|span| Some(span.last_at) == latest)
        .filter_map(|span| sum(span.last.reclaimable, span.last.writeback))
        .collect();
    let most = || derived.window.wbs_unwritten_max.get(bdi.as_ref()?).copied();
    if !wbs.is_empty() {
        let now = wbs.into_iter().fold(0, u64::saturating_add);
        let dirty = match level {
            Level::Now => now,
            // The largest of each wb are not of one moment.
            Level::Most => most().unwrap_or(now),
        };
        return Some(((dirty, dirty), "wb_stats WbReclaimable + WbWriteback"));
    }
    let of_row = |row: &BdiRow| sum(row.reclaimable, row.writeback);
    let root_wb = match level {
        Level::Now => device.bdi().and_then(|span| of_row(&span.last)),
        Level::Most => device.bdi_series().and_then(|rows| rows.iter().filter_map(|(_, row)| of_row(row)).max()),
    };
    // Where the bdi's own numbers are those of its root wb, they are a lower bound.
    let behaviour = derived.behaviour;
    let is_sum = behaviour.is_some_and(|kernel| kernel.files.bdi_stats_sum);
    if let Some(dirty) = root_wb.filter(|_| is_sum) {
        return Some(((dirty, dirty), "bdi stats BdiReclaimable + BdiWriteback"));
    }
    let unwritten = |row: &HostRow| dirty::unwritten_of(derived.window, row).map(|bytes| bytes.0);
    let machine = match level {
        Level::Now => unwritten(&derived.window.host.last),
        Level::Most => derived.window.host_series.iter().filter_map(|(_, row)| unwritten(row)).max(),
    }?;
    match is_one_drain {
        true => Some(((machine, machine), "/proc/vmstat nr_dirty + nr_writeback, one disk")),
        false => Some(((root_wb.unwrap_or(0).min(machine), machine), "between its root wb and /proc/vmstat nr_dirty")),
    }
}

/// The cgroups with the most dirty data, as far as they write to the device.
pub fn owners(derived: &Derived<'_>, upper: &Upper<'_>, level: Level) -> impl Iterator<Item = Evidence> {
    let owned = match level {
        Level::Now => cgroup::own_amounts(derived.window, |span| cgroup::dirty_and_writeback(&span.last)),
        Level::Most => cgroup::own_parts(derived.window, &derived.window.unwritten_max),
    };
    let written = derived.devices_written();
    let writes_there = move |id| {
        let devices = written.devices(id);
        devices.is_empty() || devices.iter().any(|device| device.dev == upper.device.dev)
    };
    owned.into_iter().filter(move |(id, _)| writes_there(*id)).take(3).map(|(id, bytes)| {
        Evidence::bytes(format!("Of that, {}", derived.label(id)), bytes, "memory.stat file_dirty + file_writeback")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::sample::WbRow;
    use floodline_testkit::{Fixture, mib};

    #[test]
    fn what_a_btrfs_has_dirty_is_in_wbs_of_its_own() {
        let dirty = |fs_type: &'static str| {
            let held = |mib_dirty: f64| {
                move |_: f64, row: &mut WbRow| {
                    (row.reclaimable, row.writeback) = (Some(Bytes(mib(mib_dirty))), Some(Bytes(0)));
                }
            };
            let window = Fixture::healthy()
                .facts(|facts| facts.mounts.iter_mut().for_each(|mount| mount.fs_type = fs_type.into()))
                .bdi("btrfs-1", |_, _| {})
                .bdi("8:0", |_, row| row.dirtied = Some(Bytes(0)))
                .wb("8:0", 1, held(0.0))
                .wb("btrfs-1", 1, held(50.0))
                .window();
            let derived = Derived::of(&window);
            let sda = derived.devices().iter().find(|device| device.name.as_bytes() == b"sda").expect("a disk");
            [Level::Now, Level::Most].map(|level| dirty_of(&derived, sda, level, false).map(|(dirty, _)| dirty))
        };
        assert_eq!(dirty("btrfs"), [Some((mib(50.0), mib(50.0))); 2]);
        assert_eq!(dirty("ext4"), [Some((0, 0)); 2]);
    }
}
