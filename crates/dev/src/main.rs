// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline-dev`: what only developers of Floodline need. It is not installed on hosts.

mod advice;
mod agreement;
mod artefact;
mod back_test;
mod fleet;
mod input;
mod judge;
mod machines;
mod pages;
mod published;
mod truth;
mod unseen;
mod validate;
mod vary;

use clap::Parser;
use floodline_record::text::Text;
use std::io::{self, Write};
use std::process::ExitCode;

/// Tools for developers of Floodline
#[derive(clap::Parser)]
#[command(name = "floodline-dev", max_term_width = 80)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Judge(judge::Judge),
    Validate(validate::Validate),
    Publish(published::Publish),
    FleetTruth(fleet::FleetTruth),
    FleetPairs(fleet::FleetPairs),
    FleetLab(fleet::FleetLab),
    PredictTruth(truth::PredictTruth),
    BackTest(back_test::BackTest),
    Vary(vary::Vary),
    Advice(advice::AdviceTruth),
}

/// Form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

/// An answer, and whether everything is as expected.
struct Answer {
    text: String,
    is_as_expected: bool,
}

/// Why there is no answer, and what to type.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// A file cannot be read or used.
    #[error("{text}")]
    Input {
        /// What is wrong with it.
        text: String,
        /// What to type next.
        hint: Option<String>,
    },
    /// The answer cannot be made or written.
    #[error("cannot write the answer: {0}")]
    Write(#[from] io::Error),
    /// The answer cannot be made.
    #[error("cannot write the answer as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Failure {
    fn input(text: impl Into<String>) -> Failure {
        Failure::Input { text: text.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Failure {
        match self {
            Failure::Input { text, .. } => Failure::Input { text, hint: Some(hint.into()) },
            other => other,
        }
    }
}

fn main() -> ExitCode {
    let answer = match Arguments::parse().verb {
        Verb::Judge(judge) => judge.run(),
        Verb::Validate(validate) => validate.run(),
        Verb::Publish(publish) => publish.run(),
        Verb::FleetTruth(fleet) => fleet.run(),
        Verb::FleetPairs(pairs) => pairs.run(),
        Verb::FleetLab(lab) => lab.run(),
        Verb::PredictTruth(truth) => truth.run(),
        Verb::BackTest(tests) => tests.run(),
        Verb::Vary(vary) => vary.run(),
        Verb::Advice(advice) => advice.run(),
    };
    let code = answer.and_then(|answer| {
        io::stdout().write_all(screened(&answer.text).as_bytes())?;
        Ok(u8::from(!answer.is_as_expected))
    });
    match code {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            note(&failure.to_string());
            if let Failure::Input { hint: Some(hint), .. } = &failure {
                note(&format!("hint: {hint}"));
            }
            ExitCode::from(2)
        }
    }
}

/// Text as it may reach a terminal: lines stay, all other control characters are escaped.
fn screened(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", Text::new(line))).collect()
}

/// Prints a message beside the result, on stderr. Text from a file is escaped.
fn note(text: &str) {
    // A closed standard error is no reason to end.
    let _ = writeln!(io::stderr(), "floodline-dev: {}", Text::new(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_commands_no_terminal() {
        assert_eq!(screened("a\u{1b}[2Jb\nc\n"), "a\\x1b[2Jb\nc\n");
    }
}
