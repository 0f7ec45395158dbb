// SPDX-License-Identifier: MIT OR Apache-2.0
//! Version 1 `blkio.throttle.io_service_bytes` and `io_serviced`: one line per device and direction,
//! the same text for bytes and for requests. The `_recursive` files (5.1) have the same shape.
//! Mirrors block/blk-throttle.c (tg_print_rwstat).

use super::{Parsed, scan};
use floodline_record::id::DevId;
use floodline_record::sample::CgroupIoRow;

/// Selects one of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// `io_service_bytes`.
    Bytes,
    /// `io_serviced`.
    Requests,
}

/// Passes on every device with the fields of this file. The lines of one device stand together.
pub fn parse(text: &[u8], counts: Counts, mut each: impl FnMut(DevId, CgroupIoRow)) -> Parsed {
    let mut notes = scan::Notes::default();
    let mut current: Option<(DevId, CgroupIoRow)> = None;
    for line in notes.lines(text) {
        let mut words = scan::words(line);
        let (device, direction, value) = (words.next(), words.next(), words.next());
        let (Some(device), Some(direction)) = (device, direction) else {
            notes.flaw("device, direction and number");
            continue;
        };
        if device == b"Total" {
            continue;
        }
        let Some(device) = scan::dev(device) else {
            notes.flaw("a device number");
            continue;
        };
        if let Some((before, row)) = current.take_if(|(before, _)| *before != device) {
            each(before, row);
        }
        let row = &mut current.get_or_insert_with(|| (device, CgroupIoRow::default())).1;
        let value = value.unwrap_or_default();
        match (direction, counts) {
            (b"Read", Counts::Bytes) => notes.set(&mut row.rbytes, value, 1),
            (b"Write", Counts::Bytes) => notes.set(&mut row.wbytes, value, 1),
            (b"Discard", Counts::Bytes) => notes.set(&mut row.dbytes, value, 1),
            (b"Read", Counts::Requests) => notes.set(&mut row.rios, value, 1),
            (b"Write", Counts::Requests) => notes.set(&mut row.wios, value, 1),
            (b"Discard", Counts::Requests) => notes.set(&mut row.dios, value, 1),
            _ => {}
        }
    }
    if let Some((device, row)) = current {
        each(device, row);
    }
    notes.finish_maybe_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::{Bytes, Count};

    const V5_10: &str = "\
8:0 Read 90430464
8:0 Write 299008
8:0 Sync 90430464
8:0 Async 299008
8:0 Discard 7
8:0 Total 90729472
254:0 Read 1
254:0 Write 2
254:0 Sync 1
254:0 Async 2
254:0 Discard 0
254:0 Total 3
Total 90729475
";

    fn read(text: &[u8], counts: Counts) -> (Vec<(String, CgroupIoRow)>, bool) {
        let mut rows = Vec::new();
        let parsed = parse(text, counts, |dev, row| rows.push((dev.to_string(), row)));
        (rows, parsed.is_ok())
    }

    #[test]
    fn lines_of_one_device_become_one_row() {
        let bytes = CgroupIoRow {
            rbytes: Some(Bytes(90_430_464)),
            wbytes: Some(Bytes(299_008)),
            dbytes: Some(Bytes(7)),
            ..CgroupIoRow::default()
        };
        let (rows, understood) = read(V5_10.as_bytes(), Counts::Bytes);
        assert!(understood);
        assert_eq!(rows[0], ("8:0".into(), bytes));
        assert_eq!(rows.len(), 2);
        let (rows, _) = read(V5_10.as_bytes(), Counts::Requests);
        assert_eq!((rows[1].1.rios, rows[1].1.rbytes), (Some(Count(1)), None));
        assert_eq!(read(b"Total 0\n", Counts::Bytes), (vec![], true));
    }

    #[test]
    fn a_bad_line_costs_only_itself() {
        let (rows, understood) = read(b"8:0 Read\n8:0 Write 3\nx:y Read 1\n8:0\n", Counts::Bytes);
        assert!(!understood);
        assert_eq!(rows, [("8:0".into(), CgroupIoRow { wbytes: Some(Bytes(3)), ..CgroupIoRow::default() })]);
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(V5_10, |bytes| read(bytes, Counts::Requests));
        testing::a_cut_never_lies(V5_10, |bytes| {
            let (rows, understood) = read(bytes, Counts::Bytes);
            (rows.into_iter().nth(1).map(|(_, row)| row).unwrap_or_default(), understood)
        });
    }
}
