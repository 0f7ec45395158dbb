// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flushes of a device's cache, which requests share: only one is under way, and those that come meanwhile are served
//! together by the next one. While the data of a request that flushes before and after it (the commit record of a
//! journal) is in the queue, other flushes wait for it too, at most 5 s. Mirrors block/blk-flush.c since commit
//! ae1b1539622f ("block: reimplement FLUSH/FUA to support merge"), 2.6.39. On a real 6.12 beside 64 direct writes with
//! O_DSYNC, 125 writes took 8 flushes.

use crate::arena::BlockId;
use crate::block::{Done, Request, completed, free_request, woken};
use crate::engine::Sim;
use crate::world::World;

/// Longest time that flushes wait for data of others (`FLUSH_PENDING_TIMEOUT`).
const PENDING_TIMEOUT: u64 = 5_000_000_000;

/// Flushes of one device.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    /// Requests that the flush under way serves; none if no flush is under way.
    running: Vec<Request>,
    /// Requests that the next one will serve, and the time since which the first of them waits.
    pending: Vec<Request>,
    pending_since: u64,
    /// Requests in the queue that flush before and after their data.
    data: u32,
}

impl Flushes {
    /// Takes the requests that the next flush serves, if it may begin.
    fn begin(&mut self, now: u64) -> Option<Request> {
        let waits = self.data > 0 && now < self.pending_since.saturating_add(PENDING_TIMEOUT);
        if !self.running.is_empty() || waits {
            return None;
        }
        let first = self.pending.first().copied()?;
        self.running = std::mem::take(&mut self.pending);
        Some(first)
    }
}

impl World {
    /// Takes a flush. Starts it unless others are in the way.
    pub(crate) fn flush_insert(&mut self, device: BlockId, request: &Request) {
        let now = self.now;
        let flushes = &mut self.blocks[device].flushes;
        if flushes.pending.is_empty() {
            flushes.pending_since = now;
        }
        flushes.pending.push(*request);
        self.flush_kick(device);
    }

    /// Starts the next flush if one is wanted and nothing is in its way (`blk_kick_flush`).
    fn flush_kick(&mut self, device: BlockId) {
        let now = self.now;
        if let Some(request) = self.blocks[device].flushes.begin(now) {
            self.issue(device, &request);
        }
    }

    /// Ends the flush under way. Returns what it served.
    pub(crate) fn flush_end(&mut self, device: BlockId) -> Vec<Request> {
        let served = std::mem::take(&mut self.blocks[device].flushes.running);
        self.flush_kick(device);
        served
    }
}

/// Runs a write whose request flushes before and after its data: other flushes wait for that data. The caller flushes
/// next, and the others with it.
pub(crate) async fn with_data<T>(sim: &Sim, device: BlockId, write: impl Future<Output = T>) -> T {
    sim.w().blocks[device].flushes.data += 1;
    let answer = write.await;
    sim.w().blocks[device].flushes.data -= 1;
    answer
}

/// Hands a write that has its place among the buffered writes of a disk to its queue, and waits until it is complete.
pub(crate) async fn write_admitted(sim: &Sim, device: BlockId, request: Request) {
    free_request(sim, device).await;
    let slot = {
        let mut world = sim.w();
        let slot = world.completions.open();
        world.account_bio(device, &request);
        world.issue(device, &Request { done: Done::Complete(slot), ..request });
        slot
    };
    completed(sim, slot, "").await;
    woken(sim).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::CgId;
    use crate::block::{Class, Way};

    #[test]
    fn flushes_that_come_during_one_share_the_next() {
        let flush = |slot| {
            let (way, class, done) = (Way::Flush, Class::Exempt, Done::Complete(slot));
            Request { way, at: 0, bytes: 0, class, merged: 0, goes_on: false, cgroup: CgId::ROOT, done }
        };
        let mut flushes = Flushes { pending: vec![flush(1)], ..Flushes::default() };
        assert!(flushes.begin(0).is_some() && flushes.running.len() == 1);
        flushes.pending = vec![flush(2), flush(3)];
        assert!(flushes.begin(7).is_none(), "one is under way");
        flushes.running.clear();
        flushes.data = 1;
        flushes.pending_since = 7;
        assert!(flushes.begin(PENDING_TIMEOUT).is_none(), "data of another one are in the queue");
        assert!(flushes.begin(PENDING_TIMEOUT + 7).is_some() && flushes.running.len() == 2, "but not for longer");
        assert!(flushes.begin(u64::MAX).is_none() && flushes.pending.is_empty());
    }
}
