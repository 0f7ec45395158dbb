// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that a program makes one after the other, as a build, a pull of an image or a mail server does. The flusher writes data
//! by the age of their file: one file that grows is old as a whole, and of many files only the old ones are. A trace names the files.

use super::group::{Group, Key, PAGE};
use super::syncs::Syncs;
use floodline_record::id::DevId;
use floodline_record::record::What;
use floodline_record::traced::Inode;
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Fewest files of which the age matters.
const FILES_MIN: u64 = 8;
/// Most intervals in which a file is written that is made at once: it may begin in one and end in the next.
const INTERVALS_MAX: u64 = 2;
/// Least part of the traced bytes that must be in such files.
const MOST: f64 = 0.8;
/// Largest part of the bytes that were dirty before: files that are written again are no new ones.
const AGAIN: f64 = 0.1;
/// Syncs for each file around which each file is synced once.
const SYNCED: std::ops::RangeInclusive<f64> = 0.5..=1.5;

/// Files that a program made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Made {
    /// Their number.
    files: u64,
    /// Mean size, bytes.
    bytes: f64,
    /// Whether a trace names them.
    pub(super) is_traced: bool,
}

impl Made {
    /// One file for each write call of a program.
    pub(super) fn of_calls(group: &Group) -> Made {
        let files = group.total.calls.round().max(1.0);
        Made { files: files as u64, bytes: group.total.by_calls / files, is_traced: false }
    }

    #[cfg(test)]
    pub(super) fn traced(files: u64, bytes: f64) -> Made {
        Made { files, bytes, is_traced: true }
    }

    /// Mean size of a file in whole pages, and whether each is synced. `None` where the syncs are not those of single files.
    pub(super) fn each(&self, syncs: &Syncs) -> Option<(f64, bool)> {
        let bytes = (self.bytes / PAGE).round().max(1.0) * PAGE;
        match syncs.call {
            None => Some((bytes, false)),
            Some(_) if syncs.at_ends.is_some() || syncs.is_by_age => None,
            Some(_) => SYNCED.contains(&(syncs.count / self.files as f64)).then_some((bytes, true)),
        }
    }
}

/// What a trace has of one file.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    bytes: u64,
    intervals: u64,
    last: Nanos,
}

/// What a trace has of the files of one group.
#[derive(Clone, Debug, Default)]
struct Files {
    of: BTreeMap<(DevId, Inode), Written>,
    bytes: u64,
    again: u64,
}

impl Files {
    fn made(&self) -> Option<Made> {
        let made = || self.of.values().filter(|file| file.intervals <= INTERVALS_MAX);
        let files = made().count() as u64;
        let bytes = made().map(|file| file.bytes as f64).sum::<f64>();
        let is_most = bytes >= MOST * self.bytes as f64 && self.again as f64 <= AGAIN * self.bytes as f64;
        (files >= FILES_MIN && is_most).then(|| Made { files, bytes: bytes / files as f64, is_traced: true })
    }
}

/// Counts the files of each group.
pub(super) fn count(groups: &mut [(Key, Group)], window: &Window, of_pid: &BTreeMap<u32, Key>) {
    let mut all: BTreeMap<&Key, Files> = BTreeMap::new();
    for event in &window.events {
        let What::Dirtied(dirtied) = &event.what else { continue };
        let Some(key) = of_pid.get(&dirtied.who.pid) else { continue };
        let files = all.entry(key).or_default();
        files.bytes = files.bytes.saturating_add(dirtied.bytes.0);
        files.again = files.again.saturating_add(dirtied.redirtied.0);
        let Some(file) = &dirtied.file else { continue };
        let written = files.of.entry((dirtied.device, file.inode())).or_default();
        written.bytes = written.bytes.saturating_add(dirtied.bytes.0);
        if written.intervals == 0 || written.last != event.at {
            written.intervals += 1;
        }
        written.last = event.at;
    }
    for (key, group) in groups.iter_mut() {
        group.made = all.get(key).and_then(Files::made);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fit;
    use super::super::devices::Place;
    use super::super::group::Bin;
    use super::super::writer::Writer;
    use super::*;
    use crate::Recorded;
    use crate::provenance::{Notes, Origin};
    use floodline_scenario::SyncCall;

    /// `files` files of 64 KiB, each written in `intervals` intervals, beside `other` bytes of no named file.
    fn made(files: u64, intervals: u64, other: u64) -> Option<Made> {
        let device = DevId { major: 8, minor: 0 };
        let one = |ino| {
            let inode = Inode { ino, generation: None };
            ((device, inode), Written { bytes: 65_536, intervals, last: Nanos(ino) })
        };
        Files { of: (0..files).map(one).collect(), bytes: files * 65_536 + other, again: 0 }.made()
    }

    #[test]
    fn files_that_are_written_at_once_are_made_one_after_the_other() {
        assert_eq!(made(100, 1, 65_536), Some(Made { files: 100, bytes: 65_536.0, is_traced: true }));
        assert_eq!(made(100, 2, 0), Some(Made { files: 100, bytes: 65_536.0, is_traced: true }));
        assert_eq!(made(100, 3, 0), None, "logs that grow");
        assert_eq!(made(7, 1, 0), None, "few");
        assert_eq!(made(100, 1, 100 * 65_536), None, "most went to other files");
        let again = Files { again: 10 << 20, bytes: 20 << 20, ..Files::default() };
        assert_eq!(again.made(), None);
    }

    #[test]
    fn what_no_trace_shows_of_files_and_blocks_is_assumed() {
        let place = Place { is_buffered: true, ..Place::of_disk("sda") };
        let origins = |total: Bin, made: Option<Made>| {
            let bin = Bin { end: 1.0, length: 1.0, calls: 100.0, ..total };
            let group = Group { bins: vec![bin], total, made, ..Group::default() };
            let mut notes = Notes::default();
            let syncs = (Syncs::default(), None, false);
            Writer::of(&group, syncs, &place, "a", &Recorded::default(), &mut notes, &Fit::FIRST);
            move |key: &str| {
                let key = format!("workload.tasks.a.steps.{key}");
                notes.0.iter().find(|note| note.key == key).map(|note| note.origin)
            }
        };
        for (is_traced, origin) in [(true, Origin::Derived), (false, Origin::Assumed)] {
            let files = origins(
                Bin { by_calls: 1e6, wchar: 1e6, ..Bin::default() },
                Some(Made { files: 100, bytes: 10_000.0, is_traced }),
            );
            assert_eq!(files("create_files"), Some(origin));
            assert_eq!(files("create_files.file"), Some(Origin::Assumed));
        }
        for direct in [1e6, 100e6] {
            let direct = origins(Bin { direct, wchar: direct, ..Bin::default() }, None);
            assert_eq!(direct("write.direct"), Some(Origin::Derived));
            assert_eq!(direct("write.order"), Some(Origin::Assumed));
        }
    }

    #[test]
    fn a_file_is_synced_where_there_are_as_many_syncs_as_files() {
        let made = Made { files: 100, bytes: 10_000.0, is_traced: true };
        let syncs = |count| Syncs { count, call: Some(SyncCall::Fsync), origin: Origin::Measured, ..Syncs::default() };
        assert_eq!(made.each(&Syncs::default()), Some((8192.0, false)));
        assert_eq!(made.each(&syncs(99.0)), Some((8192.0, true)));
        assert_eq!(made.each(&syncs(10.0)), None, "a sync for several files");
        assert_eq!(made.each(&Syncs { at_ends: Some(0.1), ..syncs(99.0) }), None);
    }
}
