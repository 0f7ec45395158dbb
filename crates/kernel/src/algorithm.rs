// SPDX-License-Identifier: MIT OR Apache-2.0
//! What differs between kernels in the arithmetic, as plain fields: the part of [`super::Behaviour`] that the functions
//! of this folder read. Which kernel has which value is stated in [`super::changes`].

use super::behaviour::Behaviour;
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;

/// The arithmetic of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithm {
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
    /// Whether the background test adds up the dirty pages of all CPUs where a wb's share is small (5.14); before, it misses
    /// those that CPUs hold back.
    pub bg_counts_exactly: bool,
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

/// Period at which the kernel folds the counters of memcgs by itself (`FLUSH_TIME`, mm/memcontrol.c).
pub const FLUSH_TIME: Nanos = Nanos(2 * Nanos::SECOND.0);

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

impl Algorithm {
    /// Linux 3.2: tasks are throttled by sleeping only, with a position ratio and a base rate per bdi ("IO-less").
    pub(super) const OLDEST: Algorithm = Algorithm {
        ratio_unit: RatioUnit::Percent,
        memcg_domain: false,
        mdtc_avail: MdtcAvail::WithinClean,
        lift_by_hard_limit: false,
        less_throttle: true,
        limits_overflow_fixed: false,
        ratio_scale: 1,
        share_floor: false,
        strictlimit_nearly_empty: false,
        odd_divisors: false,
        completions_by_folio: false,
        bandwidth_skips_idle: false,
        background_kick_in_loop: false,
        nr_to_write_in_pages: true,
        memcg_stats: MemcgStats::Exact,
        bg_counts_exactly: false,
        memcg_bg_fraction: false,
        laptop_mode: true,
        strictlimit_background_kick: false,
    };

    /// The arithmetic of a kernel ([`Behaviour::of`]).
    pub fn of(version: KernelVersion) -> Algorithm {
        Behaviour::of(version).arithmetic
    }

    /// All of a bdi ratio: 100 percent in the units of this kernel, not 0.
    pub const fn ratio_full(&self) -> u64 {
        let full = self.ratio_scale.saturating_mul(100);
        if full == 0 { 100 } else { full }
    }
}

/// The arithmetic of a mainline release.
#[cfg(test)]
pub(super) fn linux(major: u16, minor: u16) -> Algorithm {
    Algorithm::of(KernelVersion::new(major, minor, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_term_kernels_have_their_behaviours() {
        let of = |version: &str| Algorithm::of(version.parse().expect("a version"));
        let alike = |version: &str, mainline: &str| assert_eq!(of(version), of(mainline), "{version}");
        alike("2.6.32", "3.2");
        alike("4.14.60", "4.8");
        alike("5.10.0", "5.8");
        alike("6.1.0", "6.0");
        alike("6.6.0", "6.5");
        alike("6.12.117", "6.10");
        alike("6.18.44", "6.14");
        alike("9.0.0", "7.1");
        assert!(!of("3.10.0").memcg_domain);
        assert_eq!(of("4.4.0").ratio_unit, RatioUnit::Percent);
        assert_eq!(of("4.14.60").ratio_unit, RatioUnit::PerPage);
        assert!(!of("5.10.0").limits_overflow_fixed);
        assert!(of("5.10.223").limits_overflow_fixed);
        assert!(of("6.1.192").limits_overflow_fixed);
        assert_eq!(of("6.1.192").ratio_scale, 1);
        assert_eq!(of("6.6.0").ratio_scale, 10_000);
        assert!(!of("6.12.117").share_floor);
        assert!(of("6.18.44").share_floor);
        assert!(!of("7.2.13").laptop_mode);
    }
}
