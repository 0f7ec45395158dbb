// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks packages into a directory, with programs that every distribution has. Nothing of a package is run,
//! and nothing is installed.

mod rpm;

use crate::tool::{self, ToolError};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

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
    /// It is no package at all.
    #[error("{path} is not a package: {what}")]
    NotAPackage {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Somebody asked to end.
    #[error("interrupted while {path} was unpacked")]
    Interrupted {
        /// The package.
        path: PathBuf,
    },
    /// The program that unpacks it failed.
    #[error("{path} cannot be unpacked: {cause}")]
    Broken {
        /// The package.
        path: PathBuf,
        /// What the program said.
        cause: ToolError,
    },
}

/// Whether a file's name says that it is a package.
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

/// Unpacks a package below `tree`, over what is there, unless somebody wants to end meanwhile.
pub(crate) fn unpack(package: &Path, tree: &Path, is_asked: &dyn Fn() -> bool) -> Result<(), PackageError> {
    std::fs::create_dir_all(tree).map_err(|cause| PackageError::Io { path: tree.to_owned(), cause })?;
    let unpacked = match package.extension() {
        Some(ending) if ending == "rpm" => return rpm::unpack(package, tree),
        _ => tool::finish(tool::bound("dpkg-deb").arg("--extract").arg(package).arg(tree), is_asked),
    };
    unpacked.map_err(|cause| match cause {
        ToolError::Interrupted { .. } => PackageError::Interrupted { path: package.to_owned() },
        cause => PackageError::Broken { path: package.to_owned(), cause },
    })
}
