// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests per second that a device completes while small ones keep it full. Volumes and limits of hypervisors count reads and
//! writes together or each for itself: where a recording has both while the device is full, only their sum is measured.

use super::devices::{LARGE, is_exceeded};
use crate::provenance::Notes;
use floodline_analysis::diagnose::device::{Basis, Device as Seen, Interval, SMALL_WRITE};

/// Part of the requests in full intervals from which reads count, and from which hardly anything but reads is there.
const SOME_READS: f64 = 0.1;
const ONLY_READS: f64 = 0.9;
/// Fewest full intervals with small reads that show a ceiling.
const FULL_MIN: usize = 4;

/// Requests that a ceiling counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Writes. Reads have a ceiling of their own, which no interval shows.
    Each,
    /// Reads and writes together.
    Together,
    /// Reads.
    Reads,
}

impl Kind {
    pub(super) fn note(self, key: &str, notes: &mut Notes) {
        match self {
            Kind::Each => {
                notes.measured(
                    format!("{key}.write_iops"),
                    "requests per second while it was saturated by small writes",
                );
                notes.assumed(format!("{key}.read_iops"), "as many as writes");
            }
            Kind::Together => notes.derived(
                format!("{key}.iops"),
                "reads and writes per second while it was saturated by small requests of both",
            ),
            Kind::Reads => {
                notes.measured(format!("{key}.read_iops"), "requests per second while it was saturated by small reads")
            }
        }
    }
}

/// A ceiling of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Requests {
    pub(super) per_second: f64,
    pub(super) kind: Kind,
}

/// The ceiling of requests of a device. `None` where small requests never kept it full.
pub(super) fn requests_of(seen: &Seen<'_>, intervals: &[Interval], has_bandwidth: bool) -> Option<Requests> {
    let measured = seen.small_write_iops().filter(|speed| speed.basis == Basis::Saturated).map(|speed| speed.value);
    let of_writes = measured
        .filter(|_| !is_full_of_reads(intervals))
        .filter(|ceiling| !is_exceeded(intervals, *ceiling, |one| one.writes / one.seconds));
    match of_writes {
        Some(per_second) => {
            let kind = if reads_of(intervals, is_small_full) >= SOME_READS { Kind::Together } else { Kind::Each };
            Some(Requests { per_second, kind })
        }
        None if !has_bandwidth => of_reads(intervals),
        None => None,
    }
}

/// Mean size of the requests of an interval, bytes.
fn mean(one: &Interval) -> Option<f64> {
    let requests = one.reads + one.writes;
    (requests > 0.0).then(|| (one.read_bytes + one.written_bytes) / requests)
}

fn is_small_full(one: &Interval) -> bool {
    one.is_saturated() && mean(one).is_some_and(|mean| mean <= SMALL_WRITE)
}

/// Part of the requests of some intervals that are reads.
fn reads_of(intervals: &[Interval], is_one: fn(&Interval) -> bool) -> f64 {
    let sum = |of: fn(&Interval) -> f64| intervals.iter().filter(|one| is_one(one)).map(of).sum::<f64>();
    sum(|one| one.reads) / sum(|one| one.reads + one.writes).max(1.0)
}

/// The ceiling of a device that small reads kept full, with few writes beside them.
fn of_reads(intervals: &[Interval]) -> Option<Requests> {
    let full: Vec<&Interval> = intervals.iter().filter(|one| is_small_full(one)).collect();
    let share = reads_of(intervals, is_small_full);
    let requests: f64 = full.iter().map(|one| one.reads + one.writes).sum();
    let per_second = requests / full.iter().map(|one| one.seconds).sum::<f64>().max(1e-3);
    let kind = if share >= ONLY_READS { Kind::Reads } else { Kind::Together };
    let is_it = full.len() >= FULL_MIN
        && share >= SOME_READS
        && !is_exceeded(intervals, per_second, |one| (one.reads + one.writes) / one.seconds);
    is_it.then_some(Requests { per_second, kind })
}

/// Whether large reads saturated a device.
pub(super) fn is_read(interval: &&Interval) -> bool {
    interval.is_saturated()
        && interval.reads > 0.0
        && interval.read_bytes / interval.reads >= LARGE
        && interval.read_bytes > 4.0 * interval.written_bytes
}

/// Whether a device that was saturated with small writes was so mostly by the large reads beside them. The number of its writes is then no
/// ceiling.
fn is_full_of_reads(intervals: &[Interval]) -> bool {
    let is_small = |one: &&Interval| one.is_saturated() && one.mean_write().is_some_and(|mean| mean < LARGE);
    let small = || intervals.iter().filter(is_small);
    2 * small().filter(is_read).count() > small().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provenance::Origin;
    use floodline_record::units::Nanos;

    /// A full second of `reads` and `writes` of 16 KiB and 4 KiB.
    fn second(reads: f64, writes: f64) -> Interval {
        Interval {
            end: Nanos(1_000_000_000),
            seconds: 1.0,
            written_bytes: writes * 4096.0,
            writes,
            read_bytes: reads * 16_384.0,
            reads,
            write_await_s: None,
            read_await_s: None,
            utilisation: Some(1.0),
            queue: Some(9.0),
            flushes: None,
        }
    }

    #[test]
    fn a_ceiling_of_reads_and_writes_together_is_derived_from_both() {
        let origins = |kind: Kind| {
            let mut notes = Notes::default();
            kind.note("machine.devices.sda", &mut notes);
            let told = notes.0.into_iter().map(|note| (note.key.rsplit('.').next().unwrap().to_owned(), note.origin));
            told.collect::<Vec<_>>()
        };
        assert_eq!(origins(Kind::Together), [("iops".to_owned(), Origin::Derived)]);
        assert_eq!(origins(Kind::Reads), [("read_iops".to_owned(), Origin::Measured)]);
        let each = [("write_iops".to_owned(), Origin::Measured), ("read_iops".to_owned(), Origin::Assumed)];
        assert_eq!(origins(Kind::Each), each);
    }

    #[test]
    fn small_reads_that_keep_a_device_full_tell_its_ceiling() {
        let told = |intervals: &[Interval]| of_reads(intervals).map(|it| (it.per_second, it.kind));
        assert_eq!(told(&[second(90.0, 0.0); 8]), Some((90.0, Kind::Reads)));
        assert_eq!(told(&[second(70.0, 20.0); 8]), Some((90.0, Kind::Together)));
        assert_eq!(told(&[second(0.0, 90.0); 8]), None, "writes alone have a ceiling of their own");
        assert_eq!(told(&[second(90.0, 0.0); 3]), None, "too few");
        let roomy = Interval { utilisation: Some(0.5), ..second(90.0, 0.0) };
        assert_eq!(told(&[roomy; 8]), None, "never full");
        let large = Interval { read_bytes: 90e6, ..second(90.0, 0.0) };
        assert_eq!(told(&[large; 8]), None, "large reads");
    }

    #[test]
    fn writes_beside_reads_that_fill_a_device_tell_no_ceiling() {
        let with = |reads: f64| Interval { reads, read_bytes: reads * 262_144.0, ..second(0.0, 10.0) };
        let large = Interval { written_bytes: 24e6, ..second(0.0, 10.0) };
        assert!(is_full_of_reads(&[with(90.0), with(80.0), with(0.0)]));
        assert!(!is_full_of_reads(&[with(90.0), with(0.0), with(0.0)]));
        assert!(!is_full_of_reads(&[large; 3]), "large writes");
        assert!(!is_full_of_reads(&[]));
    }
}
