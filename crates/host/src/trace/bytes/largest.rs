// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of one interval by file: the largest with the names of their files, the rest added up without them.

use super::super::layout::{CancelledKey, DirtiedKey, FileKey, QueuedKey};
use super::{NAMED, Paths};
use floodline_record::traced::File;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Key of a row.
pub(super) trait ByFile: Copy + Ord {
    /// Returns the file; its number is 0 for all files without a row of their own.
    fn file(self) -> FileKey;

    /// Returns the key for all files together.
    fn without_file(self) -> Self;
}

macro_rules! have_files {
    ($($key:ty)*) => {$(
        impl ByFile for $key {
            fn file(self) -> FileKey {
                FileKey { ino: self.ino, dev: self.dev, generation: self.generation }
            }

            fn without_file(self) -> $key {
                Self { ino: 0, generation: 0, ..self }
            }
        }
    )*};
}
have_files!(CancelledKey DirtiedKey QueuedKey);

/// Amount of a row.
pub(super) trait Amount {
    /// Returns the size, by which the largest rows are chosen.
    fn size(&self) -> u64;

    /// Adds the amount of another file.
    fn add(&mut self, other: Self);
}

/// Passes on the rows, those with a file first.
pub(super) fn tell<K: ByFile, S: Amount>(
    mut rows: Vec<(K, S)>,
    paths: &Paths<'_>,
    mut each: impl FnMut(K, S, Option<File>),
) {
    rows.sort_by_key(|(key, sum)| (Reverse(sum.size()), *key));
    let mut rest: BTreeMap<K, S> = BTreeMap::new();
    for (at, (key, sum)) in rows.into_iter().enumerate() {
        let file = key.file();
        if at < NAMED && file.ino != 0 {
            each(key, sum, Some(paths.file(file)));
            continue;
        }
        match rest.entry(key.without_file()) {
            Entry::Vacant(free) => {
                free.insert(sum);
            }
            Entry::Occupied(mut known) => known.get_mut().add(sum),
        }
    }
    rest.into_iter().for_each(|(key, sum)| each(key, sum, None));
}
