// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording with missing samples says so wherever it is read: how many, the longest hole, and what the kernel counted in
//! it; and clocks that do not run straight are named.

use crate::harness::floodline;
use floodline_record::record::{Event, Record, What};
use floodline_record::units::Nanos;
use floodline_testkit::Fixture;
use floodline_testkit::hostile::recording;
use serde_json::Value;

/// Thirty seconds, then four seconds in which three samples are missing and a task waits for 2.4 s; behind them the wall
/// clock is set back by a minute.
fn holed() -> (tempfile::TempDir, String) {
    let mut records = Fixture::healthy().seconds(30).records();
    let last = records.len() - 1;
    if let Some(Record::Sample(sample)) = records.last_mut() {
        sample.time.monotonic.0 += 3_000_000_000;
        sample.time.wall.0 -= 57_000_000_000;
        sample.host.psi_io_some.get_or_insert_default().0 += 2_400_000_000;
    }
    records.insert(last, Record::Event(Event { at: Nanos(0), what: What::Missed { samples: 3 } }));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("holed.flr");
    std::fs::write(&path, recording(&records)).expect("a file");
    let path = path.to_string_lossy().into_owned();
    (folder, path)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn doctor_says_what_is_missing_first_and_in_the_details() {
    let (_folder, file) = holed();
    for details in [&[][..], &["--details"]] {
        let run = floodline(&[&["doctor", &file], details].concat());
        let text = one_line(&run.stdout);
        assert!(text.contains("3 of 34 samples are missing, the longest hole is 4.00 s."), "{run}");
        assert!(text.contains("Tasks waited for I/O for 2.4"), "{run}");
        assert!(text.contains("The wall clock was set back by 60"), "{run}");
    }
    let details = one_line(&floodline(&["doctor", &file, "--details"]).stdout);
    assert!(details.contains("3 of 34 samples are missing, the longest hole is 4.00 s"), "{details}");
}

#[test]
fn json_has_fields_with_units() {
    let (_folder, file) = holed();
    let run = floodline(&["doctor", &file, "--format", "json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let observation = &report["observation"];
    assert_eq!((&observation["samples"], &observation["missing_samples"]), (&31.into(), &3.into()));
    assert_eq!((&observation["longest_hole_s"], &observation["may_hide_stall"]), (&4.0.into(), &true.into()));
    assert!(observation["holes"][0]["io_pressure_some_s"].as_f64() >= Some(2.4), "{observation}");
    assert!(observation["largest_wall_clock_jump_s"].as_f64() < Some(-59.0), "{observation}");
    let reason = "3 of 34 samples are missing, the longest hole is 4.00 s";
    let rules = report["not_checked"].as_array().expect("a list");
    let is_so = |rule: &&Value| rule["gaps"].to_string().contains(reason);
    assert!(rules.iter().filter(is_so).count() >= 3, "{}", report["not_checked"]);
}

#[test]
fn replay_shows_a_hole_where_it_is() {
    let (_folder, file) = holed();
    let run = floodline(&["replay", &file]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let at = lines.iter().position(|line| line.contains("3 samples are missing in 4.00 s")).expect("a line");
    assert!(lines[at].contains("tasks waited for I/O for 2.4"), "{run}");
    assert!(lines[at + 1].contains("the wall clock was set back by 60"), "{run}");
    assert_eq!(lines.len(), at + 3, "{run}");
    assert!(run.stderr.contains("3 of 34 samples are missing, the longest hole is 4.00 s"), "{run}");
    let run = floodline(&["replay", &file, "--format", "json"]);
    let last: Value = serde_json::from_str(run.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!((&last["missing_samples"], &last["is_back_in_time"]), (&3.into(), &false.into()));
    assert!(last["missing_io_pressure_some_s"].as_f64() >= Some(2.4), "{last}");
}

/// A sick host whose recording has other bytes in its middle than were written.
fn damaged() -> (tempfile::TempDir, String) {
    let mut bytes = recording(&floodline_testkit::incidents::dirty_cliff().records());
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4].iter_mut().for_each(|byte| *byte ^= 0x55);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged.flr");
    std::fs::write(&path, bytes).expect("a file");
    let path = path.to_string_lossy().into_owned();
    (folder, path)
}

#[test]
fn what_a_damaged_file_lost_is_in_the_report_and_nothing_is_advised() {
    let (_folder, file) = damaged();
    let run = floodline(&["doctor", &file, "--format", "json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert!(report["observation"]["missing_samples"].as_u64() > Some(0), "{}", report["observation"]);
    assert!(report["gaps"].to_string().contains("the recording is damaged"), "{}", report["gaps"]);
    let plan = &report["plan"];
    assert!(plan["now"].as_array().is_none_or(Vec::is_empty), "{plan}");
    assert!(one_line(&floodline(&["doctor", &file]).stdout).to_lowercase().contains("missing"));
    let advice = floodline(&["advise", &file]);
    assert!(one_line(&advice.stdout).starts_with("No verdict: the recording is damaged:"), "{advice}");
    assert!(!advice.stdout.contains("Do now"), "{advice}");
}

#[test]
fn a_whole_recording_says_nothing_of_holes() {
    let file = crate::harness::recording(&Fixture::healthy().seconds(30));
    for args in [&["doctor", file.as_str()][..], &["doctor", file.as_str(), "--details"], &["replay", file.as_str()]] {
        let run = floodline(args);
        assert!(!run.stdout.contains("missing") && !run.stderr.contains("missing"), "{run}");
    }
}
