// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of cgroups: which limit writes or memory, and which write limits their processes passed by dirtying pages.

use super::derived::Derived;
use super::{cgroup, device};
use crate::report::Evidence;
use floodline_kernel::{Behaviour, CgroupWriteback, WhyNot, cgroup_writeback};
use floodline_record::facts::{HostFacts, Mount};
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::sample::CgroupIoRow;
use floodline_record::units::Limit;
use std::collections::{BTreeMap, BTreeSet};

/// A cgroup, a device, and the limits of the one on the other.
pub type WriteLimit<'a> = (EntityId, DevId, &'a CgroupIoRow);

/// Dirtied bytes, or requests of them, in multiples of a limit, from which the limit was exceeded.
const PASSED: f64 = 1.2;

/// Cgroups with a limit on written bytes or operations, and the devices it is for.
pub fn of_writes<'a>(derived: &Derived<'a>) -> Vec<WriteLimit<'a>> {
    let limits = |row: &CgroupIoRow| [row.wbps_max, row.wiops_max].iter().flatten().any(|limit| *limit != Limit::MAX);
    derived
        .window
        .cgroup_io
        .iter()
        .filter(|(_, span)| limits(&span.last))
        .filter_map(|(id, span)| match derived.window.entities.get(id) {
            Some(Entity::CgroupIo { cgroup, dev }) => Some((*cgroup, *dev, &span.last)),
            _ => None,
        })
        .collect()
}

/// Cgroups with a memory limit.
pub fn of_memory(derived: &Derived<'_>) -> Vec<EntityId> {
    let limits =
        |max: Option<Limit>, high: Option<Limit>| [max, high].iter().flatten().any(|limit| *limit != Limit::MAX);
    derived
        .window
        .cgroup_limits
        .iter()
        .filter(|(id, span)| {
            limits(span.last.memory_max, span.last.memory_high)
                && cgroup::path(derived.window, **id).is_some_and(|path| path.as_bytes() != b"/")
        })
        .map(|(id, _)| *id)
        .collect()
}

/// Reason why a filesystem that has pages to write back does not support cgroup writeback.
pub(crate) fn lacks_support(facts: &HostFacts, mount: &Mount) -> Option<WhyNot> {
    match cgroup_writeback(mount, &Behaviour::of_host(facts)?, &facts.cgroups) {
        CgroupWriteback::Unsupported(WhyNot::NoWriteback | WhyNot::OtherFilesystem) => None,
        CgroupWriteback::Unsupported(why) => Some(why),
        CgroupWriteback::Supported | CgroupWriteback::Unknown => None,
    }
}

/// Bytes that the processes of these cgroups dirtied, with those of the cgroups below them.
fn dirtied(derived: &Derived<'_>, cgroups: impl Iterator<Item = EntityId>) -> BTreeMap<EntityId, u64> {
    let path = |id| cgroup::path(derived.window, id);
    let ids: BTreeMap<&[u8], EntityId> = cgroups.filter_map(|id| Some((path(id)?.as_bytes(), id))).collect();
    let mut sums: BTreeMap<EntityId, u64> = BTreeMap::new();
    for writer in &derived.writers().processes {
        let (Some(path), Some(bytes)) = (writer.cgroup.and_then(path), writer.dirtied_bytes) else { continue };
        // `/` may come twice.
        let above: BTreeSet<EntityId> = cgroup::and_above(path).filter_map(|path| ids.get(path).copied()).collect();
        for id in above {
            let sum = sums.entry(id).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    sums
}

/// Cgroups that dirtied more than a limit permits, with those below them, each once, with the rate, bytes per second.
pub fn passed(derived: &Derived<'_>, limits: &[WriteLimit<'_>]) -> Vec<(EntityId, f64)> {
    let seconds = derived.seconds;
    if !derived.has_rates {
        return Vec::new();
    }
    let dirtied = dirtied(derived, limits.iter().map(|(cgroup, ..)| *cgroup));
    let of = |(cgroup, dev, row): &WriteLimit<'_>| {
        let bytes = row.wbps_max.and_then(Limit::bytes).map(|limit| limit.0 as f64);
        // Dirty pages become requests as large as the device's usual ones.
        let request = || device::by_dev(derived.window, *dev)?.mean_write();
        let requests = || Some(row.wiops_max.and_then(Limit::bytes)?.0 as f64 * request()?);
        let limit = [bytes, requests()].into_iter().flatten().reduce(f64::min)?;
        let bytes = dirtied.get(cgroup).copied().unwrap_or_default();
        let rate = bytes as f64 / seconds;
        (rate > PASSED * limit).then_some((*cgroup, rate))
    };
    // A cgroup may have a limit on each of several devices.
    let mut seen = BTreeSet::new();
    limits.iter().filter_map(of).filter(|(cgroup, _)| seen.insert(*cgroup)).collect()
}

/// A few limits as rows of evidence.
pub fn rows(derived: &Derived<'_>, limits: &[WriteLimit<'_>]) -> Vec<Evidence> {
    let row = |(cgroup, dev, row): &WriteLimit<'_>| {
        let name = format!("Limit of {} on {dev}", derived.label(*cgroup));
        match (row.wbps_max.and_then(Limit::bytes), row.wiops_max.and_then(Limit::bytes)) {
            (Some(bytes), _) => Some(Evidence::rate(name, bytes.0 as f64, "io.max wbps, or blkio.throttle")),
            (None, Some(writes)) => {
                Some(Evidence::per_second(name, writes.0 as f64, "io.max wiops, or blkio.throttle"))
            }
            (None, None) => None,
        }
    };
    limits.iter().filter_map(row).take(4).collect()
}
