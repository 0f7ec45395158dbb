// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a task can have waited for a device in a stretch of the window. The kernel's pressure has no device and counts the
//! flusher too: on a machine with several disks it does not show which disk a task waited for. A task that waits for a
//! device reads from it, makes it flush its cache (fsync, a journal commit), writes past the page cache, or is paused
//! because much is dirty. A device that shows none of these was used by the flusher alone.

use super::derived::Derived;
use super::device::{Device, Interval};
use super::{load, strict};
use floodline_record::facts::{CgroupMode, Mount};
use floodline_record::id::DevId;
use floodline_record::record::What;
use floodline_record::units::Nanos;

/// Summed time of reads from which a task may have waited for one, seconds: the flusher reads a little, too.
const FEW_READS_S: f64 = 0.1;
/// Part of the written bytes from which writes that are not writeback are more than an error of counting.
const PAST_THE_CACHE: f64 = 0.05;
/// Intervals after a stretch that belong to it: a sync flushes the disk's cache after its data are written.
const AFTER: usize = 2;
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
    let is_meant = |interval: &Interval| interval.end > from && interval.end <= until;
    let during = || intervals.iter().filter(|interval| is_meant(interval));
    let flushes: Option<f64> = during().map(|interval| interval.flushes).sum();
    let read_s: f64 = during().map(|interval| interval.reads * interval.read_await_s.unwrap_or(0.0)).sum();
    let other_share = 1.0 - load::of(derived, device, is_meant).writeback_share;
    flushes != Some(0.0) || read_s >= FEW_READS_S || other_share >= PAST_THE_CACHE
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
