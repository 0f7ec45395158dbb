// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines, words and numbers, shared by all parsers. A last line without its newline was cut off and its numbers may
//! lack digits, so it is skipped.

use super::{Flaw, Parsed};
use floodline_record::units::Quantity;

/// Result of a parser: whether it found a known line, and the first flaw.
#[derive(Default)]
pub(super) struct Notes {
    flaw: Option<Flaw>,
    known: bool,
}

impl Notes {
    /// Returns the complete lines of a text. A line that was cut off is a flaw.
    pub(super) fn lines<'a>(&mut self, text: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let end = text.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let (complete, cut) = text.split_at(end);
        if !cut.is_empty() {
            self.flaw("a newline at the end");
        }
        Lines { rest: complete }
    }

    /// Keeps the first flaw.
    pub(super) fn flaw(&mut self, expected: &'static str) {
        self.flaw.get_or_insert(Flaw(expected));
    }

    /// Sets a field from a number times `scale`, or to `None` if the number is invalid or does not fit.
    pub(super) fn set<Q: Quantity>(&mut self, field: &mut Option<Q>, digits: &[u8], scale: u64) {
        self.known = true;
        let value = number(digits).and_then(|value| value.checked_mul(scale));
        if value.is_none() {
            self.flaw(wanted(digits));
        }
        *field = value.map(Q::from_raw);
    }

    /// Adds a number times `scale` to the sum of earlier lines. An invalid part makes the sum unknown.
    pub(super) fn add(&mut self, sum: &mut Sum, digits: &[u8], scale: u64) {
        self.known = true;
        let value = number(digits).and_then(|value| value.checked_mul(scale));
        *sum = match (*sum, value) {
            (Sum::None, Some(value)) => Sum::Of(value),
            (Sum::Of(sum), Some(value)) => sum.checked_add(value).map_or(Sum::Unknown, Sum::Of),
            _ => Sum::Unknown,
        };
        if *sum == Sum::Unknown {
            self.flaw(wanted(digits));
        }
    }

    /// Returns the result for files that always have at least one known line.
    pub(super) fn finish(self) -> Parsed {
        match self.flaw {
            Some(flaw) => Err(flaw),
            None if self.known => Ok(()),
            None => Err(Flaw("at least one known line")),
        }
    }

    /// Returns the result for files that may be empty.
    pub(super) fn finish_maybe_empty(self) -> Parsed {
        self.flaw.map_or(Ok(()), Err)
    }
}

/// A sum over lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sum {
    /// No line yet.
    #[default]
    None,
    /// Sum of the lines up to now.
    Of(u64),
    /// One of the parts was not a number, or the sum does not fit.
    Unknown,
}

impl Sum {
    pub(super) fn value<Q: Quantity>(self) -> Option<Q> {
        if let Sum::Of(value) = self { Some(Q::from_raw(value)) } else { None }
    }
}

struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|&b| b == b'\n').unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        Some(line)
    }
}

/// Describes the expected text in place of one that [`number`] refused: a negative or too large number is a wrong
/// counter, anything else is garbage.
pub(super) fn wanted(digits: &[u8]) -> &'static str {
    let digits = digits.trim_ascii();
    let digits = digits.strip_prefix(b"-").unwrap_or(digits);
    match digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        true => "a number",
        false => "a number that fits 64 bits",
    }
}

/// Parses a decimal number that fits 64 bits. Allows only spaces around it.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let digits = digits.trim_ascii();
    let mut value = 0_u64;
    // Up to 19 digits always fit: that is the case of nearly every number.
    if matches!(digits.len(), 1..=19) {
        for &byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        return Some(value);
    }
    if digits.is_empty() {
        return None;
    }
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Parses a hexadecimal number, with or without `0x`.
pub(super) fn hex(digits: &[u8]) -> Option<u64> {
    let digits = digits.trim_ascii();
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &byte| Some((value << 4) | u64::from(char::from(byte).to_digit(16)?)))
}

/// Splits at the first `separator`, which is dropped; without one the second half is empty.
pub(super) fn split(line: &[u8], separator: u8) -> (&[u8], &[u8]) {
    match line.iter().position(|&b| b == separator) {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &[]),
    }
}

/// Returns the words of a line.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b' ' || b == b'\t').filter(|word| !word.is_empty())
}

/// Parses a device number, `major:minor`.
pub(super) fn dev(word: &[u8]) -> Option<floodline_record::id::DevId> {
    let (major, minor) = split(word, b':');
    Some(floodline_record::id::DevId { major: number(major)?.try_into().ok()?, minor: number(minor)?.try_into().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_a_number_and_fits_is_a_number() {
        let check = |text: &str, expect| assert_eq!(number(text.as_bytes()), expect, "{text:?}");
        check("0", Some(0));
        check("  18446744073709551615 ", Some(u64::MAX));
        check("18446744073709551616", None);
        check("99999999999999999999999", None);
        check("", None);
        check(" ", None);
        check("-1", None);
        check("+1", None);
        check("1 2", None);
        check("0x10", None);
        check("12kB", None);
    }

    #[test]
    fn what_is_no_number_is_told_from_one_that_does_not_fit() {
        let check = |text: &str, expect: &str| assert_eq!(wanted(text.as_bytes()), expect, "{text:?}");
        check("18446744073709551616", "a number that fits 64 bits");
        check(" -1 ", "a number that fits 64 bits");
        check("NaN", "a number");
        check("", "a number");
        check("-", "a number");
        check("12kB", "a number");
    }

    #[test]
    fn hexadecimal_numbers_are_bounded_too() {
        let check = |text: &str, expect| assert_eq!(hex(text.as_bytes()), expect, "{text:?}");
        check("         7", Some(7));
        check("0xf", Some(15));
        check("ffffffffffffffff", Some(u64::MAX));
        check("1ffffffffffffffff", None);
        check("x", None);
        check("", None);
    }

    #[test]
    fn a_line_that_was_cut_off_is_not_shown() {
        let mut notes = Notes::default();
        assert_eq!(notes.lines(b"a 1\n\nb 2").collect::<Vec<_>>(), [&b"a 1"[..], b""]);
        assert_eq!(notes.finish(), Err(Flaw("a newline at the end")));
        let mut notes = Notes::default();
        assert_eq!(notes.lines(b"").count(), 0);
        assert_eq!(notes.finish_maybe_empty(), Ok(()));
    }
}
