// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits on each disk, where programs with known files wait on several disks. One total and one longest wait of a host hide what a change
//! does to a disk on which tasks wait less. A program is on the disk that the twin has for its files. Without a trace, that disk is
//! concluded from what was written where; the back-test of these figures tells whether it fits.

use crate::Programs;
use floodline_analysis::prediction::ON_DEVICE;
use floodline_record::record::What;
use floodline_record::window::Window;
use std::collections::{BTreeMap, BTreeSet};

/// Calls that make data durable.
const SYNCS: [&str; 5] = ["fsync", "fdatasync", "msync", "sync", "syncfs"];

/// The disk of each program, by name. Programs of one name on several disks have none.
fn disks(programs: &Programs) -> BTreeMap<&str, &str> {
    let mut disks: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for program in programs.values() {
        let known = disks.entry(&program.comm).or_insert(Some(&program.device));
        *known = known.filter(|known| *known == program.device);
    }
    disks.into_iter().filter_map(|(comm, disk)| Some((comm, disk?))).collect()
}

/// Waits on each disk, seconds, by the name of the figure: `device.NAME.longest_wait_seconds` of syncs, and `device.NAME.waited_seconds` of
/// all tasks. `figures` are those of programs in the same window. In the window of a run, tasks have the names of the twin. None where the
/// programs are on one disk.
pub(crate) fn figures(
    window: &Window,
    figures: &BTreeMap<String, f64>,
    programs: &Programs,
    is_run: bool,
) -> BTreeMap<String, f64> {
    let disks = disks(programs);
    let mut found = BTreeMap::new();
    if disks.values().collect::<BTreeSet<_>>().len() < 2 {
        return found;
    }
    for (comm, disk) in &disks {
        if let Some(waited) = figures.get(&format!("program.{comm}.waited_seconds")) {
            *found.entry(format!("{ON_DEVICE}{disk}.waited_seconds")).or_insert(0.0) += waited;
        }
    }
    let disk_of = |name: &str| match is_run {
        true => disks.get(programs.get(name)?.comm.as_str()),
        false => disks.get(name),
    };
    let measured = window.events.iter().filter_map(|event| match &event.what {
        What::TaskOperations { task, operation, latency, count, .. } if *count > 0 => {
            SYNCS.contains(&operation.as_str()).then(|| (task.task.to_string(), latency.max.as_secs_f64()))
        }
        _ => None,
    });
    let traced = window.events.iter().filter_map(|event| match &event.what {
        What::Synced(synced) => Some((synced.who.comm.to_string(), synced.longest.as_secs_f64())),
        _ => None,
    });
    let mut longest: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |(name, seconds): (String, f64)| {
        if let Some(disk) = disk_of(&name) {
            let of_disk = longest.entry(format!("{ON_DEVICE}{disk}.longest_wait_seconds")).or_insert(0.0);
            *of_disk = of_disk.max(seconds);
        }
    };
    let mut measured = measured.peekable();
    match measured.peek().is_some() {
        true => measured.for_each(&mut add),
        false => traced.for_each(&mut add),
    }
    found.extend(longest);
    leave_out_shorter(&mut found);
    found
}

/// Leaves out waits of all tasks on a disk that are shorter than the longest wait on it. The kernel's counters do not have all waits of a sync,
/// such as those for the log of a file system.
fn leave_out_shorter(found: &mut BTreeMap<String, f64>) {
    let all = found.clone();
    found.retain(|name, waited| {
        let disk = name.strip_suffix(".waited_seconds");
        let longest = disk.and_then(|disk| all.get(&format!("{disk}.longest_wait_seconds")));
        longest.is_none_or(|longest| *waited >= *longest)
    });
}

/// The name of such a figure for people.
pub(crate) fn label(figure: &str) -> Option<String> {
    let (disk, what) = figure.strip_prefix(ON_DEVICE)?.rsplit_once('.')?;
    let what = if what == "waited_seconds" { "waits" } else { "longest fsync" };
    // A key of a scenario has no hyphen, and the kernel's name of a mapped device has one.
    let mapped = disk.strip_prefix("dm_").filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    Some(format!("{what} on {}", mapped.map_or_else(|| disk.to_owned(), |number| format!("dm-{number}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;

    #[test]
    fn a_total_of_waits_is_not_below_the_longest_of_them() {
        let left = |waited: f64| {
            let named = |what: &str, value| (format!("device.a.{what}_seconds"), value);
            let mut found = BTreeMap::from([named("waited", waited), named("longest_wait", 8.9)]);
            found.insert("device.b.waited_seconds".to_owned(), 1.0);
            leave_out_shorter(&mut found);
            found.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(left(4.6), ["device.a.longest_wait_seconds", "device.b.waited_seconds"]);
        assert_eq!(left(9.1).len(), 3);
    }

    #[test]
    fn a_name_on_several_disks_is_on_none() {
        let program = |comm: &str, device: &str| Program {
            comm: comm.to_owned(),
            cgroup: "/".to_owned(),
            processes: 1,
            device: device.to_owned(),
        };
        let of = |all: &[(&str, &str)]| -> Programs {
            let named = all.iter().enumerate();
            named.map(|(at, (comm, device))| (format!("{at}-{comm}"), program(comm, device))).collect()
        };
        let programs = of(&[("db", "a"), ("db", "a"), ("log", "b"), ("sh", "a"), ("sh", "b")]);
        assert_eq!(disks(&programs).into_iter().collect::<Vec<_>>(), [("db", "a"), ("log", "b")]);
        let waited = |comm: &str, seconds| (format!("program.{comm}.waited_seconds"), seconds);
        let known = BTreeMap::from([waited("db", 2.0), waited("log", 3.0), waited("sh", 9.0)]);
        let told = |programs: &Programs| figures(&Window::default(), &known, programs, false);
        let expect = [("device.a.waited_seconds", 2.0), ("device.b.waited_seconds", 3.0)];
        assert_eq!(told(&programs), expect.map(|(name, value)| (name.to_owned(), value)).into());
        assert!(told(&of(&[("db", "a"), ("log", "a")])).is_empty(), "one disk");
        assert_eq!(label("device.a.waited_seconds").as_deref(), Some("waits on a"));
        assert_eq!(label("device.dm_0.longest_wait_seconds").as_deref(), Some("longest fsync on dm-0"));
        assert_eq!(label("stall_seconds"), None);
    }
}
