// SPDX-License-Identifier: MIT OR Apache-2.0
//! Syncs that show no burst on a device because it is never full. Above the background threshold, the flusher writes until the
//! level is at the threshold, or one chunk below it, and leaves the rest until it is old. Below the threshold it writes only
//! old data. Where young data is written until hardly anything is dirty, a caller requested it. With a small background
//! threshold such a sync waits for little, and no other counter shows it. With a larger one it waits for the whole burst.

use super::asked::{Asked, UNSEEN_AGE_S, written_between};
use super::machine::Place;
use floodline_analysis::diagnose::device::{self, Interval};
use floodline_analysis::diagnose::dirty;
use floodline_record::sample::HostRow;
use floodline_record::units::Nanos;
use floodline_record::window::Window;

/// Share of the background threshold below which next to nothing is dirty.
const LITTLE: f64 = 0.1;
/// Step of the number of bytes that the flusher writes of an inode at once (`MIN_WRITEBACK_PAGES`).
const CHUNK_STEP: f64 = 4_194_304.0;
/// Part of the dirty limit that it does not exceed but for one step (`DIRTY_SCOPE`).
const PART_OF_LIMIT: f64 = 8.0;
/// What must be left for a caller beside the last chunk of the flusher, bytes.
const LEFT_MIN: f64 = 4_194_304.0;
/// Share of what is written that becomes dirty again while a burst still goes on.
const GOES_ON: f64 = 0.5;
/// Share of the level at the end of a burst that must be written, rather than dropped.
const WRITTEN: f64 = 0.8;
/// Bytes up to which hardly anything is dirty, and the share of a burst up to which hardly anything of it is left.
const CLEAN: f64 = 1_048_576.0;
const LITTLE_OF_BURST: f64 = 0.05;
/// Largest share of the background threshold that counts as far below it: the threshold is then no reason to write.
const FAR_BELOW: f64 = 0.5;
/// Largest share of a burst that is written before it ends, where only its end was a reason to write.
const BEFORE_ITS_END: f64 = 0.1;

/// One sample of the machine.
#[derive(Clone, Copy)]
struct Level {
    at: Nanos,
    /// Bytes that are dirty or being written.
    held: f64,
    background: f64,
    limit: f64,
    dirtied: f64,
    written: f64,
}

fn levels(window: &Window) -> Vec<Level> {
    let page = window.facts.as_ref().map_or(4096, |facts| facts.page_size.max(1)) as f64;
    let of = |at: Nanos, row: &HostRow| {
        let writeback = row.nr_writeback.map_or(0, |pages| pages.0);
        Some(Level {
            at,
            held: row.nr_dirty?.0.saturating_add(writeback) as f64 * page,
            background: row.nr_dirty_background_threshold?.0 as f64 * page,
            limit: row.nr_dirty_threshold?.0 as f64 * page,
            dirtied: row.nr_dirtied?.0 as f64 * page,
            written: row.nr_written?.0 as f64 * page,
        })
    };
    window.host_series.iter().filter_map(|(time, row)| of(time.monotonic, row)).collect()
}

/// Half of what the machine writes in its fastest second, as far as samples show.
fn half_a_second(levels: &[Level]) -> f64 {
    let rate = |pair: &[Level]| {
        let seconds = pair[1].at.0.saturating_sub(pair[0].at.0) as f64 / 1e9;
        (pair[1].written - pair[0].written) / seconds.max(0.1)
    };
    levels.windows(2).map(rate).fold(0.0, f64::max) / 2.0
}

/// Bytes that the flusher writes of an inode at once: a part of the limit, and at most half a second of writing.
fn chunk(half_a_second: f64, now: &Level) -> f64 {
    half_a_second.min(now.limit / PART_OF_LIMIT) + CHUNK_STEP
}

/// Requests that drained what the flusher would have left, where `own` bytes were written by programs whose syncs are known.
pub(super) fn drained<'a>(window: &Window, own: f64, places: &'a [Place]) -> Vec<Asked<'a>> {
    let levels = levels(window);
    let (Some(first), Some(expiry)) = (levels.first(), dirty::expiry_seconds(window)) else { return Vec::new() };
    let seconds = |at: Nanos| at.0.saturating_sub(first.at.0) as f64 / 1e9;
    let intervals =
        |place: &Place| device::by_dev(window, place.dev).map_or_else(Vec::new, |device| device.intervals());
    let devices: Vec<(&Place, Vec<Interval>)> = places.iter().map(|place| (place, intervals(place))).collect();
    let drains = [above(&levels, own, expiry), below(&levels, own, expiry)];
    let asked = |(end, now): (Nanos, Nanos)| {
        let wrote = |intervals: &[Interval]| written_between(intervals, end, now);
        let (place, _) = devices.iter().max_by(|(_, one), (_, other)| wrote(one).total_cmp(&wrote(other)))?;
        Some(Asked { at: seconds(end), seconds: (seconds(now) - seconds(end)).max(0.0), place })
    };
    drains.into_iter().flatten().filter_map(asked).collect()
}

/// Begin and end of drains of bursts that stay far below the background threshold.
fn below(levels: &[Level], own: f64, expiry: f64) -> Vec<(Nanos, Nanos)> {
    let fastest = half_a_second(levels);
    let mut found = Vec::new();
    // The last sample with next to nothing dirty, and whether a request was the reason. What was dirty at the begin is older
    // than the recording: it counts as nothing if it is little of the burst.
    let mut clean: Option<(Level, bool)> = levels.first().map(|first| (*first, false));
    let (mut peak, mut end) = (0.0_f64, None);
    for pair in levels.windows(2) {
        let [before, now] = pair else { continue };
        if before.held <= CLEAN {
            clean = Some((*before, clean.is_some_and(|(_, is_asked)| is_asked)));
            (peak, end) = (0.0, None);
        }
        peak = peak.max(now.held);
        if now.dirtied - before.dirtied >= GOES_ON * (now.written - before.written) {
            end = Some(*now);
        }
        let (Some((since, is_asked)), Some(end)) = (clean, end) else { continue };
        let is_drained = now.held <= CLEAN.max(LITTLE_OF_BURST * peak);
        let is_large = peak >= chunk(fastest, now) + LEFT_MIN && peak <= FAR_BELOW * now.background;
        let is_new = since.held <= CLEAN.max(BEFORE_ITS_END * peak);
        let burst = end.dirtied - since.dirtied;
        // A small budget of a cgroup is written in chunks, and while the burst goes on.
        let is_young_till_then = end.written - since.written <= BEFORE_ITS_END * burst;
        let unseen = if is_asked { 0.0 } else { UNSEEN_AGE_S };
        let is_young = now.at.0.saturating_sub(since.at.0) as f64 / 1e9 + unseen < expiry;
        // Files that are removed leave the level too.
        let is_written = end.held > CLEAN && now.written - end.written >= WRITTEN * end.held;
        let is_asked = is_drained && is_large && is_new && is_young_till_then && is_young && is_written;
        if is_asked && own < super::asked::OWN_SHARE * burst {
            found.push((end.at, now.at));
            clean = Some((*now, true));
            peak = 0.0;
        }
    }
    found
}

/// Begin and end of drains of bursts that reach the background threshold.
fn above(levels: &[Level], own: f64, expiry: f64) -> Vec<(Nanos, Nanos)> {
    let Some(first) = levels.first() else { return Vec::new() };
    let seconds = |at: Nanos| at.0.saturating_sub(first.at.0) as f64 / 1e9;
    let fastest = half_a_second(levels);
    let mut found = Vec::new();
    // The last sample with next to nothing dirty, and whether a request was the reason: then no inode is older.
    let mut clean: Option<(f64, bool)> = None;
    // The most that was dirty since then, what was dirtied until then, and the end of the burst.
    let (mut peak, mut dirtied_before, mut end) = (0.0_f64, first.dirtied, first.at);
    for pair in levels.windows(2) {
        let [before, now] = pair else { continue };
        let chunk = chunk(fastest, now);
        let floor = now.background - chunk - LEFT_MIN;
        if now.held > (LITTLE * now.background).min(floor.max(0.0)) {
            peak = peak.max(now.held);
            if now.dirtied - before.dirtied >= GOES_ON * (now.written - before.written) {
                end = now.at;
            }
            continue;
        }
        let is_old = clean.is_none_or(|(since, is_asked)| {
            seconds(now.at) - since + if is_asked { 0.0 } else { UNSEEN_AGE_S } >= expiry
        });
        let burst = now.dirtied - dirtied_before;
        let is_asked = peak >= now.background && floor > 0.0 && !is_old && own < super::asked::OWN_SHARE * burst;
        if is_asked {
            found.push((end, now.at));
        }
        if peak > 0.0 || clean.is_none() {
            clean = Some((seconds(now.at), is_asked));
        } else if let Some((since, _)) = &mut clean {
            *since = seconds(now.at);
        }
        (peak, dirtied_before, end) = (0.0, now.dirtied, now.at);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::sample::SampleTime;
    use floodline_record::units::{Centisecs, Pages};

    const MIB: u64 = 256;

    /// Samples of a second each: MiB that are dirty, that were dirtied and that were written so far.
    fn window(samples: &[(u64, u64, u64)], background: u64) -> Window {
        let mut window = Window::default();
        for (at, (held, dirtied, written)) in samples.iter().enumerate() {
            let time = SampleTime { monotonic: Nanos(at as u64 * 1_000_000_000), ..SampleTime::default() };
            let row = HostRow {
                nr_dirty: Some(Pages(held * MIB)),
                nr_dirtied: Some(Pages(dirtied * MIB)),
                nr_written: Some(Pages(written * MIB)),
                nr_dirty_background_threshold: Some(Pages(background * MIB)),
                nr_dirty_threshold: Some(Pages(4 * background * MIB)),
                dirty_expire_centisecs: Some(Centisecs(3000)),
                dirty_writeback_centisecs: Some(Centisecs(500)),
                ..HostRow::default()
            };
            window.host.last = row.clone();
            window.host_series.push((time, row));
        }
        window
    }

    fn told(samples: &[(u64, u64, u64)], background: u64, own: f64) -> Vec<f64> {
        let places = [Place::of_disk("vda")];
        drained(&window(samples, background), own, &places).iter().map(|one| one.at).collect()
    }

    /// 150 MiB in three seconds to a device of 20 MiB/s; the level goes down until it is at `left`.
    fn burst(left: u64) -> Vec<(u64, u64, u64)> {
        let mut samples = vec![(0, 0, 0), (0, 0, 0)];
        for second in 1..=12_u64 {
            let dirtied = (second * 50).min(150);
            let written = (second * 20).min(150 - left);
            samples.push((dirtied - written, dirtied, written));
        }
        samples
    }

    #[test]
    fn a_level_that_falls_far_below_the_background_threshold_was_requested() {
        assert_eq!(told(&burst(0), 40, 0.0), [4.0]);
        // The flusher stops one chunk below the threshold.
        assert!(told(&burst(30), 40, 0.0).is_empty());
        // One chunk is all that the threshold leaves.
        assert!(told(&burst(0), 12, 0.0).is_empty());
        // A program whose syncs are known wrote it.
        assert!(told(&burst(0), 40, 150e6).is_empty());
    }

    #[test]
    fn young_data_that_goes_to_the_device_far_below_the_threshold_was_requested() {
        let rises = |to: u64| (0..=to / 10).map(|step| (step * 10, step * 10, 0));
        let falls = |from: u64, to: u64| {
            let levels = (0..=(from - to) / 20).map(move |step| from - step * 20);
            levels.map(move |held| (held, from, from - held))
        };
        let idle = |count: usize, level: (u64, u64, u64)| std::iter::repeat_n(level, count);
        let all: Vec<_> = rises(80).chain(falls(80, 0)).chain(idle(3, (0, 80, 80))).collect();
        assert_eq!(told(&all, 400, 0.0), [9.0]);
        // It began shortly before the recording, or long before it.
        let shortly: Vec<_> = std::iter::once((5, 5, 0)).chain(all[2..].to_vec()).collect();
        assert_eq!((told(&shortly, 400, 0.0).len(), told(&all[4..], 400, 0.0).len()), (1, 0));
        // The threshold may be the reason, a part is left, the own syncs of its writer wrote it, or it became old.
        assert!(told(&all, 100, 0.0).is_empty());
        let part: Vec<_> = rises(80).chain(falls(80, 60)).chain(idle(3, (60, 80, 20))).collect();
        assert!(told(&part, 400, 0.0).is_empty());
        assert!(told(&all, 400, 80e6).is_empty());
        let removed: Vec<_> = rises(80).chain(idle(3, (0, 80, 0))).collect();
        assert!(told(&removed, 400, 0.0).is_empty());
        let old: Vec<_> = rises(80).chain(idle(25, (80, 80, 0))).chain(falls(80, 0)).collect();
        assert!(told(&old, 400, 0.0).is_empty());
        // A cgroup with a small budget writes while it goes on.
        let small = (0..=8).map(|step| (step * 10, step * 20, step * 10));
        let small: Vec<_> = small.chain([(60, 160, 100), (20, 160, 140), (0, 160, 160)]).collect();
        assert!(told(&small, 400, 0.0).is_empty());
    }

    #[test]
    fn what_is_old_goes_to_the_device_by_itself() {
        let mut samples = vec![(0, 0, 0), (50, 50, 0)];
        samples.extend((0..30).map(|_| (50, 50, 0)));
        samples.extend([(30, 50, 20), (10, 50, 40), (0, 50, 50)]);
        assert!(told(&samples, 40, 0.0).is_empty());
    }
}
