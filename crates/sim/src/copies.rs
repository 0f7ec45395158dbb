// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speed of copies between programs and the page cache. Programs that copy at once share the memory bandwidth, and
//! a page from another node's memory takes longer. Memory is taken from the first node until it is full (first
//! touch), as if all programs ran there. Later accesses cost the same on every node.

use crate::hypervisor::time_of;
use crate::world::World;

/// Copies between programs and the page cache.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Bytes per second of all concurrent copies; 0 is no limit.
    pub(crate) bandwidth: u64,
    /// Pages of the first node; 0 if there is no other.
    pub(crate) first_node: u64,
    /// Programs that copy now.
    copying: u64,
}

impl Copies {
    /// Ends a program's copy.
    pub(crate) fn end(&mut self) {
        self.copying = self.copying.saturating_sub(1);
    }
}

impl World {
    /// Begins a copy that takes `alone` bytes per second without others. Returns its duration in nanoseconds.
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
