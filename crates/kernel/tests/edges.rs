// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the arithmetic turns: the values on both sides of each comparison, and the cases that no golden vector meets.
//! Expected values are worked out by hand from the formulas. `make mutants` finds what is missing here.

use floodline_kernel::{
    Algorithm, BackgroundDomain, Behaviour, Build, Cpu, DirtyRatelimit, DirtyThrottleControl, KernelVersion, Pause,
    PauseArithmetic, RatelimitSample, WbShare, WriteBandwidth, wb_calc_thresh, wb_over_bg_thresh, wb_position_ratio,
};
use floodline_record::facts::HostFacts;

const BUILD: Build = Build { hz: 250, cpus_possible: 1, page_size: 4096 };

fn of(major: u16, minor: u16) -> Algorithm {
    Algorithm::of(KernelVersion::new(major, minor, 0))
}

#[test]
fn a_backport_counts_for_its_own_series_only() {
    let check = |major, minor, patch, expect| {
        let algorithm = Algorithm::of(KernelVersion::new(major, minor, patch));
        assert_eq!(algorithm.limits_overflow_fixed, expect, "{major}.{minor}.{patch}");
    };
    check(5, 10, 222, false);
    check(5, 10, 223, true);
    check(5, 11, 250, false);
    check(6, 1, 97, false);
    check(6, 1, 98, true);
    check(6, 2, 250, false);
}

#[test]
fn the_behaviour_of_a_host_is_that_of_its_kernel() {
    let of = |kernel| Behaviour::of_host(&HostFacts { kernel, ..HostFacts::default() });
    let version = KernelVersion::new(6, 1, 0);
    assert_eq!(of(Some(version)), Some(Behaviour::of(version)));
    assert_eq!(of(None), None);
}

#[test]
fn times_are_rounded_up_to_jiffies() {
    let check = |ms, expect| assert_eq!(BUILD.ms_to_jiffies(ms), expect, "{ms} ms");
    check(0, 0);
    check(1, 1);
    check(4, 1);
    check(5, 2);
    check(4000, 1000);
    assert_eq!(BUILD.bandwidth_idle(), 250);
}

#[test]
fn the_batch_of_a_counter_is_two_per_cpu_and_at_least_32() {
    let check = |cpus_possible, expect| assert_eq!(Build { cpus_possible, ..BUILD }.percpu_batch(), expect);
    check(1, 32);
    check(16, 32);
    check(17, 34);
    check(64, 128);
}

#[test]
fn tasks_run_free_up_to_the_ceiling_and_are_held_above() {
    let check = |dirty, wb_dirty, strictlimit, expect| {
        let dtc = DirtyThrottleControl {
            thresh: 200,
            bg_thresh: 100,
            dirty,
            wb_thresh: 20,
            wb_bg_thresh: 10,
            wb_dirty,
            ..DirtyThrottleControl::default()
        };
        assert_eq!(dtc.is_freerun(strictlimit), expect, "{dirty} {wb_dirty} {strictlimit}");
    };
    check(150, 16, false, true);
    check(151, 15, false, false);
    check(151, 15, true, true);
    check(150, 16, true, false);
}

#[test]
fn a_wb_exceeds_above_its_share_where_the_domain_does_or_strictlimit_holds() {
    let check = |dirty, wb_dirty, strictlimit, expect| {
        let dtc =
            DirtyThrottleControl { thresh: 200, dirty, wb_thresh: 20, wb_dirty, ..DirtyThrottleControl::default() };
        assert_eq!(dtc.is_exceeded(strictlimit), expect, "{dirty} {wb_dirty} {strictlimit}");
    };
    check(201, 21, false, true);
    check(201, 20, false, false);
    check(200, 21, false, false);
    check(200, 21, true, true);
    check(200, 20, true, false);
    check(0, 19, false, false);
}

/// The next rate of a task at 100 pages per second, whose other rates all ask for more.
fn next_rate(algorithm: &Algorithm, dtc: &DirtyThrottleControl, strictlimit: bool) -> u64 {
    let before = DirtyRatelimit { dirty_ratelimit: 100, balanced_dirty_ratelimit: 1000 };
    let sample = RatelimitSample { pos_ratio: 2048, avg_write_bandwidth: 1000, dirtied: 1, elapsed: 250, strictlimit };
    before.update(algorithm, BUILD, dtc, &sample).dirty_ratelimit
}

/// The position ratio asks for 201: a step of 101, an eighth of it, rounded up.
const RISES: u64 = 113;
const STAYS: u64 = 100;

#[test]
fn a_rate_rises_below_the_set_point_only() {
    // Free-run ceiling 900,000, limit 1,200,000, set point half way.
    let at = |dirty| DirtyThrottleControl {
        thresh: 1_200_000,
        bg_thresh: 600_000,
        dirty,
        dirty_limit: 1_200_000,
        ..DirtyThrottleControl::default()
    };
    assert_eq!(next_rate(&of(6, 10), &at(1_049_999), false), RISES);
    assert_eq!(next_rate(&of(6, 10), &at(1_050_000), false), STAYS);
}

#[test]
fn under_strictlimit_a_nearly_empty_wb_may_always_rise_until_6_14() {
    let check = |algorithm, wb_dirty, expect| {
        let dtc = DirtyThrottleControl { wb_dirty, ..DirtyThrottleControl::default() };
        assert_eq!(next_rate(&algorithm, &dtc, true), expect, "{wb_dirty}");
    };
    check(of(6, 10), 0, RISES);
    check(of(6, 10), 7, RISES);
    check(of(6, 10), 8, STAYS);
    check(of(6, 14), 7, STAYS);
    // Below the free-run ceiling of its share every wb may.
    let dtc = DirtyThrottleControl { wb_dirty: 8, wb_thresh: 10, wb_bg_thresh: 8, ..DirtyThrottleControl::default() };
    assert_eq!(next_rate(&of(6, 14), &dtc, true), RISES);
}

#[test]
fn a_step_that_is_64_times_smaller_than_the_rate_is_none() {
    // The position ratio asks for 191 of 192; 192 / (2 × 1 + 1) is a shift by 64.
    let before = DirtyRatelimit { dirty_ratelimit: 192, balanced_dirty_ratelimit: 100 };
    let sample =
        RatelimitSample { pos_ratio: 1018, avg_write_bandwidth: 100, dirtied: 1, elapsed: 250, strictlimit: false };
    let dtc = DirtyThrottleControl { thresh: 200, bg_thresh: 100, dirty: 200, ..DirtyThrottleControl::default() };
    assert_eq!(before.update(&of(6, 10), BUILD, &dtc, &sample).dirty_ratelimit, 192);
}

#[test]
fn the_floor_of_a_share_since_6_14_is_smaller_under_strictlimit() {
    let check = |algorithm: &Algorithm, strictlimit, dirty, expect| {
        let share = WbShare { strictlimit, ..WbShare::unlimited(algorithm, 0, 1000) };
        assert_eq!(wb_calc_thresh(algorithm, &share, 1_200_000, dirty), expect, "{strictlimit} {dirty}");
    };
    check(&of(6, 10), true, 1_000_000, 0);
    check(&of(6, 14), true, 1_000_000, 2000);
    check(&of(6, 14), false, 1_000_000, 25_000);
    check(&of(6, 14), true, 1_200_000, 0);
    check(&of(6, 14), true, 1_200_001, 0);
}

#[test]
fn an_eighth_of_a_second_is_rounded_up_past_itself() {
    // 1 + 1024 / 8 is 256 as a power of two: a device of 100 pages in that time takes 20 jiffies for 2020, and one more.
    let pause = PauseArithmetic::of(Build { hz: 1024, ..BUILD }).wb_pause(2020, 25_600, 25_600, 25_600);
    assert_eq!(pause.max_pause, 21);
}

#[test]
fn a_sleep_is_lengthened_where_it_would_be_for_less_than_128_kib_only() {
    let pause = |rate| PauseArithmetic::of(BUILD).wb_pause(1 << 30, rate, rate, rate);
    // 2 jiffies at 4096 pages per second are 32 pages of 4096 × 2 / 256.
    assert_eq!(pause(4096), Pause { max_pause: 50, min_pause: 2, nr_dirtied_pause: 32 });
    // 2 jiffies are 31 pages. The longest sleep is more than 32: as long as 32 take, 250 × 32 / 4095 jiffies.
    assert_eq!(pause(4095), Pause { max_pause: 50, min_pause: 1, nr_dirtied_pause: 32 });
    // The longest sleep is 32 pages and stays as long.
    assert_eq!(pause(164), Pause { max_pause: 50, min_pause: 26, nr_dirtied_pause: 32 });
}

#[test]
fn completions_go_round_the_cpus_if_there_is_more_than_one() {
    assert_eq!([Cpu::One.next(1), Cpu::One.next(2), Cpu::Other.next(2)], [Cpu::One, Cpu::Other, Cpu::One]);
}

#[test]
fn the_line_of_a_wb_and_its_reserve_end_where_they_should() {
    // Dirty pages at the set point: 1024 before the wb's line.
    let check = |wb_thresh, wb_dirty, expect| {
        let dtc = DirtyThrottleControl {
            thresh: 1000,
            bg_thresh: 600,
            dirty: 900,
            wb_thresh,
            wb_dirty,
            ..DirtyThrottleControl::default()
        };
        assert_eq!(wb_position_ratio(&of(6, 14), &dtc, 10, false), expect, "{wb_dirty} of {wb_thresh}");
    };
    // A share of nothing has neither line nor reserve: a quarter is left.
    check(0, 0, 256);
    // The line of a share of 100 ends a quarter of its span before 0: at 162.
    check(100, 161, 263);
    check(100, 162, 256);
    // The reserve of a share of 142 is 71: up to an eighth of it, 8, the ratio is eight times the line's 1940.
    check(142, 8, 15_520);
}

#[test]
fn the_average_bandwidth_follows_an_estimate_that_moves_away_or_stays() {
    let check = |avg, written, elapsed, expect: (u64, u64)| {
        let before = WriteBandwidth { write_bandwidth: 1000, avg_write_bandwidth: avg };
        let after = before.update(BUILD, written, elapsed);
        assert_eq!((after.write_bandwidth, after.avg_write_bandwidth), expect, "{avg} {written} {elapsed}");
    };
    // A quarter of the period of 1024 jiffies; 1024 pages in it are 1000 per second.
    check(1800, 0, 256, (750, 1700));
    check(1800, 1024, 256, (1000, 1700));
    check(1800, 2048, 256, (1250, 1800));
    check(200, 2048, 256, (1250, 300));
    check(200, 1024, 256, (1000, 300));
    check(200, 0, 256, (750, 200));
    check(1000, 2048, 256, (1250, 1000));
    // After more than a period the estimate begins again.
    check(1800, 4096, 1024, (1000, 1700));
    check(1800, 4096, 1025, (999, 999));
    check(1800, 0, 1025, (0, 1));
}

#[test]
fn background_work_begins_above_the_threshold() {
    let algorithm = of(6, 14);
    let over = |dirty| {
        let share = WbShare::unlimited(&algorithm, 1, 1);
        wb_over_bg_thresh(&algorithm, |_| 0, &BackgroundDomain { dirty, bg_thresh: 1000, share }, None)
    };
    assert_eq!([1000, 1001].map(over), [false, true]);
}

#[test]
fn under_strictlimit_a_nearly_empty_wb_has_twice_the_ratio_until_6_14() {
    // Dirty pages at the set point: 1024 before the wb is looked at.
    let check = |algorithm, wb_thresh, wb_dirty, expect| {
        let dtc = DirtyThrottleControl {
            thresh: 1000,
            bg_thresh: 600,
            dirty: 900,
            wb_thresh,
            wb_dirty,
            ..DirtyThrottleControl::default()
        };
        assert_eq!(wb_position_ratio(&algorithm, &dtc, 10, true), expect, "{wb_dirty} of {wb_thresh}");
    };
    check(of(6, 10), 0, 0, 2048);
    check(of(6, 10), 0, 7, 2048);
    check(of(6, 10), 0, 8, 0);
    check(of(6, 14), 0, 0, 0);
    // A share of one page has its set point at 0, from where nothing can be held.
    check(of(6, 14), 1, 0, 0);
}
