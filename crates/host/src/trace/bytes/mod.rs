// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte ledger: dirtied bytes by process, bytes queued at block devices, and tasks that waited for them.
//! `bpf/bytes.bpf.c` adds them up. This module makes rows of the sums: the largest have the names of their files, the
//! others are added up, so that a hundred thousand small files cost no more than a few large ones.

mod cancelled;
mod dirtied;
mod largest;
mod queued;
mod waits;

use super::layout::{self, BYTES_TABLES, FileKey, FilePath, LARGE_PATHS, PATHS};
use super::load::Loaded;
use super::part::{Need, Part, Reader, Turn, Wanted, object};
use super::table::Open;
use super::tracepoint;
use dirtied::DirtiedReader;
use floodline_record::gap::{Cause, Source};
use floodline_record::id::DevId;
use floodline_record::name::Name;
use floodline_record::record::Event;
use floodline_record::traced::File;

/// The part.
pub(super) static PART: Part = Part {
    name: "bytes",
    source: Source::TraceBytes,
    object: object!("bytes"),
    tracepoints: &[
        Wanted { tracepoint: &tracepoint::WRITEBACK_DIRTY_FOLIO, need: Need::Always },
        Wanted { tracepoint: &tracepoint::BLOCK_BIO_QUEUE, need: Need::Always },
        Wanted { tracepoint: &tracepoint::EXT4_JOURNALLED_WRITE_END, need: Need::Never },
        Wanted { tracepoint: &tracepoint::EXT4_SYNC_FILE_ENTER, need: Need::WithoutFunctions },
        Wanted { tracepoint: &tracepoint::EXT4_SYNC_FILE_EXIT, need: Need::WithoutFunctions },
    ],
    functions: "waits in sync, of whole filesystems, and for files of other filesystems than ext4; dropped data by file",
    optional: (&["__folio_cancel_dirty", "__cancel_dirty_page"], "dropped data by file"),
    tables: BYTES_TABLES,
    of_cgroup_writeback: false,
    reader: |_| Box::new(Bytes::default()),
};

/// Maximum number of rows with a file's name, per kind and interval.
const NAMED: usize = 256;

#[derive(Default)]
struct Bytes {
    dirtied: DirtiedReader,
}

impl Reader for Bytes {
    fn read(&mut self, loaded: &Loaded, turn: &Turn<'_>, out: &mut Vec<Event>) -> Result<(), Cause> {
        self.dirtied.read(loaded, turn, out)?;
        cancelled::read(loaded, turn, &self.dirtied, out)?;
        queued::read(loaded, turn, &self.dirtied, out)?;
        waits::read(loaded, turn, out)
    }
}

/// Splits a device number in the kernel's form (`dev_t`).
fn device(dev: u32) -> DevId {
    DevId { major: dev >> 20, minor: dev & 0xf_ffff }
}

/// The tables of paths: of the files seen last, and of large files, which small files do not evict.
struct Paths<'a> {
    latest: Open<'a, FileKey, FilePath>,
    large: Open<'a, FileKey, FilePath>,
}

impl<'a> Paths<'a> {
    fn of(loaded: &'a Loaded) -> Result<Paths<'a>, Cause> {
        Ok(Paths { latest: PATHS.of(loaded)?, large: LARGE_PATHS.of(loaded)? })
    }

    /// Returns a file, with its path if the programs kept it.
    fn file(&self, file: FileKey) -> File {
        let kept = self.latest.get(&file).or_else(|| self.large.get(&file));
        File { ino: file.ino, generation: known(file.generation), path: kept.and_then(|kept| path(&kept)) }
    }
}

/// Returns the generation if it is known. It is 0 on filesystems without generations, and in sources that have only the
/// inode number.
fn known(generation: u32) -> Option<u32> {
    (generation != 0).then_some(generation)
}

/// Joins the path of a file from its names, which lead from the file up.
fn path(kept: &FilePath) -> Option<Name> {
    let names = kept.names.get(..usize::try_from(kept.depth).ok()?).filter(|names| !names.is_empty())?;
    let mut path = if kept.is_whole == 1 { Vec::new() } else { "…".as_bytes().to_vec() };
    for (level, name) in names.iter().enumerate().rev() {
        path.push(b'/');
        path.extend_from_slice(layout::name(name).as_bytes());
        if kept.cut >> level & 1 == 1 {
            path.extend_from_slice("…".as_bytes());
        }
    }
    Some(Name::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(depth: u32, is_whole: u32, names: &[&str], expect: Option<&str>) {
        check_cut(depth, is_whole, 0, names, expect);
    }

    fn check_cut(depth: u32, is_whole: u32, cut: u32, names: &[&str], expect: Option<&str>) {
        let mut kept = FilePath { depth, is_whole, cut, ..layout::read(&[]) };
        for (name, to) in names.iter().zip(&mut kept.names) {
            to[..name.len()].copy_from_slice(name.as_bytes());
        }
        assert_eq!(path(&kept), expect.map(Name::from));
    }

    #[test]
    fn a_path_is_put_together_from_the_root() {
        check(3, 1, &["system.journal", "journal", "log"], Some("/log/journal/system.journal"));
        check(1, 1, &["file"], Some("/file"));
        check(2, 0, &["file", "deep"], Some("…/deep/file"));
        check_cut(2, 1, 2, &["file", "long"], Some("/long…/file"));
        check(0, 1, &[], None);
        check(99, 1, &[], None);
    }
}
