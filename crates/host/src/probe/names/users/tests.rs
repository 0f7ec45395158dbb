// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a local user can put in the way of root. A pipe stands for a device: opening it is what must not
//! happen, and inotify sees every open.

use super::*;
use crate::root::HostRoot;
use rustix::fs::{CWD, Mode, inotify};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const LIST: &str = ".local/share/containers/storage/overlay-containers/containers.json";
const EXT4: &str = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n";

/// A machine with a home, its mounts, and the path of the list in the home of "ada".
struct Machine {
    tree: TempDir,
    list: PathBuf,
}

impl Machine {
    fn new(mountinfo: &str) -> Machine {
        let tree = tempfile::tempdir().unwrap();
        let list = tree.path().join("home/ada").join(LIST);
        fs::create_dir_all(list.parent().unwrap()).unwrap();
        fs::create_dir_all(tree.path().join("proc/self")).unwrap();
        fs::write(tree.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        Machine { tree, list }
    }

    fn uid(&self) -> u32 {
        fs::metadata(self.tree.path().join("home/ada")).unwrap().uid()
    }

    /// What is found when the tree is taken for the live machine: names, and the gaps as they are shown.
    fn probe(&self) -> (Vec<(u32, String)>, Vec<String>) {
        self.probe_as(&HostRoot::as_if_live(self.tree.path()))
    }

    fn probe_as(&self, root: &HostRoot) -> (Vec<(u32, String)>, Vec<String>) {
        let mut prober = Prober { root, facts: Default::default(), gaps: Vec::new() };
        crate::probe::mounts::probe(&mut prober);
        prober.gaps.clear();
        probe(&mut prober);
        let names = prober.facts.user_container_names.iter();
        let names = names.flat_map(|(uid, names)| names.values().map(|name| (*uid, name.to_string()))).collect();
        (names, prober.gaps.iter().map(|gap| gap.cause.to_string()).collect())
    }

    #[track_caller]
    fn check_refused(&self, expect: &str) {
        assert_eq!(self.probe(), (Vec::new(), vec![expect.to_owned()]));
    }
}

fn list(name: &str) -> String {
    format!(r#"[{{"id":"{ID}","names":["{name}"]}}]"#)
}

/// A pipe, and a watch that sees whether anybody opens it.
fn watched_pipe(path: &Path) -> impl FnOnce() -> bool + use<> {
    rustix::fs::mkfifoat(CWD, path, Mode::from_raw_mode(0o600)).unwrap();
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN).unwrap();
    move || rustix::io::read(&watch, &mut [0_u8; 4096]).is_ok()
}

#[test]
fn a_users_own_list_names_that_users_containers() {
    let machine = Machine::new(EXT4);
    fs::write(&machine.list, list("toolbox")).unwrap();
    assert_eq!(machine.probe(), (vec![(machine.uid(), "toolbox".to_owned())], Vec::new()));

    let once = Machine::new(EXT4);
    let folder = once.tree.path().join(format!("run/user/{}/containers/overlay-containers", once.uid()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("volatile-containers.json"), list("once")).unwrap();
    assert_eq!(once.probe(), (vec![(once.uid(), "once".to_owned())], Vec::new()));
}

#[test]
fn a_pipe_or_device_in_the_place_of_a_list_is_never_opened() {
    let linked = Machine::new(EXT4);
    let was_opened = watched_pipe(&linked.tree.path().join("device"));
    symlink(linked.tree.path().join("device"), &linked.list).unwrap();
    linked.check_refused("refused: a symbolic link is on the way to a user's file");
    assert!(!was_opened());

    let direct = Machine::new(EXT4);
    let was_opened = watched_pipe(&direct.list);
    direct.check_refused("invalid content, expected a regular file");
    assert!(!was_opened());

    // The watch does see an open.
    let was_opened = watched_pipe(&direct.tree.path().join("other"));
    drop(rustix::fs::open(direct.tree.path().join("other"), rustix::fs::OFlags::NONBLOCK, Mode::empty()));
    assert!(was_opened());
}

#[test]
fn a_link_in_any_component_below_the_home_is_refused() {
    let machine = Machine::new(EXT4);
    fs::write(&machine.list, list("of ada")).unwrap();
    fs::create_dir(machine.tree.path().join("home/eve")).unwrap();
    symlink("../ada/.local", machine.tree.path().join("home/eve/.local")).unwrap();
    let (names, gaps) = machine.probe();
    assert_eq!(names, [(machine.uid(), "of ada".to_owned())]);
    assert_eq!(gaps, ["refused: a symbolic link is on the way to a user's file"]);
}

#[test]
fn a_file_of_another_user_is_refused() {
    let machine = Machine::new(EXT4);
    fs::write(&machine.list, list("toolbox")).unwrap();
    let mounts = Vec::new();
    let tree = HostRoot::at(machine.tree.path()).unwrap();
    for with_openat2 in [true, false] {
        let home = tree.find_dir(b"/home/ada", &MountPoints::new(&tree, &mounts)).unwrap();
        let home = home.with_openat2(with_openat2);
        let refused = home.read_owned(LIST.as_bytes(), machine.uid() + 1, CONFIG_MAX).unwrap_err();
        let expect = format!("refused: user {} owns it, not user {}", machine.uid(), machine.uid() + 1);
        assert_eq!(refused.to_string(), expect);
        assert!(home.read_owned(LIST.as_bytes(), machine.uid(), CONFIG_MAX).is_ok());
    }
    // A folder below /run/user that belongs to another user than its name says.
    let stranger = Machine::new(EXT4);
    let other = stranger.uid() + 1;
    fs::create_dir_all(stranger.tree.path().join(format!("run/user/{other}"))).unwrap();
    stranger.check_refused(&format!("refused: user {} owns it, not user {other}", stranger.uid()));
}

#[test]
fn links_and_other_files_are_refused_without_openat2_too() {
    let machine = Machine::new(EXT4);
    fs::write(&machine.list, list("toolbox")).unwrap();
    let at = |name: &str| machine.tree.path().join("home/ada").join(name);
    let was_opened = watched_pipe(&at("pipe"));
    symlink("pipe", at("link")).unwrap();
    symlink(".local", at("folder")).unwrap();
    let mounts = Vec::new();
    let tree = HostRoot::at(machine.tree.path()).unwrap();
    for with_openat2 in [true, false] {
        let home = tree.find_dir(b"/home/ada", &MountPoints::new(&tree, &mounts)).unwrap();
        let home = home.with_openat2(with_openat2);
        let check = |path: &str, expect: &str| {
            let refused = home.read_owned(path.as_bytes(), machine.uid(), CONFIG_MAX).unwrap_err();
            assert_eq!(refused.to_string(), expect, "{path}, openat2: {with_openat2}");
        };
        check("link", "refused: a symbolic link is on the way to a user's file");
        check(&LIST.replacen(".local", "folder", 1), "refused: a symbolic link is on the way to a user's file");
        check("pipe", "invalid content, expected a regular file");
        check(".local", "invalid content, expected a regular file");
        check("none", "does not exist here");
        assert!(home.read_owned(b"../../proc/self/mountinfo", machine.uid(), CONFIG_MAX).is_err());
    }
    assert!(!was_opened());
    // Another mount below a directory, as a user's FUSE filesystem is.
    let mounts = Vec::new();
    let live = HostRoot::at(Path::new("/")).unwrap();
    for with_openat2 in [true, false] {
        let top = live.find_dir(b"/", &MountPoints::new(&live, &mounts)).unwrap().with_openat2(with_openat2);
        let refused = top.read_owned(b"proc/version", 0, CONFIG_MAX).unwrap_err();
        assert_eq!(refused.to_string(), "refused: a mount is on the way to a user's file");
    }
}

#[test]
fn a_directory_or_a_huge_file_in_the_place_of_a_list_is_refused() {
    let directory = Machine::new(EXT4);
    fs::create_dir(&directory.list).unwrap();
    directory.check_refused("invalid content, expected a regular file");
    let huge = Machine::new(EXT4);
    fs::File::create(&huge.list).unwrap().set_len(1 << 40).unwrap();
    huge.check_refused("longer than 1048576 bytes");
}

#[test]
fn homes_that_can_hang_are_not_touched() {
    let check = |mountinfo: &str, expect: &str| {
        let machine = Machine::new(&format!("{EXT4}{mountinfo}"));
        fs::write(&machine.list, list("toolbox")).unwrap();
        machine.check_refused(&format!("refused: looking up files on {expect} can block, so Floodline does not try"));
    };
    check("21 20 0:44 / /home rw - nfs4 server:/home rw\n", "nfs4");
    check("21 20 0:44 / /home/ada rw - cifs //server/ada rw\n", "cifs");
    check("21 20 0:44 / /home rw - autofs auto.home rw\n", "autofs");
    check("21 20 0:44 / /home/ada rw - fuse.sshfs ada@server: rw\n", "fuse.sshfs");
    // An automount point that something local was mounted on.
    let mounted =
        Machine::new(&format!("{EXT4}21 20 0:44 / /home rw - autofs a rw\n22 21 8:2 / /home rw - xfs b rw\n"));
    fs::write(&mounted.list, list("toolbox")).unwrap();
    assert_eq!(mounted.probe().1, Vec::<String>::new());
    // A link of root's that leads to such a place.
    let linked = Machine::new(&format!("{EXT4}21 20 0:44 / /net rw - nfs server:/ rw\n"));
    fs::rename(linked.tree.path().join("home"), linked.tree.path().join("net")).unwrap();
    symlink("/net", linked.tree.path().join("home")).unwrap();
    let tree = HostRoot::at(linked.tree.path()).unwrap();
    assert_eq!(linked.probe_as(&tree).1, ["refused: looking up files on nfs can block, so Floodline does not try"]);
}

#[test]
fn without_a_list_of_mounts_no_home_of_a_live_machine_is_touched() {
    let machine = Machine::new("");
    fs::write(&machine.list, list("toolbox")).unwrap();
    let expect = "refused: the list of mounts is missing, and a lookup on a network filesystem can block";
    assert_eq!(machine.probe(), (Vec::new(), vec![expect.to_owned(), expect.to_owned()]));
}

#[test]
fn a_captured_home_belongs_to_the_user_of_the_captured_machine() {
    let machine = Machine::new(EXT4);
    fs::write(&machine.list, list("toolbox")).unwrap();
    fs::create_dir(machine.tree.path().join("etc")).unwrap();
    fs::write(machine.tree.path().join("etc/passwd"), "root:x:0:0::/root:\nada:x:1017:1017:,,,:/home/ada:/bin/sh\n")
        .unwrap();
    let tree = HostRoot::at(machine.tree.path()).unwrap();
    assert_eq!(machine.probe_as(&tree), (vec![(1017, "toolbox".to_owned())], Vec::new()));
}
