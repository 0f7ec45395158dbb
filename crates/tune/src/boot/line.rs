// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of a `sysctl.d` file, as `sysctl.d(5)` and `sysctl.conf(5)` describe them.

/// One line that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Key with slashes.
    pub(super) key: String,
    /// Value; `None` for `-key`, which takes the key out of globs.
    pub(super) value: Option<String>,
    /// Line of the file, from 1.
    pub(super) number: usize,
}

impl Line {
    /// Whether the key stands for several.
    pub(super) fn is_glob(&self) -> bool {
        self.key.contains(['*', '?', '['])
    }
}

/// The lines of a file that count.
pub(super) fn lines(text: &str) -> Vec<Line> {
    text.lines().enumerate().filter_map(|(at, line)| parse(line.trim(), at + 1)).collect()
}

fn parse(line: &str, number: usize) -> Option<Line> {
    if line.is_empty() || line.starts_with(['#', ';']) {
        return None;
    }
    let (key, value) = match line.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim().to_owned())),
        None => (line, None),
    };
    let (key, is_optional) = key.strip_prefix('-').map_or((key, false), |key| (key.trim_start(), true));
    // Without a value only `-key` means something.
    (value.is_some() || is_optional).then(|| Line { key: with_slashes(key), value, number })
}

/// The first separator decides what a dot is: `vm.dirty_bytes`, `vm/dirty_bytes`, `net/ipv4/conf/eth0.1/x`.
pub(super) fn with_slashes(key: &str) -> String {
    match key.find(['.', '/']).and_then(|at| key.get(at..=at)) {
        Some(".") => key
            .chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                c => c,
            })
            .collect(),
        _ => key.to_owned(),
    }
}

/// Whether a path matches a pattern, component by component.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let (mut patterns, mut parts) = (pattern.split('/'), path.split('/'));
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return true,
            (Some(pattern), Some(part)) if component(pattern.as_bytes(), part.as_bytes()) => {}
            _ => return false,
        }
    }
}

fn component(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=text.len()).any(|at| text.get(at..).is_some_and(|text| component(rest, text))),
        (Some((b'?', rest)), Some((_, text))) => component(rest, text),
        (Some((b'[', rest)), Some((c, after))) => match set(rest, *c) {
            Some((is_in, rest)) => is_in && component(rest, after),
            // Without its end, the bracket stands for itself.
            None => *c == b'[' && component(rest, after),
        },
        (Some((p, rest)), Some((c, text))) => p == c && component(rest, text),
        _ => false,
    }
}

/// Whether a bracket holds a character, and what follows the bracket.
fn set(pattern: &[u8], c: u8) -> Option<(bool, &[u8])> {
    let (is_negated, pattern) = match pattern.split_first() {
        Some((b'!' | b'^', rest)) => (true, rest),
        _ => (false, pattern),
    };
    // A bracket that comes first is a member.
    let end = pattern.iter().skip(1).position(|byte| *byte == b']')? + 1;
    let (members, rest) = (pattern.get(..end)?, pattern.get(end + 1..)?);
    let mut is_in = false;
    let mut at = 0;
    while let Some(first) = members.get(at) {
        match (members.get(at + 1), members.get(at + 2)) {
            (Some(b'-'), Some(last)) => {
                is_in |= (*first..=*last).contains(&c);
                at += 3;
            }
            _ => {
                is_in |= *first == c;
                at += 1;
            }
        }
    }
    Some((is_in != is_negated, rest))
}
