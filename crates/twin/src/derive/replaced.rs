// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that each burst of a program writes again as a whole, such as a report or a catalogue. If it is clean when the next burst begins,
//! the counters of the program are those of one that appends. The page cache shows the difference: an append makes it grow by the burst,
//! and a file that is written again does not. A program that empties its file first makes the page cache smaller for a moment.

use super::bursts::Burst;
use super::group::{Group, PAGE};
use super::rewrites::Rewritten;
use super::syncs::Syncs;
use super::temporary::{RESTS_MIN, whole_bursts};
use crate::Recorded;
use floodline_record::sample::{HostRow, SampleTime};
use floodline_record::window::Window;

/// Smallest burst, bytes.
const BURST_MIN: f64 = 8_388_608.0;
/// Largest distance of the bursts from the largest one, as a share of it. The end of the recording may cut the last one.
const ALIKE: f64 = 0.1;
/// Largest growth of the page cache over a burst that writes the same file again, as a share of the burst.
const NONE_NEW: f64 = 0.1;
/// Least drop of the page cache within a burst whose program empties its file first, as a share of the burst.
const EMPTIED: f64 = 0.1;

/// A file that each burst writes again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Replaced {
    /// Its size, all copies together.
    pub(super) bytes: f64,
    /// Whether it is emptied before it is written again.
    pub(super) is_emptied: bool,
    /// Whether the first burst already finds it.
    pub(super) is_there: bool,
}

impl Replaced {
    /// The file of a program whose bursts have rests between them, and that neither syncs nor drops data unwritten. `None` where the page
    /// cache grows with its bursts, and where the kernel reclaimed some of it.
    pub(super) fn of(group: &Group, syncs: Syncs, recorded: &Recorded) -> Option<Replaced> {
        let total = &group.total;
        let growth = &recorded.window.host.growth;
        let is_reclaimed = [growth.pgscan_kswapd, growth.pgscan_direct].into_iter().flatten().any(|pages| pages.0 > 0);
        if syncs.call.is_some() || total.cancelled > 0.0 || total.direct > 0.0 || total.mapped > 0.0 || is_reclaimed {
            return None;
        }
        let bursts = whole_bursts(group);
        let bytes = bursts.iter().map(|burst| burst.amount).fold(0.0, f64::max);
        let whole = &bursts[..bursts.len().checked_sub(1)?];
        let is_alike = whole.iter().all(|burst| burst.amount >= (1.0 - ALIKE) * bytes);
        let are_apart = bursts.windows(2).all(|pair| pair[1].from - pair[0].to >= RESTS_MIN);
        if whole.is_empty() || !is_alike || !are_apart || bytes < BURST_MIN {
            return None;
        }
        let cache = Cache::of(&recorded.window)?;
        let is_again = |burst: &Burst| cache.growth(burst).is_some_and(|grew| grew <= NONE_NEW * burst.amount);
        let shrinks = |burst: &Burst| cache.shrinks(burst).is_none_or(|by| by >= EMPTIED * burst.amount);
        bursts[1..].iter().all(is_again).then(|| Replaced {
            bytes,
            is_emptied: bursts[1..].iter().all(shrinks),
            is_there: bursts.first().is_some_and(is_again),
        })
    }

    /// The file where it is written in place.
    pub(super) fn in_place(self) -> Option<Rewritten> {
        let Replaced { bytes, is_emptied, is_there } = self;
        let why = "the page cache does not grow with its bursts: each burst writes the same file again";
        (!is_emptied).then_some(Rewritten { bytes, is_ring: true, run: 1.0, is_there, dirty: 0.0, why })
    }
}

/// Page cache of the machine at each sample: seconds since the recording began, and bytes.
struct Cache(Vec<(f64, f64)>);

impl Cache {
    fn of(window: &Window) -> Option<Cache> {
        let start = window.first_at?.monotonic.0;
        let page = window.facts.as_ref().map_or(PAGE, |facts| facts.page_size.max(1) as f64);
        let level = |(time, row): &(SampleTime, HostRow)| {
            let pages = row.nr_inactive_file?.0.saturating_add(row.nr_active_file?.0);
            Some((time.monotonic.0.saturating_sub(start) as f64 / 1e9, pages as f64 * page))
        };
        window.host_series.iter().map(level).collect::<Option<Vec<_>>>().map(Cache)
    }

    fn before(&self, at: f64) -> Option<f64> {
        self.0.iter().rev().find(|(time, _)| *time <= at + 1e-6).map(|(_, bytes)| *bytes)
    }

    /// Growth over a burst.
    fn growth(&self, burst: &Burst) -> Option<f64> {
        Some(self.before(burst.to)? - self.before(burst.from)?)
    }

    /// How far it shrinks within a burst. `None` where no sample is within it.
    fn shrinks(&self, burst: &Burst) -> Option<f64> {
        let within = self.0.iter().filter(|(time, _)| *time > burst.from + 1e-6 && *time < burst.to - 1e-6);
        let least = within.map(|(_, bytes)| *bytes).reduce(f64::min)?;
        Some(self.before(burst.from)? - least)
    }
}

#[cfg(test)]
mod tests {
    use super::super::group::{Bin, sum};
    use super::*;
    use floodline_record::record::{Record, Sink};
    use floodline_record::sample::Sample;
    use floodline_record::units::{Nanos, Pages};

    const MIB: f64 = 1_048_576.0;

    /// Three bursts of 60 MiB, each of two seconds, 10 s apart. `cached` is the page cache at each second, in MiB.
    fn told(cached: impl Fn(usize) -> f64) -> Option<Replaced> {
        let mut recorded = Recorded::default();
        let mut bins = Vec::new();
        for at in 0..30 {
            let mut sample = Sample::default();
            sample.time.monotonic = Nanos(at as u64 * 1_000_000_000);
            let pages = |bytes: f64| Some(Pages((bytes / PAGE) as u64));
            sample.host =
                HostRow { nr_inactive_file: pages(cached(at) * MIB), nr_active_file: pages(0.0), ..HostRow::default() };
            let Ok(()) = recorded.record(&Record::Sample(Box::new(sample)));
            let writes = if at % 10 == 3 || at % 10 == 4 { 30.0 * MIB } else { 0.0 };
            if at > 0 {
                bins.push(Bin { end: at as f64, length: 1.0, by_calls: writes, wchar: writes, ..Bin::default() });
            }
        }
        Replaced::of(&Group { total: sum(&bins), bins, ..Group::default() }, Syncs::default(), &recorded)
    }

    #[test]
    fn the_page_cache_tells_a_file_that_is_written_again() {
        // The first burst makes the file.
        let first = |at: usize| (at.saturating_sub(2) as f64 * 30.0).clamp(0.0, 60.0);
        let told_first = told(first).expect("each later burst writes it again");
        assert_eq!(told_first, Replaced { bytes: 60.0 * MIB, is_emptied: false, is_there: false });
        let there = told(|_| 500.0).expect("all bursts find it");
        assert!(there.is_there && there.in_place().is_some());
        // A second of each later burst has only what is written until then.
        let emptied = told(|at| if at > 5 && at % 10 == 3 { 30.0 } else { first(at) }).expect("it is emptied first");
        assert!(emptied.is_emptied && emptied.in_place().is_none());
    }

    #[test]
    fn a_page_cache_that_grows_with_the_bursts_has_appends() {
        let grows = |at: usize| 60.0 * (at / 10) as f64 + ((at % 10).saturating_sub(2) as f64 * 30.0).clamp(0.0, 60.0);
        assert_eq!(told(grows), None);
    }
}
