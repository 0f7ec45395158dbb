// SPDX-License-Identifier: MIT OR Apache-2.0
//! A search runs the host as it is once: the back-test and the prediction use that run.
#![allow(clippy::unwrap_used, reason = "tests")]

use floodline_analysis::advice::Goal;
use floodline_record::record::Sink;
use floodline_record::version::KernelVersion;
use floodline_scenario::ScenarioFile;
use floodline_sim::simulate;
use floodline_twin::Recorded;
use floodline_twin::advise::{FOLIOS, Wanted};
use floodline_twin::trial::{Runner, Studied, advise};

/// Runs one after the other, and counts.
struct Counting(usize);

impl Runner for Counting {
    fn each<T: Sync, R: Send>(&mut self, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        self.0 += items.len();
        items.iter().map(run).collect()
    }
}

#[test]
fn the_host_as_it_is_runs_once() {
    let text = include_str!("../../../scenarios/dirty-cliff.toml");
    let scenario = ScenarioFile::parse(text).unwrap().variants.remove("incident-short").unwrap();
    let mut recorded = Recorded::default();
    let options = floodline_sim::Options::new("v", KernelVersion::new(6, 12, 0));
    let take = |record| {
        let Ok(()) = recorded.record(&record);
        Ok(())
    };
    simulate(&scenario, &options, take, |_| true).unwrap();
    let studied = Studied::of(recorded).unwrap();
    let wanted = Wanted { goal: Goal::Latency, at_risk_bytes: None, folios: FOLIOS, pause_seconds: None, most: 3 };
    let mut runner = Counting(0);
    let advice = advise(&studied, wanted, &|_| true, &mut runner).unwrap();
    let prediction = advice.prediction.expect("a setting is better than the cliff");
    assert!(prediction.back_test_error.is_some());
    assert_eq!(runner.0, advice.tried.len() + prediction.runs - 1);
}
