// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages under read: a request's pages are in the cache, locked, from its submission on. Others that need one of them
//! wait for the request and read nothing themselves (`filemap_update_page`, `folio_lock`). In the model, the pages enter
//! the cache when the first of those who wait has seen the request done.

use crate::arena::{CgId, InodeId, PidId};
use crate::completions::Completions;
use crate::engine::{Sim, suspend};
use crate::memory::{NoMemory, make_room};
use crate::world::World;
use std::ops::Range;

/// A read of pages into the cache of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnderRead {
    /// First page, number of pages, and pages of the largest folio.
    pub(super) at: u64,
    pub(super) count: u64,
    pub(super) folio: u64,
    /// Completion cell of its request.
    pub(super) slot: u32,
    /// The cgroup whose task submitted it.
    pub(super) cgroup: CgId,
}

impl UnderRead {
    pub(super) fn pages(&self) -> Range<u64> {
        self.at..self.at + self.count
    }

    fn is(&self, other: &UnderRead) -> bool {
        (self.slot, self.at) == (other.slot, other.at)
    }
}

/// Reads under way into the cache of one inode, in the order of their submission.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    all: Vec<UnderRead>,
    /// Cells of those whose reader went elsewhere.
    left: Vec<u32>,
}

impl Reads {
    /// The read that brings in a page.
    fn of(&self, page: u64) -> Option<UnderRead> {
        self.all.iter().find(|read| read.pages().contains(&page)).copied()
    }

    fn has(&self, read: &UnderRead) -> bool {
        self.all.iter().any(|other| other.is(read))
    }

    /// Adds a read, and forgets those that are done and that their readers left.
    fn add(&mut self, read: UnderRead, completions: &mut Completions) {
        self.left.retain(|slot| {
            let is_done = completions.is_done(*slot);
            if is_done {
                self.all.retain(|read| read.slot != *slot);
                completions.close(*slot);
            }
            !is_done
        });
        self.all.push(read);
    }

    /// Ends a read. Returns whether it was under way.
    fn end(&mut self, read: &UnderRead, completions: &mut Completions) -> bool {
        let Some(at) = self.all.iter().position(|other| other.is(read)) else { return false };
        self.all.remove(at);
        self.left.retain(|slot| *slot != read.slot);
        completions.close(read.slot);
        true
    }

    /// Cuts a range to the pages around `page` that are not under read.
    fn cut(&self, page: u64, pages: Range<u64>) -> Range<u64> {
        let starts = self.all.iter().map(|read| read.at).filter(|at| *at > page);
        let ends = self.all.iter().map(|read| read.pages().end).filter(|end| *end <= page);
        let end = starts.min().map_or(pages.end, |start| start.min(pages.end));
        ends.max().map_or(pages.start, |end| end.max(pages.start))..end
    }
}

/// What a reader finds at a page.
pub(super) enum Found {
    /// Pages that are cached, up to this one.
    Cached(u64),
    UnderRead(UnderRead),
    /// Pages that have to be read, up to this one.
    Missing(u64),
    /// Pages without data on the device, up to this one.
    Zeros(u64),
}

/// Waits until a read is done, and puts its pages into the cache if that is still to do. `cgroup` is charged if that of
/// the reader who submitted it has no room.
pub(super) async fn bring_in(
    sim: &Sim,
    pid: PidId,
    cgroup: CgId,
    inode: InodeId,
    read: UnderRead,
) -> Result<(), NoMemory> {
    if !until_done(sim, pid, inode, &read).await {
        return Ok(());
    }
    let count = read.count;
    let (cgroup, has_room) = {
        let world = sim.w();
        match world.has_room(read.cgroup, count) {
            true => (read.cgroup, true),
            false => (cgroup, cgroup != read.cgroup && world.has_room(cgroup, count)),
        }
    };
    if !has_room {
        make_room(sim, pid, cgroup, count).await?;
    }
    let mut world = sim.w();
    if world.end_read(inode, &read) {
        world.arrive(cgroup, inode, read.pages(), read.folio);
    }
    Ok(())
}

/// Waits on a task's behalf until a read is done. Returns whether its pages are still to enter the cache.
async fn until_done(sim: &Sim, pid: PidId, inode: InodeId, read: &UnderRead) -> bool {
    if !sim.w().inodes[inode].reads.has(read) {
        return false;
    }
    let since = sim.w().io_wait_begins(pid);
    loop {
        {
            let mut world = sim.w();
            let is_under_way = world.inodes[inode].reads.has(read);
            if !is_under_way || world.completions.is_done(read.slot) {
                world.io_wait_ends(pid, since);
                return is_under_way;
            }
            let ticket = sim.ticket("a read from the device");
            world.completions.wait(read.slot, ticket);
        }
        suspend().await;
    }
}

impl World {
    /// What a reader finds at the first of some pages.
    pub(super) fn find_for_read(&self, inode: InodeId, pages: Range<u64>) -> Found {
        let i = &self.inodes[inode];
        let (at, len) = i.cache.hole(pages.start, pages.end - pages.start).unwrap_or((pages.end, 0));
        if at > pages.start {
            return Found::Cached(at);
        }
        if let Some(read) = i.reads.of(at) {
            return Found::UnderRead(read);
        }
        match i.on_device(at, i.reads.cut(at, at..at + len).end) {
            (true, until) => Found::Missing(until),
            (false, until) => Found::Zeros(until),
        }
    }

    /// Returns the pages of a range that a fault or a write may read with `page`, or the read that brings it in.
    pub(super) fn may_read(&self, inode: InodeId, page: u64, pages: Range<u64>) -> Result<Range<u64>, UnderRead> {
        let reads = &self.inodes[inode].reads;
        reads.of(page).map_or_else(|| Ok(reads.cut(page, pages)), Err)
    }

    pub(super) fn begin_read_of(&mut self, inode: InodeId, read: UnderRead) {
        self.inodes[inode].reads.add(read, &mut self.completions);
    }

    /// Ends a read. Returns whether it was under way.
    pub(super) fn end_read(&mut self, inode: InodeId, read: &UnderRead) -> bool {
        self.inodes[inode].reads.end(read, &mut self.completions)
    }

    /// Notes that a reader does not wait for a read that it submitted.
    pub(super) fn leave_read(&mut self, inode: InodeId, read: &UnderRead) {
        let reads = &mut self.inodes[inode].reads;
        if reads.has(read) {
            reads.left.push(read.slot);
        }
    }
}
