// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline budget` on captured kernels: thresholds to the page, shares where the kernel prints them.

use crate::harness::{captured, floodline};

#[test]
fn budgets_of_a_captured_kernel() {
    insta::assert_snapshot!(floodline(&["budget", "--root", &captured("6.12-bytes")]));
}

#[test]
fn version_1_has_no_budgets_per_cgroup() {
    insta::assert_snapshot!(floodline(&["budget", "--root", &captured("6.1-v1")]));
}

#[test]
fn every_captured_kernel_has_exact_thresholds_within_80_columns() {
    for name in ["5.10", "6.1", "6.12", "6.12-bytes", "6.12-strict", "6.12.43", "7.2", "7.2-bytes"] {
        let root = captured(name);
        let json = floodline(&["budget", "--all", "--format", "json", "--root", &root]);
        let report: serde_json::Value = serde_json::from_str(&json.stdout).expect("valid JSON");
        let rows = report["rows"].as_array().expect("rows");
        assert!(rows.iter().all(|row| row["exact"] == true), "{name}: {rows:?}");
        assert!(rows.len() > 11, "{name}");
        assert_eq!(report["disagreements"].as_array().map(Vec::len), Some(0), "{name}");
        let text = floodline(&["budget", "--all", "--bytes", "--root", &root]);
        assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{name}:\n{}", text.stdout);
        assert_eq!(text.code, 0);
    }
}

#[test]
fn orders_and_csv_agree_with_each_other() {
    let column = |sort: &str, at: usize| -> Vec<String> {
        let run = floodline(&["budget", "--all", "--format", "csv", "--sort", sort, "--root", &captured("7.2")]);
        let cgroups = run.stdout.lines().skip(1).filter(|line| line.starts_with('/'));
        cgroups.map(|line| line.split(',').nth(at).unwrap_or_default().to_owned()).collect()
    };
    let numbers = |sort: &str, at: usize| -> Vec<u64> {
        column(sort, at).iter().map(|cell| cell.parse().expect("a number")).collect()
    };
    assert!(numbers("thresh", 6).is_sorted());
    assert!(numbers("dirty", 3).is_sorted_by(|a, b| a >= b));
    assert!(column("name", 0).is_sorted());
}

#[test]
fn a_folder_that_is_no_machine_is_refused() {
    let run = floodline(&["budget", "--root", "/nonexistent"]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains("hint:"), "{run}");
    assert_eq!(floodline(&["budget", "host.flr", "--root", "/"]).code, 2);
}
