// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of bursts: which are found, and what triggered them.

use super::*;
use crate::diagnose::device::drains;
use floodline_record::units::{Bytes, Count, Pages};
use floodline_testkit::incidents::{dirty_cliff, dirty_cliff_published};
use floodline_testkit::{Fixture, mib, mib_pages, secs};

fn of(fixture: &Fixture) -> Option<Burst> {
    let window = fixture.window();
    drains(&window).iter().find_map(|device| longest(&Derived::of(&window), device))
}

/// Dirty from second 3 on, and written from second `at` on, within four seconds.
pub(crate) fn asked(at: f64) -> Fixture {
    let busy = move |t: f64| (t - at).clamp(0.0, 4.0);
    Fixture::healthy()
        .host(move |t, row| {
            let dirty = if t < 3.0 { 0.0 } else { 160.0 - 40.0 * busy(t) };
            row.nr_dirty = Some(mib_pages(dirty));
            row.psi_io_some = Some(secs(900.0 + 0.9 * busy(t)));
        })
        .disk("sda", move |t, row| {
            row.written = Some(Bytes(mib(40.0 * busy(t))));
            row.writes = Some(Count((80.0 * busy(t)) as u64));
            row.write_time = Some(secs(80.0 * busy(t)));
            row.io_time = Some(secs(busy(t)));
            row.weighted_io_time = Some(secs(30.0 * busy(t)));
        })
        .seconds(45)
}

#[test]
fn what_a_burst_was_for_is_told_by_amount_and_age() {
    let check = |fixture: &Fixture, expect| assert_eq!(of(fixture).map(|burst| burst.trigger), Some(expect));
    check(&dirty_cliff(), Trigger::Age);
    check(&dirty_cliff_published(), Trigger::Amount);
    check(&asked(6.0), Trigger::Asked);
    check(&asked(33.0), Trigger::Age);
    check(&asked(6.0).host(|_, row| row.nr_dirty_background_threshold = Some(mib_pages(150.0))), Trigger::Amount);
    // Dirty from the first sample on: the age is unknown.
    check(
        &asked(6.0).host(|t, row| row.nr_dirty = Some(mib_pages(160.0 - 40.0 * (t - 6.0).clamp(0.0, 4.0)))),
        Trigger::Unknown,
    );
}

#[test]
fn data_that_an_earlier_sync_handed_to_the_disk_are_not_among_those_that_pile_up_after_it() {
    // 5 MiB/s are dirtied. A sync in second 16 takes all that is dirty then, and the disk needs five seconds for it. A second sync, in
    // second 31, takes 75 MiB.
    let synced = |is_at_once: bool| {
        let begun = move |t: f64| match t {
            t if t >= 31.0 => 75.0 - 20.0 * (t - 31.0),
            t if t >= 16.0 && is_at_once => 80.0 - 16.0 * (t - 16.0),
            _ => 0.0,
        };
        asked(31.0).host(move |t, row| {
            let since = if t >= 31.0 { 31.0 } else { 16.0 };
            let dirty = if t < 16.0 || !is_at_once { 5.0 * t.min(31.0) } else { 5.0 * (t - since) };
            row.nr_dirty = Some(mib_pages(if t > 31.0 { 5.0 * (t - 31.0) } else { dirty }));
            row.nr_writeback = Some(mib_pages(begun(t).max(0.0)));
        })
    };
    let burst = of(&synced(true)).expect("a burst");
    assert_eq!(burst.trigger, Trigger::Asked, "{burst:?}");
    assert!(burst.age_s.is_some_and(|age| (14.0..=16.0).contains(&age)), "{burst:?}");
    // Without the first sync, the data are as old as the window.
    assert_eq!(of(&synced(false)).map(|burst| burst.trigger), Some(Trigger::Age));
}

#[test]
fn what_ends_within_its_last_interval_is_not_as_long_as_that() {
    // Samples twice a second: 20 MiB in one interval, and `rest` in the next.
    let check = |rest: f64, expect: bool| {
        let wrote = move |t: f64| 40.0 * (t - 6.0).clamp(0.0, 0.5) + 2.0 * rest * (t - 6.5).clamp(0.0, 0.5);
        let short = asked(6.0)
            .every(0.5)
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(if t < 3.0 { 0.0 } else { 20.0 + rest - wrote(t) }));
            })
            .disk("sda", move |t, row| {
                let busy = (t - 6.0).clamp(0.0, 1.0);
                row.written = Some(Bytes(mib(wrote(t))));
                row.writes = Some(Count((2.0 * wrote(t)) as u64));
                row.io_time = Some(secs(busy));
                row.weighted_io_time = Some(secs(30.0 * busy));
            });
        assert_eq!(of(&short).is_some(), expect, "{rest}");
    };
    check(20.0, true);
    check(14.0, false);
}

#[test]
fn what_is_synced_as_soon_as_it_is_dirtied_has_not_piled_up() {
    let check = |at, expect| assert_eq!(of(&asked(at)).map(|burst| burst.is_fresh()), Some(expect), "at {at} s");
    check(5.0, true);
    check(12.0, false);
    check(33.0, false);
}

#[test]
fn what_is_under_writeback_is_not_written_yet() {
    // The flusher has handed all of it to the disk at once.
    let handed = asked(6.0).host(|t, row| {
        let unwritten = row.nr_dirty.unwrap_or_default();
        (row.nr_dirty, row.nr_writeback) =
            if t > 6.0 { (Some(Pages(0)), Some(unwritten)) } else { (Some(unwritten), Some(Pages(0))) };
    });
    let burst = of(&handed).unwrap();
    assert_eq!((burst.dirty_before, burst.seconds.round()), (mib(160.0), 4.0));
}

#[test]
fn waits_that_went_on_before_a_burst_are_not_its_own() {
    let with = |before: f64, write_s: f64| {
        let busy = |t: f64| (t - 33.0).clamp(0.0, 4.0);
        let fixture = asked(33.0)
            .host(move |t, row| row.psi_io_some = Some(secs(900.0 + before * t.min(33.0) + 0.99 * (t - 33.0).max(0.0))))
            .disk("sda", move |t, row| row.write_time = Some(secs(80.0 * write_s * busy(t))));
        of(&fixture).map(|burst| burst.stalled())
    };
    assert_eq!(with(0.1, 0.01), Some(true), "tasks wait since it began");
    assert_eq!(with(0.99, 0.01), Some(false), "a task waits all the time, for whatever it is");
    assert_eq!(with(0.99, 1.0), Some(true), "each write took a second");
}

#[test]
fn intervals_that_are_cut_short_belong_to_their_burst() {
    // Completions are counted late: every other interval looks less busy than it was.
    let coarse = asked(6.0).disk("sda", |t, row| {
        let busy = (t - 6.0).clamp(0.0, 4.0);
        row.io_time = Some(secs((busy * 0.9).floor() + 0.75 * (busy * 0.9).fract()));
    });
    assert_eq!(of(&coarse).map(|burst| burst.seconds.round()), Some(4.0));
}

#[test]
fn completions_that_come_late_and_a_writer_that_goes_on_hide_no_burst() {
    let late = asked(6.0)
        .host(|t, row| {
            let busy = (t - 6.0).clamp(0.0, 4.0);
            row.nr_dirty = Some(mib_pages(if t < 3.0 { 0.0 } else { 160.0 - 20.0 * busy }));
        })
        .disk("sda", |t, row| {
            let busy = (t - 6.0).clamp(0.0, 4.0);
            // Nothing of the second interval completes before the third.
            let completed = if busy == 2.0 { 1.0 } else { busy };
            row.written = Some(Bytes(mib(40.0 * completed)));
            row.writes = Some(Count((80.0 * completed) as u64));
        });
    assert_eq!(of(&late).map(|burst| burst.seconds.round()), Some(4.0));
}

#[test]
fn nobody_is_stalled_where_nobody_waits() {
    let calm = asked(6.0).host(|_, row| row.psi_io_some = Some(secs(900.0)));
    assert_eq!(of(&calm).map(|burst| burst.stalled()), Some(false));
    assert_eq!(of(&asked(6.0)).map(|burst| burst.stalled()), Some(true));
}
