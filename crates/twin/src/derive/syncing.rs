// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps that sync a file after some of its calls.

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
