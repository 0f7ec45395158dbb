// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorded run as its samples have it, with sums and differences of single columns. Uses no window and nothing of what rules
//! derive from one.

use super::PAGE;
use super::heirs::Heirs;
use floodline_analysis::report::{Evidence, Finding};
use floodline_record::facts::HostFacts;
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::metric::Row;
use floodline_record::name::Name;
use floodline_record::record::What;
use floodline_record::sample::{DiskRow, HostRow, ProcessRow, Sample, Table};
use floodline_record::units::Nanos;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// A recorded run.
#[derive(Default)]
pub(crate) struct Raw {
    pub(crate) entities: BTreeMap<EntityId, Entity>,
    pub(crate) samples: Vec<Sample>,
    /// What a tracer added.
    pub(crate) traced: Vec<(Nanos, What)>,
    pub(crate) facts: Option<HostFacts>,
    /// The disk that a number is about.
    pub(crate) disk: Option<EntityId>,
    /// Which process has the counters of which ended children.
    pub(crate) heirs: OnceCell<Heirs>,
}

/// Value of a row in a column; absent is zero.
pub(crate) type Column<R> = fn(&R) -> u64;

pub(crate) fn seconds(from: &Sample, to: &Sample) -> f64 {
    (to.time.monotonic.0 - from.time.monotonic.0) as f64 / 1e9
}

/// The share of one number in another; zero if the other is zero.
pub(crate) fn over(part: f64, all: f64) -> f64 {
    if all > 0.0 { part / all } else { 0.0 }
}

/// Whether a device is built on others, by its name.
pub(crate) fn is_layer(name: &Name) -> bool {
    ["dm-", "md", "loop"].iter().any(|kind| name.to_string().starts_with(kind))
}

impl Raw {
    pub(crate) fn first(&self) -> &Sample {
        self.samples.first().expect("samples")
    }

    pub(crate) fn last(&self) -> &Sample {
        self.samples.last().expect("samples")
    }

    pub(crate) fn seconds(&self) -> f64 {
        seconds(self.first(), self.last())
    }

    pub(crate) fn host(&self, from: usize, to: usize, column: Column<HostRow>) -> f64 {
        column(&self.samples[to].host).saturating_sub(column(&self.samples[from].host)) as f64
    }

    pub(crate) fn host_all(&self, column: Column<HostRow>) -> f64 {
        self.host(0, self.samples.len() - 1, column)
    }

    /// Growth of a column of one entity between its first and its last row.
    pub(crate) fn grown<R: Row>(&self, table: fn(&Sample) -> &Table<R>, id: EntityId, column: Column<R>) -> f64 {
        let mut rows = self.samples.iter().filter_map(|sample| table(sample).get(id));
        let Some(first) = rows.next() else { return 0.0 };
        let last = rows.next_back().unwrap_or(first);
        column(last).saturating_sub(column(first)) as f64
    }

    /// What a process did: all of it, where it began within the window.
    pub(crate) fn process(&self, id: EntityId, column: Column<ProcessRow>) -> f64 {
        let Some(Entity::Process { start_ticks, .. }) = self.entities.get(&id) else { return 0.0 };
        let is_new = start_ticks * 10_000_000 > self.first().time.monotonic.0;
        let last = || self.samples.iter().rev().find_map(|sample| sample.processes.get(id)).map_or(0, column);
        if is_new { last() as f64 } else { self.grown(|sample| &sample.processes, id, column) }
    }

    pub(crate) fn processes(&self, wanted: impl Fn(&Entity) -> bool, column: Column<ProcessRow>) -> f64 {
        let ids = self.entities.iter().filter(|(_, entity)| matches!(entity, Entity::Process { .. }) && wanted(entity));
        ids.map(|(id, _)| self.process(*id, column)).sum()
    }

    /// Words for a cgroup in a sentence.
    fn words(&self, path: &Name) -> String {
        let identity = floodline_analysis::container::identify(path);
        let is_container = identity.kind.is_container() || identity.inside.is_some();
        if is_container { identity.label(self.facts.as_ref()) } else { path.to_string() }
    }

    /// A cgroup by the words for it in a sentence.
    pub(crate) fn cgroup_called(&self, wanted: &str) -> Option<EntityId> {
        let is_it = |entity: &Entity| matches!(entity, Entity::Cgroup { path, .. } if self.words(path) == wanted);
        self.entities.iter().find(|(_, entity)| is_it(entity)).map(|(id, _)| *id)
    }

    /// A cgroup with I/O of its own by the words for it: on version 1, one path names a cgroup in each hierarchy.
    pub(crate) fn cgroup_with_io(&self, wanted: &str) -> Option<EntityId> {
        let has_words = |id: &EntityId| matches!(self.entities.get(id), Some(Entity::Cgroup { path, .. }) if self.words(path) == wanted);
        let mut with_io = self.entities.values().filter_map(|entity| match entity {
            Entity::CgroupIo { cgroup, .. } => Some(*cgroup),
            _ => None,
        });
        with_io.find(has_words).or_else(|| self.cgroup_called(wanted))
    }

    /// Whether the cgroup with an inode number is called so. One that no sample saw is called by its number, but for the root.
    pub(crate) fn is_cgroup(&self, inode: u64, called: &str) -> bool {
        let its = self.entities.values().filter_map(|entity| match entity {
            Entity::Cgroup { path, ino: Some(ino), .. } if *ino == inode => Some(self.words(path)),
            _ => None,
        });
        let mut its = its.peekable();
        match its.peek() {
            Some(_) => its.any(|words| words == called),
            None if inode == 1 => called == "the root cgroup",
            None => called == format!("cgroup {inode}"),
        }
    }

    /// Inode number of a cgroup.
    pub(crate) fn ino(&self, id: EntityId) -> Option<u64> {
        match self.entities.get(&id) {
            Some(Entity::Cgroup { ino, .. }) => *ino,
            _ => None,
        }
    }

    /// Size of a page.
    pub(crate) fn page(&self) -> f64 {
        self.facts.as_ref().map_or(PAGE, |facts| facts.page_size as f64)
    }

    /// Bytes that a cgroup sent to disks. `io.stat` counts each layer of a stack again, so layers are left out.
    pub(crate) fn sent_to_disks(&self, wanted: EntityId) -> f64 {
        let bottoms: BTreeSet<DevId> =
            self.disks().filter(|(_, name, _)| !is_layer(name)).map(|(.., dev)| dev).collect();
        let is_its = |entity: &Entity| matches!(entity, Entity::CgroupIo { cgroup, dev } if *cgroup == wanted && bottoms.contains(dev));
        let rows = self.entities.iter().filter(|(_, entity)| is_its(entity));
        rows.map(|(id, _)| self.grown(|sample| &sample.cgroup_io, *id, |row| row.wbytes.unwrap_or_default().0)).sum()
    }

    /// Unwritten bytes that are charged to a cgroup in the last sample.
    pub(crate) fn charged(&self, id: EntityId) -> Option<f64> {
        let row = self.last().cgroups.get(id)?;
        Some((row.file_dirty.unwrap_or_default().0 + row.file_writeback.unwrap_or_default().0) as f64)
    }

    /// Unwritten bytes in the inodes of a cgroup in the last sample.
    pub(crate) fn held(&self, id: EntityId) -> f64 {
        let Some(Entity::Cgroup { ino: Some(of), .. }) = self.entities.get(&id) else { return 0.0 };
        let is_its =
            |id: &EntityId| matches!(self.entities.get(id), Some(Entity::Wb { cgroup_ino, .. }) if cgroup_ino == of);
        let rows = self.last().wbs.rows().iter().filter(|(id, _)| is_its(id));
        rows.map(|(_, row)| (row.reclaimable.unwrap_or_default().0 + row.writeback.unwrap_or_default().0) as f64).sum()
    }

    pub(crate) fn labelled(&self, label: &str) -> Option<(EntityId, &Entity)> {
        // The I/O of a process may be that of its reaped children.
        let label = label.strip_prefix("children of ").unwrap_or(label);
        let label = label.split_once(" (in ").map_or(label, |(process, _)| process);
        let found = self
            .entities
            .iter()
            .find(|(_, entity)| matches!(entity, Entity::Process { .. }) && entity.label() == label);
        found.map(|(id, entity)| (*id, entity))
    }

    pub(crate) fn disk(&self) -> EntityId {
        self.disk.unwrap_or_else(|| self.disks().next().expect("a disk").0)
    }

    /// Disks with their names and numbers, layers included.
    pub(crate) fn disks(&self) -> impl Iterator<Item = (EntityId, &Name, DevId)> {
        self.entities.iter().filter_map(|(id, entity)| match entity {
            Entity::Disk { dev, name } => Some((*id, name, *dev)),
            _ => None,
        })
    }

    /// Takes the disk that a number is about: the one in its name, or that of the finding. Returns whether it is the bottom of
    /// its stack: a layer counts the same bytes as its disks, at other moments.
    pub(crate) fn turn_to(&mut self, finding: &Finding, evidence: &Evidence) -> bool {
        let is_in = |row: &Evidence, name: &Name| row.name.split([' ', ',']).any(|word| *name == Name::new(word));
        let named_in = |row: &Evidence| self.disks().find(|(_, name, _)| is_in(row, name)).map(|(id, ..)| id);
        // Of the disks of an array, the finding is about the one that a row of it names.
        let is_of_array = finding.devices.len() > 1;
        let of_array = || finding.evidence.iter().filter(|_| is_of_array).find_map(named_in);
        let named = named_in(evidence).or_else(of_array);
        let of_finding = |name: &Name| finding.devices.first().is_some_and(|disk| *name == Name::new(disk));
        self.disk = named.or_else(|| self.disks().find(|(_, name, _)| of_finding(name)).map(|(id, ..)| id));
        let at = self.disk();
        !self.disks().any(|(id, name, _)| id == at && is_layer(name))
    }

    /// Whether a device is built on others.
    pub(crate) fn has_layers(&self) -> bool {
        self.disks().any(|(_, name, _)| is_layer(name))
    }

    /// Bytes that the disks below all layers wrote.
    pub(crate) fn written_by_disks(&self) -> f64 {
        let bottoms = self.disks().filter(|(_, name, _)| !is_layer(name));
        bottoms.map(|(id, ..)| self.grown(|sample| &sample.disks, id, |row| row.written.unwrap_or_default().0)).sum()
    }

    /// The backing device of a disk.
    pub(crate) fn bdi(&self, dev: DevId) -> Option<EntityId> {
        let dev = Name::new(dev.to_string());
        let is_it = |entity: &Entity| matches!(entity, Entity::Bdi { name } if *name == dev);
        self.entities.iter().find(|(_, entity)| is_it(entity)).map(|(id, _)| *id)
    }

    /// The backing device of the only btrfs, if it lies on this device.
    fn bdi_of_btrfs(&self, dev: DevId) -> Option<EntityId> {
        let mounts = || self.facts.iter().flat_map(|facts| &facts.mounts).filter(|mount| mount.fs_type == "btrfs");
        let is_it = |entity: &Entity| matches!(entity, Entity::Bdi { name } if name.as_bytes().starts_with(b"btrfs-"));
        let mut of_btrfs = self.entities.iter().filter(|(_, entity)| is_it(entity)).map(|(id, _)| *id);
        let only = of_btrfs.next().filter(|_| of_btrfs.next().is_none());
        only.filter(|_| mounts().all(|mount| mount.dev == dev))
    }

    /// Unwritten bytes of the disk's own backing device in a sample, or of that of a btrfs on it.
    pub(crate) fn of_device(&self, at: usize) -> f64 {
        let dev = self.disks().find(|(id, ..)| *id == self.disk()).map(|(.., dev)| dev);
        let id = dev.and_then(|dev| self.bdi_of_btrfs(dev).or_else(|| self.bdi(dev)));
        let row = id.and_then(|id| self.samples[at].bdis.get(id));
        row.map_or(0.0, |row| (row.reclaimable.unwrap_or_default().0 + row.writeback.unwrap_or_default().0) as f64)
    }

    /// Bytes that other disks wrote.
    pub(crate) fn written_by_others(&self, from: usize, to: usize) -> f64 {
        let row = |at: usize, id| self.samples[at].disks.get(id).and_then(|row| row.written).unwrap_or_default().0;
        let others = self.disks().filter(|(id, name, _)| *id != self.disk() && !is_layer(name));
        others.map(|(id, ..)| row(to, id).saturating_sub(row(from, id)) as f64).sum()
    }

    pub(crate) fn between(&self, from: usize, to: usize, column: Column<DiskRow>) -> f64 {
        let row = |at: usize| self.samples[at].disks.get(self.disk()).map_or(0, column);
        row(to).saturating_sub(row(from)) as f64
    }

    /// The intervals between neighbouring samples, by the number of the first.
    pub(crate) fn intervals(&self) -> impl Iterator<Item = usize> {
        0..self.samples.len() - 1
    }

    pub(crate) fn length(&self, at: usize) -> f64 {
        seconds(&self.samples[at], &self.samples[at + 1])
    }

    pub(crate) fn busy(&self, at: usize) -> f64 {
        self.between(at, at + 1, |row| row.io_time.unwrap_or_default().0) / 1e9 / self.length(at)
    }

    pub(crate) fn queue(&self, at: usize) -> f64 {
        self.between(at, at + 1, |row| row.weighted_io_time.unwrap_or_default().0) / 1e9 / self.length(at)
    }

    pub(crate) fn written(&self, from: usize, to: usize) -> f64 {
        self.between(from, to, |row| row.written.unwrap_or_default().0)
    }

    pub(crate) fn writes(&self, from: usize, to: usize) -> f64 {
        self.between(from, to, |row| row.writes.unwrap_or_default().0)
    }

    pub(crate) fn wait(&self, at: usize) -> f64 {
        over(self.between(at, at + 1, |row| row.write_time.unwrap_or_default().0) / 1e9, self.writes(at, at + 1))
    }

    pub(crate) fn pressed(&self, from: usize, to: usize) -> f64 {
        self.host(from, to, |row| row.psi_io_some.unwrap_or_default().0) / 1e9
    }

    pub(crate) fn unwritten(&self, at: usize) -> f64 {
        let row = &self.samples[at].host;
        (row.nr_dirty.unwrap_or_default().0 + row.nr_writeback.unwrap_or_default().0) as f64 * PAGE
    }

    /// Whether requests were in flight at the start of an interval in which none ended: they were for all of it.
    pub(crate) fn is_held(&self, at: usize) -> bool {
        let row = |at: usize| self.samples[at].disks.get(self.disk());
        let ended = |row: &DiskRow| {
            [row.writes, row.reads, row.discards, row.flushes].into_iter().flatten().map(|count| count.0).sum::<u64>()
        };
        let (before, after) = (row(at), row(at + 1));
        before.zip(after).is_some_and(|(before, after)| {
            before.in_flight.is_some_and(|pending| pending.0 > 0) && ended(before) == ended(after)
        })
    }

    /// Whether the disk could not have taken more in an interval: it had a queue, or completed none of its requests.
    pub(crate) fn is_saturated(&self, at: usize) -> bool {
        let completed = self.between(at, at + 1, |row| row.reads.unwrap_or_default().0) + self.writes(at, at + 1);
        self.is_held(at) || self.busy(at) >= 0.9 && (completed == 0.0 || self.queue(at) >= 2.0)
    }

    /// Bytes per second that the disk writes when it is full of large writes, if it was. Where it wrote much more in another
    /// interval, something else held it up in these.
    pub(crate) fn bandwidth(&self) -> Option<f64> {
        let mean = |at: usize| over(self.written(at, at + 1), self.writes(at, at + 1));
        let read = |at: usize| self.between(at, at + 1, |row| row.read.unwrap_or_default().0);
        let is_large =
            |at: &usize| self.is_saturated(*at) && mean(*at) >= 65_536.0 && self.written(*at, at + 1) >= read(*at);
        let large: Vec<usize> = self.intervals().filter(is_large).collect();
        let total = self.sum(&large, |at| self.written(at, at + 1));
        let rate = over(total, self.sum(&large, |at| self.length(at)));
        let most = self.intervals().map(|at| self.written(at, at + 1)).fold(0.0, f64::max);
        let fastest = self.intervals().map(|at| self.written(at, at + 1) / self.length(at)).fold(0.0, f64::max);
        (rate > 0.0 && (total >= most || rate >= 0.5 * fastest)).then_some(rate)
    }

    /// The rate of a run of intervals in which the disk wrote, if one has the told rate.
    pub(crate) fn rate_of_burst(&self, told: f64) -> Option<f64> {
        let rate =
            |from: usize, to: usize| over(self.written(from, to), seconds(&self.samples[from], &self.samples[to]));
        let runs = self.intervals().flat_map(|from| (from + 1..self.samples.len()).map(move |to| (from, to)));
        let is_full = |(from, to): &(usize, usize)| (*from..*to).all(|at| self.busy(at) >= 0.5);
        runs.filter(is_full).map(|(from, to)| rate(from, to)).find(|rate| (rate - told).abs() <= 0.01 * told)
    }

    /// Seconds that a process slept uninterruptibly: its part of the samples, of the time in which they have it.
    pub(crate) fn asleep(&self, id: EntityId) -> f64 {
        let rows: Vec<(&Sample, bool)> = self
            .samples
            .iter()
            .filter_map(|sample| Some((sample, sample.processes.get(id)?.state?.0 == u64::from(b'D'))))
            .collect();
        let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else { return 0.0 };
        let slept = rows.iter().filter(|(_, asleep)| *asleep).count();
        slept as f64 / rows.len() as f64 * seconds(first, last)
    }

    /// Intervals in which the disk was busy.
    pub(crate) fn busy_ones(&self) -> Vec<usize> {
        self.intervals().filter(|at| self.busy(*at) >= 0.75).collect()
    }

    /// Bytes that writeback completed on the disk in an interval.
    pub(crate) fn cleaned(&self, at: usize) -> f64 {
        let all = self.host(at, at + 1, |row| row.nr_written.unwrap_or_default().0) * PAGE;
        (all - self.written_by_others(at, at + 1)).max(0.0)
    }

    /// Bytes that came under writeback in runs of intervals and were not counted as written in them: the disk's part of all.
    pub(crate) fn begun(&self, intervals: &[usize]) -> f64 {
        let level = |at: usize| self.samples[at].host.nr_writeback.unwrap_or_default().0;
        let runs = intervals.chunk_by(|one, next| one + 1 == *next);
        let pages: u64 = runs.map(|run| level(run[run.len() - 1] + 1).saturating_sub(level(run[0]))).sum();
        let all = self.written_by_disks();
        pages as f64 * PAGE * over(self.written(0, self.samples.len() - 1), all)
    }

    /// The part of what the disk wrote in these intervals that was writeback: the nearest to `told` of those that the machine's counter and
    /// the writes of the other disks allow. Where no other disk wrote, one part only. The counter of the disk's own backing device may be a
    /// few pages ahead of the machine's.
    pub(crate) fn writeback_share(&self, intervals: &[usize], told: f64) -> f64 {
        let wrote = self.sum(intervals, |at| self.written(at, at + 1));
        let least = self.sum(intervals, |at| self.cleaned(at)) + self.begun(intervals);
        let others = self.sum(intervals, |at| self.written_by_others(at, at + 1));
        let most = least + others + 16.0 * PAGE;
        let is_alone = others <= 0.0;
        let (least, most) = (over(least, wrote).min(1.0), over(most, wrote).min(1.0));
        // The counter of its own backing device is read at other moments.
        let own: Option<f64> = intervals.iter().map(|at| self.completed_by_bdi(*at)).sum();
        let own = own.map(|own| over(own, wrote).min(1.0));
        match own {
            _ if is_alone => least,
            Some(own) => told.clamp(least.min(own), most.max(own)),
            None => told.clamp(least, most),
        }
    }

    /// Bytes whose writeback completed in an interval, by the counter of the disk's own backing device.
    fn completed_by_bdi(&self, at: usize) -> Option<f64> {
        let dev = self.disks().find(|(id, ..)| *id == self.disk()).map(|(_, _, dev)| dev);
        let id = dev.and_then(|dev| self.bdi_of_btrfs(dev).or_else(|| self.bdi(dev)))?;
        let row = |at: usize| Some(self.samples[at].bdis.get(id)?.written?.0);
        Some(row(at + 1)?.saturating_sub(row(at)?) as f64)
    }

    /// Part of the time from its first reading to its last with a task of a cgroup waiting for I/O.
    pub(crate) fn cgroup_waited(&self, id: EntityId) -> f64 {
        let mut read = self.samples.iter().filter(|sample| sample.cgroups.get(id).is_some());
        let Some(first) = read.next() else { return 0.0 };
        let seconds = seconds(first, read.next_back().unwrap_or(first));
        over(self.grown(|sample| &sample.cgroups, id, |row| row.io_some.unwrap_or_default().0) / 1e9, seconds)
    }

    /// Intervals in which the disk was full of slow writes.
    pub(crate) fn slow(&self, await_s: f64) -> Vec<usize> {
        self.slow_ones(await_s, 0.75)
    }

    /// Intervals in which the disk had a queue of slow writes, however long it was busy.
    pub(crate) fn batches(&self, await_s: f64) -> Vec<usize> {
        self.slow_ones(await_s, 0.0)
    }

    fn slow_ones(&self, await_s: f64, busy: f64) -> Vec<usize> {
        let reads = |at: usize| self.between(at, at + 1, |row| row.reads.unwrap_or_default().0);
        let read = |at: usize| self.between(at, at + 1, |row| row.read.unwrap_or_default().0);
        let is_slow = |at: &usize| {
            let (at, next) = (*at, *at + 1);
            let is_of_writes = self.written(at, next) >= read(at) && self.writes(at, next) >= reads(at);
            self.busy(at) >= busy && self.queue(at) >= 2.0 && is_of_writes && self.wait(at) >= await_s
        };
        self.intervals().filter(is_slow).collect()
    }

    pub(crate) fn sum(&self, intervals: &[usize], of: impl Fn(usize) -> f64) -> f64 {
        intervals.iter().map(|at| of(*at)).sum()
    }
}
