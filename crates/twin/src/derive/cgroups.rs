// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cgroups of the twin: those in which something runs, and their ancestors that have a limit. Idle cgroups are left
//! out: they hold memory, which the machine's other memory stands for.

use super::bursts::time;
use super::heaps::Held;
use super::names;
use crate::fits::beside_cache;
use crate::limit_changes::{self, IoLimits, MemoryLimits};
use crate::provenance::Notes;
use crate::recorded::Recorded;
use floodline_record::human;
use floodline_record::id::{DevId, Entity, EntityId, Hierarchy};
use floodline_record::sample::CgroupLimitsRow;
use floodline_record::units::{Bytes, BytesPerSecond, Limit, Nanos};
use floodline_record::window::Window;
use floodline_scenario::{
    ByteRate, ByteSize, Cgroup, CgroupMode, Controller, IoMax, IoRate, Lasting, Machine, RequestsPerSecond, SetLimits,
    SizeLimit, Step, Task,
};
use std::collections::{BTreeMap, BTreeSet};

/// Most changes of the limits of one cgroup, and of all cgroups, that the twin makes.
const CHANGES_MAX: usize = 50;
const ALL_CHANGES_MAX: usize = 2_000;
/// A rate that no device reaches, for a limit that was lifted: a step cannot take a limit away.
const LIFTED: u64 = 1 << 40;

/// Cgroups of a recording.
pub(super) struct Cgroups {
    /// Path in the scenario and as recorded, by entity; the root's is empty.
    paths: BTreeMap<EntityId, (String, String)>,
    limits: BTreeMap<String, CgroupLimitsRow>,
    io: BTreeMap<String, Vec<(DevId, IoLimits)>>,
    changes: Vec<LimitChange>,
    /// Cgroups whose limits changed too often for a scenario.
    restless: BTreeMap<String, usize>,
    /// What each held beside its page cache.
    held: BTreeMap<String, Held>,
    /// How many cgroups the recording has.
    pub(super) count: usize,
}

/// A change of limits of a cgroup while the host was watched.
struct LimitChange {
    /// Seconds since the recording began.
    at: f64,
    /// Path in the scenario.
    path: String,
    limits: NewLimits,
}

enum NewLimits {
    Memory(MemoryLimits),
    Io(DevId, IoLimits),
}

/// Names that the cgroups of a recording have in its twin, empty for the root, and their paths on the host, escaped.
pub(crate) fn paths(window: &Window) -> BTreeMap<EntityId, (String, String)> {
    let mut taken = names::Taken::default();
    let mut by_path: BTreeMap<&[u8], String> = BTreeMap::new();
    let mut paths = BTreeMap::new();
    for (id, entity) in &window.entities {
        let Entity::Cgroup { path, .. } = entity else { continue };
        let plain = names::path(path.as_bytes());
        let name = match plain.is_empty() {
            true => String::new(),
            false => by_path.entry(path.as_bytes()).or_insert_with(|| taken.unique(&plain, 1000)).clone(),
        };
        paths.insert(*id, (name, path.to_string()));
    }
    paths
}

impl Cgroups {
    pub(super) fn of(recorded: &Recorded) -> Cgroups {
        let window = &recorded.window;
        let is_counted =
            |entity: &&Entity| matches!(entity, Entity::Cgroup { hierarchy: Hierarchy::V2 | Hierarchy::V1Memory, .. });
        let count = window.entities.values().filter(is_counted).count();
        let paths = paths(window);
        let named = |id: &EntityId| paths.get(id).map(|(name, _)| name.clone()).filter(|name| !name.is_empty());
        let first = window.first_at.map_or(Nanos(0), |first| first.monotonic);
        let seconds = |at: Nanos| Nanos(at.0.saturating_sub(first.0)).as_secs_f64();
        let mut changes = Vec::new();
        let mut limits = BTreeMap::new();
        for (id, span) in &window.cgroup_limits {
            let Some(name) = named(id) else { continue };
            for (at, new) in recorded.limits.of_memory(*id).iter().skip(1) {
                changes.push(LimitChange { at: seconds(*at), path: name.clone(), limits: NewLimits::Memory(*new) });
            }
            limits.insert(name, span.last.clone());
        }
        let mut io: BTreeMap<String, Vec<(DevId, IoLimits)>> = BTreeMap::new();
        for (id, span) in &window.cgroup_io {
            let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id) else { continue };
            let Some(name) = named(cgroup) else { continue };
            for (at, new) in recorded.limits.of_io(*id).iter().skip(1) {
                changes.push(LimitChange { at: seconds(*at), path: name.clone(), limits: NewLimits::Io(*dev, *new) });
            }
            io.entry(name).or_default().push((*dev, limit_changes::io(&span.last)));
        }
        // Too many changes for a scenario: then the last limits of such a cgroup count.
        let mut restless: BTreeMap<String, usize> = BTreeMap::new();
        changes.iter().for_each(|change: &LimitChange| *restless.entry(change.path.clone()).or_default() += 1);
        restless.retain(|_, count| *count > CHANGES_MAX);
        changes.retain(|change| !restless.contains_key(&change.path));
        let kept = |id: &EntityId| named(id).filter(|name| !restless.contains_key(name));
        begin_with_first(recorded, &kept, &mut limits, &mut io);
        changes.sort_by(|one, other| one.at.total_cmp(&other.at));
        let held = window.cgroups.iter().filter_map(|(id, span)| {
            let (from, to) = (seconds(span.first_at), seconds(span.last_at));
            Some((named(id)?, Held { bytes: beside_cache(span)?, from, to }))
        });
        let held = held.collect();
        Cgroups { paths, limits, io, changes, restless, held, count }
    }

    /// What a cgroup held beside its page cache.
    pub(super) fn held(&self, path: &str) -> Option<Held> {
        self.held.get(path).copied()
    }

    /// The smallest limit that a cgroup had, where its limits changed, bytes.
    pub(super) fn smallest_limit(&self, path: &str) -> Option<u64> {
        let of_memory = |change: &LimitChange| match &change.limits {
            NewLimits::Memory([max, ..]) if change.path == path => {
                max.and_then(|limit| limit.bytes()).map(|bytes| bytes.0)
            }
            _ => None,
        };
        self.changes.iter().filter_map(of_memory).min()
    }

    /// A task that changes the limits of the machine's cgroups as they were changed. What it leaves out is added to `unknown`.
    pub(super) fn changes(
        &self,
        machine: &Machine,
        device: impl Fn(DevId) -> Option<String>,
        unknown: &mut Vec<String>,
    ) -> Option<Task> {
        let (mut steps, mut now) = (Vec::new(), 0.0);
        let restless = self.restless.keys().filter(|path| machine.cgroups.contains_key(*path)).count() as u64;
        if restless > 0 {
            let cgroups = human::plural(restless, "cgroup", "cgroups");
            unknown.push(format!(
                "Limits of {cgroups} changed more than {CHANGES_MAX} times. The twin has the last ones."
            ));
        }
        let of_machine = || self.changes.iter().filter(|change| machine.cgroups.contains_key(&change.path));
        let left = of_machine().count().saturating_sub(ALL_CHANGES_MAX) as u64;
        if left > 0 {
            unknown.push(format!(
                "The twin leaves out the last {}.",
                human::plural(left, "change of a limit", "changes of limits")
            ));
        }
        for change in of_machine().take(ALL_CHANGES_MAX) {
            let mut limits = Cgroup::default();
            match &change.limits {
                NewLimits::Memory([max, high, low]) => {
                    // A limit of 0 makes the kernel reclaim what it can, and the model has no such moment.
                    let is_new = |limit: &Limit| limit.bytes().is_none_or(|bytes| bytes.0 > 0);
                    let new =
                        |limit: &Option<Limit>| limit.filter(is_new).map(|limit| size(limit).unwrap_or(SizeLimit::Max));
                    limits.memory_max = new(max);
                    if machine.cgroup_mode == CgroupMode::V2 {
                        limits.memory_high = new(high);
                        limits.memory_low = low.map(|limit| size(limit).unwrap_or(SizeLimit::Size(ByteSize(Bytes(0)))));
                    }
                }
                NewLimits::Io(dev, new) => {
                    let Some(name) = device(*dev) else { continue };
                    let lifted =
                        new.map(|limit| limit.map(|limit| Limit(limit.bytes().map_or(LIFTED, |n| n.0.max(1)))));
                    limits.io_max.insert(name, io_max(&lifted));
                }
            }
            if change.at > now + 1e-3 {
                steps.push(Step::Sleep(Lasting { lasting: time(change.at - now) }));
                now = change.at;
            }
            steps.push(Step::SetLimits(SetLimits { cgroup: change.path.clone(), limits }));
        }
        (!steps.is_empty()).then(|| Task { steps, ..Task::default() })
    }

    /// The cgroups that the machine does not have, one sentence for those in which something was written, and one for the others.
    pub(super) fn left_out(&self, machine: &Machine, written: &BTreeSet<EntityId>) -> Vec<String> {
        let left = self.count.saturating_sub(machine.cgroups.len() + 1);
        let is_left = |id: &&EntityId| {
            let path = self.path(Some(**id));
            !path.is_empty() && !machine.cgroups.contains_key(path)
        };
        let little = written.iter().filter(is_left).count().min(left);
        let told = |count: usize, what: &str| {
            let cgroups = human::plural(count as u64, "cgroup", "cgroups");
            (count > 0).then(|| format!("The twin leaves out {cgroups} in which {what} was written."))
        };
        [told(little, "next to nothing"), told(left - little, "nothing")].into_iter().flatten().collect()
    }

    /// Path in the scenario of a cgroup, without leading slash; empty for the root and for what is not known.
    pub(super) fn path(&self, id: Option<EntityId>) -> &str {
        id.and_then(|id| self.paths.get(&id)).map_or("", |(name, _)| name)
    }

    /// Path as recorded, escaped.
    pub(super) fn shown(&self, id: Option<EntityId>) -> &str {
        id.and_then(|id| self.paths.get(&id)).map_or("/", |(_, shown)| shown)
    }

    /// Adds a cgroup and its ancestors to the machine.
    pub(super) fn add(
        &self,
        path: &str,
        machine: &mut Machine,
        device: impl Fn(DevId) -> Option<String>,
        notes: &mut Notes,
    ) {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let path = &path[..end];
            if path.is_empty() || machine.cgroups.contains_key(path) {
                continue;
            }
            let cgroup = self.cgroup(path, machine.cgroup_mode, &device, notes);
            machine.cgroups.insert(path.to_owned(), cgroup);
        }
    }

    fn cgroup(
        &self,
        path: &str,
        mode: CgroupMode,
        device: &impl Fn(DevId) -> Option<String>,
        notes: &mut Notes,
    ) -> Cgroup {
        let mut cgroup = Cgroup::default();
        let row = self.limits.get(path).cloned().unwrap_or_default();
        let mut put = |into: &mut Option<SizeLimit>, name: &str, limit: Option<Limit>| {
            *into = limit.and_then(size);
            if into.is_some() {
                notes.measured(format!("machine.cgroups.\"{path}\".{name}"), format!("limit of {path}"));
            }
        };
        put(&mut cgroup.memory_max, "memory_max", row.memory_max);
        if mode == CgroupMode::V2 {
            put(&mut cgroup.memory_high, "memory_high", row.memory_high);
            put(&mut cgroup.memory_low, "memory_low", row.memory_low);
            // Bit 0 is memory, bit 1 is io; what a parent does not enable, its children do not have.
            if row.subtree_control.is_some_and(|bits| bits.0 & 3 == 0) {
                cgroup.subtree_control = Some(Vec::<Controller>::new());
                notes.measured(format!("machine.cgroups.\"{path}\".subtree_control"), "cgroup.subtree_control");
            }
        }
        for (dev, limits) in self.io.get(path).into_iter().flatten() {
            let max = io_max(limits);
            if let Some(name) = device(*dev).filter(|_| max != IoMax::default()) {
                notes.measured(format!("machine.cgroups.\"{path}\".io_max.{name}"), "io.max");
                cgroup.io_max.insert(name, max);
            }
        }
        cgroup
    }
}

/// The limits with which a recording begins, where they changed later.
fn begin_with_first(
    recorded: &Recorded,
    named: &impl Fn(&EntityId) -> Option<String>,
    limits: &mut BTreeMap<String, CgroupLimitsRow>,
    io: &mut BTreeMap<String, Vec<(DevId, IoLimits)>>,
) {
    for id in recorded.window.cgroup_limits.keys() {
        if let ([(_, [max, high, low]), _, ..], Some(row)) =
            (recorded.limits.of_memory(*id), named(id).and_then(|name| limits.get_mut(&name)))
        {
            (row.memory_max, row.memory_high, row.memory_low) = (*max, *high, *low);
        }
    }
    for id in recorded.window.cgroup_io.keys() {
        let Some(Entity::CgroupIo { cgroup, dev }) = recorded.window.entities.get(id) else { continue };
        let all = named(cgroup).and_then(|name| io.get_mut(&name)).into_iter().flatten();
        if let [(_, first), _, ..] = recorded.limits.of_io(*id) {
            all.filter(|(of, _)| of == dev).for_each(|(_, limits)| *limits = *first);
        }
    }
}

/// A limit of memory; `None` where there is none.
fn size(limit: Limit) -> Option<SizeLimit> {
    // Version 1 has no word for no limit, but a number near the largest.
    let bytes = limit.bytes()?;
    (bytes.0 > 0 && bytes.0 < 1 << 60).then_some(SizeLimit::Size(ByteSize(Bytes(bytes.0))))
}

/// The limits of a cgroup on a device.
fn io_max(limits: &IoLimits) -> IoMax {
    let set = |limit: &Option<Limit>| limit.and_then(|limit| limit.bytes()).map(|bytes| bytes.0).filter(|n| *n > 0);
    let rate = |limit| set(limit).map(|bytes| ByteRate(BytesPerSecond(bytes)));
    let requests = |limit| set(limit).map(|count| IoRate(RequestsPerSecond(count)));
    let [rbps, wbps, riops, wiops] = limits;
    IoMax {
        read_bandwidth: rate(rbps),
        write_bandwidth: rate(wbps),
        read_iops: requests(riops),
        write_iops: requests(wiops),
    }
}

#[cfg(test)]
mod tests {
    use super::super::heaps::tests::machine_of;
    use super::*;
    use floodline_testkit::{Fixture, mib};

    /// The steps that change the limits of `/app`, and what is left out. The limit is `before` MiB until 10 s, then `after`.
    fn changed(before: f64, after: impl Fn(f64) -> f64 + 'static) -> (Cgroup, Vec<Step>, Vec<String>) {
        let host = Fixture::healthy().seconds(120).cgroup("/app", |_, _| {}).limits("/app", move |t, row| {
            row.memory_max = Some(Limit(mib(if t < 10.0 { before } else { after(t) })));
        });
        let cgroups = Cgroups::of(&Recorded::from_records(&host.records()));
        let mut machine = machine_of(1024);
        cgroups.add("app", &mut machine, |_| None, &mut Notes::default());
        let mut unknown = Vec::new();
        let task = cgroups.changes(&machine, |_| None, &mut unknown);
        (machine.cgroups["app"].clone(), task.map_or_else(Vec::new, |task| task.steps), unknown)
    }

    #[test]
    fn limits_that_change_begin_with_the_first_and_follow() {
        let max = |mebibytes: u64| Some(SizeLimit::Size(ByteSize(Bytes(mebibytes << 20))));
        let (app, steps, unknown) = changed(64.0, |_| 512.0);
        assert_eq!((app.memory_max, unknown.len()), (max(64), 0));
        let [Step::Sleep(sleep), Step::SetLimits(set)] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!((sleep.lasting.0.as_secs_f64(), set.limits.memory_max), (9.5, max(512)));
        assert_eq!(changed(64.0, |_| 64.0).1, [], "it stays");
    }

    #[test]
    fn limits_that_change_all_the_time_are_the_last_ones_and_that_is_said() {
        let (app, steps, unknown) = changed(64.0, |t| 100.0 + t);
        let last = Some(SizeLimit::Size(ByteSize(Bytes(220 << 20))));
        assert_eq!((app.memory_max, steps.len()), (last, 0));
        assert_eq!(unknown, ["Limits of 1 cgroup changed more than 50 times. The twin has the last ones."]);
    }
}
