// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files as output: recordings and exports. An existing file is never overwritten unasked, binary data
//! never goes to a terminal, and errors say which file.

use crate::error::CliError;
use crate::input::shown;
use floodline_record::recording::EncodeError;
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
            .hint("name a file in its place, or pipe it to a program"));
    }
    Ok(Box::new(BufWriter::new(stdout)))
}

/// Whether a path stands for standard output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// What a path is called in messages.
pub(crate) fn called(path: &Path) -> String {
    if is_standard(path) { "standard output".to_owned() } else { shown(path).to_string() }
}

/// Where a recording goes: a new file, or with `-` standard output, where each write reaches the reader as it is.
pub(crate) fn open(path: &Path, existing: Existing) -> Result<File, CliError> {
    if !is_standard(path) {
        return create(path, existing);
    }
    drop(standard(Content::Binary)?);
    let own = io::stdout().as_fd().try_clone_to_owned();
    own.map(File::from).map_err(|error| CliError::write(&called(path), &error))
}

/// A recording that could not be written.
pub(crate) fn failed(target: &str, error: &EncodeError) -> CliError {
    match error {
        EncodeError::Write(error) => CliError::write(target, error),
        error => CliError::bug(format!("{target}: {error}")),
    }
}

/// What happens to a file that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It is overwritten: `--force` was given.
    Replace,
    /// It stays; `--force` would overwrite it.
    Keep,
    /// It stays, and the command has no option to overwrite it.
    KeepAlways,
}

impl Existing {
    /// By whether `--force` was given.
    pub(crate) fn by_force(force: bool) -> Existing {
        if force { Existing::Replace } else { Existing::Keep }
    }
}

/// A new file. Pipes and devices hold nothing that could be lost, so they are written to as they are.
pub(crate) fn create(path: &Path, existing: Existing) -> Result<File, CliError> {
    let metadata = std::fs::metadata(path);
    if metadata.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
        return Err(CliError::usage(format!("{} is a folder", shown(path))).hint("name a file in it"));
    }
    let mut options = OpenOptions::new();
    options.write(true);
    match (existing, metadata.is_ok_and(|metadata| !metadata.is_file())) {
        (_, true) => &mut options,
        (Existing::Replace, false) => options.create(true).truncate(true),
        (Existing::Keep | Existing::KeepAlways, false) => options.create_new(true),
    };
    options.open(path).map_err(|error| match (error.kind(), existing) {
        (io::ErrorKind::AlreadyExists, Existing::KeepAlways) => {
            CliError::usage(format!("{} exists already", shown(path))).hint("choose another name")
        }
        (io::ErrorKind::AlreadyExists, _) => {
            CliError::usage(format!("{} exists already", shown(path))).hint("choose another name, or add --force")
        }
        _ => CliError::write(&shown(path).to_string(), &error),
    })
}
