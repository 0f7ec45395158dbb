// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures of a task: the duration of each operation (HDR histogram, three digits), its bytes, and each
//! stall. Operations that began before the measured time are not in the histograms.

use super::clock::{now, until};
use floodline_record::record::Latency;
use floodline_record::units::Nanos;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Most stalls listed one by one. All stalls are counted.
const STALLS_MAX: usize = 1000;

/// One operation that took at least `stall_over`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stall {
    pub(super) operation: &'static str,
    pub(super) at: Nanos,
    pub(super) lasted: Nanos,
}

/// All operations of one kind.
#[derive(Clone, Debug)]
pub(super) struct Operations {
    pub(super) count: u64,
    pub(super) bytes: u64,
    total: u64,
    max: u64,
    histogram: Histogram<u64>,
}

/// All measures of a task or thread.
#[derive(Clone, Debug)]
pub(super) struct Measures {
    /// Operations that begin earlier are not counted.
    pub(super) since: Nanos,
    stall_over: Nanos,
    pub(super) operations: BTreeMap<&'static str, Operations>,
    pub(super) stalls: Vec<Stall>,
    pub(super) stalls_unlisted: u64,
}

impl Measures {
    pub(super) fn new(since: Nanos, stall_over: Nanos) -> Measures {
        Measures { since, stall_over, operations: BTreeMap::new(), stalls: Vec::new(), stalls_unlisted: 0 }
    }

    /// Returns empty measures with the same `since` and `stall_over`.
    pub(super) fn fresh(&self) -> Measures {
        Measures::new(self.since, self.stall_over)
    }

    /// Performs one operation and measures it. A failed operation is not counted.
    pub(super) fn time<T, E>(
        &mut self,
        operation: &'static str,
        bytes: u64,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let at = now();
        let answer = act();
        if answer.is_ok() {
            self.took(operation, at, until(at, now()), bytes);
        }
        answer
    }

    /// Records one operation.
    pub(super) fn took(&mut self, operation: &'static str, at: Nanos, lasted: Nanos, bytes: u64) {
        if lasted >= self.stall_over {
            if self.stalls.len() < STALLS_MAX {
                self.stalls.push(Stall { operation, at, lasted });
            } else {
                self.stalls_unlisted += 1;
            }
        }
        if at < self.since {
            return;
        }
        let Some(operations) = self.entry(operation) else { return };
        operations.count += 1;
        operations.bytes = operations.bytes.saturating_add(bytes);
        operations.total = operations.total.saturating_add(lasted.0);
        operations.max = operations.max.max(lasted.0);
        // The histogram resizes itself: an hour-long operation still fits.
        operations.histogram.saturating_record(lasted.0.max(1));
    }

    fn entry(&mut self, operation: &'static str) -> Option<&mut Operations> {
        if !self.operations.contains_key(operation) {
            let histogram = Histogram::new_with_bounds(1, 3600 * Nanos::SECOND.0, 3).ok()?;
            let fresh = Operations { count: 0, bytes: 0, total: 0, max: 0, histogram };
            self.operations.insert(operation, fresh);
        }
        self.operations.get_mut(operation)
    }

    /// Adds the measures of another thread of the task.
    pub(super) fn merge(&mut self, other: Measures) {
        for (operation, theirs) in other.operations {
            match self.operations.get_mut(operation) {
                Some(ours) => {
                    ours.count += theirs.count;
                    ours.bytes = ours.bytes.saturating_add(theirs.bytes);
                    ours.total = ours.total.saturating_add(theirs.total);
                    ours.max = ours.max.max(theirs.max);
                    // The bounds are equal, so this cannot fail.
                    let _ = ours.histogram.add(&theirs.histogram);
                }
                None => {
                    self.operations.insert(operation, theirs);
                }
            }
        }
        self.stalls.extend(other.stalls);
        self.stalls.sort_by_key(|stall| stall.at);
        self.stalls_unlisted += other.stalls_unlisted;
    }
}

impl Operations {
    /// Returns percentiles, each at most 0.1 % too high, and the exact maximum.
    pub(super) fn latency(&self) -> Latency {
        let at = |quantile: f64| Nanos(self.histogram.value_at_quantile(quantile).min(self.max));
        Latency {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: Nanos(self.max),
            total: Nanos(self.total),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measures() -> Measures {
        Measures::new(Nanos(1000), Nanos::from_millis(100))
    }

    #[test]
    fn percentiles_are_those_of_the_operations() {
        let mut measures = measures();
        for ms in 1..=1000 {
            measures.took("write", Nanos(1000), Nanos::from_millis(ms), 4096);
        }
        let writes = &measures.operations["write"];
        assert_eq!((writes.count, writes.bytes), (1000, 4_096_000));
        let latency = writes.latency();
        let near = |have: Nanos, want_ms: u64| {
            let want = want_ms as f64 * 1e6;
            assert!((have.0 as f64 - want).abs() <= want / 1000.0, "{have} against {want}");
        };
        near(latency.p50, 500);
        near(latency.p90, 900);
        near(latency.p99, 990);
        near(latency.p999, 999);
        assert_eq!(latency.max, Nanos::from_millis(1000));
        assert_eq!(latency.total, Nanos::from_millis(500_500));
        assert_eq!(measures.stalls.len(), 901);
    }

    #[test]
    fn what_began_before_the_figures_is_a_stall_and_no_figure() {
        let mut measures = measures();
        measures.took("fsync", Nanos(999), Nanos::from_millis(8664), 0);
        assert!(measures.operations.is_empty());
        let stall = Stall { operation: "fsync", at: Nanos(999), lasted: Nanos::from_millis(8664) };
        assert_eq!(measures.stalls, [stall]);
    }

    #[test]
    fn threads_of_a_task_add_up() {
        let mut one = measures();
        let mut other = measures();
        one.took("write", Nanos(1000), Nanos(7), 1);
        other.took("write", Nanos(1001), Nanos(11), 2);
        other.took("read", Nanos(1002), Nanos(13), 4);
        one.merge(other);
        assert_eq!((one.operations["write"].count, one.operations["write"].bytes), (2, 3));
        assert_eq!(one.operations["write"].latency().max, Nanos(11));
        assert_eq!(one.operations["read"].bytes, 4);
    }

    #[test]
    fn failed_operations_are_not_measured() {
        let mut measures = Measures::new(Nanos(0), Nanos::SECOND);
        assert!(measures.time("write", 1, || Err::<(), _>("full")).is_err());
        assert!(measures.operations.is_empty());
    }

    #[test]
    fn an_operation_longer_than_any_histogram_keeps_its_length() {
        let mut measures = Measures::new(Nanos(0), Nanos::SECOND);
        measures.took("sync", Nanos(0), Nanos(u64::MAX), 0);
        assert_eq!(measures.operations["sync"].latency().max, Nanos(u64::MAX));
    }
}
