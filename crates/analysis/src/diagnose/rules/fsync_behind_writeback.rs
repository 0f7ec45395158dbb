// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `fsync-behind-writeback`: a task that must wait for a write waits behind the writeback of others, because the
//! disk's queue is full of it. This is a symptom: the finding names the tasks that wait and those that write. It is
//! kept apart from throttling (idle disks), from direct I/O and from reads. The writeback piles up because of
//! `dirty-cliff` or `dominant-writer`.
#![doc = include_str!("fsync_behind_writeback.md")]

use crate::advise::{step, threshold};
use crate::diagnose::database::{self, Database};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::{Device, Interval};
use crate::diagnose::waiting::{self, Waiter};
use crate::diagnose::{Rule, Verdict, attended, cgroup, load, missing, strict, synced, writer};
use crate::report::{Brief, Evidence, Finding, Severity, Step};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::units::Nanos;
use std::collections::BTreeMap;

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
    let queues: Vec<Queue<'_>> =
        disks.iter().map(|disk| short_waits(derived, disk).unwrap_or_else(|| queue(derived, disk))).collect();
    let is_slow = |queue: &&Queue<'_>| queue.slow_s >= NOTICED_S;
    let Some(worst) = queues.iter().filter(is_slow).max_by(|a, b| a.slow_s.total_cmp(&b.slow_s)) else {
        return Verdict::Clear(match pressure >= HURTS_MACHINE {
            true => format!(
                "tasks waited for I/O {} of the time, but no disk was full of writes and slow for a second in all",
                human::percent(pressure)
            ),
            false => "no disk was full of writes and slow for a second in all".to_owned(),
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
    let victims = database::waiting(derived);
    let others_on =
        |queue: &Queue<'_>| waiting::others_on(derived, &queue.device, |waiter| queue.causers.contains(&waiter.pid));
    let is_felt = |queue: &&&Queue<'_>| {
        let is_harm = || waiting::is_harm_by_syncs(derived, &queue.device, |pid| queue.causers.contains(&pid));
        queue.is_attended && (!victims.is_empty() || queue.pressure >= FELT_PRESSURE || is_harm())
    };
    let felt: Vec<&&Queue<'_>> = full.iter().filter(is_felt).collect();
    let with_others = |queue: &&&Queue<'_>| others_on(queue).is_none_or(|others| !others.is_empty());
    let found = felt
        .iter()
        .copied()
        .filter(with_others)
        .map(|queue| finding(derived, &Felt { queue, victims: &victims, others: others_on(queue).as_deref() }));
    let found: Vec<Finding> = found.collect();
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
        true => much_dirtied(derived),
        false => writer::dominant(derived.writers()).map(|(writer, _)| writer.pid).into_iter().collect(),
    };
    queue_from(derived, device, STALL_AWAIT_S, causers, load::is_queued)
}

/// The same with a lower limit, where many waits that are short one by one add up: for a good part of the window the disk
/// has a queue, and a program that dirties little waits for a good part of its time. Batches may be shorter than an interval:
/// only the time in which the disk was busy counts.
fn short_waits<'a>(derived: &Derived<'_>, device: &Device<'a>) -> Option<Queue<'a>> {
    let is_queued = |interval: &Interval| interval.queue.is_some_and(|queue| queue >= load::QUEUED);
    let queue = queue_from(derived, device, SHORT_AWAIT_S, much_dirtied(derived), is_queued);
    let pressed = queue.pressure * queue.slow_s;
    let pressure = if queue.busy_s > 0.0 { (pressed / queue.busy_s).min(1.0) } else { 0.0 };
    let queue = Queue { slow_s: queue.busy_s, pressure, is_of_batches: true, ..queue };
    // The waits must last: a batch that no task waits for harms none.
    let lasts = pressed >= NOTICED_S.max(load::LASTS_SHARE * derived.seconds);
    let others = || waiting::others_on(derived, device, |waiter| queue.causers.contains(&waiter.pid));
    let is_harm = lasts && queue.pressure >= FELT_PRESSURE && waiting::is_harm(derived, &others()?);
    is_harm.then_some(queue)
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
    };
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
        await_max_s: load.write_await_max_s,
        writeback_share: load.writeback_share,
        pressure: load.pressure.unwrap_or(0.0),
        is_attended,
    }
}

/// A full disk and the tasks that wait behind it.
struct Felt<'a> {
    queue: &'a Queue<'a>,
    victims: &'a [Database],
    /// Traced waits of other programs than the writer; absent without a trace.
    others: Option<&'a [Waiter]>,
}

fn finding(derived: &Derived<'_>, felt: &Felt<'_>) -> Finding {
    let owners = owners(derived, felt.victims);
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
        confirmed: synced::behind_others(derived.window),
        evidence: evidence(derived, felt, &owners),
        cause: cause(derived, &names),
        brief,
        devices: vec![felt.queue.device.name.to_string()],
        plan,
        trade_off,
        ..Finding::default()
    }
}

fn severity(derived: &Derived<'_>, felt: &Felt<'_>) -> Severity {
    // A moment in a long recording is not an incident, whichever tasks waited.
    let lasts = felt.queue.slow_s >= LASTS_SHARE * derived.seconds;
    let is_harm = !felt.victims.is_empty() || felt.others.is_some_and(|others| waiting::is_harm(derived, others));
    match (is_harm && lasts, felt.victims.is_empty()) {
        (true, _) => Severity::Critical,
        // Short, not very slow, and no client of a database waits for it.
        (false, true) if !lasts && felt.queue.await_max_s < LONG_AWAIT_S => Severity::Info,
        _ => Severity::Warning,
    }
}

fn summary(felt: &Felt<'_>) -> String {
    let disk = felt.queue.device.name;
    let (slow, longest) = (human::seconds(felt.queue.slow_s), human::seconds(felt.queue.await_max_s));
    let waiter = felt.others.and_then(|others| others.first().and_then(|first| Some((first.label(), first.seconds?))));
    match (felt.victims.first(), waiter) {
        (Some(victim), _) => format!(
            "{} waits {} of the time behind others' writeback: writes on {disk} take up to {longest}.",
            victim.label,
            human::percent(victim.pressure),
        ),
        (None, Some((waiter, seconds))) => format!(
            "{waiter} waited {} behind others' writeback: for {slow}, writes to {disk} took up to {longest}.",
            human::seconds(seconds),
        ),
        (None, None) => {
            format!("fsync callers queue behind writeback: for {slow}, writes to {disk} took up to {longest}.")
        }
    }
}

/// The cgroups that own most of the unwritten data, with their bytes, without those that wait.
fn owners(derived: &Derived<'_>, victims: &[Database]) -> Vec<(String, u64)> {
    let owned = cgroup::own_parts(derived.window, &derived.window.unwritten_max);
    let others = owned.iter().filter(|(id, _)| victims.iter().all(|victim| victim.cgroup != *id));
    others.take(3).map(|(id, bytes)| (derived.label(*id), *bytes)).collect()
}

fn evidence(derived: &Derived<'_>, felt: &Felt<'_>, owners: &[(String, u64)]) -> Vec<Evidence> {
    let mut evidence = queue_rows(felt.queue);
    evidence.extend(felt.victims.iter().take(3).map(|victim| {
        Evidence::share(format!("Time {} waited", victim.label), victim.pressure, "io.pressure some of its cgroup")
            .against(database::HURTS)
    }));
    evidence.extend(felt.others.into_iter().flatten().take(3).filter_map(Waiter::evidence));
    let cpu = derived.window.host.growth.psi_cpu_some.map(|time| (time.as_secs_f64() / derived.seconds).min(1.0));
    evidence
        .extend(cpu.map(|share| Evidence::share("Time with a task waiting for CPU", share, "/proc/pressure/cpu some")));
    evidence.extend(owners.iter().map(|(owner, bytes)| {
        Evidence::bytes(format!("Most dirty, {owner}"), *bytes, "memory.stat file_dirty + file_writeback")
    }));
    evidence.extend(writer_row(derived));
    evidence
}

fn cause(derived: &Derived<'_>, owners: &[&str]) -> String {
    let whose = match owners {
        [] => "The counters of cgroups do not show whose data it is.".to_owned(),
        some => format!("Most of what was dirty belongs to {}.", some.join(", ")),
    };
    let throttled = match derived.dirty.can_have_throttled {
        Some(true) => " Writers were over the freerun ceiling as well and were throttled.",
        Some(false) => " It is not throttling: the machine stayed below its freerun ceiling.",
        None => "",
    };
    format!(
        "The flusher hands the disk as much as the queue takes at once. An fsync is a few small writes, a journal commit and \
         a flush of the disk's cache. Each of them queues behind that. The thread that serves clients waits too. \
         {whose}{throttled}"
    )
}

fn brief(derived: &Derived<'_>, felt: &Felt<'_>, owners: &[&str]) -> Brief {
    let disk = felt.queue.device.name;
    let whose = match owners {
        [] => String::new(),
        some => format!(" Most of the data belongs to {}.", some.join(", ")),
    };
    let who: Vec<&str> = felt.victims.iter().take(3).map(|victim| victim.label.as_str()).collect();
    Brief {
        because: format!(
            "The kernel hands {disk} a large batch of unwritten data at once. Each fsync waits behind it.{whose}"
        ),
        who: who.join(", "),
        expect: match derived.is_outrun() || felt.queue.slow_s >= ALWAYS_FULL * derived.seconds {
            true => {
                "Programs write more than the disk can take. The disk is full either way, and each fsync waits about \
                 as long as now."
                    .to_owned()
            }
            false => "The batches get smaller, and each fsync waits for less.".to_owned(),
        },
        costs: "Pages that are rewritten often are written more often.".to_owned(),
    }
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
fn writer_row(derived: &Derived<'_>) -> Option<Evidence> {
    let writers = derived.writers();
    let first = writers.processes.first()?;
    let bytes = first.dirtied_bytes.filter(|bytes| *bytes >= MUCH)?;
    Some(Evidence::bytes(format!("Dirtied by {}", first.label()), bytes, "/proc/PID/io write_bytes"))
}

fn remedy(derived: &Derived<'_>, queue: &Queue<'_>) -> (Vec<Step>, String) {
    let outruns = derived.is_outrun();
    let advice = threshold::choose(&threshold::Needs::of(derived, derived.speed()))
        .filter(|advice| matches!(advice.pair, threshold::Pair::Bytes { .. }));
    let lower = advice.as_ref().and_then(|advice| threshold::lowering(derived, advice));
    let mut plan: Vec<Step> = lower.iter().flat_map(|pair| derived.sysctls(&pair.changes())).collect();
    let is_off = queue.device.facts.and_then(|facts| facts.wbt_lat) == Some(Nanos(0));
    let has_room = queue.device.utilisation().is_some_and(|busy| busy < HAS_ROOM);
    if is_off && has_room {
        let name = queue.device.name.to_string();
        plan.extend(step::device_setting("/sys/block", &name, "queue/wbt_lat_usec", "0", "-1"));
    }
    let faster = match (outruns, plan.is_empty()) {
        (true, _) => {
            "Programs dirty more than the disk writes. No setting cures that: the disk is full either way. Limit the writer \
             or give it another disk. "
        }
        (false, true) => "No threshold helps: the one in force already starts the flusher early. ",
        (false, false) => "",
    };
    let smaller = match plan.iter().any(|step| step.write.starts_with("/proc/sys/vm/")) {
        true => "With smaller bursts, pages that are rewritten often are written more often. ",
        false => "",
    };
    let throttling = match is_off && !has_room {
        true => {
            "Writeback throttling of the disk is off (wbt_lat_usec = 0). On a disk this busy it would make writeback slower \
             and waits longer. "
        }
        false => "",
    };
    (
        plan,
        format!(
            "{faster}{smaller}{throttling}Another disk for data that must be synchronous always helps (Redis: dir of the append-only \
             file; databases: the log). \
             A hard io.max for the writers is not advised: a capped writer that holds the filesystem's journal stops the \
             database as well."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use crate::diagnose::synced::tests::slow;
    use floodline_record::gap::Cause;
    use floodline_record::traced::waits::Operation;
    use floodline_record::units::{Bytes, Pages};
    use floodline_testkit::incidents::*;
    use floodline_testkit::{Fixture, dev_of, grows, mib, mib_pages, secs};

    /// A backup that fills the disk for the whole window, and Redis with an append-only file beside it.
    fn backup() -> Fixture {
        Fixture::healthy()
            .host(|t, row| {
                // The flusher writes all the time: the level stays near the background threshold.
                row.nr_dirty = Some(Pages(100_000));
                row.nr_dirtied = grows(t, 40_000_000, 24_000.0);
                row.nr_written = grows(t, 38_000_000, 24_000.0);
                row.psi_io_some = Some(secs(900.0 + 0.5 * t));
            })
            .disk("sda", |t, row| {
                row.written = grows(t, mib(9_000.0), 100e6);
                row.writes = grows(t, 9_000, 200.0);
                row.write_time = Some(secs(900.0 + 200.0 * 0.35 * t));
                row.io_time = Some(secs(600.0 + t));
                row.weighted_io_time = Some(secs(900.0 + 70.0 * t));
            })
            .cgroup("/system.slice/backup.service", |_, row| row.file_writeback = Some(Bytes(mib(90.0))))
            .process("tar", 700, "/system.slice/backup.service", |t, row| row.write_bytes = grows(t, 0, 100e6))
            .cgroup("/system.slice/redis.service", |t, row| row.io_some = Some(secs(1.0 + 0.4 * t)))
            .process("redis-server", 701, "/system.slice/redis.service", |t, row| row.write_bytes = grows(t, 0, 1e5))
    }

    #[test]
    fn a_database_behind_a_backup_is_critical_and_both_are_named() {
        check_rule(
            &RULE,
            &backup(),
            "critical: redis-server[701] waits 40 % of the time behind others' writeback: writes on sda take up to 350 ms.",
        );
        let Verdict::Found(findings) = check(&Derived::of(&backup().window())) else { panic!("not found") };
        assert!(findings[0].cause.contains("belongs to /system.slice/backup.service"), "{}", findings[0].cause);
    }

    #[test]
    fn writers_held_by_a_strict_limit_do_not_wait_behind_each_other() {
        use floodline_record::sample::CgroupRow;
        use floodline_record::units::{Flag, Ppm};
        let writers = || {
            let one = |fixture: Fixture, pid| {
                fixture.process("cp", pid, "/", |t, row| {
                    row.write_bytes = grows(t, 0, 50e6);
                    row.blkio_delay = Some(secs(0.4 * t));
                })
            };
            [702, 703].into_iter().fold(backup().process("tar", 700, "/", |_, _| {}), one)
        };
        let clear =
            "clear: sda was full of writeback and slow for 10 s, and no program other than the writer was seen to wait";
        let idle = |_: f64, row: &mut CgroupRow| row.io_some = Some(secs(1.0));
        let held = |mib_unwritten: f64| {
            writers()
                .cgroup("/system.slice/redis.service", idle)
                .host(|_, row| row.nr_dirty_threshold = Some(mib_pages(500.0)))
                .bdi("8:0", move |_, row| {
                    row.strict_limit = Some(Flag(1));
                    row.max_ratio = Some(Ppm(5000));
                    row.reclaimable = Some(Bytes(mib(mib_unwritten)));
                    row.writeback = Some(Bytes(0));
                })
        };
        check_rule(&RULE, &held(2.0), clear);
        check_rule(&RULE, &held(0.5), "critical: cp[702] waited 4.00 s behind others' writeback");
    }

    #[test]
    fn batches_shorter_than_an_interval_count_by_the_time_of_the_disk() {
        // In each second the disk is busy for this part of it, with 20 requests in flight, and tasks wait as long.
        let batches = |busy: f64, waits: f64| {
            backup()
                .cgroup("/system.slice/redis.service", |_, row| row.io_some = Some(secs(1.0)))
                .host(move |t, row| row.psi_io_some = Some(secs(900.0 + waits * t)))
                .disk("sda", move |t, row| {
                    row.write_time = Some(secs(900.0 + 200.0 * 0.08 * t));
                    row.io_time = Some(secs(600.0 + busy * t));
                    row.weighted_io_time = Some(secs(900.0 + 20.0 * busy * t));
                })
                .process("client", 702, "/", |t, row| row.blkio_delay = Some(secs(0.25 * t)))
        };
        check_rule(
            &RULE,
            &batches(0.5, 0.45),
            "critical: client[702] waited 2.50 s behind others' writeback: for 5.00 s",
        );
        check_rule(
            &RULE,
            &batches(0.5, 0.2),
            "clear: tasks waited for I/O 20 % of the time, but no disk was full of writes",
        );
        check_rule(&RULE, &batches(0.08, 0.08), "clear: no disk was full of writes");
    }

    #[test]
    fn a_moment_in_a_long_look_is_not_critical() {
        let busy = |t: f64| t.min(10.0);
        let moment = backup().seconds(300).disk("sda", move |t, row| {
            row.written = grows(busy(t), mib(9_000.0), 100e6);
            row.writes = grows(busy(t), 9_000, 200.0);
            row.write_time = Some(secs(900.0 + 200.0 * 0.35 * busy(t)));
            row.io_time = Some(secs(600.0 + busy(t)));
            row.weighted_io_time = Some(secs(900.0 + 70.0 * busy(t)));
        });
        check_rule(&RULE, &moment, "warning: redis-server[701] waits");
    }

    #[test]
    fn without_a_database_it_is_a_warning() {
        let nobody = backup().cgroup("/system.slice/redis.service", |_, row| row.io_some = Some(secs(1.0)));
        check_rule(&RULE, &nobody, "warning: fsync callers queue behind writeback");
        let calm = nobody.host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.02 * t)));
        check_rule(
            &RULE,
            &calm,
            "clear: sda was full of writeback and slow for 10 s, and tasks waited for I/O 2.0 % of that time",
        );
    }

    /// A task that waits for a journal commit does not count as waiting for I/O in the kernel.
    #[test]
    fn a_traced_wait_counts_where_pressure_does_not_show_it() {
        let calm = || {
            backup()
                .cgroup("/system.slice/redis.service", |_, row| row.io_some = Some(secs(1.0)))
                .host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.3 * t)))
        };
        let waits = |pid, ms, device| {
            let (parts, events) = slow((pid, Operation::Fdatasync, ms, device));
            calm().traced(parts, events)
        };
        check_rule(
            &RULE,
            &waits(701, 2_000, None),
            "critical: redis-server[701] waited 2.00 s behind others' writeback",
        );
        check_rule(&RULE, &waits(701, 200, None), "clear: sda was full of writeback and slow for 10 s");
        check_rule(&RULE, &waits(701, 2_000, Some(dev_of("sda"))), "critical: redis-server[701] waited");
        let other = waits(701, 2_000, Some(dev_of("sdb"))).disk("sdb", |_, _| {});
        check_rule(&RULE, &other, "clear: sda was full of writeback and slow for 10 s");
        // A sync of everything waits for all dirty data by design.
        let (parts, events) = slow((701, Operation::Sync, 5_000, None));
        check_rule(&RULE, &calm().traced(parts, events), "clear: sda was full of writeback and slow for 10 s");
        // The process that makes the writeback waits for its own data.
        check_rule(&RULE, &waits(700, 9_000, None), "clear: sda was full of writeback and slow for 10 s");
    }

    #[test]
    fn a_database_that_waits_for_its_own_writing_is_no_victim() {
        let own = backup()
            .process("tar", 700, "/system.slice/backup.service", |_, row| row.write_bytes = Some(Bytes(0)))
            .process("redis-server", 701, "/system.slice/redis.service", |t, row| row.write_bytes = grows(t, 0, 1e8));
        check_rule(&RULE, &own, "warning: fsync callers queue");
    }

    #[test]
    fn direct_writes_reads_and_throttling_are_told_apart() {
        let direct = backup().host(|t, row| row.nr_written = grows(t, 38_000_000, 10.0));
        check_rule(&RULE, &direct, "clear: sda was full and slow for 10 s, mostly by requests that are not writeback");
        let reads = backup().disk("sda", |t, row| row.read = grows(t, 0, 500e6));
        check_rule(&RULE, &reads, "clear: tasks waited for I/O 50 % of the time, but no disk was full of writes");
        let idle = backup().disk("sda", |t, row| row.io_time = Some(secs(600.0 + 0.2 * t)));
        check_rule(&RULE, &idle, "clear: tasks waited for I/O 50 % of the time, but no disk");
        check_rule(&RULE, &starved_budget_published(), "clear: tasks waited for I/O");
        check_rule(&RULE, &Fixture::healthy(), "clear: no disk was full of writes");
    }

    #[test]
    fn a_disk_with_writeback_throttling_off_gets_it_on_if_it_has_room() {
        let off = || backup().facts(|facts| facts.devices.iter_mut().for_each(|one| one.wbt_lat = Some(Nanos(0))));
        let found = |fixture: Fixture| {
            let Verdict::Found(mut findings) = check(&Derived::of(&fixture.window())) else { panic!("not found") };
            findings.remove(0)
        };
        let bursts = off().disk("sda", |t, row| {
            let busy = t.min(4.0);
            row.written = grows(busy, mib(9_000.0), 100e6);
            row.writes = grows(busy, 9_000, 200.0);
            row.write_time = Some(secs(900.0 + 200.0 * 0.35 * busy));
            row.io_time = Some(secs(600.0 + busy));
            row.weighted_io_time = Some(secs(900.0 + 70.0 * busy));
        });
        let last = found(bursts).plan.last().map(|step| step.command.clone());
        assert_eq!(last.as_deref(), Some("echo -1 > /sys/block/sda/queue/wbt_lat_usec"));
        let full = found(off());
        assert!(full.plan.iter().all(|step| !step.command.contains("wbt_lat_usec")), "{:?}", full.plan);
        assert!(full.trade_off.contains("wbt_lat_usec = 0"), "{}", full.trade_off);
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        check_rule(&RULE, &backup().one_look(), "not checked: /proc/diskstats (write await): observation too short");
        let no_psi = backup().without(Source::Pressure, Cause::Unsupported { since: "since 4.20".into() });
        check_rule(&RULE, &no_psi, "not checked: /proc/pressure/RESOURCE: not in this kernel (since 4.20)");
    }
}
