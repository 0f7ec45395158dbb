// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a throttled task sleeps at most and at least, and how many pages it may dirty before the
//! next sleep. Mirrors wb_max_pause and wb_min_pause of mm/page-writeback.c.

use super::constants::Build;
use super::product::mul_div;

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

/// Longest sleep: the time the device needs for about an eighth of the wb's dirty pages, and one jiffy
/// more; at most 200 ms.
pub fn wb_max_pause(build: Build, wb_dirty: u64, avg_write_bandwidth: u64) -> u64 {
    let per_eighth = (1 + build.hz() / 8).checked_next_power_of_two().unwrap_or(1 << 63);
    let pause = wb_dirty / (avg_write_bandwidth / per_eighth).saturating_add(1);
    pause.saturating_add(1).min(build.max_pause())
}

/// All bounds of a sleep. Rates are pages per second; `task_ratelimit` is `dirty_ratelimit` scaled by
/// the position ratio.
pub fn wb_pause(
    build: Build,
    wb_dirty: u64,
    avg_write_bandwidth: u64,
    dirty_ratelimit: u64,
    task_ratelimit: u64,
) -> Pause {
    let max_pause = wb_max_pause(build, wb_dirty, avg_write_bandwidth);
    let (hz, hz_power, poll) = (build.hz(), build.hz_power_of_two(), build.dirty_poll_thresh());
    // 10 ms, and more by the number of tasks that share the bandwidth.
    let mut pause = (hz / 100).max(1);
    let (high, low) = (avg_write_bandwidth.max(1).ilog2(), dirty_ratelimit.max(1).ilog2());
    if high > low {
        pause = pause.saturating_add(mul_div(u64::from(high - low), hz.saturating_mul(10), 1024));
    }
    pause = pause.min(1 + max_pause / 2);
    let mut pages = mul_div(dirty_ratelimit, pause, hz_power);
    if pages < poll {
        // Better one long sleep than many of a few pages.
        pause = max_pause;
        pages = mul_div(dirty_ratelimit, pause, hz_power);
        if pages > poll {
            pages = poll;
            pause = mul_div(hz, poll, dirty_ratelimit);
        }
    }
    if mul_div(hz, pages, task_ratelimit.saturating_add(1)) > max_pause {
        pause = max_pause;
        pages = mul_div(task_ratelimit, pause, hz_power);
    }
    Pause { max_pause, min_pause: if pages >= poll { 1 + pause / 2 } else { pause }, nr_dirtied_pause: pages }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_sleep_grows_with_what_the_wb_has_dirty() {
        let build = Build { hz: 250, cpus_possible: 1, page_size: 4096 };
        let check = |wb_dirty: u64, expect: u64| {
            assert_eq!(wb_max_pause(build, wb_dirty, 25_600), expect, "{wb_dirty}");
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
            let pause = wb_pause(build, wb_dirty, bandwidth, rate, task);
            prop_assert!(pause.max_pause >= 1 && pause.max_pause <= build.max_pause());
            prop_assert!(pause.min_pause <= pause.max_pause + 1, "{pause:?}");
            let absurd = Build { hz: u64::MAX, cpus_possible: 0, page_size: 0 };
            wb_pause(absurd, wb_dirty, bandwidth, rate, task);
        }
    }
}
