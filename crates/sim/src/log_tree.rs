// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log tree of btrfs: what an fsync writes besides the data. It writes the nodes of the tree that changed and the one
//! that holds the tree's root, flushes the device's cache, and writes the superblock that refers to them past the cache.
//! Callers of fsync that come meanwhile share the next log. Not modelled: commits of a transaction, which an fsync may
//! wait for, and checksums. Mirrors btrfs_sync_log of fs/btrfs/tree-log.c in outline.

use crate::arena::{CgId, InodeId, SbId};
use crate::block::{Class, Done, Request, Way, device_page, submit_all_and_wait, submit_and_wait};
use crate::engine::{Sim, Waiters};
use crate::flush::with_data;
use crate::journal::flush;
use crate::world::{PAGE, World};
use floodline_scenario::{Copies, Mkfs};

/// Nodes that one log writes: an average. On a real 7.2, 82 fsyncs of new files made 51 KiB of nodes dirty each, and 259 fsyncs of
/// new files or of 1 MiB that was appended made 50 KiB. Metadata is kept twice, and the device wrote twice as much of it.
const NODES: u64 = 3;

/// Bytes of a node if its mkfs was told nothing else.
const NODE: u64 = 16 << 10;

/// Logs after which the place of a log is used again.
const PLACES: u64 = 16;

/// The log tree of one filesystem.
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
}

impl LogTree {
    /// The log tree of a filesystem that was made with these options.
    pub(crate) fn new(inode: InodeId, mkfs: &Mkfs) -> LogTree {
        let node = mkfs.node_size.map_or(NODE, |size| size.bytes()).div_ceil(PAGE);
        let copies = if mkfs.metadata == Some(Copies::Single) { 1 } else { 2 };
        LogTree { inode: Some(inode), node, copies, ..LogTree::default() }
    }
}

impl World {
    /// Makes the nodes of the next log dirty and puts them under writeback. Returns their first page and their number.
    fn log_nodes(&mut self, sb: SbId, inode: InodeId, process: u32) -> (u64, u64) {
        let LogTree { node, begun, .. } = self.sbs[sb].log_tree;
        let (start, len) = (begun % PLACES * NODES * node, NODES * node);
        for page in start..start + len {
            if self.inodes[inode].cache.find(page).is_none() {
                self.add_to_cache(inode, page, 1, 1, CgId::ROOT);
            }
        }
        self.inodes[inode].cache.update(start, len, |_, extent| extent.dirty = true);
        let task = self.task_of(process);
        self.account_dirtied(inode, len, 1, CgId::ROOT, task);
        self.start_writeback(inode, start, len, CgId::ROOT, self.cpu_of(process));
        (start, len)
    }
}

/// Makes the metadata of an inode durable whose data was written, if its filesystem has a log tree. Returns whether it
/// has one.
pub(crate) async fn sync_log(sim: &Sim, sb: SbId) -> bool {
    let (Some(inode), Some(device), joined) = ({
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
    let request = |page: u64, bytes: u64| Request {
        way: Way::Write,
        at: device_page(inode, page),
        bytes,
        class: Class::Urgent,
        merged: 0,
        goes_on: false,
        cgroup: CgId::ROOT,
        done: Done::Nothing,
    };
    let (start, len, requests, place_of_superblock) = {
        let mut world = sim.w();
        let (start, len) = world.log_nodes(sb, inode, sim.current_process());
        let LogTree { node, copies, .. } = world.sbs[sb].log_tree;
        world.sbs[sb].log_tree.begun += 1;
        // A copy of a node lies in another chunk of the device.
        let place = |copy: u64, number: u64| start + number * node + copy * PLACES * NODES * node;
        let nodes =
            (0..copies).flat_map(|copy| (0..NODES).map(move |number| request(place(copy, number), node * PAGE)));
        (start, len, nodes.collect::<Vec<_>>(), place(copies, 0) - start)
    };
    submit_all_and_wait(sim, device, &requests, "nodes of the log tree").await;
    sim.w().end_writeback(inode, start, len);
    flush(sim, device).await;
    let superblock = request(place_of_superblock, PAGE);
    with_data(sim, device, submit_and_wait(sim, device, superblock, "the superblock")).await;
    flush(sim, device).await;
    let waiting = {
        let log = &mut sim.w().sbs[sb].log_tree;
        log.synced = log.begun;
        log.is_syncing = false;
        log.waiters.take()
    };
    sim.w().wake_all(waiting);
    true
}
