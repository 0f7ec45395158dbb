// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices that programs write to, from byte counts without a trace. `/proc` counts the bytes that a process dirtied and does not name
//! the device. A backing device counts the bytes dirtied on it and does not name the process. If exactly one assignment of programs
//! to devices fits both, it is used. Does not cover programs that write past the page cache, or to several devices.

use super::derived::Derived;
use super::device::Device;
use super::loops;
use super::writer::Writer;
use floodline_record::id::{DevId, EntityId};
use floodline_record::name::Name;
use std::collections::{BTreeMap, BTreeSet};

/// Part of all dirtied bytes by which two sums of the same bytes may differ: samples read one after the other.
const ERROR: f64 = 0.02;
/// Most programs and devices for which all assignments are tried.
const PROGRAMS_MAX: usize = 6;
const DEVICES_MAX: usize = 5;
/// Bytes read, in parts of those dirtied, up to which a program hardly reads.
const HARDLY: f64 = 0.1;
/// Fewest bytes dirtied on the machine for which the sums are compared.
const LEAST: u64 = 16 << 20;

/// All processes of one name in one cgroup.
type Program<'a> = (&'a Name, Option<EntityId>);

/// Possible devices of the processes that dirtied much, by process entity. Empty if the sums allow no conclusion.
#[derive(Debug, Default)]
pub struct Places {
    /// The disk or stacked device to which the data of a process are written, if only one is possible.
    only: BTreeMap<EntityId, DevId>,
    /// Devices to which its data may be written together with data of another process that dirtied much.
    shared: BTreeMap<EntityId, BTreeSet<DevId>>,
}

/// Places the processes that dirtied much.
pub fn placed<'a>(derived: &Derived<'a>) -> Places {
    let devices: Vec<(&Device<'a>, u64)> =
        derived.devices().iter().filter_map(|one| Some((one, dirtied(one)?))).collect();
    let all: u64 = devices.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    let machine = derived.window.host.growth.nr_dirtied.map(|pages| pages.bytes(derived.page_size).0);
    let Some(machine) = machine.filter(|machine| *machine >= LEAST) else { return Places::default() };
    let error = (ERROR * machine as f64) as u64;
    // Up to 6.9 a backing device does not count what cgroups dirty.
    if all.abs_diff(machine) > error || derived.drains().len() < 2 {
        return Places::default();
    }
    let devices: Vec<(&Device<'a>, u64)> = devices.into_iter().filter(|(_, bytes)| *bytes > error).collect();
    let programs = programs(derived, error);
    let large: u64 = programs.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    // What other programs dirtied may be anywhere, and what was written past the page cache is no part of the sums.
    if large.abs_diff(machine) > error || programs.len() > PROGRAMS_MAX || devices.len() > DEVICES_MAX {
        return Places::default();
    }
    let amounts: Vec<u64> = programs.iter().map(|(_, bytes)| *bytes).collect();
    let rooms: Vec<u64> = devices.iter().map(|(_, bytes)| *bytes).collect();
    let seen = ways(&amounts, &rooms, error);
    let device_of = |place: &usize| Some(loops::holder(derived, devices.get(*place)?.0)?.dev);
    let by_program: BTreeMap<Program<'_>, &Seen> = programs.iter().map(|(program, _)| *program).zip(&seen).collect();
    let mut numbers: BTreeMap<Program<'_>, usize> = BTreeMap::new();
    for writer in &derived.writers().processes {
        *numbers.entry((writer.comm, writer.cgroup)).or_default() += 1;
    }
    let mut places = Places::default();
    for writer in &derived.writers().processes {
        let Some(seen) = by_program.get(&(writer.comm, writer.cgroup)).filter(|seen| !seen.at.is_empty()) else {
            continue;
        };
        places.only.extend(seen.only().and_then(|place| device_of(&place)).map(|dev| (writer.id, dev)));
        // Processes of one program wait for each other.
        let with_others = if numbers.get(&(writer.comm, writer.cgroup)) > Some(&1) { &seen.at } else { &seen.shared };
        places.shared.insert(writer.id, with_others.iter().filter_map(device_of).collect());
    }
    places
}

/// Processes that can only have written to devices which share no disk with this one, by process id.
pub fn elsewhere(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let shares = sharing(derived, device);
    let is_elsewhere =
        |writer: &Writer<'_>| derived.placed().only.get(&writer.id).is_some_and(|dev| !shares.contains(dev));
    all_of(derived, is_elsewhere)
}

/// Processes that hardly read, and whose data do not leave memory at this device together with those of another program that dirtied
/// much: they do not wait here for others.
pub fn waiting_elsewhere(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let shares = sharing(derived, device);
    let hardly_reads = |writer: &Writer<'_>| {
        writer.read_bytes.unwrap_or(0) as f64 <= HARDLY * writer.dirtied_bytes.unwrap_or(0) as f64
    };
    let is_apart = |writer: &Writer<'_>| {
        derived.placed().shared.get(&writer.id).is_some_and(|devices| devices.is_disjoint(&shares))
    };
    all_of(derived, |writer| hardly_reads(writer) && is_apart(writer))
}

/// Numbers of the devices that share a disk with a device.
fn sharing(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<DevId> {
    let disks = |one: &Device<'_>| one.bottoms().iter().map(|disk| disk.id).chain([one.id]).collect::<BTreeSet<_>>();
    let own = disks(device);
    let all = if derived.placed().shared.is_empty() { &[][..] } else { derived.devices() };
    all.iter().filter(|one| !disks(one).is_disjoint(&own)).map(|one| one.dev).collect()
}

/// Process ids for which `is_meant` holds of every process: an id may have been used again.
fn all_of(derived: &Derived<'_>, is_meant: impl Fn(&Writer<'_>) -> bool) -> BTreeSet<u32> {
    let mut pids: BTreeMap<u32, bool> = BTreeMap::new();
    if !derived.placed().shared.is_empty() {
        for writer in &derived.writers().processes {
            *pids.entry(writer.pid).or_insert(true) &= is_meant(writer);
        }
    }
    pids.into_iter().filter(|(_, all)| *all).map(|(pid, _)| pid).collect()
}

/// Bytes dirtied on a backing device in the window.
fn dirtied(device: &Device<'_>) -> Option<u64> {
    Some(device.bdi()?.growth.dirtied?.0)
}

/// The programs that dirtied more than the error of a sum, with their bytes.
fn programs<'d>(derived: &'d Derived<'_>, error: u64) -> Vec<(Program<'d>, u64)> {
    let mut programs: BTreeMap<Program<'_>, u64> = BTreeMap::new();
    for writer in &derived.writers().processes {
        let sum = programs.entry((writer.comm, writer.cgroup)).or_default();
        *sum = sum.saturating_add(writer.dirtied_bytes.unwrap_or(0));
    }
    programs.into_iter().filter(|(_, bytes)| *bytes > error).collect()
}

/// The rooms in which an amount may be.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    at: BTreeSet<usize>,
    /// Those of them that it shares with another amount.
    shared: BTreeSet<usize>,
}

impl Seen {
    fn only(&self) -> Option<usize> {
        self.at.first().copied().filter(|_| self.at.len() == 1)
    }
}

/// For each amount, the rooms that it has in any assignment that fills all rooms.
fn ways(amounts: &[u64], rooms: &[u64], error: u64) -> Vec<Seen> {
    let mut seen: Vec<Seen> = amounts.iter().map(|_| Seen::default()).collect();
    let ways = rooms.len().checked_pow(amounts.len() as u32).unwrap_or(0);
    for way in 0..ways {
        let (mut left, mut filled, mut at) = (way, vec![(0u64, 0); rooms.len()], Vec::with_capacity(amounts.len()));
        for amount in amounts {
            let place = left % rooms.len();
            left /= rooms.len();
            filled[place] = (filled[place].0.saturating_add(*amount), filled[place].1 + 1);
            at.push(place);
        }
        let fits = |((filled, _), room): (&(u64, usize), &u64)| filled.abs_diff(*room) <= error;
        if filled.iter().zip(rooms).all(fits) {
            for (seen, place) in seen.iter_mut().zip(at) {
                seen.at.insert(place);
                if filled[place].1 > 1 {
                    seen.shared.insert(place);
                }
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::sample::BdiRow;
    use floodline_record::units::{Bytes, Pages};
    use floodline_testkit::{Fixture, grows};

    fn only(amounts: &[u64], rooms: &[u64]) -> Vec<Option<usize>> {
        ways(amounts, rooms, 10).iter().map(Seen::only).collect()
    }

    #[test]
    fn an_amount_has_a_place_if_no_other_fits() {
        assert_eq!(only(&[700, 1100], &[1100, 705]), [Some(1), Some(0)]);
        // Either of two that are alike may be on either device.
        assert_eq!(only(&[700, 700], &[700, 700]), [None, None]);
        // A program that writes to both fits on neither.
        assert_eq!(only(&[900, 900], &[700, 1100]), [None, None]);
        assert_eq!(only(&[500, 300, 200], &[500, 500]), [None, None, None]);
        assert_eq!(only(&[500, 300, 100], &[500, 400]), [Some(0), Some(1), Some(1)]);
    }

    #[test]
    fn two_amounts_that_are_alike_share_no_room() {
        let shared = |amounts: &[u64], rooms: &[u64]| {
            ways(amounts, rooms, 10).iter().map(|seen| seen.shared.iter().copied().collect()).collect::<Vec<Vec<_>>>()
        };
        assert!(shared(&[700, 700], &[700, 700]).iter().all(Vec::is_empty));
        assert_eq!(shared(&[500, 300, 200], &[500, 500])[1..], [vec![0, 1], vec![0, 1]]);
    }

    /// Two disks, and two programs that dirty these megabytes per second on one each.
    fn two(store: f64, copy: f64) -> Fixture {
        let disk = |fixture: Fixture, (name, dev, rate): (&str, &str, f64)| {
            let fixture = fixture.disk(name, move |t, row| row.written = grows(t, 0, rate * 1e6));
            fixture.bdi(dev, move |t, row| row.dirtied = Some(Bytes((rate * 1e6 * t) as u64)))
        };
        let program = |fixture: Fixture, (name, pid, rate): (&'static str, u32, f64)| {
            fixture.process(name, pid, "/", move |t, row| row.write_bytes = grows(t, 0, rate * 1e6))
        };
        let fixture = Fixture::healthy()
            .host(move |t, row| row.nr_dirtied = Some(Pages(((store + copy) * 1e6 * t / 4096.0) as u64)));
        let fixture = [("sda", "8:0", store), ("sdb", "8:16", copy)].into_iter().fold(fixture, disk);
        [("store", 71, store), ("copy", 72, copy)].into_iter().fold(fixture, program)
    }

    #[test]
    fn programs_of_different_amounts_are_placed() {
        let on = |fixture: &Fixture, name: &str| {
            let window = fixture.window();
            let derived = Derived::of(&window);
            let disk = derived.disks().iter().find(|disk| disk.name.as_bytes() == name.as_bytes()).expect("a disk");
            elsewhere(&derived, disk).into_iter().collect::<Vec<_>>()
        };
        let different = two(20.0, 12.0);
        assert_eq!((on(&different, "sda"), on(&different, "sdb")), (vec![72], vec![71]));
        assert_eq!(on(&two(20.0, 20.0), "sda"), Vec::<u32>::new());
    }

    #[test]
    fn a_program_that_is_alone_in_each_way_waits_for_no_other() {
        let window = two(20.0, 20.0).window();
        let derived = Derived::of(&window);
        let disk = derived.disks().first().expect("a disk");
        assert_eq!(waiting_elsewhere(&derived, disk).into_iter().collect::<Vec<_>>(), [71, 72]);
        // What cgroups dirty is not counted on the devices.
        let more = two(20.0, 20.0).process("other", 73, "/", |t, row| row.write_bytes = grows(t, 0, 5e6));
        let window = more.window();
        let derived = Derived::of(&window);
        assert!(waiting_elsewhere(&derived, derived.disks().first().expect("a disk")).is_empty());
    }

    #[test]
    fn nothing_is_placed_where_programs_that_were_not_seen_dirtied_much() {
        // The store writes 30 MB/s past the page cache of sda, and many small programs dirty most of sdb.
        let dirtied = |bytes: f64| move |t: f64, row: &mut BdiRow| row.dirtied = Some(Bytes((bytes * t) as u64));
        let window = two(30.0, 12.0)
            .host(|t, row| row.nr_dirtied = Some(Pages((62e6 * t / 4096.0) as u64)))
            .bdi("8:0", dirtied(12e6))
            .bdi("8:16", dirtied(50e6))
            .window();
        let derived = Derived::of(&window);
        for disk in derived.disks() {
            assert!(elsewhere(&derived, disk).is_empty(), "{}", disk.name);
        }
    }
}
