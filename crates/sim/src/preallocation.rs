// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks that XFS reserves beyond the end of a growing file. One pass of an appending write covers at most the rest of
//! the extent that the last reservation made, so a folio never crosses the end of an extent: the write that reaches it
//! leaves smaller folios. The reservation doubles with the file and ends 64 KiB before a power of two. Mirrors
//! xfs_iomap_prealloc_size. The model assumes that the extents of a file are adjacent on the disk.

use crate::arena::InodeId;
use crate::world::{PAGE, World};
use floodline_scenario::FsType;

/// Pages of the smallest reservation (`m_allocsize_blocks` without a mount option).
const SMALLEST: u64 = 16;
/// Pages of the largest extent (`XFS_MAX_BMBT_EXTLEN`).
const LONGEST: u64 = (1 << 21) - 1;
/// Pages that one reservation takes for the write itself.
const AT_ONCE: u64 = 1024;

/// Returns the page at which the extent ends that contains the first page of a write. The file has `size` bytes, its last
/// reservation ends at the page `reserved`, and the write ends at the byte `end`.
fn extent_end(reserved: u64, size: u64, first: u64, end: u64) -> u64 {
    if first < reserved {
        return reserved;
    }
    let end = end.min((first + AT_ONCE) * PAGE);
    let last = end.div_ceil(PAGE);
    if end <= size || size < SMALLEST * PAGE {
        return last;
    }
    let before = if first > reserved { 0 } else { reserved };
    let twice = if before > LONGEST / 2 { first } else { 2 * before };
    let more = (1 << twice.max(SMALLEST).ilog2()).min(LONGEST);
    // The reservation begins at the last multiple of 64 KiB before the end of the write.
    let aligned = (end - 1) / (SMALLEST * PAGE) * SMALLEST;
    last.max(aligned + more)
}

impl World {
    /// Returns the byte at which the present pass of a write ends: the end of the write or of an extent.
    pub(crate) fn pass_end(&mut self, inode: InodeId, at: u64, end: u64) -> u64 {
        let i = &mut self.inodes[inode];
        let sb = &self.sbs[i.sb];
        if sb.fs_type != FsType::Xfs || sb.folios.by_write <= 1 {
            return end;
        }
        // Blocks that an earlier program or the set-up allocated are one extent.
        let reserved = i.reserved.max(i.allocated);
        let until = extent_end(reserved, i.size, at / PAGE, end);
        if until > reserved {
            i.reserved = until;
        }
        end.min(until.saturating_mul(PAGE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_of_a_mebibyte_split_the_fourth_and_the_eighth() {
        const MIB: u64 = 256;
        let (mut reserved, mut size, mut passes) = (0, 0, Vec::new());
        while size < 9 * MIB * PAGE {
            let end = (size / (MIB * PAGE) + 1) * MIB * PAGE;
            reserved = extent_end(reserved, size, size / PAGE, end);
            let until = end.min(reserved * PAGE);
            passes.push((until - size) / PAGE);
            size = until;
        }
        assert_eq!(passes, [256, 256, 256, 240, 16, 256, 256, 256, 240, 16, 256]);
    }

    #[test]
    fn small_files_and_writes_within_a_file_reserve_nothing() {
        assert_eq!(extent_end(0, 0, 0, 40 * PAGE), 40);
        assert_eq!(extent_end(1, PAGE, 1, 2 * PAGE), 2);
        assert_eq!(extent_end(0, 100 * PAGE, 0, 40 * PAGE), 40);
        // After a hole the smallest reservation follows.
        assert_eq!(extent_end(20, 100 * PAGE, 200, 201 * PAGE), 192 + 16);
    }
}
