// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that an overlay has from its lower directory.

mod machine;

use floodline_analysis::run::Run;
use machine::{figure, run_of, scenario};

const MIB: f64 = (1 << 20) as f64;

/// Runs steps after a file of 50 MiB was written to the lower directory and is in no cache.
fn run(options: &str, steps: &str) -> Run {
    run_on(r#"type = "ext4""#, "6.12", options, steps)
}

/// Runs steps on an overlay over another filesystem.
fn run_on(filesystem: &str, kernel: &str, options: &str, steps: &str) -> Run {
    let text = format!(
        r#"
name = "overlay"
summary = "a disk of 50 MB/s"
[machine]
memory = "4 GiB"
cpus = 2
[machine.devices.disk]
size = "20 GiB"
write_bandwidth = "50 MB/s"
read_bandwidth = "50 MB/s"
burst = "0s"
[machine.mounts."/data"]
{filesystem}
device = "disk"
[machine.mounts."/m"]
type = "overlay"
options = [{options}]
overlay = {{ lower = "/data/l", upper = "/data/u", work = "/data/w" }}
[workload.tasks.w]
setup = [{{ write = {{ file = "/data/l/d/x", block = "1 MiB", total = "50 MiB" }} }}, "sync", {{ close = {{ file = "/data/l/d/x" }} }}, "drop_caches"]
steps = [{{ sleep = {{ for = "2s" }} }}, {steps}]
"#
    );
    run_of(&scenario(&text), kernel, |_| true)
}

#[test]
fn a_file_of_the_lower_directory_is_read_in_place() {
    let run = run("", r#"{ read = { file = "/m/d/x", block = "1 MiB" } }"#);
    assert_eq!(figure(&run, "w.failures_count"), 0.0);
    let read = figure(&run, "devices.read_bytes") / MIB;
    assert!((50.0..50.1).contains(&read), "{read} MiB");
    assert!(figure(&run, "devices.written_bytes") < 0.1 * MIB, "nothing is copied");
}

#[test]
fn the_first_write_copies_the_file_up() {
    let write = r#"{ write = { file = "/m/d/x", block = "4 KiB", count = 1, size = "50 MiB" } }"#;
    let synced = run("", write);
    let mebibytes = |run: &Run, name: &str| figure(run, name) / MIB;
    let read = mebibytes(&synced, "devices.read_bytes");
    assert!((50.0..50.1).contains(&read), "{read} MiB");
    assert!((50.0..51.0).contains(&mebibytes(&synced, "devices.written_bytes")));
    // The copy is read and is on the device before the write returns.
    assert!(figure(&synced, "w.finished_seconds") > 4.0);
    let volatile = run(r#""volatile""#, write);
    assert!(figure(&volatile, "w.finished_seconds") < 3.5, "no sync");
    // It is copied once, and its copy is read, except the page that is dirty.
    let close = r#"{ close = { file = "/m/d/x" } }"#;
    let twice = run(
        "",
        &format!(r#"{write}, {close}, "drop_caches", {{ read = {{ file = "/m/d/x", block = "1 MiB" }} }}, {write}"#),
    );
    let read = mebibytes(&twice, "devices.read_bytes");
    assert!((99.9..100.1).contains(&read), "{read} MiB");
    assert!((50.0..51.0).contains(&mebibytes(&twice, "devices.written_bytes")));
}

#[test]
fn a_removed_file_of_the_lower_directory_is_gone() {
    for first in
        ["", r#"{ write = { file = "/m/d/x", block = "4 KiB", count = 1 } }, { close = { file = "/m/d/x" } }, "#]
    {
        let steps = format!(
            r#"{first}{{ unlink = {{ file = "/m/d/x" }} }}, {{ write = {{ file = "/m/d/x", block = "1 MiB", total = "2 MiB" }} }}, {{ close = {{ file = "/m/d/x" }} }},
                {{ note = {{ text = "written" }} }}, {{ read = {{ file = "/m/d/x", block = "1 MiB" }} }}"#
        );
        let run = run("", &steps);
        assert_eq!((figure(&run, "w.failures_count"), figure(&run, "w.read.count")), (0.0, 2.0), "{first}");
    }
}

#[test]
fn a_renamed_file_of_the_lower_directory_moves_up() {
    let steps = r#"{ rename = { from = "/m/d/x", to = "/m/y" } }, { read = { file = "/m/y", block = "1 MiB" } },
        { write = { file = "/m/d/x", block = "1 MiB", total = "1 MiB" } }"#;
    let run = run("", steps);
    assert_eq!((figure(&run, "w.failures_count"), figure(&run, "w.read.count")), (0.0, 50.0));
    assert!((50.0..51.1).contains(&(figure(&run, "devices.written_bytes") / MIB)));
}

#[test]
fn where_files_can_share_blocks_the_copy_does() {
    let xfs = r#"type = "xfs""#;
    let without = "type = \"xfs\"\nmkfs.features.reflink = false";
    // A page in the middle of the file is changed. The rest of it is read from the copy, which is in no cache.
    let write = r#"{ write = { file = "/m/d/x", block = "4 KiB", count = 1, size = "50 MiB" } }, { fsync = { file = "/m/d/x" } }"#;
    let copies = |filesystem, kernel| {
        let run = run_on(filesystem, kernel, "", write);
        assert_eq!(figure(&run, "w.failures_count"), 0.0);
        let [read, written] = ["read", "written"].map(|way| figure(&run, &format!("devices.{way}_bytes")) / MIB);
        assert!((read > 49.0) == (written > 49.0) && !(1.0..49.0).contains(&written), "{read} and {written} MiB");
        written > 49.0
    };
    for (filesystem, kernel, expect) in [
        (xfs, "6.12", false),
        (r#"type = "btrfs""#, "6.12", false),
        (without, "6.12", true),
        (r#"type = "ext4""#, "6.12", true),
        (xfs, "4.9", true),
    ] {
        assert_eq!(copies(filesystem, kernel), expect, "{filesystem} on {kernel}");
    }
    let read = r#"{ read = { file = "/m/d/x", block = "1 MiB" } }"#;
    let close = r#"{ close = { file = "/m/d/x" } }"#;
    let run = run_on(xfs, "6.12", "", &format!("{write}, {close}, {read}, {close}, {read}"));
    let read = figure(&run, "devices.read_bytes") / MIB;
    assert!((49.9..50.3).contains(&read), "{read} MiB");
    assert_eq!(figure(&run, "w.read.count"), 100.0);
}
