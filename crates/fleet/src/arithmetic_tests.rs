// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the arithmetic on one host: limits that stay the same, and memory that shrinks.

use super::judge;
use crate::change::Change;
use crate::row::{Cause, Row, Verdict};
use floodline_record::id::Hierarchy;
use floodline_record::units::{Bytes, Centisecs, Flag, Limit, Pages, Ppm};
use floodline_testkit::{Fixture, mib, mib_pages, secs};

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
fn memory_that_could_not_be_reclaimed_at_any_time_counts() {
    let host = |used_then: f64| {
        host(107.0, 0.1).host(move |t, row| {
            let used = if t < 5.0 { used_then } else { 107.0 };
            row.mem_available = Some(Bytes(mib(1024.0 - used)));
        })
    };
    let check = |used, expect| {
        let row = judged(&host(used), None, Some("512M"));
        assert_eq!((row.verdict, row.cause), expect, "{}", row.finding);
    };
    check(653.0, (Verdict::Suffers, Cause::MemoryTooSmall));
    // The kernel needs some for itself.
    check(490.0, (Verdict::Suffers, Cause::MemoryTooSmall));
    check(400.0, (Verdict::Fine, Cause::WideMargin));
}

#[test]
fn memory_that_only_one_count_has_is_free() {
    // 200 MiB were added late.
    let late = host(307.0, 0.1).host(|_, row| row.mem_free = Some(Bytes(mib(217.0))));
    let check = |host: &Fixture, memory, expect| {
        let row = judged(host, None, Some(memory));
        assert_eq!((row.verdict, row.cause), expect, "{}", row.finding);
        assert!(row.is_firm || row.verdict != Verdict::Suffers, "a twin does not have this memory");
    };
    check(&late, "512M", (Verdict::Fine, Cause::WideMargin));
    check(&late, "100M", (Verdict::Suffers, Cause::MemoryTooSmall));
    // The kernel's caches can be reclaimed.
    let caches = host(107.0, 0.1).host(|_, row| row.mem_available = Some(Bytes(mib(1024.0 - 50.0))));
    check(&caches, "100M", (Verdict::Tight, Cause::MemoryTooSmall));
}

#[test]
fn a_limit_that_is_near_and_stays_the_same_is_named() {
    let near = judged(&host(107.0, 290.0), Some("6.18"), None);
    assert_eq!((near.verdict, near.cause), (Verdict::Fine, Cause::SameLimit), "{near:?}");
    assert!(near.finding.contains("the change does not make that limit smaller"), "{}", near.finding);
    let far = judged(&host(107.0, 1.0), Some("6.18"), None);
    assert_eq!((far.verdict, far.cause), (Verdict::Fine, Cause::WideMargin), "{far:?}");
}

/// A host of version 1 whose cgroup writes bursts of a size, in MiB, a number of times in a minute, to a disk of 50 MB/s.
fn bursts(mib_each: f64, bursts: f64) -> Row {
    let written = move |t: f64| (t / 60.0 * bursts).floor() * mib_each;
    let fixture = Fixture::healthy()
        .hierarchy(Hierarchy::V1Memory)
        .settings((20, 0, 10, 0))
        .seconds(60)
        .host(move |t, row| {
            row.nr_dirtied = Some(mib_pages(written(t)));
            row.nr_dirty = Some(mib_pages(mib_each));
        })
        .disk("sda", move |t, row| {
            row.written = Some(Bytes(mib(written(t))));
            row.io_time = Some(secs(mib(written(t)) as f64 / 50e6));
        })
        .cgroup("/job", move |_, row| {
            row.memory_current = Some(Bytes(mib(64.0)));
            (row.inactive_file, row.active_file) = (Some(Bytes(mib(30.0))), Some(Bytes(0)));
            (row.file_dirty, row.file_writeback) = (Some(Bytes(mib(mib_each))), Some(Bytes(0)));
        })
        .limits("/job", |_, row| row.memory_max = Some(Limit(mib(128.0))))
        .process("dump", 70, "/job", move |t, row| {
            (row.wchar, row.write_bytes) = (Some(Bytes(mib(written(t)))), Some(Bytes(mib(written(t)))));
        });
    let change = Change::parse::<&str>(&[], None, Some("v2"), None).expect("a change");
    judge(&fixture.window(), "host.flr", &change)
}

#[test]
fn a_limit_makes_a_host_suffer_by_the_time_that_its_writers_wait() {
    // 15 % of 94 MiB fit. The rest of 100 MiB takes 1.8 s of the disk each time.
    let often = bursts(100.0, 12.0);
    assert_eq!((often.verdict, often.cause), (Verdict::Suffers, Cause::CgroupLimit), "{often:?}");
    assert!((2.0..6.0).contains(&often.severity), "{}: {}", often.severity, often.finding);
    let once = bursts(100.0, 1.0);
    assert_eq!((once.verdict, once.cause), (Verdict::Suffers, Cause::CgroupLimit), "{once:?}");
    assert!(once.severity < 1.0 && once.finding.contains("By arithmetic they wait about"), "{}", once.finding);
    // Twice the data beyond the limit takes twice the time.
    assert!(bursts(200.0, 12.0).severity > 1.8 * often.severity);
}

#[test]
fn a_starved_cgroup_is_told_with_its_own_limit_and_margin() {
    // Small pages that are rewritten: 4 MiB of them in a cgroup with hardly any memory.
    let fixture = Fixture::healthy()
        .hierarchy(Hierarchy::V1Memory)
        .settings((20, 0, 10, 0))
        .cgroup("/box", |_, row| {
            row.memory_current = Some(Bytes(mib(9.0)));
            (row.file, row.inactive_file, row.active_file) =
                (Some(Bytes(mib(4.0))), Some(Bytes(mib(4.0))), Some(Bytes(0)));
            (row.file_dirty, row.file_writeback) = (Some(Bytes(mib(3.75))), Some(Bytes(0)));
        })
        .limits("/box", |_, row| row.memory_max = Some(Limit(mib(10.0))))
        .process("store", 900, "/box", |t, row| {
            (row.write_bytes, row.wchar) = (Some(Bytes(mib(t))), Some(Bytes(0)));
        });
    let change = Change::parse::<&str>(&[], None, Some("v2"), None).expect("a change");
    let row = judge(&fixture.window(), "host.flr", &change);
    assert_eq!((row.verdict, row.cause), (Verdict::Tight, Cause::StarvedBudget), "{}", row.finding);
    assert!(row.finding.starts_with("/box writes files, and its limit will be "), "{}", row.finding);
    let room = row.limit_then_bytes.unwrap() as f64 / row.demand_bytes.unwrap() as f64;
    assert!(row.margin.is_some_and(|margin| margin < room && room < 1.0), "{row:?}");
    assert_eq!(row.cgroups_over, 1);
}

#[test]
fn data_that_are_never_written_make_a_host_suffer() {
    let check = |now: u64, then: &str, expect| {
        let setting = format!("vm.dirty_writeback_centisecs={then}");
        let change = Change::parse(&[setting], None, None, None).expect("a change");
        let host = host(100.0, 1.0).host(move |_, row| row.dirty_writeback_centisecs = Some(Centisecs(now)));
        let row = judge(&host.window(), "host.flr", &change);
        assert_eq!((row.verdict, row.cause), expect, "{}", row.finding);
    };
    check(500, "0", (Verdict::Suffers, Cause::NeverWritten));
    check(500, "100", (Verdict::NotKnown, Cause::NotSimulated));
    check(0, "0", (Verdict::NotKnown, Cause::NotSimulated));
}

#[test]
fn a_threshold_that_holds_data_back_is_not_raised_by_arithmetic_alone() {
    // A disk of 50 MB/s whose flusher begins at 8 MiB, so that about as much is unwritten.
    let host = |unwritten: f64| {
        let written = |t: f64| mib(t);
        Fixture::healthy()
            .settings((0, 64 * MIB, 0, 8 * MIB))
            .seconds(60)
            .host(move |t, row| {
                row.nr_dirtied = Some(mib_pages(t));
                row.nr_dirty = Some(mib_pages(unwritten));
                row.nr_writeback = Some(Pages(0));
                (row.nr_dirty_threshold, row.nr_dirty_background_threshold) = (None, None);
            })
            .disk("sda", move |t, row| {
                row.written = Some(Bytes(written(t)));
                row.io_time = Some(secs(written(t) as f64 / 50e6));
            })
    };
    let check = |unwritten, bg: u64, expect| {
        let settings = [format!("vm.dirty_bytes={}", 256 * MIB), format!("vm.dirty_background_bytes={}", bg * MIB)];
        let change = Change::parse(&settings, None, None, None).expect("a change");
        let row = judge(&host(unwritten).window(), "host.flr", &change);
        assert_eq!((row.verdict, row.cause), expect, "{unwritten} MiB, {bg} MiB: {}", row.finding);
    };
    check(7.0, 128, (Verdict::Tight, Cause::DirtyCliff));
    check(7.0, 16, (Verdict::Fine, Cause::WideMargin));
    check(0.5, 128, (Verdict::Fine, Cause::WideMargin));
}

#[test]
fn files_that_are_removed_early_are_written_first_above_a_smaller_background_threshold() {
    // Bursts of 100 MiB every 2 s, which no sample shows, beside 5 MiB/s on a disk.
    let host = |burst: f64| {
        host(107.0, 0.1).host(move |t, row| {
            row.nr_dirtied = Some(mib_pages(5.0 * t + burst * (t / 2.0).floor()));
            row.nr_written = Some(mib_pages(5.0 * t));
        })
    };
    let judged = |burst: f64, bytes: u64| {
        let set = [format!("vm.dirty_background_bytes={}", bytes * MIB)];
        let change = Change::parse(&set, None, None, None).expect("a change");
        judge(&host(burst).window(), "host.flr", &change)
    };
    let row = judged(100.0, 20);
    assert_eq!((row.verdict, row.cause), (Verdict::Suffers, Cause::MachineLimit), "{}", row.finding);
    assert!(row.finding.starts_with("Up to 99.9 MiB were dirtied and removed again"), "{}", row.finding);
    assert!(judged(150.0, 20).severity > row.severity);
    // They fit below the new threshold, or are written today as well.
    for (burst, bytes) in [(100.0, 120), (15.0, 20), (100.0, 300)] {
        let row = judged(burst, bytes);
        assert!(row.verdict != Verdict::Suffers, "{burst} {bytes}: {}", row.finding);
    }
}

#[test]
fn a_tight_margin_is_told_with_the_amounts_that_it_is_made_of() {
    let host = Fixture::healthy()
        .kernel("6.12.117")
        .mount("sda", "ext4", "/data", "rw")
        .cgroup("/store", |_, row| {
            row.memory_current = Some(Bytes(mib(64.0)));
            (row.file, row.inactive_file, row.active_file) =
                (Some(Bytes(mib(16.0))), Some(Bytes(mib(16.0))), Some(Bytes(0)));
            (row.file_dirty, row.file_writeback) = (Some(Bytes(mib(1.0))), Some(Bytes(0)));
        })
        .limits("/store", |_, row| row.memory_max = Some(Limit(mib(256.0))))
        .process("store", 900, "/store", |t, row| {
            (row.write_bytes, row.wchar) = (Some(Bytes(mib(t))), Some(Bytes(0)));
        });
    let row = judged(&host, Some("7.2.13"), None);
    assert!(row.finding.starts_with("/store needs room for 16.0 MiB of mapped pages"), "{}", row.finding);
    let amounts: Vec<f64> = row.finding.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [need, room] = amounts[..] else { panic!("{}", row.finding) };
    assert!(row.finding.ends_with(&format!("a margin of {:.1}.", room / need)), "{}", row.finding);
}

#[test]
fn stores_into_the_large_folios_of_a_new_kernel_are_simulated() {
    let judged = |fs_type: &str, written: f64, (now, kernel): (&str, &str)| {
        let host = Fixture::healthy()
            .kernel(now)
            .mount("sda", fs_type, "/data", "rw")
            .cgroup("/store", |_, row| row.file = Some(Bytes(mib(16.0))))
            .process("store", 900, "/store", move |t, row| {
                (row.write_bytes, row.wchar) = (Some(Bytes(mib(t))), Some(Bytes(mib(written * t))));
            });
        judged(&host, Some(kernel), None)
    };
    let wanted = |fs_type, written, kernels: (&str, &str)| {
        let row = judged(fs_type, written, kernels);
        let change = Change::parse::<&str>(&[], Some(kernels.1), None, None).expect("a change");
        let depth = crate::Depth { control: 0.0, ..crate::Depth::WHOLE };
        crate::simulated::is_wanted(&row, &change, depth).is_some()
    };
    assert!(wanted("ext4", 0.0, ("6.12.117", "7.2.13")));
    assert!(!wanted("ext4", 0.0, ("6.12.117", "6.12.43")), "no larger folios");
    assert!(!wanted("ext4", 1.0, ("6.12.117", "7.2.13")), "it writes by calls");
    assert!(!wanted("xfs", 0.0, ("6.12.117", "7.2.13")), "XFS had them before");
    // Reads of Linux 6.1 make them, and write calls do not.
    assert!(wanted("xfs", 0.0, ("6.1.192", "6.12.117")));
    assert!(!wanted("ext4", 0.0, ("6.1.192", "6.12.117")), "neither makes them on ext4");
    // How a file came into the page cache matters only where one of both calls gets them.
    let by_origin = |fs_type, kernels| judged(fs_type, 0.0, kernels).folios_by_origin;
    assert!(by_origin("xfs", ("6.1.192", "6.12.117")) && by_origin("xfs", ("5.10.223", "6.1.192")));
    assert!(!by_origin("xfs", ("5.10.223", "6.12.117")) && !by_origin("ext4", ("6.12.117", "7.2.13")));
}

#[test]
fn a_sick_host_is_not_cleared_of_a_change_that_only_a_simulation_can_judge() {
    let judged = |settings: &[&str]| {
        let change = Change::parse(settings, None, None, None).expect("a change");
        judge(&floodline_testkit::incidents::dirty_cliff().window(), "host.flr", &change)
    };
    let row = judged(&["vm.dirty_expire_centisecs=500"]);
    assert_eq!((row.verdict, row.cause), (Verdict::NotKnown, Cause::NotSimulated), "{}", row.finding);
    assert_eq!(row.sick_already.as_deref(), Some("dirty-cliff"));
}

#[test]
fn a_device_that_holds_writers_below_each_limit_is_named() {
    let notes = |strict: u64| {
        let host = host(107.0, 0.1).bdi("8:0", move |_, row| {
            (row.strict_limit, row.max_ratio) = (Some(Flag(strict)), Some(Ppm(10_000)));
        });
        judged(&host, None, Some("512M")).notes.join(" ")
    };
    assert!(notes(1).contains("sda has strict_limit"), "{}", notes(1));
    assert!(!notes(0).contains("strict_limit"));
}
