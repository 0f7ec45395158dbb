// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a tree of files to a text file: `cargo run -p floodline-captured --example pack -- FOLDER > trees/NAME.tree`.

use crate::unpack::HEAD;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The text of all files below a folder, in the order of their paths.
///
/// # Errors
/// If a file cannot be read, or its name is not UTF-8.
pub fn pack(folder: &Path) -> io::Result<String> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    paths.sort();
    let mut text = String::new();
    for path in paths {
        text.push_str(HEAD);
        text.push_str(&relative(&path, folder)?);
        text.push('\n');
        escape(&fs::read(&path)?, &mut text);
    }
    Ok(text)
}

fn relative(path: &Path, folder: &Path) -> io::Result<String> {
    let inside: PathBuf = path.strip_prefix(folder).map_err(io::Error::other)?.to_owned();
    inside.into_os_string().into_string().map_err(|name| io::Error::other(format!("{name:?} is not UTF-8")))
}

/// Appends a content in lines. A content without a line break at its end ends with a backslash.
fn escape(content: &[u8], text: &mut String) {
    for line in content.split_inclusive(|&byte| byte == b'\n') {
        let (line, is_whole) = line.strip_suffix(b"\n").map_or((line, false), |line| (line, true));
        for (at, &byte) in line.iter().enumerate() {
            match byte {
                b'\\' => text.push_str("\\\\"),
                b'=' if at == 0 => text.push_str("\\="),
                b'\t' | b' '..=b'~' => text.push(char::from(byte)),
                _ => text.push_str(&format!("\\x{byte:02x}")),
            }
        }
        text.push_str(if is_whole { "\n" } else { "\\\n" });
    }
}
