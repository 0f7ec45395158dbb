// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps that talk to a server: requests on a schedule.

use super::Op;
use super::frame::Turn;
use super::later;
use super::repeat::End;
use crate::quantity::Frequency;
use crate::step::Step;
use floodline_record::units::Nanos;

/// A `syslog`, `redis_set` or `sql` in progress.
#[derive(Debug)]
pub(super) struct Requesting<'s> {
    step: &'s Step,
    rate: Option<Frequency>,
    start: Nanos,
    end: End,
    n: u64,
    is_due: bool,
}

impl<'s> Requesting<'s> {
    pub(super) fn new(step: &'s Step, now: Nanos) -> Requesting<'s> {
        let (rate, lasting, count) = match step {
            Step::Syslog(step) => (Some(step.messages), step.lasting, step.count),
            Step::RedisSet(step) => (step.rate, step.lasting, step.count),
            Step::Sql(step) => (step.rate, step.lasting, step.count),
            // Nothing else makes requests.
            _ => (None, None, Some(0)),
        };
        Requesting { step, rate, start: now, end: End::new(now, lasting, count), n: 0, is_due: false }
    }

    pub(super) fn advance(&mut self, now: Nanos) -> Turn<'s> {
        if std::mem::take(&mut self.is_due) {
            self.n += 1;
            return Turn::Op(Op::Request { step: self.step, is_first: self.n == 1 });
        }
        let due = self.rate.map_or(self.start, |rate| later(self.start, rate.due(self.n)));
        if self.end.is_reached(self.n, due, now) {
            return Turn::Pop;
        }
        self.is_due = true;
        Turn::Op(Op::SleepUntil(due))
    }
}
