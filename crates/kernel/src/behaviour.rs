// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one kernel does, as plain fields in groups. [`Behaviour::of`] starts with the oldest behaviour known and applies
//! every change ([`super::changes`]) that the version has. Stable and vendor trees carry backports in both directions:
//! where a behaviour can be probed, [`Behaviour::probed`] lets the probe decide instead of the version.

use super::algorithm::Algorithm;
use super::change::{Change, Presence, changes};
use floodline_record::facts::HostFacts;
use floodline_record::version::KernelVersion;

/// Behaviour of one kernel. Readers branch on these fields, never on a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Thresholds, shares, rates and pauses.
    pub arithmetic: Algorithm,
    /// What the flusher takes up, and in which order.
    pub flusher: Flusher,
    /// sync, syncfs and umount.
    pub sync: SyncPath,
    /// Inodes that move between wbs.
    pub switching: Switching,
    /// Filesystems whose writes are accounted per cgroup.
    pub cgroup_writeback: CgroupFilesystems,
    /// The memory controller.
    pub memcg: Memcg,
    /// Journals of ext4 and XFS.
    pub journal: Journals,
    /// Units in which completions come back, and requests go out.
    pub ioend: Ioends,
    /// Large folios.
    pub folios: Folios,
    /// Loop devices, overlays and arrays.
    pub stack: Stacks,
    /// Timers.
    pub timers: Timers,
    /// Writeback throttling of block devices.
    pub wbt: WbtPresence,
    /// Settings that exist.
    pub knobs: Knobs,
    /// What files print.
    pub files: Files,
}

/// What the flusher takes up, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flusher {
    /// Whether a request to write everything is one pending mark per wb; before, each request is work of its own.
    pub start_all_once: bool,
    /// Whether every round computes a new cutoff and ends without progress on the inodes left over; after, the cutoff
    /// moves only when new inodes are queued.
    pub recomputes_cutoff: bool,
    /// Whether an inode that was dirtied again after the cutoff keeps its turn.
    pub requeues_redirtied: bool,
}

/// sync, syncfs and umount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPath {
    /// Whether a sync excludes inode switching on its bdi.
    pub switch_lock: bool,
    /// Whether a waiter for a reader-writer semaphore that waited too long gets it handed over.
    pub rwsem_handoff: bool,
    /// Whether sync(2) visits every overlay again after the filesystems below.
    pub visits_overlays: bool,
}

/// Inodes that move between wbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switching {
    /// Whether the inodes of a removed cgroup move to the nearest live ancestor. A clean inode then stays attached.
    pub releases_dying: bool,
    /// Whether inodes that are dirty only by their time stamps move too.
    pub takes_time_dirty: bool,
    /// Whether a moved dirty inode is sorted into the target's list by age; else it is appended.
    pub sorts_by_age: bool,
    /// Whether one worker per target wb does the work; before, every batch is work of its own and all contend for one lock.
    pub one_worker: bool,
    /// Whether the preparation of a batch goes on where the last one ended; before, it walks over all prepared inodes.
    pub prepare_resumes: bool,
    /// Whether an appended inode gets a new `dirtied_when`; else it gets a new `dirtied_time_when`.
    pub restamps_dirtied_when: bool,
    /// Whether an unmount waits for the switches of its own superblock only; before, for all of the machine.
    pub umount_waits_for_own: bool,
}

/// Filesystems whose writes are accounted per cgroup, where both controllers are on the unified hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupFilesystems {
    /// ext2.
    pub ext2: bool,
    /// ext4, and ext3, which its driver serves.
    pub ext4: bool,
    /// btrfs.
    pub btrfs: bool,
    /// f2fs.
    pub f2fs: bool,
    /// XFS.
    pub xfs: bool,
}

/// The memory controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memcg {
    /// Whether a throttled writer has the wb flushed that its pages are attached to.
    pub foreign_flush: bool,
    /// Whether `memory.min` exists.
    pub memory_min: bool,
    /// Whether a task over `memory.high` sleeps on its way back to user space.
    pub high_sleeps: bool,
    /// Pages charged at a time (`MEMCG_CHARGE_BATCH`).
    pub charge_batch: u64,
}

/// Journals of ext4 and XFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Journals {
    /// Whether a transaction of jbd2 may fill a third of the journal less its descriptors; before, a quarter.
    pub transaction_is_third: bool,
    /// Whether wbt lets the writes of jbd2 through. Before, they are urgent ones.
    pub jbd2_is_exempt: bool,
    /// Whether ext4 allocates unwritten extents unless `dioread_lock` is given.
    pub ext4_dioread_nolock: bool,
    /// Whether XFS writes the commit record of a checkpoint after all that belongs to it, if that needs several buffers.
    pub xfs_separates_commit: bool,
}

/// Units in which completions come back, and requests go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ioends {
    /// How much one ioend of iomap (XFS) holds.
    pub iomap: IoendSize,
    /// Most KiB of one request, where the device sets no limit (`BLK_DEF_MAX_SECTORS`).
    pub request_max_kib: u64,
    /// Whether a rotating disk reads ahead by twice its largest request, unless it states an optimal size.
    pub rotational_read_ahead: bool,
}

/// How much one ioend of iomap holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoendSize {
    /// A chain of bios without end.
    Unlimited,
    /// A chain of at most `IOEND_BATCH_SIZE` folios.
    Batch,
    /// One bio.
    OneBio,
}

/// Large folios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folios {
    /// Whether readahead makes large folios on XFS.
    pub xfs_by_readahead: bool,
    /// Whether a write makes large folios on XFS.
    pub xfs_by_write: bool,
    /// Whether readahead and writes make large folios on ext4.
    pub ext4: bool,
    /// Whether iomap (XFS) keeps which blocks of a folio are dirty; before, a folio is dirty as a whole.
    pub iomap_dirty_blocks: bool,
    /// Whether a fault that reads ahead makes folios of four pages where the filesystem has large ones.
    pub fault_makes_four: bool,
}

/// Loop devices, overlays, arrays, and limits of cgroups on devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stacks {
    /// Whether a sync or unmount of an overlay writes the data of its upper filesystem.
    pub overlay_syncs_upper: bool,
    /// Whether an overlay copies a file up by sharing its blocks, if the filesystem below supports that.
    pub overlay_clones: bool,
    /// Whether a file opened on an overlay has a page cache of its own, which stays empty: calls that work on that cache,
    /// such as sync_file_range, do nothing.
    pub overlay_has_own_cache: bool,
    /// Whether overlays have the mount option `volatile`.
    pub overlay_volatile: bool,
    /// Whether a buffered loop device has a worker per cgroup and charges its writes to that cgroup.
    pub loop_charges_cgroup: bool,
    /// Whether RAID1 and RAID10 pass the flags of a request on to their members; before, only "sync".
    pub md_keeps_flags: bool,
    /// Whether requests for metadata pass the limits of their cgroup at once, and count against them.
    pub throttle_passes_metadata: bool,
    /// KiB of the largest piece that dm-crypt encrypts or decrypts as one.
    pub crypt_request_kib: u64,
}

/// Timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Whether the timer wheel rounds long timers up instead of sorting them anew.
    pub coarse_wheel: bool,
}

/// Writeback throttling of block devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WbtPresence {
    /// Whether it exists.
    pub exists: bool,
    /// Whether it sees that a writer of any cgroup was throttled; before, only those of the root's wb.
    pub sees_cgroup_throttling: bool,
}

/// Settings that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Whether a bdi has `strict_limit`, `min_bytes`, `max_bytes` and the ratios in parts per million.
    pub bdi_fine: bool,
    /// Whether delay accounting is off until the sysctl `kernel.task_delayacct` switches it on.
    pub task_delayacct: bool,
}

/// What files print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Files {
    /// Whether debugfs has `wb_stats`, one block per wb.
    pub wb_stats: bool,
    /// Whether the bdi `stats` add up all wbs of the bdi; before, they are those of the root's wb.
    pub bdi_stats_sum: bool,
    /// Whether the event `balance_dirty_pages` prints the domain that throttled; before, always the global one.
    pub trace_has_domain: bool,
}

impl Behaviour {
    /// Linux 3.2, the oldest behaviour known. Changes are stated against it.
    const OLDEST: Behaviour = Behaviour {
        arithmetic: Algorithm::OLDEST,
        flusher: Flusher { start_all_once: false, recomputes_cutoff: true, requeues_redirtied: true },
        sync: SyncPath { switch_lock: false, rwsem_handoff: false, visits_overlays: true },
        switching: Switching {
            releases_dying: false,
            takes_time_dirty: false,
            sorts_by_age: true,
            one_worker: false,
            prepare_resumes: false,
            restamps_dirtied_when: false,
            umount_waits_for_own: false,
        },
        cgroup_writeback: CgroupFilesystems { ext2: false, ext4: false, btrfs: false, f2fs: false, xfs: false },
        memcg: Memcg { foreign_flush: false, memory_min: false, high_sleeps: false, charge_batch: 32 },
        journal: Journals {
            transaction_is_third: false,
            jbd2_is_exempt: false,
            ext4_dioread_nolock: false,
            xfs_separates_commit: false,
        },
        ioend: Ioends { iomap: IoendSize::Unlimited, request_max_kib: 1280, rotational_read_ahead: false },
        folios: Folios {
            xfs_by_readahead: false,
            xfs_by_write: false,
            ext4: false,
            iomap_dirty_blocks: false,
            fault_makes_four: true,
        },
        stack: Stacks {
            overlay_syncs_upper: false,
            overlay_clones: false,
            overlay_has_own_cache: false,
            overlay_volatile: false,
            loop_charges_cgroup: false,
            md_keeps_flags: false,
            throttle_passes_metadata: false,
            crypt_request_kib: 1024,
        },
        timers: Timers { coarse_wheel: false },
        wbt: WbtPresence { exists: false, sees_cgroup_throttling: false },
        knobs: Knobs { bdi_fine: false, task_delayacct: false },
        files: Files { wb_stats: false, bdi_stats_sum: false, trace_has_domain: false },
    };

    /// The behaviour of a kernel as mainline has it, and as stable trees are known to have it. Where it is not known
    /// whether a stable release has a change, it has not. Kernels older than all changes get the oldest behaviour, kernels
    /// newer than all changes the newest.
    pub fn of(version: KernelVersion) -> Behaviour {
        Behaviour::probed(version, |_| None)
    }

    /// The behaviour of a kernel of which some changes were probed: `shows` answers by a change's id whether the kernel has
    /// it, and `None` leaves the answer to the version.
    pub fn probed(version: KernelVersion, shows: impl Fn(&str) -> Option<bool>) -> Behaviour {
        Behaviour::composed(|change| shows(change.id).unwrap_or_else(|| change.presence(version) == Presence::In))
    }

    /// The behaviour that a set of changes makes.
    pub(crate) fn composed(has: impl Fn(&Change) -> bool) -> Behaviour {
        let mut behaviour = Behaviour::OLDEST;
        for change in changes() {
            if let Some(set) = change.set.filter(|_| has(change)) {
                set(&mut behaviour);
            }
        }
        behaviour
    }

    /// The newest behaviour known: for kernels whose version is not known.
    pub fn newest() -> Behaviour {
        Behaviour::composed(|_| true)
    }

    /// The behaviour of a host's kernel; `None` when its version is not known.
    pub fn of_host(facts: &HostFacts) -> Option<Behaviour> {
        facts.kernel.map(Behaviour::of)
    }
}
