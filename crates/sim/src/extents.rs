// SPDX-License-Identifier: MIT OR Apache-2.0
//! Extents of small ext4 files. Blocks of files up to 64 KiB come one after the other from a preallocation that all
//! small files share, so files that grow beside each other get an extent with nearly every allocation. An inode has room
//! for four. More are in a block of their own, which every further allocation changes. Mirrors ext4_mb_group_or_file and
//! the tree of fs/ext4/extents.c. The model has one shared preallocation; a kernel has one for each CPU.

use crate::arena::{Id, InodeId};
use crate::world::World;
use floodline_scenario::FsType;

/// Pages of the largest file that takes its blocks from the shared preallocation (`s_mb_stream_request`).
const SMALL: u64 = 16;
/// Number of extents that fit into an inode.
const IN_INODE: u32 = 4;
/// Number of the first metadata block that holds extents, beyond all inodes.
const FIRST_LEAF: u64 = 1 << 27;

impl World {
    /// Returns the metadata blocks that an allocation up to the page `end` changes, and the number of them.
    pub(crate) fn allocation_blocks(&mut self, inode: InodeId, end: u64) -> ([u64; 4], usize) {
        let [bitmap, descriptor, block] = self.data_blocks(inode);
        let mut blocks = [bitmap, descriptor, block, block];
        let i = &mut self.inodes[inode];
        let sb = &mut self.sbs[i.sb];
        if sb.fs_type != FsType::Ext4 {
            return (blocks, 3);
        }
        let is_small = end <= SMALL;
        let follows = if is_small { sb.last_small == Some(inode) } else { i.extents > 0 };
        if is_small {
            sb.last_small = Some(inode);
        }
        if !follows {
            i.extents = i.extents.saturating_add(1);
        }
        if i.extents <= IN_INODE {
            return (blocks, 3);
        }
        blocks[3] = FIRST_LEAF + inode.number() as u64;
        (blocks, 4)
    }
}
