// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block devices: a queue of a given depth before a device that moves so many bytes and serves so many
//! requests a second, each way. A cap is a leaky bucket with a tenth of a second of credit. Mirrors
//! /proc/diskstats and what block/blk-mq.c makes wait; which request is merged with which is decided by who submits.

use crate::arena::{BlockId, CgId};
use crate::engine::{Sim, Ticket, Waiters, suspend};
use crate::wbt::Wbt;
use crate::world::World;
use floodline_core::id::DevId;

/// Pages of 4 KiB in one bio (`BIO_MAX_VECS`).
pub(crate) const BIO_PAGES: u64 = 256;
/// Credit of a cap, the burst that a throttle lets through: 100 ms.
const CREDIT: u64 = 100_000_000;

/// What kind of request, for who may go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Nobody's page cache: reads, direct writes, flushes.
    Exempt,
    /// A buffered write that somebody waits for, or of no special kind.
    Normal,
    /// A buffered write of background or periodic writeback.
    Background,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Write,
    Flush,
}

/// What follows when a request is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// A part of what is written as one, in this cell of [`Ioends`].
    Writeback(u32),
    /// Somebody waits in this cell of [`Completions`].
    Complete(u32),
    /// Nothing: another leg of a mirror tells.
    Nothing,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) way: Way,
    pub(crate) bytes: u64,
    pub(crate) class: Class,
    /// Bios it is merged from.
    pub(crate) merged: u64,
    pub(crate) cgroup: CgId,
    pub(crate) done: Done,
}

/// One way of a device: caps and until when they are used up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lane {
    /// Bytes per second; 0 is no cap.
    pub(crate) bandwidth: u64,
    /// Requests per second; 0 is no cap.
    pub(crate) iops: u64,
    busy_until: u64,
}

/// Counters as `/proc/diskstats` has them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskStats {
    pub(crate) ios: [u64; 3],
    pub(crate) merged: [u64; 3],
    pub(crate) bytes: [u64; 3],
    pub(crate) time: [u64; 3],
    pub(crate) io_time: u64,
    pub(crate) weighted: u64,
    since: u64,
}

/// A block device.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) name: String,
    pub(crate) dev: DevId,
    pub(crate) size: u64,
    pub(crate) rotational: bool,
    pub(crate) depth: u32,
    pub(crate) latency: u64,
    pub(crate) read: Lane,
    pub(crate) write: Lane,
    /// The disks of a mirror.
    pub(crate) members: Vec<BlockId>,
    pub(crate) wbt: Wbt,
    pub(crate) stats: DiskStats,
    pub(crate) in_flight: u32,
    waiters: Waiters,
    requests: Vec<(Request, u64)>,
    free: Vec<u32>,
    /// Bytes and requests by cgroup: read, written.
    pub(crate) by_cgroup: std::collections::BTreeMap<CgId, [u64; 4]>,
}

impl Lane {
    fn serve(&mut self, now: u64, bytes: u64) -> u64 {
        let by_bytes = u128::from(bytes) * 1_000_000_000 / u128::from(self.bandwidth.max(1));
        let by_bytes = if self.bandwidth == 0 { 0 } else { u64::try_from(by_bytes).unwrap_or(u64::MAX) };
        let by_ios = 1_000_000_000_u64.checked_div(self.iops).unwrap_or(0);
        let start = self.busy_until.max(now);
        self.busy_until = start.saturating_add(by_bytes.max(by_ios));
        // The credit lets a request go before its share of the cap has passed.
        self.busy_until.saturating_sub(CREDIT).max(now)
    }
}

impl Block {
    pub(crate) fn new(name: &str, dev: DevId) -> Block {
        Block {
            name: name.to_owned(),
            dev,
            size: 1 << 30,
            rotational: false,
            depth: 256,
            latency: 0,
            read: Lane::default(),
            write: Lane::default(),
            members: Vec::new(),
            wbt: Wbt::off(),
            stats: DiskStats::default(),
            in_flight: 0,
            waiters: Waiters::default(),
            requests: Vec::new(),
            free: Vec::new(),
            by_cgroup: std::collections::BTreeMap::new(),
        }
    }

    /// Brings the times of the counters up to a moment.
    pub(crate) fn account(&mut self, now: u64) {
        let passed = now.saturating_sub(self.stats.since);
        if self.in_flight > 0 {
            self.stats.io_time += passed;
            self.stats.weighted += passed * u64::from(self.in_flight);
        }
        self.stats.since = now;
    }

    /// Takes a request; when it will be complete.
    fn start(&mut self, now: u64, request: Request) -> (u64, u32) {
        self.account(now);
        self.in_flight += 1;
        let done = match request.way {
            Way::Read => self.read.serve(now, request.bytes),
            Way::Write => self.write.serve(now, request.bytes),
            Way::Flush => now,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.requests.push((request, now));
            u32::try_from(self.requests.len() - 1).unwrap_or(u32::MAX)
        });
        self.requests[slot as usize] = (request, now);
        (done.saturating_add(self.latency), slot)
    }
}

/// Hands a request to a device. Returns when the queue has taken it, which may be long before it is done.
pub(crate) async fn submit(sim: &Sim, device: BlockId, request: Request) {
    sim.w().account_bio(device, &request);
    if request.way == Way::Write && request.class != Class::Exempt {
        crate::wbt::throttle(sim, device, request.class).await;
    }
    loop {
        {
            let mut world = sim.w();
            let block = &mut world.blocks[device];
            if block.in_flight < block.depth || !block.members.is_empty() {
                break;
            }
        }
        sim.wait("a free request of a device", |world| &mut world.blocks[device].waiters).await;
    }
    let mut world = sim.w();
    let now = world.now;
    let mut last = 0;
    for member in world.blocks[device].members.clone() {
        if request.way == Way::Read && last > 0 {
            break;
        }
        let leg = Request { done: Done::Nothing, class: Class::Exempt, ..request };
        world.account_bio(member, &leg);
        let (at, slot) = world.blocks[member].start(now, leg);
        world.queue.push_completion(at, member, request.way, slot);
        last = last.max(at);
    }
    let (at, slot) = world.blocks[device].start(now, request);
    world.queue.push_completion(at.max(last), device, request.way, slot);
}

/// Hands a request to a device and waits until it is done.
pub(crate) async fn submit_and_wait(sim: &Sim, device: BlockId, request: Request, waits: &'static str) {
    // The ticket of this process changes with every sleep: complete into a cell of its own.
    let slot = sim.w().completions.open();
    submit(sim, device, Request { done: Done::Complete(slot), ..request }).await;
    loop {
        {
            let mut world = sim.w();
            if world.completions.is_done(slot) {
                world.completions.close(slot);
                return;
            }
            let ticket = sim.ticket(waits);
            world.completions.wait(slot, ticket);
        }
        suspend().await;
    }
}

impl World {
    /// What `io.stat` counts, at submission.
    fn account_bio(&mut self, device: BlockId, request: &Request) {
        if request.way != Way::Flush {
            let at = usize::from(request.way == Way::Write);
            let row = self.blocks[device].by_cgroup.entry(request.cgroup).or_default();
            row[at] += request.bytes;
            row[2 + at] += 1;
        }
    }

    /// A device has completed a request.
    pub(crate) fn io_done(&mut self, device: BlockId, slot: u32) {
        let now = self.now;
        let block = &mut self.blocks[device];
        block.account(now);
        let (request, since) = block.requests[slot as usize];
        block.free.push(slot);
        block.in_flight -= 1;
        let way = request.way as usize;
        block.stats.ios[way] += 1;
        block.stats.merged[way] += request.merged;
        block.stats.bytes[way] += request.bytes;
        block.stats.time[way] += now - since;
        let next = block.waiters.take_first();
        if let Some(ticket) = next {
            self.wake(ticket);
        }
        self.wbt_done(device, &request, since);
        match request.done {
            Done::Writeback(ioend) => self.ioend_done(ioend),
            Done::Complete(slot) => {
                for waiting in self.completions.complete(slot) {
                    self.wake(waiting);
                }
            }
            Done::Nothing => {}
        }
    }
}

/// Cells that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    cells: Vec<(bool, Waiters)>,
    free: Vec<u32>,
}

impl Completions {
    pub(crate) fn open(&mut self) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.cells.push((false, Waiters::default()));
            u32::try_from(self.cells.len() - 1).unwrap_or(u32::MAX)
        });
        self.cells[slot as usize].0 = false;
        slot
    }

    pub(crate) fn is_done(&self, slot: u32) -> bool {
        self.cells[slot as usize].0
    }

    pub(crate) fn close(&mut self, slot: u32) {
        self.free.push(slot);
    }

    pub(crate) fn wait(&mut self, slot: u32, ticket: Ticket) {
        self.cells[slot as usize].1.add(ticket);
    }

    pub(crate) fn complete(&mut self, slot: u32) -> Waiters {
        self.cells[slot as usize].0 = true;
        self.cells[slot as usize].1.take()
    }
}
