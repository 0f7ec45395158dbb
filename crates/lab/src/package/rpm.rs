// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks an `.rpm`: a lead of fixed length, two headers that say how long they are, and a compressed cpio
//! archive, which is all we want of it (the RPM project's "Package File Format"). Done here, because a
//! Debian machine has no rpm2cpio; programs uncompress the archive.

use super::cpio::{self, Header, NAME_MAX};
use super::tree::Tree;
use super::{PackageError, extract};
use crate::tool;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const LEAD: usize = 96;
const LEAD_MAGIC: &[u8] = b"\xed\xab\xee\xdb";
const HEADER_MAGIC: &[u8] = b"\x8e\xad\xe8\x01";
/// Magic, four bytes for later, number of entries, bytes of their data.
const HEADER_INTRO: usize = 16;
const HEADER_ENTRY: usize = 16;

/// What an archive starts with, and what uncompresses it.
const COMPRESSIONS: &[(&[u8], Option<&str>)] =
    &[(b"\x1f\x8b", Some("gzip")), (b"\xfd7zXZ\0", Some("xz")), (b"\x28\xb5\x2f\xfd", Some("zstd")), (b"07070", None)];

/// Lead and headers together are not larger: 16 MiB is what rpm itself allows for a header's data.
const HEADERS_MAX: u64 = 64 << 20;

/// Unpacks a package into a directory.
pub(super) fn unpack(package: &Path, into: &mut Tree, is_asked: &dyn Fn() -> bool) -> Result<(), PackageError> {
    let at = |cause| PackageError::Io { path: package.to_owned(), cause };
    let not_a_package = |what| PackageError::NotAPackage { path: package.to_owned(), what };
    let mut file = File::open(package).map_err(at)?;
    let mut headers = Vec::new();
    (&file).take(HEADERS_MAX).read_to_end(&mut headers).map_err(at)?;
    let start = payload(&headers).ok_or_else(|| not_a_package("its headers are broken or cut off"))?;
    let archive = headers.get(start..).unwrap_or_default();
    let known = COMPRESSIONS.iter().find(|(magic, _)| archive.starts_with(magic));
    let (_, unpacker) = known.ok_or_else(|| not_a_package("its archive is compressed in a way we do not know"))?;
    file.seek(SeekFrom::Start(start as u64)).map_err(at)?;
    let Some(unpacker) = unpacker else {
        return files(&mut file, into, is_asked).map_err(|cause| match is_asked() {
            true => PackageError::Interrupted { path: package.to_owned() },
            false => PackageError::Refused { path: package.to_owned(), cause },
        });
    };
    let archive = tool::piped(tool::bound(unpacker).args(["-d", "-c"]), Some(file))
        .map_err(|cause| PackageError::Broken { path: package.to_owned(), cause })?;
    extract(package, archive, is_asked, |archive| files(archive, into, is_asked))
}

/// Types of files in a mode.
const S_IFMT: u32 = 0o170_000;
const S_IFDIR: u32 = 0o040_000;
const S_IFREG: u32 = 0o100_000;
const S_IFLNK: u32 = 0o120_000;

/// Takes the files of a cpio archive.
fn files(archive: &mut dyn Read, into: &mut Tree, is_asked: &dyn Fn() -> bool) -> io::Result<()> {
    let archive = &mut { archive };
    // Of names that share their content only the last comes with it.
    let mut without_content: BTreeMap<u64, Vec<Header>> = BTreeMap::new();
    while let Some(header) = cpio::header(archive)? {
        let mut content = archive.take(header.size);
        match header.mode & S_IFMT {
            S_IFDIR => into.dir(&header.name)?,
            S_IFREG if header.links > 1 && header.size == 0 => {
                without_content.entry(header.inode).or_default().push(header.clone());
            }
            S_IFREG => {
                into.file(&header.name, header.mode, &mut content, is_asked)?;
                for other in without_content.remove(&header.inode).unwrap_or_default() {
                    into.hard_link(&other.name, &header.name)?;
                }
            }
            S_IFLNK if header.size <= NAME_MAX => {
                let mut target = Vec::new();
                content.read_to_end(&mut target)?;
                into.link(&header.name, &target)?;
            }
            _ => {}
        }
        io::copy(&mut content, &mut io::sink())?;
        if content.limit() > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        cpio::pad(archive, header.size)?;
    }
    // Several names of an empty file.
    for header in without_content.into_values().flatten() {
        into.file(&header.name, header.mode, &mut io::empty(), is_asked)?;
    }
    Ok(())
}

/// Where the archive starts: behind the lead, the signature, which is padded, and the header.
fn payload(file: &[u8]) -> Option<usize> {
    if !file.starts_with(LEAD_MAGIC) {
        return None;
    }
    let signature_end = header_end(file, LEAD)?;
    header_end(file, signature_end.checked_next_multiple_of(8)?).filter(|end| *end < file.len())
}

fn header_end(file: &[u8], at: usize) -> Option<usize> {
    let intro = file.get(at..at.checked_add(HEADER_INTRO)?)?;
    let number = |from: usize| -> Option<usize> {
        let bytes: [u8; 4] = intro.get(from..from + 4)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(bytes)).ok()
    };
    if !intro.starts_with(HEADER_MAGIC) {
        return None;
    }
    let entries = number(8)?.checked_mul(HEADER_ENTRY)?;
    at.checked_add(HEADER_INTRO)?.checked_add(entries)?.checked_add(number(12)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forged::{Changes, Depth, change};
    use crate::image::Cpio;

    /// A package with one file, compressed by a program.
    fn package(compressor: Option<&str>) -> Vec<u8> {
        let mut archive = Vec::new();
        let mut cpio = Cpio::new(&mut archive);
        cpio.file("boot/vmlinuz-9", 0o644, b"kernel").unwrap();
        cpio.finish().unwrap();
        let archive = match compressor {
            Some(compressor) => tool::filter(tool::tool(compressor).arg("-c"), archive).unwrap(),
            None => archive,
        };
        [headers([(1, 5), (2, 3)]), archive].concat()
    }

    /// A lead and two headers: the number of entries and of bytes of data of each.
    fn headers(sizes: [(u8, u8); 2]) -> Vec<u8> {
        let mut package = LEAD_MAGIC.to_vec();
        package.resize(LEAD, 0);
        for (entries, data) in sizes {
            package.resize(package.len().next_multiple_of(8), 0);
            package.extend_from_slice(HEADER_MAGIC);
            package.extend_from_slice(&[0; 4]);
            package.extend_from_slice(&u32::from(entries).to_be_bytes());
            package.extend_from_slice(&u32::from(data).to_be_bytes());
            package.resize(package.len() + HEADER_ENTRY * usize::from(entries) + usize::from(data), 7);
        }
        package
    }

    #[test]
    fn a_package_is_unpacked_however_it_is_compressed() {
        for compressor in [None, Some("gzip"), Some("xz"), Some("zstd")] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("kernel.rpm");
            std::fs::write(&file, package(compressor)).unwrap();
            crate::package::unpack(&file, dir.path(), |path| Some(path.to_owned()), &|| false).unwrap();
            assert_eq!(std::fs::read(dir.path().join("boot/vmlinuz-9")).unwrap(), b"kernel", "{compressor:?}");
        }
    }

    #[test]
    fn a_broken_package_says_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kernel.rpm");
        let check = |content: &[u8], expect: &str| {
            std::fs::write(&file, content).unwrap();
            let all: crate::package::Place = |path| Some(path.to_owned());
            let error = crate::package::unpack(&file, dir.path(), all, &|| false).unwrap_err().to_string();
            assert!(error.contains("kernel.rpm") && error.contains(expect), "{error}");
        };
        let whole = package(Some("gzip"));
        check(b"", "headers are broken");
        check(&whole[..120], "headers are broken");
        check(&whole[..whole.len() - 20], "gzip failed");
        let start = payload(&whole).unwrap();
        check(&[&whole[..start], b"BZh9"].concat(), "a way we do not know");
    }

    #[test]
    fn any_bytes_are_a_package_or_are_not() {
        let depth = Depth::default();
        bolero::check!().with_type::<([(u8, u8); 2], Vec<u8>, Changes)>().for_each(|(sizes, archive, changes)| {
            let mut file = headers(*sizes);
            let end = file.len();
            let is_changed = change(&mut file, changes);
            file.extend_from_slice(archive);
            let start = payload(&file);
            depth.count(start.is_some() || archive.is_empty());
            assert!(start.is_none_or(|start| start < file.len()));
            assert!(is_changed || archive.is_empty() || start == Some(end), "{start:?} of {end}");
            let file = [LEAD_MAGIC, archive].concat();
            assert!(payload(&file).is_none_or(|start| start < file.len()));
        });
        depth.check();
    }

    /// Entries of an archive as rpm writes them: type, number of names, name, content or target.
    fn archive(entries: &[(u8, u8, String, Vec<u8>)]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (kind, links, name, content) in entries {
            let mode = [S_IFREG, S_IFDIR, S_IFLNK, 0][usize::from(*kind) % 4];
            let content = if mode == S_IFDIR || *kind > 127 { &[] } else { content.as_slice() };
            let number = |value: usize| format!("{value:08x}");
            archive.extend_from_slice(b"070701");
            let sizes = (content.len(), name.len() + 1);
            // Inode, mode, owners, links, time, size, devices, length of the name, sum.
            let (inode, links) = (usize::from(links % 3), usize::from(*links));
            for field in [inode, mode as usize, 0, 0, links, 0, sizes.0, 0, 0, 0, 0, sizes.1, 0] {
                archive.extend_from_slice(number(field).as_bytes());
            }
            archive.extend_from_slice(name.as_bytes());
            archive.push(0);
            archive.resize(archive.len().next_multiple_of(4), 0);
            archive.extend_from_slice(content);
            archive.resize(archive.len().next_multiple_of(4), 0);
        }
        let mut end = Vec::new();
        Cpio::new(&mut end).finish().unwrap();
        archive.extend(end);
        archive
    }

    #[test]
    fn no_archive_leads_out_of_its_folder() {
        let depth = Depth::default();
        bolero::check!().with_type::<(Vec<(u8, u8, String, Vec<u8>)>, Changes)>().for_each(|(entries, changes)| {
            let outside = tempfile::tempdir().unwrap();
            let root = outside.path().join("root");
            std::fs::create_dir(&root).unwrap();
            let mut archive = archive(entries);
            change(&mut archive, changes);
            let mut tree = Tree::open(&root, |path| Some(path.to_owned())).unwrap();
            let unpacked = files(&mut archive.as_slice(), &mut tree, &|| false);
            let is_filled = std::fs::read_dir(&root).unwrap().next().is_some();
            depth.count(unpacked.is_ok() || is_filled);
            assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        });
        depth.check();
    }
}
