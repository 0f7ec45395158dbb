// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a cgroup's memory reclaim leaves alone: `memory.min` always, `memory.low` as long as there is anything
//! else. A child has no more of it than its parent leaves to it, in proportion where the children claim more than
//! there is. Follows mem_cgroup_calculate_protection of mm/page_counter.c as it is without `memory_recursiveprot`.

use crate::arena::CgId;
use crate::world::World;

/// How hard reclaim looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Leaves `memory.low` alone.
    Polite,
    /// Leaves `memory.min` alone.
    Low,
}

/// What of a claim is protected: all of it, or its part of what the parent has where all claims together are more.
fn effective_protection(claim: u64, siblings: u64, parent: u64) -> u64 {
    if siblings <= parent {
        return claim;
    }
    let part = u128::from(claim) * u128::from(parent) / u128::from(siblings.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

impl World {
    /// Pages of a cgroup that reclaim on behalf of `scope` leaves alone. Its own protection does not keep a cgroup
    /// below its own limit, nor that of cgroups above it.
    pub(crate) fn protected(&self, cgroup: CgId, scope: CgId, effort: Effort) -> u64 {
        if !self.has_protection || cgroup == scope {
            return 0;
        }
        let setting = |id: CgId| {
            let cgroup = &self.cgroups[id];
            let least = cgroup.min.min(cgroup.charged.usage());
            match effort {
                Effort::Polite => least.max(cgroup.low.min(cgroup.charged.usage())),
                Effort::Low => least,
            }
        };
        let mut path: Vec<CgId> = self.ancestors(cgroup).take_while(|id| *id != scope).collect();
        let Some(top) = path.pop() else { return 0 };
        let mut effective = setting(top);
        let mut parent = top;
        for id in path.into_iter().rev() {
            let children = self.cgroups.iter().filter(|(_, child)| child.parent == Some(parent) && !child.is_dead);
            let claims = children.map(|(child, _)| setting(child)).fold(0, u64::saturating_add);
            effective = effective_protection(setting(id), claims, effective);
            parent = id;
        }
        effective
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
