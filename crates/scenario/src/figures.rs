// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a run by name, from the events of its recording: the same names whichever executor made it.
//!
//! Per task `T` and operation `O`: `T.O.count`, `T.O.per_second`, `T.O.bytes_per_second`, `T.O.p50_seconds`,
//! `p90`, `p99`, `p999`, `max`; per task `T.dirtied_bytes_per_second`, `T.read_bytes_per_second` (from
//! devices), `T.throttled_seconds` (slept in dirty throttling; the model's only), `T.write_amplification` (dirtied over
//! what its write calls and stores were of), `T.stalls_count`, `T.stalled_seconds`, `T.failures_count`,
//! `T.finished_seconds`. Over copies, counts, times and rates are sums, latencies those of the copy where they are worst,
//! and the finish the last. A stall within that of another operation, such as the fsync of a file that is created, is part of it. A stall
//! that begins before the figures do (during `settle`) is in the recording but in no figure.

use super::Step;
use floodline_record::nearest::nearest;
use floodline_record::record::{Event, Latency, TaskIo, TaskName, What};
use floodline_record::units::Nanos;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The value.
    pub value: f64,
    /// Its unit: `count`, `seconds`, `per_second`, `bytes_per_second`, `ratio`.
    pub unit: &'static str,
}

/// Figures of an operation of a task.
const OF_OPERATION: [&str; 8] = [
    "count",
    "per_second",
    "bytes_per_second",
    "p50_seconds",
    "p90_seconds",
    "p99_seconds",
    "p999_seconds",
    "max_seconds",
];
/// Figures of a task.
const OF_TASK: [&str; 8] = [
    "dirtied_bytes_per_second",
    "read_bytes_per_second",
    "throttled_seconds",
    "write_amplification",
    "stalls_count",
    "stalled_seconds",
    "failures_count",
    "finished_seconds",
];
/// Operations that are parts of a step.
const PARTS: [&str; 2] = ["open", "create"];
/// Beginnings of figures that are of no task.
const OF_MACHINE: [&str; 3] = ["host", "devices", "budget"];

/// Returns what is wrong with the name of a figure that an expectation has, as the end of a sentence about it; `None` where a run may
/// have the figure. `tasks` are those of the scenario.
pub fn wrong_with_figure<'a>(name: &str, tasks: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    let near = |what: &str, name: &str, known: &mut dyn Iterator<Item = &'static str>| {
        let near = nearest(name, known).map_or_else(String::new, |near| format!("; did you mean {near}?"));
        format!("names no {what}{near}")
    };
    let of_task =
        tasks.clone().filter_map(|task| name.strip_prefix(task)?.strip_prefix('.')).min_by_key(|rest| rest.len());
    let Some(rest) = of_task else {
        let first = name.split('.').next().unwrap_or(name);
        return match OF_MACHINE.contains(&first) && first != name {
            true => None,
            false => Some(match nearest(first, tasks.chain(OF_MACHINE)) {
                Some(near) => format!("names no task; did you mean {near}?"),
                None => "names no task of the scenario, nor host, devices or budget".to_owned(),
            }),
        };
    };
    match rest.split_once('.') {
        None if OF_TASK.contains(&rest) => None,
        None => Some(near("figure of a task", rest, &mut OF_TASK.into_iter())),
        Some((operation, figure)) => {
            let mut operations = Step::VERBS.into_iter().chain(PARTS);
            if !operations.clone().any(|known| known == operation) {
                return Some(near("operation", operation, &mut operations));
            }
            let is_known = OF_OPERATION.contains(&figure);
            (!is_known).then(|| near("figure of an operation", figure, &mut OF_OPERATION.into_iter()))
        }
    }
}

/// All figures of the workload's tasks.
pub fn figures<'a>(events: impl IntoIterator<Item = &'a Event>) -> BTreeMap<String, Figure> {
    let mut figures = Figures::default();
    for event in events {
        figures.take(event);
    }
    figures.finish()
}

/// The operation of a task that uses a CPU. Tasks list a long one as they list a long wait. It is not a stall.
const BURN: &str = "burn";

/// A stall: its begin, its end and its operation.
type Stall<'a> = (Nanos, Nanos, &'a str);

/// The stalls of the tasks of a run, by task and copy.
#[derive(Default)]
pub struct Stalls<'a>(BTreeMap<(&'a str, u32), Vec<Stall<'a>>>);

impl<'a> Stalls<'a> {
    /// Collects the stalls from all events of a run.
    pub fn of(events: impl IntoIterator<Item = &'a Event>) -> Stalls<'a> {
        let mut stalls = Stalls::default();
        events.into_iter().for_each(|event| stalls.take(event));
        stalls
    }

    /// Drops the stalls of each task and copy that begin before its measures.
    fn measured(&mut self, since: &BTreeMap<(&'a str, u32), Nanos>) {
        for (task, stalls) in &mut self.0 {
            let since = since.get(task).copied().unwrap_or_default();
            stalls.retain(|(begin, ..)| *begin >= since);
        }
    }

    fn take(&mut self, event: &'a Event) {
        let What::TaskStall { task, lasted, operation } = &event.what else { return };
        if operation == BURN {
            return;
        }
        let end = Nanos(event.at.0.saturating_add(lasted.0));
        self.0.entry((&task.task, task.copy)).or_default().push((event.at, end, operation));
    }

    /// Returns the task and its number of stalls, for each task and copy. A stall within that of another operation, such as the fsync of
    /// a file that is created, is part of it. Stalls of one operation that overlap are those of several threads.
    fn counts(&self) -> impl Iterator<Item = (&'a str, usize)> {
        self.0.iter().map(|((task, _), stalls)| {
            let mut stalls = stalls.clone();
            stalls.sort_unstable_by_key(|(begin, end, operation)| (*begin, Reverse(*end), *operation));
            // Latest end of the stalls until then, and that of the stalls of any other operation.
            let [mut latest, mut of_another] = [(Nanos(0), ""); 2];
            let mut count = 0;
            for (_, end, operation) in stalls {
                let around = if latest.1 == operation { of_another } else { latest };
                count += usize::from(end > around.0);
                if end > latest.0 {
                    (of_another, latest) = (around, (end, operation));
                } else if latest.1 != operation && end > of_another.0 {
                    of_another = (end, operation);
                }
            }
            (*task, count)
        })
    }

    /// Returns the task and the begin and end of its waits, for each task and copy. Stalls that overlap are one wait.
    pub fn waits(self) -> impl Iterator<Item = (&'a str, Vec<(Nanos, Nanos)>)> {
        self.0.into_iter().map(|((task, _), stalls)| {
            let mut stalls: Vec<(Nanos, Nanos)> = stalls.into_iter().map(|(begin, end, _)| (begin, end)).collect();
            stalls.sort_unstable();
            stalls.dedup_by(|(begin, end), (_, before)| {
                let is_part = *begin < *before;
                *before = if is_part { (*before).max(*end) } else { *before };
                is_part
            });
            (task, stalls)
        })
    }
}

#[derive(Default)]
struct Figures<'a> {
    found: BTreeMap<String, Figure>,
    started: Option<Nanos>,
    stalls: Stalls<'a>,
    /// When the measures of each task and copy begin.
    since: BTreeMap<(&'a str, u32), Nanos>,
    /// Bytes that each task dirtied, and those it wrote and stored.
    written: BTreeMap<&'a str, (u64, u64)>,
}

impl<'a> Figures<'a> {
    fn take(&mut self, event: &'a Event) {
        let since_start = |since: Option<Nanos>| event.at.0.saturating_sub(since.unwrap_or(event.at).0);
        match &event.what {
            What::WorkloadStarted { .. } => self.started = Some(event.at),
            What::TaskStarted { task, .. } => {
                self.add(&task.task, "failures_count", "count", 0.0);
                self.add(&task.task, "stalls_count", "count", 0.0);
                self.add(&task.task, "stalled_seconds", "seconds", 0.0);
            }
            What::TaskEnded { task, failure } => {
                self.add(&task.task, "failures_count", "count", f64::from(u8::from(failure.is_some())));
                self.worst(&task.task, "finished_seconds", Nanos(since_start(self.started)));
            }
            What::TaskStall { .. } => self.stalls.take(event),
            What::TaskOperations { task, operation, since, count, bytes, latency } => {
                self.since.insert((&task.task, task.copy), *since);
                if matches!(operation.as_str(), "write" | "mmap_store") {
                    let (_, asked) = self.written.entry(&task.task).or_default();
                    *asked = asked.saturating_add(*bytes);
                }
                self.operations(task, operation, Nanos(since_start(Some(*since))), *count, *bytes, latency);
            }
            What::TaskIo { task, since, io } => {
                self.since.insert((&task.task, task.copy), *since);
                let (dirtied, _) = self.written.entry(&task.task).or_default();
                *dirtied = dirtied.saturating_add(io.write_bytes.unwrap_or(0));
                self.io(task, Nanos(since_start(Some(*since))), io);
            }
            What::TaskThrottled { task, slept, .. } => {
                self.add(&task.task, "throttled_seconds", "seconds", slept.as_secs_f64());
            }
            // Everything else is of the machine, not of a task of the workload.
            _ => {}
        }
    }

    fn finish(mut self) -> BTreeMap<String, Figure> {
        let mut stalls = std::mem::take(&mut self.stalls);
        stalls.measured(&self.since);
        for (task, count) in stalls.counts() {
            self.add(task, "stalls_count", "count", count as f64);
        }
        for (task, waits) in stalls.waits() {
            let nanos: u64 = waits.iter().fold(0, |sum, (begin, end)| sum.saturating_add(end.0 - begin.0));
            self.add(task, "stalled_seconds", "seconds", Nanos(nanos).as_secs_f64());
        }
        for (task, (dirtied, asked)) in std::mem::take(&mut self.written) {
            if dirtied > 0 && asked > 0 {
                self.add(task, "write_amplification", "ratio", dirtied as f64 / asked as f64);
            }
        }
        self.found
    }

    fn operations(&mut self, task: &TaskName, name: &str, time: Nanos, count: u64, bytes: u64, latency: &Latency) {
        let task = format!("{}.{name}", task.task);
        self.add(&task, "count", "count", count as f64);
        if time.0 > 0 {
            self.add(&task, "per_second", "per_second", count as f64 / time.as_secs_f64());
            self.add(&task, "bytes_per_second", "bytes_per_second", bytes as f64 / time.as_secs_f64());
        }
        if count > 0 {
            self.worst(&task, "p50_seconds", latency.p50);
            self.worst(&task, "p90_seconds", latency.p90);
            self.worst(&task, "p99_seconds", latency.p99);
            self.worst(&task, "p999_seconds", latency.p999);
            self.worst(&task, "max_seconds", latency.max);
        }
    }

    fn io(&mut self, task: &TaskName, time: Nanos, io: &TaskIo) {
        if time.0 == 0 {
            return;
        }
        if let Some(dirtied) = io.write_bytes {
            self.add(&task.task, "dirtied_bytes_per_second", "bytes_per_second", dirtied as f64 / time.as_secs_f64());
        }
        if let Some(read) = io.read_bytes {
            self.add(&task.task, "read_bytes_per_second", "bytes_per_second", read as f64 / time.as_secs_f64());
        }
    }

    fn add(&mut self, task: &str, name: &str, unit: &'static str, value: f64) {
        self.found.entry(format!("{task}.{name}")).or_insert(Figure { value: 0.0, unit }).value += value;
    }

    fn worst(&mut self, task: &str, name: &str, value: Nanos) {
        let figure = self.found.entry(format!("{task}.{name}")).or_insert(Figure { value: 0.0, unit: "seconds" });
        figure.value = figure.value.max(value.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    fn check(whats: Vec<(u64, What)>, name: &str, expect: Option<(f64, &str)>) {
        let events: Vec<Event> = whats.into_iter().map(|(ms, what)| Event { at: MS(ms), what }).collect();
        let found = figures(&events).get(name).map(|figure| (figure.value, figure.unit));
        assert_eq!(found, expect, "{name}");
    }

    fn name(copy: u32) -> TaskName {
        TaskName { task: "mail".into(), copy }
    }

    fn fsyncs(copy: u32, max: u64) -> What {
        let latency = Latency { p50: MS(7), max: MS(max), ..Latency::default() };
        What::TaskOperations {
            task: name(copy),
            operation: "fsync".into(),
            since: MS(1000),
            count: 30,
            bytes: 0,
            latency,
        }
    }

    #[test]
    fn a_figure_that_no_run_has_is_named() {
        let told = |name: &str| wrong_with_figure(name, ["a", "a.b", "mail"].into_iter()).unwrap_or_default();
        for good in [
            "a.write.max_seconds",
            "a.b.fsync.count",
            "mail.create.p99_seconds",
            "mail.write_amplification",
            "host.dirty_peak_bytes",
            "devices.vda.busy_seconds",
            "budget.global_count",
        ] {
            assert_eq!(told(good), "", "{good}");
        }
        assert_eq!(told("hosts.dirty_peak_bytes"), "names no task; did you mean host?");
        assert_eq!(told("b.write.max_seconds"), "names no task of the scenario, nor host, devices or budget");
        assert_eq!(told("database.write.max_seconds"), "names no task of the scenario, nor host, devices or budget");
        assert_eq!(told("a.wrte.max_seconds"), "names no operation; did you mean write?");
        assert_eq!(told("a.write.max_second"), "names no figure of an operation; did you mean max_seconds?");
        assert_eq!(told("mail.stall_count"), "names no figure of a task; did you mean stalls_count?");
        assert!(!told("host").is_empty());
    }

    #[test]
    fn counts_and_rates_of_copies_are_added_and_latencies_are_the_worst() {
        let run = || vec![(11_000, fsyncs(0, 20)), (11_000, fsyncs(1, 900))];
        check(run(), "mail.fsync.count", Some((60.0, "count")));
        check(run(), "mail.fsync.per_second", Some((6.0, "per_second")));
        check(run(), "mail.fsync.max_seconds", Some((0.9, "seconds")));
        check(run(), "mail.fsync.p50_seconds", Some((0.007, "seconds")));
        check(run(), "mail.dirtied_bytes_per_second", None);
    }

    #[test]
    fn a_task_that_never_stalled_has_zero_stalls_and_one_that_never_ran_has_no_figure() {
        let started = || What::TaskStarted { task: name(0), pid: None };
        check(vec![(0, started())], "mail.stalls_count", Some((0.0, "count")));
        check(vec![], "mail.stalls_count", None);
        let stall = What::TaskStall { task: name(0), operation: "fsync".into(), lasted: MS(8664) };
        check(vec![(0, started()), (5, stall)], "mail.stalled_seconds", Some((8.664, "seconds")));
    }

    #[test]
    fn a_stall_within_another_is_part_of_it() {
        let stall = |copy, operation: &str, ms| What::TaskStall {
            task: name(copy),
            operation: operation.into(),
            lasted: MS(ms),
        };
        let run = || {
            vec![
                (100, stall(0, "fsync", 900)),
                (100, stall(0, "create_files", 1000)),
                (1100, stall(0, "create_files", 500)),
                (200, stall(1, "fsync", 300)),
            ]
        };
        check(run(), "mail.stalls_count", Some((3.0, "count")));
        check(run(), "mail.stalled_seconds", Some((1.8, "seconds")));
    }

    #[test]
    fn a_stall_before_the_measures_is_in_the_recording_and_no_figure() {
        let stall = |operation: &str| What::TaskStall { task: name(0), operation: operation.into(), lasted: MS(400) };
        // The measures of copy 0 begin after a second.
        let run = || vec![(500, stall("fsync")), (1000, stall("fsync")), (11_000, fsyncs(0, 400))];
        check(run(), "mail.stalls_count", Some((1.0, "count")));
        check(run(), "mail.stalled_seconds", Some((0.4, "seconds")));
        let events = run().into_iter().map(|(ms, what)| Event { at: MS(ms), what }).collect::<Vec<_>>();
        assert_eq!(Stalls::of(&events).waits().map(|(_, waits)| waits.len()).sum::<usize>(), 2);
    }

    #[test]
    fn overlapping_stalls_of_several_threads_are_counted_one_by_one_and_their_time_once() {
        let stall =
            |operation: &str, ms| What::TaskStall { task: name(0), operation: operation.into(), lasted: MS(ms) };
        let run = || (0..8).map(|thread| (100 * thread, stall("write", 150))).collect::<Vec<_>>();
        check(run(), "mail.stalls_count", Some((8.0, "count")));
        check(run(), "mail.stalled_seconds", Some((0.85, "seconds")));
        // The threads begin at once, and one call ends within another.
        let at_once = || vec![(0, stall("write", 150)), (0, stall("write", 150)), (10, stall("write", 120))];
        check(at_once(), "mail.stalls_count", Some((3.0, "count")));
        check(at_once(), "mail.stalled_seconds", Some((0.15, "seconds")));
    }

    #[test]
    fn the_use_of_a_cpu_is_not_a_stall() {
        let burn = What::TaskStall { task: name(0), operation: "burn".into(), lasted: MS(2000) };
        let run = || vec![(0, What::TaskStarted { task: name(0), pid: None }), (5, burn.clone())];
        check(run(), "mail.stalls_count", Some((0.0, "count")));
        check(run(), "mail.stalled_seconds", Some((0.0, "seconds")));
    }

    #[test]
    fn dirtied_bytes_are_per_second_of_measured_time() {
        let io = TaskIo { write_bytes: Some(50_000_000), ..TaskIo::default() };
        let io = What::TaskIo { task: name(0), since: MS(10_000), io };
        check(vec![(20_000, io)], "mail.dirtied_bytes_per_second", Some((5_000_000.0, "bytes_per_second")));
    }

    #[test]
    fn the_finish_is_that_of_the_last_copy_after_the_clock_started() {
        let started = What::WorkloadStarted { scenario: "s".into(), variant: "v".into() };
        let ended = |copy| What::TaskEnded { task: name(copy), failure: None };
        let run = vec![(2_000, started), (5_000, ended(1)), (4_000, ended(0))];
        check(run, "mail.finished_seconds", Some((3.0, "seconds")));
    }
}
