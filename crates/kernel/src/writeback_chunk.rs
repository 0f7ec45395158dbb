// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many pages the flusher writes of one inode before the next has its turn: half a second of the
//! wb's bandwidth, within an eighth of the global limit. Mirrors writeback_chunk_size of
//! fs/fs-writeback.c.

/// No end: what sync and tagged work writes of each inode.
pub const CHUNK_UNLIMITED: u64 = i64::MAX as u64;

/// What the flusher works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkMode {
    /// Data integrity or tagged pages: the whole inode at once.
    SyncOrTagged,
    /// Background, periodic and other work.
    Ordinary,
}

/// Pages of one inode in one turn. `global_dirty_limit` is the smoothed limit of the machine, for a
/// cgroup's wb too; `nr_to_write` what is left of the work; `min_writeback_pages` 4 MiB unless the
/// filesystem says otherwise (6.19).
///
/// From 5.16 to 6.4 the flusher counts folios against it, not pages
/// ([`super::Algorithm::nr_to_write_in_pages`]).
pub fn writeback_chunk_size(
    mode: ChunkMode,
    avg_write_bandwidth: u64,
    global_dirty_limit: u64,
    nr_to_write: u64,
    min_writeback_pages: u64,
) -> u64 {
    match mode {
        ChunkMode::SyncOrTagged => CHUNK_UNLIMITED,
        ChunkMode::Ordinary => {
            let min = min_writeback_pages.max(1);
            let pages = (avg_write_bandwidth / 2).min(global_dirty_limit / 8).min(nr_to_write).saturating_add(min);
            pages - pages % min
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_whole_multiples_of_the_least() {
        let check = |bandwidth: u64, limit: u64, nr: u64, expect: u64| {
            assert_eq!(writeback_chunk_size(ChunkMode::Ordinary, bandwidth, limit, nr, 1024), expect);
        };
        check(25_600, 8 << 20, u64::MAX, 13_312);
        check(25_600, 25_600, u64::MAX, 4096);
        check(25_600, 8 << 20, 5, 1024);
        check(0, 0, 0, 1024);
        check(u64::MAX, u64::MAX, u64::MAX, (1 << 61) + 1023 - ((1 << 61) + 1023) % 1024);
        assert_eq!(writeback_chunk_size(ChunkMode::SyncOrTagged, 1, 1, 1, 1024), i64::MAX as u64);
        assert_eq!(writeback_chunk_size(ChunkMode::Ordinary, 1, 1, 7, 0), 1);
    }
}
