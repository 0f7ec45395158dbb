// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inodes that a changed host moves when a cgroup is removed. A kernel that sorts them by age needs CPU time that grows with the square of
//! their number, for those whose time stamps are dirty. How many inodes a cgroup has is known from its slab. A twin does not have them.
//! The rule `inode-switch-storm` judges storms that a recording shows.

use super::cgroup::{is_within, own_amounts, parent, path};
use super::switches::{Cost, dying};
use crate::shown::behaviour;
use floodline_record::facts::{HostFacts, Mount};
use floodline_record::human;
use floodline_record::id::EntityId;
use floodline_record::sample::CgroupRow;
use floodline_record::window::Window;
use std::collections::BTreeMap;

/// Slab of an inode and its dentry, bytes: those of XFS and ext4 are between 1.1 and 1.3 KiB.
const INODE: f64 = 1216.0;
/// Slab that page cache takes beside inodes, at most, for a byte of it: a node for 64 pages, and on ext4 a buffer head for each page.
const NODES: f64 = 576.0 / (64.0 * 4096.0);
const BUFFER_HEADS: f64 = 104.0 / 4096.0;
/// CPU seconds for this many inodes with dirty time stamps. Measured on 6.12.43.
const MEASURED_S: f64 = 10.6;
const MEASURED_INODES: f64 = 20_000.0;
/// CPU seconds of a storm that stalls other work, and of the shortest storm that is reported. Both are those of the rule
/// `inode-switch-storm`.
const HURTS_S: f64 = 5.0;
const LEAST_S: f64 = 0.5;

/// What decides whether a host moves inodes at a cost that grows with their square.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// How its kernel moves them.
    pub cost: Cost,
    /// Whether inodes belong to cgroups. On version 1 they belong to none.
    pub is_unified: bool,
    /// Whether a filesystem has inodes of which only the time stamps are dirty.
    pub has_times: bool,
}

impl Moves {
    /// Of the host of a window.
    pub fn of(window: &Window) -> Moves {
        let mounts = || window.facts.iter().flat_map(|facts| &facts.mounts);
        Moves {
            cost: Cost::of(behaviour(window)),
            is_unified: window.facts.as_ref().is_some_and(|facts| facts.cgroups.has_unified_writeback()),
            has_times: mounts().any(|mount: &Mount| has_times(|option| mount.has_option(option))),
        }
    }

    fn are_costly(self) -> bool {
        self.cost == Cost::Quadratic && self.is_unified && self.has_times
    }
}

/// Whether a mount with these options has inodes of which only the time stamps are dirty. Without lazytime, or without access times, it
/// has hardly any.
pub fn has_times(has_option: impl Fn(&str) -> bool) -> bool {
    has_option("lazytime") && !has_option("noatime") && !has_option("ro")
}

/// Inodes that a changed host moves at great cost, and that the present one does not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Storm {
    /// The storm of this cgroup takes half a second of CPU time or more.
    Of {
        /// The cgroup.
        cgroup: EntityId,
        /// Slab of its inodes, bytes.
        slab: f64,
        /// Whether it was removed in the recording. Otherwise it may be removed.
        is_removed: bool,
    },
    /// Cgroups are removed here, and the recording does not have the slab of any.
    Unknown,
}

impl Storm {
    /// Of a host whose change is one from the moves of `window` to those of `then`. `None` if removals of cgroups move few inodes, or cost
    /// as much now.
    pub fn of(window: &Window, then: Moves) -> Option<Storm> {
        let facts = window.facts.as_ref()?;
        if !then.are_costly() || Moves::of(window).are_costly() {
            return None;
        }
        let latest = window.cgroups.values().map(|span| span.last_at).max()?;
        let is_removed = |id: &EntityId| window.cgroups.get(id).is_some_and(|span| span.last_at < latest);
        let is_any_removed = || dying(window) > Some(0) || window.cgroups.keys().any(is_removed);
        if window.cgroups.values().all(|span| span.last.slab_reclaimable.is_none()) {
            return is_any_removed().then_some(Storm::Unknown);
        }
        let mut slab = slab_of_inodes(window, facts);
        if Moves::of(window).is_unified {
            add_left(window, is_removed, &mut slab);
        }
        let most = |removed: bool| {
            let found = slab.iter().filter(|(id, _)| is_removed(id) == removed);
            found.max_by(|one, other| one.1.total_cmp(&other.1)).copied()
        };
        let of = |(cgroup, slab), is_removed| Storm::Of { cgroup, slab, is_removed };
        if let Some(found) = most(true).filter(|(_, slab)| cpu(*slab) >= LEAST_S) {
            return Some(of(found, true));
        }
        let found = most(false).filter(|(_, slab)| cpu(*slab) >= HURTS_S)?;
        (dying(window) > Some(0)).then(|| of(found, false))
    }

    /// Whether it stalls other work for certain, if the time stamps of the inodes are dirty.
    pub fn is_certain(self) -> bool {
        matches!(self, Storm::Of { slab, is_removed: true, .. } if cpu(slab) >= HURTS_S)
    }

    /// Tells of it. `label` names a cgroup.
    pub fn told(self, label: impl Fn(EntityId) -> String) -> String {
        let Storm::Of { cgroup, slab, is_removed } = self else {
            return "The recording has no slab of cgroups, so the number of cached inodes is not known. This host removes cgroups, and \
                    the new kernel moves the inodes of a removed cgroup. 20,000 inodes with dirty time stamps take about 10 s of CPU \
                    time. On the host, slabtop shows the number of cached inodes."
                .to_owned();
        };
        let (cgroup, inodes, time) = (label(cgroup), two_digits(slab / INODE), human::seconds(cpu(slab)));
        match is_removed {
            true => format!(
                "{cgroup} was removed and held about {inodes} inodes, estimated from its slab. The new kernel would have moved them. If \
                 their time stamps were dirty, this would have taken up to {time} of CPU time."
            ),
            false => format!(
                "{cgroup} holds about {inodes} inodes, estimated from its slab. When it is removed, the new kernel moves them. If their \
                 time stamps are dirty, this takes up to {time} of CPU time."
            ),
        }
    }
}

/// Slab of the inodes of each cgroup, bytes, at least: what its page cache may have taken is left out.
fn slab_of_inodes(window: &Window, facts: &HostFacts) -> Vec<(EntityId, f64)> {
    let has_buffer_heads =
        facts.mounts.iter().any(|mount| mount.fs_type.as_bytes() == b"ext4" && !mount.has_option("ro"));
    let for_byte = if has_buffer_heads { NODES + BUFFER_HEADS } else { NODES };
    let cache = own_amounts(window, |span| span.last.file.map(|bytes| bytes.0));
    let cache: BTreeMap<EntityId, u64> = cache.into_iter().collect();
    let cached = |id: &EntityId| cache.get(id).copied().unwrap_or(0) as f64;
    let slab = own_amounts(window, |span| span.last.slab_reclaimable.map(|bytes| bytes.0));
    slab.iter().map(|(id, bytes)| (*id, (*bytes as f64 - for_byte * cached(id)).max(0.0))).collect()
}

/// Adds to the slab of a removed cgroup what it left to its parent. The kernel moves the slab of a removed cgroup to its parent
/// (`memcg_reparent_objcgs`). A parent whose children have the memory controller has no processes on version 2, so what its own slab gained in
/// the recording came from removed children. Only a parent that lost one child, and that counts one more dying descendant, tells whose it is.
/// A child may unpack its files after the last sample that has it.
fn add_left(window: &Window, is_removed: impl Fn(&EntityId) -> bool, slab: &mut Vec<(EntityId, f64)>) {
    let removed: Vec<EntityId> = window.cgroups.keys().filter(|id| is_removed(id)).copied().collect();
    for (above, span) in window.cgroups.iter().filter(|(id, _)| !is_removed(id)) {
        let Some(of_above) = path(window, *above).filter(|path| path.as_bytes().len() > 1) else { continue };
        let is_below = |id: &&EntityId| path(window, **id).is_some_and(|path| is_within(path, of_above));
        let mut below = removed.iter().filter(is_below);
        let (Some(child), None) = (below.next(), below.next()) else { continue };
        let is_own = path(window, *child).and_then(|path| parent(path.as_bytes())) == Some(of_above.as_bytes());
        let dying = |row: &CgroupRow| row.nr_dying_subsys_memory.or(row.nr_dying_descendants).map(|count| count.0);
        let is_one =
            dying(&span.first).zip(dying(&span.last)).is_some_and(|(first, last)| last == first.saturating_add(1));
        let own = slab.iter().find(|(id, _)| id == above).map(|(_, own)| *own);
        let Some((own, first)) = own.zip(span.first.slab_reclaimable).filter(|_| is_own && is_one) else { continue };
        // At first, it may have been that of other children. The sum is then smaller.
        let left = own - first.0 as f64;
        if left > 0.0 {
            match slab.iter_mut().find(|(id, _)| id == child) {
                Some((_, of_child)) => *of_child += left,
                None => slab.push((*child, left)),
            }
        }
    }
}

/// An estimated count, rounded to two digits: `24,000`.
fn two_digits(count: f64) -> String {
    let unit = 10_f64.powf((count.max(1.0).log10().floor() - 1.0).max(0.0));
    human::thousands(((count / unit).round() * unit) as u64)
}

/// CPU seconds that it takes to move the inodes of a slab of this size, if all of their time stamps are dirty.
fn cpu(slab: f64) -> f64 {
    MEASURED_S * (slab / INODE / MEASURED_INODES).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::{Fixture, mib};

    const COSTLY: Moves = Moves { cost: Cost::Quadratic, is_unified: true, has_times: true };

    /// A host whose cgroup is removed after half of the time, or stays, with this slab.
    fn host(slab_mib: Option<f64>, is_removed: bool) -> Window {
        let slab = slab_mib.map(|slab| Bytes(mib(slab)));
        let host = Fixture::healthy().kernel("5.10.223");
        let others = ["/", "/system.slice", "/init.scope"].map(str::to_owned).into_iter();
        let units = ["systemd-journald", "ssh", "nginx"].map(|unit| format!("/system.slice/{unit}.service"));
        let host = others.chain(units).fold(host, |host, path| {
            host.cgroup(&path, move |_, row| {
                (row.nr_dying_descendants, row.nr_dying_subsys_memory) = (Some(Count(u64::from(is_removed))), None);
                row.slab_reclaimable = None;
            })
        });
        host.cgroup("/unpack", move |t, row| {
            row.slab_reclaimable = slab;
            if is_removed && t > 5.0 {
                *row = CgroupRow::default();
            }
        })
        .window()
    }

    #[test]
    fn a_storm_comes_with_a_costly_kernel_cgroups_and_dirty_time_stamps() {
        let window = host(Some(27.8), true);
        assert!(Storm::of(&window, COSTLY).is_some_and(Storm::is_certain));
        assert_eq!(Storm::of(&window, Moves { cost: Cost::Linear, ..COSTLY }), None);
        assert_eq!(Storm::of(&window, Moves { is_unified: false, ..COSTLY }), None);
        assert_eq!(Storm::of(&window, Moves { has_times: false, ..COSTLY }), None);
        assert!(has_times(|option| option == "lazytime") && !has_times(|option| option == "relatime"));
        assert!(!has_times(|option| ["lazytime", "noatime"].contains(&option)));
    }

    #[test]
    fn a_recording_without_the_slab_of_cgroups_leaves_the_storm_open_where_cgroups_are_removed() {
        assert_eq!(Storm::of(&host(None, true), COSTLY), Some(Storm::Unknown));
        assert_eq!(Storm::of(&host(None, false), COSTLY), None);
        assert!(Storm::Unknown.told(|_| String::new()).contains("no slab of cgroups"));
        assert_eq!(Storm::of(&host(Some(0.1), true), COSTLY), None, "a few inodes");
    }

    #[test]
    fn inodes_that_a_removed_cgroup_leaves_to_its_parent_are_its_own() {
        let storm = |is_removed: bool, dying: u64, grows_mib: f64| {
            let fixture = Fixture::healthy().kernel("5.10.223");
            let rows = ["/", "/system.slice", "/init.scope"].map(str::to_owned).into_iter();
            let units = ["systemd-journald", "ssh", "nginx"].map(|unit| format!("/system.slice/{unit}.service"));
            let fixture = rows
                .chain(units)
                .fold(fixture, |fixture, path| fixture.cgroup(&path, |_, row| row.slab_reclaimable = None));
            let fixture = fixture.cgroup("/jobs", move |t, row| {
                let after = if t > 5.0 { 1.0 } else { 0.0 };
                row.slab_reclaimable = Some(Bytes(mib(2.0 + grows_mib * after)));
                (row.nr_dying_descendants, row.nr_dying_subsys_memory) = (Some(Count(dying * after as u64)), None);
            });
            let fixture = fixture.cgroup("/jobs/unpack", move |t, row| {
                row.slab_reclaimable = Some(Bytes(mib(1.0)));
                if is_removed && t > 5.0 {
                    *row = CgroupRow::default();
                }
            });
            let window = fixture.window();
            let storm = Storm::of(&window, COSTLY);
            storm.map(|storm| (storm.is_certain(), storm.told(|id| path(&window, id).unwrap().to_string())))
        };
        let (is_certain, told) = storm(true, 1, 30.0).expect("a storm");
        assert!(is_certain && told.starts_with("/jobs/unpack was removed"), "{told}");
        assert!(!storm(true, 3, 30.0).is_some_and(|(is_certain, _)| is_certain), "it may be that of others");
        assert!(!storm(false, 1, 30.0).is_some_and(|(is_certain, _)| is_certain), "no cgroup is removed");
        assert!(!storm(true, 1, 8.0).is_some_and(|(is_certain, _)| is_certain), "few inodes");
    }

    #[test]
    fn the_number_of_inodes_is_an_estimate_with_two_digits() {
        let told = |is_removed| {
            let storm = Storm::Of { cgroup: EntityId(1), slab: 24_123.0 * INODE, is_removed };
            storm.told(|_| "/unpack".to_owned())
        };
        assert!(told(true).starts_with("/unpack was removed and held about 24,000 inodes, "), "{}", told(true));
        assert!(told(false).starts_with("/unpack holds about 24,000 inodes, "), "{}", told(false));
        assert_eq!([9.4, 99.6, 9_960.0, 20_400.0].map(two_digits), ["9", "100", "10,000", "20,000"]);
    }
}
