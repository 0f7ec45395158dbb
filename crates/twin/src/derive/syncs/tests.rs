// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs and devices whose counters tell of syncs.

use super::*;
use floodline_record::id::DevId;
use floodline_scenario::FsType;

/// Intervals of a second each: bytes written, and seconds waited.
fn group(seconds: &[(f64, f64)]) -> Group {
    let mut group = Group::default();
    for (at, (bytes, waited)) in seconds.iter().enumerate() {
        let bin = Bin {
            end: at as f64 + 1.0,
            length: 1.0,
            by_calls: *bytes,
            wchar: *bytes,
            calls: bytes / 4096.0,
            waited: *waited,
            ..Bin::default()
        };
        group.total.by_calls += bin.by_calls;
        group.total.calls += bin.calls;
        group.total.length += 1.0;
        group.bins.push(bin);
    }
    group
}

#[test]
fn a_steady_writer_that_waits_while_the_device_writes_syncs_from_time_to_time() {
    let seconds: Vec<(f64, f64)> = (0..40).map(|at| (4e6, if at % 5 == 4 { 0.3 } else { 0.0 })).collect();
    let wrote = |is_then: fn(usize) -> bool| -> Wrote {
        (0..40).map(|at| (at as f64 + 1.0, if is_then(at) { 20e6 } else { 0.0 })).collect()
    };
    let steady = group(&seconds);
    assert_eq!(from_time_to_time(&steady, &wrote(|at| at % 5 == 4), 20), Some(8.0));
    assert_eq!(from_time_to_time(&steady, &wrote(|at| at % 5 == 4), 3), None, "hardly flushed");
    assert_eq!(from_time_to_time(&steady, &wrote(|_| true), 20), None, "the device writes all the time");
    let paused: Vec<(f64, f64)> = vec![(4e6, 0.3); 40];
    assert_eq!(from_time_to_time(&group(&paused), &wrote(|_| true), 50), None);
}

#[test]
fn a_job_that_unpacks_without_a_sync_and_syncs_its_result_syncs_only_that() {
    let job = [(4e6, 0.0), (0.0, 0.0), (90e6, 0.0), (0.0, 0.5), (0.0, 0.0)];
    let ends = |seconds: &[(f64, f64)]| synced_runs(&group(seconds)).iter().map(|run| run.end).collect::<Vec<_>>();
    assert_eq!(ends(&[job, job].concat()), [3.0, 8.0]);
    // The part that is synced is small.
    let small = [(90e6, 0.0), (0.0, 0.0), (4e6, 0.0), (0.0, 0.5), (0.0, 0.0)];
    assert_eq!(ends(&[small, small].concat()), [0.0; 0]);
}

#[test]
fn a_burst_that_a_limit_holds_up_is_one() {
    // The limit lets it go on two times, and then it syncs.
    let held =
        [(60e6, 0.0), (0.0, 1.0), (40e6, 0.9), (0.0, 1.0), (20e6, 0.5), (0.0, 1.0), (0.0, 0.5), (0.0, 0.0), (0.0, 0.0)];
    let ends = |seconds: &[(f64, f64)]| synced_runs(&group(seconds)).iter().map(|run| run.end).collect::<Vec<_>>();
    assert_eq!(ends(&held.repeat(3)), [5.0, 14.0, 23.0]);
    // It goes on after each wait to the end.
    assert_eq!(ends(&[(60e6, 0.0), (0.0, 1.0)].repeat(9)), [0.0; 0]);
}

#[test]
fn a_program_that_waits_only_where_its_burst_ends_early_syncs_it() {
    let ends = |within: f64, last: (f64, f64)| {
        let mut burst = vec![(3e6, within); 5];
        burst.push(last);
        burst.extend([(0.0, 0.0); 4]);
        let runs = synced_runs(&group(&burst.repeat(3)));
        runs.iter().map(|run| (run.end, run.waited)).collect::<Vec<_>>()
    };
    assert_eq!(ends(0.0, (1e6, 0.25)), [(6.0, 0.25), (16.0, 0.25), (26.0, 0.25)]);
    assert_eq!(ends(0.0, (2.6e6, 0.09)), [(6.0, 0.09), (16.0, 0.09), (26.0, 0.09)]);
    assert_eq!(ends(0.1, (1e6, 0.25)), [], "it waits while it writes");
    assert_eq!(ends(0.0, (3e6, 0.25)), [], "its calls go on to the end of the interval");
    let run = rested(&group(&[vec![(3e6, 0.002); 5], vec![(1e6, 0.25), (0.0, 0.1), (0.0, 0.0)]].concat()))[0];
    assert!((run.waited - 0.36).abs() < 1e-9, "each wait counts once: {}", run.waited);
}

#[test]
fn waits_in_the_interval_in_which_a_burst_ends_may_follow_it() {
    // On a device with a hundred flushes for each burst.
    let is_held = |burst: [(f64, f64); 2]| {
        let mut group = group(&[&burst[..], &[(0.0, 0.3), (0.0, 0.0), (0.0, 0.0)]].concat().repeat(4));
        group.total.waited = group.bins.iter().map(|bin| bin.waited).sum();
        is_held_within(&group, syncs_at_ends(&group).expect("bursts that are synced"), 400.0)
    };
    assert!(!is_held([(45e6, 0.0), (15e6, 0.4)]), "its calls end in the second interval");
    assert!(is_held([(45e6, 0.0), (45e6, 0.4)]), "it waits while it writes");
    assert!(is_held([(45e6, 0.4), (15e6, 0.0)]), "it waits before its end");
}

#[test]
fn bursts_that_are_dropped_unwritten_were_not_synced() {
    let bursts = [(90e6, 0.0), (0.0, 0.5), (0.0, 0.0), (0.0, 0.0)].repeat(4);
    let count = |cancelled: f64| {
        let mut group = group(&bursts);
        group.total.cancelled = cancelled;
        syncs_at_ends(&group).map(|ends| ends.count)
    };
    assert_eq!(count(0.0), Some(4.0));
    assert_eq!(count(10e6), Some(4.0), "another file");
    assert_eq!(count(180e6), None);
}

/// A disk that made 200 writes.
fn place() -> Place {
    Place { fs_type: FsType::Xfs, writes: 200, ..Place::of_disk("vda") }
}

#[test]
fn data_that_leaves_soon_was_synced_or_where_a_trace_has_no_sync_started() {
    let place = place();
    // 2 MB/s that stay dirty for a quarter of a second.
    let groups = [group(&[(2e6, 0.0); 40]), group(&[(4096.0, 0.1); 40])];
    let at = [At { place: 0, is_known: true }; 2];
    let told = |first: Syncs, second: Syncs| {
        let mut syncs = [first, second];
        add_by_age(&groups, std::slice::from_ref(&place), &at, (&[Some(0.25), None], &[0.4]), &mut syncs);
        (syncs[0].call, syncs[0].count, syncs[1].call)
    };
    let none = Syncs::default();
    assert_eq!(told(none, none), (Some(SyncCall::Fdatasync), 80.0, None));
    let measured = |count, call| Syncs { count, call, origin: Origin::Measured, ..Syncs::default() };
    let offsets = measured(40.0, Some(SyncCall::Fdatasync));
    let started = (Some(SyncCall::SyncFileRange), 80.0, Some(SyncCall::Fdatasync));
    assert_eq!(told(measured(0.0, None), offsets), started);
    // An image is flushed by each sync.
    let image = |flushes| {
        let place = Place { below: Some(DevId { major: 254, minor: 0 }), flushes, ..place.clone() };
        let mut syncs = [none, none];
        add_by_age(&groups, std::slice::from_ref(&place), &at, (&[Some(0.25), None], &[0.4]), &mut syncs);
        syncs[0].call
    };
    assert_eq!((image(9), image(80)), (Some(SyncCall::SyncFileRange), Some(SyncCall::Fdatasync)));
    let counted = measured(20.0, Some(SyncCall::Fsync));
    assert_eq!(told(counted, offsets), (Some(SyncCall::Fsync), 20.0, Some(SyncCall::Fdatasync)));
}

#[test]
fn a_device_that_counts_few_flushes_got_few_syncs() {
    let none = [Syncs::default()];
    let told = |seconds: &[(f64, f64)], flushes: u64| {
        let place = Place { flushes, ..place() };
        let at = [At { place: 0, is_known: true }];
        let mut syncs = none;
        add_by_age(&[group(seconds)], &[place], &at, (&[Some(0.25)], &[0.4]), &mut syncs);
        (syncs[0].call, syncs[0].count)
    };
    let steady = vec![(2e6, 0.0); 40];
    assert_eq!(told(&steady, 170), (Some(SyncCall::Fdatasync), 80.0));
    assert_eq!(told(&steady, 60), (Some(SyncCall::Fdatasync), (60.0 - 40.0 / 30.0) / 2.0), "two each");
    assert_eq!(told(&steady, 0), (Some(SyncCall::Fdatasync), 80.0), "a device without a cache");
    assert_eq!(told(&steady, 8), (Some(SyncCall::SyncFileRange), 80.0));
    // One sync for each burst explains the flushes.
    let bursts = [(28e6, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)].repeat(10);
    assert_eq!(told(&bursts, 4).0, Some(SyncCall::SyncFileRange));
    let (call, count) = told(&bursts, 90);
    assert!(call == Some(SyncCall::Fdatasync) && count <= 20.0, "{count}");
}

#[test]
fn stored_data_that_leaves_soon_is_synced_once_in_each_interval_with_stores() {
    let flushed = |soon: Option<f64>, writes: u64, flushes: u64| {
        let mut group = group(&[(0.0, 0.0); 40]);
        group.bins.iter_mut().step_by(2).for_each(|bin| bin.mapped = 204_800.0);
        group.total.mapped = 20.0 * 204_800.0;
        let place = Place { writes, flushes, ..place() };
        let mut syncs = [Syncs::default()];
        let at = [At { place: 0, is_known: true }];
        add_by_age(&[group], &[place], &at, (&[soon], &[0.1]), &mut syncs);
        (syncs[0].count, syncs[0].is_by_age)
    };
    let count = |soon, writes| flushed(soon, writes, 0);
    assert_eq!(flushed(Some(0.02), 200, 22), (20.0, true), "a sync that makes no file longer needs one flush");
    assert_eq!(count(Some(0.02), 200), (20.0, true));
    assert_eq!(count(Some(2.0), 200), (5.0, true), "it stays for two seconds");
    assert_eq!(count(Some(0.02), 8), (8.0, true), "the device wrote eight times");
    assert_eq!(count(None, 200), (0.0, false), "it does not leave soon");
}

#[test]
fn stores_to_a_mapping_are_no_bursts_of_calls() {
    let check = |mapped: f64, synced: f64| {
        let mut group = group(&[(0.0, 0.1); 10]);
        for bin in &mut group.bins {
            bin.mapped = mapped;
        }
        let first = &mut group.bins[0];
        (first.by_calls, first.wchar, first.calls) = (8.0 * 4096.0, 8.0 * 4096.0, 8.0);
        group.total = Bin { by_calls: 8.0 * 4096.0, calls: 8.0, length: 10.0, ..Bin::default() };
        let mut syncs = [Syncs::default()];
        share_flushes(&[group], &[0], (&flushed(50.0), 0.0), &[], &mut syncs);
        assert_eq!(syncs[0].count, synced, "{mapped}");
    };
    check(0.0, 1.0);
    check(4096.0, 1.0);
}

/// A disk that programs flushed so often in 40 s.
fn flushed(flushes: f64) -> Place {
    // A journal that commits each five seconds adds eight.
    Place { fs_type: FsType::Ext4, flushes: flushes as u64 + 8, ..place() }
}

#[test]
fn bursts_with_a_rest_after_each_are_synced_once_each() {
    let burst = [(200e3, 0.02), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)];
    let count = |seconds: &[(f64, f64)], flushes: f64| {
        let mut syncs = [Syncs::default()];
        share_flushes(&[group(seconds)], &[0], (&flushed(flushes), f64::INFINITY), &[], &mut syncs);
        syncs[0].count
    };
    let bursts = burst.repeat(10);
    assert_eq!([10.0, 15.3, 20.0].map(|flushes| count(&bursts, flushes)), [10.0; 3]);
    // More flushes are more syncs, with two flushes each, and fewer ones are those of some bursts.
    assert_eq!([8.0, 25.0].map(|flushes| count(&bursts, flushes)), [4.0, 12.5]);
    // However many calls a burst has.
    let large = [(1e6, 0.02), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)].repeat(10);
    assert_eq!([10.0, 8.0].map(|flushes| count(&large, flushes)), [10.0, 0.0]);
    // Without a rest nothing tells when it syncs.
    let steady = [(400e3, 0.02), (400e3, 0.02), (0.0, 0.0), (0.0, 0.0)].repeat(10);
    assert_eq!(count(&steady, 25.0), 12.5);
}

#[test]
fn flushes_between_bursts_are_not_theirs() {
    let bursts = [(200e3, 0.02), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)].repeat(10);
    // In each second of the burst, in the next one, and in the one before the next burst.
    let count = |each: [f64; 3]| {
        let second = |at: usize| (at as f64 + 1.0, [each[0], each[1], 0.0, each[2]][at % 4]);
        let over_time: Vec<(f64, f64)> = (0..40).map(second).collect();
        let all: f64 = over_time.iter().map(|(_, flushes)| flushes).sum();
        let mut syncs = [Syncs::default()];
        share_flushes(&[group(&bursts)], &[0], (&flushed(all), f64::INFINITY), &over_time, &mut syncs);
        syncs[0].count
    };
    assert_eq!(count([2.0, 0.0, 1.0]), 10.0, "a journal commits before each burst");
    assert_eq!(count([1.0, 1.0, 1.0]), 10.0, "a sync ends in the next second");
    assert_eq!(count([3.0, 0.0, 1.0]), 20.0, "more than one sync for each burst");
}

#[test]
fn a_program_whose_place_is_not_known_syncs_where_the_flushes_are() {
    let place = |minor, flushes| Place {
        dev: DevId { major: 254, minor },
        device: format!("vd{minor}"),
        point: "/data".to_owned(),
        fs_type: FsType::Ext4,
        mean_read: None,
        flushes,
        writes: 2 * flushes,
        written: 0,
        below: None,
        is_buffered: false,
    };
    let groups = [group(&[(40_960.0, 0.1); 10])];
    let places = [place(0, 2), place(1, 102)];
    let check = |is_known: bool, place: usize, count: f64| {
        let mut at = [At { place: 0, is_known }];
        let syncs = syncs(&groups, &places, &mut at, (&[], &[]));
        assert_eq!((at[0].place, syncs[0].count), (place, count), "{is_known}");
    };
    check(false, 1, 100.0);
    // Known to write to a device without flushes, it waits for something else.
    check(true, 0, 0.0);
}
