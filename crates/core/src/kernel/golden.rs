// SPDX-License-Identifier: MIT OR Apache-2.0
//! Golden vectors: tables of inputs and results of the kernel's functions, in `golden/*.csv`, pages and
//! pages per second, 4 KiB pages. Made by an independent implementation that agrees with the compiled
//! kernel functions on random inputs; every row must match to the unit.

use super::v6_10::V6_10;
use super::v6_14::V6_14;
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
        for algorithm in [&V6_10, &V6_14] {
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
        let limits = domain_dirty_limits(&V6_10, &tunables, 4096, avail, Some(global_avail), TaskClass::Normal);
        assert_eq!((limits, limits.freerun()), (DomainLimits { thresh, bg_thresh }, freerun), "{row:?}");
        checked += 1;
    }
    assert_eq!(checked, 21);
}
