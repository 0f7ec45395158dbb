// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/zoneinfo`: watermarks and reserves of every zone, for the reserve in dirtyable memory.
//! Mirrors mm/vmstat.c (zoneinfo_show_print).

use super::{Parsed, scan};
use floodline_record::sample::ZoneRow;

/// Passes on every zone: node, name and counters. A zone is passed on when it is complete, that is, when the line with
/// its reserves was read.
pub fn parse(text: &[u8], mut each: impl FnMut(u32, &[u8], ZoneRow)) -> Parsed {
    let mut notes = scan::Notes::default();
    let mut zone: Option<(u32, &[u8], ZoneRow)> = None;
    for line in notes.lines(text) {
        if let Some(header) = line.strip_prefix(b"Node ") {
            let mut words = scan::words(header);
            let node = words.next().and_then(|word| word.strip_suffix(b","));
            let node = node.and_then(scan::number).and_then(|node| u32::try_from(node).ok());
            let name = words.nth(1);
            zone = node.zip(name).map(|(node, name)| (node, name, ZoneRow::default()));
            if zone.is_none() {
                notes.flaw("Node N, zone NAME");
            }
            continue;
        }
        let Some((node, name, row)) = &mut zone else { continue };
        let mut words = scan::words(line);
        match (words.next().unwrap_or_default(), words.next().unwrap_or_default()) {
            (b"pages", b"free") => notes.set(&mut row.free, words.next().unwrap_or_default(), 1),
            (b"boost", value) => notes.set(&mut row.boost, value, 1),
            (b"high", value) => notes.set(&mut row.high, value, 1),
            (b"managed", value) => notes.set(&mut row.managed, value, 1),
            (b"protection:", _) => {
                protection(line, row, &mut notes);
                each(*node, name, std::mem::take(row));
                // Lists of per-CPU pages follow; their `high:` is another one.
                zone = None;
            }
            _ => {}
        }
    }
    notes.finish()
}

/// `protection: (0, 2975, 7920, 7920, 7920)`.
fn protection(line: &[u8], row: &mut ZoneRow, notes: &mut scan::Notes) {
    let (_, list) = scan::split(line, b'(');
    let Some(list) = list.strip_suffix(b")") else { return notes.flaw("reserves in parentheses") };
    let mut largest = Some(0);
    for reserve in list.split(|&b| b == b',') {
        largest = largest.zip(scan::number(reserve)).map(|(a, b)| a.max(b));
    }
    match largest {
        Some(pages) => row.protection_max = Some(floodline_record::units::Pages(pages)),
        None => notes.flaw("reserves as numbers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::Pages;

    const V6_18: &str = "\
Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 2314
      nr_dirty     35300
  pages free     3840
        boost    0
        min      23
        low      28
        high     33
        promo    38
        spanned  4095
        present  3998
        managed  3840
        cma      0
        protection: (0, 2975, 7920, 7920, 7920)
      nr_free_pages 3840
  pagesets
    cpu: 0
              count:    0
              high:     0
              batch:    1
  node_unreclaimable:  0
  start_pfn:           1
Node 1, zone   Normal
  pages free     1063219
        boost    7
        high     12843
        managed  1266271
        protection: (0, 0)
  pagesets
    cpu: 0
              high:     378
";

    fn read(text: &[u8]) -> (Vec<(u32, String, ZoneRow)>, bool) {
        let mut rows = Vec::new();
        let parsed = parse(text, |node, name, row| rows.push((node, String::from_utf8_lossy(name).into_owned(), row)));
        (rows, parsed.is_ok())
    }

    #[test]
    fn zones_have_their_watermarks_and_largest_reserve() {
        let (rows, understood) = read(V6_18.as_bytes());
        assert!(understood);
        let row = |managed, high, boost, protection, free| ZoneRow {
            managed: Some(Pages(managed)),
            high: Some(Pages(high)),
            boost: Some(Pages(boost)),
            protection_max: Some(Pages(protection)),
            free: Some(Pages(free)),
        };
        assert_eq!(rows[0], (0, "DMA".into(), row(3840, 33, 0, 7920, 3840)));
        assert_eq!(rows[1], (1, "Normal".into(), row(1_266_271, 12_843, 7, 0, 1_063_219)));
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn reserves_that_are_not_numbers_are_unknown() {
        let (rows, understood) = read(b"Node 0, zone DMA\n  high 3\n  protection: (1, x)\nNode x, zone\n high 4\n");
        assert!(!understood);
        assert_eq!(rows, [(0, "DMA".into(), ZoneRow { high: Some(Pages(3)), ..ZoneRow::default() })]);
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
