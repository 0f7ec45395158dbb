// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples that were due and not taken, and clocks that jump or run backwards. A recorder that stalls together with its
//! host misses the stall: only the kernel's counters of that time show it.

use crate::record::{Event, Record, What};
use crate::sample::{HostRow, Sample, SampleTime};
use crate::units::Nanos;
use crate::window::step;

/// Difference between wall clock and monotonic clock between two samples above which the wall clock counts as set,
/// nanoseconds.
const JUMP: u64 = 500_000_000;

/// Number of holes that are kept: the longest.
const KEPT: usize = 64;

/// A stretch without the samples that were due in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The sample before it.
    pub from: SampleTime,
    /// The sample after it.
    pub to: SampleTime,
    /// Samples that were due and not taken.
    pub missing: u64,
    /// Growth of `some` of `/proc/pressure/io` in it.
    pub io_some: Option<Nanos>,
    /// Growth of `some` of `/proc/pressure/memory` in it.
    pub memory_some: Option<Nanos>,
}

impl Hole {
    /// Returns its length.
    pub fn length(&self) -> Nanos {
        Nanos(self.to.monotonic.0.saturating_sub(self.from.monotonic.0))
    }
}

/// Missing samples and clock errors of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holes {
    /// Samples that were taken.
    pub taken: u64,
    /// Samples that were due and not taken.
    pub missing: u64,
    /// The longest holes, in order of time.
    pub longest: Vec<Hole>,
    /// Samples whose monotonic time is not later than that of the previous sample.
    pub backwards: u64,
    /// How often the wall clock was set.
    pub jumps: u64,
    /// The sample after the largest of these jumps, and the nanoseconds by which the wall clock went ahead of the
    /// monotonic clock.
    pub largest_jump: Option<(SampleTime, i64)>,
    /// Samples missing since the last one.
    open: u64,
    last: Option<(SampleTime, Totals)>,
}

/// The totals of pressure stall information in a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    io: Option<Nanos>,
    memory: Option<Nanos>,
}

impl Totals {
    fn of(row: &HostRow) -> Totals {
        Totals { io: row.psi_io_some, memory: row.psi_memory_some }
    }
}

impl Holes {
    /// Takes the next record.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Event(Event { what: What::Missed { samples }, .. }) => {
                self.open = self.open.saturating_add(*samples);
                self.missing = self.missing.saturating_add(*samples);
            }
            Record::Sample(sample) => self.sample(sample),
            _ => {}
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let (time, totals) = (sample.time, Totals::of(&sample.host));
        self.taken += 1;
        let missing = std::mem::take(&mut self.open);
        let Some((before, read)) = self.last.replace((time, totals)) else { return };
        if time.monotonic <= before.monotonic {
            self.backwards += 1;
        } else {
            self.clocks(before, time);
        }
        if missing > 0 {
            let grown = |before: Option<Nanos>, now: Option<Nanos>| Some(Nanos(step(before?.0, now?.0)));
            self.keep(Hole {
                from: before,
                to: time,
                missing,
                io_some: grown(read.io, totals.io),
                memory_some: grown(read.memory, totals.memory),
            });
        }
    }

    fn clocks(&mut self, before: SampleTime, now: SampleTime) {
        let passed = |before: Nanos, now: Nanos| i128::from(now.0) - i128::from(before.0);
        let ahead = passed(before.wall, now.wall) - passed(before.monotonic, now.monotonic);
        if ahead.unsigned_abs() <= u128::from(JUMP) {
            return;
        }
        self.jumps += 1;
        let ahead = i64::try_from(ahead).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX });
        if self.largest_jump.is_none_or(|(_, largest)| largest.unsigned_abs() < ahead.unsigned_abs()) {
            self.largest_jump = Some((now, ahead));
        }
    }

    fn keep(&mut self, hole: Hole) {
        self.longest.push(hole);
        if self.longest.len() > KEPT {
            let shortest = (0..).zip(&self.longest).min_by_key(|(_, hole)| hole.length()).map_or(0, |(at, _)| at);
            self.longest.remove(shortest);
        }
    }

    /// Returns the longest hole.
    pub fn hole(&self) -> Option<&Hole> {
        self.longest.iter().max_by_key(|hole| hole.length())
    }

    /// Returns the number of samples that were due.
    pub fn due(&self) -> u64 {
        self.taken.saturating_add(self.missing)
    }

    /// Returns whether no sample is missing and both clocks ran evenly.
    pub fn is_whole(&self) -> bool {
        self.missing == 0 && self.backwards == 0 && self.jumps == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn sample(monotonic_ms: u64, wall_ms: u64, io_ms: u64) -> Record {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        let host = HostRow { psi_io_some: Some(ms(io_ms)), ..HostRow::default() };
        let time = SampleTime { monotonic: ms(monotonic_ms), wall: ms(wall_ms) };
        Record::Sample(Box::new(Sample { time, host, ..Sample::default() }))
    }

    fn missed(samples: u64) -> Record {
        Record::Event(Event { at: Nanos(0), what: What::Missed { samples } })
    }

    fn of(records: &[Record]) -> Holes {
        let mut holes = Holes::default();
        records.iter().for_each(|record| holes.record(record));
        holes
    }

    #[test]
    fn a_hole_lies_between_two_samples_and_has_what_the_kernel_counted_in_it() {
        let holes = of(&[sample(0, 0, 5), sample(1000, 1000, 5), missed(2), sample(4000, 4000, 2405), missed(1)]);
        assert_eq!((holes.taken, holes.missing, holes.due()), (3, 3, 6));
        let hole = holes.hole().expect("a hole");
        assert_eq!((hole.length(), hole.missing, hole.io_some), (Nanos(3 * SECOND), 2, Some(Nanos(2_400_000_000))));
        assert_eq!(hole.memory_some, None);
        assert!(!holes.is_whole());
        assert!(of(&[sample(0, 0, 0), sample(1000, 1100, 0)]).is_whole());
    }

    #[test]
    fn clocks_that_do_not_run_straight_are_counted() {
        let holes = of(&[sample(0, 9000, 0), sample(1000, 10_000, 0), sample(1000, 10_000, 0), sample(500, 9500, 0)]);
        assert_eq!((holes.backwards, holes.jumps), (2, 0));
        let holes = of(&[sample(0, 9000, 0), sample(1000, 12_000, 0), sample(2000, 3000, 0)]);
        assert_eq!((holes.backwards, holes.jumps), (0, 2));
        assert_eq!(holes.largest_jump.map(|(at, by)| (at.monotonic, by)), Some((Nanos(2 * SECOND), -10_000_000_000)));
    }

    #[test]
    fn of_many_holes_the_longest_are_kept() {
        let mut records = vec![sample(0, 0, 0)];
        let mut at = 0;
        for length in 1..=200 {
            at += length;
            records.extend([missed(1), sample(at, at, 0)]);
        }
        let holes = of(&records);
        assert_eq!((holes.longest.len(), holes.missing), (KEPT, 200));
        assert_eq!(holes.hole().map(Hole::length), Some(Nanos(200_000_000)));
        assert!(holes.longest.is_sorted_by_key(|hole| hole.from.monotonic));
    }
}
