// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls on files: open and close, direct I/O, truncate and unlink. Reads, writes and stores through a
//! mapping are in files of their own.

mod read;
mod store;
mod under_read;
mod write;

pub(crate) use read::{Readahead, read};
pub(crate) use store::store;
pub(crate) use under_read::Reads;
pub(crate) use write::write;

use crate::arena::{BlockId, CgId, InodeId, PidId, SbId};
use crate::block::{Class, Done, Request, Way, device_page, submit_all_and_wait};
use crate::engine::Sim;
use crate::gaps::Gap;
use crate::inode::Dirt;
use crate::journal;
use crate::namespace::{Errno, change_dir, shut_down};
use crate::overlay::{copy_up, unlink_in_lower};
use crate::page_cache::Extent;
use crate::perag::{before_allocation, before_creation};
use crate::process::{may_block, use_cpu};
use crate::space::NO_SPACE;
use crate::sync::{lock, lock_shared, unlock, unlock_shared};
use crate::world::{PAGE, World};
use crate::writepages::{How, wait_writeback, writepages};
use floodline_scenario::FsType;
use std::ops::Range;

/// Wait reason of a task that waits for the lock of an inode.
const INODE_LOCKED: &str = "the lock of an inode, held by another who reads or writes it";

/// An open file: its inode, and the filesystem whose mount point its path went through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    pub(crate) inode: InodeId,
    mount: SbId,
}

impl Opened {
    /// Whether its page cache holds its pages: that of a file opened on an overlay is empty, see
    /// [`Stacks::overlay_has_own_cache`](floodline_kernel::Stacks::overlay_has_own_cache).
    pub(crate) fn has_pages(&self, world: &World) -> bool {
        !world.behaviour.stack.overlay_has_own_cache || world.sbs[self.mount].upper.is_none()
    }

    /// Whether fsync, fdatasync and `O_DSYNC` make this file durable. An overlay that is mounted `volatile` skips these calls
    /// (`ovl_fsync`, `ovl_write_iter`). The overlay does not skip msync, which acts on the file of the upper filesystem.
    pub(crate) fn is_synced(&self, world: &World) -> bool {
        !world.sbs[self.mount].upper.as_ref().is_some_and(|upper| upper.is_volatile)
    }
}

/// Opens a file. Creates the file and the directories above it if they are missing.
pub(crate) async fn open(sim: &Sim, pid: PidId, path: &str, creates: bool) -> Result<Opened, Errno> {
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    let lower = sim.w().only_in_lower(path).filter(|_| !creates);
    if creates {
        Box::pin(copy_up(sim, pid, path)).await?;
    }
    let (sb, path, mount) = {
        let mut world = sim.w();
        let (mount, (sb, path)) = (world.mount_of(path), world.resolve(path));
        let found = match lower {
            Some(_) => lower,
            None => world.may_open(sb, &path, creates)?,
        };
        world.sbs[mount].opened += 1;
        if let Some(inode) = found {
            world.inodes[inode].opens += 1;
            return Ok(Opened { inode, mount });
        }
        (sb, path, mount)
    };
    let create = sim.w().costs.create;
    use_cpu(sim, pid, create, false).await;
    let makes_dir = { sim.w().sbs[sb].makes_dir_of(&path) };
    if makes_dir {
        change_dir(sim, pid, sb).await;
    }
    let made = sim.w().make_file_in(sb, &path);
    if made.is_err() {
        leave_mount(sim, mount).await;
    }
    let (inode, is_new) = made?;
    let (blocks, read) = {
        let mut world = sim.w();
        let i = &mut world.inodes[inode];
        (i.opens, i.unsynced.name) = (i.opens + 1, is_new || i.unsynced.name);
        if !is_new {
            // Another task was faster.
            return Ok(Opened { inode, mount });
        }
        (world.create_blocks(inode), world.take_inode(inode, &path))
    };
    before_creation(sim, pid, sb, &read).await;
    in_transaction(sim, pid, inode, &blocks, false).await;
    let mut world = sim.w();
    if world.sbs[sb].fs_type == FsType::Ext4 {
        let memcg = world.memcg(world.pids[pid].cgroup);
        world.mark_inode_dirty(inode, Dirt::Meta, memcg);
    }
    Ok(Opened { inode, mount })
}

/// Changes metadata blocks of an inode in a transaction.
async fn in_transaction(sim: &Sim, pid: PidId, inode: InodeId, blocks: &[u64], with_data: bool) {
    let sb = sim.w().inodes[inode].sb;
    journal::change(sim, pid, sb, blocks, Some((inode, with_data))).await;
}

/// Changes the size of a file within a block that it has. An fdatasync has to commit that, but no data goes before it.
async fn change_size(sim: &Sim, pid: PidId, inode: InodeId, block: u64) {
    in_transaction(sim, pid, inode, &[block], false).await;
    let i = &mut sim.w().inodes[inode];
    i.datasync_tid = i.datasync_tid.max(i.sync_tid);
}

/// Changes the modification time of an inode.
pub(crate) async fn update_time(sim: &Sim, pid: PidId, inode: InodeId) {
    let waits = sim.w().update_time(pid, inode);
    if let Some(block) = waits {
        in_transaction(sim, pid, inode, &[block], false).await;
    }
}

impl World {
    /// Changes the modification time of an inode, once per tick. Returns the block that has to wait for a transaction.
    fn update_time(&mut self, pid: PidId, inode: InodeId) -> Option<u64> {
        let now = self.jiffies();
        let i = &mut self.inodes[inode];
        let (sb, block) = (i.sb, i.block);
        if std::mem::replace(&mut i.mtime, now) == now {
            return None;
        }
        if self.sbs[sb].is_lazytime {
            let memcg = self.memcg(self.pids[pid].cgroup);
            self.mark_inode_dirty(inode, Dirt::Time, memcg);
            return None;
        }
        let memcg = self.memcg_of(pid);
        (!self.journal_change(sb, &[block], memcg, Some((inode, false)))).then_some(block)
    }
}

/// Reads or writes without the page cache.
pub(crate) async fn direct(
    sim: &Sim,
    pid: PidId,
    inode: InodeId,
    offset: u64,
    len: u64,
    way: Way,
) -> Result<(), &'static str> {
    let (device, cgroup, call) = {
        let mut world = sim.w();
        let device = world.sbs[world.inodes[inode].sb].device;
        let there: u64 = match way {
            Way::Read => world.inodes[inode].stretches(offset, len).iter().map(|(_, len)| len).sum(),
            _ => len,
        };
        let task = &mut world.pids[pid];
        match way {
            Way::Read => {
                (task.io.rchar, task.io.syscr) = (task.io.rchar + len, task.io.syscr + 1);
                task.io.read_bytes += there;
            }
            _ => {
                (task.io.wchar, task.io.syscw) = (task.io.wchar + len, task.io.syscw + 1);
                task.io.write_bytes += len;
            }
        }
        (device, world.memcg(world.pids[pid].cgroup), world.costs.call)
    };
    use_cpu(sim, pid, call, false).await;
    let Some(device) = device else { return Ok(()) };
    let held = if way == Way::Write { hold_for_direct(sim, inode, offset, len).await } else { Held::Nothing };
    if way == Way::Write {
        update_time(sim, pid, inode).await;
    }
    may_block(sim, pid, write_cached(sim, inode, offset, len)).await;
    let done = transfer(sim, pid, inode, (offset, len), way, (device, cgroup)).await;
    if way == Way::Write {
        sim.w().drop_cached(inode, offset, len);
    }
    match held {
        Held::Alone => unlock(sim, |world| &mut world.inodes[inode].lock),
        Held::Shared => unlock_shared(sim, |world| &mut world.inodes[inode].lock),
        Held::Nothing => {}
    }
    done
}

/// Writes what the page cache holds dirty of a range that is about to be read or written past it, and waits until nothing of the range is
/// under writeback (`kiocb_write_and_wait`).
async fn write_cached(sim: &Sim, inode: InodeId, offset: u64, len: u64) {
    let (from, to, is_dirty) = {
        let world = sim.w();
        let cache = &world.inodes[inode].cache;
        let (from, to) = (offset / PAGE, offset.saturating_add(len).div_ceil(PAGE));
        (from, to, cache.dirty > 0 && !cache.dirty_within(from, to).is_empty())
    };
    if is_dirty {
        writepages(sim, inode, How { range: Some((from, to)), ..How::all(true) }).await;
    }
    if sim.w().inodes[inode].cache.has_writeback(from, to - from) {
        wait_writeback(sim, inode, from, to - from).await;
    }
}

/// Pages of a range of bytes.
fn pages_of(offset: u64, len: u64) -> Range<u64> {
    offset / PAGE..offset.saturating_add(len).div_ceil(PAGE)
}

/// How a direct write holds the lock of its inode.
enum Held {
    Alone,
    Shared,
    Nothing,
}

/// Takes the lock of an inode for a direct write. On ext4 a write that needs blocks or extends the file has it alone
/// until its data are on the device (`ext4_dio_write_checks`): of eight that a program has under way on a real 6.12, one is
/// in the queue. On XFS, a write beyond the end of the file waits for all before it (`xfs_file_write_checks`).
async fn hold_for_direct(sim: &Sim, inode: InodeId, offset: u64, len: u64) -> Held {
    const WAITS: &str = "a file that a direct write extends";
    let (is_alone, is_beyond) = {
        let world = sim.w();
        let i = &world.inodes[inode];
        let end = offset.saturating_add(len);
        match world.sbs[i.sb].fs_type {
            FsType::Xfs => (false, offset > i.size),
            _ => (end > i.size || i.gap_in(pages_of(offset, len)) == Some(Gap::Hole), false),
        }
    };
    if is_alone || is_beyond {
        lock(sim, WAITS, |world| &mut world.inodes[inode].lock).await;
    }
    if is_alone {
        return Held::Alone;
    }
    if is_beyond {
        unlock(sim, |world| &mut world.inodes[inode].lock);
    }
    lock_shared(sim, WAITS, |world| &mut world.inodes[inode].lock).await;
    Held::Shared
}

/// Transfers a range of a file to or from its device.
async fn transfer(
    sim: &Sim,
    pid: PidId,
    inode: InodeId,
    (offset, len): (u64, u64),
    way: Way,
    (device, cgroup): (BlockId, CgId),
) -> Result<(), &'static str> {
    let pages = pages_of(offset, len);
    let gap = if way == Way::Write { sim.w().inodes[inode].gap_in(pages.clone()) } else { None };
    if gap == Some(Gap::Hole) {
        if !sim.w().take_holes(inode, &pages) {
            return Err(NO_SPACE);
        }
        before_allocation(sim, inode, cgroup).await;
    }
    let ranges = match way {
        Way::Read => sim.w().inodes[inode].stretches(offset, len),
        _ => vec![(offset, len)],
    };
    let most = sim.w().request_pages() * PAGE;
    let mut requests = Vec::new();
    for (offset, len) in ranges {
        let mut left = len;
        while left > 0 {
            let bytes = left.min(most);
            let at = device_page(inode, (offset + len - left) / PAGE);
            let (class, goes_on, done) = (Class::Exempt, left < len, Done::Nothing);
            requests.push(Request { way, at, bytes, class, merged: 0, goes_on, cgroup, done });
            left -= bytes;
        }
    }
    // All requests of a call are in flight at once (`__iomap_dio_rw`).
    if !requests.is_empty() {
        may_block(sim, pid, submit_all_and_wait(sim, device, &requests, "direct I/O")).await;
    }
    if way == Way::Write {
        let blocks = {
            let mut world = sim.w();
            let i = &mut world.inodes[inode];
            i.size = i.size.max(offset + len);
            i.disk_size = i.size;
            i.fill(pages);
            let all = world.data_blocks(inode);
            if gap == Some(Gap::Hole) { all.to_vec() } else { all[2..].to_vec() }
        };
        if gap.is_some() {
            // New blocks, or the conversion of unwritten ones (`iomap_dio_complete`).
            in_transaction(sim, pid, inode, &blocks, true).await;
        }
    }
    Ok(())
}

/// Reason of a task's end when the OOM killer runs: no page could be reclaimed.
pub(crate) const OUT_OF_MEMORY: &str = "no memory: nothing could be reclaimed";

/// Uses the CPU time of a call that frees the folios of an inode from page `first` on.
async fn use_cpu_to_free(sim: &Sim, pid: PidId, inode: InodeId, first: u64) {
    let nanos = {
        let world = sim.w();
        let folios = |extent: &Extent| u64::from(extent.len / extent.folio.max(1)).max(1);
        let cache = &world.inodes[inode].cache;
        let freed: u64 = cache.range(first, u64::MAX / 2).map(|(_, extent)| folios(&extent)).sum();
        world.costs.call + freed * world.costs.page
    };
    use_cpu(sim, pid, nanos, false).await;
}

/// Waits until no page of an inode from `first` on is under writeback: such pages are not removed. While the caller
/// wakes up, a flusher may begin to write others.
async fn wait_until_idle(sim: &Sim, inode: InodeId, first: u64) {
    while sim.w().inodes[inode].cache.has_writeback(first, u64::MAX / 2) {
        wait_writeback(sim, inode, first, u64::MAX / 2).await;
    }
}

/// Truncates or extends a file.
pub(crate) async fn truncate(sim: &Sim, pid: PidId, inode: InodeId, size: u64) {
    let first = size.div_ceil(PAGE);
    lock(sim, INODE_LOCKED, |world| &mut world.inodes[inode].lock).await;
    use_cpu_to_free(sim, pid, inode, first).await;
    wait_until_idle(sim, inode, first).await;
    let blocks = {
        let mut world = sim.w();
        let gone = world.inodes[inode].cache.remove(first, u64::MAX / 2);
        world.forget(inode, &gone, Some(pid));
        let i = &mut world.inodes[inode];
        i.was_truncated |= size < i.size;
        i.size = size;
        i.disk_size = size;
        i.cut(first);
        i.reserved = i.reserved.min(first);
        if first == 0 {
            i.extents = 0;
        }
        world.release_space(inode, first);
        world.data_blocks(inode)
    };
    in_transaction(sim, pid, inode, &blocks, true).await;
    unlock(sim, |world| &mut world.inodes[inode].lock);
}

/// Allocates a file's blocks from its start on, unwritten, and extends the file to at least that length.
pub(crate) async fn fallocate(sim: &Sim, pid: PidId, inode: InodeId, size: u64) -> Result<(), &'static str> {
    lock(sim, INODE_LOCKED, |world| &mut world.inodes[inode].lock).await;
    let blocks = {
        let mut world = sim.w();
        let end = size.div_ceil(PAGE);
        let has_room = world.take_holes(inode, &(0..end));
        has_room.then(|| {
            let i = &mut world.inodes[inode];
            i.allocate(end);
            i.size = i.size.max(size);
            i.disk_size = i.size;
            world.data_blocks(inode)
        })
    };
    if let Some(blocks) = &blocks {
        let memcg = sim.w().memcg_of(pid);
        before_allocation(sim, inode, memcg).await;
        in_transaction(sim, pid, inode, blocks, true).await;
    }
    unlock(sim, |world| &mut world.inodes[inode].lock);
    blocks.map(|_| ()).ok_or(NO_SPACE)
}

/// Removes a name. The file goes when no process has it open.
pub(crate) async fn unlink(sim: &Sim, pid: PidId, path: &str) -> Result<(), Errno> {
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    if unlink_in_lower(sim, pid, path).await {
        return Ok(());
    }
    let inode = sim.w().linked(path)?;
    let blocks = sim.w().create_blocks(inode);
    {
        let mut world = sim.w();
        let (sb, path) = world.resolve(path);
        world.sbs[sb].unname(&path);
        world.inodes[inode].is_unlinked = true;
    }
    in_transaction(sim, pid, inode, &blocks, false).await;
    if sim.w().inodes[inode].opens == 0 {
        evict(sim, pid, inode).await;
    }
    Ok(())
}

/// Drops an inode whose last name and last open file are gone.
pub(crate) async fn evict(sim: &Sim, pid: PidId, inode: InodeId) {
    use_cpu_to_free(sim, pid, inode, 0).await;
    wait_until_idle(sim, inode, 0).await;
    let mut world = sim.w();
    let gone = world.inodes[inode].cache.remove(0, u64::MAX / 2);
    world.forget(inode, &gone, Some(pid));
    world.release_space(inode, 0);
    let i = &mut world.inodes[inode];
    (i.is_dirty_pages, i.is_dirty_meta, i.is_dirty_time) = (false, false, false);
    if !world.inodes[inode].is_syncing {
        world.list_del(inode);
    }
}

/// Closes a file. The inode and its mount are held, and cannot be unmounted, until the filesystem is done with the
/// inode.
pub(crate) async fn close(sim: &Sim, pid: PidId, opened: Opened) {
    let Opened { inode, mount } = opened;
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    if sim.w().flushes_at_close(inode) {
        // Flush on close after a truncation (XFS), auto_da_alloc (ext4).
        flush(sim, inode).await;
    }
    let is_gone = {
        let i = &mut sim.w().inodes[inode];
        i.opens = i.opens.saturating_sub(1);
        i.opens == 0 && i.is_unlinked
    };
    if is_gone {
        evict(sim, pid, inode).await;
    }
    leave_mount(sim, mount).await;
}

/// Releases the mount of a closed file or a failed open. The last release shuts down a filesystem that has left the
/// tree, before the call returns: mntput leaves the rest to the task's work on its way back to the program.
async fn leave_mount(sim: &Sim, mount: SbId) {
    let is_last = {
        let sb = &mut sim.w().sbs[mount];
        sb.opened = sb.opened.saturating_sub(1);
        sb.opened == 0 && std::mem::take(&mut sb.is_detached)
    };
    if is_last {
        shut_down(sim, mount).await;
    }
}

impl World {
    /// Drops the clean pages of a range that was written past the cache (`invalidate_inode_pages2_range`). Those that became dirty
    /// meanwhile stay.
    fn drop_cached(&mut self, inode: InodeId, offset: u64, len: u64) {
        let cache = &self.inodes[inode].cache;
        let (from, to) = cache.whole_folios(offset / PAGE, offset.saturating_add(len).div_ceil(PAGE));
        let is_clean = |extent: &Extent| !extent.dirty && !extent.writeback;
        let clean: Vec<(u64, u64)> =
            cache.range(from, to - from).filter(|(_, e)| is_clean(e)).map(|(at, e)| (at, u64::from(e.len))).collect();
        for (at, len) in clean {
            let gone = self.inodes[inode].cache.remove(at, len);
            self.forget(inode, &gone, None);
        }
    }

    /// Whether the last close of a file flushes it: once after a truncation.
    fn flushes_at_close(&mut self, inode: InodeId) -> bool {
        let may_flush = self.sbs[self.inodes[inode].sb].flushes_on_close;
        let i = &mut self.inodes[inode];
        let flushes = may_flush && i.was_truncated && i.opens == 1 && !i.is_unlinked && i.cache.dirty > 0;
        i.was_truncated &= !flushes;
        flushes
    }
}

/// Starts writing the dirty pages of a file without waiting (`filemap_flush`).
pub(crate) async fn flush(sim: &Sim, inode: InodeId) {
    writepages(sim, inode, How::all(false)).await;
}
