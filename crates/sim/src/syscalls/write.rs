// SPDX-License-Identifier: MIT OR Apache-2.0
//! write(2) through the page cache. In one step, a task writes a stride: up to its next poll point, as no event on
//! the way can change what it does. Mirrors generic_perform_write and iomap_file_buffered_write.

use super::read::fetch;
use super::{INODE_LOCKED, OUT_OF_MEMORY, change_size, update_time};
use crate::arena::{CgId, InodeId, PidId, SbId, WbId};
use crate::balance_dirty_pages::balance_dirty_pages;
use crate::engine::Sim;
use crate::inode::Dirt;
use crate::memory::{NoMemory, make_room};
use crate::memory_high::handle_over_high;
use crate::page_cache::Extent;
use crate::process::use_cpu;
use crate::space::NO_SPACE;
use crate::sync::{lock, unlock};
use crate::world::{PAGE, World};
use floodline_scenario::FsType;
use std::ops::Range;

/// Writes to a file through the page cache, at its end if no offset is given. Returns the offset.
pub(crate) async fn write(
    sim: &Sim,
    pid: PidId,
    inode: InodeId,
    offset: Option<u64>,
    len: u64,
) -> Result<u64, &'static str> {
    let (costs, cgroup, is_iomap) = {
        let mut world = sim.w();
        let task = &mut world.pids[pid];
        (task.io.wchar, task.io.syscw) = (task.io.wchar + len, task.io.syscw + 1);
        let cgroup = task.charges.unwrap_or(task.cgroup);
        (world.costs, cgroup, world.sbs[world.inodes[inode].sb].fs_type == FsType::Xfs)
    };
    lock(sim, INODE_LOCKED, |world| &mut world.inodes[inode].lock).await;
    use_cpu(sim, pid, costs.call, false).await;
    update_time(sim, pid, inode).await;
    let (offset, mut writing) = {
        let mut world = sim.w();
        let offset = offset.unwrap_or(world.inodes[inode].size);
        let wb = if len > 0 { world.throttled_wb(pid, inode) } else { None };
        (
            offset,
            Writing {
                pid,
                inode,
                cgroup,
                owner: world.page_owner(cgroup),
                at: offset,
                pass: offset,
                end: offset + len,
                wb,
            },
        )
    };
    let mut result = Ok(offset);
    while writing.at < writing.end {
        if is_iomap && let Some((wb, pages)) = writing.has_to_look(sim) {
            balance_dirty_pages(sim, pid, wb, pages).await;
        }
        let (stride, is_done, is_new, size) = {
            let mut world = sim.w();
            let size = world.inodes[inode].size;
            if world.pids[pid].is_killed(world.now) {
                break;
            }
            if writing.at >= writing.pass {
                writing.pass = world.pass_end(inode, writing.at, writing.end);
            }
            let stride = world.stride(&writing);
            let missing = world.missing(inode, &stride.pages);
            if !world.take_space(inode, &stride.pages, missing) {
                result = Err(NO_SPACE);
                break;
            }
            let is_free = stride.is_whole() && world.has_room(cgroup, missing);
            if is_free {
                world.take_in(&writing, &stride, missing);
            }
            (stride, is_free, missing > 0, size)
        };
        if !is_done && wait_for_room(sim, &writing, &stride).await.is_err() {
            result = Err(OUT_OF_MEMORY);
            break;
        }
        let nanos = sim.w().begin_copy(stride.bytes.end - stride.bytes.start, costs.copy_in, is_new);
        use_cpu(sim, pid, nanos, false).await;
        sim.w().copies.end();
        writing.at = stride.bytes.end;
        let grown = sim.w().grows_in_place(inode, size, writing.at);
        if let Some(block) = grown {
            change_size(sim, pid, inode, block).await;
        }
        if !is_iomap && let Some((wb, pages)) = writing.has_to_look(sim) {
            balance_dirty_pages(sim, pid, wb, pages).await;
        }
    }
    unlock(sim, |world| &mut world.inodes[inode].lock);
    handle_over_high(sim, pid).await;
    result
}

/// A write in progress.
#[derive(Clone, Copy)]
struct Writing {
    pid: PidId,
    inode: InodeId,
    /// The cgroup whose limits apply, and the memcg that its pages are charged to.
    cgroup: CgId,
    owner: CgId,
    /// Current position, end of the present pass over an extent, and end of the write; bytes.
    at: u64,
    pass: u64,
    end: u64,
    /// The wb that throttles it, if its pages have a device to go to. It stays the same to the end: branches of a task
    /// share its process, but none may move it (the check of scenarios), and a cgroup that has a process cannot be
    /// removed.
    wb: Option<WbId>,
}

impl Writing {
    /// Returns the wb and the pages for which its task has to check the dirty domains, if it has to.
    fn has_to_look(&self, sim: &Sim) -> Option<(WbId, u64)> {
        let wb = self.wb?;
        let mut world = sim.w();
        debug_assert_eq!(world.throttled_wb(self.pid, self.inode), Some(wb), "a task moved while it wrote");
        Some((wb, world.balance_dirty_pages_ratelimited(self.pid, wb)?))
    }
}

/// Part of a write that is done in one step.
struct Stride {
    bytes: Range<u64>,
    pages: Range<u64>,
}

impl Stride {
    /// Whether it covers its pages completely, so that none has to be read first.
    fn is_whole(&self) -> bool {
        self.bytes.start.is_multiple_of(PAGE) && self.bytes.end.is_multiple_of(PAGE)
    }
}

/// Prepares a stride that begins or ends within a page, or that finds no free memory.
async fn wait_for_room(sim: &Sim, writing: &Writing, stride: &Stride) -> Result<(), NoMemory> {
    let &Writing { pid, inode, cgroup, .. } = writing;
    read_partial_pages(sim, pid, inode, stride).await;
    let missing = sim.w().missing(inode, &stride.pages);
    if missing > 0 {
        make_room(sim, pid, cgroup, missing).await?;
    }
    let mut world = sim.w();
    let missing = world.missing(inode, &stride.pages);
    world.take_in(writing, stride, missing);
    Ok(())
}

/// Reads the pages at the ends of a write that it covers only in part, if they are on the device.
async fn read_partial_pages(sim: &Sim, pid: PidId, inode: InodeId, stride: &Stride) {
    if stride.is_whole() {
        return;
    }
    let needed = {
        let world = sim.w();
        let i = &world.inodes[inode];
        let is_needed = |at: u64| {
            let page = at / PAGE;
            !at.is_multiple_of(PAGE) && page * PAGE < i.size && i.cache.find(page).is_none() && i.is_on_device(page)
        };
        let [first, last] = [stride.bytes.start, stride.bytes.end].map(|at| is_needed(at).then_some(at / PAGE));
        [first, last.filter(|last| Some(*last) != first)]
    };
    for page in needed.into_iter().flatten() {
        // The write itself detects that there is no memory.
        if fetch(sim, pid, inode, page, page..page + 1, 1).await.is_err() {
            return;
        }
    }
}

impl World {
    /// Returns the next stride of a write, up to the next check of the dirty domains by its task.
    fn stride(&self, writing: &Writing) -> Stride {
        let &Writing { pid, inode, at, pass, wb, .. } = writing;
        let some = match wb {
            Some(wb) => self.pages_until_look(pid, wb).max(1),
            None => 1 << 16,
        };
        let first = at / PAGE;
        let until = self.chunk(self.inodes[inode].sb, first, pass.div_ceil(PAGE), some);
        Stride { bytes: at..(until * PAGE).min(pass), pages: first..until }
    }

    /// Puts the pages of a stride into the cache, dirty if they have a device to go to.
    fn take_in(&mut self, writing: &Writing, stride: &Stride, missing: u64) {
        let &Writing { pid, inode, owner, pass, .. } = writing;
        if writing.wb.is_some() {
            self.write_pages(inode, &stride.pages, missing, owner, pass.div_ceil(PAGE), Some(pid));
        } else if missing > 0 {
            self.fill_holes(inode, &stride.pages, owner, pass.div_ceil(PAGE));
        }
        let i = &mut self.inodes[inode];
        i.size = i.size.max(stride.bytes.end);
    }

    /// Returns the block of an inode whose file has grown from `size` to `end`, if ext4 logs the new size at once: the last
    /// block has been allocated before. The size of a file with a new block changes with the allocation.
    fn grows_in_place(&self, inode: InodeId, size: u64, end: u64) -> Option<u64> {
        let i = &self.inodes[inode];
        let is_ext4 = self.sbs[i.sb].fs_type == FsType::Ext4;
        (is_ext4 && end > size && i.is_on_device((end - 1) / PAGE)).then_some(i.block)
    }

    /// End of the next stride of a write: after `some` pages, at the end of a folio.
    fn chunk(&self, sb: SbId, first: u64, last: u64, some: u64) -> u64 {
        let by_write = self.sbs[sb].folios.by_write;
        if by_write <= 1 {
            return last.min(first + some);
        }
        let mut at = first;
        while at < last && at - first < some {
            at += folio_for(at, last - at, by_write);
        }
        at.min(last)
    }

    /// Number of pages of a range that are not cached.
    pub(crate) fn missing(&self, inode: InodeId, pages: &Range<u64>) -> u64 {
        let (len, cache) = (pages.end - pages.start, &self.inodes[inode].cache);
        // Files are mostly written at their end, where nothing is cached.
        if cache.ends_before(pages.start) {
            return len;
        }
        let cached: u64 = cache.range(pages.start, len).map(|(_, e)| u64::from(e.len)).sum();
        len - cached
    }

    /// Puts the missing pages of a write into the cache, in the largest folios that the filesystem makes.
    fn fill_holes(&mut self, inode: InodeId, pages: &Range<u64>, owner: CgId, last: u64) {
        let by_write = self.sbs[self.inodes[inode].sb].folios.by_write;
        let mut next = pages.start;
        while let Some((start, len)) = self.inodes[inode].cache.hole(next, pages.end.saturating_sub(next)) {
            let folio = if by_write <= 1 { 1 } else { folio_for(start, len.min(last - start), by_write) };
            next = start + if by_write <= 1 { len } else { folio };
            self.add_to_cache(inode, start, next - start, u32::try_from(folio).unwrap_or(1), owner);
        }
    }

    /// Puts the missing pages of a write into the cache, `missing` of them, and marks all its pages dirty.
    pub(crate) fn write_pages(
        &mut self,
        inode: InodeId,
        pages: &Range<u64>,
        missing: u64,
        owner: CgId,
        last: u64,
        by: Option<PidId>,
    ) {
        let by_write = self.sbs[self.inodes[inode].sb].folios.by_write;
        let len = pages.end - pages.start;
        if by_write > 1 || missing < len {
            if missing > 0 {
                self.fill_holes(inode, pages, owner, last);
            }
            self.dirty_range(inode, pages.clone(), by);
            return;
        }
        // Single pages, all of them new: they enter the cache dirty.
        self.add_extent(inode, pages.start, len, Extent { dirty: true, ..Extent::clean(1, owner) });
        self.account_dirtied(inode, len, 1, owner, by);
        self.mark_inode_dirty(inode, Dirt::Pages, owner);
    }

    /// Marks the folios of a range dirty, and counts the pages that were clean.
    pub(super) fn dirty_range(&mut self, inode: InodeId, pages: Range<u64>, by: Option<PidId>) {
        let has_blocks = self.sbs[self.inodes[inode].sb].folios.has_dirty_blocks;
        let mut owner_of_first = CgId::ROOT;
        let mut became = 0;
        let mut next = pages.start;
        // A change of one extent may merge it with others, but changes none after it.
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
                    self.inodes[inode].cache.update(from, to - from, |_, e| e.dirty_blocks(at - from, more, false));
                }
                continue;
            }
            let touched = extent.len;
            self.inodes[inode].cache.update(from, to - from, |_, e| {
                e.dirty = true;
                if is_part {
                    e.dirty_blocks(at - from, touched, true);
                } else {
                    e.blocks = e.len;
                }
            });
            became += to - from;
            self.account_dirtied(inode, to - from, extent.folio.into(), extent.owner, by);
        }
        if became > 0 {
            self.mark_inode_dirty(inode, Dirt::Pages, owner_of_first);
        }
    }
}

/// Pages of the folio that a write or a readahead makes at a page: aligned, no larger than the rest of the range.
pub(super) fn folio_for(at: u64, left: u64, most: u64) -> u64 {
    let aligned = if at == 0 { u64::MAX } else { 1 << at.trailing_zeros().min(62) };
    let by_len = 1 << left.max(1).ilog2();
    most.min(aligned).min(by_len).max(1)
}
