// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a step makes its data durable on the way.

use crate::step::{SyncCall, SyncEvery};
use floodline_record::units::Nanos;

/// The schedule of one step.
#[derive(Debug)]
pub(super) struct Durable<'s> {
    sync: Option<&'s SyncEvery>,
    last: Nanos,
}

impl<'s> Durable<'s> {
    pub(super) fn new(sync: Option<&'s SyncEvery>, now: Nanos) -> Durable<'s> {
        Durable { sync, last: now }
    }

    /// The call that is due after block `n` (from 0).
    pub(super) fn due(&mut self, n: u64, now: Nanos) -> Option<SyncCall> {
        let sync = self.sync?;
        let by_count = sync.after.is_some_and(|after| (n + 1).is_multiple_of(after.max(1)));
        let by_time = sync.every.is_some_and(|every| now.0.saturating_sub(self.last.0) >= every.nanos());
        if by_time {
            self.last = now;
        }
        (by_count || by_time).then_some(sync.call)
    }
}
