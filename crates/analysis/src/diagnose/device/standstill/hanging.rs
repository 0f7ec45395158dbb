// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standstills that had not ended by the last sample. Nothing after them shows what the disk can do, so it must complete no request at
//! all: a disk whose cache is full or whose credit is spent completes some.

use super::{BESIDE, ENOUGH, Explained, HARDLY, LATE, NEARLY, SHORTEST_S, Standstill, Step, Steps, mean};
use floodline_record::units::Nanos;

/// Length of a standstill that has not ended from which it is told although a flush or a discard may be its reason, seconds: neither is
/// counted before it ends.
const UNCOUNTED_MAX_S: f64 = 5.0;

/// The standstill of all or nearly all of the time that was watched, until the last sample, if it is one: the disk had requests, and completed
/// none and no flush and no discard. What it completed in the moment before does not tell its usual pace. Whether a task waits for
/// the requests must be known from elsewhere: a count of requests in flight may be wrong for good.
pub(super) fn whole(steps: &[Option<Step>]) -> Option<Standstill> {
    let steps: Vec<Step> = steps.iter().copied().collect::<Option<_>>()?;
    let (watched, last) = (steps.first()?.start, steps.last()?.end);
    let seconds = |from: Nanos| Nanos(last.0.saturating_sub(from.0)).as_secs_f64();
    let usual_s = seconds(watched) / steps.len() as f64;
    let is_still = |step: &Step| {
        step.pending > 0
            && step.is_busy
            && step.completed <= 0.0
            && !step.has_discards
            && step.flushes.unwrap_or(0.0) <= 0.0
            && step.seconds < LATE * usual_s
    };
    let still = &steps[steps.iter().rposition(|step| !is_still(step)).map_or(0, |other| other + 1)..];
    let first = still.first()?;
    let length = seconds(first.start);
    (length >= UNCOUNTED_MAX_S && length >= NEARLY * seconds(watched)).then(|| Standstill {
        from: first.start,
        to: last,
        in_flight: still.iter().map(|step| step.most_pending).max().unwrap_or(0),
        before: None,
        during: 0.0,
        after: None,
        beside: [(first.start, first.start); 2],
        explained: None,
    })
}

impl Steps {
    /// The standstill from one interval until the last sample, if it is one.
    pub(super) fn open(&self, first: usize, length: f64) -> Option<Standstill> {
        let of = first..self.all.len();
        let end = first.checked_sub(1)?;
        let beside = Nanos((BESIDE * length * 1e9) as u64).0;
        let from = self.all[end].start.0.saturating_sub(beside);
        let before = self.all.partition_point(|step| step.start.0 < from)..end;
        let (inside, before_it) = (&self.all[of.clone()], &self.all[before.clone()]);
        let (usual, busy) = (self.rate(&before), before_it.iter().filter(|step| step.completed > 0.0).count());
        let is_short = self.seconds(&before) < NEARLY * SHORTEST_S || usual * length < ENOUGH;
        if is_short || self.sum(&of).completed > 0.0 || 2 * busy <= before_it.len() {
            return None;
        }
        let usual_writes = mean(before_it, |step| step.writes);
        let has_discards = self.all[before.start..].iter().any(|step| step.has_discards);
        let pending = || match has_discards {
            true => Some(Explained::PendingDiscard),
            false if !self.can_flush => None,
            false => match self.since_flush(first) {
                None => Some(Explained::UncountedFlush),
                Some(cached) => (cached >= HARDLY * usual_writes * length).then_some(Explained::PendingFlush),
            },
        };
        let time = (before_it.first()?.start, before_it.last()?.end);
        Some(Standstill {
            from: self.all[first].start,
            to: inside.last()?.end,
            in_flight: inside.iter().map(|step| step.most_pending).max().unwrap_or(0),
            before: Some(usual),
            during: 0.0,
            after: None,
            beside: [time, time],
            explained: (length < UNCOUNTED_MAX_S).then(pending).flatten(),
        })
    }

    /// Writes that the cache may hold at the beginning of an interval: those since the flush before, and a part of those in the interval in
    /// which it was. `None` where flushes are not counted.
    pub(super) fn since_flush(&self, first: usize) -> Option<f64> {
        let earlier = &self.all[..first];
        if earlier.iter().any(|step| step.flushes.is_none()) {
            return None;
        }
        let flushed = earlier.iter().rposition(|step| step.flushes.is_some_and(|flushes| flushes > 0.0));
        let since: f64 = earlier[flushed.map_or(0, |at| at + 1)..].iter().map(|step| step.writes).sum();
        let left = flushed.map_or(0.0, |at| earlier[at].writes / earlier[at].flushes.unwrap_or(1.0));
        Some(since + left)
    }
}
