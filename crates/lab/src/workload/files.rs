// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files a thread of a task has open, by the number that its program gave them.

use super::error::StepError;
use super::mapping::Shared;
use floodline_scenario::program::{Access, Slot, Way};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// An open file.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) file: Arc<File>,
    pub(super) path: String,
    pub(super) mapping: Option<Shared>,
}

/// All open files of one thread of a task.
#[derive(Debug, Default)]
pub(super) struct Files(Vec<Option<Open>>);

impl Files {
    pub(super) fn put(&mut self, slot: Slot, path: &str, file: File) {
        if self.0.len() <= slot.0 {
            self.0.resize_with(slot.0 + 1, || None);
        }
        self.0[slot.0] = Some(Open { file: Arc::new(file), path: path.to_owned(), mapping: None });
    }

    pub(super) fn at(&mut self, slot: Slot) -> Result<&mut Open, StepError> {
        let open = self.0.get_mut(slot.0).and_then(Option::as_mut);
        open.ok_or_else(|| StepError::Senseless("a file that is not open".to_owned()))
    }

    /// Removes a file from the table. Dropping the returned value closes it.
    pub(super) fn take(&mut self, slot: Slot) -> Option<Open> {
        self.0.get_mut(slot.0).and_then(Option::take)
    }
}

/// Opens a file. If it is opened for writing, it and its directories are created if missing.
pub(super) fn open(path: &str, way: Way) -> Result<File, StepError> {
    let mut options = OpenOptions::new();
    match way.access {
        Access::Read => options.read(true),
        Access::Write => options.read(true).write(true).create(true),
        Access::Append => options.append(true).create(true),
    };
    let direct = if way.is_direct { libc::O_DIRECT } else { 0 };
    // `OFlags::DSYNC` of rustix is O_SYNC, which makes the times of the inode durable, too: a commit of the journal for each overwrite.
    let dsync = if way.is_dsync { libc::O_DSYNC } else { 0 };
    options.custom_flags(direct | dsync);
    if way.access != Access::Read {
        parents(path)?;
    }
    options.open(path).map_err(|error| StepError::call("open", path, error))
}

/// Creates the directories above a path.
pub(super) fn parents(path: &str) -> Result<(), StepError> {
    match Path::new(path).parent() {
        Some(parent) if !parent.is_dir() => {
            std::fs::create_dir_all(parent).map_err(|error| StepError::call("mkdir", parent.display(), error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_dsync_does_not_sync_its_times() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let way = Way { access: Access::Write, is_direct: false, is_dsync: true };
        let file = open(path.to_str().unwrap(), way).unwrap();
        let flags = rustix::fs::fcntl_getfl(&file).unwrap().bits() as libc::c_int;
        assert_eq!(flags & libc::O_SYNC, libc::O_DSYNC);
    }
}
