// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets as rows, cgroup by device, for people and programs: their order, the rows to leave out, and the notes beside
//! them. The serialized form is a stable interface: fields are added, never renamed; `schema` names the version.

use super::{Bound, Budgets, CgroupBudget, DomainBudget, Flag, Scope, WbBudget};
use crate::container::identify;
use crate::report::{Evidence, GapLine};
use floodline_record::gap::{Gap, Source};
use floodline_record::human;
use floodline_record::name::Name;
use floodline_record::window::Window;
use serde::Serialize;
use std::cmp::Reverse;

/// Version of the serialized form.
pub const SCHEMA: &str = "floodline.budget/1";

/// Rows shown unless all are requested.
const ROWS_MAX: usize = 12;

/// The answer of `floodline budget`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BudgetReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Name of the machine (escaped).
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// Whether cgroups have budgets of their own: `per_cgroup`, `no_unified_hierarchy`,
    /// `kernel_too_old` or `unknown`.
    pub scope: &'static str,
    /// Bytes that a wb may have dirty however small its budget (`wb_stat_error`).
    pub wb_stat_error_bytes: Option<u64>,
    /// The machine first, then cgroups in the requested order.
    pub rows: Vec<BudgetRow>,
    /// Rows left out.
    pub hidden: u64,
    /// Notes to the rows.
    pub notes: Vec<String>,
    /// Values where the kernel's output and the arithmetic differ.
    pub disagreements: Vec<Evidence>,
    /// Inputs that were not read, so that numbers are bounds.
    pub gaps: Vec<GapLine>,
}

/// One cgroup on one device, or the machine. Amounts are the domain's, all its devices together, unless
/// the name starts with `wb_`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BudgetRow {
    /// Path of the cgroup (escaped); `None` is the machine.
    pub cgroup: Option<String>,
    /// Name of the container that it is or lives in (escaped).
    pub container: Option<String>,
    /// Disk, or the bdi where it has none; `None` stands for all devices.
    pub device: Option<String>,
    /// Dirty.
    pub dirty_bytes: Option<u64>,
    /// Under writeback.
    pub writeback_bytes: Option<u64>,
    /// Background threshold; `None` where it is a bound.
    pub bg_thresh_bytes: Option<u64>,
    /// Hard threshold; `None` where it is a bound.
    pub thresh_bytes: Option<u64>,
    /// Free-run ceiling; `None` where it is a bound.
    pub freerun_bytes: Option<u64>,
    /// The wb's part of the hard threshold, 1.0 is all; `None` where it is not known.
    pub share: Option<f64>,
    /// Dirty and under writeback, as a part of the hard threshold. Where that is a bound, as a part of its largest
    /// value.
    pub over_ratio: Option<f64>,
    /// Setting and memory that decide the hard threshold; empty where they are not known.
    pub binding: String,
    /// Whether all thresholds are the kernel's to the page.
    pub exact: bool,
    /// The background threshold is at least this.
    pub bg_thresh_bytes_min: Option<u64>,
    /// The background threshold is at most this.
    pub bg_thresh_bytes_max: Option<u64>,
    /// The hard threshold is at least this.
    pub thresh_bytes_min: Option<u64>,
    /// The hard threshold is at most this.
    pub thresh_bytes_max: Option<u64>,
    /// The free-run ceiling is at least this.
    pub freerun_bytes_min: Option<u64>,
    /// The free-run ceiling is at most this.
    pub freerun_bytes_max: Option<u64>,
    /// Dirtyable memory the thresholds are a part of, at least.
    pub available_bytes_min: Option<u64>,
    /// Dirtyable memory the thresholds are a part of, at most.
    pub available_bytes_max: Option<u64>,
    /// Dirty in this wb.
    pub wb_dirty_bytes: Option<u64>,
    /// Under writeback in this wb.
    pub wb_writeback_bytes: Option<u64>,
    /// The wb's share of the hard threshold is at least this.
    pub wb_thresh_bytes_min: Option<u64>,
    /// The wb's share of the hard threshold is at most this.
    pub wb_thresh_bytes_max: Option<u64>,
    /// Bytes that the cgroup can really have dirty.
    pub may_hold_bytes: Option<u64>,
    /// Peculiarities: `below_two_looks`, `below_largest_folio`, `below_stat_error`,
    /// `background_passed_unseen`.
    pub flags: Vec<&'static str>,
    /// Inputs that were not read.
    pub missing: Vec<String>,
    /// Whether the device has a strict limit: its part alone holds its writers, whatever room the domain has.
    #[serde(rename = "strictlimit")]
    pub is_strict: bool,
    /// On a device with a strict limit: writeback of the wb begins at this or more.
    pub wb_bg_thresh_bytes_min: Option<u64>,
    /// On a device with a strict limit: writeback of the wb begins at this or less.
    pub wb_bg_thresh_bytes_max: Option<u64>,
    /// On a device with a strict limit: writers of the wb are slowed from this or more.
    pub wb_freerun_bytes_min: Option<u64>,
    /// On a device with a strict limit: writers of the wb are slowed from this or less.
    pub wb_freerun_bytes_max: Option<u64>,
    /// On a device with a strict limit: dirty and under writeback in this wb, as a part of its share of the threshold.
    pub wb_over_ratio: Option<f64>,
}

impl BudgetRow {
    /// The row with the numbers that hold a writer: on a device with a strict limit those of its part. `None` where the
    /// domain itself holds writers.
    pub fn of_strict_limit(&self) -> Option<BudgetRow> {
        let part = self.strict_part()?;
        let exact = |max: Option<u64>, min: Option<u64>| max.filter(|_| max == min);
        Some(BudgetRow {
            dirty_bytes: self.wb_dirty_bytes,
            writeback_bytes: self.wb_writeback_bytes,
            bg_thresh_bytes: exact(self.wb_bg_thresh_bytes_max, self.wb_bg_thresh_bytes_min),
            bg_thresh_bytes_min: self.wb_bg_thresh_bytes_min,
            bg_thresh_bytes_max: self.wb_bg_thresh_bytes_max,
            freerun_bytes: exact(self.wb_freerun_bytes_max, self.wb_freerun_bytes_min),
            freerun_bytes_min: self.wb_freerun_bytes_min,
            freerun_bytes_max: self.wb_freerun_bytes_max,
            thresh_bytes: exact(Some(part), self.wb_thresh_bytes_min),
            thresh_bytes_min: self.wb_thresh_bytes_min,
            thresh_bytes_max: Some(part),
            over_ratio: self.wb_over_ratio,
            ..self.clone()
        })
    }

    /// The largest part of the threshold that a strict limit gives to the device, if it has such a limit.
    fn strict_part(&self) -> Option<u64> {
        self.wb_thresh_bytes_max.filter(|part| self.is_strict && *part < u64::MAX)
    }

    /// Computes the thresholds of the part, if the device has a strict limit. The background threshold is to the part as
    /// that of the domain is to the whole.
    pub fn divide(&mut self) {
        let Some(part) = self.strict_part() else { return };
        let least = self.wb_thresh_bytes_min.unwrap_or(0);
        let scaled = |part: u64, bg: Option<u64>, whole: Option<u64>| {
            let (bg, whole) = bg.zip(whole).filter(|(_, whole)| *whole > 0)?;
            u64::try_from(u128::from(part) * u128::from(bg) / u128::from(whole)).ok()
        };
        self.wb_bg_thresh_bytes_max = scaled(part, self.bg_thresh_bytes_max, self.thresh_bytes_max);
        self.wb_bg_thresh_bytes_min = scaled(least, self.bg_thresh_bytes_min, self.thresh_bytes_min);
        // The ceiling of free running lies halfway between both.
        let between = |background: Option<u64>, part: u64| background.map(|bg| bg / 2 + part / 2);
        self.wb_freerun_bytes_max = between(self.wb_bg_thresh_bytes_max, part);
        self.wb_freerun_bytes_min = between(self.wb_bg_thresh_bytes_min, least);
        let used = self.wb_dirty_bytes.zip(self.wb_writeback_bytes).map(|(one, other)| one.saturating_add(other));
        self.wb_over_ratio = used.filter(|_| part > 0).map(|used| used as f64 / part as f64);
    }
}

/// Order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The fullest budget.
    #[default]
    Over,
    /// Most dirty and under writeback.
    Dirty,
    /// The smallest hard threshold.
    Thresh,
    /// In order of path.
    Name,
}

/// Selection and order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Every cgroup, also those that never wrote, and every device.
    pub all: bool,
    /// Order of the rows.
    pub sort: Sort,
}

/// Returns the rows of budgets. `window` is the source of the budgets.
pub fn rows(window: &Window, budgets: &Budgets, choice: Choice) -> BudgetReport {
    let mut machine = vec![domain_row(&budgets.global)];
    let mut idle = 0;
    for wb in &budgets.bdis {
        let is_used = [wb.dirty, wb.writeback].iter().any(|bytes| bytes.is_some_and(|bytes| bytes.0 > 0));
        if choice.all || wb.binding.is_some() || wb.strictlimit == Some(true) || (is_used && budgets.cgroups.is_empty())
        {
            machine.push(wb_row(&budgets.global, wb));
        } else {
            idle += 1;
        }
    }
    let mut cgroups: Vec<(&CgroupBudget, BudgetRow)> = Vec::new();
    for budget in &budgets.cgroups {
        if budget.wbs.is_empty() {
            cgroups.push((budget, domain_row(&budget.domain)));
        }
        cgroups.extend(budget.wbs.iter().map(|wb| (budget, wb_row(&budget.domain, wb))));
    }
    let facts = window.facts.as_ref();
    for (budget, row) in &mut cgroups {
        let identity = identify(&budget.path);
        let is_container = identity.kind.is_container() || identity.inside.is_some();
        row.container = is_container.then(|| identity.label(facts));
        row.cgroup = Some(budget.path.to_string());
        row.may_hold_bytes = budget.outlook.may_hold.map(|bytes| bytes.0);
        row.flags = budget.outlook.flags.iter().map(|flag| flag_name(*flag)).collect();
    }
    match choice.sort {
        // Their fill levels are lower bounds. Rows without a number come last.
        Sort::Over => cgroups.sort_by(|(_, a), (_, b)| {
            let over = |row: &BudgetRow| row.wb_over_ratio.or(row.over_ratio).unwrap_or(-1.0);
            over(b).total_cmp(&over(a)).then_with(|| thresh_max(a).cmp(&thresh_max(b)))
        }),
        Sort::Dirty => cgroups.sort_by_key(|(budget, _)| Reverse(budget.domain.used())),
        Sort::Thresh => cgroups.sort_by_key(|(_, row)| thresh_max(row)),
        Sort::Name => {}
    }
    let before = cgroups.len();
    if !choice.all {
        // A cgroup without a wb never wrote to a file, and an inner one has the sums of the cgroups below.
        cgroups.retain(|(budget, _)| !budget.wbs.is_empty() || !budget.is_inner && is_dirty(budget));
        cgroups.truncate(ROWS_MAX);
    }
    let hidden = before - cgroups.len() + idle;
    let shown: Vec<BudgetRow> = machine.into_iter().chain(cgroups.into_iter().map(|(_, row)| row)).collect();
    BudgetReport {
        schema: SCHEMA,
        hostname: facts.map(|facts| facts.hostname.to_string()).unwrap_or_default(),
        kernel: facts.map(|facts| Name::from_escaped(&facts.kernel_release).to_string()).unwrap_or_default(),
        scope: scope_name(budgets.scope),
        wb_stat_error_bytes: budgets.wb_stat_error.map(|bytes| bytes.0),
        hidden: u64::try_from(hidden).unwrap_or(u64::MAX),
        notes: notes(budgets),
        disagreements: budgets.disagreements.clone(),
        gaps: gaps(budgets),
        rows: shown,
    }
}

fn is_dirty(budget: &CgroupBudget) -> bool {
    budget.domain.used().is_some_and(|bytes| bytes.0 > 0)
}

fn thresh_max(row: &BudgetRow) -> u64 {
    row.thresh_bytes_max.unwrap_or(u64::MAX)
}

/// The row of a domain on all its devices.
fn domain_row(domain: &DomainBudget) -> BudgetRow {
    let exact = |bound: Option<Bound>| bound.and_then(Bound::exact).map(|bytes| bytes.0);
    let low = |bound: Option<Bound>| bound.map(|bound| bound.low.0);
    let high = |bound: Option<Bound>| bound.map(|bound| bound.high.0);
    BudgetRow {
        dirty_bytes: domain.dirty.map(|bytes| bytes.0),
        writeback_bytes: domain.writeback.map(|bytes| bytes.0),
        bg_thresh_bytes: exact(domain.bg_thresh),
        thresh_bytes: exact(domain.thresh),
        freerun_bytes: exact(domain.freerun),
        over_ratio: domain.over_ratio(),
        binding: domain.binding.as_ref().map(super::Binding::label).unwrap_or_default(),
        exact: domain.is_exact(),
        bg_thresh_bytes_min: low(domain.bg_thresh),
        bg_thresh_bytes_max: high(domain.bg_thresh),
        thresh_bytes_min: low(domain.thresh),
        thresh_bytes_max: high(domain.thresh),
        freerun_bytes_min: low(domain.freerun),
        freerun_bytes_max: high(domain.freerun),
        available_bytes_min: low(domain.available),
        available_bytes_max: high(domain.available),
        missing: domain.missing.iter().map(Gap::to_string).collect(),
        ..BudgetRow::default()
    }
}

/// The row of a domain on one device.
fn wb_row(domain: &DomainBudget, wb: &WbBudget) -> BudgetRow {
    let row = domain_row(domain);
    let binding = match (wb.binding, wb.strictlimit) {
        (Some(bound), Some(true)) => format!("{} strictlimit", bound.name()),
        (Some(bound), _) => bound.name().to_owned(),
        (None, Some(true)) => format!("{} strictlimit", row.binding).trim_start().to_owned(),
        (None, _) => row.binding.clone(),
    };
    let mut row = BudgetRow {
        device: Some(wb.device.as_ref().unwrap_or(&wb.bdi).to_string()),
        is_strict: wb.strictlimit == Some(true),
        share: wb.share_of(domain),
        binding,
        wb_dirty_bytes: wb.dirty.map(|bytes| bytes.0),
        wb_writeback_bytes: wb.writeback.map(|bytes| bytes.0),
        wb_thresh_bytes_min: wb.thresh.map(|bound| bound.low.0),
        wb_thresh_bytes_max: wb.thresh.map(|bound| bound.high.0),
        ..row
    };
    row.divide();
    row
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::PerCgroup => "per_cgroup",
        Scope::NoUnifiedHierarchy => "no_unified_hierarchy",
        Scope::KernelTooOld => "kernel_too_old",
        Scope::Unknown => "unknown",
    }
}

pub(super) fn flag_name(flag: Flag) -> &'static str {
    match flag {
        Flag::BelowTwoLooks => "below_two_looks",
        Flag::BelowLargestFolio => "below_largest_folio",
        Flag::BelowStatError => "below_stat_error",
        Flag::BackgroundPassedUnseen => "background_passed_unseen",
    }
}

fn notes(budgets: &Budgets) -> Vec<String> {
    let mut notes = Vec::new();
    match budgets.scope {
        Scope::PerCgroup => {}
        Scope::NoUnifiedHierarchy => notes.push(
            "No per-cgroup limit of dirty pages exists here: memory and io are not both on the unified hierarchy. \
             Only the limit of the whole machine holds, and a cgroup may fill its memory with dirty pages."
                .to_owned(),
        ),
        Scope::KernelTooOld => notes.push(
            "No per-cgroup limit of dirty pages exists here: this kernel is older than 4.2. Only the limit of the \
             whole machine holds."
                .to_owned(),
        ),
        Scope::Unknown => {
            notes.push("The cgroup setup was not read: whether limits of cgroups hold is not known.".to_owned())
        }
    }
    let below = |budget: &&CgroupBudget| budget.outlook.flags.contains(&Flag::BelowStatError);
    let small = budgets.cgroups.iter().filter(below).count();
    if let Some(error) = budgets.wb_stat_error.filter(|_| small > 0) {
        notes.push(format!(
            "{} a limit below the error of the kernel's counters ({} per device, by possible CPUs): such a limit \
             slows its writers by ticks and stops none of them.",
            human::plural(small as u64, "cgroup has", "cgroups have"),
            human::bytes(error.0 as f64),
        ));
    }
    if !budgets.dying.is_empty() {
        let dirty = budgets.dying.iter().filter_map(|wb| wb.dirty).fold(0u64, |sum, bytes| sum.saturating_add(bytes.0));
        notes.push(format!(
            "{} of cgroups that are gone: {} dirty, held by no limit but the machine's.",
            human::plural(budgets.dying.len() as u64, "wb is left", "wbs are left"),
            human::bytes(dirty as f64),
        ));
    }
    notes
}

/// Everything that was not read, each source once.
fn gaps(budgets: &Budgets) -> Vec<GapLine> {
    let mut seen: Vec<(Source, GapLine)> = Vec::new();
    let of_shares = budgets.shares_unread.iter().filter(|_| budgets.scope != Scope::KernelTooOld);
    let of_cgroups = budgets.cgroups.iter().flat_map(|budget| &budget.domain.missing);
    for gap in budgets.global.missing.iter().chain(of_shares).chain(of_cgroups) {
        if !seen.iter().any(|(source, _)| *source == gap.source) {
            seen.push((gap.source, GapLine::from(gap)));
        }
    }
    seen.into_iter().map(|(_, line)| line).collect()
}
