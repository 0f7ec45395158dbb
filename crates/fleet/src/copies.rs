// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte-identical copies of a recording under other names. Each counts as a host if the recording does not name its host, so that the
//! counts of a fleet would be wrong without a word.

use crate::Row;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};

/// Bytes that are compared at once.
const PART: usize = 1 << 16;

/// Notes on each row whose file is a copy of an earlier one that counts, too. Returns how many there are.
pub fn note_copies(rows: &mut [Row]) -> usize {
    let mut alike: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.samples > 0 && !row.superseded) {
        let key = (row.recorded_wall_ns, row.samples, row.seconds.to_bits(), row.demand_bytes, row.kernel_now.clone());
        alike.entry(key).or_default().push(at);
    }
    let mut copies = Vec::new();
    for same in alike.into_values().filter(|same| same.len() > 1) {
        let mut originals: Vec<usize> = Vec::new();
        for at in same {
            let is_equal = |one: &&usize| match (rows.get(**one), rows.get(at)) {
                (Some(one), Some(row)) => are_equal(&one.file, &row.file).unwrap_or(false),
                _ => false,
            };
            match originals.iter().find(is_equal) {
                Some(original) => copies.push((at, *original)),
                None => originals.push(at),
            }
        }
    }
    for (at, original) in &copies {
        let name = rows.get(*original).map(|row| row.file.clone()).unwrap_or_default();
        if let Some(row) = rows.get_mut(*at) {
            row.notes.push(format!("This file is a byte-identical copy of {name}. Each of them counts as a host."));
        }
    }
    copies.len()
}

/// Whether two files have the same bytes.
fn are_equal(one: &str, other: &str) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::with_capacity(PART, one), BufReader::with_capacity(PART, other));
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        one.by_ref().take(PART as u64).read_to_end(&mut left)?;
        other.by_ref().take(PART as u64).read_to_end(&mut right)?;
        if left != right || left.is_empty() {
            return Ok(left == right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_under_another_name_is_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        let row = |name: &str, bytes: &[u8], samples: u64| {
            let file = folder.path().join(name);
            std::fs::write(&file, bytes).expect("a file");
            let mut row = Row::default();
            row.file = file.to_string_lossy().into_owned();
            row.samples = samples;
            row
        };
        let long = vec![7; 3 * PART];
        let mut other = long.clone();
        other[2 * PART] = 8;
        let mut rows = [row("a", &long, 9), row("b", &other, 9), row("c", &long, 9), row("d", &long, 8)];
        rows[3].superseded = true;
        assert_eq!(note_copies(&mut rows), 1);
        let noted: Vec<usize> = rows.iter().map(|row| row.notes.len()).collect();
        assert_eq!(noted, [0, 0, 1, 0]);
        assert!(rows[2].notes[0].contains("copy of ") && rows[2].notes[0].contains("/a. Each"), "{:?}", rows[2].notes);
    }
}
