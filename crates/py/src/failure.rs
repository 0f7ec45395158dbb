// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one error of the package: a text, and what to type next. It becomes `floodline.Error`.

use floodline_record::text::Text;
use floodline_scenario::{Executor, NotACell, NotAGrid};
use floodline_sim::SimError;
use floodline_twin::TwinError;
use floodline_twin::changed::NotChanged;
use floodline_twin::trial::TrialError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::fmt::Display;

/// Why a call has no result.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    text: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure without a hint. Control characters are escaped.
    pub(crate) fn new(text: impl Display) -> Failure {
        Failure { text: escaped(text), hint: None }
    }

    /// Adds what to type next. Of two hints both are kept.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Display) -> Failure {
        let hint = escaped(hint);
        self.hint = Some(match self.hint {
            Some(before) => format!("{before}; {hint}"),
            None => hint,
        });
        self
    }

    /// Says what failed for this reason.
    #[must_use]
    pub(crate) fn within(mut self, what: impl Display) -> Failure {
        self.text = format!("{}: {}", escaped(what), self.text);
        self
    }

    /// A defect of this package.
    pub(crate) fn bug(text: impl Display) -> Failure {
        Failure::new(format!("internal error: {text}"))
            .hint("this is a bug in floodline: please report it with the recording or scenario")
    }

    /// A call that a signal or the progress callback ended. Python raises that exception instead.
    pub(crate) fn stopped() -> Failure {
        Failure::new("stopped before the end")
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Escapes each line on its own: some errors have several.
fn escaped(text: impl Display) -> String {
    let text = text.to_string();
    let lines: Vec<String> = text.lines().map(|line| Text::new(line).to_string()).collect();
    lines.join("\n")
}

/// `floodline.Error`: a class in Python, so that it can be pickled.
static ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

impl From<NotACell> for Failure {
    fn from(error: NotACell) -> Failure {
        match &error {
            NotACell::SeveralVariants(_) => Failure::new(&error).hint("name one with variant="),
            NotACell::UnknownVariant(name, names) => {
                Failure::new(format!("unknown variant {name:?}")).hint(format!("its variants: {names}"))
            }
            _ => Failure::new(error),
        }
    }
}

impl From<NotAGrid> for Failure {
    fn from(error: NotAGrid) -> Failure {
        let hint = match &error {
            NotAGrid::Twice(_) => "give all its values to one key",
            NotAGrid::TooMany => "vary fewer keys or values",
        };
        Failure::new(error).hint(hint)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        Python::attach(|py| match ERROR.import(py, "floodline._error", "Error") {
            Ok(class) => PyErr::from_type(class.clone(), (failure.text, failure.hint)),
            Err(error) => error,
        })
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        let failure = Failure::new(&error);
        match &error {
            SimError::NotHonoured(keys) => {
                let meant: Vec<_> = keys.iter().filter_map(|key| Executor::Simulator.meant(key)).collect();
                let is_misspelt = meant.len() == keys.len();
                let failure = meant.iter().fold(failure, |failure, key| failure.hint(format!("did you mean {key}?")));
                match is_misspelt {
                    true => failure,
                    false => failure.hint("if the kernel has this, run it on a real one: floodline lab run"),
                }
            }
            _ => error.way_on().into_iter().fold(failure, Failure::hint),
        }
    }
}

impl From<TwinError> for Failure {
    fn from(error: TwinError) -> Failure {
        let hint = error.hint();
        hint.into_iter().fold(Failure::new(&error), Failure::hint)
    }
}

impl From<NotChanged> for Failure {
    fn from(error: NotChanged) -> Failure {
        Failure::new(&error).hint(&error.hint)
    }
}

impl From<TrialError> for Failure {
    fn from(error: TrialError) -> Failure {
        match error {
            TrialError::Twin(error) => error.into(),
            TrialError::NotChanged(error) => error.into(),
            TrialError::Sim(error) => error.into(),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::bug(error)
    }
}
