// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks kernel packages into a directory with the distribution's own programs. Nothing of a package
//! is run, and nothing is installed.

use super::KernelError;
use crate::tool::{self, ToolError};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;

/// Whether a file's name says that it is a package.
pub(super) fn is_package(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "deb" || ending == "rpm")
}

/// Names the content of a file in the cache. Not for trust: the package manager verifies what it fetches.
pub(super) fn content_hash(path: &Path) -> io::Result<u64> {
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

/// Unpacks a package below `tree`, over what is there.
pub(super) fn unpack(package: &Path, tree: &Path) -> Result<(), KernelError> {
    std::fs::create_dir_all(tree).map_err(|cause| KernelError::Io { path: tree.to_owned(), cause })?;
    match package.extension() {
        Some(ending) if ending == "rpm" => unpack_rpm(package, tree)?,
        _ => drop(tool::output(tool::tool("dpkg-deb").arg("--extract").arg(package).arg(tree))?),
    }
    Ok(())
}

fn unpack_rpm(package: &Path, tree: &Path) -> Result<(), ToolError> {
    let mut convert = tool::tool("rpm2cpio");
    convert.arg(package).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut converting = convert.spawn().map_err(|cause| tool::not_run(&convert, cause))?;
    let mut unpack = tool::tool("cpio");
    unpack.args(["--extract", "--make-directories", "--quiet", "--no-absolute-filenames"]).current_dir(tree);
    if let Some(archive) = converting.stdout.take() {
        unpack.stdin(archive);
    }
    let unpacked = tool::output(&mut unpack);
    let status = converting.wait().map_err(|cause| tool::not_run(&convert, cause))?;
    unpacked?;
    match status.success() {
        true => Ok(()),
        false => Err(ToolError::Failed {
            tool: "rpm2cpio".to_owned(),
            status: status.to_string(),
            says: format!("{} is not a package it can read", package.display()),
        }),
    }
}
