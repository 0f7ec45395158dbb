// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls for stable storage of each program. A trace counts them. Without one they are told by waits: a program that waits
//! whenever it writes, or at the ends of its bursts. Flushes of the devices bound their number.

mod flushes;
mod shown;

pub(super) use self::shown::are_shown;

use super::group::{Bin, Group, PAGE, Synced};
use super::machine::Place;
use super::places::At;
use crate::provenance::Origin;
use floodline_record::programs::RECORDER;
use floodline_record::window::Window;
use floodline_scenario::SyncCall;
use flushes::{FLUSHES_MAX, MORE_CALLS, apart, flushes_for_programs, is_in_place, share_flushes};

/// Calls for stable storage of one program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syncs {
    /// Number in the recording.
    pub(super) count: f64,
    /// The call, where it is known.
    pub(super) call: Option<SyncCall>,
    /// Source of that knowledge.
    pub(super) origin: Origin,
    /// Mean wait of one, in seconds, where they come at the ends of its bursts rather than after a number of its calls.
    pub(super) at_ends: Option<f64>,
    /// Whether only the short time for which its data stays dirty shows them.
    pub(super) is_by_age: bool,
    /// Flushes of the device that they are told by. A sync of pages that the file has already needs one, a sync that makes it longer
    /// up to [`FLUSHES_MAX`].
    pub(super) flushes: Option<f64>,
    /// Whether each call is synced, and makes one write of the device: the file has its length already.
    pub(super) is_in_place: bool,
    /// Whether a sync comes at the end of each burst, even if no wait after the burst shows it.
    pub(super) is_each_burst: bool,
}

impl Default for Syncs {
    fn default() -> Syncs {
        Syncs {
            count: 0.0,
            call: None,
            origin: Origin::Derived,
            at_ends: None,
            is_by_age: false,
            flushes: None,
            is_in_place: false,
            is_each_burst: false,
        }
    }
}

impl Syncs {
    /// The syncs of a program that overwrites pages: each needs one flush.
    pub(super) fn of_overwrites(self, group: &Group) -> Syncs {
        let count = self.flushes.map_or(self.count, |flushes| flushes.max(self.count).min(buffered_calls(group)));
        Syncs { count, ..self }
    }
}

/// Share of its writes in which a program that makes them durable waits.
const DURABLE_SHARE: f64 = 0.6;
/// Fewest intervals with writes that show a habit rather than chance.
const ACTIVE_MIN: usize = 4;

/// Syncs that share one flush of a device, at most.
const SHARE_A_FLUSH: f64 = 4.0;

/// Busy share of a device from which data waits for the device, with any number of syncs.
const FULL: f64 = 0.8;
/// Longest time that data stays dirty where its programs sync after a few calls and the device has time, seconds.
const SOON_MAX: f64 = 1.0;

/// Counts the syncs of groups whose data is written soon though no other counter shows a sync. `soon` is the mean time that the data
/// of each group stays dirty, seconds. Each sync makes at least one write of the device and writes at least one page. Where a trace
/// counts the calls that wait for stable storage, data of a program without such calls leaves soon because the program starts the
/// writes and does not wait for them, as sync_file_range does. The same holds on a device that was flushed far less often than syncs would
/// flush it, unless one sync at the end of each burst explains the flushes.
pub(super) fn add_by_age(
    groups: &[Group],
    places: &[Place],
    at: &[At],
    (soon, busy): (&[Option<f64>], &[f64]),
    syncs: &mut [Syncs],
) {
    let is_traced = syncs.iter().any(|syncs| syncs.origin == Origin::Measured);
    for (number, place) in places.iter().enumerate() {
        let here = || (0..groups.len()).filter(|one| at[*one].place == number);
        let told: f64 = here().map(|one| syncs[one].count).sum();
        let is_full = busy.get(number).is_some_and(|busy| *busy >= FULL);
        let most = |one: usize| {
            let total = &groups[one].total;
            if groups[one].is_mostly_mapped() {
                // A trace counts its syncs.
                let is_open = !is_traced && syncs[one].call.is_none();
                return soon[one].filter(|_| is_open).map(|stays| of_mapping(&groups[one], stays));
            }
            let seconds: f64 = groups[one].bins.iter().filter(|bin| bin.by_calls > 0.0).map(|bin| bin.length).sum();
            let stays = soon[one].filter(|stays| is_full || *stays <= SOON_MAX)?;
            // Data that is synced every few seconds stays for half of them.
            let by_time = if is_full { f64::INFINITY } else { seconds / (2.0 * stays).max(1e-3) };
            let calls = buffered_calls(&groups[one]);
            // Calls of less than a page that each are synced dirty a page each beside what they fill.
            let beside = (total.by_calls - total.wchar) / PAGE;
            let is_small = total.wchar < PAGE * total.calls && beside >= 1.0;
            let by_pages = if is_small { beside } else { total.by_calls / PAGE };
            (syncs[one].call.is_none()).then(|| calls.min(by_pages).min(by_time * groups[one].concurrent() as f64))
        };
        let new: Vec<(usize, f64)> = here().filter_map(|one| Some((one, most(one)?))).collect();
        let all: f64 = new.iter().map(|(_, most)| most).sum();
        let share = ((place.writes as f64 - told) / all.max(1.0)).clamp(0.0, 1.0);
        // A device that counts flushes is flushed by each sync, and a few syncs share one.
        let used: f64 = here().map(|one| syncs[one].flushes.unwrap_or(syncs[one].count)).sum();
        let left = flushes_for_programs(groups, place) - used;
        let counts_flushes = place.flushes > 0 && place.below.is_none();
        let is_flushed = !counts_flushes || share * all <= SHARE_A_FLUSH * left;
        let bursts: f64 = new.iter().filter_map(|(one, _)| apart(&groups[*one])).sum();
        let calls: f64 = new.iter().map(|(one, _)| buffered_calls(&groups[*one])).sum();
        let dirtied: f64 = here().map(|one| groups[one].total.dirtied()).sum();
        let is_in_place = !is_traced && counts_flushes && calls >= 1.0 && is_in_place(dirtied, place, calls, left);
        for (one, most) in new {
            let at_ends = apart(&groups[one]).filter(|_| !is_flushed && !is_traced && bursts <= left);
            let flushes = (left > 0.0).then(|| left * most / all.max(1.0));
            let count = match flushes.filter(|_| counts_flushes && is_flushed) {
                _ if is_in_place => buffered_calls(&groups[one]),
                Some(flushes) => (share * most).min((flushes / flushes_of_sync(&groups[one])).max(1.0)),
                None => at_ends.unwrap_or(share * most),
            };
            // A sync also flushes a loop device.
            let is_started = is_traced || (place.below.is_some() && (place.flushes as f64) < told + count);
            let is_started = is_started || (!is_flushed && at_ends.is_none());
            let call = if is_started { SyncCall::SyncFileRange } else { SyncCall::Fdatasync };
            if count >= 1.0 {
                let flushes = flushes.filter(|_| at_ends.is_none());
                syncs[one] =
                    Syncs { count, call: Some(call), is_by_age: true, flushes, is_in_place, ..Syncs::default() };
            }
        }
    }
}

/// Most flushes of a sync. A sync of stores into a mapped file needs one flush, because the file does not become longer.
fn flushes_of_sync(group: &Group) -> f64 {
    if group.is_mostly_mapped() { 1.0 } else { FLUSHES_MAX }
}

/// Syncs of a program that mostly stores into a mapped file: one in each interval with stores, and no more than leave the data dirty for
/// `stays` seconds. More of them would write the same pages, unless a program stores into them again between two syncs.
fn of_mapping(group: &Group, stays: f64) -> f64 {
    let storing = || group.bins.iter().filter(|bin| bin.mapped > 0.0);
    let seconds: f64 = storing().map(|bin| bin.length).sum();
    let by_time = seconds / (2.0 * stays).max(1e-3);
    by_time.min(storing().count() as f64) * group.concurrent() as f64
}

/// Number of durable writes of each group. With a trace they are counted. Without one, a program that waits in most
/// intervals in which it writes makes its writes durable, and the flushes of its device bound their number. Where the place
/// of a program is not known, it is the device whose flushes it explains.
/// `wrote` has when each device wrote, and `flushed` when it was flushed.
pub(super) fn syncs(
    groups: &[Group],
    places: &[Place],
    at: &mut [At],
    (wrote, flushed): (&[Wrote], &[Wrote]),
) -> Vec<Syncs> {
    let mut syncs: Vec<Syncs> = groups.iter().map(traced).collect();
    if syncs.iter().any(|syncs| syncs.origin == Origin::Measured) {
        return syncs;
    }
    for ((group, syncs), at) in groups.iter().zip(&mut syncs).zip(at.iter()) {
        let flushes = places.get(at.place).map_or(0.0, |place| flushes_for_programs(groups, place));
        if let Some(Ends { count, wait, .. }) =
            syncs_at_ends(group).filter(|ends| !is_held_within(group, *ends, flushes))
        {
            *syncs = Syncs { count, call: Some(SyncCall::Fsync), at_ends: Some(wait), ..Syncs::default() };
        }
    }
    for ((group, syncs), at) in
        groups.iter().zip(&mut syncs).zip(at.iter()).filter(|((_, syncs), _)| syncs.call.is_none())
    {
        let there = places.get(at.place).zip(wrote.get(at.place));
        let count = there.and_then(|(place, wrote)| from_time_to_time(group, wrote, place.flushes));
        if let Some(count) = count {
            *syncs = Syncs { count, call: Some(SyncCall::Fdatasync), ..Syncs::default() };
        }
    }
    let calls = |group: &Group| buffered_calls(group);
    let mut candidates: Vec<usize> = (0..groups.len())
        .filter(|at| {
            syncs[*at].call.is_none() && groups[*at].waiting_share() >= DURABLE_SHARE && calls(&groups[*at]) >= 1.0
        })
        .collect();
    candidates.sort_by(|a, b| calls(&groups[*a]).total_cmp(&calls(&groups[*b])));
    let mut left: Vec<f64> = places.iter().map(|place| flushes_for_programs(groups, place)).collect();
    for group in &candidates {
        let all = calls(&groups[*group]);
        if !at[*group].is_known {
            let enough = (0..left.len()).filter(|place| all <= MORE_CALLS * left[*place]);
            let best = enough.min_by(|one, other| left[*one].total_cmp(&left[*other]));
            at[*group].place = best.unwrap_or(at[*group].place);
        }
        if let Some(left) = left.get_mut(at[*group].place) {
            *left -= all;
        }
    }
    for (number, place) in places.iter().enumerate() {
        let here: Vec<usize> = candidates.iter().copied().filter(|group| at[*group].place == number).collect();
        let on = groups.iter().zip(at.iter()).filter(|(_, at)| at.place == number);
        let dirtied: f64 = on.map(|(group, _)| group.total.dirtied()).sum();
        let flushed = flushed.get(number).map(Vec::as_slice).unwrap_or_default();
        share_flushes(groups, &here, (place, dirtied), flushed, &mut syncs);
    }
    syncs
}

/// When a device wrote: end of each interval, seconds since the recording began, and bytes. The same for its flushes, with their number.
pub(super) type Wrote = Vec<(f64, f64)>;

/// Shortest wait that shows a sync of a steady writer, seconds, and fewest of them.
const TIMED_WAIT: f64 = 0.01;
const TIMED_MIN: usize = 4;
/// Share of the intervals in which a steady writer writes at least, and in which it waits at most.
const STEADY_SHARE: f64 = 0.8;
const TIMED_SHARE: f64 = 0.5;
/// Part of the bytes of the device that go in these intervals, or in the next ones.
const WRITTEN_THEN: f64 = 0.7;

/// Number of syncs of a steady writer that waits from time to time, where the device writes when it waits and hardly else. `flushes`
/// are those of the device.
fn from_time_to_time(group: &Group, wrote: &[(f64, f64)], flushes: u64) -> Option<f64> {
    let bins = &group.bins;
    let active = bins.iter().filter(|bin| bin.by_calls > 0.0).count();
    let waits: Vec<&Bin> = bins.iter().filter(|bin| bin.waited >= TIMED_WAIT).collect();
    let is_steady = active as f64 >= STEADY_SHARE * bins.len() as f64;
    let is_timed = waits.len() >= TIMED_MIN && waits.len() as f64 <= TIMED_SHARE * bins.len() as f64;
    // One that waits whenever it writes syncs more often.
    let is_rare = group.waiting_share() < DURABLE_SHARE;
    if !is_steady || !is_timed || !is_rare || flushes < waits.len() as u64 {
        return None;
    }
    let is_then = |end: f64| waits.iter().any(|bin| end > bin.end - bin.length && end <= bin.end + 1e-3);
    let all: f64 = wrote.iter().map(|(_, bytes)| bytes).sum();
    let then: f64 = wrote.iter().filter(|(end, _)| is_then(*end)).map(|(_, bytes)| bytes).sum();
    // A sync that spans two samples is one.
    let starts = bins.windows(2).filter(|pair| pair[0].waited < TIMED_WAIT && pair[1].waited >= TIMED_WAIT).count();
    (all > 0.0 && then >= WRITTEN_THEN * all && starts >= TIMED_MIN).then_some(starts as f64)
}

/// Shortest wait after a burst that shows a sync, seconds; that of a single burst, and the share of bursts that have one.
const END_WAIT: f64 = 0.05;
const ONE_END_WAIT: f64 = 0.5;
const ENDS_SHARE: f64 = 0.6;
/// Time without writes over the wait in it, at least: a program that is held up in each of its syncs also waits without
/// writing, but goes on as soon as the wait ends.
const IDLE_OVER_WAIT: f64 = 1.5;

/// Part of the bytes of a program that may be dropped beside its synced bursts.
const DROPPED_BESIDE: f64 = 0.05;

/// A burst of writes of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Its end, seconds since the recording began.
    pub(super) end: f64,
    bytes: f64,
    /// Seconds of waiting after it, before the next one.
    pub(super) waited: f64,
    /// Seconds of waiting in its last interval, where its calls ended early: samples do not tell whether that is before or after its end.
    waited_last: f64,
    /// Whether the program waited, and then rested.
    is_synced: bool,
    /// Whether the wait in its last interval follows the burst, and is part of the wait after it.
    ends_within: bool,
}

/// Rate of the calls in the last interval of a burst, as a part of that in the interval before, below which the calls ended early.
const ENDED_EARLY: f64 = 0.75;
/// Fewest intervals of a burst that show where in it a program waits, and most of the wait in its last interval that is spent in the others.
const SHOWS_WAITS: usize = 3;
const WAITS_BEFORE: f64 = 0.1;
/// The same as [`ENDED_EARLY`] for a program that waits in no other interval of its burst.
const ENDED: f64 = 0.95;

/// The bursts of a program, but for one that the end of the recording cuts. A time in which it waits and then goes on at once is within a burst:
/// a limit held it up.
pub(super) fn runs(group: &Group) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut rest = group.bins.as_slice();
    let mut is_held = false;
    while let Some(start) = rest.iter().position(|bin| bin.by_calls > 0.0) {
        let run = &rest[start..];
        let length = run.iter().take_while(|bin| bin.by_calls > 0.0).count();
        let (run, after) = run.split_at(length);
        let bytes: f64 = run.iter().map(|bin| bin.by_calls).sum();
        let rate = |bin: &Bin| bin.by_calls / bin.length;
        let ended = |part: f64| match run {
            [.., before, last] if rate(last) < part * rate(before) => last.waited,
            _ => 0.0,
        };
        let before = if is_held { runs.pop().map_or(0.0, |before| before.bytes) } else { 0.0 };
        let Some(last) = run.last().filter(|_| !after.is_empty()) else { break };
        let idle = after.iter().take_while(|bin| bin.by_calls <= 0.0).count();
        let waited_after: f64 = after[..idle].iter().map(|bin| bin.waited).sum();
        let seconds: f64 = after[..idle].iter().map(|bin| bin.length).sum();
        // A program that never waits while it writes is not held up at the end of its burst either.
        let waited_within: f64 = run[..length - 1].iter().map(|bin| bin.waited).sum();
        let within = ended(ENDED);
        let ends_within = length >= SHOWS_WAITS && within > 0.0 && waited_within <= WAITS_BEFORE * within;
        let (waited, waited_last) = match ends_within {
            true => (waited_after + within, 0.0),
            false => (waited_after, ended(ENDED_EARLY)),
        };
        let is_rest = seconds >= IDLE_OVER_WAIT * waited;
        is_held = waited >= END_WAIT && !is_rest;
        let is_synced = waited >= END_WAIT && is_rest;
        runs.push(Run { end: last.end, bytes: before + bytes, waited, waited_last, is_synced, ends_within });
        rest = &after[idle..];
    }
    runs
}

/// Returns the bursts of a program. The wait of a burst is that in it and after it. If the sync of a burst ends in the interval of its
/// calls, the samples cannot separate the two.
pub(super) fn rested(group: &Group) -> Vec<Run> {
    let mut runs = runs(group);
    let mut from = 0.0;
    for run in &mut runs {
        let end = if run.ends_within { run.end - 1e-6 } else { run.end + 1e-6 };
        let is_in_it = |bin: &&Bin| bin.by_calls > 0.0 && bin.end > from && bin.end <= end;
        run.waited += group.bins.iter().filter(is_in_it).map(|bin| bin.waited).sum::<f64>();
        from = run.end;
    }
    runs
}

/// Bursts that a program makes durable at their ends, with the mean of the waits there: it writes, and then waits without
/// writing, again and again. That holds for most of its bursts, or for those with most of its bytes: a job may unpack
/// files without a sync and then sync its result. Empty where it does not.
pub(super) fn synced_runs(group: &Group) -> Vec<Run> {
    let runs = runs(group);
    let synced: Vec<Run> = runs.iter().copied().filter(|run| run.is_synced).collect();
    let bytes = |runs: &[Run]| runs.iter().map(|run| run.bytes).sum::<f64>();
    let is_most = synced.len() as f64 >= ENDS_SHARE * runs.len() as f64;
    match runs.as_slice() {
        [] => Vec::new(),
        [one] if one.is_synced && one.waited >= ONE_END_WAIT => runs,
        [_] => Vec::new(),
        _ if is_most => runs,
        _ if synced.len() >= 2 && bytes(&synced) >= ENDS_SHARE * bytes(&runs) => synced,
        _ => Vec::new(),
    }
}

/// Bursts that are made durable at their ends.
#[derive(Clone, Copy, Debug)]
struct Ends {
    count: f64,
    /// Mean of the waits there, seconds.
    wait: f64,
    /// All of these waits, with those in the last intervals of the bursts, seconds.
    waited_most: f64,
}

/// The bursts that are made durable at their ends. What was synced cannot be dropped unwritten:
/// a program that drops what such bursts left waits for the writeback of pages that it drops.
fn syncs_at_ends(group: &Group) -> Option<Ends> {
    let runs = synced_runs(group);
    let count = runs.len() as f64;
    let synced: f64 = runs.iter().map(|run| run.bytes).sum();
    let is_kept = synced <= group.total.by_calls - group.total.cancelled + DROPPED_BESIDE * group.total.by_calls;
    let (waited, last) = runs.iter().fold((0.0, 0.0), |sum, run| (sum.0 + run.waited, sum.1 + run.waited_last));
    (!runs.is_empty() && is_kept).then(|| Ends { count, wait: waited / count, waited_most: waited + last })
}

/// Part of the waits of a program that follow its bursts, below which it waits within them.
const AFTER_BURSTS: f64 = 0.5;

/// Whether a program waits mostly within its bursts, on a device that was flushed far more often than once for each: it syncs many times in
/// a burst, and the wait after the last one is one of many.
fn is_held_within(group: &Group, ends: Ends, flushes: f64) -> bool {
    flushes > SHARE_A_FLUSH * ends.count && ends.waited_most < AFTER_BURSTS * group.total.waited
}

/// A small program that makes each of its writes durable, and the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habit<'a> {
    pub(super) syncs: Syncs,
    pub(super) place: &'a Place,
}

/// Most small programs that are assumed to make their writes durable.
const HABITS_MAX: usize = 50;
/// Share of all that became dirty up to which a program is a small one.
const SMALL_SHARE: f64 = 0.05;

/// Small programs that make each of their writes durable, judged by the flushes of the device: they write again and
/// again, and the device is flushed as often. Used only without a trace and without the kernel's count of delays.
pub(super) fn habits<'a>(groups: &[Group], places: &'a [Place], window: &Window) -> Vec<Option<Habit<'a>>> {
    let mut habits = vec![None; groups.len()];
    let counts_delays = window.facts.as_ref().is_some_and(|facts| facts.task_delayacct == Some(true));
    if counts_delays || groups.iter().any(|group| group.synced.is_some()) {
        return habits;
    }
    let moved: f64 = groups.iter().map(|group| group.total.dirtied()).sum();
    let is_small = |group: &Group| {
        let active = group.bins.iter().filter(|bin| bin.is_active()).count();
        group.comm != RECORDER
            && active >= ACTIVE_MIN
            && buffered_calls(group) >= 1.0
            && group.total.dirtied() <= SMALL_SHARE * moved
    };
    let mut small: Vec<usize> = (0..groups.len()).filter(|at| is_small(&groups[*at])).collect();
    small.sort_by(|a, b| buffered_calls(&groups[*a]).total_cmp(&buffered_calls(&groups[*b])));
    let mut left: Vec<(f64, &Place)> =
        places.iter().map(|place| (flushes_for_programs(groups, place), place)).collect();
    for at in small.into_iter().take(HABITS_MAX) {
        let count = buffered_calls(&groups[at]);
        // The device whose flushes it explains best.
        let enough = left.iter_mut().filter(|(left, _)| count <= 1.2 * *left);
        let Some((left, place)) = enough.min_by(|(one, _), (other, _)| one.total_cmp(other)) else { break };
        *left -= count;
        let call = Some(SyncCall::Fdatasync);
        let syncs = Syncs { count, call, origin: Origin::Assumed, ..Syncs::default() };
        habits[at] = Some(Habit { syncs, place });
    }
    habits
}

fn traced(group: &Group) -> Syncs {
    let Some(counts) = group.synced else { return Syncs::default() };
    // A sync of a whole filesystem is a task of its own.
    let Synced { fsyncs, fdatasyncs, ranges, .. } = counts;
    let of_files = fsyncs.saturating_add(fdatasyncs).saturating_add(ranges);
    let call = match (fsyncs, fdatasyncs, ranges) {
        _ if of_files == 0 => None,
        (fsync, data, range) if fsync >= data && fsync >= range => Some(SyncCall::Fsync),
        _ => Some(SyncCall::Fdatasync),
    };
    Syncs { count: of_files as f64, call, origin: Origin::Measured, ..Syncs::default() }
}

/// Write calls that are not direct, if they dirtied something.
pub(super) fn buffered_calls(group: &Group) -> f64 {
    let total = &group.total;
    let all = total.by_calls + total.direct;
    if all <= 0.0 { 0.0 } else { total.calls * total.by_calls / all }
}

#[cfg(test)]
mod tests;
