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

/// The figures that the findings of a rule rest on; none for a rule that judges no measured figure.
pub fn rests_on(rule: &str) -> &'static [&'static str] {
    of(rule).map_or(&[], |one| one.rests_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_in_the_catalogue() {
        for one in RULES {
            assert!(crate::diagnose::rule(one.rule).is_some(), "{}", one.rule);
        }
    }
}
