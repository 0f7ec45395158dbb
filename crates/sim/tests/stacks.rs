// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacks and limits: loop devices, io.max, btrfs, schedulers, cgroups that are removed; and every kernel, tick rate
//! and hierarchy in a small scenario whose counters add up after every event.

mod machine;

use floodline_analysis::run::Run;
use floodline_record::id::Entity;
use floodline_scenario::{Scenario, ScenarioFile};
use floodline_sim::{SimError, simulate};
use machine::{figure, options, run_of, scenario};

/// A cgroup that writes to a filesystem on a loop device, and another program on the filesystem below it.
const LOOP: &str = r#"
name = "loop"
summary = "A filesystem in a file"
about = "x"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "4 GiB"
write_bandwidth = "50 MB/s"
read_bandwidth = "50 MB/s"
[machine.devices.image]
size = "1 GiB"
backing = { loop = { file = "/host/image" } }
[machine.mounts."/host"]
type = "xfs"
device = "disk"
[machine.mounts."/data"]
type = "ext4"
device = "image"
[machine.cgroups.box]
memory_max = "64 MiB"
[workload.tasks.writer]
cgroup = "box"
steps = [
  { write = { file = "/data/a", block = "1 MiB", total = "60 MiB" } },
  { fsync = { file = "/data/a" } },
  { read = { file = "/data/a", block = "1 MiB" } },
]
[workload.tasks.neighbour]
steps = [{ write = { file = "/host/b", block = "64 KiB", total = "4 MiB" } }, { fsync = { file = "/host/b" } }]
"#;

/// A cgroup with limits on a device.
const LIMITED: &str = r#"
name = "limited"
summary = "Limits of a cgroup on a device"
about = "x"
[machine]
memory = "1 GiB"
cpus = 2
sysctl.vm = { dirty_ratio = 60, dirty_background_ratio = 50 }
[machine.devices.disk]
size = "4 GiB"
write_bandwidth = "100 MB/s"
read_bandwidth = "100 MB/s"
[machine.mounts."/data"]
type = "xfs"
device = "disk"
[machine.cgroups.box]
io_max.disk = { write_bandwidth = "5 MB/s", read_iops = "20 IO/s" }
[workload.tasks.writer]
cgroup = "box"
steps = [{ write = { file = "/data/a", block = "1 MiB", total = "20 MiB" } }, { fsync = { file = "/data/a" } }]
[workload.tasks.reader]
cgroup = "box"
setup = [{ write = { file = "/data/b", block = "1 MiB", total = "4 MiB", direct = true } }]
steps = [{ read = { file = "/data/b", block = "4 KiB", order = "random", count = 100, direct = true } }]
[workload.tasks.free]
steps = [{ write = { file = "/data/c", block = "1 MiB", total = "20 MiB" } }, { fsync = { file = "/data/c" } }]
"#;

/// A cgroup that reads a file twice, and another of the same parent that meanwhile writes more than fits.
const PROTECTED: &str = r#"
name = "protected"
summary = "One keeps its page cache while the other fills the parent"
about = "x"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "4 GiB"
write_bandwidth = "100 MB/s"
read_bandwidth = "100 MB/s"
[machine.mounts."/data"]
type = "xfs"
device = "disk"
[machine.cgroups.pod]
memory_max = "64 MiB"
[machine.cgroups."pod/kept"]
memory_low = "0 B"
[machine.cgroups."pod/greedy"]
[workload.tasks.kept]
cgroup = "pod/kept"
setup = [{ write = { file = "/data/a", block = "1 MiB", total = "20 MiB" } }, { fsync = { file = "/data/a" } }, "drop_caches"]
steps = [
  { read = { file = "/data/a", block = "1 MiB", total = "20 MiB" } },
  { barrier = { name = "read" } },
  { wait_for = { task = "greedy" } },
  { read = { file = "/data/a", block = "1 MiB", total = "20 MiB" } },
]
[workload.tasks.greedy]
cgroup = "pod/greedy"
steps = [{ barrier = { name = "read" } }, { write = { file = "/data/b", block = "1 MiB", total = "200 MiB" } }]
"#;

/// A run that ends.
fn run(scenario: &Scenario, kernel: &str) -> Run {
    run_of(scenario, kernel, |_| true)
}

/// Bytes written to each device.
fn written(run: &Run) -> Vec<u64> {
    run.window.disks.values().map(|disk| disk.last.written.expect("known").0).collect()
}

#[test]
fn what_is_written_to_a_loop_device_is_written_again_below_it() {
    for kernel in ["5.10", "6.12"] {
        let buffered = run(&scenario(LOOP), kernel);
        let [disk, image] = written(&buffered)[..] else { panic!("two devices") };
        assert!(image >= 60 << 20, "{kernel}: {image}");
        assert!(disk >= image + (4 << 20) - (1 << 20), "{kernel}: {disk} below {image}");
        assert!(disk <= image + (8 << 20), "{kernel}: {disk} below {image}");
    }
}

#[test]
fn a_buffered_loop_device_makes_dirty_twice_and_a_direct_one_does_not() {
    let twice = figure(&run(&scenario(LOOP), "6.12"), "host.dirtied_bytes");
    let direct = LOOP.replace("/host/image\"", "/host/image\", direct_io = true");
    let once = figure(&run(&scenario(&direct), "6.12"), "host.dirtied_bytes");
    assert!(twice > 1.8 * once, "{twice} against {once}");
}

#[test]
fn requests_to_a_direct_loop_device_are_in_the_queue_of_the_disk_together() {
    let direct = LOOP.replace("/host/image\"", "/host/image\", direct_io = true");
    let run = run(&scenario(&direct), "6.12");
    let disk = &run.window.disks.values().next().expect("has a disk").last;
    let [time, weighted] = [disk.io_time, disk.weighted_io_time].map(|time| time.expect("known").0);
    assert!(weighted > 8 * time, "{weighted} ns in {time}");
}

#[test]
fn a_flush_of_a_loop_device_commits_the_time_of_its_file() {
    // A disk that takes 10 ms for each request and flush.
    let (machine, _) = LOOP.split_once("[machine.cgroups").expect("cgroups");
    let machine = machine.replace("\"xfs\"", "\"ext4\"").replace("\"4 GiB\"", "\"4 GiB\"\nlatency = \"10ms\"");
    let append =
        "{ write = { file = \"/data/a\", order = \"append\", count = 1 } }, { fdatasync = { file = \"/data/a\" } }";
    let tasks = format!(
        "[workload]\nduration = \"30s\"\n[workload.tasks.w]\n\
         steps = [{{ repeat = {{ every = \"3s\", steps = [{append}] }} }}]\n"
    );
    let check = |direct: bool, requests: f64| {
        let text = machine.replace("/host/image\"", &format!("/host/image\", direct_io = {direct}"));
        let usual = figure(&run(&scenario(&format!("{text}{tasks}")), "6.12"), "w.fdatasync.p50_seconds");
        assert!((requests * 0.01..requests * 0.01 + 0.005).contains(&usual), "direct: {direct}, {usual}");
    };
    // The page, the log and the record of the filesystem in the image. It flushes the image twice, and each time the filesystem
    // below writes log and record and flushes the disk twice.
    check(true, 11.0);
    // The page and the log are in the page cache until the first flush, the record until the second.
    check(false, 10.0);
}

#[test]
fn a_program_that_waits_for_a_loop_device_waits_for_the_disk() {
    // The disk takes 50 MB/s, at any speed of the loop device.
    let run = run(&scenario(LOOP), "6.12");
    assert!(figure(&run, "writer.finished_seconds") > 60.0 * 1.048 / 50.0 * 0.9);
}

#[test]
fn writeback_of_a_cgroup_goes_as_its_limit_lets_it() {
    let run = run(&scenario(LIMITED), "6.12");
    let check = |name: &str, least: f64, most: f64| {
        let value = figure(&run, name);
        assert!((least..most).contains(&value), "{name}: {value}");
    };
    // 20 MiB at 5 MB/s, and 100 requests at 20 a second.
    check("writer.finished_seconds", 3.9, 4.6);
    check("reader.finished_seconds", 4.7, 5.3);
    check("free.finished_seconds", 0.1, 1.0);
}

#[test]
fn a_write_that_is_synced_takes_two_requests_of_a_limit() {
    let (machine, _) = LIMITED.split_once("[workload").expect("it has tasks");
    let machine = machine.replace(r#"write_bandwidth = "5 MB/s", read_iops = "20 IO/s""#, r#"write_iops = "20 IO/s""#);
    let synced = machine
        + r#"
[workload.tasks.queue]
cgroup = "box"
setup = [{ write = { file = "/data/a", block = "1 MiB", total = "1 MiB" } }, { fsync = { file = "/data/a" } }]
steps = [{ write = { file = "/data/a", block = "4 KiB", count = 40, dsync = true } }]
"#;
    // The data, and then a flush of the disk's cache.
    let seconds = figure(&run(&scenario(&synced), "6.12"), "queue.finished_seconds");
    assert!((3.5..4.5).contains(&seconds), "{seconds}");
}

/// A file that is written and synced, and a program that commits each tenth of a second.
const COMMITS: &str = r#"
name = "commits"
summary = "A file is written and synced, and a program commits to the same disk"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "4 GiB"
latency = "5ms"
[machine.mounts."/data"]
type = "xfs"
device = "disk"
[workload.tasks.stream]
steps = [{ write = { file = "/data/a", block = "1 MiB", total = "1 MiB" } }, { fsync = { file = "/data/a" } }]
[workload.tasks.queue]
steps = [{ repeat = { every = "100ms", times = 10, steps = [
  { write = { file = "/data/b", order = "append", count = 1 } }, { fdatasync = { file = "/data/b" } },
] } }]
"#;

#[test]
fn a_disk_that_writes_through_gets_no_flush() {
    let flushes = |text: &str| {
        let run = run(&scenario(text), "6.12");
        let of_disk = run.window.disks.values().next().expect("a disk");
        let (first, last) = (of_disk.first.flushes.expect("known"), of_disk.last.flushes.expect("known"));
        let facts = run.window.facts.as_ref().expect("known");
        (last.0 - first.0, facts.devices[0].write_back_cache, figure(&run, "queue.fdatasync.p50_seconds"))
    };
    let (back, is_back, slow) = flushes(COMMITS);
    let through = COMMITS.replace("latency =", "queue = { write_cache = \"write through\" }\nlatency =");
    let (none, is_through, fast) = flushes(&through);
    assert_eq!((is_back, none, is_through), (Some(true), 0, Some(false)));
    assert!(back >= 10 && fast < slow * 0.75, "{back} flushes, {slow} and {fast} s");
}

#[test]
fn an_fsync_of_btrfs_writes_nodes_of_its_log_tree_twice_and_the_superblock() {
    let synced = |mkfs: &str| {
        let text = COMMITS.replace("type = \"xfs\"", &format!("type = \"btrfs\"{mkfs}"));
        let run = run(&scenario(&text), "7.2");
        [
            figure(&run, "devices.written_bytes"),
            figure(&run, "host.dirtied_bytes"),
            figure(&run, "queue.dirtied_bytes_per_second"),
        ]
    };
    let [written, dirtied, per_second] = synced("");
    // Eleven fsyncs of 4 KiB or 1 MiB; two that meet share a log.
    let logs = |written: f64, log: f64| (written - f64::from((1 << 20) + 10 * 4096)) / log;
    assert!((9.5..11.1).contains(&logs(written, f64::from(100 << 10))), "{written}");
    assert!(
        (9.5..11.1).contains(&logs(dirtied, f64::from(48 << 10))) && per_second > 400_000.0,
        "{dirtied}, {per_second}"
    );
    let [written, ..] = synced("\nmkfs = { metadata = \"single\" }");
    assert!((9.5..11.1).contains(&logs(written, f64::from(52 << 10))), "{written}");
}

#[test]
fn pages_of_a_tmpfs_stay_and_are_no_memory_to_be_made_dirty() {
    let fills = r#"
name = "fills"
summary = "A tmpfs takes half of the memory, and then a file more than the other"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "4 GiB"
write_bandwidth = "400 MB/s"
[machine.mounts."/mem"]
type = "tmpfs"
[machine.mounts."/data"]
type = "xfs"
device = "disk"
[workload.tasks.filler]
steps = [
  { sleep = { for = "1s" } },
  { write = { file = "/mem/a", block = "1 MiB", total = "400 MiB" } },
  { write = { file = "/data/a", block = "1 MiB", total = "1 GiB" } },
  { fsync = { file = "/data/a" } },
  "drop_caches",
  { sleep = { for = "2s" } },
]
"#;
    let host = run(&scenario(fills), "6.12").window.host;
    assert_eq!(host.last.nr_shmem.expect("known").0, 400 << 8);
    let [before, after] = [&host.first, &host.last].map(|row| row.nr_dirty_threshold.expect("known").0);
    assert!(after * 10 < before * 7, "{before} pages might be dirty, now {after}");
}

#[test]
fn over_memory_high_nobody_is_refused_memory_but_made_to_wait() {
    let holder = |steps: &str| {
        format!(
            r#"
name = "high"
summary = "A program that holds more memory than memory.high"
[machine]
memory = "1 GiB"
cpus = 2
[machine.mounts."/mem"]
type = "tmpfs"
[machine.cgroups.box]
memory_high = "64 MiB"
[workload.tasks.holder]
cgroup = "box"
steps = [{steps}]
"#
        )
    };
    let took = |steps: &str, kernel| figure(&run(&scenario(&holder(steps)), kernel), "holder.finished_seconds");
    let check = |steps: &str, kernel, from: f64, to: f64| {
        let took = took(steps, kernel);
        assert!((from..to).contains(&took), "{steps} on {kernel}: {took} s");
    };
    let little = r#"{ anon = { size = "66 MiB" } }"#;
    // 8 batches of 256 KiB. The further the cgroup is over, the longer each waits: up to 62 ms.
    check(little, "6.12", 0.1, 0.3);
    check(little, "5.10", 0.2, 0.6);
    check(little, "5.3", 0.0, 0.05);
    check(r#"{ anon = { size = "80 MiB" } }"#, "6.12", 60.0, 130.0);
    // The same number of batches, page by page.
    let written =
        r#"{ anon = { size = "64 MiB" } }, { write = { file = "/mem/a", block = "4 KiB", total = "2 MiB" } }"#;
    check(written, "6.12", 0.1, 0.3);
}

#[test]
fn who_writes_here_and_there_on_a_disk_that_turns_waits_for_its_arm() {
    let database = r#"
name = "arm"
summary = "A database on a disk that turns, and a stream"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "10 GiB"
profile = "hdd-7200"
[machine.mounts."/data"]
type = "xfs"
device = "disk"
[workload.tasks.database]
setup = [{ write = { file = "/data/a", block = "1 MiB", total = "64 MiB" } }, "sync"]
steps = [{ write = { file = "/data/a", block = "16 KiB", order = "random", size = "64 MiB", rate = "10/s", count = 50,
  sync = { call = "fdatasync", after = 1 } } }]
[workload.tasks.stream]
start = "10s"
steps = [{ write = { file = "/data/b", block = "1 MiB", total = "180 MB" } }, { fsync = { file = "/data/b" } }]
"#;
    let disk = run(&scenario(database), "6.12");
    let synced = figure(&disk, "database.fdatasync.p50_seconds");
    assert!((0.012..0.03).contains(&synced), "{synced}");
    // A stream is as fast as the disk.
    let streamed = figure(&disk, "stream.fsync.max_seconds");
    assert!((0.8..1.3).contains(&streamed), "{streamed}");
    let ssd = run(&scenario(&database.replace("hdd-7200", "sata-ssd")), "6.12");
    assert!(figure(&ssd, "database.fdatasync.p50_seconds") < 0.002);
}

/// ext4 reserves journal credits for the conversion of written blocks: behind a slow cgroup few are left for the
/// others.
#[test]
fn ext4_has_only_so_many_unwritten_extents_under_way() {
    let small_files = r#"
name = "small"
summary = "A slow cgroup that writes many small files"
[machine]
memory = "1 GiB"
cpus = 2
sysctl.vm = { dirty_writeback_centisecs = 50, dirty_expire_centisecs = 50 }
[machine.devices.disk]
size = "1 GiB"
[machine.mounts."/data"]
type = "ext4"
device = "disk"
[machine.cgroups.box]
io_max.disk = { write_bandwidth = "1 MB/s" }
[workload]
duration = "6s"
[workload.tasks.writer]
cgroup = "box"
steps = [{ create_files = { file = "/data/{n}", files = 200, size = "64 KiB" } }]
[workload.tasks.idler]
steps = [{ sleep = { for = "6s" } }]
"#;
    let under_way = |kernel| figure(&run(&scenario(small_files), kernel), "host.writeback_peak_bytes") / 65_536.0;
    // Half of a transaction, of 8192 / 3 blocks less 12 and of 8192 / 4, by 26.
    assert_eq!((under_way("6.12"), under_way("6.1")), (52.0, 39.0));
    assert!(under_way("5.4") > 150.0, "no extent is unwritten on 5.4: {}", under_way("5.4"));
}

#[test]
fn on_version_1_the_flusher_escapes_a_limit_and_calls_of_a_task_do_not() {
    let text = LIMITED.replace("cpus = 2", "cpus = 2\ncgroup_mode = \"v1\"");
    let flushed = run(&scenario(&text.replace("{ fsync = { file = \"/data/a\" } }", "\"sync\"")), "5.10");
    assert!(figure(&flushed, "writer.finished_seconds") < 1.0);
    assert!(figure(&flushed, "reader.finished_seconds") > 4.7);
    // The task itself submits what it syncs: on a real 6.1, an fsync of 100 MB took 25 s at 4 MB/s.
    let synced = figure(&run(&scenario(&text), "5.10"), "writer.finished_seconds");
    assert!((4.0..4.5).contains(&synced), "{synced} s for 20 MiB at 5 MB/s");
}

#[test]
fn a_limit_may_change_while_the_machine_runs() {
    let text = LIMITED.replace(
        "[workload.tasks.free]\nsteps = [",
        "[workload.tasks.free]\nsteps = [{ set_limits = { cgroup = \"box\", limits = { io_max.disk = { write_bandwidth = \"50 MB/s\" } } } }, ",
    );
    let seconds = figure(&run(&scenario(&text), "6.12"), "writer.finished_seconds");
    assert!(seconds < 1.0, "{seconds}");
}

#[test]
fn a_cgroup_is_removed_after_its_last_task() {
    let text = LIMITED.replace("io_max.disk =", "remove_after = \"1s\"\nio_max.disk =");
    let text = text.replace(
        "[workload.tasks.free]\nsteps = [",
        "[workload.tasks.free]\nsteps = [{ wait_for = { task = \"writer\" } }, { wait_for = { task = \"reader\" } }, { sleep = { for = \"3s\" } }, ",
    );
    let run = run(&scenario(&text), "6.12");
    let boxes: Vec<_> = run.window.cgroups.values().map(|cgroup| cgroup.last_at).collect();
    let last = run.window.last_at.expect("samples").monotonic;
    assert!(boxes.iter().any(|at| at.0 + 1_500_000_000 < last.0), "{boxes:?} of {last:?}");
}

#[test]
fn what_is_honoured_in_part_is_said() {
    let said = |text: &str| floodline_sim::simplified(&scenario(text));
    for key in ["latency = \"1ms\"", "write_iops = \"30 IO/s\"", "bandwidth = \"10 MB/s\""] {
        let limited = LOOP.replace("[machine.devices.image]", &format!("[machine.devices.image]\n{key}"));
        let expect = "The limits and the latency of image have no effect. Those of the disks below it apply.";
        assert_eq!(said(&limited), [expect], "{key}");
    }
    assert_eq!(said(LOOP), [""; 0]);
    assert_eq!(said(LIMITED), [""; 0]);
    let text = LIMITED
        .replace("\"xfs\"", "\"btrfs\"")
        .replace("size = \"4 GiB\"", "size = \"4 GiB\"\nqueue.scheduler = \"mq-deadline\"")
        .replace("io_max.disk =", "io_weight = 50\nmemory_low = \"1 MiB\"\nio_max.disk =");
    let said = said(&text);
    let check = |part: &str| assert!(said.iter().any(|line| line.contains(part)), "{part}: {said:?}");
    check(
        "The model does not sort the requests of disk as mq-deadline does. On a SATA or rotating disk, simulated reads ",
    );
    check("The btrfs on /data is simulated in outline.");
    check("The model ignores io.weight.");
    check("memory.low protects pages as on a kernel without the multi-generational LRU (lru_gen/enabled is 0).");
    assert!(!said.concat().contains("writeback throttling"), "{said:?}");
    let of_host = |beside| floodline_sim::simplified_beside(&scenario(LIMITED), beside).concat();
    let beside = floodline_sim::Beside { has_weights: true, lru_gen: Some(true) };
    assert!(
        of_host(beside).contains("The model ignores io.weight.")
            && of_host(beside).contains("which this host uses (lru_gen).")
    );
    assert_eq!(of_host(floodline_sim::Beside { has_weights: false, lru_gen: Some(false) }), "");
    let bfq = LIMITED.replace("size = \"4 GiB\"", "size = \"4 GiB\"\nqueue.scheduler = \"bfq\"");
    let of_bfq = floodline_sim::simplified(&scenario(&bfq)).concat();
    assert!(of_bfq.contains("The model switches writeback throttling off, as bfq does, and"), "{of_bfq}");
    let anonymous = LIMITED.replace(
        "[workload.tasks.free]\nsteps = [",
        "[workload.tasks.free]\nsteps = [{ anon = { size = \"1 MiB\" } }, ",
    );
    let said = floodline_sim::simplified(&scenario(&anonymous));
    assert!(said.len() == 1 && said[0].starts_with("Swap is not simulated."), "{said:?}");
}

#[test]
fn a_longer_commit_interval_commits_less() {
    let commits = |options: &str| {
        let (machine, _) = SMALL.split_once("[machine.cgroups").expect("cgroups");
        let machine = machine.replace("type = \"ext4\"", &format!("type = \"ext4\"\noptions = {options}"));
        let files = "steps = [{ create_files = { file = \"/var/{n}\", rate = \"5/s\" } }]";
        let text = format!("{machine}\n[workload]\nduration = \"8s\"\n[workload.tasks.files]\n{files}\n");
        written(&run(&scenario(&text), "6.12"))[1]
    };
    let (often, seldom) = (commits("[\"commit=1\"]"), commits("[\"commit=100\"]"));
    assert!(often > seldom + 10 * 4096, "{often} against {seldom}");
    assert_eq!(commits("[\"commit=5\"]"), commits("[\"noexec\"]"));
    let refused = SMALL.replace("type = \"ext4\"", "type = \"ext4\"\noptions = [\"nodelalloc\"]");
    assert!(refusal(&refused).contains("nodelalloc"));
}

/// A bit of everything that a kernel does.
const SMALL: &str = r#"
name = "small"
summary = "A bit of everything"
about = "x"
[machine]
memory = "512 MiB"
cpus = 2
sysctl.vm = { dirty_bytes = "16 MiB", dirty_background_bytes = "4 MiB", dirty_expire_centisecs = 200 }
[machine.devices.disk]
size = "1 GiB"
write_bandwidth = "40 MB/s"
read_bandwidth = "40 MB/s"
[machine.devices.other]
size = "1 GiB"
write_iops = "100 IO/s"
read_iops = "100 IO/s"
rotational = true
[machine.mounts."/data"]
type = "xfs"
device = "disk"
[machine.mounts."/var"]
type = "ext4"
device = "other"
[machine.mounts."/merged"]
type = "overlay"
overlay = { lower = "/data/lower", upper = "/data/upper", work = "/data/work" }
[machine.cgroups."box{i}"]
instances = 2
memory_max = "48 MiB"
[workload]
duration = "4s"
[workload.tasks.writer]
cgroup = "box{i}"
steps = [{ write = { file = "/data/w{i}", block = "64 KiB", rate = "20 MB/s" } }]
[workload.tasks.mapped]
cgroup = "box{i}"
steps = [{ mmap_store = { file = "/var/m{i}", size = "4 MiB", pages = 8, rate = "20/s" } }]
[workload.tasks.mail]
preset.mail = { dir = "/var/mail", messages = "10/s" }
[workload.tasks.teardown]
steps = [
  { write = { file = "/merged/data", block = "1 MiB", total = "4 MiB" } },
  { close = { file = "/merged/data" } },
  { umount = { point = "/merged", count = 1 } },
  "sync",
]
"#;

#[test]
fn every_kernel_tick_rate_and_hierarchy_adds_up_after_every_event() {
    let mut scenario = scenario(SMALL);
    for kernel in ["4.4", "4.14.59", "4.14.60", "5.4", "5.10", "5.15", "6.1", "6.6", "6.12", "6.18", "7.2"] {
        for hz in [100, 250, 300, 1000] {
            for mode in [floodline_scenario::CgroupMode::V2, floodline_scenario::CgroupMode::V1] {
                scenario.machine.hz = Some(hz);
                scenario.machine.cgroup_mode = mode;
                let run = run(&scenario, kernel);
                let written = figure(&run, "devices.written_bytes");
                assert!(written > 1e7, "{kernel} at {hz} Hz, {mode:?}: {written}");
                assert!(figure(&run, "mail.fsync.count") >= 1.0, "{kernel} at {hz} Hz, {mode:?}");
            }
        }
    }
}

fn refusal(text: &str) -> String {
    match simulate(&scenario(text), &options("6.12"), |_| Ok(()), |_| true) {
        Err(error @ (SimError::Senseless(_) | SimError::NotHonoured(_))) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_on_its_own_device_is_refused() {
    let text = LOOP.replace("/host/image", "/data/image");
    match ScenarioFile::parse(&text) {
        Ok(_) => assert!(refusal(&text).contains("the file is on the device itself")),
        Err(error) => assert!(error.to_string().contains("/data/image"), "{error}"),
    }
}

#[test]
fn protected_memory_is_left_alone_as_long_as_there_is_other() {
    let read = |key: &str, value: &str| {
        let text = PROTECTED.replace("memory_low = \"0 B\"", &format!("{key} = \"{value}\""));
        // Counts of 6.12 may be two seconds old: the greedy cgroup has only dirty pages before any of its tasks is
        // throttled. Reclaim finds no other pages and takes those under `memory.low`.
        let run = run(&scenario(&text), "6.1");
        run.window.disks.values().map(|disk| disk.last.read.expect("known").0).sum::<u64>() >> 20
    };
    assert!(read("memory_low", "0 B") >= 39, "the file is read twice: {} MiB", read("memory_low", "0 B"));
    for key in ["memory_low", "memory_min"] {
        assert!(read(key, "24 MiB") <= 21, "{key}: the file is read once: {} MiB", read(key, "24 MiB"));
    }
    // Half of it is kept. Reading the file again in order would evict the pages that are read next.
    let again = r#"{ read = { file = "/data/a", block = "1 MiB", total = "20 MiB" } },
]"#;
    let text = PROTECTED.replace("memory_low = \"0 B\"", "memory_low = \"10 MiB\"").replace(again, "]");
    let window = run(&scenario(&text), "6.1").window;
    let is_kept =
        |id| matches!(window.entities.get(id), Some(Entity::Cgroup { path, .. }) if path.as_bytes() == b"/pod/kept");
    let kept = window.cgroups.iter().find(|(id, _)| is_kept(*id)).expect("it is there").1.last.file.expect("known");
    assert!((8..=13).contains(&(kept.0 >> 20)), "{} MiB", kept.0 >> 20);
}
