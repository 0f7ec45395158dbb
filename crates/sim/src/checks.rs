// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invariants between any two events. Checked after every sample, and in tests after every event. A violation is a
//! bug of the model; the error names the counters that do not add up.

use crate::arena::{CgId, InodeId};
use crate::inode::{Inode, ListName};
use crate::world::World;

impl World {
    /// Checks the counters against each other. Returns the first mismatch.
    pub(crate) fn check(&self) -> Result<(), String> {
        let same = |what: &str, left: u64, right: u64| {
            if left == right { Ok(()) } else { Err(format!("{what}: {left} against {right}")) }
        };
        let (mut reclaimable, mut writeback) = (0, 0);
        for (id, wb) in self.wbs.iter() {
            reclaimable += wb.reclaimable;
            writeback += wb.writeback;
            wb.conserved.leaves(wb.reclaimable + wb.writeback).map_err(|what| format!("wb {}: {what}", id.0))?;
            let has = wb.b_dirty.len + wb.b_io.len + wb.b_more_io.len > 0;
            if has != wb.has_dirty_io {
                return Err("has_dirty_io does not say whether a list has inodes".to_owned());
            }
            if wb.ratelimit.dirty_ratelimit == 0 || wb.bandwidth.avg_write_bandwidth == 0 {
                return Err("a rate is 0".to_owned());
            }
        }
        let listed = self.wbs.iter().map(|(_, wb)| wb.b_dirty.len + wb.b_io.len + wb.b_more_io.len).sum();
        same("inodes to be written and the lists'", self.dirty_inodes, listed)?;
        let memory = &self.memory;
        same("NR_DIRTY and the wbs' RECLAIMABLE", memory.nr_dirty, reclaimable)?;
        same("NR_WRITEBACK and the wbs' WRITEBACK", memory.nr_writeback, writeback)?;
        memory
            .conserved
            .leaves(memory.nr_dirty + memory.nr_writeback)
            .map_err(|what| format!("the machine: {what}"))?;
        let root = &self.cgroups[CgId::ROOT].charged;
        same("NR_DIRTY and the root's file_dirty", memory.nr_dirty, root.dirty)?;
        same("NR_WRITEBACK and the root's file_writeback", memory.nr_writeback, root.writeback)?;
        same("file pages and the root's file", memory.inactive + memory.active, root.file)?;
        same("active pages and the root's", memory.active, root.active)?;
        same("pages of tmpfs and the root's", memory.shmem, root.shmem)?;
        for (_, bdi) in self.bdis.iter() {
            let dirty = bdi.wbs.iter().map(|wb| &self.wbs[*wb]).filter(|wb| wb.has_dirty_io);
            let sum = dirty.map(|wb| wb.bandwidth.avg_write_bandwidth).sum();
            same("the bdi's bandwidth and its wbs'", bdi.tot_write_bandwidth, sum)?;
        }
        Ok(())
    }

    /// Checks the counters against every inode: expensive, for tests.
    pub(crate) fn check_inodes(&self) -> Result<(), String> {
        let (mut dirty, mut writeback) = (0, 0);
        let mut sums = vec![Sums::default(); self.wbs.len()];
        for (id, inode) in self.inodes.iter() {
            self.check_inode(id, inode).map_err(|what| format!("inode {}: {what}", id.0))?;
            dirty += inode.cache.dirty;
            writeback += inode.cache.writeback;
            if let Some(wb) = inode.wb {
                let sums = &mut sums[wb.0 as usize];
                sums.dirty += inode.cache.dirty;
                sums.writeback += inode.cache.writeback;
                if let Some(name) = inode.list {
                    sums.listed[name as usize] += 1;
                }
            }
        }
        let (inodes, counted) = ((dirty, writeback), (self.memory.nr_dirty, self.memory.nr_writeback));
        if inodes != counted {
            return Err(format!("dirty and under writeback: {inodes:?} pages of inodes, {counted:?} counted"));
        }
        for ((id, wb), sums) in self.wbs.iter().zip(sums) {
            let counted = Sums {
                dirty: wb.reclaimable,
                writeback: wb.writeback,
                listed: LISTS.map(|name| wb.list_named(name).len),
            };
            if sums != counted {
                return Err(format!("inodes of wb {}: {sums:?}, counted: {counted:?}", id.0));
            }
        }
        Ok(())
    }

    fn check_inode(&self, id: InodeId, inode: &Inode) -> Result<(), String> {
        inode.conserved.leaves(inode.cache.dirty + inode.cache.writeback)?;
        let has_reason = inode.is_dirty() || inode.is_dirty_time || inode.is_syncing;
        let is_to_be_written = inode.list.is_some_and(ListName::is_dirty);
        if is_to_be_written && !has_reason {
            return Err("it is clean and on a list of what is to be written".to_owned());
        }
        let is_gone = inode.is_unlinked && inode.opens == 0;
        let has_to_be = inode.cache.dirty > 0 || inode.is_dirty() && !is_gone;
        if has_to_be && !is_to_be_written && !inode.is_syncing {
            return Err("it is dirty and on no list".to_owned());
        }
        let Some((name, wb)) = inode.list.zip(inode.wb) else { return Ok(()) };
        let list = self.wbs[wb].list_named(name);
        let is_beside = |other: InodeId| (self.inodes[other].list, self.inodes[other].wb) == (Some(name), Some(wb));
        let follows = match inode.prev {
            None => list.head == Some(id),
            Some(prev) => self.inodes[prev].next == Some(id) && is_beside(prev),
        };
        if !follows || inode.next.is_none() != (list.tail == Some(id)) {
            return Err(format!("it is not where {name:?} has it"));
        }
        let is_older = |prev: InodeId| self.inodes[prev].dirtied_when <= inode.dirtied_when;
        if name == ListName::Dirty && self.behaviour.switching.sorts_by_age && !inode.prev.is_none_or(is_older) {
            return Err("b_dirty is not in the order of age".to_owned());
        }
        Ok(())
    }
}

/// The lists of a wb, in the order of their names.
const LISTS: [ListName; 5] = [ListName::Dirty, ListName::Io, ListName::MoreIo, ListName::DirtyTime, ListName::Attached];

/// Sums over the inodes of a wb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    dirty: u64,
    writeback: u64,
    /// By list.
    listed: [u64; LISTS.len()],
}
