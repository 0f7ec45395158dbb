// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files as output: recordings and exports. An existing file is never overwritten unasked, a device never,
//! two programs never write to one file, binary data never goes to a terminal, and errors say which file.
//! What is written may describe a host, so only its owner may read it.

use crate::error::CliError;
use crate::input::shown;
use floodline_host::root::{HostRoot, LARGE};
use floodline_record::recording::EncodeError;
use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, ftruncate, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

/// What kind of bytes a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Lines of text.
    Text,
    /// Anything else.
    Binary,
}

/// Standard output, where that can take such bytes.
pub(crate) fn standard(content: Content) -> Result<Box<dyn Write + Send>, CliError> {
    let stdout = io::stdout();
    if content == Content::Binary && stdout.is_terminal() {
        return Err(CliError::usage("refusing to write binary data to a terminal")
            .hint("name a file, or pipe the output to a program"));
    }
    Ok(Box::new(BufWriter::new(stdout)))
}

/// Whether a path stands for standard output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// What a path is called in messages.
pub(crate) fn called(path: &Path) -> String {
    if is_standard(path) { "standard output".to_owned() } else { shown(path).to_string() }
}

/// Where a recording goes: a new file, or with `-` standard output, where each write reaches the reader as it is.
pub(crate) fn open(path: &Path, existing: Existing) -> Result<File, CliError> {
    if !is_standard(path) {
        return create(path, existing);
    }
    drop(standard(Content::Binary)?);
    let own = io::stdout().as_fd().try_clone_to_owned();
    own.map(File::from).map_err(|error| CliError::write(&called(path), &error))
}

/// A recording that could not be written.
pub(crate) fn failed(target: &str, error: &EncodeError) -> CliError {
    match error {
        EncodeError::Write(error) => CliError::write(target, error),
        EncodeError::TooLarge(_) | EncodeError::Json(_) | EncodeError::Ended => {
            CliError::bug(format!("{target}: {error}"))
        }
    }
}

/// What happens to a file that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It is overwritten: `--force` was given.
    Replace,
    /// It stays; `--force` would overwrite it.
    Keep,
    /// It stays, and the command has no option to overwrite it.
    KeepAlways,
}

impl Existing {
    /// By whether `--force` was given.
    pub(crate) fn by_force(force: bool) -> Existing {
        if force { Existing::Replace } else { Existing::Keep }
    }
}

/// What may be read and written by its owner alone.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Character devices that lose and disturb nothing: `/dev/null`, `/dev/zero`, `/dev/full`.
const HARMLESS: [(u32, u32); 3] = [(1, 3), (1, 5), (1, 7)];

/// Makes a new file that this program alone writes to. A pipe holds nothing that could be lost and is
/// written to as it is. What exists is looked at before it is opened: opening some devices does harm.
pub(crate) fn create(path: &Path, existing: Existing) -> Result<File, CliError> {
    let failed = |errno: Errno| CliError::write(&shown(path).to_string(), &errno.into());
    match openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(found) => {
            let stat = fstat(&found).map_err(failed)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if existing == Existing::Replace && is_link(path) => {
                    Err(CliError::usage(format!("{} is a link; --force overwrites files only", shown(path)))
                        .hint("name the file that it leads to")
                        .hint("use - for standard output"))
                }
                FileType::RegularFile if existing == Existing::Replace => replace(path, &found, &stat),
                FileType::RegularFile => Err(exists(path, &stat, existing)),
                FileType::Fifo => reopen(&found, OFlags::WRONLY).map(File::from).map_err(failed),
                FileType::CharacterDevice if HARMLESS.contains(&number(stat.st_rdev)) => {
                    reopen(&found, OFlags::WRONLY).map(File::from).map_err(failed)
                }
                FileType::Directory => {
                    Err(CliError::usage(format!("{} is a folder", shown(path))).hint("name a file in it"))
                }
                other => Err(CliError::usage(format!("{} is {}, not a file", shown(path), kind(other)))
                    .hint("name a regular file; Floodline does not write to devices")
                    .hint("use - for standard output")),
            }
        }
        Err(Errno::NOENT) => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            match openat(CWD, path, flags, PRIVATE) {
                Ok(file) => lock(path, file).map(File::from),
                // A link that leads nowhere, or another program was faster.
                Err(Errno::EXIST) => Err(exists_already(path, existing)),
                Err(errno) => Err(failed(errno)),
            }
        }
        Err(errno) => Err(failed(errno)),
    }
}

/// Opens and locks the file at a path that `--force` is about to replace. Returns `None` for anything but a regular file:
/// [`create`] accepts or refuses that.
pub(crate) fn to_replace(path: &Path) -> Result<Option<File>, CliError> {
    let Ok(found) = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { return Ok(None) };
    let is_file = fstat(&found).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    if !is_file || is_link(path) {
        return Ok(None);
    }
    let failed = |errno: Errno| CliError::write(&shown(path).to_string(), &errno.into());
    let file = lock(path, reopen(&found, OFlags::WRONLY).map_err(failed)?)?;
    Ok(Some(File::from(file)))
}

/// Whether the name itself is a symbolic link: another user may have put it there.
fn is_link(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// Empties a file that exists, unless another program writes to it.
fn replace(path: &Path, found: &OwnedFd, stat: &Stat) -> Result<File, CliError> {
    let failed = |errno: Errno| CliError::write(&shown(path).to_string(), &errno.into());
    let file = lock(path, reopen(found, OFlags::WRONLY).map_err(failed)?)?;
    if stat.st_uid == rustix::process::geteuid().as_raw() {
        rustix::fs::fchmod(&file, PRIVATE).map_err(failed)?;
    }
    ftruncate(&file, 0).map_err(failed)?;
    Ok(File::from(file))
}

fn reopen(found: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(CWD, format!("/proc/self/fd/{}", found.as_raw_fd()), flags | OFlags::CLOEXEC, Mode::empty())
}

/// Locks a file for as long as it is open.
fn lock(path: &Path, file: OwnedFd) -> Result<OwnedFd, CliError> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(fstat(&file).map_or_else(
            |errno| CliError::write(&shown(path).to_string(), &errno.into()),
            |stat| busy(path, writer(&stat)),
        )),
        // A filesystem without locks.
        Ok(()) | Err(_) => Ok(file),
    }
}

fn exists(path: &Path, stat: &Stat, existing: Existing) -> CliError {
    match writer(stat) {
        Some(pid) => busy(path, Some(pid)),
        None => exists_already(path, existing),
    }
}

/// Refuses a name that is taken before the work is done, and not after it. [`create`] decides in the end.
pub(crate) fn refuse_existing(path: &Path, force: bool) -> Result<(), CliError> {
    match !is_standard(path) && !force && path.is_file() {
        true => Err(exists_already(path, Existing::Keep)),
        false => Ok(()),
    }
}

fn exists_already(path: &Path, existing: Existing) -> CliError {
    CliError::usage(format!("{} already exists", shown(path))).hint(match existing {
        Existing::KeepAlways => "choose another name",
        Existing::Keep | Existing::Replace => "choose another name, or add --force",
    })
}

fn busy(path: &Path, writer: Option<u32>) -> CliError {
    let by = writer.map_or("another program".to_owned(), |pid| format!("process {pid}"));
    CliError::usage(format!("{by} is writing to {}", shown(path)))
        .hint("choose another name, or end that process first")
}

/// The process that holds the lock of a file, from the kernel's list: `1: FLOCK ADVISORY WRITE PID
/// MAJOR:MINOR:INODE 0 EOF`. `None` where it is in another PID namespace, too.
fn writer(stat: &Stat) -> Option<u32> {
    let list = HostRoot::live().ok()?.read("/proc/locks", LARGE).ok()?;
    let (major, minor) = number(stat.st_dev);
    let file = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    String::from_utf8_lossy(&list).lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_of_file = fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&file.as_str());
        fields.get(4)?.parse().ok().filter(|pid| is_of_file && *pid > 0)
    })
}

fn number(dev: u64) -> (u32, u32) {
    (rustix::fs::major(dev), rustix::fs::minor(dev))
}

fn kind(file_type: FileType) -> &'static str {
    match file_type {
        FileType::BlockDevice => "a block device",
        FileType::CharacterDevice => "a character device",
        FileType::Socket => "a socket",
        _ => "something else",
    }
}
