// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines to standard error: errors, hints, progress and warnings. They are escaped here, and in ASCII where the locale
//! wants it.

use crate::ascii;
use floodline_record::name::harmless;
use std::fmt;
use std::io::{self, IsTerminal, Write};

/// Whether text on a stream must be ASCII, by the locale of the environment.
pub(crate) fn wants_ascii(stream: &impl IsTerminal) -> bool {
    ascii::is_wanted(|name| std::env::var(name).ok(), stream.is_terminal())
}

/// Writes a line to standard error, escaped. Where that is closed or full, the line is lost and the command goes on.
pub(crate) fn tell(line: fmt::Arguments<'_>) {
    let line = format!("{}\n", harmless(&line.to_string()));
    let line = if wants_ascii(&io::stderr()) { ascii::of(&line) } else { line.as_str().into() };
    let _ = io::stderr().write_all(line.as_bytes());
}
