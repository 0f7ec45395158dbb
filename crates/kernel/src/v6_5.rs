// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 6.5: a flusher's chunk is counted in pages (commit 8344a3d44be3).

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v6_2::V6_2;

/// Behaviour of Linux 6.5 to 6.8.
pub(super) const V6_5: Algorithm = Algorithm { since: KernelVersion::new(6, 5, 0), nr_to_write_in_pages: true, ..V6_2 };
