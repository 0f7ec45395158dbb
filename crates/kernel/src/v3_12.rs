// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 3.12: strictlimit, made for FUSE: a bdi may be held to its own share below the global limit.

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v3_2::V3_2;

/// Behaviour of Linux 3.12 to 4.1.
pub(super) const V3_12: Algorithm =
    Algorithm { since: KernelVersion::new(3, 12, 0), strictlimit_nearly_empty: true, ..V3_2 };
