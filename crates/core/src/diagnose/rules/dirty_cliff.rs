// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `dirty-cliff`: what piles up until the flusher starts takes the device more than a second or two.
//! Confirmed by a burst within the window, or foretold from rates while dirty data pile up. Not about
//! one process (`dominant-writer`) and not about budgets of cgroups.
#![doc = include_str!("dirty_cliff.md")]

use crate::advise::{step::sysctls, threshold};
use crate::diagnose::device::{self, Device, Interval, Speed};
use crate::diagnose::{Rule, Verdict, dirty, missing, writer};
use crate::gap::{Gap, Source};
use crate::human;
use crate::report::{Evidence, Finding, Severity, Step};
use crate::units::Nanos;
use crate::window::Window;

/// See the manual page.
pub const RULE: Rule = Rule {
    name: "dirty-cliff",
    summary: "More dirty data piles up than the device writes in a second; then everybody waits",
    manual: include_str!("dirty_cliff.md"),
    check,
};

/// A stall that people notice, seconds.
const NOTICED_S: f64 = 1.0;
/// A stall that breaks time limits, seconds.
const HURTS_S: f64 = 2.0;
/// Share of a burst with a task waiting for I/O from which the burst was a stall.
const STALL_PRESSURE: f64 = 0.5;
/// Mean time of a write from which whoever waited for one was stalled, seconds.
const STALL_AWAIT_S: f64 = 0.3;
/// The device is quiet below this share of its rate in the burst.
const QUIET_SHARE: f64 = 0.4;
/// Dirty data pile up when less than this share of what is dirtied is cleaned.
const PILES_UP_SHARE: f64 = 0.5;

/// What will be, or is, waiting for one device.
struct Hoard<'a> {
    device: Device<'a>,
    speed: Speed,
    /// In bytes where the device is limited by bandwidth.
    bytes: f64,
    /// Mean size of the writes it will be, where the device is limited by operations.
    by_operations: Option<f64>,
    /// Time to write it.
    seconds: f64,
}

/// A stretch in which the device was saturated after having been quiet.
struct Burst {
    seconds: f64,
    rate: f64,
    mean_write: f64,
    await_max_s: f64,
    quiet_rate: f64,
    quiet_s: f64,
    dirty_before: u64,
    dirty_after: u64,
    /// Share of it with a task waiting for I/O.
    pressure: Option<f64>,
}

impl Burst {
    fn stalled(&self) -> bool {
        self.pressure.is_some_and(|share| share >= STALL_PRESSURE) || self.await_max_s >= STALL_AWAIT_S
    }

    fn is_by_operations(&self) -> bool {
        self.mean_write <= device::SMALL_WRITE
    }
}

fn check(window: &Window) -> Verdict {
    let Some(background) = dirty::background_threshold(window) else {
        return missing::not_checked(window, Source::Vmstat, "nr_dirty_background_threshold");
    };
    let Some(expiry) = dirty::expiry_seconds(window) else {
        return missing::not_checked(window, Source::SysctlVm, "dirty_expire_centisecs");
    };
    let Some(rate) = dirty::dirtying_rate(window) else {
        return Verdict::NotChecked(vec![missing::rate_gap(window, Source::Vmstat, "nr_dirtied")]);
    };
    let drains = device::drains(window);
    if drains.is_empty() {
        return missing::not_checked(window, Source::Diskstats, "no disk");
    }
    if let Some((device, burst)) = drains.iter().find_map(|device| Some((*device, burst(window, device)?))) {
        return Verdict::Found(vec![confirmed(window, &device, &burst, rate)]);
    }
    let most = (background.0 as f64).min(rate * expiry);
    let whole_cycle = window.seconds() >= expiry + period_seconds(window);
    let Some(hoard) = hoard(&drains, most) else {
        return without_speed(window, &drains, most);
    };
    let spare = format!(
        "{} at most, {} of writing for {}",
        human::bytes(hoard.bytes),
        human::seconds(hoard.seconds),
        hoard.device.name
    );
    if hoard.seconds < NOTICED_S {
        return Verdict::Clear(format!("little piles up until the flusher starts: {spare}"));
    }
    if whole_cycle {
        return Verdict::Clear(format!("a whole expiry cycle was seen and no burst took a second: {spare}"));
    }
    if !piles_up(window, rate) {
        return Verdict::Clear(format!("dirty data are written about as fast as they are made: {spare}"));
    }
    Verdict::Found(vec![foretold(window, &hoard, rate, expiry)])
}

/// Nothing is known of the device's speed but a bound: enough to clear, never to find.
fn without_speed(window: &Window, drains: &[Device<'_>], most: f64) -> Verdict {
    let bound = drains.first().and_then(Device::write_bandwidth);
    if let Some(speed) = bound.filter(|speed| most / speed.value < NOTICED_S) {
        return Verdict::Clear(format!(
            "{} at most pile up, and the device writes at least {}",
            human::bytes(most),
            human::bytes_per_second(speed.value)
        ));
    }
    // One second of the slowest disk that is still sold.
    if most < 8e6 {
        return Verdict::Clear(format!("{} at most pile up until the flusher starts", human::bytes(most)));
    }
    let estimate: Gap = missing::gap(window, Source::DebugBdiStats, "BdiWriteBandwidth");
    Verdict::NotChecked(vec![estimate])
}

fn period_seconds(window: &Window) -> f64 {
    window.host.last.dirty_writeback_centisecs.map_or(5.0, |interval| interval.0 as f64 / 100.0)
}

/// Whether what is dirtied stays: more than half of it was not cleaned, and the level shows it.
fn piles_up(window: &Window, rate: f64) -> bool {
    let stays = dirty::cleaning_rate(window).is_none_or(|cleaned| cleaned < PILES_UP_SHARE * rate);
    let series = dirty::dirty_series(window);
    let rises = match (series.first(), series.last()) {
        (Some((_, first)), Some((_, last))) => last > first,
        _ => false,
    };
    stays && rises
}

/// The device that needs the longest for its part of what piles up; `None` when no speed is known.
fn hoard<'a>(drains: &[Device<'a>], most: f64) -> Option<Hoard<'a>> {
    let written = |device: &Device<'_>| device.span.growth.written.map_or(0.0, |bytes| bytes.0 as f64);
    let total: f64 = drains.iter().map(written).sum();
    let share = |device: &Device<'_>| if total > 0.0 { written(device) / total } else { 1.0 / drains.len() as f64 };
    let of = |device: &Device<'a>| {
        let bytes = most * share(device);
        let by_bytes = device.write_bandwidth().filter(|speed| speed.basis.is_known());
        let by_operations = device.small_write_iops().filter(|speed| speed.basis.is_known()).zip(device.mean_write());
        let by_bytes = by_bytes.map(|speed| Hoard {
            device: *device,
            speed,
            bytes,
            by_operations: None,
            seconds: bytes / speed.value,
        });
        let by_operations = by_operations.map(|(speed, mean_write)| Hoard {
            device: *device,
            speed,
            bytes,
            by_operations: Some(mean_write),
            seconds: bytes / mean_write / speed.value,
        });
        // Small writes were seen to be the limit: then they are, whatever the bandwidth.
        by_operations.or(by_bytes)
    };
    drains.iter().filter_map(of).max_by(|one, other| one.seconds.total_cmp(&other.seconds))
}

/// The longest burst of the window that follows a quiet time in which dirty data rose.
fn burst(window: &Window, device: &Device<'_>) -> Option<Burst> {
    let intervals = device.intervals();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, interval) in intervals.iter().enumerate() {
        if !interval.is_saturated() {
            continue;
        }
        match runs.last_mut() {
            Some((_, end)) if *end == at => *end = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    let bursts = runs.into_iter().filter_map(|(start, end)| burst_of(window, &intervals, start, end));
    bursts.max_by(|one, other| one.seconds.total_cmp(&other.seconds))
}

fn burst_of(window: &Window, intervals: &[Interval], start: usize, end: usize) -> Option<Burst> {
    let (before, during) = (intervals.get(..start)?, intervals.get(start..end)?);
    let length = |part: &[Interval]| part.iter().map(|interval| interval.seconds).sum::<f64>();
    let written = |part: &[Interval]| part.iter().map(|interval| interval.written_bytes).sum::<f64>();
    let (seconds, quiet_s) = (length(during), length(before));
    let writes: f64 = during.iter().map(|interval| interval.writes).sum();
    if seconds < NOTICED_S || quiet_s <= 0.0 || writes <= 0.0 {
        return None;
    }
    let (rate, quiet_rate) = (written(during) / seconds, written(before) / quiet_s);
    let (from, to) = (before.last()?.end, during.last()?.end);
    let series = dirty::dirty_series(window);
    let at = |moment: Nanos| series.iter().rev().find(|(at, _)| *at <= moment).map(|(_, bytes)| *bytes);
    let (dirty_before, dirty_after) = (at(from)?, at(to)?);
    // The burst has to have emptied what had piled up, at least half of it.
    let emptied = dirty_before.saturating_sub(dirty_after) as f64;
    if quiet_rate > QUIET_SHARE * rate || emptied < 0.5 * dirty_before as f64 || emptied < 0.3 * rate * seconds {
        return None;
    }
    Some(Burst {
        seconds,
        rate,
        mean_write: written(during) / writes,
        await_max_s: during.iter().filter_map(|interval| interval.write_await_s).fold(0.0, f64::max),
        quiet_rate,
        quiet_s,
        dirty_before,
        dirty_after,
        pressure: dirty::io_pressure_between(window, from, to),
    })
}

fn confirmed(window: &Window, device: &Device<'_>, burst: &Burst, rate: f64) -> Finding {
    let one_writer = burst.is_by_operations() && writer::dominant(&writer::writers(window)).is_some();
    // Who unmounts an overlay asks for the burst: then that is the cause.
    let asked_for = super::overlay_umount_flush::is_happening(window);
    let severity = match (burst.stalled(), one_writer || asked_for) {
        (true, false) => Severity::Critical,
        _ => Severity::Warning,
    };
    let what = if burst.is_by_operations() { "scattered small pages" } else { "of dirty data" };
    let summary = format!(
        "{} {what} piled up and went to {} at once: {} during which everyone who writes waits.",
        human::bytes(burst.dirty_before as f64),
        device.name,
        human::seconds(burst.seconds)
    );
    let mut evidence = vec![
        Evidence::bytes("Dirty before the burst", burst.dirty_before, "/proc/vmstat nr_dirty"),
        Evidence::bytes("Dirty after it", burst.dirty_after, "/proc/vmstat nr_dirty"),
        Evidence::seconds("Length of the burst", burst.seconds, "/proc/diskstats io_time").against(NOTICED_S),
        Evidence::rate("Written during the burst", burst.rate, "/proc/diskstats written"),
        Evidence::rate(
            format!("Written in the {} before", human::seconds(burst.quiet_s)),
            burst.quiet_rate,
            "/proc/diskstats written",
        ),
        Evidence::seconds("Write await, worst interval", burst.await_max_s, "/proc/diskstats write_time ÷ writes")
            .against(STALL_AWAIT_S),
    ];
    evidence.extend(burst.pressure.map(|share| {
        Evidence::share("Time in it with a task waiting", share, "/proc/pressure/io some").against(STALL_PRESSURE)
    }));
    evidence.extend(common_evidence(window, rate));
    let speed = Speed { value: burst.rate, basis: device::Basis::Saturated };
    finish(window, severity, summary, evidence, burst.is_by_operations(), speed, rate)
}

fn foretold(window: &Window, hoard: &Hoard<'_>, rate: f64, expiry: f64) -> Finding {
    let severity = if hoard.seconds >= HURTS_S { Severity::Warning } else { Severity::Info };
    let summary = format!(
        "Dirty data pile up: when the flusher starts, {} has {} of writing to do and everyone waits.",
        hoard.device.name,
        human::seconds(hoard.seconds)
    );
    let mut evidence = vec![
        Evidence::bytes("Piles up until then", hoard.bytes as u64, "min(background threshold, dirtying rate × expiry)"),
        Evidence::seconds("Time to write it", hoard.seconds, "piled up ÷ device speed").against(HURTS_S),
        Evidence::seconds("Expiry", expiry, "/proc/sys/vm/dirty_expire_centisecs"),
    ];
    evidence.push(match hoard.by_operations {
        None => {
            Evidence::rate(format!("Bandwidth of {}", hoard.device.name), hoard.speed.value, hoard.speed.basis.source())
        }
        Some(_) => Evidence::per_second(
            format!("Small writes of {}", hoard.device.name),
            hoard.speed.value,
            hoard.speed.basis.source(),
        ),
    });
    evidence.extend(common_evidence(window, rate));
    finish(window, severity, summary, evidence, hoard.by_operations.is_some(), hoard.speed, rate)
}

/// What both kinds rest on: the rate, the level, the thresholds, and whether the limit was touched.
fn common_evidence(window: &Window, rate: f64) -> Vec<Evidence> {
    let mut evidence = vec![Evidence::rate("Dirtied", rate, "/proc/vmstat nr_dirtied")];
    let background = dirty::background_threshold(window);
    evidence.extend(dirty::dirty_peak(window).zip(background).map(|(peak, background)| {
        Evidence::bytes("Most dirty, against background", peak.0, "/proc/vmstat nr_dirty").against(background.0 as f64)
    }));
    evidence.extend(dirty::dirty_peak(window).zip(dirty::freerun_ceiling(window)).map(|(peak, ceiling)| {
        Evidence::bytes("Most dirty, against throttling", peak.0, "freerun ceiling (thresh + bg_thresh) / 2")
            .against(ceiling.0 as f64)
    }));
    evidence
}

fn finish(
    window: &Window,
    severity: Severity,
    summary: String,
    evidence: Vec<Evidence>,
    by_operations: bool,
    speed: Speed,
    rate: f64,
) -> Finding {
    let reached = dirty::dirty_peak(window).zip(dirty::background_threshold(window));
    let trigger = match reached {
        Some((peak, background)) if peak.0 as f64 >= 0.95 * background.0 as f64 => {
            "Dirty data reached the background threshold, which is more than this device writes in a second"
        }
        _ => {
            "Dirty data stay below the background threshold, so nothing but their age wakes the flusher, which then \
             takes all that has expired"
        }
    };
    let throttled = match dirty::can_have_throttled(window) {
        Some(false) => " vm.dirty_ratio is not to blame: no writer was throttled by it.",
        Some(true) => " Writers were over the freerun ceiling too and were throttled.",
        None => "",
    };
    let too_fast = !by_operations && rate > speed.value;
    let faster = if too_fast {
        " What is dirtied is more than the device writes: no setting helps fsync then, the disk is full either way."
    } else {
        ""
    };
    let (plan, trade_off) = remedy(window, by_operations, speed);
    Finding {
        rule: RULE.name,
        severity,
        summary,
        evidence,
        cause: format!("{trigger}.{throttled}{faster}"),
        plan,
        trade_off,
    }
}

/// Bytes where no cgroup is starved by them, otherwise a shorter age at unchanged thresholds. Operations
/// are not bytes: a threshold cannot hold "thirty writes", a short age can.
fn remedy(window: &Window, by_operations: bool, speed: Speed) -> (Vec<Step>, String) {
    let needs = threshold::Needs::of(window, Some(speed));
    let advice = threshold::choose(&needs)
        .filter(|advice| !by_operations && matches!(advice.pair, threshold::Pair::Bytes { .. }));
    let shorter_age = sysctls(window, &[("vm.dirty_expire_centisecs", 300), ("vm.dirty_writeback_centisecs", 100)]);
    match advice {
        Some(advice) => (
            sysctls(window, &advice.pair.changes()),
            format!(
                "{} {} Instead, at unchanged thresholds: vm.dirty_expire_centisecs=300 and \
                 vm.dirty_writeback_centisecs=100.",
                advice.why, advice.trade_off
            ),
        ),
        None => (
            shorter_age,
            "A shorter age, because byte thresholds do not fit here: they would starve cgroups with memory limits, or \
             the device is limited by operations. Pages that are rewritten often are written up to ten times as often."
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use crate::fixture::incidents::{dirty_cliff, dirty_cliff_cured, dirty_cliff_published};
    use crate::fixture::{Fixture, mib, mib_pages, secs};
    use crate::gap::Cause;
    use crate::units::{Bytes, BytesPerSecond, Count, Pages};

    fn finding(fixture: &Fixture) -> Finding {
        match check(&fixture.window()) {
            Verdict::Found(mut findings) => findings.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn commands(finding: &Finding) -> Vec<&str> {
        finding.plan.iter().map(|step| step.command.as_str()).take(2).collect()
    }

    #[test]
    fn the_measured_cliff_is_critical_and_gets_the_measured_cure() {
        check_rule(&RULE, &dirty_cliff(), "critical: 298 MiB of dirty data piled up and went to sda at once: 7.00 s");
        let finding = finding(&dirty_cliff());
        assert_eq!(
            commands(&finding),
            ["sysctl -w vm.dirty_background_bytes=33554432", "sysctl -w vm.dirty_bytes=134217728"]
        );
        assert!(finding.cause.contains("vm.dirty_ratio is not to blame"), "{}", finding.cause);
        check_rule(&RULE, &dirty_cliff_cured(), "clear:");
    }

    #[test]
    fn the_published_cliff_gets_the_published_cure() {
        let finding = finding(&dirty_cliff_published());
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(
            commands(&finding),
            ["sysctl -w vm.dirty_background_bytes=268435456", "sysctl -w vm.dirty_bytes=1073741824"]
        );
        assert!(finding.cause.starts_with("Dirty data reached the background threshold"), "{}", finding.cause);
    }

    /// The first ten seconds: nothing has been written yet.
    fn rising(bandwidth_mib: f64) -> Fixture {
        dirty_cliff().seconds(10).bdi("8:0", move |_, row| {
            row.write_bandwidth = Some(BytesPerSecond(mib(bandwidth_mib)));
        })
    }

    #[test]
    fn while_dirty_data_pile_up_the_stall_is_foretold() {
        check_rule(&RULE, &rising(38.0), "warning: Dirty data pile up: when the flusher starts, sda has 7.83 s");
        check_rule(&RULE, &rising(190.0), "info: Dirty data pile up");
        check_rule(&RULE, &rising(910.0), "clear: little piles up until the flusher starts: 297 MiB at most, 327 ms");
    }

    #[test]
    fn what_is_written_as_fast_as_it_is_made_does_not_pile_up() {
        let flat = rising(38.0).host(|t, row| {
            row.nr_dirty = Some(mib_pages(300.0));
            row.nr_written = Some(Pages(38_000_000 + mib_pages(9.9 * t).0));
        });
        check_rule(&RULE, &flat, "clear: dirty data are written about as fast as they are made");
    }

    #[test]
    fn a_large_threshold_that_nothing_fills_is_no_finding() {
        let large = Fixture::healthy().memory_gib(128.0).bdi("8:0", |_, row| {
            row.write_bandwidth = Some(BytesPerSecond(mib(42.0)));
        });
        check_rule(&RULE, &large, "clear: little piles up");
    }

    #[test]
    fn cgroups_that_bytes_would_starve_get_a_shorter_age_instead() {
        let limited = dirty_cliff()
            .cgroup("/small", |_, row| {
                row.memory_current = Some(Bytes(mib(110.0)));
                row.file_dirty = Some(Bytes(mib(1.0)));
            })
            .limits("/small", |_, row| row.memory_max = Some(crate::units::Limit(mib(128.0))));
        let finding = finding(&limited);
        assert_eq!(
            commands(&finding),
            ["sysctl -w vm.dirty_expire_centisecs=300", "sysctl -w vm.dirty_writeback_centisecs=100"]
        );
    }

    #[test]
    fn a_writer_that_is_faster_than_the_disk_is_told_so() {
        let fast = dirty_cliff().host(|t, row| row.nr_dirtied = Some(Pages(40_000_000 + mib_pages(90.0 * t).0)));
        assert!(finding(&fast).cause.contains("no setting helps fsync"), "{}", finding(&fast).cause);
    }

    #[test]
    fn a_disk_that_is_busy_all_the_time_has_no_cliff() {
        let busy = dirty_cliff().host(|t, row| {
            row.nr_dirty = Some(mib_pages(200.0));
            row.nr_written = Some(Pages(38_000_000 + mib_pages(9.9 * t).0));
        });
        let busy = busy.disk("sda", |t, row| {
            row.written = Some(Bytes(mib(160_000.0 + 42.0 * t)));
            row.writes = Some(Count(9_000_000 + (84.0 * t) as u64));
            row.io_time = Some(secs(6_000.0 + t));
            row.weighted_io_time = Some(secs(10_000.0 + 50.0 * t));
        });
        check_rule(&RULE, &busy, "clear: a whole expiry cycle was seen");
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        check_rule(
            &RULE,
            &dirty_cliff().one_look(),
            "not checked: /proc/vmstat (nr_dirtied): one look only (needs --for 10s)",
        );
        let unsupported = || Cause::NotMounted { fs_type: "debugfs".to_owned() };
        check_rule(
            &RULE,
            &dirty_cliff().seconds(10).without(Source::DebugBdiStats, unsupported()),
            "not checked: /sys/kernel/debug/bdi/NAME/stats: debugfs is not mounted",
        );
        let vanished = dirty_cliff().without(Source::Vmstat, Cause::Vanished);
        check_rule(&RULE, &vanished, "not checked: /proc/vmstat: gone before it was read");
    }
}
