// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 6.2: bdi ratios in parts per million, with the knobs `*_fine`, `*_bytes` and `strict_limit`.

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v6_0::V6_0;

/// Behaviour of Linux 6.2 to 6.4.
pub(super) const V6_2: Algorithm = Algorithm { since: KernelVersion::new(6, 2, 0), ratio_scale: 10_000, ..V6_0 };
