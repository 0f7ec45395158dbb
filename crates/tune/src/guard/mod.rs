// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guard: a small process that puts everything back unless the change is confirmed in time. It starts before the
//! first write and holds every attribute open. `process` is the guard itself, `wire` its protocol, `harm` its check of
//! the host, `keeper` the process that replaces it when it is killed, `watch` the process that detects writers that
//! wait too long.

pub mod harm;
mod keeper;
mod process;
mod watch;
pub mod wire;

use crate::host::Host;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use wire::Client;

/// Time that a guard has to get ready.
const START_MAX: Duration = Duration::from_secs(20);
/// Longest reason that a guard gives for its end, in bytes.
const WHY_MAX: u64 = 4096;

/// Runs a process of a guard to its end if the first argument of the program asks for one. Returns its exit code.
pub fn main(first: &OsString, others: &[OsString]) -> Option<u8> {
    match first.to_str() {
        Some(process::ARGUMENT) => Some(process::main(others)),
        Some(watch::ARGUMENT) => Some(watch::main(others)),
        _ => None,
    }
}

/// The guard could not be started.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// It cannot be started.
    #[error("cannot start {program}: {error}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// The program that starts it failed.
    #[error("{program} failed: {text}")]
    Failed {
        /// The program.
        program: String,
        /// What it said.
        text: String,
    },
    /// It ended before it was ready.
    #[error("the guard ended at once: {0}")]
    Ended(String),
    /// It does not answer.
    #[error("the guard did not get ready within {} s", START_MAX.as_secs())]
    Silent,
}

/// Starts the guard of a change and returns a connection to it once it is ready.
pub fn start(host: &Host, state: &Path, id: u32) -> Result<Client, GuardError> {
    let exe = std::env::current_exe().map_err(|error| GuardError::Start { program: "floodline".to_owned(), error })?;
    let has_systemd = !host.is_imitated() && Path::new("/run/systemd/system").is_dir();
    let (program, mut command) = if has_systemd {
        let mut command = Command::new("systemd-run");
        // In a unit of its own it outlives the login, and systemd starts it again after a kill.
        command.args(["--quiet", "--collect", "--description", "Floodline guard of a change"]);
        command.arg(format!("--unit=floodline-guard-{id}"));
        let properties = [
            "Restart=on-failure",
            "RestartSec=0",
            "StartLimitIntervalSec=0",
            "OOMScoreAdjust=-1000",
            "LimitMEMLOCK=infinity",
            "MemoryMin=4M",
        ];
        command.args(properties.iter().map(|property| format!("--property={property}")));
        command.arg("--").arg(&exe);
        ("systemd-run".to_owned(), command)
    } else {
        (exe.display().to_string(), Command::new(&exe))
    };
    command.arg(process::ARGUMENT).arg(state).arg(id.to_string()).arg(host.root());
    command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
    let said = if has_systemd {
        let output = command.output().map_err(|error| GuardError::Start { program: program.clone(), error })?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(GuardError::Failed { program, text });
        }
        None
    } else {
        // The child leaves the session by itself. It is not waited for: it lives longer than this process.
        let mut child = command.stderr(Stdio::piped()).spawn().map_err(|error| GuardError::Start { program, error })?;
        child.stderr.take()
    };
    greet(state, id, said)
}

/// Waits for the guard to answer. `said` is what a guard that fails writes its reason to; one that is ready closes it.
fn greet(state: &Path, id: u32, mut said: Option<ChildStderr>) -> Result<Client, GuardError> {
    let started = Instant::now();
    while started.elapsed() < START_MAX {
        if let Some(pipe) = &mut said
            && has_spoken(pipe)
        {
            let mut why = String::new();
            let _ = pipe.take(WHY_MAX).read_to_string(&mut why);
            if !why.trim().is_empty() {
                return Err(GuardError::Ended(why.trim().to_owned()));
            }
            said = None;
        }
        let client = Client::connect(state, id).ok();
        let ready = client.and_then(|mut client| {
            let answer = client.ask(wire::APPLIER, START_MAX).ok()?;
            (answer == wire::READY).then_some(client)
        });
        if let Some(client) = ready {
            return Ok(client);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(GuardError::Silent)
}

/// Whether a pipe has something to read, or was closed.
fn has_spoken(pipe: &ChildStderr) -> bool {
    let mut fds = [PollFd::new(pipe, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}
