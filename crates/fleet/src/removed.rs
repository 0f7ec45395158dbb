// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data that were dirtied and removed between two samples, such as temporary files. No sample shows them, but they count against
//! a limit. The counters of dirtied and written pages reveal them.

use crate::arithmetic::TIGHT;
use crate::between::Between;
use crate::row::Cause;
use crate::waits::{Dirtying, peaks};
use floodline_analysis::budget::{AsIfRow, Assumed, Bound};
use floodline_analysis::diagnose::derived::Derived;
use floodline_record::human;
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
    let most = rows.clone().zip(rows.skip(1)).filter_map(|(one, next)| removed(Between::of(one, next)?)).max()?;
    let most = most.saturating_mul(page);
    ((then as f64) < TIGHT * most as f64).then(|| {
        format!(
            "Up to {} were dirtied and removed again between two samples. After the change, writers wait above {} of unwritten data.",
            human::bytes(most as f64),
            human::bytes(then as f64)
        )
    })
}

/// Data that no sample shows today, and that smaller background thresholds have written.
pub(crate) struct WrittenThen {
    /// Task-seconds per second that tasks wait for it: those that remove it, and those that sync.
    pub(crate) waits: f64,
    /// Bytes per second of it.
    pub(crate) rate: f64,
    pub(crate) cause: Cause,
    pub(crate) told: String,
}

/// Finds such data. What one interval dirties and removes is taken as one burst of one cgroup. `None` without it.
pub(crate) fn written_then(derived: &Derived<'_>, assumed: &Assumed<'_>) -> Option<WrittenThen> {
    let window = derived.window;
    let dirtying = Dirtying::of(derived)?;
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1));
    let rows = window.host_series.iter().map(|(_, row)| row);
    let bursts = rows.clone().zip(rows.skip(1)).filter_map(|(one, next)| Between::of(one, next).map(unseen));
    let bursts: Vec<f64> = bursts.filter(|pages| *pages > 0).map(|pages| pages.saturating_mul(page) as f64).collect();
    let most = bursts.iter().copied().fold(0.0, f64::max);
    let high = |bound: Option<Bound>| bound.map(|bound| bound.high.0 as f64);
    let (now, then) = high(assumed.now.global.bg_thresh).zip(high(assumed.then.global.bg_thresh))?;
    if most <= then.min(now) && assumed.now.scope.is_per_cgroup() == assumed.then.scope.is_per_cgroup() {
        return None;
    }
    let above = |bound: f64| bursts.iter().map(|burst| (burst - bound).max(0.0)).sum::<f64>();
    let more_above = |bound: f64| (above(bound) - above(now)).max(0.0);
    let peaks = peaks(&assumed.rows);
    let is_new = |row: &&AsIfRow| row.cgroup.is_some() && row.now_thresh_bytes.is_none();
    let in_cgroup = |row: &AsIfRow| Some((dirtying.share(row, peaks), row.then_bg_thresh_bytes? as f64));
    let cgroups: Vec<(f64, f64)> = assumed.rows.iter().filter(is_new).filter_map(in_cgroup).collect();
    let rest = (1.0 - cgroups.iter().map(|(share, _)| share).sum::<f64>()).max(0.0);
    let of_cgroups: f64 = cgroups.iter().map(|(share, bound)| share * more_above(bound.min(then))).sum();
    let of_machine = rest * more_above(then);
    let written = of_cgroups + of_machine;
    if written <= 0.0 || derived.seconds <= 0.0 {
        return None;
    }
    let waits = written * seconds_per_byte(derived, &dirtying);
    Some(WrittenThen {
        waits: waits / derived.seconds,
        rate: written / derived.seconds,
        cause: if of_cgroups > of_machine { Cause::CgroupLimit } else { Cause::MachineLimit },
        told: format!(
            "Up to {} were dirtied and removed again between two samples. After the change about {} of such data are written \
             first, which takes the disk about {} in {}.",
            human::bytes(most),
            human::bytes(written),
            human::seconds(waits),
            human::seconds(derived.seconds)
        ),
    })
}

/// Share of what a recording dirtied that was removed before it was written.
pub(crate) fn removed_share(window: &Window) -> f64 {
    let all = window.host_series.first().zip(window.host_series.last());
    let Some(all) = all.and_then(|((_, first), (_, last))| Between::of(first, last)) else { return 0.0 };
    (all.removed() as f64 / all.dirtied.max(1) as f64).min(1.0)
}

/// Seconds that the disks take to write a byte of a burst. A disk that wrote little shows a speed in small requests only, which is
/// a lower bound, and the kernel's estimate begins above the speed of most disks: the geometric mean of both.
pub(crate) fn seconds_per_byte(derived: &Derived<'_>, dirtying: &Dirtying) -> f64 {
    let estimates = derived.window.bdis.values().filter_map(|span| span.max.write_bandwidth);
    let estimate = estimates.map(|speed| speed.0 as f64).fold(0.0, f64::max);
    match estimate * dirtying.seconds_per_byte > 1.0 {
        true => (dirtying.seconds_per_byte / estimate).sqrt(),
        false => dirtying.seconds_per_byte,
    }
}

/// Pages that were dirtied between two samples, and neither written nor left.
fn unseen(between: Between) -> u64 {
    between.dirtied.saturating_sub(between.written).saturating_sub(between.after)
}

/// The most pages that can have been unwritten between two samples, if most of them were removed before they were written.
fn removed(between: Between) -> Option<u64> {
    let removed = between.removed().min(between.dirtied);
    (removed as f64 >= REMOVED * between.most() as f64 && removed > 0).then_some(between.most())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::sample::{HostRow, SampleTime};
    use floodline_record::units::Pages;

    fn row(dirty: u64, dirtied: u64, written: u64) -> HostRow {
        HostRow {
            nr_dirty: Some(Pages(dirty)),
            nr_writeback: Some(Pages(0)),
            nr_dirtied: Some(Pages(dirtied)),
            nr_written: Some(Pages(written)),
            ..HostRow::default()
        }
    }

    #[test]
    fn what_was_removed_before_it_was_written_is_counted() {
        let check = |one, next, expect| assert_eq!(Between::of(&one, &next).and_then(removed), expect);
        check(row(10, 100, 0), row(10, 1100, 0), Some(1010));
        check(row(10, 100, 0), row(510, 1100, 0), None);
        // Written, or written beforehand and removed.
        check(row(10, 100, 0), row(10, 1100, 1000), None);
        check(row(900, 100, 0), row(0, 100, 0), None);
        check(row(10, 1100, 0), row(10, 100, 0), None);
        check(HostRow::default(), row(10, 1100, 0), None);
    }

    #[test]
    fn what_is_removed_is_a_share_of_what_was_dirtied() {
        let share = |first, last| {
            let mut window = Window::default();
            window.host_series.extend([first, last].map(|row| (SampleTime::default(), row)));
            removed_share(&window)
        };
        assert_eq!(share(row(0, 0, 0), row(0, 1000, 1000)), 0.0);
        assert_eq!(share(row(0, 0, 0), row(500, 1000, 500)), 0.0, "still unwritten");
        assert_eq!(share(row(0, 0, 0), row(0, 1000, 250)), 0.75);
        assert_eq!(share(row(0, 0, 0), HostRow::default()), 0.0, "not counted");
    }

    #[test]
    fn what_a_sample_shows_is_not_unseen() {
        let check = |one, next, expect| assert_eq!(Between::of(&one, &next).map(unseen), expect);
        check(row(10, 100, 0), row(10, 1100, 0), Some(990));
        check(row(10, 100, 0), row(510, 1100, 300), Some(190));
        // Removed, and dirtied before the first sample.
        check(row(900, 100, 0), row(100, 200, 0), Some(0));
        check(row(10, 1100, 0), row(10, 100, 0), None);
        check(HostRow::default(), row(10, 1100, 0), None);
    }
}
