// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a cpio archive of format "newc", which is the payload of an `.rpm`: header by header, each with its data
//! as a stream. Whatever the archive says of lengths is held to a limit before memory is taken for it.

use std::io::{self, Read};

/// Length of a header: magic, and 13 numbers of 8 hexadecimal digits.
const HEADER: usize = 6 + 13 * 8;
/// Longest name of a file, the kernel's `PATH_MAX`; also the longest target of a link.
pub(super) const NAME_MAX: u64 = 4096;

/// The header of a file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Number that names with the same content share.
    pub(super) inode: u64,
    /// Type and permissions, as stat(2) has them.
    pub(super) mode: u32,
    /// How many names share the content.
    pub(super) links: u64,
    /// Bytes of content.
    pub(super) size: u64,
    /// Path, as bytes.
    pub(super) name: Vec<u8>,
}

/// Reads the next header; `None` at the trailer. The content of the file before must have been read.
pub(super) fn header(from: &mut impl Read) -> io::Result<Option<Header>> {
    let mut text = [0; HEADER];
    from.read_exact(&mut text)?;
    if !text.starts_with(b"070701") && !text.starts_with(b"070702") {
        return Err(broken("not a cpio archive of format newc"));
    }
    let field = |index: usize| -> io::Result<u64> {
        let digits = text.get(6 + index * 8..14 + index * 8).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        number.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or_else(|| broken("a number is not one"))
    };
    let (inode, mode, links, size, length) = (field(0)?, field(1)?, field(4)?, field(6)?, field(11)?);
    if !(1..=NAME_MAX).contains(&length) {
        return Err(broken("a name has no length that a path can have"));
    }
    let mut name = vec![0; usize::try_from(length).unwrap_or(0)];
    from.read_exact(&mut name)?;
    pad(from, HEADER as u64 + length)?;
    name.pop();
    match name.as_slice() {
        b"TRAILER!!!" => Ok(None),
        _ => Ok(Some(Header { inode, mode: u32::try_from(mode).unwrap_or(0), links, size, name })),
    }
}

/// Skips what fills up to a multiple of four bytes behind `length`.
pub(super) fn pad(from: &mut impl Read, length: u64) -> io::Result<()> {
    let missing = usize::try_from(length.wrapping_neg() % 4).unwrap_or(0);
    from.read_exact(&mut [0; 3][..missing])
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forged::{Changes, Depth, change};
    use crate::image::Cpio;

    #[test]
    fn what_was_written_is_read() {
        let mut archive = Vec::new();
        let mut cpio = Cpio::new(&mut archive);
        cpio.file("boot/vmlinuz", 0o644, b"kernel").unwrap();
        cpio.finish().unwrap();
        let mut from = archive.as_slice();
        let mut names = Vec::new();
        while let Some(header) = header(&mut from).unwrap() {
            let mut content = vec![0; usize::try_from(header.size).unwrap()];
            from.read_exact(&mut content).unwrap();
            pad(&mut from, header.size).unwrap();
            names.push((String::from_utf8(header.name).unwrap(), header.mode, content));
        }
        assert_eq!(
            names,
            [("boot".to_owned(), 0o040_755, Vec::new()), ("boot/vmlinuz".to_owned(), 0o100_644, b"kernel".to_vec())]
        );
    }

    /// Reads headers and skips contents until the trailer or an error.
    fn all(mut from: &[u8]) -> (Vec<(Header, Vec<u8>)>, io::Result<()>) {
        let mut found = Vec::new();
        let ended = loop {
            match header(&mut from) {
                Ok(Some(header)) => {
                    assert!(header.name.len() as u64 <= NAME_MAX);
                    let mut content = Vec::new();
                    let read = (&mut from).take(header.size).read_to_end(&mut content);
                    let size = header.size;
                    found.push((header, content));
                    if let Err(error) = read.and_then(|_| pad(&mut from, size)) {
                        break Err(error);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        (found, ended)
    }

    #[test]
    fn any_bytes_are_an_archive_or_are_not() {
        let depth = Depth::default();
        bolero::check!().with_type::<(Vec<(String, u16, Vec<u8>)>, Changes)>().for_each(|(files, changes)| {
            let mut archive = Vec::new();
            let mut cpio = Cpio::new(&mut archive);
            for (name, mode, content) in files {
                // Slashes would add directories, and a name that is empty or the trailer's ends nothing here.
                let name = format!("f{}", name.replace('/', "_"));
                cpio.file(&name, u32::from(*mode & 0o777), content).unwrap();
            }
            cpio.finish().unwrap();
            let is_changed = change(&mut archive, changes);
            let (found, ended) = all(&archive);
            depth.count(!found.is_empty() || ended.is_ok());
            if !is_changed {
                ended.unwrap();
                assert!(found.iter().map(|(_, content)| content).eq(files.iter().map(|(_, _, content)| content)));
            }
            let _ = all(&[b"070701", changes.iter().map(|(_, to)| *to).collect::<Vec<u8>>().as_slice()].concat());
        });
        depth.check();
    }
}
