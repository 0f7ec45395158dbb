// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of one filesystem: a tree of directories, searched name by name. `namespace` decides which calls a
//! path allows. Stands for fs/dcache.c: all names are always cached.

use crate::arena::InodeId;
use crate::namespace::Errno;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Entry of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dentry {
    File(InodeId),
    /// A directory, by its number.
    Dir(u32),
}

/// The names of one filesystem. Paths begin below its root; the empty path is the root.
#[derive(Debug)]
pub(crate) struct Names {
    /// Directories by number, the root first. A removed directory stays, empty.
    dirs: Vec<BTreeMap<Box<str>, Dentry>>,
    /// Path and number of the directory found last, as the next name is mostly in it too.
    last: RefCell<(String, u32)>,
}

impl Default for Names {
    fn default() -> Names {
        Names { dirs: vec![BTreeMap::new()], last: RefCell::default() }
    }
}

/// Splits a path into its first name and the rest below it.
fn split_first(path: &str) -> (&str, Option<&str>) {
    // Names are short: this is faster than a search for long texts.
    match path.bytes().position(|byte| byte == b'/') {
        Some(at) => (&path[..at], Some(&path[at + 1..])),
        None => (path, None),
    }
}

/// Splits a path into the directory that contains it and its name there.
fn split_last(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Names {
    fn dir(&self, number: u32) -> &BTreeMap<Box<str>, Dentry> {
        &self.dirs[number as usize]
    }

    fn dir_mut(&mut self, number: u32) -> &mut BTreeMap<Box<str>, Dentry> {
        &mut self.dirs[number as usize]
    }

    /// Returns the file or directory of a path.
    pub(crate) fn find(&self, path: &str) -> Result<Dentry, Errno> {
        let (above, name) = split_last(path);
        let dir = self.find_dir(above)?;
        match name {
            "" => Ok(Dentry::Dir(dir)),
            _ => self.dir(dir).get(name).copied().ok_or(Errno::Enoent),
        }
    }

    /// Returns the directory of a path.
    fn find_dir(&self, path: &str) -> Result<u32, Errno> {
        let mut last = self.last.borrow_mut();
        if last.0 != path {
            let dir = self.go_down(path)?;
            path.clone_into(&mut last.0);
            last.1 = dir;
        }
        Ok(last.1)
    }

    fn go_down(&self, path: &str) -> Result<u32, Errno> {
        let (mut at, mut left) = (0, Some(path).filter(|path| !path.is_empty()));
        while let Some(path) = left {
            let (name, rest) = split_first(path);
            at = match self.dir(at).get(name).ok_or(Errno::Enoent)? {
                Dentry::Dir(below) => *below,
                Dentry::File(_) => return Err(Errno::Enotdir),
            };
            left = rest;
        }
        Ok(at)
    }

    /// Returns the file of a path, if there is one.
    pub(crate) fn file(&self, path: &str) -> Option<InodeId> {
        match self.find(path) {
            Ok(Dentry::File(inode)) => Some(inode),
            _ => None,
        }
    }

    /// Checks that the directory above a path exists.
    pub(crate) fn check_parent(&self, path: &str) -> Result<(), Errno> {
        self.parent(path).map(|_| ())
    }

    /// Returns the number of the directory that contains a path.
    pub(crate) fn parent(&self, path: &str) -> Result<u32, Errno> {
        self.find_dir(split_last(path).0)
    }

    /// Number of directories that were ever made, with the root.
    pub(crate) fn directories(&self) -> u32 {
        u32::try_from(self.dirs.len()).unwrap_or(u32::MAX)
    }

    /// Whether a directory holds nothing.
    pub(crate) fn is_empty(&self, dir: u32) -> bool {
        self.dir(dir).is_empty()
    }

    /// Creates a directory and those above it if they are missing. Returns its number and the number of new
    /// directories.
    pub(crate) fn make_dirs(&mut self, path: &str) -> Result<(u32, u64), Errno> {
        let (mut at, mut made) = (0, 0);
        let mut left = Some(path).filter(|path| !path.is_empty());
        while let Some(path) = left {
            let (name, rest) = split_first(path);
            at = match self.dir(at).get(name) {
                Some(Dentry::Dir(below)) => *below,
                Some(Dentry::File(_)) => return Err(Errno::Enotdir),
                None => {
                    let below = u32::try_from(self.dirs.len()).unwrap_or(u32::MAX);
                    self.dirs.push(BTreeMap::new());
                    self.dir_mut(at).insert(name.into(), Dentry::Dir(below));
                    made += 1;
                    below
                }
            };
            left = rest;
        }
        Ok((at, made))
    }

    /// Returns the entry of a name. Creates the directories above it if they are missing.
    pub(crate) fn entry(&mut self, path: &str) -> Result<Entry<'_, Box<str>, Dentry>, Errno> {
        let (above, name) = split_last(path);
        let dir = match self.find_dir(above) {
            Ok(dir) => dir,
            Err(_) => self.make_dirs(above)?.0,
        };
        Ok(self.dir_mut(dir).entry(name.into()))
    }

    /// Removes a name. Returns its entry.
    pub(crate) fn remove(&mut self, path: &str) -> Option<Dentry> {
        let (above, name) = split_last(path);
        let dir = self.find_dir(above).ok()?;
        let removed = self.dir_mut(dir).remove(name)?;
        if let Dentry::Dir(_) = removed {
            // It may be the directory found last, or one above that.
            self.last = RefCell::default();
        }
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_where_it_was_made() {
        let mut names = Names::default();
        assert_eq!(names.make_dirs("a/b").map(|(_, made)| made), Ok(2));
        assert_eq!(names.make_dirs("a/c").map(|(_, made)| made), Ok(1));
        names.entry("a/b/file").expect("a place").or_insert(Dentry::File(InodeId(7)));
        let rows = [
            ("", Ok(Dentry::Dir(0))),
            ("a/b/file", Ok(Dentry::File(InodeId(7)))),
            ("a/c/file", Err(Errno::Enoent)),
            ("b", Err(Errno::Enoent)),
            ("a/b/file/x", Err(Errno::Enotdir)),
            ("a/b/file/x/y", Err(Errno::Enotdir)),
        ];
        for (path, expected) in rows {
            assert_eq!(names.find(path), expected, "{path}");
        }
        assert_eq!(names.make_dirs("a/b/file/x"), Err(Errno::Enotdir));
        assert_eq!(names.check_parent("a/b/other"), Ok(()));
        assert_eq!(names.check_parent("a/b/file/x"), Err(Errno::Enotdir));
    }

    #[test]
    fn a_directory_takes_what_is_in_it_along() {
        let mut names = Names::default();
        names.entry("a/b/file").expect("a place").or_insert(Dentry::File(InodeId(7)));
        assert_eq!(names.file("a/b/file"), Some(InodeId(7)));
        let moved = names.remove("a/b").expect("a directory");
        names.entry("c/d").expect("a place").or_insert(moved);
        assert_eq!(names.file("c/d/file"), Some(InodeId(7)));
        assert_eq!(names.find("a/b"), Err(Errno::Enoent));
        assert_eq!(names.find("a/b/file"), Err(Errno::Enoent));
        let Ok(Dentry::Dir(above)) = names.find("a") else { panic!("no directory") };
        assert!(names.is_empty(above));
    }
}
