// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many syncs the flushes and the writes of a device tell, where no trace counts the calls.

use super::{ACTIVE_MIN, SHARE_A_FLUSH, Syncs, buffered_calls};
use crate::derive::group::{Bin, Group};
use crate::derive::machine::Place;
use floodline_scenario::{FsType, SyncCall};

/// Calls over flushes, at most, of a program that makes each call durable.
pub(super) const MORE_CALLS: f64 = 1.2;

/// Bytes that a sync adds to those of its program, at least, where it makes a file longer: the log of the filesystem.
const OF_LOG: f64 = 512.0;

/// Part of the calls of a program that make a write each, at least.
const A_WRITE_EACH: f64 = 0.9;

/// Whether each call of a program is synced and makes one write, by what the device wrote beyond the bytes that were dirtied `here`: no log.
/// Several syncs may share a flush.
pub(super) fn is_in_place(here: f64, place: &Place, calls: f64, flushes: f64) -> bool {
    let beside = place.written as f64 - here;
    let writes = place.writes as f64;
    (A_WRITE_EACH * calls..FLUSHES_MAX * calls).contains(&writes)
        && beside.abs() < OF_LOG * calls
        && flushes * SHARE_A_FLUSH >= calls
}

/// Part of the bytes of a device that its candidates write, from which its writes tell how many syncs there are.
const MOST_OF_DEVICE: f64 = 0.8;
/// Writes of a sync that makes a file longer: its data and the log, which ext4 writes in two parts.
const WRITES: f64 = 2.0;
const WRITES_EXT4: f64 = 3.0;

/// Flushes of a device for each sync of its candidates, between one and [`FLUSHES_MAX`]: programs that sync at the same time share a flush.
/// The writes of the device tell where hardly another program writes to it.
fn flushes_each(groups: &[Group], candidates: &[usize], here: f64, place: &Place, flushes: f64) -> f64 {
    let of_candidates: f64 = candidates.iter().map(|at| groups[*at].total.dirtied()).sum();
    if of_candidates < MOST_OF_DEVICE * here || place.writes == 0 {
        return FLUSHES_MAX;
    }
    let writes = if place.fs_type == FsType::Ext4 { WRITES_EXT4 } else { WRITES };
    (flushes * writes / place.writes as f64).clamp(1.0, FLUSHES_MAX)
}

/// Most calls for each sync of a program that waits whenever it writes.
const CALLS_MAX: f64 = 200.0;

/// Gives the flushes of a device to the groups that wait there, those with few calls first. `flushed` has when the device was flushed.
pub(super) fn share_flushes(
    groups: &[Group],
    candidates: &[usize],
    (place, here): (&Place, f64),
    flushed: &[(f64, f64)],
    syncs: &mut [Syncs],
) {
    let mut left = flushes_for_programs(groups, place);
    let each = flushes_each(groups, candidates, here, place, left);
    for (number, &at) in candidates.iter().enumerate() {
        let others = &candidates[number + 1..];
        // The rarest first. A frequent caller gets the remaining flushes.
        let share = left / (1 + others.len()) as f64;
        let all = buffered_calls(&groups[at]);
        // Stores to mappings show nothing of its calls.
        let active = groups[at].bins.iter().filter(|bin| bin.by_calls > 0.0).count();
        let is_in_place = active >= ACTIVE_MIN && is_in_place(here, place, all, left);
        let is_each = is_in_place
            || each * all <= MORE_CALLS * left
            || all <= (MORE_CALLS * left).min(place.writes as f64 / WRITES);
        let (count, used) = match active {
            // One or two bursts are made durable once each, at their ends.
            0..ACTIVE_MIN => ((active as f64).min(all), active as f64),
            _ if is_each => (all, all.max(share.min(each * all))),
            _ => ((share / each).min(all), share.min(each * all)),
        };
        let once = || once_each(&groups[at], share, flushed).map(|count| (count, count));
        // One that explains the flushes of all candidates leaves none of them to programs that write far more.
        let is_rare = others.iter().all(|other| buffered_calls(&groups[*other]) >= FAR_MORE * all);
        let alone =
            || once_each(&groups[at], left, flushed).filter(|_| is_rare).map(|count| (count, FLUSHES_MAX * count));
        let bursts = if all > count { once().or_else(alone) } else { None };
        let (count, used) = bursts.unwrap_or((count, used));
        // So rare syncs do not explain why the program waits whenever it writes, unless each of its bursts has one.
        if count < 1.0 || (bursts.is_none() && count * CALLS_MAX < all) {
            continue;
        }
        left = (left - used).max(0.0);
        let call = Some(SyncCall::Fdatasync);
        syncs[at] = Syncs { count, call, flushes: Some(used), is_in_place, ..Syncs::default() };
    }
}

/// Calls of a program over those of another one, from which it writes far more.
const FAR_MORE: f64 = 4.0;

/// Maximum number of device flushes for one sync. A journal flushes before it writes its commit block and may flush again after it.
pub(super) const FLUSHES_MAX: f64 = 2.0;

/// Returns one sync for each burst if each burst lies within one interval, a rest follows each, and the device was flushed once or twice for
/// each burst on average. Then no data of a burst stay unsynced until the next burst. Otherwise returns `None`. Where `flushed` has the
/// flushes over time, those at the bursts count too: a journal that commits in between explains others.
fn once_each(group: &Group, flushes: f64, flushed: &[(f64, f64)]) -> Option<f64> {
    let bursts = apart(group)?;
    let explains = |flushes: f64| bursts <= flushes && flushes <= FLUSHES_MAX * bursts;
    (explains(flushes) || explains(at_bursts(group, flushed))).then_some(bursts)
}

/// Flushes in the intervals in which a program wrote, and in the next ones: a sync may end there.
fn at_bursts(group: &Group, flushed: &[(f64, f64)]) -> f64 {
    let bursts = || group.bins.iter().filter(|bin| bin.by_calls > 0.0);
    let is_at = |end: f64| bursts().any(|bin| end > bin.end - 0.5 * bin.length && end < bin.end + 1.5 * bin.length);
    flushed.iter().filter(|(end, _)| is_at(*end)).map(|(_, flushes)| flushes).sum()
}

/// Number of the bursts of all processes, where each lies within one interval and a rest follows.
pub(super) fn apart(group: &Group) -> Option<f64> {
    let is_writing = |bin: &Bin| bin.by_calls > 0.0;
    let bursts = group.bins.iter().filter(|bin| is_writing(bin)).count() as f64;
    let is_apart = !group.bins.windows(2).any(|pair| is_writing(&pair[0]) && is_writing(&pair[1]));
    (is_apart && bursts > 0.0).then_some(bursts * group.concurrent().max(1) as f64)
}

/// Flushes of a device that programs requested: a journal that commits by itself from time to time flushes too.
pub(super) fn flushes_for_programs(groups: &[Group], place: &Place) -> f64 {
    let seconds = groups.first().map_or(0.0, |group| group.total.length);
    (place.flushes as f64 - seconds / commits_each(place.fs_type)).max(0.0)
}

/// Time from one commit of a journal by itself to the next one, seconds. XFS and btrfs wait for half a minute (xfssyncd_centisecs, commit=).
fn commits_each(fs_type: FsType) -> f64 {
    match fs_type {
        FsType::Xfs | FsType::Btrfs => 30.0,
        _ => 5.0,
    }
}
