// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline sweep`: rows in the order of the grid whatever the number of threads, reasons in their rows,
//! tables that other programs read.

use crate::harness::{floodline, interrupted_with};
use crate::simulate::{SMALL, long, scenario};
use serde_json::Value;

#[test]
fn every_combination_is_a_row_in_the_order_of_the_grid() {
    let small = scenario(SMALL);
    let grid = ["--grid", "kernel=6.1,6.12", "--grid", "variant=incident,remedy"];
    let run = floodline(&[&["sweep", small.as_str()], &grid[..]].concat());
    assert_eq!(run.code, 0, "{run}");
    let rows: Vec<String> = run
        .stdout
        .lines()
        .filter(|line| line.starts_with("6."))
        .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(rows, ["6.1 incident", "6.1 remedy", "6.12 incident", "6.12 remedy"], "{run}");
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80), "{run}");
}

#[test]
fn the_number_of_threads_changes_nothing_in_the_result() {
    let small = scenario(SMALL);
    let with = |jobs: &str| {
        let grid = "vm.dirty_bytes=1M,4M,16M";
        let args = ["sweep", small.as_str(), "--grid", grid, "--grid", "seed=1,2", "--jobs", jobs, "--format", "json"];
        let run = floodline(&args);
        assert_eq!(run.code, 0, "{run}");
        run.stdout
    };
    let one = with("1");
    assert_eq!(one, with("4"));
    let json: Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(6), "{json}");
    assert_eq!(json["rows"][5]["at"]["vm.dirty_bytes"], "16M");
}

#[test]
fn a_combination_that_cannot_be_is_a_row_with_its_reason() {
    let small = scenario(SMALL);
    let run = floodline(&["sweep", small.as_str(), "--grid", "vm.dirty_bytes=1,64M"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("1 of 2 combinations is refused"), "{run}");
    assert!(run.stdout.contains("vm.dirty_bytes=1:"), "{run}");
    let told = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("the kernel refuses 1 here (EINVAL): it takes at least 8192"), "{run}");
    assert!(run.stdout.lines().any(|line| line.starts_with("64M ") && line.contains(" s")), "{run}");
}

#[test]
fn a_figure_that_no_run_has_is_said_with_the_one_that_was_meant() {
    let small = scenario(SMALL);
    let with = |figure: &str| {
        floodline(&["sweep", small.as_str(), "--grid", "instances=1", "--for", "2s", "--figure", figure])
    };
    let slip = with("host.dirty_peak_byte");
    assert!(slip.stderr.contains("no run has a figure \"host.dirty_peak_byte\"; did you mean"), "{slip}");
    assert_eq!(with("host.dirty_peak_bytes").stderr, "");
}

#[test]
fn tables_are_kept_in_the_format_of_their_name() {
    let small = scenario(SMALL);
    let keep = |name: &str| {
        let target = small.folder.path().join(name);
        let args = ["sweep", small.as_str(), "--grid", "instances=1,2", "--for", "2s", "--save"];
        let run = floodline(&[&args[..], &[target.to_str().expect("a plain path")]].concat());
        assert_eq!(run.code, 0, "{run}");
        std::fs::read(target).expect("the table")
    };
    let csv = String::from_utf8(keep("t.csv")).expect("text");
    assert!(csv.starts_with("instances,error,findings,"), "{csv}");
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let parquet = keep("t.parquet");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let json: Value = serde_json::from_slice(&keep("t.json")).expect("JSON");
    assert_eq!(json["schema"], "floodline.sweep/1");
}

#[test]
fn a_table_that_cannot_be_kept_is_shown_all_the_same() {
    let small = scenario(SMALL);
    let full = small.folder.path().join("full.csv");
    std::os::unix::fs::symlink("/dev/full", &full).expect("a link");
    let save = ["--grid", "instances=1,2", "--for", "2s", "--save", full.to_str().expect("a plain path")];
    let run = floodline(&[&["sweep", small.as_str()], &save[..]].concat());
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stdout.contains("small: 2 runs"), "{run}");
    assert!(run.stderr.contains("full.csv: No space left") && run.stderr.contains("the output is incomplete"), "{run}");
}

#[test]
fn misuse_is_answered_with_what_to_type() {
    let small = scenario(SMALL);
    let check = |args: &[&str], says: &str| {
        let run = floodline(&[&["sweep", small.as_str()], args].concat());
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(says), "{says}: {run}");
    };
    check(&["--grid", "vm.dirty_bytes"], "--grid vm.dirty_bytes=64M,256M,1G");
    check(&["--grid", "kernel=6.1,"], "invalid grid");
    check(&["--grid", "kernel=6.1", "--grid", "kernel=6.12"], "kernel appears in two grids");
    for fixed in [["--kernel", "5.10"], ["--set", "kernel=6.1"]] {
        check(&["--grid", "kernel=6.1,6.12", fixed[0], fixed[1]], "kernel has both a grid and a fixed value");
    }
    check(&["--grid", "vm.dirty_ratio=5,10", "--set", "vm.dirty_ratio=20"], "vm.dirty_ratio has both a grid and");
    check(&["--grid", "kernel=6.1", "--save", "t.xls"], "ends in .csv, .json or .parquet");
    check(&["--grid", "kernel=6.1", "--jobs", "0"], "--jobs");
    check(&["--grid", "dirty_bytes=1M,2M"], "no combination can be run: ");
    let first = "no combination can be run: machine.memry=1G: machine.memry: unknown key";
    check(&["--grid", "machine.memry=1G,2G"], first);
    let unknown = "no combination can be run: the simulator does not support machine.sysctl.vm.dirty_byte";
    check(&["--grid", "kernel=6.1,6.12", "--set", "vm.dirty_byte=1M"], unknown);
    check(&["--grid", "vm.dirty_byte=1M,2M"], "hint: did you mean vm.dirty_bytes?");
    let many: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    let (a, b) = (format!("seed={}", many.join(",")), format!("vm.dirty_expire_centisecs={}", many.join(",")));
    check(&["--grid", &a, "--grid", &b], "too many combinations: the maximum is 100000");
}

#[test]
fn an_interruption_keeps_the_rows_that_are_finished() {
    let long = long();
    let target = long.folder.path().join("kept.csv");
    let args = ["sweep", long.as_str(), "--grid", "variant=cure,long", "--jobs", "1", "--save"];
    let run = interrupted_with(&[&args[..], &[target.to_str().expect("a plain path")]].concat(), &target);
    assert!(run.stderr.contains("interrupted: 1 of 2 runs are finished"), "{run}");
    assert_eq!(std::fs::read_to_string(target).expect("the table").lines().count(), 2, "{run}");
}
