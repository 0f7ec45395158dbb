// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of evidence that are one reading: settings, counts of processes, levels of one cgroup.

use super::number;
use super::raw::Raw;
use floodline_analysis::report::{Evidence, Finding};
use floodline_record::id::{Entity, EntityId};
use floodline_record::sample::{CgroupRow, HostRow};
use floodline_record::units::{Limit, Quantity};
use std::collections::BTreeMap;

impl Raw {
    /// Last reading of a setting: not every sample has it.
    fn setting<Q: Quantity>(&self, of: fn(&HostRow) -> Option<Q>) -> Option<f64> {
        self.samples.iter().rev().find_map(|sample| of(&sample.host)).map(|value| value.raw() as f64)
    }

    fn path(&self, id: EntityId) -> String {
        self.entities.get(&id).map(Entity::label).unwrap_or_default()
    }

    /// Amounts of cgroups without those of their children, by path. Of several cgroups with one path the last counts.
    fn own(&self, amount: impl Fn(EntityId) -> Option<u64>) -> BTreeMap<String, f64> {
        let cgroups = self.entities.iter().filter(|(_, entity)| matches!(entity, Entity::Cgroup { .. }));
        let all: BTreeMap<String, u64> = cgroups.filter_map(|(id, _)| Some((self.path(*id), amount(*id)?))).collect();
        let mut own: BTreeMap<String, f64> = all.iter().map(|(path, bytes)| (path.clone(), *bytes as f64)).collect();
        for (path, bytes) in &all {
            let mut above = path.rsplit_once('/');
            while let Some((parent, _)) = above {
                let parent = if parent.is_empty() { "/" } else { parent };
                if let Some(rest) = own.get_mut(parent).filter(|_| parent != path) {
                    *rest -= *bytes as f64;
                    break;
                }
                above = parent.rsplit_once('/').filter(|(next, _)| *next != parent && parent != "/");
            }
        }
        own
    }

    fn most(&self, id: EntityId, of: fn(&CgroupRow) -> Option<u64>) -> Option<u64> {
        self.samples.iter().filter_map(|sample| of(sample.cgroups.get(id)?)).max()
    }

    fn latest(&self, id: EntityId, of: fn(&CgroupRow) -> Option<u64>) -> Option<u64> {
        self.samples.iter().rev().find_map(|sample| of(sample.cgroups.get(id)?))
    }

    /// Unwritten bytes in the inodes of a cgroup and of those below it, in the last sample.
    fn held_below(&self, id: EntityId) -> f64 {
        let (path, below) = (self.path(id), format!("{}/", self.path(id)));
        let is_its = |of: &&EntityId| {
            let is_cgroup = matches!(self.entities.get(of), Some(Entity::Cgroup { .. }));
            is_cgroup && (self.path(**of) == path || self.path(**of).starts_with(&below))
        };
        let in_last = |of: &&EntityId| self.last().cgroups.get(**of).is_some();
        self.entities.keys().filter(is_its).filter(in_last).map(|of| self.held(*of)).sum()
    }
}

const UNWRITTEN: fn(&CgroupRow) -> Option<u64> = |row| match (row.file_dirty, row.file_writeback) {
    (None, None) => None,
    (dirty, writeback) => Some(dirty.unwrap_or_default().0 + writeback.unwrap_or_default().0),
};

/// Computes a number that is one reading; `None` if it is something else.
pub(crate) fn again(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    let name = evidence.name.as_str();
    let hundredths = |of: f64| if evidence.unit == "seconds" { of / 100.0 } else { of };
    let of_cgroup = |prefix: &str| raw.cgroup_called(name.strip_prefix(prefix)?);
    Some(match name {
        "Expiry" => hundredths(raw.setting(|row| row.dirty_expire_centisecs)?),
        "Flusher period" => hundredths(raw.setting(|row| row.dirty_writeback_centisecs)?),
        "Oldest it may get" => {
            let period = raw.setting(|row| row.dirty_writeback_centisecs)?;
            hundredths(raw.setting(|row| row.dirty_expire_centisecs)? + period)
        }
        "Laptop mode" => raw.setting(|row| row.laptop_mode)?,
        "Dirty, nearest to the background threshold" => {
            let pages = raw.samples.iter().filter_map(|sample| {
                Some((sample.host.nr_dirty?.0 as f64, sample.host.nr_dirty_background_threshold?.0 as f64))
            });
            pages.max_by(|one, other| (one.0 / one.1.max(1.0)).total_cmp(&(other.0 / other.1.max(1.0))))?.0
                * super::PAGE
        }
        "Limit" if evidence.unit == "bytes" => raw.setting(|row| row.dirty_bytes)?,
        "Limit" => raw.setting(|row| row.dirty_ratio)?,
        "Background setting" if evidence.unit == "bytes" => raw.setting(|row| row.dirty_background_bytes)?,
        "Background setting" => raw.setting(|row| row.dirty_background_ratio)?,
        "Its largest share" => {
            let bdi = evidence.source.strip_prefix("/sys/class/bdi/")?.strip_suffix("/max_bytes")?;
            let is_it = |entity: &Entity| matches!(entity, Entity::Bdi { name } if name.to_string() == bdi);
            let id = raw.entities.iter().find(|(_, entity)| is_it(entity)).map(|(id, _)| *id)?;
            raw.samples.iter().rev().find_map(|sample| sample.bdis.get(id)?.max_bytes).map(|bytes| bytes.0 as f64)?
        }
        "Processes not readable" => {
            let start = raw.first().time.monotonic.0;
            let is_unreadable = |id: &EntityId, entity: &Entity| {
                let Entity::Process { start_ticks, kthread: false, .. } = entity else { return false };
                let rows = raw.samples.iter().filter_map(|sample| sample.processes.get(*id));
                let (all, read) =
                    rows.fold((0, 0), |sum, row| (sum.0 + 1, sum.1 + usize::from(row.write_bytes.is_some())));
                let needed = if start_ticks * 10_000_000 > start { 1 } else { 2 };
                all > 0 && read < needed
            };
            raw.entities.iter().filter(|(id, entity)| is_unreadable(id, entity)).count() as f64
        }
        "CPU of children it waited for" | "Left out, inherited from known children" => {
            let of = finding.evidence.iter().find_map(|one| one.name.strip_prefix("Share of "))?;
            let (id, _) = raw.labelled(of)?;
            match evidence.unit {
                "seconds" => raw.process(id, |row| row.children_time.unwrap_or_default().0) / 1e9,
                _ => raw.inherited(id, super::DIRTIED),
            }
        }
        _ if name.starts_with("Limit of ") => {
            let (called, dev) = name.strip_prefix("Limit of ")?.rsplit_once(" on ")?;
            let cgroup = raw.cgroup_with_io(called)?;
            let is_it = |entity: &Entity| matches!(entity, Entity::CgroupIo { cgroup: of, dev: on } if *of == cgroup && on.to_string() == dev);
            let id = raw.entities.iter().find(|(_, entity)| is_it(entity)).map(|(id, _)| *id)?;
            // Limits are not in every sample.
            let is_count = evidence.unit == "per_second";
            let rows = raw.samples.iter().rev().filter_map(|sample| sample.cgroup_io.get(id));
            let mut limits = rows.filter_map(|row| if is_count { row.wiops_max } else { row.wbps_max });
            limits.next().and_then(Limit::bytes)?.0 as f64
        }
        _ if name.starts_with("Weight of ") => {
            let id = of_cgroup("Weight of ")?;
            let weights = raw.samples.iter().rev().filter_map(|sample| sample.cgroup_limits.get(id)?.io_weight);
            weights.map(|weight| weight.0 as f64).next()?
        }
        _ if name.starts_with("Most reclaimable slab, ") => {
            let slab = |id| raw.latest(id, |row| row.slab_reclaimable.map(|bytes| bytes.0));
            *raw.own(slab).get(&raw.path(of_cgroup("Most reclaimable slab, ")?))?
        }
        // The own parts of the cgroups with most, in the last sample or of any.
        _ if name.starts_with("Of that, ") => {
            let is_now = finding.evidence.iter().any(|one| one.name == "Dirty there now");
            let path = raw.path(of_cgroup("Of that, ")?);
            let amount = |id| if is_now { raw.latest(id, UNWRITTEN) } else { raw.most(id, UNWRITTEN) };
            *raw.own(amount).get(&path)?
        }
        _ if name.starts_with("Of it, in ") => {
            let dirty = |id| raw.most(id, |row| row.file_dirty.map(|bytes| bytes.0));
            *raw.own(dirty).get(&raw.path(of_cgroup("Of it, in ")?))?
        }
        _ if name.starts_with("Most dirty, ") && finding.rule == "cgroup-writeback-missing" => {
            *raw.own(|id| raw.most(id, UNWRITTEN)).get(&raw.path(of_cgroup("Most dirty, ")?))?
        }
        "Dirty there now" if evidence.source.contains("/proc/vmstat") => raw.unwritten(raw.samples.len() - 1),
        "Dirty in inodes of its own wbs" | "Difference" => {
            let id =
                raw.cgroup_called(finding.evidence.iter().find_map(|one| one.name.strip_prefix("Dirty by charge, "))?)?;
            let held = raw.held_below(id);
            if name == "Difference" { raw.charged(id)? - held } else { held }
        }
        "Of that not charged to it" => {
            let of = |prefix: &str| {
                finding.evidence.iter().find(|one| one.name.starts_with(prefix) && !one.name.contains("own wbs"))
            };
            let host = of("Dirty in inodes of ")?;
            let id = raw.cgroup_called(host.name.strip_prefix("Dirty in inodes of ")?)?;
            number(host)? - raw.charged(id)?
        }
        _ if name.starts_with("Dirty in inodes of ") => raw.held_below(of_cgroup("Dirty in inodes of ")?),
        _ => return None,
    })
}
