// SPDX-License-Identifier: MIT OR Apache-2.0
//! A non-rotational device whose reads and writes share its time. A request waits for all requests before it, but a
//! read overtakes a part of the writes: that part is the device's preference. It also overtakes all writes that a
//! scheduler still keeps, because the device does not hold as many commands at once (`Queued`). A read that overtakes
//! still takes its time, from later requests. One sequential reader may be slower than the device, which can serve more requests at
//! once than that reader submits.

use crate::block::{Request, Way};
use crate::hypervisor::time_of;
use crate::world::PAGE;
use std::collections::VecDeque;

/// Writes that are not complete, in their order: the first ones are in the device, the others wait in the scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    /// Commands that the device holds at once.
    holds: usize,
    /// Time that each write needs, and all of them.
    times: VecDeque<u64>,
    total: u64,
}

impl Queued {
    pub(crate) fn new(holds: usize) -> Queued {
        Queued { holds, times: VecDeque::new(), total: 0 }
    }

    pub(crate) fn push(&mut self, time: u64) {
        self.times.push_back(time);
        self.total = self.total.saturating_add(time);
    }

    /// Completes the oldest write.
    pub(crate) fn pop(&mut self) {
        let time = self.times.pop_front().unwrap_or(0);
        self.total = self.total.saturating_sub(time);
    }

    /// Time of the writes in the device, and of those in the scheduler.
    pub(crate) fn split(&self) -> (u64, u64) {
        if self.times.len() <= self.holds {
            return (self.total, 0);
        }
        let in_device = self.times.iter().take(self.holds).fold(0_u64, |sum, time| sum.saturating_add(*time));
        (in_device, self.total.saturating_sub(in_device))
    }
}

/// A device whose reads and writes share its time.
#[derive(Clone, Debug)]
pub(crate) struct Media {
    /// Percent of the writes before it that a read overtakes.
    read_preference: u64,
    /// Nanoseconds of its time that may be used in advance.
    credit: u64,
    busy_until: u64,
    /// End of the last read.
    read_until: u64,
    writes: Queued,
}

impl Media {
    pub(crate) fn new(read_preference: u64, credit: u64, holds: usize) -> Media {
        let writes = Queued::new(holds);
        Media { read_preference: read_preference.min(100), credit, busy_until: 0, read_until: 0, writes }
    }

    /// Takes a request that needs the device for `time`. Returns the time of its completion.
    pub(crate) fn serve(&mut self, now: u64, way: Way, time: u64) -> u64 {
        let before = self.busy_until.max(now);
        self.busy_until = before.saturating_add(time);
        if way == Way::Write {
            self.writes.push(time);
            return self.busy_until.saturating_sub(self.credit).max(now);
        }
        let (in_device, in_scheduler) = self.writes.split();
        let waits = (before - now).saturating_sub(in_scheduler);
        let overtaken = in_scheduler.min(before - now) + in_device.min(waits) / 100 * self.read_preference;
        self.read_until = self.read_until.max(self.busy_until - overtaken);
        self.read_until.saturating_sub(self.credit).max(now)
    }

    /// Completes the oldest write.
    pub(crate) fn written(&mut self) {
        self.writes.pop();
    }
}

/// Sequential readers tracked at once: those that read most recently.
const READERS: usize = 16;

/// Sequential readers, by the page after their last request.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    bandwidth: u64,
    readers: [Reader; READERS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Reader {
    /// The page after its last request.
    next: u64,
    busy_until: u64,
}

impl Streams {
    pub(crate) fn new(bandwidth: u64) -> Streams {
        Streams { bandwidth, readers: [Reader::default(); READERS] }
    }

    /// Takes a read. Returns its earliest completion. A known reader waits for its own last request; a new one
    /// replaces the reader that was quiet for the longest time.
    pub(crate) fn serve(&mut self, now: u64, request: &Request) -> u64 {
        let quiet = |(_, reader): &(usize, &Reader)| reader.busy_until;
        let known = self.readers.iter().position(|reader| reader.next == request.at && reader.busy_until > 0);
        let oldest = || self.readers.iter().enumerate().min_by_key(quiet).map_or(0, |(number, _)| number);
        let number = known.unwrap_or_else(oldest);
        let before = if known.is_some() { self.readers[number].busy_until.max(now) } else { now };
        let busy_until = before.saturating_add(time_of(request.bytes, self.bandwidth));
        self.readers[number] = Reader { next: request.at + request.bytes / PAGE, busy_until };
        busy_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::CgId;
    use crate::block::{Class, Done};

    #[test]
    fn what_is_done_for_one_way_cannot_be_done_for_the_other() {
        let mut media = Media::new(0, 0, usize::MAX);
        assert_eq!((media.serve(0, Way::Write, 10), media.serve(0, Way::Read, 5)), (10, 15));
        assert_eq!((media.serve(2, Way::Write, 10), media.serve(40, Way::Read, 5)), (25, 45));
        let mut prefers = Media::new(50, 0, usize::MAX);
        let writes = [0, 0].map(|now| prefers.serve(now, Way::Write, 1_000));
        // The read overtakes half of them, and takes its time from later requests.
        assert_eq!((writes, prefers.serve(0, Way::Read, 300)), ([1_000, 2_000], 1_300));
        assert_eq!(prefers.serve(0, Way::Write, 1_000), 3_300);
        (0..3).for_each(|_| prefers.written());
        assert_eq!(prefers.serve(3_300, Way::Read, 300), 3_600);
    }

    #[test]
    fn a_read_waits_for_what_is_in_the_device() {
        // Of 192 writes of 2.3 ms a SATA disk holds 32; the scheduler lets the read go before the others.
        let mut disk = Media::new(0, 0, 32);
        for _ in 0..192 {
            disk.serve(0, Way::Write, 2_300);
        }
        assert_eq!(disk.serve(0, Way::Read, 100), 32 * 2_300 + 100);
        // Another read waits for the first one, too.
        assert_eq!(disk.serve(0, Way::Read, 100), 32 * 2_300 + 200);
        assert_eq!(disk.serve(0, Way::Write, 2_300), 193 * 2_300 + 200);
        // Once few are left, all of them are in the device.
        (0..183).for_each(|_| disk.written());
        assert_eq!(disk.serve(183 * 2_300 + 200, Way::Read, 100), 193 * 2_300 + 300);
    }

    #[test]
    fn one_reader_is_slower_than_two() {
        let mut streams = Streams::new(4_096_000);
        let mut done = |now, at| {
            let (way, class, done) = (Way::Read, Class::Exempt, Done::Nothing);
            streams.serve(
                now,
                &Request { way, at, bytes: PAGE, class, merged: 0, goes_on: false, cgroup: CgId::ROOT, done },
            ) / 1000
        };
        assert_eq!((done(0, 7), done(0, 8), done(0, 900)), (1000, 2000, 1000));
        assert_eq!((done(0, 9), done(0, 901)), (3000, 2000));
    }
}
