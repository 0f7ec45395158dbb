// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings tried on a twin: first a grid, then a search around the best. Constraints come first (data at risk,
//! smallest cgroup limit, longest pause), then the goal, as the worst regret over the parts of the recording, then the
//! bytes written. The host as it is and the kernel's default are always candidates. Pure: the program runs the
//! candidates.

use crate::Twin;
use crate::backtest::Figure;
use crate::changed::{Changed, Host, change, kernel_default};
use crate::plan::{changed, plan, undo as undo_of};
use crate::predict::{Measured, journald, scale};
use crate::shown::{Figures, Shown, Trial, figure};
use crate::thresholds::{Thresholds, least_limit};
use floodline_analysis::advice::{Advice, Constraints, Goal, SCHEMA, Tried};
use floodline_analysis::prediction::{Doubt, PEAK, Prediction, Setting, WAITS};
use floodline_record::human;
use floodline_record::window::Window;
use std::collections::BTreeSet;

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
    /// The changed twin.
    pub changed: Changed,
}

impl Candidate {
    /// Options of its run.
    pub const TRIAL: Trial = Trial { diagnosed: false, ..Trial::NOMINAL };
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
        Search { twin, window, wanted, journald, tried, known, rounds: 0, back_test: Vec::new(), least_limit }
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
        Some(value * scale(tested, now, figure(name).map_or(0.0, |figure| figure.least())))
    }

    /// Returns a candidate that was not tried before; `None` if the kernel refuses it, it changes nothing, or its
    /// thresholds are useless.
    fn candidate(&mut self, settings: Vec<Setting>, label: Option<&str>) -> Option<Candidate> {
        let is_good = |set: Thresholds| set.can_be_advised(self.window, self.least_limit);
        if !settings.is_empty() && !Thresholds::of(self.window, &settings).is_none_or(is_good) {
            return None;
        }
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
        Some(Candidate { settings, label, changed })
    }

    /// Returns the next candidates to run, none when the search is over. `plan` holds the settings of doctor's plan.
    pub fn next(&mut self, plan: &[Setting]) -> Vec<Candidate> {
        let left = self.wanted.most.saturating_sub(self.tried.len());
        let mut next = Vec::new();
        if self.tried.is_empty() {
            next.extend(self.candidate(Vec::new(), Some("as it is")));
            next.extend(self.candidate(kernel_default(), Some("kernel default")));
            if !plan.is_empty() {
                next.extend(self.candidate(plan.to_vec(), None));
            }
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
            value("stall_seconds").max(value("durable.longest_wait_seconds"))
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
                at_risk_bytes: of(shown, "host.dirty_peak_bytes").unwrap_or(0.0),
                stall_seconds: of(shown, WAITS).unwrap_or(0.0),
                longest_wait_seconds: of(shown, "durable.longest_wait_seconds"),
                pause_seconds: of(shown, "longest_write_wait_seconds").unwrap_or(0.0),
                written_bytes: of(shown, "devices.written_bytes").unwrap_or(0.0),
                throughput: programs.map(|(_, rate)| rate).sum(),
                smallest_budget_bytes: of(shown, "smallest_budget_bytes"),
                regret_seconds: regrets.fold(0.0, f64::max),
                breaks: None,
                on_curve: false,
            };
            one.breaks = breaks(&one, &constraints);
            tried.push(one);
        }
        let beats = |one: &Tried, other: &Tried| {
            one.at_risk_bytes <= other.at_risk_bytes
                && one.stall_seconds <= other.stall_seconds
                && (one.at_risk_bytes < other.at_risk_bytes || one.stall_seconds < other.stall_seconds)
        };
        let on_curve: Vec<bool> = tried.iter().map(|one| !tried.iter().any(|other| beats(other, one))).collect();
        tried.iter_mut().zip(on_curve).for_each(|(one, on_curve)| one.on_curve = on_curve);
        let allowed = tried.iter().enumerate().filter(|(at, one)| *at == 0 || one.breaks.is_none());
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

    fn constraints(&self, as_is: &Shown) -> Constraints {
        let of = |name: &str| self.value(as_is, name);
        let at_risk = of("host.dirty_peak_bytes").unwrap_or(0.0);
        // Bytes that the fastest device writes in ten seconds.
        let ceilings = self.twin.ceilings.iter().filter_map(|ceiling| ceiling.write_bytes_per_second);
        let drained = ceilings.fold(0.0, f64::max) * 10.0;
        let default = match self.wanted.goal {
            Goal::Safety => at_risk,
            Goal::Latency => (at_risk * 1.1).max(drained),
            Goal::Throughput => (at_risk * 1.1).max(3.0 * drained),
        };
        let budget = of("smallest_budget_bytes");
        Constraints {
            at_risk_bytes: self.wanted.at_risk_bytes.map_or(default, |bytes| bytes as f64),
            // A budget that is already smaller must not shrink further.
            smallest_budget_bytes: budget.map(|now| now.min(self.wanted.folios as f64 * FOLIO)),
            pause_seconds: self
                .wanted
                .pause_seconds
                .unwrap_or_else(|| of("longest_write_wait_seconds").unwrap_or(0.0).max(PAUSE)),
        }
    }

    /// Returns the best candidate, unless it is the host as it is.
    pub fn best(&self) -> Option<&Candidate> {
        self.judged().1.filter(|at| *at > 0).and_then(|at| self.tried.get(at)).map(|(candidate, _)| candidate)
    }

    /// Returns the advice. `prediction` is that of the best candidate.
    pub fn advice(&self, prediction: Option<Prediction>, measured: &Measured) -> Advice {
        let ((tried, constraints), best) = self.judged();
        let goal = self.wanted.goal;
        let figure = match goal {
            Goal::Latency => "stall_seconds",
            Goal::Throughput => "host.dirtied_bytes",
            Goal::Safety => "host.dirty_peak_bytes",
        };
        let tested = measured.back_test.iter().find(|tested| tested.name == figure).map(|tested| tested.off_share);
        let error_share =
            tested.unwrap_or_else(|| crate::backtest::simulated_error(&measured.back_test).unwrap_or(0.0)).max(0.05);
        let found = best.filter(|at| *at > 0).and_then(|at| Some((at, tried.get(at)?, tried.first()?)));
        let gain_share = found.map(|(_, best, as_is)| gain(goal, best, as_is));
        let unclear = prediction.as_ref().is_some_and(|prediction| {
            prediction.rows.iter().any(|row| row.figure == figure && row.doubt == Some(Doubt::Demand))
        });
        let harm = prediction.as_ref().and_then(harm);
        let small = gain_share.is_none_or(|gain| gain <= error_share);
        let chosen = found.map(|(at, _, _)| at).filter(|_| !small && !unclear && harm.is_none());
        let weighed = Weighed { best: found.map(|(at, ..)| at), chosen, unclear, harm, gain_share, error_share };
        let headline = self.headline(&tried, &weighed, prediction.as_ref());
        let notes = notes(measured, &tried, &constraints, chosen.is_some());
        let plan = chosen.and_then(|at| self.tried.get(at)).map(|(candidate, _)| {
            plan(self.window, &candidate.settings, prediction.as_ref(), measured, constraints.pause_seconds)
        });
        let undo = chosen.and_then(|at| self.tried.get(at));
        let undo = undo.map_or_else(Vec::new, |(candidate, _)| undo_of(self.window, &candidate.settings));
        Advice {
            schema: SCHEMA,
            goal,
            headline,
            constraints,
            tried,
            chosen,
            gain_share,
            error_share,
            prediction,
            plan,
            undo,
            notes,
        }
    }

    /// The advice as one sentence.
    fn headline(&self, tried: &[Tried], weighed: &Weighed, prediction: Option<&Prediction>) -> String {
        let goal = self.wanted.goal;
        let gain = weighed.gain_share.unwrap_or(0.0);
        let best = weighed.best.and_then(|at| tried.get(at)).filter(|_| gain >= GAIN_MIN);
        match (best, weighed.chosen, &weighed.harm) {
            (_, Some(at), _) => {
                let settings = self.tried.get(at).map_or(&[][..], |(candidate, _)| &candidate.settings);
                let changed: Vec<String> =
                    changed(self.window, settings).iter().map(|one| format!("{}={}", one.key, one.value)).collect();
                format!("Set {}: {}.", changed.join(" "), effect(goal, &tried[at], &tried[0], prediction))
            }
            (None, None, _) => format!("Leave it as it is: no other setting serves {} better here.", goal.name()),
            (Some(_), None, _) if weighed.unclear => {
                "No advice: the demand of throttled writers is not known. Record with --trace on.".to_owned()
            }
            (Some(best), None, Some(harm)) => format!("Leave it as it is: with {} {harm}.", best.label),
            // A figure that the twin misses by more than itself says nothing, however much better it looks.
            (Some(_), None, None) if weighed.error_share >= 1.0 => format!(
                "Leave it as it is: the twin misses the figure that decides for {} by {}.",
                goal.name(),
                times_or_percent(weighed.error_share)
            ),
            (Some(best), None, None) => format!(
                "Leave it as it is: {} is better by {}, which is less than the error of the twin ({}).",
                best.label,
                times_or_percent(gain),
                human::percent(weighed.error_share)
            ),
        }
    }
}

/// As many of some candidates as there is room for, from all parts of the list.
fn evenly(all: Vec<Vec<Setting>>, room: usize) -> Vec<Vec<Setting>> {
    let (count, room) = (all.len(), room.min(all.len()));
    // The first candidate of each of `room` equal parts.
    let part = |at: usize| at * room / count.max(1);
    let is_first = |at: usize| room > 0 && (at == 0 || part(at) != part(at - 1));
    all.into_iter().enumerate().filter(|(at, _)| is_first(*at)).map(|(_, one)| one).collect()
}

/// Arguments for and against the best candidate.
struct Weighed {
    /// The best candidate, unless it is the host as it is.
    best: Option<usize>,
    /// The best candidate, if nothing speaks against it.
    chosen: Option<usize>,
    /// Whether the demand is too uncertain to determine the direction.
    unclear: bool,
    /// What would get worse: a new finding, or a wait.
    harm: Option<String>,
    /// Improvement of the best candidate, and the error of the back-test, as shares.
    gain_share: Option<f64>,
    error_share: f64,
}

/// Notes to an advice: the reliability of the twin, and the candidates that the constraints excluded.
fn notes(measured: &Measured, tried: &[Tried], constraints: &Constraints, is_chosen: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let missed = crate::backtest::simulated_error(&measured.back_test).unwrap_or(0.0);
    if !is_chosen && missed > crate::backtest::MISS_MAX {
        notes.push(format!(
            "Not reliable: the twin misses this recording by {} (median). Record for longer, with --trace on.",
            human::percent(missed)
        ));
    }
    let breaking = tried.iter().filter(|one| one.breaks.is_some()).count();
    if breaking > 0 {
        notes.push(format!(
            "{} a constraint: at most {} at risk, no write call over {}{}.",
            human::plural(breaking as u64, "candidate breaks", "candidates break"),
            human::bytes(constraints.at_risk_bytes),
            human::seconds(constraints.pause_seconds),
            constraints
                .smallest_budget_bytes
                .map_or_else(String::new, |bytes| format!(", no cgroup limit below {}", human::bytes(bytes)))
        ));
    }
    notes
}

/// Gain below which settings are not better.
const GAIN_MIN: f64 = 0.005;

/// Whether tasks wait longer by more than people notice.
fn is_longer(now: f64, then: f64) -> bool {
    then > now * 1.05 + 0.2
}

/// What a change makes worse by its own prediction: a finding that appears, or the total of waits.
fn harm(prediction: &Prediction) -> Option<String> {
    let waits = || prediction.rows.iter().find(|row| row.figure == WAITS && row.worsens());
    let appears = prediction.appear.first().map(|seen| format!("a new finding appears, {}", seen.rule));
    appears.or_else(|| Some(format!("tasks wait longer: {}", waits()?.sentence())))
}

/// A share for people: a multiple where it is large.
fn times_or_percent(share: f64) -> String {
    if share >= 10.0 { format!("more than {:.0} times", share.floor()) } else { human::percent(share) }
}

fn breaks(one: &Tried, constraints: &Constraints) -> Option<&'static str> {
    let is_less =
        |bytes: Option<f64>, least: Option<f64>| bytes.zip(least).is_some_and(|(bytes, least)| bytes < least * 0.99);
    if one.at_risk_bytes > constraints.at_risk_bytes * 1.01 {
        return Some("data at risk");
    }
    if is_less(one.smallest_budget_bytes, constraints.smallest_budget_bytes) {
        return Some("smallest cgroup limit");
    }
    (one.pause_seconds > constraints.pause_seconds * 1.01).then_some("longest pause")
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

/// What the advised settings do, by the figures of their prediction.
fn effect(goal: Goal, best: &Tried, as_is: &Tried, prediction: Option<&Prediction>) -> String {
    let row = |name: &str| prediction.and_then(|prediction| prediction.rows.iter().find(|row| row.figure == name));
    let pair = |name: &str, now: f64, then: f64| match row(name) {
        Some(row) if row.doubt.is_none() => (row.now, row.then, ""),
        Some(_) => (now, then, " (in the model only)"),
        None => (now, then, ""),
    };
    let (now, then, only) = pair(PEAK, as_is.at_risk_bytes, best.at_risk_bytes);
    let risk = format!("data at risk {} → {}{only}", human::bytes(now), human::bytes(then));
    let (now, then, only) = pair(WAITS, as_is.stall_seconds, best.stall_seconds);
    let stall = format!("tasks wait {} → {}{only}", human::seconds(now), human::seconds(then));
    match goal {
        Goal::Latency => format!("{stall}, {risk}"),
        Goal::Safety => format!("{risk}, {stall}"),
        Goal::Throughput => format!(
            "throughput {} → {}, {stall}",
            human::bytes_per_second(as_is.throughput),
            human::bytes_per_second(best.throughput)
        ),
    }
}

/// Settings near others: each number a half, three quarters, one and a half times and twice as large.
fn around(best: &[Setting]) -> Vec<Vec<Setting>> {
    let mut near = Vec::new();
    for (at, setting) in best.iter().enumerate() {
        let Ok(value) = setting.value.parse::<u64>() else { continue };
        for (times, by) in [(1, 2), (3, 4), (3, 2), (2, 1)] {
            let Some(changed) = value.checked_mul(times).map(|value| value / by).filter(|value| *value > 0) else {
                continue;
            };
            // Rounded to whole MiB for readability.
            let changed = if changed > 4 << 20 { changed >> 20 << 20 } else { changed };
            let mut settings = best.to_vec();
            settings[at].value = changed.to_string();
            near.push(settings);
        }
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::prediction::Row;

    #[test]
    fn candidates_are_chosen_from_all_parts_of_the_grid() {
        let all = |count: u64| (0..count).map(|at| vec![Setting::new("vm.dirty_bytes", at)]).collect::<Vec<_>>();
        let chosen = |count, room| {
            evenly(all(count), room).iter().filter_map(|one| one[0].value.parse::<u64>().ok()).collect::<Vec<_>>()
        };
        assert_eq!(chosen(3, 10), [0, 1, 2]);
        assert_eq!(chosen(6, 3), [0, 2, 4]);
        assert_eq!(chosen(159, 150).len(), 150);
        assert!(chosen(159, 150).contains(&158));
        assert_eq!(chosen(5, 0), [0; 0]);
        assert_eq!(chosen(0, 5), [0; 0]);
    }

    fn tried(stall_seconds: f64) -> Tried {
        Tried {
            settings: Vec::new(),
            label: "as it is".to_owned(),
            at_risk_bytes: 64e6,
            stall_seconds,
            longest_wait_seconds: None,
            pause_seconds: 0.0,
            written_bytes: 0.0,
            throughput: 0.0,
            smallest_budget_bytes: None,
            regret_seconds: 0.0,
            breaks: None,
            on_curve: false,
        }
    }

    fn predicted(row: Row) -> Prediction {
        let kernel = floodline_record::version::KernelVersion::new(6, 12, 0);
        Prediction { rows: vec![row], ..Prediction::new(Vec::new(), kernel) }
    }

    #[test]
    fn the_first_sentence_has_the_figures_of_the_prediction() {
        let waits = Row::new(WAITS, "waits of all tasks", "seconds", 0.026, 9.09);
        let told = effect(Goal::Safety, &tried(9.3), &tried(9.2), Some(&predicted(waits.clone())));
        assert!(told.contains("tasks wait 26.0 ms → 9.09 s"), "{told}");
        let doubtful = predicted(Row { doubt: Some(Doubt::BackTest), ..waits });
        let told = effect(Goal::Safety, &tried(9.3), &tried(9.2), Some(&doubtful));
        assert!(told.contains("tasks wait 9.20 s → 9.30 s (in the model only)"), "{told}");
    }

    #[test]
    fn a_plan_whose_own_figure_has_longer_waits_is_none() {
        let waits =
            |then| predicted(Row { least: 0.2, ..Row::new(WAITS, "waits of all tasks", "seconds", 0.026, then) });
        assert!(harm(&waits(9.09)).is_some_and(|why| why.contains("tasks wait longer")));
        assert_eq!(harm(&waits(0.02)), None);
        assert!(is_longer(0.026, 9.09) && !is_longer(9.2, 9.3));
    }

    #[test]
    fn a_gain_is_said_as_a_multiple_where_a_percentage_is_out_of_proportion() {
        assert_eq!(times_or_percent(382.79), "more than 382 times");
        assert_eq!(times_or_percent(0.2), "20 %");
    }
}
