// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps `write` and `read`: blocks on a schedule, each at its offset.

use super::durable::Durable;
use super::frame::Turn;
use super::repeat::End;
use super::{Access, Answer, Op, Slot, State, Target, Way, later, numbered};
use crate::quantity::ByteSize;
use crate::step::{Order, Read, SyncCall, Write};
use floodline_record::units::Nanos;
use std::borrow::Cow;

impl Way {
    /// For writing anywhere.
    pub(super) const WRITE: Way = Way { is_direct: false, is_dsync: false, access: Access::Write };

    fn of_write(step: &Write) -> Way {
        let access = if step.order == Order::Append { Access::Append } else { Access::Write };
        Way { is_direct: step.direct, is_dsync: step.dsync, access }
    }

    fn of_read(step: &Read) -> Way {
        Way { is_direct: step.direct, is_dsync: false, access: Access::Read }
    }
}

/// A `write` in progress.
#[derive(Debug)]
pub(super) struct Writing<'s> {
    step: &'s Write,
    slot: Slot,
    start: Nanos,
    end: End,
    durable: Durable<'s>,
    left: Option<u64>,
    n: u64,
    stage: WriteStage,
}

#[derive(Clone, Copy, Debug)]
enum WriteStage {
    Open,
    Truncate,
    Begin,
    Due,
    Write,
    Wrote,
    /// All that was submitted is done.
    Sync(SyncCall),
    Over,
    Ended,
}

impl<'s> Writing<'s> {
    pub(super) fn new(step: &'s Write) -> Writing<'s> {
        let start = Nanos(0);
        Writing {
            step,
            slot: Slot(0),
            start,
            end: End::new(start, None, None),
            durable: Durable::new(None, start),
            left: step.total.map(ByteSize::bytes),
            n: 0,
            stage: WriteStage::Open,
        }
    }

    #[inline]
    pub(super) fn advance(&mut self, state: &mut State, now: Nanos) -> Result<Turn<'s>, String> {
        let step = self.step;
        loop {
            match self.stage {
                WriteStage::Open => {
                    let (slot, open) = state.open(&step.file, Way::of_write(step));
                    self.slot = slot;
                    self.stage = WriteStage::Truncate;
                    if let Some(open) = open {
                        return Ok(Turn::Op(open));
                    }
                }
                WriteStage::Truncate => {
                    self.stage = WriteStage::Begin;
                    if step.truncate {
                        state.file(self.slot).cursor = 0;
                        return Ok(Turn::Op(Op::SetLength(self.slot, 0)));
                    }
                }
                WriteStage::Begin => {
                    self.start = now;
                    let end = End::new(now, step.lasting, step.count);
                    self.end = end.within(step.total.map(ByteSize::bytes), step.block.bytes());
                    self.durable = Durable::new(step.sync.as_ref(), now);
                    self.stage = WriteStage::Due;
                }
                WriteStage::Due => {
                    let due = step.rate.map_or(self.start, |rate| later(self.start, rate.due(self.n, step.block)));
                    if self.end.is_reached(self.n, due, now) {
                        self.stage = WriteStage::Over;
                        continue;
                    }
                    self.stage = WriteStage::Write;
                    return Ok(Turn::Op(Op::SleepUntil(due)));
                }
                WriteStage::Write => {
                    self.stage = WriteStage::Wrote;
                    return Ok(Turn::Op(self.block(state)));
                }
                WriteStage::Wrote => {
                    let call = self.durable.due(self.n, now);
                    self.n += 1;
                    self.stage = WriteStage::Due;
                    if let Some(call) = call {
                        self.stage = WriteStage::Sync(call);
                        if step.depth > 1 {
                            return Ok(Turn::Op(Op::Drain));
                        }
                    }
                }
                WriteStage::Sync(call) => {
                    self.stage = WriteStage::Due;
                    let durable = state.durable_at(call, Target::Open(self.slot), &step.file)?;
                    return Ok(Turn::Op(durable));
                }
                WriteStage::Over if step.depth > 1 => {
                    self.stage = WriteStage::Ended;
                    return Ok(Turn::Op(Op::Drain));
                }
                WriteStage::Over | WriteStage::Ended => return Ok(Turn::Pop),
            }
        }
    }

    #[inline]
    fn block(&mut self, state: &mut State) -> Op<'s> {
        let (step, block) = (self.step, self.step.block.bytes());
        let length = self.left.unwrap_or(u64::MAX).min(block);
        self.left = self.left.map(|left| left - length);
        let cursor = state.file(self.slot).cursor;
        let offset = match (step.order, step.size) {
            (Order::Append, _) => None,
            (Order::Random, Some(size)) => Some(state.random.below(size.bytes() / block.max(1)) * block),
            (_, Some(size)) if cursor.saturating_add(length) > size.bytes() => Some(0),
            _ => Some(cursor),
        };
        if let Some(offset) = offset {
            state.file(self.slot).cursor = offset.saturating_add(length);
        }
        match offset {
            Some(offset) if step.depth > 1 => {
                Op::Submit { slot: self.slot, is_write: true, offset, length, depth: step.depth }
            }
            _ => Op::Write { slot: self.slot, offset, length },
        }
    }
}

/// A `read` of one file in progress.
#[derive(Debug)]
pub(super) struct Reading<'s> {
    step: &'s Read,
    slot: Slot,
    start: Nanos,
    end: End,
    /// Of the file, when the step began.
    length: u64,
    left: u64,
    n: u64,
    stage: ReadStage,
}

#[derive(Clone, Copy, Debug)]
enum ReadStage {
    Open,
    Begin(Nanos),
    Length,
    Due,
    Read,
    Got(u64),
    Over,
    Ended,
}

impl<'s> Reading<'s> {
    pub(super) fn new(step: &'s Read) -> Reading<'s> {
        Reading {
            step,
            slot: Slot(0),
            start: Nanos(0),
            end: End::new(Nanos(0), None, None),
            length: 0,
            left: step.total.map_or(u64::MAX, ByteSize::bytes),
            n: 0,
            stage: ReadStage::Open,
        }
    }

    pub(super) fn advance(&mut self, state: &mut State, now: Nanos, answer: Answer) -> Turn<'s> {
        let (step, block) = (self.step, self.step.block.bytes());
        loop {
            match self.stage {
                ReadStage::Open => {
                    let (slot, open) = state.open(&step.file, Way::of_read(step));
                    self.slot = slot;
                    self.stage = ReadStage::Begin(now);
                    if let Some(open) = open {
                        return Turn::Op(open);
                    }
                }
                ReadStage::Begin(start) => {
                    self.start = start;
                    let end = End::new(start, step.lasting, step.count);
                    self.end = end.within(step.total.map(ByteSize::bytes), block);
                    self.stage = ReadStage::Length;
                    return Turn::Op(Op::Length(self.slot));
                }
                ReadStage::Length => {
                    self.length = bytes(answer);
                    self.stage = ReadStage::Due;
                    if self.length == 0 {
                        return Turn::Pop;
                    }
                }
                ReadStage::Due => {
                    let due = step.rate.map_or(self.start, |rate| later(self.start, rate.due(self.n, step.block)));
                    if self.end.is_reached(self.n, due, now) {
                        self.stage = ReadStage::Over;
                        continue;
                    }
                    self.stage = ReadStage::Read;
                    return Turn::Op(Op::SleepUntil(due));
                }
                ReadStage::Read => {
                    let Some(offset) = self.offset(state) else {
                        self.stage = ReadStage::Over;
                        continue;
                    };
                    let length = block.min(self.left);
                    if step.depth > 1 {
                        // Where the next one goes is known before this one is done.
                        self.got(state, offset, length.min(self.length.saturating_sub(offset)));
                        let (slot, depth) = (self.slot, step.depth);
                        return Turn::Op(Op::Submit { slot, is_write: false, offset, length, depth });
                    }
                    self.stage = ReadStage::Got(offset);
                    return Turn::Op(Op::Read { slot: self.slot, offset, length, keep: step.keep });
                }
                ReadStage::Got(offset) => {
                    self.got(state, offset, bytes(answer));
                }
                ReadStage::Over if step.depth > 1 => {
                    self.stage = ReadStage::Ended;
                    return Turn::Op(Op::Drain);
                }
                ReadStage::Over | ReadStage::Ended => return Turn::Pop,
            }
        }
    }

    fn got(&mut self, state: &mut State, offset: u64, got: u64) {
        self.left -= got.min(self.left);
        state.file(self.slot).cursor = if got == 0 { self.length } else { offset.saturating_add(got) };
        self.n += 1;
        self.stage = ReadStage::Due;
    }

    /// Where the next block is; `None` at the end of the file, if the step names no other end.
    fn offset(&self, state: &mut State) -> Option<u64> {
        let (step, block) = (self.step, self.step.block.bytes().max(1));
        if step.order == Order::Random {
            return Some(state.random.below((self.length / block).max(1)) * block);
        }
        let cursor = state.file(self.slot).cursor;
        if cursor < self.length {
            return Some(cursor);
        }
        let is_endless = step.lasting.is_none() && step.count.is_none() && step.total.is_none();
        if is_endless {
            state.file(self.slot).cursor = 0;
        }
        (!is_endless).then_some(0)
    }
}

fn bytes(answer: Answer) -> u64 {
    match answer {
        Answer::Bytes(bytes) => bytes,
        Answer::Done => 0,
    }
}

/// A `read` of many files in progress: each whole, opened and closed.
#[derive(Debug)]
pub(super) struct ReadingFiles<'s> {
    step: &'s Read,
    files: u64,
    start: Nanos,
    end: End,
    number: u64,
    slot: Slot,
    offset: u64,
    left: u64,
    n: u64,
    stage: FileStage,
}

#[derive(Clone, Copy, Debug)]
enum FileStage {
    Open,
    Due,
    Read,
    Got,
    /// The file is read; whether the step is over.
    Release(bool),
    Over,
}

impl<'s> ReadingFiles<'s> {
    pub(super) fn new(step: &'s Read, files: u64, now: Nanos) -> ReadingFiles<'s> {
        let total = step.total.map(ByteSize::bytes);
        ReadingFiles {
            step,
            files,
            start: now,
            end: End::new(now, step.lasting, step.count).within(total, step.block.bytes()),
            number: 0,
            slot: Slot(0),
            offset: 0,
            left: total.unwrap_or(u64::MAX),
            n: 0,
            stage: FileStage::Open,
        }
    }

    pub(super) fn advance(&mut self, state: &mut State, now: Nanos, answer: Answer) -> Turn<'s> {
        let (step, block) = (self.step, self.step.block.bytes());
        loop {
            match self.stage {
                FileStage::Open => {
                    if self.number >= self.files {
                        return Turn::Pop;
                    }
                    let number = state.oldest(&step.file) + self.number;
                    let path = numbered(&step.file, number, step.files_per_dir);
                    self.number += 1;
                    self.slot = state.unnamed();
                    self.offset = 0;
                    self.stage = FileStage::Due;
                    let (slot, path) = (self.slot, Cow::Owned(path));
                    return Turn::Op(Op::Open { slot, path, way: Way::of_read(step), is_measured: true });
                }
                FileStage::Due => {
                    let due = step.rate.map_or(self.start, |rate| later(self.start, rate.due(self.n, step.block)));
                    if self.end.is_reached(self.n, due, now) || self.left == 0 {
                        self.stage = FileStage::Release(true);
                        continue;
                    }
                    self.stage = FileStage::Read;
                    return Turn::Op(Op::SleepUntil(due));
                }
                FileStage::Read => {
                    self.stage = FileStage::Got;
                    let length = block.min(self.left);
                    return Turn::Op(Op::Read { slot: self.slot, offset: self.offset, length, keep: step.keep });
                }
                FileStage::Got => {
                    let got = bytes(answer);
                    self.offset += got;
                    self.left -= got.min(self.left);
                    self.n += u64::from(got > 0);
                    self.stage = if got < block { FileStage::Release(false) } else { FileStage::Due };
                }
                FileStage::Release(is_over) => {
                    self.stage = if is_over { FileStage::Over } else { FileStage::Open };
                    return Turn::Op(Op::Release(self.slot));
                }
                FileStage::Over => return Turn::Pop,
            }
        }
    }
}
