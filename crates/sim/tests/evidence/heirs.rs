// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process inherited: the kernel adds the counters of I/O of a child to those of its parent when the parent waits for it.
//! Bytes that samples showed of the child are the child's.

use super::DIRTIED;
use super::raw::{Column, Raw};
use floodline_record::id::{Entity, EntityId};
use floodline_record::sample::ProcessRow;
use std::collections::BTreeMap;

/// Children that ended, by the process that has their counters.
pub(crate) type Heirs = BTreeMap<EntityId, Vec<EntityId>>;

impl Raw {
    fn last_row(&self, id: EntityId) -> Option<(usize, &ProcessRow)> {
        let rows = self.samples.iter().enumerate().rev();
        rows.filter_map(|(at, sample)| Some((at, sample.processes.get(id)?))).next()
    }

    /// The children that each process waited for: those that are not in the last sample, each with the nearest ancestor that a later
    /// sample has.
    fn find_heirs(&self) -> Heirs {
        let processes = self.entities.iter().filter_map(|(id, entity)| match entity {
            Entity::Process { pid, .. } => Some((*id, *pid)),
            _ => None,
        });
        let seen: Vec<(EntityId, u32, usize, &ProcessRow)> =
            processes.filter_map(|(id, pid)| self.last_row(id).map(|(at, row)| (id, pid, at, row))).collect();
        // Where a number was used twice, the process that was seen last.
        let mut by_pid: BTreeMap<u64, usize> = BTreeMap::new();
        for (place, (_, pid, at, _)) in seen.iter().enumerate() {
            let known = by_pid.entry(u64::from(*pid)).or_insert(place);
            *known = if *at > seen[*known].2 { place } else { *known };
        }
        let mut heirs = Heirs::new();
        for (child, _, ended, row) in seen.iter().filter(|(_, _, at, _)| at + 1 < self.samples.len()) {
            let mut parent = row.ppid;
            for _ in 0..seen.len() {
                let Some(place) = parent.and_then(|parent| by_pid.get(&parent.0)) else { break };
                let (id, _, at, row) = &seen[*place];
                if at > ended {
                    heirs.entry(*id).or_default().push(*child);
                    break;
                }
                parent = row.ppid;
            }
        }
        heirs
    }

    /// Reaped children whose counters are part of those of a process: all that it can have waited for.
    fn waited_for(&self, id: EntityId) -> Vec<EntityId> {
        let of_parent = |column| self.process(id, column);
        if self.last_row(id).is_some_and(|(_, row)| row.cminflt.is_some())
            && of_parent(|row| row.cminflt.unwrap_or_default().0) == 0.0
        {
            return Vec::new();
        }
        let children = self.heirs.get_or_init(|| self.find_heirs()).get(&id).cloned().unwrap_or_default();
        let mut left = of_parent(DIRTIED);
        let has_its = |child: &EntityId| {
            let had = self.last_row(*child).map_or(0.0, |(_, row)| DIRTIED(row) as f64);
            let fits = had <= left;
            left -= if fits { had } else { 0.0 };
            fits
        };
        children.into_iter().filter(has_its).collect()
    }

    /// Part of a counter of I/O of a process that comes from reaped children that are in samples.
    pub(crate) fn inherited(&self, id: EntityId, column: Column<ProcessRow>) -> f64 {
        let children = self.waited_for(id);
        children.iter().filter_map(|child| self.last_row(*child)).map(|(_, row)| column(row) as f64).sum()
    }

    /// What a process did by a counter of I/O, without its known children.
    pub(crate) fn io(&self, id: EntityId, column: Column<ProcessRow>) -> f64 {
        (self.process(id, column) - self.inherited(id, column)).max(0.0)
    }

    /// The same of all processes that are wanted.
    pub(crate) fn io_of(&self, wanted: impl Fn(&Entity) -> bool, column: Column<ProcessRow>) -> f64 {
        let is_process = |entity: &Entity| matches!(entity, Entity::Process { .. });
        let ids = self.entities.iter().filter(|(_, entity)| is_process(entity) && wanted(entity));
        ids.map(|(id, _)| self.io(*id, column)).sum()
    }

    /// Whether the rest of what a process has is likely that of children that no sample saw: they were busier than itself.
    pub(crate) fn is_by_children(&self, id: EntityId) -> bool {
        const TICKS: f64 = 20e6;
        let Some((_, row)) = self.last_row(id) else { return false };
        let of = |column| self.process(id, column);
        let faults = of(|row| row.cminflt.unwrap_or_default().0);
        if faults == 0.0 || row.cminflt.is_none() || row.children_time.is_none() {
            return false;
        }
        let childrens = of(|row| row.children_time.unwrap_or_default().0);
        let own = of(|row| row.utime.unwrap_or_default().0) + of(|row| row.stime.unwrap_or_default().0);
        match childrens < TICKS && own < TICKS {
            true => faults > of(|row| row.minflt.unwrap_or_default().0),
            false => childrens > own,
        }
    }

    /// Bytes dirtied by the processes of a cgroup, without those that come from children that no sample saw: nothing shows the cgroup
    /// of these.
    pub(crate) fn dirtied_in(&self, cgroup: EntityId) -> f64 {
        let is_its = |entity: &Entity| matches!(entity, Entity::Process { cgroup: Some(of), .. } if *of == cgroup);
        let ids = self.entities.iter().filter(|(id, entity)| is_its(entity) && !self.is_by_children(**id));
        ids.map(|(id, _)| self.io(*id, DIRTIED)).sum()
    }

    /// What the processes of a cgroup have in a column: `all` of it. Where the cgroup wrote to several disks, a finding is about one, and
    /// the samples do not show which of the processes wrote to it. Some of them must then add up to what is `told`.
    pub(crate) fn part_of(&self, cgroup: EntityId, column: Column<ProcessRow>, all: f64, told: f64) -> f64 {
        const PROCESSES_MAX: usize = 12;
        let is_its = |entity: &Entity| matches!(entity, Entity::Process { cgroup: Some(of), .. } if *of == cgroup);
        let ids = self.entities.iter().filter(|(_, entity)| is_its(entity)).map(|(id, _)| self.io(*id, column));
        let parts: Vec<f64> = ids.filter(|bytes| *bytes > 0.0).collect();
        if !self.writes_to_several(cgroup) || parts.len() > PROCESSES_MAX {
            return all;
        }
        let sum = |chosen: usize| (0..parts.len()).filter(|at| chosen >> at & 1 == 1).map(|at| parts[at]).sum::<f64>();
        let sums = (1..1 << parts.len()).map(sum);
        sums.min_by(|one, other| (one - told).abs().total_cmp(&(other - told).abs())).unwrap_or(all)
    }

    /// The processes of a program that run one after the other, as `tar (10 processes in turn)` calls them, most dirtied first: those
    /// of one cgroup that dirtied a hundredth of what all of them did.
    pub(crate) fn in_turn(&self, called: &str) -> Option<Vec<EntityId>> {
        let (program, rest) = called.rsplit_once(" (")?;
        let count: usize = rest.strip_suffix(" processes in turn)")?.parse().ok()?;
        let mut by_cgroup: BTreeMap<Option<EntityId>, Vec<(EntityId, f64)>> = BTreeMap::new();
        for (id, entity) in &self.entities {
            let Entity::Process { comm, cgroup, kthread: false, .. } = entity else { continue };
            if comm.to_string() == program && !self.is_by_children(*id) {
                by_cgroup.entry(*cgroup).or_default().push((*id, self.io(*id, DIRTIED)));
            }
        }
        let sum = |of: &[(EntityId, f64)]| of.iter().map(|(_, bytes)| bytes).sum::<f64>();
        let mut members = by_cgroup.into_values().max_by(|one, other| sum(one).total_cmp(&sum(other)))?;
        let least = 0.01 * sum(&members);
        members.retain(|(_, bytes)| *bytes >= least && *bytes > 0.0);
        members.sort_by(|one, other| other.1.total_cmp(&one.1));
        (members.len() == count).then(|| members.into_iter().map(|(id, _)| id).collect())
    }

    /// What a process did together with its only child of the same name.
    pub(crate) fn io_with_child(&self, id: EntityId, column: Column<ProcessRow>) -> f64 {
        let own = self.io(id, column);
        let Some(Entity::Process { pid, comm, .. }) = self.entities.get(&id) else { return own };
        let is_child = |one: &EntityId| {
            let row = self.last_row(*one).map(|(_, row)| row);
            *one != id && row.and_then(|row| row.ppid).is_some_and(|parent| parent.0 == u64::from(*pid))
        };
        let is_alike = |entity: &Entity| matches!(entity, Entity::Process { comm: of, .. } if of == comm);
        let its = self.entities.iter().filter(|(one, entity)| is_alike(entity) && is_child(one));
        let its: Vec<f64> = its.map(|(one, _)| self.io(*one, column)).filter(|bytes| *bytes > 0.0).collect();
        if own > 0.0 && its.len() == 1 { own + its[0] } else { own }
    }
}
