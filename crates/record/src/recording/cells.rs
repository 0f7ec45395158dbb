// SPDX-License-Identifier: MIT OR Apache-2.0
//! One column of a table, folded over its samples. A reading that moves on costs little: that of a counter is added to,
//! and what it grew by is counted when it steps back, is lost, or ends. What a column adds up to is what
//! [`crate::metric::Row::fold`] makes of the same readings row by row.

use super::column::{self, Set};
use super::columns::Slots;
use super::table::Scratch;
use super::wire::{Cursor, Malformed};
use crate::metric::{COUNTER_MAX, MetricKind, step};

/// Readings of one column by slot. The fields that each reading moves are apart from the others.
#[derive(Debug)]
pub(super) struct Cells {
    is_counter: bool,
    /// The last reading of the file, where there is one.
    now: Vec<u64>,
    state: Vec<State>,
    /// Slots that run. If all do, as on most hosts, no step asks for the state of its slot.
    running: usize,
    /// Smallest and largest reading. Of a counter that runs without those since its `base`.
    range: Vec<(u64, u64)>,
    rest: Vec<Rest>,
    /// Working memory: slots whose reading of this sample is no step ahead of one that counts, and the readings.
    odd: Vec<(usize, u64)>,
    /// Working memory: slots that gained a reading in this sample.
    gained: Vec<usize>,
}

/// Whether a row has a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has none.
    Absent,
    /// It has one since this sample, and its step is still to be read.
    Gained,
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
        Cells {
            is_counter,
            now: Vec::new(),
            state: Vec::new(),
            running: 0,
            range: Vec::new(),
            rest: Vec::new(),
            odd: Vec::new(),
            gained: Vec::new(),
        }
    }

    /// Adds slots without a reading, up to a number of them.
    pub(super) fn grow(&mut self, slots: usize) {
        self.now.resize(slots, 0);
        self.state.resize(slots, State::Absent);
        self.range.resize(slots, (0, 0));
        self.rest.resize(slots, Rest::default());
    }

    /// Returns the number of slots that have a reading that counts.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// Returns the present readings of all slots, in order.
    pub(super) fn all_now(&self) -> impl Iterator<Item = Option<u64>> {
        self.now.iter().zip(&self.state).map(|(now, state)| (*state != State::Absent).then_some(*now))
    }

    /// Marks the slots that have a present reading.
    pub(super) fn mark_present(&self, marks: &mut [bool]) {
        marks.iter_mut().zip(&self.state).for_each(|(mark, state)| *mark |= *state != State::Absent);
    }

    /// Returns the present reading of a slot.
    #[inline]
    pub(super) fn now(&self, slot: usize) -> Option<u64> {
        self.now.get(slot).copied().filter(|_| self.state.get(slot).is_some_and(|state| *state != State::Absent))
    }

    /// Forgets the reading of a row that is gone or has lost it: `sample` has none.
    #[inline]
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
    #[inline]
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
        self.running = self.running.saturating_sub(1);
    }

    /// Begins a run with the present reading, if it counts.
    #[inline]
    fn begin(&mut self, slot: usize, sample: u32) {
        let is_counter = self.is_counter;
        let Some((now, state, range, rest)) = self.slot(slot) else { return };
        let now = *now;
        if !matches!(state, State::Gained | State::Odd) {
            return;
        }
        if is_counter && now > COUNTER_MAX {
            *state = State::Odd;
            return;
        }
        (rest.since, rest.base, *state) = (sample, now, State::Runs);
        if rest.is_read {
            if is_counter {
                rest.growth = rest.growth.saturating_add(step(rest.last, now));
            }
            *range = (range.0.min(now), range.1.max(now));
        } else {
            (rest.is_read, rest.first, *range) = (true, now, (now, now));
        }
        self.running += 1;
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

    /// Reads the column of one sample.
    pub(super) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        Scratch { positions, steps, .. }: &mut Scratch,
        rows: Slots<'_>,
        sample: u32,
    ) -> Result<(), Malformed> {
        let count = rows.count();
        let modes = column::modes(cursor)?;
        positions.get(cursor, modes.toggled, count)?.each(|at| {
            if let Some(slot) = rows.of(at) {
                self.toggle(slot, sample);
            }
        });
        let changed = positions.get(cursor, modes.changed, count)?;
        let steps_due = changed.count();
        if steps_due > 0 {
            let divisor = column::divisor(cursor)?;
            steps.resize(steps_due, 0);
            cursor.varints(steps, |written| column::step(written, divisor))?;
            let steps = steps.as_slice();
            match (self.is_counter, rows) {
                (true, Slots::InOrder(_)) => self.steps::<true>(changed, steps, true, |at| Some(at as usize)),
                (true, Slots::Of(_)) => self.steps::<true>(changed, steps, false, |at| rows.of(at)),
                (false, Slots::InOrder(_)) => self.steps::<false>(changed, steps, true, |at| Some(at as usize)),
                (false, Slots::Of(_)) => self.steps::<false>(changed, steps, false, |at| rows.of(at)),
            }
        }
        let mut odd = std::mem::take(&mut self.odd);
        for (slot, to) in odd.drain(..) {
            self.take(slot, to, sample);
        }
        self.odd = odd;
        // After the steps: a gained reading that is zero has none.
        let mut gained = std::mem::take(&mut self.gained);
        gained.drain(..).for_each(|slot| self.begin(slot, sample));
        self.gained = gained;
        Ok(())
    }

    /// Takes the steps of the rows that changed. Slots at which a run does not just go on are left for later.
    #[inline]
    fn steps<const COUNTER: bool>(
        &mut self,
        changed: Set<'_>,
        steps: &[u64],
        in_order: bool,
        slot_of: impl Fn(u32) -> Option<usize>,
    ) {
        let all_run = self.running == self.state.len();
        let Cells { now, state, range, odd, .. } = self;
        let (now, state, range) = (now.as_mut_slice(), state.as_slice(), range.as_mut_slice());
        // Where every row of a table has a step, none is looked up. The slot of each row is then its position.
        if all_run && in_order && steps.len() == now.len() {
            return go_on::<COUNTER>(now, range, steps, odd);
        }
        let mut steps = steps.iter();
        if all_run {
            return changed.each(|at| {
                let (Some(by), Some(slot)) = (steps.next(), slot_of(at)) else { return };
                let (Some(now), Some(range)) = (now.get_mut(slot), range.get_mut(slot)) else { return };
                if let Some(to) = go_on_by::<COUNTER>(now, range, *by) {
                    put_aside(odd, slot, to);
                }
            });
        }
        changed.each(|at| {
            let (Some(by), Some(slot)) = (steps.next(), slot_of(at)) else { return };
            let (Some(now), Some(state)) = (now.get_mut(slot), state.get(slot)) else { return };
            let to = now.wrapping_add(*by);
            match state {
                State::Runs if !COUNTER => {
                    *now = to;
                    if let Some(range) = range.get_mut(slot) {
                        *range = (range.0.min(to), range.1.max(to));
                    }
                }
                State::Runs if *now <= to && to <= COUNTER_MAX => *now = to,
                // The reading of a row without one is zero.
                State::Gained => *now = to,
                State::Absent => {}
                State::Runs | State::Odd => odd.push((slot, to)),
            }
        });
    }

    fn toggle(&mut self, slot: usize, sample: u32) {
        match self.state.get_mut(slot) {
            Some(state @ State::Absent) => {
                *state = State::Gained;
                self.gained.push(slot);
            }
            Some(_) => self.lose(slot, sample),
            None => {}
        }
    }

    /// Takes a reading that begins a run, or one of a counter that steps back or leaves the range of a counter.
    fn take(&mut self, slot: usize, to: u64, sample: u32) {
        match self.state.get(slot) {
            Some(State::Runs) => self.jump(slot, to, sample),
            Some(State::Odd) => {
                if let Some(now) = self.now.get_mut(slot) {
                    *now = to;
                }
                self.begin(slot, sample);
            }
            _ => {}
        }
    }
}

/// Takes a step of every slot. All of them run. `range` has a pair for each slot.
#[inline]
fn go_on<const COUNTER: bool>(now: &mut [u64], range: &mut [(u64, u64)], steps: &[u64], odd: &mut Vec<(usize, u64)>) {
    for (slot, ((now, range), by)) in now.iter_mut().zip(range).zip(steps).enumerate() {
        if let Some(to) = go_on_by::<COUNTER>(now, range, *by) {
            put_aside(odd, slot, to);
        }
    }
}

/// Takes a step of a slot that runs. Does not take the reading of a counter that stepped back or left the range of counters,
/// and returns it.
#[inline]
fn go_on_by<const COUNTER: bool>(now: &mut u64, range: &mut (u64, u64), by: u64) -> Option<u64> {
    let to = now.wrapping_add(by);
    if COUNTER {
        if to < *now || to > COUNTER_MAX {
            return Some(to);
        }
    } else {
        *range = (range.0.min(to), range.1.max(to));
    }
    *now = to;
    None
}

/// Leaves a slot for later.
#[cold]
#[inline(never)]
fn put_aside(odd: &mut Vec<(usize, u64)>, slot: usize, to: u64) {
    odd.push((slot, to));
}

impl Rest {
    /// Counts the growth of a counter that runs up to its present reading.
    fn settle(&mut self, now: u64, range: &mut (u64, u64)) {
        self.growth = self.growth.saturating_add(now.saturating_sub(self.base));
        self.base = now;
        range.1 = range.1.max(now);
    }
}
