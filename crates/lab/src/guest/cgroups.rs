// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cgroups of a guest at its start, in either version: mounting hierarchies, creating cgroups,
//! enabling controllers. Limits are written by the workload's own functions, which change them later too.

use super::{GuestError, mount_at};
use crate::workload::{Place, set_limits};
use floodline_scenario::{Cgroup, CgroupCopy, CgroupMode, Controller, Scenario, TaskCopy};
use std::fs;
use std::path::PathBuf;

const MOUNT: &str = "/sys/fs/cgroup";
/// Hierarchies of version 1, by controller.
const V1: &[&str] = &["memory", "blkio"];
/// Controllers enabled for children by default.
const DEFAULT: &[Controller] = &[Controller::Memory, Controller::Io];

/// Mounts the hierarchies and returns where they are.
pub(super) fn mount(mode: CgroupMode) -> Result<Vec<PathBuf>, GuestError> {
    if mode == CgroupMode::V2 {
        // Systemd has it mounted already.
        if !fs::exists(format!("{MOUNT}/cgroup.controllers")).unwrap_or(false) {
            mount_at("cgroup2", MOUNT, "")?;
        }
        return Ok(vec![MOUNT.into()]);
    }
    mount_at("tmpfs", MOUNT, "")?;
    let mut roots = Vec::new();
    for controller in V1 {
        let point = format!("{MOUNT}/{controller}");
        fs::create_dir(&point).map_err(GuestError::at(&point))?;
        mount_at("cgroup", &point, controller)?;
        roots.push(point.into());
    }
    // Without it, children are not charged to their parents. Kernels on which it is always on lack the file.
    let _ = fs::write(format!("{MOUNT}/memory/memory.use_hierarchy"), "1");
    Ok(roots)
}

/// Creates the cgroups that a scenario has from the start, parents first.
pub(super) fn create_all(place: &Place, copies: &[CgroupCopy]) -> Result<(), GuestError> {
    if !copies.iter().any(|copy| copy.path.is_empty()) {
        enable(place, "", &Cgroup::default())?;
    }
    for copy in copies {
        for dir in place.cgroup_dirs(&copy.path) {
            fs::create_dir_all(&dir).map_err(GuestError::at(dir))?;
        }
        set_limits(place, &copy.path, &copy.spec)?;
        if copy.spec.subtree_control.is_some() || has_children(&copy.path, copies) {
            enable(place, &copy.path, &copy.spec)?;
        }
    }
    Ok(())
}

/// A task in a cgroup of version 2 that takes no process, if there is one.
pub(crate) fn task_above_cgroups(scenario: &Scenario) -> Option<TaskCopy> {
    let copies = scenario.cgroup_copies();
    let is_v2 = scenario.machine.cgroup_mode == CgroupMode::V2;
    scenario.task_copies().into_iter().find(|task| is_v2 && is_closed_to_tasks(&task.cgroup, &copies))
}

/// Whether no process may be in a cgroup of version 2, as it has controllers enabled for its children
/// (Documentation/admin-guide/cgroup-v2.rst, "No Internal Process Constraint"). The root has no such limit.
fn is_closed_to_tasks(path: &str, copies: &[CgroupCopy]) -> bool {
    let set = copies.iter().find(|copy| copy.path == path).and_then(|copy| copy.spec.subtree_control.as_ref());
    // cpu and pids are threaded controllers, which allow it.
    let is_domain = |controller: &Controller| [Controller::Memory, Controller::Io].contains(controller);
    !path.is_empty() && set.map_or_else(|| has_children(path, copies), |controllers| controllers.iter().any(is_domain))
}

fn has_children(path: &str, copies: &[CgroupCopy]) -> bool {
    let mut paths = copies.iter().map(|copy| copy.path.as_str());
    match path {
        "" => paths.any(|other| !other.is_empty()),
        path => paths.any(|other| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))),
    }
}

/// Enables controllers for the children of a cgroup. Does nothing on cgroup v1.
fn enable(place: &Place, path: &str, spec: &Cgroup) -> Result<(), GuestError> {
    let controllers = spec.subtree_control.as_deref().unwrap_or(DEFAULT);
    if place.mode == CgroupMode::V1 || controllers.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = controllers.iter().map(|controller| format!("+{}", controller.name())).collect();
    for dir in place.cgroup_dirs(path) {
        let file = dir.join("cgroup.subtree_control");
        fs::write(&file, words.join(" ")).map_err(GuestError::at(file))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_and_its_namesakes_neighbour_are_told_apart() {
        let copy = |path: &str| CgroupCopy { path: path.to_owned(), spec: Cgroup::default() };
        let copies = [copy("a"), copy("ab"), copy("ab/c")];
        assert!(has_children("", &copies) && has_children("ab", &copies));
        assert!(!has_children("a", &copies) && !has_children("ab/c", &copies));
        assert!(!has_children("", &[copy("")]));
    }

    #[test]
    fn a_cgroup_with_controlled_children_takes_no_task() {
        let copy = |path: &str, control: Option<Vec<Controller>>| CgroupCopy {
            path: path.to_owned(),
            spec: Cgroup { subtree_control: control, ..Cgroup::default() },
        };
        let is_closed = |control: Option<Vec<Controller>>| {
            let copies = [copy("", None), copy("hub", control), copy("hub/nb0", None)];
            ["", "hub", "hub/nb0"].map(|path| is_closed_to_tasks(path, &copies))
        };
        assert_eq!(is_closed(None), [false, true, false]);
        assert_eq!(is_closed(Some(vec![Controller::Memory])), [false, true, false]);
        assert_eq!(is_closed(Some(Vec::new())), [false, false, false], "nothing is enabled for its children");
        assert_eq!(is_closed(Some(vec![Controller::Cpu])), [false, false, false], "a threaded controller");
    }
}
