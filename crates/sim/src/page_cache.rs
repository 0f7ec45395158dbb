// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cached pages of one inode as extents: runs of folios of one size, one owner and one state. A state changes
//! by whole folios, so extents give exactly what pages would, at the price of a few entries. Mirrors the page index
//! of mm/filemap.c and its tags; accounting is elsewhere.

mod entries;
mod extent;

pub(crate) use extent::{Age, DirtyRun, Extent};

use entries::{At, Entries, Entry};
use extent::{end_of, is_joint};

/// The cached pages of an inode, sorted by first page.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    extents: Entries,
    /// Page after the last.
    end: u64,
    /// Pages.
    pub(crate) pages: u64,
    /// Dirty pages.
    pub(crate) dirty: u64,
    /// Pages under writeback.
    pub(crate) writeback: u64,
}

impl PageCache {
    /// Whether no page is cached from `page` on.
    #[inline]
    pub(crate) fn ends_before(&self, page: u64) -> bool {
        page >= self.end
    }

    /// First entry that ends after `page`.
    #[inline]
    fn at(&self, page: u64) -> At {
        // Files are mostly read and written at their end.
        if self.ends_before(page) { self.extents.end() } else { self.extents.at(page) }
    }

    /// The entries that end after `page`.
    fn entries(&self, page: u64) -> impl Iterator<Item = &Entry> + '_ {
        self.extents.from(self.at(page))
    }

    /// The extent that holds a page.
    pub(crate) fn find(&self, page: u64) -> Option<(u64, Extent)> {
        self.extents.get(self.at(page)).copied().filter(|(start, _)| *start <= page)
    }

    /// The folio that holds a page: its first page and its number of pages.
    pub(crate) fn folio(&self, page: u64) -> Option<(u64, u32)> {
        let (start, extent) = self.find(page)?;
        if extent.folio <= 1 {
            return Some((page, 1));
        }
        let folio = u64::from(extent.folio);
        let first = start + (page - start) / folio * folio;
        let end = start + u64::from(extent.len);
        Some((first, u32::try_from(folio.min(end - first)).unwrap_or(1)))
    }

    /// Returns every extent within a range, cut to it.
    pub(crate) fn range(&self, start: u64, len: u64) -> impl Iterator<Item = (u64, Extent)> + '_ {
        let end = start + len;
        self.entries(start).take_while(move |(at, _)| *at < end).map(move |(at, extent)| {
            let from = (*at).max(start);
            let to = (at + u64::from(extent.len)).min(end);
            (from, Extent { len: u32::try_from(to - from).unwrap_or(0), ..*extent })
        })
    }

    /// Runs of dirty pages that lie in the pages `from..to`. A folio that lies there in part is included whole.
    pub(crate) fn dirty_within(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let whole = |page: u64| self.folio(page).map_or((page, page + 1), |(at, len)| (at, at + u64::from(len)));
        let dirty = self.range(from, to.saturating_sub(from)).filter(|(_, extent)| extent.dirty);
        let runs = dirty.map(|(at, extent)| {
            let (first, end) = (whole(at).0, whole(at + u64::from(extent.len) - 1).1);
            (first, end - first)
        });
        runs.collect()
    }

    /// Whether any page of a range is under writeback.
    pub(crate) fn has_writeback(&self, start: u64, len: u64) -> bool {
        self.writeback > 0 && self.range(start, len).any(|(_, extent)| extent.writeback)
    }

    /// Widens a range to whole folios if its ends are within one.
    pub(crate) fn whole_folios(&self, start: u64, end: u64) -> (u64, u64) {
        let first = self.folio(start).map_or(start, |(first, _)| first);
        let last = end.checked_sub(1).and_then(|last| self.folio(last));
        (first, last.map_or(end, |(at, len)| at + u64::from(len)))
    }

    /// First extent within `[from, end)`, cut to it.
    pub(crate) fn first(&self, from: u64, end: u64) -> Option<(u64, Extent)> {
        if from < end { self.range(from, end - from).next() } else { None }
    }

    /// Every extent.
    pub(crate) fn extents(&self) -> impl Iterator<Item = &(u64, Extent)> + '_ {
        self.extents.from(At::default())
    }

    /// First page of a range that is not cached, and the number of uncached pages from there on.
    pub(crate) fn hole(&self, start: u64, len: u64) -> Option<(u64, u64)> {
        if self.ends_before(start) {
            return (len > 0).then_some((start, len));
        }
        let (mut page, mut end) = (start, start + len);
        for entry in self.entries(start) {
            if entry.0 > page || page >= end {
                end = end.min(entry.0);
                break;
            }
            page = end_of(entry);
        }
        (page < end).then(|| (page, end - page))
    }

    /// First run of dirty pages at or after `from` that are not under writeback: its start, its length up to `most`
    /// in whole folios, its pages to write and its folios.
    pub(crate) fn next_dirty(&self, from: u64, most: u64) -> Option<DirtyRun> {
        if self.dirty == 0 || most == 0 {
            return None;
        }
        let mut entries = self.entries(from);
        let (at, extent) = entries.find(|(_, extent)| extent.is_waiting())?;
        // A folio is written whole, even if the search begins within it.
        let start = if *at >= from { *at } else { from - (from - at) % u64::from(extent.folio.max(1)) };
        let mut run = DirtyRun { start, len: 0, blocks: 0, stretches: 0, folios: 0, owner: extent.owner };
        let mut is_all = run.take(extent, at + u64::from(extent.len) - start, most);
        for (at, extent) in entries {
            let is_next = *at == run.start + run.len && extent.owner == run.owner && extent.is_waiting();
            if !is_all || !is_next || run.len >= most {
                break;
            }
            is_all = run.take(extent, extent.len.into(), most);
        }
        Some(run)
    }

    /// Puts pages into the cache; the range must not be cached.
    pub(crate) fn insert(&mut self, start: u64, extent: Extent) {
        if extent.len == 0 {
            return;
        }
        let at = self.at(start);
        self.end = self.end.max(start + u64::from(extent.len));
        self.count(&extent, true);
        if let Some(previous) = self.append_to_previous(at, start, &extent) {
            self.merge(previous);
        } else if !self.prepend_to_next(at, start, &extent) {
            self.extents.insert(at, (start, extent));
        }
    }

    /// Extends the entry before `at` by pages that are alike and follow it. Returns its place, or nothing if they do
    /// not.
    fn append_to_previous(&mut self, at: At, start: u64, extent: &Extent) -> Option<At> {
        let before = self.extents.before(at)?;
        let previous = self.extents.get_mut(before);
        let (_, previous) = previous.filter(|(from, previous)| is_joint(*from, previous, start, extent))?;
        previous.resize(previous.len + extent.len);
        Some(before)
    }

    /// Extends the entry at `at` by pages that are alike and precede it. Returns whether they do.
    fn prepend_to_next(&mut self, at: At, start: u64, extent: &Extent) -> bool {
        let next = self.extents.get_mut(at);
        let Some((from, next)) = next.filter(|(from, next)| is_joint(start, extent, *from, next)) else {
            return false;
        };
        *from = start;
        next.resize(next.len + extent.len);
        true
    }

    /// Changes every cached extent of a range; the range must begin and end between folios.
    pub(crate) fn update(&mut self, start: u64, len: u64, mut change: impl FnMut(u64, &mut Extent)) {
        let (mut page, end) = (start, start + len);
        while page < end {
            let at = self.at(page);
            let Some((first, extent)) = self.extents.get(at).filter(|(first, _)| *first < end) else { break };
            let from = page.max(*first);
            let to = end.min(first + u64::from(extent.len));
            if to - from < extent.len.into() && !extent.is_whole() {
                self.split(from);
                self.split(to);
                continue;
            }
            page = to;
            let old = extent.part(to - from);
            let mut new = old;
            change(from, &mut new);
            if new != old {
                self.replace(at, from, &new);
            }
        }
    }

    /// Gives pages of one entry another state. Writes mostly go on where the last one ended: the pages become like
    /// those before them, and only the border between two entries moves.
    fn replace(&mut self, at: At, start: u64, new: &Extent) {
        let Some((first, old)) = self.extents.get_mut(at) else { return };
        let ahead = u32::try_from(start - *first).unwrap_or(old.len);
        let (behind, end) = (old.len - ahead - new.len, start + u64::from(new.len));
        let rest = Extent { len: behind, blocks: behind, ..*old };
        if old.dirty != new.dirty {
            count(&mut self.dirty, new.len, new.dirty);
        }
        if old.writeback != new.writeback {
            count(&mut self.writeback, new.len, new.writeback);
        }
        match (ahead, behind) {
            (0, 0) => {
                *old = *new;
                self.merge(at);
                if let Some(before) = self.extents.before(at) {
                    self.merge(before);
                }
            }
            (0, _) => {
                *first = end;
                old.resize(behind);
                if self.append_to_previous(at, start, new).is_none() {
                    self.extents.insert(at, (start, *new));
                }
            }
            (_, 0) => {
                old.resize(ahead);
                let after = self.extents.after(at);
                if !self.prepend_to_next(after, start, new) {
                    self.extents.insert(after, (start, *new));
                }
            }
            (_, _) => {
                old.resize(ahead);
                // Inserted before the rest of the entry, so that its place stays the same.
                let front = (*first, *old);
                *first = end;
                *old = rest;
                self.extents.insert(at, (start, *new));
                let at = self.at(start);
                self.extents.insert(at, front);
            }
        }
    }

    /// Finds the end again after pages were removed.
    fn find_end(&mut self) {
        self.end = self.extents.last().map_or(0, |(start, extent)| start + u64::from(extent.len));
    }

    /// Removes pages. Returns the extents that were there.
    pub(crate) fn remove(&mut self, start: u64, len: u64) -> Vec<(u64, Extent)> {
        let (from, to) = self.split_range(start, start.saturating_add(len));
        let gone = self.extents.drain(from, to);
        self.find_end();
        for (_, extent) in &gone {
            self.count(extent, false);
        }
        gone
    }

    /// Removes pages that are all alike. Returns the extent that was there.
    pub(crate) fn cut(&mut self, start: u64, len: u64) -> Option<(u64, Extent)> {
        let at = self.at(start);
        let (from, extent) = self.extents.get_mut(at)?;
        let cut = u32::try_from(len).unwrap_or(u32::MAX);
        if *from != start || cut > extent.len || extent.blocks != extent.len {
            return self.cut_within(start, len);
        }
        let gone = (start, Extent { len: cut, blocks: cut, ..*extent });
        if cut == extent.len {
            self.extents.remove(at);
            self.find_end();
        } else {
            *from += len;
            extent.len -= cut;
            extent.blocks = extent.len;
        }
        self.count(&gone.1, false);
        Some(gone)
    }

    /// Removes pages that are all alike but do not begin an extent.
    fn cut_within(&mut self, start: u64, len: u64) -> Option<(u64, Extent)> {
        let (from, to) = self.split_range(start, start.saturating_add(len));
        debug_assert!(to == self.extents.after(from), "pages that are not alike");
        let gone = (from != to).then(|| self.extents.remove(from)).flatten()?;
        self.find_end();
        self.count(&gone.1, false);
        Some(gone)
    }

    fn count(&mut self, extent: &Extent, is_added: bool) {
        count(&mut self.pages, extent.len, is_added);
        if extent.dirty {
            count(&mut self.dirty, extent.len, is_added);
        }
        if extent.writeback {
            count(&mut self.writeback, extent.len, is_added);
        }
    }

    /// Splits entries at both ends of a range. Returns the first entry in it, and the first after it.
    fn split_range(&mut self, start: u64, end: u64) -> (At, At) {
        self.split(start);
        self.split(end);
        (self.at(start), self.at(end))
    }

    /// Splits the entry that spans the start of a page.
    fn split(&mut self, page: u64) {
        let at = self.at(page);
        if self.extents.get(at).is_some_and(|(start, _)| *start < page) {
            self.split_entry(at, page);
        }
    }

    fn split_entry(&mut self, at: At, page: u64) {
        let Some((start, extent)) = self.extents.get_mut(at) else { return };
        let is_whole = extent.blocks == extent.len;
        let front = u32::try_from(page - *start).unwrap_or(0);
        let mut back = Extent { len: extent.len - front, ..*extent };
        extent.len = front;
        if is_whole {
            extent.blocks = front;
            back.blocks = back.len;
        } else {
            back.blocks = back.blocks.min(back.len);
            extent.blocks = extent.blocks.saturating_sub(back.blocks).min(front);
        }
        let after = self.extents.after(at);
        self.extents.insert(after, (page, back));
    }

    /// Joins an entry with the next one if they are alike.
    #[inline]
    fn merge(&mut self, at: At) {
        let next = self.extents.after(at);
        if let (Some((start, one)), Some((after, other))) = (self.extents.get(at), self.extents.get(next))
            && is_joint(*start, one, *after, other)
        {
            let len = one.len + other.len;
            // The next entry is removed first: the place of the one before it stays the same.
            self.extents.remove(next);
            if let Some((_, one)) = self.extents.get_mut(at) {
                one.resize(len);
            }
        }
    }
}

/// Adds pages to a counter, or subtracts them.
fn count(counter: &mut u64, pages: u32, is_added: bool) {
    *counter = if is_added { *counter + u64::from(pages) } else { *counter - u64::from(pages) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::CgId;
    use floodline_scenario::Random;

    fn extent(len: u32, folio: u32) -> Extent {
        Extent { len, blocks: len, ..Extent::clean(folio, CgId::ROOT) }
    }

    /// A page of the reference model, which is an array of pages.
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Page {
        dirty: bool,
        writeback: bool,
        folio: u32,
    }

    #[test]
    fn extents_are_what_pages_would_be() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            check_as_pages(&mut random, 64, 60, 64, 1);
        }
        // Enough entries for several pieces.
        check_as_pages(&mut random, 1 << 13, 6000, 4, 97);
        check_as_pages(&mut random, 1 << 13, 2000, 2000, 29);
    }

    /// Changes ranges of at most `most` pages in a file of `size` pages, now and then all of it. Compares all pages
    /// after every `every` changes.
    fn check_as_pages(random: &mut Random, size: u64, changes: u32, most: u64, every: u32) {
        let (mut cache, mut pages) = (PageCache::default(), vec![None::<Page>; size as usize]);
        for change in 1..=changes {
            let folio = 1 << random.below(3);
            let start = random.below((size - 4) / folio) * folio;
            let len = (1 + random.below(((size - 4 - start) / folio + 1).min(most))) * folio;
            let len = len.min(size - start) / folio * folio;
            let range = start as usize..(start + len) as usize;
            match random.below(4) {
                0 if cache.hole(start, len) == Some((start, len)) => {
                    cache.insert(start, extent(len as u32, folio as u32));
                    pages[range].fill(Some(Page { dirty: false, writeback: false, folio: folio as u32 }));
                }
                1 => {
                    let gone: u64 = cache.remove(start, len).iter().map(|(_, extent)| u64::from(extent.len)).sum();
                    assert_eq!(gone as usize, pages[range.clone()].iter().flatten().count());
                    pages[range].fill(None);
                }
                2 => {
                    cache.update(start, len, |_, extent| extent.dirty = true);
                    pages[range].iter_mut().flatten().for_each(|page| page.dirty = true);
                }
                _ => {
                    let on = random.below(2) == 0;
                    cache.update(start, len, |_, extent| (extent.dirty, extent.writeback) = (false, on));
                    let pages = pages[range].iter_mut().flatten();
                    pages.for_each(|page| (page.dirty, page.writeback) = (false, on));
                }
            }
            if change % every > 0 {
                continue;
            }
            let count = |f: fn(&Page) -> bool| pages.iter().flatten().filter(|page| f(page)).count() as u64;
            assert_eq!(
                (cache.pages, cache.dirty, cache.writeback),
                (count(|_| true), count(|p| p.dirty), count(|p| p.writeback))
            );
            for (number, page) in pages.iter().enumerate() {
                let found = cache.find(number as u64).map(|(_, e)| Page {
                    dirty: e.dirty,
                    writeback: e.writeback,
                    folio: e.folio,
                });
                assert_eq!(found, *page, "page {number}");
            }
            let first = pages.iter().position(|page| page.is_some_and(|page| page.dirty && !page.writeback));
            assert_eq!(cache.next_dirty(0, 1).map(|run| run.start), first.map(|page| page as u64));
        }
    }

    #[test]
    fn scattered_pages_move_few_others() {
        let (mut cache, mut random) = (PageCache::default(), Random::new(5));
        let pages = 1 << 18;
        cache.insert(0, extent(pages, 1));
        for _ in 0..40_000 {
            cache.update(random.below(pages.into()), 1, |_, extent| extent.dirty = true);
        }
        let (largest, pieces) = cache.extents.pieces();
        assert!(largest <= 128, "what one change may move: {largest} entries");
        assert!(cache.dirty > 30_000 && pieces < 1500, "{pieces} pieces for {} pages", cache.dirty);
        cache.update(0, pages.into(), |_, extent| extent.dirty = false);
        assert_eq!((cache.extents().count(), cache.extents.pieces()), (1, (1, 1)));
    }

    #[test]
    fn a_run_is_cut_to_whole_folios() {
        let mut cache = PageCache::default();
        cache.insert(0, Extent { dirty: true, ..extent(96, 32) });
        let run = cache.next_dirty(40, 33).unwrap();
        assert_eq!((run.start, run.len, run.folios), (32, 64, 2));
        assert_eq!(cache.folio(95), Some((64, 32)));
        assert_eq!(cache.hole(90, 10), Some((96, 4)));
    }
}
