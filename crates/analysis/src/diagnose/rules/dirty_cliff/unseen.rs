// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdict without a burst: the activity of the disks instead, or the readings needed to decide.

use crate::diagnose::burst::{self, NOTICED_S, NoBurst};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Device;
use crate::diagnose::{cycle, missing};
use floodline_record::gap::{Gap, Source};
use floodline_record::human;

/// What the fullest disk did, where no burst was found: half a sentence that is true of every disk.
pub(super) fn longest_seen(derived: &Derived<'_>, drains: &[Device<'_>]) -> String {
    let of = |device: &Device<'_>| Some((device.name.clone(), burst::fullest(derived, device)?));
    let fullest = drains.iter().filter_map(of).max_by(|(_, a), (_, b)| a.seconds.total_cmp(&b.seconds));
    let Some((name, full)) = fullest.filter(|(_, full)| full.seconds >= NOTICED_S) else {
        return "no disk was busy with a queue for a second".to_owned();
    };
    let seconds = human::seconds(full.seconds);
    match full.why {
        NoBurst::Short => format!("no disk was certainly busy with a queue for a second ({name}: at most {seconds})"),
        NoBurst::FromTheStart => format!("{name}, full for {seconds}, was so from the first sample on"),
        NoBurst::NotQuiet => format!("{name}, full for {seconds}, wrote nearly as much before"),
        NoBurst::NotDrained => format!("{name} was full for {seconds}, and the dirty data did not shrink"),
        NoBurst::Released => format!("{name}, full for {seconds}, wrote what the limit of a cgroup had held back"),
        NoBurst::IsBurst => format!("{name}, full for {seconds}, wrote what a sync had asked for"),
    }
}

/// Length of an observation in which a burst that began before it would come again, seconds.
const COMES_AGAIN_S: f64 = 60.0;
/// Part of the window in which a disk is full from which its load is no burst.
const ALL_THE_TIME: f64 = 0.8;

/// Returns the gap of a short observation that begins while a disk is full and ends after that: it may have been the rest of a burst.
pub(super) fn begun_before(derived: &Derived<'_>, drains: &[Device<'_>]) -> Option<Gap> {
    let is_rest = |device: &Device<'_>| {
        burst::fullest(derived, device).is_some_and(|full| {
            let ends = full.seconds < ALL_THE_TIME * derived.seconds;
            matches!(full.why, NoBurst::FromTheStart) && full.seconds >= NOTICED_S && ends
        })
    };
    let is_short = derived.seconds < COMES_AGAIN_S;
    drains.iter().find(|device| is_short && is_rest(device)).map(|device| {
        let what = format!("the beginning of a time in which {} was full", device.name);
        missing::needs_seconds(Source::Diskstats, COMES_AGAIN_S, &what)
    })
}

/// What would be needed to tell how long the writing takes: the device's speed, or an observation that is long enough
/// to see it happen or not.
pub(super) fn too_short(derived: &Derived<'_>) -> Vec<Gap> {
    // Where the kernel's estimate was read, it is still the value that every estimate starts from.
    let was_read = derived.window.bdis.values().any(|span| span.last.write_bandwidth.is_some());
    let mut gaps = Vec::new();
    if !was_read {
        gaps.push(derived.gap(Source::DebugBdiStats, "BdiWriteBandwidth"));
    }
    gaps.extend(cycle::gap(derived, Source::Diskstats, "a disk at its limit, or a whole cycle of expiry"));
    if gaps.is_empty() {
        gaps.push(derived.gap(Source::DebugBdiStats, "BdiWriteBandwidth"));
    }
    gaps
}
