// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device that each program writes to. A trace tells where its pages became dirty. Without one, a cgroup of its own tells by the I/O
//! of the cgroup. Programs of the root cgroup and of version 1 share their counters: there the bytes that each device wrote tell, and the flushes of a device tell which
//! program makes its writes durable there.

use super::group::{Bin, Group};
use super::machine::{Ground, Place, Places};
use super::syncs::buffered_calls;
use floodline_analysis::diagnose::device;
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::units::{Bytes, Centisecs};
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Place of a group, as an index into the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) place: usize,
    /// Whether a trace or the I/O of its cgroup tells it.
    pub(super) is_known: bool,
}

/// The place of each group.
pub(super) fn assigned(window: &Window, ground: &Ground, groups: &[Group]) -> Vec<At> {
    let places = &ground.places;
    let mut at = vec![None; groups.len()];
    for (at, group) in at.iter_mut().zip(groups) {
        let own = group.part_on.and_then(|dev| places.0.iter().position(|place| place.dev == dev));
        let is_only = (places.0.len() == 1).then_some(0);
        *at = own.or_else(|| of_trace(window, places, group)).or(is_only);
    }
    in_cgroups(window, places, groups, &mut at);
    let read = |place: &Place| device::by_dev(window, place.dev).and_then(|seen| Some(seen.span.growth.read?.0 as f64));
    by_reads(&places.0.iter().map(|place| read(place).unwrap_or(0.0)).collect::<Vec<_>>(), groups, &mut at);
    let bytes: Vec<Due> = groups.iter().map(|group| due(window, group)).collect();
    by_bytes(&at, &bytes, &places.0.iter().map(|place| place.written as f64).collect::<Vec<_>>())
}

/// Bytes of a program that its device wrote within the recording: at least those that became as old as the flusher lets them, at most all.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    least: f64,
    most: f64,
}

/// Bytes of a group that the flusher must have written: those older than `dirty_expire_centisecs` plus `dirty_writeback_centisecs`, less
/// those dropped unwritten.
fn due(window: &Window, group: &Group) -> Due {
    let row = &window.host.last;
    let age = |setting: Option<Centisecs>, default: u64| setting.map_or(default, |set| set.0) as f64 / 100.0;
    let oldest = match row.dirty_writeback_centisecs {
        // Nothing is written because of its age.
        Some(Centisecs(0)) => f64::INFINITY,
        every => age(row.dirty_expire_centisecs, 3000) + age(every, 500),
    };
    let end = group.bins.last().map_or(0.0, |bin| bin.end);
    let old = group.bins.iter().filter(|bin| bin.end <= end - oldest).map(Bin::dirtied).sum::<f64>();
    Due { least: (old - group.total.cancelled).max(0.0), most: group.total.dirtied() }
}

/// Share of its intervals with writes in which a program waits that makes them durable, and share of the flushes of a device that its
/// calls explain there, at most.
const WAITS_SHARE: f64 = 0.6;
const FLUSHED: f64 = 1.2;

/// Share of what a program read that a device must have read for the program to be there.
const READ_THERE: f64 = 0.5;

/// Finds the places of programs in cgroups of their own. One program writes where its cgroup does. Of several, one that waits for its
/// writes writes to the device that was flushed as often. Of the others, the largest writes where the cgroup wrote most, and the next
/// one where most is left.
fn in_cgroups(window: &Window, places: &Places, groups: &[Group], at: &mut [Option<usize>]) {
    let mut of_cgroups: BTreeMap<Option<EntityId>, Vec<usize>> = BTreeMap::new();
    for (number, group) in groups.iter().enumerate() {
        of_cgroups.entry(group.cgroup).or_default().push(number);
    }
    for (cgroup, members) in of_cgroups {
        if members.iter().all(|number| at[*number].is_some()) {
            continue;
        }
        let Some(moved) = of_cgroup(window, places, cgroup) else { continue };
        let flushed = |group: &Group| {
            let waits = group.waiting_share() >= WAITS_SHARE && buffered_calls(group) >= 1.0;
            let is_there = |(place, moved): &(&Place, &Moved)| {
                moved.written > 0.0 && buffered_calls(group) <= FLUSHED * place.flushes as f64
            };
            let there: Vec<usize> =
                (0..places.0.len()).filter(|at| waits && is_there(&(&places.0[*at], &moved[*at]))).collect();
            there.into_iter().min_by_key(|at| places.0[*at].flushes)
        };
        let known: Vec<Option<usize>> =
            members.iter().map(|number| at[*number].or_else(|| flushed(&groups[*number]))).collect();
        let bytes: Vec<Due> = members.iter().map(|number| due(window, &groups[*number])).collect();
        let written: Vec<f64> = moved.iter().map(|moved| moved.written).collect();
        for (number, found) in members.iter().zip(by_bytes(&known, &bytes, &written)) {
            at[*number] = Some(found.place);
        }
    }
}

/// Finds the places of programs that mostly read: where the device read what no program of a known place explains. `read` is what
/// the device of each place read, bytes.
fn by_reads(read: &[f64], groups: &[Group], at: &mut [Option<usize>]) {
    let mut left = read.to_vec();
    for (place, group) in at.iter().zip(groups) {
        if let Some(left) = place.and_then(|place| left.get_mut(place)) {
            *left -= group.total.read;
        }
    }
    let mut open: Vec<usize> = (0..groups.len())
        .filter(|number| at[*number].is_none() && groups[*number].total.read > groups[*number].total.dirtied())
        .collect();
    open.sort_by(|a, b| groups[*b].total.read.total_cmp(&groups[*a].total.read));
    for number in open {
        let bytes = groups[number].total.read;
        let most = (0..left.len()).max_by(|a, b| left[*a].total_cmp(&left[*b]).then(b.cmp(a)));
        let Some(most) = most.filter(|most| left[*most] >= READ_THERE * bytes) else { continue };
        at[number] = Some(most);
        left[most] -= bytes;
    }
}

/// What a program or a cgroup moved on a place, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Moved {
    written: f64,
    read: f64,
}

/// Places by what each device wrote: the largest program first, each where what the devices wrote is explained best. Of places that are
/// as good, the one that has most left to be explained.
fn by_bytes(known: &[Option<usize>], bytes: &[Due], written: &[f64]) -> Vec<At> {
    let mut there = vec![Due::default(); written.len()];
    let put = |there: &mut [Due], place: usize, bytes: Due| {
        if let Some(there) = there.get_mut(place) {
            there.least += bytes.least;
            there.most += bytes.most;
        }
    };
    // How far what a device wrote is from what its programs may have had written.
    let off = |written: f64, there: Due| (there.least - written).max(written - there.most).max(0.0);
    for (place, bytes) in known.iter().zip(bytes) {
        if let Some(place) = place {
            put(&mut there, *place, *bytes);
        }
    }
    let mut at: Vec<At> =
        known.iter().map(|place| At { place: place.unwrap_or(0), is_known: place.is_some() }).collect();
    let mut open: Vec<usize> = (0..at.len()).filter(|group| !at[*group].is_known).collect();
    open.sort_by(|a, b| bytes[*b].most.total_cmp(&bytes[*a].most));
    for group in open {
        // What the place of this program adds to the distance, and what is left there.
        let cost = |place: usize| {
            let before = there[place];
            let after = Due { least: before.least + bytes[group].least, most: before.most + bytes[group].most };
            (off(written[place], after) - off(written[place], before), before.most - written[place])
        };
        let best = (0..written.len()).min_by(|a, b| {
            let (a, b) = (cost(*a), cost(*b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let Some(best) = best else { continue };
        at[group].place = best;
        put(&mut there, best, bytes[group]);
    }
    at
}

/// The place in whose files a trace saw most bytes of a group become dirty.
fn of_trace(window: &Window, places: &Places, group: &Group) -> Option<usize> {
    let moved = traced(window, places, group)?;
    let most = moved
        .iter()
        .enumerate()
        .max_by(|(at, one), (other_at, other)| one.written.total_cmp(&other.written).then(other_at.cmp(at)));
    most.map(|(at, _)| at)
}

/// Bytes of a group that a trace saw become dirty in the files of each place, or go there past the page cache. `None` without any.
fn traced(window: &Window, places: &Places, group: &Group) -> Option<Vec<Moved>> {
    let facts = window.facts.as_ref();
    let lookup = window.lookup();
    let place = |number: DevId| {
        // Superblocks of btrfs have numbers of their own.
        let mount = facts.and_then(|facts| lookup.mounts_of_number(facts, number).next());
        let dev = mount.and_then(|mount| lookup.number_of_mount(mount)).unwrap_or(number);
        let dev = lookup.whole(window, dev);
        places.0.iter().position(|place| place.dev == dev)
    };
    let mut moved = vec![Moved::default(); places.0.len()];
    for (number, bytes) in &group.written_to {
        if let Some(moved) = place(*number).and_then(|at| moved.get_mut(at)) {
            moved.written += *bytes as f64;
        }
    }
    moved.iter().any(|moved| moved.written > 0.0).then_some(moved)
}

/// Bytes that a cgroup wrote to each place and read from it. `None` of the root, which has those of all, and where nothing was counted.
fn of_cgroup(window: &Window, places: &Places, cgroup: Option<EntityId>) -> Option<Vec<Moved>> {
    let path = cgroup.and_then(|id| window.entities.get(&id));
    if matches!(path, Some(Entity::Cgroup { path, .. }) if path.as_bytes() == b"/") {
        return None;
    }
    let mut moved = vec![Moved::default(); places.0.len()];
    for (id, span) in &window.cgroup_io {
        let Some(Entity::CgroupIo { cgroup: of, dev }) = window.entities.get(id) else { continue };
        let dev = window.lookup().whole(window, *dev);
        let at = places.0.iter().position(|place| place.dev == dev).filter(|_| Some(*of) == cgroup);
        let Some(moved) = at.and_then(|at| moved.get_mut(at)) else { continue };
        // The kernel has no row of a device before the first bytes of a cgroup there.
        let is_new = window.first_at.is_some_and(|first| span.first_at > first.monotonic);
        let since = |growth: Option<Bytes>, first: Option<Bytes>| {
            let before = if is_new { first.map_or(0, |bytes| bytes.0) } else { 0 };
            growth.map_or(0, |bytes| bytes.0).saturating_add(before) as f64
        };
        moved.written += since(span.growth.wbytes, span.first.wbytes);
        moved.read += since(span.growth.rbytes, span.first.rbytes);
    }
    // What went to a loop device is written again below.
    let all = moved.clone();
    for (place, moved) in places.0.iter().zip(&mut moved) {
        let again = places.0.iter().zip(&all).filter(|(other, _)| other.below == Some(place.dev));
        moved.written = (moved.written - again.map(|(_, above)| above.written).sum::<f64>()).max(0.0);
    }
    moved.iter().any(|moved| moved.written > 0.0).then_some(moved)
}

/// Least part of the bytes of a program on a device on which it works beside another one.
const PART_MIN: f64 = 0.1;
/// Part of the bytes of its cgroup from which a program is the one that works there.
const ALONE: f64 = 0.9;
/// Fewest bytes of such a part: a journal on another device writes less.
const PART_BYTES: f64 = 1_048_576.0;

/// Divides each program that writes to several devices, or reads from another one than it writes to, into one for each of them. A
/// trace tells, or the I/O of a cgroup that has no other program. Stores to a mapping are not divided.
pub(super) fn divided(window: &Window, places: &Places, groups: Vec<Group>) -> Vec<Group> {
    let mut of_cgroups: BTreeMap<Option<EntityId>, f64> = BTreeMap::new();
    groups.iter().for_each(|group| *of_cgroups.entry(group.cgroup).or_default() += group.weight());
    let is_alone = |group: &Group| of_cgroups.get(&group.cgroup).is_some_and(|all| group.weight() >= ALONE * all);
    let divide = |group: Group| -> Vec<Group> {
        let is_plain = group.total.mapped <= 0.0 && places.0.len() > 1;
        let of_trace = || traced(window, places, &group);
        let moved = is_plain
            .then(|| of_trace().or_else(|| of_cgroup(window, places, group.cgroup).filter(|_| is_alone(&group))))
            .flatten();
        moved.map_or_else(|| vec![group.clone()], |moved| parts(&group, places, &moved))
    };
    groups.into_iter().flat_map(divide).collect()
}

/// The parts of a group by what it moved on each place.
fn parts(group: &Group, places: &Places, moved: &[Moved]) -> Vec<Group> {
    let is_part = |of: fn(&Moved) -> f64, one: &Moved| {
        let all: f64 = moved.iter().map(of).sum();
        of(one) >= PART_BYTES && of(one) >= PART_MIN * all
    };
    let written: fn(&Moved) -> f64 = |one| one.written;
    let read: fn(&Moved) -> f64 = |one| one.read;
    let kept: Vec<(&Place, Moved)> = places
        .0
        .iter()
        .zip(moved)
        .map(|(place, one)| {
            let kept = |of: fn(&Moved) -> f64| if is_part(of, one) { of(one) } else { 0.0 };
            (place, Moved { written: kept(written), read: kept(read) })
        })
        .filter(|(_, one)| one.written + one.read > 0.0)
        .collect();
    if kept.len() < 2 {
        return vec![group.clone()];
    }
    let sum = |of: fn(&Moved) -> f64| kept.iter().map(|(_, one)| of(one)).sum::<f64>();
    let share = |of: fn(&Moved) -> f64, one: &Moved| if sum(of) > 0.0 { of(one) / sum(of) } else { 0.0 };
    kept.iter().map(|(place, one)| group.part(place.dev, share(written, one), share(read, one))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dev(minor: u32) -> DevId {
        DevId { major: 254, minor }
    }

    /// The places of devices 254:0 and 254:16.
    fn two_places() -> Places {
        let place = |dev| Place {
            dev,
            device: String::new(),
            point: String::new(),
            fs_type: floodline_scenario::FsType::Ext4,
            mean_read: None,
            flushes: 0,
            writes: 0,
            written: 0,
            below: None,
            is_buffered: false,
        };
        Places([0, 16].map(dev).map(place).to_vec())
    }

    #[test]
    fn a_trace_tells_where_a_program_writes() {
        let places = two_places();
        let at = |written: &[(DevId, u64)]| {
            let group = Group { written_to: written.iter().copied().collect(), ..Group::default() };
            of_trace(&Window::default(), &places, &group)
        };
        assert_eq!(at(&[(dev(0), 4096), (dev(16), 8192)]), Some(1));
        assert_eq!(at(&[(dev(0), 4096), (dev(32), 8192)]), Some(0), "the twin lacks that device");
        assert_eq!((at(&[(dev(32), 8192)]), at(&[])), (None, None));
    }

    #[test]
    fn a_program_that_reads_is_where_the_device_reads() {
        let check = |read: &[f64], known: [Option<usize>; 2], expect: [Option<usize>; 2]| {
            let reader = |bytes| Group { total: Bin { read: bytes, ..Bin::default() }, ..Group::default() };
            let mut at = known.to_vec();
            by_reads(read, &[reader(500e6), reader(100e6)], &mut at);
            assert_eq!(at, expect, "{read:?}");
        };
        check(&[0.0, 600e6], [None, None], [Some(1), Some(1)]);
        check(&[100e6, 500e6], [None, None], [Some(1), Some(0)]);
        check(&[100e6, 500e6], [Some(1), None], [Some(1), Some(0)]);
        // The devices read too little: the programs read from the page cache, or from another device.
        check(&[100e6, 200e6], [None, None], [None, Some(1)]);
        let writer = Group { total: Bin { read: 1e6, by_calls: 5e6, ..Bin::default() }, ..Group::default() };
        let mut at = vec![None];
        by_reads(&[0.0, 1e6], &[writer], &mut at);
        assert_eq!(at, [None], "what it writes tells");
    }

    #[test]
    fn a_program_on_two_devices_is_one_on_each() {
        let places = two_places();
        let bin = Bin { length: 1.0, by_calls: 80e6, wchar: 80e6, calls: 100.0, read: 40e6, ..Bin::default() };
        let group = Group { bins: vec![bin], total: bin, ..Group::default() };
        let check = |moved: [(f64, f64); 2], expect: &[(Option<u32>, f64, f64)]| {
            let moved = moved.map(|(written, read)| Moved { written, read });
            let parts = parts(&group, &places, &moved);
            let told: Vec<(Option<u32>, f64, f64)> = parts
                .iter()
                .map(|part| (part.part_on.map(|dev| dev.minor), part.total.by_calls, part.total.read))
                .collect();
            assert_eq!(told, expect);
        };
        check([(60e6, 0.0), (20e6, 0.0)], &[(Some(0), 60e6, 0.0), (Some(16), 20e6, 0.0)]);
        // It copies from one to the other.
        check([(60e6, 0.0), (0.0, 40e6)], &[(Some(0), 80e6, 0.0), (Some(16), 0.0, 40e6)]);
        check([(60e6, 0.0), (1e6, 0.0)], &[(None, 80e6, 40e6)]);
    }

    #[test]
    fn programs_without_a_cgroup_go_where_their_bytes_went() {
        let at = |known: &[Option<usize>], bytes: &[f64], written: &[f64]| -> Vec<usize> {
            let bytes: Vec<Due> = bytes.iter().map(|bytes| Due { least: *bytes, most: *bytes }).collect();
            by_bytes(known, &bytes, written).iter().map(|at| at.place).collect()
        };
        // A copy to a slow stick and a small program on the other disk.
        assert_eq!(at(&[None, None], &[900.0, 20.0], &[700.0, 25.0]), [0, 1]);
        assert_eq!(at(&[None, None], &[20.0, 900.0], &[700.0, 25.0]), [1, 0]);
        // What a cgroup is known to have written there counts.
        assert_eq!(at(&[Some(0), None], &[700.0, 20.0], &[710.0, 25.0]), [0, 1]);
        assert_eq!(at(&[None, None], &[5.0, 4.0], &[700.0, 0.0]), [0, 0]);
    }

    #[test]
    fn what_is_too_young_to_be_written_is_no_reason_for_another_device() {
        let at = |bytes: &[(f64, f64)], written: &[f64]| -> Vec<usize> {
            let bytes: Vec<Due> = bytes.iter().map(|(least, most)| Due { least: *least, most: *most }).collect();
            by_bytes(&vec![None; bytes.len()], &bytes, written).iter().map(|at| at.place).collect()
        };
        // A third of what four programs wrote is dirty at the end. The other device has next to nothing.
        assert_eq!(at(&[(190.0, 286.0); 4], &[775.0, 5.0]), [0; 4]);
        // A program whose bytes are all young, beside one whose bytes explain its device.
        assert_eq!(at(&[(100.0, 100.0), (0.0, 50.0)], &[100.0, 2.0]), [0, 1]);
        assert_eq!(at(&[(300.0, 600.0), (100.0, 200.0)], &[570.0, 190.0]), [0, 1]);
    }

    #[test]
    fn the_flusher_must_have_written_what_is_older_than_its_setting() {
        let bin = |end: f64| Bin { end, length: 1.0, by_calls: 10.0, ..Bin::default() };
        let bins: Vec<Bin> = (1..=100).map(|end| bin(f64::from(end))).collect();
        let total = Bin { by_calls: 1000.0, cancelled: 50.0, ..Bin::default() };
        let group = Group { bins, total, ..Group::default() };
        let told = due(&Window::default(), &group);
        assert_eq!((told.least, told.most), (600.0, 1000.0));
        let mut never = Window::default();
        never.host.last.dirty_writeback_centisecs = Some(Centisecs(0));
        assert_eq!(due(&never, &group).least, 0.0, "without periodic writeback");
    }
}
