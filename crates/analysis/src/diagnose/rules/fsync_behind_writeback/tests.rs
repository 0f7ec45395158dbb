// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writeback before an fsync: which program waits, how long, and what is no finding.

use super::*;
use crate::diagnose::synced::tests::slow;
use crate::diagnose::{check_rule, first_finding};
use floodline_record::gap::Cause;
use floodline_record::traced::waits::Operation;
use floodline_record::units::{Bytes, Nanos, Pages};
use floodline_testkit::incidents::*;
use floodline_testkit::{Fixture, dev_of, grows, mib, mib_pages, secs};

/// A backup that fills the disk for the whole window, and Redis with an append-only file beside it.
fn backup() -> Fixture {
    Fixture::healthy()
        .host(|t, row| {
            // The flusher writes all the time: the level stays near the background threshold.
            row.nr_dirty = Some(Pages(100_000));
            row.nr_dirtied = grows(t, 40_000_000, 24_000.0);
            row.nr_written = grows(t, 38_000_000, 24_000.0);
            row.psi_io_some = Some(secs(900.0 + 0.5 * t));
        })
        .disk("sda", |t, row| {
            row.written = grows(t, mib(9_000.0), 100e6);
            row.writes = grows(t, 9_000, 200.0);
            row.write_time = Some(secs(900.0 + 200.0 * 0.35 * t));
            row.io_time = Some(secs(600.0 + t));
            row.weighted_io_time = Some(secs(900.0 + 70.0 * t));
        })
        .cgroup("/system.slice/backup.service", |_, row| row.file_writeback = Some(Bytes(mib(90.0))))
        .process("tar", 700, "/system.slice/backup.service", |t, row| row.write_bytes = grows(t, 0, 100e6))
        .cgroup("/system.slice/redis.service", |t, row| row.io_some = Some(secs(1.0 + 0.4 * t)))
        .process("redis-server", 701, "/system.slice/redis.service", |t, row| row.write_bytes = grows(t, 0, 1e5))
}

#[test]
fn a_database_behind_a_backup_is_critical_and_both_are_named() {
    check_rule(
        &RULE,
        &backup(),
        "critical: redis-server[701] waits 40 % of the time behind others' writeback: writes on sda take up to 350 ms.",
    );
    let Verdict::Found(findings) = check(&Derived::of(&backup().window())) else { panic!("not found") };
    assert!(findings[0].cause.contains("belongs to /system.slice/backup.service"), "{}", findings[0].cause);
}

#[test]
fn a_disk_that_programs_outrun_is_told_to_the_plan() {
    // 100 MB/s, which is what the disk writes, and half as much again.
    let is_outrun = |pages: f64| {
        let fixture = backup().host(move |t, row| row.nr_dirtied = grows(t, 40_000_000, pages));
        first_finding(&RULE, &fixture).is_outrun
    };
    assert!(is_outrun(36_000.0) && !is_outrun(20_000.0));
    // A disk with time left is not outrun, although what piles up became dirty faster than it writes.
    let busy = |seconds: f64| {
        let fixture = backup().host(|t, row| row.nr_dirtied = grows(t, 40_000_000, 36_000.0));
        let fixture = fixture.disk("sda", move |t, row| {
            let busy = t.min(seconds);
            row.written = grows(busy, mib(9_000.0), 100e6);
            row.writes = grows(busy, 9_000, 200.0);
            row.write_time = Some(secs(900.0 + 200.0 * 0.35 * busy));
            row.io_time = Some(secs(600.0 + busy));
            row.weighted_io_time = Some(secs(900.0 + 70.0 * busy));
        });
        first_finding(&RULE, &fixture).is_outrun
    };
    assert!(busy(10.0) && !busy(4.0));
    // Half of it passes a loop device, whose writes become dirty pages of its backing file.
    let by_loop = |dio: bool| {
        use floodline_record::facts::Stack;
        let fixture = backup()
            .host(move |t, row| row.nr_dirtied = grows(t, 40_000_000, 36_000.0))
            .disk("loop0", |t, row| row.written = grows(t, 0, 70e6))
            .facts(move |facts| {
                let disk = facts.devices.iter_mut().find(|disk| disk.name.as_bytes() == b"loop0").unwrap();
                disk.stack = Stack::Loop { backing_file: "/srv/image".into(), dio: Some(dio) };
            });
        first_finding(&RULE, &fixture).is_outrun
    };
    assert!(!by_loop(false) && by_loop(true));
}

#[test]
fn writers_held_by_a_strict_limit_do_not_wait_behind_each_other() {
    use floodline_record::sample::CgroupRow;
    use floodline_record::units::{Flag, Ppm};
    let writers = |counts_delays: bool| {
        let one = |fixture: Fixture, pid| {
            fixture.process("cp", pid, "/", move |t, row| {
                row.write_bytes = grows(t, 0, 50e6);
                row.blkio_delay = counts_delays.then(|| secs(0.4 * t));
            })
        };
        [702, 703].into_iter().fold(backup().process("tar", 700, "/", |_, _| {}), one)
    };
    let clear =
        "clear: sda was full of writeback and slow for 10 s, and no program other than the writer was seen to wait";
    let idle = |_: f64, row: &mut CgroupRow| row.io_some = Some(secs(1.0));
    let holds = |counts_delays: bool, mib_unwritten: f64| {
        writers(counts_delays)
            .cgroup("/system.slice/redis.service", idle)
            .host(|_, row| row.nr_dirty_threshold = Some(mib_pages(500.0)))
            .bdi("8:0", move |_, row| {
                row.strict_limit = Some(Flag(1));
                row.max_ratio = Some(Ppm(5000));
                row.reclaimable = Some(Bytes(mib(mib_unwritten)));
                row.writeback = Some(Bytes(0));
            })
    };
    let held = |mib_unwritten: f64| holds(true, mib_unwritten);
    check_rule(&RULE, &held(2.0), clear);
    // Nothing shows the waits of single programs, and the limit explains the pressure.
    check_rule(&RULE, &holds(false, 2.0), clear);
    check_rule(&RULE, &holds(false, 0.5), "warning: fsync callers queue behind writeback");
    check_rule(&RULE, &held(0.5), "critical: cp[702] waited at least 4.00 s behind others' writeback");
    // A strict limit also pauses a program that appends a line now and then. Its syncs wait for the disk.
    let lines = |syncs: f64| {
        held(2.0).disk("sda", move |t, row| row.flushes = grows(t, 0, syncs)).process("cut", 704, "/", |t, row| {
            row.write_bytes = grows(t, 0, 6e3);
            row.blkio_delay = Some(secs(0.4 * t));
        })
    };
    check_rule(&RULE, &lines(0.1), clear);
    check_rule(&RULE, &lines(5.0), "critical: cut[704] waited at least");
    // Thirty writers that are alike have 3 % each.
    let alike = |pids: std::ops::Range<u32>| {
        pids.fold(held(2.0), |fixture, pid| {
            fixture.process("upload", pid, "/", |t, row| {
                row.write_bytes = grows(t, 0, 3.5e6);
                row.blkio_delay = Some(secs(0.4 * t));
            })
        })
    };
    check_rule(&RULE, &alike(710..740), clear);
}

/// Two builds that write most of the data, and a registry that commits a page now and then.
fn builds(is_over: bool) -> Fixture {
    use floodline_record::units::Count;
    let host = backup()
        .cgroup("/system.slice/redis.service", |_, row| row.io_some = Some(secs(1.0)))
        .process("tar", 700, "/", |_, row| row.write_bytes = Some(Bytes(0)))
        .process("registry", 705, "/", |t, row| {
            (row.write_bytes, row.wchar) = (grows(t, 0, 8e3), grows(t, 0, 8e3));
            row.state = Some(Count(u64::from(b'D')));
        })
        .host(move |_, row| {
            let (hard, background) = if is_over { (100_000, 50_000) } else { (1_000_000, 500_000) };
            row.nr_dirty_threshold = Some(Pages(hard));
            row.nr_dirty_background_threshold = Some(Pages(background));
        });
    [702, 703].into_iter().fold(host, |host, pid| {
        host.process("build", pid, "/", |t, row| {
            (row.write_bytes, row.wchar) = (grows(t, 0, 50e6), grows(t, 0, 50e6));
            row.blkio_delay = Some(secs(0.6 * t));
        })
    })
}

#[test]
fn paused_writers_are_not_told_as_callers_of_fsync() {
    let behind = "critical: registry[705] waited about 10 s behind others' writeback";
    check_rule(&RULE, &builds(true), behind);
    let quiet = |is_over| builds(is_over).process("registry", 705, "/", |_, row| row.state = None);
    check_rule(
        &RULE,
        &quiet(true),
        "info: build[702] and 1 more waited at least 6.00 s for sda, which was full of what they write.",
    );
    // Writers that are not paused may sync.
    check_rule(&RULE, &quiet(false), "critical: build[702] waited at least 6.00 s behind others' writeback");
}

#[test]
fn slow_syncs_are_told_as_syncs_though_the_disk_flushes_seldom() {
    // The registry waits for longer than the kernel counts: for a commit. Waits that are counted may be for any write.
    let because = |host: &Fixture| first_finding(&RULE, host).brief.because;
    assert!(because(&builds(true)).contains("Each fsync waits behind it."), "{}", because(&builds(true)));
    let counted = builds(false).process("registry", 705, "/", |_, row| row.state = None);
    assert!(because(&counted).contains("Each write that a task waits for waits"), "{}", because(&counted));
}

#[test]
fn a_wait_is_told_with_one_number_and_one_bound() {
    use floodline_record::units::Count;
    // The registry sleeps for longer than the disk is slow.
    let host = builds(true).seconds(20).process("registry", 705, "/", |t, row| {
        row.state = Some(Count(u64::from(if t < 9.5 { b'D' } else { b'S' })));
    });
    let host = host.disk("sda", |t, row| {
        let busy = t.min(8.0);
        row.written = grows(busy, mib(9_000.0), 100e6);
        row.writes = grows(busy, 9_000, 200.0);
        row.write_time = Some(secs(900.0 + 200.0 * 0.35 * busy));
        row.io_time = Some(secs(600.0 + busy));
        row.weighted_io_time = Some(secs(900.0 + 70.0 * busy));
    });
    check_rule(
        &RULE,
        &host,
        "critical: registry[705] waited up to 8.00 s behind others' writeback: for 8.00 s, writes",
    );
}

#[test]
fn a_program_that_syncs_beside_paused_writers_waits_behind_them() {
    use floodline_record::units::Count;
    // It writes 6 % of all data, and its waits are seen in the states only.
    let ledger = |is_asleep: bool| {
        builds(true).process("registry", 705, "/", |_, row| row.state = None).process(
            "ledger",
            706,
            "/",
            move |t, row| {
                (row.write_bytes, row.wchar) = (grows(t, 0, 7e6), grows(t, 0, 7e6));
                row.blkio_delay = Some(secs(0.5 * t));
                row.state = Some(Count(u64::from(if is_asleep { b'D' } else { b'S' })));
            },
        )
    };
    check_rule(&RULE, &ledger(true), "critical: ledger[706] waited");
    // Without other waits than those that the kernel counts, it is paused as the builds are.
    check_rule(&RULE, &ledger(false), "info: build[702] and 2 more waited");
}

#[test]
fn a_writer_that_stands_still_beside_paused_writers_that_go_on_waits_behind_them() {
    use floodline_record::units::Count;
    // It writes a fifth of all data, 100 MB at once each four seconds, and sleeps all the time.
    let ingest = |in_pieces: bool| {
        builds(true).process("registry", 705, "/", |_, row| row.state = None).process(
            "ingest",
            706,
            "/",
            move |t, row| {
                let bytes = grows(if in_pieces { t } else { (t / 4.0).floor() * 4.0 }, 0, 25e6);
                (row.write_bytes, row.wchar) = (bytes, bytes);
                row.blkio_delay = Some(secs(0.9 * t));
                row.state = Some(Count(u64::from(b'D')));
            },
        )
    };
    check_rule(&RULE, &ingest(false), "critical: ingest[706] waited");
    // A pause takes a fifth of a second at most: a paused writer dirties something between two samples.
    check_rule(&RULE, &ingest(true), "info: ");
    // Samples that are as close together as pauses show nothing.
    check_rule(&RULE, &ingest(false).every(0.2), "info: ");
}

#[test]
fn a_writer_that_stands_still_at_its_own_limit_does_not_wait_behind_others() {
    use floodline_record::units::{Count, Limit};
    // It writes a fifth of all data, 100 MB at once each four seconds, and sleeps all the time.
    let pod = |dirty_mib: f64, read: f64| {
        let quiet = builds(true).process("registry", 705, "/", |_, row| row.state = None);
        let limited =
            quiet.limits("/pod", |_, row| row.memory_max = Some(Limit(mib(256.0)))).cgroup("/pod", move |_, row| {
                (row.file, row.file_dirty) = (Some(Bytes(mib(100.0))), Some(Bytes(mib(dirty_mib))));
                row.memory_current = Some(Bytes(mib(110.0)));
            });
        limited.process("pod", 706, "/pod", move |t, row| {
            let bytes = grows((t / 4.0).floor() * 4.0, 0, 25e6);
            (row.write_bytes, row.wchar, row.read_bytes) = (bytes, bytes, grows(t, 0, read));
            row.blkio_delay = Some(secs(0.9 * t));
            row.state = Some(Count(u64::from(b'D')));
        })
    };
    check_rule(&RULE, &pod(1.0, 0.0), "critical: pod[706] waited");
    check_rule(&RULE, &pod(90.0, 0.0), "info: ");
    check_rule(&RULE, &pod(1.0, 20e6), "info: ");
}

#[test]
fn the_program_that_writes_most_is_named_with_the_number_of_its_processes() {
    let finding = first_finding(&RULE, &builds(true));
    assert_eq!(finding.brief.who, "build[702] and 1 more (dirtied most of the data)");
}

#[test]
fn a_disk_with_time_left_is_not_told_as_full_either_way() {
    let finding = first_finding(&RULE, &backup());
    let helps = format!("{} {}", finding.trade_off, finding.brief.expect);
    assert!(!helps.contains("Programs dirty more"), "dirtied as fast as written: {helps}");
}

#[test]
fn a_trace_shows_which_writers_were_paused() {
    use crate::diagnose::throttle::tests::throttled;
    use floodline_record::record::What;
    use floodline_record::traced::throttle::Domain;
    let (parts, mut events) = slow((703, Operation::Fdatasync, 4_000, Some(dev_of("sda"))));
    let mut paused = throttled((1, "8:0", Domain::Global, 11, 6_000, 200));
    if let What::Throttled(event) = &mut paused {
        (event.who.pid, event.who.comm) = (702, "build".into());
    }
    events.push(paused);
    let traced = builds(true).traced(parts, events);
    check_rule(&RULE, &traced, "critical: redis-server[703] waited 4.00 s behind others' writeback");
}

#[test]
fn writers_at_the_limit_of_a_void_pair_wait_there_if_no_program_syncs() {
    let exports = |background_mib: u64, flushes: f64| {
        let host = Fixture::healthy()
            .seconds(20)
            .settings((0, 120 << 20, 0, background_mib << 20))
            .thresholds((0, 120 << 20, 0, background_mib << 20), 30_720, 15_360)
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(118.0));
                row.nr_writeback = Some(Pages(0));
                row.nr_dirtied = grows(t, 40_000_000, 14_400.0);
                row.nr_written = grows(t, 38_000_000, 14_400.0);
                row.psi_io_some = Some(secs(900.0 + 0.8 * t.min(12.0)));
            })
            .disk("sda", move |t, row| {
                let t = t.min(12.0);
                row.written = grows(t, mib(9_000.0), 100e6);
                row.writes = grows(t, 9_000, 200.0);
                row.write_time = Some(secs(900.0 + 200.0 * 0.35 * t));
                row.io_time = Some(secs(600.0 + t));
                row.weighted_io_time = Some(secs(900.0 + 70.0 * t));
                row.flushes = grows(t, 0, flushes);
            })
            .facts(|facts| facts.devices.iter_mut().for_each(|device| device.write_back_cache = Some(true)));
        (0..4).fold(host, |host, pid| {
            host.process("export", 702 + pid, "/", |t, row| {
                (row.wchar, row.write_bytes) = (grows(t, 0, 15e6), grows(t, 0, 15e6));
                row.blkio_delay = Some(secs(0.6 * t.min(12.0)));
            })
        })
    };
    check_rule(&RULE, &exports(256, 0.1), "clear: sda was full of writeback and slow for 12 s, and no program");
    // Where programs sync too, writers at the limit still wait because of their own data.
    let own = "info: export[702] and 3 more waited at least 7.20 s for sda, which was full of what they write.";
    check_rule(&RULE, &exports(256, 4.0), own);
    check_rule(&RULE, &exports(60, 0.1), own);
}

#[test]
fn batches_shorter_than_an_interval_count_by_the_time_of_the_disk() {
    // In each second the disk is busy for this part of it, with 20 requests in flight, and tasks wait as long.
    let batches = |busy: f64, waits: f64| {
        backup()
            .cgroup("/system.slice/redis.service", |_, row| row.io_some = Some(secs(1.0)))
            .host(move |t, row| row.psi_io_some = Some(secs(900.0 + waits * t)))
            .disk("sda", move |t, row| {
                row.write_time = Some(secs(900.0 + 200.0 * 0.08 * t));
                row.io_time = Some(secs(600.0 + busy * t));
                row.weighted_io_time = Some(secs(900.0 + 20.0 * busy * t));
            })
            .process("client", 702, "/", |t, row| row.blkio_delay = Some(secs(0.25 * t)))
    };
    check_rule(
        &RULE,
        &batches(0.5, 0.45),
        "critical: client[702] waited at least 2.50 s behind others' writeback: for 5.00 s",
    );
    check_rule(
        &RULE,
        &batches(0.5, 0.2),
        "clear: tasks waited for I/O 20 % of the time, but no disk was full for a second",
    );
    check_rule(&RULE, &batches(0.08, 0.08), "clear: no disk was full for a second");
}

#[test]
fn a_moment_in_a_long_look_is_not_critical() {
    let busy = |t: f64| t.min(10.0);
    let moment = backup().seconds(300).disk("sda", move |t, row| {
        row.written = grows(busy(t), mib(9_000.0), 100e6);
        row.writes = grows(busy(t), 9_000, 200.0);
        row.write_time = Some(secs(900.0 + 200.0 * 0.35 * busy(t)));
        row.io_time = Some(secs(600.0 + busy(t)));
        row.weighted_io_time = Some(secs(900.0 + 70.0 * busy(t)));
    });
    check_rule(&RULE, &moment, "warning: redis-server[701] waits");
}

#[test]
fn without_a_database_it_is_a_warning() {
    let nobody = backup().cgroup("/system.slice/redis.service", |_, row| row.io_some = Some(secs(1.0)));
    check_rule(&RULE, &nobody, "warning: fsync callers queue behind writeback");
    let calm = nobody.host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.02 * t)));
    check_rule(
        &RULE,
        &calm,
        "clear: sda was full of writeback and slow for 10 s, and tasks waited for I/O 2.0 % of that time",
    );
}

/// A task that waits for a journal commit does not count as waiting for I/O in the kernel.
#[test]
fn a_traced_wait_counts_where_pressure_does_not_show_it() {
    let calm = || {
        backup()
            .cgroup("/system.slice/redis.service", |_, row| row.io_some = Some(secs(1.0)))
            .host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.3 * t)))
    };
    let waits = |pid, ms, device| {
        let (parts, events) = slow((pid, Operation::Fdatasync, ms, device));
        calm().traced(parts, events)
    };
    check_rule(&RULE, &waits(701, 2_000, None), "critical: redis-server[701] waited 2.00 s behind others' writeback");
    check_rule(&RULE, &waits(701, 200, None), "clear: sda was full of writeback and slow for 10 s");
    check_rule(&RULE, &waits(701, 2_000, Some(dev_of("sda"))), "critical: redis-server[701] waited");
    let other = waits(701, 2_000, Some(dev_of("sdb"))).disk("sdb", |_, _| {});
    check_rule(&RULE, &other, "clear: sda was full of writeback and slow for 10 s");
    // A sync of everything waits for all dirty data by design.
    let (parts, events) = slow((701, Operation::Sync, 5_000, None));
    check_rule(&RULE, &calm().traced(parts, events), "clear: sda was full of writeback and slow for 10 s");
    // The process that makes the writeback waits for its own data.
    check_rule(&RULE, &waits(700, 9_000, None), "clear: sda was full of writeback and slow for 10 s");
}

#[test]
fn a_trace_says_whether_writers_were_paused() {
    let (parts, events) = slow((702, Operation::Fdatasync, 2_000, Some(dev_of("sda"))));
    let above = || {
        backup().host(|_, row| {
            (row.nr_dirty_threshold, row.nr_dirty_background_threshold) = (Some(Pages(2)), Some(Pages(1)));
        })
    };
    let cause = |fixture: &Fixture| first_finding(&RULE, fixture).cause;
    assert!(cause(&above()).contains("over the freerun ceiling"), "{}", cause(&above()));
    let traced = cause(&above().traced(parts, events));
    assert!(traced.contains("Writers were not throttled: no pause was traced."), "{traced}");
}

#[test]
fn a_database_that_waits_for_its_own_writing_is_no_victim() {
    let own = backup()
        .process("tar", 700, "/system.slice/backup.service", |_, row| row.write_bytes = Some(Bytes(0)))
        .process("redis-server", 701, "/system.slice/redis.service", |t, row| row.write_bytes = grows(t, 0, 1e8));
    check_rule(&RULE, &own, "warning: fsync callers queue");
}

#[test]
fn direct_writes_reads_and_throttling_are_told_apart() {
    let direct = backup().host(|t, row| row.nr_written = grows(t, 38_000_000, 10.0));
    check_rule(&RULE, &direct, "clear: sda was full and slow for 10 s, mostly by requests that are not writeback");
    let reads = backup().disk("sda", |t, row| row.read = grows(t, 0, 500e6));
    check_rule(&RULE, &reads, "clear: tasks waited for I/O 50 % of the time, but no disk was full for a second");
    let idle = backup().disk("sda", |t, row| row.io_time = Some(secs(600.0 + 0.2 * t)));
    check_rule(&RULE, &idle, "clear: tasks waited for I/O 50 % of the time, but no disk");
    check_rule(&RULE, &starved_budget_published(), "clear: tasks waited for I/O");
    check_rule(&RULE, &Fixture::healthy(), "clear: no disk was full for a second");
}

#[test]
fn a_disk_with_writeback_throttling_off_gets_it_on_if_it_has_room() {
    let off = || backup().facts(|facts| facts.devices.iter_mut().for_each(|one| one.wbt_lat = Some(Nanos(0))));
    let found = |fixture: Fixture| {
        let Verdict::Found(mut findings) = check(&Derived::of(&fixture.window())) else { panic!("not found") };
        findings.remove(0)
    };
    let bursts = off().disk("sda", |t, row| {
        let busy = t.min(4.0);
        row.written = grows(busy, mib(9_000.0), 100e6);
        row.writes = grows(busy, 9_000, 200.0);
        row.write_time = Some(secs(900.0 + 200.0 * 0.35 * busy));
        row.io_time = Some(secs(600.0 + busy));
        row.weighted_io_time = Some(secs(900.0 + 70.0 * busy));
    });
    let last = found(bursts).plan.last().map(|step| step.command.clone());
    assert_eq!(last.as_deref(), Some("echo -1 > /sys/block/sda/queue/wbt_lat_usec"));
    let full = found(off());
    assert!(full.plan.iter().all(|step| !step.command.contains("wbt_lat_usec")), "{:?}", full.plan);
    assert!(full.trade_off.contains("wbt_lat_usec = 0"), "{}", full.trade_off);
}

#[test]
fn without_its_inputs_it_says_so() {
    check_rule(&RULE, &backup().one_look(), "not checked: /proc/diskstats (write await): observation too short");
    let no_psi = backup().without(Source::Pressure, Cause::Unsupported { since: "since 4.20".into() });
    check_rule(&RULE, &no_psi, "not checked: /proc/pressure/RESOURCE: not in this kernel (since 4.20)");
}

#[test]
fn who_waits_elsewhere_waits_here_for_the_slow_time_at_most() {
    let copies = |waited: f64| {
        backup()
            .seconds(60)
            .cgroup("/system.slice/redis.service", |_, row| row.io_some = Some(secs(1.0)))
            .disk("sda", |t, row| {
                let busy = t.min(8.0);
                row.written = grows(busy, mib(9_000.0), 100e6);
                row.writes = grows(busy, 9_000, 200.0);
                row.write_time = Some(secs(900.0 + 200.0 * 0.35 * busy));
                row.io_time = Some(secs(600.0 + busy));
                row.weighted_io_time = Some(secs(900.0 + 70.0 * busy));
            })
            .process("cp", 702, "/", move |t, row| {
                row.write_bytes = grows(t, 0, 1e6);
                row.blkio_delay = Some(secs(waited * t));
            })
    };
    check_rule(&RULE, &copies(0.6), "critical: cp[702] waited up to 8.00 s behind others' writeback: for 8.00 s");
    check_rule(&RULE, &copies(0.1), "critical: cp[702] waited at least 6.00 s behind others' writeback: for 8.00 s");
}

/// Two disks, each full of the writes of one program, and a client of which nothing shows which disk it uses.
fn two_full_disks() -> Fixture {
    backup()
        .cgroup("/system.slice/redis.service", |_, row| row.io_some = Some(secs(1.0)))
        .host(|t, row| {
            row.nr_dirtied = grows(t, 40_000_000, 41_000.0);
            row.nr_written = grows(t, 38_000_000, 41_000.0);
        })
        .disk("sdb", |t, row| {
            row.written = grows(t, mib(9_000.0), 60e6);
            row.writes = grows(t, 9_000, 120.0);
            row.write_time = Some(secs(900.0 + 120.0 * 0.35 * t));
            row.io_time = Some(secs(600.0 + t));
            row.weighted_io_time = Some(secs(900.0 + 70.0 * t));
        })
        .process("rsync", 703, "/", |t, row| row.write_bytes = grows(t, 0, 60e6))
        .process("client", 702, "/", |t, row| row.blkio_delay = Some(secs(0.4 * t)))
}

#[test]
fn a_wait_for_either_of_two_disks_is_told_once() {
    let window = two_full_disks().window();
    let Verdict::Found(findings) = check(&Derived::of(&window)) else { panic!("not found") };
    let told: Vec<&str> = findings.iter().map(|finding| finding.summary.as_str()).collect();
    let expect = "client[702] waited at least 4.00 s behind others' writeback on sda or sdb: for 10 s, writes to sda took up to 350 ms.";
    assert_eq!(told, [expect]);
    assert_eq!(findings[0].devices, ["sda", "sdb"]);
}

#[test]
fn a_task_that_slept_before_a_disk_was_slow_did_not_wait_for_these_writes() {
    use floodline_record::units::Count;
    // The disk reads for ten seconds, and then it writes.
    let host = |from: f64, to: f64| {
        let late = |t: f64| (t - 10.0).max(0.0);
        backup()
            .seconds(20)
            .cgroup("/system.slice/redis.service", |_, row| row.io_some = Some(secs(1.0)))
            .host(move |t, row| {
                row.nr_dirtied = grows(late(t), 40_000_000, 24_000.0);
                row.nr_written = grows(late(t), 38_000_000, 24_000.0);
                row.psi_io_some = Some(secs(900.0 + t));
            })
            .disk("sda", move |t, row| {
                row.reads = grows(t - late(t), 0, 40.0);
                row.read = grows(t - late(t), 0, 10e6);
                row.written = grows(late(t), mib(9_000.0), 100e6);
                row.writes = grows(late(t), 9_000, 200.0);
                row.write_time = Some(secs(900.0 + 200.0 * 0.35 * late(t)));
            })
            .process("tar", 700, "/system.slice/backup.service", move |t, row| {
                row.write_bytes = grows(late(t), 0, 100e6);
            })
            .process("scan", 702, "/", move |t, row| {
                let waits = t > from && t <= to;
                row.state = Some(Count(u64::from(if waits { b'D' } else { b'S' })));
                row.blkio_delay = Some(secs((t - from).clamp(0.0, to - from)));
            })
    };
    check_rule(&RULE, &host(0.0, 9.0), "clear: sda was full of writeback and slow for 10 s, and no program");
    check_rule(
        &RULE,
        &host(8.0, 17.0),
        "critical: scan[702] waited at least 9.00 s behind others' writeback: for 10 s",
    );
}

#[test]
fn a_layer_that_is_slower_than_the_disks_below_it_makes_syncs_wait() {
    // Encryption takes as long as the disk took alone.
    let encrypted = |limit: Option<u64>| {
        backup()
            .disk("dm-0", |t, row| {
                row.written = grows(t, mib(9_000.0), 100e6);
                row.writes = grows(t, 9_000, 200.0);
                row.write_time = Some(secs(900.0 + 200.0 * 0.35 * t));
                row.io_time = Some(secs(600.0 + t));
                row.weighted_io_time = Some(secs(900.0 + 70.0 * t));
            })
            .disk("sda", |t, row| {
                row.write_time = Some(secs(900.0 + 200.0 * 0.003 * t));
                row.io_time = Some(secs(600.0 + 0.5 * t));
                row.weighted_io_time = Some(secs(900.0 + 0.6 * t));
            })
            .cgroup_io("/system.slice/backup.service", "dm-0", move |_, row| {
                row.wbps_max = limit.map(floodline_record::units::Limit);
            })
            .facts(|facts| {
                let layers = facts.devices.iter_mut().filter(|device| device.name.as_bytes() == b"dm-0");
                layers.for_each(|device| device.slaves = vec![dev_of("sda")]);
                let mounts = facts.mounts.iter_mut().filter(|mount| mount.dev == dev_of("sda"));
                mounts.for_each(|mount| mount.dev = dev_of("dm-0"));
            })
    };
    let found = "critical: redis-server[701] waits 40 % of the time behind others' writeback: writes on dm-0 take";
    check_rule(&RULE, &encrypted(None), found);
    check_rule(&RULE, &encrypted(Some(100_000_000)), "clear: ");
}
