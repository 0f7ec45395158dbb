// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors that end a change early. Each contains the cause and what to type next. Its kind decides the exit code.

use std::fmt;

/// How the host was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing was written.
    Unchanged,
    /// Something was written, and the old values are in force again.
    PutBack,
    /// Something was written, and not all of the old values are in force again.
    NotPutBack,
}

/// A change that ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuneError {
    /// How the host was left.
    pub left: Left,
    /// What happened. Unescaped.
    pub text: String,
    /// What to type next. Unescaped.
    pub hints: Vec<String>,
}

impl TuneError {
    /// Nothing was written, for this reason.
    pub fn refused(text: impl fmt::Display) -> TuneError {
        TuneError { left: Left::Unchanged, text: text.to_string(), hints: Vec::new() }
    }

    /// A write was undone, for this reason.
    pub fn put_back(text: impl fmt::Display) -> TuneError {
        TuneError { left: Left::PutBack, ..TuneError::refused(text) }
    }

    /// A write could not be undone, for this reason.
    pub fn not_put_back(text: impl fmt::Display) -> TuneError {
        TuneError { left: Left::NotPutBack, ..TuneError::refused(text) }
    }

    /// Adds what to type next.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> TuneError {
        self.hints.push(hint.to_string());
        self
    }
}

impl fmt::Display for TuneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for TuneError {}
