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
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
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

impl Made {
    /// Of the files of a group, each of that many bytes.
    pub(super) fn of(group: &Group, recorded: &Recorded, bytes: f64) -> Made {
        Made::by(&Counters::of(group, recorded), bytes)
    }
}

/// Mean size of the write calls of a group since its processes started, bytes. `None` where there was none.
pub(super) fn mean_call(group: &Group, recorded: &Recorded) -> Option<f64> {
    let all = Counters::of(group, recorded);
    (all.calls > 0.0).then(|| all.passed / all.calls)
}

impl Counters {
    fn of(group: &Group, recorded: &Recorded) -> Counters {
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
}

impl Made {
    fn by(all: &Counters, bytes: f64) -> Made {
        let processes = all.processes.max(1.0);
        let files = bytes * processes;
        // What read calls passed, no fault read. Major faults alone do not tell: before 6.0 a store that the kernel delays counts as one,
        // and so does a fault on a program's own text.
        let by_faults = all.read - all.called;
        if all.major >= MAJORS_MIN * processes && by_faults >= (MAJOR_READ * all.major).max(READ_SHARE * files) {
            Made::ByFaults
        } else if all.read >= READ_SHARE * files {
            Made::ByReads
        } else if all.passed >= WRITTEN_SHARE * files {
            Made::ByWrites { are_large: all.passed / all.calls.max(1.0) >= LARGE_WRITE }
        } else {
            Made::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: f64 = 4.0 * 1_048_576.0;

    fn by(major: f64, read: f64, called: f64) -> Made {
        Made::by(&Counters { processes: 1.0, major, read, called, ..Counters::default() }, FILE)
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
        let by = |passed, calls| Made::by(&Counters { processes: 2.0, passed, calls, ..Counters::default() }, FILE);
        assert_eq!(by(2.0 * FILE, 8.0), LARGE_WRITES);
        assert_eq!(by(2.0 * FILE, 2048.0), Made::ByWrites { are_large: false });
        assert_eq!(by(0.5 * FILE, 8.0), Made::Unknown);
    }
}
