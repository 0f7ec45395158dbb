// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps that sync a file: after some of its calls, or at the end of each burst.

use super::bursts::End;
use super::group::Group;
use super::syncs::{Syncs, runs, synced_runs};
use crate::provenance::{Notes, Origin};
use floodline_scenario::{OnFile, Step, SyncCall, SyncEvery, Write};

/// Syncs of a file by number of calls. A step counts its own calls only, so a sync that is rarer than the calls of a burst is a step of
/// its own, after the burst with which there are enough of them.
pub(super) struct Syncing {
    sync: Option<SyncEvery>,
    /// Calls since the last sync.
    calls: std::cell::Cell<u64>,
}

/// Part of the calls between two syncs that a burst may lack for its sync: bytes of bursts are rounded to whole calls.
const FEW: u64 = 32;

impl Syncing {
    pub(super) fn new(sync: Option<SyncEvery>) -> Syncing {
        Syncing { sync, calls: std::cell::Cell::new(0) }
    }

    /// Calls from one sync to the next.
    pub(super) fn after(&self) -> Option<u64> {
        self.sync.as_ref().map(|sync| sync.after.unwrap_or(1).max(1))
    }

    /// A step of `count` calls, and the syncs during and after it. Calls without a rate are synced once, after them.
    pub(super) fn steps(&self, write: Write, count: u64) -> Vec<Step> {
        let Some(sync) = &self.sync else { return vec![Step::Write(write)] };
        let after = sync.after.unwrap_or(1).max(1);
        let calls = self.calls.get() + count % after;
        let is_due = write.rate.is_none() || calls + after / FEW >= after;
        self.calls.set(if is_due { 0 } else { calls });
        let then = is_due.then(|| synced(sync, &write.file));
        let during = (write.rate.is_some() && count >= after).then(|| sync.clone());
        std::iter::once(Step::Write(Write { sync: during, ..write })).chain(then).collect()
    }
}

/// The call of a sync on a file.
fn synced(sync: &SyncEvery, file: &str) -> Step {
    let on = OnFile { file: file.to_owned() };
    match sync.call {
        SyncCall::Fsync => Step::Fsync(on),
        SyncCall::SyncFileRange => Step::SyncFileRange(on),
        _ => Step::Fdatasync(on),
    }
}

/// The sync at the end of each burst.
pub(super) fn end_of(group: &Group, syncs: Syncs, file: &str, key: &str, notes: &mut Notes) -> Option<End> {
    let seconds = syncs.at_ends?;
    let (ends, text) = match syncs.is_each_burst {
        true => (
            runs(group),
            "the program waits in its bursts: with a sync at their ends, the twin is nearer to the recording",
        ),
        false => (synced_runs(group), "the program writes in bursts, and waits after each without writing"),
    };
    let at = ends.iter().map(|run| run.end).collect();
    notes.derived(format!("{key}.steps.fsync"), text);
    Some(End { step: Step::Fsync(OnFile { file: file.to_owned() }), seconds, at })
}

/// The sync after a number of the calls of a program, which are `calls`.
pub(super) fn sync_of(syncs: Syncs, calls: f64, key: &str, notes: &mut Notes) -> Option<SyncEvery> {
    let call = syncs.call.filter(|_| syncs.at_ends.is_none())?;
    let after = (calls / syncs.count.max(1.0)).round().max(1.0) as u64;
    let key = format!("{key}.steps.write.sync");
    let text = match syncs.origin {
        _ if syncs.is_by_age && call == SyncCall::SyncFileRange => {
            "data stays dirty for a small part of the time that it would without a sync, and the trace has no call that waits for it: \
             the program starts the writes; writes of the device bound how often"
        }
        _ if syncs.is_by_age => {
            "data stays dirty for a small part of the time that it would without a sync; writes of the device bound how often \
             the program syncs"
        }
        Origin::Measured => "calls for stable storage in the trace",
        Origin::Derived => "the program waits whenever it writes; flushes of the device bound how often it syncs",
        Origin::Assumed => "the program writes little and often, and the device is flushed equally often",
    };
    notes.put(syncs.origin, key, text);
    Some(SyncEvery { call, every: None, after: Some(after) })
}

#[cfg(test)]
mod tests {
    use super::super::bursts::frequency;
    use super::*;
    use floodline_scenario::Pace;

    #[test]
    fn a_sync_that_is_rarer_than_the_calls_of_a_burst_is_made_after_some_of_them() {
        let every = |after| SyncEvery { call: SyncCall::Fsync, every: None, after: Some(after) };
        let told = |after: u64, counts: &[u64], rate: bool| -> Vec<(u64, bool, bool)> {
            let syncing = Syncing::new(Some(every(after)));
            let rate = rate.then(|| Pace::Blocks(frequency(10.0)));
            let of = |count: &u64| {
                let write = Write { file: "/data/log".to_owned(), count: Some(*count), rate, ..Write::default() };
                let steps = syncing.steps(write, *count);
                let Step::Write(write) = &steps[0] else { panic!("{steps:?}") };
                (*count, write.sync.is_some(), steps.len() == 2)
            };
            counts.iter().map(of).collect()
        };
        // 100 calls a sync, in bursts of 40: after the third, and after the sixth.
        let third = [(40, false, false), (40, false, false), (40, false, true)];
        assert_eq!(told(100, &[40; 6], true), [third, third].concat());
        assert_eq!(told(1, &[3, 1], true), [(3, true, false), (1, true, false)]);
        // The calls that are left after the last sync of a burst count on.
        assert_eq!(told(4, &[6, 2, 2], true), [(6, true, false), (2, false, true), (2, false, false)]);
        assert_eq!(told(100, &[40], false), [(40, false, true)]);
        // A burst of a sync has a few calls less.
        assert_eq!(told(100, &[97, 96, 100], true), [(97, false, true), (96, false, false), (100, true, false)]);
    }
}
