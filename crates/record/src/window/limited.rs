// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cgroups did on devices while their limits of I/O were the same: a limit that was set, raised or lifted says nothing
//! about the time without it. Limits are read less often than counters, so only the time between two readings that agree
//! is known.

use crate::id::EntityId;
use crate::sample::{CgroupIoRow, Sample};
use crate::units::{Limit, Nanos};
use std::collections::BTreeMap;

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
struct Counted {
    at: Nanos,
    counters: [Option<u64>; LIMITS],
}

/// Readings that follow each other and have the same limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRun {
    limits: [Option<Limit>; LIMITS],
    first: Counted,
    last: Counted,
}

/// The runs of each cgroup and device whose limits were read, in order of time.
pub type LimitRuns = BTreeMap<EntityId, Vec<LimitRun>>;

impl LimitRun {
    /// The run of one row; `None` where its limits were not read.
    fn of(at: Nanos, row: &CgroupIoRow) -> Option<LimitRun> {
        let limits = [row.rbps_max, row.wbps_max, row.riops_max, row.wiops_max];
        let bytes = [row.rbytes, row.wbytes].map(|bytes| bytes.map(|bytes| bytes.0));
        let requests = [row.rios, row.wios].map(|requests| requests.map(|requests| requests.0));
        LimitRun::read(at, limits, [bytes[0], bytes[1], requests[0], requests[1]])
    }

    /// The run of one reading, in the order of [`IoLimit`]; `None` where no limit was read.
    pub(crate) fn read(
        at: Nanos,
        limits: [Option<Limit>; LIMITS],
        counters: [Option<u64>; LIMITS],
    ) -> Option<LimitRun> {
        let counted = Counted { at, counters };
        limits.iter().any(Option::is_some).then_some(LimitRun { limits, first: counted, last: counted })
    }
}

/// Appends a run that follows, or continues the last one.
pub(crate) fn push(runs: &mut Vec<LimitRun>, next: LimitRun) {
    // A reading without counters ends a run: what was done is not known.
    let has = |run: &LimitRun| run.last.counters.map(|count| count.is_some());
    match runs.last_mut().filter(|last| last.limits == next.limits && has(last) == has(&next)) {
        Some(last) => last.last = next.last,
        None => runs.push(next),
    }
}

/// Takes the limits of a sample.
pub(super) fn take(runs: &mut LimitRuns, sample: &Sample) {
    for (id, row) in sample.cgroup_io.rows() {
        if let Some(run) = LimitRun::of(sample.time.monotonic, row) {
            push(runs.entry(*id).or_default(), run);
        }
    }
}

/// Appends the runs of a window that follows and begins with the last sample of this one.
pub(super) fn append(runs: &mut LimitRuns, next: &LimitRuns) {
    for (id, later) in next {
        let runs = runs.entry(*id).or_default();
        later.iter().for_each(|run| push(runs, run.clone()));
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
            if let Some(run) = LimitRun::of(Nanos(second * 1_000_000_000), &row) {
                push(&mut runs, run);
            }
        }
        assert_eq!(done_under(&runs, IoLimit::WriteBytes, Limit(limit)), expect, "{readings:?}");
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
            runs.extend(LimitRun::of(Nanos(second * 1_000_000_000), &row));
        }
        let mut whole = Vec::new();
        runs.into_iter().for_each(|run| push(&mut whole, run));
        assert_eq!(done_under(&whole, IoLimit::WriteBytes, Limit(7)), Some((10.0, 2.0)));
    }
}
