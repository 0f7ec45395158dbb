// SPDX-License-Identifier: MIT OR Apache-2.0
//! Size of mapped files by the pages that were dirtied again, in a trace. Of random stores to a large file few meet a page for
//! the second time, and the flusher writes as many pieces as there are pages. Of as many stores to a small file most do.

use super::group::{Group, Key, PAGE};
use crate::Recorded;
use floodline_record::id::DevId;
use floodline_record::record::What;
use floodline_record::traced::Inode;
use floodline_record::traced::bytes::Dirtied;
use std::collections::BTreeMap;

/// Fewest pages that were dirtied, and fewest of these for the second time: the tracer looks at one page of eight where a file
/// is large.
const PAGES_MIN: f64 = 128.0;
const AGAIN_MIN: f64 = 64.0;
/// Least part of them that was dirtied for the second time. Stores in order of place meet hardly a page again.
const AGAIN_SHARE_MIN: f64 = 0.03;
/// Most bytes of a folio of one page, with some large ones among them.
const FOLIO_MAX: f64 = 1.25 * PAGE;
/// Least part of what a process dirtied that it dirtied in files with a known size.
const KNOWN_MIN: f64 = 0.8;
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
pub(super) fn size(pages: f64, new: f64, before: f64) -> f64 {
    let found = |all: f64| (all - before) * (1.0 - (-pages / all).exp());
    let (mut low, mut high) = ((before + new).max(1.0), FILE_PAGES_MAX);
    for _ in 0..64 {
        let middle = (low * high).sqrt();
        if found(middle) < new { low = middle } else { high = middle }
    }
    low
}

type Id = (DevId, Inode);

/// What a trace has of the files of a group.
#[derive(Clone, Debug, Default)]
struct Files {
    of: BTreeMap<Id, Stored>,
    /// By process: all bytes that it dirtied, and those of each file.
    processes: BTreeMap<u32, (u64, BTreeMap<Id, u64>)>,
}

impl Files {
    fn add(&mut self, dirtied: &Dirtied) {
        let (all, files) = self.processes.entry(dirtied.who.pid).or_default();
        *all = all.saturating_add(dirtied.bytes.0);
        let Some(id) = dirtied.file.as_ref().map(|file| (dirtied.device, file.inode())) else { return };
        let of_process = files.entry(id).or_default();
        *of_process = of_process.saturating_add(dirtied.bytes.0);
        let stored = self.of.entry(id).or_default();
        stored.bytes = stored.bytes.saturating_add(dirtied.bytes.0);
        stored.folios = stored.folios.saturating_add(dirtied.folios);
        stored.again = stored.again.saturating_add(dirtied.redirtied.0);
    }

    /// Bytes of the files of the process that dirtied most. It has a part of each file that several of `copies` processes share.
    fn size(&self, copies: u64, before: impl Fn(Id) -> Option<u64>) -> Option<f64> {
        let (all, files) = self.processes.values().max_by_key(|(all, _)| *all)?;
        let (mut known, mut size) = (0.0, 0.0);
        for (id, bytes) in files {
            let Some(file) = self.of.get(id).zip(before(*id)).and_then(|(stored, before)| stored.file(before)) else {
                continue;
            };
            let sharers = self.processes.values().filter(|(_, files)| files.contains_key(id)).count() as u64;
            known += *bytes as f64;
            size += file / sharers.clamp(1, copies.max(1)) as f64;
        }
        (known > 0.0 && known >= KNOWN_MIN * *all as f64).then_some(size)
    }
}

/// Notes for each group the size of the files of one of its processes, where a trace tells.
pub(super) fn take(groups: &mut [(Key, Group)], recorded: &Recorded, of_pid: &BTreeMap<u32, Key>) {
    let mut all: BTreeMap<&Key, Files> = BTreeMap::new();
    for event in &recorded.window.events {
        let What::Dirtied(dirtied) = &event.what else { continue };
        if let Some(key) = of_pid.get(&dirtied.who.pid) {
            all.entry(key).or_default().add(dirtied);
        }
    }
    for (key, group) in groups.iter_mut() {
        let copies = group.concurrent();
        group.files = all.get(key).and_then(|files| files.size(copies, |id| recorded.dirtied_before(id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::traced::{File, Who};
    use floodline_record::units::{Bytes, Nanos};

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

    /// Bytes of the files of a process in pages, to the next ten, where 1,000 stores of each process to its part of each file meet 213 pages again.
    fn files(copies: u64, by_process: &[(u32, &[u64])], unnamed: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let mut files = Files::default();
        let mut add = |pid, ino: Option<u64>, pages: u64, again: u64| {
            files.add(&Dirtied {
                since: Nanos(0),
                who: Who { pid, comm: "db".into(), cgroup_ino: 1 },
                device: DevId { major: 8, minor: 0 },
                file: ino.map(|ino| File { ino, generation: None, path: None }),
                bytes: Bytes(pages * PAGE),
                folios: pages,
                redirtied: Bytes(again * PAGE),
            });
        };
        for (pid, inos) in by_process {
            inos.iter().for_each(|ino| add(*pid, Some(*ino), 1000, 213));
        }
        add(by_process[0].0, None, unnamed, 0);
        files.size(copies, |_| Some(0)).map(|bytes| (bytes / 40_960.0).round() as u64 * 10)
    }

    #[test]
    fn all_files_of_one_process_count_and_its_part_of_those_that_it_shares() {
        assert_eq!(files(1, &[(7, &[1])], 200), Some(2000));
        assert_eq!(files(1, &[(7, &[1])], 300), None, "other files");
        assert_eq!(files(1, &[(7, &[1, 2, 3])], 0), Some(6000));
        assert_eq!(files(2, &[(7, &[1]), (8, &[2])], 0), Some(2000), "each has its own");
        assert_eq!(files(2, &[(7, &[1]), (8, &[1])], 0), Some(2000), "half of 2,000 stores to 4,000 pages");
        assert_eq!(files(1, &[(7, &[1]), (8, &[1])], 0), Some(4000), "one after the other");
    }
}
