// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where each key of a twin comes from.

use serde::Serialize;

/// Origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Read from the recording as it is.
    Measured,
    /// Computed from readings.
    Derived,
    /// Not in the recording: a value that is usual, or the simplest that fits.
    Assumed,
}

impl Origin {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Measured => "measured",
            Origin::Derived => "derived",
            Origin::Assumed => "assumed",
        }
    }
}

/// Where one key comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// Dotted path of the key, or of the table that holds it.
    pub key: String,
    /// Origin.
    pub origin: Origin,
    /// One sentence; a line, without control characters.
    pub text: String,
}

/// Collects provenance.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) Vec<Provenance>);

impl Notes {
    pub(crate) fn put(&mut self, origin: Origin, key: impl Into<String>, text: impl Into<String>) {
        let text: String = text.into();
        self.0.push(Provenance { key: key.into(), origin, text });
    }

    pub(crate) fn measured(&mut self, key: impl Into<String>, text: impl Into<String>) {
        self.put(Origin::Measured, key, text);
    }

    pub(crate) fn derived(&mut self, key: impl Into<String>, text: impl Into<String>) {
        self.put(Origin::Derived, key, text);
    }

    pub(crate) fn assumed(&mut self, key: impl Into<String>, text: impl Into<String>) {
        self.put(Origin::Assumed, key, text);
    }
}
