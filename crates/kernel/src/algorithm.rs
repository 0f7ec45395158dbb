// SPDX-License-Identifier: MIT OR Apache-2.0
//! What differs between kernels, as plain fields. Each `vX_Y.rs` states the difference of one release
//! to the one before; [`Algorithm::of`] picks by version. Stable and vendor trees carry backports in
//! both directions: where a behaviour can be probed, change the field after picking.

use super::KernelVersion;
use super::{v3_2, v3_12, v4_2, v4_4, v4_8, v5_8, v5_15, v5_16, v6_0, v6_2, v6_5, v6_9, v6_10, v6_14, v7_0, v7_1};

/// Behaviours of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// First mainline release that behaves so.
    pub since: KernelVersion,
    /// The unit thresholds are computed in.
    pub ratio_unit: RatioUnit,
    /// Whether memcgs have domains of their own (4.2, with both controllers on the unified hierarchy).
    pub memcg_domain: bool,
    /// How dirtyable memory of a memcg domain is computed.
    pub mdtc_avail: MdtcAvail,
    /// Whether real-time tasks get 1/32 of the global hard limit besides their quarter.
    pub lift_by_hard_limit: bool,
    /// Whether nfsd and loop workers get raised thresholds, as real-time tasks do (until 5.7); after, they
    /// have a free-run ceiling of their own wb.
    pub less_throttle: bool,
    /// Whether thresholds are cut to 32 bits and the background threshold corrected last (6.10).
    pub limits_overflow_fixed: bool,
    /// Parts of one percent in which bdi ratios are kept.
    pub ratio_scale: u64,
    /// Whether a share has a floor (6.14); before, the floor is inside the position ratio only.
    pub share_floor: bool,
    /// Whether strictlimit lets a wb with less than 8 dirty pages through (3.12 to 6.13).
    pub strictlimit_nearly_empty: bool,
    /// Whether divisors are made odd (`| 1`) rather than counted up (`+ 1`) to keep them from zero.
    pub odd_divisors: bool,
    /// Whether a completed folio counts all its pages at once; before, page by page.
    pub completions_by_folio: bool,
    /// Whether idle time is kept out of the bandwidth estimate (5.15).
    pub bandwidth_skips_idle: bool,
    /// Whether throttled tasks wake the flusher inside the loop, and `dirty_exceeded` survives a free-run
    /// exit (6.0).
    pub background_kick_in_loop: bool,
    /// Whether a flusher's chunk is counted in pages (6.5); before, in folios.
    pub nr_to_write_in_pages: bool,
    /// How fresh the memcg counters are that throttling uses.
    pub memcg_stats: MemcgStats,
    /// Whether the memcg background test uses the memcg's completions (6.10); before, the machine's.
    pub memcg_bg_fraction: bool,
    /// Whether laptop mode exists and suppresses the background kick (until 7.0).
    pub laptop_mode: bool,
    /// Whether strictlimit wakes the flusher at the wb's own background threshold (7.1).
    pub strictlimit_background_kick: bool,
}

/// The unit of ratios in [`super::domain_dirty_limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioUnit {
    /// Whole percent.
    Percent,
    /// One part in the bytes of a page: 1/4096.
    PerPage,
}

/// Dirtyable memory of a memcg domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MdtcAvail {
    /// `min(file + headroom, clean memory)` (4.2, 4.3).
    WithinClean,
    /// `file + min(headroom, other clean memory)` (4.4).
    FileAndHeadroom,
}

/// Freshness of memcg counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemcgStats {
    /// Summed over CPUs at each reading.
    Exact,
    /// Folded at each reading when enough changes are pending, and every 2 s.
    Flushed,
    /// Folded every 2 s: counts may be 2 s old, 4 s at worst.
    RateLimited,
}

/// Every profile, oldest first.
pub(super) const PROFILES: &[Algorithm] = &[
    v3_2::V3_2,
    v3_12::V3_12,
    v4_2::V4_2,
    v4_4::V4_4,
    v4_8::V4_8,
    v5_8::V5_8,
    v5_15::V5_15,
    v5_16::V5_16,
    v6_0::V6_0,
    v6_2::V6_2,
    v6_5::V6_5,
    v6_9::V6_9,
    v6_10::V6_10,
    v6_14::V6_14,
    v7_0::V7_0,
    v7_1::V7_1,
];

/// Stable trees read that carry the fix of 6.10 ("mm: avoid overflows in dirty throttling logic"):
/// major, minor, and the patch level it was seen at.
const OVERFLOW_FIX_SEEN: &[(u16, u16, u16)] = &[(5, 10, 223), (6, 1, 192)];

impl Algorithm {
    /// The newest behaviour known: for kernels whose version cannot be told.
    pub const LATEST: Algorithm = v7_1::V7_1;

    /// The behaviour of a kernel as mainline has it, and as stable trees are known to have it. Kernels
    /// older than all profiles get the oldest.
    pub fn of(version: KernelVersion) -> Algorithm {
        let profile = PROFILES.iter().rev().find(|profile| version.at_least(profile.since.major, profile.since.minor));
        let algorithm = *profile.unwrap_or(&v3_2::V3_2);
        let backported = OVERFLOW_FIX_SEEN
            .iter()
            .any(|&(major, minor, patch)| (version.major, version.minor) == (major, minor) && version.patch >= patch);
        Algorithm { limits_overflow_fixed: algorithm.limits_overflow_fixed || backported, ..algorithm }
    }

    /// All of a bdi ratio: 100 percent in the units of this kernel, not 0.
    pub const fn ratio_full(&self) -> u64 {
        let full = self.ratio_scale.saturating_mul(100);
        if full == 0 { 100 } else { full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_in_order_of_release() {
        assert!(PROFILES.windows(2).all(|pair| pair[0].since < pair[1].since));
        assert_eq!(PROFILES.last(), Some(&Algorithm::LATEST));
    }

    #[test]
    fn every_profile_differs_from_the_one_before() {
        for pair in PROFILES.windows(2) {
            assert_ne!(Algorithm { since: pair[0].since, ..pair[1] }, pair[0], "{}", pair[1].since);
        }
    }

    #[test]
    fn long_term_kernels_have_their_behaviours() {
        let check = |major, minor, patch, since: (u16, u16)| {
            let of = Algorithm::of(KernelVersion::new(major, minor, patch));
            assert_eq!((of.since.major, of.since.minor), since, "{major}.{minor}.{patch}");
            of
        };
        check(2, 6, 32, (3, 2));
        assert!(!check(3, 10, 0, (3, 2)).memcg_domain);
        assert_eq!(check(4, 4, 0, (4, 4)).ratio_unit, RatioUnit::Percent);
        assert_eq!(check(4, 14, 60, (4, 8)).ratio_unit, RatioUnit::PerPage);
        assert!(!check(5, 10, 0, (5, 8)).limits_overflow_fixed);
        assert!(check(5, 10, 223, (5, 8)).limits_overflow_fixed);
        assert!(!check(6, 1, 176, (6, 0)).limits_overflow_fixed);
        assert_eq!(check(6, 1, 192, (6, 0)).ratio_scale, 1);
        assert_eq!(check(6, 6, 0, (6, 5)).ratio_scale, 10_000);
        assert!(!check(6, 12, 117, (6, 10)).share_floor);
        assert!(check(6, 18, 44, (6, 14)).share_floor);
        assert!(!check(7, 2, 13, (7, 1)).laptop_mode);
        check(9, 0, 0, (7, 1));
    }
}
