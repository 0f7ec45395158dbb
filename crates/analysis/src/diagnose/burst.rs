// SPDX-License-Identifier: MIT OR Apache-2.0
//! A burst: dirty data pile up while a device is quiet, and are then written at once. Holds its extent and its trigger:
//! the amount, the age, or a request (sync, fsync, an unmount). Requests are counted when they complete, so utilisation
//! and await of one interval are coarse. A stretch is therefore judged as a whole.

pub(super) use self::trigger::trigger_of;
use super::derived::Derived;
use super::device::{Basis, Device, Interval, SMALL_WRITE, Speed};
use super::{attended, dirty, released};
use floodline_record::sample::{BdiRow, HostRow};
use floodline_record::units::Nanos;

/// Shortest burst that people notice, seconds.
pub const NOTICED_S: f64 = 1.0;
/// Share of a burst with a task waiting for I/O from which the burst was a stall.
pub const STALL_PRESSURE: f64 = 0.5;
/// Share of a burst with a task waiting for I/O from which the burst was a stall if a write also took long.
const SOME_PRESSURE: f64 = 0.2;
/// Mean time of a write from which a task that waited for one was stalled, seconds.
pub const STALL_AWAIT_S: f64 = 0.3;
/// Share of the quiet time with a task waiting. From this share on, the pressure in the burst does not show waits for the burst.
const ALWAYS_PRESSURE: f64 = 0.9;
/// The device is quiet below this share of its rate in the burst.
const QUIET_SHARE: f64 = 0.4;
/// Intervals before a burst from which one of them may be left out.
const USUAL_INTERVALS: usize = 5;
/// Utilisation from which an interval at such a rate belongs to a burst.
const BUSY: f64 = 0.5;
/// Mean requests in flight from which an interval at such a rate belongs to a burst.
const QUEUED: f64 = 2.0;
/// Dirty data are as old as the last sample with less than this part of them.
const LITTLE_SHARE: f64 = 0.1;
/// Dirty data have piled up at the sample with this part of them.
const MOST_SHARE: f64 = 0.9;
/// How near a level must be to the threshold, and an age to the expiry, to have reached it: samples are some time
/// apart.
const NEAR_THRESHOLD: f64 = 0.95;
const NEAR_EXPIRY: f64 = 0.8;

/// Dirty bytes, in multiples of what a burst wrote, from which the burst wrote only part of what counted as dirty.
const COUNTED_WHOLE: f64 = 1.25;

/// Share of a burst that the flusher must have written for one reason for that reason to be the trigger.
const FLUSHED_SHARE: f64 = 0.5;

/// Dirty data are fresh up to this age, seconds: the shortest expiry that is advised, and a period of the flusher.
const FRESH_S: f64 = 4.0;

/// What triggered a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The background threshold was reached.
    Amount,
    /// The device's own part of the background threshold was reached.
    Part,
    /// The data may have been as old as the expiry.
    Age,
    /// No threshold or expiry was reached in the samples: sync, fsync, or an unmount.
    Asked,
    /// The data were there before the window began.
    Unknown,
}

/// A stretch in which a device wrote at its limit after having been quiet.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// Start of the burst, on the clock of the samples.
    pub from: Nanos,
    /// Start of the interval before the burst: the flusher may have queued in it the data that the device then writes.
    pub queued_from: Nanos,
    /// End of the burst.
    pub to: Nanos,
    /// Length, seconds.
    pub seconds: f64,
    /// Bytes per second.
    pub rate: f64,
    /// Mean size of a write, bytes.
    pub mean_write: f64,
    /// The largest mean time of a write in one interval, seconds.
    pub await_max_s: f64,
    /// Bytes per second before the burst.
    pub quiet_rate: f64,
    /// Length of the quiet time before the burst, seconds.
    pub quiet_s: f64,
    /// Dirty and under writeback at the start of the burst, bytes.
    pub dirty_before: u64,
    /// Dirty and under writeback at the end of the burst, bytes.
    pub dirty_after: u64,
    /// Source of these two.
    pub level_source: &'static str,
    /// Share of the burst with a task waiting for I/O.
    pub pressure: Option<f64>,
    /// The same share of the quiet time before it: pressure has no device, and tasks may wait for something else all the time.
    pub pressure_before: Option<f64>,
    /// Whether a program can have waited for the device: its counters do not show that only the flusher used it.
    pub is_attended: bool,
    /// Bytes per second at which the data piled up; `None` when they were there before the window, or where only the level
    /// of the machine is known and several devices write.
    pub piled_rate: Option<f64>,
    /// Seconds since hardly anything was dirty; `None` when that was before the window.
    pub age_s: Option<f64>,
    /// What triggered it.
    pub trigger: Trigger,
    /// Whether a trace shows the trigger. Otherwise amount and age make it likely.
    pub is_traced: bool,
    /// Whether it may have been a part of the background threshold that no counter shows, of the device or of a cgroup on it. Never if a
    /// trace shows the trigger, or if the whole threshold was reached.
    pub may_be_part: bool,
}

impl Burst {
    /// Whether a task requested the writeback of data that had only just been dirtied. Such data had not piled up, and
    /// no reasonable setting would have written them before.
    pub fn is_fresh(&self) -> bool {
        self.trigger == Trigger::Asked && self.age_s.is_some_and(|age| age < FRESH_S)
    }

    /// Bytes of the data that piled up that the device wrote in the burst. Since 6.6 a large folio counts as dirty whole, though
    /// only its dirty blocks are written. Levels and requests are counted at different moments, so a small difference is ignored.
    pub fn flushed(&self) -> u64 {
        let written = self.rate * self.seconds;
        if self.dirty_before as f64 > COUNTED_WHOLE * written { written as u64 } else { self.dirty_before }
    }

    /// Whether a task may have requested it: amount and age do not tell a request from a flusher that looks at the device's own
    /// part of the threshold.
    pub fn may_be_asked(&self) -> bool {
        self.trigger == Trigger::Asked || (self.trigger == Trigger::Part && !self.is_traced)
    }

    /// Whether a task waited for the burst, not only the flusher.
    pub fn stalled(&self) -> bool {
        if !self.is_attended {
            return false;
        }
        let slow = self.await_max_s >= STALL_AWAIT_S;
        let waited_before = self.pressure_before.is_some_and(|before| before >= ALWAYS_PRESSURE);
        match self.pressure.filter(|_| !waited_before) {
            Some(share) => share >= STALL_PRESSURE || (share >= SOME_PRESSURE && slow),
            None => slow,
        }
    }
}

/// A stretch in which a device was full, and the reason why it is not a burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Full {
    /// Length of its intervals, seconds.
    pub seconds: f64,
    /// The reason why it is not a burst.
    pub why: NoBurst,
}

/// Reason why a stretch in which a device was full is not a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBurst {
    /// Judging by the bytes of its first and last interval, it may have been shorter than a second.
    Short,
    /// It began before the window, or the levels of dirty data were not read.
    FromTheStart,
    /// The device wrote nearly as much before.
    NotQuiet,
    /// The amount of dirty data did not shrink.
    NotDrained,
    /// A cgroup's limit had held the data back and released them: [`released`].
    Released,
    /// The stretch is a burst.
    IsBurst,
}

/// Returns the longest stretch in which a device was full, whether a burst or not; `None` where no interval was full.
pub fn fullest(derived: &Derived<'_>, device: &Device<'_>) -> Option<Full> {
    let all = stretches(derived, device, NOTICED_S);
    let why = |stretch: &Result<Burst, Full>| {
        stretch.map_or_else(|full| full, |burst| Full { seconds: burst.seconds, why: NoBurst::IsBurst })
    };
    all.iter().map(why).max_by(|one, other| one.seconds.total_cmp(&other.seconds))
}

/// Returns the longest burst of a device in the window; `None` when no burst lasted a second.
pub fn longest(derived: &Derived<'_>, device: &Device<'_>) -> Option<Burst> {
    all(derived, device).into_iter().max_by(|one, other| one.seconds.total_cmp(&other.seconds))
}

/// Returns the speed at which a device writes: measured while it was saturated, otherwise that of its longest burst, otherwise an
/// estimate.
pub fn speed(derived: &Derived<'_>, device: &Device<'_>) -> Option<Speed> {
    let known = device.write_bandwidth();
    // Scattered pages are written at the rate of the disk's operations. Of several devices, each may have waited for another's data.
    let of_burst = || {
        let is_only = derived.drains().len() == 1;
        let burst = longest(derived, device).filter(|burst| is_only && burst.mean_write > SMALL_WRITE)?;
        Some(Speed { value: burst.rate, basis: Basis::Saturated })
    };
    known.filter(|speed| speed.basis == Basis::Saturated).or_else(of_burst).or(known)
}

/// All bursts of a device in the window, in order of time.
pub fn all(derived: &Derived<'_>, device: &Device<'_>) -> Vec<Burst> {
    lasting(derived, device, NOTICED_S)
}

/// All bursts of a device that lasted for at least this time, seconds. One that is shorter than a second is noticed if it comes
/// again and again.
pub fn lasting(derived: &Derived<'_>, device: &Device<'_>, seconds: f64) -> Vec<Burst> {
    stretches(derived, device, seconds).into_iter().filter_map(Result::ok).collect()
}

/// Returns each stretch in which a device was full: as a burst, or with the reason why it is not one. One of them is that it may have
/// been shorter than `shortest` seconds.
fn stretches(derived: &Derived<'_>, device: &Device<'_>, shortest: f64) -> Vec<Result<Burst, Full>> {
    let intervals = device.intervals();
    let (full, runs) = (full_rate(&intervals), full_runs(&intervals));
    let levels = unwritten_of(derived, device);
    let begun = under_writeback_of(derived, device).series;
    let history = History { derived, device, totals: totals(&intervals), levels, begun, intervals };
    let of = |(start, end): (usize, usize)| {
        let during = history.intervals.get(start..end).unwrap_or_default();
        let seconds = during.iter().map(|interval| interval.seconds).sum();
        let is_released = || during.first().is_some_and(|first| released::is_in(derived, device, first));
        match at_least(during, full) >= shortest {
            true if is_released() => Err(Full { seconds, why: NoBurst::Released }),
            true => history.burst(start, end).map_err(|why| Full { seconds, why }),
            false => Err(Full { seconds, why: NoBurst::Short }),
        }
    };
    runs.into_iter().map(of).collect()
}

/// Returns the stretches of intervals in which a device was full, each by the places of its first interval and of the one after
/// its last.
pub(super) fn full_runs(intervals: &[Interval]) -> Vec<(usize, usize)> {
    let full = full_rate(intervals);
    let is_full = |interval: &Interval| {
        let fast = interval.write_rate() >= QUIET_SHARE * full && interval.queue.is_some_and(|queue| queue >= QUEUED);
        interval.is_saturated() || (fast && interval.utilisation.is_some_and(|busy| busy >= BUSY))
    };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in intervals.iter().enumerate().filter(|(_, interval)| is_full(interval)) {
        match runs.last_mut() {
            Some((_, end)) if *end == at => *end = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs
}

/// Shortest possible length of a burst, seconds. The burst covers only the part of its first and of its last interval
/// that their bytes need at the full rate.
fn at_least(during: &[Interval], full: f64) -> f64 {
    let last = during.len().saturating_sub(1);
    let of = |(at, interval): (usize, &Interval)| {
        let part = if at == 0 || at == last { interval.write_rate() / full.max(1.0) } else { 1.0 };
        interval.seconds * part.min(1.0)
    };
    during.iter().enumerate().map(of).sum()
}

/// Bytes per second of the device when it is full: the median of the saturated intervals, because completions of one
/// interval may be counted in the next. Without saturated intervals, the largest rate.
fn full_rate(intervals: &[Interval]) -> f64 {
    let saturated = intervals.iter().filter(|interval| interval.is_saturated() && interval.written_bytes > 0.0);
    let mut rates: Vec<f64> = saturated.map(Interval::write_rate).collect();
    rates.sort_by(f64::total_cmp);
    let peak = || intervals.iter().map(Interval::write_rate).fold(0.0, f64::max);
    rates.get(rates.len() / 2).copied().unwrap_or_else(peak)
}

/// Seconds and bytes written before each interval.
fn totals(intervals: &[Interval]) -> Vec<(f64, f64)> {
    let mut total = (0.0, 0.0);
    let before = |interval: &Interval| {
        let before = total;
        total = (total.0 + interval.seconds, total.1 + interval.written_bytes);
        before
    };
    intervals.iter().map(before).collect()
}

/// Bytes dirty and under writeback at each sample.
pub(super) struct Levels {
    /// The bytes, in order of time.
    pub(super) series: Vec<(Nanos, u64)>,
    /// Whether they are all of the device that is meant.
    pub(super) is_own: bool,
    /// Source of the numbers, for evidence.
    pub(super) source: &'static str,
}

impl Levels {
    /// The level in the last sample at or before a moment.
    pub(super) fn at(&self, moment: Nanos) -> Option<u64> {
        let place = self.series.partition_point(|(at, _)| at.0 <= moment.0.saturating_add(1_000_000));
        Some(self.series.get(place.checked_sub(1)?)?.1)
    }

    /// The level in the sample before the last one at a moment.
    pub(super) fn before(&self, moment: Nanos) -> Option<u64> {
        let place = self.series.partition_point(|(at, _)| at.0 <= moment.0.saturating_add(1_000_000));
        Some(self.series.get(place.checked_sub(2)?)?.1)
    }
}

fn unwritten_of_bdi(row: &BdiRow) -> Option<u64> {
    Some(row.reclaimable?.0.saturating_add(row.writeback?.0))
}

/// Bytes dirty and under writeback of one device at each sample; `None` where a single device is written to, or where the kernel does not
/// count each.
pub(super) fn own_levels(derived: &Derived<'_>, device: &Device<'_>) -> Option<Vec<(Nanos, u64)>> {
    levels_of(derived, device, unwritten_of_bdi).0
}

/// Bytes dirty and under writeback of one device at each sample, where several devices write and the kernel counts
/// each; otherwise those of the machine.
pub(super) fn unwritten_of(derived: &Derived<'_>, device: &Device<'_>) -> Levels {
    let (own, is_own) = levels_of(derived, device, unwritten_of_bdi);
    let source = if own.is_some() { "debugfs bdi stats" } else { "/proc/vmstat nr_dirty + nr_writeback" };
    Levels { series: own.unwrap_or_else(|| unwritten_series(derived)), is_own, source }
}

/// The same for the bytes under writeback alone.
pub(super) fn under_writeback_of(derived: &Derived<'_>, device: &Device<'_>) -> Levels {
    let (own, is_own) = levels_of(derived, device, |row| Some(row.writeback?.0));
    let source = if own.is_some() { "debugfs bdi stats" } else { "/proc/vmstat nr_writeback" };
    let of_host = |row: &HostRow| Some(row.nr_writeback?.bytes(derived.page_size).0);
    let host =
        || derived.window.host_series.iter().filter_map(|(at, row)| Some((at.monotonic, of_host(row)?))).collect();
    Levels { series: own.unwrap_or_else(host), is_own, source }
}

/// The levels of one device where several devices write and the kernel counts each, and whether those of the device, or else of the
/// machine, are all of the device's.
fn levels_of(
    derived: &Derived<'_>,
    device: &Device<'_>,
    of: impl Fn(&BdiRow) -> Option<u64>,
) -> (Option<Vec<(Nanos, u64)>>, bool) {
    let of_device = || {
        let bdi = device.bdi_series()?;
        let series: Vec<(Nanos, u64)> = bdi.iter().filter_map(|(at, row)| Some((*at, of(row)?))).collect();
        let is_whole = counts_all_wbs(derived);
        let least = series.iter().map(|(_, bytes)| *bytes).min()?;
        // A level that never moves is not a valid reading.
        (is_whole && series.iter().any(|(_, bytes)| *bytes != least)).then_some(series)
    };
    let several =
        derived.drains().iter().filter(|drain| drain.span.growth.written.is_some_and(|b| b.0 > 0)).count() > 1;
    let own = several.then(of_device).flatten();
    let is_own = own.is_some() || !several;
    (own, is_own)
}

/// Whether the counters of a backing device cover all that is dirty on it. Up to 6.9 the kernel prints the root's part only.
pub(super) fn counts_all_wbs(derived: &Derived<'_>) -> bool {
    derived.window.cgroups.is_empty() || kernel_sums(derived) || !has_cgroup_writeback(derived)
}

/// Whether debugfs shows a bdi with all of its wbs.
fn kernel_sums(derived: &Derived<'_>) -> bool {
    derived.behaviour.is_some_and(|kernel| kernel.files.bdi_stats_sum)
}

/// Whether any cgroup below the root has dirty pages of its own.
fn has_cgroup_writeback(derived: &Derived<'_>) -> bool {
    let is_unified = derived.window.facts.as_ref().is_some_and(|facts| facts.cgroups.has_unified_writeback());
    is_unified && !super::cgroup::own_parts(derived.window, &derived.window.unwritten_max).is_empty()
}

/// Dirty and under writeback at each sample, bytes. A page that left one counter may still be in the other.
fn unwritten_series(derived: &Derived<'_>) -> Vec<(Nanos, u64)> {
    let page_size = derived.page_size;
    let unwritten = |row: &HostRow| {
        let writeback = row.nr_writeback.map_or(0, |pages| pages.bytes(page_size).0);
        Some(row.nr_dirty?.bytes(page_size).0.saturating_add(writeback))
    };
    derived.window.host_series.iter().filter_map(|(at, row)| Some((at.monotonic, unwritten(row)?))).collect()
}

/// Writes of a device in a window, and the dirty data available to it.
struct History<'a, 'w> {
    derived: &'a Derived<'w>,
    device: &'a Device<'a>,
    intervals: Vec<Interval>,
    /// As [`totals`] has them.
    totals: Vec<(f64, f64)>,
    /// As [`unwritten_of`] has them.
    levels: Levels,
    /// The part of the levels that is under writeback.
    begun: Vec<(Nanos, u64)>,
}

impl History<'_, '_> {
    /// Bytes per second before a run without the interval in which most was written: where requests are the limit, a few large
    /// ones hold more bytes than a whole burst of small ones. Infinite where there are too few intervals to tell.
    fn usual_rate(&self, start: usize) -> f64 {
        let before = self.intervals.get(..start).unwrap_or_default();
        let most = before.iter().max_by(|one, other| one.written_bytes.total_cmp(&other.written_bytes));
        let Some(most) = most.filter(|_| before.len() >= USUAL_INTERVALS) else { return f64::INFINITY };
        let sum = |of: fn(&Interval) -> f64| before.iter().map(of).sum::<f64>() - of(most);
        sum(|interval| interval.written_bytes) / sum(|interval| interval.seconds).max(f64::MIN_POSITIVE)
    }

    /// Returns the burst of a run of full intervals, if it is one: it follows a quiet time and drains data that had
    /// piled up.
    fn burst(&self, start: usize, end: usize) -> Result<Burst, NoBurst> {
        let from_the_start = NoBurst::FromTheStart;
        let during = self.intervals.get(start..end).ok_or(from_the_start)?;
        let (quiet_s, quiet_bytes) = *self.totals.get(start).ok_or(from_the_start)?;
        let sum = |of: fn(&Interval) -> f64| -> f64 { during.iter().map(of).sum() };
        let seconds = sum(|interval| interval.seconds);
        let written = sum(|interval| interval.written_bytes);
        let writes = sum(|interval| interval.writes);
        if quiet_s <= 0.0 {
            return Err(from_the_start);
        }
        if writes <= 0.0 {
            return Err(NoBurst::NotDrained);
        }
        let (rate, quiet_rate) = (written / seconds, quiet_bytes / quiet_s);
        let before = start.checked_sub(1).and_then(|before| self.intervals.get(before));
        let (before, to) = before.zip(during.last().map(|last| last.end)).ok_or(from_the_start)?;
        let from = before.end;
        let queued_from = Nanos(from.0.saturating_sub((before.seconds * 1e9) as u64));
        // A little later than computed, for the rounding of seconds.
        let first_sample = Nanos(from.0.saturating_sub((quiet_s * 1e9) as u64).saturating_add(1_000));
        let level = |at: Nanos| Some(self.levels.series.get(self.sample_at(at)?)?.1);
        let (dirty_before, dirty_after) = level(from).zip(level(to)).ok_or(from_the_start)?;
        // The pages of one large request chain are counted as written at its end, after the last busy interval.
        let next = self.intervals.get(end).and_then(|next| level(next.end));
        let dirty_after = dirty_after.min(next.unwrap_or(dirty_after));
        if quiet_rate > QUIET_SHARE * rate && self.usual_rate(start) > QUIET_SHARE * rate {
            return Err(NoBurst::NotQuiet);
        }
        if !has_drained(written, dirty_before, dirty_after) {
            return Err(NoBurst::NotDrained);
        }
        let first = self.sample_at(from).ok_or(from_the_start)?;
        let age_s = self.levels.series.get(..=first).and_then(|levels| age_seconds(levels, &self.begun));
        let piled_rate = self.levels.series.get(..=first).filter(|_| self.levels.is_own).and_then(piled_rate);
        let traced = self.traced_trigger(queued_from, to, written);
        let likely = trigger::trigger(self.derived, dirty_before, age_s, self.has_reached_part(from));
        Ok(Burst {
            from,
            queued_from,
            to,
            seconds,
            rate,
            mean_write: written / writes,
            await_max_s: during.iter().filter_map(|interval| interval.write_await_s).fold(0.0, f64::max),
            quiet_rate,
            quiet_s,
            dirty_before,
            dirty_after,
            level_source: self.levels.source,
            pressure: dirty::io_pressure_between(self.derived.window, from, to),
            pressure_before: dirty::io_pressure_between(self.derived.window, first_sample, queued_from),
            is_attended: attended::may_be(self.derived, self.device, from, to),
            piled_rate,
            age_s,
            trigger: traced.unwrap_or(likely),
            is_traced: traced.is_some(),
            may_be_part: traced.is_none() && likely != Trigger::Amount && self.has_unknown_part(from),
        })
    }

    /// Index in the series of the last sample at or before `time`.
    fn sample_at(&self, time: Nanos) -> Option<usize> {
        self.levels.series.partition_point(|(at, _)| *at <= time).checked_sub(1)
    }
}

/// Whether a burst wrote a good part of the data that had piled up and left less, whatever was dirtied meanwhile.
fn has_drained(written: f64, dirty_before: u64, dirty_after: u64) -> bool {
    let emptied = dirty_before.saturating_sub(dirty_after) as f64;
    emptied >= 0.3 * written
}

/// Seconds since less than a tenth of the currently dirty data was dirty. Data under writeback (`begun`) were already handed to the device,
/// so they do not belong to what piles up afterwards.
fn age_seconds(until: &[(Nanos, u64)], begun: &[(Nanos, u64)]) -> Option<f64> {
    let (now, unwritten) = until.last()?;
    let is_little = |bytes: u64| bytes as f64 <= LITTLE_SHARE * *unwritten as f64;
    let dirty = |(at, bytes): &(Nanos, u64)| {
        let place = begun.binary_search_by_key(at, |(time, _)| *time);
        bytes.saturating_sub(place.ok().and_then(|place| begun.get(place)).map_or(0, |(_, bytes)| *bytes))
    };
    // The burst itself begins with data under writeback. A moment counts only if most of the data piled up after it.
    let mut has_piled_up = false;
    let then = until.iter().rev().find(|level| {
        has_piled_up |= dirty(level) as f64 >= MOST_SHARE * *unwritten as f64;
        is_little(level.1) || (has_piled_up && is_little(dirty(level)))
    });
    Some(Nanos(now.0.saturating_sub(then?.0.0)).as_secs_f64())
}

/// Bytes per second at which the dirty data rose from a tenth to nine tenths of the last level.
fn piled_rate(until: &[(Nanos, u64)]) -> Option<f64> {
    let (_, dirty) = *until.last()?;
    let is_below = |part: f64| move |(_, bytes): &&(Nanos, u64)| *bytes as f64 <= part * dirty as f64;
    let (from, low) = until.iter().rev().find(is_below(LITTLE_SHARE))?;
    let (to, high) = until.iter().find(|(at, bytes)| at > from && *bytes as f64 >= MOST_SHARE * dirty as f64)?;
    Some(high.saturating_sub(*low) as f64 / Nanos(to.0 - from.0).as_secs_f64())
}

#[cfg(test)]
pub(crate) mod tests;
mod trigger;
