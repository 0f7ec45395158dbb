// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twins as commands use them: a recording read, its twin made, and trials of it run in threads. Knows neither arguments
//! nor how a result is printed.

use crate::commands::doctor::read as diagnosed;
use crate::commands::twin::refused;
use crate::console::Progress;
use crate::error::CliError;
use crate::input::{Input, folded};
use crate::memory::return_freed;
use crate::workers::{self, Done};
use floodline_analysis::prediction::Prediction;
use floodline_analysis::report::Report;
use floodline_record::human;
use floodline_twin::predict::{Measured, Question};
use floodline_twin::trial::{self, GoOn, Kept, Patience, Runner, Spent, Studied, TrialError};
use floodline_twin::{Recorded, TwinError};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

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

/// Reads a recording, diagnoses it, and makes the twin of the part that the report is about. Standard input and pipes can
/// be read only once: the whole recording is simulated.
pub(crate) fn study(file: &Path, go_on: GoOn<'_>) -> Result<(Studied, Option<Report>), CliError> {
    // As `twin` names the file that has no twin.
    let refused = |error: TwinError| refused(file, &error);
    if !is_file(file) {
        return Ok((Studied::of(read(file)?, go_on).map_err(refused)?, None));
    }
    let report = diagnosed(file, Vec::new())?;
    let mut kept = Kept::of(&report).of_any_size();
    Input::open(file)?.quietly(|record| {
        kept.record(record);
        ControlFlow::Continue(())
    })?;
    let part = kept.finish().ok_or_else(|| CliError::bug("a part of a recording that is too long"))?;
    Ok((Studied::of_part(part, go_on).map_err(refused)?, Some(report)))
}

/// Whether a path names a file that can be read twice.
fn is_file(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file())
}

/// Threads that simulate.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The clocks of this process.
fn spent() -> Spent {
    let read = |clock| {
        let time = clock_gettime(clock);
        Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
    };
    Spent { time: read(ClockId::Monotonic), cpu: read(ClockId::ProcessCPUTime) }
}

/// Runs that take at once as many threads as there are CPUs.
pub(crate) struct Threads<'a> {
    /// Where to show how far they are.
    pub(crate) progress: Option<&'a mut Progress>,
}

impl Runner for Threads<'_> {
    fn each<T: Sync, R: Send>(&mut self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let jobs = workers();
        return_freed();
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
    go_on: GoOn<'_>,
    progress: Option<&mut Progress>,
) -> Result<Option<Prediction>, CliError> {
    let answered: (Measured, _) = trial::answered(studied, question, few, go_on, &mut Threads { progress })?;
    Ok(answered.1)
}

/// Reads a recording anew; `None` for standard input and for a pipe, which can be read once.
fn kept_of_file(file: &Path, report: &Report) -> Option<Kept> {
    if !is_file(file) {
        return None;
    }
    let mut kept = Kept::of(report);
    let read = Input::open(file).ok()?.quietly(|record| {
        kept.record(record);
        if kept.is_kept() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    read.ok().map(|()| kept)
}

/// Tries the plan of a recording's report on its twin before it is printed.
pub(crate) fn try_plan_of_file(report: &mut Report, file: &Path) {
    if report.plan.is_some() {
        let kept = kept_of_file(file, report);
        try_plan(report, kept);
    }
}

/// Tries the plan of a report on a twin before it is printed.
pub(crate) fn try_plan(report: &mut Report, kept: Option<Kept>) {
    let patience = Patience::from(spent(), workers());
    trial::try_plan(report, kept, &|events| patience.lasts(events, spent()), &mut Threads { progress: None });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_go_on_while_this_process_works() {
        let (start, worked) = (spent(), Duration::from_millis(50));
        let is_over = |now: Spent| now.cpu >= start.cpu + worked || now.time >= start.time + Duration::from_secs(60);
        let end = std::iter::repeat_with(spent).find(|now| is_over(*now)).unwrap();
        assert!(end.cpu >= start.cpu + worked && end.time > start.time, "{start:?} {end:?}");
    }
}
