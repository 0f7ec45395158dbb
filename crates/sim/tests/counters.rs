// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a wb on machines with many CPUs: the values that readers get, and the exact sums of the kernel.

mod machine;

use floodline_record::id::Entity;
use floodline_record::record::Record;
use machine::{figure, run_of, scenario};
use std::collections::BTreeMap;

/// Dirty KiB of the machine, and of all wbs by their counters, at some seconds of the run.
fn dirty_at<const N: usize>(cpus: u64, seconds: [u64; N]) -> [(u64, u64); N] {
    let write = |file| format!("write = {{ file = \"/data/{file}\", block = \"4 KiB\", count = 55 }}");
    let task = |file| {
        format!("[workload.tasks.w{file}]\nsteps = [{{ {} }}, {{ sleep = {{ for = \"10s\" }} }}]\n", write(file))
    };
    let tasks: String = (0..64).map(task).collect();
    let text = format!(
        r#"
name = "counters"
summary = "64 writers that dirty 55 pages each"
[machine]
memory = "16 GiB"
cpus = {cpus}
[machine.devices.data]
size = "20 GB"
[machine.mounts."/data"]
type = "xfs"
device = "data"
[workload]
duration = "10s"
{tasks}
"#
    );
    let (mut begin, mut samples) = (None, Vec::new());
    let run = run_of(&scenario(&text), "6.12", |record| {
        if let Record::Sample(sample) = record {
            let at = sample.time.monotonic.0;
            let since = at - *begin.get_or_insert(at);
            let dirty = sample.host.nr_dirty.expect("it is recorded").0 * 4;
            let rows = sample.wbs.rows().iter();
            let read = rows.map(|(_, row)| row.reclaimable.expect("it is recorded").0 / 1024).sum();
            samples.push((since, (dirty, read)));
        }
        true
    });
    assert_eq!(figure(&run, "host.dirtied_bytes"), f64::from(64 * 55 * 4096), "the machine's own counter is exact");
    seconds.map(|second| {
        let found = samples.iter().find(|(since, _)| *since >= second * 1_000_000_000);
        found.expect("a sample of that second").1
    })
}

#[test]
fn cpus_of_a_large_machine_hold_back_what_makes_no_batch_and_small_shares_are_added_up() {
    let all = 64 * 55 * 4;
    // A disk without a history has a share of zero: its dirty pages are written after 5 s.
    assert_eq!(dirty_at(16, [3, 8]), [(all, all), (0, 0)]);
    let [dirty, written] = dirty_at(64, [3, 8]);
    assert_eq!(dirty, (all, 0), "13.75 MiB are dirty, and the counter shows none");
    // With a share of zero the kernel adds up the counter: otherwise the pages would wait until they are 30 s old.
    assert_eq!(written.0, 0);
}

#[test]
fn io_of_a_cgroup_is_that_of_its_descendants_too_on_v2_and_its_own_on_v1() {
    let written = |mode: &str| {
        let text = format!(
            r#"
name = "nested"
summary = "A container below a limited tenant stores and syncs"
[machine]
cgroup_mode = "{mode}"
memory = "1 GiB"
cpus = 1
[machine.devices.data]
size = "1 GB"
[machine.mounts."/data"]
type = "xfs"
device = "data"
[machine.cgroups.tenant]
io_max.data = {{ write_iops = "1000 IO/s" }}
[machine.cgroups."tenant/app"]
[workload]
duration = "5s"
[workload.tasks.app]
cgroup = "tenant/app"
steps = [{{ write = {{ file = "/data/file", block = "1 MiB", total = "4 MiB", direct = true }} }}]
"#
        );
        let (mut of, mut last) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
        run_of(&scenario(&text), "6.12", |record| {
            match record {
                Record::Entity(id, Entity::Cgroup { path, .. }) => drop(of.insert(*id, path.to_string())),
                Record::Entity(id, Entity::CgroupIo { cgroup, .. }) => drop(of.insert(*id, of[cgroup].clone())),
                Record::Sample(sample) => {
                    let rows = sample.cgroup_io.rows().iter();
                    last.extend(rows.map(|(id, row)| (of[id].clone(), row.wbytes.unwrap_or_default().0 >> 20)));
                }
                _ => {}
            }
            true
        });
        ["/tenant", "/tenant/app"].map(|path| last.get(path).copied())
    };
    assert_eq!(written("v2"), [Some(4), Some(4)]);
    assert_eq!(written("v1"), [Some(0), Some(4)]);
}

#[test]
fn inodes_of_a_cgroup_are_slab_until_they_are_removed() {
    let slab = |mode: &str| {
        let text = format!(
            r#"
name = "unpacked"
summary = "A unit that creates files, syncs them, and removes half of them"
[machine]
cgroup_mode = "{mode}"
memory = "1 GiB"
cpus = 1
[machine.devices.data]
size = "20 GB"
[machine.mounts."/data"]
type = "xfs"
device = "data"
[machine.cgroups.system]
[machine.cgroups."system/unpack"]
[workload]
duration = "9s"
[workload.tasks.unpack]
cgroup = "system/unpack"
steps = [
    {{ create_files = {{ file = "/data/kept{{n}}", files = 500, size = "4 KiB" }} }},
    {{ create_files = {{ file = "/data/removed{{n}}", files = 500, size = "4 KiB" }} }},
    {{ syncfs = {{ path = "/data" }} }},
    {{ sleep = {{ for = "4s" }} }},
    {{ unlink = {{ file = "/data/removed{{n}}", files = 500 }} }},
    {{ sleep = {{ for = "4s" }} }},
]
"#
        );
        let (mut names, mut levels) = (BTreeMap::new(), BTreeMap::<String, Vec<Option<u64>>>::new());
        run_of(&scenario(&text), "6.12", |record| {
            match record {
                Record::Entity(id, Entity::Cgroup { path, .. }) => drop(names.insert(*id, path.to_string())),
                Record::Sample(sample) => {
                    for (id, row) in sample.cgroups.rows() {
                        let level = row.slab_reclaimable.map(|bytes| bytes.0);
                        levels.entry(names[id].clone()).or_default().push(level);
                    }
                }
                _ => {}
            }
            true
        });
        ["/system/unpack", "/system"].map(|path| {
            let levels = &levels[path];
            (levels.iter().flatten().max().copied(), levels.last().copied().flatten())
        })
    };
    let inode = 1216;
    // Those of a descendant count, too.
    assert_eq!(slab("v2"), [(Some(1000 * inode), Some(500 * inode)); 2]);
    assert_eq!(slab("v1"), [(None, None); 2]);
}
