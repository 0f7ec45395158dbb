// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directories of one cgroup hierarchy, kept up to date cheaply: the link count of a held directory gives the
//! number of its child cgroups, and a directory is listed again only if that changed. A cgroup that was replaced by
//! another of the same name is detected when reading it fails.

use super::Round;
use super::kept::Kept;
use crate::root::{EntryKind, Fault, HostDir, HostFile, HostRoot, Subdirectories};
use floodline_record::gap::Source;
use floodline_record::id::{DevId, EntityId};
use floodline_record::units::{Bits, Nanos};
use std::collections::BTreeMap;

/// Number of a directory within its tree; parents have lower ones than their children.
pub(super) type NodeId = u32;

/// One cgroup directory.
#[derive(Debug)]
pub(super) struct Node {
    /// Path below the mount, starting with `/`.
    pub(super) path: Box<[u8]>,
    /// Inode number of the directory.
    pub(super) ino: u64,
    /// Its entity in the recording, assigned by the owner of the tree.
    pub(super) entity: Option<EntityId>,
    /// The sample in which its files were last read.
    pub(super) read_in: Option<u64>,
    /// Checksum of the files whose counters the kernel adds up, as last read.
    pub(super) seen: Option<u32>,
    /// Whether that checksum was equal to the previous one.
    pub(super) was_same: bool,
    /// Whether one of the last two readings of these files showed a change.
    pub(super) is_active: bool,
    /// Whether its turn came in a sample that did not read these files.
    pub(super) is_overdue: bool,
    /// Whether it had a limit of I/O when these were last read.
    pub(super) has_limits: bool,
    /// Whether it had a row when they were last read.
    pub(super) has_row: bool,
    /// Total time that its tasks had waited for memory and for I/O, as last read.
    pub(super) waited: Option<(Nanos, Nanos)>,
    /// Its controllers, as the bits of their metric, as last read.
    pub(super) controllers: Option<Bits>,
    /// The directory above.
    pub(super) parent: Option<NodeId>,
    /// Files that are read in every sample, in the order of the owner of the tree.
    pub(super) files: Box<[Kept]>,
    /// Devices on which it did I/O: cgroup, device, and the id of that row.
    pub(super) devices: Vec<(EntityId, DevId, EntityId)>,
    children: Vec<NodeId>,
    dir: Option<HostDir>,
    /// Whether there was room to hold the directory open between samples.
    keep: bool,
}

/// All directories of a hierarchy.
#[derive(Debug)]
pub(super) struct Tree {
    mount: Vec<u8>,
    source: Source,
    files: usize,
    nodes: BTreeMap<NodeId, Node>,
    by_path: BTreeMap<Box<[u8]>, NodeId>,
    next: NodeId,
}

/// Location of the files of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    root: &'a HostRoot,
    mount: &'a [u8],
    path: &'a [u8],
    dir: Option<&'a HostDir>,
}

impl Place<'_> {
    /// Opens a file of the cgroup.
    pub(super) fn open(self, name: &str) -> Result<HostFile, Fault> {
        match self.dir {
            Some(dir) => dir.open_file(name.as_bytes()),
            None => self.open_dir()?.open_file(name.as_bytes()),
        }
    }

    fn open_dir(self) -> Result<HostDir, Fault> {
        self.root.dir(&[self.mount, self.path].concat())
    }

    /// Returns whether the whole cgroup is gone, for use after one of its files was not found.
    pub(super) fn is_gone(self) -> bool {
        self.open_dir().is_err_and(Fault::is_gone)
    }

    fn with_dir<T>(self, run: impl FnOnce(&HostDir) -> Result<T, Fault>) -> Result<T, Fault> {
        match self.dir {
            Some(dir) => run(dir),
            None => run(&self.open_dir()?),
        }
    }
}

impl Node {
    /// Returns the location of its files, and the files.
    pub(super) fn place<'a>(&'a mut self, root: &'a HostRoot, mount: &'a [u8]) -> (Place<'a>, &'a mut [Kept]) {
        (Place { root, mount, path: &self.path, dir: self.dir.as_ref() }, &mut self.files)
    }

    /// Opens the directory for the next reads if it is not held open.
    pub(super) fn enter(&mut self, root: &HostRoot, mount: &[u8]) {
        if self.dir.is_none() {
            // A fault shows again when a file is opened.
            self.dir = root.dir(&[mount, &self.path].concat()).ok();
        }
    }

    /// Closes the directory unless there is room to keep it.
    pub(super) fn leave(&mut self) {
        self.dir.take_if(|_| !self.keep);
    }

    /// Returns whether the cgroup has no children.
    pub(super) fn is_childless(&self) -> bool {
        self.children.is_empty()
    }

    /// Returns whether it is the root of its hierarchy, where many files do not exist.
    pub(super) fn is_top(&self) -> bool {
        self.parent.is_none()
    }
}

impl Tree {
    /// Makes a tree below a mount. Each of its directories has `files` files that are read in every sample.
    pub(super) fn new(mount: &[u8], source: Source, files: usize) -> Tree {
        let mount = mount.strip_suffix(b"/").unwrap_or(mount).to_vec();
        Tree { mount, source, files, nodes: BTreeMap::new(), by_path: BTreeMap::new(), next: 0 }
    }

    /// Returns the number of directories.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the mount point, and the directories, parents before their children.
    pub(super) fn nodes_mut(&mut self) -> (&[u8], impl ExactSizeIterator<Item = (NodeId, &mut Node)>) {
        (&self.mount, self.nodes.iter_mut().map(|(&id, node)| (id, node)))
    }

    /// Returns the entity of a path in the recording.
    pub(super) fn entity_at(&self, path: &[u8]) -> Option<EntityId> {
        self.nodes.get(self.by_path.get(path)?)?.entity
    }

    /// Finds directories that came and went.
    pub(super) fn refresh(&mut self, round: &mut Round<'_>) {
        if self.nodes.is_empty() {
            match round.root.dir(&self.mount) {
                Ok(dir) => {
                    let ino = dir.ino().unwrap_or(0);
                    self.add(round, None, b"/".as_slice().into(), ino, dir);
                }
                Err(fault) => return round.gaps.add(self.source, "", fault, None),
            }
        }
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        for (&id, node) in &self.nodes {
            let place = Place { root: round.root, mount: &self.mount, path: &node.path, dir: node.dir.as_ref() };
            match place.with_dir(HostDir::subdirectories) {
                Ok(Subdirectories::Count(count)) if count == node.children.len() as u64 => {}
                Ok(Subdirectories::Count(_) | Subdirectories::NotCounted) => changed.push(id),
                Ok(Subdirectories::Removed) => removed.push(id),
                Err(fault) if fault.is_gone() => removed.push(id),
                Err(fault) => round.gaps.add(self.source, "", fault, node.entity),
            }
        }
        for id in removed {
            // A new directory may have replaced it, so that the count of the parent is unchanged.
            changed.extend(self.nodes.get(&id).and_then(|node| node.parent));
            self.remove(id);
        }
        changed.sort_unstable();
        changed.dedup();
        while let Some(id) = changed.pop() {
            self.list(id, round, &mut changed);
        }
    }

    /// Lists one directory again; new ones in it are to be listed next.
    fn list(&mut self, id: NodeId, round: &mut Round<'_>, next: &mut Vec<NodeId>) {
        let Some(node) = self.nodes.get(&id) else { return };
        let place = Place { root: round.root, mount: &self.mount, path: &node.path, dir: node.dir.as_ref() };
        let mut found = Vec::new();
        let listed = place.with_dir(|dir| {
            dir.list(|entry| {
                if matches!(entry.kind, EntryKind::Dir | EntryKind::Unknown) {
                    found.push((join(&node.path, entry.name), Box::<[u8]>::from(entry.name), entry.ino));
                }
            })
        });
        if let Err(fault) = listed {
            return round.gaps.add(self.source, "", fault, node.entity);
        }
        found.sort();
        for child in node.children.clone() {
            let there = self.nodes.get(&child).is_some_and(|child| {
                let at = found.binary_search_by(|(path, _, _)| path.cmp(&child.path));
                at.ok().and_then(|at| found.get(at)).is_some_and(|&(_, _, ino)| ino == child.ino)
            });
            if !there {
                self.remove(child);
            }
        }
        for (path, name, ino) in found {
            if self.by_path.contains_key(&path) {
                continue;
            }
            let Some(node) = self.nodes.get(&id) else { return };
            let place = Place { root: round.root, mount: &self.mount, path: &node.path, dir: node.dir.as_ref() };
            match place.with_dir(|dir| dir.open_dir(&name)) {
                Ok(dir) => {
                    let leaf = dir.subdirectories() == Ok(Subdirectories::Count(0));
                    let child = self.add(round, Some(id), path, ino, dir);
                    if !leaf {
                        next.push(child);
                    }
                }
                Err(fault) if fault.is_gone() || fault == Fault::NotDirectory => {}
                Err(fault) => round.gaps.add(self.source, "", fault, None),
            }
        }
    }

    fn add(&mut self, round: &Round<'_>, parent: Option<NodeId>, path: Box<[u8]>, ino: u64, dir: HostDir) -> NodeId {
        let id = self.next;
        self.next = self.next.saturating_add(1);
        let keep = round.descriptors.has_room(dir.number());
        let dir = round.descriptors.has_room_to_enter(dir.number()).then_some(dir);
        let files = (0..self.files).map(|_| Kept::default()).collect();
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(&parent)) {
            parent.children.push(id);
        }
        self.by_path.insert(path.clone(), id);
        let (children, devices) = (Vec::new(), Vec::new());
        let node = Node {
            path,
            ino,
            entity: None,
            read_in: None,
            seen: None,
            was_same: false,
            is_active: false,
            is_overdue: false,
            has_limits: false,
            has_row: false,
            waited: None,
            controllers: None,
            parent,
            files,
            devices,
            children,
            dir,
            keep,
        };
        self.nodes.insert(id, node);
        id
    }

    /// Forgets a directory and all below it.
    pub(super) fn remove(&mut self, id: NodeId) {
        let mut doomed = vec![id];
        while let Some(id) = doomed.pop() {
            let Some(node) = self.nodes.remove(&id) else { continue };
            doomed.extend(node.children);
            self.by_path.remove(&node.path);
            if let Some(parent) = node.parent.and_then(|parent| self.nodes.get_mut(&parent)) {
                parent.children.retain(|&child| child != id);
            }
        }
    }
}

fn join(path: &[u8], name: &[u8]) -> Box<[u8]> {
    let slash: &[u8] = if path == b"/" { b"" } else { b"/" };
    [path, slash, name].concat().into()
}
