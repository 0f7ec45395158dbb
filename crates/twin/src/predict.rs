// SPDX-License-Identifier: MIT OR Apache-2.0
//! Effect of a change on a host: its twin as it is and changed, each run with several seeds and device speeds, with
//! writers on a clock and with writers that wait for their own writes. A figure that the back-test misses is not
//! predicted. Pure: the program runs the trials, in threads, and passes the results back.

pub mod horizon;
mod odds;
mod rests;
mod row;
mod strict;
mod unmount;
mod volatile;

pub(crate) use self::row::scale;
pub use self::row::spread;

use self::rests::{Judged, at_samples, changed, on_usual_disks};
use self::row::{Of, SMALLEST_BUDGET, leave_open, limits_row, on_devices, row};
use crate::Twin;
use crate::backtest;
use crate::changed::{Changed, Host, NotChanged, change, unambiguous};
use crate::headline::headline;
use crate::limits::limits;
use crate::noticed::least;
use crate::shown::{self, FIGURES, Shown, Trial, Verdicts};
use crate::slowest::{Slowest, USUAL_BYTES_PER_SECOND};
use crate::storm::{self, Storm};
use crate::thresholds::risk_room;
use floodline_analysis::prediction::{Better, Doubt, Limits, PEAK, Prediction, Row, Seen, Setting, WAITS};
use floodline_record::human;
use floodline_record::window::Window;

/// A twin before and after a change.
#[derive(Clone, Debug)]
pub struct Question {
    /// Settings that change.
    pub settings: Vec<Setting>,
    /// The twin as it is, then the one with the other bound of the demand, if there are two.
    now: Vec<Changed>,
    /// These twins after the change.
    then: Vec<Changed>,
    /// The first of these twins before and after the change, with disks of a usual speed. `None` if the twin has a speed of each disk.
    usual: Option<Box<[Changed; 2]>>,
    /// The cgroup limits of the recording before and after the change, where arithmetic tells.
    limits: Option<Limits>,
    /// What people have to know about the change itself.
    warnings: Vec<String>,
    /// A storm that no run shows.
    storm: Option<Storm>,
    /// Whether the change ends syncs of programs that are assumed to write through an overlay.
    ends_syncs: bool,
    /// Whether the change clears every `strict_limit` that the recording has: no device can then pause writers by it.
    clears_strict: bool,
}

/// One run that an answer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Run {
    /// Index of the twin: 0 is the one that is nearer to the recording, and [`Run::ON_USUAL_DISKS`] is that one on other disks.
    pub demand: usize,
    /// Whether it is changed.
    pub is_changed: bool,
    /// Seed and device speed of the run.
    pub trial: Trial,
}

impl Run {
    /// Index of the twin that is nearer to the recording, on disks of a usual speed.
    pub const ON_USUAL_DISKS: usize = usize::MAX;
}

/// Tasks of a twin that stand for journald.
pub fn journald(twin: &Twin) -> Vec<String> {
    let is_journald = |comm: &str| comm.starts_with("systemd-journal");
    twin.programs.iter().filter(|(_, program)| is_journald(&program.comm)).map(|(task, _)| task.clone()).collect()
}

/// Device speeds other than the twin's, percent, with their seeds.
const VARIED: [(u64, u64); 2] = [(1, 80), (2, 120)];

impl Question {
    /// Applies settings to a twin.
    ///
    /// # Errors
    ///
    /// A setting that the kernel refuses, that means nothing on this host, or that another one contradicts.
    pub fn new(twin: &Twin, window: &Window, settings: &[Setting]) -> Result<Question, NotChanged> {
        unambiguous(settings)?;
        let journald = journald(twin);
        let host = Host { window, journald: &journald };
        let scenarios = || std::iter::once(&twin.scenario).chain(twin.demand.other().map(|(_, other)| other));
        let mut now: Vec<Changed> =
            scenarios().map(|scenario| Changed { scenario: scenario.clone(), kernel: twin.kernel }).collect();
        let mut then =
            scenarios().map(|scenario| change(scenario, twin.kernel, settings, host)).collect::<Result<Vec<_>, _>>()?;
        let synced = then.first().cloned();
        let mut ends_syncs = false;
        for (now, then) in now.iter().zip(&mut then) {
            if let Some(without) = volatile::without_syncs(&now.scenario, then) {
                (*then, ends_syncs) = (without, true);
            }
        }
        // Whether programs write through the overlay is assumed: both bounds count.
        if let Some((now_too, synced)) = now.first().cloned().zip(synced.filter(|_| ends_syncs)) {
            now.push(now_too);
            then.push(synced);
        }
        let warnings = crate::beside::warnings(window, settings, twin.kernel);
        let storm = now.first().zip(then.first()).and_then(|(now, then)| storm::of(window, now, then));
        let limits = limits(window, settings);
        let clears_strict = strict::clears(window, settings);
        let usual = Slowest::usual(twin, window).and_then(|disks| {
            let (now, then) = now.first().zip(then.first())?;
            Some(Box::new([now, then].map(|changed| disks.under(changed, &now.scenario))))
        });
        Ok(Question {
            settings: settings.to_vec(),
            now,
            then,
            usual,
            limits,
            warnings,
            storm,
            ends_syncs,
            clears_strict,
        })
    }

    /// The same question on the slowest disks that the recording allows. `None` if each disk was seen at its limits.
    pub fn on_slowest_disks(&self, twin: &Twin, window: &Window) -> Option<Question> {
        Some(self.on(&Slowest::of(twin, window)?))
    }

    /// The same question on disks of a usual speed. `None` if the twin has a speed of each disk.
    pub fn on_usual_disks(&self, twin: &Twin, window: &Window) -> Option<Question> {
        Some(self.on(&Slowest::usual(twin, window)?))
    }

    /// The same question on disks of as few bytes per second as the slowest ones in use. `None` if the twin has a speed of each disk.
    pub fn on_slow_disks(&self, twin: &Twin, window: &Window) -> Option<Question> {
        Some(self.on(&Slowest::slow(twin, window)?))
    }

    /// The same question on disks of as few requests per second as the slowest ones in use. `None` if the recording shows that limit of each
    /// disk.
    pub fn on_disks_of_few_requests(&self, twin: &Twin, window: &Window) -> Option<Question> {
        Some(self.on(&Slowest::of_few_requests(twin, window)?))
    }

    fn on(&self, slowest: &Slowest) -> Question {
        let mut question = Question { usual: None, ..self.clone() };
        for (at, before) in self.now.iter().enumerate() {
            for changed in question.now.get_mut(at).into_iter().chain(question.then.get_mut(at)) {
                slowest.set(&mut changed.scenario, &before.scenario);
            }
        }
        question
    }

    /// The runs that an answer needs; `few` omits other seeds and device speeds.
    pub fn runs(&self, few: bool) -> Vec<Run> {
        let mut runs = Vec::new();
        for demand in 0..self.now.len() {
            for is_changed in [false, true] {
                let diagnosed = demand == 0 || (is_changed && !few);
                runs.push(Run { demand, is_changed, trial: Trial { diagnosed, ..Trial::NOMINAL } });
            }
        }
        // With another seed or speed only the changed twin counts, for the interval: the present value is that of the recording.
        for (seed, device_percent) in VARIED.into_iter().filter(|_| !few) {
            let trial = Trial { seed, device_percent, diagnosed: true };
            runs.push(Run { demand: 0, is_changed: true, trial });
        }
        if self.usual.is_some() && !few {
            let trial = |diagnosed| Trial { diagnosed, ..Trial::NOMINAL };
            let run = |is_changed| Run { demand: Run::ON_USUAL_DISKS, is_changed, trial: trial(is_changed) };
            runs.extend([false, true].map(run));
        }
        runs
    }

    /// The scenario of a run.
    pub fn scenario(&self, run: &Run) -> Option<&Changed> {
        match (run.demand, &self.usual) {
            (Run::ON_USUAL_DISKS, Some(usual)) => usual.get(usize::from(run.is_changed)),
            _ if run.is_changed => self.then.get(run.demand),
            _ => self.now.get(run.demand),
        }
    }
}

/// Readings of the recording that predictions are compared with.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Figures of the back-test.
    pub back_test: Vec<backtest::Figure>,
    /// What the rules say of the recording.
    pub said: Verdicts,
}

impl Measured {
    /// Of a recording, before its twin is tested.
    pub fn of(recording: &Window) -> Measured {
        Measured { back_test: Vec::new(), said: shown::verdicts(recording) }
    }
}

/// Draws the conclusion from the results of all runs.
pub fn conclude(twin: &Twin, question: &Question, measured: &Measured, results: &[(Run, Shown)]) -> Option<Prediction> {
    let nominal = |is_changed, demand| {
        let is_it = |run: &Run| run.is_changed == is_changed && run.demand == demand && run.trial.device_percent == 100;
        results.iter().find(|(run, _)| is_it(run)).map(|(_, shown)| shown)
    };
    let (now, then) = (nominal(false, 0)?, nominal(true, 0)?);
    // The second run of a twin whose demand is known is another bound: the syncs that a volatile overlay ends.
    let closed = nominal(false, 1).zip(nominal(true, 1)).filter(|_| twin.demand.other().is_some());
    let (mut rows, mut on_usual) = (Vec::new(), Vec::new());
    for named in FIGURES {
        let of =
            Of { name: named.name, label: named.label, unit: named.unit, better: named.better, least: named.least() };
        let limits = question.limits.as_ref().filter(|_| named.name == SMALLEST_BUDGET).and_then(Limits::compared);
        let row = || row(&of, measured, results, closed);
        let (row, is_usual) = limits.map(|limits| (limits_row(&of, limits), false)).or_else(row).unzip();
        on_usual.extend(row.iter().filter(|_| is_usual == Some(true)).map(|row| row.label.clone()));
        rows.extend(row);
    }
    rows.extend(on_devices(now, measured, results, closed));
    for name in now.figures.keys().filter(|name| name.starts_with("program ")) {
        let label = format!("throughput of {}", name.trim_start_matches("program "));
        let of = Of { name, label: &label, unit: "bytes_per_second", better: Better::More, least: least(name) };
        rows.extend(row(&of, measured, results, closed).map(|(row, _)| row));
    }
    leave_open(&mut rows, crate::sparse::seconds(twin.every).is_some());
    let error = backtest::simulated_error(&measured.back_test);
    let unknown = twin.ceilings.iter().filter(|ceiling| ceiling.is_open());
    let speeds = twin.ceilings.iter().map(|ceiling| ceiling.write_bytes_per_second);
    let speeds: Option<Vec<f64>> = speeds.collect();
    let judged = Judged {
        recorded: &measured.said,
        now,
        then: then.closely(),
        changed: changed(results),
        at_samples: at_samples(results),
        usual: on_usual_disks(results),
        rows: &rows,
        unknown_speed: unknown.map(|ceiling| ceiling.write_bytes_per_second.unwrap_or(0.0)).reduce(f64::min),
        slowest: speeds.and_then(|speeds| speeds.into_iter().reduce(f64::min)),
        is_reliable: error.is_some_and(|error| error <= backtest::MISS_MAX),
        clears_strict: question.clears_strict,
    };
    let Findings { vanish, appear, stay, not_reproduced, lasting, between, invented } = findings(&judged);
    let mut doubtful = judged.doubtful();
    doubtful.extend(question.storm.iter().map(Storm::doubt));
    let unjudged = judged.then.unchecked.clone();
    let no_other = judged.no_other();
    let missed = measured.back_test.iter().filter(|figure| !figure.is_predictable());
    let kernel_then = question.then.first().map_or(twin.kernel, |then| then.kernel);
    let mut prediction = Prediction {
        kernel_then,
        back_test_error: error,
        missed: missed.map(|figure| figure.name.clone()).collect(),
        limits: question.limits.clone(),
        recorded: measured.said.seen.clone(),
        risk_room_bytes: measured_peak(&rows).map(|now| risk_room(twin, now)),
        rows,
        vanish,
        appear,
        stay,
        not_reproduced,
        lasting,
        between,
        sparse_s: crate::sparse::seconds(twin.every),
        doubtful,
        no_other,
        unjudged,
        shows_syncs: twin.shows_syncs,
        runs: results.len(),
        is_cut: results.iter().any(|(_, shown)| shown.is_cut),
        simplified: crate::beside::simplified(twin, question.then.first()),
        ..Prediction::new(question.settings.clone(), twin.kernel)
    };
    let sparse = error.and_then(|error| crate::sparse::hint(twin, &measured.said.seen, error));
    let storm = question.storm.iter().map(|storm| storm.told.clone());
    let warnings = question.warnings.iter().cloned().chain(storm);
    prediction.notes = warnings.chain(sparse).chain(notes(twin, &prediction)).collect();
    if !on_usual.is_empty() {
        prediction.notes.push(format!(
            "The disk of the twin has no limit, because the recording shows none. On it, the change does not move these figures. \
             The table has them on a disk of {}: {}.",
            human::bytes_per_second(USUAL_BYTES_PER_SECOND),
            on_usual.join(", ")
        ));
    }
    if question.ends_syncs {
        let text = "The recording does not show which programs write through an overlay. The prediction assumes that programs in cgroups \
                    on its filesystem do, and that their syncs end. The intervals also cover the case that these syncs continue.";
        prediction.notes.push(text.to_owned());
    }
    if !invented.is_empty() {
        prediction.notes.push(format!(
            "The twin has findings that the recording does not have. They are left out: {}.",
            invented.join(", ")
        ));
    }
    unmount::leave_open(&mut prediction, now, then);
    prediction.headline = headline(&prediction);
    Some(prediction)
}

/// What becomes of the findings of the recording and of the twin.
#[derive(Default)]
struct Findings {
    vanish: Vec<Seen>,
    appear: Vec<Seen>,
    stay: Vec<Seen>,
    /// Of the recording, but not of the twin as it is.
    not_reproduced: Vec<&'static str>,
    /// Those of them that are expected to stay.
    lasting: Vec<Seen>,
    /// Of the twin as it is, between the samples of the recording. The change ends them.
    between: Vec<Seen>,
    /// Of the twin as it is, but not of the recording.
    invented: Vec<&'static str>,
}

fn findings(judged: &Judged<'_>) -> Findings {
    let (recorded, after) = (judged.recorded, judged.then);
    let mut findings = Findings::default();
    for seen in judged.all() {
        let rule = seen.rule;
        let severity = |said: &Verdicts| said.severity(rule).unwrap_or(seen.severity);
        let of_recording = Seen { rule, severity: severity(recorded) };
        // The recording knows how severe a finding is. A change of severity comes from the twin.
        let now = [&judged.now.said, judged.now.closely()].into_iter().find_map(|said| said.severity(rule));
        let after = match after.severity(rule).filter(|then| now != Some(*then)) {
            Some(severity) => Seen { rule, severity },
            None => of_recording.clone(),
        };
        let is_now = judged.is_now(rule);
        match (recorded.has(rule), is_now, judged.fate(rule).is_there) {
            (true, true, true) => findings.stay.push(after),
            (true, true, false) => findings.vanish.push(of_recording),
            (true, false, is_there) => {
                findings.not_reproduced.push(rule);
                findings.lasting.extend(is_there.then_some(of_recording));
            }
            (false, true, true) if judged.is_hidden(rule) => findings.stay.push(after),
            (false, _, true) => findings.appear.push(after),
            (false, true, false) if judged.is_between(rule) => findings.between.push(after),
            (false, true, false) => findings.invented.extend((!recorded.lacks(rule)).then_some(rule)),
            (false, false, false) => {}
        }
    }
    findings
}

/// The present peak of data at risk.
fn measured_peak(rows: &[Row]) -> Option<f64> {
    rows.iter().find(|row| row.figure == PEAK).map(|row| row.now)
}

fn notes(twin: &Twin, prediction: &Prediction) -> Vec<String> {
    let mut notes = Vec::new();
    if prediction.rows.iter().any(|row| row.doubt == Some(Doubt::Demand)) {
        notes.push(
            "The pauses of writers were not traced. Their demand is known only between two bounds, which disagree on \
             some figures: record with --trace on."
                .to_owned(),
        );
    }
    let is_unmeasured = |row: &&Row| row.figure == WAITS && !row.is_measured;
    if let Some(waits) = prediction.rows.iter().find(is_unmeasured) {
        notes.push(format!(
            "The recording has no {}: delay accounting is off. The figure in the table is that of the twin. If this figure falls, the \
             verdict does not count it.",
            waits.label
        ));
    }
    let unknown: Vec<&str> =
        twin.ceilings.iter().filter(|ceiling| !ceiling.is_known).map(|ceiling| ceiling.device.as_str()).collect();
    let by_requests = twin.ceilings.iter().filter(|ceiling| ceiling.is_known && ceiling.is_open());
    notes.extend(by_requests.filter_map(|ceiling| {
        let speed = human::bytes_per_second(ceiling.write_bytes_per_second?);
        Some(format!(
            "{} showed a limit of requests and was never saturated by bytes: the prediction is valid only up to {speed}.",
            ceiling.device
        ))
    }));
    if !unknown.is_empty() {
        notes.push(format!(
            "{} never saturated here: the prediction is valid only up to the recorded speed.",
            match unknown.as_slice() {
                [one] => format!("{one} was"),
                many => format!("{} were", many.join(", ")),
            }
        ));
    }
    if !prediction.not_reproduced.is_empty() {
        notes.push(format!(
            "The twin does not show what was found in the recording: {}.{}",
            prediction.not_reproduced.join(", "),
            match prediction.lasting.as_slice() {
                [] => String::new(),
                [seen] => format!(" {} is expected to stay.", seen.rule),
                many => {
                    let rules: Vec<&str> = many.iter().map(|seen| seen.rule).collect();
                    format!(" {} are expected to stay.", rules.join(", "))
                }
            }
        ));
    }
    if prediction.is_cut {
        notes.push("The simulation exceeded its budget: only its beginning counts.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::prediction::{Doubtful, Reason};
    use floodline_analysis::report::Severity;
    use floodline_record::version::KernelVersion;

    fn row(figure: &str, label: &str, unit: &'static str, now: f64, then: f64) -> Row {
        Row { least: 0.02, ..Row::new(figure, label, unit, now, then) }
    }

    fn prediction(error: Option<f64>, rows: Vec<Row>) -> Prediction {
        Prediction {
            headline: "It helps.".to_owned(),
            back_test_error: error,
            rows,
            runs: 4,
            ..Prediction::new(vec![Setting::new("vm.dirty_bytes", "64M")], KernelVersion::new(6, 12, 0))
        }
    }

    #[test]
    fn a_new_critical_finding_leads_before_less_data_at_risk() {
        let rows =
            vec![row("host.unwritten_peak_bytes", "peak data at risk", "bytes", 24.0 * 1048576.0, 12.0 * 1048576.0)];
        let storm = Seen { rule: "starved-dirty-budget", severity: Severity::Critical };
        let prediction = Prediction { appear: vec![storm], ..prediction(Some(0.1), rows) };
        assert_eq!(
            headline(&prediction),
            "It makes this host worse: starved-dirty-budget appears. It lowers: peak data at risk 24.0 MiB → about 12.0 MiB."
        );
    }

    #[test]
    fn what_may_not_come_is_said_with_maybe() {
        let wide = |row: Row| Row { low: row.now / 4.0, high: row.now * 4.0, ..row };
        let wait = || row("durable.longest_wait_seconds", "longest fsync", "seconds", 2.0, 1.0);
        let risk =
            || row("host.unwritten_peak_bytes", "peak data at risk", "bytes", 24.0 * 1048576.0, 12.0 * 1048576.0);
        assert_eq!(
            headline(&prediction(Some(0.1), vec![wide(wait())])),
            "It may help: longest fsync 2.00 s → about 1.00 s."
        );
        assert_eq!(
            headline(&prediction(Some(0.1), vec![wide(wait()), risk()])),
            "It helps: peak data at risk 24.0 MiB → about 12.0 MiB; maybe longest fsync 2.00 s → about 1.00 s."
        );
    }

    #[test]
    fn a_twin_that_misses_every_wait_says_so_whatever_its_median() {
        let missed = |row: Row| Row { doubt: Some(Doubt::BackTest), ..row };
        let wait = || row("durable.longest_wait_seconds", "longest fsync", "seconds", 2.0, 1.0);
        let risk = row("host.unwritten_peak_bytes", "peak data at risk", "bytes", 24.0 * 1048576.0, 12.0 * 1048576.0);
        let headline = |wait| headline(&prediction(Some(0.05), vec![wait, risk.clone()]));
        assert!(
            headline(missed(wait())).ends_with(" No wait of the recording is predicted: the twin misses each of them.")
        );
        assert!(!headline(wait()).contains("misses"));
        assert!(!headline(missed(Row { is_measured: false, ..wait() })).contains("misses"));
    }

    #[test]
    fn a_total_of_waits_that_only_the_twin_has_does_not_lead() {
        let waits = Row { is_measured: false, ..row("stall_seconds", "waits of all tasks", "seconds", 4.7, 2.0) };
        let risk = row("host.unwritten_peak_bytes", "peak data at risk", "bytes", 24.0 * 1048576.0, 12.0 * 1048576.0);
        assert_eq!(
            headline(&prediction(Some(0.1), vec![waits, risk])),
            "It helps: peak data at risk 24.0 MiB → about 12.0 MiB."
        );
    }

    #[test]
    fn a_sync_that_the_twin_assumes_does_not_lead() {
        let wait = |is_measured| {
            let wait = row("durable.longest_wait_seconds", "longest fsync", "seconds", 3.0, 0.3);
            Row { is_measured, low: if is_measured { 0.3 } else { 0.0 }, ..wait }
        };
        let risk = |then: f64| {
            let mib = |count: f64| count * 1_048_576.0;
            row("host.unwritten_peak_bytes", "peak data at risk", "bytes", mib(24.0), mib(then))
        };
        let headline = |rows| headline(&prediction(Some(0.1), rows));
        let assumed = " The recording shows no wait for a sync. The twin predicts: longest fsync, if \
                       a program syncs, about 3.00 s → about 300 ms.";
        let none = "No figure of the recording gets noticeably better.";
        assert_eq!(headline(vec![wait(true)]), "It helps: longest fsync 3.00 s → about 300 ms.");
        assert_eq!(headline(vec![wait(false)]), format!("{none}{assumed}"));
        let risky = headline(vec![wait(false), risk(48.0)]);
        assert_eq!(risky, format!("{none} It costs: peak data at risk 24.0 MiB → about 48.0 MiB.{assumed}"));
        let both = headline(vec![wait(false), risk(12.0)]);
        assert_eq!(both, format!("It helps: peak data at risk 24.0 MiB → about 12.0 MiB.{assumed}"));
        // By less than the error of the twin.
        let hardly = headline(vec![wait(false), risk(22.0)]);
        assert_eq!(hardly, format!("It lowers: peak data at risk 24.0 MiB → about 22.0 MiB.{assumed}"));
    }

    #[test]
    fn what_costs_less_than_it_helps_is_no_harm_in_the_first_sentence_either() {
        let rows = vec![
            row("durable.longest_wait_seconds", "longest fsync", "seconds", 1.0, 1.4),
            row("stall_seconds", "waits of all tasks", "seconds", 60.0, 20.0),
        ];
        let prediction = prediction(Some(0.1), rows);
        assert!(!prediction.harms());
        assert_eq!(
            headline(&prediction),
            "It helps: waits of all tasks 60 s → about 20 s. It costs: longest fsync 1.00 s → about 1.40 s."
        );
    }

    #[test]
    fn what_is_not_predicted_or_cannot_be_shown_is_not_ruled_out() {
        let wait = |doubt| Row { doubt, ..row("durable.longest_wait_seconds", "longest fsync", "seconds", 2.0, 2.0) };
        let missed = prediction(Some(0.1), vec![wait(Some(Doubt::BackTest)), row(PEAK, "peak", "bytes", 3e6, 3e6)]);
        assert!(headline(&missed).starts_with("No predicted figure changes noticeably."));
        let seen = Seen { rule: "inode-switch-storm", severity: Severity::Critical };
        let doubtful = vec![Doubtful::new(&seen, false, Reason::Inodes, (0, 0))];
        let storm = Prediction { doubtful, ..prediction(Some(0.1), vec![wait(None)]) };
        assert!(headline(&storm).ends_with(" The change may bring inode-switch-storm, which the twin cannot show."));
    }

    #[test]
    fn longer_waits_lead_before_less_data_at_risk() {
        let rows = vec![
            row("stall_seconds", "waits of all tasks", "seconds", 0.0, 45.0),
            row("host.unwritten_peak_bytes", "peak data at risk", "bytes", 24.0 * 1048576.0, 12.0 * 1048576.0),
        ];
        assert_eq!(
            headline(&prediction(Some(0.1), rows)),
            "It makes this host worse: waits of all tasks 0 s → about 45 s. It lowers: peak data at risk 24.0 MiB → about \
             12.0 MiB."
        );
    }

    #[test]
    fn a_twin_that_misses_its_recording_is_said_first_and_every_cost_is_named() {
        let rows = vec![
            row("durable.longest_wait_seconds", "longest fsync", "seconds", 2.0, 1.0),
            row("devices.written_bytes", "written to disks", "bytes", 4.0 * 1048576.0, 8.0 * 1048576.0),
        ];
        let helps =
            "It helps: longest fsync 2.00 s → about 1.00 s. It costs: written to disks 4.00 MiB → about 8.00 MiB.";
        assert_eq!(headline(&prediction(Some(0.1), rows.clone())), helps);
        let told = headline(&prediction(Some(0.61), rows));
        assert!(
            told.starts_with("Not reliable: the twin misses this recording by 61 % (median). In the model: it "),
            "{told}"
        );
        let none = headline(&prediction(None, vec![row("stall_seconds", "waiting", "seconds", 1.0, 1.0)]));
        assert_eq!(none, "It changes nothing that people would notice here.");
    }
}
