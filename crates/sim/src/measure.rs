// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures of a task, as in the guest's worker: duration of each operation (a histogram with 1024 steps per power
//! of two, no floats), bytes, and stalls one by one.

use crate::process::TaskCounters;
use floodline_record::record::{Event, Latency, TaskIo, TaskName, What};
use floodline_record::units::Nanos;

/// Most stalls of one thread that are listed; later ones are only counted.
const STALLS_MAX: usize = 1000;
/// Fewest operations that are moved into the histogram at once.
const FRESH_MIN: usize = 64;
/// Significant bits of a latency.
const BITS: u32 = 10;

#[derive(Clone, Debug, Default)]
struct Operations {
    count: u64,
    bytes: u64,
    total: u64,
    max: u64,
    /// Number of operations in each bucket, sorted by bucket.
    histogram: Vec<(u32, u64)>,
    /// Buckets of operations that are not in the histogram yet.
    fresh: Vec<u32>,
}

/// Measures of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Measures {
    /// Operations that begin earlier are not measured.
    since: u64,
    stall_over: u64,
    /// Operations by name, in order of first appearance.
    operations: Vec<(&'static str, Operations)>,
    stalls: Vec<(u64, &'static str, u64)>,
    /// Number of stalls that are not listed.
    stalls_unlisted: u64,
    /// Counters when measuring began.
    pub(crate) first: Option<(u64, TaskCounters)>,
}

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

impl Operations {
    /// Counts one operation. Sorts the histogram from time to time, less often the longer it is.
    fn count(&mut self, bucket: u32) {
        self.fresh.push(bucket);
        if self.fresh.len() >= FRESH_MIN.max(self.histogram.len()) {
            self.sort();
        }
    }

    /// Moves everything fresh into the histogram.
    fn sort(&mut self) {
        self.histogram.extend(self.fresh.drain(..).map(|bucket| (bucket, 1)));
        self.histogram.sort_unstable_by_key(|(bucket, _)| *bucket);
        self.histogram.dedup_by(|(bucket, count), (before, sum)| {
            let is_same = bucket == before;
            *sum += if is_same { *count } else { 0 };
            is_same
        });
    }

    /// Returns a quantile. All operations must be in the histogram.
    fn quantile(&self, per_mille: u64) -> Nanos {
        let rank = (self.count * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, count) in &self.histogram {
            seen += count;
            if seen >= rank {
                return Nanos(value(*bucket).min(self.max));
            }
        }
        Nanos(self.max)
    }
}

impl Measures {
    pub(crate) fn new(since: u64, stall_over: u64) -> Measures {
        Measures { since, stall_over, operations: Vec::new(), stalls: Vec::new(), stalls_unlisted: 0, first: None }
    }

    /// Creates empty measures with the same rules.
    pub(crate) fn fresh(&self) -> Measures {
        Measures::new(self.since, self.stall_over)
    }

    /// Records one operation.
    pub(crate) fn took(&mut self, operation: &'static str, at: u64, now: u64, bytes: u64) {
        let lasted = now - at;
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
        operations.bytes += bytes;
        operations.total += lasted;
        operations.max = operations.max.max(lasted);
        operations.count(bucket(lasted));
    }

    fn operations(&mut self, name: &'static str) -> &mut Operations {
        let known = self.operations.iter().position(|(known, _)| *known == name);
        let at = known.unwrap_or_else(|| {
            self.operations.push((name, Operations::default()));
            self.operations.len() - 1
        });
        &mut self.operations[at].1
    }

    /// Adds the measures of another thread of the task.
    pub(crate) fn merge(&mut self, other: Measures) {
        for (name, theirs) in other.operations {
            let ours = self.operations(name);
            ours.count += theirs.count;
            ours.bytes += theirs.bytes;
            ours.total += theirs.total;
            ours.max = ours.max.max(theirs.max);
            ours.histogram.extend(theirs.histogram);
            ours.fresh.extend(theirs.fresh);
            ours.sort();
        }
        self.stalls.extend(other.stalls);
        self.stalls_unlisted += other.stalls_unlisted;
        self.stalls.sort_unstable();
    }

    /// Converts the measures to events of a recording.
    pub(crate) fn events(self, task: &TaskName, at: u64, io: &TaskCounters) -> Vec<Event> {
        let mut events = Vec::new();
        for (began, operation, lasted) in &self.stalls {
            let what = What::TaskStall { task: task.clone(), operation: (*operation).into(), lasted: Nanos(*lasted) };
            events.push(Event { at: Nanos(*began), what });
        }
        let mut by_name = self.operations;
        by_name.sort_unstable_by_key(|(name, _)| *name);
        for (name, mut operations) in by_name {
            operations.sort();
            let latency = Latency {
                p50: operations.quantile(500),
                p90: operations.quantile(900),
                p99: operations.quantile(990),
                p999: operations.quantile(999),
                max: Nanos(operations.max),
                total: Nanos(operations.total),
            };
            let what = What::TaskOperations {
                task: task.clone(),
                operation: name.into(),
                since: Nanos(self.since),
                count: operations.count,
                bytes: operations.bytes,
                latency,
            };
            events.push(Event { at: Nanos(at), what });
        }
        if self.stalls_unlisted > 0 {
            let text = format!("{}-{}: {} further stalls", task.task, task.copy, self.stalls_unlisted);
            events.push(Event { at: Nanos(at), what: What::Note { text: text.into() } });
        }
        if let Some((since, first)) = &self.first {
            let slept = io.throttled - first.throttled;
            let io = TaskIo {
                rchar: Some(io.rchar - first.rchar),
                wchar: Some(io.wchar - first.wchar),
                syscr: Some(io.syscr - first.syscr),
                syscw: Some(io.syscw - first.syscw),
                read_bytes: Some(io.read_bytes - first.read_bytes),
                write_bytes: Some(io.write_bytes - first.write_bytes),
                cancelled_write_bytes: Some(io.cancelled - first.cancelled),
                minflt: Some(io.minflt - first.minflt),
                majflt: Some(io.majflt - first.majflt),
            };
            let (since, slept) = (Nanos(*since), Nanos(slept));
            let measured = What::TaskIo { task: task.clone(), since, io };
            let throttled = What::TaskThrottled { task: task.clone(), since, slept };
            events.extend([measured, throttled].map(|what| Event { at: Nanos(at), what }));
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_values_to_a_thousandth() {
        for nanos in [0, 1, 2047, 2048, 123_456_789, u64::MAX / 3] {
            let top = value(bucket(nanos));
            assert!(top >= nanos && top - nanos <= nanos >> BITS, "{nanos}: {top}");
        }
    }

    #[test]
    fn stalls_beyond_the_list_are_counted_in_a_note() {
        let measures = || {
            let mut measures = Measures::new(0, 1000);
            (0..STALLS_MAX as u64 + 7).for_each(|at| measures.took("fsync", at, at + 1000, 0));
            measures
        };
        let mut both = measures();
        both.merge(measures());
        let task = TaskName { task: "mail".into(), copy: 2 };
        let events = both.events(&task, 9, &TaskCounters::default());
        let listed = events.iter().filter(|event| matches!(event.what, What::TaskStall { .. })).count();
        assert_eq!(listed, 2 * STALLS_MAX);
        let notes: Vec<String> = events.iter().filter_map(|event| note(&event.what)).collect();
        assert_eq!(notes, ["mail-2: 14 further stalls"]);
    }

    fn note(what: &What) -> Option<String> {
        match what {
            What::Note { text } => Some(text.to_string()),
            _ => None,
        }
    }

    #[test]
    fn percentiles_are_those_of_the_operations() {
        let mut measures = Measures::new(1000, 100_000_000);
        for ms in 1..=1000 {
            measures.took("write", 1000, 1000 + ms * 1_000_000, 1);
        }
        measures.took("write", 999, 10_000, 1);
        let writes = &mut measures.operations[0].1;
        writes.sort();
        assert_eq!((writes.count, writes.max, measures.stalls.len()), (1000, 1_000_000_000, 901));
        assert!(writes.quantile(500).0.abs_diff(500_000_000) < 500_000);
        assert!(writes.quantile(999).0.abs_diff(999_000_000) < 1_000_000);
    }
}
