// SPDX-License-Identifier: MIT OR Apache-2.0
//! The known word that is closest to a mistyped one, for the hint beside an error. Not a search: a word that differs by
//! more than a third of its letters is no candidate.

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
        .map(|candidate| (strsim::levenshtein(&word, &normal(candidate)), candidate))
        .filter(|(distance, candidate)| *distance * 3 <= candidate.len().max(word.len()))
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant_is_found() {
        let check = |word: &str, expect| assert_eq!(nearest(word, ["vm.dirty_bytes", "vm.dirty_ratio"]), expect);
        check("vm.dirty_byte", Some("vm.dirty_bytes"));
        check("VM.Dirty-Ratio", Some("vm.dirty_ratio"));
        check("vm.nope", None);
        check(&"vm.dirty_bytes".repeat(9), None);
    }
}
