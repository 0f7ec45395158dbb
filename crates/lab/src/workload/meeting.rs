// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where tasks meet: barriers, the end of another task, remarks. A worker asks its director; a test
//! that runs one task has nobody to wait for.

use super::error::StepError;

/// What a task needs of the others.
pub trait Meeting: Sync {
    /// Returns once every copy that has this barrier has come to it.
    fn barrier(&self, name: &str) -> Result<(), StepError>;

    /// Returns once every copy of another task has ended.
    fn wait_for(&self, task: &str) -> Result<(), StepError>;

    /// A remark for the recording.
    fn note(&self, text: &str) -> Result<(), StepError>;
}

/// Nobody else is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Meeting for Alone {
    fn barrier(&self, _: &str) -> Result<(), StepError> {
        Ok(())
    }

    fn wait_for(&self, _: &str) -> Result<(), StepError> {
        Ok(())
    }

    fn note(&self, _: &str) -> Result<(), StepError> {
        Ok(())
    }
}
