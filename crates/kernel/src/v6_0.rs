// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 6.0: the background kick moved into the throttling loop, and `dirty_exceeded` is written there
//! only, so that a free-run exit leaves it as it was.

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v5_16::V5_16;

/// Behaviour of Linux 6.0 and 6.1.
pub(super) const V6_0: Algorithm =
    Algorithm { since: KernelVersion::new(6, 0, 0), background_kick_in_loop: true, ..V5_16 };
