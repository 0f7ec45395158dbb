// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends of the page cache: bytes dirtied by tasks, and bytes queued at block devices. The flusher is between
//! them, so a queued write does not name the task that dirtied its pages.

use super::{File, Who};
use crate::id::DevId;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Bytes that one process made dirty, in one interval. Source: the tracepoint `writeback_dirty_folio`
/// (`writeback_dirty_page` before 5.18), with the size of each folio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dirtied {
    /// Begin of the interval; its end is the time of the event.
    pub since: Nanos,
    /// The process. The cgroup of a kernel thread is that of the file's wb.
    #[serde(flatten)]
    pub who: Who,
    /// Device number of the superblock.
    pub device: DevId,
    /// The file; `None` for all files of this process there that are too small to be named.
    pub file: Option<File>,
    /// Folios that went from clean to dirty, in bytes: a large folio counts whole.
    pub bytes: Bytes,
    /// Folios of those.
    pub folios: u64,
    /// Bytes that had been dirty before, and were written or dropped in between. They are found by a hash table without
    /// chains, so the number can be slightly too high.
    pub redirtied: Bytes,
}

/// Dirty bytes of one file that were dropped before they were written, in one interval, as the file was truncated or
/// removed. Source: the function `__folio_cancel_dirty` (`__cancel_dirty_page` before 5.16).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cancelled {
    /// Begin of the interval; its end is the time of the event.
    pub since: Nanos,
    /// The process that had made the file dirty last, which need not be the one that dropped it.
    #[serde(flatten)]
    pub who: Who,
    /// Device number of the superblock.
    pub device: DevId,
    /// The file; `None` for all files of this process there that are too small to be named.
    pub file: Option<File>,
    /// Bytes; a large folio counts whole.
    pub bytes: Bytes,
}

/// Content of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Pages of a file, from the page cache.
    Data,
    /// The filesystem's own blocks, in place.
    Metadata,
    /// The filesystem's log.
    Journal,
    /// Past the page cache.
    Direct,
    /// The class is not known.
    Unknown,
}

/// Bytes queued at one block device, in one interval. A device on top of others (md, dm, loop) and those
/// below it each have their own: never add them. Source: the tracepoint `block_bio_queue`, with the
/// page that the write carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submitted {
    /// Begin of the interval; its end is the time of the event.
    pub since: Nanos,
    /// The whole disk.
    pub disk: DevId,
    /// Their content.
    pub class: Class,
    /// Device number of the superblock, where the class is data.
    pub device: Option<DevId>,
    /// The file, where the class is data; `None` for all that are too small to be named.
    pub file: Option<File>,
    /// The cgroup that is charged: for buffered data that of the file's wb, else that of the task.
    pub cgroup_ino: Option<u64>,
    /// The process, where the class is direct; where it is data, the one that made the file dirty last, if it was seen.
    /// Older recordings have none for data.
    pub who: Option<Who>,
    /// Bytes.
    pub bytes: Bytes,
    /// Requests (bios) of those, before they are split or merged.
    pub bios: u64,
}
