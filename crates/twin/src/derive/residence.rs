// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time for which data stays dirty. Without a sync, data stays until it is old or there is too much of it. The mean over all
//! bytes is the mean level divided by the rate (Little's law). Where data leaves much sooner, the programs that wrote it
//! requested that: they sync their writes, or open their files with O_SYNC or O_DSYNC. This needs no counted wait: waits of
//! threads are not counted. Bytes of a buffered loop device become dirty again below, so that the level of the machine does not tell
//! about its filesystem. What programs dirtied there and what the device wrote tell that.

use super::devices::written_twice;
use super::group::Group;
use super::machine::Place;
use super::places::At;
use super::rewrites::passed;
use crate::Recorded;
use floodline_analysis::budget::{Bound, budgets};
use floodline_analysis::diagnose::cgroup::is_within;
use floodline_analysis::diagnose::{device, dirty};
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::sample::HostRow;
use floodline_record::units::Nanos;
use std::collections::BTreeMap;

/// Largest share of the time without a sync for which data stays dirty that was written on request.
const SOON: f64 = 0.25;
/// Smallest number of intervals that show the mean level, and smallest share of all data in each of them.
const INTERVALS_MIN: usize = 8;
const SPREAD: f64 = 0.005;
/// Smallest amount of dirtied data that is judged, bytes.
const BYTES_MIN: f64 = 262_144.0;
/// Smallest share of the dirtied bytes that must be written: the rest may be dropped files.
const WRITTEN: f64 = 0.7;
/// Largest share of a background threshold that counts as far below it: the amount is then no reason to write.
const FAR_BELOW: f64 = 0.25;

/// Largest share of all data that is dirty at one time. A burst with a sync after it exceeds this share.
const PART_OF_ALL: f64 = 0.125;

/// Levels of dirty bytes, each with its time in seconds since the recording began.
type Levels = Vec<(f64, f64)>;

/// Returns for each group the mean time that its data stays dirty, seconds. `None` unless the data leave much sooner than without
/// a sync.
pub(super) fn written_soon(recorded: &Recorded, groups: &[Group], places: &[Place], at: &[At]) -> Vec<Option<f64>> {
    let window = &recorded.window;
    let none = || vec![None; groups.len()];
    let (Some(first), Some(expiry)) = (window.first_at, dirty::expiry_seconds(window)) else { return none() };
    let has_strict = device::devices(window)
        .iter()
        .any(|seen| seen.bdi().and_then(|span| span.last.strict_limit).is_some_and(|flag| flag.0 > 0));
    if has_strict {
        return none();
    }
    let page = dirty::page_size(window) as f64;
    let seconds = |at: Nanos| at.0.saturating_sub(first.monotonic.0) as f64 / 1e9;
    let of_row =
        |row: &HostRow| Some(row.nr_dirty?.0.saturating_add(row.nr_writeback.map_or(0, |pages| pages.0)) as f64 * page);
    let series = window.host_series.iter();
    let host: Levels = series.filter_map(|(time, row)| Some((seconds(time.monotonic), of_row(row)?))).collect();
    let end = host.last().map_or(0.0, |(at, _)| *at);
    let grew = &window.host.growth;
    let pages = |n: Option<floodline_record::units::Pages>| n.map_or(0.0, |n| n.0 as f64 * page);
    let (dirtied, written) = (pages(grew.nr_dirtied), pages(grew.nr_written));
    let background = window.host.last.nr_dirty_background_threshold.map(|n| n.0 as f64 * page);
    let by_itself = |arrivals: &[(f64, f64)]| stays(arrivals, end, expiry);
    let is_soon = |levels: &Levels, arrivals: &[(f64, f64)], background: Option<f64>| {
        let bytes: f64 = arrivals.iter().map(|(_, bytes)| bytes).sum();
        let most = levels.iter().map(|(_, level)| *level).fold(0.0, f64::max);
        let held = mean_level(levels, end) * end;
        // Between two samples, a burst comes and goes unseen.
        let spread = arrivals.iter().filter(|(_, part)| *part >= SPREAD * bytes).count();
        let is_soon = spread >= INTERVALS_MIN
            && bytes >= BYTES_MIN
            && background.is_some_and(|background| most <= FAR_BELOW * background)
            && most <= PART_OF_ALL * bytes
            && held <= SOON * by_itself(arrivals);
        is_soon.then(|| held / bytes)
    };
    // A buffered loop device makes each byte dirty once more, and requests it below.
    if !written_twice(window).is_empty() {
        let base = host.first().map_or(0.0, |(_, level)| *level);
        let of_place = |number: usize| {
            let here: Vec<&Group> =
                groups.iter().zip(at).filter(|(_, at)| at.place == number).map(|(one, _)| one).collect();
            let (levels, arrived) = on_loop(recorded, &here, number, places, base)?;
            is_soon(&levels, &arrived, background)
        };
        let soon: Vec<Option<f64>> = (0..places.len()).map(of_place).collect();
        return at.iter().map(|at| soon.get(at.place).copied().flatten()).collect();
    }
    let by_groups: f64 = groups.iter().map(|group| group.total.by_calls + group.total.mapped).sum();
    // Dropped files leave the level too, and writes past the page cache never reach it.
    if written < WRITTEN * dirtied || dirtied < WRITTEN * by_groups {
        return none();
    }
    let all: Vec<(f64, f64)> = arrivals(window.host_series.as_slice(), page, &seconds);
    let of_host = is_soon(&host, &all, background);
    let limits: BTreeMap<EntityId, f64> = budgets(window)
        .cgroups
        .iter()
        .filter_map(|one| Some((one.cgroup, one.domain.bg_thresh.and_then(Bound::exact)?.0 as f64)))
        .collect();
    let dirty_of_row = |row: &HostRow| Some(row.nr_dirty?.0 as f64 * page);
    let series = window.host_series.iter();
    let unwritten: Levels =
        series.filter_map(|(time, row)| Some((seconds(time.monotonic), dirty_of_row(row)?))).collect();
    let elsewhere = (mean_level(&unwritten, end) - held_by(recorded, groups, &host, &seconds)) * end;
    let of_group = |group: &Group| {
        let is_root = |id: &EntityId| matches!(window.entities.get(id), Some(Entity::Cgroup { path, .. }) if path.as_bytes() == b"/");
        let inner = group.cgroup.filter(|id| !is_root(id));
        let known = inner.and_then(|id| Some((id, recorded.dirty.get(&id)?, limits.get(&id))));
        let Some((id, levels, limit)) = known else { return of_host };
        let held = at_each(&dirty_of(levels, &seconds), &host, gone_at(recorded, id, &seconds));
        let of_cgroup = groups.iter().filter(|other| other.cgroup == group.cgroup);
        let mut arrived: BTreeMap<u64, f64> = BTreeMap::new();
        for bin in of_cgroup.flat_map(|other| &other.bins) {
            *arrived.entry((bin.end * 1e3) as u64).or_default() += bin.by_calls + bin.mapped;
        }
        let arrived: Vec<(f64, f64)> = arrived.into_iter().map(|(at, bytes)| (at as f64 / 1e3, bytes)).collect();
        // Writes past the page cache say nothing, and a program that syncs does not keep the data of its neighbours clean.
        let own: Vec<(f64, f64)> = group.bins.iter().map(|bin| (bin.end, bin.by_calls + bin.mapped)).collect();
        let is_own = group.total.direct <= 0.0 && mean_level(&held, end) * end <= SOON * by_itself(&own);
        if of_host.is_none() && !is_own {
            return None;
        }
        // What a removed cgroup held is still dirty elsewhere, beside what the cgroups of other programs hold.
        let may_be_elsewhere = of_host.is_none() && elsewhere > SOON * by_itself(&arrived);
        // A cgroup without a limit of its own has that of the machine.
        is_soon(&held, &arrived, limit.copied().or(background)).filter(|_| !may_be_elsewhere)
    };
    groups.iter().map(of_group).collect()
}

/// Returns a level, which is recorded where it changes, at the times of another level. The cgroup that has it is gone after `until`.
fn at_each(kept: &Levels, times: &Levels, until: Option<f64>) -> Levels {
    let before =
        |at: f64| kept[..kept.partition_point(|(then, _)| *then <= at)].last().map_or(0.0, |(_, bytes)| *bytes);
    let is_there = |at: f64| until.is_none_or(|until| at <= until);
    times.iter().map(|(at, _)| (*at, if is_there(*at) { before(*at) } else { 0.0 })).collect()
}

/// Dirty bytes of a cgroup as levels.
fn dirty_of(kept: &[(Nanos, u64)], seconds: &impl Fn(Nanos) -> f64) -> Levels {
    kept.iter().map(|(at, bytes)| (seconds(*at), *bytes as f64)).collect()
}

/// Returns when a cgroup was last read, seconds since the recording began, if later samples did not find it.
fn gone_at(recorded: &Recorded, id: EntityId, seconds: &impl Fn(Nanos) -> f64) -> Option<f64> {
    let cgroups = &recorded.window.cgroups;
    let latest = cgroups.values().map(|span| span.last_at).max()?;
    cgroups.get(&id).map(|span| span.last_at).filter(|last| *last < latest).map(seconds)
}

/// Mean of the dirty bytes that the cgroups of programs hold, each with those below it. What is being written is not among them.
fn held_by(recorded: &Recorded, groups: &[Group], host: &Levels, seconds: &impl Fn(Nanos) -> f64) -> f64 {
    let path = |id: &EntityId| match recorded.window.entities.get(id) {
        Some(Entity::Cgroup { path, .. }) if path.as_bytes() != b"/" => Some(path),
        _ => None,
    };
    let cgroups: BTreeMap<EntityId, _> =
        groups.iter().filter_map(|one| Some((one.cgroup?, path(&one.cgroup?)?))).collect();
    let is_below = |own: EntityId| {
        // A cgroup that was removed and made again is two cgroups with one path. Neither is below the other.
        let is_inner = |own: &Name, path: &Name| own.as_bytes().len() > path.as_bytes().len() && is_within(own, path);
        cgroups.get(&own).is_some_and(|own| cgroups.values().any(|path| is_inner(own, path)))
    };
    let end = host.last().map_or(0.0, |(at, _)| *at);
    let of_cgroup = |id: &EntityId| {
        let levels = dirty_of(recorded.dirty.get(id)?, seconds);
        Some(mean_level(&at_each(&levels, host, gone_at(recorded, *id, seconds)), end))
    };
    cgroups.keys().filter(|id| !is_below(**id)).filter_map(of_cgroup).sum()
}

/// The level of dirty bytes of the filesystem on a loop device, and when they became dirty. `base` is what may have been dirty there at
/// first. `None` for a device that is no loop device, that carries another one, or whose writes its programs do not explain.
fn on_loop(
    recorded: &Recorded,
    groups: &[&Group],
    number: usize,
    places: &[Place],
    base: f64,
) -> Option<(Levels, Levels)> {
    let place = places.get(number).filter(|place| place.below.is_some())?;
    if places.iter().any(|other| other.below == Some(place.dev)) {
        return None;
    }
    let window = &recorded.window;
    let first = window.first_at?.monotonic.0;
    let left: Levels = device::by_dev(window, place.dev)?
        .intervals()
        .iter()
        .map(|one| (one.end.0.saturating_sub(first) as f64 / 1e9, one.written_bytes))
        .collect();
    let sum = |of: fn(&Group) -> f64| groups.iter().map(|group| of(group)).sum::<f64>();
    let (dirtied, direct) = (sum(|group| group.total.dirtied()), sum(|group| group.total.direct));
    let passed = sum(|group| passed(&group.total).min(group.total.by_calls) + group.total.mapped);
    let written: f64 = left.iter().map(|(_, bytes)| bytes).sum();
    // A large folio becomes dirty whole. Newer kernels write only the blocks of it that a call passed.
    let to_leave = [dirtied, passed].into_iter().find(|bytes| written >= WRITTEN * bytes)?;
    if direct > 0.05 * dirtied || to_leave <= 0.0 {
        return None;
    }
    let mut arrived: BTreeMap<u64, f64> = BTreeMap::new();
    for bin in groups.iter().flat_map(|group| &group.bins) {
        *arrived.entry((bin.end * 1e3) as u64).or_default() += (bin.by_calls + bin.mapped) * to_leave / dirtied;
    }
    let arrived: Levels = arrived.into_iter().map(|(at, bytes)| (at as f64 / 1e3, bytes)).collect();
    Some((levels(base, &arrived, &left), arrived))
}

/// The level after each interval, from what came and what left.
fn levels(base: f64, arrived: &Levels, left: &Levels) -> Levels {
    // Both lists are in order of time.
    let (mut to_come, mut to_leave) = (arrived.iter().peekable(), left.iter().peekable());
    let mut balance = base;
    let level_at = |(end, _): &(f64, f64)| {
        while let Some((_, bytes)) = to_come.next_if(|(at, _)| *at <= end + 1e-3) {
            balance += bytes;
        }
        while let Some((_, bytes)) = to_leave.next_if(|(at, _)| *at <= end + 1e-3) {
            balance -= bytes;
        }
        (*end, balance.max(0.0))
    };
    std::iter::once((0.0, base)).chain(left.iter().map(level_at)).collect()
}

/// When bytes became dirty on the machine: end of the interval, and bytes.
fn arrivals(
    series: &[(floodline_record::sample::SampleTime, HostRow)],
    page: f64,
    seconds: &impl Fn(Nanos) -> f64,
) -> Vec<(f64, f64)> {
    let grown = |pair: &[(floodline_record::sample::SampleTime, HostRow)]| {
        let pages = pair[1].1.nr_dirtied?.0.saturating_sub(pair[0].1.nr_dirtied?.0);
        Some((seconds(pair[1].0.monotonic), pages as f64 * page))
    };
    series.windows(2).filter_map(grown).collect()
}

/// Byte seconds that data stays dirty until it is old, or until the recording ends.
fn stays(arrivals: &[(f64, f64)], end: f64, expiry: f64) -> f64 {
    arrivals.iter().map(|(at, bytes)| bytes * (end - at).clamp(0.0, expiry)).sum()
}

/// Mean of a level over time.
fn mean_level(levels: &Levels, end: f64) -> f64 {
    let sum: f64 = levels.windows(2).map(|pair| (pair[0].1 + pair[1].1) / 2.0 * (pair[1].0 - pair[0].0)).sum();
    sum / end.max(1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::id::Hierarchy;
    use floodline_record::window::Span;

    const SECOND: u64 = 1_000_000_000;

    /// Mean of what the cgroups of programs hold in 20 s. Each has a path, its dirty bytes, and the seconds of its first and last reading.
    fn held(cgroups: &[(&str, u64, u64, u64)]) -> f64 {
        let mut recorded = Recorded::default();
        let mut groups = Vec::new();
        for (number, (path, bytes, from, to)) in cgroups.iter().enumerate() {
            let id = EntityId(number as u32 + 1);
            let cgroup = Entity::Cgroup { path: Name::new(path), hierarchy: Hierarchy::V2, ino: None };
            recorded.window.entities.insert(id, cgroup);
            let (first_at, last_at) = (Nanos(from * SECOND), Nanos(to * SECOND));
            recorded.window.cgroups.insert(id, Span { first_at, last_at, ..Span::default() });
            recorded.dirty.insert(id, vec![(first_at, *bytes)]);
            groups.push(Group { cgroup: Some(id), ..Group::default() });
        }
        let host: Levels = (0..=200).map(|tenth| (f64::from(tenth) / 10.0, 0.0)).collect();
        held_by(&recorded, &groups, &host, &|at: Nanos| at.0 as f64 / 1e9)
    }

    fn is_near(held: f64, expected: f64) -> bool {
        (held / expected - 1.0).abs() < 0.02
    }

    #[test]
    fn a_cgroup_holds_nothing_after_it_was_removed() {
        let all = held(&[("/job", 8_000_000, 0, 5), ("/web", 1_000_000, 0, 20)]);
        assert!(is_near(all, 8e6 * 5.0 / 20.0 + 1e6), "{all}");
    }

    #[test]
    fn a_cgroup_that_was_made_again_is_not_below_itself() {
        let again = held(&[("/job", 8_000_000, 0, 5), ("/job", 4_000_000, 10, 20)]);
        assert!(is_near(again, 8e6 * 5.0 / 20.0 + 4e6 * 10.0 / 20.0), "{again}");
        // What an inner cgroup holds is in the one above it.
        let inner = held(&[("/job", 8_000_000, 0, 20), ("/job/step", 6_000_000, 0, 20), ("/jobs", 1_000_000, 0, 20)]);
        assert!(is_near(inner, 9e6), "{inner}");
    }

    #[test]
    fn the_level_of_an_image_is_what_came_without_what_left() {
        let each = |bytes: f64, from: u32| -> Levels { (from..=40).map(|at| (f64::from(at), bytes)).collect() };
        // 2 MB each second, which leave in the same second or half a minute later.
        let soon = levels(0.5e6, &each(2e6, 1), &each(2e6, 1));
        assert!((mean_level(&soon, 40.0) - 0.5e6).abs() < 1.0, "{soon:?}");
        let late: Levels = (1..=40).map(|at| (f64::from(at), if at > 30 { 2e6 } else { 0.0 })).collect();
        let late = levels(0.5e6, &each(2e6, 1), &late);
        assert!(mean_level(&late, 40.0) > 35e6, "{late:?}");
        // The journal writes more than programs dirtied.
        assert_eq!(levels(0.0, &each(1e6, 1), &each(2e6, 1)).last(), Some(&(40.0, 0.0)));
    }

    #[test]
    fn data_stays_until_it_is_old_or_the_recording_ends() {
        // 1 MB each second for 60 s, and 30 s until it is old.
        let arrivals: Vec<(f64, f64)> = (1..=60).map(|second| (f64::from(second), 1e6)).collect();
        let all = stays(&arrivals, 60.0, 30.0);
        assert!((all / (30.0 * 30e6 + 30.0 * 14.5e6) - 1.0).abs() < 0.01, "{all}");
        // A level of 30 MB is that of data that nothing syncs.
        let levels: Levels = (0..=60).map(|second| (f64::from(second), 1e6 * f64::from(second).min(30.0))).collect();
        assert!(mean_level(&levels, 60.0) * 60.0 > 0.9 * all);
        // One that is synced within half a second has half a megabyte.
        let levels: Levels = (0..=60).map(|second| (f64::from(second), 0.5e6)).collect();
        assert!(mean_level(&levels, 60.0) * 60.0 < 0.1 * all);
    }
}
