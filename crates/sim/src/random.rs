// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deterministic randomness of a task: splitmix64, a counter with a good mixer; the generator that the
//! guest's worker uses as well.

/// A source of numbers that is the same for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 where there is none.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(end);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// So many distinct numbers below `end` in ascending order (Floyd's method).
    pub(crate) fn distinct(&mut self, count: u64, end: u64) -> std::collections::BTreeSet<u64> {
        let mut chosen = std::collections::BTreeSet::new();
        for last in end.saturating_sub(count)..end {
            let candidate = self.below(last + 1);
            if !chosen.insert(candidate) {
                chosen.insert(last);
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_has_as_many_distinct_pages_as_asked() {
        let check = |count, end, expect| assert_eq!(Random::new(1).distinct(count, end).len(), expect);
        check(12, 1024, 12);
        check(20, 13, 13);
        check(0, 13, 0);
    }
}
