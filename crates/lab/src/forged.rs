// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs of fuzz targets that are built as the format demands and then changed in a few places. Random bytes alone never
//! come past a magic number and a table of lengths.

use std::sync::atomic::{AtomicU64, Ordering};

/// Changes of one byte each: where, and to what.
pub(crate) type Changes = Vec<(u16, u8)>;

/// Applies no change to one input of four, up to three changes to the others. Returns whether the bytes differ.
pub(crate) fn change(bytes: &mut [u8], changes: &Changes) -> bool {
    let before = bytes.to_vec();
    for (at, to) in changes.iter().take(changes.len() % 4) {
        let at = usize::from(*at) % bytes.len().max(1);
        bytes.get_mut(at).into_iter().for_each(|byte| *byte = *to);
    }
    bytes != before
}

/// Counts how far the inputs of a target come.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    inputs: AtomicU64,
    accepted: AtomicU64,
}

impl Depth {
    /// Counts one input, and whether the reader took it for what it looks like.
    pub(crate) fn count(&self, is_accepted: bool) {
        self.inputs.fetch_add(1, Ordering::Relaxed);
        self.accepted.fetch_add(u64::from(is_accepted), Ordering::Relaxed);
    }

    /// Fails when fewer than one input of four was accepted: then the target tests nothing but the first check.
    pub(crate) fn check(&self) {
        let (inputs, accepted) = (self.inputs.load(Ordering::Relaxed), self.accepted.load(Ordering::Relaxed));
        assert!(accepted > 0 && accepted >= inputs / 4, "{accepted} of {inputs} inputs were accepted");
    }
}
