// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of mapped files that programs touched. The first store to a page maps it, whether its folio is dirty or not.
//! Growth of the mapped bytes shows stores that dirty nothing, which no counter of bytes does.

use super::group::{Bin, Group, PAGE};
use super::repeats;
use crate::Recorded;
use floodline_record::id::Entity;

/// Pages that must have been touched.
const TOUCHED_MIN: f64 = 32.0;
/// Touched pages over faults, at most: a read of a mapping maps several pages by one fault, and a store maps one.
const PER_FAULT_MAX: f64 = 1.1;
/// Touched pages over faults, at least, where a fault maps a whole large folio.
const PER_FOLIO_MIN: f64 = 8.0;
/// Least part of a file that is not touched yet, where touches tell of stores.
const LEFT_MIN: f64 = 0.2;
/// Most of the stores that may touch a new page, where repeats tell the size of the file.
const NEW_MAX: f64 = 0.97;

/// Pages that were mapped, over time.
pub(super) struct Touched {
    /// Seconds since the recording began, and pages.
    levels: Vec<(f64, f64)>,
    /// Whether the counters are those of a cgroup. The machine's counters mostly belong to other programs.
    is_of_cgroup: bool,
}

impl Touched {
    /// What was mapped in the cgroup of a group, or on the machine for one that is in no cgroup.
    pub(super) fn of(group: &Group, recorded: &Recorded) -> Option<Touched> {
        let window = &recorded.window;
        let start = window.first_at?.monotonic.0;
        let seconds = |at: u64| at.saturating_sub(start) as f64 / 1e9;
        let inner = group.cgroup.filter(
            |id| !matches!(window.entities.get(id), Some(Entity::Cgroup { path, .. }) if path.as_bytes() == b"/"),
        );
        let levels: Vec<(f64, f64)> = match inner {
            Some(id) => {
                let levels = recorded.mapped.get(&id)?.iter();
                levels.map(|(at, bytes)| (seconds(at.0), *bytes as f64 / PAGE)).collect()
            }
            None => {
                let rows = window.host_series.iter();
                rows.filter_map(|(time, row)| Some((seconds(time.monotonic.0), row.nr_mapped?.0 as f64))).collect()
            }
        };
        (levels.len() >= 2).then_some(Touched { levels: without_dips(levels), is_of_cgroup: inner.is_some() })
    }

    fn at(&self, seconds: f64) -> f64 {
        let before = self.levels.partition_point(|(at, _)| *at <= seconds + 1e-6);
        self.levels[..before].last().map_or(0.0, |(_, pages)| *pages)
    }

    /// Pages that were mapped anew in an interval.
    fn mapped_anew(&self, bin: &Bin) -> f64 {
        (self.at(bin.end) - self.at(bin.end - bin.length)).max(0.0)
    }

    /// The intervals of a group with its stores as faults: pages touched anew over the part of `pages` that was
    /// untouched. Faults of other memory are not among them. `part` of what is mapped is of the group. `None` where too
    /// little was mapped, or not by stores.
    pub(super) fn stores(&self, bins: &[Bin], pages: f64, part: f64) -> Option<Vec<Bin>> {
        let first = bins.iter().position(|bin| bin.mapped > 0.0)?;
        let last = bins.iter().rposition(|bin| bin.mapped > 0.0 || bin.faults > 0.0)?;
        // What was mapped before the first store is not mapped anew, and no store to it shows.
        let before = if self.is_of_cgroup { self.at(bins[first].end - bins[first].length) * part } else { 0.0 };
        if pages - before < LEFT_MIN * pages {
            return None;
        }
        let (mut seen, mut all, mut seconds) = (0.0, 0.0, 0.0);
        let stores = |(at, bin): (usize, &Bin)| {
            if at < first || at > last {
                return Bin { faults: 0.0, ..*bin };
            }
            let new = self.mapped_anew(bin) * part;
            let left = 1.0 - (before + seen + new / 2.0) / pages;
            seen += new;
            if left < LEFT_MIN {
                // Hardly a page is left. What dirties, faults; the rest goes on as before.
                let usual = all / f64::max(seconds, 1e-3) * bin.length;
                return Bin { faults: if bin.mapped > 0.0 { bin.faults } else { usual }, ..*bin };
            }
            all += new / left;
            seconds += bin.length;
            Bin { faults: new / left, ..*bin }
        };
        let stores: Vec<Bin> = bins.iter().enumerate().map(stores).collect();
        let faults: f64 = bins[first..].iter().map(|bin| bin.faults).sum();
        (seen >= TOUCHED_MIN && seen <= PER_FAULT_MAX * faults).then_some(stores)
    }

    /// Bytes of a file. Where a fault maps a whole folio, all of the file is mapped soon. Where it maps one page, the
    /// stores that touched a page again tell: every store is taken to fault, as what is dirty is cleaned soon.
    pub(super) fn file(&self, bins: &[Bin], part: f64) -> Option<f64> {
        let storing = || bins.iter().filter(|bin| bin.mapped > 0.0);
        let faults: f64 = storing().map(|bin| bin.faults).sum();
        let new: f64 = storing().map(|bin| self.mapped_anew(bin) * part).sum();
        if new < TOUCHED_MIN {
            return None;
        }
        if new >= PER_FOLIO_MIN * faults {
            return Some(new * PAGE);
        }
        if new > NEW_MAX * faults {
            return None;
        }
        Some(repeats::size(faults, new, 0.0) * PAGE)
    }
}

/// Removes levels that are lower or higher than both neighbours. The kernel adds up the counters of its CPUs while they change, so
/// a reading can lack a part.
fn without_dips(levels: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let middle = |three: &[(f64, f64)]| {
        let [before, now, after] = [three[0].1, three[1].1, three[2].1];
        (three[1].0, now.clamp(before.min(after), before.max(after)))
    };
    let (first, last) = (levels.first().copied(), levels.last().copied());
    first.into_iter().chain(levels.windows(3).map(middle)).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half seconds of `rate` stores per second to `all` pages: what they mapped, and faults of every store.
    fn stored(rate: f64, all: f64, seconds: u32) -> (Touched, Vec<Bin>) {
        let (mut levels, mut bins) = (vec![(0.0, 100.0)], Vec::new());
        for half in 1..=2 * seconds {
            let end = f64::from(half) / 2.0;
            levels.push((end, 100.0 + all * (1.0 - (-rate * end / all).exp())));
            // Folios are dirty after the first second.
            let mapped = if half <= 2 { 4e6 } else { 0.0 };
            bins.push(Bin { end, length: 0.5, faults: rate / 2.0, mapped, ..Bin::default() });
        }
        (Touched { levels, is_of_cgroup: true }, bins)
    }

    #[test]
    fn stores_that_dirty_nothing_are_seen_by_what_they_map() {
        for (rate, all) in [(24.0, 4096.0), (100.0, 1024.0)] {
            let (touched, bins) = stored(rate, all, 12);
            let touched = Touched { is_of_cgroup: false, ..touched };
            let stores = touched.stores(&bins, all, 1.0).expect("enough was mapped");
            let sum: f64 = stores.iter().map(|bin| bin.faults).sum();
            assert!((sum / (12.0 * rate) - 1.0).abs() < 0.05, "{sum} of {}", 12.0 * rate);
        }
    }

    #[test]
    fn stores_to_what_was_mapped_before_are_not_told_by_what_is_mapped() {
        let (touched, bins) = stored(100.0, 1024.0, 24);
        // The recording begins when nearly all is mapped, and one reading lacks half of it.
        let late: Vec<Bin> = bins[40..].iter().map(|bin| Bin { mapped: 1e6, ..*bin }).collect();
        assert!(touched.stores(&late, 1024.0, 1.0).is_none());
        let mut levels = touched.levels.clone();
        levels[44].1 /= 2.0;
        let levels = without_dips(levels);
        assert_eq!((levels.len(), levels[44].1), (touched.levels.len(), touched.levels[43].1));
        // Where a half is left, the other half tells nothing, and the stores are those of before.
        let half: Vec<Bin> = bins[14..].iter().map(|bin| Bin { mapped: 1e6, ..*bin }).collect();
        let stores = touched.stores(&half, 1124.0, 1.0).expect("a half is left");
        let before = stores.iter().take(8).map(|bin| bin.faults).sum::<f64>();
        assert!((before / 400.0 - 1.0).abs() < 0.15, "{before} of 400");
    }

    #[test]
    fn what_reads_map_is_not_taken_for_stores() {
        let (touched, mut bins) = stored(24.0, 4096.0, 12);
        bins.iter_mut().for_each(|bin| bin.faults /= 16.0);
        assert!(touched.stores(&bins, 4096.0, 1.0).is_none());
        let (touched, bins) = stored(1.0, 4096.0, 12);
        assert!(touched.stores(&bins, 4096.0, 1.0).is_none());
    }

    #[test]
    fn stores_to_known_pages_tell_the_size_of_the_file() {
        let (touched, mut bins) = stored(400.0, 24_576.0, 14);
        bins.iter_mut().for_each(|bin| bin.mapped = 1e6);
        let bytes = touched.file(&bins, 1.0).expect("there are repeats");
        assert!((bytes / (24_576.0 * PAGE) - 1.0).abs() < 0.02, "{bytes}");
        let (touched, mut bins) = stored(4.0, 24_576.0, 14);
        bins.iter_mut().for_each(|bin| bin.mapped = 1e6);
        assert!(touched.file(&bins, 1.0).is_none());
        // 60 faults a second, each of which maps 256 pages, until all are mapped.
        let (mut touched, mut bins) = stored(400.0, 24_576.0, 14);
        for (at, (_, pages)) in touched.levels.iter_mut().enumerate() {
            *pages = 100.0 + (at as f64 * 30.0 * 256.0).min(24_576.0);
        }
        bins.iter_mut().for_each(|bin| (bin.mapped, bin.faults) = (1e6, 30.0));
        assert_eq!(touched.file(&bins, 1.0), Some(24_576.0 * PAGE));
    }
}
