// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline-dev judge SCENARIO RECORDING`: holds a recording that was kept against what the scenario
//! expects of it, without running anything; and lists the budgets that were not the kernel's.

use crate::input::{each, scenario, shown};
use crate::{Answer, Failure, Format, note};
use floodline_analysis::budget::Miss;
use floodline_analysis::run::{Run, RunReport, SCHEMA, misses};
use floodline_record::record::{Record, Sink, What};
use floodline_record::version::KernelVersion;
use std::path::{Path, PathBuf};

/// Columns of the text.
const WIDTH: usize = 80;

/// Check a saved recording against the expectations of its scenario
#[derive(clap::Args)]
#[command(after_help = "Exit code 1 if an expectation of the scenario was not met.\n\n\
        Examples:\n  \
        floodline-dev judge scenarios/dirty-cliff.toml cliff.flr --variant remedy\n  \
        floodline-dev judge scenarios/exact-budgets.toml budgets.flr \\\n    \
        --variant ratio --misses")]
pub(crate) struct Judge {
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
    pub(crate) fn run(self) -> Result<Answer, Failure> {
        let recording = shown(&self.recording);
        let origin = Origin::of(&self.recording)?;
        let recorded = origin.run.as_ref().map(|(_, variant)| variant.as_str());
        let Some(variant) = self.variant.as_deref().or(recorded).map(str::to_owned) else {
            return Err(
                Failure::input(format!("{recording} does not name its variant")).hint("name one with --variant")
            );
        };
        let mut variants = scenario(&self.scenario)?.variants;
        let names = variants.keys().cloned().collect::<Vec<_>>().join(", ");
        let scenario = variants.remove(&variant).ok_or_else(|| {
            Failure::input(format!("{} has no variant {variant:?}", shown(&self.scenario)))
                .hint(format!("its variants: {names}"))
        })?;
        if let Some((of, was)) = &origin.run {
            if *of != scenario.name {
                return Err(Failure::input(format!(
                    "{recording} is a recording of {of} ({was}), not of {}",
                    scenario.name
                )));
            }
            if *was != variant {
                note(&format!("{recording} is a recording of {was}, checked against {variant}"));
            }
        }
        let kernel = origin.kernel.ok_or_else(|| Failure::input(format!("{recording} does not name its kernel")))?;
        let expect = scenario.expect.on(kernel);
        // As `lab run` judges: setups and tear-down do not count.
        let mut seen = Run::expecting(&expect).of_workload();
        each(&self.recording, |record| {
            let Ok(()) = seen.record(&record);
            true
        })?;
        if seen.samples() < 2 {
            return Err(Failure::input(format!("{recording} contains fewer than two samples; nothing to judge")));
        }
        let (figures, report) = (seen.figures(), seen.diagnose());
        let report = RunReport {
            schema: SCHEMA,
            executor: "lab",
            scenario: scenario.name,
            variant,
            kernel: report.host.kernel,
            kernel_version: kernel,
            samples: seen.samples(),
            seconds: seen.window.seconds(),
            first_sample_seconds: None,
            beside_seconds: None,
            not_as_expected: misses(&expect, &seen.window, &figures, &report.findings),
            has_expectations: true,
            figures,
            findings: report.findings,
            plan: report.plan,
            simplified: Vec::new(),
            recording: Some(self.recording.display().to_string()),
        };
        let is_as_expected = report.not_as_expected.is_empty();
        let reports = [report];
        let mut text = match self.format {
            Format::Text => floodline_view::run::text(&reports, WIDTH),
            Format::Json => floodline_view::run::json(&reports)?,
        };
        if let (true, Format::Text, Some(judge)) = (self.misses, self.format, seen.judge()) {
            text.push_str(&budget_misses(judge.misses()));
        }
        Ok(Answer { text, is_as_expected })
    }
}

/// Budgets that are not the kernel's, a line each.
fn budget_misses(misses: &[Miss]) -> String {
    let mut text = String::new();
    if !misses.is_empty() {
        text.push_str("\nNot the kernel's (pages):\n");
    }
    for Miss { at, row, printed, computed: (low, high) } in misses {
        let computed = if low == high { low.to_string() } else { format!("{low} to {high}") };
        text.push_str(&format!("  {:>9.3} s  {row}: kernel {printed}, computed {computed}\n", at.as_secs_f64()));
    }
    text
}

/// Of what a recording is, by its own words: what is expected of a run depends on it.
struct Origin {
    kernel: Option<KernelVersion>,
    /// Scenario and variant.
    run: Option<(String, String)>,
}

impl Origin {
    /// Reads as far as the start of the workload.
    fn of(recording: &Path) -> Result<Origin, Failure> {
        let mut origin = Origin { kernel: None, run: None };
        each(recording, |record| {
            match record {
                Record::Facts(facts) => origin.kernel = facts.kernel,
                Record::Event(event) => {
                    if let What::WorkloadStarted { scenario, variant } = event.what {
                        origin.run = Some((scenario.into(), variant.into()));
                    }
                }
                _ => {}
            }
            origin.run.is_none()
        })?;
        Ok(origin)
    }
}
