// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scenarios of this repository in the simulator. The model meets the expectations of a variant on real kernels
//! without special cases. The same seed makes the same recording, byte for byte, in strides or one event at a time.
//! All counters add up after every event.

use floodline_analysis::run::{Run, misses};
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{Encoder, Header};
use floodline_record::units::Nanos;
use floodline_scenario::{Scenario, ScenarioFile};
use floodline_sim::{Found, Options, Sampling, SimError, simulate};

const DIRTY_CLIFF: &str = include_str!("../../../scenarios/dirty-cliff.toml");
const STARVED_BUDGET: &str = include_str!("../../../scenarios/starved-budget.toml");
const SLOW_JOURNAL: &str = include_str!("../../../scenarios/slow-disk-journal.toml");
const OVERLAY: &str = include_str!("../../../scenarios/overlay-umount.toml");
const SWITCH_STORM: &str = include_str!("../../../scenarios/inode-switch-storm.toml");
const HEALTHY_CONTAINERS: &str = include_str!("../../../scenarios/healthy-containers.toml");
const HEALTHY_DATABASE: &str = include_str!("../../../scenarios/healthy-database.toml");
const HEALTHY_IDLE: &str = include_str!("../../../scenarios/healthy-idle.toml");
const STACKED: [&str; 2] = [
    include_str!("../../../scenarios/stacks/stacked-stream.toml"),
    include_str!("../../../scenarios/stacks/stacked-writers.toml"),
];

fn variant(text: &str, name: &str) -> Scenario {
    ScenarioFile::parse(text).expect("it works").variants.remove(name).expect("it works")
}

fn options(variant: &str, kernel: &str) -> Options {
    Options::new(variant, kernel.parse().expect("it works"))
}

fn records(scenario: &Scenario, options: &Options) -> Vec<Record> {
    let mut records = Vec::new();
    let take = |record| {
        records.push(record);
        Ok(())
    };
    simulate(scenario, options, take, |_| true).expect("it works");
    records
}

fn check(text: &str, name: &str, kernel: &str) {
    let misses = unmet(text, name, kernel);
    assert!(misses.is_empty(), "{name} on {kernel}: {misses:?}");
}

/// Expectations of a scenario that a simulated run does not meet.
fn unmet(text: &str, name: &str, kernel: &str) -> Vec<String> {
    let scenario = variant(text, name);
    let options = options(name, kernel);
    let expect = scenario.expect.on(options.kernel);
    let mut run = Run::expecting(&expect);
    for record in records(&scenario, &options) {
        let Ok(()) = run.record(&record);
    }
    misses(&expect, &run.window, &run.figures(), &run.diagnose().findings)
}

#[test]
fn a_hoard_is_sent_at_expiry_and_everyone_waits() {
    check(DIRTY_CLIFF, "incident", "6.12");
    check(DIRTY_CLIFF, "incident", "6.1");
    check(DIRTY_CLIFF, "remedy", "6.12");
}

#[test]
fn a_starved_budget_multiplies_with_large_folios() {
    check(STARVED_BUDGET, "incident", "6.12");
    check(STARVED_BUDGET, "incident", "6.1");
    check(STARVED_BUDGET, "remedy", "6.12");
    check(STARVED_BUDGET, "ext4", "6.12");
}

#[test]
fn samples_that_read_the_counters_of_cgroups_now_and_then_add_little_to_a_storm() {
    let dirtied = |every: u64, stat_every: u64| {
        let sampling = Sampling { every: Nanos::from_millis(every), stat_every: Nanos::from_millis(stat_every) };
        let mut run = Run::default();
        for record in records(&variant(STARVED_BUDGET, "incident"), &options("incident", "6.12").sampled(sampling)) {
            let Ok(()) = run.record(&record);
        }
        assert_eq!(run.window.stat_reads.distance(), Some(Nanos::from_millis(stat_every.max(every))));
        run.window.host.growth.nr_dirtied.expect("it is read").0 as f64
    };
    let as_the_sampler = [dirtied(500, 2000), dirtied(1000, 2000), dirtied(2000, 2000)];
    let in_each = [dirtied(500, 0), dirtied(1000, 0)];
    assert!(as_the_sampler.iter().all(|few| *few < 1.1 * as_the_sampler[2]), "{as_the_sampler:?}");
    assert!(in_each[0] > 2.0 * as_the_sampler[2], "{in_each:?}, {as_the_sampler:?}");
}

#[test]
fn scattered_pages_of_a_journal_hold_up_a_slow_disk() {
    check(SLOW_JOURNAL, "incident", "6.12");
    check(SLOW_JOURNAL, "remedy", "6.12");
    check(SLOW_JOURNAL, "incident-raid1", "6.12");
}

#[test]
fn stacked_devices_are_as_fast_as_their_disks() {
    for text in STACKED {
        let file = ScenarioFile::parse(text).expect("it works");
        for name in file.variants.keys() {
            for kernel in ["6.1", "6.12", "7.2"] {
                check(text, name, kernel);
            }
        }
    }
}

#[test]
fn unmounting_an_overlay_writes_out_its_upper_filesystem() {
    check(OVERLAY, "incident", "6.12");
    check(OVERLAY, "incident", "5.10");
    check(OVERLAY, "serial", "6.1");
    check(OVERLAY, "remedy", "6.12");
    check(OVERLAY, "syncfs-before", "6.12");
}

#[test]
fn a_mounted_overlay_makes_the_flusher_of_its_upper_filesystem_look_around_once() {
    // The interval is a minute, but was five seconds while the overlays were mounted. A device without a history
    // may hold no dirty pages. Recordings of real kernels wrote 90 MiB then: a chunk of each of three files.
    let scenario = variant(OVERLAY, "remedy");
    let found = Found { quiet: Some(Nanos(3 * Nanos::SECOND.0)), ..Found::default() };
    let mut run = Run::default();
    for record in records(&scenario, &Options { found, ..options("remedy", "6.12") }) {
        let Ok(()) = run.record(&record);
    }
    let written = run.figures()["host.written_bytes"].value / f64::from(1 << 20);
    assert!((30.0..=120.0).contains(&written), "{written} MiB");
}

#[test]
fn inodes_of_a_removed_cgroup_are_switched_at_the_price_of_the_kernel() {
    // On an emulated CPU a step along a list takes at least twice the model's time; a batch keeps a CPU here for up to 60 ms.
    check(SWITCH_STORM, "incident", "6.12.43");
    check(SWITCH_STORM, "incident", "6.12");
    check(SWITCH_STORM, "incident", "6.1.176");
    check(SWITCH_STORM, "delayed", "6.8");
    check(SWITCH_STORM, "remedy", "6.12.43");
    check(SWITCH_STORM, "incident", "6.12.117");
    check(SWITCH_STORM, "incident", "5.10");
}

#[test]
fn healthy_machines_are_found_healthy() {
    check(HEALTHY_CONTAINERS, "default", "6.12");
    check(HEALTHY_DATABASE, "default", "6.12");
    check(HEALTHY_DATABASE, "buffered", "6.12");
    check(HEALTHY_IDLE, "default", "6.12");
}

fn recording(scenario: &Scenario, options: &Options) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new(), Header::new(Some(options.every))).expect("it works");
    for record in records(scenario, options) {
        encoder.record(&record).expect("it works");
    }
    encoder.finish().expect("it works")
}

#[test]
fn the_same_seed_makes_the_same_bytes_and_another_seed_others() {
    let scenario = variant(STARVED_BUDGET, "incident-short");
    let options = options("incident-short", "6.12");
    let first = recording(&scenario, &options);
    assert!(first == recording(&scenario, &options));
    let mut other = scenario;
    other.workload.seed = 1;
    assert!(first != recording(&other, &options));
}

#[test]
fn counters_add_up_after_every_event() {
    for (text, name, kernel) in [
        (DIRTY_CLIFF, "incident-short", "6.1"),
        (STARVED_BUDGET, "incident-short", "6.12"),
        (OVERLAY, "incident-short", "5.10"),
        (SLOW_JOURNAL, "incident-short", "7.2"),
    ] {
        let options = Options { checks_every_event: true, ..options(name, kernel) };
        simulate(&variant(text, name), &options, |_| Ok(()), |_| true).expect("it works");
    }
}

#[test]
fn strides_make_the_recording_that_single_steps_make() {
    for (text, name, kernel) in [
        (DIRTY_CLIFF, "remedy-short", "6.12"),
        (STARVED_BUDGET, "incident-short", "6.1"),
        (OVERLAY, "incident-short", "6.12"),
        (SLOW_JOURNAL, "incident-short", "5.10"),
        (HEALTHY_IDLE, "default", "6.12"),
    ] {
        let scenario = variant(text, name);
        let strides = options(name, kernel);
        let steps = Options { checks_every_event: true, ..strides.clone() };
        assert!(recording(&scenario, &strides) == recording(&scenario, &steps), "{name} on {kernel}");
    }
}

fn refusal(change: impl FnOnce(&mut Scenario)) -> String {
    let mut scenario = variant(HEALTHY_IDLE, "default");
    change(&mut scenario);
    let error = simulate(&scenario, &options("default", "6.12"), |_| Ok(()), |_| true).expect_err("a refusal");
    error.to_string()
}

#[test]
fn what_cannot_be_is_refused_with_the_rule_it_breaks() {
    let said = refusal(|scenario| scenario.machine.memory.0.0 = 4096);
    assert!(said.contains("too little for a kernel"), "{said}");
    let said = refusal(|scenario| scenario.machine.hz = Some(7));
    assert!(said.contains("100, 250, 300 or 1000"), "{said}");
    let said = refusal(|scenario| {
        let device = scenario.machine.devices.get_mut("data").expect("it works");
        device.write_bandwidth.as_mut().expect("it works").0.0 = 0;
    });
    assert!(said.contains("machine.devices.data.write_bandwidth = 0"), "{said}");
}

#[test]
fn what_is_not_modelled_is_refused_by_name() {
    let scenario = variant(SLOW_JOURNAL, "incident-real");
    match simulate(&scenario, &options("incident-real", "6.12"), |_| Ok(()), |_| true) {
        Err(SimError::NotHonoured(keys)) => {
            assert!(keys.iter().any(|key| key.key.starts_with("workload.tasks.journald.program")), "{keys:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_that_cannot_go_on_says_who_waits_for_what() {
    let mut scenario = variant(HEALTHY_IDLE, "default");
    let waits = floodline_scenario::Step::WaitFor(floodline_scenario::WaitFor { task: "b".to_owned() });
    let task = floodline_scenario::Task { steps: vec![waits], ..floodline_scenario::Task::default() };
    let mut other = task.clone();
    if let Some(floodline_scenario::Step::WaitFor(step)) = other.steps.first_mut() {
        step.task = "a".to_owned();
    }
    scenario.workload.duration = None;
    scenario.workload.tasks = [("a".to_owned(), task), ("b".to_owned(), other)].into_iter().collect();
    let error = simulate(&scenario, &options("default", "6.12"), |_| Ok(()), |_| true).expect_err("a refusal");
    assert!(error.to_string().contains("a-0 waits for the end of another task"), "{error}");
}
