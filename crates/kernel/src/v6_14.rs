// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 6.14: a floor in every share ("mm/page-writeback: consolidate wb_thresh bumping logic into
//! __wb_calc_thresh"); the special case of nearly empty wbs under strictlimit is gone.

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v6_10::V6_10;

/// Behaviour of Linux 6.14 to 6.19.
pub(super) const V6_14: Algorithm =
    Algorithm { since: KernelVersion::new(6, 14, 0), share_floor: true, strictlimit_nearly_empty: false, ..V6_10 };
