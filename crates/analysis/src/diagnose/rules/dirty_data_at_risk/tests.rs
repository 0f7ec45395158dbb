// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the rule `dirty-data-at-risk`.

use super::*;
use crate::diagnose::check_rule;
use floodline_record::facts::{HostFacts, Mount};
use floodline_record::gap::Cause;
use floodline_record::sample::BdiRow;
use floodline_record::units::{Bytes, BytesPerSecond, Centisecs};
use floodline_testkit::incidents::{dirty_cliff, dirty_cliff_published};
use floodline_testkit::{Fixture, mib, mib_pages};

fn whole(counted: u64) -> AtRisk {
    AtRisk { counted, written: None }
}

/// The settings of a machine that may have more dirty than by the kernel's defaults.
const RAISED: (u64, u64, u64, u64) = (40, 0, 20, 0);

fn dirty_mib(amount: f64) -> Fixture {
    Fixture::healthy().host(move |_, row| row.nr_dirty = Some(mib_pages(amount)))
}

#[test]
fn amounts_are_held_against_the_time_to_write_them() {
    check_rule(
        &RULE,
        &dirty_mib(100.0),
        "clear: the most that was dirty or under writeback in a sample is 100 MiB, 243 ms of writing; the flusher writes it once it is 35 s old",
    );
    check_rule(&RULE, &dirty_mib(1200.0), "info: 1.17 GiB are only in memory, up to 35 s old");
    // A counter that fell below zero is not data: the value of meminfo counts.
    let wrapped = Fixture::healthy().host(|_, row| row.nr_dirty = Some(floodline_record::units::Pages(u64::MAX - 5)));
    check_rule(&RULE, &wrapped, "clear: ");
    let slow =
        |amount: f64| dirty_mib(amount).bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(mib(30.0))));
    check_rule(&RULE, &slow(400.0).settings(RAISED), "warning: 400 MiB are only in memory, up to 35 s old");
    check_rule(&RULE, &slow(200.0).settings(RAISED), "clear:");
    // The defaults allow a stop of some seconds more by design, and not one of half a minute.
    check_rule(&RULE, &slow(400.0), "info: 400 MiB are only in memory, up to 35 s old");
    check_rule(&RULE, &slow(1000.0), "warning: 0.98 GiB are only in memory, up to 35 s old");
    // Each of the four settings counts.
    let aged = |expire: u64, period: u64| {
        slow(400.0).host(move |_, row| {
            row.dirty_expire_centisecs = Some(Centisecs(expire));
            row.dirty_writeback_centisecs = Some(Centisecs(period));
        })
    };
    check_rule(&RULE, &aged(3000, 500), "info:");
    check_rule(&RULE, &aged(4000, 500), "warning:");
    check_rule(&RULE, &aged(3000, 600), "warning:");
    // In laptop mode the background threshold wakes no flusher, on kernels that have it.
    let laptop = |kernel: &str| {
        aged(3000, 500).kernel(kernel).host(|_, row| row.laptop_mode = Some(floodline_record::units::Seconds(5)))
    };
    check_rule(&RULE, &laptop("6.12.117"), "warning:");
    check_rule(&RULE, &laptop("7.2.13"), "info:");
    check_rule(&RULE, &slow(400.0).settings((20, 0, 0, 64 << 20)), "info:");
    check_rule(&RULE, &slow(400.0).settings((40, 0, 10, 0)), "warning:");
    check_rule(&RULE, &dirty_cliff_published(), "warning: 11.0 GiB");
    check_rule(&RULE, &dirty_cliff(), "clear: the most that was dirty or under writeback in a sample is 298 MiB");
}

#[test]
fn folios_that_are_written_in_parts_are_not_all_at_risk() {
    let on = |facts: &mut HostFacts, fs_type: &str, kernel: &str| {
        facts.mounts[0].fs_type = fs_type.into();
        facts.kernel = kernel.parse().ok();
    };
    let host = |written_mib: f64, dirty_mib: f64| {
        Fixture::healthy()
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(dirty_mib));
                row.nr_written = Some(mib_pages(300.0 * t));
            })
            .disk("sda", move |t, row| row.written = Some(Bytes(mib(written_mib * t))))
            .seconds(50)
            .facts(move |facts| on(facts, "xfs", "6.12.1"))
    };
    check_rule(&RULE, &host(300.0, 1600.0), "info: 1.56 GiB are only in memory");
    check_rule(
        &RULE,
        &host(3.0, 1600.0),
        "clear: the most that was dirty or under writeback in a sample is about 105 MiB (at most 1.56 GiB, counted in whole folios)",
    );
    check_rule(
        &RULE,
        &host(60.0, 12_000.0),
        "info: about 2.34 GiB (at most 11.7 GiB, counted in whole folios) are only in memory",
    );
    // Nothing shows parts of folios where the kernel or the filesystem writes none, and where data are compressed.
    let whole = "info: 1.56 GiB are only in memory";
    check_rule(&RULE, &host(3.0, 1600.0).facts(move |facts| on(facts, "xfs", "6.1.170")), whole);
    check_rule(&RULE, &host(3.0, 1600.0).facts(move |facts| on(facts, "ext4", "6.12.1")), whole);
    let compressed = |facts: &mut HostFacts| {
        let mount = Mount { super_options: "rw,compress=zstd:3".into(), ..facts.mounts[0].clone() };
        facts.mounts.push(mount);
    };
    check_rule(&RULE, &host(3.0, 1600.0).facts(compressed), whole);
}

#[test]
fn data_that_came_after_the_folios_are_at_risk_as_a_whole() {
    // A store dirties parts of folios all the time, and a copy is in memory at the end.
    let copy = |copied_s: f64| {
        Fixture::healthy()
            .seconds(50)
            .facts(|facts| facts.mounts[0].fs_type = "xfs".into())
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(if t > copied_s { 1200.0 } else { 100.0 }));
                row.nr_written = Some(mib_pages(100.0 * t));
            })
            .disk("sda", |t, row| row.written = Some(Bytes(mib(0.5 * t))))
    };
    check_rule(&RULE, &copy(45.0), "info: 1.17 GiB are only in memory");
    // The store's folios are cleaned again and again. The copy is not old enough.
    check_rule(&RULE, &copy(30.0), "info: 1.17 GiB are only in memory");
}

#[test]
fn the_disk_that_needs_longest_for_its_own_data_counts() {
    let two_disks = |reclaimable: f64| {
        let bdi = move |bytes: f64, speed: f64| {
            move |t: f64, row: &mut BdiRow| {
                row.reclaimable = Some(Bytes(mib(bytes - t)));
                row.writeback = Some(Bytes(0));
                row.write_bandwidth = Some(BytesPerSecond(mib(speed)));
            }
        };
        dirty_mib(700.0)
            .disk("sdb", |t, row| row.written = Some(Bytes(mib(t))))
            .disk("sda", |t, row| row.written = Some(Bytes(mib(50.0 * t))))
            .bdi("8:0", bdi(695.0 - reclaimable, 50.0))
            .bdi("8:16", bdi(reclaimable, 20.0))
    };
    let told = |reclaimable: f64| {
        let window = two_disks(reclaimable).window();
        let drain = drain(&Derived::of(&window), whole(mib(700.0)));
        (drain.to.map(|(device, _)| device.name.to_string()), drain.part, drain.seconds())
    };
    assert_eq!(told(650.0), (Some("sdb".to_owned()), mib(650.0), Some(32.5)));
    // The slow one needs longer for less.
    assert_eq!(told(300.0).0, Some("sdb".to_owned()));
    // The other disk says nothing of a disk whose speed is not known.
    let unknown = two_disks(650.0).bdi("8:16", |t, row| {
        (row.reclaimable, row.writeback) = (Some(Bytes(mib(650.0 - t))), Some(Bytes(0)));
        row.write_bandwidth = None;
    });
    let unknown = unknown.disk("sdb", |_, _| {}).window();
    assert!(drain(&Derived::of(&unknown), whole(mib(700.0))).to.is_none());
}

#[test]
fn a_pile_that_is_soon_gone_is_no_warning_unless_a_stop_would_take_very_long() {
    let pile = |amount: f64, until: f64| {
        Fixture::healthy()
            .host(move |t, row| row.nr_dirty = Some(mib_pages(if t < until { amount } else { 1.0 })))
            .bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(mib(30.0))))
            .seconds(20)
    };
    check_rule(&RULE, &pile(400.0, 6.0), "info: 400 MiB are only in memory, up to 35 s old");
    check_rule(&RULE, &pile(400.0, 14.0).settings(RAISED), "warning: 400 MiB are only in memory, up to 35 s old");
    check_rule(&RULE, &pile(1000.0, 6.0), "warning: 0.98 GiB are only in memory, up to 35 s old");
    // Ten seconds may be the last of a cycle.
    check_rule(&RULE, &pile(400.0, 7.0).seconds(10), "info: 400 MiB are only in memory, up to 35 s old");
    check_rule(
        &RULE,
        &pile(400.0, 14.0).seconds(10).settings(RAISED),
        "warning: 400 MiB are only in memory, up to 35 s old",
    );
    check_rule(
        &RULE,
        &pile(400.0, 14.0).one_look().settings(RAISED),
        "warning: 400 MiB are only in memory, up to 35 s old",
    );
}

#[test]
fn data_of_a_copy_that_outruns_the_disk_do_not_wait_for_their_age() {
    let copy = |amount: f64, dirtied: f64| {
        Fixture::healthy()
            .seconds(60)
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(amount));
                row.nr_dirtied = Some(mib_pages(dirtied * t));
            })
            .disk("sda", |t, row| {
                row.written = Some(Bytes(mib(95.0 * t)));
                row.writes = Some(floodline_record::units::Count(90 * t as u64));
                row.io_time = Some(floodline_testkit::secs(t));
                row.weighted_io_time = Some(floodline_testkit::secs(100.0 * t));
            })
            .bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(mib(95.0))))
    };
    check_rule(&RULE, &copy(1400.0, 120.0), "info: 1.37 GiB are only in memory: a power cut loses them, a clean");
    let finding = crate::diagnose::first_finding(&RULE, &copy(1400.0, 120.0));
    assert!(finding.brief.because.starts_with("Programs write more than sda takes."), "{}", finding.brief.because);
    assert!(!finding.cause.contains("age"), "{}", finding.cause);
    assert!(!finding.evidence.iter().any(|row| row.name.starts_with("Oldest")), "{:?}", finding.evidence);
    // One burst may be as long as a short look.
    let burst = crate::diagnose::first_finding(&RULE, &copy(1400.0, 120.0).seconds(12)).brief.because;
    assert!(!burst.starts_with("Programs write more"), "{burst}");
    // The same amount, on a disk that keeps up.
    check_rule(&RULE, &copy(1400.0, 20.0).settings(RAISED), "warning: 1.37 GiB are only in memory, up to 35 s old");
    // A stop of half a minute is long, whatever the reason.
    check_rule(&RULE, &copy(4000.0, 120.0), "warning: 3.91 GiB are only in memory: a power cut");
}

#[test]
fn a_disk_that_turns_is_never_faster_than_its_kind() {
    let turning = |amount: f64| {
        dirty_mib(amount).bdi("8:0", |_, row| row.write_bandwidth = Some(BytesPerSecond(200 << 20))).facts(|facts| {
            facts.devices.iter_mut().for_each(|device| device.rotational = Some(true));
        })
    };
    check_rule(&RULE, &turning(1200.0), "info: 1.17 GiB are only in memory, up to 35 s old");
    check_rule(
        &RULE,
        &turning(3600.0).settings(RAISED),
        "warning: 3.52 GiB are only in memory, up to 35 s old: a power cut loses them, a clean stop takes at least 13 s",
    );
}

#[test]
fn what_moves_from_dirty_to_writeback_is_counted_once() {
    let moves = Fixture::healthy().host(|t, row| {
        let written = 300.0 * t;
        row.nr_dirty = Some(mib_pages(3000.0 - written));
        row.nr_writeback = Some(mib_pages(written));
    });
    check_rule(&RULE, &moves, "info: 2.93 GiB are only in memory");
}

#[test]
fn an_age_without_end_matters_when_there_is_something_to_lose() {
    let off = |amount: f64| dirty_mib(amount).host(|_, row| row.dirty_writeback_centisecs = Some(Centisecs(0)));
    check_rule(&RULE, &off(20.0), "warning: 20.0 MiB are only in memory, and their age never triggers a write");
    check_rule(
        &RULE,
        &off(2.0),
        "clear: the most that was dirty or under writeback in a sample is 2.00 MiB, 4.85 ms of writing; the \
         flusher does not write by age",
    );
}

#[test]
fn an_age_that_is_short_already_is_not_made_longer() {
    let off = |expire: u64| {
        let fixture = dirty_mib(300.0).host(move |_, row| {
            row.dirty_writeback_centisecs = Some(Centisecs(0));
            row.dirty_expire_centisecs = Some(Centisecs(expire));
        });
        let Verdict::Found(findings) = check(&Derived::of(&fixture.window())) else { panic!("nothing found") };
        let set = |step: &Step| step.command.clone();
        findings[0].plan.iter().filter(|step| step.command.contains("_centisecs=")).map(set).collect::<Vec<_>>()
    };
    assert_eq!(off(1000), ["sysctl -w vm.dirty_writeback_centisecs=500"]);
    let both = ["sysctl -w vm.dirty_expire_centisecs=3000", "sysctl -w vm.dirty_writeback_centisecs=500"];
    assert_eq!(off(360_000), both);
}

#[test]
fn one_look_is_enough() {
    check_rule(&RULE, &dirty_mib(1200.0).one_look(), "info: 1.17 GiB");
}

#[test]
fn the_cgroups_it_belongs_to_are_named() {
    let fixture = dirty_mib(1300.0)
        .cgroup("/system.slice", |_, row| row.file_dirty = Some(Bytes(mib(650.0))))
        .cgroup("/system.slice/db.service", |_, row| row.file_dirty = Some(Bytes(mib(640.0))));
    let Verdict::Found(findings) = check(&Derived::of(&fixture.window())) else { panic!("nothing found") };
    let names: Vec<&str> = findings[0].evidence.iter().map(|row| row.name.as_str()).collect();
    assert!(names.contains(&"Of it, in /system.slice/db.service"), "{names:?}");
    assert!(!names.contains(&"Of it, in /system.slice"), "{names:?}");
}

#[test]
fn without_its_inputs_it_says_so() {
    let vanished =
        Fixture::healthy().without(Source::Vmstat, Cause::Vanished).without(Source::Meminfo, Cause::Vanished);
    check_rule(&RULE, &vanished, "not checked: /proc/vmstat: removed before it was read");
    let no_sysctl = Fixture::healthy().without(Source::SysctlVm, Cause::NotFound);
    check_rule(&RULE, &no_sysctl, "not checked: /proc/sys/vm/NAME: does not exist here");
}
