// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns a window into a report: every rule returns found, clear or not checked. The report holds these verdicts in
//! order of severity. Does not depend on where the window came from.
//!
//! Rules read a [`Derived`], in which devices, thresholds, writers, budgets and waits are computed once. They write
//! evidence with the constructors of [`crate::report::Evidence`], and return missing inputs with [`missing`].

pub mod asleep;
pub(crate) mod at_limit;
pub mod attended;
mod begun;
pub mod burst;
pub mod cgroup;
mod cleaned;
pub mod coarse;
pub mod crowded;
pub mod cycle;
pub mod database;
pub mod derived;
pub mod device;
pub mod dirty;
pub mod dirtying;
pub mod elsewhere;
mod evidence;
pub mod flow;
pub mod flusher;
pub mod heirs;
pub mod holes;
pub mod limits;
pub mod load;
pub mod loops;
pub mod missing;
pub mod moved_inodes;
pub mod placed;
pub mod released;
pub mod rules;
pub mod settings;
pub mod short_limit;
pub mod stretches;
pub mod strict;
pub mod switches;
pub mod synced;
#[cfg(test)]
mod template;
pub mod throttle;
pub mod unmount;
pub mod unseen;
pub mod waiting;
pub mod writer;

use crate::report::{Finding, GapLine, HostSummary, NotChecked, Report, RuledOut, SCHEMA, Severity, Symptom};
use crate::{plan, symptom};
use derived::Derived;
use floodline_record::facts::CgroupMode;
use floodline_record::gap::Gap;
use floodline_record::id::Entity;
use floodline_record::window::Window;
use rules::RULES;

/// One rule. Its manual page is its documentation: `floodline explain NAME` prints it.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Name of the condition, in kebab case, e.g. `starved-dirty-budget`.
    pub name: &'static str,
    /// One line: what a finding of it means.
    pub summary: &'static str,
    /// The manual page in Markdown: What it means, Evidence, Why it happens, What to do, Kernel references.
    pub manual: &'static str,
    /// Rules that this one explains. Their findings of the same event are then shown as "also seen".
    pub explains: &'static [&'static str],
    /// Judges what is derived from a window.
    pub check: fn(&Derived<'_>) -> Verdict,
}

/// Verdict of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The condition holds. Usually one finding; several when it holds for unrelated things.
    Found(Vec<Finding>),
    /// The condition does not hold. Carries the reading that shows it, as half a sentence.
    Clear(String),
    /// It could not be checked.
    NotChecked(Vec<Gap>),
}

/// Returns the rule with this name.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// Runs all rules over a window, or only the named ones.
pub fn diagnose(window: &Window, only: Option<&[&str]>) -> Report {
    let derived = &Derived::of(window);
    let mut report = Report {
        schema: SCHEMA,
        host: host_summary(window),
        window_s: window.seconds(),
        findings: Vec::new(),
        ruled_out: Vec::new(),
        not_checked: Vec::new(),
        rules_not_run: only.map_or(0, |names| RULES.iter().filter(|rule| !names.contains(&rule.name)).count()),
        gaps: gap_lines(&window.gaps),
        plan: None,
        symptom: Symptom::default(),
        unexplained: None,
        unseen: Vec::new(),
        observation: holes::observation(&window.holes),
        stretch: None,
    };
    for rule in RULES.iter().filter(|rule| only.is_none_or(|names| names.contains(&rule.name))) {
        match judged(derived, rule) {
            Verdict::Found(findings) => report.findings.extend(findings),
            Verdict::Clear(reason) => report.ruled_out.push(RuledOut { rule: rule.name, reason }),
            Verdict::NotChecked(gaps) => {
                report.not_checked.push(NotChecked { rule: rule.name, gaps: gap_lines(&gaps) });
            }
        }
    }
    // Stable: equal severities stay in the order of the catalogue, causes before symptoms. A setting that does harm causes what is
    // seen on the disk.
    let is_harm = |finding: &Finding| {
        finding.severity == Severity::Critical || finding.severity > Severity::Info && !finding.devices.is_empty()
    };
    let is_setting =
        |finding: &Finding| is_harm(finding) && finding.rule == rules::contradictory_dirty_settings::RULE.name;
    report.findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), !is_setting(finding)));
    by_harm(&mut report.findings);
    explain(&mut report.findings);
    let first = report.findings.first().filter(|finding| finding.severity > Severity::Info);
    let (about, meanwhile) = first.map_or((&[][..], &[][..]), |finding| (&finding.devices, &finding.spans));
    report.symptom = symptom::symptom(derived, about, meanwhile);
    if only.is_none() && report.findings.iter().all(|finding| finding.severity == Severity::Info) {
        // A finding that is no harm may be the reason of waits, such as a limit that works as it was meant.
        let is_about_waits = report.findings.iter().any(|finding| finding.waited_s.is_some());
        let beside_idle_disks = || waiting::beside_idle_disks(derived).filter(|_| !is_about_waits);
        report.unexplained = waiting::unexplained(derived).or_else(beside_idle_disks);
    }
    report.unseen = unseen::unseen(derived, &report.ruled_out);
    report.plan = plan::merge_for(window, &report.findings);
    if let (Some(plan), Some(facts)) = (&mut report.plan, &window.facts) {
        plan::name_files(plan, &facts.sysctl_lines);
    }
    report
}

/// Returns the findings of the named rules alone, worst first: no symptoms, no plan, no gaps. For many windows at once.
pub fn findings(derived: &Derived<'_>, only: &[&str]) -> Vec<Finding> {
    let mut found = Vec::new();
    for rule in RULES.iter().filter(|rule| only.contains(&rule.name)) {
        if let Verdict::Found(findings) = judged(derived, rule) {
            found.extend(findings);
        }
    }
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

/// Returns the first of the named rules that has a critical finding, in the order of the catalogue. The rules after it do not run.
pub fn first_critical(derived: &Derived<'_>, only: &[&str]) -> Option<&'static str> {
    let is_critical = |rule: &&Rule| match judged(derived, rule) {
        Verdict::Found(findings) => findings.iter().any(|finding| finding.severity == Severity::Critical),
        Verdict::Clear(_) | Verdict::NotChecked(_) => false,
    };
    RULES.iter().filter(|rule| only.contains(&rule.name)).find(is_critical).map(|rule| rule.name)
}

/// The verdict of a rule, as far as the observation allows one.
fn judged(derived: &Derived<'_>, rule: &Rule) -> Verdict {
    let verdict = cycle::judged(derived, rule.name, (rule.check)(derived));
    let verdict = coarse::judged(derived, rule.name, verdict);
    holes::judged(derived.window, rule.name, verdict)
}

/// Times that tasks must have waited for one finding rather than for another, for it to come first.
const MUCH_MORE: f64 = 3.0;

/// Moves a finding before those of its severity for which tasks waited much less. Of findings that may be one event, the
/// cause stays first: those where one rule explains the other, unless they are about different disks.
fn by_harm(findings: &mut [Finding]) {
    let yields = |one: &Finding, other: &Finding| {
        let explains = |cause: &str, effect: &str| rule(cause).is_some_and(|rule| rule.explains.contains(&effect));
        let is_related = explains(one.rule, other.rule) || explains(other.rule, one.rule);
        let shares_a_disk = one.devices.is_empty()
            || other.devices.is_empty()
            || one.devices.iter().any(|disk| other.devices.contains(disk));
        let is_much_less = one.waited_s.zip(other.waited_s).is_some_and(|(less, more)| more > MUCH_MORE * less);
        one.severity == other.severity && is_much_less && !(is_related && shares_a_disk)
    };
    // What it goes past may have no figure, but is not a cause of it.
    let may_pass = |one: &Finding, other: &Finding| {
        let is_cause = rule(one.rule).is_some_and(|rule| rule.explains.contains(&other.rule));
        let shares_a_disk = one.devices.is_empty()
            || other.devices.is_empty()
            || one.devices.iter().any(|disk| other.devices.contains(disk));
        yields(one, other) || one.severity == other.severity && one.waited_s.is_none() && !(is_cause && shares_a_disk)
    };
    for at in 1..findings.len() {
        let passed = findings[..at].iter().rev().take_while(|one| may_pass(one, &findings[at])).count();
        let to = findings[at - passed..at].iter().position(|one| yields(one, &findings[at]));
        if let Some(to) = to {
            findings[at - passed + to..=at].rotate_right(1);
        }
    }
}

/// Times that a burst is written faster than limits allow, for it to be of other writers.
const FASTER: f64 = 2.0;

/// Whether a finding's burst was written much faster than all limits together allow that the rule of a cause reports for its disks. It is
/// then not the data of what they hold.
fn is_faster(findings: &[Finding], cause: &Finding, burst: &Finding) -> bool {
    let shares_a_disk = |one: &&Finding| one.devices.iter().any(|disk| burst.devices.contains(disk));
    let of_rule = findings.iter().filter(|one| one.rule == cause.rule).filter(shares_a_disk);
    // Limits of reads and of requests hold no bytes that are written.
    let limits: f64 = of_rule.filter_map(|one| one.held_to).sum();
    cause.held_to.is_some() && burst.written_at.is_some_and(|rate| rate > FASTER * limits)
}

/// Marks the findings that a worse or equal one explains, by the precedence that the catalogue declares. Moves
/// explained findings behind their causes.
fn explain(findings: &mut [Finding]) {
    for at in 1..findings.len() {
        let (before, rest) = findings.split_at_mut(at);
        let explains = |cause: &&Finding| {
            let rules = rule(cause.rule).map_or(&[][..], |rule| rule.explains);
            let of_one_disk = cause.devices.is_empty()
                || rest[0].devices.is_empty()
                || cause.devices.iter().any(|disk| rest[0].devices.contains(disk));
            let counts = cause.explained_by.is_none() && cause.severity >= Severity::Warning;
            counts && of_one_disk && rules.contains(&rest[0].rule) && !is_faster(before, cause, &rest[0])
        };
        rest[0].explained_by = before.iter().find(explains).map(|cause| cause.rule);
    }
    findings.sort_by_key(|finding| finding.explained_by.is_some());
}

fn host_summary(window: &Window) -> HostSummary {
    let count = |wanted: fn(&Entity) -> bool| window.entities.values().filter(|entity| wanted(entity)).count() as u64;
    let facts = window.facts.as_ref();
    HostSummary {
        hostname: facts.map(|facts| facts.hostname.to_string()).unwrap_or_default(),
        // A release is text from outside like any other.
        kernel: facts
            .map(|facts| floodline_record::name::Name::from_escaped(&facts.kernel_release).to_string())
            .unwrap_or_default(),
        mem_total_bytes: facts.and_then(|facts| facts.mem_total).or(window.host.last.mem_total).map(|bytes| bytes.0),
        cpus_possible: facts.and_then(|facts| facts.cpus_possible),
        lru_gen: facts.and_then(|facts| facts.lru_gen),
        cgroup_mode: match facts.map(|facts| facts.cgroups.mode).unwrap_or_default() {
            CgroupMode::None => "none",
            CgroupMode::V1 => "v1",
            CgroupMode::V2 => "v2",
            CgroupMode::Hybrid => "hybrid",
        }
        .to_owned(),
        cgroups: count(|entity| matches!(entity, Entity::Cgroup { .. })),
        processes: count(|entity| matches!(entity, Entity::Process { .. })),
        samples: window.samples,
    }
}

/// Details named in one line; more are only counted.
const DETAILS_SHOWN: usize = 3;

/// Returns the lines that show the gaps. Gaps of one source and cause share a line, with their details and a count.
fn gap_lines(gaps: &[Gap]) -> Vec<GapLine> {
    let mut merged: Vec<(Gap, Vec<&str>)> = Vec::new();
    for gap in gaps {
        let detail = gap.detail.as_deref();
        match merged.iter_mut().find(|(other, _)| other.source == gap.source && other.cause == gap.cause) {
            Some((other, details)) => {
                other.times = other.times.max(1).saturating_add(gap.times.max(1));
                details.extend(detail.filter(|detail| !details.contains(detail) && details.len() <= DETAILS_SHOWN));
            }
            None => merged.push((gap.clone(), detail.into_iter().collect())),
        }
    }
    let line = |(gap, details): (Gap, Vec<&str>)| {
        let more = if details.len() > DETAILS_SHOWN { ", …" } else { "" };
        let named = details.iter().take(DETAILS_SHOWN).copied().collect::<Vec<_>>().join(", ");
        GapLine::from(&Gap { detail: (!named.is_empty()).then(|| format!("{named}{more}").into()), ..gap })
    };
    merged.into_iter().map(line).collect()
}

/// Verdict of a rule on a fixture, as `severity: summary`, `clear: reason` or `not checked: gap`, one line each. For
/// tests of rules: `expect` is the beginning of the first line.
#[cfg(test)]
pub(crate) fn check_rule(rule: &Rule, fixture: &floodline_testkit::Fixture, expect: &str) {
    let said = match (rule.check)(&Derived::of(&fixture.window())) {
        Verdict::Found(findings) => {
            for finding in findings.iter().filter(|finding| finding.plan.is_empty()) {
                assert!(
                    !finding.brief.expect.is_empty(),
                    "rule {} says nothing that helps: {}",
                    rule.name,
                    finding.summary
                );
            }
            let line = |finding: &Finding| format!("{}: {}", finding.severity.name(), finding.summary);
            findings.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        Verdict::Clear(reason) => format!("clear: {reason}"),
        Verdict::NotChecked(gaps) => {
            gaps.iter().map(|gap| format!("not checked: {gap}")).collect::<Vec<_>>().join("\n")
        }
    };
    assert!(said.starts_with(expect), "rule {} said\n{said}\ninstead of\n{expect}", rule.name);
}

/// The first finding of a rule on a fixture that triggers it.
#[cfg(test)]
pub(crate) fn first_finding(rule: &Rule, fixture: &floodline_testkit::Fixture) -> Finding {
    match (rule.check)(&Derived::of(&fixture.window())) {
        Verdict::Found(mut findings) => findings.remove(0),
        other => panic!("rule {} said {other:?}", rule.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_record::gap::{Cause, Source};
    use floodline_record::metric::Row;
    use floodline_record::record::Record;
    use floodline_record::sample::{HostRow, Table, TableVisitorMut};
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::INCIDENTS;

    fn findings(report: &Report) -> String {
        let line = |finding: &Finding| format!("{}: {}: {}", finding.severity.name(), finding.rule, finding.summary);
        report.findings.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_incident_is_named_first_and_nothing_else_is_as_bad() {
        for incident in INCIDENTS {
            let report = diagnose(&(incident.make)().window(), None);
            let bad = |severity: Severity| report.findings.iter().filter(move |finding| finding.severity >= severity);
            match incident.rule {
                Some(rule) => {
                    let first = report.findings.first().map(|finding| (finding.rule, finding.severity));
                    assert_eq!(first, Some((rule, Severity::Critical)), "{}:\n{}", incident.name, findings(&report));
                    assert_eq!(bad(Severity::Critical).count(), 1, "{}:\n{}", incident.name, findings(&report));
                }
                None => {
                    assert_eq!(bad(Severity::Warning).count(), 0, "{}:\n{}", incident.name, findings(&report));
                }
            }
        }
    }

    #[test]
    fn an_empty_recording_is_not_a_healthy_one() {
        let report = diagnose(&Window::default(), None);
        assert_eq!((report.findings.len(), report.ruled_out.len()), (0, 0), "{report:#?}");
        assert_eq!(report.not_checked.len(), RULES.len());
    }

    #[test]
    fn only_the_rules_asked_for_are_run() {
        let report = diagnose(&Fixture::healthy().window(), Some(&["dirty-cliff"]));
        let ruled_out: Vec<&str> = report.ruled_out.iter().map(|ruled_out| ruled_out.rule).collect();
        assert_eq!(ruled_out, ["dirty-cliff"]);
    }

    /// Overwrites columns with values that no kernel should print, and all that one might.
    struct Scramble<'a> {
        choices: std::slice::Iter<'a, u8>,
    }

    impl Scramble<'_> {
        fn row<R: Row>(&mut self, row: &mut R) {
            for column in 0..R::METRICS.len() {
                match self.choices.next() {
                    Some(choice @ 0..=30) => row
                        .set(column, [None, Some(0), Some(1), Some(u64::MAX), Some(1 << 63)][usize::from(choice % 5)]),
                    Some(choice @ 31..=60) => {
                        row.set(column, row.get(column).map(|value| value.wrapping_mul(u64::from(*choice))))
                    }
                    _ => {}
                }
            }
        }
    }

    impl TableVisitorMut for Scramble<'_> {
        type Error = std::convert::Infallible;
        fn host(&mut self, row: &mut HostRow) -> Result<(), Self::Error> {
            self.row(row);
            Ok(())
        }
        fn table<R: Row + 'static>(&mut self, table: &mut Table<R>) -> Result<(), Self::Error> {
            let mut rows = table.rows().to_vec();
            rows.iter_mut().for_each(|(_, row)| self.row(row));
            *table = Table::read(rows);
            Ok(())
        }
    }

    #[test]
    fn no_reading_makes_a_rule_panic_or_print_nonsense() {
        let recordings: Vec<Vec<Record>> =
            INCIDENTS.iter().map(|incident| (incident.make)().seconds(3).records()).collect();
        bolero::check!().with_test_time(std::time::Duration::from_millis(800)).for_each(|bytes: &[u8]| {
            let Some((which, choices)) = bytes.split_first() else { return };
            let mut records = recordings[usize::from(*which) % recordings.len()].clone();
            let mut scramble = Scramble { choices: choices.iter() };
            for record in &mut records {
                if let Record::Sample(sample) = record {
                    let Ok(()) = sample.visit_mut(&mut scramble);
                }
            }
            let report = diagnose(&Window::from_records(&records), None);
            let text = findings(&report);
            assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
        });
    }

    #[test]
    fn the_first_critical_rule_is_that_of_the_first_critical_finding() {
        let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        for incident in INCIDENTS {
            let window = (incident.make)().window();
            let derived = Derived::of(&window);
            // Equal severities stay in the order of the catalogue.
            let found = super::findings(&derived, &names);
            let expected = found.first().filter(|finding| finding.severity == Severity::Critical);
            let first = first_critical(&derived, &names);
            assert_eq!(first, expected.map(|finding| finding.rule), "{}", incident.name);
            let others: Vec<&str> = names.iter().copied().filter(|name| Some(*name) != first).collect();
            assert_ne!(first.is_some().then(|| first_critical(&derived, &others)), Some(first), "{}", incident.name);
        }
    }

    #[test]
    fn a_limit_does_not_explain_a_burst_that_is_written_faster_than_it_allows() {
        let of = |rule, held_to, written_at| Finding {
            rule,
            severity: Severity::Critical,
            devices: vec!["sda".to_owned()],
            held_to,
            written_at,
            ..Finding::default()
        };
        let limit = |rate| of("io-limit-throttling", rate, None);
        let explained = |limits: &[Option<f64>], rate| {
            let mut all: Vec<Finding> = limits.iter().map(|rate| limit(*rate)).collect();
            all.push(of("dirty-cliff", None, rate));
            explain(&mut all);
            all.last().is_some_and(|burst| burst.explained_by.is_some())
        };
        assert!(!explained(&[Some(2e6)], Some(46e6)), "it is of other writers");
        assert!(explained(&[Some(40e6)], Some(46e6)));
        assert!(explained(&[Some(10e6), Some(15e6)], Some(46e6)), "the limits hold both together");
        assert!(explained(&[None], Some(46e6)), "a limit of requests");
        assert!(explained(&[Some(2e6)], None));
    }

    #[test]
    fn gaps_of_many_entities_are_one_line() {
        let gap = |pid: u32| Gap {
            entity: Some(floodline_record::id::EntityId(pid)),
            ..Gap::detailed(Source::ProcessIo, Cause::Vanished, format!("/proc/{pid}/io"))
        };
        let gaps: Vec<Gap> = (1..=300).map(gap).collect();
        let lines = gap_lines(&gaps);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].source, "/proc/PID/io (/proc/1/io, /proc/2/io, /proc/3/io, …)");
        assert_eq!(lines[0].cause, "removed before it was read (300 times)");
    }
}
