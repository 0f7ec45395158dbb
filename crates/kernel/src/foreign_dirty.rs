// SPDX-License-Identifier: MIT OR Apache-2.0
//! Foreign dirtying: which other wbs hold the pages that a memcg dirtied in inodes that are not its own,
//! in four slots, so that a throttled task can have them flushed. Since commit 97b27821b485
//! ("writeback, memcg: Implement foreign dirty flushing"), 5.4. Mirrors mm/memcontrol.c. Times are
//! ticks of any clock.

use super::foreign_history::MemcgId;

/// Foreign wbs a memcg remembers.
pub const FOREIGN_SLOTS: usize = 4;

/// One foreign wb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignSlot {
    /// The wb's bdi, by any number that names it.
    pub bdi: u64,
    /// The wb's memcg.
    pub memcg: MemcgId,
    /// When it was last dirtied; 0 is never, or flushed since.
    pub at: u64,
    /// Whether a flush of it is under way.
    pub in_flight: bool,
}

/// The foreign wbs of a memcg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignDirty {
    /// The slots.
    pub slots: [ForeignSlot; FOREIGN_SLOTS],
}

impl ForeignDirty {
    /// Notes that a page of this memcg was dirtied in an inode of another's wb. `second` is one second
    /// and `expire` the age at which inodes are written, in ticks. A wb that is known is refreshed only
    /// after a while, as this is a hot path; a new one takes the oldest slot without a flush under way,
    /// and is forgotten where there is none.
    pub fn track(&mut self, bdi: u64, memcg: MemcgId, now: u64, second: u64, expire: u64) {
        let refresh_after = second.min(expire / 8);
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.bdi == bdi && slot.memcg == memcg) {
            if now.saturating_sub(slot.at) > refresh_after {
                slot.at = now;
            }
            return;
        }
        let oldest = self.slots.iter_mut().filter(|slot| !slot.in_flight).min_by_key(|slot| slot.at);
        if let Some(slot) = oldest.filter(|slot| slot.at < now) {
            *slot = ForeignSlot { bdi, memcg, at: now, in_flight: false };
        }
    }

    /// The next foreign wb to be flushed for a throttled task: dirtied within `expire` and without a
    /// flush under way. Marks it; the caller queues the work and clears `in_flight` when it is done.
    pub fn take_flush(&mut self, now: u64, expire: u64) -> Option<ForeignSlot> {
        let recent = |slot: &&mut ForeignSlot| {
            !slot.in_flight && slot.at != 0 && u128::from(slot.at) + u128::from(expire) > u128::from(now)
        };
        let slot = self.slots.iter_mut().find(recent)?;
        slot.at = 0;
        slot.in_flight = true;
        Some(*slot)
    }
}

/// Pages of a foreign flush: a quarter more than what the *foreign* memcg has dirty itself, which may be
/// nothing whatever was dirtied in its inodes.
pub fn foreign_flush_pages(foreign_file_dirty: u64) -> u64 {
    super::product::mul_div(foreign_file_dirty, 10, 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 250;
    const EXPIRE: u64 = 30 * SECOND;

    #[test]
    fn a_known_wb_is_refreshed_only_after_a_while() {
        let mut dirty = ForeignDirty::default();
        dirty.track(1, 7, 1000, SECOND, EXPIRE);
        dirty.track(1, 7, 1250, SECOND, EXPIRE);
        assert_eq!(dirty.slots[0].at, 1000);
        dirty.track(1, 7, 1251, SECOND, EXPIRE);
        assert_eq!(dirty.slots[0].at, 1251);
        assert_eq!(dirty.slots[1], ForeignSlot::default());
    }

    #[test]
    fn a_fifth_wb_takes_the_oldest_slot_that_is_not_being_flushed() {
        let mut dirty = ForeignDirty::default();
        for memcg in 1..=4 {
            dirty.track(1, memcg, 1000 + memcg, SECOND, EXPIRE);
        }
        assert_eq!(dirty.take_flush(1010, EXPIRE).map(|slot| slot.memcg), Some(1));
        dirty.track(1, 5, 1011, SECOND, EXPIRE);
        let memcgs = dirty.slots.map(|slot| slot.memcg);
        assert_eq!(memcgs, [1, 5, 3, 4]);
        dirty.track(1, 6, 1003, SECOND, EXPIRE);
        assert_eq!(dirty.slots.map(|slot| slot.memcg), memcgs, "not older than now: forgotten");
    }

    #[test]
    fn what_was_dirtied_long_ago_is_not_flushed() {
        let mut dirty = ForeignDirty::default();
        dirty.track(1, 7, 1000, SECOND, EXPIRE);
        assert_eq!(dirty.take_flush(1000 + EXPIRE, EXPIRE), None);
        assert_eq!(dirty.take_flush(999 + EXPIRE, EXPIRE).map(|slot| slot.memcg), Some(7));
        assert_eq!(dirty.take_flush(999 + EXPIRE, EXPIRE), None, "one flush at a time");
    }

    #[test]
    fn a_slot_is_flushed_neither_twice_at_once_nor_before_its_first_page() {
        let mut dirty = ForeignDirty::default();
        assert_eq!(dirty.take_flush(5, EXPIRE), None, "a clock that has just begun");
        dirty.track(1, 7, 1000, SECOND, EXPIRE);
        assert!(dirty.take_flush(1000, EXPIRE).is_some());
        dirty.track(1, 7, 1500, SECOND, EXPIRE);
        assert_eq!(dirty.slots[0].at, 1500);
        assert_eq!(dirty.take_flush(1500, EXPIRE), None, "the first flush is still under way");
        dirty.slots[0].in_flight = false;
        assert_eq!(dirty.take_flush(1500, EXPIRE).map(|slot| slot.memcg), Some(7));
    }

    #[test]
    fn a_foreign_memcg_without_dirty_pages_gets_no_work() {
        assert_eq!((foreign_flush_pages(0), foreign_flush_pages(1), foreign_flush_pages(1000)), (0, 1, 1250));
        foreign_flush_pages(u64::MAX);
    }

    proptest! {
        #[test]
        fn no_time_is_refused(at: u64, now: u64, second: u64, expire: u64) {
            let mut dirty = ForeignDirty::default();
            dirty.track(1, 1, at, second, expire);
            dirty.track(1, 1, now, second, expire);
            dirty.take_flush(now, expire);
        }
    }
}
