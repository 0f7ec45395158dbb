// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes records. [`Sink::record`] hands a sample to the writer, in one write, before it returns. Entities, events
//! and gaps are written with the sample that follows them. After a failed write the encoder accepts no more records:
//! [`Encoder::written`] returns the number of bytes in whole frames.

use super::frame::{self, kind, put_frame, put_preamble};
use super::limits::SAMPLE_CELLS_MAX;
use super::schema::{Header, tables_of_this_build};
use super::table::{self, MAX_ROWS, Rows, Scratch};
use super::wire::{put_bytes, put_varint, zigzag};
use super::{FORMAT, KEYFRAME_EVERY, MAX_CONTENT, item};
use crate::id::{Entity, EntityId};
use crate::metric::Row;
use crate::record::{Record, Sink};
use crate::sample::{HostRow, Sample, SampleTime, Table, TableVisitor};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Size from which on records other than samples are written without waiting for a sample, bytes.
const FULL: usize = 1 << 20;

/// Size of pending records from which they get a frame of their own before that of their sample, bytes. Names of hundreds of
/// cgroups are text of few letters, and readings are bytes of any value. In one frame they share one code, and both take more
/// room.
const APART: usize = 8 << 10;

/// zstd's level: higher ones cost more CPU than the bytes they save are worth (`benches/recording.rs`).
const LEVEL: i32 = 3;

/// Why records could not be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The writer failed.
    #[error("cannot write the recording: {0}")]
    Write(#[from] io::Error),
    /// A record is larger than the format allows.
    #[error("{0} is too large for a recording")]
    TooLarge(&'static str),
    /// A record has no JSON form.
    #[error("cannot write a record as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// An earlier write failed; nothing can follow it.
    #[error("an earlier write of the recording failed")]
    Ended,
}

/// Writes a recording.
pub struct Encoder<W> {
    writer: W,
    zstd: zstd::bulk::Compressor<'static>,
    /// The header's frame, repeated at every keyframe.
    header: Vec<u8>,
    /// Items that wait for the next frame.
    pending: Vec<u8>,
    /// Records frames written.
    frames: u64,
    /// Samples written.
    samples: u64,
    last: SampleTime,
    tables: Written,
    directory: Directory,
    /// Bytes of whole frames handed to the writer.
    written: u64,
    ended: bool,
    content: Vec<u8>,
    packed: Vec<u8>,
    out: Vec<u8>,
}

impl<W: Write> Encoder<W> {
    /// Starts a recording: writes the preamble and the header. The header's tables are always those of
    /// this build.
    pub fn new(writer: W, header: Header) -> Result<Encoder<W>, EncodeError> {
        let header = Header { tables: tables_of_this_build(), ..header };
        let mut encoder = Encoder {
            writer,
            zstd: zstd::bulk::Compressor::new(LEVEL)?,
            header: Vec::new(),
            pending: Vec::new(),
            frames: 0,
            samples: 0,
            last: SampleTime::default(),
            tables: Written::default(),
            directory: Directory::default(),
            written: 0,
            ended: false,
            content: serde_json::to_vec(&header)?,
            packed: Vec::new(),
            out: Vec::new(),
        };
        put_preamble(&mut encoder.out, FORMAT.0, FORMAT.1, &header.version);
        let preamble = encoder.out.len();
        encoder.pack(kind::HEADER)?;
        encoder.header.extend_from_slice(encoder.out.get(preamble..).unwrap_or_default());
        encoder.write()?;
        Ok(encoder)
    }

    /// Returns the number of bytes handed to the writer up to now, all of them in whole frames. After a failed write
    /// the file may hold part of a further frame, which can be cut off here.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the number of samples handed to the writer up to now.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the writer.
    pub fn get_ref(&self) -> &W {
        &self.writer
    }

    /// Writes the records that wait for a sample.
    pub fn flush(&mut self) -> Result<(), EncodeError> {
        if self.ended {
            return Err(EncodeError::Ended);
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        self.begin(false, false);
        self.pack(kind::RECORDS)?;
        self.write()?;
        self.frames += 1;
        Ok(())
    }

    /// Writes the waiting records and the end mark, and returns the writer.
    pub fn finish(mut self) -> Result<W, EncodeError> {
        self.flush()?;
        self.content.clear();
        self.pack(kind::END)?;
        self.write()?;
        Ok(self.writer)
    }

    /// Starts the content of a records frame with the items that wait.
    fn begin(&mut self, sample: bool, keyframe: bool) {
        self.content.clear();
        put_varint(&mut self.content, self.frames);
        put_varint(&mut self.content, self.samples);
        self.content.push(u8::from(sample) | u8::from(keyframe) << 1);
        self.content.append(&mut self.pending);
        item::put_stop(&mut self.content);
    }

    /// Adds `content` as a frame to what is written next.
    fn pack(&mut self, kind: u8) -> Result<(), EncodeError> {
        if self.content.len() > MAX_CONTENT {
            return Err(EncodeError::TooLarge("a record"));
        }
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.content.len()));
        self.zstd.compress_to_buffer(&self.content, &mut self.packed)?;
        if self.packed.len() > frame::MAX_PAYLOAD {
            return Err(EncodeError::TooLarge("a record"));
        }
        put_frame(&mut self.out, kind, &self.packed);
        Ok(())
    }

    /// Hands the packed frames over, in one write.
    fn write(&mut self) -> Result<(), EncodeError> {
        let result = self.writer.write_all(&self.out).and_then(|()| self.writer.flush());
        match result {
            Ok(()) => self.written += self.out.len() as u64,
            Err(_) => self.ended = true,
        }
        self.out.clear();
        Ok(result?)
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), EncodeError> {
        if self.pending.len() >= APART {
            self.begin(false, false);
            self.pack(kind::RECORDS)?;
            self.frames += 1;
        }
        let keyframe = self.samples.is_multiple_of(KEYFRAME_EVERY);
        if keyframe {
            self.last = SampleTime::default();
            if self.samples > 0 {
                self.out.extend_from_slice(&self.header);
                self.directory(sample)?;
            }
        }
        self.begin(true, keyframe);
        put_varint(&mut self.content, step(self.last.monotonic.0, sample.time.monotonic.0));
        put_varint(&mut self.content, step(self.last.wall.0, sample.time.wall.0));
        put_varint(&mut self.content, sample.took.0);
        self.last = sample.time;
        let mut put =
            PutTables { out: &mut self.content, state: &mut self.tables, keyframe, at: 0, cells: 0, fits: true };
        sample.visit(&mut put);
        if !put.fits {
            return Err(EncodeError::TooLarge("a sample"));
        }
        self.pack(kind::RECORDS)?;
        self.write()?;
        self.frames += 1;
        self.samples += 1;
        Ok(())
    }

    /// Adds the directory to what is written next.
    fn directory(&mut self, sample: &Sample) -> Result<(), EncodeError> {
        let mut live = LiveIds { state: &self.tables, at: 0, ids: BTreeSet::new() };
        sample.visit(&mut live);
        self.directory.keep(live.ids);
        self.content.clear();
        self.content.extend_from_slice(&self.directory.facts);
        let entities = std::mem::take(&mut self.directory.entities);
        for (id, entity) in &entities {
            if self.content.len() >= FULL {
                self.end_directory()?;
            }
            item::put_entity(&mut self.content, *id, entity)?;
        }
        self.directory.entities = entities;
        self.end_directory()
    }

    fn end_directory(&mut self) -> Result<(), EncodeError> {
        item::put_stop(&mut self.content);
        self.pack(kind::DIRECTORY)?;
        self.content.clear();
        Ok(())
    }

    /// Adds a record to those that wait, written by `put`.
    fn wait(&mut self, put: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>) -> Result<(), EncodeError> {
        let before = self.pending.len();
        put(&mut self.pending)?;
        if self.pending.len() - before > MAX_CONTENT - 2 * FULL {
            self.pending.truncate(before);
            return Err(EncodeError::TooLarge("a record"));
        }
        if self.pending.len() >= FULL { self.flush() } else { Ok(()) }
    }
}

impl<W: Write> Sink for Encoder<W> {
    type Error = EncodeError;

    fn record(&mut self, record: &Record) -> Result<(), EncodeError> {
        if self.ended {
            return Err(EncodeError::Ended);
        }
        match record {
            Record::Facts(facts) => {
                self.directory.facts.clear();
                item::put_facts(&mut self.directory.facts, facts)?;
                self.wait(|out| item::put_facts(out, facts))
            }
            Record::Entity(id, entity) => {
                self.directory.describe(*id, entity);
                self.wait(|out| item::put_entity(out, *id, entity))
            }
            Record::Event(event) => self.wait(|out| item::put_event(out, event)),
            Record::Gap(gap) => self.wait(|out| item::put_gap(out, gap)),
            Record::Sample(sample) => {
                let result = self.sample(sample);
                // The next sample cannot be a difference to one that was not written.
                self.ended |= result.is_err();
                result
            }
        }
    }
}

/// Returns the wrapping difference between two times.
fn step(before: u64, now: u64) -> u64 {
    zigzag(now.wrapping_sub(before) as i64)
}

/// Rows of every table as last written, in visiting order.
#[derive(Default)]
struct Written {
    tables: Vec<Box<dyn Any + Send>>,
    scratch: Scratch,
    body: Vec<u8>,
}

impl Written {
    fn rows<R: Row>(&self, at: usize) -> &[(EntityId, R)] {
        self.tables.get(at).and_then(|table| table.downcast_ref::<Rows<R>>()).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Writes the tables of a sample: number of the table in the header, length, rows.
struct PutTables<'a> {
    out: &'a mut Vec<u8>,
    state: &'a mut Written,
    keyframe: bool,
    at: usize,
    cells: u64,
    fits: bool,
}

impl PutTables<'_> {
    fn put<R: Row>(&mut self, now: Option<&[(EntityId, R)]>) {
        let Written { tables, scratch, body } = &mut *self.state;
        if tables.len() <= self.at {
            tables.push(Box::new(Rows::<R>::new()));
        }
        let before = tables.get_mut(self.at).and_then(|table| table.downcast_mut::<Rows<R>>());
        let number = self.at as u64;
        self.at += 1;
        let Some(before) = before else { return };
        if self.keyframe {
            before.clear();
        }
        let Some(now) = now else { return };
        self.cells = self.cells.saturating_add(now.len() as u64 * R::METRICS.len() as u64);
        if now.len() > MAX_ROWS || self.cells > SAMPLE_CELLS_MAX {
            self.fits = false;
            return;
        }
        body.clear();
        table::put(body, scratch, before, now);
        put_varint(self.out, number);
        put_bytes(self.out, body);
    }
}

impl TableVisitor for PutTables<'_> {
    fn host(&mut self, row: &HostRow) {
        self.put(Some(&[(EntityId(0), row.clone())]));
    }
    fn table<R: Row + 'static>(&mut self, table: &Table<R>) {
        self.put(table.was_read().then_some(table.rows()));
    }
}

/// Entities with a row in a sample, or in the last one that had their table.
struct LiveIds<'a> {
    state: &'a Written,
    at: usize,
    ids: BTreeSet<EntityId>,
}

impl TableVisitor for LiveIds<'_> {
    fn host(&mut self, _: &HostRow) {
        self.at += 1;
    }
    fn table<R: Row + 'static>(&mut self, table: &Table<R>) {
        self.ids.extend(self.state.rows::<R>(self.at).iter().chain(table.rows()).map(|(id, _)| *id));
        self.at += 1;
    }
}

/// Content of the directory, for a reader that starts at a keyframe.
#[derive(Default)]
struct Directory {
    /// The last facts, as an item.
    facts: Vec<u8>,
    entities: BTreeMap<EntityId, Entity>,
    /// Entities described since the last keyframe.
    recent: BTreeSet<EntityId>,
}

impl Directory {
    fn describe(&mut self, id: EntityId, entity: &Entity) {
        self.entities.insert(id, entity.clone());
        self.recent.insert(id);
    }

    /// Forgets entities that are neither live, nor recent, nor named by one of those.
    fn keep(&mut self, mut live: BTreeSet<EntityId>) {
        live.append(&mut self.recent);
        let named = self.entities.iter().filter(|(id, _)| live.contains(id)).filter_map(|(_, entity)| match entity {
            Entity::CgroupIo { cgroup, .. } => Some(*cgroup),
            Entity::Process { cgroup, .. } => *cgroup,
            _ => None,
        });
        let named: Vec<EntityId> = named.collect();
        live.extend(named);
        self.entities.retain(|id, _| live.contains(id));
    }
}
