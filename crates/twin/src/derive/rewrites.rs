// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write calls to pages that may be dirty already: a table, a ring, a cache of sessions. Counters show the bytes passed to
//! the calls and those that became dirty. The part that dirtied nothing grows with what is dirty of the file, so it tells
//! how large the file is. Bytes passed to pipes and sockets dirty nothing either, but do not follow the dirty level.

use super::group::{Bin, Group, PAGE};
use super::syncs::Syncs;
use crate::Recorded;
use floodline_record::id::EntityId;
use floodline_record::sample::HostRow;
use floodline_record::units::Nanos;

/// Least part of the passed bytes that dirtied nothing.
pub(super) const REPEATED_MIN: f64 = 0.03;
/// Fewest intervals with writes that show how the repeated part depends on the dirty level.
const BINS_MIN: usize = 4;
/// Smallest mean size of a call: smaller calls dirty a page each, whether they repeat or not.
const CALL_MIN: f64 = 0.9 * PAGE;
/// Largest distance of the mean size of calls from whole pages, as a share of a page.
const WHOLE_PAGES: f64 = 0.02;
/// Error of the fit over that of a constant part, at most: where calls have whole pages, and elsewhere.
const FIT_PAGES: f64 = 1.5;
const FIT_OTHER: f64 = 0.7;
/// Error of the fit of a ring over that of a random order, at most.
const RING: f64 = 0.5;
/// Largest file.
const FILE_MAX: f64 = 64.0 * 1_073_741_824.0;

/// A file that a program writes to again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rewritten {
    /// Its size, all copies together.
    pub(super) bytes: f64,
    /// Whether it is a ring: written from its beginning to its end, and then from its beginning again.
    pub(super) is_ring: bool,
    /// Pages that are written next to each other, one or more.
    pub(super) run: f64,
    /// Whether it has all of its size before.
    pub(super) is_there: bool,
    /// Bytes of it that were dirty when the recording began, all copies together.
    pub(super) dirty: f64,
    /// What shows it.
    pub(super) why: &'static str,
}

/// The file that a program writes to again and again. `None` where its calls do not repeat, or where nothing shows that they
/// do.
pub(super) fn file(group: &Group, groups: &[Group], recorded: &Recorded) -> Option<Rewritten> {
    let why =
        "the part of its write calls that dirtied nothing grows with what is dirty: it writes the same pages again";
    let (bytes, is_ring) = found(group, groups, recorded)?;
    let level = Level::of(group, recorded)?;
    let dirty = (level.at(0.0) * level.part_of(group, groups)).min(bytes);
    Some(Rewritten { bytes, is_ring, run: 1.0, is_there: false, dirty, why })
}

/// Size of a log that is written in place, at most: that of a segment of several databases, bytes.
const SEGMENT: f64 = 67_108_864.0;

/// The file of a program of which each call is synced and makes one write of the device: it has its length already.
pub(super) fn in_place(group: &Group, syncs: Syncs) -> Option<Rewritten> {
    let why = "each call is synced with one write of the device and without a log: it writes in place";
    let bytes = group.total.by_calls.min(SEGMENT);
    syncs.is_in_place.then_some(Rewritten { bytes, is_ring: true, run: 1.0, is_there: true, dirty: 0.0, why })
}

/// The size of that file, and whether it is a ring.
fn found(group: &Group, groups: &[Group], recorded: &Recorded) -> Option<(f64, bool)> {
    let total = &group.total;
    let passed = passed(total);
    let block = passed / total.calls.max(1.0);
    if total.direct > 0.0 || total.cancelled > 0.0 || block < CALL_MIN || total.by_calls > (1.0 - REPEATED_MIN) * passed
    {
        return None;
    }
    let level = Level::of(group, recorded)?;
    let part = level.part_of(group, groups);
    let at = |seconds: f64| level.at(seconds) * part;
    let writing = || group.bins.iter().filter(|bin| passed_in(bin) >= PAGE);
    let repeated = |bin: &Bin| (1.0 - bin.by_calls / passed_in(bin)).clamp(0.0, 1.0);
    // Of each interval: the weight, the dirty bytes on average, and the part that dirtied nothing.
    let points: Vec<(f64, f64, f64)> =
        writing().map(|bin| (passed_in(bin), (at(bin.end - bin.length) + at(bin.end)) / 2.0, repeated(bin))).collect();
    if points.len() < BINS_MIN {
        return None;
    }
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|(weight, x, y)| weight * of(*x, *y)).sum::<f64>();
    let bytes = sum(&|x, _| x * x) / sum(&|x, y| x * y);
    let weight = sum(&|_, _| 1.0);
    let mean = sum(&|_, y| y) / weight;
    let (fit, constant) = (sum(&|x, y| (y - x / bytes).powi(2)), sum(&|_, y| (y - mean).powi(2)));
    let has_whole_pages = (block / PAGE - (block / PAGE).round()).abs() <= WHOLE_PAGES;
    let most = if has_whole_pages { FIT_PAGES } else { FIT_OTHER };
    // Levels are read a moment after the counters, so even a perfect fit leaves a little.
    let is_shown = fit <= most * constant.max(1e-4 * weight);
    let largest = points.iter().map(|(_, dirty, _)| *dirty).fold(0.0, f64::max);
    // Each call on a ring dirties pages until all of it is dirty, and then none does.
    let of_ring = |bin: &Bin| {
        let clean = (largest - at(bin.end - bin.length)).max(0.0);
        (1.0 - clean / passed_in(bin)).clamp(0.0, 1.0)
    };
    let ring: f64 = writing().map(|bin| passed_in(bin) * (repeated(bin) - of_ring(bin)).powi(2)).sum();
    let is_ring = ring < RING * fit;
    let bytes = if is_ring { largest } else { bytes.max(largest) };
    (bytes.is_finite() && is_shown).then(|| (bytes.clamp(PAGE, FILE_MAX), is_ring))
}

/// Bytes passed to buffered calls.
pub(super) fn passed(total: &Bin) -> f64 {
    total.wchar * total.by_calls / (total.by_calls + total.direct).max(1.0)
}

/// Bytes passed to the calls of an interval.
pub(super) fn passed_in(bin: &Bin) -> f64 {
    bin.wchar
}

/// What is dirty in the cgroup of a group, or on the machine where that is not read.
struct Level {
    /// Monotonic nanoseconds and bytes.
    levels: Vec<(u64, f64)>,
    start: u64,
    is_of_machine: bool,
}

impl Level {
    fn of(group: &Group, recorded: &Recorded) -> Option<Level> {
        let start = recorded.window.first_at?.monotonic.0;
        let of_cgroup = |id: &EntityId| -> Option<Vec<(u64, f64)>> {
            let levels: &Vec<(Nanos, u64)> = recorded.dirty.get(id)?;
            let is_used = levels.iter().any(|(_, bytes)| *bytes > 0);
            is_used.then(|| levels.iter().map(|(at, bytes)| (at.0, *bytes as f64)).collect())
        };
        if let Some(levels) = group.cgroup.as_ref().and_then(of_cgroup) {
            return Some(Level { levels, start, is_of_machine: false });
        }
        let bytes = |row: &HostRow| row.nr_dirty.map(|pages| pages.0 as f64 * PAGE);
        let rows = recorded.window.host_series.iter();
        let levels: Vec<_> = rows.filter_map(|(time, row)| Some((time.monotonic.0, bytes(row)?))).collect();
        (!levels.is_empty()).then_some(Level { levels, start, is_of_machine: true })
    }

    /// The part of it that a group dirtied.
    fn part_of(&self, group: &Group, groups: &[Group]) -> f64 {
        let alike = groups.iter().filter(|other| self.is_of_machine || other.cgroup == group.cgroup);
        let all: f64 = alike.map(|other| other.total.by_calls + other.total.mapped).sum();
        (group.total.by_calls / all.max(1.0)).min(1.0)
    }

    fn at(&self, seconds: f64) -> f64 {
        let at = self.start.saturating_add((seconds.max(0.0) * 1e9) as u64 + 1);
        let before = self.levels.partition_point(|(time, _)| *time <= at);
        self.levels[..before].last().map_or(0.0, |(_, bytes)| *bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::record::{Record, Sink};
    use floodline_record::sample::{HostRow, Sample};
    use floodline_record::units::Pages;

    /// A second each: a program that writes 4 MB/s to 1000 pages of 4 KiB, `dirty` of which are dirty at its end.
    fn group(dirtied: impl Fn(f64) -> f64, levels: &[u64]) -> (Group, Recorded) {
        let mut recorded = Recorded::default();
        let mut group = Group::default();
        for (at, level) in levels.iter().enumerate() {
            let mut sample = Sample::default();
            sample.time.monotonic = Nanos(at as u64 * 1_000_000_000);
            sample.host = HostRow { nr_dirty: Some(Pages(*level)), ..HostRow::default() };
            let Ok(()) = recorded.record(&Record::Sample(Box::new(sample)));
            if at > 0 {
                let middle = (levels[at - 1] + level) as f64 / 2.0 * PAGE;
                let bin = Bin {
                    end: at as f64,
                    length: 1.0,
                    wchar: 1000.0 * PAGE,
                    calls: 1000.0,
                    by_calls: dirtied(middle),
                    ..Bin::default()
                };
                group.total.wchar += bin.wchar;
                group.total.calls += bin.calls;
                group.total.by_calls += bin.by_calls;
                group.bins.push(bin);
            }
        }
        (group, recorded)
    }

    const LEVELS: [u64; 9] = [0, 800, 1500, 2200, 2800, 0, 900, 1600, 2300];

    #[test]
    fn the_part_that_dirties_nothing_tells_the_size_of_the_file() {
        let bytes = 5000.0 * PAGE;
        let (group, recorded) = group(|dirty| 1000.0 * PAGE * (1.0 - dirty / bytes), &LEVELS);
        let (told, is_ring) = found(&group, std::slice::from_ref(&group), &recorded).expect("it repeats");
        assert!((told / bytes - 1.0).abs() < 0.05 && !is_ring, "{told} of {bytes}");
    }

    #[test]
    fn what_was_dirty_at_the_begin_is_a_part_of_the_file() {
        let bytes = 5000.0 * PAGE;
        let dirty_of = |levels: &[u64]| {
            let (group, recorded) = group(|dirty| 1000.0 * PAGE * (1.0 - dirty / bytes), levels);
            file(&group, std::slice::from_ref(&group), &recorded).map(|file| file.dirty / PAGE)
        };
        assert_eq!(dirty_of(&LEVELS), Some(0.0));
        assert_eq!(dirty_of(&[2300, 2800, 0, 800, 1500, 2200, 2800, 0, 900]), Some(2300.0));
    }

    #[test]
    fn a_file_of_which_each_call_dirties_pages_until_all_of_it_is_dirty_is_a_ring() {
        // 1000 pages a second, until 2500 are dirty.
        let levels = [0, 1000, 2000, 2500, 2500, 2500, 2500, 0, 1000, 2000, 2500, 2500];
        let clean = |middle: f64| match middle / PAGE {
            middle if middle < 2000.0 => 1000.0 * PAGE,
            middle if middle < 2400.0 => 500.0 * PAGE,
            _ => 0.0,
        };
        let (mut group, recorded) = group(clean, &levels);
        // The flusher cleans what the calls of that second do not dirty again.
        let flushed = &mut group.bins[6];
        group.total.by_calls -= flushed.by_calls;
        flushed.by_calls = 0.0;
        let (told, is_ring) = found(&group, std::slice::from_ref(&group), &recorded).expect("it repeats");
        assert!(is_ring && (told / PAGE - 2500.0).abs() < 1.0, "{told}");
    }

    #[test]
    fn bytes_for_pipes_and_appends_are_no_repeats() {
        let (mut piped, recorded) = group(|_| 600.0 * PAGE, &LEVELS);
        piped.total.calls *= 0.7;
        assert_eq!(found(&piped, std::slice::from_ref(&piped), &recorded), None);
        let (appended, recorded) = group(|_| 1000.0 * PAGE, &LEVELS);
        assert_eq!(found(&appended, std::slice::from_ref(&appended), &recorded), None);
    }
}
