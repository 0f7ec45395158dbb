// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/PID/io`, of a whole thread group. `write_bytes` counts what was dirtied, not what reached a
//! device. Mirrors fs/proc/base.c (do_io_accounting).

use super::{Parsed, scan};
use floodline_record::sample::ProcessRow;

/// Fills the fields that come from io.
pub fn parse(text: &[u8], row: &mut ProcessRow) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let (key, value) = scan::split(line, b':');
        match key {
            b"rchar" => notes.set(&mut row.rchar, value, 1),
            b"wchar" => notes.set(&mut row.wchar, value, 1),
            b"syscr" => notes.set(&mut row.syscr, value, 1),
            b"syscw" => notes.set(&mut row.syscw, value, 1),
            b"read_bytes" => notes.set(&mut row.read_bytes, value, 1),
            b"write_bytes" => notes.set(&mut row.write_bytes, value, 1),
            b"cancelled_write_bytes" => notes.set(&mut row.cancelled_write_bytes, value, 1),
            _ => {}
        }
    }
    notes.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::{Bytes, Count};

    const ANY: &str = "rchar: 3012938\nwchar: 15\nsyscr: 1023\nsyscw: 3\nread_bytes: 8192\n\
                       write_bytes: 4096\ncancelled_write_bytes: 18446744073709547520\n";

    fn read(text: &[u8]) -> (ProcessRow, bool) {
        let mut row = ProcessRow::default();
        let parsed = parse(text, &mut row);
        (row, parsed.is_ok())
    }

    #[test]
    fn all_seven_counters_are_read() {
        let expect = ProcessRow {
            rchar: Some(Bytes(3_012_938)),
            wchar: Some(Bytes(15)),
            syscr: Some(Count(1023)),
            syscw: Some(Count(3)),
            read_bytes: Some(Bytes(8192)),
            write_bytes: Some(Bytes(4096)),
            cancelled_write_bytes: Some(Bytes(u64::MAX - 4095)),
            ..ProcessRow::default()
        };
        assert_eq!(read(ANY.as_bytes()), (expect, true));
        assert!(!read(b"").1);
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(ANY, read);
        testing::a_cut_never_lies(ANY, read);
    }
}
