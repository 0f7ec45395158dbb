// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the page cache and its counters with a model that keeps every page by itself: random writes,
//! write-outs, completions, truncations and reclaim on a small machine, compared page by page and counter by
//! counter after each step. Only a test; this model has no extents, runs or lists.

use crate::arena::{CgId, InodeId};
use crate::cgroup::Charged;
use crate::world::World;
use floodline_scenario::{Random, ScenarioFile};

/// A page. Pages of one folio have the same first page, and the same state.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Page {
    folio: u64,
    owner: CgId,
    dirty: bool,
    writeback: bool,
    referenced: bool,
    active: bool,
    reclaim: bool,
}

/// Pages of a file.
const PAGES: u64 = 64;

/// A file of the model.
struct File {
    inode: InodeId,
    pages: Vec<Option<Page>>,
    /// Runs under writeback.
    in_flight: Vec<(u64, u64)>,
}

impl File {
    fn range(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, Page)> + '_ {
        (start..end).filter_map(|at| self.pages[at as usize].map(|page| (at, page)))
    }

    /// Changes the folio of a page.
    fn change(&mut self, at: u64, change: impl Fn(&mut Page)) {
        let Some(Page { folio, .. }) = self.pages[at as usize] else { return };
        self.pages.iter_mut().flatten().filter(|page| page.folio == folio).for_each(change);
    }

    fn folio_len(&self, folio: u64) -> u64 {
        self.pages.iter().flatten().filter(|page| page.folio == folio).count() as u64
    }
}

/// The simulated machine, and the reference model.
struct Both {
    world: World,
    files: Vec<File>,
    owners: Vec<CgId>,
    dirtied: u64,
    written: u64,
    /// Options that repeat the run.
    run: String,
}

impl Both {
    fn new(fs: &str, kernel: &str) -> Both {
        let text = format!(
            r#"
name = "reference"
summary = "a small machine"
[machine]
memory = "256 MiB"
[machine.devices.data]
size = "1 GiB"
[machine.mounts."/data"]
type = "{fs}"
device = "data"
[machine.cgroups.outer]
[machine.cgroups."outer/a"]
[machine.cgroups.b]
[workload.tasks.nobody]
steps = ["exit"]
"#
        );
        let mut file = ScenarioFile::parse(&text).expect("a scenario");
        let scenario = file.variants.remove("default").expect("its variant");
        let mut world = crate::setup::machine(&scenario, kernel.parse().expect("a version"), &crate::Speed::default())
            .expect("a machine");
        let owners = ["outer/a", "b"].map(|path| world.cgroup_at(path).expect("a cgroup")).to_vec();
        let file = |number| File {
            inode: world.make_file(&format!("/data/{number}")).expect("a file"),
            pages: vec![None; PAGES as usize],
            in_flight: Vec::new(),
        };
        let files = (0..3).map(file).collect();
        Both { world, files, owners, dirtied: 0, written: 0, run: String::new() }
    }

    fn write(&mut self, file: usize, start: u64, end: u64, owner: CgId) {
        let inode = self.files[file].inode;
        let missing = self.world.missing(inode, &(start..end));
        self.world.write_pages(inode, &(start..end), missing, owner, end, None);
        let most = self.world.sbs[self.world.inodes[inode].sb].folios.by_write;
        let file = &mut self.files[file];
        let mut at = start;
        while at < end {
            if file.pages[at as usize].is_some() {
                at += 1;
                continue;
            }
            let hole = (at..end).take_while(|page| file.pages[*page as usize].is_none()).count() as u64;
            // The largest power of two that fits, is aligned, and is allowed.
            let mut len = 1;
            while len * 2 <= hole && len * 2 <= most && at.is_multiple_of(len * 2) {
                len *= 2;
            }
            let (dirty, writeback, referenced, active, reclaim) = (false, false, false, false, false);
            let new = Page { folio: at, owner, dirty, writeback, referenced, active, reclaim };
            file.pages[at as usize..(at + len) as usize].fill(Some(new));
            at += len;
        }
        for at in start..end {
            let is_clean = file.pages[at as usize].is_some_and(|page| !page.dirty);
            if is_clean {
                self.dirtied += file.folio_len(file.pages[at as usize].map_or(0, |page| page.folio));
                file.change(at, |page| page.dirty = true);
            }
        }
    }

    fn send(&mut self, file: usize, from: u64, most: u64) {
        let cache = &self.world.inodes[self.files[file].inode].cache;
        let run = cache.next_dirty(from, most);
        let file = &mut self.files[file];
        let is_to_be_sent = |page: &Page| page.dirty && !page.writeback;
        let first = file.range(from, PAGES).find(|(_, page)| is_to_be_sent(page));
        assert_eq!(run.is_some(), first.is_some());
        let (Some(run), Some((_, first))) = (run, first) else { return };
        let mut end = first.folio;
        while end < PAGES && end - first.folio < most {
            let Some(page) = file.pages[end as usize] else { break };
            if !is_to_be_sent(&page) || page.owner != first.owner {
                break;
            }
            end += file.folio_len(page.folio);
        }
        assert_eq!((run.start, run.start + run.len, run.owner), (first.folio, end, first.owner));
        for at in run.start..end {
            let page = file.pages[at as usize].as_mut().expect("a page that is sent");
            (page.dirty, page.writeback) = (false, true);
        }
        file.in_flight.push((run.start, run.len));
        self.world.start_writeback(file.inode, run.start, run.len, run.owner, None);
    }

    fn complete(&mut self, file: usize, which: u64) {
        let file = &mut self.files[file];
        if file.in_flight.is_empty() {
            return;
        }
        let (start, len) = file.in_flight.remove(which as usize % file.in_flight.len());
        self.world.end_writeback(file.inode, start, len);
        self.written += len;
        for page in file.pages[start as usize..(start + len) as usize].iter_mut().flatten() {
            page.writeback = false;
            if page.reclaim {
                (page.reclaim, page.active) = (false, page.dirty);
            }
        }
    }

    fn truncate(&mut self, file: usize, first: u64) {
        let file = &mut self.files[file];
        if file.in_flight.iter().any(|(start, len)| start + len > first) {
            return;
        }
        let gone = self.world.inodes[file.inode].cache.remove(first, u64::MAX / 2);
        self.world.forget(file.inode, &gone, None);
        file.pages[first as usize..].fill(None);
    }

    fn read(&mut self, file: usize, at: u64) {
        let file = &mut self.files[file];
        let Some(page) = file.pages[at as usize] else { return };
        if !page.reclaim {
            self.world.mark_accessed(file.inode, page.folio, file.folio_len(page.folio));
            file.change(at, |page| {
                let is_second = page.referenced && !page.active;
                (page.active, page.referenced) = (page.active || is_second, !is_second);
            });
        }
    }

    /// The order decides which pages are evicted, and this model has none. Checks only that each page may be evicted.
    fn evict(&mut self, scope: CgId, wanted: u64) {
        let evicted = self.world.evict(scope, wanted);
        let mut gone = 0;
        for file in &mut self.files {
            for at in 0..PAGES {
                let Some(before) = file.pages[at as usize] else { continue };
                let is_clean = !before.dirty && !before.writeback;
                let is_in_scope = self.world.ancestors(before.owner).any(|id| id == scope);
                match self.world.inodes[file.inode].cache.find(at) {
                    None => {
                        assert!(is_clean && is_in_scope, "page {at} went: {before:?}");
                        gone += 1;
                        file.pages[at as usize] = None;
                    }
                    Some((_, after)) => {
                        assert!(!after.reclaim || after.age.is_active() && !is_clean, "page {at}: {after:?}");
                        assert!(
                            is_in_scope || (after.age.is_active(), after.reclaim) == (before.active, before.reclaim)
                        );
                        assert!(!before.reclaim || after.reclaim);
                        let page = Page {
                            referenced: after.age.is_referenced(),
                            active: after.age.is_active(),
                            reclaim: after.reclaim,
                            ..before
                        };
                        file.pages[at as usize] = Some(page);
                    }
                }
            }
        }
        assert_eq!(gone, evicted);
    }

    fn drop_caches(&mut self) {
        self.world.drop_caches();
        for page in self.files.iter_mut().flat_map(|file| &mut file.pages) {
            *page = page.filter(|page| page.dirty || page.writeback);
        }
    }

    fn compare(&self) {
        let world = &self.world;
        let count = |which: &dyn Fn(&Page) -> bool| {
            self.files.iter().flat_map(|file| &file.pages).flatten().filter(|page| which(page)).count() as u64
        };
        for file in &self.files {
            let cache = &world.inodes[file.inode].cache;
            for at in 0..PAGES {
                let found = cache.find(at).zip(cache.folio(at)).map(|((_, extent), (folio, _))| Page {
                    folio,
                    owner: extent.owner,
                    dirty: extent.dirty,
                    writeback: extent.writeback,
                    referenced: extent.age.is_referenced(),
                    active: extent.age.is_active(),
                    reclaim: extent.reclaim,
                });
                assert_eq!(found, file.pages[at as usize], "{}, page {at}", self.run);
                let len = file.pages[at as usize].map(|page| file.folio_len(page.folio));
                assert_eq!(cache.folio(at).map(|(_, len)| u64::from(len)), len, "{}, folio of page {at}", self.run);
            }
            let hole = (0..PAGES).find(|at| file.pages[*at as usize].is_none());
            assert_eq!(cache.hole(0, PAGES).map(|(at, _)| at), hole);
        }
        let memory = &world.memory;
        let counted = (memory.nr_dirty, memory.nr_writeback, memory.inactive, memory.active);
        let (dirty, writeback) = (count(&|page| page.dirty), count(&|page| page.writeback));
        assert_eq!(
            counted,
            (dirty, writeback, count(&|page| !page.active), count(&|page| page.active)),
            "{}",
            self.run
        );
        assert_eq!((memory.nr_dirtied, memory.nr_written), (self.dirtied, self.written), "{}", self.run);
        for (id, cgroup) in world.cgroups.iter() {
            let is_below = |page: &Page| world.ancestors(page.owner).any(|above| above == id);
            let charged = Charged {
                file: count(&is_below),
                active: count(&|page| is_below(page) && page.active),
                dirty: count(&|page| is_below(page) && page.dirty),
                writeback: count(&|page| is_below(page) && page.writeback),
                ..cgroup.charged
            };
            assert_eq!(cgroup.charged, charged, "{}, {}", self.run, cgroup.path);
        }
        for (id, wb) in world.wbs.iter() {
            let of = self.files.iter().filter(|file| world.inodes[file.inode].wb == Some(id));
            let pages: Vec<Page> = of.flat_map(|file| &file.pages).flatten().copied().collect();
            let dirty = pages.iter().filter(|page| page.dirty).count() as u64;
            let writeback = pages.iter().filter(|page| page.writeback).count() as u64;
            assert_eq!((wb.reclaimable, wb.writeback), (dirty, writeback), "{}", self.run);
        }
        world.check().and_then(|()| world.check_inodes()).expect("counters that add up");
    }
}

fn check(fs: &str, kernel: &str, seed: u64) {
    let mut random = Random::new(seed);
    let mut both = Both::new(fs, kernel);
    both.run = format!("{fs} on {kernel}, seed {seed}");
    for _ in 0..200 {
        let file = random.below(3) as usize;
        let start = random.below(PAGES);
        let end = start + 1 + random.below((PAGES - start).min(40));
        let end = end.min(PAGES);
        let owner = both.owners[random.below(2) as usize];
        match random.below(12) {
            0..=3 => both.write(file, start, end, owner),
            4 | 5 => both.send(file, start, end - start),
            6 | 7 => both.complete(file, random.below(8)),
            8 => both.truncate(file, start),
            9 => both.read(file, start),
            10 => both.evict([CgId::ROOT, owner][random.below(2) as usize], 1 + random.below(30)),
            _ if random.below(8) == 0 => both.drop_caches(),
            _ => both.evict(owner, u64::MAX),
        }
        both.compare();
    }
}

#[test]
fn extents_and_counters_are_what_single_pages_make_them() {
    for seed in 0..10 {
        check("xfs", "6.12", seed);
        check("xfs", "5.10", seed);
        check("ext4", "6.1", seed);
        check("ext4", "6.18", seed);
    }
}
