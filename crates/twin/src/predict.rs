// SPDX-License-Identifier: MIT OR Apache-2.0
//! Effect of a change on a host: its twin as it is and changed, each run with several seeds and device speeds, with
//! writers on a clock and with writers that wait for their own writes. A figure that the back-test misses is not
//! predicted. Pure: the program runs the trials, in threads, and passes the results back.

use crate::Twin;
use crate::backtest;
use crate::changed::{Changed, Host, NotChanged, change, unambiguous};
use crate::headline::headline;
use crate::limits::smallest_budgets;
use crate::shown::{FIGURES, Figures, Shown, Trial};
use crate::thresholds::Thresholds;
use floodline_analysis::prediction::{Better, Doubt, Prediction, Row, Seen, Setting, WAITS, differ};
use floodline_record::window::Window;

/// A twin before and after a change.
#[derive(Clone, Debug)]
pub struct Question {
    /// Settings that change.
    pub settings: Vec<Setting>,
    /// The twin as it is: writers on a clock, then writers that wait for their own writes, where they are bounded.
    now: Vec<Changed>,
    /// These twins after the change.
    then: Vec<Changed>,
    /// The smallest cgroup limit of the recording before and after the change, where arithmetic tells.
    budgets: Option<(f64, f64)>,
    /// What is wrong with the change itself.
    warning: Option<String>,
}

/// One run that an answer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// Index of the twin: 0 is the open one.
    pub demand: usize,
    /// Whether it is changed.
    pub is_changed: bool,
    /// Seed and device speed of the run.
    pub trial: Trial,
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
        let scenarios = || std::iter::once(&twin.scenario).chain(twin.demand.closed());
        let now = scenarios().map(|scenario| Changed { scenario: scenario.clone(), kernel: twin.kernel }).collect();
        let then =
            scenarios().map(|scenario| change(scenario, twin.kernel, settings, host)).collect::<Result<Vec<_>, _>>()?;
        let warning = Thresholds::of(window, settings).and_then(|set| set.warning());
        Ok(Question { settings: settings.to_vec(), now, then, budgets: smallest_budgets(window, settings), warning })
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
        for (seed, device_percent) in VARIED.into_iter().filter(|_| !few) {
            for is_changed in [false, true] {
                let trial = Trial { seed, device_percent, diagnosed: is_changed };
                runs.push(Run { demand: 0, is_changed, trial });
            }
        }
        runs
    }

    /// The scenario of a run.
    pub fn scenario(&self, run: &Run) -> Option<&Changed> {
        if run.is_changed { self.then.get(run.demand) } else { self.now.get(run.demand) }
    }
}

/// Readings of the recording that predictions are compared with.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Figures of the back-test.
    pub back_test: Vec<backtest::Figure>,
    /// Findings of the rules in the recording.
    pub seen: Vec<Seen>,
}

/// Draws the conclusion from the results of all runs.
pub fn conclude(twin: &Twin, question: &Question, measured: &Measured, results: &[(Run, Shown)]) -> Option<Prediction> {
    let nominal = |is_changed, demand| {
        let is_it = |run: &Run| run.is_changed == is_changed && run.demand == demand && run.trial.device_percent == 100;
        results.iter().find(|(run, _)| is_it(run)).map(|(_, shown)| shown)
    };
    let (now, then) = (nominal(false, 0)?, nominal(true, 0)?);
    let closed = nominal(false, 1).zip(nominal(true, 1));
    let mut rows = Vec::new();
    for named in FIGURES {
        let of =
            Of { name: named.name, label: named.label, unit: named.unit, better: named.better, least: named.least() };
        let limits = question.budgets.filter(|_| named.name == SMALLEST_BUDGET);
        rows.extend(limits.map(|limits| limits_row(&of, limits)).or_else(|| row(&of, measured, results, closed)));
    }
    for name in now.figures.keys().filter(|name| name.starts_with("program ")) {
        let label = format!("throughput of {}", name.trim_start_matches("program "));
        let of = Of { name, label: &label, unit: "bytes_per_second", better: Better::More, least: 1024.0 };
        rows.extend(row(&of, measured, results, closed));
    }
    let is_in = |seen: &[Seen], rule: &Seen| seen.iter().any(|one| one.rule == rule.rule);
    // A finding of the unchanged twin that the recording lacks is the twin's error: it neither stays nor vanishes.
    let (real, invented): (Vec<Seen>, Vec<Seen>) =
        now.seen.iter().cloned().partition(|seen| is_in(&measured.seen, seen));
    let (stay, gone): (Vec<Seen>, Vec<Seen>) = real.into_iter().partition(|seen| is_in(&then.seen, seen));
    let severity = |list: &[Seen], rule| list.iter().find(|one| one.rule == rule).map(|one| one.severity);
    let recorded = |seen: Seen| Seen { severity: severity(&measured.seen, seen.rule).unwrap_or(seen.severity), ..seen };
    let gone: Vec<Seen> = gone.into_iter().map(recorded).collect();
    // The recording knows how severe a finding is. A change of severity comes from the twin.
    let after = |seen: Seen| match severity(&then.seen, seen.rule).filter(|then| *then != seen.severity) {
        Some(severity) => Seen { severity, ..seen },
        None => recorded(seen),
    };
    let stay: Vec<Seen> = stay.into_iter().map(after).collect();
    let is_new = |seen: &&Seen| match is_in(&now.seen, seen) {
        true => is_in(&invented, seen) && worsens(seen.rule, &rows),
        // The recording has it already, though the unchanged twin does not.
        false => !is_in(&measured.seen, seen),
    };
    let appear: Vec<Seen> = then.seen.iter().filter(is_new).cloned().collect();
    let invented: Vec<Seen> = invented.into_iter().filter(|seen| !is_in(&appear, seen)).collect();
    let not_reproduced: Vec<&Seen> = measured.seen.iter().filter(|seen| !is_in(&now.seen, seen)).collect();
    // What no run of the model can judge stays, unless the rule says that it cannot be there.
    let is_lasting =
        |seen: &&Seen| is_in(&then.seen, seen) || then.unchecked.contains(&seen.rule) || lasts(seen.rule, &rows);
    let lasting: Vec<Seen> = not_reproduced.iter().copied().filter(is_lasting).cloned().collect();
    let judged = Judged { now, then, recorded: &measured.seen, rows: &rows };
    let uncertain = judged.uncertain(results, &appear, &lasting);
    let not_reproduced = not_reproduced.iter().map(|seen| seen.rule).collect();
    let error = backtest::simulated_error(&measured.back_test);
    let missed = measured.back_test.iter().filter(|figure| !figure.is_predictable());
    let kernel_then = question.then.first().map_or(twin.kernel, |then| then.kernel);
    let mut prediction = Prediction {
        kernel_then,
        back_test_error: error,
        missed: missed.map(|figure| figure.name.clone()).collect(),
        rows,
        vanish: gone,
        appear,
        stay,
        not_reproduced,
        lasting,
        uncertain,
        unjudged: then.unchecked.clone(),
        runs: results.len(),
        is_cut: results.iter().any(|(_, shown)| shown.is_cut),
        ..Prediction::new(question.settings.clone(), twin.kernel)
    };
    prediction.notes = question.warning.iter().cloned().chain(notes(twin, &prediction)).collect();
    if !invented.is_empty() {
        let rules: Vec<&str> = invented.iter().map(|seen| seen.rule).collect();
        prediction.notes.push(format!(
            "The twin has findings that the recording does not have. They are left out: {}.",
            rules.join(", ")
        ));
    }
    prediction.headline = headline(&prediction);
    Some(prediction)
}

/// The figures that the findings of a rule rest on, for rules that judge measured figures.
const RESTS_ON: &[(&str, &[&str])] = &[
    ("dirty-cliff", &["longest_write_wait_seconds", "durable.longest_wait_seconds", "host.dirty_peak_bytes"]),
    ("dirty-data-at-risk", &["host.dirty_peak_bytes"]),
    ("dominant-writer", &["durable.longest_wait_seconds", "devices.written_bytes"]),
    ("fsync-behind-writeback", &["durable.longest_wait_seconds", "durable.p99_wait_seconds"]),
    ("overlay-umount-flush", &["umount.longest_wait_seconds", "host.dirty_peak_bytes"]),
    ("starved-dirty-budget", &["smallest_budget_bytes", "host.dirtied_bytes", "devices.written_bytes"]),
];

/// The figures that the findings of a rule rest on; none for a rule that judges no measured figure.
pub fn rests_on(rule: &str) -> &'static [&'static str] {
    RESTS_ON.iter().find(|(name, _)| *name == rule).map_or(&[], |(_, figures)| figures)
}

/// Whether a finding that the twin does not show persists: no figure that it rests on improves.
fn lasts(rule: &str, rows: &[Row]) -> bool {
    let Some((_, names)) = RESTS_ON.iter().find(|(name, _)| *name == rule) else { return false };
    !rows.iter().filter(|row| names.contains(&row.figure.as_str())).any(Row::improves)
}

/// Whether a figure that a finding rests on is predicted.
fn rests(rule: &str, rows: &[Row]) -> bool {
    let Some((_, names)) = RESTS_ON.iter().find(|(name, _)| *name == rule) else { return false };
    rows.iter().any(|row| names.contains(&row.figure.as_str()) && row.doubt.is_none())
}

/// Factor by which a figure must grow to be clearly worse.
const WORSE: f64 = 1.25;

/// Factor by which a figure must shrink to end a finding.
const ENDS: f64 = 2.0;

/// Whether a finding that only the twin shows appears: a figure that it rests on gets clearly worse.
fn worsens(rule: &str, rows: &[Row]) -> bool {
    let Some((_, names)) = RESTS_ON.iter().find(|(name, _)| *name == rule) else { return false };
    let rests = rows.iter().filter(|row| names.contains(&row.figure.as_str()));
    rests.filter(|row| row.better == Better::Less && row.worsens()).any(|row| row.then > WORSE * row.now)
}

/// What rules find: in the twin as it is, in the changed one, and in the recording.
struct Judged<'a> {
    now: &'a Shown,
    then: &'a Shown,
    recorded: &'a [Seen],
    rows: &'a [Row],
}

impl Judged<'_> {
    /// The findings of which it is not certain whether they are there after the change.
    fn uncertain(&self, results: &[(Run, Shown)], appear: &[Seen], lasting: &[Seen]) -> Vec<Seen> {
        let has = |seen: &[Seen], rule: &str| seen.iter().any(|one| one.rule == rule);
        let diagnosed: Vec<&Shown> = results
            .iter()
            .filter(|(run, shown)| run.is_changed && run.trial.diagnosed && !shown.is_cut)
            .map(|(_, shown)| shown)
            .collect();
        let mut uncertain: Vec<Seen> = Vec::new();
        let others = diagnosed.iter().flat_map(|shown| &shown.seen);
        for seen in self.recorded.iter().chain(&self.now.seen).chain(&self.then.seen).chain(others) {
            let rule = seen.rule;
            if has(&uncertain, rule) {
                continue;
            }
            let (is_now, is_then) = (has(&self.now.seen, rule), has(&self.then.seen, rule));
            let is_unanimous = !diagnosed.is_empty() && diagnosed.iter().all(|shown| has(&shown.seen, rule) == is_then);
            let is_certain = match (has(self.recorded, rule), is_now) {
                _ if self.then.unchecked.contains(&rule) => false,
                // It lacked an input before the change and lacks none after it: the rule says that nothing is there, as in the
                // recording.
                (false, _) if self.now.unchecked.contains(&rule) => true,
                // The twin is like the recording.
                (true, true) | (false, false) => is_unanimous,
                // It lacks the finding: the changed twin may lack it for the same reason.
                (true, false) => {
                    (is_then && is_unanimous) || (has(lasting, rule) && rests(rule, self.rows)) || ends(rule, self.rows)
                }
                // It has one too many.
                (false, true) => !is_then || has(appear, rule) || !worsens(rule, self.rows),
            };
            if !is_certain {
                uncertain.push(seen.clone());
            }
        }
        uncertain
    }
}

/// Whether a figure that a finding rests on gets so much better, over its whole interval, that the finding ends, though the
/// twin does not show it.
fn ends(rule: &str, rows: &[Row]) -> bool {
    let Some((_, names)) = RESTS_ON.iter().find(|(name, _)| *name == rule) else { return false };
    let rests = rows.iter().filter(|row| names.contains(&row.figure.as_str()));
    let improve = |row: &&Row| row.better == Better::Less && row.improves() && row.is_certain();
    rests.filter(improve).any(|row| row.now > ENDS * row.then)
}

/// Values of a figure before and after the change, of runs that are otherwise equal.
fn pairs(name: &str, results: &[(Run, Shown)]) -> Vec<(f64, f64)> {
    let value = |shown: &Shown| shown.figures.get(name).copied();
    let is_like = |run: &Run, of: &Run| {
        (run.demand, run.trial.seed, run.trial.device_percent) == (of.demand, of.trial.seed, of.trial.device_percent)
    };
    let changed = |of: &Run| results.iter().find(|(run, _)| run.is_changed && is_like(run, of));
    results
        .iter()
        .filter(|(run, _)| !run.is_changed)
        .filter_map(|(run, now)| Some((value(now)?, value(&changed(run)?.1)?)))
        .collect()
}

/// Smallest error given with a prediction.
const ERROR_MIN: f64 = 0.05;

/// Distance of a real kernel beyond the runs and the back-test in nine of ten predictions, as a logarithm: from
/// `floodline-dev predict-truth --calibrate` on recordings of real kernels. `docs/predict.md` reports how well such
/// widths hold on other scenarios.
const SPREAD: &[(&str, f64)] = &[
    ("durable.longest_wait_seconds", 1.239),
    ("durable.p99_wait_seconds", 1.543),
    ("longest_write_wait_seconds", 3.261),
    ("host.dirty_peak_bytes", 0.341),
    ("host.dirtied_bytes", 0.703),
    ("devices.written_bytes", 0.378),
    ("smallest_budget_bytes", 0.027),
];
/// Distance for figures that too few recordings of real kernels have: from all figures together.
const SPREAD_OF_OTHERS: f64 = 0.695;

/// Distance for waits that the recording does not have: the twin then assumes which programs sync, and when. It holds nine of
/// ten such waits of the generated hosts that `floodline-dev predict-truth --model` predicts.
const SPREAD_OF_UNMEASURED: &[(&str, f64)] =
    &[("durable.longest_wait_seconds", 3.0), ("durable.p99_wait_seconds", 3.0)];

/// Factor by which the interval of a figure is wider than its runs and its back-test, as a logarithm. `is_measured` tells
/// whether the recording has the figure.
pub fn spread(figure: &str, is_measured: bool) -> f64 {
    let of = |list: &[(&str, f64)]| list.iter().find(|(name, _)| *name == figure).map(|(_, spread)| *spread);
    let unmeasured = if is_measured { None } else { of(SPREAD_OF_UNMEASURED) };
    unmeasured.or_else(|| of(SPREAD)).unwrap_or(SPREAD_OF_OTHERS)
}

/// A figure to predict.
struct Of<'a> {
    name: &'a str,
    label: &'a str,
    unit: &'static str,
    better: Better,
    least: f64,
}

/// The figure that is arithmetic: no run and no back-test decides it.
const SMALLEST_BUDGET: &str = "smallest_budget_bytes";

/// The row of the smallest cgroup limit, from all cgroups of the recording.
fn limits_row(of: &Of<'_>, (now, then): (f64, f64)) -> Row {
    let wider = spread(of.name, true).exp();
    let (low, high) = (then / wider, then * wider);
    Row {
        better: of.better,
        is_measured: true,
        low,
        high,
        least: of.least,
        ..Row::new(of.name, of.label, of.unit, now, then)
    }
}

/// Factor from a figure of the twin to that of its recording. Every command that shows a figure of a changed twin applies it.
pub(crate) fn scale(tested: Option<&backtest::Figure>, sim_now: f64, least: f64) -> f64 {
    match tested {
        // A value near zero is not a base for scaling.
        Some(figure)
            if figure.is_predictable() && sim_now > 0.0 && figure.real > least && figure.name != SMALLEST_BUDGET =>
        {
            figure.real / sim_now
        }
        _ => 1.0,
    }
}

fn row(of: &Of<'_>, measured: &Measured, results: &[(Run, Shown)], closed: Option<(&Shown, &Shown)>) -> Option<Row> {
    let &Of { name, label, unit, better, least } = of;
    let pairs = pairs(name, results);
    let &(sim_now, sim_then) = pairs.first()?;
    if sim_now == 0.0 && sim_then == 0.0 {
        return None;
    }
    let tested = measured.back_test.iter().find(|figure| figure.name == name);
    // A limit is arithmetic: it does not scale with the error of a run.
    let is_arithmetic = name == SMALLEST_BUDGET;
    let scale = scale(tested, sim_now, least);
    let now = tested.map_or(sim_now, |figure| figure.real);
    let then = sim_then * scale;
    let all = || pairs.iter().map(|(_, then)| then * scale);
    let error = if is_arithmetic { 0.0 } else { tested.map_or(ERROR_MIN, |figure| figure.off_share).max(ERROR_MIN) };
    // Small values differ by an amount rather than by a share.
    let wider = spread(name, tested.is_some()).exp();
    let low = all().reduce(f64::min).unwrap_or(then) / (1.0 + error);
    let low = ((low + least) / wider - least).max(0.0).min(low);
    let high = all().reduce(f64::max).unwrap_or(then) * (1.0 + error);
    let high = (high + least) * wider - least;
    let differ = |one, other| differ(least, one, other);
    let of = |figures: &Figures| figures.get(name).copied();
    let disagree = closed.and_then(|(now, then)| of(&now.figures).zip(of(&then.figures))).is_some_and(|(now, then)| {
        differ(sim_now, sim_then) && differ(now, then) && (sim_then > sim_now) != (then > now)
    });
    let doubt = match tested {
        Some(figure) if !figure.is_predictable() => Some(Doubt::BackTest),
        _ if disagree => Some(Doubt::Demand),
        _ => None,
    };
    let (is_measured, off_share) = (tested.is_some(), tested.map(|figure| figure.off_share));
    Some(Row { better, is_measured, low, high, off_share, least, doubt, ..Row::new(name, label, unit, now, then) })
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
            "The recording has no {}: delay accounting is off. The figure is the twin's own and leads nowhere.",
            waits.label
        ));
    }
    let unknown: Vec<&str> =
        twin.ceilings.iter().filter(|ceiling| !ceiling.is_known).map(|ceiling| ceiling.device.as_str()).collect();
    if !unknown.is_empty() {
        notes.push(format!(
            "{} never saturated here: the prediction holds up to the speed that was seen.",
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
                [seen] => format!(" {} stays, as no figure that it rests on gets better.", seen.rule),
                many => {
                    let rules: Vec<&str> = many.iter().map(|seen| seen.rule).collect();
                    format!(" {} stay, as no figure that they rest on gets better.", rules.join(", "))
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

    /// The row of a figure: the twin shows `sim` before and after a change, and the recording has `real`.
    fn predicted(name: &str, real: f64, sim: (f64, f64)) -> Row {
        let named = crate::shown::figure(name).expect("it is one");
        let of =
            Of { name: named.name, label: named.label, unit: named.unit, better: named.better, least: named.least() };
        let shown = |value| Shown { figures: Figures::from([(name.to_owned(), value)]), ..Shown::default() };
        let run = |is_changed| Run { demand: 0, is_changed, trial: Trial::NOMINAL };
        let results = [(run(false), shown(sim.0)), (run(true), shown(sim.1))];
        let off_share = (sim.0 - real).abs() / real;
        let tested = backtest::Figure { name: name.to_owned(), unit: named.unit, real, simulated: sim.0, off_share };
        let measured = Measured { back_test: vec![tested], seen: Vec::new() };
        super::row(&of, &measured, &results, None).expect("it is predicted")
    }

    #[test]
    fn an_interval_is_as_wide_as_real_kernels_differ_from_the_model() {
        let row = predicted("host.dirty_peak_bytes", 100e6, (100e6, 50e6));
        assert!(row.low < 50e6 / 1.3 && row.high > 50e6 * 1.3, "{row:?}");
        assert!(row.low > 50e6 / 2.0 && row.high < 50e6 * 2.0, "{row:?}");
        // A value near zero may turn out to be just noticeable, and no wait is negative.
        let row = predicted("durable.longest_wait_seconds", 1.0, (1.0, 0.001));
        assert!(row.low == 0.0 && row.high > 0.02 && row.high < 0.2, "{row:?}");
        // A limit is arithmetic, but memory changes from day to day.
        let row = predicted("smallest_budget_bytes", 64e6, (64e6, 32e6));
        assert!(row.low < 32e6 && row.high > 32e6 && row.high < 34e6, "{row:?}");
    }

    #[test]
    fn what_is_next_to_nothing_now_is_no_measure_of_what_comes() {
        let now = 0.9 * crate::shown::figure("devices.written_bytes").expect("it is one").least();
        let row = predicted("devices.written_bytes", now, (now / 0.9, 300e6));
        assert_eq!((row.then, row.doubt), (300e6, None));
    }

    #[test]
    fn a_finding_that_the_twin_lacks_stays_unless_what_it_rests_on_gets_better() {
        let wait = |then| row("durable.longest_wait_seconds", "longest fsync", "seconds", 2.0, then);
        assert!(lasts("fsync-behind-writeback", &[wait(2.0)]));
        assert!(lasts("fsync-behind-writeback", &[wait(3.0)]));
        assert!(!lasts("fsync-behind-writeback", &[wait(1.0)]));
        let unknown = Row { doubt: Some(Doubt::BackTest), ..wait(2.0) };
        assert!(lasts("fsync-behind-writeback", std::slice::from_ref(&unknown)));
        assert!(!rests("fsync-behind-writeback", &[unknown]), "no figure that it rests on is predicted");
        assert!(!lasts("contradictory-dirty-settings", &[wait(2.0)]), "it rests on no figure");
    }

    #[test]
    fn a_finding_that_only_the_twin_shows_appears_if_what_it_rests_on_gets_worse() {
        let wait = |then| row("durable.longest_wait_seconds", "longest fsync", "seconds", 0.6, then);
        assert!(worsens("fsync-behind-writeback", &[wait(8.0)]));
        assert!(!worsens("fsync-behind-writeback", &[wait(0.7)]));
        assert!(!worsens("fsync-behind-writeback", &[wait(0.1)]));
        assert!(!worsens("dirty-data-at-risk", &[wait(8.0)]), "it rests on another figure");
    }

    #[test]
    fn a_finding_is_certain_where_the_twin_is_like_the_recording_and_all_runs_agree() {
        let cliff = || vec![Seen { rule: "dirty-cliff", severity: Severity::Warning }];
        let with = |seen: Vec<Seen>| Shown { seen, ..Shown::default() };
        let run = |seed| Run { demand: 0, is_changed: true, trial: Trial { seed, ..Trial::NOMINAL } };
        let check = |(recorded, now, then): (Vec<Seen>, Vec<Seen>, [Vec<Seen>; 2]), expect: bool| {
            let [first, other] = then.map(with);
            let (now, results) = (with(now), [(run(0), first.clone()), (run(1), other)]);
            let judged = Judged { now: &now, then: &first, recorded: &recorded, rows: &[] };
            assert_eq!(judged.uncertain(&results, &[], &[]).is_empty(), expect, "{recorded:?} {now:?} {results:?}");
        };
        check((cliff(), cliff(), [cliff(), cliff()]), true);
        check((cliff(), cliff(), [cliff(), Vec::new()]), false);
        check((Vec::new(), Vec::new(), [Vec::new(), cliff()]), false);
        check((cliff(), Vec::new(), [Vec::new(), Vec::new()]), false);
        check((Vec::new(), Vec::new(), [Vec::new(), Vec::new()]), true);
    }

    #[test]
    fn a_new_critical_finding_leads_before_less_data_at_risk() {
        let rows = vec![row("host.dirty_peak_bytes", "peak data at risk", "bytes", 24.0 * 1048576.0, 12.0 * 1048576.0)];
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
        let risk = || row("host.dirty_peak_bytes", "peak data at risk", "bytes", 24.0 * 1048576.0, 12.0 * 1048576.0);
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
    fn a_total_of_waits_that_only_the_twin_has_does_not_lead() {
        let waits = Row { is_measured: false, ..row("stall_seconds", "waits of all tasks", "seconds", 4.7, 2.0) };
        let risk = row("host.dirty_peak_bytes", "peak data at risk", "bytes", 24.0 * 1048576.0, 12.0 * 1048576.0);
        assert_eq!(
            headline(&prediction(Some(0.1), vec![waits, risk])),
            "It helps: peak data at risk 24.0 MiB → about 12.0 MiB."
        );
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
    fn longer_waits_lead_before_less_data_at_risk() {
        let rows = vec![
            row("stall_seconds", "waits of all tasks", "seconds", 0.0, 45.0),
            row("host.dirty_peak_bytes", "peak data at risk", "bytes", 24.0 * 1048576.0, 12.0 * 1048576.0),
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
