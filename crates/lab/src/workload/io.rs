// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations on open files, each timed by the name of its call: open, write, read, store, create, make durable, close.

use super::clock::{now, until};
use super::error::StepError;
use super::files;
use super::mapping::{Anonymous, Shared, start_writing};
use super::measure::Timed;
use super::runner::Hand;
use floodline_scenario::program::{Slot, Target, Way};
use floodline_scenario::{CreateFiles, Random, SyncCall};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::param::page_size;
use std::io::Write as _;
use std::os::unix::fs::FileExt;

/// Alignment that every device accepts for direct I/O.
const DIRECT_ALIGN: usize = 4096;
/// Distance of the stamps in a block, which make every sector differ from every other.
const SECTOR: usize = 512;

/// Bytes at an address that direct I/O accepts.
#[derive(Debug, Default)]
pub(super) struct Block {
    memory: Vec<u8>,
    from: usize,
    len: usize,
}

impl Block {
    fn of(length: u64) -> Result<Block, StepError> {
        let too_large = || StepError::Senseless(format!("a block of {length} bytes"));
        let len = usize::try_from(length).map_err(|_| too_large())?;
        let memory = vec![0; len.checked_add(DIRECT_ALIGN).ok_or_else(too_large)?];
        let from = memory.as_ptr().align_offset(DIRECT_ALIGN).min(DIRECT_ALIGN);
        Ok(Block { memory, from, len })
    }

    fn bytes(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.from..self.from + self.len).unwrap_or_default()
    }

    /// Returns the first `length` bytes. Enlarges the block if necessary.
    pub(super) fn first(&mut self, length: u64) -> Result<&mut [u8], StepError> {
        if (self.len as u64) < length {
            *self = Block::of(length)?;
        }
        let length = usize::try_from(length).unwrap_or(0);
        Ok(self.bytes().get_mut(..length).unwrap_or_default())
    }

    /// Returns `length` bytes that no layer below can compress or deduplicate. A filled block only gets new stamps:
    /// refilling it would cost more than writing it.
    pub(super) fn fresh(&mut self, length: u64, random: &mut Random) -> Result<&mut [u8], StepError> {
        if (self.len as u64) < length {
            *self = Block::of(length)?;
            random.fill(self.bytes());
        }
        let bytes = self.first(length)?;
        for sector in bytes.chunks_mut(SECTOR) {
            let stamp = random.number().to_le_bytes();
            let len = sector.len().min(stamp.len());
            if let (Some(front), Some(stamp)) = (sector.get_mut(..len), stamp.get(..len)) {
                front.copy_from_slice(stamp);
            }
        }
        Ok(bytes)
    }
}

impl Hand<'_> {
    pub(super) fn open(&mut self, slot: Slot, path: &str, way: Way, is_measured: bool) -> Result<(), StepError> {
        let file = match is_measured {
            true => self.measures.time("open", 0, || files::open(path, way))?,
            false => files::open(path, way)?,
        };
        self.files.put(slot, path, file);
        Ok(())
    }

    pub(super) fn length(&mut self, slot: Slot) -> Result<u64, StepError> {
        let open = self.files.at(slot)?;
        let metadata = open.file.metadata().map_err(|error| StepError::call("stat", &open.path, error))?;
        Ok(metadata.len())
    }

    pub(super) fn set_length(&mut self, slot: Slot, length: u64) -> Result<(), StepError> {
        let open = self.files.at(slot)?;
        let done = self.measures.time("truncate", 0, || open.file.set_len(length));
        done.map_err(|error| StepError::call("truncate", &open.path, error))
    }

    pub(super) fn allocate(&mut self, slot: Slot, size: u64) -> Result<(), StepError> {
        let open = self.files.at(slot)?;
        let done = self.measures.time("fallocate", 0, || fallocate(&open.file, FallocateFlags::empty(), 0, size));
        done.map_err(|error| StepError::call("fallocate", &open.path, error))
    }

    pub(super) fn write(&mut self, slot: Slot, offset: Option<u64>, length: u64) -> Result<(), StepError> {
        let bytes = self.block.fresh(length, &mut self.content)?;
        let open = self.files.at(slot)?;
        let (file, mut appended) = (&open.file, &*open.file);
        let wrote = self.measures.time("write", length, || match offset {
            Some(offset) => file.write_all_at(bytes, offset),
            None => appended.write_all(bytes),
        });
        wrote.map_err(|error| StepError::call("write", &open.path, error))
    }

    pub(super) fn read(&mut self, slot: Slot, offset: u64, length: u64, keep: bool) -> Result<u64, StepError> {
        let buffer = match keep {
            true => self.anon.grow(usize::try_from(length).unwrap_or(usize::MAX)).map(Anonymous::as_mut_slice)?,
            false => self.buffer.first(length)?,
        };
        let open = self.files.at(slot)?;
        let at = now();
        let got = open.file.read_at(buffer, offset).map_err(|error| StepError::call("read", &open.path, error))?;
        let got = u64::try_from(got).unwrap_or(0);
        self.measures.took("read", at, until(at, now()), got);
        Ok(got)
    }

    /// Maps a file, extending it to the size.
    pub(super) fn map(&mut self, slot: Slot, size: u64) -> Result<(), StepError> {
        let length = self.length(slot)?;
        let open = self.files.at(slot)?;
        if length < size {
            open.file.set_len(size).map_err(|error| StepError::call("truncate", &open.path, error))?;
        }
        let len = usize::try_from(size).unwrap_or(usize::MAX);
        let mapping = Shared::of(&open.file, len).map_err(|error| StepError::call("mmap", &open.path, error))?;
        open.mapping = Some(mapping);
        Ok(())
    }

    /// Stores somewhere within a page.
    pub(super) fn store(&mut self, slot: Slot, page: u64, length: u64) -> Result<(), StepError> {
        let page_size = page_size() as u64;
        let length = length.min(page_size);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        self.content.fill(&mut bytes);
        let within = self.content.below(page_size - length + 1);
        let offset = page.saturating_mul(page_size).saturating_add(within);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let open = self.files.at(slot)?;
        let outside = || StepError::Senseless(format!("a store at {offset} of {}", open.path));
        let Some(mapping) = open.mapping.as_mut() else { return Err(outside()) };
        self.measures.time("mmap_store", length, || match mapping.store(offset, &bytes) {
            true => Ok(()),
            false => Err(outside()),
        })
    }

    pub(super) fn make_durable(&mut self, call: SyncCall, target: &Target<'_>) -> Result<(), StepError> {
        let name = match call {
            SyncCall::Fsync => "fsync",
            SyncCall::Fdatasync => "fdatasync",
            SyncCall::Msync => "msync",
            SyncCall::SyncFileRange => "sync_file_range",
        };
        let opened;
        let (file, mapping, path) = match target {
            Target::Open(slot) => {
                let open = self.files.at(*slot)?;
                (&*open.file, open.mapping.as_ref(), open.path.as_str())
            }
            Target::Path(path) => {
                opened = std::fs::File::open(path).map_err(|error| StepError::call("open", path, error))?;
                (&opened, None, *path)
            }
        };
        let done = self.measures.time(name, 0, || match (call, mapping) {
            (SyncCall::Msync, Some(mapping)) => mapping.sync(),
            (SyncCall::Fsync, _) => file.sync_all(),
            (SyncCall::SyncFileRange, _) => start_writing(file),
            (SyncCall::Fdatasync | SyncCall::Msync, _) => file.sync_data(),
        });
        done.map_err(|error| StepError::call(name, path, error))
    }

    pub(super) fn close(&mut self, slots: &[Slot]) -> Result<(), StepError> {
        let open: Vec<_> = slots.iter().filter_map(|slot| self.files.take(*slot)).collect();
        self.measures.time("close", 0, || {
            drop(open);
            Ok(())
        })
    }

    pub(super) fn create_file(&mut self, path: &str, step: &CreateFiles) -> Result<(), StepError> {
        let size = step.size.bytes();
        files::parents(path)?;
        let bytes = self.block.fresh(size, &mut self.content)?;
        let at = now();
        let created = self.measures.time("create", 0, || std::fs::File::create(path));
        let mut file = created.map_err(|error| StepError::call("create", path, error))?;
        if size > 0 {
            let wrote = self.measures.time("write", size, || file.write_all(bytes));
            wrote.map_err(|error| StepError::call("write", path, error))?;
        }
        if step.fsync {
            let synced = self.measures.time("fsync", 0, || file.sync_all());
            synced.map_err(|error| StepError::call("fsync", path, error))?;
        }
        self.measures.time("close", 0, || -> Result<(), StepError> {
            drop(file);
            Ok(())
        })?;
        self.measures.took("create_files", at, until(at, now()), size);
        Ok(())
    }
}
