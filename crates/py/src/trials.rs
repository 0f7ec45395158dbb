// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions to the twin of a recording: back-test, prediction, advice. The answers are the program's JSON.

use crate::failure::Failure;
use crate::source::Source;
use crate::watch::{Control, Threads, spent, workers};
use floodline_analysis::diagnose::stretches::Stretches;
use floodline_analysis::prediction::{Prediction, Setting};
use floodline_analysis::report::Report;
use floodline_record::version::KernelVersion;
use floodline_twin::advise::Wanted;
use floodline_twin::backtest::test;
use floodline_twin::changed::of_steps;
use floodline_twin::predict::Question;
use floodline_twin::trial::{self, Kept, OneByOne, Patience, Studied};
use floodline_twin::{Options, Recorded, by_kernel, scenario_to_toml};
use floodline_view::{json, twin as view};

/// Diagnoses as `doctor` does: in stretches, and the plan tried on a twin.
pub(crate) fn diagnose(source: &Source, rules: Vec<&'static str>, control: &Control) -> Result<String, Failure> {
    let stretches = source.folded(control, Stretches::new(rules), Stretches::samples)?;
    let mut report = stretches.finish();
    try_plan(&mut report, source, control)?;
    Ok(json::doctor(&report)?)
}

/// Tries the plan of a report on the twin of its recording, where it has one.
pub(crate) fn try_plan(report: &mut Report, source: &Source, control: &Control) -> Result<(), Failure> {
    if report.plan.is_some() {
        let mut kept = Kept::of(report);
        source.each(control, |record| {
            kept.record(&record);
            Ok(kept.is_kept())
        })?;
        let patience = Patience::from(spent(), workers());
        let go_on = |events| !control.is_stopped() && patience.lasts(events, spent());
        trial::try_plan(report, Some(kept), &go_on, &mut threads(control));
    }
    control.check()
}

fn threads(control: &Control) -> Threads<'_> {
    Threads { control, before: 0 }
}

fn recorded(source: &Source, control: &Control) -> Result<Recorded, Failure> {
    source.folded(control, Recorded::default(), |recorded| recorded.window.samples)
}

/// The twin of the part of a recording that its report is about, and the report.
fn study(source: &Source, control: &Control) -> Result<(Studied, Report), Failure> {
    let report = source.folded(control, Stretches::new(Vec::new()), Stretches::samples)?.finish();
    let mut kept = Kept::of(&report).of_any_size();
    source.each(control, |record| {
        kept.record(&record);
        Ok(kept.is_kept())
    })?;
    let part = kept.finish().ok_or_else(|| Failure::bug("a part of a recording that is too long"))?;
    Ok((Studied::of_part(part, &|_| !control.is_stopped())?, report))
}

/// The twin: its scenario as TOML, and the JSON of its back-test.
pub(crate) fn twin(
    source: &Source,
    kernel: Option<KernelVersion>,
    control: &Control,
) -> Result<(String, String), Failure> {
    let recorded = recorded(source, control)?;
    let twin = floodline_twin::of(&recorded, &Options { kernel })
        .map_err(|error| Failure::from(error).within(&source.name))?;
    let tested = test(&recorded, &twin, &mut OneByOne);
    control.check()?;
    let toml = scenario_to_toml(&twin, &twin.scenario).map_err(|error| Failure::from(error).within(&source.name))?;
    Ok((view::json(&twin, &tested)?, toml))
}

/// What a change will do.
pub(crate) fn predict(
    source: &Source,
    mut settings: Vec<Setting>,
    findings: &[&'static str],
    control: &Control,
) -> Result<String, Failure> {
    if settings.is_empty() && findings.is_empty() {
        return Err(Failure::new("no change is given")
            .hint("e.g. recording.predict({\"vm.dirty_background_bytes\": \"64M\"}) or findings=[\"dirty-cliff\"]"));
    }
    for one in settings.iter().filter(|one| one.key == "kernel" && one.value.parse::<KernelVersion>().is_ok()) {
        crate::change::kernel(&one.value)?;
    }
    let (studied, report) = match study(source, control) {
        Ok(studied) => studied,
        Err(failure) => {
            let prediction = by_table(source, settings, findings, control)?.ok_or(failure)?;
            return Ok(floodline_view::predict::json(&prediction, &[])?);
        }
    };
    let go_on = |_| !control.is_stopped();
    let unknown = match findings.is_empty() {
        true => Vec::new(),
        false => {
            let report = trial::as_printed(&report, &studied, &go_on, &mut threads(control));
            trial::add_findings(&studied.twin, &report, findings, &mut settings)?
        }
    };
    let question = Question::new(&studied.twin, &studied.recorded.window, &settings)?;
    let answered = trial::answered(&studied, &question, false, &go_on, &mut threads(control));
    control.check()?;
    let mut prediction = answered?.1.ok_or_else(|| Failure::bug("a prediction without a run"))?;
    prediction.notes.extend(unknown.iter().map(|step| format!("Not simulated: {step}")));
    Ok(floodline_view::predict::json(&prediction, &studied.twin.unknown)?)
}

/// What the table of kernels says of a recording that has no twin; `None` if it says nothing.
fn by_table(
    source: &Source,
    mut settings: Vec<Setting>,
    findings: &[&'static str],
    control: &Control,
) -> Result<Option<Prediction>, Failure> {
    let recorded = recorded(source, control)?;
    let Err(error) = floodline_twin::of(&recorded, &Options::default()) else { return Ok(None) };
    if !findings.is_empty() {
        let report = floodline_analysis::diagnose::diagnose(&recorded.window, None);
        let named = report.findings.iter().filter(|finding| findings.contains(&finding.rule));
        settings.extend(named.flat_map(|finding| of_steps(&finding.plan).0));
    }
    Ok(by_kernel::answer(&recorded.window, &settings, &error)?)
}

/// The settings that serve the host best.
pub(crate) fn advise(source: &Source, wanted: Wanted, control: &Control) -> Result<String, Failure> {
    let (studied, report) = study(source, control)?;
    let go_on = |_| !control.is_stopped();
    let advice = trial::advise(&studied, Some(&report), wanted, &go_on, &mut threads(control));
    control.check()?;
    Ok(floodline_view::advise::json(&advice?)?)
}
