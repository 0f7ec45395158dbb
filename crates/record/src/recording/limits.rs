// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much a file may make its reader do. A few bytes of a compressed file can stand for any number of rows that do not
//! change, so what is read is counted against the length of the file. The recorder stays far below every limit: a row
//! that is new, and an entity, cost it bytes.

use super::wire::Malformed;
use crate::gap::Source;

/// A bound that a recording exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Rows × columns of one sample.
    #[error("a sample of {cells} readings, the limit is {max}", max = SAMPLE_CELLS_MAX)]
    Sample {
        /// Rows × columns over all tables.
        cells: u64,
    },
    /// Rows × columns of all samples.
    #[error("{cells} readings in {bytes} bytes of file, the limit for these is {max}", max = cells_max(*.bytes))]
    Cells {
        /// Rows × columns over all samples.
        cells: u64,
        /// Length of the file up to here.
        bytes: u64,
    },
    /// Rows × columns of entities that come for the first time.
    #[error("{cells} readings of different entities in {bytes} bytes of file, the limit for these is {max}", max = new_cells_max(*.bytes))]
    Entities {
        /// Rows × columns over the entities.
        cells: u64,
        /// Length of the file up to here.
        bytes: u64,
    },
    /// Bytes of content before compression.
    #[error("{content} bytes of content in {bytes} bytes of file, the limit for these is {max}", max = content_max(*.bytes))]
    Content {
        /// Bytes that came out of the decompressor.
        content: u64,
        /// Length of the file up to here.
        bytes: u64,
    },
    /// Things of a machine that has no more of them.
    #[error("{count} entries of {from}, the limit is {max}")]
    Facts {
        /// Where they are listed.
        from: Source,
        /// How many.
        count: usize,
        /// The most there may be.
        max: usize,
    },
}

/// Most rows × columns of one sample: half a million processes.
pub(super) const SAMPLE_CELLS_MAX: u64 = 1 << 23;

/// Most block devices of a machine.
const DEVICES_MAX: usize = 1 << 14;

/// Most mounts of a machine. The kernel's own limit is 100,000 in a mount namespace (`fs.mount-max`).
const MOUNTS_MAX: usize = 1 << 17;

fn cells_max(bytes: u64) -> u64 {
    bytes.saturating_mul(4096).saturating_add(1 << 25)
}

fn new_cells_max(bytes: u64) -> u64 {
    bytes.saturating_mul(32).saturating_add(1 << 20)
}

fn content_max(bytes: u64) -> u64 {
    bytes.saturating_mul(64).saturating_add(1 << 22)
}

/// What was read so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// Length of the file.
    bytes: u64,
    content: u64,
    cells: u64,
    new_cells: u64,
    /// Rows × columns of the sample in hand.
    sample: u64,
}

impl Spent {
    /// Bytes of the file were read.
    pub(super) fn read(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// How many bytes may still come out of the decompressor.
    pub(super) fn content_left(&self) -> u64 {
        content_max(self.bytes).saturating_sub(self.content)
    }

    /// Content came out of the decompressor.
    pub(super) fn unpacked(&mut self, content: u64) -> Result<(), Limit> {
        self.content = self.content.saturating_add(content);
        let (content, bytes) = (self.content, self.bytes);
        if content > content_max(bytes) { Err(Limit::Content { content, bytes }) } else { Ok(()) }
    }

    /// A sample begins.
    pub(super) fn begin_sample(&mut self) {
        self.sample = 0;
    }

    /// Counts a table of the sample before its rows are made. `new` of the `rows` are of entities that the table did not
    /// have before.
    pub(super) fn rows(&mut self, rows: usize, new: usize, columns: usize) -> Result<(), Limit> {
        let cells = |rows: usize| (rows as u64).saturating_mul(columns as u64);
        self.sample = self.sample.saturating_add(cells(rows));
        self.cells = self.cells.saturating_add(cells(rows));
        self.new_cells = self.new_cells.saturating_add(cells(new));
        let bytes = self.bytes;
        if self.sample > SAMPLE_CELLS_MAX {
            return Err(Limit::Sample { cells: self.sample });
        }
        if self.new_cells > new_cells_max(bytes) {
            return Err(Limit::Entities { cells: self.new_cells, bytes });
        }
        if self.cells > cells_max(bytes) {
            return Err(Limit::Cells { cells: self.cells, bytes });
        }
        Ok(())
    }
}

/// Whether a machine can have so many devices and mounts.
pub(super) fn check_facts(facts: &crate::facts::HostFacts) -> Result<(), Limit> {
    let check = |from, count, max| if count > max { Err(Limit::Facts { from, count, max }) } else { Ok(()) };
    check(Source::SysBlock, facts.devices.len(), DEVICES_MAX)?;
    check(Source::Mountinfo, facts.mounts.len(), MOUNTS_MAX)
}

/// Why a part of a frame was not used: this part alone, or the whole recording.
pub(super) enum Stop {
    Malformed,
    TooMuch(Limit),
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Stop {
        Stop::Malformed
    }
}

impl From<Limit> for Stop {
    fn from(limit: Limit) -> Stop {
        Stop::TooMuch(limit)
    }
}
