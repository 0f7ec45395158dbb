// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab advise SCENARIO… --kernels …`: does what `doctor` prints help? Runs a scenario on a real kernel, makes the
//! changes that `doctor` prints for its recording, runs it again, and holds the result against the twin's prediction from
//! the first recording alone. Runs are remembered, as those of `lab matrix` are.

use super::execute::{Bench, HowRemembered, Trial, read_file, read_run};
use super::matrix::TableFormat;
use crate::commands::doctor::read as diagnosed;
use crate::console::Console;
use crate::error::CliError;
use crate::exit::Exit;
use crate::twins::{answer, study, try_plan_of_file};
use floodline_analysis::prediction::{PEAK, Setting};
use floodline_analysis::run::RunReport;
use floodline_record::window::Window;
use floodline_scenario::Scenario;
use floodline_twin::backtest::Value;
use floodline_twin::felt;
use floodline_twin::predict::Question;
use floodline_twin::printed::{Printed, Said, printed};
use floodline_view::advised::{self as view, Advised, Row, Verdict, verdict};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Make the changes that doctor prints for a scenario, run it again and compare with the prediction
#[derive(clap::Args)]
#[command(
    after_help = "Each scenario runs twice on each kernel: as it is, and with the changes that doctor prints for \
        the first recording. The prediction comes from that recording alone. Results are cached by the content of \
        scenario, kernel and program.\n\n\
        Exit code 1 if a change made something worse, 69 if no run was possible.\n\n\
        Examples:\n  \
        floodline lab advise scenarios/dirty-cliff.toml --kernels 6.1,6.12\n  \
        floodline lab advise scenarios/*.toml --kernels 6.12 --format json"
)]
pub(super) struct Advise {
    /// Scenario files
    #[arg(required = true)]
    scenarios: Vec<PathBuf>,
    /// Kernels, separated by commas
    #[arg(long, required = true, value_delimiter = ',', value_name = "KERNELS")]
    kernels: Vec<String>,
    /// Variants to run; a scenario without such a variant skips it [default: incident, or all but remedy]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    variants: Vec<String>,
    /// Also make changes that doctor withholds after their trial
    #[arg(long)]
    with_withheld: bool,
    #[command(flatten)]
    how: HowRemembered,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
}

impl Advise {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        let files = self.scenarios.iter().map(|path| read_file(path)).collect::<Result<Vec<_>, _>>()?;
        let mut rows = Vec::new();
        {
            let mut bench = Bench::remembering(console, &self.how)?;
            let kernels = self.kernels.iter().map(|wanted| bench.kernel(wanted)).collect::<Result<Vec<_>, _>>()?;
            for file in &files {
                for (variant, scenario) in &file.variants {
                    if !self.is_asked(variant, file.variants.contains_key("incident")) {
                        continue;
                    }
                    for kernel in &kernels {
                        let trial = Trial { scenario, variant, kernel };
                        if !bench.has(trial) {
                            continue;
                        }
                        let row = one(&mut bench, trial, self.with_withheld);
                        if bench.is_interrupted() {
                            return Err(
                                CliError::lab_unavailable("interrupted").hint("run the same command again to continue")
                            );
                        }
                        rows.push(row.unwrap_or_else(|error| failed(trial, &error)));
                    }
                }
            }
        }
        console.print(&match self.format {
            TableFormat::Text => view::text(&rows),
            TableFormat::Json => view::json(&rows).map_err(CliError::bug)?,
            TableFormat::Markdown => view::markdown(&rows),
        })?;
        let has_run = |row: &Advised| !row.figures.is_empty();
        if let Some(failed) = rows.first().filter(|_| !rows.iter().any(has_run)) {
            let why = failed.note.clone().unwrap_or_default();
            return Err(CliError::lab_unavailable(format!("no run was possible; the first: {why}")));
        }
        let is_worse = rows.iter().any(|row| row.verdict == Verdict::Worse);
        Ok(if is_worse { Exit::Findings } else { Exit::Done })
    }

    fn is_asked(&self, variant: &str, has_incident: bool) -> bool {
        match (self.variants.is_empty(), has_incident) {
            (false, _) => self.variants.iter().any(|asked| asked == variant),
            (true, true) => variant == "incident",
            (true, false) => variant != "remedy",
        }
    }
}

/// What the figures of people are in a recording of the lab, from the start of its workload.
fn felt_in(trial: Trial<'_>, recording: &Path) -> Result<BTreeMap<String, Value>, CliError> {
    Ok(felt::felt(&read_run(recording, &trial.scenario.expect.on(trial.kernel.version))?.window))
}

fn found(report: &RunReport) -> Vec<String> {
    use floodline_analysis::report::Severity;
    let counts = report.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
    counts.map(|finding| finding.rule.to_owned()).collect()
}

fn failed(trial: Trial<'_>, error: &CliError) -> Advised {
    Advised { note: Some(format!("Not run: {error}")), verdict: Verdict::NotRun, ..nothing(trial) }
}

fn nothing(trial: Trial<'_>) -> Advised {
    Advised {
        scenario: trial.scenario.name.clone(),
        variant: trial.variant.to_owned(),
        kernel: trial.kernel.version.to_string(),
        found_before: Vec::new(),
        changes: Vec::new(),
        said: Said::Nothing.word(),
        not_taken: Vec::new(),
        found_after: Vec::new(),
        figures: Vec::new(),
        verdict: Verdict::NoPlan,
        note: None,
    }
}

fn one(bench: &mut Bench<'_>, trial: Trial<'_>, with_withheld: bool) -> Result<Advised, CliError> {
    let before = bench.remembered(trial, 0)?;
    let recording = before.recording.clone().map(PathBuf::from).ok_or_else(|| CliError::bug("no recording"))?;
    let seen = read_run(&recording, &trial.scenario.expect.on(trial.kernel.version))?;
    let untried = diagnosed(&recording, Vec::new())?;
    let mut report = untried.clone();
    try_plan_of_file(&mut report, &recording);
    let Printed { mut settings, others, said } = printed(report.plan.as_ref(), untried.plan.as_ref());
    // A kernel is not what is under test here, and no person makes a change that is withheld.
    settings.retain(|setting| setting.key != "kernel" && (with_withheld || !said.is_withheld()));
    let told = |setting: &Setting| format!("{}={}", setting.key, setting.value);
    let mut advised = Advised {
        found_before: found(&before),
        changes: settings.iter().map(told).collect(),
        said: said.word(),
        not_taken: others,
        ..nothing(trial)
    };
    let figures = felt_in(trial, &recording)?;
    let predicted = predict(&recording, &settings);
    if let Err(error) = &predicted {
        advised.note = Some(format!("No prediction: {error}"));
    }
    let after = match changed(trial, &seen.window, &settings) {
        Ok(None) => None,
        Ok(Some(scenario)) => {
            let variant = format!("{}.advised", trial.variant);
            let again = Trial { scenario: &scenario, variant: &variant, ..trial };
            let report = bench.remembered(again, 0)?;
            let recording = report.recording.clone().map(PathBuf::from).ok_or_else(|| CliError::bug("no recording"))?;
            advised.found_after = found(&report);
            Some(felt_in(again, &recording)?)
        }
        Err(why) => {
            advised.note = Some(why);
            advised.verdict = Verdict::NotRun;
            None
        }
    };
    for name in felt::FELT {
        let Some(value) = figures.get(name) else { continue };
        advised.figures.push(Row {
            name: name.to_owned(),
            unit: value.unit,
            before: value.value,
            after: after.as_ref().and_then(|after| after.get(name)).map(|value| value.value),
            predicted: predicted.as_ref().ok().and_then(|predicted| predicted.get(name)).copied(),
        });
    }
    if after.is_some() {
        let harm: Vec<Row> = advised.figures.iter().filter(|row| row.name != PEAK).cloned().collect();
        advised.verdict = verdict(&harm, !advised.found_after.is_empty());
    }
    Ok(advised)
}

/// The scenario after the change; `None` without one.
fn changed(trial: Trial<'_>, window: &Window, settings: &[Setting]) -> Result<Option<Scenario>, String> {
    if settings.is_empty() {
        return Ok(None);
    }
    let changed = felt::changed(trial.scenario, trial.kernel.version, window, settings);
    changed.map(Some).map_err(|error| format!("Not run: {error}"))
}

/// The figures after the change, as the twin of the recording predicts them.
fn predict(recording: &Path, settings: &[Setting]) -> Result<BTreeMap<String, f64>, CliError> {
    if settings.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (studied, _) = study(recording, &|_| true)?;
    let question = Question::new(&studied.twin, &studied.recorded.window, settings)
        .map_err(|error| CliError::usage(&error).hint(error.hint.clone()))?;
    let prediction = answer(&studied, &question, true, &|_| true, None)?;
    let rows = prediction.map(|prediction| prediction.rows).unwrap_or_default();
    Ok(rows.into_iter().filter(|row| row.doubt.is_none()).map(|row| (row.figure, row.then)).collect())
}
