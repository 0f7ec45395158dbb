// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator against a measured run: three times read, compute and write of 20 GB on a host with 268 GB. Only
//! copy speeds and device rates are fitted. The measurement is not in this repository: `FLOODLINE_REFERENCE_DATA`
//! names the folder that has `pipeline-20gb/`. Without it the test is skipped.
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "reads reference data, prints how far off it is")]

use floodline_record::record::{Event, Record, What};
use floodline_record::units::Nanos;
use floodline_scenario::{Lasting, Scenario, ScenarioFile, Step, Task, Time};
use floodline_sim::{Options, simulate};
use floodline_skip::{Need, skip};
use std::path::PathBuf;

const PIPELINE: &str = include_str!("../../../scenarios/pipeline-20gb.toml");
/// Seconds over which the series are compared: until everything is written.
const SECONDS: u64 = 230;

fn table(name: &str) -> Option<Vec<Vec<String>>> {
    let Some(folder) = std::env::var_os("FLOODLINE_REFERENCE_DATA") else {
        skip(Need::Data, format_args!("FLOODLINE_REFERENCE_DATA names no folder with pipeline-20gb/{name}"));
        return None;
    };
    let path = PathBuf::from(folder).join("pipeline-20gb").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some(text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect())
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|error| panic!("{error}: {cell}"))
}

/// Durations of the six phases in seconds, and dirty pages at every second.
fn simulated() -> (Vec<f64>, Vec<f64>) {
    let mut file = ScenarioFile::parse(PIPELINE).expect("a scenario");
    let mut scenario: Scenario = file.variants.remove("default").expect("its variant");
    // The measurement goes on after the last write.
    let lasting = Time(Nanos(SECONDS * Nanos::SECOND.0));
    let watch = Task { steps: vec![Step::Sleep(Lasting { lasting })], ..Task::default() };
    scenario.workload.tasks.insert("watch".to_owned(), watch);
    let kernel = "4.18".parse().expect("a version");
    let every = Nanos::from_millis(100);
    let options = Options { every, ..Options::new("default", kernel) };
    let (mut start, mut phases, mut dirty) = (0, Vec::<(String, f64)>::new(), Vec::new());
    let take = |record: Record| {
        match record {
            Record::Event(Event { at, what: What::WorkloadStarted { .. } }) => start = at.0,
            Record::Event(Event { what: What::TaskStall { operation, lasted, .. }, .. }) if operation != "burn" => {
                let seconds = lasted.as_secs_f64();
                match phases.last_mut() {
                    Some((last, sum)) if *last == operation => *sum += seconds,
                    _ => phases.push((operation.into(), seconds)),
                }
            }
            Record::Sample(sample) => {
                dirty.push((sample.time.monotonic.0, sample.host.nr_dirty.map_or(0, |pages| pages.0)));
            }
            _ => {}
        }
        Ok(())
    };
    simulate(&scenario, &options, take, |_| true).expect("a run");
    let at = |second: u64| {
        let then = start + second * Nanos::SECOND.0;
        dirty.iter().take_while(|(at, _)| *at <= then).last().map_or(0.0, |(_, pages)| *pages as f64)
    };
    (phases.into_iter().map(|(_, seconds)| seconds).collect(), (0..SECONDS).map(at).collect())
}

#[test]
fn phases_and_dirty_pages_are_those_measured() {
    let (Some(phases), Some(memory)) = (table("phases.csv"), table("mem_20gb.csv")) else { return };
    let (durations, dirty) = simulated();
    let measured: Vec<f64> = phases.iter().map(|row| number(&row[5])).collect();
    assert_eq!((durations.len(), measured.len()), (6, 6), "{durations:?}");
    let errors: Vec<f64> = durations.iter().zip(&measured).map(|(have, want)| (have - want).abs() / want).collect();
    let mean = errors.iter().sum::<f64>() / 6.0;
    let series: Vec<(f64, f64)> = memory.iter().map(|row| (number(&row[0]), number(&row[8]))).collect();
    let at = |second: u64| series.iter().take_while(|(at, _)| *at <= second as f64).last().map_or(0.0, |(_, n)| *n);
    let peak = series.iter().map(|(_, pages)| *pages).fold(0.0, f64::max);
    let off: f64 = (0..SECONDS).zip(&dirty).map(|(second, pages)| (pages - at(second)).abs()).sum();
    let series_error = off / SECONDS as f64 / peak;
    eprintln!("durations: {durations:.2?} against {measured:.2?}, mean error {:.2} %", mean * 100.0);
    eprintln!("dirty pages: mean error {:.2} % of the peak", series_error * 100.0);
    assert!(mean <= 0.05);
    assert!(series_error <= SERIES_ERROR_MAX, "{series_error}");
}

/// Tolerance of the series, as a share of the peak.
const SERIES_ERROR_MAX: f64 = 0.03;
