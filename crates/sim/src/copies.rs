// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast data is copied between programs and the page cache: those who copy at once share what memory can do, and a
//! page that comes from another node's memory takes longer. Memory is taken from the first node until it is full (first
//! touch), as if all programs ran there; what a page costs later on, wherever it is, is not told apart.

use crate::block::time_of;
use crate::world::World;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Bytes per second of all that copy at once; 0 is no limit.
    pub(crate) bandwidth: u64,
    /// Pages of the first node; 0 where there is no other.
    pub(crate) first_node: u64,
    /// Programs that copy now.
    copying: u64,
}

impl Copies {
    /// A program has copied.
    pub(crate) fn end(&mut self) {
        self.copying = self.copying.saturating_sub(1);
    }
}

impl World {
    /// A program copies some bytes, alone at such a speed, into pages that are new or not; nanoseconds that it takes.
    pub(crate) fn begin_copy(&mut self, bytes: u64, alone: u64, is_new: bool) -> u64 {
        let copies = &mut self.copies;
        copies.copying += 1;
        let mut speed = alone;
        if copies.bandwidth > 0 {
            speed = speed.min(copies.bandwidth / copies.copying.min(self.cpus.max(1)));
        }
        // Two thirds as fast, as measured on a host with two nodes.
        let is_far = is_new && copies.first_node > 0 && self.memory.total - self.memory.free > copies.first_node;
        time_of(bytes, if is_far { speed / 3 * 2 } else { speed }.max(1))
    }
}
