// SPDX-License-Identifier: MIT OR Apache-2.0
//! `memory.high`: allocations over it succeed. A task that charged pages over it reclaims as many when it leaves
//! the call or fault. If that does not help, it sleeps: the further its cgroup is over, the longer. Mirrors
//! mem_cgroup_handle_over_high of mm/memcontrol.c; the sleeps since commit 0e4b01df8659 ("mm, memcg: throttle
//! allocators when failing reclaim over memory.high"), 5.4. A long call sleeps for every batch, as since 5.18.

use crate::arena::{CgId, PidId};
use crate::engine::Sim;
use crate::memory::{reclaim_at_cost, try_reclaim, wait_for_reclaim};
use crate::process::use_cpu;
use crate::world::World;

/// Number of times a task over the limit tries to reclaim before it sleeps.
const TRIES: u32 = 16;
/// Longest sleep for a batch, ns; a sleep not longer than the shortest is skipped.
const SLEEP_MAX: u64 = 2_000_000_000;
const SLEEP_MIN: u64 = 10_000_000;
/// The excess over the limit is a fraction in 2^20ths; its square divided by 2^34 is the sleep in seconds.
const PART: u32 = 20;
const SQUARE: u32 = 34;

/// Sleep for charging a batch in a cgroup that is `over` pages over its limit, ns.
fn sleep_for(over: u64, high: u64) -> u64 {
    let part = (u128::from(over) << PART) / u128::from(high.max(1));
    let sleep = part.saturating_mul(part).saturating_mul(1_000_000_000) >> SQUARE;
    u64::try_from(sleep).unwrap_or(u64::MAX).min(SLEEP_MAX)
}

impl World {
    /// Notes that a process is about to charge pages to a cgroup, if that is then over `memory.high`.
    pub(crate) fn note_over_high(&mut self, pid: PidId, cgroup: CgId, pages: u64) {
        if self.over_limit(cgroup, pages, |cgroup| cgroup.high).is_some() {
            self.pids[pid].nr_pages_over_high += pages;
        }
    }

    /// The given cgroup and its ancestors that are over `memory.high`, each with its excess in pages.
    fn over_high(&self, cgroup: CgId) -> Vec<(CgId, u64)> {
        let over = |id: CgId| self.cgroups[id].charged.usage().saturating_sub(self.cgroups[id].high);
        self.ancestors(cgroup).map(|id| (id, over(id))).filter(|(_, over)| *over > 0).collect()
    }

    /// Total sleep of a task that charged `pages`. Each batch sleeps for the cgroup that was furthest over then.
    fn sleep_over_high(&self, over: &[(CgId, u64)], pages: u64) -> u64 {
        if !self.behaviour.memcg.high_sleeps {
            return 0;
        }
        let batch = self.behaviour.memcg.charge_batch;
        let sleep_before = |left: u64| {
            let sleeps =
                over.iter().map(|(id, over)| sleep_for(over.saturating_sub(left * batch), self.cgroups[*id].high));
            sleeps.max().unwrap_or(0)
        };
        let sleeps = (0..pages / batch).map(sleep_before).filter(|sleep| *sleep > SLEEP_MIN);
        sleeps.fold(0, u64::saturating_add)
    }

    /// Reclaims from every cgroup over its limit. Returns the pages, or nothing if some pages may be clean soon.
    fn reclaim_high(&mut self, cgroup: CgId) -> Option<u64> {
        let (mut evicted, mut has_dirty) = (0, false);
        for (id, over) in self.over_high(cgroup) {
            self.cgroups[id].events_high += 1;
            match try_reclaim(self, id, over) {
                Some(pages) => evicted += pages,
                None => has_dirty = true,
            }
        }
        (evicted > 0 || !has_dirty).then_some(evicted)
    }
}

/// Has a process, when it leaves a call or fault, reclaim and sleep for its charges over `memory.high`.
pub(crate) async fn handle_over_high(sim: &Sim, pid: PidId) {
    let (cgroup, pages) = {
        let mut world = sim.w();
        let batch = world.behaviour.memcg.charge_batch;
        let task = &mut world.pids[pid];
        if task.nr_pages_over_high < batch {
            return;
        }
        let pages = task.nr_pages_over_high / batch * batch;
        task.nr_pages_over_high -= pages;
        (task.charges.unwrap_or(task.cgroup), pages)
    };
    for _ in 0..TRIES {
        let (found, cost) = { reclaim_at_cost(&mut sim.w(), |world| world.reclaim_high(cgroup)) };
        if cost > 0 {
            use_cpu(sim, pid, cost, false).await;
        }
        match found {
            Some(0) => break,
            Some(_) => continue,
            None => {}
        }
        wait_for_reclaim(sim).await;
    }
    // A signal that kills the task ends the sleep.
    let until = {
        let world = sim.w();
        let until = world.now.saturating_add(world.sleep_over_high(&world.over_high(cgroup), pages));
        until.min(world.pids[pid].end.max(world.now))
    };
    sim.sleep_until(until, "the end of its sleep over memory.high").await;
}

/// Attempts without progress after which a lower limit is left above its usage (`MAX_RECLAIM_RETRIES`).
const SHRINK_TRIES: u32 = 16;

/// Reclaims a cgroup down to its limits, for the process that has just lowered one (`memory_max_write`, `memory_high_write`). The
/// process waits meanwhile. The OOM killer, which a limit of memory.max would call in the end, is not modelled.
pub(crate) async fn shrink(sim: &Sim, pid: PidId, cgroup: CgId) {
    let mut tries = SHRINK_TRIES;
    while tries > 0 {
        let (found, cost) = {
            let mut world = sim.w();
            let limits = &world.cgroups[cgroup];
            let over = limits.charged.usage().saturating_sub(limits.max.min(limits.high));
            if over == 0 {
                return;
            }
            reclaim_at_cost(&mut world, |world| try_reclaim(world, cgroup, over))
        };
        if cost > 0 {
            use_cpu(sim, pid, cost, false).await;
        }
        match found {
            Some(0) => return,
            Some(_) => {}
            None => {
                tries -= 1;
                wait_for_reclaim(sim).await;
            }
        }
    }
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
