// SPDX-License-Identifier: MIT OR Apache-2.0
//! The budgets a host would have with another cgroup hierarchy, other settings or another kernel: the last readings of
//! a window, changed, through the same arithmetic. Nothing is simulated: free memory, page cache and dirty pages stay
//! as they were read, and shares of devices, which follow completions, become bounds.

use super::as_if_conditions::{conditions, size};
use super::as_if_strict::{self, StrictDevice};
use super::as_if_words::{IN_FORCE, headline, notes};
use super::inputs::Inputs;
use super::{Bound, Budgets, Choice, SCHEMA as BUDGET_SCHEMA, available, budgets, budgets_of, rows};
use super::{BudgetReport, Sort};
use crate::advise::knob::KNOBS;
use crate::container::identify;
use floodline_kernel::{OLDEST_KNOWN, Planned, is_known, newest_modelled};
use floodline_record::facts::{CgroupMode, HostFacts};
use floodline_record::human;
use floodline_record::id::{Entity, EntityId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::nearest::nearest;
use floodline_record::sample::CgroupRow;
use floodline_record::text::Text;
use floodline_record::units::{Bytes, Limit, Pages, Percent};
use floodline_record::window::{Span, Spans, Window};
use floodline_scenario::split_setting;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Version of the serialized form.
pub const AS_IF_SCHEMA: &str = "floodline.budget-as-if/1";

/// Conditions that are assumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AsIf {
    /// Another cgroup hierarchy.
    pub unified: Option<bool>,
    /// Another kernel.
    pub kernel: Option<Planned>,
    /// Settings of virtual memory by name, such as `vm.dirty_bytes`, in the order they were named.
    pub settings: Vec<(&'static str, u64)>,
    /// Limits of cgroups: path, `memory.max` or `memory.high`, bytes (`None`: no limit).
    pub limits: Vec<(String, &'static str, Option<u64>)>,
    /// Another size of the machine's memory, bytes.
    pub memory: Option<u64>,
}

/// A window and the same window under assumed conditions, with the budgets of both.
#[derive(Debug)]
pub struct Assumed<'a> {
    /// The window in which the conditions hold. Its thresholds are computed.
    pub window: Window,
    /// Actual budgets.
    pub now: Cow<'a, Budgets>,
    /// Budgets under the conditions.
    pub then: Budgets,
    /// The machine first, then every cgroup that has no cgroup with a budget below it, worst first. Their containers
    /// are not named: [`AsIfRow::container_on`] does that.
    pub rows: Vec<AsIfRow>,
}

/// A condition that cannot be assumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct NotAsIf {
    what: String,
    /// Correct input to type instead.
    pub hint: String,
}

fn wrong(what: impl Into<String>, hint: impl Into<String>) -> NotAsIf {
    NotAsIf { what: what.into(), hint: hint.into() }
}

/// Settings that budgets depend on.
const SETTINGS: [&str; 4] =
    ["vm.dirty_ratio", "vm.dirty_bytes", "vm.dirty_background_ratio", "vm.dirty_background_bytes"];
/// Least memory given to a machine: kernels that support cgroups need as much.
const MEMORY_MIN: u64 = 64 << 20;
const USUAL: &str = "e.g. --as-if cgroup=v2,vm.dirty_ratio=10,kernel=6.12";

impl FromStr for AsIf {
    type Err = NotAsIf;

    /// Reads `cgroup=v2,vm.dirty_ratio=10,kernel=6.12,cgroup/PATH/memory.max=512M`.
    fn from_str(text: &str) -> Result<AsIf, NotAsIf> {
        let mut as_if = AsIf::default();
        let mut given = Vec::new();
        for part in conditions(text) {
            let (key, value) = split_setting(&part)
                .ok_or_else(|| wrong(format!("invalid condition {part:?}: expected KEY=VALUE"), USUAL))?;
            let key = key.trim();
            if given.iter().any(|known| known == key) {
                return Err(wrong(format!("{key} is given twice"), "name each condition once"));
            }
            given.push(key.to_owned());
            as_if.assume(key, value.trim())?;
        }
        if as_if == AsIf::default() {
            return Err(wrong("no condition is given", USUAL));
        }
        Ok(as_if)
    }
}

impl AsIf {
    fn assume(&mut self, key: &str, value: &str) -> Result<(), NotAsIf> {
        let invalid = |expected: &str| wrong(format!("invalid value {value:?} of {key}: expected {expected}"), USUAL);
        match key {
            "cgroup" | "machine.cgroup_mode" => {
                self.unified = Some(match value {
                    "v2" | "2" => true,
                    "v1" | "1" => false,
                    _ => return Err(invalid("v1 or v2")),
                });
            }
            "kernel" => {
                let newest =
                    || format!("a version such as 6.12; the newest kernel known here is {}", newest_modelled());
                let kernel: Planned = value.parse().map_err(|_| invalid(&newest()))?;
                if !is_known(kernel.version) {
                    return Err(invalid(&format!("{OLDEST_KNOWN} or newer")));
                }
                self.kernel = Some(kernel);
            }
            "memory" | "machine.memory" => {
                let bytes = size(value).ok_or_else(|| invalid("a size such as 8G or 8 GiB"))?;
                let bytes = Some(bytes).filter(|bytes| *bytes >= MEMORY_MIN);
                self.memory = Some(bytes.ok_or_else(|| invalid("64M or more, such as 8G"))?);
            }
            _ if key.starts_with("vm.") => {
                let name = SETTINGS.into_iter().find(|name| *name == key).ok_or_else(|| {
                    let meant = nearest(key, SETTINGS).map_or_else(|| SETTINGS.join(", "), str::to_owned);
                    wrong(format!("no budget depends on {key}"), format!("known here: {meant}"))
                })?;
                let number = size(value).ok_or_else(|| invalid("a number, with K, M or G for bytes"))?;
                let knob = KNOBS.iter().find(|knob| knob.name == name);
                if let Some(knob) = knob.filter(|knob| !(knob.min..=knob.max).contains(&number)) {
                    return Err(invalid(&format!("{} to {}, which the kernel accepts", knob.min, knob.max)));
                }
                self.settings.push((name, number));
            }
            _ if key.starts_with("cgroup/") => {
                let (path, file) = key["cgroup".len()..].rsplit_once('/').unwrap_or_default();
                let file = match file {
                    "memory.max" => "memory.max",
                    "memory.high" => "memory.high",
                    _ => return Err(wrong(format!("unknown limit {key:?}"), "e.g. cgroup/app.slice/memory.max=512M")),
                };
                let bytes = match value {
                    "max" => None,
                    value => Some(size(value).ok_or_else(|| invalid("a size such as 512M, or max"))?),
                };
                self.limits.push((if path.is_empty() { "/".to_owned() } else { path.to_owned() }, file, bytes));
            }
            _ => {
                let known = ["cgroup", "kernel", "memory"].into_iter().chain(SETTINGS);
                let meant = nearest(key, known).map_or_else(
                    || "known: cgroup, kernel, memory, vm.dirty_*, cgroup/PATH/memory.max".to_owned(),
                    |near| format!("did you mean {near}?"),
                );
                return Err(wrong(format!("unknown condition {key:?}"), meant));
            }
        }
        Ok(())
    }

    /// Short description of the conditions.
    pub fn label(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.unified.map(|unified| format!("cgroup {}", if unified { "v2" } else { "v1" })));
        parts.extend(self.kernel.map(|kernel| format!("kernel {}", kernel.version)));
        parts.extend(self.memory.map(|bytes| format!("memory {}", human::bytes(bytes as f64))));
        parts.extend(self.settings.iter().map(|(name, value)| format!("{name}={value}")));
        for (path, file, bytes) in &self.limits {
            let value = bytes.map_or_else(|| "max".to_owned(), |bytes| human::bytes(bytes as f64));
            parts.push(format!("{file}={value} of {}", Text::new(path)));
        }
        parts.join(", ")
    }

    /// A window in which the conditions hold, without what the kernel printed under the old ones.
    fn applied(&self, window: &Window) -> Result<Window, NotAsIf> {
        let mut then = window.clone();
        let facts = then.facts.get_or_insert_default();
        if let Some(kernel) = self.kernel.map(|kernel| kernel.on(facts.kernel)) {
            facts.kernel = Some(kernel);
            facts.kernel_release = kernel.to_string().as_str().into();
        }
        if let Some(unified) = self.unified {
            facts.cgroups.mode = if unified { CgroupMode::V2 } else { CgroupMode::V1 };
            facts.cgroups.v2_controllers_unread = false;
            facts.cgroups.v2_controllers = if unified { vec!["memory".into(), "io".into()] } else { Vec::new() };
            if unified {
                unify(&mut then);
            }
        }
        let host = &mut then.host.last;
        for &(name, value) in &self.settings {
            let (bytes, percent) = (Some(Bytes(value)), Some(Percent(value)));
            match name {
                "vm.dirty_ratio" => (host.dirty_ratio, host.dirty_bytes) = (percent, Some(Bytes(0))),
                "vm.dirty_bytes" => (host.dirty_bytes, host.dirty_ratio) = (bytes, Some(Percent(0))),
                "vm.dirty_background_ratio" => {
                    (host.dirty_background_ratio, host.dirty_background_bytes) = (percent, Some(Bytes(0)));
                }
                _ => (host.dirty_background_bytes, host.dirty_background_ratio) = (bytes, Some(Percent(0))),
            }
        }
        if let Some(bytes) = self.memory {
            resize(&mut then, bytes);
        }
        let host = &mut then.host.last;
        // Printed by the kernel under the old conditions.
        (host.nr_dirty_threshold, host.nr_dirty_background_threshold) = (None, None);
        then.wbs = Spans::default();
        then.bdis.values_mut().for_each(|span| span.last.dirty_thresh = None);
        for (path, file, bytes) in &self.limits {
            let id = cgroup_named(&then, path)?;
            let limit = bytes.map_or(Limit::MAX, Limit);
            let row = &mut then.cgroup_limits.or_default(id).last;
            match *file {
                "memory.max" => row.memory_max = Some(limit),
                _ => row.memory_high = Some(limit),
            }
            reclaim(&mut then, id);
        }
        then.lookup.take();
        Ok(then)
    }
}

/// Changes the memory of a machine: free pages grow by the difference. When it shrinks, free pages go first and then
/// the page cache.
fn resize(then: &mut Window, bytes: u64) {
    let facts = then.facts.get_or_insert_default();
    let host = &mut then.host.last;
    let page = if facts.page_size == 0 { 4096 } else { facts.page_size };
    let Some(old) = facts.mem_total.or(host.mem_total) else { return };
    (facts.mem_total, host.mem_total) = (Some(Bytes(bytes)), Some(Bytes(bytes)));
    host.nr_free_pages = available::free_pages(host, page);
    let (more, mut less) = (bytes.saturating_sub(old.0) / page, old.0.saturating_sub(bytes) / page);
    let cached = [&mut host.nr_free_pages, &mut host.nr_inactive_file, &mut host.nr_active_file];
    for pages in cached.into_iter().flatten() {
        let taken = pages.0.min(less);
        (pages.0, less) = (pages.0 - taken, less - taken);
    }
    if let Some(free) = &mut host.nr_free_pages {
        free.0 = free.0.saturating_add(more);
    }
    // The arithmetic would treat a second count of free memory as a disagreement.
    host.mem_free = host.nr_free_pages.map(|free| free.bytes(page));
}

/// Reclaims the page cache that a cgroup holds above a new limit, inactive pages first: no cgroup stays above its limit.
/// What its descendants hold shrinks by the same share.
fn reclaim(then: &mut Window, id: EntityId) {
    let Some(limits) = then.cgroup_limits.get(&id).map(|span| &span.last) else { return };
    let bytes = |limit: Option<Limit>| limit.and_then(Limit::bytes).map(|bytes| bytes.0);
    let Some(most) = bytes(limits.memory_max).into_iter().chain(bytes(limits.memory_high)).min() else { return };
    let Some(row) = then.cgroups.get_mut(&id).map(|span| &mut span.last) else { return };
    let Some(usage) = row.memory_current.filter(|usage| usage.0 > most) else { return };
    let before = cached(row);
    let mut less = usage.0 - most;
    for part in [&mut row.inactive_file, &mut row.active_file].into_iter().flatten() {
        let taken = part.0.min(less);
        (part.0, less) = (part.0 - taken, less - taken);
    }
    row.memory_current = Some(Bytes(most));
    let after = cached(row);
    for id in below(then, id) {
        let Some(row) = then.cgroups.get_mut(&id).map(|span| &mut span.last) else { continue };
        let had = cached(row);
        for part in [&mut row.inactive_file, &mut row.active_file].into_iter().flatten() {
            part.0 = (u128::from(part.0) * u128::from(after) / u128::from(before.max(1))) as u64;
        }
        let gone = had - cached(row);
        row.memory_current = row.memory_current.map(|usage| Bytes(usage.0.saturating_sub(gone)));
    }
}

/// Page cache of a cgroup, without that of files in memory.
fn cached(row: &CgroupRow) -> u64 {
    let bytes = |part: Option<Bytes>| part.map_or(0, |bytes| bytes.0);
    bytes(row.inactive_file).saturating_add(bytes(row.active_file))
}

/// Memory cgroups below another one.
fn below(window: &Window, id: EntityId) -> Vec<EntityId> {
    let Some(Entity::Cgroup { path: top, .. }) = window.entities.get(&id) else { return Vec::new() };
    let top = if top.as_bytes() == b"/" { &b""[..] } else { top.as_bytes() };
    let is_below = |entity: &Entity| match entity {
        Entity::Cgroup { path, hierarchy: Hierarchy::V2 | Hierarchy::V1Memory, .. } => {
            path.as_bytes().strip_prefix(top).is_some_and(|rest| rest.len() > 1 && rest.starts_with(b"/"))
        }
        _ => false,
    };
    window.entities.iter().filter(|(other, entity)| **other != id && is_below(entity)).map(|(id, _)| *id).collect()
}

/// Moves the cgroups of version 1 onto the unified hierarchy: each memory cgroup keeps its path and its limit, has no
/// `memory.high`, and gets the I/O of the blkio cgroup with the same path.
fn unify(then: &mut Window) {
    let mut memory: BTreeMap<Name, EntityId> = BTreeMap::new();
    let mut blkio: BTreeMap<EntityId, Name> = BTreeMap::new();
    for (&id, entity) in then.entities.iter_mut() {
        if let Entity::Cgroup { path, hierarchy, .. } = entity {
            match *hierarchy {
                Hierarchy::V1Memory => {
                    *hierarchy = Hierarchy::V2;
                    memory.insert(path.clone(), id);
                    let limits = then.cgroup_limits.or_default(id);
                    if limits.last.memory_max.is_some() {
                        limits.last.memory_high.get_or_insert(Limit::MAX);
                    }
                }
                Hierarchy::V1Blkio => {
                    blkio.insert(id, path.clone());
                }
                Hierarchy::V2 => {}
            }
        }
    }
    for id in memory.values() {
        if let Some(span) = then.cgroups.get_mut(id) {
            add_ended_heap(span);
        }
    }
    for entity in then.entities.values_mut() {
        if let Entity::CgroupIo { cgroup, .. } = entity
            && let Some(same) = blkio.get(cgroup).and_then(|path| memory.get(path))
        {
            *cgroup = *same;
        }
    }
}

/// Adds to a cgroup the anonymous memory that it held in another sample than the last one. A program that ends before the last sample
/// leaves room there that its cgroup did not have while it ran.
fn add_ended_heap(span: &mut Span<CgroupRow>) {
    let ended = span.max.anon.zip(span.last.anon).map_or(0, |(max, last)| max.0.saturating_sub(last.0));
    // No sample had more memory in use than the largest reading.
    let most = span.max.memory_current.map_or(0, |usage| usage.0);
    if let Some(usage) = &mut span.last.memory_current {
        usage.0 = usage.0.saturating_add(ended).min(most.max(usage.0));
    }
}

pub(super) fn cgroup_named(window: &Window, path: &str) -> Result<EntityId, NotAsIf> {
    let paths = || {
        window.entities.iter().filter_map(|(id, entity)| match entity {
            Entity::Cgroup { path, hierarchy: Hierarchy::V2 | Hierarchy::V1Memory, .. } => Some((path, id)),
            _ => None,
        })
    };
    let exact = paths().find(|(known, _)| known.as_bytes() == path.as_bytes());
    let found = exact.or_else(|| paths().find(|(known, _)| known.is_meant_by(path)));
    found.map(|(_, id)| *id).ok_or_else(|| {
        let known: Vec<String> = paths().map(|(path, _)| path.to_string()).collect();
        let hint = nearest(path, known.iter().map(String::as_str)).map_or_else(
            || "floodline budget --all lists the cgroups".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        wrong(format!("no cgroup {} was read", Text::new(path)), hint)
    })
}

/// Current budgets and those under other conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AsIfReport {
    /// [`AS_IF_SCHEMA`].
    pub schema: &'static str,
    /// The conditions (escaped).
    pub as_if: String,
    /// Effect of the conditions, in a sentence or two.
    pub headline: String,
    /// The machine first, then cgroups: those that exceed a limit, then the smallest limits.
    pub rows: Vec<AsIfRow>,
    /// Rows left out.
    pub hidden: u64,
    /// Notes to the rows.
    pub notes: Vec<String>,
    /// Current budgets, complete.
    pub now: BudgetReport,
    /// Budgets under the conditions, complete.
    pub then: BudgetReport,
}

/// One cgroup, or the machine, on all its devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AsIfRow {
    /// Path of the cgroup (escaped); `None` for the machine.
    pub cgroup: Option<String>,
    /// Name of the container (escaped), if it is one.
    pub container: Option<String>,
    /// The most dirty and writeback pages of any sample, bytes.
    pub peak_bytes: Option<u64>,
    /// Current hard threshold; `None` if it has none of its own, or it was not read.
    pub now_thresh_bytes: Option<u64>,
    /// Current background threshold; `None` if it has none of its own, or it was not read.
    #[serde(skip)]
    pub now_bg_thresh_bytes: Option<u64>,
    /// Largest background threshold under the conditions.
    pub then_bg_thresh_bytes: Option<u64>,
    /// Largest free-run ceiling under the conditions: writers are slowed above it.
    pub then_freerun_bytes: Option<u64>,
    /// Largest hard threshold under the conditions; `None` if it has none of its own.
    pub then_thresh_bytes: Option<u64>,
    /// Smallest hard threshold under the conditions.
    pub then_thresh_bytes_min: Option<u64>,
    /// Largest hard threshold once the page cache has grown to the memory limit.
    pub then_grown_bytes: Option<u64>,
    /// Effect of the limit on the peak: `over` (its writers stop), `slowed`, `fits`, or `unknown`.
    pub verdict: &'static str,
    /// Setting and memory that decide the limit under the conditions.
    pub binding: String,
    /// Peculiarities under the conditions, as in `floodline budget`.
    pub flags: Vec<&'static str>,
    /// Devices with `strict_limit` that it writes to. They pause its writers at their own shares, which are smaller than the limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strict: Vec<StrictDevice>,
}

impl AsIfRow {
    /// Name of the container (escaped), if the cgroup is one. `facts` are of its machine.
    pub fn container_on(&self, facts: Option<&HostFacts>) -> Option<String> {
        let identity = identify(&Name::from_escaped(self.cgroup.as_ref()?));
        let is_container = identity.kind.is_container() || identity.inside.is_some();
        is_container.then(|| identity.label(facts))
    }
}

/// Most rows on a screen.
const ROWS_MAX: usize = 10;

/// Returns the current budgets of a window, `now`, and those under the conditions.
///
/// # Errors
///
/// A condition names a cgroup that was not read.
pub fn assume<'a>(window: &Window, now: Cow<'a, Budgets>, as_if: &AsIf) -> Result<Assumed<'a>, NotAsIf> {
    let mut changed = as_if.applied(window)?;
    let old = Inputs::of_machine(window);
    let mut inputs = Inputs::of(&changed);
    // Dirtyable memory does not change. The thresholds printed by the kernel under its own settings narrow it.
    let host = old.host();
    let printed = host.nr_dirty_threshold.zip(host.nr_dirty_background_threshold);
    let printed = printed.map(|(thresh, bg)| floodline_kernel::DomainLimits { thresh: thresh.0, bg_thresh: bg.0 });
    let mut missing = Vec::new();
    if as_if.memory.is_none() {
        inputs.dirtyable =
            available::available(&old, printed, &mut missing, &mut Vec::new()).map(|pages| (pages, missing));
    }
    let then = budgets_of(&inputs);
    let rows = compare(window, &now, &then);
    print_thresholds(&mut changed, &then);
    Ok(Assumed { window: changed, now, then, rows })
}

/// Writes the computed thresholds of the machine in place of those that the kernel prints.
fn print_thresholds(changed: &mut Window, then: &Budgets) {
    let pages = |bound: Option<Bound>| bound.map(|bound| Pages(bound.high.0 / then.page_size.max(1)));
    let (thresh, background) = (pages(then.global.thresh), pages(then.global.bg_thresh));
    let rows = changed.host_series.iter_mut().map(|(_, row)| row);
    for row in rows.chain([&mut changed.host.last, &mut changed.host.min, &mut changed.host.max]) {
        (row.nr_dirty_threshold, row.nr_dirty_background_threshold) = (thresh, background);
    }
}

/// Compares the budgets of a window with those under other conditions.
pub fn as_if(window: &Window, as_if: &AsIf, all: bool) -> Result<AsIfReport, NotAsIf> {
    let Assumed { window: changed, now, then, rows: mut rows_then } =
        assume(window, Cow::Owned(budgets(window)), as_if)?;
    rows_then.iter_mut().for_each(|row| row.container = row.container_on(changed.facts.as_ref()));
    let choice = Choice { all, sort: Sort::Over };
    let headline = match as_if.is_in_force(window) {
        true => IN_FORCE.to_owned(),
        false => headline(&now, &then, &rows_then),
    };
    let notes = notes(as_if, window, &then, &rows_then);
    let shown = if all { rows_then.len() } else { rows_then.len().min(ROWS_MAX) };
    let hidden = rows_then.len() - shown;
    let mut then_report = rows(&changed, &then, choice);
    // Shares are bounds because conditions are assumed, not because a file was not read.
    then_report.gaps.retain(|gap| !gap.source.contains("wb_stats"));
    debug_assert_eq!(then_report.schema, BUDGET_SCHEMA);
    Ok(AsIfReport {
        schema: AS_IF_SCHEMA,
        as_if: as_if.label(),
        headline,
        rows: rows_then.into_iter().take(shown).collect(),
        hidden: hidden as u64,
        notes,
        now: rows(window, &now, choice),
        then: then_report,
    })
}

fn compare(window: &Window, now: &Budgets, then: &Budgets) -> Vec<AsIfRow> {
    let high = |bound: Option<Bound>| bound.map(|bound| bound.high.0).filter(|bytes| *bytes < u64::MAX / 2);
    let low = |bound: Option<Bound>| bound.map(|bound| bound.low.0);
    let page = then.page_size;
    let peak =
        window.host_series.iter().filter_map(|(_, row)| Some(row.nr_dirty?.0.saturating_add(row.nr_writeback?.0)));
    let mut machine = AsIfRow {
        peak_bytes: peak.max().map(|pages| pages.saturating_mul(page)),
        now_thresh_bytes: high(now.global.thresh),
        now_bg_thresh_bytes: high(now.global.bg_thresh),
        then_bg_thresh_bytes: high(then.global.bg_thresh),
        then_freerun_bytes: high(then.global.freerun),
        then_thresh_bytes: high(then.global.thresh),
        then_thresh_bytes_min: low(then.global.thresh),
        binding: then.global.binding.as_ref().map(super::Binding::label).unwrap_or_default(),
        strict: as_if_strict::of_bdis(window, &then.bdis),
        ..AsIfRow::default()
    };
    machine.verdict = verdict(&machine);
    let mut found = Vec::new();
    let ids: BTreeMap<EntityId, (Option<&super::CgroupBudget>, Option<&super::CgroupBudget>)> = now
        .cgroups
        .iter()
        .map(|budget| (budget.cgroup, true, budget))
        .chain(then.cgroups.iter().map(|budget| (budget.cgroup, false, budget)))
        .fold(BTreeMap::new(), |mut map: BTreeMap<_, (Option<_>, Option<_>)>, (id, is_now, budget)| {
            let entry = map.entry(id).or_default();
            if is_now {
                entry.0 = Some(budget)
            } else {
                entry.1 = Some(budget)
            }
            map
        });
    for (id, (now, then)) in ids {
        let Some(any) = then.or(now).filter(|budget| !budget.is_inner) else { continue };
        let domain = then.map(|then| &then.domain);
        // Both are read: where one is not, the peak is not known.
        let max = window.cgroups.get(&id).map(|span| &span.max);
        let is_read = max.is_some_and(|row| row.file_dirty.is_some() && row.file_writeback.is_some());
        let peak = window.unwritten_max.get(&id).copied().filter(|_| is_read);
        let mut row = AsIfRow {
            cgroup: Some(any.path.to_string()),
            container: None,
            peak_bytes: peak,
            now_thresh_bytes: now.and_then(|now| high(now.domain.thresh)),
            now_bg_thresh_bytes: now.and_then(|now| high(now.domain.bg_thresh)),
            then_bg_thresh_bytes: domain.and_then(|domain| high(domain.bg_thresh)),
            then_freerun_bytes: domain.and_then(|domain| high(domain.freerun)),
            then_thresh_bytes: domain.and_then(|domain| high(domain.thresh)),
            then_thresh_bytes_min: domain.and_then(|domain| low(domain.thresh)),
            then_grown_bytes: then.and_then(|then| high(then.outlook.grown)),
            binding: domain.and_then(|domain| domain.binding.as_ref()).map(super::Binding::label).unwrap_or_default(),
            flags: then
                .map(|then| then.outlook.flags.iter().map(|flag| super::rows::flag_name(*flag)).collect())
                .unwrap_or_default(),
            strict: then.map(|then| as_if_strict::of_wbs(&then.wbs)).unwrap_or_default(),
            verdict: "",
        };
        row.verdict = verdict(&row);
        found.push(row);
    }
    let rank = |row: &AsIfRow| ["over", "slowed", "unknown", "fits"].iter().position(|known| *known == row.verdict);
    // A cgroup that never held a dirty page comes after those that did.
    let idle = |row: &AsIfRow| row.peak_bytes.unwrap_or(0) == 0;
    let thresh = |row: &AsIfRow| row.then_thresh_bytes.unwrap_or(u64::MAX);
    let mut found: Vec<_> = found.into_iter().map(|row| ((rank(&row), idle(&row), thresh(&row)), row)).collect();
    found.sort_by(|(a, row), (b, other)| a.cmp(b).then_with(|| row.cgroup.cmp(&other.cgroup)));
    std::iter::once(machine).chain(found.into_iter().map(|(_, row)| row)).collect()
}

fn verdict(row: &AsIfRow) -> &'static str {
    let verdict = match (row.peak_bytes, row.then_freerun_bytes, row.then_thresh_bytes) {
        (Some(peak), _, Some(thresh)) if peak > 0 && peak >= thresh => "over",
        (Some(peak), Some(freerun), _) if peak > freerun => "slowed",
        (Some(_), Some(_), Some(_)) => "fits",
        // Without a limit of its own only the machine's counts.
        (_, None, None) if row.cgroup.is_some() => "fits",
        _ => "unknown",
    };
    as_if_strict::verdict(row, verdict)
}
