// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loop devices that go through the page cache: a kernel thread dirties the data queued at the device once more, in the
//! backing file. The thread's bytes are passed on to the processes whose bytes were queued at the device, so that the
//! writes of the disk below are credited to them. Direct I/O needs no such step.

use super::credit::{FileKey, Shares};
use super::names::Names;
use floodline_record::facts::Stack;
use floodline_record::id::DevId;
use floodline_record::record::{Event, What};
use floodline_record::traced::{File, Who};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The loop devices of a window, by backing file.
#[derive(Debug, Default)]
pub(super) struct Loops {
    made_of: BTreeMap<FileKey, DevId>,
    /// The devices of `made_of`.
    devices: BTreeSet<DevId>,
    /// Bytes queued at each device that have not become dirty below yet, by credited process. Excludes bytes without a
    /// credited process: requests to write zeroes reach the device and dirty nothing.
    passed: BTreeMap<DevId, VecDeque<(Who, u64)>>,
}

impl Loops {
    /// Finds the backing files among the files named in the events.
    pub(super) fn of(window: &Window, names: &Names<'_>) -> Loops {
        let devices = window.facts.iter().flat_map(|facts| &facts.devices);
        let backing: BTreeMap<String, DevId> = devices
            .filter_map(|device| match &device.stack {
                Stack::Loop { backing_file, .. } => Some((backing_file.to_string(), device.dev)),
                _ => None,
            })
            .collect();
        if backing.is_empty() {
            return Loops::default();
        }
        let files = window.events.iter().filter_map(|event| match &event.what {
            What::Dirtied(dirtied) => Some((dirtied.device, Some(dirtied.file.as_ref()?.inode()))),
            _ => None,
        });
        // Most files are named many times, and each lookup builds a path.
        let files: BTreeSet<FileKey> = files.collect();
        let made_of: BTreeMap<FileKey, DevId> =
            files.into_iter().filter_map(|key| Some((key, *backing.get(&names.file(key))?))).collect();
        let devices = made_of.values().copied().collect();
        Loops { made_of, devices, passed: BTreeMap::new() }
    }

    /// The loop device that a file backs.
    pub(super) fn device(&self, file: FileKey) -> Option<DevId> {
        self.made_of.get(&file).copied()
    }

    /// Whether a disk is one of the loop devices.
    pub(super) fn is_one(&self, disk: DevId) -> bool {
        self.devices.contains(&disk)
    }

    /// The order of events: by interval, and within one from the top of a stack to its bottom. Dirtied bytes are read
    /// some time after queued bytes, so a file may be ahead of its device. Events above therefore count one interval
    /// earlier.
    pub(super) fn order(&self, event: &Event) -> (Nanos, u8) {
        match &event.what {
            What::Submitted(submitted) if self.is_one(submitted.disk) => (submitted.since, 1),
            What::Dirtied(dirtied) if self.is_one(dirtied.device) => (dirtied.since, 0),
            What::Cancelled(cancelled) if self.is_one(cancelled.device) => (cancelled.since, 0),
            // Dropped bytes had become dirty, and were not queued.
            What::Cancelled(_) => (event.at, 2),
            What::Dirtied(dirtied) => {
                let key = (dirtied.device, dirtied.file.as_ref().map(File::inode));
                (event.at, if self.device(key).is_some() { 2 } else { 0 })
            }
            What::Submitted(_) => (event.at, 3),
            _ => (event.at, 0),
        }
    }

    /// Records bytes of these processes that were queued at a loop device.
    pub(super) fn queued(&mut self, device: DevId, shares: Shares) {
        self.passed.entry(device).or_default().extend(shares);
    }

    /// Takes the owners of bytes that became dirty in the backing file of a loop device, the oldest first. The rest,
    /// such as blocks of the filesystem on the device, belongs to the thread itself.
    pub(super) fn dirtied(&mut self, device: DevId, thread: &Who, bytes: u64) -> Shares {
        let passed = self.passed.entry(device).or_default();
        let mut left = bytes;
        let mut shares = Shares::new();
        while left > 0
            && let Some((who, open)) = passed.front_mut()
        {
            let part = left.min(*open);
            shares.push((who.clone(), part));
            left -= part;
            *open -= part;
            if *open == 0 {
                passed.pop_front();
            }
        }
        shares.extend((left > 0).then(|| (thread.clone(), left)));
        shares
    }
}
