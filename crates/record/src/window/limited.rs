// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cgroups did on devices while their limits of I/O were the same: a limit that was set, raised or lifted says nothing
//! about the time without it. Limits are read less often than counters, so only the time between two readings that agree
//! is known.

use crate::id::EntityId;
use crate::sample::{CgroupIoRow, Sample};
use crate::units::{Limit, Nanos};
use std::collections::BTreeMap;

/// Shortest time over which the use of a limit is judged. The counters take a bio of megabytes as a whole, and the next bio may follow
/// only a second later.
const JUDGED: Nanos = Nanos(2_000_000_000);
/// Readings that are further apart do not show when a limit was used up.
const APART: Nanos = Nanos(6_000_000_000);
/// Readings that are kept of each cgroup and device: those of ten minutes, if there are two in a second.
const READINGS_MAX: usize = 1200;
/// Number of limits of a cgroup on a device.
const LIMITS: usize = 4;

/// A limit of I/O of a cgroup on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoLimit {
    /// `rbps`, bytes read per second.
    ReadBytes,
    /// `wbps`, bytes written per second.
    WriteBytes,
    /// `riops`, reads per second.
    Reads,
    /// `wiops`, writes per second.
    Writes,
}

/// The counters that the limits are for, at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitedReading {
    at: Nanos,
    counters: [Option<u64>; LIMITS],
}

impl LimitedReading {
    /// When it was read.
    pub fn at(&self) -> Nanos {
        self.at
    }

    /// Whether the counter of a limit was read. The kernel has no line in `io.stat` for a device on which the cgroup did nothing.
    pub fn has(&self, which: IoLimit) -> bool {
        self.counters[which as usize].is_some()
    }
}

/// Readings that follow each other and have the same limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRun {
    limits: [Option<Limit>; LIMITS],
    first: LimitedReading,
    last: LimitedReading,
}

/// Counter readings of each cgroup on each device, in order of time, from the first reading of a limit other than `max` on.
pub type LimitedIo = BTreeMap<EntityId, Vec<LimitedReading>>;

/// The runs of each cgroup and device whose limits were read, in order of time.
pub type LimitRuns = BTreeMap<EntityId, Vec<LimitRun>>;

impl LimitRun {
    /// The run of one reading, in the order of [`IoLimit`]; `None` where no limit was read.
    pub(crate) fn read(
        at: Nanos,
        limits: [Option<Limit>; LIMITS],
        counters: [Option<u64>; LIMITS],
    ) -> Option<LimitRun> {
        let counted = LimitedReading { at, counters };
        limits.iter().any(Option::is_some).then_some(LimitRun { limits, first: counted, last: counted })
    }
}

/// Appends one reading of a cgroup on a device. Drops the reading if all limits read for them until now are `max`. `limits` and
/// `counters` are in the order of [`IoLimit`].
#[inline]
pub(crate) fn note(
    readings: &mut Vec<LimitedReading>,
    at: Nanos,
    limits: [Option<Limit>; LIMITS],
    counters: [Option<u64>; LIMITS],
) {
    let len = readings.len();
    if len == 0 && !is_limited(limits) {
        return;
    }
    let reading = LimitedReading { at, counters };
    // Of readings that are alike, the first and the last are enough.
    let is_alike = |one: &LimitedReading| one.counters == counters;
    match readings.get_mut(len.saturating_sub(2)..) {
        Some([one, last]) if is_alike(last) && is_alike(one) => *last = reading,
        _ if len < READINGS_MAX => readings.push(reading),
        _ => {}
    }
}

/// Whether there is a limit other than `max`.
fn is_limited(limits: [Option<Limit>; LIMITS]) -> bool {
    limits.iter().flatten().any(|limit| *limit != Limit::MAX)
}

/// A time in which a limit was used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsedUp {
    /// Its begin: a reading, or a time between two readings that are alike.
    pub from: Nanos,
    /// Its last reading.
    pub to: Nanos,
    /// How long the limit needs for what was done in it, at most its length, seconds.
    pub seconds: f64,
}

/// Returns the times in which a cgroup used at least this part of a limit, measured over 2 s to 6 s, or over the time for which the limit
/// held one bio back. These times do not overlap.
pub fn used_up(readings: &[LimitedReading], which: IoLimit, limit: Limit, part: f64) -> Vec<UsedUp> {
    let counts: Vec<(Nanos, u64)> =
        readings.iter().filter_map(|reading| Some((reading.at, reading.counters[which as usize]?))).collect();
    let mut found: Vec<(Nanos, usize, usize)> = Vec::new();
    let mut first = 0;
    for (at, (to, after)) in counts.iter().enumerate() {
        // The shortest time that is long enough.
        while first + 1 < at && to.0.saturating_sub(counts[first + 1].0.0) >= JUDGED.0 {
            first += 1;
        }
        let (mut from, before) = counts[first];
        // Between two readings that are alike, nothing was done: it may begin at any time there.
        if counts.get(first + 1).is_some_and(|next| next.1 == before && next.0 < *to) {
            from = from.max(Nanos(to.0.saturating_sub(JUDGED.0)));
        }
        let time = to.0.saturating_sub(from.0);
        let done = after.saturating_sub(before) as f64;
        if !(JUDGED.0..=APART.0).contains(&time) || done < part * limit.0 as f64 * Nanos(time).as_secs_f64() {
            continue;
        }
        match found.last_mut().filter(|last| counts[last.2].0 >= from) {
            Some(last) => last.2 = at,
            None => found.push((from, first, at)),
        }
    }
    let used = |(from, first, last): (Nanos, usize, usize)| {
        let ((_, before), (to, after)) = (counts[first], counts[last]);
        // The first reading with this count. The time before ends with a reading at the latest.
        let still = counts[..=first].iter().rev().take_while(|one| one.1 == before).last().map_or(to, |one| one.0);
        let needs = after.saturating_sub(before) as f64 / limit.0.max(1) as f64;
        // The kernel holds a bio back until the limit allows all of it, and counts it then. It may have waited all the time that the
        // counters stood still, at most for what the limit needs.
        let held_from = Nanos(to.0.saturating_sub((needs * 1e9) as u64)).max(still);
        let from = from.min(held_from);
        UsedUp { from, to, seconds: needs.min(Nanos(to.0.saturating_sub(from.0)).as_secs_f64()) }
    };
    found.into_iter().map(used).collect()
}

/// Appends a run that follows, or continues the last one.
pub(crate) fn push(runs: &mut Vec<LimitRun>, next: LimitRun) {
    // A reading without counters ends a run: what was done is not known.
    let has_same = |last: &LimitRun| {
        last.last.counters.iter().zip(&next.last.counters).all(|(last, next)| last.is_some() == next.is_some())
    };
    match runs.last_mut().filter(|last| last.limits == next.limits && has_same(last)) {
        Some(last) => last.last = next.last,
        None => runs.push(next),
    }
}

/// Takes the limits of a sample.
pub(super) fn take(runs: &mut LimitRuns, readings: &mut LimitedIo, sample: &Sample) {
    for (id, row) in sample.cgroup_io.rows() {
        let (limits, counters) = of_row(row);
        if readings.contains_key(id) || is_limited(limits) {
            note(readings.entry(*id).or_default(), sample.time.monotonic, limits, counters);
        }
        if let Some(run) = LimitRun::read(sample.time.monotonic, limits, counters) {
            push(runs.entry(*id).or_default(), run);
        }
    }
}

/// The limits of a row and the counters that they are for, in the order of [`IoLimit`].
fn of_row(row: &CgroupIoRow) -> ([Option<Limit>; LIMITS], [Option<u64>; LIMITS]) {
    let limits = [row.rbps_max, row.wbps_max, row.riops_max, row.wiops_max];
    let bytes = [row.rbytes, row.wbytes].map(|bytes| bytes.map(|bytes| bytes.0));
    let requests = [row.rios, row.wios].map(|requests| requests.map(|requests| requests.0));
    (limits, [bytes[0], bytes[1], requests[0], requests[1]])
}

/// Appends the runs of a window that follows and begins with the last sample of this one.
pub(super) fn append(runs: &mut LimitRuns, next: &LimitRuns) {
    for (id, later) in next {
        let runs = runs.entry(*id).or_default();
        later.iter().for_each(|run| push(runs, run.clone()));
    }
}

/// Appends the readings of a window that follows and begins with the last sample of this one, at this time.
pub(super) fn append_readings(all: &mut LimitedIo, next: &LimitedIo, shared: Nanos) {
    for (id, later) in next {
        let readings = all.entry(*id).or_default();
        let is_known = !readings.is_empty();
        let room = READINGS_MAX.saturating_sub(readings.len());
        readings.extend(later.iter().filter(|reading| !is_known || reading.at > shared).take(room));
    }
}

/// What was done per second while a limit had this value, and for how long that is known, seconds; `None` where no two
/// readings that follow each other had the value. A counter that steps back counts nothing.
pub fn done_under(runs: &[LimitRun], which: IoLimit, limit: Limit) -> Option<(f64, f64)> {
    let which = which as usize;
    let mut done = 0u64;
    let mut time = 0u64;
    for run in runs.iter().filter(|run| run.limits[which] == Some(limit)) {
        let (Some(first), Some(last)) = (run.first.counters[which], run.last.counters[which]) else { continue };
        done = done.saturating_add(last.saturating_sub(first));
        time = time.saturating_add(run.last.at.0.saturating_sub(run.first.at.0));
    }
    let seconds = Nanos(time).as_secs_f64();
    (seconds > 0.0).then(|| (done as f64 / seconds, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    /// Readings: second, bytes written, limit.
    fn check(readings: &[(u64, u64, Option<u64>)], limit: u64, expect: Option<(f64, f64)>) {
        let mut runs = Vec::new();
        for (second, wbytes, wbps) in readings {
            let wbps_max = wbps.map(Limit);
            let row = CgroupIoRow { wbytes: Some(Bytes(*wbytes)), wbps_max, ..CgroupIoRow::default() };
            let (limits, counters) = of_row(&row);
            if let Some(run) = LimitRun::read(Nanos(second * 1_000_000_000), limits, counters) {
                push(&mut runs, run);
            }
        }
        assert_eq!(done_under(&runs, IoLimit::WriteBytes, Limit(limit)), expect, "{readings:?}");
    }

    #[test]
    fn a_limit_is_used_up_over_two_seconds_and_more() {
        // A bio of 2 MB each second, then nothing, then half of the limit.
        let bytes = |half_seconds: u64| match half_seconds {
            0..=16 => half_seconds / 2 * 2_000_000,
            17..=30 => 16_000_000,
            more => 16_000_000 + (more - 30) * 500_000,
        };
        let mut all = Vec::new();
        for at in 0..60 {
            let limit = (at % 20 == 0).then_some(Limit(2_000_000));
            note(&mut all, Nanos(at * 500_000_000), [None, limit, None, None], [None, Some(bytes(at)), None, None]);
        }
        let times = used_up(&all, IoLimit::WriteBytes, Limit(2_000_000), 0.8);
        // Readings that are alike are not kept, so it ends with the last bio.
        assert_eq!(times, [UsedUp { from: Nanos(0), to: Nanos(8_000_000_000), seconds: 8.0 }]);
        // A bio alone, of 1.6 s of the limit, uses up no more than that.
        let mut alone = Vec::new();
        for at in 0..30 {
            let done = if at < 10 { 0 } else { 3_200_000 };
            note(
                &mut alone,
                Nanos(at * 500_000_000),
                [None, Some(Limit(2_000_000)), None, None],
                [None, Some(done), None, None],
            );
        }
        let used: f64 = used_up(&alone, IoLimit::WriteBytes, Limit(2_000_000), 0.8).iter().map(|one| one.seconds).sum();
        assert_eq!(used, 1.6);
        // A bio that the limit held back for 6 s of the 10 s since the one before, with readings some half seconds apart.
        for apart in [1, 2, 4, 10] {
            let mut held = Vec::new();
            for at in (0..40).step_by(apart) {
                let done = if at < 20 { 0 } else { 12_000_000 };
                let limit = [None, Some(Limit(2_000_000)), None, None];
                note(&mut held, Nanos(at * 500_000_000), limit, [None, Some(done), None, None]);
            }
            let times = used_up(&held, IoLimit::WriteBytes, Limit(2_000_000), 0.8);
            let seconds: f64 = times.iter().map(|one| one.seconds).sum();
            assert_eq!((times[0].from, seconds), (Nanos(4_000_000_000), 6.0), "{apart}: {times:?}");
        }
        assert!(used_up(&all, IoLimit::Writes, Limit(1), 0.8).is_empty(), "not counted");
        // Without a limit nothing is kept.
        let mut none = Vec::new();
        note(&mut none, Nanos(0), [Some(Limit::MAX); LIMITS], [Some(1); LIMITS]);
        assert_eq!(none, []);
    }

    #[test]
    fn only_the_time_between_readings_that_agree_counts() {
        let max = u64::MAX;
        check(&[], 200, None);
        check(&[(0, 0, Some(200)), (10, 1000, None), (20, 4000, Some(200))], 200, Some((200.0, 20.0)));
        // Set once and lifted later: nothing is known about it.
        check(&[(0, 0, Some(max)), (10, 9000, Some(200)), (20, 18000, Some(max))], 200, None);
        check(
            &[(0, 0, Some(max)), (10, 9000, Some(200)), (14, 9400, Some(200)), (20, 18000, Some(max))],
            200,
            Some((100.0, 4.0)),
        );
        // Twice in force.
        check(
            &[(0, 0, Some(7)), (1, 7, Some(7)), (2, 99, Some(max)), (5, 100, Some(7)), (8, 121, Some(7))],
            7,
            Some((7.0, 4.0)),
        );
        check(&[(0, 500, Some(7)), (1, 3, Some(7))], 7, Some((0.0, 1.0)));
    }

    #[test]
    fn a_reading_without_counters_does_not_hide_those_with_them() {
        let mut runs = Vec::new();
        for (second, wbytes) in [(0, None), (1, Some(100)), (3, Some(120)), (4, None)] {
            let row = CgroupIoRow { wbytes: wbytes.map(Bytes), wbps_max: Some(Limit(7)), ..CgroupIoRow::default() };
            let (limits, counters) = of_row(&row);
            runs.extend(LimitRun::read(Nanos(second * 1_000_000_000), limits, counters));
        }
        let mut whole = Vec::new();
        runs.into_iter().for_each(|run| push(&mut whole, run));
        assert_eq!(done_under(&whole, IoLimit::WriteBytes, Limit(7)), Some((10.0, 2.0)));
    }
}
