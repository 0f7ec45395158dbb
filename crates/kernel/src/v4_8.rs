// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 4.8: ratios in 1/4096 rather than whole percent ("writeback: use higher precision calculation
//! in domain_dirty_limits()"; 4.7 or 4.8, not verified). Before, a small setting in bytes was 0 percent
//! for a memcg.

use super::KernelVersion;
use super::algorithm::{Algorithm, RatioUnit};
use super::v4_4::V4_4;

/// Behaviour of Linux 4.8 to 5.7.
pub(super) const V4_8: Algorithm =
    Algorithm { since: KernelVersion::new(4, 8, 0), ratio_unit: RatioUnit::PerPage, ..V4_4 };
