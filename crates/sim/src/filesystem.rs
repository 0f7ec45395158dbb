// SPDX-License-Identifier: MIT OR Apache-2.0
//! Superblocks: the folios, time stamps and journals of a filesystem type on a kernel, and the resolution of paths.
//! tmpfs keeps everything in memory; a path below no mount is on one.

use crate::arena::{BdiId, BlockId, CgId, Id, InodeId, SbId};
use crate::block_groups::{self, Groups};
use crate::dcache::{Dentry, Names};
use crate::inode::{Dirt, Inode};
use crate::journal::Journal;
use crate::log_tree::LogTree;
use crate::namespace::Errno;
use crate::perag::Perags;
use crate::space::Space;
use crate::wb::Lock;
use crate::world::World;
use floodline_scenario::FsType;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

/// Sizes of folios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Folios {
    /// Pages of the largest folio that readahead makes, if its window is as large.
    pub(crate) by_readahead: u64,
    /// Pages of the folios that the readahead around a fault of a mapping makes.
    pub(crate) by_fault: u64,
    /// Pages of the largest folio that a write makes.
    pub(crate) by_write: u64,
    /// Whether only the dirty blocks of a folio are written.
    pub(crate) has_dirty_blocks: bool,
}

/// Policy by which a read changes the access time.
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
    /// The bdi of its device; none if nothing is written back.
    pub(crate) bdi: Option<BdiId>,
    pub(crate) has_cgroup_writeback: bool,
    pub(crate) folios: Folios,
    pub(crate) is_lazytime: bool,
    /// Whether the last close of a truncated file starts writing it.
    pub(crate) flushes_on_close: bool,
    pub(crate) atime: Atime,
    pub(crate) options: String,
    pub(crate) is_mounted: bool,
    /// Unmounted lazily while files were open: their last close shuts it down.
    pub(crate) is_detached: bool,
    /// Number of files opened by names below its mount point.
    pub(crate) opened: u64,
    /// Held during an unmount: blocks flushers.
    pub(crate) s_umount: Lock,
    pub(crate) s_sync_lock: Lock,
    pub(crate) under_writeback: Vec<InodeId>,
    pub(crate) names: Names,
    pub(crate) journal: Option<Journal>,
    /// Whether new blocks stay unwritten until their data is on the device and a worker converts them.
    pub(crate) has_unwritten: bool,
    /// Whether files can share blocks (`reflink`).
    pub(crate) has_reflink: bool,
    /// Its capacity, if bounded.
    pub(crate) space: Option<Space>,
    pub(crate) conversions: crate::ioend::Conversions,
    /// Inode of its block device, to which metadata is checkpointed.
    pub(crate) metadata: Option<InodeId>,
    /// The log tree of a btrfs.
    pub(crate) log_tree: LogTree,
    pub(crate) upper: Option<Upper>,
    pub(crate) created: u64,
    pub(crate) groups: Groups,
    pub(crate) perags: Perags,
    /// Held while a thread reads metadata that others may need.
    pub(crate) reading: Lock,
    /// The small file of ext4 that got blocks last.
    pub(crate) last_small: Option<InodeId>,
    /// The file that got blocks last and the place after them, by region (see [`World::take_place`]).
    pub(crate) places: BTreeMap<u32, (InodeId, u64)>,
}

/// The directories below an overlay.
#[derive(Clone, Debug)]
pub(crate) struct Upper {
    pub(crate) sb: SbId,
    /// Upper directory.
    pub(crate) dir: String,
    pub(crate) lower: String,
    pub(crate) work: String,
    /// Paths below the mount point at which a file of the lower directory was removed.
    pub(crate) whiteouts: BTreeSet<String>,
    pub(crate) is_volatile: bool,
}

/// Numbers of metadata blocks: as in one group, with few directories whose inodes are together.
pub(crate) const INODE_BITMAP: u64 = 1;
pub(crate) const GROUP_DESCRIPTOR: u64 = 2;
const BLOCK_BITMAP: u64 = 3;
pub(crate) const DIRECTORIES: u64 = 4;
const FIRST_DIRECTORY: u64 = 5;
pub(crate) const FIRST_INODES: u64 = 64;

/// Inodes in one block of an inode table.
pub(crate) const INODES_PER_BLOCK: u64 = 16;

/// Inode table block of the inode created as number `created`: one for 16 inodes, or one for each.
pub(crate) fn inode_block(journal: Option<&Journal>, created: u64) -> u64 {
    let logs_inodes = journal.is_some_and(Journal::logs_inodes);
    FIRST_INODES + if logs_inodes { created } else { created / INODES_PER_BLOCK }
}

impl World {
    /// Returns the filesystem of a path, and the path in it. An overlay's files are its upper filesystem's.
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

    /// Returns the mounted filesystem that a path is on; for an overlay, the overlay itself.
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

    /// Mounting an overlay checks whether its work directory can hold a file without a name (`d_tmpfile`). That
    /// file is dirty and is gone at once: the flusher of the upper filesystem wakes up an interval later, even
    /// without dirty data. Seen in a trace of 6.12; the first kernel with this check is unverified.
    pub(crate) fn try_upper(&mut self, sb: SbId) {
        let upper = self.sbs[sb].upper.as_ref().map(|upper| upper.sb);
        if let Some(bdi) = upper.and_then(|upper| self.sbs[upper].bdi) {
            let wb = self.bdis[bdi].root;
            self.wb_wake_delayed(wb);
        }
    }

    /// Returns the file of a path. Creates it if it is missing.
    pub(crate) fn make_file(&mut self, path: &str) -> Result<InodeId, Errno> {
        let (id, path) = self.resolve(path);
        self.make_file_in(id, &path).map(|(inode, _)| inode)
    }

    /// Returns the file of a path in a known filesystem, and whether it was created.
    pub(crate) fn make_file_in(&mut self, id: SbId, path: &str) -> Result<(InodeId, bool), Errno> {
        let sb = &mut self.sbs[id];
        let below = sb.below(path);
        match sb.names.entry(below)? {
            Entry::Vacant(place) => {
                let inode = InodeId::new(self.inodes.len());
                place.insert(Dentry::File(inode));
                let (block, directory) = sb.place_inode(path);
                self.inodes.push(Inode { directory, ..Inode::new(id, block) });
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
        match inode.directory {
            0 => self.named_blocks(inode.sb, inode.block),
            directory => block_groups::named_blocks(directory, inode.block),
        }
    }

    /// Metadata blocks that an allocation or release of data blocks changes: bitmap of blocks, group descriptor, inode.
    pub(crate) fn data_blocks(&self, inode: InodeId) -> [u64; 3] {
        [BLOCK_BITMAP, GROUP_DESCRIPTOR, self.inodes[inode].block]
    }

    /// Metadata blocks that the name of the directory created last changes.
    pub(crate) fn dir_blocks(&self, sb: SbId) -> [u64; 5] {
        let sb_of = &self.sbs[sb];
        self.named_blocks(sb, inode_block(sb_of.journal.as_ref(), sb_of.created))
    }

    /// The block that a new or removed directory changes besides those of its name: ext4 gives a directory a block.
    /// XFS keeps a small one in its inode.
    pub(crate) fn dir_bitmap(&self, sb: SbId) -> Option<u64> {
        self.sbs[sb].metadata.map(|_| BLOCK_BITMAP)
    }

    /// Metadata blocks that the name of an inode in this block changes.
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

    /// Updates the access time for a read, if the mount options require it; at most once per tick.
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
