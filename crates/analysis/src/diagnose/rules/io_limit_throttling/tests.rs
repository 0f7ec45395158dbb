// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of I/O that hold tasks back, and those that do not.

use super::*;
use crate::diagnose::check_rule;
use floodline_testkit::{Fixture, dev_of, mib, secs};

fn limited(rate: f64) -> Fixture {
    Fixture::healthy()
        .cgroup("/tenant", |t, row| row.io_some = Some(secs(0.9 * t)))
        .cgroup_io("/tenant", "sda", move |t, row| {
            row.wbytes = Some(Bytes((rate * t) as u64));
            row.wios = Some(Count((4.0 * t) as u64));
            row.wbps_max = Some(Limit(4_000_000));
            row.wiops_max = Some(Limit::MAX);
        })
        .seconds(20)
}

#[test]
fn a_cgroup_at_its_limit_whose_tasks_wait_is_found() {
    let expect = "warning: Cgroup /tenant is held to 3.81 MiB/s of writes by its own limit (wbps on sda)";
    check_rule(&RULE, &limited(3.9e6), expect);
    let with = |saver: f64| {
        limited(3.9e6)
            .process("upload", 800, "/tenant", |t, row| {
                row.write_bytes = Some(Bytes((3.8e6 * t) as u64));
                row.blkio_delay = Some(secs(0.9 * t));
            })
            .process("save", 801, "/tenant", move |t, row| {
                row.write_bytes = Some(Bytes((4e3 * t) as u64));
                row.blkio_delay = Some(secs(saver * t));
            })
    };
    check_rule(&RULE, &with(0.5), "critical: Cgroup /tenant is held");
    // A task that uses the limit up alone waits for it by design.
    check_rule(&RULE, &with(0.0), "info: Cgroup /tenant is held");
    // The clients of a database wait with it.
    let database = limited(3.9e6).process("mariadbd", 800, "/tenant", |t, row| {
        row.write_bytes = Some(Bytes((3.8e6 * t) as u64));
        row.blkio_delay = Some(secs(0.7 * t));
    });
    check_rule(&RULE, &database, "critical: Cgroup /tenant is held");
}

#[test]
fn threads_that_only_the_pressure_shows_wait_for_their_limit_as_was_meant() {
    // The first thread of the upload sleeps interruptibly while its others wait. Another program waits elsewhere.
    let host = |pressure: f64| {
        limited(3.9e6)
            .cgroup("/tenant", move |t, row| row.io_some = Some(secs(pressure * t)))
            .process("upload", 800, "/tenant", |t, row| {
                row.write_bytes = Some(Bytes((3.8e6 * t) as u64));
                row.blkio_delay = Some(secs(0.0));
            })
            .process("mail", 802, "/", |t, row| row.blkio_delay = Some(secs(0.2 * t)))
    };
    let expect =
        "info: Cgroup /tenant is held to 3.81 MiB/s of writes by its own limit (wbps on sda): its tasks waited 90 %";
    check_rule(&RULE, &host(0.9), expect);
    check_rule(&RULE, &host(0.05), "clear: 1 cgroup has a limit");
}

#[test]
fn a_layer_that_counts_held_requests_as_busy_has_room_where_its_disk_has() {
    let volume = |disk_busy: f64| {
        limited(0.0)
            .cgroup_io("/tenant", "sda", |_, row| (row.wbps_max, row.wbytes) = (Some(Limit::MAX), Some(Bytes(0))))
            .cgroup_io("/tenant", "dm-0", |t, row| {
                (row.wbps_max, row.wbytes) = (Some(Limit(4_000_000)), Some(Bytes((3.9e6 * t) as u64)));
                row.wios = Some(Count((4.0 * t) as u64));
            })
            .disk("dm-0", |t, row| row.io_time = Some(secs(0.97 * t)))
            .disk("sda", move |t, row| row.io_time = Some(secs(600.0 + disk_busy * t)))
            .facts(|facts| {
                let volumes = facts.devices.iter_mut().filter(|device| device.name.as_bytes() == b"dm-0");
                volumes.for_each(|device| device.slaves = vec![dev_of("sda")]);
            })
    };
    let expect = "warning: Cgroup /tenant is held to 3.81 MiB/s of writes by its own limit (wbps on dm-0)";
    check_rule(&RULE, &volume(0.2), expect);
    check_rule(&RULE, &volume(0.96), "clear: 1 cgroup has a limit");
}

#[test]
fn bulk_readers_that_are_alike_wait_for_their_limit_as_was_meant() {
    let scans = |read_kib: u64, third: f64| {
        let host = limited(0.0).cgroup_io("/tenant", "sda", move |t, row| {
            (row.wbytes, row.wbps_max) = (Some(Bytes(0)), Some(Limit::MAX));
            row.rbytes = Some(Bytes((3.9e6 * t) as u64));
            row.rios = Some(Count((3.9e6 * t) as u64 / (read_kib << 10)));
            row.rbps_max = Some(Limit(4_000_000));
        });
        [(800, 2e6), (801, 1.8e6), (802, third)].into_iter().fold(host, |host, (pid, rate)| {
            host.process("scan", pid, "/tenant", move |t, row| {
                row.read_bytes = Some(Bytes((rate * t) as u64));
                row.blkio_delay = Some(secs(0.9 * t));
            })
        })
    };
    check_rule(&RULE, &scans(256, 1e6), "info: Cgroup /tenant is held to 3.81 MiB/s of reads");
    check_rule(&RULE, &scans(64, 1e6), "critical: Cgroup /tenant is held to 3.81 MiB/s of reads");
    // It reads little and waits as long: it is not what the limit was set for.
    check_rule(&RULE, &scans(256, 5e4), "critical: Cgroup /tenant is held to 3.81 MiB/s of reads");
    // A trace of syncs and pauses has no reads.
    let traced = scans(256, 1e6).traced(&["throttle", "bytes"], vec![]);
    check_rule(&RULE, &traced, "info: Cgroup /tenant is held to 3.81 MiB/s of reads");
}

#[test]
fn bulk_writers_that_are_alike_and_whose_data_pile_up_wait_for_their_limit_as_was_meant() {
    let loads = |write_kib: u64, unwritten_mib: f64, third: f64| {
        let host = limited(3.9e6)
            .limits("/tenant", |_, row| row.memory_max = Some(Limit(mib(200.0))))
            .cgroup("/tenant", move |_, row| {
                row.file = Some(Bytes(mib(150.0)));
                row.file_dirty = Some(Bytes(mib(unwritten_mib)));
                row.file_writeback = Some(Bytes(0));
            })
            .cgroup_io("/tenant", "sda", move |t, row| row.wios = Some(Count((3.9e6 * t) as u64 / (write_kib << 10))));
        [(800, 2e6), (801, 1.8e6), (802, third)].into_iter().fold(host, |host, (pid, rate)| {
            host.process("load", pid, "/tenant", move |t, row| {
                row.write_bytes = Some(Bytes((rate * t) as u64));
                row.blkio_delay = Some(secs(0.9 * t));
            })
        })
    };
    check_rule(&RULE, &loads(256, 40.0, 1e6), "info: Cgroup /tenant is held to 3.81 MiB/s of writes");
    // Small requests, little that piles up, and a task that writes little: these serve callers.
    for host in [loads(16, 40.0, 1e6), loads(256, 2.0, 1e6), loads(256, 40.0, 4e3)] {
        check_rule(&RULE, &host, "critical: Cgroup /tenant is held to 3.81 MiB/s of writes");
    }
}

#[test]
fn waits_that_are_short_one_by_one_and_rare_are_no_harm() {
    // A scan uses up 400 reads a second. A query beside it makes `calls` reads a second and waits for a share of the time.
    let host = |calls: f64, share: f64, asleep: u64| {
        limited(0.0)
            .cgroup_io("/tenant", "sda", |t, row| {
                (row.wbytes, row.wbps_max) = (Some(Bytes(0)), Some(Limit::MAX));
                (row.rios, row.rbytes) = (Some(Count((398.0 * t) as u64)), Some(Bytes((398.0 * 8192.0 * t) as u64)));
                row.riops_max = Some(Limit(400));
            })
            .process("scan", 800, "/tenant", |t, row| {
                row.read_bytes = Some(Bytes((390.0 * 8192.0 * t) as u64));
                row.syscr = Some(Count((390.0 * t) as u64));
                row.blkio_delay = Some(secs(0.95 * t));
            })
            .process("query", 801, "/tenant", move |t, row| {
                row.read_bytes = Some(Bytes((calls * 8192.0 * t) as u64));
                row.syscr = Some(Count((20.0 * calls * t) as u64));
                row.blkio_delay = Some(secs(share * t));
                row.state = Some(Count(u64::from(if (t as u64) % 10 < asleep { b'D' } else { b'S' })));
            })
    };
    check_rule(&RULE, &host(2.0, 0.13, 1), "info: Cgroup /tenant is held to 400 requests/s of reads");
    check_rule(&RULE, &host(1.0, 0.13, 1), "critical: Cgroup /tenant is held to 400 requests/s of reads");
    check_rule(&RULE, &host(8.0, 0.35, 1), "critical: Cgroup /tenant is held to 400 requests/s of reads");
    // Three samples in a row show it asleep: one of its waits is long.
    check_rule(&RULE, &host(2.0, 0.13, 3), "critical: Cgroup /tenant is held to 400 requests/s of reads");
}

#[test]
fn a_limit_with_room_and_a_host_without_limits_are_clear() {
    check_rule(&RULE, &limited(1e6), "clear: 1 cgroup has a limit of I/O; the one used most is used to 25 %");
    check_rule(&RULE, &Fixture::healthy().cgroup_io("/a", "sda", |_, _| {}), "clear: no cgroup has a limit");
}

#[test]
fn a_limit_that_is_used_up_only_while_its_tasks_wait_is_the_reason() {
    // The disk is idle. Half of the limit over the window is all of it in the half in which its tasks wait.
    let waits = |share: f64| limited(1.9e6).cgroup("/tenant", move |t, row| row.io_some = Some(secs(share * t)));
    check_rule(&RULE, &waits(0.5), "warning: Cgroup /tenant is held");
    check_rule(&RULE, &waits(0.9), "clear: 1 cgroup has a limit");
    // A disk that is busy for a fifth of the time does not explain waits of half of it.
    let busy = |share: f64| waits(share).disk("sda", |t, row| row.io_time = Some(secs(600.0 + 0.2 * t)));
    check_rule(&RULE, &busy(0.46), "warning: Cgroup /tenant is held");
    check_rule(&RULE, &busy(0.39), "clear: 1 cgroup has a limit");
}

#[test]
fn without_pressure_by_cgroup_the_machines_counts_where_all_that_wait_are_of_it() {
    let seen = |outside: bool| {
        let asleep = |_: f64, row: &mut ProcessRow| {
            (row.blkio_delay, row.state) = (None, Some(Count(u64::from(b'D'))));
        };
        let host = limited(2.5e6)
            .cgroup("/tenant", |_, row| row.io_some = None)
            .host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.9 * t)))
            .process("worker", 800, "/tenant", asleep)
            .process("worker", 801, "/tenant", asleep);
        if outside { host.process("mail", 802, "/", asleep) } else { host }
    };
    check_rule(&RULE, &seen(false), "warning: Cgroup /tenant is held");
    check_rule(&RULE, &seen(true), "clear: 1 cgroup has a limit");
}

#[test]
fn a_limit_that_was_set_within_the_window_is_not_compared_with_the_time_before() {
    let set = limited(3.9e6).cgroup_io("/tenant", "sda", |t, row| {
        row.wbytes = Some(Bytes((9e6 * t.min(10.0) + 3.9e6 * (t - 10.0).max(0.0)) as u64));
        row.wbps_max = Some(if t < 10.0 { Limit::MAX } else { Limit(4_000_000) });
    });
    // At rest while it was limited: nothing waited for that.
    let rests = limited(3.9e6).cgroup_io("/tenant", "sda", |t, row| {
        row.wbytes = Some(Bytes((9e6 * t.min(10.0)) as u64));
        row.wbps_max = Some(if t < 10.0 { Limit::MAX } else { Limit(4_000_000) });
    });
    check_rule(&RULE, &rests, "clear: 1 cgroup has a limit of I/O");
    // Read once only: what was done under it is not known.
    let once = limited(3.9e6).cgroup_io("/tenant", "sda", |t, row| {
        row.wbps_max = Some(if (9.5..10.5).contains(&t) { Limit(4_000_000) } else { Limit::MAX });
    });
    check_rule(&RULE, &once, "not checked: ");
    let finding = crate::diagnose::first_finding(&RULE, &set);
    assert!(finding.summary.contains("(wbps on sda, which changed during the observation)"), "{}", finding.summary);
    let done = finding.evidence.iter().find(|row| row.name.starts_with("Done by")).expect("its rate");
    assert!(done.name.ends_with(" under its lowest limit") && done.threshold.is_some(), "{done:?}");
    // It held its tasks until it was raised.
    let raised = limited(3.9e6).cgroup_io("/tenant", "sda", |t, row| {
        row.wbps_max = Some(Limit(if t < 15.0 { 4_000_000 } else { 400_000_000 }));
    });
    check_rule(&RULE, &raised, "warning: Cgroup /tenant was held for a time to 3.81 MiB/s of writes");
    let lifted = limited(3.9e6).cgroup_io("/tenant", "sda", |t, row| {
        row.wbps_max = Some(if t < 15.0 { Limit(4_000_000) } else { Limit::MAX });
    });
    check_rule(&RULE, &lifted, "warning: Cgroup /tenant was held for a time to 3.81 MiB/s of writes");
    let always = crate::diagnose::first_finding(&RULE, &limited(3.9e6));
    assert!(!always.summary.contains("changed"), "{}", always.summary);
    assert!(always.evidence.iter().any(|row| row.name == "Done by /tenant on sda" && row.threshold.is_some()));
}

#[test]
fn one_look_cannot_tell() {
    check_rule(&RULE, &limited(3.9e6).one_look(), "not checked: ");
}

/// A cgroup that writes nothing for 12 s, and then 4 MB each second for 6 s, while one of its tasks waits and the disk is busy.
fn in_bursts(limit: u64, waits: f64, disk_busy: f64) -> Fixture {
    let bursts = |t: f64| (t / 18.0).floor() * 6.0 + (t % 18.0 - 12.0).max(0.0);
    Fixture::healthy()
        .cgroup("/shop", move |t, row| row.io_some = Some(secs(waits * bursts(t))))
        .cgroup_io("/shop", "sda", move |t, row| {
            row.wbytes = Some(Bytes(bursts(t) as u64 * 4_000_000));
            row.wios = Some(Count(bursts(t) as u64 * 4));
            row.wbps_max = Some(Limit(limit));
            row.wiops_max = Some(Limit::MAX);
        })
        .disk("sda", move |t, row| row.io_time = Some(secs(600.0 + disk_busy * bursts(t))))
        .process("vacuum", 800, "/shop", move |t, row| {
            row.write_bytes = Some(Bytes((4e6 * bursts(t)) as u64));
            row.blkio_delay = Some(secs(0.5 * bursts(t)));
        })
        .process("basket", 801, "/shop", move |t, row| {
            row.write_bytes = Some(Bytes((4e3 * t) as u64));
            row.blkio_delay = Some(secs(waits * bursts(t)));
        })
        .seconds(54)
}

#[test]
fn a_limit_that_is_used_up_in_bursts_is_found() {
    check_rule(&RULE, &in_bursts(4_200_000, 0.9, 0.7), "critical: Cgroup /shop is held to 4.01 MiB/s of writes");
    // Its bursts take half of the limit, or the disk is full meanwhile.
    check_rule(&RULE, &in_bursts(8_400_000, 0.9, 0.7), "clear: 1 cgroup has a limit");
    check_rule(&RULE, &in_bursts(4_200_000, 0.9, 0.98), "clear: 1 cgroup has a limit");
    // No other task waits.
    check_rule(&RULE, &in_bursts(4_200_000, 0.0, 0.7), "info: Cgroup /shop is held");
}
