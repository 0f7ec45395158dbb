// SPDX-License-Identifier: MIT OR Apache-2.0
//! Size of a mapped file by the pages that were dirtied again, in a trace. Of random stores to a large file few meet a page for
//! the second time, and the flusher writes as many pieces as there are pages. Of as many stores to a small file most do.

use super::group::{Group, Key, PAGE};
use crate::Recorded;
use floodline_record::id::DevId;
use floodline_record::record::What;
use floodline_record::traced::Inode;
use std::collections::BTreeMap;

/// Fewest pages that were dirtied, and fewest of these for the second time: the tracer looks at one page of eight where a file
/// is large.
const PAGES_MIN: f64 = 128.0;
const AGAIN_MIN: f64 = 64.0;
/// Least part of them that was dirtied for the second time. Stores in order of place meet hardly a page again.
const AGAIN_SHARE_MIN: f64 = 0.03;
/// Most bytes of a folio of one page, with some large ones among them.
const FOLIO_MAX: f64 = 1.25 * PAGE;
/// Most pages of a file.
const FILE_PAGES_MAX: f64 = (1u64 << 24) as f64;

/// What a trace has of one file.
#[derive(Clone, Copy, Debug, Default)]
struct Stored {
    bytes: u64,
    folios: u64,
    again: u64,
}

impl Stored {
    /// Bytes of the file, of which `before` were dirtied before.
    fn file(&self, before: u64) -> Option<f64> {
        let pages = self.bytes as f64 / PAGE;
        let again = (self.again as f64 / PAGE).min(pages);
        let is_by_page = self.bytes as f64 <= FOLIO_MAX * self.folios as f64;
        if !is_by_page || pages < PAGES_MIN || again < AGAIN_MIN || again < AGAIN_SHARE_MIN * pages {
            return None;
        }
        Some(PAGE * size(pages, pages - again, before as f64 / PAGE))
    }
}

/// Pages of a file of which `before` were dirty at some time, if `pages` random stores dirty `new` others.
fn size(pages: f64, new: f64, before: f64) -> f64 {
    let found = |all: f64| (all - before) * (1.0 - (-pages / all).exp());
    let (mut low, mut high) = ((before + new).max(1.0), FILE_PAGES_MAX);
    for _ in 0..64 {
        let middle = (low * high).sqrt();
        if found(middle) < new { low = middle } else { high = middle }
    }
    low
}

/// Notes for each group the size of the file of which it dirtied most, where a trace tells.
pub(super) fn take(groups: &mut [(Key, Group)], recorded: &Recorded, of_pid: &BTreeMap<u32, Key>) {
    let mut all: BTreeMap<&Key, BTreeMap<(DevId, Inode), Stored>> = BTreeMap::new();
    for event in &recorded.window.events {
        let What::Dirtied(dirtied) = &event.what else { continue };
        let Some((key, file)) = of_pid.get(&dirtied.who.pid).zip(dirtied.file.as_ref()) else { continue };
        let stored = all.entry(key).or_default().entry((dirtied.device, file.inode())).or_default();
        stored.bytes = stored.bytes.saturating_add(dirtied.bytes.0);
        stored.folios = stored.folios.saturating_add(dirtied.folios);
        stored.again = stored.again.saturating_add(dirtied.redirtied.0);
    }
    for (key, group) in groups.iter_mut() {
        let most = all.get(key).and_then(|files| files.iter().max_by_key(|(_, stored)| stored.bytes));
        group.file = most.and_then(|(file, stored)| stored.file(recorded.dirtied_before(*file)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(pages: u64, again: u64, before: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let stored = Stored { bytes: pages * PAGE, folios: pages, again: again * PAGE };
        stored.file(before * PAGE).map(|bytes| bytes as u64 / PAGE)
    }

    #[test]
    fn repeats_tell_the_size_of_a_file() {
        // Of 1,000 random stores to 2,000 pages, 2000 (1 - exp(-1/2)) = 787 meet a new one.
        assert_eq!(file(1000, 213, 0), Some(2000));
        // All was written before, so each store meets a page again.
        assert_eq!(file(1000, 1000, 16_384), Some(16_384));
        // Half of 4,000 pages was: 2000 (1 - exp(-1/4)) = 442 of 1,000 stores meet a new one.
        assert_eq!(file(1000, 558, 2000).map(|pages| pages / 10), Some(399));
    }

    #[test]
    fn few_repeats_and_large_folios_tell_nothing() {
        assert_eq!(file(100, 90, 0), None, "few stores");
        assert_eq!(file(1000, 20, 0), None, "in order of place");
        let folios = Stored { bytes: 1000 * 4096, folios: 100, again: 500 * 4096 };
        assert_eq!(folios.file(0), None);
    }
}
