// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for stable storage by length. The tracer reports long waits one by one and all waits as sums: a wait that is not
//! among the long ones was shorter than the first limit.

use floodline_record::traced::waits::{Operation, SlowSync, Synced};
use std::collections::BTreeMap;

/// Upper limits of the buckets, seconds: powers of two from the first one above the tracer's threshold of 0.1 s.
pub(super) const LIMITS: [f64; 11] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// The waits of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    count: u64,
    sum_ns: u64,
    /// Long waits by the first limit that they do not exceed; those beyond the last in one more.
    slow: [u64; LIMITS.len() + 1],
}

/// All waits seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits(BTreeMap<Operation, Histogram>);

impl Waits {
    /// Adds all waits of a process in an interval.
    pub(super) fn all(&mut self, synced: &Synced) {
        let histogram = self.0.entry(synced.operation).or_default();
        histogram.count = histogram.count.saturating_add(synced.count);
        histogram.sum_ns = histogram.sum_ns.saturating_add(synced.total.0);
    }

    /// Takes notice of the length of one wait, which is among all waits too.
    pub(super) fn slow(&mut self, slow: &SlowSync) {
        let seconds = slow.lasted.as_secs_f64();
        let at = LIMITS.iter().position(|limit| seconds <= *limit).unwrap_or(LIMITS.len());
        if let Some(bucket) = self.0.entry(slow.operation).or_default().slow.get_mut(at) {
            *bucket += 1;
        }
    }

    /// The histograms by operation.
    pub(super) fn each(&self) -> impl Iterator<Item = (Operation, &Histogram)> {
        self.0.iter().map(|(operation, histogram)| (*operation, histogram))
    }
}

impl Histogram {
    /// Cumulative buckets, the number of waits and their sum in nanoseconds.
    pub(super) fn cumulative(&self) -> (Vec<(f64, u64)>, u64, u64) {
        let slow: u64 = self.slow.iter().sum();
        // A long wait may be reported an interval before it is in the sums.
        let count = self.count.max(slow);
        let mut upto = count - slow;
        let buckets = LIMITS.iter().zip(&self.slow).map(|(limit, slow)| {
            upto += slow;
            (*limit, upto)
        });
        (buckets.collect(), count, self.sum_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::traced::Who;
    use floodline_record::units::{Bytes, Nanos};

    #[test]
    fn short_waits_are_what_is_left_of_all_waits() {
        let who = || Who { pid: 1, comm: "a".into(), cgroup_ino: 1 };
        let mut waits = Waits::default();
        let operation = Operation::Fsync;
        let (total, longest) = (Nanos(12_400_000_000), Nanos(9_000_000_000));
        waits.all(&Synced { since: Nanos(0), who: who(), operation, count: 10, total, longest });
        for ms in [110, 3000, 9000] {
            let lasted = Nanos::from_millis(ms);
            let (device, file, queued) = (None, None, None);
            waits.slow(&SlowSync { who: who(), tid: None, operation, lasted, device, file, queued, own: Bytes(0) });
        }
        let (_, histogram) = waits.each().next().unwrap();
        let (buckets, count, sum) = histogram.cumulative();
        assert_eq!((count, sum), (10, 12_400_000_000));
        let upto = |limit: f64| buckets.iter().find(|(at, _)| *at == limit).unwrap().1;
        assert_eq!([0.125, 2.0, 4.0, 8.0, 16.0, 128.0].map(upto), [8, 8, 9, 9, 10, 10]);
    }
}
