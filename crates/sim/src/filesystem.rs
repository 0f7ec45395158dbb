// SPDX-License-Identifier: MIT OR Apache-2.0
//! Superblocks: what a filesystem type and a kernel make of folios, time stamps and journals, and where a
//! path leads. tmpfs keeps everything in memory; a path below no mount is on one.

use crate::arena::{BdiId, BlockId, CgId, InodeId, SbId};
use crate::dcache::{Dentry, Names};
use crate::inode::{Dirt, Inode};
use crate::journal::Journal;
use crate::namespace::Errno;
use crate::space::Space;
use crate::wb::Lock;
use crate::world::World;
use floodline_scenario::FsType;
use std::borrow::Cow;
use std::collections::btree_map::Entry;

/// How large folios get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Folios {
    /// Pages of the largest that readahead makes, where its window is as large.
    pub(crate) by_readahead: u64,
    /// Pages of those that the readahead around a fault of a mapping makes.
    pub(crate) by_fault: u64,
    /// Pages of the largest that a write makes.
    pub(crate) by_write: u64,
    /// Whether only the dirty blocks of a written folio go out.
    pub(crate) has_dirty_blocks: bool,
}

/// When a read changes the access time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atime {
    Never,
    Relative,
    Always,
}

/// A superblock.
#[derive(Debug)]
pub(crate) struct Superblock {
    pub(crate) point: String,
    pub(crate) fs_type: FsType,
    pub(crate) device: Option<BlockId>,
    /// Of its device; none where nothing is written back.
    pub(crate) bdi: Option<BdiId>,
    pub(crate) has_cgroup_writeback: bool,
    pub(crate) folios: Folios,
    pub(crate) is_lazytime: bool,
    /// Whether the last close of a file that was cut starts writing it.
    pub(crate) flushes_on_close: bool,
    pub(crate) atime: Atime,
    pub(crate) options: String,
    pub(crate) is_mounted: bool,
    /// Unmounted lazily while files of it were open: the last close of them shuts it down.
    pub(crate) is_detached: bool,
    /// Files that are open by names below its mount point.
    pub(crate) opened: u64,
    /// Held while it is unmounted: no flusher gets in.
    pub(crate) s_umount: Lock,
    pub(crate) s_sync_lock: Lock,
    pub(crate) under_writeback: Vec<InodeId>,
    pub(crate) names: Names,
    pub(crate) journal: Option<Journal>,
    /// Whether new blocks stay unwritten until they are on the device, and a worker converts them.
    pub(crate) has_unwritten: bool,
    /// What it can hold, where that is bounded.
    pub(crate) space: Option<Space>,
    pub(crate) conversions: crate::ioend::Conversions,
    /// Inode of its block device, where metadata are checkpointed.
    pub(crate) metadata: Option<InodeId>,
    pub(crate) upper: Option<Upper>,
    pub(crate) created: u64,
}

/// The filesystem below an overlay.
#[derive(Clone, Debug)]
pub(crate) struct Upper {
    pub(crate) sb: SbId,
    /// Upper directory.
    pub(crate) dir: String,
    pub(crate) is_volatile: bool,
}

/// Blocks of metadata by number: as of one group, with few directories whose inodes are together.
const INODE_BITMAP: u64 = 1;
const GROUP_DESCRIPTOR: u64 = 2;
const BLOCK_BITMAP: u64 = 3;
const DIRECTORIES: u64 = 4;
const FIRST_DIRECTORY: u64 = 5;
pub(crate) const FIRST_INODES: u64 = 64;

/// Inodes in one block of an inode table.
const INODES_PER_BLOCK: u64 = 16;

/// The block of the so manieth inode, after bitmaps and directories: one of the table for 16, or one for each.
fn inode_block(journal: Option<&Journal>, created: u64) -> u64 {
    let logs_inodes = journal.is_some_and(Journal::logs_inodes);
    FIRST_INODES + if logs_inodes { created } else { created / INODES_PER_BLOCK }
}

impl World {
    /// The filesystem of a path, and the path in it. An overlay's files are its upper filesystem's.
    pub(crate) fn resolve<'a>(&self, path: &'a str) -> (SbId, Cow<'a, str>) {
        let id = self.mount_of(path);
        let sb = &self.sbs[id];
        match &sb.upper {
            Some(upper) => {
                let rest = path.strip_prefix(sb.point.as_str()).unwrap_or_default();
                let (id, path) = self.resolve_below(upper, rest);
                (id, Cow::Owned(path))
            }
            None => (id, Cow::Borrowed(path)),
        }
    }

    /// The mounted filesystem that a path is on; of an overlay, itself.
    pub(crate) fn mount_of(&self, path: &str) -> SbId {
        let is_below = |point: &str| {
            point == "/" || path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let found = self.sbs.iter().filter(|(_, sb)| sb.is_mounted && is_below(&sb.point));
        found.max_by_key(|(_, sb)| sb.point.len()).map_or(SbId(0), |(id, _)| id)
    }

    fn resolve_below(&self, upper: &Upper, rest: &str) -> (SbId, String) {
        let path = format!("{}{rest}", upper.dir);
        let (id, path) = self.resolve(&path);
        (id, path.into_owned())
    }

    /// Mounting an overlay tries whether its work directory can hold a file without a name (`d_tmpfile`), which is gone
    /// at once and was dirty: the flusher of the upper filesystem will look around an interval later, whatever is
    /// dirty by then. Seen in a trace of 6.12; the first kernel that tries is unverified.
    pub(crate) fn try_upper(&mut self, sb: SbId) {
        let upper = self.sbs[sb].upper.as_ref().map(|upper| upper.sb);
        if let Some(bdi) = upper.and_then(|upper| self.sbs[upper].bdi) {
            let wb = self.bdis[bdi].root;
            self.wb_wake_delayed(wb);
        }
    }

    /// The file of a path, made where it is missing.
    pub(crate) fn make_file(&mut self, path: &str) -> Result<InodeId, Errno> {
        let (id, path) = self.resolve(path);
        self.make_file_in(id, &path).map(|(inode, _)| inode)
    }

    /// The same where it is known which filesystem the path is in; and whether it is new.
    pub(crate) fn make_file_in(&mut self, id: SbId, path: &str) -> Result<(InodeId, bool), Errno> {
        let sb = &mut self.sbs[id];
        let below = sb.below(path);
        match sb.names.entry(below)? {
            Entry::Vacant(place) => {
                sb.created += 1;
                let block = inode_block(sb.journal.as_ref(), sb.created);
                let inode = self.inodes.push(Inode::new(id, block));
                place.insert(Dentry::File(inode));
                Ok((inode, true))
            }
            Entry::Occupied(found) => match *found.get() {
                Dentry::File(inode) => Ok((inode, false)),
                Dentry::Dir(_) => Err(Errno::Eisdir),
            },
        }
    }

    /// Metadata blocks that a new file changes: bitmap of inodes, group descriptor, the directory and its inode, inode.
    pub(crate) fn create_blocks(&self, inode: InodeId) -> [u64; 5] {
        let inode = &self.inodes[inode];
        self.named_blocks(inode.sb, inode.block)
    }

    /// Those that blocks of its data change when they are given or taken: bitmap of blocks, group descriptor, inode.
    pub(crate) fn data_blocks(&self, inode: InodeId) -> [u64; 3] {
        [BLOCK_BITMAP, GROUP_DESCRIPTOR, self.inodes[inode].block]
    }

    /// Those that the name of a directory changes, the last one that was made.
    pub(crate) fn dir_blocks(&self, sb: SbId) -> [u64; 5] {
        let sb_of = &self.sbs[sb];
        self.named_blocks(sb, inode_block(sb_of.journal.as_ref(), sb_of.created))
    }

    /// The block that changes when a directory comes or goes, besides those of its name: ext4 gives it a block. XFS keeps
    /// a small one in its inode.
    pub(crate) fn dir_bitmap(&self, sb: SbId) -> Option<u64> {
        self.sbs[sb].metadata.map(|_| BLOCK_BITMAP)
    }

    /// What the name of an inode in this block changes.
    fn named_blocks(&self, sb: SbId, block: u64) -> [u64; 5] {
        let logs_inodes = self.sbs[sb].journal.as_ref().is_some_and(Journal::logs_inodes);
        let of_table = if logs_inodes { block / INODES_PER_BLOCK } else { block };
        let directory = FIRST_DIRECTORY + of_table % (FIRST_INODES - FIRST_DIRECTORY);
        [INODE_BITMAP, GROUP_DESCRIPTOR, DIRECTORIES, directory, block]
    }

    /// The owner of an inode's pages when a task of a cgroup brings them in.
    pub(crate) fn page_owner(&self, cgroup: CgId) -> CgId {
        self.memcg(cgroup)
    }

    /// A read changes the access time, where the mount says so; once per tick at most.
    pub(crate) fn touch_atime(&mut self, inode: InodeId, cgroup: CgId) {
        let now = self.jiffies();
        let sb = &self.sbs[self.inodes[inode].sb];
        let (atime, is_lazy) = (sb.atime, sb.is_lazytime);
        let i = &mut self.inodes[inode];
        let day = self.build.hz() * 86_400;
        let due = match atime {
            Atime::Never => false,
            Atime::Relative => i.atime == 0 || now.saturating_sub(i.atime) > day,
            Atime::Always => i.atime != now,
        };
        if !due {
            return;
        }
        i.atime = now;
        if is_lazy {
            let memcg = self.memcg(cgroup);
            self.mark_inode_dirty(inode, Dirt::Time, memcg);
        }
    }
}
