// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for stable storage: fsync and its like, sync, and the sync that hides in an unmount.

use super::{File, Who};
use crate::id::DevId;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Operation in which a task waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// `fsync(2)`.
    Fsync,
    /// `fdatasync(2)`; where functions cannot be traced, those of the next kind too.
    Fdatasync,
    /// A part of a file: `msync(2)`, or a write with `O_SYNC` or `O_DSYNC`.
    Range,
    /// `sync(2)`: every filesystem.
    Sync,
    /// A whole filesystem: `syncfs(2)`, an unmount, or a filesystem that syncs the one below it.
    SyncFilesystem,
}

impl Operation {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Fsync => "fsync",
            Operation::Fdatasync => "fdatasync",
            Operation::Range => "msync or O_SYNC",
            Operation::Sync => "sync",
            Operation::SyncFilesystem => "sync of a filesystem",
        }
    }

    /// Whether it waits for data of one file, and not for all dirty data of a filesystem.
    pub fn is_of_file(self) -> bool {
        matches!(self, Operation::Fsync | Operation::Fdatasync | Operation::Range)
    }
}

/// One wait that took longer than the tracer's threshold. Its time is that of its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowSync {
    /// The process that waited.
    #[serde(flatten)]
    pub who: Who,
    /// The thread that waited; older recordings have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// The operation.
    pub operation: Operation,
    /// Length of the wait.
    pub lasted: Nanos,
    /// Device number of the superblock, where the operation has one.
    pub device: Option<DevId>,
    /// The file, where the operation has one.
    pub file: Option<File>,
    /// Bytes of data of this superblock that were queued during the wait, dirtied by any process.
    pub queued: Option<Bytes>,
    /// Bytes that the waiting task queued itself.
    pub own: Bytes,
}

/// All waits of one process in one operation that ended in one interval, short ones too, without those that were part
/// of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Synced {
    /// Begin of the interval; its end is the time of the event.
    pub since: Nanos,
    /// The process that waited.
    #[serde(flatten)]
    pub who: Who,
    /// The operation.
    pub operation: Operation,
    /// Number of waits.
    pub count: u64,
    /// Total length of the waits.
    pub total: Nanos,
    /// Length of the longest wait.
    pub longest: Nanos,
}
