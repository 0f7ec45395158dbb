// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 6.10: thresholds are cut to 32 bits and the background threshold is corrected last ("mm: avoid
//! overflows in dirty throttling logic"); the memcg background test uses the memcg's completions ("mm:
//! correct calculation of wb's bg_thresh in cgroup domain").

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v6_9::V6_9;

/// Behaviour of Linux 6.10 to 6.13.
pub(super) const V6_10: Algorithm =
    Algorithm { since: KernelVersion::new(6, 10, 0), limits_overflow_fixed: true, memcg_bg_fraction: true, ..V6_9 };
