// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expiry of kernel timers. Timers lie in a wheel whose levels are coarser for later timers, and never move between
//! levels: a timer of 5 s is up to a quarter of a second late. Sleeps of programs are exact, as they use
//! high-resolution timers. Mirrors calc_wheel_index of kernel/time/timer.c.

use crate::world::World;

/// Jiffies start this many seconds before 32 bits overflow. The ends of the kernel's seconds and timers depend on
/// it.
const BEFORE_OVERFLOW: u64 = 300;

/// The first jiffy (`INITIAL_JIFFIES`).
fn initial_jiffies(hz: u64) -> u64 {
    (1 << 32) - BEFORE_OVERFLOW * hz
}

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Timers of a level.
const LVL_SIZE: u64 = 64;
/// Shift by which each level is coarser than the one below it.
const LVL_CLK_SHIFT: u32 = 3;
/// The coarsest level: hours.
const LVL_DEPTH: u32 = 8;

/// The jiffy at which a timer expires that is set for `after` jiffies from now.
fn goes_off(now: u64, after: u64) -> u64 {
    let level = (0..LVL_DEPTH).find(|level| after < (LVL_SIZE - 1) << (level * LVL_CLK_SHIFT)).unwrap_or(LVL_DEPTH);
    let shift = level * LVL_CLK_SHIFT;
    ((now.saturating_add(after) >> shift).saturating_add(1)) << shift
}

/// Whole jiffies in a time.
fn jiffies(nanos: u64, hz: u64) -> u64 {
    u64::try_from(u128::from(nanos) * u128::from(hz) / u128::from(SECOND)).unwrap_or(u64::MAX)
}

/// The first nanosecond of a jiffy.
fn moment(jiffy: u64, hz: u64) -> u64 {
    u64::try_from((u128::from(jiffy) * u128::from(SECOND)).div_ceil(u128::from(hz))).unwrap_or(u64::MAX)
}

impl World {
    /// Time from now to the end of the second in which a later moment lies, as the kernel counts seconds.
    pub(crate) fn round_jiffies_up(&self, nanos: u64) -> u64 {
        let hz = self.build.hz();
        // Part of a second by which the kernel's jiffies are ahead.
        let ahead = initial_jiffies(hz) % hz * (1_000_000_000 / hz);
        let at = self.uptime.saturating_add(self.now).saturating_add(ahead).saturating_add(nanos);
        nanos.saturating_add(1_000_000_000 - at % 1_000_000_000)
    }

    /// Time at which a timer expires that is set for `nanos` from now.
    pub(crate) fn timer(&self, nanos: u64) -> u64 {
        if !self.behaviour.timers.coarse_wheel {
            return self.now.saturating_add(nanos);
        }
        let hz = self.build.hz();
        let first = initial_jiffies(hz);
        let now = jiffies(self.uptime.saturating_add(self.now), hz).saturating_add(first);
        moment(goes_off(now, jiffies(nanos, hz)) - first, hz).saturating_sub(self.uptime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_as_late_as_its_level_is_coarse() {
        let check = |now, after, expect| assert_eq!(goes_off(now, after), expect, "at {now} for {after}");
        check(1000, 0, 1001);
        check(1000, 62, 1063);
        check(1000, 63, 1064);
        check(1001, 63, 1072);
        // 5 s at 250 Hz: up to 64 jiffies.
        check(1000, 1250, 2304);
        check(1054, 1250, 2368);
        // 30 s: up to 512.
        check(0, 7500, 7680);
    }

    #[test]
    fn no_timer_goes_off_in_the_past_where_a_tick_is_no_whole_number_of_nanoseconds() {
        for hz in [300, 1024] {
            for now in (0..10_000_000_000).step_by(999_983) {
                assert!(moment(jiffies(now, hz) + 1, hz) > now, "{now} at {hz} Hz");
            }
        }
    }
}
