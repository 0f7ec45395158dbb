// SPDX-License-Identifier: MIT OR Apache-2.0
//! A counter whose CPUs hold changes back until they reach a batch: readers see only the folded changes. One CPU
//! stands for all. Mirrors lib/percpu_counter.c.

/// A per-CPU counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PercpuCounter {
    folded: i64,
    held: i64,
}

impl PercpuCounter {
    /// Makes a counter with a folded value and nothing held back.
    pub const fn at(value: i64) -> PercpuCounter {
        PercpuCounter { folded: value, held: 0 }
    }

    /// Adds on the CPU. Folds its held changes once they reach `batch`.
    #[inline]
    pub fn add(&mut self, amount: i64, batch: u64) {
        self.held = self.held.saturating_add(amount);
        if self.held.unsigned_abs() >= batch {
            self.folded = self.folded.saturating_add(self.held);
            self.held = 0;
        }
    }

    /// What a reader sees, which is never below 0.
    #[inline]
    pub fn read(self) -> u64 {
        u64::try_from(self.folded).unwrap_or(0)
    }

    /// What it is.
    pub fn sum(self) -> u64 {
        u64::try_from(self.folded.saturating_add(self.held)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_whole_batches() {
        let mut counter = PercpuCounter::at(1);
        let mut check = |amount, read, sum| {
            counter.add(amount, 16);
            assert_eq!((counter.read(), counter.sum()), (read, sum));
        };
        check(15, 1, 16);
        check(1, 17, 17);
        check(-10, 17, 7);
        check(-6, 1, 1);
        check(512, 513, 513);
    }
}
