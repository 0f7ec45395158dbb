// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata that a new XFS reads when its allocation groups are first used (struct xfs_perag). A mount reads the headers
//! of each group and the cluster of the root's inode, and drops what it has read. The first new inode of a group then
//! reads the roots of the two inode trees. The first allocation of a group reads the free list, one sector, and the roots
//! of the two trees of free space. Inodes of the chunk that mkfs made lie in clusters on the device. Those of later
//! chunks are made in memory. Directories take turns at the groups, and files are in the group of their directory. The task that
//! allocates reads, whether it is a flusher, a caller of fsync or a direct writer. Traced in guests of 6.12 with
//! mkfs.xfs 6.1. Reads after `drop_caches`, one to three sectors per group, are left out.

use crate::arena::{CgId, InodeId, PidId, SbId};
use crate::block::{Class, Done, Request, Way, submit_and_wait};
use crate::block_groups::begin_of_group;
use crate::engine::Sim;
use crate::process::may_block;
use crate::space::Space;
use crate::sync::{lock, lock_shared, unlock, unlock_shared};
use crate::world::{PAGE, World};
use crate::xfsaild::{INODES_PER_CLUSTER, METADATA, PAGES_PER_CLUSTER};
use floodline_scenario::FsType;

/// Bytes of the free list of a group (AGFL).
const SECTOR: u64 = 512;
/// Inodes of a chunk.
const CHUNK: u64 = 64;
/// Inodes that mkfs makes: the root, and two of the realtime device.
const MADE: u64 = 3;
/// Blocks of a group with the roots of its trees: free space by place and by size, inodes, free inodes.
const BNO: u64 = 1;
const CNT: u64 = 2;
const INO: u64 = 3;
const FINO: u64 = 4;
/// Block of the first cluster of the root's chunk.
const ROOT_CHUNK: u64 = 16;
/// Pages between the metadata of two groups, in the model's numbers.
const GROUP_PAGES: u64 = 1 << 32;
/// Usual number of groups on one disk.
const GROUPS: u32 = 4;
/// Largest allocation group.
const GROUP_MAX: u64 = 1 << 40;

/// Allocation groups of an XFS.
#[derive(Debug, Default)]
pub(crate) struct Perags {
    /// Empty if no metadata has to be read.
    groups: Vec<Perag>,
    /// Number of directories that have their inode, the root among them.
    directories: u32,
}

/// One allocation group.
#[derive(Clone, Copy, Debug, Default)]
struct Perag {
    /// Inodes in use.
    inodes: u64,
    knows_inodes: bool,
    knows_space: bool,
    /// Whether a thread that allocates blocks is reading its metadata, with its header locked.
    is_locked: bool,
    /// Number of clusters of the root's chunk that are in memory.
    clusters: u64,
}

/// A piece of metadata to read: place in pages, length in bytes.
pub(crate) type Piece = (u64, u64);

/// Number of allocation groups that mkfs makes (`calc_default_ag_geometry`), by the size of the device in bytes.
pub(crate) fn usual_groups(bytes: u64, is_striped: bool) -> u32 {
    let least = u32::try_from(bytes.div_ceil(GROUP_MAX)).unwrap_or(u32::MAX);
    let usual = match (is_striped, bytes >> 30) {
        (false, _) => GROUPS,
        (true, ..=8) => 2 * GROUPS,
        (true, ..=512) => 4 * GROUPS,
        (true, _) => 8 * GROUPS,
    };
    least.max(usual)
}

impl Perags {
    /// The groups of a filesystem that was mounted right after mkfs.
    pub(crate) fn new(groups: u32) -> Perags {
        let mut all = vec![Perag::default(); groups.max(1) as usize];
        all[0].inodes = MADE;
        Perags { groups: all, directories: 1 }
    }

    /// Group of a directory, by its number in order of creation; the root is 0 (`m_agirotor`).
    fn group_of(&self, directory: u32) -> usize {
        directory.saturating_sub(1) as usize % self.groups.len().max(1)
    }

    /// Notes that the groups of these directories were used before the workload, and that files were made in the root: the
    /// images of loop devices.
    pub(crate) fn used_before(&mut self, directories: u32, files: u64) {
        let mut read = Vec::new();
        self.take_directories(directories, &mut read);
        (0..files).for_each(|_| self.take_inode(0, &mut read));
        for directory in 0..directories {
            let group = self.group_of(directory);
            if let Some(perag) = self.groups.get_mut(group) {
                perag.knows_space = true;
            }
        }
    }

    /// Notes that the filesystem was mounted again: nothing but the clusters that belong to open files is in memory.
    pub(crate) fn mounted(&mut self) {
        for perag in &mut self.groups {
            (perag.knows_inodes, perag.knows_space) = (false, false);
        }
    }

    /// Takes inodes for new directories, up to a number of them.
    fn take_directories(&mut self, directories: u32, read: &mut Vec<Piece>) {
        while self.directories < directories {
            let group = self.group_of(self.directories);
            self.directories += 1;
            self.take_inode(group, read);
        }
    }

    /// Takes an inode of a group. Adds what has to be read to `read`.
    fn take_inode(&mut self, group: usize, read: &mut Vec<Piece>) {
        let at = place_of(group);
        let Some(perag) = self.groups.get_mut(group) else { return };
        let inode = perag.inodes;
        perag.inodes += 1;
        let has_root_chunk = group == 0;
        if inode.is_multiple_of(CHUNK) {
            perag.read_space(at, read);
        }
        if !std::mem::replace(&mut perag.knows_inodes, true) {
            read.extend([(at + FINO, PAGE), (at + INO, PAGE)]);
        }
        let cluster = inode / INODES_PER_CLUSTER;
        if has_root_chunk && inode < CHUNK && perag.clusters <= cluster {
            perag.clusters = cluster + 1;
            read.push((at + ROOT_CHUNK + cluster * PAGES_PER_CLUSTER, PAGES_PER_CLUSTER * PAGE));
        }
    }
}

impl Perag {
    /// Adds the metadata of free space, which an allocation needs.
    fn read_space(&mut self, at: u64, read: &mut Vec<Piece>) {
        if !std::mem::replace(&mut self.knows_space, true) {
            read.extend([(at, SECTOR), (at + CNT, PAGE), (at + BNO, PAGE)]);
        }
    }
}

impl World {
    /// Takes an inode for a new file, and inodes for the directories that were made with it. Returns what has to be read.
    pub(crate) fn take_inode(&mut self, inode: InodeId, path: &str) -> Vec<Piece> {
        let (i, mut read) = (&mut self.inodes[inode], Vec::new());
        let sb = &mut self.sbs[i.sb];
        if sb.fs_type == FsType::Ext4 {
            sb.groups.read_for_inode(i.block, &mut read);
            self.put_on_members(inode, begin_of_group(self.inodes[inode].block));
            return read;
        }
        if sb.perags.groups.is_empty() {
            return read;
        }
        sb.perags.take_directories(sb.names.directories(), &mut read);
        let directory = sb.names.parent(sb.below(path)).unwrap_or(0);
        let group = sb.perags.group_of(directory);
        sb.perags.take_inode(group, &mut read);
        i.group = u32::try_from(group).unwrap_or(0);
        let (groups, bytes) = (sb.perags.groups.len() as u64, sb.space.map_or(0, Space::bytes));
        self.put_on_members(inode, bytes / groups.max(1) * group as u64);
        read
    }

    /// Notes on which member of a linear device a new file is, by the place of its group on the filesystem, bytes.
    fn put_on_members(&mut self, inode: InodeId, byte: u64) {
        let mut device = self.sbs[self.inodes[inode].sb].device;
        while let Some(block) = device {
            let block = &mut self.blocks[block];
            if let Some(stack) = &mut block.stack {
                stack.put(u64::from(inode.0), byte);
            }
            // An encrypted device may lie on a linear one.
            device = match &block.mirrors[..] {
                [only] => Some(only.device),
                _ => None,
            };
        }
    }

    /// Takes inodes for the directories that are new. Returns what has to be read.
    pub(crate) fn take_directories(&mut self, sb: SbId) -> Vec<Piece> {
        let (sb, mut read) = (&mut self.sbs[sb], Vec::new());
        if sb.fs_type == FsType::Ext4 {
            sb.groups.read_for_name(&mut read);
        }
        if !sb.perags.groups.is_empty() {
            sb.perags.take_directories(sb.names.directories(), &mut read);
        }
        read
    }

    /// Chooses the group from which a file gets blocks, and locks it if metadata of it have to be read. That is the group of its
    /// last blocks, or the next one that no thread has locked (`XFS_ALLOC_FLAG_TRYLOCK`).
    fn lock_group(&mut self, inode: InodeId) -> Vec<Piece> {
        let i = &mut self.inodes[inode];
        let (groups, mut read) = (&mut self.sbs[i.sb].perags.groups, Vec::new());
        let all = groups.len();
        let free = (0..all).map(|step| (i.group as usize + step) % all).find(|group| !groups[*group].is_locked);
        if let Some(group) = free {
            groups[group].read_space(place_of(group), &mut read);
            groups[group].is_locked = !read.is_empty();
            i.group = u32::try_from(group).unwrap_or(0);
        }
        read
    }

    fn unlock_group(&mut self, inode: InodeId) {
        let i = &self.inodes[inode];
        if let Some(perag) = self.sbs[i.sb].perags.groups.get_mut(i.group as usize) {
            perag.is_locked = false;
        }
    }
}

/// Place of a group's metadata, in pages.
fn place_of(group: usize) -> u64 {
    METADATA + group as u64 * GROUP_PAGES
}

/// Wait reason of threads that read metadata, and of those that wait for one of them.
const READ: &str = "metadata that is read";

/// Reads the metadata that an allocation of blocks for a file needs, for a thread of a cgroup.
pub(crate) async fn before_allocation(sim: &Sim, inode: InodeId, cgroup: CgId) {
    let (sb, read) = {
        let mut world = sim.w();
        (world.inodes[inode].sb, world.lock_group(inode))
    };
    if !read.is_empty() {
        read_all(sim, sb, &read, cgroup).await;
        sim.w().unlock_group(inode);
    }
}

/// Reads the metadata that a new file or directory needs, in a task's name. Tasks that create files meanwhile wait: those of one
/// directory are created one after the other.
pub(crate) async fn before_creation(sim: &Sim, pid: PidId, sb: SbId, pieces: &[Piece]) {
    let (is_held, cgroup) = {
        let world = sim.w();
        (world.sbs[sb].reading.is_held, world.memcg_of(pid))
    };
    if pieces.is_empty() && !is_held {
        return;
    }
    may_block(sim, pid, async {
        if pieces.is_empty() {
            lock_shared(sim, READ, |world| &mut world.sbs[sb].reading).await;
            unlock_shared(sim, |world| &mut world.sbs[sb].reading);
            return;
        }
        lock(sim, READ, |world| &mut world.sbs[sb].reading).await;
        read_all(sim, sb, pieces, cgroup).await;
        unlock(sim, |world| &mut world.sbs[sb].reading);
    })
    .await;
}

/// Reads pieces of metadata one after the other, for a thread of a cgroup.
async fn read_all(sim: &Sim, sb: SbId, pieces: &[Piece], cgroup: CgId) {
    let Some(device) = sim.w().sbs[sb].device else { return };
    let reader = sim.w().task_of(sim.current_process());
    if let Some(pid) = reader {
        sim.w().pids[pid].io.read_bytes += pieces.iter().map(|(_, bytes)| bytes).sum::<u64>();
    }
    for (at, bytes) in pieces {
        let (way, class, done) = (Way::Read, Class::Exempt, Done::Nothing);
        let request = Request { way, at: *at, bytes: *bytes, class, merged: 0, goes_on: false, cgroup, done };
        submit_and_wait(sim, device, request, READ).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sectors that a new filesystem of four groups reads for files in these directories.
    fn sectors(perags: &mut Perags, directory: u32, files: u64) -> u64 {
        let mut read = Vec::new();
        perags.take_directories(directory + 1, &mut read);
        for _ in 0..files {
            perags.take_inode(perags.group_of(directory), &mut read);
        }
        read.iter().map(|(_, bytes)| bytes / SECTOR).sum()
    }

    #[test]
    fn the_first_files_of_the_root_read_two_trees_and_two_clusters() {
        let mut perags = Perags::new(4);
        // Traced on 6.12 and 7.2: 48 sectors for the first file, 32 for the thirtieth, 17 for a second chunk.
        let read: Vec<u64> = [1, 28, 1, 31, 1, 300].map(|files| sectors(&mut perags, 0, files)).to_vec();
        assert_eq!(read, [48, 0, 32, 0, 17, 0]);
    }

    #[test]
    fn images_that_were_made_before_leave_the_second_cluster() {
        let mut perags = Perags::new(4);
        perags.used_before(1, 3);
        // Traced on 6.12.43: 32 sectors for forty files in a directory, beside three images in the root.
        assert_eq!(sectors(&mut perags, 1, 40), 32);
    }

    #[test]
    fn directories_take_turns_at_the_groups() {
        let mut perags = Perags::new(4);
        // Traced on 6.12: 48 sectors for the first directory, 33 for each in another group, 0 from the fifth on.
        let read: Vec<u64> = (1..=6).map(|directory| sectors(&mut perags, directory, 1)).collect();
        assert_eq!(read, [48, 33, 33, 33, 0, 0]);
        let mut space = Vec::new();
        perags.groups[0].read_space(0, &mut space);
        perags.groups[1].read_space(0, &mut space);
        assert_eq!(space, [(0, SECTOR), (CNT, PAGE), (BNO, PAGE)], "a directory elsewhere allocated its chunk");
    }

    #[test]
    fn mkfs_makes_four_groups_and_more_on_stripes() {
        const GIB: u64 = 1 << 30;
        for (gib, on_disk, on_stripes) in [(1, 4, 8), (8, 4, 8), (100, 4, 16), (4000, 4, 32), (10_240, 10, 32)] {
            assert_eq!((usual_groups(gib * GIB, false), usual_groups(gib * GIB, true)), (on_disk, on_stripes), "{gib}");
        }
    }
}
