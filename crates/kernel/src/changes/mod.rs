// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of changes, one file per major number, in order of release. A new kernel is entries at the end of the last
//! file: state release, commits, the stable releases that carry it, the sentences, and the field that it sets.

mod v3;
mod v4;
mod v5;
mod v6;
mod v7;

use super::change::Change;

/// Every change, by major number, oldest first.
pub(super) const ALL: &[&[Change]] = &[v3::CHANGES, v4::CHANGES, v5::CHANGES, v6::CHANGES, v7::CHANGES];
