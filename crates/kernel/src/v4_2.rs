// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 4.2: domains per memcg and wbs per memcg and bdi (commit 841710aa6e4a, "writeback: implement
//! memcg wb_domain"). That real-time tasks get part of the hard limit, and that divisors are made odd,
//! is of about the same age; the first release of either is not verified.

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v3_12::V3_12;

/// Behaviour of Linux 4.2 and 4.3.
pub(super) const V4_2: Algorithm = Algorithm {
    since: KernelVersion::new(4, 2, 0),
    memcg_domain: true,
    lift_by_hard_limit: true,
    odd_divisors: true,
    ..V3_12
};
