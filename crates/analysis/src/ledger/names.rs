// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person calls the cgroups, filesystems and files that the tracer names by number.

use super::credit::FileKey;
use crate::budget::ROOT_INO;
use crate::diagnose::cgroup;
use floodline_record::facts::Mount;
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::record::What;
use floodline_record::traced::bytes::Submitted;
use floodline_record::traced::{File, Inode};
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Of an inode that belongs to no wb yet.
const NO_INO: u64 = 0;

/// The names of one window.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    window: &'a Window,
    cgroups: BTreeMap<u64, EntityId>,
    paths: BTreeMap<(DevId, Inode), Name>,
}

impl<'a> Names<'a> {
    pub(crate) fn of(window: &'a Window) -> Names<'a> {
        let number = |(id, entity): (&EntityId, &Entity)| match entity {
            Entity::Cgroup { ino: Some(ino), .. } => Some((*ino, *id)),
            _ => None,
        };
        Names { window, cgroups: window.entities.iter().filter_map(number).collect(), paths: BTreeMap::new() }
    }

    /// A file was named: later rows may have its number only.
    pub(crate) fn learn(&mut self, device: DevId, file: Option<&File>) {
        if let Some((inode, path)) = file.and_then(|file| Some((file.inode(), file.path.as_ref()?))) {
            self.paths.insert((device, inode), path.clone());
            // For readers that only have the number.
            self.paths.insert((device, Inode { generation: None, ..inode }), path.clone());
        }
    }

    /// All files that the events of a window name; where a number had several, the last.
    pub(crate) fn learn_all(&mut self, window: &Window) {
        for event in &window.events {
            match &event.what {
                What::Dirtied(dirtied) => self.learn(dirtied.device, dirtied.file.as_ref()),
                What::Submitted(Submitted { device: Some(device), file, .. }) => self.learn(*device, file.as_ref()),
                _ => {}
            }
        }
    }

    /// A cgroup, escaped.
    pub(crate) fn cgroup(&self, ino: u64) -> String {
        match self.cgroups.get(&ino) {
            Some(id) => cgroup::label(self.window, *id),
            None if ino == ROOT_INO => "/".to_owned(),
            None if ino == NO_INO => "no cgroup".to_owned(),
            None => format!("cgroup {ino} (gone)"),
        }
    }

    /// A filesystem: where it is mounted, or its number.
    pub(crate) fn filesystem(&self, device: DevId) -> String {
        match self.mount(device, b"/") {
            Some(mount) => mount.mount_point.to_string(),
            None => device.to_string(),
        }
    }

    /// A file: its path on this machine, below the filesystem's root where that is not mounted, or its
    /// number; or all that are too small to be named.
    pub(crate) fn file(&self, (device, inode): FileKey) -> String {
        let Some(inode) = inode else { return format!("small files of {}", self.filesystem(device)) };
        let Some(path) = self.paths.get(&(device, inode)) else { return format!("{device}:{}", inode.ino) };
        let Some(mount) = self.mount(device, path.as_bytes()) else { return format!("{device}:{path}") };
        let below = path.as_bytes().strip_prefix(trimmed(mount.root.as_bytes())).unwrap_or(path.as_bytes());
        let place = trimmed(mount.mount_point.as_bytes());
        Name::new([place, below].concat()).to_string()
    }

    /// The mount that shows a path of a filesystem: the one that shows least besides, the first of these.
    fn mount(&self, device: DevId, path: &[u8]) -> Option<&'a Mount> {
        let mounts = self.window.facts.iter().flat_map(|facts| &facts.mounts);
        let shows = |mount: &&Mount| {
            let below = path.strip_prefix(trimmed(mount.root.as_bytes()));
            mount.dev == device && below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        mounts.filter(shows).min_by_key(|mount| mount.root.as_bytes().len())
    }
}

/// A path without the slash at its end: the root is nothing.
fn trimmed(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}
