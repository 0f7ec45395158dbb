// SPDX-License-Identifier: MIT OR Apache-2.0
//! The estimate of a wb's write bandwidth: completed pages per second over about 4 s, and an average
//! that follows it only while it moves away steadily. Mirrors wb_update_write_bandwidth of
//! mm/page-writeback.c. When to update differs by version and is the caller's business.

use super::constants::Build;
use super::product::mul_div;

/// Estimates of a wb, pages per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBandwidth {
    /// `write_bandwidth`.
    pub write_bandwidth: u64,
    /// `avg_write_bandwidth`; at least 1 after an update.
    pub avg_write_bandwidth: u64,
}

impl WriteBandwidth {
    /// What a new wb is taken for.
    pub const fn initial(build: Build) -> WriteBandwidth {
        WriteBandwidth { write_bandwidth: build.init_bandwidth(), avg_write_bandwidth: build.init_bandwidth() }
    }

    /// The next estimates, after `written` pages completed in `elapsed` jiffies (0 counts as 1).
    #[must_use]
    pub fn update(self, build: Build, written: u64, elapsed: u64) -> WriteBandwidth {
        let elapsed = elapsed.max(1);
        let period = build.bandwidth_period();
        let WriteBandwidth { write_bandwidth: old, avg_write_bandwidth: mut avg } = self;
        if elapsed > period {
            let measured = mul_div(written, build.hz(), elapsed);
            return WriteBandwidth { write_bandwidth: measured, avg_write_bandwidth: measured.max(1) };
        }
        let weighted = written.saturating_mul(build.hz()).saturating_add(old.saturating_mul(period - elapsed));
        let new = weighted >> period.ilog2();
        if avg > old && old >= new {
            avg -= (avg - old) >> 3;
        }
        if avg < old && old <= new {
            avg += (old - avg) >> 3;
        }
        WriteBandwidth { write_bandwidth: new, avg_write_bandwidth: avg.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_average_is_never_zero_and_moves_towards_the_estimate(
            old: u64, avg: u64, written: u64, elapsed: u64, hz in 0u64..2000,
        ) {
            let build = Build { hz, cpus_possible: 1, page_size: 4096 };
            let before = WriteBandwidth { write_bandwidth: old, avg_write_bandwidth: avg };
            let after = before.update(build, written, elapsed);
            prop_assert!(after.avg_write_bandwidth >= 1);
            if elapsed <= build.bandwidth_period() && avg >= 1 {
                prop_assert!(after.avg_write_bandwidth.abs_diff(old) <= avg.abs_diff(old));
            }
        }

        #[test]
        fn a_steady_rate_is_a_fixed_point(pages_per_jiffy in 1u64..1 << 20, elapsed in 1u64..=1024) {
            let build = Build { hz: 250, cpus_possible: 1, page_size: 4096 };
            let rate = pages_per_jiffy * 250;
            let steady = WriteBandwidth { write_bandwidth: rate, avg_write_bandwidth: rate };
            prop_assert_eq!(steady.update(build, pages_per_jiffy * elapsed, elapsed), steady);
        }
    }
}
