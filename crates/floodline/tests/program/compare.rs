// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline compare`: two recordings, repeats, and what is refused.

use crate::harness::{floodline, recording};
use floodline_testkit::{Fixture, mib_pages};
use serde_json::Value;

fn ramp(mib: f64) -> Fixture {
    Fixture::healthy().host(move |t, row| row.nr_dirty = Some(mib_pages(mib * t))).seconds(10)
}

#[test]
fn two_recordings_are_compared_figure_by_figure() {
    let (before, after) = (recording(&ramp(10.0)), recording(&ramp(5.0)));
    let run = floodline(&["compare", before.as_str(), after.as_str()]);
    assert_eq!(run.code, 0, "{run}");
    let line = |name: &str| run.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("host.dirty_peak_bytes").contains("-50.0 %"), "{run}");
    assert!(line("dirty ").contains("25.0 %"), "{run}");
    assert!(run.stderr.contains("noise unknown: give several repeats of each"), "{run}");
}

#[test]
fn repeats_say_how_much_of_a_difference_is_noise() {
    let repeats: Vec<_> = [10.0, 10.5, 9.5].into_iter().map(|mib| recording(&ramp(mib))).collect();
    let together = repeats.iter().map(|file| file.as_str()).collect::<Vec<_>>().join(",");
    let other = recording(&ramp(30.0));
    let run = floodline(&["compare", &together, other.as_str(), "--format", "json"]);
    let json: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"));
    let figures = json["against"][0]["figures"].as_array().expect("figures");
    let peak = figures.iter().find(|row| row["name"] == "host.dirty_peak_bytes").expect("the peak");
    assert_eq!((&peak["base"]["runs"], &peak["beyond_noise"]), (&Value::from(3), &Value::from(true)), "{peak}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let one = recording(&ramp(1.0));
    let empty = tempfile::tempdir().expect("a folder");
    let check = |other: &str, says: &str| {
        let run = floodline(&["compare", one.as_str(), other]);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(says), "{run}");
    };
    check("/nowhere.flr", "/nowhere.flr");
    check(&empty.path().to_string_lossy(), "contains no recordings");
}

#[test]
fn other_times_between_samples_are_a_warning() {
    let (often, rarely) = (recording(&ramp(10.0)), recording(&ramp(10.0).every(2.0)));
    let run = floodline(&["compare", often.as_str(), rarely.as_str()]);
    assert!(run.stdout.contains("Warning: The samples of A are 1.00 s apart, those of B 2.00 s."), "{run}");
    let run = floodline(&["verify", often.as_str(), rarely.as_str()]);
    assert!(run.stderr.contains("The samples of the first recording are 1.00 s apart, those of the second"), "{run}");
    let run = floodline(&["compare", often.as_str(), often.as_str()]);
    assert!(!run.stdout.contains("Warning"), "{run}");
}
