// SPDX-License-Identifier: MIT OR Apache-2.0
//! debugfs `bdi/NAME/stats`: the state of a backing device. Up to 6.9 it covers only the root wb,
//! so on a container host it is nearly empty. Mirrors mm/backing-dev.c (bdi_debug_stats_show).

use super::{Parsed, scan};
use floodline_record::sample::BdiRow;

const KIB: u64 = 1024;

/// Fills the fields that come from stats.
pub fn parse(text: &[u8], row: &mut BdiRow) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let (key, value) = scan::split(line, b':');
        let size = value.strip_suffix(b" kB").unwrap_or_default();
        match key {
            b"BdiWriteback" => notes.set(&mut row.writeback, size, KIB),
            b"BdiReclaimable" => notes.set(&mut row.reclaimable, size, KIB),
            b"BdiDirtyThresh" => notes.set(&mut row.dirty_thresh, size, KIB),
            b"BdiDirtied" => notes.set(&mut row.dirtied, size, KIB),
            b"BdiWritten" => notes.set(&mut row.written, size, KIB),
            b"BdiWriteBandwidth" => {
                notes.set(&mut row.write_bandwidth, value.strip_suffix(b" kBps").unwrap_or_default(), KIB);
            }
            b"b_dirty" => notes.set(&mut row.b_dirty, value, 1),
            b"b_io" => notes.set(&mut row.b_io, value, 1),
            b"b_more_io" => notes.set(&mut row.b_more_io, value, 1),
            b"b_dirty_time" => notes.set(&mut row.b_dirty_time, value, 1),
            _ => {}
        }
    }
    notes.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::{Bytes, BytesPerSecond, Count};

    const V6_1: &str = "\
BdiWriteback:                8 kB
BdiReclaimable:         141200 kB
BdiDirtyThresh:         593444 kB
DirtyThresh:           1186888 kB
BackgroundThresh:       592712 kB
BdiDirtied:            8239780 kB
BdiWritten:            7651988 kB
BdiWriteBandwidth:      102400 kBps
b_dirty:                     3
b_io:                        1
b_more_io:                   0
b_dirty_time:                2
bdi_list:                    1
state:                       1
";

    fn read(text: &[u8]) -> (BdiRow, bool) {
        let mut row = BdiRow::default();
        let parsed = parse(text, &mut row);
        (row, parsed.is_ok())
    }

    #[test]
    fn kib_become_bytes() {
        let expect = BdiRow {
            writeback: Some(Bytes(8 << 10)),
            reclaimable: Some(Bytes(141_200 << 10)),
            dirty_thresh: Some(Bytes(593_444 << 10)),
            dirtied: Some(Bytes(8_239_780 << 10)),
            written: Some(Bytes(7_651_988 << 10)),
            write_bandwidth: Some(BytesPerSecond(102_400 << 10)),
            b_dirty: Some(Count(3)),
            b_io: Some(Count(1)),
            b_more_io: Some(Count(0)),
            b_dirty_time: Some(Count(2)),
            ..BdiRow::default()
        };
        assert_eq!(read(V6_1.as_bytes()), (expect, true));
    }

    #[test]
    fn another_unit_is_not_guessed_at() {
        let (row, understood) = read(b"BdiWriteback: 8 MB\nBdiWriteBandwidth: 7 kB\nb_io: 1\n");
        assert!(!understood);
        assert_eq!(row, BdiRow { b_io: Some(Count(1)), ..BdiRow::default() });
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(V6_1, read);
        testing::a_cut_never_lies(V6_1, read);
    }
}
