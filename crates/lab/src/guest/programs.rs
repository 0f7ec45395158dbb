// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk of real programs in a guest: mounted read-only as `/usr`, with the names beside it that programs
//! and their loader expect, and the few files of `/etc` without which servers do not start.

use super::{GuestError, devices};
use rustix::mount::{MountFlags, mount, mount_bind};
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
            // An init that is linked with libraries brought some; the programs' are as good.
            (true, true) => mount_bind(&below, &root).map_err(GuestError::at(&root))?,
            (false, _) => {}
        }
    }
    fs::create_dir_all("/etc").map_err(GuestError::at("/etc"))?;
    ETC.iter().try_for_each(|(path, text)| fs::write(path, text).map_err(GuestError::at(path)))
}
