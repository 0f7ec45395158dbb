// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observations of different lengths of one simulated machine. A shorter one may miss a finding of a longer one,
//! but it must not rule it out. A plan, once given, stays the same however long the machine is watched.

use floodline_analysis::diagnose::diagnose;
use floodline_analysis::report::{Report, Severity};
use floodline_record::record::{Record, Sink, What};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::ScenarioFile;
use floodline_sim::{Options, simulate};

/// A scenario, its variant, the kernel.
type Machine = (&'static str, &'static str, &'static str);

/// Machines that are sick all the time or again and again.
const SICK: &[Machine] = &[
    (include_str!("../../../scenarios/starved-budget.toml"), "incident", "6.12.43"),
    (include_str!("../../../scenarios/dirty-cliff.toml"), "incident", "6.12.43"),
    (include_str!("../../../scenarios/dirty-cliff.toml"), "incident-short", "5.10.223"),
    (include_str!("../../../scenarios/slow-disk-journal.toml"), "incident", "6.12.43"),
    (include_str!("../../../scenarios/inode-switch-storm.toml"), "incident", "6.12.43"),
    (include_str!("../../../scenarios/blind/cliff-v1.toml"), "incident", "5.10.223"),
    (include_str!("../../../scenarios/blind/cliff-of-export.toml"), "incident", "6.8.0"),
    (include_str!("../../../scenarios/blind/cliff-in-parts.toml"), "incident", "6.1.192"),
    (include_str!("../../../scenarios/blind/cliff-of-boot-disk.toml"), "incident", "5.10.223"),
    (include_str!("../../../scenarios/blind/cliff-of-boot-disk.toml"), "xfs", "6.12.117"),
    (include_str!("../../../scenarios/blind/cliff-of-scattered-pages.toml"), "incident", "6.12.43"),
    (include_str!("../../../scenarios/blind/journal-in-mirror.toml"), "incident", "6.1.192"),
    (include_str!("../../../scenarios/blind/two-disks.toml"), "both", "6.12.117"),
    (include_str!("../../../scenarios/blind/two-disks.toml"), "second-left", "6.12.117"),
];

/// Rules whose disease comes and goes with the flusher.
const PERIODIC: &[&str] = &["dirty-cliff", "dominant-writer", "fsync-behind-writeback"];

/// Lengths, seconds: from the shortest observation allowed to longer than any of the machines runs.
const LENGTHS: &[u64] = &[3, 6, 10, 15, 20, 30, 45, 60, 100];
/// Length in seconds from which a plan no longer changes.
const SETTLED: u64 = 20;

fn recording((text, variant, kernel): &Machine) -> Vec<Record> {
    let scenario = ScenarioFile::parse(text).expect("a scenario").variants.remove(*variant).expect("a variant");
    let mut records = Vec::new();
    let take = |record: Record| {
        records.push(record);
        Ok(())
    };
    simulate(&scenario, &Options::new(variant, kernel.parse().expect("a version")), take, |_| true).expect("a run");
    records
}

/// Diagnosis after some seconds, counted from the start of the programs.
fn after(records: &[Record], seconds: u64) -> Report {
    let mut window = Window::default();
    let mut end = None;
    for record in records {
        match record {
            Record::Event(event) => match event.what {
                What::WorkloadStarted { .. } => {
                    window.begin_again();
                    end = Some(Nanos(event.at.0 + seconds * 1_000_000_000));
                }
                What::WorkloadEnded => break,
                _ => {}
            },
            Record::Sample(sample) if end.is_some_and(|end| sample.time.monotonic > end) => break,
            _ => {}
        }
        let Ok(()) = window.record(record);
    }
    diagnose(&window, None)
}

fn plan(report: &Report) -> Vec<&str> {
    report.plan.iter().flat_map(|plan| plan.steps.iter().map(|step| step.command.as_str())).collect()
}

#[test]
fn what_a_longer_observation_finds_a_shorter_one_does_not_rule_out() {
    for machine in SICK {
        let records = recording(machine);
        let reports: Vec<(u64, Report)> = LENGTHS.iter().map(|seconds| (*seconds, after(&records, *seconds))).collect();
        for (long, later) in &reports {
            let causes =
                later.findings.iter().filter(|one| one.severity >= Severity::Warning && one.explained_by.is_none());
            for cause in causes.filter(|cause| PERIODIC.contains(&cause.rule)) {
                for (short, earlier) in reports.iter().filter(|(short, _)| short < long) {
                    let ruled_out = earlier.ruled_out.iter().find(|one| one.rule == cause.rule);
                    assert_eq!(
                        ruled_out,
                        None,
                        "{} {}: {short} s, found after {long} s",
                        machine.0.lines().nth(1).unwrap_or(""),
                        machine.1
                    );
                }
            }
        }
    }
}

#[test]
fn a_plan_stays_the_same_however_long_the_machine_is_watched() {
    for machine in SICK {
        let records = recording(machine);
        let mut first: Option<(u64, Report)> = None;
        for seconds in LENGTHS.iter().filter(|seconds| **seconds >= SETTLED) {
            let report = after(&records, *seconds);
            match &first {
                Some((before, known)) => assert_eq!(
                    plan(&report),
                    plan(known),
                    "{} {}: after {seconds} s, and after {before} s",
                    machine.0.lines().nth(1).unwrap_or(""),
                    machine.1
                ),
                None if !plan(&report).is_empty() => first = Some((*seconds, report)),
                None => {}
            }
        }
    }
}

#[test]
fn a_short_look_that_finds_nothing_on_a_sick_machine_names_what_it_did_not_see() {
    for machine in SICK {
        let records = recording(machine);
        for seconds in [3, 6, 10, 15, 20] {
            let report = after(&records, seconds);
            let is_calm = report.findings.iter().all(|finding| finding.severity < Severity::Warning);
            assert!(!is_calm || !report.unseen.is_empty(), "{} after {seconds} s", machine.1);
        }
    }
}
