// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks packages into a directory. Programs that every distribution has uncompress them, into a pipe; what is
//! written where is decided here, because a package may come from a stranger. Nothing of a package is run, nothing
//! is installed, and of its files only those are taken that are needed.

mod cpio;
mod deb;
mod rpm;
mod tree;

use crate::tool::{Piped, ToolError};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
pub(crate) use tree::Place;
use tree::Tree;

/// A package could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The directory for it could not be made.
    #[error("{path}: {cause}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file is not a package.
    #[error("{path} is not a package: {what}")]
    NotAPackage {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The caller interrupted the unpacking.
    #[error("interrupted while {path} was unpacked")]
    Interrupted {
        /// The package.
        path: PathBuf,
    },
    /// An entry is damaged, or its path leads out of the package.
    #[error("{path} cannot be unpacked: {cause}")]
    Refused {
        /// The package.
        path: PathBuf,
        /// What, and why.
        cause: io::Error,
    },
    /// The program that unpacks it failed.
    #[error("{path} cannot be unpacked: {cause}")]
    Broken {
        /// The package.
        path: PathBuf,
        /// The program's error.
        cause: ToolError,
    },
}

/// Returns true if a file's name ends like that of a package.
pub(crate) fn is_package(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "deb" || ending == "rpm")
}

/// Names the content of a file in the cache. Not for trust: the package manager verifies what it fetches.
pub(crate) fn content_hash(path: &Path) -> io::Result<u64> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            length => hasher.write(&buffer[..length]),
        }
    }
}

/// Unpacks the files that `place` selects below `tree`, over existing files. Stops when `is_asked` returns true.
pub(crate) fn unpack(
    package: &Path,
    tree: &Path,
    place: Place,
    is_asked: &dyn Fn() -> bool,
) -> Result<(), PackageError> {
    std::fs::create_dir_all(tree).map_err(|cause| PackageError::Io { path: tree.to_owned(), cause })?;
    let mut into = Tree::open(tree, place).map_err(|cause| PackageError::Io { path: tree.to_owned(), cause })?;
    match package.extension() {
        Some(ending) if ending == "rpm" => rpm::unpack(package, &mut into, is_asked),
        _ => deb::unpack(package, &mut into, is_asked),
    }
}

/// Extracts the archive on a program's standard output into a directory.
fn extract(
    package: &Path,
    mut archive: Piped,
    is_asked: &dyn Fn() -> bool,
    take: impl FnOnce(&mut Piped) -> io::Result<()>,
) -> Result<(), PackageError> {
    let taken = take(&mut archive);
    let path = package.to_owned();
    match (taken, is_asked()) {
        (_, true) => Err(PackageError::Interrupted { path }),
        // The program's own error is more useful than the early end of its output.
        (Err(cause), false) if cause.kind() != io::ErrorKind::UnexpectedEof => {
            Err(PackageError::Refused { path, cause })
        }
        (taken, false) => match (archive.finish(), taken) {
            (Err(cause), _) => Err(PackageError::Broken { path, cause }),
            (Ok(()), Err(cause)) => Err(PackageError::Refused { path, cause }),
            (Ok(()), Ok(())) => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests;
