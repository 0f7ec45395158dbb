// SPDX-License-Identifier: MIT OR Apache-2.0
//! Number of pages that a task in freerun dirties before its next check: about the square root of the
//! distance to the hard threshold. Mirrors mm/page-writeback.c.

/// Returns the number of pages until the next check; at least 1.
pub fn dirty_poll_interval(dirty: u64, thresh: u64) -> u64 {
    match thresh.saturating_sub(dirty).checked_ilog2() {
        Some(log) => 1 << (log >> 1),
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_power_of_two_below_the_root_of_the_distance(dirty: u64, thresh: u64) {
            let poll = dirty_poll_interval(dirty, thresh);
            prop_assert!(poll.is_power_of_two());
            let distance = u128::from(thresh.saturating_sub(dirty)).max(1);
            prop_assert!(u128::from(poll).pow(2) <= distance);
            prop_assert!(distance < u128::from(poll).pow(2) * 4);
        }
    }
}
