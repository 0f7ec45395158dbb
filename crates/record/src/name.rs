// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that come from outside: cgroup paths, mount points, process names. They are bytes chosen by users and
//! containers, and may hold escape codes, newlines and broken UTF-8. A [`Name`] keeps the bytes. Every displayed form
//! is escaped, so that nothing raw reaches a terminal or JSON.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

/// A byte string from the host, shown escaped.
///
/// Printable Unicode stands for itself; a backslash is `\\`; every other byte is `\xNN`. The escaped
/// form is unambiguous, and [`Name::from_escaped`] reads it back. Copies share the bytes.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<[u8]>);

impl Name {
    /// From the bytes the kernel gave.
    pub fn new(bytes: impl AsRef<[u8]>) -> Name {
        Name(bytes.as_ref().into())
    }

    /// The bytes the kernel gave.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a person means this name by `text`: its bytes, as `ls` prints them, or the escaped form of our own output.
    pub fn is_meant_by(&self, text: &str) -> bool {
        self.as_bytes() == text.as_bytes() || (text.contains('\\') && Name::from_escaped(text) == *self)
    }

    /// Reads the escaped form back. An escape that is not one stands for itself.
    pub fn from_escaped(text: &str) -> Name {
        if !text.as_bytes().contains(&b'\\') {
            return Name::new(text);
        }
        let escape = |rest: &[u8]| match rest {
            [b'\\', b'\\', ..] => Some((b'\\', 2)),
            [b'\\', b'x', high, low, ..] => Some((hex_byte([*high, *low])?, 4)),
            _ => None,
        };
        Name(unescaped(text.as_bytes(), escape).into())
    }
}

/// Undoes escapes: `escape` tells of the text that is left which byte an escape at its start stands for, and how long
/// the escape is. What is none stands for itself.
pub fn unescaped(text: &[u8], escape: impl Fn(&[u8]) -> Option<(u8, usize)>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let (byte, length) = escape(rest).unwrap_or((first, 1));
        out.push(byte);
        rest = rest.get(length.max(1)..).unwrap_or_default();
    }
    out
}

/// The byte of two hexadecimal digits.
pub fn hex_byte(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? << 4 | low?).ok()
}

/// Whether a character may reach a terminal unescaped: not a control (C0, DEL, C1), not one that moves, reorders or
/// hides text (bidirectional controls, zero-width characters, fillers, tags), not a line or paragraph separator.
pub fn is_plain(c: char) -> bool {
    !(c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'))
}

/// Appends the bytes of a character, escaped.
fn push_escaped(text: &mut String, c: char) -> fmt::Result {
    use fmt::Write as _;
    let mut buffer = [0; 4];
    c.encode_utf8(&mut buffer).bytes().try_for_each(|byte| write!(text, "\\x{byte:02x}"))
}

/// Text with names and arguments in it as it may reach a terminal: lines stay, a backslash stands for itself, and what
/// commands a terminal is escaped as in a [`Name`].
pub fn harmless(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n')
}

/// Whether a text consists of ASCII characters that are all plain. Cheaper than [`is_plain`] of each.
fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Escapes every character that is neither plain nor spared.
pub(crate) fn escape(text: &str, is_spared: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_harmless = |c: char| is_plain(c) || is_spared(c);
    if is_printable_ascii(text) || text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmless(c) {
            escaped.push(c);
        } else {
            // A string takes everything.
            let _ = push_escaped(&mut escaped, c);
        }
    }
    Cow::Owned(escaped)
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        // Most names need no escape. Each byte is looked at, so that many are at once.
        let is_plain_byte = |byte: &u8| matches!(byte, b' '..=b'[' | b']'..=b'~');
        if self.0.iter().fold(true, |plain, byte| plain & is_plain_byte(byte))
            && let Ok(text) = std::str::from_utf8(&self.0)
        {
            return f.pad(text);
        }
        let mut text = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => text.push_str("\\\\"),
                    c if is_plain(c) => text.push(c),
                    c => push_escaped(&mut text, c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(text, "\\x{byte:02x}")?;
            }
        }
        f.pad(&text)
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        struct Escaped;
        impl Visitor<'_> for Escaped {
            type Value = Name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Name, E> {
                Ok(Name::from_escaped(text))
            }
        }
        deserializer.deserialize_str(Escaped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8], shown: &str) {
        let name = Name::new(bytes);
        assert_eq!(name.to_string(), shown);
        assert_eq!(Name::from_escaped(shown), name);
    }

    #[test]
    fn hostile_bytes_are_shown_escaped() {
        check(b"/system.slice/redis.service", "/system.slice/redis.service");
        check(b"/\x1b[31mred\n", "/\\x1b[31mred\\x0a");
        check(b"a\\b", "a\\\\b");
        check(b"\xff\xfe", "\\xff\\xfe");
        check("né".as_bytes(), "né");
        check("\u{202e}evil".as_bytes(), "\\xe2\\x80\\xaeevil");
    }

    #[test]
    fn text_keeps_its_lines_and_commands_no_terminal() {
        let check = |text: &str, shown: &str| assert_eq!(harmless(text), shown);
        check("cannot read /a\\x1b:\nno such file", "cannot read /a\\x1b:\nno such file");
        check("né \x1b[31m\u{202e}\u{9b}", "né \\x1b[31m\\xe2\\x80\\xae\\xc2\\x9b");
    }

    #[test]
    fn what_is_not_an_escape_stands_for_itself() {
        assert_eq!(Name::from_escaped("\\xg1\\").as_bytes(), b"\\xg1\\");
    }

    proptest! {
        #[test]
        fn the_escaped_form_reads_back(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let name = Name::new(&bytes);
            prop_assert_eq!(Name::from_escaped(&name.to_string()), name);
        }

        #[test]
        fn nothing_shown_is_a_control_character(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(!Name::new(&bytes).to_string().chars().any(char::is_control));
        }
    }
}
