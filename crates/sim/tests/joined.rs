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
