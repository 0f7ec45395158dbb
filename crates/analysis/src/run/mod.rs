// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of a scenario run, from any executor's recording: figures by name, findings, and deviations from the
//! scenario's expectations. Reads records only. The JSON form is a stable interface: fields are added, never renamed.

mod machine;

pub use machine::workload_length;

use crate::budget::Judge;
use crate::diagnose::{self, diagnose};
use crate::report::{Finding, Plan, Report};
use floodline_record::name::Name;
use floodline_record::record::{Event, Record, Sink, What};
use floodline_record::sample::Sample;
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_scenario::{Bound, Expect, Figure, figures as of_tasks};
use serde::Serialize;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Version of the JSON form.
pub const SCHEMA: &str = "floodline.run/1";

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Executor of the run: `lab` or `simulator`.
    pub executor: &'static str,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the variant.
    pub variant: String,
    /// Kernel release as reported by the kernel.
    pub kernel: String,
    /// Its version.
    pub kernel_version: KernelVersion,
    /// Samples in the recording.
    pub samples: u64,
    /// Duration of the run, seconds.
    pub seconds: f64,
    /// Part of it from the machine's start to the first sample: booting, building it, loading a tracer. None where no
    /// machine was run.
    pub first_sample_seconds: Option<f64>,
    /// Part of it that is not workload: the cost of a run beyond its scenario's length. None where no machine was run.
    pub beside_seconds: Option<f64>,
    /// Figures by name.
    pub figures: BTreeMap<String, Figure>,
    /// Findings of `doctor` in the recording, worst first.
    pub findings: Vec<Finding>,
    /// Change that `doctor` proposes for this recording: the steps of all findings, merged. None without a change.
    pub plan: Option<Plan>,
    /// Deviations from the scenario's expectations, a line each.
    pub not_as_expected: Vec<String>,
    /// Whether the scenario expects anything.
    #[serde(skip)]
    pub has_expectations: bool,
    /// What the model leaves out of the scenario, a text each, with the effect that this may have. Empty where a machine was run.
    pub simplified: Vec<String>,
    /// File that the recording was kept in.
    pub recording: Option<String>,
}

pub mod order;
pub mod verdict;

/// A run as read from its recording.
#[derive(Debug, Default)]
pub struct Run {
    /// The recording, folded: all of it, or what [`Run::of_workload`] keeps.
    pub window: Window,
    judge: Option<Judge>,
    workload: Option<Workload>,
}

/// Position in a recording of which only the workload counts.
#[derive(Debug, Default)]
struct Workload {
    /// Sample before the workload's start: counters grow from it.
    before: Option<Box<Sample>>,
    is_started: bool,
    is_over: bool,
    samples: u64,
}

/// Figures that need a second pass over every sample. Computed only on request.
const BUDGET: &str = "budget.";
/// Those of them for which the recorder must trace throttling.
pub const THROTTLED: &str = "budget.throttled";

impl Run {
    /// Options for reading the recording of a run with this expectation.
    pub fn expecting(expect: &Expect) -> Run {
        let is_asked = expect.figures.keys().any(|name| name.starts_with(BUDGET));
        Run { judge: is_asked.then(Judge::default), ..Run::default() }
    }

    /// Judges from the start of the workload to its end, so that setup and tear-down cause no findings. Without a start
    /// in the recording, all of it counts.
    #[must_use]
    pub fn of_workload(self) -> Run {
        Run { workload: Some(Workload::default()), ..self }
    }

    /// Number of samples in the recording, those outside the workload included.
    pub fn samples(&self) -> u64 {
        self.workload.as_ref().map_or(self.window.samples, |workload| workload.samples)
    }

    /// All figures.
    pub fn figures(&self) -> BTreeMap<String, Figure> {
        let mut figures = figures(&self.window);
        if let Some(judge) = &self.judge {
            figures.extend(budget_figures(judge));
        }
        figures
    }

    /// Findings of the rules.
    pub fn diagnose(&self) -> Report {
        diagnose(&self.window, None)
    }

    /// Judge of the budgets, where that was requested.
    pub fn judge(&self) -> Option<&Judge> {
        self.judge.as_ref()
    }
}

impl Sink for Run {
    type Error = Infallible;

    fn record(&mut self, record: &Record) -> Result<(), Infallible> {
        if let Some(judge) = &mut self.judge {
            judge.record(record)?;
        }
        let Some(workload) = &mut self.workload else { return self.window.record(record) };
        match record {
            Record::Sample(sample) => {
                workload.samples += 1;
                if workload.is_over {
                    return Ok(());
                }
                if !workload.is_started {
                    workload.before = Some(sample.clone());
                }
                self.window.record(record)
            }
            Record::Event(Event { what: What::WorkloadStarted { .. }, .. }) => {
                workload.is_started = true;
                self.window.begin_again();
                if let Some(before) = workload.before.take() {
                    self.window.record(&Record::Sample(before))?;
                }
                self.window.record(record)
            }
            Record::Event(Event { what: What::WorkloadEnded, .. }) => {
                workload.is_over = true;
                self.window.record(record)
            }
            // A process that goes to another cgroup at the end was in the one before.
            Record::Entity(..) if workload.is_over => Ok(()),
            _ => self.window.record(record),
        }
    }
}

/// Figures of the tasks, the machine and its devices while the workload ran.
pub fn figures(window: &Window) -> BTreeMap<String, Figure> {
    let mut figures = of_tasks(&window.events);
    figures.extend(machine::figures(window));
    figures
}

/// Share of the kernel's printed budgets that is computed to the page.
fn budget_figures(judge: &Judge) -> impl Iterator<Item = (String, Figure)> {
    let (found, throttles) = (judge.found(), judge.throttles());
    let count = |value: u64| Some((value as f64, "count"));
    let share = |value: Option<f64>| value.map(|value| (value, "share"));
    [
        ("global_count", count(found.global)),
        ("global_exact_share", share(found.global_share())),
        ("wb_quiet_count", count(found.quiet)),
        ("wb_quiet_exact_share", share(found.quiet_share())),
        ("wb_moved_count", count(found.moved)),
        ("wb_moved_within_share", share(found.moved_share())),
        ("wb_bounded_count", count(found.bounded)),
        ("wb_bounded_within_share", share(found.bounded_share())),
        ("wb_unseen_count", count(found.unseen)),
        ("throttled_count", count(throttles.all)),
        ("throttled_within_share", share(throttles.within_share())),
        ("throttled_still_count", count(throttles.still)),
        ("throttled_exact_share", share(throttles.exact_share())),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.map(|(value, unit)| (format!("{BUDGET}{name}"), Figure { value, unit })))
}

/// Every deviation from the expectation, one line each. Expectations on a trace count only where there was one.
pub fn misses(
    expect: &Expect,
    window: &Window,
    figures: &BTreeMap<String, Figure>,
    findings: &[Finding],
) -> Vec<String> {
    let mut misses = Vec::new();
    let is_found = |rule: &String| findings.iter().any(|finding| finding.rule == rule);
    let found: Vec<&String> = expect.found.iter().flatten().collect();
    for rule in found.iter().filter(|rule| !is_found(rule)) {
        misses.push(format!("{rule} was not found"));
    }
    if let (Some(first), Some(finding)) = (found.first().filter(|rule| is_found(rule)), findings.first())
        && finding.rule != **first
    {
        misses.push(format!("{first} was not found first, but after {}", finding.rule));
    }
    for rule in expect.not_found.iter().flatten().filter(|rule| is_found(rule)) {
        misses.push(format!("{rule} was found"));
    }
    let absent = expect.not_found.iter().flatten().chain(expect.confirmed.keys());
    for name in absent.filter(|name| diagnose::rule(name).is_none()) {
        misses.push(format!("unknown finding {:?}", Name::from(name.as_str())));
    }
    if let Some(limit) = expect.quiet_from {
        let loud = findings.iter().filter(|finding| finding.severity >= limit);
        let loud = loud.filter(|finding| !found.iter().any(|rule| *rule == finding.rule));
        misses.extend(loud.map(|finding| format!("{} was found, {}", finding.rule, finding.severity.name())));
    }
    for (rule, name) in expect.confirmed.iter().filter(|_| !window.traced.is_empty()) {
        let Some(finding) = findings.iter().find(|finding| finding.rule == rule) else { continue };
        match &finding.confirmed {
            Some(confirmed) if confirmed.contains(name.as_str()) => {}
            Some(confirmed) => misses.push(format!("the trace of {rule} names no {name}: {confirmed}")),
            None => misses.push(format!("{rule} was not confirmed by the trace")),
        }
    }
    misses.extend(failures(expect, window));
    for (name, bound) in &expect.figures {
        match figures.get(name) {
            Some(figure) if bound.holds(figure.value) => {}
            Some(figure) => misses.push(format!("{name} is {}, expected {}", plain(figure.value), bounds(bound))),
            None => misses.push(format!("{name} was not measured")),
        }
    }
    misses
}

/// Tasks that failed at a step, each with the reason of one of its copies, without those whose failures are bounded.
fn failures(expect: &Expect, window: &Window) -> Vec<String> {
    let mut failures: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for event in &window.events {
        let What::TaskEnded { task, failure: Some(failure) } = &event.what else { continue };
        failures.entry(&task.task).or_insert((0, failure)).0 += 1;
    }
    failures.retain(|task, _| !expect.figures.contains_key(&format!("{task}.failures_count")));
    let said = |(task, (count, why)): (&str, (u64, &str))| match count {
        1 => format!("{task} failed: {}", Name::from(why)),
        _ => format!("{task} failed {count} times: {}", Name::from(why)),
    };
    failures.into_iter().map(said).collect()
}

/// A value in the unit of its bound, without insignificant digits.
fn plain(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        ..0.001 => format!("{value:.1e}"),
        1000.0.. => format!("{value:.0}"),
        _ => format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

fn bounds(bound: &Bound) -> String {
    match (bound.min, bound.max) {
        (Some(min), Some(max)) => format!("{} to {}", min.0, max.0),
        (Some(min), None) => format!("at least {}", min.0),
        (None, Some(max)) => format!("at most {}", max.0),
        (None, None) => "anything".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::Level;
    use floodline_testkit::incidents::INCIDENTS;

    fn at_most(max: f64) -> Bound {
        Bound { min: Some(Level(0.0)), max: Some(Level(max)) }
    }

    #[test]
    fn what_is_not_as_expected_is_said_line_by_line() {
        let figure = Figure { value: 9.5, unit: "seconds" };
        let figures = BTreeMap::from([("t.umount.max_seconds".to_owned(), figure)]);
        let expect = Expect {
            found: Some(vec!["overlay-umount-flush".to_owned()]),
            figures: BTreeMap::from([
                ("t.umount.max_seconds".to_owned(), at_most(0.3)),
                ("t.umount.p50_seconds".to_owned(), at_most(0.3)),
            ]),
            ..Expect::default()
        };
        assert_eq!(
            misses(&expect, &Window::default(), &figures, &[]),
            [
                "overlay-umount-flush was not found",
                "t.umount.max_seconds is 9.5, expected 0 to 0.3",
                "t.umount.p50_seconds was not measured",
            ]
        );
        assert!(misses(&Expect::default(), &Window::default(), &figures, &[]).is_empty());
    }

    #[test]
    fn an_unknown_finding_in_not_found_is_a_miss() {
        let lists = |not_found: &[&str], confirmed: &[&str]| Expect {
            not_found: Some(not_found.iter().map(|name| (*name).to_owned()).collect()),
            confirmed: confirmed.iter().map(|name| ((*name).to_owned(), String::new())).collect(),
            ..Expect::default()
        };
        let check = |expect: &Expect, says: &[&str]| {
            assert_eq!(misses(expect, &Window::default(), &BTreeMap::new(), &[]), says);
        };
        check(&lists(&["dirty-clif", "dirty-cliff"], &[]), &[r#"unknown finding "dirty-clif""#]);
        check(&lists(&[], &["starved-budget"]), &[r#"unknown finding "starved-budget""#]);
        check(&lists(&["dirty-cliff"], &["starved-dirty-budget"]), &[]);
    }

    #[test]
    fn what_a_trace_must_confirm_counts_where_there_was_one() {
        let mut findings = diagnose(&floodline_testkit::incidents::starved_budget().window(), None).findings;
        let rule = findings[0].rule;
        let expect =
            Expect { confirmed: BTreeMap::from([(rule.to_owned(), "/journal".to_owned())]), ..Expect::default() };
        let mut window = Window::default();
        let check = |window: &Window, findings: &[Finding], says: &[&str]| {
            assert_eq!(misses(&expect, window, &BTreeMap::new(), findings), says);
        };
        check(&window, &findings, &[]);
        window.traced.insert("bytes".to_owned());
        check(&window, &findings, &["starved-dirty-budget was not confirmed by the trace"]);
        findings[0].confirmed = Some("most in /var/log.".to_owned());
        check(&window, &findings, &["the trace of starved-dirty-budget names no /journal: most in /var/log."]);
        findings[0].confirmed = Some("most in /journal-3.".to_owned());
        check(&window, &findings, &[]);
        check(&window, &[], &[]);
    }

    #[test]
    fn the_first_of_the_expected_findings_must_be_the_first_of_all() {
        for incident in INCIDENTS {
            let findings = diagnose(&(incident.make)().window(), None).findings;
            let Some(first) = findings.first() else { continue };
            let expecting = |rules: &[&str]| Expect {
                found: Some(rules.iter().map(|rule| (*rule).to_owned()).collect()),
                ..Expect::default()
            };
            assert!(misses(&expecting(&[first.rule]), &Window::default(), &BTreeMap::new(), &findings).is_empty());
            let Some(second) = findings.get(1).filter(|second| second.rule != first.rule) else { continue };
            let late = misses(&expecting(&[second.rule]), &Window::default(), &BTreeMap::new(), &findings);
            assert_eq!(late, [format!("{} was not found first, but after {}", second.rule, first.rule)]);
        }
    }

    #[test]
    fn what_happens_before_and_after_the_workload_is_not_judged() {
        let event = |what| Record::Event(Event { at: floodline_record::units::Nanos(1), what });
        let started = || event(What::WorkloadStarted { scenario: "s".into(), variant: "v".into() });
        let found = |records: &[Record]| {
            let mut run = Run::default().of_workload();
            for record in records {
                let Ok(()) = run.record(record);
            }
            (run.samples(), run.diagnose().findings.iter().map(|finding| finding.rule).collect::<Vec<_>>())
        };
        let records = floodline_testkit::incidents::dirty_cliff().records();
        let is_sample = |record: &Record| matches!(record, Record::Sample(_));
        let samples = records.iter().filter(|record| is_sample(record)).count() as u64;
        let first = records.iter().position(is_sample).expect("a sample");
        let with = |at: usize, what: Record| {
            let mut records = records.clone();
            records.insert(at, what);
            records
        };
        let rule = "dirty-cliff";
        assert!(found(&records).1.contains(&rule), "without a workload all of it counts");
        assert!(found(&with(first, started())).1.contains(&rule));
        assert_eq!(found(&with(records.len(), started())), (samples, Vec::new()), "only the setup");
        let mut over = with(first + 1, event(What::WorkloadEnded));
        over.insert(first, started());
        assert_eq!(found(&over), (samples, Vec::new()));
    }

    #[test]
    fn one_sample_says_nothing_of_growth() {
        let of = |fixture: floodline_testkit::Fixture| figures(&fixture.window());
        let growing = ["host.dirtied_bytes", "host.io_pressure_seconds", "devices.written_bytes"];
        let (one, several) =
            (of(floodline_testkit::Fixture::healthy().one_look()), of(floodline_testkit::Fixture::healthy()));
        assert!(growing.iter().all(|name| !one.contains_key(*name) && several.contains_key(*name)), "{one:?}");
        assert!(one.contains_key("host.dirty_peak_bytes"));
    }

    #[test]
    fn a_value_has_the_digits_that_say_something() {
        let check = |value, expect: &str| assert_eq!(plain(value), expect);
        check(0.0, "0");
        check(8e-6, "8.0e-6");
        check(0.059_91, "0.0599");
        check(40.0, "40");
        check(1_266_144.037_9, "1266144");
    }
}
