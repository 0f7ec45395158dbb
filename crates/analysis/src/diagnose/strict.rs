// SPDX-License-Identifier: MIT OR Apache-2.0
//! Strict limits of devices as rules see them: the amount that a device may have unwritten, and whether it had as much. A
//! finding about them comes from `strictlimit-throttling`; other rules must know that such a device pauses its writers.

use super::derived::Derived;
use super::device::Device;
use floodline_record::sample::BdiRow;
use floodline_record::window::Span;

/// Part of its largest share from which a device counts as at its limit.
pub const AT_SHARE: f64 = 0.5;

/// The device's share of the hard threshold, bytes, where its limit is strict. Pausing begins at half of it.
pub fn limit(derived: &Derived<'_>, span: &Span<BdiRow>) -> Option<f64> {
    let share = span.last.max_ratio.map_or(1.0, |ratio| ratio.0 as f64 / 1e6);
    let is_strict = span.last.strict_limit.is_some_and(|flag| flag.0 == 1);
    is_strict.then_some(derived.dirty.hard_threshold?.0 as f64 * share)
}

/// Unwritten bytes of a device.
pub fn unwritten(row: &BdiRow) -> Option<u64> {
    Some(row.reclaimable?.0.saturating_add(row.writeback?.0))
}

/// Whether a device was at its strict limit: its writers were then paused, and no more than the limit was queued at once.
pub fn holds(derived: &Derived<'_>, device: &Device<'_>) -> bool {
    let Some(limit) = device.bdi().and_then(|span| limit(derived, span)) else { return false };
    let held = device.bdi_series().unwrap_or_default().iter().filter_map(|(_, row)| unwritten(row)).max();
    held.is_some_and(|held| held as f64 >= AT_SHARE * limit)
}
