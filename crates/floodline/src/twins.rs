// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twins as commands use them: a recording read, its twin made, and trials of it run in threads. Knows neither arguments
//! nor how a result is printed.

use crate::console::Progress;
use crate::error::CliError;
use crate::input::{Input, no_sample};
use crate::interrupt::Interrupt;
use floodline_analysis::prediction::{Prediction, Seen};
use floodline_record::human;
use floodline_record::record::Sink;
use floodline_sim::SimError;
use floodline_twin::backtest::{self, Figure};
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
    let mut recorded = Recorded::default();
    Input::open(file)?.each(|record| {
        let Ok(()) = recorded.record(&record);
        Ok(true)
    })?;
    if recorded.window.samples == 0 {
        return Err(no_sample(file));
    }
    Ok(recorded)
}

/// Reads a recording and makes its twin.
pub(crate) fn study(file: &Path) -> Result<Studied, CliError> {
    let recorded = read(file)?;
    let twin = floodline_twin::of(&recorded, &Options::default())?;
    let seen = shown::seen(&recorded.window);
    Ok(Studied { recorded, twin, seen })
}

/// How long runs may take, and how many of them run at once.
pub(crate) struct Budget<'a> {
    /// Ends all runs.
    pub(crate) interrupt: Option<&'a Interrupt>,
    /// When to end them.
    pub(crate) until: Option<Instant>,
}

impl Budget<'_> {
    pub(crate) fn is_left(&self) -> bool {
        !self.interrupt.is_some_and(Interrupt::is_asked) && self.until.is_none_or(|until| Instant::now() < until)
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
        let go_on = || budget.is_left();
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
