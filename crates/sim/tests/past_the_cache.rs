// SPDX-License-Identifier: MIT OR Apache-2.0
//! What meets the page cache: direct reads and writes, writes of parts of pages, lower limits; and large transactions of a journal.

mod machine;

use floodline_analysis::run::Run;
use machine::{figure, run_of, scenario};

const MIB: f64 = (1 << 20) as f64;

/// One task on a disk of 50 MB/s, in a cgroup with these limits, beside others.
fn text(fs: &str, limits: &str, steps: &str, others: &str) -> String {
    format!(
        r#"
name = "past"
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
type = "{fs}"
device = "disk"
[machine.cgroups.box]
{limits}
[workload]
duration = "20s"
[workload.tasks.w]
cgroup = "box"
steps = [{steps}, {{ sleep = {{ for = "30s" }} }}]
{others}
"#
    )
}

fn run(fs: &str, limits: &str, steps: &str) -> Run {
    run_beside(fs, limits, steps, "")
}

fn run_beside(fs: &str, limits: &str, steps: &str, others: &str) -> Run {
    run_of(&scenario(&text(fs, limits, steps, others)), "6.12", |_| true)
}

#[test]
fn ignored_options_of_mkfs_are_told() {
    let text = text("xfs", "", FILE, "").replace("\"xfs\"", "\"xfs\"\nmkfs = { block_size = \"1 KiB\", groups = 4 }");
    let told = floodline_sim::simplified(&scenario(&text)).concat();
    assert!(told.starts_with("The model ignores mkfs.block_size of /data and uses blocks of 4 KiB."), "{told}");
}

const FILE: &str =
    r#"{ write = { file = "/data/a", block = "1 MiB", total = "50 MiB" } }, { close = { file = "/data/a" } }"#;

#[test]
fn direct_calls_write_what_the_cache_holds_first() {
    for fs in ["xfs", "ext4"] {
        let read =
            run(fs, "", &format!(r#"{FILE}, {{ read = {{ file = "/data/a", block = "1 MiB", direct = true }} }}"#));
        // The first call writes its own MiB, and so does each.
        assert!((50.0..51.0).contains(&(figure(&read, "devices.written_bytes") / MIB)), "{fs}");
        assert!(figure(&read, "w.read.max_seconds") > 0.04, "{fs}: a MiB is written and read");
        let again =
            r#"{ write = { file = "/data/a", block = "1 MiB", total = "50 MiB", size = "50 MiB", direct = true } }"#;
        let both = run(fs, "", &format!(r#"{FILE}, {again}, {{ fsync = {{ file = "/data/a" }} }}"#));
        assert!((100.0..101.0).contains(&(figure(&both, "devices.written_bytes") / MIB)), "{fs}");
        assert!(figure(&both, "w.fsync.max_seconds") < 0.02, "{fs}: nothing is left in the cache");
    }
}

#[test]
fn a_write_within_a_page_reads_that_page_once() {
    let cold = r#"{ write = { file = "/data/f", total = "64 MiB", block = "1 MiB" } }, "sync", "drop_caches""#;
    let of = |block: &str| {
        let write = format!(
            r#"{{ write = {{ file = "/data/f", order = "random", size = "64 MiB", block = "{block}", count = 200 }} }}"#
        );
        figure(&run("xfs", "", &format!("{cold}, {write}")), "devices.read_bytes") / 4096.0
    };
    // Few of them hit a page that was read before. The inode comes with its neighbours, 8 pages.
    assert!((180.0..215.0).contains(&of("512 B")), "{}", of("512 B"));
}

#[test]
fn a_large_transaction_is_written_in_requests_of_the_usual_size() {
    let files = r#"{ create_files = { file = "/data/f{n}", files = 8000 } }, { fsync = { file = "/data/f0" } }"#;
    let run = run("ext4", "", files);
    let bytes = figure(&run, "devices.written_bytes") / figure(&run, "devices.writes_count");
    assert!(bytes <= 1.3 * MIB, "{bytes} bytes for each request");
}

#[test]
fn a_task_over_memory_high_ends_with_the_workload() {
    let run = run("ext4", r#"memory_high = "100 MiB""#, r#"{ anon = { size = "200 MiB" } }"#);
    assert!((19.0..22.0).contains(&figure(&run, "w.finished_seconds")), "it sleeps until then");
}

#[test]
fn a_lower_limit_takes_page_cache_at_once() {
    let lower = r#"{ set_limits = { cgroup = "box", limits = { memory_max = "20 MiB" } } }"#;
    let of = |sync: &str| {
        let steps = format!(r#"{FILE}{sync}, {lower}, {{ read = {{ file = "/data/a", block = "1 MiB" }} }}"#);
        let run = run("ext4", r#"memory_max = "400 MiB""#, &steps);
        (figure(&run, "devices.read_bytes") / MIB, figure(&run, "devices.written_bytes") / MIB)
    };
    for sync in [r#", "sync""#, ""] {
        let (read, written) = of(sync);
        assert!(read > 29.0 && (50.0..51.0).contains(&written), "{sync}: {read} MiB read, {written} MiB written");
    }
}

#[test]
fn a_file_that_two_tasks_read_at_once_is_read_once() {
    let cold = r#"{ write = { file = "/data/f", total = "50 MiB", block = "1 MiB" } }, "sync", "drop_caches", { barrier = { name = "cold" } }"#;
    let read = r#"{ read = { file = "/data/f", block = "64 KiB" } }"#;
    for (fs, later) in [("ext4", "0ms"), ("xfs", "0ms"), ("ext4", "300ms")] {
        let others = format!(
            r#"
[workload.tasks.r]
steps = [{{ barrier = {{ name = "cold" }} }}, {{ sleep = {{ for = "{later}" }} }}, {read}]
"#
        );
        let run = run_beside(fs, "", &format!("{cold}, {read}"), &others);
        let bytes = figure(&run, "devices.read_bytes") / MIB;
        assert!((50.0..50.2).contains(&bytes), "{fs}, {later} later: {bytes} MiB");
        // A second of writing and one of reading.
        let end = figure(&run, "r.finished_seconds");
        assert!(end < 2.3, "{fs}, {later} later: read at {end} s");
    }
}

#[test]
fn a_page_that_another_task_reads_is_waited_for() {
    let cold = r#"{ write = { file = "/data/f", total = "1 MiB", block = "1 MiB" } }, "sync", "drop_caches", { barrier = { name = "cold" } }"#;
    let part = r#"{ write = { file = "/data/f", block = "512 B", count = 1, size = "1 MiB" } }"#;
    let store = r#"{ mmap_store = { file = "/data/f", size = "1 MiB", pages = 1, count = 1 } }"#;
    let read = r#"{ read = { file = "/data/f", block = "64 KiB" } }"#;
    let alone = run("ext4", "", &format!("{cold}, {read}"));
    for beside in [part, store] {
        let others = format!("[workload.tasks.r]\nsteps = [{{ barrier = {{ name = \"cold\" }} }}, {beside}]\n");
        let run = run_beside("ext4", "", &format!("{cold}, {read}"), &others);
        let bytes = |run| figure(run, "devices.read_bytes");
        assert_eq!(bytes(&run), bytes(&alone), "{beside}");
    }
}

#[test]
fn what_was_never_written_is_read_from_no_device() {
    let read_after = |fs: &str, steps: &str| figure(&run(fs, "", steps), "devices.read_bytes") / MIB;
    let part =
        r#"{ write = { file = "/data/a", block = "1 MiB", count = 1, size = "50 MiB" } }, "sync", "drop_caches""#;
    for fs in ["ext4", "xfs"] {
        for first in ["truncate", "fallocate"] {
            let first = format!(r#"{{ {first} = {{ file = "/data/a", size = "50 MiB" }} }}, "sync""#);
            for read in [r#"block = "1 MiB""#, r#"block = "1 MiB", direct = true"#] {
                let read = format!(r#"{{ read = {{ file = "/data/a", {read} }} }}"#);
                let none = read_after(fs, &format!("{first}, {read}"));
                assert!(none < 0.1, "{fs}, {first}, {read}: {none} MiB");
                let one = read_after(fs, &format!("{first}, {part}, {read}"));
                assert!((1.0..1.1).contains(&one), "{fs}, {first}, {read}: {one} MiB");
            }
            let parts =
                r#"{ write = { file = "/data/a", block = "512 B", count = 50, size = "50 MiB", order = "random" } }"#;
            let none = read_after(fs, &format!("{first}, {parts}"));
            assert!(none < 0.1, "{fs}, {first}, parts of pages: {none} MiB");
        }
    }
}

#[test]
fn a_hole_before_what_was_written_reads_as_zeros() {
    let steps = r#"{ write = { file = "/data/a", block = "1 MiB", count = 20, size = "400 MiB", order = "random" } }, "sync", "drop_caches",
        { read = { file = "/data/a", block = "1 MiB" } }"#;
    for fs in ["ext4", "xfs"] {
        let read = figure(&run(fs, "", steps), "devices.read_bytes") / MIB;
        assert!((15.0..20.2).contains(&read), "{fs}: {read} MiB");
    }
}

#[test]
fn a_durable_write_into_preallocated_space_commits_as_an_append_does() {
    let middle = |fs: &str, setup: &str, write: &str, direct: &str| {
        let steps = format!(
            r#"{setup} {{ write = {{ file = "/data/a", block = "16 KiB", count = 100, dsync = true{write}{direct} }} }}"#
        );
        let task = format!("[workload.tasks.d]\nsteps = [{steps}]\n");
        figure(&run_beside(fs, "", "\"sync\"", &task), "d.write.p50_seconds")
    };
    let allocated = r#"{ fallocate = { file = "/data/a", size = "100 MiB" } }, "sync","#;
    let sync = r#"{ write = { file = "/data/a", block = "16 KiB", count = 100 } }, "sync","#;
    for fs in ["ext4", "xfs"] {
        for direct in ["", ", direct = true"] {
            let append = middle(fs, "", r#", order = "append""#, direct);
            let first = middle(fs, allocated, "", direct);
            let again = middle(fs, &format!("{allocated} {sync}"), "", direct);
            let over = middle(fs, sync, "", direct);
            assert!((0.6..1.1).contains(&(first / append)), "{fs}{direct}: {first} s, an append {append} s");
            assert!(first > 1.5 * over, "{fs}{direct}: {first} s, an overwrite {over} s");
            assert!((0.95..1.05).contains(&(again / over)), "{fs}{direct}: {again} s again, an overwrite {over} s");
        }
    }
}
