// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a recording comes from: a file that stays open, or bytes. Every question reads it anew from the start.

use crate::failure::Failure;
use crate::watch::Control;
use floodline_record::name::Name;
use floodline_record::record::{Record, Sink};
use floodline_record::recording::{DecodeError, Decoder, Why};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to type when there is nothing to read.
const HOW_TO_RECORD: &str = "make a recording with: floodline record --for 1m -o FILE.flr";
/// What to do when bytes have changed since they were written.
const COPY_AGAIN: &str = "copy the file again from the host where it was recorded, in binary mode";

/// A recording that can be read again and again.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    content: Content,
    /// Escaped.
    pub(crate) name: String,
}

#[derive(Clone, Debug)]
enum Content {
    Bytes(Arc<PyBackedBytes>),
    Made(Arc<Vec<u8>>),
    File(Arc<File>),
}

/// Reads a file from its start, whatever others read of it.
struct At {
    file: Arc<File>,
    at: u64,
}

impl Read for At {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(into, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

struct Bytes<T> {
    bytes: T,
    at: usize,
}

impl<T: AsRef<[u8]>> Read for Bytes<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.bytes.as_ref().get(self.at..).unwrap_or_default();
        let length = rest.read(into)?;
        self.at += length;
        Ok(length)
    }
}

struct Backed(Arc<PyBackedBytes>);

impl AsRef<[u8]> for Backed {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A path as it is shown: its bytes may be anything.
pub(crate) fn shown(path: &Path) -> String {
    Name::new(path.as_os_str().as_bytes()).to_string()
}

impl Source {
    /// What Python gives: `bytes`, `bytearray`, `str` or a path.
    pub(crate) fn of(source: &Bound<'_, PyAny>) -> PyResult<Source> {
        if let Ok(bytes) = source.extract::<PyBackedBytes>() {
            let name = format!("{} bytes", bytes.len());
            return Ok(Source { content: Content::Bytes(Arc::new(bytes)), name });
        }
        let path: PathBuf = source.extract().map_err(|_| {
            let kind = source.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!("a recording is a path or bytes, not {kind}"))
        })?;
        Ok(source.py().detach(|| Source::open(&path))?)
    }

    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Source, Failure> {
        Source::file(path).map_err(|error| {
            let failure = Failure::new(format!("cannot open {}: {error}", shown(path)));
            match error.kind() {
                io::ErrorKind::Unsupported => {
                    failure.hint("read its bytes first: floodline.Recording(open(PATH, \"rb\").read())")
                }
                _ => failure.hint(HOW_TO_RECORD),
            }
        })
    }

    /// Opens a file, and nothing that could block or be used up by reading.
    pub(crate) fn file(path: &Path) -> io::Result<Source> {
        if !path.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "it is not a file"));
        }
        let file = File::open(path)?;
        Ok(Source { content: Content::File(Arc::new(file)), name: shown(path) })
    }

    /// Takes bytes that were made here.
    pub(crate) fn made(bytes: Vec<u8>, name: String) -> Source {
        Source { content: Content::Made(Arc::new(bytes)), name }
    }

    /// Reads from the start.
    pub(crate) fn reader(&self) -> Box<dyn Read + Send> {
        match &self.content {
            Content::Bytes(bytes) => Box::new(Bytes { bytes: Backed(bytes.clone()), at: 0 }),
            Content::Made(bytes) => Box::new(Bytes { bytes: Shared(bytes.clone()), at: 0 }),
            Content::File(file) => Box::new(BufReader::with_capacity(1 << 16, At { file: Arc::clone(file), at: 0 })),
        }
    }

    /// The whole recording as it is stored.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let read = self.reader().read_to_end(&mut bytes);
        read.map_err(|error| Failure::new(format!("cannot read {}: {error}", self.name)))?;
        Ok(bytes)
    }

    /// Begins to read.
    pub(crate) fn decoder(&self) -> Result<Decoder<Box<dyn Read + Send>>, Failure> {
        Decoder::new(self.reader()).map_err(|error| {
            let failure = Failure::new(format!("{}: {error}", self.name));
            match error {
                // The message says which version reads it.
                DecodeError::NewerFormat { .. } => failure,
                DecodeError::DamagedStart | DecodeError::DamagedHeader => failure.hint(COPY_AGAIN).hint(HOW_TO_RECORD),
                _ => failure.hint(HOW_TO_RECORD),
            }
        })
    }

    /// Hands on every record until `take` answers false. Returns what was damaged or unknown, one sentence each.
    pub(crate) fn each(
        &self,
        control: &Control,
        mut take: impl FnMut(Record) -> Result<bool, Failure>,
    ) -> Result<Vec<String>, Failure> {
        let mut decoder = self.decoder()?;
        for record in decoder.by_ref() {
            control.check()?;
            let record = record.map_err(|error| Failure::new(format!("{}: {error}", self.name)))?;
            if !take(record)? {
                break;
            }
        }
        let mut missing: Vec<String> =
            decoder.cuts().iter().filter(|cut| cut.why != Why::NotClosed).map(ToString::to_string).collect();
        if decoder.unknown_records() > 0 {
            let count = decoder.unknown_records();
            missing.push(format!("skipped {count} records of kinds that only a newer version supports"));
        }
        Ok(missing)
    }

    /// Folds the whole recording. `samples` counts the samples of what it became: without one there is nothing to say.
    pub(crate) fn folded<S: Sink<Error = Infallible>>(
        &self,
        control: &Control,
        mut folded: S,
        samples: impl Fn(&S) -> u64,
    ) -> Result<S, Failure> {
        self.each(control, |record| {
            let Ok(()) = folded.record(&record);
            Ok(true)
        })?;
        match samples(&folded) {
            0 => Err(self.no_sample()),
            _ => Ok(folded),
        }
    }

    /// A recording without a sample cannot answer anything.
    pub(crate) fn no_sample(&self) -> Failure {
        Failure::new(format!("{} contains no complete sample; nothing to diagnose", self.name)).hint(HOW_TO_RECORD)
    }
}
