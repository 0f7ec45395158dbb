// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing the dirty pages of one inode, by a flusher or by the caller of fsync: which pages, in which requests,
//! and the work of the filesystem before and after. Mirrors write_cache_pages and the writepages of fs/ext4/inode.c
//! and fs/iomap/buffered-io.c.

use crate::arena::{BlockId, CgId, InodeId, SbId, WbId};
use crate::block::{BIO_PAGES, Class, Done, Entry, Request, Way, device_page};
use crate::engine::Sim;
use crate::gaps::Gap;
use crate::journal;
use crate::page_cache::Extent;
use crate::perag::before_allocation;
use crate::plug::{Plug, enter, unplugging};
use crate::process::io_schedule;
use crate::world::{PAGE, World};
use floodline_kernel::ForeignTally;
use floodline_scenario::FsType;

/// Most blocks that ext4 maps at once.
const EXT4_EXTENT: u64 = 2048;
/// Most pages that other filesystems map at once. Bounds the work between two checks of the rest.
const OTHER_EXTENT: u64 = 8192;

/// CPU time for each request from which a run is submitted request by request, nanoseconds.
const STEP: u64 = 200_000;

/// Mode of writing an inode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Waits for pages that are under writeback and dirty again.
    pub(crate) is_sync: bool,
    /// Writes only pages that are dirty now.
    pub(crate) is_tagged: bool,
    /// Starts where the last pass ended.
    pub(crate) is_cyclic: bool,
    /// The wb of the flusher that writes; none for a task that requests the write.
    pub(crate) flusher: Option<WbId>,
    /// Pages, or folios where the kernel counts those.
    pub(crate) nr_to_write: u64,
    pub(crate) class: Class,
    /// Writes only pages in the range `[from, to)`.
    pub(crate) range: Option<(u64, u64)>,
}

impl How {
    /// Writes all pages of an inode that are dirty now, for a task that requests it; `is_sync` if the task waits for
    /// them.
    pub(crate) fn all(is_sync: bool) -> How {
        How {
            is_sync,
            is_tagged: true,
            is_cyclic: false,
            flusher: None,
            nr_to_write: u64::MAX,
            class: if is_sync { Class::Urgent } else { Class::Normal },
            range: None,
        }
    }
}

/// Amounts that were written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wrote {
    /// In the unit of `nr_to_write`.
    pub(crate) counted: u64,
    pub(crate) pages: u64,
}

/// A pass over the dirty pages of an inode.
struct Pass {
    inode: InodeId,
    how: How,
    /// CPU of the task that requests the write; none for a flusher.
    cpu: Option<usize>,
    /// Pages that were dirty at its start, if it writes only those.
    tagged: Option<std::vec::IntoIter<(u64, u64)>>,
    /// Start of the search for the next run, and the end of the range to search.
    at: u64,
    until: u64,
    in_folios: bool,
    /// The wb whose bandwidth it estimates.
    estimates: Option<WbId>,
    plug: Option<Plug>,
    /// The cgroup of the writing task, if its requests belong to that cgroup. Without cgroup writeback, a bio belongs to
    /// the task that submits it (`bio_associate_blkg`).
    of_task: Option<CgId>,
    tally: ForeignTally,
    wrote: Wrote,
}

/// Next step of a pass.
enum NextRun {
    /// Wait for pages that are under writeback and dirty again.
    Wait,
    Write(Sending),
    End,
}

/// Writes dirty pages of an inode. Returns when they are submitted.
pub(crate) async fn writepages(sim: &Sim, inode: InodeId, how: How) -> Wrote {
    let process = sim.current_process();
    let mut pass = sim.w().begin_pass(inode, how, process);
    let plug = pass.plug;
    loop {
        let next = sim.w().next_run(&mut pass);
        let mut run = match next {
            NextRun::Write(run) => run,
            NextRun::Wait => {
                let page = sim.wait("a page under writeback", |world| &mut world.inodes[inode].waiters);
                unplugging(sim, plug, io_schedule(sim, page)).await;
                continue;
            }
            NextRun::End => break,
        };
        if let Some(sb) = run.transaction {
            unplugging(sim, plug, begin_allocation(sim, inode, how, sb, &run)).await;
            let mut world = sim.w();
            world.inodes[inode].fill(run.at..run.end);
            world.journal_joins(inode, true);
        }
        if run.cost > STEP * run.requests() {
            send_slowly(sim, &mut run).await;
        } else {
            crate::cpu::run(sim, run.cost).await;
            sim.w().memory.cpu_system += run.cost;
            loop {
                let waiting = sim.w().send(&mut run);
                let Some((request, entry)) = waiting else { break };
                enter(sim, run.plug, run.device, &request, entry).await;
            }
        }
        if let Some(sb) = run.transaction {
            journal::stop(sim, sb);
        }
    }
    if let Some(Plug::Task(_)) = plug {
        sim.w().unplug(Plug::Task(process));
    }
    sim.w().end_pass(&pass);
    pass.wrote
}

/// Begins the transaction that gives a run its blocks.
async fn begin_allocation(sim: &Sim, inode: InodeId, how: How, sb: SbId, run: &Sending) {
    if run.is_new {
        let memcg = sim.w().mapping_memcg(inode, &how);
        before_allocation(sim, inode, memcg).await;
    }
    if run.converts {
        journal::reserve(sim, sb).await;
    }
    journal::start(sim, sb).await;
    let ((blocks, count), memcg) = {
        let mut world = sim.w();
        let blocks = match run.is_new {
            true => world.allocation_blocks(inode, run.end),
            // Only the state of its extents changes.
            false => ([world.inodes[inode].block; 4], 1),
        };
        (blocks, world.mapping_memcg(inode, &how))
    };
    journal::modify(sim, sb, &blocks[..count], memcg).await;
}

/// Submits a run on a slow CPU: between two requests other threads get theirs into the queue. An fsync that waited with a
/// flusher for the same place in the queue is the third or fourth there, not the ninth.
async fn send_slowly(sim: &Sim, run: &mut Sending) {
    let cost = run.cost / run.requests();
    loop {
        let next = sim.w().next_request(run);
        let Some(request) = next else { break };
        crate::cpu::run(sim, cost).await;
        let entry = {
            let mut world = sim.w();
            world.memory.cpu_system += cost;
            world.hand_down(run.plug, run.device, &request)
        };
        if let Some(entry) = entry {
            enter(sim, run.plug, run.device, &request, entry).await;
        }
    }
}

/// Waits until no page of a range is under writeback.
pub(crate) async fn wait_writeback(sim: &Sim, inode: InodeId, start: u64, len: u64) {
    let mut has_waited = false;
    while sim.w().inodes[inode].cache.has_writeback(start, len) {
        has_waited = true;
        io_schedule(sim, sim.wait("pages under writeback", |world| &mut world.inodes[inode].waiters)).await;
    }
    if has_waited {
        crate::block::woken(sim).await;
    }
}

/// A run of dirty pages that is being submitted to a device: at most what the filesystem maps at once.
struct Sending {
    inode: InodeId,
    /// The plug that its requests go through.
    plug: Option<Plug>,
    /// The btrfs that gives its pages new places.
    copies_on: Option<SbId>,
    /// CPU of the task that requested it; none for a flusher.
    cpu: Option<usize>,
    device: BlockId,
    class: Class,
    cgroup: CgId,
    /// Start of the search for the next pages, and the end of the run.
    at: u64,
    end: u64,
    /// Most pages of an ioend, of a bio and of a request.
    in_ioend: u64,
    in_bio: u64,
    in_request: u64,
    /// Pages of a request of the current part, and pages between two of them that are not written.
    in_stretch: u64,
    gap: u64,
    /// Whether it needs blocks that are not allocated yet.
    is_new: bool,
    /// Whether its blocks count as unwritten until they are converted.
    converts: bool,
    /// The superblock that has to record its blocks first, in its journal if it has one.
    transaction: Option<SbId>,
    /// Nanoseconds of mapping its blocks.
    cost: u64,
    /// The current ioend, and its end.
    ioend: Option<(u32, u64)>,
    /// Pages under writeback that are in no request yet: a bio may be larger than a request.
    page: u64,
    blocks: u64,
    /// Whether all of it is one bio: ext4 adds pages to a bio as long as they lie side by side in memory, which pages of a
    /// stream mostly do. In a traced run on 6.12 its extents of 8 MiB came as parts of one bio.
    is_one_bio: bool,
    /// Whether a part of the bio is in a request already.
    goes_on: bool,
}

impl Sending {
    /// Number of its requests if all of its pages are still to be written.
    fn requests(&self) -> u64 {
        (self.end - self.at).div_ceil(self.in_request).max(1)
    }
}

/// Joins runs of pages that touch or overlap, in order of their first pages: a file of one write has folios of several sizes, and
/// its pages go out together.
fn joined(runs: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::with_capacity(runs.len());
    for (at, len) in runs {
        match all.last_mut() {
            Some((start, pages)) if at <= *start + *pages => *pages = (*pages).max(at + len - *start),
            _ => all.push((at, len)),
        }
    }
    all
}

impl World {
    /// The memcg of the thread that maps blocks of an inode. A flusher is a kernel thread; a task that requests the
    /// write mostly belongs to the cgroup that owns the file.
    fn mapping_memcg(&self, inode: InodeId, how: &How) -> CgId {
        let wb = self.inodes[inode].wb.filter(|_| how.flusher.is_none());
        wb.map_or(CgId::ROOT, |wb| self.wbs[wb].memcg)
    }

    fn begin_pass(&mut self, inode: InodeId, how: How, process: u32) -> Pass {
        // Since commit fee468fdf41c ("writeback: reliably update bandwidth estimation"), 5.15; before, only flushers
        // estimate.
        let estimates = self.inodes[inode].wb.filter(|_| self.behaviour.arithmetic.bandwidth_skips_idle);
        if let Some(wb) = estimates {
            self.wb_bandwidth_start(wb);
        }
        let sb = self.inodes[inode].sb;
        if self.sbs[sb].metadata == Some(inode) {
            self.clean_uncommitted(sb, inode);
        }
        let i = &self.inodes[inode];
        let tagged = match how.range {
            Some((from, to)) => Some(i.cache.dirty_within(from, to)),
            None => (how.is_tagged || how.is_sync).then(|| {
                let dirty = i.cache.extents().filter(|(_, extent)| extent.dirty);
                dirty.map(|(at, extent)| (*at, u64::from(extent.len))).collect()
            }),
        };
        let tagged = tagged.map(|runs| joined(runs).into_iter());
        Pass {
            inode,
            how,
            cpu: if how.flusher.is_some() { None } else { self.cpu_of(process) },
            at: if how.is_cyclic { i.writeback_index } else { 0 },
            until: if tagged.is_some() { 0 } else { u64::MAX },
            tagged,
            in_folios: !self.behaviour.arithmetic.nr_to_write_in_pages,
            estimates,
            plug: match how.flusher {
                Some(wb) => Some(Plug::Flusher(wb)),
                // Pages of other filesystems that lie side by side are in one request anyway.
                None => self.sbs[sb].log_tree.inode().map(|_| Plug::Task(process)),
            },
            of_task: (how.flusher.is_none() && !self.sbs[sb].has_cgroup_writeback).then(|| self.of_task(process)),
            tally: ForeignTally::default(),
            wrote: Wrote::default(),
        }
    }

    fn end_pass(&mut self, pass: &Pass) {
        if pass.tagged.is_none() {
            self.inodes[pass.inode].writeback_index = pass.at;
        }
        if let Some(wb) = pass.estimates {
            self.wb_update_bandwidth(wb);
        }
        self.finish_foreign(pass.inode, &pass.tally);
    }

    /// Returns the next step of a pass.
    fn next_run(&mut self, pass: &mut Pass) -> NextRun {
        if pass.tagged.is_some() {
            return self.next_tagged_run(pass);
        }
        if pass.wrote.counted >= pass.how.nr_to_write {
            return NextRun::End;
        }
        let left = pass.how.nr_to_write - pass.wrote.counted;
        let most = if pass.in_folios { left.saturating_mul(512) } else { left };
        match self.begin_run(pass, most) {
            Some(run) => NextRun::Write(run),
            None => {
                pass.at = 0;
                NextRun::End
            }
        }
    }

    fn next_tagged_run(&mut self, pass: &mut Pass) -> NextRun {
        loop {
            while pass.at >= pass.until {
                let range = pass.tagged.as_mut().and_then(Iterator::next);
                let Some((start, len)) = range else { return NextRun::End };
                (pass.at, pass.until) = (start, start + len);
            }
            let left = pass.until - pass.at;
            let is_busy = |(_, extent): (u64, Extent)| extent.dirty && extent.writeback;
            if pass.how.is_sync && self.inodes[pass.inode].cache.range(pass.at, left).any(is_busy) {
                return NextRun::Wait;
            }
            match self.begin_run(pass, left) {
                Some(run) => return NextRun::Write(run),
                None => pass.at = pass.until,
            }
        }
    }

    /// Begins the next run of dirty pages.
    fn begin_run(&mut self, pass: &mut Pass, most: u64) -> Option<Sending> {
        let inode = pass.inode;
        let i = &self.inodes[inode];
        let sb = &self.sbs[i.sb];
        let (is_ext4, is_btrfs) = (sb.fs_type == FsType::Ext4, sb.fs_type == FsType::Btrfs);
        let mut run = i.cache.next_dirty(pass.at, most.min(if is_ext4 { EXT4_EXTENT } else { OTHER_EXTENT }))?;
        // A turn ends with its last folio, whatever the filesystem could map at once.
        let left = pass.how.nr_to_write.saturating_sub(pass.wrote.counted).max(1);
        if pass.in_folios && run.folios > left {
            run = i.cache.next_dirty(pass.at, (run.len / run.folios.max(1)).max(1).saturating_mul(left))?;
        }
        if pass.how.range.is_some() && run.start >= pass.until {
            return None;
        }
        if i.gaps.is_some() {
            // A mapping ends where the state of the blocks changes.
            let (_, until) = i.on_device(run.start, run.start + run.len);
            run = i.cache.next_dirty(pass.at, until - run.start)?;
        }
        let (folio, end) = (run.len / run.folios.max(1), run.start + run.len);
        let gap = i.gap_in(run.start..end);
        let (needs_blocks, is_new) = (gap.is_some(), gap == Some(Gap::Hole));
        // XFS changes unwritten extents only once the data is on the device.
        let changes_first = is_new || needs_blocks && is_ext4;
        // The bios of ext4 are never marked as background writeback.
        let is_background = pass.how.class == Class::Background;
        let class = if is_ext4 && is_background { Class::Normal } else { pass.how.class };
        // A bio has a vector for each folio. Of single pages, ext4 makes no request larger than a bio.
        let of_single = if folio == 1 && is_ext4 { BIO_PAGES } else { u64::MAX };
        let in_request = self.request_pages().min(of_single);
        let sending = Sending {
            inode,
            plug: pass.plug,
            copies_on: (is_btrfs && gap != Some(Gap::Unwritten)).then_some(i.sb),
            cpu: pass.cpu,
            device: sb.device?,
            class,
            cgroup: pass.of_task.unwrap_or_else(|| self.io_cgroup(inode)),
            at: run.start,
            end,
            in_ioend: self.ioend_pages(i.sb, needs_blocks, folio),
            in_bio: if folio == 1 { in_request } else { in_request.max(BIO_PAGES * folio) },
            in_request,
            in_stretch: in_request,
            gap: 0,
            is_new,
            // XFS logs a larger size of the file only once the data is on the device (`xfs_setfilesize`).
            converts: needs_blocks && sb.has_unwritten
                || sb.fs_type == FsType::Xfs && i.size.min(end * PAGE) > i.disk_size,
            transaction: (changes_first && (sb.journal.is_some() || sb.metadata.is_some())).then_some(i.sb),
            // Half of the cost is per folio, half per page.
            cost: self.costs.map + (run.folios + run.len) / 2 * self.costs.page,
            ioend: None,
            page: 0,
            blocks: 0,
            is_one_bio: is_ext4,
            goes_on: false,
        };
        if run.start < pass.until {
            pass.wrote.pages += run.len;
            pass.wrote.counted += if pass.in_folios { run.folios } else { run.len };
        }
        pass.at = end;
        self.tally(inode, &mut pass.tally, run.owner, run.len);
        if is_new {
            self.take_place(inode, end);
        }
        if is_btrfs {
            self.run_changes_trees(self.inodes[inode].sb);
        }
        if needs_blocks && sending.transaction.is_none() {
            self.inodes[inode].fill(sending.at..end);
        }
        Some(sending)
    }

    /// Submits the rest of a run, until a request has to wait.
    fn send(&mut self, sending: &mut Sending) -> Option<(Request, Entry)> {
        while let Some(request) = self.next_request(sending) {
            if let Some(entry) = self.hand_down(sending.plug, sending.device, &request) {
                return Some((request, entry));
            }
        }
        None
    }

    /// Returns the next request for pages of a run, if any are left.
    fn next_request(&mut self, sending: &mut Sending) -> Option<Request> {
        let ioend = loop {
            match sending.ioend {
                Some((ioend, _)) if sending.blocks > 0 => break ioend,
                Some((ioend, until)) if sending.at < until => self.next_part(sending, ioend, until),
                Some((ioend, _)) => {
                    self.ioend_close(ioend);
                    sending.ioend = None;
                }
                None if sending.at < sending.end => {
                    let ioend = self.ioend_open(sending.inode, sending.converts);
                    sending.ioend = Some((ioend, sending.end.min(sending.at.saturating_add(sending.in_ioend))));
                }
                None => return None,
            }
        };
        let some = sending.blocks.min(sending.in_stretch);
        let goes_on = std::mem::replace(&mut sending.goes_on, true);
        let (class, cgroup, done) = (sending.class, sending.cgroup, Done::Writeback(ioend));
        let copied = sending.copies_on.and_then(|sb| self.copy_place(sb, some));
        let at = copied.unwrap_or_else(|| device_page(sending.inode, sending.page));
        (sending.blocks, sending.page) = (sending.blocks - some, sending.page + some + sending.gap);
        Some(Request { way: Way::Write, at, bytes: some * PAGE, class, merged: 0, goes_on, cgroup, done })
    }

    /// Takes the next pages of a run for writeback, at most as many as fit into a bio: they are under writeback before
    /// its first request has a place in the queue. On 6.12, twelve files of 30 MB that went out together were all under
    /// writeback at once, while the device had 48 requests.
    fn next_part(&mut self, sending: &mut Sending, ioend: u32, until: u64) {
        let cache = &self.inodes[sending.inode].cache;
        // Pages that are gone or clean by now are not written, nor others instead that lie beyond the run.
        let most = |start: u64| (until - start).min(sending.in_bio);
        let first = cache.next_dirty(sending.at, most(sending.at)).filter(|part| part.start < until);
        let next = match first {
            Some(part) if part.start != sending.at => cache.next_dirty(part.start, most(part.start)),
            first => first,
        };
        let Some(part) = next else {
            sending.at = until;
            return;
        };
        // Without other pages than those to write, there are none before the first of them.
        let others = part.len - part.blocks.min(part.len);
        let first = if others > 0 { cache.find(part.start).filter(|(at, _)| *at == part.start) } else { None };
        let lead = first.map_or(0, |(_, extent)| extent.lead()).min(others);
        self.start_writeback(sending.inode, part.start, part.len, part.owner, sending.cpu);
        // Blocks that do not lie side by side are requests of their own. The stretches are taken to be of one size.
        let in_stretch = part.blocks.max(1).div_ceil(part.stretches.max(1));
        sending.in_stretch = in_stretch.min(sending.in_request);
        sending.gap = if part.stretches > 1 { (part.len - part.blocks) / part.stretches } else { 0 };
        let requests = u32::try_from(part.blocks.max(1).div_ceil(sending.in_stretch)).unwrap_or(u32::MAX);
        self.ioend_add(ioend, part.start, part.len, requests);
        sending.at = part.start + part.len;
        (sending.page, sending.blocks) = (part.start + lead, part.blocks.max(1));
        sending.goes_on &= sending.is_one_bio && sending.gap == 0;
    }

    /// The cgroup that a flusher's writeback of an inode is charged to.
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

    /// Ends a pass over an inode: decides which memcg owned most of its pages.
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

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn runs_that_touch_are_one() {
        assert_eq!(joined(vec![(0, 128), (128, 64), (192, 1), (200, 4), (202, 6)]), [(0, 193), (200, 8)]);
        assert_eq!(joined(Vec::new()), []);
    }
}
