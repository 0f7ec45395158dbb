// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must be true at any moment between two events. Checked after every sample, and in tests after
//! every event; a violation is a bug of the model and says what does not add up.

use crate::arena::CgId;
use crate::inode::ListName;
use crate::world::World;

impl World {
    /// Checks the counters against each other; the first that does not add up.
    pub(crate) fn check(&self) -> Result<(), String> {
        let same = |what: &str, left: u64, right: u64| {
            if left == right { Ok(()) } else { Err(format!("{what}: {left} against {right}")) }
        };
        let (mut reclaimable, mut writeback) = (0, 0);
        for (_, wb) in self.wbs.iter() {
            reclaimable += wb.reclaimable;
            writeback += wb.writeback;
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
        let root = &self.cgroups[CgId::ROOT].charged;
        same("NR_DIRTY and the root's file_dirty", memory.nr_dirty, root.dirty)?;
        same("NR_WRITEBACK and the root's file_writeback", memory.nr_writeback, root.writeback)?;
        same("file pages and the root's file", memory.inactive + memory.active, root.file)?;
        same("active pages and the root's", memory.active, root.active)?;
        for (_, bdi) in self.bdis.iter() {
            let dirty = bdi.wbs.iter().map(|wb| &self.wbs[*wb]).filter(|wb| wb.has_dirty_io);
            let sum = dirty.map(|wb| wb.bandwidth.avg_write_bandwidth).sum();
            same("the bdi's bandwidth and its wbs'", bdi.tot_write_bandwidth, sum)?;
        }
        Ok(())
    }

    /// The same over every inode: dear, for tests.
    pub(crate) fn check_inodes(&self) -> Result<(), String> {
        let (mut dirty, mut writeback) = (0, 0);
        for (id, inode) in self.inodes.iter() {
            dirty += inode.cache.dirty;
            writeback += inode.cache.writeback;
            let has_reason = inode.is_dirty() || inode.is_dirty_time || inode.is_syncing;
            let is_listed = matches!(inode.list, Some(ListName::Dirty | ListName::Io | ListName::MoreIo));
            if is_listed && !has_reason {
                return Err(format!("inode {} is clean and on a list of what is to be written", id.0));
            }
            if inode.cache.dirty > 0 && !is_listed && !inode.is_syncing {
                return Err(format!("inode {} has dirty pages and is on no list", id.0));
            }
        }
        for (id, wb) in self.wbs.iter() {
            let list = std::iter::successors(wb.b_dirty.head, |inode| self.inodes[*inode].next);
            let is_sorted = list.map(|inode| self.inodes[inode].dirtied_when).is_sorted();
            if !is_sorted && !self.has_switch_rework() {
                return Err(format!("b_dirty of wb {} is not in the order of age", id.0));
            }
        }
        if (dirty, writeback) != (self.memory.nr_dirty, self.memory.nr_writeback) {
            return Err(format!(
                "pages of inodes: {dirty} dirty, {writeback} under writeback; counted: {}, {}",
                self.memory.nr_dirty, self.memory.nr_writeback
            ));
        }
        Ok(())
    }
}
