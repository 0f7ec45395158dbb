// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time in which tasks waited while the machine was at its dirty limit, the limit that was in force then, and the room that the
//! bursts of that time need. Memory that programs take or free moves a limit that is set in percent, so the last sample alone does not
//! show it. Judges no finding.

use super::derived::Derived;
use super::dirty;
use floodline_record::sample::HostRow;
use floodline_record::units::{Nanos, Pages};

/// I/O pressure from which an interval counts as waiting.
const WAITS: f64 = 0.5;
/// Smallest part of the waiting time in which unwritten data were at the limit, for tasks that waited at it.
const MOSTLY: f64 = 0.5;

/// How tasks waited at the limit of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AtLimit {
    /// Part of the window that lies in intervals in which tasks waited for I/O for half of the time or longer.
    pub(crate) waited_share: f64,
    /// Highest hard threshold in force while tasks waited at it, bytes; `None` where samples do not have it.
    pub(crate) thresh: Option<u64>,
    /// The freerun ceiling that belongs to it, bytes.
    pub(crate) freerun: Option<u64>,
    /// Least dirtyable memory then, roughly, bytes; `None` where samples do not have it.
    pub(crate) dirtyable: Option<u64>,
    /// Bytes of the largest stretch of waiting at the limit: those unwritten a sample before its start, and those dirtied since then. With
    /// this much room, no task of the stretch would wait.
    pub(crate) room: u64,
}

/// Hard threshold and freerun ceiling of a sample, bytes.
fn limits(derived: &Derived<'_>, row: &HostRow) -> Option<(u64, u64)> {
    let bytes = |pages: Pages| pages.bytes(derived.page_size).0;
    let (hard, background) = (bytes(row.nr_dirty_threshold?), bytes(row.nr_dirty_background_threshold?));
    Some((hard, hard.saturating_add(background) / 2))
}

/// Returns the time in which tasks waited, if unwritten data had reached a ceiling in at least half of it. The ceiling is `ceiling` bytes
/// where that is given, and otherwise the machine's freerun ceiling as it was in each sample.
pub(crate) fn at_limit(derived: &Derived<'_>, ceiling: Option<u64>) -> Option<AtLimit> {
    let window = derived.window;
    let last = derived.dirty.freerun_ceiling.map(|bytes| bytes.0);
    let mut found = AtLimit::default();
    let (mut waited_s, mut at_limit_s) = (0.0, 0.0);
    // Bytes of the present stretch of waiting, and what would be unwritten at its start if nothing had been written since the sample before.
    let (mut stretch, mut before): (Option<u64>, u64) = (None, 0);
    for pair in window.host_series.windows(2) {
        let [(from, start), (to, end)] = pair else { continue };
        let seconds = Nanos(to.monotonic.0.saturating_sub(from.monotonic.0)).as_secs_f64();
        let pressure = dirty::io_pressure_between(window, from.monotonic, to.monotonic).unwrap_or(0.0);
        let level = |row: &HostRow| dirty::unwritten_of(window, row).map_or(0, |bytes| bytes.0);
        let grown = end.nr_dirtied.zip(start.nr_dirtied).and_then(|(after, before)| after.0.checked_sub(before.0));
        let dirtied = grown.map_or(0, |pages| Pages(pages).bytes(derived.page_size).0);
        let in_force = limits(derived, start).into_iter().chain(limits(derived, end)).min_by_key(|(_, free)| *free);
        let reached = ceiling.or(in_force.map(|(_, free)| free)).or(last);
        let is_at = reached.is_some_and(|ceiling| level(start).max(level(end)) >= ceiling);
        let waits = pressure >= WAITS;
        waited_s += if waits { seconds } else { 0.0 };
        if waits && is_at {
            at_limit_s += seconds;
            found.thresh = found.thresh.max(in_force.map(|(hard, _)| hard));
            found.freerun = found.freerun.max(in_force.map(|(_, free)| free));
            let memory =
                [start, end].into_iter().filter_map(|row| dirty::dirtyable_of(window, row)).map(|bytes| bytes.0);
            found.dirtyable = found.dirtyable.into_iter().chain(memory).min();
            // A burst begins before its writers wait.
            let so_far = stretch.unwrap_or_else(|| before.max(level(start)));
            let so_far = so_far.saturating_add(dirtied);
            found.room = found.room.max(so_far);
            stretch = Some(so_far);
        } else {
            stretch = None;
        }
        before = level(start).saturating_add(dirtied);
    }
    found.waited_share = waited_s / derived.seconds.max(f64::MIN_POSITIVE);
    (at_limit_s >= MOSTLY * waited_s && waited_s > 0.0).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    /// A machine at a limit of `limit_mib` in seconds 2 to 5, in which it dirties 20 MiB/s and tasks wait.
    fn burst(limit_mib: impl Fn(f64) -> f64 + Copy + 'static) -> Fixture {
        Fixture::healthy().seconds(10).host(move |t, row| {
            let limit = limit_mib(t);
            (row.nr_dirty_threshold, row.nr_dirty_background_threshold) =
                (Some(mib_pages(limit)), Some(mib_pages(limit / 2.0)));
            let is_in = (2.0..=5.0).contains(&t);
            (row.nr_dirty, row.nr_writeback) = (Some(mib_pages(if is_in { 0.8 * limit } else { 1.0 })), Some(Pages(0)));
            row.nr_dirtied = Some(mib_pages(20.0 * (t - 1.0).clamp(0.0, 4.0)));
            row.psi_io_some = Some(secs(900.0 + (t - 2.0).clamp(0.0, 3.0)));
        })
    }

    #[test]
    fn the_room_of_a_burst_is_what_was_dirty_before_and_what_was_dirtied_until_its_tasks_went_on() {
        let window = burst(|_| 10.0).window();
        let found = at_limit(&Derived::of(&window), None).expect("they waited there");
        // 1 MiB was dirty. The second before the waits dirtied 20 MiB, and their three seconds 60 MiB.
        assert_eq!((found.thresh, found.room), (Some(mib(10.0)), mib(1.0 + 20.0 + 60.0)));
        assert!((found.waited_share - 3.0 / 10.0).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn the_limit_of_the_waits_counts_and_not_that_of_another_time() {
        let window = burst(|t| if t < 7.0 { 10.0 } else { 400.0 }).window();
        let found = at_limit(&Derived::of(&window), None).expect("they waited there");
        assert_eq!((found.thresh, found.freerun), (Some(mib(10.0)), Some(mib(7.5))));
        // Far below the ceiling, tasks wait for something else.
        let window = burst(|_| 10.0).host(|_, row| row.nr_dirty = Some(mib_pages(1.0))).window();
        assert_eq!(at_limit(&Derived::of(&window), None), None);
    }
}
