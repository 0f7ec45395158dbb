// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions of btrfs. Every change of a file, and every run of data that gets a place, is part of the running transaction.
//! It is committed 30 s after it began (`commit=`), and by sync, syncfs and unmount. A commit writes the changed nodes of all
//! trees to new places, flushes the cache of the device, and writes the superblocks that refer to the nodes. The log of an
//! fsync waits for a commit, because both write a superblock. Not modelled: nodes that the flusher writes before the commit,
//! delayed references, and tasks that wait until a transaction is closed. Mirrors btrfs_commit_transaction and
//! transaction_kthread of fs/btrfs in outline.

use crate::arena::{Id, InodeId, SbId};
use crate::block::device_page;
use crate::engine::Sim;
use crate::filesystem::FIRST_INODES;
use crate::log_tree::{Nodes, PLACES_END, begin_sync, end_sync, write_nodes};
use crate::world::World;
use floodline_record::units::Nanos;
use std::collections::BTreeSet;

/// Time until a transaction is committed, without the mount option `commit=`.
const INTERVAL: Nanos = Nanos(30 * Nanos::SECOND.0);

/// Nodes that change in each transaction: a leaf of the trees of roots, extents, checksums and free space, and one above them.
const NODES: u64 = 5;

/// Estimated runs of data per node. Each takes an item of 53 bytes and a header of 25 bytes, in two trees.
const RUNS_IN_NODE: u64 = 100;

/// Place of the second superblock. A smaller device has only the first one.
const SECOND_SUPERBLOCK: u64 = 64 << 20;

/// First page of the places that data gets, above those of the nodes, and their number.
const DATA: u64 = 1 << 24;
const DATA_PAGES: u64 = 1 << 27;

/// The running transaction of one filesystem, and the place that data gets next.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    began: Option<u64>,
    interval: u64,
    /// Inode tables that changed, numbered as in `filesystem.rs`. Files of one table have their items in one leaf.
    changed: BTreeSet<u64>,
    runs: u64,
    /// Pages that data got since the mount.
    placed: u64,
}

impl Transaction {
    /// Returns an empty transaction. `commit=` was given in seconds at the mount.
    pub(crate) fn every(seconds: Option<u64>) -> Transaction {
        let interval = seconds.filter(|seconds| *seconds > 0).map_or(INTERVAL.0, |s| s.saturating_mul(Nanos::SECOND.0));
        Transaction { interval, ..Transaction::default() }
    }

    /// Ends the running transaction. Returns the number of its nodes, if there was one.
    fn end(&mut self) -> Option<u64> {
        self.began.take()?;
        let changed = std::mem::take(&mut self.changed).len() as u64;
        Some(NODES + changed + std::mem::take(&mut self.runs).div_ceil(RUNS_IN_NODE))
    }
}

impl World {
    /// Notes that metadata blocks changed, if the filesystem is a btrfs.
    pub(crate) fn trees_change(&mut self, sb: SbId, blocks: &[u64]) {
        let now = self.now;
        if let Some(transaction) = self.sbs[sb].log_tree.transaction() {
            transaction.began.get_or_insert(now);
            transaction.changed.extend(blocks.iter().filter(|block| **block >= FIRST_INODES));
        }
    }

    /// Notes that a run of data of a btrfs is written. Data that has a place already gets a new one.
    pub(crate) fn run_changes_trees(&mut self, sb: SbId) {
        let now = self.now;
        if let Some(transaction) = self.sbs[sb].log_tree.transaction() {
            transaction.began.get_or_insert(now);
            transaction.runs += 1;
        }
    }

    /// The place of some pages of data on a btrfs: after those that got one last.
    pub(crate) fn copy_place(&mut self, sb: SbId, pages: u64) -> Option<u64> {
        let inode = self.sbs[sb].log_tree.inode()?;
        let transaction = self.sbs[sb].log_tree.transaction()?;
        let place = DATA + transaction.placed % DATA_PAGES;
        transaction.placed += pages;
        Some(device_page(inode, place))
    }

    /// Whether a place on a device is one that a btrfs gave to data.
    pub(crate) fn is_copy_place(&self, at: u64) -> bool {
        let inode = InodeId(u32::try_from(at >> 28).unwrap_or(u32::MAX));
        let is_known = inode.number() < self.inodes.len() && at - device_page(inode, 0) >= DATA;
        is_known && self.sbs[self.inodes[inode].sb].log_tree.inode() == Some(inode)
    }
}

/// Commits the running transaction of a btrfs, if there is one. Returns whether the filesystem is a btrfs.
pub(crate) async fn commit(sim: &Sim, sb: SbId) -> bool {
    let device = {
        let world = sim.w();
        world.sbs[sb].device.filter(|_| world.sbs[sb].log_tree.inode().is_some())
    };
    let Some(device) = device else { return false };
    begin_sync(sim, sb).await;
    let nodes = {
        let mut world = sim.w();
        let superblocks = 1 + u64::from(world.blocks[device].size > SECOND_SUPERBLOCK);
        let count = world.sbs[sb].log_tree.transaction().and_then(Transaction::end);
        count.map(|count| Nodes { first: PLACES_END, count, are_joined: true, superblocks })
    };
    if let Some(nodes) = nodes {
        write_nodes(sim, sb, device, nodes, None).await;
    }
    end_sync(sim, sb);
    true
}

/// The thread of a btrfs that commits old transactions.
pub(crate) async fn transaction_kthread(sim: Sim, sb: SbId) {
    loop {
        let left = {
            let mut world = sim.w();
            let now = world.now;
            let Some(transaction) = world.sbs[sb].log_tree.transaction() else { return };
            let interval = transaction.interval;
            transaction.began.map_or(interval, |began| (began + interval).saturating_sub(now))
        };
        if left > 0 {
            sim.pass(left, "").await;
        } else {
            commit(&sim, sb).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_the_nodes_of_its_changes_and_ends_once() {
        let mut transaction = Transaction::every(Some(0));
        assert_eq!((transaction.interval, transaction.end()), (30_000_000_000, None));
        transaction.began = Some(7);
        transaction.changed.extend([64, 65, 64]);
        transaction.runs = 101;
        assert_eq!((transaction.end(), transaction.end()), (Some(5 + 2 + 2), None));
    }
}
