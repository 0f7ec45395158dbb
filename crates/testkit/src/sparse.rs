// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings with `memory.stat` and `io.stat` in some samples only, as with `--stat-every`: for a read of these files the
//! kernel adds up counters. Made from recordings that have them in each sample.

use floodline_record::id::EntityId;
use floodline_record::metric::Row;
use floodline_record::record::Record;
use floodline_record::sample::{CgroupRow, Table};
use std::collections::BTreeSet;

/// Takes these readings out of samples.
#[derive(Clone, Debug)]
pub struct Sparse {
    each: usize,
    number: usize,
    known: BTreeSet<EntityId>,
}

impl Sparse {
    /// Leaves the readings in one sample of `each`, the first among them.
    pub fn new(each: usize) -> Sparse {
        Sparse { each, number: 0, known: BTreeSet::new() }
    }

    /// Takes the readings out of the next record if it is a sample without them. A cgroup has `memory.stat` also in the first
    /// sample that has the cgroup.
    pub fn thin(&mut self, record: &mut Record) {
        let Record::Sample(sample) = record else { return };
        let is_kept = self.number.is_multiple_of(self.each);
        self.number += 1;
        if !sample.cgroups.was_read() {
            return;
        }
        let mut rows = sample.cgroups.rows().to_vec();
        for (id, row) in &mut rows {
            if self.known.insert(*id) || is_kept {
                continue;
            }
            let of_stat = |index: usize| CgroupRow::METRICS[index].source.starts_with("memory.stat ");
            (0..CgroupRow::METRICS.len()).filter(|index| of_stat(*index)).for_each(|index| row.set(index, None));
        }
        if !is_kept {
            sample.cgroups = Table::read(rows);
            sample.cgroup_io = Table::default();
        }
    }
}

/// Returns the records with these readings in one sample of `each`.
pub fn sparse(mut records: Vec<Record>, each: usize) -> Vec<Record> {
    let mut sparse = Sparse::new(each);
    records.iter_mut().for_each(|record| sparse.thin(record));
    records
}
