// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux 5.16: page cache in folios. A completed folio counts its pages at once; a flusher's chunk is
//! counted in folios until 6.5. The first release of the former is not verified.

use super::KernelVersion;
use super::algorithm::Algorithm;
use super::v5_15::V5_15;

/// Behaviour of Linux 5.16 to 5.19.
pub(super) const V5_16: Algorithm =
    Algorithm { since: KernelVersion::new(5, 16, 0), completions_by_folio: true, nr_to_write_in_pages: false, ..V5_15 };
