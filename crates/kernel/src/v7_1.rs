// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 7.1: under strictlimit the flusher is woken at the wb's own background threshold (commit
//! 0437906841d0; about 7.1, not verified).

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v7_0::V7_0;

/// Behaviour of Linux 7.1 and later.
pub(super) const V7_1: Algorithm =
    Algorithm { since: KernelVersion::new(7, 1, 0), strictlimit_background_kick: true, ..V7_0 };
