// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings and arguments of strangers: what commands a terminal is in every string of a recording, and every command
//! that reads one is run on it. Neither stream holds a raw control, bidirectional or invisible character, and no string
//! makes a line of its own.

use crate::harness::{Run, floodline};
use crate::predict::recorded;
use floodline_record::name::is_plain;
use floodline_record::record::Record;
use floodline_record::recording::Decoder;
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
            &["predict", file, "--set", "vm.dirty_background_bytes=64M"],
            &["advise", file, "--settings", "2"],
            &["verify", file, file],
            &["verify", file, file, "--format", "json"],
            &["explain", file],
        ];
        for args in commands {
            let run = floodline(args);
            check(args, &run);
            shown += usize::from(run.stdout.contains("x1b[2J"));
        }
    }
    assert!(shown > 10, "only {shown} outputs show the payload");
}

/// A recording that the twin accepts, so that its strings come through the model into what is predicted and advised.
#[test]
fn what_is_concluded_with_the_model_shows_strings_escaped() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = std::fs::read(recorded(folder.path(), "starved-budget", "incident-short")).expect("a file");
    let records: Vec<Record> =
        Decoder::new(&bytes[..]).expect("a header").collect::<Result<_, _>>().expect("whole records");
    let path = folder.path().join("planted.flr");
    let takes = |piece| matches!(piece, Piece::Entity | Piece::Event);
    std::fs::write(&path, planted(&records, PAYLOAD, takes).0).expect("a file");
    let file = text(&path);
    let plan = folder.path().join("plan.json");
    let commands: &[&[&str]] = &[
        &["predict", file, "--set", "vm.dirty_background_bytes=64M", "--details"],
        &["predict", file, "--set", "vm.dirty_background_bytes=64M", "--format", "json"],
        &["advise", file, "--settings", "4", "--details", "-o", text(&plan)],
        &["advise", file, "--settings", "4", "--format", "json"],
        &["twin", file, "-o", "-"],
        &["verify", file, file],
        &["apply", text(&plan), "--dry-run", "--root", text(folder.path())],
    ];
    let mut answered = 0;
    for args in commands {
        let run = floodline(args);
        check(args, &run);
        answered += usize::from(run.code < 2);
    }
    assert!(answered > 0, "every command refuses the recording");
}

/// The folder of a flight recorder, and a plan, that another user wrote.
#[test]
fn incidents_and_plans_of_strangers_are_shown_escaped() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let incident = serde_json::json!({
        "schema": "floodline.incident/1", "name": PAYLOAD, "host": PAYLOAD, "trigger": PAYLOAD, "at_wall_ns": 1,
        "rule": PAYLOAD, "severity": "critical", "summary": PAYLOAD, "cause": PAYLOAD, "before_s": 1.0, "after_s": 1.0,
        "samples": 1, "complete": true, "duplicates": 0,
    });
    std::fs::write(at("incident-1.json"), incident.to_string()).expect("a file");
    std::fs::write(at(&format!("incident-{}.json", PAYLOAD.replace('\0', ""))), PAYLOAD).expect("a file");
    let ring = text(folder.path());
    for args in [&["incidents", "--ring", ring][..], &["incidents", "--ring", ring, "--format", "json"]] {
        let run = floodline(args);
        check(args, &run);
        assert!(run.code == 0 && run.stdout.contains("x1b[2J"), "{run}");
    }
    let args = ["doctor", "last", "--ring", ring];
    check(&args, &floodline(&args));
    let plan = at("plan.json");
    for content in [PAYLOAD.to_owned(), serde_json::json!({ "schema": PAYLOAD, PAYLOAD: PAYLOAD }).to_string()] {
        std::fs::write(&plan, content).expect("a file");
        let args = ["apply", text(&plan), "--dry-run", "--root", ring];
        check(&args, &floodline(&args));
    }
    let args = ["history", "--state-dir", ring];
    check(&args, &floodline(&args));
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
