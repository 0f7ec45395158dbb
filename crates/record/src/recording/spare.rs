// SPDX-License-Identifier: MIT OR Apache-2.0
//! Working memory of a decoder that has ended, kept for the next one of the same thread. Without it, a program
//! that opens thousands of small recordings spends much of its time on allocating this memory.

use super::MAX_CONTENT;
use super::schema::Mapping;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use zstd::stream::raw::{DParameter, Decoder};

/// Largest buffer that is kept, bytes.
const KEPT_MAX: usize = 1 << 20;

thread_local! {
    static SPARE: Cell<Option<Spare>> = const { Cell::new(None) };
}

/// Working memory of a decoder.
pub(super) struct Spare {
    pub(super) zstd: Decoder<'static>,
    /// Buffer for decompressed content.
    pub(super) content: Vec<u8>,
    /// Buffer for bytes read.
    pub(super) read: Vec<u8>,
    /// The last header. Recordings of one program have equal ones, which are long.
    pub(super) header: Option<KnownHeader>,
}

/// A header that was read before.
#[derive(Clone)]
pub(super) struct KnownHeader {
    /// Payload of its frame.
    payload: Arc<[u8]>,
    /// The header as JSON.
    pub(super) json: Arc<[u8]>,
    pub(super) mapping: Arc<Mapping>,
}

impl KnownHeader {
    pub(super) fn new(payload: &[u8], json: &[u8], mapping: Mapping) -> KnownHeader {
        KnownHeader { payload: payload.into(), json: json.into(), mapping: Arc::new(mapping) }
    }

    /// Returns whether the payload of a frame is this header.
    pub(super) fn is(&self, payload: &[u8]) -> bool {
        *self.payload == *payload
    }
}

impl Spare {
    /// Takes the memory of an earlier decoder, or makes new memory.
    pub(super) fn take() -> io::Result<Spare> {
        match SPARE.take() {
            Some(spare) => Ok(spare),
            None => Ok(Spare { zstd: decompressor()?, content: Vec::new(), read: Vec::new(), header: None }),
        }
    }

    /// Keeps the memory for the next decoder, without large buffers.
    pub(super) fn keep(mut self) {
        for buffer in [&mut self.content, &mut self.read] {
            if buffer.capacity() > KEPT_MAX {
                *buffer = Vec::new();
            }
        }
        self.header = self.header.filter(|header| header.payload.len() + header.json.len() <= KEPT_MAX);
        SPARE.set(Some(self));
    }
}

/// Makes a decompressor with a limit on the window memory that a frame may request.
fn decompressor() -> io::Result<Decoder<'static>> {
    let mut zstd = Decoder::new()?;
    zstd.set_parameter(DParameter::WindowLogMax(MAX_CONTENT.ilog2()))?;
    Ok(zstd)
}
