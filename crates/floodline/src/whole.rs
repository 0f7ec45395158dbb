// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that replaces another one only when it is whole. `--force` on a full disk must not destroy the file that is there. The
//! new file is written beside it and takes its name at the end. Recordings that grow while a host is observed are not written
//! this way: after a crash, their samples must be found under their name.

use crate::error::CliError;
use crate::input::shown;
use crate::output::{self, Existing};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Rename that [`Pending::commit`] performs. If it is dropped before that, the existing file stays as it was.
#[must_use]
pub(crate) struct Pending {
    renamed: Option<Renamed>,
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
        return Ok((output::create(path, existing)?, Pending::none()));
    };
    let Ok(file) = output::create(&beside, Existing::KeepAlways) else {
        // Closes the file and with it the lock.
        drop(old);
        return Ok((output::create(path, existing)?, Pending::none()));
    };
    match alike(&old, &file).and_then(|()| file.try_clone()) {
        Ok(new) => Ok((file, Pending { renamed: Some(Renamed { beside, path: path.to_owned(), new, _old: old }) })),
        Err(_) => {
            let _ = fs::remove_file(&beside);
            drop(old);
            Ok((output::create(path, existing)?, Pending::none()))
        }
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
        Pending { renamed: None }
    }

    /// State of the output after a failed write, for a hint.
    pub(crate) fn left(&self) -> &'static str {
        match self.renamed {
            Some(_) => "the existing file is unchanged",
            None => "the output is incomplete",
        }
    }

    /// Gives the file its name, which removes the replaced file.
    pub(crate) fn commit(mut self) -> Result<(), CliError> {
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
    fn without_force_a_new_file_is_written_under_its_name_and_an_old_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        let (mut file, pending) = create(&path, Existing::Keep).unwrap();
        file.write_all(b"new").unwrap();
        pending.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(create(&path, Existing::Keep).is_err());
    }
}
