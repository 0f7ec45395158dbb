// SPDX-License-Identifier: MIT OR Apache-2.0
//! One look for a fleet, and recordings without names.

use crate::harness::{Run, captured, command, floodline, outcome};
use std::path::Path;

fn written(args: &[&str], path: &Path) -> String {
    let path = path.to_str().expect("a path of text");
    let run = floodline(&[args, &["-o", path, "--force"]].concat());
    assert_eq!(run.code, 0, "{run}");
    path.to_owned()
}

/// The rows of a budget as JSON.
fn rows(run: &Run) -> Vec<serde_json::Value> {
    assert_eq!(run.code, 0, "{run}");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    report["rows"].as_array().expect("a budget has rows").clone()
}

#[test]
fn a_snapshot_has_the_budgets_of_its_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = captured("6.12");
    let file = written(&["snapshot", "--root", &root], &folder.path().join("host.flr"));
    let here = rows(&floodline(&["budget", "--root", &root, "--all", "--format", "json"]));
    let there = rows(&floodline(&["budget", &file, "--all", "--format", "json"]));
    assert!(here.len() > 3, "{} rows", here.len());
    // Shares of devices are rates of writing, which one look has no need of.
    let limit = |row: &serde_json::Value| {
        ["cgroup", "thresh_bytes", "bg_thresh_bytes", "available_bytes_min", "dirty_bytes", "binding", "exact"]
            .map(|field| row[field].to_string())
    };
    assert!(here.iter().map(limit).eq(there.iter().map(limit)));
    let size = std::fs::metadata(&file).expect("it is there").len();
    assert!(size < 40_000, "{size} bytes");
}

#[test]
fn without_names_a_recording_keeps_its_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    std::fs::write(&key, "a key of more than sixteen bytes\n").expect("a key");
    let key = format!("@{}", key.display());
    let root = captured("6.12");
    let plain = written(&["snapshot", "--root", &root], &folder.path().join("plain.flr"));
    let redacted = written(&["snapshot", "--root", &root, "--redact", &key], &folder.path().join("redacted.flr"));
    let again = written(
        &["export", &plain, "--format", "flr", "--redact", "a key of more than sixteen bytes"],
        &folder.path().join("again.flr"),
    );
    let lines = |file: &str| floodline(&["export", file, "--format", "jsonl"]).stdout;
    let facts = |lines: &str| -> serde_json::Value {
        serde_json::from_str(lines.lines().next().expect("facts come first")).expect("it is JSON")
    };
    let (before, after) = (lines(&plain), lines(&redacted));
    let name = facts(&before)["facts"]["hostname"].as_str().expect("it has a name").to_owned();
    assert!(!name.is_empty() && !after.contains(&name), "{name}");
    // The same key from a file and from the command line makes the same hash.
    assert_eq!(facts(&after)["facts"]["hostname"], facts(&lines(&again))["facts"]["hostname"]);
    let numbers = |file: &str| -> Vec<serde_json::Value> {
        let mut rows = rows(&floodline(&["budget", file, "--all", "--format", "json"]));
        for row in &mut rows {
            let row = row.as_object_mut().expect("a row is an object");
            row.retain(|_, value| value.is_number());
        }
        rows
    };
    assert_eq!(numbers(&plain), numbers(&redacted));
}

#[test]
fn a_key_that_is_none_is_refused() {
    let root = captured("6.12");
    let empty = floodline(&["snapshot", "--root", &root, "--redact", ""]);
    assert!(empty.code == 2 && empty.stderr.contains("openssl rand"), "{empty}");
    let missing = floodline(&["record", "--for", "0s", "-o", "-", "--root", &root, "--redact", "@/no/such/file"]);
    assert!(missing.code == 2 && missing.stderr.contains("cannot read the key"), "{missing}");
    let file = tempfile::tempdir().expect("a folder");
    let file = file.path().join("host.flr").display().to_string();
    let short = floodline(&["snapshot", "--root", &root, "--redact", "secret", "-o", &file]);
    assert!(short.code == 0 && short.stderr.contains("fewer than 16 bytes"), "{}", short.stderr);
}

#[test]
fn a_snapshot_without_a_reader_is_a_failure() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let run =
        outcome(command(&["snapshot", "--root", &captured("6.12")]).stdout(writer).output().expect("the program runs"));
    assert!(run.code == 3 && run.stderr.contains("too early"), "{run}");
}
