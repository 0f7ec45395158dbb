// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moments at which an unknown caller requested writeback of a whole filesystem (sync, syncfs, an unmount). Found in
//! traced waits, else in writes to the device of data that was neither old nor much.

use super::bursts::time;
use super::callers;
use super::drained::drained;
use super::group::Group;
use super::machine::Place;
use super::syncs::Syncs;
use floodline_analysis::diagnose::burst;
use floodline_analysis::diagnose::derived::Derived;
use floodline_analysis::diagnose::device::{self, Interval};
use floodline_analysis::diagnose::dirty;
use floodline_record::id::{Entity, EntityId};
use floodline_record::record::What;
use floodline_record::sample::{HostRow, ProcessRow};
use floodline_record::traced::waits::{Operation, SlowSync, Synced};
use floodline_record::units::{Nanos, Pages};
use floodline_record::window::{Span, Window};
use floodline_scenario::{OnPath, Step, Task, Until};
use std::collections::BTreeSet;

/// Most of them in a twin.
const ASKED_MAX: usize = 1000;
/// Shortest wait for a whole filesystem that had something to write, nanoseconds.
const SHORTEST: u64 = 5_000_000;
/// Largest distance of two requests that count as one, seconds.
const NEAR: f64 = 1.0;
/// Largest share of the written data that programs with fsyncs of their own may have written.
pub(super) const OWN_SHARE: f64 = 0.5;

/// Age that the level of dirty data does not tell, seconds: an inode is as old as its first change, be it its creation.
pub(super) const UNSEEN_AGE_S: f64 = 10.0;

/// A sync of one filesystem, seconds since the recording began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) at: f64,
    pub(super) seconds: f64,
    pub(super) place: &'a Place,
}

/// Returns all requests that no group makes, in order of time.
pub(super) fn asked<'a>(window: &Window, groups: &[(&Group, Syncs)], places: &'a [Place]) -> Vec<Asked<'a>> {
    let mut found = traced(window, places).unwrap_or_else(|| from_bursts(window, groups, places));
    found.sort_by(|one, other| one.at.total_cmp(&other.at));
    let mut kept: Vec<Asked<'a>> = Vec::new();
    for one in found {
        let is_near = |at: f64| (at - one.at).abs() <= NEAR;
        // A task that waits for a request in progress waits for the same data.
        let is_same = |last: &Asked<'_>| {
            last.place.dev == one.place.dev && one.at <= (last.at + last.seconds).max(last.at + NEAR)
        };
        let is_known = groups.iter().any(|(group, _)| group.syncs_of_others().any(|(_, at, _)| is_near(at)));
        if !is_known && !kept.iter().any(is_same) && kept.len() < ASKED_MAX {
            kept.push(one);
        }
    }
    kept
}

/// Whether the waits of programs for syncs, reads and pauses were traced one by one: by the part that follows bytes.
pub(super) fn has_waits(window: &Window) -> bool {
    window.traced.contains("bytes")
}

/// Requests from the waits that were long enough to be traced individually; `None` where they were not traced.
fn traced<'a>(window: &Window, places: &'a [Place]) -> Option<Vec<Asked<'a>>> {
    if !has_waits(window) {
        return None;
    }
    let first = window.first_at?.monotonic;
    let of = |at: Nanos, slow: &SlowSync| {
        let began = Nanos(at.0.checked_sub(slow.lasted.0)?.checked_sub(first.0)?);
        let whole = slow.device.map(|dev| window.lookup().whole(window, dev));
        let place = places.iter().find(|place| Some(place.dev) == whole).or(places.first())?;
        Some(Asked { at: began.as_secs_f64(), seconds: slow.lasted.as_secs_f64(), place })
    };
    let writes_nothing = write_nothing(window);
    // The command `sync FILE` calls fsync for a file that another program wrote.
    let is_of_others = |slow: &SlowSync| {
        slow.queued.is_some_and(|queued| queued.0 >= AT_ONCE_MIN) && writes_nothing.contains(&slow.who.pid)
    };
    // Short waits are counted between two samples, without their filesystem: containers come and go on that of the overlays.
    // One that took no time had nothing to write: the unmount of a filesystem in memory is one.
    let is_short = |synced: &Synced| !synced.operation.is_of_file() && synced.longest.0 >= SHORTEST;
    let is_any = window.events.iter().any(|event| matches!(&event.what, What::Synced(synced) if is_short(synced)));
    let of_overlays = is_any.then(|| overlays(window, places)).flatten();
    let mut slow: Vec<(u32, Nanos)> = Vec::new();
    for event in &window.events {
        match &event.what {
            What::SlowSync(one) if !one.operation.is_of_file() => slow.push((one.who.pid, event.at)),
            _ => {}
        }
    }
    slow.sort();
    let is_slow = |at: Nanos, synced: &Synced| {
        let from = slow.partition_point(|one| *one < (synced.who.pid, synced.since));
        slow.get(from).is_some_and(|one| *one <= (synced.who.pid, at))
    };
    let short = |at: Nanos, synced: &Synced| {
        let middle = Nanos(synced.since.0.midpoint(at.0).saturating_sub(first.0));
        let place = of_overlays.or(places.first()).filter(|_| !is_slow(at, synced))?;
        Some(Asked { at: middle.as_secs_f64(), seconds: synced.longest.as_secs_f64(), place })
    };
    let waits = window.events.iter().filter_map(|event| match &event.what {
        What::Synced(synced) if is_short(synced) => short(event.at, synced),
        What::SlowSync(slow) => match slow.operation {
            Operation::Sync | Operation::SyncFilesystem => of(event.at, slow),
            Operation::Fsync | Operation::Fdatasync if is_of_others(slow) => of(event.at, slow),
            _ => None,
        },
        _ => None,
    });
    Some(waits.collect())
}

/// The place with the upper directories of overlays.
fn overlays<'a>(window: &Window, places: &'a [Place]) -> Option<&'a Place> {
    let derived = Derived::of(window);
    let uppers = &derived.unmounts().uppers;
    places.iter().find(|place| uppers.iter().any(|upper| upper.device.dev == place.dev))
}

/// Processes that passed nothing to write calls since they started.
fn write_nothing(window: &Window) -> BTreeSet<u32> {
    let of = |(id, span): (&EntityId, &Span<ProcessRow>)| match window.entities.get(id) {
        Some(Entity::Process { pid, kthread: false, .. }) => span.last.wchar.filter(|bytes| bytes.0 == 0).map(|_| *pid),
        _ => None,
    };
    window.processes.iter().filter_map(of).collect()
}

/// Least that is dirty where all of it is written at once, bytes.
const AT_ONCE_MIN: u64 = 4 << 20;
/// Shares of the dirty data: that which is no longer dirty, and that which was written.
const AT_ONCE: f64 = 0.95;
/// A request within this many seconds of another is not a sync.
const REPEATED_S: f64 = 4.0;
/// Share of the background threshold from which the amount may be the trigger.
const NEAR_THRESHOLD: f64 = 0.9;

/// Requests from data that was entirely written between two samples, though it was neither old nor much: too short for
/// a burst of a device.
fn at_once<'a>(window: &Window, own: f64, places: &'a [Place]) -> Vec<Asked<'a>> {
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1));
    let (Some(first), Some(expiry)) = (window.first_at, dirty::expiry_seconds(window)) else { return Vec::new() };
    let seconds = |at: Nanos| Nanos(at.0.saturating_sub(first.monotonic.0)).as_secs_f64();
    let mut found: Vec<Asked<'a>> = Vec::new();
    let mut emptied = Vec::new();
    let intervals =
        |place: &Place| device::by_dev(window, place.dev).map_or_else(Vec::new, |device| device.intervals());
    let devices: Vec<(&Place, Vec<Interval>)> = places.iter().map(|place| (place, intervals(place))).collect();
    let grown = |at: usize, of: fn(&HostRow) -> Option<Pages>| {
        let [(_, then), (_, after)] = window.host_series.get(at..at + 2)? else { return None };
        Some(of(after)?.0.saturating_sub(of(then)?.0).saturating_mul(page))
    };
    // When nothing was dirty for the last time, and whether a sync was the reason: then no inode is older.
    let mut clean: Option<(f64, bool)> = None;
    for (at, pair) in window.host_series.windows(2).enumerate() {
        let [(before, then), (now, after)] = pair else { continue };
        let level = |row: &HostRow| row.nr_dirty.map(|pages| pages.bytes(page).0);
        let (Some(dirty), Some(left)) = (level(then), level(after)) else { continue };
        let written_in = |at: usize| grown(at, |row| row.nr_written);
        let (Some(dirtied), Some(written)) = (grown(at, |row| row.nr_dirtied), written_in(at)) else { continue };
        if dirty < AT_ONCE_MIN / 16 {
            clean = Some((seconds(before.monotonic), clean.is_some_and(|(_, is_asked)| is_asked)));
        }
        let is_written = |amount: u64| amount >= AT_ONCE_MIN && written as f64 >= AT_ONCE * amount as f64;
        let is_left = |of: u64, new: u64| left as f64 <= (1.0 - AT_ONCE) * of as f64 + new as f64;
        // What was dirty before, or what came in this interval and went in it, if the device does not go on like that:
        // then it is the writeback of a small budget.
        let beside = [at.checked_sub(1).and_then(written_in), written_in(at + 1)];
        let is_alone = beside.into_iter().flatten().all(|other| other as f64 <= (1.0 - AT_ONCE) * written as f64);
        let is_all = is_written(dirty) && is_left(dirty, dirtied) || is_written(dirtied) && is_left(dirtied, 0);
        if !is_all {
            continue;
        }
        let middle = (seconds(before.monotonic) + seconds(now.monotonic)) / 2.0;
        emptied.push(middle);
        if !is_alone {
            continue;
        }
        let is_old = clean.is_none_or(|(since, is_asked)| {
            let unseen = if is_asked { 0.0 } else { UNSEEN_AGE_S };
            seconds(now.monotonic) - since + unseen >= expiry
        });
        let background = after.nr_dirty_background_threshold.map(|pages| pages.bytes(page).0 as f64);
        let is_much =
            background.is_some_and(|background| dirty.saturating_add(dirtied) as f64 >= NEAR_THRESHOLD * background);
        let is_asked = !is_old && !is_much && own < OWN_SHARE * dirty.max(dirtied) as f64;
        clean = Some((middle, is_asked));
        let wrote = |intervals: &[Interval]| written_between(intervals, before.monotonic, now.monotonic);
        let most = devices.iter().max_by(|(_, one), (_, other)| wrote(one).total_cmp(&wrote(other)));
        if let Some((place, _)) = most.filter(|_| is_asked) {
            found.push(Asked { at: middle, seconds: 0.0, place });
        }
    }
    // A pattern that repeats every few seconds is also writeback of small budgets. A sync may precede it.
    let is_shortly_before = |at: f64, one: f64| at < one && one - at < REPEATED_S;
    found.retain(|one| !emptied.iter().any(|at| is_shortly_before(*at, one.at)));
    found
}

/// Bytes that a device wrote from one sample to another.
pub(super) fn written_between(intervals: &[Interval], from: Nanos, to: Nanos) -> f64 {
    let after = &intervals[intervals.partition_point(|one| one.end <= from)..];
    after.iter().take_while(|one| one.end <= to).map(|one| one.written_bytes).sum()
}

/// Part of its limit from which the memory of a cgroup is full, and part of it that is then unwritten where reclaim has to write.
const FULL: f64 = 0.95;
const UNWRITTEN: f64 = 0.5;

/// Whether most of the unwritten data was that of a cgroup without a dirty limit of its own whose memory it filled. Reclaim then finds
/// only unwritten pages, and wakes the flusher for all data of the machine, whatever its age (`WB_REASON_VMSCAN`).
fn is_reclaimed(window: &Window) -> bool {
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1));
    let pages = |pages: Option<Pages>| pages.map_or(0, |pages| pages.bytes(page).0);
    let levels = window.host_series.iter().map(|(_, row)| pages(row.nr_dirty).saturating_add(pages(row.nr_writeback)));
    let peak = levels.max().unwrap_or(0) as f64;
    let is_per_cgroup = window.facts.as_ref().is_some_and(|facts| facts.cgroups.has_unified_writeback());
    let is_full = |(id, unwritten): (&EntityId, &u64)| {
        let span = window.cgroups.get(id)?;
        let limit = window.cgroup_limits.get(id)?.last.memory_max?.bytes()?.0 as f64;
        let unwritten = *unwritten as f64;
        Some(span.max.memory_current?.0 as f64 >= FULL * limit && unwritten >= UNWRITTEN * limit.max(peak))
    };
    !is_per_cgroup && window.unwritten_max.iter().any(|one| is_full(one) == Some(true))
}

/// Requests from bursts that neither the age nor the amount of the dirty data explains.
fn from_bursts<'a>(window: &Window, groups: &[(&Group, Syncs)], places: &'a [Place]) -> Vec<Asked<'a>> {
    let Some(first) = window.first_at.map(|first| first.monotonic) else { return Vec::new() };
    if is_reclaimed(window) {
        return Vec::new();
    }
    let own: f64 =
        groups.iter().filter(|(_, syncs)| syncs.call.is_some()).map(|(group, _)| group.total.dirtied()).sum();
    let mut found = at_once(window, own, places);
    found.extend(drained(window, own, places));
    let derived = Derived::of(window);
    for drain in derived.drains() {
        let Some(place) = places.iter().find(|place| place.dev == drain.dev) else { continue };
        for one in burst::all(&derived, drain) {
            let expiry = dirty::expiry_seconds(window).filter(|_| !one.is_traced);
            let may_be_old = expiry.is_some_and(|expiry| one.age_s.is_none_or(|age| age + UNSEEN_AGE_S > expiry));
            let is_own = own >= OWN_SHARE * one.dirty_before as f64;
            if !one.may_be_asked() || may_be_old || is_own {
                continue;
            }
            let at = Nanos(one.from.0.saturating_sub(first.0)).as_secs_f64();
            found.push(Asked { at, seconds: one.seconds, place });
        }
    }
    let uppers = derived.unmounts().uppers.iter().map(|upper| upper.device.dev).collect();
    callers::retain_called(window, &mut found, &uppers);
    found
}

/// The task that makes the requests.
pub(super) fn task(asked: &[Asked<'_>]) -> Option<Task> {
    let steps = steps(asked.iter().map(|one| (one.at, one.seconds, one.place)));
    (!steps.is_empty()).then(|| Task { steps, ..Task::default() })
}

/// Syncs of filesystems, in order of time: when each begins and how long it takes, in seconds.
pub(super) fn steps<'a>(syncs: impl Iterator<Item = (f64, f64, &'a Place)>) -> Vec<Step> {
    let (mut steps, mut now) = (Vec::new(), 0.0);
    for (at, seconds, place) in syncs {
        if at > now + 1e-3 {
            steps.push(Step::SleepUntil(Until { at: time(at) }));
        }
        steps.push(Step::Syncfs(OnPath { path: place.point.clone() }));
        now = at + seconds;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::traced::Who;
    use floodline_record::units::Bytes;
    use floodline_testkit::Fixture;

    #[test]
    fn a_short_sync_of_a_filesystem_is_a_request_and_a_long_one_is_no_second() {
        let first = Fixture::healthy().window().first_at.unwrap().monotonic;
        let place = Place::of_disk("sda");
        let who = |pid| Who { pid, comm: "kubelet".into(), cgroup_ino: 1 };
        let synced = |pid, operation, ms| {
            let lasted = Nanos::from_millis(ms);
            What::Synced(Synced { since: first, who: who(pid), operation, count: 1, total: lasted, longest: lasted })
        };
        let slow = |pid, operation, ms| {
            What::SlowSync(SlowSync {
                who: who(pid),
                tid: None,
                operation,
                lasted: Nanos::from_millis(ms),
                device: None,
                file: None,
                queued: None,
                own: Bytes(0),
            })
        };
        let check = |events: Vec<What>, expect: &[f64]| {
            let window = Fixture::healthy().traced(&["bytes"], events).window();
            let places = [place.clone()];
            let found: Vec<f64> = traced(&window, &places).unwrap().iter().map(|asked| asked.at).collect();
            assert_eq!(found, expect);
        };
        let whole = Operation::SyncFilesystem;
        check(vec![synced(7, whole, 40)], &[0.5]);
        check(vec![synced(7, whole, 1)], &[]);
        check(vec![synced(7, Operation::Fsync, 40)], &[]);
        check(vec![synced(7, whole, 400), slow(7, whole, 400)], &[0.6]);
        check(vec![synced(7, whole, 40), slow(8, whole, 400)], &[0.5, 0.6]);
    }
}
