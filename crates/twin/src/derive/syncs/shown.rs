// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the recording itself shows that a program syncs. A twin also syncs where only the age of dirty data speaks for it.

use super::Syncs;
use super::flushes::flushes_for_programs;
use crate::derive::group::Group;
use crate::derive::machine::Place;
use crate::provenance::Origin;
use floodline_record::sample::HostRow;
use floodline_record::window::Window;
use floodline_scenario::SyncCall;

/// Whether one of these syncs is shown: a trace has it, or its program waits. Where the kernel counts no delays, flushes of a disk that
/// programs request show it. A program without delays, although the kernel counts them, does not wait for a sync. Nor does a program show
/// one that waits only while the machine pauses writers.
pub(in crate::derive) fn are_shown(groups: &[Group], syncs: &[Syncs], places: &[Place], window: &Window) -> bool {
    let counts_delays = window.facts.as_ref().is_some_and(|facts| facts.task_delayacct == Some(true));
    let is_flushed = places.iter().any(|place| flushes_for_programs(groups, place) >= 1.0);
    groups.iter().zip(syncs).any(|(group, syncs)| {
        let waits = syncs.call.is_some_and(|call| call != SyncCall::SyncFileRange);
        let is_seen = if counts_delays { waited_unpaused(group, window) > 0.0 } else { is_flushed };
        waits && (syncs.origin == Origin::Measured || is_seen)
    })
}

/// Seconds that a program waited in intervals in which the machine probably did not pause it: at neither end more was unwritten than the
/// mean of both thresholds. All of its waits where no sample has these figures.
fn waited_unpaused(group: &Group, window: &Window) -> f64 {
    let is_over = |row: &HostRow| {
        let ceiling = row.nr_dirty_threshold?.0.saturating_add(row.nr_dirty_background_threshold?.0) / 2;
        Some(row.nr_dirty?.0.saturating_add(row.nr_writeback?.0) > ceiling)
    };
    let is_paused = |index: usize| {
        let ends = window.host_series.get(index..index + 2);
        ends.is_some_and(|ends| ends.iter().any(|(_, row)| is_over(row).unwrap_or(false)))
    };
    let unpaused = group.bins.iter().enumerate().filter(|(index, _)| !is_paused(*index));
    unpaused.map(|(_, bin)| bin.waited).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::group::Bin;
    use floodline_record::sample::SampleTime;
    use floodline_record::units::Pages;

    #[test]
    fn a_program_that_waits_only_at_the_threshold_shows_no_sync() {
        let row = |dirty: u64| HostRow {
            nr_dirty: Some(Pages(dirty)),
            nr_writeback: Some(Pages(0)),
            nr_dirty_threshold: Some(Pages(1000)),
            nr_dirty_background_threshold: Some(Pages(500)),
            ..HostRow::default()
        };
        let rows = [100, 900, 950, 100, 100].map(row);
        let host_series = rows.map(|row| (SampleTime::default(), row)).to_vec();
        let window = Window { host_series, ..Window::default() };
        let group = |waits: [f64; 4]| Group {
            bins: waits.map(|waited| Bin { waited, ..Bin::default() }).to_vec(),
            ..Group::default()
        };
        assert_eq!(waited_unpaused(&group([0.4, 0.9, 0.3, 0.0]), &window), 0.0);
        assert_eq!(waited_unpaused(&group([0.4, 0.9, 0.3, 0.2]), &window), 0.2);
        let unknown = Window::default();
        assert_eq!(waited_unpaused(&group([0.4, 0.0, 0.0, 0.2]), &unknown), 0.4 + 0.2);
    }
}
