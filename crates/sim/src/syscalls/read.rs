// SPDX-License-Identifier: MIT OR Apache-2.0
//! read(2) through the page cache. Missing pages are read in windows that grow as long as the reads are sequential
//! (mm/readahead.c).

use super::INODE_LOCKED;
use super::store::Faults;
use super::under_read::{Found, UnderRead, bring_in};
use super::write::folio_for;
use crate::arena::{BlockId, CgId, InodeId, PidId};
use crate::block::{Class, Done, Entry, Request, Way, device_page, enter, submit_and_wait};
use crate::engine::Sim;
use crate::memory::{NoMemory, make_room};
use crate::memory_high::handle_over_high;
use crate::process::{may_block, use_cpu};
use crate::sync::{lock_shared, unlock_shared};
use crate::world::{PAGE, World};
use floodline_scenario::FsType;
use std::ops::Range;

/// Readahead state of an open file, with its requests in flight.
#[derive(Debug, Default)]
pub(crate) struct Readahead {
    reading: std::collections::VecDeque<Asked>,
    next: u64,
    /// Offset at which the next read starts if it is sequential.
    expected: u64,
    /// Pages of a window: few at first, more each time.
    size: u64,
    /// Pages of the folios made last: each window has four times larger ones, up to its own size.
    folio: u64,
    /// What faults of its mapping found.
    pub(super) faults: Faults,
}

/// A read that a reader waits for: its own, or that of another reader of the file.
#[derive(Clone, Copy, Debug)]
struct Asked {
    read: UnderRead,
    is_own: bool,
}

impl Readahead {
    /// End of the pages to request. The first of `pages` is not cached, nor are the `missing` pages that start with it.
    fn reach(
        &mut self,
        world: &mut World,
        inode: InodeId,
        (pages, missing): (Range<u64>, u64),
        window: u64,
        is_sequential: bool,
    ) -> u64 {
        let page = pages.start;
        // Others brought these in.
        while let Some(asked) = self.reading.front().copied().filter(|asked| asked.read.pages().end <= page) {
            self.reading.pop_front();
            asked.leave(world, inode);
        }
        let is_expected = self.reading.front().is_some_and(|asked| asked.read.pages().contains(&page));
        // The first window comes alone; its last page shows whether another is wanted.
        let goes_on = is_sequential && page > 0 && page == self.next;
        if !is_expected && !goes_on {
            // Not the pages requested ahead: begin anew here.
            self.leave(world, inode);
            self.next = page;
            self.size = first_window(pages.end - page, window);
            self.folio = 0;
        }
        let windows = if is_expected || goes_on { 2 } else { 1 };
        page + if is_sequential { windows * self.size } else { missing }
    }

    /// Waits for none of the reads ahead of an inode any more.
    pub(crate) fn leave(&mut self, world: &mut World, inode: InodeId) {
        self.reading.drain(..).for_each(|asked| asked.leave(world, inode));
    }
}

impl Asked {
    fn leave(self, world: &mut World, inode: InodeId) {
        if self.is_own {
            world.leave_read(inode, &self.read);
        }
    }
}

/// Pages of the first readahead window, for a read of `asked` pages (`get_init_ra_size`).
fn first_window(asked: u64, most: u64) -> u64 {
    let size = asked.max(1).checked_next_power_of_two().unwrap_or(most);
    let factor = match size {
        _ if size <= most / 32 => 4,
        _ if size <= most / 4 => 2,
        _ => return most,
    };
    size * factor
}

/// Pages of the next readahead window (`get_next_ra_size`).
fn next_window(size: u64, most: u64) -> u64 {
    if size < most / 16 { 4 * size } else { (2 * size).min(most) }
}

/// Reads from a file through the page cache. Returns the number of bytes. XFS takes the inode's lock for it, so a
/// reader waits for a writer of the same file, even for a throttled one.
pub(crate) async fn read(
    sim: &Sim,
    pid: PidId,
    inode: InodeId,
    ahead: &mut Readahead,
    offset: u64,
    len: u64,
) -> Result<u64, NoMemory> {
    let is_locked = {
        let world = sim.w();
        world.sbs[world.inodes[inode].sb].fs_type == FsType::Xfs
    };
    if is_locked {
        lock_shared(sim, INODE_LOCKED, |world| &mut world.inodes[inode].lock).await;
    }
    let got = filemap_read(sim, (pid, inode), ahead, offset, len).await;
    if is_locked {
        unlock_shared(sim, |world| &mut world.inodes[inode].lock);
    }
    handle_over_high(sim, pid).await;
    got
}

/// Reads as all filesystems do (`filemap_read`).
async fn filemap_read(
    sim: &Sim,
    (pid, inode): (PidId, InodeId),
    ahead: &mut Readahead,
    offset: u64,
    len: u64,
) -> Result<u64, NoMemory> {
    let (costs, size, cgroup) = {
        let world = sim.w();
        let task = &world.pids[pid];
        (world.costs, world.inodes[inode].size, task.charges.unwrap_or(task.cgroup))
    };
    use_cpu(sim, pid, costs.call, false).await;
    let end = size.min(offset.saturating_add(len));
    let got = end.saturating_sub(offset);
    let reading = sim.w().begin_read((pid, inode), cgroup, got);
    let is_sequential = offset == ahead.expected || offset == 0;
    let before = std::mem::replace(&mut ahead.expected, end);
    let last = end.div_ceil(PAGE);
    let limit = if is_sequential { size.div_ceil(PAGE) } else { last };
    let mut page = offset / PAGE;
    while page < last {
        let (cached, missing) = sim.w().find_cached(inode, page..last, before);
        if cached > 0 {
            let bytes = if page + cached < last { cached * PAGE } else { end - offset.max(page * PAGE) };
            let nanos = sim.w().begin_copy(bytes, costs.copy_out, false);
            use_cpu(sim, pid, nanos, false).await;
            sim.w().copies.end();
            page += cached;
            continue;
        }
        let Some(device) = reading.device else {
            // A file in memory has no holes: pages never written read as zeros.
            page += missing;
            continue;
        };
        let reach = {
            let mut world = sim.w();
            limit.min(ahead.reach(&mut world, inode, (page..last, missing), reading.window, is_sequential))
        };
        ask_ahead(sim, &reading, device, ahead, reach, (limit, is_sequential)).await?;
        // The page itself may have been zeros, which need no request.
        let Some(asked) = ahead.reading.front().copied().filter(|asked| asked.read.pages().start <= page) else {
            continue;
        };
        ahead.reading.pop_front();
        bring_in(sim, pid, cgroup, inode, asked.read).await?;
    }
    Ok(got)
}

/// Requests pages up to `reach`, in whole requests that end at the limit at the latest.
async fn ask_ahead(
    sim: &Sim,
    reading: &Reading,
    device: BlockId,
    ahead: &mut Readahead,
    reach: u64,
    (limit, is_sequential): (u64, bool),
) -> Result<(), NoMemory> {
    let &Reading { pid, inode, cgroup, window, most, folio, first_folio, .. } = reading;
    while ahead.next < reach {
        let at = ahead.next;
        let count = (limit - at).min(ahead.size.max(1)).min(most);
        let found = sim.w().find_for_read(inode, at..at + count);
        let (count, is_on_device) = match found {
            Found::Cached(until) => {
                ahead.next = until;
                continue;
            }
            Found::UnderRead(read) => {
                ahead.reading.push_back(Asked { read, is_own: false });
                ahead.next = read.pages().end;
                continue;
            }
            Found::Missing(until) => (until - at, true),
            Found::Zeros(until) => (until - at, false),
        };
        // Random reads come in single pages.
        ahead.folio = match (is_sequential, ahead.folio) {
            (false, _) => 1,
            (true, 0) => first_folio.min(folio),
            (true, last) => (4 * last).min(folio),
        };
        let folio = ahead.folio.min(1 << count.max(1).ilog2());
        if !is_on_device {
            add_zeros(sim, reading, at..at + count, folio).await?;
            ahead.next += count;
            continue;
        }
        let (read, request, entry) = {
            let mut world = sim.w();
            let slot = world.completions.open();
            let read = UnderRead { at, count, folio, slot, cgroup };
            world.begin_read_of(inode, read);
            let request = world.read_request(cgroup, device_page(inode, at), count, slot);
            (read, request, world.submit_read(device, &request))
        };
        ahead.reading.push_back(Asked { read, is_own: true });
        ahead.next += count;
        if let Some(entry) = entry {
            may_block(sim, pid, enter(sim, device, &request, entry)).await;
        }
        sim.w().pids[pid].io.read_bytes += count * PAGE;
    }
    ahead.size = next_window(ahead.size, window);
    Ok(())
}

/// Puts pages into the cache that read as zeros: they have no data on the device.
async fn add_zeros(sim: &Sim, reading: &Reading, pages: Range<u64>, folio: u64) -> Result<(), NoMemory> {
    let &Reading { pid, inode, cgroup, .. } = reading;
    let count = pages.end - pages.start;
    let has_room = sim.w().has_room(cgroup, count);
    if !has_room {
        make_room(sim, pid, cgroup, count).await?;
    }
    sim.w().arrive(cgroup, inode, pages, folio);
    Ok(())
}

/// A read in progress: its task, the device of pages that are not cached, and its sizes.
struct Reading {
    pid: PidId,
    inode: InodeId,
    cgroup: CgId,
    device: Option<BlockId>,
    /// Pages of a whole readahead, of a request, of the largest folio, and of the folios of the first window.
    window: u64,
    most: u64,
    folio: u64,
    first_folio: u64,
}

/// Reads `page`, which is not cached, and those of `pages` around it, into folios of at most `folio` pages, and waits for
/// them. If another task reads it, waits for that.
pub(super) async fn fetch(
    sim: &Sim,
    pid: PidId,
    inode: InodeId,
    page: u64,
    pages: Range<u64>,
    folio: u64,
) -> Result<(), NoMemory> {
    let (device, cgroup) = {
        let world = sim.w();
        let task = &world.pids[pid];
        (world.sbs[world.inodes[inode].sb].device, task.charges.unwrap_or(task.cgroup))
    };
    let Some(device) = device else {
        make_room(sim, pid, cgroup, pages.end - pages.start).await?;
        sim.w().arrive(cgroup, inode, pages, folio);
        return Ok(());
    };
    let mine = sim.w().may_read(inode, page, pages);
    let pages = match mine {
        Ok(pages) => pages,
        Err(read) => return bring_in(sim, pid, cgroup, inode, read).await,
    };
    let (at, count) = (pages.start, pages.end - pages.start);
    let (read, request) = {
        let mut world = sim.w();
        // A cell for those who wait for the pages themselves.
        let slot = world.completions.open();
        let read = UnderRead { at, count, folio, slot, cgroup };
        world.begin_read_of(inode, read);
        (read, world.read_request(cgroup, device_page(inode, at), count, 0))
    };
    may_block(sim, pid, submit_and_wait(sim, device, request, "a read from the device")).await;
    sim.w().pids[pid].io.read_bytes += count * PAGE;
    let room = make_room(sim, pid, cgroup, count).await;
    let mut world = sim.w();
    if room.is_ok() {
        world.arrive(cgroup, inode, pages, folio);
    }
    let waiting = world.completions.complete(read.slot);
    world.end_read(inode, &read);
    world.wake_all(waiting);
    room
}

impl World {
    /// Begins a read of `got` bytes.
    fn begin_read(&mut self, (pid, inode): (PidId, InodeId), cgroup: CgId, got: u64) -> Reading {
        let io = &mut self.pids[pid].io;
        (io.rchar, io.syscr) = (io.rchar + got, io.syscr + 1);
        if got > 0 {
            self.touch_atime(inode, cgroup);
        }
        let sb = &self.sbs[self.inodes[inode].sb];
        let read_ahead = sb.bdi.map_or(32, |bdi| self.bdis[bdi].read_ahead / PAGE);
        let most = self.request_pages();
        let window = read_ahead.max((got / PAGE).min(most)).max(1);
        // Every window raises the order by two, the first one too on kernels whose faults make folios of four pages.
        let first_folio = if self.behaviour.folios.fault_makes_four { 4 } else { 1 };
        // A window of fewer than four pages comes in single pages.
        let folio = if window < 4 { 1 } else { sb.folios.by_readahead.min(1 << window.ilog2()) };
        Reading { pid, inode, cgroup, device: sb.device, window, most, folio, first_folio }
    }

    /// Number of cached pages at the start of a read, which are marked as accessed, and of missing pages after
    /// them. The folio in which the last read of the open file ended was marked by that read.
    fn find_cached(&mut self, inode: InodeId, pages: Range<u64>, before: u64) -> (u64, u64) {
        let page = pages.start;
        let (start, missing) = self.inodes[inode].cache.hole(page, pages.end - page).unwrap_or((pages.end, 0));
        if start > page {
            let folio = self.inodes[inode].cache.folio(page).map_or(page..page, |(at, len)| at..at + u64::from(len));
            let is_counted = before.checked_sub(1).is_some_and(|last| folio.contains(&(last / PAGE)));
            let from = if is_counted { folio.end.min(start) } else { page };
            self.mark_accessed(inode, from, start - from);
        }
        (start - page, missing)
    }

    /// Submits a read. If it need not wait for a queue, the task's wait for I/O ends as it begins, and counts only
    /// as a switch.
    fn submit_read(&mut self, device: BlockId, request: &Request) -> Option<Entry> {
        let entry = self.submit_now(device, request);
        if entry.is_none() {
            self.count_switch();
        }
        entry
    }

    fn read_request(&self, cgroup: CgId, at: u64, pages: u64, slot: u32) -> Request {
        Request {
            way: Way::Read,
            at,
            bytes: pages * PAGE,
            class: Class::Exempt,
            merged: 0,
            goes_on: false,
            cgroup: self.memcg(cgroup),
            done: Done::Complete(slot),
        }
    }

    /// Puts pages that were read into the cache, in folios of at most `most` pages.
    pub(super) fn arrive(&mut self, cgroup: CgId, inode: InodeId, pages: Range<u64>, most: u64) {
        let owner = self.page_owner(cgroup);
        let mut next = pages.start;
        while next < pages.end
            && let Some((at, hole)) = self.inodes[inode].cache.hole(next, pages.end - next)
        {
            let folio = if most > 1 { folio_for(at, hole, most) } else { 1 };
            // A run of folios of the largest size becomes one extent.
            let run = if folio == most { hole / most * most } else { folio };
            self.add_to_cache(inode, at, run, u32::try_from(folio).unwrap_or(1), owner);
            next = at + run;
        }
    }
}
