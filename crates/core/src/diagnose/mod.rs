// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a window to a report: every rule answers found, clear or not checked; the report is their
//! answers in order of severity. Knows nothing of where the window came from.

pub mod rules;

use crate::gap::Gap;
use crate::report::Finding;
use crate::window::Window;

/// One rule. Its manual page is its documentation: `floodline explain NAME` prints it.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Name of the condition, in kebab case, e.g. `starved-dirty-budget`.
    pub name: &'static str,
    /// One line: what a finding of it means.
    pub summary: &'static str,
    /// The manual page in Markdown: What it means, Evidence, Why it happens, What to do, Kernel references.
    pub manual: &'static str,
    /// Looks at a window.
    pub check: fn(&Window) -> Verdict,
}

/// What a rule answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The condition holds. Usually one finding; several when it holds for unrelated things.
    Found(Vec<Finding>),
    /// It does not hold; the reading that says so, as half a sentence.
    Clear(String),
    /// It could not be checked.
    NotChecked(Vec<Gap>),
}
