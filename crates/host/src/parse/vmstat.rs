// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/vmstat`: page counters, and the thresholds as evaluated for the reader. Keys came and went;
//! one that this kernel does not print stays unknown. Mirrors mm/vmstat.c.

use super::{Parsed, scan};
use floodline_record::sample::HostRow;

/// Fills the fields that come from vmstat.
pub fn parse(text: &[u8], row: &mut HostRow) -> Parsed {
    let mut notes = scan::Notes::default();
    let (mut allocstall, mut inodesteal) = (scan::Sum::None, scan::Sum::None);
    for line in notes.lines(text) {
        let (key, value) = scan::split(line, b' ');
        match key {
            b"nr_dirty" => notes.set(&mut row.nr_dirty, value, 1),
            b"nr_writeback" => notes.set(&mut row.nr_writeback, value, 1),
            b"nr_writeback_temp" => notes.set(&mut row.nr_writeback_temp, value, 1),
            b"nr_unstable" => notes.set(&mut row.nr_unstable, value, 1),
            b"nr_dirtied" => notes.set(&mut row.nr_dirtied, value, 1),
            b"nr_written" => notes.set(&mut row.nr_written, value, 1),
            b"nr_dirty_threshold" => notes.set(&mut row.nr_dirty_threshold, value, 1),
            b"nr_dirty_background_threshold" => notes.set(&mut row.nr_dirty_background_threshold, value, 1),
            b"nr_free_pages" => notes.set(&mut row.nr_free_pages, value, 1),
            b"nr_inactive_file" => notes.set(&mut row.nr_inactive_file, value, 1),
            b"nr_active_file" => notes.set(&mut row.nr_active_file, value, 1),
            b"nr_inactive_anon" => notes.set(&mut row.nr_inactive_anon, value, 1),
            b"nr_active_anon" => notes.set(&mut row.nr_active_anon, value, 1),
            b"nr_unevictable" => notes.set(&mut row.nr_unevictable, value, 1),
            b"nr_mapped" => notes.set(&mut row.nr_mapped, value, 1),
            b"nr_shmem" => notes.set(&mut row.nr_shmem, value, 1),
            b"nr_vmscan_immediate_reclaim" => notes.set(&mut row.nr_vmscan_immediate_reclaim, value, 1),
            b"nr_vmscan_write" => notes.set(&mut row.nr_vmscan_write, value, 1),
            b"nr_throttled_written" => notes.set(&mut row.nr_throttled_written, value, 1),
            // Counted in sectors and printed in KiB.
            b"pgpgin" => notes.set(&mut row.pgpgin, value, 1024),
            b"pgpgout" => notes.set(&mut row.pgpgout, value, 1024),
            b"pgfault" => notes.set(&mut row.pgfault, value, 1),
            b"pgmajfault" => notes.set(&mut row.pgmajfault, value, 1),
            b"pgscan_direct" => notes.set(&mut row.pgscan_direct, value, 1),
            b"pgscan_kswapd" => notes.set(&mut row.pgscan_kswapd, value, 1),
            b"pswpout" => notes.set(&mut row.pswpout, value, 1),
            // One counter until 4.7, then one for each type of zone.
            b"allocstall"
            | b"allocstall_dma"
            | b"allocstall_dma32"
            | b"allocstall_normal"
            | b"allocstall_high"
            | b"allocstall_movable"
            | b"allocstall_device" => notes.add(&mut allocstall, value, 1),
            b"pginodesteal" | b"kswapd_inodesteal" => notes.add(&mut inodesteal, value, 1),
            _ => {}
        }
    }
    row.allocstall = allocstall.value();
    row.inodesteal = inodesteal.value();
    notes.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::{Bytes, Count, Pages};

    const V6_12: &str = "\
nr_free_pages 1368560
nr_zone_inactive_anon 2314
nr_zone_write_pending 35302
nr_inactive_anon 2314
nr_active_anon 389
nr_inactive_file 173442
nr_active_file 116045
nr_unevictable 4515
nr_mapped 2677
nr_dirty 35300
nr_writeback 2
nr_writeback_temp 0
nr_shmem 2197
nr_vmscan_write 0
nr_vmscan_immediate_reclaim 5117
nr_dirtied 2059945
nr_written 1912997
nr_throttled_written 0
nr_dirty_threshold 296722
nr_dirty_background_threshold 148178
pgpgin 1253426
pgpgout 7652104
allocstall_dma 0
allocstall_dma32 0
allocstall_normal 12
allocstall_movable 30
pgfault 21134221
pgmajfault 2195
pgscan_kswapd 0
pgscan_direct 17
pgscan_direct_throttle 0
pginodesteal 3
kswapd_inodesteal 39
pswpout 0
";

    fn read(text: &[u8]) -> (HostRow, bool) {
        let mut row = HostRow::default();
        let parsed = parse(text, &mut row);
        (row, parsed.is_ok())
    }

    #[test]
    fn counters_are_pages_and_those_of_zones_are_summed() {
        let (row, understood) = read(V6_12.as_bytes());
        assert!(understood);
        assert_eq!(row.nr_dirty, Some(Pages(35_300)));
        assert_eq!(row.nr_dirty_threshold, Some(Pages(296_722)));
        assert_eq!(row.nr_dirty_background_threshold, Some(Pages(148_178)));
        assert_eq!(row.pgpgout, Some(Bytes(7_652_104 << 10)));
        assert_eq!(row.allocstall, Some(Count(42)));
        assert_eq!(row.inodesteal, Some(Count(42)));
        assert_eq!(row.pgscan_direct, Some(Pages(17)));
        assert_eq!(row.nr_unstable, None, "not printed by this kernel");
    }

    #[test]
    fn a_sum_with_a_bad_part_is_unknown() {
        let (row, understood) = read(b"allocstall_normal 1\nallocstall_dma x\nallocstall_movable 2\nnr_dirty 7\n");
        assert!(!understood);
        assert_eq!(row, HostRow { nr_dirty: Some(Pages(7)), ..HostRow::default() });
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(V6_12, read);
        // A sum over lines is smaller when lines are missing; the note says so, the value cannot.
        let one_zone = V6_12.replace("allocstall_dma 0\nallocstall_dma32 0\nallocstall_normal 12\n", "");
        testing::a_cut_never_lies(&one_zone.replace("pginodesteal 3\n", ""), read);
    }
}
