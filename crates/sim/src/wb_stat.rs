// SPDX-License-Identifier: MIT OR Apache-2.0
//! Per-CPU deltas of a wb's counters. Each CPU keeps changes to itself until they make a batch, and a reader that does not
//! add up all CPUs misses them. The model keeps the exact counts; this module keeps the difference. Machines of up to
//! [`EXACT_CPUS`] have none if their kernel adds up all CPUs where few pages matter. Mirrors wb_stat_mod, wb_stat and
//! wb_stat_sum (include/linux/backing-dev.h).

use crate::arena::WbId;
use crate::world::World;
use floodline_kernel::{Algorithm, Build, wb_dirty_is_exact, wb_reclaimable_is_exact};
use floodline_scenario::Random;

/// CPUs up to which the counters of a wb count as exact: the error is at most 640 pages there. The background test before 5.14
/// compares a few pages with a share of 0 or more, so there each page matters.
pub(crate) const EXACT_CPUS: u64 = 16;

/// Counters of a wb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WbStat {
    Reclaimable,
    Writeback,
    Dirtied,
    Written,
}

const STATS: usize = 4;

/// Deltas of each counter of one wb on each CPU, pages, and their sums over the CPUs. A delta is below a batch, which is at
/// most 512 pages. The deltas are small because each change meets another wb on another CPU: they have to stay in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    cpus: Box<[[i16; STATS]]>,
    sums: [i64; STATS],
    batch: i64,
    /// CPU on which the flusher of the wb runs.
    flusher: usize,
}

impl Held {
    /// Creates the deltas of a machine whose counters are not exact.
    pub(crate) fn on(build: Build, algorithm: &Algorithm) -> Option<Held> {
        let cpus = build.cpus_possible;
        let count = usize::try_from(cpus).unwrap_or(1);
        let batch = i64::try_from(build.wb_stat_batch()).unwrap_or(i64::MAX);
        let cpus_held = || vec![[0; STATS]; count].into_boxed_slice();
        (cpus > EXACT_CPUS || !algorithm.bg_counts_exactly).then(|| Held {
            cpus: cpus_held(),
            sums: [0; STATS],
            batch,
            flusher: 0,
        })
    }

    /// Counts a change of a counter on a CPU, in steps of a folio.
    #[inline]
    fn add(&mut self, stat: WbStat, cpu: usize, pages: i64, folio: u64) {
        if pages == 0 {
            return;
        }
        let count = self.cpus.len();
        let cpu = if cpu < count { cpu } else { cpu % count.max(1) };
        let Some(held) = self.cpus.get_mut(cpu) else { return };
        let held = &mut held[stat as usize];
        let sign = pages.signum();
        let now = sign * after(sign * i64::from(*held), pages.abs(), i64::try_from(folio).unwrap_or(1), self.batch);
        self.sums[stat as usize] += now - i64::from(*held);
        *held = i16::try_from(now).unwrap_or(0);
    }

    /// Returns a counter as read without adding up all CPUs.
    fn read(&self, stat: WbStat, exact: u64) -> u64 {
        let exact = i64::try_from(exact).unwrap_or(i64::MAX);
        u64::try_from(exact - self.sums[stat as usize]).unwrap_or(0)
    }
}

/// Delta of a CPU that held `held` and counts `pages` more, in steps of a folio. It folds the delta into the total
/// once that is a batch or more.
fn after(held: i64, pages: i64, folio: i64, batch: i64) -> i64 {
    // Most changes make no batch, and need no division.
    if held + pages < batch {
        return held + pages;
    }
    if folio <= 1 {
        // Of single pages, the delta folds with the page that makes it a batch, and after each batch from then on.
        let beyond = pages - (batch - held);
        return if beyond < batch { beyond } else { beyond % batch };
    }
    let folio = folio.min(pages.max(1));
    let (steps, last) = (pages / folio, pages % folio);
    let step_up = |held: i64, steps: i64| {
        let first = (batch - held + folio - 1) / folio;
        let each = (batch + folio - 1) / folio;
        if steps < first { held + steps * folio } else { (steps - first) % each * folio }
    };
    let held = step_up(held, steps) + last;
    if held >= batch { 0 } else { held }
}

impl World {
    /// Counts a change of a wb's counter on a CPU, by default that of its flusher.
    #[inline]
    pub(crate) fn wb_stat_mod(&mut self, wb: WbId, stat: WbStat, pages: i64, folio: u64, cpu: Option<usize>) {
        if let Some(held) = &mut self.wbs[wb].held {
            let cpu = cpu.unwrap_or(held.flusher);
            held.add(stat, cpu, pages, folio);
        }
    }

    /// Moves the flusher of a wb to a random CPU when it wakes up, as any may be idle.
    pub(crate) fn wb_place_flusher(&mut self, wb: WbId) {
        let World { wbs, placement, cpus, .. } = self;
        if let Some(held) = &mut wbs[wb].held {
            held.flusher = usize::try_from(placement.below((*cpus).max(1))).unwrap_or(0);
        }
    }

    /// A counter of a wb, read without adding up all CPUs (`wb_stat`).
    pub(crate) fn wb_stat(&self, wb: WbId, stat: WbStat) -> u64 {
        let w = &self.wbs[wb];
        let exact = match stat {
            WbStat::Reclaimable => w.reclaimable,
            WbStat::Writeback => w.writeback,
            WbStat::Dirtied => w.dirtied,
            WbStat::Written => w.written,
        };
        w.held.as_ref().map_or(exact, |held| held.read(stat, exact))
    }

    /// Dirty pages of a wb that may be written, as the background test counts them against a threshold: since 5.14 exactly
    /// if that is small.
    pub(crate) fn wb_reclaimable(&self, wb: WbId, thresh: u64) -> u64 {
        match wb_reclaimable_is_exact(&self.behaviour.arithmetic, thresh, self.build.wb_stat_error()) {
            true => self.wbs[wb].reclaimable,
            false => self.wb_stat(wb, WbStat::Reclaimable),
        }
    }

    /// Pages of a wb that are dirty or under writeback: exactly if the threshold is small.
    pub(crate) fn wb_dirty(&self, wb: WbId, thresh: u64) -> u64 {
        let w = &self.wbs[wb];
        if w.held.is_none() || wb_dirty_is_exact(thresh, self.build.wb_stat_error()) {
            return w.reclaimable + w.writeback;
        }
        self.wb_stat(wb, WbStat::Reclaimable) + self.wb_stat(wb, WbStat::Writeback)
    }
}

/// Random CPUs on which flushers wake up, by the seed of the scenario.
pub(crate) fn placement(seed: u64) -> Random {
    Random::new(seed ^ 0x7762_5f73_7461_7400)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(version: &str) -> Algorithm {
        Algorithm::of(version.parse().expect("a version"))
    }

    #[test]
    fn a_run_is_counted_as_its_folios_one_by_one() {
        let one_by_one = |mut held: i64, pages: i64, folio: i64, batch: i64| {
            let mut left = pages;
            while left > 0 {
                let some = left.min(folio);
                (held, left) = (held + some, left - some);
                if held >= batch {
                    held = 0;
                }
            }
            held
        };
        let mut random = Random::new(3);
        let mut number = |end: u64| i64::try_from(random.below(end)).expect("it is small");
        for _ in 0..10_000 {
            let (batch, folio) = (8 * (1 + number(8)), 1 << number(8));
            let (held, pages) = (number(2 * 64) % batch - number(64) % batch, number(3000));
            assert_eq!(
                after(held, pages, folio, batch),
                one_by_one(held, pages, folio.min(pages.max(1)), batch),
                "{held} {pages} {folio} {batch}"
            );
        }
    }

    #[test]
    fn a_delta_fits_on_the_largest_machine() {
        let batch = Build { hz: 250, cpus_possible: u64::MAX, page_size: 4096 }.wb_stat_batch();
        assert_eq!(batch, 512);
        assert!(i16::try_from(batch).is_ok());
    }

    #[test]
    fn a_change_of_no_pages_changes_nothing() {
        let build = Build { hz: 250, cpus_possible: 64, page_size: 4096 };
        let mut held = Held::on(build, &kernel("6.12")).expect("it has 64 CPUs");
        for pages in [40, 0, 10, 0, -7, 0] {
            held.add(WbStat::Dirtied, 3, pages, 1);
        }
        assert_eq!((held.cpus[3], held.sums), ([0, 0, 43, 0], [0, 0, 43, 0]));
    }

    #[test]
    fn large_machines_hold_back_up_to_a_batch_each() {
        let build = |cpus_possible| Build { hz: 250, cpus_possible, page_size: 4096 };
        assert!(Held::on(build(16), &kernel("6.12")).is_none());
        let mut held = Held::on(build(64), &kernel("6.12")).expect("it has 64 CPUs");
        for cpu in 0..64 {
            held.add(WbStat::Reclaimable, cpu, 55, 1);
        }
        assert_eq!(held.read(WbStat::Reclaimable, 64 * 55), 0, "13.75 MiB are dirty and none is seen");
        held.add(WbStat::Reclaimable, 3, 1, 1);
        assert_eq!(held.read(WbStat::Reclaimable, 64 * 55 + 1), 56);
        held.add(WbStat::Reclaimable, 5, 512, 512);
        assert_eq!(held.read(WbStat::Reclaimable, 64 * 55 + 513), 56 + 55 + 512, "a large folio is folded at once");
        held.add(WbStat::Reclaimable, 9, -56, 1);
        assert_eq!(held.read(WbStat::Reclaimable, 64 * 55 + 457), 56 + 55 + 512, "a CPU holds less back, and not more");
    }

    #[test]
    fn small_machines_before_5_14_hold_back_pages_of_their_cpus() {
        let build = Build { hz: 250, cpus_possible: 2, page_size: 4096 };
        assert!(Held::on(build, &kernel("5.14")).is_none());
        let mut held = Held::on(build, &kernel("5.13")).expect("an early kernel");
        // Two CPUs have a batch of 16 pages. A log of 15 pages is not seen, with the next page it is.
        held.add(WbStat::Reclaimable, 0, 15, 1);
        assert_eq!(held.read(WbStat::Reclaimable, 15), 0);
        held.add(WbStat::Reclaimable, 0, 1, 1);
        assert_eq!(held.read(WbStat::Reclaimable, 16), 16);
        // The flusher on the other CPU cleans them page by page: none is dirty after 16 of them.
        for left in (1..16).rev() {
            held.add(WbStat::Reclaimable, 1, -1, 1);
            assert_eq!(held.read(WbStat::Reclaimable, left), 16);
        }
        held.add(WbStat::Reclaimable, 1, -1, 1);
        assert_eq!(held.read(WbStat::Reclaimable, 0), 0);
        // An fsync cleans on the CPU that made the page dirty, and leaves nothing behind.
        for _ in 0..100 {
            held.add(WbStat::Reclaimable, 0, 1, 1);
            held.add(WbStat::Reclaimable, 0, -1, 1);
        }
        assert_eq!((held.cpus[0], held.cpus[1]), ([0; STATS], [0; STATS]));
    }
}
