// SPDX-License-Identifier: MIT OR Apache-2.0
//! The incidents and captured kernels from end to end: written to a file, read by the program, and
//! answered. That each rule is right is tested beside the rule; here the wiring is.

use crate::harness::{Run, command, floodline, outcome, recording};
use floodline_analysis::diagnose::rules::RULES;
use floodline_captured::tree as captured;
use floodline_testkit::incidents::INCIDENTS;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// What the program says of a recording, as JSON.
fn doctor(recording: &str) -> (Run, Value) {
    let run = floodline(&["doctor", recording, "--format", "json", "--fail-on", "critical"]);
    let report = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}\n{run}"));
    (run, report)
}

/// One of the lists of a report.
fn list<'a>(report: &'a Value, name: &str) -> &'a [Value] {
    report[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The answer to each rule, as `rule: severity: summary`, `rule: clear: reason`, `rule: not checked: source`.
fn answers(report: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = |one: &Value| format!("{}: {}: {}", text(&one["rule"]), text(&one["severity"]), text(&one["summary"]));
    let clear = |one: &Value| format!("{}: clear: {}", text(&one["rule"]), text(&one["reason"]));
    let blind = |one: &Value| format!("{}: not checked: {}", text(&one["rule"]), text(&one["gaps"][0]["source"]));
    list(report, "findings")
        .iter()
        .map(found)
        .chain(list(report, "ruled_out").iter().map(clear))
        .chain(list(report, "not_checked").iter().map(blind))
        .collect()
}

/// Looks at a captured tree once and checks the beginnings of answers to some rules.
fn check(tree: &Path, expect: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tree.flr");
    let (tree, file) = (tree.to_string_lossy(), file.to_string_lossy());
    let recorded = floodline(&["record", "--root", &tree, "--for", "0s", "-o", &file]);
    assert_eq!(recorded.code, 0, "{tree}: {recorded}");
    let (run, report) = doctor(&file);
    assert_eq!(run.code, 0, "{tree}: {run}");
    let answers = answers(&report);
    for rule in RULES {
        let is_its = |answer: &&String| answer.split(": ").next() == Some(rule.name);
        assert!(answers.iter().any(|answer| is_its(&answer)), "{tree}: no answer to {}", rule.name);
    }
    for beginning in expect {
        assert!(answers.iter().any(|answer| answer.starts_with(beginning)), "{tree}: {beginning}\n{answers:#?}");
    }
}

#[test]
fn every_incident_is_named_first_and_every_cure_is_believed() {
    for incident in INCIDENTS {
        let file = recording(&(incident.make)());
        let (run, report) = doctor(file.as_str());
        let first =
            list(&report, "findings").first().map(|finding| (finding["rule"].clone(), finding["severity"].clone()));
        match incident.rule {
            Some(rule) => {
                assert_eq!(run.code, 1, "{}: {run}", incident.name);
                assert_eq!(first, Some((rule.into(), "critical".into())), "{}: {run}", incident.name);
            }
            None => assert_eq!(run.code, 0, "{}: {run}", incident.name),
        }
    }
}

#[test]
fn captured_kernels_are_healthy_and_say_what_was_not_seen() {
    for name in ["5.10", "6.1", "6.12", "6.12-bytes", "6.12-strict", "6.12.43", "7.2", "7.2-bytes"] {
        check(
            &captured(name),
            &[
                "starved-dirty-budget: clear: 11 cgroups with budgets of their own",
                "wrapped-dirty-counter: clear:",
                "overlay-umount-flush: clear: at the last sample, unmounting an overlay on vdb would have written",
                "buffered-loop-device: info: Writes to loop0 will be cached twice",
                "cgroup-writeback-missing: info: The I/O weights of 1 cgroup have no effect",
                "fsync-behind-writeback: not checked: /proc/diskstats",
            ],
        );
    }
    check(&captured("5.10"), &["inode-switch-storm: clear: this kernel does not switch inodes"]);
    check(&captured("6.12.43"), &["inode-switch-storm: not checked: /proc/PID/stat"]);
}

#[test]
fn on_version_1_no_budget_is_divided_and_limits_bound_no_dirty_pages() {
    check(
        &captured("6.1-v1"),
        &[
            "starved-dirty-budget: clear: no per-cgroup budget exists here",
            "cgroup-writeback-missing: info: Write limits of 1 cgroup do not apply to buffered writes: cgroups are hybrid",
            "foreign-inode-writeback: clear: no cgroup writeback here",
            "inode-switch-storm: clear: no cgroup writeback here",
        ],
    );
}

#[test]
fn a_captured_kernel_with_tiny_bytes_has_starved_budgets() {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&captured("6.12-bytes"), folder.path());
    let settings = [("dirty_bytes", "4194304"), ("dirty_background_bytes", "2097152")];
    for (name, value) in settings {
        fs::write(folder.path().join("proc/sys/vm").join(name), format!("{value}\n")).expect("a setting");
    }
    let vmstat = folder.path().join("proc/vmstat");
    let text = fs::read_to_string(&vmstat).expect("vmstat");
    let thresholds = text.lines().map(|line| match line.split_once(' ') {
        Some(("nr_dirty_threshold", _)) => "nr_dirty_threshold 1024\n".to_owned(),
        Some(("nr_dirty_background_threshold", _)) => "nr_dirty_background_threshold 512\n".to_owned(),
        _ => format!("{line}\n"),
    });
    fs::write(&vmstat, thresholds.collect::<String>()).expect("vmstat");
    check(
        folder.path(),
        &["starved-dirty-budget: warning: vm.dirty_bytes = 4.00 MiB leaves", "wrapped-dirty-counter: clear:"],
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a listing") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

#[test]
fn in_a_locale_without_utf8_nothing_but_ascii_is_printed() {
    for incident in INCIDENTS.iter().take(3) {
        let file = recording(&(incident.make)());
        for arguments in [&["--details"][..], &["--format", "json"]] {
            let arguments = [&["doctor", file.as_str(), "--fail-on", "critical"][..], arguments].concat();
            let utf8 = floodline(&arguments);
            let run = outcome(command(&arguments).env("LC_ALL", "C").output().expect("it starts"));
            assert!(run.stdout.is_ascii() && run.stderr.is_ascii(), "{run}");
            assert_eq!(run.code, utf8.code);
            if let Ok(report) = serde_json::from_str::<Value>(&utf8.stdout) {
                assert_eq!(serde_json::from_str::<Value>(&run.stdout).ok(), Some(report), "{run}");
            }
        }
    }
}
