// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks from which a guest boots a whole system with systemd as its init: Debian's own packages, unpacked and never
//! installed. One is made for the same packages and kept; a copy of it belongs to the caller and keeps what guests
//! write. A guest whose power is cut loses what it had not written, and nothing else.

use crate::apt::{Mirror, Source};
use crate::cache::{Cache, CacheError};
use crate::kernels::Fetching;
use crate::programs::{self, ProgramsError};
use crate::qemu::{Disk, Throttle};
use crate::tool;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Serial number of the disk.
pub(crate) const SERIAL: &str = "root";

/// A file in the root directory of a disk that no guest has booted from: its files belong to the user that made it.
pub(crate) const FRESH: &str = ".never-booted";

/// What a system needs besides programs that a user asks for.
const PACKAGES: &[&str] = &["base-files", "systemd", "udev"];

/// Size of the disk; holes take no room on the host.
const SIZE: &str = "2G";

/// What Debian makes when it installs. `machine-id` is filled at the first boot.
const FILES: &[(&str, &str)] = &[
    ("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nmessagebus:x:100:106::/nonexistent:/usr/sbin/nologin\n"),
    (
        "etc/group",
        "root:x:0:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nlp:x:7:\nkmem:x:15:\ndialout:x:20:\ncdrom:x:24:\ntape:x:26:\n\
         audio:x:29:\nshadow:x:42:\nutmp:x:43:\nvideo:x:44:\nusers:x:100:\nsystemd-journal:x:101:\ninput:x:102:\n\
         kvm:x:103:\nrender:x:104:\nsgx:x:105:\nmessagebus:x:106:\nnogroup:x:65534:\n",
    ),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("etc/hosts", "127.0.0.1 localhost\n"),
    ("etc/hostname", "lab\n"),
    ("etc/fstab", ""),
    ("etc/machine-id", ""),
    (FRESH, ""),
];

/// Links that Debian makes when it installs. The last ones switch off what would wait for a person.
const LINKS: &[(&str, &str)] = &[
    ("usr/bin", "bin"),
    ("usr/sbin", "sbin"),
    ("usr/lib", "lib"),
    ("usr/lib64", "lib64"),
    ("mawk", "usr/bin/awk"),
    ("/run", "var/run"),
    ("/dev/null", "etc/systemd/system/serial-getty@.service"),
    ("/dev/null", "etc/systemd/system/getty@.service"),
];

const DIRS: &[&str] = &["dev", "proc", "sys", "run", "tmp", "root", "tools", "var/log", "var/tmp", "etc/sysctl.d"];

/// A whole system with systemd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// Its disk, made where it is missing. It keeps what the guest writes.
    pub disk: PathBuf,
    /// Suite whose packages a new disk gets, such as `trixie`; `None` is what this machine follows.
    pub suite: Option<String>,
    /// Whether the guest ends by a power cut, not by a shutdown.
    pub power_cut: bool,
}

/// The disk, made where it is missing.
pub(crate) fn disk(
    cache: &Cache,
    system: &System,
    packages: &BTreeSet<String>,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<Disk, ProgramsError> {
    prepare(cache, system, packages, tell, is_asked)?;
    let throttle = Throttle::default();
    Ok(Disk { path: system.disk.clone(), serial: SERIAL.to_owned(), throttle, read_only: false })
}

fn prepare(
    cache: &Cache,
    system: &System,
    packages: &BTreeSet<String>,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<(), ProgramsError> {
    let disk = &system.disk;
    match fs::metadata(disk) {
        Ok(file) if file.is_file() && file.len() > 0 => return Ok(()),
        Ok(_) => {
            let cause = io::Error::new(io::ErrorKind::InvalidInput, "this is not the disk of a guest");
            return Err(CacheError::Io { path: disk.to_owned(), cause }.into());
        }
        Err(_) => {}
    }
    let source = source(cache, system.suite.as_deref(), tell, is_asked)?;
    let kept = kept(cache, &source, packages, tell, is_asked)?;
    tell(&Fetching::Unpack { package: disk.display().to_string() });
    copy(&kept, disk).map_err(|cause| {
        // Half a disk would be taken for a whole one.
        let _ = fs::remove_file(disk);
        CacheError::at(disk)(cause).into()
    })
}

/// Where the packages come from: what this machine follows, or a suite of the same mirror.
fn source(
    cache: &Cache,
    suite: Option<&str>,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<Source, ProgramsError> {
    let Some(suite) = suite else { return Ok(Source::own(cache)?) };
    let source = Mirror::of_this_machine()?.private_source(cache, suite)?;
    if source.is_stale() {
        tell(&Fetching::Lists { suite: suite.to_owned() });
        source.update(is_asked)?;
    }
    Ok(source)
}

/// The disk with some packages as it is before the first boot; from the cache where it is there.
fn kept(
    cache: &Cache,
    source: &Source,
    packages: &BTreeSet<String>,
    tell: &mut dyn FnMut(&Fetching),
    is_asked: &dyn Fn() -> bool,
) -> Result<PathBuf, ProgramsError> {
    tell(&Fetching::Needs);
    let wanted = packages.iter().cloned().chain(PACKAGES.iter().map(|package| (*package).to_owned())).collect();
    let parts = source.with_libraries(&wanted)?;
    let kept = cache.dir("roots")?.join(programs::name(packages, &parts));
    if kept.exists() {
        return Ok(kept);
    }
    let scratch = cache.scratch()?;
    let tree = scratch.path().join("root");
    programs::unpack(source, &parts, (scratch.path(), &tree), below_root, tell, is_asked)?;
    furnish(&tree).map_err(CacheError::at(&tree))?;
    let disk = scratch.path().join("disk");
    let mut mkfs = tool::bound("mkfs.ext4");
    mkfs.args(["-q", "-m", "0", "-b", "4096", "-J", "size=16", "-E", "root_owner=0:0", "-d"]).arg(&tree).arg(&disk);
    tool::finish(mkfs.arg(SIZE), is_asked)?;
    // Another lab may have been faster; its disk is the same.
    fs::rename(&disk, &kept).map_err(CacheError::at(&kept))?;
    Ok(kept)
}

/// Where a file of a package is in a system: programs below `/usr`, all else where the package has it. The links from
/// `/bin` to `/usr/bin` and the like, which Debian 13 has in a package, are made here for every release.
fn below_root(path: &Path) -> Option<PathBuf> {
    if programs::MERGED.iter().any(|dir| path == Path::new(dir)) {
        return None;
    }
    match programs::below_usr(path) {
        Some(place) => Some(Path::new("usr").join(place)),
        None => (!path.starts_with("usr")).then(|| path.to_owned()),
    }
}

/// Adds what Debian makes when it installs.
fn furnish(tree: &Path) -> io::Result<()> {
    DIRS.iter().try_for_each(|dir| fs::create_dir_all(tree.join(dir)))?;
    for (path, text) in FILES {
        fs::write(tree.join(path), text)?;
    }
    for (target, link) in LINKS {
        let path = tree.join(link);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        match symlink(target, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    Ok(())
}

/// Copies a file, with holes where it has nothing but zeroes.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create_new(to)?);
    let mut block = vec![0; 64 << 10];
    loop {
        match from.read(&mut block)? {
            0 => break,
            length => match block.get(..length).unwrap_or_default() {
                zeroes if zeroes.iter().all(|byte| *byte == 0) => {
                    to.seek(SeekFrom::Current(i64::try_from(length).unwrap_or(0)))?;
                }
                bytes => to.write_all(bytes)?,
            },
        }
    }
    to.set_len(from.stream_position()?)?;
    to.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_package_has_its_place_in_a_system() {
        let check = |path: &str, expect: Option<&str>| {
            assert_eq!(below_root(Path::new(path)).as_deref(), expect.map(Path::new), "{path}");
        };
        check("lib/systemd/systemd", Some("usr/lib/systemd/systemd"));
        check("usr/bin/bash", Some("usr/bin/bash"));
        check("etc/issue", Some("etc/issue"));
        check("libexec/a", Some("libexec/a"));
        check("usr/share/doc/a", None);
        check("bin", None);
        check("lib64", None);
        check("var/lib/dpkg", Some("var/lib/dpkg"));
    }

    #[test]
    fn a_copy_has_the_same_bytes_and_holes_for_zeroes() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        let mut bytes = vec![0; 5 << 20];
        bytes[1 << 20] = 7;
        fs::write(&from, &bytes).unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), bytes);
        assert!(fs::metadata(&to).unwrap().blocks() * 512 < 1 << 20);
        assert!(copy(&from, &to).is_err(), "a disk that is there stays as it is");
    }
}
