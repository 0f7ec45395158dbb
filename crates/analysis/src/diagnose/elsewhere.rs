// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of several devices a process writes to. `/proc` counts the bytes of a process without the device. A trace has the
//! filesystem of each dirtied page; a cgroup's `io.stat` has the devices of its requests. Bytes that neither places count for every
//! device.

use super::derived::Derived;
use super::device::Device;
use super::writer::{DOMINANT_LEAST, Writer};
use super::{cgroup, writer};
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::record::What;
use floodline_record::sample::CgroupIoRow;
use std::collections::{BTreeMap, BTreeSet};

/// Share of what is known of a process or cgroup below which it writes elsewhere.
const HARDLY: f64 = 0.2;
/// Part of a process' dirtied bytes that its cgroup must have sent to disks, for the disks to say where they go: the rest
/// may be in memory still.
const MOSTLY: f64 = 0.5;

/// Bytes on a device, and on all others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Parts {
    here: u64,
    elsewhere: u64,
}

impl Parts {
    fn add(&mut self, is_here: bool, bytes: u64) {
        let part = if is_here { &mut self.here } else { &mut self.elsewhere };
        *part = part.saturating_add(bytes);
    }

    fn all(self) -> u64 {
        self.here.saturating_add(self.elsewhere)
    }

    fn is_hardly_here(self) -> bool {
        (self.here as f64) < HARDLY * self.all() as f64
    }
}

/// What is known of the writers of one device.
pub struct Elsewhere {
    /// Traced bytes by process id.
    traced: BTreeMap<u32, Parts>,
    /// Device bytes by cgroup, descendants included.
    sent: BTreeMap<EntityId, Parts>,
}

impl Elsewhere {
    /// What is known for a device of several.
    pub fn of(derived: &Derived<'_>, drain: &Device<'_>) -> Elsewhere {
        Elsewhere { traced: traced(derived, |dev| dev == drain.dev), sent: sent(derived, drain) }
    }

    /// Whether a process was seen to write to other devices and hardly to this one.
    pub fn holds(&self, derived: &Derived<'_>, writer: &Writer<'_>) -> bool {
        let dirtied = writer.dirtied_bytes.unwrap_or(0);
        if let Some(parts) = self.traced.get(&writer.pid).filter(|parts| parts.all() >= DOMINANT_LEAST) {
            return parts.is_hardly_here();
        }
        let is_root = |id| cgroup::path(derived.window, id).is_some_and(|path| path.as_bytes() == b"/");
        let Some(parts) = writer.cgroup.filter(|id| !is_root(*id)).and_then(|id| self.sent.get(&id)) else {
            return false;
        };
        parts.all() >= writer::DOMINANT_LEAST
            && parts.elsewhere as f64 >= MOSTLY * dirtied as f64
            && parts.is_hardly_here()
    }
}

/// Drains that share a disk with a device: the device, and what is built on it or on its disks.
pub(super) fn sharing<'a, 'w>(derived: &'a Derived<'w>, device: &Device<'_>) -> impl Iterator<Item = &'a Device<'w>> {
    let (id, disks) = (device.id, device.bottoms().iter().map(|disk| disk.id).collect::<BTreeSet<EntityId>>());
    let shares = move |drain: &&Device<'_>| {
        drain.id == id || drain.bottoms().iter().any(|disk| disk.id == id || disks.contains(&disk.id))
    };
    derived.drains().iter().filter(shares)
}

/// Numbers of the superblocks of the filesystems on a disk, or on what is built on it.
pub fn filesystems_on(derived: &Derived<'_>, device: &Device<'_>) -> Vec<DevId> {
    sharing(derived, device).flat_map(|drain| drain.mounts()).map(|mount| mount.dev).collect()
}

/// Processes whose dirtied pages were all seen on other devices than this disk, or what is built on it. Empty without a trace.
pub fn never_on(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let here: BTreeSet<DevId> = sharing(derived, device).map(|drain| drain.dev).collect();
    let of_processes = traced(derived, |dev| here.contains(&dev));
    let is_never = |parts: &Parts| parts.here == 0 && parts.elsewhere > 0;
    of_processes.into_iter().filter(|(_, parts)| is_never(parts)).map(|(pid, _)| pid).collect()
}

/// Processes that only read, and read so much more than this device did that they read from others.
pub fn readers_elsewhere(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let read: Option<u64> = device.bottoms().iter().map(|disk| disk.span.growth.read.map(|bytes| bytes.0)).sum();
    let Some(read) = read else { return BTreeSet::new() };
    let is_elsewhere = |writer: &&Writer<'_>| {
        let of_process = writer.read_bytes.unwrap_or(0);
        writer.dirtied_bytes == Some(0)
            && of_process >= DOMINANT_LEAST
            && (Parts { here: read.min(of_process), elsewhere: of_process.saturating_sub(read) }).is_hardly_here()
    };
    derived.writers().processes.iter().filter(is_elsewhere).map(|writer| writer.pid).collect()
}

/// Cgroups that were seen to use other devices and not this one: they did not wait for it. Where a cgroup has no request in the
/// window, its earlier ones tell: version 1 counts what is synced for the root.
pub fn cgroups_elsewhere(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<EntityId> {
    /// Whether requests were counted in the window, and ever.
    #[derive(Clone, Copy, Default)]
    struct Used {
        now: bool,
        ever: bool,
    }
    let window = derived.window;
    let disks = device.bottoms();
    let is_here = |dev: DevId| {
        let whole = window.lookup().whole(window, dev);
        whole == device.dev || disks.iter().any(|disk| disk.dev == whole)
    };
    // On version 1, the hierarchy that counts requests has cgroups of its own with the same paths.
    let is_unified = window.facts.as_ref().is_some_and(|facts| facts.cgroups.has_unified_writeback());
    let mut of_path: BTreeMap<&Name, Vec<EntityId>> = BTreeMap::new();
    for (id, entity) in window.entities.iter().filter(|_| !is_unified) {
        if let Entity::Cgroup { path, .. } = entity {
            of_path.entry(path).or_default().push(*id);
        }
    }
    // Requests here, and on other devices.
    let mut used: BTreeMap<EntityId, [Used; 2]> = BTreeMap::new();
    for (id, span) in &window.cgroup_io {
        let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id) else { continue };
        let any = |row: &CgroupIoRow| [row.rios, row.wios].into_iter().flatten().any(|requests| requests.0 > 0);
        let (now, ever, at) = (any(&span.growth), any(&span.last), usize::from(!is_here(*dev)));
        let path = cgroup::path(window, *cgroup).filter(|path| path.as_bytes() != b"/");
        let alike = path.and_then(|path| of_path.get(path)).map_or(std::slice::from_ref(cgroup), Vec::as_slice);
        for cgroup in alike {
            let one = &mut used.entry(*cgroup).or_default()[at];
            *one = Used { now: one.now || now, ever: one.ever || ever };
        }
    }
    let is_elsewhere = |[here, others]: &[Used; 2]| !here.now && (others.now || others.ever && !here.ever);
    used.into_iter().filter(|(_, used)| is_elsewhere(used)).map(|(cgroup, _)| cgroup).collect()
}

/// Bytes that each process dirtied in filesystems here and on other devices. Filesystems on a loop device are on
/// neither: their data become dirty again in the file behind it.
fn traced(derived: &Derived<'_>, is_here: impl Fn(DevId) -> bool) -> BTreeMap<u32, Parts> {
    let window = derived.window;
    let drains: BTreeSet<DevId> = derived.drains().iter().map(|one| one.dev).collect();
    let facts = window.facts.as_ref();
    let device_of = |superblock: DevId| {
        let number = match superblock.major {
            // btrfs: the number is anonymous, and the mount's source tells the device.
            0 => window
                .lookup()
                .mounts_of_number(facts?, superblock)
                .find_map(|one| window.lookup().number_of_mount(one)),
            _ => Some(superblock),
        };
        number.map(|number| window.lookup().whole(window, number)).filter(|whole| drains.contains(whole))
    };
    let mut known: BTreeMap<DevId, Option<DevId>> = BTreeMap::new();
    let mut processes: BTreeMap<u32, Parts> = BTreeMap::new();
    for event in &window.events {
        let What::Dirtied(dirtied) = &event.what else { continue };
        let of = *known.entry(dirtied.device).or_insert_with(|| device_of(dirtied.device));
        if let Some(of) = of {
            processes.entry(dirtied.who.pid).or_default().add(is_here(of), dirtied.bytes.0);
        }
    }
    processes
}

/// Bytes that each cgroup sent to the disks of the device and to other disks.
fn sent(derived: &Derived<'_>, drain: &Device<'_>) -> BTreeMap<EntityId, Parts> {
    let disks: BTreeSet<DevId> = derived.disks().iter().map(|disk| disk.dev).collect();
    let own: BTreeSet<DevId> = drain.bottoms().iter().map(|disk| disk.dev).collect();
    let mut cgroups: BTreeMap<EntityId, Parts> = BTreeMap::new();
    for (id, span) in &derived.window.cgroup_io {
        if let Some(Entity::CgroupIo { cgroup, dev }) = derived.window.entities.get(id)
            && disks.contains(dev)
            && let Some(written) = span.growth.wbytes
        {
            cgroups.entry(*cgroup).or_default().add(own.contains(dev), written.0);
        }
    }
    cgroups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::writer::{dominant, on_device};
    use floodline_record::id::DevId;
    use floodline_record::traced::Who;
    use floodline_record::traced::bytes::Dirtied;
    use floodline_record::units::{Bytes, Nanos, Pages};
    use floodline_testkit::{Fixture, dev_of, grows};

    /// Two disks of which each gets as much, and two programs that write as much. Which one writes where is not in `/proc`.
    fn two() -> Fixture {
        let disk = |fixture: Fixture, name| {
            fixture.disk(name, |t, row| {
                row.written = grows(t, 0, 20e6);
                row.writes = grows(t, 0, 40.0);
            })
        };
        let fixture = ["sda", "sdb"].into_iter().fold(Fixture::healthy(), disk);
        let program = |fixture: Fixture, (name, pid, group): (&'static str, u32, &'static str)| {
            fixture.process(name, pid, group, |t, row| row.write_bytes = grows(t, 0, 21e6))
        };
        [("store", 71, "/store"), ("copy", 72, "/copy")].into_iter().fold(fixture, program)
    }

    fn dominants(fixture: &Fixture) -> String {
        let window = fixture.window();
        let derived = Derived::of(&window);
        let of = |name: &str| {
            let drain = derived.drains().iter().find(|drain| drain.name.as_bytes() == name.as_bytes()).unwrap();
            let writers = on_device(&derived, drain);
            dominant(&writers).map_or("nobody".to_owned(), |(writer, _)| writer.comm.to_string())
        };
        format!("{} {}", of("sda"), of("sdb"))
    }

    #[test]
    fn a_trace_tells_which_disk_a_program_writes_to() {
        assert_eq!(dominants(&two()), "nobody nobody");
        let dirtied = |pid, device: DevId, bytes| {
            let who = Who { pid, comm: "any".into(), cgroup_ino: 1 };
            let (bytes, redirtied) = (Bytes(bytes), Bytes(0));
            What::Dirtied(Dirtied { since: Nanos(0), who, device, file: None, bytes, folios: 1, redirtied })
        };
        let events = |both: u64| {
            vec![
                dirtied(71, dev_of("sda"), 90 << 20),
                dirtied(71, dev_of("sdb"), both),
                dirtied(72, dev_of("sdb"), 90 << 20),
            ]
        };
        assert_eq!(dominants(&two().traced(&["bytes"], events(1 << 20))), "store copy");
        // A program that writes to both stays a writer of both.
        assert_eq!(dominants(&two().traced(&["bytes"], events(60 << 20))), "store nobody");
    }

    #[test]
    fn a_program_that_alone_dirties_all_that_two_disks_write_dominates_both() {
        // Other programs dirty this many bytes a second, and some that no sample saw.
        let with = |other: f64, unseen: f64| {
            two()
                .mount("sdb", "xfs", "/data", "rw")
                .process("store", 71, "/store", |t, row| row.write_bytes = grows(t, 0, 42e6))
                .process("copy", 72, "/copy", move |t, row| row.write_bytes = grows(t, 0, other))
                .host(move |t, row| row.nr_dirtied = Some(Pages(((42e6 + other + unseen) * t / 4096.0) as u64)))
        };
        assert_eq!(dominants(&with(1e5, 0.0)), "store store");
        // What a program syncs is written several times: by its journal.
        assert_eq!(dominants(&with(4e6, 0.0)), "copy copy");
        assert_eq!(dominants(&with(0.0, 4e6)), "nobody nobody");
        // Swap on a disk without a filesystem is written by no program.
        let swap = two().process("store", 71, "/store", |t, row| row.write_bytes = grows(t, 0, 42e6));
        let swap = swap.host(|t, row| row.nr_dirtied = Some(Pages((42e6 * t / 4096.0) as u64)));
        assert!(!dominants(&swap).ends_with("store"), "{}", dominants(&swap));
    }

    #[test]
    fn a_program_that_was_seen_elsewhere_only_waits_elsewhere() {
        let dirtied = |pid, name| {
            let who = Who { pid, comm: "any".into(), cgroup_ino: 1 };
            let (bytes, redirtied) = (Bytes(4096), Bytes(0));
            let device = dev_of(name);
            What::Dirtied(Dirtied { since: Nanos(0), who, device, file: None, bytes, folios: 1, redirtied })
        };
        let events = vec![dirtied(71, "sda"), dirtied(72, "sdb"), dirtied(73, "sda"), dirtied(73, "sdb")];
        let fixture = two().traced(&["bytes"], events);
        let window = fixture.window();
        let derived = Derived::of(&window);
        let of = |name: &str| {
            let disk = derived.disks().iter().find(|disk| disk.name.as_bytes() == name.as_bytes()).unwrap();
            never_on(&derived, disk).into_iter().collect::<Vec<_>>()
        };
        assert_eq!((of("sda"), of("sdb")), (vec![72], vec![71]));
    }

    #[test]
    fn the_disks_of_its_cgroup_tell_as_well() {
        let sends = |fixture: Fixture, (group, disk, rate): (&'static str, &'static str, f64)| {
            fixture.cgroup_io(group, disk, move |t, row| row.wbytes = grows(t, 0, rate))
        };
        let known = [("/store", "sda", 20e6), ("/copy", "sdb", 20e6)].into_iter().fold(two(), sends);
        assert_eq!(dominants(&known), "store copy");
        // Little of it has left memory.
        let early = [("/store", "sda", 20e6), ("/copy", "sdb", 2e6)].into_iter().fold(two(), sends);
        assert_eq!(dominants(&early), "nobody copy");
    }

    #[test]
    fn who_only_reads_waits_for_the_disks_that_are_read() {
        let reads = |fixture: Fixture, (pid, dirtied): (u32, f64)| {
            fixture.process("check", pid, "/check", move |t, row| {
                row.read_bytes = grows(t, 0, 12e6);
                row.write_bytes = grows(t, 0, dirtied);
            })
        };
        let fixture = [(81, 0.0), (82, 1e3)].into_iter().fold(two(), reads);
        let fixture = fixture.disk("sda", |t, row| row.read = grows(t, 0, 24e6));
        let fixture = fixture.disk("sdb", |t, row| row.read = grows(t, 0, 1e6));
        let window = fixture.window();
        let derived = Derived::of(&window);
        let of = |name: &str| {
            let disk = derived.disks().iter().find(|disk| disk.name.as_bytes() == name.as_bytes()).unwrap();
            readers_elsewhere(&derived, disk).into_iter().collect::<Vec<_>>()
        };
        assert_eq!((of("sda"), of("sdb")), (vec![], vec![81]));
    }
}
