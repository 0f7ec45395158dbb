// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text that comes from a file or a host and is not a [`Name`](crate::name::Name): causes of gaps, kernel
//! releases, names of tasks and operations. A [`Text`] is escaped when it is made, so that no copy of it can
//! command a terminal, whatever prints it. Records of a recording hold no `String` (`tests/tidy/texts.rs`).

use crate::name::escape;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

/// One line of text without control, bidirectional and invisible characters.
///
/// Each byte of such a character stands as `\xNN`. A backslash stands for itself, so escaping twice changes nothing.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Box<str>);

impl Text {
    /// Escapes `text`, line breaks included.
    pub fn new(text: impl AsRef<str>) -> Text {
        Text(escape(text.as_ref(), |_| false).into())
    }

    /// The escaped text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::new(text)
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Text {
        Text::new(text)
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.0.into()
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        *self.0 == **other
    }
}

impl PartialEq<Text> for &str {
    fn eq(&self, other: &Text) -> bool {
        **self == *other.0
    }
}

impl PartialEq<Text> for String {
    fn eq(&self, other: &Text) -> bool {
        **self == *other.0
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        Cow::<str>::deserialize(deserializer).map(Text::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::is_plain;
    use proptest::prelude::*;

    #[test]
    fn what_commands_a_terminal_is_escaped_when_the_text_is_made() {
        let check = |raw: &str, shown: &str| {
            assert_eq!(Text::new(raw), shown);
            assert_eq!(serde_json::from_value::<Text>(raw.into()).unwrap(), shown);
        };
        check("since 6.10", "since 6.10");
        check("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07");
        check("a\nb\rc\td\x7f", "a\\x0ab\\x0dc\\x09d\\x7f");
        check("\u{9b}31m", "\\xc2\\x9b31m");
        check("\u{202e}lave\u{2066}\u{200f}\u{61c}", "\\xe2\\x80\\xaelave\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c");
        check("a\u{2028}b\u{200b}\u{e0041}", "a\\xe2\\x80\\xa8b\\xe2\\x80\\x8b\\xf3\\xa0\\x81\\x81");
        check("né \\ µ", "né \\ µ");
    }

    proptest! {
        #[test]
        fn every_text_is_plain_and_escaping_it_again_changes_nothing(raw in any::<String>()) {
            let text = Text::new(&raw);
            prop_assert!(text.chars().all(is_plain));
            prop_assert_eq!(&Text::new(&text), &text);
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text);
        }
    }
}
