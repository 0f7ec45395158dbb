// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files a task has open, each with the place where the task is in it. Opened at first use, closed by
//! a `close` step or at the end.

use super::error::StepError;
use super::mapping::Shared;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// How a file is open. A task may have one file open in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// For reading.
    Read,
    /// For reading past the page cache.
    ReadDirect,
    /// For reading and writing.
    Write,
    /// For writing past the page cache.
    WriteDirect,
    /// For writing at the end.
    Append,
}

/// An open file.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) file: File,
    /// Where the task is in it.
    pub(super) cursor: u64,
    pub(super) mapping: Option<Shared>,
}

/// All open files of one thread of a task.
#[derive(Debug, Default)]
pub(super) struct Files(BTreeMap<(String, Way), Open>);

impl Files {
    /// The file, opened where it is not.
    pub(super) fn open(&mut self, path: &str, way: Way) -> Result<&mut Open, StepError> {
        let key = (path.to_owned(), way);
        if !self.0.contains_key(&key) {
            let file = open(path, way)?;
            self.0.insert(key.clone(), Open { file, cursor: 0, mapping: None });
        }
        self.0.get_mut(&key).ok_or_else(|| StepError::Senseless(format!("{path} is not open")))
    }

    /// The file in whatever way it is open.
    pub(super) fn any(&self, path: &str) -> Option<&Open> {
        let ways = [Way::Write, Way::Append, Way::WriteDirect, Way::Read, Way::ReadDirect];
        ways.iter().find_map(|&way| self.0.get(&(path.to_owned(), way)))
    }

    /// The task's mapping of the file.
    pub(super) fn mapping(&self, path: &str) -> Option<&Shared> {
        self.any(path).and_then(|open| open.mapping.as_ref())
    }

    /// Takes the file out in every way it is open.
    pub(super) fn close(&mut self, path: &str) -> Vec<Open> {
        let keys: Vec<_> = self.0.keys().filter(|(name, _)| name == path).cloned().collect();
        keys.iter().filter_map(|key| self.0.remove(key)).collect()
    }
}

/// Opens a file; one that is written is created, with its directories, where it is missing.
pub(super) fn open(path: &str, way: Way) -> Result<File, StepError> {
    let mut options = OpenOptions::new();
    match way {
        Way::Read => options.read(true),
        Way::ReadDirect => options.read(true).custom_flags(direct()),
        Way::Write => options.read(true).write(true).create(true),
        Way::WriteDirect => options.read(true).write(true).create(true).custom_flags(direct()),
        Way::Append => options.append(true).create(true),
    };
    if matches!(way, Way::Write | Way::WriteDirect | Way::Append) {
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

fn direct() -> i32 {
    i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0)
}
