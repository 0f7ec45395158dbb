// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `dirty-cliff`: what piles up until the flusher starts takes the device more than a second or two.
//! Confirmed by a burst within the window, or foretold from rates while dirty data pile up. Not about
//! one process (`dominant-writer`) and not about budgets of cgroups.
#![doc = include_str!("dirty_cliff.md")]

mod hoard;
#[cfg(test)]
mod tests;
mod unseen;

use self::hoard::{Hoard, by_class, hoard};
use self::unseen::{longest_seen, too_short};
use crate::advise::threshold;
use crate::diagnose::burst::{self, Burst, NOTICED_S, STALL_AWAIT_S, STALL_PRESSURE, Trigger};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{self, Basis, Device, Speed};
use crate::diagnose::{Rule, Verdict, cycle, dirtying, flusher, synced, throttle, waiting, writer};
use crate::report::{Brief, Evidence, Finding, Severity, Step};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::units::Bytes;

/// See the manual page.
pub const RULE: Rule = Rule {
    name: "dirty-cliff",
    summary: "More dirty data piles up than the device writes in a second; then all writers wait",
    manual: include_str!("dirty_cliff.md"),
    explains: &["dominant-writer", "fsync-behind-writeback", "dirty-data-at-risk"],
    check,
};

/// A stall that breaks time limits, seconds.
const HURTS_S: f64 = 2.0;
/// An age that nothing shorter improves much, seconds.
const SHORT_AGE_S: f64 = 3.5;
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
    // Who syncs what was just written, or keeps nobody waiting, gets what was asked for.
    let is_harmless = |burst: &Burst| burst.is_fresh() || (burst.trigger == Trigger::Asked && !burst.stalled());
    let burst = |device: &Device<'_>| burst::longest(derived, device).filter(|burst| !is_harmless(burst));
    if let Some((device, burst)) = drains.iter().find_map(|device| Some((*device, burst(device)?))) {
        return Verdict::Found(vec![confirmed(derived, &device, &burst, rate)]);
    }
    let most = (background.0 as f64).min(cycle::to_come(derived, rate, expiry));
    let known = hoard(drains, most);
    let amount = format!("at this rate up to {} are dirty when the flusher starts", human::bytes(most));
    if cycle::is_whole(derived) {
        let was_timed = |drain: &Device<'_>| drain.intervals().iter().any(|interval| interval.utilisation.is_some());
        if !drains.iter().any(was_timed) {
            return derived.not_checked(Source::Diskstats, "io_time");
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
    // What was not seen, the slowest disk that is plausible must be able to write in no time.
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

/// Whether what is dirtied stays: more than half of it was not cleaned, and the level shows it.
fn piles_up(derived: &Derived<'_>, rate: f64) -> bool {
    let stays = derived.dirty.cleaning_rate.is_none_or(|cleaned| cleaned < PILES_UP_SHARE * rate);
    let series = &derived.dirty.series;
    let rises = match (series.first(), series.last()) {
        (Some((_, first)), Some((_, last))) => last > first,
        _ => false,
    };
    stays && rises
}

/// A burst of pages here and there, limited by operations.
fn is_by_operations(burst: &Burst) -> bool {
    burst.mean_write <= device::SMALL_WRITE
}

/// Whether operations of one process are what piles up: that process is the cause then.
fn is_of_one(derived: &Derived<'_>, by_operations: bool) -> bool {
    by_operations && writer::dominant(derived.writers()).is_some()
}

fn confirmed(derived: &Derived<'_>, device: &Device<'_>, burst: &Burst, rate: f64) -> Finding {
    let by_operations = is_by_operations(burst);
    let one_writer = is_of_one(derived, by_operations);
    // Who unmounts an overlay asks for the burst: then that is the cause.
    let unmounted = derived.unmounts().explain(device, burst);
    // Who makes the burst waits for his own data, and the flusher for room in the queue.
    let causer = writer::dominant(derived.writers()).map(|(writer, _)| writer.pid);
    let others = waiting::others(derived, |waiter| causer == Some(waiter.pid));
    let is_harm = others.as_ref().is_some_and(|others| waiting::is_harm(derived, others));
    let is_alone = others.is_some_and(|others| others.is_empty());
    let severity = match (burst.stalled(), burst.trigger) {
        _ if is_alone => Severity::Info,
        _ if unmounted => Severity::Info,
        (false, _) => Severity::Info,
        (true, Trigger::Asked) if !is_harm => Severity::Warning,
        (true, _) if one_writer || (burst.seconds < HURTS_S && !is_harm) => Severity::Warning,
        (true, _) => Severity::Critical,
    };
    let what = if by_operations { "of scattered small pages" } else { "of dirty data" };
    let who = match (burst.stalled(), burst.trigger) {
        (_, Trigger::Asked) if burst.is_traced => ", triggered by a sync. Other writers waited behind it",
        (_, Trigger::Asked) => ", triggered by a sync, an fsync or an unmount. Other writers waited behind it",
        (true, _) => ". All writers waited behind it",
        (false, _) => ". Few tasks waited",
    };
    let summary = format!(
        "{} {what} was flushed to {} in one {} burst{who}.",
        human::bytes(burst.dirty_before as f64),
        device.name,
        human::seconds(burst.seconds)
    );
    let mut evidence = vec![
        Evidence::bytes("Dirty before the burst", burst.dirty_before, "/proc/vmstat nr_dirty + nr_writeback"),
        Evidence::bytes("Dirty after it", burst.dirty_after, "/proc/vmstat nr_dirty + nr_writeback"),
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
    let speed = Speed { value: burst.rate, basis: Basis::Saturated };
    let pile = Pile { by_operations, speed, rate, trigger: Some(burst.trigger), is_traced: burst.is_traced };
    Finding {
        confirmed: traced(derived, device, burst),
        devices: vec![device.name.to_string()],
        ..finish(derived, severity, summary, evidence, pile)
    }
}

/// What a trace saw of a burst: why the flusher wrote, whose data it was, and who waited in what. `None` when the
/// flusher was not traced, or did nothing then.
fn traced(derived: &Derived<'_>, device: &Device<'_>, burst: &Burst) -> Option<String> {
    let bdi = device.dev.to_string();
    let reasons = flusher::by_reason(derived.window, |at, flushed| {
        flushed.bdi.as_bytes() == bdi.as_bytes() && flushed.since < burst.to && at > burst.queued_from
    })?;
    let (reason, rounds) = reasons.first()?;
    let mut text = format!(
        "The flusher spent {} on it, because of {}.",
        human::seconds(rounds.busy.as_secs_f64()),
        match *reason {
            "background" => "the background threshold (background)".to_owned(),
            "periodic" => "the age of the data (periodic)".to_owned(),
            other => other.to_owned(),
        }
    );
    let filesystems: Vec<_> = device.mounts().iter().map(|mount| mount.dev).collect();
    let piled =
        dirtying::dirtying(derived.window, |at, dirtied| at <= burst.to && filesystems.contains(&dirtied.device));
    if let Some((who, file)) = piled.and_then(|piled| piled.most_by().zip(piled.most_in())) {
        text.push_str(&format!(" Of what was dirtied until then, most is by {who} and in {file}."));
    }
    let paused = throttle::total(derived.window, None);
    if let Some((waits, paused)) = synced::waits(derived.window).zip(paused) {
        text.push_str(&format!(
            " Tasks waited {} in fsync and its like and were paused {} in dirty throttling.",
            human::seconds(waits.total.as_secs_f64()),
            human::seconds(paused.total.as_secs_f64())
        ));
    }
    Some(text)
}

fn foretold(derived: &Derived<'_>, hoard: &Hoard<'_>, rate: f64, expiry: f64) -> Finding {
    let (severity, least) = match hoard.speed.basis {
        Basis::AtMost => (Severity::Info, "at least "),
        _ if hoard.seconds >= HURTS_S => (Severity::Warning, ""),
        _ => (Severity::Info, ""),
    };
    let summary = format!(
        "Unwritten data pile up: when the flusher starts, {} writes for {least}{} and all other writers wait.",
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
    evidence.extend(common_evidence(derived, rate));
    // So few bytes per second no disk writes but in small pieces.
    let by_operations = hoard.by_operations.is_some() || hoard.speed.value < cycle::SLOWEST;
    let pile = Pile { by_operations, speed: hoard.speed, rate, trigger: None, is_traced: false };
    Finding { devices: vec![hoard.device.name.to_string()], ..finish(derived, severity, summary, evidence, pile) }
}

/// What both kinds rest on: the rate, the level, the thresholds, and whether the limit was touched.
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
    evidence.extend(throttle::evidence(derived.window, |_| true));
    evidence.extend(synced::waits(derived.window).iter().flat_map(synced::Waits::evidence));
    evidence
}

/// What piled up, as far as cause and cure depend on it.
struct Pile {
    /// Whether operations and not bytes are the device's limit.
    by_operations: bool,
    speed: Speed,
    /// Bytes dirtied per second.
    rate: f64,
    /// What the burst was for, where there was one.
    trigger: Option<Trigger>,
    /// Whether a trace shows that.
    is_traced: bool,
}

fn finish(derived: &Derived<'_>, severity: Severity, summary: String, evidence: Vec<Evidence>, pile: Pile) -> Finding {
    let Pile { by_operations, speed, rate, trigger, is_traced } = pile;
    let reached = derived.dirty.peak.zip(derived.dirty.background_threshold);
    let was_reached = |(peak, background): (Bytes, Bytes)| peak.0 as f64 >= 0.95 * background.0 as f64;
    let (cause, plain) = match trigger {
        Some(Trigger::Asked) => (
            "Neither the amount nor the age of the dirty data was enough to wake the flusher: a sync, an fsync of a \
             large file or an unmount asked for it",
            "A sync, an fsync of a large file or an unmount asked for the data",
        ),
        _ if trigger == Some(Trigger::Amount) || reached.is_some_and(was_reached) => (
            "Dirty data reached the background threshold, which is more than this device writes in a second",
            "The kernel starts writing late: at an amount that this disk needs more than a second for",
        ),
        Some(Trigger::Unknown) => (
            "Dirty data stayed below the background threshold and were there before the first sample. Their age, a \
             sync, an fsync of a large file or an unmount may have woken the flusher",
            "The kernel writes nothing until the data are old enough or a sync asks for them, and then all of it",
        ),
        _ => (
            "Dirty data stay below the background threshold. Their age wakes the flusher, which then writes all that \
             has expired",
            "The kernel writes nothing until the data are old enough, and then all of it",
        ),
    };
    // By level and age alone another cause is possible.
    let likely = match trigger {
        Some(_) if !is_traced && derived.window.traced.contains("flusher") => {
            " Amount and age make this likely. The flusher itself wrote too little of it to be the reason."
        }
        Some(_) if !is_traced => {
            " Amount and age make this likely. Only a trace shows what woke the flusher: floodline doctor --trace on."
        }
        _ => "",
    };
    // Counted where it was traced, otherwise what the level allows.
    let paused = throttle::total(derived.window, None).map(|pauses| pauses.count > 0);
    let throttled = match paused.or(derived.dirty.can_have_throttled) {
        Some(false) => " vm.dirty_ratio is not to blame: no writer was throttled by it.",
        Some(true) if paused.is_some() => " Some writers were paused in dirty throttling too.",
        Some(true) => " Writers were over the freerun ceiling too and were throttled.",
        None => "",
    };
    let too_fast = !by_operations && rate > speed.value;
    let faster = if too_fast {
        " Programs dirty more than the device writes. Then no setting helps fsync: the disk is full either way."
    } else {
        ""
    };
    let one_writer = is_of_one(derived, by_operations);
    let (plan, trade_off) = match one_writer {
        true => (Vec::new(), "No setting of vm cures it: see dominant-writer, which names what helps.".to_owned()),
        false => remedy(derived, by_operations, speed),
    };
    let brief = Brief {
        because: format!("{plain}. They go to the disk in one piece, and every other write waits behind it."),
        who: String::new(),
        expect: match too_fast {
            _ if one_writer => {
                "No setting makes a program write less. Let it write less or in larger pieces, move its \
                                files to another disk, or set MemoryHigh= for its unit."
                    .to_owned()
            }
            true => "More is written than the disk can take: the waits get shorter but do not end.".to_owned(),
            false => {
                "The disk writes small pieces early instead of one large piece late. The waits get short.".to_owned()
            }
        },
        costs: match one_writer {
            true => String::new(),
            false => "Pages that are rewritten often are written more often.".to_owned(),
        },
    };
    Finding {
        rule: RULE.name,
        severity,
        summary,
        evidence,
        cause: format!("{cause}.{likely}{throttled}{faster}"),
        brief,
        plan,
        trade_off,
        ..Finding::default()
    }
}

/// Bytes where no cgroup is starved by them, otherwise a shorter age at unchanged thresholds. Operations
/// are not bytes: a threshold cannot hold "thirty writes", a short age can.
fn remedy(derived: &Derived<'_>, by_operations: bool, speed: Speed) -> (Vec<Step>, String) {
    let needs = threshold::Needs::of(derived, Some(speed));
    let advice = threshold::choose(&needs)
        .filter(|advice| !by_operations && matches!(advice.pair, threshold::Pair::Bytes { .. }));
    let lower = advice.as_ref().and_then(|advice| threshold::lowering(derived, advice));
    if let Some((advice, pair)) = advice.as_ref().zip(lower) {
        return (
            derived.sysctls(&pair.changes()),
            format!(
                "{} {} Instead, at unchanged thresholds: vm.dirty_expire_centisecs=300 and \
                 vm.dirty_writeback_centisecs=100.",
                advice.why, advice.trade_off
            ),
        );
    }
    let shorter_age = shorter_age(derived);
    let costs = " Pages that are rewritten often are written up to ten times as often.";
    let why = match (&advice, by_operations, shorter_age.is_empty()) {
        (_, _, true) => {
            "The thresholds and the age in force are already as low as is useful: no setting of vm cures this. Write \
             less, spread the writes, or use a faster disk."
        }
        (Some(_), ..) => "A shorter age, because the thresholds in force do not cause this.",
        (None, true, _) => {
            "A shorter age, because the device is limited by operations, which no byte threshold counts."
        }
        (None, false, _) => {
            "A shorter age, because byte thresholds do not fit here: they would starve cgroups with memory limits, or \
             the speed of the device is not known."
        }
    };
    let costs = if shorter_age.is_empty() { "" } else { costs };
    (shorter_age, format!("{why}{costs}"))
}

/// An age of three seconds, looked at each second: nothing where the one in force is as short.
fn shorter_age(derived: &Derived<'_>) -> Vec<Step> {
    let is_short = derived.dirty.expiry_seconds.is_some_and(|expiry| expiry <= SHORT_AGE_S);
    if is_short {
        return Vec::new();
    }
    derived.sysctls(&[("vm.dirty_expire_centisecs", 300), ("vm.dirty_writeback_centisecs", 100)])
}
