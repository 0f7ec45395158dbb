// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the arithmetic on one host: limits that stay the same, and memory that shrinks.

use super::judge;
use crate::change::Change;
use crate::row::{Cause, Row, Verdict};
use floodline_record::units::{Bytes, Pages};
use floodline_testkit::{Fixture, mib, mib_pages};

const MIB: u64 = 1 << 20;

/// A host of 1 GiB whose programs use so much beside the page cache, with so much unwritten data.
fn host(programs: f64, unwritten: f64) -> Fixture {
    Fixture::healthy()
        .settings((0, 400 * MIB, 0, 200 * MIB))
        .facts(|facts| facts.mem_total = Some(Bytes(mib(1024.0))))
        .host(move |_, row| {
            row.mem_total = Some(Bytes(mib(1024.0)));
            row.nr_inactive_file = Some(mib_pages(600.0));
            row.nr_active_file = Some(mib_pages(100.0));
            row.nr_free_pages = Some(mib_pages(324.0 - programs));
            row.nr_mapped = Some(mib_pages(3.0));
            row.nr_dirty = Some(mib_pages(unwritten));
            row.nr_writeback = Some(Pages(0));
            (row.nr_dirty_threshold, row.nr_dirty_background_threshold) = (None, None);
        })
}

fn judged(fixture: &Fixture, kernel: Option<&str>, memory: Option<&str>) -> Row {
    let change = Change::parse::<&str>(&[], kernel, None, memory).expect("a change");
    judge(&fixture.window(), "host.flr", &change)
}

#[test]
fn memory_that_programs_nearly_fill_is_tight_and_memory_they_exceed_is_too_small() {
    let check = |programs, memory, expect| {
        let row = judged(&host(programs, 0.1), None, Some(memory));
        assert_eq!((row.verdict, row.cause), expect, "{programs} MiB in {memory}: {}", row.finding);
    };
    let too_small = Cause::MemoryTooSmall;
    check(107.0, "100M", (Verdict::Suffers, too_small));
    check(107.0, "128M", (Verdict::Tight, too_small));
    check(107.0, "200M", (Verdict::Tight, too_small));
    check(107.0, "512M", (Verdict::Fine, Cause::WideMargin));
    // More memory is no matter of what fits.
    check(300.0, "2G", (Verdict::Fine, Cause::WideMargin));
    let row = judged(&host(107.0, 0.1), None, Some("128M"));
    assert!(
        row.finding.starts_with("Up to 107 MiB are in use beside the page cache, and 21.0 MiB are left"),
        "{}",
        row.finding
    );
}

#[test]
fn a_limit_that_is_near_and_stays_the_same_is_named() {
    let near = judged(&host(107.0, 290.0), Some("6.18"), None);
    assert_eq!((near.verdict, near.cause), (Verdict::Fine, Cause::SameLimit), "{near:?}");
    assert!(near.finding.contains("the change does not make that limit smaller"), "{}", near.finding);
    let far = judged(&host(107.0, 1.0), Some("6.18"), None);
    assert_eq!((far.verdict, far.cause), (Verdict::Fine, Cause::WideMargin), "{far:?}");
}
