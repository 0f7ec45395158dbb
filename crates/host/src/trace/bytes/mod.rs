// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte ledger: what became dirty and by whom, what was queued at block devices, and who waited for it. The
//! sums are made in `bpf/bytes.bpf.c`; here they become rows, the largest with the names of their files and the
//! rest added up, so that a hundred thousand small files cost no more than a few large ones.

mod cancelled;
mod dirtied;
mod largest;
mod queued;
mod waits;

use super::fields::Fields;
use super::load::Loaded;
use super::part::{Need, Part, Reader, Table, Turn, Wanted, object};
use super::tracepoint;
use dirtied::DirtiedReader;
use floodline_record::gap::{Cause, Source};
use floodline_record::id::DevId;
use floodline_record::name::Name;
use floodline_record::record::Event;
use floodline_record::traced::File;
use libbpf_rs::{Map, MapCore, MapFlags};

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
    tables: &[
        Table { name: "dirtied", key: 32, entry: 40 },
        Table { name: "dirtied_unnamed", key: 32, entry: 40 },
        Table { name: "latest", key: 4, entry: 144 },
        Table { name: "owners", key: 16, entry: 16 },
        Table { name: "paths", key: 16, entry: 16 + PATH_DEPTH * PATH_NAME },
        Table { name: "large_paths", key: 16, entry: 16 + PATH_DEPTH * PATH_NAME },
        Table { name: "queued", key: 40, entry: 48 },
        Table { name: "queued_unnamed", key: 40, entry: 48 },
        Table { name: "cancelled", key: 24, entry: 16 },
        Table { name: "cancelled_unnamed", key: 24, entry: 16 },
        Table { name: "waited", key: 24, entry: 40 },
        Table { name: "slow", key: 16, entry: 72 },
    ],
    of_cgroup_writeback: false,
    reader: |_| Box::new(Bytes::default()),
};

/// Mirrors `PATH_DEPTH` and `PATH_NAME` of `bpf/page.bpf.h`.
const PATH_DEPTH: usize = 10;
const PATH_NAME: usize = 48;

/// Rows with a file's name of each kind and interval.
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

/// A device number as the kernel keeps it.
fn device(dev: u32) -> DevId {
    DevId { major: dev >> 20, minor: dev & 0xf_ffff }
}

/// The tables of paths: of the files that were seen last, and of large ones, which small ones do not push out.
struct Paths<'a> {
    latest: Map<'a>,
    large: Map<'a>,
}

impl<'a> Paths<'a> {
    fn of(loaded: &'a Loaded) -> Result<Paths<'a>, Cause> {
        Ok(Paths { latest: loaded.table("paths")?, large: loaded.table("large_paths")? })
    }

    /// A file, with its path where the programs kept it.
    fn file(&self, dev: u32, ino: u64, generation: u32) -> File {
        let key = [&ino.to_ne_bytes()[..], &dev.to_ne_bytes(), &generation.to_ne_bytes()].concat();
        let kept = |table: &Map<'_>| table.lookup(&key, MapFlags::ANY).ok().flatten();
        let kept = kept(&self.latest).or_else(|| kept(&self.large));
        File { ino, generation: known(generation), path: kept.and_then(|kept| path(&kept)) }
    }
}

/// Filesystems that keep no generations have 0 for all files, and so has what tells of a number only.
fn known(generation: u32) -> Option<u32> {
    (generation != 0).then_some(generation)
}

/// Mirrors `struct file_path`: the names lead from the file up.
fn path(kept: &[u8]) -> Option<Name> {
    let mut fields = Fields(kept);
    let (depth, is_whole, cut, _zero) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    let depth = usize::try_from(depth).ok().filter(|depth| (1..=PATH_DEPTH).contains(depth))?;
    let names: Vec<Name> = (0..depth).map(|_| fields.name::<PATH_NAME>()).collect();
    let mut path = if is_whole == 1 { Vec::new() } else { "…".as_bytes().to_vec() };
    for (level, name) in names.iter().enumerate().rev() {
        path.push(b'/');
        path.extend_from_slice(name.as_bytes());
        if cut >> level & 1 == 1 {
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
        let mut kept = [depth, is_whole, cut, 0].map(u32::to_ne_bytes).concat();
        for at in 0..PATH_DEPTH {
            let mut name = names.get(at).copied().unwrap_or_default().as_bytes().to_vec();
            name.resize(PATH_NAME, 0);
            kept.extend(name);
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
