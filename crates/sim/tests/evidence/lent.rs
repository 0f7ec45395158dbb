// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that flushers wrote for other cgroups, computed again sample by sample: what a cgroup had written beyond all that its processes
//! dirtied and that it had unwritten.

use super::raw::Raw;
use floodline_analysis::report::{Evidence, Finding};
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::sample::Sample;
use std::collections::BTreeMap;

const MIB: f64 = 1_048_576.0;
const SECOND: u64 = 1_000_000_000;

/// Bytes in one time, with its start and its end.
struct Lent {
    from: u64,
    to: u64,
    bytes: f64,
}

impl Raw {
    /// Processes of a cgroup in a sample, by what each has dirtied since its start.
    fn dirtied_by(&self, sample: &Sample, wanted: EntityId) -> BTreeMap<EntityId, f64> {
        let is_its = |id: &EntityId| matches!(self.entities.get(id), Some(Entity::Process { cgroup: Some(of), kthread: false, .. }) if *of == wanted);
        let rows = sample.processes.rows().iter().filter(|(id, row)| is_its(id) && row.write_bytes.is_some());
        rows.map(|(id, row)| (*id, row.write_bytes.unwrap_or_default().0 as f64)).collect()
    }

    /// What the flusher of a cgroup wrote on a device for others, in times of 4 MiB and more.
    fn lent(&self, cgroup: EntityId, wanted: DevId) -> Vec<Lent> {
        let is_its =
            |entity: &Entity| matches!(entity, Entity::CgroupIo { cgroup: of, dev } if *of == cgroup && *dev == wanted);
        let Some((io, _)) = self.entities.iter().find(|(_, entity)| is_its(entity)) else { return Vec::new() };
        let read = |sample: &Sample| {
            let row = sample.cgroups.get(cgroup)?;
            let unwritten = row.file_dirty?.0 + row.file_writeback.map_or(0, |bytes| bytes.0);
            Some((sample.cgroup_io.get(*io)?.wbytes?.0 as f64, unwritten as f64))
        };
        let (mut before, mut own): (Option<f64>, f64) = (None, 0.0);
        let mut all: Vec<Lent> = Vec::new();
        let (mut pending, mut known) = (0.0, BTreeMap::new());
        let mut processes = 0;
        for sample in &self.samples {
            let at = sample.time.monotonic.0;
            let now = self.dirtied_by(sample, cgroup);
            let dirtied: f64 = now.iter().map(|(id, bytes)| bytes - known.get(id).copied().unwrap_or(0.0)).sum();
            let has_same = !now.is_empty() && now.len() == processes;
            processes = now.len();
            known.extend(now);
            pending += dirtied;
            let Some((written, unwritten)) = read(sample) else { continue };
            if let Some(before) = before {
                let more = written - before;
                own += pending + if has_same { 0.0 } else { more };
                if more > own && more - own >= (more / 2.0).floor() {
                    match all.last_mut().filter(|last| at - last.to <= SECOND * 26 / 10) {
                        Some(last) => (last.to, last.bytes) = (at, last.bytes + more - own),
                        None => all.push(Lent { from: at, to: at, bytes: more - own }),
                    }
                }
                own = (own - more).clamp(unwritten, unwritten + pending + MIB);
            } else {
                own = unwritten;
            }
            (before, pending) = (Some(written), 0.0);
        }
        all.retain(|one| one.bytes >= 4.0 * MIB);
        all
    }
}

/// A number of evidence, from the samples; `None` where it is not one of these.
pub(crate) fn again(raw: &Raw, finding: &Finding, evidence: &Evidence) -> Option<f64> {
    if finding.rule != "foreign-inode-thrash" {
        return None;
    }
    let disk = finding.devices.first()?;
    let (.., dev) = raw.disks().find(|(_, name, _)| name.to_string() == *disk)?;
    if let Some(path) = evidence.name.strip_prefix("Written beyond its own data, ") {
        return Some(raw.lent(raw.cgroup_called(path)?, dev).iter().map(|one| one.bytes).sum());
    }
    if evidence.name != "Times that another flusher took over" {
        return None;
    }
    let path = |id: EntityId| match raw.entities.get(&id) {
        Some(Entity::Cgroup { path, .. }) => Some(path.to_string()),
        _ => None,
    };
    let all: Vec<(EntityId, String)> = raw.entities.keys().filter_map(|id| Some((*id, path(*id)?))).collect();
    let has_none_below =
        |path: &str| path != "/" && !all.iter().any(|(_, other)| other.starts_with(&format!("{path}/")));
    let leaves = all.iter().filter(|(_, path)| has_none_below(path));
    let mut order: Vec<(u64, EntityId)> =
        leaves.flat_map(|(id, _)| raw.lent(*id, dev).into_iter().map(|one| (one.from, *id))).collect();
    order.sort();
    Some(order.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as f64)
}
