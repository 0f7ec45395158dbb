// SPDX-License-Identifier: MIT OR Apache-2.0
//! The write cache of a device: it accepts writes at the speed of the device's limits and drains more slowly. A
//! full one accepts writes only as fast as it drains. Examples are the fast cells of an SSD and the memory of a
//! controller. A flush drains a volatile one and waits for that.

use crate::hypervisor::time_of;

/// Write cache of a device, with the bytes in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteCache {
    /// Bytes.
    size: u64,
    /// Bytes per second that leave it.
    drain: u64,
    is_volatile: bool,
    /// Bytes in it, at `since`.
    held: u64,
    since: u64,
}

impl WriteCache {
    pub(crate) fn new(size: u64, drain: u64, is_volatile: bool) -> WriteCache {
        WriteCache { size, drain: drain.max(1), is_volatile, held: 0, since: 0 }
    }

    /// Advances its state to a moment, ns.
    fn advance(&mut self, now: u64) {
        let passed = u128::from(now.saturating_sub(self.since));
        let left = passed * u128::from(self.drain) / 1_000_000_000;
        self.held = self.held.saturating_sub(u64::try_from(left).unwrap_or(u64::MAX));
        self.since = self.since.max(now);
    }

    /// Takes a write that arrives at `at`. Returns the time at which all of it fits.
    pub(crate) fn take(&mut self, at: u64, bytes: u64) -> u64 {
        let at = at.max(self.since);
        self.advance(at);
        self.held = self.held.saturating_add(bytes);
        let excess = self.held.saturating_sub(self.size);
        let has_place = at.saturating_add(time_of(excess, self.drain));
        self.advance(has_place);
        has_place
    }

    /// Returns the time at which a flush that begins now is done.
    pub(crate) fn flush(&mut self, now: u64) -> u64 {
        if !self.is_volatile {
            return now;
        }
        let now = now.max(self.since);
        self.advance(now);
        now.saturating_add(time_of(self.held, self.drain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_full_cache_takes_what_leaves_it() {
        let mut cache = WriteCache::new(100, 10, false);
        assert_eq!(cache.take(0, 100), 0);
        assert_eq!((cache.take(0, 20), cache.take(0, 10)), (2 * SECOND, 3 * SECOND));
        // Ten seconds later there is room for a hundred.
        assert_eq!((cache.take(13 * SECOND, 100), cache.take(13 * SECOND, 10)), (13 * SECOND, 14 * SECOND));
        assert_eq!(cache.flush(14 * SECOND), 14 * SECOND);
    }

    #[test]
    fn a_flush_of_a_volatile_cache_waits_until_it_is_empty() {
        let mut cache = WriteCache::new(100, 10, true);
        cache.take(0, 50);
        assert_eq!(
            (cache.flush(0), cache.flush(SECOND), cache.flush(9 * SECOND)),
            (5 * SECOND, 5 * SECOND, 9 * SECOND)
        );
    }
}
