// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tier 1: arithmetic on one host. Compares budgets of the machine and of each cgroup under the change with the largest
//! unwritten data seen; applies rules to the result; reads the boot settings. Nothing is simulated.

use crate::aged::aged;
use crate::backlog::arrivals;
use crate::boot::boot;
use crate::change::Change;
use crate::cliff::{cliff, raised};
use crate::harm::{LONGEST_S, STALL, WRITTEN};
use crate::memory::{memory_tight, memory_too_small};
use crate::mounts;
use crate::overlay::synced;
use crate::overwritten::overwritten;
use crate::removed::{removed_early, removed_share, written_then};
use crate::reread::reread;
use crate::rewriters::Rewriters;
use crate::row::{Cause, Confidence, Row, Verdict};
use crate::rules;
use crate::storm::storm;
use crate::waits::Dirtying;
use floodline_analysis::budget::{AsIf, AsIfRow, Assumed, assume, strict_note};
use floodline_analysis::diagnose::derived::Derived;
use floodline_analysis::report::Severity;
use floodline_kernel::{Behaviour, MemcgStats};
use floodline_record::facts::{CgroupMode, HostFacts};
use floodline_record::human;
use floodline_record::id::{Entity, Hierarchy};
use floodline_record::text::Text;
use floodline_record::window::Window;
use std::borrow::Cow;

/// Margin below which a host is tight.
pub(crate) const TIGHT: f64 = 2.0;
/// Relative change of a limit that counts.
pub(crate) const SAME: f64 = 0.01;
/// Largest folio, bytes.
const FOLIO: u64 = 2 << 20;
/// Limit below which a writing cgroup is starved, bytes: two folios.
const FOLIOS: u64 = 2 * FOLIO;
/// Severity of pages that are written again and again, for each cgroup without any room for what it rewrites; and by
/// which power of the room that lacks it shrinks. Measured on generated hosts.
const REWRITTEN: f64 = 2.5;
const REWRITTEN_POWER: f64 = 1.5;
/// Severity where counts of cgroups are late and all that a cgroup rewrites exceeds its limit: its tasks then wait for
/// the next count.
const LATE: f64 = 12.0;
/// Severity where data below the background threshold are written only by a sync.
const SEVERITY_NEVER: f64 = 2.0;
/// Severity of a host with a small margin, and the largest severity given by arithmetic.
pub(crate) const SEVERITY_MAX: f64 = 100.0;

/// Judges a change by a folded recording.
pub(crate) fn judge(window: &Window, name: &str, change: &Change) -> Row {
    let mut row = described(window, name, change);
    let Some(facts) = &window.facts else {
        row.decide(Verdict::NotKnown, Cause::NoFacts, "The recording does not describe its machine.".to_owned());
        return row;
    };
    if window.samples == 0 {
        row.decide(Verdict::NotKnown, Cause::NoSample, "The recording contains no sample.".to_owned());
        return row;
    }
    if facts.kernel.is_none() {
        row.decide(Verdict::NotKnown, Cause::NoKernelVersion, "The kernel version was not read.".to_owned());
        return row;
    }
    if let Some((cause, why)) = missing(window, facts, change) {
        row.decide(Verdict::NotKnown, cause, why.to_owned());
        return row;
    }
    let boot = boot(facts, &window.host.last, change);
    row.boot = boot.text;
    let mut as_if = change.as_if.clone();
    as_if.settings.extend(boot.settings.iter().copied());
    row.boot_settings = boot.settings;
    leave_out_absent(&mut as_if, window, &mut row);
    let derived = Derived::of(window);
    row.sick_already = rules::sick(&derived).map(str::to_owned);
    if as_if.is_in_force(window) && change.simulated_only.is_empty() {
        let sick =
            row.sick_already.as_ref().map(|rule| format!(" The host is sick already: {rule}.")).unwrap_or_default();
        let told = match row.absent.first() {
            None => "The change is in force on this host already.".to_owned(),
            Some(key) => format!("The change means nothing on this host, which has nothing to set {key} on."),
        };
        row.decide(Verdict::Fine, Cause::NoChange, format!("{told}{sick}"));
        row.confidence = Confidence::High;
        return row;
    }
    match assume(window, Cow::Borrowed(derived.budgets()), &as_if) {
        Ok(mut assumed) => {
            for key in mounts::apply(change, &mut assumed.window) {
                row.notes.push(format!(
                    "The host has no mount for {}: that part of the change has no effect.",
                    Text::new(key)
                ));
            }
            weigh(&derived, &assumed, change, &mut row);
            row.notes.extend(strict_note(&assumed.rows));
        }
        // Limits of cgroups that the host does not have were left out.
        Err(error) => row.decide(Verdict::NotKnown, Cause::NoCgroups, format!("{error}.")),
    }
    row
}

/// The row of a host without a verdict.
fn described(window: &Window, name: &str, change: &Change) -> Row {
    let mut row = Row::not_known(name, change, Cause::NoSample, String::new());
    row.tier = 1;
    row.samples = window.samples;
    row.seconds = window.seconds();
    row.recorded_wall_ns = window.last_at.map(|at| at.wall.0);
    row.confidence = if window.samples > 1 { Confidence::Medium } else { Confidence::Low };
    let is_own =
        |entity: &&Entity| matches!(entity, Entity::Cgroup { hierarchy: Hierarchy::V2 | Hierarchy::V1Memory, .. });
    row.cgroups = window.entities.values().filter(is_own).count() as u64;
    if let Some(facts) = &window.facts {
        row.name_host(facts.hostname.to_string());
        row.kernel_now = facts.kernel.map(|kernel| kernel.to_string());
        row.kernel_then = change.kernel_on(facts.kernel).or(facts.kernel).map(|kernel| kernel.to_string());
        let mode = match facts.cgroups.mode {
            CgroupMode::None => "none",
            CgroupMode::V1 => "v1",
            CgroupMode::V2 => "v2",
            CgroupMode::Hybrid => "hybrid",
        };
        row.cgroup_now = Some(mode.to_owned());
        let then = change.unified().map_or(mode, |unified| if unified { "v2" } else { "v1" });
        row.cgroup_then = Some(then.to_owned());
    }
    row
}

/// Reason why budgets under the change cannot be computed.
fn missing(window: &Window, facts: &HostFacts, change: &Change) -> Option<(Cause, &'static str)> {
    let host = &window.host.last;
    let sets = |names: [&str; 2]| change.as_if.settings.iter().any(|(name, _)| names.contains(name));
    let hard = host.dirty_bytes.zip(host.dirty_ratio).is_some() || sets(["vm.dirty_ratio", "vm.dirty_bytes"]);
    if !hard {
        return Some((Cause::NoSettings, "The settings vm.dirty_* were not read."));
    }
    if host.nr_free_pages.is_none() && host.nr_dirty_threshold.is_none() {
        return Some((Cause::NoSettings, "Free memory was not read. Every limit is a part of it."));
    }
    let unified_now = facts.cgroups.has_unified_writeback();
    if facts.cgroups.v2_controllers_unread && change.unified().is_none() {
        return Some((Cause::NoCgroups, "The controllers of the root cgroup were not read."));
    }
    let per_cgroup = change.unified().unwrap_or(unified_now);
    if per_cgroup && facts.cgroups.mode != CgroupMode::None && window.cgroups.is_empty() {
        return Some((Cause::NoCgroups, "No cgroup was read, but each gets a limit of its own with the change."));
    }
    None
}

/// Leaves out limits of cgroups that the host does not have.
fn leave_out_absent(as_if: &mut AsIf, window: &Window, row: &mut Row) {
    let has = |path: &str| {
        window.entities.values().any(|entity| match entity {
            Entity::Cgroup { path: known, hierarchy: Hierarchy::V2 | Hierarchy::V1Memory, .. } => {
                known.is_meant_by(path)
            }
            _ => false,
        })
    };
    let absent = as_if.limits.iter().filter(|(path, ..)| !has(path));
    row.absent = absent.map(|(path, file, _)| format!("cgroup{path}/{file}")).collect();
    as_if.limits.retain(|(path, ..)| has(path));
    if !row.absent.is_empty() {
        row.notes.push("A cgroup of the change does not exist on this host.".to_owned());
    }
}

/// One limit and the data seen below it.
struct Weighed<'a> {
    row: &'a AsIfRow,
    /// Room divided by the most data seen.
    margin: f64,
    /// Margin that decides. Small pages that are written again and again cost little, so it is 1 at least for those.
    decides: f64,
    shrinks: bool,
    /// Bytes that the cgroup rewrites by stores into mapped files, and the bytes below which they stay dirty.
    rewrites: Option<(u64, u64)>,
}

/// Whether a limit is smaller under the change. A cgroup that gets its first limit has less room than before.
fn shrinks(row: &AsIfRow) -> bool {
    match (row.now_thresh_bytes, row.then_thresh_bytes) {
        (Some(now), Some(then)) => (then as f64) < now as f64 * (1.0 - SAME),
        (None, Some(_)) => row.cgroup.is_some(),
        _ => false,
    }
}

pub(crate) fn grows(row: &AsIfRow) -> bool {
    match (row.now_thresh_bytes, row.then_thresh_bytes) {
        (Some(now), Some(then)) => then as f64 > now as f64 * (1.0 + SAME),
        (Some(_), None) => row.cgroup.is_some(),
        _ => false,
    }
}

/// Compares a limit under the change with the data seen below it. Writers wait from the freerun ceiling; stores into
/// mapped files are cleaned from the background threshold.
fn weighed<'a>(row: &'a AsIfRow, rewriters: &Rewriters) -> Option<Weighed<'a>> {
    let (peak, freerun) = (row.peak_bytes.filter(|peak| *peak > 0)?, row.then_freerun_bytes?);
    let margin = freerun as f64 / peak as f64;
    let shrinks = shrinks(row);
    let rewrites = rewriters.need(row).zip(row.then_bg_thresh_bytes);
    let one = Weighed { row, margin, decides: margin, shrinks, rewrites: None };
    Some(match rewrites {
        Some((need, room)) if rewriters.has_folios && (shrinks || rewriters.gets_folios) => {
            let margin = margin.min(room as f64 / need as f64);
            Weighed { margin, decides: margin, shrinks: true, rewrites, ..one }
        }
        Some(_) if shrinks => Weighed { decides: margin.max(1.0), ..one },
        _ => one,
    })
}

/// Decides by the budgets of both.
fn weigh(derived: &Derived<'_>, assumed: &Assumed<'_>, change: &Change, row: &mut Row) {
    let window = derived.window;
    let facts = assumed.window.facts.as_ref();
    let rewriters = Rewriters::of(derived, &assumed.window);
    row.gets_folios = rewriters.store_into_new_folios();
    row.folios_by_origin = rewriters.by_origin;
    let mut all: Vec<Weighed<'_>> = assumed.rows.iter().filter_map(|row| weighed(row, &rewriters)).collect();
    all.sort_by(|one, other| one.decides.total_cmp(&other.decides).then(one.margin.total_cmp(&other.margin)));
    row.cgroups_over = all.iter().filter(|one| one.margin < 1.0 && one.row.cgroup.is_some()).count() as u64;
    // Limits that the change reduces decide. Without any, the smallest margin is reported.
    let worst = all.iter().find(|one| one.shrinks).or_else(|| all.first());
    if let Some(worst) = worst {
        row.margin = Some(worst.margin);
        row.worst_cgroup = name(worst.row, facts);
        row.demand_bytes = worst.row.peak_bytes;
        row.limit_now_bytes = worst.row.now_thresh_bytes;
        row.limit_then_bytes = worst.row.then_thresh_bytes;
    }
    if let Some(told) = never_written(window, change) {
        row.severity = SEVERITY_NEVER;
        row.confidence = Confidence::High;
        return row.decide(Verdict::Suffers, Cause::NeverWritten, told);
    }
    if let Some(told) = memory_too_small(window, change) {
        // A twin does not hold the memory of the programs.
        row.is_firm = true;
        row.severity = SEVERITY_MAX;
        return row.decide(Verdict::Suffers, Cause::MemoryTooSmall, told);
    }
    let appears = rules::appear(derived, &assumed.window);
    let least = worst.filter(|worst| worst.shrinks);
    if let Some(over) = least.filter(|worst| worst.decides < 1.0) {
        if let Some((need, room)) = over.rewrites {
            // Neither the recording nor a twin contains the rate of stores into a dirty page, unless most stores find a clean one.
            row.is_firm = !rewriters.shows_stores;
            row.hides_stores = rewriters.hides_stores;
            row.severity = rewriting(&all, &assumed.window);
            return row.decide(Verdict::Suffers, Cause::StarvedBudget, rewritten_sentence(over, need, room, facts));
        }
        let cause = if over.row.cgroup.is_some() { Cause::CgroupLimit } else { Cause::MachineLimit };
        let told = over_sentence(over, row.cgroups_over, facts);
        let Some(dirtying) = Dirtying::of(derived) else {
            row.severity = (1.0 / over.margin).min(SEVERITY_MAX);
            return row.decide(Verdict::Suffers, cause, told);
        };
        let all_over = all.iter().filter(|one| one.shrinks && one.decides < 1.0).map(|one| (one.row, one.decides));
        let waits = dirtying.waits(all_over, &assumed.rows);
        let over = all.iter().filter(|one| one.shrinks && one.decides < 1.0).map(|one| one.row);
        row.may_fit = dirtying.may_fit(&arrivals(window), over, &assumed.rows);
        row.predicts_waits = true;
        row.removed_share = removed_share(window);
        row.severity = (waits / STALL).min(SEVERITY_MAX);
        let (waits, seconds) = (human::seconds(waits * derived.seconds), human::seconds(derived.seconds));
        let unless = match row.may_fit {
            true => ", or not at all if the data arrives evenly between two samples",
            false => "",
        };
        let told = format!("{told} By arithmetic they wait about {waits} in {seconds}{unless}.");
        return row.decide(Verdict::Suffers, cause, told);
    }
    if let Some(found) = appears.iter().find(|found| found.severity == Severity::Critical) {
        row.severity = 2.0;
        return row.decide(Verdict::Suffers, found.cause, found.summary.clone());
    }
    if let Some(synced) = synced(derived, &assumed.window) {
        // No recording shows a sync that the option leaves out.
        row.is_firm = true;
        row.severity = (synced.seconds / LONGEST_S).min(SEVERITY_MAX);
        return row.decide(Verdict::Suffers, Cause::OverlaySync, synced.told);
    }
    let storm = storm(derived, &assumed.window);
    if let Some(storm) = storm.as_ref().filter(|storm| storm.is_certain) {
        // A twin has none of the inodes of a removed cgroup.
        row.is_firm = true;
        row.severity = 1.0;
        return row.decide(Verdict::Suffers, Cause::InodeSwitching, storm.told.clone());
    }
    if let Some(cliff) = cliff(derived, assumed).or_else(|| aged(derived, assumed, change)) {
        row.severity = cliff.severity;
        row.is_firm = cliff.is_firm;
        row.waits_for_pile = cliff.waits_for_pile;
        row.syncs_rarely = cliff.syncs_rarely;
        row.is_of_age = cliff.is_of_age;
        return row.decide(cliff.verdict, Cause::DirtyCliff, cliff.told);
    }
    let unseen = written_then(derived, assumed);
    if let Some(unseen) = unseen.as_ref().filter(|unseen| unseen.waits >= STALL) {
        // A twin lacks what no sample shows.
        row.is_firm = true;
        row.predicts_waits = true;
        row.severity = (unseen.waits / STALL).min(SEVERITY_MAX);
        return row.decide(Verdict::Suffers, unseen.cause, unseen.told.clone());
    }
    let again = reread(derived, change);
    if let Some(again) = again.as_ref().filter(|again| again.is_certain && again.waits >= STALL) {
        // A twin has no reads that the page cache answers.
        row.is_firm = true;
        row.predicts_waits = true;
        row.severity = (again.waits / STALL).min(SEVERITY_MAX);
        return row.decide(Verdict::Suffers, Cause::CacheTooSmall, again.told.clone());
    }
    if let Some(told) = memory_tight(window, change) {
        row.severity = 0.7;
        return row.decide(Verdict::Tight, Cause::MemoryTooSmall, told);
    }
    if let Some(again) = again {
        row.is_firm = true;
        row.severity = 0.5;
        return row.decide(Verdict::Tight, Cause::CacheTooSmall, again.told);
    }
    if let Some(storm) = storm {
        row.is_firm = true;
        row.severity = 0.5;
        return row.decide(Verdict::Tight, Cause::InodeSwitching, storm.told);
    }
    if let Some(told) = starved(assumed) {
        row.severity = 0.7;
        return row.decide(Verdict::Tight, Cause::StarvedBudget, told);
    }
    if let Some(tight) = least.filter(|worst| worst.decides < TIGHT) {
        row.severity = 0.5 / tight.decides;
        let cause = if tight.row.cgroup.is_some() { Cause::CgroupLimit } else { Cause::MachineLimit };
        return row.decide(Verdict::Tight, cause, tight_sentence(tight, facts));
    }
    if let Some(told) = removed_early(window, assumed) {
        row.severity = 0.5;
        return row.decide(Verdict::Tight, Cause::MachineLimit, told);
    }
    if let Some((cause, told)) = overwritten(derived, assumed) {
        row.severity = 0.5;
        return row.decide(Verdict::Tight, cause, told);
    }
    if let Some(unseen) = unseen.filter(|unseen| unseen.rate >= WRITTEN) {
        row.severity = 0.5;
        return row.decide(Verdict::Tight, unseen.cause, unseen.told);
    }
    if let Some(told) = raised(derived, assumed) {
        row.severity = 0.5;
        return row.decide(Verdict::Tight, Cause::DirtyCliff, told);
    }
    if let Some(found) = appears.first() {
        row.severity = 0.5;
        return row.decide(Verdict::Tight, found.cause, found.summary.clone());
    }
    // A host that is sick already may get worse, too.
    if !change.simulated_only.is_empty() {
        return row.decide(
            Verdict::NotKnown,
            Cause::NotSimulated,
            format!("Arithmetic has no answer for {}.", change.simulated_only.join(", ")),
        );
    }
    if let Some(rule) = row.sick_already.clone() {
        let helps = assumed.rows.iter().any(|one| one.peak_bytes > Some(0) && grows(one));
        let effect = if helps { "makes its limits larger" } else { "makes no limit smaller" };
        let told = format!("The host is sick before the change ({rule}). The change {effect}.");
        return row.decide(Verdict::Fine, Cause::SickAlready, told);
    }
    let cause = fine_cause(row);
    row.decide(Verdict::Fine, cause, fine_sentence(window, assumed, row));
}

/// Why a host is fine. A limit that the change makes smaller has a wide margin here; another limit can be near.
pub(crate) fn fine_cause(row: &Row) -> Cause {
    if row.margin.is_some_and(|margin| margin < TIGHT) { Cause::SameLimit } else { Cause::WideMargin }
}

/// Severity where cgroups rewrite more than fits. All of them count: each writes pages of its own.
fn rewriting(all: &[Weighed<'_>], then: &Window) -> f64 {
    let over: Vec<&Weighed<'_>> = all.iter().filter(|one| one.rewrites.is_some() && one.decides < 1.0).collect();
    let lacks = over.iter().map(|one| (1.0 - one.decides).powf(REWRITTEN_POWER));
    let written = REWRITTEN * lacks.sum::<f64>();
    let behaviour = then.facts.as_ref().and_then(|facts| facts.kernel).map(Behaviour::of);
    // Since commit "mm: writeback: ratelimit stat flush from mem_cgroup_wb_stats", v6.9, throttling uses counts that
    // are up to two seconds old: a cgroup stays above its limit meanwhile.
    let is_late = behaviour.is_some_and(|behaviour| behaviour.arithmetic.memcg_stats == MemcgStats::RateLimited);
    let exceeds = |one: &&Weighed<'_>| {
        one.rewrites.zip(one.row.then_thresh_bytes).is_some_and(|((need, _), thresh)| need > thresh)
    };
    let waits = if is_late && over.iter().any(exceeds) { LATE } else { 0.0 };
    written.max(waits).clamp(1.0, SEVERITY_MAX)
}

fn over_sentence(over: &Weighed<'_>, many: u64, facts: Option<&HostFacts>) -> String {
    let held = human::bytes(over.row.peak_bytes.unwrap_or(0) as f64);
    let freerun = human::bytes(over.row.then_freerun_bytes.unwrap_or(0) as f64);
    let others = match (&over.row.cgroup, many) {
        (Some(_), 2..) => format!(" {} are over their limits.", human::plural(many, "cgroup", "cgroups")),
        _ => String::new(),
    };
    format!("{} held {held} of unwritten data; writers will wait from {freerun}.{others}", whose(over.row, facts))
}

fn rewritten_sentence(over: &Weighed<'_>, need: u64, room: u64, facts: Option<&HostFacts>) -> String {
    format!(
        "{} rewrites {} in mapped files, and the kernel will start to write from {}: the same pages again and again.",
        whose(over.row, facts),
        human::bytes(need as f64),
        human::bytes(room as f64)
    )
}

fn tight_sentence(tight: &Weighed<'_>, facts: Option<&HostFacts>) -> String {
    // The smaller of two margins is told, with its own amounts.
    let is_of_rewrites = |(need, room): &(u64, u64)| *room as f64 / *need as f64 <= tight.margin;
    if let Some((need, room)) = tight.rewrites.filter(is_of_rewrites) {
        return format!(
            "{} needs room for {} of mapped pages that it rewrites. The kernel will start to write from {}: a margin of {:.1}.",
            whose(tight.row, facts),
            human::bytes(need as f64),
            human::bytes(room as f64),
            tight.margin
        );
    }
    let held = human::bytes(tight.row.peak_bytes.unwrap_or(0) as f64);
    let freerun = human::bytes(tight.row.then_freerun_bytes.unwrap_or(0) as f64);
    format!(
        "{} held {held} of unwritten data and may hold {freerun}: a margin of {:.1}.",
        whose(tight.row, facts),
        tight.margin
    )
}

/// The container or cgroup of a row; `None` is the machine.
fn name(row: &AsIfRow, facts: Option<&HostFacts>) -> Option<String> {
    row.container_on(facts).or_else(|| row.cgroup.clone())
}

fn whose(row: &AsIfRow, facts: Option<&HostFacts>) -> String {
    name(row, facts).unwrap_or_else(|| "The machine".to_owned())
}

fn fine_sentence(window: &Window, assumed: &Assumed<'_>, row: &Row) -> String {
    let kernels = window
        .facts
        .as_ref()
        .and_then(|facts| facts.kernel)
        .zip(assumed.window.facts.as_ref().and_then(|facts| facts.kernel));
    let same = kernels.is_some_and(|(now, then)| now != then && Behaviour::of(now) == Behaviour::of(then));
    let kernel = if same { " The two kernels do not differ in writeback." } else { "" };
    match row.margin {
        Some(margin) if margin < TIGHT => {
            let whose = row.worst_cgroup.as_deref().unwrap_or("the machine");
            format!(
                "The smallest margin is {}, of {whose}, and the change does not make that limit smaller.{kernel}",
                human::number(margin)
            )
        }
        Some(margin) if margin < 1000.0 => format!("The smallest margin is {}.{kernel}", human::number(margin)),
        Some(_) => format!("The smallest margin is over 1000.{kernel}"),
        None => format!("No unwritten data was seen that a limit could hold back.{kernel}"),
    }
}

/// A cgroup that writes and whose new limit is a few folios.
fn starved(assumed: &Assumed<'_>) -> Option<String> {
    let is_small = |row: &&AsIfRow| {
        row.cgroup.is_some()
            && row.peak_bytes > Some(0)
            && shrinks(row)
            && row.then_thresh_bytes.is_some_and(|then| then < FOLIOS)
    };
    let small: Vec<&AsIfRow> = assumed.rows.iter().filter(is_small).collect();
    let least = small.iter().min_by_key(|row| row.then_thresh_bytes)?;
    let limit = human::bytes(least.then_thresh_bytes.unwrap_or(0) as f64);
    let whose = name(least, assumed.window.facts.as_ref()).unwrap_or_default();
    let told = match small.len() as u64 {
        1 => format!("{whose} writes files, and its limit will be {limit} of unwritten data."),
        many => format!(
            "{many} cgroups that write will have limits of unwritten data below {}. The smallest is {limit}, of {whose}.",
            human::bytes(FOLIOS as f64)
        ),
    };
    let folio = if least.then_thresh_bytes < Some(FOLIO) {
        "One folio of 2 MiB is larger than that."
    } else {
        "Two folios of 2 MiB are larger than that."
    };
    Some(format!("{told} {folio}"))
}

/// Reason why data below the background threshold stay unwritten until a sync: the change ends periodic writeback.
fn never_written(window: &Window, change: &Change) -> Option<String> {
    let ends = change.settings.iter().any(|set| set.key == "vm.dirty_writeback_centisecs" && set.value.trim() == "0");
    let writes_now = window.host.last.dirty_writeback_centisecs.is_some_and(|now| now.0 > 0);
    (ends && writes_now).then(|| {
        "vm.dirty_writeback_centisecs=0 ends periodic writeback. Data below the background threshold stay unwritten until a \
         program syncs them. A crash loses them."
            .to_owned()
    })
}

#[cfg(test)]
#[path = "arithmetic_tests.rs"]
mod tests;
