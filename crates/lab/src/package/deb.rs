// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks a `.deb`: `dpkg-deb` puts its files out as a tar archive, which is read here.

use super::tree::Tree;
use super::{PackageError, cpio::NAME_MAX, extract};
use crate::tool;
use std::io::{self, Read};
use std::path::Path;
use tar::EntryType;

/// Unpacks a package into a directory.
pub(super) fn unpack(package: &Path, into: &mut Tree, is_asked: &dyn Fn() -> bool) -> Result<(), PackageError> {
    let broken = |cause| PackageError::Broken { path: package.to_owned(), cause };
    let mut dpkg = tool::bound("dpkg-deb");
    let archive = tool::piped(dpkg.arg("--fsys-tarfile").arg("--").arg(package), None).map_err(broken)?;
    extract(package, archive, is_asked, |archive| files(archive, into, is_asked))
}

/// Takes the files of a tar archive.
fn files(archive: &mut dyn Read, into: &mut Tree, is_asked: &dyn Fn() -> bool) -> io::Result<()> {
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        let name = entry.path_bytes().into_owned();
        let target = entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default();
        if name.len().max(target.len()) as u64 > NAME_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a name is longer than a path can be"));
        }
        match entry.header().entry_type() {
            EntryType::Directory => into.dir(&name)?,
            EntryType::Regular | EntryType::Continuous => {
                let mode = entry.header().mode()?;
                into.file(&name, mode, &mut entry, is_asked)?;
            }
            EntryType::Symlink => into.link(&name, &target)?,
            EntryType::Link => into.hard_link(&name, &target)?,
            // Devices, pipes and what else no program needs.
            _ => {}
        }
    }
    Ok(())
}
