// SPDX-License-Identifier: MIT OR Apache-2.0
//! What which kernel does stands in one table: no other code compares versions.

use crate::{expect_none, files, read, root};

/// The table, and what is beside it: versions and their order.
const TABLE: &[&str] = &["crates/kernel/src/", "crates/record/src/version.rs"];

/// Files that order versions which a person wrote, or that the lab offers, and decide nothing by them.
const SORTED: &[&str] =
    &["crates/scenario/src/expect.rs", "crates/lab/src/kernels/", "crates/lab/src/bisect.rs", "tests/tidy/kernels.rs"];

/// Signs of a comparison.
const SIGNS: &[&str] = &[
    ".at_least(",
    "kernel.major",
    "kernel.minor",
    "kernel.patch",
    "version.major",
    "version.minor",
    "version.patch",
    ".series() ==",
    ".series() >",
    ".series() <",
    ">= KernelVersion",
    "> KernelVersion",
    "< KernelVersion",
    "<= KernelVersion",
    "== KernelVersion",
];

#[test]
fn only_the_table_of_changes_compares_versions() {
    let mut complaints = Vec::new();
    for path in files("crates", "rs") {
        let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        if TABLE.iter().any(|folder| shown.starts_with(folder)) || SORTED.iter().any(|part| shown.contains(part)) {
            continue;
        }
        for (number, line) in read(&path).lines().enumerate() {
            if let Some(sign) = SIGNS.iter().find(|sign| line.contains(**sign)) {
                complaints.push(format!(
                    "{shown}:{}: {sign} compares a version. Add a change to crates/kernel/src/changes and read a field \
                     of Behaviour",
                    number + 1
                ));
            }
        }
    }
    expect_none(&complaints);
}
