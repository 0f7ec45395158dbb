// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline simulate SCENARIO`: one variant of a scenario on the model of the kernel. The result is a
//! recording like that of any host, the figures of its workload, what `doctor` says of it, and whether all
//! that is as the scenario expects. Nothing of this host is read; the same seed prints the same.

use super::Run;
use super::lab::execute::read_scenario;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::observe::{parse_duration, parse_interval};
use crate::output::{Existing, create};
use floodline_core::compare::{Reading, Side, compare};
use floodline_core::human;
use floodline_core::kernel::KernelVersion;
use floodline_core::record::{Record, Sink};
use floodline_core::recording::{Encoder, Header};
use floodline_core::run::{self, RunReport, SCHEMA, misses};
use floodline_core::scenario::{ByteSize, Scenario, SysctlValue, Time};
use floodline_core::units::Nanos;
use floodline_sim::{Options, SimError, simulate};
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Run one variant of a scenario on a model of the kernel's writeback
#[derive(clap::Parser)]
#[command(
    name = "simulate",
    after_help = "Exit code 1 when something is not as the scenario expects.\n\n\
        Examples:\n  \
        floodline simulate scenarios/dirty-cliff.toml\n  \
        floodline simulate scenarios/dirty-cliff.toml --set vm.dirty_background_bytes=32MiB --set vm.dirty_bytes=128MiB\n  \
        floodline simulate scenarios/starved-budget.toml --kernel 6.1 --vs remedy --save starved.flr"
)]
pub(crate) struct Simulate {
    /// Scenario file
    scenario: PathBuf,
    /// Variant to run; without it the one called incident, or the only one
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Another variant, to be run as well and compared
    #[arg(long, value_name = "NAME", conflicts_with = "save")]
    vs: Option<String>,
    /// Change a setting of the machine, e.g. vm.dirty_ratio=10
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// The kernel whose behaviour is modelled
    #[arg(long, value_name = "VERSION", default_value = "6.12")]
    kernel: String,
    /// How many copies of what has copies: of its cgroups, else of its tasks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    instances: Option<u32>,
    /// How long the workload lasts
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    lasting: Option<Duration>,
    /// Seed of everything random; without it the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Time between two samples
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = parse_interval)]
    every: Duration,
    /// Keep the recording in this file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Replace the file of --save where it exists
    #[arg(long, requires = "save")]
    force: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Run for Simulate {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let interrupt = Interrupt::watch()?;
        let kernel: KernelVersion = self.kernel.parse().map_err(|_| {
            CliError::usage(format!("{:?} is no kernel version", self.kernel)).hint("e.g. 6.12 or 5.10.223")
        })?;
        let (variant, scenario) = self.prepare(self.variant.as_deref())?;
        let file = self.save.as_ref().map(|path| create(path, Existing::by_force(self.force))).transpose()?;
        console.note(&format!("seed {}, kernel {kernel}", scenario.workload.seed));
        let (report, one) = self.simulate(console, &interrupt, &scenario, &variant, kernel, file)?;
        let Some(vs) = &self.vs else {
            let is_as_expected = report.not_as_expected.is_empty();
            let reports = [report];
            console.print(&match self.format {
                Format::Text => floodline_view::run::text(&reports),
                Format::Json => floodline_view::run::json(&reports).map_err(CliError::bug)?,
            })?;
            return Ok(if is_as_expected { Exit::Done } else { Exit::Findings });
        };
        let (other_variant, other) = self.prepare(Some(vs))?;
        let (_, two) = self.simulate(console, &interrupt, &other, &other_variant, kernel, None)?;
        let side = |label: String, run: &run::Run| Side { label, readings: vec![Reading::of(&run.window)] };
        let comparison = compare(&[side(variant, &one), side(other_variant, &two)]);
        let comparison = comparison.ok_or_else(|| CliError::bug("two runs are not two sides"))?;
        console.print(&match self.format {
            Format::Text => floodline_view::compare::text(&comparison, console.width()),
            Format::Json => floodline_view::compare::json(&comparison).map_err(CliError::bug)?,
        })?;
        Ok(Exit::Done)
    }
}

impl Simulate {
    /// The scenario with what the command line changes of it.
    fn prepare(&self, variant: Option<&str>) -> Result<(String, Scenario), CliError> {
        let (variant, mut scenario) = read_scenario(&self.scenario, variant)?;
        for text in &self.settings {
            set(&mut scenario, text)?;
        }
        if let Some(seed) = self.seed {
            scenario.workload.seed = seed;
        }
        if let Some(lasting) = self.lasting {
            scenario.workload.duration = Some(Time(nanos(lasting)));
        }
        if let Some(instances) = self.instances {
            copies(&mut scenario, instances)?;
        }
        Ok((variant, scenario))
    }

    fn simulate(
        &self,
        console: &Console,
        interrupt: &Interrupt,
        scenario: &Scenario,
        variant: &str,
        kernel: KernelVersion,
        file: Option<File>,
    ) -> Result<(RunReport, run::Run), CliError> {
        let options =
            Options { variant: variant.to_owned(), kernel, every: nanos(self.every), checks_every_event: false };
        let target = self.save.as_ref().map_or(String::new(), |path| path.display().to_string());
        let failed = |error: &dyn std::fmt::Display| SimError::Sink(format!("{target}: {error}"));
        let header = Header::new(Some(options.every));
        let mut encoder = file.map(|file| Encoder::new(file, header)).transpose().map_err(CliError::bug)?;
        let expect = scenario.expect.on(kernel);
        let mut seen = run::Run::expecting(&expect);
        let mut progress = console.progress();
        let started = Instant::now();
        let take = |record: Record| {
            let Ok(()) = seen.record(&record);
            match &mut encoder {
                Some(encoder) => encoder.record(&record).map_err(|error| failed(&error)),
                None => Ok(()),
            }
        };
        let outcome = simulate(scenario, &options, take, |at| {
            progress.tell(|| {
                let speed = at.now.as_secs_f64() / started.elapsed().as_secs_f64().max(1e-3);
                let dirty = human::bytes(at.nr_dirty as f64 * 4096.0);
                format!("{variant}: {:.0} s simulated, {speed:.0} × real time, dirty {dirty}", at.now.as_secs_f64())
            });
            !interrupt.is_asked()
        });
        drop(progress);
        if let Some(encoder) = encoder {
            encoder.finish().map_err(|error| CliError::usage(format!("cannot write {target}: {error}")))?;
        }
        let summary = outcome.map_err(refused)?;
        if summary.is_interrupted {
            console.note(&format!("interrupted after {:.0} simulated s", summary.simulated.as_secs_f64()));
        }
        let (figures, findings) = (seen.figures(), seen.diagnose().findings);
        let report = RunReport {
            schema: SCHEMA,
            executor: "simulator",
            scenario: scenario.name.clone(),
            variant: variant.to_owned(),
            kernel: format!("{kernel}-simulated"),
            kernel_version: kernel,
            samples: summary.samples,
            // Simulated seconds: two runs of one seed print the same bytes.
            seconds: summary.simulated.as_secs_f64(),
            not_as_expected: misses(&expect, &figures, &findings),
            figures,
            findings,
            recording: self.save.as_ref().map(|path| path.display().to_string()),
        };
        Ok((report, seen))
    }
}

fn refused(error: SimError) -> CliError {
    let hint = matches!(error, SimError::NotHonoured(_));
    let error = CliError::usage(error);
    if hint { error.hint("run it on a real kernel: floodline lab run") } else { error }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Pairs of settings of which the kernel keeps the one written last.
const PAIRS: [(&str, &str); 2] =
    [("vm.dirty_ratio", "vm.dirty_bytes"), ("vm.dirty_background_ratio", "vm.dirty_background_bytes")];

/// Changes one setting, `NAME=VALUE`.
fn set(scenario: &mut Scenario, text: &str) -> Result<(), CliError> {
    let wrong =
        || CliError::usage(format!("{text:?} is no setting")).hint("e.g. vm.dirty_ratio=10 or vm.dirty_bytes=64MiB");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let value = match value.parse::<i64>() {
        Ok(number) => number,
        Err(_) if name.ends_with("_bytes") => {
            let size: ByteSize = value.parse().map_err(|_| wrong())?;
            i64::try_from(size.bytes()).map_err(|_| wrong())?
        }
        Err(_) => return Err(wrong()),
    };
    let settings = &mut scenario.machine.sysctl.0;
    for (one, other) in PAIRS {
        if name == one {
            settings.remove(other);
        } else if name == other {
            settings.remove(one);
        }
    }
    settings.insert(name.to_owned(), SysctlValue::Number(value));
    Ok(())
}

/// Changes how many copies there are.
fn copies(scenario: &mut Scenario, instances: u32) -> Result<(), CliError> {
    let cgroups = scenario.machine.cgroups.values_mut().filter_map(|cgroup| cgroup.instances.as_mut());
    let mut changed = 0;
    for count in cgroups {
        *count = instances;
        changed += 1;
    }
    if changed == 0 {
        for count in scenario.workload.tasks.values_mut().filter_map(|task| task.instances.as_mut()) {
            *count = instances;
            changed += 1;
        }
    }
    if changed == 0 { Err(CliError::usage("nothing in the scenario has copies")) } else { Ok(()) }
}
