// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of `advise`: its first sentence, the effect of the advised settings, and the notes. Decides nothing.

use super::{GAIN_MIN, PAUSES, Search, Told};
use crate::Twin;
use crate::noticed::least;
use crate::plan::changed;
use crate::predict::Measured;
use floodline_analysis::advice::{Constraints, Goal, Tried};
use floodline_analysis::prediction::{LONGEST, LONGEST_WRITE, PEAK, Prediction, Setting, WAITS};
use floodline_analysis::report::{Plan, Step};
use floodline_record::human;
use std::collections::BTreeMap;

/// Whether people do not notice what a setting gains. A larger throughput is noticed.
fn is_small(goal: Goal, one: &Tried, as_is: &Tried) -> bool {
    match goal {
        Goal::Latency => as_is.stall_seconds - one.stall_seconds <= least(WAITS),
        Goal::Safety => as_is.at_risk_bytes - one.at_risk_bytes <= least(PEAK),
        Goal::Throughput => false,
    }
}

/// What `doctor` says on the same recording.
#[derive(Clone, Debug, Default)]
pub struct Doctor {
    /// The change that it prints as helping, after its trial on the twin; empty where it prints none.
    pub helps: Vec<Setting>,
    /// The change that it prints without a verdict of the twin, in words: a candidate, or one that follows from arithmetic.
    pub unchecked: Vec<String>,
    /// The steps of all its plans.
    pub steps: Vec<Step>,
}

impl Doctor {
    /// Of a plan as `doctor` prints it. `settings` are those of its steps that a twin can make.
    pub fn of(plan: Option<&Plan>, settings: Vec<Setting>, steps: Vec<Step>) -> Doctor {
        let is_printed = plan.is_some_and(|plan| !plan.now.is_empty());
        let is_tried = plan.is_some_and(|plan| plan.tried.is_some());
        let names = || settings.iter().map(|one| format!("{}={}", one.key, one.value)).collect::<Vec<_>>();
        let candidate = plan.and_then(|plan| plan.candidate.as_ref());
        let unchecked = match (candidate.is_some() || (is_printed && !is_tried), settings.is_empty()) {
            (false, _) => Vec::new(),
            (true, false) => names(),
            (true, true) => {
                plan.map_or_else(Vec::new, |plan| candidate.map_or(&plan.now, |candidate| &candidate.commands).clone())
            }
        };
        Doctor { helps: if is_printed && is_tried { settings } else { Vec::new() }, unchecked, steps }
    }
}

impl Search<'_> {
    /// The advice as one sentence. `at` is the candidate that it is about.
    pub(super) fn headline(
        &self,
        tried: &[Tried],
        (at, chosen): (Option<usize>, Option<usize>),
        (gain, error): (Option<f64>, f64),
        told: &Told<'_>,
    ) -> String {
        let goal = self.wanted.goal;
        if let Some(at) = chosen {
            let settings = self.tried.get(at).map_or(&[][..], |(candidate, _)| &candidate.settings);
            let changed: Vec<String> =
                changed(self.window, settings).iter().map(|one| format!("{}={}", one.key, one.value)).collect();
            return format!("Set {}: {}.", changed.join(" "), effect(goal, &tried[at], &tried[0], told.prediction));
        }
        // What doctor prints without a verdict stands beside this sentence: the host may not be left as it is then.
        let (leave, unchecked) = match told.doctor.unchecked.as_slice() {
            [] => ("Keep the present settings", String::new()),
            all => ("No advice", format!(" floodline doctor prints: {}.", all.join("; "))),
        };
        let gain = gain.unwrap_or(0.0);
        let best = at.and_then(|at| tried.get(at)).filter(|_| gain >= GAIN_MIN);
        let why = match (told.no_verdict, best, told.refused) {
            (Some(why), ..) => return format!("No verdict: {why}.{unchecked}"),
            (_, None, _) if tried.len() > 1 && tried.iter().skip(1).all(|one| one.breaks.is_some()) => {
                "no setting that was tried meets the constraints".to_owned()
            }
            (_, None, _) => format!("no other setting serves {} better here", goal.name()),
            (_, Some(_), Some((_, against))) if against.long.is_none() => {
                return format!(
                    "No advice: the demand of throttled writers is not known. Record with --trace on.{unchecked}"
                );
            }
            (_, Some(best), Some((_, against))) => {
                format!("with {} {}", best.label, against.long.as_deref().unwrap_or_default())
            }
            // A figure that the twin misses by more than itself says nothing, however much better it looks.
            (_, Some(_), None) if error >= 1.0 => {
                format!("the twin misses the figure that decides for {} by {}", goal.name(), times_or_percent(error))
            }
            (_, Some(best), None) if gain > error && is_small(goal, best, &tried[0]) => {
                let by = |now: f64, then: f64, unit: fn(f64) -> String| format!("{} → {}", unit(now), unit(then));
                let (one, now) = (best, &tried[0]);
                let what = match goal {
                    Goal::Safety => format!("data at risk {}", by(now.at_risk_bytes, one.at_risk_bytes, human::bytes)),
                    _ => format!("tasks wait {}", by(now.stall_seconds, one.stall_seconds, human::seconds)),
                };
                format!("with {}, {what}: too little to notice", best.label)
            }
            (_, Some(best), None) if gain > error => {
                format!("{} was not predicted: the search was stopped", best.label)
            }
            (_, Some(best), None) => format!(
                "{} is better by {}, which is less than the error of the twin ({})",
                best.label,
                times_or_percent(gain),
                human::percent(error)
            ),
        };
        format!("{leave}: {why}.{unchecked}")
    }
}

/// Notes to an advice: the reliability of the twin, and the candidates that the constraints excluded.
pub(super) fn notes(
    (twin, measured): (&Twin, &Measured),
    tried: &[Tried],
    (constraints, excluded): (&Constraints, &BTreeMap<usize, &'static str>),
    (is_chosen, no_verdict): (bool, Option<&str>),
) -> Vec<String> {
    let mut notes = Vec::new();
    let missed = crate::backtest::simulated_error(&measured.back_test).unwrap_or(0.0);
    if let Some(excluded) = (!excluded.is_empty()).then_some(excluded.len() as u64) {
        notes.push(format!(
            "{} speaks against it. The table gives the reason.",
            human::plural(
                excluded,
                "setting was better in one run, but its prediction",
                "settings were better in one run, but the prediction of each"
            )
        ));
    }
    if !is_chosen && missed > crate::backtest::MISS_MAX {
        let hint = crate::sparse::hint(twin, &measured.said.seen, missed);
        let hint = hint.as_deref().unwrap_or("Record for longer, with --trace on.");
        let why = format!("the twin misses this recording by {} (median)", human::percent(missed));
        notes.push(match no_verdict {
            // The headline has it.
            Some(told) if told == why => hint.to_owned(),
            _ => format!("Not reliable: {why}. {hint}"),
        });
    }
    let breaking = tried.iter().enumerate();
    let breaking = breaking.filter(|(at, one)| one.breaks.is_some() && !excluded.contains_key(at)).count();
    let pauses = tried.iter().filter(|one| one.breaks == Some(PAUSES)).count() as u64;
    let missed_pause =
        measured.back_test.iter().find(|figure| figure.name == LONGEST_WRITE && !figure.is_predictable());
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
        if let Some(figure) = missed_pause.filter(|_| pauses > 0) {
            notes.push(format!(
                "{} because of the longest write call, which the twin misses by {}: this exclusion is uncertain.",
                human::plural(pauses, "of them is excluded", "of them are excluded"),
                times_or_percent(figure.off_share)
            ));
        }
    }
    notes
}

/// A share for people: a multiple where it is large.
fn times_or_percent(share: f64) -> String {
    if share >= 10.0 { format!("more than {:.0} times", share.floor()) } else { human::percent(share) }
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
    let is_open = row(WAITS).is_some_and(|row| row.doubt.is_none() && !row.is_certain());
    let maybe = if is_open { "maybe " } else { "" };
    let stall = format!("{maybe}tasks wait {} → {}{only}", human::seconds(now), human::seconds(then));
    // The wait that people report first.
    let fsync =
        row(LONGEST).filter(|row| row.improves()).map_or_else(String::new, |row| format!("{}, ", row.reserved()));
    match goal {
        Goal::Latency => format!("{fsync}{stall}, {risk}"),
        Goal::Safety => format!("{risk}, {stall}"),
        Goal::Throughput => format!(
            "throughput {} → {}, {stall}",
            human::bytes_per_second(as_is.throughput),
            human::bytes_per_second(best.throughput)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::against;
    use floodline_analysis::prediction::{Doubt, Row};
    use floodline_analysis::report::TriedPlan;

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
            is_extrapolated: false,
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
    fn what_the_prediction_speaks_against_is_not_advised() {
        let of = |row: Row| Prediction { back_test_error: Some(0.1), ..predicted(row) };
        let waits = |then| of(Row { least: 0.2, ..Row::new(WAITS, "waits of all tasks", "seconds", 1.0, then) });
        let told = |goal, one: &Prediction| against(goal, one, &[]).map(|why| why.short);
        assert_eq!(told(Goal::Latency, &waits(9.09)), Some("longer waits"));
        assert_eq!(told(Goal::Latency, &waits(0.02)), None);
        assert_eq!(told(Goal::Latency, &waits(0.93)), Some("no help"), "less than the error of the twin");
        assert_eq!(told(Goal::Safety, &waits(0.93)), None, "it has another goal");
        let doubtful = of(Row { doubt: Some(Doubt::Demand), ..Row::new(WAITS, "waits", "seconds", 1.0, 0.1) });
        assert_eq!(told(Goal::Latency, &doubtful), Some("demand unknown"));
    }

    #[test]
    fn what_doctor_prints_with_a_reservation_is_not_advised() {
        let row = |name: &str, now, then| Row { least: 0.2, ..Row::new(name, "waits", "seconds", now, then) };
        let write = row(floodline_analysis::prediction::LONGEST_WRITE, 0.004, 0.24);
        let roughly = Some((0.001, 0.24));
        let open = Row { doubt: Some(Doubt::BackTest), roughly, least: 0.02, ..write };
        let rows = vec![row(WAITS, 60.0, 7.88), open];
        let prediction = Prediction { back_test_error: Some(0.15), rows, ..predicted(row(WAITS, 1.0, 1.0)) };
        let why = against(Goal::Latency, &prediction, &[]).expect("a write call may take longer");
        assert_eq!(why.short, "not certain");
        assert!(why.long.is_some_and(|why| why.contains("does not show whether")));
        let safe = against(Goal::Safety, &prediction, &[]).map(|why| why.short);
        assert_eq!(safe, Some("not certain"), "safety is to make no task wait longer");
        assert_eq!(against(Goal::Throughput, &prediction, &[]), None, "it has another goal");
        let known = Prediction { rows: vec![row(WAITS, 60.0, 7.88)], ..prediction };
        assert_eq!(against(Goal::Latency, &known, &[]), None);
    }

    #[test]
    fn what_doctor_prints_is_told_as_it_prints_it() {
        let setting = || vec![Setting::new("bdi/254:16/strict_limit", 0)];
        let plan = Plan { now: vec!["echo 0".to_owned()], ..Plan::default() };
        let doctor = Doctor::of(Some(&plan), setting(), Vec::new());
        assert_eq!((doctor.helps.len(), doctor.unchecked), (0, vec!["bdi/254:16/strict_limit=0".to_owned()]));
        let tried = TriedPlan { verdict: "helps", ..TriedPlan::default() };
        let doctor = Doctor::of(Some(&Plan { tried: Some(tried.clone()), ..plan.clone() }), setting(), Vec::new());
        assert_eq!((doctor.helps, doctor.unchecked.len()), (setting(), 0));
        let withheld = Plan { now: Vec::new(), tried: Some(tried), ..plan };
        let doctor = Doctor::of(Some(&withheld), setting(), Vec::new());
        assert_eq!((doctor.helps.len(), doctor.unchecked.len()), (0, 0), "it prints no command");
    }

    #[test]
    fn a_gain_is_said_as_a_multiple_where_a_percentage_is_out_of_proportion() {
        assert_eq!(times_or_percent(382.79), "more than 382 times");
        assert_eq!(times_or_percent(0.2), "20 %");
    }
}
