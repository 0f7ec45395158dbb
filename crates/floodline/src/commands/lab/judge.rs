// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab judge SCENARIO RECORDING`: holds a recording that was kept against what the scenario
//! expects of it, without running anything; and lists the budgets that were not the kernel's.

use super::execute::{read_run, read_scenario};
use super::run::exit;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use floodline_core::run::{RunReport, SCHEMA, misses};
use std::path::PathBuf;

/// Hold a kept recording against what its scenario expects
#[derive(clap::Args)]
#[command(after_help = "Exit code 1 when something is not as the scenario expects.\n\n\
        Examples:\n  \
        floodline lab judge scenarios/dirty-cliff.toml cliff.flr --variant remedy\n  \
        floodline lab judge scenarios/exact-budgets.toml budgets.flr --variant ratio --misses")]
pub(super) struct Judge {
    /// Scenario file
    scenario: PathBuf,
    /// Recording of a run of it
    recording: PathBuf,
    /// Variant that was run; without it the one called incident, or the only one
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Also list every budget that is not the kernel's, where the scenario asks for budgets
    #[arg(long)]
    misses: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Judge {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let (variant, scenario) = read_scenario(&self.scenario, self.variant.as_deref())?;
        // The kernel is in the recording, and what is expected depends on it.
        let first = read_run(&self.recording, &scenario.expect)?;
        let kernel = first.window.facts.as_ref().and_then(|facts| facts.kernel);
        let kernel = kernel.ok_or_else(|| CliError::usage("the recording does not say which kernel it is of"))?;
        let expect = scenario.expect.on(kernel);
        let seen = if expect == scenario.expect { first } else { read_run(&self.recording, &expect)? };
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
