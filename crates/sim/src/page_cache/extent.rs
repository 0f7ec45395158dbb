// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of the page cache of an inode: extents of equal folios, and runs of dirty ones.

use crate::arena::CgId;

/// A run of equal folios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Pages.
    pub(crate) len: u32,
    /// Pages of each folio; divides `len` except for the last folio of a truncated file.
    pub(crate) folio: u32,
    /// Pages of it that have to be written: less than `len` if the filesystem tracks the dirty blocks of a folio.
    /// Such extents are one folio.
    pub(crate) blocks: u32,
    /// Stretches of such blocks, each a request of its own; and the page of the folio after the one dirtied last.
    pub(crate) stretches: u16,
    pub(crate) edge: u16,
    /// The memcg it is charged to: that of the task that brought it into the cache.
    pub(crate) owner: CgId,
    /// Has to be written.
    pub(crate) dirty: bool,
    /// Under writeback.
    pub(crate) writeback: bool,
    pub(crate) age: Age,
    /// Met by reclaim before it was clean: off reclaim's lists until it is (`PG_reclaim`).
    pub(crate) reclaim: bool,
}

/// Two flags of the pages of an extent, for reclaim. They share a byte, so that an entry of the cache is half a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Age(u8);

impl Age {
    const ACTIVE: u8 = 1;
    const REFERENCED: u8 = 2;

    pub(crate) fn new(is_active: bool, is_referenced: bool) -> Age {
        Age((u8::from(is_active) * Age::ACTIVE) | (u8::from(is_referenced) * Age::REFERENCED))
    }

    /// Read again after it was referenced: on the active list (`PG_active`).
    pub(crate) fn is_active(self) -> bool {
        self.0 & Age::ACTIVE != 0
    }

    /// Read once since it entered the cache or became active (`PG_referenced`).
    pub(crate) fn is_referenced(self) -> bool {
        self.0 & Age::REFERENCED != 0
    }
}

impl Extent {
    /// An empty extent of folios of a size, clean, and read by no program.
    pub(crate) fn clean(folio: u32, owner: CgId) -> Extent {
        let (dirty, writeback, age, reclaim) = (false, false, Age::default(), false);
        let (stretches, edge) = (0, 0);
        Extent { len: 0, folio, blocks: 0, stretches, edge, owner, dirty, writeback, age, reclaim }
    }

    /// Marks blocks of a folio dirty, from its page `at`. `is_first` if none of them is dirty yet.
    pub(crate) fn dirty_blocks(&mut self, at: u64, count: u32, is_first: bool) {
        let before = if is_first { 0 } else { self.blocks };
        if is_first {
            (self.stretches, self.edge) = (0, 0);
        }
        self.blocks = before.saturating_add(count).min(self.len);
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        if is_first || at != self.edge {
            self.stretches = self.stretches.saturating_add(1);
        }
        self.edge = at.saturating_add(u16::try_from(count).unwrap_or(u16::MAX));
    }

    /// Number of stretches of blocks to write: each has a gap behind it, but for the last one.
    pub(super) fn stretches(&self) -> u64 {
        if self.is_whole() { 1 } else { u64::from(self.stretches).clamp(1, u64::from(self.len - self.blocks) + 1) }
    }

    /// Pages before the first block to write, if its blocks lie side by side; else 0.
    pub(crate) fn lead(&self) -> u64 {
        let is_one_run = !self.is_whole() && self.stretches <= 1;
        if is_one_run { u64::from(self.edge).saturating_sub(u64::from(self.blocks)) } else { 0 }
    }

    /// Whether all of it has to be written if any of it has.
    pub(super) fn is_whole(&self) -> bool {
        self.blocks == self.len
    }

    /// Dirty, and not under writeback.
    pub(super) fn is_waiting(&self) -> bool {
        self.dirty && !self.writeback
    }

    /// Returns the extent with `len` pages. A shorter one must be whole.
    pub(super) fn part(&self, len: u64) -> Extent {
        let len = u32::try_from(len).unwrap_or(self.len);
        debug_assert!(len == self.len || self.is_whole(), "which of its blocks?");
        Extent { len, blocks: if len == self.len { self.blocks } else { len }, ..*self }
    }

    /// Sets its length, in whole folios that have to be written like the others.
    pub(super) fn resize(&mut self, len: u32) {
        (self.len, self.blocks) = (len, len);
    }
}

/// Page after the last of an entry.
pub(super) fn end_of((start, extent): &(u64, Extent)) -> u64 {
    start + u64::from(extent.len)
}

/// Whether an extent is continued by another of the same kind.
pub(super) fn is_joint(start: u64, one: &Extent, next: u64, other: &Extent) -> bool {
    let states = |extent: &Extent| (extent.dirty, extent.writeback, extent.age, extent.reclaim);
    start + u64::from(one.len) == next
        && states(one) == states(other)
        && (one.folio, one.owner) == (other.folio, other.owner)
        && one.is_whole()
        && other.is_whole()
        && (one.folio <= 1 || one.len.is_multiple_of(one.folio))
        && one.len.checked_add(other.len).is_some()
}

/// A run of dirty pages with one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirtyRun {
    pub(crate) start: u64,
    pub(crate) len: u64,
    /// Pages of the run that have to be written.
    pub(crate) blocks: u64,
    /// Stretches of these pages.
    pub(crate) stretches: u64,
    pub(crate) folios: u64,
    pub(crate) owner: CgId,
}

impl DirtyRun {
    /// Appends up to `have` pages of an extent, in whole folios, until the run has `most`. Returns whether all were
    /// taken.
    pub(super) fn take(&mut self, extent: &Extent, have: u64, most: u64) -> bool {
        let (folio, room) = (u64::from(extent.folio.max(1)), most - self.len);
        let some = if have <= room { have } else { have.min(room.div_ceil(folio) * folio) };
        self.len += some;
        let is_joined = extent.is_whole() && self.len > some && self.blocks + some == self.len;
        self.stretches += if is_joined { 0 } else { extent.stretches() };
        // Of a folio that is taken from its middle, at most the pages that are taken.
        self.blocks += if extent.is_whole() { some } else { u64::from(extent.blocks).min(some) };
        self.folios += if folio == 1 { some } else { some.div_ceil(folio) };
        some == have
    }
}
