// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of a cgroup that reclaim leaves alone: `memory.min` always, `memory.low` as long as there is anything
//! else. The children of a cgroup together get at most its protection. If they claim more than that, they share it in
//! proportion. Follows mem_cgroup_calculate_protection of mm/page_counter.c without `memory_recursiveprot`.

use crate::arena::CgId;
use crate::cgroup::Cgroup;
use crate::world::World;

/// Effort of reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Leaves pages under `memory.low` alone.
    Polite,
    /// Leaves only pages under `memory.min` alone.
    Low,
}

/// Protected part of a claim: all of it, or its share of the parent's protection if the children claim more than that.
fn effective_protection(claim: u64, siblings: u64, parent: u64) -> u64 {
    if siblings <= parent {
        return claim;
    }
    let part = u128::from(claim) * u128::from(parent) / u128::from(siblings.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

impl World {
    /// Pages of each cgroup below `scope` that reclaim on its behalf leaves alone; empty if no cgroup has
    /// protection. The protection of `scope` and of cgroups above it does not count.
    pub(crate) fn protections(&self, scope: CgId, effort: Effort) -> Vec<u64> {
        if !self.has_protection {
            return Vec::new();
        }
        let setting = |cgroup: &Cgroup| {
            let wanted = if effort == Effort::Polite { cgroup.min.max(cgroup.low) } else { cgroup.min };
            wanted.min(cgroup.charged.usage())
        };
        let mut claims = vec![0_u64; self.cgroups.len()];
        for (_, cgroup) in self.cgroups.iter().filter(|(_, cgroup)| !cgroup.is_dead) {
            if let Some(claimed) = cgroup.parent.and_then(|parent| claims.get_mut(parent.0 as usize)) {
                *claimed = claimed.saturating_add(setting(cgroup));
            }
        }
        let mut effective: Vec<Option<u64>> = vec![None; self.cgroups.len()];
        // Children come after their parents.
        for (id, cgroup) in self.cgroups.iter() {
            effective[id.0 as usize] = cgroup.parent.and_then(|parent| match effective[parent.0 as usize] {
                _ if parent == scope => Some(setting(cgroup)),
                above => Some(effective_protection(setting(cgroup), claims[parent.0 as usize], above?)),
            });
        }
        effective.into_iter().map(Option::unwrap_or_default).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_beyond_what_the_parent_has_are_cut_in_proportion() {
        let check = |claim, siblings, parent, expect| {
            assert_eq!(effective_protection(claim, siblings, parent), expect, "{claim} of {siblings} in {parent}");
        };
        check(100, 100, 100, 100);
        check(100, 300, 600, 100);
        check(100, 300, 150, 50);
        check(100, 300, 0, 0);
        check(0, 0, 0, 0);
        check(u64::MAX, u64::MAX, u64::MAX - 1, u64::MAX - 1);
    }
}
