// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits that end a workload: room on a filesystem, and time.

mod machine;

use floodline_analysis::run::Run;
use floodline_record::record::{Event, Record, Sink, What};
use floodline_sim::{Options, simulate};
use machine::{figure, options, run_of, scenario};

fn text(device: &str, duration: &str, steps: &str) -> String {
    format!(
        r#"
name = "ends"
summary = "a small disk"
[machine]
memory = "4 GiB"
cpus = 2
[machine.devices.disk]
{device}
[machine.mounts."/data"]
type = "ext4"
device = "disk"
[workload]
duration = "{duration}"
[workload.tasks.writer]
steps = [{steps}]
"#
    )
}

/// The writer's error, and MiB written to the device.
fn outcome(text: &str) -> (Vec<String>, f64) {
    let mut failures = Vec::new();
    let run = run_of(&scenario(text), "6.12", |record| {
        if let Record::Event(Event { what: What::TaskEnded { failure, .. }, .. }) = record {
            failures.extend(failure.as_ref().map(ToString::to_string));
        }
        true
    });
    (failures, figure(&run, "devices.written_bytes") / f64::from(1 << 20))
}

const SMALL: &str = "size = \"512 MiB\"";

#[test]
fn a_filesystem_that_is_full_says_so() {
    let write = |file: &str, total: &str, more: &str| {
        format!("{{ write = {{ file = \"/data/{file}\", block = \"1 MiB\", total = \"{total}\"{more} }} }}")
    };
    let wait = "{ sleep = { for = \"60s\" } }";
    for fs in ["ext4", "xfs", "btrfs"] {
        let run = |steps: &[&str]| outcome(&text(SMALL, "120s", &steps.join(", ")).replace("ext4", fs));
        for more in ["", ", direct = true"] {
            let branch = format!("{{ parallel = {{ branches = [[{}], [{wait}]] }} }}", write("a", "2 GiB", more));
            let (failures, written) = run(&[&branch]);
            assert!(failures.len() == 1 && failures[0].contains("No space left on device"), "{fs}: {failures:?}");
            assert!((380.0..512.0).contains(&written), "{fs}{more}: {written} MiB");
        }
        // A larger log leaves less for files.
        if fs != "btrfs" {
            let type_of = format!("type = \"{fs}\"");
            let large = format!("{type_of}\nmkfs.journal_size = \"256 MiB\"");
            let text = text(SMALL, "120s", &write("a", "2 GiB", ", direct = true")).replace("ext4", fs);
            let (failures, written) = outcome(&text.replace(&type_of, &large));
            assert!(failures.len() == 1 && failures[0].contains("No space left on device"), "{fs}: {failures:?}");
            assert!((200.0..256.0).contains(&written), "{fs} with a large log: {written} MiB");
        }
        // Blocks of a removed file are free again, and rewritten data takes no more.
        let unlink = "{ unlink = { file = \"/data/a\", files = 1 } }";
        let again = write("c", "900 MiB", ", size = \"300 MiB\"");
        let close = "{ close = { file = \"/data/a\" } }";
        let cut = "{ truncate = { file = \"/data/b\", size = \"0 B\" } }";
        let steps = [&write("a", "300 MiB", ""), close, unlink, &write("b", "300 MiB", ""), "\"sync\"", cut, &again];
        assert_eq!(run(&steps).0, Vec::<String>::new(), "{fs}");
    }
}

/// Simulated seconds of a run.
fn seconds(text: &str) -> f64 {
    let summary = floodline_sim::simulate(&scenario(text), &options("6.12"), |_| Ok(()), |_| true);
    summary.unwrap_or_else(|error| panic!("{error}")).simulated.as_secs_f64()
}

#[test]
fn a_run_ends_at_its_duration() {
    let slowest = "size = \"10 GiB\"\nwrite_bandwidth = \"1 B/s\"";
    let write = "{ write = { file = \"/data/a\", block = \"1 MiB\" } }";
    // A pause can be interrupted, and the write in progress ends early.
    let took = seconds(&text(slowest, "20s", write));
    assert!(took < 23.0, "{took} s");
    // A wait for the device cannot: the run goes on for ten minutes, and then reports the tasks that are left.
    let sync =
        text(slowest, "20s", "{ write = { file = \"/data/a\", count = 1 } }, { fsync = { file = \"/data/a\" } }");
    let took = seconds(&sync);
    assert!((600.0..640.0).contains(&took), "{took} s");
    let failures = outcome(&sync).0;
    assert!(failures.len() == 1 && failures[0].contains("still waits for"), "{failures:?}");
}

#[test]
fn the_first_windows_of_a_readahead_have_small_folios() {
    let dirtied = |kernel: &str, read_ahead: &str, block: &str, stores: &str| {
        let text = text(
            &format!("size = \"1 GiB\"\nbdi.read_ahead = \"{read_ahead}\""),
            "5s",
            &format!(
                "{{ write = {{ file = \"/data/a\", total = \"4 MiB\" }} }}, \"sync\", \"drop_caches\", {{ read = {{ file = \"/data/a\", \
                 block = \"{block}\" }} }}, {{ mmap_store = {{ file = \"/data/a\", size = \"4 MiB\", pages = 1, store = \"4 KiB\", \
                 {stores} }} }}"
            ),
        );
        let run = run_of(&scenario(&text.replace("ext4", "xfs")), kernel, |_| true);
        figure(&run, "host.dirtied_bytes") - 4_194_304.0
    };
    let first = |kernel, read_ahead, block| dirtied(kernel, read_ahead, block, "count = 1, order = \"sequential\"");
    assert_eq!(first("6.1", "128 KiB", "128 KiB"), 16_384.0);
    assert_eq!(first("6.1", "16 KiB", "128 KiB"), 16_384.0);
    // A read of more than the bdi's window makes the window larger.
    assert_eq!(first("6.1", "8 KiB", "128 KiB"), 16_384.0);
    assert_eq!(first("6.1", "8 KiB", "8 KiB"), 4_096.0);
    assert_eq!(first("7.2", "128 KiB", "128 KiB"), 4_096.0);
    // Later windows have folios as large as themselves, with any window of the bdi.
    for read_ahead in ["128 KiB", "16 KiB"] {
        let bytes = dirtied("6.12", read_ahead, "128 KiB", "count = 10");
        assert!(bytes >= 0.6 * 10.0 * 131_072.0, "{bytes} with {read_ahead}");
    }
}

#[test]
fn a_task_may_run_in_one_of_several_cgroups() {
    let one = text(SMALL, "5s", "{ write = { file = \"/data/a\", count = 10 } }");
    let text =
        format!("{one}cgroup = \"box1\"\n[machine.cgroups.\"box{{i}}\"]\ninstances = 3\nmemory_max = \"64 MiB\"\n");
    let run = run_of(&scenario(&text), "6.12", |_| true);
    assert_eq!(figure(&run, "writer.write.count"), 10.0);
}

#[test]
fn a_task_makes_room_in_a_log_that_is_full() {
    // Every file is a transaction of its own. The blocks of its inode hold the tail of the log until they are
    // written in place, half a minute later.
    let steps =
        "{ create_files = { file = \"/data/{n}\", files = 900, size = \"4 KiB\", fsync = true, rate = \"40/s\" } }";
    let disk = "size = \"10 GiB\"\nwrite_bandwidth = \"50 MB/s\"\nlatency = \"1ms\"";
    let longest = |journal: &str| {
        let mkfs = format!("type = \"ext4\"\nin_use = true\nmkfs = {{ journal_size = \"{journal}\" }}");
        let run = run_of(&scenario(&text(disk, "60s", steps).replace("type = \"ext4\"", &mkfs)), "6.12", |_| true);
        (figure(&run, "writer.create.max_seconds") * 1e3, figure(&run, "devices.writes_count"))
    };
    let ((small, writes_small), (large, writes_large)) = (longest("4 MiB"), longest("64 MiB"));
    assert!(large < 0.1, "the longest create took {large} ms with a large log");
    assert!(small > 1.0, "the longest create took {small} ms: it waited for the disk");
    assert!(writes_small > writes_large + 20.0, "{writes_small} and {writes_large} writes");
}

#[test]
fn tasks_wait_until_xfs_has_written_what_fills_its_log() {
    let steps = "{ create_files = { file = \"/data/{n}\", files = 12000, size = \"0 B\" } }";
    let disk = "size = \"10 GiB\"\nwrite_bandwidth = \"50 MB/s\"\nlatency = \"5ms\"";
    let longest = |log: &str| {
        let mkfs = format!("type = \"xfs\"\nin_use = true\nmkfs = {{ journal_size = \"{log}\" }}");
        let scenario = scenario(&text(disk, "10s", steps).replace("type = \"ext4\"", &mkfs));
        let mut run = Run::default();
        let take = |record| {
            let Ok(()) = run.record(&record);
            Ok(())
        };
        // Checking every inode after every event would take a minute.
        let options = Options { checks_every_event: false, ..options("6.12") };
        simulate(&scenario, &options, take, |_| true).expect("it is simulated");
        (figure(&run, "writer.create.max_seconds") * 1e3, figure(&run, "devices.written_bytes") / 1e6)
    };
    let ((small, early), (large, late)) = (longest("2 MiB"), longest("64 MiB"));
    assert!(large < 0.1, "the longest create took {large} ms with a large log");
    assert!(small > 5.0, "the longest create took {small} ms: it waited for the disk");
    assert!(early > late + 5.0, "{early} and {late} MB: the log is written to its place when it fills, and not later");
}
