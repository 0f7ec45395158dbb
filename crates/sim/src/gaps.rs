// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of a file that have no data on its device although the file goes on beyond them: holes, which have no blocks,
//! and blocks that are allocated but unwritten. Both read as zeros without the device (`iomap_iter`, `ext4_map_blocks`).
//! A write gives a hole its blocks. It converts unwritten blocks in a transaction that fdatasync has to commit.

use crate::inode::Inode;
use crate::world::PAGE;
use std::collections::BTreeMap;
use std::ops::Range;

/// What there is instead of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    Hole,
    Unwritten,
}

/// Runs of pages without data, before the end of a file's blocks; by their first page, with their end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps(BTreeMap<u64, (u64, Gap)>);

impl Gaps {
    /// Every run within a range, cut to it.
    fn within(&self, pages: Range<u64>) -> impl Iterator<Item = (Range<u64>, Gap)> + '_ {
        let first = self.0.range(..=pages.start).next_back().map_or(pages.start, |(start, _)| *start);
        let runs = self.0.range(first..pages.end.max(first)).map(|(start, (end, gap))| (*start..*end, *gap));
        let cut = runs.map(move |(run, gap)| (run.start.max(pages.start)..run.end.min(pages.end), gap));
        cut.filter(|(run, _)| !run.is_empty())
    }

    /// Removes a range.
    fn remove(&mut self, pages: Range<u64>) {
        let whole: Vec<u64> = self.within(pages.clone()).map(|(run, _)| run.start).collect();
        for at in whole {
            let Some((&start, &(end, gap))) = self.0.range(..=at).next_back() else { continue };
            self.0.remove(&start);
            if start < pages.start {
                self.0.insert(start, (pages.start, gap));
            }
            if end > pages.end {
                self.0.insert(pages.end, (end, gap));
            }
        }
    }

    /// Adds a range, in place of what was there.
    fn add(&mut self, pages: Range<u64>, gap: Gap) {
        if pages.is_empty() {
            return;
        }
        self.remove(pages.clone());
        let before = self.0.range(..pages.start).next_back().filter(|(_, run)| **run == (pages.start, gap));
        let start = before.map_or(pages.start, |(start, _)| *start);
        let after = self.0.get(&pages.end).copied().filter(|(_, kind)| *kind == gap);
        if after.is_some() {
            self.0.remove(&pages.end);
        }
        self.0.insert(start, (after.map_or(pages.end, |(end, _)| end), gap));
    }
}

impl Inode {
    /// Runs of holes and unwritten blocks in a range of pages, before the end of its blocks.
    fn gaps_within(&self, pages: Range<u64>) -> impl Iterator<Item = (Range<u64>, Gap)> + '_ {
        self.gaps.iter().flat_map(move |gaps| gaps.within(pages.clone()))
    }

    /// Whether a page is on the device, and the page up to which the pages after it are alike, `end` at most.
    pub(crate) fn on_device(&self, page: u64, end: u64) -> (bool, u64) {
        if page >= self.allocated {
            return (false, end);
        }
        let end = end.min(self.allocated);
        match self.gaps_within(page..end).next() {
            None => (true, end),
            Some((gap, _)) if gap.start > page => (true, gap.start),
            // The run may go on as one of the other kind: its reader looks again there.
            Some((gap, _)) => (false, gap.end),
        }
    }

    pub(crate) fn is_on_device(&self, page: u64) -> bool {
        self.on_device(page, page + 1).0
    }

    /// The pages of a range around `page`, which is on the device, that are there too.
    pub(crate) fn on_device_around(&self, page: u64, pages: Range<u64>) -> Range<u64> {
        let before = self.gaps_within(pages.start..page).last();
        let start = before.map_or(pages.start, |(gap, _)| gap.end);
        start..if self.gaps.is_some() { self.on_device(page, pages.end).1 } else { pages.end }
    }

    /// Returns the pages of a range around `page` that are not on the device. `page` is one of them.
    pub(crate) fn without_data_around(&self, page: u64, pages: Range<u64>) -> Range<u64> {
        if page >= self.allocated {
            return self.allocated.max(pages.start)..pages.end;
        }
        let run = self.gaps_within(pages).map(|(run, _)| run).find(|run| run.contains(&page));
        run.unwrap_or(page..page + 1)
    }

    /// Parts of a range of bytes that are on the device, each with its offset and length.
    pub(crate) fn stretches(&self, offset: u64, len: u64) -> Vec<(u64, u64)> {
        let (mut at, end) = (offset, offset + len);
        let mut found = Vec::new();
        while at < end {
            let (is_there, until) = self.on_device(at / PAGE, end.div_ceil(PAGE));
            let until = end.min(until.saturating_mul(PAGE));
            if is_there {
                found.push((at, until - at));
            }
            at = until;
        }
        found
    }

    /// What a write of some pages changes: nothing if all of them have data.
    pub(crate) fn gap_in(&self, pages: Range<u64>) -> Option<Gap> {
        if pages.end > self.allocated {
            return Some(Gap::Hole);
        }
        let mut all = self.gaps_within(pages).map(|(_, gap)| gap);
        let first = all.next()?;
        if all.any(|gap| gap == Gap::Hole) { Some(Gap::Hole) } else { Some(first) }
    }

    /// Holes of a range before the end of its blocks.
    pub(crate) fn holes(&self, pages: Range<u64>) -> Vec<Range<u64>> {
        self.gaps_within(pages).filter(|(_, gap)| *gap == Gap::Hole).map(|(run, _)| run).collect()
    }

    /// Notes that pages get data on the device. A file whose blocks went on to an earlier page has a hole in between.
    pub(crate) fn fill(&mut self, pages: Range<u64>) {
        if pages.start > self.allocated && !pages.is_empty() {
            let hole = self.allocated..pages.start;
            self.gaps.get_or_insert_default().add(hole, Gap::Hole);
        }
        self.allocated = self.allocated.max(pages.end);
        if let Some(gaps) = &mut self.gaps {
            gaps.remove(pages);
        }
        self.forget_gaps();
    }

    /// Gives all holes before `end` blocks, unwritten ones.
    pub(crate) fn allocate(&mut self, end: u64) {
        let mut unwritten = self.holes(0..end);
        unwritten.push(self.allocated..end.max(self.allocated));
        self.allocated = self.allocated.max(end);
        for pages in unwritten.into_iter().filter(|pages| !pages.is_empty()) {
            self.gaps.get_or_insert_default().add(pages, Gap::Unwritten);
        }
    }

    /// Frees the blocks from `end` on.
    pub(crate) fn cut(&mut self, end: u64) {
        if let Some(gaps) = &mut self.gaps {
            gaps.remove(end..u64::MAX);
        }
        self.allocated = self.allocated.min(end);
        self.forget_gaps();
    }

    fn forget_gaps(&mut self) {
        self.gaps.take_if(|gaps| gaps.0.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::SbId;

    #[test]
    fn pages_are_alike_up_to_where_their_state_changes() {
        let mut inode = Inode::new(SbId(0), 0);
        inode.allocate(100);
        assert_eq!((inode.on_device(0, 200), inode.gap_in(0..10)), ((false, 100), Some(Gap::Unwritten)));
        inode.fill(10..20);
        assert_eq!(
            [0, 10, 20, 150].map(|page| inode.on_device(page, 200)),
            [(false, 10), (true, 20), (false, 100), (false, 200)]
        );
        assert_eq!(
            [10..20, 5..15, 99..101].map(|pages| inode.gap_in(pages)),
            [None, Some(Gap::Unwritten), Some(Gap::Hole)]
        );
        // A write beyond the end leaves a hole.
        inode.fill(300..310);
        assert_eq!(inode.holes(0..400), std::slice::from_ref(&(100..300)));
        assert_eq!(inode.gap_in(50..150), Some(Gap::Hole));
        assert_eq!(inode.on_device_around(305, 0..400), 300..310);
        let around = [0, 305, 320].map(|page| inode.without_data_around(page, 0..400));
        assert_eq!(around, [0..10, 305..306, 310..400], "a page with data is alone");
        inode.allocate(150);
        assert_eq!(inode.holes(0..400), std::slice::from_ref(&(150..300)));
        inode.cut(15);
        assert_eq!((inode.allocated, inode.on_device(10, 50)), (15, (true, 15)));
        inode.fill(0..10);
        assert!(inode.gaps.is_none(), "a file without gaps has no set of them");
    }
}
