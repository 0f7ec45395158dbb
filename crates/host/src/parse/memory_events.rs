// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cgroup's `memory.events`: how often its limits were met. Mirrors mm/memcontrol.c
//! (memory_events_show).

use super::{Parsed, scan};
use floodline_record::sample::CgroupRow;

/// Fills the fields that come from memory.events.
pub fn parse(text: &[u8], row: &mut CgroupRow) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let (key, value) = scan::split(line, b' ');
        match key {
            b"high" => notes.set(&mut row.events_high, value, 1),
            b"max" => notes.set(&mut row.events_max, value, 1),
            b"oom_kill" => notes.set(&mut row.events_oom_kill, value, 1),
            _ => {}
        }
    }
    notes.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::Count;

    const V6_12: &str = "low 0\nhigh 3\nmax 1234567\noom 8\noom_kill 7\noom_group_kill 0\n";

    fn read(text: &[u8]) -> (CgroupRow, bool) {
        let mut row = CgroupRow::default();
        let parsed = parse(text, &mut row);
        (row, parsed.is_ok())
    }

    #[test]
    fn events_are_counted_by_kind() {
        let expect = CgroupRow {
            events_high: Some(Count(3)),
            events_max: Some(Count(1_234_567)),
            events_oom_kill: Some(Count(7)),
            ..CgroupRow::default()
        };
        assert_eq!(read(V6_12.as_bytes()), (expect.clone(), true));
        // 4.5 to 4.12 had no oom_kill.
        assert_eq!(read(b"low 0\nhigh 3\nmax 1234567\noom 8\n").0, CgroupRow { events_oom_kill: None, ..expect });
        assert!(!read(b"").1);
    }

    #[test]
    fn any_bytes_are_survived_and_a_cut_never_lies() {
        testing::survives_anything(V6_12, read);
        testing::a_cut_never_lies(V6_12, read);
    }
}
