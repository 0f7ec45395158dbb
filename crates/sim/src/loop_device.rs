// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loop devices: requests become reads and writes of a file on another filesystem of the machine. Buffered requests
//! go through its page cache: a write is complete once it is copied, and is then dirty a second time. Direct requests are
//! direct I/O to its device, submitted without waiting for earlier ones. A flush is an fsync of the file in both cases, which
//! also commits its modification time. Up to 5.13 one worker does all requests and the
//! root is charged; since 5.14 each cgroup has a worker and is charged. Mirrors drivers/block/loop.c.

use crate::arena::{BlockId, CgId, InodeId, PidId};
use crate::block::{Class, Done, Request, Way, submit};
use crate::engine::{Sim, Ticket, suspend};
use crate::process::Sleeper;
use crate::process::use_cpu;
use crate::syscalls::{self, Readahead};
use crate::world::{PAGE, World};
use std::collections::{BTreeMap, VecDeque};

/// The file behind a device.
#[derive(Debug)]
pub(crate) struct LoopFile {
    pub(crate) path: String,
    pub(crate) inode: InodeId,
    /// Whether it is accessed without the page cache.
    pub(crate) is_direct: bool,
    queues: BTreeMap<CgId, Queue>,
}

/// Requests of one worker.
#[derive(Debug, Default)]
struct Queue {
    /// Numbers of requests within the device.
    slots: VecDeque<u32>,
    worker: Option<Ticket>,
}

impl LoopFile {
    pub(crate) fn new(path: &str, inode: InodeId, is_direct: bool) -> LoopFile {
        LoopFile { path: path.to_owned(), inode, is_direct, queues: BTreeMap::new() }
    }
}

impl World {
    /// Queues a request of a loop device for its worker.
    pub(crate) fn loop_queue(&mut self, device: BlockId, request: &Request, slot: u32) {
        let has_workers = self.behaviour.stack.loop_charges_cgroup && request.way != Way::Flush;
        let of = if has_workers { request.cgroup } else { CgId::ROOT };
        let Some(file) = &mut self.blocks[device].loop_file else { return };
        let is_new = !file.queues.contains_key(&of);
        let queue = file.queues.entry(of).or_default();
        queue.slots.push_back(slot);
        let ticket = queue.worker.take();
        if is_new {
            self.new_workers.push(crate::block::Worker::Loop(device, of));
        } else if let Some(ticket) = ticket {
            self.wake(ticket);
        }
    }

    fn loop_next(&mut self, device: BlockId, of: CgId, ticket: Ticket) -> Option<u32> {
        let queue = self.blocks[device].loop_file.as_mut()?.queues.get_mut(&of)?;
        let next = queue.slots.pop_front();
        queue.worker = next.is_none().then_some(ticket);
        next
    }
}

/// One worker of a loop device, for one cgroup.
pub(crate) async fn worker(sim: Sim, device: BlockId, of: CgId) {
    let (pid, inode, is_direct) = {
        let mut world = sim.w();
        let name = format!("kworker/u:{}+loop", world.blocks[device].name);
        let pid = world.kernel_thread(&name);
        // Its memory is charged to the cgroup that it works for, its throttling is the root's.
        world.pids[pid].charges = Some(of).filter(|of| *of != CgId::ROOT);
        world.pids[pid].is_local_throttle = true;
        let Some(file) = &world.blocks[device].loop_file else { return };
        (pid, file.inode, file.is_direct)
    };
    if is_direct {
        // Direct requests are submitted and not waited for.
        sim.w().sleeps_as(sim.current_process(), Sleeper::Other);
    }
    let mut ahead = Readahead::default();
    loop {
        let ticket = sim.ticket("");
        let next = { sim.w().loop_next(device, of, ticket) };
        let Some(slot) = next else {
            suspend().await;
            continue;
        };
        let request = { sim.w().blocks[device].request(slot) };
        if is_direct {
            direct(&sim, pid, inode, (device, slot), request).await;
        } else {
            buffered(&sim, pid, inode, &mut ahead, request).await;
            sim.w().io_done(device, slot);
        }
    }
}

/// Submits a request to the disk below, whose completion completes it. A flush is waited for (`lo_req_flush`).
async fn direct(sim: &Sim, pid: PidId, inode: InodeId, of: (BlockId, u32), request: Request) {
    let (below, call) = {
        let world = sim.w();
        (world.sbs[world.inodes[inode].sb].device, world.costs.call)
    };
    use_cpu(sim, pid, call, false).await;
    match (below, request.way) {
        (None, _) => {}
        (Some(_), Way::Flush) => crate::sync::fsync(sim, inode, false).await,
        (Some(below), way) => {
            if way == Way::Write {
                syscalls::update_time(sim, pid, inode).await;
            }
            let done = Done::Loop(of.0, of.1);
            return submit(sim, below, Request { class: Class::Exempt, done, merged: 0, ..request }).await;
        }
    }
    sim.w().io_done(of.0, of.1);
}

async fn buffered(sim: &Sim, pid: PidId, inode: InodeId, ahead: &mut Readahead, request: Request) {
    let offset = request.at.saturating_mul(PAGE);
    let has_failed = match request.way {
        Way::Flush => {
            crate::sync::fsync(sim, inode, false).await;
            return;
        }
        Way::Read => syscalls::read(sim, pid, inode, ahead, offset, request.bytes).await.is_err(),
        Way::Write => syscalls::write(sim, pid, inode, Some(offset), request.bytes).await.is_err(),
    };
    if has_failed {
        // The cgroup is full and its pages wait for this very worker: charge this request to the root.
        let charges = std::mem::take(&mut sim.w().pids[pid].charges);
        if request.way == Way::Write {
            let _ = syscalls::write(sim, pid, inode, Some(offset), request.bytes).await;
        }
        sim.w().pids[pid].charges = charges;
    }
}
