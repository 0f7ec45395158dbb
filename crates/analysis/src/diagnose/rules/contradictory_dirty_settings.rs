// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `contradictory-dirty-settings`: a writeback setting is void, contradicts another, or has a value that cannot be
//! intended. Reads settings only, except to check whether one of them hurts now. `dirty-cliff` judges whether sensible
//! thresholds suit this machine's devices.
#![doc = include_str!("contradictory_dirty_settings.md")]

use crate::advise::threshold;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Device;
use crate::diagnose::load::{self, Kind, Load};
use crate::diagnose::settings::Settings;
use crate::diagnose::{Rule, Verdict, short_limit};
use crate::report::{Brief, Evidence, Finding, Severity, Step};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::id::{Entity, EntityId};
use floodline_record::sample::HostRow;
use floodline_record::units::{Centisecs, Pages, Ppm};

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "contradictory-dirty-settings",
    summary: "A writeback setting has no effect, contradicts another one, or has an implausible value",
    manual: include_str!("contradictory_dirty_settings.md"),
    explains: &["dirty-cliff", "fsync-behind-writeback", "dominant-writer"],
    check,
};

/// Share of the window with tasks waiting for I/O from which an exceeded limit hurts.
const HURTS_IO_PRESSURE: f64 = 0.05;
/// Part of the time in which a disk was full with a task waiting from which that was felt.
const FELT_PRESSURE: f64 = 0.5;
/// Part of the window in which a disk is busy up to which it has room for more writes.
const ROOM: f64 = 0.25;
/// Part of the dirtied bytes by which the page cache may grow where mostly the same pages are dirtied again.
const MOSTLY_OLD: f64 = 0.5;
/// The shortest expiry that can be intended.
const SHORTEST_EXPIRY: Centisecs = Centisecs(100);
/// A machine's share of the thresholds, before a bdi's cap is one.
const WHOLE: Ppm = Ppm(1_000_000);

fn check(derived: &Derived<'_>) -> Verdict {
    let Some(settings) = Settings::of(&derived.window.host.last) else {
        return derived.not_checked(Source::SysctlVm, "vm.dirty_*");
    };
    let mut findings = Vec::new();
    findings.extend(tiny_limit(derived, &settings).or_else(|| void_background(derived, &settings)));
    findings.extend(tiny_background(derived, &settings));
    findings.extend(mixed_pair(derived, &settings).filter(|_| findings.is_empty()));
    findings.extend(
        no_periodic_writeback(derived).or_else(|| hasty_expiry(derived)).or_else(|| expiry_below_period(derived)),
    );
    findings.extend(laptop_mode(derived));
    findings.extend(unenforced_caps(derived));
    if findings.is_empty() {
        return Verdict::Clear(format!(
            "background {} is below limit {}, both have one unit, and periodic writeback is on",
            settings.background(),
            settings.limit()
        ));
    }
    Verdict::Found(findings)
}

fn finding(severity: Severity, summary: String, evidence: Vec<Evidence>, cause: &str, plan: Vec<Step>) -> Finding {
    Finding {
        rule: RULE.name,
        severity,
        summary,
        evidence,
        cause: cause.to_owned(),
        brief: Brief {
            because: cause.to_owned(),
            expect: "The settings do what their names say.".to_owned(),
            ..Brief::default()
        },
        plan,
        trade_off: "Nothing is lost: the present value does not do what its name says.".to_owned(),
        ..Finding::default()
    }
}

/// The limit is zero or absurdly small: every writer of the machine is throttled.
fn tiny_limit(derived: &Derived<'_>, settings: &Settings) -> Option<Finding> {
    if !settings.has_tiny_limit() {
        return None;
    }
    let pressure = derived.dirty.io_pressure_some;
    let hurts = derived.dirty.can_have_throttled == Some(true) && pressure.is_some_and(|p| p >= HURTS_IO_PRESSURE);
    let name = if settings.bytes == 0 { "vm.dirty_ratio" } else { "vm.dirty_bytes" };
    let value = settings.limit();
    let mut evidence = vec![settings.limit_row()];
    evidence.extend(derived.dirty.hard_threshold_row());
    evidence.extend(derived.dirty.peak.map(|peak| Evidence::bytes("Most dirty", peak.0, "/proc/vmstat nr_dirty")));
    evidence.extend(derived.dirty.io_pressure_row().map(|row| row.against(HURTS_IO_PRESSURE)));
    Some(Finding {
        trade_off: "More data may be dirty at a time: up to the new limit is lost in a power cut.".to_owned(),
        ..finding(
            if hurts { Severity::Critical } else { Severity::Warning },
            format!("{name} is {value}: every program that writes is put to sleep again and again."),
            evidence,
            "The limit is below what a single program dirties between two checks, so the whole machine is over it \
             whenever anything writes. Such values are usually meant in another unit.",
            sensible(derived),
        )
    })
}

/// Thresholds that suit this machine, if it is known well enough; otherwise the kernel's defaults.
fn sensible(derived: &Derived<'_>) -> Vec<Step> {
    let speed = derived.speed();
    match threshold::choose(&threshold::Needs::of(derived, speed)) {
        Some(advice) => derived.sysctls(&advice.pair.changes()),
        None => derived.sysctls(&[("vm.dirty_background_ratio", 10), ("vm.dirty_ratio", 20)]),
    }
}

/// The background threshold is zero or absurdly small while the limit is not.
fn tiny_background(derived: &Derived<'_>, settings: &Settings) -> Option<Finding> {
    if settings.has_tiny_limit() || !settings.has_tiny_background() {
        return None;
    }
    let value = settings.background();
    let full = kept_full(derived);
    let mut evidence = vec![settings.background_row()];
    evidence.extend(full_rows(full));
    evidence.extend(full.and(derived.dirty.io_pressure_row()));
    let have_room = have_disks_room(derived);
    let severity = match (full.is_some(), have_room) {
        (true, _) => Severity::Critical,
        (false, true) => Severity::Info,
        (false, false) => Severity::Warning,
    };
    let room = if have_room { " The disks have room for that." } else { "" };
    let found = finding(
        severity,
        format!(
            "The background threshold is {value}: the flusher never rests and every page is written at once.{room}"
        ),
        evidence,
        "Whatever is dirty is over the background threshold, so the flusher writes it immediately. Pages that are \
         rewritten often are then written as often as the device allows instead of once in half a minute.",
        derived.sysctls(&[settings.background_at_half()]),
    );
    // Wherever writeback fills a disk, even for a part of the window, it is by this setting.
    let is_by_it = |(_, load): &&(Device<'_>, Load)| load.kind() == Kind::Writeback && load.seconds > 0.0;
    let devices = derived.loads().iter().filter(is_by_it).map(|(disk, _)| disk.name.to_string()).collect();
    Some(Finding { devices, ..found })
}

/// The background threshold is at or above the limit, so the kernel uses half of the limit.
fn void_background(derived: &Derived<'_>, settings: &Settings) -> Option<Finding> {
    if !settings.is_void(derived.dirty.dirtyable_roughly) {
        return None;
    }
    let mut evidence = vec![settings.background_row().against_text(settings.limit())];
    evidence.extend(derived.dirty.background_threshold_row("Background threshold in force"));
    evidence.push(settings.limit_row());
    let void = format!(
        "The background threshold of {} is ignored: it is not below the limit of {}",
        settings.background(),
        settings.limit()
    );
    // The limit was not meant to be the lower one: what it does is the harm of the pair.
    if let Some(waits) = short_limit::of_void_pair(RULE.name, derived).filter(|waits| waits.severity > Severity::Info) {
        evidence.extend(waits.evidence);
        let summary = format!("{void}, so half of the limit is used. {}", waits.summary);
        return Some(Finding { summary, evidence, ..waits });
    }
    Some(finding(
        Severity::Info,
        format!("{void}, so half of the limit is used."),
        evidence,
        "domain_dirty_limits() replaces a background threshold that is not below the limit by half of the limit.",
        derived.sysctls(&[settings.background_at_half()]),
    ))
}

/// One threshold in bytes, the other in percent, neither void.
fn mixed_pair(derived: &Derived<'_>, settings: &Settings) -> Option<Finding> {
    if !settings.are_mixed() {
        return None;
    }
    let (hard, background) = (derived.dirty.hard_threshold?, derived.dirty.background_threshold?);
    let mut evidence = vec![settings.limit_row(), settings.background_row()];
    evidence.extend(derived.dirty.hard_threshold_row());
    evidence.extend(derived.dirty.background_threshold_row("Background threshold in force"));
    Some(finding(
        Severity::Info,
        "One dirty threshold is set in bytes and the other in percent: they drift apart as memory use changes."
            .to_owned(),
        evidence,
        "Percentages follow the memory that is free or file cache at the moment, bytes do not.",
        match settings.bytes {
            0 => derived.sysctls(&[("vm.dirty_bytes", hard.0)]),
            _ => derived.sysctls(&[("vm.dirty_background_bytes", background.0)]),
        },
    ))
}

fn no_periodic_writeback(derived: &Derived<'_>) -> Option<Finding> {
    let interval = derived.window.host.last.dirty_writeback_centisecs.filter(|interval| *interval == Centisecs(0))?;
    let mut evidence =
        vec![Evidence::reading("Flusher period", interval, "/proc/sys/vm/dirty_writeback_centisecs").against(500.0)];
    evidence.extend(derived.dirty.now.map(|now| Evidence::bytes("Dirty now", now.0, "/proc/vmstat nr_dirty")));
    evidence.extend(derived.dirty.background_threshold_row("Written only above"));
    let speed = derived.speed();
    let lower = threshold::choose(&threshold::Needs::of(derived, speed))
        .and_then(|advice| threshold::lowering(derived, &advice));
    let bursts = match &lower {
        Some(_) => "With the smaller thresholds, old data do not go to the disk in one burst.",
        None => {
            "Data that become old go to the disk in one burst each time. Where a burst takes the disk more than a second, \
                 lower the background threshold too."
        }
    };
    let expiry = derived.window.host.last.dirty_expire_centisecs.filter(|_| lower.is_none());
    let costs = expiry.map(|expiry| threshold::cost_of_age(expiry.0 as f64 / 100.0)).unwrap_or_default();
    // Without lower thresholds, expiry would flush half a minute's writes at once.
    let mut changes = lower.map_or(Vec::new(), |pair| pair.changes().to_vec());
    changes.push(("vm.dirty_writeback_centisecs", 500));
    let found = finding(
        Severity::Warning,
        "Periodic writeback is switched off: data below the background threshold stay in memory indefinitely."
            .to_owned(),
        evidence,
        "vm.dirty_writeback_centisecs = 0 stops the flusher's timer and with it expiry by age. Data then stay in memory \
         until the background threshold is reached, and go to the disk all at once.",
        derived.sysctls(&changes),
    );
    Some(Finding {
        trade_off: format!(
            "The change writes out everything that is dirty now, once. Disks no longer sleep for long. {bursts}"
        ),
        brief: Brief { costs, ..found.brief },
        ..found
    })
}

/// Whether each disk is idle for most of the time, and had a moment without requests in each interval.
fn have_disks_room(derived: &Derived<'_>) -> bool {
    let is_idle = |disk: &Device<'_>| disk.utilisation().is_some_and(|busy| busy <= ROOM);
    let disks = derived.disks();
    derived.has_rates
        && !disks.is_empty()
        && disks.iter().all(is_idle)
        && derived.loads().iter().all(|(_, load)| load.seconds <= 0.0)
}

/// The disk that the flusher keeps full with pages that were written before, while tasks wait.
fn kept_full<'d, 'a>(derived: &'d Derived<'a>) -> Option<&'d (Device<'a>, Load)> {
    let is_full = |load: &Load| {
        load.kind() == Kind::Writeback
            && load.share >= load::LASTS_SHARE
            && load.pressure.is_some_and(|of| of >= FELT_PRESSURE)
    };
    // Files that grow would be written once with any setting.
    let is_rewritten = || {
        let (first, last) = (&derived.window.host.first, &derived.window.host.last);
        let grown = last.cached?.0.saturating_sub(first.cached?.0) as f64;
        let dirtied = derived.dirty.dirtying_rate? * derived.seconds;
        let growth = &derived.window.host.growth;
        let scanned = [growth.pgscan_direct, growth.pgscan_kswapd];
        let is_reclaimed = scanned.into_iter().flatten().any(|pages| pages.0 > 0);
        Some(!is_reclaimed && grown <= MOSTLY_OLD * dirtied)
    };
    derived.loads().iter().find(|(_, load)| is_full(load)).filter(|_| is_rewritten() == Some(true))
}

/// How full such a disk is, as evidence.
fn full_rows(full: Option<&(Device<'_>, Load)>) -> Option<Evidence> {
    full.map(|(disk, load)| {
        Evidence::share(format!("{} busy, part of the window", disk.name), load.share, "/proc/diskstats io_time")
            .against(load::LASTS_SHARE)
    })
}

/// An expiry of less than a second, with a flusher that wakes as often: both are usually meant in seconds.
fn hasty_expiry(derived: &Derived<'_>) -> Option<Finding> {
    let row = &derived.window.host.last;
    let (expire, interval) = (row.dirty_expire_centisecs?, row.dirty_writeback_centisecs?);
    if expire >= SHORTEST_EXPIRY || interval > expire {
        return None;
    }
    let seconds = |of: Centisecs| human::seconds(of.0 as f64 / 100.0);
    let full = kept_full(derived);
    let mut evidence = vec![
        Evidence::reading("Expiry", expire, "/proc/sys/vm/dirty_expire_centisecs").against(SHORTEST_EXPIRY.0 as f64),
        Evidence::reading("Flusher period", interval, "/proc/sys/vm/dirty_writeback_centisecs"),
    ];
    evidence.extend(full_rows(full));
    evidence.extend(derived.dirty.io_pressure_row());
    let told =
        format!("Dirty data expire after {}, and the flusher wakes every {}", seconds(expire), seconds(interval));
    let found = finding(
        if full.is_some() { Severity::Critical } else { Severity::Info },
        match full {
            Some((disk, _)) => format!("{told}: its writes keep {} full.", disk.name),
            None => format!("{told}: a page that changes all the time is written again and again."),
        },
        evidence,
        "Both timers are in hundredths of a second. Such values are usually meant in seconds. A page that is changed again soon \
         is written many times instead of once.",
        derived.sysctls(&[("vm.dirty_expire_centisecs", 3000), ("vm.dirty_writeback_centisecs", 500)]),
    );
    Some(Finding {
        trade_off: "More data may be unwritten at a time: up to half a minute of writes is lost in a power cut."
            .to_owned(),
        devices: full.map(|(disk, _)| disk.name.to_string()).into_iter().collect(),
        brief: Brief {
            expect: "By age, each page is written once in half a minute at most.".to_owned(),
            costs: "A power cut loses up to half a minute of writes.".to_owned(),
            ..found.brief
        },
        ..found
    })
}

fn expiry_below_period(derived: &Derived<'_>) -> Option<Finding> {
    let row = &derived.window.host.last;
    let (expire, interval) = (row.dirty_expire_centisecs?, row.dirty_writeback_centisecs?);
    if expire >= interval {
        return None;
    }
    Some(finding(
        Severity::Info,
        format!(
            "Data expire after {} but the flusher wakes only every {}.",
            human::seconds(expire.0 as f64 / 100.0),
            human::seconds(interval.0 as f64 / 100.0)
        ),
        vec![
            Evidence::reading("Expiry", expire, "/proc/sys/vm/dirty_expire_centisecs").against(interval.0 as f64),
            Evidence::reading("Flusher period", interval, "/proc/sys/vm/dirty_writeback_centisecs"),
        ],
        "Age is checked when the flusher's timer fires, so nothing is written sooner than its period.",
        // A timer that fires all the time is useless: such a short expiry is not intended.
        match expire < SHORTEST_EXPIRY {
            true => derived.sysctls(&[("vm.dirty_expire_centisecs", interval.0.max(300))]),
            false => derived.sysctls(&[("vm.dirty_writeback_centisecs", expire.0 / 3)]),
        },
    ))
}

fn laptop_mode(derived: &Derived<'_>) -> Option<Finding> {
    let mode = derived.window.host.last.laptop_mode.filter(|mode| mode.0 > 0)?;
    // A kernel without laptop mode still has the sysctl, which does nothing.
    let behaviour = derived.behaviour;
    let is_void = behaviour.is_some_and(|kernel| !kernel.arithmetic.laptop_mode);
    // The mode changes something only where dirty data exceeded the background threshold of that moment.
    let over = |row: &HostRow| {
        let (dirty, threshold) = (row.nr_dirty?.0, row.nr_dirty_background_threshold?.0);
        Some((dirty, threshold, dirty as f64 / threshold.max(1) as f64))
    };
    let rows = derived.window.host_series.iter().filter_map(|(_, row)| over(row));
    let nearest = rows.max_by(|one, other| one.2.total_cmp(&other.2));
    let is_held_back = nearest.is_none_or(|(dirty, threshold, _)| dirty > threshold);
    let (severity, summary) = match (is_void, is_held_back) {
        (true, _) => (Severity::Info, "Laptop mode is set and this kernel ignores it."),
        (false, true) => {
            (Severity::Warning, "Laptop mode is on: the flusher is not woken when the background threshold is passed.")
        }
        (false, false) => {
            (Severity::Info, "Laptop mode is on. It held nothing back: no sample is above the background threshold.")
        }
    };
    // A laptop that writes little may keep this mode to let its disk sleep.
    let plan = if is_void || is_held_back { derived.sysctls(&[("vm.laptop_mode", 0)]) } else { Vec::new() };
    let mut evidence = vec![Evidence::reading("Laptop mode", mode, "/proc/sys/vm/laptop_mode").against(0.0)];
    if let Some((dirty, threshold, _)) = nearest.filter(|_| !is_void) {
        let bytes = |pages| Pages(pages).bytes(derived.page_size).0;
        let most = Evidence::bytes("Dirty, nearest to the background threshold", bytes(dirty), "/proc/vmstat nr_dirty");
        evidence.push(most.against(bytes(threshold) as f64));
    }
    let found = finding(
        severity,
        summary.to_owned(),
        evidence,
        "balance_dirty_pages() does not wake the flusher for the background threshold in laptop mode, so dirty data \
         pile up until writers are throttled.",
        plan,
    );
    if is_void || !is_held_back {
        return Some(found);
    }
    let costs = "The disk wakes earlier and sleeps less.";
    let expect = "The flusher starts at the background threshold.";
    Some(Finding {
        trade_off: costs.to_owned(),
        brief: Brief { expect: expect.to_owned(), costs: costs.to_owned(), ..found.brief },
        ..found
    })
}

/// Name of the disk of a backing device; the name of the backing device itself where it belongs to no disk.
fn disk_of_bdi(derived: &Derived<'_>, id: EntityId) -> Option<String> {
    let entity = derived.window.entities.get(&id)?;
    let Entity::Bdi { name } = entity else { return Some(entity.label()) };
    let disk = derived.devices().iter().find(|device| device.dev.to_string().as_bytes() == name.as_bytes());
    Some(disk.map_or_else(|| format!("bdi {name}"), |disk| disk.name.to_string()))
}

/// Caps on backing devices without effect. FUSE sets one with `strict_limit`, which is enforced.
fn unenforced_caps(derived: &Derived<'_>) -> Option<Finding> {
    let capped: Vec<(String, Ppm)> = derived
        .window
        .bdis
        .iter()
        .filter_map(|(id, span)| {
            let max = span.last.max_ratio.filter(|max| *max < WHOLE)?;
            let is_strict = span.last.strict_limit.is_none_or(|strict| strict.0 != 0);
            let name = disk_of_bdi(derived, *id)?;
            (!is_strict).then_some((name, max))
        })
        .collect();
    let (first, _) = capped.first()?;
    let others = capped.len() - 1;
    let evidence = capped.iter().take(4).map(|(name, max)| {
        Evidence::share(format!("Cap of {name}"), max.0 as f64 / 1e6, "/sys/class/bdi/NAME/max_ratio")
            .against_text("strict_limit 0")
    });
    Some(Finding {
        // Both ways resolve the contradiction, and no reading shows which was meant: strict_limit may have been
        // switched off because writers waited.
        trade_off: "If the cap is meant to hold, set strict_limit to 1: writers to the device then wait at its share even when \
                    memory is plentiful. If not, set max_ratio to 100."
            .to_owned(),
        ..finding(
            Severity::Info,
            match others {
                0 => format!("The cap on {first} is not enforced while the machine has room."),
                _ => format!("The caps on {first} and {others} more are not enforced while the machine has room."),
            },
            evidence.collect(),
            "Without strict_limit the kernel checks a bdi's share only when the whole machine is over its freerun \
             ceiling.",
            Vec::new(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use floodline_record::gap::Cause;
    use floodline_record::units::{Bytes, Count, Flag, Pages, Seconds};
    use floodline_testkit::{Fixture, secs};

    /// Settings (ratio, bytes, background ratio, background bytes) and the expected result.
    fn check(settings: (u64, u64, u64, u64), expect: &str) {
        let pages = |bytes: u64, percent: u64| if bytes > 0 { bytes.div_ceil(4096) } else { 36_500 * percent };
        let hard = pages(settings.1, settings.0);
        let background = pages(settings.3, settings.2);
        let background = if background >= hard { hard / 2 } else { background };
        let fixture = Fixture::healthy().thresholds(settings, hard, background);
        check_rule(&RULE, &fixture, expect);
    }

    #[test]
    fn pairs_of_thresholds() {
        check((20, 0, 10, 0), "clear: background 10 % is below limit 20 %");
        check((0, 100 << 20, 0, 50 << 20), "clear: background 50.0 MiB is below limit 100 MiB");
        check((10, 0, 20, 0), "info: The background threshold of 20 % is ignored");
        check((0, 50 << 20, 0, 50 << 20), "info: The background threshold of 50.0 MiB is ignored");
        check((0, 100 << 20, 10, 0), "info: The background threshold of 10 % is ignored");
        check((20, 0, 0, 50 << 20), "info: One dirty threshold is set in bytes");
        check((0, 8, 0, 4), "warning: vm.dirty_bytes is 8 B: every program that writes");
        check((0, 0, 0, 0), "warning: vm.dirty_ratio is 0 %");
        check((20, 0, 0, 5), "info: The background threshold is 5 B");
        check((20, 0, 0, 0), "info: The background threshold is 0 %");
    }

    #[test]
    fn a_tiny_background_threshold_is_a_note_while_the_disks_have_room() {
        let busy = |part: f64| {
            Fixture::healthy().settings((20, 0, 0, 5)).disk("sda", move |t, row| row.io_time = Some(secs(part * t)))
        };
        let said = "the flusher never rests and every page is written at once.";
        let room = format!("info: The background threshold is 5 B: {said} The disks have room for that.");
        check_rule(&RULE, &busy(0.1), &room);
        let warning = format!("warning: The background threshold is 5 B: {said}");
        check_rule(&RULE, &busy(0.5), &warning);
        check_rule(&RULE, &busy(0.1).one_look(), &warning);
    }

    #[test]
    fn a_tiny_limit_that_was_exceeded_under_pressure_hurts_now() {
        let fixture = Fixture::healthy().thresholds((0, 8192, 0, 4096), 2, 1).host(|t, row| {
            row.nr_dirty = Some(Pages(40));
            row.psi_io_some = Some(secs(900.0 + 0.4 * t));
        });
        check_rule(&RULE, &fixture, "critical: vm.dirty_bytes is 8.00 KiB");
    }

    #[test]
    fn timers() {
        let set = |expire: u64, interval: u64| {
            Fixture::healthy().host(move |_, row| {
                row.dirty_expire_centisecs = Some(Centisecs(expire));
                row.dirty_writeback_centisecs = Some(Centisecs(interval));
            })
        };
        check_rule(&RULE, &set(3000, 0), "warning: Periodic writeback is switched off");
        check_rule(&RULE, &set(300, 100), "clear:");
        check_rule(
            &RULE,
            &set(30, 5),
            "info: Dirty data expire after 300 ms, and the flusher wakes every 50.0 ms: a page that",
        );
        let full = set(30, 5)
            .host(|t, row| {
                row.psi_io_some = Some(secs(900.0 + 0.8 * t));
                row.nr_written = Some(floodline_testkit::mib_pages(t));
                row.nr_dirtied = Some(floodline_testkit::mib_pages(t));
                (row.pgscan_direct, row.pgscan_kswapd) = (Some(Pages(0)), Some(Pages(0)));
                row.cached = Some(Bytes(floodline_testkit::mib(500.0)));
            })
            .disk("sda", |t, row| {
                row.writes = Some(Count((250.0 * t) as u64));
                row.written = Some(Bytes(floodline_testkit::mib(t)));
                row.io_time = Some(secs(0.95 * t));
                row.weighted_io_time = Some(secs(5.0 * t));
            });
        check_rule(
            &RULE,
            &full,
            "critical: Dirty data expire after 300 ms, and the flusher wakes every 50.0 ms: its writes keep sda full",
        );
        // A stream of new data is written once with any timer.
        let grows = full.host(|t, row| row.cached = Some(Bytes(floodline_testkit::mib(500.0 + t))));
        check_rule(&RULE, &grows, "info: Dirty data expire after 300 ms");
        check_rule(&RULE, &set(100, 500), "info: Data expire after 1.00 s but the flusher wakes only every 5.00 s");
    }

    #[test]
    fn the_change_suits_the_machine() {
        let first = |fixture: &Fixture| {
            let Verdict::Found(findings) = super::check(&Derived::of(&fixture.window())) else { panic!("not found") };
            findings[0].plan[0].command.clone()
        };
        let slow = Fixture::healthy().settings((0, 8192, 0, 4096)).bdi("8:0", |_, row| {
            row.write_bandwidth = Some(floodline_record::units::BytesPerSecond(42_000_000));
        });
        assert_eq!(first(&slow), "sysctl -w vm.dirty_background_bytes=33554432");
        let unknown = slow.bdi("8:0", |_, row| row.write_bandwidth = None).one_look();
        assert_eq!(first(&unknown), "sysctl -w vm.dirty_background_ratio=10");
        let no_age = Fixture::healthy().host(|_, row| row.dirty_expire_centisecs = Some(Centisecs(0)));
        assert_eq!(first(&no_age), "sysctl -w vm.dirty_expire_centisecs=500");
    }

    #[test]
    fn laptop_mode_depends_on_the_kernel() {
        let on = |release: &str| Fixture::healthy().kernel(release).host(|_, row| row.laptop_mode = Some(Seconds(5)));
        let piled_up = on("6.12.117").host(|_, row| {
            row.nr_dirty_background_threshold = Some(Pages(1_000));
            row.nr_dirty = Some(Pages(1_001));
        });
        check_rule(&RULE, &piled_up, "warning: Laptop mode is on");
        // What is never over the threshold is not held back.
        let little = piled_up.host(|_, row| row.nr_dirty = Some(Pages(1_000)));
        check_rule(&RULE, &little, "info: Laptop mode is on. It held nothing back");
        assert!(crate::diagnose::first_finding(&RULE, &little).plan.is_empty());
        // A program took memory for a while, and the threshold was lower then than at the end.
        let meanwhile = on("6.12.117").host(|t, row| {
            row.nr_dirty_background_threshold = Some(Pages(if t < 5.0 { 1_000 } else { 50_000 }));
            row.nr_dirty = Some(Pages(if t < 5.0 { 1_500 } else { 10 }));
        });
        check_rule(&RULE, &meanwhile, "warning: Laptop mode is on");
        check_rule(&RULE, &on("7.2.13"), "info: Laptop mode is set and this kernel ignores it");
    }

    #[test]
    fn a_cap_on_a_device_needs_strict_limit() {
        let capped = |strict: u64| {
            Fixture::healthy().bdi("8:0", move |_, row| {
                row.max_ratio = Some(Ppm(10_000));
                row.strict_limit = Some(Flag(strict));
            })
        };
        check_rule(&RULE, &capped(0), "info: The cap on sda is not enforced");
        // It must not undo what strictlimit-throttling advises.
        let Verdict::Found(found) = super::check(&Derived::of(&capped(0).window())) else { panic!("not found") };
        assert!(found.iter().all(|finding| finding.plan.is_empty()), "{found:?}");
        check_rule(&RULE, &capped(1), "clear:");
    }

    #[test]
    fn without_sysctls_it_says_so() {
        let fixture = Fixture::healthy().without(Source::SysctlVm, Cause::PermissionDenied { need: "root".into() });
        check_rule(&RULE, &fixture, "not checked: /proc/sys/vm/NAME: permission denied (needs root)");
    }
}
