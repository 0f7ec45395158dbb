// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks that are full of reads, direct I/O or syncs: which tasks wait, and what is no finding.

use super::*;
use crate::diagnose::check_rule;
use floodline_record::gap::Cause;
use floodline_record::units::{Bytes, Count, Pages};
use floodline_testkit::{Fixture, mib, mib_pages, secs};

/// A disk that reads at its limit all the time, and a mail server that waits for it.
fn reading() -> Fixture {
    Fixture::healthy()
        .host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.98 * t)))
        .disk("sda", |t, row| {
            row.reads = Some(Count((150.0 * t) as u64));
            row.read = Some(Bytes(mib(2.4 * t)));
            row.writes = Some(Count((6.0 * t) as u64));
            row.written = Some(Bytes(mib(0.03 * t)));
            row.write_time = Some(secs(0.9 * t));
            row.io_time = Some(secs(t));
            row.weighted_io_time = Some(secs(8.0 * t));
        })
        .process("search", 700, "/", |t, row| {
            row.read_bytes = Some(Bytes(mib(2.4 * t)));
            row.blkio_delay = Some(secs(0.9 * t));
        })
        .process("smtpd", 701, "/", |t, row| row.blkio_delay = Some(secs(0.4 * t)))
        .seconds(30)
}

#[test]
fn a_disk_full_of_reads_is_named_with_who_waits_for_it() {
    check_rule(&RULE, &reading(), "critical: sda is busy 100 % of the time with reads; smtpd[701] waited at least 1");
}

#[test]
fn waits_for_reads_are_known_beside_a_trace_and_without_delay_accounting() {
    // A trace has syncs and pauses only.
    let traced = reading().traced(&["throttle", "bytes"], vec![]);
    check_rule(&RULE, &traced, "critical: sda is busy 100 % of the time with reads; smtpd[701] waited at least 1");
    let by_state = |asleep: u64| {
        reading().process("search", 700, "/", |_, row| row.blkio_delay = None).process(
            "smtpd",
            701,
            "/",
            move |t, row| {
                let is_asleep = (t as u64) % 10 < asleep;
                (row.blkio_delay, row.state) = (None, Some(Count(u64::from(if is_asleep { b'D' } else { b'S' }))));
            },
        )
    };
    check_rule(&RULE, &by_state(8), "critical: sda is busy 100 % of the time with reads; smtpd[701] waited about 2");
    check_rule(&RULE, &by_state(1), "warning: sda is busy 100 % of the time with reads; smtpd[701] waited about 3");
    let waited = crate::diagnose::first_finding(&RULE, &by_state(8)).waited_s.expect("the states show it");
    assert!((20.0..30.0).contains(&waited), "{waited}");
}

#[test]
fn waits_that_are_no_harm_count_only_where_requests_are_slow() {
    let with = |write_ms: f64, waits: f64| {
        reading()
            .disk("sda", move |t, row| {
                row.write_time = Some(secs(6.0 * write_ms / 1000.0 * t));
                row.read_time = Some(secs(0.7 * t));
            })
            .process("smtpd", 701, "/", move |t, row| row.blkio_delay = Some(secs(waits * t)))
    };
    check_rule(&RULE, &with(5.0, 0.05), "clear:");
    check_rule(&RULE, &with(5.0, 0.4), "critical: sda is busy 100 % of the time with reads; smtpd[701] waited");
    check_rule(&RULE, &with(50.0, 0.05), "warning: sda is busy 100 % of the time with reads; smtpd[701] waited");
}

#[test]
fn a_program_that_makes_one_quick_request_after_the_other_is_not_harmed() {
    // 32 direct writes a second, of 256 KiB each.
    let copying = |write_ms: f64| {
        reading()
            .disk("sda", move |t, row| {
                row.read_time = Some(secs(1.5 * t));
                row.writes = Some(Count((38.0 * t) as u64));
                row.written = Some(Bytes(mib(8.03 * t)));
                row.write_time = Some(secs(38.0 * write_ms / 1000.0 * t));
            })
            .process("smtpd", 701, "/", move |t, row| {
                row.write_bytes = Some(Bytes(mib(8.0 * t)));
                row.blkio_delay = Some(secs(32.0 * write_ms / 1000.0 * t));
            })
    };
    check_rule(&RULE, &copying(7.0), "clear:");
    check_rule(&RULE, &copying(24.0), "critical: sda is busy 100 % of the time with reads; smtpd[701] waited at least");
    // A database waits as long for far fewer bytes: several requests for each commit.
    let commits = copying(7.0).process("smtpd", 701, "/", |t, row| row.write_bytes = Some(Bytes(mib(0.03 * t))));
    check_rule(&RULE, &commits, "critical: sda is busy 100 % of the time with reads; smtpd[701] waited at least");
}

#[test]
fn a_disk_with_room_for_most_of_the_time_harms_only_who_waits_long() {
    // It is busy in the first part of the window.
    let with = |part: f64, waits: f64| {
        let busy = move |t: f64| t.min(30.0 * part);
        reading()
            .host(move |t, row| row.psi_io_some = Some(secs(900.0 + busy(t))))
            .disk("sda", move |t, row| {
                let busy = busy(t);
                row.reads = Some(Count((150.0 * busy) as u64));
                row.read = Some(Bytes(mib(2.4 * busy)));
                row.writes = Some(Count((6.0 * busy) as u64));
                row.written = Some(Bytes(mib(0.03 * busy)));
                row.write_time = Some(secs(0.9 * busy));
                (row.io_time, row.weighted_io_time) = (Some(secs(busy)), Some(secs(8.0 * busy)));
            })
            .process("smtpd", 701, "/", move |t, row| {
                let is_asleep = waits > 0.0 && t as u64 % 7 == 1;
                row.state = Some(Count(u64::from(if is_asleep { b'D' } else { b'S' })));
                row.blkio_delay = Some(secs(waits * t));
            })
    };
    check_rule(&RULE, &with(0.4, 0.05), "info: sda is busy 40 % of the time with reads; smtpd[701] waited");
    check_rule(&RULE, &with(0.4, 0.2), "critical: sda is busy 40 % of the time with reads; smtpd[701] waited");
    check_rule(&RULE, &with(0.6, 0.05), "warning: sda is busy 60 % of the time with reads; smtpd[701] waited");
}

#[test]
fn direct_writes_are_not_told_as_syncs_and_the_headline_names_a_task_that_makes_none() {
    let full = |cleaned_mib: f64| {
        reading()
            .host(move |t, row| {
                row.nr_written = Some(mib_pages(cleaned_mib * t));
                row.nr_dirtied = Some(mib_pages(cleaned_mib * t));
                (row.nr_dirty, row.nr_writeback) = (Some(Pages(2)), Some(Pages(0)));
            })
            .disk("sda", |t, row| {
                (row.reads, row.read) = (Some(Count(0)), Some(Bytes(0)));
                row.writes = Some(Count((45.0 * t) as u64));
                row.written = Some(Bytes(mib(38.0 * t)));
                row.write_time = Some(secs(3.6 * t));
            })
            .process("search", 700, "/", |_, row| row.read_bytes = Some(Bytes(0)))
    };
    let host = |cleaned_mib: f64| {
        (710..713).fold(full(cleaned_mib), |host, pid| {
            host.process("restore", pid, "/", |t, row| {
                row.write_bytes = Some(Bytes(mib(12.6 * t)));
                row.blkio_delay = Some(secs(0.98 * t));
            })
        })
    };
    check_rule(
        &RULE,
        &host(0.0),
        "critical: sda is busy 100 % of the time with writes past the page cache (direct I/O); search[700] waited at least 27 s",
    );
    check_rule(&RULE, &host(37.0), "critical: sda is busy 100 % of the time with writes that tasks sync at once");
}

#[test]
fn writeback_beside_reads_is_not_told_as_no_reason() {
    let summary = |written: f64| {
        let host = reading().host(move |t, row| row.nr_written = Some(floodline_testkit::mib_pages(written * t))).disk(
            "sda",
            move |t, row| {
                row.writes = Some(Count((100.0 * t) as u64));
                row.written = Some(Bytes(mib(1.2 * t)));
                row.write_time = Some(secs(5.0 * t));
            },
        );
        let finding = crate::diagnose::first_finding(&RULE, &host);
        let is_none = finding.summary.ends_with("Writeback is not the reason.");
        assert_eq!(
            finding.brief.because.ends_with("Writeback is not the reason."),
            is_none,
            "{}",
            finding.brief.because
        );
        finding.summary
    };
    assert!(summary(0.0).ends_with("Writeback is not the reason."), "{}", summary(0.0));
    assert!(summary(1.2).ends_with("Writeback is the smaller part of its load."), "{}", summary(1.2));
}

#[test]
fn who_reads_alone_waits_for_himself() {
    let alone = reading().process("smtpd", 701, "/", |_, row| row.blkio_delay = Some(secs(0.0)));
    check_rule(&RULE, &alone, "info: sda is busy 100 % of the time with reads");
}

/// Ten readers fill the disk, each with its own part, and wait for each other.
fn ten_readers(program: fn(u32) -> &'static str) -> Fixture {
    (0..10).fold(
        reading()
            .disk("sda", |t, row| {
                (row.writes, row.write_time) = (Some(Count((0.1 * t) as u64)), Some(secs(0.015 * t)));
                row.read_time = Some(secs(9.8 * t));
            })
            .process("search", 700, "/", |_, row| *row = Default::default())
            .process("smtpd", 701, "/", |_, row| row.blkio_delay = Some(secs(0.0))),
        |host, nth| {
            host.process(program(nth), 710 + nth, "/", |t, row| {
                row.read_bytes = Some(Bytes(mib(0.24 * t)));
                row.blkio_delay = Some(secs(0.98 * t));
            })
        },
    )
}

#[test]
fn readers_of_one_program_wait_for_their_own_reads() {
    let of_one = || ten_readers(|_| "presto");
    check_rule(&RULE, &of_one(), "info: sda is busy 100 % of the time with reads.");
    let finding = crate::diagnose::first_finding(&RULE, &of_one());
    assert_eq!(finding.brief.who, "presto[710], presto[711] and 8 more");
    let with_mail = of_one().process("smtpd", 701, "/", |t, row| {
        (row.read_bytes, row.blkio_delay) = (Some(Bytes(mib(0.01 * t))), Some(secs(0.4 * t)));
    });
    check_rule(&RULE, &with_mail, "critical: sda is busy 100 % of the time with reads; smtpd[701] waited at least 12");
    // A program whose waits no counter shows waits for each of its writes.
    let with_writes = of_one().disk("sda", |t, row| {
        (row.writes, row.write_time) = (Some(Count((6.0 * t) as u64)), Some(secs(0.9 * t)));
    });
    check_rule(&RULE, &with_writes, "warning: sda is busy 100 % of the time with reads; a write takes 150 ms.");
    // Its commits wait behind its reads where it is the program that writes, and the disk flushes its cache.
    let commits = |flushes: f64, host: Fixture| {
        let host = host.disk("sda", move |t, row| {
            (row.writes, row.write_time) = (Some(Count((6.0 * t) as u64)), Some(secs(0.9 * t)));
            row.flushes = Some(Count((flushes * t) as u64));
        });
        host.process("presto", 712, "/", |t, row| row.write_bytes = Some(Bytes(mib(0.01 * t))))
    };
    let waits = "critical: sda is busy 100 % of the time with reads; presto[712] waited at least 29 s.";
    check_rule(&RULE, &commits(4.0, of_one()), waits);
    let slow = "warning: sda is busy 100 % of the time with reads; a write takes 150 ms.";
    check_rule(&RULE, &commits(0.1, of_one()), slow);
    let other = of_one().process("smtpd", 701, "/", |t, row| row.write_bytes = Some(Bytes(mib(0.1 * t))));
    check_rule(&RULE, &commits(4.0, other), slow);
    // Two programs that share the disk delay each other.
    let of_two = ten_readers(|nth| if nth % 2 == 0 { "presto" } else { "tar" });
    check_rule(&RULE, &of_two, "critical: sda is busy 100 % of the time with reads; ");
}

#[test]
fn readers_that_share_a_disk_with_room_are_no_harm_to_each_other() {
    let busy = |t: f64| t.min(12.0);
    let host = ten_readers(|nth| if nth % 2 == 0 { "presto" } else { "tar" })
        .host(move |t, row| row.psi_io_some = Some(secs(900.0 + busy(t))))
        .disk("sda", move |t, row| {
            let busy = busy(t);
            row.reads = Some(Count((150.0 * busy) as u64));
            row.read = Some(Bytes(mib(2.4 * busy)));
            (row.writes, row.written) = (Some(Count((6.0 * busy) as u64)), Some(Bytes(mib(0.03 * busy))));
            row.write_time = Some(secs(0.9 * busy));
            (row.io_time, row.weighted_io_time) = (Some(secs(busy)), Some(secs(8.0 * busy)));
        });
    check_rule(&RULE, &host, "info: sda is busy 40 % of the time with reads; ");
}

#[test]
fn a_disk_whose_only_reader_is_known_harms_no_other_program_even_where_waits_are_unknown() {
    let unknown = |mail_reads: f64| {
        reading()
            .process("search", 700, "/", |_, row| row.blkio_delay = None)
            .process("smtpd", 701, "/", move |t, row| {
                (row.blkio_delay, row.read_bytes) = (None, Some(Bytes(mib(mail_reads * t))));
            })
            .process("nginx", 500, "/", |_, row| row.read_bytes = Some(Bytes(0)))
            .disk("sda", |t, row| {
                (row.writes, row.write_time) = (Some(Count((0.1 * t) as u64)), Some(secs(0.015 * t)));
                row.read_time = Some(secs(8.0 * t));
            })
    };
    check_rule(&RULE, &unknown(0.0), "info: sda is busy 100 % of the time with reads.");
    check_rule(&RULE, &unknown(0.01), "warning: sda is busy 100 % of the time with reads.");
}

#[test]
fn a_process_without_a_request_on_the_disk_waits_for_another_one() {
    let with = |read_mib: f64, writes: u64| {
        reading()
            .disk("sda", move |t, row| {
                row.writes = Some(Count(writes * (t > 20.0) as u64));
                row.write_time = Some(secs(0.15 * writes as f64 * f64::from(t > 20.0)));
            })
            .process("smtpd", 701, "/", move |t, row| {
                row.blkio_delay = Some(secs(0.4 * t));
                row.read_bytes = Some(Bytes(mib(read_mib * t)));
            })
    };
    check_rule(&RULE, &with(0.0, 1), "info: sda is busy 100 % of the time with reads.");
    check_rule(&RULE, &with(0.01, 1), "critical: sda is busy 100 % of the time with reads; smtpd[701] waited");
    check_rule(&RULE, &with(0.0, 20), "critical: sda is busy 100 % of the time with reads; smtpd[701] waited");
}

/// fio reads and writes at random places past the page cache, as much of each. Its parent waited for it at the end.
fn reading_and_writing(reads: f64) -> Fixture {
    let all = move |t: f64| (60.0 * t, reads * t);
    reading()
        .disk("sda", move |t, row| {
            let (writes, reads) = all(t);
            (row.writes, row.written) = (Some(Count(writes as u64)), Some(Bytes((writes * 16_384.0) as u64)));
            (row.reads, row.read) = (Some(Count(reads as u64)), Some(Bytes((reads * 16_384.0) as u64)));
            (row.write_time, row.read_time) = (Some(secs(24.0 * t)), Some(secs(24.0 * t)));
        })
        .process("search", 700, "/", |_, row| *row = Default::default())
        .process("fio", 800, "/", move |t, row| {
            row.write_bytes = Some(Bytes((60.0 * t * 16_384.0) as u64));
            row.read_bytes = Some(Bytes((reads * t * 16_384.0) as u64));
            row.ppid = Some(Count(799));
            if t > 28.0 {
                *row = Default::default();
            }
        })
        .process("fio", 799, "/", move |t, row| {
            let waited = if t > 28.0 { 28.0 } else { 0.0 };
            row.write_bytes = Some(Bytes((60.0 * waited * 16_384.0) as u64));
            row.read_bytes = Some(Bytes((reads * waited * 16_384.0) as u64));
            (row.cminflt, row.children_time) = (Some(Count(waited as u64)), Some(secs(waited / 28.0)));
        })
}

#[test]
fn reads_and_writes_of_one_program_past_the_page_cache_fill_a_disk_together() {
    check_rule(&RULE, &reading_and_writing(58.0), "critical: sda is busy 100 % of the time with reads and writes");
    check_rule(&crate::diagnose::rules::dominant_writer::RULE, &reading_and_writing(58.0), "info: fio[800] makes");
    // One that hardly reads is a writer.
    check_rule(&RULE, &reading_and_writing(2.0), "clear:");
    check_rule(&crate::diagnose::rules::dominant_writer::RULE, &reading_and_writing(2.0), "critical: fio[800] makes");
}

#[test]
fn what_a_parent_inherited_is_its_childrens() {
    let finding = crate::diagnose::first_finding(&RULE, &reading_and_writing(58.0));
    assert!(finding.brief.who.starts_with("fio[800]") && !finding.brief.who.contains("799"), "{}", finding.brief.who);
    assert!(finding.cause.contains("fio[800] does nearly all of it"), "{}", finding.cause);
}

#[test]
fn a_disk_with_room_is_no_finding_and_without_pressure_it_is_not_checked() {
    let half = reading().disk("sda", |t, row| {
        row.io_time = Some(secs(0.5 * t));
        row.weighted_io_time = Some(secs(0.6 * t));
    });
    check_rule(&RULE, &half, "clear: no disk was busy");
    let blind = reading().without(Source::Pressure, Cause::NotRecorded);
    check_rule(&RULE, &blind, "not checked: /proc/pressure/");
}
