// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text for a locale without UTF-8: every character beyond ASCII becomes what people write instead, or is escaped as in
//! names. JSON stays JSON: there such a character is a `\u` escape. Decides nothing about colours.

use std::borrow::Cow;
use std::fmt::Write;

/// The variables that name the locale of characters, the strongest first.
const LOCALE: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// Whether text must be ASCII. `variable` reads the environment. Where no variable is set, only a terminal is taken for
/// one without UTF-8: the environment of services and scripts is often empty.
pub(crate) fn is_wanted(variable: impl Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    let locale = LOCALE.iter().filter_map(|name| variable(name)).find(|value| !value.is_empty());
    match locale {
        Some(locale) => {
            let locale = locale.to_ascii_lowercase();
            !locale.contains("utf-8") && !locale.contains("utf8")
        }
        None => is_terminal,
    }
}

/// The text in ASCII.
pub(crate) fn of(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let is_json = text.trim_start().starts_with(['{', '[']);
    let mut ascii = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if c.is_ascii() => ascii.push(c),
            _ if is_json => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(ascii, "\\u{unit:04x}");
                }
            }
            _ => match plain(c) {
                Some(plain) => ascii.push_str(plain),
                None => {
                    let mut bytes = [0; 4];
                    for byte in c.encode_utf8(&mut bytes).bytes() {
                        let _ = write!(ascii, "\\x{byte:02x}");
                    }
                }
            },
        }
    }
    Cow::Owned(ascii)
}

/// What stands for a character that our own texts use.
fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        '…' => "...",
        '÷' => "/",
        '×' | '✕' => "x",
        'µ' | 'μ' => "u",
        '≤' => "<=",
        '≥' => ">=",
        '≈' => "~",
        '±' => "+-",
        '−' | '–' | '—' | '─' | '━' => "-",
        '→' => "->",
        '←' => "<-",
        '⌈' => "ceil(",
        '⌉' => ")",
        '⁴' => "^4",
        '⁶' => "^6",
        '·' | '•' => "*",
        '│' | '┃' => "|",
        '∞' => "inf",
        '\u{2500}'..='\u{257f}' => "+",
        '\u{2580}'..='\u{259f}' => "#",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_variable_that_is_set_decides() {
        let check = |set: &[(&str, &str)], is_terminal: bool, expect: bool| {
            let variable =
                |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(is_wanted(variable, is_terminal), expect, "{set:?}");
        };
        check(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")], false, true);
        check(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")], true, false);
        check(&[("LANG", "en_US.UTF-8")], true, false);
        check(&[("LANG", "de_DE.ISO-8859-1")], false, true);
        check(&[], true, true);
        check(&[], false, false);
    }

    #[test]
    fn our_own_characters_have_a_spelling_and_others_are_escaped() {
        let check = |text: &str, expect: &str| assert_eq!(of(text), expect);
        check("10 µs ≤ 1 × ⌈a ÷ b⌉ …", "10 us <= 1 x ceil(a / b) ...");
        check("/日", "/\\xe6\\x97\\xa5");
        check("{\"name\": \"é 💩\"}", "{\"name\": \"\\u00e9 \\ud83d\\udca9\"}");
        check("plain", "plain");
    }
}
