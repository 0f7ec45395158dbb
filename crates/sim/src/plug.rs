// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plug of a flusher, or of a task that syncs a btrfs. It holds back the last request, so that later pages can join it.
//! Filesystems give files that are written one after the other blocks that lie side by side, so pages of the next file join
//! the request of the last one, up to the device's largest request. A request that joins needs no place in the queue and none
//! in wbt. A flusher that sleeps, or makes a request that joins no other, submits the plugged request. Mirrors
//! blk_attempt_plug_merge and blk_flush_plug of block/blk-core.c and block/blk-merge.c. Left out: stacked devices, which take
//! bios, and requests of a cgroup with limits, whose dispatcher has a plug of its own. On a real 7.2, 3,900 requests for
//! files of 200 kB went to the disk as 332.

use crate::arena::{BlockId, Id, InodeId, WbId};
use crate::block::{BIO_PAGES, Block, Done, Entry, Request, device_page};
use crate::engine::Sim;
use crate::world::{PAGE, World};
use floodline_scenario::FsType;
use std::collections::BTreeMap;

/// Pages of the largest ext4 file whose blocks come from the preallocation of small files (`s_mb_stream_request`).
const SMALL: u64 = 16;

/// Owner of a plug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Plug {
    Flusher(WbId),
    /// A task that writes, by its process.
    Task(u32),
}

/// Requests in plugs, and what joined requests complete.
#[derive(Debug, Default)]
pub(crate) struct Plugs {
    /// A plug stays here when it is empty: mostly the next request comes soon.
    held: BTreeMap<Plug, Option<Plugged>>,
    joined: Vec<Vec<Done>>,
    free: Vec<u32>,
}

/// A request in a plug.
#[derive(Clone, Copy, Debug)]
struct Plugged {
    device: BlockId,
    request: Request,
    /// Place after its last page.
    end: u64,
}

impl Plugged {
    /// Whether a request of the same device can become a part of it, as far as the two alone tell.
    fn takes(&self, device: BlockId, request: &Request, most: u64) -> bool {
        let alike = (device, request.way, request.class, request.cgroup)
            == (self.device, self.request.way, self.request.class, self.request.cgroup);
        alike && self.request.bytes.saturating_add(request.bytes) <= most
    }
}

impl Plugs {
    /// Makes a request part of another one.
    fn join(&mut self, of: Plug, request: &Request) {
        let Plugs { held, joined, free } = self;
        let Some(Some(plugged)) = held.get_mut(&of) else { return };
        let cell = match plugged.request.done {
            Done::Joined(cell) => cell,
            first => {
                let cell = free.pop().unwrap_or_else(|| {
                    joined.push(Vec::new());
                    u32::try_from(joined.len() - 1).unwrap_or(u32::MAX)
                });
                joined[cell as usize].push(first);
                plugged.request.done = Done::Joined(cell);
                cell
            }
        };
        joined[cell as usize].push(request.done);
        plugged.request.bytes += request.bytes;
        plugged.request.merged += 1 + request.merged;
        plugged.end = end_of(request);
    }

    /// Returns what a completed request completes, and frees its cell.
    pub(crate) fn completed(&mut self, cell: u32) -> Vec<Done> {
        self.free.push(cell);
        std::mem::take(&mut self.joined[cell as usize])
    }
}

/// Place after the last page of a request.
fn end_of(request: &Request) -> u64 {
    request.at + request.bytes.div_ceil(PAGE)
}

impl Block {
    /// Whether requests wait in a plug before they reach its queue.
    fn has_plug(&self) -> bool {
        let is_stacked = !self.mirrors.is_empty() || self.crypt.is_some() || self.loop_file.is_some();
        !is_stacked && self.delay.is_none() && !self.throttle.has_limits()
    }
}

impl World {
    /// Notes that a file gets blocks up to the page `end`: next to those that its filesystem gave out last in the same
    /// allocation group of XFS, or to a file of the same kind on ext4. Blocks that are kept for the growth of an open file
    /// lie in between.
    pub(crate) fn take_place(&mut self, inode: InodeId, end: u64) {
        let i = &self.inodes[inode];
        let (sb, is_first) = (i.sb, i.allocated == 0);
        let region = match self.sbs[sb].fs_type {
            FsType::Xfs => i.group,
            FsType::Ext4 => u32::from(end <= SMALL),
            _ => 0,
        };
        let before = self.sbs[sb].places.insert(region, (inode, device_page(inode, end)));
        if is_first {
            let closed = before.filter(|(file, _)| self.inodes[*file].opens == 0);
            self.inodes[inode].follows = closed.map(|(_, place)| place);
        }
    }

    /// Place after the last block of the file that lies before this page, if it is the first page of a file.
    fn before(&self, at: u64) -> Option<u64> {
        let inode = InodeId(u32::try_from(at >> 28).ok()?);
        let is_first = device_page(inode, 0) == at && inode.number() < self.inodes.len();
        if is_first { self.inodes[inode].follows } else { None }
    }

    /// Hands a writeback request down to a device, or into the plug if the caller has one. Returns what the caller has to wait
    /// for, if anything, before [`enter`].
    pub(crate) fn hand_down(&mut self, plug: Option<Plug>, device: BlockId, request: &Request) -> Option<Entry> {
        let Some(of) = plug.filter(|_| self.blocks[device].has_plug()) else {
            return self.submit_now(device, request);
        };
        self.account_bio(device, request);
        let joins = self.plugs.held.get(&of).and_then(Option::as_ref).is_some_and(|plugged| {
            let is_copy = self.is_copy_place(request.at);
            // A request has as many segments as a bio. On btrfs each page is one segment.
            let most = if is_copy { BIO_PAGES.min(self.request_pages()) } else { self.request_pages() };
            let before = if is_copy { Some(request.at) } else { self.before(request.at) };
            plugged.takes(device, request, most * PAGE) && before == Some(plugged.end)
        });
        if joins {
            self.plugs.join(of, request);
            return None;
        }
        self.unplug(of);
        if !self.wbt_admits(device, request) {
            return Some(Entry::Wbt);
        }
        if self.blocks[device].is_full() {
            return Some(Entry::Request);
        }
        self.plug(of, device, *request);
        None
    }

    /// Puts a request that has its place in the queue into a plug, which is empty.
    fn plug(&mut self, of: Plug, device: BlockId, request: Request) {
        *self.plugs.held.entry(of).or_default() = Some(Plugged { device, request, end: end_of(&request) });
    }

    /// Hands the request in a plug to the device.
    pub(crate) fn unplug(&mut self, of: Plug) {
        let plugged = self.plugs.held.get_mut(&of).and_then(Option::take);
        if let Some(Plugged { device, request, .. }) = plugged {
            self.issue(device, &request);
        }
    }
}

/// Waits until a queue accepts a request that it did not accept at once.
pub(crate) async fn enter(sim: &Sim, plug: Option<Plug>, device: BlockId, request: &Request, entry: Entry) {
    let Some(of) = plug.filter(|_| sim.w().blocks[device].has_plug()) else {
        return crate::block::enter(sim, device, request, entry).await;
    };
    if entry == Entry::Wbt {
        crate::wbt::wait(sim, device, request.class).await;
    }
    crate::block::free_request(sim, device).await;
    sim.w().plug(of, device, *request);
}

/// Runs a part of the work of a plug's owner. If that part has to sleep, the request in the plug is handed down first.
pub(crate) async fn unplugging<T>(sim: &Sim, plug: Option<Plug>, part: impl Future<Output = T>) -> T {
    let mut part = std::pin::pin!(part);
    std::future::poll_fn(|context| {
        let poll = part.as_mut().poll(context);
        if let (true, Some(of)) = (poll.is_pending(), plug) {
            sim.w().unplug(of);
        }
        poll
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::CgId;
    use crate::block::{Class, Way};

    #[test]
    fn a_request_that_joins_completes_with_the_first() {
        let request = |inode, pages: u64, done| {
            let at = device_page(InodeId(inode), 0);
            let (way, class, cgroup) = (Way::Write, Class::Normal, CgId::ROOT);
            Request { way, at, bytes: pages * PAGE, class, merged: 0, goes_on: false, cgroup, done }
        };
        let (of, device, most) = (Plug::Flusher(WbId(0)), BlockId(0), 320 * PAGE);
        let first = request(1, 49, Done::Writeback(7));
        let plugged = Plugged { device, request: first, end: end_of(&first) };
        let mut plugs = Plugs { held: BTreeMap::from([(of, Some(plugged))]), ..Plugs::default() };
        let held = |plugs: &Plugs| plugs.held[&of].expect("a request");
        for inode in 2..=6 {
            let next = request(inode, 49, Done::Writeback(7 + inode));
            assert!(held(&plugs).takes(device, &next, most), "{inode}");
            plugs.join(of, &next);
        }
        let Plugged { request: joined, end, .. } = held(&plugs);
        assert_eq!((joined.bytes, joined.merged, end), (294 * PAGE, 5, device_page(InodeId(6), 49)));
        assert!(!held(&plugs).takes(device, &request(7, 49, Done::Nothing), most), "a request has 320 pages at most");
        let other = Request { cgroup: CgId(3), ..request(7, 4, Done::Nothing) };
        assert!(!held(&plugs).takes(device, &other, most), "that of another cgroup stays apart");
        let Done::Joined(cell) = joined.done else { panic!("{:?}", joined.done) };
        let completes = [7, 9, 10, 11, 12, 13].map(Done::Writeback);
        assert_eq!(plugs.completed(cell), completes);
        assert_eq!(plugs.free, [cell]);
    }
}
