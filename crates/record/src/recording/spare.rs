// SPDX-License-Identifier: MIT OR Apache-2.0
//! Working memory of a decoder that has ended, kept for the next one of the same thread. Who opens thousands of small
//! recordings would otherwise spend a good part of the time on it.

use super::MAX_CONTENT;
use std::cell::Cell;
use std::io;
use zstd::stream::raw::{DParameter, Decoder};

/// Largest buffer that is kept, bytes.
const KEPT_MAX: usize = 1 << 20;

thread_local! {
    static SPARE: Cell<Option<Spare>> = const { Cell::new(None) };
}

/// What a decoder works with.
pub(super) struct Spare {
    pub(super) zstd: Decoder<'static>,
    /// Room for what comes out of the decompressor.
    pub(super) content: Vec<u8>,
    /// Room for what is read.
    pub(super) read: Vec<u8>,
}

impl Spare {
    /// That of an earlier decoder, or a new one.
    pub(super) fn take() -> io::Result<Spare> {
        match SPARE.take() {
            Some(spare) => Ok(spare),
            None => Ok(Spare { zstd: decompressor()?, content: Vec::new(), read: Vec::new() }),
        }
    }

    /// Keeps it for the next decoder, without what is large.
    pub(super) fn keep(mut self) {
        for buffer in [&mut self.content, &mut self.read] {
            if buffer.capacity() > KEPT_MAX {
                *buffer = Vec::new();
            }
        }
        SPARE.set(Some(self));
    }
}

/// A frame says how much memory its window wants; this is how much it gets at most.
fn decompressor() -> io::Result<Decoder<'static>> {
    let mut zstd = Decoder::new()?;
    zstd.set_parameter(DParameter::WindowLogMax(MAX_CONTENT.ilog2()))?;
    Ok(zstd)
}
