// SPDX-License-Identifier: MIT OR Apache-2.0
//! The share of one wb in a domain's threshold, by its part of the pages that finished writeback, its
//! device's guaranteed and largest share, and since 6.14 a floor. Mirrors __wb_calc_thresh of
//! mm/page-writeback.c.

use super::algorithm::Algorithm;
use super::product::mul_div;

/// What a share depends on besides the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WbShare {
    /// Completions of the wb in this domain.
    pub numerator: u64,
    /// Completions of the domain; not 0.
    pub denominator: u64,
    /// The wb's part of its bdi's guaranteed share ([`wb_min_max_ratio`]), in 1/100 percent-scale units
    /// ([`Algorithm::ratio_full`] is all).
    pub min_ratio: u64,
    /// The wb's part of its bdi's largest share, same units.
    pub max_ratio: u64,
    /// Sum of the guaranteed shares of all bdis of the machine, same units.
    pub min_ratio_sum: u64,
    /// Whether the bdi is held to its own share even below the global limit.
    pub strictlimit: bool,
}

impl WbShare {
    /// A wb without device settings that completed `numerator` of `denominator` pages.
    pub const fn unlimited(algorithm: &Algorithm, numerator: u64, denominator: u64) -> WbShare {
        WbShare {
            numerator,
            denominator,
            min_ratio: 0,
            max_ratio: algorithm.ratio_full(),
            min_ratio_sum: 0,
            strictlimit: false,
        }
    }
}

/// Scales a bdi's smallest and largest ratio to one of its wbs by bandwidth: `avg_write_bandwidth` of
/// the wb within `tot_write_bandwidth` of the bdi's wbs that have dirty inodes. A largest ratio of all
/// stays all.
#[inline]
pub fn wb_min_max_ratio(
    algorithm: &Algorithm,
    min_ratio: u64,
    max_ratio: u64,
    avg_write_bandwidth: u64,
    tot_write_bandwidth: u64,
) -> (u64, u64) {
    if avg_write_bandwidth >= tot_write_bandwidth {
        return (min_ratio, max_ratio);
    }
    let scale = |ratio: u64| if ratio == 0 { 0 } else { mul_div(ratio, avg_write_bandwidth, tot_write_bandwidth) };
    (scale(min_ratio), if max_ratio < algorithm.ratio_full() { scale(max_ratio) } else { max_ratio })
}

/// Share of one wb in `thresh`, pages. `dirty` are the domain's dirty pages, used by the floor only.
#[inline]
pub fn wb_calc_thresh(algorithm: &Algorithm, share: &WbShare, thresh: u64, dirty: u64) -> u64 {
    let full = algorithm.ratio_full();
    // Mostly none or all: nothing to divide.
    let part = |ratio: u64| match ratio {
        0 => 0,
        _ if ratio == full => thresh,
        _ => mul_div(thresh, ratio, full),
    };
    let mut wb_thresh = mul_div(part(full.saturating_sub(share.min_ratio_sum)), share.numerator, share.denominator);
    wb_thresh = wb_thresh.saturating_add(part(share.min_ratio));
    // Since "mm/page-writeback: consolidate wb_thresh bumping logic into __wb_calc_thresh", 6.14: an idle
    // device must not have a share near zero.
    if algorithm.share_floor && thresh > dirty {
        let spare = thresh - dirty;
        wb_thresh = wb_thresh.max(if share.strictlimit { spare / 100 } else { spare / 8 });
    }
    wb_thresh.min(part(share.max_ratio))
}

/// Background threshold of one wb from its share: in the proportion of the domain's.
#[inline]
pub fn wb_bg_thresh(wb_thresh: u64, bg_thresh: u64, thresh: u64) -> u64 {
    mul_div(wb_thresh, bg_thresh, thresh)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::linux;
    use proptest::prelude::*;

    #[test]
    fn a_cgroup_gets_a_part_of_its_devices_largest_share() {
        let (min_ratio, max_ratio) = wb_min_max_ratio(&linux(6, 10), 0, 100_000, 500, 1000);
        assert_eq!((min_ratio, max_ratio), (0, 50_000));
        let share = WbShare { min_ratio, max_ratio, ..WbShare::unlimited(&linux(6, 10), 200, 1000) };
        assert_eq!(wb_calc_thresh(&linux(6, 10), &share, 1_200_000, 0), 60_000);
        assert_eq!(wb_calc_thresh(&linux(6, 10), &WbShare::unlimited(&linux(6, 10), 200, 1000), 1_200_000, 0), 240_000);
    }

    #[test]
    fn only_a_largest_ratio_below_all_is_scaled() {
        for algorithm in [linux(6, 2), linux(6, 10)] {
            let full = algorithm.ratio_full();
            assert_eq!(wb_min_max_ratio(&algorithm, full / 2, full, 500, 1000), (full / 4, full));
            assert_eq!(wb_min_max_ratio(&algorithm, 0, full - 10, 500, 1000), (0, full / 2 - 5));
        }
    }

    #[test]
    fn a_share_of_nothing_has_a_floor_since_6_14() {
        let share = WbShare::unlimited(&linux(6, 14), 0, 1000);
        assert_eq!(wb_calc_thresh(&linux(6, 10), &share, 1_200_000, 1_000_000), 0);
        assert_eq!(wb_calc_thresh(&linux(6, 14), &share, 1_200_000, 1_000_000), 25_000);
        assert_eq!(wb_calc_thresh(&linux(6, 14), &share, 1_200_000, 1_200_000), 0);
    }

    #[test]
    fn strictlimit_caps_the_share() {
        let share = WbShare { max_ratio: 10_000, strictlimit: true, ..WbShare::unlimited(&linux(6, 10), 10, 1000) };
        let wb_thresh = wb_calc_thresh(&linux(6, 10), &share, 1_200_000, 0);
        assert_eq!((wb_thresh, wb_bg_thresh(wb_thresh, 600_000, 1_200_000)), (12_000, 6_000));
    }

    #[test]
    fn guaranteed_shares_are_taken_from_everybody_else() {
        let share = WbShare { min_ratio_sum: 250_000, ..WbShare::unlimited(&linux(6, 2), 1, 2) };
        assert_eq!(wb_calc_thresh(&linux(6, 2), &share, 1000, 0), 375);
        assert_eq!(wb_calc_thresh(&linux(6, 2), &WbShare { min_ratio: 250_000, ..share }, 1000, 0), 625);
    }

    proptest! {
        #[test]
        fn shares_of_all_wbs_stay_within_the_threshold(
            thresh in 0u64..=u64::from(u32::MAX), parts in proptest::collection::vec(0u64..1 << 24, 1..16),
        ) {
            let denominator = parts.iter().sum::<u64>().max(1);
            let sum: u64 = parts
                .iter()
                .map(|part| wb_calc_thresh(&linux(6, 10), &WbShare::unlimited(&linux(6, 10), *part, denominator), thresh, 0))
                .sum();
            prop_assert!(sum <= thresh);
        }

        #[test]
        fn no_input_is_refused(
            numerator: u64, denominator: u64, min_ratio: u64, max_ratio: u64, min_ratio_sum: u64,
            strictlimit: bool, thresh: u64, dirty: u64, wb: u64, tot: u64,
        ) {
            for algorithm in [linux(6, 2), linux(6, 14)] {
                let (min_ratio, max_ratio) = wb_min_max_ratio(&algorithm, min_ratio, max_ratio, wb, tot);
                let share = WbShare { numerator, denominator, min_ratio, max_ratio, min_ratio_sum, strictlimit };
                let wb_thresh = wb_calc_thresh(&algorithm, &share, thresh, dirty);
                prop_assert!(max_ratio > algorithm.ratio_full() || wb_thresh <= thresh);
                wb_bg_thresh(wb_thresh, dirty, thresh);
            }
        }

        #[test]
        fn it_agrees_with_wide_arithmetic(
            thresh in 0u128..1 << 32, dirty in 0u128..1 << 32, numerator in 0u128..1 << 30,
            more in 1u128..1 << 30, min in 0u128..1_000_000, max in 0u128..=1_000_000, sum in 0u128..1_000_000,
        ) {
            let denominator = numerator + more;
            let naive = thresh * (1_000_000 - sum) / 1_000_000 * numerator / denominator + thresh * min / 1_000_000;
            let floored = if thresh > dirty { naive.max((thresh - dirty) / 8) } else { naive };
            let cap = thresh * max / 1_000_000;
            let share = WbShare {
                numerator: numerator as u64,
                denominator: denominator as u64,
                min_ratio: min as u64,
                max_ratio: max as u64,
                min_ratio_sum: sum as u64,
                strictlimit: false,
            };
            let got = |algorithm: &Algorithm| u128::from(wb_calc_thresh(algorithm, &share, thresh as u64, dirty as u64));
            prop_assert_eq!(got(&linux(6, 10)), naive.min(cap));
            prop_assert_eq!(got(&linux(6, 14)), floored.min(cap));
        }
    }
}
