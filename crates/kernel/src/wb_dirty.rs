// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the kernel sums a wb's per-CPU counters exactly: it does where the share is small against
//! what the CPUs may keep back. Mirrors wb_dirty_limits of mm/page-writeback.c.

/// Whether a wb with this share is counted exactly, at the price of a walk over all possible CPUs;
/// `wb_stat_error` is [`super::Build::wb_stat_error`]. Both in pages.
pub fn wb_dirty_is_exact(wb_thresh: u64, wb_stat_error: u64) -> bool {
    wb_thresh < wb_stat_error.saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Build;

    #[test]
    fn small_shares_on_large_machines_are_counted_exactly() {
        let error = Build { hz: 250, cpus_possible: 64, page_size: 4096 }.wb_stat_error();
        assert!(wb_dirty_is_exact(7167, error));
        assert!(!wb_dirty_is_exact(7168, error));
        assert!(wb_dirty_is_exact(5, u64::MAX));
    }
}
