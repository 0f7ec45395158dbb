// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of a made-up machine: what is read, what is described, what is said once.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::tree::HostTree;
use floodline_host::collect::Collector;
use floodline_host::plan::{Needs, Plan};
use floodline_host::root::HostRoot;
use floodline_record::facts::HostFacts;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::record::Record;
use floodline_record::sample::{CgroupIoRow, Sample};
use floodline_record::units::{Bits, Bytes, Count, Limit, Nanos, Ppm};

/// What one sample added to a recording.
struct Look {
    entities: Vec<(EntityId, Entity)>,
    gaps: Vec<Gap>,
    sample: Sample,
}

impl Look {
    fn of(collector: &mut Collector<'_>) -> Look {
        let mut out = Vec::new();
        collector.collect(&mut out);
        let (mut entities, mut gaps, mut samples) = (Vec::new(), Vec::new(), Vec::new());
        for record in out {
            match record {
                Record::Entity(id, entity) => entities.push((id, entity)),
                Record::Gap(gap) => gaps.push(gap),
                Record::Sample(sample) => samples.push(*sample),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(samples.len(), 1);
        Look { entities, gaps, sample: samples.remove(0) }
    }

    fn cgroup(&self, path: &str) -> EntityId {
        self.find(|entity| matches!(entity, Entity::Cgroup { path: have, .. } if have.to_string() == path))
    }

    fn find(&self, wanted: impl Fn(&Entity) -> bool) -> EntityId {
        self.entities.iter().find(|(_, entity)| wanted(entity)).unwrap().0
    }

    fn labels(&self) -> Vec<String> {
        self.entities.iter().map(|(id, entity)| format!("{} {}", id.0, entity.label())).collect()
    }
}

fn everything(tree: &HostTree) -> (HostRoot, Plan) {
    (HostRoot::at(tree.path()).unwrap(), Plan::everything(&HostTree::facts()))
}

#[test]
fn a_snapshot_reads_the_controllers_of_siblings_once() {
    let tree = HostTree::new();
    for path in ["/a", "/a/b", "/a/c", "/a/d", "/e"] {
        tree.cgroup(path);
    }
    // A threaded cgroup has neither memory nor io, and is read by itself.
    for name in ["memory.stat", "memory.current", "memory.max", "memory.high"] {
        tree.remove(&format!("sys/fs/cgroup/a/c/{name}"));
    }
    tree.write("sys/fs/cgroup/a/c/cgroup.controllers", "cpu\n");
    tree.write("sys/fs/cgroup/a/b/cgroup.controllers", "cpu memory\n");
    tree.remove("sys/fs/cgroup/a/d/cgroup.controllers");
    let root = HostRoot::at(tree.path()).unwrap();
    let look = Look::of(&mut Collector::new(&root, Plan::for_needs(&HostTree::facts(), Needs::BUDGET)));
    assert!(look.gaps.iter().all(|gap| gap.cause == Cause::NotPlanned), "{:?}", look.gaps);
    let controllers = |path| look.sample.cgroup_limits.get(look.cgroup(path)).and_then(|row| row.controllers);
    let read = ["/a", "/a/b", "/a/c", "/a/d", "/e"].map(controllers);
    assert_eq!(read, [3, 1, 0, 1, 3].map(|bits| Some(Bits(bits))));
    // A recording reads each of them.
    let look = Look::of(&mut Collector::new(&root, Plan::everything(&HostTree::facts())));
    let lacking: Vec<_> = look.gaps.iter().map(|gap| (gap.source, gap.entity)).collect();
    assert_eq!(lacking, [(Source::CgroupControllers, Some(look.cgroup("/a/d")))]);
}

#[test]
fn the_first_sample_reads_everything_and_describes_it() {
    let tree = HostTree::new();
    tree.cgroup("/a.slice");
    tree.cgroup("/a.slice/b.scope");
    tree.process(7, 70, "redis", "/a.slice/b.scope");
    let (root, plan) = everything(&tree);
    let look = Look::of(&mut Collector::new(&root, plan));
    let labels = [
        "0 vda",
        "1 dm-0",
        "2 node 0 Normal",
        "3 254:0",
        "4 254:0 cgroup 1",
        "5 254:0 cgroup 4091",
        "6 /",
        "7 cgroup #6 on 254:0",
        "8 cgroup #6 on 253:0",
        "9 /a.slice",
        "10 cgroup #9 on 254:0",
        "11 cgroup #9 on 253:0",
        "12 /a.slice/b.scope",
        "13 cgroup #12 on 254:0",
        "14 cgroup #12 on 253:0",
        "15 redis[7]",
    ];
    assert_eq!(look.labels(), labels);
    assert_eq!(look.gaps, []);

    let sample = &look.sample;
    assert_eq!(sample.host.mem_total, Some(Bytes(8_147_072 << 10)));
    assert_eq!(sample.host.psi_io_some, Some(Nanos(15_228_239_000)));
    assert_eq!(sample.host.dirty_ratio.map(|ratio| ratio.0), Some(20));
    assert!(sample.host.nr_dirty.is_some() && sample.host.cpus_online == Some(Count(2)));
    assert_eq!(sample.disks.rows().len(), 2);
    assert_eq!(sample.bdis.get(EntityId(3)).unwrap().max_ratio, Some(Ppm(1_000_000)));
    assert_eq!(sample.bdis.get(EntityId(3)).unwrap().reclaimable, Some(Bytes(141_200 << 10)));
    assert_eq!(sample.wbs.get(EntityId(5)).unwrap().state, Some(Bits(15)));
    let cgroup = sample.cgroups.get(EntityId(12)).unwrap();
    assert_eq!((cgroup.memory_current, cgroup.events_oom_kill), (Some(Bytes(805_306_368)), Some(Count(7))));
    assert!(cgroup.file_dirty.is_some() && cgroup.populated.is_some() && cgroup.nr_dying_descendants.is_some());
    let limits = sample.cgroup_limits.get(EntityId(12)).unwrap();
    assert_eq!((limits.memory_max, limits.memory_high), (Some(Limit(805_306_368)), Some(Limit::MAX)));
    assert_eq!((limits.controllers, limits.subtree_control), (Some(Bits(3)), Some(Bits(0))));
    let io = sample.cgroup_io.get(EntityId(13)).unwrap();
    assert_eq!((io.wbytes, io.wbps_max), (Some(Bytes(299_008_000)), Some(Limit(1_048_576))));
    let process = sample.processes.get(EntityId(15)).unwrap();
    assert_eq!((process.write_bytes, process.state), (Some(Bytes(4096)), Some(Count(u64::from(b'S')))));
    let redis = look.find(|entity| matches!(entity, Entity::Process { .. }));
    let (_, Entity::Process { cgroup, start_ticks, kthread, .. }) = &look.entities[redis.0 as usize] else { panic!() };
    assert_eq!((*cgroup, *start_ticks, *kthread), (Some(EntityId(12)), 70, false));
}

#[test]
fn what_stays_is_described_once_and_what_is_slow_is_read_in_turns() {
    let tree = HostTree::sized(30, 40);
    let (root, plan) = everything(&tree);
    let mut collector = Collector::new(&root, plan);
    Look::of(&mut collector);
    let (mut limits, mut states, mut zones) = (0, 0, 0);
    for _ in 0..60 {
        let look = Look::of(&mut collector);
        assert_eq!((look.labels(), look.gaps), (vec![], vec![]));
        assert_eq!((look.sample.cgroups.rows().len(), look.sample.processes.rows().len()), (30, 40));
        assert!(look.sample.cgroups.rows().iter().all(|(_, row)| row.file_dirty.is_some()));
        assert!(look.sample.processes.rows().iter().all(|(_, row)| row.write_bytes.is_some()));
        limits += look.sample.cgroup_limits.rows().len();
        states += look.sample.processes.rows().iter().filter(|(_, row)| row.state.is_some()).count();
        zones += look.sample.zones.rows().len();
    }
    // Each cgroup's and each process's turn came twice; right after the first look all are looked at
    // once more, as it is not known yet that they sleep.
    assert_eq!((limits, zones), (60, 6));
    assert_eq!(states, 80 + 40 - 1);
}

#[test]
fn a_cgroup_in_which_nothing_happens_is_not_read_all_over() {
    let tree = HostTree::new();
    let path = |name: &str| format!("sys/fs/cgroup/a.slice/{name}");
    tree.cgroup("/a.slice");
    let (root, plan) = everything(&tree);
    let mut collector = Collector::new(&root, plan);
    let first = Look::of(&mut collector);
    let id = first.cgroup("/a.slice");
    let mut read = || {
        let row = Look::of(&mut collector).sample.cgroups.get(id).unwrap().clone();
        assert!(row.file_dirty.is_some());
        [row.memory_current.is_some(), row.events_oom_kill.is_some(), row.io_some.is_some()]
    };
    let (all, nothing) = ([true; 3], [false; 3]);
    // The first look at what stays the same is not yet trusted: what ends has no I/O of its own.
    assert_eq!([read(), read(), read()], [all, nothing, nothing]);
    let change = |file: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(tree.at(file)).unwrap();
        assert!(text.contains(from), "{file}: {text}");
        tree.write(file, text.replacen(from, to, 1));
    };
    change(&path("memory.stat"), "anon ", "anon 1");
    assert_eq!([read(), read(), read()], [all, all, nothing]);
    change(&path("io.stat"), "wios=", "wios=1");
    assert_eq!([read(), read(), read()], [all, all, nothing]);
    change("sys/fs/cgroup/io.pressure", "total=", "total=1");
    assert_eq!([read(), read()], [[false, false, true], nothing], "waiting changes nothing else");
    let again = (0..30).map(|_| read()).filter(|&now| now == all).count();
    assert_eq!(again, 1, "its turn");
}

#[test]
fn counters_that_the_kernel_adds_up_for_a_read_are_not_read_in_each_sample() {
    let tree = HostTree::new();
    tree.cgroup("/a");
    let (root, plan) = everything(&tree);
    let mut collector = Collector::new(&root, plan.with_stat_every(Nanos(3_600_000_000_000)));
    let first = Look::of(&mut collector);
    let a = first.cgroup("/a");
    assert!(first.sample.cgroups.get(a).unwrap().file_dirty.is_some() && first.sample.cgroup_io.was_read());
    tree.cgroup("/b");
    let second = Look::of(&mut collector);
    let row = second.sample.cgroups.get(a).unwrap();
    assert_eq!((row.file_dirty, row.pgfault, second.sample.cgroup_io.was_read()), (None, None, false), "not read then");
    assert!(row.memory_current.is_some() && row.io_some.is_some(), "the others keep their pace");
    let b = second.cgroup("/b");
    assert!(second.sample.cgroups.get(b).unwrap().file_dirty.is_some(), "a new cgroup is read when it is first seen");
    for _ in 0..3 {
        let look = Look::of(&mut collector);
        let rows: Vec<_> = look.sample.cgroups.rows().iter().map(|(id, row)| (*id, row.file_dirty)).collect();
        assert!(
            rows.contains(&(a, None)) && rows.contains(&(b, None)),
            "a row without a reading: it is there. {rows:?}"
        );
        assert_eq!(look.gaps, []);
    }
    tree.remove("sys/fs/cgroup/a");
    let look = Look::of(&mut collector);
    assert!(look.sample.cgroups.get(a).is_none() && look.sample.cgroups.get(b).is_some());
}

#[test]
fn limits_of_devices_are_read_in_turns_whatever_the_distance_of_the_counters() {
    let tree = HostTree::sized(8, 0);
    let (root, plan) = everything(&tree);
    let mut collector = Collector::new(&root, Plan { slow_every: 2, ..plan.with_stat_every(Nanos(10_000_000)) });
    Look::of(&mut collector);
    let mut again = std::collections::BTreeSet::new();
    let (mut reads, mut samples) = (0, 0);
    while reads < 30 {
        std::thread::sleep(std::time::Duration::from_millis(5));
        let look = Look::of(&mut collector);
        samples += 1;
        reads += usize::from(look.sample.cgroup_io.was_read());
        let is_set = |row: &CgroupIoRow| row.wbps_max.is_some_and(|limit| limit != Limit::MAX);
        let has_limit = |(id, row): &(EntityId, CgroupIoRow)| is_set(row).then_some(*id);
        again.extend(look.sample.cgroup_io.rows().iter().filter_map(has_limit));
        assert!(look.sample.cgroup_io.rows().iter().all(|(_, row)| row.wbytes.is_some()), "a row has both");
    }
    assert_eq!(again.len(), 8, "in {reads} of {samples} samples");
}

#[test]
fn a_limit_is_read_with_the_counters_while_its_cgroup_is_active_and_a_lifted_one_is_seen() {
    let tree = HostTree::new();
    tree.cgroup("/a");
    let (root, plan) = everything(&tree);
    // Its turn does not come again.
    let mut collector = Collector::new(&root, Plan { slow_every: 1_000_000, ..plan });
    let limits = |look: &Look| {
        let rows = look.sample.cgroup_io.rows().iter().map(|(_, row)| row);
        rows.filter(|row| row.wbytes == Some(Bytes(299_008_000))).map(|row| row.wbps_max).collect::<Vec<_>>()
    };
    assert!(limits(&Look::of(&mut collector)).contains(&Some(Limit(1_048_576))));
    let other = "254:0 rbytes=1 wbytes=299008000 rios=8950 wios=1252 dbytes=0 dios=0\n";
    for (text, expect) in [("254:0 rbps=max wbps=7 riops=max wiops=max\n", Limit(7)), ("", Limit::MAX)] {
        tree.write("sys/fs/cgroup/a/io.max", text);
        tree.write("sys/fs/cgroup/a/io.stat", other.replace("rbytes=1", &format!("rbytes={}", text.len())));
        let seen = limits(&Look::of(&mut collector));
        assert!(seen.contains(&Some(expect)), "{text:?}: {seen:?}");
    }
    // Without one its turn is waited for.
    tree.write("sys/fs/cgroup/a/io.stat", other);
    let seen = limits(&Look::of(&mut collector));
    assert!(seen.iter().all(Option::is_none), "{seen:?}");
}

#[test]
fn a_process_that_does_something_is_looked_at_closely() {
    let tree = HostTree::new();
    tree.process(7, 70, "busy", "/");
    tree.process(8, 80, "idle", "/");
    tree.cgroup("/a.slice");
    tree.process(9, 90, "elsewhere", "/a.slice");
    let (root, plan) = everything(&tree);
    let mut collector = Collector::new(&root, plan);
    let states = |collector: &mut Collector<'_>| {
        let look = Look::of(collector);
        look.sample.processes.rows().iter().map(|(_, row)| row.state.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(states(&mut collector), [true, true, true]);
    // Turns are at samples 21 to 23 (9 + 21, 8 + 22 and 7 + 23 are thirty).
    for _ in 0..4 {
        states(&mut collector);
    }
    assert_eq!(states(&mut collector), [false; 3]);
    let change = |file: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(tree.at(file)).unwrap();
        assert!(text.contains(from), "{file}: {text}");
        tree.write(file, text.replacen(from, to, 1));
    };
    change("proc/7/io", "write_bytes: 4096", "write_bytes: 8192");
    assert_eq!(states(&mut collector), [true, false, false]);
    assert_eq!(states(&mut collector), [false; 3]);
    // One is blocked now, and by the pressure it is not one of those in the slice.
    change("proc/stat", "procs_blocked 0", "procs_blocked 1");
    change("sys/fs/cgroup/io.pressure", "total=", "total=1");
    assert_eq!(states(&mut collector), [true, true, false]);
    change("sys/fs/cgroup/io.pressure", "total=", "total=1");
    change("sys/fs/cgroup/a.slice/io.pressure", "total=", "total=1");
    assert_eq!(states(&mut collector), [true; 3]);
}

#[test]
fn cgroups_that_come_and_go_have_ids_of_their_own() {
    let tree = HostTree::new();
    tree.cgroup("/a");
    tree.cgroup("/a/x");
    let (root, plan) = everything(&tree);
    let mut collector = Collector::new(&root, plan);
    let first = Look::of(&mut collector);
    tree.remove("sys/fs/cgroup/a");
    tree.cgroup("/b");
    let second = Look::of(&mut collector);
    assert_eq!(second.sample.cgroups.rows().len(), 2);
    assert!(second.sample.cgroups.get(first.cgroup("/a/x")).is_none());
    // The same name again is another cgroup, whether or not the number of its siblings changed.
    tree.remove("sys/fs/cgroup/b");
    tree.cgroup("/a");
    let third = Look::of(&mut collector);
    tree.remove("sys/fs/cgroup/a");
    tree.cgroup("/a");
    let fourth = Look::of(&mut collector);
    let ids = [first.cgroup("/a"), second.cgroup("/b"), third.cgroup("/a"), fourth.cgroup("/a")];
    assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    assert_eq!(fourth.sample.cgroups.rows().len(), 2);
    assert!(fourth.sample.cgroup_limits.get(ids[3]).is_some(), "limits are read when first seen");
}

#[test]
fn a_pid_used_again_is_another_process() {
    let tree = HostTree::new();
    tree.process(7, 70, "first", "/");
    let (root, plan) = everything(&tree);
    let mut collector = Collector::new(&root, plan);
    let first = Look::of(&mut collector);
    tree.remove("proc/7");
    tree.process(7, 71, "second", "/");
    let second = Look::of(&mut collector);
    assert_eq!(second.labels(), [format!("{} second[7]", first.entities.len())]);
    // A directory made anew for the same process is no new process.
    tree.remove("proc/7");
    tree.process(7, 71, "second", "/");
    let third = Look::of(&mut collector);
    assert_eq!(third.labels(), [""; 0]);
    assert_eq!(third.sample.processes.rows().len(), 1);
    tree.remove("proc/7");
    assert_eq!(Look::of(&mut collector).sample.processes.rows(), []);
}

#[test]
fn a_process_that_changes_its_name_or_cgroup_is_described_again() {
    let tree = HostTree::new();
    tree.cgroup("/a");
    tree.process(7, 70, "sh", "/");
    let (root, plan) = everything(&tree);
    let mut collector = Collector::new(&root, plan);
    let first = Look::of(&mut collector);
    let id = first.find(|entity| matches!(entity, Entity::Process { .. }));
    tree.process(7, 70, "exec", "/a");
    let mut described = Vec::new();
    for _ in 0..60 {
        described.extend(Look::of(&mut collector).entities);
    }
    assert!(described.iter().all(|(of, _)| *of == id), "{described:?}");
    let (_, Entity::Process { comm, cgroup, .. }) = described.last().unwrap() else { panic!() };
    assert_eq!((comm.to_string().as_str(), *cgroup), ("exec", Some(first.cgroup("/a"))));
}

#[test]
fn version_1_memory_and_blkio_become_one() {
    let tree = HostTree::new();
    let stat = "cache 1\ntotal_cache 4096\ntotal_rss 8192\ntotal_dirty 12288\ntotal_writeback 0\n";
    for path in ["", "/docker", "/docker/abc"] {
        tree.write(&format!("v1/memory{path}/memory.stat"), stat);
        tree.write(&format!("v1/memory{path}/memory.usage_in_bytes"), "16384\n");
        tree.write(&format!("v1/memory{path}/memory.limit_in_bytes"), "9223372036854771712\n");
    }
    for path in ["", "/docker", "/docker/abc", "/only-here"] {
        let recursive = if path == "/docker" { "" } else { "_recursive" };
        let bytes = "8:0 Read 1\n8:0 Write 2\n8:0 Discard 0\nTotal 3\n";
        tree.write(&format!("v1/blkio{path}/blkio.throttle.io_service_bytes{recursive}"), bytes);
        tree.write(&format!("v1/blkio{path}/blkio.throttle.io_serviced{recursive}"), "8:0 Read 3\n8:0 Write 4\n");
        for limit in ["read_bps", "write_bps", "read_iops", "write_iops"] {
            tree.write(&format!("v1/blkio{path}/blkio.throttle.{limit}_device"), "");
        }
    }
    tree.write("v1/blkio/docker/abc/blkio.throttle.write_bps_device", "8:0 10485760\n9:0 5\n");
    tree.write("v1/blkio/docker/abc/blkio.throttle.read_iops_device", "8:0 120\n");
    tree.process(7, 70, "app", "ignored");
    tree.write("proc/7/cgroup", "5:blkio:/docker/abc\n4:memory:/docker/abc\n0::/\n");
    let mut facts: HostFacts = HostTree::facts();
    facts.cgroups.v2_controllers.clear();
    facts.cgroups.v1_mounts = [("memory".into(), "/v1/memory".into()), ("blkio".into(), "/v1/blkio".into())].into();
    let root = HostRoot::at(tree.path()).unwrap();
    let look = Look::of(&mut Collector::new(&root, Plan::everything(&facts)));
    assert_eq!(look.gaps, []);
    let abc = look.cgroup("/docker/abc");
    let row = look.sample.cgroups.get(abc).unwrap();
    assert_eq!((row.file, row.anon, row.memory_current), (Some(Bytes(4096)), Some(Bytes(8192)), Some(Bytes(16384))));
    assert_eq!(row.file_dirty, Some(Bytes(12288)));
    assert_eq!(look.sample.cgroup_limits.get(abc).unwrap().memory_max, Some(Limit::MAX));
    for path in ["/", "/docker", "/docker/abc", "/only-here"] {
        let cgroup = look.cgroup(path);
        let io = look.find(|entity| matches!(entity, Entity::CgroupIo { cgroup: of, .. } if *of == cgroup));
        let row = look.sample.cgroup_io.get(io).unwrap();
        assert_eq!((row.wbytes, row.wios), (Some(Bytes(2)), Some(Count(4))), "{path}");
    }
    let limits = |path: &str, major: u32| {
        let cgroup = look.cgroup(path);
        let io = look.find(
            |entity| matches!(entity, Entity::CgroupIo { cgroup: of, dev } if *of == cgroup && dev.major == major),
        );
        let row = look.sample.cgroup_io.get(io).unwrap();
        [row.rbps_max, row.wbps_max, row.riops_max, row.wiops_max].map(|limit| limit.map(|limit| limit.0))
    };
    let no = Some(Limit::MAX.0);
    assert_eq!(limits("/docker/abc", 8), [no, Some(10_485_760), Some(120), no]);
    assert_eq!(limits("/docker/abc", 9), [no, Some(5), no, no]);
    assert_eq!(limits("/docker", 8), [no; 4], "without a line it has no limit");
    let hierarchies = look.entities.iter().filter_map(|(_, entity)| match entity {
        Entity::Cgroup { hierarchy, ino: None, .. } => Some(*hierarchy),
        _ => None,
    });
    let v1 = Hierarchy::V1Memory;
    assert_eq!(hierarchies.collect::<Vec<_>>(), [v1, v1, v1, Hierarchy::V1Blkio]);
    let of_app = look
        .entities
        .iter()
        .any(|(_, entity)| matches!(entity, Entity::Process { cgroup: Some(cgroup), .. } if *cgroup == abc));
    assert!(of_app);
}

#[test]
fn an_older_kernel_has_fewer_knobs_and_says_so_once() {
    let tree = HostTree::new();
    for knob in ["min_ratio_fine", "max_ratio_fine", "min_bytes", "max_bytes", "strict_limit"] {
        tree.remove(&format!("sys/class/bdi/254:0/{knob}"));
    }
    tree.remove("sys/kernel/debug/bdi/254:0/wb_stats");
    tree.remove("proc/sys/vm/laptop_mode");
    tree.write("sys/class/bdi/254:0/max_ratio", "40\n");
    let (root, plan) = everything(&tree);
    let mut collector = Collector::new(&root, plan);
    let look = Look::of(&mut collector);
    let bdi = look.find(|entity| matches!(entity, Entity::Bdi { .. }));
    let row = look.sample.bdis.get(bdi).unwrap();
    assert_eq!((row.max_ratio, row.strict_limit), (Some(Ppm(400_000)), None));
    let gaps: Vec<_> = look.gaps.iter().map(Gap::to_string).collect();
    let expect = [
        "/sys/class/bdi/NAME (max_bytes): not in this kernel (since 6.2)",
        "/sys/class/bdi/NAME (min_bytes): not in this kernel (since 6.2)",
        "/sys/class/bdi/NAME (strict_limit): not in this kernel (since 6.2)",
        "/sys/kernel/debug/bdi/NAME/wb_stats: not in this kernel (since 6.10)",
    ];
    assert_eq!(gaps, expect);
    for _ in 0..30 {
        assert_eq!(Look::of(&mut collector).gaps, []);
    }
}

#[test]
fn what_is_not_wanted_is_not_read() {
    let tree = HostTree::sized(5, 5);
    let root = HostRoot::at(tree.path()).unwrap();
    let plan = Plan::for_needs(&HostTree::facts(), Needs::HOST);
    let look = Look::of(&mut Collector::new(&root, plan));
    assert_eq!(look.labels(), [""; 0]);
    assert!(look.sample.host.nr_dirty.is_some());
    assert!(!look.sample.cgroups.was_read() && !look.sample.processes.was_read() && !look.sample.disks.was_read());
    assert!(look.gaps.iter().all(|gap| gap.cause == Cause::NotPlanned));
    assert!(look.gaps.iter().any(|gap| gap.source == Source::Processes));
}

#[test]
fn the_live_machine_is_sampled() {
    let root = HostRoot::live().unwrap();
    let mut collector = Collector::new(&root, Plan::everything(&HostFacts::default()));
    let look = Look::of(&mut collector);
    assert!(look.sample.host.nr_dirty.is_some() && look.sample.host.mem_total.is_some());
    let me = look.find(|entity| matches!(entity, Entity::Process { pid, .. } if *pid == std::process::id()));
    assert!(look.sample.processes.get(me).unwrap().rchar.is_some_and(|bytes| bytes.0 > 0));
    let second = Look::of(&mut collector);
    assert!(second.sample.time.monotonic > look.sample.time.monotonic);
    assert!(second.sample.processes.get(me).is_some());
}
