// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twins as commands use them: a recording read, its twin made, and trials of it run in threads. Knows neither arguments
//! nor how a result is printed.

use crate::console::Progress;
use crate::error::CliError;
use crate::input::{Input, folded};
use crate::interrupt::Interrupt;
use floodline_analysis::prediction::{Prediction, Seen};
use floodline_analysis::report::Report;
use floodline_analysis::tried;
use floodline_record::human;
use floodline_record::record::{Record, Sink};
use floodline_sim::SimError;
use floodline_twin::backtest::{self, Figure};
use floodline_twin::changed::of_steps;
use floodline_twin::predict::{Measured, Question, Run, conclude};
use floodline_twin::shown::{self, Shown};
use floodline_twin::{Options, Recorded, Twin, TwinError};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A recording and its twin.
pub(crate) struct Studied {
    pub(crate) recorded: Recorded,
    pub(crate) twin: Twin,
    /// What the rules find in the recording.
    pub(crate) seen: Vec<Seen>,
}

impl From<TwinError> for CliError {
    fn from(error: TwinError) -> CliError {
        let hint = error.hint();
        let told = CliError::usage(&error);
        match hint {
            Some(hint) => told.hint(hint),
            None => told,
        }
    }
}

/// Reads a recording.
pub(crate) fn read(file: &Path) -> Result<Recorded, CliError> {
    folded(file, |recorded: &Recorded| recorded.window.samples)
}

/// Reads a recording and makes its twin.
pub(crate) fn study(file: &Path) -> Result<Studied, CliError> {
    let recorded = read(file)?;
    let twin = floodline_twin::of(&recorded, &Options::default())?;
    let seen = shown::seen(&recorded.window);
    Ok(Studied { recorded, twin, seen })
}

/// How long runs may take.
#[derive(Default)]
pub(crate) struct Budget<'a> {
    /// Ends all runs.
    pub(crate) interrupt: Option<&'a Interrupt>,
    /// When to end them.
    pub(crate) until: Option<Instant>,
    /// Simulated events after which one run ends: the same on a fast and a slow machine.
    pub(crate) events: Option<u64>,
}

impl Budget<'_> {
    /// Whether a run that handled that number of events may go on.
    pub(crate) fn is_left(&self, events: u64) -> bool {
        self.events.is_none_or(|most| events < most)
            && !self.interrupt.is_some_and(Interrupt::is_asked)
            && self.until.is_none_or(|until| Instant::now() < until)
    }
}

/// Runs that take at once as many threads as there are CPUs. Results are in the order of the items.
pub(crate) fn parallel<T: Sync, R: Send>(
    items: &[T],
    mut progress: Option<&mut Progress>,
    run: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let jobs = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(items.len());
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (sender, next, run) = (sender.clone(), &next, &run);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    if sender.send((at, run(item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut done: u64 = 0;
        loop {
            match receiver.recv_timeout(Duration::from_millis(200)) {
                Ok((at, result)) => {
                    if let Some(place) = results.get_mut(at) {
                        *place = Some(result);
                    }
                    done += 1;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if let Some(progress) = progress.as_deref_mut() {
                progress.tell(|| {
                    let left =
                        (items.len() as f64 - done as f64) * started.elapsed().as_secs_f64() / done.max(1) as f64;
                    let left = if done > 0 { format!(", about {left:.0} s left") } else { String::new() };
                    format!("{done} of {}{left}", human::plural(items.len() as u64, "run", "runs"))
                });
            }
        }
    });
    results.into_iter().flatten().collect()
}

/// Runs what a question needs and answers it; `None` where a run is missing.
pub(crate) fn answer(
    studied: &Studied,
    question: &Question,
    few: bool,
    budget: &Budget<'_>,
    progress: Option<&mut Progress>,
) -> Result<Option<Prediction>, CliError> {
    answered(studied, question, few, budget, progress).map(|(_, prediction)| prediction)
}

/// The same, with what the recording tells.
pub(crate) fn answered(
    studied: &Studied,
    question: &Question,
    few: bool,
    budget: &Budget<'_>,
    progress: Option<&mut Progress>,
) -> Result<(Measured, Option<Prediction>), CliError> {
    let twin = &studied.twin;
    let runs = question.runs(few);
    type Ran = Result<(Shown, Vec<Figure>), SimError>;
    let one = |run: &Run| -> Option<Ran> {
        let changed = question.scenario(run)?;
        let go_on = |at: &floodline_sim::Progress| budget.is_left(at.events);
        Some(shown::run(changed, run.trial, twin.every, &twin.programs, go_on).map(|(shown, window)| {
            let is_base = !run.is_changed && run.demand == 0 && run.trial.device_percent == 100 && !shown.is_cut;
            let back_test = if is_base {
                backtest::backtest(&studied.recorded.window, &window, &twin.programs)
            } else {
                Vec::new()
            };
            (shown, back_test)
        }))
    };
    let mut measured = Measured { back_test: Vec::new(), seen: studied.seen.clone() };
    let mut results = Vec::new();
    for (run, result) in runs.iter().zip(parallel(&runs, progress, one)) {
        let Some(result) = result else { continue };
        let (shown, back_test) = result.map_err(CliError::from)?;
        measured.back_test.extend(back_test);
        results.push((*run, shown));
    }
    let prediction = conclude(twin, question, &measured, &results);
    Ok((measured, prediction))
}

/// Simulated events of one run that `doctor` waits for: about half a second.
const EVENTS_MAX: u64 = 2_000_000;
/// After this the plan stays untried, whatever the machine does meanwhile.
const LONGEST: Duration = Duration::from_millis(1500);
/// Longest recording that `doctor` makes a twin of, seconds: one stretch.
const SECONDS_MAX: f64 = 600.0;
/// Most processes, cgroups and devices of it.
const ENTITIES_MAX: usize = 20_000;
/// Of a recording with more than this only a part is simulated.
const MANY: usize = 300;
/// Length of that part, seconds, and how long before the first symptom it begins.
const PART: f64 = 20.0;
const BEFORE: u64 = 5_000_000_000;

/// A recording that is kept for a twin, unless it becomes too large for one that `doctor` waits for.
pub(crate) struct Kept {
    recorded: Option<Recorded>,
    /// Samples before this moment of the wall clock do not count, if there are many processes.
    from: Option<u64>,
    is_part: bool,
}

impl Kept {
    /// Keeps what is observed. `from` is when the first symptom was seen, where that is known.
    pub(crate) fn new(from: Option<u64>) -> Kept {
        Kept { recorded: Some(Recorded::default()), from: from.map(|at| at.saturating_sub(BEFORE)), is_part: false }
    }

    pub(crate) fn record(&mut self, record: &Record) {
        let Some(recorded) = &mut self.recorded else { return };
        let window = &recorded.window;
        if window.entities.len() > MANY {
            let is_before = |at: u64| self.from.is_some_and(|from| at < from);
            match record {
                Record::Sample(sample) if is_before(sample.time.wall.0) || window.seconds() >= PART => {
                    self.is_part = true;
                    return;
                }
                // What a program did in all says nothing of a part.
                Record::Event(_) if self.is_part => return,
                _ => {}
            }
        }
        let Ok(()) = recorded.record(record);
        let window = &recorded.window;
        if window.seconds() > SECONDS_MAX || window.entities.len() > ENTITIES_MAX {
            self.recorded = None;
        }
    }

    /// Reads a recording anew; `None` for standard input, which can be read once.
    pub(crate) fn of_file(file: &Path, from: Option<u64>) -> Option<Kept> {
        if file == Path::new("-") {
            return None;
        }
        let mut kept = Kept::new(from);
        for record in Input::open(file).ok()?.quietly() {
            kept.record(&record.ok()?);
            if kept.recorded.is_none() {
                break;
            }
        }
        Some(kept)
    }
}

/// Tries the plan of a report on a twin before it is printed.
pub(crate) fn try_plan(report: &mut Report, kept: Option<Kept>) {
    let Some(plan) = report.plan.as_mut().filter(|plan| !plan.now.is_empty()) else { return };
    let (settings, unknown) = of_steps(&plan.steps);
    let settings: Vec<_> =
        settings.into_iter().filter(|one| !matches!(one.key.as_str(), "kernel" | "cgroup")).collect();
    let is_part = kept.as_ref().is_some_and(|kept| kept.is_part);
    let studied = match (kept, settings.is_empty()) {
        (_, true) => Err("no command of it is a setting that a twin can make".to_owned()),
        (None, _) => Err("a recording from standard input is read once".to_owned()),
        (Some(Kept { recorded: None, .. }), _) => {
            Err("the recording is too long or too large for a quick twin".to_owned())
        }
        (Some(Kept { recorded: Some(recorded), .. }), _) => floodline_twin::of(&recorded, &Options::default())
            .map(|twin| Studied { seen: shown::seen(&recorded.window), twin, recorded })
            .map_err(|error| error.to_string()),
    };
    let predicted = studied.and_then(|studied| {
        let question =
            Question::new(&studied.twin, &studied.recorded.window, &settings).map_err(|why| why.to_string())?;
        let budget = Budget { until: Some(Instant::now() + LONGEST), events: Some(EVENTS_MAX), ..Budget::default() };
        let answer = answer(&studied, &question, true, &budget, None).map_err(|error| error.to_string())?;
        answer.ok_or_else(|| "the simulation did not end".to_owned())
    });
    match predicted {
        Ok(prediction) => tried::tried(plan, &prediction),
        Err(why) => tried::arithmetic_only(plan, why),
    }
    if plan.tried.is_some() && is_part {
        plan.expect.push(format!("Simulated: the {PART} s around the first symptom."));
    }
    if plan.tried.is_some() && !unknown.is_empty() {
        plan.conflicts.push(format!("not tried on the twin: {}", unknown.join("; ")));
    }
    tried::withhold(report);
}
