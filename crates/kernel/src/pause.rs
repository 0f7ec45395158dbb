// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a throttled task sleeps at most and at least, and how many pages it may dirty before the
//! next sleep. Mirrors wb_max_pause and wb_min_pause of mm/page-writeback.c.

use super::constants::Build;
use super::product::{mul_div, mul_shift};

/// Bounds of one sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Longest sleep, jiffies; at least 1.
    pub max_pause: u64,
    /// Sleeps shorter than this are not taken but owed, jiffies.
    pub min_pause: u64,
    /// Pages to dirty before the next sleep; may be 0.
    pub nr_dirtied_pause: u64,
}

/// What of a build the arithmetic of sleeps uses, worked out once: a throttled task comes here at every sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseArithmetic {
    hz: u64,
    max_pause: u64,
    poll: u64,
    /// `HZ`, and an eighth of a second, rounded up to powers of two.
    hz_shift: u32,
    eighth_shift: u32,
}

impl PauseArithmetic {
    /// What a build's ticks per second make of it, and its page size of `poll`.
    pub const fn of(build: Build) -> PauseArithmetic {
        let eighth = match (1 + build.hz() / 8).checked_next_power_of_two() {
            Some(power) => power,
            None => 1 << 63,
        };
        PauseArithmetic {
            hz: build.hz(),
            max_pause: build.max_pause(),
            poll: build.dirty_poll_thresh(),
            hz_shift: build.hz_power_of_two().ilog2(),
            eighth_shift: eighth.ilog2(),
        }
    }

    /// Longest sleep: the time the device needs for about an eighth of the wb's dirty pages, and one jiffy
    /// more; at most 200 ms.
    #[inline]
    fn wb_max_pause(&self, wb_dirty: u64, avg_write_bandwidth: u64) -> u64 {
        let pause = wb_dirty / (avg_write_bandwidth >> self.eighth_shift).saturating_add(1);
        pause.saturating_add(1).min(self.max_pause)
    }

    /// All bounds of a sleep. Rates are pages per second; `task_ratelimit` is `dirty_ratelimit` scaled by
    /// the position ratio.
    pub fn wb_pause(
        &self,
        wb_dirty: u64,
        avg_write_bandwidth: u64,
        dirty_ratelimit: u64,
        task_ratelimit: u64,
    ) -> Pause {
        let max_pause = self.wb_max_pause(wb_dirty, avg_write_bandwidth);
        let pages_in = |rate: u64, jiffies: u64| mul_shift(rate, jiffies, self.hz_shift);
        let PauseArithmetic { hz, poll, .. } = *self;
        // 10 ms, and more by the number of tasks that share the bandwidth.
        let mut pause = (hz / 100).max(1);
        let (high, low) = (avg_write_bandwidth.max(1).ilog2(), dirty_ratelimit.max(1).ilog2());
        if high > low {
            pause = pause.saturating_add(mul_shift(u64::from(high - low), hz.saturating_mul(10), 10));
        }
        pause = pause.min(1 + max_pause / 2);
        let mut pages = pages_in(dirty_ratelimit, pause);
        if pages < poll {
            // Better one long sleep than many of a few pages.
            pause = max_pause;
            pages = pages_in(dirty_ratelimit, pause);
            if pages > poll {
                pages = poll;
                pause = mul_div(hz, poll, dirty_ratelimit);
            }
        }
        if mul_div(hz, pages, task_ratelimit.saturating_add(1)) > max_pause {
            pause = max_pause;
            pages = pages_in(task_ratelimit, pause);
        }
        Pause { max_pause, min_pause: if pages >= poll { 1 + pause / 2 } else { pause }, nr_dirtied_pause: pages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_sleep_grows_with_what_the_wb_has_dirty() {
        let build = Build { hz: 250, cpus_possible: 1, page_size: 4096 };
        let check = |wb_dirty: u64, expect: u64| {
            assert_eq!(PauseArithmetic::of(build).wb_max_pause(wb_dirty, 25_600), expect, "{wb_dirty}");
        };
        check(0, 1);
        check(800, 1);
        check(801, 2);
        check(1600, 2);
        check(3200, 4);
        check(6400, 8);
        check(51_200, 50);
    }

    proptest! {
        #[test]
        fn sleeps_stay_within_their_bounds(
            hz in 0u64..=100_000, wb_dirty: u64, bandwidth: u64, rate: u64, task: u64,
        ) {
            let build = Build { hz, cpus_possible: 1, page_size: 4096 };
            let pause = PauseArithmetic::of(build).wb_pause(wb_dirty, bandwidth, rate, task);
            prop_assert!(pause.max_pause >= 1 && pause.max_pause <= build.max_pause());
            prop_assert!(pause.min_pause <= pause.max_pause + 1, "{pause:?}");
            let absurd = Build { hz: u64::MAX, cpus_possible: 0, page_size: 0 };
            PauseArithmetic::of(absurd).wb_pause(wb_dirty, bandwidth, rate, task);
        }
    }
}
