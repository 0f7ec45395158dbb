// SPDX-License-Identifier: MIT OR Apache-2.0
//! What machines do to a program that runs for months: the wall clock is set, and containers come and go all the time. The page
//! stays valid and small, the ring stays readable and below its limit.

use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::record::Record;
use floodline_record::recording::Decoder;
use floodline_record::sample::{CgroupRow, Table};
use floodline_record::units::{Bytes, Nanos};
use floodline_serve::{Limits, Options, RingOptions, Serve, listen};
use floodline_testkit::Fixture;
use floodline_testkit::exposition::check;
use floodline_testkit::incidents::dirty_cliff;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

const LIMIT: u64 = 1 << 20;

fn start(folder: &Path) -> (Serve, SocketAddr) {
    let (listener, address) = listen::bind("127.0.0.1:0").expect("an address");
    let limits = Limits {
        wait: Nanos(10 * Nanos::SECOND.0),
        io_pressure: 0.5,
        cooldown: Nanos(600 * Nanos::SECOND.0),
        per_day: 10,
    };
    let ring = RingOptions {
        folder: folder.to_owned(),
        limit: LIMIT,
        memory: 1 << 20,
        every: Nanos::SECOND,
        limits,
        hook: Vec::new(),
        tell: Box::new(|_| {}),
    };
    let options = Options { version: "1.2.3", listeners: vec![listener], ring: Some(ring), is_live: false };
    (Serve::start(options).expect("it starts"), address)
}

fn page(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

/// Files of recordings, the samples in all of them, and their bytes.
fn kept(folder: &Path, prefix: &str) -> (usize, usize, u64) {
    let (mut files, mut samples, mut bytes) = (0, 0, 0);
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        bytes += entry.metadata().expect("a file").len();
        let name = entry.file_name().into_string().expect("UTF-8");
        if !name.starts_with(prefix) || !name.ends_with(".flr") {
            continue;
        }
        files += 1;
        let decoder = Decoder::new(File::open(entry.path()).expect("a file")).expect("a recording");
        samples += decoder.filter(|record| matches!(record.as_ref().expect("whole"), Record::Sample(_))).count();
    }
    (files, samples, bytes)
}

#[test]
fn a_wall_clock_that_is_set_costs_no_sample_and_no_incident() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut serve, address) = start(folder.path());
    let mut number = 0;
    for record in Fixture::healthy().seconds(30).records().into_iter().chain(later(dirty_cliff().seconds(90))) {
        let record = match record {
            Record::Sample(mut sample) => {
                number += 1;
                // An hour back, then to the epoch, then years ahead.
                sample.time.wall = match number {
                    0..=40 => sample.time.wall,
                    41..=60 => Nanos(sample.time.wall.0 - 3600 * Nanos::SECOND.0),
                    61..=80 => Nanos(0),
                    _ => Nanos(sample.time.wall.0.saturating_mul(2)),
                };
                Record::Sample(sample)
            }
            other => other,
        };
        serve.record(&record);
    }
    let page = page(address);
    assert!(check(&page, false).is_ok(), "{page}");
    assert!(page.contains(&format!("\nfloodline_looks_total {number}\n")), "{page}");
    serve.finish();
    assert_eq!(kept(folder.path(), "ring-").1, number);
    let (incidents, samples, _) = kept(folder.path(), "incident-");
    assert!(incidents > 0 && samples > 60, "{incidents} incidents, {samples} samples");
}

/// The records of another fixture as if they followed after 30 s.
fn later(fixture: Fixture) -> impl Iterator<Item = Record> {
    fixture.records().into_iter().map(|record| match record {
        Record::Sample(mut sample) => {
            sample.time.monotonic.0 += 31 * Nanos::SECOND.0;
            sample.time.wall.0 += 31 * Nanos::SECOND.0;
            Record::Sample(sample)
        }
        Record::Event(mut event) => {
            event.at.0 += 31 * Nanos::SECOND.0;
            Record::Event(event)
        }
        other => other,
    })
}

#[test]
fn a_hundred_cgroups_a_second_come_and_go_and_nothing_grows() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut serve, address) = start(folder.path());
    let (mut second, mut largest) = (0_u32, [0; 2]);
    for record in Fixture::healthy().seconds(120).records() {
        let Record::Sample(mut sample) = record else {
            serve.record(&record);
            continue;
        };
        let ids = (0..100).map(|number| EntityId(1_000_000 + second * 100 + number));
        let mut rows: Vec<(EntityId, CgroupRow)> = sample.cgroups.rows().to_vec();
        for id in ids {
            let name = format!("/kubepods/burstable/pod{}/{}", second, id.0);
            let cgroup = Entity::Cgroup {
                hierarchy: Hierarchy::V2,
                path: Name::from(name.as_str()),
                ino: Some(u64::from(id.0)),
            };
            serve.record(&Record::Entity(id, cgroup));
            rows.push((id, CgroupRow { file_dirty: Some(Bytes(4096 * u64::from(id.0))), ..CgroupRow::default() }));
        }
        sample.cgroups = Table::read(rows);
        serve.record(&Record::Sample(sample));
        second += 1;
        if second.is_multiple_of(30) {
            let page = page(address);
            let series = check(&page, false).unwrap_or_else(|error| panic!("{error}\n{page}"));
            assert!(series <= 1500 && page.len() <= 120 << 10, "{series} series, {} bytes", page.len());
            largest[usize::from(second > 60)] = largest[usize::from(second > 120)].max(page.len());
        }
    }
    // No larger in the second half than in the first one, but for longer numbers.
    assert!(largest[1] <= largest[0] + largest[0] / 10, "{largest:?}");
    serve.finish();
    let (files, samples, bytes) = kept(folder.path(), "ring-");
    assert!(files > 0 && samples > 0 && bytes <= LIMIT, "{files} files, {samples} samples, {bytes} bytes");
}
