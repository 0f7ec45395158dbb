// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that each burst of a program writes again as a whole, such as a report or a catalogue. If it is clean when the next burst begins,
//! the counters of the program are those of one that appends. The page cache shows the difference: an append makes it grow by the burst,
//! and a file that is written again does not. A program that empties its file first makes the page cache smaller for a moment.

use super::bursts::Burst;
use super::group::{Bin, Group, PAGE};
use super::rewrites::Rewritten;
use super::syncs::Syncs;
use super::temporary::{RESTS_MIN, whole_bursts};
use crate::Recorded;
use floodline_analysis::diagnose::cgroup::is_within;
use floodline_record::id::{Entity, EntityId};
use floodline_record::sample::{CgroupLimitsRow, CgroupRow, HostRow, SampleTime};
use floodline_record::units::Limit;
use floodline_record::window::{Span, Window};

/// Smallest burst, bytes.
const BURST_MIN: f64 = 8_388_608.0;
/// Largest distance of the bursts from the largest one, as a share of it. The begin and the end of the recording may cut the first and the
/// last one.
const ALIKE: f64 = 0.1;
/// Size of a burst below which it is something else that the program writes, such as lines of a log, as a share of the largest one.
const LITTLE: f64 = 0.02;
/// Largest growth of the page cache over a burst that writes the same file again, as a share of the burst.
const NONE_NEW: f64 = 0.1;
/// Least drop of the page cache within a burst whose program empties its file first, as a share of the burst.
const EMPTIED: f64 = 0.1;
/// Least part of a program of what is dirtied in the intervals of its bursts. Others that dirty more make the page cache grow, or remove
/// from it.
const MOST: f64 = 0.8;
/// Use of a limit of a cgroup, as a share of it, from which the kernel may have reclaimed for it.
const NEAR: f64 = 0.95;

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
    /// cache grows with its bursts, where the kernel may have reclaimed some of it, and where others of `all` dirtied much meanwhile.
    pub(super) fn of(group: &Group, all: &[Group], syncs: Syncs, recorded: &Recorded) -> Option<Replaced> {
        let total = &group.total;
        let window = &recorded.window;
        if syncs.call.is_some() || total.cancelled > 0.0 || total.direct > 0.0 || total.mapped > 0.0 {
            return None;
        }
        let mut bursts = without_holes(whole_bursts(group), &group.bins);
        let bytes = bursts.iter().map(|burst| burst.amount).fold(0.0, f64::max);
        bursts.retain(|burst| burst.amount >= LITTLE * bytes);
        // What the program wrote of the first burst before the recording, the recording does not have.
        let is_cut = bursts.first()?.from < 1e-6;
        let begun = &bursts[usize::from(is_cut)..];
        let whole = &begun[..begun.len().checked_sub(1)?];
        let is_alike = whole.iter().all(|burst| burst.amount >= (1.0 - ALIKE) * bytes);
        let are_apart = bursts.windows(2).all(|pair| pair[1].from - pair[0].to >= RESTS_MIN);
        if whole.is_empty() || !is_alike || !are_apart || bytes < BURST_MIN {
            return None;
        }
        if Reclaimed::of(window).is_of(group, window) || part_of(group, all) < MOST {
            return None;
        }
        let cache = Cache::of(window)?;
        let is_again = |burst: &Burst| cache.growth(burst).is_some_and(|grew| grew <= NONE_NEW * burst.amount);
        // A burst of one interval has no sample within it.
        let mut shrinks = bursts[1..].iter().filter_map(|burst| Some(cache.shrinks(burst)? >= EMPTIED * burst.amount));
        bursts[1..].iter().all(is_again).then(|| Replaced {
            bytes,
            is_emptied: shrinks.next().is_some_and(|first| first && shrinks.all(|other| other)),
            is_there: begun.first().is_some_and(is_again),
        })
    }

    /// The file where it is written in place.
    pub(super) fn in_place(self) -> Option<Rewritten> {
        let Replaced { bytes, is_emptied, is_there } = self;
        let why = "the page cache does not grow with its bursts: each burst writes the same file again";
        (!is_emptied).then_some(Rewritten { bytes, is_ring: true, run: 1.0, is_there, dirty: 0.0, why })
    }
}

/// Length of an interval over the usual one from which samples are missing in it.
const HOLE: f64 = 2.0;

/// Leaves out the bursts in whose time samples are missing: they may be several.
fn without_holes(mut bursts: Vec<Burst>, bins: &[Bin]) -> Vec<Burst> {
    let mut lengths: Vec<f64> = bins.iter().map(|bin| bin.length).collect();
    lengths.sort_by(f64::total_cmp);
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0);
    let is_hole = |bin: &&Bin| bin.length > HOLE * usual;
    let touches = |burst: &Burst| {
        bins.iter().filter(is_hole).any(|bin| bin.end > burst.from + 1e-6 && bin.end - bin.length < burst.to - 1e-6)
    };
    bursts.retain(|burst| !touches(burst));
    bursts
}

/// Where the kernel reclaimed memory, or may have done so for the limit of a cgroup: the counters of the machine leave that out.
pub(super) struct Reclaimed {
    of_machine: bool,
    /// Cgroups that were near a limit or met it.
    near: Vec<EntityId>,
}

impl Reclaimed {
    pub(super) fn of(window: &Window) -> Reclaimed {
        let growth = &window.host.growth;
        let is_near = |(id, span): (&EntityId, &Span<CgroupLimitsRow>)| {
            let limits = [span.last.memory_max, span.last.memory_high].into_iter().flatten();
            let limit = limits.filter_map(Limit::bytes).min();
            let used = window.cgroups.get(id).and_then(|span| span.max.memory_current);
            limit.zip(used).is_some_and(|(limit, used)| used.0 as f64 >= NEAR * limit.0 as f64).then_some(*id)
        };
        let has_events = |(id, span): (&EntityId, &Span<CgroupRow>)| {
            let events = [span.growth.events_max, span.growth.events_high].into_iter().flatten();
            events.map(|count| count.0).any(|count| count > 0).then_some(*id)
        };
        let mut near: Vec<EntityId> = window.cgroup_limits.iter().filter_map(is_near).collect();
        near.extend(window.cgroups.iter().filter_map(has_events));
        let scanned = [growth.pgscan_kswapd, growth.pgscan_direct].into_iter().flatten();
        Reclaimed { of_machine: scanned.into_iter().any(|pages| pages.0 > 0), near }
    }

    /// Whether memory of the machine was reclaimed, or may have been for the cgroup of a group or for one above it.
    pub(super) fn is_of(&self, group: &Group, window: &Window) -> bool {
        let path = |id: &EntityId| match window.entities.get(id) {
            Some(Entity::Cgroup { path, .. }) => Some(path),
            _ => None,
        };
        let own = group.cgroup.as_ref().and_then(path);
        let is_above = |id: &EntityId| own.zip(path(id)).is_some_and(|(own, above)| is_within(own, above));
        self.of_machine || self.near.iter().any(is_above)
    }
}

/// Part of a group of what all groups dirtied in the intervals in which it wrote.
fn part_of(group: &Group, all: &[Group]) -> f64 {
    let is_then = |number: usize| group.bins.get(number).is_some_and(|bin| bin.by_calls > 0.0);
    let of = |one: &Group| -> f64 {
        let then = one.bins.iter().enumerate().filter(|(number, _)| is_then(*number));
        then.map(|(_, bin)| bin.by_calls + bin.mapped).sum()
    };
    of(group) / all.iter().map(of).sum::<f64>().max(1.0)
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
pub(super) mod tests {
    use super::super::group::sum;
    use super::*;
    use floodline_record::record::{Record, Sink};
    use floodline_record::sample::Sample;
    use floodline_record::units::{Bytes, Count, Nanos, Pages};
    use floodline_testkit::{Fixture, mib};

    const MIB: f64 = 1_048_576.0;

    /// A program that writes `written` MiB in each of 30 seconds, and a recording with the page cache of each, in MiB.
    fn host(written: impl Fn(usize) -> f64, cached: impl Fn(usize) -> f64) -> (Group, Recorded) {
        let mut recorded = Recorded::default();
        let mut bins = Vec::new();
        for at in 0..30 {
            let mut sample = Sample::default();
            sample.time.monotonic = Nanos(at as u64 * 1_000_000_000);
            let pages = |bytes: f64| Some(Pages((bytes / PAGE) as u64));
            sample.host =
                HostRow { nr_inactive_file: pages(cached(at) * MIB), nr_active_file: pages(0.0), ..HostRow::default() };
            let Ok(()) = recorded.record(&Record::Sample(Box::new(sample)));
            let writes = written(at) * MIB;
            if at > 0 {
                bins.push(Bin { end: at as f64, length: 1.0, by_calls: writes, wchar: writes, ..Bin::default() });
            }
        }
        (Group { total: sum(&bins), bins, ..Group::default() }, recorded)
    }

    /// Three bursts of 60 MiB, each of two seconds, 10 s apart.
    fn bursts(at: usize) -> f64 {
        if at % 10 == 3 || at % 10 == 4 { 30.0 } else { 0.0 }
    }

    /// A program that writes one file again in each burst, and its recording.
    pub(in super::super) fn written_again() -> (Group, Recorded) {
        host(bursts, |_| 500.0)
    }

    fn alone(group: &Group, recorded: &Recorded) -> Option<Replaced> {
        Replaced::of(group, std::slice::from_ref(group), Syncs::default(), recorded)
    }

    /// `cached` is the page cache at each second, in MiB.
    fn told(cached: impl Fn(usize) -> f64) -> Option<Replaced> {
        let (group, recorded) = host(bursts, cached);
        alone(&group, &recorded)
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

    #[test]
    fn a_burst_that_the_begin_of_the_recording_cuts_tells_nothing() {
        // 40 MiB of the first burst are in the recording.
        let cut = |at: usize| if at == 1 { 40.0 } else { bursts(at + 8) };
        let (group, recorded) = host(cut, |_| 500.0);
        let told = alone(&group, &recorded).expect("the later bursts tell");
        assert_eq!(told, Replaced { bytes: 60.0 * MIB, is_emptied: false, is_there: true });
        // One that begins later and is smaller than the others is another file.
        let smaller = |at: usize| if at == 2 { 40.0 } else { bursts(at + 7) };
        let (group, recorded) = host(smaller, |_| 500.0);
        assert_eq!(alone(&group, &recorded), None);
    }

    #[test]
    fn a_burst_without_a_sample_in_it_does_not_show_an_empty_file() {
        let (group, recorded) = host(|at| if at % 10 == 3 { 60.0 } else { 0.0 }, |_| 500.0);
        let told = alone(&group, &recorded).expect("the page cache does not grow");
        assert_eq!(told, Replaced { bytes: 60.0 * MIB, is_emptied: false, is_there: true });
    }

    #[test]
    fn a_limit_that_holds_a_burst_up_does_not_divide_it() {
        // Each burst of 60 MiB is held up for a second or two in its middle.
        let told = |waited: f64| {
            let (mut group, recorded) = host(|at| if at % 10 == 3 || at % 10 == 6 { 30.0 } else { 0.0 }, |_| 500.0);
            for (number, bin) in group.bins.iter_mut().enumerate() {
                bin.waited = if (number + 1) % 10 == 4 || (number + 1) % 10 == 5 { waited } else { 0.0 };
            }
            alone(&group, &recorded).map(|told| told.bytes / MIB)
        };
        assert_eq!(told(1.0), Some(60.0));
        assert_eq!(told(0.0), None, "it rests: bursts of 30 MiB that are not apart");
    }

    #[test]
    fn a_few_pages_between_the_bursts_are_something_else() {
        let with = |little: f64| {
            let (group, recorded) = host(|at| if at % 10 == 8 { little } else { bursts(at) }, |_| 500.0);
            alone(&group, &recorded).map(|told| told.bytes / MIB)
        };
        assert_eq!(with(0.1), Some(60.0));
        assert_eq!(with(20.0), None);
    }

    #[test]
    fn bursts_in_a_hole_of_the_recording_tell_nothing() {
        let (mut group, recorded) = host(bursts, |_| 500.0);
        let hole = |bins: &mut Vec<Bin>, long: f64| {
            // The second burst and the time before the third one are in an interval of nine seconds.
            let mut joined: Vec<Bin> = bins.drain(11..20).collect();
            let by_calls: f64 = joined.iter().map(|bin| bin.by_calls).sum();
            let last = joined.pop().expect("nine");
            bins.insert(11, Bin { length: long, by_calls, ..last });
        };
        hole(&mut group.bins, 9.0);
        // What came in it is not known to be one burst.
        group.bins[11].by_calls *= 2.0;
        assert_eq!(alone(&group, &recorded).map(|told| told.bytes / MIB), Some(60.0));
    }

    #[test]
    fn others_that_dirty_much_meanwhile_hide_what_an_append_adds() {
        let (group, recorded) = host(bursts, |_| 500.0);
        let beside = |share: f64| {
            let bins: Vec<Bin> = group.bins.iter().map(|bin| Bin { by_calls: share * bin.by_calls, ..*bin }).collect();
            let other = Group { total: sum(&bins), bins, ..Group::default() };
            Replaced::of(&group, &[group.clone(), other], Syncs::default(), &recorded)
        };
        assert!(beside(0.1).is_some());
        assert_eq!(beside(1.0), None);
    }

    #[test]
    fn a_cgroup_near_its_limit_loses_page_cache_while_the_machine_reclaims_nothing() {
        // The program is in /shop/web. `of` has a limit of 100 MiB.
        let near = |of: &'static str, used: f64, events: u64| {
            let window = Fixture::healthy()
                .cgroup("/shop/web", |_, _| ())
                .cgroup(of, move |t, row| {
                    row.memory_current = Some(Bytes(mib(used)));
                    row.events_high = Some(Count(if t > 5.0 { events } else { 0 }));
                })
                .limits(of, |_, row| row.memory_max = Some(Limit(mib(100.0))))
                .window();
            let web =
                |entity: &Entity| matches!(entity, Entity::Cgroup { path, .. } if path.as_bytes() == b"/shop/web");
            let cgroup = window.entities.iter().find(|(_, entity)| web(entity)).map(|(id, _)| *id);
            Reclaimed::of(&window).is_of(&Group { cgroup, ..Group::default() }, &window)
        };
        assert!(near("/shop", 99.0, 0) && near("/shop/web", 99.0, 0), "its own limit, and one above it");
        assert!(near("/shop", 60.0, 3), "it was at memory.high for a moment");
        assert!(!near("/shop", 60.0, 0));
        assert!(!near("/sho", 99.0, 3) && !near("/shop/web/other", 99.0, 3), "limits of others");
    }
}
