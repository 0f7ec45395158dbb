// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readings that are not in every sample: limits of cgroups and zones. A stretch that begins in the middle of a recording
//! would lack them; its first sample takes them along.

use floodline_record::id::EntityId;
use floodline_record::sample::{CgroupLimitsRow, Sample, Table, ZoneRow};
use std::collections::BTreeMap;

/// The last readings of what is read now and then.
#[derive(Debug, Default)]
pub(crate) struct Carry {
    limits: BTreeMap<EntityId, CgroupLimitsRow>,
    zones: Option<Table<ZoneRow>>,
}

impl Carry {
    /// Takes notice of a sample. Cgroups that are gone are forgotten.
    pub(crate) fn note(&mut self, sample: &Sample) {
        for (id, row) in sample.cgroup_limits.rows() {
            self.limits.insert(*id, row.clone());
        }
        if self.limits.len() > sample.cgroups.rows().len().saturating_mul(2) {
            self.limits.retain(|id, _| sample.cgroups.get(*id).is_some());
        }
        if sample.zones.was_read() {
            self.zones = Some(sample.zones.clone());
        }
    }

    /// The sample with all that is known in it.
    pub(crate) fn complete(&self, sample: &Sample) -> Sample {
        let mut whole = sample.clone();
        if !whole.zones.was_read() {
            whole.zones = self.zones.clone().unwrap_or_default();
        }
        let is_live = |id: EntityId| sample.cgroups.get(id).is_some() || !sample.cgroups.was_read();
        let known = self.limits.iter().filter(|(id, _)| is_live(**id)).map(|(id, row)| (*id, row.clone()));
        let mut rows: BTreeMap<EntityId, CgroupLimitsRow> = known.collect();
        rows.extend(sample.cgroup_limits.rows().iter().cloned());
        if !rows.is_empty() {
            whole.cgroup_limits = Table::read(rows.into_iter().collect());
        }
        whole
    }
}
