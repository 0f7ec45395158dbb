// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a tracer adds to a recording: sums over one interval, made in the kernel and read once per
//! sample, and single events that took long. One file per topic. Nothing here is judged or derived.

pub mod bytes;
pub mod flusher;
pub mod switches;
pub mod throttle;
pub mod waits;

use crate::name::Name;
use serde::{Deserialize, Serialize};

/// Who did something, as the kernel saw it while it was done. A process that lived between two samples
/// is in no sample; here it has its name all the same.
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
    /// Tells it from the files that had the number before. Where it is not known (the filesystem keeps none, or what
    /// told of the file has numbers only), all of them are taken for the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// Path below the root of its filesystem, starting with `/`; below `…/` where it was too deep.
    pub path: Option<Name>,
}

impl File {
    /// What tells it from the other files of its filesystem.
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
