// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `dominant-writer`: one process or cgroup accounts for more than half of the bytes that all processes dirty, and
//! a disk is affected. Recognises journald and its remedy. `dirty-cliff` judges whether pile-ups in general suit the
//! disk.
#![doc = include_str!("dominant_writer.md")]

mod evidence;
mod remedy;
mod trouble;

use self::trouble::{Trouble, outruns, trouble};
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Device;
use crate::diagnose::load::{self, Kind, Load};
use crate::diagnose::waiting::{self, Waiter};
use crate::diagnose::writer::{self, Period, Writer, Writers};
use crate::diagnose::{Rule, Verdict, cgroup, database, strict};
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
/// Mean requests in flight while busy that are a queue: a task waits for another task's requests.
const QUEUED: f64 = 4.0;
/// Dirtied bytes per application byte from which amplification is mentioned.
const AMPLIFIED: f64 = 4.0;
/// Bytes written by journald since its start that are worth reporting from one sample.
const JOURNAL_SINCE_START: u64 = 1 << 30;

/// The dominant process or cgroup.
struct Dominant<'w, 'a> {
    writer: &'w Writer<'a>,
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
        let on_it = writer::on_device(derived, drain);
        let dominant = dominant(derived, &on_it)?;
        let severity = severity(derived, &trouble, &dominant, &on_it)?;
        Some(finding(derived, &on_it, &dominant, severity, Some(&trouble)))
    };
    derived.drains().iter().filter_map(of).collect()
}

fn dominant<'w, 'a>(derived: &Derived<'_>, writers: &'w Writers<'a>) -> Option<Dominant<'w, 'a>> {
    if let Some((writer, share)) = writer::dominant(writers) {
        let (dirtied_bytes, application_bytes) = (writer.dirtied_bytes?, writer.application_bytes);
        let by_device = writer.is_by_children().then(|| writer::dominant_by_device_bytes(derived.window)).flatten();
        return Some(Dominant { writer, cgroup: None, dirtied_bytes, application_bytes, share, by_device });
    }
    let (cgroup, dirtied_bytes, share) = writer::dominant_cgroup(derived.window, writers)?;
    let members = || writers.processes.iter().filter(move |writer| writer.cgroup == Some(cgroup));
    let application = members().filter_map(|writer| writer.application_bytes).fold(0, u64::saturating_add);
    Some(Dominant {
        writer: members().next()?,
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
    /// The flusher writes them at once: the strict limit of the device lets nothing pile up.
    Strict,
    /// They bypass the flusher: direct I/O, or syncs.
    Past,
}

/// Returns the path of writes to a disk in trouble. In the counters, writeback at a strict limit looks like writes that a task
/// waits for.
fn path(derived: &Derived<'_>, trouble: &Trouble<'_>) -> Path {
    let is_waited = derived
        .loads()
        .iter()
        .any(|(disk, load)| disk.id == trouble.device.id && load.kind() == Kind::Waited && load.seconds > 0.0);
    let mut drains =
        derived.drains().iter().filter(|drain| drain.bottoms().iter().any(|one| one.id == trouble.device.id));
    match drains.any(|drain| strict::holds(derived, drain)) {
        true => Path::Strict,
        false if is_waited => Path::Past,
        false => Path::Flusher,
    }
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
        None => waiter.pid == dominant.writer.pid,
    };
    let is_process_of_it = |pid| match dominant.cgroup {
        Some(_) => writers.processes.iter().any(|writer| writer.pid == pid && writer.cgroup == dominant.cgroup),
        None => pid == dominant.writer.pid,
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
    let severity = if load.is_some_and(Load::is_mixed) || (is_full_of_reads && trouble.utilisation >= FELT_UTILISATION)
    {
        // `saturated-device` names it: writes wait behind the reads as well.
        Severity::Info
    } else if lasts && trouble.await_max_s >= STALL_AWAIT_S {
        Severity::Critical
    } else if trouble.saturated_s >= BUSY_SHARE * seconds {
        if is_harmed { Severity::Critical } else { Severity::Warning }
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
        if is_harmed { Severity::Critical } else { Severity::Warning }
    } else if trouble.utilisation >= FELT_UTILISATION {
        Severity::Info
    } else {
        return None;
    };
    // A task that writes alone waits only for its own data.
    Some(if is_alone { Severity::Info } else { severity })
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
    let amount = human::bytes(dominant.dirtied_bytes as f64);
    let disk = trouble.map_or_else(String::new, |trouble| trouble.device.name.to_string());
    let summary = match (severity, trouble) {
        (Severity::Critical, Some(trouble)) if trouble.scattered_s() >= NOTICED_S => {
            let (how, seconds) = match trouble.small_saturated_s >= NOTICED_S {
                true => ("saturated", trouble.small_saturated_s),
                false => ("busy with a queue", trouble.small_busy_s),
            };
            format!(
                "{who} make{s} {share} of all writes to {disk}; {its} small scattered pages kept the disk {how} for {}.",
                human::seconds(seconds)
            )
        }
        (_, Some(trouble)) if outruns(derived, trouble) => format!(
            "{who} make{s} {share} of all writes to {disk} ({amount}), as fast as the disk takes them. It is {} busy. No \
             setting makes it faster.",
            human::percent(trouble.utilisation)
        ),
        (_, Some(trouble)) => format!(
            "{who} make{s} {share} of all writes to {disk} ({amount}), which is {} busy.",
            human::percent(trouble.utilisation)
        ),
        (_, None) => format!("{who} made {share} of all writes since processes were started ({amount})."),
    };
    let journald = is_journald(dominant.writer) && !dominant.is_children();
    let path = trouble.map_or(Path::Flusher, |trouble| path(derived, trouble));
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
mod tests {
    use super::*;
    use crate::diagnose::synced::tests::slow;
    use crate::diagnose::{check_rule, first_finding};
    use floodline_record::gap::Cause;
    use floodline_record::id::Entity;
    use floodline_record::name::Name;
    use floodline_record::traced::waits::Operation;
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::incidents::{dirty_cliff, slow_journal, slow_journal_volatile};
    use floodline_testkit::{Fixture, grows, mib, secs};

    #[test]
    fn the_measured_journal_is_critical_and_its_cure_is_volatile_storage() {
        check_rule(&RULE, &slow_journal(), "critical: systemd-journal[300] makes 80 % of all writes to ");
        let finding = first_finding(&RULE, &slow_journal());
        let step = finding.plan.first().unwrap();
        assert!(
            step.command.contains("Storage=volatile") && step.command.ends_with("systemctl restart systemd-journald")
        );
        assert!(step.undo.ends_with("systemctl restart systemd-journald"), "{}", step.undo);
        assert!(finding.trade_off.starts_with("Logs are lost at a reboot"));
        check_rule(&RULE, &slow_journal_volatile(), "clear:");
    }

    #[test]
    fn scattered_pages_of_any_other_writer_are_told_to_have_no_setting() {
        let mut window = slow_journal().window();
        for entity in window.entities.values_mut() {
            if let Entity::Process { pid: 300, comm, .. } = entity {
                *comm = Name::new("search-index");
            }
        }
        let Verdict::Found(findings) = check(&Derived::of(&window)) else { panic!("nothing found") };
        let finding = &findings[0];
        assert!(finding.plan.is_empty() && finding.summary.contains("scattered"), "{}", finding.summary);
        for text in [&finding.trade_off, &finding.brief.expect] {
            assert!(
                text.starts_with("No setting reduces the writes of this program") && text.contains("Move its files"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_trace_names_the_file_it_writes_and_only_where_it_writes_most() {
        use crate::diagnose::dirtying::tests::dirtied;
        let journal = dirtied((300, 1, 131, "/journal/system.journal", 9 << 20, 3 << 20));
        let traced = |other: u64| {
            let events = vec![journal.clone(), dirtied((41, 1, 132, "/mail", other, 0))];
            first_finding(&RULE, &slow_journal().traced(&["bytes"], events)).confirmed
        };
        let confirmed = traced(1 << 20).unwrap();
        assert!(
            confirmed.starts_with("90 % of the 10.0 MiB that became dirty is its own, most of it in "),
            "{confirmed}"
        );
        assert!(confirmed.ends_with("33 % of it had been dirty before."), "{confirmed}");
        assert_eq!(traced(100 << 20), None);
    }

    #[test]
    fn who_fills_the_queue_behind_which_another_program_waits_is_critical() {
        let busy = |pid, ms| {
            let (parts, events) = slow((pid, Operation::Fdatasync, ms, None));
            // The disk is 40 % busy with large writes of 0.35 s each. A second program writes little.
            let fixture = slow_journal().disk("sda", |t, row| {
                row.written = grows(t, 0, 20e6);
                row.writes = grows(t, 0, 20.0);
                row.write_time = Some(secs(20.0 * 0.35 * t));
                row.io_time = Some(secs(0.4 * t));
                row.weighted_io_time = Some(secs(2.0 * t));
            });
            fixture.process("mail", 41, "/mail", |t, row| row.write_bytes = grows(t, 0, 1e3)).traced(parts, events)
        };
        check_rule(&RULE, &busy(41, 9_000), "critical: systemd-journal[300]");
        check_rule(&RULE, &busy(41, 300), "info: systemd-journal[300]");
        // Journald waits for its own data.
        check_rule(&RULE, &busy(300, 9_000), "info: systemd-journal[300]");
    }

    #[test]
    fn a_database_beside_it_may_wait_where_nothing_shows_its_threads() {
        let beside = |name: &'static str| {
            Fixture::healthy()
                .disk("sda", |t, row| {
                    row.written = grows(t, 0, 12e6);
                    row.writes = grows(t, 0, 16.0);
                    row.write_time = Some(secs(16.0 * 0.28 * t));
                    row.io_time = Some(secs(t));
                    row.weighted_io_time = Some(secs(4.5 * t));
                })
                .process("dd", 700, "/", |t, row| {
                    row.write_bytes = grows(t, 0, 12e6);
                    row.state = Some(Count(u64::from(b'D')));
                })
                .process(name, 701, "/", |t, row| {
                    row.write_bytes = grows(t, 0, 5e3);
                    row.state = Some(Count(u64::from(b'S')));
                })
        };
        check_rule(&RULE, &beside("mariadbd"), "warning: dd[700] makes");
        check_rule(&RULE, &beside("copy"), "info: dd[700] makes");
        let finding = first_finding(&RULE, &beside("mariadbd"));
        let advice = [finding.cause, finding.trade_off, finding.brief.expect].join(" ");
        assert!(advice.contains("direct I/O") && advice.contains("has no effect"), "{advice}");
        assert!(!advice.contains("set MemoryHigh=") && !advice.contains("bound its unwritten data"), "{advice}");
        // The flusher of a device at its strict limit writes at once, without a queue: the same counters, another path.
        let strict = beside("mariadbd")
            .host(|_, row| row.nr_dirty_threshold = Some(floodline_testkit::mib_pages(500.0)))
            .bdi("8:0", |_, row| {
                row.strict_limit = Some(floodline_record::units::Flag(1));
                row.max_ratio = Some(floodline_record::units::Ppm(5000));
                row.reclaimable = Some(Bytes(mib(2.0)));
                row.writeback = Some(Bytes(0));
            });
        let finding = first_finding(&RULE, &strict);
        let advice = [finding.cause, finding.trade_off, finding.brief.expect].join(" ");
        assert!(advice.contains("strict limit") && !advice.contains("MemoryHigh="), "{advice}");
        assert!(!advice.contains("direct I/O"), "{advice}");
        // A trace shows the waits of all threads, and there are none.
        let traced = beside("mariadbd").traced(&["throttle", "bytes"], Vec::new());
        check_rule(&RULE, &traced, "info: dd[700] makes");
    }

    #[test]
    fn a_moment_in_a_long_look_is_not_critical() {
        // One burst of eight seconds in seven minutes.
        let once = |t: f64| (t - 30.0).clamp(0.0, 8.0);
        let moment = slow_journal().seconds(420).disk("sda", move |t, row| {
            row.writes = Some(Count(9_000_000 + (30.0 * once(t) + 1.8 * t) as u64));
            row.written = Some(Bytes(mib(160_000.0) + (30.0 * once(t) * 12_500.0 + 1.8 * t * 12_000.0) as u64));
            row.write_time = Some(secs(9_000.0 + 30.0 * once(t) * 1.25 + 0.02 * t));
            row.io_time = Some(secs(6_000.0 + once(t) + 0.06 * t));
            row.weighted_io_time = Some(secs(10_000.0 + once(t) * 38.0 + 0.06 * t));
        });
        check_rule(&RULE, &moment, "clear: systemd-journal[300] writes");
    }

    #[test]
    fn three_columns_and_the_rest_are_shown() {
        let fixture = slow_journal().cgroup_io("/system.slice/systemd-journald.service", "sda", |t, row| {
            row.wbytes = Some(Bytes((80_000.0 * t) as u64));
        });
        let rows = first_finding(&RULE, &fixture).evidence;
        for wanted in [
            "It dirtied",
            "It handed to write calls",
            "Its cgroup sent to disks",
            "All processes dirtied",
            "All disks wrote",
        ] {
            assert!(rows.iter().any(|row| row.name == wanted), "{wanted}: {rows:#?}");
        }
    }

    #[test]
    fn a_journald_of_a_container_is_not_cured_on_the_host() {
        let fixture = slow_journal()
            .process("systemd-journal", 300, "/", |_, row| row.write_bytes = Some(Bytes(0)))
            .process("systemd-journal", 4300, "/lxc/web/system.slice/systemd-journald.service", |t, row| {
                row.write_bytes = Some(Bytes((90_700.0 * t) as u64));
            });
        assert_eq!(first_finding(&RULE, &fixture).plan, Vec::new());
    }

    #[test]
    fn a_dominant_writer_on_an_idle_disk_is_no_finding() {
        let copies = Fixture::healthy().process("cp", 900, "/user.slice", |t, row| {
            row.write_bytes = Some(Bytes(mib(5.0 * t)));
            row.wchar = Some(Bytes(mib(5.0 * t)));
        });
        check_rule(&RULE, &copies, "clear: cp[900] writes over 99 % of all, 5.00 MiB/s, and sda is 0.30 % busy");
        check_rule(&RULE, &Fixture::healthy(), "clear: no process dirtied 512 KiB and more than half of all");
    }

    #[test]
    fn a_disk_that_is_busy_with_one_writer_is_a_warning() {
        check_rule(&RULE, &dirty_cliff(), "clear: copier[900] writes over 99 %");
        let busy = dirty_cliff().disk("sda", |t, row| {
            row.writes = Some(Count(9_000_000 + (84.0 * t) as u64));
            row.written = Some(Bytes(mib(42.0 * t)));
            row.io_time = Some(secs(6_000.0 + t));
            row.weighted_io_time = Some(secs(10_000.0 + 40.0 * t));
        });
        check_rule(&RULE, &busy, "warning: copier[900] makes");
    }

    #[test]
    fn a_cgroup_of_many_writers_dominates_too() {
        let mut fixture = slow_journal_volatile();
        for worker in 0..5 {
            fixture = fixture.process("postgres", 2000 + worker, "/system.slice/postgresql.service", |t, row| {
                row.write_bytes = Some(Bytes(mib(t)));
            });
        }
        let fixture = fixture.disk("sda", |t, row| row.io_time = Some(secs(6_000.0 + 0.3 * t)));
        check_rule(&RULE, &fixture, "info: Cgroup /system.slice/postgresql.service makes over 99 %");
    }

    /// A shell that runs one copy after the other. Each copy ends before a second sample sees it.
    fn copies() -> Fixture {
        slow_journal_volatile()
            .process("bash", 600, "/user.slice", |t, row| {
                row.write_bytes = Some(Bytes(mib(30.0 * t)));
                row.cminflt = Some(Count((300.0 * t) as u64));
                row.children_time = Some(secs(0.2 * t));
            })
            .disk("sda", |t, row| row.io_time = Some(secs(6_000.0 + 0.3 * t)))
    }

    #[test]
    fn a_parent_is_not_blamed_for_its_children() {
        check_rule(
            &RULE,
            &copies(),
            "info: Children of bash[600] make over 99 % of all writes to sda (2.34 GiB), which",
        );
        let found = first_finding(&RULE, &copies());
        assert!(found.cause.contains("did less than the children it waited for"), "{}", found.cause);
        assert!(found.evidence.iter().any(|row| row.name == "CPU of children it waited for"), "{:#?}", found.evidence);
    }

    #[test]
    fn where_children_write_is_told_by_their_cgroup() {
        let elsewhere = copies().cgroup_io("/system.slice/backup.service", "sda", |t, row| {
            row.wbytes = Some(Bytes(mib(29.0 * t)));
        });
        let expect = "info: Children of bash[600] (in /system.slice/backup.service) make over 99 %";
        check_rule(&RULE, &elsewhere, expect);
        // Children that write in an unknown cgroup do not make their parent's cgroup dominant.
        let loud = copies().process("rsync", 601, "/user.slice", |t, row| row.write_bytes = Some(Bytes(mib(19.0 * t))));
        check_rule(&RULE, &loud, "info: Children of bash[600] make 61 %");
    }

    #[test]
    fn one_look_names_only_the_journal() {
        let check = |bytes: u64, expect: &str| {
            let fixture = slow_journal().one_look().process("systemd-journal", 300, "/", move |_, row| {
                row.write_bytes = Some(Bytes(bytes));
            });
            check_rule(&RULE, &fixture, expect);
        };
        check(200 << 30, "info: systemd-journal[300] made over 99 %");
        check(900 << 20, "clear: ");
    }

    #[test]
    fn without_process_counters_it_says_so() {
        let denied = || Cause::PermissionDenied { need: "CAP_SYS_PTRACE".into() };
        let fixture = slow_journal().without(Source::ProcessIo, denied());
        check_rule(&RULE, &fixture, "not checked: /proc/PID/io: permission denied (needs CAP_SYS_PTRACE)");
        // One readable process does not stand for the unreadable ones.
        let one_unreadable = dirty_cliff()
            .process("copier", 900, "/", |_, row| row.write_bytes = None)
            .gap(floodline_record::gap::Gap::new(Source::ProcessIo, denied()));
        check_rule(&RULE, &one_unreadable, "not checked: /proc/PID/io: permission denied (needs CAP_SYS_PTRACE)");
    }
}
