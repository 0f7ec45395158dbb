// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights without effect: `io.weight` is enforced by io.cost, which is off unless enabled for a device, and covers
//! buffered writes only where the filesystem supports cgroup writeback. (BFQ has weights of its own, `io.bfq.weight`,
//! which service managers set together with `io.weight`.)

use super::RULE;
use crate::diagnose::cgroup;
use crate::diagnose::derived::Derived;
use crate::diagnose::device::Device;
use crate::diagnose::limits::lacks_support;
use crate::report::{Brief, Evidence, Finding, Severity};
use floodline_kernel::WhyNot;
use floodline_record::facts::{HostFacts, Mount};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::id::EntityId;
use floodline_record::name::Name;
use floodline_record::units::Count;

/// Default weight of a cgroup.
const USUAL: Count = Count(100);

/// A cgroup and its weight.
type Weighted = (EntityId, u64);

/// Cgroups with a weight other than the default.
pub(super) fn weighted(derived: &Derived<'_>) -> Vec<Weighted> {
    let is_root = |id| cgroup::path(derived.window, id).is_some_and(|path| path.as_bytes() == b"/");
    let weight = |id: &EntityId| derived.window.cgroup_limits.get(id)?.last.io_weight.filter(|weight| *weight != USUAL);
    let ids = derived.window.cgroup_limits.keys().filter(|id| !is_root(**id));
    ids.filter_map(|id| Some((*id, weight(id)?.0))).collect()
}

/// Finding for weights without effect, where memory and io are on the unified hierarchy.
pub(super) fn without_effect(derived: &Derived<'_>, facts: &HostFacts) -> Option<Finding> {
    let weighted = weighted(derived);
    let was_read = derived.window.gaps_of(Source::IoCost).next().is_none();
    if weighted.is_empty() || !was_read {
        return None;
    }
    let disks = derived.disks();
    match disks.iter().any(|disk| shares_out(facts, disk)) {
        false if !disks.is_empty() => Some(without_sharing(derived, disks, &weighted)),
        _ => escaping(derived, facts, &weighted),
    }
}

/// Whether a scheduler or controller divides a disk by weights.
fn shares_out(facts: &HostFacts, disk: &Device<'_>) -> bool {
    let qos = facts.io_cost_qos.get(disk.dev.to_string().as_str());
    qos.is_some_and(|qos| qos.split_ascii_whitespace().any(|word| word == "enable=1")) || scheduler(disk) == Some("bfq")
}

fn scheduler<'a>(disk: &Device<'a>) -> Option<&'a str> {
    disk.facts.and_then(|facts| facts.scheduler.as_deref())
}

fn rows(derived: &Derived<'_>, weighted: &[Weighted]) -> impl Iterator<Item = Evidence> {
    weighted.iter().take(4).map(|(id, weight)| {
        Evidence::count(format!("Weight of {}", derived.label(*id)), *weight, "io.weight default")
            .against(USUAL.0 as f64)
    })
}

fn without_sharing(derived: &Derived<'_>, disks: &[Device<'_>], weighted: &[Weighted]) -> Finding {
    let mut evidence: Vec<Evidence> = rows(derived, weighted).collect();
    evidence.extend(disks.iter().take(4).map(|disk| {
        let scheduler = Name::new(scheduler(disk).unwrap_or("not read")).to_string();
        let name = format!("Scheduler of {}, without io.cost", disk.name);
        Evidence::text(name, scheduler, "/sys/block/NAME/queue/scheduler, io.cost.qos").against_text("bfq, or enable=1")
    }));
    Finding {
        rule: RULE.name,
        severity: Severity::Info,
        summary: format!(
            "The I/O weights of {} have no effect: io.cost is off and no disk is scheduled by bfq.",
            human::plural(weighted.len() as u64, "cgroup", "cgroups")
        ),
        evidence,
        brief: Brief {
            because:
                "A weight takes effect only where io.cost is enabled for the disk or bfq schedules it. Neither is \
                      the case here."
                    .to_owned(),
            expect: "Enable io.cost for the disk with a model of that disk (io.cost.qos), or use the bfq scheduler."
                .to_owned(),
            ..Brief::default()
        },
        cause:
            "A weight is only a number. io.cost divides a disk by it, and has to be enabled for each disk; otherwise \
                every cgroup gets what it asks for first."
                .to_owned(),
        trade_off:
            "Enabling io.cost (io.cost.qos, enable=1) with a model that is not the disk's throttles too much or \
                    nothing: measure the disk first. bfq costs CPU time on fast disks."
                .to_owned(),
        ..Finding::default()
    }
}

/// Weighted cgroups that write to a filesystem without cgroup writeback.
fn escaping(derived: &Derived<'_>, facts: &HostFacts, weighted: &[Weighted]) -> Option<Finding> {
    let written = derived.devices_written();
    let mounts = |id: EntityId| written.devices(id).into_iter().flat_map(|device| device.mounts());
    let lacking = |id: EntityId| -> Option<(&Mount, WhyNot)> {
        let writable = mounts(id).filter(|mount| !mount.has_option("ro"));
        writable.filter_map(|mount| Some((mount, lacks_support(facts, mount)?))).next()
    };
    let (mount, why) = weighted.iter().find_map(|one| lacking(one.0))?;
    let fs_type = Name::new(&mount.fs_type).to_string();
    let whose: Vec<Weighted> = weighted.iter().filter(|one| lacking(one.0).is_some()).copied().collect();
    let mut evidence = vec![
        Evidence::text(format!("Filesystem of {}", mount.mount_point), fs_type.clone(), "/proc/self/mountinfo")
            .against_text(why.to_string()),
    ];
    evidence.extend(rows(derived, &whose));
    Some(Finding {
        rule: RULE.name,
        severity: Severity::Info,
        summary: format!(
            "The I/O weights of {} do not reach buffered writes on {}: {fs_type} has no cgroup writeback here.",
            human::plural(whose.len() as u64, "cgroup", "cgroups"),
            mount.mount_point
        ),
        evidence,
        brief: Brief {
            because: "This filesystem writes buffered data as the root cgroup, with the weight of the root cgroup."
                .to_owned(),
            expect: "Move the data to ext4, XFS, btrfs or f2fs, or let the programs write directly (O_DIRECT)."
                .to_owned(),
            ..Brief::default()
        },
        cause: "Dirty pages of such a filesystem are written as the root's, with the root's weight, whichever cgroup \
             dirtied them. \
                Reads and direct writes are shared out by weight."
            .to_owned(),
        trade_off:
            "Move the data to ext4 (not with data=journal), btrfs, f2fs or XFS on a kernel that supports it, or \
                    let the programs write directly."
                .to_owned(),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use floodline_record::facts::CgroupMode;
    use floodline_record::gap::{Cause, Gap};
    use floodline_record::units::Bytes;
    use floodline_testkit::Fixture;

    /// A service with a weight that writes to a disk.
    fn weighted(fs_type: &str) -> Fixture {
        Fixture::healthy()
            .disk("sdb", |_, _| {})
            .mount("sdb", fs_type, "/data", "rw")
            .limits("/batch.service", |_, row| row.io_weight = Some(Count(20)))
            .cgroup_io("/batch.service", "sdb", |_, row| row.wbytes = Some(Bytes(1)))
    }

    fn io_cost(fixture: Fixture, qos: &str) -> Fixture {
        fixture.facts(|facts| {
            facts.io_cost_qos.insert("8:16".into(), qos.into());
        })
    }

    #[test]
    fn weights_need_somebody_who_shares_out() {
        let expect = "info: The I/O weights of 1 cgroup have no effect: io.cost is off";
        check_rule(&RULE, &weighted("ext4"), expect);
        check_rule(&RULE, &io_cost(weighted("ext4"), "enable=0 ctrl=auto"), expect);
        check_rule(&RULE, &io_cost(weighted("ext4"), "enable=1 ctrl=auto"), "clear:");
        let bfq = weighted("ext4").facts(|facts| facts.devices[1].scheduler = Some("bfq".into()));
        check_rule(&RULE, &bfq, "clear:");
        check_rule(&RULE, &weighted("ext4").limits("/batch.service", |_, row| row.io_weight = Some(USUAL)), "clear:");
        let unread = weighted("ext4").gap(Gap::new(Source::IoCost, Cause::Vanished));
        check_rule(&RULE, &unread, "clear:");
    }

    #[test]
    fn weights_pass_by_buffered_writes_of_a_filesystem_without_support() {
        let expect = "info: The I/O weights of 1 cgroup do not reach buffered writes on /data: vfat";
        check_rule(&RULE, &io_cost(weighted("vfat"), "enable=1"), expect);
    }

    #[test]
    fn in_a_hybrid_set_up_weights_hold_no_buffered_writes() {
        let hybrid = weighted("ext4").facts(|facts| {
            facts.cgroups.mode = CgroupMode::Hybrid;
            facts.cgroups.v2_controllers = vec!["io".into()];
        });
        check_rule(
            &RULE,
            &hybrid,
            "info: Weights of 1 cgroup do not apply to buffered writes: cgroups are hybrid here.",
        );
    }
}
