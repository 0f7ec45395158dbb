// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names: directories, renames, mounts and unmounts, each with the answer that the kernel gives where it refuses. What
//! they write is what their transactions change; a lookup costs nothing. Mirrors fs/namei.c and fs/namespace.c.

use crate::arena::{InodeId, PidId, SbId};
use crate::engine::Sim;
use crate::filesystem::{Superblock, Upper};
use crate::journal;
use crate::process::use_cpu;
use crate::sync::{lock, sync_filesystem, unlock};
use crate::syscalls::{evict, flush};
use crate::world::World;
use floodline_core::scenario::FsType;
use std::fmt;
use std::ops::Bound;

/// Why a call does not do what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The kernel's answer.
    Errno(Errno),
    /// The kernel would do it.
    NotSimulated(&'static str),
}

/// What the kernel answers, by its own names and numbers (errno(3)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errno {
    Enoent = 2,
    Ebusy = 16,
    Eexist = 17,
    Exdev = 18,
    Enotdir = 20,
    Eisdir = 21,
    Einval = 22,
    Enotempty = 39,
}

impl fmt::Display for Errno {
    /// In the words that programs print.
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

/// What who mounts and who unmounts wait for.
const UMOUNTING: &str = "a filesystem that is being unmounted";

/// The path of the directory that a path is in.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

/// Whether a path is somewhere below a directory.
fn is_below(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

impl Superblock {
    /// Notes a directory and those above it; how many are new.
    pub(crate) fn add_dirs(&mut self, path: &str) -> u64 {
        let (mut above, mut made) = (path, 0);
        while !above.is_empty() && above != self.point && !self.dirs.contains(above) {
            self.dirs.insert(above.to_owned());
            (above, made) = (parent(above), made + 1);
        }
        made
    }

    /// Names a file, in directories that are made where they are missing.
    pub(crate) fn name_file(&mut self, path: String, inode: InodeId) {
        self.add_dirs(parent(&path));
        self.files.insert(path, inode);
    }
}

/// What a rename does to the filesystem.
struct Renamed {
    sb: SbId,
    /// The file, where it is one.
    inode: Option<InodeId>,
    /// What had the new name.
    replaced: Option<InodeId>,
}

impl World {
    fn is_dir(&self, sb: SbId, path: &str) -> bool {
        let sb = &self.sbs[sb];
        path.is_empty() || path == sb.point || sb.dirs.contains(path)
    }

    /// Whether a name may be in the directory that it names.
    fn check_parent(&self, sb: SbId, path: &str) -> Result<(), Errno> {
        let mut above = parent(path);
        if self.is_dir(sb, above) {
            return Ok(());
        }
        while !self.is_dir(sb, above) {
            if self.sbs[sb].files.contains_key(above) {
                return Err(Errno::Enotdir);
            }
            above = parent(above);
        }
        Err(Errno::Enoent)
    }

    /// Whether a directory holds anything.
    fn is_above_any(&self, sb: SbId, path: &str) -> bool {
        let sb = &self.sbs[sb];
        let below = format!("{path}/");
        let from = (Bound::Included(below.as_str()), Bound::Unbounded);
        let file = sb.files.range::<str, _>(from).next().is_some_and(|(name, _)| name.starts_with(&below));
        file || sb.dirs.range::<str, _>(from).next().is_some_and(|name| name.starts_with(&below))
    }

    /// The mounted filesystem of a mount point.
    fn mounted_at(&self, point: &str) -> Option<SbId> {
        self.sbs.iter().find(|(_, sb)| sb.is_mounted && sb.point == point).map(|(id, _)| id)
    }

    /// Makes a directory and those above it; the filesystem, and how many are new.
    fn make_dirs(&mut self, path: &str) -> Result<(SbId, u64), Errno> {
        let (sb, path) = self.resolve(path);
        if self.sbs[sb].files.contains_key(path.as_ref()) {
            return Err(Errno::Eexist);
        }
        if self.check_parent(sb, &path) == Err(Errno::Enotdir) {
            return Err(Errno::Enotdir);
        }
        let made = self.sbs[sb].add_dirs(&path);
        self.sbs[sb].created += made;
        Ok((sb, made))
    }

    /// Whether an open makes a file, whose name is not there.
    pub(crate) fn may_create(&self, sb: SbId, path: &str, creates: bool) -> Result<(), Errno> {
        if self.is_dir(sb, path) {
            return Err(Errno::Eisdir);
        }
        match self.check_parent(sb, path) {
            Err(Errno::Enotdir) => Err(Errno::Enotdir),
            _ if creates => Ok(()),
            _ => Err(Errno::Enoent),
        }
    }

    /// The file of a name that is to be removed.
    pub(crate) fn linked(&self, path: &str) -> Result<InodeId, Errno> {
        let (sb, path) = self.resolve(path);
        match self.sbs[sb].files.get(path.as_ref()) {
            Some(inode) => Ok(*inode),
            None if self.is_dir(sb, &path) => Err(Errno::Eisdir),
            None => Err(self.check_parent(sb, &path).err().unwrap_or(Errno::Enoent)),
        }
    }

    fn remove_dir(&mut self, path: &str) -> Result<SbId, Errno> {
        if self.mounted_at(path).is_some() {
            return Err(Errno::Ebusy);
        }
        let (sb, path) = self.resolve(path);
        if self.sbs[sb].files.contains_key(path.as_ref()) {
            return Err(Errno::Enotdir);
        }
        if self.is_above_any(sb, &path) {
            return Err(Errno::Enotempty);
        }
        let is_removed = self.sbs[sb].dirs.remove(path.as_ref());
        is_removed.then_some(sb).ok_or(Errno::Enoent)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<Renamed, Errno> {
        let is_same_mount = self.mount_of(from) == self.mount_of(to);
        let ((sb, from), (other, to)) = (self.resolve(from), self.resolve(to));
        let (from, to) = (from.into_owned(), to.into_owned());
        self.check_parent(sb, &from)?;
        self.check_parent(other, &to)?;
        // A mount point is no name of its own filesystem.
        if !is_same_mount || to == self.sbs[other].point {
            return Err(Errno::Exdev);
        }
        let inode = self.sbs[sb].files.get(&from).copied();
        if inode.is_none() && !self.is_dir(sb, &from) {
            return Err(Errno::Enoent);
        }
        if is_below(&to, &from) {
            return Err(Errno::Einval);
        }
        if is_below(&from, &to) {
            return Err(Errno::Enotempty);
        }
        if from == to {
            return Ok(Renamed { sb, inode, replaced: None });
        }
        let Some(inode) = inode else {
            self.rename_dir(sb, &from, &to)?;
            return Ok(Renamed { sb, inode: None, replaced: None });
        };
        if self.is_dir(sb, &to) {
            return Err(Errno::Eisdir);
        }
        let files = &mut self.sbs[sb].files;
        files.remove(&from);
        let replaced = files.insert(to, inode);
        if let Some(replaced) = replaced {
            self.inodes[replaced].is_unlinked = true;
        }
        Ok(Renamed { sb, inode: Some(inode), replaced })
    }

    /// The file of a name that replaces another's, where the filesystem sends it out first.
    fn flushed_by_rename(&self, from: &str, to: &str) -> Option<InodeId> {
        let is_same_mount = self.mount_of(from) == self.mount_of(to);
        let ((id, from), (_, to)) = (self.resolve(from), self.resolve(to));
        let sb = &self.sbs[id];
        let inode = *sb.files.get(from.as_ref())?;
        let replaced = *sb.files.get(to.as_ref())?;
        let flushes = sb.fs_type == FsType::Ext4 && sb.flushes_on_close && is_same_mount && inode != replaced;
        (flushes && self.inodes[inode].cache.dirty > 0).then_some(inode)
    }

    /// Gives everything below a directory another name.
    fn rename_dir(&mut self, sb: SbId, from: &str, to: &str) -> Result<(), Errno> {
        if self.sbs[sb].files.contains_key(to) {
            return Err(Errno::Enotdir);
        }
        if self.is_above_any(sb, to) {
            return Err(Errno::Enotempty);
        }
        let moved = |path: &str| {
            let rest = path.strip_prefix(from)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{to}{rest}"))
        };
        let sb = &mut self.sbs[sb];
        let (files, dirs) = (std::mem::take(&mut sb.files), std::mem::take(&mut sb.dirs));
        sb.files = files.into_iter().map(|(path, inode)| (moved(&path).unwrap_or(path), inode)).collect();
        sb.dirs = dirs.into_iter().map(|path| moved(&path).unwrap_or(path)).collect();
        sb.dirs.insert(to.to_owned());
        Ok(())
    }

    fn filesystem_for(&self, point: &str) -> Result<SbId, Refusal> {
        let found = self.sbs.iter().find(|(_, sb)| sb.point == point).map(|(id, _)| id);
        found.ok_or(Refusal::NotSimulated("a filesystem that the machine does not have"))
    }

    /// Takes a filesystem out of the tree: nobody finds it any more, and it is still to be written.
    fn detach(&mut self, point: &str) -> Result<SbId, Refusal> {
        let id = self.mounted_at(point).ok_or(Errno::Einval)?;
        let holds_mount = self
            .sbs
            .iter()
            .any(|(other, sb)| other != id && sb.is_mounted && (point == "/" || is_below(&sb.point, point)));
        if self.sbs[id].opened > 0 || holds_mount {
            return Err(Errno::Ebusy.into());
        }
        let is_under = |upper: &Option<Upper>| upper.as_ref().is_some_and(|upper| upper.sb == id);
        if self.sbs.iter().any(|(_, sb)| sb.is_mounted && is_under(&sb.upper)) {
            return Err(Refusal::NotSimulated("unmounting the filesystem below a mounted overlay"));
        }
        self.sbs[id].is_mounted = false;
        Ok(id)
    }

    /// Nothing of a filesystem stays in memory when it is gone (`evict_inodes`); an overlay's files are another's.
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
            sb.files.clear();
            sb.dirs.clear();
        }
    }
}

/// Makes a directory, and those above it that are missing.
pub(crate) async fn mkdir(sim: &Sim, pid: PidId, path: &str) -> Result<(), Refusal> {
    let (sb, made) = sim.w().make_dirs(path)?;
    for _ in 0..made {
        let create = sim.w().costs.create;
        use_cpu(sim, pid, create, false).await;
        let blocks = { sim.w().dir_blocks(sb) };
        journal::change(sim, pid, sb, &blocks, None).await;
    }
    Ok(())
}

/// Removes an empty directory.
pub(crate) async fn rmdir(sim: &Sim, pid: PidId, path: &str) -> Result<(), Refusal> {
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    let sb = sim.w().remove_dir(path)?;
    let blocks = { sim.w().dir_blocks(sb) };
    journal::change(sim, pid, sb, &blocks, None).await;
    Ok(())
}

/// Gives a file or a directory another name; a file that had it is gone.
pub(crate) async fn rename(sim: &Sim, pid: PidId, from: &str, to: &str) -> Result<(), Refusal> {
    let call = sim.w().costs.call;
    use_cpu(sim, pid, call, false).await;
    let flushed = sim.w().flushed_by_rename(from, to);
    if let Some(inode) = flushed {
        // auto_da_alloc: who replaces a file without a sync finds the new data after a crash. Before the transaction.
        flush(sim, inode).await;
    }
    let Renamed { sb, inode, replaced } = sim.w().rename(from, to)?;
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
    lock(sim, UMOUNTING, |world| &mut world.sbs[sb].s_umount).await;
    let (was_mounted, is_overlay) = {
        let mut world = sim.w();
        let was_mounted = std::mem::replace(&mut world.sbs[sb].is_mounted, true);
        if !was_mounted {
            world.try_upper(sb);
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

/// Unmounts a filesystem: what is dirty of it is written first, of an overlay what its upper filesystem has.
pub(crate) async fn umount(sim: &Sim, point: &str) -> Result<(), Refusal> {
    let sb = sim.w().detach(point)?;
    lock(sim, UMOUNTING, |world| &mut world.sbs[sb].s_umount).await;
    sync_filesystem(sim, sb).await;
    {
        let mut world = sim.w();
        if world.sbs[sb].upper.is_none() {
            world.evict_inodes(sb);
        }
    }
    unlock(sim, |world| &mut world.sbs[sb].s_umount);
    Ok(())
}
