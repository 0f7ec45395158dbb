// SPDX-License-Identifier: MIT OR Apache-2.0
//! The star: core ← {sim, host, lab, view} ← floodline, and the lints that hold each crate's wall.

use crate::{expect_none, read, root};

/// Which crates of ours each crate may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("skip", &[]),
    ("core", &[]),
    ("sim", &["floodline-core"]),
    ("host", &["floodline-core"]),
    ("lab", &["floodline-core"]),
    ("view", &["floodline-core"]),
    ("floodline", &["floodline-core", "floodline-sim", "floodline-host", "floodline-lab", "floodline-view"]),
];

/// What the wall of a crate must forbid.
const WALLS: &[(&str, &[&str])] = &[
    ("core", &["std::fs::File", "std::time::Instant", "std::time::SystemTime", "std::thread::spawn", "HashMap"]),
    ("sim", &["std::fs::File", "std::time::Instant", "std::time::SystemTime", "std::thread::spawn", "HashMap"]),
    ("view", &["std::fs::File", "std::time::Instant", "std::time::SystemTime", "std::thread::spawn"]),
];

#[test]
fn the_crates_form_a_star() {
    let mut complaints = Vec::new();
    let mut found: Vec<String> = std::fs::read_dir(root().join("crates"))
        .expect("there are crates")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    let mut expected: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    assert_eq!(found, expected, "a wall earns its crate when it forbids an effect: see ARCHITECTURE.md");
    for (name, allowed) in ALLOWED {
        let manifest: toml::Table =
            read(&root().join("crates").join(name).join("Cargo.toml")).parse().expect("valid TOML");
        for section_name in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(section) = manifest.get(section_name).and_then(|section| section.as_table()) else { continue };
            for dependency in section.keys().filter(|key| key.starts_with("floodline")) {
                // Tests of every crate may be skipped.
                let is_skip = section_name == "dev-dependencies" && dependency == "floodline-skip";
                if !is_skip && !allowed.contains(&dependency.as_str()) {
                    complaints.push(format!("crate {name} must not depend on {dependency}: siblings meet in core"));
                }
            }
        }
    }
    expect_none(&complaints);
}

#[test]
fn every_wall_is_held_by_lints() {
    let mut complaints = Vec::new();
    for (name, forbidden) in WALLS {
        let lints = read(&root().join("crates").join(name).join("clippy.toml"));
        for item in *forbidden {
            if !lints.contains(item) {
                complaints.push(format!("crates/{name}/clippy.toml must forbid {item}"));
            }
        }
    }
    for (name, _) in ALLOWED {
        let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
        if !manifest.contains("[lints]\nworkspace = true") {
            complaints.push(format!("crates/{name}/Cargo.toml must have [lints] workspace = true"));
        }
    }
    expect_none(&complaints);
}
