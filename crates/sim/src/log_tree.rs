// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log tree of btrfs: what an fsync writes besides the data. It writes the nodes of the tree that changed and the one
//! that holds the tree's root, flushes the device's cache, and writes the superblock that refers to them past the cache.
//! fsync callers that arrive meanwhile share the next log. Commits of transactions are in `tree_commit.rs`. Not modelled:
//! an fsync that has to commit the transaction. Mirrors btrfs_sync_log of fs/btrfs/tree-log.c in outline.

use crate::arena::{BlockId, CgId, InodeId, PidId, SbId};
use crate::block::{Class, Done, Request, Way, device_page, submit_all_and_wait};
use crate::engine::{Sim, Waiters};
use crate::flush::with_data;
use crate::journal::flush;
use crate::tree_commit::Transaction;
use crate::world::{PAGE, World};
use floodline_scenario::{Copies, Mkfs};

/// Nodes that one log writes: an average. On a real 7.2, 82 fsyncs of new files made 51 KiB of nodes dirty each, and 259 fsyncs of
/// new files or of 1 MiB that was appended made 50 KiB. Metadata is kept twice, and the device wrote twice as much of it.
const NODES: u64 = 3;

/// Bytes of a node if its mkfs was told nothing else.
const NODE: u64 = 16 << 10;

/// Logs after which the place of a log is used again.
const PLACES: u64 = 16;

/// First page above the places of logs, whose nodes have 64 KiB at most.
pub(crate) const PLACES_END: u64 = 1 << 12;

/// Distance between the two copies of a node, in pages. The copies lie in different chunks of the device.
const COPY: u64 = 1 << 22;

/// Where the superblocks are.
const SUPERBLOCKS: u64 = (1 << 24) - 16;

/// The log tree of one filesystem, and its running transaction.
#[derive(Debug, Default)]
pub(crate) struct LogTree {
    /// The inode whose pages are nodes; none on other filesystems.
    inode: Option<InodeId>,
    /// Pages of a node, and copies of it on the device.
    node: u64,
    copies: u64,
    /// Logs that began, and logs that are on the device.
    begun: u64,
    synced: u64,
    is_syncing: bool,
    waiters: Waiters,
    transaction: Transaction,
}

/// Nodes that are written together, and the number of superblocks that follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes {
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// Whether nodes that lie side by side are one request.
    pub(crate) are_joined: bool,
    pub(crate) superblocks: u64,
}

impl LogTree {
    /// The log tree of a filesystem that was made with these options.
    pub(crate) fn new(inode: InodeId, mkfs: &Mkfs, transaction: Transaction) -> LogTree {
        let node = mkfs.node_size.map_or(NODE, |size| size.bytes()).div_ceil(PAGE);
        let copies = if mkfs.metadata == Some(Copies::Single) { 1 } else { 2 };
        LogTree { inode: Some(inode), node, copies, transaction, ..LogTree::default() }
    }

    /// The inode whose pages are nodes and places of data. `None` unless the filesystem is btrfs.
    pub(crate) fn inode(&self) -> Option<InodeId> {
        self.inode
    }

    /// The running transaction. `None` unless the filesystem is btrfs.
    pub(crate) fn transaction(&mut self) -> Option<&mut Transaction> {
        self.inode.map(|_| &mut self.transaction)
    }
}

impl World {
    /// Makes nodes dirty and puts them under writeback. Returns the number of their pages.
    fn begin_nodes(&mut self, sb: SbId, inode: InodeId, nodes: Nodes, by: Option<PidId>) -> u64 {
        let (start, len) = (nodes.first, nodes.count * self.sbs[sb].log_tree.node);
        for page in start..start + len {
            if self.inodes[inode].cache.find(page).is_none() {
                self.add_to_cache(inode, page, 1, 1, CgId::ROOT);
            }
        }
        self.inodes[inode].cache.update(start, len, |_, extent| extent.dirty = true);
        self.account_dirtied(inode, len, 1, CgId::ROOT, by);
        self.start_writeback(inode, start, len, CgId::ROOT, by.map(|pid| self.pids[pid].cpu));
        len
    }

    /// Requests for all copies of some nodes.
    fn requests_of(&self, sb: SbId, inode: InodeId, nodes: Nodes) -> Vec<Request> {
        let LogTree { node, copies, .. } = self.sbs[sb].log_tree;
        let most = if nodes.are_joined { self.request_pages().max(node) } else { node };
        let pages = nodes.count * node;
        let of_copy = |copy: u64| {
            let at = move |page: u64| device_page(inode, nodes.first + page + copy * COPY);
            (0..pages).step_by(usize::try_from(most).unwrap_or(usize::MAX)).map(move |page| {
                let bytes = most.min(pages - page) * PAGE;
                request(at(page), bytes)
            })
        };
        (0..copies).flat_map(of_copy).collect()
    }
}

fn request(at: u64, bytes: u64) -> Request {
    Request {
        way: Way::Write,
        at,
        bytes,
        class: Class::Urgent,
        merged: 0,
        goes_on: false,
        cgroup: CgId::ROOT,
        done: Done::Nothing,
    }
}

/// Waits until no other log or commit is being written, and begins one.
pub(crate) async fn begin_sync(sim: &Sim, sb: SbId) {
    while std::mem::replace(&mut sim.w().sbs[sb].log_tree.is_syncing, true) {
        sim.wait("the log tree or a commit, which another task writes", |world| &mut world.sbs[sb].log_tree.waiters)
            .await;
    }
}

/// Ends a log or a commit.
pub(crate) fn end_sync(sim: &Sim, sb: SbId) {
    let mut world = sim.w();
    let log = &mut world.sbs[sb].log_tree;
    log.is_syncing = false;
    let waiting = log.waiters.take();
    world.wake_all(waiting);
}

/// Writes nodes and then the superblocks that refer to them.
pub(crate) async fn write_nodes(sim: &Sim, sb: SbId, device: BlockId, nodes: Nodes, by: Option<PidId>) {
    let Some(inode) = sim.w().sbs[sb].log_tree.inode else { return };
    let (len, requests) = {
        let mut world = sim.w();
        (world.begin_nodes(sb, inode, nodes, by), world.requests_of(sb, inode, nodes))
    };
    submit_all_and_wait(sim, device, &requests, "nodes of the trees").await;
    sim.w().end_writeback(inode, nodes.first, len);
    flush(sim, device).await;
    let place = |number: u64| request(device_page(inode, SUPERBLOCKS + 2 * number), PAGE);
    let superblocks: Vec<Request> = (0..nodes.superblocks).map(place).collect();
    with_data(sim, device, submit_all_and_wait(sim, device, &superblocks, "the superblock")).await;
    flush(sim, device).await;
}

/// Makes the metadata of an inode durable whose data was written, if its filesystem has a log tree. Returns whether it
/// has one.
pub(crate) async fn sync_log(sim: &Sim, sb: SbId) -> bool {
    let (Some(_), Some(device), joined) = ({
        let world = sim.w();
        let log = &world.sbs[sb].log_tree;
        (log.inode, world.sbs[sb].device, log.begun)
    }) else {
        return false;
    };
    loop {
        {
            let log = &mut sim.w().sbs[sb].log_tree;
            if log.synced > joined {
                return true;
            }
            if !std::mem::replace(&mut log.is_syncing, true) {
                break;
            }
        }
        sim.wait("the log tree, which another fsync writes", |world| &mut world.sbs[sb].log_tree.waiters).await;
    }
    let (nodes, by) = {
        let mut world = sim.w();
        let log = &mut world.sbs[sb].log_tree;
        let first = log.begun % PLACES * NODES * log.node;
        log.begun += 1;
        (Nodes { first, count: NODES, are_joined: false, superblocks: 1 }, world.task_of(sim.current_process()))
    };
    write_nodes(sim, sb, device, nodes, by).await;
    {
        let log = &mut sim.w().sbs[sb].log_tree;
        log.synced = log.begun;
    }
    end_sync(sim, sb);
    true
}
