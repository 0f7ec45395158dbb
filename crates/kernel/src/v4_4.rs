// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 4.4: available memory of a memcg domain (commit c5edf9cdc4c4, "writeback: fix incorrect
//! calculation of available memory for memcg domains").

use super::KernelVersion;
use super::algorithm::{Algorithm, MdtcAvail};
use super::v4_2::V4_2;

/// Behaviour of Linux 4.4 to 4.7.
pub(super) const V4_4: Algorithm =
    Algorithm { since: KernelVersion::new(4, 4, 0), mdtc_avail: MdtcAvail::FileAndHeadroom, ..V4_2 };
