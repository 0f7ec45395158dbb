// SPDX-License-Identifier: MIT OR Apache-2.0
//! What programs ask of files: open, write, read, store through a mapping, truncate, unlink. Strides: a
//! task goes on until its next poll point in one step, as nothing it meets on the way can change what it
//! does. Mirrors generic_perform_write, iomap_file_buffered_write, filemap_read and filemap_fault.

mod read;

pub(crate) use read::{Readahead, read};

use crate::arena::{CgId, InodeId, PidId, SbId};
use crate::balance_dirty_pages::balance_dirty_pages_ratelimited;
use crate::block::{Class, Done, Request, Way, device_page, submit_and_wait, time_of};
use crate::engine::Sim;
use crate::inode::Dirt;
use crate::journal;
use crate::memory::{NoMemory, make_room};
use crate::page_cache::Extent;
use crate::process::{io_wait, use_cpu};
use crate::sync::{lock, unlock};
use crate::world::{PAGE, World};
use crate::writepages::{How, wait_writeback, writepages};
use floodline_core::scenario::FsType;
use std::ops::Range;

/// An open file: its inode, and the filesystem by whose mount point it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    pub(crate) inode: InodeId,
    mount: SbId,
}

/// Opens a file, creating it where it is missing.
pub(crate) async fn open(sim: &Sim, pid: PidId, path: &str, creates: bool) -> Option<Opened> {
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    let (found, mount) = {
        let mut world = sim.w();
        let (found, mount) = (world.lookup(path), world.mount_of(path));
        if found.is_some() || creates {
            world.sbs[mount].opened += 1;
        }
        if let Some(inode) = found {
            world.inodes[inode].opens += 1;
        }
        (found, mount)
    };
    if let Some(inode) = found {
        return Some(Opened { inode, mount });
    }
    if !creates {
        return None;
    }
    let create = sim.w().costs.create;
    use_cpu(sim, pid, create, false).await;
    let (inode, blocks, sb) = {
        let mut world = sim.w();
        let inode = world.new_inode(path);
        world.inodes[inode].opens = 1;
        (inode, world.create_blocks(inode), world.inodes[inode].sb)
    };
    in_transaction(sim, pid, inode, &blocks, false).await;
    let mut world = sim.w();
    if world.sbs[sb].fs_type == FsType::Ext4 {
        let memcg = world.memcg(world.pids[pid].cgroup);
        world.mark_inode_dirty(inode, Dirt::Meta, memcg);
    }
    Some(Opened { inode, mount })
}

/// Changes metadata blocks of an inode in a transaction.
async fn in_transaction(sim: &Sim, pid: PidId, inode: InodeId, blocks: &[u64], with_data: bool) {
    let sb = sim.w().inodes[inode].sb;
    if sim.w().sbs[sb].journal.is_none() {
        return;
    }
    io_wait(sim, Some(pid), async {
        journal::start(sim, sb).await;
        journal::modify(sim, sb, blocks).await;
    })
    .await;
    sim.w().journal_joins(inode, with_data);
    journal::stop(sim, sb);
}

/// The change of the modification time that a write brings, once per tick.
async fn update_time(sim: &Sim, pid: PidId, inode: InodeId) {
    let (is_due, is_lazy, block) = {
        let mut world = sim.w();
        let now = world.jiffies();
        let sb = world.inodes[inode].sb;
        let is_lazy = world.sbs[sb].is_lazytime;
        let i = &mut world.inodes[inode];
        let is_due = i.mtime != now;
        i.mtime = now;
        (is_due, is_lazy, i.block)
    };
    if is_due && is_lazy {
        let mut world = sim.w();
        let memcg = world.memcg(world.pids[pid].cgroup);
        world.mark_inode_dirty(inode, Dirt::Time, memcg);
    } else if is_due {
        in_transaction(sim, pid, inode, &[block], false).await;
    }
}

/// Writes to a file through the page cache.
pub(crate) async fn write(sim: &Sim, pid: PidId, inode: InodeId, offset: u64, len: u64) -> Result<(), NoMemory> {
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
    lock(sim, "the lock of an inode, held by another writer", |world| &mut world.inodes[inode].lock).await;
    use_cpu(sim, pid, costs.call, false).await;
    update_time(sim, pid, inode).await;
    let owner = sim.w().page_owner(cgroup);
    let end = offset + len;
    let mut at = offset;
    let mut result = Ok(());
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
    fn dirty_range(&mut self, inode: InodeId, pages: Range<u64>, by: Option<PidId>) {
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
fn folio_for(at: u64, left: u64, most: u64) -> u64 {
    let aligned = if at == 0 { u64::MAX } else { 1 << at.trailing_zeros().min(62) };
    let by_len = 1 << left.max(1).ilog2();
    most.min(aligned).min(by_len).max(1)
}

/// Reads pages that are not cached, into folios no larger than so many pages, and waits for them.
async fn fetch(sim: &Sim, pid: PidId, inode: InodeId, start: u64, len: u64, folio: u64) -> Result<(), NoMemory> {
    let (device, cgroup) = {
        let world = sim.w();
        let task = &world.pids[pid];
        (world.sbs[world.inodes[inode].sb].device, task.charges.unwrap_or(task.cgroup))
    };
    if let Some(device) = device {
        let request = read_request(sim, cgroup, device_page(inode, start), len, 0);
        let waits = "a read from the device";
        io_wait(sim, Some(pid), submit_and_wait(sim, device, request, waits)).await;
        sim.w().pids[pid].io.read_bytes += len * PAGE;
    }
    arrive(sim, cgroup, inode, start, len, folio).await
}

fn read_request(sim: &Sim, cgroup: CgId, at: u64, pages: u64, slot: u32) -> Request {
    let cgroup = sim.w().memcg(cgroup);
    Request {
        way: Way::Read,
        at,
        bytes: pages * PAGE,
        class: Class::Exempt,
        merged: 0,
        cgroup,
        done: Done::Complete(slot),
    }
}

/// Pages have been read: they are in the cache from now on, in folios of at most so many.
async fn arrive(sim: &Sim, cgroup: CgId, inode: InodeId, start: u64, len: u64, most: u64) -> Result<(), NoMemory> {
    make_room(sim, cgroup, len).await?;
    let mut world = sim.w();
    let owner = world.page_owner(cgroup);
    while let Some((at, hole)) = world.inodes[inode].cache.hole(start, len) {
        if most <= 1 {
            world.add_to_cache(inode, at, hole, 1, owner);
            continue;
        }
        let folio = folio_for(at, hole, most);
        // A run of folios of the largest size is one extent.
        let run = if folio == most { hole / most * most } else { folio };
        world.add_to_cache(inode, at, run, u32::try_from(folio).unwrap_or(1), owner);
    }
    Ok(())
}

/// Reads or writes past the page cache.
pub(crate) async fn direct(sim: &Sim, pid: PidId, inode: InodeId, offset: u64, len: u64, way: Way) {
    let (device, cgroup, call) = {
        let mut world = sim.w();
        let device = world.sbs[world.inodes[inode].sb].device;
        let task = &mut world.pids[pid];
        match way {
            Way::Read => {
                (task.io.rchar, task.io.syscr) = (task.io.rchar + len, task.io.syscr + 1);
                task.io.read_bytes += len;
            }
            _ => {
                (task.io.wchar, task.io.syscw) = (task.io.wchar + len, task.io.syscw + 1);
                task.io.write_bytes += len;
            }
        }
        (device, world.memcg(world.pids[pid].cgroup), world.costs.call)
    };
    use_cpu(sim, pid, call, false).await;
    let Some(device) = device else { return };
    let most = sim.w().request_pages() * PAGE;
    let mut left = len;
    while left > 0 {
        let bytes = left.min(most);
        let at = device_page(inode, (offset + len - left) / PAGE);
        let request = Request { way, at, bytes, class: Class::Exempt, merged: 0, cgroup, done: Done::Nothing };
        io_wait(sim, Some(pid), submit_and_wait(sim, device, request, "direct I/O")).await;
        left -= bytes;
    }
    let mut world = sim.w();
    let i = &mut world.inodes[inode];
    if way == Way::Write {
        i.size = i.size.max(offset + len);
        i.allocated = i.allocated.max((offset + len).div_ceil(PAGE));
    }
}

/// The kernel kills who asks for memory when none can be had.
pub(crate) const OUT_OF_MEMORY: &str = "no memory: nothing could be reclaimed";

/// A store that faults more often than this will not succeed: with a budget below a folio, each fault brings the
/// flusher that cleans the folio before the store is retried.
const FAULTS_MAX: u32 = 10_000;

/// Stores into a page of a shared mapping.
pub(crate) async fn store(
    sim: &Sim,
    pid: PidId,
    inode: InodeId,
    page: u64,
    end: Option<u64>,
) -> Result<(), &'static str> {
    let (sb, cgroup, fault) = {
        let world = sim.w();
        (world.inodes[inode].sb, world.pids[pid].cgroup, world.costs.fault)
    };
    let has_writeback = sim.w().sbs[sb].bdi.is_some();
    let mut faults = 0;
    while !sim.w().inodes[inode].is_writable(page) {
        // Who is killed at the workload's end retries nothing.
        if end.is_some_and(|end| faults > 0 && sim.now() >= end) {
            break;
        }
        faults += 1;
        if faults > FAULTS_MAX {
            return Err("one store faulted over and over: its folio is cleaned before every retry");
        }
        let is_cached = sim.w().inodes[inode].cache.find(page).is_some();
        if !is_cached {
            let (start, len, is_on_disk, folio) = {
                let world = sim.w();
                // Around the page, half of the window on either side (`do_sync_mmap_readahead`).
                let window = world.sbs[sb].bdi.map_or(1, |bdi| world.bdis[bdi].read_ahead / PAGE).max(1);
                let start = page.saturating_sub(window / 2);
                let i = &world.inodes[inode];
                let end = (start + window).min(i.size.div_ceil(PAGE)).max(page + 1);
                let hole = i.cache.hole(start, end - start).filter(|(at, len)| page >= *at && page < at + len);
                let (at, len) = hole.unwrap_or((page, 1));
                (at, len, page < i.allocated, world.sbs[sb].folios.by_fault)
            };
            count_fault(sim, pid, is_on_disk);
            if is_on_disk {
                fetch(sim, pid, inode, start, len, folio).await.map_err(|_| OUT_OF_MEMORY)?;
            } else {
                make_room(sim, cgroup, 1).await.map_err(|_| OUT_OF_MEMORY)?;
                let mut world = sim.w();
                let owner = world.page_owner(cgroup);
                if world.inodes[inode].cache.find(page).is_none() {
                    world.add_to_cache(inode, page, 1, 1, owner);
                }
            }
        } else {
            count_fault(sim, pid, false);
        }
        use_cpu(sim, pid, fault, false).await;
        if has_writeback {
            update_time(sim, pid, inode).await;
        }
        {
            let mut world = sim.w();
            let Some((start, len)) = world.inodes[inode].cache.folio(page) else { continue };
            if has_writeback {
                world.dirty_range(inode, start..start + u64::from(len), Some(pid));
            }
            world.inodes[inode].set_writable(page);
        }
        // The store itself comes after the throttle: the page may have been cleaned by then.
        if has_writeback {
            balance_dirty_pages_ratelimited(sim, pid, inode).await;
        }
    }
    Ok(())
}

fn count_fault(sim: &Sim, pid: PidId, is_major: bool) {
    let mut world = sim.w();
    let cgroup = world.pids[pid].cgroup;
    world.memory.pgfault += 1;
    let mut at = Some(cgroup);
    while let Some(id) = at {
        world.cgroups[id].pgfault += 1;
        at = world.cgroups[id].parent;
    }
    if is_major {
        world.memory.pgmajfault += 1;
        world.pids[pid].io.majflt += 1;
    } else {
        world.pids[pid].io.minflt += 1;
    }
}

/// The CPU time of a call that frees the folios of an inode from a page on.
async fn use_cpu_to_free(sim: &Sim, pid: PidId, inode: InodeId, first: u64) {
    let nanos = {
        let world = sim.w();
        let folios = |extent: &crate::page_cache::Extent| u64::from(extent.len / extent.folio.max(1)).max(1);
        let cache = &world.inodes[inode].cache;
        let freed: u64 = cache.range(first, u64::MAX / 2).map(|(_, extent)| folios(&extent)).sum();
        world.costs.call + freed * world.costs.page
    };
    use_cpu(sim, pid, nanos, false).await;
}

/// Cuts a file, or extends it.
pub(crate) async fn truncate(sim: &Sim, pid: PidId, inode: InodeId, size: u64) {
    let first = size.div_ceil(PAGE);
    use_cpu_to_free(sim, pid, inode, first).await;
    wait_writeback(sim, inode, first, u64::MAX / 2).await;
    let block = {
        let mut world = sim.w();
        let gone = world.inodes[inode].cache.remove(first, u64::MAX / 2);
        world.forget(inode, &gone, Some(pid));
        let i = &mut world.inodes[inode];
        i.was_truncated |= size < i.size;
        i.size = size;
        i.allocated = i.allocated.min(first);
        i.is_dirty_pages = i.cache.dirty > 0;
        i.block
    };
    in_transaction(sim, pid, inode, &[1, block], true).await;
}

/// Removes a name; the file goes when nobody has it open.
pub(crate) async fn unlink(sim: &Sim, pid: PidId, path: &str) -> bool {
    let Some(inode) = sim.w().lookup(path) else { return false };
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    let blocks = sim.w().create_blocks(inode);
    {
        let mut world = sim.w();
        let (sb, path) = world.resolve(path);
        world.sbs[sb].files.remove(path.as_ref());
        world.inodes[inode].is_unlinked = true;
    }
    in_transaction(sim, pid, inode, &blocks, false).await;
    if sim.w().inodes[inode].opens == 0 {
        evict(sim, pid, inode).await;
    }
    true
}

/// The last name and the last open file of an inode are gone.
pub(crate) async fn evict(sim: &Sim, pid: PidId, inode: InodeId) {
    use_cpu_to_free(sim, pid, inode, 0).await;
    wait_writeback(sim, inode, 0, u64::MAX / 2).await;
    let mut world = sim.w();
    let gone = world.inodes[inode].cache.remove(0, u64::MAX / 2);
    world.forget(inode, &gone, Some(pid));
    let i = &mut world.inodes[inode];
    (i.is_dirty_pages, i.is_dirty_meta, i.is_dirty_time) = (false, false, false);
    if !world.inodes[inode].is_syncing {
        world.list_del(inode);
    }
}

/// Closes a file.
pub(crate) async fn close(sim: &Sim, pid: PidId, opened: Opened) {
    let Opened { inode, mount } = opened;
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    let (is_last, flushes) = {
        let mut world = sim.w();
        let may_flush = world.sbs[world.inodes[inode].sb].flushes_on_close;
        let i = &mut world.inodes[inode];
        i.opens = i.opens.saturating_sub(1);
        let flushes = may_flush && i.was_truncated && i.opens == 0 && i.cache.dirty > 0;
        if flushes {
            i.was_truncated = false;
        }
        let is_last = i.opens == 0;
        let mount = &mut world.sbs[mount];
        mount.opened = mount.opened.saturating_sub(1);
        (is_last, flushes)
    };
    if is_last && sim.w().inodes[inode].is_unlinked {
        evict(sim, pid, inode).await;
    } else if flushes {
        // Flush on close after a truncation (XFS), auto_da_alloc (ext4).
        flush(sim, inode).await;
    }
}

/// Sends out what is dirty of a file, and waits for nothing (`filemap_flush`).
pub(crate) async fn flush(sim: &Sim, inode: InodeId) {
    let how = How {
        is_sync: false,
        is_tagged: true,
        is_cyclic: false,
        nr_to_write: u64::MAX,
        class: Class::Normal,
        range: None,
    };
    writepages(sim, inode, how).await;
}
