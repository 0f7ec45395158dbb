// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext4 without a journal: a metadata block is a dirty page of the block device as soon as it is changed, and the
//! flusher writes it when it is old. An fsync writes the data, then the block of its inode and, for a new file, those
//! of its directory, and flushes the device's cache once. No task waits for a commit, and no data is ordered. Mirrors
//! ext4_fsync_nojournal of fs/ext4/fsync.c in outline.

use super::log::flush;
use super::{commit, of};
use crate::arena::{CgId, InodeId, SbId};
use crate::engine::Sim;
use crate::tree_commit;
use crate::world::World;
use crate::writepages::{How, wait_writeback, writepages};

/// Metadata of an inode that changed since it was last synced, in a filesystem without a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unsynced {
    /// Whether anything in the inode changed (`I_DIRTY_SYNC`).
    inode: bool,
    /// Whether reading its data needs the change (`I_DIRTY_DATASYNC`).
    with_data: bool,
    /// Whether its name is new (`EXT4_STATE_NEWENTRY`).
    pub(crate) name: bool,
}

impl World {
    /// Whether a superblock is an ext4 without a journal.
    fn lacks_journal(&self, sb: SbId) -> bool {
        self.sbs[sb].journal.is_none() && self.sbs[sb].metadata.is_some()
    }

    /// Changes metadata blocks of a filesystem without a journal. Other filesystems without a journal have none.
    pub(super) fn change_in_place(&mut self, sb: SbId, blocks: &[u64], memcg: CgId) {
        self.trees_change(sb, blocks);
        if self.lacks_journal(sb) {
            self.cache_metadata(sb, blocks, memcg);
            self.dirty_metadata(sb, blocks.iter().copied());
        }
    }

    /// Notes that an inode of a filesystem without a journal has changed metadata.
    pub(super) fn changed_in_place(&mut self, inode: InodeId, with_data: bool) {
        if self.lacks_journal(self.inodes[inode].sb) {
            let unsynced = &mut self.inodes[inode].unsynced;
            (unsynced.inode, unsynced.with_data) = (true, unsynced.with_data | with_data);
        }
    }
}

/// Makes the metadata of an inode durable whose data was written. Returns whether its filesystem has no journal, and
/// that is done.
pub(crate) async fn sync_in_place(sim: &Sim, inode: InodeId, datasync: bool) -> bool {
    let (device, metadata, blocks) = {
        let mut world = sim.w();
        let sb = world.inodes[inode].sb;
        let (Some(device), Some(metadata)) = (world.sbs[sb].device, world.sbs[sb].metadata) else { return false };
        if !world.lacks_journal(sb) {
            return false;
        }
        let mut blocks = Vec::new();
        let unsynced = world.inodes[inode].unsynced;
        if unsynced.name {
            let [_, _, directories, directory, own] = world.create_blocks(inode);
            blocks.extend([directories, directory, own]);
        } else if unsynced.with_data || unsynced.inode && !datasync {
            blocks.push(world.inodes[inode].block);
        }
        if !blocks.is_empty() {
            world.inodes[inode].unsynced = Unsynced::default();
        }
        (device, metadata, blocks)
    };
    for block in blocks {
        // One after the other: each is a synchronous write of a buffer.
        writepages(sim, metadata, How { range: Some((block, block + 1)), ..How::all(true) }).await;
        wait_writeback(sim, metadata, block, 1).await;
    }
    flush(sim, device).await;
    true
}

/// Commits the journal of a superblock, or the transaction of a btrfs. Flushes the device if the superblock has neither
/// (`ext4_sync_fs`).
pub(crate) async fn sync_fs(sim: &Sim, sb: SbId) {
    if of(&mut sim.w(), sb).is_some() {
        commit(sim, sb, 0).await;
        return;
    }
    if tree_commit::commit(sim, sb).await {
        return;
    }
    let device = {
        let world = sim.w();
        world.sbs[sb].device.filter(|_| world.lacks_journal(sb))
    };
    if let Some(device) = device {
        flush(sim, device).await;
    }
}
