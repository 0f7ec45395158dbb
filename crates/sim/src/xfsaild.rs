// SPDX-License-Identifier: MIT OR Apache-2.0
//! What XFS's log holds is written to its place on the disk some time later, past the page cache: nothing of it is dirty
//! memory, and only the device's own counters show it. Here that is every half minute, all of it (`xfs_log_worker`); that
//! a log which runs full writes earlier is left out. Mirrors fs/xfs/xfs_trans_ail.c in outline.

use crate::arena::{CgId, SbId};
use crate::block::{Class, Done, Request, Way, submit};
use crate::engine::{Sim, suspend};
use crate::filesystem::FIRST_INODES;
use crate::journal::BlockSet;
use crate::world::PAGE;

/// Time between rounds of the worker (`xfs_syncd_centisecs`).
pub(crate) const INTERVAL: u64 = 30_000_000_000;

/// Inodes in a cluster, which is written as one: 16 KiB of 512 bytes each (mkfs.xfs since 3.2.3).
const INODES_PER_CLUSTER: u64 = 32;
const PAGES_PER_CLUSTER: u64 = 4;

/// Where on its device metadata are, pages: beyond every inode's data.
const METADATA: u64 = 1 << 49;

/// The thread of a superblock.
pub(crate) async fn xfsaild(sim: Sim, sb: SbId) {
    let Some(device) = sim.w().sbs[sb].device else { return };
    loop {
        let round = loop {
            let ticket = sim.ticket("");
            let due = {
                let mut world = sim.w();
                let now = world.now;
                let Some(journal) = world.sbs[sb].journal.as_mut() else { return };
                journal.has_unwritten(ticket).then(|| journal.next_round(now))
            };
            match due {
                Some(round) => break round,
                None => suspend().await,
            }
        };
        sim.sleep_until(round, "").await;
        let (changed, most) = {
            let mut world = sim.w();
            let most = world.request_pages();
            let Some(journal) = world.sbs[sb].journal.as_mut() else { return };
            (journal.take_unwritten(), most)
        };
        for (at, pages) in writes(&changed, most) {
            let request = Request {
                way: Way::Write,
                at: METADATA + at,
                bytes: pages * PAGE,
                class: Class::Normal,
                merged: 0,
                cgroup: CgId::ROOT,
                done: Done::Nothing,
            };
            submit(&sim, device, request).await;
        }
    }
}

/// What is written where, in pages: neighbours together, as far as a request goes.
fn writes(changed: &BlockSet, most: u64) -> Vec<(u64, u64)> {
    let mut writes: Vec<(u64, u64)> = Vec::new();
    for block in changed.iter() {
        let (at, pages) = match block.checked_sub(FIRST_INODES) {
            None => (block, 1),
            Some(inode) => (FIRST_INODES + inode / INODES_PER_CLUSTER * PAGES_PER_CLUSTER, PAGES_PER_CLUSTER),
        };
        match writes.last_mut() {
            Some((last, len)) if at < *last + *len => {}
            Some((last, len)) if at == *last + *len && *len + pages <= most => *len += pages,
            _ => writes.push((at, pages)),
        }
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_are_written_by_the_cluster_and_neighbours_together() {
        let check = |blocks: &[u64], most, expect: &[(u64, u64)]| {
            let mut changed = BlockSet::default();
            blocks.iter().for_each(|block| changed.insert(*block));
            assert_eq!(writes(&changed, most), expect);
        };
        check(&[], 320, &[]);
        check(&[1, 2, 5], 320, &[(1, 2), (5, 1)]);
        check(&[64, 65, 95], 320, &[(64, 4)]);
        check(&[64, 96, 200], 320, &[(64, 8), (80, 4)]);
        check(&[64, 96, 128], 8, &[(64, 8), (72, 4)]);
    }
}
