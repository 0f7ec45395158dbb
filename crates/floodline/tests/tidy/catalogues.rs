// SPDX-License-Identifier: MIT OR Apache-2.0
//! The catalogues: rules, metrics, commands. Prints the lines that were forgotten.

use crate::{expect_none, files, read, root};
use floodline_analysis::diagnose::rules::RULES;
use floodline_record::metric::{Metric, Row};
use floodline_record::sample::{
    BdiRow, CgroupIoRow, CgroupLimitsRow, CgroupRow, DiskRow, HostRow, ProcessRow, WbRow, ZoneRow,
};
use std::collections::BTreeSet;

/// The sections of a rule's manual page, in order.
const SECTIONS: &[&str] = &["What it means", "Evidence", "Why it happens", "What to do", "Kernel references"];

#[test]
fn every_rule_has_a_unique_name_and_a_whole_manual_page() {
    let mut complaints = Vec::new();
    let mut names = BTreeSet::new();
    for rule in RULES {
        let name = rule.name;
        if !names.insert(name) {
            complaints.push(format!("rule {name} is listed twice in diagnose/rules/mod.rs"));
        }
        if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
            complaints.push(format!("rule {name}: names are kebab case"));
        }
        if rule.summary.is_empty() || rule.summary.len() > 100 {
            complaints.push(format!("rule {name}: the summary is one line of at most 100 characters"));
        }
        let mut rest = rule.manual;
        for section in SECTIONS {
            match rest.split_once(&format!("## {section}")) {
                Some((_, after)) => rest = after,
                None => {
                    complaints.push(format!("rule {name}: its manual needs the section \"## {section}\", in order"))
                }
            }
        }
    }
    expect_none(&complaints);
}

/// What `Derived` computes once, and the sign that a rule runs another one. No rule has these in its code.
const COMPUTED_ONCE: &[&str] = &[
    "writer::writers(",
    "budget::budgets(",
    "device::devices(",
    "device::disks(",
    "device::drains(",
    "dirty::page_size(",
    "dirty::dirty_peak(",
    "waiting::waiters(",
    "load::busy(",
    "super::RULES",
    "rules::",
    "diagnose::rule(",
];

#[test]
fn rules_read_what_is_derived_and_run_no_other_rule() {
    let mut complaints = Vec::new();
    let catalogue: Vec<String> = RULES.iter().map(|rule| rule.name.replace('-', "_")).collect();
    for path in files("crates/analysis/src/diagnose/rules", "rs") {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem == "mod" || stem == "tests" {
            continue;
        }
        let text = read(&path);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let again = COMPUTED_ONCE.iter().find(|word| line.contains(**word)).map(|word| (*word).to_owned());
            let other = catalogue.iter().map(|rule| format!("super::{rule}::")).find(|rule| line.contains(rule));
            if let Some(word) = again.or(other) {
                complaints.push(format!("{stem}.rs:{}: {word} belongs into diagnose/derived.rs", number + 1));
            }
        }
    }
    expect_none(&complaints);
}

#[test]
fn every_rule_file_is_in_the_catalogue() {
    let folder = root().join("crates/analysis/src/diagnose/rules");
    let catalogue = read(&folder.join("mod.rs"));
    let mut complaints = Vec::new();
    for path in files("crates/analysis/src/diagnose/rules", "rs") {
        if path.parent() != Some(folder.as_path()) {
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let rule = stem.replace('_', "-");
        if stem != "mod" && !RULES.iter().any(|known| known.name == rule) {
            complaints.push(format!("{stem}.rs: add a rule named {rule} to RULES in diagnose/rules/mod.rs"));
        }
        if stem != "mod" && !catalogue.contains(&format!("mod {stem};")) {
            complaints.push(format!("add `mod {stem};` to diagnose/rules/mod.rs"));
        }
    }
    expect_none(&complaints);
}

#[test]
fn every_command_file_is_in_the_catalogue() {
    let catalogue = read(&root().join("crates/floodline/src/commands/mod.rs"));
    let mut complaints = Vec::new();
    for path in files("crates/floodline/src/commands", "rs") {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.parent().is_some_and(|folder| folder.ends_with("commands"))
            && stem != "mod"
            && !(catalogue.contains(&format!("mod {stem};")) && catalogue.contains(&format!("{stem}::")))
        {
            complaints.push(format!("{stem}.rs: add `mod {stem};` and its entry to commands/mod.rs"));
        }
    }
    expect_none(&complaints);
}

#[test]
fn every_metric_is_documented_and_unique() {
    let mut complaints = Vec::new();
    check_metrics::<HostRow>(&mut complaints);
    check_metrics::<ZoneRow>(&mut complaints);
    check_metrics::<DiskRow>(&mut complaints);
    check_metrics::<BdiRow>(&mut complaints);
    check_metrics::<WbRow>(&mut complaints);
    check_metrics::<CgroupRow>(&mut complaints);
    check_metrics::<CgroupLimitsRow>(&mut complaints);
    check_metrics::<CgroupIoRow>(&mut complaints);
    check_metrics::<ProcessRow>(&mut complaints);
    expect_none(&complaints);
}

fn check_metrics<R: Row>(complaints: &mut Vec<String>) {
    let mut names = BTreeSet::new();
    for Metric { name, doc, source, .. } in R::METRICS {
        if !names.insert(name) {
            complaints.push(format!("{}.{name} is declared twice", R::TABLE));
        }
        if !doc.ends_with('.') || source.is_empty() {
            complaints.push(format!("{}.{name}: one sentence of documentation and a source", R::TABLE));
        }
    }
}
