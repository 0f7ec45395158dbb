// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 5.15: bandwidth is estimated around completions and idle periods are skipped ("writeback: Fix
//! bandwidth estimate for spiky workload"). Memcg counters are folded on demand (5.13 to 6.8, variants).

use super::KernelVersion;
use super::algorithm::{Algorithm, MemcgStats};
use super::v5_8::V5_8;

/// Behaviour of Linux 5.15.
pub(super) const V5_15: Algorithm = Algorithm {
    since: KernelVersion::new(5, 15, 0),
    bandwidth_skips_idle: true,
    memcg_stats: MemcgStats::Flushed,
    ..V5_8
};
