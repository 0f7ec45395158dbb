// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk of real programs in a guest: mounted read-only as `/usr`, with the names beside it that programs
//! and their loader expect, and the few files of `/etc` without which servers do not start.

use super::{GuestError, devices};
use rustix::mount::{MountFlags, mount};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Names in the root directory that are the same as those below `/usr`.
const MERGED: &[&str] = &["bin", "lib", "lib32", "lib64", "sbin"];

/// Everyone is root here.
const ETC: &[(&str, &str)] = &[
    ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"),
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n"),
];

/// Mounts the disk with this serial number.
pub(super) fn mount_disk(serial: &str) -> Result<(), GuestError> {
    let disks = devices::find(&BTreeMap::from([("programs".to_owned(), serial.to_owned())]))?;
    let Some((node, _)) = disks.get("programs") else {
        return Err(GuestError::Missing { what: "the disk of programs".to_owned() });
    };
    let fs_type = crate::programs::FS_TYPE;
    fs::create_dir_all("/usr").map_err(GuestError::at("/usr"))?;
    mount(node, "/usr", fs_type, MountFlags::RDONLY, None).map_err(|errno| GuestError::Mount {
        fs_type: fs_type.to_owned(),
        point: "/usr".to_owned(),
        cause: errno.into(),
    })?;
    for name in MERGED {
        let (root, below) = (format!("/{name}"), format!("/usr/{name}"));
        match (Path::new(&below).exists(), Path::new(&root).exists()) {
            (true, false) => std::os::unix::fs::symlink(&below, &root).map_err(GuestError::at(&root))?,
            // An init that is linked with libraries brought some.
            (true, true) => join(Path::new(&below), Path::new(&root))?,
            (false, _) => {}
        }
    }
    fs::create_dir_all("/etc").map_err(GuestError::at("/etc"))?;
    ETC.iter().try_for_each(|(path, text)| fs::write(path, text).map_err(GuestError::at(path)))
}

/// Adds links to what a directory lacks of another; what it has stays.
fn join(from: &Path, into: &Path) -> Result<(), GuestError> {
    for entry in fs::read_dir(from).map_err(GuestError::at(from))? {
        let entry = entry.map_err(GuestError::at(from))?;
        let (below, here) = (entry.path(), into.join(entry.file_name()));
        match (here.is_dir(), here.exists()) {
            (true, _) if below.is_dir() => join(&below, &here)?,
            (_, true) => {}
            (_, false) => std::os::unix::fs::symlink(&below, &here).map_err(GuestError::at(&here))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_two_programs_are_found_in_one_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (usr, lib) = (dir.path().join("usr"), dir.path().join("lib"));
        for (file, text) in [("usr/x/libc.so", "theirs"), ("usr/x/liba.so", "theirs"), ("lib/x/libc.so", "ours")] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(usr.join("y")).unwrap();
        join(&usr, &lib).unwrap();
        let text = |file: &str| fs::read_to_string(lib.join(file)).unwrap();
        assert_eq!(
            (text("x/libc.so"), text("x/liba.so"), lib.join("y").is_dir()),
            ("ours".into(), "theirs".into(), true)
        );
    }
}
