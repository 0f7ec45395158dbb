// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a task can have waited for a device in a stretch of the window. The kernel's pressure has no device and counts the
//! flusher too: on a machine with several disks it does not show which disk a task waited for. A task that waits for a
//! device reads from it, makes it flush its cache (fsync, a journal commit), writes past the page cache, or is paused
//! because much is dirty. A device that shows none of these was used by the flusher alone. The journal of ext4 commits by a
//! timer, too: its flushes are no task's where no program slept more in the stretch than outside it.

use super::derived::Derived;
use super::device::{Device, Interval};
use super::{asleep, load, strict};
use floodline_record::facts::{CgroupMode, Mount};
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::record::What;
use floodline_record::units::Nanos;
use std::collections::BTreeMap;

/// Summed time of reads from which a task may have waited for one, seconds: the flusher reads a little, too.
const FEW_READS_S: f64 = 0.1;
/// Part of the written bytes from which writes that are not writeback are more than an error of counting.
const PAST_THE_CACHE: f64 = 0.05;
/// Most bytes that a journal writes by its timer in a short observation.
const OF_A_JOURNAL: f64 = 1_048_576.0;
/// Intervals after a stretch that belong to it: a sync flushes the disk's cache after its data are written.
const AFTER: usize = 2;
/// Most bytes of one commit in a quiet time: tens of blocks.
const OF_A_COMMIT: f64 = 262_144.0;
/// Period of the timer by which a journal commits, seconds: the default of ext4.
const COMMIT_S: f64 = 5.0;
/// Filesystems whose journal commits by this timer, and flushes the disk. XFS and btrfs have timers of half a minute.
const OF_JBD2: [&str; 3] = ["ext3", "ext4", "ocfs2"];
/// Mount options with which a sync does not flush the cache of the disk.
const WITHOUT_FLUSH: [&str; 2] = ["nobarrier", "barrier=0"];

/// Whether a task can have waited for a device between two samples; true unless its counters show that only the flusher used
/// it.
pub fn may_be(derived: &Derived<'_>, device: &Device<'_>, from: Nanos, to: Nanos) -> bool {
    let can_be_paused =
        derived.dirty.can_have_throttled != Some(false) || derived.is_near_a_budget() || strict::holds(derived, device);
    if can_be_paused || reclaims(derived) || !shows_syncs(device) || was_seen(derived, device, from, to) {
        return true;
    }
    let intervals = device.intervals();
    let last = intervals.partition_point(|interval| interval.end <= to);
    let until =
        intervals.get((last + AFTER).min(intervals.len()).saturating_sub(1)).map_or(to, |interval| interval.end);
    // Its thread was seen to wait, though its mount may not be known.
    let most = of_timer(device, from, until).unwrap_or_else(|| of_period(COMMIT_S, from, until));
    let of_tasks = |flushes: f64| flushes > most || !is_journal_alone(derived, device, from, until);
    is_used(derived, device, (from, until), 0.0, of_tasks)
}

/// Whether a program was seen to need a device in the window. Such a program reads, writes past the page cache, or makes the device flush
/// its cache more often, or with more bytes, than the timer of a journal on it does. True if the counters of the device do not show this.
pub fn is_needed(derived: &Derived<'_>, device: &Device<'_>) -> bool {
    let intervals = device.intervals();
    let Some((first, last)) = intervals.first().zip(intervals.last()) else { return true };
    let (from, until) = (load::start(first), last.end);
    // In a quiet time, the few blocks of a journal are all that is written.
    let load = load::of(derived, device, |_| true);
    // An error of counting is no write.
    let past_the_cache = (1.0 - load.writeback_share - PAST_THE_CACHE).max(0.0) * load.written_bytes;
    let of_timer = of_timer(device, from, until).unwrap_or(0.0);
    let is_of_tasks = |flushes: f64| flushes > of_timer || past_the_cache > flushes * OF_A_COMMIT;
    !shows_syncs(device) || is_used(derived, device, (from, until), OF_A_JOURNAL, is_of_tasks)
}

/// Whether the counters of a device show reads, more than `least` bytes written past the page cache, or flushes that are `of_tasks`, in
/// a stretch.
fn is_used(
    derived: &Derived<'_>,
    device: &Device<'_>,
    (from, until): (Nanos, Nanos),
    least: f64,
    of_tasks: impl Fn(f64) -> bool,
) -> bool {
    let intervals = device.intervals();
    let is_meant = |interval: &Interval| interval.end > from && interval.end <= until;
    let during = || intervals.iter().filter(|interval| is_meant(interval));
    let flushes: Option<f64> = during().map(|interval| interval.flushes).sum();
    let read_s: f64 = during().map(|interval| interval.reads * interval.read_await_s.unwrap_or(0.0)).sum();
    let load = load::of(derived, device, is_meant);
    let other_share = 1.0 - load.writeback_share;
    flushes.is_none_or(|flushes| flushes > 0.0 && of_tasks(flushes))
        || read_s >= FEW_READS_S
        || (other_share >= PAST_THE_CACHE && other_share * load.written_bytes >= least)
}

/// Most flushes in a stretch by the timers of the journals on a device. `None` if no filesystem with such a timer is known on it.
fn of_timer(device: &Device<'_>, from: Nanos, until: Nanos) -> Option<f64> {
    // A filesystem may have several mounts.
    let has_timer = |mount: &&&Mount| OF_JBD2.contains(&mount.fs_type.as_str());
    let mounts = device.mounts();
    let periods: BTreeMap<DevId, f64> = mounts.iter().filter(has_timer).map(|one| (one.dev, commit_s(one))).collect();
    let flushes: f64 = periods.values().map(|period| of_period(*period, from, until)).sum();
    (!periods.is_empty()).then_some(flushes)
}

/// Most flushes in a stretch of a journal that commits once in a period: each commit flushes before and after its last block.
fn of_period(period_s: f64, from: Nanos, until: Nanos) -> f64 {
    2.0 * (1.0 + Nanos(until.0.saturating_sub(from.0)).as_secs_f64() / period_s)
}

/// Period of the timer of a journal, seconds. The option `commit=0` means the default.
fn commit_s(mount: &Mount) -> f64 {
    let of = |option: &[u8]| str::from_utf8(option.strip_prefix(b"commit=")?).ok()?.parse::<f64>().ok();
    let set = mount.super_options.as_bytes().split(|&byte| byte == b',').find_map(of);
    set.filter(|seconds| *seconds > 0.0).unwrap_or(COMMIT_S)
}

/// Whether the journal of a device committed in a stretch for no task: its thread was seen to wait, the device flushed nothing
/// for a whole period of the timer before, and no program slept more in the stretch than outside it, as far as samples
/// tell.
fn is_journal_alone(derived: &Derived<'_>, device: &Device<'_>, from: Nanos, until: Nanos) -> bool {
    let window = derived.window;
    let is_meant = |at: Nanos| at > from && at <= until;
    let is_its = |id: &EntityId| match window.entities.get(id) {
        Some(Entity::Process { comm, kthread: true, .. }) => asleep::is_journal_on(derived, comm, device) == Some(true),
        _ => false,
    };
    let waited = window.asleep.iter().any(|(id, times)| times.iter().any(|at| is_meant(*at)) && is_its(id));
    let samples = window.host_series.len();
    let inside = window.host_series.iter().filter(|(at, _)| is_meant(at.monotonic)).count();
    waited
        && was_without_flushes(device, from)
        && samples.saturating_sub(inside) >= inside
        && !asleep::sleeps_more(derived, is_meant)
}

/// Whether a device flushed nothing for a period of the journal's timer before a moment: programs that sync as a habit flush it.
fn was_without_flushes(device: &Device<'_>, until: Nanos) -> bool {
    let since = Nanos(until.0.saturating_sub((COMMIT_S * 1e9) as u64));
    let intervals = device.intervals();
    let is_whole = intervals.first().is_some_and(|first| load::start(first) <= since);
    let before = intervals.iter().filter(|interval| interval.end > since && interval.end <= until);
    is_whole && before.into_iter().all(|interval| interval.flushes == Some(0.0))
}

/// Whether tasks can have waited for writeback while they reclaimed memory: the machine was short of memory, or cgroups of
/// version 1 may be short of theirs.
fn reclaims(derived: &Derived<'_>) -> bool {
    let window = derived.window;
    let mode = window.facts.as_ref().map(|facts| facts.cgroups.mode).unwrap_or_default();
    let is_short = window.host.growth.pgscan_direct.is_none_or(|pages| pages.0 > 0);
    is_short || (matches!(mode, CgroupMode::V1 | CgroupMode::Hybrid) && !window.cgroups.is_empty())
}

/// Whether each sync of a file on a device makes its disks flush their caches, and the kernel counts these flushes.
fn shows_syncs(device: &Device<'_>) -> bool {
    let flushes = |disk: &Device<'_>| {
        let has_flushed = disk.span.growth.flushes.is_some_and(|flushes| flushes.0 > 0);
        let has_cache = disk.facts.and_then(|facts| facts.write_back_cache) == Some(true);
        has_flushed || (has_cache && disk.span.growth.flushes.is_some())
    };
    let mounts = device.mounts();
    let is_without = |mount: &&Mount| WITHOUT_FLUSH.iter().any(|option| mount.has_option(option));
    device.bottoms().iter().all(flushes) && !mounts.iter().any(is_without)
}

/// Whether a trace has a long wait for stable storage on a device in a stretch.
fn was_seen(derived: &Derived<'_>, device: &Device<'_>, from: Nanos, to: Nanos) -> bool {
    let window = derived.window;
    let is_here = |dev: DevId| window.lookup().whole(window, dev) == device.dev;
    window.events.iter().any(|event| match &event.what {
        What::SlowSync(wait) => {
            let since = Nanos(event.at.0.saturating_sub(wait.lasted.0));
            since < to && event.at > from && wait.device.is_none_or(is_here)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::burst;
    use crate::diagnose::device::drains;
    use floodline_record::units::{Bytes, Count, Pages};
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    /// A copy to a stick: 160 MiB dirty from second 4 on, written from second 16 to 26, while the journal of the stick waits to
    /// commit and flushes at the end. A shop sleeps in every third sample, all the time.
    fn copied() -> Fixture {
        let busy = |t: f64| (t - 16.0).clamp(0.0, 10.0);
        let asleep = |is: bool| Some(Count(u64::from(if is { b'D' } else { b'S' })));
        Fixture::healthy()
            .every(0.5)
            .seconds(60)
            .host(move |t, row| {
                row.nr_dirty = Some(if t < 4.0 { Pages(0) } else { mib_pages(160.0 - 16.0 * busy(t)) });
                row.psi_io_some = Some(secs(900.0 + busy(t)));
                row.pgscan_direct = Some(Pages(0));
                row.nr_written = Some(mib_pages(16.0 * busy(t)));
            })
            .disk("sdb", move |t, row| {
                row.written = Some(Bytes(mib(16.0 * busy(t))));
                row.writes = Some(Count((4.0 * busy(t)) as u64));
                row.write_time = Some(secs(8.0 * busy(t)));
                row.io_time = Some(secs(busy(t)));
                row.weighted_io_time = Some(secs(30.0 * busy(t)));
                row.flushes = Some(Count(if t < 26.0 { 0 } else { 2 }));
            })
            .process("jbd2/sdb1-8", 90, "/", move |t, row| row.state = asleep(busy(t) > 0.0 && t < 26.0))
            .process("shop", 91, "/", move |t, row| row.state = asleep(((2.0 * t) as u64).is_multiple_of(3)))
    }

    fn is_attended(fixture: &Fixture) -> Option<bool> {
        let window = fixture.window();
        let derived = Derived::of(&window);
        let devices = drains(&window);
        let burst = devices.iter().find_map(|device| burst::longest(&derived, device))?;
        Some(burst.is_attended)
    }

    #[test]
    fn a_journal_that_commits_by_its_timer_is_no_task() {
        assert_eq!(is_attended(&copied()), Some(false));
    }

    #[test]
    fn a_program_that_sleeps_more_meanwhile_may_wait() {
        let waits = copied().process("cp", 92, "/", |t, row| {
            row.state = Some(Count(u64::from(if (16.0..26.0).contains(&t) { b'D' } else { b'S' })));
        });
        assert_eq!(is_attended(&waits), Some(true));
        // The state is that of the first thread: another one shows in the pressure of its cgroup.
        let thread =
            copied().cgroup("/system.slice/db", |t, row| row.io_some = Some(secs((t - 16.0).clamp(0.0, 10.0))));
        assert_eq!(is_attended(&thread), Some(true));
    }

    #[test]
    fn flushes_before_or_too_many_are_those_of_programs() {
        let before = copied().disk("sdb", |t, row| {
            row.flushes = Some(Count(if t < 14.0 {
                0
            } else if t < 26.0 {
                2
            } else {
                4
            }))
        });
        assert_eq!(is_attended(&before), Some(true));
        let many = copied().disk("sdb", |t, row| row.flushes = Some(Count((8.0 * (t - 16.0).clamp(0.0, 10.0)) as u64)));
        assert_eq!(is_attended(&many), Some(true));
        let without = copied().process("jbd2/sdb1-8", 90, "/", |_, row| row.state = Some(Count(u64::from(b'S'))));
        assert_eq!(is_attended(&without), Some(true), "no journal was seen to wait");
    }
}
