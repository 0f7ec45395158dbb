// SPDX-License-Identifier: MIT OR Apache-2.0
//! Untrusted recordings: for any content of a file with valid checksums, the rules, the ledger, the budgets and the
//! report return without a panic. Fuzz targets; `make fuzz` runs them for hours.

use crate::diagnose::diagnose;
use crate::ledger::{ledger, waits};
use floodline_record::name::Name;
use floodline_record::record::{Record, Sink, What};
use floodline_record::recording::{Decoder, Encoder, Header};
use floodline_record::traced::bytes::{Class, Dirtied, Submitted};
use floodline_record::traced::waits::{Operation, SlowSync, Synced};
use floodline_record::traced::{File, Who};
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::Window;
use floodline_testkit::incidents::INCIDENTS;
use floodline_testkit::{Fixture, UPTIME, dev_of, flr, mib, secs};
use std::time::Duration;

fn file_of(fixture: &Fixture) -> flr::File {
    let mut encoder = Encoder::new(Vec::new(), Header::new(None)).unwrap();
    fixture.records().iter().for_each(|record| encoder.record(record).unwrap());
    flr::File::parse(&encoder.finish().unwrap())
}

/// Three seconds of each incident, and of a traced host.
fn files() -> Vec<flr::File> {
    let incidents = INCIDENTS.iter().map(|incident| file_of(&(incident.make)().seconds(3)));
    incidents.chain([file_of(&traced())]).collect()
}

/// A host on which two processes write, and one of them waits.
fn traced() -> Fixture {
    let who = |pid, comm| Who { pid, comm: Name::from(comm), cgroup_ino: 1 };
    let file = |ino, path| Some(File { ino, generation: Some(7), path: Some(Name::from(path)) });
    let since = secs(UPTIME);
    let dirtied = |pid, comm, file| {
        let (bytes, redirtied) = (Bytes(mib(17.0)), Bytes(mib(3.0)));
        What::Dirtied(Dirtied { since, who: who(pid, comm), device: dev_of("sda"), file, bytes, folios: 99, redirtied })
    };
    let submitted = |class, file, who| {
        let (device, bytes) = (Some(dev_of("sda")), Bytes(mib(13.0)));
        let disk = dev_of("sda");
        What::Submitted(Submitted { since, disk, class, device, file, cgroup_ino: Some(1), who, bytes, bios: 13 })
    };
    let slow = SlowSync {
        who: who(9, "mariadbd"),
        tid: Some(10),
        operation: Operation::Fsync,
        lasted: secs(0.7),
        device: Some(dev_of("sda")),
        file: file(12, "/srv/db"),
        queued: Some(Bytes(mib(13.0))),
        own: Bytes(mib(1.0)),
    };
    let synced = Synced {
        since,
        who: who(9, "mariadbd"),
        operation: Operation::Fsync,
        count: 5,
        total: secs(0.9),
        longest: Nanos(700_000_000),
    };
    let events = vec![
        dirtied(8, "dd", file(11, "/srv/backup")),
        dirtied(9, "mariadbd", file(12, "/srv/db")),
        submitted(Class::Data, file(11, "/srv/backup"), None),
        submitted(Class::Data, file(12, "/srv/db"), None),
        submitted(Class::Direct, None, Some(who(9, "mariadbd"))),
        What::SlowSync(slow),
        What::Synced(synced),
    ];
    Fixture::healthy().mount("sda", "ext4", "/srv", "rw").seconds(3).traced(&["bytes", "waits"], events)
}

/// The window of a changed recording, if enough of it is left to be read.
fn window(files: &[flr::File], bytes: &[u8]) -> Option<Window> {
    let (which, choices) = bytes.split_first()?;
    let mut file = files[usize::from(*which) % files.len()].clone();
    file.change(choices);
    let records: Vec<Record> = Decoder::new(&*file.bytes()).ok()?.map_while(Result::ok).collect();
    Some(Window::from_records(&records))
}

#[test]
fn no_recording_makes_the_rules_panic() {
    let files = files();
    assert!(
        files.iter().all(|file| window(std::slice::from_ref(file), &[0]).is_some_and(|window| window.samples == 4))
    );
    bolero::check!().with_test_time(Duration::from_millis(800)).for_each(|bytes: &[u8]| {
        let Some(window) = window(&files, bytes) else { return };
        let report = diagnose(&window, None);
        let summaries = report.findings.iter().map(|finding| &finding.summary);
        assert!(summaries.clone().all(|text| !text.contains("NaN") && !text.contains("inf ")), "{report:#?}");
    });
}

#[test]
fn no_recording_makes_the_ledger_panic() {
    let files = [file_of(&traced())];
    assert!(window(&files, &[0]).is_some_and(|window| ledger(&window).is_some() && waits(&window).is_some()));
    bolero::check!().with_test_time(Duration::from_millis(800)).for_each(|bytes: &[u8]| {
        let Some(window) = window(&files, bytes) else { return };
        let (ledger, waits) = (ledger(&window), waits(&window));
        assert_eq!(ledger.is_some(), crate::ledger::is_traced(&window), "{waits:?}");
    });
}
