// SPDX-License-Identifier: MIT OR Apache-2.0
//! How bad a finding is. Stands beside the vocabulary because a scenario names it in its expectations, and the rules
//! that give it are in another crate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How bad a finding is. Argued in the rule's manual page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; nothing is hurt.
    #[default]
    Info,
    /// Will hurt under conditions that are likely.
    Warning,
    /// Hurts now: the harm was measured in this window.
    Critical,
}

impl Severity {
    /// As printed and as accepted by `--fail-on`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}
