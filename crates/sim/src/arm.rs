// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arm of a rotating disk. It serves reads and writes one after the other. A request that does not start where
//! the last one ended has to wait for a seek. Behind other requests the seek is shorter, as the disk sorts its
//! queue: at most the time given by its requests per second. A read goes before the writes that the scheduler still
//! keeps. There is no credit and no cache on the disk.

use crate::block::{Request, Way};
use crate::hypervisor::{Lane, time_of};
use crate::media::Queued;
use crate::world::PAGE;

/// The arm of a rotating disk.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    /// Nanoseconds of a seek.
    seek: u64,
    /// The page after the last request.
    at: u64,
    busy_until: u64,
    /// End of the last read.
    read_until: u64,
    writes: Queued,
}

impl Arm {
    pub(crate) fn new(seek: u64, holds: usize) -> Arm {
        Arm { seek, at: 0, busy_until: 0, read_until: 0, writes: Queued::new(holds) }
    }

    /// Takes a request. Returns the time of its completion.
    pub(crate) fn serve(&mut self, now: u64, request: &Request, lane: &Lane, is_idle: bool) -> u64 {
        let sorted = 1_000_000_000_u64.checked_div(lane.iops).unwrap_or(self.seek);
        let seek = match request.at == self.at {
            true => 0,
            false if is_idle => self.seek,
            false => self.seek.min(sorted),
        };
        let transfer = if lane.bandwidth == 0 { 0 } else { time_of(request.bytes, lane.bandwidth) };
        self.at = request.at.saturating_add(request.bytes.div_ceil(PAGE));
        let (before, time) = (self.busy_until.max(now), seek.saturating_add(transfer));
        self.busy_until = before.saturating_add(time);
        if request.way == Way::Write {
            self.writes.push(time);
            return self.busy_until;
        }
        let (_, in_scheduler) = self.writes.split();
        let overtaken = in_scheduler.min(before - now);
        self.read_until = self.read_until.saturating_add(time).max(self.busy_until - overtaken);
        self.read_until
    }

    /// Completes the oldest write.
    pub(crate) fn written(&mut self) {
        self.writes.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::CgId;
    use crate::block::{Class, Done, Way};

    #[test]
    fn what_goes_on_where_the_last_request_ended_waits_for_no_seek() {
        let mut arm = Arm::new(10_000_000, usize::MAX);
        let mut lane = Lane::default();
        (lane.bandwidth, lane.iops) = (4_096_000_000, 200);
        let mut done = |now: u64, at, is_idle| {
            let (way, class, done) = (Way::Write, Class::Normal, Done::Nothing);
            let request = Request { way, at, bytes: PAGE, class, merged: 0, goes_on: false, cgroup: CgId::ROOT, done };
            arm.serve(now * 1000, &request, &lane, is_idle) / 1000
        };
        // Microseconds: a seek, none, a sorted one, and a whole one later.
        assert_eq!((done(0, 7, true), done(0, 8, false)), (10_001, 10_002));
        assert_eq!((done(0, 99, false), done(50_000, 7, true)), (15_003, 60_001));
    }

    #[test]
    fn a_read_goes_before_the_writes_that_the_scheduler_keeps() {
        let mut arm = Arm::new(10_000_000, 32);
        let mut lane = Lane::default();
        (lane.bandwidth, lane.iops) = (4_096_000_000, 200);
        let mut done = |way, at| {
            let (class, done) = (Class::Normal, Done::Nothing);
            let request = Request { way, at, bytes: PAGE, class, merged: 0, goes_on: false, cgroup: CgId::ROOT, done };
            arm.serve(0, &request, &lane, false) / 1000
        };
        for at in 1..100 {
            done(Way::Write, 2 * at);
        }
        // 32 writes of 5 ms, and its own seek; then another read.
        assert_eq!((done(Way::Read, 900), done(Way::Read, 1900)), (33 * 5_001, 34 * 5_001));
    }
}
