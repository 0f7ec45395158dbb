// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times in which a disk has requests and completes hardly any of them, and then goes on as before, or completes none until the last
//! sample: its host or its storage network was busy, or it retried. The program that writes most is then not the cause of the waits.

mod hanging;

use super::interval::{Reading, between};
use super::{Device, Interval};
use floodline_record::units::Nanos;
use std::cmp::Reverse;
use std::ops::Range;

/// Part of the usual rates below which a disk completes hardly anything.
pub const HARDLY: f64 = 0.1;
/// Shortest time in which a disk stands still that is found without a wait that points to it, seconds.
pub const SHORTEST_S: f64 = 1.0;
/// How much shorter a number of intervals between samples may be than that many seconds: no timer is exact.
const NEARLY: f64 = 0.95;
/// Requests that a disk must have been about to complete in that time: a few may take that long by chance.
const ENOUGH: f64 = 20.0;
/// Length of an interval, in usual lengths, from which its second sample was late. What kept the recorder waiting may have kept
/// the disk waiting.
const LATE: f64 = 1.5;
/// Part of the time in which it has requests, all the same.
const BUSY: f64 = 0.9;
/// Part of a wait that whole intervals between samples must cover, to tell of it.
const MOST: f64 = 0.5;
/// Length before and after a wait in which the usual rates are looked for, in lengths of the wait. A cache that was full or
/// a credit that was spent does not come back that soon.
const BESIDE: f64 = 2.0;
/// Time that a request must spend in a disk that stands still, seconds. One synchronous reader also completes few requests, each after its
/// usual time.
const STAYS_S: f64 = 0.5;
/// How many times as long as beside it that must be.
const STAYS_LONGER: f64 = 10.0;
/// Standstills from which their distances tell whether the disk stops in cycles.
const CYCLES: usize = 3;
/// Part of the mean distance by which distances in a cycle may differ from it.
const SAME_DISTANCE: f64 = 0.2;
/// Part of the longest standstill by which the others in a cycle may be shorter.
const SAME_LENGTH: f64 = 0.5;
/// Intervals between samples by which either may differ because nothing is known between samples.
const SAMPLED: f64 = 1.5;
/// Part of the time that standstills in a cycle take at least, where a full cache or a spent credit is the reason: such a disk is asked for more
/// than it can do. Shorter ones come from a clock, as those of a self-test do.
const CYCLE_SHARE: f64 = 0.1;

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

/// A time in which a disk stood still: whole intervals between samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standstill {
    /// Its first sample.
    pub from: Nanos,
    /// Its last sample.
    pub to: Nanos,
    /// Most requests in flight in one of its samples.
    pub in_flight: u64,
    /// Requests completed per second just before it; `None` if it had begun by the first sample or soon after.
    pub before: Option<f64>,
    /// Requests completed per second in it.
    pub during: f64,
    /// Requests completed per second just after it; `None` if it had not ended by the last sample.
    pub after: Option<f64>,
    /// The times just before and just after it, without the intervals next to it. Of one that had not ended, the time before it twice;
    /// nothing where no pace before it is known.
    pub beside: [(Nanos, Nanos); 2],
    /// What may explain it, so that the disk is not to blame.
    pub explained: Option<Explained>,
}

/// What may explain a standstill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explained {
    /// A flush of its cache.
    Flush,
    /// Flushes are not counted, and the disk may have a volatile cache.
    UncountedFlush,
    /// A discard.
    Discard,
    /// A flush of its cache that has not ended.
    PendingFlush,
    /// A discard that has not ended.
    PendingDiscard,
}

impl Explained {
    /// All of them.
    pub const ALL: [Explained; 5] = [
        Explained::Flush,
        Explained::UncountedFlush,
        Explained::Discard,
        Explained::PendingFlush,
        Explained::PendingDiscard,
    ];

    /// As the end of a sentence about the disk.
    pub fn because(self) -> &'static str {
        match self {
            Explained::Flush => "a flush of its cache explains it",
            Explained::UncountedFlush => "a flush may explain it, and flushes are not counted",
            Explained::Discard => "a discard explains it",
            Explained::PendingFlush => "a flush of its cache that has not ended may explain it",
            Explained::PendingDiscard => "a discard that has not ended may explain it",
        }
    }
}

impl Standstill {
    /// Its length, seconds. The disk may have stood still for up to an interval more at either end.
    pub fn seconds(&self) -> f64 {
        Nanos(self.to.0.saturating_sub(self.from.0)).as_secs_f64()
    }

    /// Whether it had not ended by the last sample.
    pub fn is_open(&self) -> bool {
        self.after.is_none()
    }

    /// Requests that the disk usually completes per second; `None` where it was seen to complete none.
    pub fn usual(&self) -> Option<f64> {
        [self.before, self.after].into_iter().flatten().reduce(f64::min)
    }

    /// Seconds of the time between two moments that lie in it.
    pub fn common_s(&self, from: Nanos, to: Nanos) -> f64 {
        Nanos(self.to.0.min(to.0).saturating_sub(self.from.0.max(from.0))).as_secs_f64()
    }

    /// Length of the interval before it, seconds: it may have begun at any time in that.
    fn unsure_s(&self) -> f64 {
        Nanos(self.from.0.saturating_sub(self.beside[0].1.0)).as_secs_f64()
    }
}

/// Mean distance of standstills of one disk, seconds, where they come at nearly equal distances and are of similar length. One that has not
/// ended may be shorter.
pub fn distance_s(times: &[Standstill]) -> Option<f64> {
    if times.len() < CYCLES {
        return None;
    }
    let unsure = SAMPLED * times.iter().map(Standstill::unsure_s).fold(0.0, f64::max);
    let start = |time: &Standstill| time.from.as_secs_f64();
    let distances: Vec<f64> = times.windows(2).map(|pair| start(&pair[1]) - start(&pair[0])).collect();
    let mean = distances.iter().sum::<f64>() / distances.len() as f64;
    let ended = times.iter().filter(|time| !time.is_open());
    let longest = ended.map(Standstill::seconds).fold(0.0, f64::max);
    let is_same = |distance: &f64| (distance - mean).abs() <= unsure.max(SAME_DISTANCE * mean);
    let is_as_long = |time: &Standstill| match time.is_open() {
        true => time.seconds() <= longest + unsure,
        false => longest - time.seconds() <= unsure.max(SAME_LENGTH * longest),
    };
    (distances.iter().all(is_same) && times.iter().all(is_as_long)).then_some(mean)
}

/// The same where the disk does so by itself because its cache fills up or a credit is spent: it then stands still for a good part of the time.
pub fn cycle_s(times: &[Standstill]) -> Option<f64> {
    let distance = distance_s(times)?;
    // Each may have begun and ended an interval earlier and later.
    let most = |time: &Standstill| time.seconds() + 2.0 * time.unsure_s();
    let mean = times.iter().map(most).sum::<f64>() / times.len() as f64;
    (mean >= CYCLE_SHARE * distance).then_some(distance)
}

impl Device<'_> {
    /// Times in which it stood still for a second or more, in order: at each sample it had requests in flight, and between them it
    /// completed hardly any, in number and in bytes, of what it completes in most intervals just before and just after, so
    /// that a request stayed for much longer than usual. The last one may not have ended: then it completed none until the last sample.
    /// [`Standstill::explained`] tells where a discard or a flush of its cache explains it.
    pub fn stood_still(&self) -> Vec<Standstill> {
        let rows = self.window.disk_series.get(&self.id).map(Vec::as_slice).unwrap_or_default();
        let steps: Vec<Option<Step>> = rows.windows(2).map(|pair| Step::of(&pair[0], &pair[1])).collect();
        let can_flush = self.facts.and_then(|facts| facts.write_back_cache) != Some(false);
        let end = self.window.last_at.map(|last| last.monotonic);
        let whole = hanging::whole(&steps).filter(|whole| Some(whole.to) == end);
        let of_run = |run: &[Option<Step>]| {
            let mut steps = Steps::of(run.iter().flatten().copied().collect(), can_flush);
            steps.is_last = steps.all.last().is_some_and(|last| Some(last.end) == end);
            steps.standstills()
        };
        let mut found: Vec<Standstill> = steps.split(Option::is_none).flat_map(of_run).collect();
        // One with a usual pace before it says more.
        found.extend(whole.filter(|_| !found.iter().any(Standstill::is_open)));
        found
    }
}

/// An interval between two samples, with what [`Interval`] leaves out.
#[derive(Clone, Copy)]
struct Step {
    start: Nanos,
    end: Nanos,
    seconds: f64,
    completed: f64,
    bytes: f64,
    writes: f64,
    /// Requests in flight in both of its samples.
    pending: u64,
    /// Requests in flight in the sample with more of them.
    most_pending: u64,
    /// Mean of the requests in flight in both, times the seconds.
    stayed_s: f64,
    is_busy: bool,
    has_discards: bool,
    /// `None` where the kernel does not count them.
    flushes: Option<f64>,
    flush_s: f64,
}

impl Step {
    fn of(before: &Reading, after: &Reading) -> Option<Step> {
        let interval = between(before, after)?;
        let (first, last) = (before.1.in_flight?.0, after.1.in_flight?.0);
        let grown = |of: Option<u64>, from: Option<u64>| Some(of?.saturating_sub(from?) as f64);
        let ended = |row: &Reading| row.1.discards.map(|count| count.0);
        let flushing = |row: &Reading| row.1.flush_time.map(|time| time.0);
        Some(Step {
            start: before.0,
            end: after.0,
            seconds: interval.seconds,
            completed: interval.reads + interval.writes,
            bytes: interval.read_bytes + interval.written_bytes,
            writes: interval.writes,
            pending: first.min(last),
            most_pending: first.max(last),
            stayed_s: (first as f64 + last as f64) / 2.0 * interval.seconds,
            is_busy: interval.utilisation.is_some_and(|part| part >= BUSY),
            has_discards: grown(ended(after), ended(before)).is_some_and(|ended| ended > 0.0),
            flushes: interval.flushes,
            flush_s: grown(flushing(after), flushing(before)).unwrap_or(0.0) / 1e9,
        })
    }

    fn rate(&self) -> f64 {
        self.completed / self.seconds
    }
}

/// Requests completed, seconds, and the time that all requests in flight spent.
#[derive(Clone, Copy, Default)]
struct Sum {
    completed: f64,
    seconds: f64,
    stayed_s: f64,
}

/// Intervals that follow each other.
struct Steps {
    all: Vec<Step>,
    can_flush: bool,
    /// Whether the last of them ends with the last sample.
    is_last: bool,
    /// Median length of an interval, seconds.
    usual_s: f64,
    /// Requests completed per second in the interval with most.
    most: f64,
    /// Sums before each interval and before the end.
    sums: Vec<Sum>,
}

/// Mean of an amount per second over some intervals; 0 over none.
fn mean(of: &[Step], amount: fn(&Step) -> f64) -> f64 {
    let seconds: f64 = of.iter().map(|step| step.seconds).sum();
    of.iter().map(amount).sum::<f64>() / seconds.max(f64::MIN_POSITIVE)
}

impl Steps {
    fn of(all: Vec<Step>, can_flush: bool) -> Steps {
        let mut lengths: Vec<f64> = all.iter().map(|step| step.seconds).collect();
        lengths.sort_by(f64::total_cmp);
        let usual_s = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0);
        let most = all.iter().map(Step::rate).fold(0.0, f64::max);
        let mut sums = vec![Sum::default()];
        sums.extend(all.iter().scan(Sum::default(), |sum, step| {
            sum.completed += step.completed;
            sum.seconds += step.seconds;
            sum.stayed_s += step.stayed_s;
            Some(*sum)
        }));
        Steps { all, can_flush, is_last: false, usual_s, most, sums }
    }

    /// Whether an interval can be part of a standstill, whatever is usual beside it.
    fn is_quiet(&self, step: &Step) -> bool {
        step.pending > 0 && step.is_busy && step.seconds < LATE * self.usual_s && step.rate() < HARDLY * self.most
    }

    fn standstills(&self) -> Vec<Standstill> {
        let mut found = Vec::new();
        let mut next = 0;
        for (first, last) in self.candidates() {
            if first < next {
                continue;
            }
            if let Some(standstill) = self.standstill(first, last) {
                found.push(standstill);
                next = last + 1;
            }
        }
        found
    }

    /// Quiet intervals that can be all of a standstill, first and last, by their first and the longest first. The disk did more in
    /// the intervals next to it than in any of it. So there are no more of them than intervals: the longest around each one in which
    /// the disk did no more than in that one.
    fn candidates(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        // Intervals with less and less done, each with the first interval from which on the disk did no more.
        let mut open: Vec<(f64, usize)> = Vec::new();
        for at in 0..=self.all.len() {
            let rate = self.all.get(at).filter(|step| self.is_quiet(step)).map_or(f64::INFINITY, Step::rate);
            let mut first = at;
            while let Some((least, since)) = open.pop_if(|(least, _)| *least <= rate) {
                first = since;
                if least < rate {
                    found.push((first, at - 1));
                }
            }
            if rate.is_finite() {
                open.push((rate, first));
            }
        }
        found.sort_by_key(|(first, last)| (*first, Reverse(*last)));
        found
    }

    /// Sums over these intervals.
    fn sum(&self, of: &Range<usize>) -> Sum {
        let at = |at: usize| self.sums.get(at).copied().unwrap_or_default();
        let (start, end) = (at(of.start), at(of.end));
        Sum {
            completed: end.completed - start.completed,
            seconds: end.seconds - start.seconds,
            stayed_s: end.stayed_s - start.stayed_s,
        }
    }

    /// Requests completed per second in these intervals.
    fn rate(&self, of: &Range<usize>) -> f64 {
        let sum = self.sum(of);
        sum.completed / sum.seconds.max(f64::MIN_POSITIVE)
    }

    fn seconds(&self, of: &Range<usize>) -> f64 {
        self.sum(of).seconds
    }

    /// Mean time that a request spends in the disk, seconds, by Little's law: requests in flight by those completed per second. Infinite where
    /// none completed.
    fn stay_s(&self, of: &Range<usize>) -> f64 {
        let sum = self.sum(of);
        if sum.completed > 0.5 { sum.stayed_s / sum.completed } else { f64::INFINITY }
    }

    /// The standstill from one interval to another, both included, if it is one.
    fn standstill(&self, first: usize, last: usize) -> Option<Standstill> {
        let of = first..last + 1;
        let length = self.seconds(&of);
        if length < NEARLY * SHORTEST_S {
            return None;
        }
        if self.is_last && last + 1 == self.all.len() {
            return self.open(first, length);
        }
        // The intervals next to it may contain its beginning and its end.
        let (end, start) = (first.checked_sub(1)?, last + 2);
        let beside = Nanos((BESIDE * length * 1e9) as u64).0;
        let (from, to) =
            (self.all[end].start.0.saturating_sub(beside), self.all.get(last + 1)?.end.0.saturating_add(beside));
        let before = self.all.partition_point(|step| step.start.0 < from)..end;
        let after = start..self.all.partition_point(|step| step.end.0 <= to).max(start);
        let usual = self.rate(&before).min(self.rate(&after));
        let is_short = [&before, &after].into_iter().any(|of| self.seconds(of) < NEARLY * length);
        if is_short || usual * length < ENOUGH {
            return None;
        }
        let stay = self.stay_s(&before).max(self.stay_s(&after));
        let stays = self.stay_s(&of) >= (STAYS_LONGER * stay).max(STAYS_S);
        let largest = self.all[of.clone()].iter().map(Step::rate).fold(0.0, f64::max);
        // If a neighbouring interval is as quiet, the standstill is longer than this one.
        let is_part_of_it = |step: &Step| self.is_quiet(step) && step.rate() < HARDLY * usual;
        let is_part = [end, last + 1].into_iter().any(|at| is_part_of_it(&self.all[at]));
        if !stays || is_part || largest >= HARDLY * usual {
            return None;
        }
        let (inside, before_it, after_it) =
            (&self.all[first..=last], &self.all[before.clone()], &self.all[after.clone()]);
        // A disk that stops again and again does so by itself: its cache is full, or it was asked for little.
        let is_unusual =
            |beside: &[Step]| 2 * beside.iter().filter(|step| step.rate() * HARDLY > largest).count() > beside.len();
        let of_both = |amount: fn(&Step) -> f64| mean(before_it, amount).min(mean(after_it, amount));
        let bytes = of_both(|step| step.bytes);
        let is_one = inside.iter().all(|step| step.bytes < HARDLY * bytes * step.seconds)
            && is_unusual(before_it)
            && is_unusual(after_it);
        let flush = || self.flush(first, last, of_both(|step| step.writes));
        let has_discards = self.all[first..=last + 1].iter().any(|step| step.has_discards);
        let explained = || if has_discards { Some(Explained::Discard) } else { flush() };
        let time = |of: &[Step]| Some((of.first()?.start, of.last()?.end));
        let beside = [time(before_it)?, time(after_it)?];
        is_one.then(|| Standstill {
            from: self.all[first].start,
            to: self.all[last].end,
            in_flight: inside.iter().map(|step| step.most_pending).max().unwrap_or(0),
            before: Some(self.rate(&before)),
            during: self.rate(&of),
            after: Some(self.rate(&after)),
            beside,
            explained: explained(),
        })
    }

    /// Whether a flush may explain that the disk completes hardly anything in these intervals: one ended in them or right after, took
    /// most of that time, and the writes that the cache took since the flush before are more than a few of those that the disk usually
    /// stores in that time. `usual` is the number of writes per second just before and just after.
    fn flush(&self, first: usize, last: usize, usual: f64) -> Option<Explained> {
        let until = &self.all[first..=last + 1];
        let length = self.seconds(&(first..last + 1));
        let counted: Option<f64> = until.iter().map(|step| step.flushes).sum();
        let uncounted = self.can_flush.then_some(Explained::UncountedFlush);
        let Some(flushes) = counted.filter(|_| self.can_flush) else { return uncounted };
        let flushing: f64 = until.iter().map(|step| step.flush_s).sum();
        if flushes <= 0.0 || flushing < MOST * length {
            return None;
        }
        let cached = self.since_flush(first).unwrap_or(0.0);
        (cached >= HARDLY * usual * length).then_some(Explained::Flush)
    }
}

#[cfg(test)]
mod tests {
    use super::{Step, Steps};
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

    /// Intervals of a second. `rates` are the requests that the disk completes in each. One request is in flight all the time.
    fn steps(rates: &[f64]) -> Steps {
        let step = |(at, rate): (usize, &f64)| Step {
            start: secs(at as f64),
            end: secs(at as f64 + 1.0),
            seconds: 1.0,
            completed: *rate,
            bytes: 0.0,
            writes: *rate,
            pending: 1,
            most_pending: 1,
            stayed_s: 1.0,
            is_busy: true,
            has_discards: false,
            flushes: None,
            flush_s: 0.0,
        };
        Steps::of(rates.iter().enumerate().map(step).collect(), false)
    }

    #[test]
    fn a_long_quiet_time_has_no_more_candidates_than_intervals() {
        let rates = [900.0, 3.0, 1.0, 1.0, 2.0, 0.0, 900.0, 900.0, 5.0, 5.0, 900.0, 0.0];
        let candidates = steps(&rates).candidates();
        assert_eq!(candidates, [(1, 5), (2, 5), (2, 3), (5, 5), (8, 9), (11, 11)]);
        let mut long: Vec<f64> = (0..5000).map(|at| f64::from(at % 83)).collect();
        long.push(10_000.0);
        assert!(steps(&long).candidates().len() <= long.len());
    }
}
