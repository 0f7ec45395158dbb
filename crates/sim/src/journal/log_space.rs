// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room in the log of jbd2. A committed transaction keeps its blocks of the log until each of its metadata blocks
//! is written in place, or is part of a later transaction. A task that starts a transaction needs room for the
//! largest one. If the log has less, the task writes the metadata of the oldest transaction itself and waits for
//! it, and other tasks wait for that task. Mirrors __jbd2_log_wait_for_space and jbd2_log_do_checkpoint of
//! fs/jbd2/checkpoint.c in outline: the tail of the log moves at once in memory, and its superblock is written only
//! after such a wait.

use super::log::write_tail;
use super::{BlockSet, commit, of, wait};
use crate::arena::{InodeId, SbId};
use crate::engine::Sim;
use crate::world::World;
use crate::writepages::{How, wait_writeback, writepages};
use std::collections::{BTreeMap, VecDeque};

/// Blocks listed in one descriptor block of the log.
pub(super) const TAGS: u64 = 253;
/// Most blocks of the log that jbd2 keeps free.
const KEPT: u64 = 32;

/// A committed transaction whose blocks are not all written in place yet.
#[derive(Debug)]
struct Checkpoint {
    /// Blocks of the log that it occupies.
    log: u64,
    blocks: BlockSet,
    /// Number of its blocks that are neither written in place nor in a later transaction.
    left: u64,
}

/// Usage of a log.
#[derive(Debug)]
pub(super) struct LogSpace {
    /// Blocks of the log, and of the largest transaction; the first is `u64::MAX` if the log is unbounded.
    capacity: u64,
    transaction: u64,
    used: u64,
    /// Committed transactions, the oldest first; its number is `oldest`.
    checkpoints: VecDeque<Checkpoint>,
    oldest: u64,
    /// The latest committed transaction of each block that is not written in place.
    latest: BTreeMap<u64, u64>,
    /// Whether a task is making room.
    is_busy: bool,
}

impl LogSpace {
    /// Creates a log that never fills.
    pub(super) fn unbounded() -> LogSpace {
        LogSpace {
            capacity: u64::MAX,
            transaction: u64::MAX,
            used: 0,
            checkpoints: VecDeque::new(),
            oldest: 1,
            latest: BTreeMap::new(),
            is_busy: false,
        }
    }

    /// An empty log, with its size and the most that one transaction takes, both in blocks.
    pub(super) fn of(capacity: u64, transaction: u64) -> LogSpace {
        LogSpace { capacity, transaction: transaction.max(1), ..LogSpace::unbounded() }
    }

    fn is_bounded(&self) -> bool {
        self.capacity != u64::MAX
    }

    /// Whether a transaction that has this many blocks is full.
    pub(super) fn is_full(&self, blocks: u64) -> bool {
        blocks >= self.transaction
    }

    /// Whether there is less room than the largest transaction may need.
    pub(super) fn lacks_room(&self) -> bool {
        let free = self.capacity.saturating_sub(self.used);
        self.is_bounded() && free - (free / 8).min(KEPT) < self.transaction
    }

    /// Records a committed transaction. Transactions come in order.
    pub(super) fn committed(&mut self, tid: u64, blocks: &BlockSet) {
        if !self.is_bounded() {
            return;
        }
        let left = blocks.len();
        // Its descriptor blocks and its commit block.
        let log = left + left.div_ceil(TAGS) + 1;
        self.used += log;
        self.checkpoints.push_back(Checkpoint { log, blocks: blocks.clone(), left });
        debug_assert!(tid == self.oldest + self.checkpoints.len() as u64 - 1, "transactions in order");
        for block in blocks.iter() {
            if let Some(before) = self.latest.insert(block, tid) {
                self.one_less(before);
            }
        }
        self.forget_done();
    }

    /// Records that a block is written in place.
    pub(super) fn cleaned(&mut self, block: u64) {
        if let Some(tid) = self.latest.remove(&block) {
            self.one_less(tid);
            self.forget_done();
        }
    }

    fn one_less(&mut self, tid: u64) {
        let at = tid.checked_sub(self.oldest).and_then(|at| usize::try_from(at).ok());
        if let Some(checkpoint) = at.and_then(|at| self.checkpoints.get_mut(at)) {
            checkpoint.left -= 1;
        }
    }

    /// Moves the tail of the log past transactions that need nothing any more.
    fn forget_done(&mut self) {
        while let Some(done) = self.checkpoints.front().filter(|checkpoint| checkpoint.left == 0) {
            self.used -= done.log;
            self.oldest += 1;
            self.checkpoints.pop_front();
        }
    }

    /// Blocks of the oldest transaction that keep the tail of the log from moving.
    fn holding(&self) -> Vec<u64> {
        let Some(first) = self.checkpoints.front() else { return Vec::new() };
        first.blocks.iter().filter(|block| self.latest.get(block) == Some(&self.oldest)).collect()
    }
}

/// Makes room in a log: writes blocks that the oldest transaction still needs, or waits for a task that does.
pub(super) async fn make_room(sim: &Sim, sb: SbId) {
    const WAITS: &str = "room in the log of the journal (jbd2)";
    let (metadata, device) = {
        let world = sim.w();
        (world.sbs[sb].metadata, world.sbs[sb].device)
    };
    let (Some(metadata), Some(device)) = (metadata, device) else { return };
    let is_mine = of(&mut sim.w(), sb).is_some_and(|journal| !std::mem::replace(&mut journal.log.is_busy, true));
    if !is_mine {
        return wait(sim, sb, WAITS).await;
    }
    let (holding, is_changing) = {
        let mut world = sim.w();
        let Some(journal) = of(&mut world, sb) else { return };
        let holding = journal.log.holding();
        let is_changing = holding.iter().any(|block| journal.has(*block));
        (holding, is_changing)
    };
    if is_changing {
        // The commit moves the blocks to a later transaction.
        commit(sim, sb, 0).await;
    } else {
        for (from, to) in ranges(&holding) {
            writepages(sim, metadata, How { range: Some((from, to)), ..How::all(true) }).await;
        }
        for (from, to) in ranges(&holding) {
            wait_writeback(sim, metadata, from, to - from).await;
        }
        sim.w().checkpoint_ended(sb, metadata, &holding);
    }
    write_tail(sim, sb, device).await;
    let mut world = sim.w();
    let waiting = of(&mut world, sb).map(|journal| {
        journal.log.is_busy = false;
        journal.waiters.take()
    });
    world.wake_all(waiting.unwrap_or_default());
}

/// Joins adjacent blocks into ranges.
fn ranges(blocks: &[u64]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for block in blocks {
        match ranges.last_mut() {
            Some((_, to)) if *to == *block => *to += 1,
            _ => ranges.push((*block, block + 1)),
        }
    }
    ranges
}

impl World {
    /// Handles written pages of a block device: the log needs their blocks no more, unless they have changed since or
    /// are part of a transaction that is not committed.
    pub(crate) fn checkpoint_ended(&mut self, sb: SbId, metadata: InodeId, blocks: &[u64]) {
        for block in blocks {
            let is_clean =
                self.inodes[metadata].cache.find(*block).is_none_or(|(_, page)| !page.dirty && !page.writeback);
            if let Some(journal) = of(self, sb).filter(|journal| is_clean && !journal.has(*block)) {
                journal.log.cleaned(*block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(blocks: &[u64]) -> BlockSet {
        let mut set = BlockSet::default();
        for block in blocks {
            set.insert(*block);
        }
        set
    }

    #[test]
    fn the_oldest_transaction_holds_the_tail() {
        let mut log = LogSpace::of(100, 20);
        log.committed(1, &set(&[1, 2, 3]));
        log.committed(2, &set(&[2, 3, 4]));
        assert_eq!((log.used, log.holding()), (10, vec![1]));
        log.cleaned(4);
        log.cleaned(2);
        assert_eq!((log.used, log.holding()), (10, vec![1]), "a later one is done before");
        log.cleaned(1);
        assert_eq!((log.used, log.holding()), (5, vec![3]));
        log.committed(3, &set(&[3]));
        assert_eq!((log.used, log.holding()), (3, vec![3]), "a block that changes again holds the later one");
        log.cleaned(3);
        assert_eq!((log.used, log.holding()), (0, vec![]));
    }

    #[test]
    fn room_is_for_the_largest_transaction() {
        let mut log = LogSpace::of(100, 20);
        log.committed(1, &set(&(0..60).collect::<Vec<u64>>()));
        assert!(!log.lacks_room(), "38 blocks are free, and 4 are kept");
        log.committed(2, &set(&(60..76).collect::<Vec<u64>>()));
        assert!(log.lacks_room(), "20 are free, and 2 are kept");
        assert!(log.is_full(20) && !log.is_full(19));
        assert!(!LogSpace::unbounded().lacks_room());
        assert_eq!(ranges(&[1, 2, 5]), [(1, 3), (5, 6)]);
    }
}
