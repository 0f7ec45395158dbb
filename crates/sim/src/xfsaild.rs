// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the metadata in XFS's log in place some time later, without the page cache: none of it is dirty memory,
//! and only the device's own counters show the writes. Here that is every half minute, all of it
//! (`xfs_log_worker`), earlier once less than a quarter of the log is free, and at once where the kernel reclaims inodes of
//! the cache (`drop_caches`), as an inode whose metadata is not in place cannot be dropped. A task that finds no room in the
//! log waits until it is written. Mirrors fs/xfs/xfs_trans_ail.c and xlog_grant_head_wait of fs/xfs/xfs_log.c in
//! outline.

use crate::arena::{CgId, SbId};
use crate::block::{Class, Done, Request, Way, submit, submit_and_wait};
use crate::engine::{Due, Sim, suspend};
use crate::filesystem::FIRST_INODES;
use crate::journal::{BlockSet, wait};
use crate::process::Sleeper;
use crate::world::PAGE;

/// Time between rounds of the worker (`xfs_syncd_centisecs`).
pub(crate) const INTERVAL: u64 = 30_000_000_000;

/// Part of the log that changes may take before they are written to it, and the most bytes.
const CIL_PART: u64 = 8;
const CIL_MOST: u64 = 32 << 20;

/// Inodes in a cluster, which is written in one piece: 16 KiB of 512 bytes each (mkfs.xfs since 3.2.3).
pub(crate) const INODES_PER_CLUSTER: u64 = 32;
pub(crate) const PAGES_PER_CLUSTER: u64 = 4;

/// Place of metadata on the device, pages: beyond every inode's data.
pub(crate) const METADATA: u64 = 1 << 49;

/// The AIL thread of a superblock.
pub(crate) async fn xfsaild(sim: Sim, sb: SbId) {
    let Some(device) = sim.w().sbs[sb].device else { return };
    sim.w().sleeps_as(sim.current_process(), Sleeper::Other);
    let mut round = None;
    loop {
        loop {
            let ticket = sim.ticket("");
            {
                let mut world = sim.w();
                let now = world.now;
                let Some(journal) = world.sbs[sb].journal.as_mut() else { return };
                if journal.has_unwritten(ticket) {
                    let at = if journal.is_due() { now } else { *round.get_or_insert(journal.next_round(now)) };
                    if at <= now {
                        break;
                    }
                    world.queue.push(at, Due::Wake(ticket));
                }
            }
            suspend().await;
        }
        round = None;
        let (changed, taken, most) = {
            let mut world = sim.w();
            let most = world.request_pages();
            let Some(journal) = world.sbs[sb].journal.as_mut() else { return };
            (journal.take_unwritten(), journal.room.used, most)
        };
        let mut writes = writes(&changed, most);
        let last = writes.pop();
        let request = |at: u64, pages: u64| Request {
            way: Way::Write,
            at: METADATA + at,
            bytes: pages * PAGE,
            class: Class::Urgent,
            merged: 0,
            goes_on: false,
            cgroup: CgId::ROOT,
            done: Done::Nothing,
        };
        for (at, pages) in writes {
            submit(&sim, device, request(at, pages)).await;
        }
        if let Some((at, pages)) = last {
            submit_and_wait(&sim, device, request(at, pages), "").await;
        }
        let mut world = sim.w();
        let waiting = world.sbs[sb].journal.as_mut().map(|journal| journal.written_back(taken));
        world.wake_all(waiting.unwrap_or_default());
    }
}

/// Waits until the metadata of dropped inodes is in place. The kernel writes it meanwhile, and keeps these inodes until then. On real
/// machines a task that drops caches has its inodes read again after that.
pub(crate) async fn in_place(sim: &Sim) {
    let rounds = |sb: SbId| Some((sb, sim.w().sbs[sb].journal.as_ref()?.rounds_until_in_place()));
    let all: Vec<SbId> = sim.w().sbs.ids().collect();
    let all: Vec<(SbId, u64)> = all.into_iter().filter_map(rounds).collect();
    for (sb, rounds) in all {
        // Later changes may be on their way without end.
        while sim.w().sbs[sb].journal.as_ref().is_some_and(|journal| !journal.had_rounds(rounds)) {
            wait(sim, sb, "metadata that is written in place").await;
        }
    }
}

/// Room in the log of XFS, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    capacity: u64,
    pub(crate) used: u64,
}

impl Room {
    /// Creates the room of a log, by its size in pages; a log of `u64::MAX` never fills.
    pub(crate) fn of(capacity: u64) -> Room {
        Room { capacity: capacity.saturating_mul(PAGE), used: 0 }
    }

    pub(crate) fn take(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
    }

    pub(crate) fn give(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Whether the worker has to write before its interval ends.
    pub(crate) fn is_short(self) -> bool {
        self.used > self.capacity / 4 * 3
    }

    /// Whether changes since the last commit may not fit.
    pub(crate) fn is_lacking(self) -> bool {
        self.used > self.capacity - self.commit_bytes()
    }

    /// Bytes of the log that one commit takes. Tasks force the log when they have changed that much
    /// (`XLOG_CIL_SPACE_LIMIT`).
    pub(crate) fn commit_bytes(self) -> u64 {
        (self.capacity / CIL_PART).min(CIL_MOST)
    }
}

/// Places and lengths of the writes, in pages. Neighbours go into one request, up to `most` pages.
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
    fn a_commit_takes_an_eighth_of_the_log_and_at_most_32_mib() {
        const MIB: u64 = 1 << 20;
        for (log, expect) in [(2, MIB / 4), (64, 8 * MIB), (256, 32 * MIB), (264, 32 * MIB), (2047, 32 * MIB)] {
            let mut room = Room::of(log * MIB / PAGE);
            assert_eq!(room.commit_bytes(), expect, "a log of {log} MiB");
            room.take(log * MIB - expect);
            assert!(!room.is_lacking(), "a log of {log} MiB");
            room.take(1);
            assert!(room.is_lacking(), "a log of {log} MiB");
        }
    }

    #[test]
    fn inodes_are_written_by_the_cluster_and_neighbours_together() {
        let check = |blocks: &[u64], most, expect: &[(u64, u64)]| {
            let mut changed = BlockSet::default();
            for block in blocks {
                changed.insert(*block);
            }
            assert_eq!(writes(&changed, most), expect);
        };
        check(&[], 320, &[]);
        check(&[1, 2, 5], 320, &[(1, 2), (5, 1)]);
        check(&[64, 65, 95], 320, &[(64, 4)]);
        check(&[64, 96, 200], 320, &[(64, 8), (80, 4)]);
        check(&[64, 96, 128], 8, &[(64, 8), (72, 4)]);
    }
}
