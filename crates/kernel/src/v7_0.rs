// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 7.0: laptop mode is gone (commit 64dd89ae01f2). The kick above the free-run ceiling that went
//! with it for some weeks came back (commit cece9dc61daa) and is not modelled as missing.

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v6_14::V6_14;

/// Behaviour of Linux 7.0.
pub(super) const V7_0: Algorithm = Algorithm { since: KernelVersion::new(7, 0, 0), laptop_mode: false, ..V6_14 };
