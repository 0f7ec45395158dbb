// SPDX-License-Identifier: MIT OR Apache-2.0
//! `memory.high`: nobody is refused memory over it. Who charges pages there reclaims as many, and where that does not
//! help sleeps, the longer the further its cgroup is over. Mirrors mem_cgroup_handle_over_high of mm/memcontrol.c; the
//! sleeps since commit 0e4b01df8659 ("mm, memcg: throttle allocators when failing reclaim over memory.high"), 5.4.

use crate::arena::CgId;
use crate::engine::Sim;
use crate::memory::{reclaims, waits_for_reclaim};
use crate::world::World;

/// How often who is over it tries to reclaim before it sleeps.
const TRIES: u32 = 16;
/// Pages that are charged between two sleeps (`MEMCG_CHARGE_BATCH`).
const BATCH: u64 = 64;
/// Longest sleep for a batch, ns; shorter ones than the other are not taken.
const SLEEP_MAX: u64 = 2_000_000_000;
const SLEEP_MIN: u64 = 10_000_000;
/// A part of the limit is a number of 2^20ths; its square is a sleep in so many seconds by 2^34.
const PART: u32 = 20;
const SQUARE: u32 = 34;

/// How long who charges a batch sleeps in a cgroup that is so many pages over its limit, ns.
fn sleep_for(over: u64, high: u64) -> u64 {
    let part = (u128::from(over) << PART) / u128::from(high.max(1));
    let sleep = part.saturating_mul(part).saturating_mul(1_000_000_000) >> SQUARE;
    u64::try_from(sleep).unwrap_or(u64::MAX).min(SLEEP_MAX)
}

impl World {
    /// The nearest cgroup that so many more pages would put over `memory.high`, and by how many.
    fn over_high(&self, cgroup: CgId, pages: u64) -> Option<(CgId, u64)> {
        self.over_limit(cgroup, pages, |cgroup| cgroup.high)
    }

    /// How long who charges so many pages sleeps for being over in the end.
    fn sleep_over_high(&self, cgroup: CgId, pages: u64) -> u64 {
        let Some((scope, over)) = self.over_high(cgroup, pages).filter(|_| self.kernel.at_least(5, 4)) else {
            return 0;
        };
        let high = self.cgroups[scope].high;
        let batches = pages.min(over).div_ceil(BATCH);
        let sleeps = (0..batches).map(|left| sleep_for(over.saturating_sub(left * BATCH), high));
        sleeps.filter(|sleep| *sleep > SLEEP_MIN).fold(0, u64::saturating_add)
    }
}

/// Keeps who charges so many pages, and has them, waiting as long as `memory.high` wants.
pub(crate) async fn handle_over_high(sim: &Sim, cgroup: CgId, pages: u64) {
    for _ in 0..TRIES {
        let found = {
            let mut world = sim.w();
            let Some((scope, over)) = world.over_high(cgroup, pages) else { return };
            world.cgroups[scope].events_high += 1;
            reclaims(&mut world, scope, over)
        };
        match found {
            Some(0) => break,
            Some(_) => {}
            None => waits_for_reclaim(sim).await,
        }
    }
    let until = {
        let world = sim.w();
        world.now.saturating_add(world.sleep_over_high(cgroup, pages))
    };
    sim.sleep_until(until, "the end of its sleep over memory.high").await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_grows_with_the_square_of_what_is_over() {
        // A hundredth over the limit, a tenth, a quarter.
        assert_eq!(sleep_for(100, 10_000) / 1_000_000, 6);
        assert_eq!(sleep_for(1000, 10_000) / 1_000_000, 639);
        assert_eq!(sleep_for(2500, 10_000), SLEEP_MAX);
        assert_eq!((sleep_for(0, 10_000), sleep_for(u64::MAX, 0)), (0, SLEEP_MAX));
    }
}
