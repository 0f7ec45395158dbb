// SPDX-License-Identifier: MIT OR Apache-2.0
//! Placement of the inodes of files by ext4. It spreads directories of the root over the flexible groups of the disk, and puts
//! everything below such a directory into its group. A file created there changes the group's inode bitmap and inode table,
//! and a block of its directory. Messages for sixteen mailboxes change sixteen of each; in one directory they share them.
//! Mirrors find_group_orlov and find_group_other.
//! A new ext4 reads two blocks on first use: the root directory's, and the inode bitmap of the first flexible group. mkfs left the
//! inode bitmaps of the others to the kernel, and a thread of the kernel has read the block bitmaps (ext4lazyinit). Traced on 6.12.

use crate::filesystem::{
    DIRECTORIES, FIRST_INODES, GROUP_DESCRIPTOR, INODE_BITMAP, INODES_PER_BLOCK, Superblock, inode_block,
};
use crate::perag::Piece;
use crate::world::PAGE;
use crate::xfsaild::METADATA;
use floodline_scenario::FsType;
use std::collections::BTreeMap;

/// Bytes of a flexible group: 16 groups of 128 MiB.
const GROUP_BYTES: u64 = 2 << 30;
/// Largest number of groups that the model distinguishes.
const GROUPS_MAX: u64 = 30;
/// Distance of the metadata blocks of two groups.
const GROUP_BLOCKS: u64 = 1 << 21;
/// Number of the first block of a directory, above those of all groups.
const FIRST_DIRECTORY: u64 = 1 << 26;

/// Directories of the root, and inodes of their groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    directories: BTreeMap<String, u64>,
    created: BTreeMap<u64, u64>,
    unread: Unread,
}

/// Metadata that no program has read since mkfs.
#[derive(Clone, Copy, Debug, Default)]
struct Unread {
    root_directory: bool,
    inode_bitmap: bool,
}

impl Groups {
    /// The groups of a filesystem that was mounted right after mkfs.
    pub(crate) fn new() -> Groups {
        Groups { unread: Unread { root_directory: true, inode_bitmap: true }, ..Groups::default() }
    }

    /// Notes that programs used the filesystem before the workload.
    pub(crate) fn used_before(&mut self) {
        self.unread = Unread::default();
    }

    /// Adds the block of the root directory if a name is the first.
    pub(crate) fn read_for_name(&mut self, read: &mut Vec<Piece>) {
        if std::mem::take(&mut self.unread.root_directory) {
            read.push((METADATA + DIRECTORIES, PAGE));
        }
    }

    /// Adds what a new file has to read, by the block of its inode.
    pub(crate) fn read_for_inode(&mut self, block: u64, read: &mut Vec<Piece>) {
        self.read_for_name(read);
        // Directories of the root share the first flexible group with it.
        if block / GROUP_BLOCKS <= 1 && std::mem::take(&mut self.unread.inode_bitmap) {
            read.push((METADATA + INODE_BITMAP, PAGE));
        }
    }
}

impl Superblock {
    /// Returns the metadata block of a new inode at a path, and the number of its directory below the root.
    pub(crate) fn place_inode(&mut self, path: &str) -> (u64, u64) {
        let below = self.below(path).trim_start_matches('/');
        let top = below.split_once('/').map(|(top, _)| top.to_owned());
        let Some(top) = top.filter(|_| self.fs_type == FsType::Ext4) else {
            self.created += 1;
            return (inode_block(self.journal.as_ref(), self.created), 0);
        };
        let count = self.space.as_ref().map_or(GROUPS_MAX, |space| space.bytes() / GROUP_BYTES).clamp(1, GROUPS_MAX);
        let next = self.groups.directories.len() as u64 + 1;
        let directory = *self.groups.directories.entry(top).or_insert(next);
        let group = 1 + directory % count;
        let created = self.groups.created.entry(group).or_default();
        *created += 1;
        (group * GROUP_BLOCKS + FIRST_INODES + *created / INODES_PER_BLOCK, directory)
    }
}

/// Place of the group of an inode on its filesystem, bytes, by the metadata block of the inode. The kernel takes turns at the groups in
/// an order that depends on a hash, and on 6.1 looks for blocks elsewhere if the first group has the metadata of the others. On a linear
/// device of two disks of 4 GiB, half of the data of four directories was on each.
pub(crate) fn begin_of_group(block: u64) -> u64 {
    (block / GROUP_BLOCKS).saturating_sub(1) * GROUP_BYTES
}

/// Returns the metadata blocks that a new name in a directory of the root changes, for a file whose inode is in `block`.
pub(crate) fn named_blocks(directory: u64, block: u64) -> [u64; 5] {
    let group = block / GROUP_BLOCKS * GROUP_BLOCKS;
    [group + INODE_BITMAP, GROUP_DESCRIPTOR, DIRECTORIES, FIRST_DIRECTORY + directory, block]
}
