// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capacity of a filesystem. A page takes a block when it is first dirtied beyond the file's blocks on the device,
//! and the file gives it back when it goes; a write that finds no block fails (ENOSPC). A write call into a hole that is
//! cached, because it was read, takes none here. Mirrors delayed
//! allocation as far as it can fail; the filesystem's own blocks are those that its mkfs program reserves on a
//! device of that size.

use crate::arena::InodeId;
use crate::journal::journal_blocks_of_ext4;
use crate::world::{PAGE, World};
use floodline_scenario::FsType;
use std::ops::Range;

/// Error text of a program that finds no room.
pub(crate) const NO_SPACE: &str = "No space left on device";
/// Blocks of XFS's reserve pool, and its smallest log, in pages.
const XFS_RESERVE: u64 = 8192;
const XFS_LOG_MIN: u64 = (64 << 20) / PAGE;

/// Bytes below which mke2fs makes a small ext4, with blocks of 1 KiB.
const EXT4_SMALL: u64 = 512 << 20;

/// Pages of the log that mkfs creates, by the size of the device in bytes; 0 for a filesystem without a log.
pub(crate) fn usual_log(fs_type: FsType, bytes: u64) -> u64 {
    match fs_type {
        FsType::Ext4 => journal_blocks_of_ext4(bytes),
        FsType::Xfs => XFS_LOG_MIN.max(bytes / PAGE / 2048),
        FsType::Btrfs | FsType::Tmpfs | FsType::Overlay => 0,
    }
}

/// Pages that an ext4 keeps besides its journal. These are its inodes and the blocks for metadata of delayed allocations
/// (`s_resv_clusters`: 2 %, at most 4096 blocks). Root cannot use them, but may use `mkfs.reserved_percent`.
fn of_ext4(bytes: u64) -> u64 {
    let pages = bytes / PAGE;
    // mke2fs.conf: 256 bytes for every 16 KiB. Below 512 MiB, blocks have 1 KiB, with 256 bytes for every 4 KiB.
    let (inodes, reserved_most) = if bytes < EXT4_SMALL { (pages / 15, 1024) } else { (pages / 64, 4096) };
    inodes + (pages / 50).min(reserved_most)
}

/// Blocks of a filesystem, in pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    capacity: u64,
    used: u64,
}

impl Space {
    /// The space of a new filesystem, by the size of its device in bytes and that of its log in pages.
    pub(crate) fn on_device(fs_type: FsType, bytes: u64, log: u64) -> Space {
        let pages = bytes / PAGE;
        let kept = match fs_type {
            // A journal that mke2fs creates has the block size of the filesystem.
            FsType::Ext4 if bytes < EXT4_SMALL && log == usual_log(fs_type, bytes) => of_ext4(bytes) + log / 4,
            FsType::Ext4 => of_ext4(bytes) + log,
            // The log, and room for the trees of free space and of shared blocks to grow.
            FsType::Xfs => log + XFS_RESERVE.min(pages / 20) + pages / 100,
            FsType::Btrfs => pages / 20,
            FsType::Tmpfs | FsType::Overlay => 0,
        };
        Space { capacity: pages.saturating_sub(kept), used: 0 }
    }

    /// The space of a tmpfs on a machine with `pages` pages: half of them.
    pub(crate) fn in_memory(pages: u64) -> Space {
        Space { capacity: pages / 2, used: 0 }
    }

    /// Size in bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.capacity * PAGE
    }
}

impl World {
    /// Takes room for the new pages of a range, of which `missing` are not cached. Returns whether there is enough.
    pub(crate) fn take_space(&mut self, inode: InodeId, pages: &Range<u64>, missing: u64) -> bool {
        let i = &self.inodes[inode];
        if missing == 0 {
            return true;
        }
        let in_holes: u64 = match i.gaps {
            None => 0,
            Some(_) => i.holes(pages.clone()).iter().map(|hole| self.missing(inode, hole)).sum(),
        };
        if pages.end <= i.allocated {
            return in_holes == 0 || self.take_blocks(inode, in_holes);
        }
        let beyond = pages.start.max(i.allocated)..pages.end;
        let new = if beyond.start == pages.start { missing } else { self.missing(inode, &beyond) };
        self.take_blocks(inode, new + in_holes)
    }

    /// Takes room for all pages of a range that have no block. Returns whether there is enough.
    pub(crate) fn take_holes(&mut self, inode: InodeId, pages: &Range<u64>) -> bool {
        let i = &self.inodes[inode];
        let in_holes: u64 = i.holes(pages.clone()).iter().map(|hole| hole.end - hole.start).sum();
        let new = in_holes + pages.end.saturating_sub(i.allocated.max(pages.start));
        self.take_blocks(inode, new)
    }

    /// Takes `blocks` blocks for a file. Returns whether there are as many.
    fn take_blocks(&mut self, inode: InodeId, blocks: u64) -> bool {
        let Some(space) = &mut self.sbs[self.inodes[inode].sb].space else { return true };
        let used = space.used.saturating_add(blocks);
        let fits = used <= space.capacity;
        if fits {
            space.used = used;
            self.inodes[inode].space += blocks;
        }
        fits
    }

    /// Frees the blocks of a file beyond its first `keeps` ones.
    pub(crate) fn release_space(&mut self, inode: InodeId, keeps: u64) {
        let i = &mut self.inodes[inode];
        let freed = i.space.saturating_sub(keeps);
        i.space -= freed;
        if let Some(space) = &mut self.sbs[i.sb].space {
            space.used = space.used.saturating_sub(freed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filesystem_keeps_some_of_its_device_for_itself() {
        let check = |fs_type, mebibytes: u64, from, to| {
            let bytes = mebibytes << 20;
            let has = (Space::on_device(fs_type, bytes, usual_log(fs_type, bytes)).capacity * PAGE) >> 20;
            assert!((from..=to).contains(&has), "{fs_type:?} on {mebibytes} MiB: {has} MiB");
        };
        // Filled on a real 6.12: 53.4 MiB of 64, and 237.9 MiB of an XFS of 320.
        check(FsType::Ext4, 64, 53, 55);
        check(FsType::Xfs, 320, 236, 239);
        // Values of dumpe2fs minus the reserved clusters: 114 - 2, 364 - 4, 487 - 10.
        check(FsType::Ext4, 128, 111, 113);
        check(FsType::Ext4, 400, 359, 361);
        check(FsType::Ext4, 512, 476, 478);
        check(FsType::Ext4, 100 << 10, 99_000, 101_000);
        check(FsType::Xfs, 512, 400, 430);
        check(FsType::Xfs, 100 << 10, 100_000, 101_500);
    }
}
