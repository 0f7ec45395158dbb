// SPDX-License-Identifier: MIT OR Apache-2.0
//! One limit for the reads and writes of a device together, as a hypervisor keeps it: each way waits in a queue of its
//! own, and the two queues take turns. A write among many reads therefore waits for one or two of them, not for all.
//! On a real 6.12 whose disk QEMU limited to 150 requests a second, with 64 direct reads under way, a small fsync took
//! 27 ms: three writes of two turns each, and one flush. Turns are of equal time here, and of one request in QEMU: the
//! same for a limit of requests.

use crate::block::Lane;

/// A limit of both ways together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) lane: Lane,
    /// Time that the waiting reads and the waiting writes need of the device, at a moment.
    waiting: [u64; 2],
    at: u64,
}

impl Turns {
    /// Whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.lane.bandwidth > 0 || self.lane.iops > 0
    }

    /// Takes a request. Returns the time at which it is transferred.
    pub(crate) fn serve(&mut self, now: u64, is_write: bool, bytes: u64) -> u64 {
        self.pass(now);
        let before = self.waiting[0] + self.waiting[1];
        // What the credit covers does not wait.
        let after = self.lane.serve(now, bytes) - now;
        let (own, other) = (usize::from(is_write), usize::from(!is_write));
        self.waiting[own] = self.waiting[own].saturating_add(after.saturating_sub(before));
        let waits = self.waiting[own];
        now.saturating_add(waits).saturating_add(waits.min(self.waiting[other]))
    }

    /// Serves the waiting requests until a moment: both queues in turn, then the one that is left.
    fn pass(&mut self, now: u64) {
        let passed = now.saturating_sub(std::mem::replace(&mut self.at, now));
        let in_turn = self.waiting[0].min(self.waiting[1]).min(passed / 2);
        let mut rest = passed - 2 * in_turn;
        for waiting in &mut self.waiting {
            *waiting -= in_turn;
            let served = rest.min(*waiting);
            (*waiting, rest) = (*waiting - served, rest - served);
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
        let reads: Vec<u64> = (0..20).map(|_| turns.serve(0, false, 4096) / MS).collect();
        assert_eq!((reads[0], reads[19]), (10, 200));
        assert_eq!(turns.serve(0, true, 4096), 20 * MS);
        assert_eq!(turns.serve(0, true, 4096), 40 * MS, "the second waits for two reads");
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
                due[number] = (turns.serve(now, is_write, 4096), is_write);
            }
            let most = 2000 + credit / (10 * MS);
            assert!((most - 30..=most + 16).contains(&(done[0] + done[1])), "{done:?}");
            assert!(done[0].abs_diff(done[1]) < 30, "{done:?}");
        }
    }
}
