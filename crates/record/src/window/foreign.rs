// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that the flusher of a cgroup wrote on a device and that cannot be its own: more than the cgroup had unwritten and than its
//! processes dirtied. `io.stat` counts written bytes for the cgroup that owns the inode, `memory.stat` the unwritten bytes for the cgroup
//! of the pages, `/proc/PID/io` the dirtied bytes for the process. Where an inode belongs to is not in any of these files.

use crate::entities::Entities;
use crate::id::{Entity, EntityId};
use crate::sample::{ProcessRow, Sample};
use crate::units::Nanos;
use crate::window::Spans;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Unwritten bytes by which `memory.stat` may be wrong: the kernel adds up the counters of its CPUs when much changed.
const SLACK: u64 = 1 << 20;
/// Time without such bytes after which the next ones are another episode.
const APART: Nanos = Nanos(2_600_000_000);
/// Fewest bytes of an episode that no error explains.
const LEAST: u64 = 4 << 20;
/// Episodes that are kept of each cgroup on each device.
const KEPT: usize = 64;

/// A time in which the flusher of a cgroup wrote bytes of other cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// First sample after such bytes.
    pub from: Nanos,
    /// Last one.
    pub to: Nanos,
    /// The bytes, at least.
    pub bytes: u64,
}

/// What the flusher of one cgroup wrote on one device for others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForDevice {
    episodes: Vec<Episode>,
    written: u64,
    /// Most bytes of its own that may be unwritten.
    own: u64,
}

impl ForDevice {
    /// Times in which it wrote bytes of other cgroups, in order, without those that an error may explain.
    pub fn episodes(&self) -> impl Iterator<Item = &Episode> {
        self.episodes.iter().filter(|one| one.bytes >= LEAST)
    }

    fn add(&mut self, next: Episode) {
        let has_room = self.episodes.len() < KEPT;
        match self.episodes.last_mut().filter(|last| next.from.0.saturating_sub(last.to.0) <= APART.0) {
            Some(last) => (last.to, last.bytes) = (next.to, last.bytes.saturating_add(next.bytes)),
            None if has_room => self.episodes.push(next),
            None => {}
        }
    }
}

/// A cgroup at one sample.
#[derive(Clone, Debug, Default)]
struct Now {
    /// Bytes that its processes dirtied since its counters were last read.
    dirtied: u64,
    processes: BTreeSet<EntityId>,
}

/// What flushers wrote for others, by the cgroup on a device, and the readings that this is counted from.
#[derive(Clone, Default)]
pub struct Foreign {
    /// By cgroup and device.
    pub by_flusher: BTreeMap<EntityId, ForDevice>,
    /// Processes of each cgroup in the sample before.
    processes: BTreeMap<EntityId, BTreeSet<EntityId>>,
    /// Bytes that they dirtied since the counters of their cgroup were last read.
    pending: BTreeMap<EntityId, u64>,
}

impl Foreign {
    /// Takes a sample. `known` has the rows of processes up to the sample before.
    pub(super) fn take(&mut self, sample: &Sample, entities: &Entities, known: &Spans<ProcessRow>) {
        // Counters of cgroups may be read less often than those of processes.
        if sample.cgroup_io.rows().is_empty() && self.by_flusher.is_empty() {
            return;
        }
        let at = sample.time.monotonic;
        let now = self.processes_of(sample, entities, known);
        for (cgroup, one) in now.iter().filter(|(_, one)| one.dirtied > 0) {
            let pending = self.pending.entry(*cgroup).or_default();
            *pending = pending.saturating_add(one.dirtied);
        }
        for (id, row) in sample.cgroup_io.rows() {
            let (Some(Entity::CgroupIo { cgroup, .. }), Some(written)) = (entities.get(id), row.wbytes) else {
                continue;
            };
            let unwritten = sample
                .cgroups
                .get(*cgroup)
                .and_then(|row| Some(row.file_dirty?.0.saturating_add(row.file_writeback.map_or(0, |bytes| bytes.0))));
            let Some(unwritten) = unwritten else { continue };
            let dirtied = self.pending.get(cgroup).copied().unwrap_or(0);
            // What a process dirtied that ended, or that no sample saw, is not known.
            let is_known = now.get(cgroup).is_some_and(|one| self.processes.get(cgroup) == Some(&one.processes));
            let Some(its) = self.by_flusher.get_mut(id) else {
                self.by_flusher.insert(*id, ForDevice { written: written.0, own: unwritten, ..ForDevice::default() });
                continue;
            };
            let more = written.0.saturating_sub(its.written);
            its.written = written.0;
            its.own = its.own.saturating_add(dirtied).saturating_add(if is_known { 0 } else { more });
            // The files of a sample are read one after the other. A small part of what was written may have been dirtied meanwhile.
            let foreign = more.saturating_sub(its.own);
            if foreign > 0 && foreign >= more / 2 {
                its.add(Episode { from: at, to: at, bytes: foreign });
            }
            let most = unwritten.saturating_add(dirtied).saturating_add(SLACK);
            its.own = its.own.saturating_sub(more).clamp(unwritten, most);
        }
        // A new cgroup has its `memory.stat` in each sample, and its `io.stat` with those of the others only.
        let were_read = !sample.cgroup_io.rows().is_empty();
        for (id, _) in sample.cgroups.rows().iter().filter(|(_, row)| were_read && row.file_dirty.is_some()) {
            self.pending.remove(id);
        }
        self.processes = now.into_iter().map(|(cgroup, one)| (cgroup, one.processes)).collect();
    }

    /// What the processes of each cgroup dirtied since the sample before, and these processes.
    fn processes_of(&self, sample: &Sample, entities: &Entities, known: &Spans<ProcessRow>) -> BTreeMap<EntityId, Now> {
        let mut now: BTreeMap<EntityId, Now> = BTreeMap::new();
        for (id, row) in sample.processes.rows() {
            let (Some(bytes), Some(Entity::Process { cgroup: Some(cgroup), kthread: false, .. })) =
                (row.write_bytes, entities.get(id))
            else {
                continue;
            };
            let one = now.entry(*cgroup).or_default();
            one.processes.insert(*id);
            let before = known.get(id).and_then(|span| span.last.write_bytes).map_or(0, |bytes| bytes.0);
            one.dirtied = one.dirtied.saturating_add(bytes.0.saturating_sub(before));
        }
        now
    }

    /// Appends what a window has that follows.
    pub(super) fn append(&mut self, next: &Foreign) {
        for (id, later) in &next.by_flusher {
            let its = self.by_flusher.entry(*id).or_default();
            later.episodes.iter().for_each(|one| its.add(*one));
        }
    }
}

/// What was found, without the readings that it is counted from.
impl fmt::Debug for Foreign {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.by_flusher.iter().filter(|(_, its)| !its.episodes.is_empty());
        out.debug_map().entries(found.map(|(id, its)| (id, &its.episodes))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{DevId, Hierarchy};
    use crate::sample::{CgroupIoRow, CgroupRow, SampleTime, Table};
    use crate::units::Bytes;

    const CGROUPS: [EntityId; 2] = [EntityId(1), EntityId(2)];

    fn entities() -> Entities {
        let mut entities = Entities::default();
        for (at, cgroup) in (0..).zip(CGROUPS) {
            let path = if at == 0 { "/blue" } else { "/green" };
            entities.insert(cgroup, Entity::Cgroup { path: path.into(), hierarchy: Hierarchy::V2, ino: Some(7 + at) });
            let dev = DevId { major: 8, minor: 0 };
            entities.insert(EntityId(11 + at as u32), Entity::CgroupIo { cgroup, dev });
            let (pid, start_ticks, comm) = (100 + at as u32, 1, "app".into());
            let process = Entity::Process { pid, start_ticks, comm, cgroup: Some(cgroup), kthread: false };
            entities.insert(EntityId(21 + at as u32), process);
            let (pid, start_ticks, comm) = (200 + at as u32, 300, "app".into());
            let later = Entity::Process { pid, start_ticks, comm, cgroup: Some(cgroup), kthread: false };
            entities.insert(EntityId(31 + at as u32), later);
        }
        entities
    }

    /// Readings a second apart: MiB dirtied by both, unwritten of both, written by the flushers of both, all counted from the start.
    fn check(readings: &[([u64; 2], [u64; 2], [u64; 2])], expect: [&[(u64, u64)]; 2]) {
        check_every(1, readings, expect);
    }

    /// The same with the counters of cgroups in one sample of `every`.
    fn check_every(every: u64, readings: &[([u64; 2], [u64; 2], [u64; 2])], expect: [&[(u64, u64)]; 2]) {
        check_processes(every, |_| 21, readings, expect);
    }

    /// The same. `first` returns the id of the process of blue at a second; that of green follows it.
    fn check_processes(
        every: u64,
        first: impl Fn(u64) -> u32,
        readings: &[([u64; 2], [u64; 2], [u64; 2])],
        expect: [&[(u64, u64)]; 2],
    ) {
        let (entities, mib) = (entities(), |number: u64| Some(Bytes(number << 20)));
        let (mut foreign, mut known) = (Foreign::default(), Spans::<ProcessRow>::default());
        for (at, (dirtied, unwritten, written)) in (0..).zip(readings) {
            let time = SampleTime { monotonic: Nanos(at * 1_000_000_000), ..SampleTime::default() };
            let rows = |first: u32| (0..2).map(move |nth| (nth, EntityId(first + nth as u32)));
            let processes =
                rows(first(at)).map(|(n, id)| (id, ProcessRow { write_bytes: mib(dirtied[n]), ..Default::default() }));
            let cgroups =
                rows(1).map(|(n, id)| (id, CgroupRow { file_dirty: mib(unwritten[n]), ..Default::default() }));
            let io = rows(11).map(|(n, id)| (id, CgroupIoRow { wbytes: mib(written[n]), ..Default::default() }));
            let mut sample = Sample { time, processes: Table::read(processes.collect()), ..Sample::default() };
            if at % every == 0 {
                (sample.cgroups, sample.cgroup_io) = (Table::read(cgroups.collect()), Table::read(io.collect()));
            }
            foreign.take(&sample, &entities, &known);
            super::super::fold(&mut known, time.monotonic, &sample.processes, None);
        }
        for (nth, expect) in expect.into_iter().enumerate() {
            let its = &foreign.by_flusher[&EntityId(11 + nth as u32)];
            let found: Vec<(u64, u64)> =
                its.episodes().map(|one| (one.from.0 / 1_000_000_000, one.bytes >> 20)).collect();
            assert_eq!(found, expect, "cgroup {nth}");
        }
    }

    #[test]
    fn a_flusher_that_writes_more_than_its_cgroup_dirtied_writes_for_others() {
        // Green dirties 20 MiB a second, and the flusher of blue writes them.
        let of_blue: Vec<_> = (0..5).map(|t| ([0, 20 * t], [0, 20], [20 * t, 0])).collect();
        check(&of_blue, [&[(1, 80)], &[]]);
        // Each writes its own, a second late.
        let own: Vec<_> = (0..5).map(|t| ([10 * t, 20 * t], [10, 20], [10 * t, 20 * t])).collect();
        check(&own, [&[], &[]]);
        // All of it was unwritten at first.
        check(&[([0; 2], [90, 0], [0; 2]), ([0; 2], [0, 0], [90, 0])], [&[], &[]]);
        // What a process writes past the cache is never unwritten.
        let direct: Vec<_> = (0..5).map(|t| ([50 * t, 0], [0, 0], [50 * t, 0])).collect();
        check(&direct, [&[], &[]]);
        // Counters of cgroups that are read in each fourth sample show the same.
        let seldom: Vec<_> = (0..9).map(|t| ([10 * t, 20 * t], [10, 20], [10 * t, 20 * t])).collect();
        check_every(4, &seldom, [&[], &[]]);
        let of_blue: Vec<_> = (0..9).map(|t| ([0, 20 * t], [0, 20], [20 * t, 0])).collect();
        check_every(4, &of_blue, [&[(4, 80), (8, 80)], &[]]);
        // After a pause, it is another episode.
        let twice = [0, 8, 8, 8, 8, 16].map(|written| ([0, written], [0, 0], [written, 0]));
        check(&twice, [&[(1, 8), (5, 8)], &[]]);
    }

    #[test]
    fn what_a_process_dirtied_that_another_one_replaced_is_not_foreign() {
        let of_blue: Vec<_> = (0..5).map(|t| ([0, 20 * t], [0, 20], [20 * t, 0])).collect();
        check_processes(1, |at| if at < 2 { 21 } else { 31 }, &of_blue, [&[(1, 60)], &[]]);
    }
}
