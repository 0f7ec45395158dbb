// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline predict` on recordings that the simulator made: what people see, and what is refused.

use crate::harness::{floodline, recording};
use floodline_record::units::{Bytes, Count};
use floodline_testkit::secs;
use std::path::{Path, PathBuf};

fn scenario(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(format!("{name}.toml")).display().to_string()
}

/// Records a variant of a scenario in the model.
pub(crate) fn recorded(folder: &Path, name: &str, variant: &str) -> PathBuf {
    let file = folder.join(format!("{name}-{variant}.flr"));
    let text = file.display().to_string();
    let run = floodline(&["simulate", &scenario(name), "--variant", variant, "--save", &text]);
    assert!(file.exists(), "{run}");
    file
}

#[test]
fn a_prediction_opens_with_a_sentence_and_its_back_test() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recorded(folder.path(), "starved-budget", "incident-short").display().to_string();
    let asked = ["predict", &file, "--finding", "starved-dirty-budget"];
    let run = floodline(&asked);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.lines().count() <= 25, "{run}");
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80), "{run}");
    let second = run.stdout.split("\n\n").nth(1);
    assert!(second.is_some_and(|paragraph| paragraph.starts_with("Back-test: ")), "{run}");
    let json = floodline(&[&asked[..], &["--format", "json"]].concat());
    let told: serde_json::Value = serde_json::from_str(&json.stdout).expect("valid JSON");
    assert_eq!(told["schema"], "floodline.predict/2");
    let array = |key: &str| told[key].as_array().expect("a list").clone();
    assert!(array("settings").iter().any(|setting| setting["key"] == "vm.dirty_ratio"), "{told}");
    assert!(array("vanish").iter().any(|seen| seen["rule"] == "starved-dirty-budget"), "{told}");
    for row in array("rows") {
        let of = |key: &str| row[key].as_f64().expect("a number");
        assert!(of("low") <= of("then") && of("then") <= of("high"), "{row}");
    }
    let budget = array("rows").into_iter().find(|row| row["figure"] == "smallest_budget_bytes").expect("a budget");
    assert!(budget["then"].as_f64() > budget["now"].as_f64().map(|now| 2.0 * now), "{budget}");
}

#[test]
fn a_finding_that_is_not_there_is_refused_with_those_that_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recorded(folder.path(), "starved-budget", "incident-short").display().to_string();
    let other = floodline(&["predict", &file, "--finding", "overlay-umount-flush"]);
    assert_eq!(other.code, 2, "{other}");
    assert!(other.stderr.contains("hint: found here: starved-dirty-budget"), "{other}");
    // A disk that stood still is found, and doctor prints no change for it.
    let work = |t: f64| t - (t - 30.0).clamp(0.0, 3.0);
    let host = floodline_testkit::Fixture::healthy().seconds(60).disk("sda", move |t, row| {
        row.writes = Some(Count((200.0 * work(t)) as u64));
        row.written = Some(Bytes((1e6 * work(t)) as u64));
        (row.in_flight, row.flushes) = (Some(Count(6)), Some(Count((20.0 * work(t)) as u64)));
        (row.io_time, row.weighted_io_time) = (Some(secs(0.95 * t)), Some(secs(5.0 * t)));
    });
    let file = recording(&host);
    let stalled = floodline(&["predict", file.as_str(), "--finding", "stalled-device"]);
    assert_eq!(stalled.code, 2, "{stalled}");
    let what = "stalled-device is found, and doctor prints no change for it: No setting of writeback helps. Read the kernel log";
    assert!(stalled.stderr.contains(what), "{stalled}");
    assert!(stalled.stderr.contains("hint: give the change with --set KEY=VALUE"), "{stalled}");
}

#[test]
fn what_cannot_be_predicted_is_refused_with_what_to_type() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recorded(folder.path(), "starved-budget", "incident-short").display().to_string();
    let check = |args: &[&str], says: &str| {
        let run = floodline(&[&["predict"], args].concat());
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(says) && run.stderr.contains("hint:"), "{run}");
    };
    check(&[&file], "no change is given");
    check(&[&file, "--set", "vm.dirty_bytes"], "expected KEY=VALUE");
    check(&[&file, "--set", "vm.dirty_bytes=1"], "the kernel refuses 1 here");
    check(&[&file, "--set", "vm.dirty_bytes=100M"], "nothing changes");
    check(&[&file, "--set", "bdi/9:9/max_ratio=1"], "no device");
    check(&[&file, "--set", "vm.dirty_bytes=64M", "--set", "vm.dirty_ratio=5"], "set the same");
    check(&[&file, "--set", "cgroup/box0/memory.max=0"], "would kill");
    check(&[&file, "--set", "cgroup/box0/memory.max=1"], "would kill");
    check(&[&file, "--kernel", "3.10"], "older than");
    check(&[&file, "--finding", "dirty-clif"], "unknown rule");
    check(&[&file, "--set", "vm.dirty_bytez=64M"], "did you mean vm.dirty_bytes?");
    check(&[&file, "--kernel", "6.99"], "Linux 6.99 was never released: 6.19 was followed by 7.0");
    check(&[&file, "--kernel", "x"], "keys: vm.dirty_bytes");
    check(&["/nonexistent.flr", "--kernel", "6.12"], "cannot open");
}

#[test]
fn a_recording_that_is_too_short_is_refused_with_what_to_record() {
    let check = |fixture: &floodline_testkit::Fixture, says: &str| {
        let file = recording(fixture);
        let run = floodline(&["predict", file.as_str(), "--set", "vm.dirty_ratio=5"]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(says) && run.stderr.contains("floodline record"), "{run}");
    };
    check(&floodline_testkit::Fixture::healthy().one_look(), "too short");
}
