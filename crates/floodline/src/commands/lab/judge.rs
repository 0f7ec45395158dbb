// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab judge SCENARIO RECORDING`: holds a recording that was kept against what the scenario
//! expects of it, without running anything; and lists the budgets that were not the kernel's.

use super::execute::{read_run, read_scenario};
use super::run::exit;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::{Input, shown};
use floodline_analysis::run::{RunReport, SCHEMA, misses};
use floodline_record::record::{Record, What};
use floodline_record::version::KernelVersion;
use std::path::{Path, PathBuf};

/// Check a saved recording against the expectations of its scenario
#[derive(clap::Args)]
#[command(after_help = "Exit code 1 if an expectation of the scenario was not met.\n\n\
        Examples:\n  \
        floodline lab judge scenarios/dirty-cliff.toml cliff.flr --variant remedy\n  \
        floodline lab judge scenarios/exact-budgets.toml budgets.flr \\\n    \
        --variant ratio --misses")]
pub(super) struct Judge {
    /// Scenario file
    scenario: PathBuf,
    /// Recording of a run of this scenario
    recording: PathBuf,
    /// Variant to check against [default: the recorded variant]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Also list every budget that differs from the kernel's, if the scenario expects budgets
    #[arg(long)]
    misses: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Judge {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let origin = Origin::of(&self.recording)?;
        let wanted = self.variant.as_deref().or(origin.run.as_ref().map(|(_, variant)| variant.as_str()));
        let (variant, scenario) = read_scenario(&self.scenario, wanted)?;
        if let Some((of, was)) = &origin.run {
            let recording = shown(&self.recording);
            if *of != scenario.name {
                return Err(CliError::usage(format!(
                    "{recording} is a recording of {of} ({was}), not of {}",
                    scenario.name
                )));
            }
            if *was != variant {
                console.note(&format!("{recording} is a recording of {was}, checked against {variant}"));
            }
        }
        let kernel = origin.kernel.ok_or_else(|| CliError::usage("the recording does not name its kernel"))?;
        let expect = scenario.expect.on(kernel);
        let seen = read_run(&self.recording, &expect)?;
        let (figures, report) = (seen.figures(), seen.diagnose());
        let report = RunReport {
            schema: SCHEMA,
            executor: "lab",
            scenario: scenario.name,
            variant,
            kernel: report.host.kernel,
            kernel_version: kernel,
            samples: seen.window.samples,
            seconds: seen.window.seconds(),
            first_sample_seconds: None,
            beside_seconds: None,
            not_as_expected: misses(&expect, &seen.window, &figures, &report.findings),
            figures,
            findings: report.findings,
            recording: Some(self.recording.display().to_string()),
        };
        let reports = [report];
        let mut text = match self.format {
            Format::Text => floodline_view::run::text(&reports, console.width()),
            Format::Json => floodline_view::run::json(&reports).map_err(CliError::bug)?,
        };
        if let (true, Format::Text, Some(judge)) = (self.misses, self.format, seen.judge()) {
            text.push_str(&floodline_view::run::budget_misses(judge.misses()));
        }
        console.print(&text)?;
        Ok(exit(&reports))
    }
}

/// Of what a recording is, by its own words: what is expected of a run depends on it.
struct Origin {
    kernel: Option<KernelVersion>,
    /// Scenario and variant.
    run: Option<(String, String)>,
}

impl Origin {
    /// Reads as far as the start of the workload. What the file lacks is told when it is read for good.
    fn of(recording: &Path) -> Result<Origin, CliError> {
        let mut origin = Origin { kernel: None, run: None };
        for record in Input::open(recording)?.quietly() {
            match record? {
                Record::Facts(facts) => origin.kernel = facts.kernel,
                Record::Event(event) => {
                    if let What::WorkloadStarted { scenario, variant } = event.what {
                        origin.run = Some((scenario.into(), variant.into()));
                        break;
                    }
                }
                _ => {}
            }
        }
        Ok(origin)
    }
}
