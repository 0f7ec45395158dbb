// SPDX-License-Identifier: MIT OR Apache-2.0
//! One limit for the reads and writes of a device together, as a hypervisor keeps it: each way waits in a queue of its
//! own, and the two queues take turns, one request each. A read among large writes waits for the rest of the last one: on
//! a real 6.12.43 whose disk QEMU limited to 40 MB/s, direct reads of 128 KiB took 22 to 32 ms beside writes of 1.25 MiB,
//! which take 33 ms each. A write among many reads waits for one or two of them: on a real 6.12 with 150 requests a second
//! and 64 direct reads under way, a small fsync took 27 ms, three writes of two turns each and one flush.

use crate::hypervisor::Lane;
use std::collections::VecDeque;

/// A limit of both ways together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) lane: Lane,
    /// Time until which the requests that went use up the limit.
    used: u64,
    /// When the last of them went, and its time of the limit.
    last: u64,
    /// Reads, writes.
    ways: [Waiting; 2],
}

/// The requests of one way that wait.
#[derive(Clone, Debug, Default)]
struct Waiting {
    /// When each of them goes, and the time of the limit that it takes.
    queue: VecDeque<(u64, u64)>,
    /// When the last of them goes, or went.
    passes: u64,
    /// Number of requests of this way that left the queue.
    gone: u64,
    /// Time until which the last of them will have used up the limit, with the requests that went before it.
    used: u64,
    /// Number of requests of the other way that are counted in that.
    seen: u64,
}

impl Turns {
    /// Whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.lane.bandwidth > 0 || self.lane.iops > 0
    }

    /// Takes a request, or a part that joins the last one. Returns the time at which it is transferred: with credit, as
    /// soon as it passes (see [`Lane::serve`]).
    pub(crate) fn serve(&mut self, now: u64, is_write: bool, bytes: u64, joins: bool) -> u64 {
        self.pass(now);
        let (reads, writes) = self.ways.split_at_mut(1);
        let (own, other) = if is_write { (&mut writes[0], &mut reads[0]) } else { (&mut reads[0], &mut writes[0]) };
        let credit = self.lane.credit;
        if joins {
            let time = self.lane.time_of(bytes);
            own.used = own.used.saturating_add(time);
            match own.queue.back_mut() {
                Some((_, takes)) => *takes = takes.saturating_add(time),
                // It has passed already.
                None => {
                    self.used = self.used.saturating_add(time);
                    self.last = self.last.saturating_add(time);
                    other.used = other.used.saturating_add(time);
                }
            }
            return if credit > 0 { own.passes } else { own.used };
        }
        let time = self.lane.time(bytes);
        // Each request went when no more than the credit was used, so that no more than the last one is in the way. The
        // times of waiting requests do not change, so `used` grows beyond that when the other way goes in between.
        let used = self.used.min(self.last.saturating_add(credit));
        // The first of a way is timed as it comes, by what is used then. Another is timed when the one before it goes, by
        // what is used then: requests of the other way that go until that moment, or at it, go before it.
        let last = match own.queue.back() {
            Some((at, _)) => *at,
            None => {
                (own.used, own.seen) = (used, other.gone);
                now
            }
        };
        own.used = own.used.max(used);
        while let Some((_, takes)) = usize::try_from(own.seen.saturating_sub(other.gone))
            .ok()
            .and_then(|at| other.queue.get(at))
            .filter(|(at, _)| *at <= last)
        {
            (own.used, own.seen) = (own.used.saturating_add(*takes), own.seen + 1);
        }
        let goes = |used: u64| used.saturating_sub(credit).max(last);
        let at = goes(own.used);
        own.used = own.used.max(at).saturating_add(time);
        own.passes = at;
        own.queue.push_back((at, time));
        let transferred = if credit > 0 { at } else { own.used };
        self.pass(now);
        transferred
    }

    /// Lets the waiting requests go whose time has come, in the order of their times.
    fn pass(&mut self, now: u64) {
        loop {
            let next = |way: &Waiting| way.queue.front().map_or(u64::MAX, |(at, _)| *at);
            let first = usize::from(next(&self.ways[1]) < next(&self.ways[0]));
            let way = &mut self.ways[first];
            let Some((at, time)) = way.queue.front().copied().filter(|(at, _)| *at <= now) else { return };
            way.queue.pop_front();
            way.gone += 1;
            let gone = way.gone;
            self.used = self.used.max(at).saturating_add(time);
            self.last = at.saturating_add(time);
            let other = &mut self.ways[1 - first];
            if other.seen < gone {
                (other.used, other.seen) = (other.used.saturating_add(time), gone);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn limited(credit: u64) -> Turns {
        let mut turns = Turns::default();
        (turns.lane.iops, turns.lane.credit) = (100, credit);
        turns
    }

    #[test]
    fn a_write_among_many_reads_waits_for_one_of_them() {
        let mut turns = limited(0);
        let reads: Vec<u64> = (0..20).map(|_| turns.serve(0, false, 4096, false) / MS).collect();
        assert_eq!((reads[0], reads[19]), (10, 200));
        assert_eq!(turns.serve(0, true, 4096, false), 20 * MS);
        assert_eq!(turns.serve(0, true, 4096, false), 40 * MS, "the second waits for two reads");
    }

    #[test]
    fn a_read_among_large_writes_waits_for_the_rest_of_one() {
        let mut turns = Turns::default();
        (turns.lane.bandwidth, turns.lane.credit) = (40_000_000, 100 * MS);
        // Twenty writes of 33 ms each: the credit lets three of them go at once.
        let writes: Vec<u64> = (0..20).map(|_| turns.serve(0, true, 1_320_000, false) / MS).collect();
        assert_eq!((writes[0], writes[3], writes[19]), (0, 0, 527));
        for at in [40, 150, 290] {
            let waits = turns.serve(at * MS, false, 4_000, false) / MS - at;
            assert!(waits <= 34, "{waits} ms at {at}");
        }
        let waits = turns.serve(300 * MS, false, 4_000, false) / MS - 300;
        assert!(waits <= 67, "the second of two waits for another write: {waits} ms");
    }

    #[test]
    fn both_ways_together_get_no_more_than_the_limit() {
        for credit in [0, 100 * MS] {
            let mut turns = limited(credit);
            // Each way has eight requests under way at all times.
            let mut due: Vec<(u64, bool)> = (0..16).map(|n| (0, n % 2 == 1)).collect();
            let mut done = [0_u64; 2];
            while let Some((number, (now, is_write))) = due.iter().copied().enumerate().min_by_key(|(_, (at, _))| *at) {
                if now > 20_000 * MS {
                    break;
                }
                done[usize::from(is_write)] += u64::from(now > 0);
                due[number] = (turns.serve(now, is_write, 4096, false), is_write);
            }
            let most = 2000 + credit / (10 * MS);
            assert!((most - 30..=most + 16).contains(&(done[0] + done[1])), "{done:?}");
            assert!(done[0].abs_diff(done[1]) < 30, "{done:?}");
        }
    }
}
