// SPDX-License-Identifier: MIT OR Apache-2.0
//! Age at which a transaction is committed without a request. A timer of ext4 goes off at the end of a second, up to 1.3 s
//! later than the transaction is old. A task that leaves an old transaction requests its commit at once, and the thread of
//! the journal commits an old transaction whenever it is awake. The log of XFS has neither: a worker forces it.
//! Mirrors t_expires of fs/jbd2/transaction.c and kjournald2 of fs/jbd2/journal.c.

use crate::arena::SbId;
use crate::world::World;

/// When a transaction is old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiry {
    /// Jiffy from which it is old; never for XFS.
    old: u64,
    /// Time at which the timer goes off.
    pub(super) timer: u64,
}

impl Expiry {
    /// Whether it has passed for a task that leaves the transaction, and for the journal's thread while it is awake.
    pub(super) fn is_old(self, jiffies: u64) -> bool {
        jiffies >= self.old
    }
}

impl World {
    /// Expiry of a transaction that begins now.
    pub(super) fn journal_expiry(&self, sb: SbId) -> Expiry {
        let Some(journal) = &self.sbs[sb].journal else { return Expiry { old: u64::MAX, timer: self.now } };
        match journal.is_jbd2 {
            true => Expiry {
                old: self.jiffies().saturating_add(self.build.ms_to_jiffies(journal.interval / 1_000_000)),
                timer: self.timer(self.round_jiffies_up(journal.interval)),
            },
            false => Expiry { old: u64::MAX, timer: journal.next_round(self.now) },
        }
    }

    /// Requests the commit of the running transaction if it is old: a task leaves it.
    pub(super) fn journal_left(&mut self, sb: SbId) {
        let Some(journal) = &self.sbs[sb].journal else { return };
        let Some(running) = &journal.running else { return };
        let tid = running.tid;
        if journal.requested < tid && running.expiry.is_old(self.jiffies()) {
            self.journal_request(sb, tid);
        }
    }
}
