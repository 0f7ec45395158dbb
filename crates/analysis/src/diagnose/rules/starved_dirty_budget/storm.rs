// SPDX-License-Identifier: MIT OR Apache-2.0
//! A storm: the processes of a domain make the same pages dirty again and again, while the domain's dirty data stay at
//! its background threshold. They store a few bytes into whole folios, much more than they hand to write calls, or hand
//! the same pages to write calls many times. What is new in the page cache was dirtied for the first time, and does not
//! count: `splice` writes without a write call. The threshold then cleans what is dirtied again, whichever setting made it
//! so small. Detected by the dirtied bytes, not by the size of a setting.

use super::activity::{FOLIO_PER_FAULT, HURTS_RATE, REWRITES};
use super::written::Written;
use crate::budget::{Budgets, CgroupBudget, DomainBudget, Setting};
use crate::diagnose::cgroup;
use crate::diagnose::derived::Derived;
use crate::diagnose::short_limit::Occupied;
use crate::diagnose::writer::{Period, Writer, Writers};
use floodline_record::id::EntityId;
use floodline_record::sample::{CgroupLimitsRow, CgroupRow, HostRow};
use floodline_record::units::{Bytes, Limit, Pages};
use floodline_record::window::Span;
use std::collections::BTreeSet;

/// Part of the background threshold from which dirty data stand at it: samples are some time apart.
const NEAR_THRESHOLD: f64 = 0.5;
const AT_THRESHOLD: f64 = 0.75;
/// Dirtied bytes, in multiples of what age alone would have written, from which a threshold cleans.
const AGAIN: f64 = 1.5;
/// The same where dirty data were seen near the threshold only.
const OFTEN_AGAIN: f64 = 8.0;
/// Bytes dirtied, in multiples of the cached bytes, that prove that the same pages were dirtied again and again.
pub(super) const MANY_TIMES: f64 = 3.0;
/// Part of its largest page cache that a cgroup always held, from which its files were neither evicted nor removed.
const KEPT: f64 = 0.5;
/// Largest folio of a filesystem, bytes: no fault dirties more.
const LARGEST_FOLIO: f64 = 2_097_152.0;
/// Part of what the programs of a machine dirtied from which one of them is named.
const NOTICEABLE: f64 = 0.01;
/// Bytes that become dirty for each byte of a write call, at most: a folio of 2 MiB for 1 KiB.
const HANDED_OVER: f64 = 2048.0;
/// Part of what the machine counted as dirtied up to which processes may have dirtied more: samples differ in time.
const COUNTED: f64 = 1.02;
/// Rate of one domain that counts for the sum, bytes per second.
const COUNTS: f64 = 50e3;
/// What the kernel starts with.
const USUAL_EXPIRY_S: f64 = 30.0;
/// Longest observation that is worth waiting for, seconds.
const LONGEST_S: f64 = 600.0;
/// Folios that a domain should hold at least, whatever was seen.
const FOLIOS_WANTED: u64 = 32;
/// Room to spare above what was seen to be rewritten.
const SPARE: f64 = 1.1;
/// Part of a domain's memory up to which all that is rewritten should have room; above it the usual part has to do.
const LARGEST_PART: f64 = 0.12;
const USUAL_PART: f64 = 0.05;
/// A threshold that is this part of a cgroup's memory is small because the cgroup is.
const FAIR_HARD: f64 = 0.05;
const FAIR_BACKGROUND: f64 = 0.02;

/// What makes a domain's room too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The hard threshold.
    Hard,
    /// The background threshold.
    Background,
    /// The memory of the cgroup: no setting of the machine gives it much more.
    Memory,
}

/// A domain whose threshold cleans what is dirtied again.
pub(super) struct Storm<'w, 'a, 'b> {
    /// The cgroup; `None` for the whole machine.
    pub(super) budget: Option<&'b CgroupBudget>,
    pub(super) writers: Vec<&'w Writer<'a>>,
    /// Bytes dirtied per second by them, at most what the disks wrote of them.
    pub(super) rate: f64,
    /// Bytes dirtied by them, as the kernel counts them: whole folios.
    pub(super) counted: u64,
    /// Bytes dirtied per fault, measured; a page where write calls dirty.
    pub(super) per_fault: u64,
    /// Page cache of the domain, at most, where the pages become dirty by write calls and not by stores.
    pub(super) called: Option<u64>,
    /// Background and hard threshold, at most.
    pub(super) background: u64,
    pub(super) hard: u64,
    pub(super) available: u64,
    /// Most dirty and under writeback of any sample.
    pub(super) peak: u64,
    /// What the background threshold should hold.
    pub(super) wanted: u64,
    /// All that is rewritten, at most.
    pub(super) rewritten: u64,
    pub(super) reason: Reason,
}

/// The storms of a window.
#[derive(Default)]
pub(super) struct Storms<'w, 'a, 'b> {
    /// Those that were seen long enough, the largest first.
    pub(super) found: Vec<Storm<'w, 'a, 'b>>,
    /// Length of an observation that tells whether there are more, seconds: what was dirtied so far may still be written once.
    pub(super) needs_s: Option<f64>,
}

/// Every domain with a storm, the most dirtied first; none where they dirty little together, or where one look cannot
/// tell.
pub(super) fn storms<'w, 'a, 'b>(
    derived: &Derived<'_>,
    budgets: &'b Budgets,
    writers: &'w Writers<'a>,
    occupied: Option<&Occupied<'w, 'a>>,
) -> Storms<'w, 'a, 'b> {
    if writers.period != Period::Window || derived.seconds <= 0.0 {
        return Storms::default();
    }
    let mut seen = Vec::new();
    let mut placed = BTreeSet::new();
    let per_cgroup = occupied.filter(|_| budgets.scope.is_per_cgroup());
    let written = Written::of(derived, writers);
    for budget in &budgets.cgroups {
        let Some(processes) = per_cgroup.and_then(|occupied| occupied.get(&budget.cgroup)) else { continue };
        placed.extend(processes.iter().map(|writer| writer.id));
        let span = derived.window.cgroups.get(&budget.cgroup);
        let peak = derived.window.unwritten_max.get(&budget.cgroup).copied().unwrap_or(0);
        let part = written.part_of(budget.cgroup, peak, processes);
        seen.extend(storm(derived, Some(budget), &budget.domain, (processes, part), peak, span));
    }
    let rest: Vec<&Writer<'_>> = writers.processes.iter().filter(|writer| !placed.contains(&writer.id)).collect();
    let peak = derived.dirty.unwritten_peak.map_or(0, |bytes| bytes.0);
    seen.extend(storm(derived, None, &budgets.global, (&rest, written.part), peak, None));
    if seen.iter().map(|(storm, _)| storm.rate).sum::<f64>() < HURTS_RATE {
        return Storms::default();
    }
    let needs_s = seen.iter().filter_map(|(_, needs_s)| *needs_s).reduce(f64::min);
    let mut found: Vec<_> = seen.into_iter().filter(|(_, needs_s)| needs_s.is_none()).map(|(storm, _)| storm).collect();
    if found.iter().map(|storm| storm.rate).sum::<f64>() < HURTS_RATE {
        found.clear();
    }
    found.sort_by(|one, other| other.rate.total_cmp(&one.rate));
    Storms { found, needs_s: needs_s.filter(|needs_s| *needs_s <= LONGEST_S) }
}

/// Whether a cgroup's page cache held the same files all the time: none was evicted at its limit or removed.
fn is_kept(span: &Span<CgroupRow>) -> bool {
    let (Some(least), Some(most)) = (span.min.file, span.max.file) else { return false };
    let at_limit = [span.growth.events_high, span.growth.events_max];
    least.0 as f64 >= KEPT * most.0 as f64
        && at_limit.into_iter().all(|events| events.is_none_or(|events| events.0 == 0))
}

/// Whether the machine's page cache held the same files all the time: none was evicted, and few were removed.
fn is_all_kept(derived: &Derived<'_>) -> bool {
    let window = derived.window;
    let scanned = [window.host.growth.pgscan_direct, window.host.growth.pgscan_kswapd];
    let files = |row: &HostRow| Some(row.nr_inactive_file?.0.saturating_add(row.nr_active_file?.0));
    let mut most = 0;
    let mut levels = window.host_series.iter().filter_map(|(_, row)| files(row));
    // It may grow: what is new is left out elsewhere.
    let is_kept = levels.all(|level| {
        most = level.max(most);
        level as f64 >= KEPT * most as f64
    });
    is_kept && most > 0 && scanned.into_iter().all(|pages| pages.is_none_or(|pages| pages.0 == 0))
}

/// Page cache of a cgroup, or of the machine, that is new in this window and was not read from a disk, bytes, at least.
pub(super) fn newly_cached(derived: &Derived<'_>, span: Option<&Span<CgroupRow>>, processes: &[&Writer<'_>]) -> u64 {
    let grown = cgroup::cache_growth(derived.window, span, derived.page_size);
    let read = match span {
        Some(_) => processes.iter().filter_map(|one| one.read_bytes).fold(0, u64::saturating_add),
        // Without it all that is cached may have been read.
        None => derived.window.host.growth.pgpgin.map_or(u64::MAX, |bytes| bytes.0),
    };
    grown.unwrap_or(0).saturating_sub(read)
}

/// Pages as bytes; none where they were not read.
fn raw_pages(derived: &Derived<'_>, pages: Option<Pages>) -> u64 {
    pages.map_or(0, |pages| pages.bytes(derived.page_size).0)
}

/// Whether a process dirties folios by storing little into them, or single pages many times over: more than three
/// times what is `cached` in all. `part` of what it dirtied was written.
fn is_amplified(writer: &Writer<'_>, cached: u64, part: f64) -> bool {
    let (Some(dirtied), Some(faults)) = (writer.dirtied_bytes, writer.faults) else { return false };
    let is_of_folios = part * dirtied as f64 >= FOLIO_PER_FAULT * faults as f64;
    // What no fault can dirty was dirtied by calls.
    let is_by_faults =
        dirtied as f64 <= LARGEST_FOLIO * faults as f64 || faults >= writer.write_calls.unwrap_or(0).max(1);
    is_by_faults && (is_of_folios || is_of_pages(writer, cached, part)) && is_of_little(writer, part)
}

/// Whether a process hands much less to write calls than was written for it.
fn is_of_little(writer: &Writer<'_>, part: f64) -> bool {
    let application = writer.application_bytes.unwrap_or(0).max(1);
    writer.dirtied_bytes.is_some_and(|dirtied| part * dirtied as f64 >= REWRITES * application as f64)
}

/// Whether the bytes of its write calls are counted: asynchronous I/O, io_uring and threads of the kernel write without any.
fn counts_calls(writer: &Writer<'_>) -> bool {
    let least = |dirtied: u64| dirtied as f64 / HANDED_OVER;
    let application = writer.application_bytes.unwrap_or(0) as f64;
    !writer.kthread && writer.dirtied_bytes.is_some_and(|dirtied| application >= least(dirtied))
}

/// Memory of a cgroup below its own limit that can hold file pages, when its processes had most of their own: at most.
fn least_available(derived: &Derived<'_>, cgroup: EntityId, span: &Span<CgroupRow>) -> Option<u64> {
    let (limit, most) = (own_limit(derived, cgroup)?, span.max.anon?.0);
    // More than the limit was taken after it was raised, and had no part in it.
    let taken = if was_raised(derived, cgroup) && most >= limit { span.min.anon?.0 } else { most };
    Some(limit.saturating_sub(taken))
}

/// Memory limit of a cgroup itself, bytes: the lowest of the window. One that was raised again made its budget small until then.
pub(super) fn own_limit(derived: &Derived<'_>, cgroup: EntityId) -> Option<u64> {
    least_of(&derived.window.cgroup_limits.get(&cgroup)?.min)
}

/// Whether the lowest memory limit of a cgroup itself was raised or lifted before the last sample.
pub(super) fn was_raised(derived: &Derived<'_>, cgroup: EntityId) -> bool {
    let limits = derived.window.cgroup_limits.get(&cgroup);
    limits.is_some_and(|limits| {
        least_of(&limits.min).is_some_and(|least| least_of(&limits.last).is_none_or(|last| last > least))
    })
}

/// The lower one of the memory limits of a row, bytes.
fn least_of(row: &CgroupLimitsRow) -> Option<u64> {
    let limits = [row.memory_max, row.memory_high].into_iter().flatten();
    limits.filter_map(Limit::bytes).min().map(|limit| limit.0)
}

/// Whether a process dirtied more than three times what is cached.
fn is_of_pages(writer: &Writer<'_>, cached: u64, part: f64) -> bool {
    cached > 0 && writer.dirtied_bytes.is_some_and(|dirtied| part * dirtied as f64 >= MANY_TIMES * cached as f64)
}

fn storm<'w, 'a, 'b>(
    derived: &Derived<'_>,
    budget: Option<&'b CgroupBudget>,
    domain: &DomainBudget,
    (processes, part): (&[&'w Writer<'a>], f64),
    peak: u64,
    span: Option<&Span<CgroupRow>>,
) -> Option<(Storm<'w, 'a, 'b>, Option<f64>)> {
    let cached =
        [derived.window.host.max.nr_inactive_file, derived.window.host.max.nr_active_file].into_iter().flatten();
    let cached = cached.fold(0u64, |sum, pages| sum.saturating_add(pages.bytes(derived.page_size).0));
    let file = span.and_then(|span| span.max.file).map(|file| file.0);
    let of_domain = file.unwrap_or(cached);
    let mut writers: Vec<&Writer<'_>> =
        processes.iter().copied().filter(|writer| is_amplified(writer, of_domain, part)).collect();
    let is_kept = span.map_or_else(|| is_all_kept(derived), is_kept);
    let called = (writers.is_empty() && is_kept).then_some(of_domain);
    if called.is_some() {
        writers = processes.iter().copied().filter(|writer| is_of_pages(writer, of_domain, part)).collect();
    }
    if called.is_some() && span.is_none() {
        // Of a whole machine, files may come and go unseen: only calls that hand over parts of pages show that the pages are the same.
        let hands_over = |writer: &&Writer<'_>| is_of_little(writer, part) && counts_calls(writer);
        writers = processes.iter().copied().filter(hands_over).collect();
        let dirtied: u64 = writers.iter().filter_map(|writer| writer.dirtied_bytes).fold(0, u64::saturating_add);
        // Direct writes never were in the page cache.
        let machine = raw_pages(derived, derived.window.host.growth.nr_dirtied);
        let is_enough =
            part * dirtied as f64 >= MANY_TIMES * of_domain as f64 && dirtied as f64 <= COUNTED * machine as f64;
        let is_noticeable = |bytes: u64| bytes as f64 >= NOTICEABLE * dirtied as f64;
        writers.retain(|writer| is_enough && writer.dirtied_bytes.is_some_and(is_noticeable));
    }
    writers.sort_by_key(|writer| (std::cmp::Reverse(writer.dirtied_bytes), writer.pid));
    let sum = |of: fn(&Writer<'_>) -> Option<u64>| writers.iter().filter_map(|w| of(w)).fold(0, u64::saturating_add);
    let (counted, faults) = (sum(|writer| writer.dirtied_bytes), sum(|writer| writer.faults));
    let dirtied = (part * counted as f64) as u64;
    let others = processes.iter().filter(|one| !writers.iter().any(|writer| writer.id == one.id));
    let new = newly_cached(derived, span, processes).saturating_sub(match span {
        Some(_) => others.filter_map(|other| other.dirtied_bytes).fold(0, u64::saturating_add),
        None => raw_pages(derived, derived.window.host.growth.nr_dirtied).saturating_sub(counted),
    });
    if new > dirtied / 2 {
        return None;
    }
    let rate = dirtied as f64 / derived.seconds;
    let available = domain.available.map_or(0, |available| available.high.0);
    // The budget is that of the last sample. It was smaller while its processes had more memory.
    let least = budget.and_then(|budget| least_available(derived, budget.cgroup, span?)).unwrap_or(available);
    let least_part = if available > 0 { (least as f64 / available as f64).min(1.0) } else { 1.0 };
    let of_least = |bytes: u64| (bytes as f64 * least_part) as u64;
    let (background, hard) = (of_least(domain.bg_thresh?.high.0), of_least(domain.thresh?.high.0));
    let available = available.min(least);
    let expiry = derived.dirty.expiry_seconds.filter(|seconds| seconds.is_finite()).unwrap_or(f64::INFINITY);
    // Age writes what is dirty once in an expiry period.
    let by_age = peak as f64 * (1.0 + derived.seconds / expiry);
    let is_at = peak as f64 >= AT_THRESHOLD * background as f64;
    let times = if is_at { AGAIN } else { OFTEN_AGAIN };
    let is_again = dirtied as f64 >= times * by_age;
    // At this rate it is so after this time: what is written for its age must be left behind.
    let gains = rate - times * peak as f64 / expiry;
    let needs_s = (!is_again).then(|| times * peak as f64 / gains);
    if rate < COUNTS || (!is_again && gains <= 0.0) || (peak as f64) < NEAR_THRESHOLD * background as f64 {
        return None;
    }
    let per_fault = match called {
        Some(_) => derived.page_size,
        None => (counted / faults.max(1)).clamp(4096, 2 << 20),
    };
    let expiry = if expiry.is_finite() { expiry } else { USUAL_EXPIRY_S };
    // All that is dirtied before it is old, as the kernel counts it, but no more than there is in the cache.
    let rewritten = (counted as f64 / derived.seconds * expiry).min(file.map_or(f64::INFINITY, |file| file as f64));
    let rewritten = if cached > 0 { rewritten.min(cached as f64) } else { rewritten };
    let with_spare = |spare: f64| ((spare * rewritten) as u64).max(FOLIOS_WANTED * per_fault);
    // There is room for all of it: no threshold cleans what is dirtied again.
    if background >= with_spare(1.0) {
        return None;
    }
    let rewritten = with_spare(SPARE);
    let part = |part: f64| (part * available as f64) as u64;
    let wanted = match rewritten <= part(LARGEST_PART) {
        true => rewritten,
        false => part(USUAL_PART).max(background.saturating_mul(2)).max(FOLIOS_WANTED * per_fault).min(rewritten),
    };
    let fair = |part: f64, of: u64| of as f64 >= part * available as f64;
    let reason = if hard < wanted && !(budget.is_some() && fair(FAIR_HARD, hard)) {
        Reason::Hard
    } else if budget.is_none() || !fair(FAIR_BACKGROUND, background) {
        Reason::Background
    } else {
        Reason::Memory
    };
    let storm = Storm {
        budget,
        writers,
        rate,
        counted,
        per_fault,
        called,
        background,
        hard,
        available,
        peak,
        wanted,
        rewritten,
        reason,
    };
    Some((storm, needs_s))
}

/// The setting that makes the room too small, for a sentence.
pub(super) fn setting(derived: &Derived<'_>, storm: &Storm<'_, '_, '_>, domain: &DomainBudget) -> String {
    use floodline_record::human;
    let row = &derived.window.host.last;
    match storm.reason {
        Reason::Hard => match domain.binding.as_ref().map(|binding| binding.setting) {
            Some(Setting::Bytes { bytes, .. }) => format!("vm.dirty_bytes = {}", human::bytes(bytes.0 as f64)),
            Some(Setting::Ratio { percent }) => format!("vm.dirty_ratio = {percent} %"),
            None => "The dirty setting".to_owned(),
        },
        Reason::Background => match (row.dirty_background_bytes, row.dirty_background_ratio) {
            (Some(Bytes(bytes)), _) if bytes > 0 => {
                format!("vm.dirty_background_bytes = {}", human::bytes(bytes as f64))
            }
            (_, Some(ratio)) => format!("vm.dirty_background_ratio = {} %", ratio.0),
            _ => "The background setting".to_owned(),
        },
        Reason::Memory => "Its memory limit".to_owned(),
    }
}
