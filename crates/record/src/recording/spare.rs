// SPDX-License-Identifier: MIT OR Apache-2.0
//! Working memory of a decoder that has ended, kept for the next one of the same thread. Without it, a program
//! that opens thousands of small recordings spends much of its time on allocating this memory.

use super::MAX_CONTENT;
use std::cell::Cell;
use std::io;
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
}

impl Spare {
    /// Takes the memory of an earlier decoder, or makes new memory.
    pub(super) fn take() -> io::Result<Spare> {
        match SPARE.take() {
            Some(spare) => Ok(spare),
            None => Ok(Spare { zstd: decompressor()?, content: Vec::new(), read: Vec::new() }),
        }
    }

    /// Keeps the memory for the next decoder, without large buffers.
    pub(super) fn keep(mut self) {
        for buffer in [&mut self.content, &mut self.read] {
            if buffer.capacity() > KEPT_MAX {
                *buffer = Vec::new();
            }
        }
        SPARE.set(Some(self));
    }
}

/// Makes a decompressor with a limit on the window memory that a frame may request.
fn decompressor() -> io::Result<Decoder<'static>> {
    let mut zstd = Decoder::new()?;
    zstd.set_parameter(DParameter::WindowLogMax(MAX_CONTENT.ilog2()))?;
    Ok(zstd)
}
