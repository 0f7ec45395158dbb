// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ledger of windows made by hand.

use super::*;
use floodline_record::facts::{BlockDevice, Stack};
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::record::{Event, Record};
use floodline_record::sample::{ProcessRow, Sample, SampleTime, Table};
use floodline_record::traced::File;
use floodline_record::traced::throttle::{Domain, Throttled};
use floodline_record::traced::waits::{Operation, SlowSync, Synced};
use floodline_record::units::{Bytes, Count};
use floodline_testkit::{Fixture, UPTIME, dev_of, grows, mib, secs};

fn who(pid: u32, comm: &str, cgroup_ino: u64) -> Who {
    Who { pid, comm: Name::from(comm), cgroup_ino }
}

fn file(ino: u64, path: &str) -> Option<File> {
    Some(File { ino, generation: None, path: Some(Name::from(path)) })
}

fn dirtied(who: Who, file: Option<File>, mebibytes: f64, again: f64) -> What {
    let (bytes, redirtied) = (Bytes(mib(mebibytes)), Bytes(mib(again)));
    What::Dirtied(Dirtied { since: Nanos(0), who, device: dev_of("sda"), file, bytes, folios: 1, redirtied })
}

fn submitted(disk: &str, class: Class, file: Option<File>, cgroup_ino: u64, mebibytes: f64) -> Submitted {
    Submitted {
        since: secs(UPTIME),
        disk: dev_of(disk),
        class,
        device: (class == Class::Data).then(|| dev_of("sda")),
        file,
        cgroup_ino: Some(cgroup_ino),
        who: (class == Class::Direct).then(|| who(9, "mariadbd", 1)),
        bytes: Bytes(mib(mebibytes)),
        bios: 1,
    }
}

/// A window of ten seconds in which these things happened, all of them by its end.
fn window(events: Vec<What>) -> Window {
    let mut window =
        Fixture::healthy().facts(|facts| facts.mounts.clear()).mount("sda", "ext4", "/srv", "rw").seconds(10).window();
    window.traced.extend((!events.is_empty()).then(|| "bytes".to_owned()));
    window.events = events.into_iter().map(|what| Event { at: secs(UPTIME + 10.0), what }).collect();
    window
}

#[test]
fn a_program_that_became_another_after_its_only_sample_has_the_name_of_the_trace() {
    let name_after = |samples: u64| {
        let entity =
            Entity::Process { pid: 7, start_ticks: 70, comm: Name::from("bash"), cgroup: None, kthread: false };
        let mut records = vec![Record::Entity(EntityId(1), entity)];
        for at in 1..=samples {
            let row = ProcessRow { write_bytes: Some(Bytes(at)), ..ProcessRow::default() };
            let processes = Table::read(vec![(EntityId(1), row)]);
            let time = SampleTime { monotonic: Nanos(at * Nanos::SECOND.0), ..SampleTime::default() };
            records.push(Record::Sample(Box::new(Sample { processes, time, ..Sample::default() })));
        }
        let name = super::comms(&Window::from_records(&records)).get(&7).map(ToString::to_string);
        name.unwrap_or_else(|| "as the trace has it".to_owned())
    };
    assert_eq!(name_after(1), "as the trace has it");
    assert_eq!(name_after(2), "bash");
}

#[test]
fn a_number_used_again_is_another_file_where_generations_are_known() {
    let owners = |first: Option<u32>, second: Option<u32>| {
        let of = |generation, path: &str| Some(File { generation, ..file(131, path).unwrap() });
        let ledger = ledger(&window(vec![
            dirtied(who(7, "tar", 1), of(first, "/gone"), 4.0, 0.0),
            dirtied(who(8, "cp", 1), of(second, "/here"), 4.0, 0.0),
            What::Submitted(submitted("sda", Class::Data, of(second, "/here"), 1, 4.0)),
        ]));
        let ledger = ledger.unwrap();
        let credited: Vec<(String, u64)> =
            ledger.processes.iter().map(|line| (line.comm.clone(), line.device_bytes)).collect();
        (ledger.files.iter().map(|line| line.file.clone()).collect::<Vec<_>>(), credited)
    };
    let (files, credited) = owners(Some(3), Some(4));
    assert_eq!(files, ["/srv/here", "/srv/gone"]);
    assert_eq!(credited, [("cp".to_owned(), mib(4.0)), ("tar".to_owned(), 0)]);
    // By numbers alone both are one, under its latest name.
    let (files, credited) = owners(None, None);
    assert_eq!(files, ["/srv/here"]);
    assert_eq!(credited, [("tar".to_owned(), mib(2.0)), ("cp".to_owned(), mib(2.0))]);
}

#[test]
fn old_data_is_not_credited_to_a_process_that_writes_small_files_beside_it() {
    let credited = |owner: Option<Who>| {
        let own = Submitted { who: owner, ..submitted("sda", Class::Data, None, 1, 1.0) };
        let ledger = ledger(&window(vec![
            dirtied(who(7, "tar", 1), None, 8.0, 0.0),
            What::Submitted(own),
            What::Submitted(submitted("sda", Class::Data, None, 1, 4.0)),
            What::Submitted(submitted("sda", Class::Data, file(132, "/old"), 1, 2.0)),
        ]))
        .unwrap();
        (ledger.processes[0].device_bytes, ledger.totals.unattributed_bytes)
    };
    assert_eq!(credited(Some(who(7, "tar", 1))), (mib(1.0), mib(6.0)));
    // A tracer that kept no process for a file.
    assert_eq!(credited(None), (mib(7.0), 0));
}

#[test]
fn data_without_a_page_of_a_file_is_charged_and_credited_to_no_process() {
    let ledger = ledger(&window(vec![
        dirtied(who(7, "dd", 21), file(131, "/packed"), 8.0, 0.0),
        What::Submitted(submitted("sda", Class::Unknown, None, 21, 1.0)),
    ]))
    .unwrap();
    assert_eq!((ledger.totals.queued.unknown_bytes, ledger.totals.credited_bytes), (mib(1.0), 0));
    let cgroups: Vec<(u64, u64)> = ledger.cgroups.iter().map(|line| (line.charged_bytes, line.device_bytes)).collect();
    assert_eq!(cgroups, [(mib(1.0), 0)]);
    assert!(ledger.processes.iter().all(|line| line.device_bytes == 0));
}

#[test]
fn every_byte_at_a_disk_is_somebodys_or_nobodys() {
    let log = || file(131, "/log/system.journal");
    let ledger = ledger(&window(vec![
        // The order of the rows of one interval does not matter.
        What::Submitted(submitted("sda", Class::Data, log(), 1, 12.0)),
        dirtied(who(7, "journald", 1), log(), 9.0, 3.0),
        dirtied(who(8, "cat", 1), log(), 3.0, 0.0),
        What::Submitted(submitted("sda", Class::Data, file(132, "/old"), 1, 2.0)),
        What::Submitted(submitted("sda", Class::Journal, None, 1, 1.5)),
        What::Submitted(submitted("sda", Class::Metadata, None, 1, 0.5)),
        What::Submitted(submitted("sda", Class::Direct, None, 1, 4.0)),
    ]))
    .unwrap();
    let totals = &ledger.totals;
    assert_eq!((totals.dirtied_bytes, totals.redirtied_bytes), (mib(12.0), mib(3.0)));
    assert_eq!(totals.queued.total(), mib(20.0));
    assert_eq!(totals.credited_bytes + totals.unattributed_bytes, totals.queued.data_bytes);
    assert_eq!(totals.unattributed_bytes, mib(2.0), "the old file was dirty before the trace began");
    let processes: Vec<(&str, u64)> =
        ledger.processes.iter().map(|line| (line.comm.as_str(), line.device_bytes)).collect();
    assert_eq!(processes, [("journald", mib(9.0)), ("mariadbd", mib(4.0)), ("cat", mib(3.0))]);
    let files: Vec<(&str, u64)> = ledger.files.iter().map(|line| (line.file.as_str(), line.device_bytes)).collect();
    assert_eq!(files, [("/srv/log/system.journal", mib(12.0)), ("/srv/old", mib(2.0))]);
    assert_eq!(ledger.files[0].by, ["journald[7]", "cat[8]"]);
}

#[test]
fn layers_above_a_disk_are_shown_and_not_added() {
    let data = || file(131, "/db/table");
    let mut window = window(vec![
        dirtied(who(7, "mysqld", 1), data(), 8.0, 0.0),
        What::Submitted(submitted("dm-0", Class::Data, data(), 1, 8.0)),
        What::Submitted(submitted("sda", Class::Data, data(), 1, 8.0)),
    ]);
    window.facts.as_mut().unwrap().devices.retain(|device| device.name.as_bytes() == b"sda");
    let ledger = ledger(&window).unwrap();
    assert_eq!(ledger.totals.queued.data_bytes, mib(8.0));
    assert_eq!(ledger.processes[0].device_bytes, mib(8.0));
    let disks: Vec<(bool, u64)> = ledger.disks.iter().map(|line| (line.is_bottom, line.queued.data_bytes)).collect();
    assert_eq!(disks, [(true, mib(8.0)), (false, mib(8.0))]);
}

#[test]
fn a_wait_is_blamed_on_those_whose_data_was_queued_during_it() {
    let wait = What::SlowSync(SlowSync {
        who: who(40, "umount", 1),
        tid: None,
        operation: Operation::SyncFilesystem,
        lasted: secs(10.0),
        device: Some(dev_of("sda")),
        file: None,
        queued: Some(Bytes(mib(300.0))),
        own: Bytes(0),
    });
    let ledger = ledger(&window(vec![
        What::Submitted(submitted("sda", Class::Data, file(5, "/upper/big"), 77, 276.0)),
        What::Submitted(submitted("sda", Class::Data, None, 1, 24.0)),
        wait,
    ]))
    .unwrap();
    let wait = &ledger.waits[0];
    assert_eq!(wait.filesystem.as_deref(), Some("/srv"));
    assert_eq!(wait.queued_bytes, Some(mib(300.0)));
    assert_eq!(wait.cgroups[0], blame::Part { name: "cgroup 77 (gone)".into(), share: 0.92 });
    assert_eq!(wait.files[0].name, "/srv/upper/big");
}

#[test]
fn a_wait_within_another_of_the_same_task_is_part_of_it() {
    let sync = |tid, operation, device: &str, lasted| {
        What::SlowSync(SlowSync {
            who: who(40, "umount", 1),
            tid,
            operation,
            lasted: secs(lasted),
            device: Some(dev_of(device)),
            file: None,
            queued: None,
            own: Bytes(0),
        })
    };
    // All of them end together, as their records share one interval.
    let check = |outer: What, inner: What, expect: &[(f64, &[f64])]| {
        let ledger = ledger(&window(vec![inner, outer])).unwrap();
        let lasted = |wait: &blame::Blame| wait.lasted_ns as f64 / 1e9;
        let told: Vec<(f64, Vec<f64>)> =
            ledger.waits.iter().map(|wait| (lasted(wait), wait.parts.iter().map(lasted).collect())).collect();
        let expect: Vec<(f64, Vec<f64>)> = expect.iter().map(|(whole, parts)| (*whole, parts.to_vec())).collect();
        assert_eq!(told, expect);
    };
    let overlay = |tid| sync(tid, Operation::SyncFilesystem, "dm-0", 9.0);
    let upper = |tid, lasted| sync(tid, Operation::SyncFilesystem, "sda", lasted);
    check(overlay(Some(41)), upper(Some(41), 8.0), &[(9.0, &[8.0])]);
    check(overlay(Some(41)), upper(Some(41), 9.0), &[(9.0, &[9.0])]);
    check(sync(Some(41), Operation::Sync, "sda", 9.0), upper(Some(41), 8.0), &[(9.0, &[8.0])]);
    // Another thread waits by itself, and so does an fsync: the tracer hides one that is part of another.
    check(overlay(Some(41)), upper(Some(42), 8.0), &[(9.0, &[]), (8.0, &[])]);
    check(overlay(Some(41)), sync(Some(41), Operation::Fsync, "sda", 8.0), &[(9.0, &[]), (8.0, &[])]);
    // Recordings of before threads were told: processes that unmount have one.
    check(overlay(None), upper(None, 8.0), &[(9.0, &[8.0])]);
}

#[test]
fn a_wait_takes_of_an_interval_only_what_falls_within_it() {
    let wait = SlowSync {
        who: who(40, "umount", 1),
        tid: None,
        operation: Operation::SyncFilesystem,
        lasted: secs(1.0),
        device: Some(dev_of("sda")),
        file: None,
        queued: None,
        own: Bytes(0),
    };
    let mut window = window(vec![
        What::Submitted(submitted("sda", Class::Data, None, 77, 10.0)),
        What::Submitted(Submitted { since: secs(UPTIME + 8.0), ..submitted("sda", Class::Data, None, 78, 6.0) }),
    ]);
    window.events.push(Event { at: secs(UPTIME + 10.0), what: What::SlowSync(wait) });
    let ledger = ledger(&window).unwrap();
    let shares: Vec<(&str, f64)> =
        ledger.waits[0].cgroups.iter().map(|part| (part.name.as_str(), (part.share * 100.0).round())).collect();
    assert_eq!(shares, [("cgroup 78 (gone)", 75.0), ("cgroup 77 (gone)", 25.0)]);
}

#[test]
fn waits_of_a_process_are_added_up_by_operation() {
    let synced = |count, total, longest| {
        What::Synced(Synced {
            since: Nanos(0),
            who: who(7, "redis", 1),
            operation: Operation::Fdatasync,
            count,
            total: secs(total),
            longest: secs(longest),
        })
    };
    let ledger = ledger(&window(vec![synced(3, 0.5, 0.25), synced(1, 1.0, 1.0)])).unwrap();
    let line = &ledger.synced[0];
    assert_eq!((line.count, line.total_ns, line.longest_ns), (4, secs(1.5).0, secs(1.0).0));
}

#[test]
fn pauses_are_added_up_by_process_device_and_domain() {
    let paused = |tid, ms: u64, slept: Option<u64>, domain| {
        What::Throttled(Box::new(Throttled {
            since: Nanos(0),
            who: who(7, "redis", 1),
            tid,
            bdi: "8:0".into(),
            wb_cgroup_ino: 1,
            domain,
            pauses: 2,
            pause_ns: Nanos::from_millis(ms),
            pause_ns_max: Nanos::from_millis(ms - 1),
            slept_ns: slept.map(Nanos::from_millis),
            slept_ns_max: slept.map(Nanos::from_millis),
            unpaused: 5,
            longest: None,
        }))
    };
    let events = vec![
        paused(7, 40, None, Domain::Global),
        paused(8, 100, Some(112), Domain::Global),
        paused(8, 7, None, Domain::Memcg),
    ];
    let fixture = Fixture::healthy().traced(&["bytes", "throttle"], events).seconds(3);
    let lines = ledger(&fixture.window()).unwrap().throttled;
    let told: Vec<_> = lines.iter().map(|line| (line.domain, line.count, line.total_ns, line.longest_ns)).collect();
    let ms = |ms| Nanos::from_millis(ms).0;
    // What was slept counts, not what the kernel asked for.
    assert_eq!(told, [(Domain::Global, 4, ms(152), ms(112)), (Domain::Memcg, 2, ms(7), ms(6))]);
    assert_eq!(lines[0].process, "redis[7]");
}

#[test]
fn a_window_without_a_tracer_has_no_ledger() {
    assert_eq!(ledger(&window(Vec::new())), None);
    // A tracer that counts only pauses has no bytes.
    let paused = Fixture::healthy().traced(&["throttle"], Vec::new()).window();
    assert_eq!((ledger(&paused), waits(&paused)), (None, None));
}

#[test]
fn what_a_loop_device_writes_is_credited_to_those_who_wrote_on_it() {
    let image = || file(77, "/images/box");
    let on_loop = |what: What| match what {
        What::Dirtied(row) => What::Dirtied(Dirtied { device: dev_of("loop0"), ..row }),
        What::Submitted(row) => What::Submitted(Submitted { device: row.device.map(|_| dev_of("loop0")), ..row }),
        what => what,
    };
    let mut window = window(vec![
        What::Submitted(submitted("sda", Class::Data, image(), 1, 9.0)),
        dirtied(who(3, "kworker/u8:1", 1), image(), 9.0, 0.0),
        What::Submitted(submitted("loop0", Class::Journal, None, 1, 1.0)),
        on_loop(What::Submitted(submitted("loop0", Class::Data, file(12, "/log"), 1, 8.0))),
        on_loop(dirtied(who(7, "journald", 5), file(12, "/log"), 8.0, 0.0)),
    ]);
    // The device's writes may be read an interval later than what became dirty for them.
    for event in &mut window.events {
        let since = match &mut event.what {
            What::Dirtied(row) if row.device == dev_of("loop0") => &mut row.since,
            What::Submitted(row) if row.disk == dev_of("loop0") => &mut row.since,
            _ => continue,
        };
        *since = event.at;
        event.at = secs(UPTIME + 11.0);
    }
    let facts = window.facts.as_mut().unwrap();
    let disk = facts.devices.iter().find(|device| device.dev == dev_of("sda")).unwrap().clone();
    let stack = Stack::Loop { backing_file: Name::from("/srv/images/box"), dio: Some(false) };
    facts.devices.push(BlockDevice { dev: dev_of("loop0"), name: Name::from("loop0"), stack, ..disk });
    let ledger = ledger(&window).unwrap();
    let at_disk = |pid: u32| ledger.processes.iter().find(|line| line.pid == pid).map(|line| line.device_bytes);
    assert_eq!((at_disk(7), at_disk(3)), (Some(mib(8.0)), Some(mib(1.0))));
    assert_eq!((ledger.totals.credited_bytes, ledger.totals.unattributed_bytes), (mib(9.0), 0));
}

/// The sums that do not add up, after ten seconds in which the kernel counted 100 MiB dirtied per second, and the trace
/// `dirtied_mib` and `written_mib` in all.
fn mismatches(dirtied_mib: f64, written_mib: f64) -> Vec<balance::Mismatch> {
    let data = || file(131, "/data");
    let events = vec![
        dirtied(who(7, "cp", 1), data(), dirtied_mib, 0.0),
        What::Submitted(submitted("sda", Class::Data, data(), 1, written_mib)),
    ];
    let fixture = Fixture::healthy().traced(&["bytes"], events).seconds(10);
    let kernel = fixture.host(|t, row| row.nr_dirtied = grows(t, 40_000_000, mib(100.0) as f64 / 4096.0));
    ledger(&kernel.window()).unwrap().mismatches
}

#[test]
fn a_trace_that_saw_a_part_of_what_the_kernel_counted_says_so() {
    use balance::{Mismatch, Sum};
    assert_eq!(mismatches(1000.0, 900.0), []);
    // The readings are of different moments.
    assert_eq!(mismatches(981.0, 900.0), []);
    // What became dirty between the first sample and the second may have come before the trace.
    assert_eq!(mismatches(901.0, 850.0), []);
    // 62 % of the files, as of a table that is read in part.
    let (traced_bytes, at_least_bytes) = (mib(620.0), mib(900.0));
    assert_eq!(mismatches(620.0, 300.0), [Mismatch { sum: Sum::Dirtied, traced_bytes, at_least_bytes }]);
    let kinds = |found: Vec<Mismatch>| found.iter().map(|one| one.sum).collect::<Vec<_>>();
    assert_eq!(kinds(mismatches(620.0, 900.0)), [Sum::Dirtied, Sum::Left]);
}

#[test]
fn gaps_of_the_tracer_are_in_the_ledger_once_each() {
    let full = Cause::Exhausted { what: "room in the tracer's table".into() };
    let mut window = window(vec![dirtied(who(7, "cp", 1), None, 1.0, 0.0)]);
    for times in [3, 4] {
        window.gaps.push(Gap { times, ..Gap::detailed(Source::TraceBytes, full.clone(), "events") });
    }
    window.gaps.push(Gap::new(Source::Vmstat, Cause::NotFound));
    let gaps = ledger(&window).unwrap().gaps;
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(gaps[0].ends_with("ran out of room in the tracer's table (×7)"), "{gaps:?}");
}

#[test]
fn bytes_of_children_are_counted_once_and_not_told_as_the_parents() {
    let wrote = |row: &mut ProcessRow, mebibytes: f64| {
        let bytes = Some(Bytes(mib(mebibytes)));
        (row.wchar, row.write_bytes, row.cancelled_write_bytes) = (bytes, bytes, bytes);
    };
    // Of its children one is in no sample, the other one ends after second 7.
    let shell = move |t: f64, row: &mut ProcessRow| {
        let faults = if t > 4.0 { 500 } else { 0 };
        wrote(row, if t > 7.0 { 200.0 } else { faults as f64 / 5.0 });
        (row.minflt, row.cminflt, row.ppid) = (Some(Count(100)), Some(Count(faults)), Some(Count(1)));
        (row.utime, row.stime) = (Some(Nanos(0)), Some(Nanos(0)));
        row.children_time = Some(Nanos::from_millis(faults));
    };
    let child = move |t: f64, row: &mut ProcessRow| {
        wrote(row, 30.0 + 10.0 * t);
        row.ppid = Some(Count(600));
        if t > 7.0 {
            *row = ProcessRow::default();
        }
    };
    let events = vec![dirtied(who(600, "bash", 1), None, 100.0, 0.0), dirtied(who(601, "dd", 1), None, 70.0, 0.0)];
    let fixture =
        Fixture::healthy().process("bash", 600, "/user.slice", shell).process("dd", 601, "/user.slice", child);
    let before = ledger(&Fixture::healthy().traced(&["bytes"], Vec::new()).seconds(10).window()).unwrap().totals;
    let ledger = ledger(&fixture.traced(&["bytes"], events).seconds(10).window()).unwrap();
    assert_eq!(ledger.totals.application_bytes - before.application_bytes, mib(170.0));
    assert_eq!(ledger.totals.cancelled_bytes - before.cancelled_bytes, mib(170.0));
    let of = |pid: u32| {
        let line = ledger.processes.iter().find(|line| line.pid == pid).unwrap();
        (line.application_bytes, line.amplification)
    };
    assert_eq!(of(600), (None, None), "most of it is that of a child that no sample has");
    assert_eq!(of(601), (Some(mib(70.0)), None), "its last bytes are in no sample");
}
