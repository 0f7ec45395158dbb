// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fate of dirtied pages, counted for the machine, every wb and every inode. It is not a counter of the kernel:
//! `checks` compares it with the pages themselves. Release builds count nothing, which saves memory for every
//! inode.

/// Event in the life of dirty pages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Dirtied,
    Written,
    Cancelled,
    /// Pages that came with an inode from another wb.
    Came,
    /// Pages that left with their inode.
    Left,
}

const FATES: usize = if cfg!(debug_assertions) { 5 } else { 0 };

/// Pages by fate.
#[derive(Debug, Default)]
pub(crate) struct Conserved([u64; FATES]);

impl Conserved {
    pub(crate) fn add(&mut self, fate: Fate, pages: u64) {
        if let Some(sum) = self.0.get_mut(fate as usize) {
            *sum += pages;
        }
    }

    /// Checks that the pages dirtied are those written, cancelled or moved plus those still dirty or under writeback.
    pub(crate) fn leaves(&self, still: u64) -> Result<(), String> {
        let [dirtied, written, cancelled, came, left] = *self.0.as_slice() else { return Ok(()) };
        if dirtied + came == written + cancelled + left + still {
            return Ok(());
        }
        Err(format!(
            "{dirtied} pages dirtied and {came} taken over are not {written} written, {cancelled} cancelled, \
             {left} handed over and {still} left"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_written_nor_cancelled_nor_dirty_is_missing() {
        let mut pages = Conserved::default();
        for (fate, count) in [(Fate::Dirtied, 9), (Fate::Came, 4), (Fate::Written, 6), (Fate::Cancelled, 2)] {
            pages.add(fate, count);
        }
        pages.add(Fate::Left, 1);
        assert_eq!(pages.leaves(4), Ok(()));
        assert_eq!(pages.leaves(3).is_err(), cfg!(debug_assertions));
    }
}
