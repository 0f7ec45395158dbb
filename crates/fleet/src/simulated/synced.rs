// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a twin syncs the filesystem that gets most of its data. What a threshold lets pile up waits for a sync of that filesystem. A sync
//! of a file on another one does not wait for it.

use floodline_scenario::{Scenario, Step};
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
                    self.add(scenario, &repeat.steps, times.saturating_mul(repeat.times.unwrap_or(1)));
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

    /// A recording of 100 MiB on a slow disk, and a backup on another one that syncs with these steps.
    fn check(sync: &str, expect: bool) {
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
workload.tasks.record.steps = [{{ write = {{ file = "/record/hall", block = "64 KiB", count = 1600, rate = "100/s" }} }}]
workload.tasks.backup.steps = [{{ repeat = {{ times = 3, steps = [
    {{ write = {{ file = "/data/tar", block = "128 KiB", total = "12 MiB" }} }}, {sync}] }} }}]
"#
        );
        let file = ScenarioFile::parse(&text).expect("a scenario");
        let scenario = file.variants.into_values().next().expect("a variant");
        assert_eq!(syncs_most(&scenario), expect, "{sync}");
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
