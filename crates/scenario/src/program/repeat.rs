// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedules: when a loop is due and when it ends, and the `repeat` step.

use super::frame::{Frame, Turn};
use super::{Op, later};
use crate::quantity::Time;
use crate::step::Repeat;
use floodline_record::units::Nanos;

/// When a loop ends by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    at: Option<Nanos>,
    count: u64,
}

impl End {
    pub(super) fn new(start: Nanos, lasting: Option<Time>, count: Option<u64>) -> End {
        End { at: lasting.map(|lasting| later(start, lasting.0)), count: count.unwrap_or(u64::MAX) }
    }

    /// The same loop, with at most this many blocks of a total.
    pub(super) fn within(self, total: Option<u64>, block: u64) -> End {
        let blocks = total.map_or(u64::MAX, |total| total.div_ceil(block.max(1)));
        End { count: self.count.min(blocks), ..self }
    }

    /// Whether number `n`, due then, comes after the end.
    #[inline]
    pub(super) fn is_reached(&self, n: u64, due: Nanos, now: Nanos) -> bool {
        n >= self.count || self.at.is_some_and(|at| due >= at || now >= at)
    }
}

/// A `repeat` in progress.
#[derive(Debug)]
pub(super) struct Repeating<'s> {
    step: &'s Repeat,
    end: End,
    due: Nanos,
    round: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Due,
    Begin,
    Ended(Nanos),
    Next,
}

impl<'s> Repeating<'s> {
    pub(super) fn new(step: &'s Repeat, now: Nanos) -> Repeating<'s> {
        Repeating { step, end: End::new(now, step.lasting, step.times), due: now, round: 0, stage: Stage::Due }
    }

    #[inline]
    pub(super) fn advance(&mut self, now: Nanos) -> Turn<'s> {
        if let Stage::Next = self.stage {
            self.due = self.step.every.map_or(self.due, |every| later(self.due, every.0));
            self.round += 1;
            self.stage = Stage::Due;
        }
        match self.stage {
            Stage::Due | Stage::Next => {
                if self.end.is_reached(self.round, self.due, now) {
                    return Turn::Pop;
                }
                self.stage = Stage::Begin;
                Turn::Op(Op::SleepUntil(self.due))
            }
            Stage::Begin => {
                self.stage = Stage::Ended(now);
                Turn::Push(Frame::steps(&self.step.steps))
            }
            Stage::Ended(since) => {
                self.stage = Stage::Next;
                Turn::Op(Op::EndOfRound(since))
            }
        }
    }
}
