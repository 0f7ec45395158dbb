// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words that leave the reader guessing, in everything that people read: string literals of the product, help (doc
//! comments of the program's arguments), README and docs. `words.txt` holds how many of them each file may still
//! have. The numbers only fall: `FLOODLINE_WRITE_WORDS=1` lowers them to what is there, and never raises one.

use crate::{expect_none, files, read, root};
use std::collections::BTreeMap;
use std::path::Path;

/// Worst patterns of style, in lower case. Instead: name the thread, task, page or file; give the number.
const PATTERNS: &[&str] = &["whoever", "nobody", "somebody", " is no ", "so many", "so long"];

const LIST: &str = "crates/floodline/tests/tidy/words.txt";

/// The texts that people read of a source file: string literals, and with `help` doc comments. Without test modules,
/// which stand last in a file.
fn texts(source: &str, help: bool) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut texts = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (before, from) = rest.split_at(at);
        rest = &from[1..];
        if let Some(comment) = from.strip_prefix("//") {
            let end = comment.find('\n').unwrap_or(comment.len());
            if help && comment.starts_with('/') {
                texts.push(comment[1..end].to_owned());
            }
            rest = &comment[end..];
        } else if from.starts_with('\'') {
            // A character, or a lifetime.
            let length = if from.starts_with("'\\") { 2 } else { from.chars().nth(1).map_or(0, char::len_utf8) };
            rest = from.get(1 + length..).and_then(|after| after.strip_prefix('\'')).unwrap_or(rest);
        } else if from.starts_with('"') {
            let hashes = before.len() - before.trim_end_matches('#').len();
            let is_raw = before.trim_end_matches('#').ends_with('r');
            let close = format!("\"{}", "#".repeat(hashes));
            let end = if is_raw { rest.find(&close) } else { end_of_literal(rest) }.unwrap_or(rest.len());
            texts.push(without_line_breaks(&rest[..end], is_raw));
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }
    texts
}

/// Where a string literal ends that is not raw.
fn end_of_literal(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

/// A literal as it is printed: a backslash at the end of a line joins it with the next one.
fn without_line_breaks(text: &str, is_raw: bool) -> String {
    if is_raw {
        return text.replace('\n', " ");
    }
    let lines = text.split("\\\n").enumerate().map(|(at, line)| if at == 0 { line } else { line.trim_start() });
    lines.collect::<String>().replace("\\n", " ")
}

fn count(text: &str) -> usize {
    let text = text.to_lowercase();
    PATTERNS.iter().map(|pattern| text.matches(pattern).count()).sum()
}

/// How many of the patterns each file has, files without any left out.
fn found() -> BTreeMap<String, usize> {
    let shown = |path: &Path| path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let mut found = BTreeMap::new();
    for path in files("crates", "rs") {
        let name = shown(&path);
        let is_test = name.split('/').any(|part| ["tests", "benches", "testkit", "skip"].contains(&part))
            || name.ends_with("tests.rs");
        if !is_test {
            let texts = texts(&read(&path), name.starts_with("crates/floodline/"));
            found.insert(name, texts.iter().map(|text| count(text)).sum());
        }
    }
    let pages = files("docs", "md").into_iter().chain(["README.md", "GLOSSARY.md"].map(|name| root().join(name)));
    for path in pages {
        let page = read(&path).split_whitespace().collect::<Vec<_>>().join(" ");
        found.insert(shown(&path), count(&page));
    }
    found.retain(|_, count| *count > 0);
    found
}

#[test]
fn words_that_leave_the_reader_guessing_only_become_fewer() {
    let list = root().join(LIST);
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    let parse =
        |line: &str| line.split_once(' ').and_then(|(count, name)| Some((name.to_owned(), count.parse().ok()?)));
    let allowed: BTreeMap<String, usize> = text.lines().filter_map(parse).collect();
    let found = found();
    if std::env::var_os("FLOODLINE_WRITE_WORDS").is_some_and(|value| value == "1") {
        let least = |(name, found): (&String, &usize)| match allowed.get(name) {
            Some(allowed) => format!("{} {name}\n", found.min(allowed)),
            None => String::new(),
        };
        std::fs::write(&list, found.iter().map(least).collect::<String>()).expect("words.txt is written");
    }
    let mut complaints = Vec::new();
    for (name, count) in &found {
        let allowed = allowed.get(name).copied().unwrap_or(0);
        if *count > allowed {
            let words = PATTERNS.join("\", \"");
            complaints
                .push(format!("{name}: {count} times \"{words}\", {allowed} allowed: name the subject or the number"));
        }
    }
    expect_none(&complaints);
}

#[test]
fn only_what_people_read_is_counted() {
    let source = "// whoever\n/// somebody \"nobody\"\nfn f<'a>() { g('\"', \"nobody \\\"whoever\\\"\", r#\"a \"so long\" b\"#); }\n\
                  const C: &str = \"this is \\\n    no word\";\n#[cfg(test)]\nmod tests { \"nobody\" }";
    let count = |help| texts(source, help).iter().map(|text| count(text)).sum::<usize>();
    assert_eq!((count(false), count(true)), (4, 6), "{:?}", texts(source, true));
}
