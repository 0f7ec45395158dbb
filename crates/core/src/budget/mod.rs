// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets: how much dirty page cache the machine and every cgroup may have by the kernel's own
//! arithmetic, how much they have, and which setting binds. For one moment: the last readings of a
//! window. Where an input was not read the result is a stated bound and the input is named; nothing
//! here is estimated.

mod domain;
mod headroom;
mod inputs;
#[cfg(test)]
mod tests;

use crate::gap::Gap;
use crate::id::EntityId;
use crate::kernel::DirtyTunables;
use crate::name::Name;
use crate::report::Evidence;
use crate::units::Bytes;
use crate::window::Window;
use inputs::Inputs;

/// Budgets of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Budgets {
    /// Bytes per page.
    pub page_size: u64,
    /// The size tunables; `None` when they were not read.
    pub tunables: Option<DirtyTunables>,
    /// Whether cgroups have budgets of their own here.
    pub scope: Scope,
    /// How wrong the kernel takes a wb's counters to be (`wb_stat_error`): a wb with no more than this is
    /// never stopped. `None` when the number of possible CPUs was not read.
    pub wb_stat_error: Option<Bytes>,
    /// The machine-wide domain.
    pub global: DomainBudget,
    /// Every cgroup with a memory controller of its own, in order of path.
    pub cgroups: Vec<CgroupBudget>,
    /// What the kernel prints and the arithmetic does not: something is not understood.
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
    /// It was not read how cgroups are set up.
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
    /// Free-run ceiling: nobody is slowed below it.
    pub freerun: Option<Bound>,
    /// Hard threshold by the arithmetic, where `thresh` is what the kernel itself prints.
    pub computed_thresh: Option<Bound>,
    /// What decides the hard threshold.
    pub binding: Option<Binding>,
    /// Inputs that were not read. Not empty: the numbers are bounds, or rest on an assumption.
    pub missing: Vec<Gap>,
}

impl DomainBudget {
    /// Whether every threshold is the kernel's to the page.
    pub fn is_exact(&self) -> bool {
        self.missing.is_empty()
            && [self.bg_thresh, self.thresh, self.freerun].iter().all(|bound| bound.is_some_and(Bound::is_exact))
    }

    /// What throttling counts: dirty and under writeback.
    pub fn used(&self) -> Option<Bytes> {
        Some(Bytes(self.dirty?.0.saturating_add(self.writeback?.0)))
    }

    /// How full the budget is: `used` of the hard threshold, 1.0 is at the threshold. Where the threshold
    /// is a bound, of the largest it can be: at least so full.
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
}

/// The least room below a limit, over a cgroup and its ancestors.
#[derive(Clone, Debug, PartialEq)]
pub struct Headroom {
    /// How much.
    pub bytes: Bound,
    /// Whose limit it is.
    pub of: EntityId,
    /// Its path.
    pub path: Name,
    /// Which limit.
    pub limit: LimitKind,
}

/// Which of the two limits.
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

/// What decides a hard threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The tunable.
    pub setting: Setting,
    /// What bounds the memory it is a part of.
    pub memory: MemoryBound,
    /// The global threshold is no larger than the cgroup's own: it stops writers first.
    pub global_is_less: bool,
}

/// The tunable that decides a hard threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `dirty_bytes`.
    Bytes {
        /// Its value.
        bytes: Bytes,
        /// For a memcg domain: units of 1/page size (1/4096) it was rounded up to, at least and at most.
        units: Option<(u64, u64)>,
    },
    /// `dirty_ratio`.
    Ratio {
        /// Its value.
        percent: u64,
    },
}

/// What bounds the memory a threshold is a part of.
#[derive(Clone, Debug, PartialEq)]
pub enum MemoryBound {
    /// The whole machine: its free and file pages.
    Machine,
    /// The cgroup's file pages and the room below a limit.
    Headroom {
        /// Whose limit it is.
        of: EntityId,
        /// Which limit.
        limit: LimitKind,
    },
    /// The cgroup's file pages alone: no room is left below a limit.
    FilePages {
        /// Whose limit it is.
        of: EntityId,
        /// Which limit.
        limit: LimitKind,
    },
    /// The clean memory of the machine: the limits leave more room than that.
    CleanElsewhere,
    /// Not known which of them.
    Unknown,
}

impl Binding {
    /// In a few words, for a table: the tunable, then what bounds the memory.
    pub fn label(&self) -> String {
        let setting = match self.setting {
            Setting::Bytes { .. } => "dirty_bytes",
            Setting::Ratio { .. } => "dirty_ratio",
        };
        let memory = match &self.memory {
            MemoryBound::Machine => return setting.to_owned(),
            _ if self.global_is_less => return format!("global {setting}"),
            MemoryBound::Headroom { limit, .. } => limit.name(),
            MemoryBound::FilePages { .. } => "file pages",
            MemoryBound::CleanElsewhere => "clean memory",
            MemoryBound::Unknown => "unknown",
        };
        format!("{setting}, {memory}")
    }
}

/// A number of bytes that is known, or known to lie between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// At least this.
    pub low: Bytes,
    /// At most this.
    pub high: Bytes,
}

impl Bound {
    /// A known number.
    pub fn exactly(bytes: Bytes) -> Bound {
        Bound { low: bytes, high: bytes }
    }

    /// Whether it is known.
    pub fn is_exact(self) -> bool {
        self.low == self.high
    }

    /// The number, where it is known.
    pub fn exact(self) -> Option<Bytes> {
        self.is_exact().then_some(self.low)
    }
}

/// The budgets of the machine and of every cgroup, at the last readings of a window.
pub fn budgets(window: &Window) -> Budgets {
    let inputs = Inputs::of(window);
    let (global, disagreements) = domain::global(&inputs);
    let mut cgroups: Vec<CgroupBudget> = match inputs.scope {
        Scope::PerCgroup | Scope::Unknown => {
            inputs.paths.iter().filter_map(|(path, &id)| domain::cgroup(&inputs, &global, path, id)).collect()
        }
        Scope::NoUnifiedHierarchy | Scope::KernelTooOld => Vec::new(),
    };
    cgroups.sort_by(|a, b| a.path.cmp(&b.path));
    Budgets {
        page_size: inputs.page_size,
        tunables: inputs.tunables,
        scope: inputs.scope,
        wb_stat_error: inputs.wb_stat_error,
        global,
        cgroups,
        disagreements,
    }
}
