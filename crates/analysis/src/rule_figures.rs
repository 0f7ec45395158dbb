// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a prediction that the findings of each rule are about: the one by which a finding hurts, and those that
//! decide whether it lasts. One table for `predict`, `doctor`, `advise` and the pre-flight. Rules that judge no measured
//! figure are not in it.

use crate::prediction::{DIRTIED, LONGEST, LONGEST_WRITE, P99, PEAK, SMALLEST_BUDGET, UNMOUNT, WAITS, WRITTEN};

struct OfRule {
    rule: &'static str,
    /// The figure by which its finding hurts.
    hurts_by: Option<&'static str>,
    /// Whether the finding hurts by waits alone. Predicted waits then show how much it hurts.
    is_of_waits: bool,
    /// The figures that its findings rest on; none where any run of the model decides.
    rests_on: &'static [&'static str],
}

const fn of_waits(rule: &'static str, hurts_by: &'static str, rests_on: &'static [&'static str]) -> OfRule {
    OfRule { rule, hurts_by: Some(hurts_by), is_of_waits: true, rests_on }
}

const RULES: &[OfRule] = &[
    of_waits("dirty-cliff", LONGEST, &[LONGEST_WRITE, LONGEST, PEAK]),
    OfRule { rule: "dirty-data-at-risk", hurts_by: Some(PEAK), is_of_waits: false, rests_on: &[PEAK] },
    of_waits("dominant-writer", LONGEST, &[LONGEST, WRITTEN]),
    of_waits("fsync-behind-writeback", LONGEST, &[LONGEST, P99]),
    of_waits("io-limit-throttling", WAITS, &[WAITS, LONGEST]),
    of_waits("overlay-umount-flush", UNMOUNT, &[UNMOUNT, PEAK]),
    of_waits("saturated-device", WAITS, &[WAITS]),
    OfRule {
        rule: "starved-dirty-budget",
        hurts_by: None,
        is_of_waits: false,
        rests_on: &[SMALLEST_BUDGET, DIRTIED, WRITTEN],
    },
    of_waits("strictlimit-throttling", WAITS, &[]),
];

fn of(rule: &str) -> Option<&'static OfRule> {
    RULES.iter().find(|one| one.rule == rule)
}

/// The figure by which the finding of a rule hurts, if it is one of a prediction.
pub fn hurts_by(rule: &str) -> Option<&'static str> {
    of(rule)?.hurts_by
}

/// Whether the finding of a rule hurts by waits alone.
pub fn is_of_waits(rule: &str) -> bool {
    of(rule).is_some_and(|one| one.is_of_waits)
}

/// Rules whose change follows from the kernel's arithmetic alone. The limit of a cgroup is a share of the threshold, so a threshold
/// that gives each cgroup room for what it rewrites ends the rewriting. On real kernels it did so at each of 19 machines
/// (`docs/internals/advice-results.md`). The change of any other rule also moves waits, which no arithmetic tells, and so does that for
/// writers that wait at a limit of a cgroup, and one that holds less than half of what is rewritten (`Finding::helps_in_part`).
const EXACT: [&str; 1] = ["starved-dirty-budget"];

/// Rules whose findings follow from settings alone: no figure of a run decides whether they are there.
const OF_SETTINGS: [&str; 1] = ["contradictory-dirty-settings"];

/// Whether the findings of a rule follow from settings alone. A twin has the settings of its host, whatever else it misses.
pub fn is_of_settings(rule: &str) -> bool {
    OF_SETTINGS.contains(&rule)
}

/// Whether the changes of these rules follow from the kernel's arithmetic alone.
pub fn are_exact(rules: &[&str]) -> bool {
    !rules.is_empty() && rules.iter().all(|rule| EXACT.contains(rule))
}

/// The figures that the findings of a rule rest on; none for a rule that judges no measured figure.
pub fn rests_on(rule: &str) -> &'static [&'static str] {
    of(rule).map_or(&[], |one| one.rests_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_in_the_catalogue() {
        for rule in RULES.iter().map(|one| one.rule).chain(EXACT).chain(OF_SETTINGS) {
            assert!(crate::diagnose::rule(rule).is_some(), "{rule}");
        }
        assert!(OF_SETTINGS.iter().all(|rule| rests_on(rule).is_empty()));
    }

    #[test]
    fn a_plan_is_exact_if_all_of_its_rules_are() {
        assert!(are_exact(&["starved-dirty-budget"]));
        assert!(!are_exact(&["starved-dirty-budget", "dirty-cliff"]) && !are_exact(&[]));
    }
}
