// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one error type of the program: what kind, what happened, what to type next.

use crate::exit::Exit;
use anstream::eprintln;
use floodline_record::name::harmless;
use std::fmt;
use std::io;

/// Anything that ends a command early.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    cause: String,
    hints: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Usage,
    CannotObserve,
    ClosedPipe,
    LabUnavailable,
    Bug,
}

impl CliError {
    /// The arguments, or a file given by them, are wrong.
    pub(crate) fn usage(cause: impl fmt::Display) -> CliError {
        CliError::new(Kind::Usage, cause)
    }

    /// The host cannot be observed.
    pub(crate) fn cannot_observe(cause: impl fmt::Display) -> CliError {
        CliError::new(Kind::CannotObserve, cause)
    }

    /// No kernel can be run here.
    pub(crate) fn lab_unavailable(cause: impl fmt::Display) -> CliError {
        CliError::new(Kind::LabUnavailable, cause)
    }

    /// Something that cannot happen did.
    pub(crate) fn bug(cause: impl fmt::Display) -> CliError {
        CliError::new(Kind::Bug, cause)
    }

    /// Writing to `target` failed. A reader that went away is not an error: the command ends, quietly
    /// unless it has [`CliError::had_written`] something that the reader may have wanted whole.
    pub(crate) fn write(target: &str, error: &io::Error) -> CliError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::new(Kind::ClosedPipe, ""),
            _ => CliError::new(Kind::CannotObserve, format!("cannot write {target}: {error}")),
        }
    }

    /// Says how far the command was when its reader went away; any other error says so itself.
    #[must_use]
    pub(crate) fn had_written(mut self, what: impl fmt::Display) -> CliError {
        if self.kind == Kind::ClosedPipe {
            self.cause = format!("the reader of standard output went away after {what}");
        }
        self
    }

    /// Adds what to type next; nothing follows when the reader went away.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> CliError {
        if self.kind != Kind::ClosedPipe {
            self.hints.push(hint.to_string());
        }
        self
    }

    /// Says what could not be done for this reason.
    #[must_use]
    pub(crate) fn within(mut self, what: &str) -> CliError {
        self.cause = format!("{what}: {}", self.cause);
        self
    }

    fn new(kind: Kind, cause: impl fmt::Display) -> CliError {
        CliError { kind, cause: cause.to_string(), hints: Vec::new() }
    }

    /// Tells the person and says how to end.
    pub(crate) fn report(&self) -> Exit {
        let cause = harmless(&self.cause);
        match self.kind {
            Kind::ClosedPipe if cause.is_empty() => {}
            Kind::Bug => eprintln!("floodline: this is a bug in floodline: {cause}"),
            Kind::Usage | Kind::CannotObserve | Kind::LabUnavailable | Kind::ClosedPipe => {
                eprintln!("floodline: {cause}")
            }
        }
        for hint in &self.hints {
            eprintln!("  hint: {}", harmless(hint));
        }
        match self.kind {
            Kind::Usage => Exit::Usage,
            Kind::CannotObserve => Exit::CannotObserve,
            Kind::ClosedPipe => Exit::Done,
            Kind::LabUnavailable => Exit::LabUnavailable,
            Kind::Bug => Exit::Bug,
        }
    }
}

/// After a panic, whose message has been printed already.
pub(crate) fn report_bug() -> Exit {
    eprintln!("floodline: this is a bug in floodline; please report the lines above");
    Exit::Bug
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl From<clap::Error> for CliError {
    fn from(error: clap::Error) -> CliError {
        CliError::bug(error)
    }
}
