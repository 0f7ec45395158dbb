// SPDX-License-Identifier: MIT OR Apache-2.0
//! The finding about cgroups at whose small dirty limit writers wait although the disk is not full: their memory limit is small, little of
//! it is left, or a setting gives them a small part of it.

use super::RULE;
use crate::advise::threshold::HARD_PER_BACKGROUND;
use crate::diagnose::crowded::{Crowded, Reason, together_s};
use crate::diagnose::derived::Derived;
use crate::diagnose::short_limit::{higher, setting_of};
use crate::diagnose::waiting::{self, HARM_SHARE, Waiter};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::human;
use floodline_record::id::EntityId;
use std::collections::BTreeSet;

/// The ratios that the kernel starts with, in percent. They give each cgroup a fifth of its memory.
const KERNEL_RATIOS: [(&str, u64); 2] = [("vm.dirty_background_ratio", 10), ("vm.dirty_ratio", 20)];
/// What they cost where bytes were set.
const LARGER_BURSTS: &str = "More data may be unwritten at a time: a sync, an unmount or a clean stop may take longer, and a power cut loses more.";
/// Part of the window that tasks wait at such limits together, from which that is harm.
const MOSTLY_WAITS: f64 = 0.2;
/// Seconds that the disk may need for the background threshold of these ratios.
const DRAINS_S: f64 = 5.0;
/// Largest hard threshold, as a part of dirtyable memory: the kernel's default.
const MOST_HARD: f64 = 0.2;
/// How many times the present room larger thresholds must give.
const ROOMIER: f64 = 4.0;
const MIB: u64 = 1 << 20;
/// Rows of evidence for each kind, at most.
const SHOWN: usize = 3;

/// Thresholds in bytes: the disk writes the background one in [`DRAINS_S`], and the hard one is [`HARD_PER_BACKGROUND`] times that. `None`
/// where the cgroup would not get [`ROOMIER`] times the room that it has. `speed` in bytes a second, `global` bytes that may become dirty on the
/// machine, `available` bytes of them in the cgroup, whose writers are paused from `freerun` bytes on.
fn drained_pair(speed: f64, global: f64, (available, freerun): (u64, u64)) -> Option<[(&'static str, u64); 2]> {
    let most = (DRAINS_S * speed).min(MOST_HARD / HARD_PER_BACKGROUND as f64 * global);
    let background = 1_u64.checked_shl((most.max(1.0).log2()).floor() as u32)?;
    let hard = background * HARD_PER_BACKGROUND;
    // Writers are paused from halfway between both on.
    let ceiling = (background + hard) as f64 / 2.0 * available as f64 / global.max(1.0);
    let is_roomier = background >= MIB && ceiling >= ROOMIER * freerun as f64;
    is_roomier.then_some([("vm.dirty_background_bytes", background), ("vm.dirty_bytes", hard)])
}

/// The finding; `None` where no task waits at such a limit for long.
pub(super) fn finding(derived: &Derived<'_>) -> Option<Finding> {
    let all = derived.crowded();
    let worst = all.first()?;
    let mut waiters: Vec<Waiter> = all.iter().flat_map(|one| one.waiters.iter().cloned()).collect();
    waiters.sort_by(|one, other| other.seconds.unwrap_or(0.0).total_cmp(&one.seconds.unwrap_or(0.0)));
    let together = together_s(derived, all);
    let (waited_s, disks) = (together, all.iter().map(|one| one.disk.to_string()).collect::<BTreeSet<String>>());
    let share = |waiter: &&Waiter| waiter.seconds.is_some_and(|waited| waited >= HARM_SHARE * derived.seconds);
    let are_harmed = together >= MOSTLY_WAITS * derived.seconds
        || waiters.iter().filter(share).count() >= 2
        || waiting::is_shared_harm(derived, &waiters);
    // Without a trace, what a task waited for is likely and not known.
    let severity = match waiters.len() {
        0 | 1 => Severity::Info,
        _ if are_harmed && worst.is_traced => Severity::Critical,
        _ => Severity::Warning,
    };
    let place = derived.label(worst.cgroup);
    let places = match all.len() as u64 {
        1 => place.clone(),
        many => format!("{place} and {} more", many - 1),
    };
    let (freerun, busy) = (human::bytes(worst.freerun as f64), human::percent(worst.utilisation));
    let who = match waiters.len() {
        1 => waiters[0].label(),
        many => format!("{} and {} more", waiters[0].label(), many - 1),
    };
    let (above, limit, _) = worst.below;
    let of = derived.label(above);
    let knob = format!("{} of {of}", knob_of_limit(derived, above, limit));
    let used_up = format!("{knob} ({})", human::bytes(limit as f64));
    let domain =
        derived.budgets().cgroups.iter().find(|budget| budget.cgroup == worst.cgroup).map(|budget| &budget.domain);
    let by_setting = domain.filter(|_| worst.reason == Reason::Setting).map(setting_of);
    // The ceiling is this part of what the memory leaves.
    let part = worst.freerun as f64 / worst.available.max(1) as f64;
    let speed = derived.speed().filter(|_| by_setting.is_some());
    let (mut plan, why, mut trade_off) =
        speed.map(|speed| higher(derived, speed, Some(worst.available))).unwrap_or_default();
    let background = derived.budgets().global.available.map(|available| available.high.0 as f64 / 10.0);
    let drains = speed.zip(background).is_some_and(|(speed, background)| background <= DRAINS_S * speed.value);
    if plan.is_empty() && by_setting.is_some() && drains {
        plan = derived.sysctls(&KERNEL_RATIOS);
        trade_off = LARGER_BURSTS.to_owned();
    }
    // Where those ratios are too much for the disk: as much as it writes in that time.
    let global = derived.budgets().global.available.map_or(0.0, |available| available.low.0 as f64);
    let pair = speed
        .filter(|_| plan.is_empty())
        .and_then(|speed| drained_pair(speed.value, global, (worst.available, worst.freerun)));
    if let Some(pair) = pair {
        plan = derived.sysctls(&pair);
        trade_off = LARGER_BURSTS.to_owned();
    }
    let expect = match (&by_setting, plan.is_empty()) {
        (_, false) => "Larger bursts fit below the limit, and writers wait less.".to_owned(),
        (Some(_), true) => {
            "Raise the dirty thresholds of the machine: each cgroup gets the same part of its memory.".to_owned()
        }
        (None, true) => format!(
            "Raise {knob}{}: each added MiB allows {} more unwritten data. A higher vm.dirty_ratio raises the limit too, for \
             all cgroups.",
            if worst.reason == Reason::Programs { ", or shrink the programs in it" } else { "" },
            human::bytes(part * 1024.0 * 1024.0)
        ),
    };
    let (together, all_s) = (human::seconds(together), human::seconds(derived.seconds));
    let waited = match worst.is_traced {
        true => format!("They waited {together} in {all_s}, and {} was {busy} busy.", worst.disk),
        false => {
            format!(
                "While this level was reached, tasks waited {together} in {all_s}, and {} was {busy} busy.",
                worst.disk
            )
        }
    };
    Some(Finding {
        rule: RULE.name,
        severity,
        summary: match &by_setting {
            Some(setting) => format!(
                "{setting} makes the kernel pause writers of {places} from {freerun} of unwritten data on. {waited}"
            ),
            None if worst.reason == Reason::Limit => format!(
                "The kernel pauses writers of {places} from {freerun} of unwritten data on, because of {used_up}. {waited}"
            ),
            None => format!(
                "Little memory is left for {places}, so writers are paused from {freerun} of unwritten data on. {waited}"
            ),
        },
        evidence: evidence(derived, all, &waiters),
        cause: match &by_setting {
            Some(_) => format!(
                "A cgroup gets the same part of its dirtyable memory that the setting is of the machine's. Writers are paused from \
                 {freerun}, out of {}. A larger burst is slowed to the speed of the disk. {why}",
                human::bytes(worst.available as f64)
            )
            .trim_end()
            .to_owned(),
            None => format!(
                "The dirty limit of a cgroup is a part of its page cache and of the memory that it may still take. {}. So writers are paused \
                 from {freerun}, out of {} that may become dirty. A larger burst is slowed to the speed of the disk.",
                match worst.reason {
                    Reason::Limit => format!("Both are small because of {used_up}"),
                    _ => format!("Programs take half or more of {used_up}"),
                },
                human::bytes(worst.available as f64)
            ),
        },
        brief: Brief {
            because: match &by_setting {
                Some(setting) => format!("{setting} lets {place} have only {freerun} of unwritten data before its writers are paused."),
                None => format!(
                    "The kernel pauses writers of {place} from {freerun} of unwritten data on, because {}{used_up}.",
                    if worst.reason == Reason::Limit { "of " } else { "programs take half or more of " }
                ),
            },
            who,
            expect: expect.clone(),
            costs: "More data is lost if the machine loses power.".to_owned(),
        },
        trade_off: if plan.is_empty() { expect } else { trade_off },
        plan,
        devices: disks.into_iter().collect(),
        waited_s: Some(waited_s),
        helps_in_part: true,
        ..Finding::default()
    })
}

/// The file that holds the memory limit of a cgroup, of this many bytes.
fn knob_of_limit(derived: &Derived<'_>, cgroup: EntityId, limit: u64) -> &'static str {
    let high = derived.window.cgroup_limits.get(&cgroup).and_then(|span| span.last.memory_high?.bytes());
    if high.is_some_and(|high| high.0 <= limit) { "memory.high" } else { "memory.max" }
}

fn evidence(derived: &Derived<'_>, all: &[Crowded], waiters: &[Waiter]) -> Vec<Evidence> {
    let mut rows: Vec<Evidence> = waiters.iter().take(SHOWN).flat_map(Waiter::evidence).collect();
    for one in all.iter().take(SHOWN) {
        let name = derived.label(one.cgroup);
        rows.push(
            Evidence::bytes(format!("Most dirty, {name}"), one.peak, "memory.stat file_dirty + file_writeback")
                .against(one.freerun as f64),
        );
    }
    rows.extend(all.first().map(|one| {
        let (above, limit, used) = one.below;
        Evidence::bytes(format!("Memory in use, {}", derived.label(above)), used, "memory.current")
            .against(limit as f64)
    }));
    rows.extend(
        all.first()
            .map(|one| Evidence::share(format!("{} busy", one.disk), one.utilisation, "/proc/diskstats io_time")),
    );
    rows.extend(derived.dirty.io_pressure_row());
    rows
}

#[cfg(test)]
mod tests {
    use super::super::RULE;
    use super::{MIB, drained_pair};
    use crate::diagnose::throttle::tests::throttled;
    use crate::diagnose::{check_rule, first_finding};
    use floodline_record::record::What;
    use floodline_record::traced::throttle::{Domain, ThrottleState};
    use floodline_record::units::{Bytes, Count, Limit, Pages};
    use floodline_testkit::{Fixture, grows, incidents, mib, secs};

    #[test]
    fn thresholds_that_the_disk_drains_in_a_few_seconds_are_set_where_they_give_much_more_room() {
        const GIB: f64 = 1_073_741_824.0;
        // A pod of 128 MiB on a machine of 4 GiB, with dirty_bytes of 40 MiB, and a disk of 60 MB/s.
        let pod = (100 * MIB, 1_090_000);
        let pair = drained_pair(60e6, 3.7 * GIB, pod);
        assert_eq!(pair, Some([("vm.dirty_background_bytes", 128 * MIB), ("vm.dirty_bytes", 512 * MIB)]));
        // A disk of 20 MB/s gets less. A card of 5 MB/s gets nothing: the pod would not have much more room.
        assert_eq!(drained_pair(5e6, 3.7 * GIB, pod).map(|pair| pair[0].1), None);
        assert_eq!(drained_pair(20e6, 3.7 * GIB, pod).map(|pair| pair[0].1), Some(64 * MIB));
        // The hard threshold is no more than a fifth of the memory.
        assert_eq!(drained_pair(2e9, 3.7 * GIB, pod).map(|pair| pair[0].1), Some(128 * MIB));
    }

    /// What differs between hosts.
    #[derive(Clone, Copy)]
    struct Given {
        /// Memory of the heap of each pod, MiB.
        heap_mib: f64,
        /// Part of the time that each pod's program waits, and that the disk is busy.
        waits: f64,
        busy: f64,
        /// Flushes of the disk per second.
        flushes: f64,
        /// Bytes that each program hands to write calls in a second.
        written: f64,
    }

    const CROWDED: Given = Given { heap_mib: 276.0, waits: 0.08, busy: 0.4, flushes: 0.2, written: 1e6 };

    /// Two pods of 320 MiB that hold 38 MiB of files and up to 9 MiB of unwritten data, with the kernel's ratios.
    fn host(given: Given) -> Fixture {
        let host = incidents::small_budget_of_pages()
            .seconds(40)
            .settings((20, 0, 10, 0))
            .thresholds((20, 0, 10, 0), 600_000, 300_000)
            .host(move |t, row| row.psi_io_some = Some(secs(900.0 + 2.0 * given.waits * t)))
            .disk("sdb", move |t, row| {
                row.io_time = Some(secs(600.0 + given.busy * t));
                row.flushes = Some(Count((given.flushes * t) as u64));
                row.written = grows(t, 0, 20e6 * given.busy);
            });
        (0..2).fold(host, |host, at| {
            let path = format!("/bench.slice/writer-{at}.scope");
            host.cgroup(&path, move |_, row| {
                row.anon = Some(Bytes(mib(given.heap_mib)));
                row.memory_current = Some(Bytes(mib(given.heap_mib + 40.0)));
                (row.file, row.inactive_file, row.active_file) =
                    (Some(Bytes(mib(38.0))), Some(Bytes(mib(38.0))), Some(Bytes(0)));
                (row.file_dirty, row.file_writeback) = (Some(Bytes(mib(9.0))), Some(Bytes(0)));
            })
            .limits(&path, |_, row| row.memory_max = Some(Limit(mib(320.0))))
            .cgroup_io(&path, "sdb", move |t, row| row.wbytes = grows(t, 0, given.written))
            .process("mapwriter", 2000 + at as u32, &path, move |t, row| {
                (row.wchar, row.write_bytes) = (grows(t, 0, given.written), grows(t, 0, given.written));
                row.blkio_delay = Some(secs(given.waits * t));
            })
        })
    }

    #[test]
    fn writers_of_pods_whose_heaps_leave_little_room_are_paused() {
        check_rule(
            &RULE,
            &host(CROWDED),
            "warning: Little memory is left for /bench.slice/writer-0.scope and 1 more, so writers",
        );
        let finding = first_finding(&RULE, &host(CROWDED));
        assert!(
            finding
                .cause
                .contains("Programs take half or more of memory.max of /bench.slice/writer-0.scope (320 MiB)."),
            "{}",
            finding.cause
        );
        assert!(
            finding.brief.expect.starts_with("Raise memory.max of /bench.slice/writer-0.scope"),
            "{}",
            finding.brief.expect
        );
        check_rule(&RULE, &host(Given { waits: 0.04, ..CROWDED }), "warning: Little memory is left for");
        check_rule(&RULE, &host(Given { waits: 0.02, ..CROWDED }), "clear:");
        // The same pages are handed to write calls many times.
        check_rule(&RULE, &host(Given { written: 3e6, ..CROWDED }), "warning: Little memory is left for");
        check_rule(&RULE, &host(Given { written: 3e6, waits: 0.02, ..CROWDED }), "info: 2 cgroups with little memory");
    }

    #[test]
    fn a_small_memory_limit_of_a_pod_without_a_heap_is_the_reason_by_itself() {
        // 44 MiB leave a pod 40: a fifth of them is 8 MiB, and writers are paused from three quarters of that on.
        let marks = |high_mib: f64| {
            (0..2).fold(host(Given { heap_mib: 2.0, ..CROWDED }), move |host, at| {
                let path = format!("/bench.slice/writer-{at}.scope");
                host.limits(&path, move |_, row| row.memory_high = Some(Limit(mib(high_mib))))
            })
        };
        check_rule(&RULE, &marks(44.0), "warning: The kernel pauses writers of /bench.slice/writer-0.scope and 1 more");
        let finding = first_finding(&RULE, &marks(44.0));
        assert!(
            finding.summary.contains("because of memory.high of /bench.slice/writer-0.scope (44.0 MiB)."),
            "{}",
            finding.summary
        );
        let expect = &finding.brief.expect;
        assert!(
            expect.starts_with("Raise memory.high of /bench.slice/writer-0.scope: ") && !expect.contains("shrink"),
            "{expect}"
        );
        check_rule(&RULE, &marks(120.0), "clear:");
    }

    #[test]
    fn memory_is_not_the_reason_where_there_is_room_or_something_else_makes_them_wait() {
        let check = |given| check_rule(&RULE, &host(given), "clear:");
        // A fifth of 298 MiB is more than was unwritten.
        check(Given { heap_mib: 20.0, ..CROWDED });
        // Programs that sync wait for their syncs.
        check(Given { flushes: 3.0, ..CROWDED });
        // A disk without a cache needs no flush for a sync.
        let without_cache = host(CROWDED).facts(|facts| {
            facts.devices.iter_mut().for_each(|device| device.write_back_cache = Some(false));
        });
        check_rule(&RULE, &without_cache, "clear:");
        // The disk is full, or it idles while they wait.
        check(Given { busy: 0.9, ..CROWDED });
        check(Given { busy: 0.05, ..CROWDED });
    }

    #[test]
    fn a_setting_that_gives_pods_a_small_part_of_their_memory_is_named() {
        let bytes = |limit_mib: u64| {
            let host = host(Given { heap_mib: 20.0, ..CROWDED });
            host.settings((0, limit_mib << 20, 0, (limit_mib / 4) << 20))
        };
        check_rule(
            &RULE,
            &bytes(256),
            "warning: vm.dirty_bytes = 256 MiB makes the kernel pause writers of /bench.slice/writer-0.scope",
        );
        let finding = first_finding(&RULE, &bytes(256));
        assert!(finding.cause.starts_with("A cgroup gets the same part of its dirtyable memory"), "{}", finding.cause);
        // The kernel's own ratios would let more than this disk writes in some seconds pile up.
        assert!(finding.plan.is_empty() && finding.brief.expect.starts_with("Raise the dirty"), "{:?}", finding.plan);
        // Then 9 MiB fit.
        check_rule(&RULE, &bytes(1024), "clear:");
    }

    #[test]
    fn a_trace_tells_the_limit_and_who_was_paused_there() {
        let traced = |domain, pauses: &[(u32, u64)]| {
            let state =
                ThrottleState { limit_pages: Pages(2_000), setpoint_pages: Pages(1_768), ..ThrottleState::default() };
            let pause = |(pid, ms): &(u32, u64)| {
                let What::Throttled(mut event) = throttled((1, "8:16", domain, 50, *ms, 200)) else {
                    unreachable!("it is a pause")
                };
                (event.who.pid, event.longest) = (*pid, Some(state));
                What::Throttled(event)
            };
            host(Given { flushes: 3.0, ..CROWDED }).traced(&["throttle", "bytes"], pauses.iter().map(pause).collect())
        };
        let paused = [(2000, 1_500), (2001, 1_400)];
        let told = "warning: Little memory is left for /bench.slice/writer-0.scope and 1 more, so writers are paused from 6.00 MiB";
        check_rule(&RULE, &traced(Domain::Memcg, &paused), told);
        check_rule(&RULE, &traced(Domain::Global, &paused), "clear:");
        check_rule(&RULE, &traced(Domain::Memcg, &[]), "clear:");
        let long = [(2000, 5_000), (2001, 5_000)];
        check_rule(&RULE, &traced(Domain::Memcg, &long), "critical: Little memory is left for");
        // One alone is a note.
        check_rule(&RULE, &traced(Domain::Memcg, &[(2000, 5_000)]), "info: Little memory is left for");
    }
}
