// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings from hand to hand: pipes, refusals, replay. How recorders end is in `recorder`.

use crate::harness::{captured, command, floodline, recording};
use floodline_testkit::Fixture;
use std::process::Stdio;

#[test]
fn a_recording_goes_through_pipes_both_ways() {
    let root = captured("6.12");
    let mut record = command(&["record", "--root", &root, "--for", "20ms", "--every", "10ms", "-o", "-"]);
    let recorded = record.output().expect("the program runs");
    assert_eq!(recorded.status.code(), Some(0));
    let mut export = command(&["export", "-", "--format", "csv", "--table", "disk"]);
    let mut child = export.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("its input");
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, &recorded.stdout));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("all of it is read");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().any(|line| line.contains(",vda,")), "{text}");
}

#[test]
fn an_existing_recording_is_not_overwritten_unasked() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("a path of text");
    let run = floodline(&["record", "--root", &captured("6.12"), "--for", "0s", "-o", path]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("already exists") && run.stderr.contains("--force"), "{run}");
}

#[test]
fn what_is_no_recording_is_refused_by_name() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("a path of text");
    for name in ["replay", "export"] {
        let mut args = vec![name, path];
        if name == "export" {
            args.extend(["--format", "jsonl"]);
        }
        let run = floodline(&args);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains("the recording is empty") && run.stderr.contains("floodline record"), "{run}");
    }
}

#[test]
fn a_replay_shows_a_line_per_sample_and_one_moment_in_full() {
    let file = recording(&Fixture::healthy().seconds(2));
    let path = file.as_str();
    let lines = floodline(&["replay", path]);
    assert_eq!(lines.stdout.lines().count(), 4, "{lines}");
    assert!(lines.stdout.lines().all(|line| line.chars().count() <= 80), "{lines}");
    let moment = floodline(&["replay", path, "--at", "1s"]);
    assert!(moment.stdout.contains("thresholds: background"), "{moment}");
    let late = floodline(&["replay", path, "--from", "1h"]);
    assert_eq!(late.code, 2);
    assert!(late.stderr.contains("no sample at that time"), "{late}");
}

#[test]
fn a_minus_is_standard_output_of_an_export_as_it_is_of_a_record() {
    let file = recording(&Fixture::healthy().one_look());
    let export = ["export", file.as_str(), "--format", "jsonl"];
    let (run, to_minus) = (floodline(&export), floodline(&[&export[..], &["-o", "-"]].concat()));
    assert!(run.code == 0 && !run.stdout.is_empty(), "{run}");
    assert_eq!(run.stdout, to_minus.stdout);
}
