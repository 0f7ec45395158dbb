// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves of inodes between cgroups, and writes to inodes of other cgroups, as rules see them: added up by device and
//! pair of cgroups, from the events of a tracer. Files show only the kworkers that move them, and removed cgroups that
//! linger.

use super::derived::Derived;
use super::writer::{self, Period};
use floodline_kernel::{Behaviour, Switching, change};
use floodline_record::id::{Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::record::What;
use floodline_record::sample::CgroupRow;
use floodline_record::units::Nanos;
use floodline_record::window::{Span, Window};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Source of moves, as evidence names it.
pub const SWITCHES: &str = "trace of inode_switch_wbs";
/// Source of foreign dirtying.
pub const FOREIGN: &str = "trace of track_foreign_dirty";
/// Source of flushes requested for another cgroup.
pub const FLUSHES: &str = "trace of flush_foreign";

/// Two cgroups on one device, by inode number: from and to of a move, or owner of the inode and of the page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Backing device.
    pub bdi: Name,
    /// Cgroup that the inodes left, or that owns the inode.
    pub one: u64,
    /// Cgroup that the inodes went to, or that owns the pages.
    pub other: u64,
}

impl Pair {
    /// The reverse pair.
    pub fn reversed(&self) -> Pair {
        Pair { bdi: self.bdi.clone(), one: self.other, other: self.one }
    }
}

/// Moves from one cgroup to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Inodes moved.
    pub switched: u64,
    /// From the first to the last of them.
    pub first_at: Nanos,
    /// See there.
    pub last_at: Nanos,
}

/// Writing by one cgroup to inodes of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    /// Folios dirtied in this way.
    pub folios: u64,
    /// The last such inode.
    pub last_ino: u64,
}

/// Way in which a kernel switches inodes, by its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// No release of dying wbs: nothing is switched when a cgroup is removed (before 5.14).
    None,
    /// Linear: moved inodes are appended (6.18, and stable releases with its fix).
    Linear,
    /// Contended, and quadratic with timestamp-dirty inodes.
    Quadratic,
    /// The version is not known.
    Unknown,
}

impl Cost {
    /// Of a kernel by its version and its stable release. Vendors carry backports in both directions.
    pub fn of(behaviour: Option<Behaviour>) -> Cost {
        let Some(behaviour) = behaviour else { return Cost::Unknown };
        match behaviour.switching {
            Switching { releases_dying: false, .. } => Cost::None,
            Switching { sorts_by_age: true, .. } => Cost::Quadratic,
            _ => Cost::Linear,
        }
    }

    /// What evidence has beside the version.
    pub fn in_words(self) -> &'static str {
        match self {
            Cost::None => "does not switch",
            Cost::Linear => "has the fixes of 6.18",
            Cost::Quadratic => "without the fixes of 6.18",
            Cost::Unknown => "not known whether it has the fixes of 6.18",
        }
    }
}

/// Releases that have the fix, newest first.
pub fn fixed_kernels() -> String {
    let Some(fix) = change("switch-without-sorting") else { return "a newer one".to_owned() };
    let stable = fix.backports.iter().rev().map(|backport| format!("{}.{}", backport.series, backport.patch));
    let hashes: Vec<&str> = fix.commits.iter().filter_map(|commit| commit.hash).collect();
    let releases: Vec<String> = std::iter::once(fix.since.to_string()).chain(stable).collect();
    format!("{} or later (commits {})", releases.join(", "), hashes.join(" and "))
}

/// Kworkers of the workqueue that moves inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Workers {
    /// CPU seconds that they used; `None` where no CPU times of processes were read twice.
    pub cpu_s: Option<f64>,
    /// Number of kworkers seen.
    pub seen: u64,
}

/// The workqueue's name, as the kernel appends it to a kworker's.
const WORKQUEUE: &[u8] = b"inode_switch_wbs";

/// CPU use of the kworkers that move inodes.
pub fn workers(derived: &Derived<'_>) -> Workers {
    let is_worker = |id: &EntityId| match derived.window.entities.get(id) {
        Some(Entity::Process { comm, .. }) => {
            let comm = comm.as_bytes();
            comm.starts_with(b"kworker") && comm.windows(WORKQUEUE.len()).any(|part| part == WORKQUEUE)
        }
        _ => false,
    };
    let seconds = |time: Option<Nanos>| time.unwrap_or_default().as_secs_f64();
    let processes = &derived.window.processes;
    // A kworker that starts in a storm has used most of its time before the first sample with it.
    let counted = |(id, span)| writer::counted(derived.window, Period::Window, id, span);
    let its = processes.iter().filter(|(id, _)| is_worker(id)).map(|(id, span)| counted((*id, span)));
    let workers: Vec<f64> = its.map(|row| row.map_or(0.0, |row| seconds(row.utime) + seconds(row.stime))).collect();
    let was_read = processes.values().any(|span| span.growth.stime.is_some());
    Workers { cpu_s: (was_read && derived.has_rates).then(|| workers.iter().sum()), seen: workers.len() as u64 }
}

/// Removed cgroups that the kernel has not freed yet.
pub fn dying(window: &Window) -> Option<u64> {
    let dying = |span: &Span<CgroupRow>| {
        let memory = span.last.nr_dying_subsys_memory.map(|count| count.0);
        memory.or(span.last.nr_dying_descendants.map(|count| count.0))
    };
    window.cgroups.values().filter_map(dying).max()
}

/// Whether moves were traced.
pub fn is_traced(window: &Window) -> bool {
    window.traced.contains("switches")
}

/// All moves by pair, most first; `None` when they were not traced.
pub fn moves(window: &Window) -> Option<Vec<(Pair, Moves)>> {
    let mut sums: BTreeMap<Pair, Moves> = BTreeMap::new();
    for event in &window.events {
        let What::InodesSwitched(event) = &event.what else { continue };
        let pair = Pair { bdi: event.bdi.clone(), one: event.old_cgroup_ino, other: event.new_cgroup_ino };
        let first = Moves { first_at: event.first_at, ..Moves::default() };
        let sum = sums.entry(pair).or_insert(first);
        sum.switched = sum.switched.saturating_add(event.switched);
        sum.first_at = sum.first_at.min(event.first_at);
        sum.last_at = sum.last_at.max(event.last_at);
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, moves)| moves.switched > 0).collect();
    sums.sort_by_key(|(_, moves)| Reverse(moves.switched));
    is_traced(window).then_some(sums)
}

/// All foreign writing by pair, most first.
pub fn foreign(window: &Window) -> Vec<(Pair, Foreign)> {
    let mut sums: BTreeMap<Pair, Foreign> = BTreeMap::new();
    for event in &window.events {
        let What::ForeignDirtied(event) = &event.what else { continue };
        let pair = Pair { bdi: event.bdi.clone(), one: event.wb_cgroup_ino, other: event.page_cgroup_ino };
        let sum = sums.entry(pair).or_default();
        sum.folios = sum.folios.saturating_add(event.folios);
        sum.last_ino = event.last_ino;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, foreign)| Reverse(foreign.folios));
    sums
}

/// Number of flushes requested from other cgroups' flushers because this cgroup was throttled.
pub fn flushes_for(window: &Window, cgroup_ino: u64) -> u64 {
    let flushes = |what: &What| match what {
        What::ForeignFlushed(event) if event.cgroup_ino == cgroup_ino => event.flushes,
        _ => 0,
    };
    window.events.iter().map(|event| flushes(&event.what)).sum()
}

/// The last removal of a cgroup before a moment: the trigger of a move at that moment.
pub fn removed_before(window: &Window, at: Nanos) -> Option<(Nanos, &Name)> {
    let removed = |event: &'_ floodline_record::record::Event| event.at <= at;
    window.events.iter().filter(|event| removed(event)).fold(None, |last, event| match &event.what {
        What::CgroupRemoved(removed) => Some((event.at, &removed.path)),
        _ => last,
    })
}
