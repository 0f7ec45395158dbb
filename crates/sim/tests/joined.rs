// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of files that lie side by side, and requests for the log of XFS: which cgroup pays for them, and what they wait for.

mod machine;

use floodline_analysis::run::Run;
use machine::{figure, run_of, scenario};

fn run_on(kernel: &str, fs: &str, machine: &str, workload: &str) -> Run {
    let text = format!(
        r#"
name = "joined"
summary = "small files, and appends that are synced"
[machine]
memory = "4 GiB"
cpus = 2
[machine.devices.disk]
size = "8 GiB"
write_bandwidth = "100 MB/s"
[machine.mounts."/data"]
type = "{fs}"
device = "disk"
{machine}
[workload]
duration = "20s"
{workload}
"#
    );
    run_of(&scenario(&text), kernel, |_| true)
}

/// Number of writes of a disk for 400 files of 200 kB, which `makers` programs create side by side, each in a directory of its
/// own.
fn writes(kernel: &str, fs: &str, makers: u32) -> f64 {
    let files = 400 / makers;
    let workload = format!(
        "[workload.tasks.maker]\ninstances = {makers}\nsteps = [{{ create_files = {{ file = \"/data/d{{j}}/{{n}}\", \
         files = {files}, size = \"200 kB\", rate = \"100/s\" }} }}, \"exit\"]\n\
         [workload.tasks.timer]\nstart = \"10s\"\nsteps = [{{ syncfs = {{ path = \"/data\" }} }}, \"exit\"]\n"
    );
    figure(&run_on(kernel, fs, "", &workload), "devices.writes_count")
}

#[test]
fn files_that_lie_side_by_side_go_to_the_disk_together() {
    // 49 pages each: 20 of them fit into 4 MiB, six into 1280 KiB.
    for (kernel, fs, requests) in
        [("7.2", "xfs", 20.0), ("6.12", "xfs", 67.0), ("6.12", "ext4", 67.0), ("5.10", "ext4", 67.0)]
    {
        let writes = writes(kernel, fs, 1);
        assert!((requests..requests + 20.0).contains(&writes), "{kernel} {fs}: {writes}");
    }
}

#[test]
fn files_of_two_allocation_groups_stay_apart() {
    let writes = writes("7.2", "xfs", 2);
    assert!(writes > 390.0, "{writes}");
}

/// Commits per second of a program that may make 20 requests a second.
fn commits(kernel: &str, fs: &str) -> f64 {
    let limits = "[machine.cgroups.db]\nio_max.disk = { write_iops = \"20 IO/s\" }\n";
    let workload = "[workload.tasks.db]\ncgroup = \"db\"\nsteps = [{ repeat = { every = \"10ms\", steps = [\
                    { write = { file = \"/data/wal\", order = \"append\", count = 1 } }, { fdatasync = { file = \"/data/wal\" } }] } }]\n";
    figure(&run_on(kernel, fs, limits, workload), "db.fdatasync.per_second")
}

#[test]
fn the_task_that_forces_the_log_of_xfs_pays_for_it() {
    for kernel in ["6.1", "6.12"] {
        let (xfs, ext4) = (commits(kernel, "xfs"), commits(kernel, "ext4"));
        assert!((9.0..10.6).contains(&xfs), "data and log on {kernel}: {xfs}");
        assert!((18.0..20.6).contains(&ext4), "a thread writes the log of ext4 on {kernel}: {ext4}");
    }
}

#[test]
fn the_log_of_xfs_passes_limits_since_6_12() {
    let longest = |kernel: &str| {
        let limits = "[machine.cgroups.agent]\nio_max.disk = { write_bandwidth = \"4 MB/s\" }\n";
        let workload = "[workload.tasks.agent]\ncgroup = \"agent\"\nsteps = [{ write = { file = \"/data/volume\", size = \"800 MB\", \
                        block = \"1 MiB\", dsync = true, depth = 8 } }]\n[workload.tasks.shard]\nsteps = [{ repeat = { every = \
                        \"300ms\", steps = [{ write = { file = \"/data/shard\", order = \"append\", count = 1 } }, \
                        { fdatasync = { file = \"/data/shard\" } }] } }]\n";
        figure(&run_on(kernel, "xfs", limits, workload), "shard.fdatasync.max_seconds")
    };
    let (before, after) = (longest("6.1"), longest("6.12"));
    assert!(before > 1.0 && after < 0.2, "{before} {after}");
}

/// Number of writes of a disk for the fsync of a file of 1 MB that one write made.
fn writes_of_a_mebibyte(kernel: &str) -> f64 {
    let workload = "[workload.tasks.saver]\nsteps = [{ write = { file = \"/data/save\", block = \"1 MB\", count = 1 } }, \
                    { fsync = { file = \"/data/save\" } }, \"exit\"]\n";
    figure(&run_on(kernel, "xfs", "", workload), "devices.writes_count")
}

#[test]
fn folios_of_several_sizes_are_one_request() {
    // The data, and a write of the log.
    assert_eq!(["6.1", "6.12", "7.2"].map(writes_of_a_mebibyte), [2.0; 3]);
}

/// Seconds that an fsync takes on a disk that needs 10 ms for each request, after `files` new files. The group's metadata was read
/// before.
fn fsync_after(kernel: &str, files: u32) -> f64 {
    let machine = "[machine.devices.slow]\nsize = \"8 GiB\"\nlatency = \"10ms\"\n[machine.mounts.\"/slow\"]\ntype = \"xfs\"\n\
                   device = \"slow\"\n";
    let workload = format!(
        "[workload.tasks.saver]\nsetup = [{{ write = {{ file = \"/slow/b\", count = 1 }} }}, {{ fsync = {{ file = \"/slow/b\" }} }}]\n\
         steps = [{{ create_files = {{ file = \"/slow/{{n}}\", files = {files}, size = \"4 KiB\" }} }}, \
         {{ write = {{ file = \"/slow/a\", count = 1 }} }}, {{ fsync = {{ file = \"/slow/a\" }} }}, \"exit\"]\n"
    );
    figure(&run_on(kernel, "xfs", machine, &workload), "saver.fsync.max_seconds")
}

#[test]
fn the_commit_record_of_a_large_checkpoint_is_written_last_since_5_14() {
    // Data, a flush, the log, a flush; and the record and a flush if 1,000 files have not fitted into a buffer of 32 KiB.
    let check = |kernel, files, requests: f64| {
        let seconds = fsync_after(kernel, files);
        assert!((requests * 0.01..requests * 0.01 + 0.005).contains(&seconds), "{kernel}, {files} files: {seconds}");
    };
    check("5.10", 1, 4.0);
    check("5.10", 1000, 4.0);
    check("6.1", 1, 4.0);
    check("6.1", 1000, 6.0);
}
