// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doctor` prints of a plan that it tried on a twin first.

use crate::harness::{floodline, recording};
use crate::predict::recorded;

fn plan(file: &str) -> serde_json::Value {
    let run = floodline(&["doctor", file, "--format", "json"]);
    let told: serde_json::Value = serde_json::from_str(&run.stdout).expect("valid JSON");
    told["plan"].clone()
}

#[test]
fn a_plan_that_helps_says_what_it_does_here() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = recorded(folder.path(), "dirty-cliff", "incident-short").display().to_string();
    let plan = plan(&file);
    assert_eq!(plan["tried"]["verdict"], "helps", "{plan}");
    assert!(plan["expect"][0].as_str().is_some_and(|text| text.starts_with("Predicted: ")), "{plan}");
    assert!(plan["tried"]["expected"].as_array().is_some_and(|rows| !rows.is_empty()), "{plan}");
    let screen = floodline(&["doctor", &file]);
    assert!(screen.stdout.contains("Expect     Predicted: "), "{screen}");
    assert!(screen.stdout.lines().count() <= 25, "{screen}");
    let page = floodline(&["report", &file, "-o", "-"]);
    assert!(page.stdout.contains("Predicted: "), "{page}");
    let piped = floodline(&["doctor", &file, "--details"]);
    assert!(piped.stdout.lines().all(|line| line.chars().count() <= 80), "{piped}");
}

#[test]
fn a_plan_is_arithmetic_where_predict_calls_the_same_twin_not_reliable() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["starved-budget", "dirty-cliff"] {
        let file = recorded(folder.path(), name, "incident-short").display().to_string();
        let plan = plan(&file);
        let rule = plan["rules"][0].as_str().expect("a rule").to_owned();
        let run = floodline(&["predict", &file, "--finding", &rule, "--format", "json"]);
        let told: serde_json::Value = serde_json::from_str(&run.stdout).expect("valid JSON");
        let error = told["back_test_error"].as_f64().expect("a back-test");
        assert_eq!(plan["arithmetic_only"].is_string(), error > 0.25, "{name} {error}: {plan}");
        let headline = told["headline"].as_str().expect("a sentence");
        assert_eq!(headline.starts_with("Not reliable"), error > 0.25, "{name}: {headline}");
        // The settings are those of the printed command.
        for one in told["settings"].as_array().expect("settings") {
            let set = format!("{}={}", one["key"].as_str().expect("a key"), one["value"].as_str().expect("a value"));
            let printed = format!("{} {}", plan["now"], plan["candidate"]);
            assert!(printed.contains(&set), "{name} {set}: {plan}");
        }
    }
}

#[test]
fn a_plan_that_no_twin_can_judge_is_a_candidate_and_says_how_to_measure_it() {
    let file = recording(&floodline_testkit::incidents::dirty_cliff());
    let plan = plan(file.as_str());
    assert!(plan["arithmetic_only"].is_string() && plan["tried"].is_null(), "{plan}");
    assert!(
        plan["now"].as_array().is_some_and(Vec::is_empty) && plan["candidate"]["commands"][0].is_string(),
        "{plan}"
    );
    let screen = floodline(&["doctor", file.as_str()]);
    assert!(screen.stdout.contains("\nCandidate ") && !screen.stdout.contains("Do now"), "{screen}");
    assert!(screen.stdout.contains("--switchback 6x10m"), "{screen}");
    let page = floodline(&["report", file.as_str(), "-o", "-"]);
    assert!(page.stdout.contains("Candidate, not checked"), "{page}");
    assert!(screen.stdout.lines().count() <= 25, "{screen}");
}

#[test]
fn doctor_predict_and_advise_say_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut judged = 0;
    for (name, variant) in
        [("dirty-cliff", "incident-short"), ("starved-budget", "incident-short"), ("overlay-umount", "incident")]
    {
        let file = recorded(folder.path(), name, variant).display().to_string();
        let plan = plan(&file);
        let rules = plan["rules"].as_array().expect("rules");
        let rules: Vec<&str> = rules.iter().filter_map(serde_json::Value::as_str).collect();
        let mut asked = vec!["predict", &file, "--format", "json"];
        asked.extend(rules.iter().flat_map(|rule| ["--finding", rule]));
        let headline = |args: &[&str]| -> String {
            let run = floodline(args);
            let told: serde_json::Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
            told["headline"].as_str().expect("a sentence").to_owned()
        };
        let predicted = headline(&asked);
        let advised = headline(&["advise", &file, "--settings", "4", "--format", "json"]);
        let told = format!("{name}: {predicted} {advised} {plan}");
        match plan["tried"]["verdict"].as_str() {
            Some("helps") => {
                assert!(
                    ["It helps", "It may help", "It ends", "It may end"].iter().any(|says| predicted.starts_with(says)),
                    "{told}"
                );
                assert!(advised.starts_with("Set "), "{told}");
                judged += 1;
            }
            Some("harms") => {
                assert!(predicted.contains("make this host worse") || predicted.contains("makes this host"), "{told}");
            }
            Some(_) => assert!(!predicted.contains("It helps: "), "{told}"),
            None => {
                assert!(["Not reliable", "No verdict"].iter().any(|says| predicted.starts_with(says)), "{told}");
                assert!(advised.starts_with("No verdict") && advised.contains("doctor prints"), "{told}");
            }
        }
    }
    assert!(judged > 0, "no plan was judged");
}
