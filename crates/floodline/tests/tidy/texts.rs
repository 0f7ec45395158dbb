// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds the wall between text from outside and a terminal: records hold no `String`, and only a few files print.

use crate::{expect_none, files, read, root};

/// Files that declare what a recording holds.
const RECORDS: &[&str] = &["/record.rs", "/gap.rs", "/facts.rs", "/id.rs", "/recording/schema.rs"];

/// Files of the program that write to standard output or standard error by themselves, and why.
const PRINTERS: &[(&str, &str)] = &[
    ("console.rs", "is where results are printed"),
    ("stderr.rs", "is where errors, hints and progress are printed"),
    ("output.rs", "hands standard output to a recording or an export"),
    ("guest.rs", "speaks with the host side inside of a guest"),
    ("commands/top/terminal.rs", "draws the screen of cells that view made"),
    ("commands/lab/shell.rs", "joins the terminal to a guest's"),
    ("commands/lab/terminal.rs", "joins the terminal to a guest's"),
];

#[test]
fn no_record_holds_a_string_that_could_be_shown_unescaped() {
    let mut complaints = Vec::new();
    let mut found = 0;
    for path in files("crates", "rs") {
        let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let is_record = RECORDS.iter().any(|file| shown.ends_with(file)) || shown.contains("/traced/");
        if !is_record || !shown.contains("/src/") || shown.contains("/host/") || shown.contains("/lab/") {
            continue;
        }
        let text = read(&path);
        if !text.contains("Deserialize") {
            continue;
        }
        found += 1;
        for (number, line) in text.split("#[cfg(test)]").next().unwrap_or_default().lines().enumerate() {
            let field = line.trim_start().trim_start_matches("pub ");
            let is_field = field.split_once(": ").is_some_and(|(name, _)| {
                name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
            });
            let holds = ["String", "str>"].iter().any(|raw| field.contains(raw));
            if is_field && holds && field.ends_with(',') {
                complaints.push(format!("{shown}:{}: a field of a record is a Text or a Name: {field}", number + 1));
            }
        }
    }
    assert!(found >= RECORDS.len(), "the files of records are elsewhere now: say where in {}", file!());
    expect_none(&complaints);
}

#[test]
fn text_reaches_a_terminal_from_few_files() {
    let mut complaints = Vec::new();
    for path in files("crates/floodline/src", "rs") {
        let shown = path.display().to_string();
        if PRINTERS.iter().any(|(file, _)| shown.ends_with(file)) {
            continue;
        }
        for (number, line) in read(&path).lines().enumerate() {
            let prints = ["println!", "print!(", "stdout().lock", "stdout().write", "stderr().write", "stderr().lock"];
            if prints.iter().any(|word| line.contains(word)) {
                complaints.push(format!("{shown}:{}: print with Console::print or stderr::tell", number + 1));
            }
        }
    }
    expect_none(&complaints);
}
