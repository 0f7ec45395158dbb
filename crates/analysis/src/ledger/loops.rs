// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loop devices that go through the page cache: what is queued at one becomes dirty once more, in the file that it is
//! made of, by a kernel thread. Here that thread's bytes are handed on to those whose bytes were queued at the
//! device, so that what the disk below gets is credited to them. With direct I/O there is nothing to hand on.

use super::credit::{FileKey, Shares};
use super::names::Names;
use floodline_record::facts::Stack;
use floodline_record::id::DevId;
use floodline_record::record::{Event, What};
use floodline_record::traced::{File, Who};
use floodline_record::units::Nanos;
use floodline_record::window::Window;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The loop devices of a window, by the file that each is made of.
#[derive(Debug, Default)]
pub(super) struct Loops {
    made_of: BTreeMap<FileKey, DevId>,
    /// The devices of `made_of`.
    devices: BTreeSet<DevId>,
    /// What was queued at each and has not become dirty below yet, by those who are credited with it. Not what is
    /// nobody's: zeroes that are asked for reach the device and make nothing dirty.
    passed: BTreeMap<DevId, VecDeque<(Who, u64)>>,
}

impl Loops {
    /// Finds the files among those that the events name.
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
        // Most are named many times, and a path is put together each time it is asked for.
        let files: BTreeSet<FileKey> = files.collect();
        let made_of: BTreeMap<FileKey, DevId> =
            files.into_iter().filter_map(|key| Some((key, *backing.get(&names.file(key))?))).collect();
        let devices = made_of.values().copied().collect();
        Loops { made_of, devices, passed: BTreeMap::new() }
    }

    /// The device that is made of a file.
    pub(super) fn device(&self, file: FileKey) -> Option<DevId> {
        self.made_of.get(&file).copied()
    }

    /// Whether a disk is made of one of the files.
    pub(super) fn is_one(&self, disk: DevId) -> bool {
        self.devices.contains(&disk)
    }

    /// The order of events: by interval, and in one from the top of a stack to its bottom. What became dirty is read
    /// some time after what was queued, so that a file may be ahead of its device: what happens above comes an
    /// interval earlier.
    pub(super) fn order(&self, event: &Event) -> (Nanos, u8) {
        match &event.what {
            What::Submitted(submitted) if self.is_one(submitted.disk) => (submitted.since, 1),
            What::Dirtied(dirtied) if self.is_one(dirtied.device) => (dirtied.since, 0),
            What::Cancelled(cancelled) if self.is_one(cancelled.device) => (cancelled.since, 0),
            // What was dropped had become dirty, and was not queued.
            What::Cancelled(_) => (event.at, 2),
            What::Dirtied(dirtied) => {
                let key = (dirtied.device, dirtied.file.as_ref().map(File::inode));
                (event.at, if self.device(key).is_some() { 2 } else { 0 })
            }
            What::Submitted(_) => (event.at, 3),
            _ => (event.at, 0),
        }
    }

    /// Bytes of these processes were queued at a loop device.
    pub(super) fn queued(&mut self, device: DevId, shares: Shares) {
        self.passed.entry(device).or_default().extend(shares);
    }

    /// Bytes became dirty in the file of a loop device: takes out whose they are, the oldest first. What is left over,
    /// such as the blocks of the filesystem on it, is the thread's own.
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
