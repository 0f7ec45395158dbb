// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload runner on this machine: file steps in a temporary directory, several tasks through a
//! director whose workers are threads. No privilege, no cgroups, no mounts.

use floodline_lab::workload::{Alone, Directed, Director, Place, Run, Stop, Worker, now, run_task, worker};
use floodline_record::record::{Event, What};
use floodline_record::units::Nanos;
use floodline_scenario::{Figure, Scenario, ScenarioFile, figures};
use std::collections::BTreeMap;
use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::path::Path;
use tempfile::TempDir;

/// A scenario whose paths are below a temporary directory, written `DIR` in the text.
fn scenario(dir: &Path, workload: &str) -> Scenario {
    let dir = dir.to_str().expect("a plain path");
    let text = format!(
        "name = \"test\"\nsummary = \"a test\"\n[machine]\nmemory = \"1 GiB\"\n{}",
        workload.replace("DIR", dir)
    );
    let file = ScenarioFile::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    file.variants["default"].clone()
}

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("floodline-workload").tempdir_in("/tmp").expect("a temporary directory")
}

/// Runs the only task of a workload in this thread.
fn alone(dir: &Path, steps: &str) -> (BTreeMap<String, Figure>, Result<(), String>) {
    let scenario = scenario(dir, &format!("[workload]\nduration = \"60s\"\n[workload.tasks.t]\nsteps = [{steps}]\n"));
    let copies = scenario.task_copies();
    let stop = Stop::new();
    let run = Run { task: &copies[0], place: &Place::default(), meeting: &Alone, stop: &stop, since: Nanos(0) };
    let (events, ended) = run_task(&run);
    (figures(&events), ended.map_err(|failure| failure.to_string()))
}

fn check(steps: &str, expect: &[(&str, f64)]) -> TempDir {
    let dir = folder();
    let (figures, ended) = alone(dir.path(), steps);
    assert_eq!(ended, Ok(()), "{steps}");
    for (name, value) in expect {
        let found = figures.get(&format!("t.{name}")).map(|figure| figure.value);
        assert_eq!(found, Some(*value), "{name} of {steps}");
    }
    dir
}

fn length(dir: &TempDir, file: &str) -> u64 {
    std::fs::metadata(dir.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}")).len()
}

#[test]
fn writes_are_counted_to_the_byte() {
    let dir = check(r#"{ write = { file = "DIR/a", block = "1021 B", count = 31 } }"#, &[("write.count", 31.0)]);
    assert_eq!(length(&dir, "a"), 31 * 1021);
    let dir = check(r#"{ write = { file = "DIR/a", block = "4 KiB", total = "10007 B" } }"#, &[("write.count", 3.0)]);
    assert_eq!(length(&dir, "a"), 10_007);
    let dir = check(
        r#"{ write = { file = "DIR/sub/a", order = "append", block = "7 B", count = 11 } },
           { write = { file = "DIR/sub/a", order = "append", block = "7 B", count = 2 } }"#,
        &[("write.count", 13.0)],
    );
    assert_eq!(length(&dir, "sub/a"), 91);
    let dir = check(
        r#"{ write = { file = "DIR/a", order = "random", size = "64 KiB", count = 101 } }"#,
        &[("write.count", 101.0)],
    );
    assert!(length(&dir, "a") <= 64 << 10);
    // A sequential writer starts over at the size, and goes on where the step before left off.
    let dir = check(r#"{ write = { file = "DIR/a", size = "16 KiB", count = 7 } }"#, &[("write.count", 7.0)]);
    assert_eq!(length(&dir, "a"), 16 << 10);
    let dir = check(r#"{ repeat = { times = 3, steps = [{ write = { file = "DIR/a", count = 2 } }] } }"#, &[]);
    assert_eq!(length(&dir, "a"), 6 * 4096);
}

#[test]
fn the_kernel_counts_the_same_writes() {
    // All tests share one process, so its counter is a lower bound; the file's length is exact.
    let dir = folder();
    let before = syscw();
    let (_, ended) = alone(dir.path(), r#"{ write = { file = "DIR/a", block = "13 B", count = 10007 } }"#);
    assert_eq!(ended, Ok(()));
    assert!(syscw() - before >= 10_007);
    assert_eq!(length(&dir, "a"), 13 * 10_007);
}

fn syscw() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").expect("the kernel counts I/O");
    let line = text.lines().find_map(|line| line.strip_prefix("syscw: ")).expect("write calls");
    line.parse().expect("a number")
}

#[test]
fn blocks_are_incompressible_and_the_same_for_the_same_seed() {
    let steps = r#"{ write = { file = "DIR/a", block = "64 KiB", count = 5 } }"#;
    let read = || std::fs::read(check(steps, &[]).path().join("a")).expect("written");
    let (one, other) = (read(), read());
    assert!(one == other, "the same seed gave other bytes");
    let mut sectors: Vec<&[u8]> = one.chunks(512).collect();
    sectors.sort_unstable();
    sectors.dedup();
    assert_eq!(sectors.len(), one.len() / 512);
    let mut seen = [0_u32; 256];
    one.iter().for_each(|&byte| seen[usize::from(byte)] += 1);
    assert!(seen.iter().all(|&times| (900..1700).contains(&times)), "bytes are unevenly distributed");
}

#[test]
fn reads_stop_at_the_end_or_start_over() {
    let write = r#"{ write = { file = "DIR/a", block = "1 KiB", count = 17 } }"#;
    check(&format!(r#"{write}, {{ read = {{ file = "DIR/a", block = "1 KiB" }} }}"#), &[("read.count", 17.0)]);
    check(
        &format!(r#"{write}, {{ read = {{ file = "DIR/a", block = "1 KiB", count = 40 }} }}"#),
        &[("read.count", 40.0)],
    );
    check(
        &format!(r#"{write}, {{ read = {{ file = "DIR/a", order = "random", block = "1 KiB", count = 19 }} }}"#),
        &[("read.count", 19.0)],
    );
    check(
        r#"{ create_files = { file = "DIR/{d}/f{n}", files = 7, files_per_dir = 3, size = "5000 B" } },
           { read = { file = "DIR/{d}/f{n}", files = 7, files_per_dir = 3 } }"#,
        &[("read.count", 14.0), ("open.count", 7.0), ("create.count", 7.0)],
    );
    check(
        r#"{ create_files = { file = "DIR/empty{n}", files = 1 } }, { read = { file = "DIR/empty0", count = 5 } }"#,
        &[("create.count", 1.0)],
    );
    check(
        &format!(r#"{write}, {{ read = {{ file = "DIR/a", keep = true }} }}, {{ anon = {{ size = "0 B" }} }}"#),
        &[("read.count", 5.0)],
    );
}

#[test]
fn stores_touch_as_many_distinct_pages_as_asked() {
    let dir = check(
        r#"{ mmap_store = { file = "DIR/m", size = "404 KiB", pages = 7, count = 11 } }, { msync = { file = "DIR/m" } }"#,
        &[("mmap_store.count", 77.0), ("msync.count", 1.0)],
    );
    assert_eq!(length(&dir, "m"), 404 << 10);
    // 101 pages and one burst of all of them, 8 bytes each: every page holds something.
    let dir = check(
        r#"{ mmap_store = { file = "DIR/m", size = "404 KiB", pages = 101, store = "8 B", count = 1 } }"#,
        &[("mmap_store.count", 101.0)],
    );
    let bytes = std::fs::read(dir.path().join("m")).expect("mapped");
    assert_eq!(bytes.chunks(4096).filter(|page| page.iter().any(|&byte| byte != 0)).count(), 101);
    let dir = check(
        r#"{ mmap_store = { file = "DIR/m{n}", files = 3, size = "8 KiB", order = "sequential", count = 5 } }"#,
        &[("mmap_store.count", 5.0)],
    );
    assert_eq!((length(&dir, "m0"), length(&dir, "m2")), (8192, 8192));
}

#[test]
fn files_are_created_renamed_truncated_and_unlinked() {
    let dir = check(
        r#"{ create_files = { file = "DIR/f{n}", files = 13, size = "100 B", fsync = true } },
           { create_files = { file = "DIR/f{n}", files = 1 } },
           { rename = { from = "DIR/f3", to = "DIR/g" } },
           { truncate = { file = "DIR/g", size = "7 B" } },
           { unlink = { file = "DIR/f{n}", files = 3 } },
           { mkdir = { path = "DIR/x/y" } }, { rmdir = { path = "DIR/x/y" } }, { fsync = { file = "DIR" } },
           { fdatasync = { file = "DIR/g" } }, { close = { file = "DIR/g" } }, { syncfs = { path = "DIR" } }"#,
        &[("create_files.count", 14.0), ("fsync.count", 14.0), ("unlink.count", 3.0), ("syncfs.count", 1.0)],
    );
    assert_eq!((length(&dir, "g"), length(&dir, "f13")), (7, 0));
    assert!(!dir.path().join("f0").exists() && dir.path().join("f4").exists() && !dir.path().join("x/y").exists());
}

#[test]
fn syncs_come_after_so_many_blocks() {
    check(
        r#"{ write = { file = "DIR/log", count = 23, sync = { call = "fdatasync", after = 5 } } }"#,
        &[("write.count", 23.0), ("fdatasync.count", 4.0)],
    );
}

#[test]
fn files_get_their_blocks_and_are_written_as_databases_do() {
    let dir = check(
        r#"{ fallocate = { file = "DIR/log", size = "1 MiB" } },
           { write = { file = "DIR/log", dsync = true, count = 5 } },
           { write = { file = "DIR/table", block = "64 KiB", count = 8, sync = { call = "sync_file_range", after = 4 } } },
           { sync_file_range = { file = "DIR/table" } }"#,
        &[("fallocate.count", 1.0), ("write.count", 13.0), ("sync_file_range.count", 3.0)],
    );
    assert_eq!((length(&dir, "log"), length(&dir, "table")), (1 << 20, 8 << 16));
}

#[test]
fn a_rate_is_kept_without_drift() {
    let dir = folder();
    let start = now();
    let (figures, ended) = alone(dir.path(), r#"{ write = { file = "DIR/a", rate = "100/s", for = "500ms" } }"#);
    let took = Nanos(now().0 - start.0).as_secs_f64();
    assert_eq!(ended, Ok(()));
    let count = figures["t.write.count"].value;
    assert!((40.0..=50.0).contains(&count), "{count} writes");
    assert!((0.4..3.0).contains(&took), "{took} s");
    let start = now();
    let (figures, _) = alone(
        dir.path(),
        r#"{ repeat = { times = 6, every = "50ms", steps = [{ sleep = { for = "20ms" } }, { write = { file = "DIR/a", count = 1 } }] } }"#,
    );
    let took = Nanos(now().0 - start.0).as_secs_f64();
    assert_eq!(figures["t.write.count"].value, 6.0);
    assert!((0.26..3.0).contains(&took), "{took} s");
}

#[test]
fn branches_run_at_once_and_their_figures_add_up() {
    let dir = folder();
    let start = now();
    let (figures, ended) = alone(
        dir.path(),
        r#"{ parallel = { branches = [
             [{ sleep = { for = "1s" } }, { write = { file = "DIR/a", count = 3 } }],
             [{ sleep = { for = "1s" } }, { write = { file = "DIR/b", count = 4 } }, "exit"],
             [{ burn = { for = "10ms" } }] ] } }"#,
    );
    assert_eq!(ended, Ok(()));
    assert_eq!(figures["t.write.count"].value, 7.0);
    let took = Nanos(now().0 - start.0).as_secs_f64();
    assert!((1.0..1.99).contains(&took), "{took} s: one after the other?");
}

#[test]
fn what_fails_is_named_with_its_step() {
    let check = |steps: &str, expect: &str| {
        let dir = folder();
        let (_, ended) = alone(dir.path(), steps);
        let failure = ended.expect_err(steps).replace(dir.path().to_str().expect("a plain path"), "DIR");
        assert_eq!(failure, expect);
    };
    check(
        r#"{ write = { file = "DIR/a", count = 1 } }, { read = { file = "DIR/missing" } }"#,
        "steps[1].read: open DIR/missing: No such file or directory (os error 2)",
    );
    check(
        r#"{ repeat = { times = 2, steps = [{ sleep = { for = "1ms" } }, { unlink = { file = "DIR/gone" } }] } }"#,
        "steps[0].repeat.steps[1].unlink: unlink DIR/gone: No such file or directory (os error 2)",
    );
    check(
        r#"{ parallel = { branches = [[{ sleep = { for = "1ms" } }], [{ rmdir = { path = "DIR/no" } }]] } }"#,
        "steps[0].parallel.branches[1][0].rmdir: rmdir DIR/no: No such file or directory (os error 2)",
    );
    check(
        r#"{ write = { file = "DIR/a", count = 1 } }, { mkdir = { path = "DIR/a/b" } }"#,
        "steps[1].mkdir: mkdir DIR/a/b: Not a directory (os error 20)",
    );
    check(r#"{ msync = { file = "DIR/a" } }"#, "steps[0].msync: msync of DIR/a, which is not mapped");
}

#[test]
fn a_full_device_is_a_failed_write() {
    // The one device of every machine that is always full.
    let dir = folder();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("full")).expect("a link");
    let (figures, ended) = alone(dir.path(), r#"{ write = { file = "DIR/full", count = 1 } }"#);
    let failure = ended.expect_err("the device is full");
    assert!(failure.starts_with("steps[0].write: write ") && failure.contains("No space left on device"), "{failure}");
    assert!(!figures.contains_key("t.write.count"));
}

/// Runs a whole workload with workers that are threads of this process.
fn direct(scenario: &Scenario, stop: &Stop) -> (Directed, Vec<Event>) {
    let hire = |_: &_| {
        let (ours, theirs) = UnixStream::pair()?;
        let their_output = theirs.try_clone()?;
        std::thread::spawn(move || worker(BufReader::new(theirs), their_output));
        let input = Box::new(Closing(ours.try_clone()?));
        Ok(Worker { input, output: Box::new(BufReader::new(ours)), process: None })
    };
    let place = Place::default();
    let director = Director { place: &place, hire: &hire, stop, grace: Nanos(5 * Nanos::SECOND.0) };
    let mut events = Vec::new();
    let directed = director.run(scenario, "default", &mut |event| events.push(event));
    (directed, events)
}

#[test]
fn a_task_that_cannot_be_hired_ends_the_run() {
    let dir = folder();
    let text = "[workload.tasks.one]\nsteps = [\"exit\"]\n[workload.tasks.two]\nsteps = [\"exit\"]";
    let scenario = scenario(dir.path(), text);
    let number = std::cell::Cell::new(0);
    let hire = |_: &_| {
        number.set(number.get() + 1);
        match number.get() {
            1 => Err(std::io::Error::other("no room")),
            _ => panic!("the run was over"),
        }
    };
    let (place, stop) = (Place::default(), Stop::new());
    let director = Director { place: &place, hire: &hire, stop: &stop, grace: Nanos(Nanos::SECOND.0) };
    let directed = director.run(&scenario, "default", &mut drop);
    assert_eq!(directed.failures.into_values().collect::<Vec<_>>(), ["start a worker: no room"]);
    assert_eq!(directed.started, None);
}

/// A stream whose writing half is shut when dropped, as that of a pipe.
struct Closing(UnixStream);

impl std::io::Write for Closing {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        self.0.write(buffer)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }
}

#[test]
fn tasks_meet_at_barriers_and_wait_for_one_another() {
    let dir = folder();
    let scenario = scenario(
        dir.path(),
        r#"[workload]
        [workload.tasks.first]
        instances = 3
        setup = [{ write = { file = "DIR/setup{j}", count = 1 } }, { barrier = { name = "prepared" } },
                 { read = { file = "DIR/shared" } }]
        steps = [{ sleep = { for = "50ms" } }, { write = { file = "DIR/out{j}", count = 1 } }]
        [workload.tasks.prepare]
        setup = [{ sleep = { for = "50ms" } }, { write = { file = "DIR/shared", count = 2 } },
                 { barrier = { name = "prepared" } }]
        [workload.tasks.second]
        steps = [{ wait_for = { task = "first" } }, { read = { file = "DIR/out{j}" } }, { note = { text = "seen" } }]"#,
    );
    let (directed, events) = direct(&scenario, &Stop::new());
    assert_eq!(directed.failures, BTreeMap::new());
    assert!(directed.started.is_some());
    let figures = figures(&events);
    assert_eq!(figures["first.write.count"].value, 3.0);
    assert_eq!(figures["second.read.count"].value, 1.0);
    assert!(!figures.contains_key("first.read.count"), "the setup is no figure");
    let kinds = |wanted: fn(&What) -> bool| events.iter().filter(|event| wanted(&event.what)).count();
    assert_eq!(kinds(|what| matches!(what, What::WorkloadStarted { .. })), 1);
    assert_eq!(kinds(|what| matches!(what, What::TaskStarted { .. })), 5);
    assert_eq!(kinds(|what| matches!(what, What::TaskEnded { failure: None, .. })), 5);
    assert_eq!(kinds(|what| matches!(what, What::TaskIo { .. })), 5);
    assert_eq!(kinds(|what| matches!(what, What::Note { text } if text == "seen")), 1);
    assert!(matches!(events.last().map(|event| &event.what), Some(What::WorkloadEnded)));
}

#[test]
fn a_setup_that_fails_ends_the_run_before_it_starts() {
    let dir = folder();
    let scenario = scenario(
        dir.path(),
        r#"[workload]
        duration = "60s"
        [workload.tasks.broken]
        setup = [{ read = { file = "DIR/missing" } }, { barrier = { name = "b" } }]
        [workload.tasks.patient]
        setup = [{ barrier = { name = "b" } }]
        [workload.tasks.ready]
        steps = [{ write = { file = "DIR/a", rate = "1/s" } }]"#,
    );
    let (directed, events) = direct(&scenario, &Stop::new());
    assert_eq!(directed.started, None);
    let failures: Vec<_> = directed.failures.iter().collect();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(directed.failures["broken-0"].starts_with("setup[0].read: open "), "{failures:?}");
    // The failure is in the recording, and nothing else.
    assert!(matches!(&events[..], [Event { what: What::TaskEnded { failure: Some(_), .. }, .. }]), "{events:?}");
}

#[test]
fn the_end_of_the_workload_ends_endless_tasks_and_a_failure_ends_only_its_own() {
    let dir = folder();
    let scenario = scenario(
        dir.path(),
        r#"[workload]
        duration = "400ms"
        settle = "200ms"
        [workload.tasks.endless]
        steps = [{ write = { file = "DIR/a", rate = "100/s" } }]
        [workload.tasks.failing]
        steps = [{ unlink = { file = "DIR/gone" } }]
        [workload.tasks.waiting]
        steps = [{ wait_for = { task = "failing" } }, { write = { file = "DIR/w", count = 1 } }]
        [workload.tasks.late]
        start = "10s"
        steps = [{ write = { file = "DIR/l", count = 1 } }]"#,
    );
    let start = now();
    let (directed, events) = direct(&scenario, &Stop::new());
    let took = Nanos(now().0 - start.0).as_secs_f64();
    assert!((0.4..4.0).contains(&took), "{took} s");
    let failed: Vec<_> = directed.failures.keys().map(String::as_str).collect();
    assert_eq!(failed, ["failing-0"]);
    let figures = figures(&events);
    assert_eq!(figures["failing.failures_count"].value, 1.0);
    // Half of the writes came before the figures.
    let counted = figures["endless.write.count"].value;
    assert!((10.0..=21.0).contains(&counted), "{counted} writes");
    assert!(!dir.path().join("l").exists());
    assert!(dir.path().join("w").exists());
}

#[test]
fn a_wish_to_stop_ends_everything() {
    let dir = folder();
    let scenario = scenario(
        dir.path(),
        r#"[workload]
        duration = "60s"
        [workload.tasks.endless]
        instances = 2
        steps = [{ write = { file = "DIR/a{j}", rate = "50/s" } }]"#,
    );
    let stop = Stop::new();
    let (directed, events) = std::thread::scope(|scope| {
        let run = scope.spawn(|| direct(&scenario, &stop));
        std::thread::sleep(std::time::Duration::from_millis(600));
        stop.ask();
        run.join().expect("the director ends")
    });
    assert_eq!(directed.failures, BTreeMap::new());
    assert!(figures(&events)["endless.write.count"].value > 0.0);
}

#[test]
fn a_worker_that_dies_or_talks_nonsense_is_a_failed_task() {
    let dir = folder();
    let scenario = scenario(dir.path(), "[workload]\n[workload.tasks.t]\nsteps = [\"sync\"]\n");
    let place = Place::default();
    let stop = Stop::new();
    let check = |shell: &str, expect: &str| {
        let hire = |_: &_| {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", shell]);
            Worker::process(command)
        };
        let director = Director { place: &place, hire: &hire, stop: &stop, grace: Nanos::SECOND };
        let directed = director.run(&scenario, "default", &mut |_| {});
        let failure = directed.failures.get("t-0").unwrap_or_else(|| panic!("{shell} is a failure"));
        assert!(failure.contains(expect), "{failure}");
    };
    check("read line; kill -9 $$", "signal 9");
    check("read line; exit 3", "status 3");
    check("read line; echo '{'", "talks nonsense");
    check("read line; echo '{'; exec sleep 60", "killed by signal 9");
    let hire = |_: &_| Worker::process(std::process::Command::new("/nonexistent/worker"));
    let director = Director { place: &place, hire: &hire, stop: &stop, grace: Nanos::SECOND };
    let directed = director.run(&scenario, "default", &mut |_| {});
    assert!(directed.failures["t-0"].contains("No such file"), "{:?}", directed.failures);
}

#[test]
fn requests_under_way_are_written_read_and_counted_to_the_byte() {
    let steps = r#"{ write = { file = "DIR/a", block = "1021 B", count = 31, depth = 8, sync = { call = "fdatasync", after = 10 } } },
        { read = { file = "DIR/a", order = "random", block = "1021 B", count = 40, depth = 4 } }"#;
    let dir = check(steps, &[("write.count", 31.0), ("fdatasync.count", 3.0), ("read.count", 40.0)]);
    assert_eq!(length(&dir, "a"), 31 * 1021);
    let written = std::fs::read(dir.path().join("a")).expect("the file");
    // No block was left out: none has a hole.
    assert!(written.chunks(1021).all(|block| block.iter().any(|byte| *byte != 0)));
}

#[test]
fn a_request_that_fails_ends_the_task() {
    let dir = folder();
    let steps = r#"{ write = { file = "DIR/a", block = "4 KiB", count = 4 } }, { read = { file = "DIR", order = "random", count = 9, depth = 4 } }"#;
    let (_, ended) = alone(dir.path(), steps);
    assert!(ended.as_ref().is_err_and(|why| why.contains("read")), "{ended:?}");
}
