// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a scenario file: where, at which key, why, and what to write instead. Turns the
//! deserializer's words into ours and finds the key that was meant.

use floodline_record::nearest::nearest;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Dotted path of the key, as it is after the variant was laid over the base; empty for the whole file.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// Variants that have the problem; empty where all have it, or where it is not one of a variant.
    pub variants: Vec<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        let (named, more) = self.variants.split_at(self.variants.len().min(VARIANTS_NAMED));
        match (named, more.len()) {
            ([], _) => Ok(()),
            ([one], _) => write!(f, " (in variant {one})"),
            (some, 0) => write!(f, " (in variants {})", some.join(", ")),
            (some, more) => write!(f, " (in variants {} and {more} more)", some.join(", ")),
        }
    }
}

/// Most variants that a problem is shown with.
const VARIANTS_NAMED: usize = 3;

/// A scenario file that cannot be used: everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScenarioError {
    /// Never empty; in order of line.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

/// Most problems reported with one message.
const SAME_MAX: usize = 5;

/// Leaves a few of the problems that have the same message and hint. The last of them then says how many there are more;
/// `most` is the number from which the check looks for no more.
pub(super) fn few_of_each(problems: Vec<Problem>, most: usize) -> Vec<Problem> {
    let mut counts: BTreeMap<(String, Option<String>), usize> = BTreeMap::new();
    for problem in &problems {
        *counts.entry((problem.message.clone(), problem.hint.clone())).or_default() += 1;
    }
    let is_cut = problems.len() >= most;
    let mut told: BTreeMap<(String, Option<String>), usize> = BTreeMap::new();
    let mut few = Vec::new();
    for mut problem in problems {
        let kind = (problem.message.clone(), problem.hint.clone());
        let all = counts.get(&kind).copied().unwrap_or(1);
        let number = told.entry(kind).or_default();
        *number += 1;
        if *number > SAME_MAX {
            continue;
        }
        if *number == SAME_MAX && all > SAME_MAX {
            let more = format!("{} more places have the same problem", all - SAME_MAX);
            let cut = if is_cut { format!("; only the first {most} problems are looked for") } else { String::new() };
            let hint = problem.hint.take().map(|hint| hint + "; ").unwrap_or_default();
            problem.hint = Some(hint + &more + &cut);
        }
        few.push(problem);
    }
    few
}

/// Line and column of a byte offset.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).or_else(|| (0..offset).rev().find_map(|at| text.get(..at))).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The deserializer's message in our words, and what to write instead.
pub(super) fn in_our_words(message: &str) -> (String, Option<String>) {
    let quoted = |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    for (theirs, ours) in [("unknown field", "unknown key"), ("unknown variant", "unknown word")] {
        let Some(rest) = message.strip_prefix(theirs) else { continue };
        // The offending word is between the first two backquotes and may itself hold anything.
        let Some((word, known)) = rest.split_once("`").and_then(|(_, rest)| rest.rsplit_once("`, expected ")) else {
            return (message.to_owned(), None);
        };
        let known = quoted(known);
        let hint = match nearest(word, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("known here: {}", known.join(", ")),
        };
        return (format!("{ours} {word:?}"), Some(hint));
    }
    if let Some(rest) = message.strip_prefix("missing field ") {
        return (format!("the key {} is missing", rest.replace('`', "")), None);
    }
    match message.split_once("; write ") {
        Some((what, write)) => (what.to_owned(), Some(format!("write {write}"))),
        None => (message.to_owned(), None),
    }
}
