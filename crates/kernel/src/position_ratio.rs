// SPDX-License-Identifier: MIT OR Apache-2.0
//! The position ratio: how far the rate of a throttled task is scaled, 1024 being 1.0, by where the
//! domain's dirty pages are between its free-run ceiling and its limit, and where the wb's are in its
//! share. Mirrors wb_position_ratio and pos_ratio_polynom of mm/page-writeback.c.
//!
//! Products of a wb's line are 64 bits wide and wrap, as the kernel's do; thresholds below 2^32 pages never get
//! there. The cubic's cannot: its distance is cut before it is multiplied.

use super::algorithm::Algorithm;
use super::constants::RATELIMIT_ONE;
use super::dirty_throttle_control::DirtyThrottleControl;
use super::product::mul_div;

/// Largest ratio before the wb's line: 2.0.
const POS_RATIO_MAX: u64 = 2 * RATELIMIT_ONE;

/// The position ratio of a wb in a domain. `avg_write_bandwidth` is the wb's, pages per second.
pub fn wb_position_ratio(
    algorithm: &Algorithm,
    dtc: &DirtyThrottleControl,
    avg_write_bandwidth: u64,
    strictlimit: bool,
) -> u64 {
    let limit = dtc.hard_dirty_limit();
    if dtc.dirty >= limit {
        return 0;
    }
    let setpoint = dtc.setpoint();
    let pos_ratio = pos_ratio_polynom(algorithm, setpoint, dtc.dirty, limit);
    debug_assert!(pos_ratio <= POS_RATIO_MAX, "a position ratio of {pos_ratio} before the wb's line");
    if strictlimit {
        return strictlimit_ratio(algorithm, dtc, pos_ratio);
    }

    let mut wb_thresh = dtc.wb_thresh.min(dtc.thresh);
    if !algorithm.share_floor {
        // Since 6.14 the share itself has the floor.
        wb_thresh = wb_thresh.max((limit - dtc.dirty) / 8);
    }
    // The wb's part of the threshold in 16 bits. The divisor is 32 bits wide.
    let part = (wb_thresh << 16) / u64::from(divisor(algorithm, dtc.thresh) as u32).max(1);
    let wb_setpoint = setpoint.wrapping_mul(part) >> 16;
    let width = dtc.thresh.wrapping_sub(wb_thresh).wrapping_add(avg_write_bandwidth.wrapping_mul(8));
    let span = width.wrapping_mul(part) >> 16;
    let x_intercept = wb_setpoint.wrapping_add(span);
    let mut pos_ratio = if dtc.wb_dirty < x_intercept.wrapping_sub(span / 4) {
        let run = divisor(algorithm, x_intercept.wrapping_sub(wb_setpoint)).max(1);
        pos_ratio.wrapping_mul(x_intercept.wrapping_sub(dtc.wb_dirty)) / run
    } else {
        pos_ratio / 4
    };

    // A reserve that keeps the queues of a nearly empty wb from running dry.
    let reserve = wb_thresh / 2;
    if dtc.wb_dirty < reserve {
        pos_ratio = if dtc.wb_dirty > reserve / 8 {
            pos_ratio.wrapping_mul(reserve) / u64::from(dtc.wb_dirty as u32).max(1)
        } else {
            pos_ratio.wrapping_mul(8)
        };
    }
    pos_ratio
}

fn strictlimit_ratio(algorithm: &Algorithm, dtc: &DirtyThrottleControl, pos_ratio: u64) -> u64 {
    if algorithm.strictlimit_nearly_empty && dtc.wb_dirty < 8 {
        return (pos_ratio * 2).min(POS_RATIO_MAX);
    }
    if dtc.wb_dirty >= dtc.wb_thresh {
        return 0;
    }
    let wb_setpoint = dtc.wb_freerun();
    if wb_setpoint == 0 || wb_setpoint == dtc.wb_thresh {
        return 0;
    }
    pos_ratio.min(pos_ratio_polynom(algorithm, wb_setpoint, dtc.wb_dirty, dtc.wb_thresh))
}

/// The cubic: 2.0 well below the set point, 1.0 at it, 0 at the limit.
fn pos_ratio_polynom(algorithm: &Algorithm, setpoint: u64, dirty: u64, limit: u64) -> u64 {
    let run = divisor(algorithm, limit.saturating_sub(setpoint));
    // At and beyond 2.0 the result is at its end already. The kernel does not cut here and overflows
    // where limit and set point are within a page of each other.
    let distance = mul_div(setpoint.abs_diff(dirty), RATELIMIT_ONE, run).min(POS_RATIO_MAX).cast_signed();
    let x = if dirty > setpoint { -distance } else { distance };
    let cubic = (((x * x) >> 10) * x) >> 10;
    RATELIMIT_ONE.saturating_add_signed(cubic).min(POS_RATIO_MAX)
}

/// A divisor that is not zero. Up to 4.1 counted up, since made odd.
fn divisor(algorithm: &Algorithm, n: u64) -> u64 {
    if algorithm.odd_divisors { n | 1 } else { n.wrapping_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::linux;
    use proptest::prelude::*;

    /// The same in exact arithmetic, for counts that no product of the kernel overflows on.
    fn naive(dtc: &DirtyThrottleControl, bandwidth: u64, floor_inside: bool) -> i128 {
        let [t, b, d, h, wb_t, wb_d] =
            [dtc.thresh, dtc.bg_thresh, dtc.dirty, dtc.dirty_limit, dtc.wb_thresh, dtc.wb_dirty].map(i128::from);
        let l = t.max(h);
        if d >= l {
            return 0;
        }
        let s = ((t + b) / 2 + l) / 2;
        let x = (s - d) * 1024 / ((l - s) | 1);
        let q = (((((x * x) >> 10) * x) >> 10) + 1024).clamp(0, 2048);
        let w = if floor_inside { wb_t.min(t).max((l - d) / 8) } else { wb_t.min(t) };
        let share = (w << 16) / (t | 1);
        let s_w = (s * share) >> 16;
        let span = ((t - w + 8 * i128::from(bandwidth)) * share) >> 16;
        let zero = s_w + span;
        let q = if wb_d < zero - span / 4 { q * (zero - wb_d) / ((zero - s_w) | 1) } else { q / 4 };
        match w / 2 {
            reserve if wb_d >= reserve => q,
            reserve if wb_d > reserve / 8 => q * reserve / wb_d,
            _ => q * 8,
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_exact_arithmetic(
            thresh in 2u64..1 << 31, bg in 0u64..1000, dirty in 0u64..1000, more in 0u64..1 << 20,
            wb in 0u64..1001, wb_dirty in 0u64..1000, bandwidth in 1u64..1 << 22,
        ) {
            let dtc = DirtyThrottleControl {
                thresh,
                bg_thresh: thresh * bg / 1000,
                dirty: thresh * dirty / 1000,
                dirty_limit: thresh + more,
                wb_thresh: thresh * wb / 1000,
                wb_bg_thresh: 0,
                wb_dirty: thresh * wb_dirty / 1000,
            };
            prop_assume!((dtc.hard_dirty_limit() - dtc.dirty) / 8 <= thresh);
            prop_assert_eq!(i128::from(wb_position_ratio(&linux(6, 10), &dtc, bandwidth, false)), naive(&dtc, bandwidth, true));
            prop_assert_eq!(i128::from(wb_position_ratio(&linux(6, 14), &dtc, bandwidth, false)), naive(&dtc, bandwidth, false));
        }

        #[test]
        fn the_cubic_stays_between_0_and_2(setpoint: u64, dirty: u64, limit: u64) {
            for algorithm in [linux(3, 2), linux(6, 14)] {
                prop_assert!(pos_ratio_polynom(&algorithm, setpoint, dirty, limit) <= 2048);
            }
        }

        #[test]
        fn more_dirty_pages_never_speed_a_task_up(
            limit in 4u64..1 << 32, a in 0u64..1 << 32, b in 0u64..1 << 32, at in 1u64..1000,
        ) {
            let setpoint = limit / 1000 * at;
            let (few, many) = (a.min(b), a.max(b));
            let cubic = |dirty| pos_ratio_polynom(&linux(6, 14), setpoint, dirty, limit);
            prop_assert!(cubic(few) >= cubic(many));
        }

        #[test]
        fn no_input_is_refused(
            thresh: u64, bg_thresh: u64, dirty: u64, dirty_limit: u64, wb_thresh: u64, wb_bg_thresh: u64,
            wb_dirty: u64, bandwidth: u64, strictlimit: bool,
        ) {
            let dtc =
                DirtyThrottleControl { thresh, bg_thresh, dirty, dirty_limit, wb_thresh, wb_bg_thresh, wb_dirty };
            for algorithm in [linux(3, 2), linux(6, 10), linux(6, 14)] {
                let pos_ratio = wb_position_ratio(&algorithm, &dtc, bandwidth, strictlimit);
                prop_assert!(dirty < dtc.hard_dirty_limit() || pos_ratio == 0);
            }
        }
    }

    #[test]
    fn absurd_corners_are_defined() {
        let corners = [0, 1, 2, (1 << 32) - 1, 1 << 32, 1 << 48, u64::MAX - 1, u64::MAX];
        for thresh in corners {
            for dirty in corners {
                for wb_dirty in corners {
                    let dtc = DirtyThrottleControl {
                        thresh,
                        bg_thresh: thresh / 2,
                        dirty,
                        dirty_limit: u64::MAX,
                        wb_thresh: thresh,
                        wb_bg_thresh: thresh / 2,
                        wb_dirty,
                    };
                    for strictlimit in [false, true] {
                        wb_position_ratio(&linux(3, 2), &dtc, u64::MAX, strictlimit);
                        wb_position_ratio(&linux(6, 10), &dtc, 0, strictlimit);
                    }
                }
            }
        }
    }

    #[test]
    fn a_limit_right_at_the_set_point_gives_the_end_of_the_range() {
        assert_eq!(pos_ratio_polynom(&linux(6, 14), 1 << 40, 0, (1 << 40) + 1), 2048);
        assert_eq!(pos_ratio_polynom(&linux(6, 14), 0, 1 << 40, 1), 0);
    }
}
