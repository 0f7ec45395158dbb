// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline predict FILE --set KEY=VALUE`: what a change will do on the host of a recording. Wiring only: the twin, its
//! runs and the conclusion are `floodline_twin`. Nothing of this host is read or changed.

use super::Run;
use super::explain::named;
use crate::asked::planned;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::twins::{Threads, answer, read, study};
use floodline_analysis::diagnose::diagnose;
use floodline_analysis::prediction::{Prediction, Setting};
use floodline_record::version::KernelVersion;
use floodline_twin::changed::{NotChanged, of_steps, setting};
use floodline_twin::predict::Question;
use floodline_twin::trial::{add_findings, as_printed};
use floodline_twin::{Options, by_kernel};
use std::path::PathBuf;

/// Predict what a change will do on the host of a recording
#[derive(clap::Parser)]
#[command(
    name = "predict",
    after_help = "The recording is turned into a twin: a scenario of this host and its load. The twin runs on a model of \
        the kernel, once as it is and once changed. The unchanged run is compared with the recording. A figure that \
        misses by more than 25 % is not predicted.\n\n\
        Keys: vm.dirty_bytes and the other vm settings, machine.memory, cgroup=v2, bdi/8:0/max_ratio, \
        queue/sda/wbt_lat_usec, cgroup/PATH/memory.max, mount/PATH/type, mount/PATH/options, loop/loop0/direct_io, \
        journald/Storage, and every key that floodline twin prints.\n\n\
        Examples:\n  \
        floodline predict host.flr --set vm.dirty_background_bytes=64M\n  \
        floodline predict host.flr --set cgroup=v2 --kernel 6.12\n  \
        floodline predict host.flr --finding starved-dirty-budget"
)]
pub(crate) struct Predict {
    /// Recording of the host, made with floodline record
    file: PathBuf,
    /// Setting to change; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Kernel version to move to; a series such as 6.12 means its newest known release
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,
    /// Make the changes that doctor prints for this rule; may be repeated
    #[arg(long = "finding", value_name = "RULE")]
    findings: Vec<String>,
    /// Also print every figure, the back-test and what the twin cannot know
    #[arg(long)]
    details: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl From<NotChanged> for CliError {
    fn from(error: NotChanged) -> CliError {
        CliError::usage(&error).hint(&error.hint)
    }
}

impl Run for Predict {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        if self.settings.is_empty() && self.kernel.is_none() && self.findings.is_empty() {
            return Err(CliError::usage("no change is given")
                .hint("e.g. --set vm.dirty_background_bytes=64M, --kernel 6.12 or --finding dirty-cliff"));
        }
        let rules =
            self.findings.iter().map(|name| named(name).map(|rule| rule.name)).collect::<Result<Vec<_>, _>>()?;
        let mut settings: Vec<Setting> =
            self.settings.iter().map(|text| setting(text)).collect::<Result<_, NotChanged>>()?;
        settings.extend(self.kernel.iter().map(|version| Setting::new("kernel", version)));
        // An invalid version is refused with the other settings.
        let kernels = settings.iter().filter(|one| one.key == "kernel" && one.value.parse::<KernelVersion>().is_ok());
        for one in kernels {
            planned(&one.value, "it is simulated", console)?;
        }
        let interrupt = Interrupt::watch()?;
        let go_on = |_| !interrupt.is_asked();
        let (studied, report) = match study(&self.file, &go_on) {
            Ok(studied) => studied,
            Err(error) => {
                let Some(prediction) = self.by_table(settings, &rules)? else { return Err(error) };
                self.print(console, &prediction, &[])?;
                return Ok(Exit::Done);
            }
        };
        let unknown = match (rules.is_empty(), report) {
            (true, _) => Vec::new(),
            (false, Some(report)) => {
                // What has no change is refused before the plan is tried.
                add_findings(&studied.twin, &report, &rules, &mut Vec::new())?;
                let report = as_printed(&report, &studied, &go_on, &mut Threads { progress: None });
                add_findings(&studied.twin, &report, &rules, &mut settings)?
            }
            (false, None) => {
                return Err(CliError::usage(
                    "--finding reads the recording twice, and standard input can be read once",
                )
                .hint("save it to a file, or give the change with --set KEY=VALUE"));
            }
        };
        let file = self.file.to_string_lossy();
        let refused = |error: NotChanged| match file.as_ref() {
            "-" => error.into(),
            file => CliError::usage(&error).hint(error.hint_for(file)),
        };
        let question = Question::new(&studied.twin, &studied.recorded.window, &settings).map_err(refused)?;
        let mut progress = console.progress();
        let answered = answer(&studied, &question, false, &go_on, Some(&mut progress))?;
        drop(progress);
        if interrupt.is_asked() {
            return Err(CliError::cannot_observe("interrupted before all runs had ended, so nothing is predicted"));
        }
        let mut prediction = answered.ok_or_else(|| CliError::bug("a prediction without a run"))?;
        prediction.notes.extend(unknown.iter().map(|step| format!("Not simulated: {step}")));
        self.print(console, &prediction, &studied.twin.unknown)?;
        Ok(Exit::Done)
    }
}

impl Predict {
    fn print(&self, console: &mut Console, prediction: &Prediction, unknown: &[String]) -> Result<(), CliError> {
        console.print(&match self.format {
            Format::Text => floodline_view::predict::text(prediction, unknown, console.width(), self.details),
            Format::Json => floodline_view::predict::json(prediction, unknown).map_err(CliError::bug)?,
        })
    }

    /// What the table of kernels says of a recording that has no twin; `None` if it says nothing.
    fn by_table(&self, mut settings: Vec<Setting>, rules: &[&str]) -> Result<Option<Prediction>, CliError> {
        if self.file.as_os_str() == "-" {
            return Ok(None);
        }
        let Ok(recorded) = read(&self.file) else { return Ok(None) };
        let Err(error) = floodline_twin::of(&recorded, &Options::default()) else { return Ok(None) };
        if !rules.is_empty() {
            let report = diagnose(&recorded.window, None);
            let findings = report.findings.iter().filter(|finding| rules.contains(&finding.rule));
            settings.extend(findings.flat_map(|finding| of_steps(&finding.plan).0));
        }
        Ok(by_kernel::answer(&recorded.window, &settings, &error)?)
    }
}
