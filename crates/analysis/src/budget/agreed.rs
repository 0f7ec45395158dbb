// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits that a change was expected to bring, each beside the one that is found.

use super::as_if::{AsIf, NotAsIf, assume};
use super::budgets;
use floodline_record::window::Window;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Share by which a limit may be off: limits follow free memory and page cache, which move by themselves.
const TOLERANCE: f64 = 0.1;

/// The hard threshold of one cgroup, or of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Path of the cgroup (escaped); `None` is the machine.
    pub cgroup: Option<String>,
    /// Bytes, by the arithmetic of the kernel on the readings before the change, with its settings.
    pub expected: u64,
    /// Bytes, by the readings after it. The machine's is what the kernel prints, where it prints it.
    pub found: u64,
}

impl Agreed {
    /// Whether both are the same, within a tenth.
    pub fn is_met(&self) -> bool {
        let (expected, found) = (self.expected as f64, self.found as f64);
        (expected - found).abs() <= expected.max(found) * TOLERANCE
    }
}

/// Compares the limits that `before` would have under the conditions with those of `after`. `before` may be `after`: then free
/// memory is the same in both, and what differs is a setting. The machine first, then cgroups by path; those that are
/// in one of the two only are left out.
///
/// # Errors
///
/// A condition names a cgroup that was not read.
pub fn agreed(before: &Window, conditions: &AsIf, after: &Window) -> Result<Vec<Agreed>, NotAsIf> {
    let expected = assume(before, Cow::Owned(budgets(before)), conditions)?.rows;
    let found = assume(after, Cow::Owned(budgets(after)), &AsIf::default())?.rows;
    let found: BTreeMap<Option<String>, u64> =
        found.into_iter().filter_map(|row| Some((row.cgroup, row.now_thresh_bytes?))).collect();
    let mut both: Vec<Agreed> = expected
        .into_iter()
        .filter_map(|row| {
            let found = *found.get(&row.cgroup)?;
            Some(Agreed { expected: row.then_thresh_bytes?, found, cgroup: row.cgroup })
        })
        .collect();
    both.sort_by(|a, b| a.cgroup.cmp(&b.cgroup));
    Ok(both)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use floodline_record::units::{Bytes, Limit};
    use floodline_testkit::Fixture;

    const MIB: u64 = 1 << 20;

    fn host(settings: (u64, u64, u64, u64)) -> Window {
        let host = Fixture::healthy().settings(settings).cgroup("/app", |_, row| {
            row.memory_current = Some(Bytes(250 * MIB));
            row.inactive_file = Some(Bytes(100 * MIB));
            row.active_file = Some(Bytes(0));
            row.file_dirty = Some(Bytes(0));
            row.file_writeback = Some(Bytes(0));
        });
        host.limits("/app", |_, row| {
            row.memory_max = Some(Limit(256 * MIB));
            row.memory_high = Some(Limit::MAX);
        })
        .window()
    }

    #[test]
    fn limits_are_as_expected_after_the_change_and_not_before_it() {
        let conditions: AsIf = "vm.dirty_ratio=5,vm.dirty_background_ratio=2".parse().unwrap();
        let (before, after) = (host((20, 0, 10, 0)), host((5, 0, 2, 0)));
        let is_met = |agreed: &[Agreed], path: Option<&str>| {
            agreed.iter().find(|one| one.cgroup.as_deref() == path).map(Agreed::is_met)
        };
        let done = agreed(&before, &conditions, &after).unwrap();
        assert_eq!((done[0].cgroup.as_deref(), is_met(&done, Some("/app"))), (None, Some(true)), "{done:?}");
        let undone = agreed(&before, &conditions, &before).unwrap();
        assert_eq!((is_met(&undone, None), is_met(&undone, Some("/app"))), (Some(false), Some(false)), "{undone:?}");
    }

    #[test]
    fn a_tenth_is_allowed() {
        let check = |expected, found, is_met| {
            assert_eq!(Agreed { cgroup: None, expected, found }.is_met(), is_met, "{expected} {found}");
        };
        check(100, 110, true);
        check(100, 89, false);
        check(0, 0, true);
        check(0, 1, false);
    }
}
