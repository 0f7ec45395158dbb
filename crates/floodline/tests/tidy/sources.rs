// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every source file has, and what none may have.

use crate::{expect_none, files, read, root};

/// Longer than this a file must be a flat table, generated, or a test corpus.
const LINES_MAX: usize = 1000;

#[test]
fn every_source_file_opens_with_its_licence_and_purpose() {
    let mut complaints = Vec::new();
    for path in files("crates", "rs") {
        let text = read(&path);
        let mut lines = text.lines();
        let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        if lines.next() != Some("// SPDX-License-Identifier: MIT OR Apache-2.0") {
            complaints.push(format!("{shown}: the first line must be the SPDX line"));
        }
        if !lines.next().is_some_and(|line| line.starts_with("//! ")) {
            complaints.push(format!("{shown}: the second line must say what the file is (`//! …`)"));
        }
        if text.lines().count() > LINES_MAX {
            complaints.push(format!("{shown}: over {LINES_MAX} lines; does its header need an \"and\"?"));
        }
    }
    expect_none(&complaints);
}

#[test]
fn nothing_is_ignored_unfinished_or_tied_to_one_machine() {
    // Put together here so that this file does not find itself.
    let forbidden: Vec<(String, &str)> = vec![
        (format!("#[{}]", "ignore"), "assert what happens now and write down what should"),
        (format!("{}!(", "todo"), "finish it, or leave it out"),
        (format!("{}!(", "unimplemented"), "finish it, or leave it out"),
        (format!("allow({}", "dead_code"), "delete what nobody uses"),
        (format!("allow({}", "unused"), "delete what nobody uses"),
        (format!("/{}/", "work"), "no absolute path of one machine"),
        (format!("deb.{}", "debian.org"), "no registry hosts: take the mirror from the machine's own sources"),
    ];
    let mut complaints = Vec::new();
    for path in files("crates", "rs") {
        let text = read(&path);
        for (number, line) in text.lines().enumerate() {
            for (words, advice) in &forbidden {
                if line.contains(words.as_str()) {
                    complaints.push(format!("{}:{}: {words} — {advice}", path.display(), number + 1));
                }
            }
        }
    }
    expect_none(&complaints);
}

#[test]
fn a_test_is_skipped_in_one_way_only() {
    let mut complaints = Vec::new();
    for path in files("crates", "rs").iter().filter(|path| !path.starts_with(root().join("crates/skip"))) {
        for (number, line) in read(path).lines().enumerate() {
            if line.contains(concat!("eprint", "ln")) && line.to_lowercase().contains("skip") {
                complaints.push(format!("{}:{}: call floodline_skip::skip", path.display(), number + 1));
            }
        }
    }
    expect_none(&complaints);
}

#[test]
fn no_file_name_says_nothing() {
    let mut complaints = Vec::new();
    for path in files("crates", "rs") {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if ["util", "utils", "common", "misc", "helpers", "imp"].contains(&stem.as_str())
            || ["_enhanced", "_extended", "_v2"].iter().any(|ending| stem.ends_with(ending))
        {
            complaints.push(format!("{}: a name says what a thing is", path.display()));
        }
    }
    expect_none(&complaints);
}

/// `crates/host/build` makes the types of the tables that BPF programs share with user space.
#[test]
fn no_layout_of_a_table_is_stated_by_hand() {
    let trace = root().join("crates/host/src/trace");
    let mut complaints = Vec::new();
    for path in files("crates/host/src/trace", "rs") {
        let text = read(&path);
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let exempt = ["layout.rs", "specimen.rs"].iter().any(|name| path == trace.join(name));
        for (number, line) in code.lines().enumerate().filter(|_| !exempt) {
            let by_hand = ["_ne_bytes", "_le_bytes", "repr(C)", "Mirrors `struct", "Mirrors `enum"];
            if by_hand.iter().any(|words| line.contains(words)) {
                complaints.push(format!("{}:{}: read it by its type of layout.rs", path.display(), number + 1));
            }
        }
    }
    assert!(read(&trace.join("layout.rs")).contains("/layouts.rs"), "the layouts are no longer generated");
    expect_none(&complaints);
}
