// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times in which a disk has requests and completes hardly any of them, and then goes on as before: its host or its storage network
//! was busy, or it retried. The program that writes most is then not the cause of the waits.

use super::{Device, Interval};
use floodline_record::units::Nanos;

/// Part of the usual rates below which a disk completes hardly anything.
const HARDLY: f64 = 0.1;
/// Part of the time in which it has requests, all the same.
const BUSY: f64 = 0.9;
/// Part of a wait that whole intervals between samples must cover, to tell of it.
const MOST: f64 = 0.5;
/// Length before and after a wait in which the usual rates are looked for, in lengths of the wait. A cache that was full or
/// a credit that was spent does not come back that soon.
const BESIDE: f64 = 2.0;

/// Times at which a disk stood still.
pub struct Standstills {
    intervals: Vec<Interval>,
}

impl Device<'_> {
    /// Its intervals, to look for times at which it stood still.
    pub fn standstills(&self) -> Standstills {
        Standstills { intervals: self.intervals() }
    }
}

impl Standstills {
    /// Whether the disk stood still between two moments: it had requests all the time, and completed hardly any, in number and in
    /// bytes, of what it completed just before and just after. False where too few samples lie between the moments.
    pub fn hold(&self, from: Nanos, to: Nanos) -> bool {
        let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
        let within = |since: f64, until: f64| -> Vec<&Interval> {
            let is_within = |interval: &&Interval| {
                let end = interval.end.as_secs_f64();
                end <= until + 1e-9 && end - interval.seconds >= since - 1e-9
            };
            self.intervals.iter().filter(is_within).collect()
        };
        let seconds = |of: &[&Interval]| of.iter().map(|interval| interval.seconds).sum::<f64>();
        let rate = |of: &[&Interval], amount: fn(&Interval) -> f64| {
            (seconds(of) > 0.0).then(|| of.iter().map(|interval| amount(interval)).sum::<f64>() / seconds(of))
        };
        let (inside, beside) = (within(from, to), BESIDE * (to - from));
        // The intervals in which the wait began and ended are partly of it.
        let step = inside.first().map_or(0.0, |interval| interval.seconds);
        let (before, after) = (within(from - beside - step, from), within(to + step, to + beside + 2.0 * step));
        let is_hardly = |amount: fn(&Interval) -> f64| {
            let usual = rate(&before, amount).zip(rate(&after, amount)).map(|(before, after)| before.min(after));
            rate(&inside, amount).zip(usual).is_some_and(|(inside, usual)| inside < HARDLY * usual)
        };
        let is_busy = |interval: &&Interval| interval.utilisation.is_some_and(|part| part >= BUSY);
        seconds(&inside) >= MOST * (to - from)
            && inside.iter().all(is_busy)
            && is_hardly(|interval| interval.writes + interval.reads)
            && is_hardly(|interval| interval.written_bytes + interval.read_bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnose::device::drains;
    use floodline_record::units::{Bytes, Count, Nanos};
    use floodline_testkit::{Fixture, mib, secs};

    /// Whether a disk stands still that is busy from second 10 until `end`, completes a part of its usual writes in that time, and another
    /// part later.
    fn stands_still(part: f64, end: f64, later: f64) -> bool {
        let window = Fixture::healthy()
            .disk("sda", move |t, row| {
                let slow = (t - 10.0).clamp(0.0, end - 10.0);
                let done = t.min(10.0) + part * slow + later * (t - end).max(0.0);
                row.writes = Some(Count((1000.0 * done) as u64));
                row.written = Some(Bytes(mib(10.0 * done)));
                row.io_time = Some(secs(0.1 * t + 0.9 * slow));
                row.weighted_io_time = Some(secs(0.1 * t + 1.9 * slow));
            })
            .seconds(30)
            .window();
        let start = window.disks.values().next().unwrap().first_at.0;
        let at = |second: f64| Nanos(start + secs(second).0);
        drains(&window)[0].standstills().hold(at(10.0), at(end))
    }

    #[test]
    fn a_disk_that_completes_hardly_anything_stands_still() {
        assert!(stands_still(0.02, 13.0, 1.0));
        assert!(!stands_still(0.5, 13.0, 1.0));
    }

    #[test]
    fn a_disk_that_stays_slow_was_only_fast_for_a_while() {
        // A cache that is full: it goes on at its own speed.
        assert!(!stands_still(0.05, 14.0, 0.05));
        // Half of a second tells nothing of one sample a second.
        assert!(!stands_still(0.02, 10.5, 1.0));
    }
}
