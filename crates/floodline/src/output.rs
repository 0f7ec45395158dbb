// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files as output: recordings and exports. An existing file is never overwritten unasked, binary data
//! never goes to a terminal, and errors say which file.

use crate::error::CliError;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// What kind of bytes a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Lines of text.
    Text,
    /// Anything else.
    Binary,
}

/// Standard output, where that can take such bytes.
pub(crate) fn standard(content: Content) -> Result<Box<dyn Write + Send>, CliError> {
    let stdout = io::stdout();
    if content == Content::Binary && stdout.is_terminal() {
        return Err(CliError::usage("binary data does not belong on a terminal")
            .hint("name a file with -o FILE, or pipe it to a program"));
    }
    Ok(Box::new(BufWriter::new(stdout)))
}

/// The same without a buffer in between: each write reaches the reader as it is.
pub(crate) fn standard_file(content: Content) -> Result<File, CliError> {
    drop(standard(content)?);
    let own = io::stdout().as_fd().try_clone_to_owned();
    own.map(File::from).map_err(|error| CliError::write("standard output", &error))
}

/// A new file; an existing one only with `force`.
pub(crate) fn create(path: &Path, force: bool) -> Result<File, CliError> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            CliError::usage(format!("{} exists already", path.display())).hint("choose another name, or add --force")
        }
        _ => CliError::write(&path.display().to_string(), &error),
    })
}
