// SPDX-License-Identifier: MIT OR Apache-2.0
//! Version 1 `blkio.throttle.{read,write}_{bps,iops}_device`: one line per device that has a limit.
//! Without any limit the file is empty. Mirrors block/blk-throttle.c (tg_print_conf_u64, tg_print_conf_uint).

use super::{Parsed, scan};
use floodline_record::id::DevId;
use floodline_record::units::Limit;

/// Passes on every device that has a limit.
pub fn parse(text: &[u8], mut each: impl FnMut(DevId, Limit)) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let mut words = scan::words(line);
        let (device, digits) = (words.next().and_then(scan::dev), words.next());
        let (Some(device), Some(digits)) = (device, digits) else {
            notes.flaw("a device number and a limit");
            continue;
        };
        let mut limit = None;
        notes.set(&mut limit, digits, 1);
        if let Some(limit) = limit {
            each(device, limit);
        }
    }
    notes.finish_maybe_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::sample::CgroupIoRow;

    /// Captured on 6.1; 2.6.37 to 6.18 print the same shape.
    const V6_1: &str = "254:0 10485760\n";
    const TWO: &str = "8:16 1048576\n254:0 10485760\n";

    fn read(text: &[u8]) -> (Vec<(String, u64)>, bool) {
        let mut limits = Vec::new();
        let parsed = parse(text, |dev, limit| limits.push((dev.to_string(), limit.0)));
        (limits, parsed.is_ok())
    }

    #[test]
    fn a_line_is_a_device_and_its_limit() {
        assert_eq!(read(V6_1.as_bytes()), (vec![("254:0".to_owned(), 10_485_760)], true));
        assert_eq!(read(TWO.as_bytes()).0[0], ("8:16".to_owned(), 1_048_576));
        assert_eq!(read(b""), (vec![], true));
    }

    #[test]
    fn a_bad_line_costs_only_itself() {
        for flawed in ["8:0\n", "8:0 max\n", "sda 7\n", "8:0 18446744073709551616\n", "\n"] {
            let (limits, understood) = read(format!("{flawed}254:0 5\n").as_bytes());
            assert_eq!((limits, understood), (vec![("254:0".to_owned(), 5)], false), "{flawed:?}");
        }
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(TWO, read);
        testing::a_cut_never_lies(TWO, |bytes| {
            let mut row = CgroupIoRow::default();
            let parsed = parse(bytes, |dev, limit| {
                if dev.major == 254 {
                    row.wbps_max = Some(limit);
                }
            });
            (row, parsed.is_ok())
        });
    }
}
