// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that programs wrote past the page cache. A trace counts them. Without one, they are the bytes that processes wrote and that
//! never became dirty, and how each program writes tells whose they are.

use super::devices::written_twice;
use super::group::{Bin, Group, Key};
use crate::recorded::Recorded;
use floodline_analysis::diagnose::device;
use floodline_record::id::{DevId, Entity};
use floodline_record::record::What;
use floodline_record::sample::{HostRow, SampleTime};
use floodline_record::traced::bytes::Class;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Moves the direct bytes of each group out of its write calls.
pub(super) fn take(groups: &mut [(Key, Group)], recorded: &Recorded, of_pid: &BTreeMap<u32, Key>, times: &[u64]) {
    let page = recorded.window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1)) as f64;
    match traced_direct(groups, recorded, of_pid, times) {
        Some(direct) => take_traced_direct(groups, &direct),
        None => take_direct(groups, recorded, page),
    }
}

/// Bytes that each group wrote past the page cache in each interval, as a trace counts them. `None` without one. A stack of devices counts
/// them at each layer, so the disk with most of them tells.
fn traced_direct(
    groups: &[(Key, Group)],
    recorded: &Recorded,
    of_pid: &BTreeMap<u32, Key>,
    times: &[u64],
) -> Option<Vec<Vec<f64>>> {
    let window = &recorded.window;
    let submitted = || {
        window.events.iter().filter_map(|event| match &event.what {
            What::Submitted(submitted) => Some((event.at.0, submitted)),
            _ => None,
        })
    };
    submitted().next()?;
    let numbers: BTreeMap<_, usize> = groups.iter().enumerate().map(|(number, (key, _))| (key, number)).collect();
    let of_cgroups = undirtied(groups, window, of_pid);
    let mut of_disks: BTreeMap<(usize, DevId), Counted> = BTreeMap::new();
    for (at, one) in submitted().filter(|(_, one)| one.class == Class::Direct) {
        let key = one.who.as_ref().and_then(|who| of_pid.get(&who.pid));
        let own = key.and_then(|key| numbers.get(key).copied());
        let held_up = || one.cgroup_ino.and_then(|ino| of_cgroups.get(&ino)).map(|(number, _)| *number);
        let Some(group) = own.or_else(held_up) else { continue };
        let counted = of_disks.entry((group, one.disk)).or_insert_with(|| Counted::new(times.len().saturating_sub(1)));
        let bins = if own.is_some() { &mut counted.own } else { &mut counted.held_up };
        let bin = times.partition_point(|time| *time < at).saturating_sub(1);
        if let Some(bin) = bins.get_mut(bin) {
            *bin += one.bytes.0 as f64;
        }
    }
    let rests: BTreeMap<usize, f64> = of_cgroups.into_values().collect();
    let of_disks: BTreeMap<(usize, DevId), Vec<f64>> = of_disks
        .into_iter()
        .map(|(of, counted)| (of, counted.within(rests.get(&of.0).copied().unwrap_or(0.0))))
        .collect();
    let most = |number: usize| {
        let disks = of_disks.iter().filter(|((group, _), _)| *group == number);
        disks.map(|(_, bins)| bins.clone()).max_by(|one, other| sum(one).total_cmp(&sum(other))).unwrap_or_default()
    };
    Some((0..groups.len()).map(most).collect())
}

fn sum(bins: &[f64]) -> f64 {
    bins.iter().sum()
}

/// Bytes that one group wrote past the page cache of one disk, in each interval.
struct Counted {
    /// In the name of its processes.
    own: Vec<f64>,
    /// In the name of its cgroup.
    held_up: Vec<f64>,
}

impl Counted {
    fn new(bins: usize) -> Counted {
        Counted { own: vec![0.0; bins], held_up: vec![0.0; bins] }
    }

    /// Its bytes in each interval. Those in the name of the cgroup count up to `rest`, the bytes that the group passed to write calls and
    /// did not make dirty: what is more is of another program of the cgroup.
    fn within(self, rest: f64) -> Vec<f64> {
        let room = (rest - sum(&self.own)).max(0.0);
        let part = (room / sum(&self.held_up).max(1.0)).min(1.0);
        self.own.iter().zip(&self.held_up).map(|(own, held_up)| own + part * held_up).collect()
    }
}

/// Least part of the bytes of a program that never became dirty, from which it writes past the page cache. Less may be what the
/// trace and the counters differ by: they are read at different moments.
const MOSTLY_DIRECT: f64 = 0.5;

/// The program of each cgroup, by the inode number of the cgroup, that passed the most bytes to write calls without making them dirty,
/// and those bytes. Requests that a limit holds up are queued by a thread of the kernel, in the name of the cgroup.
fn undirtied(groups: &[(Key, Group)], window: &Window, of_pid: &BTreeMap<u32, Key>) -> BTreeMap<u64, (usize, f64)> {
    let mut dirtied: BTreeMap<&Key, f64> = BTreeMap::new();
    for event in &window.events {
        if let What::Dirtied(one) = &event.what
            && let Some(key) = of_pid.get(&one.who.pid)
        {
            *dirtied.entry(key).or_default() += one.bytes.0 as f64;
        }
    }
    let mut most: BTreeMap<u64, (usize, f64)> = BTreeMap::new();
    for (number, (key, group)) in groups.iter().enumerate() {
        let Some(Entity::Cgroup { ino: Some(ino), path, .. }) = group.cgroup.and_then(|id| window.entities.get(&id))
        else {
            continue;
        };
        let by_calls: f64 = group.bins.iter().map(|bin| bin.by_calls).sum();
        let rest = by_calls - dirtied.get(key).copied().unwrap_or(0.0);
        if path.as_bytes() == b"/" || rest <= 0.0 || rest < MOSTLY_DIRECT * by_calls {
            continue;
        }
        let best = most.entry(*ino).or_insert((number, rest));
        if rest > best.1 {
            *best = (number, rest);
        }
    }
    most
}

/// Part of the bytes of a group that a trace counts past the page cache from which all are taken for direct: the trace and the counters
/// are read at different moments.
const ALL_DIRECT: f64 = 0.95;

/// Moves the direct bytes of each group out of its write calls. A call and the sample that counts it can be in neighbouring intervals.
fn take_traced_direct(groups: &mut [(Key, Group)], direct: &[Vec<f64>]) {
    for ((_, group), direct) in groups.iter_mut().zip(direct) {
        let calls: f64 = group.bins.iter().map(|bin| bin.by_calls).sum();
        let is_all = direct.iter().sum::<f64>() >= ALL_DIRECT * calls;
        let mut left = 0.0;
        for (bin, direct) in group.bins.iter_mut().zip(direct) {
            left += direct;
            let part = if is_all { bin.by_calls } else { left.min(bin.by_calls) };
            bin.by_calls -= part;
            bin.direct += part;
            left -= part;
        }
    }
}

/// Written bytes that never were dirty went past the page cache: they belong to groups that waited while they wrote. Where
/// no waits are measured, they belong to processes that wrote them themselves: bytes of children may count twice.
fn take_direct(groups: &mut [(Key, Group)], recorded: &Recorded, page: f64) {
    let series = &recorded.window.host_series;
    let total = |row: &floodline_record::sample::HostRow| row.nr_dirtied.map(|pages| pages.0 as f64 * page);
    let written: f64 = groups.iter().flat_map(|(_, group)| &group.bins).map(|bin| bin.by_calls + bin.mapped).sum();
    let ends = (series.first().and_then(|(_, row)| total(row)), series.last().and_then(|(_, row)| total(row)));
    let (Some(first), Some(last)) = ends else { return };
    // What reaches a loop device through the page cache becomes dirty in the file below, however it was written above.
    let twice = twice(&recorded.window, page);
    let below = |from: &SampleTime, to: &SampleTime| -> f64 {
        twice.range((Bound::Excluded(from.monotonic), Bound::Included(to.monotonic))).map(|(_, bytes)| bytes).sum()
    };
    let dirtied = last - first - twice.values().sum::<f64>();
    // Counters of processes that ended in between are lost, those of the machine are not: a lower sum is expected.
    if written - dirtied < 0.02 * written + 4.0 * 1048576.0 {
        return;
    }
    let mut missing: Vec<f64> = series
        .windows(2)
        .enumerate()
        .map(|(at, pair)| {
            let (Some(before), Some(now)) = (total(&pair[0].1), total(&pair[1].1)) else { return 0.0 };
            let bins = groups.iter().filter_map(|(_, group)| group.bins.get(at));
            let all: f64 = bins.map(|bin| bin.by_calls + bin.mapped).sum();
            let direct = all - (now - before - below(&pair[0].0, &pair[1].0)).max(0.0);
            if direct > 0.05 * all { direct } else { 0.0 }
        })
        .collect();
    take_direct_throughout(groups, &mut missing);
    if groups.iter().flat_map(|(_, group)| &group.bins).any(|bin| bin.waited > 0.0) {
        take_direct_of_waiting(groups, &missing);
    } else {
        take_direct_alike(groups, &missing);
    }
}

/// Least part of what buffered loop devices wrote that must leave the machine, or be left dirty, where all of it became dirty below them.
const LEAVES: f64 = 0.9;

/// Bytes that became dirty below buffered loop devices up to each sample since the one before. Empty where much less left the machine: these
/// bytes met pages below that were dirty already.
fn twice(window: &Window, page: f64) -> BTreeMap<Nanos, f64> {
    let twice = written_twice(window);
    let left: f64 = device::disks(window).iter().flat_map(|seen| seen.intervals()).map(|one| one.written_bytes).sum();
    let unwritten = |row: &HostRow| row.nr_dirty.map_or(0.0, |pages| pages.0 as f64 * page);
    let series = &window.host_series;
    let of = |end: Option<&(SampleTime, HostRow)>| end.map_or(0.0, |(_, row)| unwritten(row));
    let more = (of(series.last()) - of(series.first())).max(0.0);
    if left + more >= LEAVES * twice.values().sum::<f64>() { twice } else { BTreeMap::new() }
}

/// Fewest intervals that show how a group writes, and the part of its bytes that may have become dirty of one that writes past the page cache.
const THROUGHOUT_MIN: usize = 4;
const BECAME_DIRTY: f64 = 0.05;

/// Gives direct bytes first to the groups of which nearly all are: in the intervals in which they wrote, less became dirty. Another group
/// that writes at the same time then keeps what became dirty.
fn take_direct_throughout(groups: &mut [(Key, Group)], missing: &mut [f64]) {
    let written = |groups: &[(Key, Group)], at: usize| -> f64 {
        let bins = groups.iter().filter_map(|(_, group)| group.bins.get(at));
        bins.map(|bin| bin.by_calls + bin.mapped).sum()
    };
    let dirty: Vec<f64> = (0..missing.len()).map(|at| (written(groups, at) - missing[at]).max(0.0)).collect();
    for (_, group) in groups.iter_mut() {
        let active: Vec<usize> =
            (0..dirty.len().min(group.bins.len())).filter(|at| group.bins[*at].by_calls > 0.0).collect();
        let all: f64 = active.iter().map(|at| group.bins[*at].by_calls).sum();
        let most: f64 = active.iter().map(|at| dirty[*at].min(group.bins[*at].by_calls)).sum();
        if active.len() < THROUGHOUT_MIN || most > BECAME_DIRTY * all {
            continue;
        }
        for at in active {
            let bin = &mut group.bins[at];
            let part = bin.by_calls.min(missing[at]);
            bin.by_calls -= part;
            bin.direct += part;
            missing[at] -= part;
        }
    }
}

/// Divides direct bytes among the groups that waited in their interval.
fn take_direct_of_waiting(groups: &mut [(Key, Group)], missing: &[f64]) {
    for (at, direct) in missing.iter().enumerate().filter(|(_, direct)| **direct > 0.0) {
        let of = |bin: &Bin| if bin.waited > 0.0 { bin.by_calls } else { 0.0 };
        let waiting: f64 = groups.iter().filter_map(|(_, group)| group.bins.get(at)).map(of).sum();
        let bins = groups.iter_mut().filter_map(|(_, group)| group.bins.get_mut(at));
        for bin in bins.filter(|_| waiting > 0.0) {
            let part = (direct * of(bin) / waiting).min(of(bin));
            bin.by_calls -= part;
            bin.direct += part;
        }
    }
}

/// Gives direct bytes to the groups that wrote about as many in all, the most alike first.
fn take_direct_alike(groups: &mut [(Key, Group)], missing: &[f64]) {
    let of = |bin: &Bin| bin.own.min(bin.by_calls);
    let all: f64 = missing.iter().sum();
    let differs = |group: &Group| (group.bins.iter().map(of).sum::<f64>() - all).abs();
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|one, other| differs(&groups[*one].1).total_cmp(&differs(&groups[*other].1)));
    for (at, direct) in missing.iter().enumerate() {
        let mut left = *direct;
        for number in &order {
            let Some(bin) = groups[*number].1.bins.get_mut(at) else { continue };
            let part = of(bin).min(left);
            bin.by_calls -= part;
            bin.direct += part;
            left -= part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::id::{EntityId, Hierarchy};
    use floodline_record::record::{Event, Record, Sink};
    use floodline_record::traced::Who;
    use floodline_record::traced::bytes::{Dirtied, Submitted};
    use floodline_record::units::Bytes;

    #[test]
    fn direct_bytes_of_a_trace_leave_the_calls_that_passed_them() {
        let bin = |by_calls| Bin { by_calls, ..Bin::default() };
        let group = Group { bins: vec![bin(4096.0), bin(0.0), bin(65536.0)], ..Group::default() };
        let mut groups = [((String::new(), Vec::new()), group)];
        // The trace has the first call earlier than the counters have it.
        take_traced_direct(&mut groups, &[vec![0.0, 16384.0, 16384.0]]);
        let bins: Vec<(f64, f64)> = groups[0].1.bins.iter().map(|bin| (bin.by_calls, bin.direct)).collect();
        assert_eq!(bins, [(4096.0, 0.0), (0.0, 0.0), (32768.0, 32768.0)]);
        take_traced_direct(&mut groups, &[Vec::new()]);
        assert_eq!(groups[0].1.bins[2].direct, 32768.0, "none are counted");
        take_traced_direct(&mut groups, &[vec![0.0, 0.0, 36000.0]]);
        assert!(groups[0].1.bins.iter().all(|bin| bin.by_calls == 0.0), "nearly all are");
    }

    /// A group of seconds with these bytes, in all of which it waited.
    fn waiting(bytes: &[f64]) -> (Key, Group) {
        let bin = |bytes: &f64| Bin { length: 1.0, by_calls: *bytes, waited: 0.1, ..Bin::default() };
        ((String::new(), Vec::new()), Group { bins: bytes.iter().map(bin).collect(), ..Group::default() })
    }

    #[test]
    fn a_stream_past_the_cache_leaves_what_became_dirty_to_another_program() {
        // 4 MB in each second, and 32 KB that become dirty in each third one.
        let mut groups = [waiting(&[4e6; 9]), waiting(&[0.0, 0.0, 32e3, 0.0, 0.0, 32e3, 0.0, 0.0, 32e3])];
        let mut missing = vec![4e6; 9];
        take_direct_throughout(&mut groups, &mut missing);
        take_direct_of_waiting(&mut groups, &missing);
        let sum = |group: &Group| {
            group.bins.iter().fold((0.0, 0.0), |(calls, direct), bin| (calls + bin.by_calls, direct + bin.direct))
        };
        assert_eq!((sum(&groups[0].1), sum(&groups[1].1)), ((0.0, 36e6), (96e3, 0.0)));
        // Both write as much, and half of it became dirty: nothing tells whose.
        let mut groups = [waiting(&[4e6; 9]), waiting(&[4e6; 9])];
        let mut missing = vec![4e6; 9];
        take_direct_throughout(&mut groups, &mut missing);
        assert!(groups.iter().all(|(_, group)| group.bins.iter().all(|bin| bin.direct == 0.0)));
    }

    #[test]
    fn what_became_dirty_only_below_a_loop_device_was_written_past_the_cache() {
        use floodline_record::facts::Stack;
        use floodline_record::units::Pages;
        use floodline_testkit::{Fixture, grows};
        // 4 MB in each second reach the loop device, and as many become dirty.
        let direct = |is_direct: bool, per_second: f64| {
            let pages = |t: f64, row: &mut HostRow| row.nr_dirtied = Some(Pages((4e6 * t / 4096.0) as u64));
            let host = Fixture::healthy().host(pages).disk("loop0", |t, row| row.written = grows(t, 0, 4e6));
            let host = host.disk("sda", move |t, row| row.written = grows(t, 0, per_second));
            let host = host.facts(|facts| {
                for device in &mut facts.devices {
                    if let Stack::Loop { dio, .. } = &mut device.stack {
                        *dio = Some(is_direct);
                    }
                }
            });
            let mut recorded = Recorded::default();
            for record in host.records() {
                let Ok(()) = recorded.record(&record);
            }
            let seconds = recorded.window.host_series.len() - 1;
            let mut groups = [waiting(&vec![4e6; seconds])];
            take_direct(&mut groups, &recorded, 4096.0);
            groups[0].1.bins.iter().map(|bin| bin.direct).sum::<f64>() / (4e6 * seconds as f64)
        };
        assert!(direct(false, 4e6) > 0.95, "{}", direct(false, 4e6));
        assert!(direct(true, 4e6) < 0.05, "it became dirty above: {}", direct(true, 4e6));
        assert!(direct(false, 1e6) < 0.05, "it met dirty pages below: {}", direct(false, 1e6));
    }

    fn program(name: &str, cgroup: EntityId, by_calls: &[f64]) -> (Key, Group) {
        let bin = |by_calls: &f64| Bin { by_calls: *by_calls, ..Bin::default() };
        let bins = by_calls.iter().map(bin).collect();
        (("a".to_owned(), name.as_bytes().to_vec()), Group { cgroup: Some(cgroup), bins, ..Group::default() })
    }

    const BACKUP: EntityId = EntityId(5);
    const IDLE: EntityId = EntityId(6);

    /// Two cgroups, and process 10 of the first one, which dirties 1 MiB.
    fn window() -> Window {
        let mut window = Window::default();
        let cgroup = |path: &str, ino| Entity::Cgroup { path: path.into(), hierarchy: Hierarchy::V2, ino: Some(ino) };
        let dirtied = Dirtied {
            since: Nanos(0),
            who: Who { pid: 10, comm: "log".into(), cgroup_ino: 50 },
            device: DevId { major: 8, minor: 0 },
            file: None,
            bytes: Bytes(1 << 20),
            folios: 256,
            redirtied: Bytes(0),
        };
        for record in [
            Record::Entity(BACKUP, cgroup("/backup", 50)),
            Record::Entity(IDLE, cgroup("/idle", 60)),
            Record::Event(Event { at: Nanos(1), what: What::Dirtied(dirtied) }),
        ] {
            let Ok(()) = window.record(&record);
        }
        window
    }

    #[test]
    fn requests_that_a_limit_holds_up_are_of_the_program_that_dirties_nothing() {
        let window = window();
        let log = |by_calls| program("log", BACKUP, &[by_calls]);
        let groups = [log(1_048_576.0), program("tar", BACKUP, &[4e6]), program("none", IDLE, &[0.0])];
        let of_pid = BTreeMap::from([(10, groups[0].0.clone()), (11, groups[1].0.clone())]);
        assert_eq!(undirtied(&groups, &window, &of_pid), BTreeMap::from([(50, (1, 4e6))]));
        assert_eq!(undirtied(&groups[..1], &window, &of_pid), BTreeMap::new(), "all became dirty");
        assert_eq!(undirtied(&[log(1_048_577.0)], &window, &of_pid), BTreeMap::new(), "all but a byte became dirty");
        let rest = 1_048_576.0;
        assert_eq!(undirtied(&[log(2.0 * rest)], &window, &of_pid), BTreeMap::from([(50, (0, rest))]), "half did");
    }

    #[test]
    fn a_program_gets_no_more_held_up_bytes_than_never_became_dirty() {
        let mut window = window();
        let submitted = |at, pid: Option<u32>, bytes| Submitted {
            since: Nanos(at - 1),
            disk: DevId { major: 8, minor: 0 },
            class: Class::Direct,
            device: None,
            file: None,
            cgroup_ino: Some(50),
            who: pid.map(|pid| Who { pid, comm: "tar".into(), cgroup_ino: 50 }),
            bytes: Bytes(bytes),
            bios: 1,
        };
        for (at, pid, bytes) in [(5, None, 6_000_000), (15, Some(11), 1_000_000), (16, None, 2_000_000)] {
            let event = Event { at: Nanos(at), what: What::Submitted(submitted(at, pid, bytes)) };
            let Ok(()) = window.record(&Record::Event(event));
        }
        let mut recorded = Recorded::default();
        recorded.window = window;
        let direct = |by_calls: &[f64]| {
            let groups = [program("tar", BACKUP, by_calls)];
            let of_pid = BTreeMap::from([(11, groups[0].0.clone())]);
            traced_direct(&groups, &recorded, &of_pid, &[0, 10, 20])
        };
        assert_eq!(direct(&[6e6, 3e6]), Some(vec![vec![6e6, 3e6]]));
        // Its own 1 MB, and half of the 8 MB that the trace has for the cgroup.
        assert_eq!(direct(&[3e6, 2e6]), Some(vec![vec![3e6, 2e6]]));
        // What its processes wrote themselves is not cut.
        assert_eq!(direct(&[4e5, 1e5]), Some(vec![vec![0.0, 1e6]]));
    }
}
