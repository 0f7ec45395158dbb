// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cgroup's `memory.stat`. Version 1 counts hierarchically in its `total_*` lines, which are the
//! version 2 values under older names. Both kinds in one match: the file is read once per cgroup and
//! sample, and most of its lines are not needed. Mirrors mm/memcontrol.c (memory_stat_format).

use super::{Parsed, scan};
use floodline_record::sample::CgroupRow;

/// Fills the fields that come from memory.stat of the unified hierarchy.
pub fn parse(text: &[u8], row: &mut CgroupRow) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let (key, value) = scan::split(line, b' ');
        match key {
            b"anon" => notes.set(&mut row.anon, value, 1),
            b"file" => notes.set(&mut row.file, value, 1),
            b"kernel" => notes.set(&mut row.kernel, value, 1),
            b"shmem" => notes.set(&mut row.shmem, value, 1),
            b"file_mapped" => notes.set(&mut row.file_mapped, value, 1),
            b"file_dirty" => notes.set(&mut row.file_dirty, value, 1),
            b"file_writeback" => notes.set(&mut row.file_writeback, value, 1),
            b"inactive_file" => notes.set(&mut row.inactive_file, value, 1),
            b"active_file" => notes.set(&mut row.active_file, value, 1),
            b"slab_reclaimable" => notes.set(&mut row.slab_reclaimable, value, 1),
            b"pgfault" => notes.set(&mut row.pgfault, value, 1),
            b"pgmajfault" => notes.set(&mut row.pgmajfault, value, 1),
            // Counted together with anonymous pages until 5.9.
            b"workingset_refault_file" => notes.set(&mut row.workingset_refault_file, value, 1),
            _ => {}
        }
    }
    notes.finish()
}

/// Fills the same fields from memory.stat of the version 1 hierarchy.
pub fn parse_v1(text: &[u8], row: &mut CgroupRow) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let Some(line) = line.strip_prefix(b"total_") else { continue };
        let (key, value) = scan::split(line, b' ');
        match key {
            b"rss" => notes.set(&mut row.anon, value, 1),
            b"cache" => notes.set(&mut row.file, value, 1),
            b"shmem" => notes.set(&mut row.shmem, value, 1),
            b"mapped_file" => notes.set(&mut row.file_mapped, value, 1),
            b"dirty" => notes.set(&mut row.file_dirty, value, 1),
            b"writeback" => notes.set(&mut row.file_writeback, value, 1),
            b"inactive_file" => notes.set(&mut row.inactive_file, value, 1),
            b"active_file" => notes.set(&mut row.active_file, value, 1),
            b"pgfault" => notes.set(&mut row.pgfault, value, 1),
            b"pgmajfault" => notes.set(&mut row.pgmajfault, value, 1),
            b"workingset_refault_file" => notes.set(&mut row.workingset_refault_file, value, 1),
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

    const V6_12: &str = "\
anon 9351168
file 1194807296
kernel 163840000
kernel_stack 1572864
slab 150000000
sock 0
shmem 8998912
file_mapped 10911744
file_dirty 144666624
file_writeback 4096
swapcached 0
inactive_anon 9351168
active_anon 1597440
inactive_file 710422528
active_file 475385856
unevictable 18501632
slab_reclaimable 137383936
slab_unreclaimable 28868608
workingset_refault_anon 0
workingset_refault_file 745229
pgfault 8442851
pgmajfault 2195
";
    const V1_6_18: &str = "\
cache 9183232
rss 11034624
dirty 28672
hierarchical_memory_limit 9223372036854771712
total_cache 1194807296
total_rss 20611072
total_shmem 8998912
total_mapped_file 10911744
total_dirty 144666624
total_writeback 0
total_workingset_refault_anon 0
total_workingset_refault_file 745229
total_pgfault 8442851
total_pgmajfault 2195
total_inactive_file 710422528
total_active_file 475385856
total_unevictable 18501632
";

    fn read(parse: impl Fn(&[u8], &mut CgroupRow) -> Parsed) -> impl Fn(&[u8]) -> (CgroupRow, bool) {
        move |text| {
            let mut row = CgroupRow::default();
            let parsed = parse(text, &mut row);
            (row, parsed.is_ok())
        }
    }

    #[test]
    fn both_versions_fill_the_same_fields() {
        let v2 = CgroupRow {
            anon: Some(Bytes(9_351_168)),
            file: Some(Bytes(1_194_807_296)),
            kernel: Some(Bytes(163_840_000)),
            shmem: Some(Bytes(8_998_912)),
            file_mapped: Some(Bytes(10_911_744)),
            file_dirty: Some(Bytes(144_666_624)),
            file_writeback: Some(Bytes(4096)),
            inactive_file: Some(Bytes(710_422_528)),
            active_file: Some(Bytes(475_385_856)),
            slab_reclaimable: Some(Bytes(137_383_936)),
            pgfault: Some(Count(8_442_851)),
            pgmajfault: Some(Count(2195)),
            workingset_refault_file: Some(Count(745_229)),
            ..CgroupRow::default()
        };
        assert_eq!(read(parse)(V6_12.as_bytes()), (v2.clone(), true));
        let v1 = CgroupRow {
            anon: Some(Bytes(20_611_072)),
            file_writeback: Some(Bytes(0)),
            kernel: None,
            slab_reclaimable: None,
            ..v2
        };
        assert_eq!(read(parse_v1)(V1_6_18.as_bytes()), (v1, true));
    }

    #[test]
    fn one_version_is_not_taken_for_the_other() {
        assert_eq!(read(parse_v1)(V6_12.as_bytes()), (CgroupRow::default(), false));
        let (row, _) = read(parse)(V1_6_18.as_bytes());
        assert_eq!(row, CgroupRow::default());
    }

    #[test]
    fn wrapped_negatives_are_kept_and_nonsense_is_not() {
        let (row, understood) = read(parse)(b"file_dirty 18446744073709547520\nfile -4096\nanon\nshmem 1 2\n");
        assert!(!understood);
        assert_eq!(row, CgroupRow { file_dirty: Some(Bytes(u64::MAX - 4095)), ..CgroupRow::default() });
    }

    #[test]
    fn any_bytes_are_survived_of_version_1() {
        testing::survives_anything(V1_6_18, read(parse_v1));
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(V6_12, read(parse));
        testing::a_cut_never_lies(V6_12, read(parse));
        testing::a_cut_never_lies(V1_6_18, read(parse_v1));
    }
}
