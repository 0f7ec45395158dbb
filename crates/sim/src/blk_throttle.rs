// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of cgroups on devices (`io.max`): what is beyond a limit is held back before the queue, and whoever
//! submitted it goes on; its pages stay under writeback meanwhile. Limits of all ancestors count. The burst is a
//! tenth of a second, a slice. Mirrors block/blk-throttle.c; limits have no effect on what is charged to the root.

use crate::arena::{BlockId, CgId};
use crate::block::{Lane, Request, Way, enter};
use crate::engine::{Due, Sim, Ticket, suspend};
use crate::world::World;
use floodline_core::scenario::IoMax;
use std::collections::BTreeMap;

/// The limits on one device, and what is held back.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// By cgroup: reads, writes.
    lanes: BTreeMap<CgId, [Lane; 2]>,
    /// By the moment at which it may go, in order of arrival.
    held: BTreeMap<(u64, u64), Request>,
    /// Of those held, the last of each cgroup and way: nobody overtakes.
    last: BTreeMap<(CgId, bool), u64>,
    arrivals: u64,
    is_started: bool,
    dispatcher: Option<Ticket>,
}

impl World {
    /// Sets limits of a cgroup on a device; what is not named stays.
    pub(crate) fn set_io_max(&mut self, cgroup: CgId, device: BlockId, max: &IoMax) -> Result<(), String> {
        let path = &self.cgroups[cgroup].path;
        let zero = [
            ("rbps", max.read_bandwidth.is_some_and(|rate| rate.0.0 == 0)),
            ("wbps", max.write_bandwidth.is_some_and(|rate| rate.0.0 == 0)),
            ("riops", max.read_iops.is_some_and(|rate| rate.0.0 == 0)),
            ("wiops", max.write_iops.is_some_and(|rate| rate.0.0 == 0)),
        ];
        if let Some((key, _)) = zero.iter().find(|(_, is_zero)| *is_zero) {
            return Err(format!("io.max of {path}: the kernel refuses {key}=0 (ERANGE); \"max\" is no limit"));
        }
        if cgroup == CgId::ROOT {
            return Err("io.max: the root cgroup has none".to_owned());
        }
        let [read, write] = self.blocks[device].throttle.lanes.entry(cgroup).or_default();
        read.bandwidth = max.read_bandwidth.map_or(read.bandwidth, |rate| rate.0.0);
        write.bandwidth = max.write_bandwidth.map_or(write.bandwidth, |rate| rate.0.0);
        read.iops = max.read_iops.map_or(read.iops, |rate| rate.0.0);
        write.iops = max.write_iops.map_or(write.iops, |rate| rate.0.0);
        Ok(())
    }

    /// Whether a request is held back: it goes later then, by itself.
    pub(crate) fn hold_back(&mut self, device: BlockId, request: &Request) -> bool {
        if self.blocks[device].throttle.lanes.is_empty() || request.way == Way::Flush {
            return false;
        }
        let chain: Vec<CgId> = self.ancestors(request.cgroup).collect();
        let (now, is_write) = (self.now, request.way == Way::Write);
        let throttle = &mut self.blocks[device].throttle;
        let mut at = now;
        for cgroup in &chain {
            if let Some(lanes) = throttle.lanes.get_mut(cgroup) {
                at = at.max(lanes[usize::from(is_write)].serve(now, request.bytes));
            }
        }
        let last = throttle.last.entry((request.cgroup, is_write)).or_default();
        if at <= now && *last <= now {
            return false;
        }
        at = at.max(*last);
        *last = at;
        throttle.arrivals += 1;
        throttle.held.insert((at, throttle.arrivals), *request);
        if !throttle.is_started {
            throttle.is_started = true;
            self.new_workers.push(crate::block::Worker::Throttle(device));
        } else if let Some(ticket) = throttle.dispatcher.take() {
            self.wake(ticket);
        }
        true
    }
}

/// Lets go of what was held back on a device, in time.
pub(crate) async fn dispatcher(sim: Sim, device: BlockId) {
    loop {
        let due = {
            let ticket = sim.ticket("");
            let mut world = sim.w();
            let now = world.now;
            let throttle = &mut world.blocks[device].throttle;
            match throttle.held.first_key_value().map(|(key, request)| (*key, *request)) {
                Some((key, request)) if key.0 <= now => {
                    throttle.held.remove(&key);
                    Some(request)
                }
                next => {
                    throttle.dispatcher = Some(ticket);
                    if let Some(((at, _), _)) = next {
                        world.queue.push(at, Due::Wake(ticket));
                    }
                    None
                }
            }
        };
        match due {
            Some(request) => enter(&sim, device, request).await,
            None => suspend().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_a_tenth_second_passes_at_once_and_the_rest_in_time() {
        let mut lane = Lane::default();
        lane.bandwidth = 10_000_000;
        let at: Vec<u64> = (0..4).map(|_| lane.serve(0, 1_000_000) / 1_000_000).collect();
        assert_eq!(at, [0, 100, 200, 300], "milliseconds");
    }
}
