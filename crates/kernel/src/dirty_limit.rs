// SPDX-License-Identifier: MIT OR Apache-2.0
//! The smoothed hard limit of a domain: follows a rising threshold at once and a falling one by 1/32 of
//! the distance per update, never below what is dirty. Mirrors update_dirty_limit of
//! mm/page-writeback.c; the caller keeps updates 200 ms apart.

/// The next smoothed limit from the last (`dirty_limit`), pages.
pub fn update_dirty_limit(dirty_limit: u64, thresh: u64, dirty: u64) -> u64 {
    if dirty_limit < thresh {
        return thresh;
    }
    let towards = thresh.max(dirty);
    dirty_limit - (dirty_limit.saturating_sub(towards) >> 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_never_falls_below_the_threshold(dirty_limit: u64, thresh: u64, dirty: u64) {
            let next = update_dirty_limit(dirty_limit, thresh, dirty);
            prop_assert!(next >= thresh);
            prop_assert!(next <= dirty_limit.max(thresh));
        }
    }
}
