// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that were dirtied and removed between two samples, such as temporary files. No sample shows them, but they count against
//! a limit. The counters of dirtied and written pages reveal them.

use crate::arithmetic::TIGHT;
use floodline_analysis::budget::{Assumed, Bound};
use floodline_record::human;
use floodline_record::sample::HostRow;
use floodline_record::units::Pages;
use floodline_record::window::Window;

/// Relative change of a limit that counts.
const SAME: f64 = 0.01;
/// Share of the unwritten data between two samples that must have been removed. Below it, writeback explains the difference.
const REMOVED: f64 = 0.5;

/// Reason why data that no sample shows may exceed a smaller limit of the machine, or half of it. How much was unwritten at one
/// time is unknown: a program can remove one file before it writes the next.
pub(crate) fn removed_early(window: &Window, assumed: &Assumed<'_>) -> Option<String> {
    let high = |bound: Option<Bound>| bound.map(|bound| bound.high.0);
    let (now, then) = high(assumed.now.global.freerun).zip(high(assumed.then.global.freerun))?;
    if then as f64 >= now as f64 * (1.0 - SAME) {
        return None;
    }
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1));
    let rows = window.host_series.iter().map(|(_, row)| row);
    let most = rows.clone().zip(rows.skip(1)).filter_map(|(one, next)| removed(one, next)).max()?;
    let most = most.saturating_mul(page);
    ((then as f64) < TIGHT * most as f64).then(|| {
        format!(
            "Up to {} were dirtied and removed again between two samples. After the change, writers wait above {} of unwritten data.",
            human::bytes(most as f64),
            human::bytes(then as f64)
        )
    })
}

/// The most pages that can have been unwritten between two samples, if most of them were removed before they were written.
fn removed(one: &HostRow, next: &HostRow) -> Option<u64> {
    let unwritten = |row: &HostRow| Some(row.nr_dirty?.0.saturating_add(row.nr_writeback?.0));
    let grown = |one: Option<Pages>, next: Option<Pages>| next?.0.checked_sub(one?.0);
    let dirtied = grown(one.nr_dirtied, next.nr_dirtied)?;
    let most = unwritten(one)?.saturating_add(dirtied).saturating_sub(grown(one.nr_written, next.nr_written)?);
    let removed = most.saturating_sub(unwritten(next)?).min(dirtied);
    (removed as f64 >= REMOVED * most as f64 && removed > 0).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_before_it_was_written_is_counted() {
        let row = |dirty, dirtied, written| HostRow {
            nr_dirty: Some(Pages(dirty)),
            nr_writeback: Some(Pages(0)),
            nr_dirtied: Some(Pages(dirtied)),
            nr_written: Some(Pages(written)),
            ..HostRow::default()
        };
        let check = |one, next, expect| assert_eq!(removed(&one, &next), expect);
        check(row(10, 100, 0), row(10, 1100, 0), Some(1010));
        check(row(10, 100, 0), row(510, 1100, 0), None);
        // Written, or written beforehand and removed.
        check(row(10, 100, 0), row(10, 1100, 1000), None);
        check(row(900, 100, 0), row(0, 100, 0), None);
        check(row(10, 1100, 0), row(10, 100, 0), None);
        check(HostRow::default(), row(10, 1100, 0), None);
    }
}
