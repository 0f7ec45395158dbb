// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block devices as rules see them: which are disks, which are layers above others, and their totals in the window.
//! Bytes are never added over layers. `/proc/diskstats` counts at completion; a stacked device counts the same bytes
//! again. [`Interval`] holds the reads and writes between two samples, [`Speed`] the write speed.

pub mod array;
mod interval;
mod speed;
mod stacked;
mod standstill;

pub use self::interval::Interval;
pub use self::speed::{Basis, SMALL_WRITE, Speed};
pub use self::standstill::{Explained, HARDLY, SHORTEST_S, Standstill, cycle_s, distance_s};

use floodline_record::facts::{BlockDevice, HostFacts, Mount, Stack};
use floodline_record::id::{DevId, Entity, EntityId, is_of_btrfs};
use floodline_record::name::Name;
use floodline_record::sample::{BdiRow, DiskRow};
use floodline_record::units::{Count, Nanos, Quantity};
use floodline_record::window::{Span, Window};
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

/// A whole block device of the recording.
#[derive(Clone, Copy)]
pub struct Device<'a> {
    /// Its entity.
    pub id: EntityId,
    /// Its number.
    pub dev: DevId,
    /// Its kernel name.
    pub name: &'a Name,
    /// Facts that the probe found about it.
    pub facts: Option<&'a BlockDevice>,
    /// Its readings, folded.
    pub span: &'a Span<DiskRow>,
    window: &'a Window,
}

/// Most devices of one stack that are visited.
const STACK_MAX: usize = 512;
/// Mean requests in flight while a disk is busy up to which they come one at a time.
const ONE_AT_A_TIME: f64 = 1.5;
/// Flushes for each write up to which hardly a task asks for one.
const FEW_FLUSHES: f64 = 0.1;
/// Part of what a device writes from which another disk may be a member of the same btrfs.
const MEMBER_SHARE: f64 = 0.05;

impl<'a> Device<'a> {
    /// Returns its reads and writes in each interval of the window, in order of time.
    pub fn intervals(&self) -> Vec<Interval> {
        let own = self.own_intervals();
        match self.copies() {
            Some((disks, copies)) => stacked::as_disks_complete(own, &disks, copies),
            None => own,
        }
    }

    /// Reads and writes as its own counters have them: of a layer, a request takes as long as here and below together.
    pub fn own_intervals(&self) -> Vec<Interval> {
        let series = self.window.disk_series.get(&self.id).map(Vec::as_slice).unwrap_or_default();
        let mut intervals: Vec<Interval> =
            series.windows(2).filter_map(|pair| interval::between(&pair[0], &pair[1])).collect();
        // Equal rows are one row of the series. While requests are pending and none ends, these rows are no idle time.
        let stays = |(_, row): &&interval::Reading| row.in_flight.is_some_and(|pending| pending.0 > 0);
        let tail = series.last().filter(stays).filter(|(at, _)| *at < self.span.last_at);
        intervals.extend(tail.and_then(|last| interval::between(last, &(self.span.last_at, last.1.clone()))));
        intervals
    }

    /// For a layer that has its disks for itself: these disks, and how many of them get each byte.
    fn copies(&self) -> Option<(Vec<Device<'a>>, f64)> {
        if self.is_bottom() || self.is_loop() {
            return None;
        }
        let disks: Vec<Device<'a>> = self.bottoms().into_iter().filter(|disk| disk.id != self.id).collect();
        let own = self.span.growth.written?.0 as f64;
        let all: f64 = disks.iter().map(|disk| disk.span.growth.written.map_or(0.0, |bytes| bytes.0 as f64)).sum();
        let copies = (all / own.max(1.0)).round();
        let is_whole = copies >= 1.0 && (all / copies - own).abs() <= stacked::TOLERANCE * own;
        is_whole.then_some((disks, copies))
    }

    /// Bytes written per second over the window.
    pub fn write_rate(&self) -> Option<f64> {
        per_second(self.span.growth.written, self.span.seconds())
    }

    /// Writes per second over the window.
    pub fn write_iops(&self) -> Option<f64> {
        per_second(self.span.growth.writes, self.span.seconds())
    }

    /// Mean size of a write in the window, bytes.
    pub fn mean_write(&self) -> Option<f64> {
        ratio(self.span.growth.written, self.span.growth.writes)
    }

    /// Mean time of a write in the window, seconds, queueing included.
    pub fn write_await(&self) -> Option<f64> {
        ratio(self.span.growth.write_time, self.span.growth.writes).map(|ns| ns / 1e9)
    }

    /// Mean requests in flight while it was busy.
    pub fn queue(&self) -> Option<f64> {
        let (busy, weighted) = (self.span.growth.io_time?, self.span.growth.weighted_io_time?);
        (busy.0 > 0).then(|| weighted.0 as f64 / busy.0 as f64)
    }

    /// Whether its requests came one at a time and hardly a task asked it to flush its cache: a task that asks for something waits for one
    /// request besides its own. False where flushes are not known: the kernel counts none before 5.5, nor on a disk without a cache.
    pub fn is_one_at_a_time(&self) -> bool {
        let growth = &self.span.growth;
        let is_alone = self.queue().is_some_and(|queue| queue <= ONE_AT_A_TIME);
        let has_cache = self.facts.and_then(|facts| facts.write_back_cache) == Some(true);
        let known = growth.flushes.filter(|_| has_cache).zip(growth.writes);
        let hardly = known.is_some_and(|(flushes, writes)| flushes.0 as f64 <= FEW_FLUSHES * writes.0 as f64);
        is_alone && hardly
    }

    /// Part of the window that flushes of its cache took, added up. They are not part of [`Device::utilisation`], and the task that asked
    /// for one waits for it.
    pub fn flushing(&self) -> f64 {
        let seconds = self.span.seconds();
        let flushed = self.span.growth.flush_time.filter(|_| seconds > 0.0);
        flushed.map_or(0.0, |time| time.as_secs_f64() / seconds)
    }

    /// Share of the window with a request in flight, at most 1. Some kernels add the time of a request only when it ends:
    /// requests that are pending at the end of the window count as well.
    pub fn utilisation(&self) -> Option<f64> {
        let seconds = self.span.seconds();
        let counted = per_second(self.span.growth.io_time, seconds).map(|ns| ns / 1e9)?;
        let busy = |interval: Interval| interval.utilisation.unwrap_or(0.0) * interval.seconds;
        let pending = self.own_intervals().into_iter().map(busy).sum::<f64>() / seconds;
        Some(counted.max(pending).min(1.0))
    }

    /// Name of the backing device info that counts the data of its filesystems: the one named after its device number, or that of a
    /// btrfs. A btrfs has one of its own, which counts if the host has no other btrfs and no other filesystem of the device writes.
    /// `None` where a btrfs counts them and its backing device info is not known, or counts the data of other devices too. Those of NFS
    /// and FUSE have no device.
    pub fn bdi_name(&self) -> Option<Name> {
        let own = Name::new(self.dev.to_string());
        let mut of_btrfs = self.btrfs_bdis();
        let Some(first) = of_btrfs.next() else { return Some(own) };
        let mounts = || self.window.facts.iter().flat_map(|facts| &facts.mounts).filter(|mount| self.carries(mount));
        let is_btrfs = |mount: &Mount| mount.fs_type == "btrfs";
        let writes_own = || {
            let own = self.window.lookup().bdi(&own).and_then(|id| self.window.bdis.get(&id));
            own.and_then(|span| span.growth.dirtied).is_some_and(|bytes| bytes.0 > 0)
        };
        if !mounts().any(is_btrfs) || (writes_own() && !mounts().all(is_btrfs)) {
            return Some(own);
        }
        (of_btrfs.next().is_none() && self.has_all_btrfs() && !self.may_be_one_of_several()).then(|| first.clone())
    }

    /// The backing device infos of btrfs that the last sample has. One that is older is that of a filesystem that was unmounted.
    fn btrfs_bdis(&self) -> impl Iterator<Item = &'a Name> {
        let window = self.window;
        let latest = window.bdis.values().map(|span| span.last_at).max();
        let is_there = move |span: &Span<BdiRow>| Some(span.last_at) == latest;
        let name = |id| match window.entities.get(id) {
            Some(Entity::Bdi { name }) if is_of_btrfs(name) => Some(name),
            _ => None,
        };
        window.bdis.iter().filter(move |(_, span)| is_there(span)).filter_map(move |(id, _)| name(id))
    }

    /// Whether another disk may be part of the same btrfs: nothing is mounted from it or built on it, and it writes a good part of what
    /// this device does. Facts do not have the members of a btrfs.
    fn may_be_one_of_several(&self) -> bool {
        let written = |one: &Device<'_>| one.span.growth.written.map_or(0.0, |bytes| bytes.0 as f64);
        let all = devices(self.window);
        let is_held = |one: &Device<'_>| {
            let slaves = all.iter().filter_map(|upper| upper.facts).flat_map(|facts| &facts.slaves);
            slaves.into_iter().any(|slave| *slave == one.dev)
        };
        let is_mounted =
            |one: &Device<'_>| self.window.facts.iter().flat_map(|facts| &facts.mounts).any(|mount| one.carries(mount));
        let least = MEMBER_SHARE * written(self);
        let is_free = |one: &&Device<'a>| one.id != self.id && one.is_bottom() && !is_held(one) && !is_mounted(one);
        all.iter().filter(is_free).any(|one| written(one) > 0.0 && written(one) >= least)
    }

    /// Whether a filesystem is mounted from it or from its partitions.
    fn carries(&self, mount: &Mount) -> bool {
        of_mount(self.window, mount).is_some_and(|device| device.id == self.id)
    }

    /// The [backing device info](Device::bdi_name) that counts the data of its filesystems.
    pub fn bdi(&self) -> Option<&'a Span<BdiRow>> {
        self.window.bdis.get(&self.bdi_id()?)
    }

    fn bdi_id(&self) -> Option<EntityId> {
        self.window.lookup().bdi(&self.bdi_name()?)
    }

    /// Whether the host has a btrfs and every btrfs is mounted from this device. A btrfs on several devices counts for the device that
    /// it is mounted from.
    fn has_all_btrfs(&self) -> bool {
        let mounts = self.window.facts.iter().flat_map(|facts| &facts.mounts);
        let mut of_btrfs = mounts.filter(|mount| mount.fs_type == "btrfs").peekable();
        of_btrfs.peek().is_some() && of_btrfs.all(|mount| self.carries(mount))
    }

    /// Returns a test for names of backing device infos whose writes reach this device: its own, and those of btrfs (`btrfs-1`) where
    /// every btrfs filesystem of the host is mounted from it. Unlike [`Device::bdi_name`], several may be its own.
    pub fn bdi_names(&self) -> impl Fn(&Name) -> bool + use<> {
        let own = self.dev.to_string();
        let has_all_btrfs = self.has_all_btrfs();
        move |name| name.as_bytes() == own.as_bytes() || (has_all_btrfs && is_of_btrfs(name))
    }

    /// The readings of its backing device info one by one, in order of time.
    pub fn bdi_series(&self) -> Option<&'a [(Nanos, BdiRow)]> {
        self.window.bdi_series.get(&self.bdi_id()?).map(Vec::as_slice)
    }

    /// Mounts of filesystems on it or its partitions.
    pub fn mounts(&self) -> Vec<&'a Mount> {
        let of_facts = |facts: &'a HostFacts| self.window.lookup().mounts_of_device(facts, self.dev);
        self.window.facts.iter().flat_map(of_facts).collect()
    }

    /// Whether it is the bottom of its stack: a driver, not a layer.
    pub fn is_bottom(&self) -> bool {
        match self.facts {
            Some(facts) => facts.stack == Stack::Bottom && facts.slaves.is_empty(),
            None => !["loop", "dm-", "md"].iter().any(|layer| self.name.as_bytes().starts_with(layer.as_bytes())),
        }
    }

    /// Whether it is a loop device, backed by a file.
    pub fn is_loop(&self) -> bool {
        match self.facts.map(|facts| &facts.stack) {
            Some(stack) => matches!(stack, Stack::Loop { .. }),
            None => self.name.as_bytes().starts_with(b"loop"),
        }
    }

    /// Whether it keeps its data in memory, so that writes take no time.
    fn is_memory(&self) -> bool {
        ["zram", "ram"].iter().any(|prefix| self.name.as_bytes().starts_with(prefix.as_bytes()))
    }

    /// Whether another block device is built on it.
    fn carries_a_device(&self) -> bool {
        self.window.lookup().carries_a_device(self.dev)
    }

    /// The disks below it, or itself if it is a disk.
    pub fn bottoms(&self) -> Vec<Device<'a>> {
        let is_last = |device: &Device<'_>| device.facts.is_none_or(|facts| facts.slaves.is_empty());
        self.stack().into_iter().filter(is_last).collect()
    }

    /// The devices that it is built on, in all layers.
    pub fn below(&self) -> Vec<Device<'a>> {
        self.stack().into_iter().filter(|device| device.id != self.id).collect()
    }

    /// Whether it is another device, or is built on it.
    pub fn stands_on(&self, lower: &Device<'_>) -> bool {
        self.stack().iter().any(|device| device.id == lower.id)
    }

    /// Itself and the devices that it is built on.
    fn stack(&self) -> Vec<Device<'a>> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::from([self.dev]);
        let mut next = VecDeque::from([*self]);
        while let Some(device) = next.pop_front() {
            if seen.len() > STACK_MAX {
                break;
            }
            found.push(device);
            for slave in device.facts.map(|facts| facts.slaves.as_slice()).unwrap_or_default() {
                let slave = self.window.lookup().whole(self.window, *slave);
                if seen.insert(slave) {
                    next.extend(by_dev(self.window, slave));
                }
            }
        }
        found
    }
}

/// Returns every whole block device of the window, layers included, partitions not, in order of first sight.
pub fn devices(window: &Window) -> Vec<Device<'_>> {
    window.disks.iter().filter_map(|(id, span)| device(window, *id, span)).collect()
}

/// Returns the disks: devices that are not built on another. Their bytes may be added up, except that a mirror writes
/// each byte on every disk.
pub fn disks(window: &Window) -> Vec<Device<'_>> {
    devices(window).into_iter().filter(|device| device.is_bottom() && !device.is_memory()).collect()
}

/// Returns the devices that are built on others, without loop devices: these are built on files.
pub fn layers(window: &Window) -> Vec<Device<'_>> {
    let is_layer = |device: &Device<'_>| !device.is_bottom() && !device.is_loop() && !device.is_memory();
    devices(window).into_iter().filter(is_layer).collect()
}

/// Returns the devices at which dirty pages leave memory for good, most written first: the top of each stack. A loop
/// device is not one, because its bytes become dirty pages of its backing file.
pub fn drains(window: &Window) -> Vec<Device<'_>> {
    let mut drains: Vec<Device<'_>> = devices(window)
        .into_iter()
        .filter(|device| !device.is_loop() && !device.is_memory() && !device.carries_a_device())
        .collect();
    let written = |device: &Device<'_>| device.span.growth.written.or(device.span.last.written).unwrap_or_default();
    drains.sort_by_key(|device| Reverse(written(device)));
    drains
}

/// Returns the whole device of a device number, partitions resolved.
pub fn by_dev(window: &Window, dev: DevId) -> Option<Device<'_>> {
    let lookup = window.lookup();
    let id = lookup.disk(lookup.whole(window, dev))?;
    device(window, id, window.disks.get(&id)?)
}

/// Returns the whole device that a filesystem is on; `None` for filesystems without one. Anonymous device numbers
/// (btrfs) are resolved by the mount's source.
pub fn of_mount<'a>(window: &'a Window, mount: &Mount) -> Option<Device<'a>> {
    by_dev(window, window.lookup().number_of_mount(mount)?)
}

/// Returns the bytes written per second by all disks together.
pub fn disks_write_rate(window: &Window) -> Option<f64> {
    let rates: Vec<f64> = disks(window).iter().filter_map(Device::write_rate).collect();
    (!rates.is_empty()).then(|| rates.iter().sum())
}

fn device<'a>(window: &'a Window, id: EntityId, span: &'a Span<DiskRow>) -> Option<Device<'a>> {
    let Some(Entity::Disk { dev, name }) = window.entities.get(&id) else { return None };
    let lookup = window.lookup();
    if lookup.is_partition(window, *dev, name) {
        return None;
    }
    Some(Device { id, dev: *dev, name, facts: lookup.device(window.facts.as_ref(), *dev), span, window })
}

fn per_second<Q: Quantity>(growth: Option<Q>, seconds: f64) -> Option<f64> {
    growth.filter(|_| seconds > 0.0).map(|growth| growth.raw() as f64 / seconds)
}

fn ratio<Q: Quantity>(amount: Option<Q>, of: Option<Count>) -> Option<f64> {
    let of = of.filter(|of| of.0 > 0)?;
    amount.map(|amount| amount.raw() as f64 / of.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::{Fixture, dev_of, mount};

    fn names(devices: &[Device<'_>]) -> String {
        devices.iter().map(|device| device.name.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// A mirror of two disks with the filesystem, and a loop device on top of that filesystem.
    fn stacked() -> Fixture {
        Fixture::healthy()
            .disk("sdb", |_, _| {})
            .disk("sdb1", |_, _| {})
            .disk("md0", |_, _| {})
            .disk("loop0", |_, _| {})
            .facts(|facts| {
                for device in &mut facts.devices {
                    match device.name.to_string().as_str() {
                        "sdb1" => device.partition_of = Some(dev_of("sdb")),
                        "md0" => device.slaves = vec![dev_of("sda"), dev_of("sdb1")],
                        _ => {}
                    }
                }
            })
    }

    #[test]
    fn bytes_are_never_added_over_layers() {
        let window = stacked().window();
        assert_eq!(names(&devices(&window)), "sda sdb md0 loop0");
        assert_eq!(names(&disks(&window)), "sda sdb");
        assert_eq!(names(&drains(&window)), "md0");
        assert_eq!(names(&by_dev(&window, dev_of("md0")).unwrap().bottoms()), "sda sdb");
        assert_eq!(by_dev(&window, dev_of("sdb1")).unwrap().name.to_string(), "sdb");
    }

    #[test]
    fn without_facts_partitions_and_layers_are_told_by_name() {
        let window = stacked().facts(|facts| facts.devices.clear()).window();
        assert_eq!(names(&devices(&window)), "sda sdb md0 loop0");
        assert_eq!(names(&disks(&window)), "sda sdb");
    }

    #[test]
    fn devices_that_are_built_on_each_other_do_not_hang() {
        let window = stacked().facts(|facts| {
            facts.devices.iter_mut().for_each(|device| device.slaves = vec![dev_of("md0"), dev_of("sda")])
        });
        assert!(devices(&window.window()).iter().all(|device| device.bottoms().len() <= 5));
    }

    #[test]
    fn a_filesystem_with_an_anonymous_number_is_found_by_its_source() {
        let window = stacked().window();
        let mut btrfs = mount("sdb1", "btrfs", "/data", "rw");
        btrfs.dev = DevId { major: 0, minor: 45 };
        assert_eq!(of_mount(&window, &btrfs).unwrap().name.to_string(), "sdb");
        btrfs.source = Name::from("tmpfs");
        assert!(of_mount(&window, &btrfs).is_none());
    }

    #[test]
    fn the_counters_of_the_only_btrfs_are_those_of_its_device() {
        use floodline_record::units::Bytes;
        let facts = stacked().window().facts.unwrap();
        let dev = facts.devices.iter().find(|device| device.name.as_bytes() == b"sdb").unwrap().dev.to_string();
        let host = |filesystems: &[(&str, &str)], own: u64| {
            let mounts = filesystems.iter().map(|(source, kind)| match *kind {
                "btrfs" => Mount { dev: DevId { major: 0, minor: 45 }, ..mount(source, "btrfs", "/data", "rw") },
                kind => mount(source, kind, "/other", "rw"),
            });
            stacked()
                .facts(|facts| facts.mounts.extend(mounts))
                .bdi("btrfs-1", |t, row| row.dirtied = Some(Bytes(t as u64 * 1000)))
                .bdi(&dev, move |t, row| row.dirtied = Some(Bytes(t as u64 * own)))
        };
        let name_of = |host: Fixture| {
            let window = host.window();
            let sdb = devices(&window).into_iter().find(|device| device.name.as_bytes() == b"sdb").unwrap();
            let (name, dirtied) = (sdb.bdi_name(), sdb.bdi().and_then(|bdi| bdi.growth.dirtied));
            assert_eq!(name.is_some(), dirtied.is_some());
            name.map(|name| name.to_string())
        };
        let (of_btrfs, own) = (Some("btrfs-1".to_owned()), Some(dev.clone()));
        let (btrfs, ext4) = (("sdb1", "btrfs"), ("sdb1", "ext4"));
        assert_eq!(name_of(host(&[btrfs], 0)), of_btrfs);
        assert_eq!(name_of(host(&[ext4], 1)), own);
        // Beside a filesystem that writes, none of the two has all of it. One that is only there, as `/boot`, counts nothing.
        assert_eq!(name_of(host(&[btrfs, ext4], 1)), own);
        assert_eq!(name_of(host(&[btrfs, ext4], 0)), of_btrfs);
        // Which of two it is, names do not tell.
        assert_eq!(name_of(host(&[btrfs, ("sda1", "btrfs")], 0)), None);
        let two = host(&[btrfs], 0).bdi("btrfs-2", |_, _| {});
        assert_eq!(name_of(two), None);
        // Another disk with as many writes, and with nothing on it that is known, may be part of the same btrfs.
        let beside = |bytes: u64| {
            host(&[btrfs], 0).disk("sdb", |t, row| row.written = Some(Bytes(t as u64 * 1000))).disk(
                "sdz",
                move |t, row| {
                    row.written = Some(Bytes(t as u64 * bytes));
                },
            )
        };
        assert_eq!(name_of(beside(1000)), None);
        assert_eq!(name_of(beside(10)), of_btrfs);
    }

    #[test]
    fn btrfs_has_backing_device_infos_of_its_own() {
        let check = |sources: &[&str], expect: [bool; 3]| {
            let mounts = sources
                .iter()
                .map(|source| Mount { dev: DevId { major: 0, minor: 45 }, ..mount(source, "btrfs", "/data", "rw") });
            let window = stacked().facts(|facts| facts.mounts.extend(mounts)).window();
            let sdb = devices(&window).into_iter().find(|device| device.name.as_bytes() == b"sdb").unwrap();
            let is_its = sdb.bdi_names();
            let named = [sdb.dev.to_string().as_str(), "btrfs-1", "0:45"].map(|name| is_its(&Name::from(name)));
            assert_eq!(named, expect, "{sources:?}");
        };
        check(&[], [true, false, false]);
        check(&["sdb1"], [true, true, false]);
        check(&["sdb1", "sdb1"], [true, true, false]);
        check(&["sdb1", "sda1"], [true, false, false]);
        check(&["sda1"], [true, false, false]);
    }
}
