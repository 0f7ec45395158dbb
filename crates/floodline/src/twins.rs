// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twins as commands use them: a recording read, its twin made, and trials of it run in threads. Knows neither arguments
//! nor how a result is printed.

use crate::console::Progress;
use crate::error::CliError;
use crate::input::{Input, folded};
use crate::interrupt::Interrupt;
use crate::workers::{self, Done};
use floodline_analysis::prediction::Prediction;
use floodline_analysis::report::Report;
use floodline_record::human;
use floodline_twin::predict::{Measured, Question};
use floodline_twin::trial::{self, EVENTS_MAX, Kept, LONGEST, Runner, Studied, TrialError};
use floodline_twin::{Recorded, TwinError};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

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

impl From<TrialError> for CliError {
    fn from(error: TrialError) -> CliError {
        match error {
            TrialError::Twin(error) => error.into(),
            TrialError::NotChanged(error) => error.into(),
            TrialError::Sim(error) => error.into(),
        }
    }
}

/// Reads a recording.
pub(crate) fn read(file: &Path) -> Result<Recorded, CliError> {
    folded(file, |recorded: &Recorded| recorded.window.samples)
}

/// Reads a recording and makes its twin.
pub(crate) fn study(file: &Path) -> Result<Studied, CliError> {
    Ok(Studied::of(read(file)?)?)
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

/// Runs that take at once as many threads as there are CPUs.
pub(crate) struct Threads<'a> {
    /// Where to show how far they are.
    pub(crate) progress: Option<&'a mut Progress>,
}

impl Runner for Threads<'_> {
    fn each<T: Sync, R: Send>(&mut self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let jobs = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let look = |done: Done, _: Option<&R>| {
            if let Some(progress) = self.progress.as_deref_mut() {
                let runs = human::plural(done.of as u64, "run", "runs");
                progress.tell(|| format!("{} of {runs}{}", done.items, done.left()));
            }
        };
        let results = workers::each(items, jobs, |item| Some(run(item)), look);
        results.into_iter().flatten().collect()
    }
}

/// Runs what a question needs and answers it; `None` where a run is missing.
pub(crate) fn answer(
    studied: &Studied,
    question: &Question,
    few: bool,
    budget: &Budget<'_>,
    progress: Option<&mut Progress>,
) -> Result<Option<Prediction>, CliError> {
    let go_on = |events| budget.is_left(events);
    let answered: (Measured, _) = trial::answered(studied, question, few, &go_on, &mut Threads { progress })?;
    Ok(answered.1)
}

/// Reads a recording anew; `None` for standard input and for a pipe, which can be read once.
fn kept_of_file(file: &Path, from: Option<u64>) -> Option<Kept> {
    if !std::fs::metadata(file).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let mut kept = Kept::new(from);
    for record in Input::open(file).ok()?.quietly() {
        kept.record(&record.ok()?);
        if !kept.is_kept() {
            break;
        }
    }
    Some(kept)
}

/// Tries the plan of a recording's report on its twin before it is printed.
pub(crate) fn try_plan_of_file(report: &mut Report, file: &Path) {
    if report.plan.is_some() {
        let kept = kept_of_file(file, report.symptom.waiting_from_wall_ns);
        try_plan(report, kept);
    }
}

/// Tries the plan of a report on a twin before it is printed.
pub(crate) fn try_plan(report: &mut Report, kept: Option<Kept>) {
    let budget = Budget { until: Some(Instant::now() + LONGEST), events: Some(EVENTS_MAX), ..Budget::default() };
    trial::try_plan(report, kept, &|events| budget.is_left(events), &mut Threads { progress: None });
}
