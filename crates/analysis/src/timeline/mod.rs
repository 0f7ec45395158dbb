// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording as curves: readings of the machine, its disks and its cgroups over time, in at most [`STRETCHES`]
//! stretches, each with its smallest and its largest reading. Long recordings are thinned while they are read, so that
//! memory does not grow with their length. Unlike a window, it keeps a few derived readings and no rows.

mod plots;
mod track;

pub use plots::{Line, Mark, Plot, PlotUnit, Role};
pub use track::Extent;

use floodline_record::id::EntityId;
use floodline_record::levels::HELD;
use floodline_record::record::{Event, Record, Sink, What};
use floodline_record::sample::{CgroupRow, DiskRow, HostRow, Sample, SampleTime};
use floodline_record::units::{Nanos, Pages};
use floodline_record::window::step;
use std::collections::BTreeMap;
use std::convert::Infallible;
use track::Track;

/// Most stretches of time that a timeline is divided into: two points of a curve each.
pub const STRETCHES: usize = 1000;

/// Page size where the recording has no facts, bytes.
const PAGE_SIZE: u64 = 4096;

/// Most events that are kept for marks.
const EVENTS: usize = 1000;

/// Quantity that a curve shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Dirty pages and pages under writeback, bytes.
    Unwritten,
    /// Pages under writeback, bytes.
    Writeback,
    /// Background threshold, bytes.
    Background,
    /// Free-run ceiling, bytes.
    Freerun,
    /// Hard threshold, bytes.
    Hard,
    /// Bytes dirtied per second.
    Dirtied,
    /// Bytes whose writeback completed, per second.
    Written,
    /// Share of the time in which at least one task waited for I/O.
    IoSome,
    /// Share of the time in which all tasks waited for I/O.
    IoFull,
    /// Share of the time in which at least one task waited for memory.
    MemorySome,
    /// Share of CPU time that was idle with I/O outstanding.
    Iowait,
    /// Tasks blocked for I/O.
    Blocked,
    /// Bytes written per second by a disk.
    DiskWritten(EntityId),
    /// Share of the time with a request in flight at a disk.
    DiskBusy(EntityId),
    /// Mean time of a write at a disk, seconds.
    DiskAwait(EntityId),
    /// Dirty pages and pages under writeback of a cgroup, bytes.
    CgroupUnwritten(EntityId),
    /// Share of the time in which at least one task of a cgroup waited for I/O.
    CgroupIoSome(EntityId),
}

/// The readings of the sample before, for rates.
#[derive(Clone, Debug, Default)]
struct Before {
    at: Nanos,
    host: HostRow,
    disks: BTreeMap<EntityId, DiskRow>,
}

/// The curves of a cgroup. They are kept apart from the others because there are thousands of them: a sample finds both
/// by one search, or without a search if its cgroups are those of the previous sample.
#[derive(Clone, Debug, Default)]
struct CgroupCurves {
    unwritten: Option<Track>,
    /// Its last reading, and the second at which it was read.
    level: Option<(f64, f32)>,
    io_some: Option<Track>,
    /// Time that tasks waited for I/O, and the number of the sample that read it.
    waited: Option<(u64, Nanos)>,
}

impl CgroupCurves {
    /// Adds the readings of sample `number`, taken at a second, to stretch `at`. `seconds` passed since the sample before.
    fn put(&mut self, at: usize, (number, second): (u64, f64), row: &CgroupRow, seconds: Option<f64>) {
        if let Some(dirty) = row.file_dirty {
            let unwritten = dirty.0.saturating_add(row.file_writeback.map_or(0, |bytes| bytes.0)) as f64 as f32;
            self.level = Some((second, unwritten));
            self.unwritten.get_or_insert_with(|| Track::from(at)).put(at, unwritten);
        } else if let Some((_, level)) = self.level.filter(|(read, _)| second <= read + HELD.as_secs_f64()) {
            // Not each sample reads it: it holds until the next reading is due.
            self.unwritten.get_or_insert_with(|| Track::from(at)).put(at, level);
        }
        let Some(waited) = row.io_some else { return };
        let before = self.waited.replace((number, waited)).filter(|(of, _)| of + 1 == number);
        if let Some(((_, before), seconds)) = before.zip(seconds)
            && let Some(share) = share(Some(before), Some(waited), seconds)
        {
            self.io_some.get_or_insert_with(|| Track::from(at)).put(at, share as f32);
        }
    }

    fn thin(&mut self) {
        [&mut self.unwritten, &mut self.io_some].into_iter().flatten().for_each(Track::thin);
    }
}

/// A recording as curves.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Time of the first sample.
    pub first: Option<SampleTime>,
    /// Samples taken.
    pub samples: u64,
    page_size: Option<u64>,
    /// Samples in a stretch.
    per: u64,
    /// Samples in the last stretch.
    filled: u64,
    /// Beginning and end of each stretch, seconds since the first sample.
    at: Vec<(f64, f64)>,
    tracks: BTreeMap<Key, Track>,
    cgroups: BTreeMap<EntityId, CgroupCurves>,
    before: Option<Box<Before>>,
    events: Vec<Event>,
}

impl Timeline {
    /// Beginning and end of each stretch, seconds since the first sample.
    pub fn stretches(&self) -> &[(f64, f64)] {
        &self.at
    }

    /// Seconds between the first and the last sample.
    pub fn seconds(&self) -> f64 {
        self.at.last().map_or(0.0, |(_, end)| *end)
    }

    /// Start of the first stretch in which a curve is highest, in seconds since the first sample, and the value there.
    pub(crate) fn peak(&self, key: Key) -> Option<(f64, f64)> {
        let track = self.track(key)?;
        let mut peak: Option<(usize, f32)> = None;
        for (at, extent) in track.extents() {
            if peak.is_none_or(|(_, most)| extent.max > most) {
                peak = Some((at, extent.max));
            }
        }
        let (at, most) = peak?;
        Some((self.at.get(at)?.0, f64::from(most)))
    }

    fn track(&self, key: Key) -> Option<&Track> {
        match key {
            Key::CgroupUnwritten(id) => self.cgroups.get(&id)?.unwritten.as_ref(),
            Key::CgroupIoSome(id) => self.cgroups.get(&id)?.io_some.as_ref(),
            _ => self.tracks.get(&key),
        }
    }

    /// Seconds from the first sample to a moment on the monotonic clock; negative before it.
    pub fn second_of(&self, at: Nanos) -> f64 {
        let first = self.first.map_or(0, |first| first.monotonic.0);
        match at.0.checked_sub(first) {
            Some(after) => Nanos(after).as_secs_f64(),
            None => -Nanos(first - at.0).as_secs_f64(),
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let first = self.first.get_or_insert(sample.time).monotonic;
        self.samples += 1;
        let second = Nanos(sample.time.monotonic.0.saturating_sub(first.0)).as_secs_f64();
        // A clock that runs backwards would reverse the curves.
        let second = self.at.last().map_or(second, |(_, end)| second.max(*end));
        self.begin(second);
        self.host(&sample.host);
        let before = self.before.take();
        let interval = before.as_ref().and_then(|before| sample.time.monotonic.0.checked_sub(before.at.0));
        let seconds = interval.map(|ns| Nanos(ns).as_secs_f64()).filter(|seconds| *seconds > 0.0);
        let mut now = Before { at: sample.time.monotonic, host: sample.host.clone(), ..Before::default() };
        if let Some((before, seconds)) = before.as_ref().zip(seconds) {
            self.host_rates(&before.host, &sample.host, seconds);
        }
        for (id, row) in sample.disks.rows() {
            if let Some((earlier, seconds)) = before.as_ref().and_then(|before| before.disks.get(id)).zip(seconds) {
                self.disk(*id, earlier, row, seconds);
            }
            now.disks.insert(*id, row.clone());
        }
        self.cgroups(sample.cgroups.rows(), seconds);
        // Disks are not read in every sample. The next reading is compared with the last available one.
        if let Some(before) = before.filter(|_| !sample.disks.was_read()) {
            now.disks = before.disks;
        }
        self.before = Some(Box::new(now));
    }

    /// Opens the stretch of a sample, and thins the curves when there are too many stretches.
    fn begin(&mut self, second: f64) {
        self.per = self.per.max(1);
        if self.filled == 0 || self.filled >= self.per {
            if self.at.len() >= STRETCHES {
                self.thin();
            }
            if self.filled == 0 || self.filled >= self.per {
                self.at.push((second, second));
                self.filled = 0;
            }
        }
        self.filled += 1;
        if let Some(last) = self.at.last_mut() {
            last.1 = second;
        }
    }

    /// Merges pairs of stretches.
    fn thin(&mut self) {
        let pair = |pair: &[(f64, f64)]| (pair[0].0, pair.last().map_or(pair[0].1, |last| last.1));
        self.at = self.at.chunks(2).map(pair).collect();
        self.tracks.values_mut().for_each(Track::thin);
        self.cgroups.values_mut().for_each(CgroupCurves::thin);
        // Their number is even, so that the last one is full.
        self.per *= 2;
        self.filled = self.per;
    }

    fn put(&mut self, key: Key, value: Option<f64>) {
        if let (Some(value), Some(at)) = (value, self.at.len().checked_sub(1)) {
            self.tracks.entry(key).or_insert_with(|| Track::from(at)).put(at, value as f32);
        }
    }

    fn host(&mut self, row: &HostRow) {
        let page_size = self.page_size.unwrap_or(PAGE_SIZE);
        let bytes = |pages: Option<Pages>| pages.map(|pages| pages.bytes(page_size).0 as f64);
        let (background, hard) = (bytes(row.nr_dirty_background_threshold), bytes(row.nr_dirty_threshold));
        // The machine's page counts come with the values of meminfo where vmstat was not read.
        let dirty = bytes(row.nr_dirty).or(row.mem_dirty.map(|bytes| bytes.0 as f64));
        let writeback = bytes(row.nr_writeback).or(row.mem_writeback.map(|bytes| bytes.0 as f64));
        self.put(Key::Unwritten, dirty.zip(writeback).map(|(dirty, writeback)| dirty + writeback).or(dirty));
        self.put(Key::Writeback, writeback);
        self.put(Key::Background, background);
        self.put(Key::Hard, hard);
        self.put(Key::Freerun, background.zip(hard).map(|(background, hard)| (background + hard) / 2.0));
        self.put(Key::Blocked, row.procs_blocked.map(|tasks| tasks.0 as f64));
    }

    fn host_rates(&mut self, before: &HostRow, now: &HostRow, seconds: f64) {
        let page_size = self.page_size.unwrap_or(PAGE_SIZE);
        let rate = |read: fn(&HostRow) -> Option<Pages>| {
            let pages = Pages(step(read(before)?.0, read(now)?.0));
            Some(pages.bytes(page_size).0 as f64 / seconds)
        };
        self.put(Key::Dirtied, rate(|row| row.nr_dirtied));
        self.put(Key::Written, rate(|row| row.nr_written));
        self.put(Key::IoSome, share(before.psi_io_some, now.psi_io_some, seconds));
        self.put(Key::IoFull, share(before.psi_io_full, now.psi_io_full, seconds));
        self.put(Key::MemorySome, share(before.psi_memory_some, now.psi_memory_some, seconds));
        let grown = |read: fn(&HostRow) -> Option<Nanos>| Some(step(read(before)?.0, read(now)?.0) as f64);
        let iowait = grown(|row| row.cpu_iowait);
        let spent: Option<f64> =
            [grown(|row| row.cpu_user), grown(|row| row.cpu_system), grown(|row| row.cpu_idle), iowait]
                .into_iter()
                .sum();
        let of = iowait.zip(spent).filter(|(_, spent)| *spent > 0.0);
        self.put(Key::Iowait, of.map(|(iowait, spent)| (iowait / spent).min(1.0)));
    }

    fn disk(&mut self, id: EntityId, before: &DiskRow, now: &DiskRow, seconds: f64) {
        let grown = |before: Option<u64>, now: Option<u64>| Some(step(before?, now?) as f64);
        let written = grown(before.written.map(|bytes| bytes.0), now.written.map(|bytes| bytes.0));
        let writes = grown(before.writes.map(|count| count.0), now.writes.map(|count| count.0));
        let time = grown(before.write_time.map(|ns| ns.0), now.write_time.map(|ns| ns.0));
        self.put(Key::DiskWritten(id), written.map(|bytes| bytes / seconds));
        self.put(Key::DiskBusy(id), share(before.io_time, now.io_time, seconds));
        let took = time.zip(writes).filter(|(_, writes)| *writes > 0.0);
        self.put(Key::DiskAwait(id), took.map(|(time, writes)| time / writes / 1e9));
    }

    fn cgroups(&mut self, rows: &[(EntityId, CgroupRow)], seconds: Option<f64>) {
        let Some(at) = self.at.len().checked_sub(1) else { return };
        let sample = (self.samples, self.at.last().map_or(0.0, |(_, end)| *end));
        if self.cgroups.len() == rows.len() && self.cgroups.keys().eq(rows.iter().map(|(id, _)| id)) {
            for (curves, (_, row)) in self.cgroups.values_mut().zip(rows) {
                curves.put(at, sample, row, seconds);
            }
            return;
        }
        for (id, row) in rows {
            self.cgroups.entry(*id).or_default().put(at, sample, row, seconds);
        }
    }
}

/// The part of an interval that a counter of time grew by, at most 1.
fn share(before: Option<Nanos>, now: Option<Nanos>, seconds: f64) -> Option<f64> {
    Some((Nanos(step(before?.0, now?.0)).as_secs_f64() / seconds).min(1.0))
}

impl Sink for Timeline {
    type Error = Infallible;

    fn record(&mut self, record: &Record) -> Result<(), Infallible> {
        match record {
            Record::Facts(facts) => self.page_size = Some(facts.page_size).filter(|size| *size > 0),
            Record::Sample(sample) => self.sample(sample),
            Record::Event(event) => {
                let is_marked = matches!(
                    event.what,
                    What::WorkloadStarted { .. }
                        | What::WorkloadEnded
                        | What::TaskStall { .. }
                        | What::SlowSync(_)
                        | What::Missed { .. }
                        | What::Note { .. }
                );
                if is_marked && self.events.len() < EVENTS {
                    self.events.push(event.clone());
                }
            }
            Record::Entity(..) | Record::Gap(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    fn timeline(fixture: &Fixture) -> Timeline {
        let mut timeline = Timeline::default();
        for record in fixture.records() {
            let Ok(()) = timeline.record(&record);
        }
        timeline
    }

    fn saw(seconds: u32) -> Fixture {
        Fixture::healthy()
            .host(|t, row| {
                row.nr_dirty = Some(mib_pages(100.0 + t % 10.0));
                row.nr_writeback = Some(mib_pages(0.0));
                row.psi_io_some = Some(secs(10.0 + 0.5 * t));
            })
            .seconds(seconds)
    }

    #[test]
    fn a_short_recording_has_a_stretch_for_each_sample() {
        let timeline = timeline(&saw(20));
        assert_eq!((timeline.samples, timeline.stretches().len()), (21, 21));
        assert_eq!(timeline.seconds(), 20.0);
        let extents: Vec<Extent> = timeline.tracks[&Key::Unwritten].extents().map(|(_, extent)| extent).collect();
        assert_eq!(f64::from(extents[3].max), mib(103.0) as f64);
        // Rates begin with the second sample.
        assert_eq!(timeline.tracks[&Key::IoSome].extents().next().map(|(at, extent)| (at, extent.max)), Some((1, 0.5)));
        assert_eq!(timeline.peak(Key::Unwritten), Some((9.0, mib(109.0) as f64)));
    }

    #[test]
    fn a_long_recording_keeps_its_extremes_in_few_stretches() {
        for seconds in [999, 1000, 1001, 2500, 4100] {
            let timeline = timeline(&saw(seconds));
            assert!(timeline.stretches().len() <= STRETCHES, "{seconds}");
            assert!(timeline.stretches().len() > STRETCHES / 2 - 2, "{seconds}");
            assert!(timeline.stretches().windows(2).all(|pair| pair[0].1 < pair[1].0), "{seconds}: in order");
            assert_eq!(timeline.seconds(), f64::from(seconds));
            let extents: Vec<(usize, Extent)> = timeline.tracks[&Key::Unwritten].extents().collect();
            assert_eq!(extents.last().map(|(at, _)| at + 1), Some(timeline.stretches().len()));
            let least = extents.iter().map(|(_, extent)| extent.min).fold(f32::INFINITY, f32::min);
            let most = extents.iter().map(|(_, extent)| extent.max).fold(0.0, f32::max);
            assert_eq!((f64::from(least), f64::from(most)), (mib(100.0) as f64, mib(109.0) as f64));
        }
    }

    #[test]
    fn the_level_of_a_cgroup_holds_until_it_is_read_again() {
        let fixture = Fixture::healthy()
            .cgroup("/a", |t, row| row.file_dirty = Some(floodline_record::units::Bytes(100 * t as u64)))
            .every(1.0)
            .seconds(20);
        let mut timeline = Timeline::default();
        let mut read = 0;
        for mut record in floodline_testkit::sparse::sparse(fixture.records(), 2) {
            if let Record::Sample(sample) = &mut record {
                // From here on, nothing is read.
                if read >= 10 {
                    let rows = sample.cgroups.rows().iter().map(|(id, _)| (*id, CgroupRow::default())).collect();
                    sample.cgroups = floodline_record::sample::Table::read(rows);
                }
                read += 1;
            }
            let Ok(()) = timeline.record(&record);
        }
        let curve = timeline.cgroups.values().filter_map(|curves| curves.unwritten.as_ref());
        let levels: Vec<(usize, f32)> = curve
            .flat_map(|track| track.extents().map(|(at, extent)| (at, extent.max)))
            .filter(|(_, level)| *level > 0.0)
            .collect();
        let expect: Vec<(usize, f32)> =
            (2..13_u16).map(|at| (usize::from(at), f32::from((at / 2 * 2).min(8)) * 100.0)).collect();
        assert_eq!(levels, expect, "a level that is not read any more ends");
    }

    #[test]
    fn a_cgroup_that_comes_late_has_its_curve_at_its_time() {
        let mut records = saw(2500).records();
        let late = EntityId(9999);
        for record in &mut records {
            if let Record::Sample(sample) = record
                && sample.time.monotonic.0 >= 2_400_000_000_000 + 1_000_000_000_000_000
            {
                let mut rows = sample.cgroups.rows().to_vec();
                rows.push((
                    late,
                    CgroupRow { file_dirty: Some(floodline_record::units::Bytes(7)), ..CgroupRow::default() },
                ));
                sample.cgroups = floodline_record::sample::Table::read(rows);
            }
        }
        let mut timeline = Timeline::default();
        for record in &records {
            let Ok(()) = timeline.record(record);
        }
        let (second, most) = timeline.peak(Key::CgroupUnwritten(late)).expect("a curve");
        assert_eq!(most, 7.0);
        assert!((2390.0..=2400.0).contains(&second), "{second}");
    }
}
