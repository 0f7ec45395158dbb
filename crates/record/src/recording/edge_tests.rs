// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests at the edges of the format: records too large to write, entities that the directory forgets, damage beside
//! keyframes, tables out of order, and recordings with other JSON in them.

use super::frame::{self, MAGIC, kind};
use super::table::MAX_ROWS;
use super::tests::{decode, encode, frames, plain, samples};
use super::{Cut, DecodeError, Decoder, EncodeError, Encoder, Header, Piece, Why, rewrite};
use crate::gap::{Cause, Gap, Source};
use crate::id::{DevId, Entity, EntityId, Hierarchy};
use crate::metric::Row;
use crate::name::Name;
use crate::record::{Event, Record, Sink, What};
use crate::sample::{CgroupIoRow, CgroupRow, ProcessRow, Sample, SampleTime, Table, ZoneRow};
use crate::units::{Bytes, Nanos};
use std::io::{self, Read};

fn cgroup(id: u32, path: &str) -> Record {
    Record::Entity(EntityId(id), Entity::Cgroup { path: path.into(), hierarchy: Hierarchy::V2, ino: None })
}

fn sample(at: u64, change: impl FnOnce(&mut Sample)) -> Record {
    let time = SampleTime { monotonic: Nanos(at * 1_000_000_000), wall: Nanos(at * 1_000_000_000) };
    let mut sample = Sample { time, ..Sample::default() };
    change(&mut sample);
    Record::Sample(Box::new(sample))
}

fn cgroups(ids: &[u32]) -> Table<CgroupRow> {
    let row = |id: u32| CgroupRow { file_dirty: Some(Bytes(4096 * u64::from(id))), ..CgroupRow::default() };
    Table::read(ids.iter().map(|id| (EntityId(*id), row(*id))).collect())
}

#[test]
fn a_record_that_is_too_large_is_refused_and_the_next_is_written() {
    let mut encoder = Encoder::new(Vec::new(), Header::new(None)).unwrap();
    let path = "a".repeat((super::MAX_CONTENT - (1 << 20)) - 1000);
    let refused = encoder.record(&cgroup(1, &path));
    assert!(matches!(refused, Err(EncodeError::TooLarge(_))), "{refused:?}");
    encoder.record(&cgroup(2, "/good")).unwrap();
    let (read, cut) = decode(&encoder.finish().unwrap()).unwrap();
    assert_eq!((read, cut), (vec![cgroup(2, "/good")], None));
}

#[test]
fn a_sample_with_too_many_rows_is_refused_and_nothing_follows_it() {
    let zones = |count: usize| {
        let rows = (0..).map(EntityId).take(count).map(|id| (id, ZoneRow::default())).collect();
        sample(1, |sample| sample.zones = Table::read(rows))
    };
    let mut encoder = Encoder::new(io::sink(), Header::new(None)).unwrap();
    encoder.record(&zones(MAX_ROWS)).unwrap();
    let refused = encoder.record(&zones(MAX_ROWS + 1));
    assert!(matches!(refused, Err(EncodeError::TooLarge(_))), "{refused:?}");
    let after = encoder.record(&zones(1));
    assert!(matches!(after, Err(EncodeError::Ended)), "{after:?}");
}

#[test]
fn the_directory_has_what_lives_and_what_that_names_and_no_more() {
    let dev = DevId { major: 8, minor: 0 };
    let process =
        Entity::Process { pid: 7, start_ticks: 1, comm: "a".into(), cgroup: Some(EntityId(4)), kthread: false };
    let mut records = vec![
        cgroup(1, "/lives"),
        cgroup(2, "/gone"),
        cgroup(3, "/has-io"),
        cgroup(4, "/has-a-process"),
        cgroup(5, "/read-now-and-then"),
        Record::Entity(EntityId(6), Entity::CgroupIo { cgroup: EntityId(3), dev }),
        Record::Entity(EntityId(7), process),
    ];
    let cut_at = records.len();
    for at in 1..=200 {
        records.push(sample(at, |sample| {
            // Cgroups are not read in the samples that stand alone.
            if at % 64 != 1 || at == 1 {
                sample.cgroups = cgroups(if at < 10 { &[1, 2, 5] } else { &[1, 5] });
            }
            sample.cgroup_io = Table::read(vec![(EntityId(6), CgroupIoRow::default())]);
            sample.processes = Table::read(vec![(EntityId(7), ProcessRow::default())]);
        }));
    }
    let mut file = encode(&records);
    let starts = frames(&file);
    assert_eq!(
        starts.iter().filter(|(_, of)| *of == kind::DIRECTORY).count(),
        3,
        "one before each keyframe but the first"
    );
    // What was described lately is kept until the next keyframe: join at the third.
    let last = starts.iter().filter(|(_, of)| *of == kind::HEADER).nth(2).unwrap().0;
    for (at, of) in &starts {
        if *at < last && *of != 0 {
            file[at + 16] ^= 1;
        }
    }
    let (read, _) = decode(&file).unwrap();
    let entities: Vec<&Record> = read.iter().filter(|record| matches!(record, Record::Entity(..))).collect();
    let expect: Vec<&Record> = records[..cut_at].iter().filter(|record| **record != cgroup(2, "/gone")).collect();
    assert_eq!(entities, expect);
}

/// Names of hundreds of cgroups and the readings of their sample have different codes.
#[test]
fn many_names_have_a_frame_apart_from_their_sample() {
    let mut dice = floodline_testkit::Dice(11);
    let mut records: Vec<Record> = (1..=300)
        .map(|id| {
            let digits: String = (0..64).map(|_| char::from(b"0123456789abcdef"[dice.roll(16) as usize])).collect();
            cgroup(id, &format!("/kubepods.slice/pod{id}/cri-containerd-{digits}.scope"))
        })
        .collect();
    let ids: Vec<u32> = (1..=300).collect();
    records.push(sample(1, |sample| {
        let rows = ids.iter().map(|id| {
            let mut row = CgroupRow::default();
            (0..12).for_each(|at| row.set(at, Some(dice.roll(1 << 15) << 12)));
            (EntityId(*id), row)
        });
        sample.cgroups = Table::read(rows.collect());
    }));
    let file = encode(&records);
    let kinds: Vec<u8> = frames(&file).iter().map(|(_, of)| *of).filter(|of| *of != 0).collect();
    assert_eq!(kinds, [kind::HEADER, kind::RECORDS, kind::RECORDS, kind::END]);
    assert_eq!(decode(&file).unwrap().0, records);
    // In one frame the same content takes more.
    let starts = frames(&file);
    let packed: Vec<&[u8]> = (1..=2).map(|at| &file[starts[at].0 + frame::HEAD..starts[at + 1].0]).collect();
    let content: Vec<u8> = packed.iter().flat_map(|of| zstd::stream::decode_all(*of).unwrap()).collect();
    let apart: usize = packed.iter().map(|of| of.len()).sum();
    let joined = zstd::bulk::compress(&content, 3).unwrap().len();
    assert!(apart * 10 < joined * 9, "{apart} bytes apart, {joined} joined");
}

#[test]
fn tables_out_of_order_and_with_an_entity_twice_read_back() {
    let orders: &[&[u32]] = &[&[1, 2, 3], &[3, 1], &[1, 3], &[1, 1], &[1], &[2, 1, 1], &[1, 2], &[]];
    for first in orders {
        for second in orders {
            let tables = [first, second, first];
            let made = (1..).zip(tables).map(|(at, ids)| sample(at, |sample| sample.cgroups = cgroups(ids)));
            let records: Vec<Record> = made.collect();
            assert_eq!(decode(&encode(&records)).unwrap(), (records, None), "{first:?} {second:?}");
        }
    }
}

fn cuts(file: &[u8]) -> (Vec<Record>, Vec<Cut>) {
    let mut decoder = Decoder::new(file).unwrap();
    let read = decoder.by_ref().map(Result::unwrap).collect();
    (read, decoder.cuts().to_vec())
}

#[test]
fn a_damaged_header_or_directory_costs_no_record() {
    let records = plain(200);
    let whole = encode(&records);
    for wanted in [kind::HEADER, kind::DIRECTORY] {
        let at = frames(&whole).iter().filter(|(_, of)| *of == wanted).nth(1).unwrap().0;
        let mut file = whole.clone();
        file[at + 16] ^= 1;
        let (read, cuts) = cuts(&file);
        assert_eq!(read, records, "{wanted}");
        assert_eq!(cuts.iter().map(|cut| (cut.why, cut.samples)).collect::<Vec<_>>(), [(Why::Damaged, Some(0))]);
    }
}

#[test]
fn the_directory_is_read_once_after_a_loss() {
    let records = plain(300);
    let mut file = encode(&records);
    let starts: Vec<usize> = frames(&file).iter().filter(|(_, of)| *of == kind::RECORDS).map(|(at, _)| *at).collect();
    file[starts[70] + 20] ^= 1;
    let (read, _) = cuts(&file);
    let others = |records: &[Record]| records.len() - samples(records).len();
    assert_eq!(others(&read), 2 * others(&records));
}

#[test]
fn the_last_frame_before_a_keyframe_is_missed_too() {
    let file = encode(&plain(100));
    let starts = frames(&file);
    let all: Vec<usize> = (0..starts.len()).filter(|place| starts[*place].1 == kind::RECORDS).collect();
    let gone = all[63];
    let less = [&file[..starts[gone].0], &file[starts[gone + 1].0..]].concat();
    let (read, cuts) = cuts(&less);
    assert_eq!(samples(&read).len(), 99);
    assert_eq!(cuts.iter().map(|cut| (cut.why, cut.samples)).collect::<Vec<_>>(), [(Why::Damaged, Some(1))]);
}

#[test]
fn nothing_is_read_after_an_error() {
    /// A whole start, then errors.
    struct Broken(io::Cursor<Vec<u8>>);
    impl Read for Broken {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            match self.0.read(out)? {
                0 => Err(io::Error::other("the disk is gone")),
                read => Ok(read),
            }
        }
    }
    let mut decoder = Decoder::new(Broken(io::Cursor::new(encode(&plain(0))))).unwrap();
    let error = decoder.find_map(Result::err);
    assert!(matches!(error, Some(DecodeError::Read(_))), "{error:?}");
    assert!(decoder.next().is_none());
}

#[test]
fn half_of_the_first_bytes_make_a_recording() {
    let told = |bytes: &[u8]| Decoder::new(bytes).err().map(|error| error.to_string()).unwrap_or_default();
    let mut start = [0; 32];
    start[..8].copy_from_slice(&MAGIC);
    start[0] = b'X';
    assert!(told(&start).contains("is damaged"), "{}", told(&start));
    // Two of three letters alone are those of many formats.
    assert_eq!(told(b"XFLX5678........................"), "not a recording (.flr)");
}

#[test]
fn a_recording_is_rewritten_piece_by_piece() {
    let mut records = plain(2);
    records.push(Record::Event(Event { at: Nanos(1), what: What::Note { text: "here".into() } }));
    records.push(Record::Gap(Gap::new(Source::DebugWbStats, Cause::NotFound)));
    let file = encode(&records);
    let mut seen = Vec::new();
    let same = rewrite(&file, |piece, value| {
        seen.push(piece);
        value
    });
    assert_eq!(decode(&same.unwrap()).unwrap(), decode(&file).unwrap());
    for piece in [Piece::Header, Piece::Facts, Piece::Entity, Piece::Event, Piece::Gap] {
        assert!(seen.contains(&piece), "{piece:?} in {seen:?}");
    }
    let other = rewrite(&file, |piece, mut value| {
        if piece == Piece::Facts {
            value["hostname"] = serde_json::json!("other");
        }
        value
    });
    let (read, _) = decode(&other.unwrap()).unwrap();
    let Record::Facts(facts) = &read[0] else { panic!("facts first") };
    assert_eq!(facts.hostname, Name::from("other"));
    assert_eq!(samples(&read), samples(&records));
    assert_eq!(rewrite(&file[..file.len() - 1], |_, value| value), None);
    assert_eq!(rewrite(&[file.as_slice(), &[0]].concat(), |_, value| value), None);
    let mut framed = file.clone();
    frame::put_frame(&mut framed, kind::RECORDS, b"not zstd");
    assert_eq!(rewrite(&framed, |_, value| value), None);
}
