// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures of a task, with the counters that the simulated kernel has of it.

use crate::process::TaskCounters;
use floodline_record::record::{Event, TaskIo, TaskName, What};
use floodline_record::units::Nanos;
use floodline_scenario::program;

/// Measures of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Measures {
    operations: program::Measures,
    /// Counters when measuring began.
    pub(crate) first: Option<(u64, TaskCounters)>,
}

impl Measures {
    pub(crate) fn new(since: u64, stall_over: u64) -> Measures {
        Measures { operations: program::Measures::new(Nanos(since), Nanos(stall_over)), first: None }
    }

    /// Creates empty measures with the same rules.
    pub(crate) fn fresh(&self) -> Measures {
        Measures { operations: self.operations.fresh(), first: None }
    }

    /// Records one operation.
    #[inline]
    pub(crate) fn took(&mut self, operation: &'static str, at: u64, now: u64, bytes: u64) {
        self.operations.took(operation, Nanos(at), Nanos(now - at), bytes);
    }

    /// Adds the measures of another thread of the task.
    pub(crate) fn merge(&mut self, other: Measures) {
        self.operations.merge(other.operations);
    }

    /// Converts the measures to events of a recording.
    pub(crate) fn events(self, task: &TaskName, at: u64, io: &TaskCounters) -> Vec<Event> {
        let mut events = self.operations.events(task, Nanos(at));
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
