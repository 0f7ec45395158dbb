// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a disk went through: how long it was full, of small writes above all, and how long a write took.

use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Interval};
use crate::diagnose::load;

/// Share of the window with a saturated disk from which the writer is faster than the disk.
const OUTRUNS_SHARE: f64 = 0.8;

/// Part of the time in which the disk wrote that it must have been full of small writes for them to be those of a dominant
/// writer, which makes more than half of all bytes.
const OF_SMALL: f64 = 0.25;

/// What the most troubled disk went through.
pub(super) struct Trouble<'a> {
    pub(super) device: Device<'a>,
    pub(super) utilisation: f64,
    pub(super) saturated_s: f64,
    pub(super) small_saturated_s: f64,
    /// Time in which it had a queue of small writes.
    pub(super) small_busy_s: f64,
    /// Whether the disk wrote in such writes for much of the time.
    pub(super) is_mostly_small: bool,
    pub(super) await_max_s: f64,
    /// Mean requests in flight while it was busy.
    pub(super) queue: f64,
}

impl Trouble<'_> {
    /// Seconds in which the scattered pages of a dominant writer filled the disk or its queue; none where small writes are
    /// those of others.
    pub(super) fn scattered_s(&self) -> f64 {
        if self.is_mostly_small { self.small_saturated_s.max(self.small_busy_s) } else { 0.0 }
    }

    /// Which of two disks suffers more.
    pub(super) fn worse(&self, other: &Trouble<'_>) -> std::cmp::Ordering {
        let small = self.scattered_s().total_cmp(&other.scattered_s());
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
    let is_small = |interval: &&Interval| interval.writes >= interval.reads && device.is_of_small(interval);
    // Batches may be shorter than an interval: there, the time in which the disk had a queue counts.
    let is_queued = |interval: &&Interval| interval.queue.is_some_and(|queue| queue >= load::QUEUED);
    let small = |interval: &&Interval| is_small(interval) && (interval.is_saturated() || is_queued(interval));
    let busy = |interval: &Interval| interval.utilisation.unwrap_or(0.0) * interval.seconds;
    let busy_of = |wanted: &dyn Fn(&&Interval) -> bool| -> f64 { intervals.iter().filter(wanted).map(busy).sum() };
    let small_busy_s = busy_of(&small);
    // Beside a writer of large pieces, small writes are those of others, such as a journal. Time decides: a file that is made
    // in large pieces takes a moment, and its pages may be written one by one for minutes.
    let wrote = |interval: &&Interval| interval.writes >= interval.reads;
    Some(Trouble {
        device: *device,
        utilisation: device.utilisation()?,
        saturated_s: total(&writes_mostly),
        small_saturated_s: total(&|interval| interval.is_saturated() && is_small(interval)),
        small_busy_s,
        is_mostly_small: small_busy_s >= OF_SMALL * busy_of(&wrote),
        await_max_s: intervals.iter().filter_map(|interval| interval.write_await_s).fold(0.0, f64::max),
        queue: device.queue().unwrap_or(0.0),
    })
}

/// Whether the disk was full nearly all the time: it takes no more, whatever is set.
pub(super) fn outruns(derived: &Derived<'_>, trouble: &Trouble<'_>) -> bool {
    trouble.saturated_s >= OUTRUNS_SHARE * derived.seconds
}
