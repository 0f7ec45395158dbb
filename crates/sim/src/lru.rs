// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order in which reclaim scans the file pages of one owner, oldest first, as runs of pages of one inode. There
//! are millions of runs when many programs write at once, so runs are small and kept in pieces: a growing list
//! copies nothing and leaves at most one piece unused. Stands for struct lruvec (include/linux/mmzone.h); the page
//! cache records which pages are active.

use crate::arena::InodeId;
use std::collections::VecDeque;

/// Longest run, pages.
const RUN_MAX: u64 = 1 << 15;
/// Runs in one piece of the list, 10 KiB.
const PIECE: usize = 1024;

/// A run of pages in 10 bytes instead of 12: its numbers of 32 bits are stored in halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed {
    inode: [u16; 2],
    /// Low bits of its first page; the piece has the high bits of all its runs.
    start: [u16; 2],
    len: u16,
}

/// A piece of the list.
#[derive(Debug, Default)]
struct Piece {
    /// First pages of its runs in units of 2^32: 0 except in files of more than 16 TiB.
    high: u16,
    runs: VecDeque<Packed>,
}

/// A run of pages of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) inode: InodeId,
    pub(crate) start: u64,
    /// Pages, at most 65,535.
    pub(crate) len: u64,
}

/// A number in halves, the low one first.
fn halves(number: u32) -> [u16; 2] {
    [(number & u32::from(u16::MAX)) as u16, (number >> 16) as u16]
}

fn whole([low, high]: [u16; 2]) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

impl Packed {
    fn new(run: &Run) -> Packed {
        Packed {
            inode: halves(run.inode.0),
            start: halves((run.start & u64::from(u32::MAX)) as u32),
            len: u16::try_from(run.len).unwrap_or(u16::MAX),
        }
    }

    fn run(self, high: u16) -> Run {
        let start = u64::from(high) << 32 | u64::from(whole(self.start));
        Run { inode: InodeId(whole(self.inode)), start, len: u64::from(self.len) }
    }
}

impl Run {
    /// High bits of its first page, which its piece stores. The largest file has 2^48 pages.
    fn high(&self) -> u16 {
        u16::try_from(self.start >> 32).unwrap_or(u16::MAX)
    }
}

impl Piece {
    fn has_room(&self, run: &Run) -> bool {
        self.runs.is_empty() || self.runs.len() < PIECE && self.high == run.high()
    }
}

/// The runs of one owner, in the order in which reclaim scans them.
#[derive(Debug, Default)]
pub(crate) struct Lru {
    /// No piece is empty, except if it is the only one.
    pieces: VecDeque<Piece>,
    len: usize,
}

impl Lru {
    /// Number of runs.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds pages that are scanned last.
    pub(crate) fn push_back(&mut self, inode: InodeId, start: u64, len: u64) {
        let (mut at, end) = (start, start + len);
        while at < end {
            let some = (end - at).min(RUN_MAX);
            self.push_run_back(Run { inode, start: at, len: some });
            at += some;
        }
    }

    fn push_run_back(&mut self, run: Run) {
        if let Some(piece) = self.pieces.back_mut() {
            let high = piece.high;
            if let Some(last) = piece.runs.back_mut()
                && let Some(joined) = join(last.run(high), run)
            {
                last.len = Packed::new(&joined).len;
                return;
            }
            if piece.has_room(&run) {
                piece.high = run.high();
                piece.runs.push_back(Packed::new(&run));
                self.len += 1;
                return;
            }
        }
        self.pieces.push_back(Piece { high: run.high(), runs: VecDeque::from([Packed::new(&run)]) });
        self.len += 1;
    }

    /// Adds pages that are scanned next. If the first run ends where they start, appends them to it.
    pub(crate) fn push_next(&mut self, inode: InodeId, start: u64, len: u64) {
        let next = self.pieces.front_mut().and_then(|piece| Some((piece.high, piece.runs.front_mut()?)));
        if let Some((high, next)) = next
            && let Some(joined) = join(next.run(high), Run { inode, start, len })
        {
            *next = Packed::new(&joined);
            return;
        }
        self.push_front(inode, start, len);
    }

    /// Adds pages that are scanned next, before all others.
    pub(crate) fn push_front(&mut self, inode: InodeId, start: u64, len: u64) {
        let mut end = start + len;
        while end > start {
            let some = (end - start).min(RUN_MAX);
            end -= some;
            self.push_run_front(Run { inode, start: end, len: some });
        }
    }

    fn push_run_front(&mut self, run: Run) {
        if !self.pieces.front().is_some_and(|piece| piece.has_room(&run)) {
            self.pieces.push_front(Piece::default());
        }
        if let Some(piece) = self.pieces.front_mut() {
            piece.high = run.high();
            piece.runs.push_front(Packed::new(&run));
            self.len += 1;
        }
    }

    /// Takes out the run to scan next.
    pub(crate) fn pop_front(&mut self) -> Option<Run> {
        let piece = self.pieces.front_mut()?;
        let run = piece.runs.pop_front()?.run(piece.high);
        self.len -= 1;
        if piece.runs.is_empty() && self.pieces.len() > 1 {
            self.pieces.pop_front();
        }
        Some(run)
    }

    /// Drops the runs for which `stays` returns false.
    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&Run) -> bool) {
        for piece in &mut self.pieces {
            piece.runs.retain(|packed| stays(&packed.run(piece.high)));
        }
        self.pieces.retain(|piece| !piece.runs.is_empty());
        self.len = self.pieces.iter().map(|piece| piece.runs.len()).sum();
    }
}

/// Joins a run with one that follows it in its inode.
fn join(one: Run, next: Run) -> Option<Run> {
    let is_joint = one.inode == next.inode && one.start + one.len == next.start && one.len + next.len <= RUN_MAX;
    is_joint.then_some(Run { len: one.len + next.len, ..one })
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::Random;

    /// Reference model: a list of single pages.
    #[derive(Default)]
    struct Pages(VecDeque<(InodeId, u64)>);

    fn pages(lru: &mut Lru) -> Vec<(InodeId, u64)> {
        std::iter::from_fn(|| lru.pop_front())
            .flat_map(|run| (run.start..run.start + run.len).map(move |page| (run.inode, page)))
            .collect()
    }

    #[test]
    fn runs_are_what_pages_would_be() {
        let mut random = Random::new(3);
        for round in 0..40 {
            let (mut lru, mut plain) = (Lru::default(), Pages::default());
            for _ in 0..4000 {
                let (inode, len) = (InodeId(random.below(3) as u32), 1 + random.below(5));
                let start = if round % 2 == 0 { random.below(1 << 34) } else { random.below(40) };
                match random.below(8) {
                    0 => {
                        if let Some(run) = lru.pop_front() {
                            for page in run.start..run.start + run.len {
                                assert_eq!(plain.0.pop_front(), Some((run.inode, page)));
                            }
                        }
                    }
                    1 => {
                        // As reclaim puts back pages that it did not take.
                        if let Some(run) = lru.pop_front() {
                            lru.push_front(run.inode, run.start, run.len);
                        }
                    }
                    _ => {
                        lru.push_back(inode, start, len);
                        plain.0.extend((start..start + len).map(|page| (inode, page)));
                    }
                }
            }
            lru.retain(|run| run.inode != InodeId(1));
            plain.0.retain(|(inode, _)| *inode != InodeId(1));
            assert!(plain.0 == pages(&mut lru), "round {round}");
            assert_eq!(lru.len(), 0);
        }
    }

    #[test]
    fn long_runs_are_kept_in_order() {
        let mut lru = Lru::default();
        lru.push_back(InodeId(1), 10, 5 * RUN_MAX / 2);
        lru.push_front(InodeId(2), 1 << 40, 3 * RUN_MAX / 2);
        let found = pages(&mut lru);
        let expected = ((1 << 40)..(1 << 40) + 3 * RUN_MAX / 2).map(|page| (InodeId(2), page));
        assert!(found == expected.chain((10..10 + 5 * RUN_MAX / 2).map(|page| (InodeId(1), page))).collect::<Vec<_>>());
    }
}
