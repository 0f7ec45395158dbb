// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tidiness is a test: the walls between the crates, the catalogues, the headers. Every message says
//! what to do. Reads the source tree it was built from.

mod catalogues;
mod corpus;
mod edges;
mod kernels;
mod licences;
mod notices;
mod sources;
mod texts;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the source tree.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the source tree is there")
}

/// Reads one file of the tree.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// All files below a folder of the tree with an ending, in order of path.
fn files(below: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(below)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|have| have == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Fails with every complaint at once.
fn expect_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
