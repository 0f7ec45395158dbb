// SPDX-License-Identifier: MIT OR Apache-2.0
//! The throttle: a task that dirtied its share of pages compares the dirty domains with their limits, wakes the
//! flusher, and sleeps so that dirtying and writing come to balance. Mirrors balance_dirty_pages and
//! balance_dirty_pages_ratelimited of mm/page-writeback.c; the arithmetic is in floodline-kernel.

use crate::arena::{BdiId, CgId, InodeId, PidId, WbId};
use crate::engine::Sim;
use crate::wb::{Domain, Reason, Work};
use crate::wb_stat::WbStat;
use crate::world::{PAGE, World};
use floodline_kernel::{
    DirtyThrottleControl, RatelimitSample, dirty_poll_interval, foreign_flush_pages, task_ratelimit,
    update_dirty_limit, wb_position_ratio,
};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Wait reason of a throttled task.
const PAUSES: &str = "the end of its pause (balance_dirty_pages)";

/// Most pages of zones below 4 GiB on x86.
const LOW_MEMORY: u64 = 0xe000_0000 / PAGE;
/// Pages that are free when the kernel sets its first limits, before most of memory is initialised
/// (`DEFERRED_STRUCT_PAGE_INIT`): a little of the last zone and all below it. Traced (`limit` of `global_dirty_state`)
/// on 5.10, 6.1 and 6.12 in machines of 1, 2, 4 and 8 GiB that had set nothing.
const EARLY_LOW: u64 = 64_300;
const EARLY: u64 = 789_450;

/// A pause that a task takes.
#[derive(Clone, Copy)]
struct Pause {
    /// Nanoseconds.
    since: u64,
    until: u64,
    /// Values that the task stores at the end of the pause: its end, and the number of pages until the next check.
    paused_when: u64,
    next_pause: u64,
    /// Whether the task goes on after the pause; otherwise it checks again.
    leaves: bool,
}

impl World {
    /// Number of pages that a task may dirty before its next check. 0: check at once.
    pub(crate) fn pages_until_look(&self, pid: PidId, wb: WbId) -> u64 {
        let task = &self.pids[pid];
        let mut limit = task.nr_dirtied_pause;
        if self.wbs[wb].exceeded {
            limit = limit.min(self.build.exceeded_ratelimit());
        }
        let (count, leaks) = self.percpu[task.cpu];
        let by_task = limit.saturating_sub(task.nr_dirtied + leaks.min(limit.saturating_sub(task.nr_dirtied)));
        by_task.min(self.ratelimit_pages.saturating_sub(count))
    }

    /// Returns the pages to check a task for, if it has dirtied enough for a check.
    pub(crate) fn balance_dirty_pages_ratelimited(&mut self, pid: PidId, wb: WbId) -> Option<u64> {
        let exceeded = self.build.exceeded_ratelimit();
        let task = &mut self.pids[pid];
        let mut limit = task.nr_dirtied_pause;
        if self.wbs[wb].exceeded {
            limit = limit.min(exceeded);
        }
        let (count, leaks) = &mut self.percpu[task.cpu];
        if task.nr_dirtied >= limit {
            *count = 0;
        } else if *count >= self.ratelimit_pages {
            *count = 0;
            limit = 0;
        }
        if *leaks > 0 && task.nr_dirtied < limit {
            let some = (*leaks).min(limit - task.nr_dirtied);
            *leaks -= some;
            task.nr_dirtied += some;
        }
        (task.nr_dirtied >= limit).then_some(task.nr_dirtied)
    }

    /// The wb against which a task's dirtying of an inode is measured: that of its own memcg, not of the inode's.
    pub(crate) fn throttled_wb(&mut self, pid: PidId, inode: InodeId) -> Option<WbId> {
        let sb = &self.sbs[self.inodes[inode].sb];
        let (bdi, has) = (sb.bdi?, sb.has_cgroup_writeback);
        let memcg = if has { self.memcg(self.pids[pid].cgroup) } else { CgId::ROOT };
        Some(self.wb_get(bdi, memcg))
    }

    /// Checks the dirty domains. Returns the pause that the task has to take, if any.
    fn look(&mut self, pid: PidId, wb: WbId, pages: u64, first: bool) -> Option<Pause> {
        let w = &self.wbs[wb];
        let (memcg, strictlimit) = (w.memcg, self.bdis[w.bdi].strictlimit);
        let mut global = self.gdtc(true);
        let has_memcg = memcg != CgId::ROOT && self.behaviour.arithmetic.memcg_domain;
        let mut m = has_memcg.then(|| self.mdtc(memcg, true, &global));
        if strictlimit {
            self.wb_dirty_limits(wb, &mut global, m.as_mut());
        }
        if self.behaviour.arithmetic.background_kick_in_loop {
            self.wake_for_background(wb, &global);
        }
        if global.is_freerun(strictlimit) && m.as_ref().is_none_or(|m| m.is_freerun(strictlimit)) {
            self.run_free(pid, strictlimit, &global, m.as_ref());
            if !self.behaviour.arithmetic.background_kick_in_loop {
                self.wbs[wb].exceeded &= first;
                self.wake_for_background(wb, &global);
            }
            return None;
        }
        if !self.wbs[wb].running {
            self.wb_wake_now(wb);
        }
        if has_memcg {
            self.flush_foreign(memcg);
        }
        if !strictlimit {
            self.wb_dirty_limits(wb, &mut global, m.as_mut());
        }
        // A task that writes on behalf of another device is throttled only by the dirty pages of its own device.
        let is_local = self.pids[pid].is_local_throttle && !self.behaviour.arithmetic.less_throttle;
        if is_local && global.wb_dirty <= global.wb_freerun() {
            self.run_free_until(pid, dirty_poll_interval(global.wb_dirty, global.wb_thresh));
            return None;
        }
        let now = self.jiffies();
        let pos_ratio = self.position(wb, now, strictlimit, &global, m.as_ref());
        self.pause(pid, wb, pages, now, pos_ratio, global.wb_dirty)
    }

    /// Wakes the flusher if there is background work.
    fn wake_for_background(&mut self, wb: WbId, global: &DirtyThrottleControl) {
        let can_kick = self.settings.laptop_mode == 0 || !self.behaviour.arithmetic.laptop_mode;
        if can_kick && self.memory.nr_dirty > global.bg_thresh && !self.wbs[wb].running {
            self.wb_wake_now(wb);
        }
    }

    /// Nothing is over a limit: the task runs free until it has dirtied some more pages.
    fn run_free(
        &mut self,
        pid: PidId,
        strictlimit: bool,
        global: &DirtyThrottleControl,
        memcg: Option<&DirtyThrottleControl>,
    ) {
        let poll = |dtc: &DirtyThrottleControl| match strictlimit {
            true => dirty_poll_interval(dtc.wb_dirty, dtc.wb_thresh),
            false => dirty_poll_interval(dtc.dirty, dtc.thresh),
        };
        self.run_free_until(pid, poll(global).min(memcg.map_or(u64::MAX, poll)));
    }

    fn run_free_until(&mut self, pid: PidId, pages: u64) {
        let now = self.jiffies();
        let task = &mut self.pids[pid];
        (task.dirty_paused_when, task.nr_dirtied, task.nr_dirtied_pause) = (now, 0, pages);
    }

    /// The lowest position ratio of a wb in its domains. Updates the estimates.
    fn position(
        &mut self,
        wb: WbId,
        now: u64,
        strictlimit: bool,
        global: &DirtyThrottleControl,
        memcg: Option<&DirtyThrottleControl>,
    ) -> u64 {
        let avg = self.wbs[wb].bandwidth.avg_write_bandwidth;
        let ratio_in =
            |dtc: &DirtyThrottleControl| wb_position_ratio(&self.behaviour.arithmetic, dtc, avg, strictlimit);
        let (global_ratio, memcg) = (ratio_in(global), memcg.map(|m| (m, ratio_in(m))));
        let interval = self.build.bandwidth_interval();
        let w = &mut self.wbs[wb];
        w.exceeded = global.is_exceeded(strictlimit) || memcg.is_some_and(|(m, _)| m.is_exceeded(strictlimit));
        if now > w.bw_stamp + interval {
            self.update_estimates(wb, global, global_ratio, memcg);
        }
        memcg.map_or(global_ratio, |(_, ratio)| ratio.min(global_ratio))
    }

    /// Pause of a task that dirtied `pages`: the time in which its rate allows that many.
    fn pause(&mut self, pid: PidId, wb: WbId, pages: u64, now: u64, pos_ratio: u64, wb_dirty: u64) -> Option<Pause> {
        let hz = self.build.hz();
        let w = &self.wbs[wb];
        let rate = task_ratelimit(w.ratelimit.dirty_ratelimit, pos_ratio);
        let avg = w.bandwidth.avg_write_bandwidth;
        let bounds = self.pauses.wb_pause(wb_dirty, avg, w.ratelimit.dirty_ratelimit, rate);
        let task = &mut self.pids[pid];
        let (mut start, mut pause) = (now, bounds.max_pause);
        if let Some(period) = hz.saturating_mul(pages).checked_div(rate) {
            let since = if task.dirty_paused_when == 0 { now } else { task.dirty_paused_when };
            let due = since.saturating_add(period);
            if due < now + bounds.min_pause {
                if due + hz < now {
                    (task.dirty_paused_when, task.nr_dirtied) = (now, 0);
                } else if period != 0 {
                    task.dirty_paused_when += period;
                    task.nr_dirtied = 0;
                } else if task.nr_dirtied_pause <= pages {
                    task.nr_dirtied_pause += pages;
                }
                return None;
            }
            let owed = (due - now).saturating_sub(bounds.max_pause);
            start += owed.min(bounds.max_pause);
            pause = (due - now).min(bounds.max_pause);
        }
        debug_assert!(pause <= self.build.max_pause(), "a pause of {pause} jiffies");
        let leaves = rate > 0 || wb_dirty <= self.build.wb_stat_error();
        let w = &mut self.wbs[wb];
        w.last_sleep = self.now;
        self.bdis[w.bdi].last_sleep = self.now;
        let (since, until) = (self.io_wait_begins(pid), self.after_jiffies(pause));
        Some(Pause { since, until, paused_when: start + pause, next_pause: bounds.nr_dirtied_pause, leaves })
    }

    fn pause_ends(&mut self, pid: PidId, pause: &Pause) {
        self.io_wait_ends(pid, pause.since);
        let slept = self.now - pause.since;
        let task = &mut self.pids[pid];
        task.io.throttled += slept;
        (task.dirty_paused_when, task.nr_dirtied, task.nr_dirtied_pause) = (pause.paused_when, 0, pause.next_pause);
    }

    /// Updates limits, rates and bandwidth of a wb, at most every 200 ms.
    fn update_estimates(
        &mut self,
        wb: WbId,
        global: &DirtyThrottleControl,
        global_ratio: u64,
        memcg: Option<(&DirtyThrottleControl, u64)>,
    ) {
        let now = self.jiffies();
        let interval = self.build.bandwidth_interval();
        let smooth = |domain: &mut Domain, dtc: &DirtyThrottleControl| {
            if now >= domain.dirty_limit_at + interval || domain.dirty_limit_at == 0 {
                domain.dirty_limit = update_dirty_limit(domain.dirty_limit, dtc.thresh, dtc.dirty);
                domain.dirty_limit_at = now;
                debug_assert!(domain.dirty_limit >= dtc.thresh, "a smoothed limit below the threshold");
            }
        };
        let w = &self.wbs[wb];
        let (now_dirtied, now_written) = (self.wb_stat(wb, WbStat::Dirtied), self.wb_stat(wb, WbStat::Written));
        let (elapsed, dirtied) = (now.saturating_sub(w.bw_stamp).max(1), now_dirtied - w.dirtied_stamp);
        let written = now_written - w.written_stamp;
        let avg = w.bandwidth.avg_write_bandwidth;
        let strictlimit = self.bdis[w.bdi].strictlimit;
        let sample = |pos_ratio| RatelimitSample { pos_ratio, avg_write_bandwidth: avg, dirtied, elapsed, strictlimit };
        smooth(&mut self.domain, global);
        let global = DirtyThrottleControl { dirty_limit: self.domain.dirty_limit, ..*global };
        let mut rates = w.ratelimit.update(&self.behaviour.arithmetic, self.build, &global, &sample(global_ratio));
        if let Some((m, ratio)) = memcg {
            let id = self.wbs[wb].memcg;
            smooth(&mut self.cgroups[id].domain, m);
            let m = DirtyThrottleControl { dirty_limit: self.cgroups[id].domain.dirty_limit, ..*m };
            rates = rates.update(&self.behaviour.arithmetic, self.build, &m, &sample(ratio));
        }
        let w = &mut self.wbs[wb];
        w.ratelimit = rates;
        (w.bw_stamp, w.dirtied_stamp, w.written_stamp) = (now, now_dirtied, now_written);
        self.wb_update_write_bandwidth(wb, elapsed, written);
    }

    /// Has the wbs flushed that hold pages which a memcg dirtied in inodes of others.
    fn flush_foreign(&mut self, memcg: CgId) {
        let now = self.jiffies();
        let expire = self.build.ms_to_jiffies(self.settings.expire_centisecs * 10);
        while let Some(slot) = self.cgroups[memcg].foreign.take_flush(now, expire) {
            let find = |world: &World| {
                let (bdi, owner) = (u32::try_from(slot.bdi).ok()?, u32::try_from(slot.memcg).ok()?);
                let wb = world.wb_find(BdiId(bdi), CgId(owner))?;
                Some((wb, CgId(owner)))
            };
            let clear = |world: &mut World| {
                for other in &mut world.cgroups[memcg].foreign.slots {
                    if (other.bdi, other.memcg) == (slot.bdi, slot.memcg) {
                        other.in_flight = false;
                    }
                }
            };
            match find(self) {
                Some((wb, owner)) => {
                    let nr_pages = foreign_flush_pages(self.wb_stats(owner).dirty);
                    let work = Work {
                        sb: None,
                        is_sync: false,
                        is_tagged: false,
                        for_sync: false,
                        nr_pages,
                        reason: Reason::ForeignFlush,
                        done: None,
                        foreign: Some((memcg, wb)),
                    };
                    self.wb_queue_work(wb, work);
                }
                None => clear(self),
            }
        }
    }

    /// Sets the ratelimit of the gate and the machine's smoothed limit as the kernel does at boot. They stay until
    /// `dirty_ratio` or `dirty_bytes` change; the limit changes also when a task is throttled.
    pub(crate) fn set_ratelimit_at_boot(&mut self) {
        let early = if self.memory.total <= LOW_MEMORY { EARLY_LOW } else { EARLY };
        self.set_ratelimit_of(self.gdtc(true).thresh.min(early * self.settings.dirty.dirty_ratio / 100));
    }

    /// Sets the ratelimit and the smoothed limit after a change of settings.
    pub(crate) fn set_ratelimit(&mut self) {
        self.set_ratelimit_of(self.gdtc(true).thresh);
    }

    fn set_ratelimit_of(&mut self, thresh: u64) {
        self.domain.dirty_limit = thresh;
        self.ratelimit_pages = (thresh / (self.cpus * 32).max(1)).max(16);
    }
}

/// Checks the dirty domains for a task that has dirtied `pages`, and sleeps if it must.
pub(crate) fn balance_dirty_pages(sim: &Sim, pid: PidId, wb: WbId, pages: u64) -> BalanceDirtyPages<'_> {
    BalanceDirtyPages { sim, pid, wb, pages, pause: None }
}

/// Future of [`balance_dirty_pages`]. Written by hand, as a throttled task comes here with every stride.
pub(crate) struct BalanceDirtyPages<'a> {
    sim: &'a Sim,
    pid: PidId,
    wb: WbId,
    /// Pages that the check is for.
    pages: u64,
    /// The pause that the task takes.
    pause: Option<Pause>,
}

impl Future for BalanceDirtyPages<'_> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let (sim, pid) = (self.sim, self.pid);
        let mut world = sim.w();
        loop {
            if let Some(pause) = &self.pause {
                if world.now < pause.until && !sim.skip_to(&mut world, pause.until, PAUSES) {
                    return Poll::Pending;
                }
                world.pause_ends(pid, pause);
                // A killed task pauses no more.
                if pause.leaves || world.pids[pid].is_killed(world.now) {
                    return Poll::Ready(());
                }
            }
            let is_first = self.pause.is_none();
            self.pause = world.look(pid, self.wb, self.pages, is_first);
            if self.pause.is_none() {
                return Poll::Ready(());
            }
        }
    }
}
