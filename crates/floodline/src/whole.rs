// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that is there only when it is whole. `--force` on a full disk must not destroy the file that is there: the new file is
//! written beside it and takes its name at the end. A new file is created under its name at once, so that no
//! other program takes the name. It is removed if it cannot be completed. Recordings that grow while a host is observed are not written
//! this way: after a crash, their samples must be found under their name.

use crate::error::CliError;
use crate::input::shown;
use crate::output::{self, Existing};
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Rename that [`Pending::commit`] performs. If it is dropped before that, the existing file stays as it was, and a new one is
/// removed.
#[must_use]
pub(crate) struct Pending {
    renamed: Option<Renamed>,
    made: Option<Made>,
}

/// A file that did not exist before.
struct Made {
    path: PathBuf,
    /// Its device and inode: the name may be another file's by now.
    file: (u64, u64),
}

impl Made {
    /// `None` for anything but a regular file, such as a pipe.
    fn at(path: &Path, file: &File) -> Option<Made> {
        let found = file.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(Made { path: path.to_owned(), file: (found.dev(), found.ino()) })
    }

    fn remove(&self) {
        let is_it = |found: fs::Metadata| (found.dev(), found.ino()) == self.file;
        if self.path.symlink_metadata().is_ok_and(is_it) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

struct Renamed {
    beside: PathBuf,
    path: PathBuf,
    new: File,
    /// Its lock keeps other programs from writing to it meanwhile.
    _old: File,
}

/// Opens a file to write. A file that is to be replaced stays until [`Pending::commit`]. Where its folder takes no new file, it is
/// overwritten in place.
pub(crate) fn create(path: &Path, existing: Existing) -> Result<(File, Pending), CliError> {
    let old = match existing {
        Existing::Replace => output::to_replace(path)?,
        Existing::Keep | Existing::KeepAlways => None,
    };
    let Some((old, beside)) = old.zip(name_beside(path)) else {
        let is_new = path.symlink_metadata().is_err();
        let file = output::create(path, existing)?;
        let made = Made::at(path, &file).filter(|_| is_new);
        return Ok((file, Pending { renamed: None, made }));
    };
    let Ok(file) = output::create(&beside, Existing::KeepAlways) else {
        // Closes the file and with it the lock.
        drop(old);
        return Ok((output::create(path, existing)?, Pending::none()));
    };
    match alike(&old, &file).and_then(|()| file.try_clone()) {
        Ok(new) => {
            Ok((file, Pending { renamed: Some(Renamed { beside, path: path.to_owned(), new, _old: old }), made: None }))
        }
        Err(_) => {
            let _ = fs::remove_file(&beside);
            drop(old);
            Ok((output::create(path, existing)?, Pending::none()))
        }
    }
}

/// Refuses a path to which [`create`] cannot write, before the work whose result it is for. A new file is made and removed again; one
/// that exists is not opened, but for a device that nothing disturbs.
pub(crate) fn try_out(path: &Path) -> Result<(), CliError> {
    if output::is_standard(path) {
        return Ok(());
    }
    if path.symlink_metadata().is_err() {
        return create(path, Existing::Keep).map(drop);
    }
    let Ok(found) = path.metadata() else {
        // A link that leads nowhere, which is not followed.
        return create(path, Existing::Keep).map(drop);
    };
    match found.is_file() && !path.is_symlink() {
        true => rustix::fs::access(path, rustix::fs::Access::WRITE_OK)
            .map_err(|errno| CliError::write(&shown(path).to_string(), &errno.into())),
        // Opening a pipe is not without effect.
        false if found.file_type().is_fifo() => Ok(()),
        // Refuses all but harmless devices before it opens anything.
        false => output::create(path, Existing::Replace).map(drop),
    }
}

/// Gives a new file the owner and the mode of the one that it replaces.
fn alike(old: &File, new: &File) -> std::io::Result<()> {
    let (was, is) = (old.metadata()?, new.metadata()?);
    if (was.uid(), was.gid()) != (is.uid(), is.gid()) {
        std::os::unix::fs::fchown(new, Some(was.uid()), Some(was.gid()))?;
    }
    new.set_permissions(was.permissions())
}

impl Pending {
    /// Nothing to rename, as for standard output.
    pub(crate) fn none() -> Pending {
        Pending { renamed: None, made: None }
    }

    /// State of the output after a failed write, for a hint.
    pub(crate) fn left(&self) -> &'static str {
        match (&self.renamed, &self.made) {
            (Some(_), _) => "the existing file is unchanged",
            (None, Some(_)) => "no file was left behind",
            (None, None) => "the output is incomplete",
        }
    }

    /// Gives the file its name, which removes the replaced file.
    pub(crate) fn commit(mut self) -> Result<(), CliError> {
        // It keeps its name.
        self.made = None;
        let Some(renamed) = self.renamed.take() else { return Ok(()) };
        // A crash must not leave an empty file under the name.
        let stored = renamed.new.sync_all();
        stored.and_then(|()| fs::rename(&renamed.beside, &renamed.path)).map_err(|error| {
            let _ = fs::remove_file(&renamed.beside);
            CliError::write(&shown(&renamed.path).to_string(), &error)
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(renamed) = self.renamed.take() {
            let _ = fs::remove_file(renamed.beside);
        }
        if let Some(made) = self.made.take() {
            made.remove();
        }
    }
}

/// Hidden name in the same folder, with the id of this process.
fn name_beside(path: &Path) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{}.part", std::process::id()));
    Some(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_when_the_new_one_is_whole_and_stays_if_it_never_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        fs::write(&path, "old").unwrap();
        let (mut file, pending) = create(&path, Existing::Replace).unwrap();
        file.write_all(b"ha").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert!(create(&path, Existing::Replace).is_err(), "another program may be writing to it");
        drop(pending);
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), ("old", 1));
        let (mut file, pending) = create(&path, Existing::Replace).unwrap();
        file.write_all(b"whole").unwrap();
        pending.commit().unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), ("whole", 1));
    }

    #[test]
    fn a_path_that_takes_no_file_is_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        assert!(try_out(&folder.path().join("none").join("plan.json")).is_err());
        try_out(&path).unwrap();
        assert!(names(folder.path()).is_empty(), "nothing is left behind");
        fs::write(&path, "old").unwrap();
        try_out(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    }

    #[test]
    fn what_is_no_file_is_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("plan"), "old").unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink(at("plan"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("none"), at("broken")).unwrap();
        for path in [folder.path().to_owned(), at("socket"), at("link"), at("broken")] {
            assert!(try_out(&path).is_err(), "{path:?}");
        }
        assert!(!at("none").exists());
        assert_eq!(fs::read_to_string(at("plan")).unwrap(), "old");
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for path in [at("pipe"), PathBuf::from("/dev/null")] {
            assert!(try_out(&path).is_ok(), "{path:?}");
        }
    }

    #[test]
    fn the_new_file_has_the_mode_of_the_old_one() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
        create(&path, Existing::Replace).unwrap().1.commit().unwrap();
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.permissions().mode() & 0o777, found.len()), (0o664, 0));
    }

    #[test]
    fn a_name_that_another_file_has_meanwhile_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        let (_file, pending) = create(&path, Existing::Replace).unwrap();
        fs::write(folder.path().join("other"), "other").unwrap();
        fs::rename(folder.path().join("other"), &path).unwrap();
        drop(pending);
        assert_eq!(fs::read_to_string(&path).unwrap(), "other");
    }

    #[test]
    fn without_force_a_new_file_is_written_under_its_name_and_an_old_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        let (mut file, pending) = create(&path, Existing::Keep).unwrap();
        file.write_all(b"cu").unwrap();
        assert_eq!(pending.left(), "no file was left behind");
        drop(pending);
        assert_eq!(names(folder.path()), [] as [String; 0]);
        let (mut file, pending) = create(&path, Existing::Keep).unwrap();
        file.write_all(b"new").unwrap();
        pending.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(create(&path, Existing::Keep).is_err());
    }
}
