// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `dominant-writer`: one process or cgroup accounts for more than half of the bytes that all processes dirty, and
//! a disk is affected. Recognises journald and its remedy. `dirty-cliff` judges whether pile-ups in general suit the
//! disk.
#![doc = include_str!("dominant_writer.md")]

mod evidence;
mod remedy;
mod trouble;

use self::trouble::{Trouble, outruns, trouble};
use crate::budget::Scope;
use crate::diagnose::burst::{self, Burst};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Device;
use crate::diagnose::load::{self, Kind, Load};
use crate::diagnose::waiting::{self, Waiter};
use crate::diagnose::writer::{self, Period, Writer, Writers};
use crate::diagnose::{Rule, Verdict, cgroup, database, loops, released, strict};
use crate::report::{Finding, Severity};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::id::EntityId;
use floodline_record::programs::JOURNALD;

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "dominant-writer",
    summary: "One process or cgroup writes more than all others together, and keeps the disk busy",
    manual: include_str!("dominant_writer.md"),
    explains: &["dirty-cliff", "fsync-behind-writeback", "dirty-data-at-risk"],
    check,
};

/// Seconds of saturation by small writes that people notice.
const NOTICED_S: f64 = 1.0;
/// Share of the window above which such saturation is more than a moment.
const LASTS_SHARE: f64 = 0.05;
/// Mean time of a write from which a task that waited for one was stalled, seconds.
const STALL_AWAIT_S: f64 = 0.3;
/// Mean time of a write from which waiting for one is noticed, seconds.
const SLOW_S: f64 = 0.02;
/// Part of the busy time with a task waiting for I/O from which the load was felt.
const FELT_PRESSURE: f64 = 0.5;
/// Share of the window with a saturated disk that will hurt other tasks.
const BUSY_SHARE: f64 = 0.25;
/// Utilisation of a disk from which an info finding is justified.
const FELT_UTILISATION: f64 = 0.2;
/// Utilisation from which other tasks wait because of the queue.
const BUSY_UTILISATION: f64 = 0.5;
/// Length from which a burst of synced data breaks time limits, seconds.
const LONG_BURST_S: f64 = 2.0;
/// Mean requests in flight while busy that are a queue: a task waits for another task's requests.
const QUEUED: f64 = 4.0;
/// Part of a disk's requests and bytes up to which its writes are hardly any.
const HARDLY: f64 = 0.01;
/// Dirtied bytes per application byte from which amplification is mentioned.
const AMPLIFIED: f64 = 4.0;
/// Shortest time between two flushes by the log of a filesystem that no task waits for, seconds.
const JOURNAL_S: f64 = 2.5;
/// Bytes written by journald since its start that are worth reporting from one sample.
const JOURNAL_SINCE_START: u64 = 1 << 30;

/// The dominant process or cgroup.
struct Dominant<'w, 'a> {
    writer: &'w Writer<'a>,
    /// All processes of a program that run one after the other, where only together they exceed half.
    in_turn: Vec<u32>,
    /// Set where only all processes of the cgroup together exceed half.
    cgroup: Option<EntityId>,
    dirtied_bytes: u64,
    application_bytes: Option<u64>,
    share: f64,
    /// For children that no sample saw: the cgroup with more than half of the device bytes, those bytes, and its share.
    by_device: Option<(EntityId, u64, f64)>,
}

impl Dominant<'_, '_> {
    /// Ending of a verb: children make, a process makes.
    fn s(&self) -> &'static str {
        if self.is_children() { "" } else { "s" }
    }

    fn is_children(&self) -> bool {
        self.cgroup.is_none() && self.writer.is_by_children()
    }

    /// Whether it is one process.
    fn is_one(&self) -> bool {
        self.cgroup.is_none() && self.in_turn.is_empty()
    }

    /// Whether a process belongs to it, where it is no cgroup.
    fn has_process(&self, pid: u32) -> bool {
        pid == self.writer.pid || self.in_turn.contains(&pid)
    }
}

fn check(derived: &Derived<'_>) -> Verdict {
    let writers = derived.writers();
    if writers.processes.iter().all(|writer| writer.dirtied_bytes.is_none()) {
        return match writers.processes.is_empty() {
            true => derived.not_checked(Source::Processes, "no process"),
            false => derived.not_checked(Source::ProcessIo, "write_bytes"),
        };
    }
    let Some(dominant) = dominant(derived, writers) else {
        // Of writers that are alike, each may have a disk to itself.
        let findings = if writers.period == Period::Window { by_disk(derived) } else { Vec::new() };
        if !findings.is_empty() {
            return Verdict::Found(findings);
        }
        if writers.unseen_could_dominate() {
            return derived.not_checked(Source::ProcessIo, "write_bytes");
        }
        return Verdict::Clear(match writers.processes.first().map(|first| (first.label(), first.dirtied_bytes)) {
            Some((label, Some(bytes))) => {
                format!(
                    "no process dirtied 512 KiB and more than half of all: {label} dirtied most, {}",
                    human::bytes(bytes as f64)
                )
            }
            _ => "no process dirtied anything".to_owned(),
        });
    };
    if writers.period == Period::SinceStart {
        return since_start(derived, writers, &dominant);
    }
    let findings = by_disk(derived);
    if !findings.is_empty() {
        return Verdict::Found(findings);
    }
    let busiest = derived.disks().iter().filter_map(trouble).max_by(|one, other| one.worse(other));
    let busy = match &busiest {
        Some(trouble) => format!("{} is {} busy", trouble.device.name, human::percent(trouble.utilisation)),
        None => "no disk's time was read".to_owned(),
    };
    Verdict::Clear(format!(
        "{} write{} {} of all, {}, and {busy}",
        name(derived, &dominant),
        dominant.s(),
        human::percent(dominant.share),
        human::bytes_per_second(dominant.dirtied_bytes as f64 / derived.seconds)
    ))
}

/// A finding for each device that is in trouble and has a dominant writer.
fn by_disk(derived: &Derived<'_>) -> Vec<Finding> {
    let of = |drain: &Device<'_>| {
        let trouble = drain.bottoms().iter().filter_map(trouble).max_by(|one, other| one.worse(other))?;
        if is_of_reads(&trouble.device) {
            return None;
        }
        let on_it = writer::on_device(derived, drain);
        let dominant = dominant(derived, &on_it)?;
        let severity = severity(derived, &trouble, &dominant, &on_it)?;
        Some(finding(derived, &on_it, &dominant, severity, Some(&trouble)))
    };
    derived.drains().iter().filter_map(of).collect()
}

/// Whether a disk did hardly anything but reads in the window: then no writer keeps it busy.
fn is_of_reads(disk: &Device<'_>) -> bool {
    let grown = &disk.span.growth;
    let part = |writes: u64, reads: u64| writes as f64 / writes.saturating_add(reads).max(1) as f64;
    let (Some(written), Some(writes)) = (grown.written, grown.writes) else { return false };
    let bytes = part(written.0, grown.read.map_or(0, |read| read.0));
    let requests = part(writes.0, grown.reads.map_or(0, |reads| reads.0));
    written.0 == 0 || bytes.max(requests) < HARDLY
}

fn dominant<'w, 'a>(derived: &Derived<'_>, writers: &'w Writers<'a>) -> Option<Dominant<'w, 'a>> {
    if let Some((writer, share)) = writer::dominant(writers) {
        let (dirtied_bytes, application_bytes) = (writer.dirtied_bytes?, writer.application_bytes);
        let by_device = writer.is_by_children().then(|| writer::dominant_by_device_bytes(derived.window)).flatten();
        let in_turn = Vec::new();
        return Some(Dominant { writer, in_turn, cgroup: None, dirtied_bytes, application_bytes, share, by_device });
    }
    if let Some(found) = writer::dominant_in_turn(derived.window, writers) {
        return Some(Dominant {
            writer: found.most,
            in_turn: found.pids,
            cgroup: None,
            dirtied_bytes: found.dirtied_bytes,
            application_bytes: Some(found.application_bytes),
            share: found.share,
            by_device: None,
        });
    }
    let (cgroup, dirtied_bytes, share) = writer::dominant_cgroup(derived.window, writers)?;
    let members = || writers.processes.iter().filter(move |writer| writer.cgroup == Some(cgroup));
    let application = members().filter_map(|writer| writer.application_bytes).fold(0, u64::saturating_add);
    Some(Dominant {
        writer: members().next()?,
        in_turn: Vec::new(),
        cgroup: Some(cgroup),
        dirtied_bytes,
        application_bytes: Some(application),
        share,
        by_device: None,
    })
}

/// Name in a sentence: a process, the children of a process with their cgroup, or a whole cgroup.
fn name(derived: &Derived<'_>, dominant: &Dominant<'_, '_>) -> String {
    let is_root = |id| cgroup::path(derived.window, id).is_some_and(|path| path.as_bytes() == b"/");
    let place = |id| if is_root(id) { "no cgroup of their own".to_owned() } else { derived.label(id) };
    match (dominant.cgroup, dominant.by_device) {
        (Some(cgroup), _) => format!("cgroup {}", derived.label(cgroup)),
        (None, Some((cgroup, _, _))) => format!("{} (in {})", dominant.writer.label(), place(cgroup)),
        (None, None) if !dominant.in_turn.is_empty() => {
            format!("{} ({} processes in turn)", dominant.writer.comm, dominant.in_turn.len())
        }
        (None, None) => dominant.writer.label(),
    }
}

/// The words at the start of a sentence. Process names keep their spelling.
fn at_start(sentence: &str) -> String {
    let ours = [("children of ", "Children of "), ("cgroup ", "Cgroup ")];
    let begins = ours.iter().find_map(|(small, large)| Some((*large, sentence.strip_prefix(small)?)));
    begins.map_or(sentence.to_owned(), |(large, rest)| format!("{large}{rest}"))
}

/// Dirtied bytes for each byte that it handed to write calls; infinite where it handed over none.
fn amplification(dominant: &Dominant<'_, '_>) -> Option<f64> {
    dominant.application_bytes.map(|application| dominant.dirtied_bytes as f64 / application as f64)
}

/// Path of writes to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// The flusher writes them.
    Flusher,
    /// The flusher writes them, and no limit of a cgroup makes it start. On version 1, reclaim alone keeps to a limit of memory.
    Unbounded,
    /// The flusher writes them at once: the strict limit of the device lets nothing pile up.
    Strict,
    /// They bypass the flusher: direct I/O, or syncs.
    Past,
    /// They go through the page cache, and a sync writes them before the flusher does. Only a trace shows that.
    Synced,
    /// A sync writes all at once what was dirtied in the seconds before it.
    AtOnce,
}

/// Returns the path of writes to a disk in trouble. In the counters, writeback at a strict limit looks like writes that a task
/// waits for.
fn path(derived: &Derived<'_>, trouble: &Trouble<'_>) -> Path {
    let is_waited = derived
        .loads()
        .iter()
        .any(|(disk, load)| disk.id == trouble.device.id && load.kind() == Kind::Waited && load.seconds > 0.0);
    if drains_on(derived, trouble).any(|drain| strict::holds(derived, drain)) {
        Path::Strict
    } else if synced_at_once(derived, trouble).is_some() {
        Path::AtOnce
    } else if is_waited {
        Path::Past
    } else {
        match derived.budgets().scope {
            Scope::PerCgroup | Scope::Unknown => Path::Flusher,
            Scope::NoUnifiedHierarchy | Scope::KernelTooOld => Path::Unbounded,
        }
    }
}

/// The devices whose data go to a disk in trouble.
fn drains_on<'d, 'a>(derived: &'d Derived<'a>, trouble: &'d Trouble<'_>) -> impl Iterator<Item = &'d Device<'a>> {
    derived.drains().iter().filter(|drain| drain.bottoms().iter().any(|one| one.id == trouble.device.id))
}

/// The longest burst on a disk in trouble, where a sync wrote all at once what was dirtied in the seconds before it.
fn synced_at_once(derived: &Derived<'_>, trouble: &Trouble<'_>) -> Option<Burst> {
    let longest = |drain: &Device<'_>| burst::longest(derived, drain).filter(Burst::is_fresh);
    drains_on(derived, trouble).filter_map(longest).max_by(|one, other| one.seconds.total_cmp(&other.seconds))
}

/// Severity, from the load of the disk and from the waits of other tasks.
fn severity(
    derived: &Derived<'_>,
    trouble: &Trouble<'_>,
    dominant: &Dominant<'_, '_>,
    writers: &Writers<'_>,
) -> Option<Severity> {
    let seconds = derived.seconds;
    let lasts = trouble.scattered_s() >= NOTICED_S.max(LASTS_SHARE * seconds);
    let is_its = |waiter: &Waiter| match dominant.cgroup {
        Some(cgroup) => waiter.cgroup == Some(cgroup),
        None => dominant.has_process(waiter.pid),
    };
    let is_process_of_it = |pid| match dominant.cgroup {
        Some(_) => writers.processes.iter().any(|writer| writer.pid == pid && writer.cgroup == dominant.cgroup),
        None => dominant.has_process(pid),
    };
    let others = waiting::others_on(derived, &trouble.device, is_its);
    let is_harmed = others.as_ref().is_some_and(|others| waiting::is_harm(derived, others));
    // Of several processes of one database, each is its own cause.
    let is_of_it = |writer: &Writer<'_>| is_process_of_it(writer.pid) || writer.comm == dominant.writer.comm;
    let is_unseen = database::may_wait_unseen(derived, writers, is_of_it);
    let has_others = is_unseen || others.as_ref().is_some_and(|others| !others.is_empty());
    let is_alone = !is_unseen && others.as_ref().is_some_and(Vec::is_empty) && writers.unreadable() == 0;
    // On a disk that reads keep busy, other tasks wait for those.
    let load = derived.loads().iter().find(|(disk, _)| disk.id == trouble.device.id).map(|(_, load)| load);
    let load = load.filter(|load| load::is_full_of_other(derived, load));
    let is_full_of_reads = load.is_some_and(|load| load.kind() == Kind::Reads);
    let its_cgroup = dominant.cgroup.or(dominant.writer.cgroup);
    let is_held = its_cgroup
        .is_some_and(|cgroup| released::on(derived, &trouble.device).any(|released| released.holds(derived, cgroup)));
    // A writer that is faster than the disk fills it however it writes.
    let is_by_images =
        !outruns(derived, trouble) && drains_on(derived, trouble).any(|drain| loops::fill(derived, drain));
    // Beside a writer that makes one request at a time, another task waits for one of its requests at most.
    let is_in_turn = load.is_some_and(|load| load.kind() == Kind::Waited)
        && trouble.device.is_one_at_a_time()
        && trouble.await_max_s < STALL_AWAIT_S
        && others.is_some()
        && !is_unseen;
    let felt = || match (is_harmed, is_in_turn) {
        (true, _) => Severity::Critical,
        (false, true) => Severity::Info,
        (false, false) => Severity::Warning,
    };
    let severity = if is_held || is_by_images || is_at_strict_limit(derived, trouble) {
        // Other rules name the waits: `strictlimit-throttling` the pauses at the strict limit, `io-limit-throttling` the waits
        // behind what the writer's own limit lets go at once, and `buffered-loop-device` what an image writes in batches.
        Severity::Info
    } else if load.is_some_and(Load::is_mixed) || (is_full_of_reads && trouble.utilisation >= FELT_UTILISATION) {
        // `saturated-device` names it: writes wait behind the reads as well.
        Severity::Info
    } else if lasts && trouble.await_max_s >= STALL_AWAIT_S {
        Severity::Critical
    } else if trouble.saturated_s >= BUSY_SHARE * seconds {
        felt()
    } else if is_harmed
        && trouble.utilisation >= FELT_UTILISATION
        && synced_at_once(derived, trouble).is_some_and(|burst| burst.seconds >= LONG_BURST_S && burst.stalled())
    {
        // The disk is full only now and then, for syncs of seconds, and other tasks wait behind them.
        Severity::Critical
    } else if trouble.utilisation >= BUSY_UTILISATION && trouble.queue >= QUEUED && is_harmed {
        // The disk is never full for long, but other tasks wait behind its queue.
        Severity::Critical
    } else if trouble.utilisation >= BUSY_UTILISATION && trouble.await_max_s >= STALL_AWAIT_S && has_others {
        // A program may wait longer than the kernel counts: for a journal commit, for a flusher's work.
        Severity::Warning
    } else if trouble.await_max_s >= STALL_AWAIT_S
        && trouble.utilisation >= FELT_UTILISATION
        && waiting::is_harm_by_syncs(derived, &trouble.device, is_process_of_it)
    {
        // The queue is full from time to time, and the trace shows the tasks that wait behind it.
        Severity::Critical
    } else if has_others && load.is_some_and(is_slow_and_felt) {
        // It fills the disk with writes that it waits for, one after the other.
        felt()
    } else if trouble.utilisation >= FELT_UTILISATION {
        Severity::Info
    } else {
        return None;
    };
    // A task that writes alone waits only for its own data.
    Some(if is_alone { Severity::Info } else { severity })
}

/// Whether the strict limit of a device pauses its writers, and no task waits for storage on it: each sync of a file makes the disk
/// flush its cache.
fn is_at_strict_limit(derived: &Derived<'_>, trouble: &Trouble<'_>) -> bool {
    let flushes = trouble.device.span.growth.flushes.map(|flushes| flushes.0 as f64);
    let has_cache = trouble.device.facts.and_then(|facts| facts.write_back_cache) == Some(true);
    let hardly = flushes.is_some_and(|flushes| flushes <= derived.seconds / JOURNAL_S);
    has_cache && hardly && drains_on(derived, trouble).any(|drain| strict::holds(derived, drain))
}

/// Whether tasks waited while writes past the flusher filled a disk, and each write took long.
fn is_slow_and_felt(load: &Load) -> bool {
    load.kind() == Kind::Waited
        && load.write_await_s >= SLOW_S
        && load.pressure.is_some_and(|pressure| pressure >= FELT_PRESSURE)
}

/// Verdict from one sample, which holds only totals since each process was started. Long-running services differ in
/// age, so only journald's known case is reported.
fn since_start(derived: &Derived<'_>, writers: &Writers<'_>, dominant: &Dominant<'_, '_>) -> Verdict {
    if is_journald(dominant.writer) && dominant.dirtied_bytes >= JOURNAL_SINCE_START {
        return Verdict::Found(vec![finding(derived, writers, dominant, Severity::Info, None)]);
    }
    Verdict::Clear(format!(
        "{} wrote {} of all bytes since processes were started, {}; to see whether that is too much, add --for 1m",
        name(derived, dominant),
        human::percent(dominant.share),
        human::bytes(dominant.dirtied_bytes as f64)
    ))
}

fn finding(
    derived: &Derived<'_>,
    writers: &Writers<'_>,
    dominant: &Dominant<'_, '_>,
    severity: Severity,
    trouble: Option<&Trouble<'_>>,
) -> Finding {
    let who = name(derived, dominant);
    let (s, its) = (dominant.s(), if dominant.is_children() { "their" } else { "its" });
    let share = human::percent(dominant.share);
    // What the disk wrote, by its own count: the writer's bytes may be on other disks, or not written yet.
    let disk = |trouble: &Trouble<'_>| match trouble.device.span.growth.written {
        Some(written) => format!("{} ({})", trouble.device.name, human::bytes(written.0 as f64)),
        None => trouble.device.name.to_string(),
    };
    let summary = match (severity, trouble) {
        (Severity::Critical, Some(trouble)) if trouble.scattered_s() >= NOTICED_S => {
            let (how, seconds) = match trouble.small_saturated_s >= NOTICED_S {
                true => ("saturated", trouble.small_saturated_s),
                false => ("busy with a queue", trouble.small_busy_s),
            };
            let pieces = if path(derived, trouble) == Path::Past { "writes" } else { "pages" };
            format!(
                "{who} make{s} {share} of all writes to {}; {its} small scattered {pieces} kept the disk {how} for {}.",
                trouble.device.name,
                human::seconds(seconds)
            )
        }
        (_, Some(trouble)) if outruns(derived, trouble) => format!(
            "{who} make{s} {share} of all writes to {}, as fast as the disk takes them. The disk is {} busy over all {}. \
             No setting makes it faster.",
            disk(trouble),
            human::percent(trouble.utilisation),
            human::seconds(derived.seconds)
        ),
        (_, Some(trouble)) => format!(
            "{who} make{s} {share} of all writes to {}, which is {} busy over all {}.",
            disk(trouble),
            human::percent(trouble.utilisation),
            human::seconds(derived.seconds)
        ),
        (_, None) => format!(
            "{who} made {share} of all writes since processes were started ({}).",
            human::bytes(dominant.dirtied_bytes as f64)
        ),
    };
    let journald = is_journald(dominant.writer) && !dominant.is_children();
    let path = match trouble.map_or(Path::Flusher, |trouble| path(derived, trouble)) {
        Path::Past if evidence::is_cached(derived, dominant) => Path::Synced,
        path => path,
    };
    let scattered = trouble.is_some_and(|trouble| trouble.scattered_s() >= NOTICED_S);
    let (cause, plan, trade_off) = match journald {
        true => remedy::journald_remedy(derived, dominant),
        false => remedy::other_remedy(&who, dominant, scattered, path),
    };
    let brief = remedy::brief(&who, journald, scattered, path, &plan);
    let summary = at_start(&summary);
    Finding {
        rule: RULE.name,
        severity,
        summary,
        confirmed: evidence::traced(derived, dominant),
        evidence: evidence::evidence(derived, writers, dominant, trouble),
        cause,
        brief,
        devices: trouble.iter().map(|trouble| trouble.device.name.to_string()).collect(),
        plan,
        trade_off,
        ..Finding::default()
    }
}

/// Recognised by the process name, which the kernel cuts at 15 characters.
fn is_journald(writer: &Writer<'_>) -> bool {
    JOURNALD.contains(&writer.comm.as_bytes())
}

#[cfg(test)]
mod tests;
