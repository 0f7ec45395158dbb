// SPDX-License-Identifier: MIT OR Apache-2.0
//! One screen of at most 25 lines for a person who has a sick host: what they see, because of what, what to type, what
//! that does and costs, and how to undo it. The verdict stands first and its count last. Plain words; the kernel's
//! words and every source are in the details.

use super::fit::{LINES, LINES_MIN, Limits, Part, paragraph, without_brackets};
use super::words::{
    also_unseen, calm_headline, checked, for_other_reasons, help_beside, look_longer, names, not_checked, readings,
    when, why_candidate, you_see,
};
use super::{BOLD, DIM, Options, PLAIN, Page, color_of, is_calm, missing};
use crate::layout::{capital, command, wrap};
use anstyle::Style;
use floodline_analysis::report::{Candidate, Finding, Plan, Report, Severity};
use floodline_record::human;

/// Columns of the labels at the left.
const LABEL: usize = 13;
/// Findings beside the first that get a line of their own.
const OTHERS: usize = 2;
/// Lines of a calm screen that has room for the reasons why rules were not checked, without the two lines that follow them.
const CALM: usize = 14;
/// Labels of what was cut that the last line names; it counts more of them as "what is cut short".
const NAMED: usize = 3;

/// The first screen of a report, of at most `rows` lines.
pub(super) fn render(report: &Report, width: usize, options: Options) -> String {
    let Options { rows, color, is_live, .. } = options;
    let rows = rows.clamp(LINES_MIN, LINES);
    let sick = report.findings.first().filter(|_| !is_calm(report));
    let mut out = String::new();
    for limits in Limits::all() {
        let page = Page { out: String::new(), width, color };
        let mut screen = Screen { page, limits, cut: Vec::new(), is_live };
        match sick {
            Some(first) => screen.sick(report, first),
            None => screen.calm(report),
        }
        out = screen.page.out;
        if out.lines().count() <= rows {
            break;
        }
    }
    out
}

/// A page that keeps to limits and remembers the labels of what they cut.
struct Screen {
    page: Page,
    limits: Limits,
    cut: Vec<&'static str>,
    /// Whether a new observation can be made.
    is_live: bool,
}

impl Screen {
    fn sick(&mut self, report: &Report, first: &Finding) {
        let verdict = match report.host.hostname.as_str() {
            "" => format!("{}: ", first.severity.name().to_uppercase()),
            host => format!("{} on {host}: ", first.severity.name().to_uppercase()),
        };
        self.headline(&verdict, &first.summary, color_of(first.severity));
        self.blank();
        self.labelled(Part::YouSee, "  You see", &you_see(report), PLAIN);
        self.labelled(Part::Because, "  Because", &first.brief.because, PLAIN);
        self.labelled(Part::Seen, "  Seen", first.confirmed.as_deref().unwrap_or_default(), PLAIN);
        self.labelled(Part::Who, "  Involved", &first.brief.who, PLAIN);
        self.labelled(Part::When, "  When", &when(report), PLAIN);
        self.labelled(Part::Missing, "  Missing", &missing(report).join(" "), PLAIN);
        self.others(report);
        self.blank();
        match &report.plan {
            Some(plan) => {
                let own = help_beside(plan, first);
                self.labelled(Part::Helps, "What helps", own.unwrap_or_default(), PLAIN);
                self.plan(plan, own.is_some());
            }
            None => {
                self.labelled(Part::Expect, "What helps", &first.brief.expect, PLAIN);
                self.labelled(Part::Costs, "  Note", &first.brief.costs, PLAIN);
            }
        }
        self.blank();
        self.closing(report, first);
    }

    fn headline(&mut self, verdict: &str, sentence: &str, style: Style) {
        let most = self.limits.of(Part::Verdict);
        let (lines, is_cut) = paragraph(&format!("{verdict}{sentence}"), self.page.width, most);
        self.cut.extend(is_cut.then_some("the verdict"));
        for (at, line) in lines.iter().enumerate() {
            match line.strip_prefix(verdict.trim_end()).filter(|_| at == 0) {
                Some(rest) => {
                    self.page.styled(verdict.trim_end(), style);
                    self.page.styled(rest, BOLD);
                }
                None => self.page.styled(line, BOLD),
            }
            self.blank();
        }
    }

    /// Findings beside the first: those that it explains and those worth knowing by name, others with their sentence.
    fn others(&mut self, report: &Report) {
        let rest = || report.findings.iter().skip(1);
        let is_aside = |finding: &&Finding| finding.explained_by.is_some() || finding.severity == Severity::Info;
        self.labelled(Part::Also, "  Also seen", &names(rest().filter(is_aside)), DIM);
        let own: Vec<&Finding> =
            rest().filter(|finding| finding.explained_by.is_none() && finding.severity >= Severity::Warning).collect();
        if self.limits.of(Part::Besides) == 0 {
            self.labelled(Part::Names, "  Separate", &names(own.into_iter()), PLAIN);
            return;
        }
        for finding in own.iter().take(OTHERS) {
            let text = format!("{}: {}", finding.severity.name(), finding.summary);
            self.labelled(Part::Besides, "  Separate", &text, PLAIN);
        }
        if own.len() > OTHERS {
            let more = human::plural((own.len() - OTHERS) as u64, "finding", "findings");
            self.labelled(Part::Besides, "", &format!("and {more} more"), PLAIN);
        }
    }

    /// The plan. `is_of_others` if none of it is for the first finding: its effect then names the other findings.
    fn plan(&mut self, plan: &Plan, is_of_others: bool) {
        self.commands(Part::Now, "Do now", &plan.now, BOLD);
        if let Some(candidate) = &plan.candidate {
            self.candidate(candidate, plan.is_tried_to_help());
        }
        let is_first = plan.now.is_empty() && plan.candidate.is_none() && !is_of_others;
        let later = if is_first { "What helps" } else { "  Later" };
        self.labelled(Part::Later, later, &plan.later.join(" "), PLAIN);
        let expect = match (is_first && plan.later.is_empty(), plan.is_tried_to_help()) {
            (true, _) => "What helps",
            (false, false) if plan.candidate.is_some() => "  Intended",
            (false, _) => "  Expect",
        };
        let effect = plan.expect.first().map_or("", String::as_str);
        let effect = match is_of_others && !effect.is_empty() {
            true => format!("For {}: {effect}", plan.rules.join(", ")).replacen(": Predicted: ", ", predicted: ", 1),
            false => effect.to_owned(),
        };
        self.labelled(Part::Expect, expect, &effect, PLAIN);
        // A candidate has said why.
        if let Some(why) = plan.arithmetic_only.as_ref().filter(|_| plan.candidate.is_none()) {
            let told = format!("By arithmetic only: {why}.");
            // A reason that does not fit on a single line is left out, not cut.
            let is_short = self.limits.of(Part::Untried) > 1 || LABEL + told.chars().count() <= self.page.width;
            let told = if is_short { told.as_str() } else { "By arithmetic only." };
            self.labelled(Part::Untried, "  Untried", told, DIM);
        }
        self.labelled(Part::Costs, "  Costs", &plan.costs.join(" "), PLAIN);
        self.commands(
            Part::Undo,
            "  Undo",
            plan.candidate.as_ref().map_or(&plan.undo, |candidate| &candidate.undo),
            DIM,
        );
        // The guarded command keeps the change too; the details have the file.
        match plan.guarded.is_empty() {
            true => {
                self.commands(Part::Keep, "  Keep", &plan.keep, DIM);
                self.commands(Part::Keep, "  Undo Keep", &plan.undo_keep, DIM);
            }
            false => self.commands(Part::Keep, "  Guarded", &plan.guarded, DIM),
        }
        self.labelled(Part::AtBoot, "  At boot", plan.at_boot.first().map_or("", String::as_str), PLAIN);
        self.left_out(plan.conflicts.first().map_or("", String::as_str));
    }

    /// What the plan leaves out. A command in it is shown whole or not at all.
    fn left_out(&mut self, text: &str) {
        let most = self.limits.of(Part::Conflict);
        if !text.contains('=') || most == 0 {
            return self.labelled(Part::Conflict, "  Left out", text, PLAIN);
        }
        let room = self.page.width.saturating_sub(LABEL);
        let fits = |text: &str| wrap(text, room).len() <= most;
        let bare = without_brackets(text);
        // "On a twin of this host, this change does harm (longest fsync 3 s → about 5 s): sudo sysctl -w …"
        let reason = text.split_once("): ").map_or("", |(reason, _)| reason);
        let told = match (fits(text), fits(&bare)) {
            (true, _) => text.to_owned(),
            (false, true) => bare,
            (false, false) if reason.is_empty() => "A change: add --details to see it.".to_owned(),
            (false, false) => format!("{}: add --details to see it.", without_brackets(&format!("{reason})"))),
        };
        if told != text && !self.cut.contains(&"Left out") {
            self.cut.push("Left out");
        }
        self.labelled(Part::Conflict, "  Left out", &told, PLAIN);
    }

    /// A change that is to be measured first. `helps` if its trial shows that it helps, with a reservation.
    fn candidate(&mut self, candidate: &Candidate, helps: bool) {
        self.commands(Part::Now, "Candidate", &candidate.commands, PLAIN);
        let told = why_candidate(candidate, helps);
        // Where there is little room, the label "Doubt" has to do for the lead.
        let is_whole = wrap(&told, self.page.width.saturating_sub(LABEL)).len() <= self.limits.of(Part::Untried);
        let told = if is_whole || !helps { told } else { capital(&format!("{}.", candidate.why)) };
        let label = if helps { "  Doubt" } else { "  Unchecked" };
        self.labelled(Part::Untried, label, &told, PLAIN);
        self.commands(Part::Measure, "  Measure", &candidate.measure, BOLD);
    }

    fn closing(&mut self, report: &Report, first: &Finding) {
        let count = |severity: Severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
        let counts: Vec<String> = [Severity::Critical, Severity::Warning, Severity::Info]
            .into_iter()
            .map(|severity| (count(severity), severity.name()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| match name {
                "warning" => human::plural(count as u64, "warning", "warnings"),
                name => format!("{count} {name}"),
            })
            .collect();
        let ruled_out = match report.ruled_out.len() {
            0 => String::new(),
            many => format!(" {} ruled out.", human::plural(many as u64, "other cause", "other causes")),
        };
        let unchecked = not_checked(report, self.is_live, self.limits.is_none());
        self.text(Part::Count, &format!("{}.{ruled_out}{unchecked}", counts.join(", ")), BOLD);
        let evidence = self.rest(report, "Evidence");
        let explain = format!("What it means: floodline explain {}", first.rule);
        if evidence.len() + 2 + explain.len() <= self.page.width {
            return self.text(Part::Explain, &format!("{evidence}. {explain}"), DIM);
        }
        self.text(Part::Count, &evidence, DIM);
        if self.limits.of(Part::Explain) > 0 && explain.len() <= self.page.width {
            self.text(Part::Explain, &explain, DIM);
        }
    }

    /// Where everything stands that this screen does not show: the names of rules that were not checked, too, where there is room.
    fn rest(&self, report: &Report, always: &str) -> String {
        let rules = for_other_reasons(report);
        let named = match rules.is_empty() {
            true => String::new(),
            false => self.rest_of(&format!("{always}, {}", rules.join(", "))),
        };
        let fits = !named.is_empty() && named.chars().count() <= self.page.width;
        if fits { named } else { self.rest_of(always) }
    }

    fn rest_of(&self, always: &str) -> String {
        match self.cut.len() {
            0 => format!("{always}: add --details"),
            1..=NAMED => format!("{always}, and all of {}: add --details", self.cut.join(", ")),
            _ => format!("{always}, and what is cut short: add --details"),
        }
    }

    fn calm(&mut self, report: &Report) {
        let checked = checked(report);
        let all = checked + report.not_checked.len();
        let (verdict, sentence) = calm_headline(report);
        self.headline(&verdict, &sentence, BOLD);
        let mut readings = readings(report);
        let not_seen = [("Not seen", also_unseen(report)), ("Missing", missing(report).join(" "))];
        readings.extend(not_seen.into_iter().filter(|(_, text)| !text.is_empty()));
        if !readings.is_empty() {
            self.blank();
        }
        for (label, text) in readings {
            self.labelled_at(Part::Reading, (label, &format!("  {label}")), LABEL + 6, &text, PLAIN);
        }
        if !report.findings.is_empty() {
            self.blank();
            for finding in report.findings.iter().take(OTHERS + 1) {
                self.labelled(Part::Note, "Note", &finding.summary, PLAIN);
            }
        }
        self.blank();
        // A cause that comes now and then is ruled out for the time that was watched.
        let so_far = if report.unseen.is_empty() { "" } else { " here" };
        let ruled_out = report.ruled_out.len();
        let of = |has_reasons| not_checked(report, self.is_live, has_reasons);
        let of = |reasons| format!("{ruled_out} of {all} causes ruled out{so_far}.{}", of(reasons));
        let has_room = self.page.out.lines().count() + wrap(&of(true), self.page.width).len() <= CALM;
        self.text(Part::Count, &of(has_room), PLAIN);
        if let Some(command) = look_longer(report, self.is_live) {
            self.text(Part::Count, &format!("Look longer: {command}"), BOLD);
        }
        let rest = self.rest(report, "Readings and sources");
        self.text(Part::Count, &rest, DIM);
    }

    fn blank(&mut self) {
        self.page.out.push('\n');
    }

    /// A label at the left and a paragraph beside it; nothing for an empty text.
    fn labelled(&mut self, part: Part, label: &'static str, text: &str, style: Style) {
        self.labelled_at(part, (label.trim(), label), LABEL, text, style);
    }

    fn labelled_at(&mut self, part: Part, label: (&'static str, &str), indent: usize, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        let (lines, is_cut) = self.limits.paragraph(part, text, self.page.width.saturating_sub(indent));
        if is_cut && !self.cut.contains(&label.0) {
            self.cut.push(label.0);
        }
        self.beside(label.1, indent, &lines, style);
    }

    /// Lines beside a label at the left.
    fn beside(&mut self, label: &str, indent: usize, lines: &[String], style: Style) {
        for (at, line) in lines.iter().enumerate() {
            let lead = if at == 0 { label } else { "" };
            self.page.styled(&format!("{lead:indent$}"), if lead.starts_with(' ') { DIM } else { BOLD });
            self.page.styled(line, style);
            self.blank();
        }
    }

    /// Commands beside a label, each continued with a backslash, so that the block can be copied.
    fn commands(&mut self, part: Part, label: &str, commands: &[String], style: Style) {
        let mut lines = String::new();
        for text in commands {
            command(&mut lines, 0, text, self.page.width.saturating_sub(LABEL));
        }
        let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        if self.limits.of(part) == 0 && !lines.is_empty() {
            let many = human::plural(commands.len() as u64, "command", "commands");
            lines = vec![format!("add --details to see {many}")];
        }
        self.beside(label, LABEL, &lines, style);
    }

    fn text(&mut self, part: Part, text: &str, style: Style) {
        for line in self.limits.paragraph(part, text, self.page.width).0 {
            self.page.styled(&line, style);
            self.blank();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::calm_verdict;
    use super::super::{Options, render};
    use floodline_analysis::diagnose::diagnose;
    use floodline_analysis::report::{Report, Unexplained};
    use floodline_record::human;
    use floodline_testkit::Fixture;
    use floodline_testkit::incidents::{INCIDENTS, dirty_cliff, starved_budget};

    fn page(fixture: &Fixture) -> String {
        render(&diagnose(&fixture.window(), None), Options::default())
    }

    #[test]
    fn an_observation_that_is_too_short_or_blind_is_not_called_healthy() {
        use floodline_record::gap::{Cause, Source};
        use floodline_record::units::Pages;
        let rising = || {
            let dirty = |t: f64| Pages(2_000 + 100 * t as u64);
            Fixture::healthy().seconds(12).facts(|facts| facts.devices[0].rotational = Some(true)).host(
                move |t, row| {
                    (row.nr_dirty, row.nr_dirtied) = (Some(dirty(t)), Some(Pages(40_000_000 + dirty(t).0)));
                },
            )
        };
        let short = page(&rising());
        assert!(short.starts_with("NOTHING SEEN on web-1:"), "{short}");
        assert!(short.contains("3 not checked (--for 36s)"), "{short}");
        let blind = Fixture::healthy()
            .seconds(40)
            .without(Source::ProcessIo, Cause::PermissionDenied { need: "CAP_SYS_PTRACE".into() });
        let blind = page(&blind);
        assert!(blind.starts_with("NOTHING SEEN on web-1:") && blind.contains("this user may see"), "{blind}");
        let whole = page(&rising().seconds(40));
        assert!(whole.starts_with("OK on web-1:"), "{whole}");
    }

    #[test]
    fn long_waits_without_a_cause_are_not_called_healthy() {
        let mut report = diagnose(&Fixture::healthy().seconds(40).window(), None);
        let who = "redis-server[812]".to_owned();
        report.unexplained =
            Some(Unexplained { who, more: 9, waited_s: 19.0, longest_s: Some(0.386), io_some_share: None });
        let (word, sentence) = calm_verdict(&report);
        assert_eq!(word, "NO CAUSE FOUND");
        let told = "fsync and similar calls took long: redis-server[812] waited 19 s, at most 386 ms at a time. 9 more programs \
                    waited long, too. No rule found the cause. 40 s watched";
        assert!(sentence.starts_with(told), "{sentence}");
        let of_idle_disks = |who: &str| {
            let (who, io_some_share) = (who.to_owned(), Some(0.31));
            super::super::words::unexplained(&Unexplained {
                who,
                more: 0,
                waited_s: 4.6,
                longest_s: None,
                io_some_share,
            })
        };
        assert_eq!(
            of_idle_disks("worker[103]"),
            "tasks waited for I/O 31 % of the time, for longer than the disks were busy. worker[103] waited 4.60 s. No rule found the cause."
        );
        assert!(of_idle_disks("").ends_with("for longer than the disks were busy. No rule found the cause."));
    }

    #[test]
    fn a_host_on_which_tasks_wait_without_harm_says_for_what() {
        use floodline_analysis::report::BusyDisk;
        let mut report = diagnose(&Fixture::healthy().seconds(40).window(), None);
        let calm = |report: &Report| calm_verdict(report).1;
        assert!(calm(&report).starts_with("no stall or storm found. 40 s watched"), "{}", calm(&report));
        let symptom = &mut report.symptom;
        (symptom.waiting_s, symptom.io_some_share, symptom.io_some_share_max) = (5.0, Some(0.6), Some(0.82));
        symptom.waited_most = Some("scan[7]".to_owned());
        let mut told = |busy_share: f64, load: &'static str| {
            let disk = BusyDisk { name: "sda".to_owned(), busy_share, write_await_s: None, load: Some(load) };
            report.symptom.busiest = Some(disk);
            let sentence = calm(&report);
            assert!(sentence.starts_with("no rule found a harmful stall or storm. 40 s watched"), "{sentence}");
            sentence.split_once("waited for I/O 82 % of the time, scan[7] longest: ").expect("who waited").1.to_owned()
        };
        assert_eq!(told(0.9, "reads"), "sda was busy mostly with reads.");
        assert_eq!(told(0.9, "waited_writes"), "sda was busy mostly with syncs and direct writes.");
        let flusher = "writeback kept sda busy, and no other program waited long for it.";
        assert_eq!(told(0.9, "writeback"), flusher);
        assert_eq!(told(0.1, "writeback"), "no disk was busy meanwhile.");
        // A note of a wait is enough, even without the pressure of the host.
        report.symptom.waiting_s = 0.0;
        assert!(calm(&report).starts_with("no stall or storm found. 40 s watched"), "{}", calm(&report));
        let mut note = diagnose(&dirty_cliff().window(), None).findings.remove(0);
        (note.severity, note.waited_s) = (floodline_analysis::report::Severity::Info, Some(1.0));
        report.findings.push(note);
        let told = calm(&report);
        assert!(told.starts_with("no rule found a harmful stall or storm. 40 s watched"), "{told}");
    }

    #[test]
    fn a_command_that_is_left_out_is_whole_or_not_there() {
        use super::{Limits, Page, Part, Screen};
        let command = "sudo sysctl -w vm.dirty_background_bytes=16777216 vm.dirty_bytes=67108864";
        let text = format!(
            "On a twin of this host, this change does harm (maybe longest write call 1.71 ms → about 576 ms): {command}"
        );
        let limits = Limits::all().find(|limits| limits.of(Part::Conflict) == 2).expect("it is shortened");
        let shown = |text: &str| {
            let page = Page { out: String::new(), width: 80, color: false };
            let mut screen = Screen { page, limits, cut: Vec::new(), is_live: true };
            screen.left_out(text);
            (screen.page.out.split_whitespace().collect::<Vec<_>>().join(" "), screen.cut)
        };
        let whole = format!("Left out On a twin of this host, this change does harm: {command}");
        assert_eq!(shown(&text), (whole, vec!["Left out"]));
        let two = format!("{text}; sudo sysctl -w vm.dirty_expire_centisecs=300 vm.dirty_writeback_centisecs=100");
        assert_eq!(shown(&two).0, "Left out On a twin of this host, this change does harm: add --details to see it.");
        let other = "dirty-cliff asks for vm.dirty_background_bytes=16777216; starved-dirty-budget needs \
                     vm.dirty_background_bytes=419430400 of it, which is kept in this plan";
        assert_eq!(shown(other).0, "Left out A change: add --details to see it.");
    }

    #[test]
    fn a_reservation_is_printed_even_where_there_is_little_room() {
        use super::{Limits, Page, Part, Screen};
        use floodline_analysis::report::Candidate;
        let limits = Limits::all().find(|limits| limits.of(Part::Untried) == 1).expect("it is shortened");
        let page = Page { out: String::new(), width: 80, color: false };
        let mut screen = Screen { page, limits, cut: Vec::new(), is_live: true };
        let why = "the twin does not show whether the longest write call gets longer".to_owned();
        screen.candidate(&Candidate { why, ..Candidate::default() }, true);
        let told = "  Doubt      The twin does not show whether the longest write call gets longer.";
        assert!(screen.page.out.contains(told), "{}", screen.page.out);
    }

    #[test]
    fn a_rule_that_finds_nothing_does_not_call_the_host_healthy() {
        let report = |only: Option<&[&str]>| diagnose(&starved_budget().window(), only);
        let all = report(None);
        assert_eq!(all.rules_not_run, 0);
        let one = report(Some(&["dirty-cliff"]));
        let (word, sentence) = calm_verdict(&one);
        assert_eq!(word, "NOT FOUND");
        let told = format!("dirty-cliff. {} rules were not run. ", one.rules_not_run);
        assert!(one.rules_not_run > 1 && sentence.starts_with(&told), "{sentence}");
        let page = render(&one, Options::default());
        assert!(page.starts_with("NOT FOUND on ") && !page.contains("OK on"), "{page}");
        assert!(render(&all, Options::default()).starts_with("CRITICAL"));
    }

    #[test]
    fn a_starved_host_says_what_to_type() {
        insta::assert_snapshot!(page(&starved_budget()));
    }

    #[test]
    fn a_cliff_says_what_to_type() {
        insta::assert_snapshot!(page(&dirty_cliff()));
    }

    #[test]
    fn a_healthy_host_says_so_with_its_key_readings() {
        insta::assert_snapshot!(page(&Fixture::healthy()));
    }

    #[test]
    fn every_incident_fits_a_terminal_of_25_lines_and_a_healthy_host_12() {
        for incident in INCIDENTS {
            let text = page(&(incident.make)());
            let most = if incident.rule.is_some() { 25 } else { 16 };
            assert!(text.lines().count() <= most, "{}: {} lines\n{text}", incident.name, text.lines().count());
            let verdict = ["CRITICAL", "WARNING", "OK", "NOTHING SEEN"];
            assert!(verdict.iter().any(|word| text.starts_with(word)), "{}:\n{text}", incident.name);
        }
        let healthy = page(&Fixture::healthy());
        assert!(healthy.lines().count() <= 12, "{healthy}");
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        for incident in INCIDENTS {
            let report = diagnose(&(incident.make)().window(), None);
            for width in [60, 80, 100] {
                for line in render(&report, Options { width, ..Options::default() }).lines() {
                    // A word of a command, such as a path, may be longer than a narrow page.
                    let is_command = width < 80 && (line.contains('\'') || line.contains("/etc/"));
                    assert!(crate::layout::columns(line) <= width || is_command, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn what_is_missing_stands_on_the_first_screen() {
        use floodline_record::record::{Record, What};
        let holed = |fixture: Fixture, io: u64| {
            let mut records = fixture.records();
            let second = |record: &Record| matches!(record, Record::Sample(_));
            let at = records.iter().rposition(second).expect("samples");
            if let Record::Sample(sample) = &mut records[at] {
                let some = sample.host.psi_io_some.get_or_insert_default();
                some.0 += io;
                sample.time.monotonic.0 += 3_000_000_000;
                sample.time.wall.0 += 3_000_000_000;
            }
            let at_time = floodline_record::units::Nanos(0);
            let event = floodline_record::record::Event { at: at_time, what: What::Missed { samples: 3 } };
            records.insert(at, Record::Event(event));
            let window = floodline_record::window::Window::from_records(&records);
            render(&diagnose(&window, None), Options::default())
        };
        let quiet = holed(Fixture::healthy().seconds(40), 0);
        assert!(quiet.starts_with("OK on "), "{quiet}");
        assert!(quiet.contains("3 of 44 samples are missing, the longest hole is 4.0"), "{quiet}");
        let waited = holed(Fixture::healthy().seconds(40), 2_400_000_000);
        assert!(waited.starts_with("NOTHING SEEN on "), "{waited}");
        assert!(waited.contains("Tasks waited for I/O for 2.4"), "{waited}");
        let joined = waited.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(" not checked (") || joined.contains(" was not checked. Reason: "), "{waited}");
        let mut report = diagnose(&Fixture::healthy().seconds(40).window(), None);
        let gap = floodline_analysis::report::GapLine {
            source: "/sys/fs/cgroup (inode numbers of cgroups)".to_owned(),
            cause: "not in the recording".to_owned(),
            kind: "not_planned",
            need_s: None,
            lost: String::new(),
        };
        let rule = "foreign-inode-writeback";
        report.not_checked = vec![floodline_analysis::report::NotChecked { rule, gaps: vec![gap] }];
        let page = render(&report, Options::default());
        assert!(page.contains("foreign-inode-writeback was not checked. Reason:"), "{page}");
        assert!(page.ends_with("Readings and sources, foreign-inode-writeback: add --details\n"), "{page}");
        let sick = holed(dirty_cliff(), 0);
        assert!(sick.contains("3 of "), "{sick}");
        assert!(sick.lines().count() <= 25, "{sick}");
    }

    #[test]
    fn a_short_observation_does_not_say_that_all_is_well() {
        let joined = |page: &str| page.split_whitespace().collect::<Vec<_>>().join(" ");
        for seconds in [6, 10, 20, 34] {
            let short = page(&Fixture::healthy().seconds(seconds));
            let told =
                format!("NOTHING SEEN on web-1: no stall or storm found in {}", human::seconds(f64::from(seconds)));
            assert!(joined(&short).starts_with(&told), "{short}");
            let unseen = "The kernel writes dirty data after 30 s (vm.dirty_expire_centisecs): not seen.";
            assert!(joined(&short).contains(unseen), "{short}");
            assert!(short.contains("Look longer: floodline doctor --for 1m\n"), "{short}");
            assert!(short.contains(" causes ruled out here."), "{short}");
        }
        let long = page(&Fixture::healthy().seconds(35));
        assert!(long.starts_with("OK on web-1: no stall or storm found. 35 s watched"), "{long}");
        assert!(!long.contains("Look longer") && !long.contains("so far"), "{long}");
        let kept = Options { is_live: false, ..Options::default() };
        let kept = render(&diagnose(&Fixture::healthy().seconds(6).window(), None), kept);
        assert!(kept.contains("Look longer: floodline record --for 1m -o host.flr\n"), "{kept}");
        let one = page(&Fixture::healthy().one_look());
        assert!(one.contains("It shows no rates"), "{one}");
        let nothing = render(&diagnose(&floodline_record::window::Window::default(), None), Options::default());
        assert!(nothing.starts_with("UNKNOWN"), "{nothing}");
    }
}
