// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dirtyable memory of the machine: from its counters, and from the thresholds that the kernel prints where they are
//! percentages of it. The two are compared.

use super::inputs::{Inputs, PageBound, gap};
use crate::report::{Evidence, Value};
use floodline_kernel::{
    DirtyTunables, DirtyableMemory, DomainLimits, RatioUnit, global_dirtyable_memory, percent_units,
};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::sample::HostRow;
use floodline_record::units::Pages;

/// Pages by which two readings of one moment may differ before that is reported.
pub(super) fn noise(pages: u64) -> u64 {
    64 + pages / 4096
}

/// Second count of free memory, pages, where a kernel has two that differ. (Seen in a 6.18 guest whose memory was hot-plugged:
/// nr_free_pages does not include it, MemFree and the thresholds do.)
fn second_count(row: &HostRow, page_size: u64) -> Option<Pages> {
    let (first, second) = (row.nr_free_pages?.0, row.mem_free?.0 / page_size.max(1));
    let apart = second.abs_diff(first);
    (apart > 4096 && apart > first.max(second) / 20).then_some(Pages(second))
}

/// Free memory of a sample, pages: the larger count where a kernel has two that differ.
pub fn free_pages(row: &HostRow, page_size: u64) -> Option<Pages> {
    row.nr_free_pages.max(second_count(row, page_size))
}

/// Dirtyable memory of the machine; `kernel` holds the thresholds it prints.
pub(super) fn available(
    inputs: &Inputs,
    kernel: Option<DomainLimits>,
    missing: &mut Vec<Gap>,
    disagreements: &mut Vec<Evidence>,
) -> Option<PageBound> {
    if let Some((pages, unread)) = &inputs.dirtyable {
        missing.extend_from_slice(unread);
        return Some(*pages);
    }
    let counters = counters(inputs, missing);
    let printed = kernel.zip(inputs.tunables).and_then(|(kernel, tunables)| bracket(inputs, kernel, &tunables));
    let Some(printed) = printed else {
        let (first, second) = (*counters.first()?, counters.get(1));
        let Some(second) = second else { return Some(first) };
        let differ = Cause::Malformed { what: "MemFree to be nr_free_pages".into() };
        missing.push(Gap::detailed(Source::Meminfo, differ, "free memory"));
        return Some(PageBound { low: first.low.min(second.low), high: first.high.max(second.high) });
    };
    for counters in &counters {
        let both = PageBound { low: counters.low.max(printed.low), high: counters.high.min(printed.high) };
        if both.low <= both.high {
            return Some(both);
        }
    }
    let apart =
        |counters: &PageBound| counters.low.saturating_sub(printed.high).max(printed.low.saturating_sub(counters.high));
    // MemFree is read at another time than the thresholds: a tolerance of one percent is sufficient.
    let second_is_near = counters.get(1).is_some_and(|second| apart(second) <= second.low / 100);
    if let Some(first) = counters.first().filter(|first| apart(first) > noise(first.low) && !second_is_near) {
        disagreements.push(Evidence {
            name: "dirtyable memory from the counters, against what nr_dirty_threshold implies".to_owned(),
            value: Value::Integer(first.low),
            unit: "pages",
            threshold: Some(Value::Integer(printed.low)),
            source: "/proc/vmstat and /proc/zoneinfo, global_dirtyable_memory".to_owned(),
        });
    }
    Some(printed)
}

/// Dirtyable memory from the counters: one value, or two where a kernel has two counts of free memory.
fn counters(inputs: &Inputs, missing: &mut Vec<Gap>) -> Vec<PageBound> {
    let host = inputs.host();
    let (Some(free), Some(inactive), Some(active)) = (host.nr_free_pages, host.nr_inactive_file, host.nr_active_file)
    else {
        missing.push(gap(inputs.window, Source::Vmstat, "free and file pages"));
        return Vec::new();
    };
    // Up to 4.7 dirtyable memory was made of per-zone counters that are not printed.
    let reserve = inputs.reserve.filter(|_| inputs.algorithm.ratio_unit == RatioUnit::PerPage);
    if reserve.is_none() {
        missing.push(gap(inputs.window, Source::Zoneinfo, "reserves"));
    }
    let (least, most) = reserve.map_or((u64::MAX, 0), |reserve| (reserve, reserve));
    let with = |free: u64| {
        let memory = |reserve| DirtyableMemory { free, reserve, inactive_file: inactive.0, active_file: active.0 };
        PageBound { low: global_dirtyable_memory(&memory(least)), high: global_dirtyable_memory(&memory(most)) }
    };
    let second = second_count(host, inputs.page_size);
    [Some(free), second].into_iter().flatten().map(|free| with(free.0)).collect()
}

/// Dirtyable memory that thresholds in percent imply: `thresh = ratio * avail / 4096` holds for a few
/// values of `avail` only.
fn bracket(inputs: &Inputs, kernel: DomainLimits, tunables: &DirtyTunables) -> Option<PageBound> {
    let denominator = match inputs.algorithm.ratio_unit {
        RatioUnit::Percent => 100,
        RatioUnit::PerPage => inputs.page_size,
    };
    let one = |bytes: u64, percent: u64, thresh: u64| {
        let units = percent_units(&inputs.algorithm, percent, inputs.page_size);
        if bytes != 0 || units == 0 || thresh == 0 || thresh >= u64::from(u32::MAX) {
            return None;
        }
        let low = thresh.checked_mul(denominator)?.div_ceil(units);
        let high = thresh.checked_add(1)?.checked_mul(denominator)?.checked_sub(1)? / units;
        (low <= high).then_some(PageBound { low, high })
    };
    let by_thresh = one(tunables.dirty_bytes, tunables.dirty_ratio, kernel.thresh);
    // Half the hard threshold may be a correction, and then says nothing of its own.
    let own = kernel.bg_thresh != kernel.thresh / 2;
    let by_bg = one(tunables.dirty_background_bytes, tunables.dirty_background_ratio, kernel.bg_thresh).filter(|_| own);
    match (by_thresh, by_bg) {
        (Some(a), Some(b)) => {
            let both = PageBound { low: a.low.max(b.low), high: a.high.min(b.high) };
            Some(if both.low <= both.high { both } else { a })
        }
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::{free_pages, noise};
    use floodline_record::sample::HostRow;
    use floodline_record::units::{Bytes, Pages};

    #[test]
    fn free_memory_includes_memory_that_only_one_count_has() {
        let check = |pages: Option<u64>, bytes: Option<u64>, expect: Option<u64>| {
            let (nr_free_pages, mem_free) = (pages.map(Pages), bytes.map(Bytes));
            let row = HostRow { nr_free_pages, mem_free, ..HostRow::default() };
            assert_eq!(free_pages(&row, 4096), expect.map(Pages), "{pages:?} {bytes:?}");
        };
        check(Some(1_000_000), Some(24_000_000_000), Some(5_859_375));
        check(Some(6_000_000), Some(4_000_000_000), Some(6_000_000));
        // Two readings of one moment differ a little.
        check(Some(1_000_000), Some(4_100_000_000), Some(1_000_000));
        check(None, Some(4_096_000_000), None);
        check(Some(1_000_000), None, Some(1_000_000));
    }

    #[test]
    fn readings_may_differ_by_64_pages_and_one_in_4096() {
        assert_eq!([0, 4095, 4096, 40_960].map(noise), [64, 64, 65, 74]);
    }
}
