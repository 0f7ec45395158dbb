// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a cgroup's budget could become, and what it means: thresholds move with page cache and
//! headroom, and a threshold that is small against what the kernel counts by does not stop anybody.

use super::inputs::{Inputs, PageBound};
use super::{Bound, CgroupBudget, Flag, Outlook};
use floodline_record::units::Bytes;

/// The largest folio of page cache: 2 MiB.
const FOLIO_MAX: u64 = 2 << 20;
/// Pages a task may dirty before it looks for the first time (`nr_dirtied_pause` at fork).
const FIRST_LOOK: u64 = 32;

/// The outlook of one cgroup, from its budget of now. `thresh_at` is the hard threshold with that much
/// dirtyable memory.
pub(super) fn outlook(
    inputs: &Inputs,
    budget: &CgroupBudget,
    thresh_at: impl Fn(PageBound) -> Option<PageBound>,
) -> Outlook {
    let row = inputs.cgroup(budget.cgroup);
    let file =
        row.and_then(|row| Some(inputs.pages(row.inactive_file?).saturating_add(inputs.pages(row.active_file?))));
    let room = budget.headroom.as_ref().map(|room| room.bytes);
    let thresh = |pages: PageBound| thresh_at(pages).map(|pages| inputs.bound(pages));
    let grown = file.zip(room).and_then(|(file, room)| {
        thresh(PageBound {
            low: file.saturating_add(inputs.pages(room.low)),
            high: file.saturating_add(inputs.pages(room.high)),
        })
    });
    let without_room = file.and_then(|file| thresh(PageBound::exactly(file)));
    let may_hold = budget.domain.thresh.zip(inputs.wb_stat_error).map(|(thresh, error)| {
        // Each wb may keep this much whatever its domain's threshold.
        let wbs = u64::try_from(budget.wbs.len()).unwrap_or(u64::MAX).max(1);
        Bytes(thresh.high.0.max(error.0.saturating_mul(wbs)))
    });
    Outlook { grown, without_room, may_hold, flags: flags(inputs, budget) }
}

fn flags(inputs: &Inputs, budget: &CgroupBudget) -> Vec<Flag> {
    let mut flags = Vec::new();
    let domain = &budget.domain;
    let below = |limit: Bytes| domain.thresh.is_some_and(|thresh| thresh.high < limit);
    if below(inputs.bytes(2 * FIRST_LOOK)) {
        flags.push(Flag::BelowTwoLooks);
    }
    if below(Bytes(FOLIO_MAX)) {
        flags.push(Flag::BelowLargestFolio);
    }
    if inputs.wb_stat_error.is_some_and(below) {
        flags.push(Flag::BelowStatError);
    }
    if let Some(dirtied) = dirtied_in_flusher_period(inputs, budget)
        && let (Some(Bound { high: freerun, .. }), Some(Bound { low: bg_thresh, .. })) =
            (domain.freerun, domain.bg_thresh)
        && freerun.0.saturating_sub(bg_thresh.0) < dirtied
    {
        flags.push(Flag::BackgroundPassedUnseen);
    }
    flags
}

/// Bytes the cgroup's wbs have dirtied per flusher period over the window; `None` where the kernel does not print
/// it or one look is all there is.
fn dirtied_in_flusher_period(inputs: &Inputs, budget: &CgroupBudget) -> Option<u64> {
    let period = inputs.host().dirty_writeback_centisecs.filter(|period| period.0 > 0)?;
    let mut sum = 0.0;
    for id in budget.wbs.iter().filter_map(|wb| wb.wb) {
        let span = inputs.window.wbs.get(&id)?;
        let seconds = span.seconds();
        if seconds <= 0.0 {
            return None;
        }
        sum += span.growth.dirtied?.0 as f64 / seconds * (period.0 as f64 / 100.0);
    }
    Some(sum as u64)
}
