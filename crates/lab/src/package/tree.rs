// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory that a package is unpacked into. The files of a package are untrusted: no link is followed, not even
//! one that the same package made, and nothing is touched outside of the directory. Each part of a path is opened
//! below the one before it. A link that leads out of the package is refused. Every other link is made relative, so
//! that it stays inside when the directory is moved.

use rustix::fs::{AtFlags, Mode, OFlags, linkat, mkdirat, openat, symlinkat, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Deepest directory.
const DEPTH_MAX: usize = 64;
/// Files of one package.
const FILES_MAX: u64 = 1_000_000;
/// Bytes of one package, unpacked.
const BYTES_MAX: u64 = 16 << 30;

/// Where a file of a package goes, from its path in the package; `None` when it is not needed.
pub(crate) type Place = fn(&Path) -> Option<PathBuf>;

/// A directory that is filled from packages.
pub(super) struct Tree {
    root: OwnedFd,
    place: Place,
    files: u64,
    bytes: u64,
}

impl Tree {
    /// Opens a directory that is there.
    pub(super) fn open(path: &Path, place: Place) -> io::Result<Tree> {
        let root = rustix::fs::open(path, DIR, Mode::empty())?;
        Ok(Tree { root, place, files: 0, bytes: 0 })
    }

    /// Makes a directory, where it is needed.
    pub(super) fn dir(&mut self, name: &[u8]) -> io::Result<()> {
        let Some(place) = self.place_of(name)? else { return Ok(()) };
        self.walk(&place).map(drop)
    }

    /// Makes a file from `content`. Stops when `is_asked` returns true. Returns false without reading `content` if the
    /// file is not needed.
    pub(super) fn file(
        &mut self,
        name: &[u8],
        mode: u32,
        content: &mut dyn Read,
        is_asked: &dyn Fn() -> bool,
    ) -> io::Result<bool> {
        let Some(place) = self.place_of(name)? else { return Ok(false) };
        let (dir, last) = self.parent(&place)?;
        let mode = Mode::from_raw_mode(mode & 0o755 | 0o600);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(replacing(&dir, &last, || openat(&dir, &last, flags, mode))?);
        let mut buffer = vec![0; 1 << 18];
        loop {
            if is_asked() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let length = match content.read(&mut buffer) {
                Ok(0) => return Ok(true),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.bytes += length as u64;
            if self.bytes > BYTES_MAX {
                return Err(refused(name, &format!("with it the package has more than {} GiB", BYTES_MAX >> 30)));
            }
            file.write_all(buffer.get(..length).unwrap_or_default())?;
        }
    }

    /// Makes a relative symbolic link, if both the link and its target are needed.
    pub(super) fn link(&mut self, name: &[u8], target: &[u8]) -> io::Result<()> {
        let path = normal(Path::new(OsStr::from_bytes(name)), Path::new(""));
        let from = path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let Some(target) = normal(Path::new(OsStr::from_bytes(target)), from) else {
            return Err(refused(name, "it is a link that leads out of the package"));
        };
        let (Some(place), Some(target)) = (self.place_of(name)?, (self.place)(&target)) else { return Ok(()) };
        let (dir, last) = self.parent(&place)?;
        let target = relative(&target, place.parent().unwrap_or(Path::new("")));
        replacing(&dir, &last, || symlinkat(target.as_path(), &dir, &last))
    }

    /// Gives an existing file another name.
    pub(super) fn hard_link(&mut self, name: &[u8], target: &[u8]) -> io::Result<()> {
        let (Some(place), Some(target)) = (self.place_of(name)?, self.place_of(target)?) else { return Ok(()) };
        let ((from, first), (dir, last)) = (self.parent(&target)?, self.parent(&place)?);
        // Without AT_SYMLINK_FOLLOW, a symbolic link itself gets the other name.
        replacing(&dir, &last, || linkat(&from, &first, &dir, &last, AtFlags::empty()))
    }

    /// Returns the place of a file. Fails if its name leads out of the package, or if the package has too many files.
    fn place_of(&mut self, name: &[u8]) -> io::Result<Option<PathBuf>> {
        self.files += 1;
        if self.files > FILES_MAX {
            return Err(refused(name, &format!("with it the package has more than {FILES_MAX} files")));
        }
        let has_parent = Path::new(OsStr::from_bytes(name)).components().any(|part| part == Component::ParentDir);
        match normal(Path::new(OsStr::from_bytes(name)), Path::new("")).filter(|_| !has_parent) {
            Some(path) if path.components().count() > DEPTH_MAX => {
                Err(refused(name, &format!("it is more than {DEPTH_MAX} directories deep")))
            }
            Some(path) => Ok((self.place)(&path).filter(|place| place.file_name().is_some())),
            None => Err(refused(name, "its name leads out of the package")),
        }
    }

    /// The directory of a path, made where it is missing, and the last part.
    fn parent(&self, place: &Path) -> io::Result<(OwnedFd, OsString)> {
        let last = place.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok((self.walk(place.parent().unwrap_or(Path::new("")))?, last.to_owned()))
    }

    /// Opens a directory part by part, following nothing, and makes what is missing.
    fn walk(&self, place: &Path) -> io::Result<OwnedFd> {
        let mut dir = self.root.as_fd().try_clone_to_owned()?;
        for part in place.components() {
            let Component::Normal(part) = part else { continue };
            match mkdirat(&dir, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            dir = openat(&dir, part, DIR, Mode::empty()).map_err(|errno| {
                let what = if errno == Errno::LOOP || errno == Errno::NOTDIR { "not a directory" } else { "" };
                io::Error::new(io::Error::from(errno).kind(), format!("{}: {errno} {what}", place.display()))
            })?;
        }
        Ok(dir)
    }
}

const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Makes something, in place of what is there. A directory stays.
fn replacing<T>(dir: &OwnedFd, name: &OsStr, make: impl Fn() -> rustix::io::Result<T>) -> io::Result<T> {
    match make() {
        Err(Errno::EXIST) => {
            unlinkat(dir, name, AtFlags::empty())?;
            Ok(make()?)
        }
        made => Ok(made?),
    }
}

/// A path below the package's root, without `.` and `..`; `from` is where a relative one starts. `None` when it leads
/// out.
fn normal(path: &Path, from: &Path) -> Option<PathBuf> {
    let mut normal = if path.is_absolute() { PathBuf::new() } else { from.to_owned() };
    for part in path.components() {
        match part {
            Component::Normal(part) => normal.push(part),
            Component::ParentDir if !normal.pop() => return None,
            Component::ParentDir | Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(normal)
}

/// The way from a directory to a path, both below the same root.
fn relative(path: &Path, from: &Path) -> PathBuf {
    let same = path.components().zip(from.components()).take_while(|(a, b)| a == b).count();
    let mut way: PathBuf = from.components().skip(same).map(|_| Component::ParentDir).collect();
    way.extend(path.components().skip(same));
    if way.as_os_str().is_empty() { PathBuf::from(".") } else { way }
}

fn refused(name: &[u8], why: &str) -> io::Error {
    let shown: String = String::from_utf8_lossy(name).chars().filter(|c| !c.is_control()).take(200).collect();
    io::Error::new(io::ErrorKind::InvalidData, format!("{shown:?} is refused: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_made_relative_or_refused() {
        let check = |name: &str, target: &str, expect: Option<&str>| {
            let from = Path::new(name).parent().unwrap();
            let made = normal(Path::new(target), from).map(|target| relative(&target, from));
            assert_eq!(made.as_deref(), expect.map(Path::new), "{name} -> {target}");
        };
        check("usr/lib/a", "b", Some("b"));
        check("usr/lib/a", "../share/b", Some("../share/b"));
        check("usr/lib/a", "/usr/share/b", Some("../share/b"));
        check("usr/lib/a", "/etc/shadow", Some("../../etc/shadow"));
        check("usr/lib/a", ".", Some("."));
        check("usr/lib/a", "../../../etc", None);
        check("a", "..", None);
        check("a", "/", Some("."));
    }

    #[test]
    fn no_name_and_no_link_leads_out() {
        bolero::check!().with_type::<(Vec<u8>, Vec<u8>, Vec<u8>)>().for_each(|(name, target, inner)| {
            let outside = tempfile::tempdir().unwrap();
            let root = outside.path().join("root");
            std::fs::create_dir(&root).unwrap();
            let mut tree = Tree::open(&root, |path| Some(path.to_owned())).unwrap();
            let _ = tree.link(name, target);
            let _ = tree.hard_link(inner, target);
            let _ = tree.file(&[name, b"/".as_slice(), inner].concat(), 0o777, &mut b"x".as_slice(), &|| false);
            let _ = tree.file(inner, 0o777, &mut b"x".as_slice(), &|| false);
            assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        });
    }
}
