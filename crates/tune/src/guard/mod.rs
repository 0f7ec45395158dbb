// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guard: a small process that puts everything back unless the change is confirmed in time. It starts before the
//! first write and holds every attribute open. `process` is the guard itself, `wire` what it says to others, `harm` how
//! it judges the host, `keeper` what replaces it when it is killed.

pub mod harm;
mod keeper;
mod process;
pub mod wire;

pub use process::{ARGUMENT, main};

use crate::host::Host;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wire::Client;

/// Time that a guard has to get ready.
const START_MAX: Duration = Duration::from_secs(20);

/// Why there is no guard.
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
    command.arg(ARGUMENT).arg(state).arg(id.to_string()).arg(host.root());
    command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
    if has_systemd {
        let output = command.output().map_err(|error| GuardError::Start { program: program.clone(), error })?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(GuardError::Failed { program, text });
        }
    } else {
        // The child leaves the session by itself. It is not waited for: it lives longer than this process.
        command.stderr(Stdio::null()).spawn().map_err(|error| GuardError::Start { program, error })?;
    }
    greet(state, id).ok_or(GuardError::Silent)
}

/// Waits for the guard to answer.
fn greet(state: &Path, id: u32) -> Option<Client> {
    let started = Instant::now();
    while started.elapsed() < START_MAX {
        let client = Client::connect(state, id).ok();
        let ready = client.and_then(|mut client| {
            let answer = client.ask(wire::APPLIER, START_MAX).ok()?;
            (answer == wire::READY).then_some(client)
        });
        if ready.is_some() {
            return ready;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}
