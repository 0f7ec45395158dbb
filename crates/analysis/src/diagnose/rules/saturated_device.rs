// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `saturated-device`: a disk is overloaded by reads, direct I/O, or the fsyncs of many tasks, not by writeback.
//! Other tasks wait for the disk, and no writeback setting is the cause. Where writeback fills the disk, `dirty-cliff`,
//! `dominant-writer` or `fsync-behind-writeback` applies.
#![doc = include_str!("saturated_device.md")]

use crate::diagnose::derived::Derived;
use crate::diagnose::device::array::{self, Joined};
use crate::diagnose::device::{self, Device};
use crate::diagnose::load::{self, Kind, LASTS_SHARE, Load};
use crate::diagnose::waiting::{self, Waiter};
use crate::diagnose::writer::{self, Writer, Writers};
use crate::diagnose::{Rule, Verdict, asleep, crowded, elsewhere, missing};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::id::{Entity, EntityId};
use std::collections::BTreeSet;

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "saturated-device",
    summary: "A disk is overloaded, and not by writeback: reads, direct I/O or fsyncs fill it",
    manual: include_str!("saturated_device.md"),
    explains: &["fsync-behind-writeback"],
    check,
};

/// Part of the busy time with a task waiting for I/O from which the load was felt.
const FELT_PRESSURE: f64 = 0.5;
/// Mean time of a read or write from which waiting for one is noticed, seconds.
const SLOW_S: f64 = 0.02;
/// Mean time of a write in the worst interval from which tasks were held up, seconds.
const STALLED_S: f64 = 0.1;
/// Mean time of a write up to which programs that sync all the time meet no queue.
const QUICK_S: f64 = 0.005;
/// Part of the window in which a disk is busy from which it has little room.
const MOSTLY: f64 = 0.5;
/// Part of the load on the disk from which a process that waits does so for its own requests.
const PART_OF_LOAD: f64 = 0.05;
/// Part of the load on the disk from which one program makes most of it, kernel threads left out: what the thread of a loop device
/// writes is another program's.
const MOST: f64 = 2.0 / 3.0;
/// Part of the load on the disk from which one process alone fills it.
const ALONE: f64 = 0.8;

/// Writes per second on a disk full of reads from which a program may wait for them.
const WRITES_RATE: f64 = 0.5;
/// Part of the load up to which writeback has no part in the waits.
const LITTLE_WRITEBACK: f64 = 0.2;
/// Part of the mean load of a process from which a reader takes part in the load as much as the others.
const FAIR_PART: f64 = 0.5;

/// A process and its part of the load on the disk.
struct Causer {
    id: EntityId,
    pid: u32,
    cgroup: Option<EntityId>,
    /// Process id of its only child of the same name, which is counted with it.
    child: Option<u32>,
    label: String,
    bytes: u64,
    share: f64,
}

impl Causer {
    fn is(&self, pid: u32) -> bool {
        self.pid == pid || self.child == Some(pid)
    }

    /// Its name without the process id.
    fn program(&self) -> &str {
        self.label.rsplit_once('[').map_or(self.label.as_str(), |(name, _)| name)
    }
}

/// The processes of the one program of one cgroup that reads nearly all of a disk. They wait for their own reads.
fn readers_of_one_program(causers: &[Causer]) -> Option<Vec<&Causer>> {
    let first = causers.first()?;
    let is_its = |one: &&Causer| (one.program(), one.cgroup) == (first.program(), first.cgroup);
    let readers: Vec<&Causer> = causers.iter().filter(is_its).collect();
    (readers.iter().map(|one| one.share).sum::<f64>() >= ALONE).then_some(readers)
}

fn check(derived: &Derived<'_>) -> Verdict {
    if !derived.has_rates {
        return Verdict::NotChecked(vec![missing::needs_time(Source::Diskstats, "io_time")]);
    }
    let disks = derived.disks();
    if disks.is_empty() {
        return derived.not_checked(Source::Diskstats, "no disk");
    }
    if derived.dirty.io_pressure_some.is_none() {
        return derived.not_checked(Source::Pressure, "io");
    }
    let loads = derived.loads();
    let full = loads.iter().filter(|(_, load)| load::is_full_of_other(derived, load));
    // The members of one array are full for one reason.
    let arrays = array::joined(derived, full, |(disk, _)| *disk, |(_, load)| load.share);
    let findings: Vec<Finding> = arrays.into_iter().filter_map(|array| finding(derived, array)).collect();
    if !findings.is_empty() {
        return Verdict::Found(findings);
    }
    Verdict::Clear(match loads.iter().max_by(|one, other| one.1.seconds.total_cmp(&other.1.seconds)) {
        Some((disk, load)) if load.seconds > 0.0 => {
            let by = match load.kind() {
                Kind::Reads => "reads",
                Kind::Writeback => "writeback",
                Kind::Waited => "writes that are not writeback",
            };
            format!("{}, the busiest disk, was busy for {}, mostly with {by}", disk.name, human::seconds(load.seconds))
        }
        _ => "no disk was busy for three quarters of any interval".to_owned(),
    })
}

/// Processes by their part of the load on the disk, most first. What a process inherited from children that samples saw
/// belongs to the children. A cgroup that was seen to use other disks and sent no request to this one makes none of its load:
/// tasks wait for such writes, so these writes cannot still be in memory.
fn causers(derived: &Derived<'_>, disk: &Device<'_>, kind: Kind, writers: &Writers<'_>) -> Vec<Causer> {
    let is_elsewhere = elsewhere::cgroups_elsewhere(derived, disk);
    let is_wanted = |writer: &Writer<'_>| writer.cgroup.is_none_or(|cgroup| !is_elsewhere.contains(&cgroup));
    let of = |writer: &Writer<'_>| {
        let bytes = match kind {
            Kind::Reads => writer.read_bytes?,
            _ => writer.dirtied_bytes?,
        };
        let is_one = bytes > 0 && !writer.kthread;
        let label = || writer.label();
        let (id, pid, cgroup) = (writer.id, writer.pid, writer.cgroup);
        is_one.then(|| Causer { id, pid, cgroup, child: None, label: label(), bytes, share: 0.0 })
    };
    let wanted = writers.processes.iter().filter(|writer| is_wanted(writer));
    let mut causers = with_their_child(derived, wanted.filter_map(of).collect());
    let total = causers.iter().map(|causer| causer.bytes).fold(0, u64::saturating_add).max(1);
    for causer in &mut causers {
        causer.share = causer.bytes as f64 / total as f64;
    }
    causers.sort_by_key(|causer| (std::cmp::Reverse(causer.bytes), causer.id));
    causers
}

/// Counts a process and its only child of the same name as one: such a program works in the child, and inherits the counters of
/// the reaped child. Several children of one program are several clients of the disk.
fn with_their_child(derived: &Derived<'_>, causers: Vec<Causer>) -> Vec<Causer> {
    let name = |causer: &Causer| causer.label.split('[').next().map(str::to_owned);
    let parent = |causer: &Causer| {
        let ppid = derived.window.processes.get(&causer.id)?.last.ppid?;
        causers.iter().position(|one| u64::from(one.pid) == ppid.0 && name(one) == name(causer))
    };
    let parents: Vec<Option<usize>> = causers.iter().map(parent).collect();
    let is_only = |at: usize| parents.iter().filter(|parent| **parent == Some(at)).count() == 1;
    let is_merged = |at: usize| parents[at].filter(|parent| is_only(*parent) && parents[*parent].is_none());
    let children: Vec<(usize, u32, u64)> =
        causers.iter().enumerate().filter_map(|(at, child)| Some((is_merged(at)?, child.pid, child.bytes))).collect();
    let kept: Vec<bool> = (0..causers.len()).map(|at| is_merged(at).is_none()).collect();
    let mut causers = causers;
    for (parent, pid, bytes) in children {
        let one = &mut causers[parent];
        (one.child, one.bytes) = (Some(pid), one.bytes.saturating_add(bytes));
    }
    causers.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(causer, _)| causer).collect()
}

fn evidence(
    disk: &Device<'_>,
    load: &Load,
    pressure: f64,
    (kind, causers): (Kind, &[Causer]),
    (first, others): (Option<&Waiter>, Option<&[Waiter]>),
) -> Vec<Evidence> {
    let per_second = |count: f64| count / load.seconds;
    let mut evidence = vec![
        Evidence::share(format!("{} busy, part of the window", disk.name), load.share, "/proc/diskstats io_time")
            .against(LASTS_SHARE),
        Evidence::per_second("Reads while busy", per_second(load.reads), "/proc/diskstats reads"),
        Evidence::per_second("Writes while busy", per_second(load.writes), "/proc/diskstats writes"),
        Evidence::rate("Read while busy", per_second(load.read_bytes), "/proc/diskstats read"),
        Evidence::rate("Written while busy", per_second(load.written_bytes), "/proc/diskstats written"),
        Evidence::share("Writeback among its writes", load.writeback_share, load::SHARE_SOURCE).against(0.5),
        Evidence::seconds("Mean time of a write while busy", load.write_await_s, "/proc/diskstats write_time ÷ writes")
            .against(SLOW_S),
        Evidence::share("Busy time with a task waiting", pressure, "/proc/pressure/io some").against(FELT_PRESSURE),
    ];
    evidence.extend(causers.iter().take(3).map(|causer| {
        let (what, source) = match kind {
            Kind::Reads => ("Read", "/proc/PID/io read_bytes"),
            _ => ("Written", "/proc/PID/io write_bytes"),
        };
        Evidence::bytes(format!("{what} by {}", causer.label), causer.bytes, source)
    }));
    let others = others.unwrap_or_default();
    let rest = others.iter().filter(|waiter| first.is_none_or(|first| first.pid != waiter.pid));
    evidence.extend(first.into_iter().chain(rest).take(3).flat_map(Waiter::evidence));
    evidence
}

fn finding(derived: &Derived<'_>, array: Joined<&(Device<'_>, Load)>) -> Option<Finding> {
    let (disk, load) = array.worst;
    let pressure = load.pressure?;
    let kind = load.kind();
    // A process that dirtied more than the disk wrote writes to another one.
    let on_it = writer::on_disk(derived, disk);
    let causers = causers(derived, disk, kind, if kind == Kind::Reads { derived.writers() } else { &on_it });
    let alone = causers.first().filter(|causer| causer.share >= ALONE);
    // One writer belongs to `dominant-writer`, which has its dirtied bytes and a way to reduce them, unless reads fill the
    // disk as well.
    let is_one =
        !writer::causers(derived.window, &on_it).is_empty() || causers.first().is_some_and(|one| one.share >= MOST);
    if kind != Kind::Reads && !load.is_mixed() && is_one {
        return None;
    }
    let readers = readers_of_one_program(&causers).filter(|_| kind == Kind::Reads).unwrap_or_default();
    let committing = committing(derived, disk, &on_it, &readers);
    let is_reader_of_it =
        |waiter: &Waiter| readers.iter().any(|causer| causer.is(waiter.pid)) && !committing.contains(&waiter.pid);
    // A program that syncs on this disk waits for its writes, which may be too short or of a kind that no counter and no state shows.
    let has_writers = load.writes >= WRITES_RATE * load.seconds;
    let is_causer = |waiter: &Waiter| {
        alone.is_some_and(|causer| causer.is(waiter.pid)) || (!has_writers && is_reader_of_it(waiter))
    };
    let idle = without_requests(derived, load);
    let is_out = |waiter: &Waiter| is_causer(waiter) || idle.contains(&waiter.pid);
    let others = match kind {
        Kind::Reads => waiting::readers_on(derived, disk, is_out),
        Kind::Writeback | Kind::Waited => waiting::others_on(derived, disk, is_out),
    };
    let others = others.or_else(|| is_its_own(derived, alone?, &idle).then(Vec::new));
    let others = others.map(|others| without_passing(derived, load, others));
    // Quick requests of tasks that ask for them all the time keep a disk busy, and it has room for more.
    let is_part = |waiter: &Waiter| causers.iter().any(|c| c.is(waiter.pid) && c.share >= PART_OF_LOAD);
    // A short deep queue hides in the mean of a long look, and shows in its worst interval.
    let is_in_turn = disk.is_one_at_a_time() && load.write_await_max_s < STALLED_S;
    let is_queue_of_theirs = kind != Kind::Reads && load.write_await_s >= QUICK_S && !is_in_turn;
    let has_victims = others.iter().flatten().any(|waiter| is_queue_of_theirs || !is_part(waiter));
    // Where each request is quick, tasks that sync often wait for a few of them at a time, which is no harm by itself.
    let is_harm = others
        .as_ref()
        .is_some_and(|others| waiting::is_harm(derived, others) || waiting::is_shared_harm(derived, others));
    let is_slow = load.write_await_s >= SLOW_S || load.read_await_s >= SLOW_S || (has_victims && is_harm);
    // The kernel does not count a wait for a journal commit as I/O pressure. The states of the processes show it.
    let is_asleep =
        kind == Kind::Waited && others.as_ref().is_some_and(|others| asleep::are_mostly_asleep(derived.window, others));
    // Readers that each make as large a part of the load as the others wait for one another. They ask for more than the disk can do
    // where it has no time left.
    let fair = FAIR_PART / causers.len().max(1) as f64;
    let is_reader = |waiter: &Waiter| causers.iter().any(|causer| causer.is(waiter.pid) && causer.share >= fair);
    let is_among_readers = |others: &[Waiter]| kind == Kind::Reads && others.iter().all(is_reader);
    let severity = match &others {
        _ if (pressure < FELT_PRESSURE && !is_asleep) || !is_slow => return None,
        // A process that fills a disk alone delays only itself.
        Some(others) if others.is_empty() => Severity::Info,
        Some(others) if load.share < MOSTLY && is_among_readers(others) => Severity::Info,
        // Other programs write, and nothing shows how long they wait.
        Some(others) if others.iter().all(is_reader_of_it) => Severity::Warning,
        Some(others) if is_asleep || waiting::is_harm(derived, &as_seen(derived, others)) => Severity::Critical,
        // The disk has room for most of the time, and nothing waits for long.
        Some(others)
            if load.share < MOSTLY
                && !is_harm
                && asleep::wait_rarely_and_in_turn(derived, others, waiting::HARM_SHARE) =>
        {
            Severity::Info
        }
        _ => Severity::Warning,
    };
    let with = match kind {
        Kind::Reads => "reads",
        _ if load.is_mixed() => "reads and writes that tasks wait for (fsync, direct I/O)",
        _ if load.mean_write() <= device::SMALL_WRITE => "small writes that tasks wait for (fsync, direct I/O)",
        _ if load.is_synced => "writes that tasks sync at once (fsync)",
        _ => "writes past the page cache (direct I/O)",
    };
    // A task that waits for the requests of others says more than one of those that make the load.
    let is_behind = |waiter: &&Waiter| !is_reader_of_it(waiter);
    let first = |others: &[Waiter]| {
        let outside = others.iter().find(|waiter| !is_part(waiter));
        outside.or(others.iter().find(is_behind)).or(others.first()).cloned()
    };
    let first = others.as_deref().and_then(first);
    // A reader waits for the reads of its own program.
    let who = first.as_ref().map(|waiter| match is_reader_of_it(waiter) {
        true if load.write_await_s >= SLOW_S => format!("a write takes {}", human::seconds(load.write_await_s)),
        true => "its readers wait for each other".to_owned(),
        false => waits(derived, waiter),
    });
    let is_little = load.writeback_part() < LITTLE_WRITEBACK;
    let summary = format!(
        "{} is busy {} of the time with {with}{}. {}",
        array.name,
        human::percent(load.share),
        who.as_ref().map(|who| format!("; {who}")).unwrap_or_default(),
        if is_little { "Writeback is not the reason." } else { "Writeback is the smaller part of its load." },
    );
    let evidence = evidence(disk, load, pressure, (kind, &causers), (first.as_ref(), others.as_deref()));
    let most = match causers.as_slice() {
        [] => "No counter shows which process does it.".to_owned(),
        [one] => format!("{} does all of it.", one.label),
        [first, ..] if first.share >= ALONE => format!("{} does nearly all of it.", first.label),
        [first, ..] => {
            format!("{} processes share it; {} has {} of it.", causers.len(), first.label, human::percent(first.share))
        }
    };
    Some(Finding {
        rule: RULE.name,
        severity,
        summary,
        evidence,
        cause: format!(
            "On a disk that is always busy, each request waits for those before it. The dirty thresholds decide when \
             dirty data are written. They do not affect this load. {most}"
        ),
        brief: Brief {
            because: format!(
                "{} receives more requests than it can complete, mostly {with}. {}",
                array.name,
                if is_little { "Writeback is not the reason." } else { "Writeback is the smaller part." }
            ),
            who: named(&causers),
            expect: trade_off(kind, load).to_owned(),
            costs: String::new(),
        },
        devices: array.disks,
        trade_off: trade_off(kind, load).to_owned(),
        waited_s: first.and_then(|first| first.seconds.or(first.asleep_s)),
        ..Finding::default()
    })
}

/// These waiters without those that have quick requests one after the other, and wait for each as long as it takes. `load` has the mean
/// sizes. A program that commits waits for several requests at a time: for each piece that it writes, it waits longer.
fn without_passing(derived: &Derived<'_>, load: &Load, mut waiters: Vec<Waiter>) -> Vec<Waiter> {
    let is_quick = |seconds: f64| seconds < SLOW_S;
    if !is_quick(load.write_await_s) || !is_quick(load.read_await_s) || load.write_await_max_s >= STALLED_S {
        return waiters;
    }
    let mean = |bytes: f64, requests: f64| if requests > 0.0 { bytes / requests } else { f64::INFINITY };
    let (read, written) = (mean(load.read_bytes, load.reads), load.mean_write());
    let pieces = |writer: &Writer<'_>| {
        let of = |bytes: Option<u64>, mean: f64| bytes.unwrap_or(0) as f64 / mean.max(f64::MIN_POSITIVE);
        of(writer.read_bytes, read) + of(writer.dirtied_bytes, written)
    };
    let processes = &derived.writers().processes;
    waiters.retain(|waiter| {
        let pieces: f64 = processes.iter().filter(|writer| writer.pid == waiter.pid).map(pieces).sum();
        let waited = waiter.asleep_s.or(waiter.seconds);
        let is_rare = waited.is_some_and(|waited| waited < MOSTLY * derived.seconds);
        let is_each_quick = waited.is_some_and(|waited| pieces > 0.0 && is_quick(waited / pieces));
        !is_rare || !is_each_quick || waiter.longest_s.is_some_and(|longest| longest >= waiting::HARM_ONCE_S)
    });
    waiters
}

/// These waiters, each with half of its time by the states in the samples where nothing counts delays: few samples may show twice as much
/// as there was.
fn as_seen(derived: &Derived<'_>, waiters: &[Waiter]) -> Vec<Waiter> {
    let is_counted = waiting::are_delays_counted(derived.window);
    let at_least = |one: &Waiter| one.seconds.or(one.asleep_s.filter(|_| !is_counted).map(|asleep| asleep / 2.0));
    waiters.iter().map(|one| Waiter { seconds: at_least(one), ..one.clone() }).collect()
}

/// Those of a program's readers that commit too: they wait for these writes behind the reads. The disk flushes its cache, and the
/// program dirtied most of what this disk was given.
fn committing(derived: &Derived<'_>, disk: &Device<'_>, on_it: &Writers<'_>, readers: &[&Causer]) -> BTreeSet<u32> {
    let is_its = |writer: &&Writer<'_>| readers.iter().any(|causer| causer.is(writer.pid));
    let dirtied = |writer: &Writer<'_>| writer.dirtied_bytes.unwrap_or(0);
    let its = || on_it.processes.iter().filter(is_its).filter(|writer| dirtied(writer) > 0);
    let bytes = its().map(dirtied).fold(0, u64::saturating_add);
    let is_most = bytes as f64 >= MOSTLY * on_it.attributed_bytes() as f64;
    let commits = is_most && crowded::may_sync(derived, disk);
    its().filter(|_| commits).map(|writer| writer.pid).collect()
}

/// Names the two processes with most of the load, and counts the others that have a good part of it.
fn named(causers: &[Causer]) -> String {
    let first = causers.iter().take(2).map(|causer| causer.label.as_str()).collect::<Vec<_>>().join(", ");
    match causers.iter().skip(2).filter(|causer| causer.share >= PART_OF_LOAD).count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Whether every program but the one that fills a disk alone is known to have no request on it.
fn is_its_own(derived: &Derived<'_>, alone: &Causer, idle: &BTreeSet<u32>) -> bool {
    let writers = derived.writers();
    let has_none = |writer: &Writer<'_>| writer.kthread || alone.is(writer.pid) || idle.contains(&writer.pid);
    !idle.is_empty() && writers.unreadable() == 0 && writers.processes.iter().all(has_none)
}

/// Processes without a request on this disk, by id: they read nothing at all, and all writes of the disk together took too
/// little time to be felt. Such a process waited for another disk.
fn without_requests(derived: &Derived<'_>, load: &Load) -> BTreeSet<u32> {
    if load.writes * load.write_await_s >= waiting::felt_s(derived.seconds) {
        return BTreeSet::new();
    }
    let (mut idle, mut reading) = (BTreeSet::new(), BTreeSet::new());
    for (id, span) in &derived.window.processes {
        let Some(Entity::Process { pid, .. }) = derived.window.entities.get(id) else { continue };
        match span.growth.read_bytes {
            Some(bytes) if bytes.0 == 0 => idle.insert(*pid),
            _ => reading.insert(*pid),
        };
    }
    // A process id may have been used again.
    &idle - &reading
}

/// What helps instead of a setting.
fn trade_off(kind: Kind, load: &Load) -> &'static str {
    match kind {
        Kind::Reads => {
            "No setting of writeback helps. Limit the readers (io.max rbps or riops of their cgroup), give them memory \
             to cache what they read, or move what must be durable to another disk."
        }
        _ if load.is_mixed() => {
            "No setting of writeback helps: the requests bypass it. Limit the programs that make them (io.max of their \
             cgroup) or move what must be durable to another disk."
        }
        _ if load.mean_write() <= device::SMALL_WRITE => {
            "No setting of writeback helps: each fsync is a write and a flush of the disk's cache. Sync less often, \
             commit in groups, or use a disk with a cache that survives a power cut."
        }
        _ if load.is_synced => {
            "No setting of writeback helps: each fsync waits until its data are on the disk. Sync less often, write less, \
             or use a faster disk for what must be durable."
        }
        _ => {
            "No setting of writeback helps, because direct I/O bypasses it. Limit the writers (io.max of their \
             cgroup) or move what must be durable to another disk."
        }
    }
}

/// Words for a waiter, for the end of a sentence.
fn waits(derived: &Derived<'_>, waiter: &Waiter) -> String {
    match waiter.waited() {
        Some(waited) => format!("{} waited {waited}", waiting::named(derived, waiter)),
        None => format!("{} was seen waiting", waiting::named(derived, waiter)),
    }
}

#[cfg(test)]
mod tests;
