// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one error type of the program: what kind, what happened, what to type next.

use crate::exit::Exit;
use crate::stderr::tell;
use floodline_lab::kernels::KernelError;
use floodline_lab::run::RunError;
use floodline_scenario::{Executor, NotACell};
use floodline_sim::SimError;
use std::fmt;
use std::io;

/// Anything that ends a command early.
#[derive(Debug)]
pub(crate) struct CliError {
    cause: Cause,
    text: String,
    hints: Vec<String>,
}

/// What kind of failure it is: one that the program found itself, or an error of a library as it came.
#[derive(Debug)]
enum Cause {
    Usage,
    CannotObserve,
    ClosedPipe,
    PutBack,
    NotPutBack,
    LabUnavailable,
    Bug,
    Simulator(Box<SimError>),
    Lab(Box<RunError>),
    Kernel(Box<KernelError>),
}

impl Cause {
    /// The exit code of every failure. Without a wildcard: what is added must be decided here.
    fn exit(&self) -> Exit {
        match self {
            Cause::Usage => Exit::Usage,
            Cause::CannotObserve => Exit::CannotObserve,
            // The reader has what it wanted.
            Cause::ClosedPipe => Exit::Done,
            Cause::PutBack => Exit::PutBack,
            Cause::NotPutBack => Exit::NotPutBack,
            Cause::LabUnavailable => Exit::LabUnavailable,
            Cause::Bug => Exit::Bug,
            Cause::Simulator(error) => match error.as_ref() {
                // A workload that comes to no end has no figures: nothing of it was judged.
                SimError::NotHonoured(_)
                | SimError::TooMany { .. }
                | SimError::Senseless(_)
                | SimError::TooOld(_)
                | SimError::Stuck { .. } => Exit::Usage,
                SimError::Broken(_) => Exit::Bug,
                SimError::Sink(_) => Exit::CannotObserve,
            },
            Cause::Lab(error) => match error.as_ref() {
                RunError::NotHonoured(_)
                | RunError::Inner { .. }
                | RunError::Latency { .. }
                | RunError::Since6_2 { .. }
                | RunError::TooMany { .. }
                | RunError::Limited { .. }
                | RunError::WriteCache { .. }
                | RunError::LimitedTwice { .. } => Exit::Usage,
                RunError::Lacks { .. }
                | RunError::NoMemcgV1 { .. }
                | RunError::NoProgram { .. }
                | RunError::Modules(_)
                | RunError::Image(_)
                | RunError::Disk(_)
                | RunError::Qemu(_)
                | RunError::Cache(_)
                | RunError::Programs(_)
                | RunError::Interrupted => Exit::LabUnavailable,
                RunError::Job(_) => Exit::Bug,
            },
            Cause::Kernel(error) => match error.as_ref() {
                KernelError::NotFound { .. }
                | KernelError::NotAKernel { .. }
                | KernelError::Io { .. }
                | KernelError::Package(_)
                | KernelError::Apt(_)
                | KernelError::Cache(_) => Exit::LabUnavailable,
            },
        }
    }
}

impl CliError {
    /// The arguments, or a file given by them, are wrong.
    pub(crate) fn usage(cause: impl fmt::Display) -> CliError {
        CliError::new(Cause::Usage, cause)
    }

    /// The host cannot be observed.
    pub(crate) fn cannot_observe(cause: impl fmt::Display) -> CliError {
        CliError::new(Cause::CannotObserve, cause)
    }

    /// A change failed, and the old values are in force.
    pub(crate) fn put_back(cause: impl fmt::Display) -> CliError {
        CliError::new(Cause::PutBack, cause)
    }

    /// A change failed, and not all of the old values are in force.
    pub(crate) fn not_put_back(cause: impl fmt::Display) -> CliError {
        CliError::new(Cause::NotPutBack, cause)
    }

    /// No kernel can be run here.
    pub(crate) fn lab_unavailable(cause: impl fmt::Display) -> CliError {
        CliError::new(Cause::LabUnavailable, cause)
    }

    /// Something that cannot happen did.
    pub(crate) fn bug(cause: impl fmt::Display) -> CliError {
        CliError::new(Cause::Bug, cause)
    }

    /// Writing to `target` failed. A reader that went away is not an error: the command ends, quietly
    /// unless it has [`CliError::had_written`] something that the reader may have wanted whole.
    pub(crate) fn write(target: &str, error: &io::Error) -> CliError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::new(Cause::ClosedPipe, ""),
            _ => CliError::new(Cause::CannotObserve, format!("cannot write {target}: {error}")),
        }
    }

    /// Adds the command's progress to the error of a closed standard output. Other errors are returned unchanged.
    #[must_use]
    pub(crate) fn had_written(mut self, what: impl fmt::Display) -> CliError {
        if matches!(self.cause, Cause::ClosedPipe) {
            self.text = format!("the reader closed standard output after {what}");
        }
        self
    }

    /// A reader that went away is a failure, where what it did not take is worth nothing in part.
    #[must_use]
    pub(crate) fn needed_whole(self) -> CliError {
        match self.cause {
            Cause::ClosedPipe => CliError::new(Cause::CannotObserve, "the reader closed standard output too early"),
            _ => self,
        }
    }

    /// Adds what to type next; nothing follows when the reader went away.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> CliError {
        if !matches!(self.cause, Cause::ClosedPipe) {
            self.hints.push(hint.to_string());
        }
        self
    }

    /// Says what could not be done for this reason.
    #[must_use]
    pub(crate) fn within(mut self, what: &str) -> CliError {
        self.text = format!("{what}: {}", self.text);
        self
    }

    fn new(cause: Cause, text: impl fmt::Display) -> CliError {
        CliError { cause, text: text.to_string(), hints: Vec::new() }
    }

    /// How the command ends for it.
    pub(crate) fn exit(&self) -> Exit {
        self.cause.exit()
    }

    /// What to type next.
    #[cfg(test)]
    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Prints the error and returns the exit code.
    pub(crate) fn report(&self) -> Exit {
        let exit = self.exit();
        let text = &self.text;
        match exit {
            // The reader closed standard output before there was anything to report.
            Exit::Done if text.is_empty() => {}
            Exit::Bug => tell(format_args!("floodline: this is a bug in floodline: {text}")),
            _ => tell(format_args!("floodline: {text}")),
        }
        for hint in &self.hints {
            tell(format_args!("  hint: {hint}"));
        }
        exit
    }
}

/// After a panic, whose message has been printed already.
pub(crate) fn report_bug() -> Exit {
    tell(format_args!("floodline: this is a bug in floodline; please report the lines above"));
    Exit::Bug
}

/// Prints clap's answer (help, version or an error) where it belongs.
pub(crate) fn of_clap(answer: &clap::Error) -> Result<Exit, CliError> {
    let printed = answer.print();
    if answer.use_stderr() {
        // A failed write to standard error cannot be reported anywhere.
        return Ok(Exit::Usage);
    }
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::write("standard output", &error)),
        _ => Ok(Exit::Done),
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<clap::Error> for CliError {
    fn from(error: clap::Error) -> CliError {
        CliError::bug(error)
    }
}

impl From<NotACell> for CliError {
    fn from(error: NotACell) -> CliError {
        match error {
            NotACell::SeveralVariants(names) => CliError::usage(format!("name a --variant: {names}")),
            _ => CliError::usage(error),
        }
    }
}

impl From<SimError> for CliError {
    fn from(error: SimError) -> CliError {
        let text = error.to_string();
        let hints: Vec<String> = match &error {
            SimError::NotHonoured(keys) => {
                let meant = |key| Executor::Simulator.meant(key);
                let mut hints: Vec<String> =
                    keys.iter().filter_map(meant).map(|key| format!("did you mean {key}?")).collect();
                // A misspelt key is unknown to a real kernel as well.
                if hints.len() < keys.len() {
                    hints.push("if the kernel has this, run it on a real one: floodline lab run".to_owned());
                }
                hints
            }
            _ => error.way_on().map(str::to_owned).into_iter().collect(),
        };
        CliError { hints, ..CliError::new(Cause::Simulator(Box::new(error)), text) }
    }
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> CliError {
        let text = error.to_string();
        CliError::new(Cause::Lab(Box::new(error)), text)
    }
}

impl From<KernelError> for CliError {
    fn from(error: KernelError) -> CliError {
        let text = error.to_string();
        let is_absent = matches!(error, KernelError::NotFound { .. });
        let told = CliError::new(Cause::Kernel(Box::new(error)), text);
        if is_absent { told.hint("floodline lab kernels --refresh lists the available kernels") } else { told }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: SimError, code: u8) {
        let shown = error.to_string();
        assert_eq!(CliError::from(error).cause.exit().code(), code, "{shown}");
    }

    #[test]
    fn a_failure_of_the_simulator_is_not_wrong_usage() {
        check(SimError::Broken("NR_DIRTY: 1 against 2".to_owned()), 70);
        let waiting = vec![("a".to_owned(), "b".to_owned())];
        check(SimError::Stuck { seconds: 3, waiting, busy: Vec::new() }, 2);
        check(SimError::Senseless("machine.memory".to_owned()), 2);
        check(SimError::NotHonoured(Vec::new()), 2);
        check(SimError::TooMany { key: "workload.tasks", what: "tasks", count: 2, most: 1 }, 2);
    }
}
