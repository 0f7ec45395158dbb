// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switching inodes between wbs: one at a time when foreign detection requests it, in batches from the wb of a
//! removed cgroup to that of its nearest live ancestor. The cost differs by kernel. Mirrors inode_switch_wbs and
//! cleanup_offline_cgwb of fs/fs-writeback.c and mm/backing-dev.c.

use crate::arena::{CgId, InodeId, SbId, WbId};
use crate::conserved::Fate;
use crate::engine::{Sim, Waiters};
use crate::inode::ListName;
use crate::sync::{lock, unlock};
use crate::wb::Lock;
use crate::wb_stat::WbStat;
use crate::world::World;
use floodline_kernel::Switching as Switches;
use std::collections::{BTreeMap, VecDeque};

/// Most switches in flight.
const IN_FLIGHT_MAX: usize = 1024;
/// Inodes in one batch: the pointers that fit into a context of 1 KiB, less one; the reworked context is smaller
/// itself.
const BATCH: usize = 119;
const BATCH_REWORKED: usize = 126;
/// A grace period before a switch: 20 ms.
const GRACE: u64 = 20_000_000;
/// One batch.
#[derive(Debug)]
struct Batch {
    inodes: Vec<InodeId>,
    to: CgId,
    from: Option<WbId>,
    at: u64,
    /// CPU time of its preparation.
    prepare: u64,
}

/// Switches to come, and those in progress.
#[derive(Debug, Default)]
pub(crate) struct Switching {
    queue: VecDeque<Batch>,
    waiters: Waiters,
    /// Wbs of removed cgroups that still have inodes.
    offline: Vec<WbId>,
    /// The locks of the lists between which inodes are switched, as one.
    list_lock: Lock,
    pub(crate) switched: u64,
    /// Batches ever queued, and batches done; batches in progress by superblock.
    queued: u64,
    done: u64,
    of_sb: BTreeMap<SbId, u64>,
    /// Unmounts that wait for batches to be done.
    unmounting: Waiters,
}

impl World {
    /// Requests a switch of an inode, for foreign detection.
    pub(crate) fn request_switch(&mut self, inode: InodeId, to: CgId) {
        if self.inodes[inode].is_switching || self.switching.queue.len() > IN_FLIGHT_MAX {
            return;
        }
        self.inodes[inode].is_switching = true;
        let at = self.now + GRACE;
        self.push_batch(Batch { inodes: vec![inode], to, from: None, at, prepare: 0 });
    }

    /// The superblock of a batch. All inodes of a wb belong to one.
    fn sb_of(&self, batch: &Batch) -> Option<SbId> {
        batch.inodes.first().map(|inode| self.inodes[*inode].sb)
    }

    fn push_batch(&mut self, batch: Batch) {
        self.switching.queued += 1;
        if let Some(sb) = self.sb_of(&batch) {
            *self.switching.of_sb.entry(sb).or_default() += 1;
        }
        self.switching.queue.push_back(batch);
        let waiting = self.switching.waiters.take();
        self.wake_all(waiting);
    }

    fn batch_done(&mut self, batch: &Batch) {
        self.switching.done += 1;
        if let Some(count) = self.sb_of(batch).and_then(|sb| self.switching.of_sb.get_mut(&sb)) {
            *count = count.saturating_sub(1);
        }
        let waiting = self.switching.unmounting.take();
        self.wake_all(waiting);
    }

    /// Handles a memcg that goes offline: its wbs are dying, and every dying wb that is clean gives its inodes away.
    pub(crate) fn memcg_offline(&mut self, memcg: CgId) {
        let mut wbs: Vec<WbId> = std::mem::take(&mut self.cgroups[memcg].wbs).into_iter().map(|(_, wb)| wb).collect();
        wbs.sort_unstable();
        for wb in wbs {
            self.wbs[wb].is_dying = true;
            self.switching.offline.push(wb);
        }
        if !self.behaviour.switching.releases_dying {
            return;
        }
        for wb in self.switching.offline.clone() {
            if !self.wbs[wb].has_dirty_io {
                self.cleanup_offline(wb);
            }
        }
        let wbs = &self.wbs;
        self.switching
            .offline
            .retain(|wb| wbs[*wb].b_attached.len + wbs[*wb].b_dirty_time.len > 0 || wbs[*wb].has_dirty_io);
    }

    fn cleanup_offline(&mut self, wb: WbId) {
        let memcg = self.wbs[wb].memcg;
        let to = self.ancestors(memcg).find(|id| !self.cgroups[*id].is_dead).unwrap_or(CgId::ROOT);
        let Switches { takes_time_dirty, one_worker, prepare_resumes, .. } = self.behaviour.switching;
        let mut inodes = self.list_of(self.wbs[wb].b_attached.head);
        if takes_time_dirty {
            inodes.extend(self.list_of(self.wbs[wb].b_dirty_time.head));
        }
        inodes.retain(|inode| !self.inodes[*inode].is_switching);
        let at = self.now + GRACE;
        let mut seen: u64 = 0;
        let most = if one_worker { BATCH_REWORKED } else { BATCH };
        for batch in inodes.chunks(most) {
            let count = u64::try_from(batch.len()).unwrap_or(0);
            // An inode that was prepared before takes little time.
            let visits = if prepare_resumes { 0 } else { seen };
            seen += count;
            for inode in batch {
                self.inodes[*inode].is_switching = true;
            }
            self.push_batch(Batch {
                inodes: batch.to_vec(),
                to,
                from: Some(wb),
                at,
                prepare: count * self.costs.list_step + visits * self.costs.list_visit,
            });
        }
    }

    fn list_of(&self, head: Option<InodeId>) -> Vec<InodeId> {
        std::iter::successors(head, |inode| self.inodes[*inode].next).collect()
    }

    /// Moves inodes to another wb. Returns the CPU time of that.
    fn switch(&mut self, batch: &Batch) -> u64 {
        let Switches { sorts_by_age, restamps_dirtied_when, .. } = self.behaviour.switching;
        let now = self.jiffies();
        let mut cost = batch.prepare;
        let mut switched_to = None;
        for inode in &batch.inodes {
            let Some(old) = self.inodes[*inode].wb else { continue };
            let to = self.ancestors(batch.to).find(|id| !self.cgroups[*id].is_dead).unwrap_or(CgId::ROOT);
            let bdi = self.wbs[old].bdi;
            let new = self.wb_get(bdi, to);
            self.inodes[*inode].is_switching = false;
            if new == old || batch.from.is_some_and(|from| from != old) {
                continue;
            }
            let i = &self.inodes[*inode];
            let (dirty, writeback) = (i.cache.dirty, i.cache.writeback);
            let is_listed = i.is_dirty() || i.is_dirty_time;
            cost += self.costs.switch_inode + (dirty + writeback) * self.costs.switch_folio;
            // Clean pages under writeback and dirty ones follow their inode.
            self.wbs[old].reclaimable -= dirty;
            self.wbs[new].reclaimable += dirty;
            self.wbs[old].writeback -= writeback;
            self.wbs[new].writeback += writeback;
            for (stat, pages) in [(WbStat::Reclaimable, dirty), (WbStat::Writeback, writeback)] {
                self.wb_stat_mod(old, stat, -pages.cast_signed(), 1, None);
                self.wb_stat_mod(new, stat, pages.cast_signed(), 1, None);
            }
            self.wbs[old].conserved.add(Fate::Left, dirty + writeback);
            self.wbs[new].conserved.add(Fate::Came, dirty + writeback);
            if writeback > 0 {
                self.wbs[old].writeback_inodes -= 1;
                self.wbs[new].writeback_inodes += 1;
            }
            self.list_del(*inode);
            self.inodes[*inode].wb = Some(new);
            self.inodes[*inode].history = floodline_kernel::ForeignHistory::default();
            if is_listed && sorts_by_age {
                // The walk for the right place passes inodes moved before: the newest is moved first.
                cost += self.wbs[new].b_dirty.len * self.costs.list_step;
                self.list_add_by_age(*inode);
            } else if is_listed {
                // Appended, which loses one of its time stamps.
                let i = &mut self.inodes[*inode];
                let lost = if restamps_dirtied_when { &mut i.dirtied_when } else { &mut i.dirtied_time_when };
                *lost = now;
                self.list_add(*inode, ListName::Dirty);
            } else if to != CgId::ROOT {
                self.list_add(*inode, ListName::Attached);
            }
            self.switching.switched += 1;
            switched_to = Some(new);
        }
        if let Some(wb) = switched_to {
            self.wb_wake_now(wb);
        }
        cost
    }
}

/// Has an unmount wait for switches: for all in progress on the machine, or for those of its superblock.
pub(crate) async fn wait_for_switches(sim: &Sim, sb: SbId) {
    let (queued, only_own) = {
        let world = sim.w();
        (world.switching.queued, world.behaviour.switching.umount_waits_for_own)
    };
    let is_under_way = |switching: &Switching| match only_own {
        true => switching.of_sb.get(&sb).is_some_and(|count| *count > 0),
        false => switching.done < queued,
    };
    while is_under_way(&sim.w().switching) {
        sim.wait("inodes that are being switched", |world| &mut world.switching.unmounting).await;
    }
}

/// Starts the workers: one per CPU if a batch is work of its own, else one that handles all of a wb.
pub(crate) fn start(sim: &Sim) {
    let count = {
        let world = sim.w();
        if world.behaviour.switching.one_worker { 1 } else { world.cpus.max(1) }
    };
    for number in 0..count {
        sim.spawn("switch", true, worker(sim.clone(), number));
    }
}

/// Executes switches. All workers need the same list locks: while one runs, the others spin.
async fn worker(sim: Sim, number: u64) {
    let pid = sim.w().kernel_thread(&format!("kworker/{number}:2+inode_switch_wbs"));
    loop {
        let next = { sim.w().switching.queue.pop_front() };
        let Some(batch) = next else {
            sim.wait("", |world| &mut world.switching.waiters).await;
            continue;
        };
        sim.sleep_until(batch.at, "").await;
        // A sync of the bdi blocks switches.
        loop {
            let bdi = {
                let world = sim.w();
                let wb = batch.inodes.first().and_then(|inode| world.inodes[*inode].wb);
                wb.map(|wb| world.wbs[wb].bdi).filter(|bdi| world.bdis[*bdi].switch_lock.is_held)
            };
            let Some(bdi) = bdi else { break };
            sim.wait("", |world| &mut world.bdis[bdi].switch_lock.waiters).await;
        }
        let locked = async {
            lock(&sim, "", |world| &mut world.switching.list_lock).await;
            let cost = sim.w().switch(&batch);
            sim.pass(cost, "").await;
            sim.w().batch_done(&batch);
            unlock(&sim, |world| &mut world.switching.list_lock);
        };
        crate::cpu::spin(&sim, pid, locked).await;
    }
}
