// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the format as a whole: whatever is recorded reads back, whatever happens to the bytes
//! loses samples and never changes one, and files of other versions open.

mod v1;

use super::frame::{self, FrameReader, PREAMBLE, Step, kind};
use super::*;
use crate::facts::HostFacts;
use crate::gap::{Cause, Gap, Source};
use crate::id::{DevId, Entity, EntityId, Hierarchy};
use crate::metric::Row;
use crate::name::Name;
use crate::record::{Event, Record, Sink, What};
use crate::sample::{CgroupRow, HostRow, Sample, SampleTime, Table};
use crate::units::{Bytes, Nanos, Pages};
use proptest::prelude::*;

/// Makes records out of bytes, so that a test that fails shrinks.
struct Maker<'a>(std::slice::Iter<'a, u8>);

impl Maker<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn reading(&mut self, before: Option<u64>) -> Option<u64> {
        match self.byte() % 12 {
            0 => None,
            1 => Some(0),
            2 => Some(u64::MAX),
            3 => Some(1 << 63),
            4 => Some(u64::from(self.byte()) << 12),
            5 => before.map(|before| before.wrapping_add(u64::from(self.byte()) * 1000)),
            6 => before.map(|before| before.wrapping_sub(u64::from(self.byte()))),
            _ => before,
        }
    }

    fn row<R: Row>(&mut self, row: &mut R) {
        for _ in 0..self.byte() % 4 {
            let index = usize::from(self.byte()) % R::METRICS.len();
            let reading = self.reading(row.get(index));
            row.set(index, reading);
        }
    }

    fn table<R: Row>(&mut self, rows: &mut Vec<(EntityId, R)>) -> Table<R> {
        let what = self.byte();
        if what & 3 == 3 {
            return Table::default();
        }
        if what & 4 != 0 && !rows.is_empty() {
            rows.remove(usize::from(self.byte()) % rows.len());
        }
        if what & 8 != 0 {
            rows.push((EntityId(u32::from(self.byte()) << (what >> 5)), R::default()));
        }
        if what & 16 != 0 {
            rows.iter_mut().for_each(|(_, row)| self.row(row));
        }
        Table::read(rows.clone())
    }

    fn name(&mut self) -> Name {
        let len = usize::from(self.byte() % 8);
        Name::new((0..len).map(|_| self.byte()).collect::<Vec<_>>())
    }

    fn entity(&mut self) -> Entity {
        match self.byte() % 4 {
            0 => Entity::Disk { dev: DevId { major: 8, minor: u32::from(self.byte()) }, name: self.name() },
            1 => Entity::Cgroup { path: self.name(), hierarchy: Hierarchy::V2, ino: Some(u64::from(self.byte())) },
            2 => Entity::CgroupIo { cgroup: EntityId(u32::from(self.byte())), dev: DevId { major: 8, minor: 0 } },
            _ => Entity::Process {
                pid: u32::from(self.byte()),
                start_ticks: u64::MAX,
                comm: self.name(),
                cgroup: None,
                kthread: false,
            },
        }
    }

    fn records(mut self) -> Vec<Record> {
        let mut sample = Sample::default();
        let (mut zones, mut disks, mut cgroups, mut processes) = (vec![], vec![], vec![], vec![]);
        let mut records = Vec::new();
        while self.0.len() > 0 {
            records.push(match self.byte() % 8 {
                0 => Record::Facts(Box::new(HostFacts { hostname: self.name(), ..HostFacts::default() })),
                1 => Record::Entity(EntityId(u32::from(self.byte())), self.entity()),
                2 => {
                    Record::Event(Event { at: Nanos(u64::from(self.byte())), what: What::Missed { samples: u64::MAX } })
                }
                3 => Record::Gap(Gap::detailed(Source::ProcessIo, Cause::Vanished, self.name().to_string())),
                _ => {
                    sample.time.monotonic.0 = sample.time.monotonic.0.wrapping_add(u64::from(self.byte()));
                    sample.time.wall.0 = self.reading(Some(sample.time.wall.0)).unwrap_or(0);
                    self.row(&mut sample.host);
                    sample.zones = self.table(&mut zones);
                    sample.disks = self.table(&mut disks);
                    sample.cgroups = self.table(&mut cgroups);
                    sample.processes = self.table(&mut processes);
                    Record::Sample(Box::new(sample.clone()))
                }
            });
        }
        records
    }
}

pub(super) fn made(bytes: &[u8]) -> Vec<Record> {
    Maker(bytes.iter()).records()
}

pub(super) fn encode(records: &[Record]) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new(), Header::new(Some(Nanos::SECOND))).unwrap();
    for record in records {
        encoder.record(record).unwrap();
    }
    encoder.finish().unwrap()
}

pub(super) fn decode(bytes: &[u8]) -> Result<(Vec<Record>, Option<Cut>), DecodeError> {
    let mut decoder = Decoder::new(bytes)?;
    let records = decoder.by_ref().collect::<Result<_, _>>()?;
    Ok((records, decoder.cut()))
}

pub(super) fn samples(records: &[Record]) -> Vec<&Sample> {
    records.iter().filter_map(|r| if let Record::Sample(sample) = r { Some(&**sample) } else { None }).collect()
}

/// Three cgroups and a machine, `count` seconds long.
pub(super) fn plain(count: u64) -> Vec<Record> {
    let mut records = vec![Record::Facts(Box::new(HostFacts { hostname: "host".into(), ..HostFacts::default() }))];
    for id in 0..3 {
        let path = Name::from(format!("/slice/{id}").as_str());
        records.push(Record::Entity(EntityId(id), Entity::Cgroup { path, hierarchy: Hierarchy::V2, ino: None }));
    }
    for at in 1..=count {
        let row = |id: u64| CgroupRow { file_dirty: Some(Bytes(at * 4096 * id)), ..CgroupRow::default() };
        records.push(Record::Sample(Box::new(Sample {
            time: SampleTime { monotonic: Nanos(at * 1_000_000_000), wall: Nanos(at * 1_000_000_000 + 7) },
            took: Nanos(1_000_000 + at),
            host: HostRow { nr_dirty: Some(Pages(at * 10)), ..HostRow::default() },
            cgroups: Table::read((0..3).map(|id| (EntityId(id), row(u64::from(id)))).collect()),
            ..Sample::default()
        })));
    }
    records
}

/// Where each frame starts, its kind, and the end of the file.
pub(super) fn frames(bytes: &[u8]) -> Vec<(usize, u8)> {
    let mut reader = FrameReader::new(&bytes[PREAMBLE..]);
    let mut at = PREAMBLE;
    let mut out = Vec::new();
    while let Step::Frame { kind, bytes } = reader.next().unwrap() {
        out.push((at, kind));
        at += bytes as usize;
    }
    out.push((at, 0));
    out
}

/// Puts another header in front of a file.
fn with_header(bytes: &[u8], edit: impl Fn(&mut Header)) -> Vec<u8> {
    let mut header = Decoder::new(bytes).unwrap().header().clone();
    edit(&mut header);
    let mut out = bytes[..PREAMBLE].to_vec();
    let json = serde_json::to_vec(&header).unwrap();
    frame::put_frame(&mut out, kind::HEADER, &zstd::bulk::compress(&json, 3).unwrap());
    out.extend_from_slice(&bytes[frames(bytes)[1].0..]);
    out
}

proptest! {
    #[test]
    fn any_records_read_back(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let records = made(&bytes);
        let file = encode(&records);
        prop_assert_eq!(&file, &encode(&records));
        let (read, cut) = decode(&file).unwrap();
        prop_assert_eq!(read, records);
        prop_assert_eq!(cut, None);
    }

    #[test]
    fn changed_bytes_lose_samples_and_never_change_one(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..6)
    ) {
        let records = plain(140);
        let mut file = encode(&records);
        for (at, flip) in flips {
            let at = at.index(file.len());
            file[at] ^= flip;
        }
        let Ok((read, _)) = decode(&file) else { return Ok(()) };
        let whole = samples(&records);
        for sample in samples(&read) {
            prop_assert!(whole.contains(&sample));
        }
    }

    #[test]
    fn records_of_any_shape_survive_any_change_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 50..200),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let records = made(&bytes);
        let mut file = encode(&records);
        let at = at.index(file.len());
        file[at] ^= flip;
        let Ok((read, cut)) = decode(&file) else { return Ok(()) };
        prop_assert!(samples(&read).iter().all(|sample| samples(&records).contains(sample)));
        // Only the preamble has bytes that do not matter: the second format number and the writer.
        prop_assert!(cut.is_some() || at < PREAMBLE);
    }
}

#[test]
fn a_file_cut_at_any_byte_has_every_sample_completed_before() {
    cut_at_every(1, &plain(5));
    // With a second header, a directory and a keyframe.
    cut_at_every(61, &plain(66));
}

fn cut_at_every(step: usize, records: &[Record]) {
    let file = encode(records);
    let starts = frames(&file);
    for len in (0..file.len()).step_by(step) {
        let complete = starts.windows(2).filter(|pair| pair[0].1 == kind::RECORDS && pair[1].0 <= len).count();
        match decode(&file[..len]) {
            Err(error) => {
                assert!(len < starts[1].0, "{len}: {error}");
                assert!(matches!(error, DecodeError::Empty | DecodeError::NoHeader), "{error}");
            }
            Ok((read, cut)) => {
                assert_eq!(samples(&read), samples(records)[..complete]);
                let cut = cut.unwrap();
                let at_frame = starts.iter().any(|(start, _)| *start == len);
                assert_eq!(cut.why, if at_frame { Why::NotClosed } else { Why::Truncated });
                let whole = starts.iter().map(|(start, _)| *start).filter(|start| *start <= len).max();
                assert_eq!(cut.bytes, (len - whole.unwrap()) as u64);
            }
        }
    }
}

#[test]
fn a_damaged_frame_costs_the_stretch_to_the_next_keyframe() {
    let records = plain(200);
    let mut file = encode(&records);
    let starts: Vec<usize> = frames(&file).iter().filter(|(_, k)| *k == kind::RECORDS).map(|(at, _)| *at).collect();
    file[starts[70] + 20] ^= 1;
    let mut decoder = Decoder::new(&file[..]).unwrap();
    let read: Vec<Record> = decoder.by_ref().collect::<Result<_, _>>().unwrap();
    let whole = samples(&records);
    let expect: Vec<&Sample> = whole[..70].iter().chain(&whole[128..]).copied().collect();
    assert_eq!(samples(&read), expect);
    let [cut] = decoder.cuts() else { panic!("one cut") };
    assert_eq!((cut.why, cut.samples), (Why::Damaged, Some(58)));
    assert_eq!((cut.after, cut.before), (Some(whole[69].time), Some(whole[128].time)));
}

#[test]
fn a_file_without_its_start_is_read_from_the_next_header() {
    let records = plain(200);
    let mut file = encode(&records);
    file[PREAMBLE + 30] ^= 1;
    let (read, cut) = decode(&file).unwrap();
    assert_eq!(samples(&read), samples(&records)[64..]);
    assert_eq!(cut.unwrap().samples, Some(64));
    // Facts and entities were lost with the first frames and come from the directory.
    assert_eq!(read[..4], records[..4]);
}

#[test]
fn a_frame_taken_out_is_noticed() {
    let file = encode(&plain(100));
    let starts = frames(&file);
    let mut less = file[..starts[10].0].to_vec();
    less.extend_from_slice(&file[starts[11].0..]);
    let (read, cut) = decode(&less).unwrap();
    assert_eq!(samples(&read).len(), 9 + 36);
    assert_eq!(cut.map(|cut| (cut.why, cut.samples)), Some((Why::Damaged, Some(55))));
}

#[test]
fn a_recording_appended_to_one_that_was_cut_is_not_mixed_with_it() {
    let (first, second) = (encode(&plain(5)), encode(&plain(70)));
    let mut file = first[..first.len() - 30].to_vec();
    file.extend(&second);
    let mut decoder = Decoder::new(file.as_slice()).unwrap();
    let read: Vec<Record> = decoder.by_ref().map(Result::unwrap).collect();
    assert_eq!(samples(&read), samples(&plain(5))[..samples(&read).len()]);
    let whys: Vec<Why> = decoder.cuts().iter().map(|cut| cut.why).collect();
    assert_eq!(whys, [Why::Damaged, Why::AfterEnd]);
}

#[test]
fn bytes_behind_the_end_are_told() {
    let mut file = encode(&plain(2));
    file.extend(encode(&plain(2)));
    let (read, cut) = decode(&file).unwrap();
    assert_eq!(samples(&read).len(), 2);
    assert_eq!(cut.map(|cut| (cut.why, cut.bytes)), Some((Why::AfterEnd, file.len() as u64 / 2)));
}

#[test]
fn a_file_of_a_newer_format_is_refused_by_version() {
    let mut file = encode(&plain(1));
    file[8] = 2;
    file[12..17].copy_from_slice(b"3.1.4");
    let error = decode(&file).unwrap_err().to_string();
    let expect = "the recording has format 2.0; this program reads formats up to 1: use floodline 3.1.4 or later";
    assert_eq!(error, expect);
}

#[test]
fn what_is_damaged_at_the_start_is_named() {
    let whole = encode(&plain(3));
    let check = |at: usize, flip: u8, expect: &str| {
        let mut file = whole.clone();
        file[at] ^= flip;
        assert_eq!(decode(&file).unwrap_err().to_string(), expect, "byte {at}");
    };
    let start = "the start of the recording is damaged (its first 32 bytes)";
    (0..8).for_each(|at| check(at, 1, start));
    // The format: none, and one that this version does not write.
    check(8, 1, start);
    check(9, 1, start);
    let header = "the header of the recording is damaged; the rest cannot be read without it";
    (PREAMBLE..PREAMBLE + 30).for_each(|at| check(at, 1, header));
    let as_text: Vec<u8> = whole.iter().copied().filter(|byte| *byte != b'\r').collect();
    assert_eq!(decode(&as_text).unwrap_err().to_string(), start);
    assert_eq!(decode(b"\x89PNG\r\n\x1a\n").unwrap_err().to_string(), "not a recording (.flr)");
}

#[test]
fn what_is_no_recording_is_refused() {
    assert_eq!(decode(b"").unwrap_err().to_string(), "the recording is empty");
    assert_eq!(decode(b"PK\x03\x04").unwrap_err().to_string(), "not a recording (.flr)");
    assert_eq!(decode(&[0; 5000]).unwrap_err().to_string(), "not a recording (.flr)");
    assert_eq!(decode(b"\x89FLR").unwrap_err().to_string(), "the recording ends before its header is complete");
}

#[test]
fn columns_are_mapped_by_name() {
    let records = plain(70);
    let file = with_header(&encode(&records), |header| {
        for table in &mut header.tables {
            for column in &mut table.columns {
                match column.name.as_str() {
                    "nr_dirty" => column.name = "nr_of_the_future".into(),
                    // The same name in another unit is not the same metric.
                    "file_dirty" => column.unit = "furlongs".into(),
                    _ => {}
                }
            }
            if table.name == "wb" {
                table.name = "table_of_the_future".into();
            }
        }
    });
    let mut decoder = Decoder::new(&file[..]).unwrap();
    let read: Vec<Record> = decoder.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!(decoder.cut(), None);
    assert_eq!(samples(&read).len(), 70);
    for (read, written) in samples(&read).into_iter().zip(samples(&records)) {
        assert_eq!((read.host.nr_dirty, read.took, read.time), (None, written.took, written.time));
        assert!(read.cgroups.rows().iter().all(|(_, row)| row.file_dirty.is_none()));
        assert_eq!(read.cgroups.rows().len(), 3);
    }
    let differences = decoder.differences();
    assert_eq!(differences.unknown, ["host.nr_of_the_future", "cgroup.file_dirty", "table_of_the_future"]);
    assert!(differences.missing.starts_with(&["host.nr_dirty".into(), "wb.writeback".into()]));
}

#[test]
fn a_file_with_fewer_columns_reads_them_as_absent() {
    // A writer that does not know host.nr_dirtied leaves out a column that is one byte, 0, in every sample.
    let file = encode(&plain(3));
    let mut out = with_header(&file, |header| header.tables[0].columns.retain(|c| c.name != "nr_dirtied"));
    let behind = frames(&out)[1].0;
    let samples_of = out.split_off(behind);
    let mut reader = FrameReader::new(&samples_of[..]);
    let column = HostRow::METRICS.iter().position(|metric| metric.name == "nr_dirtied").unwrap();
    while let Step::Frame { kind, .. } = reader.next().unwrap() {
        let mut content = zstd::bulk::decompress(reader.payload(), 1 << 20).unwrap();
        if kind == kind::RECORDS {
            take_host_column(&mut content, column);
        }
        frame::put_frame(&mut out, kind, &zstd::bulk::compress(&content, 3).unwrap());
    }
    let mut decoder = Decoder::new(&out[..]).unwrap();
    let read: Vec<Record> = decoder.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!(decoder.cut(), None);
    assert_eq!(read, plain(3));
    assert_eq!(decoder.differences().missing, ["host.nr_dirtied"]);
}

/// Takes one column that did not change out of the machine's row.
fn take_host_column(content: &mut Vec<u8>, column: usize) {
    use super::column::{self, Positions};
    use super::wire::Cursor;
    let mut cursor = Cursor::new(content);
    cursor.varint().unwrap();
    cursor.varint().unwrap();
    cursor.byte().unwrap();
    while !matches!(super::item::get(&mut cursor, None).unwrap(), super::item::Item::Stop) {}
    for _ in 0..4 {
        cursor.varint().unwrap();
    }
    let length = content.len() - cursor.left();
    let section = cursor.bytes().unwrap();
    assert!(section.len() < 128, "its length is one byte");
    let mut inside = Cursor::new(section);
    if inside.byte().unwrap() == 0 {
        inside.byte().unwrap();
    }
    for _ in 0..inside.varint().unwrap() {
        inside.varint().unwrap();
    }
    for _ in 0..column {
        column::get(&mut inside, &mut Positions::default(), 1, &mut (), |(), _| {}, |(), _, _| {}).unwrap();
    }
    let at = length + 1 + section.len() - inside.left();
    assert_eq!(content.remove(at), 0);
    content[length] -= 1;
}

#[test]
fn records_of_unknown_kinds_are_passed_over_and_counted() {
    let mut content = vec![0, 0, 0];
    let mut item = |kind: u8, json: &str| {
        content.push(kind);
        super::wire::put_bytes(&mut content, json.as_bytes());
    };
    item(2, r#"[0,{"kind":"tape_robot","arms":2}]"#);
    item(3, r#"{"at":5,"event":"eclipse","of":"sun"}"#);
    item(4, r#"{"source":"crystal_ball","cause":{"kind":"clouded","by":3}}"#);
    item(9, "\"a record of the future\"");
    content.push(0);
    let mut file = encode(&[]);
    file.truncate(frames(&file)[1].0);
    frame::put_frame(&mut file, kind::RECORDS, &zstd::bulk::compress(&content, 3).unwrap());
    frame::put_frame(&mut file, 77, b"a frame of the future");
    frame::put_frame(&mut file, kind::END, b"");

    let mut decoder = Decoder::new(&file[..]).unwrap();
    let read: Vec<Record> = decoder.by_ref().collect::<Result<_, _>>().unwrap();
    let event = Record::Event(Event { at: Nanos(5), what: What::Unknown });
    let gap = Record::Gap(Gap::new(Source::Unknown, Cause::Unknown));
    assert_eq!(read, [event, gap]);
    assert_eq!((decoder.unknown_records(), decoder.cut()), (3, None));
}

#[test]
fn a_frame_that_unpacks_to_too_much_is_refused() {
    let mut file = encode(&[]);
    file.truncate(frames(&file)[1].0);
    let bomb = zstd::bulk::compress(&vec![0; MAX_CONTENT + 1], 3).unwrap();
    frame::put_frame(&mut file, kind::RECORDS, &bomb);
    let error = decode(&file).unwrap_err();
    assert!(matches!(error, DecodeError::TooMuch(Limit::Content { .. })), "{error}");
}

/// Takes so many bytes and then no more, as a full disk does.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let len = bytes.len().min(self.0);
        self.0 -= len;
        if len == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(len) }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn nothing_follows_a_failed_write() {
    let records = plain(5);
    let whole = encode(&records);
    let end = frames(&whole)[3].0;
    let mut encoder = Encoder::new(Full(end + 10), Header::new(Some(Nanos::SECOND))).unwrap();
    let mut results = records.iter().map(|record| encoder.record(record));
    assert!(matches!(results.find(Result::is_err), Some(Err(EncodeError::Write(_)))));
    assert!(results.all(|result| matches!(result, Err(EncodeError::Ended))));
    assert_eq!((encoder.written(), encoder.samples()), (end as u64, 2));
    assert!(encoder.finish().is_err());
}

#[test]
fn a_large_batch_is_written_before_its_sample() {
    let name = Name::new([0x1b; 4096]);
    let entity =
        |id| Record::Entity(EntityId(id), Entity::Cgroup { path: name.clone(), hierarchy: Hierarchy::V2, ino: None });
    let mut records: Vec<Record> = (0..70).map(entity).collect();
    records.extend(plain(70).drain(4..));
    let file = encode(&records);
    assert!(frames(&file).iter().filter(|(_, k)| *k == kind::RECORDS).count() > 70);
    assert_eq!(decode(&file).unwrap(), (records, None));
}

/// A frame of zstd that holds bytes as they are: made without a compressor, which costs more than the decoder.
fn stored(bytes: &[u8]) -> Vec<u8> {
    // Magic number; one segment whose length has four bytes.
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
    let mut rest = bytes;
    loop {
        let (block, after) = rest.split_at(rest.len().min(1 << 17));
        let head = u32::try_from(block.len() << 3).unwrap() | u32::from(after.is_empty());
        out.extend_from_slice(&head.to_le_bytes()[..3]);
        out.extend_from_slice(block);
        if after.is_empty() {
            return out;
        }
        rest = after;
    }
}

#[test]
fn what_is_stored_is_unpacked() {
    for length in [0, 1, 1 << 17, (1 << 17) + 1] {
        let bytes = vec![7; length];
        assert_eq!(zstd::bulk::decompress(&stored(&bytes), length).unwrap(), bytes);
    }
}

#[test]
fn a_file_is_of_the_format_of_its_writer() {
    let mut file = encode(&plain(1));
    assert_eq!(Decoder::new(&file[..]).unwrap().format(), FORMAT);
    // The minor number is the second of the two behind the magic: a later one is read and told.
    file[10] = 77;
    assert_eq!(Decoder::new(&file[..]).unwrap().format(), (FORMAT.0, 77));
}

#[test]
fn the_decoder_takes_any_bytes() {
    // Few columns: reading a whole header takes longer than all that follows.
    let small = with_header(&encode(&plain(2)), |header| {
        for table in &mut header.tables {
            table.columns.truncate(2);
            table.columns.iter_mut().for_each(|column| (column.doc, column.source) = Default::default());
        }
    });
    let start = &small[..frames(&small)[1].0];
    bolero::check!().for_each(|bytes: &[u8]| {
        let _ = decode(bytes);
        // Most bytes are refused at the first check, so let some through: a good start, then frames
        // with good checksums around them, packed and as they are.
        let packed = stored(bytes);
        let mut kinds = [kind::RECORDS, kind::DIRECTORY, kind::HEADER];
        kinds.rotate_left(bytes.len() % 3);
        let mut file = start.to_vec();
        for kind in kinds {
            frame::put_frame(&mut file, kind, &packed);
            frame::put_frame(&mut file, kind, bytes);
        }
        let _ = decode(&file);
    });
}
