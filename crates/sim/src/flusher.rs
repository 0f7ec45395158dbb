// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flusher of a wb. It sleeps until its timer or another thread wakes it. Then it does the queued work, writes
//! old data, and writes background data while there is too much. Mirrors wb_workfn, wb_writeback and
//! writeback_sb_inodes of fs/fs-writeback.c.

use crate::arena::{InodeId, WbId};
use crate::block::Class;
use crate::engine::{Due, Sim, suspend};
use crate::inode::ListName;
use crate::plug::Plug;
use crate::wb::{Reason, Work};
use crate::world::World;
use crate::writepages::{How, Wrote, wait_writeback, writepages};
use floodline_kernel::{ChunkMode, writeback_chunk_size};

/// A round over inodes ends after this long, if it wrote any page.
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
        let mut stage = Stage::Queued;
        loop {
            let next = sim.w().next_work(wb, &mut stage);
            let Some(work) = next else { break };
            writeback(&sim, wb, &work).await;
            sim.w().work_done(&work);
        }
        let mut world = sim.w();
        if world.wbs[wb].has_dirty_io && world.settings.writeback_centisecs > 0 {
            world.wb_wake_delayed(wb);
        }
    }
}

/// Order in which a flusher takes its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Work that other threads queued.
    Queued,
    /// All dirty data, on request (`WB_start_all`).
    All,
    Old,
    Background,
    End,
}

impl World {
    /// Returns the next work of a flusher, until none is left (`wb_do_writeback`).
    fn next_work(&mut self, wb: WbId, stage: &mut Stage) -> Option<Work> {
        loop {
            let w = &mut self.wbs[wb];
            let (work, next) = match *stage {
                Stage::Queued => {
                    let begins = !std::mem::replace(&mut w.running, true);
                    let work = w.work.pop_front();
                    if begins {
                        self.wb_place_flusher(wb);
                    }
                    let next = if work.is_some() { Stage::Queued } else { Stage::All };
                    (work, next)
                }
                Stage::All => {
                    let asked = w.start_all;
                    (asked.map(|reason| self.plain_work(wb, reason, true)), Stage::Old)
                }
                Stage::Old => {
                    w.start_all = None;
                    (self.old_work(wb), Stage::Background)
                }
                Stage::Background => {
                    let is_over = self.wb_over_bg_thresh(wb);
                    let work = || Work { nr_pages: u64::MAX, ..self.plain_work(wb, Reason::Background, false) };
                    (is_over.then(work), Stage::End)
                }
                Stage::End => {
                    w.running = false;
                    if w.work.is_empty() {
                        return None;
                    }
                    (None, Stage::Queued)
                }
            };
            *stage = next;
            if work.is_some() {
                return work;
            }
        }
    }

    /// Has a flusher write all its dirty data.
    pub(crate) fn wb_start_writeback(&mut self, wb: WbId, reason: Reason) {
        if !self.wbs[wb].has_dirty_io {
            return;
        }
        if !self.behaviour.flusher.start_all_once {
            let work = self.plain_work(wb, reason, true);
            self.wb_queue_work(wb, work);
        } else if self.wbs[wb].start_all.is_none() {
            self.wbs[wb].start_all = Some(reason);
            self.wb_wake_now(wb);
        }
    }

    /// Returns work on old data, if its interval has passed.
    fn old_work(&mut self, wb: WbId) -> Option<Work> {
        let now = self.jiffies();
        let interval = self.build.ms_to_jiffies(self.settings.writeback_centisecs * 10);
        if interval == 0 || now < self.wbs[wb].last_old_flush + interval {
            return None;
        }
        self.wbs[wb].last_old_flush = now;
        Some(self.plain_work(wb, Reason::Periodic, false)).filter(|work| work.nr_pages > 0)
    }

    /// Wakes the threads that wait for a work, and counts it as done for a foreign flush.
    fn work_done(&mut self, work: &Work) {
        if let Some(slot) = work.done {
            let waiting = self.completions.complete(slot);
            self.wake_all(waiting);
        }
        if let Some((memcg, target)) = work.foreign {
            let key = (u64::from(self.wbs[target].bdi.0), u64::from(self.wbs[target].memcg.0));
            for slot in &mut self.cgroups[memcg].foreign.slots {
                if (slot.bdi, slot.memcg) == key {
                    slot.in_flight = false;
                }
            }
        }
    }

    /// Dirty pages and inodes of the machine.
    pub(crate) fn nr_all(&self) -> u64 {
        self.memory.nr_dirty + self.dirty_inodes
    }

    /// Splits pages among wbs by bandwidth: returns this wb's part.
    pub(crate) fn split_work(&self, wb: WbId, pages: u64) -> u64 {
        let w = &self.wbs[wb];
        let (avg, tot) = (w.bandwidth.avg_write_bandwidth, self.bdis[w.bdi].tot_write_bandwidth);
        if tot == 0 || avg >= tot || pages == u64::MAX {
            return pages;
        }
        let part = (u128::from(pages) * u128::from(avg)).div_ceil(u128::from(tot));
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// Work on all that is dirty now, or on this wb's part of it.
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

    /// Moves inodes that are old enough to `b_io` (`queue_io`).
    fn queue_io(&mut self, wb: WbId, cutoff: u64, for_sync: bool) {
        while let Some(inode) = self.wbs[wb].b_more_io.head {
            self.list_add(inode, ListName::Io);
        }
        while let Some(inode) = self.wbs[wb].b_dirty.head.filter(|inode| self.inodes[*inode].dirtied_when <= cutoff) {
            self.list_add(inode, ListName::Io);
        }
        let now = self.jiffies();
        // A sync also takes inodes with only a dirty time stamp.
        let old = if for_sync { cutoff } else { now.saturating_sub(self.dirtytime_expire()) };
        while let Some(inode) = self.wbs[wb].b_dirty_time.head.filter(|inode| self.inodes[*inode].dirtied_when <= old) {
            self.list_add(inode, ListName::Io);
        }
    }

    /// Age from which dirty time stamps are written, jiffies.
    fn dirtytime_expire(&self) -> u64 {
        self.settings.dirtytime_expire_seconds.saturating_mul(self.build.hz())
    }

    /// Moves an inode back to the newest end of the dirty list.
    pub(crate) fn redirty_tail(&mut self, inode: InodeId) {
        let Some(wb) = self.inodes[inode].wb else { return };
        let newest = self.wbs[wb].b_dirty.tail.map(|tail| self.inodes[tail].dirtied_when);
        if newest.is_some_and(|newest| self.inodes[inode].dirtied_when < newest) {
            self.inodes[inode].dirtied_when = self.jiffies();
        }
        self.list_add(inode, ListName::Dirty);
    }

    /// Puts an inode on the list where it belongs after it was written.
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
        let is_old = self.behaviour.flusher.requeues_redirtied || self.inodes[inode].dirtied_when <= cutoff;
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
        } else if i.wb.is_some_and(|wb| self.wbs[wb].memcg.0 != 0) && self.behaviour.switching.releases_dying {
            self.list_add(inode, ListName::Attached);
        } else {
            self.list_del(inode);
        }
    }
}

/// A work that is being executed.
struct Execution<'a> {
    wb: WbId,
    work: &'a Work,
    /// Pages left to write.
    nr: u64,
    /// Its start, and the time up to which inodes must have been dirtied to be taken; jiffies.
    start: u64,
    cutoff: u64,
    /// Whether the cutoff is recomputed in every round (until 6.9).
    recomputes: bool,
    is_queued: bool,
    /// Whether the background threshold was already found exceeded, when the work was created.
    is_over_bg: bool,
    round: Option<Round>,
}

/// One round over the inodes to be written.
struct Round {
    began: u64,
    wrote_any: bool,
}

/// Next step of a flusher.
enum NextInode {
    /// Write up to this much of an inode, in the unit of `nr_to_write`.
    Write(InodeId, u64),
    /// Wait for another flusher that writes the inode.
    Wait(InodeId),
    /// Sleep for a while, then check again the inodes on `b_more_io`, which other threads write.
    Rest,
    End,
}

/// Executes one work.
async fn writeback(sim: &Sim, wb: WbId, work: &Work) {
    let mut execution = sim.w().begin_work(wb, work);
    let is_background = matches!(work.reason, Reason::Background | Reason::Periodic);
    loop {
        let next = sim.w().next_inode(&mut execution);
        match next {
            NextInode::Write(inode, chunk) => {
                let how = How {
                    is_sync: work.is_sync,
                    is_tagged: work.is_tagged,
                    is_cyclic: !work.is_sync && !work.is_tagged,
                    flusher: Some(wb),
                    nr_to_write: chunk,
                    class: match work.is_sync {
                        true => Class::Urgent,
                        false if is_background => Class::Background,
                        false => Class::Normal,
                    },
                    range: None,
                };
                let wrote = writepages(sim, inode, how).await;
                if work.is_sync && !work.for_sync {
                    sim.w().unplug(Plug::Flusher(wb));
                    wait_writeback(sim, inode, 0, u64::MAX / 2).await;
                }
                sim.w().inode_written(&mut execution, inode, wrote.counted >= chunk, wrote);
            }
            NextInode::Wait(inode) => {
                sim.w().unplug(Plug::Flusher(wb));
                sim.wait("an inode that another flusher writes", |world| &mut world.inodes[inode].waiters).await;
            }
            NextInode::Rest => {
                sim.w().unplug(Plug::Flusher(wb));
                sim.pass(1_000_000, "").await;
            }
            NextInode::End => return sim.w().unplug(Plug::Flusher(wb)),
        }
    }
}

impl World {
    fn begin_work<'a>(&self, wb: WbId, work: &'a Work) -> Execution<'a> {
        let (nr, start) = (work.nr_pages, self.jiffies());
        let recomputes = self.behaviour.flusher.recomputes_cutoff;
        Execution { wb, work, nr, start, cutoff: start, recomputes, is_queued: false, is_over_bg: true, round: None }
    }

    /// Returns the inode that a flusher writes next.
    fn next_inode(&mut self, execution: &mut Execution) -> NextInode {
        let Execution { wb, work, .. } = *execution;
        loop {
            if execution.round.is_none() && !self.begin_round(execution) {
                return NextInode::End;
            }
            let Some(inode) = self.wbs[wb].b_io.head else {
                let wrote_any = execution.round.take().is_some_and(|round| round.wrote_any);
                if wrote_any || !execution.is_queued && !execution.recomputes {
                    continue;
                }
                return if self.wbs[wb].b_more_io.len == 0 { NextInode::End } else { NextInode::Rest };
            };
            let sb = self.inodes[inode].sb;
            let is_other = work.sb.is_some_and(|wanted| wanted != sb);
            if is_other || work.sb.is_none() && self.sbs[sb].s_umount.is_held {
                self.redirty_tail(inode);
                continue;
            }
            // It was switched to this wb while another wb's flusher writes it.
            if self.inodes[inode].is_syncing && !work.is_sync {
                self.list_add(inode, ListName::MoreIo);
                continue;
            }
            if std::mem::replace(&mut self.inodes[inode].is_syncing, true) {
                return NextInode::Wait(inode);
            }
            let mode = if work.is_sync || work.is_tagged { ChunkMode::SyncOrTagged } else { ChunkMode::Ordinary };
            let avg = self.wbs[wb].bandwidth.avg_write_bandwidth;
            let limit = self.domain.dirty_limit;
            self.wb_bandwidth_start(wb);
            let least = self.build.min_writeback_pages();
            return NextInode::Write(inode, writeback_chunk_size(mode, avg, limit, execution.nr, least));
        }
    }

    /// Begins a round of a work. Returns false if nothing is left of it or something else is more urgent.
    fn begin_round(&mut self, execution: &mut Execution) -> bool {
        let Execution { wb, work, .. } = *execution;
        let interrupts = matches!(work.reason, Reason::Background | Reason::Periodic);
        if execution.nr == 0
            || interrupts && !self.wbs[wb].work.is_empty()
            || work.reason == Reason::Background && !execution.is_over_bg && !self.wb_over_bg_thresh(wb)
        {
            return false;
        }
        execution.is_over_bg = false;
        let is_empty = self.wbs[wb].b_io.len == 0;
        if is_empty || execution.recomputes {
            let now = self.jiffies();
            let expire = self.build.ms_to_jiffies(self.settings.expire_centisecs * 10);
            execution.cutoff = match work.reason {
                Reason::Periodic => now.saturating_sub(expire),
                Reason::Background => now,
                _ => execution.start,
            };
        }
        if is_empty {
            self.queue_io(wb, execution.cutoff, work.for_sync);
            execution.is_queued = true;
        }
        execution.round = Some(Round { began: self.now, wrote_any: false });
        true
    }

    /// Handles an inode that was written; `is_chunk_used`: there may be more of it.
    fn inode_written(&mut self, execution: &mut Execution, inode: InodeId, is_chunk_used: bool, wrote: Wrote) {
        let Execution { wb, work, cutoff, .. } = *execution;
        let (now, dirtytime_expire) = (self.jiffies(), self.dirtytime_expire());
        let i = &mut self.inodes[inode];
        i.is_syncing = false;
        i.is_dirty_pages = i.cache.dirty > 0;
        i.is_dirty_meta = false;
        if work.is_sync || now > i.dirtied_time_when.saturating_add(dirtytime_expire) {
            i.is_dirty_time = false;
        }
        self.wake_waiters(inode);
        self.requeue(inode, work, is_chunk_used, cutoff);
        self.wb_update_bandwidth(wb);
        execution.nr = execution.nr.saturating_sub(wrote.counted.max(1));
        if let Some(round) = &mut execution.round {
            round.wrote_any |= wrote.pages > 0 || work.is_sync;
            let is_long = self.now.saturating_sub(round.began) > ROUND;
            if round.wrote_any && (is_long || execution.nr == 0) {
                execution.round = None;
            }
        }
    }
}
