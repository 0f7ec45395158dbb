// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps on sets of files: `create_files` and `unlink`.

use super::frame::Turn;
use super::repeat::End;
use super::{Op, State, later, numbered};
use crate::step::{CreateFiles, Files};
use floodline_record::units::Nanos;

/// A `create_files` in progress.
#[derive(Debug)]
pub(super) struct Creating<'s> {
    step: &'s CreateFiles,
    start: Nanos,
    end: End,
    n: u64,
    is_due: bool,
}

impl<'s> Creating<'s> {
    pub(super) fn new(step: &'s CreateFiles, now: Nanos) -> Creating<'s> {
        Creating { step, start: now, end: End::new(now, step.lasting, step.files), n: 0, is_due: false }
    }

    pub(super) fn advance(&mut self, state: &mut State, now: Nanos) -> Turn<'s> {
        let step = self.step;
        if std::mem::take(&mut self.is_due) {
            let numbers = state.numbers.entry(step.file.clone()).or_default();
            let path = numbered(&step.file, numbers.end, step.files_per_dir);
            numbers.end += 1;
            self.n += 1;
            return Turn::Op(Op::CreateFile { path, step });
        }
        let due = step.rate.map_or(self.start, |rate| later(self.start, rate.due(self.n)));
        if self.end.is_reached(self.n, due, now) {
            return Turn::Pop;
        }
        self.is_due = true;
        Turn::Op(Op::SleepUntil(due))
    }
}

/// An `unlink` in progress.
#[derive(Debug)]
pub(super) struct Unlinking<'s> {
    step: &'s Files,
    n: u64,
}

impl<'s> Unlinking<'s> {
    pub(super) fn new(step: &'s Files) -> Unlinking<'s> {
        Unlinking { step, n: 0 }
    }

    pub(super) fn advance(&mut self, state: &mut State, is_stopped: bool) -> Turn<'s> {
        let step = self.step;
        if self.n >= step.files {
            return Turn::Pop;
        }
        if is_stopped {
            return Turn::End;
        }
        // A file that another thread created has the number that it has here: counting begins at 0 in each step.
        let number = match state.numbers.get_mut(&step.file) {
            Some(numbers) => {
                let oldest = numbers.start;
                numbers.start += 1;
                oldest
            }
            None => self.n,
        };
        self.n += 1;
        Turn::Op(Op::Unlink(numbered(&step.file, number, step.files_per_dir)))
    }
}
