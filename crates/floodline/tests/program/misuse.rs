// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people type by mistake, and files that are not what they should be: every refusal has the exit
//! code of its kind, says what was wrong without raw bytes, and what to type next.

use crate::harness::{captured, floodline, recording};
use floodline_testkit::Fixture;
use std::path::Path;

/// Runs a command that has to be refused; `expect` and every hint are in what it says.
fn check(args: &[&str], code: i32, expect: &[&str]) {
    let run = floodline(args);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{args:?}: {run}");
    for part in expect {
        assert!(run.stderr.contains(part), "{args:?} without {part:?}: {run}");
    }
    assert!(!run.stderr.contains(|c: char| c.is_control() && c != '\n'), "{run}");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_recording_without_a_whole_sample_says_how_to_make_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = recording(&Fixture::healthy().one_look());
    let bytes = std::fs::read(whole.as_str()).expect("a recording");
    let cut = folder.path().join("cut.flr");
    std::fs::write(&cut, &bytes[..bytes.len() - 60]).expect("a file");
    for command in ["doctor", "budget", "replay"] {
        check(&[command, text(&cut)], 2, &["cut.flr contains no complete sample", "hint: make a recording with: "]);
    }
}

#[test]
fn a_folder_where_a_recording_is_wanted_says_what_to_type() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = text(folder.path());
    let page = folder.path().join("page.html");
    let set = ["--set", "vm.dirty_ratio=5"];
    let commands: &[&[&str]] = &[
        &["doctor", dir],
        &["budget", dir],
        &["replay", dir],
        &["ledger", dir],
        &["twin", dir],
        &["advise", dir],
        &["report", dir, "-o", text(&page)],
        &["export", dir, "--format", "csv", "-o", text(&page)],
        &["predict", dir, set[0], set[1]],
    ];
    let is_folder = format!("floodline: {dir} is a folder, not a recording");
    for args in commands {
        check(args, 2, &[&is_folder, "hint: it contains no recording (FILE.flr); make a recording with: "]);
    }
    for name in ["b.flr", "a.flr", "notes.txt"] {
        std::fs::write(folder.path().join(name), "").expect("a file");
    }
    for args in commands {
        let preflight = format!("hint: judge a change for all of them: floodline preflight {dir} --cgroup v2");
        check(args, 2, &[&is_folder, &format!("such as {dir}/a.flr\n"), &preflight]);
    }
}

#[test]
fn a_moment_after_the_end_of_a_recording_is_said_to_be_there() {
    let file = recording(&Fixture::healthy().seconds(20));
    let late = floodline(&["replay", file.as_str(), "--at", "1h"]);
    assert_eq!(late.code, 0, "{late}");
    assert!(late.stderr.contains("the recording ends after ") && late.stderr.contains("its last sample"), "{late}");
    let inside = floodline(&["replay", file.as_str(), "--at", "5s"]);
    assert!(inside.code == 0 && inside.stderr.is_empty(), "{inside}");
}

#[test]
fn a_recording_with_a_changed_byte_says_where_and_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = std::fs::read(recording(&Fixture::healthy().one_look()).as_str()).expect("a recording");
    for (at, expect) in [(2, "the start of the recording is damaged"), (50, "the header of the recording is damaged")] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        let damaged = folder.path().join("damaged.flr");
        std::fs::write(&damaged, bytes).expect("a file");
        check(&["doctor", text(&damaged)], 2, &["damaged.flr: ", expect, "hint: copy the file again from"]);
    }
}

#[test]
fn a_mistyped_recording_has_a_near_one() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("host.flr"), "no recording").expect("a file");
    let near = format!("hint: did you mean {}?", text(&folder.path().join("host.flr")));
    check(&["doctor", text(&folder.path().join("hst.flr"))], 2, &["cannot open ", &near]);
    check(&["doctor", text(&folder.path().join("other-name.flr"))], 2, &["cannot open ", "hint: make a recording"]);
}

#[test]
fn names_of_files_are_shown_escaped() {
    for command in ["doctor", "replay", "budget"] {
        check(&[command, "/no/\u{1b}[31m\n.flr"], 2, &["cannot open /no/\\x1b[31m\\x0a.flr: "]);
    }
    for command in ["simulate", "sweep"] {
        let grid: &[&str] = if command == "sweep" { &["--grid", "kernel=6.1"] } else { &[] };
        check(&[&[command, "/no/\u{1b}[31m.toml"], grid].concat(), 2, &["cannot read /no/\\x1b[31m.toml: "]);
    }
    let idle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/healthy-idle.toml");
    check(&["simulate", text(&idle), "--set", "vm.\u{1b}[31m=1"], 2, &["vm.\\x1b[31m=1: "]);
    let folder = tempfile::tempdir().expect("a folder");
    let hostile = folder.path().join("\u{1b}[31m.flr");
    std::fs::copy(recording(&Fixture::healthy()).as_str(), &hostile).expect("a copy");
    let run = floodline(&["compare", text(&hostile), text(&hostile)]);
    assert!(run.code == 0 && run.stdout.contains("/\\x1b[31m.flr\n"), "{run}");
    let tree = captured("6.12");
    check(&["record", "--root", &tree, "-o", "/no/\u{1b}[31m"], 3, &["cannot write /no/\\x1b[31m: "]);
}

#[test]
fn a_workload_that_is_over_before_figures_are_taken_says_after_how_long() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/starved-budget.toml");
    check(
        &["simulate", text(&scenario), "--for", "2s"],
        2,
        &["over after 2 s, ", "is after 10 s", "lower workload.settle"],
    );
}

#[test]
fn a_scenario_without_end_is_read_no_further_than_one_may_be_long() {
    for command in [&["simulate", "/dev/zero"][..], &["sweep", "/dev/zero", "--grid", "kernel=6.1"]] {
        check(command, 2, &["/dev/zero:1:1: ", "a scenario has at most 16777216"]);
    }
}

#[test]
fn a_hint_names_only_options_that_the_command_has() {
    let file = recording(&Fixture::healthy().one_look());
    let tree = captured("6.12");
    let record = ["record", "--root", &tree, "--for", "0s", "-o", file.as_str()];
    check(&record, 2, &["already exists", "hint: choose another name, or add --force"]);
    let doctor = ["doctor", "--root", &tree, "--save", file.as_str()];
    check(&doctor, 2, &["already exists", "hint: choose another name\n"]);
    let folder = tempfile::tempdir().expect("a folder");
    check(&["record", "--root", &tree, "-o", text(folder.path())], 2, &["is a folder", "hint: name a file in it"]);
}

#[test]
fn a_recording_is_not_exported_onto_itself() {
    let file = recording(&Fixture::healthy().one_look());
    let before = std::fs::read(file.as_str()).expect("a recording");
    let over = ["export", file.as_str(), "--format", "jsonl", "-o", file.as_str(), "--force"];
    check(&over, 2, &["is both the input and the output", "hint: choose another name"]);
    assert_eq!(std::fs::read(file.as_str()).expect("still there"), before);
}

#[test]
fn tables_in_place_of_a_file_are_refused_before_anything_is_read() {
    let file = recording(&Fixture::healthy().one_look());
    let export = ["export", file.as_str(), "--format", "csv", "-o", file.as_str()];
    check(&export, 2, &["is a file; exporting all tables needs a folder", "hint: add --table TABLE"]);
}

#[test]
fn a_root_that_is_no_machine_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("a file");
    check(
        &["doctor", "--root", text(folder.path())],
        3,
        &[text(folder.path()), "contains no readable proc", "hint: --root"],
    );
    check(
        &["budget", "--root", text(&file)],
        3,
        &["cannot open ", "expected a directory", "hint: --root expects the folder"],
    );
}

#[test]
fn what_is_replayed_outside_of_a_recording_says_what_there_is() {
    let file = recording(&Fixture::healthy().seconds(4));
    check(
        &["replay", file.as_str(), "--from", "1h"],
        2,
        &["no sample at that time", "5 samples lie within the first 4"],
    );
}

#[test]
fn what_a_tracer_may_cost_is_a_percentage_and_nothing_for_a_recording() {
    let file = recording(&Fixture::healthy().one_look());
    for command in [&["doctor"][..], &["record", "-o", "-"]] {
        check(
            &[command, &["--trace-budget", "much"]].concat(),
            2,
            &["invalid percentage \"much\": expected a number such as 3 or 0.5"],
        );
    }
    check(&["doctor", file.as_str(), "--trace-budget", "3"], 2, &["--trace-budget", "cannot be used with"]);
}

#[test]
fn a_recording_made_from_a_damaged_one_says_what_that_lacked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let mut bytes = std::fs::read(recording(&Fixture::healthy().seconds(80)).as_str()).expect("a recording");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    let (damaged, made, again) = (path("damaged.flr"), path("made.flr"), path("again.flr"));
    std::fs::write(&damaged, bytes).expect("a file");
    for (from, to) in [(&damaged, &made), (&made, &again)] {
        let run = floodline(&["export", from, "--format", "flr", "-o", to]);
        assert_eq!((run.code, run.stderr.contains("damaged")), (0, from == &damaged), "{run}");
        let doctor = floodline(&["doctor", to, "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&doctor.stdout).expect("JSON");
        let gaps = report["gaps"].to_string();
        assert!(gaps.contains("the recording is damaged: ") && gaps.contains("with them"), "{gaps}");
    }
}
