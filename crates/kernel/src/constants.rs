// SPDX-License-Identifier: MIT OR Apache-2.0
//! Constants of mm/page-writeback.c that depend on how the kernel was built and on how many CPUs it
//! may have. Times are jiffies, amounts are pages unless the name says otherwise.

/// 1.0 of a position ratio: ratios are fixed point with 10 bits.
pub const RATELIMIT_ONE: u64 = 1024;

/// Resolution of a bdi's largest fraction (`FPROP_FRAC_BASE`).
pub const FRAC: u64 = 1024;

/// What the constants depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Ticks per second. `CONFIG_HZ`; 0 counts as 1.
    pub hz: u64,
    /// CPUs that may ever come online (`nr_cpu_ids`), not those online; 0 counts as 1.
    pub cpus_possible: u64,
    /// Bytes per page; 0 counts as 1.
    pub page_size: u64,
}

impl Build {
    /// `HZ`.
    pub const fn hz(self) -> u64 {
        if self.hz == 0 { 1 } else { self.hz }
    }

    /// Bytes per page.
    pub const fn page_size(self) -> u64 {
        if self.page_size == 0 { 1 } else { self.page_size }
    }

    /// Jiffies in a number of milliseconds, rounded up.
    pub const fn ms_to_jiffies(self, ms: u64) -> u64 {
        ms.saturating_mul(self.hz()).div_ceil(1000)
    }

    /// Longest sleep of a throttled task: 200 ms (`MAX_PAUSE`).
    pub const fn max_pause(self) -> u64 {
        let pause = self.hz() / 5;
        if pause == 0 { 1 } else { pause }
    }

    /// Least time between two estimates of bandwidth and rates: 200 ms (`BANDWIDTH_INTERVAL`).
    pub const fn bandwidth_interval(self) -> u64 {
        self.max_pause()
    }

    /// Memory of the bandwidth estimate: 3 s, rounded up to a power of two of jiffies.
    pub const fn bandwidth_period(self) -> u64 {
        power_of_two_at_least(self.hz().saturating_mul(3))
    }

    /// A wb without writeback for longer than this was idle: 1 s (`WB_BANDWIDTH_IDLE_JIF`, 5.15).
    pub const fn bandwidth_idle(self) -> u64 {
        self.hz()
    }

    /// Half-life of completion counts: 3 s (`VM_COMPLETIONS_PERIOD_LEN`).
    pub const fn completions_period(self) -> u64 {
        self.hz().saturating_mul(3)
    }

    /// `HZ` rounded up to a power of two: the divisor of the pause arithmetic.
    pub const fn hz_power_of_two(self) -> u64 {
        power_of_two_at_least(self.hz())
    }

    /// 128 KiB in pages: a throttled task dirties at least this much between two sleeps where it can
    /// (`DIRTY_POLL_THRESH`).
    pub const fn dirty_poll_thresh(self) -> u64 {
        (128 * 1024) / self.page_size()
    }

    /// 32 KiB in pages: interval of a task's checks while its wb is over its limit.
    pub const fn exceeded_ratelimit(self) -> u64 {
        (32 * 1024) / self.page_size()
    }

    /// 100 MiB/s in pages per second: what a new wb is taken for (`INIT_BW`).
    pub const fn init_bandwidth(self) -> u64 {
        (100 * 1024 * 1024) / self.page_size()
    }

    /// 4 MiB in pages: least a flusher writes of one inode (`MIN_WRITEBACK_PAGES`; since 6.19 a value
    /// of the filesystem).
    pub const fn min_writeback_pages(self) -> u64 {
        (4 * 1024 * 1024) / self.page_size()
    }

    /// What one CPU may keep back of a wb counter (`WB_STAT_BATCH`).
    #[inline]
    pub const fn wb_stat_batch(self) -> u64 {
        8 * (1 + self.cpus().ilog2() as u64)
    }

    /// What one CPU may keep back of a counter without a batch of its own (`percpu_counter_batch`).
    #[inline]
    pub const fn percpu_batch(self) -> u64 {
        let twice = self.cpus().saturating_mul(2);
        if twice > 32 { twice } else { 32 }
    }

    /// How wrong a wb counter may be: one batch per possible CPU (`wb_stat_error`). A wb with no more
    /// than this is never held at a hard stop.
    pub const fn wb_stat_error(self) -> u64 {
        self.cpus().saturating_mul(self.wb_stat_batch())
    }

    pub(crate) const fn cpus(self) -> u64 {
        if self.cpus_possible == 0 { 1 } else { self.cpus_possible }
    }
}

/// Smallest power of two that is at least `n`, saturating.
const fn power_of_two_at_least(n: u64) -> u64 {
    match n.checked_next_power_of_two() {
        Some(power) => power,
        None => 1 << 63,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_wb_counters_grows_with_possible_cpus() {
        let check = |cpus_possible: u64, expect: u64| {
            assert_eq!(Build { hz: 250, cpus_possible, page_size: 4096 }.wb_stat_error(), expect, "{cpus_possible}");
        };
        check(2, 32);
        check(4, 96);
        check(8, 256);
        check(16, 640);
        check(32, 1536);
        check(64, 3584);
        check(128, 8192);
        check(256, 18432);
    }

    #[test]
    fn times_follow_the_tick_rate() {
        let check = |hz: u64, max_pause: u64, bandwidth_period: u64, hz_power_of_two: u64| {
            let build = Build { hz, cpus_possible: 4, page_size: 4096 };
            assert_eq!(build.max_pause(), max_pause);
            assert_eq!(build.bandwidth_interval(), max_pause);
            assert_eq!(build.bandwidth_period(), bandwidth_period);
            assert_eq!(build.hz_power_of_two(), hz_power_of_two);
        };
        check(100, 20, 512, 128);
        check(250, 50, 1024, 256);
        check(300, 60, 1024, 512);
        check(1000, 200, 4096, 1024);
    }

    #[test]
    fn amounts_follow_the_page_size() {
        let build = Build { hz: 250, cpus_possible: 4, page_size: 4096 };
        assert_eq!((build.dirty_poll_thresh(), build.exceeded_ratelimit(), build.init_bandwidth()), (32, 8, 25_600));
        assert_eq!(build.min_writeback_pages(), 1024);
        assert_eq!(Build { page_size: 65_536, ..build }.dirty_poll_thresh(), 2);
    }

    #[test]
    fn absurd_builds_have_constants_too() {
        for (hz, cpus_possible, page_size) in [(0, 0, 0), (u64::MAX, u64::MAX, u64::MAX)] {
            let build = Build { hz, cpus_possible, page_size };
            assert!(build.max_pause() >= 1 && build.bandwidth_period() >= 1 && build.wb_stat_error() >= 8);
            let _ = build.ms_to_jiffies(u64::MAX);
        }
    }
}
