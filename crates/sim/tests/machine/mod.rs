// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of small scenarios for the other tests. All counters add up after every event.

use floodline_analysis::run::Run;
use floodline_record::record::{Record, Sink};
use floodline_scenario::{Scenario, ScenarioFile};
use floodline_sim::{Options, simulate};

/// The only variant of a file.
pub(crate) fn scenario(text: &str) -> Scenario {
    let file = ScenarioFile::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    file.variants.into_values().next().expect("its variant")
}

pub(crate) fn options(kernel: &str) -> Options {
    Options { checks_every_event: true, ..Options::new("default", kernel.parse().expect("a version")) }
}

/// Runs on a kernel, and keeps the records for which `takes` returns true.
pub(crate) fn run_of(scenario: &Scenario, kernel: &str, mut takes: impl FnMut(&Record) -> bool) -> Run {
    let mut run = Run::default();
    let take = |record: Record| {
        if takes(&record) {
            let Ok(()) = run.record(&record);
        }
        Ok(())
    };
    simulate(scenario, &options(kernel), take, |_| true).unwrap_or_else(|error| panic!("{error}"));
    run
}

pub(crate) fn figure(run: &Run, name: &str) -> f64 {
    run.figures().get(name).unwrap_or_else(|| panic!("no {name}")).value
}
