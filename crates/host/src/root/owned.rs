// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files below directories of users other than root. Such a user can put a link, a pipe, a mount or a huge file there,
//! and a home can be on a server that does not answer. So everything is checked before it is opened: the filesystem
//! first (in the list of mounts), then every component with `O_PATH`, which runs no code of a device or of a
//! filesystem.

use super::{Entry, FILE, Fault, HostDir, HostFile, HostRoot, LINKS_MAX, component, components};
use floodline_record::facts::Mount;
use floodline_record::gap::Cause;
use floodline_record::name::Name;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Filesystems on which a lookup waits only for a disk of this machine. Network filesystems, FUSE and automount points
/// are left out: a lookup there can wait for ever.
const LOCAL: [&str; 20] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "ntfs3", "overlay",
    "ramfs", "reiserfs", "rootfs", "squashfs", "tmpfs", "vfat", "xfs", "zfs",
];

/// Flags that look up a component without opening it.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Flags for a lookup that stays below the directory and on its mount, and follows no link.
const STRICT: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Filesystem type of each visible mount point: of mounts in the same place the last one counts.
pub struct MountPoints<'a> {
    types: BTreeMap<&'a [u8], &'a str>,
    /// Without any, nothing is looked up on a live machine; a captured tree is a copy that cannot hang.
    is_known: bool,
}

/// A directory found without touching a filesystem that can hang, and not yet opened.
#[derive(Debug)]
pub struct FoundDir {
    fd: OwnedFd,
    /// Its path, links resolved, without a slash at the end.
    path: Vec<u8>,
    live: bool,
    kernel_resolves: bool,
}

impl<'a> MountPoints<'a> {
    /// Makes the list from the mounts of a machine, in mountinfo's order.
    pub fn new(root: &HostRoot, mounts: &'a [Mount]) -> MountPoints<'a> {
        let types = mounts.iter().map(|mount| {
            let point = mount.mount_point.as_bytes();
            (point.strip_suffix(b"/").unwrap_or(point), mount.fs_type.as_str())
        });
        MountPoints { types: types.collect(), is_known: !root.live || !mounts.is_empty() }
    }

    /// Refuses a path that is a mount point of a filesystem that can hang.
    fn check(&self, path: &[u8]) -> Result<(), Cause> {
        match self.types.get(path) {
            Some(fs_type) if !LOCAL.contains(fs_type) => {
                let fs_type = Name::new(fs_type.as_bytes());
                Err(refused(format!("looking up files on {fs_type} can block, so Floodline does not try")))
            }
            _ if !self.is_known => {
                Err(refused("the list of mounts is missing, and a lookup on a network filesystem can block"))
            }
            _ => Ok(()),
        }
    }
}

impl HostRoot {
    /// Finds a directory. Follows only links that root alone can place. Fails with [`Cause::Refused`] if a filesystem
    /// on the path can hang: each component is looked up in the list of mounts before it is accessed.
    pub fn find_dir(&self, path: &[u8], points: &MountPoints<'_>) -> Result<FoundDir, Cause> {
        let fail = |errno: Errno| Fault::from(errno).cause(path);
        points.check(b"")?;
        // Directories from the root down, so that `..` cannot climb above it.
        let mut above: Vec<(OwnedFd, Vec<u8>)> = Vec::new();
        let mut rest = components(path);
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == b".." {
                above.pop();
                continue;
            }
            let (dir, dir_path) =
                above.last().map_or((self.dir.as_fd(), &b""[..]), |(dir, path)| (dir.as_fd(), path.as_slice()));
            let here = [dir_path, b"/", &name].concat();
            points.check(&here)?;
            let next = openat(dir, &name, LOOK).map_err(fail)?;
            let stat = stat(next.as_fd()).map_err(fail)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(fail(Errno::LOOP));
                    }
                    if self.live && stat.st_uid != 0 {
                        return Err(refused(format!("a symbolic link of user {} is on the way", stat.st_uid)));
                    }
                    let target = rustix::fs::readlinkat(&next, "", Vec::new()).map_err(fail)?.into_bytes();
                    if target.first() == Some(&b'/') {
                        above.clear();
                    }
                    rest.extend(components(&target));
                }
                FileType::Directory => above.push((next, here)),
                _ => return Err(Fault::NotDirectory.cause(path)),
            }
        }
        let (fd, path) = match above.pop() {
            Some(found) => found,
            None => (openat(self.dir.as_fd(), b".", OFlags::PATH).map_err(fail)?, Vec::new()),
        };
        Ok(FoundDir { fd, path, live: self.live, kernel_resolves: self.kernel_resolves })
    }
}

impl FoundDir {
    /// Returns its path, links resolved.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The same directory, with or without the kernel's help.
    #[cfg(test)]
    pub(crate) fn with_openat2(self, kernel_resolves: bool) -> FoundDir {
        FoundDir { kernel_resolves: self.kernel_resolves && kernel_resolves, ..self }
    }

    /// What is in it, in order of name.
    pub fn list(&self) -> Result<Vec<Entry>, Cause> {
        let mut entries = Vec::new();
        let mut list = || -> Result<(), Fault> {
            let fd = openat(self.fd.as_fd(), b".", OFlags::RDONLY | OFlags::DIRECTORY)?;
            HostDir { fd, live: self.live }
                .list(|entry| entries.push(Entry { name: entry.name.into(), kind: entry.kind, ino: entry.ino }))
        };
        list().map_err(|fault| fault.cause(&self.path))?;
        entries.sort();
        Ok(entries)
    }

    /// The user who owns it.
    pub fn owner(&self) -> Result<u32, Cause> {
        Ok(stat(self.fd.as_fd()).map_err(|errno| Fault::from(errno).cause(&self.path))?.st_uid)
    }

    /// The content of a file below it: a regular file of the user `owner` and of at most `limit` bytes, on
    /// the same mount, with no link on the way. Anything else is refused before it is opened.
    pub fn read_owned(&self, path: &[u8], owner: u32, limit: usize) -> Result<Vec<u8>, Cause> {
        let fail = |fault: Fault| fault.cause(path);
        let found = if self.kernel_resolves { self.resolve(path) } else { self.step(path) };
        let found = found.map_err(|errno| match errno {
            Errno::LOOP => refused("a symbolic link is on the way to a user's file"),
            Errno::XDEV => refused("a mount is on the way to a user's file"),
            errno => fail(errno.into()),
        })?;
        let stat = stat(found.as_fd()).map_err(|errno| fail(errno.into()))?;
        HostFile::check_mode(stat.st_mode).map_err(fail)?;
        if stat.st_uid != owner {
            return Err(refused(format!("user {} owns it, not user {owner}", stat.st_uid)));
        }
        if u64::try_from(stat.st_size).is_ok_and(|size| size > limit as u64) {
            return Err(fail(Fault::TooLarge(limit)));
        }
        let mut content = Vec::new();
        reopen(found.as_fd()).and_then(|file| file.read(&mut content, limit)).map_err(fail)?;
        Ok(content)
    }

    /// Looks a file up with all of the kernel's help (`openat2`, 5.6).
    fn resolve(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        for _ in 0..super::RENAME_TRIES {
            match rustix::fs::openat2(&self.fd, path, LOOK, Mode::empty(), STRICT) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                // The last component is looked up, not followed: a link there is found as itself.
                Ok(found) => return no_link(found),
                error => return error,
            }
        }
        Err(Errno::AGAIN)
    }

    /// Does the same one component at a time, where the kernel or a sandbox does not allow `openat2`.
    fn step(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let mount = mount_id(self.fd.as_fd())?;
        let mut at = openat(self.fd.as_fd(), b".", OFlags::PATH)?;
        let mut rest = components(path);
        while let Some(name) = rest.pop() {
            let next = openat(at.as_fd(), component(&name)?, LOOK)?;
            // Before anything is asked of the file: a filesystem of a user's own could let `fstat` hang.
            if mount_id(next.as_fd())? != mount {
                return Err(Errno::XDEV);
            }
            at = no_link(next)?;
        }
        Ok(at)
    }
}

/// Opens for reading a regular file that was looked up with `O_PATH`. A lease of another process does not
/// delay it.
pub(super) fn reopen(found: BorrowedFd<'_>) -> Result<HostFile, Fault> {
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    HostFile::new(rustix::fs::open(path, FILE | OFlags::CLOEXEC, Mode::empty())?)
}

fn no_link(found: OwnedFd) -> Result<OwnedFd, Errno> {
    match FileType::from_raw_mode(stat(found.as_fd())?.st_mode) {
        FileType::Symlink => Err(Errno::LOOP),
        _ => Ok(found),
    }
}

/// Which mount a descriptor is on, as the kernel prints it of any descriptor (`mnt_id`, 3.15).
fn mount_id(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()));
    let text = text.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    id.ok_or(Errno::NOSYS)
}

fn openat(dir: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty())
}

fn stat(fd: BorrowedFd<'_>) -> Result<Stat, Errno> {
    rustix::fs::fstat(fd)
}

fn refused(why: impl Into<String>) -> Cause {
    Cause::Refused { why: why.into().into() }
}
