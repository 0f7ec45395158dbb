// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inodes that a new kernel moves when a cgroup is removed. A kernel that sorts them by age needs CPU time that grows with the square of
//! their number, for those whose time stamps are dirty. How many inodes a removed cgroup has is known from its slab. A twin does not
//! have them. The rule `inode-switch-storm` judges storms that a recording shows.

use crate::summary::thousands;
use floodline_analysis::diagnose::cgroup::own_amounts;
use floodline_analysis::diagnose::derived::Derived;
use floodline_analysis::diagnose::switches::{Cost, dying};
use floodline_analysis::shown::behaviour;
use floodline_record::facts::{HostFacts, Mount};
use floodline_record::human;
use floodline_record::id::EntityId;
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
/// CPU seconds of a storm that stalls other work, and of one that is worth a mention: those of the rule `inode-switch-storm`.
const HURTS_S: f64 = 5.0;
const LEAST_S: f64 = 0.5;

/// A storm that the change brings.
pub(crate) struct Storm {
    /// Whether a cgroup with that many inodes was removed in the recording. Otherwise one may be removed.
    pub(crate) is_certain: bool,
    pub(crate) told: String,
}

/// Whether removals of cgroups would move many inodes at a cost that grows with their square, and do not yet. `then` is the host after the
/// change.
pub(crate) fn storm(derived: &Derived<'_>, then: &Window) -> Option<Storm> {
    let window = derived.window;
    let facts = window.facts.as_ref()?;
    let moves = |window: &Window| is_quadratic(window) && has_times(window);
    if !moves(then) || moves(window) {
        return None;
    }
    let latest = window.cgroups.values().map(|span| span.last_at).max()?;
    let slab = slab_of_inodes(window, facts);
    let is_removed = |id| window.cgroups.get(id).is_some_and(|span| span.last_at < latest);
    if !window.cgroups.values().any(|span| span.last.slab_reclaimable.is_some()) {
        let removed = window.cgroups.keys().filter(|id| is_removed(*id)).count() as u64;
        return unseen(removed.max(dying(window).unwrap_or(0)));
    }
    let most = |removed: bool| {
        slab.iter().filter(|(id, _)| is_removed(id) == removed).max_by(|one, other| one.1.total_cmp(&other.1))
    };
    let told = |slab: f64, which: &str| {
        format!(
            "{which} had about {:.0} inodes, by the size of its slab. The new kernel moves them when the cgroup is removed. If their \
             time stamps are dirty, that takes up to {} of CPU.",
            slab / INODE,
            human::seconds(cpu(slab))
        )
    };
    let of = |found: Option<&(EntityId, f64)>| found.map(|(id, bytes)| (derived.label(*id), *bytes));
    if let Some((label, slab)) = of(most(true)).filter(|(_, slab)| cpu(*slab) >= LEAST_S) {
        return Some(Storm {
            is_certain: cpu(slab) >= HURTS_S,
            told: told(slab, &format!("{label}, which was removed,")),
        });
    }
    let (label, slab) = of(most(false)).filter(|(_, slab)| cpu(*slab) >= HURTS_S)?;
    (dying(window) > Some(0)).then(|| Storm { is_certain: false, told: told(slab, &label) })
}

/// A storm of removed cgroups whose inodes the recording does not show: version 1 does not count the slab of a cgroup.
fn unseen(removed: u64) -> Option<Storm> {
    let told = || {
        format!(
            "Inodes were not judged: the recording has no slab of cgroups. The new kernel moves the inodes of a removed cgroup, and the \
             host removed {}. {} inodes with dirty time stamps take {} of CPU. On the host, slabtop shows how many \
             inodes there are.",
            human::plural(removed, "cgroup", "cgroups"),
            thousands(MEASURED_INODES as u64),
            human::seconds(MEASURED_S)
        )
    };
    (removed > 0).then(|| Storm { is_certain: false, told: told() })
}

/// Whether a filesystem of the host has inodes of which only the time stamps are dirty. Without lazytime, or without access times, it has
/// hardly any.
fn has_times(window: &Window) -> bool {
    let has = |mount: &Mount| mount.has_option("lazytime") && !mount.has_option("noatime") && !mount.has_option("ro");
    window.facts.iter().flat_map(|facts| &facts.mounts).any(has)
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

/// CPU seconds that it takes to move the inodes of a slab of this size, if all of their time stamps are dirty.
fn cpu(slab: f64) -> f64 {
    MEASURED_S * (slab / INODE / MEASURED_INODES).powi(2)
}

/// Whether the kernel of a host moves inodes at a quadratic cost. On version 1 inodes belong to no cgroup.
fn is_quadratic(window: &Window) -> bool {
    let is_unified = window.facts.as_ref().is_some_and(|facts| facts.cgroups.has_unified_writeback());
    is_unified && Cost::of(behaviour(window)) == Cost::Quadratic
}

#[cfg(test)]
mod tests {
    use crate::arithmetic::judge;
    use crate::change::Change;
    use crate::row::{Cause, Verdict};
    use floodline_record::id::Hierarchy;
    use floodline_record::sample::CgroupRow;
    use floodline_record::units::{Bytes, Count};
    use floodline_testkit::{Fixture, mib};

    /// A unit whose files have this much slab, on a filesystem with these options. It is removed after half of the time, or stays.
    fn host(kernel: &str, slab_mib: f64, options: &str, is_removed: bool) -> Fixture {
        Fixture::healthy()
            .kernel(kernel)
            .mount("sdb", "xfs", "/data", options)
            .cgroup("/", |_, row| (row.nr_dying_descendants, row.nr_dying_subsys_memory) = (Some(Count(1)), None))
            .cgroup("/unpack", move |t, row| {
                row.slab_reclaimable = Some(Bytes(mib(slab_mib)));
                if is_removed && t > 5.0 {
                    *row = CgroupRow::default();
                }
            })
    }

    fn check(host: &Fixture, kernel: &str, expect: (Verdict, Cause)) {
        judged(host, &[&format!("kernel={kernel}")], expect);
    }

    fn judged(host: &Fixture, change: &[&str], expect: (Verdict, Cause)) {
        let change = Change::parse(change, None, None, None).expect("a change");
        let row = judge(&host.window(), "host.flr", &change);
        assert_eq!((row.verdict, row.cause), expect, "{}", row.finding);
    }

    const LAZY: &str = "rw,lazytime,attr2";
    const SUFFERS: (Verdict, Cause) = (Verdict::Suffers, Cause::InodeSwitching);
    const TIGHT: (Verdict, Cause) = (Verdict::Tight, Cause::InodeSwitching);
    const FINE: (Verdict, Cause) = (Verdict::Fine, Cause::WideMargin);

    #[test]
    fn inodes_of_a_removed_cgroup_bring_a_storm_on_a_kernel_that_sorts_them() {
        // 24,000 inodes are 15 s of CPU.
        check(&host("5.10.223", 27.8, LAZY, true), "6.12.43", SUFFERS);
        // 9,000 are 2 s, and 4,000 are 0.4 s.
        check(&host("5.10.223", 10.4, LAZY, true), "6.12.43", TIGHT);
        check(&host("5.10.223", 4.6, LAZY, true), "6.12.43", FINE);
        // It may be removed.
        check(&host("5.10.223", 27.8, LAZY, false), "6.12.43", TIGHT);
        check(&host("5.10.223", 10.4, LAZY, false), "6.12.43", FINE);
    }

    #[test]
    fn slab_of_page_cache_is_no_slab_of_inodes() {
        // 1.1 GiB of page cache on ext4 have buffer heads of 28 MiB.
        let cached = |file_mib: f64| {
            let host = host("5.10.223", 27.8, LAZY, true).mount("sda", "ext4", "/", "rw");
            host.cgroup("/unpack", move |t, row| row.file = Some(Bytes(mib(file_mib))).filter(|_| t <= 5.0))
        };
        check(&cached(1126.0), "6.12.43", FINE);
        check(&cached(112.0), "6.12.43", SUFFERS);
    }

    #[test]
    fn no_storm_comes_without_such_a_kernel_or_dirty_time_stamps() {
        check(&host("5.10.223", 27.8, LAZY, true), "6.12.117", FINE);
        check(&host("5.10.223", 27.8, "rw,attr2", true), "6.12.43", FINE);
        check(&host("5.10.223", 27.8, "ro,lazytime", true), "6.12.43", FINE);
        check(&host("5.10.223", 27.8, "rw,lazytime,noatime", true), "6.12.43", FINE);
        // The kernel sorts them already.
        check(&host("6.8.0-31-generic", 27.8, LAZY, true), "6.12.43", FINE);
    }

    #[test]
    fn inodes_that_version_1_does_not_count_are_not_cleared() {
        let v1 = |options: &str, is_removed: bool, dying: u64| {
            let host = host("6.12.43", 0.0, options, is_removed).hierarchy(Hierarchy::V1Memory);
            let host = host.cgroup("/", move |_, row| row.nr_dying_descendants = Some(Count(dying)));
            let units = ["systemd-journald", "ssh", "nginx"].map(|unit| format!("/system.slice/{unit}.service"));
            let paths = ["/", "/system.slice", "/init.scope", "/unpack"].map(str::to_owned);
            paths
                .into_iter()
                .chain(units)
                .fold(host, |host, path| host.cgroup(&path, |_, row| row.slab_reclaimable = None))
        };
        let moved = |host: &Fixture, expect| judged(host, &["cgroup=v2"], expect);
        moved(&v1(LAZY, true, 0), TIGHT);
        moved(&v1(LAZY, false, 1), TIGHT);
        moved(&v1(LAZY, false, 0), FINE);
        moved(&v1("rw,attr2", true, 1), FINE);
        judged(&v1(LAZY, true, 1), &["cgroup=v2", "kernel=6.12.117"], FINE);
    }

    #[test]
    fn mount_options_of_the_change_decide_whether_time_stamps_get_dirty() {
        let sorts = |options| host("6.12.43", 27.8, options, true);
        judged(&sorts("rw,noatime"), &["mount/data/options=lazytime,strictatime"], SUFFERS);
        let unknown = (Verdict::NotKnown, Cause::NotSimulated);
        judged(&host("5.10.223", 27.8, LAZY, true), &["kernel=6.12.43", "mount/data/options=noatime"], unknown);
        judged(&sorts("rw,noatime"), &["mount/data/options=noatime,lazytime"], unknown);
        judged(&sorts("rw,noatime"), &["mount/other/options=lazytime"], unknown);
        let change = Change::parse(&["mount/other/options=lazytime"], None, None, None).expect("a change");
        let notes = judge(&sorts("rw,noatime").window(), "host.flr", &change).notes;
        assert_eq!(notes, ["The host has no mount for mount/other/options: that part of the change has no effect."]);
        judged(&sorts(LAZY), &["mount/data/options=lazytime,strictatime"], unknown);
    }
}
