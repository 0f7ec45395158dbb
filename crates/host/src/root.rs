// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as a parameter: the one place where this crate names files. Everything is opened
//! relative to a held directory, `/` for the live machine or the top of a captured tree. Reads are
//! bounded, only regular files are read, and a link in a captured tree cannot lead out of it.
//! Independent of the content of the files.

mod fault;
mod owned;

pub use fault::Fault;
pub use owned::{FoundDir, MountPoints};

use floodline_record::gap::Cause;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Read limit for a file of one cgroup or process, bytes.
pub const SMALL: usize = 64 << 10;
/// Read limit for a list the kernel prints of the whole machine, bytes.
pub const LARGE: usize = 8 << 20;

/// Entries read of one directory before giving up; more than there can be processes (`PID_MAX_LIMIT`).
const LIST_MAX: usize = 4 << 20;
/// Links followed in one path, as the kernel has it (`MAXSYMLINKS`).
const LINKS_MAX: usize = 40;
/// Attempts at a path that is renamed while it is resolved.
const RENAME_TRIES: usize = 16;

/// The machine: the live one, or a captured tree.
#[derive(Debug)]
pub struct HostRoot {
    dir: OwnedFd,
    live: bool,
    /// Whether `openat2` keeps paths inside the tree for us (5.6, and not forbidden by a sandbox).
    kernel_resolves: bool,
}

/// The tree could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot open {path} as the root of a host: {cause}")]
pub struct RootError {
    /// The path, escaped.
    pub path: String,
    /// The cause.
    pub cause: Cause,
}

/// Filesystem that a path is on, by its magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsKind {
    /// cgroup version 2: inode numbers of directories are the `cgroup_ino` of trace events and wb_stats.
    Cgroup2,
    /// cgroup version 1.
    Cgroup1,
    /// proc.
    Proc,
    /// sysfs.
    Sysfs,
    /// debugfs.
    Debugfs,
    /// Anything else, by its magic number.
    Other(u64),
}

/// Type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A directory.
    Dir,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// Anything else: pipe, socket, device.
    Other,
    /// The filesystem does not report it.
    Unknown,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name: any bytes but `/` and NUL.
    pub name: Box<[u8]>,
    /// Its type.
    pub kind: EntryKind,
    /// Its inode number as the directory has it.
    pub ino: u64,
}

impl HostRoot {
    /// Opens the machine that this program runs on.
    pub fn live() -> Result<HostRoot, RootError> {
        HostRoot::open(Path::new("/"), true)
    }

    /// Opens a captured tree. `/` is treated as one, too.
    pub fn at(path: &Path) -> Result<HostRoot, RootError> {
        HostRoot::open(path, false)
    }

    /// Opens a captured tree and treats it as the live machine.
    #[cfg(test)]
    pub(crate) fn as_if_live(path: &Path) -> HostRoot {
        HostRoot { live: true, ..HostRoot::at(path).expect("a folder") }
    }

    fn open(path: &Path, live: bool) -> Result<HostRoot, RootError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| {
            let bytes = path.as_os_str().as_bytes();
            let cause = match errno {
                Errno::NOTDIR => Fault::NotDirectory.cause(bytes),
                errno => Fault::from(errno).cause(bytes),
            };
            RootError { path: floodline_record::name::Name::new(bytes).to_string(), cause }
        })?;
        let probe = rustix::fs::openat2(&dir, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), IN_ROOT);
        Ok(HostRoot { dir, live, kernel_resolves: probe.is_ok() })
    }

    /// Whether this is the machine the program runs on.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The content of a file of at most `limit` bytes. `path` starts with `/`.
    pub fn read(&self, path: impl AsRef<[u8]>, limit: usize) -> Result<Vec<u8>, Cause> {
        let path = path.as_ref();
        let mut content = Vec::new();
        self.open_file(path)?.read(&mut content, limit).map_err(|fault| fault.cause(path))?;
        Ok(content)
    }

    /// Where a link points, as it says itself.
    pub fn read_link(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, Cause> {
        let path = path.as_ref();
        let read = || -> Result<Vec<u8>, Errno> {
            let link = self.resolve(path, OFlags::PATH | OFlags::NOFOLLOW)?;
            Ok(rustix::fs::readlinkat(link, "", Vec::new())?.into_bytes())
        };
        match read() {
            Err(Errno::NOENT | Errno::INVAL) if self.exists(path) == Ok(true) => {
                Err(Cause::Malformed { what: "a symbolic link".into() })
            }
            read => read.map_err(|errno| Fault::from(errno).cause(path)),
        }
    }

    /// Whether there is anything at a path, links followed.
    pub fn exists(&self, path: impl AsRef<[u8]>) -> Result<bool, Cause> {
        let path = path.as_ref();
        match self.resolve(path, OFlags::PATH) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(Fault::from(errno).cause(path)),
        }
    }

    /// What is in a directory, in order of name.
    pub fn list_dir(&self, path: impl AsRef<[u8]>) -> Result<Vec<Entry>, Cause> {
        let path = path.as_ref();
        let mut entries = Vec::new();
        let mut list = || -> Result<(), Fault> {
            self.dir(path)?.list(|entry| {
                entries.push(Entry { name: entry.name.into(), kind: entry.kind, ino: entry.ino });
            })
        };
        list().map_err(|fault| fault.cause(path))?;
        entries.sort();
        Ok(entries)
    }

    /// Status of what is at a path, links followed: device and inode number, type and owner.
    pub fn stat(&self, path: impl AsRef<[u8]>) -> Result<Stat, Cause> {
        let path = path.as_ref();
        let stat = self.resolve(path, OFlags::PATH).and_then(rustix::fs::fstat);
        stat.map_err(|errno| Fault::from(errno).cause(path))
    }

    /// Which filesystem a path is really on; in a captured tree hardly ever the one it was taken from.
    pub fn fs_kind(&self, path: impl AsRef<[u8]>) -> Result<FsKind, Cause> {
        let path = path.as_ref();
        let statfs = self.resolve(path, OFlags::PATH).and_then(rustix::fs::fstatfs);
        // The magic number is signed or not depending on the architecture; all of them fit 32 bits.
        let magic = statfs.map_err(|errno| Fault::from(errno).cause(path))?.f_type as u32;
        Ok(FsKind::from_magic(magic))
    }

    /// A file to be read again and again.
    pub fn open_file(&self, path: impl AsRef<[u8]>) -> Result<HostFile, Cause> {
        let path = path.as_ref();
        self.file(path).map_err(|fault| fault.cause(path))
    }

    /// A directory to be listed and read from again and again.
    pub fn open_dir(&self, path: impl AsRef<[u8]>) -> Result<HostDir, Cause> {
        let path = path.as_ref();
        self.dir(path).map_err(|fault| fault.cause(path))
    }

    pub(crate) fn file(&self, path: &[u8]) -> Result<HostFile, Fault> {
        // The kernel fills these two; nothing in them but regular files is ever asked for.
        if self.live && [&b"/proc/"[..], b"/sys/"].iter().any(|kernel| path.starts_with(kernel)) {
            return HostFile::new(self.resolve(path, FILE)?);
        }
        // Opening a device can have an effect of its own, so look first, and open what was looked at.
        let found = self.resolve(path, OFlags::PATH)?;
        HostFile::check(found.as_fd())?;
        owned::reopen(found.as_fd())
    }

    pub(crate) fn dir(&self, path: &[u8]) -> Result<HostDir, Fault> {
        match self.resolve(path, DIR) {
            Ok(fd) => Ok(HostDir { fd, live: self.live }),
            Err(Errno::NOTDIR) => Err(Fault::NotDirectory),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a path, however long the chain of links in it, without leaving the tree.
    fn resolve(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        let inside = strip_slashes(path);
        let inside = if inside.is_empty() { b"." } else { inside };
        if self.live {
            return rustix::fs::openat(&self.dir, inside, flags, Mode::empty());
        }
        if !self.kernel_resolves {
            return self.walk(inside, flags);
        }
        for _ in 0..RENAME_TRIES {
            match rustix::fs::openat2(&self.dir, inside, flags, Mode::empty(), IN_ROOT) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    /// What `openat2` with `RESOLVE_IN_ROOT` does, one component at a time, for kernels before 5.6.
    fn walk(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let step = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |dir: BorrowedFd<'_>, name: &[u8], flags| rustix::fs::openat(dir, name, flags, Mode::empty());
        // Directories from the root down, so that `..` cannot climb above it.
        let mut above: Vec<OwnedFd> = Vec::new();
        let mut rest: Vec<Vec<u8>> = components(path);
        let mut links = 0;
        while let Some(name) = rest.pop() {
            let here = above.last().map_or(self.dir.as_fd(), |dir| dir.as_fd());
            if name == b".." {
                above.pop();
                continue;
            }
            let next = open(here, &name, step)?;
            let last = rest.is_empty();
            match FileType::from_raw_mode(rustix::fs::fstat(&next)?.st_mode) {
                FileType::Symlink if !(last && flags.contains(OFlags::NOFOLLOW)) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Errno::LOOP);
                    }
                    let target = rustix::fs::readlinkat(&next, "", Vec::new())?.into_bytes();
                    if target.first() == Some(&b'/') {
                        above.clear();
                    }
                    rest.extend(components(&target));
                }
                _ if last => return open(here, &name, flags | OFlags::NOFOLLOW),
                FileType::Directory => above.push(next),
                _ => return Err(Errno::NOTDIR),
            }
        }
        let here = above.last().map_or(self.dir.as_fd(), |dir| dir.as_fd());
        open(here, b".", flags)
    }
}

const IN_ROOT: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);
/// A pipe opened so does not wait for a writer; it is then seen not to be a file.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

fn strip_slashes(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|&b| b != b'/').unwrap_or(path.len());
    &path[start..]
}

/// A name that cannot lead out of the directory it is looked up in.
fn component(name: &[u8]) -> Result<&[u8], Errno> {
    if name.contains(&b'/') || name == b".." { Err(Errno::INVAL) } else { Ok(name) }
}

/// The components of a path, last one first.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    path.rsplit(|&b| b == b'/').filter(|part| !part.is_empty() && part != b".").map(<[u8]>::to_vec).collect()
}

impl FsKind {
    fn from_magic(magic: u32) -> FsKind {
        match magic {
            0x6367_7270 => FsKind::Cgroup2,
            0x0027_e0eb => FsKind::Cgroup1,
            0x0000_9fa0 => FsKind::Proc,
            0x6265_6572 => FsKind::Sysfs,
            0x6462_6720 => FsKind::Debugfs,
            other => FsKind::Other(u64::from(other)),
        }
    }
}

/// A directory held open. Names in it are single components, and links are not followed: nothing in
/// `/proc/PID` or in a cgroup that is worth reading is a link.
#[derive(Debug)]
pub struct HostDir {
    fd: OwnedFd,
    live: bool,
}

/// What the number of links of a directory says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subdirectories {
    /// There are this many. The cgroup filesystems count.
    Count(u64),
    /// The filesystem does not count them (overlayfs, btrfs).
    NotCounted,
    /// The directory itself was removed. The cgroup filesystems do not say so.
    Removed,
}

/// An entry while a directory is being listed.
#[derive(Clone, Copy, Debug)]
pub struct EntryRef<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its type.
    pub kind: EntryKind,
    /// Its inode number as the directory has it.
    pub ino: u64,
}

impl HostDir {
    /// A file of this directory.
    pub fn open_file(&self, name: &[u8]) -> Result<HostFile, Fault> {
        // Whatever the kernel puts into `/proc/PID` or a cgroup under these names is a file; in a
        // captured tree, look before opening, as opening a device can have an effect of its own.
        if !self.live {
            let stat = rustix::fs::statat(&self.fd, component(name)?, AtFlags::SYMLINK_NOFOLLOW)?;
            HostFile::check_mode(stat.st_mode)?;
        }
        Ok(HostFile { fd: self.open(name, FILE)? })
    }

    /// A directory of this directory.
    pub fn open_dir(&self, name: &[u8]) -> Result<HostDir, Fault> {
        match self.open(name, DIR) {
            Ok(fd) => Ok(HostDir { fd, live: self.live }),
            Err(Errno::NOTDIR) => Err(Fault::NotDirectory),
            Err(errno) => Err(errno.into()),
        }
    }

    fn open(&self, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.fd, component(name)?, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
    }

    /// Its number in the table of descriptors, which shows how full the table is.
    pub fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Inode number of this directory.
    pub fn ino(&self) -> Result<u64, Fault> {
        Ok(rustix::fs::fstat(&self.fd)?.st_ino)
    }

    /// How many directories are in this one, without listing it: from its number of links.
    pub fn subdirectories(&self) -> Result<Subdirectories, Fault> {
        #[allow(clippy::useless_conversion, reason = "narrower on 32-bit and some 64-bit architectures")]
        let links = u64::from(rustix::fs::fstat(&self.fd)?.st_nlink);
        Ok(match links {
            0 => Subdirectories::Removed,
            1 => Subdirectories::NotCounted,
            links => Subdirectories::Count(links - 2),
        })
    }

    /// Shows every entry but `.` and `..`, in the order the filesystem has them.
    pub fn list(&self, mut each: impl FnMut(EntryRef<'_>)) -> Result<(), Fault> {
        rustix::fs::seek(&self.fd, rustix::fs::SeekFrom::Start(0))?;
        let mut buffer = [MaybeUninit::<u8>::uninit(); 32 << 10];
        let mut entries = RawDir::new(&self.fd, &mut buffer);
        let mut count = 0;
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Err(Errno::INTR) => continue,
                // The directory itself was removed while it was listed: it is empty now.
                Err(Errno::NOENT) => return Ok(()),
                entry => entry?,
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            count += 1;
            if count > LIST_MAX {
                return Err(Fault::TooLarge(LIST_MAX));
            }
            let kind = match entry.file_type() {
                FileType::Directory => EntryKind::Dir,
                FileType::RegularFile => EntryKind::File,
                FileType::Symlink => EntryKind::Link,
                FileType::Unknown => EntryKind::Unknown,
                _ => EntryKind::Other,
            };
            each(EntryRef { name, kind, ino: entry.ino() });
        }
        Ok(())
    }
}

/// A file held open, read from its beginning each time.
#[derive(Debug)]
pub struct HostFile {
    fd: OwnedFd,
}

impl HostFile {
    fn new(fd: OwnedFd) -> Result<HostFile, Fault> {
        HostFile::check(fd.as_fd())?;
        Ok(HostFile { fd })
    }

    fn check(fd: BorrowedFd<'_>) -> Result<(), Fault> {
        HostFile::check_mode(rustix::fs::fstat(fd)?.st_mode)
    }

    fn check_mode(mode: u32) -> Result<(), Fault> {
        if FileType::from_raw_mode(mode) == FileType::RegularFile { Ok(()) } else { Err(Fault::NotRegular) }
    }

    /// Its number in the table of descriptors, which shows how full the table is.
    pub fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Whether the kernel says that a file of procfs has changed since the last call, as it does of `mountinfo`. Of other files
    /// never.
    pub fn has_changed(&self) -> bool {
        let mut waited = [PollFd::new(&self.fd, PollFlags::PRI)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut waited, Some(&now)).is_ok_and(|ready| ready > 0)
            && waited.iter().any(|file| file.revents().contains(PollFlags::PRI))
    }

    /// Replaces `content` with the whole file, of at most `limit` bytes.
    pub fn read(&self, content: &mut Vec<u8>, limit: usize) -> Result<(), Fault> {
        content.clear();
        loop {
            if self.append(content, limit)? == 0 {
                return Ok(());
            }
        }
    }

    /// The same for files the kernel prints in one piece (those of one cgroup or process): what does
    /// not fill the buffer is the end, which saves a second system call.
    pub fn read_piece(&self, content: &mut Vec<u8>, limit: usize) -> Result<(), Fault> {
        content.clear();
        loop {
            let read = self.append(content, limit)?;
            if read == 0 || content.len() < content.capacity() {
                return Ok(());
            }
        }
    }

    fn append(&self, content: &mut Vec<u8>, limit: usize) -> Result<usize, Fault> {
        if content.len() == content.capacity() {
            content.reserve(content.capacity().max(4 << 10));
        }
        loop {
            let offset = content.len() as u64;
            match rustix::io::pread(&self.fd, rustix::buffer::spare_capacity(content), offset) {
                Err(Errno::INTR) => {}
                read => {
                    let read = read?;
                    return if content.len() > limit { Err(Fault::TooLarge(limit)) } else { Ok(read) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
