// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules on the result of a change: the diagnosis of the window as it is, beside that of the window in which the change
//! holds. New findings are due to the change. Only rules that judge settings, kernels and shapes run on the changed
//! window: its tasks ran under the old conditions.

use crate::row::Cause;
use floodline_analysis::diagnose::derived::Derived;
use floodline_analysis::diagnose::{findings, first_critical};
use floodline_analysis::report::{Finding, Severity};
use floodline_record::window::Window;

/// Rules that can judge a window in which conditions are assumed, and what hosts are grouped by.
const RULES: [(&str, Cause); 4] = [
    ("inode-switch-storm", Cause::InodeSwitching),
    ("overlay-umount-flush", Cause::OverlaySync),
    ("contradictory-dirty-settings", Cause::Contradiction),
    ("cgroup-writeback-missing", Cause::LimitsLost),
];

/// Rules whose critical findings say that a host is sick now.
const SICK: [&str; 9] = [
    "starved-dirty-budget",
    "dirty-cliff",
    "inode-switch-storm",
    "overlay-umount-flush",
    "fsync-behind-writeback",
    "strictlimit-throttling",
    "io-limit-throttling",
    "saturated-device",
    "buffered-loop-device",
];

/// A finding that the change brings.
#[derive(Debug)]
pub(crate) struct Appears {
    pub(crate) cause: Cause,
    pub(crate) severity: Severity,
    pub(crate) summary: String,
}

/// The rule with a critical finding in the recording itself.
pub(crate) fn sick(derived: &Derived<'_>) -> Option<&'static str> {
    // Harm is measured between two samples.
    derived.has_rates.then(|| first_critical(derived, &SICK)).flatten()
}

/// Findings of warning and worse that the changed window has and the unchanged one has not, the worst first.
pub(crate) fn appear(now: &Derived<'_>, then: &Window) -> Vec<Appears> {
    let names: Vec<&str> = RULES.iter().map(|(name, _)| *name).collect();
    let after = findings(&Derived::of(then), &names);
    if !after.iter().any(|finding| finding.severity >= Severity::Warning) {
        return Vec::new();
    }
    let before = findings(now, &names);
    let is_known =
        |found: &Finding| before.iter().any(|known| known.rule == found.rule && known.severity >= found.severity);
    after
        .into_iter()
        .filter(|found| found.severity >= Severity::Warning && !is_known(found))
        .filter_map(|found| {
            let (_, cause) = RULES.into_iter().find(|(name, _)| *name == found.rule)?;
            Some(Appears { cause, severity: found.severity, summary: found.summary })
        })
        .collect()
}
