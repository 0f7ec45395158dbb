// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `fsync-behind-writeback`: a task that must wait for a write waits behind the writeback of others, because the
//! disk's queue is full of it. This is a symptom: the finding names the tasks that wait and those that write. It is
//! kept apart from throttling (idle disks), from direct I/O and from reads. The writeback piles up because of
//! `dirty-cliff` or `dominant-writer`.
#![doc = include_str!("fsync_behind_writeback.md")]

mod paused;
mod remedy;

use self::remedy::remedy;
use crate::advise::threshold;
use crate::diagnose::database::{self, Database};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Interval, array};
use crate::diagnose::waiting::{self, Waiter};
use crate::diagnose::{
    Rule, Verdict, asleep, attended, cgroup, crowded, elsewhere, limits, load, missing, released, short_limit, strict,
    synced, throttle, writer,
};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "fsync-behind-writeback",
    summary: "Databases and other callers of fsync wait behind the writeback of others",
    manual: include_str!("fsync_behind_writeback.md"),
    explains: &[],
    check,
};

/// Mean time of a write from which its caller notices the wait, seconds.
const STALL_AWAIT_S: f64 = 0.1;
/// The same where the waits of a task add up to a good part of the window, seconds.
const SHORT_AWAIT_S: f64 = 0.02;
/// Part of all dirtied bytes from which a process that waits does so for its own writes.
const MUCH_SHARE: f64 = 0.05;
/// Fewest seconds of such intervals that are worth a finding.
const NOTICED_S: f64 = 1.0;
/// Share of the window in which the disk was saturated and slow from which it is more than a moment.
const LASTS_SHARE: f64 = 0.1;
/// Mean time of a write from which even a moment counts, seconds.
const LONG_AWAIT_S: f64 = 0.5;
/// Share of the window with a task waiting for I/O from which a machine is hurt.
const HURTS_MACHINE: f64 = 0.2;
/// Part of the slow seconds with a task waiting from which they were felt.
const FELT_PRESSURE: f64 = 0.5;
/// Part of a disk's writes that must be writeback for writeback to be the cause.
const MOSTLY: f64 = 0.5;
/// Part of the window up to which a busy disk still has room. Writeback throttling makes writeback slower, so on a disk that
/// is nearly full more piles up. Measured on 6.1 and 6.12: with a disk 85 % busy, fsyncs took two to three times as long.
const HAS_ROOM: f64 = 0.6;
/// Part of the window in which a disk is full and slow from which it takes no more, whatever is set.
const ALWAYS_FULL: f64 = 0.6;
/// Part of the largest owner's unwritten data from which another owner is named beside it.
const OWNER_SHARE: f64 = 0.1;
/// Part of its waits that a writer's own bytes must explain for it to wait for them.
const OWN_PART: f64 = 0.5;
/// Bytes dirtied by one process from which it is named.
const MUCH: u64 = 1 << 20;

/// The disk that makes others wait.
struct Queue<'a> {
    device: Device<'a>,
    /// Process ids of programs that make the writeback: they wait for their own data.
    causers: Vec<u32>,
    /// From this on a write is slow, seconds.
    await_s: f64,
    /// Seconds in which it was saturated by writing and slow.
    slow_s: f64,
    /// Time in these seconds in which it had a request.
    busy_s: f64,
    /// Whether `slow_s` is that time: the batches may be shorter than an interval.
    is_of_batches: bool,
    await_max_s: f64,
    /// Part of the bytes written in these seconds that writeback completed.
    writeback_share: f64,
    /// Part of these seconds with a task waiting for I/O.
    pressure: f64,
    /// Whether a program can have waited for the disk in these seconds.
    is_attended: bool,
    /// Start and end of each of these intervals.
    slow: Vec<(Nanos, Nanos)>,
}

fn check(derived: &Derived<'_>) -> Verdict {
    if !derived.has_rates {
        return Verdict::NotChecked(vec![missing::needs_time(Source::Diskstats, "write await")]);
    }
    let disks = derived.disks();
    if disks.is_empty() {
        return derived.not_checked(Source::Diskstats, "no disk");
    }
    let Some(pressure) = derived.dirty.io_pressure_some else {
        return derived.not_checked(Source::Pressure, "io");
    };
    let queue_of = |device| short_waits(derived, device).unwrap_or_else(|| queue(derived, device));
    let mut queues: Vec<Queue<'_>> = disks.iter().map(queue_of).collect();
    let is_slow = |queue: &&Queue<'_>| queue.slow_s >= NOTICED_S;
    // A layer, such as encryption, may be slower than the disks below it. A limit of I/O holds requests back there as well.
    if !queues.iter().any(|queue| is_slow(&queue)) && limits::of_writes(derived).is_empty() {
        let is_layer = |drain: &&Device<'_>| !drain.is_loop() && disks.iter().all(|disk| disk.id != drain.id);
        queues.extend(derived.drains().iter().filter(is_layer).map(queue_of));
    }
    let Some(worst) = queues.iter().filter(is_slow).max_by(|a, b| a.slow_s.total_cmp(&b.slow_s)) else {
        return Verdict::Clear(match pressure >= HURTS_MACHINE {
            true => format!(
                "tasks waited for I/O {} of the time, but no disk was full for a second with writes of {} on average",
                human::percent(pressure),
                human::seconds(STALL_AWAIT_S)
            ),
            false => {
                format!("no disk was full for a second with writes of {} on average", human::seconds(STALL_AWAIT_S))
            }
        });
    };
    let of_writeback =
        |queue: &&Queue<'_>| queue.writeback_share >= MOSTLY && !is_full_of_other(derived, &queue.device);
    let full: Vec<&Queue<'_>> = queues.iter().filter(is_slow).filter(of_writeback).collect();
    if full.is_empty() {
        return Verdict::Clear(format!(
            "{} was full and slow for {}, mostly by requests that are not writeback: reads, direct I/O, or a journal",
            worst.device.name,
            human::seconds(worst.slow_s)
        ));
    }
    let databases = database::waiting(derived);
    let victims_on = |queue: &Queue<'_>| -> Vec<Database> {
        let elsewhere = elsewhere::cgroups_elsewhere(derived, &queue.device);
        databases.iter().filter(|one| !elsewhere.contains(&one.cgroup)).cloned().collect()
    };
    let others_on = |queue: &Queue<'_>| {
        // Where no program syncs, these wait at the limit, and not behind the data of others.
        let at_limit = match crowded::may_sync(derived, &queue.device) {
            true => BTreeSet::new(),
            false if strict::holds(derived, &queue.device) => all_writers_of(derived, &queue.device),
            false => short_limit::waiting_at_void_pair(derived, &queue.device),
        };
        let is_other = |pid: u32| queue.causers.contains(&pid) || at_limit.contains(&pid);
        let others = waiting::others_on(derived, &queue.device, |waiter| is_other(waiter.pid))?;
        let others = asleep::without_asker(derived, &queue.device, others);
        let others = asleep::only_meanwhile(derived, others, &queue.slow);
        Some(paused::split(derived, &queue.device, others))
    };
    let is_felt = |queue: &&&Queue<'_>| {
        let is_harm = || waiting::is_harm_by_syncs(derived, &queue.device, |pid| queue.causers.contains(&pid));
        queue.is_attended && (!victims_on(queue).is_empty() || queue.pressure >= FELT_PRESSURE || is_harm())
    };
    let felt: Vec<&&Queue<'_>> = full.iter().filter(is_felt).collect();
    // A strict limit pauses all that write to the device. Only a wait that was measured is one for others' writes.
    let is_measured = |others: &[Waiter]| others.iter().any(|waiter| waiter.waited().is_some());
    let with_others = |queue: &&&Queue<'_>| match (strict::holds(derived, &queue.device), others_on(queue)) {
        (true, others) => others.is_some_and(|(others, _)| is_measured(&others)),
        (false, others) => others.is_none_or(|(others, own)| !others.is_empty() || !own.is_empty()),
    };
    // The members of one array are full for one reason.
    let arrays = array::joined(
        derived,
        felt.iter().copied().filter(with_others).map(|queue| &**queue),
        |queue| queue.device,
        |queue| queue.slow_s,
    );
    let all = arrays.into_iter().map(|array| {
        let queue = array.worst;
        let (victims, (others, paused)) = (victims_on(queue), others_on(queue).unzip());
        let paused = paused.unwrap_or_default();
        Felt { queue, name: array.name, disks: array.disks, victims, others, paused, or_on: Vec::new(), or_slow_s: 0.0 }
    });
    let found: Vec<Finding> = told_once(all.collect()).iter().map(|felt| finding(derived, felt)).collect();
    let Some(first) = full.first().filter(|_| found.is_empty()) else { return Verdict::Found(found) };
    let waited = match felt.is_empty() {
        true if full.iter().all(|queue| !queue.is_attended) => "only the flusher used it meanwhile".to_owned(),
        true => format!("tasks waited for I/O {} of that time", human::percent(first.pressure)),
        false => "no program other than the writer was seen to wait for long".to_owned(),
    };
    let (disk, slow) = (first.device.name, human::seconds(first.slow_s));
    Verdict::Clear(format!("{disk} was full of writeback and slow for {slow}, and {waited}"))
}

/// Whether a load other than writeback fills a disk.
fn is_full_of_other(derived: &Derived<'_>, disk: &Device<'_>) -> bool {
    derived.loads().iter().any(|(one, load)| one.id == disk.id && load::is_full_of_other(derived, load))
}

/// Seconds in which a disk was saturated by writes and slow.
fn queue<'a>(derived: &Derived<'_>, device: &Device<'a>) -> Queue<'a> {
    // Each writer of a device at its strict limit waits at the limit, not behind the others.
    let causers = match strict::holds(derived, device) {
        true => writers_of(derived, device),
        false => writer::causers_on(derived, device),
    };
    queue_from(derived, device, STALL_AWAIT_S, causers, load::is_queued)
}

/// The same with a lower limit, where many waits that are short one by one add up: for a good part of the window the disk
/// has a queue, and a program that dirties little waits for a good part of its time. Batches may be shorter than an interval:
/// only the time in which the disk was busy counts.
fn short_waits<'a>(derived: &Derived<'_>, device: &Device<'a>) -> Option<Queue<'a>> {
    let is_queued = |interval: &Interval| interval.queue.is_some_and(|queue| queue >= load::QUEUED);
    let causers = if strict::holds(derived, device) { writers_of(derived, device) } else { much_dirtied(derived) };
    let queue = queue_from(derived, device, SHORT_AWAIT_S, causers, is_queued);
    let pressed = queue.pressure * queue.slow_s;
    let pressure = if queue.busy_s > 0.0 { (pressed / queue.busy_s).min(1.0) } else { 0.0 };
    let queue = Queue { slow_s: queue.busy_s, pressure, is_of_batches: true, ..queue };
    // The waits must last: a batch that no task waits for harms none.
    let lasts = pressed >= NOTICED_S.max(load::LASTS_SHARE * derived.seconds);
    let others = || {
        let others = waiting::others_on(derived, device, |waiter| queue.causers.contains(&waiter.pid))?;
        Some(asleep::only_meanwhile(derived, others, &queue.slow))
    };
    if !lasts || queue.pressure < FELT_PRESSURE {
        return None;
    }
    let others = others()?;
    (waiting::is_harm(derived, &others) || waiting::is_shared_harm(derived, &others)).then_some(queue)
}

/// Process ids of programs that dirtied a good part of all bytes.
fn much_dirtied(derived: &Derived<'_>) -> Vec<u32> {
    let writers = derived.writers();
    let much = MUCH_SHARE * writers.attributed_bytes() as f64;
    let mut dirtied: BTreeMap<u32, u64> = BTreeMap::new();
    for writer in &writers.processes {
        let its = dirtied.entry(writer.pid).or_default();
        *its = its.saturating_add(writer.dirtied_bytes.unwrap_or(0));
    }
    dirtied.into_iter().filter(|(_, bytes)| *bytes as f64 >= much).map(|(pid, _)| pid).collect()
}

/// Process ids of the writers of a device that nothing piles up for: those of a good part of its bytes, and those that wait about
/// as long as their own bytes take when the writers take turns. Many writers that are alike have a small part each.
fn writers_of(derived: &Derived<'_>, device: &Device<'_>) -> Vec<u32> {
    let on_disk = writer::on_disk(derived, device);
    let mut dirtied: BTreeMap<u32, f64> = BTreeMap::new();
    for writer in &on_disk.processes {
        *dirtied.entry(writer.pid).or_default() += writer.dirtied_bytes.unwrap_or(0) as f64;
    }
    dirtied.retain(|_, bytes| *bytes > 0.0);
    let (total, writing) = (dirtied.values().sum::<f64>(), dirtied.len() as f64);
    let waiters = derived.waiters().unwrap_or_default();
    let waited = |pid: u32| waiters.iter().find(|waiter| waiter.pid == pid).and_then(|waiter| waiter.seconds);
    let is_its_own = |pid: u32, bytes: f64| {
        let in_turns = bytes / total * derived.seconds * writing;
        bytes >= MUCH_SHARE * total || waited(pid).is_some_and(|waited| in_turns >= OWN_PART * waited)
    };
    dirtied.into_iter().filter(|(pid, bytes)| is_its_own(*pid, *bytes)).map(|(pid, _)| pid).collect()
}

/// Ids of the processes that dirty more data of a device than they read. A strict limit pauses each of them, however little it writes.
fn all_writers_of(derived: &Derived<'_>, device: &Device<'_>) -> BTreeSet<u32> {
    let on_disk = writer::on_disk(derived, device);
    let writes = |writer: &&writer::Writer<'_>| writer.dirtied_bytes.unwrap_or(0) > writer.read_bytes.unwrap_or(0);
    on_disk.processes.iter().filter(writes).map(|writer| writer.pid).collect()
}

/// Seconds in which a disk was saturated by writes, or had a queue of them, and a write took at least `await_s`.
fn queue_from<'a>(
    derived: &Derived<'_>,
    device: &Device<'a>,
    await_s: f64,
    causers: Vec<u32>,
    is_queued: impl Fn(&Interval) -> bool,
) -> Queue<'a> {
    let is_slow = |interval: &Interval| {
        (interval.is_saturated() || is_queued(interval))
            && interval.written_bytes >= interval.read_bytes
            && interval.writes >= interval.reads
            && interval.write_await_s.is_some_and(|seconds| seconds >= await_s)
            // `io-limit-throttling` names these.
            && !released::is_in(derived, device, interval)
    };
    // A layer's own counters have the time that its requests spend above the disks.
    let own: BTreeMap<Nanos, f64> = device
        .own_intervals()
        .iter()
        .filter(|interval| !device.is_bottom() && is_slow(interval))
        .filter_map(|interval| Some((interval.end, interval.write_await_s?)))
        .collect();
    let is_slow = |interval: &Interval| is_slow(interval) || own.contains_key(&interval.end);
    let load = load::of(derived, device, is_slow);
    let slow: Vec<Interval> = device.intervals().into_iter().filter(is_slow).collect();
    let is_attended = slow
        .first()
        .zip(slow.last())
        .is_some_and(|(first, last)| attended::may_be(derived, device, load::start(first), last.end));
    Queue {
        device: *device,
        causers,
        await_s,
        slow_s: load.seconds,
        busy_s: load.busy_s,
        is_of_batches: false,
        await_max_s: own.values().copied().fold(load.write_await_max_s, f64::max),
        writeback_share: load.writeback_share,
        pressure: load.pressure.unwrap_or(0.0),
        is_attended,
        slow: slow.iter().map(|interval| (load::start(interval), interval.end)).collect(),
    }
}

/// A full disk and the tasks that wait behind it.
struct Felt<'q, 'a> {
    /// The disk, or the member of an array that was full longest.
    queue: &'q Queue<'a>,
    /// The disk's name, or the array's with those of its full members.
    name: String,
    /// Names of the full disks.
    disks: Vec<String>,
    victims: Vec<Database>,
    /// Waits of other programs than the writer; absent where waits are not known.
    others: Option<Vec<Waiter>>,
    /// Writers that waited because of their own data.
    paused: Vec<Waiter>,
    /// Names of other full disks for which the same tasks may have waited instead, and the time in which these were slow, seconds.
    or_on: Vec<String>,
    or_slow_s: f64,
}

impl Felt<'_, '_> {
    /// Waits of other programs than the writer.
    fn others(&self) -> &[Waiter] {
        self.others.as_deref().unwrap_or_default()
    }

    /// Whether the waits of another disk are among those of this one, with the same task first: nothing shows for which of the two
    /// disks these tasks waited.
    fn has_waits_of(&self, other: &Felt<'_, '_>) -> bool {
        let pids = |felt: &Felt<'_, '_>| felt.others().iter().map(|waiter| waiter.pid).collect::<Vec<u32>>();
        let (own, others) = (pids(self), pids(other));
        let has_none = self.victims.is_empty() && other.victims.is_empty();
        has_none && !others.is_empty() && own.first() == others.first() && others.iter().all(|pid| own.contains(pid))
    }
}

/// Joins full disks whose waits are the same: each wait is told once, with the disk that was slow for longest.
fn told_once<'q, 'a>(all: Vec<Felt<'q, 'a>>) -> Vec<Felt<'q, 'a>> {
    let mut kept: Vec<Felt<'q, 'a>> = Vec::new();
    for mut felt in all {
        let is_same = |known: &&mut Felt<'_, '_>| known.has_waits_of(&felt) || felt.has_waits_of(known);
        let Some(known) = kept.iter_mut().find(is_same) else {
            kept.push(felt);
            continue;
        };
        let is_longer = known.has_waits_of(&felt) && felt.queue.slow_s > known.queue.slow_s;
        if !known.has_waits_of(&felt) || (is_longer && felt.has_waits_of(known)) {
            std::mem::swap(known, &mut felt);
        }
        known.or_slow_s += felt.queue.slow_s + felt.or_slow_s;
        known.or_on.extend([felt.name].into_iter().chain(felt.or_on));
        known.disks.extend(felt.disks);
    }
    kept
}

fn finding(derived: &Derived<'_>, felt: &Felt<'_, '_>) -> Finding {
    if felt.victims.is_empty() && felt.others().is_empty() && !felt.paused.is_empty() {
        return paused::finding(felt, writer_row(derived, &felt.queue.device), is_always_full(derived, felt.queue));
    }
    let owners = owners(derived, &felt.victims);
    let names: Vec<&str> = owners.iter().map(|(owner, _)| owner.as_str()).collect();
    let (plan, trade_off) = remedy(derived, felt.queue);
    let mut brief = brief(derived, felt, &names);
    if plan.is_empty() {
        // Without a change there are no smaller batches to expect.
        (brief.expect, brief.costs) = (trade_off.clone(), String::new());
    }
    Finding {
        rule: RULE.name,
        severity: severity(derived, felt),
        summary: summary(felt),
        confirmed: confirmed(derived, felt),
        evidence: evidence(derived, felt, &owners),
        cause: cause(derived, &felt.queue.device, &names),
        brief,
        devices: felt.disks.clone(),
        spans: felt.queue.slow.clone(),
        plan,
        trade_off,
        is_outrun: is_outrun(derived, felt.queue),
        ..Finding::default()
    }
}

/// The longest traced wait on this disk, of the program that the headline names where it has one.
fn confirmed(derived: &Derived<'_>, felt: &Felt<'_, '_>) -> Option<String> {
    let first = felt.others().first().filter(|_| felt.victims.is_empty());
    let filesystems = elsewhere::filesystems_on(derived, &felt.queue.device);
    synced::behind_others(derived.window, &filesystems, first.map(|waiter| waiter.pid))
}

fn severity(derived: &Derived<'_>, felt: &Felt<'_, '_>) -> Severity {
    // A moment in a long recording is not an incident, whichever tasks waited.
    let lasts = felt.queue.slow_s >= LASTS_SHARE * derived.seconds;
    // Behind writers that are paused, a sync waits for a journal commit or a log force, which only the states show.
    let whole = |one: &Waiter| if felt.paused.is_empty() { one.clone() } else { one.by_states() };
    let at_most =
        |seconds: f64| -> Vec<Waiter> { felt.others().iter().map(|one| whole(one).at_most(seconds)).collect() };
    let others = at_most(felt.queue.slow_s);
    let is_harm = !felt.victims.is_empty() || waiting::is_harm(derived, &others);
    // A wait for this disk ends when the disk has nothing to do.
    let busy_s = felt.queue.device.utilisation().unwrap_or(0.0) * derived.seconds;
    let behind_it = at_most(busy_s);
    match (is_harm && lasts, felt.victims.is_empty()) {
        (true, _) => Severity::Critical,
        // Short, not very slow, and no client of a database waits for it.
        // Several tasks waited for a good part of the window, though not only in the slowest seconds.
        (false, _) if waiting::is_shared_harm(derived, &behind_it) => Severity::Warning,
        (false, true) if !lasts && felt.queue.await_max_s < LONG_AWAIT_S => Severity::Info,
        _ => Severity::Warning,
    }
}

fn summary(felt: &Felt<'_, '_>) -> String {
    let disk = &felt.name;
    let (slow, longest) = (human::seconds(felt.queue.slow_s), human::seconds(felt.queue.await_max_s));
    let most_s = felt.queue.slow_s + felt.or_slow_s;
    let waiter = felt.others().first().and_then(|first| {
        let (waited, longest_s) = (first.waited()?, first.asleep_s.or(first.seconds)?);
        // The rest of its waits is not known to be behind this disk.
        let waited = if longest_s > most_s { format!("up to {}", human::seconds(most_s)) } else { waited };
        Some((first.label(), waited))
    });
    match (felt.victims.first(), waiter) {
        (Some(victim), _) => format!(
            "{} waits {} of the time behind others' writeback: writes on {disk} take up to {longest}.",
            victim.label,
            human::percent(victim.pressure),
        ),
        (None, Some((waiter, waited))) => {
            let on = match felt.or_on.split_last() {
                None => String::new(),
                Some((last, [])) => format!(" on {disk} or {last}"),
                Some((last, rest)) => format!(" on {disk}, {} or {last}", rest.join(", ")),
            };
            format!(
                "{waiter} waited {waited} behind others' writeback{on}: for {slow}, writes to {disk} took up to {longest}."
            )
        }
        (None, None) => {
            format!("fsync callers queue behind writeback: for {slow}, writes to {disk} took up to {longest}.")
        }
    }
}

/// The cgroups that own most of the unwritten data, with their bytes, without those that wait.
fn owners(derived: &Derived<'_>, victims: &[Database]) -> Vec<(String, u64)> {
    let owned = cgroup::own_parts(derived.window, &derived.window.unwritten_max);
    let others = owned.iter().filter(|(id, _)| victims.iter().all(|victim| victim.cgroup != *id));
    let mut owners = others.peekable();
    // A few pages beside the data of another cgroup are no part of most.
    let least = owners.peek().map_or(0.0, |(_, most)| OWNER_SHARE * *most as f64);
    let large = owners.take_while(|(_, bytes)| *bytes as f64 >= least);
    large.take(3).map(|(id, bytes)| (derived.label(*id), *bytes)).collect()
}

fn evidence(derived: &Derived<'_>, felt: &Felt<'_, '_>, owners: &[(String, u64)]) -> Vec<Evidence> {
    let mut evidence = queue_rows(felt.queue);
    evidence.extend(felt.victims.iter().take(3).map(|victim| {
        Evidence::share(format!("Time {} waited", victim.label), victim.pressure, "io.pressure some of its cgroup")
            .against(database::HURTS)
    }));
    evidence.extend(felt.others().iter().take(3).flat_map(Waiter::evidence));
    let cpu = derived.window.host.growth.psi_cpu_some.map(|time| (time.as_secs_f64() / derived.seconds).min(1.0));
    evidence
        .extend(cpu.map(|share| Evidence::share("Time with a task waiting for CPU", share, "/proc/pressure/cpu some")));
    evidence.extend(owners.iter().map(|(owner, bytes)| {
        Evidence::bytes(format!("Most dirty, {owner}"), *bytes, "memory.stat file_dirty + file_writeback")
    }));
    evidence.extend(writer_row(derived, &felt.queue.device));
    evidence
}

fn cause(derived: &Derived<'_>, device: &Device<'_>, owners: &[&str]) -> String {
    let whose = match (owners, program(derived, device)) {
        ([], Some((name, share))) => format!("{name} dirtied {} of the data for it.", human::percent(share)),
        ([], None) => "The counters of cgroups do not show whose data it is.".to_owned(),
        (some, _) => format!("Most of what was dirty belongs to {}.", some.join(", ")),
    };
    // Cgroups and strict devices have ceilings of their own: where pauses were traced, they count.
    let pauses = throttle::total(derived.window, None).map(|pauses| pauses.total.as_secs_f64());
    let throttled = match (pauses, derived.dirty.can_have_throttled) {
        (Some(paused), _) if paused > 0.0 => {
            format!(" Writers were paused for {} in dirty throttling as well.", human::seconds(paused))
        }
        (Some(_), _) => " Writers were not throttled: no pause was traced.".to_owned(),
        (None, Some(true)) => " Writers were over the freerun ceiling as well and were throttled.".to_owned(),
        (None, Some(false)) => {
            " The machine's dirty limit paused no writer: unwritten data stayed below the freerun ceiling.".to_owned()
        }
        (None, None) => String::new(),
    };
    format!(
        "The flusher sends the disk as many requests as its queue accepts. An fsync is a few small writes, a journal commit \
         and a flush of the disk's cache. Each of them queues behind these requests. In a database, the thread that serves \
         clients may wait too. {whose}{throttled}"
    )
}

fn brief(derived: &Derived<'_>, felt: &Felt<'_, '_>, owners: &[&str]) -> Brief {
    let disk = &felt.name;
    let whose = match owners {
        [] => String::new(),
        some => format!(" Most of the data belongs to {}.", some.join(", ")),
    };
    // Without a flush of the disk's cache, nothing shows that a program syncs. Where a task waits longer than the kernel counts, it waits
    // for a commit: its syncs are rare because they are slow.
    let commits = felt.others().iter().any(|one| one.asleep_s.is_some());
    let what = match commits || crowded::may_sync(derived, &felt.queue.device) {
        true => "fsync",
        false => "write that a task waits for",
    };
    let who: Vec<&str> = felt.victims.iter().take(3).map(|victim| victim.label.as_str()).collect();
    Brief {
        because: format!(
            "The kernel hands {disk} a large batch of unwritten data at once. Each {what} waits behind it.{whose}"
        ),
        who: match who.is_empty() {
            true => program(derived, &felt.queue.device)
                .map(|(name, _)| format!("{name} (dirtied most of the data)"))
                .unwrap_or_default(),
            false => who.join(", "),
        },
        expect: match is_always_full(derived, felt.queue) {
            true if is_outrun(derived, felt.queue) => format!(
                "Programs write more than the disk can take. The disk is full either way, and each {what} waits about \
                 as long as now."
            ),
            true => format!(
                "The disk is full of writeback for most of the time, and each {what} waits about as long as now."
            ),
            false => format!("The batches get smaller, and each {what} waits for less."),
        },
        costs: threshold::EARLIER.to_owned(),
    }
}

/// Whether programs dirty more than the disk writes, which is then busy nearly all the time.
fn is_outrun(derived: &Derived<'_>, queue: &Queue<'_>) -> bool {
    // Writers that are paused dirty as much as the disk writes, and would dirty more.
    let is_more = derived.is_outrun_on(&queue.device) || derived.dirty.can_have_throttled == Some(true);
    is_more && derived.has_no_time_left(&queue.device)
}

/// Whether the disk is full with any setting: programs dirty more than it writes, or it is slow nearly all the time.
fn is_always_full(derived: &Derived<'_>, queue: &Queue<'_>) -> bool {
    is_outrun(derived, queue) || queue.slow_s >= ALWAYS_FULL * derived.seconds
}

/// The processes of one program in one cgroup that dirtied most of a disk's data, named by the first one, and their part; `None` where no
/// program did.
fn program(derived: &Derived<'_>, device: &Device<'_>) -> Option<(String, f64)> {
    let on_disk = writer::on_disk(derived, device);
    let bytes = |one: &writer::Writer<'_>| one.dirtied_bytes.unwrap_or(0);
    let mut programs: BTreeMap<_, Vec<&writer::Writer<'_>>> = BTreeMap::new();
    for one in on_disk.processes.iter().filter(|one| !one.kthread && bytes(one) >= MUCH) {
        programs.entry((one.comm, one.cgroup)).or_default().push(one);
    }
    let sum = |of: &[&writer::Writer<'_>]| of.iter().map(|one| bytes(one)).fold(0, u64::saturating_add);
    let most = programs.into_values().max_by_key(|of| sum(of))?;
    let share = sum(&most) as f64 / on_disk.attributed_bytes().max(1) as f64;
    let name = match most.len() {
        1 => most[0].label(),
        all => format!("{} and {} more", most[0].label(), all - 1),
    };
    (share > writer::DOMINANT_SHARE).then_some((name, share))
}

/// Evidence of how slow the disk is, and of the cause.
fn queue_rows(queue: &Queue<'_>) -> Vec<Evidence> {
    let (full, time) = match queue.is_of_batches {
        true => (format!("{} busy with queued writes", queue.device.name), "that time"),
        false => (format!("{} full of writes and slow", queue.device.name), "these seconds"),
    };
    let of_writes = "/proc/diskstats write_time ÷ writes";
    vec![
        Evidence::seconds(full, queue.slow_s, "/proc/diskstats").against(NOTICED_S),
        Evidence::seconds("Write await, worst interval", queue.await_max_s, of_writes).against(queue.await_s),
        Evidence::share("Writeback among its writes", queue.writeback_share, load::SHARE_SOURCE).against(MOSTLY),
        Evidence::share(format!("Part of {time} with a task waiting"), queue.pressure, "/proc/pressure/io some")
            .against(FELT_PRESSURE),
    ]
}

/// The process that dirtied most, if that is much.
fn writer_row(derived: &Derived<'_>, device: &Device<'_>) -> Option<Evidence> {
    let writers = writer::on_disk(derived, device);
    let first = writers.processes.first()?;
    let bytes = first.dirtied_bytes.filter(|bytes| *bytes >= MUCH)?;
    Some(Evidence::bytes(format!("Dirtied by {}", first.label()), bytes, "/proc/PID/io write_bytes"))
}

#[cfg(test)]
mod tests;
