// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of cgroups on devices (`io.max`). A request over a limit is held back before the queue. Its submitter
//! goes on, and its pages stay under writeback meanwhile. Limits of all ancestors count. A slice's allowance may be
//! used at its beginning: five requests at once and then none for 90 ms are 50 a second. A flush is a request without bytes.
//! Since 6.12 metadata passes at once and counts. Mirrors block/blk-throttle.c; limits have no effect on I/O charged to the root.

use crate::arena::{BlockId, CgId};
use crate::block::{Request, Way, enter};
use crate::engine::{Due, Sim, Ticket, suspend};
use crate::hypervisor::time_of;
use crate::world::World;
use crate::xfsaild::METADATA;
use floodline_scenario::IoMax;
use std::collections::BTreeMap;

/// A slice: 100 ms, seen in a guest of 6.12.
const THROTL_SLICE: u64 = 100_000_000;

/// The limits of a cgroup on a device in one direction, and their use since its first slice (`struct throtl_grp`).
#[derive(Clone, Copy, Debug, Default)]
struct Limit {
    /// Bytes per second; 0 is no limit.
    bandwidth: u64,
    /// Requests per second; 0 is no limit.
    iops: u64,
    /// Start of its slices, and their end if no further request comes.
    slice_start: u64,
    slice_end: u64,
    /// Bytes and requests used in these slices.
    bytes_disp: u64,
    io_disp: u64,
}

impl Limit {
    /// Takes a request into account that may not go before `from`. Returns the time at which it may go.
    fn serve(&mut self, from: u64, bytes: u64) -> u64 {
        // Slices may already be promised to other cgroups below the same parent.
        let mut at = from.max(self.slice_start);
        loop {
            if at > self.slice_end || self.slice_end == 0 {
                *self = Limit { slice_start: at, bytes_disp: 0, io_disp: 0, ..*self };
            }
            let wait = self.wait(at - self.slice_start, bytes);
            self.slice_end = self.slice_end.max(at.saturating_add(wait.max(THROTL_SLICE)));
            if wait == 0 {
                break;
            }
            at = at.saturating_add(wait);
        }
        self.bytes_disp = self.bytes_disp.saturating_add(bytes);
        self.io_disp += 1;
        self.trim_slice(at);
        at
    }

    /// Counts a request that does not wait, whatever the limit. Later ones wait for it.
    fn charge(&mut self, now: u64, bytes: u64) {
        if now > self.slice_end || self.slice_end == 0 {
            let (slice_start, slice_end) = (now, now.saturating_add(THROTL_SLICE));
            *self = Limit { slice_start, slice_end, bytes_disp: 0, io_disp: 0, ..*self };
        }
        self.bytes_disp = self.bytes_disp.saturating_add(bytes);
        self.io_disp += 1;
    }

    /// Time that the next request has to wait.
    fn wait(&self, elapsed: u64, bytes: u64) -> u64 {
        // The slice that has begun counts as a whole.
        let slices = |elapsed: u64| elapsed.div_ceil(THROTL_SLICE).max(1).saturating_mul(THROTL_SLICE);
        let mut wait = 0;
        if self.bandwidth > 0 {
            let allowed = part(self.bandwidth, slices(elapsed));
            let extra = self.bytes_disp.saturating_add(bytes).saturating_sub(allowed);
            if extra > 0 {
                wait = time_of(extra, self.bandwidth).max(1).saturating_add(slices(elapsed) - elapsed);
            }
        }
        if self.iops > 0 {
            let slices = slices(elapsed + 1);
            if self.io_disp + 1 > part(self.iops, slices).max(1) {
                wait = wait.max(slices - elapsed);
            }
        }
        wait
    }

    /// Drops the slices that are over, and their allowance.
    fn trim_slice(&mut self, now: u64) {
        let over = (now - self.slice_start) / THROTL_SLICE * THROTL_SLICE;
        let (bytes, ios) = (part(self.bandwidth, over), part(self.iops, over));
        if bytes == 0 && ios == 0 {
            // They allowed less than one request together: keep them until they allow one.
            return;
        }
        self.bytes_disp = self.bytes_disp.saturating_sub(bytes);
        self.io_disp = self.io_disp.saturating_sub(ios);
        self.slice_start += over;
    }
}

/// Part of a rate per second that falls into some nanoseconds.
fn part(per_second: u64, nanos: u64) -> u64 {
    u64::try_from(u128::from(per_second) * u128::from(nanos) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// The limits on one device, and the requests that are held back.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// Limits by cgroup: reads, writes.
    limits: BTreeMap<CgId, [Limit; 2]>,
    /// Requests held back, by release time and then in order of arrival.
    held: BTreeMap<(u64, u64), Request>,
    /// Release time of the last held request of each cgroup and direction: requests never overtake each other.
    last: BTreeMap<(CgId, bool), u64>,
    arrivals: u64,
    is_started: bool,
    dispatcher: Option<Ticket>,
}

impl Throttle {
    /// Limits of a cgroup as `io.max` prints them: reads, then writes; bytes, then requests per second.
    pub(crate) fn io_max(&self, cgroup: CgId) -> Option<[[floodline_record::units::Limit; 2]; 2]> {
        use floodline_record::units::Limit as Printed;
        let printed = |value: u64| if value == 0 { Printed::MAX } else { Printed(value) };
        let of_way = |limit: &Limit| [printed(limit.bandwidth), printed(limit.iops)];
        self.limits.get(&cgroup).map(|limits| [of_way(&limits[0]), of_way(&limits[1])])
    }

    /// Whether a cgroup has limits.
    pub(crate) fn has_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    /// Whether any request is held back.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }
}

impl World {
    /// Sets limits of a cgroup on a device. Limits that are not named stay.
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
        let [read, write] = self.blocks[device].throttle.limits.entry(cgroup).or_default();
        read.bandwidth = max.read_bandwidth.map_or(read.bandwidth, |rate| rate.0.0);
        write.bandwidth = max.write_bandwidth.map_or(write.bandwidth, |rate| rate.0.0);
        read.iops = max.read_iops.map_or(read.iops, |rate| rate.0.0);
        write.iops = max.write_iops.map_or(write.iops, |rate| rate.0.0);
        self.time_anew(device);
        Ok(())
    }

    /// After a change of limits: slices begin anew, and held requests follow the new limits (`tg_conf_updated`).
    fn time_anew(&mut self, device: BlockId) {
        let throttle = &mut self.blocks[device].throttle;
        for limit in throttle.limits.values_mut().flatten() {
            *limit = Limit { bandwidth: limit.bandwidth, iops: limit.iops, ..Limit::default() };
        }
        throttle.last.clear();
        let mut held: Vec<(u64, Request)> =
            std::mem::take(&mut throttle.held).into_iter().map(|((_, arrival), request)| (arrival, request)).collect();
        held.sort_unstable_by_key(|(arrival, _)| *arrival);
        for (arrival, request) in held {
            let at = self.departure(device, &request);
            self.blocks[device].throttle.held.insert((at, arrival), request);
        }
        if let Some(ticket) = self.blocks[device].throttle.dispatcher.take() {
            self.wake(ticket);
        }
    }

    /// Returns the time at which a request may go, and reserves its share of the limits.
    fn departure(&mut self, device: BlockId, request: &Request) -> u64 {
        let chain: Vec<CgId> = self.ancestors(request.cgroup).collect();
        let (now, is_write) = (self.now, request.way != Way::Read);
        let Throttle { limits, last, .. } = &mut self.blocks[device].throttle;
        let last = last.entry((request.cgroup, is_write)).or_default();
        let mut at = now.max(*last);
        for cgroup in &chain {
            if let Some(limits) = limits.get_mut(cgroup) {
                at = limits[usize::from(is_write)].serve(at, request.bytes);
            }
        }
        *last = at;
        at
    }

    /// Counts a request for metadata against the limits of its cgroup, which it passes.
    fn pass(&mut self, device: BlockId, request: &Request) {
        let chain: Vec<CgId> = self.ancestors(request.cgroup).collect();
        let (now, is_write) = (self.now, request.way != Way::Read);
        for cgroup in &chain {
            if let Some(limits) = self.blocks[device].throttle.limits.get_mut(cgroup) {
                limits[usize::from(is_write)].charge(now, request.bytes);
            }
        }
    }

    /// Holds a request back if a limit requires it. The dispatcher submits it later. Returns whether it is held.
    pub(crate) fn hold_back(&mut self, device: BlockId, request: &Request) -> bool {
        if self.blocks[device].throttle.limits.is_empty() {
            return false;
        }
        if self.behaviour.stack.throttle_passes_metadata && request.at >= METADATA {
            self.pass(device, request);
            return false;
        }
        let at = self.departure(device, request);
        if at <= self.now {
            return false;
        }
        let throttle = &mut self.blocks[device].throttle;
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

/// Submits the requests held back on a device when they are due.
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
            Some(request) => {
                let entry = sim.w().enter_now(device, &request);
                if let Some(entry) = entry {
                    enter(&sim, device, &request, entry).await;
                }
            }
            None => suspend().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Release times of requests that all come at once, milliseconds.
    fn served(limit: Limit, requests: u64, bytes: u64) -> Vec<u64> {
        let mut limit = limit;
        let mut at = 0;
        let mut serve = || {
            at = limit.serve(at, bytes);
            at / 1_000_000
        };
        (0..requests).map(|_| serve()).collect()
    }

    #[test]
    fn what_a_slice_allows_goes_at_once_and_the_rest_in_the_next() {
        let of_ios = Limit { iops: 50, ..Limit::default() };
        assert_eq!(served(of_ios, 12, 4096), [0, 0, 0, 0, 0, 100, 100, 100, 100, 100, 200, 200]);
        let of_bytes = Limit { bandwidth: 10_000_000, ..Limit::default() };
        assert_eq!(served(of_bytes, 5, 500_000), [0, 0, 150, 150, 250]);
        // A request larger than a slice allows.
        assert_eq!(served(of_bytes, 3, 2_000_000), [200, 400, 600]);
    }

    #[test]
    fn what_passes_a_limit_counts_against_it() {
        let mut limit = Limit { iops: 10, ..Limit::default() };
        let mut at = 0;
        for _ in 0..20 {
            at = limit.serve(at, 4096);
            limit.charge(at, 1024);
        }
        // Forty requests of ten a second; the last one passes with the one before it.
        assert_eq!(at / 1_000_000, 3_800);
    }

    #[test]
    fn who_shares_a_limit_comes_after_what_it_promised_others() {
        let mut limit = Limit { bandwidth: 1_000_000, ..Limit::default() };
        let of_one: Vec<u64> = (0..3).map(|_| limit.serve(0, 1_000_000) / 1_000_000).collect();
        let of_other = limit.serve(300_000_000, 4096) / 1_000_000;
        assert!(of_one.is_sorted() && of_other >= of_one[2] && of_other <= of_one[2] + 200, "{of_one:?}, {of_other}");
    }

    #[test]
    fn a_limit_holds_over_a_long_time_whatever_comes_when() {
        for (iops, bandwidth) in [(50, 0), (0, 4_000_000), (333, 1_234_567), (7, 0)] {
            let mut limit = Limit { iops, bandwidth, ..Limit::default() };
            let (mut at, mut ios) = (0, 0_u64);
            while at < 60_000_000_000 {
                // Now and then no request comes for a while.
                let idle = if ios % 97 == 0 { 7_000_000 * (ios % 31) } else { 0 };
                at = limit.serve(at + idle, 4096 * (1 + ios % 9));
                ios += 1;
                let over = if iops > 0 { ios.saturating_sub(part(iops, at + 2 * THROTL_SLICE).max(1)) } else { 0 };
                assert!(over <= 1, "{iops}, {bandwidth}: {ios} by {at}");
            }
        }
    }
}
