// SPDX-License-Identifier: MIT OR Apache-2.0
//! The word that somebody meant who mistyped one, for the hint beside an error. Not a search: what differs by
//! more than a third of its letters was not meant.

/// Longer words are no typing errors, and comparing them takes the square of their length.
const LENGTH_MAX: usize = 64;

/// The known word that differs least, if it differs little. Case does not count, nor whether parts of a word are
/// joined by `-`, `_`, `.` or a space.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LENGTH_MAX {
        return None;
    }
    let normal = |text: &str| text.replace(['-', ' ', '.'], "_").to_lowercase();
    let word = normal(word);
    known
        .into_iter()
        .map(|candidate| (distance(&word, &normal(candidate)), candidate))
        .filter(|(distance, candidate)| *distance * 3 <= candidate.len().max(word.len()))
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many characters must be inserted, deleted or replaced (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_differ_are_counted() {
        let check = |one: &str, other: &str, expect: usize| {
            assert_eq!((distance(one, other), distance(other, one)), (expect, expect), "{one} {other}");
        };
        check("", "abc", 3);
        check("abc", "abc", 0);
        check("dirty-clif", "dirty-cliff", 1);
        check("kitten", "sitting", 3);
    }

    #[test]
    fn the_word_that_was_meant_is_found() {
        let check = |word: &str, expect| assert_eq!(nearest(word, ["vm.dirty_bytes", "vm.dirty_ratio"]), expect);
        check("vm.dirty_byte", Some("vm.dirty_bytes"));
        check("VM.Dirty-Ratio", Some("vm.dirty_ratio"));
        check("vm.nope", None);
        check(&"vm.dirty_bytes".repeat(9), None);
    }
}
