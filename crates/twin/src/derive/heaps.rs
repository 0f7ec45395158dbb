// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of cgroups that is not page cache. It leaves less of a limit for dirty pages: the kernel takes the limit's share of the
//! page cache and of what is still free below the limit ("writeback: fix incorrect calculation of available memory for memcg
//! domains", 4.4).

use super::bursts::time;
use super::machine::Cgroups;
use crate::fits::heap_within;
use crate::provenance::Notes;
use floodline_record::units::Bytes;
use floodline_scenario::{Anon, ByteSize, Lasting, Machine, SizeLimit, Step, Task};
use std::collections::BTreeMap;

/// Less than this changes no limit.
const LEAST: u64 = 1 << 20;
/// Part of the machine's memory that the heaps of one moment take at most.
const OF_MACHINE: f64 = 0.8;
/// A cgroup that appears or goes away within this time of the begin or the end was there all the time, seconds.
const NEAR: f64 = 2.0;

/// What a cgroup held beside its page cache, and when, in seconds since the recording began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) from: f64,
    pub(super) to: f64,
}

/// Heaps by path in the scenario: of cgroups that a memory limit applies to.
pub(super) fn heaps(cgroups: &Cgroups, machine: &Machine) -> BTreeMap<String, Held> {
    // A parent counts what its children hold. With controllers for its children it has no process of its own.
    let mut of_children: BTreeMap<&str, u64> = BTreeMap::new();
    let mut holders: BTreeMap<&str, Option<&String>> = BTreeMap::new();
    for (path, cgroup) in &machine.cgroups {
        let Some(parent) = parent(path) else { continue };
        let sum = of_children.entry(parent).or_default();
        *sum = sum.saturating_add(cgroups.held(path).map_or(0, |held| held.bytes));
        let holder = holders.entry(parent).or_default();
        if holder.is_none() && cgroup.memory_max.is_none() {
            *holder = Some(path);
        }
    }
    let mut heaps: BTreeMap<String, Held> = BTreeMap::new();
    for path in machine.cgroups.keys() {
        let Some(limit) = limit(path, cgroups, machine) else { continue };
        let Some(held) = cgroups.held(path) else { continue };
        let own = held.bytes.saturating_sub(of_children.get(path.as_str()).copied().unwrap_or(0));
        let Some(holder) = holders.get(path.as_str()).copied().unwrap_or(Some(path)).filter(|_| own >= LEAST) else {
            continue;
        };
        let heap = heaps.entry(holder.clone()).or_insert(Held { bytes: 0, ..held });
        heap.bytes = heap.bytes.saturating_add(own).min(heap_within(limit));
        (heap.from, heap.to) = (heap.from.min(held.from), heap.to.max(held.to));
    }
    let most = most_at_once(&heaps) as f64;
    let room = OF_MACHINE * machine.memory.bytes() as f64;
    for heap in heaps.values_mut().filter(|_| most > room) {
        heap.bytes = (heap.bytes as f64 * room / most) as u64;
    }
    heaps.retain(|_, heap| heap.bytes >= LEAST);
    heaps
}

/// The cgroup above another one.
fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent)
}

/// The smallest limit that a cgroup or one above it has, or had while the host was watched.
fn limit(path: &str, cgroups: &Cgroups, machine: &Machine) -> Option<u64> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let of = |end: usize| {
        let path = &path[..end];
        let fixed = machine.cgroups.get(path).and_then(|cgroup| match cgroup.memory_max {
            Some(SizeLimit::Size(size)) => Some(size.bytes()),
            _ => None,
        });
        fixed.into_iter().chain(cgroups.smallest_limit(path)).min()
    };
    ends.filter_map(of).min()
}

/// The most that all of them hold at one moment.
fn most_at_once(heaps: &BTreeMap<String, Held>) -> u64 {
    let mut changes: Vec<(f64, bool, u64)> =
        heaps.values().flat_map(|heap| [(heap.from, true, heap.bytes), (heap.to, false, heap.bytes)]).collect();
    // One that ends makes room for one that begins.
    changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let (mut now, mut most) = (0u64, 0);
    for (_, begins, bytes) in changes {
        now = if begins { now.saturating_add(bytes) } else { now.saturating_sub(bytes) };
        most = now.max(most);
    }
    most
}

/// What heaps hold when a recording begins.
pub(super) fn at_begin(heaps: &BTreeMap<String, Held>) -> u64 {
    heaps.values().filter(|heap| heap.from <= NEAR).fold(0, |sum, heap| sum.saturating_add(heap.bytes))
}

/// A task that holds a heap for as long as its cgroup was there.
pub(super) fn task(path: &str, heap: Held, seconds: f64, key: &str, notes: &mut Notes) -> Task {
    notes.derived(key, format!("memory of {path} without its page cache"));
    let hold = Step::Anon(Anon { size: ByteSize(Bytes(heap.bytes)) });
    let sleep = |seconds: f64| Step::Sleep(Lasting { lasting: time(seconds) });
    let end = if heap.to >= seconds - NEAR { seconds } else { heap.to };
    let (setup, mut steps) = match heap.from <= NEAR {
        true => (vec![hold], Vec::new()),
        false => (Vec::new(), vec![sleep(heap.from), hold]),
    };
    let begin = if setup.is_empty() { heap.from } else { 0.0 };
    steps.push(sleep((end - begin).max(1e-3)));
    Task { cgroup: Some(path.to_owned()), setup, steps, ..Task::default() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::recorded::Recorded;
    use floodline_record::units::{Bytes, Limit};
    use floodline_testkit::{Fixture, mib};

    /// A cgroup: its name, MiB beside its page cache, a limit in MiB, and the seconds from which and until which it is there.
    type Watched = (&'static str, f64, Option<f64>, (f64, f64));

    /// The heaps of a host, in MiB, with begin and end.
    fn check(cgroups: &[Watched], expect: &[(&str, u64, f64, f64)]) {
        let mut host = Fixture::healthy().seconds(30);
        for (path, held, limit, (from, to)) in cgroups.iter().copied() {
            let is_there = move |t: f64| t >= from && t <= to;
            host = host.cgroup(path, move |t, row| {
                *row = Default::default();
                if is_there(t) {
                    row.memory_current = Some(Bytes(mib(held + 10.0)));
                    (row.inactive_file, row.active_file) = (Some(Bytes(mib(6.0))), Some(Bytes(mib(4.0))));
                }
            });
            if let Some(limit) = limit {
                host = host.limits(path, move |_, row| row.memory_max = Some(Limit(mib(limit))));
            }
        }
        let recorded = Recorded::from_records(&host.records());
        let of = Cgroups::of(&recorded);
        let mut machine = machine_of(4096);
        let mut notes = Notes::default();
        for (path, ..) in cgroups {
            of.add(path.trim_start_matches('/'), &mut machine, |_| None, &mut notes);
        }
        let found: Vec<(String, u64, f64, f64)> = heaps(&of, &machine)
            .into_iter()
            .map(|(path, heap)| (path, heap.bytes >> 20, heap.from.round(), heap.to.round()))
            .collect();
        let expect: Vec<(String, u64, f64, f64)> =
            expect.iter().map(|(path, bytes, from, to)| ((*path).to_owned(), *bytes, *from, *to)).collect();
        assert_eq!(found, expect);
    }

    /// A machine without cgroups; `memory` in MiB.
    pub(in crate::derive) fn machine_of(memory: u64) -> Machine {
        let text = format!(
            "name = \"a\"\nsummary = \"b\"\nmachine.memory = \"{memory} MiB\"\nmachine.devices.a = {{ size = \"1 GiB\" }}\n\
             machine.mounts.\"/a\" = {{ type = \"xfs\", device = \"a\" }}\nworkload.duration = \"1s\"\n\
             workload.tasks.t.steps = [{{ write = {{ file = \"/a/b\", total = \"4 KiB\" }} }}]\n"
        );
        floodline_scenario::ScenarioFile::parse(&text).unwrap().variants.remove("default").unwrap().machine
    }

    #[test]
    fn a_heap_is_what_a_limited_cgroup_holds_beside_its_page_cache() {
        let all = (0.0, 30.0);
        check(&[("/db", 300.0, Some(512.0), all)], &[("db", 300, 0.0, 30.0)]);
        check(&[("/db", 300.0, None, all)], &[]);
        // A heap does not fill its limit: the tasks need some of it.
        check(&[("/db", 500.0, Some(512.0), all)], &[("db", 460, 0.0, 30.0)]);
        // What a parent holds beside its child is held by the child, under the limit of the parent.
        let pod = [("/pod", 300.0, Some(512.0), all), ("/pod/app", 200.0, None, all)];
        check(&pod, &[("pod/app", 300, 0.0, 30.0)]);
        check(&[("/small", 0.5, Some(512.0), all)], &[]);
    }

    #[test]
    fn heaps_begin_and_end_with_their_cgroups_and_fit_into_the_machine() {
        let jobs = [("/job1", 3000.0, Some(4000.0), (0.0, 10.0)), ("/job2", 3000.0, Some(4000.0), (12.0, 30.0))];
        check(&jobs, &[("job1", 3000, 0.0, 10.0), ("job2", 3000, 12.0, 30.0)]);
        let beside = [("/job1", 3000.0, Some(4000.0), (0.0, 20.0)), ("/job2", 3000.0, Some(4000.0), (12.0, 30.0))];
        check(&beside, &[("job1", 1638, 0.0, 20.0), ("job2", 1638, 12.0, 30.0)]);
        let task =
            |from, to| task("a", Held { bytes: 1 << 20, from, to }, 30.0, "workload.tasks.heap", &mut Notes::default());
        assert_eq!((task(0.0, 30.0).setup.len(), task(0.0, 30.0).steps.len()), (1, 1));
        assert_eq!((task(12.0, 20.0).setup.len(), task(12.0, 20.0).steps.len()), (0, 3));
    }
}
