// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cgroups as rules see them: the owners of dirty pages, the memory cgroup that a process is charged to, and the
//! filesystems that a cgroup writes through. Counters of a cgroup include its descendants: its own part is the total
//! without its children's.

use super::device::{self, Device};
use crate::container;
use floodline_record::facts::Mount;
use floodline_record::id::{DevId, Entity, EntityId};
use floodline_record::name::Name;
use floodline_record::sample::{CgroupRow, HostRow};
use floodline_record::units::{Bytes, Nanos, Pages};
use floodline_record::window::{Span, Window};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The path of a cgroup.
pub fn path(window: &Window, id: EntityId) -> Option<&Name> {
    match window.entities.get(&id) {
        Some(Entity::Cgroup { path, .. }) => Some(path),
        _ => None,
    }
}

/// The inode number of a cgroup's directory: traces identify cgroups by it.
pub fn ino(window: &Window, id: EntityId) -> Option<u64> {
    match window.entities.get(&id) {
        Some(Entity::Cgroup { ino, .. }) => *ino,
        _ => None,
    }
}

/// Name of a cgroup for a sentence, escaped: the usual name of a container or a pod, otherwise the path; its number if
/// the recording has no name for it.
pub fn label(window: &Window, id: EntityId) -> String {
    let Some(path) = path(window, id) else { return format!("cgroup #{}", id.0) };
    let identity = container::identify(path);
    if identity.kind.is_container() || identity.inside.is_some() {
        identity.label(window.facts.as_ref())
    } else {
        path.to_string()
    }
}

/// The path of the parent; `None` for the root.
pub fn parent(path: &[u8]) -> Option<&[u8]> {
    if path.len() <= 1 {
        return None;
    }
    let slash = path.iter().rposition(|&byte| byte == b'/')?;
    path.get(..slash.max(1))
}

/// Whether a cgroup is another one or below it.
pub fn is_within(path: &Name, above: &Name) -> bool {
    let (path, above) = (path.as_bytes(), above.as_bytes());
    above == b"/" || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Yields the path of a cgroup and then those of all cgroups above it: all for which [`is_within`] holds. May yield `/` twice.
pub fn and_above(path: &Name) -> impl Iterator<Item = &[u8]> {
    let path = path.as_bytes();
    let slashes = (0..path.len()).rev().filter(|&at| path.get(at) == Some(&b'/'));
    std::iter::once(path).chain(slashes.filter_map(|at| path.get(..at))).chain(std::iter::once(b"/".as_slice()))
}

/// The nearest of some cgroups, given by path: this cgroup, or its first ancestor among them.
pub fn nearest<T: Copy>(among: &BTreeMap<&[u8], T>, path: &[u8]) -> Option<T> {
    let mut at = Some(path);
    while let Some(path) = at {
        if let Some(found) = among.get(path) {
            return Some(*found);
        }
        at = parent(path);
    }
    None
}

/// The share of its readings in which at least one task of a cgroup waited for I/O.
pub fn io_pressure_some(span: &Span<CgroupRow>) -> Option<f64> {
    let seconds = span.seconds();
    span.growth.io_some.filter(|_| seconds > 0.0).map(|time: Nanos| (time.as_secs_f64() / seconds).min(1.0))
}

/// Cgroups by their own part of an amount, without their children's; most first, without those that have none. The root
/// is left out, because not every amount is counted there.
pub fn own_amounts(window: &Window, amount: impl Fn(&Span<CgroupRow>) -> Option<u64>) -> Vec<(EntityId, u64)> {
    own_of(window, window.cgroups.iter().filter_map(|(id, span)| Some((*id, amount(span)?))))
}

/// Own parts of amounts that were already read.
pub fn own_parts(window: &Window, amounts: &BTreeMap<EntityId, u64>) -> Vec<(EntityId, u64)> {
    own_of(window, amounts.iter().map(|(id, amount)| (*id, *amount)))
}

/// Own parts of amounts, which are in order of their cgroups.
fn own_of(window: &Window, amounts: impl Iterator<Item = (EntityId, u64)>) -> Vec<(EntityId, u64)> {
    let mut amounts: Vec<(&[u8], EntityId, u64)> =
        amounts.filter_map(|(id, amount)| Some((path(window, id)?.as_bytes(), id, amount))).collect();
    // Of several cgroups with one path the last counts.
    amounts.sort_by_key(|(path, id, _)| (*path, Reverse(*id)));
    amounts.dedup_by_key(|(path, ..)| *path);
    let mut of_children = vec![0_u64; amounts.len()];
    let mut last: Option<(&[u8], Option<usize>)> = None;
    for &(path, _, amount) in &amounts {
        let Some(parent) = parent(path) else { continue };
        // Siblings follow each other.
        let known = match last.filter(|(known, _)| *known == parent) {
            Some((_, known)) => known,
            None => nearest_place(&amounts, parent),
        };
        last = Some((parent, known));
        if let Some(sum) = known.and_then(|known| of_children.get_mut(known)) {
            *sum = sum.saturating_add(amount);
        }
    }
    let own = amounts.iter().zip(&of_children).filter(|((path, ..), _)| path.len() > 1);
    let own = own.map(|((_, id, amount), of_children)| (*id, amount.saturating_sub(*of_children)));
    let mut owned: Vec<(EntityId, u64)> = own.filter(|(_, amount)| *amount > 0).collect();
    owned.sort_by_key(|(id, amount)| (Reverse(*amount), *id));
    owned
}

/// The place of the cgroup with a path, or of its nearest ancestor. A cgroup without the reading passes its children's amounts to
/// its own parent.
fn nearest_place(amounts: &[(&[u8], EntityId, u64)], path: &[u8]) -> Option<usize> {
    let mut at = Some(path);
    while let Some(path) = at {
        if let Ok(found) = amounts.binary_search_by(|(known, ..)| (*known).cmp(path)) {
            return Some(found);
        }
        at = parent(path);
    }
    None
}

/// Dirty and under writeback together, at the end of the window.
pub fn dirty_and_writeback(row: &CgroupRow) -> Option<u64> {
    match (row.file_dirty, row.file_writeback) {
        (None, None) => None,
        (dirty, writeback) => {
            let bytes = |bytes: Option<Bytes>| bytes.map_or(0, |bytes| bytes.0);
            Some(bytes(dirty).saturating_add(bytes(writeback)))
        }
    }
}

/// The devices that each cgroup was seen to write to, by `io.stat` and by its wbs. Made once for all
/// cgroups: looking through both for each of them is quadratic.
pub struct DevicesWritten<'a> {
    window: &'a Window,
    devs: BTreeMap<EntityId, BTreeSet<DevId>>,
}

impl<'a> DevicesWritten<'a> {
    /// Collects the devices of a window.
    pub fn of(window: &'a Window) -> DevicesWritten<'a> {
        let mut devs: BTreeMap<EntityId, BTreeSet<DevId>> = BTreeMap::new();
        for (id, span) in &window.cgroup_io {
            if let Some(Entity::CgroupIo { cgroup, dev }) = window.entities.get(id)
                && span.last.wbytes > Some(Bytes(0))
            {
                devs.entry(*cgroup).or_default().insert(*dev);
            }
        }
        let by_ino: BTreeMap<u64, EntityId> = window
            .cgroups
            .keys()
            .filter_map(|id| match window.entities.get(id) {
                Some(Entity::Cgroup { ino: Some(ino), .. }) => Some((*ino, *id)),
                _ => None,
            })
            .collect();
        // Most wbs are of one bdi.
        let mut named: BTreeMap<&Name, Option<DevId>> = BTreeMap::new();
        for (id, span) in &window.wbs {
            if let Some(Entity::Wb { bdi, cgroup_ino }) = window.entities.get(id)
                && span.last.dirtied > Some(Bytes(0))
                && let Some(cgroup) = by_ino.get(cgroup_ino)
                && let Some(dev) = named.entry(bdi).or_insert_with(|| bdi.to_string().parse().ok())
            {
                devs.entry(*cgroup).or_default().insert(*dev);
            }
        }
        DevicesWritten { window, devs }
    }

    /// Numbers of the devices that a cgroup wrote to; none when neither source was read.
    pub fn numbers(&self, cgroup: EntityId) -> impl Iterator<Item = DevId> + '_ {
        self.devs.get(&cgroup).into_iter().flatten().copied()
    }

    /// The devices themselves, partitions resolved.
    pub fn devices(&self, cgroup: EntityId) -> Vec<Device<'a>> {
        self.numbers(cgroup).filter_map(|dev| device::by_dev(self.window, dev)).collect()
    }
}

/// Mounts through which data of a block device can get dirty: writable and on a device.
pub fn writable_mounts(window: &Window) -> Vec<&Mount> {
    let mounts = window.facts.iter().flat_map(|facts| &facts.mounts);
    mounts.filter(|mount| !mount.has_option("ro") && device::of_mount(window, mount).is_some()).collect()
}

/// Growth of the page cache in a window, bytes: of a cgroup, or without one of the machine. `None` where it was not read.
pub fn cache_growth(window: &Window, cgroup: Option<&Span<CgroupRow>>, page_size: u64) -> Option<u64> {
    let host = &window.host;
    let files = |row: &HostRow| Some(Pages(row.nr_inactive_file?.0.saturating_add(row.nr_active_file?.0)));
    let (first, last) = match cgroup {
        Some(span) => (span.first.file?.0, span.last.file?.0),
        None => (files(&host.first)?.bytes(page_size).0, files(&host.last)?.bytes(page_size).0),
    };
    Some(last.saturating_sub(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::{Fixture, mib};

    #[test]
    fn paths_have_parents() {
        let check = |path: &str, expect: Option<&str>| assert_eq!(parent(path.as_bytes()), expect.map(str::as_bytes));
        check("/a/b", Some("/a"));
        check("/a", Some("/"));
        check("/", None);
        check("", None);
        check("a", None);
    }

    #[test]
    fn a_cgroup_is_within_those_above_it_and_no_other() {
        let names = ["", "/", "/a", "/a/b", "/a/bc", "/b", "//a", "/a/", "a", "a/b"].map(Name::from);
        for path in &names {
            for above in &names {
                let is_listed = and_above(path).any(|one| one == above.as_bytes());
                assert_eq!(is_listed, is_within(path, above), "{path} {above}");
            }
        }
        assert!(is_within(&names[3], &names[2]) && !is_within(&names[4], &names[3]));
    }

    #[test]
    fn a_container_is_called_what_people_call_it() {
        let id = "4f5c2d7a".repeat(8);
        let path = format!("/system.slice/docker-{id}.scope");
        let fixture = Fixture::healthy().cgroup(&path, |_, _| {});
        let called = |fixture: &Fixture| {
            let window = fixture.window();
            let found = window.entities.iter().find(|(_, entity)| entity.label() == path).unwrap();
            label(&window, *found.0)
        };
        assert_eq!(called(&fixture), "docker 4f5c2d7a4f5c");
        let named = fixture.facts(|facts| {
            facts.container_names.insert(id.into(), Name::from("web\x1b"));
        });
        assert_eq!(called(&named), "docker web\\x1b");
    }

    #[test]
    fn what_children_have_is_not_the_parents_own() {
        let window = Fixture::healthy()
            .cgroup("/pods", |_, row| row.file_dirty = Some(Bytes(mib(10.0))))
            .cgroup("/pods/a", |_, row| row.file_dirty = None)
            .cgroup("/pods/a/b", |_, row| row.file_dirty = Some(Bytes(mib(9.0))))
            .window();
        let own = own_amounts(&window, |span| span.last.file_dirty.map(|bytes| bytes.0));
        let shown: Vec<(String, u64)> = own.iter().map(|(id, bytes)| (label(&window, *id), *bytes)).collect();
        assert_eq!(shown, [("/pods/a/b".to_owned(), mib(9.0)), ("/pods".to_owned(), mib(1.0))]);
    }

    #[test]
    fn a_cgroup_writes_where_io_stat_says() {
        let window = Fixture::healthy()
            .disk("sdb", |_, _| {})
            .cgroup_io("/system.slice/nginx.service", "sdb", |_, row| row.wbytes = Some(Bytes(1)))
            .window();
        let id = window.entities.iter().find(|(_, entity)| entity.label() == "/system.slice/nginx.service").unwrap().0;
        let written = DevicesWritten::of(&window).devices(*id);
        let names: Vec<String> = written.iter().map(|device| device.name.to_string()).collect();
        assert_eq!(names, ["sdb"]);
    }
}
