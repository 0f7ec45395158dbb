// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers questions about a twin by trials: predictions, advice, and the plan of a report tried before it is printed.
//! The program and the Python package share it, so both print the same. They provide threads, clocks and progress: each
//! passes a [`Runner`] and decides when to stop.

use crate::backtest::{self, Figure};
use crate::changed::{Changed, NotChanged, of_steps};
use crate::findings::is_move;
use crate::kept::Part;
use crate::predict::horizon::beyond;
use crate::predict::{Measured, Question, Run, conclude};
use crate::shown::{self, Shown, Verdicts};
use crate::{Options, Recorded, Twin, TwinError, lifted};
use floodline_analysis::diagnose::holes::damage;
use floodline_analysis::milder;
use floodline_analysis::prediction::{Prediction, Seen, Setting};
use floodline_analysis::report::{Report, Step};
use floodline_analysis::tried;
use floodline_record::human;
use floodline_record::window::Window;
use floodline_sim::{Progress, SimError};
use std::sync::atomic::{AtomicBool, Ordering};

mod advised;
mod screened;

pub use self::advised::advise;
pub use crate::findings::add_findings;
pub use crate::kept::Kept;
pub use crate::patience::{Patience, Spent};

/// Runs trials, on threads where the caller has some.
pub trait Runner {
    /// Runs each item once. Results are in the order of the items.
    fn each<T: Sync, R: Send>(&mut self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R>;
}

/// Runs trials one after the other, on the thread of the caller.
#[derive(Clone, Copy, Debug)]
pub struct OneByOne;

impl Runner for OneByOne {
    fn each<T: Sync, R: Send>(&mut self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        items.iter().map(run).collect()
    }
}

/// Returns whether a run that handled that number of simulated events may go on.
pub type GoOn<'a> = &'a (dyn Fn(u64) -> bool + Sync);

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The recording has no twin.
    #[error(transparent)]
    Twin(#[from] TwinError),
    /// The change cannot be made on the twin.
    #[error(transparent)]
    NotChanged(#[from] NotChanged),
    /// The model refused the run or did not end it.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// A recording and its twin.
#[derive(Debug)]
pub struct Studied {
    /// The recording, folded.
    pub recorded: Recorded,
    /// Its twin.
    pub twin: Twin,
    /// What the rules say of the recording.
    pub said: Verdicts,
    /// Which part of the recording this is, where it is not all of it.
    pub notes: Vec<String>,
}

impl Studied {
    /// Makes the twin of the part of a recording that is simulated.
    ///
    /// # Errors
    ///
    /// The part has no twin.
    pub fn of_part(part: Part, go_on: GoOn<'_>) -> Result<Studied, TwinError> {
        Ok(Studied { notes: part.note.into_iter().collect(), ..Studied::of(part.recorded, go_on)? })
    }

    /// Makes the twin of a recording ([`crate::of_while`]).
    ///
    /// # Errors
    ///
    /// The recording has no twin.
    pub fn of(recorded: Recorded, go_on: GoOn<'_>) -> Result<Studied, TwinError> {
        let twin = crate::of_while(&recorded, &Options::default(), go_on)?;
        let said = shown::verdicts(&recorded.window);
        Ok(Studied { recorded, twin, said, notes: Vec::new() })
    }
}

/// Runs the trials of a question and answers it; `None` where a run is missing. Also returns the figures of the
/// recording.
///
/// # Errors
///
/// The model refused a run or did not end it.
pub fn answered(
    studied: &Studied,
    question: &Question,
    few: bool,
    go_on: GoOn<'_>,
    runner: &mut impl Runner,
) -> Result<(Measured, Option<Prediction>), SimError> {
    knowing(studied, question, few, &mut AsIs::default(), go_on, runner)
}

/// Results of a run of a twin, and its back-test if it is the twin as it is.
type Ran = (Shown, Vec<Figure>);

/// Runs of a twin without a change. Each question about the twin needs them, and they are the same for all of its questions.
#[derive(Debug, Default)]
struct AsIs(Vec<(Run, Ran)>);

impl AsIs {
    /// A run that is known already.
    fn get(&self, run: &Run) -> Option<&Ran> {
        self.0.iter().find(|(known, _)| known == run).map(|(_, ran)| ran)
    }

    /// Keeps a run for further questions. A run that was cut is none.
    fn keep(&mut self, run: Run, ran: &Ran) {
        if !run.is_changed && !ran.0.is_cut && self.get(&run).is_none() {
            self.0.push((run, ran.clone()));
        }
    }
}

/// The run of the twin as it is.
const AS_IS: Run = Run { demand: 0, is_changed: false, trial: shown::Trial::NOMINAL };

fn ran((twin, recording): (&Twin, &Window), changed: &Changed, run: Run, go_on: GoOn<'_>) -> Result<Ran, SimError> {
    let real = (run == AS_IS).then_some(recording);
    let (mut shown, back_test) = shown::of_twin(twin, changed, run.trial, real, |at: &Progress| go_on(at.events))?;
    shown.like(recording);
    Ok((shown, back_test))
}

/// Answers a question. Takes the runs of the twin without a change that are known, and adds the others.
fn knowing(
    studied: &Studied,
    question: &Question,
    few: bool,
    as_is: &mut AsIs,
    go_on: GoOn<'_>,
    runner: &mut impl Runner,
) -> Result<(Measured, Option<Prediction>), SimError> {
    let (measured, mut prediction) = concluded(studied, &studied.twin, (question, few), as_is, go_on, runner)?;
    if let Some(prediction) = &mut prediction {
        let lost = damage(&studied.recorded.window);
        let lost = lost.map(|lost| {
            let mut letters = lost.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            let rest = letters.as_str();
            format!("{first}{rest}. The host's waits may have been longer than the recorded waits.")
        });
        prediction.notes.splice(0..0, lost.into_iter().chain(studied.notes.iter().cloned()));
        let is_verdict = prediction.no_verdict(&prediction.found()).is_none();
        if let Some(lifted) = lifted::lifted(&studied.twin).filter(|_| is_verdict) {
            let question = Question::new(&lifted, &studied.recorded.window, &question.settings);
            let as_is = &mut AsIs::default();
            let told = question.map(|question| concluded(studied, &lifted, (&question, true), as_is, go_on, runner));
            // A change that the twin without these limits cannot make, or that its run does not end with, shows nothing.
            if let Ok(Ok((_, Some(without)))) = told {
                lifted::tell(prediction, &without, &studied.twin);
            }
        }
    }
    Ok((measured, prediction))
}

/// Runs the trials of a question about a twin of a recording, and draws the conclusion.
fn concluded(
    studied: &Studied,
    twin: &Twin,
    (question, few): (&Question, bool),
    as_is: &mut AsIs,
    go_on: GoOn<'_>,
    runner: &mut impl Runner,
) -> Result<(Measured, Option<Prediction>), SimError> {
    let runs = question.runs(few);
    let recording = &studied.recorded.window;
    let unknown: Vec<Run> = runs.iter().filter(|run| as_is.get(run).is_none()).copied().collect();
    // Where a run is cut, no other run makes a verdict of it.
    let is_cut = AtomicBool::new(runs.iter().filter_map(|run| as_is.get(run)).any(|(shown, _)| shown.is_cut));
    let go_on = |events| !is_cut.load(Ordering::Relaxed) && go_on(events);
    let one = |run: &Run| {
        let changed = question.scenario(run)?;
        if is_cut.load(Ordering::Relaxed) {
            return Some(Ok((Shown { is_cut: true, ..Shown::default() }, Vec::new())));
        }
        let result = ran((twin, recording), changed, *run, &go_on);
        if result.as_ref().is_ok_and(|(shown, _)| shown.is_cut) {
            is_cut.store(true, Ordering::Relaxed);
        }
        Some(result)
    };
    let mut ended = runner.each(&unknown, one).into_iter();
    let mut measured = Measured { back_test: Vec::new(), said: studied.said.clone() };
    let mut results = Vec::new();
    for run in runs {
        let (shown, back_test) = match as_is.get(&run) {
            Some(known) => known.clone(),
            None => {
                let Some(result) = ended.next().flatten() else { continue };
                let ran = result?;
                as_is.keep(run, &ran);
                ran
            }
        };
        measured.back_test.extend(back_test);
        results.push((run, shown));
    }
    let prediction = match beyond(twin, question, &results) {
        None => conclude(twin, question, &measured, &results),
        Some(beyond) => {
            let longer =
                beyond.longer.as_ref().and_then(|longer| longer_runs(twin, recording, longer, few, &go_on, runner));
            let longer = longer.and_then(|longer| beyond.per_recorded_time(longer));
            beyond.conclude(twin, question, &measured, &results, longer)
        }
    };
    Ok((measured, prediction))
}

/// The runs of a question about a longer time. `None` where the model does not make one of them.
fn longer_runs(
    twin: &Twin,
    recording: &Window,
    question: &Question,
    few: bool,
    go_on: GoOn<'_>,
    runner: &mut impl Runner,
) -> Option<Vec<(Run, Shown)>> {
    let runs = question.runs(few);
    let one = |run: &Run| {
        let changed = question.scenario(run)?;
        let (mut shown, _) = shown::of_twin(twin, changed, run.trial, None, |at: &Progress| go_on(at.events)).ok()?;
        shown.like(recording);
        Some((*run, shown))
    };
    runner.each(&runs, one).into_iter().collect()
}

/// Why the twin as it is gives no verdict on the host: it misses the recording, or shows none of its findings.
fn no_verdict(as_is: &Shown, measured: &Measured) -> Option<String> {
    let is_shown = |seen: &Seen| as_is.said.seen.iter().any(|one| one.rule == seen.rule);
    let missed = backtest::simulated_error(&measured.back_test).filter(|error| *error > backtest::MISS_MAX);
    if let Some(missed) = missed {
        return Some(format!("the twin misses this recording by {} (median)", human::percent(missed)));
    }
    let rules: Vec<&str> = measured.said.seen.iter().map(|seen| seen.rule).collect();
    (!rules.is_empty() && !measured.said.seen.iter().any(is_shown))
        .then(|| format!("the twin does not show what was found in the recording, {}", rules.join(", ")))
}

/// The report as `doctor` prints it, with the milder plan where that replaces one that harms. A plan that is withheld stays,
/// so that a prediction can say why.
pub fn as_printed(report: &Report, studied: &Studied, go_on: GoOn<'_>, runner: &mut impl Runner) -> Report {
    let mut printed = report.clone();
    judge(&mut printed, Ok(studied), &mut AsIs::default(), go_on, runner);
    let is_withheld = printed.plan.as_ref().is_none_or(|plan| plan.steps.is_empty());
    if is_withheld { report.clone() } else { printed }
}

/// Tries the plan of a report on a twin before it is printed. Without `kept` the recording could be read only once.
pub fn try_plan(report: &mut Report, kept: Option<Kept>, go_on: GoOn<'_>, runner: &mut impl Runner) {
    let Some(plan) = report.plan.as_ref() else { return };
    // A plan of which the twin can make nothing needs no twin.
    if of_steps(&plan.steps).0.is_empty() {
        return judge(report, Err(String::new()), &mut AsIs::default(), go_on, runner);
    }
    let studied = match kept.map(Kept::finish) {
        None => Err("a recording from standard input can be read only once".to_owned()),
        Some(None) => Err("the recording is too long or too large for a quick twin".to_owned()),
        Some(Some(part)) => Studied::of_part(part, go_on).map_err(|error| error.to_string()),
    };
    judge(report, studied.as_ref().map_err(Clone::clone), &mut AsIs::default(), go_on, runner);
}

/// Judges the plan of a report by a twin. `doctor` and `advise` share it. All plans that it tries are changes of this twin.
fn judge(
    report: &mut Report,
    studied: Result<&Studied, String>,
    as_is: &mut AsIs,
    go_on: GoOn<'_>,
    runner: &mut impl Runner,
) {
    let Some(plan) = report.plan.as_mut() else { return };
    let (settings, unknown) = of_steps(&plan.steps);
    let (moves, settings): (Vec<Setting>, Vec<Setting>) = settings.into_iter().partition(is_move);
    // A move takes a reboot: it is tried only without other steps.
    let is_move = plan.now.is_empty();
    let settings = if is_move { moves } else { settings };
    if is_move && settings.is_empty() {
        return;
    }
    let studied = match settings.is_empty() {
        true => Err("none of its commands is a setting that a twin can simulate".to_owned()),
        false => studied,
    };
    let simulated = studied.as_ref().map_or_else(|_| Vec::new(), |studied| studied.notes.clone());
    let lost = studied.as_ref().ok().and_then(|studied| damage(&studied.recorded.window));
    let window = studied.as_ref().ok().map(|studied| &studied.recorded.window);
    let predicted = studied.clone().and_then(|it| of_settings(it, as_is, &settings, go_on, runner));
    match &predicted {
        Ok(prediction) if is_move => tried::tried_later(plan, prediction),
        Ok(prediction) => tried::tried(plan, prediction),
        Err(why) => tried::arithmetic_only(plan, why.clone()),
    }
    let mut unknown = unknown;
    let whole = predicted.ok().filter(|_| !is_move);
    if let Some((milder, rest)) =
        studied.clone().ok().and_then(|studied| that_helps(report, (studied, as_is), whole, go_on, runner))
    {
        (*report, unknown) = (milder, rest);
    }
    if let Ok(studied) = studied {
        on_usual_disks(report, studied, go_on, runner);
    }
    if let Some((plan, window)) = report.plan.as_mut().zip(window) {
        lost.into_iter().for_each(|lost| tried::of_damaged(plan, lost));
        tried::of_short_look(plan, window);
    }
    if let Some(plan) = report.plan.as_mut().filter(|plan| plan.tried.is_some()) {
        plan.expect.extend(simulated);
        let steps: Vec<&str> = unknown.iter().map(|step| step.trim_start_matches("# ")).collect();
        let untried = (!steps.is_empty()).then(|| format!("Not simulated: {}", steps.join("; ")));
        plan.conflicts.extend(untried);
    }
    tried::withhold(report);
    if let Some((plan, window)) = report.plan.as_mut().zip(window) {
        crate::plan::add_ramp(plan, window);
    }
}

/// Makes a change a candidate if a wait gets longer on disks of a usual speed. The twin has no limit for a disk that was never full: on it,
/// a burst of any size is written in a moment.
fn on_usual_disks(report: &mut Report, studied: &Studied, go_on: GoOn<'_>, runner: &mut impl Runner) {
    let (twin, window) = (&studied.twin, &studied.recorded.window);
    let Some(plan) = report.plan.as_mut().filter(|plan| plan.is_tried_to_help() && !plan.now.is_empty()) else {
        return;
    };
    let question = Question::new(twin, window, &of_now(&plan.steps).0).ok();
    let Some(question) = question.and_then(|question| question.on_usual_disks(twin, window)) else { return };
    let told = concluded(studied, twin, (&question, true), &mut AsIs::default(), go_on, runner);
    if let Ok((_, Some(prediction))) = told {
        tried::on_usual_disks(plan, &prediction);
    }
}

fn of_settings(
    studied: &Studied,
    as_is: &mut AsIs,
    settings: &[Setting],
    go_on: GoOn<'_>,
    runner: &mut impl Runner,
) -> Result<Prediction, String> {
    let question = Question::new(&studied.twin, &studied.recorded.window, settings).map_err(|why| why.to_string())?;
    let answer = knowing(studied, &question, true, as_is, go_on, runner).map_err(|error| error.to_string())?;
    answer.1.ok_or_else(|| "the simulation did not end".to_owned())
}

/// The settings of the steps that act at once, and the steps that a twin cannot make. A move to another kernel or cgroup
/// hierarchy takes a reboot: with it, a trial would show what the commands of now do not do.
fn of_now(steps: &[Step]) -> (Vec<Setting>, Vec<String>) {
    let (mut settings, unknown) = of_steps(steps);
    settings.retain(|one| !is_move(one));
    (settings, unknown)
}

/// The first milder plan that helps where the plan of a report harms, or that is better than a plan joined from several findings. Also
/// returns its steps that a twin cannot make. `whole` is the prediction of the plan of the report.
fn that_helps(
    report: &Report,
    (studied, as_is): (&Studied, &mut AsIs),
    whole: Option<Prediction>,
    go_on: GoOn<'_>,
    runner: &mut impl Runner,
) -> Option<(Report, Vec<String>)> {
    let window = &studied.recorded.window;
    for mut milder in milder::reports(report, window) {
        let plan = milder.plan.as_mut()?;
        let (settings, unknown) = of_now(&plan.steps);
        tried::tried(plan, &of_settings(studied, as_is, &settings, go_on, runner).ok()?);
        // A milder plan that is a candidate itself is no better known than the one that it replaces.
        if plan.tried.as_ref().is_some_and(|tried| tried.verdict == "helps") && plan.candidate.is_none() {
            return Some((milder, unknown));
        }
    }
    let (mut part, whole) = milder::of_joined(report, window).zip(whole)?;
    let plan = part.plan.as_mut()?;
    let (settings, unknown) = of_now(&plan.steps);
    let prediction = of_settings(studied, as_is, &settings, go_on, runner).ok()?;
    let is_better = prediction.surpasses(&whole);
    tried::tried(plan, &prediction);
    let is_printed = |report: &Report| report.plan.as_ref().is_some_and(|plan| !plan.now.is_empty());
    let has_command = |report: &Report| report.plan.as_ref().is_some_and(|plan| plan.candidate.is_some());
    // A plan that is advised gives way only to one that is advised.
    let is_as_sure = is_printed(&part) || (has_command(&part) && !is_printed(report));
    (is_better && is_as_sure).then_some((part, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::report::{Severity, When};
    use floodline_testkit::Fixture;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_plan_of_now_is_tried_without_the_move_that_takes_a_reboot() {
        let step = |write: &str, value: &str, when| Step {
            write: write.to_owned(),
            value: value.to_owned(),
            undo: String::new(),
            command: "# by hand".to_owned(),
            when,
        };
        let steps = [
            step("/proc/sys/vm/dirty_background_bytes", "16777216", When::Now),
            step("kernel command line", "cgroup v2", When::Later),
            step("a hook", "sync", When::Later),
        ];
        let (settings, unknown) = of_now(&steps);
        assert_eq!(settings, [Setting::new("vm.dirty_background_bytes", "16777216")]);
        assert_eq!(unknown, ["by hand"]);
    }

    #[test]
    fn a_run_that_is_cut_ends_the_other_runs_of_its_question() {
        let recorded = Recorded::from_records(&Fixture::healthy().records());
        let studied = Studied::of(recorded, &|_| true).expect("a twin");
        let setting = Setting::new("vm.dirty_background_bytes", "64M");
        let question = Question::new(&studied.twin, &studied.recorded.window, &[setting]).expect("a question");
        let asked = |may_go_on: bool| {
            let asked = AtomicU64::new(0);
            let go_on = |_| {
                asked.fetch_add(1, Ordering::Relaxed);
                may_go_on
            };
            let (_, prediction) = answered(&studied, &question, false, &go_on, &mut OneByOne).expect("it runs");
            (asked.into_inner(), prediction.expect("each run has a result"))
        };
        let (all, whole) = asked(true);
        assert!(!whole.is_cut && whole.runs > 2 && all > whole.runs as u64, "{all} {}", whole.runs);
        let (one, cut) = asked(false);
        assert!(cut.is_cut && cut.no_verdict(&[]).is_some_and(|why| why.contains("exceeds its budget")));
        assert_eq!((one, cut.runs), (1, whole.runs), "the first run was cut at once, and no other began");
    }

    #[test]
    fn a_twin_without_a_change_runs_once_for_all_questions() {
        /// Counts the runs.
        struct Counted(usize);
        impl Runner for Counted {
            fn each<T: Sync, R: Send>(&mut self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
                self.0 += items.len();
                OneByOne.each(items, run)
            }
        }
        let recorded = Recorded::from_records(&Fixture::healthy().records());
        let studied = Studied::of(recorded, &|_| true).expect("a twin");
        let known = &mut AsIs::default();
        let answer = |value: &str, few, known: &mut AsIs| {
            let setting = Setting::new("vm.dirty_background_bytes", value);
            let question = Question::new(&studied.twin, &studied.recorded.window, &[setting]).expect("a question");
            let mut runner = Counted(0);
            let (measured, prediction) =
                knowing(&studied, &question, few, known, &|_| true, &mut runner).expect("it runs");
            (runner.0, measured.back_test, prediction.expect("each run has a result"))
        };
        let (first, ..) = answer("64M", true, known);
        for few in [true, false] {
            let (all, back_test, alone) = answer("16M", few, &mut AsIs::default());
            let (rest, back_test_then, then) = answer("16M", few, known);
            assert_eq!((rest, &then, back_test_then), (all - first / 2, &alone, back_test), "few: {few}");
        }
        let question = Question::new(&studied.twin, &studied.recorded.window, &[Setting::new("vm.dirty_ratio", 5)]);
        let runs = question.expect("a question").runs(false);
        let is_other = |run: &&Run| run.trial.seed != 0 || run.trial.device_percent != 100;
        assert_eq!(runs.iter().filter(is_other).map(|run| run.is_changed).collect::<Vec<_>>(), [true, true]);
        let cut = Shown { is_cut: true, ..Shown::default() };
        known.0.clear();
        known.keep(AS_IS, &(cut, Vec::new()));
        known.keep(Run { is_changed: true, ..AS_IS }, &(Shown::default(), Vec::new()));
        assert!(known.get(&AS_IS).is_none() && known.0.is_empty(), "neither is a whole run without a change");
    }

    #[test]
    fn a_twin_that_misses_the_recording_or_lacks_its_findings_gives_no_verdict() {
        let seen = |rule| vec![Seen { rule, severity: Severity::Warning }];
        let figure = |off_share| Figure {
            name: "stall_seconds".to_owned(),
            unit: "seconds",
            real: 1.0,
            simulated: 1.0 - off_share,
            off_share,
        };
        let told = |shown, found, off| {
            let as_is = Shown { said: Verdicts { seen: shown, ..Verdicts::default() }, ..Shown::default() };
            let said = Verdicts { seen: found, ..Verdicts::default() };
            no_verdict(&as_is, &Measured { back_test: vec![figure(off)], said })
        };
        let limit = || seen("io-limit-throttling");
        assert_eq!(told(limit(), limit(), 0.1), None);
        assert_eq!(told(Vec::new(), Vec::new(), 0.1), None, "nothing was found");
        assert!(told(Vec::new(), limit(), 0.1).is_some_and(|why| why.contains("io-limit-throttling")));
        assert!(told(limit(), limit(), 0.6).is_some_and(|why| why.contains("60 %")));
    }
}
