// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much a filesystem holds. A page takes a block when it is dirtied first beyond what its file has on the device, and
//! gives it back with its file; a write that finds none fails (ENOSPC). Holes are not told apart from blocks: a file that
//! is written here and there takes less here than its pages are. Mirrors delayed allocation as far as it can fail; what a
//! filesystem keeps for itself is what its mkfs program keeps on a device of that size.

use crate::arena::InodeId;
use crate::journal::journal_blocks_of_ext4;
use crate::world::{PAGE, World};
use floodline_scenario::FsType;
use std::ops::Range;

/// Says what a program is told that finds no room.
pub(crate) const NO_SPACE: &str = "No space left on device";
/// Blocks that XFS keeps back for itself (its reserve pool), and its smallest log, in pages.
const XFS_RESERVE: u64 = 8192;
const XFS_LOG_MIN: u64 = (64 << 20) / PAGE;

/// Pages of the log that mkfs makes, by the size of the device in bytes; 0 for a filesystem that has none.
pub(crate) fn usual_log(fs_type: FsType, bytes: u64) -> u64 {
    match fs_type {
        FsType::Ext4 => journal_blocks_of_ext4(bytes),
        FsType::Xfs => XFS_LOG_MIN.max(bytes / PAGE / 2048),
        FsType::Btrfs | FsType::Tmpfs | FsType::Overlay => 0,
    }
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
            // An inode of 256 bytes for every 16 KiB, and the journal. Root may use what is reserved.
            FsType::Ext4 => pages / 64 + log,
            // The log, and what the trees of free space and of shared blocks may grow to.
            FsType::Xfs => log + XFS_RESERVE.min(pages / 20) + pages / 100,
            FsType::Btrfs => pages / 20,
            FsType::Tmpfs | FsType::Overlay => 0,
        };
        Space { capacity: pages.saturating_sub(kept), used: 0 }
    }

    /// Of a tmpfs on a machine with so many pages: half of them.
    pub(crate) fn in_memory(pages: u64) -> Space {
        Space { capacity: pages / 2, used: 0 }
    }
}

impl World {
    /// Takes room for the pages of a range that are new, of which so many are not cached; whether there is enough.
    pub(crate) fn take_space(&mut self, inode: InodeId, pages: &Range<u64>, missing: u64) -> bool {
        let i = &self.inodes[inode];
        if missing == 0 || pages.end <= i.allocated {
            return true;
        }
        let beyond = pages.start.max(i.allocated)..pages.end;
        let new = if beyond.start == pages.start { missing } else { self.missing(inode, &beyond) };
        self.take_blocks(inode, new)
    }

    /// Takes so many blocks for a file; whether there are as many.
    pub(crate) fn take_blocks(&mut self, inode: InodeId, blocks: u64) -> bool {
        let Some(space) = &mut self.sbs[self.inodes[inode].sb].space else { return true };
        let used = space.used.saturating_add(blocks);
        let fits = used <= space.capacity;
        if fits {
            space.used = used;
            self.inodes[inode].space += blocks;
        }
        fits
    }

    /// A file is cut to so many pages: what was beyond is free.
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
        check(FsType::Ext4, 512, 480, 500);
        check(FsType::Ext4, 100 << 10, 99_000, 101_000);
        check(FsType::Xfs, 512, 400, 430);
        check(FsType::Xfs, 100 << 10, 100_000, 101_500);
    }
}
