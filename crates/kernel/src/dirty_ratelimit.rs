// SPDX-License-Identifier: MIT OR Apache-2.0
//! The base rate of a wb's tasks: what each may dirty where the position ratio is 1.0. It moves towards
//! the rate at which dirtying and writing balance, in small steps and only where old and new estimates
//! and the position agree. Mirrors wb_update_dirty_ratelimit of mm/page-writeback.c.

use super::algorithm::Algorithm;
use super::constants::{Build, RATELIMIT_ONE};
use super::dirty_throttle_control::DirtyThrottleControl;
use super::product::mul_div;

/// Rates of a wb, pages per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyRatelimit {
    /// `dirty_ratelimit`; at least 1 after an update.
    pub dirty_ratelimit: u64,
    /// `balanced_dirty_ratelimit` of the last update.
    pub balanced_dirty_ratelimit: u64,
}

/// What was seen since the last update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatelimitSample {
    /// Position ratio of the domain.
    pub pos_ratio: u64,
    /// The wb's average bandwidth, pages per second.
    pub avg_write_bandwidth: u64,
    /// Pages dirtied.
    pub dirtied: u64,
    /// Jiffies; 0 counts as 1.
    pub elapsed: u64,
    /// Whether the bdi is held to its own share.
    pub strictlimit: bool,
}

/// The rate a task may dirty at: the base rate scaled by the position ratio, pages per second.
#[inline]
pub fn task_ratelimit(dirty_ratelimit: u64, pos_ratio: u64) -> u64 {
    mul_div(dirty_ratelimit, pos_ratio, RATELIMIT_ONE)
}

impl DirtyRatelimit {
    /// What a new wb starts with.
    pub const fn initial(build: Build) -> DirtyRatelimit {
        DirtyRatelimit { dirty_ratelimit: build.init_bandwidth(), balanced_dirty_ratelimit: build.init_bandwidth() }
    }

    /// The next rates. Since 4.2 a cgroup's wb is updated twice with the same sample, by the global and
    /// then by the memcg domain.
    #[must_use]
    pub fn update(
        self,
        algorithm: &Algorithm,
        build: Build,
        dtc: &DirtyThrottleControl,
        sample: &RatelimitSample,
    ) -> DirtyRatelimit {
        let current = self.dirty_ratelimit;
        let dirty_rate = mul_div(sample.dirtied, build.hz(), sample.elapsed.max(1));
        let task = task_ratelimit(current, sample.pos_ratio).saturating_add(1);
        // The divisor is 32 bits wide, and odd or counted up against zero.
        let divisor = if algorithm.odd_divisors { dirty_rate | 1 } else { dirty_rate.wrapping_add(1) } as u32;
        let balanced =
            mul_div(task, sample.avg_write_bandwidth, u64::from(divisor.max(1))).min(sample.avg_write_bandwidth);

        let (dirty, setpoint) = if !sample.strictlimit {
            (dtc.dirty, dtc.setpoint())
        } else if algorithm.strictlimit_nearly_empty && dtc.wb_dirty < 8 {
            (dtc.wb_dirty, dtc.wb_dirty + 1)
        } else {
            (dtc.wb_dirty, dtc.wb_freerun())
        };
        let last = self.balanced_dirty_ratelimit;
        let step = if dirty < setpoint {
            last.min(balanced).min(task).saturating_sub(current)
        } else {
            current.saturating_sub(last.max(balanced).max(task))
        };
        // Steps that are small against the rate are made smaller still.
        let shift = current / step.saturating_mul(2).saturating_add(1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        let next = if current < balanced { current.saturating_add(step) } else { current.saturating_sub(step) };
        DirtyRatelimit { dirty_ratelimit: next.max(1), balanced_dirty_ratelimit: balanced }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::linux;
    use proptest::prelude::*;

    const BUILD: Build = Build { hz: 250, cpus_possible: 1, page_size: 4096 };

    fn far_below() -> DirtyThrottleControl {
        DirtyThrottleControl {
            thresh: 1_200_000,
            bg_thresh: 600_000,
            dirty: 910_000,
            dirty_limit: 1_200_000,
            ..DirtyThrottleControl::default()
        }
    }

    #[test]
    fn small_proposals_are_suppressed() {
        // A rate of 25,600 and a proposal that is smaller by so much.
        let check = |proposal: u64, expect: u64| {
            let before = DirtyRatelimit { dirty_ratelimit: 25_600, balanced_dirty_ratelimit: 25_600 - proposal };
            let dtc = DirtyThrottleControl { dirty: 1_100_000, ..far_below() };
            let sample = RatelimitSample {
                pos_ratio: 256,
                avg_write_bandwidth: 25_600 - proposal,
                dirtied: 1,
                elapsed: 50,
                strictlimit: false,
            };
            assert_eq!(
                before.update(&linux(6, 10), BUILD, &dtc, &sample).dirty_ratelimit,
                25_600 - expect,
                "{proposal}"
            );
        };
        check(12_800, 1600);
        check(6400, 400);
        check(3200, 50);
        check(1600, 2);
        check(800, 0);
    }

    proptest! {
        #[test]
        fn rates_stay_positive_and_balance_within_the_bandwidth(
            dirty_ratelimit: u64, balanced_dirty_ratelimit: u64, pos_ratio: u64, avg_write_bandwidth: u64,
            dirtied: u64, elapsed: u64, strictlimit: bool, dirty: u64, wb_dirty: u64, thresh: u64,
        ) {
            let before = DirtyRatelimit { dirty_ratelimit, balanced_dirty_ratelimit };
            let dtc = DirtyThrottleControl { dirty, wb_dirty, thresh, wb_thresh: thresh, ..far_below() };
            let sample = RatelimitSample { pos_ratio, avg_write_bandwidth, dirtied, elapsed, strictlimit };
            for algorithm in [linux(3, 2), linux(6, 10), linux(6, 14)] {
                let after = before.update(&algorithm, BUILD, &dtc, &sample);
                prop_assert!(after.dirty_ratelimit >= 1);
                prop_assert!(after.balanced_dirty_ratelimit <= avg_write_bandwidth);
            }
        }

        #[test]
        fn above_the_set_point_no_rate_rises(
            current in 1u64..1 << 30, last in 0u64..1 << 30, pos_ratio in 0u64..=2048,
            bandwidth in 1u64..1 << 30, dirtied in 0u64..1 << 20, elapsed in 1u64..1000,
        ) {
            let before = DirtyRatelimit { dirty_ratelimit: current, balanced_dirty_ratelimit: last };
            let sample = RatelimitSample {
                pos_ratio, avg_write_bandwidth: bandwidth, dirtied, elapsed, strictlimit: false,
            };
            let dtc = DirtyThrottleControl { dirty: 1_100_000, ..far_below() };
            prop_assert!(before.update(&linux(6, 10), BUILD, &dtc, &sample).dirty_ratelimit <= current);
            let after = before.update(&linux(6, 10), BUILD, &far_below(), &sample);
            prop_assert!(after.dirty_ratelimit >= current);
        }
    }
}
