// SPDX-License-Identifier: MIT OR Apache-2.0
//! Durable writes of a program that has several under way at once, by threads or by asynchronous I/O. Its calls wait for longer in
//! all than time passes. On a device that they keep full, each waits for those before it, and no clock sets the pace.

use super::bursts::{Branch, arrivals, size};
use super::group::{Group, PAGE};
use super::machine::Place;
use super::syncs::Syncs;
use super::writer::fills_device;
use crate::provenance::{Notes, Origin};
use floodline_record::window::Window;
use floodline_scenario::{Frequency, Order, Pace, Step, Write};

/// Fewest calls under way, on average, that are several.
const SEVERAL: f64 = 1.5;
/// Most calls under way of a task of a scenario.
const DEPTH_MAX: f64 = 64.0;
/// Fewest durable calls that show it.
const CALLS_MIN: f64 = 16.0;

/// The writes of such a program. `None` of another one.
pub(super) fn durable(
    group: &Group,
    syncs: &Syncs,
    place: &Place,
    window: &Window,
    (file, key): (&str, &str),
    notes: &mut Notes,
) -> Option<Branch> {
    let depth = depth(group, syncs)?;
    if !fills_device(group, |bin| bin.by_calls, place, window) {
        return None;
    }
    notes.measured(
        format!("{key}.steps.write.depth"),
        "time of the durable calls in the trace over the time that passed",
    );
    notes.derived(format!("{key}.steps.write.block"), "mean bytes of the durable calls, in whole pages");
    notes.derived(format!("{key}.steps.write.rate"), "they keep the device full: each call waits for those before it");
    let block = ((group.total.by_calls / syncs.count / PAGE).round().max(1.0) * PAGE).min(16_777_216.0);
    notes.assumed(
        format!("{key}.steps.write.order"),
        "calls at once do not append; where they write in the file shows nowhere",
    );
    notes.assumed(format!("{key}.steps.write.size"), "as many bytes as it wrote: no page is written twice");
    let bytes = size(group.total.by_calls.max(block));
    let file = file.to_owned();
    let step = move |count: u64, rate: Option<Frequency>| {
        vec![Step::Write(Write {
            file: file.clone(),
            order: Order::Sequential,
            size: Some(bytes),
            block: size(block),
            rate: rate.map(Pace::Blocks),
            count: Some(count),
            dsync: true,
            depth,
            ..Write::default()
        })]
    };
    let bursts = arrivals(&group.bins, |bin| bin.by_calls, block);
    Some(Branch { is_unpaced: true, ..Branch::new(bursts, block, step) })
}

/// Durable calls of each process under way at once.
fn depth(group: &Group, syncs: &Syncs) -> Option<u64> {
    let synced = group.synced.filter(|_| syncs.origin == Origin::Measured && syncs.call.is_some())?;
    let seconds: f64 = group.bins.iter().filter(|bin| bin.by_calls > 0.0).map(|bin| bin.length).sum();
    let depth = synced.waited as f64 / 1e9 / seconds.max(1e-3) / group.concurrent() as f64;
    (syncs.count >= CALLS_MIN && depth >= SEVERAL).then(|| depth.round().min(DEPTH_MAX) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::group::{Bin, Synced};
    use super::*;
    use floodline_scenario::SyncCall;

    #[test]
    fn calls_that_wait_for_longer_than_time_passes_are_under_way_at_once() {
        let bin = Bin { length: 1.0, by_calls: 12e6, active: 1, ..Bin::default() };
        let group = |waited: f64| Group {
            bins: vec![bin; 40],
            synced: Some(Synced { fdatasyncs: 500, waited: (waited * 1e9) as u64, ..Synced::default() }),
            ..Group::default()
        };
        let syncs =
            Syncs { count: 500.0, call: Some(SyncCall::Fdatasync), origin: Origin::Measured, ..Syncs::default() };
        assert_eq!(depth(&group(312.0), &syncs), Some(8));
        assert_eq!(depth(&group(39.0), &syncs), None, "one after the other");
        assert_eq!(depth(&group(312.0), &Syncs { origin: Origin::Derived, ..syncs }), None, "nothing counts them");
        assert_eq!(depth(&group(312.0), &Syncs { count: 9.0, ..syncs }), None, "few");
    }
}
