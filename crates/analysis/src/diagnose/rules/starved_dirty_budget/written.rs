// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of the dirtied bytes that was written, for each cgroup. Folios blow up the count of dirtied bytes on some filesystems. Judges
//! nothing.

use crate::diagnose::derived::Derived;
use crate::diagnose::writer::{Writer, Writers};
use floodline_record::id::{DevId, Entity, EntityId};
use std::collections::{BTreeMap, BTreeSet};

/// Part of what was dirtied that the disks wrote, from which folios do not blow up the count.
pub(super) const WRITTEN: f64 = 0.5;

/// What the disks wrote of the bytes that were dirtied. A filesystem that keeps track of the dirty blocks of a folio writes only these,
/// while the kernel counts the whole folio as dirtied and as written.
pub(super) struct Written {
    /// Bytes that each cgroup sent to the devices at which dirty pages leave memory, loop devices included.
    by_cgroup: BTreeMap<EntityId, u64>,
    /// Part of the machine's dirtied bytes that the disks wrote.
    pub(super) part: f64,
}

impl Written {
    pub(super) fn of(derived: &Derived<'_>, writers: &Writers<'_>) -> Written {
        let written: Option<u64> =
            derived.drains().iter().map(|drain| drain.span.growth.written.map(|bytes| bytes.0)).sum();
        let left = derived.dirty.unwritten_peak.map_or(0, |bytes| bytes.0);
        let dirtied = writers.attributed_bytes().max(writers.machine_dirtied_bytes.unwrap_or(0));
        let part = written.filter(|written| *written > 0).map_or(1.0, |written| part(written, left, dirtied));
        let drains: BTreeSet<DevId> = derived.drains().iter().map(|drain| drain.dev).collect();
        let mut by_cgroup: BTreeMap<EntityId, u64> = BTreeMap::new();
        for (id, span) in &derived.window.cgroup_io {
            if let Some(Entity::CgroupIo { cgroup, dev }) = derived.window.entities.get(id)
                && drains.contains(dev)
                && let Some(written) = span.growth.wbytes
            {
                let sum = by_cgroup.entry(*cgroup).or_default();
                *sum = sum.saturating_add(written.0);
            }
        }
        Written { by_cgroup, part }
    }

    /// Part of what the processes of a cgroup dirtied that was written; of all that was dirtied where the cgroup's own writes were not
    /// counted, or where most of all was written.
    pub(super) fn part_of(&self, cgroup: EntityId, peak: u64, processes: &[&Writer<'_>]) -> f64 {
        let written = self.by_cgroup.get(&cgroup).copied().filter(|written| *written > 0);
        let dirtied = processes.iter().filter_map(|one| one.dirtied_bytes).fold(0, u64::saturating_add);
        // Pages of a cgroup may be written for another one, or for the machine.
        let written = written.filter(|_| self.part < 1.0);
        written.map_or(self.part, |written| part(written, peak, dirtied))
    }
}

/// Part of some dirtied bytes that was written, or is left to be written. Most of them count as all: some are cut off or written again.
fn part(written: u64, left: u64, dirtied: u64) -> f64 {
    let part = written.saturating_add(left) as f64 / dirtied.max(1) as f64;
    if part >= WRITTEN { 1.0 } else { part }
}

#[cfg(test)]
mod tests {
    use super::super::RULE;
    use crate::diagnose::{check_rule, first_finding};
    use floodline_record::id::Hierarchy;
    use floodline_record::units::{Bytes, Pages};
    use floodline_testkit::{Fixture, grows, incidents, mib, mib_pages, secs};

    /// Eight stores of small values whose calls dirty whole folios, 12 MB/s each, of which their filesystem writes this much.
    fn stores(written: f64) -> Fixture {
        let host = incidents::starved_budget().disk("sdb", move |t, row| row.written = grows(t, 0, 8.0 * written));
        (0..8).fold(host, |host, at| {
            let path = format!("/bench.slice/writer-{at}.scope");
            host.cgroup_io(&path, "sdb", move |t, row| row.wbytes = grows(t, 0, written))
                .cgroup(&path, |t, row| row.io_some = Some(secs(1.0 + 0.01 * t)))
                .process("mapwriter", 2000 + at, &path, |t, row| {
                    (row.wchar, row.syscw) = (grows(t, 0, 0.3e6), grows(t, 0, 600.0));
                    (row.write_bytes, row.minflt) = (grows(t, 0, 12e6), grows(t, 0, 1.0));
                })
        })
    }

    #[test]
    fn folios_that_are_dirtied_whole_and_written_in_part_count_as_far_as_they_are_written() {
        let finding = first_finding(&RULE, &stores(2e6));
        assert!(finding.summary.contains("written again and again, at 1"), "{}", finding.summary);
        assert!(finding.cause.contains("The kernel counts whole folios as dirtied, "), "{}", finding.cause);
        let little = first_finding(&RULE, &stores(0.1e6)).summary;
        assert!(little.contains("will be slowed as soon as they write more"), "{little}");
    }

    /// A host without budgets of cgroups whose programs change little in each page that they write again.
    fn host(handed: f64, scanned: f64) -> Fixture {
        Fixture::healthy()
            .hierarchy(Hierarchy::V1Memory)
            .thresholds((0, mib(40.0), 0, mib(10.0)), mib(40.0) / 4096, mib(10.0) / 4096)
            .host(move |t, row| {
                (row.nr_dirty, row.nr_dirtied) = (Some(mib_pages(9.0)), Some(mib_pages(30.0 * t)));
                (row.nr_inactive_file, row.nr_active_file) = (Some(Pages(5_000)), Some(Pages(5_000)));
                row.pgscan_kswapd = Some(Pages((scanned * t) as u64));
            })
            .disk("sda", |t, row| row.written = Some(Bytes(mib(30.0 * t))))
            .process("store", 2000, "/", move |t, row| {
                (row.write_bytes, row.wchar) = (grows(t, 0, 30.0 * 1_048_576.0), grows(t, 0, handed));
                (row.syscw, row.minflt) = (grows(t, 0, 8_000.0), grows(t, 0, 0.0));
            })
    }

    #[test]
    fn a_whole_machine_whose_calls_change_the_same_pages_has_a_storm() {
        let finding = first_finding(&RULE, &host(4e6, 0.0));
        assert!(
            finding.summary.contains("for the whole machine, less than store[2000] rewrites"),
            "{}",
            finding.summary
        );
        assert!(finding.cause.contains("a call that writes part of a cached page"), "{}", finding.cause);
        // Whole pages may be those of files that come and go, and so may pages that memory was too short to keep.
        check_rule(&RULE, &host(30e6, 0.0), "clear:");
        check_rule(&RULE, &host(4e6, 1_000.0), "clear:");
    }
}
