// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores through a shared mapping: the fault that brings a page in, or makes it writable again after it was cleaned.
//! Mirrors filemap_fault and do_page_mkwrite.

use super::read::fetch;
use super::{OUT_OF_MEMORY, update_time};
use crate::arena::{InodeId, PidId};
use crate::balance_dirty_pages::balance_dirty_pages;
use crate::engine::Sim;
use crate::memory::make_room;
use crate::process::use_cpu;
use crate::world::{PAGE, World};

/// A store that faults more often than this will not succeed: with a budget below a folio, each fault brings the
/// flusher that cleans the folio before the store is retried.
const FAULTS_MAX: u32 = 10_000;

/// Stores into a page of a shared mapping.
pub(crate) async fn store(
    sim: &Sim,
    pid: PidId,
    inode: InodeId,
    page: u64,
    end: Option<u64>,
) -> Result<(), &'static str> {
    let (sb, cgroup, fault, has_writeback) = {
        let world = sim.w();
        let sb = world.inodes[inode].sb;
        (sb, world.pids[pid].cgroup, world.costs.fault, world.sbs[sb].bdi.is_some())
    };
    let mut faults = 0;
    while !sim.w().inodes[inode].writable.has(page) {
        // Who is killed at the workload's end retries nothing.
        if end.is_some_and(|end| faults > 0 && sim.now() >= end) {
            break;
        }
        faults += 1;
        if faults > FAULTS_MAX {
            return Err("one store faulted over and over: its folio is cleaned before every retry");
        }
        let is_cached = sim.w().inodes[inode].cache.find(page).is_some();
        if !is_cached {
            let (start, len, is_on_disk, folio) = {
                let world = sim.w();
                // Around the page, half of the window on either side (`do_sync_mmap_readahead`).
                let window = world.sbs[sb].bdi.map_or(1, |bdi| world.bdis[bdi].read_ahead / PAGE).max(1);
                let start = page.saturating_sub(window / 2);
                let i = &world.inodes[inode];
                let end = (start + window).min(i.size.div_ceil(PAGE)).max(page + 1);
                let hole = i.cache.hole(start, end - start).filter(|(at, len)| page >= *at && page < at + len);
                let (at, len) = hole.unwrap_or((page, 1));
                // From the first page on that is there already, the rest of a window comes in single ones.
                let folio = if at == start { world.sbs[sb].folios.by_fault } else { 1 };
                (at, len, page < i.allocated, folio)
            };
            sim.w().count_fault(pid, is_on_disk);
            if is_on_disk {
                fetch(sim, pid, inode, start, len, folio).await.map_err(|_| OUT_OF_MEMORY)?;
            } else {
                make_room(sim, cgroup, 1).await.map_err(|_| OUT_OF_MEMORY)?;
                let mut world = sim.w();
                let owner = world.page_owner(cgroup);
                if world.inodes[inode].cache.find(page).is_none() {
                    world.add_to_cache(inode, page, 1, 1, owner);
                }
            }
        } else {
            sim.w().count_fault(pid, false);
        }
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

impl World {
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
