// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts on series with known truth. Their stalls come in bursts of different strength, under a load that wanders.
//! Errors are counted where bursts last long, power where they last for seconds: where half of a burst's strength is
//! left after 30 s, ten minutes hold about seven independent bursts, and no test finds a factor of 2. Seeds are fixed.

use super::bootstrap::Random;
use super::*;

/// A host for some minutes: share of time with stalls, about. `memory` is what is left of a burst after 5 s.
pub(super) fn host_with(memory: f64, seed: u64, minutes: usize, share: f64, load: f64) -> Vec<Interval> {
    let mut random = Random((seed + 1).wrapping_mul(0xD134_2543_DE82_EF95) | 1);
    let mut noise = |width: f64| {
        let sum: f64 = (0..4).map(|_| random.share() - 0.5).sum();
        sum * width
    };
    let (mut strength, mut pace) = (0.0, 0.0);
    (0..minutes * 60)
        .map(|second| {
            if second % 5 == 0 {
                strength = strength * memory + noise(0.6);
                pace = pace * 0.95 + noise(0.15);
            }
            let stall_s = (share * f64::exp(strength + noise(0.5))).clamp(0.0, 1.0);
            Interval { seconds: 1.0, dirtied_bytes: load * f64::exp(pace), stall_s }
        })
        .collect()
}

/// Strength of a burst that is left after 5 s: half of it is left after 8 s, or after 30 s.
pub(super) const SHORT: f64 = 0.65;
pub(super) const LONG: f64 = 0.89;

fn host(seed: u64, minutes: usize, share: f64, load: f64) -> Vec<Interval> {
    host_with(SHORT, seed, minutes, share, load)
}

pub(super) const LOAD: f64 = 5e7;
pub(super) const RUNS: u64 = 200;

/// Verdicts over all runs at every look up to a length: helped, no difference, harmed, not enough. Of each run the first
/// verdict counts, as a person who looks early would take it.
fn verdicts(memory: f64, minutes: usize, before: f64, after: f64) -> [u64; 4] {
    let mut counts = [0; 4];
    for seed in 0..RUNS {
        let (one, other) =
            (host_with(memory, seed, minutes, before, LOAD), host_with(memory, seed + 7919, minutes, after, LOAD));
        let looks = (0..2).map(|look| 300 << look).filter(|length| *length <= minutes * 60);
        let first = looks
            .map(|length| judge(&one, &other[..length], Loads::Alike, 0.2).verdict)
            .find(|verdict| !matches!(verdict, Verdict::NotEnough { .. }));
        let at = match first {
            Some(Verdict::Helped) => 0,
            Some(Verdict::NoDifference) => 1,
            Some(Verdict::Harmed) => 2,
            _ => 3,
        };
        counts[at] += 1;
    }
    counts
}

#[test]
fn where_nothing_changed_the_errors_of_all_looks_stay_within_a_twentieth() {
    for memory in [SHORT, LONG] {
        let [helped, _, harmed, _] = verdicts(memory, 10, 0.2, 0.2);
        assert!(helped + harmed <= RUNS / 20, "{memory}: {helped} helped and {harmed} harmed of {RUNS}");
    }
}

#[test]
fn half_the_stalls_are_found_within_ten_minutes() {
    let [helped, none, harmed, open] = verdicts(SHORT, 10, 0.2, 0.1);
    assert!(helped >= RUNS * 9 / 10, "{helped} helped, {none} no difference, {harmed} harmed, {open} open");
    let [helped, none, harmed, open] = verdicts(SHORT, 10, 0.1, 0.2);
    assert!(harmed >= RUNS * 85 / 100, "{helped} helped, {none} no difference, {harmed} harmed, {open} open");
}

#[test]
fn a_long_look_at_the_same_host_ends_with_no_difference() {
    let (one, other) = (host(1, 320, 0.2, LOAD), host(2, 320, 0.2, LOAD));
    let judgement = judge(&one, &other, Loads::Alike, 0.2);
    assert_eq!(judgement.verdict, Verdict::NoDifference, "{judgement:?}");
}

/// Why recordings do not answer.
fn check(before: &[Interval], after: &[Interval], expect: Why) {
    let judgement = judge(before, after, Loads::Alike, 0.2);
    assert!(
        matches!(judgement.verdict, Verdict::NotEnough { why, minutes } if why == expect && minutes.is_none_or(|m| m > 0.0)),
        "{judgement:?}"
    );
}

#[test]
fn silence_is_never_success() {
    let busy = host(1, 10, 0.2, LOAD);
    check(&busy, &busy[..200], Why::Short);
    check(&busy[..60], &busy, Why::ShortBefore);
    check(&busy[..60], &busy[..200], Why::ShortBefore);
    check(&busy, &[], Why::Short);
    check(&busy, &host(2, 10, 0.0, 0.0), Why::Silent);
    check(&busy, &host(2, 10, 0.0, LOAD / 1e6), Why::OtherLoad);
    check(&host(1, 10, 0.0, LOAD), &host(2, 10, 0.0, LOAD), Why::NoStalls);
}

#[test]
fn a_cure_without_any_stall_is_found() {
    let judgement = judge(&host(1, 10, 0.2, LOAD), &host(2, 10, 0.0, LOAD), Loads::Alike, 0.2);
    assert_eq!(judgement.verdict, Verdict::Helped, "{judgement:?}");
}

#[test]
fn a_cure_that_makes_the_writes_fewer_is_found_at_any_load() {
    let (before, after) = (host(1, 10, 0.2, LOAD), host(2, 10, 0.02, LOAD / 1e3));
    check(&before, &after, Why::OtherLoad);
    let judgement = judge(&before, &after, Loads::Any, 0.2);
    assert_eq!(judgement.verdict, Verdict::Helped, "{judgement:?}");
    let judgement = judge(&before, &host(2, 10, 0.0, 0.0), Loads::Any, 0.2);
    assert!(matches!(judgement.verdict, Verdict::NotEnough { why: Why::Silent, .. }), "{judgement:?}");
    // The errors of the test itself: nothing changed but the load.
    let wrong = |seed: &u64| {
        let judged = judge(&host(*seed, 10, 0.2, LOAD), &host(seed + 7919, 10, 0.2, LOAD / 1e3), Loads::Any, 0.2);
        matches!(judged.verdict, Verdict::Helped | Verdict::Harmed)
    };
    let wrong = (0..RUNS).filter(wrong).count() as u64;
    assert!(wrong <= RUNS / 20, "{wrong} of {RUNS}");
}

#[test]
fn loads_that_differ_by_a_percent_are_alike() {
    // A steady writer, which the stalls before the change slow down a little: as a guest with a dirty cliff had it.
    let steady = |seed, share, load: f64| {
        let intervals = host(seed, 5, share, LOAD).into_iter();
        intervals.map(|interval| Interval { dirtied_bytes: load, ..interval }).collect::<Vec<_>>()
    };
    let judgement = judge(&steady(1, 0.2, 5.23e6), &steady(2, 0.02, 5.27e6), Loads::Alike, 0.2);
    assert_eq!(judgement.verdict, Verdict::Helped, "{judgement:?}");
    check(&steady(1, 0.2, 5.2e6), &steady(2, 0.02, 2.6e6), Why::OtherLoad);
}
