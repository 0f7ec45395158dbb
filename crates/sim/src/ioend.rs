// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ioends: pages that a filesystem writes together. They stay under writeback until the last request is complete.
//! If their blocks are new, they stay until a worker of the filesystem has also converted them in a transaction.
//! Mirrors struct iomap_ioend of fs/iomap/buffered-io.c with xfs_end_io, and ext4_io_end of fs/ext4/page-io.c.

use crate::arena::{CgId, InodeId, SbId};
use crate::block::BIO_PAGES;
use crate::engine::{Sim, Ticket, suspend};
use crate::journal;
use crate::world::{PAGE, World};
use floodline_kernel::IoendSize;
use floodline_scenario::FsType;
use std::collections::VecDeque;

/// Folios of one ioend of iomap, since commit ebb7fb1557b1 ("xfs, iomap: limit individual ioend chain lengths in
/// writeback"), 5.18.
const IOEND_BATCH_SIZE: u64 = 4096;

/// An ioend in flight.
#[derive(Debug)]
struct Ioend {
    inode: InodeId,
    /// Runs of pages.
    pages: Vec<(u64, u64)>,
    /// Requests that are not complete.
    left: u32,
    /// Whether more requests will come.
    is_open: bool,
    /// Whether its blocks count as unwritten until a worker has converted them.
    converts: bool,
}

/// Ioends of a superblock that are on the device and wait for conversion by its worker.
#[derive(Debug, Default)]
pub(crate) struct Conversions {
    queue: VecDeque<u32>,
    worker: Option<Ticket>,
}

/// All ioends in flight.
#[derive(Debug, Default)]
pub(crate) struct Ioends {
    cells: Vec<Ioend>,
    free: Vec<u32>,
}

impl World {
    /// Opens an ioend.
    pub(crate) fn ioend_open(&mut self, inode: InodeId, converts: bool) -> u32 {
        let Ioends { cells, free } = &mut self.ioends;
        match free.pop() {
            Some(cell) => {
                let ioend = &mut cells[cell as usize];
                (ioend.inode, ioend.is_open, ioend.converts) = (inode, true, converts);
                cell
            }
            None => {
                cells.push(Ioend { inode, pages: Vec::new(), left: 0, is_open: true, converts });
                u32::try_from(cells.len() - 1).unwrap_or(u32::MAX)
            }
        }
    }

    /// Adds pages, with the requests that write them.
    pub(crate) fn ioend_add(&mut self, cell: u32, start: u64, len: u64, requests: u32) {
        let ioend = &mut self.ioends.cells[cell as usize];
        ioend.left += requests;
        match ioend.pages.last_mut() {
            Some((at, pages)) if *at + *pages == start => *pages += len,
            _ => ioend.pages.push((start, len)),
        }
    }

    /// Closes an ioend: no more pages will be added.
    pub(crate) fn ioend_close(&mut self, cell: u32) {
        self.ioends.cells[cell as usize].is_open = false;
        self.ioend_end(cell);
    }

    /// Counts a completed request of an ioend.
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
        if !ioend.converts {
            self.ioend_finish(cell);
            return;
        }
        let sb = self.inodes[inode].sb;
        let conversions = &mut self.sbs[sb].conversions;
        conversions.queue.push_back(cell);
        if let Some(worker) = conversions.worker.take() {
            self.wake(worker);
        }
    }

    /// Ends writeback of an ioend's pages.
    fn ioend_finish(&mut self, cell: u32) {
        let ioend = &mut self.ioends.cells[cell as usize];
        let inode = ioend.inode;
        for at in 0..ioend.pages.len() {
            let (start, len) = self.ioends.cells[cell as usize].pages[at];
            self.end_writeback(inode, start, len);
        }
        self.ioends.cells[cell as usize].pages.clear();
        self.ioends.free.push(cell);
    }

    /// Most pages of an ioend, in folios of the given size.
    pub(crate) fn ioend_pages(&self, sb: SbId, is_new: bool, folio: u64) -> u64 {
        match self.sbs[sb].fs_type {
            FsType::Xfs => match self.behaviour.ioend.iomap {
                // One vector for each folio: adjacent folios that share a vector are not modelled.
                IoendSize::OneBio => BIO_PAGES * folio.max(1),
                IoendSize::Batch => IOEND_BATCH_SIZE * folio.max(1),
                IoendSize::Unlimited => u64::MAX,
            },
            // Unwritten extents are converted as a whole.
            FsType::Ext4 if is_new && self.sbs[sb].has_unwritten => u64::MAX,
            _ => BIO_PAGES * folio.max(1),
        }
    }

    /// Pages of the largest request.
    pub(crate) fn request_pages(&self) -> u64 {
        (self.behaviour.ioend.request_max_kib << 10) / PAGE
    }
}

/// The worker of a superblock that converts ioends on the device, one after the other (xfs-conv,
/// ext4-rsv-conversion). Its credits were reserved with the blocks, so it may join a transaction that is being
/// closed.
pub(crate) async fn worker(sim: Sim, sb: SbId) {
    loop {
        let cell = {
            let ticket = sim.ticket("");
            let conversions = &mut sim.w().sbs[sb].conversions;
            let cell = conversions.queue.pop_front();
            if cell.is_none() {
                conversions.worker = Some(ticket);
            }
            cell
        };
        let Some(cell) = cell else {
            suspend().await;
            continue;
        };
        let (inode, block, cost) = {
            let mut world = sim.w();
            let inode = world.ioends.cells[cell as usize].inode;
            let cost = world.costs.convert;
            world.memory.cpu_system += cost;
            (inode, world.inodes[inode].block, cost)
        };
        crate::cpu::run(&sim, cost).await;
        journal::start_reserved(&sim, sb);
        journal::modify(&sim, sb, &[block], CgId::ROOT).await;
        {
            let mut world = sim.w();
            world.journal_joins(inode, true);
            let end = world.ioends.cells[cell as usize].pages.last().map_or(0, |(start, len)| (start + len) * PAGE);
            let i = &mut world.inodes[inode];
            i.disk_size = i.disk_size.max(end.min(i.size));
        }
        journal::stop(&sim, sb);
        sim.w().ioend_finish(cell);
    }
}
