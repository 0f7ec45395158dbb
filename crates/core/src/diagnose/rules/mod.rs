// SPDX-License-Identifier: MIT OR Apache-2.0
//! The catalogue of rules: a `mod` line and a place in [`RULES`] each. Order is the order in which
//! findings of equal severity are shown: causes before symptoms. Each file has its manual page beside
//! it, which is its documentation here and what `floodline explain` prints.

pub mod contradictory_dirty_settings;

use super::Rule;

/// Every rule.
pub static RULES: &[Rule] = &[contradictory_dirty_settings::RULE];
