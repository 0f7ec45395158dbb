// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder against everything that can end it: kill -9 at any moment, signals, a full disk, a
//! reader that goes away. What was recorded until then is read back, every sample of it.

use crate::harness::{Run, captured, command, floodline, outcome};
use floodline_record::record::Record;
use floodline_record::recording::{Cut, DecodeError, Decoder, Why};
use floodline_record::sample::SampleTime;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A captured machine, so that the tests need none.
static TREE: LazyLock<String> = LazyLock::new(|| captured("6.12"));

fn record<'a>(output: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["record", "--root", TREE.as_str(), "--every", "1ms", "-o", output], more].concat()
}

fn start(args: &[&str]) -> Child {
    command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the recorder starts")
}

fn wait(child: Child) -> Run {
    outcome(child.wait_with_output().expect("the recorder ends"))
}

/// Times of all samples, and what is missing.
fn times(bytes: &[u8]) -> (Vec<SampleTime>, Vec<Cut>) {
    let mut times = Vec::new();
    let mut decoder = match Decoder::new(bytes) {
        // Killed within the first write.
        Err(DecodeError::Empty | DecodeError::NoHeader) => return (times, Vec::new()),
        decoder => decoder.expect("the recording opens"),
    };
    for record in decoder.by_ref() {
        if let Record::Sample(sample) = record.expect("memory can be read") {
            times.push(sample.time);
        }
    }
    (times, decoder.cuts().to_vec())
}

/// Waits until a file has this many bytes.
fn until_file_has(path: &Path, bytes: u64) {
    let end = Instant::now() + Duration::from_secs(20);
    while std::fs::metadata(path).map_or(0, |file| file.len()) < bytes {
        assert!(Instant::now() < end, "the recorder wrote nothing for 20 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_recorder_killed_at_200_points_leaves_every_sample_it_wrote() {
    let folder = tempfile::tempdir().expect("a folder for recordings");
    let mut longest = 0;
    std::thread::scope(|scope| {
        let killers: Vec<_> = (0..2u64)
            .map(|part| {
                let folder = folder.path();
                scope.spawn(move || (part..200).step_by(2).map(|point| killed_at(folder, point)).max())
            })
            .collect();
        for killer in killers {
            longest = longest.max(killer.join().expect("no assertion failed").unwrap_or(0));
        }
    });
    assert!(longest > 64, "no run came past a keyframe: {longest} samples");
}

/// Kills a recorder once its file has grown to a size that `point` says, and reads the file. Returns
/// how many samples it had.
fn killed_at(folder: &Path, point: u64) -> usize {
    let path = folder.join(format!("{point}.flr"));
    let mut child = start(&record(path.to_str().expect("UTF-8"), &[]));
    // Most within the first frames, the last behind the second keyframe.
    until_file_has(&path, 1 + point * point * 4 / 5);
    std::thread::sleep(Duration::from_micros(point * 7919 % 2000));
    // What is in the file before the kill was written completely or is the frame in progress.
    let before = std::fs::read(&path).expect("the file is there");
    child.kill().expect("it is still running");
    child.wait().expect("it ends");
    let after = std::fs::read(&path).expect("the file is there");
    std::fs::remove_file(&path).expect("the file is ours");
    assert!(after.starts_with(&before), "the file only grows");

    let (had, _) = times(&before);
    let (has, cuts) = times(&after);
    assert!(has.starts_with(&had), "{} samples before the kill, {} after", had.len(), has.len());
    assert!(has.is_sorted_by(|a, b| a.monotonic < b.monotonic));
    let [cut] = &cuts[..] else {
        assert!(cuts.is_empty() && has.is_empty(), "a killed recorder leaves one cut: {cuts:?}");
        return 0;
    };
    match cut.why {
        Why::NotClosed => assert_eq!(cut.bytes, 0),
        // Only the frame in progress: its bytes alone are missing, and they are at the end.
        Why::Truncated => assert_eq!((cut.after, cut.before), (has.last().copied(), None)),
        why => panic!("{why:?}: {cut}"),
    }
    has.len()
}

#[test]
fn signals_end_a_recording_that_is_whole() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let folder = tempfile::tempdir().expect("a folder for recordings");
        let path = folder.path().join("host.flr");
        let child = start(&record(path.to_str().expect("UTF-8"), &["--for", "1h"]));
        until_file_has(&path, 7500);
        kill_process(Pid::from_child(&child), signal).expect("it is still running");
        let run = wait(child);
        assert_eq!(run.code, 0, "{signal:?}: {run}");
        let (times, cuts) = times(&std::fs::read(&path).expect("the file is there"));
        assert_eq!(cuts, []);
        assert!(run.stderr.contains(&format!("recorded {} sample", times.len())), "{run}");
    }
}

#[test]
fn a_recording_has_the_length_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder for recordings");
    let path = folder.path().join("host.flr");
    let path = path.to_str().expect("UTF-8");
    let run = floodline(&["record", "--root", TREE.as_str(), "--for", "200ms", "--every", "50ms", "-o", path]);
    assert_eq!(run.code, 0, "{run}");
    let bytes = std::fs::read(path).expect("the file is there");
    let (times, cuts) = times(&bytes);
    assert_eq!(cuts, []);
    let missed: u64 = missed(&bytes);
    assert_eq!(times.len() as u64 + missed, 5, "{run}");

    let again = floodline(&["record", "--root", TREE.as_str(), "--for", "0s", "-o", path]);
    assert_eq!(again.code, 2, "{again}");
    assert!(again.stderr.contains("already exists"), "{again}");
    assert_eq!(std::fs::read(path).expect("the file is there"), bytes);
    let forced = floodline(&["record", "--root", TREE.as_str(), "--for", "0s", "-o", path, "--force"]);
    assert_eq!(forced.code, 0, "{forced}");
    assert!(forced.stderr.contains("recorded 1 sample to "), "{forced}");
}

#[test]
fn counters_of_cgroups_are_read_as_often_as_asked_for() {
    // Number of samples, and of those that read memory.stat.
    let recorded = |more: &[&str]| {
        let args = ["record", "--root", TREE.as_str(), "--for", "200ms", "--every", "40ms", "-o", "-"];
        let output = command(&[&args, more].concat()).output().expect("it runs");
        let records = Decoder::new(output.stdout.as_slice()).expect("the recording opens").map(Result::unwrap);
        let samples = records.filter_map(|record| match record {
            Record::Sample(sample) => Some(sample.cgroups.rows().iter().any(|(_, row)| row.file_dirty.is_some())),
            _ => None,
        });
        let reads: Vec<bool> = samples.collect();
        (reads.len(), reads.into_iter().filter(|read| *read).count())
    };
    let (samples, reads) = recorded(&[]);
    assert!(samples > 1 && reads == samples, "{reads} of {samples}");
    let (samples, reads) = recorded(&["--stat-every", "2s"]);
    assert!(samples > 1 && reads == 1, "{reads} of {samples}");

    let run = floodline(&["record", "--stat-every", "3s", "-o", "-"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("the maximum is 2s"), "{run}");
}

/// Samples that the recorder says it missed.
fn missed(bytes: &[u8]) -> u64 {
    use floodline_record::record::{Event, What};
    let records = Decoder::new(bytes).expect("the recording opens");
    let missed = records.map(|record| match record {
        Ok(Record::Event(Event { what: What::Missed { samples }, .. })) => samples,
        _ => 0,
    });
    missed.sum()
}

#[test]
fn a_recorder_that_stands_still_says_which_samples_it_missed() {
    let folder = tempfile::tempdir().expect("a folder for recordings");
    let path = folder.path().join("host.flr");
    let args =
        ["record", "--root", TREE.as_str(), "--every", "50ms", "--for", "1h", "-o", path.to_str().expect("UTF-8")];
    let child = start(&args);
    until_file_has(&path, 8000);
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP).expect("it runs");
    std::thread::sleep(Duration::from_millis(1500));
    let before = std::fs::metadata(&path).expect("a file").len();
    kill_process(pid, Signal::CONT).expect("it stands still");
    until_file_has(&path, before + 1000);
    kill_process(pid, Signal::INT).expect("it runs");
    assert_eq!(wait(child).code, 0);
    use floodline_record::record::{Event, What};
    let bytes = std::fs::read(&path).expect("a file");
    let records: Vec<Record> =
        Decoder::new(&bytes[..]).expect("it opens").map(|record| record.expect("it is whole")).collect();
    let is_hole = |record: &Record| matches!(record, Record::Event(Event { what: What::Missed { samples: 20.. }, .. }));
    let hole = records.iter().position(is_hole).expect("the hole is recorded");
    let time = |record: &Record| match record {
        Record::Sample(sample) => Some(sample.time.monotonic),
        _ => None,
    };
    let last = records[..hole].iter().rev().find_map(time).expect("a sample before it");
    let next = records[hole..].iter().find_map(time).expect("a sample after it");
    let Record::Event(Event { at, what: What::Missed { samples } }) = &records[hole] else { unreachable!() };
    // What was missed lies between the two samples, and fills the time between them.
    assert!(last < *at && *at <= next, "{last:?} {at:?} {next:?}");
    let missing = (next.0 - last.0) / 50_000_000;
    assert!(missing >= 28 && samples.abs_diff(missing - 1) <= 1, "{samples} of {missing}");
}

#[test]
fn a_full_disk_is_told() {
    let run = floodline(&record("/dev/full", &[]));
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains("cannot write /dev/full: No space left on device"), "{run}");
}

#[test]
fn a_recording_that_meets_a_size_limit_keeps_its_samples() {
    let folder = tempfile::tempdir().expect("a folder for recordings");
    let path = folder.path().join("host.flr");
    let args = record(path.to_str().expect("UTF-8"), &["--for", "1h"]);
    let mut shell = std::process::Command::new("/bin/sh");
    // Blocks of 512 bytes.
    shell.env_clear().args(["-c", "ulimit -f 40 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_floodline")]).args(args);
    let run = outcome(shell.output().expect("the shell starts"));
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains("File too large"), "{run}");
    let bytes = std::fs::read(&path).expect("the file is there");
    let (times, cuts) = times(&bytes);
    assert!(times.len() > 1, "{} samples", times.len());
    assert!(run.stderr.contains(&format!("contains {} samples, all complete", times.len())), "{run}");
    // The torn frame was taken off, so nothing is missing but the mark that the recording is whole.
    assert_eq!(cuts.iter().map(|cut| (cut.why, cut.bytes)).collect::<Vec<_>>(), [(Why::NotClosed, 0)]);
}

#[test]
fn a_reader_that_goes_away_ends_the_recording_without_a_failure() {
    let mut child = start(&record("-", &["--for", "1h"]));
    let mut taken = vec![0; 9000];
    child.stdout.take().expect("it is piped").read_exact(&mut taken).expect("that much is written");
    let run = wait(child);
    assert_eq!(run.code, 0, "{run}");
    let (times, _) = times(&taken);
    assert!(!times.is_empty());
    assert!(run.stderr.starts_with("floodline: the reader closed standard output after "), "{run}");
    assert_eq!(run.stderr.lines().count(), 1, "{run}");
}

#[test]
fn a_recording_can_be_read_while_it_is_made() {
    let mut recorder = start(&record("-", &["--for", "300ms"]));
    let stream = recorder.stdout.take().expect("it is piped");
    let replay = command(&["replay", "-", "--format", "json"]).stdin(stream).output().expect("it starts");
    let (recorder, replay) = (wait(recorder), outcome(replay));
    assert_eq!((recorder.code, replay.code), (0, 0), "{recorder}\n{replay}");
    let samples = replay.stdout.lines().count();
    assert!(samples > 0, "{replay}");
    assert!(recorder.stderr.contains(&format!("recorded {samples} sample")), "{recorder}\n{samples} replayed");
}
