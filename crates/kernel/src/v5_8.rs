// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 5.8: tasks that write for others (loop, nfsd) have a free-run ceiling of their own wb
//! (`PF_LOCAL_THROTTLE`) instead of raised thresholds (`PF_LESS_THROTTLE`).

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v4_8::V4_8;

/// Behaviour of Linux 5.8 to 5.14.
pub(super) const V5_8: Algorithm = Algorithm { since: KernelVersion::new(5, 8, 0), less_throttle: false, ..V4_8 };
