// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of programs whose I/O counters may not be read. The recorder was not root: it sees that such a program waits, and not for what. The
//! disks show the other half: reads that no readable program made, in the same intervals. A program that waits while they are made is their
//! reader, and no caller of a sync.

use super::group::{Bin, Group};
use crate::Recorded;
use floodline_analysis::diagnose::device;

/// Fewest bytes, and fewest intervals in which it waits, that show a reader.
const BYTES_MIN: f64 = 262_144.0;
const INTERVALS_MIN: usize = 5;
/// Shortest wait in an interval that counts, seconds.
const WAIT_MIN: f64 = 0.01;
/// Least part of its waiting intervals with such reads, and of these reads that are made while it waits.
const MOST: f64 = 0.9;

/// Bytes and number of reads that no program explains, in each interval of the recording.
fn unexplained(recorded: &Recorded, groups: &[Group]) -> Option<Vec<(f64, f64)>> {
    let window = &recorded.window;
    let start = window.first_at?.monotonic.0;
    let bins = &groups.first()?.bins;
    let mut left: Vec<(f64, f64)> = vec![(0.0, 0.0); bins.len()];
    for disk in device::drains(window) {
        for interval in disk.intervals() {
            let end = interval.end.0.saturating_sub(start) as f64 / 1e9;
            if let Some(at) = bins.iter().position(|bin| (bin.end - end).abs() < 0.5 * bin.length) {
                left[at] = (left[at].0 + interval.read_bytes, left[at].1 + interval.reads);
            }
        }
    }
    for (at, (bytes, count)) in left.iter_mut().enumerate() {
        let known: f64 = groups.iter().filter_map(|group| group.bins.get(at)).map(|bin| bin.read).sum();
        let share = (1.0 - known / bytes.max(1.0)).clamp(0.0, 1.0);
        (*bytes, *count) = (*bytes * share, *count * share);
    }
    Some(left)
}

/// Gives the reads that no program explains to the programs that wait for them. Several share them by their waits.
pub(super) fn take_reads(recorded: &Recorded, groups: &mut [Group]) {
    let Some(left) = unexplained(recorded, groups) else { return };
    let all: f64 = left.iter().map(|(bytes, _)| bytes).sum();
    if all < BYTES_MIN {
        return;
    }
    let processes = &recorded.window.processes;
    let is_unread = |group: &Group| {
        let mut rows = processes.iter().filter(|(id, _)| group.holds(recorded, id));
        rows.all(|(_, span)| span.last.wchar.is_none())
    };
    let is_reader = |group: &Group| {
        let waits = || group.bins.iter().zip(&left).filter(|(bin, _)| bin.waited >= WAIT_MIN);
        let (count, with) = (waits().count(), waits().filter(|(_, (bytes, _))| *bytes > 0.0).count());
        let meanwhile: f64 = waits().map(|(_, (bytes, _))| bytes).sum();
        count >= INTERVALS_MIN && with as f64 >= MOST * count as f64 && meanwhile >= MOST * all
    };
    let is_one = |group: &&mut Group| group.weight() <= 0.0 && is_reader(group) && is_unread(group);
    let mut readers: Vec<&mut Group> = groups.iter_mut().filter(is_one).collect();
    for (at, (bytes, count)) in left.iter().enumerate() {
        let waited: f64 = readers.iter().map(|group| group.bins[at].waited).sum();
        for group in readers.iter_mut().filter(|_| waited > 0.0) {
            let share = group.bins[at].waited / waited;
            let add = |bin: &mut Bin| {
                bin.read += bytes * share;
                bin.reads += count * share;
            };
            add(&mut group.bins[at]);
            add(&mut group.total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cgroups::Cgroups;
    use super::super::group::groups;
    use super::*;
    use floodline_record::units::{Bytes, Count, Nanos};
    use floodline_testkit::{Fixture, grows};

    /// What a program that waits 200 ms of each second reads, by the twin. The disk makes `reads` reads of 64 KiB a second.
    fn read(reads: u64, is_readable: bool) -> f64 {
        let fixture = Fixture::healthy()
            .disk("sda", move |t, row| {
                row.read = grows(t, 0, (reads << 16) as f64);
                row.reads = grows(t, 0, reads as f64);
            })
            .process("search", 77, "/", move |t, row| {
                row.blkio_delay = Some(Nanos((t * 2e8) as u64));
                let own = is_readable.then_some(0);
                (row.wchar, row.rchar) = (own.map(Bytes), own.map(Bytes));
                (row.syscr, row.syscw) = (own.map(Count), own.map(Count));
                (row.read_bytes, row.write_bytes) = (own.map(Bytes), own.map(Bytes));
            });
        let recorded = Recorded::from_records(&fixture.records());
        let mut groups = groups(&recorded, &Cgroups::of(&recorded));
        take_reads(&recorded, &mut groups);
        groups.iter().find(|group| group.comm == b"search").map_or(0.0, |group| group.total.read)
    }

    #[test]
    fn a_program_that_waits_while_unexplained_reads_are_made_is_their_reader() {
        assert!(read(16, false) > 4e6, "{}", read(16, false));
        assert_eq!(read(16, true), 0.0, "its counters tell that it does not read");
        assert_eq!(read(0, false), 0.0, "it waits for something else");
    }
}
