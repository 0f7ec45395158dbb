// SPDX-License-Identifier: MIT OR Apache-2.0
//! One level of a program: a list of steps, or a step that is in progress. Steps that are one operation have no level.

use super::files::{Creating, Unlinking};
use super::repeat::Repeating;
use super::requests::Requesting;
use super::store::Storing;
use super::transfer::{Reading, ReadingFiles, Writing};
use super::{Answer, Op, Slot, State, Way, later};
use crate::fill;
use crate::step::{Mounting, Step, SyncCall};
use floodline_record::units::Nanos;

/// What a frame wants.
pub(super) enum Turn<'s> {
    /// This operation.
    Op(Op<'s>),
    /// Another level, and its turn when that is done.
    Push(Frame<'s>),
    /// It is done.
    Pop,
    /// The program is done.
    End,
}

/// One level.
#[derive(Debug)]
pub(super) enum Frame<'s> {
    /// A list, and the number of the step that comes next.
    Steps(&'s [Step], usize),
    /// `truncate` or `fallocate`, once the file is open.
    Length(&'s str, fn(Slot, u64) -> Op<'s>, u64),
    Repeat(Repeating<'s>),
    Write(Writing<'s>),
    Read(Reading<'s>),
    ReadFiles(ReadingFiles<'s>),
    Store(Storing<'s>),
    Create(Creating<'s>),
    Unlink(Unlinking<'s>),
    Request(Requesting<'s>),
    /// An operation that was given out: done.
    Done,
}

impl<'s> Frame<'s> {
    pub(super) fn steps(steps: &'s [Step]) -> Frame<'s> {
        Frame::Steps(steps, 0)
    }

    #[inline]
    pub(super) fn advance(
        &mut self,
        state: &mut State,
        now: Nanos,
        is_stopped: bool,
        answer: Answer,
    ) -> Result<Turn<'s>, String> {
        match self {
            Frame::Steps(steps, next) => {
                let Some(step) = steps.get(*next) else { return Ok(Turn::Pop) };
                *next += 1;
                if is_stopped {
                    return Ok(Turn::End);
                }
                begin(step, state, now)
            }
            Frame::Length(path, op, length) => {
                let (slot, open) = state.open(path, Way::WRITE);
                if let Some(open) = open {
                    return Ok(Turn::Op(open));
                }
                let op = op(slot, *length);
                *self = Frame::Done;
                Ok(Turn::Op(op))
            }
            Frame::Repeat(frame) => Ok(frame.advance(now)),
            Frame::Write(frame) => frame.advance(state, now),
            Frame::Read(frame) => Ok(frame.advance(state, now, answer)),
            Frame::ReadFiles(frame) => Ok(frame.advance(state, now, answer)),
            Frame::Store(frame) => frame.advance(state, now),
            Frame::Create(frame) => Ok(frame.advance(state, now)),
            Frame::Unlink(frame) => Ok(frame.advance(state, is_stopped)),
            Frame::Request(frame) => Ok(frame.advance(now)),
            Frame::Done => Ok(Turn::Pop),
        }
    }

    pub(super) fn place(&self) -> String {
        match self {
            Frame::Steps(steps, next) => {
                let at = next.saturating_sub(1);
                steps.get(at).map_or(String::new(), |step| format!("[{at}].{}", step.verb()))
            }
            Frame::Repeat(_) => ".steps".to_owned(),
            _ => String::new(),
        }
    }
}

/// Begins a step.
fn begin<'s>(step: &'s Step, state: &mut State, now: Nanos) -> Result<Turn<'s>, String> {
    let mount = |mounting: &Mounting| Op::Mounts {
        step,
        points: (0..mounting.count).map(|number| fill(&mounting.point, 'n', number)).collect(),
        at_once: mounting.at_once,
    };
    if let Some(single) = step.single() {
        return Ok(Turn::Op(Op::Single(single)));
    }
    let frame = match step {
        Step::Write(write) => Frame::Write(Writing::new(write)),
        Step::Read(read) => match read.files {
            Some(files) => Frame::ReadFiles(ReadingFiles::new(read, files, now)),
            None => Frame::Read(Reading::new(read)),
        },
        Step::MmapStore(store) => Frame::Store(Storing::new(store, now)?),
        Step::CreateFiles(create) => Frame::Create(Creating::new(create, now)),
        Step::Unlink(files) => Frame::Unlink(Unlinking::new(files)),
        Step::Truncate(step) => Frame::Length(&step.file, Op::SetLength, step.size.bytes()),
        Step::Fallocate(step) => Frame::Length(&step.file, Op::Allocate, step.size.bytes()),
        Step::Repeat(repeat) => Frame::Repeat(Repeating::new(repeat, now)),
        Step::Syslog(_) | Step::RedisSet(_) | Step::Sql(_) => Frame::Request(Requesting::new(step, now)),
        Step::Parallel(parallel) => {
            let seeds = parallel.branches.iter().map(|_| state.random.number()).collect();
            return Ok(Turn::Op(Op::Parallel(parallel, seeds)));
        }
        Step::Fsync(on) => return Ok(Turn::Op(state.durable(SyncCall::Fsync, &on.file)?)),
        Step::Fdatasync(on) => return Ok(Turn::Op(state.durable(SyncCall::Fdatasync, &on.file)?)),
        Step::Msync(on) => return Ok(Turn::Op(state.durable(SyncCall::Msync, &on.file)?)),
        Step::SyncFileRange(on) => return Ok(Turn::Op(state.durable(SyncCall::SyncFileRange, &on.file)?)),
        Step::Close(on) => {
            let slots = state.open.remove(&on.file).map(|ways| ways.into_values().collect());
            return Ok(Turn::Op(Op::Close { slots: slots.unwrap_or_default() }));
        }
        Step::Mount(mounting) | Step::Umount(mounting) => return Ok(Turn::Op(mount(mounting))),
        Step::Sleep(sleep) => return Ok(Turn::Op(Op::SleepUntil(later(now, sleep.lasting.0)))),
        Step::SleepUntil(until) => return Ok(Turn::Op(Op::SleepUntil(later(state.began.unwrap_or(now), until.at.0)))),
        Step::Exit => return Ok(Turn::End),
        _ => return Err(format!("no operation is known for {}", step.verb())),
    };
    Ok(Turn::Push(frame))
}
