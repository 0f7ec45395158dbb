// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of the simulator and its results: shared by the program and the Python package. Does not depend on arguments
//! or on the output format.

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

/// Runs it. `take` receives every record before it is folded; `tell` receives the progress and returns whether to
/// continue.
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
    let fold = |record: Record| {
        let Ok(()) = run.record(&record);
        take(&record)
    };
    let summary = simulate(scenario, &options, fold, tell)?;
    let (figures, findings) = (run.figures(), run.diagnose().findings);
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
        recording: None,
    };
    Ok(Outcome { report, run, is_interrupted: summary.is_interrupted })
}

/// As simulated time.
pub fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
