// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write limits on devices whose filesystem does not support cgroup writeback: buffered writes are issued as the root's.

use super::{RULE, passed_disks, rates, severity};
use crate::diagnose::derived::Derived;
use crate::diagnose::device;
use crate::diagnose::limits::{self, lacks_support};
use crate::report::{Brief, Evidence, Finding};
use floodline_kernel::{Behaviour, CgroupWriteback, WhyNot, cgroup_writeback};
use floodline_record::facts::{HostFacts, Mount};
use floodline_record::human;
use floodline_record::id::{DevId, EntityId};
use floodline_record::name::Name;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a filesystem is known to support cgroup writeback.
fn supports(facts: &HostFacts, mount: &Mount) -> bool {
    Behaviour::of_host(facts)
        .is_some_and(|kernel| cgroup_writeback(mount, &kernel, &facts.cgroups) == CgroupWriteback::Supported)
}

/// Finding for a write limit on a device whose filesystem does not support cgroup writeback.
pub(super) fn filesystem(derived: &Derived<'_>, facts: &HostFacts) -> Option<Finding> {
    let limits = limits::of_writes(derived);
    // Hundreds of cgroups have limits on the same few devices.
    let mut lacking: BTreeMap<DevId, Option<(&Mount, WhyNot)>> = BTreeMap::new();
    let mut lacks = |dev: DevId| {
        *lacking.entry(dev).or_insert_with(|| {
            let mounts = device::by_dev(derived.window, dev).map(|device| device.mounts()).unwrap_or_default();
            let writable: Vec<&Mount> = mounts.into_iter().filter(|mount| !mount.has_option("ro")).collect();
            // A disk has several filesystems, such as an EFI partition, and its counters do not tell which of them was written.
            let has_support = writable.iter().any(|mount| supports(facts, mount));
            writable.into_iter().filter(|_| !has_support).find_map(|mount| Some((mount, lacks_support(facts, mount)?)))
        })
    };
    let (mount, why) = limits.iter().find_map(|(_, dev, _)| lacks(*dev))?;
    let escaping: Vec<limits::WriteLimit<'_>> =
        limits.into_iter().filter(|(_, dev, _)| lacks(*dev).is_some()).collect();
    let passed = limits::passed(derived, &escaping);
    let cgroups: BTreeSet<EntityId> = escaping.iter().map(|(cgroup, ..)| *cgroup).collect();
    let mut evidence = vec![
        Evidence::text(
            format!("Filesystem of {}", mount.mount_point),
            Name::new(&mount.fs_type).to_string(),
            "/proc/self/mountinfo",
        )
        .against_text(why.to_string()),
    ];
    let kernel = Name::new(&facts.kernel_release).to_string();
    evidence.push(Evidence::text("Kernel", kernel, "uname -r"));
    evidence.extend(limits::rows(derived, &escaping));
    evidence.extend(rates(derived, &passed));
    Some(Finding {
        rule: RULE.name,
        severity: severity(derived, &escaping, &passed),
        summary: format!(
            "Write limits of {} do not apply to buffered writes on {}: {} has no cgroup writeback here.",
            human::plural(cgroups.len() as u64, "cgroup", "cgroups"),
            mount.mount_point,
            Name::new(&mount.fs_type)
        ),
        evidence,
        brief: Brief {
            because:
                "This filesystem does not tell the kernel which cgroup a buffered write belongs to. The limits hold \
                      direct and synchronous writes only."
                    .to_owned(),
            who: cgroups.iter().take(3).map(|cgroup| derived.label(*cgroup)).collect::<Vec<_>>().join(", "),
            expect: "Move the data to ext4, XFS, btrfs or f2fs, or let the programs write directly (O_DIRECT)."
                .to_owned(),
            ..Brief::default()
        },
        cause: "A filesystem has to say for each write whose it is. Where it does not, dirty pages are written as the \
                root's: io.max, io.weight and io.latency see direct and synchronous writes only, and the cgroup has no \
                dirty budget of its own."
            .to_owned(),
        trade_off:
            "Move the data to ext4 (not with data=journal), btrfs, f2fs or XFS on a kernel that supports it, or let \
             the programs write directly. If neither is possible, remove the limit: it does not hold."
                .to_owned(),
        devices: passed_disks(derived, &escaping, &passed),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::diagnose::check_rule;
    use floodline_record::units::Limit;
    use floodline_testkit::{Fixture, grows};

    /// A box with a limit of 10 MB/s on a filesystem, that dirties some MB/s.
    fn dirties(megabytes: f64, (fs_type, options): (&str, &str), kernel: &str) -> Fixture {
        Fixture::healthy()
            .kernel(kernel)
            .disk("sdb", |_, _| {})
            .mount("sdb", fs_type, "/data", options)
            .cgroup_io("/box", "sdb", |_, row| row.wbps_max = Some(Limit(10_000_000)))
            .process("copy", 71, "/box", move |t, row| row.write_bytes = grows(t, 0, megabytes * 1e6))
    }

    #[test]
    fn a_filesystem_without_support_lets_writes_escape() {
        let expect = "warning: Write limits of 1 cgroup do not apply to buffered writes on /data: vfat";
        check_rule(&RULE, &dirties(20.0, ("vfat", "rw"), "6.12.117"), expect);
        check_rule(&RULE, &dirties(20.0, ("xfs", "rw"), "6.12.117"), "clear:");
        let expect = "warning: Write limits of 1 cgroup do not apply to buffered writes on /data: xfs";
        check_rule(&RULE, &dirties(20.0, ("xfs", "rw"), "4.19.0"), expect);
        let journal = ("ext4", "rw,data=journal");
        check_rule(&RULE, &dirties(20.0, journal, "6.12.117"), "warning: Write limits of 1 cgroup");
        // An EFI partition beside it.
        let root = dirties(20.0, ("ext4", "rw"), "6.12.117").mount("sdb", "vfat", "/boot/efi", "rw");
        check_rule(&RULE, &root, "clear:");
        // Its tasks are in a cgroup below.
        let below =
            dirties(0.0, journal, "6.12.117")
                .cgroup("/box/app", |_, _| {})
                .process("app", 72, "/box/app", |t, row| row.write_bytes = grows(t, 0, 20e6));
        check_rule(&RULE, &below, "warning: Write limits of 1 cgroup");
        // A limit that no cgroup passed escaped without harm.
        check_rule(&RULE, &dirties(8.0, journal, "6.12.117"), "info: Write limits of 1 cgroup");
    }
}
