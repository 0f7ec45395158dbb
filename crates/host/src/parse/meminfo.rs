// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/meminfo`. Its "kB" are KiB. Mirrors fs/proc/meminfo.c.

use super::{Parsed, scan};
use floodline_record::sample::HostRow;

const KIB: u64 = 1024;

/// Fills the fields that come from meminfo.
pub fn parse(text: &[u8], row: &mut HostRow) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let (key, value) = scan::split(line, b':');
        let field = match key {
            b"MemTotal" => &mut row.mem_total,
            b"MemFree" => &mut row.mem_free,
            b"MemAvailable" => &mut row.mem_available,
            b"Cached" => &mut row.cached,
            b"Dirty" => &mut row.mem_dirty,
            b"Writeback" => &mut row.mem_writeback,
            _ => continue,
        };
        notes.set(field, value.strip_suffix(b" kB").unwrap_or_default(), KIB);
    }
    notes.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::Bytes;

    const V6_18: &str = "\
MemTotal:        8147072 kB
MemFree:         5474240 kB
MemAvailable:    6894592 kB
Buffers:          181168 kB
Cached:          1166736 kB
SwapCached:            0 kB
Active:           466004 kB
Dirty:            141200 kB
Writeback:             8 kB
AnonPages:         20008 kB
NFS_Unstable:          0 kB
WritebackTmp:          0 kB
HugePages_Total:       0
DirectMap4k:       30656 kB
";

    fn read(text: &[u8]) -> (HostRow, bool) {
        let mut row = HostRow::default();
        let parsed = parse(text, &mut row);
        (row, parsed.is_ok())
    }

    #[test]
    fn kib_become_bytes() {
        let (row, understood) = read(V6_18.as_bytes());
        assert!(understood);
        let expect = HostRow {
            mem_total: Some(Bytes(8_147_072 << 10)),
            mem_free: Some(Bytes(5_474_240 << 10)),
            mem_available: Some(Bytes(6_894_592 << 10)),
            cached: Some(Bytes(1_166_736 << 10)),
            mem_dirty: Some(Bytes(141_200 << 10)),
            mem_writeback: Some(Bytes(8 << 10)),
            ..HostRow::default()
        };
        assert_eq!(row, expect);
    }

    #[test]
    fn what_does_not_fit_is_unknown_and_the_rest_is_kept() {
        let (row, understood) = read(b"MemTotal: 18446744073709551615 kB\nDirty: 4 kB\nWriteback: 4 MB\n");
        assert!(!understood);
        assert_eq!(row, HostRow { mem_dirty: Some(Bytes(4096)), ..HostRow::default() });
        assert!(!read(b"").1, "an empty meminfo is no meminfo");
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(V6_18, read);
        testing::a_cut_never_lies(V6_18, read);
    }
}
