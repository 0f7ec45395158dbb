// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ledger as it is reported: sums of the machine, and a line for each disk, process, cgroup, file, wait and pause.

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
    /// Long waits for stable storage, longest first, with the owners of the data they waited for.
    pub waits: Vec<Blame>,
    /// All waits for stable storage, by process and operation, most time first.
    pub synced: Vec<SyncedLine>,
    /// Pauses in dirty throttling, by process, device and domain, most time first.
    pub throttled: Vec<ThrottledLine>,
    /// Sums that contradict the kernel's counts: the trace is incomplete by that much.
    pub mismatches: Vec<Mismatch>,
    /// Losses of the tracer, in words (escaped), each once.
    pub gaps: Vec<String>,
}

/// Sums of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Bytes that processes handed to write calls (`/proc/PID/io wchar`), each once. Includes pipes and sockets, not
    /// stores through maps. A process that was in no sample is counted by the parent that waited for it.
    pub application_bytes: u64,
    /// Bytes made dirty.
    pub dirtied_bytes: u64,
    /// The part of these bytes that had been dirtied before.
    pub redirtied_bytes: u64,
    /// Dirty bytes that were dropped before they were written: by the trace, or by `cancelled_write_bytes` of processes
    /// where that is more.
    pub cancelled_bytes: u64,
    /// Bytes queued at the disks at the bottom, by class.
    pub queued: Queued,
    /// Bytes of data that are credited to a process.
    pub credited_bytes: u64,
    /// Bytes of data without a known dirtier: dirty before the trace began, or dropped from full maps.
    pub unattributed_bytes: u64,
    /// Bytes that `/proc/diskstats` counted on the same disks in the same time. It counts at completion, so requests in
    /// flight at either end differ.
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
    /// Bytes written past the page cache.
    pub direct_bytes: u64,
    /// Bytes of unknown class.
    pub unknown_bytes: u64,
}

impl Queued {
    /// Sum of all classes.
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
    /// Whether it is the bottom of its stack. Only such disks are in the sums.
    pub is_bottom: bool,
    /// Bytes queued at it.
    pub queued: Queued,
    /// Bytes that `/proc/diskstats` counted.
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
    /// Bytes handed to write calls while it was in samples. `None` where it was in no sample, or where most are likely
    /// those of unsampled children.
    pub application_bytes: Option<u64>,
    /// Bytes made dirty.
    pub dirtied_bytes: u64,
    /// The part of these bytes that had been dirtied before.
    pub redirtied_bytes: u64,
    /// Bytes of data at the disks that are credited to it, including those it wrote past the page cache.
    pub device_bytes: u64,
    /// Device bytes by application bytes; `None` where the latter are less than a page, or not known to its end.
    pub amplification: Option<f64>,
}

/// One cgroup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CgroupLine {
    /// Escaped path, or a container's name.
    pub cgroup: String,
    /// Bytes made dirty by its tasks.
    pub dirtied_bytes: u64,
    /// The part of these bytes that had been dirtied before.
    pub redirtied_bytes: u64,
    /// Bytes of data at the disks that are credited to its tasks.
    pub device_bytes: u64,
    /// Bytes of all classes at the disks that the kernel charged to it. A file that several cgroups write is charged
    /// entirely to the cgroup that owns the inode.
    pub charged_bytes: u64,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileLine {
    /// Path where it is known, else `device:inode`. All files of a filesystem that are too small to be named share one
    /// line.
    pub file: String,
    /// Bytes made dirty.
    pub dirtied_bytes: u64,
    /// The part of these bytes that had been dirtied before.
    pub redirtied_bytes: u64,
    /// The part of the dirty bytes that was dropped before it was written, where the tracer saw it.
    pub cancelled_bytes: u64,
    /// Its bytes queued at the disks at the bottom.
    pub device_bytes: u64,
    /// Processes that dirtied it, most first: `name[pid]`.
    pub by: Vec<String>,
}

/// Waits of one process in one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SyncedLine {
    /// `name[pid]`.
    pub process: String,
    /// Its cgroup.
    pub cgroup: String,
    /// The operation that waited.
    pub operation: Operation,
    /// Number of waits.
    pub count: u64,
    /// Total time of all waits, nanoseconds.
    pub total_ns: u64,
    /// Longest wait, nanoseconds.
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
    /// The domain whose limits paused it.
    pub domain: Domain,
    /// Number of pauses.
    pub count: u64,
    /// Total time of all pauses, nanoseconds. Threads that are paused at the same time count each.
    pub total_ns: u64,
    /// Longest pause, nanoseconds.
    pub longest_ns: u64,
}
