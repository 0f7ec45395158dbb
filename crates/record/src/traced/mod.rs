// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that a tracer adds to a recording: sums over one interval, made in the kernel and read once per sample, and
//! single long waits. One file per topic. Nothing here is judged or derived.

pub mod bytes;
pub mod flusher;
pub mod switches;
pub mod throttle;
pub mod waits;

use crate::name::Name;
use serde::{Deserialize, Serialize};

/// The process of an event, as read in the kernel when the event occurred. It has a name here even if the process
/// started and ended between two samples.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Who {
    /// Process (thread group).
    pub pid: u32,
    /// Name of the task, as in `/proc/PID/comm`.
    pub comm: Name,
    /// Inode number of its cgroup's directory in the unified hierarchy; 1 is the root.
    pub cgroup_ino: u64,
}

/// A file of a filesystem, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct File {
    /// Inode number.
    pub ino: u64,
    /// Distinguishes it from earlier files with the same inode number. If it is not known (the filesystem has no
    /// generations, or the source has only numbers), files with the same number count as one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// Path below the root of its filesystem, starting with `/`; below `…/` where it was too deep.
    pub path: Option<Name>,
}

impl File {
    /// Returns its identity within its filesystem.
    pub fn inode(&self) -> Inode {
        Inode { ino: self.ino, generation: self.generation }
    }
}

/// A file's number, and its generation where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inode {
    /// Inode number.
    pub ino: u64,
    /// See [`File::generation`].
    pub generation: Option<u32>,
}
