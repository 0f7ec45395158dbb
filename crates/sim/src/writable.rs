// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which pages of a file mappings may store into without a fault: a bit for each page. Stands for the page tables of
//! all that have it mapped, and like them has a table for pages that ever had a bit only.

/// Words of a table, of a bit each for 64 pages.
const WORDS: usize = 64;
/// Pages of a table.
const TABLE: u64 = 64 * WORDS as u64;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Writable {
    /// By number, which is that of its first page by those it has.
    tables: Vec<(u64, Box<[u64; WORDS]>)>,
}

/// A word of a table, and a bit of it.
fn place(page: u64) -> (usize, u64) {
    ((page % TABLE / 64) as usize, 1 << (page % 64))
}

impl Writable {
    /// Where the table of a page is, or would be.
    fn table(&self, page: u64) -> Result<usize, usize> {
        let number = page / TABLE;
        // Mostly all of a file's are there.
        match usize::try_from(number) {
            Ok(at) if self.tables.get(at).is_some_and(|(other, _)| *other == number) => Ok(at),
            _ => self.tables.binary_search_by_key(&number, |(number, _)| *number),
        }
    }

    pub(crate) fn has(&self, page: u64) -> bool {
        let (word, bit) = place(page);
        self.table(page).is_ok_and(|at| self.tables[at].1[word] & bit != 0)
    }

    pub(crate) fn add(&mut self, page: u64) {
        let at = self.table(page).unwrap_or_else(|at| {
            self.tables.insert(at, (page / TABLE, Box::new([0; WORDS])));
            at
        });
        let (word, bit) = place(page);
        self.tables[at].1[word] |= bit;
    }

    /// Takes away what a range has.
    pub(crate) fn remove(&mut self, start: u64, len: u64) {
        if self.tables.is_empty() {
            return;
        }
        let end = start + len;
        let (Ok(at) | Err(at)) = self.table(start);
        for (number, words) in self.tables[at..].iter_mut().take_while(|(number, _)| number * TABLE < end) {
            let mut page = start.max(*number * TABLE);
            let until = end.min((*number + 1) * TABLE);
            while page < until {
                let next = until.min((page / 64 + 1) * 64);
                words[place(page).0] &= !(u64::MAX >> (64 - (next - page)) << (page % 64));
                page = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_core::scenario::Random;

    #[test]
    fn pages_are_writable_until_they_are_protected() {
        const PAGES: u64 = 3 * TABLE;
        let mut random = Random::new(1);
        let (mut writable, mut pages) = (Writable::default(), vec![false; PAGES as usize]);
        for _ in 0..500 {
            let start = random.below(PAGES);
            let most = if random.below(4) == 0 { PAGES } else { 150 };
            let len = random.below((PAGES - start).min(most) + 1);
            if random.below(8) == 0 {
                writable.remove(start, len);
                pages[start as usize..(start + len) as usize].fill(false);
            } else {
                writable.add(start);
                pages[start as usize] = true;
            }
            let have: Vec<bool> = (0..PAGES).map(|page| writable.has(page)).collect();
            assert!(have == pages, "after {start} and {len}");
        }
    }
}
