// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intervals of a layer above disks (dm, md), with the bytes and times of the disks below. Up to 6.3 the counters of a
//! layer that is based on bios count a request when it is submitted and its time when it completes: a burst then shows
//! all of its bytes in its first moment. Some layers count no time at all.

use super::{Device, Interval};
use floodline_record::units::Nanos;
use std::collections::BTreeMap;

/// Part by which the bytes of the disks may differ from those of the layer: metadata of the layer, and what is under
/// way at both ends of the window.
pub(super) const TOLERANCE: f64 = 0.05;

/// What the disks completed in one interval.
#[derive(Default)]
struct Completed {
    written_bytes: f64,
    writes: f64,
    read_bytes: f64,
    reads: f64,
    write_await_s: Option<f64>,
    read_await_s: Option<f64>,
    utilisation: Option<f64>,
    queue: f64,
    flushes: Option<f64>,
}

/// Returns the intervals of a layer with what its disks completed. Each byte is on `copies` of them.
pub(super) fn as_disks_complete(own: Vec<Interval>, disks: &[Device<'_>], copies: f64) -> Vec<Interval> {
    let mut by_end: BTreeMap<Nanos, Completed> = BTreeMap::new();
    for interval in disks.iter().flat_map(Device::own_intervals) {
        let sum = by_end.entry(interval.end).or_default();
        sum.written_bytes += interval.written_bytes / copies;
        sum.writes += interval.writes / copies;
        sum.read_bytes += interval.read_bytes;
        sum.reads += interval.reads;
        sum.write_await_s = larger(sum.write_await_s, interval.write_await_s);
        sum.read_await_s = larger(sum.read_await_s, interval.read_await_s);
        sum.utilisation = larger(sum.utilisation, interval.utilisation);
        sum.queue += interval.queue.unwrap_or(0.0);
        sum.flushes = interval.flushes.map(|flushes| flushes + sum.flushes.unwrap_or(0.0)).or(sum.flushes);
    }
    let with = |interval: Interval| match by_end.get(&interval.end) {
        Some(sum) => Interval {
            written_bytes: sum.written_bytes,
            writes: sum.writes,
            read_bytes: sum.read_bytes,
            reads: sum.reads,
            write_await_s: sum.write_await_s,
            read_await_s: sum.read_await_s,
            utilisation: larger(interval.utilisation, sum.utilisation),
            queue: larger(interval.queue, Some(sum.queue)),
            flushes: larger(interval.flushes, sum.flushes),
            ..interval
        },
        None => interval,
    };
    own.into_iter().map(with).collect()
}

fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::derived::Derived;
    use crate::diagnose::{burst, device};
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::{Fixture, dev_of, mib, mib_pages, secs};

    /// 160 MiB that a disk writes in four seconds from second 33 on, below a layer that counts them when they are submitted.
    fn submitted_at_once(below: f64) -> Fixture {
        let busy = |t: f64| (t - 33.0).clamp(0.0, 4.0);
        Fixture::healthy()
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(if t < 3.0 { 0.0 } else { 160.0 - 40.0 * busy(t) }));
                row.psi_io_some = Some(secs(900.0 + 0.9 * busy(t)));
            })
            .disk("sda", move |t, row| {
                row.written = Some(Bytes(mib(below * 40.0 * busy(t))));
                row.writes = Some(Count((80.0 * busy(t)) as u64));
                row.write_time = Some(secs(80.0 * busy(t)));
                row.io_time = Some(secs(busy(t)));
                row.weighted_io_time = Some(secs(30.0 * busy(t)));
            })
            .disk("dm-0", move |t, row| {
                let is_there = t > 33.0;
                row.written = Some(Bytes(if is_there { mib(160.0) } else { 0 }));
                row.writes = Some(Count(if is_there { 320 } else { 0 }));
                row.write_time = Some(secs(if t >= 37.0 { 640.0 } else { 0.0 }));
                row.io_time = Some(secs(busy(t)));
                row.weighted_io_time = Some(secs(150.0 * busy(t)));
            })
            .facts(|facts| {
                for device in &mut facts.devices {
                    if device.name.to_string() == "dm-0" {
                        device.slaves = vec![dev_of("sda")];
                    }
                }
            })
            .seconds(45)
    }

    #[test]
    fn a_burst_is_seen_where_the_disk_below_completes_it() {
        let length = |below: f64| {
            let window = submitted_at_once(below).window();
            let drains = device::drains(&window);
            assert_eq!(drains[0].name.to_string(), "dm-0");
            let burst = burst::longest(&Derived::of(&window), &drains[0]);
            burst.map(|burst| (burst.seconds.round(), burst.await_max_s.round()))
        };
        assert_eq!(length(1.0), Some((4.0, 1.0)));
        // Another layer uses the disk as well: this layer keeps its own counters.
        assert_eq!(length(1.5), Some((4.0, 0.0)));
    }
}
