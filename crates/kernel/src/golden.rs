// SPDX-License-Identifier: MIT OR Apache-2.0
//! Golden vectors: tables of inputs and results of the kernel's functions, in `golden/*.csv`, pages and
//! pages per second, 4 KiB pages. Made by an independent implementation that agrees with the compiled
//! kernel functions on random inputs; every row must match to the unit.

use super::algorithm::linux;
use super::*;

/// The rows of a table, each with its columns as numbers; `inf` is no limit.
fn rows(table: &'static str) -> impl Iterator<Item = Vec<u64>> {
    table.lines().skip(1).map(|line| line.split([',', '/']).map(|cell| number(cell, line)).collect())
}

fn number(cell: &str, line: &str) -> u64 {
    match cell {
        "inf" => u64::MAX,
        cell => cell.parse().unwrap_or_else(|error| panic!("{error} in {line}")),
    }
}

#[test]
fn thresholds_of_both_domains() {
    let mut checked = 0;
    for row in rows(include_str!("golden/thresholds.csv")) {
        let [pct, bpct, bytes, bg_bytes, realtime, global_avail, global_dirty, global_dirty_limit, rest @ ..] =
            &row[..]
        else {
            panic!("{row:?}")
        };
        let &[file, headroom, dirty, thresh, bg_thresh, avail, memcg_thresh, memcg_bg_thresh] = rest else {
            panic!("{row:?}")
        };
        let tunables = DirtyTunables {
            dirty_ratio: *pct,
            dirty_background_ratio: *bpct,
            dirty_bytes: *bytes,
            dirty_background_bytes: *bg_bytes,
        };
        let (global_avail, global_dirty) = (*global_avail, *global_dirty);
        let global_dirty_limit = *global_dirty_limit;
        let task = if *realtime == 1 { TaskClass::Realtime { global_dirty_limit } } else { TaskClass::Normal };
        for algorithm in [&linux(6, 10), &linux(6, 14)] {
            let global = domain_dirty_limits(algorithm, &tunables, 4096, global_avail, None, task);
            assert_eq!(global, DomainLimits { thresh, bg_thresh }, "{row:?}");
            let input = MdtcAvailInput { file, headroom, dirty, global_avail, global_dirty };
            assert_eq!(mdtc_calc_avail(algorithm, &input), avail, "{row:?}");
            let memcg = domain_dirty_limits(algorithm, &tunables, 4096, avail, Some(global_avail), task);
            assert_eq!(memcg, DomainLimits { thresh: memcg_thresh, bg_thresh: memcg_bg_thresh }, "{row:?}");
        }
        checked += 1;
    }
    assert_eq!(checked, 10);
}

#[test]
fn worked_examples_of_memcg_thresholds() {
    let mut checked = 0;
    for row in rows(include_str!("golden/memcg_thresholds.csv")) {
        let &[pct, bpct, bytes, bg_bytes, global_avail, avail, thresh, bg_thresh, freerun] = &row[..] else {
            panic!("{row:?}")
        };
        let tunables = DirtyTunables {
            dirty_ratio: pct,
            dirty_background_ratio: bpct,
            dirty_bytes: bytes,
            dirty_background_bytes: bg_bytes,
        };
        let limits = domain_dirty_limits(&linux(6, 10), &tunables, 4096, avail, Some(global_avail), TaskClass::Normal);
        assert_eq!((limits, limits.freerun()), (DomainLimits { thresh, bg_thresh }, freerun), "{row:?}");
        checked += 1;
    }
    assert_eq!(checked, 21);
}

fn fixed<const N: usize>(row: &[u64]) -> [u64; N] {
    row.try_into().unwrap_or_else(|_| panic!("{N} columns expected: {row:?}"))
}

#[test]
fn shares_and_position_ratios() {
    let mut checked = 0;
    for row in rows(include_str!("golden/position_ratio.csv")) {
        let [
            thresh,
            bg_thresh,
            dirty,
            dirty_limit,
            wb_dirty,
            numerator,
            denominator,
            bandwidth,
            strictlimit,
            rest @ ..,
        ] = fixed::<14>(&row);
        let [wb_thresh_6_12, wb_bg_thresh_6_12, pos_ratio_6_12, wb_thresh_6_14, pos_ratio_6_14] = rest;
        for (algorithm, expect) in
            [(&linux(6, 10), (wb_thresh_6_12, pos_ratio_6_12)), (&linux(6, 14), (wb_thresh_6_14, pos_ratio_6_14))]
        {
            let strictlimit = strictlimit == 1;
            let share = WbShare { strictlimit, ..WbShare::unlimited(algorithm, numerator, denominator) };
            let wb_thresh = wb_calc_thresh(algorithm, &share, thresh, dirty);
            let wb_bg_thresh = wb_bg_thresh(wb_thresh, bg_thresh, thresh);
            let dtc = DirtyThrottleControl { thresh, bg_thresh, dirty, dirty_limit, wb_thresh, wb_bg_thresh, wb_dirty };
            let pos_ratio = wb_position_ratio(algorithm, &dtc, bandwidth, strictlimit);
            assert_eq!((wb_thresh, pos_ratio), expect, "{row:?}");
            if algorithm == &linux(6, 10) {
                assert_eq!(wb_bg_thresh, wb_bg_thresh_6_12, "{row:?}");
            }
        }
        checked += 1;
    }
    assert_eq!(checked, 15);
}

/// The machine of the tables.
const BUILD: Build = Build { hz: 250, cpus_possible: 1, page_size: 4096 };

#[test]
fn base_rates() {
    let mut checked = 0;
    for row in rows(include_str!("golden/dirty_ratelimit.csv")) {
        let [
            thresh,
            bg_thresh,
            dirty,
            dirty_limit,
            pos_ratio,
            avg_write_bandwidth,
            rate,
            balanced,
            dirtied,
            elapsed,
            new_rate,
            new_balanced,
        ] = fixed(&row);
        let dtc = DirtyThrottleControl { thresh, bg_thresh, dirty, dirty_limit, ..DirtyThrottleControl::default() };
        let sample = RatelimitSample { pos_ratio, avg_write_bandwidth, dirtied, elapsed, strictlimit: false };
        for algorithm in [&linux(6, 10), &linux(6, 14)] {
            let before = DirtyRatelimit { dirty_ratelimit: rate, balanced_dirty_ratelimit: balanced };
            let expect = DirtyRatelimit { dirty_ratelimit: new_rate, balanced_dirty_ratelimit: new_balanced };
            assert_eq!(before.update(algorithm, BUILD, &dtc, &sample), expect, "{row:?}");
        }
        checked += 1;
    }
    assert_eq!(checked, 6);
}

#[test]
fn bandwidth_estimates() {
    let mut checked = 0;
    for row in rows(include_str!("golden/write_bandwidth.csv")) {
        let [write_bandwidth, avg_write_bandwidth, written, elapsed, new, new_avg] = fixed(&row);
        let after = WriteBandwidth { write_bandwidth, avg_write_bandwidth }.update(BUILD, written, elapsed);
        assert_eq!(after, WriteBandwidth { write_bandwidth: new, avg_write_bandwidth: new_avg }, "{row:?}");
        checked += 1;
    }
    assert_eq!(checked, 8);
}

#[test]
fn hard_limits_and_poll_intervals() {
    let mut checked = 0;
    for row in rows(include_str!("golden/dirty_limit.csv")) {
        let [dirty_limit, thresh, dirty, expect] = fixed(&row);
        assert_eq!(update_dirty_limit(dirty_limit, thresh, dirty), expect, "{row:?}");
        checked += 1;
    }
    for row in rows(include_str!("golden/dirty_poll_interval.csv")) {
        let [dirty, thresh, expect] = fixed(&row);
        assert_eq!(dirty_poll_interval(dirty, thresh), expect, "{row:?}");
        checked += 1;
    }
    assert_eq!(checked, 5 + 8);
}

#[test]
fn pauses_at_two_tick_rates() {
    let mut checked = 0;
    for row in rows(include_str!("golden/pause.csv")) {
        let [hz, bandwidth, rate, task, wb_dirty, max_pause, min_pause, nr_dirtied_pause] = fixed(&row);
        let pause = PauseArithmetic::of(Build { hz, ..BUILD }).wb_pause(wb_dirty, bandwidth, rate, task);
        assert_eq!(pause, Pause { max_pause, min_pause, nr_dirtied_pause }, "{row:?}");
        checked += 1;
    }
    assert_eq!(checked, 18);
}

#[test]
fn foreign_histories() {
    let mut checked = 0;
    for line in include_str!("golden/foreign_history.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [mib, max_time, slots, histories, switch_round] = cells[..] else { panic!("{line}") };
        let mut inode = ForeignHistory::default();
        let expect: Vec<u16> = histories.split(' ').map(|hex| u16::from_str_radix(hex, 16).expect("hex")).collect();
        for (round, history) in (1..).zip(expect) {
            let mut tally = ForeignTally::default();
            tally.account(&inode, 1, 2, number(mib, line) << 20);
            let outcome = inode.finish(BUILD, &tally, 1, 25_600);
            assert_eq!((outcome.max_time, outcome.slots), (number(max_time, line), number(slots, line)), "{line}");
            assert_eq!(inode.history, history, "{line}");
            assert_eq!(outcome.switch_to.is_some(), round >= number(switch_round, line), "{line} round {round}");
        }
        checked += 1;
    }
    assert_eq!(checked, 3);
}
