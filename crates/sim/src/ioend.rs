// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a filesystem writes as one: pages stay under writeback until the last request of it is complete. Mirrors
//! struct iomap_ioend of fs/iomap/buffered-io.c and ext4_io_end of fs/ext4/page-io.c.

use crate::arena::{InodeId, SbId};
use crate::block::BIO_PAGES;
use crate::world::World;
use floodline_core::scenario::FsType;

/// Folios of one ioend of iomap, since commit ebb7fb1557b1 ("xfs, iomap: limit individual ioend chain lengths in
/// writeback"), 5.18.
const IOMAP_FOLIOS: u64 = 4096;

/// One that is under way.
#[derive(Debug)]
struct Ioend {
    inode: InodeId,
    /// Runs of pages.
    pages: Vec<(u64, u64)>,
    /// Requests that are not complete.
    left: u32,
    /// Whether more requests will come.
    is_open: bool,
}

/// All that are under way.
#[derive(Debug, Default)]
pub(crate) struct Ioends {
    cells: Vec<Ioend>,
    free: Vec<u32>,
}

impl World {
    /// Begins one.
    pub(crate) fn ioend_open(&mut self, inode: InodeId) -> u32 {
        let Ioends { cells, free } = &mut self.ioends;
        match free.pop() {
            Some(cell) => {
                let ioend = &mut cells[cell as usize];
                (ioend.inode, ioend.is_open) = (inode, true);
                cell
            }
            None => {
                cells.push(Ioend { inode, pages: Vec::new(), left: 0, is_open: true });
                u32::try_from(cells.len() - 1).unwrap_or(u32::MAX)
            }
        }
    }

    /// Requests for some of its pages are on their way.
    pub(crate) fn ioend_add(&mut self, cell: u32, start: u64, len: u64, requests: u32) {
        let ioend = &mut self.ioends.cells[cell as usize];
        ioend.left += requests;
        match ioend.pages.last_mut() {
            Some((at, pages)) if *at + *pages == start => *pages += len,
            _ => ioend.pages.push((start, len)),
        }
    }

    /// Nothing more belongs to it.
    pub(crate) fn ioend_close(&mut self, cell: u32) {
        self.ioends.cells[cell as usize].is_open = false;
        self.ioend_end(cell);
    }

    /// A request of it is complete.
    pub(crate) fn ioend_done(&mut self, cell: u32) {
        self.ioends.cells[cell as usize].left -= 1;
        self.ioend_end(cell);
    }

    fn ioend_end(&mut self, cell: u32) {
        let ioend = &mut self.ioends.cells[cell as usize];
        if ioend.is_open || ioend.left > 0 {
            return;
        }
        let inode = ioend.inode;
        let mut pages = std::mem::take(&mut ioend.pages);
        for (start, len) in pages.drain(..) {
            self.end_writeback(inode, start, len);
        }
        self.ioends.cells[cell as usize].pages = pages;
        self.ioends.free.push(cell);
    }

    /// Most pages that one may have, in folios of the given size.
    pub(crate) fn ioend_pages(&self, sb: SbId, is_new: bool, folio: u64) -> u64 {
        match self.sbs[sb].fs_type {
            FsType::Xfs if self.kernel.at_least(5, 18) => IOMAP_FOLIOS * folio.max(1),
            FsType::Xfs => u64::MAX,
            // Unwritten extents are converted as a whole; commit 244adf6426ee ("ext4: make dioread_nolock the
            // default"), 5.6.
            FsType::Ext4 if is_new && self.kernel.at_least(5, 6) => u64::MAX,
            _ => BIO_PAGES * folio.max(1),
        }
    }

    /// Pages of the largest request: 1280 KiB, and 4 MiB since commit 345c5091ffec ("block: increase
    /// BLK_DEF_MAX_SECTORS_CAP"), 6.16.
    pub(crate) fn request_pages(&self) -> u64 {
        if self.kernel.at_least(6, 16) { 1024 } else { 320 }
    }
}
