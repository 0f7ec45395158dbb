// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings and arguments of strangers: what commands a terminal is in every string of a recording, and every command
//! that reads one is run on it. Neither stream holds a raw control, bidirectional or invisible character, and no string
//! makes a line of its own.

use crate::harness::{Run, floodline};
use floodline_record::name::is_plain;
use floodline_testkit::hostile::{PAYLOAD, Piece, of_everything, planted};
use std::path::Path;

fn check(args: &[&str], run: &Run) {
    for text in [&run.stdout, &run.stderr] {
        let raw = text.lines().find(|line| !line.chars().all(is_plain) || line.starts_with("FORGED"));
        assert!(raw.is_none(), "{args:?}: {raw:?}");
        assert!(!text.contains('\r'), "{args:?}: a carriage return");
    }
    assert!([0, 1, 2, 3].contains(&run.code), "{args:?}: {run}");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn every_command_that_reads_a_recording_shows_its_strings_escaped() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut shown = 0;
    for (name, takes) in [
        ("all.flr", (|piece| piece != Piece::Header) as fn(Piece) -> bool),
        ("gaps.flr", |piece| piece == Piece::Gap),
        ("header.flr", |piece| piece == Piece::Header),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, planted(&of_everything(), PAYLOAD, takes).0).expect("a file");
        let file = text(&path);
        let commands: &[&[&str]] = &[
            &["doctor", file],
            &["doctor", file, "--format", "json"],
            &["budget", file, "--all"],
            &["budget", file, "--all", "--format", "json"],
            &["budget", file, "--all", "--format", "csv"],
            &["ledger", file],
            &["ledger", file, "--format", "json"],
            &["twin", file],
            &["twin", file, "--format", "json"],
            &["twin", file, "-o", "-"],
            &["replay", file],
            &["replay", file, "--at", "5s"],
            &["replay", file, "--format", "json"],
            &["report", file, "-o", "-"],
            &["report", file, file, "-o", "-"],
            &["compare", file, file],
            &["compare", file, file, "--format", "json"],
            &["export", file, "--format", "jsonl"],
            &["export", file, "--format", "perfetto"],
            &["export", file, "--format", "csv", "--table", "cgroup"],
            &["export", file, "--format", "csv", "--table", "process"],
        ];
        for args in commands {
            let run = floodline(args);
            check(args, &run);
            shown += usize::from(run.stdout.contains("x1b[2J"));
        }
    }
    assert!(shown > 10, "only {shown} outputs show the payload");
}

#[test]
fn colours_are_the_only_codes_that_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("all.flr");
    std::fs::write(&path, planted(&of_everything(), PAYLOAD, |piece| piece != Piece::Header).0).expect("a file");
    for command in ["doctor", "budget", "replay"] {
        let run = floodline(&["--color", "always", command, text(&path)]);
        let mut rest = run.stdout.as_str();
        let mut colours = 0;
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            assert!(before.chars().all(|c| c == '\n' || is_plain(c)), "{before:?}");
            let end = after.find(|c: char| c != '[' && c != ';' && !c.is_ascii_digit());
            assert_eq!(end.and_then(|end| after.get(end..=end)), Some("m"), "{after:?}");
            colours += 1;
            rest = after;
        }
        assert!(colours > 0 || command != "doctor", "{command} is not coloured: {run}");
        // The payload's own colour is escaped with the rest of it.
        assert!(!run.stdout.contains("\u{1b}[32m\\x1b]0"), "{run}");
    }
}

#[test]
fn arguments_are_shown_escaped_in_errors_and_hints() {
    let named: Vec<String> =
        ["", "/no/", "dirty-cliff"].iter().map(|before| format!("{before}{}", PAYLOAD.replace('\0', ""))).collect();
    for name in &named {
        let commands: &[&[&str]] = &[
            &[name],
            &["doctor", name],
            &["doctor", "--rule", name],
            &["doctor", "--for", name],
            &["doctor", "--root", name],
            &["explain", name],
            &["budget", name],
            &["ledger", name],
            &["twin", name],
            &["twin", name, "--kernel", name],
            &["replay", name],
            &["compare", name, name],
            &["export", name, "--format", "csv"],
            &["export", name, "--format", name],
            &["simulate", name],
            &["scenario", "check", name],
            &["scenario", "show", name],
            &["sweep", name, "--grid", name],
        ];
        for args in commands {
            let run = floodline(args);
            check(args, &run);
            assert!(run.code >= 2, "{args:?}: {run}");
        }
    }
}

#[test]
fn a_scenario_of_a_stranger_is_shown_escaped() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.toml");
    let payload = PAYLOAD.chars().map(|c| format!("\\U{:08X}", u32::from(c))).collect::<String>();
    let keys =
        ["name", "title", "about", "machine.memory", "machine.kernel", "machine.cgroups.\"P\".x", "\"P\"", "seed"];
    for key in keys {
        std::fs::write(&path, format!("{} = \"{payload}\"\n", key.replace('P', &payload))).expect("a file");
        for command in ["check", "show"] {
            let args = ["scenario", command, text(&path)];
            check(&args, &floodline(&args));
        }
        let args = ["simulate", text(&path)];
        check(&args, &floodline(&args));
    }
}
