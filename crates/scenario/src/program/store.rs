// SPDX-License-Identifier: MIT OR Apache-2.0
//! The step `mmap_store`: bursts of stores into distinct pages of a mapping.

use super::durable::Durable;
use super::frame::Turn;
use super::repeat::End;
use super::{Op, Slot, State, Target, Way, later};
use crate::fill;
use crate::step::{MmapStore, Order};
use floodline_record::units::Nanos;
use std::borrow::Cow;

/// Bytes of a page, as scenarios count them.
const PAGE: u64 = 4096;

/// An `mmap_store` in progress.
#[derive(Debug)]
pub(super) struct Storing<'s> {
    step: &'s MmapStore,
    pages: u64,
    start: Nanos,
    end: End,
    durable: Durable<'s>,
    n: u64,
    path: Cow<'s, str>,
    is_numbered: bool,
    slot: Slot,
    burst: std::vec::IntoIter<u64>,
    began: Nanos,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Due,
    Open,
    Map,
    Store,
    Synced,
    Ended,
}

impl<'s> Storing<'s> {
    pub(super) fn new(step: &'s MmapStore, now: Nanos) -> Result<Storing<'s>, String> {
        let pages = step.size.bytes() / PAGE;
        if step.pages > pages {
            return Err(format!("{} pages in a mapping of {pages}", step.pages));
        }
        Ok(Storing {
            step,
            pages,
            start: now,
            end: End::new(now, step.lasting, step.count),
            durable: Durable::new(step.sync.as_ref(), now),
            n: 0,
            path: Cow::Borrowed(&step.file),
            is_numbered: step.file.contains("{n}"),
            slot: Slot(0),
            burst: Vec::new().into_iter(),
            began: now,
            stage: Stage::Due,
        })
    }

    pub(super) fn advance(&mut self, state: &mut State, now: Nanos) -> Result<Turn<'s>, String> {
        let step = self.step;
        loop {
            match self.stage {
                Stage::Due => {
                    let due = step.rate.map_or(self.start, |rate| later(self.start, rate.due(self.n)));
                    if self.end.is_reached(self.n, due, now) {
                        return Ok(Turn::Pop);
                    }
                    self.stage = Stage::Open;
                    return Ok(Turn::Op(Op::SleepUntil(due)));
                }
                Stage::Open => {
                    self.began = now;
                    if self.is_numbered {
                        self.path = Cow::Owned(fill(&step.file, 'n', self.n % step.files.unwrap_or(1).max(1)));
                    }
                    self.stage = Stage::Map;
                    if self.is_numbered || self.n == 0 {
                        let (slot, open) = state.open(&self.path, Way::WRITE);
                        self.slot = slot;
                        if let Some(open) = open {
                            return Ok(Turn::Op(open));
                        }
                    }
                }
                Stage::Map => {
                    let (size, pages) = (step.size.bytes(), self.pages.max(1));
                    let cursor = state.file(self.slot).cursor;
                    let touched = match step.order {
                        Order::Random => state.random.distinct(step.pages, self.pages),
                        Order::Sequential | Order::Append => (0..step.pages).map(|k| (cursor + k) % pages).collect(),
                    };
                    self.burst = touched.into_iter();
                    self.stage = Stage::Store;
                    let file = state.file(self.slot);
                    file.cursor = (cursor + step.pages) % pages;
                    if file.mapped < size {
                        file.mapped = size;
                        return Ok(Turn::Op(Op::Map { slot: self.slot, size }));
                    }
                }
                Stage::Store => match self.burst.next() {
                    Some(page) => {
                        let length = step.store.bytes().min(PAGE);
                        return Ok(Turn::Op(Op::Store { slot: self.slot, page, length }));
                    }
                    None => {
                        self.stage = Stage::Synced;
                        if let Some(call) = self.durable.due(self.n, now) {
                            return Ok(Turn::Op(state.durable_at(call, Target::Open(self.slot), &self.path)?));
                        }
                    }
                },
                Stage::Synced => {
                    self.stage = Stage::Ended;
                    return Ok(Turn::Op(Op::EndOfRound(self.began)));
                }
                Stage::Ended => {
                    self.n += 1;
                    self.stage = Stage::Due;
                }
            }
        }
    }
}
