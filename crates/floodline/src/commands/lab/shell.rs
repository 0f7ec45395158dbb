// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab shell --kernel K [SCENARIO]`: a console in a guest, on a scenario's machine or a plain one;
//! or one command there, with its output and exit code. Wiring only: the guest's side is `floodline_lab`.

use super::execute::{Bench, Guests, How, Trial, read_scenario};
use super::progress::Live;
use super::terminal::Handed;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::observe::parse_duration;
use floodline_lab::job::{Shell, Status, Terminal};
use floodline_lab::kernels::Kernel;
use floodline_lab::root::System;
use floodline_lab::run::Session;
use floodline_scenario::{Scenario, ScenarioFile};
use std::io::{self, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Open a console in a guest, or run a command there
#[derive(clap::Args)]
#[command(
    override_usage = "floodline lab shell [OPTIONS] --kernel <KERNEL> [SCENARIO]\n           [-- <COMMAND>...]",
    after_help = "Without --system, the guest and all its data are discarded afterwards. Its shell is bash, run as root. The \
        guest contains floodline and the usual programs, from this machine's package lists.\n\n\
        With --system, the guest boots Debian with systemd from a disk. Packages are put on the disk when it is \
        made. Settings of the scenario become a file in /etc/sysctl.d. --power-cut ends the guest as a power failure \
        does: what it had not written to the disk is lost.\n\n\
        Ctrl-A X ends the guest at once. So do exit and Ctrl-D in its shell. Ctrl-A A sends Ctrl-A. After resizing \
        the terminal, run stty rows R cols C in the guest.\n\n\
        A command runs without a terminal. lab shell passes on its output and its exit code. Exit code 69 means that \
        no guest could be run, 127 that the guest does not have the command.\n\n\
        Examples:\n  \
        floodline lab shell --kernel 6.12\n  \
        floodline lab shell scenarios/starved-budget.toml --kernel 7.2 --workload\n  \
        floodline lab shell --kernel 6.1 -- floodline doctor --for 3s\n  \
        floodline lab shell --kernel 6.12 --system host.img --power-cut -- \\\n    \
        floodline apply --set vm.dirty_bytes=67108864 --yes\n  \
        floodline lab shell --kernel 6.12 --package fio -- \\\n    \
        fio --name=a --size=64M --rw=write --directory=/data"
)]
pub(super) struct ShellCommand {
    /// Scenario whose machine to build [default: two CPUs, 1 GiB, an ext4 disk on /data]
    scenario: Option<PathBuf>,
    /// Kernel to run: a version, a series, a release name, host, or a path (see floodline lab kernels)
    #[arg(long, value_name = "KERNEL")]
    kernel: String,
    /// Variant of the scenario [default: the one named incident, or the only one]
    #[arg(long, value_name = "NAME", requires = "scenario")]
    variant: Option<String>,
    /// Run the scenario's workload beside the shell
    #[arg(long, requires = "scenario")]
    workload: bool,
    /// Also install this package in the guest; may be repeated
    #[arg(long = "package", value_name = "PACKAGE")]
    packages: Vec<String>,
    /// Boot Debian with systemd from this file, which is created if missing and keeps what the guest writes
    #[arg(long, value_name = "FILE")]
    system: Option<PathBuf>,
    /// Debian release of a new system, e.g. trixie [default: what this machine's package lists have]
    #[arg(long, value_name = "SUITE", requires = "system", value_parser = parse_suite)]
    suite: Option<String>,
    /// Cut the power when the command ends, instead of a shutdown
    #[arg(long, requires_all = ["system", "command"])]
    power_cut: bool,
    /// End the guest after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    guests: Guests,
    /// Command to run instead of a console, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The machine of a shell without a scenario.
const PLAIN: &str = r#"
name = "shell"
summary = "A machine to look around in"
[machine]
memory = "1 GiB"
cpus = 2
[machine.devices.data]
size = "2 GiB"
[machine.mounts."/data"]
type = "ext4"
device = "data"
[workload.tasks.nothing]
steps = ["sync"]
"#;

/// Nothing is recorded.
const EVERY: Duration = Duration::from_secs(1);

impl ShellCommand {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let is_console = self.command.is_empty();
        if is_console && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Err(CliError::usage("a console needs a terminal")
                .hint("give a command: floodline lab shell --kernel K -- floodline doctor --for 3s"));
        }
        let (variant, scenario) = self.machine()?;
        floodline_lab::run::check(&scenario)?;
        let timeout = self.timeout.unwrap_or(Duration::MAX);
        let how = How { every: EVERY, trace: false, timeout, guests: self.guests.clone() };
        let mut bench = Bench::open(console, &how)?;
        let kernel = bench.kernel(&self.kernel)?;
        let trial = Trial { scenario: &scenario, variant: &variant, kernel: &kernel };
        let (ours, theirs) = match is_console {
            true => UnixStream::pair().map(|(ours, theirs)| (Some(ours), Some(theirs))),
            false => Ok((None, None)),
        }
        .map_err(CliError::lab_unavailable)?;
        let shell = Shell {
            command: (!is_console).then(|| self.command.clone()),
            terminal: is_console.then(terminal),
            with_workload: self.workload,
        };
        let power_cut = self.power_cut;
        let suite = self.suite.clone();
        let system = self.system.clone().map(|disk| System { disk, suite, power_cut });
        let session = Session { shell, terminal: theirs, packages: self.packages.iter().cloned().collect(), system };
        let is_left = Arc::new(AtomicBool::new(false));
        let mut guest = Facing {
            progress: Some((console.progress(), Live::named(format!("{} on {}", scenario.name, kernel.version)))),
            wire: ours,
            handed: None,
            is_left: is_left.clone(),
            welcome: welcome(&scenario, &kernel),
            code: 0,
            error: None,
        };
        let ended = bench.shell(trial, session, |status| guest.take(status), || is_left.load(Ordering::Relaxed));
        let (code, error) = guest.part();
        match error {
            Some(error) => Err(error),
            None => ended.map(|()| if is_console { Exit::Done } else { Exit::OfGuest(code) }),
        }
    }

    fn machine(&self) -> Result<(String, Scenario), CliError> {
        if let Some(path) = &self.scenario {
            return read_scenario(path, self.variant.as_deref());
        }
        let file = ScenarioFile::parse(PLAIN).map_err(CliError::bug)?;
        file.variants.into_iter().next().ok_or_else(|| CliError::bug("the plain machine has no variant"))
    }
}

/// Reads the name of a suite. It becomes part of a file's name and a line of apt's configuration.
fn parse_suite(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match text.starts_with(|c: char| c.is_ascii_lowercase()) && text.len() <= 40 && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(format!("invalid suite {text:?}: expected a name such as bookworm or trixie")),
    }
}

/// The terminal that this is.
fn terminal() -> Terminal {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    Terminal {
        name: std::env::var("TERM").unwrap_or_else(|_| "vt100".to_owned()),
        rows: size.map_or(24, |size| size.ws_row),
        columns: size.map_or(80, |size| size.ws_col),
    }
}

/// The greeting of a console session.
fn welcome(scenario: &Scenario, kernel: &Kernel) -> String {
    let mounts: Vec<String> = scenario.mount_copies().into_iter().map(|copy| copy.point).collect();
    let (points, more) = mounts.split_at(mounts.len().min(4));
    let and_more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let mounted = if mounts.is_empty() { String::new() } else { format!(", {}{and_more}", points.join(" ")) };
    let machine = &scenario.machine;
    let memory = machine.memory.bytes() >> 20;
    let what = format!("{}: {} CPUs, {memory} MiB{mounted}", kernel.release, machine.cpus);
    format!("{what}\r\nexit or Ctrl-A X ends the guest and discards its data\r\n")
}

/// The user's side of a running guest.
struct Facing {
    progress: Option<(crate::console::Progress, Live)>,
    wire: Option<UnixStream>,
    handed: Option<Handed>,
    is_left: Arc<AtomicBool>,
    welcome: String,
    code: u8,
    error: Option<CliError>,
}

impl Facing {
    fn take(&mut self, status: &Status) {
        if let Err(error) = self.heard(status) {
            self.error.get_or_insert(error);
            self.is_left.store(true, Ordering::Relaxed);
        }
    }

    fn heard(&mut self, status: &Status) -> Result<(), CliError> {
        match (status, &self.wire) {
            (Status::Console, Some(wire)) => {
                self.progress = None;
                let wrote = |error| CliError::write("standard output", &error);
                self.handed = Some(Handed::over(wire, &self.is_left)?);
                io::stdout().write_all(self.welcome.as_bytes()).and_then(|()| io::stdout().flush()).map_err(wrote)
            }
            (Status::Output { is_error, text }, _) => {
                self.progress = None;
                let bytes = Status::bytes(text);
                match is_error {
                    true => io::stderr().write_all(&bytes),
                    false => io::stdout().write_all(&bytes).and_then(|()| io::stdout().flush()),
                }
                .map_err(|error| CliError::write("standard output", &error))
            }
            (Status::Exited { code }, _) => {
                self.code = *code;
                Ok(())
            }
            (Status::Stage { stage }, _) if self.handed.is_some() => {
                let line = format!("\r\n[floodline: {stage}]\r\n");
                io::stderr().write_all(line.as_bytes()).map_err(|error| CliError::write("standard error", &error))
            }
            (status, _) => {
                if let Some((progress, live)) = &mut self.progress {
                    live.take(status);
                    progress.tell(|| live.line());
                }
                Ok(())
            }
        }
    }

    /// Takes leave: the terminal is this program's again.
    fn part(self) -> (u8, Option<CliError>) {
        let Facing { progress, wire, handed, code, error, .. } = self;
        drop((progress, handed, wire));
        (code, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_a_plain_name() {
        let check = |text: &str, expect: bool| assert_eq!(parse_suite(text).is_ok(), expect, "{text}");
        check("trixie", true);
        check("bookworm-backports", true);
        check("../etc", false);
        check("a b", false);
        check("-a", false);
        check("", false);
    }
}
