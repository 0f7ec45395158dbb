// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about storms: one for the cgroups that have one, and one for the machine's own domain, with the measured
//! folio and room.

use super::activity::{self, Activity};
use super::measured::Measured;
use super::remedy::OfStorm;
use super::starved::Starved;
use super::storm::{Reason, Storm, setting, was_raised};
use super::written::WRITTEN;
use super::{RULE, evidence, remedy, storm};
use crate::budget::Budgets;
use crate::diagnose::derived::Derived;
use crate::diagnose::short_limit::Occupied;
use crate::diagnose::writer::{Period, Writer};
use crate::diagnose::{cgroup, device};
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_record::human;

/// The findings, the most dirtied first.
pub(super) fn findings(
    derived: &Derived<'_>,
    budgets: &Budgets,
    storms: &[Storm<'_, '_, '_>],
    occupied: Option<&Occupied<'_, '_>>,
    period: Period,
) -> Vec<Finding> {
    let (of_cgroups, of_machine): (Vec<_>, Vec<_>) = storms.iter().partition(|storm| storm.budget.is_some());
    let mut found = Vec::new();
    if !of_cgroups.is_empty() {
        found.push(in_cgroups(derived, budgets, &of_cgroups, occupied, period));
    }
    found.extend(of_machine.iter().map(|storm| on_the_machine(derived, budgets, storm)));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

/// Severity of a storm whose tasks wait in this part of the time.
fn severity(derived: &Derived<'_>, pressure: Option<f64>) -> Severity {
    if activity::is_harmless(derived, pressure) { Severity::Warning } else { Severity::Critical }
}

/// At most two names, and the number of the others.
fn named(storm: &Storm<'_, '_, '_>) -> String {
    let labels: Vec<String> = storm.writers.iter().take(2).map(|writer| writer.label()).collect();
    let more = storm.writers.len().saturating_sub(labels.len());
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", labels.join(", "))
}

fn in_cgroups(
    derived: &Derived<'_>,
    budgets: &Budgets,
    storms: &[&Storm<'_, '_, '_>],
    occupied: Option<&Occupied<'_, '_>>,
    period: Period,
) -> Finding {
    let written = derived.devices_written();
    let starved: Vec<Starved<'_>> = storms
        .iter()
        .filter_map(|storm| {
            let budget = storm.budget?;
            let fs_type = fs_type(derived, written, budget.cgroup);
            let (thresh, peak) = (storm.hard, Some(storm.peak));
            let (folio, wanted) = (storm.per_fault, storm.wanted);
            Some(Starved { budget, thresh, needed: wanted, wanted, folio, fs_type, peak })
        })
        .collect();
    let room = |storm: &&&Storm<'_, '_, '_>| if storm.reason == Reason::Hard { storm.hard } else { storm.background };
    let (Some(least), Some(worst)) =
        (storms.iter().min_by_key(room), starved.iter().min_by_key(|one| (one.thresh, &one.budget.path)))
    else {
        return on_the_machine(derived, budgets, storms[0]);
    };
    let called = storms.iter().map(|storm| storm.called).sum();
    let activity = Activity { called, ..activity::activity(derived, &starved, occupied, period) };
    let waiting = activity::waiting(derived, &starved);
    let rate: f64 = storms.iter().map(|storm| storm.rate).sum();
    let dirty = human::bytes_per_second(rate);
    let cgroups = human::plural(storms.len() as u64, "cgroup", "cgroups");
    let as_little = human::bytes(room(&least) as f64);
    let limits = if storms.len() == 1 { "a dirty limit of" } else { "dirty limits as small as" };
    let domain = &worst.budget.domain;
    let is_past = is_past(derived, storms);
    let summary = match least.reason {
        Reason::Hard => format!(
            "{} leaves {cgroups} {limits} {as_little}: the same pages are written again and again, at {dirty}.",
            setting(derived, least, domain)
        ),
        Reason::Background => format!(
            "{} makes the flusher start at {as_little} in each of {cgroups}: the same pages are written again and again, \
             at {dirty}.",
            setting(derived, least, domain)
        ),
        Reason::Memory if is_past => format!(
            "{cgroups} had a low memory limit that was raised later. They rewrote more than the {as_little} that may be dirty there before the \
             flusher starts: the same pages were written again and again, at {dirty} over the whole time."
        ),
        Reason::Memory => format!(
            "{cgroups} with little memory rewrite more than the {as_little} that may be dirty there before the flusher \
             starts: the same pages are written again and again, at {dirty}."
        ),
    };
    let measured = Measured::of(derived, &starved);
    let mut rows = evidence::evidence(derived, budgets, &starved, worst, &activity, &waiting);
    rows.push(
        Evidence::bytes(
            format!("Background threshold of {}", derived.label(worst.budget.cgroup)),
            least.background,
            "domain_dirty_limits()",
        )
        .against(least.wanted as f64),
    );
    rows.extend(written_row(derived, storms));
    rows.extend(measured.iter().flat_map(Measured::evidence));
    let hungriest = storms.iter().max_by(|one, other| needs(one).total_cmp(&needs(other))).unwrap_or(least);
    let OfStorm { plan, why, trade_off, remains, is_in_part } = remedy::of_storm(derived, hungriest, least.reason);
    let victims = activity::victims(&activity);
    let mut brief = remedy::brief(derived, &starved, worst, (&activity, &waiting), &trade_off);
    if least.reason != Reason::Hard {
        brief.because = format!(
            "The flusher starts at {as_little} in these cgroups. Their programs rewrite more than that again and again."
        );
    }
    if plan.is_empty() {
        brief.expect.clone_from(&trade_off);
        brief.costs.clear();
    } else if !remains.is_empty() {
        brief.expect = remains;
    }
    // What write calls hand over again is as much as the programs ask for. Where their cgroup is simply small and none of them waits,
    // that is worth knowing.
    let waits = waiting.pressure.is_none_or(|share| share >= activity::HURTS_PRESSURE);
    let is_asked = least.reason == Reason::Memory && storms.iter().all(|storm| storm.called.is_some());
    Finding {
        rule: RULE.name,
        severity: match is_past {
            _ if is_asked && !waits => Severity::Info,
            // How much of it came while the limit was low is not known.
            true => Severity::Warning,
            false => severity(derived, waiting.pressure),
        },
        summary,
        confirmed: measured.as_ref().and_then(Measured::sentence),
        evidence: rows,
        cause: format!(
            "{}{} {why}",
            remedy::cause(derived, worst, &activity, measured.as_ref(), &victims),
            parts_of_folios(derived, storms)
        )
        .trim_end()
        .to_owned(),
        brief,
        plan,
        trade_off,
        waited_s: waiting.pressure.map(|share| share * derived.seconds),
        helps_in_part: is_in_part,
        ..Finding::default()
    }
}

/// What the disks wrote, where the kernel counts much more as dirtied.
fn written_of_folios(derived: &Derived<'_>, storms: &[&Storm<'_, '_, '_>]) -> Option<u64> {
    let is_less = |storm: &&&Storm<'_, '_, '_>| storm.rate * derived.seconds < WRITTEN * storm.counted as f64;
    storms.iter().find(is_less).and(derived.writers().disk_bytes)
}

fn written_row(derived: &Derived<'_>, storms: &[&Storm<'_, '_, '_>]) -> Option<Evidence> {
    let written = written_of_folios(derived, storms)?;
    Some(Evidence::bytes("All disks wrote", written, "/proc/diskstats written"))
}

/// A sentence about folios that are dirtied whole and written in part.
fn parts_of_folios(derived: &Derived<'_>, storms: &[&Storm<'_, '_, '_>]) -> String {
    let Some(written) = written_of_folios(derived, storms) else { return String::new() };
    let counted = storms.iter().map(|storm| storm.counted).fold(0, u64::saturating_add);
    format!(
        " The kernel counts whole folios as dirtied, {}. Their filesystem writes only the changed blocks: all disks wrote {}.",
        human::bytes(counted as f64),
        human::bytes(written as f64)
    )
}

/// Whether little is dirtied by those of these cgroups that have their lowest memory limit still.
fn is_past(derived: &Derived<'_>, storms: &[&Storm<'_, '_, '_>]) -> bool {
    let (raised, others): (Vec<&Storm<'_, '_, '_>>, Vec<_>) =
        storms.iter().copied().partition(|storm| storm.budget.is_some_and(|budget| was_raised(derived, budget.cgroup)));
    !raised.is_empty() && others.iter().map(|storm| storm.rate).sum::<f64>() < activity::HURTS_RATE
}

/// Part of its memory that a domain needs.
fn needs(storm: &Storm<'_, '_, '_>) -> f64 {
    storm.wanted as f64 / storm.available.max(1) as f64
}

fn fs_type<'a>(
    derived: &Derived<'a>,
    written: &cgroup::DevicesWritten<'_>,
    id: floodline_record::id::EntityId,
) -> &'a str {
    let written = written.devices(id);
    let of = |device: &device::Device<'_>| device.mounts().first().map(|mount| mount.fs_type.clone());
    let name = written.iter().find_map(of);
    let mounts = derived.window.facts.iter().flat_map(|facts| &facts.mounts);
    let known = mounts.map(|mount| mount.fs_type.as_str()).find(|known| Some(*known) == name.as_deref());
    known
        .or_else(|| cgroup::writable_mounts(derived.window).first().map(|mount| mount.fs_type.as_str()))
        .unwrap_or("unknown")
}

fn on_the_machine(derived: &Derived<'_>, budgets: &Budgets, storm: &Storm<'_, '_, '_>) -> Finding {
    let dirty = human::bytes_per_second(storm.rate);
    let room = human::bytes(storm.background as f64);
    let reason = match storm.reason {
        Reason::Hard => Reason::Hard,
        _ => Reason::Background,
    };
    let summary = format!(
        "{} makes the flusher start at {room} for the whole machine, less than {} rewrites: the same pages are written again \
         and again, {dirty}.",
        setting(derived, storm, &budgets.global),
        named(storm)
    );
    let sum = |of: fn(&Writer<'_>) -> Option<u64>| {
        storm.writers.iter().filter_map(|one| of(one)).fold(0, u64::saturating_add)
    };
    let per_fault = sum(|writer| writer.dirtied_bytes) / sum(|writer| writer.faults).max(1);
    let dirtied = storm.counted as f64 / derived.seconds.max(f64::MIN_POSITIVE);
    let dirtied = |name| Evidence::rate(name, dirtied, "/proc/PID/io write_bytes").against(activity::HURTS_RATE);
    let mut rows = match storm.called {
        Some(cached) => vec![
            dirtied("Dirtied by write calls of them"),
            Evidence::bytes("Page cache, at most", cached, "/proc/vmstat nr_inactive_file + nr_active_file")
                .against((storm.counted as f64 / storm::MANY_TIMES).round()),
        ],
        None => vec![
            dirtied("Dirtied by stores of them"),
            Evidence::bytes("Dirtied per page fault", per_fault, "write_bytes ÷ (minflt + majflt)")
                .against(activity::FOLIO_PER_FAULT),
        ],
    };
    rows.extend([
        Evidence::bytes("Background threshold", storm.background, "/proc/vmstat nr_dirty_background_threshold")
            .against(storm.wanted as f64),
        Evidence::bytes("Most dirty and under writeback", storm.peak, "/proc/vmstat nr_dirty + nr_writeback")
            .against(storm.background as f64),
    ]);
    rows.extend(written_row(derived, &[storm]));
    rows.extend(storm.writers.iter().take(3).filter_map(|writer| {
        let name = format!("Dirtied by {}", writer.label());
        Some(Evidence::bytes(name, writer.dirtied_bytes?, "/proc/PID/io write_bytes"))
    }));
    rows.extend(derived.dirty.io_pressure_row());
    let OfStorm { plan, why, trade_off, remains, is_in_part } = remedy::of_storm(derived, storm, reason);
    Finding {
        rule: RULE.name,
        severity: severity(derived, derived.dirty.io_pressure_some),
        summary,
        evidence: rows,
        cause: format!(
            "Amplification: {} The programs rewrite more than the background threshold of the machine. So the flusher writes these pages \
             soon, and {}.{} {why}",
            match (storm.called, storm.per_fault <= derived.page_size) {
                (Some(_), _) => "a call that writes part of a cached page dirties all of it.".to_owned(),
                (None, true) => "a store to a mapped page that was cleaned dirties it again.".to_owned(),
                (None, false) => format!(
                    "a store to a mapped page that was cleaned dirties its whole folio, {} as measured.",
                    human::bytes(storm.per_fault as f64)
                ),
            },
            if storm.called.is_some() { "later calls dirty them again" } else { "the next store dirties them again" },
            parts_of_folios(derived, &[storm]),
        ),
        brief: Brief {
            because: format!(
                "The same pages are written again and again ({dirty}). {} may be dirty before they are written, and more \
                 than that is in use.",
                room
            ),
            who: named(storm),
            expect: match plan.is_empty() {
                true => trade_off.clone(),
                false if !remains.is_empty() => remains,
                false => "Pages stay dirty until they are old, and each is written once.".to_owned(),
            },
            costs: match plan.is_empty() {
                true => String::new(),
                false => "More data is only in memory at any time.".to_owned(),
            },
        },
        plan,
        trade_off,
        helps_in_part: is_in_part,
        ..Finding::default()
    }
}
