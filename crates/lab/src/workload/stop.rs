// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the workload, known to every thread of a task: a moment, or a word from the director. A
//! sleep ends with it at once.

use super::clock::{now, until};
use floodline_record::units::Nanos;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// When to stop.
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
    /// Never, until it is asked.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// At a moment on the clock of the samples.
    pub fn set_moment(&self, at: Nanos) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).at = Some(at);
        self.changed.notify_all();
    }

    /// Now.
    pub fn ask(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_asked = true;
        self.changed.notify_all();
    }

    /// Whether it is time.
    pub fn is_due(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_asked || state.at.is_some_and(|at| now() >= at)
    }

    /// Sleeps until a moment; says whether to stop instead of going on.
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
