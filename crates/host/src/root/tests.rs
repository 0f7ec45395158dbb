// SPDX-License-Identifier: MIT OR Apache-2.0
//! A captured tree is untrusted: its links, pipes and names must not lead anywhere.

use super::*;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A tree with a file outside of it, and the root opened with and without the kernel's help.
fn roots(build: impl FnOnce(&Path)) -> (TempDir, [HostRoot; 2]) {
    let outer = tempfile::tempdir().unwrap();
    std::fs::write(outer.path().join("secret"), "secret").unwrap();
    let tree = outer.path().join("tree");
    std::fs::create_dir_all(tree.join("sys/class/bdi")).unwrap();
    std::fs::create_dir_all(tree.join("sys/devices/virtual/bdi/8:0")).unwrap();
    std::fs::write(tree.join("sys/devices/virtual/bdi/8:0/min_ratio"), "3\n").unwrap();
    build(&tree);
    let open = || HostRoot::at(&tree).unwrap();
    let roots = [open(), HostRoot { kernel_resolves: false, ..open() }];
    (outer, roots)
}

#[track_caller]
fn check(roots: &[HostRoot], path: &str, expect: Result<&str, &str>) {
    for root in roots {
        let read = root.read(path, SMALL);
        let shown = read.as_ref().map(|bytes| std::str::from_utf8(bytes).unwrap()).map_err(Cause::to_string);
        assert_eq!(shown, expect.map_err(String::from), "{path}, openat2: {}", root.kernel_resolves);
    }
}

#[test]
fn links_inside_a_captured_tree_are_followed() {
    let (_dir, roots) = roots(|tree| {
        symlink("../../devices/virtual/bdi/8:0", tree.join("sys/class/bdi/8:0")).unwrap();
        symlink("/sys/class", tree.join("absolute")).unwrap();
        symlink("chain2", tree.join("chain1")).unwrap();
        symlink("./absolute/../class", tree.join("chain2")).unwrap();
    });
    check(&roots, "/sys/class/bdi/8:0/min_ratio", Ok("3\n"));
    check(&roots, "sys//class/./bdi/8:0/min_ratio", Ok("3\n"));
    check(&roots, "/absolute/bdi/8:0/min_ratio", Ok("3\n"));
    check(&roots, "/chain1/bdi/8:0/min_ratio", Ok("3\n"));
    check(&roots, "/sys/class/bdi/8:0/absent", Err("does not exist here"));
    check(&roots, "/sys/class/bdi/8:0/min_ratio/below", Err("does not exist here"));
    for root in &roots {
        assert_eq!(root.read_link("/sys/class/bdi/8:0").unwrap(), b"../../devices/virtual/bdi/8:0");
        assert_eq!(root.exists("/sys/class/bdi/8:0/min_ratio"), Ok(true));
        assert_eq!(root.exists("/sys/class/bdi/9:0/min_ratio"), Ok(false));
        assert!(root.read_link("/sys/class").is_err());
    }
}

#[test]
fn no_link_leads_out_of_a_captured_tree() {
    let (outer, roots) = roots(|tree| {
        symlink("../secret", tree.join("up")).unwrap();
        symlink("../../../../../../../secret", tree.join("sys/up")).unwrap();
        symlink("..", tree.join("dotdot")).unwrap();
        symlink("/proc/self/cwd", tree.join("magic")).unwrap();
        symlink("circle", tree.join("circle")).unwrap();
    });
    symlink(outer.path().join("secret"), outer.path().join("tree/absolute")).unwrap();
    for path in ["/up", "/sys/up", "/absolute", "/dotdot/secret", "/../secret", "/magic/Cargo.toml"] {
        check(&roots, path, Err("does not exist here"));
    }
    check(&roots, "/circle", Err("invalid content, expected a path without a circle of links"));
}

#[test]
fn only_regular_files_are_read_and_nothing_blocks() {
    let (_dir, roots) = roots(|tree| {
        rustix::fs::mkfifoat(rustix::fs::CWD, tree.join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
        symlink("pipe", tree.join("link")).unwrap();
        std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
    });
    for path in ["/pipe", "/link", "/socket", "/sys", "/"] {
        check(&roots, path, Err("invalid content, expected a regular file"));
    }
    assert_eq!(roots[0].dir(b"/pipe").unwrap_err(), Fault::NotDirectory);
    assert_eq!(roots[0].dir(b"/").unwrap().open_file(b"pipe").unwrap_err(), Fault::NotRegular);
}

#[test]
fn a_file_longer_than_its_limit_is_not_read_to_the_end() {
    let (_dir, roots) = roots(|tree| {
        std::fs::write(tree.join("fits"), vec![b'x'; SMALL]).unwrap();
        std::fs::File::create(tree.join("huge")).unwrap().set_len(1 << 40).unwrap();
    });
    for root in &roots {
        assert_eq!(root.read("/fits", SMALL).map(|bytes| bytes.len()), Ok(SMALL));
        assert_eq!(root.read("/huge", SMALL), Err(Cause::TooLarge { limit_bytes: SMALL as u64 }));
    }
}

#[test]
fn a_read_in_one_piece_sees_the_whole_file_whatever_its_length() {
    let (_dir, roots) = roots(|_| {});
    let path = _dir.path().join("tree/file");
    for length in [0, 1, 4095, 4096, 4097, 8192, 20_000] {
        std::fs::write(&path, vec![b'x'; length]).unwrap();
        let file = roots[0].file(b"/file").unwrap();
        let mut content = vec![b'y'; 7];
        file.read_piece(&mut content, SMALL).unwrap();
        assert_eq!(content.len(), length);
        assert_eq!(file.read_piece(&mut content, 100).is_err(), length > 100);
    }
}

#[test]
fn directories_with_hostile_names_are_listed() {
    let long = "n".repeat(255);
    let names = ["\x1b[31m", "a\nb", "..evil", long.as_str()];
    let (_dir, roots) = roots(|tree| {
        std::fs::create_dir(tree.join("names")).unwrap();
        for name in names {
            std::fs::create_dir(tree.join("names").join(name)).unwrap();
        }
    });
    for root in &roots {
        let listed = root.list_dir("/names").unwrap();
        let mut expect: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        expect.sort();
        assert_eq!(listed.iter().map(|entry| &*entry.name).collect::<Vec<_>>(), expect);
        assert!(listed.iter().all(|entry| entry.kind == EntryKind::Dir));
        let dir = root.open_dir("/names").unwrap();
        assert!(dir.open_dir(b"..evil").is_ok());
        assert_eq!(dir.open_dir(b"..").unwrap_err(), Errno::INVAL.into());
        assert_eq!(dir.open_file(b"../sys").unwrap_err(), Errno::INVAL.into());
    }
}

#[test]
fn a_removed_directory_lists_as_empty() {
    let (outer, roots) = roots(|tree| std::fs::create_dir(tree.join("gone")).unwrap());
    let dir = roots[0].open_dir("/gone").unwrap();
    std::fs::remove_dir(outer.path().join("tree/gone")).unwrap();
    let mut seen = 0;
    dir.list(|_| seen += 1).unwrap();
    assert_eq!(seen, 0);
    assert!(dir.open_file(b"memory.stat").unwrap_err().is_gone());
}

#[test]
fn the_live_machine_is_read_through_the_same_door() {
    let root = HostRoot::live().unwrap();
    assert!(root.is_live());
    assert_eq!(root.fs_kind("/proc"), Ok(FsKind::Proc));
    assert!(root.read("/proc/self/stat", SMALL).unwrap().contains(&b'('));
    assert_eq!(root.read("/proc/self/stat", 3), Err(Cause::TooLarge { limit_bytes: 3 }));
    assert!(root.list_dir("/proc").unwrap().iter().any(|entry| &*entry.name == b"self"));
}

#[test]
fn what_is_not_a_tree_is_refused_with_its_name_escaped() {
    let missing = HostRoot::at(Path::new("/no/such\n")).unwrap_err();
    assert_eq!(missing.to_string(), "cannot open /no/such\\x0a as the root of a host: does not exist here");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let file = HostRoot::at(&dir.path().join("file")).unwrap_err();
    assert_eq!(file.cause, Cause::Malformed { what: "a directory".into() });
}
