// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the recording needs a sync for which it shows no caller. Data that is written though it is neither old nor much looks
//! like a sync. The flusher does the same where a wb holds more than its part of the background threshold, or where an inode
//! became old and all of its data goes, also the young part. The twin has both: it is run once without the sync. If its unwritten data
//! is then as near to the recorded data or nearer, the flusher wrote it, and no sync remains. A disk below overlays keeps its syncs: each
//! unmount of one is a caller.

use super::names;
use super::nearer::ran;
use crate::patience::EVENTS_MAX;
use crate::provenance::Origin;
use crate::{Demand, Recorded, Twin};
use floodline_analysis::diagnose::derived::Derived;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use floodline_scenario::{Scenario, Step};

/// Tasks times seconds from which on the runs take too long.
const SIZE_MAX: f64 = 6_000.0;

/// Removes the task with syncs that no recording shows, if the twin is at least as near to the recording without it. A run of more events
/// than a trial of `doctor` may have is not begun, or ended, and the syncs stay. The number of events does not depend on the machine: each
/// command has the same twin.
pub(super) fn without_needless_syncs(recorded: &Recorded, mut twin: Twin, go_on: &dyn Fn(u64) -> bool) -> Twin {
    let is_small =
        twin.scenario.number_of_tasks() as f64 * twin.seconds <= SIZE_MAX && least_events(&twin.scenario) < EVENTS_MAX;
    let go_on = |events| events < EVENTS_MAX && go_on(events);
    let is_asked = |task: &String| is_below_overlays(&recorded.window, &twin.scenario, task);
    let Some(task) = assumed_syncs(&twin).filter(|task| is_small && !is_asked(task)) else { return twin };
    let with = twin.scenario.clone();
    let mut without = with.clone();
    without.workload.tasks.remove(&task);
    let differs = |twin: &mut Twin, scenario: Scenario| {
        ran(recorded, twin, scenario, &go_on).and_then(|simulated| differs(&recorded.window, simulated))
    };
    let is_needless = differs(&mut twin, with)
        .is_some_and(|with| differs(&mut twin, without.clone()).is_some_and(|without| without <= with));
    if is_needless {
        twin.scenario = without;
        if let Demand::Bounded { other, .. } = &mut twin.demand {
            other.workload.tasks.remove(&task);
        }
        let key = key(&task);
        twin.provenance.retain(|one| one.key != key);
    }
    twin
}

/// The task of a twin that only syncs, if the recording shows no caller.
fn assumed_syncs(twin: &Twin) -> Option<String> {
    let only_syncs = |steps: &[Step]| {
        steps.iter().all(|step| matches!(step, Step::SleepUntil(_) | Step::Sleep(_) | Step::Syncfs(_)))
            && steps.iter().any(|step| matches!(step, Step::Syncfs(_)))
    };
    let is_assumed = |name: &String| {
        let key = key(name);
        twin.provenance.iter().any(|one| one.origin == Origin::Assumed && one.key == key)
    };
    let mut tasks = twin.scenario.workload.tasks.iter().filter(|(_, task)| only_syncs(&task.steps));
    tasks.find(|(name, _)| is_assumed(name)).map(|(name, _)| name.clone())
}

/// Whether a task syncs a disk that holds the upper directories of overlays.
fn is_below_overlays(window: &Window, scenario: &Scenario, task: &str) -> bool {
    let derived = Derived::of(window);
    let uppers: Vec<String> =
        derived.unmounts().uppers.iter().map(|upper| names::word(upper.device.name.as_bytes())).collect();
    let is_upper = |path: &str| {
        let device = scenario.machine.mounts.get(path).and_then(|mount| mount.device.as_ref());
        device.is_some_and(|device| uppers.contains(device))
    };
    let steps = scenario.workload.tasks.get(task).map_or(&[][..], |task| &task.steps);
    steps.iter().any(|step| matches!(step, Step::Syncfs(on) if is_upper(&on.path)))
}

/// The number of events that a run has at least: each write at a rate waits for its time.
fn least_events(scenario: &Scenario) -> u64 {
    let tasks = scenario.workload.tasks.values();
    let events = tasks.map(|task| paced(&task.steps).saturating_mul(task.instances.unwrap_or(1).into()));
    events.fold(0, u64::saturating_add)
}

/// Writes at a rate in these steps.
fn paced(steps: &[Step]) -> u64 {
    let of = |step: &Step| match step {
        Step::Write(write) if write.rate.is_some() => write.count.unwrap_or(0),
        Step::Repeat(repeat) => paced(&repeat.steps).saturating_mul(repeat.times.unwrap_or(1)),
        Step::Parallel(parallel) => parallel.branches.iter().map(|branch| paced(branch)).fold(0, u64::saturating_add),
        _ => 0,
    };
    steps.iter().map(of).fold(0, u64::saturating_add)
}

fn key(task: &str) -> String {
    format!("workload.tasks.{task}")
}

/// Sum over the samples of how far the unwritten data of a run is from that of the recording, pages. `None` where no sample shows it.
fn differs(recorded: &Window, simulated: &Window) -> Option<u64> {
    let (real, simulated) = (levels(recorded), levels(simulated));
    let mut rest = simulated.as_slice();
    let mut sum: Option<u64> = None;
    for (at, pages) in real {
        // The sample of the run that is nearest in time.
        while let [(one, _), (next, _), ..] = rest
            && next.0.abs_diff(at.0) <= one.0.abs_diff(at.0)
        {
            rest = &rest[1..];
        }
        let (_, other) = rest.first()?;
        sum = Some(sum.unwrap_or(0).saturating_add(pages.abs_diff(*other)));
    }
    sum
}

/// Unwritten pages of each sample, with the time since the first one.
fn levels(window: &Window) -> Vec<(Nanos, u64)> {
    let start = window.host_series.first().map_or(0, |(time, _)| time.monotonic.0);
    let rows = window.host_series.iter().filter_map(|(time, row)| {
        let writeback = row.nr_writeback.map_or(0, |pages| pages.0);
        Some((Nanos(time.monotonic.0.saturating_sub(start)), row.nr_dirty?.0.saturating_add(writeback)))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::provenance::Provenance;
    use floodline_scenario::ScenarioFile;
    use floodline_testkit::Fixture;
    use std::cell::Cell;

    /// Writers at a rate, and a sync.
    const PACED: &str = r#"
name = "paced"
summary = "Writers at a rate, and a sync"
[machine]
memory = "1 GiB"
cpus = 1
[machine.devices.vda]
size = "16 GiB"
[machine.mounts."/data"]
type = "xfs"
device = "vda"
[workload]
duration = "10s"
[workload.tasks.sync]
steps = [{ sleep = { for = "5s" } }, { syncfs = { path = "/data" } }]
[workload.tasks.writer]
instances = 2
steps = [{ write = { file = "/data/{j}", count = COUNT, rate = "100/s" } }, { repeat = { times = 3, steps = [
    { write = { file = "/data/{j}", count = COUNT, rate = "100/s" } }, { write = { file = "/data/{j}", count = 7 } } ] } }]
"#;

    fn scenario(count: u64) -> Scenario {
        let file = ScenarioFile::parse(&PACED.replace("COUNT", &count.to_string())).expect("a scenario");
        file.variants.into_values().next().expect("a variant")
    }

    #[test]
    fn writes_that_wait_for_their_time_are_events() {
        assert_eq!(least_events(&scenario(50)), 2 * 4 * 50);
        assert_eq!(least_events(&scenario(u64::MAX / 2)), u64::MAX);
    }

    #[test]
    fn a_run_that_exceeds_the_budget_of_a_trial_is_not_begun() {
        let recorded = Recorded::from_records(&Fixture::healthy().records());
        let twin = crate::of(&recorded, &Options::default()).expect("a twin");
        let asked = |count: u64| {
            let is_asked = Cell::new(false);
            let provenance =
                vec![Provenance { key: key("sync"), origin: Origin::Assumed, text: "young data went".to_owned() }];
            let twin = Twin { scenario: scenario(count), provenance, ..twin.clone() };
            let go_on = |_| {
                is_asked.set(true);
                false
            };
            let kept = without_needless_syncs(&recorded, twin, &go_on);
            assert!(kept.scenario.workload.tasks.contains_key("sync"), "no run was finished");
            is_asked.get()
        };
        assert!(asked(50));
        assert!(!asked(EVENTS_MAX / 8));
    }
}
