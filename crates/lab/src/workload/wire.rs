// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol between director and worker: one JSON object per line, over the worker's standard input and
//! output.

use super::system::Place;
use floodline_record::record::Event;
use floodline_record::units::Nanos;
use floodline_scenario::TaskCopy;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};

/// A message from the director.
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
    /// Run the task.
    Begin {
        /// Start time.
        start: Nanos,
        /// Operations that begin earlier are not counted.
        since: Nanos,
        /// End time, if the workload has one.
        stop: Option<Nanos>,
    },
    /// Release a waiting thread.
    Go {
        /// Number of its request.
        ask: u64,
    },
    /// Stop now.
    Stop,
}

/// A message from the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// The setup is done.
    Ready,
    /// A thread waits.
    Ask {
        /// Number of the request.
        ask: u64,
        /// The condition it waits for.
        wish: Wish,
    },
    /// An event for the recording.
    Event(Event),
    /// The task has ended.
    Ended {
        /// The failed step with its cause.
        failure: Option<String>,
    },
}

/// A condition that a thread of a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Wish {
    /// A barrier.
    Barrier(String),
    /// The end of a task.
    Task(String),
}

/// Longest line. A task with ten thousand steps fits. An invalid stream cannot exhaust memory.
const LINE_MAX: u64 = 64 << 20;

/// Writes a message.
pub(super) fn say(to: &mut (impl Write + ?Sized), what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Reads the next message; `None` at the end of the stream.
pub(super) fn hear<T: for<'de> Deserialize<'de>>(from: &mut (impl BufRead + ?Sized)) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let mut limited = io::Read::take(from, LINE_MAX);
    if limited.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}
