// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings made by hand: the published incidents, and what only a trace shows. The model traces less than a kernel.

use super::check;
use super::runs::folded;
use floodline_record::id::{DevId, Entity};
use floodline_record::record::{Record, What};
use floodline_record::traced::Who;
use floodline_record::traced::bytes::Dirtied;
use floodline_record::traced::flusher::Flushed;
use floodline_record::traced::switches::{CgroupRemoved, ForeignDirtied, ForeignFlushed, InodesSwitched};
use floodline_record::traced::throttle::{Domain, ThrottleState, Throttled};
use floodline_record::traced::waits::{Operation, SlowSync, Synced};
use floodline_record::units::{Bytes, Count, Nanos, Pages};
use floodline_testkit::incidents::{INCIDENTS, inode_switch_storm, starved_budget};
use floodline_testkit::{Fixture, mib, secs};

fn who(pid: u32, cgroup_ino: u64) -> Who {
    Who { pid, comm: "writer".into(), cgroup_ino }
}

fn paused(task: Who, bdi: &str, wb_cgroup_ino: u64, domain: Domain, ms: u64) -> What {
    let (slept, longest) = (Nanos::from_millis(ms), Nanos::from_millis(ms / 2));
    let state =
        ThrottleState { wb_dirty_pages: Pages(3000), wb_setpoint_pages: Pages(2000), ..ThrottleState::default() };
    What::Throttled(Box::new(Throttled {
        since: Nanos(0),
        tid: task.pid,
        who: task,
        bdi: bdi.into(),
        wb_cgroup_ino,
        domain,
        pauses: 2,
        pause_ns: slept,
        pause_ns_max: longest,
        slept_ns: Some(slept),
        slept_ns_max: Some(longest),
        unpaused: 0,
        longest: Some(state),
    }))
}

fn dirtied(task: Who, bytes: u64, redirtied: u64) -> What {
    let device = DevId { major: 8, minor: 0 };
    let (bytes, redirtied) = (Bytes(bytes), Bytes(redirtied));
    What::Dirtied(Dirtied { since: Nanos(0), who: task, device, file: None, bytes, folios: 1, redirtied })
}

fn flushed(wb_cgroup_ino: u64, reason: &str, rounds: u64) -> What {
    What::Flushed(Box::new(Flushed {
        since: Nanos(0),
        bdi: "8:16".into(),
        wb_cgroup_ino,
        reason: reason.into(),
        rounds,
        sync_rounds: 0,
        pages: Pages(rounds),
        busy_ns: Nanos::from_millis(rounds),
        busy_ns_max: Nanos::from_millis(1),
    }))
}

fn moved((one, other): (u64, u64), switched: u64, first_ms: u64) -> What {
    let start = secs(floodline_testkit::UPTIME).0;
    What::InodesSwitched(Box::new(InodesSwitched {
        since: Nanos(0),
        bdi: "8:0".into(),
        old_cgroup_ino: one,
        new_cgroup_ino: other,
        switched,
        queued: None,
        first_at: Nanos(start + first_ms * 1_000_000),
        last_at: Nanos(start + (first_ms + 1500) * 1_000_000),
    }))
}

/// Inode numbers of the cgroups of a recording, by path.
fn inos(fixture: &Fixture, is_wanted: impl Fn(&str) -> bool) -> Vec<u64> {
    let ino = |record: &Record| match record {
        Record::Entity(_, entity @ Entity::Cgroup { ino, .. }) if is_wanted(&entity.label()) => *ino,
        _ => None,
    };
    fixture.records().iter().filter_map(ino).collect()
}

/// Starved budgets with the pauses, the bytes and the flusher's rounds of each of them, and of the root.
fn starved() -> Fixture {
    let boxes = inos(&starved_budget(), |path| path.starts_with("/bench.slice/writer-"));
    let mut events = vec![paused(who(9, 1), "8:16", 1, Domain::Global, 4000), dirtied(who(9, 1), mib(50.0), 0)];
    for (at, ino) in boxes.iter().enumerate() {
        let at = at as u64;
        events.push(paused(who(2000 + at as u32, *ino), "8:16", *ino, Domain::Memcg, 300 + 100 * at));
        events.push(paused(who(9, 1), "8:16", *ino, Domain::Memcg, 70));
        events.push(dirtied(who(2000 + at as u32, *ino), mib(20.0 + at as f64), mib(19.0)));
        events.push(flushed(*ino, "background", 50 + at));
        events.push(flushed(*ino, "periodic", 3));
    }
    starved_budget().traced(&["throttle", "bytes", "flusher"], events)
}

/// Two cgroups whose files move between them, and one that waits for the other's flusher.
fn thrash(moves: u64, pause_ms: u64) -> Fixture {
    let host = || Fixture::healthy().cgroup("/one", |_, _| {}).cgroup("/other", |_, _| {});
    let (one, other) = (inos(&host(), |path| path == "/one")[0], inos(&host(), |path| path == "/other")[0]);
    let bdi = || "8:0".into();
    let dirtied = |folios, last_ino| {
        let foreign = ForeignDirtied {
            since: Nanos(0),
            bdi: bdi(),
            wb_cgroup_ino: one,
            page_cgroup_ino: other,
            folios,
            last_ino,
        };
        What::ForeignDirtied(Box::new(foreign))
    };
    let asked = ForeignFlushed { since: Nanos(0), bdi: bdi(), cgroup_ino: other, frn_memcg_id: 3, flushes: 17 };
    let mut events = vec![dirtied(900, 41), dirtied(800, 42), What::ForeignFlushed(Box::new(asked))];
    events.push(paused(who(77, other), "8:0", other, Domain::Memcg, pause_ms));
    if moves > 0 {
        events.extend([
            moved((one, other), moves, 100),
            moved((other, one), moves + 4, 900),
            moved((one, other), moves, 4000),
        ]);
    }
    host().traced(&["switches", "throttle"], events)
}

/// A file that three cgroups append to in turn: its inode goes round among them.
fn in_turn() -> Fixture {
    let host =
        ["/one", "/other", "/third"].into_iter().fold(Fixture::healthy(), |host, path| host.cgroup(path, |_, _| {}));
    let of = |wanted: &str| inos(&host, |path| path == wanted)[0];
    let (one, other, third) = (of("/one"), of("/other"), of("/third"));
    let events = vec![moved((one, other), 5, 100), moved((other, third), 4, 900), moved((third, one), 3, 1700)];
    host.traced(&["switches", "throttle"], events)
}

fn storm() -> Fixture {
    let removed = CgroupRemoved { cgroup_ino: 4711, path: "/build".into() };
    let events = vec![What::CgroupRemoved(removed), moved((4711, 1), 9000, 1300), moved((4711, 1), 700, 4000)];
    inode_switch_storm().traced(&["switches"], events)
}

fn strict() -> Fixture {
    let pauses = [(812, 3000), (813, 900), (812, 2500)];
    let events = pauses.map(|(pid, ms)| paused(who(pid, 1), "8:0", 1, Domain::Strictlimit, ms));
    let one = Fixture::healthy().bdi("8:0", |_, row| row.max_bytes = Some(Bytes(mib(20.0))));
    one.traced(&["throttle"], events.into())
}

/// A disk that stands still twice while a database waits, with the trace of one wait, and a host below that is busy.
fn stalled(is_traced: bool) -> Fixture {
    let work = |t: f64| t - (t - 10.0).clamp(0.0, 3.0) - (t - 30.0).clamp(0.0, 2.0);
    let host = Fixture::healthy()
        .host(|t, row| {
            row.psi_io_some = Some(secs(900.0 + 0.9 * (t - 10.0).clamp(0.0, 3.0)));
            (row.cpu_user, row.cpu_system, row.cpu_iowait) = (Some(secs(t)), Some(secs(0.2 * t)), Some(secs(0.0)));
            (row.cpu_idle, row.cpu_steal) = (Some(secs(0.3 * t)), Some(secs(0.4 * t)));
        })
        .disk("sda", move |t, row| {
            row.writes = Some(Count((200.0 * work(t)) as u64));
            row.written = Some(Bytes(mib(10.0 * work(t))));
            row.in_flight = Some(Count(6 + t as u64 % 3));
            (row.io_time, row.weighted_io_time) = (Some(secs(0.95 * t)), Some(secs(5.0 * t)));
            row.flushes = Some(Count((20.0 * work(t)) as u64));
        })
        .process("postgres", 700, "/db", |t, row| {
            let is_asleep = (10.0..=13.0).contains(&t);
            row.state = Some(Count(u64::from(if is_asleep { b'D' } else { b'S' })));
        })
        .seconds(60);
    let lasted = Nanos::from_millis(2600);
    let task = || who(701, 1);
    let own = Bytes(0);
    let slow = SlowSync {
        who: task(),
        tid: None,
        operation: Operation::Fsync,
        lasted,
        device: None,
        file: None,
        queued: None,
        own,
    };
    let all =
        Synced { since: Nanos(0), who: task(), operation: Operation::Fsync, count: 1, total: lasted, longest: lasted };
    match is_traced {
        true => host.traced(&["throttle", "bytes"], vec![What::SlowSync(slow), What::Synced(all)]),
        false => host,
    }
}

/// The same disk, which completes nothing from the first sample to the last.
fn hanging() -> Fixture {
    stalled(false)
        .host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.9 * t)))
        .disk("sda", |_, row| (row.writes, row.written, row.flushes) = (Some(Count(7)), Some(Bytes(7)), Some(Count(7))))
        .seconds(20)
}

/// Records of a recording, with its slow waits ending in the first standstill.
fn records(fixture: &Fixture) -> Vec<Record> {
    let mut records = fixture.records();
    for record in &mut records {
        if let Record::Event(event) = record
            && matches!(event.what, What::SlowSync(_))
        {
            event.at = secs(floodline_testkit::UPTIME + 13.0);
        }
    }
    records
}

/// Checks a recording whose report must have these numbers, by the beginning of their names.
fn has(fixture: &Fixture, names: &[&str], wrong: &mut Vec<String>) -> usize {
    let (mut raw, report) = folded(&records(fixture));
    let rows: Vec<&str> =
        report.findings.iter().flat_map(|finding| &finding.evidence).map(|row| row.name.as_str()).collect();
    for name in names {
        assert!(rows.iter().any(|row| row.starts_with(name)), "no {name} in {rows:#?}");
    }
    check(&mut raw, &report, names.first().unwrap_or(&"an incident"), wrong)
}

#[test]
fn every_number_of_recordings_made_by_hand_is_what_they_say() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for incident in INCIDENTS {
        checked += has(&(incident.make)(), &[], &mut wrong);
    }
    let traced: [(Fixture, &[&str]); 11] = [
        (
            starved(),
            &[
                "Became dirty, tasks of these cgroups",
                "of it had been dirty before",
                "Rounds of the flusher for their background thresholds",
                "Paused in dirty throttling for their data, ",
            ],
        ),
        (thrash(5, 0), &["Inodes moved from /one to /other", "and back", "Folios dirtied in others' inodes on "]),
        (in_turn(), &["Inodes moved from /one to /other", "Inodes moved from /third to /one"]),
        (thrash(0, 4000), &["Paused in dirty throttling, /other", "Times others' flushers", "Folios dirtied in"]),
        (thrash(0, 0), &["Folios dirtied in others' inodes on "]),
        (storm(), &["Inodes moved from cgroup 4711 to /", "from the first to the last", "after the removal of /build"]),
        (
            strict(),
            &["Paused, writer", "Paused, all writers of ", "Longest pause", "Dirty of the device", "Its largest share"],
        ),
        (
            stalled(false),
            &[
                "Longest standstill of sda",
                "Standstills of sda",
                "Longest wait in a standstill, postgres[700]",
                "Steal time",
            ],
        ),
        (stalled(true), &["Longest wait in a standstill, writer[701]", "Standstill time with a task waiting"]),
        (
            stalled(false).seconds(13),
            &["Standstill until the last sample of sda", "Most requests in flight in the last one"],
        ),
        (hanging(), &["Standstill until the last sample of sda", "Completed in the last one"]),
    ];
    for (fixture, names) in &traced {
        checked += has(fixture, names, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= 150, "{checked} numbers were checked");
}
