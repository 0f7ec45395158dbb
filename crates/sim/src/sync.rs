// SPDX-License-Identifier: MIT OR Apache-2.0
//! Syncing data to devices: fsync of a file, syncfs, sync, and the sync of an unmount. An overlay syncs the
//! filesystem of its upper directory. Mirrors fs/sync.c, sync_inodes_sb of fs/fs-writeback.c and ovl_sync_fs of
//! fs/overlayfs/super.c.

use crate::arena::{BdiId, InodeId, SbId, WbId};
use crate::engine::Sim;
use crate::journal;
use crate::log_tree;
use crate::wb::{Reason, Work};
use crate::world::{PAGE, World};
use crate::writepages::{How, wait_writeback, writepages};
use std::ops::Range;

/// fsync or fdatasync of an inode.
pub(crate) async fn fsync(sim: &Sim, inode: InodeId, datasync: bool) {
    fsync_range(sim, inode, datasync, 0..u64::MAX / 2).await;
}

/// Makes bytes that were just written with `O_DSYNC` durable, and the metadata that reading them needs
/// (`generic_write_sync`). Other dirty pages of the file stay dirty.
pub(crate) async fn write_sync(sim: &Sim, inode: InodeId, offset: u64, length: u64) {
    if length > 0 {
        let pages = offset / PAGE..offset.saturating_add(length).div_ceil(PAGE);
        fsync_range(sim, inode, true, pages).await;
    }
}

/// Syncs a range of pages of an inode (`vfs_fsync_range`): writes its dirty pages, waits for all of its pages that are
/// under writeback, then commits the transaction of the inode's last change.
async fn fsync_range(sim: &Sim, inode: InodeId, datasync: bool, pages: Range<u64>) {
    let (sb, device) = {
        let world = sim.w();
        let sb = world.inodes[inode].sb;
        (sb, world.sbs[sb].device)
    };
    let Some(device) = device else { return };
    let is_whole = pages.start == 0 && pages.end >= u64::MAX / 2;
    let range = (!is_whole).then_some((pages.start, pages.end));
    writepages(sim, inode, How { range, ..How::all(true) }).await;
    wait_writeback(sim, inode, pages.start, pages.end - pages.start).await;
    if journal::sync_in_place(sim, inode, datasync).await {
        sim.w().inodes[inode].was_truncated = false;
        return;
    }
    if log_tree::sync_log(sim, sb).await {
        sim.w().inodes[inode].was_truncated = false;
        return;
    }
    let tid = {
        let mut world = sim.w();
        let i = &mut world.inodes[inode];
        i.was_truncated = false;
        if datasync { i.datasync_tid } else { i.sync_tid.max(i.datasync_tid) }
    };
    if tid == 0 || !journal::commit(sim, sb, tid).await {
        journal::flush_alone(sim, device).await;
    }
}

impl World {
    fn dirty_wbs(&self, bdi: BdiId, takes_time_dirty: bool) -> Vec<WbId> {
        let has = |wb: &&WbId| {
            let wb = &self.wbs[**wb];
            wb.has_dirty_io || takes_time_dirty && wb.b_dirty_time.len > 0
        };
        self.bdis[bdi].wbs.iter().filter(has).copied().collect()
    }
}

/// Queues work on every wb of a superblock's bdi that has dirty inodes, and waits for all of it.
async fn work_on_all(sim: &Sim, sb: SbId, is_sync: bool) {
    let Some(bdi) = sim.w().sbs[sb].bdi else { return };
    let slots: Vec<u32> = {
        let mut world = sim.w();
        let nr_all = world.nr_all();
        let mut slots = Vec::new();
        for wb in world.dirty_wbs(bdi, is_sync) {
            let slot = world.completions.open();
            let nr_pages = if is_sync { u64::MAX } else { world.split_work(wb, nr_all) };
            let work = Work {
                sb: Some(sb),
                is_sync,
                is_tagged: true,
                for_sync: is_sync,
                nr_pages,
                reason: Reason::Sync,
                done: Some(slot),
                foreign: None,
            };
            world.wb_queue_work(wb, work);
            slots.push(slot);
        }
        slots
    };
    for slot in slots {
        loop {
            {
                let mut world = sim.w();
                if world.completions.is_done(slot) {
                    world.completions.close(slot);
                    break;
                }
                let ticket = sim.ticket("a flusher's work for a sync");
                world.completions.wait(slot, ticket);
            }
            crate::engine::suspend().await;
        }
    }
}

/// A waiter that loses the race after waiting this long gets the lock handed off (`RWSEM_WAIT_TIMEOUT`),
/// milliseconds.
const HANDOFF: u64 = 4;

/// Takes a lock of the world. A process that released it may take it again before the waiters it woke, until a handoff.
pub(crate) async fn lock(sim: &Sim, waits: &'static str, which: impl Fn(&mut World) -> &mut crate::wb::Lock) {
    let me = sim.current_process();
    let mut since = None;
    loop {
        {
            let mut world = sim.w();
            let lock = which(&mut world);
            let is_mine = lock.handoff.is_none_or(|next| next == me);
            if !lock.is_held && lock.readers == 0 && is_mine {
                (lock.is_held, lock.handoff) = (true, None);
                return;
            }
            let now = world.jiffies();
            let has_waited = now > *since.get_or_insert(now) + world.build.ms_to_jiffies(HANDOFF);
            if has_waited && world.behaviour.sync.rwsem_handoff {
                let lock = which(&mut world);
                let is_first = lock.waiters.is_empty();
                lock.handoff = lock.handoff.or(is_first.then_some(me));
            }
        }
        sim.wait(waits, |world| &mut which(world).waiters).await;
    }
}

/// Takes a lock shared with other readers, behind waiting writers.
pub(crate) async fn lock_shared(sim: &Sim, waits: &'static str, which: impl Fn(&mut World) -> &mut crate::wb::Lock) {
    {
        let mut world = sim.w();
        let lock = which(&mut world);
        if !lock.is_held && lock.handoff.is_none() && lock.waiters.is_empty() {
            lock.readers += 1;
            return;
        }
        lock.sharing += 1;
    }
    loop {
        sim.wait(waits, |world| &mut which(world).waiters).await;
        let mut world = sim.w();
        let lock = which(&mut world);
        if lock.granted > 0 {
            lock.granted -= 1;
            return;
        }
        if !lock.is_held {
            (lock.sharing, lock.readers) = (lock.sharing - 1, lock.readers + 1);
            return;
        }
    }
}

/// Releases a lock held as a reader.
pub(crate) fn unlock_shared(sim: &Sim, which: impl Fn(&mut World) -> &mut crate::wb::Lock) {
    let mut world = sim.w();
    let lock = which(&mut world);
    lock.readers = lock.readers.saturating_sub(1);
    if lock.readers == 0 {
        let waiting = lock.waiters.take();
        world.wake_all(waiting);
    }
}

/// Releases a lock held as a writer.
pub(crate) fn unlock(sim: &Sim, which: impl Fn(&mut World) -> &mut crate::wb::Lock) {
    let mut world = sim.w();
    let lock = which(&mut world);
    lock.is_held = false;
    // Waiting readers get the lock before the releasing process can take it again (`rwsem_mark_wake`).
    let sharing = std::mem::take(&mut lock.sharing);
    (lock.readers, lock.granted) = (lock.readers + sharing, lock.granted + sharing);
    let waiting = lock.waiters.take();
    world.wake_all(waiting);
}

/// Writes every dirty inode of a superblock and waits for all of them (`sync_inodes_sb`).
async fn sync_inodes(sim: &Sim, sb: SbId) {
    let Some(bdi) = sim.w().sbs[sb].bdi else { return };
    let locks = sim.w().behaviour.sync.switch_lock;
    if locks {
        lock(sim, "the switch lock of a bdi, held by another sync", |world| &mut world.bdis[bdi].switch_lock).await;
    }
    work_on_all(sim, sb, true).await;
    if locks {
        unlock(sim, |world| &mut world.bdis[bdi].switch_lock);
    }
    lock(sim, "the sync mutex of a superblock", |world| &mut world.sbs[sb].s_sync_lock).await;
    let busy = sim.w().under_writeback(sb);
    for inode in busy {
        wait_writeback(sim, inode, 0, u64::MAX / 2).await;
    }
    unlock(sim, |world| &mut world.sbs[sb].s_sync_lock);
}

/// Writes everything of a superblock to its device (`sync_filesystem`).
pub(crate) async fn sync_filesystem(sim: &Sim, sb: SbId) {
    let upper = { sim.w().sbs[sb].upper.clone() };
    if let Some(upper) = upper {
        let syncs_data = sim.w().behaviour.stack.overlay_syncs_upper;
        if upper.is_volatile {
            return;
        }
        if syncs_data {
            Box::pin(sync_filesystem(sim, upper.sb)).await;
        } else {
            journal::sync_fs(sim, upper.sb).await;
        }
        return;
    }
    if sim.w().sbs[sb].device.is_none() {
        return;
    }
    work_on_all(sim, sb, false).await;
    // First without waiting, then with waiting.
    sim.w().journal_start_commit(sb);
    let metadata = { sim.w().sbs[sb].metadata };
    if let Some(metadata) = metadata {
        writepages(sim, metadata, How::all(false)).await;
    }
    sync_inodes(sim, sb).await;
    journal::sync_fs(sim, sb).await;
    if let Some(metadata) = metadata {
        fsync_pages(sim, metadata).await;
    }
}

/// Writes an inode's pages and waits for them.
async fn fsync_pages(sim: &Sim, inode: InodeId) {
    writepages(sim, inode, How::all(true)).await;
    wait_writeback(sim, inode, 0, u64::MAX / 2).await;
}

/// sync(2).
pub(crate) async fn sync_all(sim: &Sim) {
    sim.w().wakeup_flushers(Reason::Sync);
    let leaving: Vec<SbId> = {
        let world = sim.w();
        world.sbs.iter().filter(|(_, sb)| sb.s_umount.is_held).map(|(id, _)| id).collect()
    };
    for sb in leaving {
        // A filesystem that is being unmounted stays until it is written.
        lock(sim, "a filesystem that is being unmounted", |world| &mut world.sbs[sb].s_umount).await;
        unlock(sim, |world| &mut world.sbs[sb].s_umount);
    }
    let (overlays, sbs): (Vec<SbId>, Vec<SbId>) = {
        let world = sim.w();
        let mounted = world.sbs.iter().filter(|(_, sb)| sb.is_mounted || sb.is_detached);
        mounted.map(|(id, _)| id).partition(|id| world.sbs[*id].upper.is_some())
    };
    for sb in &sbs {
        sync_inodes(sim, *sb).await;
    }
    // Filesystems commit in parallel, and devices write in parallel.
    for sb in &sbs {
        sim.w().journal_start_commit(*sb);
    }
    for sb in &sbs {
        journal::sync_fs(sim, *sb).await;
    }
    if sim.w().behaviour.sync.visits_overlays {
        for overlay in overlays {
            sync_filesystem(sim, overlay).await;
        }
    }
    let metadata: Vec<InodeId> = { sbs.iter().filter_map(|sb| sim.w().sbs[*sb].metadata).collect() };
    for inode in &metadata {
        writepages(sim, *inode, How::all(true)).await;
    }
    for inode in metadata {
        wait_writeback(sim, inode, 0, u64::MAX / 2).await;
    }
    sim.w().laptop_sync_completion();
}
