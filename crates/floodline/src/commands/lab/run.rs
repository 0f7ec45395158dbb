// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab run SCENARIO --kernel K`: one variant of a scenario on a real kernel. The result is a
//! recording like that of any host, the figures of its workload, what `doctor` says of it, and whether all
//! that is as the scenario expects.

use super::kernels::find;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::observe::{parse_duration, parse_interval};
use floodline_core::diagnose::diagnose;
use floodline_core::record::{Record, Sink};
use floodline_core::recording::Decoder;
use floodline_core::report::{Finding, Report};
use floodline_core::scenario::{Expect, Figure, Scenario, ScenarioFile, figures};
use floodline_core::units::Nanos;
use floodline_core::window::Window;
use floodline_lab::cache::Cache;
use floodline_lab::job::Status;
use floodline_lab::kernels::Kernel;
use floodline_lab::qemu::{Accel, Acceleration, Console as GuestConsole, Ended, Patience};
use floodline_lab::run::{Order, Outcome, run};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Run one variant of a scenario on a real kernel
#[derive(clap::Args)]
#[command(after_help = "Exit code 1 when something is not as the scenario expects, 69 when nothing could be run.\n\n\
        Examples:\n  \
        floodline lab run scenarios/overlay-umount.toml --kernel 6.12\n  \
        floodline lab run scenarios/overlay-umount.toml --kernel 5.10 --variant remedy --save remedy.flr")]
pub(super) struct RunScenario {
    /// Scenario file
    scenario: PathBuf,
    /// Kernel to run: a version or series, a release name, host, or a path; see floodline lab kernels
    #[arg(long, value_name = "KERNEL")]
    kernel: String,
    /// Variant to run; without it the one called incident, or the only one
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Keep the recording in this file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Replace the file of --save where it exists
    #[arg(long, requires = "save")]
    force: bool,
    /// Time between two samples
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = parse_interval)]
    every: Duration,
    /// End the run after this time, whatever it does
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    timeout: Duration,
    /// How the guest is run
    #[arg(long, value_enum, default_value_t)]
    accel: AccelChoice,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How a guest is to be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum AccelChoice {
    /// By KVM where it works, else emulated
    #[default]
    Auto,
    /// By KVM
    Kvm,
    /// Emulated
    Tcg,
}

/// A guest that says nothing for this long hangs; it tells every second that it lives.
const SILENCE: Duration = Duration::from_secs(45);

impl RunScenario {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let interrupt = Interrupt::watch()?;
        let (variant, scenario) = read(&self.scenario, self.variant.as_deref())?;
        floodline_lab::run::check(&scenario).map_err(CliError::usage)?;
        let save = self
            .save
            .as_deref()
            .map(|path| crate::output::create(path, crate::output::Existing::by_force(self.force)))
            .transpose()?;
        let cache = Cache::of_user().map_err(CliError::lab_unavailable)?;
        let kernel = find(console, &cache, &self.kernel)?;
        let program = std::env::current_exe().map_err(CliError::lab_unavailable)?;
        let order = Order {
            scenario: &scenario,
            variant: &variant,
            kernel: &kernel,
            program: &program,
            accel: self.accel(console, &cache, &kernel)?,
            every: Nanos(u64::try_from(self.every.as_nanos()).unwrap_or(u64::MAX)),
            patience: Patience { total: self.timeout, silence: SILENCE },
        };
        let mut progress = console.progress();
        let mut stage = String::from("starting the guest");
        let started = Instant::now();
        let outcome = run(
            &cache,
            &order,
            |status| {
                take_stage(status, &mut stage);
                progress.tell(|| line(status, &stage));
            },
            || interrupt.is_asked(),
        )
        .map_err(CliError::lab_unavailable)?;
        drop(progress);
        let seconds = started.elapsed().as_secs_f64();
        if let Some(file) = save {
            keep(&outcome.recording, file, self.save.as_deref())?;
        }
        tell_console(console, &outcome.console);
        ended(&outcome, &stage, self.save.as_deref())?;
        let verdict = Verdict::of(&outcome.recording, &scenario.expect.on(kernel.version))?;
        let run = RunResult { scenario: &scenario, variant: &variant, kernel: &kernel, seconds, save: self.save };
        console.print(&match self.format {
            Format::Text => run.text(&verdict),
            Format::Json => run.json(&verdict)?,
        })?;
        Ok(if verdict.misses.is_empty() { Exit::Done } else { Exit::Findings })
    }

    fn accel(&self, console: &Console, cache: &Cache, kernel: &Kernel) -> Result<Accel, CliError> {
        match self.accel {
            AccelChoice::Kvm => Ok(Accel::Kvm),
            AccelChoice::Tcg => Ok(Accel::Tcg),
            AccelChoice::Auto => {
                let found = Acceleration::of_this_host(cache, &kernel.image).map_err(CliError::lab_unavailable)?;
                if let Some(note) = &found.note {
                    console.note(note);
                }
                Ok(found.accel)
            }
        }
    }
}

/// Reads the scenario and picks the variant.
fn read(path: &Path, wanted: Option<&str>) -> Result<(String, Scenario), CliError> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))?;
    let file = ScenarioFile::parse(&text).map_err(|error| CliError::usage(format!("{shown}: {error}")))?;
    let mut variants = file.variants;
    let names = variants.keys().cloned().collect::<Vec<_>>().join(", ");
    let only = || (variants.len() == 1).then(|| variants.keys().next().cloned()).flatten();
    let incident = || variants.contains_key("incident").then(|| "incident".to_owned());
    let name = wanted.map(str::to_owned).or_else(incident).or_else(only);
    let name = name.ok_or_else(|| {
        CliError::usage(format!("{shown} has several variants: {names}")).hint("name one with --variant")
    })?;
    match variants.remove(&name) {
        Some(scenario) => Ok((name, scenario)),
        None => Err(CliError::usage(format!("{shown} has no variant {name:?}")).hint(format!("its variants: {names}"))),
    }
}

fn take_stage(status: &Status, stage: &mut String) {
    match status {
        Status::Booted { release } => *stage = format!("booted {release}"),
        Status::Stage { stage: now } => stage.clone_from(now),
        _ => {}
    }
}

fn line(status: &Status, stage: &str) -> String {
    match status {
        Status::Alive { dirty: Some(dirty), writeback: Some(writeback), .. } => {
            format!("{stage}, dirty {} MiB, writeback {} MiB", dirty.0 >> 20, writeback.0 >> 20)
        }
        _ => stage.to_owned(),
    }
}

fn keep(recording: &Path, mut file: File, path: Option<&Path>) -> Result<(), CliError> {
    let target = path.map_or(String::new(), |path| path.display().to_string());
    let copied = File::open(recording).and_then(|mut from| std::io::copy(&mut from, &mut file));
    copied.map(drop).map_err(|error| CliError::write(&target, &error))
}

/// What the guest's kernel complained of.
fn tell_console(console: &Console, guest: &GuestConsole) {
    for (what, lines) in
        [("killed for want of memory", &guest.oom_kills), ("hung", &guest.hung_tasks), ("warned of", &guest.warnings)]
    {
        for line in lines {
            console.note(&format!("the guest's kernel {what}: {line}"));
        }
    }
}

/// An error for every end but the good one.
fn ended(outcome: &Outcome, stage: &str, save: Option<&Path>) -> Result<(), CliError> {
    let what = match &outcome.ended {
        Ended::Done => return Ok(()),
        Ended::Failed { stage, cause } => format!("the guest failed during {stage}: {cause}"),
        Ended::Died { status, says } => match &outcome.console.panic {
            Some(panic) => format!("the guest's kernel panicked: {panic}"),
            None => format!("the guest died; QEMU ended with {status} and said: {says}"),
        },
        Ended::Silent { patience } => {
            format!("the guest ({stage}) said nothing for {} s and was ended", patience.as_secs())
        }
        Ended::TooLong { patience } => {
            format!("the run took more than {} s and was ended; it was {stage}", patience.as_secs())
        }
        Ended::HostDiskFull { path } => {
            format!("the disk of this host is full at {}; the run was ended", path.display())
        }
        Ended::Interrupted => "interrupted".to_owned(),
    };
    let mut error = CliError::lab_unavailable(what);
    if !matches!(outcome.ended, Ended::Interrupted | Ended::HostDiskFull { .. }) {
        for line in &outcome.console.tail {
            error = error.hint(format!("console: {line}"));
        }
    }
    if let Some(save) = save {
        error = error.hint(format!("what was recorded until then is in {}", save.display()));
    }
    Err(error)
}

/// What a run shows, and what of it is not as expected.
struct Verdict {
    figures: BTreeMap<String, Figure>,
    report: Report,
    samples: u64,
    misses: Vec<String>,
}

impl Verdict {
    fn of(recording: &Path, expect: &Expect) -> Result<Verdict, CliError> {
        let broken = |error: &dyn std::fmt::Display| CliError::bug(format!("the guest's recording: {error}"));
        let file = File::open(recording).map_err(|error| broken(&error))?;
        let decoder = Decoder::new(BufReader::new(file)).map_err(|error| broken(&error))?;
        let mut window = Window::default();
        for record in decoder {
            let record: Record = record.map_err(|error| broken(&error))?;
            let Ok(()) = window.record(&record);
        }
        let figures = figures(&window.events);
        let report = diagnose(&window, None);
        let misses = misses(expect, &figures, &report.findings);
        Ok(Verdict { samples: window.samples, figures, report, misses })
    }
}

/// Everything that is not as expected, one line each.
fn misses(expect: &Expect, figures: &BTreeMap<String, Figure>, findings: &[Finding]) -> Vec<String> {
    let mut misses = Vec::new();
    let is_found = |rule: &String| findings.iter().any(|finding| finding.rule == rule);
    for rule in expect.found.iter().flatten().filter(|rule| !is_found(rule)) {
        misses.push(format!("{rule} was not found"));
    }
    for rule in expect.not_found.iter().flatten().filter(|rule| is_found(rule)) {
        misses.push(format!("{rule} was found"));
    }
    if let Some(limit) = expect.quiet_from {
        let loud = findings.iter().filter(|finding| finding.severity >= limit);
        misses.extend(loud.map(|finding| format!("{} was found, {}", finding.rule, finding.severity.name())));
    }
    for (name, bound) in &expect.figures {
        match figures.get(name) {
            Some(figure) if bound.holds(figure.value) => {}
            Some(figure) => misses.push(format!("{name} is {:.4}, expected {}", figure.value, bounds(bound))),
            None => misses.push(format!("{name} was not measured")),
        }
    }
    misses
}

fn bounds(bound: &floodline_core::scenario::Bound) -> String {
    match (bound.min, bound.max) {
        (Some(min), Some(max)) => format!("{} to {}", min.0, max.0),
        (Some(min), None) => format!("at least {}", min.0),
        (None, Some(max)) => format!("at most {}", max.0),
        (None, None) => "anything".to_owned(),
    }
}

/// What is said of a run besides what it shows.
struct RunResult<'a> {
    scenario: &'a Scenario,
    variant: &'a str,
    kernel: &'a Kernel,
    seconds: f64,
    save: Option<PathBuf>,
}

impl RunResult<'_> {
    fn text(&self, verdict: &Verdict) -> String {
        let mut text = format!(
            "{} ({}) on {}: {} samples, {:.0} s\n\nFigures:\n",
            self.scenario.name, self.variant, self.kernel.release, verdict.samples, self.seconds
        );
        text.push_str(&floodline_view::figures::render(&verdict.figures));
        text.push_str("\nFindings:\n");
        for finding in &verdict.report.findings {
            text.push_str(&format!("  {:<8} {}: {}\n", finding.severity.name(), finding.rule, finding.summary));
        }
        if verdict.report.findings.is_empty() {
            text.push_str("  none\n");
        }
        match verdict.misses.as_slice() {
            [] => text.push_str("\nAs the scenario expects.\n"),
            misses => {
                text.push_str("\nNot as the scenario expects:\n");
                misses.iter().for_each(|miss| text.push_str(&format!("  {miss}\n")));
            }
        }
        text
    }

    fn json(&self, verdict: &Verdict) -> Result<String, CliError> {
        let value = json!({
            "schema": "floodline.run/1",
            "executor": "lab",
            "scenario": self.scenario.name,
            "variant": self.variant,
            "kernel": self.kernel.release,
            "kernel_version": self.kernel.version,
            "seconds": self.seconds,
            "figures": verdict.figures,
            "findings": verdict.report.findings,
            "not_as_expected": verdict.misses,
            "recording": self.save,
        });
        serde_json::to_string(&value).map(|text| text + "\n").map_err(CliError::bug)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_core::scenario::Bound;

    #[test]
    fn what_is_not_as_expected_is_said_line_by_line() {
        let figure = Figure { value: 9.5, unit: "seconds" };
        let figures = BTreeMap::from([("t.umount.max_seconds".to_owned(), figure)]);
        let bound = |min: f64, max: f64| Bound {
            min: Some(floodline_core::scenario::Level(min)),
            max: Some(floodline_core::scenario::Level(max)),
        };
        let expect = Expect {
            found: Some(vec!["overlay-umount-flush".to_owned()]),
            figures: BTreeMap::from([
                ("t.umount.max_seconds".to_owned(), bound(0.0, 0.3)),
                ("t.umount.p50_seconds".to_owned(), bound(0.0, 0.3)),
            ]),
            ..Expect::default()
        };
        assert_eq!(
            misses(&expect, &figures, &[]),
            [
                "overlay-umount-flush was not found",
                "t.umount.max_seconds is 9.5000, expected 0 to 0.3",
                "t.umount.p50_seconds was not measured",
            ]
        );
        assert!(misses(&Expect::default(), &figures, &[]).is_empty());
    }
}
