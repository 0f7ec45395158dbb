// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring in memory: segments of a few minutes, each a recording of its own (`.flr`) that can be read without the others.
//! The oldest segment goes when the limit is reached.

use super::carry::Carry;
use floodline_record::facts::HostFacts;
use floodline_record::gap::Gap;
use floodline_record::id::{Entity, EntityId};
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{EncodeError, Encoder, Header};
use floodline_record::sample::{Sample, SampleTime};
use floodline_record::units::Nanos;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Samples of a segment.
const SEGMENT_SAMPLES: u64 = 128;

/// Gaps that every segment repeats.
const GAPS_MAX: usize = 1000;

/// A complete segment.
struct Segment {
    number: u64,
    bytes: Arc<Vec<u8>>,
    last: SampleTime,
}

/// The segment that grows.
struct Active {
    number: u64,
    encoder: Encoder<Vec<u8>>,
    last: SampleTime,
}

/// Position of a reader of the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The segment it reads.
    pub(crate) number: u64,
    /// Bytes of the segment already read.
    pub(crate) offset: usize,
}

/// The result of one read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where it begins; its segment may be a later one than the reader's, whose rest is gone then.
    pub(crate) at: Cursor,
    /// Its length.
    pub(crate) length: usize,
    /// Whether the segment ends with it.
    pub(crate) is_end: bool,
}

/// The ring in memory.
pub(crate) struct MemoryRing {
    sealed: VecDeque<Segment>,
    active: Option<Active>,
    next: u64,
    bytes: usize,
    limit: usize,
    segment_limit: usize,
    every: Option<Nanos>,
    facts: Option<Box<HostFacts>>,
    entities: BTreeMap<EntityId, Entity>,
    gaps: Vec<Gap>,
    carry: Carry,
    reader: Cursor,
    lost: u64,
}

impl MemoryRing {
    /// An empty ring of at most `limit` bytes, with segments of at most about `segment_limit` bytes.
    pub(crate) fn new(limit: usize, segment_limit: usize, every: Option<Nanos>) -> MemoryRing {
        MemoryRing {
            sealed: VecDeque::new(),
            active: None,
            next: 0,
            bytes: 0,
            limit,
            segment_limit,
            every,
            facts: None,
            entities: BTreeMap::new(),
            gaps: Vec::new(),
            carry: Carry::default(),
            reader: Cursor::default(),
            lost: 0,
        }
    }

    /// Records that the reader has everything before `upto`. Bytes that are dropped unread are counted.
    pub(crate) fn was_read(&mut self, upto: Cursor) {
        self.reader = upto;
    }

    /// Returns the bytes that were dropped unread.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes one record. After an error the segment is lost and the next record begins a new one.
    pub(crate) fn record(&mut self, record: &Record) -> Result<(), EncodeError> {
        let result = self.put(record);
        if result.is_err() {
            self.active = None;
        }
        result
    }

    fn put(&mut self, record: &Record) -> Result<(), EncodeError> {
        match record {
            Record::Facts(facts) => self.facts = Some(facts.clone()),
            Record::Entity(id, entity) => {
                self.entities.insert(*id, entity.clone());
            }
            Record::Gap(gap) if self.gaps.len() < GAPS_MAX && !self.gaps.contains(gap) => self.gaps.push(gap.clone()),
            Record::Gap(_) | Record::Event(_) => {}
            Record::Sample(sample) => {
                self.carry.note(sample);
                return self.sample(sample, record);
            }
        }
        match &mut self.active {
            Some(active) => active.encoder.record(record),
            // A segment begins with its first sample and all state known then.
            None => Ok(()),
        }
    }

    fn sample(&mut self, sample: &Sample, record: &Record) -> Result<(), EncodeError> {
        let time = sample.time;
        let active = match &mut self.active {
            Some(active) => {
                active.encoder.record(record)?;
                active
            }
            None => {
                let mut active = self.begin(sample)?;
                active.encoder.record(&Record::Sample(Box::new(self.carry.complete(sample))))?;
                self.active.insert(active)
            }
        };
        active.last = time;
        if active.encoder.samples() >= SEGMENT_SAMPLES || active.encoder.get_ref().len() >= self.segment_limit {
            self.seal()?;
        }
        let growing = self.active.as_ref().map_or(0, |active| active.encoder.get_ref().len());
        while self.bytes + growing > self.limit
            && let Some(oldest) = self.sealed.pop_front()
        {
            self.bytes -= oldest.bytes.len();
            let length = oldest.bytes.len() as u64;
            self.lost += match oldest.number.cmp(&self.reader.number) {
                std::cmp::Ordering::Less => 0,
                std::cmp::Ordering::Equal => length.saturating_sub(self.reader.offset as u64),
                std::cmp::Ordering::Greater => length,
            };
        }
        Ok(())
    }

    /// Creates a segment that begins with the state a reader needs.
    fn begin(&mut self, sample: &Sample) -> Result<Active, EncodeError> {
        let is_live = |id: &EntityId, entity: &Entity| match entity {
            Entity::Process { .. } => sample.processes.get(*id).is_some(),
            Entity::Cgroup { .. } => sample.cgroups.get(*id).is_some() || !sample.cgroups.was_read(),
            Entity::CgroupIo { cgroup, .. } => sample.cgroups.get(*cgroup).is_some(),
            Entity::Wb { .. } => sample.wbs.get(*id).is_some(),
            Entity::Zone { .. } | Entity::Disk { .. } | Entity::Bdi { .. } => true,
        };
        self.entities.retain(|id, entity| is_live(id, entity));
        let entities = &self.entities;
        self.gaps.retain(|gap| gap.entity.is_none_or(|id| entities.contains_key(&id)));
        let last = self.sealed.back().map_or(64 << 10, |segment| segment.bytes.len());
        let room = Vec::with_capacity((last + last / 4).min(self.segment_limit.saturating_mul(2)));
        let mut encoder = Encoder::new(room, Header::new(self.every))?;
        if let Some(facts) = &self.facts {
            encoder.record(&Record::Facts(facts.clone()))?;
        }
        for (id, entity) in entities {
            encoder.record(&Record::Entity(*id, entity.clone()))?;
        }
        for gap in &self.gaps {
            encoder.record(&Record::Gap(gap.clone()))?;
        }
        let number = self.next;
        self.next += 1;
        Ok(Active { number, encoder, last: sample.time })
    }

    fn seal(&mut self) -> Result<(), EncodeError> {
        let Some(Active { number, encoder, last }) = self.active.take() else { return Ok(()) };
        let bytes = Arc::new(encoder.finish()?);
        self.bytes += bytes.len();
        self.sealed.push_back(Segment { number, bytes, last });
        Ok(())
    }

    /// Ends the growing segment.
    pub(crate) fn close(&mut self) -> Result<(), EncodeError> {
        self.seal()
    }

    /// Appends what a reader lacks to `out`, at most `limit` bytes.
    pub(crate) fn read(&self, from: Cursor, limit: usize, out: &mut Vec<u8>) -> Option<Piece> {
        let segments = self.sealed.iter().map(|segment| (segment.number, segment.bytes.as_slice(), true));
        let active = self.active.as_ref().map(|active| (active.number, active.encoder.get_ref().as_slice(), false));
        let (number, bytes, is_sealed) = segments.chain(active).find(|(number, ..)| *number >= from.number)?;
        let offset = if number == from.number { from.offset } else { 0 };
        let rest = bytes.get(offset..)?;
        let piece = rest.get(..rest.len().min(limit))?;
        out.extend_from_slice(piece);
        let is_end = is_sealed && piece.len() == rest.len();
        (is_end || !piece.is_empty()).then_some(Piece { at: Cursor { number, offset }, length: piece.len(), is_end })
    }

    /// Bytes that a reader lacks.
    pub(crate) fn behind(&self, from: Cursor) -> u64 {
        let sealed = self.sealed.iter().map(|segment| (segment.number, segment.bytes.len()));
        let active = self.active.as_ref().map(|active| (active.number, active.encoder.get_ref().len()));
        let lacks = |(number, length): (u64, usize)| match number.cmp(&from.number) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => length.saturating_sub(from.offset) as u64,
            std::cmp::Ordering::Greater => length as u64,
        };
        sealed.chain(active).map(lacks).sum()
    }

    /// The segments with samples from a moment on; the growing one as far as it is.
    pub(crate) fn since(&self, from: Nanos) -> Vec<Arc<Vec<u8>>> {
        let sealed = self.sealed.iter().filter(|segment| segment.last.monotonic >= from);
        let growing = self.active.as_ref().map(|active| Arc::new(active.encoder.get_ref().clone()));
        sealed.map(|segment| Arc::clone(&segment.bytes)).chain(growing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::recording::Decoder;
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::starved_budget;

    fn filled(fixture: &Fixture, limit: usize) -> MemoryRing {
        let mut ring = MemoryRing::new(limit, limit / 4, Some(Nanos::SECOND));
        for record in fixture.records() {
            ring.record(&record).unwrap();
        }
        ring
    }

    fn samples(bytes: &[u8]) -> Vec<Nanos> {
        let time = |record| match record {
            Ok(Record::Sample(sample)) => Some(sample.time.monotonic),
            _ => None,
        };
        Decoder::new(bytes).unwrap().filter_map(time).collect()
    }

    #[test]
    fn every_segment_can_be_read_alone_and_none_is_missing() {
        let fixture = Fixture::healthy().seconds(300);
        let ring = filled(&fixture, 64 << 20);
        let segments = ring.since(Nanos(0));
        assert_eq!(segments.len(), 3);
        let all: Vec<Nanos> = segments.iter().flat_map(|bytes| samples(bytes)).collect();
        assert_eq!(all.len(), 301);
        assert!(all.is_sorted());
        for bytes in &segments {
            let records: Vec<Record> = Decoder::new(bytes.as_slice()).unwrap().filter_map(Result::ok).collect();
            assert!(matches!(records.first(), Some(Record::Facts(_))));
            let first = records.iter().find_map(|record| match record {
                Record::Sample(sample) => Some(sample),
                _ => None,
            });
            assert!(first.unwrap().zones.was_read(), "what is read now and then is in each segment");
        }
    }

    #[test]
    fn the_oldest_goes_when_the_limit_is_reached() {
        let ring = filled(&starved_budget().seconds(2000), 64 << 10);
        let held = ring.bytes + ring.active.as_ref().map_or(0, |active| active.encoder.get_ref().len());
        assert!(held <= 64 << 10, "{held}");
        assert!(ring.sealed.len() >= 2);
        assert!(ring.lost() > 0);
    }

    #[test]
    fn a_reader_gets_every_byte_once() {
        let fixture = Fixture::healthy().seconds(200);
        let mut ring = MemoryRing::new(64 << 20, 1 << 20, None);
        let (mut cursor, mut files) = (Cursor::default(), vec![Vec::new()]);
        let mut drain = |ring: &MemoryRing, files: &mut Vec<Vec<u8>>| {
            let mut out = Vec::new();
            while let Some(piece) = ring.read(cursor, 777, &mut out) {
                assert_eq!(piece.at, cursor);
                assert_eq!(piece.length, out.len());
                files.last_mut().unwrap().append(&mut out);
                cursor.offset += piece.length;
                if piece.is_end {
                    cursor = Cursor { number: cursor.number + 1, offset: 0 };
                    files.push(Vec::new());
                }
            }
            assert_eq!(ring.behind(cursor), 0);
        };
        for record in fixture.records() {
            ring.record(&record).unwrap();
            drain(&ring, &mut files);
        }
        ring.close().unwrap();
        drain(&ring, &mut files);
        files.retain(|file| !file.is_empty());
        assert_eq!(files.len(), 2);
        assert_eq!(files.iter().map(|file| samples(file).len()).sum::<usize>(), 201);
    }
}
