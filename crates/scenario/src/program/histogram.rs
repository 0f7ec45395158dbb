// SPDX-License-Identifier: MIT OR Apache-2.0
//! Durations in buckets: 1024 steps for each power of two, so that a quantile is at most 0.1 % too high. An HDR histogram of
//! three digits has the same buckets. Only buckets in use take memory, because a machine has thousands of tasks. No floats.

/// Fewest durations that are moved into the counts at once.
const FRESH_MIN: usize = 64;
/// Significant bits of a duration.
const BITS: u32 = 10;

/// Durations of operations, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// Number of durations in each bucket, sorted by bucket.
    counts: Vec<(u32, u64)>,
    /// Buckets of durations that are not among the counts yet.
    fresh: Vec<u32>,
}

#[inline]
fn bucket(nanos: u64) -> u32 {
    let log = nanos.max(1).ilog2();
    let shift = log.saturating_sub(BITS);
    (shift << (BITS + 1)) + u32::try_from(nanos >> shift).unwrap_or(0)
}

/// The largest value of a bucket.
fn value(bucket: u32) -> u64 {
    let (shift, kept) = (bucket >> (BITS + 1), u64::from(bucket & ((1 << (BITS + 1)) - 1)));
    (kept << shift) + ((1 << shift) - 1)
}

impl Histogram {
    /// Counts one duration. Sorts the counts from time to time, less often the more buckets there are.
    #[inline]
    pub(super) fn count(&mut self, nanos: u64) {
        self.fresh.push(bucket(nanos));
        if self.fresh.len() >= FRESH_MIN.max(self.counts.len()) {
            self.sort();
        }
    }

    /// Adds the durations of another histogram.
    pub(super) fn add(&mut self, other: Histogram) {
        self.counts.extend(other.counts);
        self.fresh.extend(other.fresh);
        self.sort();
    }

    /// Moves everything fresh into the counts.
    fn sort(&mut self) {
        self.counts.extend(self.fresh.drain(..).map(|bucket| (bucket, 1)));
        self.counts.sort_unstable_by_key(|(bucket, _)| *bucket);
        self.counts.dedup_by(|(bucket, count), (before, sum)| {
            let is_same = bucket == before;
            *sum += if is_same { *count } else { 0 };
            is_same
        });
    }

    /// Returns the duration that so many of a thousand do not exceed, in nanoseconds; 0 if there are none.
    pub(super) fn quantile(&mut self, per_mille: u64) -> u64 {
        if !self.fresh.is_empty() {
            self.sort();
        }
        let all: u64 = self.counts.iter().map(|(_, count)| count).sum();
        let rank = (all * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        reached.map_or(0, |(bucket, _)| value(*bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_values_to_a_thousandth() {
        for nanos in [0, 1, 2047, 2048, 123_456_789, u64::MAX / 3, u64::MAX] {
            let top = value(bucket(nanos));
            assert!(top >= nanos && top - nanos <= nanos >> BITS, "{nanos}: {top}");
        }
    }

    #[test]
    fn a_quantile_is_the_smallest_duration_that_enough_do_not_exceed() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(500), 0);
        (1..=1000).for_each(|nanos| histogram.count(nanos));
        let of = |per_mille: u64, histogram: &mut Histogram| histogram.quantile(per_mille);
        for per_mille in [1, 500, 501, 900, 990, 999, 1000] {
            assert_eq!(of(per_mille, &mut histogram), per_mille);
        }
        // The rank is a whole number: of 1001 durations, the median is the 501st.
        histogram.count(1001);
        assert_eq!((of(500, &mut histogram), of(999, &mut histogram)), (501, 1000));
    }

    #[test]
    fn the_order_in_which_durations_come_and_are_added_does_not_matter() {
        let durations: Vec<u64> = (0..5000_u64).map(|number| (number * 7919) % 5000 * 1000).collect();
        let of = |durations: &[u64]| {
            let mut histogram = Histogram::default();
            durations.iter().for_each(|nanos| histogram.count(*nanos));
            histogram
        };
        let mut whole = of(&durations);
        let mut parts = of(&durations[..1234]);
        parts.add(of(&durations[1234..]));
        for per_mille in (0..=1000).step_by(7) {
            assert_eq!(parts.quantile(per_mille), whole.quantile(per_mille), "{per_mille}");
        }
    }
}
