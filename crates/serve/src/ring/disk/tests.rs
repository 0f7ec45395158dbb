// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rings on disk: never over the limit, thinned, reopened.

use super::*;
use crate::ring::memory::MemoryRing;
use floodline_record::record::Record;
use floodline_record::recording::Decoder;
use floodline_testkit::incidents::starved_budget;
use std::sync::Arc;

mod day;

/// Bytes of every file in a folder.
fn on_disk(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Segments of a recorder that ran for this many seconds.
fn segments(seconds: u32) -> Vec<Arc<Vec<u8>>> {
    let mut ring = MemoryRing::new(1 << 30, 1 << 20, Some(Nanos::SECOND));
    for record in starved_budget().seconds(seconds).records() {
        ring.record(&record).unwrap();
    }
    ring.close().unwrap();
    ring.since(Nanos(0))
}

fn append(ring: &mut DiskRing, folder: &Path, segment: &[u8]) {
    ring.begin().unwrap();
    for piece in segment.chunks(1500) {
        ring.append(piece).unwrap();
        assert_eq!(on_disk(folder), ring.bytes());
        assert!(ring.bytes() <= ring.limit());
    }
    ring.end();
    ring.thin().unwrap();
    assert_eq!(on_disk(folder), ring.bytes());
    assert!(ring.bytes() <= ring.limit());
}

fn times(path: &Path) -> Vec<u64> {
    let sample = |record| match record {
        Ok(Record::Sample(sample)) => Some(sample.time.monotonic.0 / 1_000_000_000),
        _ => None,
    };
    Decoder::new(File::open(path).unwrap()).unwrap().filter_map(sample).collect()
}

#[test]
fn older_samples_are_further_apart_and_the_limit_holds_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut ring = DiskRing::open(folder.path(), LIMIT_MIN).unwrap();
    for segment in segments(12_000) {
        append(&mut ring, folder.path(), &segment);
    }
    let levels: Vec<usize> = ring.parts.iter().map(|part| part.level).collect();
    assert!(levels.contains(&0) && levels.contains(&1), "{levels:?}");
    let newest = ring.parts.iter().rfind(|part| part.level == 0).unwrap();
    let thinned = ring.parts.iter().find(|part| part.level == 1).unwrap();
    let apart = |part: &Part| times(&folder.path().join(part.name())).windows(2).map(|two| two[1] - two[0]).min();
    assert_eq!((apart(newest), apart(thinned)), (Some(1), Some(10)));
    let first = |part: &Part| times(&folder.path().join(part.name()))[0];
    assert!(first(thinned) < first(newest));
}

#[test]
fn what_an_earlier_run_left_counts_and_is_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let all = segments(300);
    for run in 0..3 {
        let mut ring = DiskRing::open(folder.path(), LIMIT_MIN).unwrap();
        assert_eq!(ring.bytes(), on_disk(folder.path()));
        assert_eq!(ring.run, run);
        append(&mut ring, folder.path(), &all[0]);
    }
    fs::write(folder.path().join("ring-0000000009-000000-10.flr.tmp"), b"killed").unwrap();
    fs::write(folder.path().join("notes.txt"), b"mine").unwrap();
    let ring = DiskRing::open(folder.path(), LIMIT_MIN).unwrap();
    assert_eq!(ring.parts.len(), 3);
    assert!(!folder.path().join("ring-0000000009-000000-10.flr.tmp").exists());
    assert!(folder.path().join("notes.txt").exists(), "files of others stay");
    let smaller = ring.bytes() / 2;
    drop(ring);
    let mut files = DiskRing::open(folder.path(), LIMIT_MIN).unwrap();
    files.limit = smaller;
    assert!(files.make_room(0) && files.bytes() <= smaller);
}

#[test]
fn a_ring_is_for_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let _ring = DiskRing::open(folder.path(), LIMIT_MIN).unwrap();
    let error = DiskRing::open(folder.path(), LIMIT_MIN).unwrap_err();
    assert!(error.to_string().contains("another floodline serve is writing"), "{error}");
    assert!(DiskRing::open(folder.path(), 1000).unwrap_err().is_usage());
}

#[test]
fn incidents_take_at_most_half_and_the_oldest_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut ring = DiskRing::open(folder.path(), LIMIT_MIN).unwrap();
    append(&mut ring, folder.path(), &segments(100)[0]);
    for number in 0..20 {
        let name = format!("incident-2026-01-{number:02}");
        assert!(ring.keep(&format!("{name}.flr"), &vec![1; 100_000]).unwrap());
        assert!(ring.keep(&format!("{name}.json"), b"{}").unwrap());
        assert!(ring.incident_bytes() <= LIMIT_MIN / 2);
        assert_eq!(ring.bytes(), on_disk(folder.path()));
    }
    let names: Vec<&str> = ring.incidents.keys().map(String::as_str).collect();
    assert!(names.contains(&"incident-2026-01-19.flr") && !names.contains(&"incident-2026-01-00.flr"), "{names:?}");
    assert_eq!(ring.incident_names().last(), Some("incident-2026-01-19"));
    assert!(!ring.keep("incident-x.flr", &vec![0; 600_000]).unwrap());
}

#[test]
fn a_full_disk_is_an_error_and_leaves_whole_frames() {
    let folder = tempfile::tempdir().unwrap();
    let mut ring = DiskRing::open(folder.path(), LIMIT_MIN).unwrap();
    ring.begin().unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    if let Some((file, _)) = &mut ring.active {
        *file = full;
    }
    assert!(ring.append(b"frame").is_err());
    assert_eq!(ring.active.as_ref().unwrap().1.bytes, 0);
    let read_only = folder.path().join("gone");
    fs::write(&read_only, b"").unwrap();
    assert!(DiskRing::open(&read_only, LIMIT_MIN).unwrap_err().to_string().contains("cannot make the ring"));
}
