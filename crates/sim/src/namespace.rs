// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names: directories, renames, mounts and unmounts, each with the errno that the kernel returns on refusal. They
//! write the blocks that their transactions change; a lookup costs nothing. Mirrors fs/namei.c and fs/namespace.c.

use crate::arena::{InodeId, PidId, SbId};
use crate::dcache::{Dentry, Names};
use crate::engine::Sim;
use crate::filesystem::{Superblock, Upper};
use crate::journal;
use crate::overlay::copy_up;
use crate::perag::before_creation;
use crate::process::use_cpu;
use crate::switch::wait_for_switches;
use crate::sync::{lock, sync_filesystem, unlock};
use crate::syscalls::{evict, flush};
use crate::world::World;
use floodline_scenario::FsType;
use std::fmt;

/// Reason for which a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The kernel returns this errno.
    Errno(Errno),
    /// The kernel would succeed; the simulator does not support it.
    NotSimulated(&'static str),
}

/// Errors of the kernel, by its own names and numbers (errno(3)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errno {
    Enoent = 2,
    Enomem = 12,
    Ebusy = 16,
    Eexist = 17,
    Exdev = 18,
    Enotdir = 20,
    Eisdir = 21,
    Einval = 22,
    Enospc = 28,
    Enotempty = 39,
}

impl fmt::Display for Errno {
    /// Formats the error text that programs print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(*self as i32).fmt(f)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Errno(errno) => errno.fmt(f),
            Refusal::NotSimulated(what) => write!(f, "{what} is not simulated"),
        }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Refusal {
        Refusal::Errno(errno)
    }
}

/// Wait reason of mounts and unmounts.
const UMOUNTING: &str = "a filesystem that is being unmounted";

/// Whether a path is somewhere below a directory.
fn is_below(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

impl Superblock {
    /// Part of a path below the mount point.
    pub(crate) fn below<'a>(&self, path: &'a str) -> &'a str {
        let below = path.strip_prefix(self.point.as_str()).unwrap_or(path);
        below.strip_prefix('/').unwrap_or(below)
    }

    /// Returns the file or directory of a path.
    pub(crate) fn find(&self, path: &str) -> Result<Dentry, Errno> {
        self.names.find(self.below(path))
    }

    /// Returns the file of a path, if there is one.
    fn file(&self, path: &str) -> Option<InodeId> {
        self.names.file(self.below(path))
    }

    /// Creates a directory and those above it. Returns the number of new ones.
    pub(crate) fn make_dirs(&mut self, path: &str) -> Result<u64, Errno> {
        let below = self.below(path);
        self.names.make_dirs(below).map(|(_, made)| made)
    }

    /// Whether a new file needs a new directory that changes other blocks than those of its name.
    pub(crate) fn makes_dir_of(&self, path: &str) -> bool {
        self.metadata.is_some() && matches!(self.names.check_parent(self.below(path)), Err(Errno::Enoent))
    }

    /// Removes a name. Returns the entry that it had.
    pub(crate) fn unname(&mut self, path: &str) -> Option<Dentry> {
        let below = self.below(path);
        self.names.remove(below)
    }

    /// Adds a name that is free.
    fn name(&mut self, path: &str, to: Dentry) -> Result<(), Errno> {
        let below = self.below(path);
        self.names.entry(below)?.or_insert(to);
        Ok(())
    }
}

/// Effects of a rename on the filesystem.
struct Renamed {
    sb: SbId,
    /// The renamed file, if it is a file.
    inode: Option<InodeId>,
    /// The file that had the new name.
    replaced: Option<InodeId>,
}

impl World {
    /// The mounted filesystem of a mount point.
    fn mounted_at(&self, point: &str) -> Option<SbId> {
        self.sbs.iter().find(|(_, sb)| sb.is_mounted && sb.point == point).map(|(id, _)| id)
    }

    /// Creates a directory and those above it. Returns the filesystem and the number of new directories.
    fn make_dirs(&mut self, path: &str) -> Result<(SbId, u64), Errno> {
        let (sb, path) = self.resolve(path);
        if self.sbs[sb].file(&path).is_some() {
            return Err(Errno::Eexist);
        }
        let made = self.sbs[sb].make_dirs(&path)?;
        self.sbs[sb].created += made;
        Ok((sb, made))
    }

    /// Returns the file to open, or none if the open creates it.
    pub(crate) fn may_open(&self, sb: SbId, path: &str, creates: bool) -> Result<Option<InodeId>, Errno> {
        match self.sbs[sb].find(path) {
            Ok(Dentry::File(inode)) => Ok(Some(inode)),
            Ok(Dentry::Dir(_)) => Err(Errno::Eisdir),
            Err(Errno::Enoent) if creates => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Returns the file of a name that is to be removed.
    pub(crate) fn linked(&self, path: &str) -> Result<InodeId, Errno> {
        let (sb, path) = self.resolve(path);
        match self.sbs[sb].find(&path)? {
            Dentry::File(inode) => Ok(inode),
            Dentry::Dir(_) => Err(Errno::Eisdir),
        }
    }

    fn remove_dir(&mut self, path: &str) -> Result<SbId, Errno> {
        if self.mounted_at(path).is_some() {
            return Err(Errno::Ebusy);
        }
        let (id, path) = self.resolve(path);
        let sb = &mut self.sbs[id];
        match sb.find(&path)? {
            Dentry::File(_) => Err(Errno::Enotdir),
            Dentry::Dir(dir) if !sb.names.is_empty(dir) => Err(Errno::Enotempty),
            Dentry::Dir(_) => sb.unname(&path).map(|_| id).ok_or(Errno::Ebusy),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<Renamed, Errno> {
        let is_same_mount = self.mount_of(from) == self.mount_of(to);
        let ((sb, from), (other, to)) = (self.resolve(from), self.resolve(to));
        let (from, to) = (from.into_owned(), to.into_owned());
        let [parent, other_parent] = [(sb, &from), (other, &to)].map(|(id, path)| {
            let sb = &self.sbs[id];
            sb.names.check_parent(sb.below(path))
        });
        parent.and(other_parent)?;
        // A mount point does not belong to its own filesystem's names.
        if !is_same_mount || to == self.sbs[other].point {
            return Err(Errno::Exdev);
        }
        let sb_of_both = &mut self.sbs[sb];
        let moved = sb_of_both.find(&from)?;
        if is_below(&to, &from) {
            return Err(Errno::Einval);
        }
        if is_below(&from, &to) {
            return Err(Errno::Enotempty);
        }
        let target = sb_of_both.find(&to).ok();
        let (inode, replaced) = match (moved, target) {
            _ if from == to => return Ok(Renamed { sb, inode: self.sbs[sb].file(&from), replaced: None }),
            (Dentry::File(_), Some(Dentry::Dir(_))) => return Err(Errno::Eisdir),
            (Dentry::Dir(_), Some(Dentry::File(_))) => return Err(Errno::Enotdir),
            (Dentry::Dir(_), Some(Dentry::Dir(dir))) if !sb_of_both.names.is_empty(dir) => {
                return Err(Errno::Enotempty);
            }
            (Dentry::File(inode), Some(Dentry::File(replaced))) => (Some(inode), Some(replaced)),
            (Dentry::File(inode), None) => (Some(inode), None),
            (Dentry::Dir(_), _) => (None, None),
        };
        sb_of_both.unname(&from).ok_or(Errno::Ebusy)?;
        sb_of_both.unname(&to);
        sb_of_both.name(&to, moved)?;
        if let Some(replaced) = replaced {
            self.inodes[replaced].is_unlinked = true;
        }
        Ok(Renamed { sb, inode, replaced })
    }

    /// Returns the file that a rename moves over another one, if the filesystem flushes it first.
    fn flushed_by_rename(&self, from: &str, to: &str) -> Option<InodeId> {
        let is_same_mount = self.mount_of(from) == self.mount_of(to);
        let ((id, from), (_, to)) = (self.resolve(from), self.resolve(to));
        let sb = &self.sbs[id];
        let (inode, replaced) = (sb.file(&from)?, sb.file(&to)?);
        let flushes = sb.fs_type == FsType::Ext4 && sb.flushes_on_close && is_same_mount && inode != replaced;
        (flushes && self.inodes[inode].cache.dirty > 0).then_some(inode)
    }

    fn filesystem_for(&self, point: &str) -> Result<SbId, Refusal> {
        let found = self.sbs.iter().find(|(_, sb)| sb.point == point).map(|(id, _)| id);
        found.ok_or(Refusal::NotSimulated("a filesystem that the machine does not have"))
    }

    /// Takes a filesystem out of the tree: no path leads to it any more, and its dirty data is still to be written.
    /// With `is_lazy` the mounts below it go, too. Returns the filesystems without open files; the others live
    /// until their last file is closed.
    fn detach(&mut self, point: &str, is_lazy: bool) -> Result<Vec<SbId>, Refusal> {
        let id = self.mounted_at(point).ok_or(Errno::Einval)?;
        let is_inside = |sb: &Superblock| sb.is_mounted && (point == "/" || is_below(&sb.point, point));
        let mut leaving: Vec<SbId> =
            self.sbs.iter().filter(|(other, sb)| *other != id && is_inside(sb)).map(|(other, _)| other).collect();
        if !is_lazy && (self.sbs[id].opened > 0 || !leaving.is_empty()) {
            return Err(Errno::Ebusy.into());
        }
        leaving.push(id);
        let is_under = |upper: &Option<Upper>| upper.as_ref().is_some_and(|upper| leaving.contains(&upper.sb));
        if self.sbs.iter().any(|(_, sb)| sb.is_mounted && is_under(&sb.upper)) {
            return Err(Refusal::NotSimulated("unmounting the filesystem below a mounted overlay"));
        }
        for sb in &leaving {
            let sb = &mut self.sbs[*sb];
            sb.is_mounted = false;
            sb.is_detached = sb.opened > 0;
        }
        leaving.retain(|sb| !self.sbs[*sb].is_detached);
        Ok(leaving)
    }

    /// Drops the inodes of a filesystem that is gone (`evict_inodes`). The files of an overlay belong to another one.
    fn evict_inodes(&mut self, sb: SbId) {
        let of_sb = self.inodes.ids().filter(|inode| self.inodes[*inode].sb == sb).collect::<Vec<_>>();
        for inode in of_sb {
            let gone = self.inodes[inode].cache.remove(0, u64::MAX / 2);
            self.forget(inode, &gone, None);
            self.leave_wb(inode);
            let i = &mut self.inodes[inode];
            (i.is_dirty_pages, i.is_dirty_meta, i.is_dirty_time) = (false, false, false);
        }
        let sb = &mut self.sbs[sb];
        sb.under_writeback.clear();
        if sb.device.is_none() {
            sb.names = Names::default();
        }
    }
}

/// Creates a directory, and those above it that are missing.
pub(crate) async fn mkdir(sim: &Sim, pid: PidId, path: &str) -> Result<(), Refusal> {
    let (sb, made) = sim.w().make_dirs(path)?;
    let read = sim.w().take_directories(sb);
    before_creation(sim, pid, sb, &read).await;
    for _ in 0..made {
        let create = sim.w().costs.create;
        use_cpu(sim, pid, create, false).await;
        change_dir(sim, pid, sb).await;
    }
    Ok(())
}

/// Removes an empty directory.
pub(crate) async fn rmdir(sim: &Sim, pid: PidId, path: &str) -> Result<(), Refusal> {
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    let sb = sim.w().remove_dir(path)?;
    change_dir(sim, pid, sb).await;
    Ok(())
}

/// Changes the blocks that a new or removed directory changes.
pub(crate) async fn change_dir(sim: &Sim, pid: PidId, sb: SbId) {
    let blocks: Vec<u64> = {
        let world = sim.w();
        world.dir_bitmap(sb).into_iter().chain(world.dir_blocks(sb)).collect()
    };
    journal::change(sim, pid, sb, &blocks, None).await;
}

/// Renames a file or a directory. A file that had the new name is removed.
pub(crate) async fn rename(sim: &Sim, pid: PidId, from: &str, to: &str) -> Result<(), Refusal> {
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    let is_lower = sim.w().lower_file(from).is_some();
    if is_lower {
        Box::pin(copy_up(sim, pid, from)).await?;
    }
    let flushed = sim.w().flushed_by_rename(from, to);
    if let Some(inode) = flushed {
        // auto_da_alloc, before the transaction: a file replaced without a sync has the new data after a crash.
        flush(sim, inode).await;
    }
    let Renamed { sb, inode, replaced } = sim.w().rename(from, to)?;
    if is_lower {
        sim.w().white_out(from);
    }
    let blocks = {
        let world = sim.w();
        inode.map_or_else(|| world.dir_blocks(sb), |inode| world.create_blocks(inode))
    };
    journal::change(sim, pid, sb, &blocks, None).await;
    let Some(replaced) = replaced else { return Ok(()) };
    if sim.w().inodes[replaced].opens == 0 {
        evict(sim, pid, replaced).await;
    }
    Ok(())
}

/// Mounts a filesystem of the machine.
pub(crate) async fn mount(sim: &Sim, pid: PidId, point: &str) -> Result<(), Refusal> {
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    let sb = { sim.w().filesystem_for(point)? };
    if sim.w().sbs[sb].is_detached {
        return Err(Refusal::NotSimulated("mounting a filesystem whose files are still open after a lazy unmount"));
    }
    lock(sim, UMOUNTING, |world| &mut world.sbs[sb].s_umount).await;
    let (was_mounted, is_overlay) = {
        let mut world = sim.w();
        let was_mounted = std::mem::replace(&mut world.sbs[sb].is_mounted, true);
        if !was_mounted {
            world.try_upper(sb);
            world.sbs[sb].journal.iter_mut().for_each(journal::Journal::mounted);
            world.sbs[sb].perags.mounted();
        }
        (was_mounted, world.sbs[sb].upper.is_some())
    };
    unlock(sim, |world| &mut world.sbs[sb].s_umount);
    match (was_mounted, is_overlay) {
        (false, _) => Ok(()),
        (true, false) => Err(Errno::Ebusy.into()),
        (true, true) => Err(Refusal::NotSimulated("mounting an overlay over itself")),
    }
}

/// Unmounts a filesystem after writing its dirty data, or for an overlay, that of its upper filesystem. With
/// `is_lazy` (MNT_DETACH) a filesystem with open files leaves the tree at once, and the last close of them shuts it
/// down.
pub(crate) async fn umount(sim: &Sim, point: &str, is_lazy: bool) -> Result<(), Refusal> {
    let gone = sim.w().detach(point, is_lazy)?;
    for sb in gone {
        shut_down(sim, sb).await;
    }
    Ok(())
}

/// Writes the dirty data of a filesystem that has left the tree, and drops its inodes (`generic_shutdown_super`).
pub(crate) async fn shut_down(sim: &Sim, sb: SbId) {
    lock(sim, UMOUNTING, |world| &mut world.sbs[sb].s_umount).await;
    sync_filesystem(sim, sb).await;
    let is_overlay = sim.w().sbs[sb].upper.is_some();
    if !is_overlay {
        wait_for_switches(sim, sb).await;
        sim.w().evict_inodes(sb);
    }
    unlock(sim, |world| &mut world.sbs[sb].s_umount);
}
