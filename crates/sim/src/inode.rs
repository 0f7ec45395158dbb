// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inodes: their pages, their dirty flags, the list of a wb they are on, and the accounting when a page becomes
//! dirty, is submitted, is clean, or is gone. Mirrors struct inode as fs/fs-writeback.c uses it, and
//! folio_account_dirtied and its relatives of mm/page-writeback.c.

use crate::arena::{CgId, InodeId, PidId, SbId, WbId};
use crate::cgroup::ByOwner;
use crate::conserved::{Conserved, Fate};
use crate::engine::{Due, Waiters};
use crate::gaps::Gaps;
use crate::journal::Unsynced;
use crate::page_cache::{Age, Extent, PageCache};
use crate::syscalls::Reads;
use crate::wb::Lock;
use crate::wb_stat::WbStat;
use crate::world::{PAGE, World};
use crate::writable::Writable;
use floodline_kernel::ForeignHistory;

/// The lists of a wb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListName {
    Dirty,
    Io,
    MoreIo,
    DirtyTime,
    Attached,
}

impl ListName {
    /// Whether its inodes have something to be written.
    pub(crate) fn is_dirty(self) -> bool {
        matches!(self, ListName::Dirty | ListName::Io | ListName::MoreIo)
    }
}

/// A list of inodes, oldest first; the links are in the inodes.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) head: Option<InodeId>,
    pub(crate) tail: Option<InodeId>,
    pub(crate) len: u64,
}

/// An inode.
#[derive(Debug)]
pub(crate) struct Inode {
    pub(crate) sb: SbId,
    pub(crate) size: u64,
    /// Size that its filesystem has logged, on XFS: data beyond it has to change the size once it is on the device.
    pub(crate) disk_size: u64,
    /// End of the allocated blocks; dirty pages beyond are delayed allocations.
    pub(crate) allocated: u64,
    /// Pages before that end that have no data on the device, if there are any.
    pub(crate) gaps: Option<Box<Gaps>>,
    /// Page at which the blocks end that XFS reserved for it and for its growth.
    pub(crate) reserved: u64,
    /// Place after the file that lies before it on the device, if their blocks are side by side.
    pub(crate) follows: Option<u64>,
    /// Number of its extents on ext4.
    pub(crate) extents: u32,
    /// Blocks allocated or reserved for it.
    pub(crate) space: u64,
    pub(crate) cache: PageCache,
    /// Reads under way into its cache.
    pub(crate) reads: Reads,
    pub(crate) conserved: Conserved,
    /// Whether pages of it were taken out of the cache since caches were last dropped.
    pub(crate) has_lost_pages: bool,
    pub(crate) wb: Option<WbId>,
    pub(crate) list: Option<ListName>,
    pub(crate) prev: Option<InodeId>,
    pub(crate) next: Option<InodeId>,
    pub(crate) is_dirty_pages: bool,
    pub(crate) is_dirty_meta: bool,
    pub(crate) is_dirty_time: bool,
    /// Whether a thread is writing it (`I_SYNC`).
    pub(crate) is_syncing: bool,
    /// Whether its superblock lists it as possibly having pages under writeback.
    pub(crate) is_noted: bool,
    pub(crate) is_switching: bool,
    /// Jiffies.
    pub(crate) dirtied_when: u64,
    pub(crate) dirtied_time_when: u64,
    pub(crate) writeback_index: u64,
    pub(crate) history: ForeignHistory,
    pub(crate) is_unlinked: bool,
    pub(crate) opens: u32,
    /// Truncated to zero since its last flush: its close starts writing.
    pub(crate) was_truncated: bool,
    /// Pages that a mapping may store to without a fault.
    pub(crate) writable: Writable,
    /// Transaction of its last change, and of its last change that its data needs.
    pub(crate) sync_tid: u64,
    pub(crate) datasync_tid: u64,
    /// Metadata that an fsync has to write in place, in a filesystem without a journal.
    pub(crate) unsynced: Unsynced,
    /// The metadata block that contains it.
    pub(crate) block: u64,
    /// Number of the directory of the root that contains it on ext4; 0 is the root itself.
    pub(crate) directory: u64,
    /// Its allocation group on XFS.
    pub(crate) group: u32,
    /// Jiffies of the last access and modification, as far as they are recorded.
    pub(crate) atime: u64,
    pub(crate) mtime: u64,
    /// Held by a writer.
    pub(crate) lock: Lock,
    /// Processes waiting for its pages, or for the thread that writes it.
    pub(crate) waiters: Waiters,
}

impl Inode {
    pub(crate) fn new(sb: SbId, block: u64) -> Inode {
        Inode {
            sb,
            size: 0,
            disk_size: 0,
            allocated: 0,
            gaps: None,
            reserved: 0,
            directory: 0,
            group: 0,
            follows: None,
            extents: 0,
            space: 0,
            cache: PageCache::default(),
            reads: Reads::default(),
            conserved: Conserved::default(),
            has_lost_pages: false,
            wb: None,
            list: None,
            prev: None,
            next: None,
            is_dirty_pages: false,
            is_dirty_meta: false,
            is_dirty_time: false,
            is_syncing: false,
            is_noted: false,
            is_switching: false,
            dirtied_when: 0,
            dirtied_time_when: 0,
            writeback_index: 0,
            history: ForeignHistory::default(),
            is_unlinked: false,
            opens: 0,
            was_truncated: false,
            writable: Writable::default(),
            sync_tid: 0,
            datasync_tid: 0,
            unsynced: Unsynced::default(),
            block,
            atime: 0,
            mtime: 0,
            lock: Lock::default(),
            waiters: Waiters::default(),
        }
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty_pages || self.is_dirty_meta
    }
}

/// Kind of change that made an inode dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dirt {
    Pages,
    Meta,
    Time,
}

impl World {
    /// Attaches an inode to the wb of a memcg, if it has none.
    #[inline]
    fn inode_attach(&mut self, inode: InodeId, memcg: CgId) -> Option<WbId> {
        self.inodes[inode].wb.or_else(|| self.attach_new(inode, memcg))
    }

    fn attach_new(&mut self, inode: InodeId, memcg: CgId) -> Option<WbId> {
        let sb = &self.sbs[self.inodes[inode].sb];
        let bdi = sb.bdi?;
        let memcg = if sb.has_cgroup_writeback { memcg } else { CgId::ROOT };
        let wb = self.wb_get(bdi, memcg);
        self.inodes[inode].wb = Some(wb);
        Some(wb)
    }

    /// Marks an inode dirty and puts it on a list (`__mark_inode_dirty`).
    pub(crate) fn mark_inode_dirty(&mut self, inode: InodeId, dirt: Dirt, memcg: CgId) {
        let Some(wb) = self.inode_attach(inode, memcg) else { return };
        let i = &mut self.inodes[inode];
        let was_dirty = i.is_dirty();
        match dirt {
            Dirt::Pages => i.is_dirty_pages = true,
            Dirt::Meta => i.is_dirty_meta = true,
            Dirt::Time if was_dirty || i.is_dirty_time => {
                i.is_dirty_time = true;
                return;
            }
            Dirt::Time => i.is_dirty_time = true,
        }
        if dirt == Dirt::Meta {
            // Its time stamps are written with it.
            i.is_dirty_time = false;
        }
        if i.is_unlinked && i.opens == 0
            || was_dirty
            || i.is_syncing
            || matches!(i.list, Some(ListName::Io | ListName::MoreIo))
        {
            return;
        }
        let now = self.jiffies();
        let i = &mut self.inodes[inode];
        i.dirtied_when = now;
        if dirt == Dirt::Time {
            i.dirtied_time_when = now;
            self.list_add(inode, ListName::DirtyTime);
            return;
        }
        let had = self.wbs[wb].has_dirty_io;
        self.list_add(inode, ListName::Dirty);
        if !had {
            self.wb_wake_delayed(wb);
        }
    }

    /// Accounts for clean pages that became dirty, in folios of a size; `owner` is the memcg that they are charged to.
    pub(crate) fn account_dirtied(&mut self, inode: InodeId, pages: u64, folio: u64, owner: CgId, by: Option<PidId>) {
        let Some(wb) = self.inode_attach(inode, owner) else { return };
        if self.wbs[wb].held.is_some() {
            let cpu = by.map(|pid| self.pids[pid].cpu);
            self.wb_stat_mod(wb, WbStat::Reclaimable, pages.cast_signed(), folio, cpu);
            self.wb_stat_mod(wb, WbStat::Dirtied, pages.cast_signed(), folio, cpu);
        }
        self.memory.nr_dirty += pages;
        self.memory.nr_dirtied += pages;
        self.memory.conserved.add(Fate::Dirtied, pages);
        self.inodes[inode].conserved.add(Fate::Dirtied, pages);
        self.charge(owner, |charged| charged.dirty += pages);
        let w = &mut self.wbs[wb];
        w.reclaimable += pages;
        w.dirtied += pages;
        w.conserved.add(Fate::Dirtied, pages);
        let wb_memcg = w.memcg;
        if let Some(pid) = by {
            let task = &mut self.pids[pid];
            task.io.write_bytes += pages * PAGE;
            task.nr_dirtied += pages;
            let cpu = task.cpu;
            self.percpu[cpu].0 += pages;
        }
        if wb_memcg != owner && self.unified && self.sbs[self.inodes[inode].sb].has_cgroup_writeback {
            self.track_foreign(wb, owner);
        }
    }

    fn track_foreign(&mut self, wb: WbId, owner: CgId) {
        if !self.behaviour.memcg.foreign_flush || owner == CgId::ROOT {
            return;
        }
        let now = self.jiffies();
        let (second, expire) = (self.build.hz(), self.build.ms_to_jiffies(self.settings.expire_centisecs * 10));
        let (bdi, memcg) = (u64::from(self.wbs[wb].bdi.0), u64::from(self.wbs[wb].memcg.0));
        self.cgroups[owner].foreign.track(bdi, memcg, now, second, expire);
    }

    /// Starts writeback of a run of pages on a CPU, by default that of the flusher: they are no longer dirty, and mappings
    /// are write-protected.
    pub(crate) fn start_writeback(&mut self, inode: InodeId, start: u64, len: u64, owner: CgId, cpu: Option<usize>) {
        let i = &mut self.inodes[inode];
        let was_idle = i.cache.writeback == 0;
        let mut folio = 1;
        i.cache.update(start, len, |_, extent| {
            folio = extent.folio;
            (extent.dirty, extent.writeback, extent.blocks) = (false, true, extent.len);
        });
        i.writable.remove(start, len);
        let (wb, sb) = (i.wb, i.sb);
        self.memory.nr_dirty -= len;
        self.memory.nr_writeback += len;
        self.charge(owner, |charged| {
            charged.dirty -= len;
            charged.writeback += len;
        });
        if let Some(wb) = wb {
            let w = &mut self.wbs[wb];
            w.reclaimable -= len;
            w.writeback += len;
            w.writeback_inodes += u64::from(was_idle);
            self.wb_stat_mod(wb, WbStat::Reclaimable, -len.cast_signed(), folio.into(), cpu);
            self.wb_stat_mod(wb, WbStat::Writeback, len.cast_signed(), folio.into(), cpu);
        }
        if was_idle && !std::mem::replace(&mut self.inodes[inode].is_noted, true) {
            self.sbs[sb].under_writeback.push(inode);
        }
    }

    /// Inodes of a superblock that have pages under writeback, in the order of their ids.
    pub(crate) fn under_writeback(&mut self, sb: SbId) -> Vec<InodeId> {
        let (noted, inodes) = (&mut self.sbs[sb].under_writeback, &mut self.inodes);
        noted.retain(|inode| {
            let inode = &mut inodes[*inode];
            inode.is_noted = inode.cache.writeback > 0;
            inode.is_noted
        });
        noted.sort_unstable();
        noted.clone()
    }

    /// Ends writeback of a run.
    pub(crate) fn end_writeback(&mut self, inode: InodeId, start: u64, len: u64) {
        let mut written = ByOwner::default();
        let mut rotated: Vec<(u64, Extent)> = Vec::new();
        let mut folio = 1;
        let i = &mut self.inodes[inode];
        i.cache.update(start, len, |at, extent| {
            if extent.writeback {
                folio = extent.folio;
                extent.writeback = false;
                if extent.reclaim {
                    extent.reclaim = false;
                    extent.age = Age::new(extent.dirty, extent.age.is_referenced());
                    rotated.push((at, *extent));
                }
                written.add(extent.owner, extent.len.into());
            }
        });
        let is_idle = i.cache.writeback == 0;
        let wb = i.wb;
        for (owner, pages) in written {
            self.memory.nr_writeback -= pages;
            self.memory.nr_written += pages;
            self.memory.conserved.add(Fate::Written, pages);
            self.inodes[inode].conserved.add(Fate::Written, pages);
            self.charge(owner, |charged| charged.writeback -= pages);
            if let Some(wb) = wb {
                self.wbs[wb].writeback -= pages;
                self.wbs[wb].conserved.add(Fate::Written, pages);
                self.wb_stat_mod(wb, WbStat::Writeback, -pages.cast_signed(), folio.into(), None);
                self.wb_complete(wb, pages, folio.into());
            }
        }
        for (at, extent) in rotated {
            self.rotate_reclaimable(inode, at, extent.len, extent.owner, !extent.dirty);
        }
        if let Some(wb) = wb.filter(|_| is_idle) {
            let w = &mut self.wbs[wb];
            w.writeback_inodes = w.writeback_inodes.saturating_sub(1);
            // One more estimate follows 200 ms later.
            if self.behaviour.arithmetic.bandwidth_skips_idle && !w.bw_due {
                w.bw_due = true;
                let at = self.now + 200_000_000;
                self.queue.push(at, Due::Bandwidth(wb));
            }
        }
        let sb = self.inodes[inode].sb;
        if self.sbs[sb].metadata == Some(inode) {
            let blocks: Vec<u64> = (start..start + len).collect();
            self.checkpoint_ended(sb, inode, &blocks);
        }
        self.wake_waiters(inode);
        if !self.reclaim_waiters.is_empty() {
            let reclaim = self.reclaim_waiters.take();
            self.wake_all(reclaim);
        }
    }

    /// Wakes the processes that wait for an inode's pages, or for the thread that writes it.
    pub(crate) fn wake_waiters(&mut self, inode: InodeId) {
        let waiters = &mut self.inodes[inode].waiters;
        // Mostly no process waits.
        if !waiters.is_empty() {
            let waiters = waiters.take();
            self.wake_all(waiters);
        }
    }

    /// Detaches an inode from its wb. The next memcg that dirties it owns it.
    pub(crate) fn leave_wb(&mut self, inode: InodeId) {
        self.list_del(inode);
        let i = &mut self.inodes[inode];
        (i.wb, i.history) = (None, ForeignHistory::default());
    }

    /// Accounts for pages that left the cache; dirty ones among them are cancelled.
    pub(crate) fn forget(&mut self, inode: InodeId, gone: &[(u64, Extent)], by: Option<PidId>) {
        self.inodes[inode].has_lost_pages |= !gone.is_empty();
        for (_, extent) in gone {
            let len = u64::from(extent.len);
            self.uncache(inode, extent);
            if extent.dirty {
                self.memory.nr_dirty -= len;
                self.memory.conserved.add(Fate::Cancelled, len);
                self.inodes[inode].conserved.add(Fate::Cancelled, len);
                if let Some(wb) = self.inodes[inode].wb {
                    self.wbs[wb].reclaimable -= len;
                    self.wbs[wb].conserved.add(Fate::Cancelled, len);
                    let cpu = by.map(|pid| self.pids[pid].cpu);
                    self.wb_stat_mod(wb, WbStat::Reclaimable, -len.cast_signed(), extent.folio.into(), cpu);
                }
                if let Some(pid) = by {
                    self.pids[pid].io.cancelled += len * PAGE;
                }
            }
        }
    }
}
