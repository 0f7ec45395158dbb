// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers `floodline advise`: runs the candidates of a search, and predicts the best of them. What `doctor` prints for the
//! same recording is a candidate. The search itself is in `advise.rs`.

use super::{AS_IS, AsIs, GoOn, Ran, Runner, Studied, TrialError, judge, knowing, no_verdict, of_now, ran, screened};
use crate::advise::{Against, Candidate, Doctor, Search, Told, Wanted, against};
use crate::changed::Changed;
use crate::predict::{Measured, Question, Run};
use crate::shown::Shown;
use floodline_analysis::advice::{Advice, Goal};
use floodline_analysis::diagnose::diagnose;
use floodline_analysis::diagnose::holes::damage;
use floodline_analysis::prediction::{Prediction, Setting};
use floodline_analysis::report::{Report, Step};

/// Candidates whose prediction is looked at before `advise` gives up.
const FINALISTS: usize = 6;

/// Searches for the best settings for the host of a recording. `report` is doctor's, not tried yet: what it prints is a
/// candidate. Ends early when `go_on` returns false.
///
/// # Errors
///
/// The model cannot run the host as it is.
pub fn advise(
    studied: &Studied,
    report: Option<&Report>,
    wanted: Wanted,
    go_on: GoOn<'_>,
    runner: &mut impl Runner,
) -> Result<Advice, TrialError> {
    let (twin, window) = (&studied.twin, &studied.recorded.window);
    // The host as it is runs once: the back-test, the plan of doctor and the predictions need its run as well.
    let unchanged = Changed { scenario: twin.scenario.clone(), kernel: twin.kernel };
    let as_is: Ran = match runner.each(&[unchanged], |one| ran((twin, window), one, AS_IS, go_on)).pop() {
        // Without the host as it is there is no reference.
        Some(result) => result?,
        None => (Shown { is_cut: true, ..Shown::default() }, Vec::new()),
    };
    let measured = Measured { back_test: as_is.1.clone(), said: studied.said.clone() };
    let mut no_verdict = damage(window).or_else(|| no_verdict(&as_is.0, &measured));
    let known = &mut AsIs(vec![(AS_IS, as_is.clone())]);
    let (doctor, plans) = of_doctor(studied, report, known, go_on, runner);
    let mut search = Search::new(twin, window, wanted);
    search.tested(&as_is.1);
    loop {
        let next = search.next(&plans);
        if next.is_empty() || !go_on(0) {
            break;
        }
        let (first, next): (Vec<Candidate>, Vec<Candidate>) =
            next.into_iter().partition(|candidate| candidate.settings.is_empty());
        // Without a verdict no setting is advised, so none is tried.
        let next = if no_verdict.is_none() { next } else { Vec::new() };
        search.take(first.into_iter().map(|candidate| (candidate, as_is.0.clone())));
        // A setting under which the load cannot continue is never advised.
        let results = screened::run(studied, &search, wanted.goal, next, go_on, runner);
        search.take(results);
        if no_verdict.is_some() {
            break;
        }
    }
    let rules: Vec<&str> = studied.said.seen.iter().map(|seen| seen.rule).collect();
    let mut predicted = |settings: &[Setting], runner: &mut _| -> Result<Option<Prediction>, TrialError> {
        let question = Question::new(twin, window, settings)?;
        Ok(knowing(studied, &question, false, known, go_on, runner)?.1)
    };
    let mut chosen: Option<(usize, Prediction)> = None;
    let mut refused: Option<(usize, Against, Prediction)> = None;
    for _ in 0..if no_verdict.is_none() { FINALISTS } else { 0 } {
        let best = search.best().filter(|(at, _)| go_on(0) && search.is_clear_gain(*at, &measured));
        let Some((at, settings)) = best else { break };
        let Some(prediction) = predicted(&settings, runner)? else { break };
        no_verdict = prediction.missed_figure().filter(|_| wanted.goal == Goal::Latency);
        if no_verdict.is_some() {
            break;
        }
        let Some(why) = against(wanted.goal, &prediction, &rules) else {
            chosen = Some((at, prediction));
            break;
        };
        search.exclude(at, &why);
        refused.get_or_insert((at, why, prediction));
    }
    // A setting without which the same is predicted is left out, one after the other.
    'fewer: while let Some((at, prediction)) = chosen.as_mut() {
        for settings in search.fewer(*at) {
            if let Some(candidate) = search.untried(&settings) {
                let run = Run { trial: Candidate::TRIAL, ..AS_IS };
                let run = |one: &Candidate| ran((twin, window), &one.changed, run, go_on);
                let shown = runner.each(std::slice::from_ref(&candidate), run).pop().and_then(Result::ok);
                search.take(shown.map(|(shown, _)| (candidate, shown)));
            }
            let alike = search.number_of(&settings).filter(|other| go_on(0) && search.is_alike(*at, *other));
            let Some(other) = alike else { continue };
            let Some(one) = predicted(&settings, runner)? else { continue };
            if one.is_like(prediction) && against(wanted.goal, &one, &rules).is_none() {
                (*at, *prediction) = (other, one);
                continue 'fewer;
            }
        }
        break;
    }
    // What doctor prints as a help is one here too.
    let is_of_doctor = chosen.is_none() && no_verdict.is_none() && wanted.goal == Goal::Latency && go_on(0);
    if let Some(at) = search.number_of(&doctor.helps).filter(|at| is_of_doctor && *at > 0) {
        search.admit(at);
        chosen = predicted(&doctor.helps, runner)?.map(|one| (at, one));
    }
    let told = Told {
        prediction: chosen.as_ref().map(|(_, one)| one).or(refused.as_ref().map(|(.., one)| one)),
        measured: &measured,
        refused: refused.as_ref().map(|(at, why, _)| (*at, why)),
        no_verdict: no_verdict.as_deref(),
        doctor: &doctor,
    };
    let mut advice = search.advice(chosen.as_ref().map(|(at, _)| *at), &told);
    advice.notes.splice(0..0, studied.notes.iter().cloned());
    Ok(advice)
}

/// What `doctor` says on this recording, and its changes as candidates: its plan, the milder one that replaces it, and what
/// single findings ask for.
fn of_doctor(
    studied: &Studied,
    report: Option<&Report>,
    as_is: &mut AsIs,
    go_on: GoOn<'_>,
    runner: &mut impl Runner,
) -> (Doctor, Vec<Vec<Setting>>) {
    let mut report = report.map_or_else(|| diagnose(&studied.recorded.window, None), Clone::clone);
    let settings = |steps: &[Step]| of_now(steps).0;
    let plan_of = |report: &Report| report.plan.as_ref().map_or_else(Vec::new, |plan| plan.steps.clone());
    let mut steps = plan_of(&report);
    steps.extend(report.findings.iter().flat_map(|finding| finding.plan.clone()));
    let mut plans = vec![settings(&plan_of(&report))];
    plans.extend(report.findings.iter().map(|finding| settings(&finding.plan)));
    judge(&mut report, Ok(studied), as_is, go_on, runner);
    let printed = plan_of(&report);
    steps.extend(printed.iter().cloned());
    let printed = settings(&printed);
    plans.insert(0, printed.clone());
    (Doctor::of(report.plan.as_ref(), printed, steps), plans)
}
