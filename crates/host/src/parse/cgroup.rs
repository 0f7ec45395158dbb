// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `cgroup.*` files of a version 2 cgroup: controllers, descendants, populated. Mirrors
//! kernel/cgroup/cgroup.c.

use super::{Flaw, Parsed, scan};
use floodline_record::sample::CgroupRow;
use floodline_record::units::Bits;

/// Bit of the memory controller in the controllers and subtree_control columns.
pub const MEMORY: u64 = 1;
/// Bit of the io controller.
pub const IO: u64 = 2;

/// `cgroup.controllers` and `cgroup.subtree_control`: one line of names, possibly an empty one.
pub fn controllers(text: &[u8]) -> Result<Bits, Flaw> {
    // The kernel prints no newline when there is no controller at all.
    let line = if text.is_empty() { text } else { text.strip_suffix(b"\n").ok_or(Flaw("a newline at the end"))? };
    let mut bits = 0;
    for name in scan::words(line) {
        match name {
            b"memory" => bits |= MEMORY,
            b"io" => bits |= IO,
            name if name.iter().all(|&b| b.is_ascii_lowercase() || b == b'_') => {}
            _ => return Err(Flaw("names of controllers")),
        }
    }
    Ok(Bits(bits))
}

/// Fills the fields that come from `cgroup.stat`.
pub fn stat(text: &[u8], row: &mut CgroupRow) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let (key, value) = scan::split(line, b' ');
        match key {
            b"nr_descendants" => notes.set(&mut row.nr_descendants, value, 1),
            b"nr_dying_descendants" => notes.set(&mut row.nr_dying_descendants, value, 1),
            b"nr_dying_subsys_memory" => notes.set(&mut row.nr_dying_subsys_memory, value, 1),
            _ => {}
        }
    }
    notes.finish()
}

/// Fills the field that comes from `cgroup.events`.
pub fn events(text: &[u8], row: &mut CgroupRow) -> Parsed {
    let mut notes = scan::Notes::default();
    for line in notes.lines(text) {
        let (key, value) = scan::split(line, b' ');
        match (key, value) {
            (b"populated", b"0" | b"1") => notes.set(&mut row.populated, value, 1),
            (b"populated", _) => notes.flaw("populated 0 or 1"),
            _ => {}
        }
    }
    notes.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::testing;
    use floodline_record::units::{Count, Flag};

    const STAT_6_18: &str =
        "nr_descendants 71\nnr_subsys_memory 72\nnr_dying_descendants 3\nnr_dying_subsys_memory 1\n";
    const EVENTS_6_12: &str = "populated 1\nfrozen 0\n";

    fn read(parse: impl Fn(&[u8], &mut CgroupRow) -> Parsed) -> impl Fn(&[u8]) -> (CgroupRow, bool) {
        move |text| {
            let mut row = CgroupRow::default();
            let parsed = parse(text, &mut row);
            (row, parsed.is_ok())
        }
    }

    #[test]
    fn controllers_are_bits() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(controllers(text.as_bytes()).ok(), expect.map(Bits), "{text:?}");
        };
        check("cpuset cpu io memory hugetlb pids rdma misc\n", Some(3));
        check("memory pids\n", Some(1));
        check("cpu io\n", Some(2));
        check("\n", Some(0));
        check("", Some(0));
        check("cpu memo", None);
        check("\x1b[31m memory\n", None);
    }

    #[test]
    fn dying_descendants_are_told_apart() {
        let expect = CgroupRow {
            nr_descendants: Some(Count(71)),
            nr_dying_descendants: Some(Count(3)),
            nr_dying_subsys_memory: Some(Count(1)),
            ..CgroupRow::default()
        };
        assert_eq!(read(stat)(STAT_6_18.as_bytes()), (expect.clone(), true));
        let older = CgroupRow { nr_dying_subsys_memory: None, ..expect };
        assert_eq!(read(stat)(b"nr_descendants 71\nnr_dying_descendants 3\n"), (older, true));
    }

    #[test]
    fn populated_is_yes_or_no() {
        let flag = |value| CgroupRow { populated: value, ..CgroupRow::default() };
        assert_eq!(read(events)(EVENTS_6_12.as_bytes()), (flag(Some(Flag(1))), true));
        assert_eq!(read(events)(b"populated 0\n"), (flag(Some(Flag(0))), true));
        assert_eq!(read(events)(b"populated 7\n"), (flag(None), false));
    }

    #[test]
    fn any_bytes_are_survived_as_controllers() {
        testing::survives_anything("cpuset io memory\n", |bytes| {
            let _ = controllers(bytes);
        });
    }

    #[test]
    fn any_bytes_are_survived_as_stat() {
        testing::survives_anything(STAT_6_18, read(stat));
    }

    #[test]
    fn any_bytes_are_survived_as_events() {
        testing::survives_anything(EVENTS_6_12, read(events));
    }

    #[test]
    fn a_cut_never_lies() {
        testing::a_cut_never_lies(STAT_6_18, read(stat));
        testing::a_cut_never_lies(EVENTS_6_12, read(events));
    }
}
