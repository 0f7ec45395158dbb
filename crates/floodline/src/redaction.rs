// SPDX-License-Identifier: MIT OR Apache-2.0
//! The option `--redact KEY`: recordings with hashes in place of names.

use crate::error::CliError;
use crate::input::shown;
use crate::stderr::tell;
use floodline_record::redact::{KEY_BYTES, Redactor};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest file that a key is read from, bytes.
const FILE_BYTES: u64 = 4096;

/// The option.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Redaction {
    /// Replace the names of hosts, cgroups, processes, files, mounts and containers by keyed hashes. @FILE reads the key
    /// from a file; a key on the command line is visible to other users
    #[arg(long = "redact", value_name = "KEY")]
    key: Option<String>,
}

impl Redaction {
    /// What replaces names; `None` where they stay.
    pub(crate) fn redactor(&self) -> Result<Option<Redactor>, CliError> {
        let Some(key) = &self.key else { return Ok(None) };
        let key = match key.strip_prefix('@') {
            Some(file) => read(Path::new(file))?,
            None => key.clone().into_bytes(),
        };
        if key.is_empty() {
            return Err(CliError::usage("--redact: empty key")
                .hint("make one: openssl rand -hex 32 > redact.key")
                .hint("then use it: --redact @redact.key"));
        }
        if key.len() < KEY_BYTES {
            tell(format_args!(
                "warning: the key of --redact has fewer than {KEY_BYTES} bytes; an attacker can find it by trying keys"
            ));
        }
        Ok(Some(Redactor::new(&key)))
    }
}

/// A key from a file, without the line end that an editor adds.
fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let name = shown(path);
    let mut key = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES + 1).read_to_end(&mut key));
    read.map_err(|error| {
        CliError::usage(format!("cannot read the key of --redact from {name}: {error}"))
            .hint("make one: openssl rand -hex 32 > redact.key")
    })?;
    if key.len() as u64 > FILE_BYTES {
        return Err(CliError::usage(format!("{name} is longer than {FILE_BYTES} bytes"))
            .hint("--redact @FILE expects a file that contains only the key"));
    }
    key.truncate(key.trim_ascii_end().len());
    Ok(key)
}
