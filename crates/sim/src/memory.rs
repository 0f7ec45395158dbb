// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of the machine: free, anonymous and file pages, the order in which file pages are evicted, CPU time, and
//! the machine's counters. Reclaim evicts clean pages only, and wakes flushers if it finds none. Follows
//! mm/vmscan.c as far as it acts on dirty pages.

use crate::arena::{CgId, InodeId, PidId};
use crate::cgroup::{ByOwner, Cgroup};
use crate::conserved::Conserved;
use crate::engine::{Due, Sim, suspend};
use crate::lru::{Lru, Run};
use crate::page_cache::{Age, Extent};
use crate::process::use_cpu;
use crate::protection::Effort;
use crate::wb::Reason;
use crate::world::World;
use floodline_kernel::{DirtyableMemory, global_dirtyable_memory};
use floodline_scenario::FsType;

/// Counters of the machine; pages and nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) total: u64,
    pub(crate) reserve: u64,
    pub(crate) high_watermark: u64,
    pub(crate) free: u64,
    pub(crate) inactive: u64,
    pub(crate) active: u64,
    pub(crate) anon: u64,
    /// Pages of tmpfs: on the lists of anonymous memory, and never evicted without swap.
    pub(crate) shmem: u64,
    pub(crate) kernel: u64,
    pub(crate) nr_dirty: u64,
    pub(crate) nr_writeback: u64,
    pub(crate) nr_dirtied: u64,
    pub(crate) nr_written: u64,
    pub(crate) conserved: Conserved,
    pub(crate) pgfault: u64,
    pub(crate) pgmajfault: u64,
    pub(crate) allocstall: u64,
    pub(crate) pgscan_direct: u64,
    /// Folios that reclaim has evicted.
    pub(crate) evicted_folios: u64,
    pub(crate) cpu_user: u64,
    pub(crate) cpu_system: u64,
    pub(crate) cpu_iowait: u64,
    pub(crate) ctxt: u64,
    pub(crate) waiting: u64,
    pub(crate) running: u64,
    pub(crate) cpu_since: u64,
    /// File pages by number of the owning cgroup.
    pub(crate) lru: Vec<Lists>,
}

/// The file pages charged to one cgroup.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// Runs in order of arrival. Runs that became active stay on this list until reclaim meets them.
    inactive: Lru,
    /// Active runs, in the order in which reclaim met them.
    active: Lru,
    /// Number of inactive pages, and of active pages.
    pages: [u64; 2],
}

impl Lists {
    /// Whether too few pages are inactive, so that active ones are deactivated (`inactive_is_low`).
    fn inactive_is_low(&self) -> bool {
        let [inactive, active] = self.pages;
        let gigabytes = (inactive + active) >> 18;
        let ratio = if gigabytes > 0 { (10 * gigabytes).isqrt() } else { 1 };
        inactive.saturating_mul(ratio) < active
    }

    /// Counts pages that became active or inactive.
    fn count_active(&mut self, pages: u64, is_active: bool) {
        let [inactive, active] = &mut self.pages;
        if is_active {
            (*inactive, *active) = (*inactive - pages, *active + pages);
        } else {
            (*inactive, *active) = (*inactive + pages, *active - pages);
        }
    }
}

/// Pages that fit into one extent, in whole folios: 8 TiB, more than any readahead.
const EXTENT_MAX: u64 = 1 << 31;
/// Number of times reclaim tries before it gives up, 100 ms each.
const RECLAIM_TRIES: u32 = 300;
const RECLAIM_WAIT: u64 = 100_000_000;

impl Memory {
    /// Counts iowait: CPUs that are idle while tasks sleep for I/O.
    #[inline]
    pub(crate) fn account_cpus(&mut self, now: u64, cpus: u64) {
        let passed = now.saturating_sub(self.cpu_since);
        self.cpu_iowait += passed * self.waiting.min(cpus.saturating_sub(self.running));
        self.cpu_since = now;
    }

    fn lru(&mut self, owner: CgId) -> &mut Lists {
        let number = owner.0 as usize;
        if self.lru.len() <= number {
            self.lru.resize_with(number + 1, Lists::default);
        }
        &mut self.lru[number]
    }

    fn cache(&mut self, pages: u64) {
        self.free = self.free.saturating_sub(pages);
        self.inactive += pages;
    }

    fn uncache(&mut self, pages: u64, is_active: bool) {
        self.free += pages;
        if is_active {
            self.active = self.active.saturating_sub(pages);
        } else {
            self.inactive = self.inactive.saturating_sub(pages);
        }
    }
}

impl World {
    /// Dirtyable memory of the machine.
    pub(crate) fn global_avail(&self) -> u64 {
        global_dirtyable_memory(&DirtyableMemory {
            free: self.memory.free,
            reserve: self.memory.reserve,
            inactive_file: self.memory.inactive,
            active_file: self.memory.active,
        })
    }

    /// Puts pages of an inode into the cache, charged to a memcg.
    pub(crate) fn add_to_cache(&mut self, inode: InodeId, start: u64, len: u64, folio: u32, owner: CgId) {
        self.add_extent(inode, start, len, Extent::clean(folio, owner));
    }

    /// Puts pages of an inode into the cache, all like `page`.
    pub(crate) fn add_extent(&mut self, inode: InodeId, start: u64, len: u64, page: Extent) {
        let Ok(pages) = u32::try_from(len) else {
            self.add_extent(inode, start, EXTENT_MAX, page);
            self.add_extent(inode, start + EXTENT_MAX, len - EXTENT_MAX, page);
            return;
        };
        self.inodes[inode].cache.insert(start, Extent { len: pages, blocks: pages, ..page });
        if self.is_shmem(inode) {
            self.memory.free = self.memory.free.saturating_sub(len);
            self.memory.shmem += len;
            self.charge(page.owner, |charged| charged.shmem += len);
            return;
        }
        let lists = self.memory.lru(page.owner);
        lists.inactive.push_back(inode, start, len);
        lists.pages[0] += len;
        self.memory.cache(len);
        self.charge(page.owner, |charged| charged.file += len);
    }

    /// Whether the pages of an inode are those of a tmpfs.
    fn is_shmem(&self, inode: InodeId) -> bool {
        self.sbs[self.inodes[inode].sb].fs_type == FsType::Tmpfs
    }

    /// Accounts for pages of an inode, all like `page`, that left the cache.
    pub(crate) fn uncache(&mut self, inode: InodeId, page: &Extent) {
        let len = u64::from(page.len);
        if self.is_shmem(inode) {
            self.memory.free += len;
            self.memory.shmem -= len;
            self.charge(page.owner, |charged| charged.shmem -= len);
            return;
        }
        let is_active = page.age.is_active();
        self.memory.uncache(len, is_active);
        self.memory.lru(page.owner).pages[usize::from(is_active)] -= len;
        self.charge(page.owner, |charged| {
            charged.file -= len;
            charged.active -= if is_active { len } else { 0 };
            charged.dirty -= if page.dirty { len } else { 0 };
        });
    }

    /// Marks pages that a program read: those read before become active, the others referenced
    /// (`folio_mark_accessed`). Writes do neither since commit bbddabe2e436 ("mm: filemap: only do access
    /// activations on reads"), 4.7.
    pub(crate) fn mark_accessed(&mut self, inode: InodeId, start: u64, len: u64) {
        if self.is_shmem(inode) || len == 0 {
            return;
        }
        let mut moved = ByOwner::default();
        let cache = &mut self.inodes[inode].cache;
        let (start, end) = cache.whole_folios(start, start + len);
        cache.update(start, end - start, |_, extent| {
            let is_active = extent.age.is_active();
            let is_second = extent.age.is_referenced() && !is_active;
            extent.age = Age::new(is_active || is_second, !is_second);
            if is_second {
                moved.add(extent.owner, extent.len.into());
            }
        });
        for (owner, pages) in moved {
            self.count_active(owner, pages, true);
        }
    }

    /// Evicts clean pages of a scope's cgroups; those under `memory.low` only if there are no others. Returns their
    /// number.
    pub(crate) fn evict(&mut self, scope: CgId, wanted: u64) -> u64 {
        match self.evict_with(scope, wanted, Effort::Polite) {
            0 if self.has_protection => self.evict_with(scope, wanted, Effort::Low),
            evicted => evicted,
        }
    }

    fn evict_with(&mut self, scope: CgId, wanted: u64, effort: Effort) -> u64 {
        if !self.cgroups[scope].has_children {
            // All pages charged to a leaf are its own.
            return self.evict_owner(scope, wanted);
        }
        // Each cgroup gives a part by its size; then any cgroup gives more that still has pages.
        let mut victims = self.victims(scope, effort);
        let total = victims.iter().fold(0_u64, |sum, (_, pages)| sum.saturating_add(*pages)).max(1);
        let mut evicted = 0;
        for (owner, pages) in &mut victims {
            let part = u128::from(wanted) * u128::from(*pages) / u128::from(total) + 1;
            let part = u64::try_from(part).unwrap_or(u64::MAX).min(*pages).min(wanted.saturating_sub(evicted));
            let taken = self.evict_owner(*owner, part);
            (evicted, *pages) = (evicted + taken, pages.saturating_sub(taken));
        }
        for (owner, pages) in &victims {
            evicted += self.evict_owner(*owner, wanted.saturating_sub(evicted).min(*pages));
        }
        evicted
    }

    /// Cgroups with pages to evict, and the largest number of file pages to take from each.
    fn victims(&self, scope: CgId, effort: Effort) -> Vec<(CgId, u64)> {
        let mut own: Vec<u64> = self.cgroups.iter().map(|(_, cgroup)| cgroup.charged.file).collect();
        for (_, cgroup) in self.cgroups.iter() {
            if let Some(above) = cgroup.parent.and_then(|parent| own.get_mut(parent.0 as usize)) {
                *above = above.saturating_sub(cgroup.charged.file);
            }
        }
        let protections = self.protections(scope, effort);
        let owners = self.cgroups.ids().filter(|owner| self.ancestors(*owner).any(|id| id == scope));
        let pages = |owner: CgId| {
            let kept = protections.get(owner.0 as usize).copied().unwrap_or(0);
            let spare = self.cgroups[owner].charged.usage().saturating_sub(kept);
            own.get(owner.0 as usize).map_or(0, |own| spare.min(*own))
        };
        owners.map(|owner| (owner, pages(owner))).filter(|(_, pages)| *pages > 0).collect()
    }

    /// Evicts clean pages charged to one cgroup. Checks each run twice at most.
    fn evict_owner(&mut self, owner: CgId, wanted: u64) -> u64 {
        let lists = self.memory.lru(owner);
        let (mut inactive, mut active) = (std::mem::take(&mut lists.inactive), std::mem::take(&mut lists.active));
        let mut evicted = 0;
        for _ in 0..(inactive.len() + active.len()).saturating_mul(2) {
            if evicted >= wanted {
                break;
            }
            if active.len() > 0
                && self.memory.lru(owner).inactive_is_low()
                && let Some(run) = active.pop_front()
                && self.deactivate(&run, owner) > 0
            {
                inactive.push_back(run.inode, run.start, run.len);
            }
            let Some(run) = inactive.pop_front() else { continue };
            let (freed, left) = self.evict_range(&run, owner, wanted - evicted, &mut active);
            evicted += freed;
            if let Some(from) = left {
                inactive.push_front(run.inode, from, run.start + run.len - from);
            }
        }
        let lists = self.memory.lru(owner);
        (lists.inactive, lists.active) = (inactive, active);
        evicted
    }

    /// Deactivates the active pages of a run. Returns their number.
    fn deactivate(&mut self, run: &Run, owner: CgId) -> u64 {
        let mut pages = 0;
        let cache = &mut self.inodes[run.inode].cache;
        let (start, end) = cache.whole_folios(run.start, run.start + run.len);
        cache.update(start, end - start, |_, extent| {
            if extent.age.is_active() && !extent.reclaim && extent.owner == owner {
                extent.age = Age::default();
                pages += u64::from(extent.len);
            }
        });
        if pages > 0 {
            self.count_active(owner, pages, false);
        }
        pages
    }

    /// Evicts the clean inactive pages of a run. Active pages move to the active list. Dirty pages and pages under
    /// writeback count as active until they are clean, and are evicted next then. Returns the evicted pages and, if
    /// `most` was reached, the page from which the run goes on.
    fn evict_range(&mut self, run: &Run, owner: CgId, most: u64, active: &mut Lru) -> (u64, Option<u64>) {
        let inode = run.inode;
        let mut freed = 0;
        let (mut from, end) = (run.start, run.start + run.len);
        // A change of one extent may merge it with others, but changes none after it.
        while let Some((at, extent)) = self.inodes[inode].cache.first(from, end) {
            if freed >= most {
                return (freed, Some(at));
            }
            // Pages of the run may have been cut and filled anew since: folios go whole.
            let (at, to) = match extent.folio {
                0 | 1 => (at, at + u64::from(extent.len)),
                _ => self.inodes[inode].cache.whole_folios(at, at + u64::from(extent.len)),
            };
            let pages = to - at;
            from = to;
            if extent.owner != owner || extent.reclaim {
                continue;
            }
            if extent.age.is_active() {
                active.push_back(inode, at, pages);
            } else if extent.dirty || extent.writeback {
                self.inodes[inode].cache.update(at, pages, |_, extent| {
                    (extent.age, extent.reclaim) = (Age::new(true, extent.age.is_referenced()), true);
                });
                self.count_active(owner, pages, true);
            } else {
                let folio = u64::from(extent.folio.max(1));
                let take = pages.min((most - freed).div_ceil(folio).saturating_mul(folio));
                let gone = self.inodes[inode].cache.cut(at, take);
                self.forget(inode, gone.as_slice(), None);
                self.memory.evicted_folios += take.div_ceil(folio);
                freed += take;
                from = at + take;
            }
        }
        (freed, None)
    }

    fn count_active(&mut self, owner: CgId, pages: u64, is_active: bool) {
        let memory = &mut self.memory;
        memory.lru(owner).count_active(pages, is_active);
        if is_active {
            (memory.inactive, memory.active) = (memory.inactive - pages, memory.active + pages);
            self.charge(owner, |charged| charged.active += pages);
        } else {
            (memory.inactive, memory.active) = (memory.inactive + pages, memory.active - pages);
            self.charge(owner, |charged| charged.active -= pages);
        }
    }

    /// Returns pages that reclaim met before they were clean to its lists: evicted next if they are clean now,
    /// active if they are dirty again (`folio_rotate_reclaimable`).
    pub(crate) fn rotate_reclaimable(&mut self, inode: InodeId, start: u64, pages: u32, owner: CgId, is_clean: bool) {
        let lists = self.memory.lru(owner);
        if !is_clean {
            lists.active.push_back(inode, start, pages.into());
            return;
        }
        lists.inactive.push_next(inode, start, pages.into());
        self.count_active(owner, u64::from(pages), false);
    }

    /// Drops inodes without pages that no process has open. The next memcg that dirties one owns it.
    fn drop_inodes(&mut self) {
        for inode in self.inodes.ids() {
            let i = &self.inodes[inode];
            let is_busy = i.opens > 0 || i.is_switching || i.is_syncing || i.is_dirty() || i.is_dirty_time;
            if i.wb.is_none() || is_busy || i.cache.pages > 0 {
                continue;
            }
            self.leave_wb(inode);
        }
    }

    /// Evicts every clean page, and drops inodes (`drop_caches` 3).
    pub(crate) fn drop_caches(&mut self) {
        for inode in self.inodes.ids() {
            if self.is_shmem(inode) {
                continue;
            }
            let is_clean = |(_, extent): &&(u64, Extent)| !extent.dirty && !extent.writeback;
            let clean: Vec<_> = self.inodes[inode].cache.extents().filter(is_clean).copied().collect();
            for (start, extent) in clean {
                let gone = self.inodes[inode].cache.remove(start, extent.len.into());
                self.forget(inode, &gone, None);
            }
        }
        // A run was in the cache when it was put on its list. It still is, in part, unless its inode lost pages.
        let inodes = &mut self.inodes;
        let has_lost: Vec<bool> = inodes.ids().map(|inode| std::mem::take(&mut inodes[inode].has_lost_pages)).collect();
        for lru in self.memory.lru.iter_mut().flat_map(|lists| [&mut lists.inactive, &mut lists.active]) {
            lru.retain(|run| {
                let cache = &inodes[run.inode].cache;
                !has_lost[run.inode.0 as usize] || cache.first(run.start, run.start + run.len).is_some()
            });
        }
        self.drop_inodes();
        // The shrinker of XFS pushes its log (`xfs_reclaim_inodes_nr()`).
        let sbs = &mut self.sbs;
        let waiting: Vec<_> = sbs.ids().filter_map(|sb| sbs[sb].journal.as_mut()?.push()).collect();
        waiting.into_iter().for_each(|ticket| self.wake(ticket));
    }

    /// Wakes every flusher that has dirty data, as reclaim does.
    pub(crate) fn wakeup_flushers(&mut self, reason: Reason) {
        for wb in self.wbs.ids() {
            self.wb_start_writeback(wb, reason);
        }
    }

    /// Whether `pages` more pages may be charged to a cgroup at once.
    pub(crate) fn has_room(&self, cgroup: CgId, pages: u64) -> bool {
        let is_below = |world: &World| world.over_limit(cgroup, pages, |cgroup| cgroup.max.min(cgroup.high)).is_none();
        pages == 0 || is_below(self) && self.lacking(pages) == 0
    }

    /// Returns the cgroup whose limit `pages` more pages would exceed, and the pages to free.
    fn over(&self, cgroup: CgId, pages: u64) -> Option<(CgId, u64)> {
        self.over_limit(cgroup, pages, |cgroup| cgroup.max).or_else(|| {
            let short = self.lacking(pages);
            (short > 0).then(|| (CgId::ROOT, short.max(1024)))
        })
    }

    /// Returns the nearest cgroup whose limit `pages` more pages would exceed, and the excess.
    pub(crate) fn over_limit(&self, cgroup: CgId, pages: u64, limit: impl Fn(&Cgroup) -> u64) -> Option<(CgId, u64)> {
        self.ancestors(cgroup).find_map(|id| {
            let cgroup = &self.cgroups[id];
            let over = cgroup.charged.usage().saturating_add(pages).saturating_sub(limit(cgroup));
            (over > 0).then_some((id, over))
        })
    }

    /// Pages that the machine lacks to allocate `pages` more.
    fn lacking(&self, pages: u64) -> u64 {
        (pages + self.memory.high_watermark / 2).saturating_sub(self.memory.free)
    }
}

/// The allocation failed for lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory;

/// Reclaims pages from a cgroup. Returns the number of evicted pages, or nothing if no page is clean and the dirty
/// ones are being written. 0: nothing can be evicted any more.
pub(crate) fn try_reclaim(world: &mut World, scope: CgId, wanted: u64) -> Option<u64> {
    // The kernel counts reclaim for the limit of a cgroup in the cgroup only.
    if scope == CgId::ROOT {
        world.memory.allocstall += 1;
        world.memory.pgscan_direct += wanted;
    }
    let evicted = world.evict(scope, wanted);
    let charged = &world.cgroups[scope].charged;
    if evicted > 0 || charged.dirty + charged.writeback == 0 {
        return Some(evicted);
    }
    world.wakeup_flushers(Reason::Vmscan);
    None
}

/// Reclaims, and returns the CPU time of the evictions.
pub(crate) fn reclaim_at_cost<T>(world: &mut World, reclaim: impl FnOnce(&mut World) -> T) -> (T, u64) {
    let before = world.memory.evicted_folios;
    let found = reclaim(world);
    (found, (world.memory.evicted_folios - before) * world.costs.evict)
}

/// Waits until a page becomes clean, or for a while.
pub(crate) async fn wait_for_reclaim(sim: &Sim) {
    {
        let ticket = sim.ticket("memory: reclaim found only dirty pages");
        let mut world = sim.w();
        world.reclaim_waiters.add(ticket);
        let at = world.now + RECLAIM_WAIT;
        world.queue.push(at, Due::Wake(ticket));
    }
    suspend().await;
}

/// Makes room for pages that are charged to a cgroup at once, on behalf of a process.
pub(crate) async fn make_room(sim: &Sim, pid: PidId, cgroup: CgId, pages: u64) -> Result<(), NoMemory> {
    for _ in 0..RECLAIM_TRIES {
        let (found, cost) = {
            let mut world = sim.w();
            let Some((scope, wanted)) = world.over(cgroup, pages) else {
                world.note_over_high(pid, cgroup, pages);
                return Ok(());
            };
            if scope != CgId::ROOT {
                world.cgroups[scope].events_max += 1;
            }
            let (found, cost) = reclaim_at_cost(&mut world, |world| try_reclaim(world, scope, wanted));
            if scope == CgId::ROOT {
                // kswapd mostly runs ahead of the task, on another CPU.
                world.memory.cpu_system += cost;
            }
            (found, if scope == CgId::ROOT { 0 } else { cost })
        };
        if cost > 0 {
            use_cpu(sim, pid, cost, false).await;
        }
        match found {
            // If nothing is left that could become clean, the OOM killer runs.
            Some(0) => return Err(NoMemory),
            Some(_) => {}
            None => wait_for_reclaim(sim).await,
        }
    }
    Err(NoMemory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iowait_is_counted_on_idle_cpus_only() {
        let mut memory = Memory { waiting: 5, running: 1, ..Memory::default() };
        memory.account_cpus(100, 4);
        assert_eq!(memory.cpu_iowait, 300);
    }
}
