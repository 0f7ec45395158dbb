// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata in XFS's log that is not yet written in place, and when the thread that writes it there has to begin (`xfsaild`).

use super::{BlockSet, Journal, Waiters};
use crate::engine::Ticket;

impl Journal {
    /// Next round of XFS's worker, counted from the mount.
    pub(crate) fn next_round(&self, now: u64) -> u64 {
        (now / self.interval.max(1) + 1).saturating_mul(self.interval)
    }

    /// Whether metadata has to be written in place. Wakes `who` later when there is some, or when log room is short.
    pub(crate) fn has_unwritten(&mut self, who: Ticket) -> bool {
        self.writer = Some(who);
        !self.unwritten.0.is_empty()
    }

    /// Takes the metadata blocks that have to be written in place. The journal forgets them.
    pub(crate) fn take_unwritten(&mut self) -> BlockSet {
        (self.is_pushed, self.is_in_flight) = (false, true);
        std::mem::take(&mut self.unwritten)
    }

    /// Has the metadata written in place at once. Returns whom to wake for that.
    pub(crate) fn push(&mut self) -> Option<Ticket> {
        self.is_pushed = !self.unwritten.0.is_empty();
        self.writer.take_if(|_| self.is_pushed)
    }

    /// Whether metadata has to be written in place now: it is asked for, or the log is short of room.
    pub(crate) fn is_due(&self) -> bool {
        self.is_pushed || self.room.is_short()
    }

    /// Number of rounds of writing in place after which what is asked for now is there.
    pub(crate) fn rounds_until_in_place(&self) -> u64 {
        self.rounds + u64::from(self.is_pushed) + u64::from(self.is_in_flight)
    }

    /// Whether that number is reached.
    pub(crate) fn had_rounds(&self, rounds: u64) -> bool {
        self.rounds >= rounds
    }

    /// Records that metadata was written in place, which frees part of XFS's log. Returns the processes that waited for
    /// room.
    pub(crate) fn written_back(&mut self, bytes: u64) -> Waiters {
        self.is_in_flight = false;
        self.rounds += 1;
        self.room.give(bytes);
        self.waiters.take()
    }
}
