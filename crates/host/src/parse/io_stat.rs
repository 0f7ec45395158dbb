// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cgroup's `io.stat`: bytes and requests by device, counted at submission. Mirrors
//! block/blk-cgroup.c (blkcg_print_stat).

use super::{Parsed, scan};
use floodline_record::id::DevId;
use floodline_record::sample::CgroupIoRow;

/// Passes on every device with its counters. Fields of controllers that are off are not printed.
pub fn parse(text: &[u8], mut each: impl FnMut(DevId, CgroupIoRow)) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let mut device = None;
        let mut row = CgroupIoRow::default();
        let mut fields = 0;
        for word in scan::words(line) {
            let (key, value) = scan::split(word, b'=');
            match key {
                b"rbytes" => notes.set(&mut row.rbytes, value, 1),
                b"wbytes" => notes.set(&mut row.wbytes, value, 1),
                b"rios" => notes.set(&mut row.rios, value, 1),
                b"wios" => notes.set(&mut row.wios, value, 1),
                b"dbytes" => notes.set(&mut row.dbytes, value, 1),
                b"dios" => notes.set(&mut row.dios, value, 1),
                b"cost.wait" => notes.set(&mut row.cost_wait, value, 1000),
                _ if word.contains(&b'=') => {}
                // Some kernels print the number of a device without counters, and the next device on the
                // same line: the fields belong to the last number before them.
                _ => {
                    device = scan::dev(word);
                    continue;
                }
            }
            fields += 1;
        }
        match device {
            Some(device) if fields > 0 => each(device, row),
            Some(_) => {}
            None => notes.flaw("a device number"),
        }
    }
    notes.finish_maybe_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::{Bytes, Count, Nanos};

    const V6_12: &str = "\
253:0 rbytes=1024 wbytes=4096 rios=2 wios=1 dbytes=0 dios=0
8:0 rbytes=90430464 wbytes=299008000 rios=8950 wios=1252 dbytes=50331648 dios=3021 cost.wait=2 cost.indebt=0 cost.indelay=0
";

    fn read(text: &[u8]) -> (Vec<(String, CgroupIoRow)>, bool) {
        let mut rows = Vec::new();
        let parsed = parse(text, |dev, row| rows.push((dev.to_string(), row)));
        (rows, parsed.is_ok())
    }

    #[test]
    fn every_device_has_its_counters() {
        let (rows, understood) = read(V6_12.as_bytes());
        assert!(understood);
        let expect = CgroupIoRow {
            rbytes: Some(Bytes(90_430_464)),
            wbytes: Some(Bytes(299_008_000)),
            rios: Some(Count(8950)),
            wios: Some(Count(1252)),
            dbytes: Some(Bytes(50_331_648)),
            dios: Some(Count(3021)),
            cost_wait: Some(Nanos(2000)),
            ..CgroupIoRow::default()
        };
        assert_eq!(rows[1], ("8:0".into(), expect));
        assert_eq!((rows[0].0.as_str(), rows[0].1.cost_wait), ("253:0", None));
        assert_eq!(read(b""), (vec![], true));
    }

    #[test]
    fn a_device_without_fields_lends_its_line_to_the_next() {
        let (rows, understood) = read(b"8:16 8:0 rbytes=1 wbytes=2\n8:32\n");
        assert!(understood);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].0.as_str(), rows[0].1.wbytes), ("8:0", Some(Bytes(2))));
    }

    #[test]
    fn a_bad_field_costs_only_itself() {
        let (rows, understood) = read(b"8:0 rbytes=x wbytes=18446744073709551616 rios=3\n(unknown) rbytes=1\n");
        assert!(!understood);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].1, CgroupIoRow { rios: Some(Count(3)), ..CgroupIoRow::default() });
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
