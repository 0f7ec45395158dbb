// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/diskstats`: one line per block device, whole or partition. Sectors are 512 bytes whatever
//! the device says. Mirrors block/genhd.c (diskstats_show).

use super::{Parsed, scan};
use floodline_record::id::DevId;
use floodline_record::sample::DiskRow;
use floodline_record::units::Quantity;

const SECTOR: u64 = 512;
const MS: u64 = 1_000_000;

/// Passes on every device: number, name and counters. All supported kernels have the first 11 columns. Discards came
/// with
/// 4.18 and flushes with 5.5.
pub fn parse(text: &[u8], mut each: impl FnMut(DevId, &[u8], DiskRow)) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let mut words = scan::words(line);
        let (Some(major), Some(minor), Some(name)) = (words.next(), words.next(), words.next()) else {
            notes.flaw("major, minor and name");
            continue;
        };
        let part = |digits| scan::number(digits).and_then(|value| u32::try_from(value).ok());
        let (Some(major), Some(minor)) = (part(major), part(minor)) else {
            notes.flaw("a device number");
            continue;
        };
        let mut columns = [&[][..]; 17];
        let mut count = 0;
        for (column, word) in columns.iter_mut().zip(words) {
            *column = word;
            count += 1;
        }
        if count < 11 {
            notes.flaw("at least 11 columns");
            continue;
        }
        let columns = &columns[..count];
        let mut row = DiskRow::default();
        set(&mut notes, columns, 1, &mut row.reads, 1);
        set(&mut notes, columns, 2, &mut row.reads_merged, 1);
        set(&mut notes, columns, 3, &mut row.read, SECTOR);
        set(&mut notes, columns, 4, &mut row.read_time, MS);
        set(&mut notes, columns, 5, &mut row.writes, 1);
        set(&mut notes, columns, 6, &mut row.writes_merged, 1);
        set(&mut notes, columns, 7, &mut row.written, SECTOR);
        set(&mut notes, columns, 8, &mut row.write_time, MS);
        set(&mut notes, columns, 9, &mut row.in_flight, 1);
        set(&mut notes, columns, 10, &mut row.io_time, MS);
        set(&mut notes, columns, 11, &mut row.weighted_io_time, MS);
        set(&mut notes, columns, 12, &mut row.discards, 1);
        set(&mut notes, columns, 14, &mut row.discarded, SECTOR);
        set(&mut notes, columns, 16, &mut row.flushes, 1);
        set(&mut notes, columns, 17, &mut row.flush_time, MS);
        each(DevId { major, minor }, name, row);
    }
    notes.finish_maybe_empty()
}

/// Sets a field from a column, counted from 1 as the kernel's documentation does; one that this kernel
/// does not print stays unknown.
fn set<Q: Quantity>(notes: &mut scan::Notes, columns: &[&[u8]], index: usize, field: &mut Option<Q>, scale: u64) {
    if let Some(digits) = columns.get(index - 1) {
        notes.set(field, digits, scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::{Bytes, Count, Nanos};

    const V6_18: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 23811 10211 1853322 7321 91022 87121 15304208 190022 3 61020 199931 12 0 4096 4 991 2584
";
    const V4_14: &str = "   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11\n";

    fn read(text: &[u8]) -> (Vec<(String, String, DiskRow)>, bool) {
        let mut rows = Vec::new();
        let parsed = parse(text, |dev, name, row| {
            rows.push((dev.to_string(), String::from_utf8_lossy(name).into_owned(), row));
        });
        (rows, parsed.is_ok())
    }

    #[test]
    fn columns_of_new_and_old_kernels_are_read() {
        let (rows, understood) = read(V6_18.as_bytes());
        assert!(understood);
        let expect = DiskRow {
            reads: Some(Count(23_811)),
            reads_merged: Some(Count(10_211)),
            read: Some(Bytes(1_853_322 * 512)),
            read_time: Some(Nanos(7_321_000_000)),
            writes: Some(Count(91_022)),
            writes_merged: Some(Count(87_121)),
            written: Some(Bytes(15_304_208 * 512)),
            write_time: Some(Nanos(190_022_000_000)),
            in_flight: Some(Count(3)),
            io_time: Some(Nanos(61_020_000_000)),
            weighted_io_time: Some(Nanos(199_931_000_000)),
            discards: Some(Count(12)),
            discarded: Some(Bytes(4096 * 512)),
            flushes: Some(Count(991)),
            flush_time: Some(Nanos(2_584_000_000)),
        };
        assert_eq!(rows[1], ("254:0".into(), "vda".into(), expect));
        let (rows, understood) = read(V4_14.as_bytes());
        assert!(understood);
        assert_eq!((rows[0].2.weighted_io_time, rows[0].2.discards), (Some(Nanos(11_000_000)), None));
    }

    #[test]
    fn a_bad_line_costs_only_itself() {
        let (rows, understood) =
            read(b"8 0 sda 1 2\n8 x sdb 1 2 3 4 5 6 7 8 9 10 11\n\n8 2 sdc 1 2 3 4 5 6 7 8 -1 10 11\n");
        assert!(!understood);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].2.in_flight, rows[0].2.writes), (None, Some(Count(5))));
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(V6_18, read);
        testing::a_cut_never_lies(V6_18, |bytes| {
            let (rows, understood) = read(bytes);
            (rows.into_iter().nth(1).map(|(_, _, row)| row).unwrap_or_default(), understood)
        });
    }
}
