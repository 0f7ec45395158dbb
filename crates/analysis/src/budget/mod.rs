// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets: dirty page cache allowed to the machine and to every cgroup by the kernel's own arithmetic, the amount in
//! use, and the setting that binds. Covers one moment: the last readings of a window. Where an input was not read, the
//! result is a stated bound and the input is named. Nothing here is estimated.

mod agreed;
mod as_if;
mod as_if_conditions;
mod as_if_strict;
#[cfg(test)]
mod as_if_tests;
mod as_if_words;
mod available;
mod domain;
mod exact;
#[cfg(test)]
mod golden_tests;
mod headroom;
mod inputs;
#[cfg(test)]
mod judge_tests;
mod outlook;
mod rows;
#[cfg(test)]
mod tests;
mod throttled;
mod wb;

use crate::report::Evidence;
pub use agreed::{Agreed, agreed};
pub use as_if::{AS_IF_SCHEMA, AsIf, AsIfReport, AsIfRow, Assumed, NotAsIf, as_if, assume};
pub use as_if_strict::{StrictDevice, strict_note};
pub use available::free_pages;
pub use exact::{Exactness, Judge, Miss};
use floodline_kernel::DirtyTunables;
use floodline_record::gap::Gap;
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::units::{Bytes, BytesPerSecond};
use floodline_record::window::Window;
use inputs::Inputs;
pub use rows::{BudgetReport, BudgetRow, Choice, SCHEMA, Sort, rows};
use std::collections::BTreeSet;
pub use throttled::Throttles;

/// Inode number of the root cgroup's directory.
pub(crate) const ROOT_INO: u64 = 1;

/// Budgets of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Budgets {
    /// Bytes per page.
    pub page_size: u64,
    /// The size tunables; `None` when they were not read.
    pub tunables: Option<DirtyTunables>,
    /// Whether cgroups have budgets of their own on this machine.
    pub scope: Scope,
    /// Error that the kernel assumes in a wb's counters (`wb_stat_error`): a wb with no more than this is never
    /// stopped. `None` when the number of possible CPUs was not read.
    pub wb_stat_error: Option<Bytes>,
    /// The machine-wide domain.
    pub global: DomainBudget,
    /// Shares of the devices in the machine-wide domain.
    pub bdis: Vec<WbBudget>,
    /// Every cgroup with a memory controller of its own, in order of path.
    pub cgroups: Vec<CgroupBudget>,
    /// Wbs whose cgroup was removed: only the global threshold limits their pages.
    pub dying: Vec<WbBudget>,
    /// Reason why shares of wbs are bounds; `None` where the kernel prints them.
    pub shares_unread: Option<Gap>,
    /// Values where the kernel's output and the arithmetic differ: the model is wrong there.
    pub disagreements: Vec<Evidence>,
}

/// Whether cgroups have budgets of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every memcg has a dirty domain.
    PerCgroup,
    /// Memory and io are not both on the unified hierarchy (commit 9badce000e2c, 4.3): no per-cgroup
    /// limit exists, only the global one.
    NoUnifiedHierarchy,
    /// The kernel is older than 4.2: no per-cgroup limit exists.
    KernelTooOld,
    /// The cgroup set-up was not read.
    Unknown,
}

impl Scope {
    /// Whether cgroups have budgets of their own, as far as is known.
    pub fn is_per_cgroup(self) -> bool {
        self == Scope::PerCgroup
    }
}

/// Dirty pages of a domain and its thresholds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DomainBudget {
    /// Dirty.
    pub dirty: Option<Bytes>,
    /// Under writeback.
    pub writeback: Option<Bytes>,
    /// Dirtyable memory the thresholds are a part of.
    pub available: Option<Bound>,
    /// Background threshold: the flusher starts above it (dirty only).
    pub bg_thresh: Option<Bound>,
    /// Hard threshold: dirty and writeback together are held below it.
    pub thresh: Option<Bound>,
    /// Free-run ceiling: no task is slowed below it.
    pub freerun: Option<Bound>,
    /// Hard threshold by the arithmetic, where `thresh` is the kernel's own output.
    pub computed_thresh: Option<Bound>,
    /// Setting and memory that decide the hard threshold.
    pub binding: Option<Binding>,
    /// Inputs that were not read. If not empty, the numbers are bounds or rest on an assumption.
    pub missing: Vec<Gap>,
}

impl DomainBudget {
    /// Whether every threshold is the kernel's to the page.
    pub fn is_exact(&self) -> bool {
        self.missing.is_empty()
            && [self.bg_thresh, self.thresh, self.freerun].iter().all(|bound| bound.is_some_and(Bound::is_exact))
    }

    /// Bytes that throttling counts: dirty and under writeback.
    pub fn used(&self) -> Option<Bytes> {
        Some(Bytes(self.dirty?.0.saturating_add(self.writeback?.0)))
    }

    /// Fill level of the budget: `used` as a part of the hard threshold, 1.0 is at the threshold. Where the threshold
    /// is a bound, its largest value is used, so the result is a lower bound.
    pub fn over_ratio(&self) -> Option<f64> {
        let (used, thresh) = (self.used()?, self.thresh?.high);
        match (used.0, thresh.0) {
            (0, _) => Some(0.0),
            (_, 0) => None,
            (used, thresh) => Some(used as f64 / thresh as f64),
        }
    }
}

/// One cgroup's budget.
#[derive(Clone, Debug, PartialEq)]
pub struct CgroupBudget {
    /// The cgroup.
    pub cgroup: EntityId,
    /// Its path.
    pub path: Name,
    /// Its memcg domain.
    pub domain: DomainBudget,
    /// Memory it may still charge before it or an ancestor is at a limit; `None` without any limit.
    pub headroom: Option<Headroom>,
    /// Whether other cgroups with budgets are below it. Its dirty pages are then the sum of theirs.
    pub is_inner: bool,
    /// Its wbs, one per device.
    pub wbs: Vec<WbBudget>,
    /// Possible future budgets.
    pub outlook: Outlook,
}

/// One wb: a device's part of a domain.
#[derive(Clone, Debug, PartialEq)]
pub struct WbBudget {
    /// The wb, where the kernel prints wbs.
    pub wb: Option<EntityId>,
    /// Name of its bdi.
    pub bdi: Name,
    /// Kernel name of the disk, where it has one.
    pub device: Option<Name>,
    /// Dirty.
    pub dirty: Option<Bytes>,
    /// Under writeback.
    pub writeback: Option<Bytes>,
    /// Its share of the hard threshold: the smaller of the cgroup's and the global one.
    pub thresh: Option<Bound>,
    /// Whether the share is the kernel's own number. If not, it is a bound.
    pub is_printed: bool,
    /// Whether the kernel counts its pages exactly, at a cost that grows with possible CPUs.
    pub is_counted_exactly: Option<bool>,
    /// Whether the device is held to its own share even below the global threshold.
    pub strictlimit: Option<bool>,
    /// The setting of the device that decides the share; `None` if completions decide it, or if it is not known.
    pub binding: Option<DeviceBound>,
    /// Write bandwidth as the kernel estimates it.
    pub write_bandwidth: Option<BytesPerSecond>,
}

impl WbBudget {
    /// Part of a domain's threshold that the wb has, where both are known: 1.0 is all, and the most. The two are read one
    /// after the other, and the kernel's own share may be of a threshold that was a little larger.
    pub fn share_of(&self, domain: &DomainBudget) -> Option<f64> {
        let (own, all) = (self.thresh?.exact()?, domain.thresh?.exact()?);
        (all.0 > 0).then(|| (own.0 as f64 / all.0 as f64).min(1.0))
    }
}

/// The setting of a device that decides a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceBound {
    /// `max_ratio`, or `max_bytes`, which the kernel keeps as a ratio.
    MaxRatio {
        /// Parts per million.
        ppm: u64,
    },
    /// `min_ratio`, or `min_bytes`.
    MinRatio {
        /// Parts per million.
        ppm: u64,
    },
}

impl DeviceBound {
    /// Name of the file.
    pub fn name(self) -> &'static str {
        match self {
            DeviceBound::MaxRatio { .. } => "max_ratio",
            DeviceBound::MinRatio { .. } => "min_ratio",
        }
    }
}

/// Possible future budgets of a cgroup.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlook {
    /// Hard threshold with its page cache grown to the limit; `None` without a limit.
    pub grown: Option<Bound>,
    /// Hard threshold with no room left below the limit.
    pub without_room: Option<Bound>,
    /// Bytes it can really have dirty: tasks are never stopped below `wb_stat_error` per device.
    pub may_hold: Option<Bytes>,
    /// Peculiarities of the budget.
    pub flags: Vec<Flag>,
}

/// Peculiarities of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// Smaller than the bytes that two tasks dirty before their first check.
    BelowTwoLooks,
    /// Smaller than one folio of 2 MiB.
    BelowLargestFolio,
    /// Smaller than the error of the counters: it slows tasks by ticks and never stops one.
    BelowStatError,
    /// The gap between the background threshold and the free-run ceiling is smaller than the bytes dirtied between two
    /// checks of the flusher: writeback starts with the first throttled task.
    BackgroundPassedUnseen,
}

/// The least room below a limit, over a cgroup and its ancestors.
#[derive(Clone, Debug, PartialEq)]
pub struct Headroom {
    /// Room left, bytes.
    pub bytes: Bound,
    /// Cgroup that has the limit.
    pub of: EntityId,
    /// Its path.
    pub path: Name,
    /// The kind of limit.
    pub limit: LimitKind,
}

/// Kind of a memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// `memory.max`.
    Max,
    /// `memory.high`.
    High,
}

impl LimitKind {
    /// Name of the file.
    pub fn name(self) -> &'static str {
        match self {
            LimitKind::Max => "memory.max",
            LimitKind::High => "memory.high",
        }
    }
}

/// Setting and memory that decide a hard threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The tunable.
    pub setting: Setting,
    /// Bound of the memory that the threshold is a part of.
    pub memory: MemoryBound,
    /// Whether the global threshold is no larger than the cgroup's own, and therefore stops writers first.
    pub global_is_less: bool,
}

/// The tunable that decides a hard threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `dirty_bytes`.
    Bytes {
        /// Its value.
        bytes: Bytes,
        /// For a memcg domain: units of 1/page size (1/4096) it was rounded up to, smallest and largest possible.
        units: Option<(u64, u64)>,
    },
    /// `dirty_ratio`.
    Ratio {
        /// Its value.
        percent: u64,
    },
}

/// Bound of the memory that a threshold is a part of.
#[derive(Clone, Debug, PartialEq)]
pub enum MemoryBound {
    /// The whole machine: its free and file pages.
    Machine,
    /// The cgroup's file pages and the room below a limit.
    Headroom {
        /// Cgroup that has the limit.
        of: EntityId,
        /// The kind of limit.
        limit: LimitKind,
    },
    /// The cgroup's file pages alone: no room is left below a limit.
    FilePages {
        /// Cgroup that has the limit.
        of: EntityId,
        /// The kind of limit.
        limit: LimitKind,
    },
    /// The clean memory of the machine, which is less than the room that the limits leave.
    CleanElsewhere,
    /// It is not known which of these applies.
    Unknown,
}

impl Binding {
    /// Short label for a table: the tunable, then the bound of the memory.
    pub fn label(&self) -> String {
        let setting = match self.setting {
            Setting::Bytes { .. } => "dirty_bytes",
            Setting::Ratio { .. } => "dirty_ratio",
        };
        let memory = match &self.memory {
            _ if self.global_is_less => return format!("global {setting}"),
            MemoryBound::Machine | MemoryBound::Unknown => return setting.to_owned(),
            MemoryBound::Headroom { limit, .. } => limit.name(),
            MemoryBound::FilePages { .. } => "file pages",
            MemoryBound::CleanElsewhere => "clean memory",
        };
        format!("{setting}, {memory}")
    }
}

/// A number of bytes: known, or known to lie between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bound {
    /// Smallest possible value.
    pub low: Bytes,
    /// Largest possible value.
    pub high: Bytes,
}

impl Bound {
    /// A known number.
    pub fn exactly(bytes: Bytes) -> Bound {
        Bound { low: bytes, high: bytes }
    }

    /// Whether the number is known.
    pub fn is_exact(self) -> bool {
        self.low == self.high
    }

    /// The number, where it is known.
    pub fn exact(self) -> Option<Bytes> {
        self.is_exact().then_some(self.low)
    }
}

/// Returns the budgets of the machine and of every cgroup, at the last readings of a window.
pub fn budgets(window: &Window) -> Budgets {
    budgets_of(&Inputs::of(window))
}

/// Returns the budget of the machine, equal to that in [`budgets`]. Needs no reading of a cgroup.
pub fn global(window: &Window) -> DomainBudget {
    domain::global(&Inputs::of_machine(window)).0
}

fn budgets_of(inputs: &Inputs) -> Budgets {
    let window = inputs.window;
    let (global, mut disagreements) = domain::global(inputs);
    let (mut printed, mut bdis) = (wb::printed(inputs), wb::PrintedBdis::default());
    // Wbs refer to cgroups by inode number, which a copy of a cgroup tree lacks.
    let numbered = window.entities.values().any(|entity| matches!(entity, Entity::Cgroup { ino: Some(_), .. }));
    let are_printed = numbered && !printed.is_empty();
    // The root's wbs cover the rest of the machine.
    printed.remove(&ROOT_INO);
    let mut cgroups = Vec::with_capacity(inputs.paths.len());
    let mut above = headroom::Above::default();
    if matches!(inputs.scope, Scope::PerCgroup | Scope::Unknown) {
        for (path, &id) in &inputs.paths {
            let ino = match window.entities.get(&id) {
                Some(Entity::Cgroup { ino: Some(ino), .. }) => printed.remove(ino),
                _ => None,
            };
            let Some(mut budget) = domain::cgroup(inputs, &global, &mut above, path, id) else { continue };
            if let Some(wbs) = ino {
                budget.wbs = wb::of_printed(inputs, &mut bdis, &wbs, Some(&budget.domain));
            }
            cgroups.push(budget);
        }
    }
    let paths: Vec<Name> = cgroups.iter().map(|budget| budget.path.clone()).collect();
    let inner = inner_paths(&paths);
    let mut devices = wb::WrittenDevices::default();
    for budget in &mut cgroups {
        budget.is_inner = inner.contains(budget.path.as_bytes());
        // An inner cgroup has no processes: its io.stat is the sum of the cgroups below.
        if !are_printed && !budget.is_inner {
            budget.wbs = wb::of_written_devices(inputs, &mut devices, budget.cgroup, &budget.domain, &global);
        }
    }
    for budget in &mut cgroups {
        budget.outlook = outlook::outlook(inputs, budget, |pages| domain::thresh_at(inputs, &global, pages));
        disagreements.extend(domain::disagreement(budget));
    }
    // A wb is dying when its cgroup is not among those read.
    let dying = printed.values().filter(|_| are_printed);
    let dying = dying.flat_map(|wbs| wb::of_printed(inputs, &mut bdis, wbs, None)).collect();
    Budgets {
        page_size: inputs.page_size,
        tunables: inputs.tunables,
        scope: inputs.scope,
        wb_stat_error: inputs.wb_stat_error,
        bdis: wb::of_bdis(inputs, &global),
        shares_unread: (!are_printed).then(|| wb::unread(inputs, !printed.is_empty())),
        global,
        cgroups,
        dying,
        disagreements,
    }
}

/// Paths that are ancestors of these. Stops climbing at a path already visited, so that cgroups nested thousands deep
/// cost no more than siblings.
fn inner_paths(paths: &[Name]) -> BTreeSet<&[u8]> {
    let mut inner = BTreeSet::new();
    for path in paths {
        let mut at = crate::diagnose::cgroup::parent(path.as_bytes());
        while let Some(above) = at.filter(|above| inner.insert(*above)) {
            at = crate::diagnose::cgroup::parent(above);
        }
    }
    inner
}
