// SPDX-License-Identifier: MIT OR Apache-2.0
//! debugfs `bdi/NAME/wb_stats` (6.10): one block of lines per wb, dying ones included, each beginning
//! with the inode number of its cgroup. Mirrors mm/backing-dev.c (wb_stats_show).

use super::{Parsed, scan};
use floodline_record::sample::WbRow;
use floodline_record::units::Bits;

const KIB: u64 = 1024;

/// Passes on every wb: inode number of its cgroup, and its state.
pub fn parse(text: &[u8], mut each: impl FnMut(u64, WbRow)) -> Parsed {
    let mut notes = scan::Notes::default();
    let mut wb: Option<(u64, WbRow)> = None;
    for line in notes.lines(text) {
        let (key, value) = scan::split(line, b':');
        if key == b"WbCgIno" {
            if let Some((ino, row)) = wb.take() {
                each(ino, row);
            }
            match scan::number(value) {
                Some(ino) => wb = Some((ino, WbRow::default())),
                None => notes.flaw("an inode number"),
            }
            continue;
        }
        let Some((_, row)) = &mut wb else { continue };
        let size = value.strip_suffix(b" kB").unwrap_or_default();
        match key {
            b"WbWriteback" => notes.set(&mut row.writeback, size, KIB),
            b"WbReclaimable" => notes.set(&mut row.reclaimable, size, KIB),
            b"WbDirtyThresh" => notes.set(&mut row.dirty_thresh, size, KIB),
            b"WbDirtied" => notes.set(&mut row.dirtied, size, KIB),
            b"WbWritten" => notes.set(&mut row.written, size, KIB),
            b"WbWriteBandwidth" => {
                notes.set(&mut row.write_bandwidth, value.strip_suffix(b" kBps").unwrap_or_default(), KIB);
            }
            b"b_dirty" => notes.set(&mut row.b_dirty, value, 1),
            b"b_io" => notes.set(&mut row.b_io, value, 1),
            b"b_more_io" => notes.set(&mut row.b_more_io, value, 1),
            b"b_dirty_time" => notes.set(&mut row.b_dirty_time, value, 1),
            b"state" => match scan::hex(value) {
                Some(state) => row.state = Some(Bits(state)),
                None => notes.flaw("a hexadecimal number"),
            },
            _ => {}
        }
    }
    if let Some((ino, row)) = wb {
        each(ino, row);
    }
    notes.finish_maybe_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::{Bytes, BytesPerSecond, Count};

    const V6_12: &str = "\
WbCgIno:                     1
WbWriteback:                 0 kB
WbReclaimable:               4 kB
WbDirtyThresh:          593444 kB
WbDirtied:                 672 kB
WbWritten:                 668 kB
WbWriteBandwidth:       102400 kBps
b_dirty:                     1
b_io:                        0
b_more_io:                   0
b_dirty_time:                0
state:                       5

WbCgIno:                  4091
WbWriteback:               512 kB
WbReclaimable:            1664 kB
WbDirtyThresh:            2176 kB
WbDirtied:              917504 kB
WbWritten:              915328 kB
WbWriteBandwidth:        51188 kBps
b_dirty:                     9
b_io:                        8
b_more_io:                   7
b_dirty_time:                6
state:                       f

";

    fn read(text: &[u8]) -> (Vec<(u64, WbRow)>, bool) {
        let mut rows = Vec::new();
        let parsed = parse(text, |ino, row| rows.push((ino, row)));
        (rows, parsed.is_ok())
    }

    #[test]
    fn every_block_is_one_wb() {
        let (rows, understood) = read(V6_12.as_bytes());
        assert!(understood);
        let expect = WbRow {
            writeback: Some(Bytes(512 << 10)),
            reclaimable: Some(Bytes(1664 << 10)),
            dirty_thresh: Some(Bytes(2176 << 10)),
            dirtied: Some(Bytes(917_504 << 10)),
            written: Some(Bytes(915_328 << 10)),
            write_bandwidth: Some(BytesPerSecond(51_188 << 10)),
            b_dirty: Some(Count(9)),
            b_io: Some(Count(8)),
            b_more_io: Some(Count(7)),
            b_dirty_time: Some(Count(6)),
            state: Some(Bits(15)),
        };
        assert_eq!(rows[1], (4091, expect));
        assert_eq!((rows.len(), rows[0].0), (2, 1));
        assert_eq!(read(b""), (vec![], true));
    }

    #[test]
    fn lines_of_an_unknown_wb_belong_to_nobody() {
        let (rows, understood) = read(b"WbDirtied: 4 kB\nWbCgIno: x\nWbDirtied: 8 kB\nWbCgIno: 7\nstate: g\n");
        assert!(!understood);
        assert_eq!(rows, [(7, WbRow::default())]);
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(V6_12, read);
        testing::a_cut_never_lies(V6_12, |bytes| {
            let (rows, understood) = read(bytes);
            (rows.into_iter().nth(1).map(|(_, row)| row).unwrap_or_default(), understood)
        });
    }
}
