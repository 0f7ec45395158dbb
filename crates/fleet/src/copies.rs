// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte-identical copies of a recording under other names. Each counts as a host if the recording does not name its host, so that the
//! counts of a fleet would be wrong without a word. Opens no file.

use crate::Row;
use std::collections::BTreeMap;

/// Notes on each row whose file is a copy of an earlier one that counts, too. `are_equal` compares the bytes of two files, and is asked
/// only for recordings that agree in what their rows have. Returns how many copies there are.
pub fn note_copies(rows: &mut [Row], are_equal: impl Fn(&str, &str) -> bool) -> usize {
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
                (Some(one), Some(row)) => are_equal(&one.file, &row.file),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_under_another_name_is_noted() {
        let row = |name: &str, samples| Row { file: name.to_owned(), samples, ..Row::default() };
        let mut rows = [row("a", 9), row("b", 9), row("c", 9), row("d", 9), row("e", 8)];
        rows[3].superseded = true;
        let is_same = |one: &str, other: &str| [one, other].iter().all(|name| "acde".contains(name));
        assert_eq!(note_copies(&mut rows, is_same), 1);
        let noted: Vec<usize> = rows.iter().map(|row| row.notes.len()).collect();
        assert_eq!(noted, [0, 0, 1, 0, 0]);
        assert!(rows[2].notes[0].contains("copy of a. Each"), "{:?}", rows[2].notes);
    }
}
