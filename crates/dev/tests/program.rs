// SPDX-License-Identifier: MIT OR Apache-2.0
//! The developers' program, run as it is, on a recording of a real kernel.

use floodline_record::record::Sink;
use floodline_record::recording::{Encoder, Header};
use floodline_testkit::Fixture;
use std::process::Command;

/// What a run printed, and its exit code.
struct Run {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

fn run(args: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_floodline-dev")).args(args).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run { stdout: text(&output.stdout), stderr: text(&output.stderr), code: output.status.code() }
}

fn recordings() -> String {
    format!("{}/tests/recordings", env!("CARGO_MANIFEST_DIR"))
}

fn recording() -> String {
    format!("{}/exact-budgets-ratio-7.2.flr", recordings())
}

fn scenario(name: &str) -> String {
    format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_kept_recording_is_judged_by_its_scenario_again() {
    let recording = recording();
    let judge = |name: &str, variant: &str| {
        run(&["judge", &scenario(name), &recording, "--variant", variant, "--format", "json", "--misses"])
    };
    // A real 7.2 kernel: budgets to the page, for wbs and for the machine.
    let shown = judge("exact-budgets", "ratio");
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let json: serde_json::Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let value = |name: &str| json["figures"][name]["value"].as_f64().unwrap_or(-1.0);
    assert_eq!((value("budget.wb_quiet_count"), value("budget.wb_quiet_exact_share")), (111.0, 1.0));
    assert_eq!((value("budget.global_count"), value("budget.global_exact_share")), (71.0, 1.0));
    // The same held against what it is not.
    let shown = judge("exact-budgets", "throttled");
    assert_eq!(shown.code, Some(1), "{}", shown.stderr);
    assert!(
        shown.stdout.contains("budget.throttled_count is 0, expected at least 12"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
    assert!(
        shown.stderr.contains("is a recording of ratio, checked against throttled"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
    let shown = judge("overlay-umount", "incident");
    assert_eq!(shown.code, Some(2), "{}", shown.stderr);
    assert!(
        shown.stderr.contains("is a recording of exact-budgets (ratio), not of overlay-umount"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
}

#[test]
fn a_recording_is_judged_by_its_own_variant_and_what_it_lacks_is_told() {
    let recording = recording();
    let judge = |recording: &str| run(&["judge", &scenario("exact-budgets"), recording]);
    let shown = judge(&recording);
    assert!(
        shown.code == Some(0) && shown.stdout.starts_with("exact-budgets (ratio) on 7.2.13"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
    let folder = tempfile::tempdir().expect("a folder");
    let damaged = folder.path().join("damaged.flr");
    let mut bytes = std::fs::read(&recording).expect("a recording");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4000].fill(0);
    std::fs::write(&damaged, &bytes).expect("a file");
    let shown = judge(damaged.to_str().expect("UTF-8"));
    assert!(shown.stderr.contains("damaged.flr: "), "{}{}", shown.stdout, shown.stderr);
    let one_look = folder.path().join("one.flr");
    let file = std::fs::File::create(&one_look).expect("a file");
    let mut encoder = Encoder::new(file, Header::new(None)).expect("an encoder");
    for record in Fixture::healthy().one_look().records() {
        encoder.record(&record).expect("written");
    }
    encoder.finish().expect("an end");
    let shown = judge(one_look.to_str().expect("UTF-8"));
    assert_eq!(shown.code, Some(2), "{}", shown.stderr);
}

#[test]
fn real_recordings_are_held_against_the_model() {
    let (recordings, scenarios) = (recordings(), format!("{}/../../scenarios", env!("CARGO_MANIFEST_DIR")));
    let shown = run(&["validate", &recordings, "--scenarios", &scenarios]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("## exact-budgets, ratio, 7.2"), "{}{}", shown.stdout, shown.stderr);
    assert!(shown.stdout.contains("| `host.dirty_peak_bytes` | 1 |"), "{}{}", shown.stdout, shown.stderr);
    let shown = run(&["validate", &scenarios]);
    assert_eq!(shown.code, Some(2), "{}", shown.stderr);
    assert!(shown.stderr.contains("no recording of a scenario on a real kernel"), "{}{}", shown.stdout, shown.stderr);
    let shown = run(&["validate", &recordings, "--scenarios", &recordings]);
    assert_eq!(shown.code, Some(2), "{}", shown.stderr);
    assert!(
        shown.stderr.contains("contains none of ") && shown.stderr.contains("--scenarios FOLDER"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
    let shown = run(&["validate", "/nowhere.flr"]);
    assert_eq!(shown.code, Some(2), "{}", shown.stderr);
    assert!(shown.stderr.contains("cannot read /nowhere.flr: No such file"), "{}{}", shown.stdout, shown.stderr);
}
