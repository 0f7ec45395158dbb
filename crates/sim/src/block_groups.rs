// SPDX-License-Identifier: MIT OR Apache-2.0
//! Placement of the inodes of files by ext4. It spreads directories of the root over the flexible groups of the disk, and puts
//! everything below such a directory into its group. A file created there changes the group's inode bitmap and inode table,
//! and a block of its directory. Messages for sixteen mailboxes change sixteen of each; in one directory they share them.
//! Mirrors find_group_orlov and find_group_other.

use crate::filesystem::{
    DIRECTORIES, FIRST_INODES, GROUP_DESCRIPTOR, INODE_BITMAP, INODES_PER_BLOCK, Superblock, inode_block,
};
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

/// Returns the metadata blocks that a new name in a directory of the root changes, for a file whose inode is in `block`.
pub(crate) fn named_blocks(directory: u64, block: u64) -> [u64; 5] {
    let group = block / GROUP_BLOCKS * GROUP_BLOCKS;
    [group + INODE_BITMAP, GROUP_DESCRIPTOR, DIRECTORIES, FIRST_DIRECTORY + directory, block]
}
