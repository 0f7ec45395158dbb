// SPDX-License-Identifier: MIT OR Apache-2.0
//! Last readings of cgroups, for views of a single sample: a sample does not have each column of each cgroup. Not for
//! rates: what is carried was read earlier.

use crate::id::EntityId;
use crate::metric::{MetricKind, Row};
use crate::sample::{CgroupRow, Sample, Table};
use crate::units::Nanos;
use std::collections::BTreeMap;

/// Longest time that a level is shown without a new reading: twice `FLUSH_TIME` and a little. The next sample that reads it can be missed.
pub const HELD: Nanos = Nanos(4_500_000_000);

/// The last reading of each column of each cgroup.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    rows: BTreeMap<EntityId, CgroupRow>,
}

impl Levels {
    /// Takes the readings of a sample. Cgroups that are gone are forgotten.
    pub fn note(&mut self, sample: &Sample) {
        for (id, row) in sample.cgroups.rows() {
            fill(self.rows.entry(*id).or_default(), row, |_, _| true);
        }
        if sample.cgroups.was_read() && self.rows.len() > sample.cgroups.rows().len().saturating_mul(2) {
            self.rows.retain(|id, _| sample.cgroups.get(*id).is_some());
        }
    }

    /// Returns the table with the last level where the sample has none. Counters stay absent: one that was read earlier
    /// would look as if it stood still.
    pub fn with_levels(&self, table: &Table<CgroupRow>) -> Table<CgroupRow> {
        self.with(table, |kind| kind == MetricKind::Gauge)
    }

    /// Returns the table with the last reading where the sample has none, counters included.
    pub fn with_readings(&self, table: &Table<CgroupRow>) -> Table<CgroupRow> {
        self.with(table, |_| true)
    }

    fn with(&self, table: &Table<CgroupRow>, is_wanted: impl Fn(MetricKind) -> bool) -> Table<CgroupRow> {
        if !table.was_read() {
            return table.clone();
        }
        let complete = |(id, row): &(EntityId, CgroupRow)| {
            let mut row = row.clone();
            if let Some(known) = self.rows.get(id) {
                fill(&mut row, known, |kind, has| !has && is_wanted(kind));
            }
            (*id, row)
        };
        Table::read(table.rows().iter().map(complete).collect())
    }
}

/// Copies the readings of a row into another one. `may` gets the kind of a column and whether it has a reading already.
fn fill(into: &mut CgroupRow, from: &CgroupRow, may: impl Fn(MetricKind, bool) -> bool) {
    for (index, metric) in CgroupRow::METRICS.iter().enumerate() {
        let reading = from.get(index);
        if reading.is_some() && may(metric.kind, into.get(index).is_some()) {
            into.set(index, reading);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Count};

    fn sample(rows: &[(u32, Option<u64>, Option<u64>)]) -> Sample {
        let row = |dirty: Option<u64>, faults: Option<u64>| CgroupRow {
            file_dirty: dirty.map(Bytes),
            pgfault: faults.map(Count),
            ..CgroupRow::default()
        };
        let rows = rows.iter().map(|(id, dirty, faults)| (EntityId(*id), row(*dirty, *faults))).collect();
        Sample { cgroups: Table::read(rows), ..Sample::default() }
    }

    #[test]
    fn a_level_stays_and_a_counter_does_not() {
        let mut levels = Levels::default();
        levels.note(&sample(&[(1, Some(7), Some(3)), (2, Some(8), None)]));
        let next = sample(&[(1, None, None), (2, Some(9), Some(4)), (3, None, None)]);
        levels.note(&next);
        let read = |table: Table<CgroupRow>| -> Vec<(Option<u64>, Option<u64>)> {
            table.rows().iter().map(|(_, row)| (row.get(6), row.get(11))).collect()
        };
        assert_eq!((CgroupRow::METRICS[6].name, CgroupRow::METRICS[11].name), ("file_dirty", "pgfault"));
        assert_eq!(read(levels.with_levels(&next.cgroups)), [(Some(7), None), (Some(9), Some(4)), (None, None)]);
        assert_eq!(read(levels.with_readings(&next.cgroups)), [(Some(7), Some(3)), (Some(9), Some(4)), (None, None)]);
        assert!(!levels.with_levels(&Table::default()).was_read());
    }

    #[test]
    fn a_cgroup_that_is_gone_is_forgotten() {
        let mut levels = Levels::default();
        levels.note(&sample(&[(1, Some(7), None), (2, Some(7), None), (3, Some(7), None)]));
        levels.note(&sample(&[(3, None, None)]));
        assert_eq!(levels.rows.keys().copied().collect::<Vec<_>>(), [EntityId(3)]);
        levels.note(&Sample::default());
        assert_eq!(levels.rows.len(), 1, "a sample without the table shows nothing");
    }
}
