// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a text file to a tree of files. The format is described in `trees/README.md`; `pack` is the other direction.

use std::fs;
use std::io;
use std::path::Path;

/// What stands before the path of a file.
pub(crate) const HEAD: &str = "=== ";

/// Splits a text into paths and contents, in the order of the text.
///
/// # Errors
/// The number of the line that is not understood, and why.
pub fn files(text: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let complaint = |why: &str| format!("line {}: {why}", number + 1);
        if let Some(path) = line.strip_prefix(HEAD) {
            let is_plain = path.split('/').all(|part| !["", ".", ".."].contains(&part));
            if !is_plain || files.iter().any(|(known, _)| known == path) {
                return Err(complaint("not a new path below the tree"));
            }
            files.push((path.to_owned(), Vec::new()));
        } else {
            let Some((_, content)) = files.last_mut() else { return Err(complaint("no path before it")) };
            unescape(line, content).ok_or_else(|| complaint("unknown escape"))?;
        }
    }
    Ok(files)
}

/// Appends the bytes that a line stands for.
fn unescape(line: &str, content: &mut Vec<u8>) -> Option<()> {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\\') {
        content.extend_from_slice(before.as_bytes());
        rest = match after.chars().next() {
            // At the end of a line: the file ends here, without a line break.
            None => return Some(()),
            Some(same @ ('\\' | '=')) => {
                content.push(same as u8);
                &after[1..]
            }
            Some('x') => {
                content.push(u8::from_str_radix(after.get(1..3)?, 16).ok()?);
                &after[3..]
            }
            Some(_) => return None,
        };
    }
    content.extend_from_slice(rest.as_bytes());
    content.push(b'\n');
    Some(())
}

/// Writes the files of a text below a folder.
///
/// # Errors
/// If the text is not understood or a file cannot be written.
pub fn unpack(text: &str, folder: &Path) -> io::Result<()> {
    for (path, content) in files(text).map_err(io::Error::other)? {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, content)?;
    }
    Ok(())
}
