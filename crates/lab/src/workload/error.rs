// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a task: the failed call, its subject, the kernel's error, and the step.

use std::fmt;
use std::io;

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A system call failed.
    #[error("{call} {about}: {source}")]
    Call {
        /// The call, e.g. `open`.
        call: &'static str,
        /// Its subject, usually a path.
        about: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The step is invalid here.
    #[error("{0}")]
    Senseless(String),
    /// The director ended.
    #[error("the director of the workload ended")]
    Abandoned,
}

impl StepError {
    pub(super) fn call(call: &'static str, about: impl fmt::Display, source: impl Into<io::Error>) -> StepError {
        StepError::Call { call, about: about.to_string(), source: source.into() }
    }
}

/// A step that failed, and where it is in the task.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {error}")]
pub struct Failure {
    /// Place of the step, e.g. `steps[2].repeat.steps[0].write`.
    pub step: String,
    /// The cause.
    pub error: StepError,
}
