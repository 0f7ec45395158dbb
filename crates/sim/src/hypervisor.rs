// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of a disk as a hypervisor keeps them, and requests that it joins. A limit with credit is a leaky bucket: QEMU's
//! util/throttle.c and hw/block/virtio-blk.c. A limit without credit is the speed of a device.

use crate::block::{Request, Way};
use crate::world::PAGE;
use floodline_scenario::Random;

/// One way of a device, or both together: caps, and the times until which they are used up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lane {
    /// Bytes per second; 0 is no cap.
    pub(crate) bandwidth: u64,
    /// Requests per second; 0 is no cap.
    pub(crate) iops: u64,
    /// Nanoseconds of the caps that may be used in advance, if a hypervisor keeps them.
    pub(crate) credit: u64,
    bytes_until: u64,
    requests_until: u64,
    /// When the last request passed.
    passed: u64,
}

/// Time to transfer a number of bytes at a bandwidth, nanoseconds.
pub(crate) fn time_of(bytes: u64, bandwidth: u64) -> u64 {
    // All but absurd sizes fit into 64 bits.
    match bytes.checked_mul(1_000_000_000) {
        Some(product) => product / bandwidth.max(1),
        None => u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(bandwidth.max(1))).unwrap_or(u64::MAX),
    }
}

impl Lane {
    /// Time of its caps that a request takes.
    pub(crate) fn time(&self, bytes: u64) -> u64 {
        self.time_of(bytes).max(self.time_of_request())
    }

    /// Time of its bandwidth that a number of bytes takes.
    pub(crate) fn time_of(&self, bytes: u64) -> u64 {
        if self.bandwidth == 0 { 0 } else { time_of(bytes, self.bandwidth) }
    }

    fn time_of_request(&self) -> u64 {
        1_000_000_000_u64.checked_div(self.iops).unwrap_or(0)
    }

    /// Takes a request into account, or a part that joins the last one. Returns the time at which it is transferred.
    ///
    /// A hypervisor (`throttle_compute_wait` and `throttle_account` of QEMU) lets a request pass as soon as no more than
    /// the credit is used, whatever its size, and counts it then: the next one waits for it. It counts bytes and requests
    /// apart. Without credit a request has to be transferred itself.
    pub(crate) fn serve(&mut self, now: u64, bytes: u64, joins: bool) -> u64 {
        if !joins {
            let used = self.bytes_until.max(self.requests_until);
            self.passed = used.saturating_sub(self.credit).max(now);
            self.requests_until = self.requests_until.max(self.passed).saturating_add(self.time_of_request());
        }
        self.bytes_until = self.bytes_until.max(self.passed).saturating_add(self.time_of(bytes));
        if self.credit > 0 { self.passed } else { self.bytes_until.max(self.requests_until) }
    }
}

/// Requests that a hypervisor joins. If it finds several in its ring, it makes one of those that follow each other
/// (`virtio_blk_submit_multireq`). Traced in two lab runs on a busy host, beside a stream on ext4 and two on XFS: of the
/// parts of one bio, 0.05 ms apart, it found either all at once or each by itself, depending on whether its thread had to
/// wait for a CPU. About half of the bytes were in joined requests.
#[derive(Clone, Debug)]
pub(crate) struct Joins {
    /// Decides when the hypervisor joins requests.
    random: Random,
    last: Option<Last>,
}

/// The last request that reached the device, which the next one may join.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// When it was submitted.
    at: u64,
    way: Way,
    /// The page after it.
    end: u64,
    /// Number of its parts.
    parts: u32,
    /// Whether the hypervisor was late, and finds the next parts together with it.
    is_late: bool,
}

/// Most requests that a hypervisor makes one of (`VIRTIO_BLK_MAX_MERGE_REQS`).
const JOINED_MAX: u32 = 32;

impl Joins {
    pub(crate) fn new(random: Random) -> Joins {
        Joins { random, last: None }
    }

    /// Whether a hypervisor makes one request of this and the last one.
    pub(crate) fn is_joined(&mut self, now: u64, request: &Request) -> bool {
        let end = request.at + request.bytes.div_ceil(PAGE);
        let before = self.last.filter(|last| {
            let follows = (last.at, last.way, last.end) == (now, request.way, request.at);
            request.goes_on && follows && last.parts < JOINED_MAX
        });
        let (parts, is_late) = match before {
            Some(last) => (last.parts + 1, last.is_late),
            None => (1, self.random.below(2) == 0),
        };
        self.last = Some(Last { at: now, way: request.way, end, parts, is_late });
        parts > 1 && is_late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::CgId;
    use crate::block::{Class, Done};

    const MS: u64 = 1_000_000;

    #[test]
    fn a_request_passes_once_the_credit_is_free_and_the_next_one_waits_for_it() {
        let mut lane = Lane { bandwidth: 30_000_000, credit: 100 * MS, ..Lane::default() };
        // 3 MB of credit: a request of 6 MB passes at once, and one behind it when 3 MB of it are left.
        assert_eq!((lane.serve(0, 6_000_000, false), lane.serve(0, 4096, false) / MS), (0, 100));
        // A part that joins passes with the request, and is in the way of the next one, too.
        assert_eq!((lane.serve(0, 3_000_000, true) / MS, lane.serve(0, 4096, false) / MS), (100, 200));
        let mut device = Lane { bandwidth: 30_000_000, ..Lane::default() };
        assert_eq!(device.serve(0, 6_000_000, false) / MS, 200, "without credit it has to be transferred");
    }

    #[test]
    fn bytes_and_requests_count_apart() {
        let mut lane = Lane { bandwidth: 1_000_000, iops: 10, credit: 100 * MS, ..Lane::default() };
        // 100 ms of requests, and 100 ms of bytes, are used up together.
        let passes: Vec<u64> = [100_000, 1, 1].map(|bytes| lane.serve(0, bytes, false) / MS).to_vec();
        assert_eq!(passes, [0, 0, 100]);
    }

    #[test]
    fn parts_of_one_bio_join_or_do_not() {
        let mut joins = Joins::new(Random::new(1));
        let mut joined = |now: u64, at: u64, goes_on| {
            let (way, class, done) = (Way::Write, Class::Normal, Done::Nothing);
            let request = Request { way, at, bytes: 320 * PAGE, class, merged: 0, goes_on, cgroup: CgId::ROOT, done };
            joins.is_joined(now, &request)
        };
        let mut bios = [0, 0];
        for bio in 0..200 {
            let parts: Vec<bool> = (0..6).map(|part| joined(bio, 10_000 * bio + 320 * part, part > 0)).collect();
            assert!(!parts[0] && parts[1..].iter().all(|part| *part == parts[1]), "{parts:?}");
            bios[usize::from(parts[1])] += 1;
        }
        assert!(bios.iter().all(|count| *count > 70), "{bios:?}");
        assert!((0..50).all(|at| !joined(1000 + at, 320 * at, true)), "later, a part comes by itself");
        assert!((0..50).all(|at| !joined(2000, 999 * at, true)), "those that lie apart are not joined");
    }
}
