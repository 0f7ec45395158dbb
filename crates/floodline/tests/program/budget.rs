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

#[test]
fn a_move_to_version_2_shows_the_limits_beside_those_of_now() {
    insta::assert_snapshot!(floodline(&["budget", "--as-if", "cgroup=v2", "--root", &captured("6.1-v1")]));
}

#[test]
fn conditions_that_hold_already_give_the_limits_that_a_kernel_prints() {
    for (name, conditions) in [
        ("6.12", "cgroup=v2,vm.dirty_ratio=20"),
        ("6.12-bytes", "cgroup=v2"),
        ("7.2", "cgroup=v2,kernel=7.2"),
        ("5.10", "kernel=5.10"),
    ] {
        let args = ["budget", "--as-if", conditions, "--all", "--format", "json", "--root", &captured(name)];
        let report: serde_json::Value = serde_json::from_str(&floodline(&args).stdout).expect("valid JSON");
        let rows = report["rows"].as_array().expect("rows");
        assert!(rows.len() > 5, "{name}");
        for row in rows {
            let (now, then) = (row["now_thresh_bytes"].as_u64(), row["then_thresh_bytes"].as_u64());
            let (now, then) = (now.expect("a limit"), then.expect("a limit"));
            assert!(now.abs_diff(then) <= now / 200 + 8192, "{name}: {row}");
        }
    }
}

#[test]
fn conditions_that_mean_nothing_are_refused_with_a_hint() {
    let root = captured("6.12");
    for conditions in ["cgroup=v3", "vm.dirty_ratio=200", "colour=red", "cgroup/nowhere/memory.max=1G"] {
        let run = floodline(&["budget", "--as-if", conditions, "--root", &root]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains("hint:"), "{run}");
    }
}
