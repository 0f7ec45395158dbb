// SPDX-License-Identifier: MIT OR Apache-2.0
//! Synchronisation of tasks: barriers, the end of another task, remarks. A worker uses its director. A test
//! that runs one task has no other task to wait for.

use super::error::StepError;

/// Synchronisation with other tasks.
pub trait Meeting: Sync {
    /// Returns once every copy with this barrier has reached it.
    fn barrier(&self, name: &str) -> Result<(), StepError>;

    /// Returns once every copy of another task has ended.
    fn wait_for(&self, task: &str) -> Result<(), StepError>;

    /// Writes a remark to the recording.
    fn note(&self, text: &str) -> Result<(), StepError>;
}

/// A task without other tasks: never waits.
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
