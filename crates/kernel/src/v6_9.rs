// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 6.9: memcg counters for throttling are up to 2 s old ("mm: writeback: ratelimit stat flush from
//! mem_cgroup_wb_stats").

use super::KernelVersion;
use super::algorithm::{Algorithm, MemcgStats};
use super::v6_5::V6_5;

/// Behaviour of Linux 6.9.
pub(super) const V6_9: Algorithm =
    Algorithm { since: KernelVersion::new(6, 9, 0), memcg_stats: MemcgStats::RateLimited, ..V6_5 };
