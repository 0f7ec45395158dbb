// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 3.2: tasks are throttled by sleeping only, with a position ratio and a base rate per bdi
//! ("IO-less"). The oldest behaviour known, and the one others are stated against.

use super::KernelVersion;
use super::algorithm::{Algorithm, MdtcAvail, MemcgStats, RatioUnit};

/// Behaviour of Linux 3.2 to 3.11.
pub(super) const V3_2: Algorithm = Algorithm {
    since: KernelVersion::new(3, 2, 0),
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
    memcg_bg_fraction: false,
    laptop_mode: true,
    strictlimit_background_kick: false,
};
