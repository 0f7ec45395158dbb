// SPDX-License-Identifier: MIT OR Apache-2.0
//! What director and worker say to each other: one JSON object a line, over the worker's standard input
//! and output.

use super::system::Place;
use floodline_record::record::Event;
use floodline_record::units::Nanos;
use floodline_scenario::TaskCopy;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};

/// From the director.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Prepare this task.
    Prepare {
        /// The task.
        task: Box<TaskCopy>,
        /// The machine around it.
        place: Place,
    },
    /// Run it.
    Begin {
        /// From here on.
        start: Nanos,
        /// Figures from here on.
        since: Nanos,
        /// Until here, where there is an end.
        stop: Option<Nanos>,
    },
    /// A question is answered: go on.
    Go {
        /// Its number.
        ask: u64,
    },
    /// Stop now.
    Stop,
}

/// From the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// The setup is done.
    Ready,
    /// A thread waits.
    Ask {
        /// Number of the question.
        ask: u64,
        /// For this.
        wish: Wish,
    },
    /// Something for the recording.
    Event(Event),
    /// The task is over.
    Ended {
        /// The step that failed, and why.
        failure: Option<String>,
    },
}

/// What a thread of a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Wish {
    /// A barrier.
    Barrier(String),
    /// The end of a task.
    Task(String),
}

/// A task with ten thousand steps fits; a stream that is no conversation does not fill memory.
const LINE_MAX: u64 = 64 << 20;

/// Says something.
pub(super) fn say(to: &mut (impl Write + ?Sized), what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Hears the next thing; `None` when the other side is gone.
pub(super) fn hear<T: for<'de> Deserialize<'de>>(from: &mut (impl BufRead + ?Sized)) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let mut limited = io::Read::take(from, LINE_MAX);
    if limited.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}
