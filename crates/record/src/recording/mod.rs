// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file format of recordings, `.flr`: append-only, compressed, self-describing, readable after the
//! writer was killed at any byte. [`Encoder`] and [`Decoder`] work on any stream; files and the
//! question when to look at the machine belong to others.
//!
//! A file is a fixed preamble (magic, format version, version of the writer) and frames (`frame`),
//! each with its own checksums:
//!
//! | frame | payload, zstd |
//! | --- | --- |
//! | header | [`Header`] as JSON: every table and column with name, unit, kind, source and meaning |
//! | records | frame and sample number, facts, entities, events and gaps as JSON (`item`), then at most one sample by columns (`table`, `column`), told against the sample before |
//! | directory | facts and live entities once more |
//! | end | nothing: the writer closed the recording |
//!
//! Every 64th sample stands alone, with the header and the directory repeated before it, so a damaged
//! frame costs at most the stretch to there. A sample is one write.

#[cfg(test)]
mod append_tests;
mod cells;
mod column;
mod columns;
mod cut;
mod decode;
#[cfg(test)]
mod edge_tests;
mod encode;
mod frame;
mod item;
#[cfg(test)]
mod lend_tests;
mod limits;
mod plain;
mod rewrite;
mod schema;
mod spare;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod wire;

pub use cut::{Cut, DecodeError, Why};
pub use decode::{Decoder, Unused};
pub use encode::{EncodeError, Encoder};
pub use limits::Limit;
pub use rewrite::{Piece, rewrite};

pub use schema::{ColumnSchema, Differences, Header, TableSchema};

/// Format that is written. A reader refuses a file with a larger first number, and reads every file
/// with a smaller or equal one; the second number grows with additions that a reader may pass over.
pub const FORMAT: (u16, u16) = (1, 0);

/// Samples from one that stands alone to the next.
const KEYFRAME_EVERY: u64 = 64;

/// Longest content of a frame before compression, bytes.
const MAX_CONTENT: usize = 32 << 20;
