// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings tried on a twin: first a grid, then a search around the best. Constraints come first (data at risk,
//! smallest cgroup limit, longest pause), then the goal, as the worst regret over the parts of the recording, then the
//! bytes written. The host as it is, the kernel's default and what `doctor` prints are always candidates. Pure: the program
//! runs the candidates. The text about them is in `advise/told.rs`.

mod near;
mod told;

pub use self::told::Doctor;

use self::near::{around, evenly};
use crate::Twin;
use crate::backtest::Figure;
use crate::changed::{Changed, Host, change, kernel_default};
use crate::noticed::least;
use crate::plan::{commands, plan, undo as undo_of};
use crate::predict::{Measured, journald, scale};
use crate::shown::{Figures, Shown, Trial};
use crate::thresholds::{Thresholds, least_limit, risk_room};
use floodline_analysis::advice::{Advice, Constraints, Goal, SCHEMA, Tried};
use floodline_analysis::judgement::{Harm, Verdict};
use floodline_analysis::prediction::{
    Doubt, LONGEST, LONGEST_WRITE, PEAK, Prediction, SMALLEST_BUDGET, Setting, WAITS, WRITTEN,
};
use floodline_record::window::Window;
use std::collections::{BTreeMap, BTreeSet};

/// Folios of 2 MiB that the smallest cgroup limit should hold.
pub const FOLIOS: u64 = 4;
const FOLIO: f64 = 2_097_152.0;
/// Pause of a write call that is always allowed, seconds.
const PAUSE: f64 = 0.2;
/// Rounds of the search around the best.
const ROUNDS: usize = 3;

/// Goal and constraints of the advice.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The goal.
    pub goal: Goal,
    /// Most bytes at risk. By default the current bytes at risk, or those that the goal needs.
    pub at_risk_bytes: Option<u64>,
    /// Folios of 2 MiB that the smallest cgroup limit holds.
    pub folios: u64,
    /// Longest pause of a write call, seconds.
    pub pause_seconds: Option<f64>,
    /// Most settings that are tried.
    pub most: usize,
}

/// One candidate.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its settings; empty for the host as it is.
    pub settings: Vec<Setting>,
    label: String,
    /// Whether it is a change that `doctor` prints. What that costs is told, and only a constraint that was asked for excludes it.
    is_of_doctor: bool,
    /// Whether only the first part of its run was simulated, and the rest was extrapolated.
    is_extrapolated: bool,
    /// The changed twin.
    pub changed: Changed,
}

impl Candidate {
    /// Options of its run.
    pub const TRIAL: Trial = Trial { diagnosed: false, ..Trial::NOMINAL };

    /// Whether it is a change that `doctor` prints.
    pub(crate) fn is_of_doctor(&self) -> bool {
        self.is_of_doctor
    }

    /// The same candidate, of which only the first part of the run was simulated.
    pub(crate) fn extrapolated(self) -> Candidate {
        Candidate { is_extrapolated: true, ..self }
    }
}

/// A search in progress.
pub struct Search<'a> {
    twin: &'a Twin,
    window: &'a Window,
    wanted: Wanted,
    journald: Vec<String>,
    tried: Vec<(Candidate, Shown)>,
    known: BTreeSet<String>,
    rounds: usize,
    /// Candidates whose prediction speaks against them, by number, with the reason in two words.
    excluded: BTreeMap<usize, &'static str>,
    /// The back-test: figures of candidates are scaled to the recording as those of a prediction are.
    back_test: Vec<Figure>,
    /// The smallest limit of the host that is tried, bytes.
    least_limit: f64,
}

impl<'a> Search<'a> {
    /// Starts a search on a twin.
    pub fn new(twin: &'a Twin, window: &'a Window, wanted: Wanted) -> Search<'a> {
        let (tried, known) = (Vec::new(), BTreeSet::new());
        let least_limit = least_limit(window, wanted.folios as f64 * FOLIO);
        let journald = journald(twin);
        let (excluded, back_test) = (BTreeMap::new(), Vec::new());
        Search { twin, window, wanted, journald, tried, known, rounds: 0, excluded, back_test, least_limit }
    }

    /// Takes over the back-test of the host as it is.
    pub fn tested(&mut self, back_test: &[Figure]) {
        self.back_test = back_test.to_vec();
    }

    /// A figure of a candidate, scaled to the recording.
    fn value(&self, shown: &Shown, name: &str) -> Option<f64> {
        let value = shown.figures.get(name).copied()?;
        let now = self.tried.first().and_then(|(_, as_is)| as_is.figures.get(name).copied()).unwrap_or(0.0);
        let tested = self.back_test.iter().find(|figure| figure.name == name);
        Some(value * scale(tested, now, least(name)))
    }

    /// Returns a candidate that was not tried before; `None` if the kernel refuses it, it changes nothing, or its
    /// thresholds are useless.
    fn candidate(&mut self, settings: Vec<Setting>, label: Option<&str>) -> Option<Candidate> {
        let is_good = |set: Thresholds| set.can_be_advised(self.window, self.least_limit);
        if !settings.is_empty() && !Thresholds::of(self.window, &settings).is_none_or(is_good) {
            return None;
        }
        self.of_any_size(settings, label)
    }

    /// The same, whatever the thresholds are: those of `doctor` are tried as they are printed.
    fn of_any_size(&mut self, settings: Vec<Setting>, label: Option<&str>) -> Option<Candidate> {
        let host = Host { window: self.window, journald: &self.journald };
        let changed = match settings.is_empty() {
            true => Changed { scenario: self.twin.scenario.clone(), kernel: self.twin.kernel },
            false => change(&self.twin.scenario, self.twin.kernel, &settings, host).ok()?,
        };
        let key = format!("{:?}", changed.scenario.machine);
        // Settings without effect on the machine may still change its tasks.
        let key = format!("{key}{}", changed.scenario.workload.tasks.len());
        if !self.known.insert(key) {
            return None;
        }
        let words = || settings.iter().map(|one| format!("{}={}", one.key, one.value)).collect::<Vec<_>>().join(" ");
        let label = label.map_or_else(words, str::to_owned);
        Some(Candidate { settings, label, is_of_doctor: false, is_extrapolated: false, changed })
    }

    /// Returns the next candidates to run, none when the search is over. `plans` holds the changes that `doctor` prints.
    pub fn next(&mut self, plans: &[Vec<Setting>]) -> Vec<Candidate> {
        let left = self.wanted.most.saturating_sub(self.tried.len());
        let mut next = Vec::new();
        if self.tried.is_empty() {
            next.extend(self.candidate(Vec::new(), Some("as it is")));
            for plan in plans.iter().filter(|plan| !plan.is_empty()) {
                let candidate = self.of_any_size(plan.clone(), None);
                next.extend(candidate.map(|one| Candidate { is_of_doctor: true, ..one }));
            }
            next.extend(self.candidate(kernel_default(), Some("kernel default")));
            // A quarter is left for the search around the best of them.
            let grid = self.grid();
            let room = (self.wanted.most - self.wanted.most / 4).saturating_sub(next.len());
            for settings in evenly(grid, room) {
                next.extend(self.candidate(settings, None));
            }
        } else if self.rounds < ROUNDS && left > 0 {
            self.rounds += 1;
            let best =
                self.judged().1.and_then(|best| self.tried.get(best)).map(|(candidate, _)| candidate.settings.clone());
            for settings in best.iter().flat_map(|best| around(best)) {
                next.extend(self.candidate(settings, None));
            }
            next.truncate(left);
        }
        next
    }

    /// Takes over the results of candidates.
    pub fn take(&mut self, results: impl IntoIterator<Item = (Candidate, Shown)>) {
        self.tried.extend(results);
    }

    /// Thresholds from small to large, two for each doubling, with the background threshold at a half to an eighth of them,
    /// and two ages.
    fn grid(&self) -> Vec<Vec<Setting>> {
        let memory = self.twin.scenario.machine.memory.bytes();
        let expire = self.window.host.last.dirty_expire_centisecs.map_or(3000, |age| age.0);
        let sizes = (24..44).flat_map(|shift| [1_u64 << shift, 3_u64 << (shift - 1)]);
        let sizes = sizes.filter(|bytes| *bytes <= memory / 5 * 2);
        let ages = || [expire, 1500, 500].into_iter().enumerate().filter(|(at, age)| *at == 0 || *age < expire);
        let mut grid = Vec::new();
        for (_, age) in ages() {
            let aged = |mut settings: Vec<Setting>| {
                if age != expire {
                    settings.push(Setting::new("vm.dirty_expire_centisecs", age));
                }
                settings
            };
            for hard in sizes.clone() {
                for part in [2, 4, 8] {
                    grid.push(aged(vec![
                        Setting::new("vm.dirty_background_bytes", hard / part),
                        Setting::new("vm.dirty_bytes", hard),
                    ]));
                }
            }
            for (hard, background) in [(5, 2), (10, 5), (20, 5), (30, 10), (40, 20)] {
                grid.push(aged(vec![
                    Setting::new("vm.dirty_background_ratio", background),
                    Setting::new("vm.dirty_ratio", hard),
                ]));
            }
        }
        grid
    }

    /// All candidates with their figures and the constraints, and the best of those that meet them.
    fn judged(&self) -> ((Vec<Tried>, Constraints), Option<usize>) {
        let of = |shown: &Shown, name: &str| self.value(shown, name);
        let Some((_, as_is)) = self.tried.first() else {
            let none = Constraints { at_risk_bytes: 0.0, smallest_budget_bytes: None, pause_seconds: 0.0 };
            return ((Vec::new(), none), None);
        };
        let constraints = self.constraints(as_is);
        let stall = |figures: &Figures| {
            let value = |name: &str| figures.get(name).copied().unwrap_or(0.0);
            value("stall_seconds").max(value(LONGEST))
        };
        let parts = as_is.parts.len();
        let least: Vec<f64> = (0..parts)
            .map(|part| {
                let all = self.tried.iter().filter_map(|(_, shown)| shown.parts.get(part)).map(stall);
                all.fold(f64::INFINITY, f64::min)
            })
            .collect();
        let mut tried: Vec<Tried> = Vec::new();
        for (candidate, shown) in &self.tried {
            let regrets = shown.parts.iter().zip(&least).map(|(part, least)| stall(part) - least);
            let programs = shown.figures.iter().filter(|(name, _)| name.starts_with("program "));
            let mut one = Tried {
                settings: candidate.settings.clone(),
                label: candidate.label.clone(),
                at_risk_bytes: of(shown, PEAK).unwrap_or(0.0),
                stall_seconds: of(shown, WAITS).unwrap_or(0.0),
                longest_wait_seconds: of(shown, LONGEST),
                pause_seconds: of(shown, LONGEST_WRITE).unwrap_or(0.0),
                written_bytes: of(shown, WRITTEN).unwrap_or(0.0),
                throughput: programs.map(|(_, rate)| rate).sum(),
                smallest_budget_bytes: of(shown, SMALLEST_BUDGET),
                regret_seconds: regrets.fold(0.0, f64::max),
                breaks: None,
                on_curve: false,
                is_extrapolated: candidate.is_extrapolated,
            };
            one.breaks = breaks(&one, &constraints).filter(|what| !(candidate.is_of_doctor && self.is_price(what)));
            one.breaks = one.breaks.or(self.excluded.get(&tried.len()).copied());
            tried.push(one);
        }
        let beats = |one: &Tried, other: &Tried| {
            !one.is_extrapolated
                && one.at_risk_bytes <= other.at_risk_bytes
                && one.stall_seconds <= other.stall_seconds
                && (one.at_risk_bytes < other.at_risk_bytes || one.stall_seconds < other.stall_seconds)
        };
        let on_curve: Vec<bool> = tried.iter().map(|one| !tried.iter().any(|other| beats(other, one))).collect();
        tried.iter_mut().zip(on_curve).for_each(|(one, on_curve)| one.on_curve = on_curve && !one.is_extrapolated);
        let is_allowed = |one: &Tried| one.breaks.is_none() && !one.is_extrapolated;
        let allowed = tried.iter().enumerate().filter(|(at, one)| *at == 0 || is_allowed(one));
        let stalled = tried.first().map_or(0.0, |one| one.stall_seconds);
        // Nothing is an improvement for which tasks wait longer, by the figure that people are shown.
        let allowed = allowed.filter(|(at, one)| *at == 0 || !is_longer(stalled, one.stall_seconds));
        let best = allowed.min_by(|(a_at, a), (b_at, b)| {
            let key = |one: &Tried| rank(self.wanted.goal, one);
            let (a_key, b_key) = (key(a), key(b));
            // Of equals the earlier: nothing changes without need.
            a_key.iter().zip(&b_key).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(a_at.cmp(b_at))
        });
        let best = best.map(|(at, _)| at);
        ((tried, constraints), best)
    }

    /// Waits of a run, seconds, as the candidates are compared by them; `None` if it breaks a constraint.
    pub(crate) fn stall_if_allowed(&self, shown: &Shown) -> Option<f64> {
        let (_, as_is) = self.tried.first()?;
        let of = |name: &str| self.value(shown, name);
        let breaks = Levels {
            at_risk_bytes: of(PEAK).unwrap_or(0.0),
            smallest_budget_bytes: of(SMALLEST_BUDGET),
            pause_seconds: of(LONGEST_WRITE).unwrap_or(0.0),
        }
        .breaks(&self.constraints(as_is));
        breaks.is_none().then(|| of(WAITS).unwrap_or(0.0))
    }

    /// Whether a constraint is none that was asked for: what a change of `doctor` costs beyond it is told, and judged by its
    /// prediction.
    fn is_price(&self, constraint: &str) -> bool {
        match constraint {
            AT_RISK => self.wanted.at_risk_bytes.is_none(),
            PAUSES => self.wanted.pause_seconds.is_none(),
            _ => self.wanted.folios == FOLIOS,
        }
    }

    fn constraints(&self, as_is: &Shown) -> Constraints {
        let of = |name: &str| self.value(as_is, name);
        let at_risk = of(PEAK).unwrap_or(0.0);
        let default = if self.wanted.goal == Goal::Safety { at_risk } else { risk_room(self.twin, at_risk) };
        let budget = of(SMALLEST_BUDGET);
        Constraints {
            at_risk_bytes: self.wanted.at_risk_bytes.map_or(default, |bytes| bytes as f64),
            // A budget that is already smaller must not shrink further.
            smallest_budget_bytes: budget.map(|now| now.min(self.wanted.folios as f64 * FOLIO)),
            pause_seconds: self.wanted.pause_seconds.unwrap_or_else(|| of(LONGEST_WRITE).unwrap_or(0.0).max(PAUSE)),
        }
    }

    /// Returns the number and the settings of the best candidate, unless it is the host as it is.
    pub fn best(&self) -> Option<(usize, Vec<Setting>)> {
        let at = self.judged().1.filter(|at| *at > 0)?;
        Some((at, self.tried.get(at)?.0.settings.clone()))
    }

    /// The number of the candidate with these settings, if it was tried and meets the constraints.
    pub fn number_of(&self, settings: &[Setting]) -> Option<usize> {
        let at = self.tried.iter().position(|(candidate, _)| candidate.settings == settings)?;
        let is_allowed = |one: &&Tried| one.breaks.is_none() || self.excluded.contains_key(&at);
        self.judged().0.0.get(at).filter(is_allowed).map(|_| at)
    }

    /// The settings of a candidate without one of them each. None for what `doctor` prints: that stays as it is printed.
    pub fn fewer(&self, at: usize) -> Vec<Vec<Setting>> {
        let candidate = self.tried.get(at).map(|(candidate, _)| candidate).filter(|one| !one.is_of_doctor);
        let all = candidate.map_or(&[][..], |one| &one.settings).to_vec();
        let without =
            |left: usize| all.iter().enumerate().filter(move |(at, _)| *at != left).map(|(_, one)| one.clone());
        let parts = if all.len() > 1 { all.len() } else { 0 };
        (0..parts).map(|left| without(left).collect()).collect()
    }

    /// A candidate of these settings, unless it was tried.
    pub fn untried(&mut self, settings: &[Setting]) -> Option<Candidate> {
        self.candidate(settings.to_vec(), None)
    }

    /// Whether people notice no difference between the figures of two candidates.
    pub fn is_alike(&self, one: usize, other: usize) -> bool {
        let Some(((_, one), (_, other))) = self.tried.get(one).zip(self.tried.get(other)) else { return false };
        let is_near = |(name, value): (&String, &f64)| {
            other.figures.get(name).is_some_and(|other| (value - other).abs() <= least(name))
        };
        one.figures.len() == other.figures.len() && one.figures.iter().all(is_near)
    }

    /// Excludes a candidate whose prediction speaks against it, so that the next best one is considered.
    pub fn exclude(&mut self, at: usize, why: &Against) {
        self.excluded.insert(at, why.short);
    }

    /// Takes back an exclusion.
    pub fn admit(&mut self, at: usize) {
        self.excluded.remove(&at);
    }

    /// Whether a candidate is better than the host as it is by more than the error of the twin.
    pub fn is_clear_gain(&self, at: usize, measured: &Measured) -> bool {
        let ((tried, _), _) = self.judged();
        let Some((one, as_is)) = tried.get(at).zip(tried.first()) else { return false };
        // People notice neither a wait of a few milliseconds less nor a few kilobytes.
        let is_noticed = match self.wanted.goal {
            Goal::Latency => as_is.stall_seconds - one.stall_seconds > least(WAITS),
            Goal::Safety => as_is.at_risk_bytes - one.at_risk_bytes > least(PEAK),
            Goal::Throughput => true,
        };
        let gain = gain(self.wanted.goal, one, as_is);
        is_noticed && gain > self.error_share(measured) && gain >= GAIN_MIN
    }

    fn error_share(&self, measured: &Measured) -> f64 {
        let figure = figure_of(self.wanted.goal);
        let tested = measured.back_test.iter().find(|tested| tested.name == figure).map(|tested| tested.off_share);
        tested.unwrap_or_else(|| crate::backtest::simulated_error(&measured.back_test).unwrap_or(0.0)).max(0.05)
    }

    /// Returns the advice. `chosen` is the number of the advised candidate.
    pub fn advice(&self, chosen: Option<usize>, told: &Told<'_>) -> Advice {
        let ((tried, constraints), best) = self.judged();
        let (goal, measured) = (self.wanted.goal, told.measured);
        let error_share = self.error_share(measured);
        // If nothing is chosen, the sentence is about what would be best without its prediction.
        let at = chosen.or(told.refused.map(|(at, _)| at)).or(best).filter(|at| *at > 0);
        let gain_share = at.and_then(|at| Some(gain(goal, tried.get(at)?, tried.first()?)));
        let headline = self.headline(&tried, (at, chosen), (gain_share, error_share), told);
        let (excluded, is_chosen) = (&self.excluded, chosen.is_some());
        let notes = told::notes((self.twin, measured), &tried, (&constraints, excluded), (is_chosen, told.no_verdict));
        let chosen_settings = chosen.and_then(|at| self.tried.get(at)).map(|(candidate, _)| &candidate.settings[..]);
        let plan = chosen_settings
            .map(|settings| plan(self.window, settings, told.prediction, measured, constraints.pause_seconds));
        let undo = chosen_settings.map_or_else(Vec::new, |settings| undo_of(self.window, settings));
        let (commands, undo_commands) = chosen_settings
            .map_or_else(Default::default, |settings| commands(self.window, settings, &told.doctor.steps));
        let missed = measured.back_test.iter().filter(|figure| !figure.is_predictable());
        Advice {
            schema: SCHEMA,
            goal,
            headline,
            constraints,
            tried,
            chosen,
            gain_share,
            error_share,
            back_test_error: crate::backtest::simulated_error(&measured.back_test),
            missed: missed.map(|figure| figure.name.clone()).collect(),
            no_verdict: told.no_verdict.map(str::to_owned),
            prediction: told.prediction.cloned(),
            plan,
            undo,
            commands,
            undo_commands,
            notes,
            simplified: self.twin.simplified.clone(),
        }
    }
}

/// What a prediction says against a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Against {
    /// For the table.
    short: &'static str,
    /// For a sentence; `None` where the demand of writers is too uncertain to tell.
    long: Option<String>,
}

/// What the prediction of a candidate says against it, by the judgement of every command. `rules` are those that the
/// recording has findings of.
pub fn against(goal: Goal, prediction: &Prediction, rules: &[&str]) -> Option<Against> {
    let row = prediction.rows.iter().find(|row| row.figure == figure_of(goal));
    if row.is_some_and(|row| row.doubt == Some(Doubt::Demand)) {
        return Some(Against { short: "demand unknown", long: None });
    }
    let against = |short, long| Some(Against { short, long: Some(long) });
    if let Some(why) = prediction.rests_on_unseen(rules) {
        return against("unknown limit", why);
    }
    if let Some(why) = prediction.of_sparse(rules) {
        return against("rare samples", why);
    }
    let waits = prediction.losses().into_iter().find(|row| row.unit == "seconds");
    match prediction.verdict(rules) {
        Verdict::Harms => match prediction.harm() {
            Some(Harm::Finding(seen)) => against("new finding", format!("a new finding appears, {}", seen.rule)),
            Some(Harm::Wait(row)) => against("longer waits", format!("tasks wait longer: {}", row.sentence())),
            Some(Harm::RoughWait(row)) => against("longer waits", format!("tasks wait longer: {}", row.roughly_said())),
            Some(Harm::Risk(_)) | None => against("data at risk", "much more data are at risk".to_owned()),
        },
        // Less data at risk and more throughput are goals of their own.
        Verdict::DoesNotHelp if goal == Goal::Latency => match waits {
            Some(row) => against("longer waits", format!("tasks wait longer: {}", row.sentence())),
            None => against("no help", "no wait gets shorter by more than the error of the twin".to_owned()),
        },
        // What doctor prints as a candidate only is none to advise here.
        Verdict::Helps if goal == Goal::Latency => prediction.reserve().and_then(|why| against("not certain", why)),
        // Safety is to make no task wait longer.
        Verdict::DoesNotHelp | Verdict::Helps if goal == Goal::Safety => {
            prediction.may_lengthen().and_then(|why| against("not certain", why))
        }
        Verdict::DoesNotHelp | Verdict::Helps => None,
    }
}

/// Inputs of an advice besides the search.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The prediction of the advised candidate, else that of the best one.
    pub prediction: Option<&'a Prediction>,
    /// Readings of the recording.
    pub measured: &'a Measured,
    /// The best candidate, where its prediction speaks against it.
    pub refused: Option<(usize, &'a Against)>,
    /// Why the twin gives no verdict on this host, if it gives none.
    pub no_verdict: Option<&'a str>,
    /// What `doctor` prints.
    pub doctor: &'a Doctor,
}

/// The figure that decides for a goal.
fn figure_of(goal: Goal) -> &'static str {
    match goal {
        Goal::Latency => WAITS,
        Goal::Throughput => "host.dirtied_bytes",
        Goal::Safety => PEAK,
    }
}

/// The constraints on data at risk and on pauses.
const AT_RISK: &str = "data at risk";
const PAUSES: &str = "longest pause";

/// Gain below which settings are not better.
const GAIN_MIN: f64 = 0.005;

/// Whether tasks wait longer by more than people notice.
fn is_longer(now: f64, then: f64) -> bool {
    then > now * 1.05 + 0.2
}

/// What the constraints are about.
struct Levels {
    at_risk_bytes: f64,
    smallest_budget_bytes: Option<f64>,
    pause_seconds: f64,
}

impl Levels {
    /// The constraint that they break, if any.
    fn breaks(&self, constraints: &Constraints) -> Option<&'static str> {
        let is_less = |bytes: Option<f64>, least: Option<f64>| {
            bytes.zip(least).is_some_and(|(bytes, least)| bytes < least * 0.99)
        };
        if self.at_risk_bytes > constraints.at_risk_bytes * 1.01 {
            return Some(AT_RISK);
        }
        if is_less(self.smallest_budget_bytes, constraints.smallest_budget_bytes) {
            return Some("smallest cgroup limit");
        }
        (self.pause_seconds > constraints.pause_seconds * 1.01).then_some(PAUSES)
    }
}

fn breaks(one: &Tried, constraints: &Constraints) -> Option<&'static str> {
    let Tried { at_risk_bytes, smallest_budget_bytes, pause_seconds, .. } = *one;
    Levels { at_risk_bytes, smallest_budget_bytes, pause_seconds }.breaks(constraints)
}

/// Criteria that decide between candidates, the most important first; less is better. Values that people cannot
/// distinguish are made equal.
fn rank(goal: Goal, one: &Tried) -> [f64; 4] {
    let coarse = |value: f64, step: f64| (value / step).round();
    let (regret, stall) = (coarse(one.regret_seconds, 0.1), coarse(one.stall_seconds, 0.2));
    let written = coarse(one.written_bytes, 4_194_304.0);
    let at_risk = coarse(one.at_risk_bytes, 4_194_304.0);
    match goal {
        Goal::Latency => [regret, stall, written, at_risk],
        Goal::Throughput => [-coarse(one.throughput, 65_536.0), regret, written, at_risk],
        Goal::Safety => [at_risk, regret, stall, written],
    }
}

/// Improvement of a candidate at the goal, as a share of the host as it is.
fn gain(goal: Goal, best: &Tried, as_is: &Tried) -> f64 {
    let less = |then: f64, now: f64| if now > 0.0 { (now - then) / now } else { 0.0 };
    match goal {
        Goal::Latency => less(best.stall_seconds, as_is.stall_seconds),
        Goal::Throughput if as_is.throughput > 0.0 => best.throughput / as_is.throughput - 1.0,
        Goal::Throughput => 0.0,
        Goal::Safety => less(best.at_risk_bytes, as_is.at_risk_bytes),
    }
}
