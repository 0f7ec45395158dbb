// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the workload, shared by every thread of a task: a time, or an order from the director. It
//! interrupts sleeps at once.

use super::clock::{now, until};
use floodline_record::units::Nanos;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The stop flag of a task.
#[derive(Debug, Default)]
pub struct Stop {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_asked: bool,
    at: Option<Nanos>,
}

impl Stop {
    /// Creates a flag that is not set.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Stops at a time on the clock of the samples.
    pub fn set_moment(&self, at: Nanos) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).at = Some(at);
        self.changed.notify_all();
    }

    /// Stops now.
    pub fn ask(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_asked = true;
        self.changed.notify_all();
    }

    /// Returns true if the task has to stop.
    pub fn is_due(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_asked || state.at.is_some_and(|at| now() >= at)
    }

    /// Sleeps until a moment. Returns true if the task has to stop.
    pub fn sleep_until(&self, moment: Nanos) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let at = now();
            if state.is_asked || state.at.is_some_and(|end| at >= end) {
                return true;
            }
            let next = state.at.map_or(moment, |end| end.min(moment));
            if at >= moment {
                return false;
            }
            let wait = Duration::from_nanos(until(at, next).0);
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
