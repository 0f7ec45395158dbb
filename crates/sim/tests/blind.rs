// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blind set: machines whose scenarios were written without regard to the rules, each with its true condition.
//! One table shows, for each machine and kernel, the true condition, the first finding, and false alarms. The known
//! misses are in `blind/misses.txt`. A run that misses and is not listed fails the test, and so does a listed run
//! that no longer misses. The list shrinks, unless the model comes nearer to a kernel and shows a miss of the rules. The first finding is the same if `memory.stat` and `io.stat` are read
//! every 2 s only, as with `--stat-every 2s`. The known exceptions are in `blind/few-reads.txt`, which only shrinks too.

// The table is the purpose of the test.
#![allow(clippy::print_stdout)]

mod machines;

use floodline_analysis::diagnose::stretches::Stretches;
use floodline_analysis::report::{Report, Severity};
use floodline_analysis::run::verdict::{is_sick, wrong};
use floodline_kernel::FLUSH_TIME;
use floodline_record::record::{Record, Sink};
use floodline_record::version::KernelVersion;
use floodline_scenario::{Expect, Scenario};
use floodline_sim::{Options, simulate};
use floodline_testkit::sparse::Sparse;
use machines::{
    EIGHTEENTH_ROUND, EIGHTH_ROUND, ELEVENTH_ROUND, FIFTEENTH_ROUND, FIFTH_ROUND, FORTIETH_ROUND, FOURTEENTH_ROUND,
    FOURTH_ROUND, MACHINES, Machine, NINETEENTH_ROUND, NINTH_ROUND, SECOND_SET, SEVENTEENTH_ROUND, SEVENTH_ROUND,
    SIXTEENTH_ROUND, SIXTH_ROUND, TABLES, TENTH_ROUND, THIRD_ROUND, THIRTEENTH_ROUND, THIRTIETH_ROUND,
    THIRTYEIGHTH_ROUND, THIRTYFIFTH_ROUND, THIRTYFIRST_ROUND, THIRTYFOURTH_ROUND, THIRTYNINTH_ROUND,
    THIRTYSECOND_ROUND, THIRTYSEVENTH_ROUND, THIRTYSIXTH_ROUND, THIRTYTHIRD_ROUND, TWELFTH_ROUND, TWENTIETH_MORE,
    TWENTIETH_ROUND, TWENTYEIGHTH_ROUND, TWENTYFIFTH_ROUND, TWENTYFIRST_ROUND, TWENTYFOURTH_ROUND, TWENTYNINTH_ROUND,
    TWENTYSECOND_ROUND, TWENTYSEVENTH_ROUND, TWENTYSIXTH_ROUND, TWENTYTHIRD_ROUND, VARIATIONS, lines, machines, option,
    variants,
};
use std::collections::{BTreeMap, BTreeSet};

const ON_KERNELS: &str = include_str!("../../../scenarios/blind/on-kernels.txt");
const MISSES: &str = include_str!("blind/misses.txt");
const FEW_READS: &str = include_str!("blind/few-reads.txt");

/// Diagnoses a machine as `doctor` diagnoses a recorded run: from the start of the workload to its end. The second report is of
/// the same run with `memory.stat` and `io.stat` in few samples.
fn report(scenario: &Scenario, machine: &Machine) -> (Report, Report) {
    let kernel: KernelVersion = machine.kernel.parse().expect("a version");
    // A host that is diagnosed has run for a while, so its filesystems are in use.
    let mut scenario = scenario.clone();
    scenario.machine.mounts.values_mut().for_each(|mount| mount.in_use = true);
    let options = Options::new(machine.variant, kernel);
    let options = Options { every: machine.every().unwrap_or(options.every), ..options };
    let (mut stretches, mut of_few) = (Stretches::with_whole(), Stretches::with_whole());
    let mut sparse = Sparse::new(usize::try_from(FLUSH_TIME.0.div_ceil(options.every.0)).expect("a small number"));
    let take = |mut record: Record| {
        let Ok(()) = stretches.record(&record);
        sparse.thin(&mut record);
        let Ok(()) = of_few.record(&record);
        Ok(())
    };
    simulate(&scenario, &options, take, |_| true).unwrap_or_else(|error| panic!("{}: {error}", machine.name()));
    let (report, window) = stretches.finish_whole();
    let failed = floodline_analysis::run::misses(&Expect::default(), &window, &BTreeMap::new(), &report.findings);
    assert!(failed.is_empty(), "{}: {failed:?}", machine.name());
    (report, of_few.finish_whole().0)
}

#[test]
fn each_machine_is_told_what_is_the_matter_first_and_nothing_else() {
    judge(MACHINES);
}

#[test]
fn each_machine_of_the_second_set_is_told_what_is_the_matter_first() {
    judge(SECOND_SET);
}

#[test]
fn each_machine_of_the_third_round_is_told_what_is_the_matter_first() {
    judge(THIRD_ROUND);
}

#[test]
fn each_machine_of_the_fourth_round_is_told_what_is_the_matter_first() {
    judge(FOURTH_ROUND);
}

#[test]
fn each_machine_of_the_fifth_round_is_told_what_is_the_matter_first() {
    judge(FIFTH_ROUND);
}

#[test]
fn each_machine_of_the_sixth_round_is_told_what_is_the_matter_first() {
    judge(SIXTH_ROUND);
}

#[test]
fn each_machine_of_the_seventh_round_is_told_what_is_the_matter_first() {
    judge(SEVENTH_ROUND);
}

#[test]
fn each_machine_of_the_eighth_round_is_told_what_is_the_matter_first() {
    judge(EIGHTH_ROUND);
}

#[test]
fn each_machine_of_the_ninth_round_is_told_what_is_the_matter_first() {
    judge(NINTH_ROUND);
}

#[test]
fn each_machine_of_the_tenth_round_is_told_what_is_the_matter_first() {
    judge(TENTH_ROUND);
}

#[test]
fn each_machine_of_the_eleventh_round_is_told_what_is_the_matter_first() {
    judge(ELEVENTH_ROUND);
}

#[test]
fn each_machine_of_the_twelfth_round_is_told_what_is_the_matter_first() {
    judge(TWELFTH_ROUND);
}

#[test]
fn each_machine_of_the_thirteenth_round_is_told_what_is_the_matter_first() {
    judge(THIRTEENTH_ROUND);
}

#[test]
fn each_machine_of_the_fourteenth_round_is_told_what_is_the_matter_first() {
    judge(FOURTEENTH_ROUND);
}

#[test]
fn each_machine_of_the_fifteenth_round_is_told_what_is_the_matter_first() {
    judge(FIFTEENTH_ROUND);
}

#[test]
fn each_machine_of_the_sixteenth_round_is_told_what_is_the_matter_first() {
    judge(SIXTEENTH_ROUND);
}

#[test]
fn each_machine_of_the_seventeenth_round_is_told_what_is_the_matter_first() {
    judge(SEVENTEENTH_ROUND);
}

#[test]
fn each_machine_of_the_eighteenth_round_is_told_what_is_the_matter_first() {
    judge(EIGHTEENTH_ROUND);
}

#[test]
fn each_machine_of_the_nineteenth_round_is_told_what_is_the_matter_first() {
    judge(NINETEENTH_ROUND);
}

#[test]
fn each_machine_of_the_twentieth_round_is_told_what_is_the_matter_first() {
    judge(TWENTIETH_ROUND);
}

#[test]
fn each_machine_of_wide_shapes_is_told_what_is_the_matter_first() {
    judge(TWENTIETH_MORE);
}

#[test]
fn each_machine_of_the_twenty_first_round_is_told_what_is_the_matter_first() {
    judge(TWENTYFIRST_ROUND);
}

#[test]
fn each_variation_of_a_missed_machine_is_told_what_is_the_matter_first() {
    judge(VARIATIONS);
}

#[test]
fn each_machine_of_the_twenty_second_round_is_told_what_is_the_matter_first() {
    judge(TWENTYSECOND_ROUND);
}

#[test]
fn each_machine_of_the_twenty_third_round_is_told_what_is_the_matter_first() {
    judge(TWENTYTHIRD_ROUND);
}

#[test]
fn each_machine_of_the_twenty_fourth_round_is_told_what_is_the_matter_first() {
    judge(TWENTYFOURTH_ROUND);
}

#[test]
fn each_machine_of_the_twenty_fifth_round_is_told_what_is_the_matter_first() {
    judge(TWENTYFIFTH_ROUND);
}

#[test]
fn each_machine_of_the_twenty_sixth_round_is_told_what_is_the_matter_first() {
    judge(TWENTYSIXTH_ROUND);
}

#[test]
fn each_machine_of_the_twenty_seventh_round_is_told_what_is_the_matter_first() {
    judge(TWENTYSEVENTH_ROUND);
}

#[test]
fn each_machine_of_the_twenty_eighth_round_is_told_what_is_the_matter_first() {
    judge(TWENTYEIGHTH_ROUND);
}

#[test]
fn each_machine_of_the_twenty_ninth_round_is_told_what_is_the_matter_first() {
    judge(TWENTYNINTH_ROUND);
}

#[test]
fn each_machine_of_the_thirtieth_round_is_told_what_is_the_matter_first() {
    judge(THIRTIETH_ROUND);
}

#[test]
fn each_machine_of_the_thirty_first_round_is_told_what_is_the_matter_first() {
    judge(THIRTYFIRST_ROUND);
}

#[test]
fn each_machine_of_the_thirty_second_round_is_told_what_is_the_matter_first() {
    judge(THIRTYSECOND_ROUND);
}

#[test]
fn each_machine_of_the_thirty_third_round_is_told_what_is_the_matter_first() {
    judge(THIRTYTHIRD_ROUND);
}

#[test]
fn each_machine_of_the_thirty_fourth_round_is_told_what_is_the_matter_first() {
    judge(THIRTYFOURTH_ROUND);
}

#[test]
fn each_machine_of_the_thirty_fifth_round_is_told_what_is_the_matter_first() {
    judge(THIRTYFIFTH_ROUND);
}

#[test]
fn each_machine_of_the_thirty_sixth_round_is_told_what_is_the_matter_first() {
    judge(THIRTYSIXTH_ROUND);
}

#[test]
fn each_machine_of_the_thirty_seventh_round_is_told_what_is_the_matter_first() {
    judge(THIRTYSEVENTH_ROUND);
}

#[test]
fn each_machine_of_the_thirty_eighth_round_is_told_what_is_the_matter_first() {
    judge(THIRTYEIGHTH_ROUND);
}

#[test]
fn each_machine_of_the_thirty_ninth_round_is_told_what_is_the_matter_first() {
    judge(THIRTYNINTH_ROUND);
}

#[test]
fn each_machine_of_the_fortieth_round_is_told_what_is_the_matter_first() {
    judge(FORTIETH_ROUND);
}

#[test]
fn cgroups_that_write_one_file_in_turn_are_named_without_a_trace() {
    let (file, variant, kernel) = ("sixth-budgets", "four-turns", "6.12.43");
    let machine = Machine { file, variant, kernel, line: "every=1s" };
    let (report, _) = report(&variants()[&(file, variant.to_owned())], &machine);
    let first = report.findings.first().map(|finding| (finding.rule, finding.severity));
    assert_eq!(first, Some(("foreign-inode-thrash", Severity::Warning)), "{:#?}", report.findings);
}

/// Diagnoses each machine of a table, prints the table, and compares the wrong verdicts with the known misses.
fn judge(table: &'static str) {
    let variants = variants();
    let (mut sick, mut well, mut right, mut quiet) = (0, 0, 0, 0);
    let mut missed = BTreeSet::new();
    let mut other_of_few = Vec::new();
    println!("{:<58} {:<30} {:<42} verdict", "machine", "truth", "found first");
    let machines = machines(table);
    let names: BTreeSet<String> = machines.iter().map(Machine::name).collect();
    for machine in &machines {
        let scenario = &variants[&(machine.file, machine.variant.to_owned())];
        let expect = &scenario.expect;
        let (report, of_few) = report(scenario, machine);
        let first_rule = |report: &Report| report.findings.first().map(|finding| finding.rule);
        if first_rule(&report) != first_rule(&of_few) {
            other_of_few.push((machine.name(), first_rule(&report), first_rule(&of_few)));
        }
        let findings = &report.findings;
        let mut wrong = wrong(expect, option(machine.line, "or"), findings);
        if !is_sick(expect) && report.unexplained.is_some() {
            wrong.push("waits without a cause".to_owned());
        }
        let truth = expect.found.iter().flatten().next().map_or("well", String::as_str);
        let first = findings.first().map(|finding| format!("{} ({})", finding.rule, finding.severity.name()));
        let verdict = if wrong.is_empty() { "right".to_owned() } else { wrong.join(", ") };
        println!("{:<58} {truth:<30} {:<42} {verdict}", machine.name(), first.as_deref().unwrap_or("nothing"));
        let (all, good) = if is_sick(expect) { (&mut sick, &mut right) } else { (&mut well, &mut quiet) };
        *all += 1;
        *good += u32::from(wrong.is_empty());
        if !wrong.is_empty() {
            missed.insert(machine.name());
            for finding in findings {
                println!("    {}: {}: {}", finding.severity.name(), finding.rule, finding.summary);
            }
            for ruled_out in &report.ruled_out {
                if expect.found.iter().flatten().any(|rule| rule == ruled_out.rule) {
                    println!("    ruled out: {}: {}", ruled_out.rule, ruled_out.reason);
                }
            }
        }
    }
    println!("sick: {right} of {sick} right first; well or cured: {quiet} of {well} without a false alarm");
    for (name, of_all, of_few) in &other_of_few {
        println!("{name}: {of_all:?}, and with few readings of cgroups {of_few:?}");
    }
    let other: BTreeSet<String> = other_of_few.into_iter().map(|(name, ..)| name).collect();
    let listed: BTreeSet<String> = lines(FEW_READS).map(str::to_owned).filter(|name| names.contains(name)).collect();
    assert_eq!(
        other, listed,
        "machines with another first finding with few readings of cgroups, and blind/few-reads.txt"
    );
    let known: BTreeSet<String> = lines(MISSES).map(str::to_owned).filter(|name| names.contains(name)).collect();
    let new: Vec<_> = missed.difference(&known).collect();
    let mended: Vec<_> = known.difference(&missed).collect();
    assert!(new.is_empty(), "missed, and not among the known misses: {new:#?}");
    assert!(mended.is_empty(), "right now; remove them from blind/misses.txt: {mended:#?}");
}

#[test]
fn every_variant_of_the_blind_set_is_a_machine_of_the_table() {
    let of_line = |line: &'static str| {
        let mut words = line.split_whitespace();
        (words.next().expect("a file"), words.next().expect("a variant").to_owned())
    };
    let listed: BTreeSet<_> = TABLES.iter().copied().flat_map(lines).map(of_line).collect();
    let there: BTreeSet<_> = variants().into_keys().collect();
    assert_eq!(there.difference(&listed).collect::<Vec<_>>(), Vec::<&(&str, String)>::new());
    assert_eq!(listed.difference(&there).collect::<Vec<_>>(), Vec::<&(&str, String)>::new());
}

#[test]
fn every_machine_that_runs_on_real_kernels_is_one_of_the_set() {
    let variants = variants();
    let mut counts = [0, 0];
    for line in lines(ON_KERNELS) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [file, variant, kernel] = words[..] else { panic!("{line}") };
        let scenario = variants.iter().find(|((name, of), _)| *name == file && of == variant);
        let (_, scenario) = scenario.unwrap_or_else(|| panic!("no machine is called {line}"));
        // A kernel series, or a release of one that lacks a later fix.
        assert!(matches!(kernel.split('.').count(), 2 | 3) && kernel.parse::<KernelVersion>().is_ok(), "{line}");
        counts[usize::from(is_sick(&scenario.expect))] += 1;
    }
    let [well, sick] = counts;
    assert!(well >= 4 && sick >= 8, "{well} well, {sick} sick");
}
