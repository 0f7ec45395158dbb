// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entities of a recording: devices, wbs, cgroups, processes. Each [`Entity`] is described once and then referred to by
//! its [`EntityId`]. An id is never reused within a recording.

use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Number of an entity within one recording, in the order of first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntityId(pub u32);

/// A device number, `major:minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevId {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl fmt::Display for DevId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DevId {
    type Err = NotADevice;
    fn from_str(text: &str) -> Result<DevId, NotADevice> {
        let (major, minor) = text.split_once(':').ok_or(NotADevice)?;
        Ok(DevId { major: major.parse().map_err(|_| NotADevice)?, minor: minor.parse().map_err(|_| NotADevice)? })
    }
}

/// The text is not `major:minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid device number: expected MAJOR:MINOR")]
pub struct NotADevice;

impl Serialize for DevId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DevId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<DevId, D::Error> {
        struct Number;
        impl serde::de::Visitor<'_> for Number {
            type Value = DevId;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a device number")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<DevId, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Number)
    }
}

/// Hierarchy of a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hierarchy {
    /// The unified hierarchy.
    V2,
    /// The version 1 hierarchy that carries the memory controller.
    V1Memory,
    /// The version 1 hierarchy that carries the blkio controller.
    V1Blkio,
}

/// An object with a row of readings in the samples.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Entity {
    /// A memory zone of one NUMA node.
    Zone {
        /// NUMA node.
        node: u32,
        /// Zone name as `/proc/zoneinfo` has it.
        name: Name,
    },
    /// A block device of `/proc/diskstats`, whole or partition.
    Disk {
        /// Device number.
        dev: DevId,
        /// Kernel name, e.g. `sda`.
        name: Name,
    },
    /// A backing device info: one per whole disk, and one per superblock of btrfs, NFS, FUSE, ….
    Bdi {
        /// Name below `/sys/class/bdi`, e.g. `8:0` or `btrfs-1`.
        name: Name,
    },
    /// A writeback structure: a bdi and the cgroup whose inodes it holds.
    Wb {
        /// The bdi's name.
        bdi: Name,
        /// Inode number of the cgroup directory; 1 is the root.
        cgroup_ino: u64,
    },
    /// A cgroup.
    Cgroup {
        /// Path below the hierarchy's mount, starting with `/`.
        path: Name,
        /// Hierarchy it belongs to.
        hierarchy: Hierarchy,
        /// Inode number of its directory, if the tree is a real cgroup filesystem.
        ino: Option<u64>,
    },
    /// The I/O of one cgroup on one device.
    CgroupIo {
        /// The cgroup.
        cgroup: EntityId,
        /// The device.
        dev: DevId,
    },
    /// A process (thread group).
    Process {
        /// Process id.
        pid: u32,
        /// Start time since boot in clock ticks; with the pid it identifies a process for good.
        start_ticks: u64,
        /// Name as in `/proc/PID/comm`.
        comm: Name,
        /// Its cgroup: unified, or the v1 memory hierarchy where that is in use.
        cgroup: Option<EntityId>,
        /// Whether it is a kernel thread.
        kthread: bool,
    },
}

impl Entity {
    /// Returns the name to display, escaped.
    pub fn label(&self) -> String {
        match self {
            Entity::Zone { node, name } => format!("node {node} {name}"),
            Entity::Disk { name, .. } | Entity::Bdi { name } => name.to_string(),
            Entity::Wb { bdi, cgroup_ino } => format!("{bdi} cgroup {cgroup_ino}"),
            Entity::Cgroup { path, .. } => path.to_string(),
            Entity::CgroupIo { cgroup, dev } => format!("cgroup #{} on {dev}", cgroup.0),
            Entity::Process { pid, comm, .. } => format!("{comm}[{pid}]"),
        }
    }
}

/// Whether a backing device info is that of a btrfs: they are named `btrfs-1`, `btrfs-2` and so on.
pub fn is_of_btrfs(bdi: &Name) -> bool {
    bdi.as_bytes().starts_with(b"btrfs-")
}
