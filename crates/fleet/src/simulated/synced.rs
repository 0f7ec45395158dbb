// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a twin syncs the filesystem that gets most of its data. A sync of that filesystem waits for the dirty data
//! that a threshold allows. A sync of a file on another filesystem does not wait for it.

use floodline_scenario::{Repeat, Scenario, Step, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What steps do to each filesystem, by its mount point.
#[derive(Default)]
struct Done<'a> {
    written: BTreeMap<&'a str, u64>,
    synced: BTreeSet<&'a str>,
    syncs_all: bool,
}

/// Whether a task syncs the filesystem to which the tasks write the most.
pub(super) fn syncs_most(scenario: &Scenario) -> bool {
    let mut done = Done::default();
    for task in scenario.workload.tasks.values() {
        done.add(scenario, &task.steps, task.instances.unwrap_or(1).into());
    }
    let most = done.written.iter().max_by_key(|(_, bytes)| **bytes);
    done.syncs_all || most.is_some_and(|(point, _)| done.synced.contains(point))
}

impl<'a> Done<'a> {
    fn add(&mut self, scenario: &'a Scenario, steps: &[Step], times: u64) {
        let on = |path: &str| mount_of(scenario, path);
        for step in steps {
            match step {
                Step::Write(write) => {
                    // What goes past the page cache does not pile up.
                    let times = if write.direct { 0 } else { times };
                    let bytes = write.total.map(|total| total.bytes());
                    let counted = || write.count.unwrap_or(1).saturating_mul(write.block.bytes());
                    self.wrote(on(&write.file), bytes.unwrap_or_else(counted).saturating_mul(times));
                    self.synced.extend(on(&write.file).filter(|_| write.sync.is_some()));
                }
                Step::CreateFiles(files) => {
                    let bytes = files.files.unwrap_or(1).saturating_mul(files.size.bytes());
                    self.wrote(on(&files.file), bytes.saturating_mul(times));
                    self.synced.extend(on(&files.file).filter(|_| files.fsync));
                }
                Step::MmapStore(stores) => {
                    let pages = stores.count.unwrap_or(1).saturating_mul(stores.pages);
                    self.wrote(on(&stores.file), pages.saturating_mul(4096).saturating_mul(times));
                }
                Step::Fsync(file) | Step::Fdatasync(file) | Step::Msync(file) => self.synced.extend(on(&file.file)),
                Step::Syncfs(path) => self.synced.extend(on(&path.path)),
                Step::Sync => self.syncs_all = true,
                Step::Repeat(repeat) => {
                    let rounds = rounds(repeat, scenario.workload.duration);
                    self.add(scenario, &repeat.steps, times.saturating_mul(rounds));
                }
                Step::Parallel(parallel) => {
                    parallel.branches.iter().for_each(|branch| self.add(scenario, branch, times));
                }
                _ => {}
            }
        }
    }

    fn wrote(&mut self, point: Option<&'a str>, bytes: u64) {
        let Some(point) = point else { return };
        let all = self.written.entry(point).or_default();
        *all = all.saturating_add(bytes);
    }
}

/// How often a repetition does its steps in a run of this duration, if nothing holds it up.
fn rounds(repeat: &Repeat, duration: Option<Time>) -> u64 {
    let lasting = repeat.lasting.or(duration.filter(|_| repeat.times.is_none()));
    let round = repeat.every.map_or_else(|| nanos_of(&repeat.steps, duration), Time::nanos);
    let within = |lasting: Time| (round > 0).then(|| lasting.nanos().div_ceil(round).max(1));
    match (repeat.times, lasting.and_then(within)) {
        (Some(times), Some(within)) => times.min(within),
        (times, within) => times.or(within).unwrap_or(1),
    }
}

/// Time that steps take at least.
fn nanos_of(steps: &[Step], duration: Option<Time>) -> u64 {
    let of = |step: &Step| match step {
        Step::Sleep(sleep) | Step::Burn(sleep) => sleep.lasting.nanos(),
        Step::Repeat(repeat) => {
            let round = nanos_of(&repeat.steps, duration).max(repeat.every.map_or(0, Time::nanos));
            round.saturating_mul(rounds(repeat, duration))
        }
        Step::Parallel(parallel) => {
            parallel.branches.iter().map(|branch| nanos_of(branch, duration)).max().unwrap_or(0)
        }
        _ => 0,
    };
    let after = |sum: u64, step: &Step| match step {
        Step::SleepUntil(until) => sum.max(until.at.nanos()),
        step => sum.saturating_add(of(step)),
    };
    steps.iter().fold(0, after)
}

/// The mount point of a path.
fn mount_of<'a>(scenario: &'a Scenario, path: &str) -> Option<&'a str> {
    let is_below =
        |point: &&str| path.strip_prefix(*point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    scenario.machine.mounts.keys().map(String::as_str).filter(is_below).max_by_key(|point| point.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::ScenarioFile;

    /// A recording of 100 MiB on a slow disk.
    const HALL: &str = r#"{ write = { file = "/record/hall", block = "64 KiB", count = 1600, rate = "100/s" } }"#;

    /// A recording with these steps, and a backup of 36 MiB on another disk that syncs with these steps.
    fn check_of(record: &str, sync: &str, expect: bool) {
        let text = format!(
            r#"
name = "two-disks"
summary = "A recording and a backup"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = {{ size = "16 GiB" }}
machine.devices.vdb = {{ size = "16 GiB" }}
machine.mounts."/data" = {{ type = "ext4", device = "vda" }}
machine.mounts."/record" = {{ type = "xfs", device = "vdb" }}
workload.duration = "60s"
workload.tasks.record.steps = [{record}]
workload.tasks.backup.steps = [{{ repeat = {{ times = 3, steps = [
    {{ write = {{ file = "/data/tar", block = "128 KiB", total = "12 MiB" }} }}, {sync}] }} }}]
"#
        );
        let file = ScenarioFile::parse(&text).expect("a scenario");
        let scenario = file.variants.into_values().next().expect("a variant");
        assert_eq!(syncs_most(&scenario), expect, "{record}, {sync}");
    }

    fn check(sync: &str, expect: bool) {
        check_of(HALL, sync, expect);
    }

    #[test]
    fn what_goes_past_the_page_cache_does_not_pile_up() {
        let sync = r#"{ fsync = { file = "/data/tar" } }"#;
        check_of(HALL, sync, false);
        check_of(&HALL.replace("count", "direct = true, count"), sync, true);
    }

    #[test]
    fn a_repetition_counts_each_of_its_rounds() {
        let check = |how: &str, rest: &str, expect: bool| {
            let write = r#"{ write = { file = "/record/hall", block = "64 KiB", count = 16 } }"#;
            let record = format!("{{ repeat = {{ {how}steps = [{write}{rest}] }} }}");
            check_of(&record, r#"{ fsync = { file = "/data/tar" } }"#, expect);
        };
        // One MiB a round.
        check("times = 40, ", "", false);
        check("times = 30, ", "", true);
        check(r#"for = "40s", every = "1s", "#, "", false);
        check(r#"for = "40s", every = "2s", "#, "", true);
        check(r#"for = "40s", every = "1s", times = 30, "#, "", true);
        check(r#"for = "40s", "#, r#", { sleep = { for = "1s" } }"#, false);
        check(r#"for = "40s", "#, r#", { sleep = { for = "1s" } }, { burn = { for = "500ms" } }"#, true);
        check(r#"for = "40s", "#, r#", { repeat = { times = 5, steps = [{ sleep = { for = "200ms" } }] } }"#, false);
        // For as long as the run.
        check(r#"every = "1s", "#, "", false);
        check(r#"every = "2s", "#, "", true);
    }

    #[test]
    fn a_sync_of_another_filesystem_does_not_wait_for_what_piles_up() {
        check(r#"{ fsync = { file = "/data/tar" } }"#, false);
        check(r#"{ syncfs = { path = "/data" } }"#, false);
        check(r#"{ syncfs = { path = "/record" } }"#, true);
        check(r#"{ fdatasync = { file = "/record/hall" } }"#, true);
        check(r#""sync""#, true);
    }
}
