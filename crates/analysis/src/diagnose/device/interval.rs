// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes of a device between two samples, from two rows of `/proc/diskstats`, and whether the device was
//! saturated in that time. Counters that went backwards make no interval. Does not cover speeds.

use floodline_record::sample::DiskRow;
use floodline_record::units::{Nanos, Quantity};
use std::sync::Arc;

/// Share of an interval a device must be busy to count as saturated.
const SATURATED_UTILISATION: f64 = 0.9;
/// Mean requests in flight that make a busy device a saturated one. A device that serves a single synchronous writer is
/// always busy but can take more.
const SATURATED_QUEUE: f64 = 2.0;

/// Reads and writes of a device between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// End of it, on the monotonic clock.
    pub end: Nanos,
    /// Length, seconds.
    pub seconds: f64,
    /// Bytes written.
    pub written_bytes: f64,
    /// Writes completed.
    pub writes: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Reads completed.
    pub reads: f64,
    /// Mean time of a write, queueing included; `None` when none completed.
    pub write_await_s: Option<f64>,
    /// Mean time of a read, queueing included; `None` when none completed.
    pub read_await_s: Option<f64>,
    /// Share of the time with a request in flight, at most 1.
    pub utilisation: Option<f64>,
    /// Mean requests in flight.
    pub queue: Option<f64>,
    /// Flushes of the disk's cache completed; `None` where the kernel does not count them.
    pub flushes: Option<f64>,
}

impl Interval {
    /// Bytes written per second.
    pub fn write_rate(&self) -> f64 {
        self.written_bytes / self.seconds
    }

    /// Mean size of a write, bytes; `None` when none completed.
    pub fn mean_write(&self) -> Option<f64> {
        (self.writes > 0.0).then(|| self.written_bytes / self.writes)
    }

    /// Whether the device could not have taken more: it had a queue, or it completed none of its pending requests.
    pub fn is_saturated(&self) -> bool {
        let completed_none = self.writes + self.reads <= 0.0;
        self.utilisation.is_some_and(|utilisation| utilisation >= SATURATED_UTILISATION)
            && (completed_none || self.queue.is_none_or(|queue| queue >= SATURATED_QUEUE))
    }
}

/// A row of a device, and the time of reading.
pub(super) type Reading = (Nanos, Arc<DiskRow>);

/// Reads and writes between two readings; `None` where a counter is missing or went backwards.
pub(super) fn between((start, before): &Reading, (end, after): &Reading) -> Option<Interval> {
    let seconds = Nanos(end.0.checked_sub(start.0)?).as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let written_bytes = grown(before.written, after.written)?;
    let writes = grown(before.writes, after.writes)?;
    let reads = grown(before.reads, after.reads).unwrap_or(0.0);
    let waited = grown(before.write_time, after.write_time).filter(|_| writes > 0.0);
    let waited_to_read = grown(before.read_time, after.read_time).filter(|_| reads > 0.0);
    // Some kernels add to the times only when a request begins or ends. Requests that were in flight before an interval in
    // which none ended were in flight for all of it.
    let none_ended = [
        grown(before.writes, after.writes),
        grown(before.reads, after.reads),
        grown(before.discards, after.discards),
        grown(before.flushes, after.flushes),
    ];
    let held = before.in_flight.filter(|_| none_ended.iter().flatten().all(|ended| *ended <= 0.0));
    let held = held.map(|held| held.0 as f64).filter(|held| *held > 0.0);
    let busy = grown(before.io_time, after.io_time).map(|ns| (ns / 1e9 / seconds).min(1.0));
    let queue = grown(before.weighted_io_time, after.weighted_io_time).map(|ns| ns / 1e9 / seconds);
    Some(Interval {
        end: *end,
        seconds,
        written_bytes,
        writes,
        read_bytes: grown(before.read, after.read).unwrap_or(0.0),
        reads,
        write_await_s: waited.map(|ns| ns / 1e9 / writes),
        read_await_s: waited_to_read.map(|ns| ns / 1e9 / reads),
        utilisation: if held.is_some() { Some(1.0) } else { busy },
        queue: queue.map(|queue| queue.max(held.unwrap_or(0.0))),
        flushes: grown(before.flushes, after.flushes),
    })
}

/// Growth of a counter between two readings; `None` when one is missing or it was reset.
fn grown<Q: Quantity>(before: Option<Q>, after: Option<Q>) -> Option<f64> {
    after?.raw().checked_sub(before?.raw()).map(|step| step as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::device::{disks, drains};
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::{Fixture, secs};

    #[test]
    fn requests_in_flight_keep_a_disk_busy_while_none_ends() {
        let busy = |in_flight: u64, writes: u64| {
            let fixture = Fixture::healthy().seconds(1).disk("sda", move |t, row| {
                row.in_flight = Some(Count(in_flight));
                row.writes = Some(Count(if t > 0.0 { writes } else { 0 }));
                (row.reads, row.written) = (Some(Count(0)), Some(Bytes(0)));
                (row.io_time, row.weighted_io_time) = (Some(secs(1.0)), Some(secs(1.0)));
            });
            let window = fixture.window();
            let interval = disks(&window)[0].intervals()[0];
            (interval.utilisation, interval.queue)
        };
        assert_eq!(busy(8, 0), (Some(1.0), Some(8.0)));
        assert_eq!(busy(0, 0), (Some(0.0), Some(0.0)));
        assert_eq!(busy(8, 1), (Some(0.0), Some(0.0)), "one may have ended at once");
    }

    /// Time in the queue is counted when a request completes: until then the queue looks empty.
    #[test]
    fn a_device_that_completes_nothing_is_saturated() {
        let interval = Interval {
            read_await_s: None,
            end: Nanos(0),
            seconds: 1.0,
            written_bytes: 0.0,
            writes: 0.0,
            read_bytes: 0.0,
            reads: 0.0,
            write_await_s: None,
            utilisation: Some(1.0),
            queue: Some(0.0),
            flushes: None,
        };
        assert!(interval.is_saturated());
        assert!(!Interval { writes: 3.0, ..interval }.is_saturated());
        assert!(!Interval { utilisation: Some(0.0), ..interval }.is_saturated());
    }

    #[test]
    fn requests_that_are_pending_at_the_end_of_the_window_keep_a_disk_busy() {
        // From second 6 on nothing ends, and the kernel adds no time.
        let fixture = Fixture::healthy().disk("sda", |t, row| {
            let work = t.min(6.0);
            row.in_flight = Some(Count(if t >= 6.0 { 4 } else { 0 }));
            (row.reads, row.writes) = (Some(Count(0)), Some(Count((10.0 * work) as u64)));
            (row.discards, row.flushes) = (Some(Count(0)), Some(Count(0)));
            (row.io_time, row.written) = (Some(secs(0.5 * work)), Some(Bytes((4096.0 * work) as u64)));
        });
        let window = fixture.window();
        let share = disks(&window)[0].utilisation().unwrap();
        assert_eq!(
            (share * 100.0).round(),
            (100.0 * (6.0 * 0.5 + (window.seconds() - 6.0)) / window.seconds()).round()
        );
    }

    #[test]
    fn a_counter_that_goes_backwards_makes_no_interval() {
        let window = Fixture::healthy().disk("sda", |t, row| {
            row.written = Some(Bytes(if t < 5.0 { 1 << 40 } else { 0 }));
        });
        assert_eq!(drains(&window.window())[0].intervals().len(), 9);
    }
}
