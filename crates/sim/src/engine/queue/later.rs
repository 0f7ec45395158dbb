// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of later spans of time, in no order within a span: most are put in order once, with the few of their
//! span, and not against every sleeper of the machine. What is further off than the ring of spans reaches is in a
//! heap, but that is little: the pauses of the kernel end within 200 ms.

use super::Entry;
use std::collections::BinaryHeap;

/// A span is 2^20 ns, a millisecond.
const SPAN_SHIFT: u32 = 20;
/// Spans of the ring: a quarter of a second.
const SPANS: u64 = 256;
/// Spans in one word of the bits that say which are empty.
const WORD: u64 = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Later {
    /// The present span, whose events are elsewhere.
    present: u64,
    /// First events of the next spans, by the number of the span modulo their number.
    first: Ring,
    /// Which of them have any.
    has: [u64; (SPANS / WORD) as usize],
    /// Events, each with the next one of its span; free cells as well.
    cells: Vec<(Entry, Option<u32>)>,
    free: Option<u32>,
    far: BinaryHeap<Entry>,
}

/// The first cell of each span.
#[derive(Debug)]
struct Ring([Option<u32>; SPANS as usize]);

impl Default for Ring {
    fn default() -> Ring {
        Ring([None; SPANS as usize])
    }
}

/// The span that a moment is in.
fn span_of(at: u64) -> u64 {
    at >> SPAN_SHIFT
}

impl Later {
    /// The span of a moment is the present one, as there are no events at all.
    pub(super) fn come_to(&mut self, at: u64) {
        self.present = span_of(at);
    }

    /// Keeps an event of a later span; gives back one that is not.
    pub(super) fn keep(&mut self, entry: Entry) -> Option<Entry> {
        let span = span_of(entry.at);
        if span <= self.present {
            return Some(entry);
        }
        if span - self.present >= SPANS {
            self.far.push(entry);
            return None;
        }
        let (number, next) = ((span % SPANS) as usize, self.first.0[(span % SPANS) as usize]);
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
        self.first.0[number] = Some(cell);
        self.has[number / WORD as usize] |= 1 << (number as u64 % WORD);
        None
    }

    /// Comes to the next span that has events, if any has, and moves them to `span` in order, the first one last.
    pub(super) fn next_span(&mut self, span: &mut Vec<Entry>) {
        let far = self.far.peek().map(|entry| span_of(entry.at));
        let Some(next) = self.next_in_ring().into_iter().chain(far).min() else { return };
        self.present = next;
        let number = (next % SPANS) as usize;
        // The cells of a span that was come to by way of the heap alone are none, as of any other that is empty.
        let mut at = self.first.0[number].take();
        self.has[number / WORD as usize] &= !(1 << (number as u64 % WORD));
        while let Some(cell) = at {
            let (entry, next) = &mut self.cells[cell as usize];
            span.push(*entry);
            at = std::mem::replace(next, self.free.replace(cell));
        }
        while let Some(entry) = self.far.peek().copied().filter(|entry| span_of(entry.at) == next) {
            span.push(entry);
            self.far.pop();
        }
        // They were pushed mostly in order, and come out the other way round: little is left to do.
        span.sort_unstable();
    }

    /// The next span of the ring that has events.
    fn next_in_ring(&self) -> Option<u64> {
        let from = self.present + 1;
        // Each word from the bits after the present one on, and the first once more for those before.
        (0..=SPANS / WORD).find_map(|step| {
            let word = from / WORD + step;
            let bits = self.has[(word % (SPANS / WORD)) as usize];
            let bits = if step == 0 { bits & (u64::MAX << (from % WORD)) } else { bits };
            (bits != 0).then(|| word * WORD + u64::from(bits.trailing_zeros()))
        })
    }
}
