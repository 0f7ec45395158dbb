// SPDX-License-Identifier: MIT OR Apache-2.0
//! Durations in buckets: 1024 steps for each power of two, so that a quantile is at most 0.1 % too high. An HDR histogram of
//! three digits has the same buckets. Only those in use take memory, because a machine has thousands of tasks. No floats.

/// Significant bits of a duration.
const BITS: u32 = 10;
/// Neighbouring buckets that are kept together.
const TOGETHER: usize = 4;

/// Durations of operations, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// Number of durations in each bucket of a group, sorted by the number of the group.
    groups: Vec<(u32, [u32; TOGETHER])>,
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
    /// Counts one duration.
    #[inline]
    pub(super) fn count(&mut self, nanos: u64) {
        let (bucket, together) = (bucket(nanos), TOGETHER as u32);
        let counts = self.group(bucket / together);
        let count = &mut counts[(bucket % together) as usize];
        *count = count.saturating_add(1);
    }

    /// The counts of a group. A new one is rare among the operations of a task.
    #[inline]
    fn group(&mut self, number: u32) -> &mut [u32; TOGETHER] {
        let at = self.groups.partition_point(|(known, _)| *known < number);
        if self.groups.get(at).is_none_or(|(known, _)| *known != number) {
            self.groups.insert(at, (number, [0; TOGETHER]));
        }
        &mut self.groups[at].1
    }

    /// Adds the durations of another histogram.
    pub(super) fn add(&mut self, other: &Histogram) {
        for (number, theirs) in &other.groups {
            for (ours, more) in self.group(*number).iter_mut().zip(theirs) {
                *ours = ours.saturating_add(*more);
            }
        }
    }

    /// Returns the duration in nanoseconds that `per_mille` of 1000 operations do not exceed; 0 if there are no operations.
    pub(super) fn quantile(&self, per_mille: u64) -> u64 {
        let counts = || {
            self.groups.iter().flat_map(|(number, counts)| {
                let first = number * TOGETHER as u32;
                (first..).zip(counts.iter().map(|count| u64::from(*count)))
            })
        };
        let all: u64 = counts().map(|(_, count)| count).sum();
        let rank = (all * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let mut reached = counts().filter(|(_, count)| {
            seen += count;
            seen >= rank
        });
        reached.next().map_or(0, |(bucket, _)| value(bucket))
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
        for per_mille in [1, 500, 501, 900, 990, 999, 1000] {
            assert_eq!(histogram.quantile(per_mille), per_mille);
        }
        // The rank is a whole number: of 1001 durations, the median is the 501st.
        histogram.count(1001);
        assert_eq!((histogram.quantile(500), histogram.quantile(999)), (501, 1000));
    }

    #[test]
    fn the_order_in_which_durations_come_and_are_added_does_not_matter() {
        let durations: Vec<u64> = (0..5000_u64).map(|number| (number * 7919) % 5000 * 1000).collect();
        let of = |durations: &[u64]| {
            let mut histogram = Histogram::default();
            durations.iter().for_each(|nanos| histogram.count(*nanos));
            histogram
        };
        let whole = of(&durations);
        let mut parts = of(&durations[..1234]);
        parts.add(&of(&durations[1234..]));
        for per_mille in (0..=1000).step_by(7) {
            assert_eq!(parts.quantile(per_mille), whole.quantile(per_mille), "{per_mille}");
        }
    }
}
