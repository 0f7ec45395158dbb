// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing the dirty pages of one inode, by a flusher or by whoever calls fsync: which pages, in which
//! requests, and what the filesystem does before and after. Mirrors write_cache_pages and the
//! writepages of fs/ext4/inode.c and fs/iomap/buffered-io.c.

use crate::arena::{BlockId, CgId, InodeId, WbId};
use crate::block::{BIO_PAGES, Class, Done, Entry, Request, Way, device_page, enter};
use crate::engine::Sim;
use crate::journal;
use crate::page_cache::{DirtyRun, Extent};
use crate::world::{PAGE, World};
use floodline_core::kernel::ForeignTally;
use floodline_core::scenario::FsType;

/// Blocks that ext4 maps at once.
const EXT4_EXTENT: u64 = 2048;
/// Pages that other filesystems map at once: bounds the work between two looks at the rest.
const OTHER_EXTENT: u64 = 8192;

/// How an inode is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Waits for pages that are being written and are dirty again.
    pub(crate) is_sync: bool,
    /// Only pages that are dirty now.
    pub(crate) is_tagged: bool,
    /// From where the last pass ended.
    pub(crate) is_cyclic: bool,
    /// Pages, or folios where the kernel counts those.
    pub(crate) nr_to_write: u64,
    pub(crate) class: Class,
    /// Pages in the range `[from, to)` only.
    pub(crate) range: Option<(u64, u64)>,
}

impl How {
    /// All of an inode that is dirty now, for somebody who asks for it; `is_sync` where they wait for it.
    pub(crate) fn all(is_sync: bool) -> How {
        How { is_sync, is_tagged: true, is_cyclic: false, nr_to_write: u64::MAX, class: Class::Normal, range: None }
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wrote {
    /// In the unit of `nr_to_write`.
    pub(crate) counted: u64,
    pub(crate) pages: u64,
}

/// Writes dirty pages of an inode. Returns when they are submitted.
pub(crate) async fn writepages(sim: &Sim, inode: InodeId, how: How) -> Wrote {
    let mut wrote = Wrote::default();
    let mut tally = ForeignTally::default();
    let (estimates, tagged, mut at, in_pages) = {
        let mut world = sim.w();
        // Since commit fee468fdf41c ("writeback: reliably update bandwidth estimation"), 5.15; before, only flushers do.
        let wb = world.inodes[inode].wb.filter(|_| world.algorithm.bandwidth_skips_idle);
        let estimates = wb.inspect(|wb| world.wb_bandwidth_start(*wb));
        let i = &world.inodes[inode];
        let dirty = |(at, extent): &&(u64, Extent)| {
            extent.dirty && how.range.is_none_or(|(from, to)| *at < to && at + u64::from(extent.len) > from)
        };
        let tagged = (how.is_tagged || how.is_sync || how.range.is_some())
            .then(|| i.cache.extents().iter().filter(dirty).map(|(at, e)| (*at, u64::from(e.len))).collect::<Vec<_>>());
        let at = if how.is_cyclic { i.writeback_index } else { 0 };
        let in_folios = world.kernel.at_least(5, 16) && !world.algorithm.nr_to_write_in_pages;
        (estimates, tagged, at, !in_folios)
    };
    match tagged {
        Some(ranges) => {
            for (start, len) in ranges {
                let mut from = start;
                while from < start + len {
                    if how.is_sync {
                        wait_on_dirty_writeback(sim, inode, from, start + len - from).await;
                    }
                    let left = start + len - from;
                    let Some(done) = extent(sim, inode, from, left, how.class, &mut tally).await else { break };
                    if done.start >= start + len {
                        break;
                    }
                    from = done.start + done.len;
                    wrote.pages += done.len;
                    wrote.counted += if in_pages { done.len } else { done.folios };
                }
            }
        }
        None => {
            while wrote.counted < how.nr_to_write {
                let left = how.nr_to_write - wrote.counted;
                let most = if in_pages { left } else { left.saturating_mul(512) };
                let Some(done) = extent(sim, inode, at, most, how.class, &mut tally).await else {
                    at = 0;
                    break;
                };
                at = done.start + done.len;
                wrote.pages += done.len;
                wrote.counted += if in_pages { done.len } else { done.folios };
            }
            sim.w().inodes[inode].writeback_index = at;
        }
    }
    let mut world = sim.w();
    if let Some(wb) = estimates {
        world.wb_update_bandwidth(wb);
    }
    world.finish_foreign(inode, &tally);
    wrote
}

/// Waits for pages of a range that are being written while they are dirty again.
async fn wait_on_dirty_writeback(sim: &Sim, inode: InodeId, start: u64, len: u64) {
    loop {
        let is_busy = sim.w().inodes[inode].cache.range(start, len).any(|(_, e)| e.dirty && e.writeback);
        if !is_busy {
            return;
        }
        sim.wait("a page under writeback", |world| &mut world.inodes[inode].waiters).await;
    }
}

/// Waits until no page of a range is under writeback.
pub(crate) async fn wait_writeback(sim: &Sim, inode: InodeId, start: u64, len: u64) {
    let mut has_waited = false;
    loop {
        let is_busy = {
            let world = sim.w();
            let cache = &world.inodes[inode].cache;
            cache.writeback > 0 && cache.range(start, len).any(|(_, e)| e.writeback)
        };
        if !is_busy {
            break;
        }
        has_waited = true;
        sim.wait("pages under writeback", |world| &mut world.inodes[inode].waiters).await;
    }
    if has_waited {
        crate::block::woken(sim).await;
    }
}

/// Writes the next run of dirty pages, as much as the filesystem maps at once.
async fn extent(
    sim: &Sim,
    inode: InodeId,
    from: u64,
    most: u64,
    class: Class,
    tally: &mut ForeignTally,
) -> Option<DirtyRun> {
    let (run, mut sending, transaction, cost) = {
        let mut world = sim.w();
        let (run, sending) = world.next_run(inode, from, most, class)?;
        world.tally(inode, tally, run.owner, run.len);
        let sb = world.inodes[inode].sb;
        let needs_transaction = sending.needs_blocks && world.sbs[sb].journal.is_some();
        if sending.needs_blocks && !needs_transaction {
            world.inodes[inode].allocated = sending.end;
        }
        // Half of it is per folio, half per page.
        let cost = world.costs.map + (run.folios + run.len) / 2 * world.costs.page;
        (run, sending, needs_transaction.then_some(sb), cost)
    };
    if let Some(sb) = transaction {
        journal::start(sim, sb).await;
        let blocks = sim.w().data_blocks(inode);
        journal::modify(sim, sb, &blocks).await;
        let mut world = sim.w();
        world.inodes[inode].allocated = sending.end;
        world.journal_joins(inode, true);
    }
    crate::cpu::run(sim, cost).await;
    sim.w().memory.cpu_system += cost;
    loop {
        let entry = sim.w().send(&mut sending);
        let Some(entry) = entry else { break };
        enter(sim, sending.device, &sending.request, entry).await;
    }
    if let Some(sb) = transaction {
        journal::stop(sim, sb);
    }
    Some(run)
}

/// A run of dirty pages that is being handed to a device.
struct Sending {
    inode: InodeId,
    device: BlockId,
    /// The last request, and what all have in common.
    request: Request,
    /// Where pages are looked for next, and the end of the run.
    at: u64,
    end: u64,
    /// Most pages of what is written as one, and of a request.
    in_ioend: u64,
    in_request: u64,
    /// Whether it has none yet on the device, and whether these have to be converted once they are written.
    needs_blocks: bool,
    converts: bool,
    /// What is written as one now, and where it ends.
    ioend: Option<(u32, u64)>,
    /// Pages under writeback that no request has yet: a folio may be larger than one.
    page: u64,
    blocks: u64,
}

impl World {
    /// The next run of dirty pages, as much as the filesystem maps at once, and how it is handed to the device.
    fn next_run(&self, inode: InodeId, from: u64, most: u64, class: Class) -> Option<(DirtyRun, Sending)> {
        let i = &self.inodes[inode];
        let sb = &self.sbs[i.sb];
        let is_ext4 = sb.fs_type == FsType::Ext4;
        let run = i.cache.next_dirty(from, most.min(if is_ext4 { EXT4_EXTENT } else { OTHER_EXTENT }))?;
        let folio = run.len / run.folios.max(1);
        let needs_blocks = run.start + run.len > i.allocated;
        // A bio of single pages has no more of them.
        let most = if folio == 1 && is_ext4 { BIO_PAGES } else { u64::MAX };
        // The bios of ext4 never say that they are background writeback.
        let class = if is_ext4 && class == Class::Background { Class::Normal } else { class };
        let cgroup = self.io_cgroup(inode);
        let sending = Sending {
            inode,
            device: sb.device?,
            request: Request { way: Way::Write, at: 0, bytes: 0, class, merged: 0, cgroup, done: Done::Nothing },
            at: run.start,
            end: run.start + run.len,
            in_ioend: self.ioend_pages(i.sb, needs_blocks, folio),
            in_request: self.request_pages().min(most),
            needs_blocks,
            converts: needs_blocks && sb.has_unwritten,
            ioend: None,
            page: 0,
            blocks: 0,
        };
        Some((run, sending))
    }

    /// Hands the device what is left of a run, until a request has to wait.
    fn send(&mut self, sending: &mut Sending) -> Option<Entry> {
        while self.next_request(sending) {
            let entry = self.submit_now(sending.device, &sending.request);
            if entry.is_some() {
                return entry;
            }
        }
        None
    }

    /// Makes the next request for pages of a run, if any are left.
    fn next_request(&mut self, sending: &mut Sending) -> bool {
        while sending.blocks == 0 {
            match sending.ioend {
                Some((ioend, until)) if sending.at < until => self.next_part(sending, ioend, until),
                Some((ioend, _)) => {
                    self.ioend_close(ioend);
                    sending.ioend = None;
                }
                None if sending.at < sending.end => {
                    let ioend = self.ioend_open(sending.inode, sending.converts);
                    sending.ioend = Some((ioend, sending.end.min(sending.at.saturating_add(sending.in_ioend))));
                }
                None => return false,
            }
        }
        let some = sending.blocks.min(sending.in_request);
        sending.request.at = device_page(sending.inode, sending.page);
        sending.request.bytes = some * PAGE;
        (sending.blocks, sending.page) = (sending.blocks - some, sending.page + some);
        true
    }

    /// Takes the next pages of a run under writeback, no more than a request has.
    fn next_part(&mut self, sending: &mut Sending, ioend: u32, until: u64) {
        let cache = &self.inodes[sending.inode].cache;
        let next = cache.next_dirty(sending.at, (until - sending.at).min(sending.in_request));
        // What is gone or clean by now is not written.
        let Some(part) = next.filter(|part| part.start < until) else {
            sending.at = until;
            return;
        };
        self.start_writeback(sending.inode, part.start, part.len, part.owner);
        let requests = u32::try_from(part.blocks.div_ceil(sending.in_request).max(1)).unwrap_or(u32::MAX);
        self.ioend_add(ioend, part.start, part.len, requests);
        sending.at = part.start + part.len;
        (sending.page, sending.blocks) = (part.start, part.blocks.max(1));
        sending.request.done = Done::Writeback(ioend);
    }

    /// The cgroup that writeback of an inode is charged to.
    fn io_cgroup(&self, inode: InodeId) -> CgId {
        self.inodes[inode].wb.map_or(CgId::ROOT, |wb| self.wbs[wb].memcg)
    }

    fn tally(&self, inode: InodeId, tally: &mut ForeignTally, owner: CgId, pages: u64) {
        let i = &self.inodes[inode];
        let (Some(wb), true) = (i.wb, self.sbs[i.sb].has_cgroup_writeback) else { return };
        if !self.cgroups[owner].is_dead {
            tally.account(&i.history, u64::from(self.wbs[wb].memcg.0), u64::from(owner.0), pages * PAGE);
        }
    }

    /// The end of a pass over an inode: whose pages were most of it.
    fn finish_foreign(&mut self, inode: InodeId, tally: &ForeignTally) {
        let i = &self.inodes[inode];
        let Some(wb): Option<WbId> = i.wb.filter(|_| self.sbs[i.sb].has_cgroup_writeback) else { return };
        let (memcg, avg) = (u64::from(self.wbs[wb].memcg.0), self.wbs[wb].bandwidth.avg_write_bandwidth);
        let build = self.build;
        let outcome = self.inodes[inode].history.finish(build, tally, memcg, avg);
        if let Some(to) = outcome.switch_to.and_then(|to| u32::try_from(to).ok()) {
            self.request_switch(inode, CgId(to));
        }
    }
}
