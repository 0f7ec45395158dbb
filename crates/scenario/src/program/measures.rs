// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures of a task: the duration of each operation, its bytes, and each stall. Executors time the operations; what is kept
//! of them, and the events that a recording gets, are the same for all.

use super::histogram::Histogram;
use floodline_record::record::{Event, Latency, TaskName, What};
use floodline_record::units::Nanos;

/// Most stalls of one thread that are listed; later ones are only counted.
const STALLS_MAX: usize = 1000;

/// All operations of one kind.
#[derive(Clone, Debug, Default)]
struct Operations {
    count: u64,
    bytes: u64,
    total: u64,
    max: u64,
    histogram: Histogram,
}

/// Measures of a task or of one of its threads.
#[derive(Clone, Debug)]
pub struct Measures {
    /// Operations that begin earlier are stalls if they are long, and nothing else.
    since: Nanos,
    stall_over: Nanos,
    /// Operations by name, in order of first appearance.
    operations: Vec<(&'static str, Operations)>,
    /// Begin, operation and duration of each stall.
    stalls: Vec<(Nanos, &'static str, Nanos)>,
    /// Number of stalls that are not listed.
    stalls_unlisted: u64,
}

impl Measures {
    /// Measures of operations that begin at `since` or later. One that lasts `stall_over` is a stall, whenever it begins.
    pub fn new(since: Nanos, stall_over: Nanos) -> Measures {
        Measures { since, stall_over, operations: Vec::new(), stalls: Vec::new(), stalls_unlisted: 0 }
    }

    /// Empty measures with the same times.
    #[must_use]
    pub fn fresh(&self) -> Measures {
        Measures::new(self.since, self.stall_over)
    }

    /// Records one operation that was done: its name, its begin, its duration and its bytes.
    #[inline]
    pub fn took(&mut self, operation: &'static str, at: Nanos, lasted: Nanos, bytes: u64) {
        if lasted >= self.stall_over {
            match self.stalls.len() < STALLS_MAX {
                true => self.stalls.push((at, operation, lasted)),
                false => self.stalls_unlisted += 1,
            }
        }
        if at < self.since {
            return;
        }
        let operations = self.operations(operation);
        operations.count += 1;
        operations.bytes = operations.bytes.saturating_add(bytes);
        operations.total = operations.total.saturating_add(lasted.0);
        operations.max = operations.max.max(lasted.0);
        operations.histogram.count(lasted.0);
    }

    #[inline]
    fn operations(&mut self, name: &'static str) -> &mut Operations {
        let known = self.operations.iter().position(|(known, _)| *known == name);
        let at = known.unwrap_or_else(|| {
            self.operations.push((name, Operations::default()));
            self.operations.len() - 1
        });
        &mut self.operations[at].1
    }

    /// Adds the measures of another thread of the task.
    pub fn merge(&mut self, other: Measures) {
        for (name, theirs) in other.operations {
            let ours = self.operations(name);
            ours.count += theirs.count;
            ours.bytes = ours.bytes.saturating_add(theirs.bytes);
            ours.total = ours.total.saturating_add(theirs.total);
            ours.max = ours.max.max(theirs.max);
            ours.histogram.add(&theirs.histogram);
        }
        self.stalls.extend(other.stalls);
        self.stalls_unlisted += other.stalls_unlisted;
        self.stalls.sort_unstable();
    }

    /// The events of a recording: each stall at its begin; at `at`, the operations in order of name, and a note on stalls that
    /// are not listed. Percentiles are at most 0.1 % too high, the maximum is exact.
    pub fn events(self, task: &TaskName, at: Nanos) -> Vec<Event> {
        let mut events = Vec::new();
        for (began, operation, lasted) in self.stalls {
            let what = What::TaskStall { task: task.clone(), operation: operation.into(), lasted };
            events.push(Event { at: began, what });
        }
        let mut by_name = self.operations;
        by_name.sort_unstable_by_key(|(name, _)| *name);
        for (name, operations) in by_name {
            let latency = operations.latency();
            let Operations { count, bytes, .. } = operations;
            let since = self.since;
            let what =
                What::TaskOperations { task: task.clone(), operation: name.into(), since, count, bytes, latency };
            events.push(Event { at, what });
        }
        if self.stalls_unlisted > 0 {
            let text = format!("{}-{}: {} further stalls", task.task, task.copy, self.stalls_unlisted);
            events.push(Event { at, what: What::Note { text: text.into() } });
        }
        events
    }
}

impl Operations {
    fn latency(&self) -> Latency {
        let at = |per_mille| Nanos(self.histogram.quantile(per_mille).min(self.max));
        let [p50, p90, p99, p999] = [500, 900, 990, 999].map(at);
        Latency { p50, p90, p99, p999, max: Nanos(self.max), total: Nanos(self.total) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measures() -> Measures {
        Measures::new(Nanos(1000), Nanos::from_millis(100))
    }

    fn events(measures: Measures) -> Vec<Event> {
        measures.events(&TaskName { task: "mail".into(), copy: 2 }, Nanos(9))
    }

    /// Count, bytes and latency of each operation, by name.
    fn operations(measures: Measures) -> Vec<(String, u64, u64, Latency)> {
        let of = |event: Event| match event.what {
            What::TaskOperations { operation, count, bytes, latency, .. } => {
                Some((operation.to_string(), count, bytes, latency))
            }
            _ => None,
        };
        events(measures).into_iter().filter_map(of).collect()
    }

    #[test]
    fn percentiles_are_those_of_the_operations() {
        let mut measures = measures();
        for ms in 1..=1000 {
            measures.took("write", Nanos(1000), Nanos::from_millis(ms), 4096);
        }
        let [(_, count, bytes, latency)] = &operations(measures)[..] else { panic!("there are writes only") };
        assert_eq!((*count, *bytes), (1000, 4_096_000));
        let near = |have: Nanos, want_ms: u64| {
            let want = Nanos::from_millis(want_ms).0;
            assert!(have.0 >= want && have.0 - want <= want / 1000, "{have} against {want_ms} ms");
        };
        near(latency.p50, 500);
        near(latency.p90, 900);
        near(latency.p99, 990);
        near(latency.p999, 999);
        assert_eq!((latency.max, latency.total), (Nanos::from_millis(1000), Nanos::from_millis(500_500)));
    }

    #[test]
    fn what_began_before_the_figures_is_a_stall_and_no_figure() {
        let mut measures = measures();
        measures.took("fsync", Nanos(999), Nanos::from_millis(8664), 0);
        measures.took("fsync", Nanos(999), Nanos::from_millis(1), 0);
        let task = TaskName { task: "mail".into(), copy: 2 };
        let what = What::TaskStall { task, operation: "fsync".into(), lasted: Nanos::from_millis(8664) };
        assert_eq!(events(measures), [Event { at: Nanos(999), what }]);
    }

    #[test]
    fn threads_of_a_task_add_up_and_operations_are_in_order_of_name() {
        let (mut one, mut other) = (measures(), measures());
        one.took("write", Nanos(1000), Nanos(7), 1);
        other.took("write", Nanos(1001), Nanos(11), 2);
        other.took("read", Nanos(1002), Nanos(13), 4);
        one.merge(other);
        let shown: Vec<_> = operations(one)
            .into_iter()
            .map(|(name, count, bytes, latency)| (name, count, bytes, latency.max))
            .collect();
        assert_eq!(shown, [("read".to_owned(), 1, 4, Nanos(13)), ("write".to_owned(), 2, 3, Nanos(11))]);
    }

    #[test]
    fn stalls_beyond_the_list_are_counted_in_a_note() {
        let measures = || {
            let mut measures = Measures::new(Nanos(0), Nanos(1000));
            (0..STALLS_MAX as u64 + 7).for_each(|at| measures.took("fsync", Nanos(at), Nanos(1000), 0));
            measures
        };
        let mut both = measures();
        both.merge(measures());
        let events = events(both);
        let listed = events.iter().filter(|event| matches!(event.what, What::TaskStall { .. })).count();
        assert_eq!(listed, 2 * STALLS_MAX);
        let note = events.iter().find_map(|event| match &event.what {
            What::Note { text } => Some(text.to_string()),
            _ => None,
        });
        assert_eq!(note.as_deref(), Some("mail-2: 14 further stalls"));
    }

    #[test]
    fn the_longest_operation_keeps_its_length() {
        let mut measures = Measures::new(Nanos(0), Nanos::SECOND);
        measures.took("sync", Nanos(0), Nanos(u64::MAX), 0);
        measures.took("sync", Nanos(0), Nanos(u64::MAX), 0);
        let [(.., latency)] = &operations(measures)[..] else { panic!("there are syncs only") };
        assert_eq!([latency.p50, latency.max, latency.total], [Nanos(u64::MAX); 3]);
    }
}
