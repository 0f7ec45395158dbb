// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings of disks that stand still, and of disks that look alike.

use super::*;
use crate::diagnose::{check_rule, diagnose, first_finding};
use crate::report::Value;
use floodline_record::gap::Cause;
use floodline_record::id::Entity;
use floodline_record::sample::DiskRow;
use floodline_record::units::{Bytes, Count};
use floodline_testkit::{Fixture, dev_of, mib, secs};

/// Seconds of work that a disk has done until second `t`, if it stands still from one second to another and has more work at
/// all other times.
fn work(t: f64, from: f64, to: f64) -> f64 {
    t - (t - from).clamp(0.0, to - from)
}

/// Counters of a disk after some seconds of work at 200 writes a second, with the time it was busy.
fn worked(row: &mut DiskRow, t: f64, done: f64) {
    row.writes = Some(Count((200.0 * done) as u64));
    row.written = Some(Bytes(mib(10.0 * done)));
    row.write_time = Some(secs(2.0 * t));
    row.in_flight = Some(Count(6));
    (row.io_time, row.weighted_io_time) = (Some(secs(0.95 * t)), Some(secs(5.0 * t)));
    // Each tenth write is flushed.
    row.flushes = Some(Count((20.0 * done) as u64));
    row.flush_time = Some(secs(0.1 * t));
}

/// A disk that stands still for some seconds from second 10 on. A database sleeps meanwhile, and a task waits for I/O.
fn standing(lasts: f64) -> Fixture {
    let to = 10.0 + lasts;
    Fixture::healthy()
        .host(move |t, row| row.psi_io_some = Some(secs(900.0 + (t - 10.0).clamp(0.0, lasts))))
        .disk("sda", move |t, row| worked(row, t, work(t, 10.0, to)))
        .process("postgres", 700, "/db", move |t, row| {
            let is_asleep = (10.0..=to).contains(&t);
            row.state = Some(Count(u64::from(if is_asleep { b'D' } else { b'S' })));
        })
        .seconds(40)
}

#[test]
fn a_disk_that_stands_still_is_named_with_the_program_that_waits() {
    let expect = "critical: sda completed hardly any requests for 3.00 s: 6 requests in flight, 0 completed per second instead of 200. \
                  postgres[700] in /db waited 3.00 s for it.";
    check_rule(&RULE, &standing(3.0), expect);
    let report = diagnose(&standing(3.0).window(), None);
    assert_eq!((report.findings[0].rule, report.unexplained), (RULE.name, None));
    let finding = first_finding(&RULE, &standing(3.0));
    assert_eq!((finding.devices, finding.plan, finding.waited_s), (vec!["sda".to_owned()], Vec::new(), Some(3.0)));
    assert_eq!(finding.evidence[1].value, Value::Decimal(10.0), "{:?}", finding.evidence[1]);
    assert!(finding.trade_off.contains("journalctl -k") && finding.trade_off.contains("smartctl -x /dev/sda"));
}

#[test]
fn severity_is_that_of_the_waits() {
    let awake = |pressure: f64| {
        standing(3.0)
            .process("postgres", 700, "/db", |_, row| row.state = Some(Count(u64::from(b'S'))))
            .host(move |t, row| row.psi_io_some = Some(secs(900.0 + pressure * (t - 10.0).clamp(0.0, 3.0))))
    };
    check_rule(&RULE, &awake(0.9), "warning: sda completed hardly any requests for 3.00 s: 6 requests in flight");
    check_rule(&RULE, &awake(0.2), "info: sda completed hardly any requests for 3.00 s");
    // One that sleeps all the time waits for something else.
    let stuck = awake(0.9).process("postgres", 700, "/db", |_, row| row.state = Some(Count(u64::from(b'D'))));
    check_rule(&RULE, &stuck, "warning: sda completed hardly any requests for 3.00 s");
}

#[test]
fn a_traced_wait_counts_with_all_of_its_length() {
    use crate::diagnose::synced::tests::slow;
    use floodline_record::traced::waits::Operation;
    // Events of a fixture end at second 1.
    let with = |ms: u64, lasts: f64| {
        let (parts, events) = slow((812, Operation::Fdatasync, ms, None));
        let host = standing(3.0).process("postgres", 700, "/db", |_, row| row.state = Some(Count(u64::from(b'S'))));
        let host = host.disk("sda", move |t, row| worked(row, t, work(t, 10.0, 10.0 + lasts)));
        let mut window = host.process("redis-server", 812, "/", |_, _| {}).traced(parts, events).window();
        let start = window.first_at.expect("samples").monotonic.0;
        window.events.iter_mut().for_each(|event| event.at = Nanos(start + secs(13.0).0));
        let verdict = check(&Derived::of(&window));
        match verdict {
            Verdict::Found(findings) => (findings[0].severity, findings[0].waited_s),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(with(3_600, 3.0), (Severity::Critical, Some(3.6)));
    // Most of it is before.
    assert_eq!(with(12_000, 1.0), (Severity::Warning, None));
    assert_eq!(with(900, 3.0), (Severity::Warning, Some(0.9)));
}

#[test]
fn a_disk_that_is_slow_or_stays_slow_does_not_stand_still() {
    check_rule(&RULE, &Fixture::healthy(), "clear: in samples 1.00 s apart, no disk stopped completing its requests");
    let of = |lasts: f64, part: f64, later: f64| {
        standing(lasts).disk("sda", move |t, row| {
            let slow = (t - 10.0).clamp(0.0, lasts);
            worked(row, t, t.min(10.0) + part * slow + later * (t - 10.0 - lasts).max(0.0));
        })
    };
    check_rule(&RULE, &of(3.0, 0.05, 1.0), "critical: sda completed hardly any");
    check_rule(&RULE, &of(3.0, 0.2, 1.0), "clear:");
    // Its cache was full: it goes on at its own speed.
    check_rule(&RULE, &of(3.0, 0.05, 0.1), "clear:");
    // It completes some until the end, or there is too little before it.
    check_rule(&RULE, &of(30.0, 0.05, 1.0), "clear:");
    check_rule(&RULE, &of(12.0, 0.0, 1.0), "clear:");
    check_rule(&RULE, &of(0.5, 0.0, 1.0), "clear:");
}

#[test]
fn a_disk_that_has_not_gone_on_by_the_last_sample_is_told() {
    // The recording ends while the disk stands still.
    let hangs = |lasts: f64| standing(40.0).seconds(10 + lasts as u32);
    let expect = "critical: sda completed no request for 3.00 s and had not gone on by the last sample: 6 requests in flight, \
                  200 completed per second before. postgres[700] in /db has waited 3.00 s for it.";
    check_rule(&RULE, &hangs(3.0), expect);
    check_rule(&RULE, &hangs(30.0), "critical: sda completed no request for 30 s and had not gone on");
    let finding = first_finding(&RULE, &hangs(3.0));
    assert_eq!((finding.devices, finding.waited_s), (vec!["sda".to_owned()], Some(3.0)));
    let names: Vec<&str> = finding.evidence.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names[0], "Standstill until the last sample of sda");
    assert!(!names.contains(&"Completed just after"), "{names:?}");
    let told = [&finding.cause, &finding.brief.because, &finding.brief.expect].map(String::as_str).join(" ");
    assert!(told.contains("had not gone on") && !told.contains("as before"), "{told}");
    // It completes a request now and then, as a disk does whose cache is full.
    let slow = hangs(10.0).disk("sda", |t, row| worked(row, t, t.min(10.0) + 0.02 * (t - 10.0).max(0.0)));
    check_rule(&RULE, &slow, "clear:");
    // It has nothing to do.
    let idle = hangs(10.0).disk("sda", |t, row| {
        row.in_flight = Some(Count(if t < 10.0 { 6 } else { 0 }));
        row.io_time = Some(secs(0.95 * t.min(10.0)));
    });
    check_rule(&RULE, &idle, "clear:");
    // Delays are counted when a wait ends.
    let delayed = hangs(3.0).facts(|facts| facts.task_delayacct = Some(true));
    let delayed = delayed.process("postgres", 700, "/db", |_, row| row.blkio_delay = Some(secs(0.0)));
    check_rule(&RULE, &delayed, "critical: sda completed no request");
}

#[test]
fn a_disk_that_hangs_all_the_time_is_told_where_tasks_wait_for_no_other() {
    let hangs = |pressure: f64, other: f64| {
        standing(40.0)
            .host(move |t, row| row.psi_io_some = Some(secs(900.0 + pressure * t)))
            .disk("sda", |t, row| worked(row, t, 0.0))
            .disk("sdb", move |t, row| row.io_time = Some(secs(other * t)))
            .seconds(10)
    };
    let awake = |host: Fixture| host.process("postgres", 700, "/db", |_, row| row.state = Some(Count(u64::from(b'S'))));
    let expect = "warning: sda completed no request in the 10 s that were watched: 6 requests in flight all the time.";
    check_rule(&RULE, &awake(hangs(0.9, 0.1)), expect);
    let asleep = hangs(0.9, 0.1).process("postgres", 700, "/db", |_, row| row.state = Some(Count(u64::from(b'D'))));
    check_rule(&RULE, &asleep, "critical: sda completed no request in the 10 s that were watched");
    let finding = first_finding(&RULE, &asleep);
    assert!(finding.cause.contains("sda completed none from the first sample to the last"), "{}", finding.cause);
    // The count of its requests may be wrong for good.
    let check_doubt = |host: Fixture, expect: &str| {
        let text = cleared(&host);
        assert!(text.ends_with(&format!("sda completed none of its requests, but {expect}")), "{text}");
    };
    check_doubt(hangs(0.1, 0.0), "tasks waited for I/O only 10 % of the time");
    check_doubt(hangs(0.9, 0.8), "tasks may have waited for sdb, which was 80 % busy");
    check_doubt(hangs(0.9, 0.1).host(|_, row| row.psi_io_some = None), "whether tasks waited for I/O is not known");
    check_rule(&RULE, &awake(hangs(0.9, 0.1)).disk("sda", |t, row| row.writes = Some(Count(t as u64))), "clear:");
}

#[test]
fn a_disk_that_hangs_after_a_request_or_two_is_told_as_one_that_hangs_all_the_time() {
    let hangs = |from: f64| {
        standing(80.0)
            .host(move |t, row| row.psi_io_some = Some(secs(900.0 + 0.9 * t)))
            .disk("sda", move |t, row| worked(row, t, 0.01 * t.min(from)))
            .process("postgres", 700, "/db", |_, row| row.state = Some(Count(u64::from(b'D'))))
            .seconds(40)
    };
    let expect =
        "warning: sda completed no request in the last 39 s that were watched: 6 requests in flight all the time.";
    check_rule(&RULE, &hangs(1.0), expect);
    let cause = first_finding(&RULE, &hangs(1.0)).cause;
    assert!(cause.contains("sda completed none for 39 s until the last sample"), "{cause}");
    check_rule(&RULE, &hangs(4.0), "info: sda completed no request for 36 s and had not gone on by the last sample");
}

#[test]
fn the_wait_of_a_disk_that_hangs_is_not_that_of_an_earlier_standstill() {
    let host = Fixture::healthy()
        .disk("sda", |t, row| worked(row, t, work(t.min(40.0), 10.0, 16.0)))
        .process("postgres", 700, "/db", |t, row| {
            let is_asleep = (10.0..=16.0).contains(&t) || t >= 40.0;
            row.state = Some(Count(u64::from(if is_asleep { b'D' } else { b'S' })));
        })
        .seconds(43);
    let expect = "critical: sda completed no request for 3.00 s and had not gone on by the last sample: 6 requests in flight, 200 completed per \
                  second before. It stood still 2 times. postgres[700] in /db has waited 3.00 s for it.";
    check_rule(&RULE, &host, expect);
}

#[test]
fn what_is_not_counted_before_it_ends_may_explain_a_short_one() {
    let hangs = |lasts: u32| standing(40.0).seconds(10 + lasts);
    let check = |host: Fixture, expect: &str| {
        let text = cleared(&host);
        assert!(text.ends_with(expect), "{text}");
    };
    let rare = |lasts| hangs(lasts).disk("sda", |_, row| row.flushes = Some(Count(1)));
    check(rare(3), "Left out: sda stopped for 3.00 s, but a flush of its cache that has not ended may explain it");
    check_rule(&RULE, &rare(6), "critical: sda completed no request for 6.00 s");
    let uncounted = |lasts| hangs(lasts).disk("sda", |_, row| (row.flushes, row.flush_time) = (None, None));
    check(uncounted(3), "but a flush may explain it, and flushes are not counted");
    check_rule(&RULE, &uncounted(6), "critical: sda completed no request for 6.00 s");
    let discards = |lasts| hangs(lasts).disk("sda", |t, row| row.discards = Some(Count(t.min(10.0) as u64)));
    check(discards(3), "but a discard that has not ended may explain it");
    check_rule(&RULE, &discards(6), "critical: sda completed no request for 6.00 s");
}

/// A volume on a disk, both with these requests in flight while the disk stands still for three seconds.
fn volume(in_flight: u64, disk: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Fixture {
    standing(3.0)
        .disk("dm-0", |t, row| worked(row, t, work(t, 10.0, 13.0)))
        .disk("sda", move |t, row| {
            worked(row, t, disk(t));
            row.in_flight = Some(Count(if (10.0..=13.0).contains(&t) { in_flight } else { 6 }));
            row.io_time = Some(secs(0.95 * t));
        })
        .facts(|facts| {
            for one in facts.devices.iter_mut().filter(|one| one.name.to_string() == "dm-0") {
                one.slaves = vec![dev_of("sda")];
            }
        })
}

#[test]
fn of_a_stack_the_lowest_device_that_stands_still_is_told() {
    let devices = |host: &Fixture| match check(&Derived::of(&host.window())) {
        Verdict::Found(findings) => findings.iter().map(|finding| finding.devices.join(" ")).collect::<Vec<_>>(),
        Verdict::Clear(_) => Vec::new(),
        other => panic!("{other:?}"),
    };
    let stopped = |t| work(t, 10.0, 13.0);
    assert_eq!(devices(&volume(6, stopped)), ["sda"]);
    // The volume has no path to its disk.
    assert_eq!(devices(&volume(0, stopped)), ["dm-0"]);
    check_rule(
        &RULE,
        &volume(0, stopped),
        "critical: dm-0 completed hardly any requests for 3.00 s: 6 requests in flight",
    );
    // The disk goes on with something else.
    assert_eq!(devices(&volume(6, |t| t)), Vec::<String>::new());
    let unknown = volume(0, stopped).facts(|facts| facts.devices.clear());
    assert_eq!(devices(&unknown), Vec::<String>::new());
}

#[test]
fn a_disk_without_requests_or_with_few_of_them_does_not_stand_still() {
    let idle = standing(3.0).disk("sda", |t, row| {
        row.in_flight = Some(Count(if (10.0..=13.0).contains(&t) { 0 } else { 6 }));
        row.io_time = Some(secs(0.95 * work(t, 10.0, 13.0)));
    });
    check_rule(&RULE, &idle, "clear:");
    let few = standing(3.0).disk("sda", |t, row| row.writes = Some(Count((5.0 * work(t, 10.0, 13.0)) as u64)));
    check_rule(&RULE, &few, "clear:");
}

#[test]
fn a_cache_that_empties_itself_again_and_again_does_so_by_itself() {
    let cycle = |rests: f64| {
        standing(3.0).disk("sda", move |t, row| {
            let (rounds, rest) = ((t / 4.0).floor(), t % 4.0);
            worked(row, t, rounds * (4.0 - rests) + rest.min(4.0 - rests));
        })
    };
    check_rule(&RULE, &cycle(3.0), "clear:");
}

#[test]
fn a_flush_of_a_full_cache_and_a_discard_explain_it() {
    // Nothing is flushed for ten seconds, and then a flush takes three.
    let flush = |ends: f64, time_s: f64| {
        standing(3.0).disk("sda", move |t, row| {
            let later = (t - ends).max(0.0);
            row.flushes = Some(Count(if t >= ends { 1 } else { 0 } + (20.0 * later) as u64));
            row.flush_time = Some(secs(if t >= ends { time_s } else { 0.0 } + 0.1 * later));
        })
    };
    check_rule(&RULE, &flush(13.0, 2.9), "clear:");
    check_rule(&RULE, &flush(13.0, 0.2), "critical: sda completed hardly any");
    check_rule(&RULE, &flush(20.0, 2.9), "critical: sda completed hardly any");
    // A cache that is flushed all the time has little in it, though a flush is among what waits.
    let often = standing(3.0).disk("sda", |t, row| row.flush_time = Some(secs(0.1 * t + (t - 10.0).clamp(0.0, 3.0))));
    check_rule(&RULE, &often, "critical: sda completed hardly any");
    let uncounted = |cache| {
        let host = standing(3.0).facts(move |facts| facts.devices[0].write_back_cache = Some(cache));
        host.disk("sda", |_, row| (row.flushes, row.flush_time) = (None, None))
    };
    check_rule(&RULE, &uncounted(true), "clear:");
    check_rule(&RULE, &uncounted(false), "critical: sda completed hardly any");
    let discard = standing(3.0).disk("sda", |t, row| row.discards = Some(Count(u64::from(t >= 13.0))));
    check_rule(&RULE, &discard, "clear:");
}

#[test]
fn a_late_sample_does_not_tell_what_waited() {
    let mut window = standing(3.0).window();
    let start = window.first_at.expect("samples").monotonic.0;
    let is_kept = |at: Nanos| !(start + secs(10.5).0..start + secs(12.5).0).contains(&at.0);
    window.disk_series.values_mut().for_each(|series| series.retain(|(at, _)| is_kept(*at)));
    assert!(matches!(check(&Derived::of(&window)), Verdict::Clear(_)));
}

#[test]
fn an_overloaded_host_below_is_named() {
    let stolen = |share: f64| {
        standing(3.0).host(move |t, row| {
            (row.cpu_user, row.cpu_system, row.cpu_iowait) = (Some(secs(t)), Some(secs(0.0)), Some(secs(0.0)));
            (row.cpu_idle, row.cpu_steal) = (Some(secs((1.0 - share) * t)), Some(secs(share * t)));
        })
    };
    let because = |share| first_finding(&RULE, &stolen(share)).brief.because;
    assert!(because(0.6).contains("The hypervisor took 30 % of the CPU time meanwhile"), "{}", because(0.6));
    assert!(!because(0.02).contains("host below"));
}

#[test]
fn disks_that_stand_still_together_are_one_finding() {
    let both = |from: f64| standing(3.0).disk("sdb", move |t, row| worked(row, t, work(t, from, from + 2.0)));
    check_rule(
        &RULE,
        &both(10.0),
        "critical: sda completed hardly any requests for 3.00 s, and so did sdb: 6 requests",
    );
    let Verdict::Found(apart) = check(&Derived::of(&both(25.0).window())) else { panic!("they stand still") };
    let devices: Vec<&[String]> = apart.iter().map(|finding| finding.devices.as_slice()).collect();
    assert_eq!(devices, [["sda".to_owned()], ["sdb".to_owned()]]);
}

/// The text of a verdict that clears the rule.
fn cleared(fixture: &Fixture) -> String {
    match check(&Derived::of(&fixture.window())) {
        Verdict::Clear(text) => text,
        other => panic!("{other:?}"),
    }
}

/// A disk that stands still at several times: their beginnings and lengths, seconds.
fn standing_often(times: &'static [(f64, f64)]) -> Fixture {
    let lost = |t: f64| times.iter().map(|(from, lasts)| (t - from).clamp(0.0, *lasts)).sum::<f64>();
    standing(3.0).disk("sda", move |t, row| worked(row, t, t - lost(t))).seconds(60)
}

#[test]
fn one_synchronous_reader_between_deep_queues_does_not_wait_longer() {
    let walk = |in_flight: u64, pace: f64| {
        standing(3.0).disk("sda", move |t, row| {
            let done = 16_000.0 * work(t, 10.0, 13.0) + pace * (t - 10.0).clamp(0.0, 3.0);
            row.writes = Some(Count(done as u64));
            row.written = Some(Bytes((4096.0 * done) as u64));
            row.in_flight = Some(Count(if (10.0..=13.0).contains(&t) { in_flight } else { 32 }));
        })
    };
    // Each takes its 2 or 13 ms.
    check_rule(&RULE, &walk(1, 500.0), "clear:");
    check_rule(&RULE, &walk(1, 76.0), "clear:");
    check_rule(&RULE, &walk(32, 32.0), "critical: sda completed hardly any");
    check_rule(&RULE, &walk(1, 0.0), "critical: sda completed hardly any");
}

#[test]
fn a_disk_that_stops_in_cycles_does_so_by_itself() {
    let text = cleared(&standing_often(&[(9.0, 2.5), (20.5, 2.5), (32.0, 2.5), (43.5, 2.5)]));
    assert!(text.contains("sda stopped 4 times, for 2.00 s at most, at nearly equal distances of 12 s"), "{text}");
    // Two of them, others at any time, and others of any length.
    let found = "critical: sda completed hardly any requests for";
    check_rule(&RULE, &standing_often(&[(9.0, 2.5), (20.5, 2.5)]), "info: sda completed hardly any");
    check_rule(&RULE, &standing_often(&[(10.0, 3.0), (22.0, 3.0), (45.0, 3.0)]), found);
    check_rule(&RULE, &standing_often(&[(10.0, 7.0), (27.0, 2.0), (44.0, 2.0)]), "info: sda completed hardly any");
}

#[test]
fn short_stops_by_a_clock_are_told() {
    let times = &[(30.0, 3.0), (90.0, 3.0), (150.0, 3.0), (210.0, 3.0)];
    let host = standing_often(times).seconds(240);
    check_rule(
        &RULE,
        &host,
        "info: sda completed hardly any requests for up to 3.00 s (4 times, every 60 s): 6 requests",
    );
    assert!(
        first_finding(&RULE, &host)
            .brief
            .because
            .contains("standstills begin at nearly equal distances, as those of a self-test")
    );
    // A cycle of a cache goes on until the last sample.
    let cycle = standing_often(&[(9.0, 3.0), (20.5, 3.0), (32.0, 3.0), (43.5, 3.0)]).seconds(46);
    assert!(cleared(&cycle).contains("sda stopped 4 times"), "{}", cleared(&cycle));
}

#[test]
fn what_is_left_out_is_told() {
    let discard = standing(3.0).disk("sda", |t, row| row.discards = Some(Count(u64::from(t >= 13.0))));
    let text = cleared(&discard);
    assert!(text.starts_with("in samples 1.00 s apart, no other disk stopped"), "{text}");
    assert!(text.ends_with("Left out: sda stopped for 3.00 s, but a discard explains it"), "{text}");
    let flush = standing(3.0).disk("sda", |_, row| (row.flushes, row.flush_time) = (None, None));
    assert!(cleared(&flush).ends_with("but a flush may explain it, and flushes are not counted"));
    let uncounted = Fixture::healthy().disk("sdb", |_, row| row.in_flight = None);
    assert!(cleared(&uncounted).ends_with("Left out: sdb was not judged: its requests in flight are not counted"));
    assert!(!cleared(&Fixture::healthy()).contains("Left out"));
}

#[test]
fn a_program_that_is_asleep_by_chance_did_not_wait_for_it() {
    let state = |is_asleep: bool| Some(Count(u64::from(if is_asleep { b'D' } else { b'S' })));
    let delayed = |delay_s: f64| {
        let host = standing(3.0).facts(|facts| facts.task_delayacct = Some(true));
        host.process("postgres", 700, "/db", move |t, row| {
            row.blkio_delay = Some(secs(delay_s * ((t - 10.0) / 3.0).clamp(0.0, 1.0)));
        })
    };
    check_rule(&RULE, &delayed(2.95), "critical: sda completed hardly any");
    check_rule(&RULE, &delayed(0.2), "warning: sda completed hardly any");
    // It is asleep in each fifth sample.
    let often = standing(3.0).process("postgres", 700, "/db", move |t, row| {
        row.state = state((10.0..=13.0).contains(&t) || t % 5.0 < 0.5);
    });
    check_rule(&RULE, &often, "warning: sda completed hardly any");
    // Two samples of a program that is seldom asleep: among hundreds there is one by chance.
    let among = |others: u32| {
        let host = standing(1.0).process("postgres", 700, "/db", move |t, row| {
            row.state = state((10.0..=11.0).contains(&t) || t == 20.0 || t == 30.0);
        });
        (0..others).fold(host, |host, at| {
            host.process("worker", 1000 + at, "/", move |t, row| row.state = state(t as u32 == 20 + at % 20))
        })
    };
    check_rule(&RULE, &among(0), "critical: sda completed hardly any");
    check_rule(&RULE, &among(200), "warning: sda completed hardly any");
}

#[test]
fn pressure_that_was_there_before_is_no_sign() {
    let pressed = |beside: f64| {
        let host = standing(3.0).process("postgres", 700, "/db", |_, row| row.state = Some(Count(u64::from(b'S'))));
        host.host(move |t, row| {
            row.psi_io_some = Some(secs(900.0 + beside * work(t, 10.0, 13.0) + 0.9 * (t - 10.0).clamp(0.0, 3.0)));
        })
    };
    check_rule(&RULE, &pressed(0.1), "warning: sda completed hardly any");
    check_rule(&RULE, &pressed(0.8), "info: sda completed hardly any");
}

/// Traced waits that end at second 13, of processes on devices and with lengths.
fn traced(host: Fixture, waits: &[(u32, u64, Option<&str>)]) -> (Severity, Option<f64>) {
    use crate::diagnose::synced::tests::slow;
    use floodline_record::traced::waits::Operation;
    let of = |(pid, ms, on): &(u32, u64, Option<&str>)| slow((*pid, Operation::Fsync, *ms, on.map(dev_of))).1;
    let mut window = host.traced(&["throttle", "bytes"], waits.iter().flat_map(of).collect()).window();
    let start = window.first_at.expect("samples").monotonic.0;
    window.events.iter_mut().for_each(|event| event.at = Nanos(start + secs(13.0).0));
    match check(&Derived::of(&window)) {
        Verdict::Found(findings) => (findings[0].severity, findings[0].waited_s),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wait_on_a_volume_counts_for_the_disks_below_it() {
    let of = || {
        let host = standing(3.0).process("postgres", 700, "/db", |_, row| row.state = Some(Count(u64::from(b'S'))));
        let host = host.disk("sdb", |_, _| {}).disk("dm-0", |_, _| {}).disk("dm-1", |_, _| {});
        host.facts(|facts| {
            for one in &mut facts.devices {
                match one.name.to_string().as_str() {
                    "dm-0" => one.slaves = vec![dev_of("sda")],
                    "dm-1" => one.slaves = vec![dev_of("sdb")],
                    _ => {}
                }
            }
        })
        .process("redis-server", 812, "/", |_, _| {})
    };
    assert_eq!(traced(of(), &[(812, 2_900, Some("dm-0"))]), (Severity::Critical, Some(2.9)));
    assert_eq!(traced(of(), &[(812, 2_900, Some("dm-1"))]), (Severity::Warning, None));
    // It is not known what lies below.
    assert_eq!(traced(of(), &[(812, 2_900, Some("dm-7"))]), (Severity::Critical, Some(2.9)));
}

#[test]
fn the_longest_wait_of_a_process_id_is_kept() {
    assert_eq!(traced(standing(3.0), &[(700, 900, Some("sda"))]), (Severity::Critical, Some(3.0)));
    // The process id was used again, by a program that waits for the second one.
    let twice = standing_often(&[(10.0, 3.0), (30.0, 1.0)]).process("vacuum", 701, "/db", |t, row| {
        row.state = Some(Count(u64::from(if (30.0..=31.0).contains(&t) { b'D' } else { b'S' })));
    });
    let mut window = twice.window();
    let is_second = |entity: &Entity| matches!(entity, Entity::Process { pid: 701, .. });
    let second = window.entities.iter().find(|(_, entity)| is_second(entity)).map(|(id, entity)| (*id, entity.clone()));
    let Some((id, Entity::Process { start_ticks, comm, cgroup, kthread, .. })) = second else { panic!("a process") };
    window.entities.insert(id, Entity::Process { pid: 700, start_ticks, comm, cgroup, kthread });
    let Verdict::Found(found) = check(&Derived::of(&window)) else { panic!("it stands still") };
    assert_eq!(found[0].waited_s, Some(3.0));
}

#[test]
fn without_its_readings_it_is_not_checked() {
    check_rule(&RULE, &standing(3.0).one_look(), "not checked: /proc/diskstats");
    check_rule(&RULE, &standing(3.0).without(Source::Diskstats, Cause::NotRecorded), "not checked: /proc/diskstats");
    let uncounted = standing(3.0).disk("sda", |_, row| row.in_flight = None);
    check_rule(&RULE, &uncounted, "not checked: /proc/diskstats (requests in flight)");
}
