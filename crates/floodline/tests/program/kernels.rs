// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline kernels` from outside: the page of an upgrade, the way back, the list, and what is refused.

use crate::harness::floodline;
use serde_json::Value;

#[test]
fn an_upgrade_fits_the_terminal_and_names_what_is_new() {
    let run = floodline(&["kernels", "5.10", "6.12"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80), "{run}");
    for part in ["NEW in 6.12, not in 5.10", "Large folios", "UNCERTAIN", "--details"] {
        assert!(run.stdout.contains(part), "without {part}: {run}");
    }
    let details = floodline(&["kernels", "5.10", "6.12", "--details"]);
    assert!(details.stdout.contains("commit c22d70a162d3 \"writeback, cgroup: release dying cgwbs"), "{details}");
}

#[test]
fn json_of_the_way_back_lists_what_is_lost() {
    let run = floodline(&["kernels", "6.12.117+deb13-cloud-amd64", "5.10.223", "--format", "json"]);
    assert_eq!(run.code, 0, "{run}");
    let json: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(json["schema"], "floodline.kernels/1");
    assert_eq!(json["from"]["vendor"], "Debian");
    let lost = json["lost"].as_array().expect("a list");
    assert!(lost.iter().any(|change| change["id"] == "wb-stats"), "{json}");
    assert_eq!(json["gained"].as_array().map(Vec::len), Some(0), "{json}");
}

#[test]
fn without_arguments_every_release_is_listed() {
    let run = floodline(&["kernels"]);
    assert_eq!(run.code, 0, "{run}");
    for release in ["4.2", "5.15", "6.18", "7.2"] {
        assert!(run.stdout.lines().any(|line| line == release), "without {release}: {run}");
    }
    let one = floodline(&["kernels", "6.1.0-28-amd64"]);
    assert!(one.stdout.contains("Note: 6.1.0-28-amd64 is a Debian kernel that names only its series, 6.1."), "{one}");
    assert!(one.stdout.contains("  6.1.157: Moved dirty inodes are appended"), "{one}");
}

#[test]
fn kernels_that_do_not_exist_are_refused_by_reason() {
    for (args, part) in [
        (&["kernels", "5.25"][..], "Linux 5.25 was never released: 5.19 was followed by 6.0"),
        (&["kernels", "6.1", "9.9"], "Linux 9.9 is newer than"),
        (&["kernels", "2.6.32", "6.1"], "Linux 2.6 is older than 3.2"),
        (&["kernels", "\u{1b}[31m"], "\\x1b[31m"),
    ] {
        let run = floodline(args);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
        assert!(run.stderr.contains(part) && run.stderr.contains("hint: "), "{run}");
        assert!(!run.stderr.contains('\u{1b}'), "{run}");
    }
}
