// SPDX-License-Identifier: MIT OR Apache-2.0
//! One domain as one throttled task sees it: its thresholds and counts, and those of the task's wb in
//! it. Mirrors struct dirty_throttle_control of mm/page-writeback.c.

use super::domain_dirty_limits::freerun_ceiling;

/// A domain and one wb in it, pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirtyThrottleControl {
    /// Hard threshold.
    pub thresh: u64,
    /// Background threshold.
    pub bg_thresh: u64,
    /// Dirty and under writeback.
    pub dirty: u64,
    /// Smoothed hard limit ([`super::update_dirty_limit`]); 0 before the first update.
    pub dirty_limit: u64,
    /// The wb's share of `thresh`.
    pub wb_thresh: u64,
    /// The wb's share of `bg_thresh`.
    pub wb_bg_thresh: u64,
    /// Dirty and under writeback in the wb.
    pub wb_dirty: u64,
}

impl DirtyThrottleControl {
    /// Freerun ceiling: at or below it no task is throttled.
    pub fn freerun(&self) -> u64 {
        freerun_ceiling(self.thresh, self.bg_thresh)
    }

    /// Freerun ceiling of the wb alone, which applies under strictlimit.
    pub fn wb_freerun(&self) -> u64 {
        freerun_ceiling(self.wb_thresh, self.wb_bg_thresh)
    }

    /// The limit used for decisions: a threshold that just shrank still holds for a while.
    pub fn hard_dirty_limit(&self) -> u64 {
        self.thresh.max(self.dirty_limit)
    }

    /// Where dirty pages are held: half way between the free-run ceiling and the limit.
    pub fn setpoint(&self) -> u64 {
        u64::midpoint(self.freerun(), self.hard_dirty_limit())
    }

    /// Whether tasks run free in this domain.
    pub fn is_freerun(&self, strictlimit: bool) -> bool {
        if strictlimit { self.wb_dirty <= self.wb_freerun() } else { self.dirty <= self.freerun() }
    }

    /// Whether the wb is over its share while the domain is over its threshold (`dirty_exceeded`).
    pub fn is_exceeded(&self, strictlimit: bool) -> bool {
        self.wb_dirty > self.wb_thresh && (self.dirty > self.thresh || strictlimit)
    }
}
