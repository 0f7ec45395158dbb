// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inodes that a new kernel moves when a cgroup is removed, as the pre-flight judges them. What they cost is computed in
//! `floodline_analysis::diagnose::moved_inodes`.

use floodline_analysis::diagnose::derived::Derived;
use floodline_analysis::diagnose::moved_inodes::{self, Moves};
use floodline_record::window::Window;

/// A storm that the change brings.
pub(crate) struct Storm {
    /// Whether a cgroup with that many inodes was removed in the recording. Otherwise one may be removed.
    pub(crate) is_certain: bool,
    pub(crate) told: String,
}

/// Whether removals of cgroups would move many inodes at a cost that grows with their square, and do not yet. `then` is the host after the
/// change.
pub(crate) fn storm(derived: &Derived<'_>, then: &Window) -> Option<Storm> {
    let storm = moved_inodes::Storm::of(derived.window, Moves::of(then))?;
    Some(Storm { is_certain: storm.is_certain(), told: storm.told(|id| derived.label(id)) })
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
    fn a_series_has_the_fix_and_a_host_of_it_is_not_moved_back() {
        check(&host("5.10.223", 27.8, LAZY, true), "6.12", FINE);
        check(&host("5.10.223", 27.8, LAZY, true), "6.12.0", SUFFERS);
        let in_force = (Verdict::Fine, Cause::NoChange);
        check(&host("6.12.999", 27.8, LAZY, true), "6.12", in_force);
        check(&host("6.12.999", 27.8, LAZY, true), "6.12.0", SUFFERS);
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
