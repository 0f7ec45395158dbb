// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps on files: write, read, store, create, make durable. Every call is timed by its name; loops keep
//! their schedule and look at the stop between two calls.

use super::clock::{later, now};
use super::error::StepError;
use super::files::{self, Files, Way};
use super::mapping::{Anonymous, Shared};
use super::measure::Measures;
use super::runner::{Flow, Hand};
use floodline_record::units::Nanos;
use floodline_scenario::{
    ByteSize, CreateFiles, Files as FileSet, MmapStore, Order, Random, Read, SyncCall, SyncEvery, Syslog, Time, Write,
    fill,
};
use rustix::param::page_size;
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixDatagram;

/// Alignment that every device accepts for direct I/O.
const DIRECT_ALIGN: usize = 4096;
/// A stamp this often makes every sector differ from every other.
const SECTOR: usize = 512;

/// A block of bytes that no layer below can compress, recognise, or find misaligned.
struct Block {
    memory: Vec<u8>,
    from: usize,
    len: usize,
}

impl Block {
    fn new(size: ByteSize, random: &mut Random) -> Result<Block, StepError> {
        let len = usize::try_from(size.bytes()).map_err(|_| StepError::Senseless(format!("a block of {size}")))?;
        let memory = vec![0; len + DIRECT_ALIGN];
        let from = memory.as_ptr().align_offset(DIRECT_ALIGN).min(DIRECT_ALIGN);
        let mut block = Block { memory, from, len };
        random.fill(block.bytes());
        Ok(block)
    }

    fn bytes(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.from..self.from + self.len).unwrap_or_default()
    }

    /// Makes it differ from all before. Only stamps: filling it anew would cost more than writing it.
    fn renew(&mut self, random: &mut Random) {
        for sector in self.bytes().chunks_mut(SECTOR) {
            let stamp = random.number().to_le_bytes();
            let len = sector.len().min(stamp.len());
            if let (Some(front), Some(stamp)) = (sector.get_mut(..len), stamp.get(..len)) {
                front.copy_from_slice(stamp);
            }
        }
    }
}

/// When a loop ends by itself.
pub(super) struct End {
    at: Option<Nanos>,
    count: u64,
}

impl End {
    pub(super) fn new(
        start: Nanos,
        lasting: Option<Time>,
        count: Option<u64>,
        total: Option<ByteSize>,
        block: ByteSize,
    ) -> End {
        let blocks = total.map(|total| total.bytes().div_ceil(block.bytes().max(1)));
        let count = count.unwrap_or(u64::MAX).min(blocks.unwrap_or(u64::MAX));
        End { at: lasting.map(|lasting| later(start, lasting.0)), count }
    }

    /// Whether number `n`, due then, still belongs to the loop.
    pub(super) fn is_reached(&self, n: u64, due: Nanos) -> bool {
        n >= self.count || self.at.is_some_and(|at| due >= at || now() >= at)
    }
}

/// When data is made durable on the way.
struct Durable {
    sync: Option<SyncEvery>,
    last: Nanos,
}

impl Durable {
    fn new(sync: Option<&SyncEvery>) -> Durable {
        Durable { sync: sync.cloned(), last: now() }
    }

    /// The call that is due after block `n` (from 0).
    fn due(&mut self, n: u64) -> Option<SyncCall> {
        let sync = self.sync.as_ref()?;
        let is_due = match (sync.every, sync.after) {
            (Some(every), _) => now() >= later(self.last, every.0),
            (None, Some(after)) => (n + 1).is_multiple_of(after.max(1)),
            (None, None) => false,
        };
        if is_due {
            self.last = now();
        }
        is_due.then_some(sync.call)
    }
}

/// Makes an open file durable; timed.
pub(super) fn make_durable(
    files: &Files,
    measures: &mut Measures,
    call: SyncCall,
    path: &str,
) -> Result<(), StepError> {
    let name = match call {
        SyncCall::Fsync => "fsync",
        SyncCall::Fdatasync => "fdatasync",
        SyncCall::Msync => "msync",
    };
    let error = |error: std::io::Error| StepError::call(name, path, error);
    if call == SyncCall::Msync {
        let Some(mapping) = files.mapping(path) else {
            return Err(StepError::Senseless(format!("msync of {path}, which is not mapped")));
        };
        return measures.time(name, 0, || mapping.sync()).map_err(error);
    }
    let opened;
    let file = match files.any(path) {
        Some(open) => &open.file,
        None => {
            opened = files::open(path, Way::Read)?;
            &opened
        }
    };
    measures.time(name, 0, || if call == SyncCall::Fsync { file.sync_all() } else { file.sync_data() }).map_err(error)
}

impl Hand<'_> {
    pub(super) fn write(&mut self, step: &Write) -> Result<Flow, StepError> {
        let way = match (step.order, step.direct) {
            (Order::Append, _) => Way::Append,
            (_, true) => Way::WriteDirect,
            (_, false) => Way::Write,
        };
        if step.truncate {
            let open = self.files.open(&step.file, way)?;
            let file = &open.file;
            open.cursor = 0;
            self.measures
                .time("truncate", 0, || file.set_len(0))
                .map_err(|error| StepError::call("truncate", &step.file, error))?;
        }
        let mut block = Block::new(step.block, &mut self.random)?;
        let start = now();
        let end = End::new(start, step.lasting, step.count, step.total, step.block);
        let mut durable = Durable::new(step.sync.as_ref());
        let mut left = step.total.map(ByteSize::bytes);
        for n in 0.. {
            let due = step.rate.map_or(start, |rate| later(start, rate.due(n, step.block)));
            if end.is_reached(n, due) {
                return Ok(Flow::Go);
            }
            if self.stop.sleep_until(due) {
                return Ok(Flow::Stop);
            }
            block.renew(&mut self.random);
            let len = left.unwrap_or(u64::MAX).min(step.block.bytes());
            let bytes = block.bytes();
            let bytes = usize::try_from(len).ok().and_then(|len| bytes.get(..len)).unwrap_or_default();
            left = left.map(|left| left.saturating_sub(len));
            let open = self.files.open(&step.file, way)?;
            let offset = match (step.order, step.size) {
                (Order::Random, Some(size)) => {
                    let blocks = size.bytes() / step.block.bytes().max(1);
                    self.random.below(blocks) * step.block.bytes()
                }
                (_, Some(size)) if open.cursor.saturating_add(len) > size.bytes() => 0,
                _ => open.cursor,
            };
            let (file, mut appended) = (&open.file, &open.file);
            let wrote = self.measures.time("write", len, || match way {
                Way::Append => appended.write_all(bytes),
                _ => file.write_all_at(bytes, offset),
            });
            wrote.map_err(|error| StepError::call("write", &step.file, error))?;
            open.cursor = offset.saturating_add(len);
            if let Some(call) = durable.due(n) {
                make_durable(&self.files, &mut self.measures, call, &step.file)?;
            }
        }
        Ok(Flow::Go)
    }

    pub(super) fn read(&mut self, step: &Read) -> Result<Flow, StepError> {
        if let Some(files) = step.files {
            return self.read_files(step, files);
        }
        let way = if step.direct { Way::ReadDirect } else { Way::Read };
        let mut block = Block::new(step.block, &mut self.random)?;
        let start = now();
        let end = End::new(start, step.lasting, step.count, step.total, step.block);
        let is_endless = step.lasting.is_none() && step.count.is_none() && step.total.is_none();
        let open = self.files.open(&step.file, way)?;
        let length = open.file.metadata().map_err(|error| StepError::call("stat", &step.file, error))?.len();
        for n in 0.. {
            let due = step.rate.map_or(start, |rate| later(start, rate.due(n, step.block)));
            if end.is_reached(n, due) {
                return Ok(Flow::Go);
            }
            if self.stop.sleep_until(due) {
                return Ok(Flow::Stop);
            }
            let open = self.files.open(&step.file, way)?;
            if step.order == Order::Random {
                open.cursor = self.random.below((length / step.block.bytes().max(1)).max(1)) * step.block.bytes();
            } else if open.cursor >= length {
                // The end of the file: of the step where it names no other, else start over.
                if is_endless || length == 0 {
                    open.cursor = 0;
                    return Ok(Flow::Go);
                }
                open.cursor = 0;
            }
            let kept = if step.keep { Some(self.anon.grow(block.len)?) } else { None };
            let buffer = kept.map_or_else(|| block.bytes(), Anonymous::as_mut_slice);
            let (file, offset) = (&open.file, open.cursor);
            let at = now();
            let got = file.read_at(buffer, offset).map_err(|error| StepError::call("read", &step.file, error))?;
            let got = u64::try_from(got).unwrap_or(0);
            self.measures.took("read", at, super::clock::until(at, now()), got);
            if got == 0 && length == 0 {
                return Ok(Flow::Go);
            }
            open.cursor = if got == 0 { length } else { offset.saturating_add(got) };
        }
        Ok(Flow::Go)
    }

    /// Each file whole, opened and closed.
    fn read_files(&mut self, step: &Read, files: u64) -> Result<Flow, StepError> {
        let mut block = Block::new(step.block, &mut self.random)?;
        let start = now();
        let end = End::new(start, step.lasting, step.count, step.total, step.block);
        let way = if step.direct { Way::ReadDirect } else { Way::Read };
        let mut n = 0;
        for number in 0..files {
            let path = numbered(&step.file, number, step.files_per_dir);
            let file = self.measures.time("open", 0, || files::open(&path, way))?;
            let mut offset = 0;
            loop {
                let due = step.rate.map_or(start, |rate| later(start, rate.due(n, step.block)));
                if end.is_reached(n, due) {
                    return Ok(Flow::Go);
                }
                if self.stop.sleep_until(due) {
                    return Ok(Flow::Stop);
                }
                let at = now();
                let got = file.read_at(block.bytes(), offset).map_err(|error| StepError::call("read", &path, error))?;
                if got == 0 {
                    break;
                }
                let got = u64::try_from(got).unwrap_or(0);
                self.measures.took("read", at, super::clock::until(at, now()), got);
                offset += got;
                n += 1;
                if got < step.block.bytes() {
                    break;
                }
            }
        }
        Ok(Flow::Go)
    }

    pub(super) fn mmap_store(&mut self, step: &MmapStore) -> Result<Flow, StepError> {
        let page = page_size();
        let size = usize::try_from(step.size.bytes()).unwrap_or(usize::MAX);
        let pages = u64::try_from(size / page).unwrap_or(0);
        let store = usize::try_from(step.store.bytes()).unwrap_or(page).min(page);
        if step.pages > pages {
            return Err(StepError::Senseless(format!("{} pages in a mapping of {pages}", step.pages)));
        }
        let mut bytes = vec![0; store];
        let start = now();
        let end = End::new(start, step.lasting, step.count, None, step.size);
        let mut durable = Durable::new(step.sync.as_ref());
        for n in 0.. {
            let due = step.rate.map_or(start, |rate| later(start, rate.due(n)));
            if end.is_reached(n, due) {
                return Ok(Flow::Go);
            }
            if self.stop.sleep_until(due) {
                return Ok(Flow::Stop);
            }
            let path = fill(&step.file, 'n', n % step.files.unwrap_or(1).max(1));
            let open = self.files.open(&path, Way::Write)?;
            if open.mapping.as_ref().is_none_or(|mapping| mapping.len() < size) {
                open.mapping = Some(map(&path, &open.file, size)?);
            }
            let touched: Vec<u64> = match step.order {
                Order::Random => self.random.distinct(step.pages, pages),
                Order::Sequential | Order::Append => {
                    (0..step.pages).map(|k| (open.cursor + k) % pages.max(1)).collect()
                }
            };
            open.cursor = (open.cursor + step.pages) % pages.max(1);
            let Some(mapping) = open.mapping.as_mut() else { continue };
            for number in touched {
                self.random.fill(&mut bytes);
                let within = self.random.below(u64::try_from(page - store).unwrap_or(0) + 1);
                let offset = number.saturating_mul(u64::try_from(page).unwrap_or(0)).saturating_add(within);
                let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                let stored =
                    self.measures.time("mmap_store", step.store.bytes(), || match mapping.store(offset, &bytes) {
                        true => Ok(()),
                        false => Err(StepError::Senseless(format!("a store at {offset} of {path}"))),
                    });
                stored?;
            }
            if let Some(call) = durable.due(n) {
                make_durable(&self.files, &mut self.measures, call, &path)?;
            }
        }
        Ok(Flow::Go)
    }

    pub(super) fn create_files(&mut self, step: &CreateFiles) -> Result<Flow, StepError> {
        let mut block = Block::new(step.size, &mut self.random)?;
        let start = now();
        let end = End::new(start, step.lasting, step.files, None, step.size);
        for n in 0.. {
            let due = step.rate.map_or(start, |rate| later(start, rate.due(n)));
            if end.is_reached(n, due) {
                return Ok(Flow::Go);
            }
            if self.stop.sleep_until(due) {
                return Ok(Flow::Stop);
            }
            block.renew(&mut self.random);
            let number = self.created.entry(step.file.clone()).or_insert(0);
            let path = numbered(&step.file, *number, step.files_per_dir);
            *number += 1;
            files::parents(&path)?;
            let at = now();
            let mut file = self
                .measures
                .time("create", 0, || std::fs::File::create(&path))
                .map_err(|error| StepError::call("create", &path, error))?;
            if step.size.bytes() > 0 {
                let wrote = self.measures.time("write", step.size.bytes(), || file.write_all(block.bytes()));
                wrote.map_err(|error| StepError::call("write", &path, error))?;
            }
            if step.fsync {
                let synced = self.measures.time("fsync", 0, || file.sync_all());
                synced.map_err(|error| StepError::call("fsync", &path, error))?;
            }
            self.measures.time("close", 0, || -> Result<(), StepError> {
                drop(file);
                Ok(())
            })?;
            self.measures.took("create_files", at, super::clock::until(at, now()), step.size.bytes());
        }
        Ok(Flow::Go)
    }

    pub(super) fn syslog(&mut self, step: &Syslog) -> Result<Flow, StepError> {
        let error = |error| StepError::call("send", &step.socket, error);
        let socket = UnixDatagram::unbound().map_err(error)?;
        socket.connect(&step.socket).map_err(|error| StepError::call("connect", &step.socket, error))?;
        let mut message = vec![0; usize::try_from(step.message.bytes()).unwrap_or(0)];
        let start = now();
        let end = End::new(start, step.lasting, step.count, None, step.message);
        for n in 0.. {
            let due = later(start, step.messages.due(n));
            if end.is_reached(n, due) {
                return Ok(Flow::Go);
            }
            if self.stop.sleep_until(due) {
                return Ok(Flow::Stop);
            }
            // Facility user, severity notice; the text differs from all before and is printable.
            let text = std::iter::from_fn(|| Some(b'a' + u8::try_from(self.random.below(26)).unwrap_or(0)));
            for (to, from) in message.iter_mut().zip(b"<13>x: ".iter().copied().chain(text)) {
                *to = from;
            }
            self.measures.time("syslog", step.message.bytes(), || socket.send(&message)).map_err(error)?;
        }
        Ok(Flow::Go)
    }

    pub(super) fn unlink(&mut self, step: &FileSet) -> Result<Flow, StepError> {
        for number in 0..step.files {
            if self.stop.is_due() {
                return Ok(Flow::Stop);
            }
            let path = numbered(&step.file, number, step.files_per_dir);
            self.measures
                .time("unlink", 0, || std::fs::remove_file(&path))
                .map_err(|error| StepError::call("unlink", &path, error))?;
        }
        Ok(Flow::Go)
    }
}

/// The name of file `number` of a set.
fn numbered(pattern: &str, number: u64, per_dir: Option<u64>) -> String {
    let name = fill(pattern, 'n', number);
    match per_dir {
        Some(per_dir) => fill(&name, 'd', number / per_dir.max(1)),
        None => name,
    }
}

/// Maps a file, extending it to the size.
fn map(path: &str, file: &std::fs::File, size: usize) -> Result<Shared, StepError> {
    let wanted = u64::try_from(size).unwrap_or(u64::MAX);
    let length = file.metadata().map_err(|error| StepError::call("stat", path, error))?.len();
    if length < wanted {
        file.set_len(wanted).map_err(|error| StepError::call("truncate", path, error))?;
    }
    Shared::of(file, size).map_err(|error| StepError::call("mmap", path, error))
}
