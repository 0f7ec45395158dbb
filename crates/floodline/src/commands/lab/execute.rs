// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every verb of the lab that runs guests has in common: its arguments, one run with its progress on a
//! terminal, and what the recording of a run shows.

use super::kernels::find;
use super::progress::Live;
use crate::console::Console;
use crate::error::CliError;
use crate::input::{Input, shown};
use crate::interrupt::Interrupt;
use crate::observe::{parse_duration, parse_interval};
use crate::output::{called, is_standard};
use floodline_analysis::report::Report;
use floodline_analysis::run::{Run, RunReport, SCHEMA, THROTTLED, misses, workload_length};
use floodline_lab::cache::Cache;
use floodline_lab::job::Status;
use floodline_lab::kernels::{Kernel, cached};
use floodline_lab::qemu::{Accel, Acceleration, Console as GuestConsole, Ended, Patience};
use floodline_lab::results::Results;
use floodline_lab::run::{Order, Outcome, Session, run, shell};
use floodline_record::record::Sink;
use floodline_record::units::Nanos;
use floodline_scenario::{Expect, Scenario, ScenarioFile};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How a workload is run and recorded.
#[derive(Clone, clap::Args)]
pub(super) struct How {
    /// Time between two samples
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = parse_interval)]
    pub(super) every: Duration,
    /// Trace the guest's kernel even if no expected figure needs it
    #[arg(long)]
    pub(super) trace: bool,
    /// End a run after this time in any case
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub(super) timeout: Duration,
    #[command(flatten)]
    pub(super) guests: Guests,
}

/// How guests are run.
#[derive(Clone, clap::Args)]
pub(super) struct Guests {
    /// How a guest is run
    #[arg(long, value_enum, default_value_t)]
    accel: AccelChoice,
    /// Floodline binary for the guest's init, preferably static [default: this binary]
    #[arg(long, value_name = "FILE")]
    guest_program: Option<PathBuf>,
    /// Treat the guest as hung after this long without a heartbeat (sent every second)
    #[arg(long, value_name = "DURATION", default_value = "45s", value_parser = parse_duration)]
    silence: Duration,
}

/// How guests are run whose results are remembered.
#[derive(Clone, clap::Args)]
pub(super) struct HowRemembered {
    #[command(flatten)]
    how: How,
    /// Use recordings named SCENARIO.VARIANT.KERNEL.flr from this directory instead of running
    #[arg(long, value_name = "DIR")]
    recordings: Option<PathBuf>,
    /// Start no runs: use only the recordings of --recordings
    #[arg(long, requires = "recordings")]
    no_run: bool,
}

/// How a guest is to be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum AccelChoice {
    /// KVM if it works, else emulation
    #[default]
    Auto,
    /// KVM
    Kvm,
    /// Emulation (QEMU TCG)
    Tcg,
}

/// Where runs are made.
pub(super) struct Bench<'a> {
    console: &'a Console,
    interrupt: Interrupt,
    how: How,
    cache: Cache,
    program: PathBuf,
    accel: Option<Accel>,
    recordings: Option<PathBuf>,
    no_run: bool,
}

/// One variant of a scenario on one kernel.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    /// The variant.
    pub(super) scenario: &'a Scenario,
    /// Its name.
    pub(super) variant: &'a str,
    /// The kernel.
    pub(super) kernel: &'a Kernel,
}

impl Trial<'_> {
    /// What its recording is called in a directory of recordings.
    fn file_stem(&self, repeat: u32) -> String {
        let repeat = if repeat == 0 { String::new() } else { format!(".{repeat}") };
        format!("{}.{}.{}{repeat}", self.scenario.name, self.variant, self.kernel.version)
    }

    /// The figures a run of it has, from its recording.
    fn report(&self, recording: &Path, took: Option<Took>, saved: Option<&Path>) -> Result<RunReport, CliError> {
        let expect = self.scenario.expect.on(self.kernel.version);
        let seen = read_run(recording, &expect)?;
        let (figures, Report { findings, plan, .. }) = (seen.figures(), seen.diagnose());
        Ok(RunReport {
            schema: SCHEMA,
            executor: "lab",
            scenario: self.scenario.name.clone(),
            variant: self.variant.to_owned(),
            kernel: self.kernel.release.clone(),
            kernel_version: self.kernel.version,
            samples: seen.samples(),
            seconds: took.map_or(0.0, |took| took.total.as_secs_f64()),
            first_sample_seconds: took.and_then(|took| took.first_sample).map(|time| time.as_secs_f64()),
            beside_seconds: took.and_then(|took| Some((took.total.as_secs_f64() - self.lasts(&seen)?).max(0.0))),
            not_as_expected: misses(&expect, &seen.window, &figures, &findings),
            has_expectations: expect != Expect::default(),
            figures,
            findings,
            plan,
            simplified: Vec::new(),
            recording: saved.filter(|path| !is_standard(path)).map(|path| path.display().to_string()),
        })
    }

    /// Returns the length of the workload in seconds; the scenario's `duration` if the end is not recorded.
    fn lasts(&self, seen: &Run) -> Option<f64> {
        let said = || self.scenario.workload.duration.map(|length| Nanos(length.nanos()));
        workload_length(&seen.window).or_else(said).map(|length| Duration::from_nanos(length.0).as_secs_f64())
    }
}

/// How long a run took.
#[derive(Clone, Copy, Debug)]
struct Took {
    /// All of it.
    total: Duration,
    /// From the machine's start to the first sample.
    first_sample: Option<Duration>,
}

/// Reads the recording of a run of which something is expected, from the start of its workload. One sample is not a run.
pub(super) fn read_run(recording: &Path, expect: &Expect) -> Result<Run, CliError> {
    let mut run = Run::expecting(expect).of_workload();
    Input::open(recording)?.each(|record| {
        let Ok(()) = run.record(&record);
        Ok(true)
    })?;
    match run.samples() {
        0 | 1 => {
            Err(CliError::usage(format!("{} contains fewer than two samples; nothing to judge", shown(recording))))
        }
        _ => Ok(run),
    }
}

impl<'a> Bench<'a> {
    /// Opens the cache and finds the guest's program.
    pub(super) fn open(console: &'a Console, how: &How) -> Result<Bench<'a>, CliError> {
        let interrupt = Interrupt::watch()?;
        let cache = Cache::of_user().map_err(CliError::lab_unavailable)?;
        let program = match &how.guests.guest_program {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(CliError::lab_unavailable)?,
        };
        Ok(Bench { console, interrupt, how: how.clone(), cache, program, accel: None, recordings: None, no_run: false })
    }

    /// The same for runs that are remembered.
    pub(super) fn remembering(console: &'a Console, how: &HowRemembered) -> Result<Bench<'a>, CliError> {
        Ok(Bench { recordings: how.recordings.clone(), no_run: how.no_run, ..Bench::open(console, &how.how)? })
    }

    /// Whether a signal asked to end.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.is_asked()
    }

    /// Finds a kernel, and fetches it where it must.
    pub(super) fn kernel(&self, wanted: &str) -> Result<Kernel, CliError> {
        find(self.console, &self.cache, wanted, &self.interrupt)
    }

    /// Kernels that are in the cache.
    pub(super) fn cached(&self) -> Result<Vec<Kernel>, CliError> {
        cached(&self.cache).map_err(CliError::from)
    }

    /// Runs a trial; the recording is kept in `save`.
    pub(super) fn run(&mut self, trial: Trial<'_>, save: Option<(&Path, File)>) -> Result<RunReport, CliError> {
        let accel = self.accel(trial.kernel)?;
        let (path, file) = save.map_or((None, None), |(path, file)| (Some(path), Some(file)));
        let (outcome, took) = self.execute(&self.order(trial, accel), path, file)?;
        trial.report(&outcome.recording, Some(took), path)
    }

    /// Returns the result of a trial from an earlier run, or runs it now. `repeat` distinguishes repeats.
    pub(super) fn remembered(&mut self, trial: Trial<'_>, repeat: u32) -> Result<RunReport, CliError> {
        if let Some(kept) = self.kept(trial, repeat) {
            return trial.report(&kept, None, Some(&kept));
        }
        if self.no_run {
            return Err(CliError::lab_unavailable("no recording found, and --no-run is set"));
        }
        let accel = self.accel(trial.kernel)?;
        let order = self.order(trial, accel);
        let results = Results::of(&self.cache, &self.program).map_err(CliError::lab_unavailable)?;
        let place = results.place(&order, repeat).map_err(CliError::bug)?;
        if place.exists() {
            return trial.report(&place, None, Some(&place));
        }
        let (outcome, took) = self.execute(&order, None, None)?;
        results.keep(&outcome.recording, &place).map_err(CliError::lab_unavailable)?;
        trial.report(&place, Some(took), Some(&place))
    }

    /// Whether a trial is to be had: run, or in the directory of recordings where nothing may be run.
    pub(super) fn has(&self, trial: Trial<'_>) -> bool {
        !self.no_run || self.kept(trial, 0).is_some()
    }

    fn kept(&self, trial: Trial<'_>, repeat: u32) -> Option<PathBuf> {
        let dir = self.recordings.as_ref()?;
        Some(dir.join(format!("{}.flr", trial.file_stem(repeat)))).filter(|kept| kept.exists())
    }

    fn order<'b>(&'b self, trial: Trial<'b>, accel: Accel) -> Order<'b> {
        Order {
            scenario: trial.scenario,
            variant: trial.variant,
            kernel: trial.kernel,
            program: &self.program,
            accel,
            trace: self.how.trace || trial.scenario.expect.has_figure(THROTTLED),
            every: Nanos(u64::try_from(self.how.every.as_nanos()).unwrap_or(u64::MAX)),
            patience: Patience { total: self.how.timeout, silence: self.how.guests.silence },
        }
    }

    /// How guests are run, found out once.
    fn accel(&mut self, kernel: &Kernel) -> Result<Accel, CliError> {
        if let Some(accel) = self.accel {
            return Ok(accel);
        }
        let accel = match self.how.guests.accel {
            AccelChoice::Kvm => Accel::Kvm,
            AccelChoice::Tcg => Accel::Tcg,
            AccelChoice::Auto => {
                let found =
                    Acceleration::of_this_host(&self.cache, &kernel.image).map_err(CliError::lab_unavailable)?;
                if let Some(note) = &found.note {
                    self.console.note(note);
                }
                found.accel
            }
        };
        Ok(*self.accel.insert(accel))
    }

    /// Builds a trial's machine for a console session; `tell` receives the guest's messages.
    pub(super) fn shell(
        &mut self,
        trial: Trial<'_>,
        session: Session,
        tell: impl FnMut(&Status),
        is_left: impl Fn() -> bool,
    ) -> Result<(), CliError> {
        let accel = self.accel(trial.kernel)?;
        let order = self.order(trial, accel);
        let is_asked = || is_left() || self.interrupt.is_asked();
        let outcome = shell(&self.cache, &order, session, tell, is_asked)?;
        tell_console(self.console, &outcome.console);
        match outcome.ended {
            Ended::Interrupted if is_left() => Ok(()),
            _ => ended(&outcome, "being looked at", None),
        }
    }

    /// One run, from start to a good end; every other end is an error.
    fn execute(&self, order: &Order<'_>, path: Option<&Path>, file: Option<File>) -> Result<(Outcome, Took), CliError> {
        let mut progress = self.console.progress();
        let mut view = Live::of(order);
        let started = Instant::now();
        let outcome = run(
            &self.cache,
            order,
            |status| {
                view.take(status);
                progress.tell(|| view.line());
            },
            || self.interrupt.is_asked(),
        )?;
        drop(progress);
        if !outcome.sandbox {
            self.console.note("QEMU ran without its sandbox: this one was built without seccomp");
        }
        if let Some(file) = file {
            keep(&outcome.recording, file, path)?;
        }
        tell_console(self.console, &outcome.console);
        ended(&outcome, view.stage(), path)?;
        let took = Took { total: started.elapsed(), first_sample: outcome.first_sample };
        Ok((outcome, took))
    }
}

/// Reads the scenario and picks the variant: the one wanted, that called incident, or the only one.
pub(in crate::commands) fn read_scenario(path: &Path, wanted: Option<&str>) -> Result<(String, Scenario), CliError> {
    let shown = shown(path);
    let mut variants = read_file(path)?.variants;
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

/// Reads a scenario file with all its variants.
pub(in crate::commands) fn read_file(path: &Path) -> Result<ScenarioFile, CliError> {
    crate::commands::scenario::load(path)
}

fn keep(recording: &Path, mut file: File, path: Option<&Path>) -> Result<(), CliError> {
    let target = path.map_or(String::new(), called);
    let copied = File::open(recording).and_then(|mut from| std::io::copy(&mut from, &mut file));
    copied.map(drop).map_err(|error| CliError::write(&target, &error))
}

/// What the guest's kernel complained of.
fn tell_console(console: &Console, guest: &GuestConsole) {
    for (what, lines) in [
        ("killed a process for lack of memory", &guest.oom_kills),
        ("hung", &guest.hung_tasks),
        ("warned of", &guest.warnings),
    ] {
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
            None => format!("the guest died; QEMU ended with {status}: {says}"),
        },
        Ended::Silent { patience } => {
            format!("the guest ({stage}) sent nothing for {} s and was stopped", patience.as_secs())
        }
        Ended::TooLong { patience } => {
            format!("the run took more than {} s and was stopped while {stage}", patience.as_secs())
        }
        Ended::HostDiskFull { path } => {
            format!("the disk of this host is full at {}; the run was stopped", path.display())
        }
        Ended::Flooded { what, limit_bytes } => {
            format!("the guest sent more than {} MiB as {what}; the run was stopped", limit_bytes >> 20)
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
        error = error.hint(format!("the recording up to then is in {}", called(save)));
    }
    Err(error)
}
