// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write calls to large folios. A call that writes a part of a folio makes all of it dirty, and the counters of its task and of the
//! machine grow by the whole folio. So a log that is written in place counts many times what its program passes. Stores to mappings do
//! the same, but each of them faults.

use super::bursts::{Branch, End, arrivals, bursts, size};
use super::group::{Bin, Group, PAGE};
use super::machine::Place;
use super::rewrites;
use super::syncing::Syncing;
use super::syncs::{Syncs, buffered_calls};
use crate::Recorded;
use crate::provenance::{Notes, Origin};
use crate::recorded::Did;
use floodline_analysis::shown::behaviour;
use floodline_scenario::{Frequency, FsType, OnFile, Order, Pace, Step, SyncEvery, Write};

/// Bytes of the largest folio, and of the smallest one that shows.
const FOLIO_MAX: f64 = 2_097_152.0;
const FOLIO_MIN: f64 = 16_384.0;
/// Part of the bytes that must have become dirty beside what was passed.
const BESIDE_MIN: f64 = 0.25;
/// Size of a file that nothing tells, and the largest one.
const FILE: f64 = 8.0 * 1_048_576.0;
const FILE_MAX: f64 = 1_073_741_824.0;

/// A file in large folios that a program writes to in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InFolios {
    /// Bytes of a folio.
    folio: f64,
    /// Bytes of a call, in whole pages.
    block: f64,
    /// Calls to the file, all copies together.
    calls: f64,
    /// Size of the file of each copy.
    bytes: f64,
}

/// Whether the bytes that a process dirtied beside what it passed come from its write calls: it had too few faults to dirty them by
/// stores, even if each fault were in a clean folio of the largest size, and enough calls to large folios.
pub(super) fn are_by_calls(list: &[Did], by_call: impl Fn(&Did) -> f64) -> bool {
    let (mut beside, mut unexplained, mut calls) = (0.0, 0.0, 0.0);
    for did in list {
        let more = did.dirtied as f64 - by_call(did);
        beside += more;
        unexplained += (more - did.faults as f64 * FOLIO_MAX).max(0.0);
        calls += did.syscw as f64;
    }
    unexplained > 0.5 * beside && beside <= calls * FOLIO_MAX
}

/// Size of the folios, from the bytes that a call to the file dirties: exactly where the calls are known, else at least.
fn folio(per_call: f64, is_exact: bool) -> f64 {
    let order = per_call.max(1.0).log2();
    // Calls that pass a few bytes to a pipe dirty nothing. They make the bytes of a call fewer, and a folio is a power of two.
    let order = if is_exact { order.round() } else { (order - 0.1).ceil() };
    order.exp2().clamp(FOLIO_MIN, FOLIO_MAX)
}

impl InFolios {
    /// The file of a group. `None` where its calls dirty about what they pass, or where the kernel makes no large folios by writes.
    pub(super) fn of(group: &Group, syncs: &Syncs, place: &Place, recorded: &Recorded) -> Option<InFolios> {
        let total = &group.total;
        let (calls, passed) = (buffered_calls(group), rewrites::passed(total));
        let makes_folios = behaviour(&recorded.window).is_some_and(|kernel| match place.fs_type {
            FsType::Ext4 => kernel.folios.ext4,
            FsType::Xfs => kernel.folios.xfs_by_write,
            _ => false,
        });
        let beside = total.by_calls - passed - calls * PAGE;
        if !makes_folios || calls < 1.0 || total.cancelled > 0.0 || beside < BESIDE_MIN * total.by_calls {
            return None;
        }
        let is_exact = syncs.origin == Origin::Measured && syncs.call.is_some() && syncs.at_ends.is_none();
        let to_file = if is_exact { syncs.count.clamp(1.0, calls) } else { calls };
        let folio = folio(total.by_calls / to_file, is_exact);
        let calls = (total.by_calls / folio).clamp(1.0, calls);
        let block = ((passed / calls / PAGE).round().max(1.0) * PAGE).min(folio);
        let bytes = before(group, recorded).max(2.0 * folio);
        Some(InFolios { folio, block, calls, bytes: (bytes / folio).round() * folio })
    }

    /// The setup that makes the file: in calls of a folio each, so that it is in such folios.
    pub(super) fn setup(self, file: &str) -> [Step; 2] {
        let whole =
            Write { file: file.to_owned(), block: size(self.folio), total: Some(size(self.bytes)), ..Write::default() };
        [Step::Write(whole), Step::Fsync(OnFile { file: file.to_owned() })]
    }

    /// Its calls.
    pub(super) fn branch(
        self,
        group: &Group,
        (sync, end): (Option<SyncEvery>, Option<End>),
        file: String,
        key: &str,
        notes: &mut Notes,
    ) -> Branch {
        let InFolios { folio, block, bytes, .. } = self;
        notes.derived(
            format!("{key}.steps.write.size"),
            "each call dirties far more than it passes, without faults: it writes in place, in large folios",
        );
        notes.derived(
            format!("{key}.steps.write.block"),
            "wchar divided by the calls that dirtied a folio, in whole pages",
        );
        notes.derived(format!("{key}.steps.write.rate"), "folios that became dirty, over time");
        let amount = |bin: &Bin| bin.by_calls;
        let bursts = if end.is_some() { bursts(&group.bins, amount) } else { arrivals(&group.bins, amount, folio) };
        let syncing = Syncing::new(sync);
        let synced_after = syncing.after();
        let order = order(end.is_some(), synced_after);
        let step = move |count: u64, rate: Option<Frequency>| {
            let write = Write {
                file: file.clone(),
                order,
                size: Some(size(bytes)),
                block: size(block),
                rate: rate.map(Pace::Blocks),
                count: Some(count),
                ..Write::default()
            };
            syncing.steps(write, count)
        };
        Branch { end, synced_after, ..Branch::new(bursts, folio, step) }
    }

    /// Calls to the file.
    pub(super) const fn calls(self) -> f64 {
        self.calls
    }
}

/// Order of calls that dirty a folio each. Neighbours that are written together dirty one folio. So the folios lie apart where one sync
/// covers several of them, and where the program does not sync.
fn order(has_end: bool, synced_after: Option<u64>) -> Order {
    let is_apart = has_end || synced_after.is_none_or(|after| after > 1);
    if is_apart { Order::Random } else { Order::Sequential }
}

/// Bytes of the file of each copy: what its processes passed before the recording, at most, as a log is allocated first. A process that
/// passed little shows no size.
fn before(group: &Group, recorded: &Recorded) -> f64 {
    let of_group = recorded.window.processes.iter().filter(|(id, _)| group.holds(recorded, id));
    let passed = of_group.filter_map(|(_, span)| Some(span.first.wchar?.0 as f64)).fold(0.0, f64::max);
    if passed >= 2.0 * FOLIO_MIN { passed.min(FILE_MAX) } else { FILE }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of `calls` of 8 KiB that dirty `bytes`, with `faults`.
    fn did(calls: u64, bytes: u64, faults: u64) -> Did {
        Did { wchar: calls * 8192, syscw: calls, dirtied: bytes, faults, ..Did::default() }
    }

    fn most(did: &Did) -> f64 {
        (did.dirtied as f64).min(did.wchar as f64 + did.syscw as f64 * PAGE)
    }

    #[test]
    fn bytes_without_faults_come_from_calls() {
        let check = |list: &[Did], expect: bool| assert_eq!(are_by_calls(list, most), expect, "{list:?}");
        let log = || did(5, 5 << 20, 0);
        check(&[log(), log()], true);
        // The faults of one interval do not explain the others.
        check(&[log(), did(5, 5 << 20, 75), log()], true);
        // Each store faults.
        check(&[did(5, 5 << 20, 80), did(5, 5 << 20, 80)], false);
        // More than the folios of all calls: another way to write, which no counter of calls has.
        check(&[did(1, 90 << 20, 0), did(1, 90 << 20, 0)], false);
        check(&[did(10, 81_920, 0)], false);
    }

    #[test]
    fn calls_that_dirty_a_folio_each_without_a_sync_between_them_are_apart() {
        assert_eq!(order(false, Some(1)), Order::Sequential, "each is synced");
        assert_eq!([order(false, Some(4)), order(true, None)], [Order::Random; 2]);
        assert_eq!(order(false, None), Order::Random, "they would dirty one folio until it is written");
    }

    #[test]
    fn a_folio_is_a_power_of_two() {
        assert_eq!(folio(1_043_000.0, true), 1_048_576.0);
        assert_eq!(folio(1_260_000.0, true), 1_048_576.0);
        // Half of the calls go to a pipe.
        assert_eq!(folio(715_000.0, false), 1_048_576.0);
        assert_eq!(folio(1_049_000.0, false), 1_048_576.0);
        assert_eq!(folio(9_000.0, false), FOLIO_MIN);
        assert_eq!(folio(9e6, false), FOLIO_MAX);
    }
}
