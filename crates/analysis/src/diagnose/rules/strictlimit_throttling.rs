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
use crate::diagnose::{Rule, Verdict, limits, missing, throttle};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::name::Name;
use floodline_record::sample::BdiRow;
use floodline_record::traced::throttle::{Domain, ThrottleState, Throttled};
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

fn check(derived: &Derived<'_>) -> Verdict {
    let is_strict = |event: &Throttled| event.domain == Domain::Strictlimit && event.pauses > 0;
    let task = |event: &Throttled| (event.bdi.clone(), event.who.comm.clone(), event.tid, event.who.cgroup_ino);
    let Some(paused) = throttle::by(derived.window, |event| is_strict(event).then(|| task(event))) else {
        return match untraced(derived).or_else(|| by_elimination(derived)) {
            Some(finding) => Verdict::Found(vec![finding]),
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
    let of_bdi = paused.iter().filter(|((of, ..), _)| of == bdi).map(|(_, pauses)| pauses.total.as_secs_f64());
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
    Verdict::Found(vec![Finding {
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
    }])
}

/// Seconds in which tasks waited at the strict limit of a device, if several of them did and these seconds are felt: none of them may
/// wait long by itself. Tasks that wait at the same time count once where the pressure shows it.
fn together_s(derived: &Derived<'_>, bdi: &Name, waits: impl Iterator<Item = f64>) -> Option<f64> {
    let felt_s = waiting::felt_s(derived.seconds);
    let waits: Vec<f64> = waits.filter(|seconds| *seconds >= felt_s).collect();
    let pressed = derived.strict().iter().find(|strict| strict.bdi == *bdi).map(|strict| strict.pressed_beside_s);
    let together = waits.iter().sum::<f64>().min(pressed.unwrap_or(f64::INFINITY));
    (waits.len() >= 2 && together >= FELT_TOGETHER * derived.seconds).then_some(together)
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
        let together = together_s(derived, &strict.bdi, paused.iter().filter_map(|one| one.seconds));
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
    let (room, while_room, cause, expect) = match has_room {
        true => (" and the machine had room", " while the machine has room", "", ""),
        false => (
            "",
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
        let is_its = |one: &&Device<'_>| one.dev.to_string().as_bytes() == strict.bdi.as_bytes();
        let device = derived.devices().iter().find(is_its);
        let written = device.and_then(|one| one.span.growth.written).map_or(0, |written| written.0);
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
mod tests {
    use super::*;
    use crate::diagnose::{check_rule, first_finding};
    use floodline_record::gap::Cause;
    use floodline_record::units::{Bytes, Count, Flag, Ppm};
    use floodline_testkit::Fixture;

    /// A task paused for this many milliseconds of the fixture's ten seconds.
    fn paused(domain: Domain, ms: u64) -> Fixture {
        Fixture::healthy().traced(&["throttle"], vec![throttle::tests::throttled((7, "8:16", domain, 11, ms, 200))])
    }

    #[test]
    fn a_task_that_is_paused_by_a_device_alone_is_found() {
        check_rule(
            &RULE,
            &paused(Domain::Strictlimit, 7000),
            "critical: dd was paused for 7.00 s of 10 s by the strict",
        );
        check_rule(
            &RULE,
            &paused(Domain::Strictlimit, 1100),
            "warning: dd was paused for 1.10 s of 10 s by the strict",
        );
    }

    #[test]
    fn pauses_that_three_tasks_feel_are_critical() {
        let of = |tasks: u64| {
            let each = |task| throttle::tests::throttled((7 + task, "8:16", Domain::Strictlimit, 11, 1100, 200));
            Fixture::healthy().traced(&["throttle"], (0..tasks).map(each).collect())
        };
        check_rule(&RULE, &of(2), "warning: dd was paused for 1.10 s of 10 s by the strict");
        check_rule(&RULE, &of(3), "critical: dd was paused for 1.10 s of 10 s by the strict");
    }

    #[test]
    fn short_pauses_and_those_of_other_limits_are_not() {
        let in_turn = |ms: u64| {
            let each = |task: u64| throttle::tests::throttled((7 + task, "8:16", Domain::Strictlimit, 11, ms, 200));
            Fixture::healthy().traced(&["throttle"], (0..3).map(each).collect())
        };
        check_rule(&RULE, &in_turn(300), "clear: the task that a strict limit paused most, dd, was paused for 300 ms");
        check_rule(
            &RULE,
            &in_turn(600),
            "warning: Several tasks were paused by the strict limit of 8:16, together for 1.80 s of 10 s.",
        );
        check_rule(
            &RULE,
            &paused(Domain::Strictlimit, 900),
            "clear: the task that a strict limit paused most, dd, was paused for 900 ms",
        );
        check_rule(&RULE, &paused(Domain::Global, 7000), "clear: no task was paused by a device's strict limit");
        check_rule(&RULE, &paused(Domain::Unknown, 7000), "clear: no task was paused");
    }

    #[test]
    fn without_a_tracer_pressure_at_the_limit_shows_the_pauses() {
        // 2 MiB of a device that may have 2.5 MiB, and a writer that was seen asleep meanwhile.
        let held = |amount: f64| {
            Fixture::healthy()
                .host(|t, row| {
                    row.nr_dirty_threshold = Some(floodline_testkit::mib_pages(500.0));
                    row.nr_dirty_background_threshold = Some(floodline_testkit::mib_pages(250.0));
                    row.psi_io_some = Some(floodline_testkit::secs(900.0 + 0.7 * t));
                })
                .bdi("8:0", move |_, row| {
                    row.strict_limit = Some(Flag(1));
                    row.max_ratio = Some(Ppm(5000));
                    row.reclaimable = Some(Bytes(floodline_testkit::mib(amount)));
                    row.writeback = Some(Bytes(0));
                })
                .process("cp", 900, "/", |t, row| {
                    row.state = Some(Count(u64::from(b'D')));
                    row.write_bytes = floodline_testkit::grows(t, 0, 1e6);
                })
        };
        check_rule(
            &RULE,
            &held(2.0),
            "critical: cp[900] waited 7.00 s of 10 s while sda was at its strict limit of 2.50",
        );
        check_rule(&RULE, &held(0.5), "not checked: trace of writeback/balance_dirty_pages");
    }

    /// A card with a strict limit of a hundredth that holds 3 MiB in every other second, and a camera that sleeps then. The hard
    /// threshold and the unwritten data of the machine, in MiB, are those of each second.
    fn camera(hard: fn(f64) -> f64, machine: f64) -> Fixture {
        let is_full = |t: f64| t as u64 % 2 == 1;
        Fixture::healthy()
            .host(move |t, row| {
                row.nr_dirty_threshold = Some(floodline_testkit::mib_pages(hard(t)));
                row.nr_dirty_background_threshold = Some(floodline_testkit::mib_pages(hard(t) / 2.0));
                row.nr_dirty = Some(floodline_testkit::mib_pages(machine));
                row.psi_io_some = Some(floodline_testkit::secs(900.0 + 0.8 * ((t + 1.0) / 2.0).floor()));
            })
            .bdi("8:0", move |t, row| {
                row.strict_limit = Some(Flag(1));
                row.max_ratio = Some(Ppm(10_000));
                row.reclaimable = Some(Bytes(floodline_testkit::mib(if is_full(t) { 3.0 } else { 0.1 })));
                row.writeback = Some(Bytes(0));
            })
            .process("camera", 900, "/", move |t, row| {
                row.state = Some(Count(u64::from(if is_full(t) { b'D' } else { b'S' })));
                row.write_bytes = floodline_testkit::grows(t, 0, 1e6);
            })
    }

    #[test]
    fn the_limit_is_a_part_of_the_threshold_of_each_moment() {
        // Programs give their memory back in the last second.
        let falls = |t: f64| if t < 10.0 { 400.0 } else { 4000.0 };
        let found = "warning: camera[900] waited 4.00 s of 10 s while sda was at its strict limit of 4.00 MiB and the \
                     machine had room.";
        check_rule(&RULE, &camera(falls, 4.0), found);
        check_rule(&RULE, &camera(|_| 4000.0, 4.0), "not checked: trace of writeback/balance_dirty_pages");
    }

    #[test]
    fn a_limit_that_is_used_up_binds_on_a_full_machine_too() {
        let found = "warning: camera[900] waited 4.00 s of 10 s while sda was at its strict limit of 3.50 MiB.";
        check_rule(&RULE, &camera(|_| 350.0, 340.0), found);
        check_rule(&RULE, &camera(|_| 550.0, 540.0), "not checked: trace of writeback/balance_dirty_pages");
    }

    #[test]
    fn a_task_that_sleeps_at_other_times_as_well_waits_for_another_disk() {
        let other = |comm: &str, fixture: Fixture| {
            fixture.process(comm, 901, "/", |t, row| {
                row.state = Some(Count(u64::from(b'D')));
                row.write_bytes = floodline_testkit::grows(t, 0, 1e6);
            })
        };
        let found = first_finding(&RULE, &other("account", camera(|_| 400.0, 4.0)));
        assert!(found.summary.starts_with("camera[900] waited"), "{}", found.summary);
        let alone = other("account", camera(|_| 400.0, 4.0)).process("camera", 900, "/", |_, row| {
            row.state = Some(Count(u64::from(b'S')));
        });
        check_rule(&RULE, &alone, "not checked: trace of writeback/balance_dirty_pages");
    }

    #[test]
    fn a_filesystem_without_a_disk_is_told_with_its_bdi_and_only_by_its_own_counters() {
        let traced = vec![throttle::tests::throttled((7, "0:45", Domain::Strictlimit, 11, 7000, 200))];
        assert_eq!(first_finding(&RULE, &Fixture::healthy().traced(&["throttle"], traced)).devices, ["0:45"]);
        let mounted = |own: Option<f64>| {
            two_that_wait("6.12.117").bdi("0:45", move |_, row| {
                *row = floodline_record::sample::BdiRow::default();
                (row.strict_limit, row.max_ratio) = (Some(Flag(1)), Some(Ppm(10_000)));
                row.reclaimable = own.map(|own| Bytes(floodline_testkit::mib(own)));
                row.writeback = own.map(|_| Bytes(0));
            })
        };
        check_rule(&RULE, &mounted(None), "not checked: trace of writeback/balance_dirty_pages");
        check_rule(&RULE, &mounted(Some(0.0)), "not checked: trace of writeback/balance_dirty_pages");
        let found = "warning: Several tasks waited while 0:45 was at its strict limit of 20.0 MiB";
        check_rule(&RULE, &mounted(Some(19.0)), found);
    }

    /// Two programs in a cgroup that wait for I/O, on a machine that may have 2000 MiB dirty and has 100.
    fn two_that_wait(release: &str) -> Fixture {
        let host = Fixture::healthy().kernel(release).host(|t, row| {
            row.nr_dirty_threshold = Some(floodline_testkit::mib_pages(2000.0));
            row.nr_dirty_background_threshold = Some(floodline_testkit::mib_pages(1000.0));
            row.nr_dirty = Some(floodline_testkit::mib_pages(100.0));
            row.psi_io_some = Some(floodline_testkit::secs(900.0 + 0.3 * t));
        });
        let host = host.cgroup("/app", |_, row| row.file_dirty = Some(Bytes(floodline_testkit::mib(90.0))));
        [900, 901].into_iter().fold(host, |host, pid| {
            host.process("rsync", pid, "/app", |t, row| {
                row.write_bytes = floodline_testkit::grows(t, 0, 4e6);
                row.blkio_delay = Some(floodline_testkit::secs(0.07 * t));
            })
        })
    }

    #[test]
    fn what_another_disk_holds_is_not_that_of_a_disk_that_is_hardly_written() {
        // Linux 6.8 counts only the root's part of a disk. The share of sda is 20 MiB.
        let written = |rate: f64| {
            two_that_wait("6.8.0")
                .disk("sda", move |t, row| row.written = floodline_testkit::grows(t, 0, rate))
                .disk("sdb", |t, row| row.written = floodline_testkit::grows(t, 0, 8e6))
                .bdi("8:0", |_, row| (row.strict_limit, row.max_ratio) = (Some(Flag(1)), Some(Ppm(10_000))))
        };
        check_rule(&RULE, &written(1e5), "not checked: trace of writeback/balance_dirty_pages");
        check_rule(&RULE, &written(4e6), "warning: Several tasks waited while sda was at its strict limit of 20.0 MiB");
    }

    #[test]
    fn evidence_stands_against_what_is_felt_of_pauses_that_are_shared() {
        let each = |task: u64| throttle::tests::throttled((7 + task, "8:16", Domain::Strictlimit, 11, 750, 200));
        let found = first_finding(&RULE, &Fixture::healthy().traced(&["throttle"], (0..2).map(each).collect()));
        let of = |at: usize| (&found.evidence[at].value, found.evidence[at].threshold.as_ref());
        let decimal = crate::report::Value::Decimal;
        assert_eq!(of(0), (&decimal(0.75), Some(&decimal(0.5))));
        assert_eq!(of(1), (&decimal(1.5), Some(&decimal(0.5))));
        assert_eq!(found.waited_s, Some(1.5));
    }

    #[test]
    fn without_a_tracer_it_is_not_checked() {
        let expect = "not checked: trace of writeback/balance_dirty_pages (balance_dirty_pages): not in the recording";
        check_rule(&RULE, &Fixture::healthy(), expect);
        let need = "CAP_BPF and CAP_PERFMON; run as root";
        let refused = Fixture::healthy().without(Source::TraceThrottle, Cause::PermissionDenied { need: need.into() });
        check_rule(
            &RULE,
            &refused,
            "not checked: trace of writeback/balance_dirty_pages: permission denied (needs CAP_BPF",
        );
    }

    #[test]
    fn where_no_sample_shows_the_limit_the_device_must_have_been_given_what_the_writer_dirtied() {
        // A writer of 1 MB/s that waits for 7 of 10 s. The disks are idle, and sda has a strict limit.
        let given = |bytes_per_s: f64| {
            Fixture::healthy()
                .facts(|facts| facts.task_delayacct = Some(true))
                .host(|t, row| {
                    row.nr_dirty_threshold = Some(floodline_testkit::mib_pages(500.0));
                    row.nr_dirty_background_threshold = Some(floodline_testkit::mib_pages(250.0));
                    row.psi_io_some = Some(floodline_testkit::secs(900.0 + 0.7 * t));
                })
                .disk("sda", move |t, row| row.written = floodline_testkit::grows(t, 0, bytes_per_s))
                .bdi("8:0", |_, row| {
                    row.strict_limit = Some(Flag(1));
                    row.max_ratio = Some(Ppm(5000));
                    row.reclaimable = Some(Bytes(floodline_testkit::mib(0.1)));
                    row.writeback = Some(Bytes(0));
                })
                .process("cp", 900, "/", |t, row| {
                    row.blkio_delay = Some(floodline_testkit::secs(0.7 * t));
                    row.write_bytes = floodline_testkit::grows(t, 0, 1e6);
                })
        };
        let found = "warning: cp[900] waited 7.00 s of 10 s, longer than the disks were busy, and no other limit than the strict one of sda";
        check_rule(&RULE, &given(1e6), found);
        let not = "not checked: trace of writeback/balance_dirty_pages";
        check_rule(&RULE, &given(1e3), not);
        check_rule(&RULE, &given(1e6).mount("sda", "nfs4", "/share", "rw"), not);
    }
}
