// SPDX-License-Identifier: MIT OR Apache-2.0
//! The throttle: a task that dirtied its share of pages looks where the domains are, wakes the flusher,
//! and sleeps so that dirtying and writing come to balance. Mirrors balance_dirty_pages and
//! balance_dirty_pages_ratelimited of mm/page-writeback.c; the arithmetic is that of floodline-core.

use crate::arena::{BdiId, CgId, InodeId, PidId, WbId};
use crate::engine::Sim;
use crate::wb::{Domain, Reason, Work};
use crate::world::World;
use floodline_core::kernel::{
    BackgroundDomain, DirtyThrottleControl, DirtyTunables, DomainLimits, MdtcAvailInput, RatelimitSample, TaskClass,
    dirty_poll_interval, domain_dirty_limits, foreign_flush_pages, freerun_ceiling, mdtc_calc_avail, task_ratelimit,
    update_dirty_limit, wb_bg_thresh, wb_calc_thresh, wb_over_bg_thresh, wb_pause, wb_position_ratio,
};
use std::cell::Cell;

/// Thresholds of a domain when they were last asked for, and what they follow from: settings and dirtyable pages, its
/// own and for a memcg's the machine's.
#[derive(Debug, Default)]
pub(crate) struct KnownLimits(Cell<Option<(LimitsOf, DomainLimits)>>);

type LimitsOf = (DirtyTunables, u64, Option<u64>);

/// What a look at the domains says.
enum Verdict {
    /// Nobody is over anything, or the pause is too short to be taken.
    Go,
    /// Sleep so many jiffies, then leave or look again.
    Pause { jiffies: u64, paused_when: u64, next_pause: u64, leaves: bool },
}

impl World {
    /// The machine's domain: thresholds and counts; `counts_writeback` as throttling has it.
    pub(crate) fn gdtc(&self, counts_writeback: bool) -> DirtyThrottleControl {
        let limits = self.global_limits();
        let memory = &self.memory;
        DirtyThrottleControl {
            thresh: limits.thresh,
            bg_thresh: limits.bg_thresh,
            dirty: memory.nr_dirty + if counts_writeback { memory.nr_writeback } else { 0 },
            dirty_limit: self.domain.dirty_limit,
            ..DirtyThrottleControl::default()
        }
    }

    /// The machine's thresholds.
    fn global_limits(&self) -> DomainLimits {
        self.limits(&self.domain_limits, self.global_avail(), None)
    }

    /// Thresholds of a domain, with those it had when they were last asked for: that is much more often than what
    /// they follow from changes.
    fn limits(&self, known: &KnownLimits, avail: u64, global_avail: Option<u64>) -> DomainLimits {
        let of = (self.settings.dirty, avail, global_avail);
        match known.0.get() {
            Some((known, limits)) if known == of => limits,
            _ => {
                let (algorithm, page) = (&self.algorithm, crate::world::PAGE);
                let limits = domain_dirty_limits(algorithm, &of.0, page, avail, global_avail, TaskClass::Normal);
                known.0.set(Some((of, limits)));
                limits
            }
        }
    }

    /// A memcg's domain.
    pub(crate) fn mdtc(
        &self,
        memcg: CgId,
        counts_writeback: bool,
        global: &DirtyThrottleControl,
    ) -> DirtyThrottleControl {
        let stats = self.wb_stats(memcg);
        let dirty = stats.dirty + if counts_writeback { stats.writeback } else { 0 };
        let input = MdtcAvailInput {
            file: stats.file,
            headroom: self.headroom(memcg),
            dirty,
            global_avail: self.global_avail(),
            global_dirty: global.dirty,
        };
        let avail = mdtc_calc_avail(&self.algorithm, &input);
        let limits = self.limits(&self.cgroups[memcg].domain_limits, avail, Some(input.global_avail));
        DirtyThrottleControl {
            thresh: limits.thresh,
            bg_thresh: limits.bg_thresh,
            dirty,
            dirty_limit: self.cgroups[memcg].domain.dirty_limit,
            ..DirtyThrottleControl::default()
        }
    }

    fn wb_dirty_limits(&self, wb: WbId, dtc: &mut DirtyThrottleControl, is_memcg: bool) {
        let share = self.wb_share(wb, is_memcg);
        dtc.wb_thresh = wb_calc_thresh(&self.algorithm, &share, dtc.thresh, dtc.dirty);
        dtc.wb_bg_thresh = wb_bg_thresh(dtc.wb_thresh, dtc.bg_thresh, dtc.thresh);
        dtc.wb_dirty = self.wbs[wb].reclaimable + self.wbs[wb].writeback;
    }

    /// Whether there is background work for a wb.
    pub(crate) fn wb_over_bg_thresh(&self, wb: WbId) -> bool {
        let global = self.gdtc(false);
        if global.dirty > global.bg_thresh {
            // Whatever the shares are.
            return true;
        }
        let domain = |dtc: &DirtyThrottleControl, is_memcg| BackgroundDomain {
            dirty: dtc.dirty,
            bg_thresh: dtc.bg_thresh,
            share: self.wb_share(wb, is_memcg),
        };
        let memcg = self.wbs[wb].memcg;
        let m = (memcg != CgId::ROOT && self.algorithm.memcg_domain)
            .then(|| domain(&self.mdtc(memcg, false, &global), true));
        wb_over_bg_thresh(&self.algorithm, self.wbs[wb].reclaimable, &domain(&global, false), m.as_ref())
    }

    /// The threshold of a wb as debugfs shows it: the smaller of its shares.
    pub(crate) fn wb_thresh_shown(&self, wb: WbId) -> u64 {
        let mut global = self.gdtc(true);
        self.wb_dirty_limits(wb, &mut global, false);
        let memcg = self.wbs[wb].memcg;
        if memcg == CgId::ROOT || !self.algorithm.memcg_domain {
            return global.wb_thresh;
        }
        let mut m = self.mdtc(memcg, true, &global);
        self.wb_dirty_limits(wb, &mut m, true);
        global.wb_thresh.min(m.wb_thresh)
    }

    /// How many more pages a task may dirty before it has to look. 0: at once.
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

    /// The gate; says whether the task has to look.
    fn has_to_look(&mut self, pid: PidId, wb: WbId) -> bool {
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
        task.nr_dirtied >= limit
    }

    /// The wb that a task's dirtying of an inode is measured by: its own memcg's, not the inode's.
    pub(crate) fn throttled_wb(&mut self, pid: PidId, inode: InodeId) -> Option<WbId> {
        let sb = &self.sbs[self.inodes[inode].sb];
        let (bdi, has) = (sb.bdi?, sb.has_cgroup_writeback);
        let memcg = if has { self.memcg(self.pids[pid].cgroup) } else { CgId::ROOT };
        Some(self.wb_get(bdi, memcg))
    }

    fn look(&mut self, pid: PidId, wb: WbId, pages: u64, first: bool) -> Verdict {
        let now = self.jiffies();
        let (bdi, memcg): (BdiId, CgId) = (self.wbs[wb].bdi, self.wbs[wb].memcg);
        let strictlimit = self.bdis[bdi].strictlimit;
        let has_memcg = memcg != CgId::ROOT && self.algorithm.memcg_domain;
        let nr_dirty = self.memory.nr_dirty;
        let mut global = self.gdtc(true);
        let mut m = has_memcg.then(|| self.mdtc(memcg, true, &global));
        if strictlimit {
            self.wb_dirty_limits(wb, &mut global, false);
            if let Some(m) = &mut m {
                self.wb_dirty_limits(wb, m, true);
            }
        }
        let can_kick = self.settings.laptop_mode == 0 || !self.algorithm.laptop_mode;
        if self.algorithm.background_kick_in_loop && can_kick && nr_dirty > global.bg_thresh && !self.wbs[wb].running {
            self.wb_wake_now(wb);
        }
        if global.is_freerun(strictlimit) && m.as_ref().is_none_or(|m| m.is_freerun(strictlimit)) {
            let poll = |dtc: &DirtyThrottleControl| {
                if strictlimit {
                    dirty_poll_interval(dtc.wb_dirty, dtc.wb_thresh)
                } else {
                    dirty_poll_interval(dtc.dirty, dtc.thresh)
                }
            };
            let interval = poll(&global).min(m.as_ref().map_or(u64::MAX, poll));
            let task = &mut self.pids[pid];
            (task.dirty_paused_when, task.nr_dirtied, task.nr_dirtied_pause) = (now, 0, interval);
            if !self.algorithm.background_kick_in_loop {
                if !first {
                    self.wbs[wb].exceeded = false;
                }
                if can_kick && nr_dirty > global.bg_thresh && !self.wbs[wb].running {
                    self.wb_wake_now(wb);
                }
            }
            return Verdict::Go;
        }
        if !self.wbs[wb].running {
            self.wb_wake_now(wb);
        }
        if has_memcg {
            self.flush_foreign(memcg);
        }
        let avg = self.wbs[wb].bandwidth.avg_write_bandwidth;
        self.wb_dirty_limits(wb, &mut global, false);
        // Since commit a37b0715ddf3 ("mm/writeback: replace PF_LESS_THROTTLE with PF_LOCAL_THROTTLE"), 5.8: who
        // writes on behalf of another device is only held up by this one's own dirty pages.
        let is_local = self.pids[pid].is_local_throttle && self.kernel.at_least(5, 8);
        if is_local && global.wb_dirty <= freerun_ceiling(global.wb_thresh, global.wb_bg_thresh) {
            let task = &mut self.pids[pid];
            (task.dirty_paused_when, task.nr_dirtied) = (now, 0);
            task.nr_dirtied_pause = dirty_poll_interval(global.wb_dirty, global.wb_thresh);
            return Verdict::Go;
        }
        let mut exceeded = global.is_exceeded(strictlimit);
        let global_ratio = wb_position_ratio(&self.algorithm, &global, avg, strictlimit);
        let (mut chosen, mut pos_ratio, mut memcg_ratio) = (global, global_ratio, None);
        if let Some(m) = &mut m {
            self.wb_dirty_limits(wb, m, true);
            exceeded |= m.is_exceeded(strictlimit);
            let ratio = wb_position_ratio(&self.algorithm, m, avg, strictlimit);
            memcg_ratio = Some(ratio);
            if ratio < pos_ratio {
                (chosen, pos_ratio) = (*m, ratio);
            }
        }
        self.wbs[wb].exceeded = exceeded;
        if now > self.wbs[wb].bw_stamp + self.build.bandwidth_interval() {
            self.update_estimates(wb, &global, global_ratio, m.as_ref().zip(memcg_ratio));
        }
        let r = self.wbs[wb].ratelimit.dirty_ratelimit;
        let avg = self.wbs[wb].bandwidth.avg_write_bandwidth;
        let rate = task_ratelimit(r, pos_ratio);
        let bounds = wb_pause(self.build, chosen.wb_dirty, avg, r, rate);
        let task = &mut self.pids[pid];
        let mut start = now;
        let mut pause = bounds.max_pause;
        if let Some(period) = self.build.hz().saturating_mul(pages).checked_div(rate) {
            let period = i64::try_from(period).unwrap_or(i64::MAX);
            let think = match task.dirty_paused_when {
                0 => 0,
                when => i64::try_from(now).unwrap_or(0) - i64::try_from(when).unwrap_or(0),
            };
            let signed = period.saturating_sub(think);
            if signed < i64::try_from(bounds.min_pause).unwrap_or(i64::MAX) {
                if signed < -i64::try_from(self.build.hz()).unwrap_or(i64::MAX) {
                    (task.dirty_paused_when, task.nr_dirtied) = (now, 0);
                } else if period != 0 {
                    task.dirty_paused_when += u64::try_from(period).unwrap_or(0);
                    task.nr_dirtied = 0;
                } else if task.nr_dirtied_pause <= pages {
                    task.nr_dirtied_pause += pages;
                }
                return Verdict::Go;
            }
            pause = u64::try_from(signed).unwrap_or(0);
            if pause > bounds.max_pause {
                start += (pause - bounds.max_pause).min(bounds.max_pause);
                pause = bounds.max_pause;
            }
        }
        let leaves = rate > 0 || chosen.wb_dirty <= self.build.wb_stat_error();
        Verdict::Pause { jiffies: pause, paused_when: start + pause, next_pause: bounds.nr_dirtied_pause, leaves }
    }

    /// Limits, rates and bandwidth of a wb, at most every 200 ms.
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
            }
        };
        let w = &self.wbs[wb];
        let (elapsed, dirtied) = (now.saturating_sub(w.bw_stamp).max(1), w.dirtied - w.dirtied_stamp);
        let written = w.written - w.written_stamp;
        let avg = w.bandwidth.avg_write_bandwidth;
        let strictlimit = self.bdis[w.bdi].strictlimit;
        let sample = |pos_ratio| RatelimitSample { pos_ratio, avg_write_bandwidth: avg, dirtied, elapsed, strictlimit };
        smooth(&mut self.domain, global);
        let global = DirtyThrottleControl { dirty_limit: self.domain.dirty_limit, ..*global };
        let mut rates = w.ratelimit.update(&self.algorithm, self.build, &global, &sample(global_ratio));
        if let Some((m, ratio)) = memcg {
            let id = self.wbs[wb].memcg;
            smooth(&mut self.cgroups[id].domain, m);
            let m = DirtyThrottleControl { dirty_limit: self.cgroups[id].domain.dirty_limit, ..*m };
            rates = rates.update(&self.algorithm, self.build, &m, &sample(ratio));
        }
        let w = &mut self.wbs[wb];
        w.ratelimit = rates;
        (w.bw_stamp, w.dirtied_stamp, w.written_stamp) = (now, w.dirtied, w.written);
        self.wb_update_write_bandwidth(wb, elapsed, written);
    }

    /// Has the wbs flushed that hold what a memcg dirtied in inodes of others.
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

    /// The ratelimit of the gate, and the machine's smoothed limit, after a change of settings.
    pub(crate) fn set_ratelimit(&mut self) {
        let thresh = self.gdtc(true).thresh;
        self.domain.dirty_limit = thresh;
        self.ratelimit_pages = (thresh / (self.cpus * 32).max(1)).max(16);
    }
}

/// A poll point: looks if the task has dirtied enough, and sleeps if it must.
pub(crate) async fn balance_dirty_pages_ratelimited(sim: &Sim, pid: PidId, inode: InodeId) {
    let (wb, pages) = {
        let mut world = sim.w();
        let Some(wb) = world.throttled_wb(pid, inode) else { return };
        if !world.has_to_look(pid, wb) {
            return;
        }
        (wb, world.pids[pid].nr_dirtied)
    };
    let mut first = true;
    loop {
        let (until, since, paused_when, next_pause, leaves) = {
            let mut world = sim.w();
            let verdict = world.look(pid, wb, pages, first);
            let Verdict::Pause { jiffies, paused_when, next_pause, leaves } = verdict else { return };
            let now = world.now;
            world.wbs[wb].last_sleep = now;
            let bdi = world.wbs[wb].bdi;
            world.bdis[bdi].last_sleep = now;
            (world.after_jiffies(jiffies), world.io_wait_begins(pid), paused_when, next_pause, leaves)
        };
        first = false;
        sim.sleep_until(until, "the end of its pause (balance_dirty_pages)").await;
        let mut world = sim.w();
        world.io_wait_ends(pid, since);
        let task = &mut world.pids[pid];
        (task.dirty_paused_when, task.nr_dirtied, task.nr_dirtied_pause) = (paused_when, 0, next_pause);
        if leaves {
            return;
        }
    }
}
