// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints a folder as the text of a tree.

use std::io::Write;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).ok_or_else(|| std::io::Error::other("pack FOLDER"))?;
    std::io::stdout().write_all(floodline_captured::pack::pack(Path::new(&folder))?.as_bytes())
}
