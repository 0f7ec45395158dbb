// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes an archive that the kernel unpacks as its first root directory: cpio, format "newc", as the
//! kernel's `Documentation/driver-api/early-userspace/buffer-format.rst` describes it. Directories of a
//! file are added before it; times and owners are always zero, so the same content is the same image.

use std::collections::BTreeSet;
use std::io::{self, Write};

const S_IFDIR: u32 = 0o040_000;
const S_IFREG: u32 = 0o100_000;

/// An archive being written.
#[derive(Debug)]
pub(crate) struct Cpio<W> {
    out: W,
    inode: u32,
    written: u64,
    dirs: BTreeSet<String>,
}

impl<W: Write> Cpio<W> {
    pub(crate) fn new(out: W) -> Cpio<W> {
        Cpio { out, inode: 0, written: 0, dirs: BTreeSet::new() }
    }

    /// Adds a file. `path` has no leading slash.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        for parent in parents {
            self.dir(parent)?;
        }
        self.entry(path, S_IFREG | mode, content)
    }

    /// Adds a directory, once.
    pub(crate) fn dir(&mut self, path: &str) -> io::Result<()> {
        match self.dirs.insert(path.to_owned()) {
            true => self.entry(path, S_IFDIR | 0o755, &[]),
            false => Ok(()),
        }
    }

    /// Ends the archive. Returns how long it is, bytes.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()?;
        Ok(self.written)
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, format!("{path} is too long for the image"));
        let size = u32::try_from(content.len()).map_err(too_long)?;
        let name_size = u32::try_from(path.len() + 1).map_err(too_long)?;
        self.inode += 1;
        let links = 1 + u32::from(mode & S_IFDIR != 0);
        let mut header = String::from("070701");
        // Inode, mode, uid, gid, links, time, size, device twice, device node twice, length of the name, sum.
        for field in [self.inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0] {
            header.push_str(&format!("{field:08x}"));
        }
        self.put(header.as_bytes())?;
        self.put(path.as_bytes())?;
        self.put(&[0])?;
        self.pad()?;
        self.put(content)?;
        self.pad()
    }

    fn pad(&mut self) -> io::Result<()> {
        let missing = self.written.wrapping_neg() % 4;
        self.put(&[0; 3][..usize::try_from(missing).unwrap_or(0)])
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool;

    #[test]
    fn cpio_itself_reads_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("archive");
        let mut cpio = Cpio::new(std::fs::File::create(&archive).unwrap());
        cpio.dir("proc").unwrap();
        cpio.file("init", 0o755, b"#!").unwrap();
        cpio.file("modules/1/a.ko", 0o644, b"12345").unwrap();
        cpio.file("modules/1/b.ko", 0o644, b"").unwrap();
        let length = cpio.finish().unwrap();
        assert_eq!(std::fs::metadata(&archive).unwrap().len(), length);
        let mut list = tool::tool("cpio");
        list.args(["--list", "--quiet"]).stdin(std::fs::File::open(&archive).unwrap());
        let listed = String::from_utf8(tool::output(&mut list).unwrap()).unwrap();
        let names: Vec<&str> = listed.lines().collect();
        assert_eq!(names, ["proc", "init", "modules", "modules/1", "modules/1/a.ko", "modules/1/b.ko"]);
    }
}
