// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cgroups: limits, charged pages, and the dirty domain of each memcg. Counters are hierarchical, as in
//! memory.stat. Mirrors the parts of mm/memcontrol.c that mm/page-writeback.c uses.

use crate::arena::{BdiId, CgId, WbId};
use crate::domain::KnownLimits;
use crate::wb::Domain;
use crate::world::World;
use floodline_kernel::{ForeignDirty, MemcgStats};

/// Counts of a memcg, its descendants included; pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charged {
    /// Page cache, except that of tmpfs.
    pub(crate) file: u64,
    /// Part of it on the active list.
    pub(crate) active: u64,
    /// Pages of tmpfs.
    pub(crate) shmem: u64,
    pub(crate) dirty: u64,
    pub(crate) writeback: u64,
    pub(crate) anon: u64,
    pub(crate) kernel: u64,
}

/// Time in which tasks waited for I/O, as PSI counts it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pressure {
    waiting: u64,
    running: u64,
    since: u64,
    pub(crate) some: u64,
    pub(crate) full: u64,
}

impl Pressure {
    /// Brings the totals up to a moment.
    #[inline]
    pub(crate) fn account(&mut self, now: u64) {
        let passed = now.saturating_sub(self.since);
        if self.waiting > 0 {
            self.some += passed;
            if self.running == 0 {
                self.full += passed;
            }
        }
        self.since = now;
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }
}

/// Pages by the memcg that they are charged to, in order of appearance. Mostly there is only one memcg; only others
/// need memory.
#[derive(Debug, Default)]
pub(crate) struct ByOwner {
    first: Option<(CgId, u64)>,
    others: Vec<(CgId, u64)>,
}

impl ByOwner {
    pub(crate) fn add(&mut self, owner: CgId, pages: u64) {
        match self.others.last_mut().or(self.first.as_mut()) {
            Some((last, sum)) if *last == owner => *sum += pages,
            Some(_) => self.others.push((owner, pages)),
            None => self.first = Some((owner, pages)),
        }
    }
}

impl IntoIterator for ByOwner {
    type Item = (CgId, u64);
    type IntoIter = std::iter::Chain<std::option::IntoIter<(CgId, u64)>, std::vec::IntoIter<(CgId, u64)>>;
    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

/// A cgroup.
#[derive(Debug)]
pub(crate) struct Cgroup {
    /// Path below the root, with a leading slash.
    pub(crate) path: String,
    pub(crate) ino: u64,
    pub(crate) parent: Option<CgId>,
    /// The memcg to which this cgroup's processes are charged.
    pub(crate) memcg: CgId,
    pub(crate) has_controllers: bool,
    pub(crate) gives_controllers: bool,
    /// Limits in pages; `u64::MAX` is none.
    pub(crate) max: u64,
    pub(crate) high: u64,
    /// Pages that reclaim leaves alone: always, and as long as there are others.
    pub(crate) min: u64,
    pub(crate) low: u64,
    pub(crate) charged: Charged,
    /// The counts as throttling reads them on kernels that refresh those only every 2 s.
    pub(crate) stale: Charged,
    pub(crate) domain: Domain,
    /// Thresholds of its domain when they were last computed.
    pub(crate) domain_limits: KnownLimits,
    pub(crate) foreign: ForeignDirty,
    pub(crate) io: Pressure,
    pub(crate) processes: u64,
    /// Whether a cgroup was ever made below it.
    pub(crate) has_children: bool,
    /// Its wbs in the order of their bdis, as long as it is alive.
    pub(crate) wbs: Vec<(BdiId, WbId)>,
    pub(crate) is_dead: bool,
    /// Delay between the exit of its last process and its removal.
    pub(crate) remove_after: Option<u64>,
    pub(crate) pgfault: u64,
    pub(crate) events_max: u64,
    pub(crate) events_high: u64,
}

impl World {
    /// The cgroup and its ancestors, the root last.
    pub(crate) fn ancestors(&self, cgroup: CgId) -> impl Iterator<Item = CgId> + '_ {
        std::iter::successors(Some(cgroup), |at| self.cgroups[*at].parent)
    }

    /// Changes the counts of a cgroup and all above it.
    pub(crate) fn charge(&mut self, cgroup: CgId, mut change: impl FnMut(&mut Charged)) {
        let mut at = Some(cgroup);
        while let Some(id) = at {
            let Cgroup { charged, parent, .. } = &mut self.cgroups[id];
            change(charged);
            at = *parent;
        }
    }

    /// Least room below a limit, from the cgroup to the root, pages.
    pub(crate) fn headroom(&self, cgroup: CgId) -> u64 {
        let room = |id: CgId| {
            let cgroup = &self.cgroups[id];
            match cgroup.max.min(cgroup.high) {
                u64::MAX => u64::MAX,
                limit => limit.saturating_sub(cgroup.charged.usage()),
            }
        };
        self.ancestors(cgroup).map(room).min().unwrap_or(u64::MAX)
    }

    /// Counts of a memcg as throttling and the flusher read them.
    pub(crate) fn wb_stats(&self, memcg: CgId) -> Charged {
        match self.behaviour.arithmetic.memcg_stats {
            MemcgStats::RateLimited => self.cgroups[memcg].stale,
            MemcgStats::Exact | MemcgStats::Flushed => self.cgroups[memcg].charged,
        }
    }

    /// The periodic flush of memcg statistics, every 2 s.
    pub(crate) fn flush_memcg_stats(&mut self) {
        for id in self.cgroups.ids() {
            let cgroup = &mut self.cgroups[id];
            cgroup.stale = cgroup.charged;
        }
    }

    /// Counts a process of a cgroup that goes to sleep for I/O, or wakes up from it.
    pub(crate) fn count_iowait(&mut self, cgroup: CgId, is_asleep: bool) {
        let now = self.now;
        let mut at = Some(cgroup);
        while let Some(id) = at {
            let Cgroup { io, parent, .. } = &mut self.cgroups[id];
            io.account(now);
            io.waiting = if is_asleep { io.waiting + 1 } else { io.waiting.saturating_sub(1) };
            at = *parent;
        }
        self.memory.account_cpus(now, self.cpus);
        let waiting = self.cgroups[CgId::ROOT].io.waiting;
        self.memory.waiting = waiting;
    }

    /// Counts a process of a cgroup that starts or stops using a CPU.
    pub(crate) fn count_running(&mut self, cgroup: CgId, is_running: bool) {
        let now = self.now;
        let mut at = Some(cgroup);
        while let Some(id) = at {
            let Cgroup { io, parent, .. } = &mut self.cgroups[id];
            io.account(now);
            io.running = if is_running { io.running + 1 } else { io.running.saturating_sub(1) };
            at = *parent;
        }
        self.memory.account_cpus(now, self.cpus);
        self.memory.running = self.cgroups[CgId::ROOT].io.running;
    }
}

impl Charged {
    /// `memory.current`, pages.
    pub(crate) fn usage(&self) -> u64 {
        self.file + self.shmem + self.anon + self.kernel
    }
}
