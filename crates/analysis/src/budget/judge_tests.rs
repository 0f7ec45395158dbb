// SPDX-License-Identifier: MIT OR Apache-2.0
//! The judge on a host whose budget is worked out by hand: pauses and thresholds as a kernel would print them, and
//! as one would that computes otherwise.

use super::exact::Judge;
use super::tests::{P, app, host};
use floodline_record::record::{Event, Record, Sink, What};
use floodline_record::sample::{BdiRow, WbRow};
use floodline_record::traced::Who;
use floodline_record::traced::throttle::{Domain, ThrottleState, Throttled};
use floodline_record::units::{Bytes, BytesPerSecond, Nanos, Pages, Ppm};

/// Number of the one cgroup's directory.
const APP: u64 = 1001;
/// Its free-run ceiling by the worked example, pages.
const FREERUN: u64 = 158;

/// A pause in the second that ends at `at`, by which the ceiling is `freerun` pages.
fn pause(at: u64, domain: Domain, freerun: u64) -> Record {
    let (limit, setpoint) = (Pages(201), Pages((201 + freerun) / 2));
    let what = What::Throttled(Box::new(Throttled {
        since: Nanos::from_millis((at - 1) * 1000),
        who: Who { pid: 41, comm: "dd".into(), cgroup_ino: APP },
        tid: 41,
        bdi: "8:0".into(),
        wb_cgroup_ino: APP,
        domain,
        pauses: 3,
        pause_ns: Nanos::from_millis(30),
        pause_ns_max: Nanos::from_millis(20),
        slept_ns: None,
        slept_ns_max: None,
        unpaused: 0,
        longest: Some(ThrottleState { limit_pages: limit, setpoint_pages: setpoint, ..ThrottleState::default() }),
    }));
    Record::Event(Event { at: Nanos::from_millis(at * 1000), what })
}

/// A sample a second, with a pause in each; what the cgroup has as file pages moves by `moves` pages from one to the
/// next.
fn judged(domain: Domain, freerun: u64, moves: u64) -> Judge {
    let mut judge = Judge::default();
    for at in 1..=8 {
        let file = Some(Bytes((100 << 20) + at % 2 * moves * P));
        let mut row = app();
        row.inactive_file = file;
        let mut host = host();
        host.cgroups[0].1 = row;
        let records = host.records(Nanos::from_millis(at * 1000));
        let begin = if at == 1 { 0 } else { records.len() - 1 };
        let pause = pause(at, domain, freerun);
        for record in records[begin..].iter().chain([&pause]) {
            let Ok(()) = judge.record(record);
        }
    }
    judge
}

/// All, within, still, exact.
fn check(judge: &Judge, expect: (u64, u64, u64, u64)) {
    let found = judge.throttles();
    assert_eq!((found.all, found.within, found.still, found.exact), expect);
}

#[test]
fn pauses_at_the_computed_ceiling_are_exact_and_others_are_told() {
    // The last one waits for a sample that does not come.
    check(&judged(Domain::Memcg, FREERUN, 0), (7, 7, 7, 7));
    let off = judged(Domain::Memcg, FREERUN + 10, 0);
    check(&off, (7, 0, 7, 0));
    let miss = &off.misses()[0];
    assert_eq!((miss.row.as_str(), miss.computed), ("throttled in /app", (FREERUN, FREERUN)));
}

#[test]
fn pauses_of_the_machine_or_of_a_strict_limit_are_no_witness_of_a_cgroup() {
    check(&judged(Domain::Global, FREERUN, 0), (0, 0, 0, 0));
    check(&judged(Domain::Strictlimit, FREERUN, 0), (0, 0, 0, 0));
    // Older kernels do not say the domain: what is the machine's own ceiling is not the cgroup's.
    check(&judged(Domain::Unknown, (25_600 + 12_800) / 2, 0), (0, 0, 0, 0));
    check(&judged(Domain::Unknown, FREERUN, 0), (7, 7, 7, 7));
}

#[test]
fn while_inputs_move_a_ceiling_between_them_is_within_and_none_is_exact() {
    let moving = judged(Domain::Memcg, FREERUN, 20_000);
    let found = moving.throttles();
    // The first is judged by one more sample only, and that already moved.
    assert_eq!((found.all, found.within, found.still), (7, 7, 0));
}

#[test]
fn global_thresholds_are_held_against_vmstat() {
    let right = judged(Domain::Memcg, FREERUN, 0).found();
    assert_eq!((right.global, right.global_exact), (8, 8));
    let mut judge = Judge::default();
    let mut wrong = host();
    wrong.host.nr_dirty_threshold = Some(Pages(25_601));
    for record in wrong.records(Nanos::from_millis(1000)) {
        let Ok(()) = judge.record(&record);
    }
    assert_eq!((judge.found().global, judge.found().global_exact), (1, 0));
    assert_eq!(judge.misses()[0].row, "nr_dirty_threshold");
}

/// A sample a second of a quiet cgroup whose one wb has completed 1000 pages; what the kernel prints as its threshold,
/// second by second, in pages.
fn quiet_wb(printed: impl Fn(u64) -> u64) -> Judge {
    let mut judge = Judge::default();
    for at in 1..=16 {
        let mut host = host();
        let row = WbRow {
            dirty_thresh: Some(Bytes(printed(at) * P)),
            written: Some(Bytes(1000 * P)),
            dirtied: Some(Bytes(1000 * P)),
            write_bandwidth: Some(BytesPerSecond(100 << 20)),
            ..WbRow::default()
        };
        host.wbs = vec![("8:0", APP, row)];
        host.bdis =
            vec![("8:0", BdiRow { min_ratio: Some(Ppm(0)), max_ratio: Some(Ppm(1_000_000)), ..BdiRow::default() })];
        let records = host.records(Nanos::from_millis(at * 1000));
        let begin = if at == 1 { 0 } else { records.len() - 1 };
        for record in &records[begin..] {
            let Ok(()) = judge.record(record);
        }
    }
    judge
}

#[test]
fn a_wb_with_few_completions_left_is_bounded_and_not_judged_to_the_page() {
    // 1000 pages weigh 128 after three periods, nine seconds.
    let half_at_last = quiet_wb(|at| if at <= 9 { 201 } else { 100 });
    let found = half_at_last.found();
    assert_eq!((found.quiet, found.quiet_exact), (4, 4), "{:?}", half_at_last.misses());
    assert_eq!((found.bounded, found.bounded_within), (6, 6));
    let off = quiet_wb(|at| if at == 7 { 150 } else { 201 });
    assert_eq!((off.found().quiet, off.found().quiet_exact), (4, 3), "{:?}", off.misses());
}
