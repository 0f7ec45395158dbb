// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that write next to nothing, beside those that a twin has by their bytes. They decide no figure of the recording, and they are
//! the ones that wait when a change makes the limit of their cgroup smaller, or when they sync behind the data of others. One of each
//! cgroup stands for the others in it.

use super::group::{Group, PAGE};
use floodline_record::id::EntityId;
use std::collections::{BTreeMap, BTreeSet};

/// Most small programs of a twin. A host with more cgroups has the ones that write most.
const MOST: usize = 32;
/// Fewest bytes of a small program: one of fewer writes once.
const LEAST: f64 = 4.0 * PAGE;
/// Fewest intervals in which it writes.
const INTERVALS_MIN: usize = 3;

/// Positions of the small programs that a twin has: in each cgroup the one that writes most, of those that `is_kept` leaves out.
pub(super) fn of_cgroups(all: &[Group], is_kept: impl Fn(&Group) -> bool) -> BTreeSet<usize> {
    let is_small = |group: &Group| {
        let intervals = group.bins.iter().filter(|bin| bin.dirtied() > 0.0).count();
        group.total.dirtied() >= LEAST && intervals >= INTERVALS_MIN && !is_kept(group)
    };
    let mut by_cgroup: BTreeMap<EntityId, (usize, f64)> = BTreeMap::new();
    for (at, group) in all.iter().enumerate().filter(|(_, group)| is_small(group)) {
        let Some(cgroup) = group.cgroup else { continue };
        let most = by_cgroup.entry(cgroup).or_insert((at, 0.0));
        if group.weight() > most.1 {
            *most = (at, group.weight());
        }
    }
    let mut small: Vec<(usize, f64)> = by_cgroup.into_values().collect();
    small.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    small.into_iter().take(MOST).map(|(at, _)| at).collect()
}

/// The cgroups in which one of these programs wrote.
pub(super) fn written<'a>(groups: impl Iterator<Item = &'a Group>) -> BTreeSet<EntityId> {
    groups.filter(|group| group.total.dirtied() > 0.0).filter_map(|group| group.cgroup).collect()
}

#[cfg(test)]
mod tests {
    use super::super::group::Bin;
    use super::*;
    use floodline_record::record::{Record, Sink};

    /// The twin of containers that unpack much and log little on a host of version 1.
    fn containers() -> crate::Twin {
        let text = r#"
name = "containers"
summary = "Containers that unpack much and log little"
[machine]
memory = "4 GiB"
cpus = 2
cgroup_mode = "v1"
[machine.devices.sda]
size = "20 GiB"
write_bandwidth = "60 MB/s"
[machine.mounts."/c"]
type = "ext4"
device = "sda"
[machine.cgroups."vat{i}"]
instances = 3
memory_max = "128 MiB"
[machine.cgroups.once]
[machine.cgroups.idle]
[workload]
duration = "30s"
[workload.tasks.batch]
cgroup = "vat{i}"
start = "2s"
steps = [{ repeat = { every = "6s", steps = [{ write = { file = "/c/b{i}", order = "append", block = "64 KiB", total = "12 MB" } }] } }]
[workload.tasks.log]
cgroup = "vat{i}"
steps = [{ write = { file = "/c/log{i}", order = "append", block = "300 B", rate = "10/s" } }]
[workload.tasks.once]
cgroup = "once"
steps = [{ sleep = { for = "9s" } }, { write = { file = "/c/once", block = "4 KiB", total = "8 KiB" } }, { sleep = { for = "20s" } }]
[workload.tasks.idle]
cgroup = "idle"
steps = [{ sleep = { for = "29s" } }]
"#;
        let scenario = floodline_scenario::ScenarioFile::parse(text).unwrap().variants.remove("default").unwrap();
        let mut recorded = crate::Recorded::default();
        let version = floodline_record::version::KernelVersion::new(5, 10, 0);
        let take = |mut record: Record| {
            if let Record::Facts(facts) = &mut record {
                facts.kernel_release = "5.10.0".into();
            }
            let Ok(()) = recorded.record(&record);
            Ok(())
        };
        floodline_sim::simulate(&scenario, &floodline_sim::Options::new("default", version), take, |_| true)
            .expect("it runs");
        crate::of(&recorded, &crate::Options::default()).expect("a twin")
    }

    #[test]
    fn a_program_that_logs_beside_a_large_one_is_in_the_twin() {
        let twin = containers();
        let number = |comm: &str| twin.programs.values().filter(|program| program.comm == comm).count();
        assert_eq!((number("batch"), number("log")), (3, 3), "{:?}", twin.programs);
        let told = |what: &str| twin.unknown.iter().any(|one| one.ends_with(&format!("in which {what} was written.")));
        assert!(told("next to nothing") && told("nothing"), "{:?}", twin.unknown);
    }

    /// A program of a cgroup that writes some bytes in each of some intervals.
    fn group(cgroup: u32, bytes: f64, intervals: usize) -> Group {
        let bin = Bin { by_calls: bytes, ..Bin::default() };
        let total = Bin { by_calls: bytes * intervals as f64, ..Bin::default() };
        Group { cgroup: Some(EntityId(cgroup)), bins: vec![bin; intervals], total, ..Group::default() }
    }

    #[test]
    fn one_small_program_of_each_cgroup_is_in_the_twin() {
        let is_kept = |group: &Group| group.weight() > 1e6;
        let all = [
            group(1, 12e6, 5),
            group(1, 3_000.0, 60),
            group(1, 6_000.0, 60),
            group(2, 1e9, 1),
            group(3, 9_000.0, 20),
            group(4, 40_000.0, 1),
            group(5, 10.0, 50),
        ];
        assert_eq!(of_cgroups(&all, is_kept).into_iter().collect::<Vec<_>>(), [2, 4]);
        let many: Vec<Group> = (0..100).map(|at| group(at, 5_000.0 + f64::from(at), 10)).collect();
        let some = of_cgroups(&many, is_kept);
        assert_eq!((some.len(), some.first()), (MOST, Some(&68)), "the largest ones");
        assert_eq!(written(all.iter()).len(), 5);
    }
}
