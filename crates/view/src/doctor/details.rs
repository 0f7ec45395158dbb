// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything a report holds: each finding with its evidence, why, the change and its trade-off; what was ruled out,
//! what was not checked, what was not read.

use super::words::{calm_headline, checked, look_longer, when, why_candidate, you_see};
use super::{BOLD, DIM, Options, PLAIN, Page, color_of, is_calm, missing, rules, time};
use crate::layout::{Column, command, hanging, row};
use anstyle::Style;
use floodline_analysis::report::{Candidate, Evidence, Finding, GapLine, Plan, Report, Step, Unseen, Value, When};
use floodline_analysis::told::{places, told};
use floodline_record::human;
use std::fmt::Write;

/// The whole report as text.
pub(super) fn render(report: &Report, width: usize, options: Options) -> String {
    let report = &told(report);
    let mut page = Page { out: String::new(), width, color: options.color };
    if is_calm(report) {
        page.healthy(report, options.is_live);
    }
    for (at, finding) in report.findings.iter().enumerate() {
        let seen = [you_see(report), when(report)];
        page.finding(finding, report.plan.as_ref(), if at == 0 && !is_calm(report) { &seen } else { &[] });
    }
    if let Some(plan) = &report.plan {
        page.whole_plan(plan);
    }
    if !report.findings.is_empty() {
        page.ruled_out(report);
    }
    page.not_checked(report);
    page.not_read(report);
    page.other_times(report);
    if !report.findings.is_empty() {
        page.out.push('\n');
        page.paragraph("", &host_line(report, true), DIM);
    }
    page.out
}

impl Page {
    /// The verdict of the first screen, how many rules it rests on, and what was observed.
    fn healthy(&mut self, report: &Report, is_live: bool) {
        let (verdict, sentence) = calm_headline(report);
        self.paragraph("", &format!("{verdict}{sentence}"), BOLD);
        let checked = checked(report);
        let all = checked + report.not_checked.len();
        let counted = match (report.findings.len(), checked) {
            (_, 0) => String::new(),
            (0, _) => format!("{checked} of {} were checked and found nothing.", rules(all)),
            (found, _) => format!("{} worth knowing:", human::plural(found as u64, "thing", "things")),
        };
        if !counted.is_empty() {
            self.paragraph("", &counted, PLAIN);
        }
        if report.findings.is_empty() {
            self.paragraph("", &host_line(report, false), PLAIN);
        }
        if let Some(command) = look_longer(report, is_live) {
            self.paragraph("", &format!("Look longer: {command}"), BOLD);
        }
        self.out.push_str(if report.findings.is_empty() { "" } else { "\n" });
    }

    /// A finding of a report that is told. Its change stands in the plan, so that the page has one change only.
    fn finding(&mut self, finding: &Finding, plan: Option<&Plan>, seen: &[String]) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
        let label = format!("{}: ", finding.severity.name());
        let mut text = String::new();
        hanging(&mut text, "", &format!("{label}{}", finding.summary), self.width);
        let rest = text.strip_prefix(label.trim_end()).unwrap_or(&text);
        self.styled(label.trim_end(), color_of(finding.severity));
        for (at, line) in rest.lines().enumerate() {
            if at > 0 {
                self.out.push('\n');
            }
            self.styled(line, BOLD);
        }
        self.out.push_str("\n\n");
        let who = [("You see", seen.join(" ")), ("Involved", finding.brief.who.clone())];
        for (title, text) in who.iter().filter(|(_, text)| !text.trim().is_empty()) {
            self.heading(title);
            self.paragraph("    ", text, PLAIN);
            self.out.push('\n');
        }
        self.evidence(&finding.evidence);
        if let Some(confirmed) = &finding.confirmed {
            self.heading("Confirmed by the trace");
            self.paragraph("    ", confirmed, PLAIN);
        }
        self.heading("Why");
        self.paragraph("    ", &finding.cause, PLAIN);
        let change = change(plan, finding);
        if !change.is_empty() {
            self.heading("Change");
            for line in &change {
                self.paragraph("    ", line, PLAIN);
            }
        }
        self.heading(lead_of_costs(finding));
        self.paragraph("    ", &finding.trade_off, PLAIN);
        self.heading("More");
        self.paragraph("    ", &format!("floodline explain {}", finding.rule), DIM);
    }

    fn evidence(&mut self, rows: &[Evidence]) {
        if rows.is_empty() {
            return;
        }
        let cells: Vec<[String; 4]> = rows
            .iter()
            .map(|row| {
                let against = row.threshold.as_ref().map(|threshold| shown(threshold, row.unit)).unwrap_or_default();
                [row.name.clone(), shown(&row.value, row.unit), against, row.source.clone()]
            })
            .collect();
        let widest = |at: usize, least: usize, most: usize| {
            let width = cells.iter().map(|row| crate::layout::columns(&row[at])).max().unwrap_or(0);
            width.clamp(least, most)
        };
        let mut columns = [
            Column { width: widest(0, 8, self.width * 3 / 8), right: false },
            Column { width: widest(1, 8, self.width / 6), right: true },
            Column { width: widest(2, 7, self.width / 7), right: true },
            Column { width: 0, right: false },
        ];
        // Two of indent and two between columns.
        let taken: usize = columns.iter().map(|column| column.width + 2).sum();
        columns[3].width = self.width.saturating_sub(taken).max(8);
        let mut table = String::new();
        row(&mut table, 2, &columns, &["Evidence", "measured", "against", "from"]);
        self.styled(table.trim_end(), BOLD);
        self.out.push('\n');
        for cells in &cells {
            row(&mut self.out, 2, &columns, &cells.each_ref().map(String::as_str));
        }
        self.out.push('\n');
    }

    /// One plan for all findings, in blocks that can be copied.
    fn whole_plan(&mut self, plan: &Plan) {
        self.section("Plan for all findings");
        if let Some(candidate) = &plan.candidate {
            let helps = plan.is_tried_to_help();
            self.heading(if helps { "Candidate, with a reservation" } else { "Candidate, not checked" });
            self.paragraph("    ", &format!("{} Measure it first.", why_candidate(candidate, helps)), PLAIN);
        }
        let steps = plan.steps.iter().filter(|step| step.when != When::Later);
        let steps: Vec<String> = steps.map(Step::named).collect();
        if !steps.is_empty() {
            self.heading("Steps");
            let digits = steps.len().to_string().len();
            for (place, step) in (1..).zip(&steps) {
                self.paragraph(&format!("    {place:>digits$}  "), step, PLAIN);
            }
        }
        let of_candidate = |of: fn(&Candidate) -> &Vec<String>| plan.candidate.iter().flat_map(of).cloned().collect();
        let candidate: [Vec<String>; 3] =
            [of_candidate(|one| &one.commands), of_candidate(|one| &one.measure), of_candidate(|one| &one.undo)];
        let blocks = [
            ("The change", &candidate[0]),
            ("Measure", &candidate[1]),
            ("Undo the change", &candidate[2]),
            ("Now", &plan.now),
            ("Undo", &plan.undo),
            ("Keep after a reboot", &plan.keep),
            ("Undo what was kept", &plan.undo_keep),
            ("Or all of it under a guard, until floodline confirm", &plan.guarded),
        ];
        for (title, commands) in blocks.into_iter().filter(|(_, commands)| !commands.is_empty()) {
            self.heading(title);
            for text in commands {
                command(&mut self.out, 4, text, self.width);
            }
        }
        // A candidate is measured first, by turns and without steps.
        if let Some(ramp) = plan.ramp.as_ref().filter(|_| plan.candidate.is_none()) {
            let made_by = crate::ramp::made_by(&plan.rules, ramp.steps.len());
            self.heading("Ramp");
            self.paragraph("    ", format!("{} {made_by}", ramp.why).trim_end(), PLAIN);
            crate::ramp::steps(&mut self.out, ramp, 4, self.width);
        }
        let notes = [
            ("At boot", &plan.at_boot),
            ("Later", &plan.later),
            (if plan.candidate.is_some() && !plan.is_tried_to_help() { "Intended" } else { "Expect" }, &plan.expect),
            ("Costs", &plan.costs),
            ("Left out", &plan.conflicts),
        ];
        for (title, lines) in notes.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            self.heading(title);
            for line in lines {
                self.paragraph("    ", line, PLAIN);
            }
        }
        if let Some(why) = plan.arithmetic_only.as_ref().filter(|_| plan.candidate.is_none()) {
            self.heading("Not tried");
            self.paragraph("    ", &format!("The plan rests on arithmetic only: {why}."), PLAIN);
        }
    }

    fn ruled_out(&mut self, report: &Report) {
        if report.ruled_out.is_empty() {
            return;
        }
        self.section("Ruled out");
        for ruled_out in &report.ruled_out {
            self.paragraph_after("  ", &format!("{}: {}", ruled_out.rule, ruled_out.reason));
        }
    }

    fn not_checked(&mut self, report: &Report) {
        if report.not_checked.is_empty() {
            return;
        }
        self.section("Not checked");
        for not_checked in &report.not_checked {
            let gaps: Vec<String> =
                not_checked.gaps.iter().map(|gap| format!("{}: {}", source(gap), gap.cause)).collect();
            self.paragraph_after("  ", &format!("{}: {}", not_checked.rule, gaps.join("; ")));
        }
    }

    /// Gaps that no rule has mentioned already.
    fn not_read(&mut self, report: &Report) {
        let mentioned = |gap: &GapLine| report.not_checked.iter().any(|rule| rule.gaps.contains(gap));
        let rest: Vec<&GapLine> = report.gaps.iter().filter(|gap| !mentioned(gap)).collect();
        // The verdict on a calm host has the first of them, and says that one sample shows no rates.
        let unseen: Vec<&Unseen> = report.unseen.iter().skip(usize::from(is_calm(report))).collect();
        if rest.is_empty() && unseen.is_empty() {
            return;
        }
        self.section("Not seen");
        for unseen in unseen {
            self.paragraph_after("  ", &unseen.what);
        }
        for gap in rest {
            self.paragraph_after("  ", &format!("{}: {}; lost: {}", source(gap), gap.cause, gap.lost));
        }
    }

    /// What was found in other stretches of a long recording.
    fn other_times(&mut self, report: &Report) {
        let Some(stretch) = report.stretch.as_ref().filter(|stretch| !stretch.others.is_empty()) else { return };
        self.section("At other times");
        for other in &stretch.others {
            let stretches = human::plural(other.stretches, "stretch", "stretches");
            let (rule, severity, first) = (other.rule, other.severity.name(), time(other.first_wall_ns));
            self.paragraph_after("  ", &format!("{rule}: {severity} in {stretches}, first from {first} on"));
        }
    }

    fn section(&mut self, title: &str) {
        self.out.push('\n');
        self.styled(title, BOLD);
        self.out.push('\n');
    }

    fn heading(&mut self, title: &str) {
        self.out.push_str("  ");
        self.styled(title, BOLD);
        self.out.push('\n');
    }

    fn paragraph(&mut self, first: &str, text: &str, style: Style) {
        let mut lines = String::new();
        hanging(&mut lines, first, text, self.width);
        for line in lines.lines() {
            self.styled(line, style);
            self.out.push('\n');
        }
    }

    /// A paragraph whose further lines are indented more than its first.
    fn paragraph_after(&mut self, first: &str, text: &str) {
        let indent = first.len() + 2;
        let lines = crate::layout::wrap(text, self.width.saturating_sub(indent));
        for (at, line) in lines.iter().enumerate() {
            let lead = if at == 0 { first.len() } else { indent };
            let _ = writeln!(self.out, "{}{line}", " ".repeat(lead));
        }
    }
}

/// The source of a gap, without a detail that only repeats its last word.
pub(crate) fn source(gap: &GapLine) -> &str {
    let repeats = |(source, detail): &(&str, &str)| source.ends_with(&format!("/{}", detail.trim_end_matches(')')));
    gap.source.split_once(" (").filter(repeats).map_or(&gap.source, |(source, _)| source)
}

/// Where the change of a finding stands, and what the plan leaves out of it, a sentence each. Has no command: those of the plan are all.
pub(crate) fn change(plan: Option<&Plan>, finding: &Finding) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(plan) = plan {
        let places: Vec<String> = places(plan, finding).iter().map(usize::to_string).collect();
        let what = if plan.candidate.is_some() { "the candidate" } else { "the plan" };
        lines.extend(match places.as_slice() {
            [] => None,
            [one] => Some(format!("Step {one} of {what} below.")),
            [first @ .., last] => Some(format!("Steps {} and {last} of {what} below.", first.join(", "))),
        });
    }
    let later = finding.plan.iter().filter(|step| step.when == When::Later);
    lines.extend(later.map(|step| format!("Later: {}", step.named())));
    lines.extend(finding.left_out.iter().map(|left| format!("Left out: {} ({}).", left.change, left.why)));
    lines
}

/// The heading of what a finding says of its change: of the change of the plan, of one that the plan leaves out, or of what a person does.
pub(crate) fn lead_of_costs(finding: &Finding) -> &'static str {
    match (finding.plan.is_empty(), finding.left_out.is_empty()) {
        (false, _) => "Trade-off",
        (true, false) => "Trade-off of the change left out",
        (true, true) => "What helps",
    }
}

/// "web-1, Linux 6.12.117, 8 CPUs, 16.0 GiB, cgroup v2; 11 samples in 10 s."
pub(crate) fn host_line(report: &Report, with_name: bool) -> String {
    let host = &report.host;
    let mut machine: Vec<String> = Vec::new();
    machine.extend((with_name && !host.hostname.is_empty()).then(|| host.hostname.clone()));
    machine.extend((!host.kernel.is_empty()).then(|| format!("Linux {}", host.kernel)));
    machine.extend(host.cpus_possible.map(|cpus| human::plural(cpus.into(), "CPU", "CPUs")));
    machine.extend(host.mem_total_bytes.map(|bytes| human::bytes(bytes as f64)));
    machine.extend((host.lru_gen == Some(true)).then(|| "multi-generational LRU".to_owned()));
    machine.push(match host.cgroup_mode.as_str() {
        "none" => "no cgroups".to_owned(),
        mode => format!("cgroup {mode}"),
    });
    let time_covered = match report.window_s {
        0.0 => human::plural(host.samples, "look", "looks"),
        seconds => format!("{} in {}", human::plural(host.samples, "sample", "samples"), human::seconds(seconds)),
    };
    let part = report.stretch.as_ref().map_or_else(String::new, |stretch| {
        format!(
            " {} were diagnosed in {}; this report is of the worst, {} to {}.",
            human::seconds(stretch.of_s),
            human::plural(stretch.of_stretches, "stretch", "stretches"),
            time(stretch.from_wall_ns),
            time(stretch.to_wall_ns)
        )
    });
    let missing: String = missing(report).iter().map(|sentence| format!(" {sentence}")).collect();
    format!("{}; {time_covered}.{missing}{part}", machine.join(", "))
}

/// A value with its unit, for people.
pub(crate) fn shown(value: &Value, unit: &str) -> String {
    let number = match value {
        Value::Text(text) => return text.clone(),
        Value::Integer(number) => *number as f64,
        Value::Decimal(number) => *number,
    };
    match unit {
        "bytes" => human::bytes(number),
        "bytes_per_second" => human::bytes_per_second(number),
        "per_second" => format!("{}/s", human::number(number)),
        "seconds" => human::seconds(number),
        "ns" => human::seconds(number / 1e9),
        "centisecs" => human::seconds(number / 100.0),
        "share" => human::percent(number),
        "ppm" => human::percent(number / 1e6),
        "percent" => format!("{} %", human::number(number)),
        "factor" => format!("{} ×", human::number(number)),
        "pages" => human::plural(number as u64, "page", "pages"),
        _ => human::number(number),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, render};
    use super::source;
    use floodline_analysis::diagnose::diagnose;
    use floodline_analysis::report::{GapLine, Report, Severity};
    use floodline_record::gap::{Cause, Source};
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::{INCIDENTS, dirty_cliff, slow_journal};

    const DETAILS: Options = Options { width: 80, rows: 25, color: false, details: true, is_live: true };

    fn page(fixture: &Fixture, only: Option<&[&str]>) -> String {
        render(&diagnose(&fixture.window(), only), DETAILS)
    }

    #[test]
    fn a_finding_leads_with_one_sentence() {
        insta::assert_snapshot!(page(&dirty_cliff(), Some(&["dirty-cliff", "dominant-writer"])));
    }

    #[test]
    fn a_page_has_the_commands_of_its_plan_only() {
        use floodline_analysis::plan::merge;
        let mut report = diagnose(&dirty_cliff().window(), None);
        let mut other = report.findings[0].clone();
        other.rule = "dominant-writer";
        other.severity = Severity::Warning;
        other.plan = floodline_analysis::advise::step::sysctls(
            &dirty_cliff().window(),
            &[("vm.dirty_ratio", 7), ("vm.dirty_expire_centisecs", 500)],
        );
        report.findings.push(other);
        report.plan = merge(&report.findings);
        let page = render(&report, DETAILS);
        let (findings, plan) = page.split_once("Plan for all findings").expect("a plan");
        assert!(!findings.contains("sysctl -w") && !findings.contains("tee"), "{findings}");
        let joined = findings.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains("Steps 1 and 2 of the plan below."), "{findings}");
        assert!(joined.contains("Step 3 of the plan below. Left out: vm.dirty_ratio=7 (the plan sets"), "{findings}");
        for step in
            ["1  vm.dirty_background_bytes=33554432", "2  vm.dirty_bytes=134217728", "3  vm.dirty_expire_centisecs=500"]
        {
            assert!(plan.contains(step), "{step} in\n{plan}");
        }
        assert!(!page.contains("-w vm.dirty_ratio=7"), "{page}");
    }

    #[test]
    fn the_source_of_a_gap_is_named_once() {
        let of = |named: &str| {
            let (cause, lost) = (String::new(), String::new());
            source(&GapLine { source: named.to_owned(), cause, kind: "", need_s: None, lost }).to_owned()
        };
        assert_eq!(of("trace of writeback/flush (flush)"), "trace of writeback/flush");
        assert_eq!(of("trace of writeback/flush (part)"), "trace of writeback/flush (part)");
        assert_eq!(of("/proc/vmstat"), "/proc/vmstat");
    }

    #[test]
    fn a_ramp_says_which_command_makes_it_and_a_candidate_has_none() {
        use floodline_analysis::change::{Ramp, RampStep};
        use floodline_analysis::report::Candidate;
        let mut report = diagnose(&dirty_cliff().window(), Some(&["dirty-cliff"]));
        let step =
            |value: &str| RampStep { set: vec![format!("vm.dirty_bytes={value}")], watch_s: 40.0, go_on_if: vec![] };
        let plan = report.plan.as_mut().expect("a plan");
        plan.ramp = Some(Ramp { why: "Several steps: a.".to_owned(), steps: vec![step("2"), step("1")] });
        let joined = |report: &Report| render(report, DETAILS).split_whitespace().collect::<Vec<_>>().join(" ");
        let told = joined(&report);
        assert!(
            told.contains("Several steps: a. The commands above make the change at once. floodline apply --finding dirty-cliff makes these steps."),
            "{told}"
        );
        assert!(
            told.contains("Ramp step 1 of 2 vm.dirty_bytes=2 Watch the host for 40 s; floodline checks no bound here.")
        );
        report.plan.as_mut().expect("a plan").candidate = Some(Candidate::default());
        assert!(!joined(&report).contains("Ramp step"));
    }

    #[test]
    fn a_short_observation_names_what_was_not_seen_and_the_next_command() {
        let text = page(&Fixture::healthy().seconds(6), None);
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            joined.contains("The kernel writes dirty data after 30 s (vm.dirty_expire_centisecs): not seen."),
            "{text}"
        );
        assert!(text.contains("Look longer: floodline doctor --for 1m\n"), "{text}");
        let sick = page(&floodline_testkit::incidents::starved_budget(), None);
        let (_, not_seen) = sick.split_once("\nNot seen\n").expect("a section");
        assert!(not_seen.contains("An observation of 10 s can miss a stall"), "{sick}");
    }

    #[test]
    fn the_journal_is_named_with_its_cure() {
        insta::assert_snapshot!(page(&slow_journal(), Some(&["dominant-writer"])));
    }

    #[test]
    fn a_healthy_host_takes_two_lines() {
        let text = page(&Fixture::healthy().seconds(40), Some(&["dirty-cliff", "dominant-writer"]));
        insta::assert_snapshot!(text, @"
        NOT FOUND on web-1: dirty-cliff, dominant-writer. 15 rules were not run. 40 s
        watched from 04:00:00 UTC.
        2 of 2 rules were checked and found nothing.
        Linux 6.12.117+deb13-amd64, 8 CPUs, 16.0 GiB, cgroup v2; 41 samples in 40 s.
        ");
    }

    #[test]
    fn lists_that_do_not_spare_what_memory_low_protects_are_told_with_the_machine() {
        let with = |lru_gen| page(&Fixture::healthy().facts(|facts| facts.lru_gen = lru_gen), Some(&["dirty-cliff"]));
        assert!(with(Some(true)).contains("multi-generational LRU"), "{}", with(Some(true)));
        assert_eq!(with(Some(false)), with(None));
    }

    #[test]
    fn what_could_not_be_seen_is_named() {
        let fixture = Fixture::healthy()
            .seconds(40)
            .without(Source::Vmstat, Cause::PermissionDenied { need: "root".into() })
            .without(Source::DebugBdiStats, Cause::NotMounted { fs_type: "debugfs".into() });
        insta::assert_snapshot!(page(&fixture, Some(&["dirty-cliff", "dominant-writer"])), @"
        NOT FOUND on web-1: dominant-writer, as far as this user may see. 15 rules were
        not run. 40 s watched from 04:00:00 UTC.
        1 of 2 rules were checked and found nothing.
        Linux 6.12.117+deb13-amd64, 8 CPUs, 16.0 GiB, cgroup v2; 41 samples in 40 s.

        Not checked
          dirty-cliff: /proc/vmstat: permission denied (needs root)

        Not seen
          /sys/kernel/debug/bdi/NAME/stats: debugfs is not mounted; lost: the kernel's
            own bandwidth estimate of a device
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        for incident in INCIDENTS {
            let report = diagnose(&(incident.make)().window(), None);
            for width in [60, 80, 100] {
                let text = render(&report, Options { width, ..DETAILS });
                for line in text.lines() {
                    // A quoted word of a command may be longer than a narrow page.
                    let is_command = width < 80 && line.contains('\'');
                    assert!(crate::layout::columns(line) <= width || is_command, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn colour_only_when_asked_and_never_over_a_line_end() {
        let report = diagnose(&dirty_cliff().window(), None);
        assert!(!render(&report, DETAILS).contains('\u{1b}'));
        let colored = render(&report, Options { color: true, ..DETAILS });
        assert!(colored.contains('\u{1b}'));
        for line in colored.lines() {
            assert!(!line.contains('\u{1b}') || line.ends_with("\u{1b}[0m"), "{line:?}");
        }
    }

    #[test]
    fn a_stretch_of_a_long_recording_says_which_it_is() {
        use floodline_analysis::report::{OtherStretches, Stretch};
        let other = OtherStretches {
            rule: "dirty-cliff",
            severity: Severity::Critical,
            stretches: 3,
            first_wall_ns: 1_790_000_000_000_000_000,
        };
        let stretch = Stretch {
            from_wall_ns: 1_790_001_200_000_000_000,
            to_wall_ns: 1_790_001_800_000_000_000,
            of_s: 86_400.0,
            of_stretches: 144,
            others: vec![other],
        };
        let report = Report { stretch: Some(stretch), ..diagnose(&dirty_cliff().window(), None) };
        let text = render(&report, DETAILS);
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            joined.contains("dirty-cliff: critical in 3 stretches, first from 2026-09-21T14:13:20.000Z on"),
            "{text}"
        );
        assert!(
            joined.ends_with(
                "24 h were diagnosed in 144 stretches; this report is of the worst, 2026-09-21T14:33:20.000Z to 2026-09-21T14:43:20.000Z."
            ),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn hostile_names_reach_the_page_escaped() {
        let fixture = slow_journal().process("systemd-journal\u{1b}[31m\n", 300, "/x", |_, _| {}).facts(|facts| {
            facts.hostname = floodline_record::name::Name::new(b"evil\x1b[2J\xff");
            facts.kernel_release = "6.1\u{1b}c".into();
        });
        let text = page(&fixture, None);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    }
}
