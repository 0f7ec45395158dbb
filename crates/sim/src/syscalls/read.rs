// SPDX-License-Identifier: MIT OR Apache-2.0
//! read(2) through the page cache: what is cached is there, what is not is read in windows that grow while the reading
//! goes on in order (mm/readahead.c).

use super::INODE_LOCKED;
use super::write::folio_for;
use crate::arena::{CgId, InodeId, PidId};
use crate::block::{Class, Done, Request, Way, device_page, submit, submit_and_wait, time_of};
use crate::engine::Sim;
use crate::memory::{NoMemory, make_room};
use crate::process::{io_wait, use_cpu};
use crate::sync::{lock_shared, unlock_shared};
use crate::world::{PAGE, World};
use floodline_core::scenario::FsType;

/// Requests for pages that were asked for ahead.
#[derive(Debug, Default)]
pub(crate) struct Readahead {
    /// First page, pages, and where the completion is told.
    reading: std::collections::VecDeque<(u64, u64, u32)>,
    next: u64,
    /// Where the next read goes on if it is sequential.
    expected: u64,
    /// Pages asked for at once: few at first, more from one time to the next.
    size: u64,
}

/// Pages of the first readahead, for a read of so many (`get_init_ra_size`).
fn first_window(asked: u64, most: u64) -> u64 {
    let size = asked.max(1).checked_next_power_of_two().unwrap_or(most);
    let factor = match size {
        _ if size <= most / 32 => 4,
        _ if size <= most / 4 => 2,
        _ => return most,
    };
    size * factor
}

/// Pages of the next one (`get_next_ra_size`).
fn next_window(size: u64, most: u64) -> u64 {
    if size < most / 16 { 4 * size } else { (2 * size).min(most) }
}

/// Reads from a file through the page cache; how many bytes. XFS takes the inode's lock for it, so that a reader waits
/// for a writer of the same file, also for one that is throttled.
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
    got
}

/// What is common to all filesystems.
async fn filemap_read(
    sim: &Sim,
    (pid, inode): (PidId, InodeId),
    ahead: &mut Readahead,
    offset: u64,
    len: u64,
) -> Result<u64, NoMemory> {
    let (costs, size, sb, cgroup) = {
        let world = sim.w();
        let i = &world.inodes[inode];
        let task = &world.pids[pid];
        (world.costs, i.size, i.sb, task.charges.unwrap_or(task.cgroup))
    };
    use_cpu(sim, pid, costs.call, false).await;
    let end = size.min(offset.saturating_add(len));
    let got = end.saturating_sub(offset);
    {
        let mut world = sim.w();
        let io = &mut world.pids[pid].io;
        io.rchar += got;
        io.syscr += 1;
        if got > 0 {
            world.touch_atime(inode, cgroup);
        }
    }
    let (window, device) = {
        let world = sim.w();
        let read_ahead = world.sbs[sb].bdi.map_or(32, |bdi| world.bdis[bdi].read_ahead / PAGE);
        (read_ahead.max((got / PAGE).min(world.request_pages())).max(1), world.sbs[sb].device)
    };
    let is_sequential = offset == ahead.expected || offset == 0;
    ahead.expected = end;
    let last = end.div_ceil(PAGE);
    let file_end = size.div_ceil(PAGE);
    let mut page = offset / PAGE;
    while page < last {
        let hole = sim.w().inodes[inode].cache.hole(page, last - page);
        let Some((start, run)) = hole else {
            sim.w().activate_if_seen(inode, page, last - page);
            let bytes = end.min(last * PAGE) - offset.max(page * PAGE);
            use_cpu(sim, pid, time_of(bytes, costs.copy_out), false).await;
            break;
        };
        if start > page {
            sim.w().activate_if_seen(inode, page, start - page);
            use_cpu(sim, pid, time_of((start - page) * PAGE, costs.copy_out), false).await;
            page = start;
            continue;
        }
        let Some(device) = device else {
            // A file in memory has no holes; one that was never written reads as zeros.
            page = start + run;
            continue;
        };
        let limit = if is_sequential { file_end } else { last };
        let most = sim.w().request_pages();
        let is_expected = ahead.reading.front().is_some_and(|(at, count, _)| (*at..at + count).contains(&page));
        // The first window comes alone: whether another will be wanted shows when this one is used up.
        let goes_on = is_sequential && page > 0 && page == ahead.next;
        if !is_expected && !goes_on {
            // Not what was asked for ahead: begin anew here.
            // The cells stay open until the requests are done; a few per change of place.
            ahead.reading.clear();
            ahead.next = page;
            ahead.size = first_window(last - page, window);
        }
        let windows = if is_expected || goes_on { 2 } else { 1 };
        let reach = page + if is_sequential { windows * ahead.size } else { run.max(1) };
        while ahead.next < limit.min(reach) {
            let count = (limit - ahead.next).min(ahead.size.max(1)).min(most);
            let slot = sim.w().completions.open();
            let request = read_request(sim, cgroup, device_page(inode, ahead.next), count, slot);
            io_wait(sim, Some(pid), submit(sim, device, request)).await;
            sim.w().pids[pid].io.read_bytes += count * PAGE;
            ahead.reading.push_back((ahead.next, count, slot));
            ahead.next += count;
        }
        ahead.size = next_window(ahead.size, window);
        let Some((at, count, slot)) = ahead.reading.pop_front() else { break };
        io_wait(sim, Some(pid), completed(sim, slot)).await;
        sim.w().completions.close(slot);
        let largest = sim.w().sbs[sb].folios.by_readahead;
        arrive(sim, cgroup, inode, at, count, largest).await?;
    }
    Ok(got)
}

/// Reads pages that are not cached, into folios no larger than so many pages, and waits for them.
pub(super) async fn fetch(
    sim: &Sim,
    pid: PidId,
    inode: InodeId,
    start: u64,
    len: u64,
    folio: u64,
) -> Result<(), NoMemory> {
    let (device, cgroup) = {
        let world = sim.w();
        let task = &world.pids[pid];
        (world.sbs[world.inodes[inode].sb].device, task.charges.unwrap_or(task.cgroup))
    };
    if let Some(device) = device {
        let request = read_request(sim, cgroup, device_page(inode, start), len, 0);
        let waits = "a read from the device";
        io_wait(sim, Some(pid), submit_and_wait(sim, device, request, waits)).await;
        sim.w().pids[pid].io.read_bytes += len * PAGE;
    }
    arrive(sim, cgroup, inode, start, len, folio).await
}

fn read_request(sim: &Sim, cgroup: CgId, at: u64, pages: u64, slot: u32) -> Request {
    let cgroup = sim.w().memcg(cgroup);
    Request {
        way: Way::Read,
        at,
        bytes: pages * PAGE,
        class: Class::Exempt,
        merged: 0,
        cgroup,
        done: Done::Complete(slot),
    }
}

/// Pages have been read: they are in the cache from now on, in folios of at most so many.
async fn arrive(sim: &Sim, cgroup: CgId, inode: InodeId, start: u64, len: u64, most: u64) -> Result<(), NoMemory> {
    make_room(sim, cgroup, len).await?;
    let mut world = sim.w();
    let owner = world.page_owner(cgroup);
    while let Some((at, hole)) = world.inodes[inode].cache.hole(start, len) {
        if most <= 1 {
            world.add_to_cache(inode, at, hole, 1, owner);
            continue;
        }
        let folio = folio_for(at, hole, most);
        // A run of folios of the largest size is one extent.
        let run = if folio == most { hole / most * most } else { folio };
        world.add_to_cache(inode, at, run, u32::try_from(folio).unwrap_or(1), owner);
    }
    Ok(())
}

/// Waits until a cell is complete.
async fn completed(sim: &Sim, slot: u32) {
    loop {
        {
            let mut world = sim.w();
            if world.completions.is_done(slot) {
                return;
            }
            let ticket = sim.ticket("a read from the device");
            world.completions.wait(slot, ticket);
        }
        crate::engine::suspend().await;
    }
}

impl World {
    /// Pages that are read again are active; a page met for the first time since it was brought in is not.
    fn activate_if_seen(&mut self, inode: InodeId, start: u64, len: u64) {
        let i = &self.inodes[inode];
        // Written by a program and read once: still the first meeting.
        if i.cache.range(start, len).any(|(_, extent)| !extent.active && !extent.dirty) {
            self.activate(inode, start, len);
        }
    }
}
