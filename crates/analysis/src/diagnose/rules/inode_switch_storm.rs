// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `inode-switch-storm`: after a cgroup is removed, kworkers move its cached inodes to the parent's wb, and on
//! some kernels burn CPU for it at a cost that grows faster than the inodes. Measured by the CPU time of those
//! kworkers; otherwise reported as an exposure, if files show one. Not about writing: a switch writes no page.
#![doc = include_str!("inode_switch_storm.md")]

use crate::diagnose::derived::Derived;
use crate::diagnose::switches::{self, Cost, Moves, Pair};
use crate::diagnose::{Rule, Verdict, cgroup};
use crate::report::{Brief, Evidence, Finding, Severity, Step, When};
use floodline_record::facts::HostFacts;
use floodline_record::gap::Source;
use floodline_record::human;
use floodline_record::id::EntityId;
use floodline_record::name::Name;
use floodline_record::units::Nanos;

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "inode-switch-storm",
    summary: "Removed cgroups make kworkers move their cached inodes, which can burn whole CPUs",
    manual: include_str!("inode_switch_storm.md"),
    explains: &[],
    check,
};

/// CPUs' worth of switching that stalls other work.
const HURTS_CPUS: f64 = 0.5;
/// CPUs' worth of switching that is worth reporting.
const FELT_CPUS: f64 = 0.05;
/// Length of a storm, seconds. The shares above apply to at most this much time, because a longer observation does not
/// make a storm smaller.
const STORM_S: f64 = 10.0;
/// CPU seconds below which the measurement is not reported.
const LEAST_CPU_S: f64 = 0.5;
/// Reclaimable slab of one cgroup that may hold very many inodes, about 100,000 of 1 KiB.
const MANY_INODES: u64 = 100 << 20;

/// Cost of the switching, and inodes that are still to be switched.
struct Storm {
    /// CPU seconds of kworkers named for switching; `None` when there is no rate.
    cpu_s: Option<f64>,
    workers: u64,
    dying: Option<u64>,
    /// Cgroups that were removed within the window.
    removed: u64,
    /// The cgroup with the most reclaimable slab of its own.
    largest: Option<(EntityId, u64)>,
    /// Whether that cgroup was removed within the window.
    is_largest_removed: bool,
    lazytime: Vec<String>,
    cost: Cost,
    /// Counted moves, by pair of cgroups; `None` when they were not traced.
    moves: Option<Vec<(Pair, Moves)>>,
}

fn check(derived: &Derived<'_>) -> Verdict {
    let Some(facts) = derived.window.facts.as_ref() else {
        return derived.not_checked(Source::KernelRelease, "facts of the machine");
    };
    if facts.cgroups.v2_controllers_unread {
        return derived.not_checked(Source::CgroupControllers, "cgroup.controllers of the root");
    }
    if !facts.cgroups.has_unified_writeback() {
        return Verdict::Clear("no cgroup writeback here: inodes belong to no cgroup".to_owned());
    }
    let storm = storm(derived, facts);
    let storm_s = derived.seconds.min(STORM_S);
    let measured = storm.cpu_s.filter(|cpu| *cpu >= (FELT_CPUS * storm_s).max(LEAST_CPU_S));
    if let Some(cpu) = measured {
        let severity = if cpu >= HURTS_CPUS * storm_s { Severity::Critical } else { Severity::Warning };
        let summary = format!(
            "Kworkers moving inodes of removed cgroups used {} of CPU in {}{}.",
            human::seconds(cpu),
            human::seconds(derived.seconds),
            storm.moves.as_deref().map(|moves| counted(derived, moves)).unwrap_or_default()
        );
        return Verdict::Found(vec![finding(derived, &storm, true, severity, summary)]);
    }
    if let Some(finding) = exposed(derived, &storm) {
        return Verdict::Found(vec![finding]);
    }
    match (storm.cost, storm.cpu_s, storm.dying) {
        (Cost::None, _, _) => Verdict::Clear("this kernel does not switch inodes of removed cgroups".to_owned()),
        (_, Some(cpu), _) if storm.moves.as_ref().is_some_and(|moves| !moves.is_empty()) => Verdict::Clear(format!(
            "kworkers that move inodes used {} of CPU{}",
            human::seconds(cpu),
            storm.moves.as_deref().map(|moves| counted(derived, moves)).unwrap_or_default()
        )),
        (_, None, _) => Verdict::NotChecked(vec![derived.rate_gap(Source::ProcessStat, "CPU of kworkers")]),
        (_, Some(_), None) => derived.not_checked(Source::CgroupStat, "nr_dying_descendants"),
        (_, Some(cpu), Some(dying)) => Verdict::Clear(format!(
            "kworkers that move inodes used {} of CPU, {}",
            human::seconds(cpu),
            human::plural(dying, "removed cgroup lingers", "removed cgroups linger")
        )),
    }
}

/// Words such as `: 20,000 inodes went from A to B`; empty when no inode moved.
fn counted(derived: &Derived<'_>, moves: &[(Pair, Moves)]) -> String {
    let all: u64 = moves.iter().map(|(_, moves)| moves.switched).sum();
    match moves.first() {
        Some((pair, _)) => format!(
            ": {} went from {} to {}",
            human::plural(all, "inode", "inodes"),
            derived.label_of_ino(pair.one),
            derived.label_of_ino(pair.other)
        ),
        None => String::new(),
    }
}

fn storm(derived: &Derived<'_>, facts: &HostFacts) -> Storm {
    let workers = switches::workers(derived);
    let latest = derived.window.cgroups.values().map(|span| span.last_at).max();
    let slab = cgroup::own_amounts(derived.window, |span| span.last.slab_reclaimable.map(|bytes| bytes.0));
    let largest = slab.first().copied();
    let is_removed = |id| derived.window.cgroups.get(&id).is_some_and(|span| Some(span.last_at) < latest);
    Storm {
        cpu_s: workers.cpu_s,
        workers: workers.seen,
        dying: switches::dying(derived.window),
        removed: derived.window.cgroups.values().filter(|span| Some(span.last_at) < latest).count() as u64,
        largest,
        is_largest_removed: largest.is_some_and(|(id, _)| is_removed(id)),
        lazytime: facts
            .mounts
            .iter()
            .filter(|mount| mount.has_option("lazytime") && !mount.has_option("ro"))
            .map(|mount| mount.mount_point.to_string())
            .collect(),
        cost: Cost::of(derived.behaviour),
        moves: switches::moves(derived.window),
    }
}

/// Finding for a possible storm: cgroups are removed here, one has very many inodes cached, and the kernel's cost of
/// switching is excessive.
fn exposed(derived: &Derived<'_>, storm: &Storm) -> Option<Finding> {
    let (id, slab) = storm.largest.filter(|(_, slab)| *slab >= MANY_INODES)?;
    let removes = storm.removed > 0 || storm.dying > Some(0);
    if !removes || storm.cost != Cost::Quadratic {
        return None;
    }
    let severity = if storm.lazytime.is_empty() { Severity::Info } else { Severity::Warning };
    let (name, slab) = (derived.label(id), human::bytes(slab as f64));
    let summary = match storm.is_largest_removed {
        true => format!(
            "{name} held {slab} of reclaimable slab and was removed in this window. This kernel moves the cached inodes of a removed \
             cgroup at great cost."
        ),
        false => format!(
            "{name} holds {slab} of reclaimable slab. When it is removed, this kernel moves its cached inodes at great cost."
        ),
    };
    Some(finding(derived, storm, false, severity, summary))
}

fn finding(derived: &Derived<'_>, storm: &Storm, is_measured: bool, severity: Severity, summary: String) -> Finding {
    let mut evidence = Vec::new();
    if let Some(cpu) = storm.cpu_s {
        evidence.push(
            Evidence::seconds("CPU of kworkers of inode_switch_wbs", cpu, "/proc/PID/stat utime + stime")
                .against(HURTS_CPUS * derived.seconds.min(STORM_S)),
        );
        evidence.push(Evidence::count("Such kworkers", storm.workers, "/proc/PID/comm"));
    }
    for (pair, moves) in storm.moves.iter().flatten().take(3) {
        let (from, to) = (derived.label_of_ino(pair.one), derived.label_of_ino(pair.other));
        let name = format!("Inodes moved from {from} to {to} on {}", pair.bdi);
        evidence.push(Evidence::count(name, moves.switched, switches::SWITCHES));
        let lasted = Nanos(moves.last_at.0.saturating_sub(moves.first_at.0)).as_secs_f64();
        evidence.push(Evidence::seconds("from the first to the last", lasted, switches::SWITCHES));
        evidence.extend(switches::removed_before(derived.window, moves.first_at).map(|(at, path)| {
            let before = Nanos(moves.first_at.0.saturating_sub(at.0)).as_secs_f64();
            Evidence::seconds(format!("after the removal of {path}"), before, "trace of cgroup_rmdir")
        }));
    }
    evidence.extend(
        storm
            .dying
            .map(|dying| Evidence::count("Removed cgroups that linger", dying, "cgroup.stat nr_dying_descendants")),
    );
    evidence.push(Evidence::count("Cgroups removed in this window", storm.removed, "cgroup tree"));
    evidence.extend(storm.largest.map(|(id, slab)| {
        Evidence::bytes(
            format!("Most reclaimable slab, {}", derived.label(id)),
            slab,
            "memory.stat slab_reclaimable: inodes and dentries",
        )
        .against(MANY_INODES as f64)
    }));
    if !storm.lazytime.is_empty() {
        evidence.push(Evidence::text("Mounted lazytime", storm.lazytime.join(", "), "/proc/self/mountinfo"));
    }
    let release = derived.window.facts.as_ref().map(|facts| Name::new(&facts.kernel_release).to_string());
    evidence.extend(release.map(|release| {
        Evidence::text(
            "Kernel, by its version",
            format!("{release}: {}", storm.cost.in_words()),
            "uname -r, an assumption",
        )
    }));
    let (plan, trade_off) = remedy(derived, storm);
    let whose = storm.largest.filter(|(_, slab)| *slab >= MANY_INODES).map(|(id, _)| derived.label(id));
    let brief = Brief {
        because: match (is_measured, storm.is_largest_removed) {
            (true, _) => {
                "A cgroup that wrote many files was removed. The kernel now hands its cached inodes to the parent cgroup, \
                 and its worker threads burn CPU time under one lock."
            }
            (false, true) => {
                "A cgroup that wrote many files was removed. The kernel hands its cached inodes to the parent cgroup, half a minute to \
                 minutes later. Its worker threads may then burn CPU time under one lock."
            }
            (false, false) => {
                "A cgroup holds many cached inodes. When it is removed, the kernel hands them to the parent cgroup, and its worker \
                 threads burn CPU time under one lock."
            }
        }
        .to_owned(),
        who: whose.clone().unwrap_or_default(),
        expect: match plan.is_empty() {
            true => String::new(),
            false => "A kernel with the fixes of 6.18 moves the inodes without the storm.".to_owned(),
        },
        costs: format!(
            "{} {} in a cgroup that is not removed.",
            if plan.is_empty() { "Run" } else { "A reboot. Until then, run" },
            whose.unwrap_or_else(|| "short-lived units that write many files".to_owned())
        ),
    };
    Finding {
        rule: RULE.name,
        severity,
        summary,
        confirmed: confirmed(derived, storm),
        evidence,
        cause: cause(storm),
        brief,
        plan,
        trade_off,
        ..Finding::default()
    }
}

/// Traced confirmation: the number of inodes that moved between each pair of cgroups, and the removal that caused it.
fn confirmed(derived: &Derived<'_>, storm: &Storm) -> Option<String> {
    let moves = storm.moves.as_deref()?;
    let (pair, most) = moves.first()?;
    let inodes = human::plural(most.switched, "inode", "inodes");
    let (from, to) = (derived.label_of_ino(pair.one), derived.label_of_ino(pair.other));
    let mut text = format!("{inodes} went from {from} to {to} on {}", pair.bdi);
    if let Some((at, path)) = switches::removed_before(derived.window, most.first_at) {
        let after = human::seconds(Nanos(most.first_at.0.saturating_sub(at.0)).as_secs_f64());
        text.push_str(&format!(", beginning {after} after the removal of {path}"));
    }
    text.push('.');
    Some(text)
}

fn cause(storm: &Storm) -> String {
    let lazytime = match (storm.cost, storm.lazytime.is_empty()) {
        (Cost::Linear | Cost::None, _) | (_, true) => "",
        _ => {
            " lazytime makes the cost quadratic: inodes whose time stamps are dirty are sorted into a list one by one."
        }
    };
    format!(
        "When a cgroup is removed, the kernel hands its cached inodes to the nearest living ancestor, in batches, all \
         under one list lock. A removed cgroup with dirty inodes is skipped until they are written and another cgroup \
         is removed. So the work starts half a minute to minutes after the program that wrote the files has ended. A \
         sync alone does not start it.{lazytime} The version shows only what is likely: distributions carry fixes of \
          their own. A trace of writeback:inode_switch_wbs names the cgroups."
    )
}

fn remedy(derived: &Derived<'_>, storm: &Storm) -> (Vec<Step>, String) {
    let mut plan = Vec::new();
    if storm.cost == Cost::Quadratic || storm.cost == Cost::Unknown {
        plan.push(Step {
            when: When::Later,
            write: "kernel".to_owned(),
            value: switches::fixed_kernels(),
            undo: "boot the old kernel".to_owned(),
            command: "# Install a newer kernel package and reboot.".to_owned(),
        });
    }
    let whose = match storm.largest {
        Some((id, slab)) if slab >= MANY_INODES => derived.label(id),
        _ => "the units that write many files and end".to_owned(),
    };
    (
        plan,
        format!(
            "Until then, run {whose} in a cgroup that is not removed. Or use a slice of its own with both the io and the \
             memory controller off; it then has no limits and no accounting, and one controller alone changes \
             nothing. Dropping the inode cache before the cgroup is removed avoids the switches, but slows programs \
             that needed the cache. Keeping the unit alive (RemainAfterExit=) only delays the work."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::check_rule;
    use floodline_kernel::Behaviour;
    use floodline_record::gap::Cause;
    use floodline_record::id::Entity;
    use floodline_record::units::Bytes;
    use floodline_testkit::incidents::*;
    use floodline_testkit::{Fixture, mib};

    #[test]
    fn a_measured_storm_is_critical() {
        check_rule(
            &RULE,
            &inode_switch_storm(),
            "critical: Kworkers moving inodes of removed cgroups used 11 s of CPU in 9.00 s",
        );
        check_rule(&RULE, &inode_switch_storm_published(), "critical: Kworkers moving inodes");
        check_rule(
            &RULE,
            &inode_switch_fixed(),
            "clear: kworkers that move inodes used 110 ms of CPU, 1 removed cgroup lingers",
        );
        check_rule(&RULE, &inode_switch_6_1(), "clear: kworkers that move inodes used 200 ms of CPU");
        // A longer observation of the same storm.
        check_rule(&RULE, &inode_switch_storm().seconds(60), "critical: Kworkers moving inodes of removed cgroups");
    }

    #[test]
    fn a_kworker_that_starts_in_the_storm_counts_since_its_start() {
        let cpu = |start_s: f64| {
            let host = Fixture::healthy().process("kworker/u8:7+inode_switch_wbs", 77, "/", |t, row| match t < 5.0 {
                true => *row = Default::default(),
                false => {
                    row.utime = Some(Nanos(0));
                    row.stime = Some(Nanos((1e9 * (2.0 + 0.2 * (t - 5.0))) as u64));
                }
            });
            let mut window = host.window();
            let is_it = |entity: &&Entity| matches!(entity, Entity::Process { pid: 77, .. });
            let id = *window.entities.iter().find(|(_, entity)| is_it(entity)).expect("it is there").0;
            let comm = Name::from("kworker/u8:7+inode_switch_wbs");
            let start_ticks = (100.0 * (floodline_testkit::UPTIME + start_s)) as u64;
            window.entities.insert(id, Entity::Process { pid: 77, start_ticks, comm, cgroup: None, kthread: true });
            switches::workers(&Derived::of(&window)).cpu_s
        };
        assert_eq!((cpu(3.0), cpu(-3.0)), (Some(3.0), Some(1.0)));
    }

    #[test]
    fn counted_moves_confirm_it_and_name_both_cgroups() {
        let switched = || {
            floodline_record::record::What::InodesSwitched(Box::new(
                floodline_record::traced::switches::InodesSwitched {
                    since: Nanos(0),
                    bdi: "8:0".into(),
                    old_cgroup_ino: 77,
                    new_cgroup_ino: 1,
                    switched: 20_011,
                    queued: None,
                    first_at: Nanos(1),
                    last_at: Nanos(2),
                },
            ))
        };
        let expect = "critical: Kworkers moving inodes of removed cgroups used 11 s of CPU in 9.00 s: 20011 inodes went from \
                      cgroup 77 to /.";
        check_rule(&RULE, &inode_switch_storm().traced(&["switches"], vec![switched()]), expect);
        let little = inode_switch_fixed().traced(&["switches"], vec![switched()]);
        check_rule(
            &RULE,
            &little,
            "clear: kworkers that move inodes used 110 ms of CPU: 20011 inodes went from cgroup \
                                    77",
        );
        check_rule(
            &RULE,
            &inode_switch_fixed().traced(&["switches"], vec![]),
            "clear: kworkers that move inodes used 110 ms of CPU, 1",
        );
    }

    #[test]
    fn kernels_by_version() {
        let check = |release: &str, expect: Cost| {
            let facts = HostFacts { kernel: release.parse().ok(), ..HostFacts::default() };
            assert_eq!(Cost::of(Behaviour::of_host(&facts)), expect, "{release}");
        };
        check("5.10.223", Cost::None);
        check("5.15.0", Cost::Quadratic);
        check("6.1.156", Cost::Quadratic);
        check("6.1.157", Cost::Linear);
        check("6.1.176", Cost::Linear);
        check("6.1.192", Cost::Linear);
        check("6.8.0-31-generic", Cost::Quadratic);
        check("6.12.43", Cost::Quadratic);
        check("6.12.53", Cost::Quadratic);
        check("6.12.54", Cost::Linear);
        check("6.12.117", Cost::Linear);
        check("6.18.44", Cost::Linear);
        check("7.2.13", Cost::Linear);
        check("unknown", Cost::Unknown);
    }

    fn exposed(kernel: &str, slab_mib: f64, dying: u64) -> Fixture {
        Fixture::healthy()
            .kernel(kernel)
            .cgroup("/system.slice", move |_, row| {
                row.nr_dying_descendants = Some(floodline_record::units::Count(dying))
            })
            .cgroup("/system.slice", move |_, row| row.nr_dying_subsys_memory = None)
            .cgroup("/system.slice/unpack.service", move |_, row| row.slab_reclaimable = Some(Bytes(mib(slab_mib))))
    }

    #[test]
    fn an_exposure_needs_the_kernel_the_inodes_and_removals() {
        let expect = "info: /system.slice/unpack.service holds 400 MiB of reclaimable slab. When it is removed, this kernel moves";
        check_rule(&RULE, &exposed("6.8.0-31-generic", 400.0, 3), expect);
        check_rule(&RULE, &exposed("6.12.117", 400.0, 3), "clear:");
        check_rule(&RULE, &exposed("6.8.0-31-generic", 20.0, 3), "clear:");
        check_rule(&RULE, &exposed("6.8.0-31-generic", 400.0, 0), "clear:");
        let lazytime = exposed("6.8.0-31-generic", 400.0, 3).mount("sdb", "xfs", "/data", "rw,lazytime,attr2");
        check_rule(&RULE, &lazytime, "warning: /system.slice/unpack.service holds 400 MiB");
    }

    #[test]
    fn an_exposure_of_a_cgroup_that_was_removed_is_told_in_the_past() {
        let mut window = exposed("6.8.0-31-generic", 400.0, 3).window();
        let is_it = |entity: &&Entity| entity.label() == "/system.slice/unpack.service";
        let id = *window.entities.iter().find(|(_, entity)| is_it(entity)).expect("it is there").0;
        window.cgroups.get_mut(&id).expect("it was read").last_at.0 -= 3_000_000_000;
        let Verdict::Found(found) = (RULE.check)(&Derived::of(&window)) else { panic!("it is exposed") };
        assert!(
            found[0].summary.starts_with(
                "/system.slice/unpack.service held 400 MiB of reclaimable slab and was removed in this window."
            ),
            "{}",
            found[0].summary
        );
        assert!(found[0].brief.because.contains("half a minute to minutes later"), "{}", found[0].brief.because);
    }

    #[test]
    fn an_old_kernel_and_version_1_switch_nothing() {
        check_rule(&RULE, &exposed("5.10.223", 400.0, 3), "clear: this kernel does not switch");
        let v1 = Fixture::healthy().hierarchy(floodline_record::id::Hierarchy::V1Memory);
        check_rule(&RULE, &v1, "clear: no cgroup writeback here");
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        let one_look = Fixture::healthy().one_look();
        check_rule(
            &RULE,
            &one_look,
            "not checked: /proc/PID/stat (CPU of kworkers): observation too short (use --for 10s)",
        );
        let denied = || Cause::PermissionDenied { need: "root".into() };
        check_rule(
            &RULE,
            &Fixture::healthy().without(Source::ProcessStat, denied()),
            "not checked: /proc/PID/stat: permission denied (needs root)",
        );
        check_rule(&RULE, &Fixture::healthy().without(Source::CgroupStat, denied()), "not checked: CGROUP/cgroup.stat");
    }
}
