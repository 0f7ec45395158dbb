// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thresholds of a domain from the tunables and its dirtyable memory. For a memcg domain a setting in
//! bytes becomes a ratio of the machine's dirtyable memory in units of 1/4096, rounded up, and the
//! ratio is taken of the memcg's own. Mirrors mm/page-writeback.c.

use super::algorithm::{Algorithm, RatioUnit};
use super::product::mul_div;

/// The four size tunables below `/proc/sys/vm`, as they are: of each pair one is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirtyTunables {
    /// `dirty_ratio`, percent.
    pub dirty_ratio: u64,
    /// `dirty_background_ratio`, percent.
    pub dirty_background_ratio: u64,
    /// `dirty_bytes`; wins over the ratio when not 0.
    pub dirty_bytes: u64,
    /// `dirty_background_bytes`; wins over the ratio when not 0.
    pub dirty_background_bytes: u64,
}

/// What kind of task asks: some get higher thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskClass {
    /// Any other.
    #[default]
    Normal,
    /// Real-time or deadline: a quarter more, and 1/32 of the smoothed global hard limit.
    Realtime {
        /// Smoothed hard limit of the *global* domain, pages, also for a memcg domain.
        global_dirty_limit: u64,
    },
    /// nfsd and loop workers up to 5.7: as real-time.
    LessThrottle {
        /// Smoothed hard limit of the *global* domain, pages.
        global_dirty_limit: u64,
    },
}

/// Thresholds of a domain, pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainLimits {
    /// Hard threshold.
    pub thresh: u64,
    /// Background threshold; below `thresh` unless both are 0.
    pub bg_thresh: u64,
}

impl DomainLimits {
    /// [`freerun_ceiling`] of the two.
    pub fn freerun(self) -> u64 {
        freerun_ceiling(self.thresh, self.bg_thresh)
    }
}

/// Below or at this nobody is slowed: half way between the two thresholds.
#[inline]
pub fn freerun_ceiling(thresh: u64, bg_thresh: u64) -> u64 {
    u64::midpoint(thresh, bg_thresh)
}

/// Thresholds of a domain with `avail` dirtyable pages; `global_avail` is the machine's and given for a
/// memcg domain only.
pub fn domain_dirty_limits(
    algorithm: &Algorithm,
    tunables: &DirtyTunables,
    page_size: u64,
    avail: u64,
    global_avail: Option<u64>,
    task: TaskClass,
) -> DomainLimits {
    let (thresh, bg_thresh) = uncorrected_limits(algorithm, tunables, page_size, avail, global_avail);
    let lift = |pages: u64| match task {
        TaskClass::Realtime { global_dirty_limit } => lifted(algorithm, pages, global_dirty_limit),
        // Up to 5.7 only: then PF_LESS_THROTTLE became PF_LOCAL_THROTTLE, which lifts nothing.
        TaskClass::LessThrottle { global_dirty_limit } if algorithm.less_throttle => {
            lifted(algorithm, pages, global_dirty_limit)
        }
        TaskClass::Normal | TaskClass::LessThrottle { .. } => pages,
    };
    if algorithm.limits_overflow_fixed {
        let thresh = lift(thresh).min(u64::from(u32::MAX));
        DomainLimits { thresh, bg_thresh: below(lift(bg_thresh), thresh) }
    } else {
        DomainLimits { thresh: lift(thresh), bg_thresh: lift(below(bg_thresh, thresh)) }
    }
}

/// What the tunables ask for, before the background threshold is put below the other. Both grow with
/// `avail` and shrink with `global_avail`, which is not so once they are corrected.
pub(crate) fn uncorrected_limits(
    algorithm: &Algorithm,
    tunables: &DirtyTunables,
    page_size: u64,
    avail: u64,
    global_avail: Option<u64>,
) -> (u64, u64) {
    let page_size = page_size.max(1);
    let limit = |bytes: u64, percent: u64| match (bytes, global_avail) {
        (0, _) => ratio_of(algorithm, percent_units(algorithm, percent, page_size), avail, page_size),
        (bytes, None) => bytes.div_ceil(page_size),
        (bytes, Some(global_avail)) => {
            ratio_of(algorithm, memcg_units(algorithm, bytes, global_avail, page_size), avail, page_size)
        }
    };
    (
        limit(tunables.dirty_bytes, tunables.dirty_ratio),
        limit(tunables.dirty_background_bytes, tunables.dirty_background_ratio),
    )
}

/// Units of the domain ratio that a setting of bytes is for a memcg: bytes divided by pages, rounded up.
pub(crate) fn memcg_units(algorithm: &Algorithm, bytes: u64, global_avail: u64, page_size: u64) -> u64 {
    let global_avail = global_avail.max(1);
    match algorithm.ratio_unit {
        // Whole percent, rounded down to 0 for small settings.
        RatioUnit::Percent => mul_div(bytes.div_ceil(page_size), 100, global_avail).min(100),
        RatioUnit::PerPage => bytes.div_ceil(global_avail).min(page_size),
    }
}

/// Units of the domain ratio that a setting in percent is.
pub(crate) fn percent_units(algorithm: &Algorithm, percent: u64, page_size: u64) -> u64 {
    match algorithm.ratio_unit {
        RatioUnit::Percent => percent,
        RatioUnit::PerPage => percent.saturating_mul(page_size) / 100,
    }
}

fn ratio_of(algorithm: &Algorithm, units: u64, avail: u64, page_size: u64) -> u64 {
    match algorithm.ratio_unit {
        RatioUnit::Percent => mul_div(units, avail, 100),
        RatioUnit::PerPage => mul_div(units, avail, page_size),
    }
}

fn lifted(algorithm: &Algorithm, pages: u64, global_dirty_limit: u64) -> u64 {
    let more = if algorithm.lift_by_hard_limit { global_dirty_limit / 32 } else { 0 };
    pages.saturating_add(pages / 4).saturating_add(more)
}

fn below(bg_thresh: u64, thresh: u64) -> u64 {
    if bg_thresh >= thresh { thresh / 2 } else { bg_thresh }
}
