// SPDX-License-Identifier: MIT OR Apache-2.0
//! Share of the flusher's cycle that an observation has seen. Data dirtied now are written when they expire. A shorter
//! observation cannot rule out a burst at that time, unless the slowest plausible disk writes all of it in no time.
//! Bursts that were seen belong to [`super::burst`].

use super::Verdict;
use super::burst::NOTICED_S;
use super::derived::Derived;
use super::device::{Basis, Device, SMALL_WRITE};
use super::missing;
use floodline_record::gap::{Gap, Source};
use floodline_record::units::{Nanos, Pages};

/// Bytes per second of the slowest disk that is still sold.
pub const SLOWEST: f64 = 8e6;
/// Small writes per second of a rotating disk, or of one of unknown kind.
const SLOWEST_IOPS: f64 = 100.0;
/// Small writes per second of a slow disk without moving parts.
const SLOWEST_FLASH_IOPS: f64 = 2000.0;
/// Factor by which a disk may be slower than a speed not measured while it was full: short writes go to its cache.
const CAUTION: f64 = 4.0;
/// Part of what is dirty that a window must see written to show a steady state.
const TURNS_OVER: f64 = 0.25;
/// Requests from which a disk's counters since boot are representative.
const REQUESTS_SINCE_BOOT: u64 = 10_000;
/// Fewest flusher periods that show a steady state.
const PERIODS: f64 = 2.0;
/// Part of the dirtied bytes from which writing keeps up with dirtying.
const KEEPS_UP: f64 = 0.5;
/// Dirty data are steady while at least this part of the first level is left, and much was written meanwhile.
const STEADY: f64 = 0.8;

/// Rules that depend on the flusher's writes, and the source they read.
const BY_CYCLE: &[(&str, Source)] =
    &[("fsync-behind-writeback", Source::Diskstats), ("dominant-writer", Source::Diskstats)];

/// The time after which everything that was dirtied at its start has been written: the expiry and the flusher's period,
/// seconds. `None` where it is not known, infinite where periodic writeback is off.
pub fn seconds(derived: &Derived<'_>) -> Option<f64> {
    derived.dirty.expiry_seconds.map(|expiry| expiry + period(derived))
}

/// The period of the flusher, seconds; the default where it is not known.
fn period(derived: &Derived<'_>) -> f64 {
    derived.window.host.last.dirty_writeback_centisecs.map_or(5.0, |interval| interval.0 as f64 / 100.0)
}

/// Whether the window is as long as a cycle.
pub fn is_whole(derived: &Derived<'_>) -> bool {
    seconds(derived).is_some_and(|cycle| derived.seconds >= cycle)
}

/// The gap of an observation that is shorter than a cycle, with a sufficient length. `None` where no length suffices.
pub fn gap(derived: &Derived<'_>, source: Source, what: &str) -> Option<Gap> {
    let cycle = seconds(derived).filter(|cycle| cycle.is_finite())?;
    Some(missing::needs_seconds(source, cycle.ceil() + 1.0, what))
}

/// Bytes dirty when the oldest of them expires, if dirtying goes on as in the last third of the window. In a steady
/// state, and in a short observation at its beginning, that is rate times expiry.
pub fn to_come(derived: &Derived<'_>, rate: f64, expiry: f64) -> f64 {
    let steady = rate * expiry;
    let now = derived.dirty.now.map_or(0.0, |bytes| bytes.0 as f64);
    let recent = derived.dirty.recent_dirtying_rate.unwrap_or(rate);
    let left = (expiry - derived.seconds).max(0.0);
    let grown = if recent > 0.0 { now + recent * left } else { now };
    // Never less than a period at the recent rate, nor than the data that piled up in this window.
    if recent < 0.5 * rate { grown.max(recent * expiry).min(steady) } else { steady }
}

/// Most bytes that the flusher may have to write at once within a cycle: those dirty now, and those still to come.
pub fn most(derived: &Derived<'_>) -> Option<f64> {
    let background = derived.dirty.background_threshold?.0 as f64;
    let to_come = to_come(derived, derived.dirty.dirtying_rate?, derived.dirty.expiry_seconds?);
    Some(background.min(to_come).max(derived.dirty.now.map_or(0.0, |bytes| bytes.0 as f64)))
}

/// Longest time, in seconds, that one of the disks in use may take to write `bytes`. A disk that was measured counts
/// with its measured speed, any other with the slowest speed of its kind.
pub fn slowest_seconds(derived: &Derived<'_>, bytes: f64) -> f64 {
    let drains = derived.drains();
    let in_use = |drain: &&Device<'_>| drain.span.growth.written.is_some_and(|written| written.0 > 0);
    let used: Vec<&Device<'_>> = drains.iter().filter(in_use).collect();
    let of = |drains: Vec<&Device<'_>>| drains.iter().map(|drain| at_most(derived, drain, bytes)).fold(0.0, f64::max);
    if used.is_empty() { of(drains.iter().collect()) } else { of(used) }
}

/// Longest time, in seconds, that one device may take to write `bytes`.
fn at_most(derived: &Derived<'_>, device: &Device<'_>, bytes: f64) -> f64 {
    let was_seen = device.span.growth.written.is_some_and(|written| written.0 as f64 >= bytes);
    let since_boot = SinceBoot::of(device);
    let speed = match device.write_bandwidth() {
        Some(speed) if speed.basis == Basis::Saturated => speed.value,
        Some(speed) if speed.basis == Basis::KernelEstimate || was_seen => (speed.value / CAUTION).max(SLOWEST),
        _ => SLOWEST,
    };
    let speed = since_boot.as_ref().map_or(speed, |boot| boot.bytes.max(speed));
    let page = derived.page_size as f64;
    let mean = device.mean_write().filter(|_| was_seen).unwrap_or(page).max(page);
    let least = if is_flash(device) { SLOWEST_FLASH_IOPS } else { SLOWEST_IOPS };
    let iops = match device.small_write_iops() {
        Some(speed) if speed.basis == Basis::Saturated => speed.value,
        _ => since_boot.map_or(least, |boot| boot.requests.max(least)),
    };
    let by_requests = if mean <= SMALL_WRITE { bytes / mean / iops.max(f64::MIN_POSITIVE) } else { 0.0 };
    by_requests.max(bytes / speed.max(f64::MIN_POSITIVE))
}

/// Whether the device has no moving parts, as far as the kernel knows: a virtual disk reports only itself.
fn is_flash(device: &Device<'_>) -> bool {
    let is_virtual =
        |disk: &Device<'_>| ["vd", "xvd"].iter().any(|kind| disk.name.as_bytes().starts_with(kind.as_bytes()));
    let still = |disk: &Device<'_>| disk.facts.and_then(|facts| facts.rotational) == Some(false);
    let disks = device.bottoms();
    !disks.is_empty() && disks.iter().all(|disk| still(disk) && !is_virtual(disk))
}

/// Bytes and requests of a device per busy second, since the device was added.
struct SinceBoot {
    /// Bytes written per second.
    bytes: f64,
    /// Requests per second.
    requests: f64,
}

impl SinceBoot {
    fn of(device: &Device<'_>) -> Option<SinceBoot> {
        let row = &device.span.last;
        let requests = row.writes?.0.saturating_add(row.reads.map_or(0, |reads| reads.0));
        let busy = row.io_time?.as_secs_f64();
        (requests >= REQUESTS_SINCE_BOOT && busy > 0.0).then(|| SinceBoot {
            bytes: row.written.map_or(0.0, |bytes| bytes.0 as f64) / busy,
            requests: requests as f64 / busy,
        })
    }
}

/// Whether dirtied data are written continuously, in both halves of the window, and the data dirty at its beginning are
/// not being drained.
pub fn keeps_up(derived: &Derived<'_>) -> bool {
    let series = &derived.window.host_series;
    let Some(((from, first), (to, last))) = series.first().zip(series.last()) else { return false };
    if derived.seconds < PERIODS * period(derived) {
        return false;
    }
    let middle = Nanos(from.monotonic.0.midpoint(to.monotonic.0));
    let at = series.partition_point(|(time, _)| time.monotonic < middle);
    let Some((_, half)) = series.get(at) else { return false };
    let grown = |one: Option<Pages>, other: Option<Pages>| Some(other?.0.saturating_sub(one?.0) as f64);
    let written = |from: &floodline_record::sample::HostRow, to: &floodline_record::sample::HostRow| {
        let dirtied = grown(from.nr_dirtied, to.nr_dirtied)?;
        Some(grown(from.nr_written, to.nr_written)? >= KEEPS_UP * dirtied)
    };
    let levels = &derived.dirty.series;
    let is_level = levels.first().zip(levels.last()).is_some_and(|((_, a), (_, b))| *b as f64 >= STEADY * *a as f64);
    let all = grown(first.nr_written, last.nr_written).unwrap_or(0.0) * derived.page_size as f64;
    let turns_over = levels.iter().all(|(_, level)| all >= TURNS_OVER * *level as f64);
    is_level && turns_over && written(first, half) == Some(true) && written(half, last) == Some(true)
}

/// Returns the verdict, or a gap where data that the flusher has yet to write could change it.
pub(super) fn judged(derived: &Derived<'_>, rule: &str, verdict: Verdict) -> Verdict {
    let Verdict::Clear(_) = verdict else { return verdict };
    let Some((_, source)) = BY_CYCLE.iter().find(|(name, _)| *name == rule) else { return verdict };
    let is_short = derived.seconds > 0.0 && !is_whole(derived) && !keeps_up(derived);
    let may_stall = || most(derived).is_some_and(|bytes| slowest_seconds(derived, bytes) >= NOTICED_S);
    match gap(derived, *source, "writeback of what was dirtied").filter(|_| is_short && may_stall()) {
        Some(gap) => Verdict::NotChecked(vec![gap]),
        None => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    /// Dirtied at this rate, MiB per second, and never written, on a disk about which next to nothing is known.
    fn rising(rate: f64) -> Fixture {
        Fixture::healthy()
            .facts(|facts| facts.devices[0].rotational = Some(true))
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(0.1 + rate * t));
                row.nr_dirtied = Some(Pages(40_000_000 + mib_pages(rate * t).0));
                row.nr_written = Some(Pages(38_000_000));
            })
            .bdi("8:0", |_, row| row.write_bandwidth = None)
            .disk("sda", |t, row| {
                (row.writes, row.reads) = (Some(Count(100 + t as u64)), Some(Count(100)));
                row.written = Some(Bytes(mib(1.0) + 4096 * t as u64));
                row.io_time = Some(secs(1.0));
            })
    }

    fn is_cleared(fixture: &Fixture, rule: &'static str) -> bool {
        let report = crate::diagnose::diagnose(&fixture.window(), Some(&[rule]));
        report.ruled_out.iter().any(|one| one.rule == rule)
    }

    #[test]
    fn a_short_observation_does_not_clear_what_the_flusher_has_yet_to_write() {
        for rule in ["dirty-cliff", "fsync-behind-writeback", "dominant-writer"] {
            assert!(!is_cleared(&rising(0.05).seconds(6), rule), "{rule}");
            // Forty pages are written in less than a second by any disk.
            assert!(is_cleared(&rising(0.005).seconds(6), rule), "{rule}");
            assert!(is_cleared(&rising(0.05).seconds(36), rule), "{rule}");
        }
    }

    #[test]
    fn a_disk_is_judged_by_what_it_did_since_boot_rather_than_by_one_short_write() {
        // A short write that the disk's cache absorbed does not measure its speed.
        let cached = rising(2.0).seconds(6).disk("sda", |t, row| {
            row.written = Some(Bytes(mib(1.0 + 14.0 * t.min(1.0))));
            row.io_time = Some(secs(1.0 + 0.05 * t.min(1.0)));
        });
        assert!(!is_cleared(&cached, "dirty-cliff"));
        let known = rising(2.0).seconds(6).disk("sda", |t, row| {
            row.writes = Some(Count(1_000_000 + t as u64));
            row.written = Some(Bytes(mib(800_000.0)));
            row.io_time = Some(secs(50.0));
        });
        assert!(is_cleared(&known, "dirty-cliff"));
    }

    #[test]
    fn what_was_dirty_before_the_observation_counts() {
        let quiet = rising(0.0).seconds(6).host(|_, row| row.nr_dirty = Some(mib_pages(300.0)));
        assert!(!is_cleared(&quiet, "dirty-cliff"));
        assert_eq!(most(&Derived::of(&quiet.window())), Some(mib(300.0) as f64));
    }

    #[test]
    fn a_machine_that_writes_all_the_time_need_not_be_watched_for_a_cycle() {
        let steady = |rate: f64| {
            rising(2.0).seconds(10).host(move |t, row| {
                row.nr_dirty = Some(mib_pages(60.0));
                row.nr_written = Some(Pages(38_000_000 + mib_pages(rate * t).0));
            })
        };
        assert!(keeps_up(&Derived::of(&steady(2.0).window())));
        assert!(!keeps_up(&Derived::of(&steady(0.5).window())));
        // What is drained meanwhile is a burst and no steady state.
        assert!(!keeps_up(&Derived::of(
            &steady(2.0).host(|t, row| row.nr_dirty = Some(mib_pages(60.0 - 4.0 * t))).window()
        )));
        // What is written early only is not.
        let early = steady(0.0).host(|t, row| row.nr_written = Some(Pages(38_000_000 + mib_pages(6.0 * t.min(4.0)).0)));
        assert!(!keeps_up(&Derived::of(&early.window())));
    }

    #[test]
    fn every_rule_that_needs_a_cycle_is_one() {
        assert!(BY_CYCLE.iter().all(|(name, _)| crate::diagnose::rule(name).is_some()));
    }
}
