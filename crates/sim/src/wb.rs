// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writeback structures: one per bdi and memcg, with the lists of their dirty inodes, the counters and the
//! estimates that throttling works from; and dirty domains. Mirrors struct bdi_writeback and struct
//! wb_domain (include/linux/backing-dev-defs.h, mm/page-writeback.c, mm/backing-dev.c).

use crate::arena::{BdiId, BlockId, CgId, InodeId, SbId, WbId};
use crate::conserved::Conserved;
use crate::domain::KnownWbLimits;
use crate::engine::{Alarm, Due, Ticket, Waiters};
use crate::inode::{List, ListName};
use crate::wb_stat::{Held, WbStat};
use crate::world::World;
use floodline_kernel::{
    DirtyRatelimit, FRAC, FpropGlobal, FpropLocal, WbShare, WriteBandwidth, max_frac, wb_min_max_ratio,
};
use std::collections::VecDeque;

/// A dirty domain: the machine's or a memcg's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Domain {
    /// Smoothed hard limit, pages.
    pub(crate) dirty_limit: u64,
    /// Jiffies of its last update.
    pub(crate) dirty_limit_at: u64,
    pub(crate) completions: FpropGlobal,
}

/// A backing device info.
#[derive(Debug)]
pub(crate) struct Bdi {
    /// `MAJOR:MINOR` of its disk, or `btrfs-N`.
    pub(crate) name: String,
    pub(crate) device: BlockId,
    /// Its root cgroup's wb.
    pub(crate) root: WbId,
    pub(crate) wbs: Vec<WbId>,
    /// In the kernel's own units.
    pub(crate) min_ratio: u64,
    pub(crate) max_ratio: u64,
    pub(crate) strictlimit: bool,
    pub(crate) read_ahead: u64,
    /// Sum of the average bandwidths of its wbs that have dirty inodes.
    pub(crate) tot_write_bandwidth: u64,
    /// Time at which a dirtier last slept for it.
    pub(crate) last_sleep: u64,
    /// Timer that has all of it written in laptop mode.
    pub(crate) laptop_mode_wb_timer: Alarm,
    /// Held while inodes are switched or all of a superblock is synced.
    pub(crate) switch_lock: Lock,
}

/// A lock. It does not record its holder; processes that want it wait in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    pub(crate) is_held: bool,
    /// The process that gets the lock next, before all others, because it has waited too long.
    pub(crate) handoff: Option<u32>,
    /// Readers; those of them that were granted the lock but have not run since; processes that wait to be readers.
    pub(crate) readers: u32,
    pub(crate) granted: u32,
    pub(crate) sharing: u32,
    pub(crate) waiters: Waiters,
}

/// Reason for which pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Background,
    Periodic,
    Sync,
    Vmscan,
    LaptopTimer,
    ForeignFlush,
}

/// One piece of work of a flusher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Only inodes of this superblock.
    pub(crate) sb: Option<SbId>,
    /// Data integrity: writes every page that is dirty now and waits for it.
    pub(crate) is_sync: bool,
    /// Only pages that are dirty at its start.
    pub(crate) is_tagged: bool,
    /// Part of a sync of everything, which does the waiting itself.
    pub(crate) for_sync: bool,
    pub(crate) nr_pages: u64,
    pub(crate) reason: Reason,
    /// Completion cell that a task waits for.
    pub(crate) done: Option<u32>,
    /// The memcg and slot of a foreign flush.
    pub(crate) foreign: Option<(CgId, WbId)>,
}

/// A writeback structure.
#[derive(Debug)]
pub(crate) struct Wb {
    pub(crate) bdi: BdiId,
    pub(crate) memcg: CgId,
    pub(crate) b_dirty: List,
    pub(crate) b_io: List,
    pub(crate) b_more_io: List,
    pub(crate) b_dirty_time: List,
    pub(crate) b_attached: List,
    pub(crate) reclaimable: u64,
    pub(crate) writeback: u64,
    pub(crate) dirtied: u64,
    pub(crate) written: u64,
    /// Per-CPU parts of these four counters that are not in the totals yet, on large machines.
    pub(crate) held: Option<Held>,
    pub(crate) conserved: Conserved,
    pub(crate) bandwidth: WriteBandwidth,
    pub(crate) ratelimit: DirtyRatelimit,
    /// Jiffies of the last estimate, and the counters at that time.
    pub(crate) bw_stamp: u64,
    pub(crate) dirtied_stamp: u64,
    pub(crate) written_stamp: u64,
    pub(crate) completions: FpropLocal,
    pub(crate) memcg_completions: FpropLocal,
    pub(crate) known_limits: KnownWbLimits,
    pub(crate) exceeded: bool,
    pub(crate) running: bool,
    pub(crate) has_dirty_io: bool,
    pub(crate) start_all: Option<Reason>,
    pub(crate) work: VecDeque<Work>,
    /// Time at which the flusher is due, and its ticket while it sleeps.
    pub(crate) due: Option<u64>,
    pub(crate) flusher: Option<Ticket>,
    /// Timer that wakes the flusher when it is due.
    pub(crate) alarm: Alarm,
    /// Jiffies of the last pass over old data.
    pub(crate) last_old_flush: u64,
    /// Inodes with pages under writeback.
    pub(crate) writeback_inodes: u64,
    pub(crate) last_sleep: u64,
    pub(crate) is_dying: bool,
    /// Whether bandwidth is to be estimated once more after the last completion.
    pub(crate) bw_due: bool,
}

impl Wb {
    pub(crate) fn list_named(&self, name: ListName) -> &List {
        match name {
            ListName::Dirty => &self.b_dirty,
            ListName::Io => &self.b_io,
            ListName::MoreIo => &self.b_more_io,
            ListName::DirtyTime => &self.b_dirty_time,
            ListName::Attached => &self.b_attached,
        }
    }

    fn list_mut(&mut self, name: ListName) -> &mut List {
        match name {
            ListName::Dirty => &mut self.b_dirty,
            ListName::Io => &mut self.b_io,
            ListName::MoreIo => &mut self.b_more_io,
            ListName::DirtyTime => &mut self.b_dirty_time,
            ListName::Attached => &mut self.b_attached,
        }
    }
}

impl World {
    /// Returns the wb of a memcg on a bdi, if there is one.
    pub(crate) fn wb_find(&self, bdi: BdiId, memcg: CgId) -> Option<WbId> {
        let wbs = &self.cgroups[memcg].wbs;
        wbs.binary_search_by_key(&bdi, |(of, _)| *of).ok().map(|at| wbs[at].1)
    }

    /// Returns the wb of a memcg on a bdi, and creates it if needed.
    pub(crate) fn wb_get(&mut self, bdi: BdiId, memcg: CgId) -> WbId {
        let memcg = if self.unified { memcg } else { CgId::ROOT };
        if let Some(wb) = self.wb_find(bdi, memcg) {
            return wb;
        }
        // No wb is made for a dead cgroup.
        let alive = self.ancestors(memcg).find(|id| !self.cgroups[*id].is_dead).unwrap_or(CgId::ROOT);
        if alive != memcg {
            return self.wb_get(bdi, alive);
        }
        let now = self.jiffies();
        let wb = self.wbs.push(Wb {
            bdi,
            memcg,
            b_dirty: List::default(),
            b_io: List::default(),
            b_more_io: List::default(),
            b_dirty_time: List::default(),
            b_attached: List::default(),
            reclaimable: 0,
            writeback: 0,
            dirtied: 0,
            written: 0,
            held: Held::on(self.build, &self.behaviour.arithmetic),
            conserved: Conserved::default(),
            bandwidth: WriteBandwidth::initial(self.build),
            ratelimit: DirtyRatelimit::initial(self.build),
            bw_stamp: now,
            dirtied_stamp: 0,
            written_stamp: 0,
            completions: FpropLocal::default(),
            memcg_completions: FpropLocal::default(),
            known_limits: KnownWbLimits::default(),
            exceeded: false,
            running: false,
            has_dirty_io: false,
            start_all: None,
            work: VecDeque::new(),
            due: None,
            flusher: None,
            alarm: Alarm::default(),
            last_old_flush: now,
            writeback_inodes: 0,
            last_sleep: 0,
            is_dying: false,
            bw_due: false,
        });
        self.bdis[bdi].wbs.push(wb);
        let wbs = &mut self.cgroups[memcg].wbs;
        wbs.insert(wbs.partition_point(|(of, _)| *of < bdi), (bdi, wb));
        self.new_wbs.push(wb);
        wb
    }

    /// "Delayed wake": due after an interval unless it is due already.
    pub(crate) fn wb_wake_delayed(&mut self, wb: WbId) {
        if self.wbs[wb].due.is_some() {
            return;
        }
        let at = self.timer(self.settings.writeback_centisecs * 10_000_000);
        let w = &mut self.wbs[wb];
        w.due = Some(at);
        if w.flusher.is_some() {
            self.queue.set_alarm(&mut w.alarm, at, Due::Alarm(wb));
        }
    }

    /// "Wake now".
    pub(crate) fn wb_wake_now(&mut self, wb: WbId) {
        let now = self.now;
        self.wbs[wb].due = Some(now);
        if let Some(ticket) = self.wbs[wb].flusher.take() {
            self.wbs[wb].alarm.stop();
            self.wake(ticket);
        }
    }

    /// Hands work to a flusher.
    pub(crate) fn wb_queue_work(&mut self, wb: WbId, work: Work) {
        self.wbs[wb].work.push_back(work);
        self.wb_wake_now(wb);
    }

    /// Takes an inode off its list.
    pub(crate) fn list_del(&mut self, inode: InodeId) {
        if let Some(wb) = self.unlink(inode) {
            self.wb_dirty_io(wb);
        }
    }

    /// Takes an inode off its list without updating the wb's dirty state. Returns the wb, if the inode was on a list.
    fn unlink(&mut self, inode: InodeId) -> Option<WbId> {
        let i = &mut self.inodes[inode];
        let (name, wb) = (i.list.take()?, i.wb?);
        let (prev, next) = (i.prev.take(), i.next.take());
        let list = self.wbs[wb].list_mut(name);
        list.len -= 1;
        match prev {
            Some(prev) => self.inodes[prev].next = next,
            None => list.head = next,
        }
        match next {
            Some(next) => self.inodes[next].prev = prev,
            None => list.tail = prev,
        }
        self.dirty_inodes -= u64::from(name.is_dirty());
        Some(wb)
    }

    /// Moves an inode to the newest end of a list of its wb.
    pub(crate) fn list_add(&mut self, inode: InodeId, name: ListName) {
        let Some(wb) = self.inodes[inode].wb else { return };
        self.unlink(inode);
        let list = self.wbs[wb].list_mut(name);
        let last = list.tail.replace(inode);
        list.len += 1;
        match last {
            Some(last) => self.inodes[last].next = Some(inode),
            None => list.head = Some(inode),
        }
        let i = &mut self.inodes[inode];
        (i.prev, i.list) = (last, Some(name));
        self.dirty_inodes += u64::from(name.is_dirty());
        self.wb_dirty_io(wb);
    }

    /// Puts an inode on the dirty list of its wb, in the order of age.
    pub(crate) fn list_add_by_age(&mut self, inode: InodeId) {
        let Some(wb) = self.inodes[inode].wb else { return };
        let when = self.inodes[inode].dirtied_when;
        self.list_add(inode, ListName::Dirty);
        // Newer inodes go behind it again.
        let mut next = None;
        let mut before = self.inodes[inode].prev;
        while let Some(newer) = before.filter(|other| self.inodes[*other].dirtied_when > when) {
            next = Some(newer);
            before = self.inodes[newer].prev;
        }
        let (Some(next), Some(last)) = (next, self.inodes[inode].prev) else { return };
        self.inodes[last].next = None;
        self.wbs[wb].b_dirty.tail = Some(last);
        (self.inodes[inode].prev, self.inodes[inode].next) = (before, Some(next));
        self.inodes[next].prev = Some(inode);
        match before {
            Some(before) => self.inodes[before].next = Some(inode),
            None => self.wbs[wb].b_dirty.head = Some(inode),
        }
    }

    /// Updates `has_dirty_io` and the bdi's sum of bandwidths.
    fn wb_dirty_io(&mut self, wb: WbId) {
        let w = &mut self.wbs[wb];
        let has = w.b_dirty.len + w.b_io.len + w.b_more_io.len > 0;
        if has != std::mem::replace(&mut w.has_dirty_io, has) {
            let (tot, avg) = (&mut self.bdis[w.bdi].tot_write_bandwidth, w.bandwidth.avg_write_bandwidth);
            *tot = if has { *tot + avg } else { tot.saturating_sub(avg) };
        }
    }

    /// The share of a wb in the machine's domain.
    pub(crate) fn wb_share(&self, wb: WbId) -> WbShare {
        let w = &self.wbs[wb];
        let bdi = &self.bdis[w.bdi];
        let (numerator, denominator) = w.completions.fraction(self.build, &self.domain.completions);
        let (min_ratio, max_ratio) = wb_min_max_ratio(
            &self.behaviour.arithmetic,
            bdi.min_ratio,
            bdi.max_ratio,
            w.bandwidth.avg_write_bandwidth,
            bdi.tot_write_bandwidth,
        );
        let (min_ratio_sum, strictlimit) = (self.bdi_min_ratio, bdi.strictlimit);
        WbShare { numerator, denominator, min_ratio, max_ratio, min_ratio_sum, strictlimit }
    }

    /// Share of a wb in its memcg's domain; `share` is its share in the machine's domain.
    pub(crate) fn memcg_share(&self, wb: WbId, share: WbShare) -> WbShare {
        let w = &self.wbs[wb];
        let domain = &self.cgroups[w.memcg].domain.completions;
        let (numerator, denominator) = w.memcg_completions.fraction(self.build, domain);
        WbShare { numerator, denominator, ..share }
    }

    /// Counts pages of a wb that finished writeback, in folios of a given size.
    pub(crate) fn wb_complete(&mut self, wb: WbId, pages: u64, folio: u64) {
        self.wb_stat_mod(wb, WbStat::Written, pages.cast_signed(), folio, None);
        let now = self.jiffies();
        let frac = max_frac(&self.behaviour.arithmetic, self.bdis[self.wbs[wb].bdi].max_ratio).min(FRAC);
        let w = &mut self.wbs[wb];
        w.written += pages;
        self.domain.completions.end_period(self.build, now);
        self.domain.completions.add(&self.behaviour.arithmetic, self.build, &mut w.completions, pages, frac, now);
        if w.memcg != CgId::ROOT {
            let domain = &mut self.cgroups[w.memcg].domain.completions;
            domain.end_period(self.build, now);
            domain.add(&self.behaviour.arithmetic, self.build, &mut w.memcg_completions, pages, frac, now);
        }
    }

    /// Computes the next estimate of bandwidth, and updates the sum over the bdi.
    pub(crate) fn wb_update_write_bandwidth(&mut self, wb: WbId, elapsed: u64, written: u64) {
        let build = self.build;
        let w = &mut self.wbs[wb];
        let before = w.bandwidth.avg_write_bandwidth;
        w.bandwidth = w.bandwidth.update(build, written, elapsed);
        let (bdi, after) = (w.bdi, w.bandwidth.avg_write_bandwidth);
        if w.has_dirty_io {
            let tot = &mut self.bdis[bdi].tot_write_bandwidth;
            *tot = (*tot + after).saturating_sub(before);
        }
    }

    /// Estimates without a throttled task: at the end of writing an inode, and after completions (5.15).
    pub(crate) fn wb_update_bandwidth(&mut self, wb: WbId) {
        let elapsed = self.jiffies().saturating_sub(self.wbs[wb].bw_stamp);
        // The last estimate is mostly recent enough.
        if elapsed >= self.build.bandwidth_interval() {
            self.wb_update_bandwidth_after(wb, elapsed);
        }
    }

    #[cold]
    fn wb_update_bandwidth_after(&mut self, wb: WbId, elapsed: u64) {
        let (now_written, now_dirtied) = (self.wb_stat(wb, WbStat::Written), self.wb_stat(wb, WbStat::Dirtied));
        let w = &mut self.wbs[wb];
        let written = now_written - w.written_stamp;
        (w.bw_stamp, w.written_stamp, w.dirtied_stamp) = (w.bw_stamp + elapsed, now_written, now_dirtied);
        self.wb_update_write_bandwidth(wb, elapsed.max(1), written);
    }

    /// At the start of writing: idle time must not count as time of low bandwidth (5.15).
    pub(crate) fn wb_bandwidth_start(&mut self, wb: WbId) {
        let now = self.jiffies();
        let w = &self.wbs[wb];
        if w.writeback_inodes == 0 && now.saturating_sub(w.bw_stamp) > self.build.bandwidth_idle() {
            let stamps = (now, self.wb_stat(wb, WbStat::Written), self.wb_stat(wb, WbStat::Dirtied));
            let w = &mut self.wbs[wb];
            (w.bw_stamp, w.written_stamp, w.dirtied_stamp) = stamps;
        }
    }
}
