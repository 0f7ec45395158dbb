// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the program with an empty environment and collects what it did.

use floodline_record::record::Sink;
use floodline_record::recording::{Encoder, Header};
use floodline_testkit::Fixture;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

/// Longest time that a test waits for a program: long enough for any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

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
    outcome(command(args).output().expect("the program starts"))
}

/// Runs it and interrupts it as soon as a file is there, which it makes once a signal is a wish.
pub(crate) fn interrupted_with(args: &[&str], file: &Path) -> Run {
    interrupted(args, |child| {
        let until = Instant::now() + PATIENCE;
        while !file.exists() && child.try_wait().expect("it can be waited for").is_none() {
            assert!(Instant::now() < until, "no {} within a minute", file.display());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    })
}

/// A run of the program that is interrupted as soon as it has said something on standard error.
pub(crate) fn interrupted_when_it_speaks(args: &[&str]) -> Run {
    interrupted(args, |child| {
        let said = child.stderr.as_mut().expect("a pipe");
        let mut ready = [PollFd::new(said, PollFlags::IN)];
        let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        assert!(poll(&mut ready, Some(&patience)).expect("a pipe") > 0, "it says nothing within a minute");
        said.read_exact(&mut [0]).expect("it says something");
    })
}

fn interrupted(args: &[&str], until: impl FnOnce(&mut Child)) -> Run {
    let piped = std::process::Stdio::piped;
    let mut child = command(args).stdout(piped()).stderr(piped()).spawn().expect("it starts");
    until(&mut child);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    outcome(child.wait_with_output().expect("it ends"))
}

/// What a run that has ended did.
pub(crate) fn outcome(output: Output) -> Run {
    Run {
        stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        code: output.status.code().unwrap_or(-1),
    }
}

/// A recording in a file that goes away with this.
pub(crate) struct RecordingFile {
    path: String,
    _folder: tempfile::TempDir,
}

impl RecordingFile {
    /// Its path, as an argument.
    pub(crate) fn as_str(&self) -> &str {
        &self.path
    }
}

/// Writes a hand-made recording to a file.
pub(crate) fn recording(fixture: &Fixture) -> RecordingFile {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("host.flr");
    let file = std::fs::File::create(&path).expect("a file");
    let mut encoder = Encoder::new(file, Header::new(None)).expect("an encoder");
    for record in fixture.records() {
        encoder.record(&record).expect("a record");
    }
    encoder.finish().expect("an end");
    RecordingFile { path: path.to_string_lossy().into_owned(), _folder: folder }
}

/// Path of a captured tree, by the name of its kernel.
pub(crate) fn captured(kernel: &str) -> String {
    floodline_captured::tree(kernel).to_string_lossy().into_owned()
}

/// How many times a test kills a program: `FLOODLINE_KILLS`, at most `most`.
pub(crate) fn kills(usual: u64, most: u64) -> u64 {
    std::env::var("FLOODLINE_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(usual).min(most)
}
