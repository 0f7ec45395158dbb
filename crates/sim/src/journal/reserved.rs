// SPDX-License-Identifier: MIT OR Apache-2.0
//! Credits of a journal that are reserved for later work: ext4 reserves those for the conversion of unwritten
//! blocks before it writes them. At most half of a transaction may be reserved, which bounds the ioends in flight
//! on a filesystem across all cgroups: behind those of a slow cgroup, every other cgroup waits. Mirrors
//! add_transaction_credits of fs/jbd2/transaction.c and ext4_meta_trans_blocks of fs/ext4/inode.c. XFS reserves its
//! log as it converts.

use super::log_space::TAGS;
use super::of;
use crate::arena::SbId;
use crate::engine::{Sim, Waiters};
use crate::world::{PAGE, World};
use floodline_kernel::Journals;

/// Blocks of the journal that mke2fs creates, by the size in MiB below which a filesystem gets them. Filesystems below 512 MiB
/// have blocks of 1 KiB.
const JOURNAL_BLOCKS: [(u64, u64); 9] = [
    (32, 1024),
    (256, 4096),
    (512, 8192),
    (1 << 10, 4096),
    (2 << 10, 8192),
    (16 << 10, 16_384),
    (32 << 10, 32_768),
    (64 << 10, 65_536),
    (128 << 10, 131_072),
];
/// Blocks of the journal that mke2fs creates for larger filesystems.
const JOURNAL_BLOCKS_MAX: u64 = 262_144;
/// Blocks of an inode's extent tree at its largest, counted twice.
const INDEX_BLOCKS: u64 = 10;
/// Blocks of extended attributes and of the inode, and one for the pages.
const OTHER_BLOCKS: u64 = 7;
/// Blocks of the journal that mke2fs creates, by the size of the device in bytes.
pub(crate) fn journal_blocks_of_ext4(bytes: u64) -> u64 {
    let known = JOURNAL_BLOCKS.iter().find(|(below, _)| bytes >> 20 < *below);
    known.map_or(JOURNAL_BLOCKS_MAX, |(_, blocks)| *blocks)
}

/// The most blocks that one transaction takes: a third of the journal less its descriptor blocks, or a quarter of the
/// journal.
pub(super) fn transaction_blocks(journal: u64, behaviour: Journals) -> u64 {
    match behaviour.transaction_is_third {
        true => (journal / 3).saturating_sub((journal / 3).div_ceil(TAGS) + 1),
        false => journal / 4,
    }
}

/// Reserved credits of a journal.
#[derive(Debug)]
pub(crate) struct Reserved {
    /// Number of reserved conversions, and its limit.
    under_way: u64,
    most: u64,
    waiters: Waiters,
}

impl Reserved {
    /// Creates a reserve without limit.
    pub(super) fn unbounded() -> Reserved {
        Reserved { under_way: 0, most: u64::MAX, waiters: Waiters::default() }
    }

    fn is_bounded(&self) -> bool {
        self.most != u64::MAX
    }

    /// Creates the reserve of an ext4, by the size of its device in bytes and the most blocks of one of its
    /// transactions.
    pub(super) fn of_ext4(bytes: u64, transaction: u64) -> Reserved {
        let groups = (bytes / (PAGE * 8 * PAGE)).max(1);
        let touched = INDEX_BLOCKS + 1;
        let credits = INDEX_BLOCKS + OTHER_BLOCKS + touched.min(groups) + touched.min(groups.div_ceil(64));
        Reserved { most: (transaction / 2 / credits).max(1), ..Reserved::unbounded() }
    }
}

/// Reserves the credits of a conversion. Waits while too much is reserved.
pub(crate) async fn reserve(sim: &Sim, sb: SbId) {
    loop {
        let ticket = sim.ticket("credits of the journal that others reserved (jbd2)");
        {
            let mut world = sim.w();
            let Some(journal) = of(&mut world, sb) else { return };
            let reserved = &mut journal.reserved;
            if !reserved.is_bounded() {
                return;
            }
            if reserved.under_way < reserved.most {
                reserved.under_way += 1;
                return;
            }
            reserved.waiters.add(ticket);
        }
        crate::engine::suspend().await;
    }
}

impl World {
    /// Releases the reservation of a conversion that begins.
    pub(super) fn journal_unreserve(&mut self, sb: SbId) {
        let Some(journal) = of(self, sb) else { return };
        if !journal.reserved.is_bounded() {
            return;
        }
        journal.reserved.under_way -= 1;
        let waiting = journal.reserved.waiters.take();
        self.wake_all(waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_kernel::Behaviour;

    #[test]
    fn half_a_transaction_bounds_the_conversions() {
        let check = |gib: u64, kernel: &str, expect| {
            let behaviour = Behaviour::of(kernel.parse().expect("a version"));
            let transaction = transaction_blocks(journal_blocks_of_ext4(gib << 30), behaviour.journal);
            let reserved = Reserved::of_ext4(gib << 30, transaction);
            assert_eq!(reserved.most, expect, "{gib} GiB on {kernel}");
        };
        // As traced whenever a task waited: 29 of the 5461 blocks of a transaction each.
        check(3, "6.12", 93);
        check(3, "6.10", 70);
        check(1, "6.12", 52);
        check(200, "6.12", 1115);
        check(0, "6.12", 8);
    }
}
