// SPDX-License-Identifier: MIT OR Apache-2.0
//! Foreign detection: after every pass over an inode the kernel records the memcg that owned most of its pages,
//! weighted by I/O time. It requests a switch of the inode when memcgs other than its wb's had 9 of the last 16 slots.
//! Mirrors wbc_account_cgroup_owner and wbc_detach_inode of fs/fs-writeback.c.

use super::constants::Build;

/// One second of the history's time unit: 2^13.
const SECOND_SHIFT: u32 = 13;
/// Units of one slot: 125 ms.
const SLOT: u64 = 1024;
/// Maximum number of slots that one pass may fill.
const SLOTS_MAX: u64 = 5;
/// Number of foreign slots above which a switch is requested.
const SWITCH_ABOVE: u32 = 8;

/// A memcg, by any number that names it.
pub type MemcgId = u64;

/// Foreign history of an inode. A switch resets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignHistory {
    /// The last 16 slots, the newest lowest. A bit is set if another memcg had most of the slot.
    pub history: u16,
    /// Average time of a pass, in units of 1/8192 s.
    pub avg_time: u16,
    /// The memcg that had most of the last pass.
    pub last_winner: Option<MemcgId>,
}

/// Bytes of one pass by owner of the page: its wb's memcg, the last winner, and the candidate of a
/// Boyer-Moore vote among all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignTally {
    own: u64,
    last: u64,
    candidate: MemcgId,
    candidate_bytes: u64,
}

impl ForeignTally {
    /// Counts submitted bytes of a page. Pages of dead memcgs are not to be counted.
    pub fn account(&mut self, history: &ForeignHistory, wb_memcg: MemcgId, owner: MemcgId, bytes: u64) {
        if owner == wb_memcg {
            self.own = self.own.saturating_add(bytes);
            return;
        }
        if Some(owner) == history.last_winner {
            self.last = self.last.saturating_add(bytes);
        }
        if self.candidate_bytes == 0 {
            self.candidate = owner;
        }
        self.candidate_bytes = if self.candidate == owner {
            self.candidate_bytes.saturating_add(bytes)
        } else {
            self.candidate_bytes.saturating_sub(bytes)
        };
    }
}

/// Outcome of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignOutcome {
    /// Estimated I/O time of the winner, in units of 1/8192 s.
    pub max_time: u64,
    /// Slots it filled; 0 if the pass was too short to count.
    pub slots: u64,
    /// The memcg the inode is to be switched to.
    pub switch_to: Option<MemcgId>,
}

impl ForeignHistory {
    /// Takes the tally of a pass into the history. `avg_write_bandwidth` is the wb's, pages per second.
    pub fn finish(
        &mut self,
        build: Build,
        tally: &ForeignTally,
        wb_memcg: MemcgId,
        avg_write_bandwidth: u64,
    ) -> ForeignOutcome {
        let (winner, bytes) = if tally.own >= tally.last && tally.own >= tally.candidate_bytes {
            (wb_memcg, tally.own)
        } else if let (Some(last), true) = (self.last_winner, tally.last >= tally.candidate_bytes) {
            (last, tally.last)
        } else {
            (tally.candidate, tally.candidate_bytes)
        };
        let pages = bytes / build.page_size();
        let max_time = pages.saturating_mul(1 << SECOND_SHIFT).div_ceil(avg_write_bandwidth.max(1));
        let avg_time = match u64::from(self.avg_time) {
            0 => max_time,
            avg => avg.saturating_add(max_time >> 3).saturating_sub(avg >> 3),
        };
        self.avg_time = u16::try_from(avg_time).unwrap_or(u16::MAX);
        let mut outcome = ForeignOutcome { max_time, slots: 0, switch_to: None };
        if max_time >= avg_time / 8 {
            outcome.slots = max_time.div_ceil(SLOT).min(SLOTS_MAX);
            let filled = (1u16 << outcome.slots) - 1;
            self.history = (self.history << outcome.slots) | if winner == wb_memcg { 0 } else { filled };
            // A switch to the wb that has the inode already changes nothing.
            if self.history.count_ones() > SWITCH_ABOVE && winner != wb_memcg {
                outcome.switch_to = Some(winner);
            }
        }
        self.last_winner = Some(winner);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BUILD: Build = Build { hz: 250, cpus_possible: 1, page_size: 4096 };
    const MIB: u64 = 1 << 20;

    fn pass(history: &mut ForeignHistory, pages: &[(MemcgId, u64)]) -> ForeignOutcome {
        let mut tally = ForeignTally::default();
        for &(owner, bytes) in pages {
            tally.account(history, 1, owner, bytes);
        }
        history.finish(BUILD, &tally, 1, 25_600)
    }

    #[test]
    fn an_inode_flips_between_two_writers_only_after_a_majority_of_slots() {
        let mut history = ForeignHistory::default();
        for _ in 0..8 {
            assert_eq!(pass(&mut history, &[(2, MIB)]).switch_to, None);
        }
        assert_eq!(pass(&mut history, &[(1, MIB)]).switch_to, None);
        assert_eq!(history.history, 0x1fe);
        assert_eq!(pass(&mut history, &[(2, MIB)]).switch_to, Some(2));
    }

    #[test]
    fn a_tie_goes_to_the_owner_and_then_to_the_last_winner() {
        let mut history = ForeignHistory::default();
        pass(&mut history, &[(1, MIB), (2, MIB)]);
        assert_eq!((history.last_winner, history.history), (Some(1), 0));
        pass(&mut history, &[(2, 2 * MIB)]);
        pass(&mut history, &[(2, MIB), (3, MIB), (3, MIB)]);
        assert_eq!(history.last_winner, Some(2), "the vote among 2, 3, 3 leaves one MiB for 3");
    }

    #[test]
    fn a_pass_of_nothing_fills_no_slot() {
        let mut history = ForeignHistory { history: 0xff, ..ForeignHistory::default() };
        assert_eq!(pass(&mut history, &[]), ForeignOutcome { max_time: 0, slots: 0, switch_to: None });
        assert_eq!(history.history, 0xff);
    }

    #[test]
    fn a_short_pass_after_long_ones_does_not_count() {
        let mut history = ForeignHistory::default();
        pass(&mut history, &[(2, 64 * MIB)]);
        let before = history.history;
        assert_eq!(pass(&mut history, &[(2, MIB)]).slots, 0);
        assert_eq!(history.history, before);
    }

    proptest! {
        #[test]
        fn no_pass_is_refused(
            history: u16, avg_time: u16, last: Option<u64>, bytes in proptest::collection::vec((0u64..4, any::<u64>()), 0..6),
            bandwidth: u64,
        ) {
            let mut state = ForeignHistory { history, avg_time, last_winner: last };
            let mut tally = ForeignTally::default();
            for (owner, bytes) in bytes {
                tally.account(&state, 1, owner, bytes);
            }
            let outcome = state.finish(BUILD, &tally, 1, bandwidth);
            prop_assert!(outcome.slots <= 5 && outcome.switch_to != Some(1));
        }
    }
}
