// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times in which a disk has requests and completes hardly any: it flushes its own cache, its host or its storage network is
//! busy, or it fails. Who writes most is then not the cause of the waits.

use super::{Device, Interval};
use floodline_record::units::Nanos;

/// Part of the usual rates below which a disk completes hardly anything.
const HARDLY: f64 = 0.25;
/// Part of the time in which it has requests, all the same.
const BUSY: f64 = 0.9;

impl Device<'_> {
    /// Whether it stands still between two moments: it has requests all the time, and completes much fewer and much less per
    /// second than in the rest of the window. False where no two samples lie between the moments.
    pub fn stands_still(&self, from: Nanos, to: Nanos) -> bool {
        let is_inside = |interval: &Interval| {
            interval.end <= to && interval.end.as_secs_f64() - interval.seconds >= from.as_secs_f64() - 1e-9
        };
        let (inside, outside): (Vec<Interval>, Vec<Interval>) = self.intervals().into_iter().partition(is_inside);
        let rate = |intervals: &[Interval], amount: fn(&Interval) -> f64| {
            let seconds: f64 = intervals.iter().map(|interval| interval.seconds).sum();
            (seconds > 0.0).then(|| intervals.iter().map(amount).sum::<f64>() / seconds)
        };
        let is_less = |amount: fn(&Interval) -> f64| {
            let rates = rate(&inside, amount).zip(rate(&outside, amount));
            rates.is_some_and(|(inside, outside)| inside < HARDLY * outside)
        };
        let is_busy = |interval: &Interval| interval.utilisation.is_some_and(|part| part >= BUSY);
        inside.iter().all(is_busy)
            && is_less(|interval| interval.writes + interval.reads)
            && is_less(|interval| interval.written_bytes + interval.read_bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::device::drains;
    use floodline_record::units::{Bytes, Count, Nanos};
    use floodline_testkit::{Fixture, mib, secs};

    /// A disk that is busy from second 3 to 6, and completes a part of its usual writes then.
    fn slower(part: f64) -> bool {
        let window = Fixture::healthy()
            .disk("sda", move |t, row| {
                let slow = (t - 3.0).clamp(0.0, 3.0);
                let done = t - slow * (1.0 - part);
                row.writes = Some(Count((100.0 * done) as u64));
                row.written = Some(Bytes(mib(done)));
                row.io_time = Some(secs(0.1 * t + 0.9 * slow));
                row.weighted_io_time = Some(secs(0.1 * t + 1.9 * slow));
            })
            .window();
        let start = window.disks.values().next().unwrap().first_at.0;
        let at = |second: f64| Nanos(start + secs(second).0);
        drains(&window)[0].stands_still(at(3.0), at(6.0))
    }

    #[test]
    fn a_disk_that_completes_hardly_anything_stands_still() {
        assert!(slower(0.05));
        assert!(!slower(0.5));
        assert!(!slower(3.0));
    }
}
