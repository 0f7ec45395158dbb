// SPDX-License-Identifier: MIT OR Apache-2.0
//! The catalogue of rules: a `mod` line and a place in [`RULES`] each. Order is the order in which
//! findings of equal severity are shown: causes before symptoms. Each file has its manual page beside
//! it, which is its documentation here and what `floodline explain` prints.

pub mod buffered_loop_device;
pub mod cgroup_writeback_missing;
pub mod contradictory_dirty_settings;
pub mod dirty_cliff;
pub mod dirty_data_at_risk;
pub mod dominant_writer;
pub mod foreign_inode_thrash;
pub mod foreign_inode_writeback;
pub mod fsync_behind_writeback;
pub mod inode_switch_storm;
pub mod io_limit_throttling;
pub mod overlay_umount_flush;
pub mod saturated_device;
pub mod stalled_device;
pub mod starved_dirty_budget;
pub mod strictlimit_throttling;
pub mod wrapped_dirty_counter;

use super::Rule;

/// Every rule.
#[rustfmt::skip] // One a line, so that two rules can be added at the same time.
pub static RULES: &[Rule] = &[
    wrapped_dirty_counter::RULE,
    starved_dirty_budget::RULE,
    overlay_umount_flush::RULE,
    io_limit_throttling::RULE,
    cgroup_writeback_missing::RULE,
    dirty_cliff::RULE,
    dominant_writer::RULE,
    saturated_device::RULE,
    inode_switch_storm::RULE,
    buffered_loop_device::RULE,
    fsync_behind_writeback::RULE,
    strictlimit_throttling::RULE,
    stalled_device::RULE,
    foreign_inode_thrash::RULE,
    foreign_inode_writeback::RULE,
    contradictory_dirty_settings::RULE,
    dirty_data_at_risk::RULE,
];
