// SPDX-License-Identifier: MIT OR Apache-2.0
//! The test by which a flusher goes on with background work. It counts dirty pages only, those under
//! writeback not: throttling counts both. Mirrors wb_over_bg_thresh of mm/page-writeback.c.

use super::algorithm::Algorithm;
use super::wb_calc_thresh::{WbShare, wb_calc_thresh};
use super::wb_dirty::wb_dirty_is_exact;

/// A domain as the background test sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundDomain {
    /// Dirty pages, without those under writeback.
    pub dirty: u64,
    /// Background threshold, computed with that count.
    pub bg_thresh: u64,
    /// The wb's share in this domain.
    pub share: WbShare,
}

/// Whether there is background work for a wb. `reclaimable` counts its dirty pages for a comparison with a threshold:
/// exactly or not, as [`wb_reclaimable_is_exact`] has it. `memcg` is given for a wb of a cgroup other than the root.
pub fn wb_over_bg_thresh(
    algorithm: &Algorithm,
    reclaimable: impl Fn(u64) -> u64,
    global: &BackgroundDomain,
    memcg: Option<&BackgroundDomain>,
) -> bool {
    let over = |domain: &BackgroundDomain, share: &WbShare| {
        if domain.dirty > domain.bg_thresh {
            return true;
        }
        let thresh = wb_calc_thresh(algorithm, share, domain.bg_thresh, domain.dirty);
        reclaimable(thresh) > thresh
    };
    if over(global, &global.share) {
        return true;
    }
    memcg.is_some_and(|memcg| {
        // Until "mm: correct calculation of wb's bg_thresh in cgroup domain", 6.10, the memcg's threshold
        // was shared out by the completions of the whole machine.
        let fraction = if algorithm.memcg_bg_fraction { &memcg.share } else { &global.share };
        let share = WbShare { numerator: fraction.numerator, denominator: fraction.denominator, ..memcg.share };
        over(memcg, &share)
    })
}

/// Whether the background test adds up the dirty pages of a wb over all CPUs, for a comparison with this share.
/// `wb_stat_error` is [`super::Build::wb_stat_error`]. Both in pages.
pub fn wb_reclaimable_is_exact(algorithm: &Algorithm, wb_thresh: u64, wb_stat_error: u64) -> bool {
    algorithm.bg_counts_exactly && wb_dirty_is_exact(wb_thresh, wb_stat_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::linux;

    /// A wb with 1 percent of the machine's completions and all of its memcg's.
    fn check(algorithm: &Algorithm, reclaimable: u64, expect: bool) {
        let global =
            BackgroundDomain { dirty: 10_000, bg_thresh: 600_000, share: WbShare::unlimited(algorithm, 10, 1000) };
        let memcg = BackgroundDomain { dirty: 100, bg_thresh: 1000, share: WbShare::unlimited(algorithm, 1, 1) };
        assert_eq!(wb_over_bg_thresh(algorithm, |_| reclaimable, &global, Some(&memcg)), expect, "{reclaimable}");
    }

    #[test]
    fn until_6_9_a_cgroup_was_measured_by_the_whole_machines_completions() {
        check(&linux(6, 9), 10, false);
        check(&linux(6, 9), 11, true);
        check(&linux(6, 10), 11, false);
        check(&linux(6, 10), 1000, false);
        check(&linux(6, 10), 1001, true);
    }

    #[test]
    fn an_idle_share_drains_at_once_until_6_13() {
        let global = |algorithm: &Algorithm| BackgroundDomain {
            dirty: 100,
            bg_thresh: 600_000,
            share: WbShare::unlimited(algorithm, 0, 1000),
        };
        assert!(wb_over_bg_thresh(&linux(6, 10), |_| 1, &global(&linux(6, 10)), None));
        assert!(!wb_over_bg_thresh(&linux(6, 14), |_| 1, &global(&linux(6, 14)), None));
        assert!(!wb_over_bg_thresh(&linux(6, 10), |_| 0, &global(&linux(6, 10)), None));
    }

    #[test]
    fn until_5_13_the_test_never_adds_up_all_cpus() {
        // Two CPUs hold back up to 32 pages.
        let check = |minor, thresh, expect| {
            assert_eq!(wb_reclaimable_is_exact(&linux(5, minor), thresh, 32), expect, "5.{minor}, {thresh}");
        };
        check(13, 0, false);
        check(13, 63, false);
        check(14, 0, true);
        check(14, 63, true);
        check(14, 64, false);
    }

    #[test]
    fn a_domain_over_its_threshold_is_enough() {
        let global =
            BackgroundDomain { dirty: 600_001, bg_thresh: 600_000, share: WbShare::unlimited(&linux(6, 14), 1, 1) };
        assert!(wb_over_bg_thresh(&linux(6, 14), |_| 0, &global, None));
    }
}
