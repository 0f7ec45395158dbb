// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flusher of a wb: sleeps until its timer or somebody wakes it, does the work that was queued, writes
//! old data, and background data while there is too much. Mirrors wb_workfn, wb_writeback and
//! writeback_sb_inodes of fs/fs-writeback.c.

use crate::arena::{InodeId, WbId};
use crate::block::Class;
use crate::engine::{Due, Sim, suspend};
use crate::inode::ListName;
use crate::wb::{Reason, Work};
use crate::world::World;
use crate::writepages::{How, wait_writeback, writepages};
use floodline_core::kernel::{ChunkMode, writeback_chunk_size};

/// A round over inodes ends after this long, if it wrote anything.
const ROUND: u64 = 100_000_000;

/// The process of one flusher.
pub(crate) async fn flusher(sim: Sim, wb: WbId) {
    loop {
        loop {
            {
                let ticket = sim.ticket("");
                let mut world = sim.w();
                let now = world.now;
                let World { wbs, queue, .. } = &mut *world;
                let w = &mut wbs[wb];
                match w.due {
                    Some(at) if at <= now => {
                        w.due = None;
                        w.flusher = None;
                        break;
                    }
                    due => {
                        w.flusher = Some(ticket);
                        if let Some(at) = due {
                            queue.set_alarm(&mut w.alarm, at, Due::Alarm(wb));
                        }
                    }
                }
            }
            suspend().await;
        }
        run(&sim, wb).await;
        let mut world = sim.w();
        if !world.wbs[wb].work.is_empty() {
            world.wb_wake_now(wb);
        } else if world.wbs[wb].has_dirty_io && world.settings.writeback_centisecs > 0 {
            world.wb_wake_delayed(wb);
        }
    }
}

async fn run(sim: &Sim, wb: WbId) {
    loop {
        sim.w().wbs[wb].running = true;
        loop {
            let Some(work) = sim.w().wbs[wb].work.pop_front() else { break };
            if work.nr_pages > 0 {
                writeback(sim, wb, &work).await;
            }
            let mut world = sim.w();
            if let Some(slot) = work.done {
                let waiting = world.completions.complete(slot);
                world.wake_all(waiting);
            }
            if let Some((memcg, target)) = work.foreign {
                let key = (u64::from(world.wbs[target].bdi.0), u64::from(world.wbs[target].memcg.0));
                for slot in &mut world.cgroups[memcg].foreign.slots {
                    if (slot.bdi, slot.memcg) == key {
                        slot.in_flight = false;
                    }
                }
            }
        }
        let start_all = sim.w().wbs[wb].start_all;
        if let Some(reason) = start_all {
            let work = { sim.w().plain_work(wb, reason, true) };
            writeback(sim, wb, &work).await;
            sim.w().wbs[wb].start_all = None;
        }
        let old = {
            let mut world = sim.w();
            let now = world.jiffies();
            let interval = world.build.ms_to_jiffies(world.settings.writeback_centisecs * 10);
            let is_due = interval != 0 && now >= world.wbs[wb].last_old_flush + interval;
            if is_due {
                world.wbs[wb].last_old_flush = now;
            }
            is_due.then(|| world.plain_work(wb, Reason::Periodic, false))
        };
        if let Some(work) = old.filter(|work| work.nr_pages > 0) {
            writeback(sim, wb, &work).await;
        }
        let background = {
            let world = sim.w();
            world
                .wb_over_bg_thresh(wb)
                .then(|| Work { nr_pages: u64::MAX, ..world.plain_work(wb, Reason::Background, false) })
        };
        if let Some(work) = background {
            writeback(sim, wb, &work).await;
        }
        let mut world = sim.w();
        world.wbs[wb].running = false;
        if world.wbs[wb].work.is_empty() {
            return;
        }
    }
}

impl World {
    /// Dirty pages and inodes of the machine.
    pub(crate) fn nr_all(&self) -> u64 {
        self.memory.nr_dirty + self.dirty_inodes
    }

    /// A wb's part of some pages, by bandwidth.
    pub(crate) fn split_work(&self, wb: WbId, pages: u64) -> u64 {
        let w = &self.wbs[wb];
        let (avg, tot) = (w.bandwidth.avg_write_bandwidth, self.bdis[w.bdi].tot_write_bandwidth);
        if tot == 0 || avg >= tot || pages == u64::MAX {
            return pages;
        }
        let part = (u128::from(pages) * u128::from(avg)).div_ceil(u128::from(tot));
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// Work on all that is dirty now, or on a wb's part of it.
    pub(crate) fn plain_work(&self, wb: WbId, reason: Reason, is_split: bool) -> Work {
        let nr = self.nr_all();
        Work {
            sb: None,
            is_sync: false,
            is_tagged: false,
            for_sync: false,
            nr_pages: if is_split { self.split_work(wb, nr) } else { nr },
            reason,
            done: None,
            foreign: None,
        }
    }

    /// Moves inodes that are old enough to the list that is written (`queue_io`).
    fn queue_io(&mut self, wb: WbId, cutoff: u64, for_sync: bool) {
        while let Some(inode) = self.wbs[wb].b_more_io.head {
            self.list_add(inode, ListName::Io);
        }
        while let Some(inode) = self.wbs[wb].b_dirty.head.filter(|inode| self.inodes[*inode].dirtied_when <= cutoff) {
            self.list_add(inode, ListName::Io);
        }
        let now = self.jiffies();
        // A sync takes what is dirty by time stamp only as well.
        let old = if for_sync { cutoff } else { now.saturating_sub(self.dirtytime_expire()) };
        while let Some(inode) = self.wbs[wb].b_dirty_time.head.filter(|inode| self.inodes[*inode].dirtied_when <= old) {
            self.list_add(inode, ListName::Io);
        }
    }

    /// Age from which time stamps are written, jiffies.
    fn dirtytime_expire(&self) -> u64 {
        self.settings.dirtytime_expire_seconds.saturating_mul(self.build.hz())
    }

    /// Back to the newest end of the dirty list.
    pub(crate) fn redirty_tail(&mut self, inode: InodeId) {
        let Some(wb) = self.inodes[inode].wb else { return };
        let newest = self.wbs[wb].b_dirty.tail.map(|tail| self.inodes[tail].dirtied_when);
        if newest.is_some_and(|newest| self.inodes[inode].dirtied_when < newest) {
            self.inodes[inode].dirtied_when = self.jiffies();
        }
        self.list_add(inode, ListName::Dirty);
    }

    /// Where an inode goes after it was written.
    fn requeue(&mut self, inode: InodeId, work: &Work, is_chunk_used: bool, cutoff: u64) {
        let now = self.jiffies();
        let i = &mut self.inodes[inode];
        if i.is_unlinked && i.opens == 0 {
            self.list_del(inode);
            return;
        }
        if (work.is_sync || work.is_tagged) && i.is_dirty() {
            i.dirtied_when = now;
        }
        // Until 6.1 an inode that was dirtied again after the start of the work was sent round too.
        let is_old = !self.kernel.at_least(6, 12) || self.inodes[inode].dirtied_when <= cutoff;
        let i = &self.inodes[inode];
        if i.is_dirty_pages {
            if is_chunk_used && is_old {
                self.list_add(inode, ListName::MoreIo);
            } else {
                self.redirty_tail(inode);
            }
        } else if i.is_dirty_meta {
            self.redirty_tail(inode);
        } else if i.is_dirty_time {
            self.inodes[inode].dirtied_when = now;
            self.list_add(inode, ListName::DirtyTime);
        } else if i.wb.is_some_and(|wb| self.wbs[wb].memcg.0 != 0) && self.kernel.at_least(5, 14) {
            self.list_add(inode, ListName::Attached);
        } else {
            self.list_del(inode);
        }
    }
}

/// Executes one work.
async fn writeback(sim: &Sim, wb: WbId, work: &Work) {
    let mut cutoff = sim.w().jiffies();
    let start = cutoff;
    let mut nr = work.nr_pages;
    let mut is_queued = false;
    let recomputes = !sim.w().kernel.at_least(6, 10);
    loop {
        if nr == 0 {
            return;
        }
        let interrupts = matches!(work.reason, Reason::Background | Reason::Periodic);
        {
            let mut world = sim.w();
            if interrupts && !world.wbs[wb].work.is_empty() {
                return;
            }
            if work.reason == Reason::Background && !world.wb_over_bg_thresh(wb) {
                return;
            }
            let is_empty = world.wbs[wb].b_io.len == 0;
            if is_empty || recomputes {
                let now = world.jiffies();
                let expire = world.build.ms_to_jiffies(world.settings.expire_centisecs * 10);
                cutoff = match work.reason {
                    Reason::Periodic => now.saturating_sub(expire),
                    Reason::Background => now,
                    _ => start,
                };
            }
            if is_empty {
                world.queue_io(wb, cutoff, work.for_sync);
                is_queued = true;
            }
        }
        let progress = round(sim, wb, work, &mut nr, cutoff).await;
        if progress || (!is_queued && !recomputes) {
            continue;
        }
        if sim.w().wbs[wb].b_more_io.len == 0 {
            return;
        }
        // Somebody writes what is left; look again after a while.
        sim.pass(1_000_000, "").await;
    }
}

/// One round over the inodes to be written; whether anything was.
async fn round(sim: &Sim, wb: WbId, work: &Work, nr: &mut u64, cutoff: u64) -> bool {
    let began = sim.now();
    let mut wrote_any = false;
    loop {
        let (inode, chunk) = {
            let mut world = sim.w();
            let Some(inode) = world.wbs[wb].b_io.head else { return wrote_any };
            let sb = world.inodes[inode].sb;
            let is_other = work.sb.is_some_and(|wanted| wanted != sb);
            if is_other || work.sb.is_none() && world.sbs[sb].s_umount.is_held {
                world.redirty_tail(inode);
                continue;
            }
            // It was switched to this wb while the flusher of another writes it.
            if world.inodes[inode].is_syncing && !work.is_sync {
                world.list_add(inode, ListName::MoreIo);
                continue;
            }
            let is_free = !std::mem::replace(&mut world.inodes[inode].is_syncing, true);
            let mode = if work.is_sync || work.is_tagged { ChunkMode::SyncOrTagged } else { ChunkMode::Ordinary };
            let avg = world.wbs[wb].bandwidth.avg_write_bandwidth;
            let limit = world.domain.dirty_limit;
            if is_free {
                world.wb_bandwidth_start(wb);
            }
            let chunk = writeback_chunk_size(mode, avg, limit, *nr, world.build.min_writeback_pages());
            (inode, is_free.then_some(chunk))
        };
        let Some(chunk) = chunk else {
            sim.wait("an inode that another flusher writes", |world| &mut world.inodes[inode].waiters).await;
            continue;
        };
        let is_background = matches!(work.reason, Reason::Background | Reason::Periodic);
        let how = How {
            is_sync: work.is_sync,
            is_tagged: work.is_tagged,
            is_cyclic: !work.is_sync && !work.is_tagged,
            nr_to_write: chunk,
            class: if is_background { Class::Background } else { Class::Normal },
            range: None,
        };
        let wrote = writepages(sim, inode, how).await;
        if work.is_sync && !work.for_sync {
            wait_writeback(sim, inode, 0, u64::MAX / 2).await;
        }
        {
            let mut world = sim.w();
            let (now, dirtytime_expire) = (world.jiffies(), world.dirtytime_expire());
            let i = &mut world.inodes[inode];
            i.is_syncing = false;
            i.is_dirty_pages = i.cache.dirty > 0;
            i.is_dirty_meta = false;
            if work.is_sync || now > i.dirtied_time_when.saturating_add(dirtytime_expire) {
                i.is_dirty_time = false;
            }
            let waiters = i.waiters.take();
            world.wake_all(waiters);
            world.requeue(inode, work, wrote.counted >= chunk, cutoff);
            world.wb_update_bandwidth(wb);
        }
        *nr = nr.saturating_sub(wrote.counted.max(1));
        wrote_any |= wrote.pages > 0 || work.is_sync;
        let is_long = sim.now().saturating_sub(began) > ROUND;
        if wrote_any && (is_long || *nr == 0) {
            return true;
        }
    }
}
