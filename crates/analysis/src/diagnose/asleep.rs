// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often processes were seen in an uninterruptible sleep (state `D`): the share of samples estimates the share of time. What a
//! process waited for is not known from its state. A program that waits for a device sleeps more while the device is busy than
//! otherwise.

mod apart;

pub(super) use apart::Busy;

use super::burst::{self, Burst};
use super::derived::Derived;
use super::device::{Device, Interval};
use super::load::{self, Kind, Load};
use super::waiting::Waiter;
use super::{cgroup, strict, writer};
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::units::{Bytes, Nanos};
use floodline_record::window::Window;
use std::collections::{BTreeMap, BTreeSet};

/// Samples with a process from which its states tell how much of the time it slept.
const OFTEN_READ: usize = 10;
/// Samples inside and outside a time from which the states of both are compared.
const COMPARED: usize = 4;
/// Standard deviations of a count of samples by which it may differ by chance.
const BY_CHANCE: f64 = 2.0;
/// Waiting of a cgroup for I/O from which a thread in it may have waited that no state shows, seconds.
const PRESSED_S: f64 = 0.5;
/// Part of what a device wrote from which a process that dirtied as much may have dirtied all of it.
const ABOUT_ALL: f64 = 0.75;
/// Part of the samples of a burst from which a process slept through it.
const THROUGH: f64 = 0.8;
/// Part of what a burst wrote up to which a process may have dirtied it by writing.
const LITTLE: f64 = 0.01;
/// Time between a command's start and the burst that it asks for, or between that and its end.
const NEAR: Nanos = Nanos::SECOND;
/// Utilisation from which a task may have waited for a device between two samples.
const BUSY: f64 = 0.25;

/// Whether two or more of these processes slept in an uninterruptible sleep in at least half of the samples that have them, as
/// tasks do that wait for storage again and again.
pub fn are_mostly_asleep(window: &Window, waiters: &[Waiter]) -> bool {
    let all = seen(window, waiters);
    let mostly = all.values().filter(|seen| seen.readings >= OFTEN_READ && 2 * seen.asleep.len() >= seen.readings);
    mostly.count() >= 2
}

/// Returns whether a waiter slept for another device than this one, as far as samples tell. `by_state` is whether only the states in the
/// samples tell of some waiters.
pub(super) fn elsewhere<'d>(
    derived: &'d Derived<'_>,
    device: &Device<'_>,
    by_state: bool,
) -> impl Fn(&Waiter) -> bool + use<'d> {
    let by_state = by_state.then(|| derived.not_for(device)).flatten();
    let apart = apart::for_other_disks(derived, device);
    move |waiter| {
        // A trace has the waits of all threads. The kernel's count and the states have those of the first one.
        (waiter.longest_s.is_none() && apart.contains(&waiter.pid))
            || (waiter.seconds.is_none() && by_state.is_some_and(|pids| pids.contains(&waiter.pid)))
    }
}

/// Whether only the states in the samples tell of some waiters: not how long they waited.
pub fn tell_of_waiters(derived: &Derived<'_>) -> bool {
    derived.waiters().into_iter().flatten().any(|waiter| waiter.seconds.is_none())
}

/// A process in the samples.
#[derive(Default)]
struct Seen {
    /// Times of the samples in which it slept.
    asleep: Vec<Nanos>,
    /// Samples with it.
    readings: usize,
}

/// These processes in the samples, by process id, in one pass: a host has thousands of processes, and most of them may wait.
fn seen(window: &Window, waiters: &[Waiter]) -> BTreeMap<u32, Seen> {
    let mut all: BTreeMap<u32, Seen> = waiters.iter().map(|waiter| (waiter.pid, Seen::default())).collect();
    for (id, span) in &window.processes {
        let Some(Entity::Process { pid, .. }) = window.entities.get(id) else { continue };
        if let Some(seen) = all.get_mut(pid) {
            seen.asleep.extend(window.asleep.get(id).into_iter().flatten());
            seen.readings += span.readings as usize;
        }
    }
    all
}

/// Whether each of these is known to have waited for less than this part of the time, by what was counted or by its states in enough
/// samples, none of them through two samples, and they seldom slept at the same time.
pub fn wait_rarely_and_in_turn(derived: &Derived<'_>, waiters: &[Waiter], share: f64) -> bool {
    let window = derived.window;
    let all = seen(window, waiters);
    let place = |at: &Nanos| window.host_series.partition_point(|(time, _)| time.monotonic < *at);
    // A wait that two samples saw is a long one.
    let lasts = |seen: &Seen| seen.asleep.windows(2).any(|pair| place(&pair[0]) + 1 == place(&pair[1]));
    let is_rarely_asleep =
        |seen: &Seen| seen.readings >= OFTEN_READ && (seen.asleep.len() as f64) < share * seen.readings as f64;
    let waits_rarely = |waiter: &Waiter| match waiter.seconds {
        Some(seconds) => seconds < share * derived.seconds,
        None => all.get(&waiter.pid).is_some_and(is_rarely_asleep),
    };
    let times: BTreeSet<&Nanos> = all.values().flat_map(|seen| &seen.asleep).collect();
    let together: usize = all.values().map(|seen| seen.asleep.len()).sum();
    let in_turn = !times.is_empty() && together < 2 * times.len();
    in_turn && waiters.iter().all(waits_rarely) && !all.values().any(lasts)
}

/// Programs that were seen asleep in a time no more often than outside it, by process id: they did not wait for what happened
/// then. Processes of one program in one cgroup count together. Empty where the samples do not tell.
pub fn as_usual(derived: &Derived<'_>, is_meant: impl Fn(Nanos) -> bool) -> BTreeSet<u32> {
    let window = derived.window;
    let times: Vec<(Nanos, bool)> =
        window.host_series.iter().map(|(at, _)| (at.monotonic, is_meant(at.monotonic))).collect();
    let inside = times.iter().filter(|(_, is_meant)| *is_meant).count();
    let all = derived.sleepers();
    if inside < COMPARED || times.len() - inside < COMPARED || all.has_unseen {
        return BTreeSet::new();
    }
    // Samples that are meant before each one.
    let mut meant = vec![0];
    meant.extend(times.iter().scan(0, |sum, (_, is_meant)| {
        *sum += usize::from(*is_meant);
        Some(*sum)
    }));
    let is_as_usual = |program: &&Program| {
        let (mut inside, mut outside) = (0, 0);
        for (from, to) in &program.spans {
            let (from, to) = (times.partition_point(|(at, _)| at < from), times.partition_point(|(at, _)| at <= to));
            let its = meant[to] - meant[from.min(to)];
            (inside, outside) = (inside + its, outside + (to - from.min(to)) - its);
        }
        let is_in = |at: &Nanos| times.binary_search_by_key(at, |(at, _)| *at).is_ok_and(|place| times[place].1);
        let slept = program.asleep.iter().filter(|at| is_in(at)).count();
        let part = (program.asleep.len() - slept) as f64 / outside.max(1) as f64;
        let usual = part * inside as f64;
        slept as f64 <= usual + BY_CHANCE * (usual * (1.0 - part).max(0.0)).sqrt()
    };
    all.programs.iter().filter(is_as_usual).flat_map(|program| program.pids.iter().copied()).collect()
}

/// Whether a program slept in a time, as far as samples tell, and not only as often as outside it; also where a thread may have
/// slept that no state shows.
pub(super) fn sleeps_more(derived: &Derived<'_>, is_meant: impl Fn(Nanos) -> bool) -> bool {
    let as_usual = as_usual(derived, &is_meant);
    let all = derived.sleepers();
    let slept = |program: &&Program| program.asleep.iter().any(|at| is_meant(*at));
    let is_other = |program: &Program| program.pids.iter().any(|pid| !as_usual.contains(pid));
    all.has_unseen || all.programs.iter().filter(slept).any(is_other)
}

/// Programs whose sleep, as far as samples tell, was not for a device because of others: they sleep as often while it idles, wait for
/// another journal, or for their own data. By process id.
pub fn not_for(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let mut pids = beside(derived, device);
    pids.extend(for_other_journals(derived, device));
    pids.extend(large_writers(derived, device));
    pids
}

/// Programs as [`as_usual`] finds them, for the time in which a device was busy.
fn beside(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let intervals = device.intervals();
    let is_busy = |interval: &Interval| interval.utilisation.is_none_or(|busy| busy >= BUSY);
    // A state at a sample is between two intervals.
    as_usual(derived, |at| intervals.iter().filter(|of| of.end >= at && load::start(of) <= at).any(is_busy))
}

/// Programs that were mostly asleep when the journal of a filesystem on another device was, and not with one on this device: they
/// wait for its commits. By process id. XFS and btrfs have no
/// such thread, so nothing shows who waits for their log.
fn for_other_journals(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let window = derived.window;
    let (mut here, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    let mut has_journal = false;
    for (id, entity) in &window.entities {
        let Entity::Process { comm, kthread: true, .. } = entity else { continue };
        let times = window.asleep.get(id).map_or(&[][..], Vec::as_slice);
        match is_journal_on(derived, comm, device) {
            Some(true) => {
                has_journal = true;
                here.extend(times);
            }
            Some(false) => elsewhere.extend(times),
            None => {}
        }
    }
    if !has_journal {
        return BTreeSet::new();
    }
    let waits_elsewhere = |program: &&Program| {
        let with = |journals: &BTreeSet<&Nanos>| program.asleep.iter().filter(|at| journals.contains(at)).count();
        let slept = program.asleep.len();
        slept >= COMPARED && 3 * with(&elsewhere) >= 2 * slept && 3 * with(&here) <= slept
    };
    let programs = derived.sleepers().programs.iter().filter(waits_elsewhere);
    programs.flat_map(|program| program.pids.iter().copied()).collect()
}

/// Whether a kernel thread is the journal of a filesystem on this device or on a partition of it; `None` if it is none of a known
/// device.
pub(super) fn is_journal_on(derived: &Derived<'_>, comm: &Name, device: &Device<'_>) -> Option<bool> {
    let of = comm.as_bytes().strip_prefix(b"jbd2/")?;
    let is_of = |one: &&Device<'_>| {
        let name = one.name.as_bytes();
        let next = of.strip_prefix(name).and_then(<[u8]>::first);
        // `sda1` and `nvme0n1p1`: a name that ends in a digit is followed by a letter.
        let ends_in_digit = name.last().is_some_and(u8::is_ascii_digit);
        next.is_some_and(|next| *next == b'-' || if ends_in_digit { *next == b'p' } else { next.is_ascii_digit() })
    };
    let all = derived.drains().iter().chain(derived.disks());
    let its = all.filter(is_of).max_by_key(|one| one.name.as_bytes().len())?;
    let lies_on = |upper: &Device<'_>, lower: &Device<'_>| upper.bottoms().iter().any(|one| one.id == lower.id);
    Some(its.id == device.id || lies_on(its, device) || lies_on(device, its))
}

/// Processes that dirtied about as much as a device wrote, and not more, where writeback fills it: one of them that sleeps while the
/// device is busy waits for its own data, unless its writers are paused at a strict limit.
fn large_writers(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let Some(written) = device.span.growth.written.filter(|written| written.0 > 0) else { return BTreeSet::new() };
    let bottoms = device.bottoms();
    let is_its = |disk: &Device<'_>| disk.id == device.id || bottoms.iter().any(|bottom| bottom.id == disk.id);
    let is_of_writeback = |load: &Load| load.seconds <= 0.0 || load.kind() == Kind::Writeback;
    let is_full_of_other = derived.loads().iter().any(|(disk, load)| is_its(disk) && !is_of_writeback(load));
    if strict::holds(derived, device) || is_full_of_other {
        return BTreeSet::new();
    }
    let about = ABOUT_ALL * written.0 as f64..=written.0 as f64 / ABOUT_ALL;
    let is_large =
        |writer: &&writer::Writer<'_>| writer.dirtied_bytes.is_some_and(|bytes| about.contains(&(bytes as f64)));
    writer::on_disk(derived, device).processes.iter().filter(is_large).map(|writer| writer.pid).collect()
}

/// The others without the one that asked for the bursts of a device: it alone slept, through all of one burst, it came or went with
/// that burst, and it neither read anything nor handed anything to a write call, as a command that syncs a filesystem or unmounts it.
/// It waits by design. It dirties a little, as writing allocates blocks.
pub fn without_asker(derived: &Derived<'_>, device: &Device<'_>, others: Vec<Waiter>) -> Vec<Waiter> {
    let [one] = others.as_slice() else { return others };
    let window = derived.window;
    let is_it = |id: &EntityId| matches!(window.entities.get(id), Some(Entity::Process { pid, .. }) if *pid == one.pid);
    let Some((id, span)) = window.processes.iter().find(|(id, _)| is_it(id)) else { return others };
    let is_idle = span.growth.wchar == Some(Bytes(0)) && span.growth.read_bytes == Some(Bytes(0));
    let dirtied = span.growth.write_bytes.map_or(0, |bytes| bytes.0);
    let slept = window.asleep.get(id).map_or(&[][..], Vec::as_slice);
    let is_new = window.host_series.first().is_some_and(|(first, _)| span.first_at > first.monotonic);
    let has_ended = window.host_series.last().is_some_and(|(last, _)| span.last_at < last.monotonic);
    let slept_through = |burst: &Burst| {
        let is_in = |at: Nanos| at > burst.from && at <= burst.to;
        let samples = window.host_series.iter().filter(|(at, _)| is_in(at.monotonic)).count();
        let asleep = slept.iter().filter(|at| is_in(**at)).count();
        let is_little = dirtied as f64 <= LITTLE * burst.flushed() as f64;
        let began = is_new && span.first_at.0.saturating_add(NEAR.0) >= burst.from.0;
        let is_of_it = began || (has_ended && span.last_at.0 <= burst.to.0.saturating_add(NEAR.0));
        is_of_it && is_little && samples >= COMPARED && asleep as f64 >= THROUGH * samples as f64
    };
    let is_asker = one.seconds.is_none()
        && is_idle
        && burst::all(derived, device).iter().any(|burst| burst.may_be_asked() && slept_through(burst));
    if is_asker { Vec::new() } else { others }
}

/// The waiters that may have waited in some times, which are in order: they were there, and samples do not show that they slept at
/// other times only.
pub fn only_meanwhile(derived: &Derived<'_>, mut waiters: Vec<Waiter>, times: &[(Nanos, Nanos)]) -> Vec<Waiter> {
    let window = derived.window;
    let meets = |from: Nanos, to: Nanos| {
        times.get(times.partition_point(|(_, end)| *end < from)).is_some_and(|(start, _)| *start <= to)
    };
    let mut may_have: BTreeSet<u32> = BTreeSet::new();
    for (id, span) in &window.processes {
        let Some(Entity::Process { pid, .. }) = window.entities.get(id) else { continue };
        let slept = window.asleep.get(id).map_or(&[][..], Vec::as_slice);
        let is_known = slept.len() >= COMPARED && span.readings as usize >= OFTEN_READ;
        if meets(span.first_at, span.last_at) && (!is_known || slept.iter().any(|at| meets(*at, *at))) {
            may_have.insert(*pid);
        }
    }
    waiters.retain(|waiter| waiter.longest_s.is_some() || may_have.contains(&waiter.pid));
    waiters
}

/// What the states in the samples show.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    /// The programs of which a process was seen asleep.
    programs: Vec<Program>,
    /// Whether a thread may have waited that no state shows.
    has_unseen: bool,
}

/// The processes of one program in one cgroup.
#[derive(Debug, Default)]
struct Program {
    pids: Vec<u32>,
    /// Times of the samples in which a process slept, one for each process.
    asleep: Vec<Nanos>,
    /// First and last sample with each process.
    spans: Vec<(Nanos, Nanos)>,
}

impl Sleepers {
    pub(super) fn of(window: &Window) -> Sleepers {
        let mut programs: BTreeMap<(&Name, Option<EntityId>), Program> = BTreeMap::new();
        for (id, span) in window.processes.iter() {
            let Some(Entity::Process { pid, comm, cgroup, kthread: false, .. }) = window.entities.get(id) else {
                continue;
            };
            let program = programs.entry((comm, *cgroup)).or_default();
            program.pids.push(*pid);
            program.asleep.extend(window.asleep.get(id).into_iter().flatten());
            program.spans.push((span.first_at, span.last_at));
        }
        let programs = programs.into_values().filter(|program| !program.asleep.is_empty()).collect();
        Sleepers { programs, has_unseen: has_unseen(window) }
    }
}

/// Whether a thread may have waited that no state shows: the state of a process is that of its first thread, and the pressure of
/// a cgroup counts all of them.
fn has_unseen(window: &Window) -> bool {
    let holds = |outer: &Name, inner: &Name| {
        let rest = inner.as_bytes().strip_prefix(outer.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
    };
    let slept: Vec<&Name> = window
        .asleep
        .keys()
        .filter_map(|id| match window.entities.get(id) {
            Some(Entity::Process { cgroup, .. }) => cgroup::path(window, (*cgroup)?),
            _ => None,
        })
        .collect();
    window.cgroups.iter().any(|(id, span)| {
        let is_pressed = span.growth.io_some.is_some_and(|waited| waited.as_secs_f64() >= PRESSED_S);
        let path = cgroup::path(window, *id).filter(|path| path.as_bytes().len() > 1);
        is_pressed && path.is_some_and(|path| !slept.iter().any(|of| holds(path, of)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::waiting::{others_on, waiters};
    use floodline_record::units::Count;
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    /// Two processes that are asleep in the samples of this many of each ten seconds.
    fn sessions(asleep: [f64; 2], seconds: u32) -> bool {
        let host = asleep.into_iter().zip(810..).fold(Fixture::healthy().seconds(seconds), |host, (of_ten, pid)| {
            host.process("postgres", pid, "/", move |t, row| {
                row.state = Some(Count(u64::from(if t % 10.0 < of_ten { b'D' } else { b'S' })));
            })
        });
        let window = host.window();
        are_mostly_asleep(&window, &waiters(&window).unwrap_or_default())
    }

    #[test]
    fn two_processes_that_sleep_half_of_the_time_are() {
        assert!(sessions([7.0, 6.0], 20));
        assert!(!sessions([7.0, 2.0], 20), "one of them rarely");
        assert!(!sessions([7.0, 6.0], 6), "too few samples");
    }

    /// A minute in which sda is busy for ten seconds, sampled twice a second. A mail server sleeps meanwhile, a shop in each third
    /// sample, and an order with the journal of sdb.
    fn busy_for_ten_seconds() -> Fixture {
        let busy = |t: f64| (t - 20.0).clamp(0.0, 10.0);
        let asleep = |is: bool| Some(Count(u64::from(if is { b'D' } else { b'S' })));
        let is_full = |t: f64| (20.5..=30.0).contains(&t);
        let commits = |t: f64| (22.0..27.0).contains(&t) || (40.0..41.0).contains(&t);
        let device = |host: Fixture, name: &'static str, busy: fn(f64) -> f64| {
            host.disk(name, move |t, row| {
                row.written = Some(Bytes(mib(20.0 * busy(t))));
                row.writes = Some(Count((20.0 * busy(t)) as u64));
                row.io_time = Some(secs(busy(t)));
                row.write_time = Some(secs(8.0 * busy(t)));
                row.weighted_io_time = Some(secs(30.0 * busy(t)));
            })
        };
        device(device(Fixture::healthy().every(0.5).seconds(60), "sda", busy), "sdb", |t| 0.01 * t)
            .process("mail", 900, "/", move |t, row| row.state = asleep(is_full(t)))
            .process("shop", 901, "/", move |t, row| row.state = asleep(((2.0 * t) as u64).is_multiple_of(3)))
            .process("order", 902, "/", move |t, row| row.state = asleep(commits(t)))
            .process("jbd2/sdb1-8", 90, "/", move |t, row| row.state = asleep(commits(t)))
            .process("jbd2/sda1-8", 91, "/", move |_, row| row.state = asleep(false))
    }

    fn others(host: &Fixture, disk: &str) -> Vec<String> {
        let window = host.window();
        let derived = Derived::of(&window);
        let disk = derived.disks().iter().find(|one| one.name.as_bytes() == disk.as_bytes()).expect("a disk");
        let found = others_on(&derived, disk, |_| false).expect("states show it");
        found.iter().map(Waiter::label).collect()
    }

    #[test]
    fn who_sleeps_as_often_while_a_disk_idles_does_not_wait_for_it() {
        let host = busy_for_ten_seconds();
        assert_eq!(others(&host, "sda"), ["mail[900]"]);
        let thread = host.cgroup("/db", |t, row| row.io_some = Some(secs((t - 20.0).clamp(0.0, 10.0))));
        assert_eq!(others(&thread, "sda"), ["shop[901]", "mail[900]"], "a thread may sleep that no state shows");
    }

    #[test]
    fn who_sleeps_with_the_journal_of_another_disk_waits_for_that() {
        let host = busy_for_ten_seconds();
        let own = host.process("jbd2/sda1-8", 91, "/", |t, row| {
            row.state = Some(Count(u64::from(if (22.0..27.0).contains(&t) { b'D' } else { b'S' })));
        });
        assert_eq!(others(&own, "sda"), ["mail[900]", "order[902]"], "both journals slept: either may be meant");
    }

    #[test]
    fn who_slept_alone_through_a_burst_and_wrote_nothing_asked_for_it() {
        let others = |bytes: u64, is_command: bool| {
            let is_full = |t: f64| (20.0..=30.0).contains(&t);
            let host = busy_for_ten_seconds()
                .host(|t, row| {
                    let busy = (t - 20.0).clamp(0.0, 10.0);
                    row.nr_dirty = Some(mib_pages(if t < 4.0 { 0.0 } else { 200.0 - 20.0 * busy }));
                    row.nr_written = Some(mib_pages(20.0 * busy));
                })
                .process("mail", 900, "/", move |t, row| {
                    row.state = Some(Count(u64::from(if is_full(t) { b'D' } else { b'S' })));
                    row.read_bytes = Some(Bytes(0));
                    row.wchar = Some(Bytes(if t < 15.0 { 0 } else { bytes }));
                    row.write_bytes = Some(Bytes(if t < 30.0 { 0 } else { 8192 }));
                });
            let mut window = host.window();
            if is_command {
                let is_it = |id: &EntityId| matches!(window.entities.get(id), Some(Entity::Process { pid: 900, .. }));
                let id = *window.asleep.keys().find(|id| is_it(id)).expect("it slept");
                let from = window.asleep[&id][0];
                window.processes.get_mut(&id).expect("it is there").first_at = from;
            }
            let derived = Derived::of(&window);
            let disk = derived.disks().iter().find(|one| one.name.as_bytes() == b"sda").expect("a disk");
            assert_eq!(burst::all(&derived, disk).len(), 1);
            without_asker(&derived, disk, others_on(&derived, disk, |_| false).expect("states show it")).len()
        };
        assert_eq!(others(0, true), 0);
        assert_eq!(others(0, false), 1, "it is no command: stores to a mapping pass no write call");
        assert_eq!(others(4096, true), 1, "it wrote a page, whose fsync may wait for all");
    }

    #[test]
    fn who_dirtied_all_that_a_disk_wrote_waits_for_its_own_data() {
        let host =
            busy_for_ten_seconds().host(|t, row| row.nr_written = Some(mib_pages(20.0 * (t - 20.0).clamp(0.0, 10.0))));
        let host = host.process("mail", 900, "/", |t, row| {
            let is_full = (20.5..=30.0).contains(&t);
            row.state = Some(Count(u64::from(if is_full { b'D' } else { b'S' })));
            row.write_bytes = Some(Bytes(mib(20.0 * (t - 10.0).clamp(0.0, 10.0))));
        });
        assert_eq!(others(&host, "sda"), Vec::<String>::new());
    }

    #[test]
    fn a_large_writer_of_another_disk_is_a_victim() {
        let host = busy_for_ten_seconds().disk("sdb", |t, row| row.written = Some(Bytes(mib(60.0 * t)))).process(
            "mail",
            900,
            "/",
            |t, row| {
                let is_full = (20.5..=30.0).contains(&t);
                row.state = Some(Count(u64::from(if is_full { b'D' } else { b'S' })));
                row.write_bytes = Some(Bytes(mib(60.0 * t)));
            },
        );
        assert_eq!(others(&host, "sda"), ["mail[900]"]);
    }
}
