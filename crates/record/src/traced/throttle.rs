// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pauses in dirty throttling: who was put to sleep, how long, and by which limit. The files of /proc and
//! /sys say only how much is dirty. In the words of the kernel's `balance_dirty_pages` and its event.

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
    /// Not told by the record.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Domain {
    /// The word for it.
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
    /// Whose task was paused.
    #[serde(flatten)]
    pub who: Who,
    /// The thread.
    pub tid: u32,
    /// Backing device of the wb.
    pub bdi: Name,
    /// Inode number of the wb's cgroup; 1 is the root.
    pub wb_cgroup_ino: u64,
    /// Whose limits they were held to.
    pub domain: Domain,
    /// How often it was put to sleep.
    pub pauses: u64,
    /// How long in all, as the kernel asked for before each sleep: whole milliseconds.
    pub pause_ns: Nanos,
    /// The longest of them.
    pub pause_ns_max: Nanos,
    /// How long it slept in all, until the pauses that ended in this interval were over; `None` where that was not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slept_ns: Option<Nanos>,
    /// The longest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slept_ns_max: Option<Nanos>,
    /// How often it went through without sleeping, as it had lost the time already.
    pub unpaused: u64,
    /// What caused the longest pause; `None` when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<ThrottleState>,
}

impl Throttled {
    /// How long the task slept; what the kernel asked for where the sleep was not measured.
    pub fn lasted(&self) -> Nanos {
        self.slept_ns.unwrap_or(self.pause_ns)
    }

    /// The longest sleep, in the same way.
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
    /// Where the control loop wants the dirty pages.
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
    /// Dirty pages below which nobody would have been paused: of the chosen domain on every kernel, to a page.
    pub fn freerun_pages(&self) -> Pages {
        Pages(self.setpoint_pages.0.saturating_mul(2).saturating_sub(self.limit_pages.0))
    }
}
