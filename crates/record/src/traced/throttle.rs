// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pauses in dirty throttling: the paused task, the length, and the limit that applied. The files of /proc and /sys
//! only have the amount of dirty data. In the words of the kernel's `balance_dirty_pages` and its event.

use super::Who;
use crate::name::Name;
use crate::units::{BytesPerSecond, Nanos, Pages};
use serde::{Deserialize, Serialize};

/// The limits that a task was held to (`struct dirty_throttle_control` of the kernel).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// Those of the machine.
    Global,
    /// Those of a memory cgroup.
    Memcg,
    /// The share of one device with a strict limit, in whichever domain.
    Strictlimit,
    /// Not known from the record.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Domain {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Domain::Global => "global",
            Domain::Memcg => "memcg",
            Domain::Strictlimit => "strictlimit",
            Domain::Unknown => "unknown",
        }
    }
}

/// Pauses of one task in `balance_dirty_pages` for one wb in one domain, added up
/// (`writeback:balance_dirty_pages`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Begin of the interval; its end is the time of the event.
    pub since: Nanos,
    /// The process of the paused task.
    #[serde(flatten)]
    pub who: Who,
    /// The thread.
    pub tid: u32,
    /// Backing device of the wb.
    pub bdi: Name,
    /// Inode number of the wb's cgroup; 1 is the root.
    pub wb_cgroup_ino: u64,
    /// The domain whose limits applied.
    pub domain: Domain,
    /// Number of pauses with a sleep.
    pub pauses: u64,
    /// Total intended length of the pauses, as computed before each sleep: whole milliseconds.
    pub pause_ns: Nanos,
    /// Intended length of the longest pause.
    pub pause_ns_max: Nanos,
    /// Total measured sleep of the pauses that ended in this interval; `None` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slept_ns: Option<Nanos>,
    /// Length of the longest sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slept_ns_max: Option<Nanos>,
    /// Number of pauses without a sleep, because the task had already used up their time.
    pub unpaused: u64,
    /// Numbers behind the longest pause; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<ThrottleState>,
}

impl Throttled {
    /// Returns the total measured sleep, or the intended one if it was not measured.
    pub fn lasted(&self) -> Nanos {
        self.slept_ns.unwrap_or(self.pause_ns)
    }

    /// Returns the longest measured sleep, or the longest intended one if it was not measured.
    pub fn longest_lasted(&self) -> Nanos {
        self.slept_ns_max.unwrap_or(self.pause_ns_max)
    }
}

/// The numbers that a pause was computed from. All are of the chosen domain, but `limit_pages` is the
/// machine's on kernels before 6.15 (since f1ab2831e2a4 it is the domain's).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThrottleState {
    /// Smoothed hard limit.
    pub limit_pages: Pages,
    /// Target of the control loop for the dirty pages.
    pub setpoint_pages: Pages,
    /// Dirty and writeback pages.
    pub dirty_pages: Pages,
    /// The wb's share of the setpoint.
    pub wb_setpoint_pages: Pages,
    /// Dirty and writeback pages of the wb.
    pub wb_dirty_pages: Pages,
    /// Rate each dirtier of the wb is allowed before the position is looked at.
    pub dirty_ratelimit: BytesPerSecond,
    /// Rate this task was allowed.
    pub task_ratelimit: BytesPerSecond,
}

impl ThrottleState {
    /// Returns the freerun ceiling, below which no task is paused: of the chosen domain on every kernel, exact to a
    /// page.
    pub fn freerun_pages(&self) -> Pages {
        Pages(self.setpoint_pages.0.saturating_mul(2).saturating_sub(self.limit_pages.0))
    }
}
