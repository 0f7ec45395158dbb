// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether the sums of a ledger add up. The kernel also counts some of the tracer's amounts in other places:
//! pages that became dirty (`nr_dirtied`), and bytes that disks wrote (`/proc/diskstats`). A trace that counted much
//! less has lost events without a recorded gap. Matching sums prove nothing about single files.

use super::Totals;
use floodline_record::units::Pages;
use floodline_record::window::Window;
use serde::Serialize;

/// Share of a sum, in hundredths, by which two counts may differ: they are not read at the same moment.
const TOLERANCE_PERCENT: u64 = 2;
/// Pages that each CPU may hold back before they show in `/proc/vmstat` (`stat_threshold` is 125 at most), at both ends
/// of a window.
const PAGES_OF_CPU: u64 = 250;

/// A sum of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sum {
    /// Bytes that became dirty, against `nr_dirtied` of `/proc/vmstat`.
    Dirtied,
    /// Bytes queued at the disks at the bottom, against `/proc/diskstats`.
    Queued,
    /// Bytes that were dirty at first or became dirty, against bytes that were written or dropped.
    Left,
}

/// A sum of the trace that is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The sum that is too small.
    pub sum: Sum,
    /// Bytes that the trace counted.
    pub traced_bytes: u64,
    /// Bytes that it should have counted at least.
    pub at_least_bytes: u64,
}

/// Pages that became dirty between the first sample and the second; all of them if there are fewer than three.
fn dirtied_at_first(window: &Window) -> u64 {
    let mut counts = window.host_series.iter().map(|(_, row)| row.nr_dirtied.map_or(0, |pages| pages.0));
    match (counts.next(), counts.next(), counts.next()) {
        (Some(first), Some(second), Some(_)) => second.saturating_sub(first),
        _ => u64::MAX,
    }
}

/// The sums of a window that do not add up. `written_once`: bytes of data that were written. Bytes that several devices
/// received count once.
pub(super) fn mismatches(window: &Window, totals: &Totals, written_once: u64) -> Vec<Mismatch> {
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1));
    let bytes = |pages: Option<Pages>| pages.map(|pages| pages.bytes(page).0);
    let cpus = window.facts.as_ref().and_then(|facts| facts.cpus_possible).unwrap_or(1);
    let slack = u64::from(cpus).saturating_mul(PAGES_OF_CPU).saturating_mul(page);
    let host = &window.host;
    let under_way = bytes(host.first.nr_writeback).unwrap_or(0);
    let before = bytes(host.first.nr_dirty).unwrap_or(0).saturating_add(under_way);
    let had = totals.dirtied_bytes.saturating_add(before);
    // The counter of a sample is read before the trace is. So the trace starts later than the counter of the first sample, and it has at
    // least what became dirty after that of the second.
    let counted = host.growth.nr_dirtied.map(|all| Pages(all.0.saturating_sub(dirtied_at_first(window))));
    let checks = [
        (Sum::Dirtied, totals.dirtied_bytes, bytes(counted), slack),
        (Sum::Queued, totals.queued.total(), totals.diskstats_bytes, under_way.saturating_add(slack)),
        (Sum::Left, had, Some(written_once.saturating_add(totals.cancelled_bytes)), slack),
    ];
    let found = |(sum, traced_bytes, counted, slack): (Sum, u64, Option<u64>, u64)| {
        let at_least_bytes = counted?;
        let allowed = (at_least_bytes / 100).saturating_mul(TOLERANCE_PERCENT).saturating_add(slack);
        (traced_bytes.saturating_add(allowed) < at_least_bytes).then_some(Mismatch {
            sum,
            traced_bytes,
            at_least_bytes,
        })
    };
    checks.into_iter().filter_map(found).collect()
}
