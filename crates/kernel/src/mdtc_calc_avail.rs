// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dirtyable memory of a memcg domain: its file pages and as much of its headroom as clean memory
//! elsewhere could give. Only headroom comes from ancestors; their own dirty thresholds are not
//! checked. Mirrors mm/page-writeback.c and mem_cgroup_wb_stats of mm/memcontrol.c.

use super::algorithm::{Algorithm, MdtcAvail};

/// What it depends on, pages. Statistics are hierarchical: the memcg and its descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MdtcAvailInput {
    /// File pages of the memcg: inactive + active.
    pub file: u64,
    /// Least of `min(max, high) - usage` over the memcg and its ancestors; `u64::MAX` without limits.
    pub headroom: u64,
    /// Dirty pages of the memcg; with pages under writeback where the caller counts them.
    pub dirty: u64,
    /// Dirtyable memory of the machine.
    pub global_avail: u64,
    /// Dirty pages of the machine, counted as `dirty` is.
    pub global_dirty: u64,
}

/// Dirtyable memory of the memcg domain, pages.
pub fn mdtc_calc_avail(algorithm: &Algorithm, input: &MdtcAvailInput) -> u64 {
    let global_clean = input.global_avail - input.global_avail.min(input.global_dirty);
    match algorithm.mdtc_avail {
        // Until commit c5edf9cdc4c4 ("writeback: fix incorrect calculation of available memory for memcg
        // domains"), 4.4.
        MdtcAvail::WithinClean => input.file.saturating_add(input.headroom).min(global_clean),
        MdtcAvail::FileAndHeadroom => {
            let clean = input.file - input.file.min(input.dirty);
            let other_clean = global_clean - global_clean.min(clean);
            input.file.saturating_add(input.headroom.min(other_clean))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::linux;
    use floodline_record::version::KernelVersion;
    use proptest::prelude::*;

    #[test]
    fn an_unlimited_cgroup_has_the_clean_memory_of_the_machine() {
        let input = MdtcAvailInput {
            file: 300_000,
            headroom: u64::MAX,
            dirty: 20_000,
            global_avail: 6_000_000,
            global_dirty: 900_000,
        };
        assert_eq!(mdtc_calc_avail(&linux(6, 14), &input), 5_120_000);
        let old = Algorithm::of(KernelVersion::new(4, 2, 0));
        assert_eq!(mdtc_calc_avail(&old, &input), 5_100_000);
    }

    proptest! {
        #[test]
        fn it_is_at_least_the_file_pages_and_grows_with_headroom(
            file: u64, headroom: u64, dirty: u64, global_avail: u64, global_dirty: u64, more: u64,
        ) {
            let input = MdtcAvailInput { file, headroom, dirty, global_avail, global_dirty };
            let avail = mdtc_calc_avail(&linux(6, 14), &input);
            prop_assert!(avail >= file);
            let roomier = MdtcAvailInput { headroom: headroom.saturating_add(more), ..input };
            prop_assert!(mdtc_calc_avail(&linux(6, 14), &roomier) >= avail);
        }
    }
}
