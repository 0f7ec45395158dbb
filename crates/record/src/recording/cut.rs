// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors and cuts of a decoder: recordings that cannot be read at all, and missing stretches of one.

use super::FORMAT;
use super::frame::PREAMBLE;
use super::limits::Limit;
use crate::sample::SampleTime;
use std::fmt;
use std::io;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The reader failed.
    #[error("cannot read the recording: {0}")]
    Read(#[from] io::Error),
    /// It is empty.
    #[error("the recording is empty")]
    Empty,
    /// It does not begin with the magic bytes of a recording.
    #[error("not a recording (.flr)")]
    NotARecording,
    /// Its format is newer than this program.
    #[error("the recording has format {major}.{minor}; this program reads formats up to {}: use floodline {written_by} or later", FORMAT.0)]
    NewerFormat {
        /// First number of its format.
        major: u16,
        /// Second number of its format.
        minor: u16,
        /// Version of the program that wrote it.
        written_by: String,
    },
    /// It ends before the first frame with a header does.
    #[error("the recording ends before its header is complete")]
    NoHeader,
    /// Bytes changed after they were written, in its first 32.
    #[error("the start of the recording is damaged (its first {PREAMBLE} bytes)")]
    DamagedStart,
    /// Its content exceeds the limits for its length: no recorder wrote it.
    #[error("the recording exceeds a limit: {0}")]
    TooMuch(#[from] Limit),
    /// Bytes changed after they were written, in its only header or in all of them.
    #[error("the header of the recording is damaged; the rest cannot be read without it")]
    DamagedHeader,
}

/// Why a stretch of recording is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The file ends in the middle of a frame: the writer was killed, or the copy is not complete.
    Truncated,
    /// Checksums are wrong: bytes changed after they were written.
    Damaged,
    /// Checksums are right but the content does not follow the format.
    Malformed,
    /// Nothing is missing, but the writer never closed the recording.
    NotClosed,
    /// More bytes follow the mark that the recording is whole.
    AfterEnd,
}

/// A stretch that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Why.
    pub why: Why,
    /// Bytes that were not used.
    pub bytes: u64,
    /// Samples missing; `None` at the end of the file, where it cannot be known.
    pub samples: Option<u64>,
    /// Time of the last sample before it; `None` at the start.
    pub after: Option<SampleTime>,
    /// Time of the first sample after it; `None` at the end.
    pub before: Option<SampleTime>,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        match self.why {
            Why::Truncated => write!(f, "the recording ends within a frame: its last {bytes} bytes were dropped")?,
            Why::Damaged => write!(f, "the recording is damaged: {bytes} bytes were dropped")?,
            Why::Malformed => write!(f, "the recording is malformed: {bytes} bytes were dropped")?,
            Why::NotClosed => {
                return f.write_str("the recorder was stopped before it closed the recording; every sample is there");
            }
            Why::AfterEnd => {
                return write!(f, "{bytes} bytes after the end of the recording were not read: a file holds one");
            }
        }
        match self.samples {
            None | Some(0) => Ok(()),
            Some(1) => f.write_str(", and 1 sample with them"),
            Some(samples) => write!(f, ", and {samples} samples with them"),
        }
    }
}
