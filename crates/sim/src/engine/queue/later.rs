// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of later spans of time, unordered within a span. Most are sorted once, among the few events of their
//! span, instead of among the events of every sleeper. Events beyond the ring of spans are in a heap; they are few,
//! as the pauses of the kernel end within 200 ms.

use super::Entry;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A span is 2^19 ns, half a millisecond: few events, also where thousands of programs run.
const SPAN_SHIFT: u32 = 19;
/// Spans of the ring: a quarter of a second.
const SPANS: usize = 512;
/// Words of a bitmap with one bit per span.
const WORDS: usize = SPANS / 64;

/// Unsorted events by span of time.
#[derive(Debug)]
pub(super) struct Later {
    /// The present span, whose events are in `near` of the queue.
    present: u64,
    /// First event of each later span, at the number of the span modulo the size of the ring.
    first: [Option<u32>; SPANS],
    /// Bitmap of the spans that have events.
    has: [u64; WORDS],
    /// Events, each linked to the next one of its span, and free cells.
    cells: Vec<(Entry, Option<u32>)>,
    free: Option<u32>,
    far: BinaryHeap<Reverse<Entry>>,
}

impl Default for Later {
    fn default() -> Later {
        let first = [None; SPANS];
        Later { present: 0, first, has: [0; WORDS], cells: Vec::new(), free: None, far: BinaryHeap::new() }
    }
}

/// Index of a span in the ring.
fn number_of(span: u64) -> usize {
    (span % SPANS as u64) as usize
}

/// The span that a moment is in.
fn span_of(at: u64) -> u64 {
    at >> SPAN_SHIFT
}

impl Later {
    /// Sets the present span to that of a moment. There must be no events.
    pub(super) fn come_to(&mut self, at: u64) {
        self.present = span_of(at);
    }

    /// Whether a moment is in a later span.
    pub(super) fn is_later(&self, at: u64) -> bool {
        span_of(at) > self.present
    }

    /// Keeps an event of a later span.
    pub(super) fn keep(&mut self, entry: Entry) {
        let span = span_of(entry.at);
        if span - self.present >= SPANS as u64 {
            self.far.push(Reverse(entry));
            return;
        }
        let number = number_of(span);
        let next = self.first[number];
        let cell = match self.free {
            Some(cell) => {
                self.free = std::mem::replace(&mut self.cells[cell as usize], (entry, next)).1;
                cell
            }
            None => {
                self.cells.push((entry, next));
                u32::try_from(self.cells.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.first[number] = Some(cell);
        self.has[number / 64] |= 1 << (number % 64);
    }

    /// Goes on to the next span that has events, if any, and moves them in order to `near`, which must be empty.
    pub(super) fn next_span(&mut self, near: &mut Vec<Entry>) {
        let far = self.far.peek().map(|Reverse(entry)| span_of(entry.at));
        let Some(next) = self.next_in_ring().into_iter().chain(far).min() else { return };
        self.present = next;
        let number = number_of(next);
        let mut at = self.first[number].take();
        self.has[number / 64] &= !(1 << (number % 64));
        near.clear();
        while let Some(cell) = at {
            let (entry, next) = &mut self.cells[cell as usize];
            near.push(*entry);
            at = std::mem::replace(next, self.free.replace(cell));
        }
        while let Some(Reverse(entry)) = self.far.peek().copied().filter(|far| span_of(far.0.at) == next) {
            near.push(entry);
            self.far.pop();
        }
        // They were pushed mostly in order, and are unlinked in reverse.
        near.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// The next span of the ring that has events.
    fn next_in_ring(&self) -> Option<u64> {
        let from = number_of(self.present + 1);
        let (word, bit) = (from / 64, from % 64);
        // The word of the next span is scanned first, from that span on, and again last, up to that span.
        let later = self.has[word] >> bit << bit;
        let words = (1..=WORDS).map(|ahead| ((word + ahead) % WORDS, self.has[(word + ahead) % WORDS]));
        let (word, has) = std::iter::once((word, later)).chain(words).find(|(_, has)| *has != 0)?;
        let found = word * 64 + has.trailing_zeros() as usize;
        Some(self.present + 1 + ((found + SPANS - from) % SPANS) as u64)
    }
}
