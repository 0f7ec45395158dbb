// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of cgroups while a host is watched, and when they changed: an autoscaler gives and takes memory, a backup gets a
//! limit of I/O for as long as it runs. A twin with only the last limits would be starved all the time, or never.

use floodline_record::id::EntityId;
use floodline_record::sample::{CgroupIoRow, CgroupLimitsRow, Sample};
use floodline_record::units::{Limit, Nanos};
use std::collections::BTreeMap;

/// Most changes that are kept: about 10 MiB. Later ones are left out.
const CHANGES_MAX: usize = 100_000;

/// `memory.max`, `memory.high` and `memory.low` of a cgroup.
pub(crate) type MemoryLimits = [Option<Limit>; 3];
/// `rbps`, `wbps`, `riops` and `wiops` of a cgroup on a device.
pub(crate) type IoLimits = [Option<Limit>; 4];

/// Limits of one cgroup, in order of time, and when the last ones were read last.
#[derive(Clone, Debug)]
struct Changes<L> {
    list: Vec<(Nanos, L)>,
    read: Nanos,
}

type ById<L> = BTreeMap<EntityId, Changes<L>>;

/// Limits of cgroups, each time that they changed.
#[derive(Clone, Debug, Default)]
pub struct LimitChanges {
    memory: ById<MemoryLimits>,
    io: ById<IoLimits>,
    count: usize,
}

/// The limits of a row.
pub(crate) fn memory(row: &CgroupLimitsRow) -> MemoryLimits {
    [row.memory_max, row.memory_high, row.memory_low]
}

/// The limits of a row.
pub(crate) fn io(row: &CgroupIoRow) -> IoLimits {
    [row.rbps_max, row.wbps_max, row.riops_max, row.wiops_max]
}

impl LimitChanges {
    /// Takes the limits of a sample.
    pub(crate) fn take(&mut self, sample: &Sample) {
        let at = sample.time.monotonic;
        for (id, row) in sample.cgroup_limits.rows() {
            push(&mut self.memory, &mut self.count, *id, at, memory(row));
        }
        for (id, row) in sample.cgroup_io.rows() {
            push(&mut self.io, &mut self.count, *id, at, io(row));
        }
    }

    /// Forgets all but the limits in force.
    pub(crate) fn begin_again(&mut self) {
        keep_last(&mut self.memory);
        keep_last(&mut self.io);
        self.count = 0;
    }

    /// Limits of the memory of a cgroup, in order of time.
    pub(crate) fn of_memory(&self, id: EntityId) -> &[(Nanos, MemoryLimits)] {
        self.memory.get(&id).map_or(&[], |changes| &changes.list)
    }

    /// Limits of a cgroup on a device, in order of time.
    pub(crate) fn of_io(&self, id: EntityId) -> &[(Nanos, IoLimits)] {
        self.io.get(&id).map_or(&[], |changes| &changes.list)
    }
}

/// Adds limits that differ from the last ones. One that was not read is as it was. Limits are read some seconds apart: a change
/// is taken to be in the middle.
fn push<const N: usize>(
    into: &mut ById<[Option<Limit>; N]>,
    count: &mut usize,
    id: EntityId,
    at: Nanos,
    mut limits: [Option<Limit>; N],
) {
    if limits.iter().all(Option::is_none) {
        return;
    }
    let changes = into.entry(id).or_insert_with(|| Changes { list: Vec::new(), read: at });
    let read = std::mem::replace(&mut changes.read, at);
    let Some((_, last)) = changes.list.last() else { return changes.list.push((at, limits)) };
    limits.iter_mut().zip(last).for_each(|(limit, last)| *limit = limit.or(*last));
    if limits != *last && *count < CHANGES_MAX {
        *count += 1;
        changes.list.push((Nanos(read.0.midpoint(at.0)), limits));
    }
}

fn keep_last<L>(changes: &mut ById<L>) {
    for changes in changes.values_mut() {
        changes.list.drain(..changes.list.len().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_kept_when_they_change() {
        let row = |max: Option<u64>, low: Option<u64>| [max.map(Limit), None, low.map(Limit)];
        let (mut changes, mut count) = (ById::new(), 0);
        let id = EntityId(1);
        let first =
            [(0, row(None, None)), (10, row(Some(64), None)), (20, row(Some(64), None)), (30, row(None, Some(5)))];
        for (at, limits) in first.into_iter().chain([(40, row(Some(32), None)), (50, row(Some(32), Some(5)))]) {
            push(&mut changes, &mut count, id, Nanos(at), limits);
        }
        let expected = vec![
            (Nanos(10), row(Some(64), None)),
            (Nanos(25), row(Some(64), Some(5))),
            (Nanos(35), row(Some(32), Some(5))),
        ];
        assert_eq!((&changes[&id].list, count), (&expected, 2));
        keep_last(&mut changes);
        assert_eq!(changes[&id].list, expected[2..]);
        count = CHANGES_MAX;
        push(&mut changes, &mut count, id, Nanos(60), row(Some(1), None));
        assert_eq!(changes[&id].list, expected[2..], "one too many");
    }
}
