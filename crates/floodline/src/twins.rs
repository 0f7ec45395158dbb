// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twins as commands use them: a recording read, its twin made, and trials of it run in threads. Knows neither arguments
//! nor how a result is printed.

use crate::commands::doctor::read as diagnosed;
use crate::console::Progress;
use crate::error::CliError;
use crate::input::{Input, folded};
use crate::interrupt::Interrupt;
use crate::workers::{self, Done};
use floodline_analysis::prediction::Prediction;
use floodline_analysis::report::Report;
use floodline_record::human;
use floodline_twin::predict::{Measured, Question};
use floodline_twin::trial::{self, EVENTS_MAX, Kept, LONGEST, LONGEST_LOADED, Runner, Studied, TrialError};
use floodline_twin::{Recorded, TwinError};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

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
pub(crate) fn study(file: &Path) -> Result<(Studied, Option<Report>), CliError> {
    if !is_file(file) {
        return Ok((Studied::of(read(file)?)?, None));
    }
    let report = diagnosed(file, Vec::new())?;
    let mut kept = Kept::of(&report).of_any_size();
    for record in Input::open(file)?.quietly() {
        kept.record(&record?);
    }
    let part = kept.finish().ok_or_else(|| CliError::bug("a part of a recording that is too long"))?;
    Ok((Studied::of_part(part)?, Some(report)))
}

/// Whether a path names a file that can be read twice.
fn is_file(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file())
}

/// How long runs may take.
#[derive(Default)]
pub(crate) struct Budget<'a> {
    /// Ends all runs.
    pub(crate) interrupt: Option<&'a Interrupt>,
    /// When to end them.
    pub(crate) until: Option<Instant>,
    /// CPU time of this process at which to end the runs.
    pub(crate) cpu: Option<Duration>,
    /// Simulated events after which one run ends: the same on a fast and a slow machine.
    pub(crate) events: Option<u64>,
}

impl Budget<'_> {
    /// Whether a run that handled that number of events may go on.
    pub(crate) fn is_left(&self, events: u64) -> bool {
        self.events.is_none_or(|most| events < most)
            && !self.interrupt.is_some_and(Interrupt::is_asked)
            && self.until.is_none_or(|until| Instant::now() < until)
            && self.cpu.is_none_or(|most| cpu_used() < most)
    }
}

/// Threads that simulate.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// CPU time of this process.
fn cpu_used() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.try_into().unwrap_or(0), used.tv_nsec.try_into().unwrap_or(0))
}

/// Runs that take at once as many threads as there are CPUs.
pub(crate) struct Threads<'a> {
    /// Where to show how far they are.
    pub(crate) progress: Option<&'a mut Progress>,
}

impl Runner for Threads<'_> {
    fn each<T: Sync, R: Send>(&mut self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let jobs = workers();
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
fn kept_of_file(file: &Path, report: &Report) -> Option<Kept> {
    if !is_file(file) {
        return None;
    }
    let mut kept = Kept::of(report);
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
        let kept = kept_of_file(file, report);
        try_plan(report, kept);
    }
}

/// Tries the plan of a report on a twin before it is printed.
pub(crate) fn try_plan(report: &mut Report, kept: Option<Kept>) {
    // A sick host is loaded: what other programs take of the CPUs must not change the answer.
    let cpus = u32::try_from(workers()).unwrap_or(u32::MAX);
    let budget = Budget {
        until: Some(Instant::now() + LONGEST_LOADED),
        cpu: Some(cpu_used() + LONGEST.saturating_mul(cpus)),
        events: Some(EVENTS_MAX),
        ..Budget::default()
    };
    trial::try_plan(report, kept, &|events| budget.is_left(events), &mut Threads { progress: None });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_of_cpu_time_ends_with_the_time_that_was_used() {
        let start = cpu_used();
        let left = |cpu| Budget { cpu: Some(cpu), ..Budget::default() }.is_left(0);
        assert!(left(start + Duration::from_secs(3600)));
        let end = Instant::now() + Duration::from_secs(60);
        while left(start + Duration::from_millis(50)) && Instant::now() < end {}
        assert!(!left(start + Duration::from_millis(50)), "it used its time");
    }
}
