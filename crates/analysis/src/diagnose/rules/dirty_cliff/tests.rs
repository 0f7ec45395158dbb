// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cliff: measured, traced, foretold, and what is none.

use super::*;
use crate::diagnose::{check_rule, first_finding};
use floodline_record::gap::Cause;
use floodline_record::units::Bytes;
use floodline_record::units::{BytesPerSecond, Centisecs, Count, Pages};
use floodline_testkit::incidents::{dirty_cliff, dirty_cliff_cured, dirty_cliff_published};
use floodline_testkit::{Fixture, mib, mib_pages, secs};

fn commands(finding: &Finding) -> Vec<&str> {
    finding.plan.iter().map(|step| step.command.as_str()).take(2).collect()
}

#[test]
fn the_measured_cliff_is_critical_and_gets_the_measured_cure() {
    check_rule(&RULE, &dirty_cliff(), "critical: 298 MiB of dirty data was flushed to sda in one 7.00 s burst");
    let finding = first_finding(&RULE, &dirty_cliff());
    assert_eq!(
        commands(&finding),
        ["sysctl -w vm.dirty_background_bytes=33554432", "sysctl -w vm.dirty_bytes=134217728"]
    );
    assert!(finding.cause.contains("dirty limit paused no writer"), "{}", finding.cause);
    check_rule(&RULE, &dirty_cliff_cured(), "clear:");
}

#[test]
fn a_short_burst_of_quick_writes_is_no_warning() {
    // The same 300 MiB on a disk that writes them in a second and a half, each in a few milliseconds.
    let burst = |write_ms: f64| {
        let busy = |t: f64| (t - 33.0).clamp(0.0, 1.5);
        Fixture::healthy()
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(if t < 3.0 { 0.0 } else { 300.0 - 200.0 * busy(t) }));
                row.psi_io_some = Some(secs(900.0 + 0.9 * busy(t)));
            })
            .disk("sda", move |t, row| {
                row.written = Some(Bytes(mib(200.0 * busy(t))));
                row.writes = Some(Count((1600.0 * busy(t)) as u64));
                row.write_time = Some(secs(1.6 * write_ms * busy(t)));
                row.io_time = Some(secs(busy(t)));
                row.weighted_io_time = Some(secs(20.0 * busy(t)));
            })
            .seconds(45)
            .every(0.5)
    };
    check_rule(
        &RULE,
        &burst(12.0),
        "info: 300 MiB of dirty data was flushed to sda in one 1.50 s burst. A write in it took",
    );
    check_rule(&RULE, &burst(120.0), "warning: 300 MiB of dirty data was flushed to sda in one 1.50 s burst. Tasks");
}

#[test]
fn the_rest_of_a_burst_that_began_before_does_not_clear_the_host() {
    // A disk that is full for five seconds from the first sample on, and quiet afterwards.
    let rest = |seconds: u32, full: f64| {
        let busy = move |t: f64| t.clamp(0.0, full);
        Fixture::healthy()
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(300.0 - 20.0 * busy(t).min(14.0)));
                row.psi_io_some = Some(secs(900.0 + 0.9 * busy(t)));
                (row.dirty_expire_centisecs, row.dirty_writeback_centisecs) =
                    (Some(Centisecs(1000)), Some(Centisecs(500)));
            })
            .disk("sda", move |t, row| {
                row.written = Some(Bytes(mib(20.0 * busy(t))));
                row.writes = Some(Count((160.0 * busy(t)) as u64));
                row.write_time = Some(secs(20.0 * busy(t)));
                row.io_time = Some(secs(busy(t)));
                row.weighted_io_time = Some(secs(20.0 * busy(t)));
            })
            .seconds(seconds)
    };
    let gap = "not checked: /proc/diskstats (the beginning of a time in which sda was full): observation too short (use --for 60s)";
    check_rule(&RULE, &rest(20, 5.0), gap);
    check_rule(
        &RULE,
        &rest(60, 5.0),
        "clear: the observation covers a whole expiry cycle, and sda, full for 5.00 s, was so",
    );
    check_rule(
        &RULE,
        &rest(20, 20.0),
        "clear: the observation covers a whole expiry cycle, and sda, full for 20 s, was so",
    );
}

#[test]
fn a_trace_names_the_reason_the_writer_and_what_tasks_waited_in() {
    use crate::diagnose::dirtying::tests::dirtied;
    use crate::diagnose::flusher::tests::flushed;
    use crate::diagnose::synced::tests::synced;
    use floodline_record::traced::waits::Operation;
    let events = |reason| {
        vec![
            dirtied((41, 1, 131, "/bulk", 300 << 20, 0)),
            flushed(("8:0", 1, reason, 300, 6500)),
            synced((42, Operation::Fdatasync, 9, 12_000, 6_800)),
        ]
    };
    let traced_in = |host: Fixture, reason, at: fn(&burst::Burst) -> floodline_record::units::Nanos| {
        let mut window = host.traced(&["bytes", "flusher", "throttle"], events(reason)).window();
        let burst =
            device::drains(&window).iter().find_map(|device| burst::longest(&Derived::of(&window), device)).unwrap();
        window.events.iter_mut().for_each(|event| event.at = at(&burst));
        let Verdict::Found(mut findings) = check(&Derived::of(&window)) else { panic!("nothing found") };
        findings.remove(0)
    };
    let traced_at = |reason, at| traced_in(dirty_cliff(), reason, at);
    let traced = |reason| traced_at(reason, |burst| burst.to);
    let confirmed = traced("periodic").confirmed.unwrap();
    for part in ["6.50 s on it, because of the age", "by dd[41] (100 %) and in", "waited 12 s in fsync", "paused 0 s"] {
        assert!(confirmed.contains(part), "{part}: {confirmed}");
    }
    // The flusher may have queued all of it in the interval before the disk is full.
    assert!(traced_at("periodic", |burst| burst.from).confirmed.is_some());
    assert_eq!(traced_at("periodic", |burst| burst.queued_from).confirmed, None);
    // The kernel's word counts, not what age and amount would allow.
    let full = dirty_cliff().host(|_, row| row.nr_dirty_background_threshold = Some(mib_pages(150.0)));
    let full = traced_in(full, "background", |burst| burst.to);
    assert!(full.cause.starts_with("Dirty data reached the background threshold"), "{}", full.cause);
    // The machine has fewer dirty pages than its threshold: the flusher looked at the device's part.
    let part = traced("background");
    assert!(
        part.cause.starts_with("Dirty data of this device reached its own part of the background"),
        "{}",
        part.cause
    );
    assert!(part.confirmed.is_some_and(|text| text.contains("6.50 s on it, because of a part of")));
    assert!(traced("periodic").cause.starts_with("The data were older than the expiry. Their age woke the flusher"));
    assert_eq!(first_finding(&RULE, &dirty_cliff()).confirmed, None);
}

/// The flusher writes a little for a background threshold, and a task syncs the rest itself.
#[test]
fn a_task_that_queued_most_of_it_itself_is_the_reason_and_no_victim() {
    use crate::diagnose::flusher::tests::flushed;
    use crate::diagnose::synced::tests::{slow, synced};
    use floodline_record::traced::waits::Operation;
    use floodline_testkit::dev_of;
    let with = |own: f64, mail: u64| {
        let (_, mut events) = slow((42, Operation::Fsync, 6_800, Some(dev_of("sda"))));
        for event in &mut events {
            if let floodline_record::record::What::SlowSync(wait) = event {
                wait.own = Bytes(mib(own));
            }
        }
        events.push(flushed(("8:0", 1, "background", 2, 300)));
        events.push(synced((43, Operation::Fdatasync, 9, mail, mail)));
        let mut window = dirty_cliff().traced(&["bytes", "flusher", "throttle"], events).window();
        let burst =
            device::drains(&window).iter().find_map(|device| burst::longest(&Derived::of(&window), device)).unwrap();
        window.events.iter_mut().for_each(|event| event.at = burst.to);
        let Verdict::Found(mut findings) = check(&Derived::of(&window)) else { panic!("nothing found") };
        findings.remove(0)
    };
    let own = with(280.0, 0);
    let confirmed = own.confirmed.unwrap();
    for part in ["spent 300 ms on a part of it, because of the background", "redis-server[42] asked for", "in fsync."] {
        assert!(confirmed.contains(part), "{part}: {confirmed}");
    }
    assert!(own.cause.starts_with("A sync, an fsync of a large file or an unmount triggered"), "{}", own.cause);
    assert!(!own.cause.contains("likely"), "{}", own.cause);
    assert!(own.summary.ends_with("No other program was seen to wait."), "{}", own.summary);
    assert_eq!(own.severity, Severity::Info);
    let behind = with(280.0, 6_000);
    assert!(behind.summary.contains("triggered by a sync. Other tasks waited behind it"), "{}", behind.summary);
    assert_eq!(behind.severity, Severity::Critical);
    // It queued a little itself: it waits for data of others.
    let little = with(1.0, 0);
    assert!(!little.confirmed.unwrap().contains("asked for"));
    assert!(!little.summary.contains("No other program"), "{}", little.summary);
}

#[test]
fn the_published_cliff_gets_the_published_cure() {
    let finding = first_finding(&RULE, &dirty_cliff_published());
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(
        commands(&finding),
        ["sysctl -w vm.dirty_background_bytes=268435456", "sysctl -w vm.dirty_bytes=1073741824"]
    );
    assert!(finding.cause.starts_with("Dirty data reached the background threshold"), "{}", finding.cause);
}

/// The first ten seconds: nothing has been written yet.
fn rising(bandwidth_mib: f64) -> Fixture {
    dirty_cliff().seconds(10).bdi("8:0", move |_, row| {
        row.write_bandwidth = Some(BytesPerSecond(mib(bandwidth_mib)));
    })
}

#[test]
fn while_dirty_data_pile_up_the_stall_is_foretold() {
    check_rule(&RULE, &rising(38.0), "warning: Unwritten data pile up: when the flusher starts, sda writes for 7.83 s");
    check_rule(&RULE, &rising(190.0), "info: Unwritten data pile up");
    check_rule(&RULE, &rising(910.0), "not checked: /proc/diskstats (a disk at its limit, or a whole cycle of expiry)");
}

#[test]
fn a_burst_to_come_is_no_warning_where_only_the_flusher_uses_the_disk() {
    use floodline_testkit::grows;
    // The disks count flushes of their caches.
    let flushed = |each_second: f64| {
        rising(38.0)
            .facts(|facts| facts.devices.iter_mut().for_each(|device| device.write_back_cache = Some(true)))
            .host(|_, row| row.pgscan_direct = Some(Pages(0)))
            .disk("sda", move |t, row| {
                row.flushes = grows(t, 0, each_second);
                // A few blocks of a journal.
                row.written = Some(Bytes(mib(160_000.0 + 0.02 * t)));
            })
    };
    check_rule(&RULE, &flushed(2.0), "warning: Unwritten data pile up: when the flusher starts, sda writes for 7.83 s");
    // No more than a journal does by its timer.
    check_rule(&RULE, &flushed(0.2), "info: Unwritten data pile up: when the flusher starts, sda writes for 7.83 s");
    let summary = first_finding(&RULE, &flushed(0.0)).summary;
    assert!(summary.ends_with(". No other program was seen to need this disk."), "{summary}");
    // Each filesystem has its own timer, and XFS has none of a few seconds.
    let on = |fs_type: &'static str, options: &'static str, each_second: f64| {
        flushed(each_second).facts(move |facts| {
            facts.mounts.iter_mut().for_each(|one| {
                (one.fs_type, one.super_options) = (fs_type.into(), options.into());
            });
        })
    };
    check_rule(&RULE, &on("xfs", "rw", 0.2), "warning: Unwritten data pile up");
    check_rule(&RULE, &on("xfs", "rw", 0.0), "info: Unwritten data pile up");
    check_rule(&RULE, &on("ext4", "rw", 0.5), "info: Unwritten data pile up");
    check_rule(&RULE, &on("ext4", "rw,commit=30", 0.5), "warning: Unwritten data pile up");
    check_rule(&RULE, &on("ext4", "rw,commit=0", 0.5), "info: Unwritten data pile up");
    // A commit by the timer writes a few blocks; two flushes with 0.4 MiB each are of a program.
    let large = flushed(0.2).disk("sda", |t, row| row.written = Some(Bytes(mib(160_000.0 + 0.08 * t))));
    check_rule(&RULE, &large, "warning: Unwritten data pile up");
}

#[test]
fn a_burst_that_comes_after_hours_is_no_warning() {
    // Of both, 180 MiB pile up until their age wakes the flusher.
    let slowly = |rate_mib: f64, expiry: u64| {
        rising(38.0).host(move |t, row| {
            row.dirty_expire_centisecs = Some(Centisecs(expiry));
            row.nr_dirty = Some(mib_pages(rate_mib * t));
            row.nr_dirtied = Some(Pages(40_000_000 + mib_pages(rate_mib * t).0));
        })
    };
    check_rule(
        &RULE,
        &slowly(6.0, 3_000),
        "warning: Unwritten data pile up: when the flusher starts, sda writes for 4.74 s",
    );
    check_rule(
        &RULE,
        &slowly(0.05, 360_000),
        "info: Unwritten data pile up: when the flusher starts, sda writes for 4.74 s",
    );
}

/// Without debugfs and without a disk at its limit: ten seconds of a machine whose writer is faster.
fn blind(rate_mib: f64) -> Fixture {
    Fixture::healthy()
        .memory_gib(64.0)
        .host(move |t, row| {
            row.nr_dirty = Some(mib_pages(rate_mib * t));
            row.nr_dirtied = Some(Pages(40_000_000 + mib_pages(rate_mib * t).0));
        })
        .without(Source::DebugBdiStats, Cause::NotMounted { fs_type: "debugfs".into() })
}

#[test]
fn without_a_speed_the_kind_of_disk_is_a_bound() {
    let turning = |fixture: Fixture| fixture.facts(|facts| facts.devices[0].rotational = Some(true));
    check_rule(&RULE, &blind(60.0), "not checked: /sys/kernel/debug/bdi/NAME/stats");
    let expect = "info: Unwritten data pile up: when the flusher starts, sda writes for at least 6.29 s";
    check_rule(&RULE, &turning(blind(60.0)), expect);
    // Even the fastest of its kind may be fast enough.
    check_rule(&RULE, &turning(blind(5.0)), "not checked: /sys/kernel/debug/bdi/NAME/stats");
    check_rule(&RULE, &blind(0.1), "clear: too little accumulates to stall: at the usual rate, 3.00 MiB are dirty");
    // It was seen to write enough that the rest can be inferred.
    let writes = blind(5.0).disk("sda", |t, row| {
        row.written = Some(Bytes(mib(30.0 * t)));
        row.io_time = Some(secs(0.1 * t));
    });
    check_rule(&RULE, &writes, "clear: too little accumulates to stall: at the usual rate, 150 MiB are dirty");
}

#[test]
fn a_whole_cycle_without_a_burst_clears_without_any_speed() {
    check_rule(
        &RULE,
        &blind(60.0).seconds(36),
        "clear: the observation covers a whole expiry cycle, and no disk was busy with a queue for a second",
    );
}

#[test]
fn a_burst_that_was_asked_for_or_hurt_nobody_is_not_the_cliff() {
    let calm = dirty_cliff().host(|_, row| row.psi_io_some = Some(secs(900.0)));
    check_rule(&RULE, &calm, "info: 298 MiB of dirty data was flushed to sda in one 7.00 s burst. Few tasks");
    let asked =
        dirty_cliff().host(|_, row| row.dirty_expire_centisecs = Some(floodline_record::units::Centisecs(6000)));
    check_rule(
        &RULE,
        &asked,
        "warning: 298 MiB of dirty data was flushed to sda in one 7.00 s burst, triggered by a sync",
    );
    assert!(
        first_finding(&RULE, &asked).cause.contains("an unmount triggered the write"),
        "{}",
        first_finding(&RULE, &asked).cause
    );
}

#[test]
fn what_is_written_as_fast_as_it_is_made_does_not_pile_up() {
    let flat = rising(38.0).host(|t, row| {
        row.nr_dirty = Some(mib_pages(300.0));
        row.nr_written = Some(Pages(38_000_000 + mib_pages(9.9 * t).0));
    });
    check_rule(&RULE, &flat, "clear: dirty data are written about as fast as they are made");
}

#[test]
fn a_large_threshold_that_nothing_fills_is_no_finding() {
    let large = Fixture::healthy().memory_gib(128.0).bdi("8:0", |_, row| {
        row.write_bandwidth = Some(BytesPerSecond(mib(42.0)));
    });
    check_rule(&RULE, &large, "clear: too little accumulates");
}

#[test]
fn cgroups_that_bytes_would_starve_get_a_shorter_age_instead() {
    let limited = dirty_cliff()
        .cgroup("/small", |_, row| {
            row.memory_current = Some(Bytes(mib(110.0)));
            row.file_dirty = Some(Bytes(mib(1.0)));
        })
        .limits("/small", |_, row| row.memory_max = Some(floodline_record::units::Limit(mib(128.0))));
    let finding = first_finding(&RULE, &limited);
    assert_eq!(
        commands(&finding),
        ["sysctl -w vm.dirty_expire_centisecs=300", "sysctl -w vm.dirty_writeback_centisecs=100"]
    );
}

#[test]
fn thresholds_that_were_just_lowered_are_not_lowered_once_more() {
    let with = |background: f64| {
        let finding = first_finding(&RULE, &dirty_cliff().settings((0, mib(512.0), 0, mib(background))));
        let is_unchanged = commands(&finding).is_empty();
        assert_eq!(finding.brief.expect == finding.trade_off, is_unchanged, "{}", finding.brief.expect);
        (commands(&finding).len(), finding.trade_off)
    };
    let (many, told) = with(64.0);
    assert!(many == 0 && told.contains("already only about one to two seconds of writing"), "{told}");
    assert!(with(256.0).0 > 0, "{}", with(256.0).1);
}

#[test]
fn a_writer_that_is_faster_than_the_disk_is_told_so() {
    let fast = dirty_cliff().host(|t, row| row.nr_dirtied = Some(Pages(40_000_000 + mib_pages(90.0 * t).0)));
    assert!(
        first_finding(&RULE, &fast).cause.contains("no setting keeps the disk from being full"),
        "{}",
        first_finding(&RULE, &fast).cause
    );
}

#[test]
fn a_disk_that_is_busy_all_the_time_has_no_cliff() {
    let busy = dirty_cliff().host(|t, row| {
        row.nr_dirty = Some(mib_pages(200.0));
        row.nr_written = Some(Pages(38_000_000 + mib_pages(9.9 * t).0));
    });
    let busy = busy.disk("sda", |t, row| {
        row.written = Some(Bytes(mib(160_000.0 + 42.0 * t)));
        row.writes = Some(Count(9_000_000 + (84.0 * t) as u64));
        row.io_time = Some(secs(6_000.0 + t));
        row.weighted_io_time = Some(secs(10_000.0 + 50.0 * t));
    });
    check_rule(&RULE, &busy, "clear: the observation covers a whole expiry cycle");
}

#[test]
fn without_its_inputs_it_says_so() {
    check_rule(
        &RULE,
        &dirty_cliff().one_look(),
        "not checked: /proc/vmstat (nr_dirtied): observation too short (use --for 10s)",
    );
    let unsupported = || Cause::NotMounted { fs_type: "debugfs".into() };
    let blind = dirty_cliff().seconds(10).without(Source::DebugBdiStats, unsupported());
    check_rule(
        &RULE,
        &blind,
        "not checked: /sys/kernel/debug/bdi/NAME/stats: debugfs is not mounted\nnot checked: /proc/diskstats (a disk at \
         its limit, or a whole cycle of expiry): observation too short (use --for 36s)",
    );
    let vanished = dirty_cliff().without(Source::Vmstat, Cause::Vanished);
    check_rule(&RULE, &vanished, "not checked: /proc/vmstat: removed before it was read");
}

#[test]
fn a_burst_of_a_disk_that_only_the_flusher_uses_stalls_no_task() {
    // sdb drains 300 MiB in six seconds. A till syncs to sda all the time, and the flusher waits for requests of sdb.
    let host = |flushes: u64, reads: u64, cache: bool| {
        let busy = |t: f64| (t - 33.0).clamp(0.0, 6.0);
        Fixture::healthy()
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(if t < 3.0 { 0.0 } else { 300.0 - 50.0 * busy(t) }));
                (row.nr_writeback, row.nr_written) = (Some(Pages(0)), Some(mib_pages(50.0 * busy(t))));
                row.psi_io_some = Some(secs(900.0 + 0.7 * busy(t)));
                row.pgscan_direct = Some(Pages(0));
            })
            .bdi("8:16", move |t, row| {
                row.reclaimable = Some(Bytes(mib(if t < 3.0 { 0.0 } else { 300.0 - 50.0 * busy(t) })));
                row.writeback = Some(Bytes(0));
            })
            .disk("sda", |t, row| {
                row.writes = Some(Count((20.0 * t) as u64));
                row.written = Some(Bytes((20.0 * t) as u64 * 4096));
                row.flushes = Some(Count((20.0 * t) as u64));
            })
            .disk("sdb", move |t, row| {
                row.written = Some(Bytes(mib(50.0 * busy(t))));
                row.writes = Some(Count((100.0 * busy(t)) as u64));
                row.write_time = Some(secs(40.0 * busy(t)));
                row.io_time = Some(secs(busy(t)));
                row.weighted_io_time = Some(secs(30.0 * busy(t)));
                // The flusher reads a little as well.
                (row.reads, row.read_time) =
                    (Some(Count((reads as f64 * busy(t)) as u64)), Some(secs(0.01 * reads as f64 * busy(t))));
                row.flushes = Some(Count(1 + if t >= 37.0 { flushes } else { 0 }));
            })
            .facts(move |facts| {
                for device in &mut facts.devices {
                    device.write_back_cache = Some(cache);
                }
            })
            .seconds(45)
    };
    check_rule(
        &RULE,
        &host(0, 0, true),
        "info: 300 MiB of dirty data was flushed to sdb in one 6.00 s burst. Only the flusher",
    );
    check_rule(
        &RULE,
        &host(1, 0, true),
        "critical: 300 MiB of dirty data was flushed to sdb in one 6.00 s burst. Tasks",
    );
    check_rule(
        &RULE,
        &host(0, 20, true),
        "critical: 300 MiB of dirty data was flushed to sdb in one 6.00 s burst. Tasks",
    );
    let reclaims = host(0, 0, true).host(|t, row| row.pgscan_direct = Some(Pages((100.0 * t) as u64)));
    check_rule(&RULE, &reclaims, "critical: 300 MiB of dirty data");
    let uncounted = host(0, 0, true).disk("sdb", |_, row| row.flushes = None);
    check_rule(&RULE, &uncounted, "critical: 300 MiB of dirty data");
    let without_cache = host(0, 0, false).disk("sdb", |_, row| row.flushes = Some(Count(0)));
    check_rule(&RULE, &without_cache, "critical: 300 MiB of dirty data");
}

/// The cliff of a host with a cgroup that has most of the dirty data and may have a limit of memory.
fn of_a_cgroup(limit_mib: Option<f64>) -> Fixture {
    let host = dirty_cliff().cgroup("/homes", |_, row| {
        row.memory_current = Some(Bytes(mib(320.0)));
        row.file = Some(Bytes(mib(300.0)));
        row.file_dirty = Some(Bytes(mib(290.0)));
    });
    host.limits("/homes", move |_, row| {
        row.memory_max = limit_mib.map(|limit| floodline_record::units::Limit(mib(limit)));
    })
}

#[test]
fn a_flusher_of_a_cgroup_that_looks_at_its_part_of_the_threshold_is_no_threshold_reached() {
    use crate::diagnose::flusher::tests::flushed;
    let cause = |host: Fixture, rounds: &[(u64, u64)]| {
        let round = |(ino, mib): &(u64, u64)| flushed(("8:0", *ino, "background", *mib, 6500));
        let mut window = host.traced(&["flusher"], rounds.iter().map(round).collect()).window();
        let devices = device::drains(&window);
        let burst = devices.iter().find_map(|device| burst::longest(&Derived::of(&window), device)).expect("a burst");
        window.events.iter_mut().for_each(|event| event.at = burst.to);
        let derived = Derived::of(&window);
        let Verdict::Found(findings) = check(&derived) else { panic!("nothing found") };
        (findings[0].cause.clone(), findings[0].confirmed.clone().unwrap_or_default())
    };
    let window = of_a_cgroup(None).window();
    let is_it = |id: &&floodline_record::id::EntityId| crate::diagnose::cgroup::label(&window, **id).contains("homes");
    let id = window.cgroups.keys().find(is_it).expect("the cgroup");
    let ino = crate::diagnose::cgroup::ino(&window, *id).expect("its number");
    // 298 MiB are dirty on the machine, whose threshold is some 370 MiB.
    let (why, trace) = cause(of_a_cgroup(None), &[(ino, 300)]);
    assert!(why.starts_with("Dirty data of this device, or of a cgroup on it, reached its own part of"), "{why}");
    assert!(trace.contains("because of a part of the background threshold (background)"), "{trace}");
    // The cgroup has a tenth of its own memory for them.
    let (why, trace) = cause(of_a_cgroup(Some(400.0)), &[(ino, 300)]);
    assert!(why.starts_with("Dirty data of a cgroup reached the cgroup's own background threshold"), "{why}");
    assert!(trace.contains("because of the background threshold of a cgroup (background)"), "{trace}");
    // Its flusher wrote little beside another one's.
    let (why, _) = cause(of_a_cgroup(Some(400.0)), &[(ino, 20), (ino + 1, 280)]);
    assert!(why.starts_with("Dirty data of this device, or of a cgroup on it, reached its own part of"), "{why}");
}

#[test]
fn where_no_counter_shows_the_parts_of_a_threshold_the_candidates_are_named() {
    let found = |kernel: &str| first_finding(&RULE, &of_a_cgroup(None).kernel(kernel));
    let old = found("6.1.0-18-amd64").cause;
    let candidate =
        "The part of the background threshold that this device, or a cgroup on it, has may have been reached";
    assert!(old.contains(candidate), "{old}");
    assert!(!found("6.12.117").cause.contains(candidate));
    let asked = |kernel: &str| {
        let host = burst::tests::asked(10.0).kernel(kernel).cgroup("/homes", |_, row| {
            row.file_dirty = Some(Bytes(mib(150.0)));
        });
        let window = host.window();
        let device = device::drains(&window)[0];
        let derived = Derived::of(&window);
        let burst = burst::longest(&derived, &device).expect("a burst");
        let finding = confirmed(&derived, &device, &burst, 1e6);
        (burst.trigger, finding.summary.contains("triggered by a sync"), finding.cause)
    };
    let (trigger, is_told, cause) = asked("6.1.0-18-amd64");
    assert!((trigger, is_told) == (Trigger::Asked, false) && cause.contains("Two reasons remain"), "{cause}");
    let (trigger, is_told, cause) = asked("6.12.117");
    assert!((trigger, is_told) == (Trigger::Asked, true) && !cause.contains("reasons remain"), "{cause}");
}

#[test]
fn a_batch_below_a_strict_limit_is_a_note_where_no_program_syncs() {
    use floodline_record::units::{Flag, Ppm};
    let held = |flushes: f64| {
        dirty_cliff()
            .host(|_, row| row.nr_dirty_threshold = Some(mib_pages(500.0)))
            .bdi("8:0", |_, row| {
                row.strict_limit = Some(Flag(1));
                row.max_ratio = Some(Ppm(5000));
                (row.reclaimable, row.writeback) = (Some(Bytes(mib(2.0))), Some(Bytes(0)));
            })
            .disk("sda", move |t, row| row.flushes = Some(Count((flushes * t) as u64)))
    };
    let note = first_finding(&RULE, &held(0.1));
    assert_eq!(note.severity, Severity::Info, "{}", note.summary);
    assert!(note.summary.ends_with("Its strict limit kept the batch this small."), "{}", note.summary);
    assert!(first_finding(&RULE, &held(5.0)).severity > Severity::Info);
}
