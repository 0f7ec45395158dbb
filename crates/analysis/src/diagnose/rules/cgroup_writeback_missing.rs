// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `cgroup-writeback-missing`: limits that appear to hold buffered writes, but do not: version 1 or a hybrid
//! set-up, a filesystem without support, controllers that end above the intended cgroups. Reports escaping writes, not
//! slowness.
#![doc = include_str!("cgroup_writeback_missing.md")]

mod escaping;
mod weights;

use crate::diagnose::derived::Derived;
use crate::diagnose::device;
use crate::diagnose::waiting::{self, Waiter};
use crate::diagnose::writer::{DOMINANT_SHARE, Writer};
use crate::diagnose::{Rule, Verdict, burst, cgroup, dirty, limits, load};
use crate::report::{Brief, Evidence, Finding, Severity, Step, When};
use floodline_record::facts::{CgroupMode, HostFacts};
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::id::{DevId, Entity, EntityId, Hierarchy};
use floodline_record::name::Name;
use floodline_record::units::Limit;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "cgroup-writeback-missing",
    summary: "Limits of cgroups that have no effect on buffered writes here",
    manual: include_str!("cgroup_writeback_missing.md"),
    explains: &["dirty-cliff", "dominant-writer", "fsync-behind-writeback"],
    check,
};

/// Length of a burst that stalls tasks, from which it is harm, seconds.
const LONG_BURST_S: f64 = 2.0;
/// Part of the window with a full disk, and with waiting tasks, from which that is harm.
const FILLS_SHARE: f64 = 0.5;
/// Boot option that puts everything on the unified hierarchy.
const UNIFIED: &str = "systemd.unified_cgroup_hierarchy=1";
/// Bits of `controllers`.
const MEMORY: u64 = 0b01;
const IO: u64 = 0b10;

fn check(derived: &Derived<'_>) -> Verdict {
    let Some(facts) = derived.window.facts.as_ref() else {
        return derived.not_checked(Source::CgroupV2, "cgroup set-up");
    };
    if facts.cgroups.mode == CgroupMode::None {
        return Verdict::Clear("no cgroup hierarchy is mounted".to_owned());
    }
    if facts.cgroups.v2_controllers_unread {
        return derived.not_checked(Source::CgroupControllers, "cgroup.controllers of the root");
    }
    if derived.window.cgroup_limits.is_empty() && derived.window.cgroup_io.is_empty() {
        return derived.not_checked(Source::MemoryLimits, "limits of cgroups");
    }
    let findings: Vec<Finding> = if facts.cgroups.has_unified_writeback() {
        let escaping = escaping::filesystem(derived, facts).into_iter();
        escaping.chain(weights::without_effect(derived, facts)).chain(shared_budget(derived)).collect()
    } else {
        not_unified(derived, facts).into_iter().collect()
    };
    if !findings.is_empty() {
        return Verdict::Found(findings);
    }
    Verdict::Clear(match facts.cgroups.has_unified_writeback() {
        true => "every limit is on a filesystem and on cgroups that have cgroup writeback".to_owned(),
        false => "there is no cgroup writeback here, and no limit that would need it".to_owned(),
    })
}

/// Returns a test for cgroups that passed their limits and for their descendants.
fn is_inside<'d>(derived: &'d Derived<'_>, passed: &[(EntityId, f64)]) -> impl Fn(Option<EntityId>) -> bool + 'd {
    let path = |id| cgroup::path(derived.window, id).map(Name::as_bytes);
    let inside: BTreeMap<&[u8], ()> = passed.iter().filter_map(|(cgroup, _)| Some((path(*cgroup)?, ()))).collect();
    move |cgroup| cgroup.and_then(path).is_some_and(|at| cgroup::nearest(&inside, at).is_some())
}

/// Whether a program outside the cgroups that passed their limits read or wrote. If none did, the limit may be for programs that are
/// at rest.
fn works_outside(derived: &Derived<'_>, passed: &[(EntityId, f64)]) -> bool {
    let is_inside = is_inside(derived, passed);
    let works =
        |writer: &Writer<'_>| [writer.dirtied_bytes, writer.read_bytes].iter().flatten().any(|bytes| *bytes > 0);
    derived.writers().processes.iter().any(|writer| !writer.kthread && works(writer) && !is_inside(writer.cgroup))
}

/// Programs outside that waited for a device whose limit was passed. `None` if their waits are not known, or if no program outside
/// reads or writes. If programs outside read or write and none of them waited, the passed limit did no harm.
fn would_be_spared(
    derived: &Derived<'_>,
    writes: &[limits::WriteLimit<'_>],
    passed: &[(EntityId, f64)],
) -> Option<Vec<Waiter>> {
    let is_inside = is_inside(derived, passed);
    let others_on = |dev: DevId| {
        let device = device::by_dev(derived.window, dev)?;
        let others = waiting::others_on(derived, &device, |waiter| is_inside(waiter.cgroup))?;
        (!others.is_empty() || works_outside(derived, passed)).then_some(others)
    };
    let by_device: Vec<Option<Vec<Waiter>>> = devices_of(writes, passed).into_iter().map(others_on).collect();
    let is_known = by_device.iter().all(Option::is_some);
    let others: Vec<Waiter> = by_device.into_iter().flatten().flatten().collect();
    (is_known || !others.is_empty()).then_some(others)
}

/// Whether cgroups that passed their limits made most of the writes.
fn made_most(derived: &Derived<'_>, passed: &[(EntityId, f64)]) -> bool {
    let path = |id| cgroup::path(derived.window, id);
    // What a cgroup dirtied counts for each limit above it, too.
    let is_inner = |id: EntityId| {
        let others = passed.iter().filter(|(other, _)| *other != id).filter_map(|(other, _)| path(*other));
        path(id).is_some_and(|path| others.into_iter().any(|other| cgroup::is_within(path, other)))
    };
    let theirs: f64 = passed.iter().filter(|(id, _)| !is_inner(*id)).map(|(_, rate)| rate * derived.seconds).sum();
    theirs > DOMINANT_SHARE * derived.writers().attributed_bytes() as f64
}

/// Whether a burst on a device of a passed limit stalled tasks for long. Waits for a journal's commit are in no counter of a task.
fn stalled(derived: &Derived<'_>, writes: &[limits::WriteLimit<'_>], passed: &[(EntityId, f64)]) -> bool {
    let devices = devices_of(writes, passed).into_iter().filter_map(|dev| device::by_dev(derived.window, dev));
    let mut bursts = devices.filter_map(|device| burst::longest(derived, &device));
    bursts.any(|burst| burst.stalled() && burst.seconds >= LONG_BURST_S)
}

/// Whether writes kept a disk of a passed limit full for a good part of the window, while tasks waited. How long each task waited is
/// then often not known: waits for a journal's commit are in no counter.
fn fills(derived: &Derived<'_>, writes: &[limits::WriteLimit<'_>], passed: &[(EntityId, f64)]) -> bool {
    let is_waited_for = |one: &device::Interval| {
        let pressure = dirty::io_pressure_between(derived.window, load::start(one), one.end);
        pressure.is_some_and(|share| share >= FILLS_SHARE)
    };
    let full_s = |disk: &device::Device<'_>| {
        let intervals = disk.intervals();
        let full = intervals.iter().filter(|one| one.is_saturated() && one.written_bytes >= one.read_bytes);
        full.filter(|one| is_waited_for(one)).map(|one| one.seconds).sum::<f64>()
    };
    let devices = devices_of(writes, passed).into_iter().filter_map(|dev| device::by_dev(derived.window, dev));
    let mut disks = devices.flat_map(|device| device.bottoms());
    disks.any(|disk| full_s(&disk) >= FILLS_SHARE * derived.seconds)
}

/// The devices of passed limits.
fn devices_of(writes: &[limits::WriteLimit<'_>], passed: &[(EntityId, f64)]) -> BTreeSet<DevId> {
    let is_passed = |cgroup: &EntityId| passed.iter().any(|(one, _)| one == cgroup);
    writes.iter().filter(|(one, ..)| is_passed(one)).map(|(_, dev, _)| *dev).collect()
}

/// Names of these devices, and of the disks below them.
fn passed_disks(derived: &Derived<'_>, writes: &[limits::WriteLimit<'_>], passed: &[(EntityId, f64)]) -> Vec<String> {
    let devices = devices_of(writes, passed).into_iter().filter_map(|dev| device::by_dev(derived.window, dev));
    let names = devices.flat_map(|device| iter::once(device).chain(device.bottoms()));
    names.map(|device| device.name.to_string()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// How much limits that do not apply to buffered writes matter. A limit without buffered writes beyond it is only worth reporting. A limit
/// that was exceeded failed its purpose. If most writes passed a limit, it would have spared the programs that wait for them. It spares no
/// task on a device that only its own cgroup uses.
fn severity(derived: &Derived<'_>, writes: &[limits::WriteLimit<'_>], passed: &[(EntityId, f64)]) -> Severity {
    if passed.is_empty() {
        return Severity::Info;
    }
    let harms = |spared: &[Waiter]| {
        waiting::is_harm(derived, spared) || stalled(derived, writes, passed) || fills(derived, writes, passed)
    };
    match would_be_spared(derived, writes, passed) {
        Some(spared) if spared.is_empty() => Severity::Info,
        Some(spared) if made_most(derived, passed) && harms(&spared) => Severity::Critical,
        _ => Severity::Warning,
    }
}

/// Bytes a second that the first cgroups that passed their limits dirtied, with those below them.
fn rates<'d>(derived: &'d Derived<'_>, passed: &'d [(EntityId, f64)]) -> impl Iterator<Item = Evidence> + 'd {
    passed.iter().take(3).map(|(cgroup, rate)| {
        let name = format!("Dirtied by {}", derived.label(*cgroup));
        Evidence::rate(name, *rate, "/proc/PID/io write_bytes of its processes")
    })
}

/// Memory and io are not both on the unified hierarchy.
fn not_unified(derived: &Derived<'_>, facts: &HostFacts) -> Option<Finding> {
    let writes = limits::of_writes(derived);
    let memory = limits::of_memory(derived);
    let weighted = weights::weighted(derived).len() as u64;
    if writes.is_empty() && memory.is_empty() && weighted == 0 {
        return None;
    }
    let mode = match facts.cgroups.mode {
        CgroupMode::V2 => "version 2 without both controllers",
        CgroupMode::Hybrid => "hybrid",
        _ => "version 1",
    };
    let cgroups = |count| human::plural(count, "cgroup", "cgroups");
    let passed = limits::passed(derived, &writes);
    let limited: BTreeSet<EntityId> = writes.iter().map(|(cgroup, ..)| *cgroup).collect();
    let (severity, fails) = match limited.len() as u64 {
        0 if weighted > 0 => {
            (Severity::Info, format!("Weights of {} do not apply to buffered writes", cgroups(weighted)))
        }
        0 => {
            let limit = human::plural(memory.len() as u64, "cgroup limits", "cgroups limit");
            (Severity::Info, format!("{limit} memory, which bounds no dirty pages"))
        }
        count => {
            let severity = severity(derived, &writes, &passed);
            (severity, format!("Write limits of {} do not apply to buffered writes", cgroups(count)))
        }
    };
    let unified = match facts.cgroups.v2_controllers.as_slice() {
        [] => "none".to_owned(),
        some => some.join(" "),
    };
    let mut evidence = vec![
        Evidence::text("Controllers of the unified hierarchy", unified, "cgroup.controllers of the root")
            .against_text("memory and io"),
        Evidence::count("Cgroups with a memory limit", memory.len() as u64, "memory limits"),
    ];
    if weighted > 0 {
        evidence.push(Evidence::count("Cgroups with a weight of their own", weighted, "io.weight"));
    }
    evidence.extend(limits::rows(derived, &writes));
    evidence.extend(rates(derived, &passed));
    // Dirty data of such a cgroup counts only against the whole machine's threshold.
    let dirty = cgroup::own_parts(derived.window, &derived.window.unwritten_max);
    evidence.extend(dirty.first().map(|(id, bytes)| {
        Evidence::bytes(format!("Most dirty, {}", derived.label(*id)), *bytes, "memory.stat dirty + writeback")
    }));
    Some(Finding {
        rule: RULE.name,
        severity,
        summary: format!("{fails}: cgroups are {mode} here."),
        evidence,
        brief: Brief {
            because: format!(
                "Cgroups are {mode} here. The kernel then cannot tell which cgroup a buffered write belongs to, so write \
                 limits and weights do not reach it."
            ),
            expect: match passed.first() {
                Some(_) if severity == Severity::Info => format!(
                    "No other program was seen to wait for that disk. If buffered writes must obey limits, put both \
                     controllers on version 2 (boot with {UNIFIED})."
                ),
                _ if severity == Severity::Info => format!(
                    "Nothing passed a limit here. If buffered writes must obey limits, put both controllers on version 2 (boot \
                     with {UNIFIED})."
                ),
                Some((cgroup, rate)) => format!(
                    "After the reboot each limit covers the pages that its cgroup brings into memory. Pages that another cgroup \
                     read or wrote first stay charged to that cgroup. {} dirties {}: its tasks then wait for its limit.",
                    derived.label(*cgroup),
                    human::bytes_per_second(*rate)
                ),
                None => "After the reboot each cgroup has a limit of unwritten data of its own.".to_owned(),
            },
            costs: "On version 2, small values of vm.dirty_bytes starve small cgroups. Set ratios before the move."
                .to_owned(),
            ..Brief::default()
        },
        cause: "The memory and io controllers are not on one hierarchy. The kernel then does not know which cgroup a \
         page belongs to when it writes it. All buffered writes are issued as the root's, and only the machine's own \
         threshold throttles. A cgroup may fill its whole memory limit with dirty pages. Its reclaim then waits for \
         the disk page by page."
            .to_owned(),
        // Where no limit was passed, a reboot changes nothing that is felt.
        plan: if severity == Severity::Info { Vec::new() } else { vec![to_version_2()] },
        trade_off: "Each memory limit then divides the dirty thresholds as well. With a small vm.dirty_bytes, small \
                    cgroups starve (starved-dirty-budget): set ratios before you move. Before you move, replace \
                    software that supports only version 1."
            .to_owned(),
        devices: passed_disks(derived, &writes, &passed),
        ..Finding::default()
    })
}

/// The step to version 2.
fn to_version_2() -> Step {
    Step {
        when: When::Later,
        write: "kernel command line".to_owned(),
        value: UNIFIED.to_owned(),
        undo: "take it off the command line and reboot".to_owned(),
        command: format!("# Add {UNIFIED} to the kernel command line and reboot."),
    }
}

/// Siblings without either controller below a limited cgroup: they share one wb and one budget.
fn shared_budget(derived: &Derived<'_>) -> Option<Finding> {
    let controllers = |id: &EntityId| derived.window.cgroup_limits.get(id).and_then(|span| span.last.controllers);
    let mut by_parent: BTreeMap<&[u8], Vec<EntityId>> = BTreeMap::new();
    for (id, span) in &derived.window.cgroups {
        let Some(Entity::Cgroup { path, hierarchy: Hierarchy::V2, .. }) = derived.window.entities.get(id) else {
            continue;
        };
        let lacks_both = controllers(id).is_some_and(|bits| bits.0 & (MEMORY | IO) == 0);
        let lives = span.last.populated.is_none_or(|populated| populated.0 != 0);
        if let Some(parent) = cgroup::parent(path.as_bytes()).filter(|_| lacks_both && lives) {
            by_parent.entry(parent).or_default().push(*id);
        }
    }
    let limited = limits::of_memory(derived);
    let limits: BTreeMap<&[u8], EntityId> =
        limited.iter().filter_map(|id| Some((cgroup::path(derived.window, *id)?.as_bytes(), *id))).collect();
    let shared = by_parent.iter().filter(|(_, children)| children.len() > 1);
    let (owner, children) =
        shared.filter_map(|(parent, children)| Some((cgroup::nearest(&limits, parent)?, children))).next()?;
    let names: Vec<String> = children.iter().take(3).map(|id| derived.label(*id)).collect();
    Some(Finding {
        rule: RULE.name,
        severity: Severity::Info,
        summary: format!(
            "{} below {} share one dirty budget: neither memory nor io is enabled for them.",
            human::plural(children.len() as u64, "cgroup", "cgroups"),
            derived.label(owner)
        ),
        evidence: vec![
            Evidence::count("Cgroups without memory and io", children.len() as u64, "cgroup.controllers"),
            Evidence::text("Among them", names.join(", "), "cgroup tree"),
            Evidence::reading(
                format!("Memory limit of {}", derived.label(owner)),
                derived.window.cgroup_limits.get(&owner).and_then(|span| span.last.memory_max).unwrap_or(Limit::MAX),
                "memory.max",
            ),
        ],
        brief: Brief {
            because:
                "Below the last cgroup with the memory controller all cgroups share one limit of unwritten data. One \
                      writer makes the others wait."
                    .to_owned(),
            who: names.join(", "),
            expect: "If they are meant to be apart, enable memory for them (MemoryAccounting=yes of each unit)."
                .to_owned(),
            ..Brief::default()
        },
        cause:
            "A dirty budget and a flusher belong to a memory cgroup. Below the last cgroup with the memory controller \
                all are one: a writer in one of them throttles the others. With io enabled the kernel keeps memory \
                cgroups for them unseen; with neither there are none."
                .to_owned(),
        trade_off:
            "If they are meant to be apart, enable memory for them (MemoryAccounting=yes of each unit). It costs \
                    a little memory and time per cgroup, and brings back the switching of inodes when one is removed."
                .to_owned(),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use floodline_record::gap::Cause;
    use floodline_record::units::Bits;
    use floodline_testkit::{Fixture, mib, secs};

    fn limited(fixture: Fixture) -> Fixture {
        fixture.limits("/box", |_, row| row.memory_max = Some(Limit(mib(256.0))))
    }

    fn io_limited(fixture: Fixture, disk: &str) -> Fixture {
        fixture.cgroup_io("/box", disk, |_, row| row.wbps_max = Some(Limit(10_000_000)))
    }

    #[test]
    fn controllers_that_were_not_read_are_not_missing() {
        let unread = limited(Fixture::healthy()).facts(|facts| {
            facts.cgroups.v2_controllers.clear();
            facts.cgroups.v2_controllers_unread = true;
        });
        check_rule(&RULE, &unread, "not checked: CGROUP/cgroup.{controllers,subtree_control}");
        assert_eq!(crate::budget::budgets(&unread.window()).scope, crate::budget::Scope::Unknown);
    }

    #[test]
    fn on_version_1_limits_do_not_hold_buffered_writes() {
        let v1 = || Fixture::healthy().hierarchy(Hierarchy::V1Memory);
        check_rule(&RULE, &v1(), "clear: there is no cgroup writeback here, and no limit that would need it");
        check_rule(
            &RULE,
            &limited(v1()),
            "info: 1 cgroup limits memory, which bounds no dirty pages: cgroups are version 1",
        );
        check_rule(
            &RULE,
            &io_limited(limited(v1()), "sda"),
            "info: Write limits of 1 cgroup do not apply to buffered writes: cgroups are version 1",
        );
        // A limit that was exceeded failed its purpose.
        let passing = || {
            io_limited(limited(v1()), "sda").process("dd", 900, "/box", |t, row| {
                row.write_bytes = Some(floodline_record::units::Bytes((40e6 * t) as u64));
            })
        };
        check_rule(&RULE, &passing(), "warning: Write limits of 1 cgroup do not apply to buffered writes");
        // It keeps the disk full, and a program outside was seen to wait for a moment.
        let filling = |busy: f64| {
            let fixture = passing().process("mail", 901, "/", |t, row| row.blkio_delay = Some(secs(0.06 * t)));
            fixture.host(|t, row| row.psi_io_some = Some(secs(900.0 + 0.8 * t))).disk("sda", move |t, row| {
                row.written = Some(floodline_record::units::Bytes((40e6 * t) as u64));
                row.writes = Some(floodline_record::units::Count((80.0 * t) as u64));
                row.io_time = Some(secs(600.0 + busy * t));
                row.weighted_io_time = Some(secs(900.0 + 20.0 * busy * t));
            })
        };
        check_rule(&RULE, &filling(1.0), "critical: Write limits of 1 cgroup do not apply to buffered writes");
        check_rule(&RULE, &filling(0.6), "warning: Write limits of 1 cgroup do not apply to buffered writes");
        // It made most of the writes, and a program outside waited long.
        let harmed = passing().process("mail", 901, "/", |t, row| row.blkio_delay = Some(secs(0.4 * t)));
        check_rule(&RULE, &harmed, "critical: Write limits of 1 cgroup do not apply to buffered writes");
        assert_eq!(crate::diagnose::first_finding(&RULE, &harmed).devices, ["sda"]);
        let others = harmed.process("backup", 902, "/", |t, row| {
            row.write_bytes = Some(floodline_record::units::Bytes((90e6 * t) as u64));
        });
        check_rule(&RULE, &others, "warning: Write limits of 1 cgroup do not apply to buffered writes");
        let hybrid = io_limited(limited(Fixture::healthy()), "sda").facts(|facts| {
            facts.cgroups.mode = CgroupMode::Hybrid;
            facts.cgroups.v2_controllers = vec!["io".into()];
        });
        check_rule(
            &RULE,
            &hybrid,
            "info: Write limits of 1 cgroup do not apply to buffered writes: cgroups are hybrid",
        );
    }

    #[test]
    fn a_limit_of_requests_is_passed_by_buffered_writes_of_the_size_that_the_disk_sees() {
        use floodline_record::units::{Bytes, Count};
        let passing = |kib_each: f64| {
            Fixture::healthy()
                .hierarchy(Hierarchy::V1Memory)
                .cgroup_io("/box", "sda", |_, row| row.wiops_max = Some(Limit(20)))
                .disk("sda", move |t, row| {
                    row.writes = Some(Count((60.0 * t) as u64));
                    row.written = Some(Bytes((60.0 * t) as u64 * (kib_each * 1024.0) as u64));
                })
                .process("dd", 900, "/box", |t, row| row.write_bytes = Some(Bytes((60.0 * t) as u64 * 4096)))
        };
        check_rule(&RULE, &passing(4.0), "warning: Write limits of 1 cgroup do not apply to buffered writes");
        // Fifteen requests a second would do for it.
        check_rule(&RULE, &passing(16.0), "info: Write limits of 1 cgroup do not apply to buffered writes");
        let Verdict::Found(found) = check(&Derived::of(&passing(16.0).window())) else { panic!("not found") };
        assert!(found[0].plan.is_empty(), "no reboot where no limit was passed: {found:?}");
    }

    #[test]
    fn a_waiter_below_a_limited_cgroup_is_not_outside() {
        use floodline_record::units::Bytes;
        let passing = |waiter: &'static str| {
            io_limited(limited(Fixture::healthy().hierarchy(Hierarchy::V1Memory)), "sda")
                .process("dd", 900, "/box", |t, row| row.write_bytes = Some(Bytes((40e6 * t) as u64)))
                .process("mail", 901, waiter, |t, row| row.blkio_delay = Some(secs(0.4 * t)))
        };
        check_rule(&RULE, &passing("/boxes"), "critical: Write limits of 1 cgroup");
        check_rule(&RULE, &passing("/box/inner"), "info: Write limits of 1 cgroup");
    }

    #[test]
    fn a_limit_on_a_disk_that_no_other_program_uses_is_an_info() {
        use floodline_record::units::{Bytes, Count};
        let passing = |disk: &'static str| {
            io_limited(limited(Fixture::healthy().hierarchy(Hierarchy::V1Memory)), "sda")
                .disk("sdb", |_, _| {})
                .cgroup_io("/shop", disk, |t, row| row.wios = Some(Count((9.0 * t) as u64)))
                .process("dd", 900, "/box", |t, row| row.write_bytes = Some(Bytes((40e6 * t) as u64)))
                .process("ledger", 901, "/shop", |t, row| {
                    row.write_bytes = Some(Bytes((4e4 * t) as u64));
                    row.blkio_delay = Some(floodline_testkit::secs(0.4 * t));
                })
        };
        check_rule(&RULE, &passing("sda"), "critical: Write limits of 1 cgroup");
        // Its tasks are in a cgroup with a limit of its own. Another one dirties more, and both limits count once.
        let nested = |megabytes: f64| {
            passing("sda")
                .process("dd", 900, "/box/inner", |t, row| row.write_bytes = Some(Bytes((40e6 * t) as u64)))
                .cgroup_io("/box/inner", "sda", |_, row| row.wbps_max = Some(Limit(10_000_000)))
                .cgroup_io("/free", "sda", |_, row| row.wbytes = Some(Bytes(0)))
                .process("copy", 902, "/free", move |t, row| {
                    row.write_bytes = Some(Bytes((megabytes * 1e6 * t) as u64))
                })
        };
        check_rule(&RULE, &nested(10.0), "critical: Write limits of 2 cgroups");
        check_rule(&RULE, &nested(60.0), "warning: Write limits of 2 cgroups");
        // The disks of journald and nginx are not known, and neither waits.
        check_rule(&RULE, &passing("sdb"), "info: Write limits of 1 cgroup");
        let alone =
            || {
                let (journald, nginx) = ("/system.slice/systemd-journald.service", "/system.slice/nginx.service");
                passing("sdb")
                    .process("systemd-journal", 300, journald, |_, row| row.write_bytes = Some(Bytes(0)))
                    .process("nginx", 500, nginx, |_, row| row.write_bytes = Some(Bytes(0)))
            };
        check_rule(&RULE, &alone(), "info: Write limits of 1 cgroup");
        let Verdict::Found(found) = check(&Derived::of(&alone().window())) else { panic!("not found") };
        assert!(found[0].plan.is_empty() && found[0].brief.expect.starts_with("No other program was seen to wait"));
    }

    #[test]
    fn the_same_limits_hold_on_version_2_and_ext4() {
        check_rule(&RULE, &io_limited(limited(Fixture::healthy()), "sda"), "clear: every limit is on a filesystem");
    }

    fn siblings(bits: u64) -> Fixture {
        limited(Fixture::healthy())
            .limits("/box/a", move |_, row| row.controllers = Some(Bits(bits)))
            .limits("/box/b", move |_, row| row.controllers = Some(Bits(bits)))
    }

    #[test]
    fn siblings_without_either_controller_share_a_budget() {
        check_rule(&RULE, &siblings(0), "info: 2 cgroups below /box share one dirty budget");
        // io enables a hidden memory controller for each cgroup.
        check_rule(&RULE, &siblings(IO), "clear:");
        let empty = siblings(0).cgroup("/box/a", |_, row| row.populated = Some(floodline_record::units::Flag(0)));
        check_rule(&RULE, &empty, "clear:");
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        let denied = Cause::PermissionDenied { need: "root".into() };
        let blind = Fixture::healthy().facts(|facts| facts.cgroups.mode = CgroupMode::None);
        check_rule(&RULE, &blind, "clear: no cgroup hierarchy is mounted");
        let mut window = Fixture::healthy().gap(floodline_record::gap::Gap::new(Source::MemoryLimits, denied)).window();
        window.cgroup_limits.clear();
        window.cgroup_io.clear();
        let said = check(&Derived::of(&window));
        assert!(matches!(&said, Verdict::NotChecked(gaps) if gaps.len() == 1), "{said:?}");
    }
}
