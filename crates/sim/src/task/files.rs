// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations on open files: open, read, write, store, make durable, create, unlink, close.

use super::{Failed, Hand, Open, Outcome};
use crate::block::Way as Direction;
use crate::process::may_block;
use crate::sync;
use crate::syscalls::{self, Opened, Readahead};
use crate::world::PAGE;
use crate::writepages::{How, writepages};
use floodline_scenario::program::{Access, Answer, Slot, Target, Way};
use floodline_scenario::{CreateFiles, SyncCall};

impl Hand<'_> {
    pub(super) fn at(&mut self, slot: Slot) -> Result<&mut Open, Failed> {
        let open = self.files.get_mut(slot.0).and_then(Option::as_mut);
        open.ok_or_else(|| "not open".into())
    }

    pub(super) async fn open(&mut self, slot: Slot, path: &str, way: Way, is_measured: bool) -> Result<(), Failed> {
        let at = self.now();
        let file = syscalls::open(&self.sim, self.pid, path, way.access != Access::Read).await;
        let file = file.map_err(|errno| format!("open {path}: {errno}"))?;
        if is_measured {
            self.measures.took("open", at, self.sim.now(), 0);
        }
        if self.files.len() <= slot.0 {
            self.files.resize_with(slot.0 + 1, || None);
        }
        let ahead = Readahead::default();
        let (is_direct, is_dsync) = (way.is_direct, way.is_dsync && file.is_synced(&self.sim.w()));
        self.files[slot.0] = Some(Open { file, ahead, is_direct, is_dsync, path: path.to_owned() });
        Ok(())
    }

    pub(super) async fn write(&mut self, slot: Slot, offset: Option<u64>, length: u64) -> Result<(), Failed> {
        let open = self.at(slot)?;
        let (inode, is_direct, is_dsync) = (open.file.inode, open.is_direct, open.is_dsync);
        let at = self.now();
        let wrote = if is_direct {
            let offset = offset.unwrap_or_else(|| self.sim.w().inodes[inode].size);
            let wrote = syscalls::direct(&self.sim, self.pid, inode, offset, length, Direction::Write).await;
            wrote.map(|()| offset)
        } else {
            // The end of the file is known only when no other task writes.
            syscalls::write(&self.sim, self.pid, inode, offset, length).await
        };
        let offset = match wrote {
            Ok(offset) => offset,
            Err(why) => return Err(format!("write {}: {why}", self.at(slot)?.path).into()),
        };
        if is_dsync {
            may_block(&self.sim, self.pid, sync::write_sync(&self.sim, inode, offset, length)).await;
        }
        self.measures.took("write", at, self.sim.now(), length);
        Ok(())
    }

    pub(super) async fn allocate(&mut self, slot: Slot, size: u64) -> Result<(), Failed> {
        let open = self.at(slot)?;
        let (inode, path) = (open.file.inode, open.path.clone());
        let at = self.now();
        let done = syscalls::fallocate(&self.sim, self.pid, inode, size).await;
        done.map_err(|why| format!("fallocate {path}: {why}"))?;
        self.measures.took("fallocate", at, self.sim.now(), 0);
        Ok(())
    }

    pub(super) async fn read(&mut self, slot: Slot, offset: u64, length: u64, keep: bool) -> Outcome {
        let open = self.at(slot)?;
        let (inode, is_direct) = (open.file.inode, open.is_direct);
        let mut ahead = std::mem::take(&mut open.ahead);
        let at = self.now();
        if keep {
            let held = { self.sim.w().pids[self.pid].anon };
            self.hold(held + length.div_ceil(PAGE)).await?;
        }
        let got = if is_direct {
            let length = length.min(self.sim.w().inodes[inode].size.saturating_sub(offset));
            syscalls::direct(&self.sim, self.pid, inode, offset, length, Direction::Read).await?;
            length
        } else {
            let got = syscalls::read(&self.sim, self.pid, inode, &mut ahead, offset, length).await;
            got.map_err(|_| syscalls::OUT_OF_MEMORY)?
        };
        self.measures.took("read", at, self.sim.now(), got);
        self.at(slot)?.ahead = ahead;
        Ok(Some(Answer::Bytes(got)))
    }

    /// Stores into a page that needs no fault. Returns false, and does nothing, if it needs one.
    pub(super) fn stores_without_fault(&mut self, slot: Slot, page: u64, length: u64) -> bool {
        let Some(open) = self.files.get(slot.0).and_then(Option::as_ref) else { return false };
        let now = {
            let world = self.sim.w();
            if !world.inodes[open.file.inode].writable.has(page) {
                return false;
            }
            world.now
        };
        self.measures.took("mmap_store", now, now, length);
        true
    }

    pub(super) async fn store(&mut self, slot: Slot, page: u64, length: u64) -> Result<(), Failed> {
        let open = self.at(slot)?;
        let inode = open.file.inode;
        let mut ahead = std::mem::take(&mut open.ahead);
        let at = self.now();
        let stored = syscalls::store(&self.sim, self.pid, inode, &mut ahead, page, self.end).await;
        self.at(slot)?.ahead = ahead;
        stored?;
        self.measures.took("mmap_store", at, self.sim.now(), length);
        Ok(())
    }

    pub(super) async fn set_length(&mut self, slot: Slot, length: u64) -> Result<(), Failed> {
        let inode = self.at(slot)?.file.inode;
        let at = self.now();
        syscalls::truncate(&self.sim, self.pid, inode, length).await;
        self.measures.took("truncate", at, self.sim.now(), 0);
        Ok(())
    }

    pub(super) async fn make_durable(&mut self, call: SyncCall, target: &Target<'_>) -> Result<(), Failed> {
        let (file, for_this) = match target {
            Target::Open(slot) => (self.at(*slot)?.file, None),
            Target::Path(path) => {
                let file = syscalls::open(&self.sim, self.pid, path, false).await;
                let file = file.map_err(|errno| format!("open {path}: {errno}"))?;
                (file, Some(file))
            }
        };
        let (inode, at) = (file.inode, self.now());
        if call == SyncCall::SyncFileRange {
            // SYNC_FILE_RANGE_WRITE: a WB_SYNC_NONE pass, which waits only for a place in the queue. It finds no page in
            // the own cache of a file of an overlay. On 7.2 a call took 15 us there while 150 MB were dirty.
            if file.has_pages(&self.sim.w()) {
                may_block(&self.sim, self.pid, writepages(&self.sim, inode, How::all(false))).await;
            }
        } else if call == SyncCall::Msync || file.is_synced(&self.sim.w()) {
            let datasync = call == SyncCall::Fdatasync;
            may_block(&self.sim, self.pid, sync::fsync(&self.sim, inode, datasync)).await;
        }
        let name = match call {
            SyncCall::SyncFileRange => "sync_file_range",
            SyncCall::Fsync => "fsync",
            SyncCall::Fdatasync => "fdatasync",
            SyncCall::Msync => "msync",
        };
        self.measures.took(name, at, self.sim.now(), 0);
        if let Some(file) = for_this {
            syscalls::close(&self.sim, self.pid, file).await;
        }
        Ok(())
    }

    pub(super) async fn close(&mut self, slots: &[Slot]) {
        let at = self.now();
        for slot in slots {
            self.release(*slot).await;
        }
        self.measures.took("close", at, self.sim.now(), 0);
    }

    pub(super) async fn release(&mut self, slot: Slot) {
        if let Some(mut open) = self.files.get_mut(slot.0).and_then(Option::take) {
            open.ahead.leave(&mut self.sim.w(), open.file.inode);
            syscalls::close(&self.sim, self.pid, open.file).await;
        }
    }

    /// Closes all files, as an exit does.
    pub(crate) async fn close_all(&mut self) {
        let mut files: Vec<Open> = std::mem::take(&mut self.files).into_iter().flatten().collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        for mut open in files {
            open.ahead.leave(&mut self.sim.w(), open.file.inode);
            syscalls::close(&self.sim, self.pid, open.file).await;
        }
    }

    pub(super) async fn create_file(&mut self, path: &str, step: &CreateFiles) -> Result<(), Failed> {
        let at = self.now();
        let opened = syscalls::open(&self.sim, self.pid, path, true).await;
        let opened = opened.map_err(|errno| format!("open {path}: {errno}"))?;
        let filled = self.fill_new(step, opened, at).await;
        let closing = self.now();
        syscalls::close(&self.sim, self.pid, opened).await;
        filled?;
        self.measures.took("close", closing, self.sim.now(), 0);
        self.measures.took("create_files", at, self.sim.now(), step.size.bytes());
        Ok(())
    }

    /// Writes the content of a file that was just created.
    async fn fill_new(&mut self, step: &CreateFiles, opened: Opened, at: u64) -> Result<(), Failed> {
        let inode = opened.inode;
        if self.sim.w().inodes[inode].size > 0 {
            syscalls::truncate(&self.sim, self.pid, inode, 0).await;
        }
        self.measures.took("create", at, self.sim.now(), 0);
        if step.size.bytes() > 0 {
            let at = self.now();
            let wrote = syscalls::write(&self.sim, self.pid, inode, Some(0), step.size.bytes()).await;
            wrote.map_err(|why| format!("write {}: {why}", step.file))?;
            self.measures.took("write", at, self.sim.now(), step.size.bytes());
        }
        if step.fsync {
            let at = self.now();
            if opened.is_synced(&self.sim.w()) {
                may_block(&self.sim, self.pid, sync::fsync(&self.sim, inode, false)).await;
            }
            self.measures.took("fsync", at, self.sim.now(), 0);
        }
        Ok(())
    }

    pub(super) async fn unlink(&mut self, path: &str) -> Result<(), Failed> {
        let at = self.now();
        let done = syscalls::unlink(&self.sim, self.pid, path).await;
        done.map_err(|errno| format!("unlink {path}: {errno}"))?;
        self.measures.took("unlink", at, self.sim.now(), 0);
        Ok(())
    }
}
