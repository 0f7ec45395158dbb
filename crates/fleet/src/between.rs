// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page counters of a machine tell of the time between two samples.

use floodline_record::sample::HostRow;
use floodline_record::units::Pages;

/// Pages of the machine, from one sample to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between {
    /// Dirtied in between.
    pub(crate) dirtied: u64,
    /// Written in between.
    pub(crate) written: u64,
    /// Dirty or under writeback at the first sample.
    pub(crate) before: u64,
    /// The same at the second.
    pub(crate) after: u64,
}

impl Between {
    /// `None` where a counter is missing or ran backwards.
    pub(crate) fn of(one: &HostRow, next: &HostRow) -> Option<Between> {
        let grown = |one: Option<Pages>, next: Option<Pages>| next?.0.checked_sub(one?.0);
        let unwritten = |row: &HostRow| Some(row.nr_dirty?.0.saturating_add(row.nr_writeback?.0));
        Some(Between {
            dirtied: grown(one.nr_dirtied, next.nr_dirtied)?,
            written: grown(one.nr_written, next.nr_written)?,
            before: unwritten(one)?,
            after: unwritten(next)?,
        })
    }

    /// The most that can have been unwritten at one time.
    pub(crate) fn most(self) -> u64 {
        self.before.saturating_add(self.dirtied).saturating_sub(self.written)
    }

    /// Removed before they were written.
    pub(crate) fn removed(self) -> u64 {
        self.most().saturating_sub(self.after)
    }
}
