// SPDX-License-Identifier: MIT OR Apache-2.0
//! One machine: recorded, diagnosed, changed as `doctor` prints, and run again.

use crate::machines::Machine;
use floodline_analysis::diagnose::stretches::Stretches;
use floodline_analysis::prediction::{PEAK, Setting};
use floodline_analysis::report::{Plan, Report, Severity};
use floodline_analysis::run::Run;
use floodline_record::record::{Record, Sink, What};
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::Scenario;
use floodline_sim::{Options, simulate};
use floodline_twin::felt;
use floodline_twin::printed::{Said, printed};
use floodline_twin::trial::{self, Kept, OneByOne, Patience, Spent};
use floodline_view::advised::{Row, Verdict, verdict};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Outcome(Verdict);

impl Outcome {
    pub(super) fn word(self) -> &'static str {
        self.0.word()
    }

    /// Whether people are better off.
    pub(super) fn is_good(self) -> bool {
        matches!(self.0, Verdict::Cured | Verdict::Helped | Verdict::Hardly | Verdict::NoPlan)
    }
}

/// A change that was made to a machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Tried {
    /// File, variant, kernel, and how it was recorded.
    pub(super) machine: String,
    /// The first rule that is to be found.
    pub(super) truth: String,
    /// Rules that were found, warnings and worse.
    pub(super) found: Vec<String>,
    /// The change, as `NAME=VALUE`.
    pub(super) changes: Vec<String>,
    /// Steps that were not made.
    pub(super) not_made: Vec<String>,
    #[serde(serialize_with = "word")]
    pub(super) said: Said,
    /// Reason why there is no verdict of the trial, or what it expects.
    pub(super) why: Option<String>,
    /// Median error of the back-test, where there was one.
    pub(super) back_test_error: Option<f64>,
    pub(super) outcome: Outcome,
    /// Rules that are found after the change only.
    pub(super) appear: Vec<String>,
    pub(super) rows: Vec<Row>,
}

fn word<S: serde::Serializer>(said: &Said, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(said.word())
}

impl Tried {
    pub(super) fn figures(&self) -> String {
        let one = |row: &Row| {
            let show = |value: f64| match row.unit {
                "seconds" => format!("{value:.2}"),
                _ => format!("{:.0}M", value / 1_048_576.0),
            };
            let then = row.after.map_or("–".to_owned(), show);
            let name = row.name.trim_end_matches("_seconds").trim_end_matches("_bytes");
            let name = name.rsplit('.').next().unwrap_or(name);
            let predicted = row.predicted.map_or(String::new(), |value| format!(" (said {})", show(value)));
            format!("{name} {} → {then}{predicted}", show(row.before))
        };
        self.rows.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Time between two samples of `doctor`, unless the table has a longer one.
const EVERY: Nanos = Nanos(1_000_000_000);

/// Tries what `doctor` prints for both recordings of a machine.
pub(super) fn tried(machine: &Machine, scenario: &Scenario, kernel: KernelVersion) -> Result<Vec<Tried>, String> {
    let every = machine.every.max(EVERY);
    let all = records(scenario, &machine.variant, kernel, every)?;
    let before = Judged::of(scenario, kernel, &all);
    let mut known: BTreeMap<Vec<String>, Judged> = BTreeMap::new();
    let mut tried = Vec::new();
    for (name, records) in [("lab", all.clone()), ("host", as_on_a_host(&all))] {
        let (untried, report) = diagnosed(&records);
        let expect = scenario.expect.on(kernel);
        let mut one = Tried {
            machine: format!("{} {} {kernel} {name}", machine.file, machine.variant),
            truth: expect.found.iter().flatten().next().map_or("well", String::as_str).to_owned(),
            found: found(&report),
            changes: Vec::new(),
            not_made: Vec::new(),
            said: Said::Nothing,
            why: None,
            back_test_error: None,
            outcome: Outcome(Verdict::NoPlan),
            appear: Vec::new(),
            rows: Vec::new(),
        };
        if let Some(plan) = &report.plan {
            let made = change_of(plan, untried.plan.as_ref(), &mut one);
            if !made.is_empty() {
                let after = match known.get(&one.changes) {
                    Some(after) => Ok(after.clone()),
                    None => after(machine, scenario, kernel, &records, &made, every),
                };
                match after {
                    Ok(after) => {
                        judge(&mut one, plan, &before, &after);
                        known.insert(one.changes.clone(), after);
                    }
                    Err(why) => {
                        one.outcome = Outcome(Verdict::NotRun);
                        one.why = Some(why);
                    }
                }
            }
        }
        tried.push(one);
    }
    Ok(tried)
}

/// Takes what `doctor` says of the change of a plan, and returns the change.
fn change_of(plan: &Plan, untried: Option<&Plan>, one: &mut Tried) -> Vec<Setting> {
    let change = printed(Some(plan), untried);
    one.said = change.said;
    one.not_made = change.others;
    one.back_test_error = plan.tried.as_ref().and_then(|tried| tried.back_test_error);
    let candidate = plan.candidate.as_ref().map(|candidate| candidate.why.clone());
    one.why = match change.said.is_withheld() {
        true => plan.conflicts.first().cloned(),
        false => candidate.or(plan.arithmetic_only.clone()).or(plan.expect.first().cloned()),
    };
    one.changes = change.settings.iter().map(|setting| format!("{}={}", setting.key, setting.value)).collect();
    change.settings
}

fn judge(one: &mut Tried, plan: &Plan, before: &Judged, after: &Judged) {
    let expected = plan.tried.iter().flat_map(|tried| &tried.expected);
    let predicted: BTreeMap<&str, f64> = expected.map(|row| (row.figure.as_str(), row.then)).collect();
    one.appear = after.found.iter().filter(|rule| !before.found.contains(rule)).cloned().collect();
    for name in felt::FELT {
        let Some((unit, value)) = before.felt.get(name) else { continue };
        one.rows.push(Row {
            name: name.to_owned(),
            unit,
            before: *value,
            after: after.felt.get(name).map(|(_, value)| *value),
            predicted: predicted.get(name).copied(),
        });
    }
    let harm: Vec<Row> = one.rows.iter().filter(|row| row.name != PEAK).cloned().collect();
    one.outcome = Outcome(verdict(&harm, !after.found.is_empty()));
}

/// What people feel on a machine, and what the rules find there when they see all of it.
#[derive(Clone, Debug)]
struct Judged {
    felt: BTreeMap<String, (&'static str, f64)>,
    found: Vec<String>,
}

impl Judged {
    fn of(scenario: &Scenario, kernel: KernelVersion, records: &[Record]) -> Judged {
        let mut run = Run::expecting(&scenario.expect.on(kernel)).of_workload();
        for record in records {
            let Ok(()) = run.record(record);
        }
        let felt = felt::felt(&run.window).into_iter().map(|(name, value)| (name, (value.unit, value.value)));
        Judged { felt: felt.collect(), found: found(&run.diagnose()) }
    }
}

fn after(
    machine: &Machine,
    scenario: &Scenario,
    kernel: KernelVersion,
    recorded: &[Record],
    settings: &[Setting],
    every: Nanos,
) -> Result<Judged, String> {
    let mut run = Run::expecting(&scenario.expect.on(kernel));
    for record in recorded {
        let Ok(()) = run.record(record);
    }
    let (kernels, settings): (Vec<Setting>, Vec<Setting>) =
        settings.iter().cloned().partition(|setting| setting.key == "kernel");
    let on = kernels.first().and_then(|setting| setting.value.parse().ok()).unwrap_or(kernel);
    let changed = match settings.is_empty() {
        true => scenario.clone(),
        false => felt::changed(scenario, on, &run.window, &settings).map_err(|error| error.to_string())?,
    };
    Ok(Judged::of(&changed, on, &records(&changed, &machine.variant, on, every)?))
}

fn records(scenario: &Scenario, variant: &str, kernel: KernelVersion, every: Nanos) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let options = Options { every, ..Options::new(variant, kernel) };
    let take = |record: Record| {
        records.push(record);
        Ok(())
    };
    simulate(scenario, &options, take, |_| true).map_err(|error| error.to_string())?;
    Ok(records)
}

/// What a recorder on a host writes of a run: no event of a task, and nothing before the workload or after it.
fn as_on_a_host(records: &[Record]) -> Vec<Record> {
    let mut kept = Vec::new();
    let (mut before, mut is_over) = (None, false);
    let mut is_started = !records.iter().any(|record| is_mark(record, true));
    for record in records {
        match record {
            Record::Event(_) if is_mark(record, true) => {
                is_started = true;
                kept.extend(before.take());
            }
            Record::Event(_) => is_over |= is_mark(record, false),
            Record::Sample(_) if !is_started => before = Some(record.clone()),
            Record::Sample(_) if is_over => {}
            _ => kept.push(record.clone()),
        }
    }
    kept
}

/// Whether a record is the start of the workload, or its end.
fn is_mark(record: &Record, is_start: bool) -> bool {
    let Record::Event(event) = record else { return false };
    match &event.what {
        What::WorkloadStarted { .. } => is_start,
        What::WorkloadEnded => !is_start,
        _ => false,
    }
}

/// The report before and after the trial of its plan, as `doctor` makes it from a recording.
fn diagnosed(records: &[Record]) -> (Report, Report) {
    let mut stretches = Stretches::new(Vec::new());
    for record in records {
        let Ok(()) = stretches.record(record);
    }
    let report = stretches.finish();
    let mut kept = Kept::of(&report);
    records.iter().for_each(|record| kept.record(record));
    let mut tried = report.clone();
    // The clocks stand still: a trial ends by its number of events only.
    let patience = Patience::from(Spent::default(), 2);
    trial::try_plan(&mut tried, Some(kept), &|events| patience.lasts(events, Spent::default()), &mut OneByOne);
    (report, tried)
}

fn found(report: &Report) -> Vec<String> {
    let counts = report.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
    let mut found: Vec<String> = counts.map(|finding| finding.rule.to_owned()).collect();
    found.dedup();
    found
}
