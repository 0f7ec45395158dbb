// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delay that device-mapper puts before a disk: how the lab makes the latency of a device. A request is taken at
//! once and held for its time. One worker then submits what is due in the order of arrival, and waits for the queue of
//! the disk like any task: a read waits behind the writes that wait there. Mirrors drivers/md/dm-delay.c.

use crate::arena::BlockId;
use crate::block::{Request, enter_queue};
use crate::engine::{Sim, Waiters};
use crate::process::Sleeper;
use crate::world::World;
use std::collections::VecDeque;

/// Requests that are held before a disk.
#[derive(Debug, Default)]
pub(crate) struct Delay {
    /// Nanoseconds.
    time: u64,
    /// Requests, each with the time from which it is due.
    held: VecDeque<(u64, Request)>,
    worker: Waiters,
}

impl Delay {
    pub(crate) fn new(time: u64) -> Delay {
        Delay { time, ..Delay::default() }
    }
}

impl World {
    /// Holds a request. Returns false if the device has no delay.
    pub(crate) fn holds(&mut self, device: BlockId, request: &Request) -> bool {
        let hz = self.build.hz().max(1);
        let (now, jiffy) = (self.now, 1_000_000_000 / hz);
        let Some(delay) = &mut self.blocks[device].delay else { return false };
        // Timers count whole jiffies from the present one on.
        let due = (now / jiffy).saturating_add(delay.time.div_ceil(jiffy)).saturating_mul(jiffy);
        delay.held.push_back((due.max(now), *request));
        let worker = delay.worker.take();
        self.wake_all(worker);
        true
    }

    /// The request that is due next.
    fn next_held(&self, device: BlockId) -> Option<(u64, Request)> {
        self.blocks[device].delay.as_ref()?.held.front().copied()
    }
}

/// Submits the requests of a device when they are due (`flush_delayed_bios`).
pub(crate) async fn worker(sim: Sim, device: BlockId) {
    // Its sleep counts for no task.
    sim.w().sleeps_as(sim.current_process(), Sleeper::Other);
    loop {
        let next = { sim.w().next_held(device) };
        let Some((due, request)) = next else {
            sim.wait("a request to delay", |world| &mut world.blocks[device].delay.get_or_insert_default().worker)
                .await;
            continue;
        };
        if due > sim.now() {
            sim.sleep_until(due, "the end of a delay").await;
        }
        let entry = {
            let mut world = sim.w();
            if let Some(delay) = &mut world.blocks[device].delay {
                delay.held.pop_front();
            }
            world.enter_disk(device, &request)
        };
        if let Some(entry) = entry {
            enter_queue(&sim, device, &request, entry).await;
        }
    }
}
