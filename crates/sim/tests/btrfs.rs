// SPDX-License-Identifier: MIT OR Apache-2.0
//! What btrfs writes: data in new places, the log of an fsync, and the commits of transactions.

mod machine;

use floodline_analysis::run::Run;
use machine::{figure, run_of, scenario};

/// Runs steps on a disk of 200 requests and 20 MB per second.
fn run(options: &str, steps: &str) -> Run {
    let text = format!(
        r#"
name = "trees"
summary = "one disk"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.disk]
size = "4 GiB"
write_bandwidth = "20 MB/s"
write_iops = "200 IO/s"
burst = "0s"
[machine.mounts."/data"]
type = "btrfs"
device = "disk"
options = [{options}]
[workload.tasks.w]
steps = [{steps}]
"#
    );
    run_of(&scenario(&text), "6.12", |_| true)
}

fn written_kib(run: &Run) -> f64 {
    figure(run, "devices.written_bytes") / 1024.0
}

/// Three nodes of the log tree, twice, and the superblock.
const LOG: f64 = 100.0;

/// Nodes of a commit, twice, and the two superblocks.
fn commit(nodes: u32) -> f64 {
    f64::from(nodes * 2 * 16 + 8)
}

#[test]
fn the_strict_limit_of_a_disk_holds_an_ext4_and_no_btrfs() {
    let paused = |filesystem: &str| {
        let text = format!(
            r#"
name = "stick"
summary = "a strict stick"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.stick]
size = "4 GiB"
write_bandwidth = "20 MB/s"
bdi = {{ strict_limit = true, max_ratio = 1 }}
[machine.mounts."/stick"]
type = "{filesystem}"
device = "stick"
[workload.tasks.w]
steps = [{{ write = {{ file = "/stick/a", block = "256 KiB", total = "30 MiB" }} }}]
"#
        );
        figure(&run_of(&scenario(&text), "7.2", |_| true), "w.throttled_seconds")
    };
    // A real 7.2 paused no writer of 52 MB to a btrfs on such a stick: a btrfs has a bdi of its own.
    assert!(paused("ext4") > 0.5);
    assert_eq!(paused("btrfs"), 0.0);
}

#[test]
fn an_fsync_writes_its_data_and_a_log() {
    let write = |file: &str| {
        format!(
            r#"{{ write = {{ file = "/data/{file}", block = "1 MiB", total = "2 MiB" }} }}, {{ fsync = {{ file = "/data/{file}" }} }}"#
        )
    };
    let run = run("", &format!("{}, {}", write("a"), write("b")));
    assert_eq!(written_kib(&run), 4096.0 + 2.0 * LOG);
}

#[test]
fn pages_that_are_scattered_in_a_file_lie_side_by_side_on_the_device() {
    let scattered = r#"{ write = { file = "/data/a", order = "random", size = "60 MiB", count = 500 } }"#;
    let whole =
        r#"{ write = { file = "/data/a", block = "1 MiB", total = "60 MiB" } }, { fsync = { file = "/data/a" } }"#;
    let fsync = r#"{ fsync = { file = "/data/a" } }"#;
    // On a real 6.12 such a call took 0.25 s, and 2.4 s on ext4, which writes each page to its place.
    let call = figure(&run("", &format!("{whole}, {scattered}, {fsync}")), "w.fsync.p50_seconds");
    assert!((0.1..0.3).contains(&call), "2 MB and a log: {call} s");
    // The flusher's requests are as large.
    let wait = r#"{ sleep = { for = "50s" } }"#;
    let flushed = run("", &format!("{whole}, {scattered}, {wait}"));
    let requests = figure(&flushed, "devices.writes_count");
    assert!(requests < 120.0, "{requests} requests");
    // The first write to blocks that fallocate gave goes to these blocks.
    let allocated = r#"{ fallocate = { file = "/data/a", size = "60 MiB" } }"#;
    let call = figure(&run("", &format!("{allocated}, {scattered}, {fsync}")), "w.fsync.p50_seconds");
    assert!(call > 2.3, "500 requests: {call} s");
}

#[test]
fn a_transaction_is_committed_by_a_sync_and_when_it_is_old() {
    let write = r#"{ write = { file = "/data/a", block = "1 MiB", total = "1 MiB" } }"#;
    let sync = r#"{ syncfs = { path = "/data" } }"#;
    // The second call finds nothing to commit.
    let synced = run("", &format!("{write}, {sync}, {sync}"));
    assert_eq!(written_kib(&synced), 1024.0 + commit(7));
    // Three waits for the device: nodes, superblocks, and flushes, whose time is next to none here.
    assert!(figure(&synced, "w.syncfs.max_seconds") > 0.06, "the data alone take 52 ms");
    let wait = |seconds: u32| {
        format!(r#"{write}, {{ fsync = {{ file = "/data/a" }} }}, {{ sleep = {{ for = "{seconds}s" }} }}"#)
    };
    assert_eq!(written_kib(&run("", &wait(27))), 1024.0 + LOG);
    assert_eq!(written_kib(&run("", &wait(70))), 1024.0 + LOG + commit(7));
    assert_eq!(written_kib(&run(r#""commit=5""#, &wait(12))), 1024.0 + LOG + commit(7));
}
