// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cgroup's `io.max` and `io.weight`. A device without a limit has no line. Mirrors
//! block/blk-throttle.c (tg_print_limit) and block/blk-iocost.c (ioc_weight_show).

use super::{Flaw, Parsed, scan};
use floodline_record::id::DevId;
use floodline_record::sample::CgroupIoRow;
use floodline_record::units::{Count, Limit};

/// Passes on every device that has a limit.
pub fn parse(text: &[u8], mut each: impl FnMut(DevId, CgroupIoRow)) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let mut words = scan::words(line);
        let Some(device) = words.next().and_then(scan::dev) else {
            notes.flaw("a device number");
            continue;
        };
        let mut row = CgroupIoRow::default();
        for word in words {
            let (key, value) = scan::split(word, b'=');
            let field = match key {
                b"rbps" => &mut row.rbps_max,
                b"wbps" => &mut row.wbps_max,
                b"riops" => &mut row.riops_max,
                b"wiops" => &mut row.wiops_max,
                _ => continue,
            };
            match value {
                b"max" => *field = Some(Limit::MAX),
                digits => notes.set(field, digits, 1),
            }
        }
        each(device, row);
    }
    notes.finish_maybe_empty()
}

/// Returns the default weight of `io.weight`.
pub fn weight(text: &[u8]) -> Result<Count, Flaw> {
    let mut notes = scan::Notes::default();
    let mut weight = None;
    for line in notes.lines(text) {
        if let Some(value) = line.strip_prefix(b"default ") {
            notes.set(&mut weight, value, 1);
        }
    }
    notes.finish()?;
    weight.ok_or(Flaw("a default weight"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;

    const V6_12: &str =
        "8:16 rbps=2097152 wbps=max riops=max wiops=120\n253:0 rbps=max wbps=1048576 riops=max wiops=max\n";

    fn read(text: &[u8]) -> (Vec<(String, CgroupIoRow)>, bool) {
        let mut rows = Vec::new();
        let parsed = parse(text, |dev, row| rows.push((dev.to_string(), row)));
        (rows, parsed.is_ok())
    }

    #[test]
    fn limits_are_numbers_or_max() {
        let (rows, understood) = read(V6_12.as_bytes());
        assert!(understood);
        let expect = CgroupIoRow {
            rbps_max: Some(Limit(2_097_152)),
            wbps_max: Some(Limit::MAX),
            riops_max: Some(Limit::MAX),
            wiops_max: Some(Limit(120)),
            ..CgroupIoRow::default()
        };
        assert_eq!(rows[0], ("8:16".into(), expect));
        assert_eq!(rows[1].1.wbps_max, Some(Limit(1_048_576)));
        assert_eq!(read(b""), (vec![], true));
        let (rows, understood) = read(b"8:0 rbps=ma wbps=7\nx rbps=1\n");
        assert!(!understood);
        assert_eq!(rows, [("8:0".into(), CgroupIoRow { wbps_max: Some(Limit(7)), ..CgroupIoRow::default() })]);
    }

    #[test]
    fn the_default_weight_is_the_one_without_a_device() {
        assert_eq!(weight(b"default 100\n8:16 200\n"), Ok(Count(100)));
        assert_eq!(weight(b"default 100"), Err(Flaw("a newline at the end")));
        assert!(weight(b"8:16 200\n").is_err());
        assert!(weight(b"").is_err());
    }

    #[test]
    fn any_bytes_are_survived_as_weights() {
        testing::survives_anything("default 100\n8:16 200\n", |bytes| {
            let _ = weight(bytes);
        });
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
