// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the recording itself shows that a program syncs. A twin also syncs where only the age of dirty data speaks for it.

use super::Syncs;
use super::flushes::flushes_for_programs;
use crate::derive::group::Group;
use crate::derive::machine::Place;
use crate::provenance::Origin;
use floodline_record::window::Window;
use floodline_scenario::SyncCall;

/// Whether one of these syncs is shown: a trace has it, or its program waits. Where the kernel counts no delays, flushes of a disk that
/// programs request show it. A program without delays, although the kernel counts them, does not wait for a sync.
pub(in crate::derive) fn are_shown(groups: &[Group], syncs: &[Syncs], places: &[Place], window: &Window) -> bool {
    let counts_delays = window.facts.as_ref().is_some_and(|facts| facts.task_delayacct == Some(true));
    let is_flushed = places.iter().any(|place| flushes_for_programs(groups, place) >= 1.0);
    groups.iter().zip(syncs).any(|(group, syncs)| {
        let waits = syncs.call.is_some_and(|call| call != SyncCall::SyncFileRange);
        let is_seen = if counts_delays { group.total.waited > 0.0 } else { is_flushed };
        waits && (syncs.origin == Origin::Measured || is_seen)
    })
}
