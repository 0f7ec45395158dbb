// SPDX-License-Identifier: MIT OR Apache-2.0
//! However much a small file stands for, what comes out of the decoder is bounded by its length: readings are counted, not
//! bytes of memory.

use floodline_record::id::EntityId;
use floodline_record::metric::Row;
use floodline_record::record::Record;
use floodline_record::recording::{DecodeError, Decoder};
use floodline_record::sample::{HostRow, Table, TableVisitor};
use floodline_testkit::Fixture;
use floodline_testkit::heavy::Heavy;
use floodline_testkit::hostile::recording;
use floodline_testkit::incidents::INCIDENTS;
use std::collections::BTreeSet;

/// Rows × columns.
#[derive(Default)]
struct Cells {
    all: u64,
    sample: u64,
    /// Those of entities that come for the first time.
    new: u64,
    known: BTreeSet<(&'static str, EntityId)>,
}

impl TableVisitor for Cells {
    fn host(&mut self, _: &HostRow) {
        self.sample += HostRow::METRICS.len() as u64;
    }
    fn table<R: Row + 'static>(&mut self, table: &Table<R>) {
        for (id, _) in table.rows() {
            self.sample += R::METRICS.len() as u64;
            if self.known.insert((R::TABLE, *id)) {
                self.new += R::METRICS.len() as u64;
            }
        }
    }
}

/// Decodes as far as it goes; whether the file was refused.
fn check(bytes: &[u8]) -> bool {
    let mut cells = Cells::default();
    let length = bytes.len() as u64;
    for record in Decoder::new(bytes).expect("a header") {
        match record {
            Ok(Record::Sample(sample)) => {
                cells.sample = 0;
                sample.visit(&mut cells);
                cells.all += cells.sample;
                assert!(cells.sample <= 1 << 23, "{} readings in a sample", cells.sample);
                assert!(cells.new <= (1 << 20) + 32 * length, "{} readings of entities, {length} bytes", cells.new);
                assert!(cells.all <= (1 << 25) + 4096 * length, "{} readings, {length} bytes", cells.all);
            }
            Ok(_) => {}
            Err(DecodeError::TooMuch(_)) => return true,
            Err(error) => panic!("{error}"),
        }
    }
    false
}

#[test]
fn what_a_heavy_recording_makes_its_reader_hold_is_bounded_by_its_length() {
    let mut refused = BTreeSet::new();
    // The first sample of new rows alone is more than a file of its length may hold.
    for kind in Heavy::ALL.iter().filter(|kind| **kind != Heavy::NewRows) {
        for size in [1, 300, 4000] {
            assert!(!check(&recording(&kind.records(size))), "{kind:?} of {size}");
        }
    }
    for (kind, size) in [(Heavy::NewRows, 200_000), (Heavy::StillRows, 60_000), (Heavy::Gaps, 200_000)] {
        if check(&recording(&kind.records(size))) {
            refused.insert(format!("{kind:?}"));
        }
    }
    assert_eq!(refused, BTreeSet::from(["NewRows".to_owned(), "Gaps".to_owned()]));
}

#[test]
fn too_much_is_refused_by_name() {
    let error = |records: &[Record]| {
        let bytes = recording(records);
        let found = Decoder::new(bytes.as_slice()).expect("a header").find_map(Result::err);
        found.map(|error| error.to_string()).unwrap_or_default()
    };
    let new = error(&Heavy::NewRows.records(200_000));
    assert!(new.contains("exceeds a limit") && new.contains("readings of different entities in"), "{new}");
    let gaps = error(&Heavy::Gaps.records(200_000));
    assert!(gaps.contains("bytes of content in"), "{gaps}");
    let devices = error(&Heavy::Chain.records(17_000));
    assert!(devices.contains("17001 entries of /sys/block/NAME; the limit is 16384"), "{devices}");
}

#[test]
fn no_recording_that_is_made_in_good_faith_is_refused() {
    let idle = Fixture::healthy().seconds(3000);
    assert!(!check(&recording(&idle.records())));
    for incident in INCIDENTS {
        assert!(!check(&recording(&(incident.make)().seconds(600).records())), "{}", incident.name);
    }
    // Idle cgroups that all look alike.
    let many = (0..2000).fold(Fixture::healthy(), |fixture, at| fixture.cgroup(&format!("/box/{at}"), |_, _| {}));
    assert!(!check(&recording(&many.seconds(100).records())));
}
