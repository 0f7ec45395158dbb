// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages from strangers: whatever their archives say, nothing is written, removed or moved outside of the
//! directory that they are unpacked into, and no file of the host gets into it.

use super::*;
use crate::tool;
use std::fs;
use tar::{Builder, EntryType, Header};

/// A piece of an archive.
#[derive(Clone, Copy)]
enum Piece {
    Dir(&'static str),
    File(&'static str, &'static [u8]),
    /// Name, target.
    Link(&'static str, &'static str),
    /// Name, target: the other name of a file.
    HardLink(&'static str, &'static str),
    Pipe(&'static str),
}
use Piece::{Dir, File, HardLink, Link, Pipe};

fn tar(pieces: &[Piece]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    let header = |name: &str, kind: EntryType, target: &str, size: usize| {
        let mut header = Header::new_ustar();
        // Past the checks of the crate, which would not write such names.
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        old.linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o4777);
        header.set_size(size as u64);
        header.set_cksum();
        header
    };
    for piece in pieces {
        let (header, content): (Header, &[u8]) = match piece {
            Dir(name) => (header(name, EntryType::Directory, "", 0), b""),
            File(name, content) => (header(name, EntryType::Regular, "", content.len()), content),
            Link(name, target) => (header(name, EntryType::Symlink, target, 0), b""),
            HardLink(name, target) => (header(name, EntryType::Link, target, 0), b""),
            Pipe(name) => (header(name, EntryType::Fifo, "", 0), b""),
        };
        tar.append(&header, content).unwrap();
    }
    tar.into_inner().unwrap()
}

/// A Debian package: an `ar` archive of three members.
fn deb(pieces: &[Piece]) -> Vec<u8> {
    let control = {
        let mut tar = Builder::new(Vec::new());
        let text = b"Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n";
        let mut header = Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, "./control", text.as_slice()).unwrap();
        tar.into_inner().unwrap()
    };
    let mut ar = b"!<arch>\n".to_vec();
    for (name, content) in [("debian-binary", b"2.0\n".to_vec()), ("control.tar", control), ("data.tar", tar(pieces))] {
        ar.extend_from_slice(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, content.len()).as_bytes(),
        );
        ar.extend_from_slice(&content);
        ar.resize(ar.len().next_multiple_of(2), b'\n');
    }
    ar
}

fn cpio(pieces: &[Piece]) -> Vec<u8> {
    let mut archive = Vec::new();
    let mut add = |name: &str, mode: u32, inode: usize, links: u32, content: &[u8]| {
        let numbers = [inode, mode as usize, 0, 0, links as usize, 0, content.len(), 0, 0, 0, 0, name.len() + 1, 0];
        archive.extend_from_slice(b"070701");
        numbers.iter().for_each(|number| archive.extend_from_slice(format!("{number:08x}").as_bytes()));
        archive.extend_from_slice(name.as_bytes());
        archive.push(0);
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend_from_slice(content);
        archive.resize(archive.len().next_multiple_of(4), 0);
    };
    for (number, piece) in pieces.iter().enumerate() {
        match piece {
            Dir(name) => add(name, 0o040_755, number, 2, b""),
            File(name, content) => add(name, 0o104_777, number, 1, content),
            Link(name, target) => add(name, 0o120_777, number, 1, target.as_bytes()),
            // The other name has the content: of the two the first is without.
            HardLink(name, target) => {
                add(name, 0o100_644, number, 2, b"");
                add(target, 0o100_644, number, 2, b"shared");
            }
            Pipe(name) => add(name, 0o010_644, number, 1, b""),
        }
    }
    add("TRAILER!!!", 0, 0, 1, b"");
    archive
}

/// An RPM package; its headers hold nothing.
fn rpm(pieces: &[Piece]) -> Vec<u8> {
    let mut package = b"\xed\xab\xee\xdb".to_vec();
    package.resize(96, 0);
    for _ in 0..2 {
        package.extend_from_slice(b"\x8e\xad\xe8\x01\0\0\0\0\0\0\0\0\0\0\0\0");
    }
    package.extend(tool::filter(tool::tool("gzip").arg("-c"), cpio(pieces)).unwrap());
    package
}

/// A host with a file that a package wants to reach, and a directory to unpack into.
struct Host {
    dir: tempfile::TempDir,
}

impl Host {
    fn new() -> Host {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        fs::write(dir.path().join("home/secret"), "secret").unwrap();
        fs::create_dir(dir.path().join("tree")).unwrap();
        Host { dir }
    }

    fn unpack(&self, ending: &str, content: &[u8]) -> Result<(), String> {
        let package = self.dir.path().join(format!("x.{ending}"));
        fs::write(&package, content).unwrap();
        let place: Place = |path| Some(path.to_owned());
        super::unpack(&package, &self.dir.path().join("tree"), place, &|| false).map_err(|error| error.to_string())
    }

    /// What is in the tree, links with their targets.
    fn tree(&self) -> Vec<String> {
        fn walk(dir: &Path, prefix: &str, found: &mut Vec<String>) {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if kind.is_dir() {
                    walk(&path, &format!("{name}/"), found);
                } else if kind.is_symlink() {
                    found.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
                } else {
                    found.push(format!("{name} = {}", fs::read_to_string(&path).unwrap()));
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.dir.path().join("tree"), "", &mut found);
        found.sort();
        found
    }

    fn is_untouched(&self) {
        let names: Vec<_> = fs::read_dir(self.dir.path().join("home")).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert_eq!(fs::read_to_string(self.dir.path().join("home/secret")).unwrap(), "secret");
        let names = fs::read_dir(self.dir.path()).unwrap().count();
        assert_eq!(names, 3, "home, the package, the tree");
    }
}

/// Both formats with the same pieces: what is in the tree afterwards, or the part of an error.
fn check(pieces: &[Piece], expect: Result<&[&str], &str>) {
    for (ending, content) in [("deb", deb(pieces)), ("rpm", rpm(pieces))] {
        let host = Host::new();
        let told = host.unpack(ending, &content);
        match (told, expect) {
            (Ok(()), Ok(tree)) => assert_eq!(host.tree(), tree, "{ending}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{ending}: {error}"),
            (told, expect) => panic!("{ending}: {told:?}, expected {expect:?}; in it {:?}", host.tree()),
        }
        host.is_untouched();
    }
}

#[test]
fn a_package_of_good_will_is_unpacked() {
    check(
        &[
            Dir("./boot/"),
            File("./boot/vmlinuz", b"kernel"),
            Link("./boot/current", "vmlinuz"),
            Link("./usr/lib/x", "/boot/vmlinuz"),
            Pipe("./boot/pipe"),
            File("./boot/vmlinuz", b"newer"),
        ],
        Ok(&["boot/current -> vmlinuz", "boot/vmlinuz = newer", "usr/lib/x -> ../../boot/vmlinuz"]),
    );
}

#[test]
fn other_names_of_a_file_are_made() {
    check(&[File("a", b"shared"), HardLink("b", "a")], Ok(&["a = shared", "b = shared"]));
}

#[test]
fn a_file_is_not_written_through_a_link() {
    check(&[Link("lib", "../home"), File("lib/secret", b"mine")], Err("leads out of the package"));
    check(&[Link("a", "b"), Dir("b"), File("a/secret", b"mine")], Err("not a directory"));
    check(&[Dir("usr"), Link("usr/lib", "../../home"), File("usr/lib/new", b"")], Err("leads out of the package"));
    // The link goes, what it leads to stays.
    check(&[Link("a", "/home/secret"), File("a", b"mine")], Ok(&["a = mine"]));
}

#[test]
fn an_absolute_link_leads_into_the_package() {
    check(&[Link("lib", "/etc"), Link("x/y", "/etc/shadow")], Ok(&["lib -> etc", "x/y -> ../etc/shadow"]));
}

#[test]
fn a_name_does_not_lead_out() {
    check(&[File("../home/new", b"mine")], Err("leads out of the package"));
    check(&[File("boot/../../home/secret", b"mine")], Err("leads out of the package"));
    check(&[Dir("../home/dir")], Err("leads out of the package"));
    check(&[HardLink("../home/new", "a")], Err(""));
    check(&[File("/home/secret", b"mine")], Ok(&["home/secret = mine"]));
}

#[test]
fn a_hard_link_to_a_file_of_the_host_is_refused() {
    let host = Host::new();
    let told = host.unpack("deb", &deb(&[HardLink("stolen", "../home/secret")])).unwrap_err();
    assert!(told.contains("leads out of the package"), "{told}");
    let link = [Link("a", "/home"), HardLink("stolen", "a/secret")];
    assert!(host.unpack("deb", &deb(&link)).is_err());
    assert!(!host.dir.path().join("tree/stolen").exists());
    host.is_untouched();
}

#[test]
fn nothing_unpacked_is_privileged_and_only_what_is_needed_is_there() {
    use std::os::unix::fs::PermissionsExt;
    let host = Host::new();
    let package = host.dir.path().join("x.deb");
    fs::write(&package, deb(&[File("usr/bin/su", b"su"), File("etc/passwd", b"mine"), Link("usr/p", "/etc/passwd")]))
        .unwrap();
    let tree = host.dir.path().join("tree");
    let place: Place = |path| path.starts_with("usr").then(|| path.to_owned());
    super::unpack(&package, &tree, place, &|| false).unwrap();
    assert_eq!(host.tree(), ["usr/bin/su = su"]);
    assert_eq!(fs::metadata(tree.join("usr/bin/su")).unwrap().permissions().mode() & 0o7777, 0o755);
}

#[test]
fn any_bytes_are_a_package_or_are_not() {
    for (ending, whole) in [("deb", deb(&[File("a", b"a")])), ("rpm", rpm(&[File("a", b"a")]))] {
        let host = Host::new();
        for cut in (0..whole.len()).step_by(97) {
            assert!(host.unpack(ending, &whole[..cut]).is_err(), "{ending} cut at {cut}");
        }
        host.is_untouched();
    }
}
