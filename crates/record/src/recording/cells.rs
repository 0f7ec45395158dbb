// SPDX-License-Identifier: MIT OR Apache-2.0
//! One column of a table, folded over its samples. A reading that moves on costs little: that of a counter is added to,
//! and what it grew by is counted when it steps back, is lost, or ends. What a column adds up to is what
//! [`crate::metric::Row::fold`] makes of the same readings row by row.

use super::column::{self, Positions};
use super::columns::Slots;
use super::limits::Stop;
use super::wire::Cursor;
use crate::metric::{COUNTER_MAX, MetricKind, step};

/// Readings of one column by slot. The fields that each reading moves are apart from the others.
#[derive(Debug)]
pub(super) struct Cells {
    is_counter: bool,
    /// The last reading of the file, where there is one.
    now: Vec<u64>,
    state: Vec<State>,
    /// Smallest and largest reading. Of a counter that runs without those since its `base`.
    range: Vec<(u64, u64)>,
    rest: Vec<Rest>,
}

/// Whether a row has a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has none.
    Absent,
    /// It has one that does not count: no counter reaches it.
    Odd,
    /// It has one that counts.
    Runs,
}

/// What changes only where a run of readings begins or ends, or a counter steps back.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    /// Whether there was a reading that counts.
    is_read: bool,
    /// Sample of the table at which the present run of readings began, from 1.
    since: u32,
    /// Readings of the runs before it.
    readings: u32,
    first: u64,
    /// The last reading of the runs before, if none runs.
    last: u64,
    /// Reading up to which `growth` is counted.
    base: u64,
    growth: u64,
}

/// All readings of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Folded {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    /// Of a counter with two readings.
    pub(super) growth: Option<u64>,
}

impl Cells {
    /// No slots.
    pub(super) fn new(kind: MetricKind) -> Cells {
        let is_counter = kind == MetricKind::Counter;
        Cells { is_counter, now: Vec::new(), state: Vec::new(), range: Vec::new(), rest: Vec::new() }
    }

    /// Adds a slot without a reading.
    pub(super) fn push(&mut self) {
        self.now.push(0);
        self.state.push(State::Absent);
        self.range.push((0, 0));
        self.rest.push(Rest::default());
    }

    /// Returns the present reading of a slot.
    pub(super) fn now(&self, slot: usize) -> Option<u64> {
        self.now.get(slot).copied().filter(|_| self.state.get(slot).is_some_and(|state| *state != State::Absent))
    }

    /// Forgets the reading of a row that is gone or has lost it: `sample` has none.
    pub(super) fn lose(&mut self, slot: usize, sample: u32) {
        self.end(slot, sample);
        if let (Some(now), Some(state)) = (self.now.get_mut(slot), self.state.get_mut(slot)) {
            (*now, *state) = (0, State::Absent);
        }
    }

    /// Returns what the readings of a slot add up to, where `next` is the sample after the last.
    pub(super) fn folded(&self, slot: usize, next: u32) -> Option<Folded> {
        let rest = self.rest.get(slot).filter(|rest| rest.is_read)?;
        let (now, (min, max)) = (*self.now.get(slot)?, *self.range.get(slot)?);
        let runs = *self.state.get(slot)? == State::Runs;
        let run = if runs { next.saturating_sub(rest.since) } else { 0 };
        let grown = if runs { now.saturating_sub(rest.base) } else { 0 };
        let is_grown = self.is_counter && rest.readings.saturating_add(run) > 1;
        Some(Folded {
            first: rest.first,
            last: if runs { now } else { rest.last },
            min,
            max: if runs { max.max(now) } else { max },
            growth: is_grown.then(|| rest.growth.saturating_add(grown)),
        })
    }

    /// Ends the run of readings of a slot, if there is one: `sample` has none.
    fn end(&mut self, slot: usize, sample: u32) {
        let is_counter = self.is_counter;
        let Some((now, state, range, rest)) = self.slot(slot).filter(|(_, state, ..)| **state == State::Runs) else {
            return;
        };
        if is_counter {
            rest.settle(*now, range);
        }
        rest.last = *now;
        rest.readings = rest.readings.saturating_add(sample.saturating_sub(rest.since));
        *state = State::Odd;
    }

    /// Begins a run with the present reading, if it counts.
    fn begin(&mut self, slot: usize, sample: u32) {
        let is_counter = self.is_counter;
        let Some((now, state, range, rest)) = self.slot(slot) else { return };
        let now = *now;
        if *state != State::Odd || (is_counter && now > COUNTER_MAX) {
            return;
        }
        (rest.since, rest.base, *state) = (sample, now, State::Runs);
        if !rest.is_read {
            (rest.is_read, rest.first, *range) = (true, now, (now, now));
            return;
        }
        if is_counter {
            rest.growth = rest.growth.saturating_add(step(rest.last, now));
        }
        *range = (range.0.min(now), range.1.max(now));
    }

    /// Takes a reading of a counter that runs, and which stepped back or left the range of a counter.
    #[cold]
    fn jump(&mut self, slot: usize, to: u64, sample: u32) {
        if to > COUNTER_MAX {
            self.end(slot, sample);
        }
        let Some((now, state, range, rest)) = self.slot(slot) else { return };
        if *state == State::Runs {
            rest.settle(*now, range);
            rest.growth = rest.growth.saturating_add(step(*now, to));
            (rest.base, *range) = (to, (range.0.min(to), range.1.max(to)));
        }
        *now = to;
    }

    fn slot(&mut self, slot: usize) -> Option<(&mut u64, &mut State, &mut (u64, u64), &mut Rest)> {
        let Cells { now, state, range, rest, .. } = self;
        Some((now.get_mut(slot)?, state.get_mut(slot)?, range.get_mut(slot)?, rest.get_mut(slot)?))
    }

    /// Reads the column of one sample. `toggled` is working memory.
    pub(super) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        positions: &mut Positions,
        rows: Slots<'_>,
        toggled: &mut Vec<u32>,
        sample: u32,
    ) -> Result<(), Stop> {
        match self.is_counter {
            true => self.read_as::<true>(cursor, positions, rows, toggled, sample),
            false => self.read_as::<false>(cursor, positions, rows, toggled, sample),
        }
    }

    fn read_as<const COUNTER: bool>(
        &mut self,
        cursor: &mut Cursor<'_>,
        positions: &mut Positions,
        rows: Slots<'_>,
        toggled: &mut Vec<u32>,
        sample: u32,
    ) -> Result<(), Stop> {
        toggled.clear();
        let mut into = (&mut *self, &mut *toggled);
        column::get(
            cursor,
            positions,
            rows.count(),
            &mut into,
            |(cells, toggled), at| {
                toggled.push(at);
                if let Some(slot) = rows.of(at) {
                    cells.toggle(slot, sample);
                }
            },
            |(cells, _), at, step| {
                if let Some(slot) = rows.of(at) {
                    cells.step::<COUNTER>(slot, step, sample);
                }
            },
        )?;
        // A gained reading that is zero has no step.
        for slot in toggled.drain(..).filter_map(|at| rows.of(at)) {
            self.begin(slot, sample);
        }
        Ok(())
    }

    fn toggle(&mut self, slot: usize, sample: u32) {
        match self.state.get_mut(slot) {
            Some(state @ State::Absent) => *state = State::Odd,
            Some(_) => self.lose(slot, sample),
            None => {}
        }
    }

    #[inline]
    fn step<const COUNTER: bool>(&mut self, slot: usize, by: u64, sample: u32) {
        let (Some(now), Some(state)) = (self.now.get_mut(slot), self.state.get(slot)) else { return };
        let to = now.wrapping_add(by);
        match state {
            State::Runs if COUNTER => match (*now..=COUNTER_MAX).contains(&to) {
                true => *now = to,
                false => self.jump(slot, to, sample),
            },
            State::Runs => {
                *now = to;
                if let Some(range) = self.range.get_mut(slot) {
                    *range = (range.0.min(to), range.1.max(to));
                }
            }
            State::Odd => {
                *now = to;
                self.begin(slot, sample);
            }
            State::Absent => {}
        }
    }
}

impl Rest {
    /// Counts the growth of a counter that runs up to its present reading.
    fn settle(&mut self, now: u64, range: &mut (u64, u64)) {
        self.growth = self.growth.saturating_add(now.saturating_sub(self.base));
        self.base = now;
        range.1 = range.1.max(now);
    }
}
