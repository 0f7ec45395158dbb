// SPDX-License-Identifier: MIT OR Apache-2.0
//! Syncs that a volatile overlay leaves out. A recording does not show which programs write through an overlay: a twin writes to the filesystem
//! below. Containers write through theirs, so a change to volatile ends the syncs of programs in cgroups on that filesystem. Programs in
//! the root cgroup sync as before. The twin in which all programs do so is the other bound.

use crate::changed::Changed;
use floodline_scenario::{FsType, Scenario, Step, Task};

/// The changed twin without the syncs of programs in cgroups below the overlays that become volatile. `None` where no overlay does, or no such
/// program syncs.
pub(super) fn without_syncs(before: &Scenario, after: &Changed) -> Option<Changed> {
    let mut changed = after.clone();
    let points = below_volatile(before, &after.scenario);
    let is_below = |task: &Task| {
        let point = task.steps.iter().find_map(file).and_then(|file| mount_of(file, &after.scenario));
        point.is_some_and(|point| points.iter().any(|one| one == point))
    };
    let tasks = changed.scenario.workload.tasks.values_mut();
    let left: usize =
        tasks.filter(|task| task.cgroup.is_some() && is_below(task)).map(|task| leave_out(&mut task.steps)).sum();
    (left > 0).then_some(changed)
}

/// Mount points of the filesystems below the overlays that become volatile.
fn below_volatile(before: &Scenario, after: &Scenario) -> Vec<String> {
    let is_volatile = |scenario: &Scenario, path: &String| {
        let mount = scenario.machine.mounts.get(path).filter(|mount| mount.fs_type == FsType::Overlay);
        mount.is_some_and(|mount| mount.options.iter().any(|option| option == "volatile"))
    };
    let new = after.machine.mounts.iter().filter(|(path, _)| is_volatile(after, path) && !is_volatile(before, path));
    let uppers = new.filter_map(|(_, mount)| mount.overlay.as_ref().map(|overlay| overlay.upper.as_str()));
    uppers.filter_map(|upper| mount_of(upper, after)).map(str::to_owned).collect()
}

/// The mount point that holds a file.
fn mount_of<'a>(file: &str, scenario: &'a Scenario) -> Option<&'a str> {
    let is_on =
        |point: &&String| file.strip_prefix(point.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'));
    scenario.machine.mounts.keys().filter(is_on).max_by_key(|point| point.len()).map(String::as_str)
}

/// A file that a step writes.
fn file(step: &Step) -> Option<&str> {
    match step {
        Step::Write(write) => Some(&write.file),
        Step::CreateFiles(files) => Some(&files.file),
        Step::MmapStore(store) => Some(&store.file),
        Step::Repeat(repeat) => repeat.steps.iter().find_map(file),
        Step::Parallel(parallel) => parallel.branches.iter().flatten().find_map(file),
        _ => None,
    }
}

/// Leaves out the syncs of some steps. Returns how many there were.
fn leave_out(steps: &mut Vec<Step>) -> usize {
    let all = steps.len();
    steps.retain(|step| {
        !matches!(step, Step::Fsync(_) | Step::Fdatasync(_) | Step::Msync(_) | Step::Syncfs(_) | Step::Sync)
    });
    let within = |step: &mut Step| match step {
        Step::Write(write) => usize::from(write.sync.take().is_some()),
        Step::MmapStore(store) => usize::from(store.sync.take().is_some()),
        Step::CreateFiles(files) => usize::from(std::mem::take(&mut files.fsync)),
        Step::Repeat(repeat) => leave_out(&mut repeat.steps),
        Step::Parallel(parallel) => parallel.branches.iter_mut().map(leave_out).sum(),
        _ => 0,
    };
    all - steps.len() + steps.iter_mut().map(within).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::version::KernelVersion;
    use floodline_scenario::ScenarioFile;

    const TWIN: &str = r#"
name = "twin"
summary = "Programs on a disk with an overlay, and on another disk"
machine.memory = "4 GiB"
machine.cpus = 2
machine.devices.vda = { size = "20 GiB" }
machine.devices.vdb = { size = "20 GiB" }
machine.mounts."/store" = { type = "xfs", device = "vda" }
machine.mounts."/other" = { type = "xfs", device = "vdb" }
machine.mounts."/merged" = { type = "overlay", overlay = { lower = "/store/l", upper = "/store/u", work = "/store/w" } }
machine.cgroups.pod = {}
workload.duration = "5s"
workload.tasks.pod = { cgroup = "pod", steps = [{ repeat = { times = 3, steps = [
    { write = { file = "/store/pod", count = 3, sync = { call = "fdatasync", after = 1 } } }, { fsync = { file = "/store/pod" } } ] } }] }
workload.tasks.daemon = { steps = [{ write = { file = "/store/daemon", count = 3 } }, { fsync = { file = "/store/daemon" } }] }
workload.tasks.beside = { cgroup = "pod", steps = [{ write = { file = "/other/pod", count = 3 } }, { fsync = { file = "/other/pod" } }] }
"#;

    fn scenario(options: &str) -> Scenario {
        let text = TWIN.replace(r#"type = "overlay","#, &format!(r#"type = "overlay", options = [{options}],"#));
        ScenarioFile::parse(&text).expect("a scenario").variants.remove("default").expect("its variant")
    }

    #[test]
    fn a_volatile_overlay_ends_the_syncs_of_containers_on_its_filesystem() {
        let kernel = KernelVersion::new(6, 12, 0);
        let (plain, volatile) = (scenario(""), scenario(r#""volatile""#));
        let after = |scenario: &Scenario| Changed { scenario: scenario.clone(), kernel };
        let changed = without_syncs(&plain, &after(&volatile)).expect("its containers sync");
        let mut all = changed.scenario.workload.tasks;
        let mut left = |task: &str| leave_out(&mut all.get_mut(task).expect("it is there").steps);
        assert_eq!((left("pod"), left("daemon"), left("beside")), (0, 1, 1));
        assert_eq!(without_syncs(&plain, &after(&plain)), None, "nothing becomes volatile");
        assert_eq!(without_syncs(&volatile, &after(&volatile)), None, "it was volatile before");
    }
}
