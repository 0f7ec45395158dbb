// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline simulate SCENARIO`: one variant of a scenario on the model of the kernel. The result is a
//! recording like that of any host, the figures of its workload, what `doctor` says of it, and whether all
//! that is as the scenario expects. Nothing of this host is read; the same seed prints the same.

use super::Run as Command;
use super::lab::execute::read_scenario;
use super::record::Recorder;
use crate::asked::Asked;
use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Existing, is_standard};
use floodline_analysis::compare::{Reading, Side, compare};
use floodline_kernel::{is_newer_than_modelled, newest_modelled};
use floodline_record::human;
use floodline_record::record::Record;
use floodline_record::version::KernelVersion;
use floodline_scenario::Scenario;
use floodline_sim::{Found, SimError, Speed};
use floodline_twin::model::{self, Order, Outcome};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Run one variant of a scenario on a model of the kernel's writeback
#[derive(clap::Parser)]
#[command(
    name = "simulate",
    after_help = "Exit code 1 if an expectation of the scenario was not met.\n\n\
        Examples:\n  \
        floodline simulate scenarios/dirty-cliff.toml\n  \
        floodline simulate scenarios/dirty-cliff.toml \\\n    \
        --set vm.dirty_background_bytes=32M --set vm.dirty_bytes=128M\n  \
        floodline simulate scenarios/starved-budget.toml --kernel 6.1 \\\n    \
        --save starved.flr\n  \
        floodline simulate scenarios/starved-budget.toml --kernel 6.1 --vs remedy"
)]
pub(crate) struct Simulate {
    /// Scenario file, or the name of a scenario that floodline scenario list shows
    scenario: PathBuf,
    #[command(flatten)]
    asked: Asked,
    /// Second variant to run and compare with the first
    #[arg(long, value_name = "NAME", conflicts_with = "save")]
    vs: Option<String>,
    /// Show all figures of --vs by name; by default, those with the largest change
    #[arg(long, requires = "vs")]
    all: bool,
    /// Seed of all randomness [default: the scenario's seed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Save the recording to this file; - writes it to standard output and the figures to standard error
    #[arg(long, visible_short_alias = 'o', value_name = "FILE")]
    save: Option<PathBuf>,
    /// Overwrite the file of --save if it exists
    #[arg(long, requires = "save")]
    force: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Command for Simulate {
    fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        if self.save.as_deref().is_some_and(is_standard) {
            console.leave_standard_output();
        }
        let interrupt = Interrupt::watch()?;
        let kernel = self.asked.kernel(None)?;
        let (variant, scenario) = self.prepare(self.asked.variant.as_deref())?;
        let other = self.vs.as_deref().map(|vs| self.prepare(Some(vs))).transpose()?;
        console.note(&format!("seed {}, kernel {kernel}", scenario.workload.seed));
        if is_newer_than_modelled(kernel) {
            let newest = newest_modelled();
            console
                .note(&format!("{newest} is the newest kernel that the model supports; {kernel} is simulated like it"));
        }
        let one = self.simulate(console, &interrupt, &scenario, &variant, kernel)?;
        let Some((other_variant, other)) = other else { return self.print_one(console, one) };
        let interrupted =
            || CliError::cannot_observe("interrupted before both variants had run, so nothing is compared");
        if one.is_interrupted {
            return Err(interrupted());
        }
        let two = self.simulate(console, &interrupt, &other, &other_variant, kernel)?;
        if two.is_interrupted {
            return Err(interrupted());
        }
        self.print_both(console, &[(variant, one), (other_variant, two)])
    }
}

/// Run time after which a note reports the pace once, if no progress is shown.
const SLOW: Duration = Duration::from_secs(20);

/// How far a run is after some time, and how long it will take at this pace, e.g. `3 s simulated, 0.2 × real time, about 40 s
/// left`. The length of a workload leaves out its setup.
fn pace(simulated: Duration, elapsed: Duration, length: Option<Duration>) -> String {
    let speed = simulated.as_secs_f64() / elapsed.as_secs_f64().max(1e-3);
    let far = match speed {
        slow if slow < 9.95 => format!("{slow:.1} × real time"),
        fast => format!("{fast:.0} × real time"),
    };
    let left = length.map(|length| length.saturating_sub(simulated).as_secs_f64() / speed.max(1e-9));
    let left = left.map_or(String::new(), |left| format!(", about {} left", human::seconds(left)));
    format!("{:.0} s simulated, {far}{left}", simulated.as_secs_f64())
}

/// Whether runs are as their scenarios expect.
fn exit(outcomes: &[&Outcome]) -> Exit {
    if outcomes.iter().all(|outcome| outcome.report.not_as_expected.is_empty()) { Exit::Done } else { Exit::Findings }
}

impl Simulate {
    /// The figures of a run.
    fn print_one(&self, console: &mut Console, outcome: Outcome) -> Result<Exit, CliError> {
        let exit = exit(&[&outcome]);
        let reports = [outcome.report];
        console.print(&match self.format {
            Format::Text => floodline_view::run::text(&reports, console.width()),
            Format::Json => floodline_view::run::json(&reports).map_err(CliError::bug)?,
        })?;
        Ok(exit)
    }

    /// Two runs side by side.
    fn print_both(&self, console: &mut Console, runs: &[(String, Outcome); 2]) -> Result<Exit, CliError> {
        for (variant, outcome) in runs {
            for said in &outcome.report.not_as_expected {
                console.note(&format!("{variant} is not as the scenario expects: {said}"));
            }
        }
        let side = |(label, outcome): &(String, Outcome)| Side {
            label: label.clone(),
            readings: vec![Reading::of(&outcome.run.window)],
        };
        let comparison = compare(&runs.each_ref().map(side));
        let mut comparison = comparison.ok_or_else(|| CliError::bug("two runs are not two sides"))?;
        comparison.simplified = floodline_view::run::simplified_of(runs.iter().map(|(_, outcome)| &outcome.report));
        console.print(&match self.format {
            Format::Text => floodline_view::compare::text(&comparison, console.width(), self.all),
            Format::Json => floodline_view::compare::json(&comparison).map_err(CliError::bug)?,
        })?;
        Ok(exit(&runs.each_ref().map(|(_, outcome)| outcome)))
    }

    /// The scenario with what the command line changes of it.
    fn prepare(&self, variant: Option<&str>) -> Result<(String, Scenario), CliError> {
        let (variant, scenario) = read_scenario(&self.scenario, variant)?;
        let mut scenario = self.asked.changed(&scenario)?;
        if let Some(seed) = self.seed {
            scenario.workload.seed = seed;
        }
        Ok((variant, scenario))
    }

    fn simulate(
        &self,
        console: &Console,
        interrupt: &Interrupt,
        scenario: &Scenario,
        variant: &str,
        kernel: KernelVersion,
    ) -> Result<Outcome, CliError> {
        let (speed, found) = (Speed::default(), Found::default());
        let order = Order { scenario, variant, kernel, every: self.asked.every(), speed, found };
        let mut kept = self.save.as_deref().map(|path| Kept::at(path, self.force, Duration::from_nanos(order.every.0)));
        let mut progress = console.progress();
        let started = Instant::now();
        let take = |record: &Record| match &mut kept {
            Some(kept) => kept.record(record),
            None => Ok(()),
        };
        let length = scenario.workload.duration.map(|time| Duration::from_nanos(time.nanos()));
        let mut is_slow_said = false;
        let outcome = model::run(&order, take, |at| {
            let pace = || pace(Duration::from_nanos(at.now.0), started.elapsed(), length);
            progress.tell(|| {
                let dirty = human::bytes(at.nr_dirty as f64 * 4096.0);
                format!("{variant}: {}, dirty {dirty}", pace())
            });
            // Without a terminal, nothing else shows that the run goes on.
            if !is_slow_said && !progress.is_shown() && started.elapsed() >= SLOW {
                is_slow_said = true;
                console.note(&format!("the run is slow: {}; lower instances or --for to shorten it", pace()));
            }
            !interrupt.is_asked()
        });
        drop(progress);
        if let Some(kept) = kept {
            kept.finish()?;
        }
        let mut outcome = outcome.map_err(CliError::from)?;
        if outcome.is_interrupted {
            console.note(&format!("interrupted after {:.0} simulated s", outcome.report.seconds));
        }
        let file = self.save.as_ref().filter(|path| !is_standard(path));
        outcome.report.recording = file.map(|path| path.display().to_string());
        Ok(outcome)
    }
}

/// The recording of `--save`. It is started with the first record: a scenario that is refused leaves nothing behind.
struct Kept<'a> {
    path: &'a Path,
    existing: Existing,
    every: Duration,
    recorder: Option<Recorder>,
    /// Why no more can be written.
    failure: Option<CliError>,
}

impl<'a> Kept<'a> {
    fn at(path: &'a Path, force: bool, every: Duration) -> Kept<'a> {
        Kept { path, existing: Existing::by_force(force), every, recorder: None, failure: None }
    }

    fn record(&mut self, record: &Record) -> Result<(), SimError> {
        let written = self.try_record(record);
        written.map_err(|error| {
            let said = SimError::Sink(error.to_string());
            self.failure = Some(error);
            said
        })
    }

    fn try_record(&mut self, record: &Record) -> Result<(), CliError> {
        let recorder = match &mut self.recorder {
            Some(recorder) => recorder,
            None => self.recorder.insert(Recorder::start(self.path, self.existing, self.every)?),
        };
        recorder.record(record)
    }

    /// Writes what is left. An earlier failure is the one to tell.
    fn finish(self) -> Result<(), CliError> {
        match (self.failure, self.recorder) {
            (Some(failure), _) => Err(failure),
            (None, Some(recorder)) => recorder.finish().map(drop),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_what_it_will_cost() {
        let pace = |simulated, elapsed, length: Option<u64>| {
            super::pace(Duration::from_secs(simulated), Duration::from_secs(elapsed), length.map(Duration::from_secs))
        };
        assert_eq!(pace(3, 60, Some(11)), "3 s simulated, 0.1 × real time, about 3 min left");
        assert_eq!(pace(100, 1, Some(600)), "100 s simulated, 100 × real time, about 5.00 s left");
        assert_eq!(pace(5, 1, None), "5 s simulated, 5.0 × real time");
        assert_eq!(pace(0, 1, Some(0)), "0 s simulated, 0.0 × real time, about 0 s left");
    }
}
