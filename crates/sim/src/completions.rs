// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells that a process waits for. A sleeper has a new ticket each time; a cell stays the same until it is done.

use crate::engine::{Ticket, Waiters};

/// Cells by number, and those that are free.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    cells: Vec<(bool, Waiters)>,
    free: Vec<u32>,
}

impl Completions {
    /// Opens a new cell.
    pub(crate) fn open(&mut self) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.cells.push((false, Waiters::default()));
            u32::try_from(self.cells.len() - 1).unwrap_or(u32::MAX)
        });
        self.cells[slot as usize].0 = false;
        slot
    }

    /// Whether the cell is done.
    pub(crate) fn is_done(&self, slot: u32) -> bool {
        self.cells[slot as usize].0
    }

    /// Frees a cell that no process reads any more.
    pub(crate) fn close(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Adds a process to be woken when the cell is done.
    pub(crate) fn wait(&mut self, slot: u32, ticket: Ticket) {
        self.cells[slot as usize].1.add(ticket);
    }

    /// Marks a cell as done. Returns the processes that wait for it.
    pub(crate) fn complete(&mut self, slot: u32) -> Waiters {
        self.cells[slot as usize].0 = true;
        self.cells[slot as usize].1.take()
    }
}
