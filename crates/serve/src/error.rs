// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why `serve` cannot start or go on.

use std::fmt;

/// What happened and what to type next.
#[derive(Debug)]
pub struct ServeError {
    text: String,
    hints: Vec<String>,
    is_usage: bool,
}

impl ServeError {
    pub(crate) fn new(text: impl Into<String>) -> ServeError {
        ServeError { text: text.into(), hints: Vec::new(), is_usage: false }
    }

    pub(crate) fn usage(self) -> ServeError {
        ServeError { is_usage: true, ..self }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> ServeError {
        self.hints.push(hint.into());
        self
    }

    /// What to type next.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Whether the arguments are wrong.
    pub fn is_usage(&self) -> bool {
        self.is_usage
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ServeError {}
