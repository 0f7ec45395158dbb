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
/// Fewest requests of a burst that wait for each other.
const WAITING_MIN: f64 = 4.0;
/// Fewest intervals with such bursts that show how fast a device completes requests.
const BURSTS_MIN: usize = 4;
/// Smallest part of the requests of such an interval that wait. In an interval with two bursts, only half of them seem to wait.
const MOST_WAIT: f64 = 0.6;
/// Largest relative distance from their median, for three quarters of these speeds.
const SPREAD: f64 = 0.2;
/// Smallest ratio of the largest quarter of these bursts to the smallest quarter, in the middle of each.
const SIZES: f64 = 1.5;
/// Highest speed that is taken from bursts, requests per second.
const SLOW_MAX: f64 = 500.0;
/// Largest part of a device's bytes per second that small requests move where their number is the limit.
const FEW_BYTES: f64 = 0.5;

/// Largest mean size of requests that show the seeks of a rotating disk, bytes: larger ones take longer than a seek.
const SEEKING: f64 = 524_288.0;
/// Busy time of a small request over that of one in full intervals, where both are mostly a seek. A queue lets the disk order its seeks.
const ALIKE: std::ops::RangeInclusive<f64> = 0.5..=2.5;
/// Bytes per second that any rotating disk moves, and the part of the time of a request that they take at most, where most of it is the seek.
const TURNING: f64 = 60e6;
const OF_BYTES: f64 = 0.5;

/// Requests that a ceiling counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Writes. Reads have a ceiling of their own, which no interval shows.
    Each,
    /// Writes, shown by bursts that end before the device is full for a whole interval.
    OfBursts,
    /// Reads and writes together.
    Together,
    /// Writes of a rotating disk, shown by requests of which small ones need as much time as larger ones.
    Seeks,
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
            Kind::OfBursts => {
                notes.derived(
                    format!("{key}.write_iops"),
                    "number of small writes that waited for each other, over the busy time",
                );
                notes.assumed(format!("{key}.read_iops"), "as many as writes");
            }
            Kind::Together => notes.derived(
                format!("{key}.iops"),
                "reads and writes per second while it was saturated by small requests of both",
            ),
            Kind::Seeks => {
                notes.derived(
                    format!("{key}.write_iops"),
                    "requests per second while it was saturated; small ones need as much time as larger ones",
                );
                notes.assumed(format!("{key}.read_iops"), "as many as writes");
                notes.measured(format!("{key}.seek"), "busy time of a small request while there were few");
            }
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
    /// Time of a seek, seconds, where seeks are what takes the time.
    pub(super) seek: Option<f64>,
}

/// The ceiling of requests of a device with this ceiling of bytes per second. `None` where small requests never kept it full, and never
/// waited for each other.
pub(super) fn requests_of(seen: &Seen<'_>, intervals: &[Interval], bandwidth: Option<f64>) -> Option<Requests> {
    let measured = seen.small_write_iops().filter(|speed| speed.basis == Basis::Saturated).map(|speed| speed.value);
    let of_writes = measured
        .filter(|_| !is_full_of_reads(intervals))
        .filter(|ceiling| !is_exceeded(intervals, *ceiling, |one| one.writes / one.seconds));
    match of_writes {
        Some(per_second) => {
            let kind = if reads_of(intervals, is_small_full) >= SOME_READS { Kind::Together } else { Kind::Each };
            Some(Requests { per_second, kind, seek: None })
        }
        None if bandwidth.is_none() => of_reads(intervals).or_else(|| of_bursts(seen, intervals, bandwidth)),
        None => of_seeks(seen, intervals).or_else(|| of_bursts(seen, intervals, bandwidth)),
    }
}

/// The ceiling of a rotating disk that requests of some size kept full, where small ones need as much time: most of it is the seek.
fn of_seeks(seen: &Seen<'_>, intervals: &[Interval]) -> Option<Requests> {
    let is_turning = seen.facts.and_then(|facts| facts.rotational).unwrap_or(false);
    seeks(intervals).filter(|_| is_turning)
}

/// Requests per busy second in full intervals, where those of intervals with small requests alone take as long.
fn seeks(intervals: &[Interval]) -> Option<Requests> {
    let each = |one: &Interval| Some(one.utilisation? * one.seconds / (one.reads + one.writes).max(1.0));
    let middle = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().filter(|_| times.len() >= FULL_MIN)
    };
    let is_small = |one: &&Interval| !one.is_saturated() && mean(one).is_some_and(|bytes| bytes <= SMALL_WRITE);
    let is_full = |one: &&Interval| one.is_saturated() && mean(one).is_some_and(|bytes| bytes <= SEEKING);
    let small = middle(intervals.iter().filter(is_small).filter_map(each).collect())?;
    let full = middle(intervals.iter().filter(is_full).filter_map(each).collect())?;
    let bytes = middle(intervals.iter().filter(is_full).filter_map(mean).collect())?;
    let is_it = full > 0.0 && ALIKE.contains(&(small / full)) && bytes / TURNING <= OF_BYTES * full;
    is_it.then(|| Requests { per_second: 1.0 / full, kind: Kind::Seeks, seek: Some(small) })
}

/// The ceiling of a device that bursts of small writes do not keep full for an interval. Rotating disks have seeks instead.
fn of_bursts(seen: &Seen<'_>, intervals: &[Interval], bandwidth: Option<f64>) -> Option<Requests> {
    let is_turning = seen.facts.and_then(|facts| facts.rotational).unwrap_or(false);
    let per_second = in_turn(intervals, bandwidth).filter(|_| !is_turning)?;
    Some(Requests { per_second, kind: Kind::OfBursts, seek: None })
}

/// Returns how many small writes per second a device completes one after the other. Where `n` of them wait at once, the last one waits for
/// the whole busy time. The waits of the others are spread evenly below that. All waits together are `(n + 1) / 2` busy times. Requests
/// that are served side by side may have the same sum, but more of them need no more time.
fn in_turn(intervals: &[Interval], bandwidth: Option<f64>) -> Option<f64> {
    let of_burst = |one: &Interval| {
        let busy = one.utilisation? * one.seconds;
        let waiting = 2.0 * one.queue? * one.seconds / busy - 1.0;
        let is_small = one.reads <= 0.0 && one.written_bytes <= SMALL_WRITE * one.writes;
        let is_burst = !one.is_saturated() && busy > 0.0 && waiting >= WAITING_MIN;
        let is_one = waiting <= one.writes && waiting >= MOST_WAIT * one.writes;
        let bytes = one.written_bytes / one.writes;
        (is_small && is_burst && is_one).then_some(ShortBurst { waiting, per_second: waiting / busy, bytes })
    };
    let mut bursts: Vec<ShortBurst> = intervals.iter().filter_map(of_burst).collect();
    bursts.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
    let ShortBurst { per_second, bytes, .. } =
        *bursts.get(bursts.len() / 2).filter(|_| bursts.len() >= BURSTS_MIN && take_longer(&bursts))?;
    let near = bursts.iter().filter(|one| (one.per_second / per_second - 1.0).abs() <= SPREAD).count();
    // The device takes at least what it took while it was full.
    let full = intervals.iter().filter(|one| one.is_saturated()).map(|one| one.writes / one.seconds);
    let fastest = full.fold(per_second, f64::max);
    let is_it = 4 * near >= 3 * bursts.len()
        && fastest <= (1.0 + SPREAD) * per_second
        && per_second <= SLOW_MAX
        && bandwidth.is_none_or(|bandwidth| per_second * bytes <= FEW_BYTES * bandwidth)
        && !is_exceeded(intervals, per_second, |one| one.writes / one.seconds);
    is_it.then_some(fastest)
}

/// A burst of small writes that wait for each other.
#[derive(Clone, Copy, Debug)]
struct ShortBurst {
    /// Number of writes that wait.
    waiting: f64,
    /// Writes that leave in a second.
    per_second: f64,
    /// Mean size of a write, bytes.
    bytes: f64,
}

/// Whether there are small and large bursts, and large ones need more time.
fn take_longer(bursts: &[ShortBurst]) -> bool {
    let mut by_size = bursts.to_vec();
    by_size.sort_by(|one, other| one.waiting.total_cmp(&other.waiting));
    let quarter = (by_size.len() / 4).max(1).min(by_size.len());
    let middle = |part: &[ShortBurst], of: fn(&ShortBurst) -> f64| {
        let mut values: Vec<f64> = part.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let (small, large) = (&by_size[..quarter], &by_size[by_size.len() - quarter..]);
    let is_at_least = |times: f64, of| middle(large, of) >= times * middle(small, of);
    is_at_least(SIZES, |one| one.waiting) && !is_at_least(1.0 + SPREAD, |one| one.per_second)
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
    is_it.then_some(Requests { per_second, kind, seek: None })
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
    fn bursts_of_small_writes_that_wait_for_each_other_tell_how_many_a_device_completes() {
        // `n` writes at once, three of which take no time: the others leave at 20 a second.
        let burst = |n: f64| {
            let busy = (n - 3.0) / 20.0;
            let waits = (n - 3.0) * (n - 2.0) / 2.0 / 20.0;
            Interval { utilisation: Some(busy), queue: Some(waits), ..second(0.0, n) }
        };
        let single = Interval { utilisation: Some(0.001), queue: Some(0.001), ..second(0.0, 1.0) };
        let near = |told: Option<f64>| told.is_some_and(|told| (told - 20.0).abs() < 0.01);
        let some = [burst(12.0), single, burst(8.0), single, burst(13.0), single, burst(12.0), single];
        assert!(near(in_turn(&some, None)));
        assert!(near(in_turn(&some, Some(20e6))));
        assert_eq!(in_turn(&some, Some(100e3)), None, "their bytes take the time");
        assert_eq!(in_turn(&some[..6], None), None, "too few");
        // Two bursts within one interval seem to leave at half of the speed.
        let two = Interval { writes: 24.0, written_bytes: 24.0 * 4096.0, utilisation: Some(0.9), ..burst(12.0) };
        assert_eq!(in_turn(&[Interval { queue: Some(4.5), ..two }; 8], None), None);
        // Twelve requests at once of 80 ms each, side by side.
        let beside = Interval { utilisation: Some(0.08), queue: Some(0.96), ..second(0.0, 12.0) };
        assert_eq!(in_turn(&[beside; 8], None), None);
        let faster = Interval { utilisation: Some(0.5), ..second(0.0, 90.0) };
        assert_eq!(in_turn(&[some.as_slice(), &[faster, single, faster]].concat(), None), None, "it was faster");
    }

    #[test]
    fn small_reads_that_take_as_long_as_large_writes_show_seeks() {
        let full = Interval { written_bytes: 120.0 * 65_536.0, ..second(0.0, 120.0) };
        let reads = |busy: f64| Interval {
            utilisation: Some(busy),
            reads: 11.0,
            read_bytes: 11.0 * 4096.0,
            ..second(0.0, 0.0)
        };
        let told = |one: Interval, other: Interval, count: usize| {
            let found = seeks(&[vec![one; count], vec![other; count]].concat())?;
            Some((found.per_second.round(), (found.seek? * 1e6).round()))
        };
        assert_eq!(told(full, reads(0.1), 6), Some((120.0, 9091.0)));
        assert_eq!(told(full, reads(0.01), 6), None, "bytes take the time");
        assert_eq!(told(full, reads(0.1), 3), None, "too few");
        // A disk that is written in order, and then read here and there.
        let in_order = Interval { written_bytes: 392.0 * 458_752.0, ..second(0.0, 392.0) };
        assert_eq!(told(in_order, reads(0.143), 6), None, "its bytes take the time");
        let large = Interval { written_bytes: 120.0 * 1_048_576.0, ..full };
        assert_eq!(told(large, reads(0.1), 6), None, "larger requests take longer than a seek");
    }

    /// `n` writes at once of which the last one leaves after `busy` seconds, and the others evenly before. One comes a moment later.
    fn even(n: f64, busy: f64) -> Interval {
        Interval { utilisation: Some(busy), queue: Some(((n + 1.0) / 2.0 - 0.001) * busy), ..second(0.0, n) }
    }

    #[test]
    fn only_bursts_of_different_sizes_tell_a_queue_from_latency() {
        let near = |told: Option<f64>| told.is_some_and(|told| (told - 20.0).abs() < 0.01);
        assert_eq!(in_turn(&[even(10.0, 0.5); 8], None), None, "one size: the writes may be served side by side");
        let queue = [even(10.0, 0.5), even(6.0, 0.3), even(12.0, 0.6), even(10.0, 0.5)];
        assert!(near(in_turn(&queue, None)));
        let hardly = [even(10.0, 0.5), even(9.0, 0.45), even(10.0, 0.5), even(11.0, 0.55)];
        assert_eq!(in_turn(&hardly, None), None, "hardly different sizes");
        // Side by side, each burst needs the same time, however large it is.
        let sizes = [10.0, 10.0, 10.0, 6.0, 10.0, 6.0, 10.0, 10.0, 10.0];
        assert_eq!(in_turn(&sizes.map(|n| even(n, 0.5)), None), None);
        let one_small = [even(10.0, 0.5), even(10.0, 0.5), even(10.0, 0.5), even(10.0, 0.5), even(6.0, 0.3)];
        assert!(near(in_turn(&one_small, None)), "most of them tell the speed");
    }

    #[test]
    fn a_device_takes_at_least_what_it_took_while_it_was_full() {
        let queue = [even(10.0, 0.5), even(6.0, 0.3), even(12.0, 0.6), even(10.0, 0.5)];
        let with = |full: f64| in_turn(&[queue.as_slice(), &[second(0.0, full)]].concat(), None);
        assert!(with(12.0).is_some_and(|told| (told - 20.0).abs() < 0.01), "a full interval may have fewer");
        assert_eq!(with(22.0), Some(22.0));
        assert_eq!(with(40.0), None, "the bursts do not show the ceiling");
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
