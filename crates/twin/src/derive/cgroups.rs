// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cgroups of the twin: those in which something runs, and their ancestors that have a limit. Idle cgroups are left
//! out: they hold memory, which the machine's other memory stands for.

use super::names;
use crate::provenance::Notes;
use floodline_record::id::{DevId, Entity, EntityId, Hierarchy};
use floodline_record::sample::{CgroupIoRow, CgroupLimitsRow};
use floodline_record::units::{Bytes, Limit};
use floodline_record::window::Window;
use floodline_scenario::{
    ByteRate, ByteSize, Cgroup, CgroupMode, Controller, IoMax, IoRate, Machine, RequestsPerSecond, SizeLimit,
};
use std::collections::BTreeMap;

/// Cgroups of a recording.
pub(super) struct Cgroups {
    /// Path in the scenario and as recorded, by entity; the root's is empty.
    paths: BTreeMap<EntityId, (String, String)>,
    limits: BTreeMap<String, CgroupLimitsRow>,
    io: BTreeMap<String, Vec<(DevId, CgroupIoRow)>>,
    /// How many cgroups the recording has.
    pub(super) count: usize,
}

impl Cgroups {
    pub(super) fn of(window: &Window) -> Cgroups {
        let mut taken = names::Taken::default();
        let mut by_path: BTreeMap<&[u8], String> = BTreeMap::new();
        let mut paths = BTreeMap::new();
        let mut count = 0;
        for (id, entity) in &window.entities {
            let Entity::Cgroup { path, hierarchy, .. } = entity else { continue };
            if *hierarchy != Hierarchy::V1Blkio {
                count += 1;
            }
            let plain = names::path(path.as_bytes());
            let name = match plain.is_empty() {
                true => String::new(),
                false => by_path.entry(path.as_bytes()).or_insert_with(|| taken.unique(&plain, 1000)).clone(),
            };
            paths.insert(*id, (name, path.to_string()));
        }
        let named = |id: &EntityId| paths.get(id).map(|(name, _)| name.clone()).filter(|name| !name.is_empty());
        let limits =
            window.cgroup_limits.iter().filter_map(|(id, span)| Some((named(id)?, span.last.clone()))).collect();
        let mut io: BTreeMap<String, Vec<(DevId, CgroupIoRow)>> = BTreeMap::new();
        for (id, span) in &window.cgroup_io {
            let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id) else { continue };
            let Some(name) = named(cgroup) else { continue };
            io.entry(name).or_default().push((*dev, span.last.clone()));
        }
        Cgroups { paths, limits, io, count }
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
        let size = |limit: Option<Limit>| {
            // Version 1 has no word for no limit, but a number near the largest.
            let bytes = limit?.bytes()?;
            (bytes.0 > 0 && bytes.0 < 1 << 60).then_some(SizeLimit::Size(ByteSize(Bytes(bytes.0))))
        };
        let mut put = |into: &mut Option<SizeLimit>, name: &str, limit: Option<Limit>| {
            *into = size(limit);
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
        for (dev, row) in self.io.get(path).into_iter().flatten() {
            let rate = |limit: Option<Limit>| {
                let bytes = limit?.bytes()?;
                (bytes.0 > 0).then_some(ByteRate(floodline_record::units::BytesPerSecond(bytes.0)))
            };
            let requests = |limit: Option<Limit>| {
                let count = limit?.bytes()?;
                (count.0 > 0).then_some(IoRate(RequestsPerSecond(count.0)))
            };
            let max = IoMax {
                read_bandwidth: rate(row.rbps_max),
                write_bandwidth: rate(row.wbps_max),
                read_iops: requests(row.riops_max),
                write_iops: requests(row.wiops_max),
            };
            if let Some(name) = device(*dev).filter(|_| max != IoMax::default()) {
                notes.measured(format!("machine.cgroups.\"{path}\".io_max.{name}"), "io.max");
                cgroup.io_max.insert(name, max);
            }
        }
        cgroup
    }
}
