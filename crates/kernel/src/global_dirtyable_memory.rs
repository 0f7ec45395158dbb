// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine-wide dirtyable memory: free pages above the reserves, and file pages. Dirty pages are file
//! pages themselves, so dirtying does not shrink it; anonymous memory and slab do. Holds from 4.8
//! (node-based LRU) on; before, the inputs were other counters. Mirrors mm/page-writeback.c.

/// Counters that dirtyable memory is made of, pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirtyableMemory {
    /// Free pages.
    pub free: u64,
    /// [`totalreserve_pages`].
    pub reserve: u64,
    /// Inactive file pages.
    pub inactive_file: u64,
    /// Active file pages.
    pub active_file: u64,
}

/// Dirtyable memory of the machine, pages; never 0. The highmem correction of 32-bit machines is not
/// made.
pub fn global_dirtyable_memory(memory: &DirtyableMemory) -> u64 {
    let file = memory.inactive_file.saturating_add(memory.active_file);
    memory.free.saturating_sub(memory.reserve).saturating_add(file).saturating_add(1)
}

/// What one zone keeps back, pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneReserve {
    /// Pages the allocator manages.
    pub managed: u64,
    /// High watermark without its boost.
    pub high: u64,
    /// Largest of the lowmem reserves.
    pub protection_max: u64,
}

/// Free pages that are not for dirtying: every zone's high watermark and largest lowmem reserve.
pub fn totalreserve_pages(zones: impl IntoIterator<Item = ZoneReserve>) -> u64 {
    zones
        .into_iter()
        .fold(0, |sum: u64, zone| sum.saturating_add(zone.protection_max.saturating_add(zone.high).min(zone.managed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserves_are_taken_from_free_pages_only() {
        let check = |free, reserve, inactive_file, active_file, expect| {
            let memory = DirtyableMemory { free, reserve, inactive_file, active_file };
            assert_eq!(global_dirtyable_memory(&memory), expect, "{memory:?}");
        };
        check(1000, 100, 50, 25, 976);
        check(100, 1000, 50, 25, 76);
        check(0, 0, 0, 0, 1);
        check(u64::MAX, 0, u64::MAX, u64::MAX, u64::MAX);
    }

    #[test]
    fn a_zone_reserves_no_more_than_it_has() {
        let zone = |managed, high, protection_max| ZoneReserve { managed, high, protection_max };
        assert_eq!(totalreserve_pages([zone(3840, 50, 1900), zone(1000, 80, 7000)]), 1950 + 1000);
        assert_eq!(totalreserve_pages([zone(u64::MAX, u64::MAX, 1), zone(5, 5, 5)]), u64::MAX);
        assert_eq!(totalreserve_pages([]), 0);
    }
}
