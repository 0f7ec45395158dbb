// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk of real programs in a guest: mounted read-only as `/usr`, with the names beside it that programs
//! and their loader expect, and the few files of `/etc` without which servers do not start.

use super::{GuestError, devices};
use floodline_scenario::Scenario;
use rustix::mount::{MountFlags, mount};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Names in the root directory that are the same as those below `/usr`.
const MERGED: &[&str] = &["bin", "lib", "lib32", "lib64", "sbin"];

/// Files of `/etc`. Programs run as root unless the scenario names another user.
const ETC: &[(&str, &str)] =
    &[("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"), ("/etc/hosts", "127.0.0.1 localhost\n")];

/// Uid and gid of the first user that a scenario names. Debian numbers users from 1000.
const FIRST_USER: u32 = 1000;

/// The lines of `passwd` and `group` with these users, each with a group of its own.
fn accounts<'a>(users: impl IntoIterator<Item = &'a str>) -> (String, String) {
    let mut passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n".to_owned();
    let mut group = "root:x:0:\nnogroup:x:65534:\n".to_owned();
    let is_new = |user: &&str| !passwd.lines().any(|line| line.split(':').next() == Some(*user));
    let users: BTreeSet<&str> = users.into_iter().filter(is_new).collect();
    for (id, user) in (FIRST_USER..).zip(users) {
        passwd.push_str(&format!("{user}:x:{id}:{id}:{user}:/:/bin/sh\n"));
        group.push_str(&format!("{user}:x:{id}:\n"));
    }
    (passwd, group)
}

/// Mounts the disk with this serial number, and makes the users of the scenario's programs.
pub(super) fn mount_disk(serial: &str, scenario: &Scenario) -> Result<(), GuestError> {
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
            // A dynamically linked init has brought its libraries.
            (true, true) => join(Path::new(&below), Path::new(&root))?,
            (false, _) => {}
        }
    }
    fs::create_dir_all("/etc").map_err(GuestError::at("/etc"))?;
    let programs = scenario.workload.tasks.values().filter_map(|task| task.program.as_ref());
    let (passwd, group) = accounts(programs.filter_map(|program| program.user.as_deref()));
    for (path, text) in [("/etc/passwd", passwd), ("/etc/group", group)] {
        fs::write(path, text).map_err(GuestError::at(path))?;
    }
    ETC.iter().try_for_each(|(path, text)| fs::write(path, text).map_err(GuestError::at(path)))
}

/// Adds links for the entries of `from` that `into` lacks. Existing entries are kept.
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
    fn every_user_of_a_scenario_has_ids_of_its_own() {
        let (passwd, group) = accounts(["web", "root", "db", "web"]);
        let of = |text: &str| text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(of(&passwd), ["db:x:1000:1000:db:/:/bin/sh", "web:x:1001:1001:web:/:/bin/sh"]);
        assert_eq!(of(&group), ["db:x:1000:", "web:x:1001:"]);
    }

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
