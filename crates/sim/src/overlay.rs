// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of the lower directory of an overlay. A read through the overlay reads them in place. The first open for writing
//! copies such a file to the upper directory: it reads all of it, writes and syncs the copy, and renames it. On a
//! filesystem with reflink that holds both directories, the copy shares the blocks of the file instead. Mirrors
//! `ovl_copy_up_tmpfile` and `ovl_copy_up_file` of fs/overlayfs/copy_up.c. Not modelled: a write to shared blocks gets new
//! blocks, which fdatasync has to commit, and which take space. Directories that only the lower one has cannot be renamed
//! or removed here, and an open that truncates copies the data, too.

use crate::arena::{InodeId, PidId};
use crate::dcache::Dentry;
use crate::engine::Sim;
use crate::filesystem::Upper;
use crate::journal;
use crate::namespace::{Errno, Refusal, change_dir, mkdir, rename};
use crate::process::may_block;
use crate::sync::{self, lock, unlock};
use crate::syscalls::{Opened, Readahead, close, open, read, write};
use crate::world::World;
use crate::writepages::{How, wait_writeback, writepages};

/// Bytes that a copy moves at once (`OVL_COPY_UP_CHUNK_SIZE`).
const CHUNK: u64 = 1 << 20;

impl World {
    /// The directories of the overlay that a path is on, and the part of the path below its mount point.
    fn overlay_of<'a>(&self, path: &'a str) -> Option<(&Upper, &'a str)> {
        let sb = &self.sbs[self.mount_of(path)];
        Some((sb.upper.as_ref()?, path.strip_prefix(sb.point.as_str())?))
    }

    /// The file that the lower directory of an overlay has at a path, unless it was removed there.
    pub(crate) fn lower_file(&self, path: &str) -> Option<InodeId> {
        let (upper, rest) = self.overlay_of(path)?;
        if upper.whiteouts.contains(rest) {
            return None;
        }
        let below = format!("{}{rest}", upper.lower);
        let (sb, found) = self.resolve(&below);
        match self.sbs[sb].find(&found) {
            Ok(Dentry::File(inode)) => Some(inode),
            Ok(Dentry::Dir(_)) => None,
            Err(_) => self.lower_file(&below),
        }
    }

    /// The file of a path on an overlay that is not in the upper directory.
    pub(crate) fn only_in_lower(&self, path: &str) -> Option<InodeId> {
        self.overlay_of(path)?;
        let (sb, upper) = self.resolve(path);
        if self.sbs[sb].find(&upper).is_ok() { None } else { self.lower_file(path) }
    }

    /// Whether the copy of a lower file of an overlay can share its blocks: both are on one filesystem, and the lower directory
    /// is not on another overlay.
    fn can_share(&self, path: &str, lower: InodeId, copy: InodeId) -> bool {
        let sb = self.inodes[copy].sb;
        let is_stacked = self.overlay_of(path).is_none_or(|(upper, _)| self.overlay_of(&upper.lower).is_some());
        let is_one = self.inodes[lower].sb == sb && !is_stacked;
        is_one && self.behaviour.stack.overlay_clones && self.sbs[sb].has_reflink
    }

    /// Hides the file that the lower directory has at a path. Returns whether it has one.
    pub(crate) fn white_out(&mut self, path: &str) -> bool {
        let is_there = self.lower_file(path).is_some();
        let mount = self.mount_of(path);
        let sb = &mut self.sbs[mount];
        if let (true, Some(upper), Some(rest)) = (is_there, &mut sb.upper, path.strip_prefix(sb.point.as_str())) {
            upper.whiteouts.insert(rest.to_owned());
        }
        is_there
    }
}

/// Removes a file that only the lower directory has. Returns whether the path is one.
pub(crate) async fn unlink_in_lower(sim: &Sim, pid: PidId, path: &str) -> bool {
    let sb = {
        let mut world = sim.w();
        if world.only_in_lower(path).is_none() {
            // A removed upper file does not uncover a lower one.
            world.white_out(path);
            return false;
        }
        world.white_out(path);
        world.resolve(path).0
    };
    change_dir(sim, pid, sb).await;
    true
}

/// Copies a file to the upper directory, unless it is there or the lower one has none.
pub(crate) async fn copy_up(sim: &Sim, pid: PidId, path: &str) -> Result<(), Errno> {
    let mount = {
        let world = sim.w();
        if world.only_in_lower(path).is_none() {
            return Ok(());
        }
        world.mount_of(path)
    };
    // The kernel has a lock for each file.
    lock(sim, "a file that another copies up", |world| &mut world.sbs[mount].reading).await;
    let done = copy_file(sim, pid, path).await;
    unlock(sim, |world| &mut world.sbs[mount].reading);
    done
}

async fn copy_file(sim: &Sim, pid: PidId, path: &str) -> Result<(), Errno> {
    let (lower, from, to, is_volatile) = {
        let world = sim.w();
        let Some((lower, (upper, rest))) = world.only_in_lower(path).zip(world.overlay_of(path)) else { return Ok(()) };
        let from = format!("{}/#{}", upper.work, lower.0);
        (lower, from, format!("{}{rest}", upper.dir), upper.is_volatile)
    };
    let copy = open(sim, pid, &from, true).await?;
    let is_shared = sim.w().can_share(path, lower, copy.inode);
    let copied = if is_shared {
        share(sim, pid, lower, copy.inode).await;
        Ok(())
    } else {
        let copied = copy_data(sim, pid, lower, copy).await;
        if copied.is_ok() && !is_volatile {
            may_block(sim, pid, sync::fsync(sim, copy.inode, false)).await;
        }
        copied
    };
    close(sim, pid, copy).await;
    copied?;
    let parent = to.rsplit_once('/').map_or("", |(parent, _)| parent);
    let has_parent = {
        let world = sim.w();
        let (sb, parent) = world.resolve(parent);
        world.sbs[sb].find(&parent).is_ok()
    };
    let known = |refusal| if let Refusal::Errno(errno) = refusal { errno } else { Errno::Einval };
    if !has_parent {
        mkdir(sim, pid, parent).await.map_err(known)?;
    }
    rename(sim, pid, &from, &to).await.map_err(known)
}

/// Lets an empty file share the blocks of another file, whose dirty pages are written first (`vfs_clone_file_range`).
async fn share(sim: &Sim, pid: PidId, lower: InodeId, copy: InodeId) {
    may_block(sim, pid, async {
        writepages(sim, lower, How::all(true)).await;
        wait_writeback(sim, lower, 0, u64::MAX / 2).await;
    })
    .await;
    let (sb, blocks) = {
        let world = sim.w();
        let [bitmap, descriptor, block] = world.data_blocks(copy);
        (world.inodes[copy].sb, [bitmap, descriptor, block, world.inodes[lower].block])
    };
    journal::change(sim, pid, sb, &blocks, Some((copy, true))).await;
    let mut world = sim.w();
    let i = &world.inodes[lower];
    let (size, allocated, gaps) = (i.size, i.allocated, i.gaps.clone());
    let i = &mut world.inodes[copy];
    (i.size, i.allocated, i.gaps) = (size, allocated, gaps);
}

async fn copy_data(sim: &Sim, pid: PidId, lower: InodeId, copy: Opened) -> Result<(), Errno> {
    let size = sim.w().inodes[lower].size;
    let mut ahead = Readahead::default();
    for offset in (0..size).step_by(CHUNK as usize) {
        let len = CHUNK.min(size - offset);
        let got = read(sim, pid, lower, &mut ahead, offset, len).await;
        got.map_err(|_| Errno::Enomem)?;
        let wrote = write(sim, pid, copy.inode, Some(offset), len).await;
        wrote.map_err(|_| Errno::Enospc)?;
    }
    Ok(())
}
