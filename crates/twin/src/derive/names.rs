// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of a host as names of a scenario: letters, digits and few signs, and no two alike.

use std::collections::{BTreeMap, BTreeSet};

/// Hands out names that are not taken.
#[derive(Debug, Default)]
pub(super) struct Taken {
    names: BTreeSet<String>,
    /// The number to try next, by what it is put behind and the length: hundreds of programs want one name.
    next: BTreeMap<(String, usize), u64>,
}

impl Taken {
    /// `wanted` in at most `most` characters, with a number if it is taken.
    pub(super) fn unique(&mut self, wanted: &str, most: usize) -> String {
        let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>();
        let base = cut(wanted, most);
        let base = if base.is_empty() { "x".to_owned() } else { base };
        if self.names.insert(base.clone()) {
            return base;
        }
        let key = (base, most);
        let mut number = self.next.get(&key).copied().unwrap_or(2);
        let name = loop {
            let suffix = format!("_{number}");
            let name = format!("{}{suffix}", cut(&key.0, most.saturating_sub(suffix.len())));
            number += 1;
            if self.names.insert(name.clone()) {
                break name;
            }
        };
        self.next.insert(key, number);
        name
    }
}

/// A word: what is not a letter or a digit is an underscore.
pub(crate) fn word(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '_' }).collect()
}

/// A name of a task: hyphens stay.
pub(super) fn task(bytes: &[u8]) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    bytes.iter().map(|&byte| if keep(byte) { char::from(byte) } else { '_' }).collect()
}

/// A path below `/`: parts of usual characters, none of them empty, `.` or `..`; empty for the root.
pub(super) fn path(bytes: &[u8]) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:+".contains(&byte);
    let part = |part: &[u8]| -> String {
        let text: String = part.iter().map(|&byte| if keep(byte) { char::from(byte) } else { '_' }).collect();
        if text == "." || text == ".." { "_".to_owned() } else { text }
    };
    let parts: Vec<String> = bytes.split(|&byte| byte == b'/').filter(|text| !text.is_empty()).map(part).collect();
    let joined = parts.join("/");
    // No path is longer than 4096 bytes.
    joined.chars().take(1000).collect::<String>().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_become_harmless_ones() {
        assert_eq!(path(b"/a b/../x\x1b[2J/{i}//"), "a_b/_/x__2J/_i_");
        assert_eq!(task("kworker/0:1\n".as_bytes()), "kworker_0_1_");
        assert_eq!((word(b"dm-0"), path(b"/")), ("dm_0".to_owned(), String::new()));
    }

    #[test]
    fn no_two_names_are_alike() {
        let mut taken = Taken::default();
        let names: Vec<String> = (0..3).map(|_| taken.unique("a-very-long-name-of-a-task", 15)).collect();
        assert_eq!(names, ["a-very-long-nam", "a-very-long-n_2", "a-very-long-n_3"]);
        let others = [
            taken.unique("a-very-long-n_4", 15),
            taken.unique("a-very-long-name", 15),
            taken.unique("a-very-long-name", 9),
        ];
        assert_eq!(others, ["a-very-long-n_4", "a-very-long-n_5", "a-very-lo"]);
        assert_eq!(taken.unique("", 15), "x");
    }
}
