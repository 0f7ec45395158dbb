// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline serve`: one loop takes a sample every 2 s and feeds the exporter, the flight recorder and its triggers.
//! Wiring only: what happens with a sample is `floodline_serve`.

use super::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::shown;
use crate::interrupt::Interrupt;
use crate::live::{EVERY, Host, StatReads, Trace};
use crate::observe::{Schedule, observe, parse_duration, parse_interval};
use crate::stderr::tell;
use floodline_host::apart::Apart;
use floodline_record::human;
use floodline_record::record::Record;
use floodline_record::units::Nanos;
use floodline_serve::listen::{HandedIn, bind};
use floodline_serve::{Limits, Listener, Options, RingOptions, Serve, ServeError, lock_memory};
use floodline_view::metrics;
use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Export metrics, keep a flight recorder, and record incidents
#[derive(clap::Parser)]
#[command(
    name = "serve",
    after_help = "Takes a sample every 2 s until Ctrl-C. Metrics are at /metrics in the text formats of \
        Prometheus and OpenMetrics. A scrape returns the last sample and reads no files.\n\n\
        With --ring, samples are also kept in a folder: each sample of the last minutes, and fewer of older ones. \
        I/O pressure, a new finding, a task that waits too long, and floodline mark each start an incident. \
        An incident is a recording, from a minute before to a minute after, and its report.\n\n\
        Examples:\n  \
        floodline serve\n  \
        floodline serve --ring /var/lib/floodline --ring-size 200M\n  \
        floodline serve --print-alerts > floodline-alerts.yml\n  \
        floodline serve --print-dashboard > floodline-dashboard.json"
)]
pub(crate) struct ServeCommand {
    /// Address at which metrics can be scraped, or none for no metrics. A socket that systemd passes is used instead
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9469")]
    listen: String,
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_interval, help = EVERY)]
    every: Duration,
    #[command(flatten)]
    reads: StatReads,
    /// Folder of the flight recorder; it is made if it does not exist
    #[arg(long, value_name = "DIR")]
    ring: Option<PathBuf>,
    /// Limit of all files in that folder, e.g. 50M
    #[arg(long, value_name = "SIZE", default_value = "50M", value_parser = parse_size)]
    ring_size: u64,
    /// Limit of the samples in memory
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    ring_memory: u64,
    /// Start an incident if tasks waited for I/O for this percentage of 10 s; 0 turns this trigger off
    #[arg(long, value_name = "PERCENT", default_value = "50", value_parser = clap::value_parser!(u8).range(0..=100))]
    on_pressure: u8,
    /// Start an incident if one task waits this long
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    on_wait: Duration,
    /// Time after an incident in which the same trigger for the same task or finding starts no other incident. The incident counts such triggers
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    cooldown: Duration,
    /// Largest number of incidents kept in 24 hours
    #[arg(long, value_name = "COUNT", default_value = "10")]
    incidents_per_day: usize,
    /// Command to run after each incident, with the incident as JSON on standard input. All arguments after this option belong to the command
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true, requires = "ring")]
    on_incident: Vec<OsString>,
    /// Whether to trace the kernel: auto traces the minute after a trigger
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    trace: Trace,
    /// Print a Grafana dashboard for these metrics, and stop
    #[arg(long, conflicts_with = "print_alerts")]
    print_dashboard: bool,
    /// Print alert rules for Prometheus, and stop
    #[arg(long)]
    print_alerts: bool,
    /// Observe a captured tree instead of this machine
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Run for ServeCommand {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        if self.print_dashboard {
            console.print(&metrics::dashboard_json().map_err(CliError::bug)?)?;
            return Ok(Exit::Done);
        }
        if self.print_alerts {
            console.print(&metrics::alerts_yaml())?;
            return Ok(Exit::Done);
        }
        let interrupt = Interrupt::watch()?;
        let (listeners, reach) = self.listeners()?;
        let host = Host::open(self.root.as_deref())?;
        host.check_trace(self.trace)?;
        let loader = self.loader(console, &host);
        if let Err(why) = lock_memory() {
            console.note(&why);
        }
        let options = Options {
            version: env!("CARGO_PKG_VERSION"),
            listeners,
            ring: self.ring.as_ref().map(|folder| self.ring(folder)),
            is_live: host.is_live(),
        };
        let mut serve = Serve::start(options).map_err(failed)?;
        if let Some(reach) = reach {
            console.note(&reach);
        }
        if let Some(folder) = &self.ring {
            let size = human::bytes(self.ring_size as f64);
            console.note(&format!("keeping samples and incidents in {}, at most {size}", shown(folder)));
        }
        let schedule = Schedule { length: None, every: self.every };
        let mut sample = host.samples_traced_at_times(self.reads, self.trace, loader);
        let is_traced = Cell::new(false);
        observe(
            schedule,
            &interrupt,
            |records| sample(records, is_traced.get()),
            |record| {
                serve.record(record);
                if matches!(record, Record::Sample(_)) && is_traced.replace(serve.wants_trace()) && !is_traced.get() {
                    serve.trace_ended();
                }
                Ok(())
            },
        )?;
        serve.finish();
        Ok(Exit::Done)
    }
}

impl ServeCommand {
    /// The process that loads BPF programs, where this machine is traced. What this one could do with them it gives up.
    fn loader(&self, console: &Console, host: &Host) -> Option<Apart> {
        if self.trace == Trace::Off || !host.is_live() {
            return None;
        }
        Apart::split(Command::new("/proc/self/exe")).unwrap_or_else(|error| {
            console.note(&format!("the tracer runs in this process, not in its own: {error}"));
            None
        })
    }

    fn ring(&self, folder: &Path) -> RingOptions {
        let nanos = |length: Duration| Nanos(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        RingOptions {
            folder: folder.to_owned(),
            limit: self.ring_size,
            memory: usize::try_from(self.ring_memory).unwrap_or(usize::MAX).max(1 << 20),
            every: nanos(self.every),
            limits: Limits {
                wait: nanos(self.on_wait),
                io_pressure: if self.on_pressure == 0 { f64::INFINITY } else { f64::from(self.on_pressure) / 100.0 },
                cooldown: nanos(self.cooldown),
                per_day: self.incidents_per_day,
            },
            hook: self.on_incident.clone(),
            tell: Box::new(|text| tell(format_args!("floodline: {text}"))),
        }
    }

    /// Returns the sockets for scrapers, and a line for the user about which hosts can connect.
    fn listeners(&self) -> Result<(Vec<Listener>, Option<String>), CliError> {
        let environment = |name: &str| std::env::var(name).ok();
        let pid = environment("LISTEN_PID");
        let handed_in = HandedIn::of(pid.as_deref(), environment("LISTEN_FDS").as_deref());
        let listeners = handed_in.take().map_err(failed)?;
        if !listeners.is_empty() {
            let reach = "serving metrics on the socket that was handed in (LISTEN_FDS)";
            return Ok((listeners, Some(reach.to_owned())));
        }
        if self.listen == "none" {
            if self.ring.is_none() {
                return Err(CliError::usage("--listen none without --ring: nothing would be served and nothing kept")
                    .hint(
                        "add --ring FOLDER to keep samples and incidents, or leave out --listen none to serve metrics",
                    ));
            }
            return Ok((Vec::new(), None));
        }
        let (listener, address) = bind(&self.listen).map_err(failed)?;
        let reach = match address.ip().is_loopback() {
            true => "reachable from this machine only",
            false => "reachable from the network, unencrypted and without a password",
        };
        Ok((vec![listener], Some(format!("serving metrics on http://{address}/metrics, {reach}"))))
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

/// Reads a size such as `50M`.
fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("invalid size {text:?}: expected a value such as 50M or 1G");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let unit: u64 = match text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let check = |text: &str, expect: Option<u64>| assert_eq!(parse_size(text).ok(), expect, "{text}");
        check("50M", Some(50 << 20));
        check("1g", Some(1 << 30));
        check("4096", Some(4096));
        check("2KiB", Some(2048));
        check("-1M", None);
        check("M", None);
        check("99999999999G", None);
        check("5X", None);
    }
}
