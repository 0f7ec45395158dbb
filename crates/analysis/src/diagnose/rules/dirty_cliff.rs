// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `dirty-cliff`: what piles up until the flusher starts takes the device more than a second or two.
//! Confirmed by a burst within the window, or foretold from rates while dirty data pile up. Not about
//! one process (`dominant-writer`) and not about budgets of cgroups.
#![doc = include_str!("dirty_cliff.md")]

mod hoard;
mod unseen;

use self::hoard::{Hoard, by_class, hoard};
use self::unseen::{longest_seen, too_short};
use crate::advise::{step::sysctls, threshold};
use crate::diagnose::burst::{self, Burst, NOTICED_S, STALL_AWAIT_S, STALL_PRESSURE, Trigger};
use crate::diagnose::device::{self, Basis, Device, Speed};
use crate::diagnose::{Rule, Verdict, cycle, dirty, dirtying, flusher, missing, synced, throttle, waiting, writer};
use crate::report::{Brief, Evidence, Finding, Severity, Step};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::units::Bytes;
use floodline_record::window::Window;

/// See the manual page.
pub const RULE: Rule = Rule {
    name: "dirty-cliff",
    summary: "More dirty data piles up than the device writes in a second; then everybody waits",
    manual: include_str!("dirty_cliff.md"),
    explains: &["dominant-writer", "fsync-behind-writeback", "dirty-data-at-risk"],
    check,
};

/// A stall that breaks time limits, seconds.
const HURTS_S: f64 = 2.0;
/// An age that nothing shorter improves much, seconds.
const SHORT_AGE_S: f64 = 3.5;
/// Dirty data pile up when less than this share of what is dirtied is cleaned.
const PILES_UP_SHARE: f64 = 0.5;

fn check(window: &Window) -> Verdict {
    let Some(background) = dirty::background_threshold(window) else {
        return missing::not_checked(window, Source::Vmstat, "nr_dirty_background_threshold");
    };
    let Some(expiry) = dirty::expiry_seconds(window) else {
        return missing::not_checked(window, Source::SysctlVm, "dirty_expire_centisecs");
    };
    let Some(rate) = dirty::dirtying_rate(window) else {
        return Verdict::NotChecked(vec![missing::rate_gap(window, Source::Vmstat, "nr_dirtied")]);
    };
    let drains = device::drains(window);
    if drains.is_empty() {
        return missing::not_checked(window, Source::Diskstats, "no disk");
    }
    // Who syncs what was just written, or keeps nobody waiting, gets what was asked for.
    let is_harmless = |burst: &Burst| burst.is_fresh() || (burst.trigger == Trigger::Asked && !burst.stalled());
    let burst = |device: &Device<'_>| burst::longest(window, device).filter(|burst| !is_harmless(burst));
    if let Some((device, burst)) = drains.iter().find_map(|device| Some((*device, burst(device)?))) {
        return Verdict::Found(vec![confirmed(window, &device, &burst, rate)]);
    }
    let most = (background.0 as f64).min(cycle::to_come(window, rate, expiry));
    let known = hoard(&drains, most);
    let amount = format!("at the rate of this window up to {} are dirty when the flusher starts", human::bytes(most));
    if cycle::is_whole(window) {
        let was_timed = |drain: &Device<'_>| drain.intervals().iter().any(|interval| interval.utilisation.is_some());
        if !drains.iter().any(was_timed) {
            return missing::not_checked(window, Source::Diskstats, "io_time");
        }
        return Verdict::Clear(format!(
            "a whole expiry cycle was seen, and {}: {amount}",
            longest_seen(window, &drains)
        ));
    }
    let hoard = known.or_else(|| by_class(&drains, most)).filter(|hoard| hoard.seconds >= NOTICED_S);
    if let Some(hoard) = hoard.filter(|_| piles_up(window, rate)) {
        return Verdict::Found(vec![foretold(window, &hoard, rate, expiry)]);
    }
    // What was not seen, the slowest disk that is plausible must be able to write in no time.
    let slowest = cycle::slowest_seconds(window, cycle::most(window).unwrap_or(most));
    if slowest < NOTICED_S {
        let least = human::seconds(slowest);
        return Verdict::Clear(format!("too little accumulates to stall: {amount}, {least} of writing at most"));
    }
    match cycle::keeps_up(window) {
        true => Verdict::Clear(format!("dirty data are written about as fast as they are made: {amount}")),
        false => Verdict::NotChecked(too_short(window)),
    }
}

/// Whether what is dirtied stays: more than half of it was not cleaned, and the level shows it.
fn piles_up(window: &Window, rate: f64) -> bool {
    let stays = dirty::cleaning_rate(window).is_none_or(|cleaned| cleaned < PILES_UP_SHARE * rate);
    let series = dirty::dirty_series(window);
    let rises = match (series.first(), series.last()) {
        (Some((_, first)), Some((_, last))) => last > first,
        _ => false,
    };
    stays && rises
}

/// A burst of pages here and there, limited by operations.
fn is_by_operations(burst: &Burst) -> bool {
    burst.mean_write <= device::SMALL_WRITE
}

/// Whether operations of one process are what piles up: that process is the cause then.
fn is_of_one(window: &Window, by_operations: bool) -> bool {
    by_operations && writer::dominant(&writer::writers(window)).is_some()
}

fn confirmed(window: &Window, device: &Device<'_>, burst: &Burst, rate: f64) -> Finding {
    let by_operations = is_by_operations(burst);
    let one_writer = is_of_one(window, by_operations);
    // Who unmounts an overlay asks for the burst: then that is the cause.
    let unmounted = super::overlay_umount_flush::claims(window, device, burst);
    // Who makes the burst waits for his own data, and the flusher for room in the queue.
    let causer = writer::dominant(&writer::writers(window)).map(|(writer, _)| writer.pid);
    let others = waiting::others(window, |waiter| causer == Some(waiter.pid));
    let is_harm = others.as_ref().is_some_and(|others| waiting::is_harm(window, others));
    let is_alone = others.is_some_and(|others| others.is_empty());
    let severity = match (burst.stalled(), burst.trigger) {
        _ if is_alone => Severity::Info,
        _ if unmounted => Severity::Info,
        (false, _) => Severity::Info,
        (true, Trigger::Asked) if !is_harm => Severity::Warning,
        (true, _) if one_writer || (burst.seconds < HURTS_S && !is_harm) => Severity::Warning,
        (true, _) => Severity::Critical,
    };
    let what = if by_operations { "of scattered small pages" } else { "of dirty data" };
    let who = match (burst.stalled(), burst.trigger) {
        (_, Trigger::Asked) if burst.is_traced => ", triggered by a sync. Other writers waited behind it",
        (_, Trigger::Asked) => ", triggered by a sync, an fsync or an unmount. Other writers waited behind it",
        (true, _) => ". All writers waited behind it",
        (false, _) => ". Few tasks waited",
    };
    let summary = format!(
        "{} {what} was flushed to {} in one {} burst{who}.",
        human::bytes(burst.dirty_before as f64),
        device.name,
        human::seconds(burst.seconds)
    );
    let mut evidence = vec![
        Evidence::bytes("Dirty before the burst", burst.dirty_before, "/proc/vmstat nr_dirty + nr_writeback"),
        Evidence::bytes("Dirty after it", burst.dirty_after, "/proc/vmstat nr_dirty + nr_writeback"),
        Evidence::seconds("Length of the burst", burst.seconds, "/proc/diskstats io_time").against(NOTICED_S),
        Evidence::rate("Written during the burst", burst.rate, "/proc/diskstats written"),
        Evidence::rate(
            format!("Written in the {} before", human::seconds(burst.quiet_s)),
            burst.quiet_rate,
            "/proc/diskstats written",
        ),
        Evidence::seconds("Write await, worst interval", burst.await_max_s, "/proc/diskstats write_time ÷ writes")
            .against(STALL_AWAIT_S),
    ];
    evidence.extend(burst.pressure.map(|share| {
        Evidence::share("Time in it with a task waiting", share, "/proc/pressure/io some").against(STALL_PRESSURE)
    }));
    evidence.extend(common_evidence(window, rate));
    let speed = Speed { value: burst.rate, basis: Basis::Saturated };
    let pile = Pile { by_operations, speed, rate, trigger: Some(burst.trigger), is_traced: burst.is_traced };
    Finding {
        confirmed: traced(window, device, burst),
        devices: vec![device.name.to_string()],
        ..finish(window, severity, summary, evidence, pile)
    }
}

/// What a trace saw of a burst: why the flusher wrote, whose data it was, and who waited in what. `None` when the
/// flusher was not traced, or did nothing then.
fn traced(window: &Window, device: &Device<'_>, burst: &Burst) -> Option<String> {
    let bdi = device.dev.to_string();
    let reasons = flusher::by_reason(window, |at, flushed| {
        flushed.bdi.as_bytes() == bdi.as_bytes() && flushed.since < burst.to && at > burst.from
    })?;
    let (reason, rounds) = reasons.first()?;
    let mut text = format!(
        "The flusher wrote for {} in it, because of {}.",
        human::seconds(rounds.busy.as_secs_f64()),
        match *reason {
            "background" => "the background threshold (background)".to_owned(),
            "periodic" => "the age of the data (periodic)".to_owned(),
            other => other.to_owned(),
        }
    );
    let filesystems: Vec<_> = device.mounts().iter().map(|mount| mount.dev).collect();
    let piled = dirtying::dirtying(window, |at, dirtied| at <= burst.to && filesystems.contains(&dirtied.device));
    if let Some((who, file)) = piled.and_then(|piled| piled.most_by().zip(piled.most_in())) {
        text.push_str(&format!(" Of what was dirtied until then, most is by {who} and in {file}."));
    }
    let paused = throttle::total(window, None);
    if let Some((waits, paused)) = synced::waits(window).zip(paused) {
        text.push_str(&format!(
            " Tasks waited {} in fsync and its like and were paused {} in dirty throttling.",
            human::seconds(waits.total.as_secs_f64()),
            human::seconds(paused.total.as_secs_f64())
        ));
    }
    Some(text)
}

fn foretold(window: &Window, hoard: &Hoard<'_>, rate: f64, expiry: f64) -> Finding {
    let (severity, least) = match hoard.speed.basis {
        Basis::AtMost => (Severity::Info, "at least "),
        _ if hoard.seconds >= HURTS_S => (Severity::Warning, ""),
        _ => (Severity::Info, ""),
    };
    let summary = format!(
        "Unwritten data pile up: when the flusher starts, {} writes for {least}{} and all other writers wait.",
        hoard.device.name,
        human::seconds(hoard.seconds)
    );
    let mut evidence = vec![
        Evidence::bytes("Piles up until then", hoard.bytes as u64, "min(background threshold, dirtying rate × expiry)"),
        Evidence::seconds("Time to write it", hoard.seconds, "piled up ÷ device speed").against(HURTS_S),
        Evidence::seconds("Expiry", expiry, "/proc/sys/vm/dirty_expire_centisecs"),
    ];
    evidence.push(match hoard.by_operations {
        None => {
            Evidence::rate(format!("Bandwidth of {}", hoard.device.name), hoard.speed.value, hoard.speed.basis.source())
        }
        Some(_) => Evidence::per_second(
            format!("Small writes of {}", hoard.device.name),
            hoard.speed.value,
            hoard.speed.basis.source(),
        ),
    });
    evidence.extend(common_evidence(window, rate));
    // So few bytes per second no disk writes but in small pieces.
    let by_operations = hoard.by_operations.is_some() || hoard.speed.value < cycle::SLOWEST;
    let pile = Pile { by_operations, speed: hoard.speed, rate, trigger: None, is_traced: false };
    Finding { devices: vec![hoard.device.name.to_string()], ..finish(window, severity, summary, evidence, pile) }
}

/// What both kinds rest on: the rate, the level, the thresholds, and whether the limit was touched.
fn common_evidence(window: &Window, rate: f64) -> Vec<Evidence> {
    let mut evidence = vec![Evidence::rate("Dirtied", rate, "/proc/vmstat nr_dirtied")];
    let background = dirty::background_threshold(window);
    evidence.extend(dirty::dirty_peak(window).zip(background).map(|(peak, background)| {
        Evidence::bytes("Most dirty, against background", peak.0, "/proc/vmstat nr_dirty").against(background.0 as f64)
    }));
    evidence.extend(dirty::dirty_peak(window).zip(dirty::freerun_ceiling(window)).map(|(peak, ceiling)| {
        Evidence::bytes("Most dirty, against throttling", peak.0, "freerun ceiling (thresh + bg_thresh) / 2")
            .against(ceiling.0 as f64)
    }));
    evidence.extend(throttle::evidence(window, |_| true));
    evidence.extend(synced::waits(window).iter().flat_map(synced::Waits::evidence));
    evidence
}

/// What piled up, as far as cause and cure depend on it.
struct Pile {
    /// Whether operations and not bytes are the device's limit.
    by_operations: bool,
    speed: Speed,
    /// Bytes dirtied per second.
    rate: f64,
    /// What the burst was for, where there was one.
    trigger: Option<Trigger>,
    /// Whether a trace shows that.
    is_traced: bool,
}

fn finish(window: &Window, severity: Severity, summary: String, evidence: Vec<Evidence>, pile: Pile) -> Finding {
    let Pile { by_operations, speed, rate, trigger, is_traced } = pile;
    let reached = dirty::dirty_peak(window).zip(dirty::background_threshold(window));
    let was_reached = |(peak, background): (Bytes, Bytes)| peak.0 as f64 >= 0.95 * background.0 as f64;
    let (cause, plain) = match trigger {
        Some(Trigger::Asked) => (
            "Neither the amount of dirty data nor, by the levels seen, their age was enough to wake the flusher: a sync, an \
             fsync of a large file, or an unmount asked for it",
            "A sync, an fsync of a large file or an unmount asked for the data",
        ),
        _ if trigger == Some(Trigger::Amount) || reached.is_some_and(was_reached) => (
            "Dirty data reached the background threshold, which is more than this device writes in a second",
            "The kernel starts writing late: at an amount that this disk needs more than a second for",
        ),
        Some(Trigger::Unknown) => (
            "Dirty data stayed below the background threshold, and were there before the first sample: their age may have \
             woken the flusher, or a sync, an fsync of a large file or an unmount",
            "The kernel writes nothing until the data are old enough or a sync asks for them, and then all of it",
        ),
        _ => (
            "Dirty data stay below the background threshold, so that their age wakes the flusher, which then takes all that \
             has expired",
            "The kernel writes nothing until the data are old enough, and then all of it",
        ),
    };
    // By level and age alone another cause is possible.
    let likely = match trigger {
        Some(_) if !is_traced && window.traced.contains("flusher") => {
            " Amount and age make this likely; the flusher itself wrote too little of it for its reason to be the reason."
        }
        Some(_) if !is_traced => {
            " Amount and age make this likely; only a trace shows what woke the flusher: floodline doctor --trace on."
        }
        _ => "",
    };
    // Counted where it was traced, otherwise what the level allows.
    let paused = throttle::total(window, None).map(|pauses| pauses.count > 0);
    let throttled = match paused.or(dirty::can_have_throttled(window)) {
        Some(false) => " vm.dirty_ratio is not to blame: no writer was throttled by it.",
        Some(true) if paused.is_some() => " Some writers were paused in dirty throttling too.",
        Some(true) => " Writers were over the freerun ceiling too and were throttled.",
        None => "",
    };
    let too_fast = !by_operations && rate > speed.value;
    let faster = if too_fast {
        " What is dirtied is more than the device writes: no setting helps fsync then, the disk is full either way."
    } else {
        ""
    };
    let one_writer = is_of_one(window, by_operations);
    let (plan, trade_off) = match one_writer {
        true => (Vec::new(), "No setting of vm cures it: see dominant-writer, which names what helps.".to_owned()),
        false => remedy(window, by_operations, speed),
    };
    let brief = Brief {
        because: format!("{plain}. They go to the disk in one piece, and every other write waits behind it."),
        who: String::new(),
        expect: match too_fast {
            _ if one_writer => {
                "No setting makes a program write less. Let it write less or in larger pieces, move its \
                                files to another disk, or set MemoryHigh= for its unit."
                    .to_owned()
            }
            true => "More is written than the disk can take: the waits get shorter but do not end.".to_owned(),
            false => {
                "The disk writes small pieces early instead of one large piece late. The waits get short.".to_owned()
            }
        },
        costs: match one_writer {
            true => String::new(),
            false => "Pages that are rewritten often are written more often.".to_owned(),
        },
    };
    Finding {
        rule: RULE.name,
        confirmed: None,
        severity,
        summary,
        evidence,
        cause: format!("{cause}.{likely}{throttled}{faster}"),
        brief,
        explained_by: None,
        devices: Vec::new(),
        plan,
        trade_off,
    }
}

/// Bytes where no cgroup is starved by them, otherwise a shorter age at unchanged thresholds. Operations
/// are not bytes: a threshold cannot hold "thirty writes", a short age can.
fn remedy(window: &Window, by_operations: bool, speed: Speed) -> (Vec<Step>, String) {
    let needs = threshold::Needs::of(window, Some(speed));
    let advice = threshold::choose(&needs)
        .filter(|advice| !by_operations && matches!(advice.pair, threshold::Pair::Bytes { .. }));
    let lower = advice.as_ref().and_then(|advice| threshold::lowering(window, advice));
    if let Some((advice, pair)) = advice.as_ref().zip(lower) {
        return (
            sysctls(window, &pair.changes()),
            format!(
                "{} {} Instead, at unchanged thresholds: vm.dirty_expire_centisecs=300 and \
                 vm.dirty_writeback_centisecs=100.",
                advice.why, advice.trade_off
            ),
        );
    }
    let shorter_age = shorter_age(window);
    let costs = " Pages that are rewritten often are written up to ten times as often.";
    let why = match (&advice, by_operations, shorter_age.is_empty()) {
        (_, _, true) => {
            "The thresholds and the age in force are already as short as they help: no setting of vm cures this. Let less \
             be written, spread it, or use a faster disk."
        }
        (Some(_), ..) => "A shorter age, because the thresholds in force are not what lets this pile up.",
        (None, true, _) => {
            "A shorter age, because the device is limited by operations, which no byte threshold counts."
        }
        (None, false, _) => {
            "A shorter age, because byte thresholds do not fit here: they would starve cgroups with memory limits, or \
             the speed of the device is not known."
        }
    };
    let costs = if shorter_age.is_empty() { "" } else { costs };
    (shorter_age, format!("{why}{costs}"))
}

/// An age of three seconds, looked at each second: nothing where the one in force is as short.
fn shorter_age(window: &Window) -> Vec<Step> {
    let is_short = dirty::expiry_seconds(window).is_some_and(|expiry| expiry <= SHORT_AGE_S);
    if is_short {
        return Vec::new();
    }
    sysctls(window, &[("vm.dirty_expire_centisecs", 300), ("vm.dirty_writeback_centisecs", 100)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::{check_rule, first_finding};
    use floodline_record::gap::Cause;
    use floodline_record::units::{BytesPerSecond, Count, Pages};
    use floodline_testkit::incidents::{dirty_cliff, dirty_cliff_cured, dirty_cliff_published};
    use floodline_testkit::{Fixture, mib, mib_pages, secs};

    fn commands(finding: &Finding) -> Vec<&str> {
        finding.plan.iter().map(|step| step.command.as_str()).take(2).collect()
    }

    #[test]
    fn the_measured_cliff_is_critical_and_gets_the_measured_cure() {
        check_rule(&RULE, &dirty_cliff(), "critical: 298 MiB of dirty data was flushed to sda in one 7.00 s burst");
        let finding = first_finding(&RULE, &dirty_cliff());
        assert_eq!(
            commands(&finding),
            ["sysctl -w vm.dirty_background_bytes=33554432", "sysctl -w vm.dirty_bytes=134217728"]
        );
        assert!(finding.cause.contains("vm.dirty_ratio is not to blame"), "{}", finding.cause);
        check_rule(&RULE, &dirty_cliff_cured(), "clear:");
    }

    #[test]
    fn a_trace_names_the_reason_the_writer_and_what_tasks_waited_in() {
        use crate::diagnose::dirtying::tests::dirtied;
        use crate::diagnose::flusher::tests::flushed;
        use crate::diagnose::synced::tests::synced;
        use floodline_record::traced::waits::Operation;
        let events = |reason| {
            vec![
                dirtied((41, 1, 131, "/bulk", 300 << 20, 0)),
                flushed(("8:0", 1, reason, 300, 6500)),
                synced((42, Operation::Fdatasync, 9, 12_000, 6_800)),
            ]
        };
        let traced = |reason| {
            let mut window = dirty_cliff().traced(&["bytes", "flusher", "throttle"], events(reason)).window();
            let burst = device::drains(&window).iter().find_map(|device| burst::longest(&window, device)).unwrap();
            window.events.iter_mut().for_each(|event| event.at = burst.to);
            let Verdict::Found(mut findings) = check(&window) else { panic!("nothing found") };
            findings.remove(0)
        };
        let confirmed = traced("periodic").confirmed.unwrap();
        for part in
            ["6.50 s in it, because of the age", "by dd[41] (100 %) and in", "waited 12 s in fsync", "paused 0 s"]
        {
            assert!(confirmed.contains(part), "{part}: {confirmed}");
        }
        // The kernel's word counts, not what age and amount would allow.
        assert!(traced("background").cause.starts_with("Dirty data reached the background threshold"));
        assert_eq!(first_finding(&RULE, &dirty_cliff()).confirmed, None);
    }

    #[test]
    fn the_published_cliff_gets_the_published_cure() {
        let finding = first_finding(&RULE, &dirty_cliff_published());
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(
            commands(&finding),
            ["sysctl -w vm.dirty_background_bytes=268435456", "sysctl -w vm.dirty_bytes=1073741824"]
        );
        assert!(finding.cause.starts_with("Dirty data reached the background threshold"), "{}", finding.cause);
    }

    /// The first ten seconds: nothing has been written yet.
    fn rising(bandwidth_mib: f64) -> Fixture {
        dirty_cliff().seconds(10).bdi("8:0", move |_, row| {
            row.write_bandwidth = Some(BytesPerSecond(mib(bandwidth_mib)));
        })
    }

    #[test]
    fn while_dirty_data_pile_up_the_stall_is_foretold() {
        check_rule(
            &RULE,
            &rising(38.0),
            "warning: Unwritten data pile up: when the flusher starts, sda writes for 7.83 s",
        );
        check_rule(&RULE, &rising(190.0), "info: Unwritten data pile up");
        check_rule(
            &RULE,
            &rising(910.0),
            "not checked: /proc/diskstats (a disk at its limit, or a whole cycle of expiry)",
        );
    }

    /// Without debugfs and without a disk at its limit: ten seconds of a machine whose writer is faster.
    fn blind(rate_mib: f64) -> Fixture {
        Fixture::healthy()
            .memory_gib(64.0)
            .host(move |t, row| {
                row.nr_dirty = Some(mib_pages(rate_mib * t));
                row.nr_dirtied = Some(Pages(40_000_000 + mib_pages(rate_mib * t).0));
            })
            .without(Source::DebugBdiStats, Cause::NotMounted { fs_type: "debugfs".into() })
    }

    #[test]
    fn without_a_speed_the_kind_of_disk_is_a_bound() {
        let turning = |fixture: Fixture| fixture.facts(|facts| facts.devices[0].rotational = Some(true));
        check_rule(&RULE, &blind(60.0), "not checked: /sys/kernel/debug/bdi/NAME/stats");
        let expect = "info: Unwritten data pile up: when the flusher starts, sda writes for at least 6.29 s";
        check_rule(&RULE, &turning(blind(60.0)), expect);
        // Even the fastest of its kind may be fast enough.
        check_rule(&RULE, &turning(blind(5.0)), "not checked: /sys/kernel/debug/bdi/NAME/stats");
        check_rule(
            &RULE,
            &blind(0.1),
            "clear: too little accumulates to stall: at the rate of this window up to 3.00 MiB are dirty",
        );
        // It was seen to write so much that the rest is told from that.
        let writes = blind(5.0).disk("sda", |t, row| {
            row.written = Some(Bytes(mib(30.0 * t)));
            row.io_time = Some(secs(0.1 * t));
        });
        check_rule(
            &RULE,
            &writes,
            "clear: too little accumulates to stall: at the rate of this window up to 150 MiB are dirty",
        );
    }

    #[test]
    fn a_whole_cycle_without_a_burst_clears_without_any_speed() {
        check_rule(
            &RULE,
            &blind(60.0).seconds(36),
            "clear: a whole expiry cycle was seen, and no disk was full for a second",
        );
    }

    #[test]
    fn a_burst_that_was_asked_for_or_hurt_nobody_is_not_the_cliff() {
        let calm = dirty_cliff().host(|_, row| row.psi_io_some = Some(secs(900.0)));
        check_rule(&RULE, &calm, "info: 298 MiB of dirty data was flushed to sda in one 7.00 s burst. Few tasks");
        let asked =
            dirty_cliff().host(|_, row| row.dirty_expire_centisecs = Some(floodline_record::units::Centisecs(6000)));
        check_rule(
            &RULE,
            &asked,
            "warning: 298 MiB of dirty data was flushed to sda in one 7.00 s burst, triggered by a sync",
        );
        assert!(
            first_finding(&RULE, &asked).cause.contains("an unmount asked for it"),
            "{}",
            first_finding(&RULE, &asked).cause
        );
    }

    #[test]
    fn what_is_written_as_fast_as_it_is_made_does_not_pile_up() {
        let flat = rising(38.0).host(|t, row| {
            row.nr_dirty = Some(mib_pages(300.0));
            row.nr_written = Some(Pages(38_000_000 + mib_pages(9.9 * t).0));
        });
        check_rule(&RULE, &flat, "clear: dirty data are written about as fast as they are made");
    }

    #[test]
    fn a_large_threshold_that_nothing_fills_is_no_finding() {
        let large = Fixture::healthy().memory_gib(128.0).bdi("8:0", |_, row| {
            row.write_bandwidth = Some(BytesPerSecond(mib(42.0)));
        });
        check_rule(&RULE, &large, "clear: too little accumulates");
    }

    #[test]
    fn cgroups_that_bytes_would_starve_get_a_shorter_age_instead() {
        let limited = dirty_cliff()
            .cgroup("/small", |_, row| {
                row.memory_current = Some(Bytes(mib(110.0)));
                row.file_dirty = Some(Bytes(mib(1.0)));
            })
            .limits("/small", |_, row| row.memory_max = Some(floodline_record::units::Limit(mib(128.0))));
        let finding = first_finding(&RULE, &limited);
        assert_eq!(
            commands(&finding),
            ["sysctl -w vm.dirty_expire_centisecs=300", "sysctl -w vm.dirty_writeback_centisecs=100"]
        );
    }

    #[test]
    fn a_writer_that_is_faster_than_the_disk_is_told_so() {
        let fast = dirty_cliff().host(|t, row| row.nr_dirtied = Some(Pages(40_000_000 + mib_pages(90.0 * t).0)));
        assert!(
            first_finding(&RULE, &fast).cause.contains("no setting helps fsync"),
            "{}",
            first_finding(&RULE, &fast).cause
        );
    }

    #[test]
    fn a_disk_that_is_busy_all_the_time_has_no_cliff() {
        let busy = dirty_cliff().host(|t, row| {
            row.nr_dirty = Some(mib_pages(200.0));
            row.nr_written = Some(Pages(38_000_000 + mib_pages(9.9 * t).0));
        });
        let busy = busy.disk("sda", |t, row| {
            row.written = Some(Bytes(mib(160_000.0 + 42.0 * t)));
            row.writes = Some(Count(9_000_000 + (84.0 * t) as u64));
            row.io_time = Some(secs(6_000.0 + t));
            row.weighted_io_time = Some(secs(10_000.0 + 50.0 * t));
        });
        check_rule(&RULE, &busy, "clear: a whole expiry cycle was seen");
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        check_rule(
            &RULE,
            &dirty_cliff().one_look(),
            "not checked: /proc/vmstat (nr_dirtied): observation too short (use --for 10s)",
        );
        let unsupported = || Cause::NotMounted { fs_type: "debugfs".into() };
        let blind = dirty_cliff().seconds(10).without(Source::DebugBdiStats, unsupported());
        check_rule(
            &RULE,
            &blind,
            "not checked: /sys/kernel/debug/bdi/NAME/stats: debugfs is not mounted\nnot checked: /proc/diskstats (a disk at \
             its limit, or a whole cycle of expiry): observation too short (use --for 36s)",
        );
        let vanished = dirty_cliff().without(Source::Vmstat, Cause::Vanished);
        check_rule(&RULE, &vanished, "not checked: /proc/vmstat: removed before it was read");
    }
}
