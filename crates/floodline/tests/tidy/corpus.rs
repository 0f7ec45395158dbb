// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kept inputs of the fuzz targets: each target has some beside its source, where its test finds and runs them, none is
//! of a target that is gone, and all together stay small. `FUZZ_KEEP=8 make fuzz` renews them.

use crate::{expect_none, files, read, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Most bytes of one input, and of all.
const INPUT_MAX: u64 = 512;
const ALL_MAX: u64 = 200 << 10;

/// The folders in which targets look for kept inputs: `__fuzz__` beside the source, then the path of the test.
fn expected() -> BTreeSet<PathBuf> {
    let mut expected = BTreeSet::new();
    for path in files("crates", "rs") {
        let text = read(&path);
        let folder = path.parent().expect("a folder").join("__fuzz__");
        // Parsers share one target, which takes the name of the file that calls it.
        if text.contains(&format!("survives_any{}(", "thing")) && !text.contains("fn survives_anything") {
            expected.insert(folder.join(path.file_stem().expect("a name")));
        }
        let mut function = "";
        for line in text.lines() {
            let name = line.trim_start().trim_start_matches("pub(super) ").strip_prefix("fn ");
            function = name.and_then(|name| name.split(['(', '<']).next()).unwrap_or(function);
            if line.contains(&format!("bolero::{}()", "check!")) {
                expected.insert(folder.join(module_of(&path, &text) + function));
            }
        }
    }
    expected
}

/// The module of a file's tests as the folder's name has it: parts end with two underscores.
fn module_of(path: &Path, text: &str) -> String {
    let parts = path.strip_prefix(root().join("crates")).expect("below crates").with_extension("");
    let mut parts: Vec<String> = parts.iter().skip(2).map(|part| part.to_string_lossy().into_owned()).collect();
    parts.retain(|part| part != "mod" && part != "lib");
    if text.contains("\nmod tests {") {
        parts.push("tests".to_owned());
    }
    parts.into_iter().map(|part| part + "__").collect()
}

#[test]
fn every_fuzz_target_has_kept_inputs_that_its_test_runs() {
    let expected = expected();
    let mut found = BTreeSet::new();
    let mut complaints = Vec::new();
    let mut all = 0;
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.iter().any(|part| part == "__fuzz__") {
                let bytes = entry.metadata().expect("a file").len();
                all += bytes;
                if bytes > INPUT_MAX {
                    complaints.push(format!("{}: longer than {INPUT_MAX} bytes", path.display()));
                }
                found.extend(path.ancestors().nth(2).map(Path::to_owned));
            }
        }
    }
    assert!(expected.len() > 40, "{expected:?}");
    complaints.extend(
        expected.difference(&found).map(|target| format!("{}: no kept input: FUZZ_KEEP=8 make fuzz", target.display())),
    );
    complaints
        .extend(found.difference(&expected).map(|folder| format!("{}: of no target: remove it", folder.display())));
    if all > ALL_MAX {
        complaints.push(format!("kept inputs are {all} bytes, more than {ALL_MAX}: remove the least useful"));
    }
    expect_none(&complaints);
}
