// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes of a journal to its device: blocks of the log, its superblock, flushes of the device's cache; and the
//! checkpointing of committed blocks.

use super::{BlockSet, of, xfs_log};
use crate::arena::{BlockId, CgId, InodeId, SbId};
use crate::block::{Class, Done, Request, Way, submit_all_and_wait, submit_and_wait};
use crate::engine::Sim;
use crate::flush::{with_data, write_admitted};
use crate::inode::Dirt;
use crate::world::{PAGE, World};

/// Place of a log on its device, pages: beyond every inode.
pub(crate) const LOG: u64 = 1 << 50;

/// Writes blocks of the log, in requests of at most the usual size, all of them at once. They are marked "sync" and "idle", as direct writes are: writeback throttling lets them
/// through. Before 6.8 jbd2 marks them "sync" only: they are throttled as urgent writes. A thread writes the log of ext4. The
/// log of XFS is written by the task that forces it, as a request of its cgroup: on a real 6.12, 200 appends, each with an
/// fdatasync, were 400 writes of their cgroup. Its flushes are a part of that request.
pub(super) async fn write(sim: &Sim, sb: SbId, device: BlockId, bytes: u64, cgroup: CgId) {
    let (class, most) = {
        let world = sim.w();
        (log_class(&world, sb), world.request_pages() * PAGE)
    };
    let part = |at: u64| {
        let log = request(Way::Write, most.min(bytes - at), class);
        Request { cgroup, at: log.at + at / PAGE, ..log }
    };
    let parts = (0..bytes.div_ceil(most).max(1)).map(|number| part(number * most));
    submit_all_and_wait(sim, device, &parts.collect::<Vec<Request>>(), "").await;
}

/// Writes a checkpoint to the log of XFS. It must not reach the device before the data it refers to. Since 5.14 the commit record of
/// one that needs several buffers is written when all of them are on the device. The caller flushes afterwards.
pub(super) async fn write_checkpoint(sim: &Sim, sb: SbId, device: BlockId, bytes: u64, cgroup: CgId) {
    let is_separate = sim.w().behaviour.journal.xfs_separates_commit;
    match is_separate {
        true => flush_alone(sim, device).await,
        false => flush(sim, device).await,
    }
    let mut last = bytes;
    if bytes > xfs_log::BUFFER && is_separate {
        write(sim, sb, device, bytes - xfs_log::SECTOR, cgroup).await;
        flush(sim, device).await;
        last = xfs_log::SECTOR;
    }
    with_data(sim, device, write(sim, sb, device, last, cgroup)).await;
}

/// Class of the writes of a log.
fn log_class(world: &World, sb: SbId) -> Class {
    let is_jbd2 = world.sbs[sb].journal.as_ref().is_some_and(|journal| journal.is_jbd2);
    if is_jbd2 && !world.behaviour.journal.jbd2_is_exempt { Class::Urgent } else { Class::Exempt }
}

/// Writes the journal's superblock if the log on the device is still marked empty.
pub(super) async fn write_superblock(sim: &Sim, sb: SbId, device: BlockId) {
    let class = {
        let mut world = sim.w();
        let class = log_class(&world, sb);
        let is_empty = of(&mut world, sb).is_some_and(|journal| std::mem::take(&mut journal.is_flushed));
        is_empty.then_some(class)
    };
    if let Some(class) = class {
        submit_and_wait(sim, device, request(Way::Write, PAGE, class), "").await;
    }
}

/// Writes the journal's superblock with the new start of the log. Metadata written in place has to be on the device
/// before.
pub(super) async fn write_tail(sim: &Sim, sb: SbId, device: BlockId) {
    flush(sim, device).await;
    write(sim, sb, device, PAGE, CgId::ROOT).await;
}

/// Flushes the device's cache, on behalf of the task that asks for it: the flush is a request of its cgroup. On a real
/// 7.2 with 20 requests a second, four tasks wrote 10 times a second with O_DSYNC.
pub(crate) async fn flush(sim: &Sim, device: BlockId) {
    flush_as(sim, device, Class::Exempt).await;
}

/// Flushes the device's cache by a request of its own, which is not a part of a write. Writeback throttling of a disk counts
/// such a request. On a real 6.12, fdatasyncs of a clean file took 1.5 to 1.6 s, on XFS and on ext4, while another task synced
/// scattered pages of a disk with 120 requests a second: until none of its 192 requests was left.
pub(crate) async fn flush_alone(sim: &Sim, device: BlockId) {
    let is_disk = sim.w().blocks[device].mirrors.is_empty();
    flush_as(sim, device, if is_disk { Class::Urgent } else { Class::Exempt }).await;
}

async fn flush_as(sim: &Sim, device: BlockId, class: Class) {
    let cgroup = sim.w().of_task(sim.current_process());
    let flush = Request { cgroup, ..request(Way::Flush, 0, class) };
    submit_and_wait(sim, device, flush, "a flush of the device's cache").await;
}

/// Writes the commit record of a transaction of jbd2, which flushes the device's cache before it is written. Until 6.7
/// writeback throttling of a disk counts it: it takes its place before that flush, and whatever enters the queue during the
/// flush is ahead of it. On a real 5.10 with 28 requests a second, a record that came while the queue was full had its place
/// 1.2 s later, and was on the disk 3.3 s after that, behind the 95 requests of a flusher that had waited with it.
pub(super) async fn write_record(sim: &Sim, sb: SbId, device: BlockId) {
    let (record, is_counted) = {
        let world = sim.w();
        let record = request(Way::Write, PAGE, log_class(&world, sb));
        (record, record.is_throttled() && world.blocks[device].mirrors.is_empty())
    };
    if !is_counted {
        flush(sim, device).await;
        return with_data(sim, device, write(sim, sb, device, PAGE, CgId::ROOT)).await;
    }
    let has_place = sim.w().wbt_admits(device, &record);
    if !has_place {
        crate::wbt::wait(sim, device, record.class).await;
    }
    flush(sim, device).await;
    with_data(sim, device, write_admitted(sim, device, record)).await;
}

fn request(way: Way, bytes: u64, class: Class) -> Request {
    let at = if way == Way::Flush { 0 } else { LOG };
    Request { way, at, bytes, class, merged: 0, goes_on: false, cgroup: CgId::ROOT, done: Done::Nothing }
}

impl World {
    /// Brings metadata blocks into the cache of the block device. Their pages are charged to the memcg of the first
    /// thread that needs them.
    pub(super) fn cache_metadata(&mut self, sb: SbId, blocks: &[u64], memcg: CgId) {
        let Some(metadata) = self.sbs[sb].metadata else { return };
        for block in blocks {
            if self.inodes[metadata].cache.find(*block).is_none() {
                self.add_to_cache(metadata, *block, 1, 1, memcg);
            }
        }
    }

    /// Makes committed blocks dirty pages of the block device, which are written when they are old. `newest` is the
    /// block that joined the transaction last. jbd2 makes it dirty first, so the inode of the block device, if it
    /// has no wb yet, gets that of the cgroup of this page. A sync writes the pages without the flusher: the inode
    /// stays on the list until the flusher finds it clean. On 6.12, one sync after two cgroups had made files left
    /// it on the list of the second for 30 s.
    pub(super) fn checkpoint(&mut self, sb: SbId, blocks: &BlockSet, newest: Option<u64>) {
        self.dirty_metadata(sb, newest.into_iter().chain(blocks.iter()));
    }

    /// Cleans the dirty pages of a block device that a transaction has changed and not committed: their buffers are
    /// dirty for the journal alone, so writeback finds nothing to write in them. They are dirty again after the commit.
    pub(crate) fn clean_uncommitted(&mut self, sb: SbId, metadata: InodeId) {
        let Some(journal) = &self.sbs[sb].journal else { return };
        let dirty = self.inodes[metadata].cache.extents().filter(|(_, extent)| extent.dirty && !extent.writeback);
        let pages = dirty.flat_map(|(at, extent)| (*at..at + u64::from(extent.len)).map(|page| (page, extent.owner)));
        let uncommitted: Vec<(u64, CgId)> = pages.filter(|(page, _)| journal.has(*page)).collect();
        for (page, owner) in uncommitted {
            self.start_writeback(metadata, page, 1, owner, None);
            self.end_writeback(metadata, page, 1);
        }
    }

    /// Makes metadata blocks dirty pages of the block device.
    pub(super) fn dirty_metadata(&mut self, sb: SbId, blocks: impl Iterator<Item = u64>) {
        let Some(metadata) = self.sbs[sb].metadata else { return };
        for block in blocks {
            // Reclaim may have taken it.
            self.cache_metadata(sb, &[block], CgId::ROOT);
            let found = self.inodes[metadata].cache.find(block).filter(|(_, extent)| !extent.dirty);
            if let Some(owner) = found.map(|(_, extent)| extent.owner) {
                self.inodes[metadata].cache.update(block, 1, |_, extent| extent.dirty = true);
                self.account_dirtied(metadata, 1, 1, owner, None);
                self.mark_inode_dirty(metadata, Dirt::Pages, owner);
            }
        }
    }
}
