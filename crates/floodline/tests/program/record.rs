// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorders and how they end: the time is up, Ctrl-C, kill -9, a full disk, a reader that went away.
//! Whatever ends one, what it had recorded can be read.

use crate::harness::{captured, command, floodline};
use floodline_core::record::Record;
use floodline_core::recording::{Decoder, Why};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Recorders killed at a random moment.
const KILLS: u64 = 200;

/// What a recording holds.
struct Held {
    samples: usize,
    missing: Option<Why>,
}

fn held(path: &Path) -> Held {
    let mut decoder = Decoder::new(File::open(path).expect("the recording is there")).expect("it opens");
    let mut last = 0;
    let mut samples = 0;
    for record in decoder.by_ref() {
        if let Record::Sample(sample) = record.expect("it reads") {
            assert!(sample.time.monotonic.0 > last, "samples are in order of time");
            last = sample.time.monotonic.0;
            samples += 1;
        }
    }
    Held { samples, missing: decoder.cut().map(|cut| cut.why) }
}

fn recorder(path: &Path, every: &str) -> Child {
    let root = captured("6.12");
    let path = path.to_str().expect("a path of text");
    let mut command = command(&["record", "--root", &root, "--every", every, "-o", path]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("it is still there");
}

/// Waits until a file is at least this long.
fn wait_for_bytes(path: &Path, bytes: u64) {
    let until = Instant::now() + Duration::from_secs(20);
    while std::fs::metadata(path).map_or(0, |metadata| metadata.len()) < bytes {
        assert!(Instant::now() < until, "the recorder writes nothing");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_recorder_killed_at_any_moment_leaves_a_readable_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    // A fixed sequence: a failure repeats.
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut with_samples = 0;
    for turn in 0..KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let path = folder.path().join(format!("{turn}.flr"));
        let mut child = recorder(&path, "1ms");
        // Past the header, which is written first.
        wait_for_bytes(&path, 2000);
        std::thread::sleep(Duration::from_micros((random >> 33) % 30_000));
        // Samples that are whole while the recorder still runs: none of them may be lost.
        let at_least = held(&path).samples;
        signal(&child, Signal::KILL);
        child.wait().expect("it ends");
        let held = held(&path);
        assert!(held.samples >= at_least, "turn {turn}: {} of at least {at_least} samples", held.samples);
        assert!(
            matches!(held.missing, Some(Why::NotClosed | Why::Truncated)),
            "turn {turn}: nothing but the torn end is missing, not {:?}",
            held.missing
        );
        with_samples += usize::from(held.samples > 0);
    }
    assert!(with_samples as u64 > KILLS / 2, "most recorders got to a sample: {with_samples}");
}

#[test]
fn ctrl_c_and_a_request_to_end_close_the_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, wish) in [("int", Signal::INT), ("term", Signal::TERM), ("hup", Signal::HUP)] {
        let path = folder.path().join(name);
        let mut child = recorder(&path, "10ms");
        wait_for_bytes(&path, 4000);
        signal(&child, wish);
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{name}");
        let held = held(&path);
        assert!(held.samples > 0 && held.missing.is_none(), "{name}: {:?}", held.missing);
    }
}

#[test]
fn a_full_disk_is_an_error_that_says_where() {
    let root = captured("6.12");
    let run = floodline(&["record", "--root", &root, "--for", "0s", "--force", "-o", "/dev/full"]);
    assert_eq!(run.code, 3);
    assert!(run.stderr.contains("cannot write /dev/full: No space left"), "{run}");
}

#[test]
fn a_file_that_may_not_grow_keeps_its_whole_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("limited.flr");
    let mut limited = std::process::Command::new("sh");
    // 16 blocks of 512 bytes.
    limited.env_clear().arg("-c").arg("ulimit -f 16; exec \"$@\"").arg("sh").arg(env!("CARGO_BIN_EXE_floodline"));
    limited.args(["record", "--root", &captured("6.12"), "--every", "1ms", "-o"]).arg(&path);
    let output = limited.output().expect("a shell");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("File too large") && stderr.contains("are whole"), "{stderr}");
    let held = held(&path);
    assert!(held.samples > 0, "it had recorded something");
    assert_eq!(held.missing, Some(Why::NotClosed), "the torn end was cut off");
}

#[test]
fn a_reader_that_goes_away_ends_the_recorder_quietly() {
    let root = captured("6.12");
    let mut command = command(&["record", "--root", &root, "--every", "1ms", "-o", "-"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut start = [0; 64];
    child.stdout.take().expect("its output").read_exact(&mut start).expect("it writes");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_recording_goes_through_pipes_both_ways() {
    let root = captured("6.12");
    let mut command = command(&["record", "--root", &root, "--for", "20ms", "--every", "10ms", "-o", "-"]);
    let recording = command.output().expect("the program runs");
    assert_eq!(recording.status.code(), Some(0));
    let mut export = crate::harness::command(&["export", "-", "--format", "csv", "--table", "disk"]);
    let mut child = export.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("its input");
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, &recording.stdout));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("all of it is read");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().filter(|line| line.contains(",vda,")).count(), 3, "{text}");
}

#[test]
fn an_existing_recording_is_not_overwritten_unasked() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("a path of text");
    let run = floodline(&["record", "--root", &captured("6.12"), "--for", "0s", "-o", path]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("exists already") && run.stderr.contains("--force"), "{run}");
}

#[test]
fn what_is_no_recording_is_refused_by_name() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("a path of text");
    for command in ["replay", "export"] {
        let mut args = vec![command, path];
        if command == "export" {
            args.extend(["--format", "jsonl"]);
        }
        let run = floodline(&args);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains("the recording is empty") && run.stderr.contains("floodline record"), "{run}");
    }
}

#[test]
fn a_replay_shows_a_line_per_sample_and_one_moment_in_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("short.flr");
    let path = path.to_str().expect("a path of text");
    let run = floodline(&["record", "--root", &captured("6.12"), "--for", "40ms", "--every", "20ms", "-o", path]);
    assert_eq!(run.code, 0, "{run}");
    let lines = floodline(&["replay", path]);
    assert_eq!(lines.stdout.lines().count(), 4, "{lines}");
    assert!(lines.stdout.lines().all(|line| line.chars().count() <= 80), "{lines}");
    let moment = floodline(&["replay", path, "--at", "20ms"]);
    assert!(moment.stdout.contains("thresholds: background"), "{moment}");
    let late = floodline(&["replay", path, "--from", "1h"]);
    assert_eq!(late.code, 2);
    assert!(late.stderr.contains("no sample at that time"), "{late}");
}
