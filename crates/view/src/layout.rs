// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text into columns: paragraphs wrapped to a width, tables whose cells wrap, commands continued with
//! a backslash. Knows nothing of what the text says. Widths are terminal columns; wide East Asian
//! characters count two, which errs on the narrow side.

use std::fmt::Write;

/// Columns a text takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| if (c as u32) >= 0x1100 && !is_narrow(c) { 2 } else { 1 }).sum()
}

/// Punctuation, arrows and mathematical signs beyond U+1100 that take one column.
fn is_narrow(c: char) -> bool {
    matches!(c as u32, 0x2000..=0x2bff)
}

/// Breaks a text into lines of at most `width` columns: at spaces, but not between a number and the word or unit that
/// follows it. A word that is longer than a line is broken behind a sign that joins its parts (paths, field names), or
/// anywhere if it has none near the edge.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in &with_numbers(text, width) {
        let gap = usize::from(!line.is_empty());
        if columns(&line) + gap + columns(word) <= width {
            if gap == 1 {
                line.push(' ');
            }
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        let mut rest = word.as_str();
        while columns(rest) > width {
            let (piece, after) = rest.split_at(piece(rest, width));
            lines.push(piece.to_owned());
            rest = after;
        }
        line.push_str(rest);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The words of a text, each number together with what it counts where a line has room for both.
fn with_numbers(text: &str, width: usize) -> Vec<String> {
    let is_number = |word: &str| {
        let digits = word.trim_start_matches(['(', '-', '+', '~']);
        digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'-'))
            && !digits.ends_with(['.', ','])
    };
    let mut words: Vec<String> = Vec::new();
    let mut counts = false;
    for word in text.split_whitespace() {
        let is_counted = counts && word.starts_with(|c: char| c.is_alphabetic() || c == '%');
        match words.last_mut() {
            Some(number) if is_counted && columns(number) + 1 + columns(word) <= width => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
        counts = is_number(word);
    }
    words
}

/// Length in bytes of the part of a word that fits a line: up to the last joining sign in the second
/// half of the line, else up to its edge. At least one character, so that a loop over parts ends.
fn piece(word: &str, width: usize) -> usize {
    let mut taken = 0;
    let mut edge = 0;
    let mut joint = None;
    for (at, c) in word.char_indices() {
        taken += columns(&word[at..at + c.len_utf8()]);
        if taken > width && edge > 0 {
            break;
        }
        edge = at + c.len_utf8();
        if matches!(c, '/' | '_' | '.' | '-' | ':') && taken * 2 > width {
            joint = Some(edge);
        }
    }
    joint.unwrap_or(edge)
}

/// A name in at most so many columns: the middle is left out, the end (the unit) stays.
pub(crate) fn shortened(name: &str, width: usize) -> String {
    if columns(name) <= width {
        return name.to_owned();
    }
    let mut tail = String::new();
    for c in name.chars().rev() {
        if columns(&tail) + columns(c.encode_utf8(&mut [0; 4])) + 1 > width * 2 / 3 {
            break;
        }
        tail.insert(0, c);
    }
    // Begin the end at a component, where that does not cost too much of it.
    if let Some(slash) = tail.find('/').filter(|at| at * 2 < tail.len()) {
        tail.drain(..slash);
    }
    let mut head = String::new();
    for c in name.chars() {
        if columns(&head) + columns(c.encode_utf8(&mut [0; 4])) + 1 + columns(&tail) > width {
            break;
        }
        head.push(c);
    }
    format!("{head}…{tail}")
}

/// A paragraph whose first line starts with `first` and whose others are indented like it.
pub(crate) fn hanging(out: &mut String, first: &str, text: &str, width: usize) {
    let indent = columns(first);
    for (at, line) in wrap(text, width.saturating_sub(indent)).iter().enumerate() {
        let lead = if at == 0 { first.to_owned() } else { " ".repeat(indent) };
        let _ = writeln!(out, "{}", format!("{lead}{line}").trim_end());
    }
}

/// A shell command, continued on further lines with a backslash where it does not fit. Never broken
/// within quotes: then it is longer than the width, and still one can paste it. What a person has to
/// do without a shell is a comment, and each of its lines is one.
pub(crate) fn command(out: &mut String, indent: usize, command: &str, width: usize) {
    if let Some(comment) = command.strip_prefix("# ") {
        for line in wrap(comment, width.saturating_sub(indent + 2)) {
            let _ = writeln!(out, "{}# {line}", " ".repeat(indent));
        }
        return;
    }
    let room = width.saturating_sub(indent).max(1);
    let mut line = String::new();
    let mut first = true;
    let mut flush = |line: &mut String, more: bool| {
        let extra = if first { 0 } else { 2 };
        let tail = if more { " \\" } else { "" };
        let _ = writeln!(out, "{}{line}{tail}", " ".repeat(indent + extra));
        line.clear();
        first = false;
    };
    for word in with_values(shell_words(command), room) {
        let word = word.as_str();
        // Room for the backslash, and for the deeper indent of all lines but the first.
        if !line.is_empty() && columns(&line) + 1 + columns(word) + 4 > room {
            flush(&mut line, true);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    flush(&mut line, false);
}

/// The words of a command, each option together with its value where a line has room for both.
fn with_values(words: Vec<&str>, room: usize) -> Vec<String> {
    let mut together: Vec<String> = Vec::new();
    let mut wants_value = false;
    for word in words {
        let is_option = word.starts_with("--");
        match together.last_mut() {
            Some(option) if wants_value && !is_option && columns(option) + 1 + columns(word) + 4 <= room => {
                option.push(' ');
                option.push_str(word);
            }
            _ => together.push(word.to_owned()),
        }
        wants_value = is_option && word.len() > 2;
    }
    together
}

/// Splits at spaces that are not within single quotes; quotes stay.
fn shell_words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = None;
    let mut quoted = false;
    for (at, c) in command.char_indices() {
        match c {
            ' ' if !quoted => {
                words.extend(start.take().and_then(|start: usize| command.get(start..at)));
                continue;
            }
            '\'' => quoted = !quoted,
            _ => {}
        }
        start.get_or_insert(at);
    }
    words.extend(start.and_then(|start| command.get(start..)));
    words
}

/// How a column of a table is set.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    /// Its width.
    pub(crate) width: usize,
    /// Whether numbers line up at the right.
    pub(crate) right: bool,
}

/// One row of a table: cells wrap within their columns, two spaces apart.
pub(crate) fn row(out: &mut String, indent: usize, columns_: &[Column], cells: &[&str]) {
    let wrapped: Vec<Vec<String>> = columns_.iter().zip(cells).map(|(column, cell)| wrap(cell, column.width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    for at in 0..height {
        let mut line = " ".repeat(indent);
        for (column, cell) in columns_.iter().zip(&wrapped) {
            let text = cell.get(at).map(String::as_str).unwrap_or_default();
            let pad = " ".repeat(column.width.saturating_sub(columns(text)));
            match column.right {
                true => line.extend([pad.as_str(), text]),
                false => line.extend([text, pad.as_str()]),
            }
            line.push_str("  ");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// The text with a capital letter at its start.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, width: usize, expect: &[&str]) {
        assert_eq!(wrap(text, width), expect);
    }

    #[test]
    fn paragraphs_break_at_spaces_and_long_words_anywhere() {
        check("one two three", 7, &["one two", "three"]);
        check("", 7, &[""]);
        check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
        check("a abcdefghij", 4, &["a", "abcd", "efgh", "ij"]);
        check("/sys/block/LOOP/loop/backing_file", 22, &["/sys/block/LOOP/loop/", "backing_file"]);
        check("/proc/sys/vm/dirty_expire_centisecs x", 22, &["/proc/sys/vm/dirty_", "expire_centisecs x"]);
        check("a/bcdefghijkl", 8, &["a/bcdefg", "hijkl"]);
        check("日本語", 4, &["日本", "語"]);
        check("x", 0, &["x"]);
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        check("waits 0.45 s here", 10, &["waits", "0.45 s", "here"]);
        check("vda is 89 % busy", 10, &["vda is", "89 % busy"]);
        check("up to 68.0 MiB; 1 not checked", 11, &["up to", "68.0 MiB;", "1 not", "checked"]);
        check("(14 to 100 %)", 8, &["(14 to", "100 %)"]);
        // What ends with a full stop is the end of a sentence, and a row of numbers is no number and its unit.
        check("It is 3. Then", 8, &["It is 3.", "Then"]);
        check("1 2 3 4", 3, &["1 2", "3 4"]);
        // No line has room for both.
        check("12345 MiB/s", 6, &["12345", "MiB/s"]);
    }

    #[test]
    fn a_long_command_is_continued_and_never_within_quotes() {
        let mut out = String::new();
        command(&mut out, 2, "printf '%s\\n' 'vm.a = 1' 'vm.b = 2' > /etc/sysctl.d/90.conf", 36);
        insta::assert_snapshot!(out, @r"
          printf '%s\n' 'vm.a = 1' \
            'vm.b = 2' > \
            /etc/sysctl.d/90.conf
        ");
    }

    #[test]
    fn an_option_stays_with_its_value() {
        let mut out = String::new();
        command(&mut out, 0, "floodline apply --set vm.a=1 --set vm.b=2 --yes", 40);
        assert_eq!(out, "floodline apply --set vm.a=1 \\\n  --set vm.b=2 --yes\n");
    }

    #[test]
    fn what_is_no_command_stays_a_comment_on_every_line() {
        let mut out = String::new();
        command(&mut out, 2, "# install another kernel and reboot", 24);
        assert_eq!(out, "  # install another\n  # kernel and reboot\n");
    }

    #[test]
    fn cells_wrap_within_their_columns() {
        let columns = [Column { width: 6, right: false }, Column { width: 4, right: true }];
        let mut out = String::new();
        row(&mut out, 1, &columns, &["dirty pages", "12"]);
        assert_eq!(out, " dirty     12\n pages\n");
    }
}
