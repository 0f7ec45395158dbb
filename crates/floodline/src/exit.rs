// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exit codes. They are an interface: scripts and monitors read them.

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; nothing at or above `--fail-on`.
    Done,
    /// Findings, or an expectation that was not met.
    Findings,
    /// Wrong usage, configuration or input file.
    Usage,
    /// The host cannot be observed, or a result could not be written.
    CannotObserve,
    /// A change failed, or was not confirmed, and the old values are in force.
    PutBack,
    /// A change failed, and not all of the old values are in force.
    NotPutBack,
    /// The lab is unavailable; says nothing about the scenario.
    LabUnavailable,
    /// A bug of ours.
    Bug,
    /// The system had no memory left.
    OutOfMemory,
    /// Exit code of the command that ran in a guest.
    OfGuest(u8),
}

/// Printed below `floodline --help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0   done; nothing at or above --fail-on
  1   findings at or above --fail-on, or an unmet expectation of a scenario
  2   wrong usage, configuration or input file; a refused change;
      a scenario whose simulation cannot progress
  3   the host cannot be observed, or a result could not be written
  4   a change failed, or was not confirmed; the old values are in force
  5   a change failed; not all of the old values are in force
  69  the lab is unavailable; the scenario was not judged
  70  a bug in floodline
  71  out of memory

A full disk, or a file at its size limit (ulimit -f), is exit code 3. A reader that closes standard output early is \
not a failure.";

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::CannotObserve => 3,
            Exit::PutBack => 4,
            Exit::NotPutBack => 5,
            Exit::LabUnavailable => 69,
            Exit::Bug => 70,
            Exit::OutOfMemory => 71,
            Exit::OfGuest(code) => code,
        }
    }
}
