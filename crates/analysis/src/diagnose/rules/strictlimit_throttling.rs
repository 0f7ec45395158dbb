// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `strictlimit-throttling`: writers are paused by the strict limit of one device. Confirmed by a tracer. Does not
//! cover the limits of the machine or of cgroups.
#![doc = include_str!("strictlimit_throttling.md")]

use crate::advise::step;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Device;
use crate::diagnose::dirty;
use crate::diagnose::strict::{self, Level, Strict};
use crate::diagnose::throttle::Pauses;
use crate::diagnose::waiting::{self, SHARED_BY, Waiter};
use crate::diagnose::{Rule, Verdict, limits, missing, throttle, writer};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::name::Name;
use floodline_record::sample::BdiRow;
use floodline_record::traced::throttle::{Domain, ThrottleState, Throttled};
use floodline_record::units::Nanos;
use floodline_record::window::Span;

/// What the change costs.
const TRADE_OFF: &str = "Without strict_limit the device may fill the machine's whole dirty threshold, and a slow \
 device then makes all writers wait. For a slow device, raise max_bytes to what it writes in a second instead. A FUSE \
 mount sets strict_limit again when it is mounted again.";
/// Wording of the confirmation: the finding rests on traced pauses only.
const CONFIRMED: &str = "Every pause was counted where it happened, with the limit that caused it.";

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "strictlimit-throttling",
    summary: "Writers are paused by the strict limit of one device",
    manual: include_str!("strictlimit_throttling.md"),
    explains: &[],
    check,
};

/// Share of the window that one task was paused from which the pauses are felt.
const FELT: f64 = 0.1;
/// Share of the window that several tasks were paused together from which the pauses are felt. No task of them waits for
/// another's work, so each pause is added to what its own work takes.
const FELT_TOGETHER: f64 = 0.05;
/// Share of the window from which a task is mostly paused.
const HURTS: f64 = 0.5;

/// Part of the window in which a disk is busy from which its writers wait for the disk with any limit.
const FULL: f64 = 0.95;
/// Part of the load on such a disk that reads may have.
const FEW_READS: f64 = 0.1;
/// What helps where the disk is full.
const IS_FULL: &str = "No setting helps: the disk is busy nearly all the time. Without strict_limit, the writers fill the machine's dirty limit and wait there. Let them write less, or use a faster disk.";

fn check(derived: &Derived<'_>) -> Verdict {
    let is_strict = |event: &Throttled| event.domain == Domain::Strictlimit && event.pauses > 0;
    let task =
        |event: &Throttled| (event.bdi.clone(), event.who.comm.clone(), event.tid, event.who.cgroup_ino, event.who.pid);
    let Some(paused) = throttle::by(derived.window, |event| is_strict(event).then(|| task(event))) else {
        return match untraced(derived).or_else(|| by_elimination(derived)) {
            Some(finding) => Verdict::Found(vec![unless_full(derived, finding)]),
            None => derived.not_checked(Source::TraceThrottle, "balance_dirty_pages"),
        };
    };
    let Some(((bdi, comm, ..), pauses)) = paused.first() else {
        return Verdict::Clear("no task was paused by a device's strict limit".to_owned());
    };
    let (seconds, window_s) = (pauses.total.as_secs_f64(), derived.seconds);
    if window_s <= 0.0 {
        return Verdict::NotChecked(vec![missing::needs_time(Source::TraceThrottle, "balance_dirty_pages")]);
    }
    let of_bdi = paused.iter().filter(|((of, ..), _)| of == bdi);
    let of_bdi = of_bdi.map(|((.., pid), pauses)| (*pid, pauses.total.as_secs_f64()));
    let together_s = together_s(derived, bdi, of_bdi).filter(|_| seconds < FELT * window_s);
    if seconds < FELT * window_s && together_s.is_none() {
        return Verdict::Clear(format!(
            "the task that a strict limit paused most, {comm}, was paused for {} of {}",
            human::seconds(seconds),
            human::seconds(window_s)
        ));
    }
    let is_felt = |pauses: &Pauses| pauses.total.as_secs_f64() >= FELT * window_s;
    let is_shared = paused.iter().filter(|((of, ..), pauses)| of == bdi && is_felt(pauses)).count() >= SHARED_BY;
    let severity = if is_shared || seconds >= HURTS * window_s { Severity::Critical } else { Severity::Warning };
    let all = throttle::total(derived.window, Some(bdi)).unwrap_or_default();
    let knobs = knobs(derived, bdi);
    let device = name_of(derived, bdi);
    let all_s =
        Evidence::seconds(format!("Paused, all writers of {device}"), all.total.as_secs_f64(), throttle::SOURCE);
    let (least_s, all_s) = match together_s {
        Some(_) => (waiting::felt_s(window_s), all_s.against(FELT_TOGETHER * window_s)),
        None => (FELT * window_s, all_s),
    };
    let mut evidence = vec![
        Evidence::seconds(format!("Paused, {comm}"), seconds, throttle::SOURCE).against(least_s),
        all_s,
        Evidence::seconds("Longest pause", all.longest.as_secs_f64(), throttle::SOURCE),
    ];
    evidence.extend(longest(derived, bdi).map(|state| {
        let share = state.wb_setpoint_pages.bytes(derived.page_size);
        Evidence::bytes(
            "Dirty of the device, against its setpoint",
            state.wb_dirty_pages.bytes(derived.page_size).0,
            "wb_dirty, wb_setpoint of the longest pause",
        )
        .against(share.0 as f64)
    }));
    evidence.extend(
        knobs
            .and_then(|span| span.last.max_bytes)
            .map(|bytes| Evidence::bytes("Its largest share", bytes.0, format!("/sys/class/bdi/{bdi}/max_bytes"))),
    );
    evidence.extend(derived.dirty.peak.zip(derived.dirty.freerun_ceiling).map(|(peak, ceiling)| {
        Evidence::bytes("Most dirty on the machine, against throttling", peak.0, "freerun ceiling")
            .against(ceiling.0 as f64)
    }));
    let finding = Finding {
        rule: RULE.name,
        confirmed: Some(CONFIRMED.to_owned()),
        severity,
        summary: match together_s {
            Some(together) => format!(
                "Several tasks were paused by the strict limit of {device}, together for {} of {}. {comm} was paused longest, {}.",
                human::seconds(together),
                human::seconds(window_s),
                human::seconds(seconds)
            ),
            None => format!(
                "{comm} was paused for {} of {} by the strict limit of {device}.",
                human::seconds(seconds),
                human::seconds(window_s)
            ),
        },
        evidence,
        brief: Brief {
            because: format!(
                "strict_limit of {device} makes its writers wait at the device's own share, although the machine as a whole \
                 has room."
            ),
            who: comm.to_string(),
            expect: "Its writers wait only at the limit of the machine.".to_owned(),
            costs: "If the device is slow, it may fill the limit of the machine and make all writers wait.".to_owned(),
        },
        cause: "strict_limit holds the writers of a device to its own share of the dirty threshold even when the \
                machine has next to nothing dirty."
            .to_owned(),
        plan: step::no_strict_limit(&bdi.to_string()).into_iter().collect(),
        devices: vec![device],
        trade_off: TRADE_OFF.to_owned(),
        waited_s: Some(together_s.unwrap_or(seconds)),
        ..Finding::default()
    };
    Verdict::Found(vec![unless_full(derived, finding)])
}

/// Part of the window in which a device is busy, where that is nearly all of it and writes fill it: its writers wait for the disk. On
/// a disk that reads fill, a larger limit still lets the writers go on.
fn full_of_writes(derived: &Derived<'_>, name: &str) -> Option<f64> {
    let (disk, load) = derived.loads().iter().find(|(disk, _)| disk.name.to_string() == name)?;
    let busy = disk.utilisation().filter(|busy| *busy >= FULL)?;
    (load.reads_share() <= FEW_READS).then_some(busy)
}

/// The finding, as a note without a plan where its disk is busy nearly all the time: the writers are as fast as the disk.
fn unless_full(derived: &Derived<'_>, finding: Finding) -> Finding {
    let Some(busy) = finding.devices.iter().find_map(|name| full_of_writes(derived, name)) else { return finding };
    let name = finding.devices.join(", ");
    let summary = &finding.summary;
    let mut finding = Finding {
        severity: Severity::Info,
        summary: format!(
            "{summary} The disk was {} busy: its writers wait for the disk whatever the limit is.",
            human::percent(busy)
        ),
        cause: format!("{} The disk is full of their writes, so they wait for it in any case.", finding.cause),
        plan: Vec::new(),
        trade_off: IS_FULL.to_owned(),
        ..finding
    };
    finding.brief.because =
        format!("{name} is full of writes. Its strict limit makes the writers wait earlier, but not longer.");
    (finding.brief.expect, finding.brief.costs) = (IS_FULL.to_owned(), String::new());
    finding.evidence.push(Evidence::share(format!("{name} busy"), busy, "/proc/diskstats io_time").against(FULL));
    finding
}

/// Seconds in which tasks waited at the strict limit of a device, if several of them did and these seconds are felt: none of them may
/// wait long by itself. Tasks that wait at the same time count once where the pressure shows it. `waits`: the process of each task, and
/// its seconds.
fn together_s(derived: &Derived<'_>, bdi: &Name, waits: impl Iterator<Item = (u32, f64)>) -> Option<f64> {
    let felt_s = waiting::felt_s(derived.seconds);
    // A program that runs again and again feels a wait that takes half of its run.
    let is_felt = |pid, seconds| {
        seconds >= felt_s || lived_s(derived, pid).is_some_and(|lived| seconds > 0.0 && seconds >= HURTS * lived)
    };
    let waits: Vec<f64> = waits.filter(|(pid, seconds)| is_felt(*pid, *seconds)).map(|(_, seconds)| seconds).collect();
    let pressed = derived.strict().iter().find(|strict| strict.bdi == *bdi).map(|strict| strict.pressed_beside_s);
    let together = waits.iter().sum::<f64>().min(pressed.unwrap_or(f64::INFINITY));
    (waits.len() >= 2 && together >= FELT_TOGETHER * derived.seconds).then_some(together)
}

/// Seconds that a process lived, if it started and ended within the window.
fn lived_s(derived: &Derived<'_>, pid: u32) -> Option<f64> {
    let writer = derived.writers().processes.iter().find(|writer| writer.pid == pid)?;
    writer::lived(derived.window, writer).map(Nanos::as_secs_f64)
}

/// Finding from files only: a device with a strict limit, unwritten data of it that reach the limit, and writers that wait
/// meanwhile. Where the machine has no room either, the device's own limit must be known to be used up.
fn untraced(derived: &Derived<'_>) -> Option<Finding> {
    if derived.dirty.dirtying_rate? <= 0.0 {
        return None;
    }
    let (felt_s, peak) = (FELT * derived.seconds, derived.dirty.unwritten_peak?.0);
    let binds =
        |level: &&Level| level.is_at_limit() && level.has_room() || level.own.is_some() && level.is_past_setpoint();
    let of = |strict: &Strict| {
        let may_hold_all = strict::may_hold_all(derived, strict);
        let known = || strict.levels.iter().filter(|level| level.own.is_some() || may_hold_all);
        known().find(binds)?;
        // The most that it held is seldom seen in the sample in which the limit was reached.
        let levels = known().filter(|level| binds(level) || level.has_room());
        let most = *levels.max_by(|a, b| a.part().total_cmp(&b.part()))?;
        let paused = strict::paused(derived, strict);
        let waiter = paused.first()?.clone();
        let felt = paused.iter().filter(|one| one.seconds.is_some_and(|waited| waited >= felt_s)).count();
        let together = together_s(derived, &strict.bdi, paused.iter().filter_map(|one| Some((one.pid, one.seconds?))));
        (felt > 0 || together.is_some()).then_some((most, waiter, felt, together.filter(|_| felt == 0)))
    };
    let (strict, (most, waiter, felt, together)) =
        derived.strict().iter().find_map(|strict| Some((strict, of(strict)?)))?;
    let waited = waiter.seconds?;
    let device = name_of(derived, &strict.bdi);
    // The pressure is that of all tasks: it does not show that each of several waited as long.
    let is_shared = felt >= SHARED_BY && waiter.source != strict::PRESSURE;
    let severity = if is_shared || waited >= HURTS * derived.seconds { Severity::Critical } else { Severity::Warning };
    let has_room = strict.levels.iter().filter(|level| level.is_at_limit()).all(Level::has_room);
    // Writers of a full disk wait even where the machine has room, so the room is not told as the reason.
    let room = if has_room && full_of_writes(derived, &device).is_none() { " and the machine had room" } else { "" };
    let (while_room, cause, expect) = match has_room {
        true => (" while the machine has room", "", ""),
        false => (
            "",
            " The machine was over its freerun ceiling at times, and its limit pauses the same writers then.",
            " The limit of the machine still holds them while it is reached.",
        ),
    };
    Some(Finding {
        rule: RULE.name,
        severity,
        summary: match together {
            Some(together) => format!(
                "Several tasks waited while {device} was at its strict limit of {}{room}, together {} of {}. {} waited longest, {}.",
                human::bytes(most.limit),
                human::seconds(together),
                human::seconds(derived.seconds),
                waiter.label(),
                human::seconds(waited)
            ),
            None => format!(
                "{} waited {} of {} while {device} was at its strict limit of {}{room}.",
                waiter.label(),
                human::seconds(waited),
                human::seconds(derived.seconds),
                human::bytes(most.limit)
            ),
        },
        evidence: vec![
            Evidence::seconds(format!("Waited, {}", waiter.label()), waited, waiter.source)
                .against(if together.is_some() { waiting::felt_s(derived.seconds) } else { felt_s }),
            Evidence::bytes(
                "Most dirty and under writeback of the device",
                most.held(),
                "debugfs bdi stats, or /proc/vmstat",
            )
            .against(most.limit.round()),
            Evidence::bytes("Most dirty on the machine, against throttling", peak, "freerun ceiling")
                .against(most.freerun as f64),
        ],
        cause: format!(
            "strict_limit holds the writers of a device to its own share of the dirty threshold even when the machine \
             has next to nothing dirty. Without a trace of balance_dirty_pages the share of this limit in the waiting is \
             not known.{cause}"
        ),
        brief: Brief {
            because: format!("{device} has a strict limit, and its writers wait at it{while_room}."),
            who: waiter.label(),
            expect: format!("Writers are no longer held at the limit of the device.{expect}"),
            costs: "A slow device may fill the machine's whole dirty threshold.".to_owned(),
        },
        devices: vec![device],
        plan: step::no_strict_limit(&strict.bdi.to_string()).into_iter().collect(),
        trade_off: TRADE_OFF.to_owned(),
        waited_s: Some(together.unwrap_or(waited)),
        ..Finding::default()
    })
}

/// Finding where no sample shows a device at its strict limit: tasks that write wait for longer than any disk is busy, and no other
/// limit can hold them. Each cgroup has only a part of the device's limit, and samples miss a short burst.
fn by_elimination(derived: &Derived<'_>) -> Option<Finding> {
    waiting::beside_idle_disks(derived)?;
    // A sync also waits for the flush of a disk's cache.
    let flushing: f64 = derived.disks().iter().map(Device::flushing).sum();
    if derived.dirty.io_pressure_some? < 2.0 * flushing + FELT {
        return None;
    }
    let pressure = derived.dirty.io_pressure_some?;
    // A device above the disks may have no room where they have, and another machine may hold the files.
    let is_full = |one: &Device<'_>| one.utilisation().is_some_and(|busy| busy >= pressure / 2.0);
    let mut mounts = derived.window.facts.iter().flat_map(|facts| &facts.mounts);
    if derived.devices().iter().any(is_full) || mounts.any(dirty::is_beyond_disks) {
        return None;
    }
    if derived.is_near_a_budget() || !limits::of_writes(derived).is_empty() {
        return None;
    }
    let writers = &derived.writers().processes;
    let dirtied = |waiter: &Waiter| {
        let its = writers.iter().filter(|writer| writer.pid == waiter.pid);
        its.filter_map(|writer| writer.dirtied_bytes.filter(|bytes| *bytes > writer.read_bytes.unwrap_or(0))).max()
    };
    let (waiter, bytes) = derived.waiters()?.iter().find_map(|waiter| Some((waiter, dirtied(waiter)?)))?;
    // It may have written to another device.
    let has_room = |strict: &&Strict| {
        let written =
            strict::device_of(derived, strict).and_then(|one| one.span.growth.written).map_or(0, |written| written.0);
        let held = strict.levels.last().map_or(0, Level::held);
        strict.levels.iter().all(Level::has_room) && written > 0 && written.saturating_add(held) >= bytes / 2
    };
    let strict = derived.strict().iter().find(has_room)?;
    let waited = waiter.seconds.filter(|seconds| *seconds >= FELT * derived.seconds)?;
    let device = name_of(derived, &strict.bdi);
    let level = strict.levels.iter().max_by_key(|level| level.machine)?;
    Some(Finding {
        rule: RULE.name,
        severity: Severity::Warning,
        summary: format!(
            "{} waited {} of {}, longer than the disks were busy, and no other limit than the strict one of {device} is known that may have paused it.",
            waiter.label(),
            human::seconds(waited),
            human::seconds(derived.seconds)
        ),
        evidence: vec![
            Evidence::seconds(format!("Waited, {}", waiter.label()), waited, waiter.source)
                .against(FELT * derived.seconds),
            Evidence::bytes("Most dirty on the machine, against throttling", derived.dirty.unwritten_peak?.0, "freerun ceiling")
                .against(level.freerun as f64),
        ],
        cause: "strict_limit holds the writers of a device to its own share of the dirty threshold even when the machine has \
                next to nothing dirty. Each cgroup has a part of that share. No sample shows the share used up: the machine and \
                its cgroups had room, and no cgroup has a limit of writes."
            .to_owned(),
        brief: Brief {
            because: format!("{device} has a strict limit, and no other limit can hold its writers."),
            who: waiter.label(),
            expect: "Writers are no longer held at the limit of the device.".to_owned(),
            costs: "A slow device may fill the machine's whole dirty threshold.".to_owned(),
        },
        devices: vec![device],
        plan: step::no_strict_limit(&strict.bdi.to_string()).into_iter().collect(),
        trade_off: TRADE_OFF.to_owned(),
        waited_s: Some(waited),
        ..Finding::default()
    })
}

/// Name of the disk that a bdi stands for, or of the bdi if the recording does not have the disk: a filesystem such as FUSE has none, and
/// its limit concerns no disk.
fn name_of(derived: &Derived<'_>, bdi: &Name) -> String {
    let bdi = bdi.to_string();
    let disk = derived.devices().iter().find(|one| one.dev.to_string() == bdi);
    disk.map_or(bdi, |disk| disk.name.to_string())
}

/// The record of the longest pause on a device.
fn longest(derived: &Derived<'_>, bdi: &Name) -> Option<ThrottleState> {
    let of_it =
        throttle::events(derived.window)?.filter(|event| event.bdi == *bdi && event.domain == Domain::Strictlimit);
    of_it.max_by_key(|event| event.pause_ns_max)?.longest
}

fn knobs<'a>(derived: &Derived<'a>, bdi: &Name) -> Option<&'a Span<BdiRow>> {
    derived.window.bdis.get(&derived.window.lookup().bdi(bdi)?)
}

#[cfg(test)]
mod tests;
