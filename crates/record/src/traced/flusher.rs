// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the flusher ran, for which wb, how much it wrote and for how long (`writeback:writeback_start` and
//! `writeback_written`). In the words of the kernel's `enum wb_reason`, as its own table spells them.

use crate::name::Name;
use crate::text::Text;
use crate::units::{Nanos, Pages};
use serde::{Deserialize, Serialize};

/// Rounds of the flusher for one wb and one reason that ended in one interval. A round is one pass over the
/// inodes that are due; a run has one or many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flushed {
    /// Begin of the interval; its end is the time of the event.
    pub since: Nanos,
    /// Backing device of the wb.
    pub bdi: Name,
    /// Inode number of the wb's cgroup; 1 is the root.
    pub wb_cgroup_ino: u64,
    /// `background`, `periodic`, `sync`, `vmscan`, `foreign_flush`, `fs_free_space`, …; a number where the
    /// kernel has no word for it.
    pub reason: Text,
    /// Number of rounds.
    pub rounds: u64,
    /// Rounds that a task waits for (`WB_SYNC_ALL`).
    pub sync_rounds: u64,
    /// Pages written; kernels up to 6.4 count folios.
    pub pages: Pages,
    /// Total time of the rounds.
    pub busy_ns: Nanos,
    /// Time of the longest round.
    pub busy_ns_max: Nanos,
}
