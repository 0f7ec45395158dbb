// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline serve`: one loop takes a sample per second and feeds the exporter, the flight recorder and its triggers.
//! Wiring only: what happens with a sample is `floodline_serve`.

use super::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::live::Host;
use crate::observe::{Schedule, observe, parse_interval};
use floodline_host::Needs;
use floodline_serve::listen::{HandedIn, bind};
use floodline_serve::{Listener, Options, Serve, ServeError};
use std::path::PathBuf;
use std::time::Duration;

/// Export metrics, keep a flight recorder, and record incidents
#[derive(clap::Parser)]
#[command(
    name = "serve",
    after_help = "Takes a sample every second until Ctrl-C. Metrics are at /metrics in the text formats of \
        Prometheus and OpenMetrics. A scrape formats the last sample and reads nothing.\n\n\
        Examples:\n  \
        floodline serve\n  \
        floodline serve --listen 127.0.0.1:9470 --every 5s"
)]
pub(crate) struct ServeCommand {
    /// Address for scrapers, or none; a socket that systemd hands in is used instead
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9469")]
    listen: String,
    /// Time between two samples
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_interval)]
    every: Duration,
    /// Observe a captured tree instead of this machine
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Run for ServeCommand {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let interrupt = Interrupt::watch()?;
        let listeners = self.listeners(console)?;
        let host = Host::open(self.root.as_deref())?;
        let mut serve = Serve::start(Options { version: env!("CARGO_PKG_VERSION"), listeners }).map_err(failed)?;
        let schedule = Schedule { length: None, every: self.every };
        observe(schedule, &interrupt, host.looks(Needs::ALL, None), |record| {
            serve.record(record);
            Ok(())
        })?;
        Ok(Exit::Done)
    }
}

impl ServeCommand {
    /// Where scrapers connect to. Says it, and who can.
    fn listeners(&self, console: &Console) -> Result<Vec<Listener>, CliError> {
        let environment = |name: &str| std::env::var(name).ok();
        let pid = environment("LISTEN_PID");
        let handed_in = HandedIn::of(pid.as_deref(), environment("LISTEN_FDS").as_deref());
        let listeners = handed_in.take().map_err(failed)?;
        if !listeners.is_empty() {
            console.note("serving metrics on the socket that was handed in (LISTEN_FDS)");
            return Ok(listeners);
        }
        if self.listen == "none" {
            return Ok(Vec::new());
        }
        let (listener, address) = bind(&self.listen).map_err(failed)?;
        let reach = match address.ip().is_loopback() {
            true => "reachable from this machine only",
            false => "reachable from the network, unencrypted and without a password",
        };
        console.note(&format!("serving metrics on http://{address}/metrics, {reach}"));
        Ok(vec![listener])
    }
}

/// An error of the exporter or recorder as one of the program.
pub(crate) fn failed(error: ServeError) -> CliError {
    let told = match error.is_usage() {
        true => CliError::usage(&error),
        false => CliError::cannot_observe(&error),
    };
    error.hints().iter().fold(told, |told, hint| told.hint(hint))
}
