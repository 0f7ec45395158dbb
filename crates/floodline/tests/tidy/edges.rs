// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which crate may link which, and the lints that hold each crate's wall.

use crate::{expect_none, read, root};

/// What a crate may link: in the product, and in its tests besides.
struct Edges {
    name: &'static str,
    links: &'static [&'static str],
    tests: &'static [&'static str],
}

/// Nothing that observes, simulates or runs guests links the rules (`analysis`), and nothing but tests the testkit.
const ALLOWED: &[Edges] = &[
    Edges { name: "skip", links: &[], tests: &[] },
    Edges { name: "captured", links: &[], tests: &[] },
    Edges { name: "record", links: &[], tests: &["testkit"] },
    Edges { name: "kernel", links: &["record"], tests: &["testkit"] },
    Edges { name: "scenario", links: &["record", "kernel"], tests: &[] },
    Edges { name: "analysis", links: &["record", "kernel", "scenario"], tests: &["testkit"] },
    Edges { name: "testkit", links: &["record", "kernel"], tests: &["analysis"] },
    Edges { name: "sim", links: &["record", "kernel", "scenario"], tests: &["analysis", "testkit"] },
    Edges { name: "host", links: &["record", "kernel"], tests: &["analysis", "captured"] },
    Edges { name: "lab", links: &["record", "kernel", "scenario"], tests: &[] },
    Edges { name: "twin", links: &["record", "kernel", "scenario", "analysis", "sim"], tests: &["testkit"] },
    Edges { name: "fleet", links: &["record", "kernel", "scenario", "analysis", "sim", "twin"], tests: &["testkit"] },
    Edges { name: "tune", links: &["record", "analysis"], tests: &[] },
    Edges { name: "serve", links: &["record", "kernel", "analysis", "host", "view"], tests: &["testkit"] },
    Edges { name: "view", links: &["record", "kernel", "scenario", "analysis", "twin", "fleet"], tests: &["testkit"] },
    Edges {
        name: "floodline",
        links: &[
            "record", "kernel", "scenario", "analysis", "sim", "twin", "fleet", "host", "lab", "view", "tune", "serve",
        ],
        tests: &["testkit", "captured"],
    },
    // The Python package: what is concluded from recordings and scenarios, and nothing that touches a host.
    Edges {
        name: "py",
        links: &["record", "kernel", "scenario", "analysis", "sim", "twin", "fleet", "view"],
        tests: &[],
    },
    // What only developers need: no crate links it.
    Edges {
        name: "dev",
        links: &["record", "scenario", "analysis", "sim", "twin", "fleet", "view"],
        tests: &["testkit"],
    },
];

/// What a crate of values must not touch: files, clocks, threads, orders that change from run to run.
const VALUES: &[&str] =
    &["std::fs::File", "std::time::Instant", "std::time::SystemTime", "std::thread::spawn", "HashMap"];

/// What the wall of a crate must forbid.
const WALLS: &[(&str, &[&str])] = &[
    ("record", VALUES),
    ("kernel", VALUES),
    ("scenario", VALUES),
    ("analysis", VALUES),
    ("testkit", VALUES),
    ("sim", VALUES),
    ("twin", VALUES),
    ("fleet", VALUES),
    ("py", &["std::fs::write", "std::process::Command", "HashMap"]),
    ("view", &["std::fs::File", "std::time::Instant", "std::time::SystemTime", "std::thread::spawn"]),
];

#[test]
fn each_crate_links_only_what_its_wall_allows() {
    let mut complaints = Vec::new();
    let mut found: Vec<String> = std::fs::read_dir(root().join("crates"))
        .expect("there are crates")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    let mut expected: Vec<&str> = ALLOWED.iter().map(|edges| edges.name).collect();
    expected.sort_unstable();
    assert_eq!(found, expected, "a wall earns its crate when it forbids an effect: see ARCHITECTURE.md");
    for Edges { name, links, tests } in ALLOWED {
        let manifest: toml::Table =
            read(&root().join("crates").join(name).join("Cargo.toml")).parse().expect("valid TOML");
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(table) = manifest.get(section).and_then(|section| section.as_table()) else { continue };
            for dependency in table.keys().filter_map(|key| key.strip_prefix("floodline-")) {
                // Tests of every crate may be skipped.
                let is_test = section == "dev-dependencies" && (tests.contains(&dependency) || dependency == "skip");
                if !links.contains(&dependency) && !is_test {
                    complaints
                        .push(format!("crate {name}: [{section}] must not name {dependency}; see ARCHITECTURE.md"));
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
    for Edges { name, .. } in ALLOWED {
        let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
        if !manifest.contains("[lints]\nworkspace = true") {
            complaints.push(format!("crates/{name}/Cargo.toml must have [lints] workspace = true"));
        }
    }
    expect_none(&complaints);
}
