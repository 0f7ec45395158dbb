// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pauses at a strict limit: which are found, and which limits they are told apart from.

use super::*;
use crate::diagnose::{check_rule, first_finding};
use floodline_record::gap::Cause;
use floodline_record::id::{Entity, EntityId};
use floodline_record::record::What;
use floodline_record::units::{Bytes, Count, Flag, Ppm};
use floodline_testkit::{Fixture, grows};

/// A task paused for this many milliseconds of the fixture's ten seconds.
fn paused(domain: Domain, ms: u64) -> Fixture {
    Fixture::healthy().traced(&["throttle"], vec![throttle::tests::throttled((7, "8:16", domain, 11, ms, 200))])
}

#[test]
fn a_task_that_is_paused_by_a_device_alone_is_found() {
    check_rule(&RULE, &paused(Domain::Strictlimit, 7000), "critical: dd was paused for 7.00 s of 10 s by the strict");
    check_rule(&RULE, &paused(Domain::Strictlimit, 1100), "warning: dd was paused for 1.10 s of 10 s by the strict");
}

#[test]
fn a_strict_limit_of_a_disk_that_is_always_busy_harms_no_writer() {
    let busy = |share: f64| {
        let host = Fixture::healthy().disk("sdb", move |t, row| {
            row.io_time = Some(floodline_testkit::secs(600.0 + share * t));
        });
        let dev = floodline_testkit::dev_of("sdb").to_string();
        let name: &'static str = dev.leak();
        host.traced(&["throttle"], vec![throttle::tests::throttled((7, name, Domain::Strictlimit, 11, 7000, 200))])
    };
    check_rule(&RULE, &busy(0.5), "critical: dd was paused for 7.00 s of 10 s by the strict limit of sdb.");
    check_rule(
        &RULE,
        &busy(0.99),
        "info: dd was paused for 7.00 s of 10 s by the strict limit of sdb. The disk was 99 %",
    );
    assert!(first_finding(&RULE, &busy(0.99)).plan.is_empty(), "no limit makes the disk faster");
    // The disk has time for these writes: reads fill it.
    let by_reads = busy(0.99).disk("sdb", |t, row| (row.reads, row.read) = (grows(t, 0, 2e3), grows(t, 0, 200e6)));
    let harmed = "critical: dd was paused for 7.00 s of 10 s by the strict limit of sdb.";
    check_rule(&RULE, &by_reads, harmed);
    let finding = first_finding(&RULE, &by_reads);
    assert!(!finding.plan.is_empty() && finding.summary == harmed.trim_start_matches("critical: "), "{finding:?}");
}

#[test]
fn pauses_that_three_tasks_feel_are_critical() {
    let of = |tasks: u64| {
        let each = |task| throttle::tests::throttled((7 + task, "8:16", Domain::Strictlimit, 11, 1100, 200));
        Fixture::healthy().traced(&["throttle"], (0..tasks).map(each).collect())
    };
    check_rule(&RULE, &of(2), "warning: dd was paused for 1.10 s of 10 s by the strict");
    check_rule(&RULE, &of(3), "critical: dd was paused for 1.10 s of 10 s by the strict");
}

#[test]
fn short_pauses_and_those_of_other_limits_are_not() {
    let in_turn = |ms: u64| {
        let each = |task: u64| throttle::tests::throttled((7 + task, "8:16", Domain::Strictlimit, 11, ms, 200));
        Fixture::healthy().traced(&["throttle"], (0..3).map(each).collect())
    };
    check_rule(&RULE, &in_turn(300), "clear: the task that a strict limit paused most, dd, was paused for 300 ms");
    check_rule(
        &RULE,
        &in_turn(600),
        "warning: Several tasks were paused by the strict limit of 8:16, together for 1.80 s of 10 s.",
    );
    check_rule(
        &RULE,
        &paused(Domain::Strictlimit, 900),
        "clear: the task that a strict limit paused most, dd, was paused for 900 ms",
    );
    check_rule(&RULE, &paused(Domain::Global, 7000), "clear: no task was paused by a device's strict limit");
    check_rule(&RULE, &paused(Domain::Unknown, 7000), "clear: no task was paused");
}

#[test]
fn programs_that_wait_for_half_of_a_short_run_are_paused_together() {
    const MS: u64 = 1_000_000;
    // Six processes start one after the other. Each is paused for 400 ms and lives for as long as is given.
    let summary = |lives_ms: u64| {
        let each = |number: u64| {
            let pause = throttle::tests::throttled((7, "8:16", Domain::Strictlimit, 5, 400, 90));
            let What::Throttled(mut event) = pause else { unreachable!("it is a pause") };
            (event.who.pid, event.tid) = (310 + number as u32, 310 + number as u32);
            What::Throttled(event)
        };
        let host = Fixture::healthy().process("tar", 300, "/", |t, row| row.write_bytes = grows(t, 0, 4e6));
        let mut window = host.traced(&["throttle"], (0..6).map(each).collect()).window();
        let is_tar = |entity: &Entity| matches!(entity, Entity::Process { pid: 300, .. });
        let (id, tar) = window.entities.iter().find(|(_, entity)| is_tar(entity)).unwrap();
        let (id, tar) = (*id, tar.clone());
        let span = window.processes.remove(&id).unwrap();
        let begin = window.first_at.unwrap().monotonic.0;
        for number in 0..6 {
            let Entity::Process { comm, cgroup, kthread, .. } = tar.clone() else { unreachable!("it is a process") };
            let started = begin + (u64::from(number) + 1) * 1_000 * MS;
            let entity = Entity::Process { pid: 310 + number, comm, cgroup, kthread, start_ticks: started / (10 * MS) };
            let own = EntityId(9_000 + number);
            let mut span = span.clone();
            span.last_at = Nanos(started + lives_ms * MS);
            window.entities.insert(own, entity);
            window.processes.insert(own, span);
        }
        match check(&Derived::of(&window)) {
            Verdict::Found(findings) => findings[0].summary.clone(),
            Verdict::Clear(why) => why,
            Verdict::NotChecked(_) => String::new(),
        }
    };
    assert!(summary(100).starts_with("Several tasks were paused by the strict limit of 8:16"), "{}", summary(100));
    assert!(summary(3000).starts_with("the task that a strict limit paused most"), "{}", summary(3000));
}

#[test]
fn without_a_tracer_pressure_at_the_limit_shows_the_pauses() {
    // 2 MiB of a device that may have 2.5 MiB, and a writer that was seen asleep meanwhile.
    let held = |amount: f64| {
        Fixture::healthy()
            .host(|t, row| {
                row.nr_dirty_threshold = Some(floodline_testkit::mib_pages(500.0));
                row.nr_dirty_background_threshold = Some(floodline_testkit::mib_pages(250.0));
                row.psi_io_some = Some(floodline_testkit::secs(900.0 + 0.7 * t));
            })
            .bdi("8:0", move |_, row| {
                row.strict_limit = Some(Flag(1));
                row.max_ratio = Some(Ppm(5000));
                row.reclaimable = Some(Bytes(floodline_testkit::mib(amount)));
                row.writeback = Some(Bytes(0));
            })
            .process("cp", 900, "/", |t, row| {
                row.state = Some(Count(u64::from(b'D')));
                row.write_bytes = floodline_testkit::grows(t, 0, 1e6);
            })
    };
    check_rule(&RULE, &held(2.0), "critical: cp[900] waited 7.00 s of 10 s while sda was at its strict limit of 2.50");
    check_rule(&RULE, &held(0.5), "not checked: trace of writeback/balance_dirty_pages");
}

/// A card with a strict limit of a hundredth that holds 3 MiB in every other second, and a camera that sleeps then. The hard
/// threshold and the unwritten data of the machine, in MiB, are those of each second.
fn camera(hard: fn(f64) -> f64, machine: f64) -> Fixture {
    let is_full = |t: f64| t as u64 % 2 == 1;
    Fixture::healthy()
        .host(move |t, row| {
            row.nr_dirty_threshold = Some(floodline_testkit::mib_pages(hard(t)));
            row.nr_dirty_background_threshold = Some(floodline_testkit::mib_pages(hard(t) / 2.0));
            row.nr_dirty = Some(floodline_testkit::mib_pages(machine));
            row.psi_io_some = Some(floodline_testkit::secs(900.0 + 0.8 * ((t + 1.0) / 2.0).floor()));
        })
        .bdi("8:0", move |t, row| {
            row.strict_limit = Some(Flag(1));
            row.max_ratio = Some(Ppm(10_000));
            row.reclaimable = Some(Bytes(floodline_testkit::mib(if is_full(t) { 3.0 } else { 0.1 })));
            row.writeback = Some(Bytes(0));
        })
        .process("camera", 900, "/", move |t, row| {
            row.state = Some(Count(u64::from(if is_full(t) { b'D' } else { b'S' })));
            row.write_bytes = floodline_testkit::grows(t, 0, 1e6);
        })
}

#[test]
fn the_limit_is_a_part_of_the_threshold_of_each_moment() {
    // Programs give their memory back in the last second.
    let falls = |t: f64| if t < 10.0 { 400.0 } else { 4000.0 };
    let found = "warning: camera[900] waited 4.00 s of 10 s while sda was at its strict limit of 4.00 MiB and the \
                 machine had room.";
    check_rule(&RULE, &camera(falls, 4.0), found);
    check_rule(&RULE, &camera(|_| 4000.0, 4.0), "not checked: trace of writeback/balance_dirty_pages");
}

#[test]
fn a_limit_that_is_used_up_binds_on_a_full_machine_too() {
    let found = "warning: camera[900] waited 4.00 s of 10 s while sda was at its strict limit of 3.50 MiB.";
    check_rule(&RULE, &camera(|_| 350.0, 340.0), found);
    check_rule(&RULE, &camera(|_| 550.0, 540.0), "not checked: trace of writeback/balance_dirty_pages");
}

#[test]
fn a_task_that_sleeps_at_other_times_as_well_waits_for_another_disk() {
    let other = |comm: &str, fixture: Fixture| {
        fixture.process(comm, 901, "/", |t, row| {
            row.state = Some(Count(u64::from(b'D')));
            row.write_bytes = floodline_testkit::grows(t, 0, 1e6);
        })
    };
    let found = first_finding(&RULE, &other("account", camera(|_| 400.0, 4.0)));
    assert!(found.summary.starts_with("camera[900] waited"), "{}", found.summary);
    let alone = other("account", camera(|_| 400.0, 4.0)).process("camera", 900, "/", |_, row| {
        row.state = Some(Count(u64::from(b'S')));
    });
    check_rule(&RULE, &alone, "not checked: trace of writeback/balance_dirty_pages");
}

#[test]
fn a_filesystem_without_a_disk_is_told_with_its_bdi_and_only_by_its_own_counters() {
    let traced = vec![throttle::tests::throttled((7, "0:45", Domain::Strictlimit, 11, 7000, 200))];
    assert_eq!(first_finding(&RULE, &Fixture::healthy().traced(&["throttle"], traced)).devices, ["0:45"]);
    let mounted = |own: Option<f64>| {
        two_that_wait("6.12.117").bdi("0:45", move |_, row| {
            *row = floodline_record::sample::BdiRow::default();
            (row.strict_limit, row.max_ratio) = (Some(Flag(1)), Some(Ppm(10_000)));
            row.reclaimable = own.map(|own| Bytes(floodline_testkit::mib(own)));
            row.writeback = own.map(|_| Bytes(0));
        })
    };
    check_rule(&RULE, &mounted(None), "not checked: trace of writeback/balance_dirty_pages");
    check_rule(&RULE, &mounted(Some(0.0)), "not checked: trace of writeback/balance_dirty_pages");
    let found = "warning: Several tasks waited while 0:45 was at its strict limit of 20.0 MiB";
    check_rule(&RULE, &mounted(Some(19.0)), found);
}

/// Two programs in a cgroup that wait for I/O, on a machine that may have 2000 MiB dirty and has 100.
fn two_that_wait(release: &str) -> Fixture {
    let host = Fixture::healthy().kernel(release).host(|t, row| {
        row.nr_dirty_threshold = Some(floodline_testkit::mib_pages(2000.0));
        row.nr_dirty_background_threshold = Some(floodline_testkit::mib_pages(1000.0));
        row.nr_dirty = Some(floodline_testkit::mib_pages(100.0));
        row.psi_io_some = Some(floodline_testkit::secs(900.0 + 0.3 * t));
    });
    let host = host.cgroup("/app", |_, row| row.file_dirty = Some(Bytes(floodline_testkit::mib(90.0))));
    [900, 901].into_iter().fold(host, |host, pid| {
        host.process("rsync", pid, "/app", |t, row| {
            row.write_bytes = floodline_testkit::grows(t, 0, 4e6);
            row.blkio_delay = Some(floodline_testkit::secs(0.07 * t));
        })
    })
}

#[test]
fn what_another_disk_holds_is_not_that_of_a_disk_that_is_hardly_written() {
    // Linux 6.8 counts only the root's part of a disk. The share of sda is 20 MiB.
    let written = |rate: f64| {
        two_that_wait("6.8.0")
            .disk("sda", move |t, row| row.written = floodline_testkit::grows(t, 0, rate))
            .disk("sdb", |t, row| row.written = floodline_testkit::grows(t, 0, 8e6))
            .bdi("8:0", |_, row| (row.strict_limit, row.max_ratio) = (Some(Flag(1)), Some(Ppm(10_000))))
    };
    check_rule(&RULE, &written(1e5), "not checked: trace of writeback/balance_dirty_pages");
    check_rule(&RULE, &written(4e6), "warning: Several tasks waited while sda was at its strict limit of 20.0 MiB");
}

#[test]
fn evidence_stands_against_what_is_felt_of_pauses_that_are_shared() {
    let each = |task: u64| throttle::tests::throttled((7 + task, "8:16", Domain::Strictlimit, 11, 750, 200));
    let found = first_finding(&RULE, &Fixture::healthy().traced(&["throttle"], (0..2).map(each).collect()));
    let of = |at: usize| (&found.evidence[at].value, found.evidence[at].threshold.as_ref());
    let decimal = crate::report::Value::Decimal;
    assert_eq!(of(0), (&decimal(0.75), Some(&decimal(0.5))));
    assert_eq!(of(1), (&decimal(1.5), Some(&decimal(0.5))));
    assert_eq!(found.waited_s, Some(1.5));
}

#[test]
fn without_a_tracer_it_is_not_checked() {
    let expect = "not checked: trace of writeback/balance_dirty_pages (balance_dirty_pages): not in the recording";
    check_rule(&RULE, &Fixture::healthy(), expect);
    let need = "CAP_BPF and CAP_PERFMON; run as root";
    let refused = Fixture::healthy().without(Source::TraceThrottle, Cause::PermissionDenied { need: need.into() });
    check_rule(
        &RULE,
        &refused,
        "not checked: trace of writeback/balance_dirty_pages: permission denied (needs CAP_BPF",
    );
}

#[test]
fn where_no_sample_shows_the_limit_the_device_must_have_been_given_what_the_writer_dirtied() {
    // A writer of 1 MB/s that waits for 7 of 10 s. The disks are idle, and sda has a strict limit.
    let given = |bytes_per_s: f64| {
        Fixture::healthy()
            .facts(|facts| facts.task_delayacct = Some(true))
            .host(|t, row| {
                row.nr_dirty_threshold = Some(floodline_testkit::mib_pages(500.0));
                row.nr_dirty_background_threshold = Some(floodline_testkit::mib_pages(250.0));
                row.psi_io_some = Some(floodline_testkit::secs(900.0 + 0.7 * t));
            })
            .disk("sda", move |t, row| row.written = floodline_testkit::grows(t, 0, bytes_per_s))
            .bdi("8:0", |_, row| {
                row.strict_limit = Some(Flag(1));
                row.max_ratio = Some(Ppm(5000));
                row.reclaimable = Some(Bytes(floodline_testkit::mib(0.1)));
                row.writeback = Some(Bytes(0));
            })
            .process("cp", 900, "/", |t, row| {
                row.blkio_delay = Some(floodline_testkit::secs(0.7 * t));
                row.write_bytes = floodline_testkit::grows(t, 0, 1e6);
            })
    };
    let found = "warning: cp[900] waited 7.00 s of 10 s, longer than the disks were busy, and no other limit than the strict one of sda";
    check_rule(&RULE, &given(1e6), found);
    let not = "not checked: trace of writeback/balance_dirty_pages";
    check_rule(&RULE, &given(1e3), not);
    check_rule(&RULE, &given(1e6).mount("sda", "nfs4", "/share", "rw"), not);
}
