// SPDX-License-Identifier: MIT OR Apache-2.0
//! The load that keeps a disk busy, interval by interval: reads, writeback, or writes that bypass it (direct I/O,
//! journals, fsyncs), and how long requests and tasks waited in these intervals. Does not cover which process caused
//! it.

use super::derived::Derived;
use super::device::{Device, Interval};
use super::{burst, dirty, strict};
use floodline_record::units::Nanos;
use std::collections::BTreeSet;

/// Part of an interval with a request in flight from which the disk counts as busy.
pub const BUSY: f64 = 0.75;

/// Mean requests in flight from which a request waits for others.
pub const QUEUED: f64 = 2.0;

/// Fewest seconds of a busy disk that are worth a finding.
const NOTICED_S: f64 = 2.0;
/// Part of the window with a busy disk from which the load is more than a moment.
pub const LASTS_SHARE: f64 = 0.25;

/// Part of the written bytes from which most of them are writeback.
const MOSTLY_WRITEBACK: f64 = 0.5;
/// Part of the load from which reads fill a disk together with the writes.
const MIXED: f64 = 0.25;
/// Source of the part that is writeback, for evidence.
pub const SHARE_SOURCE: &str = "/proc/vmstat nr_written + growth of nr_writeback, ÷ written";

/// Unwritten data of less than this do not pile up, bytes.
const LITTLE: u64 = 1 << 20;
/// Part of the background threshold from which the flusher may write for the amount.
const NEAR_BACKGROUND: f64 = 0.5;
/// Data that are written this soon after they became dirty did not wait for the flusher, seconds.
const AT_ONCE_S: f64 = 1.0;

/// The same below which the flusher does not write for the amount on any device: a device's own share of the threshold grows
/// above this part within seconds of writing.
const FAR_FROM_BACKGROUND: f64 = 0.1;
/// Part of the expiry up to which data are written too soon for their age to be the reason.
const YOUNG: f64 = 0.5;
/// Part of the written bytes that must have been dirtied in the same intervals.
const MOSTLY_NEW: f64 = 0.75;

/// Work of a disk in the intervals in which it was busy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Length of these intervals, seconds.
    pub seconds: f64,
    /// Time in them with a request in flight, seconds.
    pub busy_s: f64,
    /// Their part of the window.
    pub share: f64,
    /// Requests read and written.
    pub reads: f64,
    /// Writes completed.
    pub writes: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub written_bytes: f64,
    /// Part of the written bytes that writeback completed.
    pub writeback_share: f64,
    /// Whether pages were written soon after they became dirty, far below each threshold: by the tasks that sync them, not
    /// by the flusher. The kernel counts these writes as writeback, too.
    pub is_synced: bool,
    /// The same for pages that are the smaller part of the written bytes.
    are_pages_synced: bool,
    /// Mean time of a write, seconds; 0 where none completed.
    pub write_await_s: f64,
    /// Mean time of a read, seconds; 0 where none completed.
    pub read_await_s: f64,
    /// Longest mean time of a write in one interval, seconds.
    pub write_await_max_s: f64,
    /// Part of these seconds with a task waiting for I/O.
    pub pressure: Option<f64>,
}

/// Kind of the load that fills a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Reads,
    /// The flusher's writes.
    Writeback,
    /// Writes that a task waits for: direct I/O, fsyncs, journal commits.
    Waited,
}

impl Load {
    /// Kind of the load: reads where they are more than half of the requests and bytes, both counted equally, otherwise the
    /// kind of writes with the larger part. Many small reads are little beside a few large writes.
    pub fn kind(&self) -> Kind {
        if self.reads_share() > 0.5 {
            Kind::Reads
        } else if self.writeback_share >= MOSTLY_WRITEBACK && !self.is_synced {
            Kind::Writeback
        } else {
            Kind::Waited
        }
    }

    /// Part of the reads in the load: the mean of their part of the requests and of the bytes.
    pub fn reads_share(&self) -> f64 {
        let part = |reads: f64, writes: f64| if reads > 0.0 { reads / (reads + writes) } else { 0.0 };
        (part(self.reads, self.writes) + part(self.read_bytes, self.written_bytes)) / 2.0
    }

    /// Whether reads and writes fill the disk together, and the writes are not writeback: then no writer fills it alone.
    pub fn is_mixed(&self) -> bool {
        self.kind() == Kind::Waited && self.reads_share() >= MIXED
    }

    /// Part of the load that is the flusher's.
    pub fn writeback_part(&self) -> f64 {
        if self.are_pages_synced { 0.0 } else { (1.0 - self.reads_share()) * self.writeback_share }
    }

    /// Mean size of a write, bytes.
    pub fn mean_write(&self) -> f64 {
        self.written_bytes / self.writes.max(1.0)
    }
}

/// Whether a disk had more than one pending request for most of an interval.
pub fn is_queued(interval: &Interval) -> bool {
    interval.utilisation.is_some_and(|busy| busy >= BUSY) && interval.queue.is_some_and(|queue| queue >= QUEUED)
}

/// Returns the work of a disk in the wanted intervals.
pub fn of(derived: &Derived<'_>, device: &Device<'_>, wanted: impl Fn(&Interval) -> bool) -> Load {
    let intervals: Vec<Interval> = device.intervals().into_iter().filter(|interval| wanted(interval)).collect();
    let sum = |of: &dyn Fn(&Interval) -> f64| intervals.iter().map(of).sum::<f64>();
    let seconds = sum(&|interval| interval.seconds);
    let (writes, written_bytes) = (sum(&|interval| interval.writes), sum(&|interval| interval.written_bytes));
    let waited = sum(&|interval| interval.write_await_s.unwrap_or(0.0) * interval.writes);
    let reads = sum(&|interval| interval.reads);
    let waited_to_read = sum(&|interval| interval.read_await_s.unwrap_or(0.0) * interval.reads);
    // What completes in one interval may be counted in the next, and pages of one large request chain all at its end.
    let counted = derived.cleaned_on(device);
    let cleaned = counted.during(&intervals) + begun(derived, device, &intervals);
    let pressed: Option<f64> = intervals
        .iter()
        .map(|interval| {
            Some(dirty::io_pressure_between(derived.window, start(interval), interval.end)? * interval.seconds)
        })
        .sum();
    let writeback_share = if written_bytes > 0.0 { (cleaned / written_bytes).min(1.0) } else { 0.0 };
    let are_pages_synced = seconds > 0.0
        && (is_synced(derived, device, &intervals, cleaned / seconds)
            || is_young(derived, device, &intervals, (cleaned, counted.dirtied_during(&intervals))));
    Load {
        seconds,
        busy_s: sum(&|interval| interval.utilisation.unwrap_or(0.0) * interval.seconds),
        share: seconds / derived.seconds.max(f64::MIN_POSITIVE),
        reads,
        writes,
        read_bytes: sum(&|interval| interval.read_bytes),
        written_bytes,
        writeback_share,
        // Direct writes leave as few dirty pages, and a task syncs none of them.
        is_synced: writeback_share >= MOSTLY_WRITEBACK && are_pages_synced,
        are_pages_synced,
        write_await_s: if writes > 0.0 { waited / writes } else { 0.0 },
        read_await_s: if reads > 0.0 { waited_to_read / reads } else { 0.0 },
        write_await_max_s: intervals.iter().filter_map(|interval| interval.write_await_s).fold(0.0, f64::max),
        pressure: pressed.filter(|_| seconds > 0.0).map(|pressed| (pressed / seconds).min(1.0)),
    }
}

/// Bytes whose writeback began in these intervals and was not counted as complete in them: the growth of what is under writeback
/// from the start to the end of each run of intervals. Of several devices, each has the part that it wrote of all bytes.
fn begun(derived: &Derived<'_>, device: &Device<'_>, intervals: &[Interval]) -> f64 {
    let series = &derived.window.host_series;
    let level = |moment: Nanos| {
        let place = series.partition_point(|(at, _)| at.monotonic.0 <= moment.0.saturating_add(1_000_000));
        series.get(place.checked_sub(1)?)?.1.nr_writeback
    };
    let follows = |one: &Interval, next: &Interval| start(next).0.abs_diff(one.end.0) < 1_000_000;
    let grown = |run: &[Interval]| {
        let (first, last) = (run.first()?, run.last()?);
        Some(level(last.end)?.0.saturating_sub(level(start(first))?.0) as f64)
    };
    let pages: f64 = intervals.chunk_by(follows).filter_map(grown).sum();
    let written = |one: &Device<'_>| one.span.growth.written.map_or(0.0, |bytes| bytes.0 as f64);
    let all: f64 = derived.disks().iter().map(written).sum();
    let share = if all > 0.0 { (written(device) / all).min(1.0) } else { 0.0 };
    pages * derived.page_size as f64 * share
}

/// Whether the unwritten data in these intervals are too few for the flusher to have written `rate` bytes
/// per second of them.
fn is_synced(derived: &Derived<'_>, device: &Device<'_>, intervals: &[Interval], rate: f64) -> bool {
    let Some(background) = derived.dirty.background_threshold else { return false };
    // A strict limit lets few data pile up, and the flusher writes them for the amount.
    if strict::holds(derived, device) {
        return false;
    }
    let series = burst::unwritten_of(derived, device).series;
    // What had piled up before a batch is known at the start of an interval, what is left of it at the end.
    let during = |interval: &Interval| {
        let from = series.partition_point(|(at, _)| at.0.saturating_add(1_000_000) < start(interval).0);
        series.get(from..)?.iter().take_while(|(at, _)| *at <= interval.end).map(|(_, bytes)| *bytes).max()
    };
    let level = intervals.iter().filter_map(during).max();
    level.is_some_and(|level| {
        let level_is_low = level < LITTLE && (level as f64) < NEAR_BACKGROUND * background.0 as f64;
        // Where data expire within a second or two, the flusher writes them as soon.
        let at_once = derived.dirty.expiry_seconds.map_or(AT_ONCE_S, |expiry| AT_ONCE_S.min(YOUNG * expiry));
        level_is_low && level as f64 <= at_once * rate
    })
}

/// Whether the data written in these intervals were dirtied in them too, and were written long before their age or amount
/// lets the flusher begin: then the tasks that wrote them asked for it. The kernel counts these writes as writeback. Where the kernel does
/// not count what was `dirtied` for the device, the machine's bytes count.
fn is_young(
    derived: &Derived<'_>,
    device: &Device<'_>,
    intervals: &[Interval],
    (cleaned, dirtied): (f64, Option<f64>),
) -> bool {
    let (Some(background), Some(expiry)) = (derived.dirty.background_threshold, derived.dirty.expiry_seconds) else {
        return false;
    };
    let seconds: f64 = intervals.iter().map(|interval| interval.seconds).sum();
    let series = burst::unwritten_of(derived, device).series;
    let ends: BTreeSet<Nanos> = intervals.iter().map(|interval| interval.end).collect();
    let Some(level) = series.iter().filter(|(at, _)| ends.contains(at)).map(|(_, bytes)| *bytes).max() else {
        return false;
    };
    // What is written each second stays unwritten for this long.
    let age = level as f64 * seconds / cleaned.max(1.0);
    let is_early = (level as f64) < FAR_FROM_BACKGROUND * background.0 as f64 && age < YOUNG * expiry;
    is_early
        && dirtied.or_else(|| dirtied_in(derived, intervals)).is_some_and(|dirtied| dirtied >= MOSTLY_NEW * cleaned)
        && { !strict::holds(derived, device) && !derived.is_near_a_budget() }
}

/// Bytes dirtied on the machine in some intervals; `None` where that was not read.
fn dirtied_in(derived: &Derived<'_>, intervals: &[Interval]) -> Option<f64> {
    let series = &derived.window.host_series;
    let at = |moment: Nanos| {
        let place = series.partition_point(|(at, _)| at.monotonic.0 <= moment.0.saturating_add(1_000_000));
        series.get(place.checked_sub(1)?)?.1.nr_dirtied
    };
    let of = |interval: &Interval| at(interval.end)?.0.checked_sub(at(start(interval))?.0);
    let pages: Vec<u64> = intervals.iter().map(of).collect::<Option<_>>()?;
    Some(pages.iter().map(|pages| *pages as f64).sum::<f64>() * derived.page_size as f64)
}

/// Whether a cgroup had so much unwritten that the flusher writes for the amount in that cgroup.
pub(super) fn is_near_a_budget(derived: &Derived<'_>) -> bool {
    derived.budgets().cgroups.iter().any(|budget| {
        let most = derived.window.unwritten_max.get(&budget.cgroup).copied().unwrap_or(0);
        let background = budget.domain.bg_thresh.map(|bound| bound.low.0);
        most > 0 && background.is_some_and(|background| most as f64 >= NEAR_BACKGROUND * background as f64)
    })
}

/// Returns the work of a disk while it was busy.
pub fn busy(derived: &Derived<'_>, device: &Device<'_>) -> Load {
    of(derived, device, |interval| interval.utilisation.is_some_and(|utilisation| utilisation >= BUSY))
}

/// Whether a disk was overloaded for long enough to matter, by a load other than writeback. No rule of writeback
/// explains waits for such a disk.
pub fn is_full_of_other(derived: &Derived<'_>, load: &Load) -> bool {
    load.seconds >= NOTICED_S.max(LASTS_SHARE * derived.seconds) && load.kind() != Kind::Writeback
}

/// Start of an interval.
pub fn start(interval: &Interval) -> Nanos {
    Nanos(interval.end.0.saturating_sub((interval.seconds * 1e9).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::device::drains;
    use floodline_record::units::{Bytes, Count, Flag, Pages, Ppm};
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    /// A full disk: this many small reads and this many writes of some size a second, with some data dirty all the time.
    fn kind(reads: f64, writes: f64, write_kib: f64, dirty_mib: f64) -> Kind {
        let fixture = Fixture::healthy()
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(dirty_mib));
                row.nr_writeback = Some(Pages(0));
                row.nr_written = Some(mib_pages(writes * write_kib / 1024.0 * t));
            })
            .disk("sda", move |t, row| {
                row.reads = Some(Count((reads * t) as u64));
                row.read = Some(Bytes(mib(reads * 4.0 / 1024.0 * t)));
                row.writes = Some(Count((writes * t) as u64));
                row.written = Some(Bytes(mib(writes * write_kib / 1024.0 * t)));
                row.io_time = Some(secs(t));
                row.weighted_io_time = Some(secs(8.0 * t));
            });
        let window = fixture.window();
        busy(&Derived::of(&window), &drains(&window)[0]).kind()
    }

    #[test]
    fn the_pages_that_tasks_sync_are_no_part_of_the_flushers_load() {
        // Of 640 KiB/s, 40 % are pages that are written at once, and the rest bypasses the page cache.
        let part = |dirty_mib: f64| {
            let fixture = Fixture::healthy()
                .host(move |t, row| {
                    (row.nr_dirty, row.nr_writeback) = (Some(mib_pages(dirty_mib)), Some(Pages(0)));
                    row.nr_written = Some(mib_pages(0.25 * t));
                })
                .disk("sda", |t, row| {
                    row.writes = Some(Count((160.0 * t) as u64));
                    row.written = Some(Bytes(mib(0.625 * t)));
                    row.io_time = Some(secs(t));
                    row.weighted_io_time = Some(secs(8.0 * t));
                });
            let window = fixture.window();
            busy(&Derived::of(&window), &drains(&window)[0]).writeback_part()
        };
        assert_eq!(part(0.1), 0.0);
        assert!(part(40.0) > 0.3, "{}", part(40.0));
    }

    #[test]
    fn small_reads_are_little_beside_large_writes() {
        assert_eq!(kind(130.0, 60.0, 740.0, 200.0), Kind::Writeback);
        assert_eq!(kind(130.0, 60.0, 4.0, 200.0), Kind::Reads);
    }

    #[test]
    fn pages_that_are_written_as_soon_as_they_are_dirty_are_those_of_tasks_that_sync() {
        assert_eq!(kind(0.0, 160.0, 4.0, 0.1), Kind::Waited);
        assert_eq!(kind(0.0, 160.0, 4.0, 40.0), Kind::Writeback);
    }

    #[test]
    fn pages_that_a_strict_limit_holds_are_written_for_their_amount() {
        let card = |is_strict: u64| {
            Fixture::healthy()
                .host(|t, row| {
                    row.nr_dirty = Some(mib_pages(0.3));
                    row.nr_dirty_threshold = Some(mib_pages(50.0));
                    row.nr_dirty_background_threshold = Some(mib_pages(25.0));
                    row.nr_written = Some(mib_pages(5.0 * t));
                })
                .bdi("8:0", move |_, row| {
                    (row.strict_limit, row.max_ratio) = (Some(Flag(is_strict)), Some(Ppm(8_000)));
                    (row.reclaimable, row.writeback) = (Some(Bytes(mib(0.3))), Some(Bytes(0)));
                })
                .disk("sda", |t, row| {
                    row.writes = Some(Count((80.0 * t) as u64));
                    row.written = Some(Bytes(mib(5.0 * t)));
                    row.io_time = Some(secs(t));
                    row.weighted_io_time = Some(secs(8.0 * t));
                })
        };
        assert_eq!((kind_of(&card(1)), kind_of(&card(0))), (Kind::Writeback, Kind::Waited));
    }

    /// A disk full of writes of 1 MiB that are dirtied as fast as they are written, with some data unwritten all the time.
    fn stores(unwritten_mib: f64, dirtied_mib: f64) -> Fixture {
        Fixture::healthy()
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(unwritten_mib));
                row.nr_dirtied = Some(mib_pages(dirtied_mib * t));
                row.nr_written = Some(mib_pages(6.0 * t));
            })
            .disk("sda", |t, row| {
                row.writes = Some(Count((6.0 * t) as u64));
                row.written = Some(Bytes(mib(6.0 * t)));
                row.io_time = Some(secs(t));
                row.weighted_io_time = Some(secs(8.0 * t));
            })
    }

    fn kind_of(fixture: &Fixture) -> Kind {
        let window = fixture.window();
        busy(&Derived::of(&window), &drains(&window)[0]).kind()
    }

    #[test]
    fn pages_written_long_before_their_age_or_amount_are_those_of_tasks_that_sync() {
        assert_eq!(kind_of(&stores(8.0, 6.0)), Kind::Waited);
        assert_eq!(kind_of(&stores(8.0, 1.0)), Kind::Writeback, "they were dirtied before");
        assert_eq!(kind_of(&stores(120.0, 6.0)), Kind::Writeback, "they are old enough");
        assert_eq!(
            kind_of(&stores(8.0, 6.0).thresholds((0, 0, 64 << 20, 32 << 20), 16_384, 8_192)),
            Kind::Writeback,
            "for the amount"
        );
    }
}
