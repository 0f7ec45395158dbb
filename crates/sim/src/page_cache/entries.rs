// SPDX-License-Identifier: MIT OR Apache-2.0
//! The extents of an inode sorted by first page, in pieces. An insertion or removal moves only the entries of its
//! piece, so a file of a million scattered pages costs as much per page as a small one. Most files have one piece,
//! which is stored apart: they use no room for others. `extent.rs` defines the entries.

use super::extent::{Extent, end_of};
use std::cell::Cell;

/// Most entries of a piece, 4 KiB.
const PIECE: usize = 128;
/// Two neighbouring pieces with at most this many entries each are merged.
const SPARSE: usize = PIECE / 4;

/// An extent by its first page.
pub(super) type Entry = (u64, Extent);

/// Two entries fill a cache line of 64 bytes: a search in large files mostly waits for memory.
const _: () = assert!(size_of::<Entry>() == 32);

/// The place of an entry. A change before it invalidates it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct At {
    piece: usize,
    entry: usize,
}

/// The extents of an inode in pieces. They do not overlap.
#[derive(Debug, Default)]
pub(super) struct Entries {
    first: Vec<Entry>,
    /// No piece here is empty.
    others: Vec<Vec<Entry>>,
    /// End of the last search: the next search mostly ends there too.
    last: Cell<At>,
}

impl Entries {
    fn piece(&self, number: usize) -> Option<&Vec<Entry>> {
        match number.checked_sub(1) {
            None => Some(&self.first),
            Some(other) => self.others.get(other),
        }
    }

    fn piece_mut(&mut self, number: usize) -> Option<&mut Vec<Entry>> {
        match number.checked_sub(1) {
            None => Some(&mut self.first),
            Some(other) => self.others.get_mut(other),
        }
    }

    /// The entry at a place, if there is one.
    pub(super) fn get(&self, at: At) -> Option<&Entry> {
        self.piece(at.piece)?.get(at.entry)
    }

    pub(super) fn get_mut(&mut self, at: At) -> Option<&mut Entry> {
        self.piece_mut(at.piece)?.get_mut(at.entry)
    }

    /// The last entry of all.
    pub(super) fn last(&self) -> Option<&Entry> {
        self.others.last().unwrap_or(&self.first).last()
    }

    /// The place after the last entry.
    pub(super) fn end(&self) -> At {
        At { piece: self.others.len(), entry: self.others.last().unwrap_or(&self.first).len() }
    }

    /// The place before another.
    pub(super) fn before(&self, at: At) -> Option<At> {
        if let Some(entry) = at.entry.checked_sub(1) {
            return Some(At { entry, ..at });
        }
        let piece = at.piece.checked_sub(1)?;
        Some(At { piece, entry: self.piece(piece)?.len().checked_sub(1)? })
    }

    /// The place after another, in its piece or at the start of the next.
    pub(super) fn after(&self, at: At) -> At {
        self.settled(At { entry: at.entry + 1, ..at })
    }

    /// Turns the end of a piece into the start of the next, if there is one.
    fn settled(&self, at: At) -> At {
        let is_at_end = self.piece(at.piece).is_some_and(|piece| at.entry >= piece.len());
        if is_at_end && at.piece < self.others.len() { At { piece: at.piece + 1, entry: 0 } } else { at }
    }

    /// The first entry that ends after a page.
    pub(super) fn at(&self, page: u64) -> At {
        let last = self.last.get();
        if self.is_at(last, page) {
            return last;
        }
        let is_before = |piece: &Vec<Entry>| piece.last().is_some_and(|entry| end_of(entry) <= page);
        let piece = match self.others.is_empty() || !is_before(&self.first) {
            true => 0,
            false => (1 + self.others.partition_point(is_before)).min(self.others.len()),
        };
        let entries = self.piece(piece).map_or(&[][..], Vec::as_slice);
        let at = At { piece, entry: entries.partition_point(|entry| end_of(entry) <= page) };
        self.last.set(at);
        at
    }

    /// Whether an entry is the first that ends after a page.
    fn is_at(&self, at: At, page: u64) -> bool {
        let ends_after = |entry: &Entry| end_of(entry) > page;
        let is_first = || match at.entry.checked_sub(1) {
            Some(entry) => self.piece(at.piece).and_then(|piece| piece.get(entry)).is_none_or(|one| !ends_after(one)),
            None => self.before(at).and_then(|before| self.get(before)).is_none_or(|one| !ends_after(one)),
        };
        self.get(at).is_some_and(ends_after) && is_first()
    }

    /// Every entry from a place on.
    pub(super) fn from(&self, at: At) -> impl Iterator<Item = &Entry> + Clone + '_ {
        let here = self.piece(at.piece).and_then(|piece| piece.get(at.entry..)).unwrap_or(&[]);
        here.iter().chain(self.others.get(at.piece..).unwrap_or(&[]).iter().flatten())
    }

    /// Puts an entry before the one at a place.
    pub(super) fn insert(&mut self, at: At, entry: Entry) {
        let at = if self.piece(at.piece).is_some_and(|piece| piece.len() >= PIECE) { self.split(at) } else { at };
        match self.piece_mut(at.piece) {
            Some(piece) => piece.insert(at.entry, entry),
            None => self.others.push(vec![entry]),
        }
    }

    /// Splits a full piece in two. Returns the new position of `at`. A list that grows at its end goes on in a new
    /// piece.
    fn split(&mut self, at: At) -> At {
        let is_at_end = at == self.end();
        let keeps = if is_at_end { PIECE } else { PIECE / 2 };
        let Some(piece) = self.piece_mut(at.piece) else { return at };
        let moved = piece.split_off(keeps);
        if !is_at_end {
            self.others.insert(at.piece, moved);
        }
        if at.entry > keeps || is_at_end { At { piece: at.piece + 1, entry: at.entry - keeps } } else { at }
    }

    /// Removes the entry at a place.
    pub(super) fn remove(&mut self, at: At) -> Option<Entry> {
        let piece = self.piece_mut(at.piece)?;
        let entry = (at.entry < piece.len()).then(|| piece.remove(at.entry))?;
        if piece.len() <= SPARSE {
            self.tidy(at.piece);
        }
        Some(entry)
    }

    /// Merges a piece of few entries with the next one if that has few as well. Removes an empty piece.
    fn tidy(&mut self, number: usize) {
        let Some(len) = self.piece(number).map(Vec::len) else { return };
        match number.checked_sub(1) {
            Some(other) if len == 0 => {
                self.others.remove(other);
            }
            None if len == 0 && !self.others.is_empty() => self.first = self.others.remove(0),
            _ if self.others.get(number).is_some_and(|next| next.len() <= SPARSE) => {
                let mut next = self.others.remove(number);
                if let Some(piece) = self.piece_mut(number) {
                    piece.append(&mut next);
                }
            }
            _ => {}
        }
    }

    /// Removes the entries from a place up to another one.
    pub(super) fn drain(&mut self, from: At, to: At) -> Vec<Entry> {
        let mut gone = Vec::new();
        if from.piece == to.piece {
            if let Some(piece) = self.piece_mut(from.piece).filter(|_| from.entry < to.entry) {
                gone.extend(piece.drain(from.entry..to.entry));
            }
        } else if from.piece < to.piece {
            if let Some(piece) = self.piece_mut(to.piece) {
                let rest = piece.split_off(to.entry.min(piece.len()));
                let last = std::mem::replace(piece, rest);
                if let Some(piece) = self.piece_mut(from.piece) {
                    gone.extend(piece.drain(from.entry..));
                }
                gone.extend(self.others.drain(from.piece..to.piece - 1).flatten());
                gone.extend(last);
            }
            self.tidy(from.piece + 1);
        }
        self.tidy(from.piece);
        gone
    }

    /// Size of the largest piece and number of pieces, for tests.
    #[cfg(test)]
    pub(super) fn pieces(&self) -> (usize, usize) {
        (self.others.iter().map(Vec::len).max().unwrap_or(0).max(self.first.len()), 1 + self.others.len())
    }
}
