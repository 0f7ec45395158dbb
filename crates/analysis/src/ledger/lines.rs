// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ledger as it is told: sums of the machine, and a line for each disk, process, cgroup, file, wait and pause.

use super::balance::Mismatch;
use super::blame::Blame;
use floodline_record::traced::bytes::Class;
use floodline_record::traced::throttle::Domain;
use floodline_record::traced::waits::Operation;
use serde::Serialize;

/// Where the bytes of a window came from and went to. All lists are in order of bytes, most first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ledger {
    /// [`super::SCHEMA`].
    pub schema: &'static str,
    /// Seconds between the first and the last sample.
    pub window_s: f64,
    /// The whole machine.
    pub totals: Totals,
    /// Disks, those at the bottom first.
    pub disks: Vec<DiskLine>,
    /// Processes.
    pub processes: Vec<ProcessLine>,
    /// Cgroups.
    pub cgroups: Vec<CgroupLine>,
    /// Files.
    pub files: Vec<FileLine>,
    /// Long waits for stable storage, longest first, and whose data they waited for.
    pub waits: Vec<Blame>,
    /// All waits for stable storage, by process and operation, most time first.
    pub synced: Vec<SyncedLine>,
    /// Pauses in dirty throttling, by process, device and domain, most time first.
    pub throttled: Vec<ThrottledLine>,
    /// Sums that contradict what the kernel counted: the trace is incomplete by that much.
    pub mismatches: Vec<Mismatch>,
    /// What the tracer did not see, in words (escaped), each once.
    pub gaps: Vec<String>,
}

/// Sums of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Bytes that processes handed to write calls (`/proc/PID/io wchar`), each once; stores through maps are not in
    /// it, and pipes and sockets are. A process that was in no sample is counted by the parent that waited for it.
    pub application_bytes: u64,
    /// Bytes made dirty.
    pub dirtied_bytes: u64,
    /// The part of them that had been dirty before.
    pub redirtied_bytes: u64,
    /// Dirty bytes that were dropped before they were written: by the trace, or `cancelled_write_bytes` of processes
    /// where that is more.
    pub cancelled_bytes: u64,
    /// Bytes queued at the disks at the bottom, by what they are.
    pub queued: Queued,
    /// Bytes of data that are credited to a process.
    pub credited_bytes: u64,
    /// Bytes of data of which no dirtier was seen: dirty before the trace began, or dropped from full
    /// maps.
    pub unattributed_bytes: u64,
    /// What `/proc/diskstats` counted on the same disks in the same time: at completion, so that
    /// requests under way at either end differ.
    pub diskstats_bytes: Option<u64>,
}

/// Queued bytes by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Queued {
    /// Pages of files.
    pub data_bytes: u64,
    /// The filesystem's own blocks.
    pub metadata_bytes: u64,
    /// The filesystem's log.
    pub journal_bytes: u64,
    /// Past the page cache.
    pub direct_bytes: u64,
    /// None of these could be told.
    pub unknown_bytes: u64,
}

impl Queued {
    /// Everything.
    pub fn total(&self) -> u64 {
        [self.metadata_bytes, self.journal_bytes, self.direct_bytes, self.unknown_bytes]
            .into_iter()
            .fold(self.data_bytes, u64::saturating_add)
    }

    pub(super) fn of(&mut self, class: Class) -> &mut u64 {
        match class {
            Class::Data => &mut self.data_bytes,
            Class::Metadata => &mut self.metadata_bytes,
            Class::Journal => &mut self.journal_bytes,
            Class::Direct => &mut self.direct_bytes,
            Class::Unknown => &mut self.unknown_bytes,
        }
    }
}

/// One disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiskLine {
    /// Its name (escaped), or its number where the recording does not name it.
    pub disk: String,
    /// Whether it is the bottom of its stack, and so in the sums.
    pub is_bottom: bool,
    /// What was queued at it.
    pub queued: Queued,
    /// What `/proc/diskstats` counted.
    pub diskstats_bytes: Option<u64>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessLine {
    /// Process id.
    pub pid: u32,
    /// Its name (escaped).
    pub comm: String,
    /// Its cgroup (escaped path, or a container's name).
    pub cgroup: String,
    /// Bytes handed to write calls, as far as it was in samples; `None` where it was in none, and where most are
    /// likely those of children that were in none.
    pub application_bytes: Option<u64>,
    /// Bytes made dirty.
    pub dirtied_bytes: u64,
    /// The part of them that had been dirty before.
    pub redirtied_bytes: u64,
    /// Bytes of data at the disks that it is credited with, those it wrote past the page cache included.
    pub device_bytes: u64,
    /// Device bytes by application bytes; `None` where the latter are less than a page, or not known to their end.
    pub amplification: Option<f64>,
}

/// One cgroup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CgroupLine {
    /// Escaped path, or a container's name.
    pub cgroup: String,
    /// Bytes made dirty by its tasks.
    pub dirtied_bytes: u64,
    /// The part of them that had been dirty before.
    pub redirtied_bytes: u64,
    /// Bytes of data at the disks that its tasks are credited with.
    pub device_bytes: u64,
    /// Bytes of all classes at the disks that the kernel charged to it: of a file that several cgroups
    /// write, all is charged to the one that owns the inode.
    pub charged_bytes: u64,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileLine {
    /// Path where it is known, else `device:inode`; all that are too small to be named are one line of their
    /// filesystem.
    pub file: String,
    /// Bytes made dirty.
    pub dirtied_bytes: u64,
    /// The part of them that had been dirty before.
    pub redirtied_bytes: u64,
    /// The part of the dirty bytes that was dropped before it was written, where the tracer saw it.
    pub cancelled_bytes: u64,
    /// Its bytes at the disks at the bottom.
    pub device_bytes: u64,
    /// Those who made it dirty, most first: `name[pid]`.
    pub by: Vec<String>,
}

/// Waits of one process in one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SyncedLine {
    /// `name[pid]`.
    pub process: String,
    /// Its cgroup.
    pub cgroup: String,
    /// In what.
    pub operation: Operation,
    /// How often.
    pub count: u64,
    /// All of them together, nanoseconds.
    pub total_ns: u64,
    /// The longest, nanoseconds.
    pub longest_ns: u64,
}

/// Pauses of one process in `balance_dirty_pages` for one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThrottledLine {
    /// `name[pid]`.
    pub process: String,
    /// Its cgroup.
    pub cgroup: String,
    /// Backing device.
    pub bdi: String,
    /// Whose limits it was held to.
    pub domain: Domain,
    /// How often.
    pub count: u64,
    /// All of them together, nanoseconds; threads that are paused at the same time count each.
    pub total_ns: u64,
    /// The longest, nanoseconds.
    pub longest_ns: u64,
}
