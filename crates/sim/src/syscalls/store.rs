// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores through a shared mapping: the fault that brings in a page, or makes it writable again after it was
//! cleaned. Mirrors filemap_fault and do_page_mkwrite.

use super::read::{Readahead, fetch};
use super::{OUT_OF_MEMORY, update_time};
use crate::arena::{InodeId, PidId};
use crate::balance_dirty_pages::balance_dirty_pages;
use crate::engine::Sim;
use crate::memory::{NoMemory, make_room};
use crate::memory_high::handle_over_high;
use crate::process::use_cpu;
use crate::space::NO_SPACE;
use crate::world::{PAGE, World};
use crate::writable::Touched;

/// A store that faults more often than this will not succeed. With a budget below a folio, each fault wakes the
/// flusher, which cleans the folio before the store is retried.
const FAULTS_MAX: u32 = 10_000;

/// Net misses of an open file above which a fault reads one page alone (`MMAP_LOTSAMISS`), and the highest count.
const MISSES: u32 = 100;
const MISSES_MAX: u32 = 10 * MISSES;

/// Faults of a mapping of an open file (`mmap_miss` of its readahead).
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Faults that found their page missing, less those that found it cached.
    missed: u32,
    /// Pages that were mapped by a fault.
    mapped: Touched,
}

impl Faults {
    /// Counts a fault on a missing page. Returns whether it reads around the page: a file whose faults mostly miss
    /// gains nothing from it.
    fn misses(&mut self) -> bool {
        self.missed = (self.missed + 1).min(MISSES_MAX);
        self.missed <= MISSES
    }

    /// Counts a fault that found its page cached, unless only its write protection caused it.
    fn hits(&mut self, page: u64) {
        if self.missed > 0 && !self.mapped.has(page) {
            self.missed -= 1;
        }
    }
}

/// Stores into a page of a shared mapping of an open file.
pub(crate) async fn store(
    sim: &Sim,
    pid: PidId,
    inode: InodeId,
    ahead: &mut Readahead,
    page: u64,
    end: Option<u64>,
) -> Result<(), &'static str> {
    let (fault, has_writeback) = {
        let world = sim.w();
        (world.costs.fault, world.sbs[world.inodes[inode].sb].bdi.is_some())
    };
    let mut faults = 0;
    while !sim.w().inodes[inode].writable.has(page) {
        // A task killed at the workload's end retries nothing.
        if end.is_some_and(|end| faults > 0 && sim.now() >= end) {
            break;
        }
        faults += 1;
        if faults > FAULTS_MAX {
            return Err("one store faulted over and over: its folio is cleaned before every retry");
        }
        filemap_fault(sim, pid, inode, &mut ahead.faults, page).await.map_err(|_| OUT_OF_MEMORY)?;
        if !sim.w().take_for_store(inode, page) {
            return Err(NO_SPACE);
        }
        handle_over_high(sim, pid).await;
        use_cpu(sim, pid, fault, false).await;
        if has_writeback {
            update_time(sim, pid, inode).await;
        }
        let balance = {
            let mut world = sim.w();
            let Some((start, len)) = world.inodes[inode].cache.folio(page) else { continue };
            if has_writeback {
                world.dirty_range(inode, start..start + u64::from(len), Some(pid));
            }
            world.inodes[inode].writable.add(page);
            let wb = world.throttled_wb(pid, inode);
            wb.and_then(|wb| Some((wb, world.balance_dirty_pages_ratelimited(pid, wb)?)))
        };
        // The store itself comes after the throttle: the page may have been cleaned by then.
        if let Some((wb, pages)) = balance {
            balance_dirty_pages(sim, pid, wb, pages).await;
        }
    }
    Ok(())
}

/// Brings a page into the cache on a fault, if it is not there yet.
async fn filemap_fault(sim: &Sim, pid: PidId, inode: InodeId, faults: &mut Faults, page: u64) -> Result<(), NoMemory> {
    let (is_cached, is_on_disk, has_device, cgroup) = {
        let mut world = sim.w();
        let i = &world.inodes[inode];
        let is_cached = i.cache.find(page).is_some();
        let is_on_disk = !is_cached && i.is_on_device(page);
        let has_device = world.sbs[i.sb].device.is_some();
        world.count_fault(pid, is_on_disk);
        (is_cached, is_on_disk, has_device, world.pids[pid].cgroup)
    };
    if is_cached {
        faults.hits(page);
        faults.mapped.add(page);
        return Ok(());
    }
    faults.mapped.add(page);
    let reads_around = has_device && faults.misses();
    let (start, len, folio) = if reads_around { sim.w().fault_around(inode, page) } else { (page, 1, 1) };
    if is_on_disk {
        return fetch(sim, pid, inode, page, start..start + len, folio).await;
    }
    // Readahead fills pages without data with zeros, in the same folios.
    make_room(sim, pid, cgroup, len).await?;
    sim.w().arrive(cgroup, inode, start..start + len, folio);
    Ok(())
}

impl World {
    /// Pages that a fault reads around a missing page, half of the window on either side
    /// (`do_sync_mmap_readahead`): the first page, their number, and the pages per folio.
    fn fault_around(&self, inode: InodeId, page: u64) -> (u64, u64, u64) {
        let i = &self.inodes[inode];
        let sb = &self.sbs[i.sb];
        let window = sb.bdi.map_or(1, |bdi| self.bdis[bdi].read_ahead / PAGE).max(1);
        let start = page.saturating_sub(window / 2);
        let end = (start + window).min(i.size.div_ceil(PAGE)).max(page + 1);
        let hole = i.cache.hole(start, end - start).filter(|(at, len)| page >= *at && page < at + len);
        let (at, len) = hole.unwrap_or((page, 1));
        // If the window begins with a cached page, the rest of it is read in single pages.
        let folio = if at == start { sb.folios.by_fault } else { 1 };
        let alike = match i.is_on_device(page) {
            true => i.on_device_around(page, at..at + len),
            false => i.without_data_around(page, at..at + len),
        };
        (alike.start, alike.end - alike.start, folio)
    }

    /// Takes blocks for a folio that a store is about to make dirty. Returns whether there are enough.
    fn take_for_store(&mut self, inode: InodeId, page: u64) -> bool {
        let i = &self.inodes[inode];
        let is_dirty = i.cache.find(page).is_some_and(|(_, extent)| extent.dirty);
        let Some((start, len)) = i.cache.folio(page).filter(|_| !is_dirty) else { return true };
        self.take_holes(inode, &(start..start + u64::from(len)))
    }

    fn count_fault(&mut self, pid: PidId, is_major: bool) {
        self.memory.pgfault += 1;
        let mut at = Some(self.pids[pid].cgroup);
        while let Some(id) = at {
            let cgroup = &mut self.cgroups[id];
            cgroup.pgfault += 1;
            at = cgroup.parent;
        }
        let io = &mut self.pids[pid].io;
        if is_major {
            io.majflt += 1;
            self.memory.pgmajfault += 1;
        } else {
            io.minflt += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_faults_miss_is_read_page_by_page() {
        let mut faults = Faults::default();
        let around = (0..300).filter(|_| faults.misses()).count();
        assert_eq!(around, 100);
        // A page that is only write-protected says nothing; others count back.
        faults.mapped.add(7);
        (0..300).for_each(|_| faults.hits(7));
        assert!(!faults.misses());
        (1000..1300).for_each(|page| faults.hits(page));
        assert!(faults.misses());
    }
}
