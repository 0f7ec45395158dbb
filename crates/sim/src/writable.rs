// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of a file that mappings may store to without a fault: one bit per page. Stands for the page tables of all
//! processes that map it. Only dirty pages are writable, so few are: only words with set bits are stored.

/// Bitmap of the writable pages of a file.
#[derive(Debug, Default)]
pub(crate) struct Writable {
    /// Words of 64 pages with any bit set, each with its number, sorted.
    words: Vec<(u64, u64)>,
}

impl Writable {
    /// Index of the word of a page, or the index to insert it at.
    fn word(&self, page: u64) -> Result<usize, usize> {
        self.words.binary_search_by_key(&(page / 64), |(number, _)| *number)
    }

    pub(crate) fn has(&self, page: u64) -> bool {
        self.word(page).is_ok_and(|at| self.words[at].1 >> (page % 64) & 1 == 1)
    }

    pub(crate) fn add(&mut self, page: u64) {
        let bit = 1 << (page % 64);
        match self.word(page) {
            Ok(at) => self.words[at].1 |= bit,
            Err(at) => self.words.insert(at, (page / 64, bit)),
        }
    }

    /// Clears the bits of a range.
    pub(crate) fn remove(&mut self, start: u64, len: u64) {
        if self.words.is_empty() || len == 0 {
            return;
        }
        let end = start + len;
        let (Ok(from) | Err(from)) = self.word(start);
        let (mut at, mut kept) = (from, from);
        while let Some((number, word)) = self.words.get(at).copied().filter(|(number, _)| number * 64 < end) {
            let (first, last) = (start.max(number * 64), end.min((number + 1) * 64));
            let left = word & !(u64::MAX >> (64 - (last - first)) << (first % 64));
            if left != 0 {
                self.words[kept] = (number, left);
                kept += 1;
            }
            at += 1;
        }
        self.words.drain(kept..at);
    }
}

/// Pages below this have a bit each: 1 GiB of a file, 32 KiB of bits.
const LOW: u64 = 1 << 18;

/// Pages of a file that a mapping ever touched: a set that only grows, and of a file that is stored to at random soon has a page in
/// each word. A search among these words would cost more than the fault.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// The first pages of the file, one bit each.
    low: Vec<u64>,
    /// The pages behind them, of which a large file may have few.
    high: Writable,
}

impl Touched {
    pub(crate) fn has(&self, page: u64) -> bool {
        match low(page) {
            Some((word, bit)) => self.low.get(word).is_some_and(|word| word & bit != 0),
            None => self.high.has(page),
        }
    }

    pub(crate) fn add(&mut self, page: u64) {
        let Some((word, bit)) = low(page) else { return self.high.add(page) };
        if self.low.len() <= word {
            self.low.resize(word + 1, 0);
        }
        self.low[word] |= bit;
    }
}

/// Word and bit of one of the first pages.
fn low(page: u64) -> Option<(usize, u64)> {
    let word = usize::try_from(page / 64).ok()?;
    (page < LOW).then_some((word, 1 << (page % 64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_scenario::Random;
    use std::collections::BTreeSet;

    #[test]
    fn touched_pages_are_known_wherever_they_are() {
        let mut random = Random::new(2);
        let (mut touched, mut pages) = (Touched::default(), BTreeSet::new());
        for _ in 0..2000 {
            let near = LOW - 100 + random.below(200);
            let page = [random.below(300), near, LOW << random.below(40)][random.below(3) as usize];
            assert_eq!(touched.has(page), pages.contains(&page), "{page}");
            touched.add(page);
            pages.insert(page);
            assert!(touched.has(page), "{page}");
        }
        assert!(pages.len() > 400);
    }

    #[test]
    fn pages_are_writable_until_they_are_protected() {
        const PAGES: u64 = 300;
        let mut random = Random::new(1);
        let (mut writable, mut pages) = (Writable::default(), vec![false; PAGES as usize]);
        for _ in 0..2000 {
            let start = random.below(PAGES);
            let len = random.below((PAGES - start).min(150) + 1);
            if random.below(8) == 0 {
                writable.remove(start, len);
                pages[start as usize..(start + len) as usize].fill(false);
            } else {
                writable.add(start);
                pages[start as usize] = true;
            }
            let have: Vec<bool> = (0..PAGES).map(|page| writable.has(page)).collect();
            assert!(have == pages, "after {start} and {len}");
            assert!(writable.words.iter().all(|(_, word)| *word != 0));
        }
    }
}
