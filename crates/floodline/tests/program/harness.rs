// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the program with an empty environment and collects what it did.

use std::fmt;
use std::process::Command;

/// What one run of the program did.
pub(crate) struct Run {
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    /// Exit code; −1 when a signal ended it.
    pub(crate) code: i32,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// The program with an empty environment.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floodline"));
    command.env_clear().args(args);
    command
}

/// Runs it to its end.
pub(crate) fn floodline(args: &[&str]) -> Run {
    let output = command(args).output().expect("the program starts");
    Run {
        stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        code: output.status.code().unwrap_or(-1),
    }
}
