// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata that a new filesystem reads when it is first used, against the requests that were traced in guests: which
//! task reads how much, and what a filesystem in use reads.

mod machine;

use floodline_analysis::run::Run;
use machine::{figure, run_of, scenario};

/// Bytes of a sector.
const SECTOR: f64 = 512.0;

fn run(fs_type: &str, mount: &str, tasks: &str) -> Run {
    let text = format!(
        r#"
name = "first-use"
summary = "a new filesystem"
[machine]
memory = "1 GiB"
cpus = 4
[machine.devices.data]
size = "8 GiB"
[machine.mounts."/data"]
type = "{fs_type}"
device = "data"
{mount}
[workload]
duration = "10s"
{tasks}
"#
    );
    run_of(&scenario(&text), "6.12", |_| true)
}

fn task(name: &str, more: &str, steps: &str) -> String {
    format!("[workload.tasks.{name}]\nstart = \"2s\"\n{more}\nsteps = [{steps}]\n")
}

fn write(file: &str, more: &str) -> String {
    format!("{{ write = {{ file = \"/data/{file}\", block = \"4 KiB\", total = \"64 KiB\"{more} }} }}")
}

/// Sectors that the disk read.
fn of_disk(run: &Run) -> f64 {
    figure(run, "devices.read_bytes") / SECTOR
}

/// Sectors that a task read, from its mean rate.
fn of_task(run: &Run, task: &str) -> f64 {
    let seconds = figure(run, &format!("{task}.finished_seconds")) - 2.0;
    (figure(run, &format!("{task}.read_bytes_per_second")) * seconds / SECTOR).round()
}

const SLEEP: &str = "{ sleep = { for = \"5s\" } }";

#[test]
fn the_thread_that_allocates_reads_the_free_space() {
    let check = |steps: &[&str], disk: f64, own: f64| {
        let run = run("xfs", "", &task("one", "", &steps.join(", ")));
        assert_eq!((of_disk(&run), of_task(&run, "one")), (disk, own), "{steps:?}");
    };
    let buffered = write("a", "");
    // The flusher writes the first data of a volume without a history after 5 s.
    check(&[&buffered, SLEEP], 65.0, 48.0);
    check(&[&buffered, "{ fsync = { file = \"/data/a\" } }", SLEEP], 65.0, 65.0);
    check(&[&write("a", ", direct = true"), SLEEP], 65.0, 65.0);
    check(&["{ fallocate = { file = \"/data/a\", size = \"1 MiB\" } }", SLEEP], 65.0, 65.0);
    // syncfs leaves the allocation to the flusher.
    check(&[&buffered, "{ syncfs = { path = \"/data\" } }", SLEEP], 65.0, 48.0);
}

#[test]
fn each_group_is_read_once_and_a_filesystem_in_use_is_not() {
    let files = |count: u64| {
        let create = "{ create_files = { file = \"/data/d{n}/f\", files = COUNT, size = \"4 KiB\" } }";
        format!("{}, {{ syncfs = {{ path = \"/data\" }} }}, {SLEEP}", create.replace("COUNT", &count.to_string()))
    };
    let read = |fs_type, mount, count| of_disk(&run(fs_type, mount, &task("one", "", &files(count))));
    let of_xfs: Vec<f64> = [1, 2, 4, 8].map(|count| read("xfs", "", count)).to_vec();
    assert_eq!(of_xfs, [65.0, 98.0, 164.0, 164.0]);
    assert_eq!(read("xfs", "mkfs.groups = 2", 8), 98.0);
    assert_eq!(read("xfs", "in_use = true", 8), 0.0);
    assert_eq!((read("ext4", "", 8), read("ext4", "in_use = true", 8)), (16.0, 0.0));
}

#[test]
fn an_allocation_passes_over_a_group_that_another_thread_reads() {
    let sync = |file: &str| format!("{}, {{ fsync = {{ file = \"/data/{file}\" }} }}, {SLEEP}", write(file, ""));
    // Recorded on 5.10 with tasks that write and sync at once: 99 sectors, for three groups.
    let three = run("xfs", "", &task("many", "instances = 3", &sync("{j}")));
    assert_eq!(of_disk(&three), 99.0);
}
