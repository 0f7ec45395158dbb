// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a mapped file came into the page cache, by the counters of its programs since they started: that decides how large its folios are
//! on another kernel, which the recorded one may not show.

use super::group::Group;
use super::stores::MAJOR_READ;
use crate::Recorded;

/// Fewest faults of a process that read from a device, and the part of the file that they must have read.
const MAJORS_MIN: f64 = 4.0;
const READ_SHARE: f64 = 0.2;
/// Part of the file that write calls must have passed, and the mean size of large ones.
const WRITTEN_SHARE: f64 = 0.5;
const LARGE_WRITE: f64 = 65_536.0;

/// How a mapped file came into the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// Faults read it.
    ByFaults,
    /// Read calls.
    ByReads,
    /// Write calls, in blocks of 64 KiB and more or in small ones.
    ByWrites { are_large: bool },
    /// Neither: it was there before.
    Unknown,
}

/// Written in large blocks.
pub(super) const LARGE_WRITES: Made = Made::ByWrites { are_large: true };

/// What the processes of a group did since they started, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    processes: f64,
    /// Major faults.
    major: f64,
    /// Bytes read from devices, and bytes that read calls passed.
    read: f64,
    called: f64,
    /// Bytes that write calls passed, and their number.
    passed: f64,
    calls: f64,
}

impl Counters {
    /// Of the processes of a group.
    pub(super) fn of(group: &Group, recorded: &Recorded) -> Counters {
        let mut all = Counters::default();
        for (_, span) in recorded.window.processes.iter().filter(|(id, _)| group.holds(recorded, id)) {
            let row = &span.last;
            let value = |n: Option<u64>| n.unwrap_or(0) as f64;
            all.major += value(row.majflt.map(|n| n.0));
            all.read += value(row.read_bytes.map(|n| n.0));
            all.called += value(row.rchar.map(|n| n.0));
            all.passed += value(row.wchar.map(|n| n.0));
            all.calls += value(row.syscw.map(|n| n.0));
            all.processes += 1.0;
        }
        all
    }

    /// Mean size of the write calls, bytes. `None` where there was none.
    pub(super) fn mean_call(&self) -> Option<f64> {
        (self.calls > 0.0).then(|| self.passed / self.calls)
    }

    /// How the mapped files of these processes came into the page cache. Each process has one of `bytes`.
    pub(super) fn made(&self, bytes: f64) -> Made {
        let processes = self.processes.max(1.0);
        let files = bytes * processes;
        // What read calls passed, no fault read. Major faults alone do not tell: before 6.0 a store that the kernel delays counts as one,
        // and so does a fault on a program's own text.
        let by_faults = self.read - self.called;
        if self.major >= MAJORS_MIN * processes && by_faults >= (MAJOR_READ * self.major).max(READ_SHARE * files) {
            Made::ByFaults
        } else if self.read >= READ_SHARE * files {
            Made::ByReads
        } else if self.passed >= WRITTEN_SHARE * files {
            Made::ByWrites { are_large: self.mean_call().unwrap_or(self.passed) >= LARGE_WRITE }
        } else {
            Made::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::id::{Entity, EntityId};
    use floodline_record::sample::ProcessRow;
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::Fixture;

    const FILE: f64 = 4.0 * 1_048_576.0;

    fn by(major: f64, read: f64, called: f64) -> Made {
        Counters { processes: 1.0, major, read, called, ..Counters::default() }.made(FILE)
    }

    #[test]
    fn what_read_calls_passed_was_not_read_by_faults() {
        assert_eq!(by(256.0, FILE, 0.0), Made::ByFaults);
        assert_eq!(by(764.0, FILE, FILE), Made::ByReads, "before 6.0 delayed stores count as major faults");
        assert_eq!(by(12.0, FILE, 1.2 * FILE), Made::ByReads, "of its own text");
        assert_eq!(by(256.0, 2.0 * FILE, FILE), Made::ByFaults, "calls read something else");
        assert_eq!(by(256.0, 0.0, 0.0), Made::Unknown);
    }

    #[test]
    fn a_file_that_was_not_read_was_written() {
        let by = |passed, calls| Counters { processes: 2.0, passed, calls, ..Counters::default() }.made(FILE);
        assert_eq!(by(2.0 * FILE, 8.0), LARGE_WRITES);
        assert_eq!(by(2.0 * FILE, 2048.0), Made::ByWrites { are_large: false });
        assert_eq!(by(0.5 * FILE, 8.0), Made::Unknown);
    }

    #[test]
    fn counters_are_those_of_the_processes_of_a_group_since_they_started() {
        let writes = |bytes: u64, calls: u64| {
            move |_: f64, row: &mut ProcessRow| {
                (row.wchar, row.syscw) = (Some(Bytes(bytes)), Some(Count(calls)));
                (row.read_bytes, row.rchar) = (Some(Bytes(4096)), Some(Bytes(512)));
                row.majflt = Some(Count(3));
            }
        };
        let host = Fixture::healthy()
            .process("index", 900, "/", writes(6_000_000, 50))
            .process("index", 901, "/", writes(2_000_000, 30))
            .process("other", 902, "/", writes(9_000_000, 9));
        let recorded = Recorded::from_records(&host.records());
        let is_index = |id: &&EntityId| matches!(recorded.window.entities.get(id), Some(Entity::Process { comm, .. }) if comm.as_bytes() == b"index");
        let id = recorded.window.processes.keys().find(is_index).expect("a process");
        let group = Group { comm: b"index".to_vec(), cgroup: recorded.home(id), ..Group::default() };
        let all = Counters::of(&group, &recorded);
        let expected = Counters { processes: 2.0, major: 6.0, read: 8192.0, called: 1024.0, passed: 8e6, calls: 80.0 };
        assert_eq!(all, expected);
        assert_eq!(all.mean_call(), Some(100_000.0));
        assert_eq!(Counters::default().mean_call(), None, "no call");
    }
}
