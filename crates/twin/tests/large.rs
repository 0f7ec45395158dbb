// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twins of hosts with many containers, and of hosts with several disks.
#![allow(clippy::unwrap_used)]

use floodline_analysis::advice::Goal;
use floodline_analysis::prediction::{Prediction, Setting};
use floodline_record::record::{Record, Sink};
use floodline_record::units::Nanos;
use floodline_record::version::KernelVersion;
use floodline_scenario::{Scenario, ScenarioFile, Step};
use floodline_sim::simulate;
use floodline_twin::advise::{FOLIOS, Wanted};
use floodline_twin::backtest::backtest;
use floodline_twin::predict::Question;
use floodline_twin::trial::{OneByOne, Studied, advise, answered};
use floodline_twin::{Recorded, run};

fn recorded(scenario: &Scenario) -> Recorded {
    let mut recorded = Recorded::default();
    let take = |record: Record| {
        let Ok(()) = recorded.record(&record);
        Ok(())
    };
    let every = Nanos::SECOND;
    let options = floodline_sim::Options { every, ..floodline_sim::Options::new("v", KernelVersion::new(6, 12, 0)) };
    simulate(scenario, &options, take, |_| true).unwrap();
    recorded
}

fn parsed(text: &str, variant: &str) -> Scenario {
    ScenarioFile::parse(text).unwrap().variants.remove(variant).unwrap()
}

fn studied(scenario: &Scenario) -> Studied {
    Studied::of(recorded(scenario), &|_| true).unwrap()
}

fn predicted(studied: &Studied, settings: &[Setting]) -> Prediction {
    let question = Question::new(&studied.twin, &studied.recorded.window, settings).unwrap();
    answered(studied, &question, true, &|_| true, &mut OneByOne).unwrap().1.unwrap()
}

/// Containers that each store into a journal of large folios. A limit of some hundred KiB holds one or two folios, so the flusher cleans a
/// folio while a store waits, and the store dirties all of it again.
fn containers(count: u32) -> Scenario {
    let text = format!(
        r#"
name = "containers"
summary = "Containers with a journal each, below a byte threshold"
[machine]
memory = "32 GiB"
cpus = 16
sysctl.vm = {{ dirty_bytes = "100 MB", dirty_background_bytes = "50 MB" }}
[machine.devices.ssd]
size = "400 GiB"
write_bandwidth = "2 GB/s"
[machine.mounts."/var"]
type = "xfs"
device = "ssd"
in_use = true
[machine.cgroups."pod{{i}}"]
instances = {count}
memory_max = "96 MiB"
[workload]
duration = "40s"
[workload.tasks.prepare]
setup = [
  {{ create_files = {{ file = "/var/journal{{n}}", files = {count}, size = "8 MiB" }} }},
  "sync",
  "drop_caches",
  {{ barrier = {{ name = "prepared" }} }},
]
[workload.tasks.journald]
cgroup = "pod{{i}}"
stagger = "23ms"
setup = [
  {{ barrier = {{ name = "prepared" }} }},
  {{ read = {{ file = "/var/journal{{i}}", block = "128 KiB" }} }},
]
steps = [{{ mmap_store = {{ file = "/var/journal{{i}}", size = "8 MiB", pages = 2, rate = "10/s" }} }}]
"#
    );
    parsed(&text, "default")
}

#[test]
fn stores_that_many_containers_repeat_after_pauses_are_not_counted_twice() {
    let recorded = recorded(&containers(64));
    let twin = floodline_twin::of(&recorded, &floodline_twin::Options::default()).unwrap();
    let simulated = run::run(&twin.scenario, twin.kernel, twin.every).unwrap();
    let tested = backtest(&recorded.window, &simulated, &twin.programs);
    // The closed bound of the demand stores to all pages of the file in two seconds: more would change nothing.
    let (name, other) = twin.demand.other().unwrap();
    let closed = if name == "closed" { other } else { &twin.scenario };
    let mut rounds = 0;
    for step in closed.workload.tasks.values().flat_map(|task| &task.steps) {
        let Step::Repeat(repeat) = step else { continue };
        let [Step::MmapStore(stores), Step::Sleep(sleep)] = repeat.steps.as_slice() else { continue };
        let pass = 2048.0 / (stores.pages * stores.count.unwrap_or(1)) as f64 * sleep.lasting.0.as_secs_f64();
        assert!(pass > 1.9, "{pass} s");
        rounds += 1;
    }
    assert!(rounds >= 64, "{rounds}");
    let off = |name: &str| tested.iter().find(|figure| figure.name == name).unwrap().off_share;
    assert!(off("host.dirtied_bytes") < 0.15, "{}", off("host.dirtied_bytes"));
    assert!(off("stall_seconds") < 0.25, "{}", off("stall_seconds"));
}

#[test]
fn clearly_worse_settings_of_a_large_host_are_not_simulated_to_their_end() {
    let studied = studied(&containers(80));
    let wanted = Wanted { goal: Goal::Latency, at_risk_bytes: None, folios: FOLIOS, pause_seconds: None, most: 24 };
    let advice = advise(&studied, None, wanted, &|_| true, &mut OneByOne).unwrap();
    let chosen = &advice.tried[advice.chosen.unwrap_or_else(|| panic!("{}", advice.headline))];
    let cut: Vec<_> = advice.tried.iter().filter(|one| one.is_extrapolated).collect();
    assert!(cut.len() >= 4, "{} of {}", cut.len(), advice.tried.len());
    // Data at risk are of the first quarter only, so the run shows nothing of what they cost.
    assert!(cut.iter().all(|one| !one.on_curve), "{cut:?}");
    assert!(advice.tried.iter().any(|one| one.on_curve));
    assert!(!chosen.is_extrapolated && cut.iter().all(|one| one.stall_seconds > chosen.stall_seconds), "{chosen:?}");
}

#[test]
fn a_cure_of_one_disk_helps_though_tasks_wait_longer_for_another_disk() {
    let text = include_str!("../../../scenarios/blind/two-disks.toml");
    let studied = studied(&parsed(text, "both"));
    let cure = [Setting::new("vm.dirty_background_bytes", "32M"), Setting::new("vm.dirty_bytes", "128M")];
    let prediction = predicted(&studied, &cure);
    let of_devices: Vec<_> = prediction.on_devices().map(|row| (&row.label, row.now, row.then)).collect();
    let better = prediction.on_devices().filter(|row| row.improves() && row.figure.starts_with("device.vda."));
    assert!(better.count() > 0, "{of_devices:?}");
    // No total of waits is below the longest of them, and the host's waits are not repeated for its disk.
    let now = |figure: &str| prediction.rows.iter().find(|row| row.figure == figure).map(|row| row.now);
    for disk in ["vda", "vdb"] {
        let longest = now(&format!("device.{disk}.longest_wait_seconds")).unwrap();
        let waited = now(&format!("device.{disk}.waited_seconds"));
        assert!(waited.is_none_or(|waited| waited >= longest), "{disk}: {waited:?} {longest}");
    }
    assert!(!prediction.on_devices().any(|row| row.label == "longest fsync on vdb"), "{of_devices:?}");
    assert_eq!(prediction.answer(), "helps", "{} {of_devices:?}", prediction.headline);
    // All of the waits of a host with one disk are on it.
    let text = include_str!("../../../scenarios/dirty-cliff.toml");
    let one = Studied::of(recorded(&parsed(text, "incident-short")), &|_| true).unwrap();
    assert_eq!(predicted(&one, &cure).on_devices().count(), 0);
}
