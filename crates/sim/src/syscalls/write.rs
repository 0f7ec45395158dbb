// SPDX-License-Identifier: MIT OR Apache-2.0
//! write(2) through the page cache. Strides: a task goes on until its next poll point in one step, as nothing it meets
//! on the way can change what it does. Mirrors generic_perform_write and iomap_file_buffered_write.

use super::read::fetch;
use super::{INODE_LOCKED, update_time};
use crate::arena::{CgId, InodeId, PidId, SbId};
use crate::balance_dirty_pages::balance_dirty_pages_ratelimited;
use crate::block::time_of;
use crate::engine::Sim;
use crate::inode::Dirt;
use crate::memory::{NoMemory, make_room};
use crate::page_cache::Extent;
use crate::process::use_cpu;
use crate::sync::{lock, unlock};
use crate::world::{PAGE, World};
use floodline_core::scenario::FsType;
use std::ops::Range;

/// Writes to a file through the page cache, without an offset at its end; the offset.
pub(crate) async fn write(
    sim: &Sim,
    pid: PidId,
    inode: InodeId,
    offset: Option<u64>,
    len: u64,
) -> Result<u64, NoMemory> {
    {
        let mut world = sim.w();
        let io = &mut world.pids[pid].io;
        io.wchar += len;
        io.syscw += 1;
    }
    let (costs, sb, fs_type, cgroup) = {
        let world = sim.w();
        let sb = world.inodes[inode].sb;
        let task = &world.pids[pid];
        (world.costs, sb, world.sbs[sb].fs_type, task.charges.unwrap_or(task.cgroup))
    };
    let has_writeback = sim.w().sbs[sb].bdi.is_some();
    let is_iomap = fs_type == FsType::Xfs;
    lock(sim, INODE_LOCKED, |world| &mut world.inodes[inode].lock).await;
    use_cpu(sim, pid, costs.call, false).await;
    update_time(sim, pid, inode).await;
    let owner = sim.w().page_owner(cgroup);
    let offset = offset.unwrap_or_else(|| sim.w().inodes[inode].size);
    let end = offset + len;
    let mut at = offset;
    let mut result = Ok(offset);
    while at < end {
        if is_iomap && has_writeback {
            balance_dirty_pages_ratelimited(sim, pid, inode).await;
        }
        let first = at / PAGE;
        let until = {
            let mut world = sim.w();
            let some = match world.throttled_wb(pid, inode) {
                Some(wb) => world.pages_until_look(pid, wb).max(1),
                None => 1 << 16,
            };
            world.chunk(sb, first, end.div_ceil(PAGE), some)
        };
        let to = (until * PAGE).min(end);
        read_partial_pages(sim, pid, inode, at..to).await;
        let missing = sim.w().missing(inode, first..until);
        if missing > 0 && make_room(sim, cgroup, missing).await.is_err() {
            result = Err(NoMemory);
            break;
        }
        {
            let mut world = sim.w();
            if has_writeback {
                world.write_pages(inode, first..until, owner, end.div_ceil(PAGE), Some(pid));
            } else {
                world.fill_holes(inode, first..until, owner, end.div_ceil(PAGE));
            }
            let i = &mut world.inodes[inode];
            i.size = i.size.max(to);
        }
        use_cpu(sim, pid, time_of(to - at, costs.copy_in), false).await;
        at = to;
        if !is_iomap && has_writeback {
            balance_dirty_pages_ratelimited(sim, pid, inode).await;
        }
    }
    unlock(sim, |world| &mut world.inodes[inode].lock);
    result
}

/// Fetches the pages at the ends of a write that it covers in part and that are on the device.
async fn read_partial_pages(sim: &Sim, pid: PidId, inode: InodeId, bytes: Range<u64>) {
    if bytes.start.is_multiple_of(PAGE) && bytes.end.is_multiple_of(PAGE) {
        return;
    }
    let needed = {
        let world = sim.w();
        let i = &world.inodes[inode];
        let is_needed = |at: u64| {
            let page = at / PAGE;
            !at.is_multiple_of(PAGE) && page * PAGE < i.size && page < i.allocated && i.cache.find(page).is_none()
        };
        [bytes.start, bytes.end].map(|at| is_needed(at).then_some(at / PAGE))
    };
    for page in needed.into_iter().flatten() {
        // The write itself finds that there is no memory.
        if fetch(sim, pid, inode, page, 1, 1).await.is_err() {
            return;
        }
    }
}

impl World {
    /// Where the next stride of a write ends: after some pages, with a whole folio.
    fn chunk(&self, sb: SbId, first: u64, last: u64, some: u64) -> u64 {
        let by_write = self.sbs[sb].folios.by_write;
        let mut at = first;
        while at < last && at - first < some {
            at += if by_write > 1 { folio_for(at, last - at, by_write) } else { (some - (at - first)).min(last - at) };
        }
        at.min(last)
    }

    fn missing(&self, inode: InodeId, pages: Range<u64>) -> u64 {
        let len = pages.end - pages.start;
        let cached: u64 = self.inodes[inode].cache.range(pages.start, len).map(|(_, e)| u64::from(e.len)).sum();
        len - cached
    }

    /// Puts the pages of a write that are missing into the cache, in folios as large as the filesystem makes.
    fn fill_holes(&mut self, inode: InodeId, pages: Range<u64>, owner: CgId, last: u64) {
        let by_write = self.sbs[self.inodes[inode].sb].folios.by_write;
        let mut next = pages.start;
        while let Some((start, len)) = self.inodes[inode].cache.hole(next, pages.end.saturating_sub(next)) {
            let folio = if by_write <= 1 { 1 } else { folio_for(start, len.min(last - start), by_write) };
            next = start + if by_write <= 1 { len } else { folio };
            self.add_to_cache(inode, start, next - start, u32::try_from(folio).unwrap_or(1), owner);
        }
    }

    /// Brings the pages of a write into the cache where they are missing, and marks them dirty.
    pub(crate) fn write_pages(&mut self, inode: InodeId, pages: Range<u64>, owner: CgId, last: u64, by: Option<PidId>) {
        let by_write = self.sbs[self.inodes[inode].sb].folios.by_write;
        if by_write > 1 || self.inodes[inode].cache.first(pages.start, pages.end).is_some() {
            self.fill_holes(inode, pages.clone(), owner, last);
            self.dirty_range(inode, pages, by);
            return;
        }
        // Single pages, all of them new: they come into the cache as what they will be.
        let len = pages.end - pages.start;
        self.add_extent(inode, pages.start, len, Extent { dirty: true, ..Extent::clean(1, owner) });
        self.account_dirtied(inode, len, owner, by);
        self.mark_inode_dirty(inode, Dirt::Pages, owner);
    }

    /// Marks the folios of a range dirty; what was clean is counted.
    pub(super) fn dirty_range(&mut self, inode: InodeId, pages: Range<u64>, by: Option<PidId>) {
        let has_blocks = self.sbs[self.inodes[inode].sb].folios.has_dirty_blocks;
        let mut owner_of_first = CgId::ROOT;
        let mut became = 0;
        let mut next = pages.start;
        // What is done to one extent may join it with others, but changes none that comes after it.
        while let Some((at, extent)) = self.inodes[inode].cache.first(next, pages.end) {
            next = at + u64::from(extent.len);
            owner_of_first = if became == 0 { extent.owner } else { owner_of_first };
            let (mut from, mut to) = (at, at + u64::from(extent.len));
            if extent.folio > 1 {
                if let Some((start, _)) = self.inodes[inode].cache.folio(from) {
                    from = start;
                }
                if let Some((start, len)) = self.inodes[inode].cache.folio(to - 1) {
                    to = start + u64::from(len);
                }
            }
            let is_part = extent.folio > 1 && has_blocks && (from < pages.start || to > pages.end);
            if extent.dirty {
                if is_part {
                    let more = extent.len;
                    self.inodes[inode]
                        .cache
                        .update(from, to - from, |_, e| e.blocks = e.blocks.saturating_add(more).min(e.len));
                }
                continue;
            }
            let touched = extent.len;
            self.inodes[inode].cache.update(from, to - from, |_, e| {
                e.dirty = true;
                e.blocks = if is_part { touched.min(e.len) } else { e.len };
            });
            became += to - from;
            self.account_dirtied(inode, to - from, extent.owner, by);
        }
        if became > 0 {
            self.mark_inode_dirty(inode, Dirt::Pages, owner_of_first);
        }
    }
}

/// The folio that a write or a readahead makes at a page: aligned, no larger than what is left.
pub(super) fn folio_for(at: u64, left: u64, most: u64) -> u64 {
    let aligned = if at == 0 { u64::MAX } else { 1 << at.trailing_zeros().min(62) };
    let by_len = 1 << left.max(1).ilog2();
    most.min(aligned).min(by_len).max(1)
}
