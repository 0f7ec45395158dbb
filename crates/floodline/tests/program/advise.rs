// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline advise` on recordings that the simulator made.

use crate::harness::floodline;
use crate::predict::recorded;
use floodline_analysis::change::{ChangePlan, SCHEMA};

#[test]
fn a_host_whose_twin_misses_its_recording_gets_no_verdict_and_is_told_what_doctor_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("blind")).expect("a folder");
    let file = recorded(folder.path(), "blind/sixth-budgets", "rewritten-by-write").display().to_string();
    let plan = folder.path().join("plan.json");
    let run = floodline(&["advise", &file, "--settings", "4", "-o", &plan.display().to_string()]);
    assert_eq!(run.code, 0, "{run}");
    let told = run.stdout.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    assert!(told.starts_with("No verdict: the twin misses this recording by "), "{run}");
    assert!(told.contains("floodline doctor prints: vm.dirty_"), "{run}");
    assert!(!run.stdout.contains("Do now") && !plan.exists(), "{run}");
}

#[test]
fn a_host_with_a_cliff_gets_a_plan_with_old_and_new_values_and_a_trade_off_curve() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recorded(folder.path(), "dirty-cliff", "incident-short").display().to_string();
    let plan = folder.path().join("plan.json").display().to_string();
    let asked = ["advise", &file, "--settings", "12", "-o", &plan];
    let run = floodline(&asked);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.starts_with("Set "), "{run}");
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 80), "{run}");
    assert!(run.stdout.contains("data at risk") && run.stdout.contains("\nDo now\n  sudo sysctl -w"), "{run}");
    assert!(run.stdout.contains("\nUndo\n  sudo sysctl -w") && run.stdout.contains("vm.dirty_background_"), "{run}");
    // Settings can be copied from the table: none is cut.
    assert!(!run.stdout.contains("byt…"), "{run}");
    let text = std::fs::read_to_string(&plan).expect("a plan");
    let plan: ChangePlan = serde_json::from_str(&text).expect("a valid plan");
    assert_eq!(plan.schema, SCHEMA);
    assert!(plan.rules.iter().any(|rule| rule == "dirty-cliff"), "{text}");
    assert!(!plan.changes.is_empty() && plan.changes.iter().all(|change| change.old.is_some()), "{text}");
    let again = floodline(&asked);
    assert_ne!(again.code, 0, "an existing file stays: {again}");
    assert!(again.stdout.is_empty(), "it is refused before the work: {again}");
    let json = floodline(&["advise", &file, "--settings", "12", "--format", "json"]);
    let told: serde_json::Value = serde_json::from_str(&json.stdout).expect("valid JSON");
    assert_eq!(told["schema"], "floodline.advice/1");
    let tried = told["tried"].as_array().expect("candidates");
    let labels: Vec<&str> = tried.iter().filter_map(|one| one["label"].as_str()).collect();
    assert!(labels.first() == Some(&"as it is") && labels.contains(&"kernel default"), "{labels:?}");
    let chosen = told["chosen"].as_u64().and_then(|at| tried.get(usize::try_from(at).ok()?)).expect("a choice");
    assert!(chosen["breaks"].is_null(), "{chosen}");
    assert!(told["gain_share"].as_f64() > told["error_share"].as_f64(), "{told}");
}

#[test]
fn a_healthy_host_is_left_as_it_is_and_no_plan_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recorded(folder.path(), "healthy-database", "default").display().to_string();
    let plan = folder.path().join("plan.json");
    let run = floodline(&["advise", &file, "--settings", "4", "-o", &plan.display().to_string()]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.starts_with("Keep the present settings"), "{run}");
    assert!(!plan.exists() && run.stderr.contains("no plan is written"), "{run}");
}

#[test]
fn invalid_wishes_are_refused() {
    for args in [["--max-at-risk", "much"], ["--max-pause", "soon"], ["--goal", "speed"], ["--settings", "1"]] {
        let run = floodline(&["advise", "host.flr", args[0], args[1]]);
        assert_eq!(run.code, 2, "{run}");
    }
}
