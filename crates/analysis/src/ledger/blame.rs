// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owners of the data that a long wait for stable storage waited for. The tracer counts exactly how many bytes were
//! queued for a superblock during a wait. Their owners follow from the bytes queued there in the intervals that the
//! wait touches, the first and the last in part. A wait within another of the same task is part of it.

use super::credit::FileKey;
use super::names::Names;
use super::process;
use floodline_record::human;
use floodline_record::id::DevId;
use floodline_record::record::{Event, What};
use floodline_record::traced::File;
use floodline_record::traced::bytes::{Class, Submitted};
use floodline_record::traced::waits::{Operation, SlowSync};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most cgroups and files named for one wait.
const NAMED: usize = 5;

/// One long wait and the data it waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blame {
    /// End of the wait, on the monotonic clock of the samples.
    pub at_ns: u64,
    /// Process id.
    pub pid: u32,
    /// `name[pid]`.
    pub process: String,
    /// Its cgroup.
    pub cgroup: String,
    /// The system call or operation that waited.
    pub operation: Operation,
    /// Length of the wait, nanoseconds.
    pub lasted_ns: u64,
    /// Device number of the superblock; `None` for all.
    pub device: Option<DevId>,
    /// The filesystem, by its mount point where it has one; `None` for all.
    pub filesystem: Option<String>,
    /// The file, where the operation has one.
    pub file: Option<String>,
    /// Bytes of data of this filesystem that were queued during the wait.
    pub queued_bytes: Option<u64>,
    /// Bytes that the waiting task queued itself.
    pub own_bytes: u64,
    /// Cgroups that own the data, most first.
    pub cgroups: Vec<Part>,
    /// Files, most first.
    pub files: Vec<Part>,
    /// Syncs of other filesystems by the same task within this wait, longest first: a task that unmounts an overlay
    /// waits for the filesystem of its upper directory. Their time is part of this wait's time.
    pub parts: Vec<Blame>,
}

impl Blame {
    /// When it began.
    pub fn began(&self) -> Nanos {
        Nanos(self.at_ns.saturating_sub(self.lasted_ns))
    }

    /// The owners of the data, as half a sentence; empty where they are not known.
    pub fn whose(&self) -> String {
        let part = |part: &Part| format!("{} of {}", human::percent(part.share), part.name);
        self.cgroups.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

/// A part of the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Name of the cgroup or file.
    pub name: String,
    /// Share of the queued data, 1.0 is all.
    pub share: f64,
}

/// Data queued at disks, by the end of the interval it was counted in.
struct Queued<'a> {
    rows: Vec<(Nanos, DevId, &'a Submitted)>,
    /// The longest interval of all.
    longest: u64,
}

impl<'a> Queued<'a> {
    fn of(window: &'a Window) -> Queued<'a> {
        let row = |event: &'a Event| match &event.what {
            What::Submitted(submitted) if submitted.class == Class::Data => {
                Some((event.at, submitted.device?, submitted))
            }
            _ => None,
        };
        let mut rows: Vec<_> = window.events.iter().filter_map(row).collect();
        rows.sort_by_key(|(end, ..)| *end);
        let longest = rows.iter().map(|(end, _, submitted)| end.0.saturating_sub(submitted.since.0)).max();
        Queued { rows, longest: longest.unwrap_or(0) }
    }

    /// The rows whose intervals may touch a stretch of time.
    fn between(&self, from: Nanos, to: Nanos) -> &[(Nanos, DevId, &'a Submitted)] {
        let first = self.rows.partition_point(|(end, ..)| *end <= from);
        let last = self.rows.partition_point(|(end, ..)| end.0 < to.0.saturating_add(self.longest));
        self.rows.get(first..last).unwrap_or_default()
    }
}

/// Most waits whose data owners are computed, longest first: each computation scans all queued data.
const BLAMED_MAX: usize = 2048;

/// The long waits of a window, longest first.
pub(super) fn waits(window: &Window, names: &Names<'_>) -> Vec<Blame> {
    let queued = Queued::of(window);
    let mut waits: Vec<Blame> = Vec::new();
    // The latest wait of each task that is not part of another.
    let mut whole: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    let slow = outer_first(window);
    let mut lengths: Vec<Nanos> = slow.iter().map(|(_, wait)| wait.lasted).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let shortest = lengths.get(BLAMED_MAX).copied();
    let none = Queued { rows: Vec::new(), longest: 0 };
    for (at, wait) in slow {
        let is_long = shortest.is_none_or(|shortest| wait.lasted > shortest);
        let blame = blame(if is_long { &queued } else { &none }, names, at, wait);
        let task = (wait.who.pid, wait.tid.unwrap_or(wait.who.pid));
        let around =
            whole.get(&task).and_then(|index| waits.get_mut(*index)).filter(|outer| outer.at_ns >= blame.at_ns);
        match around.filter(|_| wait.operation == Operation::SyncFilesystem) {
            Some(outer) => outer.parts.push(blame),
            None => {
                whole.insert(task, waits.len());
                waits.push(blame);
            }
        }
    }
    let longest_first = |waits: &mut Vec<Blame>| waits.sort_by_key(|wait| Reverse(wait.lasted_ns));
    waits.iter_mut().for_each(|wait| longest_first(&mut wait.parts));
    longest_first(&mut waits);
    waits
}

/// Long waits and their ends in the order in which they began. Of waits that began together, the one that ended last
/// comes first.
fn outer_first(window: &Window) -> Vec<(Nanos, &SlowSync)> {
    // A wait is recorded when it ends: of two that began and ended together, the later record encloses the other.
    let slow = window.events.iter().rev().filter_map(|event| match &event.what {
        What::SlowSync(wait) => Some((event.at, wait)),
        _ => None,
    });
    let mut waits: Vec<(Nanos, &SlowSync)> = slow.collect();
    waits.sort_by_key(|(at, wait)| (at.0.saturating_sub(wait.lasted.0), Reverse(at.0)));
    waits
}

fn blame(queued: &Queued<'_>, names: &Names<'_>, at: Nanos, wait: &SlowSync) -> Blame {
    let begin = Nanos(at.0.saturating_sub(wait.lasted.0));
    let mut cgroups: BTreeMap<Option<u64>, f64> = BTreeMap::new();
    let mut files: BTreeMap<FileKey, f64> = BTreeMap::new();
    for (end, device, submitted) in queued.between(begin, at) {
        let bytes = part_within(submitted, *end, begin, at);
        if wait.device.is_some_and(|wanted| wanted != *device) || bytes <= 0.0 {
            continue;
        }
        *cgroups.entry(submitted.cgroup_ino).or_default() += bytes;
        *files.entry((*device, submitted.file.as_ref().map(File::inode))).or_default() += bytes;
    }
    let cgroup = |ino: Option<u64>| ino.map_or_else(|| "unknown".to_owned(), |ino| names.cgroup(ino));
    Blame {
        at_ns: at.0,
        pid: wait.who.pid,
        process: process(&wait.who),
        cgroup: names.cgroup(wait.who.cgroup_ino),
        operation: wait.operation,
        lasted_ns: wait.lasted.0,
        device: wait.device,
        filesystem: wait.device.map(|device| names.filesystem(device)),
        file: wait.device.zip(wait.file.as_ref()).map(|(device, file)| names.file((device, Some(file.inode())))),
        queued_bytes: wait.queued.map(|bytes| bytes.0),
        own_bytes: wait.own.0,
        cgroups: largest(cgroups, cgroup),
        files: largest(files, |key| names.file(key)),
        parts: Vec::new(),
    }
}

/// The bytes of an interval that fall within a wait, assuming that they are spread evenly over the interval.
fn part_within(submitted: &Submitted, end: Nanos, from: Nanos, to: Nanos) -> f64 {
    let length = end.0.saturating_sub(submitted.since.0);
    let common = end.0.min(to.0).saturating_sub(submitted.since.0.max(from.0));
    if length == 0 { 0.0 } else { submitted.bytes.0 as f64 * common as f64 / length as f64 }
}

fn largest<K>(parts: BTreeMap<K, f64>, name: impl Fn(K) -> String) -> Vec<Part> {
    let all: f64 = parts.values().sum();
    let mut parts: Vec<(K, f64)> = parts.into_iter().collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts.truncate(NAMED);
    parts.into_iter().map(|(key, bytes)| Part { name: name(key), share: bytes / all }).collect()
}
