// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the rule for one program that makes most of the writes.

use super::*;
use crate::diagnose::synced::tests::slow;
use crate::diagnose::{check_rule, first_finding};
use floodline_record::gap::Cause;
use floodline_record::id::Entity;
use floodline_record::name::Name;
use floodline_record::traced::waits::Operation;
use floodline_record::units::{Bytes, Count, Nanos, Pages};
use floodline_testkit::incidents::{dirty_cliff, slow_journal, slow_journal_volatile};
use floodline_testkit::{Fixture, grows, mib, secs};

#[test]
fn the_measured_journal_is_critical_and_its_cure_is_volatile_storage() {
    check_rule(&RULE, &slow_journal(), "critical: systemd-journal[300] makes 80 % of all writes to ");
    let finding = first_finding(&RULE, &slow_journal());
    let step = finding.plan.first().unwrap();
    assert!(step.command.contains("Storage=volatile") && step.command.ends_with("systemctl restart systemd-journald"));
    assert!(step.undo.ends_with("systemctl restart systemd-journald"), "{}", step.undo);
    assert!(finding.trade_off.starts_with("Logs are lost at a reboot"));
    check_rule(&RULE, &slow_journal_volatile(), "clear:");
}

#[test]
fn a_journald_in_the_root_cgroup_is_that_of_the_host() {
    let cause = |of: &str| {
        let mut window = slow_journal().window();
        for entity in window.entities.values_mut() {
            if let Entity::Cgroup { path, .. } = entity
                && path.as_bytes() == b"/system.slice/systemd-journald.service"
            {
                *path = Name::new(of);
            }
        }
        let Verdict::Found(findings) = check(&Derived::of(&window)) else { panic!("nothing found") };
        findings[0].cause.clone()
    };
    assert!(cause("/lxc/web/system.slice/systemd-journald.service").ends_with("belongs to a container."));
    assert!(!cause("/").contains("container"), "{}", cause("/"));
}

#[test]
fn scattered_pages_of_any_other_writer_are_told_to_have_no_setting() {
    let mut window = slow_journal().window();
    for entity in window.entities.values_mut() {
        if let Entity::Process { pid: 300, comm, .. } = entity {
            *comm = Name::new("search-index");
        }
    }
    let Verdict::Found(findings) = check(&Derived::of(&window)) else { panic!("nothing found") };
    let finding = &findings[0];
    assert!(finding.plan.is_empty() && finding.summary.contains("scattered"), "{}", finding.summary);
    for text in [&finding.trade_off, &finding.brief.expect] {
        assert!(
            text.starts_with("No setting reduces the writes of this program") && text.contains("Move its files"),
            "{text}"
        );
    }
}

#[test]
fn a_disk_that_only_reads_has_no_writer() {
    let host = |writes: u64| {
        Fixture::healthy().process("cp", 900, "/", |t, row| row.write_bytes = Some(Bytes(mib(50.0 * t)))).disk(
            "sda",
            move |t, row| {
                (row.reads, row.read) = (grows(t, 0, 100.0), grows(t, 0, 50e6));
                (row.writes, row.written) = (grows(t, 0, writes as f64), grows(t, 0, 1e6 * writes as f64));
                (row.io_time, row.weighted_io_time) = (Some(secs(0.5 * t)), Some(secs(0.6 * t)));
            },
        )
    };
    check_rule(&RULE, &host(10), "info: cp[900] makes over 99 % of all writes to sda");
    check_rule(&RULE, &host(0), "clear: cp[900] writes over 99 % of all");
}

#[test]
fn writes_past_the_page_cache_are_not_told_as_pages_that_expire() {
    for path in [Path::Past, Path::Synced] {
        let helps = super::remedy::brief("osd0[105]", false, true, path, &[]).expect;
        assert!(!helps.contains("expiry") && helps.contains("each is a request of its own"), "{helps}");
    }
    assert!(super::remedy::brief("search[105]", false, true, Path::Flusher, &[]).expect.contains("A shorter expiry"));
}

#[test]
fn a_program_that_syncs_a_pile_at_once_is_told_to_sync_in_pieces() {
    use crate::diagnose::burst::tests::asked;
    let helps = |at: f64| {
        let host = asked(at)
            .process("backup", 900, "/", |t, row| row.write_bytes = Some(Bytes(mib(160.0 * (t / 3.0).min(1.0)))))
            .process("mail", 901, "/", move |t, row| row.blkio_delay = Some(secs((t - at).clamp(0.0, 4.0))));
        first_finding(&RULE, &host.seconds(12)).brief.expect
    };
    assert!(helps(5.0).contains("Let the program sync each megabyte"), "{}", helps(5.0));
    assert!(!helps(8.0).contains("each megabyte"), "the data had piled up: {}", helps(8.0));
}

#[test]
fn a_pile_synced_at_once_is_critical_where_another_program_waits_for_it() {
    use crate::diagnose::burst::tests::asked;
    let of = |waited: f64| {
        let host = asked(5.0)
            .process("backup", 900, "/", |t, row| row.write_bytes = Some(Bytes(mib(160.0 * (t / 3.0).min(1.0)))))
            .process("mail", 901, "/", move |t, row| {
                row.blkio_delay = Some(secs(waited * ((t - 5.0) / 4.0).clamp(0.0, 1.0)));
            });
        first_finding(&RULE, &host.seconds(18)).severity
    };
    assert_eq!((of(4.0), of(0.6)), (Severity::Critical, Severity::Info));
}

#[test]
fn a_trace_of_its_pages_rules_out_direct_io() {
    use crate::diagnose::burst::tests::asked;
    use crate::diagnose::dirtying::tests::dirtied;
    let host = |traced: u64| {
        let host = asked(8.0)
            .host(|_, row| row.nr_written = Some(floodline_record::units::Pages(0)))
            .process("backup", 900, "/", |t, row| row.write_bytes = Some(Bytes(mib(160.0 * (t / 3.0).min(1.0)))))
            .traced(&["bytes"], vec![dirtied((900, 1, 131, "/pack", traced, 0))]);
        first_finding(&RULE, &host.seconds(12))
    };
    let (direct, cached) = (host(1 << 20), host(160 << 20));
    assert!(direct.cause.contains("direct I/O"), "{}", direct.cause);
    assert!(cached.confirmed.is_some());
    assert!(!cached.cause.contains("direct I/O") && cached.cause.contains("syncs what it wrote"), "{}", cached.cause);
    assert!(!cached.trade_off.contains("do not stay in memory"), "{}", cached.trade_off);
}

#[test]
fn a_trace_names_the_file_it_writes_and_only_where_it_writes_most() {
    use crate::diagnose::dirtying::tests::dirtied;
    let journal = dirtied((300, 1, 131, "/journal/system.journal", 9 << 20, 3 << 20));
    let traced = |other: u64| {
        let events = vec![journal.clone(), dirtied((41, 1, 132, "/mail", other, 0))];
        first_finding(&RULE, &slow_journal().traced(&["bytes"], events)).confirmed
    };
    let confirmed = traced(1 << 20).unwrap();
    assert!(
        confirmed.starts_with("90 % of the 10.0 MiB that became dirty is its own, the largest part in "),
        "{confirmed}"
    );
    assert!(confirmed.ends_with("33 % of it had been dirty before."), "{confirmed}");
    assert_eq!(traced(100 << 20), None);
}

#[test]
fn who_fills_the_queue_behind_which_another_program_waits_is_critical() {
    let busy = |pid, ms| {
        let (parts, events) = slow((pid, Operation::Fdatasync, ms, None));
        // The disk is 40 % busy with large writes of 0.35 s each. A second program writes little.
        let fixture = slow_journal().disk("sda", |t, row| {
            row.written = grows(t, 0, 20e6);
            row.writes = grows(t, 0, 20.0);
            row.write_time = Some(secs(20.0 * 0.35 * t));
            row.io_time = Some(secs(0.4 * t));
            row.weighted_io_time = Some(secs(2.0 * t));
        });
        fixture.process("mail", 41, "/mail", |t, row| row.write_bytes = grows(t, 0, 1e3)).traced(parts, events)
    };
    check_rule(&RULE, &busy(41, 9_000), "critical: systemd-journal[300]");
    check_rule(&RULE, &busy(41, 300), "info: systemd-journal[300]");
    // Journald waits for its own data.
    check_rule(&RULE, &busy(300, 9_000), "info: systemd-journal[300]");
}

#[test]
fn a_database_beside_it_may_wait_where_nothing_shows_its_threads() {
    let beside = |name: &'static str| {
        Fixture::healthy()
            .disk("sda", |t, row| {
                row.written = grows(t, 0, 12e6);
                row.writes = grows(t, 0, 16.0);
                row.write_time = Some(secs(16.0 * 0.28 * t));
                row.io_time = Some(secs(t));
                row.weighted_io_time = Some(secs(4.5 * t));
            })
            .process("dd", 700, "/", |t, row| {
                row.write_bytes = grows(t, 0, 12e6);
                row.state = Some(Count(u64::from(b'D')));
            })
            .process(name, 701, "/", |t, row| {
                row.write_bytes = grows(t, 0, 5e3);
                row.state = Some(Count(u64::from(b'S')));
            })
    };
    check_rule(&RULE, &beside("mariadbd"), "warning: dd[700] makes");
    check_rule(&RULE, &beside("copy"), "info: dd[700] makes");
    let finding = first_finding(&RULE, &beside("mariadbd"));
    let advice = [finding.cause, finding.trade_off, finding.brief.expect].join(" ");
    assert!(advice.contains("direct I/O") && advice.contains("has no effect"), "{advice}");
    assert!(!advice.contains("set MemoryHigh=") && !advice.contains("bound its unwritten data"), "{advice}");
    // The flusher of a device at its strict limit writes at once, without a queue: the same counters, another path.
    let strict = beside("mariadbd")
        .host(|_, row| row.nr_dirty_threshold = Some(floodline_testkit::mib_pages(500.0)))
        .bdi("8:0", |_, row| {
            row.strict_limit = Some(floodline_record::units::Flag(1));
            row.max_ratio = Some(floodline_record::units::Ppm(5000));
            row.reclaimable = Some(Bytes(mib(2.0)));
            row.writeback = Some(Bytes(0));
        });
    let finding = first_finding(&RULE, &strict);
    let advice = [finding.cause, finding.trade_off, finding.brief.expect].join(" ");
    assert!(advice.contains("strict limit") && !advice.contains("MemoryHigh="), "{advice}");
    assert!(!advice.contains("direct I/O"), "{advice}");
    // A trace shows the waits of all threads, and there are none.
    let traced = beside("mariadbd").traced(&["throttle", "bytes"], Vec::new());
    check_rule(&RULE, &traced, "info: dd[700] makes");
}

#[test]
fn a_moment_in_a_long_look_is_not_critical() {
    // One burst of eight seconds in seven minutes.
    let once = |t: f64| (t - 30.0).clamp(0.0, 8.0);
    let moment = slow_journal().seconds(420).disk("sda", move |t, row| {
        row.writes = Some(Count(9_000_000 + (30.0 * once(t) + 1.8 * t) as u64));
        row.written = Some(Bytes(mib(160_000.0) + (30.0 * once(t) * 12_500.0 + 1.8 * t * 12_000.0) as u64));
        row.write_time = Some(secs(9_000.0 + 30.0 * once(t) * 1.25 + 0.02 * t));
        row.io_time = Some(secs(6_000.0 + once(t) + 0.06 * t));
        row.weighted_io_time = Some(secs(10_000.0 + once(t) * 38.0 + 0.06 * t));
    });
    check_rule(&RULE, &moment, "clear: systemd-journal[300] writes");
}

#[test]
fn the_bytes_beside_a_disk_are_those_that_it_wrote() {
    // It dirties twice what the disk writes: the rest is still in memory.
    let host = slow_journal()
        .disk("sda", |t, row| {
            row.written = grows(t, 0, 20e6);
            row.writes = grows(t, 0, 20.0);
            row.write_time = Some(secs(2.0 * t));
            row.io_time = Some(secs(0.4 * t));
            row.weighted_io_time = Some(secs(2.0 * t));
        })
        .process("systemd-journal", 300, "/system.slice/systemd-journald.service", |t, row| {
            row.write_bytes = grows(t, 0, 40e6);
        });
    let summary = first_finding(&RULE, &host).summary;
    let wrote = human::bytes(20e6 * host.window().seconds());
    assert!(summary.contains(&format!("of all writes to sda ({wrote}), which is 40 % busy")), "{summary}");
}

#[test]
fn no_limit_of_a_cgroup_is_advised_where_none_starts_the_flusher() {
    use floodline_record::id::Hierarchy;
    let advice_on = |release: &str, hierarchy: Hierarchy| {
        let host = slow_journal()
            .kernel(release)
            .disk("sda", |t, row| {
                row.written = grows(t, 0, 20e6);
                row.writes = grows(t, 0, 20.0);
                row.write_time = Some(secs(2.0 * t));
                row.io_time = Some(secs(0.4 * t));
                row.weighted_io_time = Some(secs(2.0 * t));
            })
            .process("systemd-journal", 300, "/", |_, row| row.write_bytes = Some(Bytes(0)))
            .process("dd", 700, "/", |t, row| row.write_bytes = grows(t, 0, 40e6))
            .hierarchy(hierarchy);
        let finding = first_finding(&RULE, &host);
        format!("{} {}", finding.trade_off, finding.brief.expect)
    };
    let advice = |hierarchy: Hierarchy| advice_on("6.12.117", hierarchy);
    assert!(advice(Hierarchy::V2).contains("MemoryHigh="), "{}", advice(Hierarchy::V2));
    assert!(!advice(Hierarchy::V1Memory).contains("MemoryHigh="), "{}", advice(Hierarchy::V1Memory));
    let earlier = "No limit of a cgroup makes the kernel write its data earlier on this host.";
    assert!(advice(Hierarchy::V1Memory).contains(earlier), "{}", advice(Hierarchy::V1Memory));
    let old = advice_on("3.10.0-1160.el7.x86_64", Hierarchy::V1Memory);
    assert!(old.contains(earlier) && !old.contains("bounds its unwritten"), "{old}");
}

#[test]
fn three_columns_and_the_rest_are_shown() {
    let fixture = slow_journal().cgroup_io("/system.slice/systemd-journald.service", "sda", |t, row| {
        row.wbytes = Some(Bytes((80_000.0 * t) as u64));
    });
    let rows = first_finding(&RULE, &fixture).evidence;
    for wanted in [
        "It dirtied",
        "It handed to write calls",
        "Its cgroup sent to disks",
        "All processes dirtied",
        "All disks wrote",
    ] {
        assert!(rows.iter().any(|row| row.name == wanted), "{wanted}: {rows:#?}");
    }
    // On version 1, no counter of the cgroup has its writeback.
    let v1 = fixture.facts(|facts| facts.cgroups.mode = floodline_record::facts::CgroupMode::V1);
    let rows = first_finding(&RULE, &v1).evidence;
    assert!(!rows.iter().any(|row| row.source.starts_with("io.stat")), "{rows:#?}");
}

#[test]
fn a_journald_of_a_container_is_not_cured_on_the_host() {
    let fixture = slow_journal()
        .process("systemd-journal", 300, "/", |_, row| row.write_bytes = Some(Bytes(0)))
        .process("systemd-journal", 4300, "/lxc/web/system.slice/systemd-journald.service", |t, row| {
            row.write_bytes = Some(Bytes((90_700.0 * t) as u64));
        });
    assert_eq!(first_finding(&RULE, &fixture).plan, Vec::new());
}

#[test]
fn a_dominant_writer_on_an_idle_disk_is_no_finding() {
    let copies = Fixture::healthy().process("cp", 900, "/user.slice", |t, row| {
        row.write_bytes = Some(Bytes(mib(5.0 * t)));
        row.wchar = Some(Bytes(mib(5.0 * t)));
    });
    check_rule(&RULE, &copies, "clear: cp[900] writes over 99 % of all, 5.00 MiB/s, and sda is 0.30 % busy");
    check_rule(&RULE, &Fixture::healthy(), "clear: no process dirtied 512 KiB and more than half of all");
}

#[test]
fn a_disk_that_is_busy_with_one_writer_is_a_warning() {
    check_rule(&RULE, &dirty_cliff(), "clear: copier[900] writes over 99 %");
    let busy = dirty_cliff().disk("sda", |t, row| {
        row.writes = Some(Count(9_000_000 + (84.0 * t) as u64));
        row.written = Some(Bytes(mib(42.0 * t)));
        row.io_time = Some(secs(6_000.0 + t));
        row.weighted_io_time = Some(secs(10_000.0 + 40.0 * t));
    });
    check_rule(&RULE, &busy, "warning: copier[900] makes");
}

#[test]
fn a_writer_past_the_page_cache_that_makes_one_request_at_a_time_is_a_note() {
    let with = |queue: f64, flushes: f64| {
        dirty_cliff()
            .host(|t, row| {
                (row.nr_written, row.nr_dirtied) = (Some(Pages(0)), Some(Pages(0)));
                (row.nr_dirty, row.nr_writeback) = (Some(Pages(2)), Some(Pages(0)));
                row.psi_io_some = Some(secs(900.0 + 0.8 * t));
            })
            .disk("sda", move |t, row| {
                row.writes = Some(Count((42.0 * t) as u64));
                row.written = Some(Bytes(mib(42.0 * t)));
                row.write_time = Some(secs(42.0 * 0.024 * t));
                row.io_time = Some(secs(0.95 * t));
                row.weighted_io_time = Some(secs(0.95 * queue * t));
                row.flushes = Some(Count((flushes * t) as u64));
            })
            .process("mail", 41, "/mail", |t, row| {
                row.write_bytes = Some(Bytes((1e3 * t) as u64));
                row.blkio_delay = Some(secs(0.02 * t));
            })
    };
    check_rule(&RULE, &with(1.0, 2.0), "info: copier[900] makes");
    check_rule(&RULE, &with(3.0, 2.0), "warning: copier[900] makes");
    check_rule(&RULE, &with(1.0, 20.0), "warning: copier[900] makes");
}

#[test]
fn a_cgroup_of_many_writers_dominates_too() {
    let mut fixture = slow_journal_volatile();
    for worker in 0..5 {
        fixture = fixture.process("postgres", 2000 + worker, "/system.slice/postgresql.service", |t, row| {
            row.write_bytes = Some(Bytes(mib(t)));
        });
    }
    let fixture = fixture.disk("sda", |t, row| row.io_time = Some(secs(6_000.0 + 0.3 * t)));
    check_rule(&RULE, &fixture, "info: Cgroup /system.slice/postgresql.service makes over 99 %");
}

/// A shell that runs one copy after the other. Each copy ends before a second sample sees it.
fn copies() -> Fixture {
    slow_journal_volatile()
        .process("bash", 600, "/user.slice", |t, row| {
            row.write_bytes = Some(Bytes(mib(30.0 * t)));
            row.cminflt = Some(Count((300.0 * t) as u64));
            row.children_time = Some(secs(0.2 * t));
        })
        .disk("sda", |t, row| row.io_time = Some(secs(6_000.0 + 0.3 * t)))
}

#[test]
fn a_parent_is_not_blamed_for_its_children() {
    check_rule(&RULE, &copies(), "info: Children of bash[600] make over 99 % of all writes to sda (1.68 MiB), which");
    let found = first_finding(&RULE, &copies());
    assert!(found.cause.contains("did less than the children it waited for"), "{}", found.cause);
    assert!(found.evidence.iter().any(|row| row.name == "CPU of children it waited for"), "{:#?}", found.evidence);
}

#[test]
fn where_children_write_is_told_by_their_cgroup() {
    let elsewhere = copies().cgroup_io("/system.slice/backup.service", "sda", |t, row| {
        row.wbytes = Some(Bytes(mib(29.0 * t)));
    });
    let expect = "info: Children of bash[600] (in /system.slice/backup.service) make over 99 %";
    check_rule(&RULE, &elsewhere, expect);
    // Children that write in an unknown cgroup do not make their parent's cgroup dominant.
    let loud = copies().process("rsync", 601, "/user.slice", |t, row| row.write_bytes = Some(Bytes(mib(19.0 * t))));
    check_rule(&RULE, &loud, "info: Children of bash[600] make 61 %");
}

#[test]
fn one_look_names_only_the_journal() {
    let check = |bytes: u64, expect: &str| {
        let fixture = slow_journal().one_look().process("systemd-journal", 300, "/", move |_, row| {
            row.write_bytes = Some(Bytes(bytes));
        });
        check_rule(&RULE, &fixture, expect);
    };
    check(200 << 30, "info: systemd-journal[300] made over 99 %");
    check(900 << 20, "clear: ");
}

#[test]
fn without_process_counters_it_says_so() {
    let denied = || Cause::PermissionDenied { need: "CAP_SYS_PTRACE".into() };
    let fixture = slow_journal().without(Source::ProcessIo, denied());
    check_rule(&RULE, &fixture, "not checked: /proc/PID/io: permission denied (needs CAP_SYS_PTRACE)");
    // One readable process does not stand for the unreadable ones.
    let one_unreadable = dirty_cliff()
        .process("copier", 900, "/", |_, row| row.write_bytes = None)
        .gap(floodline_record::gap::Gap::new(Source::ProcessIo, denied()));
    check_rule(&RULE, &one_unreadable, "not checked: /proc/PID/io: permission denied (needs CAP_SYS_PTRACE)");
}

#[test]
fn processes_of_one_program_in_turn_are_one_writer() {
    const SECOND: u64 = 1_000_000_000;
    // How long after its start each is seen for the last time. Those that were there before sleep in turn, each for this part of a
    // quarter of the window.
    let summary_of = |lasts: u64, asleep: Option<f64>| {
        let mut window = slow_journal().window();
        let is_journald = |entity: &Entity| matches!(entity, Entity::Process { pid: 300, .. });
        let (id, journald) = window.entities.iter().find(|(_, entity)| is_journald(entity)).unwrap();
        let (id, journald) = (*id, journald.clone());
        let span = window.processes.remove(&id).unwrap();
        let begin = window.first_at.unwrap().monotonic.0;
        for number in 0..4u32 {
            let Entity::Process { cgroup, kthread, .. } = journald.clone() else { unreachable!() };
            let start = match asleep {
                Some(_) => begin - SECOND,
                None => begin + (u64::from(number) * 2 + 1) * SECOND,
            };
            let tar = Entity::Process {
                pid: 310 + number,
                comm: Name::new("tar"),
                cgroup,
                kthread,
                start_ticks: start / 10_000_000,
            };
            let own = EntityId(9_000 + number);
            window.entities.insert(own, tar);
            if let Some(part) = asleep {
                let turn = window.seconds() / 4.0 * SECOND as f64;
                let at = |turns: f64| Nanos(begin + (turns * turn) as u64);
                window.asleep.insert(own, vec![at(f64::from(number)), at(f64::from(number) + part)]);
            }
            let mut part = span.clone();
            part.last = part.growth.clone();
            for row in [&mut part.last, &mut part.growth] {
                row.write_bytes = row.write_bytes.map(|bytes| Bytes(bytes.0 / 4));
                row.wchar = row.wchar.map(|bytes| Bytes(bytes.0 / 4));
            }
            part.last_at = Nanos(start + lasts * SECOND);
            window.processes.insert(own, part);
        }
        match check(&Derived::of(&window)) {
            Verdict::Found(findings) => findings[0].summary.clone(),
            Verdict::Clear(why) => why,
            Verdict::NotChecked(_) => String::new(),
        }
    };
    let summary = |lasts: u64| summary_of(lasts, None);
    assert!(summary(2).starts_with("tar (4 processes in turn) makes 80 % of all writes"), "{}", summary(2));
    assert!(!summary(5).contains("in turn"), "side by side: {}", summary(5));
    let asleep = |part: f64| summary_of(9, Some(part));
    assert!(asleep(0.8).starts_with("tar (4 processes in turn)"), "{}", asleep(0.8));
    assert!(!asleep(0.3).contains("in turn"), "they write side by side, and sync in turn: {}", asleep(0.3));
}
