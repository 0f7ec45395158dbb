// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline doctor` and `floodline explain` from outside: what is printed, where, and the exit code.

use crate::harness::{floodline, recording};
use floodline_testkit::Fixture;
use floodline_testkit::incidents::{dirty_cliff, slow_journal};

#[test]
fn a_recorded_incident_is_named_and_fails() {
    let file = recording(&slow_journal());
    let run = floodline(&["doctor", file.as_str(), "--rule", "dominant-writer"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.starts_with("CRITICAL on web-1: systemd-journal[300] makes 80 % of all"), "{run}");
    assert_eq!(run.stderr, "");
}

#[test]
fn the_exit_code_follows_fail_on() {
    let (cliff, healthy) = (recording(&dirty_cliff()), recording(&Fixture::healthy()));
    let check = |file: &str, fail_on: &str, expect: i32| {
        let run = floodline(&["doctor", file, "--rule", "dirty-cliff", "--fail-on", fail_on]);
        assert_eq!(run.code, expect, "{run}");
    };
    check(cliff.as_str(), "critical", 1);
    check(cliff.as_str(), "info", 1);
    check(cliff.as_str(), "never", 0);
    check(healthy.as_str(), "info", 0);
}

#[test]
fn json_is_one_line_with_the_published_schema() {
    let file = recording(&dirty_cliff());
    let run = floodline(&["doctor", file.as_str(), "--rule", "dirty-cliff", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(report["schema"], "floodline.doctor/1");
    assert_eq!(report["findings"][0]["rule"], "dirty-cliff");
    assert_eq!(report["findings"][0]["plan"][0]["write"], "/proc/sys/vm/dirty_background_bytes");
    assert_eq!(run.stdout.lines().count(), 1);
}

#[test]
fn a_rule_that_does_not_exist_is_answered_with_the_one_that_was_meant() {
    let file = recording(&Fixture::healthy());
    for args in [&["doctor", file.as_str(), "--rule", "dirty-clif"][..], &["explain", "dirty-clif"]] {
        let run = floodline(args);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains("did you mean dirty-cliff?"), "{run}");
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn every_rule_has_a_page() {
    let list = floodline(&["explain"]);
    assert_eq!(list.code, 0);
    for rule in floodline_analysis::diagnose::rules::RULES {
        assert!(list.stdout.contains(rule.name), "{list}");
        let page = floodline(&["explain", rule.name]);
        assert_eq!(page.code, 0, "{page}");
        assert!(page.stdout.starts_with(rule.name), "{page}");
    }
}

#[test]
fn what_is_no_recording_is_a_usage_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.flr");
    std::fs::write(&file, "not a recording").expect("a file");
    for path in [file.as_path(), &folder.path().join("missing.flr")] {
        let run = floodline(&["doctor", &path.to_string_lossy()]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains("hint: "), "{run}");
    }
}

#[test]
fn captured_trees_of_every_kernel_are_diagnosed_in_one_look() {
    for tree in floodline_captured::trees() {
        let run = floodline(&["doctor", "--root", &tree.to_string_lossy(), "--fail-on", "never"]);
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stdout.contains("one sample"), "{run}");
        for line in run.stdout.lines() {
            assert!(line.chars().count() <= 80 || line.contains('\''), "{line}");
        }
        let whole = floodline(&["doctor", "--root", &tree.to_string_lossy(), "--details", "--fail-on", "never"]);
        assert!(whole.stdout.contains("1 look."), "{whole}");
        assert!(whole.stdout.lines().count() > run.stdout.lines().count(), "{whole}");
    }
}

#[test]
fn what_was_observed_can_be_saved_and_diagnosed_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("saved.flr").to_string_lossy().into_owned();
    let tree = floodline_captured::trees().remove(0).to_string_lossy().into_owned();
    let json = ["--format", "json", "--fail-on", "never"];
    let first = floodline(&[&["doctor", "--root", &tree, "--save", &saved][..], &json].concat());
    assert_eq!(first.code, 0, "{first}");
    assert!(first.stderr.contains("recorded 1 sample"), "{first}");
    let second = floodline(&[&["doctor", &saved][..], &json].concat());
    assert_eq!(first.stdout, second.stdout);
    let again = floodline(&["doctor", "--root", &tree, "--save", &saved]);
    assert_eq!(again.code, 2, "an existing file is not overwritten: {again}");
}

#[test]
fn a_folder_that_is_no_machine_cannot_be_observed() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = floodline(&["doctor", "--root", &folder.path().to_string_lossy()]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains("hint: "), "{run}");
}

#[test]
fn a_file_is_read_and_not_observed() {
    let file = recording(&Fixture::healthy());
    let run = floodline(&["doctor", file.as_str(), "--for", "5s"]);
    assert_eq!(run.code, 2, "{run}");
}

#[test]
fn capabilities_name_every_source_and_what_is_lost_without_it() {
    for tree in floodline_captured::trees() {
        let tree = tree.to_string_lossy();
        let run = floodline(&["doctor", "--capabilities", "--root", &tree]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
        assert!(run.stdout.contains("tracefs is not mounted"), "{run}");
        let run = floodline(&["doctor", "--capabilities", "--root", &tree, "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert_eq!(report["schema"], "floodline.capabilities/1");
        let sources = report["sources"].as_array().expect("sources");
        assert_eq!(sources.len(), floodline_record::gap::Source::ALL.len());
        for source in sources {
            let explained = source["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty());
            let is_missing = source["state"] == "missing" || source["state"] == "partial";
            assert_eq!(explained, is_missing, "{source}");
        }
    }
    let run = floodline(&["doctor", "host.flr", "--capabilities"]);
    assert_eq!(run.code, 2, "{run}");
}
