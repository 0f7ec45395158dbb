// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline report` from outside: one file for a recording, for two, and for the JSON of another command.

use crate::harness::{floodline, recording};
use floodline_testkit::Fixture;
use floodline_testkit::incidents::dirty_cliff;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_recording_becomes_a_page_that_only_its_owner_reads() {
    let file = recording(&dirty_cliff());
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("report.html");
    let page = page.to_str().expect("UTF-8");
    let run = floodline(&["report", file.as_str(), "-o", page]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
    assert!(run.stderr.contains("wrote "), "{run}");
    let html = std::fs::read_to_string(page).expect("a page");
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
    for part in ["dirty-cliff", "id=\"timeline\"", "id=\"cgroups\"", "id=\"devices\"", "id=\"not-seen\"", "href=\"#t="]
    {
        assert!(html.contains(part), "{part}");
    }
    let mode = std::fs::metadata(page).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = floodline(&["report", file.as_str(), "-o", page]);
    assert_eq!(again.code, 2, "{again}");
    assert!(again.stderr.contains("--force"), "{again}");
    assert_eq!(floodline(&["report", file.as_str(), "-o", page, "--force"]).code, 0);
}

#[test]
fn two_recordings_are_compared() {
    let (before, after) = (recording(&dirty_cliff()), recording(&Fixture::healthy().seconds(30)));
    let run = floodline(&["report", before.as_str(), after.as_str(), "-o", "-"]);
    assert_eq!(run.code, 0, "{run}");
    for part in ["Before and after", "id=\"before-plot-dirty\"", "id=\"after-plot-dirty\"", "dirty-cliff"] {
        assert!(run.stdout.contains(part), "{part}");
    }
}

#[test]
fn the_json_of_another_command_becomes_a_page() {
    let file = recording(&dirty_cliff());
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("doctor.json");
    let json = json.to_str().expect("UTF-8");
    std::fs::write(json, floodline(&["doctor", file.as_str(), "--format", "json"]).stdout).expect("a file");
    let run = floodline(&["report", json, "-o", "-"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("dirty-cliff"), "{run}");
    std::fs::write(json, "{}").expect("a file");
    let run = floodline(&["report", json, "-o", "-"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("--format json"), "{run}");
    assert_eq!(floodline(&["report", json, file.as_str(), "-o", "-"]).code, 2);
    assert_eq!(floodline(&["report", "/does/not/exist.flr", "-o", "-"]).code, 2);
}
