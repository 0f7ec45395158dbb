// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `dirty-cliff`: the data that pile up until the flusher starts take the device more than a second or two.
//! Confirmed by a burst within the window, or predicted from rates while dirty data pile up. Does not cover one process
//! (`dominant-writer`) or budgets of cgroups.
#![doc = include_str!("dirty_cliff.md")]

mod hoard;
mod remedy;
#[cfg(test)]
mod tests;
mod unseen;

use self::hoard::{Hoard, by_class, hoard};
use self::remedy::{Pile, finish};
use self::unseen::{begun_before, longest_seen, too_short};
use crate::diagnose::burst::{self, Burst, NOTICED_S, STALL_AWAIT_S, STALL_PRESSURE, Trigger};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{self, Basis, Device, Speed};
use crate::diagnose::{
    Rule, Verdict, asleep, attended, crowded, cycle, dirtying, elsewhere, flusher, loops, strict, synced, throttle,
    waiting, writer,
};
use crate::report::{Evidence, Finding, Severity};
use floodline_record::gap::Source;
use floodline_record::human;
use std::collections::BTreeSet;

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "dirty-cliff",
    summary: "More dirty data piles up than the device writes in a second; then all writers wait",
    manual: include_str!("dirty_cliff.md"),
    explains: &["dominant-writer", "fsync-behind-writeback", "dirty-data-at-risk"],
    check,
};

/// Length of a stall that breaks time limits, seconds.
const HURTS_S: f64 = 2.0;
/// Mean time of a write below which a task that waits for one hardly notices, seconds.
const QUICK_S: f64 = 0.02;
/// Share of a burst that a task must have queued itself for the evidence to name it.
const ASKED_SHARE: f64 = 0.1;
/// A burst that comes later than this is an info, not a warning. Seconds.
const FAR_S: f64 = 600.0;
/// Dirty data pile up when less than this share of what is dirtied is cleaned.
const PILES_UP_SHARE: f64 = 0.5;

fn check(derived: &Derived<'_>) -> Verdict {
    let Some(background) = derived.dirty.background_threshold else {
        return derived.not_checked(Source::Vmstat, "nr_dirty_background_threshold");
    };
    let Some(expiry) = derived.dirty.expiry_seconds else {
        return derived.not_checked(Source::SysctlVm, "dirty_expire_centisecs");
    };
    let Some(rate) = derived.dirty.dirtying_rate else {
        return Verdict::NotChecked(vec![derived.rate_gap(Source::Vmstat, "nr_dirtied")]);
    };
    let drains = derived.drains();
    if drains.is_empty() {
        return derived.not_checked(Source::Diskstats, "no disk");
    }
    // A task that syncs freshly written data gets the burst it requested. So does a sync that stalls no task.
    let is_harmless = |burst: &Burst| burst.is_fresh() || (burst.trigger == Trigger::Asked && !burst.stalled());
    let burst = |device: &Device<'_>| burst::longest(derived, device).filter(|burst| !is_harmless(burst));
    let mut bursts: Vec<(&Device<'_>, Burst)> = drains.iter().filter_map(|one| Some((one, burst(one)?))).collect();
    if !bursts.is_empty() {
        bursts.sort_by(|one, other| other.1.seconds.total_cmp(&one.1.seconds));
        return Verdict::Found(bursts.iter().map(|(device, burst)| confirmed(derived, device, burst, rate)).collect());
    }
    let most = (background.0 as f64).min(cycle::to_come(derived, rate, expiry));
    let known = hoard(derived, drains, most);
    let seen = derived.dirty.unwritten_peak.map_or(0.0, |peak| peak.0 as f64);
    let amount = format!(
        "at the usual rate, {} are dirty when the flusher starts (peak of unwritten data: {})",
        human::bytes(most),
        human::bytes(seen)
    );
    if cycle::is_whole(derived) {
        let was_timed = |drain: &Device<'_>| drain.intervals().iter().any(|interval| interval.utilisation.is_some());
        if !drains.iter().any(was_timed) {
            return derived.not_checked(Source::Diskstats, "io_time");
        }
        if let Some(gap) = begun_before(derived, drains) {
            return Verdict::NotChecked(vec![gap]);
        }
        return Verdict::Clear(format!(
            "the observation covers a whole expiry cycle, and {}: {amount}",
            longest_seen(derived, drains)
        ));
    }
    let hoard = known.or_else(|| by_class(drains, most)).filter(|hoard| hoard.seconds >= NOTICED_S);
    if let Some(hoard) = hoard.filter(|_| piles_up(derived, rate)) {
        return Verdict::Found(vec![foretold(derived, &hoard, rate, expiry)]);
    }
    // The slowest plausible disk must be able to write the unseen data in no time.
    let slowest = cycle::slowest_seconds(derived, cycle::most(derived).unwrap_or(most));
    if slowest < NOTICED_S {
        let least = human::seconds(slowest);
        return Verdict::Clear(format!("too little accumulates to stall: {amount}, {least} of writing at most"));
    }
    match cycle::keeps_up(derived) {
        true => Verdict::Clear(format!("dirty data are written about as fast as they are made: {amount}")),
        false => Verdict::NotChecked(too_short(derived)),
    }
}

/// Whether dirtied data pile up: more than half of them were not cleaned, and the level rises.
fn piles_up(derived: &Derived<'_>, rate: f64) -> bool {
    let stays = derived.dirty.cleaning_rate.is_none_or(|cleaned| cleaned < PILES_UP_SHARE * rate);
    let series = &derived.dirty.series;
    let rises = match (series.first(), series.last()) {
        (Some((_, first)), Some((_, last))) => last > first,
        _ => false,
    };
    stays && rises
}

/// Whether a burst consists of scattered pages, limited by operations.
fn is_by_operations(device: &Device<'_>, burst: &Burst) -> bool {
    burst.mean_write <= device::SMALL_WRITE && !device.is_near_bandwidth(burst.rate)
}

/// Whether the data that pile up are scattered writes of one process or program: that is then the cause.
fn is_of_one(derived: &Derived<'_>, device: &Device<'_>, by_operations: bool) -> bool {
    by_operations && !writer::causers_on(derived, device).is_empty()
}

fn confirmed(derived: &Derived<'_>, device: &Device<'_>, burst: &Burst, rate: f64) -> Finding {
    let by_operations = is_by_operations(device, burst);
    let one_writer = is_of_one(derived, device, by_operations);
    // The unmount of an overlay requests the burst and is then its cause.
    let unmounted = derived.unmounts().explain(device, burst);
    let images = loops::that_asked(derived, device, burst);
    let by_image = images.first().map(|first| match images.len() {
        1 => first.name.to_string(),
        all => format!("{} and {} more", first.name, all - 1),
    });
    let have_flushed = images.iter().all(|image| image.has_flushed);
    // The task that makes the burst waits for its own data, and the flusher for room in the queue.
    let causers = writer::causers_on(derived, device);
    let bursts = burst::all(derived, device);
    let is_in_burst = |at| bursts.iter().any(|burst| burst.queued_from <= at && at <= burst.to);
    let as_usual =
        if asleep::tell_of_waiters(derived) { asleep::as_usual(derived, is_in_burst) } else { BTreeSet::new() };
    let others = waiting::others_on(derived, device, |waiter| {
        causers.contains(&waiter.pid) || (waiter.seconds.is_none() && as_usual.contains(&waiter.pid))
    });
    let others = others.map(|others| asleep::without_asker(derived, device, others));
    let is_harm = others.as_ref().is_some_and(|others| waiting::is_harm(derived, others));
    let (is_known, is_alone) = (others.is_some(), others.is_some_and(|others| others.is_empty()));
    // Tasks then wait at the limit, and for no batch: `strictlimit-throttling` names it.
    let is_held = strict::holds(derived, device) && !crowded::may_sync(derived, device);
    // A task that waits in such a burst waits for a few writes of this length.
    let is_quick = !is_harm && burst.seconds < HURTS_S && burst.await_max_s < QUICK_S;
    let severity = match (burst.stalled(), burst.trigger) {
        _ if is_alone => Severity::Info,
        _ if unmounted || is_held => Severity::Info,
        // `buffered-loop-device` names it.
        _ if by_image.is_some() => Severity::Info,
        (false, _) => Severity::Info,
        _ if is_quick => Severity::Info,
        (true, _) if burst.may_be_asked() && !is_harm => Severity::Warning,
        (true, _) if one_writer => Severity::Warning,
        // Short, or long while no program is known to have waited long and each write took little, as on a device limited by
        // requests.
        (true, _) if !is_harm && burst.seconds < HURTS_S => Severity::Warning,
        (true, _) if !is_harm && is_known && burst.await_max_s < STALL_AWAIT_S => Severity::Warning,
        (true, _) => Severity::Critical,
    };
    let what = if by_operations { "of scattered small pages" } else { "of dirty data" };
    let of_image = |image: &String| match have_flushed {
        true => format!(", triggered by a flush of {image}. Other tasks waited behind it"),
        false => format!(": it is what {image} had cached. Other tasks waited behind it"),
    };
    let flush = by_image.as_ref().map(of_image);
    let who = match (burst.stalled(), burst.trigger) {
        _ if flush.is_some() => flush.as_deref().unwrap_or_default(),
        _ if !burst.is_attended => ". Only the flusher used that disk meanwhile",
        _ if is_alone => ". No other program was seen to wait",
        _ if is_held => ". Its strict limit kept the batch this small",
        _ if is_quick => ". A write in it took little time",
        (_, Trigger::Asked) if burst.is_traced => ", triggered by a sync. Other tasks waited behind it",
        (_, Trigger::Asked) if !burst.may_be_part => {
            ", triggered by a sync, an fsync or an unmount. Other tasks waited behind it"
        }
        (true, _) => ". Tasks that used the disk waited behind it",
        (false, _) => ". Few tasks waited",
    };
    let summary = format!(
        "{} {what} was flushed to {} in one {} burst{who}.",
        human::bytes(burst.flushed() as f64),
        device.name,
        human::seconds(burst.seconds)
    );
    let mut evidence = vec![
        Evidence::bytes("Dirty before the burst", burst.dirty_before, burst.level_source),
        Evidence::bytes("Dirty after it", burst.dirty_after, burst.level_source),
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
    evidence.extend(common_evidence(derived, rate));
    // Samples that are far apart hold a part of the quiet time before and after.
    let saturated = device.write_bandwidth().filter(|speed| speed.basis == Basis::Saturated && !by_operations);
    let value = saturated.map_or(burst.rate, |speed| speed.value.max(burst.rate));
    let speed = Speed { value, basis: Basis::Saturated };
    let pile = Pile {
        device: *device,
        by_operations,
        speed,
        rate: burst.piled_rate.unwrap_or(0.0).max(rate * part_of_writes(derived, device)),
        trigger: Some(burst.trigger),
        is_traced: burst.is_traced,
        may_be_part: burst.may_be_part,
        most: bursts.iter().map(|one| one.dirty_before).max(),
        await_max_s: bursts.iter().map(|one| one.await_max_s).reduce(f64::max),
    };
    let mut finding = finish(derived, severity, summary, evidence, pile);
    if let Some(image) = by_image {
        // Smaller thresholds do not keep what lies in the image below a second of writing.
        finding.plan = Vec::new();
        let when = if have_flushed { "each flush writes all of it" } else { "all of it is written at once" };
        let text = format!("No threshold cures it: {image} caches what is written to it, and {when}.");
        (finding.trade_off, finding.brief.expect) = (format!("{text} See buffered-loop-device."), text);
        finding.brief.costs = String::new();
    }
    Finding {
        confirmed: traced(derived, device, burst),
        devices: vec![device.name.to_string()],
        waited_s: Some(bursts.iter().map(|one| one.seconds * one.pressure.unwrap_or(0.0)).sum()),
        written_at: Some(burst.rate),
        spans: bursts.iter().map(|one| (one.from, one.to)).collect(),
        ..finding
    }
}

/// Part of all bytes written in the window that a device wrote; 1 where nothing was.
fn part_of_writes(derived: &Derived<'_>, device: &Device<'_>) -> f64 {
    let written = |one: &Device<'_>| one.span.growth.written.map_or(0.0, |bytes| bytes.0 as f64);
    let total: f64 = derived.drains().iter().map(written).sum();
    if total > 0.0 { written(device) / total } else { 1.0 }
}

/// Traced part of a burst: the flusher's reason, the owners of the data, and the tasks that waited with their
/// operations. `None` when the flusher was not traced, or did nothing in that time.
fn traced(derived: &Derived<'_>, device: &Device<'_>, burst: &Burst) -> Option<String> {
    let is_its = device.bdi_names();
    let reasons = flusher::by_reason(derived.window, |at, flushed| {
        is_its(&flushed.bdi) && flushed.since < burst.to && at > burst.queued_from
    })?;
    let filesystems = elsewhere::filesystems_on(derived, device);
    let askers = synced::askers(derived.window, &filesystems, burst.queued_from, burst.to);
    let mut parts: Vec<String> = Vec::new();
    if let Some((reason, rounds)) = reasons.first() {
        // Where the flusher is not what wrote most of it, its reason is not the reason of the burst.
        let is_of_part = burst.trigger == Trigger::Part;
        let trigger = if is_of_part { Trigger::Amount } else { burst.trigger };
        let is_whole = burst.is_traced && burst::trigger_of(reason) == Some(trigger);
        let is_of_cgroup = burst.trigger == Trigger::Amount && remedy::reached_background(derived) == Some(false);
        parts.push(format!(
            "The flusher spent {} on {}, because of {}.",
            human::seconds(rounds.busy.as_secs_f64()),
            if is_whole { "it" } else { "a part of it" },
            match *reason {
                "background" if is_whole && is_of_part => "a part of the background threshold (background)".to_owned(),
                "background" if is_of_cgroup => "the background threshold of a cgroup (background)".to_owned(),
                "background" => "the background threshold (background)".to_owned(),
                "periodic" => "the age of the data (periodic)".to_owned(),
                other => other.to_owned(),
            }
        ));
    }
    let least = ASKED_SHARE * burst.rate * burst.seconds;
    if let Some(asker) = askers.first().filter(|asker| asker.bytes >= least) {
        let (bytes, operation) = (human::bytes(asker.bytes), asker.operation.name());
        parts.push(format!("{} asked for {bytes} of it itself, in {operation}.", asker.process));
    }
    if parts.is_empty() {
        return None;
    }
    let mut text = parts.join(" ");
    let piled =
        dirtying::dirtying(derived.window, |at, dirtied| at <= burst.to && filesystems.contains(&dirtied.device));
    if let Some((who, file)) = piled.and_then(|piled| piled.most_by().zip(piled.most_in())) {
        text.push_str(&format!(" Of what was dirtied until then, the largest part is by {who} and in {file}."));
    }
    let paused = throttle::total(derived.window, None);
    if let Some((waits, paused)) = synced::waits(derived.window).zip(paused) {
        text.push_str(&format!(
            " Over all {}, tasks waited {} in fsync and its like and were paused {} in dirty throttling.",
            human::seconds(derived.seconds),
            human::seconds(waits.total.as_secs_f64()),
            human::seconds(paused.total.as_secs_f64())
        ));
    }
    Some(text)
}

/// Whether a program other than the one that makes most of the data was seen to wait for a device, or to need it. Without such a program, a
/// coming burst makes no program wait, as far as the recording shows.
fn needs(derived: &Derived<'_>, device: &Device<'_>) -> bool {
    let causers = writer::causers_on(derived, device);
    let others = waiting::others_on(derived, device, |waiter| causers.contains(&waiter.pid));
    others.is_some_and(|others| !others.is_empty()) || attended::is_needed(derived, device)
}

fn foretold(derived: &Derived<'_>, hoard: &Hoard<'_>, rate: f64, expiry: f64) -> Finding {
    // Where the amount does not wake the flusher, their age does. Until then `dirty-data-at-risk` says what to fear.
    let is_by_age = derived.dirty.background_threshold.is_some_and(|background| hoard.bytes < background.0 as f64);
    let needs = needs(derived, &hoard.device);
    let (severity, least) = match hoard.speed.basis {
        Basis::AtMost => (Severity::Info, "at least "),
        _ if !needs => (Severity::Info, ""),
        _ if is_by_age && expiry >= FAR_S => (Severity::Info, ""),
        _ if hoard.seconds >= HURTS_S => (Severity::Warning, ""),
        _ => (Severity::Info, ""),
    };
    let summary = format!(
        "Unwritten data pile up: when the flusher starts, {} writes for {least}{}{}{}.",
        hoard.device.name,
        human::seconds(hoard.seconds),
        hoard.speed.by_estimate(),
        if needs { " and all other writers wait" } else { ". No other program was seen to need this disk" }
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
    evidence.extend(common_evidence(derived, rate));
    // No disk is this slow, except with small writes.
    let by_operations = hoard.by_operations.is_some() || hoard.speed.value < cycle::SLOWEST;
    let rate = rate * part_of_writes(derived, &hoard.device);
    let pile = Pile {
        device: hoard.device,
        by_operations,
        speed: hoard.speed,
        rate,
        trigger: None,
        is_traced: false,
        may_be_part: false,
        most: None,
        await_max_s: None,
    };
    Finding { devices: vec![hoard.device.name.to_string()], ..finish(derived, severity, summary, evidence, pile) }
}

/// Evidence of both kinds: the rate, the level, the thresholds, and whether the limit was reached.
fn common_evidence(derived: &Derived<'_>, rate: f64) -> Vec<Evidence> {
    let mut evidence = vec![Evidence::rate("Dirtied", rate, "/proc/vmstat nr_dirtied")];
    let background = derived.dirty.background_threshold;
    evidence.extend(derived.dirty.peak.zip(background).map(|(peak, background)| {
        Evidence::bytes("Most dirty, against background", peak.0, "/proc/vmstat nr_dirty").against(background.0 as f64)
    }));
    evidence.extend(derived.dirty.peak.zip(derived.dirty.freerun_ceiling).map(|(peak, ceiling)| {
        Evidence::bytes("Most dirty, against throttling", peak.0, "freerun ceiling (thresh + bg_thresh) / 2")
            .against(ceiling.0 as f64)
    }));
    evidence.extend(throttle::evidence(derived.window, "", |_| true));
    evidence.extend(synced::waits(derived.window).iter().flat_map(synced::Waits::evidence));
    evidence
}
