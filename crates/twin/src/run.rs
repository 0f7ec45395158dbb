// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a scenario on the model, folded from the start of its workload to its end. The setup is not included, so
//! that the run can be compared with a recording.

use floodline_record::record::{Record, Sink, What};
use floodline_record::sample::Sample;
use floodline_record::version::KernelVersion;
use floodline_record::window::Window;
use floodline_scenario::Scenario;
use floodline_sim::{Options, Sampling, SimError, simulate};
use std::convert::Infallible;
use std::sync::Arc;

/// A window over the workload of a run.
#[derive(Debug, Default)]
pub struct Simulated {
    /// The window.
    pub window: Window,
    /// The last sample before the workload.
    last: Option<Box<Sample>>,
    has_begun: bool,
    is_over: bool,
}

impl Sink for Simulated {
    type Error = Infallible;

    fn record(&mut self, record: &Record) -> Result<(), Infallible> {
        if let Record::Sample(sample) = record {
            if self.is_over {
                return Ok(());
            }
            if !self.has_begun {
                self.last = Some(sample.clone());
            }
        }
        self.window.record(record)?;
        let Record::Event(event) = record else { return Ok(()) };
        match event.what {
            What::WorkloadStarted { .. } => {
                // Growth is counted from the sample before the start.
                self.has_begun = true;
                self.window.begin_again();
                if let Some(sample) = self.last.take() {
                    self.window.record(&Record::Sample(sample))?;
                }
                self.window.record(record)?;
            }
            What::WorkloadEnded => self.is_over = true,
            _ => {}
        }
        Ok(())
    }
}

/// Runs that were made while a twin was made: its back-test and its predictions need them again. A run has no state but its
/// scenario, its kernel and the times between samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(Vec<Arc<One>>);

#[derive(Debug)]
struct One {
    scenario: Scenario,
    kernel: KernelVersion,
    sampling: Sampling,
    window: Window,
}

impl Known {
    /// The window of a run that is known.
    pub(crate) fn window(&self, scenario: &Scenario, kernel: KernelVersion, sampling: Sampling) -> Option<&Window> {
        let is_it = |one: &&Arc<One>| one.kernel == kernel && one.sampling == sampling && one.scenario == *scenario;
        self.0.iter().find(is_it).map(|one| &one.window)
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, scenario: Scenario, kernel: KernelVersion, sampling: Sampling, window: Window) {
        self.0.push(Arc::new(One { scenario, kernel, sampling, window }));
    }
}

/// Runs a scenario and returns the window over its workload.
///
/// # Errors
///
/// The simulator refuses the scenario or cannot finish it.
pub fn run(scenario: &Scenario, kernel: KernelVersion, sampling: impl Into<Sampling>) -> Result<Window, SimError> {
    Ok(run_while(scenario, kernel, sampling, &|_| true)?.unwrap_or_default())
}

/// Runs a scenario. Asks `go_on` after every sample, with the number of events until then. `None` where it ends the run.
pub(crate) fn run_while(
    scenario: &Scenario,
    kernel: KernelVersion,
    sampling: impl Into<Sampling>,
    go_on: &dyn Fn(u64) -> bool,
) -> Result<Option<Window>, SimError> {
    let options = Options { samples_workload: true, ..Options::new("twin", kernel).sampled(sampling) };
    let mut simulated = Simulated::default();
    let take = |record| {
        let Ok(()) = simulated.record(&record);
        Ok(())
    };
    let is_cut = simulate(scenario, &options, take, |at| go_on(at.events))?.is_interrupted;
    Ok((!is_cut).then_some(simulated.window))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::Nanos;
    use floodline_scenario::ScenarioFile;

    const SOON: &str = r#"
name = "s"
summary = "s"
[machine]
memory = "1 GiB"
[machine.devices.d]
size = "4 GiB"
write_bandwidth = "100 MB/s"
[machine.mounts."/data"]
type = "xfs"
device = "d"
[workload]
duration = "30s"
[workload.tasks.t]
setup = [{ write = { file = "/data/a", block = "1 MiB", total = "77 MiB" } }, "sync"]
steps = [{ write = { file = "/data/b", block = "1 MiB", total = "40 MiB" } }]
"#;

    #[test]
    fn what_the_workload_does_before_the_second_sample_counts_whatever_the_time_between_samples() {
        let file = ScenarioFile::parse(SOON).expect("a scenario");
        let scenario = file.variants.into_values().next().expect("a variant");
        for every in [100, 700, 1000, 5000] {
            let window = run(&scenario, KernelVersion::new(6, 12, 0), Nanos::from_millis(every)).expect("it runs");
            let dirtied = window.host.growth.nr_dirtied.map(|pages| pages.0 / 256);
            assert_eq!(dirtied, Some(40), "{every}");
            let first = window.host_series.first().map(|(time, _)| time.monotonic.0);
            let started = window.events.iter().find(|event| matches!(event.what, What::WorkloadStarted { .. }));
            assert_eq!(first, started.map(|event| event.at.0), "{every}");
            let steps = window.host_series.windows(2).map(|pair| pair[1].0.monotonic.0 - pair[0].0.monotonic.0);
            assert!(steps.into_iter().all(|step| step == every * 1_000_000), "{every}");
        }
    }
}
