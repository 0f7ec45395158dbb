// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inodes that move from one cgroup's wb to another's, cgroups that dirty what belongs to another, and the
//! removals of cgroups that set moving off. In the words of fs/fs-writeback.c.

use crate::name::Name;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Inodes moved from one wb to another in one interval (`writeback:inode_switch_wbs`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InodesSwitched {
    /// Begin of the interval; its end is the time of the event.
    pub since: Nanos,
    /// Backing device.
    pub bdi: Name,
    /// Inode number of the cgroup they came from.
    pub old_cgroup_ino: u64,
    /// Inode number of the cgroup they went to.
    pub new_cgroup_ino: u64,
    /// Inodes moved.
    pub switched: u64,
    /// Inodes queued to be moved, where the kernel has the event (since 6.18).
    pub queued: Option<u64>,
    /// When the first was moved or queued.
    pub first_at: Nanos,
    /// When the last was.
    pub last_at: Nanos,
}

/// Folios dirtied by one cgroup in inodes that belong to another's wb (`writeback:track_foreign_dirty`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignDirtied {
    /// Begin of the interval; its end is the time of the event.
    pub since: Nanos,
    /// Backing device.
    pub bdi: Name,
    /// Inode number of the cgroup whose wb has the inodes.
    pub wb_cgroup_ino: u64,
    /// Inode number of the cgroup that the folios are charged to.
    pub page_cgroup_ino: u64,
    /// How often a folio became dirty so.
    pub folios: u64,
    /// The inode it last happened to.
    pub last_ino: u64,
}

/// Flushes of a foreign wb, because one that dirties its inodes was throttled (`writeback:flush_foreign`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignFlushed {
    /// Begin of the interval; its end is the time of the event.
    pub since: Nanos,
    /// Backing device.
    pub bdi: Name,
    /// Inode number of the throttled cgroup.
    pub cgroup_ino: u64,
    /// The kernel's own number of the foreign memory cgroup.
    pub frn_memcg_id: u32,
    /// How often.
    pub flushes: u64,
}

/// A cgroup of the unified hierarchy was removed (`cgroup:cgroup_rmdir`). The time is that of the removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupRemoved {
    /// Inode number of its directory.
    pub cgroup_ino: u64,
    /// Its path, cut after 127 bytes.
    pub path: Name,
}
