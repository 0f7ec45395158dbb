// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real programs for guests: packages of this machine's own distribution with the libraries they need, made
//! into a read-only disk that a guest mounts as its `/usr`. Made once for the same packages and kept.
//! Nothing of a package is run or installed here, and its configuration is left out.

use crate::apt::{AptError, Part, Source};
use crate::cache::{Cache, CacheError};
use crate::kernels::Fetching;
use crate::kernels::PackageError;
use crate::package;
use crate::tool::{self, ToolError};
use floodline_scenario::Scenario;
use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// Filesystem of the disk: every kernel that we run has it.
pub(crate) const FS_TYPE: &str = "ext4";

/// The disk could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    /// The packages could not be had.
    #[error(transparent)]
    Apt(#[from] AptError),
    /// A package could not be unpacked.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The filesystem could not be made.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// Packages of a scenario's real programs.
pub(crate) fn packages(scenario: &Scenario) -> BTreeSet<String> {
    let programs = scenario.workload.tasks.values().filter_map(|task| task.program.as_ref());
    programs.flat_map(|program| program.all_packages().map(str::to_owned)).collect()
}

/// The disk with some packages; from the cache where it is there.
pub(crate) fn disk(
    cache: &Cache,
    packages: &BTreeSet<String>,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<PathBuf, ProgramsError> {
    let source = Source::own(cache)?;
    tell(&Fetching::Needs);
    let parts = source.with_libraries(packages)?;
    let kept = cache.dir("programs")?.join(name(packages, &parts));
    if kept.exists() {
        return Ok(kept);
    }
    let scratch = cache.scratch()?;
    let usr = scratch.path().join("usr");
    unpack(&source, &parts, (scratch.path(), &usr), below_usr, tell, is_asked)?;
    let disk = scratch.path().join("disk");
    make(&usr, &disk, is_asked)?;
    // If another process was faster, its disk is the same.
    fs::rename(&disk, &kept).map_err(CacheError::at(&kept))?;
    Ok(kept)
}

/// Downloads packages into one directory and unpacks them into another one. `place` maps a file to its place, if any.
pub(crate) fn unpack(
    source: &Source,
    parts: &[Part],
    (downloads, tree): (&Path, &Path),
    place: fn(&Path) -> Option<PathBuf>,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<(), ProgramsError> {
    for file in source.download(parts, downloads, tell, is_asked)? {
        tell(&Fetching::Unpack { package: file.file_stem().unwrap_or_default().to_string_lossy().into_owned() });
        package::unpack(&file, tree, place, is_asked)?;
    }
    Ok(())
}

/// Most characters of a name's part for people: a file's name has its limit.
const NAME_MAX: usize = 100;

/// Name in the cache: for people the packages, for us the content of all parts.
pub(crate) fn name(packages: &BTreeSet<String>, parts: &[Part]) -> String {
    let mut hasher = DefaultHasher::new();
    parts.iter().for_each(|part| part.sha256.hash(&mut hasher));
    let names = packages.iter().map(String::as_str).collect::<Vec<_>>().join("-");
    let names: String = names.chars().take(NAME_MAX).collect();
    format!("{names}-{:016x}", hasher.finish())
}

/// Directories of a package that are the same as those of that name below `/usr`.
pub(crate) const MERGED: &[&str] = &["bin", "lib", "lib32", "lib64", "sbin"];
/// What no program needs to run, below `/usr`.
const LEFT_OUT: &[&str] = &["share/doc", "share/man", "share/locale", "share/lintian", "share/bug", "include"];

/// Where a file of a package is below `/usr`. What is elsewhere, such as configuration, is left out.
pub(crate) fn below_usr(path: &Path) -> Option<PathBuf> {
    let first = path.components().next()?;
    if MERGED.iter().any(|dir| first.as_os_str() == *dir) {
        return Some(path.to_owned());
    }
    let place = path.strip_prefix("usr").ok()?;
    (!LEFT_OUT.iter().any(|dir| place.starts_with(dir))).then(|| place.to_owned())
}

/// Makes a filesystem with what is in a directory.
fn make(from: &Path, disk: &Path, is_asked: &dyn Fn() -> bool) -> Result<(), ProgramsError> {
    let used = room(from).map_err(CacheError::at(from))?;
    let kib = (used + used / 8 + (8 << 20)) >> 10;
    let mut mkfs = tool::bound("mkfs.ext4");
    // No journal, because the disk is read-only in guests. An inode for every block, because many files are small.
    mkfs.args(["-q", "-O", "^has_journal", "-m", "0", "-b", "4096", "-i", "4096", "-d"]).arg(from).arg(disk);
    Ok(tool::finish(mkfs.arg(format!("{kib}k")), is_asked)?)
}

/// Bytes that files and directories take, in blocks, inodes included.
fn room(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        bytes += 256
            + match entry.file_type()? {
                kind if kind.is_dir() => 4096 + room(&entry.path())?,
                kind if kind.is_file() => entry.metadata()?.len().next_multiple_of(4096),
                _ => 0,
            };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_package_has_its_place_below_usr_or_is_left_out() {
        let check = |path: &str, expect: Option<&str>| {
            assert_eq!(below_usr(Path::new(path)).as_deref(), expect.map(Path::new), "{path}");
        };
        check("lib/x/libc.so", Some("lib/x/libc.so"));
        check("usr/lib/x/liba.so", Some("lib/x/liba.so"));
        check("usr/sbin/server", Some("sbin/server"));
        check("usr/share/doc/a/b", None);
        check("etc/server.conf", None);
        check("usr", Some(""));
        check("", None);
    }

    #[test]
    fn a_disk_has_the_files_of_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let usr = dir.path().join("usr");
        fs::create_dir_all(usr.join("sbin")).unwrap();
        fs::write(usr.join("sbin/server"), "usr/sbin/server").unwrap();
        let disk = dir.path().join("disk");
        make(&usr, &disk, &|| false).unwrap();
        assert!(fs::metadata(&disk).unwrap().len() >= 8 << 20);
        assert!(!fs::read(&disk).unwrap().windows(16).all(|bytes| bytes != b"usr/sbin/server\0"));
    }
}
