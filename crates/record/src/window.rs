// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stretch of recording, folded into what rules need: per entity the first, last, smallest and
//! largest reading and the growth of every counter; for the machine and its disks the whole series.
//! Rates are made here and nowhere earlier. Memory does not grow with cgroups × samples.

mod append;
mod foreign;
pub(crate) mod limited;
mod spans;

use crate::entities::Entities;
use crate::facts::HostFacts;
use crate::gap::{Gap, Source};
use crate::holes::Holes;
use crate::id::{Entity, EntityId};
use crate::lookup::Lookup;
pub use crate::metric::step;
use crate::metric::{Changed, Folded, Row};
use crate::name::Name;
use crate::record::{Event, Record, Sink, What};
use crate::sample::{
    BdiRow, CgroupIoRow, CgroupLimitsRow, CgroupRow, DiskRow, HostRow, ProcessRow, Sample, SampleTime, Table, WbRow,
    ZoneRow,
};
use crate::units::{Bytes, Count, Nanos};
pub use foreign::{Episode, ForDevice, Foreign};
pub use limited::{IoLimit, LimitRun, LimitRuns, LimitedIo, LimitedReading, UsedUp, done_under, used_up};
pub use spans::Spans;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

/// All readings of one entity within a window, folded.
#[derive(Clone, Debug, Default)]
pub struct Span<R> {
    /// First reading of each column.
    pub first: R,
    /// Last reading of each column.
    pub last: R,
    /// Smallest reading of each column.
    pub min: R,
    /// Largest reading of each column.
    pub max: R,
    /// Growth of each counter over the window, steps back not counted. `None` with fewer than two
    /// readings. For gauges always `None`.
    pub growth: R,
    /// When it was first read.
    pub first_at: Nanos,
    /// When it was last read.
    pub last_at: Nanos,
    /// How many samples had it.
    pub readings: u32,
    /// Whether each counter of the last row has a growth: the same row once more changes nothing then.
    pub is_settled: bool,
}

impl<R: Row> Span<R> {
    fn push(&mut self, at: Nanos, row: &R) {
        if self.readings == 0 {
            self.first_at = at;
        }
        // A row that stands still grows by nothing and is neither smaller nor larger than before.
        let stands_still = self.readings > 0 && *row == self.last;
        if !(stands_still && self.is_settled) {
            self.fold(row, Changed::ANYTHING);
        }
        self.stay(at);
    }

    /// Takes a row of which it is known what changed since the row before, which was taken too.
    fn push_changed(&mut self, at: Nanos, row: &R, changed: Changed) {
        if !self.is_settled || changed == Changed::ANYTHING {
            if self.readings == 0 {
                self.first_at = at;
            }
            self.fold(row, Changed::ANYTHING);
        } else if changed != Changed::NOTHING {
            self.fold(row, changed);
        }
        self.stay(at);
    }

    fn fold(&mut self, row: &R, changed: Changed) {
        let Span { first, last, min, max, growth, .. } = self;
        self.is_settled = row.fold(changed, Folded { first, last, min, max, growth });
    }

    /// Counts a row.
    fn stay(&mut self, at: Nanos) {
        self.last_at = at;
        self.readings += 1;
    }

    /// Seconds between the first and the last reading.
    pub fn seconds(&self) -> f64 {
        Nanos(self.last_at.0.saturating_sub(self.first_at.0)).as_secs_f64()
    }
}

/// Samples that read a source which is not read in each sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Their times, in order.
    pub times: Vec<Nanos>,
    /// Largest number of rows with a reading.
    most: usize,
}

impl Reads {
    /// Notes a sample with a number of rows that have a reading. A new thing is read when it is first seen: such readings
    /// alone are few, and do not count.
    pub(crate) fn note(&mut self, at: Nanos, rows: usize) {
        if rows > 0 && rows.saturating_mul(2) >= self.most && self.times.last() != Some(&at) {
            self.times.push(at);
        }
        self.most = self.most.max(rows);
    }

    /// Appends the samples that follow and begin with the last of these.
    fn append(&mut self, next: &Reads) {
        let last = self.times.last().copied();
        self.times.extend(next.times.iter().filter(|at| last.is_none_or(|last| **at > last)));
        self.most = self.most.max(next.most);
    }

    /// Median time between two of them; `None` with fewer than two.
    pub fn distance(&self) -> Option<Nanos> {
        let mut between: Vec<u64> = self.times.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect();
        between.sort_unstable();
        between.get(between.len() / 2).copied().map(Nanos)
    }
}

/// State letter of an uninterruptible sleep.
const ASLEEP: Count = Count(b'D' as u64);

/// A stretch of recording.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// What the machine is; `None` when the recording has no facts.
    pub facts: Option<HostFacts>,
    /// What the ids stand for.
    pub entities: Entities,
    /// Time of the first sample.
    pub first_at: Option<SampleTime>,
    /// Time of the last sample.
    pub last_at: Option<SampleTime>,
    /// Whether it is a stretch of a recording that goes on after it.
    pub goes_on: bool,
    /// Samples folded in.
    pub samples: u64,
    /// Machine-wide readings.
    pub host: Span<HostRow>,
    /// The machine-wide rows one by one.
    pub host_series: Vec<(SampleTime, HostRow)>,
    /// Memory zones.
    pub zones: Spans<ZoneRow>,
    /// Block devices.
    pub disks: Spans<DiskRow>,
    /// The rows of block devices one by one, in order of time. Rows that are equal and follow each other are one.
    pub disk_series: BTreeMap<EntityId, Vec<(Nanos, Arc<DiskRow>)>>,
    /// Backing devices.
    pub bdis: Spans<BdiRow>,
    /// The rows of backing devices one by one, in order of time.
    pub bdi_series: BTreeMap<EntityId, Vec<(Nanos, BdiRow)>>,
    /// Writeback structures.
    pub wbs: Spans<WbRow>,
    /// Cgroups.
    pub cgroups: Spans<CgroupRow>,
    /// Limits of cgroups.
    pub cgroup_limits: Spans<CgroupLimitsRow>,
    /// I/O by cgroup and device.
    pub cgroup_io: Spans<CgroupIoRow>,
    /// What cgroups did on devices while their limits of I/O were the same.
    pub limit_runs: LimitRuns,
    /// What cgroups with a limit of I/O had done on devices, at each sample.
    pub limited_io: LimitedIo,
    /// Bytes that flushers of cgroups wrote and that cannot be those of their own cgroups.
    pub foreign: Foreign,
    /// Processes.
    pub processes: Spans<ProcessRow>,
    /// Times of the samples in which a process, or a kernel thread, slept uninterruptibly (state D), in order.
    pub asleep: BTreeMap<EntityId, Vec<Nanos>>,
    /// Total time between samples in which a process slept uninterruptibly and between which it dirtied nothing.
    pub stood: BTreeMap<EntityId, Nanos>,
    /// Maximum number of bytes that were dirty or under writeback in one sample, by cgroup. Not the sum of both maxima,
    /// which can be at different times.
    pub unwritten_max: BTreeMap<EntityId, u64>,
    /// Maximum number of such bytes of each backing device, summed over its wbs, by its name.
    pub wbs_unwritten_max: BTreeMap<Name, u64>,
    /// Samples that read `memory.stat` of cgroups.
    pub stat_reads: Reads,
    /// What happened.
    pub events: Vec<Event>,
    /// Parts of a tracer that were in use: what they did not see did not happen.
    pub traced: BTreeSet<String>,
    /// What was not read.
    pub gaps: Vec<Gap>,
    /// Samples that were due and not taken, and clocks that jump or run backwards.
    pub holes: Holes,
    /// Indexes, made at the first lookup and dropped with every new record.
    pub lookup: OnceLock<Lookup>,
}

impl Window {
    /// Folds a whole stream.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Window {
        let mut window = Window::default();
        for record in records {
            match window.record(record) {
                Ok(()) => {}
            }
        }
        window
    }

    /// Forgets every reading but limits of cgroups and zones, and keeps what the machine is, what of it cannot be read,
    /// what traces it, and what the ids stand for: the next stretch starts here.
    pub fn begin_again(&mut self) {
        let facts = self.facts.take();
        let entities = std::mem::take(&mut self.entities);
        let gaps = std::mem::take(&mut self.gaps);
        let traced = std::mem::take(&mut self.traced);
        // Limits and zones are not in every sample: they hold until they are read again.
        let cgroup_limits = std::mem::take(&mut self.cgroup_limits);
        let zones = std::mem::take(&mut self.zones);
        *self = Window { facts, entities, gaps, traced, cgroup_limits, zones, ..Window::default() };
    }

    /// Begins again, and forgets processes without a reading in the stretch that ends: over days there are
    /// millions of them.
    pub fn begin_stretch(&mut self) {
        let seen = &self.processes;
        self.entities.retain(|id, entity| !matches!(entity, Entity::Process { .. }) || seen.contains_key(id));
        self.begin_again();
    }

    /// Returns the seconds between the first and the last sample; 0 for a single sample.
    pub fn seconds(&self) -> f64 {
        match (self.first_at, self.last_at) {
            (Some(first), Some(last)) => Nanos(last.monotonic.0.saturating_sub(first.monotonic.0)).as_secs_f64(),
            _ => 0.0,
        }
    }

    /// Devices, mounts and entities by what names them.
    pub fn lookup(&self) -> &Lookup {
        self.lookup.get_or_init(|| Lookup::of(self))
    }

    /// The gaps of one source.
    pub fn gaps_of(&self, source: Source) -> impl Iterator<Item = &Gap> {
        self.gaps.iter().filter(move |gap| gap.source == source)
    }

    fn push(&mut self, sample: &Sample) {
        let at = sample.time.monotonic;
        self.first_at.get_or_insert(sample.time);
        let before = self.last_at.replace(sample.time).map(|time| time.monotonic);
        self.samples += 1;
        self.host.push(at, &sample.host);
        self.host_series.push((sample.time, sample.host.clone()));
        for (id, row) in sample.disks.rows() {
            let series = self.disk_series.entry(*id).or_default();
            let same = series.last().filter(|(_, last)| **last == *row).map(|(_, last)| Arc::clone(last));
            series.push((at, same.unwrap_or_else(|| Arc::new(row.clone()))));
        }
        for (id, row) in sample.bdis.rows() {
            self.bdi_series.entry(*id).or_default().push((at, row.clone()));
        }
        for (id, row) in sample.processes.rows().iter().filter(|(_, row)| row.state == Some(ASLEEP)) {
            self.asleep.entry(*id).or_default().push(at);
            self.note_standing(*id, row, (before, at));
        }
        self.foreign.take(sample, &self.entities, &self.processes);
        fold(&mut self.zones, at, &sample.zones, before);
        fold(&mut self.disks, at, &sample.disks, before);
        fold(&mut self.bdis, at, &sample.bdis, before);
        fold(&mut self.wbs, at, &sample.wbs, before);
        fold(&mut self.cgroups, at, &sample.cgroups, before);
        fold(&mut self.cgroup_limits, at, &sample.cgroup_limits, before);
        fold(&mut self.cgroup_io, at, &sample.cgroup_io, before);
        fold(&mut self.processes, at, &sample.processes, before);
        limited::take(&mut self.limit_runs, &mut self.limited_io, sample);
        self.push_unwritten(sample, before);
    }

    /// Notes a process that sleeps in a sample, slept in the one before, and dirtied nothing in between.
    fn note_standing(&mut self, id: EntityId, row: &ProcessRow, (before, at): (Option<Nanos>, Nanos)) {
        let Some(span) = self.processes.get(&id) else { return };
        let slept = span.last.state == Some(ASLEEP) && before == Some(span.last_at);
        if slept && row.write_bytes.is_some() && row.write_bytes == span.last.write_bytes {
            let stood = self.stood.entry(id).or_default();
            *stood = Nanos(stood.0.saturating_add(at.0.saturating_sub(span.last_at.0)));
        }
    }

    fn push_unwritten(&mut self, sample: &Sample, before: Option<Nanos>) {
        let sum = |dirty: Option<Bytes>, writeback: Option<Bytes>| match (dirty, writeback) {
            (None, None) => None,
            (one, other) => Some(one.map_or(0, |bytes| bytes.0).saturating_add(other.map_or(0, |bytes| bytes.0))),
        };
        let changed = sample.cgroups.changed_since(before);
        let read = sample.cgroups.rows().iter().filter(|(_, row)| row.file_dirty.is_some()).count();
        self.stat_reads.note(sample.time.monotonic, read);
        for (at, (id, row)) in sample.cgroups.rows().iter().enumerate() {
            if changed.get(at) == Some(&Changed::NOTHING) {
                continue;
            }
            if let Some(now) = sum(row.file_dirty, row.file_writeback) {
                let most = self.unwritten_max.entry(*id).or_default();
                *most = now.max(*most);
            }
        }
        let mut by_bdi: BTreeMap<&Name, u64> = BTreeMap::new();
        for (id, row) in sample.wbs.rows() {
            if let Some(Entity::Wb { bdi, .. }) = self.entities.get(id)
                && let Some(now) = sum(row.reclaimable, row.writeback)
            {
                let all = by_bdi.entry(bdi).or_default();
                *all = all.saturating_add(now);
            }
        }
        for (bdi, now) in by_bdi {
            match self.wbs_unwritten_max.get_mut(bdi) {
                Some(most) => *most = now.max(*most),
                None => drop(self.wbs_unwritten_max.insert(bdi.clone(), now)),
            }
        }
    }
}

/// Folds the rows of a sample. Rows and spans mostly have one order, so the search for a span begins after that of the row
/// before. `before` is the time of the sample that was folded last.
fn fold<R: Row>(spans: &mut Spans<R>, at: Nanos, table: &Table<R>, before: Option<Nanos>) {
    let rows = table.rows();
    if rows.is_empty() {
        return;
    }
    if spans.is_empty() {
        spans.reserve(rows.len());
    }
    let changed = table.changed_since(before);
    let mut next = 0;
    for (number, (id, row)) in rows.iter().enumerate() {
        // The changes since the sample before hold for the first row of an entity in this sample only.
        match (spans.next_or_default(*id, &mut next), changed.get(number)) {
            ((span, true), Some(changed)) => span.push_changed(at, row, *changed),
            ((span, _), _) => span.push(at, row),
        }
    }
}

impl Sink for Window {
    type Error = Infallible;

    fn record(&mut self, record: &Record) -> Result<(), Infallible> {
        self.lookup.take();
        self.holes.record(record);
        match record {
            Record::Facts(facts) => self.facts = Some((**facts).clone()),
            Record::Entity(id, entity) => {
                self.entities.insert(*id, entity.clone());
            }
            Record::Sample(sample) => self.push(sample),
            Record::Event(event) => {
                if let What::TraceStarted { parts } = &event.what {
                    self.traced.extend(parts.iter().map(ToString::to_string));
                }
                self.events.push(event.clone());
            }
            Record::Gap(gap) => self.gaps.push(gap.clone()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::HostRow;
    use crate::units::Pages;

    /// Growth of a counter that was read with these values, a second apart.
    fn check(readings: &[u64], expect: Option<u64>) {
        let mut span = Span::<HostRow>::default();
        for (at, reading) in readings.iter().enumerate() {
            let row = HostRow { nr_dirtied: Some(Pages(*reading)), ..HostRow::default() };
            span.push(Nanos(at as u64 * 1_000_000_000), &row);
        }
        assert_eq!(span.growth.nr_dirtied.map(|pages| pages.0), expect, "{readings:?}");
    }

    #[test]
    fn a_counter_that_steps_back_counts_nothing_and_one_that_was_reset_counts_from_zero() {
        check(&[], None);
        check(&[7], None);
        check(&[7, 7], Some(0));
        check(&[7, 10, 25], Some(18));
        check(&[1_000_000, 999_999], Some(0));
        check(&[1_000_000, 999_999, 1_000_003], Some(4));
        check(&[1_000_000, 40], Some(40));
        check(&[1_000_000, 40, 50], Some(50));
        check(&[3, 0, 5], Some(5));
    }

    #[test]
    fn a_reading_that_stands_still_counts_as_one_that_was_looked_at() {
        check(&[5, 5, 5, 5], Some(0));
        check(&[5, 9, 9, 9, 12], Some(7));
        let mut span = Span::<HostRow>::default();
        for (at, dirtied) in [None, Some(7), Some(7), Some(7), Some(8)].into_iter().enumerate() {
            let row = HostRow { nr_dirtied: dirtied.map(Pages), nr_dirty: Some(Pages(3)), ..HostRow::default() };
            span.push(Nanos(at as u64), &row);
            assert_eq!(span.growth.nr_dirtied, [None, None, Some(Pages(0)), Some(Pages(0)), Some(Pages(1))][at]);
            assert_eq!((span.last_at, span.readings), (Nanos(at as u64), at as u32 + 1));
        }
    }

    #[test]
    fn rows_that_come_and_go_are_folded_into_their_own_spans() {
        let mut window = Window::default();
        let mut expect: Spans<CgroupRow> = Spans::default();
        for turn in 0..200_u64 {
            // Few of many, most of some, twice the same, and none.
            let ids =
                (0..turn % 7 * 9).map(|number| (number * (turn % 5 + 1) * 31 + turn % 3) % 97).chain([turn % 11; 2]);
            let row = |id| CgroupRow { file_dirty: Some(Bytes(turn * 100 + id)), ..CgroupRow::default() };
            let rows: Vec<(EntityId, CgroupRow)> = ids.map(|id| (EntityId(id as u32), row(id))).collect();
            let (at, cgroups) = (Nanos(turn), Table::read(rows));
            cgroups.rows().iter().for_each(|(id, row)| expect.or_default(*id).push(at, row));
            let time = SampleTime { monotonic: at, wall: at };
            window.push(&Sample { time, cgroups, ..Sample::default() });
        }
        assert!(expect.len() > 40, "{}", expect.len());
        assert_eq!(format!("{:?}", window.cgroups), format!("{expect:?}"));
    }

    #[test]
    fn a_counter_below_zero_is_no_reading() {
        check(&[100, u64::MAX, 107], Some(7));
        check(&[u64::MAX - 3, 5, 6], Some(1));
        check(&[u64::MAX, u64::MAX], None);
    }
}
