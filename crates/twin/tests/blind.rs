// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twins of simulated machines, made from the records alone and held against them.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use floodline_record::record::{Record, Sink};
use floodline_record::sample::{ProcessRow, Table};
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::{Scenario, ScenarioFile};
use floodline_sim::simulate;
use floodline_twin::backtest::{Figure, backtest, median_error};
use floodline_twin::{Options, Recorded, Twin, of, run, to_toml};
use std::collections::BTreeMap;

fn scenario(text: &str, variant: &str) -> Scenario {
    ScenarioFile::parse(text).unwrap().variants.remove(variant).unwrap()
}

fn recorded(scenario: &Scenario) -> Recorded {
    recorded_as(scenario, |record| record)
}

/// As a host records where nothing is traced and the kernel counts no delays.
fn recorded_without_waits(scenario: &Scenario) -> Recorded {
    recorded_as(scenario, |mut record| {
        match &mut record {
            Record::Facts(facts) => facts.task_delayacct = Some(false),
            Record::Sample(sample) => {
                let rows = sample.processes.rows().to_vec().into_iter();
                let without = rows.map(|(id, row)| (id, ProcessRow { blkio_delay: Some(Nanos(0)), ..row }));
                sample.processes = Table::read(without.collect());
            }
            _ => {}
        }
        record
    })
}

fn recorded_as(scenario: &Scenario, seen: impl Fn(Record) -> Record) -> Recorded {
    let mut recorded = Recorded::default();
    let options = floodline_sim::Options::new("v", KernelVersion::new(6, 12, 0));
    let take = |record: Record| {
        let Ok(()) = recorded.record(&seen(record));
        Ok(())
    };
    simulate(scenario, &options, take, |_| true).unwrap();
    recorded
}

/// Makes a twin and its back-test; the twin's file is a good scenario that is the twin.
fn backtested(name: &str, text: &str, variant: &str) -> (Twin, Vec<Figure>) {
    let recorded = recorded(&scenario(text, variant));
    let twin = of(&recorded, &Options::default()).unwrap();
    let text = to_toml(&twin).unwrap();
    assert_eq!(scenario(&text, "default"), twin.scenario, "{text}");
    let simulated = run::run(&twin.scenario, twin.kernel, twin.every).unwrap();
    let figures = backtest(&recorded.window, &simulated, &twin.programs);
    println!("=== {name} {variant}\n{text}");
    for figure in &figures {
        let Figure { name, real, simulated, off_share, .. } = figure;
        println!("{name:<40} {real:>16.3} {simulated:>16.3} {:>6.0} %", off_share * 100.0);
    }
    println!("{name} {variant}: median error {:.1} %", median_error(&figures) * 100.0);
    (twin, figures)
}

/// The figures of a twin of a recording without waits: one that nothing tells but counters of bytes, calls and flushes.
fn figures_without_waits(text: &str, variant: &str) -> BTreeMap<String, Figure> {
    let recorded = recorded_without_waits(&scenario(text, variant));
    let twin = of(&recorded, &Options::default()).unwrap();
    let simulated = run::run(&twin.scenario, twin.kernel, twin.every).unwrap();
    let figures = backtest(&recorded.window, &simulated, &twin.programs);
    figures.into_iter().map(|figure| (figure.name.clone(), figure)).collect()
}

#[test]
fn small_programs_that_sync_are_known_by_the_flushes_of_the_device() {
    let figures = figures_without_waits(include_str!("../../../scenarios/dirty-cliff.toml"), "incident-short");
    let most = [
        ("durable.longest_wait_seconds", 0.4),
        ("host.io_pressure_seconds", 0.25),
        ("program.durable.dirtied_bytes", 0.1),
        ("program.mail.dirtied_bytes", 0.1),
    ];
    for (name, most) in most {
        let figure = &figures[name];
        assert!(figure.off_share <= most, "{figure:?}");
    }
}

#[test]
fn what_left_for_the_device_though_it_was_young_was_asked_for() {
    let figures = figures_without_waits(include_str!("../../../scenarios/overlay-umount.toml"), "incident-short");
    for name in ["host.written_bytes", "devices.written_bytes", "host.dirty_peak_bytes"] {
        let figure = &figures[name];
        assert!(figure.is_predictable(), "{figure:?}");
    }
}

/// Two containers that store to mapped files all the time, within their budgets; the writer of the files syncs them, and
/// another program syncs twice while they are young.
const STORES: &str = r#"
name = "stores"
summary = "Stores that find dirty pages, and syncs of young data"
[machine]
memory = "4 GiB"
cpus = 2
[machine.devices.data]
size = "20 GiB"
write_bandwidth = "150 MB/s"
read_bandwidth = "150 MB/s"
[machine.mounts."/var"]
type = "xfs"
device = "data"
[machine.cgroups."pod{i}"]
instances = 2
memory_max = "256 MiB"
[workload]
duration = "40s"
[workload.tasks.store]
cgroup = "pod{i}"
setup = [
  { write = { file = "/var/state{i}", block = "BLOCK", total = "16 MiB" } },
  { fsync = { file = "/var/state{i}" } },
]
steps = [{ sleep = { for = "2s" } }, { mmap_store = { file = "/var/state{i}", size = "16 MiB", pages = 1, rate = "RATE" } }]
[workload.tasks.other]
steps = [{ sleep = { for = "9s" } }, { syncfs = { path = "/var" } }, { sleep = { for = "12s" } }, { syncfs = { path = "/var" } }]
"#;

#[test]
fn stores_that_find_dirty_pages_go_on_in_the_twin() {
    for (block, rate) in [("1 MiB", "20/s"), ("4 KiB", "1500/s")] {
        let text = STORES.replace("BLOCK", block).replace("RATE", rate);
        let figures = figures_without_waits(&text, "default");
        for name in ["host.written_bytes", "host.dirtied_bytes", "program.store.dirtied_bytes"] {
            let figure = &figures[name];
            assert!(figure.is_predictable(), "{block}: {figure:?}");
        }
    }
}

#[test]
fn the_writeback_of_small_budgets_is_no_sync() {
    let text = include_str!("../../../scenarios/starved-budget.toml");
    let recorded = recorded_without_waits(&scenario(text, "incident-short"));
    let tasks = of(&recorded, &Options::default()).unwrap().scenario.workload.tasks;
    assert!(!tasks.contains_key("sync"), "{:?}", tasks.get("sync"));
}

fn check(name: &str, text: &str, variant: &str, most: f64) {
    let (_, figures) = backtested(name, text, variant);
    let error = median_error(&figures);
    assert!(error <= most, "{name}: median error {:.0} %", error * 100.0);
}

#[test]
fn a_twin_of_a_cliff_shows_the_cliff() {
    check("dirty-cliff", include_str!("../../../scenarios/dirty-cliff.toml"), "incident-short", 0.15);
}

#[test]
fn a_twin_of_a_database_that_is_well_is_well() {
    check("healthy-database", include_str!("../../../scenarios/healthy-database.toml"), "default", 0.15);
}

#[test]
fn a_twin_of_a_slow_disk_is_slow() {
    check("slow-disk-journal", include_str!("../../../scenarios/slow-disk-journal.toml"), "incident-short", 0.15);
}

#[test]
fn a_twin_of_an_unmount_waits_for_what_others_wrote() {
    check("overlay-umount", include_str!("../../../scenarios/overlay-umount.toml"), "incident-short", 0.15);
}

#[test]
fn a_twin_of_many_small_files_dirties_as_many_pages() {
    check("inode-switch-storm", include_str!("../../../scenarios/inode-switch-storm.toml"), "incident-short", 0.15);
}

#[test]
fn a_twin_of_starved_containers_has_their_budgets() {
    check("starved-budget", include_str!("../../../scenarios/starved-budget.toml"), "incident-short", 0.25);
}

#[test]
fn a_twin_of_containers_that_are_well_is_well() {
    check("healthy-containers", include_str!("../../../scenarios/healthy-containers.toml"), "default", 0.15);
}
