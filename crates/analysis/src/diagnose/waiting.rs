// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that waited for I/O, and how long. Pressure counts kernel threads too: a flusher that waits for room in a
//! queue harms no program. Waits of a process are known from a trace, from delay accounting where it is switched on, or
//! from the process states in the samples. Does not cover what the processes waited for.

mod other_reasons;
mod place;
mod syncs;
mod waiter;

use self::other_reasons::is_other;
pub use self::waiter::Waiter;
use self::waiter::{DELAYS, asleep_s};

use super::derived::Derived;
use super::device::Device;
use super::writer::{self, Period};
use super::{asleep, begun, cgroup, elsewhere, released, synced, throttle};
use crate::observer;
use crate::report::Unexplained;
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::record::What;
use floodline_record::sample::ProcessRow;
use floodline_record::traced::waits::SlowSync;
use floodline_record::units::Nanos;
use floodline_record::window::{Span, Window};
use std::collections::{BTreeMap, BTreeSet};

/// Seconds of waiting that a person notices.
const FELT_S: f64 = 0.5;
/// Part of the window from which waiting is felt, where that is longer.
const FELT_SHARE: f64 = 0.02;
/// Part of the window from which waiting is harm, for any program.
pub const HARM_SHARE: f64 = 0.1;
/// Length from which a single wait is harm, seconds.
pub const HARM_ONCE_S: f64 = 1.0;
/// Number of waiting processes from which a harm is shared.
pub const SHARED_BY: usize = 3;
/// Sum of their waits, in parts of the window, that is as bad as that of one process.
const SHARED_HARM: f64 = 0.3;
/// Part of the window with waiting tasks that each part with a busy disk may explain: the last write of a batch that a task
/// waits for ends later than the disk's own time.
const BUSY_FOR_EACH_WAIT: f64 = 2.0;
/// Samples with a process up to which it was there for a moment.
const MOMENT_READINGS: u32 = 2;
/// Time between two samples up to which two samples show a process that often waits, seconds.
const MOMENT_S: f64 = 1.5;
/// Part of its waits from which one reason explains what a process waited for.
const MOSTLY: f64 = 0.5;
/// State letter of an uninterruptible sleep.
const ASLEEP: u64 = b'D' as u64;

/// Fewest seconds of waiting that are felt in a window of this length.
pub fn felt_s(window_s: f64) -> f64 {
    FELT_S.max(FELT_SHARE * window_s)
}

/// Returns the processes of programs that waited long enough to be felt, the longest first; `None` without a trace,
/// delay accounting and process states.
pub fn waiters(window: &Window) -> Option<Vec<Waiter>> {
    let found = match traced(window) {
        Some(traced) => traced,
        None => accounted_or_asleep(window)?,
    };
    Some(longest_first(found, window))
}

/// Returns the processes of programs that waited long enough to be felt, as [`waiters`] does, from delay accounting and process
/// states only: the trace has syncs and pauses, and no reads.
pub fn readers(window: &Window) -> Option<Vec<Waiter>> {
    accounted_or_asleep(window).map(|found| longest_first(found, window))
}

fn is_felt(waiter: &Waiter, window: &Window) -> bool {
    waiter.seconds.is_none_or(|seconds| seconds >= felt_s(window.seconds()))
}

fn longest_first(mut found: Vec<Waiter>, window: &Window) -> Vec<Waiter> {
    found.retain(|waiter| is_felt(waiter, window));
    found.sort_by(|one, other| {
        let waited = |waiter: &Waiter| waiter.asleep_s.or(waiter.seconds).unwrap_or(0.0);
        waited(other).total_cmp(&waited(one)).then(one.pid.cmp(&other.pid))
    });
    found
}

/// Waiters by delay accounting, and those that were only seen asleep.
fn accounted_or_asleep(window: &Window) -> Option<Vec<Waiter>> {
    match (accounted(window), seen_asleep(window)) {
        // The kernel does not count waits for a journal commit or for the flusher as delays: only the state shows
        // them.
        (Some(mut accounted), Some(asleep)) => {
            accounted.retain(|waiter| is_felt(waiter, window));
            let pids: BTreeSet<u32> = accounted.iter().map(|waiter| waiter.pid).collect();
            accounted.extend(asleep.into_iter().filter(|waiter| !pids.contains(&waiter.pid)));
            Some(accounted)
        }
        (accounted, asleep) => accounted.or(asleep).or_else(|| counts_delays(window).then(Vec::new)),
    }
}

/// Returns the waiters that are not causers; `None` where waits are not known.
pub fn others(derived: &Derived<'_>, is_causer: impl Fn(&Waiter) -> bool) -> Option<Vec<Waiter>> {
    derived.waiters().map(|waiters| waiters.iter().filter(|waiter| !is_causer(waiter)).cloned().collect())
}

/// Returns the waiters that are not causers and may have waited for this device; `None` where waits are not known.
pub fn others_on(
    derived: &Derived<'_>,
    device: &Device<'_>,
    is_causer: impl Fn(&Waiter) -> bool,
) -> Option<Vec<Waiter>> {
    let others = derived.waiters_on(device)?;
    Some(others.iter().filter(|waiter| !is_causer(waiter)).cloned().collect())
}

/// Returns the waiters that are not causers and may have waited to read from this device; `None` where waits are not known. A trace of
/// syncs and pauses has no reads: delay accounting or the process states have them.
pub fn readers_on(
    derived: &Derived<'_>,
    device: &Device<'_>,
    is_causer: impl Fn(&Waiter) -> bool,
) -> Option<Vec<Waiter>> {
    let known = others_on(derived, device, &is_causer);
    let window = derived.window;
    let is_traced = synced::waits(window).is_some() && throttle::events(window).is_some();
    let Some(readers) = readers(window).filter(|_| is_traced) else { return known };
    let is_other = is_other(derived, device, readers.iter().any(|waiter| waiter.seconds.is_none()));
    let mut all = known.unwrap_or_default();
    let pids: BTreeSet<u32> = all.iter().map(|waiter| waiter.pid).collect();
    let is_new = |waiter: &Waiter| !pids.contains(&waiter.pid) && !is_other(waiter) && !is_causer(waiter);
    all.extend(readers.into_iter().filter(is_new));
    Some(longest_first(all, window))
}

/// Returns the waiters that may have waited for this device; `None` where waits are not known.
pub(super) fn on(derived: &Derived<'_>, device: &Device<'_>) -> Option<Vec<Waiter>> {
    others(derived, is_other(derived, device, asleep::tell_of_waiters(derived)))
}

/// Whether the waits of these processes are harm: a large part of the window, or one long wait.
pub fn is_harm(derived: &Derived<'_>, waiters: &[Waiter]) -> bool {
    let seconds = derived.seconds;
    waiters.iter().any(|waiter| {
        let share = waiter.seconds.map_or(0.0, |waited| waited / seconds.max(f64::MIN_POSITIVE));
        share >= HARM_SHARE || waiter.longest_s.is_some_and(|longest| longest >= HARM_ONCE_S)
    })
}

/// Whether these processes share a harm that is small for each of them: several wait for a good part of the window, and long
/// in sum.
pub fn is_shared_harm(derived: &Derived<'_>, waiters: &[Waiter]) -> bool {
    let seconds = derived.seconds.max(f64::MIN_POSITIVE);
    let shares = waiters.iter().filter_map(|waiter| Some(waiter.seconds? / seconds));
    let large: Vec<f64> = shares.filter(|share| *share >= HARM_SHARE / 2.0).collect();
    large.len() >= SHARED_BY && large.iter().sum::<f64>() >= SHARED_HARM
}

/// Whether a program that is not a causer waited long for stable storage on a disk, by a trace: a long wait, or many that add
/// up. The kernel's pressure misses some of these: a task that waits for a journal commit is not marked as waiting
/// for I/O.
pub fn is_harm_by_syncs(derived: &Derived<'_>, disk: &Device<'_>, is_causer: impl Fn(u32) -> bool) -> bool {
    let window = derived.window;
    let standstills = disk.standstills();
    let is_meant = |wait: &SlowSync, until: Nanos| {
        let since = Nanos(until.0.saturating_sub(wait.lasted.0));
        let is_its = place::is_on(derived, wait.device, disk);
        // A disk that stood still lets every task wait, whichever program writes.
        (!is_its || wait.lasted.as_secs_f64() < FELT_S || !standstills.hold(since, until)).then_some(is_its)
    };
    let sums = syncs::slow(window, is_meant);
    let short = syncs::short(window);
    let cgroups_elsewhere = elsewhere::cgroups_elsewhere(derived, disk);
    processes(window).any(|(_, pid, _, cgroup, _)| {
        let (total, longest, elsewhere) = sums.get(&pid).copied().unwrap_or_default();
        // Short waits are traced without their device.
        let is_its = elsewhere <= 0.0 && cgroup.is_none_or(|cgroup| !cgroups_elsewhere.contains(&cgroup));
        let short = short.get(&pid).copied().filter(|_| is_its).unwrap_or(0.0);
        is_long(derived, total + short, longest) && !is_causer(pid)
    })
}

fn is_long(derived: &Derived<'_>, total_s: f64, longest_s: f64) -> bool {
    let lasts = total_s > 0.0 && total_s >= HARM_SHARE * derived.seconds;
    lasts || longest_s >= HARM_ONCE_S
}

/// The program that waited most in fsync and its like, if that was harm: for a report in which no rule names a cause. A
/// program that made most of the writes waits for its own data and is left out.
pub fn unexplained(derived: &Derived<'_>) -> Option<Unexplained> {
    let mut causers = writer::causers(derived.window, derived.writers());
    causers.extend(derived.drains().iter().filter_map(|device| begun::since_before(derived, device)));
    // A finding names the limits behind whose writes a task waited.
    let is_released = |wait: &SlowSync, until: Nanos| {
        let since = Nanos(until.0.saturating_sub(wait.lasted.0));
        released::common_s(derived, since, until) >= MOSTLY * wait.lasted.as_secs_f64()
    };
    let sums = syncs::slow(derived.window, |wait, at| Some(!is_released(wait, at)));
    let short = syncs::short(derived.window);
    let waited = |pid: u32| {
        let (total, longest, _) = sums.get(&pid).copied().unwrap_or_default();
        (total + short.get(&pid).copied().unwrap_or(0.0), longest)
    };
    let is_harm = |pid: &u32| {
        let (total, longest) = waited(*pid);
        is_long(derived, total, longest)
    };
    // A process id may have been used again.
    let harmed: BTreeMap<u32, &Name> = processes(derived.window)
        .map(|(_, pid, comm, ..)| (pid, comm))
        .filter(|(pid, _)| !causers.contains(pid) && is_harm(pid))
        .collect();
    let (&pid, comm) = harmed.iter().max_by(|(one, _), (other, _)| waited(**one).0.total_cmp(&waited(**other).0))?;
    let (waited_s, longest_s) = waited(pid);
    let (who, more) = (format!("{comm}[{pid}]"), harmed.len() as u64 - 1);
    let longest_s = Some(longest_s).filter(|longest| *longest > 0.0);
    Some(Unexplained { who, more, waited_s, longest_s, io_some_share: None })
}

/// Waits for I/O that no disk explains, for a report in which no finding is about waits: tasks waited for a good part of the
/// window, and all disks together were busy for much less. Writers that are paused, a limit, or a filesystem without a disk of
/// its own make tasks wait like that.
pub fn beside_idle_disks(derived: &Derived<'_>) -> Option<Unexplained> {
    let pressure = derived.dirty.io_pressure_some?;
    // Disks may be busy one after the other.
    let busy = derived.disks().iter().filter_map(Device::utilisation).reduce(|one, other| one + other)?;
    if pressure <= BUSY_FOR_EACH_WAIT * busy + HARM_SHARE {
        return None;
    }
    let known = derived.waiters().unwrap_or_default();
    let first = known.first().and_then(|waiter| Some((waiter.label(), waiter.seconds?)));
    let (who, waited_s) = first.unwrap_or((String::new(), pressure * derived.seconds));
    let more = if who.is_empty() { 0 } else { known.len() as u64 - 1 };
    Some(Unexplained { who, more, waited_s, longest_s: None, io_some_share: Some(pressure) })
}

/// A process: its entity, its id, its name, its cgroup and its readings.
type Process<'w> = (EntityId, u32, &'w Name, Option<EntityId>, &'w Span<ProcessRow>);

/// Every userspace process.
fn processes(window: &Window) -> impl Iterator<Item = Process<'_>> {
    window.processes.iter().filter_map(|(id, span)| match window.entities.get(id) {
        Some(Entity::Process { pid, comm, cgroup, kthread: false, .. }) => Some((*id, *pid, comm, *cgroup, span)),
        _ => None,
    })
}

/// Whether delay accounting tells how long processes waited: it is known to be on, or has counted something.
pub fn are_delays_counted(window: &Window) -> bool {
    let is_counted = |span: &Span<ProcessRow>| span.growth.blkio_delay.is_some_and(|delay| delay.0 > 0);
    counts_delays(window) || window.processes.values().any(is_counted)
}

/// Whether the kernel counts delays. If it does, a program without delays did not wait for I/O.
fn counts_delays(window: &Window) -> bool {
    window.facts.as_ref().is_some_and(|facts| facts.task_delayacct == Some(true))
}

/// Waiters by delay accounting; `None` where no process has any.
fn accounted(window: &Window) -> Option<Vec<Waiter>> {
    // A process that starts in the window has waited in it before the first sample with it, too.
    let waiter = |(id, span): (&EntityId, &Span<ProcessRow>)| {
        let Some(Entity::Process { pid, comm, cgroup, kthread: false, .. }) = window.entities.get(id) else {
            return None;
        };
        let row = writer::counted(window, Period::Window, *id, span)?;
        let seconds = row.blkio_delay.map(Nanos::as_secs_f64).filter(|seconds| *seconds > 0.0)?;
        let asleep_s = asleep_s(window, *id, span, seconds);
        let (comm, seconds) = (comm.clone(), Some(seconds));
        Some(Waiter { pid: *pid, comm, cgroup: *cgroup, seconds, longest_s: None, asleep_s, source: DELAYS })
    };
    let waiters: Vec<Waiter> = window.processes.iter().filter_map(waiter).collect();
    (!waiters.is_empty()).then_some(waiters)
}

/// Waiters by the process states in samples; `None` where none was seen asleep: then states do not explain the waiting.
fn seen_asleep(window: &Window) -> Option<Vec<Waiter>> {
    // `D` sorts before every other state letter of the kernel.
    let is_asleep = |span: &Span<ProcessRow>| span.min.state.is_some_and(|state| state.0 == ASLEEP);
    let was_seen = window.processes.values().any(is_asleep);
    let waiter = |(id, pid, comm, cgroup, span): Process<'_>| {
        (is_asleep(span) && !is_a_moment(window, comm, span)).then(|| Waiter {
            pid,
            comm: comm.clone(),
            cgroup,
            seconds: None,
            longest_s: None,
            asleep_s: asleep_s(window, id, span, 0.0),
            source: "/proc/PID/stat state D",
        })
    };
    was_seen.then(|| processes(window).filter_map(waiter).collect())
}

/// Whether a process was there for a moment, and it is the only process of its name that was seen asleep, once. It may have
/// waited for a millisecond. Samples that are far apart show few of the waits of such processes: then once is enough.
fn is_a_moment(window: &Window, comm: &Name, span: &Span<ProcessRow>) -> bool {
    let distance = observer::distance(window).map_or(0.0, Nanos::as_secs_f64);
    // All sleeps of a large machine are looked at only for a process of a moment.
    if span.readings > MOMENT_READINGS || distance > MOMENT_S {
        return false;
    }
    let is_its =
        |id: &EntityId| matches!(window.entities.get(id), Some(Entity::Process { comm: of, .. }) if of == comm);
    let times: usize = window.asleep.iter().filter(|(id, _)| is_its(id)).map(|(_, times)| times.len()).sum();
    times < 2
}

/// Waiters by a trace of syncs and of pauses; `None` where either was not traced.
fn traced(window: &Window) -> Option<Vec<Waiter>> {
    synced::waits(window)?;
    throttle::events(window).map(drop)?;
    let kthreads: BTreeSet<u32> = window
        .entities
        .values()
        .filter_map(|entity| match entity {
            Entity::Process { pid, kthread: true, .. } => Some(*pid),
            _ => None,
        })
        .collect();
    let mut sums: BTreeMap<u32, (Name, u64, f64, f64)> = BTreeMap::new();
    let mut add = |pid: u32, comm: &Name, ino: u64, seconds: f64, longest: f64| {
        let sum = sums.entry(pid).or_insert_with(|| (comm.clone(), ino, 0.0, 0.0));
        sum.2 += seconds;
        sum.3 = sum.3.max(longest);
    };
    for event in &window.events {
        match &event.what {
            // A sync of everything waits for all dirty data by design. A nested one belongs to the outer sync or unmount.
            What::Synced(synced) if !synced.operation.is_of_file() => {}
            What::Synced(synced) => add(
                synced.who.pid,
                &synced.who.comm,
                synced.who.cgroup_ino,
                synced.total.as_secs_f64(),
                synced.longest.as_secs_f64(),
            ),
            What::Throttled(event) => add(
                event.who.pid,
                &event.who.comm,
                event.who.cgroup_ino,
                event.lasted().as_secs_f64(),
                event.longest_lasted().as_secs_f64(),
            ),
            _ => {}
        }
    }
    let waiter = |(pid, (comm, ino, seconds, longest)): (u32, (Name, u64, f64, f64))| Waiter {
        pid,
        comm,
        cgroup: throttle::cgroup_of(window, ino),
        seconds: Some(seconds),
        longest_s: Some(longest),
        asleep_s: None,
        source: "trace of fsync and its like, and of balance_dirty_pages",
    };
    Some(sums.into_iter().filter(|(pid, _)| !kthreads.contains(pid)).map(waiter).collect())
}

/// Words for a waiter in a sentence: its name, its container if any, and the length of its wait.
pub fn named(derived: &Derived<'_>, waiter: &Waiter) -> String {
    let place =
        waiter.cgroup.filter(|id| cgroup::path(derived.window, *id).is_some_and(|path| path.as_bytes().len() > 1));
    match place {
        Some(id) => format!("{} in {}", waiter.label(), derived.label(id)),
        None => waiter.label(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::traced::waits::Operation;
    use floodline_record::units::Count;
    use floodline_testkit::{Fixture, secs};

    fn labels(fixture: &Fixture) -> Option<Vec<String>> {
        waiters(&fixture.window()).map(|waiters| waiters.iter().map(Waiter::label).collect())
    }

    fn two() -> Fixture {
        Fixture::healthy()
            .process("dd", 900, "/", |t, row| {
                row.state = Some(Count(u64::from(b'D')));
                row.blkio_delay = Some(secs(0.9 * t));
            })
            .process("bash", 901, "/", |t, row| {
                row.state = Some(Count(u64::from(b'S')));
                row.blkio_delay = Some(secs(0.0001 * t));
            })
    }

    #[test]
    fn a_harm_may_be_shared_by_several_that_wait_less() {
        let window = floodline_testkit::Fixture::healthy().window();
        let derived = Derived::of(&window);
        let of = |shares: &[f64]| {
            let one = |share: &f64| Waiter {
                pid: 1,
                comm: Name::new("client"),
                cgroup: None,
                seconds: Some(share * derived.seconds),
                longest_s: None,
                asleep_s: None,
                source: "",
            };
            let waiters: Vec<Waiter> = shares.iter().map(one).collect();
            (is_harm(&derived, &waiters), is_shared_harm(&derived, &waiters))
        };
        assert_eq!(of(&[0.11]), (true, false));
        assert_eq!(of(&[0.09, 0.09, 0.08, 0.08]), (false, true));
        assert_eq!(of(&[0.09, 0.09]), (false, false), "two are none that share");
        assert_eq!(of(&[0.04; 20]), (false, false), "each of them hardly waits");
    }

    #[test]
    fn delay_accounting_tells_who_waited_long_enough_to_feel_it() {
        assert_eq!(labels(&two()), Some(vec!["dd[900]".to_owned()]));
        let window = two().window();
        assert!(is_harm(&Derived::of(&window), &waiters(&window).unwrap()));
    }

    #[test]
    fn a_process_that_starts_in_the_window_has_waited_since_its_start() {
        let waited = |start_s: f64| {
            let host = Fixture::healthy().process("client", 910, "/", |t, row| match t < 5.0 {
                true => *row = Default::default(),
                false => row.blkio_delay = Some(secs(2.0 + 0.2 * (t - 5.0))),
            });
            let mut window = host.window();
            let is_it = |entity: &&Entity| matches!(entity, Entity::Process { pid: 910, .. });
            let id = *window.entities.iter().find(|(_, entity)| is_it(entity)).expect("it is there").0;
            let Some(Entity::Process { pid, comm, cgroup, kthread, .. }) = window.entities.get(&id).cloned() else {
                panic!("a process")
            };
            let start_ticks = (100.0 * (floodline_testkit::UPTIME + start_s)) as u64;
            window.entities.insert(id, Entity::Process { pid, start_ticks, comm, cgroup, kthread });
            waiters(&window).expect("delays").first().and_then(|waiter| waiter.seconds)
        };
        assert_eq!((waited(3.0), waited(-3.0)), (Some(3.0), Some(1.0)));
    }

    #[test]
    fn without_it_states_tell_and_without_both_nothing_does() {
        let off = |fixture: Fixture| {
            [("dd", 900), ("bash", 901)].into_iter().fold(fixture, |fixture, (comm, pid)| {
                fixture.process(comm, pid, "/", |_, row| row.blkio_delay = Some(secs(0.0)))
            })
        };
        let seen = off(two()).process("dd", 900, "/", |t, row| {
            row.state = Some(Count(u64::from(if t == 3.0 { b'D' } else { b'R' })));
        });
        assert_eq!(labels(&seen), Some(vec!["dd[900]".to_owned()]));
    }

    #[test]
    fn a_process_of_a_moment_that_was_seen_asleep_once_is_no_waiter() {
        let brief = |pids: &[u32], every_s: f64| {
            let host = Fixture::healthy().every(every_s);
            let add = |host: Fixture, pid: &u32| {
                host.process("sqlite3", *pid, "/", |t, row| {
                    row.state = Some(Count(u64::from(if t == 5.0 { b'D' } else { b'R' })));
                })
            };
            let mut window = pids.iter().fold(host, add).window();
            for id in window.asleep.keys() {
                window.processes.get_mut(id).expect("it was seen").readings = 1;
            }
            waiters(&window).map_or(0, |waiters| waiters.len())
        };
        assert_eq!([brief(&[910], 1.0), brief(&[910, 911], 1.0), brief(&[910], 5.0)], [0, 2, 1]);
    }

    #[test]
    fn a_kernel_that_counts_delays_and_has_none_tells_that_no_program_waited() {
        let quiet = |counts: bool| {
            let fixture = Fixture::healthy().facts(move |facts| facts.task_delayacct = Some(counts));
            labels(&fixture.process("dd", 900, "/", |_, row| row.blkio_delay = Some(secs(0.0))))
        };
        assert_eq!((quiet(true), quiet(false)), (Some(Vec::new()), None));
    }

    #[test]
    fn waits_beside_idle_disks_are_told() {
        use crate::diagnose::diagnose;
        let waits = |share: f64| {
            let host = two().host(move |t, row| row.psi_io_some = Some(secs(900.0 + share * t)));
            diagnose(&host.window(), None).unexplained
        };
        let told = waits(0.4).expect("nothing explains it");
        assert_eq!(
            (told.who.as_str(), told.io_some_share.map(|share| (share * 100.0).round())),
            ("dd[900]", Some(40.0))
        );
        assert_eq!(waits(0.05), None, "few waits");
        let busy = two()
            .host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.4 * t)))
            .disk("sda", |t, row| row.io_time = Some(secs(600.0 + 0.4 * t)));
        assert_eq!(diagnose(&busy.window(), None).unexplained, None, "the disk is busy meanwhile");
        let disks = ["sda", "sdb", "sdc", "sdd"]
            .into_iter()
            .fold(two(), |host, name| host.disk(name, |t, row| row.io_time = Some(secs(600.0 + 0.15 * t))));
        let spread = disks.host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.6 * t)));
        assert_eq!(spread.window().disk_series.len(), 4, "the disks are in the recording");
        assert_eq!(diagnose(&spread.window(), None).unexplained, None, "one disk after the other is busy");
    }

    #[test]
    fn short_waits_add_up_where_each_takes_longer_than_a_disk_needs() {
        use crate::diagnose::diagnose;
        use crate::diagnose::synced::tests::synced;
        let waited = |count: u64, ms_each: u64| {
            let events = vec![synced((812, Operation::Fdatasync, count, count * ms_each, ms_each))];
            let host = Fixture::healthy().process("redis-server", 812, "/", |_, _| {});
            diagnose(&host.traced(&["throttle", "bytes"], events).window(), None).unexplained
        };
        let told = waited(100, 60).expect("6 s of 10 s");
        assert_eq!((told.waited_s, told.longest_s), (6.0, None));
        assert_eq!(waited(600, 10), None, "a disk takes as long");
        assert_eq!(waited(10, 60), None, "too few to feel");
        let (parts, whole) = (["throttle", "bytes"], vec![synced((7, Operation::SyncFilesystem, 1, 8_000, 8_000))]);
        let window = Fixture::healthy().process("timer", 7, "/", |_, _| {}).traced(&parts, whole).window();
        assert_eq!(waiters(&window), Some(Vec::new()), "waits for a whole filesystem by design");
        let look = Fixture::healthy().process("redis-server", 812, "/", |_, _| {}).one_look();
        assert_eq!(diagnose(&look.window(), None).unexplained, None, "one sample has no waits");
    }

    #[test]
    fn long_waits_that_no_rule_explains_are_told() {
        use crate::diagnose::diagnose;
        use crate::diagnose::synced::tests::slow;
        let report = |operation, ms| {
            let (parts, events) = slow((812, operation, ms, None));
            let host = Fixture::healthy().process("redis-server", 812, "/", |_, _| {}).traced(parts, events);
            diagnose(&host.window(), None)
        };
        let told = report(Operation::Fdatasync, 2_000).unexplained;
        let of_redis = Unexplained {
            who: "redis-server[812]".to_owned(),
            more: 0,
            waited_s: 2.0,
            longest_s: Some(2.0),
            io_some_share: None,
        };
        assert_eq!(told, Some(of_redis));
        assert_eq!(report(Operation::Fdatasync, 120).unexplained, None, "short");
        assert_eq!(report(Operation::Sync, 2_000).unexplained, None, "waits for all dirty data by design");
        assert_eq!(diagnose(&Fixture::healthy().window(), None).unexplained, None);
    }
}
