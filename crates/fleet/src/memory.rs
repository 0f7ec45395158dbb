// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the programs of a host fit into less memory: what is in use beside the page cache, and what of the cache has to stay.

use crate::arithmetic::TIGHT;
use crate::change::Change;
use floodline_analysis::budget::free_pages;
use floodline_record::human;
use floodline_record::units::Pages;
use floodline_record::window::Window;
use floodline_twin::lacks_memory;

/// Bytes of memory in use.
struct Used {
    /// What the kernel cannot reclaim, in the last sample. All that is neither free nor page cache, if the kernel's own estimate was
    /// not read.
    stays: u64,
    /// The most of it in any sample. Some of that was the kernel's and can be reclaimed, such as its caches of inodes.
    programs_max: u64,
    /// Page cache that the kernel has to keep, bytes: mapped pages, such as the code of programs, and unwritten pages. The
    /// most of any sample.
    cache: u64,
}

/// What is in use on a host that gets less memory, and how much it gets.
fn used(window: &Window, change: &Change) -> Option<(Used, u64)> {
    let memory = change.as_if.memory?;
    let host = &window.host.last;
    let total = window.facts.as_ref().and_then(|facts| facts.mem_total).or(host.mem_total)?.0;
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1));
    let bytes = |pages: &[Option<Pages>]| {
        let sum = pages.iter().flatten().fold(0u64, |sum, pages| sum.saturating_add(pages.0));
        sum.saturating_mul(page)
    };
    let mut used = Used { stays: 0, programs_max: 0, cache: 0 };
    for row in window.host_series.iter().map(|(_, row)| row).chain([host]) {
        if let Some(free) = free_pages(row, page) {
            let free = bytes(&[Some(free), row.nr_inactive_file, row.nr_active_file]);
            let programs = total.saturating_sub(free);
            used.stays = row.mem_available.and_then(|available| total.checked_sub(available.0)).unwrap_or(programs);
            used.programs_max = used.programs_max.max(programs);
        }
        let mapped = bytes(&[row.nr_mapped]).min(bytes(&[row.nr_inactive_file, row.nr_active_file]));
        let cache = bytes(&[row.nr_dirty, row.nr_writeback]).saturating_add(mapped);
        used.cache = used.cache.max(cache);
    }
    (memory < total).then_some((used, memory))
}

/// Reason why the programs do not fit into less memory.
pub(crate) fn memory_too_small(window: &Window, change: &Change) -> Option<String> {
    let (used, memory) = used(window, change)?;
    let lacking = lacks_memory(memory, window).or((used.stays >= memory).then_some(used.stays))?;
    Some(format!(
        "{} are in use that cannot be reclaimed, and the machine would have {}: the kernel would swap or kill processes.",
        human::bytes(lacking as f64),
        human::bytes(memory as f64)
    ))
}

/// Reason why they fit by less than the factor of two that a wide margin is. The kernel's own reserves come out of the
/// same rest.
pub(crate) fn memory_tight(window: &Window, change: &Change) -> Option<String> {
    let (used, memory) = used(window, change)?;
    let need = used.programs_max.saturating_add(used.cache);
    ((memory as f64) < TIGHT * need as f64).then(|| {
        let rest = memory.saturating_sub(used.programs_max);
        format!(
            "Up to {} are in use beside the page cache, and {} are left of {} for all page cache, of which {} were mapped or not \
             yet written.",
            human::bytes(used.programs_max as f64),
            human::bytes(rest as f64),
            human::bytes(memory as f64),
            human::bytes(used.cache as f64)
        )
    })
}
