// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search of `advise`: the host as it is runs once, what doctor prints is a candidate, and a candidate that its
//! prediction speaks against does not end the search.
#![allow(clippy::unwrap_used, reason = "tests")]

use floodline_analysis::advice::Goal;
use floodline_analysis::prediction::{PEAK, Prediction, Row, Setting, WAITS};
use floodline_record::record::Sink;
use floodline_record::version::KernelVersion;
use floodline_scenario::ScenarioFile;
use floodline_sim::simulate;
use floodline_twin::Recorded;
use floodline_twin::advise::{Candidate, Doctor, FOLIOS, Search, Told, Wanted, against};
use floodline_twin::predict::Measured;
use floodline_twin::shown::{Shown, run};
use floodline_twin::trial::{Runner, Studied, advise};

/// Runs one after the other, and counts.
struct Counting(usize);

impl Runner for Counting {
    fn each<T: Sync, R: Send>(&mut self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        self.0 += items.len();
        items.iter().map(run).collect()
    }
}

/// The recording of a variant of `dirty-cliff` in the model.
fn cliff() -> Studied {
    let text = include_str!("../../../scenarios/dirty-cliff.toml");
    let scenario = ScenarioFile::parse(text).unwrap().variants.remove("incident-short").unwrap();
    let mut recorded = Recorded::default();
    let options = floodline_sim::Options::new("v", KernelVersion::new(6, 12, 0));
    let take = |record| {
        let Ok(()) = recorded.record(&record);
        Ok(())
    };
    simulate(&scenario, &options, take, |_| true).unwrap();
    Studied::of(recorded, &|_| true).unwrap()
}

fn wanted(most: usize) -> Wanted {
    Wanted { goal: Goal::Latency, at_risk_bytes: None, folios: FOLIOS, pause_seconds: None, most }
}

#[test]
fn the_host_as_it_is_runs_once() {
    let studied = cliff();
    let mut runner = Counting(0);
    let advice = advise(&studied, None, wanted(3), &|_| true, &mut runner).unwrap();
    let prediction = advice.prediction.expect("a setting is better than the cliff");
    assert!(prediction.back_test_error.is_some());
    // What doctor prints is judged by each bound of the demand before and after it, without the run of the host as it is.
    let bounds = if studied.twin.demand.other().is_some() { 2 } else { 1 };
    let judged = 2 * bounds - 1;
    // The prediction takes the runs of each bound before a change from there.
    assert_eq!(runner.0, advice.tried.len() + prediction.runs - bounds + judged);
}

#[test]
fn data_at_risk_are_bounded_by_what_is_at_risk_now_or_little_of_the_memory() {
    let studied = cliff();
    let advice = advise(&studied, None, wanted(2), &|_| true, &mut Counting(0)).unwrap();
    let now = advice.tried.first().unwrap().at_risk_bytes;
    let memory = studied.twin.scenario.machine.memory.bytes() as f64;
    let bound = advice.constraints.at_risk_bytes;
    assert!(bound >= now && bound <= (now * 1.1).max(memory * 0.05), "{bound} of {now} and {memory}");
}

/// Runs the first candidates of a search.
fn started<'a>(studied: &'a Studied, plans: &[Vec<Setting>]) -> Search<'a> {
    let mut search = Search::new(&studied.twin, &studied.recorded.window, wanted(12));
    let run = |one: &Candidate| {
        let shown = run(&one.changed, Candidate::TRIAL, studied.twin.every, &studied.twin.programs, |_| true);
        shown.unwrap().0
    };
    let first: Vec<_> = search.next(plans).into_iter().map(|one| (one.clone(), run(&one))).collect();
    search.take(first);
    search
}

#[test]
fn the_next_best_candidate_follows_one_that_its_prediction_speaks_against() {
    let studied = cliff();
    let mut search = started(&studied, &[]);
    let (first, settings) = search.best().expect("one is better than the cliff");
    let row = Row { least: 0.2, ..Row::new("stall_seconds", "waits of all tasks", "seconds", 1.0, 9.0) };
    let kernel = KernelVersion::new(6, 12, 0);
    let prediction = Prediction { rows: vec![row], ..Prediction::new(settings.clone(), kernel) };
    let why = against(Goal::Latency, &prediction, &[]).expect("tasks wait longer");
    search.exclude(first, &why);
    let (second, _) = search.best().expect("another one is better than the cliff too");
    assert_ne!(second, first);
    search.admit(first);
    assert_eq!(search.best().map(|(at, _)| at), Some(first));
}

/// The advice of a search whose candidates have made-up figures: those of the host as it is, and those of all others.
fn of_figures(studied: &Studied, as_is: &[(&str, f64)], others: &[(&str, f64)]) -> (Vec<Setting>, String, bool) {
    let mut search = Search::new(&studied.twin, &studied.recorded.window, wanted(12));
    let figures = |of: &[(&str, f64)]| of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let shown = |at: usize| Shown { figures: figures(if at == 0 { as_is } else { others }), ..Shown::default() };
    let next = search.next(&[]).into_iter().enumerate();
    let results: Vec<_> = next.map(|(at, one)| (one, shown(at))).collect();
    search.take(results);
    let told = Told {
        prediction: None,
        measured: &Measured::default(),
        refused: None,
        no_verdict: None,
        doctor: &Doctor::default(),
    };
    let (best, settings) = search.best().expect("another one is better");
    let advice = search.advice(None, &told);
    (settings, advice.headline, search.is_alike(best, best) && !search.is_alike(0, best))
}

#[test]
fn a_gain_that_is_too_small_to_notice_is_not_called_less_than_the_error() {
    let (_, headline, _) = of_figures(&cliff(), &[(WAITS, 0.18), (PEAK, 1e6)], &[(WAITS, 0.07), (PEAK, 1e6)]);
    assert!(headline.ends_with("tasks wait 180 ms → 70.0 ms: too little to notice."), "{headline}");
}

#[test]
fn a_candidate_is_tried_without_each_of_its_settings() {
    let studied = cliff();
    let (settings, _, is_alike) = of_figures(&studied, &[(WAITS, 9.0), (PEAK, 1e6)], &[(WAITS, 1.0), (PEAK, 1e6)]);
    assert!(is_alike);
    let search = started(&studied, &[]);
    let at = search.number_of(&settings).unwrap_or(1);
    let fewer = search.fewer(at);
    assert!(!fewer.is_empty() && fewer.iter().all(|one| one.len() == fewer.len() - 1), "{fewer:?}");
    assert!(search.fewer(0).is_empty(), "the host as it is has none");
    let doctors = vec![Setting::new("vm.dirty_bytes", 1 << 20), Setting::new("vm.dirty_background_bytes", 2 << 20)];
    let search = started(&studied, std::slice::from_ref(&doctors));
    assert!(search.fewer(1).is_empty(), "what doctor prints stays whole");
}

#[test]
fn what_doctor_prints_is_always_a_candidate() {
    let studied = cliff();
    // A limit that no candidate of the search has, as a moment exceeds it, and a void background threshold.
    let plan = vec![Setting::new("vm.dirty_bytes", 1 << 20), Setting::new("vm.dirty_background_bytes", 2 << 20)];
    let mut search = Search::new(&studied.twin, &studied.recorded.window, wanted(12));
    assert!(search.next(std::slice::from_ref(&plan)).iter().any(|one| one.settings == plan));
    // More data at risk than the default allows are its price, unless the bound was asked for.
    let roomy = vec![Setting::new("vm.dirty_ratio", 60), Setting::new("vm.dirty_background_ratio", 50)];
    let search = started(&studied, std::slice::from_ref(&roomy));
    let told = Told {
        prediction: None,
        measured: &Measured::default(),
        refused: None,
        no_verdict: None,
        doctor: &Doctor::default(),
    };
    let advice = search.advice(None, &told);
    let tried = advice.tried.iter().find(|one| one.settings == roomy).unwrap();
    assert_ne!(tried.breaks, Some("data at risk"), "{tried:?}");
}
