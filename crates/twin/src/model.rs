// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of the simulator and its results: shared by the program and the Python package. Does not depend on arguments
//! or on the output format.

use floodline_analysis::report::Report;
use floodline_analysis::run::{Run, RunReport, SCHEMA, misses};
use floodline_record::record::{Record, Sink};
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::{Expect, Scenario};
use floodline_sim::{Found, Options, Progress, SimError, Speed, simulate};
use std::time::Duration;

/// What is run.
pub struct Order<'a> {
    /// One variant, with all changes made.
    pub scenario: &'a Scenario,
    /// Its name.
    pub variant: &'a str,
    /// The kernel whose behaviour is modelled.
    pub kernel: KernelVersion,
    /// Time between two samples.
    pub every: Nanos,
    /// How fast the machine is.
    pub speed: Speed,
    /// How it came about, where it is held against a recording.
    pub found: Found,
}

/// A run that came to its end, or was ended.
pub struct Outcome {
    /// Figures and findings.
    pub report: RunReport,
    /// The recording, folded.
    pub run: Run,
    /// Whether it ended before its time because `tell` said so.
    pub is_interrupted: bool,
}

/// Runs it. `take` receives every record before it is folded, but for the sample of the start, with which the figures begin: a recorder has
/// regular samples only. `tell` receives the progress and returns whether to continue.
pub fn run(
    order: &Order<'_>,
    mut take: impl FnMut(&Record) -> Result<(), SimError>,
    tell: impl FnMut(&Progress) -> bool,
) -> Result<Outcome, SimError> {
    let Order { scenario, variant, kernel, every, speed, ref found } = *order;
    let samples_start = true;
    let options = Options { every, speed, found: found.clone(), samples_start, ..Options::new(variant, kernel) };
    let expect = scenario.expect.on(kernel);
    let mut run = Run::expecting(&expect).of_workload();
    let (mut started, mut close) = (None, None);
    // A recorder tells of events after the sample that follows them.
    let (mut held, mut holds) = (Vec::new(), false);
    let mut fold = |record: Record| {
        let at = if let Record::Sample(sample) = &record { Some(sample.time.monotonic.0) } else { None };
        if at.is_some_and(|at| !at.is_multiple_of(every.0.max(1))) {
            (started, holds) = (at, true);
            let Ok(()) = run.record(&record);
            return Ok(());
        }
        if holds && matches!(record, Record::Event(_)) {
            let Ok(()) = run.record(&record);
            held.push(record);
            return Ok(());
        }
        take(&record)?;
        if at.is_some() {
            holds = false;
            held.drain(..).try_for_each(|event| take(&event))?;
            close = None;
        }
        // Rates over a small part of the time between two samples are those of single requests.
        if at.zip(started).is_some_and(|(at, started)| at - started < every.0 / 2) {
            close = Some(record);
            return Ok(());
        }
        let Ok(()) = run.record(&record);
        Ok(())
    };
    let summary = simulate(scenario, &options, &mut fold, tell)?;
    if let Some(last) = close {
        let Ok(()) = run.record(&last);
    }
    let (figures, Report { findings, plan, .. }) = (run.figures(), run.diagnose());
    let not_as_expected = match summary.is_interrupted {
        true => vec!["interrupted: what is expected of the whole run was not judged".to_owned()],
        false => misses(&expect, &run.window, &figures, &findings),
    };
    let report = RunReport {
        schema: SCHEMA,
        executor: "simulator",
        scenario: scenario.name.clone(),
        variant: variant.to_owned(),
        kernel: format!("{kernel}-simulated"),
        kernel_version: kernel,
        samples: summary.samples,
        // Simulated seconds: two runs of one seed print the same bytes.
        seconds: summary.simulated.as_secs_f64(),
        first_sample_seconds: None,
        beside_seconds: None,
        not_as_expected,
        has_expectations: expect != Expect::default(),
        figures,
        findings,
        plan,
        simplified: floodline_sim::simplified(scenario),
        recording: None,
    };
    Ok(Outcome { report, run, is_interrupted: summary.is_interrupted })
}

/// As simulated time.
pub fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::ScenarioFile;

    /// The figures of a run with samples this far apart, and the times of the samples that a recording has.
    fn run_of(steps: &str, every: u64) -> (Outcome, Vec<u64>) {
        let text = format!(
            "name = \"s\"\nsummary = \"s\"\n[machine]\nmemory = \"1 GiB\"\n[machine.devices.d]\nsize = \"4 GiB\"\n\
             read_bandwidth = \"100 MB/s\"\nwrite_bandwidth = \"100 MB/s\"\n[machine.mounts.\"/data\"]\ntype = \"xfs\"\n\
             device = \"d\"\n[workload.tasks.t]\n\
             setup = [{{ write = {{ file = \"/data/a\", block = \"1 MiB\", total = \"77 MiB\" }} }}, \"sync\", \"drop_caches\"]\n\
             steps = [{steps}]\n"
        );
        let scenario = ScenarioFile::parse(&text).unwrap().variants.into_values().next().unwrap();
        let order = Order {
            scenario: &scenario,
            variant: "default",
            kernel: KernelVersion::new(6, 12, 0),
            every: Nanos::from_millis(every),
            speed: Speed::default(),
            found: Found::default(),
        };
        let mut times = Vec::new();
        let outcome = run(
            &order,
            |record| {
                if let Record::Sample(sample) = record {
                    times.push(sample.time.monotonic.0);
                }
                Ok(())
            },
            |_| true,
        );
        (outcome.unwrap(), times)
    }

    #[test]
    fn figures_of_host_and_devices_begin_with_the_workload_whatever_the_time_between_samples() {
        let mib =
            |outcome: &Outcome, name: &str| outcome.report.figures.get(name).map(|figure| figure.value / 1048576.0);
        for every in [100, 500, 700, 2000, 5000] {
            let (outcome, times) = run_of("{ read = { file = \"/data/a\", block = \"1 MiB\" } }", every);
            let read = mib(&outcome, "devices.read_bytes");
            assert!(read.is_some_and(|read| (77.0..78.0).contains(&read)), "{every}: {read:?}");
            let is_regular = |time: &u64| time.is_multiple_of(every * 1_000_000);
            assert!(times.len() > 1 && times.iter().all(is_regular), "{every}: {times:?}");
            let steps = "{ write = { file = \"/data/b\", block = \"1 MiB\", total = \"40 MiB\" } }, { fdatasync = { file = \"/data/b\" } }";
            let (outcome, _) = run_of(steps, every);
            assert_eq!(mib(&outcome, "host.dirtied_bytes"), Some(40.0), "{every}");
            let written = mib(&outcome, "devices.written_bytes");
            assert!(written.is_some_and(|written| (40.0..41.0).contains(&written)), "{every}: {written:?}");
        }
    }

    #[test]
    fn a_report_has_what_the_model_leaves_out() {
        let (outcome, _) = run_of("{ anon = { size = \"1 MiB\" } }", 500);
        assert!(
            outcome.report.simplified.concat().starts_with("Swap is not simulated."),
            "{:?}",
            outcome.report.simplified
        );
    }
}
