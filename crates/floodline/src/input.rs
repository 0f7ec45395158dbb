// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings as input: a file or standard input, record by record. What a file lacks (it was cut,
//! damaged, or written by a newer version) is said once, on standard error, and the rest is used.

use crate::error::CliError;
use floodline_core::record::Record;
use floodline_core::recording::{Cut, Decoder, Why};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// A recording being read.
pub(crate) struct Input {
    decoder: Decoder<Box<dyn Read>>,
    name: String,
}

impl Input {
    /// Opens a recording; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Input, CliError> {
        let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
        let reader: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(path).map_err(|error| {
                CliError::usage(format!("cannot open {name}: {error}"))
                    .hint("make a recording with: floodline record --for 1m -o FILE.flr")
            })?;
            Box::new(BufReader::with_capacity(1 << 16, file))
        };
        let decoder = Decoder::new(reader).map_err(|error| {
            CliError::usage(format!("{name}: {error}"))
                .hint("make a recording with: floodline record --for 1m -o FILE.flr")
        })?;
        Ok(Input { decoder, name })
    }

    /// Hands every record on; `take` answers false to stop early. Ends with what was missing.
    pub(crate) fn each(mut self, mut take: impl FnMut(Record) -> Result<bool, CliError>) -> Result<(), CliError> {
        for record in self.decoder.by_ref() {
            let record = record.map_err(|error| CliError::usage(format!("{}: {error}", self.name)))?;
            if !take(record)? {
                return Ok(());
            }
        }
        self.tell_what_is_missing();
        Ok(())
    }

    fn tell_what_is_missing(&self) {
        for cut in self.decoder.cuts().iter().filter(|cut| is_worth_telling(cut)) {
            anstream::eprintln!("floodline: {}: {cut}", self.name);
        }
        if self.decoder.unknown_records() > 0 {
            anstream::eprintln!(
                "floodline: {}: passed over {} records of kinds that only a newer version knows",
                self.name,
                self.decoder.unknown_records()
            );
        }
    }
}

/// A recorder that was killed between two samples lost nothing.
fn is_worth_telling(cut: &Cut) -> bool {
    cut.why != Why::NotClosed
}
