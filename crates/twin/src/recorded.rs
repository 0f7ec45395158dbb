// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording, folded as a window, plus the activity of each process between two samples: a window keeps sums only,
//! and a twin keeps the arrival times of bursts. Of a recorded run only the workload counts, as in a diagnosis: its setup
//! and its tear-down are no load of the host.

use crate::limit_changes::LimitChanges;
use floodline_record::facts::HostFacts;
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::record::{Event, Record, Sink, What};
use floodline_record::sample::{ProcessRow, Sample};
use floodline_record::traced::Inode;
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::{Window, step};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

/// Most intervals of processes that are kept: about 100 MiB.
const INTERVALS_MAX: usize = 1_000_000;

/// Most levels of dirty, of mapped and of cached bytes that are kept: about 16 MiB each.
const LEVELS_MAX: usize = 1_000_000;

/// Most files of which it is kept what was dirty before: about 8 MiB.
const FILES_MAX: usize = 131_072;

/// Deepest tree of processes that ends between two samples.
const DEPTH_MAX: usize = 16;

/// Activity of one process between two samples. Intervals without activity are not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Did {
    /// Begin, on the monotonic clock of the samples.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
    /// Bytes passed to write calls.
    pub wchar: u64,
    /// Write calls.
    pub syscw: u64,
    /// Bytes that became dirty or were written directly.
    pub dirtied: u64,
    /// Bytes read from devices.
    pub read: u64,
    /// Read calls.
    pub syscr: u64,
    /// Bytes that were dropped before they were written.
    pub cancelled: u64,
    /// Faults.
    pub faults: u64,
    /// Of them, those that read from a device.
    pub major: u64,
    /// Nanoseconds of waiting for block I/O, throttling included.
    pub waited: u64,
    /// Nanoseconds on a CPU.
    pub cpu: u64,
}

impl Did {
    fn between(from: Nanos, to: Nanos, before: &ProcessRow, now: &ProcessRow) -> Did {
        let grew = |before: Option<u64>, now: Option<u64>| match (before, now) {
            (Some(before), Some(now)) => step(before, now),
            _ => 0,
        };
        Did {
            from,
            to,
            wchar: grew(before.wchar.map(|n| n.0), now.wchar.map(|n| n.0)),
            syscw: grew(before.syscw.map(|n| n.0), now.syscw.map(|n| n.0)),
            dirtied: grew(before.write_bytes.map(|n| n.0), now.write_bytes.map(|n| n.0)),
            read: grew(before.read_bytes.map(|n| n.0), now.read_bytes.map(|n| n.0)),
            syscr: grew(before.syscr.map(|n| n.0), now.syscr.map(|n| n.0)),
            cancelled: grew(before.cancelled_write_bytes.map(|n| n.0), now.cancelled_write_bytes.map(|n| n.0)),
            faults: grew(before.minflt.map(|n| n.0), now.minflt.map(|n| n.0))
                .saturating_add(grew(before.majflt.map(|n| n.0), now.majflt.map(|n| n.0))),
            major: grew(before.majflt.map(|n| n.0), now.majflt.map(|n| n.0)),
            waited: grew(before.blkio_delay.map(|n| n.0), now.blkio_delay.map(|n| n.0)),
            cpu: grew(before.utime.map(|n| n.0), now.utime.map(|n| n.0))
                .saturating_add(grew(before.stime.map(|n| n.0), now.stime.map(|n| n.0))),
        }
    }

    /// Counters of I/O of children.
    fn io(&mut self) -> [&mut u64; 6] {
        [&mut self.wchar, &mut self.syscw, &mut self.dirtied, &mut self.read, &mut self.syscr, &mut self.cancelled]
    }

    fn with(&mut self, other: &Did) {
        let mut other = *other;
        self.io().into_iter().zip(other.io()).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    }

    fn without(&mut self, other: &Did) {
        let mut other = *other;
        self.io().into_iter().zip(other.io()).for_each(|(sum, less)| *sum = sum.saturating_sub(*less));
    }

    /// Whether it neither wrote, read nor waited. Faults alone do not count.
    pub(crate) fn is_nothing(&self) -> bool {
        self.wchar == 0 && self.dirtied == 0 && self.read == 0 && self.waited == 0 && self.cancelled == 0
    }
}

/// Whether a process has dirtied more than it passed to write calls.
fn stores_to_mappings(row: &ProcessRow) -> bool {
    row.write_bytes.zip(row.wchar).is_some_and(|(dirtied, passed)| dirtied.0 > passed.0)
}

/// Position in the recording of a run. A recording of a host stays in its first phase.
#[derive(Clone, Debug)]
enum Phase {
    /// No workload has started. Holds the last sample: counters of the workload grow from it.
    Before(Option<Box<Sample>>),
    Workload,
    After,
}

impl Default for Phase {
    fn default() -> Phase {
        Phase::Before(None)
    }
}

/// A recording as the input of a twin.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The recording, folded.
    pub window: Window,
    /// What each process did, in order of time. Intervals with nothing but faults are kept of those that store to
    /// mappings.
    pub processes: BTreeMap<EntityId, Vec<Did>>,
    /// Processes that reaped children, whose counters were added to theirs.
    pub parents: BTreeSet<EntityId>,
    /// Bytes of each cgroup that were dirty, descendants included, at each sample at which that changed. Empty where
    /// these are too many.
    pub dirty: BTreeMap<EntityId, Vec<(Nanos, u64)>>,
    /// Mapped file bytes of each cgroup, kept likewise.
    pub mapped: BTreeMap<EntityId, Vec<(Nanos, u64)>>,
    /// Page cache of each cgroup in bytes, kept likewise.
    pub cached: BTreeMap<EntityId, Vec<(Nanos, u64)>>,
    /// Limits of cgroups, and when they changed.
    pub limits: LimitChanges,
    /// Whether there were more intervals than are kept: the twin then covers only the first of them.
    pub is_cut: bool,
    /// Bytes of files that were dirtied for the first time before what is kept, by the trace, and whether there were more files.
    new_before: BTreeMap<(DevId, Inode), u64>,
    has_more_before: bool,
    /// Bytes that each process moved in each cgroup: at its end it is in another one for a moment.
    homes: BTreeMap<EntityId, BTreeMap<Option<EntityId>, u64>>,
    last: BTreeMap<EntityId, (Nanos, ProcessRow)>,
    intervals: usize,
    levels: [usize; 3],
    /// Counters of processes that are gone, by the process that reaps them.
    left: BTreeMap<u32, Did>,
    phase: Phase,
}

impl Recorded {
    /// Folds a whole stream.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Recorded {
        let mut recorded = Recorded::default();
        for record in records {
            let Ok(()) = recorded.record(record);
        }
        recorded
    }

    /// Forgets the setup of a run. Counters that were read in it stay: the first growth of the workload counts from them.
    fn begin_workload(&mut self) {
        let Phase::Before(before) = std::mem::replace(&mut self.phase, Phase::Workload) else { return };
        let Some(before) = before else { return };
        self.forget_samples();
        self.push_levels(&before);
        let Ok(()) = self.window.record(&Record::Sample(before));
    }

    fn forget_samples(&mut self) {
        for event in std::mem::take(&mut self.window.events) {
            self.forget(&event.what);
        }
        self.window.begin_again();
        self.processes.clear();
        self.parents.clear();
        self.dirty.clear();
        self.mapped.clear();
        self.cached.clear();
        self.homes.clear();
        self.limits.begin_again();
        (self.intervals, self.levels, self.is_cut) = (0, [0; 3], false);
    }

    /// Forgets all samples. Counters grow from the next one on.
    pub(crate) fn begin_later(&mut self) {
        self.forget_samples();
        self.last.clear();
        self.left.clear();
        if let Phase::Before(before) = &mut self.phase {
            *before = None;
        }
    }

    /// Frees what only further samples need.
    pub(crate) fn ends(&mut self) {
        self.last.clear();
        self.left.clear();
        self.phase = Phase::After;
    }

    /// Notes what an event from before the part that is kept tells of it: the pages that were dirty already.
    pub(crate) fn forget(&mut self, what: &What) {
        let What::Dirtied(dirtied) = what else { return };
        let Some(file) = &dirtied.file else { return };
        let file = (dirtied.device, file.inode());
        if self.new_before.len() >= FILES_MAX && !self.new_before.contains_key(&file) {
            self.has_more_before = true;
            return;
        }
        let new = self.new_before.entry(file).or_default();
        *new = new.saturating_add(dirtied.bytes.0.saturating_sub(dirtied.redirtied.0));
    }

    /// Bytes of a file that the trace saw dirty before what is kept; `None` where these were too many files. The tracer counts what is
    /// dirtied again from its own start on.
    pub(crate) fn dirtied_before(&self, file: (DevId, Inode)) -> Option<u64> {
        self.new_before.get(&file).copied().or((!self.has_more_before).then_some(0))
    }

    /// The cgroup in which a process did most of its work; without any work, that of its last description.
    pub(crate) fn home(&self, id: &EntityId) -> Option<EntityId> {
        let most = self.homes.get(id).and_then(|homes| homes.iter().max_by_key(|(_, moved)| **moved));
        match (most, self.window.entities.get(id)) {
            (Some((cgroup, _)), _) => *cgroup,
            (None, Some(Entity::Process { cgroup, .. })) => *cgroup,
            _ => None,
        }
    }

    fn push_levels(&mut self, sample: &Sample) {
        let push = |into: &mut BTreeMap<EntityId, Vec<(Nanos, u64)>>, count: &mut usize, id, bytes: Option<Bytes>| {
            let Some(bytes) = bytes.filter(|_| *count < LEVELS_MAX) else { return };
            let levels = into.entry(id).or_default();
            if levels.last().is_none_or(|(_, last)| *last != bytes.0) {
                levels.push((sample.time.monotonic, bytes.0));
                *count += 1;
            }
        };
        let [dirty, mapped, cached] = &mut self.levels;
        for (id, row) in sample.cgroups.rows() {
            push(&mut self.dirty, dirty, *id, row.file_dirty);
            push(&mut self.mapped, mapped, *id, row.file_mapped);
            push(&mut self.cached, cached, *id, row.file);
        }
        // Levels of a part of the time would stand for all of it.
        if *dirty >= LEVELS_MAX {
            self.dirty.clear();
        }
        if *mapped >= LEVELS_MAX {
            self.mapped.clear();
        }
        if *cached >= LEVELS_MAX {
            self.cached.clear();
        }
    }

    fn push(&mut self, sample: &Sample) {
        if !sample.processes.was_read() {
            return;
        }
        let now = sample.time.monotonic;
        let first = self.window.first_at.map_or(now, |first| first.monotonic);
        self.bury(sample);
        for (id, row) in sample.processes.rows() {
            let known = match self.last.entry(*id) {
                Entry::Occupied(mut last) => {
                    let kept = filled(row, &last.get().1);
                    Some(last.insert((now, kept)))
                }
                Entry::Vacant(last) => {
                    last.insert((now, row.clone()));
                    None
                }
            };
            let before = match known {
                Some(before) => before,
                // Born since the recording began: its counters started from zero.
                None => match born(self.window.facts.as_ref(), self.window.entities.get(id)) {
                    Some(at) if at >= first && at <= now => (at, zero()),
                    _ => continue,
                },
            };
            let mut did = Did::between(before.0, now, &before.1, row);
            if has_reaped(&before.1, row) {
                self.parents.insert(*id);
                if let Some(Entity::Process { pid, .. }) = self.window.entities.get(id)
                    && let Some(left) = self.left.remove(pid)
                {
                    did.without(&left);
                }
            }
            // Where all of a mapping is dirty, only faults show its stores.
            if did.is_nothing() && (did.faults == 0 || !stores_to_mappings(row)) {
                continue;
            }
            if self.intervals >= INTERVALS_MAX {
                self.is_cut = true;
                continue;
            }
            self.intervals += 1;
            if let Some(Entity::Process { cgroup, .. }) = self.window.entities.get(id) {
                let moved = did.wchar.saturating_add(did.dirtied).saturating_add(did.read);
                let home = self.homes.entry(*id).or_default().entry(*cgroup).or_default();
                *home = home.saturating_add(moved);
            }
            self.processes.entry(*id).or_default().push(did);
        }
    }

    /// Records the counters that processes leave to the parents that reaped them: the kernel adds the counters of a
    /// child to those of its parent, and the amounts already seen at the child must not count twice.
    fn bury(&mut self, sample: &Sample) {
        let gone: Vec<EntityId> = self.last.keys().filter(|id| sample.processes.get(**id).is_none()).copied().collect();
        let mut parents: BTreeMap<u32, u32> = BTreeMap::new();
        for id in gone {
            let Some((at, row)) = self.last.remove(&id) else { continue };
            let Some(parent) = row.ppid.and_then(|ppid| u32::try_from(ppid.0).ok()) else { continue };
            self.left.entry(parent).or_default().with(&Did::between(at, at, &zero(), &row));
            if let Some(Entity::Process { pid, .. }) = self.window.entities.get(&id) {
                parents.insert(*pid, parent);
            }
        }
        // A parent that ended as well passes on its children's counters. Trees of processes are not deep.
        for _ in 0..DEPTH_MAX {
            let moved: Vec<(u32, Did)> =
                parents.iter().filter_map(|(pid, parent)| Some((*parent, self.left.remove(pid)?))).collect();
            if moved.is_empty() {
                break;
            }
            for (parent, left) in moved {
                self.left.entry(parent).or_default().with(&left);
            }
        }
    }
}

/// A row whose missing readings are filled from an earlier one: of a sleeping process, a recorder reads only some
/// files.
fn filled(row: &ProcessRow, before: &ProcessRow) -> ProcessRow {
    ProcessRow {
        wchar: row.wchar.or(before.wchar),
        syscw: row.syscw.or(before.syscw),
        write_bytes: row.write_bytes.or(before.write_bytes),
        read_bytes: row.read_bytes.or(before.read_bytes),
        syscr: row.syscr.or(before.syscr),
        cancelled_write_bytes: row.cancelled_write_bytes.or(before.cancelled_write_bytes),
        minflt: row.minflt.or(before.minflt),
        majflt: row.majflt.or(before.majflt),
        cminflt: row.cminflt.or(before.cminflt),
        children_time: row.children_time.or(before.children_time),
        blkio_delay: row.blkio_delay.or(before.blkio_delay),
        ppid: row.ppid.or(before.ppid),
        ..row.clone()
    }
}

/// Whether a process reaped children.
fn has_reaped(before: &ProcessRow, now: &ProcessRow) -> bool {
    let grew = |before: Option<u64>, now: Option<u64>| before.zip(now).is_some_and(|(before, now)| now > before);
    grew(before.cminflt.map(|n| n.0), now.cminflt.map(|n| n.0))
        || grew(before.children_time.map(|n| n.0), now.children_time.map(|n| n.0))
}

/// When a process started, on the clock of the samples.
fn born(facts: Option<&HostFacts>, entity: Option<&Entity>) -> Option<Nanos> {
    // USER_HZ is 100 on every architecture that has /proc/PID/stat in ticks here, whatever CONFIG_HZ is.
    const TICK: u64 = 10_000_000;
    facts?;
    match entity? {
        Entity::Process { start_ticks, .. } => Some(Nanos(start_ticks.saturating_mul(TICK))),
        _ => None,
    }
}

/// The counters of a process that has done nothing.
fn zero() -> ProcessRow {
    use floodline_record::units::Count;
    ProcessRow {
        wchar: Some(Bytes(0)),
        syscw: Some(Count(0)),
        write_bytes: Some(Bytes(0)),
        read_bytes: Some(Bytes(0)),
        syscr: Some(Count(0)),
        cancelled_write_bytes: Some(Bytes(0)),
        minflt: Some(Count(0)),
        majflt: Some(Count(0)),
        blkio_delay: Some(Nanos(0)),
        cminflt: Some(Count(0)),
        children_time: Some(Nanos(0)),
        ..ProcessRow::default()
    }
}

impl Sink for Recorded {
    type Error = Infallible;

    fn record(&mut self, record: &Record) -> Result<(), Infallible> {
        let is_over = matches!(self.phase, Phase::After);
        // A process that goes to another cgroup at the end was in the one before.
        if is_over && matches!(record, Record::Sample(_) | Record::Entity(..)) {
            return Ok(());
        }
        match record {
            Record::Event(Event { what: What::WorkloadStarted { .. }, .. }) => self.begin_workload(),
            Record::Sample(sample) => {
                if let Phase::Before(before) = &mut self.phase {
                    match before {
                        Some(before) => before.clone_from(sample),
                        None => *before = Some(sample.clone()),
                    }
                }
            }
            _ => {}
        }
        self.window.record(record)?;
        // A workload without an interval of its own cannot be judged: the rest of the recording then counts.
        let is_end = matches!(record, Record::Event(Event { what: What::WorkloadEnded, .. }));
        if is_end && self.window.samples > 1 {
            self.phase = Phase::After;
        }
        if let Record::Sample(sample) = record {
            self.push_levels(sample);
            self.limits.take(sample);
            self.push(sample);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_analysis::diagnose::stretches::Stretches;
    use floodline_record::traced::bytes::Dirtied;
    use floodline_record::traced::{File, Who};
    use floodline_testkit::Fixture;

    /// The records with a workload that starts after one sample and ends after another.
    fn with_workload(mut records: Vec<Record>, [from, to]: [usize; 2]) -> Vec<Record> {
        let event = |what| Record::Event(Event { at: Nanos(0), what });
        let after = |records: &[Record], number: usize| {
            let mut samples = records.iter().enumerate().filter(|(_, record)| matches!(record, Record::Sample(_)));
            samples.nth(number).map(|(at, _)| at + 1).expect("there are as many samples")
        };
        let end = after(&records, to);
        records.insert(end, event(What::WorkloadEnded));
        let start = after(&records, from);
        records.insert(start, event(What::WorkloadStarted { scenario: "s".into(), variant: "v".into() }));
        records
    }

    #[test]
    fn of_a_run_only_the_workload_counts_as_in_a_diagnosis() {
        let records = with_workload(Fixture::healthy().seconds(30).records(), [9, 19]);
        let recorded = Recorded::from_records(&records);
        let mut stretches = Stretches::new(Vec::new());
        for record in &records {
            let Ok(()) = stretches.record(record);
        }
        assert_eq!(recorded.window.samples, stretches.samples());
        assert_eq!(recorded.window.seconds(), stretches.finish().window_s);
        let (first, last) = recorded.window.first_at.zip(recorded.window.last_at).unwrap();
        let mut intervals = recorded.processes.values().flatten().peekable();
        assert!(intervals.peek().is_some());
        for did in intervals {
            assert!(did.from >= first.monotonic && did.to <= last.monotonic, "{did:?}");
        }
        let whole = Recorded::from_records(&Fixture::healthy().seconds(30).records());
        assert!(recorded.window.seconds() < 0.5 * whole.window.seconds());
        // A workload without an interval of its own leaves the rest of the recording.
        let records = with_workload(Fixture::healthy().seconds(30).records(), [9, 9]);
        assert!(Recorded::from_records(&records).window.samples > 10);
    }

    #[test]
    fn what_was_dirty_before_the_part_that_is_kept_is_known() {
        let dirtied = |ino, bytes, redirtied| {
            Record::Event(Event {
                at: Nanos(1),
                what: What::Dirtied(Dirtied {
                    since: Nanos(0),
                    who: Who { pid: 7, comm: "db".into(), cgroup_ino: 1 },
                    device: DevId { major: 8, minor: 0 },
                    file: Some(File { ino, generation: None, path: None }),
                    bytes: Bytes(bytes),
                    folios: 1,
                    redirtied: Bytes(redirtied),
                }),
            })
        };
        let before = |recorded: &Recorded, ino| {
            recorded.dirtied_before((DevId { major: 8, minor: 0 }, Inode { ino, generation: None }))
        };
        let with = |[from, to]: [usize; 2], at: usize| {
            let mut records = with_workload(Fixture::healthy().seconds(30).records(), [from, to]);
            let samples = records.iter().enumerate().filter(|(_, record)| matches!(record, Record::Sample(_)));
            let place = samples.map(|(place, _)| place).nth(at).expect("there are as many samples");
            records.insert(place, dirtied(1, 5000, 1000));
            Recorded::from_records(&records)
        };
        assert_eq!(before(&with([9, 19], 5), 1), Some(4000), "in the setup");
        assert_eq!(before(&with([9, 19], 12), 1), Some(0), "in the workload");
        let mut recorded = Recorded::default();
        for record in Fixture::healthy().seconds(3).records().iter().chain([&dirtied(1, 5000, 0)]) {
            let Ok(()) = recorded.record(record);
        }
        assert_eq!(before(&recorded, 1), Some(0), "all of a recording of a host is kept");
        recorded.begin_later();
        assert_eq!((before(&recorded, 1), before(&recorded, 2)), (Some(5000), Some(0)));
        for ino in 2..FILES_MAX as u64 + 2 {
            let Record::Event(event) = dirtied(ino, 1, 0) else { continue };
            recorded.forget(&event.what);
        }
        assert_eq!((before(&recorded, 1), before(&recorded, FILES_MAX as u64 + 1)), (Some(5000), None), "too many");
    }
}
