// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every file in `scenarios/` is read, and is what the project promises of it.

use floodline_analysis::diagnose::rules::RULES;
use floodline_scenario::{Scenario, ScenarioFile};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads every scenario of the tree, those of the blind set excepted.
fn scenarios() -> BTreeMap<String, ScenarioFile> {
    scenarios_in("../../scenarios")
}

#[allow(clippy::disallowed_methods)]
fn scenarios_in(folder: &str) -> BTreeMap<String, ScenarioFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("there are scenarios").flatten() {
        let path = entry.path();
        // Folders, and the list of what runs on real kernels.
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a scenario is text");
        assert!(text.starts_with("# SPDX-License-Identifier: MIT OR Apache-2.0\n"), "{}", path.display());
        let file = ScenarioFile::parse(&text).unwrap_or_else(|error| {
            let lines: Vec<_> = error.problems.iter().map(|p| format!("{p} ({:?})", p.hint)).collect();
            panic!("{}:\n{}", path.display(), lines.join("\n"))
        });
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        assert_eq!(file.name, stem, "{}: the scenario and its file have one name", path.display());
        found.insert(stem, file);
    }
    found
}

#[test]
fn the_blind_set_has_forty_sick_machines_and_thirty_that_are_well() {
    let (mut sick, mut well) = (0, 0);
    for (name, file) in scenarios_in("../../scenarios/blind") {
        for (variant, scenario) in file.variants {
            let expect = &scenario.expect;
            let is_sick = expect.found.as_ref().is_some_and(|found| !found.is_empty());
            let is_judged = is_sick || expect.quiet_from.is_some() || expect.not_found.is_some();
            assert!(is_judged, "{name} {variant} does not say what should be found");
            *if is_sick { &mut sick } else { &mut well } += 1;
        }
    }
    assert!(sick >= 40 && well >= 30, "{sick} sick, {well} well");
}

#[test]
fn the_chain_has_its_machines() {
    let machines = scenarios_in("../../scenarios/chain");
    for name in ["starved-budget", "dirty-cliff", "slow-disk-journal"] {
        assert!(machines.get(name).is_some_and(|file| file.variants.contains_key("incident")), "{name}");
    }
}

#[test]
fn every_incident_has_its_scenario_with_incident_and_remedy() {
    let scenarios = scenarios();
    for name in ["starved-budget", "dirty-cliff", "slow-disk-journal", "overlay-umount", "inode-switch-storm"] {
        let file = scenarios.get(name).unwrap_or_else(|| panic!("scenarios/{name}.toml is missing"));
        for variant in ["incident", "remedy"] {
            assert!(file.variants.contains_key(variant), "{name} has no variant {variant}");
        }
        assert_ne!(file.variants["incident"].expect, file.variants["remedy"].expect, "{name}");
    }
}

#[test]
fn healthy_machines_of_several_shapes_expect_silence() {
    let mut healthy = 0;
    for (name, file) in scenarios().into_iter().filter(|(name, _)| name.starts_with("healthy-")) {
        healthy += 1;
        for (variant, scenario) in file.variants {
            assert!(scenario.expect.quiet_from.is_some(), "{name} {variant}: quiet_from = \"warning\"");
            assert_eq!(scenario.expect.found, None, "{name} {variant}");
        }
    }
    assert!(healthy >= 3);
}

#[test]
fn expectations_name_rules_and_tasks_that_exist() {
    let rule = |name: &String| RULES.iter().any(|rule| rule.name == name);
    for (name, file) in scenarios() {
        for (variant, scenario) in file.variants {
            for expect in std::iter::once(&scenario.expect).chain(scenario.expect.kernels.values()) {
                let rules: Vec<_> = expect.found.iter().chain(&expect.not_found).flatten().collect();
                assert!(rules.iter().all(|name| rule(name)), "{name} {variant}: {rules:?}");
                for figure in expect.figures.keys() {
                    let task = figure.split('.').next().unwrap_or_default();
                    let is_machine = ["host", "devices", "budget"].contains(&task);
                    assert!(is_machine || scenario.workload.tasks.contains_key(task), "{name} {variant}: {figure}");
                }
            }
        }
    }
}

#[test]
fn every_variant_written_out_reads_back_the_same() {
    for (name, file) in scenarios() {
        for (variant, scenario) in file.variants {
            let text = scenario.to_toml().expect("a scenario can be written");
            let again = ScenarioFile::parse(&text).unwrap_or_else(|error| panic!("{name} {variant}: {error}\n{text}"));
            assert_eq!(again.variants["default"], scenario, "{name} {variant}");
        }
    }
}

#[test]
fn every_variant_is_read_again_without_its_text_as_with_it() {
    let mut read = 0;
    for folder in ["", "blind", "chain", "compared", "stacks"] {
        for (name, file) in scenarios_in(&format!("../../scenarios/{folder}")) {
            for (variant, scenario) in file.variants {
                let text = scenario.to_toml().expect("a scenario can be written");
                let mut by_text =
                    ScenarioFile::parse(&text).unwrap_or_else(|error| panic!("{name} {variant}: {error}"));
                assert_eq!(scenario.reread(), by_text.variants.remove("default"), "{folder}/{name} {variant}");
                read += 1;
            }
        }
    }
    assert!(read > 900, "{read}");
}

#[test]
fn what_its_text_refuses_is_not_read_again() {
    for (name, file) in scenarios() {
        for (variant, mut scenario) in file.variants {
            scenario.machine.mounts.values_mut().for_each(|mount| mount.device = Some("missing".to_owned()));
            let text = scenario.to_toml().expect("a scenario can be written");
            assert!(ScenarioFile::parse(&text).is_err(), "{name} {variant}");
            assert_eq!(scenario.reread(), None, "{name} {variant}");
        }
    }
}

#[test]
fn copies_have_different_paths_and_seeds() {
    let copies = |scenario: &Scenario| -> Vec<_> { scenario.task_copies().into_iter().map(|task| task.seed).collect() };
    for (name, file) in scenarios() {
        for (variant, scenario) in file.variants {
            let seeds = copies(&scenario);
            let mut distinct = seeds.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), seeds.len(), "{name} {variant}");
        }
    }
}
