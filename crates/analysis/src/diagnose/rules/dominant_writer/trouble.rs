// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a disk went through: how long it was full, of small writes above all, and how long a write took.

use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Interval};
use crate::diagnose::load;

/// Share of the window with a saturated disk from which the writer is faster than the disk.
const OUTRUNS_SHARE: f64 = 0.8;

/// Part of the written bytes that small writes must be for them to be those of a dominant writer: it makes more than half of
/// all bytes.
const OF_SMALL: f64 = 0.25;

/// What the most troubled disk went through.
pub(super) struct Trouble<'a> {
    pub(super) device: Device<'a>,
    pub(super) utilisation: f64,
    pub(super) saturated_s: f64,
    /// Of small writes, where much of what was written is small.
    pub(super) small_saturated_s: f64,
    pub(super) await_max_s: f64,
    /// Mean requests in flight while it was busy.
    pub(super) queue: f64,
}

impl Trouble<'_> {
    /// Which of two disks suffers more.
    pub(super) fn worse(&self, other: &Trouble<'_>) -> std::cmp::Ordering {
        let small = self.small_saturated_s.total_cmp(&other.small_saturated_s);
        small.then(self.utilisation.total_cmp(&other.utilisation))
    }
}

/// What a disk went through; `None` where its time was not read.
pub(super) fn trouble<'a>(device: &Device<'a>) -> Option<Trouble<'a>> {
    let intervals = device.intervals();
    let total = |wanted: &dyn Fn(&&Interval) -> bool| -> f64 {
        intervals.iter().filter(|interval| wanted(interval)).map(|interval| interval.seconds).sum()
    };
    let writes_mostly = |interval: &&Interval| interval.is_saturated() && interval.writes >= interval.reads;
    // Batches may be shorter than an interval: there, the time in which the disk had a queue of small writes counts.
    let small_of = |interval: &&Interval| {
        let is_of_writes = interval.writes >= interval.reads;
        let busy_s = interval.utilisation.unwrap_or(0.0) * interval.seconds;
        let is_queued = interval.queue.is_some_and(|queue| queue >= load::QUEUED);
        match is_of_writes && device.is_of_small(interval) {
            true if interval.is_saturated() => interval.seconds,
            true if is_queued => busy_s,
            _ => 0.0,
        }
    };
    let small = |interval: &&Interval| small_of(interval) > 0.0;
    let small_s: f64 = intervals.iter().map(|interval| small_of(&interval)).sum();
    // Beside a writer of large pieces, small writes are those of others, such as a journal.
    let written = |wanted: &dyn Fn(&&Interval) -> bool| -> f64 {
        intervals.iter().filter(|interval| wanted(interval)).map(|interval| interval.written_bytes).sum()
    };
    let is_mostly_small = written(&small) >= OF_SMALL * written(&|_| true);
    Some(Trouble {
        device: *device,
        utilisation: device.utilisation()?,
        saturated_s: total(&writes_mostly),
        small_saturated_s: if is_mostly_small { small_s } else { 0.0 },
        await_max_s: intervals.iter().filter_map(|interval| interval.write_await_s).fold(0.0, f64::max),
        queue: device.queue().unwrap_or(0.0),
    })
}

/// Whether the disk was full nearly all the time: it takes no more, whatever is set.
pub(super) fn outruns(derived: &Derived<'_>, trouble: &Trouble<'_>) -> bool {
    trouble.saturated_s >= OUTRUNS_SHARE * derived.seconds
}
