// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rule `starved-dirty-budget`: a machine-wide setting leaves cgroups so little dirty memory that every folio is
//! cleaned as soon as it is dirtied. Distinguishes two factors: the budget, and the amplification by folios that are
//! dirtied repeatedly. Also covers a limit of the machine or of a cgroup that takes in no burst, and cgroups whose memory is
//! nearly used up.
#![doc = include_str!("starved_dirty_budget.md")]

mod activity;
mod crowded;
mod evidence;
mod measured;
mod remedy;
mod starved;
mod storm;
mod stormy;
mod written;

use crate::budget::{Budgets, CgroupBudget, Scope};
use crate::diagnose::derived::Derived;
use crate::diagnose::short_limit::{self, Occupied};
use crate::diagnose::writer::Writers;
use crate::diagnose::{Rule, Verdict};
use crate::report::{Finding, Severity};
use activity::Activity;
use floodline_record::gap::{Cause, Gap, Source};
use floodline_record::human;
use measured::Measured;
use starved::{Candidates, Starved};

/// The rule and its manual page.
pub const RULE: Rule = Rule {
    name: "starved-dirty-budget",
    summary: "A dirty limit leaves cgroups, or the machine, too little room for what they write",
    manual: include_str!("starved_dirty_budget.md"),
    explains: &["fsync-behind-writeback", "dominant-writer", "strictlimit-throttling", "dirty-data-at-risk"],
    check,
};

fn check(derived: &Derived<'_>) -> Verdict {
    let budgets = derived.budgets();
    let writers = derived.writers();
    let occupied = short_limit::occupied(derived, budgets, &writers.processes);
    let storms = storm::storms(derived, budgets, writers, occupied.as_ref());
    if !storms.found.is_empty() {
        let found = stormy::findings(derived, budgets, &storms.found, occupied.as_ref(), writers.period);
        // Pages that programs ask to be written again do no harm, and a limit at which they wait does.
        let is_note = found.iter().all(|finding| finding.severity == Severity::Info);
        let waits = crowded::finding(derived).filter(|finding| is_note && finding.severity > Severity::Info);
        return Verdict::Found(waits.map_or(found, |finding| vec![finding]));
    }
    let small = small(derived, budgets, writers, occupied.as_ref());
    let worst = match &small {
        Verdict::Found(found) => found.iter().map(|finding| finding.severity).max(),
        _ => None,
    };
    if derived.seconds > 0.0 && worst <= Some(Severity::Info) {
        // Nothing is written again, and writers wait at the limit all the same.
        let waits = short_limit::finding(RULE.name, derived, budgets, occupied.as_ref());
        let waits = crowded::finding(derived).into_iter().chain(waits).max_by_key(|finding| finding.severity);
        if let Some(finding) = waits.filter(|finding| worst.is_none_or(|worst| finding.severity > worst)) {
            return Verdict::Found(vec![finding]);
        }
    }
    match (small, storms.needs_s) {
        (Verdict::Clear(_), Some(seconds)) => {
            let need = format!("--for {:.0}s", seconds.ceil() + 1.0);
            let what = "whether the same pages are written again";
            Verdict::NotChecked(vec![Gap::detailed(Source::ProcessIo, Cause::TooShort { need: need.into() }, what)])
        }
        (verdict, _) => verdict,
    }
}

/// The budgets that are small at any rate of writing.
fn small<'w, 'a>(
    derived: &Derived<'a>,
    budgets: &Budgets,
    writers: &'w Writers<'a>,
    occupied: Option<&Occupied<'w, 'a>>,
) -> Verdict {
    match budgets.scope {
        Scope::PerCgroup => {}
        Scope::NoUnifiedHierarchy => {
            return Verdict::Clear("no per-cgroup budget exists here: memory and io are not both on version 2".into());
        }
        Scope::KernelTooOld => return Verdict::Clear("no per-cgroup budget exists before kernel 4.2".into()),
        Scope::Unknown => return derived.not_checked(Source::CgroupV2, "cgroup set-up"),
    }
    let known: Vec<&CgroupBudget> = budgets.cgroups.iter().filter(|budget| budget.domain.thresh.is_some()).collect();
    if known.is_empty() {
        return match budgets.cgroups.first() {
            Some(budget) if !budget.domain.missing.is_empty() => Verdict::NotChecked(budget.domain.missing.clone()),
            _ if derived.window.cgroups.is_empty() => derived.not_checked(Source::CgroupV2, "no cgroup"),
            _ if had_memory(derived) => {
                Verdict::Clear("the cgroups with a memory controller were removed before the last sample".into())
            }
            _ => Verdict::Clear("no cgroup has a memory controller of its own".into()),
        };
    }
    let lives = |id| occupied.is_none_or(|occupied| occupied.contains_key(&id));
    let Candidates { starved, tight } =
        starved::candidates(derived, &budgets.global, known.iter().copied().filter(|budget| lives(budget.cgroup)));
    let of = |some: &[Starved<'_>]| activity::activity(derived, some, occupied, writers.period);
    // A budget that is enough for some writers counts only if it is seen hurting.
    let tight_ones = tight.len() as u64;
    let starved = if starved.is_empty() && of(&tight).is_amplified() { tight } else { starved };
    let activity = of(&starved);
    let Some(worst) = starved.iter().min_by_key(|starved| (starved.thresh, &starved.budget.path)) else {
        return Verdict::Clear(smallest(&known, tight_ones));
    };
    Verdict::Found(vec![finding(derived, budgets, &starved, worst, &activity)])
}

/// Whether a cgroup that is gone in the last sample had a memory controller.
fn had_memory(derived: &Derived<'_>) -> bool {
    let cgroups = &derived.window.cgroups;
    let latest = cgroups.values().map(|span| span.last_at).max();
    cgroups.values().any(|span| Some(span.last_at) < latest && span.last.file.is_some())
}

/// The smallest budget of all, for the reason of a clear verdict.
fn smallest(known: &[&CgroupBudget], tight: u64) -> String {
    let least = known.iter().filter_map(|budget| Some((budget.domain.thresh?.low.0, &budget.path))).min();
    match least {
        Some((thresh, path)) => format!(
            "{} with budgets of their own, the smallest {} ({path}), {}",
            human::plural(known.len() as u64, "cgroup", "cgroups"),
            human::bytes(thresh as f64),
            match tight {
                0 => "none of them small because of a machine-wide setting".to_owned(),
                tight => format!(
                    "{tight} of them small because of a machine-wide setting, but hardly anything is written again"
                ),
            }
        ),
        None => "no budget is small".to_owned(),
    }
}

fn finding(
    derived: &Derived<'_>,
    budgets: &Budgets,
    starved: &[Starved<'_>],
    worst: &Starved<'_>,
    activity: &Activity<'_, '_>,
) -> Finding {
    let writes = activity.rate.is_some_and(|rate| rate > 0.0) || starved.iter().any(|one| one.peak > Some(0));
    let waiting = activity::waiting(derived, starved);
    let throttled = waiting.is_throttling();
    let severity = match (activity.is_amplified() || throttled, writes) {
        (true, _) if !throttled && activity::is_harmless(derived, waiting.pressure) => Severity::Warning,
        (true, _) => Severity::Critical,
        // No folio was dirtied again during the observation: worth reporting.
        (false, true) if activity.rate.is_none() => Severity::Warning,
        (false, _) => Severity::Info,
    };
    let setting = setting_shown(worst);
    let effect = match (activity.is_amplified(), throttled, writes) {
        (true, _, _) => format!(
            "the same pages are written again and again, at {}",
            human::bytes_per_second(activity.written_rate().unwrap_or(0.0))
        ),
        (false, true, _) => "their writers are paused while the disks are idle".to_owned(),
        (false, false, true) => "their writers will be slowed as soon as they write more".to_owned(),
        (false, false, false) => "nothing writes there now".to_owned(),
    };
    let summary = format!(
        "{setting} leaves {} {} {}: {effect}.",
        human::plural(starved.len() as u64, "cgroup", "cgroups"),
        if starved.len() == 1 { "a dirty limit of" } else { "dirty limits as small as" },
        human::bytes(worst.thresh as f64),
    );
    let (plan, why, trade_off) = remedy::remedy(derived, starved, worst);
    let brief = remedy::brief(derived, starved, worst, (activity, &waiting), &trade_off);
    let measured = Measured::of(derived, starved);
    let mut evidence = evidence::evidence(derived, budgets, starved, worst, activity, &waiting);
    evidence.extend(measured.iter().flat_map(Measured::evidence));
    Finding {
        rule: RULE.name,
        severity,
        summary,
        confirmed: measured.as_ref().and_then(Measured::sentence),
        evidence,
        cause: format!(
            "{} {why}",
            remedy::cause(derived, worst, activity, measured.as_ref(), &activity::victims(activity))
        ),
        brief,
        plan,
        trade_off,
        ..Finding::default()
    }
}

fn setting_shown(worst: &Starved<'_>) -> String {
    short_limit::setting_of(&worst.budget.domain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::{check_rule, first_finding};
    use crate::report::Value;
    use floodline_record::gap::Cause;
    use floodline_record::id::Entity;
    use floodline_record::traced::throttle::Throttled;
    use floodline_testkit::incidents::*;
    use floodline_testkit::{Fixture, mib, secs};

    fn commands(finding: &Finding) -> Vec<&str> {
        finding.plan.iter().map(|step| step.command.as_str()).take(2).collect()
    }

    #[test]
    fn the_measured_budgets_are_critical_and_get_the_measured_cure() {
        check_rule(
            &RULE,
            &starved_budget(),
            "critical: vm.dirty_bytes = 100 MiB leaves 8 cgroups dirty limits as small as 1.7",
        );
        let finding = first_finding(&RULE, &starved_budget());
        assert!(finding.cause.contains("dirties its whole folio, here "), "{}", finding.cause);
        assert_eq!(commands(&finding), ["sysctl -w vm.dirty_background_ratio=5", "sysctl -w vm.dirty_ratio=10"]);
        check_rule(&RULE, &starved_budget_6_1(), "critical:");
        check_rule(&RULE, &starved_budget_cured(), "clear:");
    }

    #[test]
    fn a_change_that_holds_a_small_part_of_what_is_rewritten_does_not_promise_that_the_waits_end() {
        let finding = |file_mib: f64| {
            let host = (0..8).fold(starved_budget().settings((5, 0, 2, 0)), |fixture, writer| {
                let path = format!("/bench.slice/writer-{writer}.scope");
                fixture.cgroup(&path, move |_, row| {
                    row.file = Some(floodline_record::units::Bytes(mib(file_mib)));
                    row.file_dirty = Some(floodline_record::units::Bytes(mib(5.0)));
                })
            });
            first_finding(&RULE, &host)
        };
        let whole = finding(4.0);
        assert!(!whole.helps_in_part && whole.brief.expect.contains("The waits end"), "{}", whole.brief.expect);
        let part = finding(60.0);
        assert!(part.helps_in_part && !part.plan.is_empty(), "{}", part.trade_off);
        assert!(part.brief.expect.contains(" of the storm may remain."), "{}", part.brief.expect);
    }

    #[test]
    fn the_published_host_gets_the_published_cure_and_its_victims_are_named() {
        check_rule(&RULE, &starved_budget_published(), "critical: vm.dirty_bytes = 100 MiB leaves 240 cgroups");
        let finding = first_finding(&RULE, &starved_budget_published());
        assert!(finding.cause.contains("are slowed too: mariadbd, redis-server."), "{}", finding.cause);
        assert_eq!(commands(&finding), ["sysctl -w vm.dirty_background_ratio=5", "sysctl -w vm.dirty_ratio=10"]);
        check_rule(&RULE, &starved_budget_published_cured(), "clear:");
    }

    #[test]
    fn rewriting_that_harms_no_task_is_a_warning() {
        let host = |waiting: f64, busy: f64| {
            let idle = starved_budget().host(move |t, row| row.psi_io_some = Some(secs(900.0 + waiting * t)));
            let idle = idle.disk("sdb", move |t, row| {
                row.io_time = Some(secs(600.0 + busy * t));
                row.weighted_io_time = Some(secs(1_000.0 + 1.2 * busy * t));
            });
            (0..8).fold(idle, |fixture, writer| {
                let path = format!("/bench.slice/writer-{writer}.scope");
                fixture.cgroup(&path, move |t, row| row.io_some = Some(secs(1.0 + waiting * t)))
            })
        };
        check_rule(
            &RULE,
            &host(0.01, 0.1),
            "warning: vm.dirty_bytes = 100 MiB leaves 8 cgroups dirty limits as small as 1.7",
        );
        check_rule(&RULE, &host(0.3, 0.1), "critical: vm.dirty_bytes");
        // Where no task waits, no wait ends.
        let expects = |waiting| first_finding(&RULE, &host(waiting, 0.1)).brief.expect;
        assert!(!expects(0.001).contains("waits") && expects(0.3).ends_with(" The waits end."));
        check_rule(&RULE, &host(0.01, 0.6), "critical: vm.dirty_bytes");
        // Nothing shows that no task waited.
        let unknown = host(0.01, 0.1).host(|_, row| row.psi_io_some = None);
        let unknown = (0..8).fold(unknown, |fixture, writer| {
            fixture.cgroup(&format!("/bench.slice/writer-{writer}.scope"), |_, row| row.io_some = None)
        });
        check_rule(&RULE, &unknown, "critical: vm.dirty_bytes");
    }

    #[test]
    fn a_budget_of_a_few_more_folios_is_one_that_is_seen_to_amplify() {
        // 256 MiB leave 4.2 MiB, 33 folios.
        let with_256_mib = |fixture: Fixture| fixture.settings((0, 256 << 20, 0, 128 << 20));
        check_rule(&RULE, &with_256_mib(starved_budget()), "critical: vm.dirty_bytes = 256 MiB leaves 8 cgroups");
        let calm = starved_budget_cured();
        check_rule(&RULE, &with_256_mib(calm), "clear:");
        check_rule(&RULE, &with_256_mib(starved_budget()).one_look(), "clear:");
    }

    #[test]
    fn pages_need_less_room_than_folios_and_version_1_divides_nothing() {
        check_rule(&RULE, &small_budget_of_pages(), "clear:");
        check_rule(&RULE, &undivided_budget(), "clear: no per-cgroup budget exists here");
    }

    #[test]
    fn cgroups_without_limits_are_not_starved_by_bytes() {
        let window = Fixture::healthy().settings((0, 100 << 20, 0, 50 << 20));
        check_rule(&RULE, &window, "clear: ");
    }

    #[test]
    fn a_cgroup_small_by_its_own_limit_is_no_finding() {
        let small = starved_budget_cured().limits("/bench.slice/writer-0.scope", |_, row| {
            row.memory_max = Some(floodline_record::units::Limit(mib(6.0)))
        });
        check_rule(&RULE, &small, "clear:");
    }

    #[test]
    fn a_cgroup_that_may_hold_most_of_what_the_machine_may_is_not_starved_by_its_share() {
        let all = |of_memory: f64| {
            (0..8).fold(starved_budget_cured().settings((0, 2 << 20, 0, 1 << 20)), move |fixture, writer| {
                fixture.limits(&format!("/bench.slice/writer-{writer}.scope"), move |_, row| {
                    row.memory_max = Some(floodline_record::units::Limit(mib(of_memory)))
                })
            })
        };
        check_rule(&RULE, &all(2500.0), "clear: 15 cgroups with budgets of their own, the smallest 1.22 MiB");
        check_rule(&RULE, &all(400.0), "info: vm.dirty_bytes = 2.00 MiB leaves 8 cgroups");
    }

    #[test]
    fn the_memory_that_is_advised_is_more_than_the_limit_in_force() {
        let heaps = (0..8).fold(starved_budget().settings((10, 0, 5, 0)), |fixture, writer| {
            let path = format!("/bench.slice/writer-{writer}.scope");
            let limit = |_: f64, row: &mut floodline_record::sample::CgroupLimitsRow| {
                row.memory_max = Some(floodline_record::units::Limit(mib(100.0)));
            };
            fixture.limits(&path, limit).cgroup(&path, |_, row| {
                row.anon = Some(floodline_record::units::Bytes(mib(80.0)));
                row.memory_current = Some(floodline_record::units::Bytes(mib(99.0)));
            })
        });
        let finding = first_finding(&RULE, &heaps);
        assert!(finding.summary.contains("cgroups with little memory"), "{}", finding.summary);
        assert!(finding.trade_off.contains("(a limit of 205 MiB or more)"), "{}", finding.trade_off);
    }

    #[test]
    fn a_memory_limit_that_was_raised_again_counts_for_the_time_before() {
        let raised = |to: f64| {
            (0..8).fold(starved_budget().settings((10, 0, 5, 0)), move |fixture, writer| {
                let path = format!("/bench.slice/writer-{writer}.scope");
                let limit = move |t: f64, row: &mut floodline_record::sample::CgroupLimitsRow| {
                    let limit = mib(if t < 10.0 { 100.0 } else { to });
                    row.memory_max = Some(floodline_record::units::Limit(limit));
                };
                fixture.limits(&path, limit).cgroup(&path, |_, row| {
                    row.anon = Some(floodline_record::units::Bytes(mib(80.0)));
                    row.memory_current = Some(floodline_record::units::Bytes(mib(99.0)));
                })
            })
        };
        check_rule(&RULE, &raised(100.0), "critical: 8 cgroups with little memory rewrite");
        check_rule(
            &RULE,
            &raised(4000.0),
            "warning: 8 cgroups had a low memory limit that was raised later. They rewrote",
        );
        let finding = first_finding(&RULE, &raised(4000.0));
        assert!(
            finding.trade_off.starts_with("Their limit was raised meanwhile. Keep it at "),
            "{}",
            finding.trade_off
        );
        // A heap that needed the higher limit took nothing away before.
        let later = (0..8).fold(raised(4000.0), |fixture, writer| {
            fixture.cgroup(&format!("/bench.slice/writer-{writer}.scope"), |t, row| {
                row.anon = Some(floodline_record::units::Bytes(mib(if t < 10.0 { 8.0 } else { 2000.0 })));
            })
        });
        let room = |finding: &Finding| finding.brief.because.clone();
        assert!(room(&finding).starts_with("The flusher starts at 1.00 MiB"), "{}", room(&finding));
        assert!(
            room(&first_finding(&RULE, &later)).starts_with("The flusher starts at 4.58 MiB"),
            "{}",
            room(&first_finding(&RULE, &later))
        );
    }

    /// The starved cgroups with programs that write by calls. Their page cache grows this fast, bytes per second.
    fn calls(growth: f64) -> Fixture {
        (0..8).fold(starved_budget(), |fixture, writer| {
            let path = format!("/bench.slice/writer-{writer}.scope");
            let fixture = fixture.process("mapwriter", 2000 + writer, &path, |t, row| {
                row.wchar = floodline_testkit::grows(t, 0, 1e6);
                row.write_bytes = floodline_testkit::grows(t, 0, 1e6);
            });
            fixture.cgroup(&path, move |t, row| row.file = floodline_testkit::grows(t, mib(1.0), growth))
        })
    }

    #[test]
    fn throttled_writers_on_idle_disks_are_critical_without_amplification() {
        let idle = |t: f64, row: &mut floodline_record::sample::DiskRow| {
            row.io_time = Some(floodline_testkit::secs(600.0 + 0.1 * t));
        };
        let idle = calls(1e6).disk("sdb", idle);
        check_rule(&RULE, &idle, "critical: vm.dirty_bytes = 100 MiB leaves 8 cgroups dirty limits as small as");
        assert!(
            first_finding(&RULE, &idle).summary.contains("paused while the disks are idle"),
            "{}",
            first_finding(&RULE, &idle).summary
        );
    }

    #[test]
    fn calls_that_dirty_more_than_is_cached_write_the_same_pages_again() {
        let rings = first_finding(&RULE, &calls(0.0));
        assert!(rings.summary.contains("the same pages are written again and again"), "{}", rings.summary);
        assert!(rings.cause.contains("the programs write the same pages again and again"), "{}", rings.cause);
        assert!(rings.evidence.iter().any(|row| row.name.starts_with("Page cache of them")), "{:?}", rings.evidence);
        // At a limit the kernel evicts: new pages come in the place of old ones.
        let at_limit = (0..8).fold(calls(0.0), |fixture, writer| {
            let path = format!("/bench.slice/writer-{writer}.scope");
            fixture.cgroup(&path, |t, row| {
                row.file = Some(floodline_record::units::Bytes(mib(1.0)));
                row.events_max = Some(floodline_record::units::Count(t as u64));
            })
        });
        assert!(!first_finding(&RULE, &at_limit).summary.contains("again and again"));
    }

    #[test]
    fn what_is_new_in_the_page_cache_is_not_written_again() {
        // `splice` hands nothing to a write call and takes hardly a fault.
        let spliced = |growth: f64| {
            (0..8).fold(starved_budget(), |fixture, writer| {
                let path = format!("/bench.slice/writer-{writer}.scope");
                let fixture = fixture.process("mapwriter", 2000 + writer, &path, |t, row| {
                    row.wchar = floodline_testkit::grows(t, 0, 0.0);
                    row.minflt = floodline_testkit::grows(t, 0, 3.0);
                    row.write_bytes = floodline_testkit::grows(t, 0, 1.2e6);
                    row.read_bytes = floodline_testkit::grows(t, 0, 0.0);
                });
                fixture.cgroup(&path, move |t, row| row.file = floodline_testkit::grows(t, mib(1.0), growth))
            })
        };
        assert!(first_finding(&RULE, &spliced(0.0)).summary.contains("again and again"));
        assert!(!first_finding(&RULE, &spliced(1.2e6)).summary.contains("again and again"));
        // What is new is told beside what was handed to write calls, which is nothing.
        let told = |growth: f64, name: &str| {
            let rows = first_finding(&RULE, &spliced(growth)).evidence;
            rows.into_iter().find(|row| row.name == name).map(|row| row.value)
        };
        assert_eq!(told(1.2e6, "They handed to write calls"), Some(Value::Integer(0)));
        assert_eq!(told(0.0, "New in their page cache"), None);
        let Some(Value::Integer(new)) = told(1.2e6, "New in their page cache") else { panic!("it is told") };
        assert!((new as f64 / (8.0 * 1.2e6 * 9.0) - 1.0).abs() < 0.2, "{new}");
    }

    #[test]
    fn a_store_that_waits_is_a_fault_too() {
        use floodline_testkit::grows;
        // Before 6.0 stores that wait count as major faults: 4 KiB each, which no folio amplifies.
        let pages = |major: f64| {
            (0..8).fold(starved_budget(), |fixture, writer| {
                let path = format!("/bench.slice/writer-{writer}.scope");
                fixture.process("mapwriter", 2000 + writer, &path, move |t, row| {
                    row.write_bytes = grows(t, 0, 1.2e6);
                    row.wchar = grows(t, 0, 100.0);
                    row.minflt = grows(t, 0, 60.0);
                    row.majflt = grows(t, 0, major);
                })
            })
        };
        assert!(first_finding(&RULE, &pages(0.0)).summary.contains("the same pages are written again and again"));
        let waits = pages(240.0);
        let finding = first_finding(&RULE, &waits);
        assert!(!finding.summary.contains("again and again"), "{}", finding.summary);
    }

    #[test]
    fn a_trace_measures_how_often_the_same_folios_are_dirtied() {
        use crate::diagnose::dirtying::tests::dirtied;
        use crate::diagnose::flusher::tests::flushed;
        let window = starved_budget().window();
        let is_writer = |entity: &&Entity| entity.label() == "/bench.slice/writer-3.scope";
        let ino = window.entities.values().find(is_writer).and_then(|entity| match entity {
            Entity::Cgroup { ino, .. } => *ino,
            _ => None,
        });
        let ino = ino.unwrap();
        let journal = |redirtied| dirtied((2003, ino, 131, "/journal-3", 100 << 20, redirtied));
        let rounds = || flushed(("8:16", ino, "background", 400, 5000));
        let traced = |redirtied| starved_budget().traced(&["bytes", "flusher"], vec![journal(redirtied), rounds()]);
        let confirmed = first_finding(&RULE, &traced(95 << 20)).confirmed.unwrap();
        assert!(
            confirmed.starts_with("95 % of the 100 MiB that their tasks dirtied had been dirty before"),
            "{confirmed}"
        );
        assert!(
            confirmed.contains("the most by dd[2003] (100 %), in ") && confirmed.contains("times a second"),
            "{confirmed}"
        );
        assert!(
            first_finding(&RULE, &traced(95 << 20)).cause.contains("each byte was dirtied 20.0 times"),
            "{}",
            first_finding(&RULE, &traced(95 << 20)).cause
        );
        // A budget without amplification: the flusher alone.
        let once = first_finding(&RULE, &traced(0)).confirmed.unwrap();
        assert!(once.starts_with("The flusher ran"), "{once}");
        assert_eq!(first_finding(&RULE, &starved_budget()).confirmed, None);
    }

    #[test]
    fn bytes_of_a_fault_are_told_as_they_were_measured() {
        use floodline_testkit::{grows, mib_pages};
        // Three MiB for each fault, more than the largest folio.
        let host = Fixture::healthy()
            .hierarchy(floodline_record::id::Hierarchy::V1Memory)
            .thresholds((0, mib(40.0), 0, mib(10.0)), mib(40.0) / 4096, mib(10.0) / 4096)
            .host(|t, row| {
                row.nr_dirty = Some(mib_pages(9.0));
                row.nr_dirtied = Some(mib_pages(30.0 * t));
            })
            .disk("sda", |t, row| row.written = grows(t, 0, 30.0 * 1_048_576.0))
            .process("mapwriter", 2000, "/", |t, row| {
                row.write_bytes = grows(t, 0, 30.0 * 1_048_576.0);
                row.wchar = grows(t, 0, 100.0);
                row.minflt = grows(t, 0, 10.0);
            });
        let finding = first_finding(&RULE, &host);
        let row = finding.evidence.iter().find(|row| row.name == "Dirtied per page fault").expect("a row");
        assert_eq!(row.value, Value::Integer(mib(3.0)), "{}", finding.summary);
    }

    #[test]
    fn pauses_of_other_tasks_for_these_data_are_told_as_such() {
        use crate::diagnose::throttle::tests::throttled;
        use floodline_record::record::What;
        use floodline_record::traced::throttle::Domain;
        let window = starved_budget().window();
        let is_writer = |entity: &&Entity| entity.label() == "/bench.slice/writer-3.scope";
        let its = window.entities.values().find(is_writer).expect("a cgroup");
        let Entity::Cgroup { ino: Some(ino), .. } = its else { panic!("it has a number") };
        // A task of the root waits for data of the cgroup, and for its own.
        let pause = |of: u64, ms: u64| match throttled((1, "8:16", Domain::Memcg, 1, ms, ms)) {
            What::Throttled(pause) => What::Throttled(Box::new(Throttled { wb_cgroup_ino: of, ..*pause })),
            other => other,
        };
        let host = starved_budget().traced(&["throttle"], vec![pause(*ino, 300), pause(1, 5000)]);
        let rows = first_finding(&RULE, &host).evidence;
        let paused = rows.iter().find(|row| row.name.starts_with("Paused in dirty throttling")).expect("a row");
        assert_eq!(
            (paused.name.as_str(), &paused.value),
            ("Paused in dirty throttling for their data, /", &Value::Decimal(0.3))
        );
    }

    #[test]
    fn one_look_warns_and_does_not_judge() {
        check_rule(&RULE, &starved_budget().one_look(), "warning: vm.dirty_bytes = 100 MiB leaves 8 cgroups");
    }

    #[test]
    fn without_its_inputs_it_says_so() {
        let denied = || Cause::PermissionDenied { need: "root".into() };
        let no_settings = starved_budget().without(Source::SysctlVm, denied());
        check_rule(&RULE, &no_settings, "not checked: /proc/sys/vm/NAME");
        check_rule(&RULE, &Fixture::healthy().facts(|facts| facts.cgroups = Default::default()), "clear:");
    }
}
