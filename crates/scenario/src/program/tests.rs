// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operations of steps, one by one, by an executor of which every call takes a millisecond.

use super::*;
use crate::{Scenario, ScenarioFile};

fn scenario(workload: &str) -> Scenario {
    let text = format!(
        "name = \"case\"\nsummary = \"One case.\"\n[machine]\nmemory = \"1 GiB\"\ncpus = 2\n\
         [machine.devices.sda]\nsize = \"1 GiB\"\nwrite_bandwidth = \"100 MB/s\"\nread_bandwidth = \"100 MB/s\"\n\
         [machine.mounts.\"/data\"]\ntype = \"ext4\"\ndevice = \"sda\"\n{workload}"
    );
    let file = ScenarioFile::parse(&text);
    file.unwrap_or_else(|problem| panic!("{problem:?}")).variants.into_values().next().unwrap()
}

/// When the workload is over.
const END: Nanos = Nanos(10_000_000_000);

/// The operations of a task's steps. Files are as long as `length`; sleeps are left out.
fn operations(steps: &str, length: u64) -> Vec<String> {
    let scenario = scenario(&format!("[workload]\nduration = \"10s\"\n[workload.tasks.t]\nsteps = [{steps}]"));
    let copy = scenario.task_copies().remove(0);
    let mut program = Program::new(copy.seed);
    program.run(&copy.steps);
    let (mut now, mut answer, mut told) = (Nanos(0), Answer::Done, Vec::new());
    while let Some(op) = program.next(now, now >= END, answer).unwrap() {
        answer = match &op {
            Op::Length(_) => Answer::Bytes(length),
            Op::Read { offset, length: wanted, .. } => Answer::Bytes(length.saturating_sub(*offset).min(*wanted)),
            _ => Answer::Done,
        };
        match op {
            Op::SleepUntil(at) if at >= END => break,
            Op::SleepUntil(at) => now = now.max(at),
            Op::Length(_) | Op::EndOfRound(_) => {}
            Op::Open { path, .. } => told.push(format!("open {path}")),
            Op::Write { offset, length, .. } => told.push(format!("write {offset:?} {length}")),
            Op::Read { offset, length, .. } => told.push(format!("read {offset} {length}")),
            Op::Submit { is_write, offset, length, depth, .. } => {
                let verb = if is_write { "write" } else { "read" };
                told.push(format!("{verb} {offset} {length} of {depth}"));
            }
            Op::Durable(call, _) => told.push(format!("{call:?}")),
            Op::Unlink(path) => told.push(format!("unlink {path}")),
            Op::CreateFile { path, .. } => told.push(format!("create {path}")),
            Op::Store { page, .. } => told.push(format!("store {page}")),
            other => told.push(format!("{other:?}").split(['(', ' ']).next().unwrap_or_default().to_owned()),
        }
        now = Nanos(now.0 + 1_000_000);
    }
    told
}

#[test]
fn a_total_that_is_no_whole_number_of_blocks_is_exact() {
    let read = operations(r#"{ read = { file = "/data/a", block = "64 KiB", total = "100 KiB" } }"#, 1 << 20);
    assert_eq!(read, ["open /data/a", "read 0 65536", "read 65536 36864"]);
    let write = operations(r#"{ write = { file = "/data/a", block = "64 KiB", total = "100 KiB" } }"#, 0);
    assert_eq!(write, ["open /data/a", "write Some(0) 65536", "write Some(65536) 36864"]);
}

#[test]
fn a_read_ends_with_the_file_or_starts_over() {
    let read = |more: &str| operations(&format!(r#"{{ read = {{ file = "/data/a", block = "4 KiB"{more} }} }}"#), 8192);
    assert_eq!(read(""), ["open /data/a", "read 0 4096", "read 4096 4096"]);
    assert_eq!(read(", count = 3"), ["open /data/a", "read 0 4096", "read 4096 4096", "read 0 4096"]);
    let empty = operations(r#"{ read = { file = "/data/a", count = 3 } }"#, 0);
    assert_eq!(empty, ["open /data/a"]);
}

#[test]
fn files_stay_open_and_keep_their_place() {
    let twice = r#"{ repeat = { times = 2, steps = [{ write = { file = "/data/a", count = 1 } }] } }"#;
    assert_eq!(operations(twice, 0), ["open /data/a", "write Some(0) 4096", "write Some(4096) 4096"]);
    let closed = format!(r#"{twice}, {{ close = {{ file = "/data/a" }} }}, {twice}"#);
    let expect = ["open /data/a", "write Some(0) 4096", "write Some(4096) 4096", "Close"];
    assert_eq!(operations(&closed, 0)[..5], [&expect[..], &["open /data/a"]].concat());
}

#[test]
fn appended_blocks_have_no_offset_and_syncs_come_after_their_blocks() {
    let append =
        r#"{ write = { file = "/data/a", order = "append", count = 4, sync = { call = "fdatasync", after = 2 } } }"#;
    let expect = ["open /data/a", "write None 4096", "write None 4096", "Fdatasync", "write None 4096"];
    assert_eq!(operations(append, 0)[..5], expect);
}

#[test]
fn a_repeated_round_removes_and_reads_the_oldest_of_its_own_files() {
    let round = r#"{ repeat = { times = 2, steps = [
        { create_files = { file = "/data/f{n}", files = 2 } }, { unlink = { file = "/data/f{n}", files = 1 } }] } },
        { read = { file = "/data/f{n}", files = 1, count = 1 } }"#;
    let expect = [
        "create /data/f0",
        "create /data/f1",
        "unlink /data/f0",
        "create /data/f2",
        "create /data/f3",
        "unlink /data/f1",
        "open /data/f2",
    ];
    assert_eq!(operations(round, 0)[..7], expect);
}

#[test]
fn files_of_other_threads_are_removed_from_number_0_in_each_round() {
    let round = r#"{ repeat = { times = 2, steps = [{ unlink = { file = "/data/f{n}", files = 2 } }] } }"#;
    let expect = ["unlink /data/f0", "unlink /data/f1", "unlink /data/f0", "unlink /data/f1"];
    assert_eq!(operations(round, 0), expect);
}

#[test]
fn a_file_gets_its_blocks_and_is_written_on_the_way() {
    let log = r#"{ fallocate = { file = "/data/log", size = "1 MiB" } },
        { write = { file = "/data/log", dsync = true, count = 1 } },
        { write = { file = "/data/table", count = 2, sync = { call = "sync_file_range", after = 2 } } },
        { sync_file_range = { file = "/data/table" } }"#;
    let expect = [
        "open /data/log",
        "Allocate",
        "open /data/log",
        "write Some(0) 4096",
        "open /data/table",
        "write Some(0) 4096",
        "write Some(4096) 4096",
        "SyncFileRange",
        "SyncFileRange",
    ];
    assert_eq!(operations(log, 0), expect);
}

#[test]
fn stores_are_within_the_mapping_and_the_mapping_is_made_once() {
    let store = operations(
        r#"{ mmap_store = { file = "/data/m", size = "16 KiB", pages = 2, order = "sequential", count = 3 } }"#,
        0,
    );
    let expect = ["open /data/m", "Map", "store 0", "store 1", "store 2", "store 3", "store 0", "store 1"];
    assert_eq!(store, expect);
}

#[test]
fn a_schedule_is_kept_and_the_program_ends_with_its_time() {
    let paced = r#"{ write = { file = "/data/a", rate = "2/s" } }"#;
    assert_eq!(operations(paced, 0).len(), 1 + 20);
    let rounds = r#"{ repeat = { every = "3s", steps = ["sync"] } }"#;
    assert_eq!(operations(rounds, 0).len(), 4);
}

#[test]
fn the_place_of_a_step_is_that_in_the_file() {
    let scenario = scenario(
        r#"[workload]
        [workload.tasks.t]
        steps = ["sync", { repeat = { times = 1, steps = [{ msync = { file = "/data/a" } }] } }]"#,
    );
    let copy = scenario.task_copies().remove(0);
    let mut program = Program::new(1);
    program.run(&copy.steps);
    let why = loop {
        match program.next(Nanos(0), false, Answer::Done) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it should fail"),
            Err(why) => break why,
        }
    };
    assert_eq!(why, "msync of /data/a, which is not mapped");
    assert_eq!(program.place(), "[1].repeat.steps[0].msync");
}

fn barriers(tasks: &str) -> Barriers {
    Barriers::of(&scenario(&format!("[workload]\nduration = \"10s\"\n{tasks}")).task_copies())
}

const TWICE: &str = r#"
[workload.tasks.a]
steps = [{ barrier = { name = "x" } }, { repeat = { times = 3, steps = [{ barrier = { name = "x" } }] } }]
[workload.tasks.b]
steps = [{ barrier = { name = "x" } }, { repeat = { times = 3, steps = [{ barrier = { name = "x" } }] } }]
"#;

#[test]
fn a_thread_that_comes_twice_is_one_party() {
    let mut barriers = barriers(TWICE);
    for round in 0..4 {
        assert_eq!(barriers.arrive(0, "x"), round);
        assert_eq!(barriers.round("x"), round, "the other one has not come");
        assert_eq!(barriers.arrive(1, "x"), round);
        assert_eq!(barriers.round("x"), round + 1);
    }
}

#[test]
fn no_barrier_waits_for_a_copy_that_ended() {
    let mut early = barriers(TWICE);
    early.end(1);
    early.arrive(0, "x");
    assert_eq!(early.round("x"), 1);
    let mut waiting = barriers(TWICE);
    waiting.arrive(0, "x");
    waiting.end(1);
    assert_eq!(waiting.round("x"), 1);
    let mut gone = barriers(TWICE);
    gone.arrive(0, "x");
    gone.end(0);
    assert_eq!(gone.round("x"), 0, "its thread waits no more");
}

#[test]
fn branches_are_threads_of_their_own() {
    let mut barriers = barriers(
        r#"[workload.tasks.a]
        steps = [{ parallel = { branches = [[{ barrier = { name = "x" } }], [{ barrier = { name = "x" } }]] } }]"#,
    );
    barriers.arrive(0, "x");
    assert_eq!(barriers.round("x"), 0);
    barriers.arrive(0, "x");
    assert_eq!(barriers.round("x"), 1);
}

#[test]
fn requests_under_way_end_before_a_sync_and_before_the_next_step() {
    let write = operations(
        r#"{ write = { file = "/data/a", block = "4 KiB", count = 3, depth = 8, sync = { call = "fdatasync", after = 2 } } }, "sync""#,
        0,
    );
    let expect =
        "open /data/a, write 0 4096 of 8, write 4096 4096 of 8, Drain, Fdatasync, write 8192 4096 of 8, Drain, Single";
    assert_eq!(write.join(", "), expect);
    let read = operations(r#"{ read = { file = "/data/a", block = "8 KiB", direct = true, depth = 2 } }"#, 20_000);
    assert_eq!(read.join(", "), "open /data/a, read 0 8192 of 2, read 8192 8192 of 2, read 16384 8192 of 2, Drain");
    let total = operations(
        r#"{ read = { file = "/data/a", block = "8 KiB", direct = true, depth = 2, total = "24 KiB" } }"#,
        16_384,
    );
    assert_eq!(total.join(", "), "open /data/a, read 0 8192 of 2, read 8192 8192 of 2, read 0 8192 of 2, Drain");
}

#[test]
fn a_moment_counts_from_the_begin_of_the_steps_and_delays_do_not_add_up() {
    let steps = r#"{ sleep_until = { at = "2s" } }, { sleep = { for = "3s" } }, { sleep_until = { at = "4s" } }, { sleep_until = { at = "9s" } }"#;
    let scenario = scenario(&format!("[workload]\nduration = \"20s\"\n[workload.tasks.t]\nsteps = [{steps}]"));
    let copy = scenario.task_copies().remove(0);
    let mut program = Program::new(copy.seed);
    program.run(&copy.steps);
    // Its setup took 7 s.
    let (mut now, mut moments) = (Nanos(7_000_000_000), Vec::new());
    while let Some(Op::SleepUntil(at)) = program.next(now, false, Answer::Done).unwrap() {
        now = now.max(at);
        moments.push(now.0 / 1_000_000_000);
    }
    assert_eq!(moments, [9, 12, 12, 16]);
}
