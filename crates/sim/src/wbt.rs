// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writeback throttling: the number of buffered writes that may be in a device's queue at once. It is stepped up
//! and down by the latencies of reads and writes within a window. Mirrors block/blk-wbt.c and block/blk-rq-qos.c.

use crate::arena::BlockId;
use crate::block::{Class, Request, Way};
use crate::engine::{Due, Sim, Ticket, suspend};
use crate::process::io_schedule;
use crate::world::World;
use std::collections::VecDeque;

/// Length of a window: 100 ms.
const WINDOW: u64 = 100_000_000;
/// Windows of unknown latency (without writes) before the scale moves back by one step.
const UNKNOWN_MAX: u32 = 5;
/// Fewest writes of a window that make its latencies count.
const WRITES_MIN: u32 = 3;
/// A dirtier that slept this recently makes writeback urgent: 1 s.
const RECENT: u64 = 1_000_000_000;

/// Buffered writes that may be in a queue at once: urgent ones, usual ones and background ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    max: u32,
    normal: u32,
    background: u32,
}

/// The state of one queue.
#[derive(Debug)]
pub(crate) struct Wbt {
    /// Latency that reads must keep, ns; 0 turns throttling off.
    pub(crate) target: u64,
    /// Whether writes complete in a volatile cache.
    write_cache: bool,
    depth: u32,
    scale: i32,
    /// Limits that follow from the scale.
    limits: Limits,
    in_flight: u32,
    unknown: u32,
    is_armed: bool,
    window: u64,
    reads: u32,
    writes: u32,
    read_min: u64,
    last_exempt: u64,
    /// Issue time of the read that is tracked until it completes.
    read_issued: Option<u64>,
    /// Buffered writes that wait for a place, in order of arrival.
    waiters: VecDeque<(Ticket, Class)>,
}

impl Wbt {
    pub(crate) fn off() -> Wbt {
        Wbt::new(0, 256, true)
    }

    pub(crate) fn new(target: u64, depth: u32, write_cache: bool) -> Wbt {
        Wbt {
            target,
            write_cache,
            depth,
            scale: 0,
            limits: calc_wb_limits(depth, 0),
            in_flight: 0,
            unknown: 0,
            is_armed: false,
            window: WINDOW,
            reads: 0,
            writes: 0,
            read_min: u64::MAX,
            last_exempt: 0,
            read_issued: None,
            waiters: VecDeque::new(),
        }
    }

    fn is_at_cap(&self) -> bool {
        self.scale < 0 && self.limits.max >= most(self.depth) || self.scale == 0 && self.depth <= 1
    }

    /// Counts a read that is issued.
    pub(crate) fn read_issue(&mut self, now: u64) {
        self.last_exempt = now;
        self.read_issued.get_or_insert(now);
    }

    /// Whether reads took too long in the window that ends. A read under way counts once it takes longer than a window,
    /// or longer than the target if no read has completed in the window (`latency_exceeded`).
    fn is_exceeded(&self, now: u64) -> bool {
        let most = if self.reads == 0 { self.target.min(self.window) } else { self.window };
        let is_stuck = self.read_issued.is_some_and(|since| now.saturating_sub(since) > most);
        is_stuck || self.reads >= 1 && self.writes >= WRITES_MIN && self.read_min > self.target
    }
}

/// Three quarters of a queue.
fn most(queue_depth: u32) -> u32 {
    (queue_depth - queue_depth.div_ceil(4)).max(1)
}

fn calc_wb_limits(queue_depth: u32, scale: i32) -> Limits {
    let depth = queue_depth.clamp(1, 16);
    let max = match scale {
        scale if queue_depth <= 1 => 2 - u32::from(scale > 0),
        0 => depth,
        scale if scale > 0 => 1 + ((depth - 1) >> scale.unsigned_abs().min(31)),
        scale => 1_u32.saturating_add((depth - 1) << scale.unsigned_abs().min(20)).min(most(queue_depth)),
    };
    let (normal, background) = if max > 2 { (max.div_ceil(2), max.div_ceil(4)) } else { (max, 1) };
    Limits { max, normal, background }
}

/// Waits until a buffered write that was not admitted at once has a place in the queue.
pub(crate) async fn wait(sim: &Sim, device: BlockId, class: Class) {
    let ticket = sim.ticket("writeback throttling of a device (wbt)");
    sim.w().blocks[device].wbt.waiters.push_back((ticket, class));
    // Woken only by the process that lets it in.
    io_schedule(sim, suspend()).await;
}

impl World {
    /// Whether a request may enter the queue at once. A buffered write takes a place there.
    pub(crate) fn wbt_admits(&mut self, device: BlockId, request: &Request) -> bool {
        let wbt = &self.blocks[device].wbt;
        if wbt.target == 0 || !request.is_throttled() {
            return true;
        }
        // A new write queues behind those that wait.
        wbt.waiters.is_empty() && self.wbt_enter(device, request.class)
    }

    fn wbt_limit(&self, device: BlockId, class: Class) -> u32 {
        let wbt = &self.blocks[device].wbt;
        let Limits { max, normal, background } = wbt.limits;
        let now = self.now;
        if class == Class::Urgent || self.wbt_dirty_sleep(device).is_some_and(|at| now.saturating_sub(at) < RECENT) {
            max
        } else if class == Class::Background || now.saturating_sub(wbt.last_exempt) < WINDOW && wbt.last_exempt > 0 {
            background
        } else {
            normal
        }
    }

    /// Counts a completed request, and lets in waiting writes.
    pub(crate) fn wbt_done(&mut self, device: BlockId, request: &Request, since: u64) {
        let now = self.now;
        if self.blocks[device].wbt.target == 0 {
            return;
        }
        let wbt = &mut self.blocks[device].wbt;
        match request.way {
            Way::Read => {
                wbt.reads += 1;
                wbt.read_min = wbt.read_min.min(now - since);
                wbt.last_exempt = now;
                wbt.read_issued = wbt.read_issued.filter(|issued| *issued != since);
            }
            Way::Write => wbt.writes += 1,
            Way::Flush => {}
        }
        if !request.is_throttled() {
            return;
        }
        wbt.in_flight -= 1;
        if wbt.waiters.is_empty() || wbt.in_flight > 0 && wbt.in_flight >= wbt.limits.normal {
            return;
        }
        let urgent = self.wbt_dirty_sleep(device).is_some_and(|at| now.saturating_sub(at) < RECENT);
        let wbt = &self.blocks[device].wbt;
        let Limits { normal, background, .. } = wbt.limits;
        // A volatile cache is left to drain before the next batch.
        let limit = if wbt.write_cache && !urgent { 0 } else { normal };
        if wbt.in_flight > 0 && wbt.in_flight >= limit {
            return;
        }
        if wbt.in_flight == 0 || limit - wbt.in_flight >= background / 2 {
            self.wbt_wake(device);
        }
    }

    /// Takes a place among the buffered writes of a queue, if there is one. Returns whether it did.
    fn wbt_enter(&mut self, device: BlockId, class: Class) -> bool {
        let wbt = &self.blocks[device].wbt;
        // Mostly any class has a place.
        if wbt.in_flight >= wbt.limits.background && wbt.in_flight >= self.wbt_limit(device, class) {
            return false;
        }
        let now = self.now;
        let wbt = &mut self.blocks[device].wbt;
        wbt.in_flight += 1;
        if !wbt.is_armed {
            wbt.is_armed = true;
            let at = now + wbt.window;
            self.queue.push(at, Due::WbtWindow(device));
        }
        true
    }

    /// Admits waiting writes in order, until the first that finds no place (`rq_qos_wake_function`).
    fn wbt_wake(&mut self, device: BlockId) {
        while let Some((ticket, class)) = self.blocks[device].wbt.waiters.front().copied() {
            if !self.wbt_enter(device, class) {
                return;
            }
            self.blocks[device].wbt.waiters.pop_front();
            self.wake(ticket);
        }
    }

    /// Ends a window: adjusts the scale.
    pub(crate) fn wbt_window(&mut self, device: BlockId) {
        let now = self.now;
        let has_slept = self.wbt_dirty_sleep(device).is_some_and(|at| now.saturating_sub(at) < RECENT);
        let wbt = &mut self.blocks[device].wbt;
        wbt.is_armed = false;
        let before = wbt.limits;
        if wbt.is_exceeded(now) {
            if before.max > 1 {
                wbt.scale = if wbt.scale < 0 { 0 } else { wbt.scale + 1 };
            }
            wbt.unknown = 0;
        } else if wbt.writes >= 1 || wbt.in_flight > 0 || has_slept {
            // Reads are fine, or there are only writes, at least in flight (`LAT_UNKNOWN_WRITES`).
            if !wbt.is_at_cap() {
                wbt.scale -= 1;
            }
            wbt.unknown = 0;
        } else {
            wbt.unknown += 1;
            if wbt.unknown >= UNKNOWN_MAX {
                wbt.scale -= wbt.scale.signum();
                wbt.unknown = 0;
            }
        }
        wbt.limits = calc_wb_limits(wbt.depth, wbt.scale);
        (wbt.reads, wbt.writes, wbt.read_min) = (0, 0, u64::MAX);
        wbt.window = match u64::try_from(wbt.scale) {
            Ok(scale) if scale > 0 => 16 * WINDOW / ((scale + 1) * 256).isqrt().max(1),
            _ => WINDOW,
        };
        if wbt.scale != 0 || wbt.in_flight > 0 {
            wbt.is_armed = true;
            let at = now + wbt.window;
            self.queue.push(at, Due::WbtWindow(device));
        }
        if self.blocks[device].wbt.limits.max > before.max {
            self.wbt_wake(device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_scale() {
        let check = |depth, scale, expect| {
            let Limits { max, normal, background } = calc_wb_limits(depth, scale);
            assert_eq!((max, normal, background), expect, "depth {depth} scale {scale}");
        };
        check(256, 0, (16, 8, 4));
        check(256, -1, (31, 16, 8));
        check(256, -4, (192, 96, 48));
        check(256, 4, (1, 1, 1));
        // A queue of one cannot be raised further.
        check(1, 0, (2, 2, 1));
        check(1, -1, (2, 2, 1));
        check(1, 1, (1, 1, 1));
    }

    #[test]
    fn a_read_that_is_under_way_for_longer_than_a_window_is_slow() {
        let mut wbt = Wbt::new(2_000_000, 256, true);
        wbt.read_issue(10_000_000);
        assert!(!wbt.is_exceeded(12_000_000) && wbt.is_exceeded(12_000_001), "no read has completed");
        wbt.reads = 1;
        wbt.read_issue(90_000_000);
        assert!(!wbt.is_exceeded(100_000_000) && wbt.is_exceeded(110_000_001));
        // For completed reads the shortest one counts, if there were enough writes.
        wbt = Wbt { reads: 1, read_min: 3_000_000, writes: 2, read_issued: None, ..wbt };
        assert!(!wbt.is_exceeded(100_000_000));
        wbt.writes = 3;
        assert!(wbt.is_exceeded(100_000_000));
    }
}
