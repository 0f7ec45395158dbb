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

/// Kind of the current task: some kinds get higher thresholds.
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

/// Returns the freerun ceiling, half way between the two thresholds: at or below it no task is throttled.
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

/// Returns the thresholds that the tunables request, before the background threshold is lowered below the other. Both
/// grow with `avail` and shrink with `global_avail`. The corrected thresholds do not.
pub fn uncorrected_limits(
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
pub fn memcg_units(algorithm: &Algorithm, bytes: u64, global_avail: u64, page_size: u64) -> u64 {
    let global_avail = global_avail.max(1);
    match algorithm.ratio_unit {
        // Whole percent, rounded down to 0 for small settings.
        RatioUnit::Percent => mul_div(bytes.div_ceil(page_size), 100, global_avail).min(100),
        RatioUnit::PerPage => bytes.div_ceil(global_avail).min(page_size),
    }
}

/// Units of the domain ratio that a setting in percent is.
pub fn percent_units(algorithm: &Algorithm, percent: u64, page_size: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::version::KernelVersion;
    use proptest::prelude::*;

    fn of(major: u16, minor: u16) -> Algorithm {
        Algorithm::of(KernelVersion::new(major, minor, 0))
    }

    fn tunables((dirty_bytes, dirty_ratio): (u64, u64), (background, ratio): (u64, u64)) -> DirtyTunables {
        DirtyTunables { dirty_ratio, dirty_background_ratio: ratio, dirty_bytes, dirty_background_bytes: background }
    }

    /// One of a pair: bytes or percent.
    fn pair() -> impl Strategy<Value = (u64, u64)> {
        prop_oneof![(Just(0u64), 0u64..=100), (1u64..1 << 44, Just(0u64))]
    }

    /// The formulas in exact arithmetic, for kernels since 6.10.
    fn naive(tunables: &DirtyTunables, p: u128, avail: u128, global: Option<u128>, lift: Option<u128>) -> (u128, u128) {
        let one = |bytes: u64, percent: u64| match (u128::from(bytes), global) {
            (0, _) => u128::from(percent) * p / 100 * avail / p,
            (bytes, None) => bytes.div_ceil(p),
            (bytes, Some(global)) => bytes.div_ceil(global).min(p) * avail / p,
        };
        let lifted = |pages: u128| lift.map_or(pages, |limit| pages + pages / 4 + limit / 32);
        let thresh = lifted(one(tunables.dirty_bytes, tunables.dirty_ratio)).min(u128::from(u32::MAX));
        let bg_thresh = lifted(one(tunables.dirty_background_bytes, tunables.dirty_background_ratio));
        (thresh, if bg_thresh >= thresh { thresh / 2 } else { bg_thresh })
    }

    proptest! {
        #[test]
        fn they_agree_with_exact_arithmetic(
            hard in pair(), background in pair(), avail in 1u64..1 << 40, global in proptest::option::of(1u64..1 << 40),
            lift in proptest::option::of(0u64..1 << 32), page_shift in 12u32..=16,
        ) {
            let tunables = tunables(hard, background);
            let task = lift.map_or(TaskClass::Normal, |limit| TaskClass::Realtime { global_dirty_limit: limit });
            let limits = domain_dirty_limits(&of(6, 12), &tunables, 1 << page_shift, avail, global, task);
            let expect =
                naive(&tunables, 1 << page_shift, avail.into(), global.map(u128::from), lift.map(u128::from));
            prop_assert_eq!((u128::from(limits.thresh), u128::from(limits.bg_thresh)), expect);
        }

        #[test]
        fn the_background_threshold_is_below_and_freerun_between(
            hard in pair(), background in pair(), avail: u64, global in proptest::option::of(any::<u64>()),
        ) {
            for algorithm in [of(3, 10), of(4, 4), of(6, 1), of(6, 12), of(7, 2)] {
                let tunables = tunables(hard, background);
                let limits = domain_dirty_limits(&algorithm, &tunables, 4096, avail, global, TaskClass::Normal);
                prop_assert!(limits.bg_thresh < limits.thresh || limits.thresh == 0);
                prop_assert!(limits.bg_thresh <= limits.freerun() && limits.freerun() <= limits.thresh);
            }
        }

        #[test]
        fn more_memory_of_its_own_means_more_and_more_of_the_machine_less(
            hard in pair(), background in pair(), a: u64, b: u64, global: u64,
        ) {
            let tunables = tunables(hard, background);
            let thresh = |avail, global| {
                domain_dirty_limits(&of(6, 12), &tunables, 4096, avail, Some(global), TaskClass::Normal).thresh
            };
            prop_assert!(thresh(a.min(b), global) <= thresh(a.max(b), global));
            prop_assert!(thresh(global, a.min(b)) >= thresh(global, a.max(b)));
        }

        #[test]
        fn bytes_are_rounded_up_to_units_of_the_machines_memory(bytes in 1u64..1 << 44, global in 1u64..1 << 40) {
            let units = memcg_units(&of(6, 12), bytes, global, 4096);
            prop_assert!(units == 4096 || u128::from(units) * u128::from(global) >= u128::from(bytes));
            prop_assert!(units >= 1 && u128::from(units - 1) * u128::from(global) < u128::from(bytes));
        }

        #[test]
        fn no_input_is_refused(
            dirty_ratio: u64, dirty_background_ratio: u64, dirty_bytes: u64, dirty_background_bytes: u64,
            page_size: u64, avail: u64, global in proptest::option::of(any::<u64>()), global_dirty_limit: u64,
        ) {
            let tunables = DirtyTunables { dirty_ratio, dirty_background_ratio, dirty_bytes, dirty_background_bytes };
            for algorithm in [of(3, 10), of(4, 2), of(5, 4), of(6, 12)] {
                for task in [TaskClass::Realtime { global_dirty_limit }, TaskClass::LessThrottle { global_dirty_limit }] {
                    domain_dirty_limits(&algorithm, &tunables, page_size, avail, global, task);
                    domain_dirty_limits(&algorithm, &tunables, 0, 0, Some(0), task);
                }
            }
        }
    }

    #[test]
    fn settings_of_0_and_no_page_make_thresholds_of_0() {
        for algorithm in [of(3, 10), of(4, 4), of(6, 1), of(6, 12), of(7, 2)] {
            let limits = domain_dirty_limits(&algorithm, &DirtyTunables::default(), 4096, 0, None, TaskClass::Normal);
            assert_eq!(limits, DomainLimits::default(), "{algorithm:?}");
        }
    }

    #[test]
    fn small_settings_were_nothing_for_a_memcg_before_4_8() {
        let tunables = tunables((100 << 20, 0), (50 << 20, 0));
        let thresh = |algorithm: &Algorithm| {
            domain_dirty_limits(algorithm, &tunables, 4096, 196_608, Some(26_214_400), TaskClass::Normal).thresh
        };
        assert_eq!((thresh(&of(4, 4)), thresh(&of(4, 14))), (0, 192));
    }

    #[test]
    fn raised_thresholds_differ_by_version() {
        let tunables = tunables((0, 20), (0, 20));
        let check = |algorithm: Algorithm, task, expect: (u64, u64)| {
            let limits = domain_dirty_limits(&algorithm, &tunables, 4096, 100_000, None, task);
            assert_eq!((limits.thresh, limits.bg_thresh), expect, "{algorithm:?}");
        };
        let realtime = TaskClass::Realtime { global_dirty_limit: 3200 };
        let loop_worker = TaskClass::LessThrottle { global_dirty_limit: 3200 };
        check(of(3, 10), realtime, (25_000, 12_500));
        check(of(5, 10), realtime, (19_995 + 4998 + 100, 9997 + 2499 + 100));
        // Corrected after the lift.
        check(of(6, 12), realtime, (25_093, 12_546));
        check(of(5, 4), loop_worker, (25_093, 12_596));
        check(of(5, 8), loop_worker, (19_995, 9997));
    }
}
