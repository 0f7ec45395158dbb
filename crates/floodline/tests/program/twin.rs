// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline twin`: the file it writes is a good scenario that runs, and what it cannot read it refuses with a hint.

use crate::harness::{floodline, recording};
use floodline_testkit::Fixture;
use floodline_testkit::incidents::dirty_cliff;
use serde_json::Value;

#[test]
fn the_twin_of_a_recording_is_a_scenario_that_runs() {
    let file = recording(&dirty_cliff());
    let folder = tempfile::tempdir().expect("a folder");
    let twin = folder.path().join("twin.toml");
    let twin = twin.to_str().expect("UTF-8");
    let run = floodline(&["twin", file.as_str(), "-o", twin]);
    assert_eq!(run.code, 0, "{run}");
    let details = floodline(&["twin", file.as_str(), "--details"]);
    assert!(details.stdout.contains("  budget.") && !run.stdout.contains("  budget."), "{run}");
    assert!(details.stderr.contains(&format!("save it with: floodline twin {} -o", file.as_str())), "{details}");
    for part in ["Back-test (", "median error", "Devices", "Origin of the keys", "cannot know"] {
        assert!(run.stdout.contains(part), "{part}: {run}");
    }
    assert!(run.stderr.contains("run it with: floodline simulate"), "{run}");
    let check = floodline(&["scenario", "check", twin]);
    assert!(check.code == 0 && check.stdout.contains("good"), "{check}");
    let simulated = floodline(&["simulate", twin, "--for", "5s"]);
    assert_eq!(simulated.code, 0, "{simulated}");
    let again = floodline(&["twin", file.as_str(), "-o", twin]);
    assert!(again.code == 2 && again.stderr.contains("--force"), "{again}");
}

#[test]
fn json_has_the_origin_of_every_key_and_the_error_of_every_figure() {
    let file = recording(&dirty_cliff());
    let run = floodline(&["twin", file.as_str(), "--format", "json"]);
    let told: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(told["schema"], "floodline.twin/1");
    let origins = told["provenance"].as_array().expect("a list");
    assert!(origins.iter().any(|known| known["origin"] == "measured"), "{run}");
    let figures = told["twins"][0]["figures"].as_array().expect("a list");
    assert!(figures.iter().all(|figure| figure["off_share"].is_number()), "{run}");
    assert!(told["twins"][0]["scenario"]["machine"]["memory"].is_string(), "{run}");
    assert!(told["simplified"].is_array(), "{run}");
}

#[test]
fn a_recording_without_a_load_is_refused_with_what_to_type() {
    let short = recording(&Fixture::healthy().one_look());
    let run = floodline(&["twin", short.as_str()]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("too short") && run.stderr.contains("floodline record --for"), "{run}");
    let run = floodline(&["twin", "no/such/file.flr"]);
    assert!(run.code == 2 && run.stderr.contains("hint"), "{run}");
}
